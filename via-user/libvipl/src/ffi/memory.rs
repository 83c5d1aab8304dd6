//! Protection tags and registered memory.

use core::ffi::{c_int, c_ulong};
use std::sync::Arc;

use port::sync::lock;
use vipl::{MemAttributes, VipReturn};

use crate::abi::{self, Code};
use crate::guard::{code, guard};
use crate::handle::Handle;
use crate::object::{NICS, NicObject, RegionObject, TAGS, TagObject};
use crate::pointer::{In, Out, Place};

#[unsafe(export_name = "VipCreatePtag")]
extern "C" fn create_ptag(nic: Handle, out: Out<Handle>) -> Code {
    guard("VipCreatePtag", || {
        let nic = NICS.get(nic)?;
        out.check()?;
        let tag = nic.create_tag().map_err(code("VipCreatePtag"))?;
        let handle = TAGS.insert_with(|_| Ok(Arc::new(TagObject { tag, nic: nic.handle })))?;
        nic.adopt(handle)?;
        out.set(handle)
    })
}

#[unsafe(export_name = "VipDestroyPtag")]
extern "C" fn destroy_ptag(nic: Handle, tag: Handle) -> Code {
    guard("VipDestroyPtag", || {
        let nic = NICS.get(nic)?;
        let object = TAGS.get(tag)?;
        if object.nic != nic.handle {
            return Err(VipReturn::InvalidParameter);
        }
        nic.nic.destroy_ptag(object.tag).map_err(code("VipDestroyPtag"))?;
        TAGS.remove(tag)?;
        nic.disown(tag);
        Ok(())
    })
}

fn attributes(nic: &NicObject, given: abi::MemAttributes) -> Result<MemAttributes, VipReturn> {
    Ok(MemAttributes {
        ptag: nic.tag(given.ptag)?,
        enable_rdma_write: given.enable_rdma_write != 0,
        enable_rdma_read: given.enable_rdma_read != 0,
    })
}

#[unsafe(export_name = "VipRegisterMem")]
extern "C" fn register_mem(
    nic: Handle,
    address: Place,
    length: c_ulong,
    given: In<abi::MemAttributes>,
    out: Out<u32>,
) -> Code {
    guard("VipRegisterMem", || {
        let nic = NICS.get(nic)?;
        let given = given.get()?;
        out.check()?;
        // The NIC counts a region's bytes in 32 bits.
        let length = u32::try_from(length).map_err(|_| VipReturn::InvalidParameter)?;
        let length = usize::try_from(length).map_err(|_| VipReturn::InvalidParameter)?;
        let memory = address.adopt(length)?;
        let attributes = attributes(&nic, given)?;
        let registered = nic.nic.register_mem(&memory, attributes);
        let region = registered.map_err(code("VipRegisterMem"))?;
        let handle = region.handle();
        lock(&nic.regions).insert(handle, RegionObject { region, tag: given.ptag });
        out.set(handle)
    })
}

#[unsafe(export_name = "VipDeregisterMem")]
extern "C" fn deregister_mem(nic: Handle, address: Place, handle: u32) -> Code {
    guard("VipDeregisterMem", || {
        let nic = NICS.get(nic)?;
        let found = nic.region(address.address(), handle)?;
        if found.region.memory().address() != address.address() {
            return Err(VipReturn::InvalidParameter);
        }
        // The program may give the memory away, and these are still to be completed in it.
        if nic.nic.is_posted_in(&found.region) {
            return Err(VipReturn::ErrorResource);
        }
        nic.nic.deregister_mem(&found.region).map_err(code("VipDeregisterMem"))?;
        lock(&nic.regions).remove(&handle);
        Ok(())
    })
}

#[unsafe(export_name = "VipQueryMem")]
extern "C" fn query_mem(
    nic: Handle,
    address: Place,
    handle: u32,
    out: Out<abi::MemAttributes>,
) -> Code {
    guard("VipQueryMem", || {
        let nic = NICS.get(nic)?;
        out.check()?;
        let found = nic.region(address.address(), handle)?;
        let attributes = nic.nic.query_mem(&found.region).map_err(code("VipQueryMem"))?;
        out.set(abi::MemAttributes {
            ptag: found.tag,
            enable_rdma_write: c_int::from(attributes.enable_rdma_write),
            enable_rdma_read: c_int::from(attributes.enable_rdma_read),
        })
    })
}

#[unsafe(export_name = "VipSetMemAttributes")]
extern "C" fn set_mem_attributes(
    nic: Handle,
    address: Place,
    handle: u32,
    given: In<abi::MemAttributes>,
) -> Code {
    guard("VipSetMemAttributes", || {
        let nic = NICS.get(nic)?;
        let given = given.get()?;
        let found = nic.region(address.address(), handle)?;
        let attributes = attributes(&nic, given)?;
        let changed = nic.nic.set_mem_attributes(&found.region, attributes);
        changed.map_err(code("VipSetMemAttributes"))?;
        if let Some(region) = lock(&nic.regions).get_mut(&handle) {
            region.tag = given.ptag;
        }
        Ok(())
    })
}
