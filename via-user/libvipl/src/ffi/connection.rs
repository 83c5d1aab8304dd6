//! Connections: client and server, peer to peer.

use core::ffi::c_ulong;
use std::sync::Arc;

use vipl::{NetAddress, VipReturn};

use crate::abi::{self, ADDRESS_OFFSET, Code};
use crate::guard::{code, guard, timeout};
use crate::handle::Handle;
use crate::object::{CONNECTIONS, ConnectionObject, NICS, VIS};
use crate::pointer::{In, Out};

use super::vi::remote;

/// Longest part of an address that is read at all; `vipl` knows the true limits.
const PART_MAX: usize = 256;

/// An address of a program.
pub(super) fn read(given: In<abi::NetAddress>) -> Result<NetAddress, VipReturn> {
    let front = given.get()?;
    let host = usize::from(front.host_len);
    let discriminator = usize::from(front.discriminator_len);
    if host > PART_MAX || discriminator > PART_MAX {
        return Err(VipReturn::InvalidParameter);
    }
    let bytes = given.bytes(ADDRESS_OFFSET, host + discriminator)?;
    Ok(NetAddress::new(&bytes[..host], &bytes[host..]))
}

/// An address for a program.
pub(super) fn write(out: Out<abi::NetAddress>, address: &NetAddress) -> Result<(), VipReturn> {
    let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.set(abi::NetAddress {
        host_len: length(&address.host),
        discriminator_len: length(&address.discriminator),
    })?;
    out.set_bytes(ADDRESS_OFFSET, &[&*address.host, &*address.discriminator].concat())
}

#[unsafe(export_name = "VipConnectWait")]
extern "C" fn connect_wait(
    nic: Handle,
    local: In<abi::NetAddress>,
    ms: c_ulong,
    from: Out<abi::NetAddress>,
    attributes: Out<abi::ViAttributes>,
    out: Out<Handle>,
) -> Code {
    guard("VipConnectWait", || {
        let nic = NICS.get(nic)?;
        let local = read(local)?;
        from.check()?;
        attributes.check()?;
        out.check()?;
        let waited = nic.nic.connect_wait(&local, timeout(ms));
        let request = waited.map_err(code("VipConnectWait"))?;
        write(from, request.remote_address())?;
        attributes.set(remote(request.remote_attributes()))?;
        let object = ConnectionObject { request, nic: Arc::clone(&nic) };
        let handle = CONNECTIONS.insert_with(|_| Ok(Arc::new(object)))?;
        nic.adopt(handle)?;
        out.set(handle)
    })
}

#[unsafe(export_name = "VipConnectAccept")]
extern "C" fn connect_accept(connection: Handle, vi: Handle) -> Code {
    guard("VipConnectAccept", || {
        let object = CONNECTIONS.get(connection)?;
        let vi = VIS.get(vi)?;
        if vi.nic.handle != object.nic.handle {
            return Err(VipReturn::InvalidParameter);
        }
        let accepted = object.request.accept(&vi.vi);
        // Also if the requester was gone: there is nothing left to answer.
        if object.request.is_answered() && CONNECTIONS.remove(connection).is_ok() {
            object.nic.disown(connection);
        }
        accepted.map_err(code("VipConnectAccept"))
    })
}

#[unsafe(export_name = "VipConnectReject")]
extern "C" fn connect_reject(connection: Handle) -> Code {
    guard("VipConnectReject", || {
        let object = CONNECTIONS.remove(connection)?;
        object.nic.disown(connection);
        // The last one to drop it rejects it.
        Ok(())
    })
}

#[unsafe(export_name = "VipConnectRequest")]
extern "C" fn connect_request(
    vi: Handle,
    local: In<abi::NetAddress>,
    to: In<abi::NetAddress>,
    ms: c_ulong,
    out: Out<abi::ViAttributes>,
) -> Code {
    guard("VipConnectRequest", || {
        let object = VIS.get(vi)?;
        let (local, to) = (read(local)?, read(to)?);
        out.check()?;
        let connected = object.vi.connect_request(&local, &to, timeout(ms));
        out.set(remote(connected.map_err(code("VipConnectRequest"))?))
    })
}

#[unsafe(export_name = "VipDisconnect")]
extern "C" fn disconnect(vi: Handle) -> Code {
    guard("VipDisconnect", || VIS.get(vi)?.vi.disconnect().map_err(code("VipDisconnect")))
}

#[unsafe(export_name = "VipConnectPeerRequest")]
extern "C" fn connect_peer_request(
    vi: Handle,
    local: In<abi::NetAddress>,
    to: In<abi::NetAddress>,
    ms: c_ulong,
) -> Code {
    guard("VipConnectPeerRequest", || {
        let object = VIS.get(vi)?;
        let (local, to) = (read(local)?, read(to)?);
        let requested = object.vi.connect_peer_request(&local, &to, timeout(ms));
        requested.map_err(code("VipConnectPeerRequest"))
    })
}

#[unsafe(export_name = "VipConnectPeerDone")]
extern "C" fn connect_peer_done(vi: Handle, out: Out<abi::ViAttributes>) -> Code {
    guard("VipConnectPeerDone", || {
        let object = VIS.get(vi)?;
        out.check()?;
        let done = object.vi.connect_peer_done();
        out.set(remote(done.map_err(code("VipConnectPeerDone"))?))
    })
}

#[unsafe(export_name = "VipConnectPeerWait")]
extern "C" fn connect_peer_wait(vi: Handle, out: Out<abi::ViAttributes>) -> Code {
    guard("VipConnectPeerWait", || {
        let object = VIS.get(vi)?;
        out.check()?;
        let connected = object.vi.connect_peer_wait();
        out.set(remote(connected.map_err(code("VipConnectPeerWait"))?))
    })
}
