//! NICs: open, close, query, errors.

use core::ffi::{c_char, c_int, c_ulong, c_void};
use std::sync::Arc;

use port::sync::lock;
use vipl::waiting::SPIN_VARIABLE;
use vipl::{ErrorDescriptor, Nic, VipReturn, Waiting};

use crate::abi::{self, Code};
use crate::guard::{code, guard, tell};
use crate::handle::Handle;
use crate::object::{NICS, NicObject, Nodes};
use crate::pointer::{Context, Out, Text};
use crate::service;

#[unsafe(export_name = "VipOpenNic")]
extern "C" fn open_nic(name: Text, out: Out<Handle>) -> Code {
    guard("VipOpenNic", || {
        out.check()?;
        let name = name.get()?;
        let port = device::open(&name).map_err(|error| {
            tell(&format!("VipOpenNic: {error}"));
            match error {
                device::Error::Malformed { .. } => VipReturn::InvalidParameter,
                _ => VipReturn::ErrorResource,
            }
        })?;
        let waiting = Waiting::from_environment().unwrap_or_else(|value| {
            tell(&format!("{SPIN_VARIABLE}={value} is neither microseconds nor `inf`: ignored"));
            Waiting::default()
        });
        let handle = NICS.insert_with(|handle| {
            let nic = Arc::new(NicObject::new(Nic::open_with(port, waiting), handle));
            service::serve(&nic);
            Ok(nic)
        })?;
        out.set(handle)
    })
}

#[unsafe(export_name = "VipCloseNic")]
extern "C" fn close_nic(nic: Handle) -> Code {
    guard("VipCloseNic", || {
        let object = NICS.remove(nic)?;
        object.close();
        drop(object);
        // The device is released with the last one who has it.
        service::settle();
        Ok(())
    })
}

#[unsafe(export_name = "VipQueryNic")]
extern "C" fn query_nic(nic: Handle, out: Out<abi::NicAttributes>) -> Code {
    guard("VipQueryNic", || {
        let nic = NICS.get(nic)?;
        out.check()?;
        let a = nic.nic.query();
        let mut name = [0; abi::NAME_BYTES];
        // The last byte stays 0.
        for (place, byte) in name[..abi::NAME_BYTES - 1].iter_mut().zip(a.name.bytes()) {
            *place = c_char::from_ne_bytes([byte]);
        }
        out.set(abi::NicAttributes {
            name,
            hardware_version: a.hardware_version.into(),
            provider_version: a.provider_version.into(),
            nic_address_len: u16::try_from(nic.address.len()).unwrap_or(u16::MAX),
            local_nic_address: nic.address.as_ptr(),
            thread_safe: c_int::from(a.thread_safe),
            max_discriminator_len: a.max_discriminator_len,
            max_register_bytes: a.max_register_bytes,
            max_register_regions: a.max_register_regions.into(),
            max_register_block_bytes: a.max_register_block_bytes,
            max_vi: a.max_vi.into(),
            max_descriptors_per_queue: a.max_descriptors_per_queue.into(),
            max_segments_per_desc: a.max_segments_per_desc.into(),
            max_cq: a.max_cq.into(),
            max_cq_entries: a.max_cq_entries.into(),
            max_transfer_size: a.max_transfer_size.into(),
            native_mtu: a.native_mtu.into(),
            max_ptags: a.max_ptags.into(),
            reliability_level_support: a.reliability_level_support,
            rdma_read_support: a.rdma_read_support,
        })
    })
}

#[unsafe(export_name = "VipErrorCallback")]
extern "C" fn error_callback(nic: Handle, context: *mut c_void, f: abi::ErrorHandler) -> Code {
    guard("VipErrorCallback", || {
        let object = NICS.get(nic)?;
        let context = Context::new(context);
        let handler = f.map(|f| -> vipl::ErrorHandler {
            Arc::new(move |error: &ErrorDescriptor| {
                let mut descriptor = describe(nic, error);
                f(context.pointer(), &raw mut descriptor);
            })
        });
        object.nic.error_callback(handler);
        Ok(())
    })
}

fn describe(nic: Handle, error: &ErrorDescriptor) -> abi::ErrorDescriptor {
    let descriptor = error.descriptor.as_ref();
    let address = descriptor.map_or(0, vipl::Descriptor::address);
    abi::ErrorDescriptor {
        nic,
        vi: error.vi.as_ref().map_or(Handle::NULL, super::vi::handle_of),
        cq: Handle::NULL,
        descriptor: super::transfer::pointer_to(address),
        op_code: error.operation.into(),
        resource_code: error.resource as u32,
        error_code: error.code as u32,
    }
}

#[unsafe(export_name = "VipQuerySystemManagementInfo")]
extern "C" fn query_system_management_info(
    nic: Handle,
    kind: c_ulong,
    out: Out<abi::AutodiscoveryList>,
) -> Code {
    guard("VipQuerySystemManagementInfo", || {
        let nic = NICS.get(nic)?;
        out.check()?;
        let kind = u32::try_from(kind).map_err(|_| VipReturn::InvalidParameter)?;
        let found = nic.nic.query_management(kind);
        let found = found.map_err(code("VipQuerySystemManagementInfo"))?;
        let nodes = Nodes::new(&found.addresses);
        out.set(abi::AutodiscoveryList {
            number_of_hops: found.number_of_hops.into(),
            addresses: nodes.pointers(),
            count: nodes.len() as c_ulong,
        })?;
        *lock(&nic.nodes) = nodes;
        Ok(())
    })
}
