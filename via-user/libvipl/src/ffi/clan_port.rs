//! CLAN: ports, nodes, messages, and what went wrong.

use core::ffi::{c_char, c_int};
use std::sync::Arc;

use crate::clan::abi::{self, Attributes, MESSAGE_BYTES, Peer};
use crate::clan::fault::{self, Code, Fault, argument, guard};
use crate::clan::object::{PORTS, PortObject, get, remove};
use crate::handle::Handle;
use crate::pointer::{In, Out, Text};

/// Why a device cannot be opened.
fn cannot_open(error: &device::Error) -> Fault {
    use device::Error;
    let code = match error {
        Error::Malformed { .. } | Error::Unknown { .. } | Error::NoClan { .. } => Code::Invalid,
        Error::Port(port::Error::Exhausted { .. }) => Code::Exhausted,
        _ => Code::Device,
    };
    Fault::new(code, error.to_string())
}

#[unsafe(export_name = "clan_open")]
extern "C" fn open(device: Text, out: Out<Handle>) -> c_int {
    guard("clan_open", || {
        argument(out.check(), "port")?;
        let name = argument(device.get(), "device")?;
        let port = device::open_clan(&name).map_err(|error| cannot_open(&error))?;
        let inserted = PORTS.insert_with(|_| Ok(Arc::new(PortObject::new(port))));
        let too_many = |_| Fault::new(Code::Exhausted, "too many ports".to_owned());
        argument(out.set(inserted.map_err(too_many)?), "port")
    })
}

#[unsafe(export_name = "clan_close")]
extern "C" fn close(port: Handle) -> c_int {
    guard("clan_close", || {
        remove(&PORTS, port, "port")?.close();
        Ok(())
    })
}

#[unsafe(export_name = "clan_query")]
extern "C" fn query(port: Handle, out: Out<Attributes>) -> c_int {
    guard("clan_query", || {
        let object = get(&PORTS, port, "port")?;
        argument(out.check(), "attributes")?;
        let known = object.port.attributes();
        let name = object.port.name_of_host(&known.own.host).unwrap_or_default();
        let attributes = Attributes {
            name: abi::text(&name),
            own: Peer::of(&known.own)?,
            regions: known.regions,
            tripwires: known.tripwires,
            queues: known.queues,
            maps_all: known.maps_all.into(),
        };
        argument(out.set(attributes), "attributes")
    })
}

#[unsafe(export_name = "clan_find")]
extern "C" fn find(port: Handle, name: Text, domain: u16, out: Out<Peer>) -> c_int {
    guard("clan_find", || {
        let object = get(&PORTS, port, "port")?;
        argument(out.check(), "peer")?;
        let name = argument(name.get(), "name")?;
        let no_node = || Fault::new(Code::NotReachable, format!("there is no node '{name}'"));
        let host = object.port.host_of_name(&name).ok_or_else(no_node)?;
        argument(out.set(Peer::of(&port::clan::ClanPeer { host, domain })?), "peer")
    })
}

#[unsafe(export_name = "clan_name")]
extern "C" fn name(port: Handle, peer: In<Peer>, out: Out<u8>, room: usize) -> c_int {
    guard("clan_name", || {
        let object = get(&PORTS, port, "port")?;
        argument(out.check(), "name")?;
        let peer = argument(peer.get(), "peer")?.get()?;
        let no_name = || Fault::new(Code::NotReachable, "the network has no such node".to_owned());
        let mut name = object.port.name_of_host(&peer.host).ok_or_else(no_name)?.into_bytes();
        name.push(0);
        if name.len() > room {
            return Err(Fault::invalid(format!(
                "room is {room}, and the name needs {}",
                name.len()
            )));
        }
        argument(out.set_bytes(0, &name), "name")
    })
}

#[unsafe(export_name = "clan_discover")]
extern "C" fn discover(port: Handle, peers: Out<Peer>, count: Out<usize>) -> c_int {
    guard("clan_discover", || {
        let object = get(&PORTS, port, "port")?;
        let room = argument(count.get(), "count")?;
        if room > 0 {
            argument(peers.check(), "peers")?;
        }
        let hosts = object.port.discover()?;
        for (at, host) in hosts.iter().take(room).enumerate() {
            let peer = Peer::of(&port::clan::ClanPeer { host: host.clone(), domain: 0 })?;
            argument(peers.set_at(at, peer), "peers")?;
        }
        argument(count.set(hosts.len()), "count")
    })
}

#[unsafe(export_name = "clan_send_message")]
extern "C" fn send_message(port: Handle, to: In<Peer>, message: In<u8>, length: usize) -> c_int {
    guard("clan_send_message", || {
        let object = get(&PORTS, port, "port")?;
        let to = argument(to.get(), "to")?.get()?;
        if !(1..=MESSAGE_BYTES).contains(&length) {
            return Err(Fault::invalid(format!("length is {length}: 1 to {MESSAGE_BYTES}")));
        }
        let mut bytes = argument(message.bytes(0, length), "message")?;
        bytes.resize(MESSAGE_BYTES, 0);
        let message = bytes.try_into().map_err(|_| Fault::invalid("message".to_owned()))?;
        Ok(object.port.send_message(&to, &message)?)
    })
}

#[unsafe(export_name = "clan_code_name")]
extern "C" fn code_name(code: c_int) -> *const c_char {
    fault::name(code).as_ptr()
}

#[unsafe(export_name = "clan_error_text")]
extern "C" fn error_text() -> *const c_char {
    fault::last_text()
}
