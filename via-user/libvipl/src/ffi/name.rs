//! The name service.

use core::ffi::c_ulong;

use vipl::VipReturn;

use crate::abi::{self, Code};
use crate::guard::guard;
use crate::handle::Handle;
use crate::object::NICS;
use crate::pointer::{In, Out, Text};

use super::connection::read;

#[unsafe(export_name = "VipNSInit")]
extern "C" fn ns_init(nic: Handle, hosts: Text) -> Code {
    guard("VipNSInit", || {
        let _nic = NICS.get(nic)?;
        let _hosts = hosts.optional();
        Err(VipReturn::ErrorNotSupported)
    })
}

#[unsafe(export_name = "VipNSGetHostByName")]
extern "C" fn ns_get_host_by_name(
    nic: Handle,
    name: Text,
    out: Out<abi::NetAddress>,
    _index: c_ulong,
) -> Code {
    guard("VipNSGetHostByName", || {
        let _nic = NICS.get(nic)?;
        let _name = name.get()?;
        out.check()?;
        Err(VipReturn::ErrorNotSupported)
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
        let _nic = NICS.get(nic)?;
        let _address = read(address)?;
        out.check()?;
        length.check()?;
        Err(VipReturn::ErrorNotSupported)
    })
}

#[unsafe(export_name = "VipNSShutdown")]
extern "C" fn ns_shutdown(nic: Handle) -> Code {
    guard("VipNSShutdown", || {
        let _nic = NICS.get(nic)?;
        Err(VipReturn::ErrorNotSupported)
    })
}
