//! The name service.

use core::ffi::c_ulong;
use std::path::PathBuf;

use vipl::VipReturn;

use crate::abi::{self, Code};
use crate::guard::{code, guard, tell};
use crate::handle::Handle;
use crate::object::NICS;
use crate::pointer::{In, Out, Text};

use super::connection::{read, write};

#[unsafe(export_name = "VipNSInit")]
extern "C" fn ns_init(nic: Handle, hosts: Text) -> Code {
    guard("VipNSInit", || {
        let nic = NICS.get(nic)?;
        let hosts = hosts.optional().map(PathBuf::from);
        nic.nic.ns_init(hosts.as_deref()).map_err(|error| {
            tell(&format!("VipNSInit: {error}"));
            error.code
        })
    })
}

#[unsafe(export_name = "VipNSGetHostByName")]
extern "C" fn ns_get_host_by_name(
    nic: Handle,
    name: Text,
    out: Out<abi::NetAddress>,
    index: c_ulong,
) -> Code {
    guard("VipNSGetHostByName", || {
        let nic = NICS.get(nic)?;
        let name = name.get()?;
        let room = usize::from(out.get()?.host_len);
        // There are never that many.
        let index = u32::try_from(index).map_err(|_| VipReturn::ErrorNameService)?;
        let found = nic.nic.ns_host_by_name(&name, index);
        let found = found.map_err(code("VipNSGetHostByName"))?;
        // Programs of old leave the length at 0, and have room.
        if room != 0 && room < found.host.len() {
            return Err(VipReturn::InvalidParameter);
        }
        write(out, &found)
    })
}

#[unsafe(export_name = "VipNSGetHostByAddr")]
extern "C" fn ns_get_host_by_addr(
    nic: Handle,
    address: In<abi::NetAddress>,
    out: Out<u8>,
    length: Out<c_ulong>,
) -> Code {
    guard("VipNSGetHostByAddr", || {
        let nic = NICS.get(nic)?;
        let address = read(address)?;
        out.check()?;
        let room = length.get()?;
        let found = nic.nic.ns_host_by_addr(&address);
        let mut name = found.map_err(code("VipNSGetHostByAddr"))?.into_bytes();
        name.push(0);
        length.set(name.len() as c_ulong)?;
        if room < name.len() as c_ulong {
            return Err(VipReturn::InvalidParameter);
        }
        out.set_bytes(0, &name)
    })
}

#[unsafe(export_name = "VipNSShutdown")]
extern "C" fn ns_shutdown(nic: Handle) -> Code {
    guard("VipNSShutdown", || NICS.get(nic)?.nic.ns_shutdown().map_err(code("VipNSShutdown")))
}
