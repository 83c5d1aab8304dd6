//! Completion queues.

use core::ffi::{c_int, c_ulong, c_void};
use std::sync::Arc;

use vipl::{CqEntry, Queue, VipReturn};

use crate::abi::{self, Code};
use crate::guard::{Outcome, code, guard, timeout};
use crate::handle::Handle;
use crate::object::{CQS, CqObject, NICS};
use crate::pointer::{Context, Out};

use super::vi::handle_of;

fn entries(count: c_ulong) -> Result<u32, VipReturn> {
    u32::try_from(count).map_err(|_| VipReturn::InvalidParameter)
}

fn tell(vi: Out<Handle>, recv: Out<c_int>, entry: &CqEntry) -> Outcome {
    vi.set(handle_of(&entry.vi))?;
    recv.set(c_int::from(entry.queue == Queue::Recv))
}

#[unsafe(export_name = "VipCreateCQ")]
extern "C" fn create_cq(nic: Handle, count: c_ulong, out: Out<Handle>) -> Code {
    guard("VipCreateCQ", || {
        let nic = NICS.get(nic)?;
        out.check()?;
        let cq = nic.nic.create_cq(entries(count)?).map_err(code("VipCreateCQ"))?;
        let object = CqObject { cq, nic: Arc::clone(&nic) };
        let handle = CQS.insert_with(|_| Ok(Arc::new(object)))?;
        nic.adopt(handle)?;
        out.set(handle)
    })
}

#[unsafe(export_name = "VipDestroyCQ")]
extern "C" fn destroy_cq(cq: Handle) -> Code {
    guard("VipDestroyCQ", || {
        let object = CQS.get(cq)?;
        object.cq.destroy().map_err(code("VipDestroyCQ"))?;
        CQS.remove(cq)?;
        object.nic.disown(cq);
        Ok(())
    })
}

#[unsafe(export_name = "VipResizeCQ")]
extern "C" fn resize_cq(cq: Handle, count: c_ulong) -> Code {
    guard("VipResizeCQ", || CQS.get(cq)?.cq.resize(entries(count)?).map_err(code("VipResizeCQ")))
}

#[unsafe(export_name = "VipCQDone")]
extern "C" fn cq_done(cq: Handle, vi: Out<Handle>, recv: Out<c_int>) -> Code {
    guard("VipCQDone", || {
        vi.check()?;
        recv.check()?;
        // The service handles events.
        tell(vi, recv, &CQS.with(cq, |object| object.cq.poll())??)
    })
}

#[unsafe(export_name = "VipCQWait")]
extern "C" fn cq_wait(cq: Handle, ms: c_ulong, vi: Out<Handle>, recv: Out<c_int>) -> Code {
    guard("VipCQWait", || {
        let object = CQS.get(cq)?;
        vi.check()?;
        recv.check()?;
        tell(vi, recv, &object.cq.wait(timeout(ms))?)
    })
}

#[unsafe(export_name = "VipCQNotify")]
extern "C" fn cq_notify(cq: Handle, context: *mut c_void, f: abi::CqCallback) -> Code {
    guard("VipCQNotify", || {
        let object = CQS.get(cq)?;
        let f = f.ok_or(VipReturn::InvalidParameter)?;
        let (nic, context) = (object.nic.handle, Context::new(context));
        let noted = object.cq.notify(move |entry: CqEntry| {
            let recv = c_int::from(entry.queue == Queue::Recv);
            f(context.pointer(), nic, handle_of(&entry.vi), recv);
        });
        noted.map_err(code("VipCQNotify"))
    })
}
