//! CLAN: own regions, and who may access them.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use port::DmaMemory;
use port::clan::Cookie;

use crate::clan::abi::{self, Peer};
use crate::clan::fault::{Code, Fault, Result, argument, guard};
use crate::clan::object::{PORTS, PortObject, REGIONS, RegionObject, get, insert};
use crate::handle::Handle;
use crate::pointer::{In, Out, Place};

use super::transfer::pointer_to;

fn region(owner: &Arc<PortObject>, memory: DmaMemory) -> Result<Handle> {
    let number = owner.port.register(&memory)?;
    let inserted =
        insert(&REGIONS, owner, RegionObject { owner: Arc::clone(owner), number, memory });
    inserted.inspect_err(|_| drop(owner.port.deregister(number)))
}

#[unsafe(export_name = "clan_allocate")]
extern "C" fn allocate(
    port: Handle,
    bytes: usize,
    address: Out<*mut c_void>,
    out: Out<Handle>,
) -> c_int {
    guard("clan_allocate", || {
        let owner = get(&PORTS, port, "port")?;
        argument(address.check(), "address")?;
        argument(out.check(), "region")?;
        if bytes == 0 {
            return Err(Fault::invalid("bytes is 0".to_owned()));
        }
        let memory = owner.port.allocate(bytes).map_err(|error| {
            Fault::new(Code::Exhausted, format!("{bytes} bytes cannot be allocated: {error}"))
        })?;
        let start = memory.address();
        let handle = region(&owner, memory)?;
        argument(address.set(pointer_to(start)), "address")?;
        argument(out.set(handle), "region")
    })
}

#[unsafe(export_name = "clan_register")]
extern "C" fn register(port: Handle, address: Place, bytes: usize, out: Out<Handle>) -> c_int {
    guard("clan_register", || {
        let owner = get(&PORTS, port, "port")?;
        argument(out.check(), "region")?;
        let memory = memory_of(address, bytes, "address")?;
        argument(out.set(region(&owner, memory)?), "region")
    })
}

/// Memory of the program that a device may access.
pub(super) fn memory_of(address: Place, bytes: usize, what: &str) -> Result<DmaMemory> {
    if address.is_null() {
        return Err(Fault::invalid(format!("{what} is NULL")));
    }
    let no_range =
        |_| Fault::invalid(format!("{bytes} bytes at {:#x} are no memory", address.address()));
    address.adopt(bytes).map_err(no_range)
}

/// Why a revocation fails.
fn not_confirmed(error: port::Error) -> Fault {
    match error {
        port::Error::Device(_) => Fault::new(Code::Timeout, error.to_string()),
        other => other.into(),
    }
}

#[unsafe(export_name = "clan_deregister")]
extern "C" fn deregister(handle: Handle) -> c_int {
    guard("clan_deregister", || {
        let object = get(&REGIONS, handle, "region")?;
        object.owner.clear_tripwires(|tripwire| tripwire.region == handle);
        object.owner.port.deregister(object.number).map_err(not_confirmed)?;
        object.owner.disown(handle);
        // Another thread may have closed the port meanwhile.
        drop(REGIONS.remove(handle));
        // Those that were set meanwhile were cleared with the region.
        object.owner.forget_tripwires(|tripwire| tripwire.region == handle);
        Ok(())
    })
}

#[unsafe(export_name = "clan_open_region")]
extern "C" fn open_region(handle: Handle, to: In<Peer>, rights: u32, out: Out<u64>) -> c_int {
    guard("clan_open_region", || {
        let object = get(&REGIONS, handle, "region")?;
        argument(out.check(), "cookie")?;
        let to = argument(to.get(), "to")?.get()?;
        let rights = abi::accesses(rights, abi::READ | abi::WRITE)?;
        let cookie = object.owner.port.open(object.number, &to, rights)?;
        argument(out.set(cookie.to_bits()), "cookie")
    })
}

/// A cookie of the header.
pub(super) fn cookie_of(bits: u64) -> Result<Cookie> {
    let no_cookie = || Fault::invalid(format!("{bits:#x} is no cookie: bits 18 to 31 are not 0"));
    Cookie::from_bits(bits).ok_or_else(no_cookie)
}

#[unsafe(export_name = "clan_revoke")]
extern "C" fn revoke(port: Handle, cookie: u64) -> c_int {
    guard("clan_revoke", || {
        let owner = get(&PORTS, port, "port")?;
        owner.port.revoke(cookie_of(cookie)?).map_err(not_confirmed)
    })
}
