//! VIs: create, destroy, query.

use core::ffi::{c_int, c_uint, c_ulong};
use std::sync::{Arc, Mutex};

use port::sync::lock;
use vipl::{
    Cq, DataTransfer, Extensions, Reliability, RemoteViAttributes, Vi, ViAttributes, VipReturn,
};

use crate::abi::{self, Code};
use crate::guard::{code, guard};
use crate::handle::Handle;
use crate::object::{CQS, NICS, NicObject, VIS, ViObject};
use crate::pointer::{In, Out};

/// The handle of a VI that was made here.
pub(super) fn handle_of(vi: &Vi) -> Handle {
    Handle(usize::try_from(vi.user_data()).unwrap_or(0))
}

fn attributes(nic: &NicObject, given: abi::ViAttributes) -> Result<ViAttributes, VipReturn> {
    let levels = [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];
    let level = levels.into_iter().find(|level| *level as u16 == given.reliability_level);
    Ok(ViAttributes {
        reliability: level.ok_or(VipReturn::InvalidReliabilityLevel)?,
        max_transfer_size: u32::try_from(given.max_transfer_size)
            .map_err(|_| VipReturn::InvalidMtu)?,
        qos: given.qos as u64,
        ptag: nic.tag(given.ptag)?,
        enable_rdma_write: given.enable_rdma_write != 0,
        enable_rdma_read: given.enable_rdma_read != 0,
    })
}

/// The attributes of the other side's VI, for a program.
pub(super) fn remote(a: RemoteViAttributes) -> abi::ViAttributes {
    abi::ViAttributes {
        reliability_level: a.reliability as u16,
        max_transfer_size: c_ulong::from(a.max_transfer_size),
        qos: usize::try_from(a.qos).unwrap_or(usize::MAX),
        ptag: Handle::NULL,
        enable_rdma_write: c_int::from(a.enable_rdma_write),
        enable_rdma_read: c_int::from(a.enable_rdma_read),
    }
}

#[unsafe(export_name = "VipCreateVi")]
extern "C" fn create_vi(
    nic: Handle,
    given: In<abi::ViAttributes>,
    send_cq: Handle,
    recv_cq: Handle,
    out: Out<Handle>,
) -> Code {
    guard("VipCreateVi", || {
        let nic = NICS.get(nic)?;
        let given = given.get()?;
        out.check()?;
        let queue = |handle: Handle| -> Result<Option<Cq>, VipReturn> {
            if handle.is_null() {
                return Ok(None);
            }
            let object = CQS.get(handle)?;
            let own = object.nic.handle == nic.handle;
            if own { Ok(Some(object.cq.clone())) } else { Err(VipReturn::InvalidParameter) }
        };
        let (send, recv) = (queue(send_cq)?, queue(recv_cq)?);
        let attributes = attributes(&nic, given)?;
        let created = nic.nic.create_vi(attributes, send.as_ref(), recv.as_ref());
        let vi = created.map_err(code("VipCreateVi"))?;
        // The handle leads to the work queues.
        let handle = VIS.insert_at(vi.slot(), |handle| {
            vi.set_user_data(handle.0 as u64);
            vi.set_handle(handle.0);
            let (nic, tag) = (Arc::clone(&nic), Mutex::new(given.ptag));
            Ok(Arc::new(ViObject { vi, nic, tag }))
        })?;
        nic.adopt(handle)?;
        out.set(handle)
    })
}

#[unsafe(export_name = "VipDestroyVi")]
extern "C" fn destroy_vi(vi: Handle) -> Code {
    guard("VipDestroyVi", || {
        let object = VIS.get(vi)?;
        object.vi.destroy().map_err(code("VipDestroyVi"))?;
        VIS.remove(vi)?;
        object.nic.disown(vi);
        Ok(())
    })
}

#[unsafe(export_name = "VipQueryVi")]
extern "C" fn query_vi(
    vi: Handle,
    state: Out<c_uint>,
    out: Out<abi::ViAttributes>,
    send_empty: Out<c_int>,
    recv_empty: Out<c_int>,
) -> Code {
    guard("VipQueryVi", || {
        let object = VIS.get(vi)?;
        state.check()?;
        out.check()?;
        send_empty.check()?;
        recv_empty.check()?;
        let query = object.vi.query();
        let a = query.attributes;
        state.set(query.state as c_uint)?;
        send_empty.set(c_int::from(query.send_queue_empty))?;
        recv_empty.set(c_int::from(query.recv_queue_empty))?;
        out.set(abi::ViAttributes {
            reliability_level: a.reliability as u16,
            max_transfer_size: c_ulong::from(a.max_transfer_size),
            qos: usize::try_from(a.qos).unwrap_or(usize::MAX),
            ptag: *lock(&object.tag),
            enable_rdma_write: c_int::from(a.enable_rdma_write),
            enable_rdma_read: c_int::from(a.enable_rdma_read),
        })
    })
}

#[unsafe(export_name = "VipSetViAttributes")]
extern "C" fn set_vi_attributes(vi: Handle, given: In<abi::ViAttributes>) -> Code {
    guard("VipSetViAttributes", || {
        let object = VIS.get(vi)?;
        let given = given.get()?;
        let attributes = attributes(&object.nic, given)?;
        object.vi.set_attributes(attributes).map_err(code("VipSetViAttributes"))?;
        *lock(&object.tag) = given.ptag;
        Ok(())
    })
}

/// Kinds of transfer by their numbers in the header.
const TRANSFERS: [DataTransfer; 3] = [DataTransfer::Dynamic, DataTransfer::Pio, DataTransfer::Dma];

#[unsafe(export_name = "VipSetViExtensions")]
extern "C" fn set_vi_extensions(vi: Handle, given: In<abi::ViExtensions>) -> Code {
    guard("VipSetViExtensions", || {
        let object = VIS.get(vi)?;
        let given = given.get()?;
        let transfer = usize::try_from(given.transfer).ok().and_then(|at| TRANSFERS.get(at));
        let extensions = Extensions {
            defer_send: given.defer_send != 0,
            split_receive: given.split_receive != 0,
            transfer: *transfer.ok_or(VipReturn::InvalidParameter)?,
        };
        object.vi.set_extensions(extensions).map_err(code("VipSetViExtensions"))
    })
}

#[unsafe(export_name = "VipQueryViExtensions")]
extern "C" fn query_vi_extensions(vi: Handle, out: Out<abi::ViExtensions>) -> Code {
    guard("VipQueryViExtensions", || {
        let object = VIS.get(vi)?;
        out.check()?;
        let found = object.vi.extensions();
        let transfer = TRANSFERS.iter().position(|transfer| *transfer == found.transfer);
        out.set(abi::ViExtensions {
            defer_send: c_int::from(found.defer_send),
            split_receive: c_int::from(found.split_receive),
            transfer: transfer.unwrap_or(0) as c_ulong,
        })
    })
}
