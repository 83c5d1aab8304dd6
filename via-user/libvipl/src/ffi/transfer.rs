//! Posting descriptors, and taking them back.

use core::ffi::{c_ulong, c_void};
use core::sync::atomic::Ordering;

use vipl::{Completion, Queue, VipReturn};

use crate::abi::{self, Code};
use crate::guard::{Outcome, guard, timeout};
use crate::handle::{Handle, Hints};
use crate::object::VIS;
use crate::pointer::{Context, Out, Place, is_done};

/// A descriptor as the program knows it.
pub(super) fn pointer_to(address: u64) -> abi::Descriptor {
    // It lies in memory that the program registered, whose address was exposed then.
    core::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

fn post(vi: Handle, place: Place, handle: u32, queue: Queue) -> Outcome {
    VIS.with(vi, |object, heads| {
        let descriptor = object.nic.descriptor(place.address(), handle)?;
        let posted = match queue {
            Queue::Send => object.vi.post_send(&descriptor),
            Queue::Recv => object.vi.post_recv(&descriptor),
        };
        forget_head(heads, queue);
        posted.map_err(|error| error.code)
    })?
}

fn tell(out: Out<*mut c_void>, completion: Completion) -> Outcome {
    match completion {
        Ok(descriptor) => out.set(pointer_to(descriptor.address())),
        Err(error) => {
            let descriptor = error.descriptor.as_ref();
            out.set(pointer_to(descriptor.map_or(0, vipl::Descriptor::address)))?;
            Err(error.code)
        }
    }
}

fn done(vi: Handle, out: Out<*mut c_void>, queue: Queue) -> Outcome {
    out.check()?;
    // The service handles events.
    let completion = VIS.with(vi, |object, heads| {
        let completion = object.vi.poll(queue);
        forget_head(heads, queue);
        if matches!(&completion, Err(error) if error.code == VipReturn::NotDone) {
            let head = object.vi.head_address(queue).and_then(|head| usize::try_from(head).ok());
            heads[queue as usize].store(head.unwrap_or(0), Ordering::Release);
        }
        completion
    })?;
    tell(out, completion)
}

/// The hints of a VI are the oldest descriptors of its queues, where a poll has found them not done.
/// Whoever takes a descriptor forgets the hint before the program gets it back, so a hint is always
/// of a descriptor that is posted, or done.
fn forget_head(heads: &Hints, queue: Queue) {
    heads[queue as usize].store(0, Ordering::Release);
}

/// Polls without a lock: whether the oldest descriptor is known, and not done.
#[inline]
fn is_waiting(vi: Handle, out: Out<*mut c_void>, queue: Queue) -> bool {
    let head = VIS.hints(vi).map_or(0, |heads| heads[queue as usize].load(Ordering::Acquire));
    // SAFETY: `forget_head` says why the descriptor is posted still.
    head != 0 && !unsafe { is_done(head) } && out.set(core::ptr::null_mut()).is_ok()
}

fn wait(vi: Handle, ms: c_ulong, out: Out<*mut c_void>, queue: Queue) -> Outcome {
    let object = VIS.get(vi)?;
    out.check()?;
    let completion = match queue {
        Queue::Send => object.vi.send_wait(timeout(ms)),
        Queue::Recv => object.vi.recv_wait(timeout(ms)),
    };
    // Of a VI that is gone there is none.
    let _ = VIS.with(vi, |_, heads| forget_head(heads, queue));
    tell(out, completion)
}

fn notify(vi: Handle, context: *mut c_void, f: abi::ViCallback, queue: Queue) -> Outcome {
    let object = VIS.get(vi)?;
    let f = f.ok_or(VipReturn::InvalidParameter)?;
    let (nic, context) = (object.nic.handle, Context::new(context));
    let handler = move |completion: Completion| {
        let descriptor = match &completion {
            Ok(descriptor) => Some(descriptor),
            Err(error) => error.descriptor.as_ref(),
        };
        let address = descriptor.map_or(0, vipl::Descriptor::address);
        let _ = VIS.with(vi, |_, heads| forget_head(heads, queue));
        f(context.pointer(), nic, vi, pointer_to(address));
    };
    let noted = match queue {
        Queue::Send => object.vi.send_notify(handler),
        Queue::Recv => object.vi.recv_notify(handler),
    };
    noted.map_err(|error| error.code)
}

/// Apart, so that the poll that finds nothing saves no registers for it.
#[inline(never)]
fn done_slowly(name: &str, vi: Handle, out: Out<*mut c_void>, queue: Queue) -> Code {
    guard(name, || done(vi, out, queue))
}

#[unsafe(export_name = "VipPostSend")]
extern "C" fn post_send(vi: Handle, descriptor: Place, handle: u32) -> Code {
    guard("VipPostSend", || post(vi, descriptor, handle, Queue::Send))
}

#[unsafe(export_name = "VipPostRecv")]
extern "C" fn post_recv(vi: Handle, descriptor: Place, handle: u32) -> Code {
    guard("VipPostRecv", || post(vi, descriptor, handle, Queue::Recv))
}

#[unsafe(export_name = "VipSendDone")]
extern "C" fn send_done(vi: Handle, out: Out<*mut c_void>) -> Code {
    if is_waiting(vi, out, Queue::Send) {
        return VipReturn::NotDone as Code;
    }
    done_slowly("VipSendDone", vi, out, Queue::Send)
}

#[unsafe(export_name = "VipRecvDone")]
extern "C" fn recv_done(vi: Handle, out: Out<*mut c_void>) -> Code {
    if is_waiting(vi, out, Queue::Recv) {
        return VipReturn::NotDone as Code;
    }
    done_slowly("VipRecvDone", vi, out, Queue::Recv)
}

#[unsafe(export_name = "VipSendWait")]
extern "C" fn send_wait(vi: Handle, ms: c_ulong, out: Out<*mut c_void>) -> Code {
    guard("VipSendWait", || wait(vi, ms, out, Queue::Send))
}

#[unsafe(export_name = "VipRecvWait")]
extern "C" fn recv_wait(vi: Handle, ms: c_ulong, out: Out<*mut c_void>) -> Code {
    guard("VipRecvWait", || wait(vi, ms, out, Queue::Recv))
}

#[unsafe(export_name = "VipSendNotify")]
extern "C" fn send_notify(vi: Handle, context: *mut c_void, f: abi::ViCallback) -> Code {
    guard("VipSendNotify", || notify(vi, context, f, Queue::Send))
}

#[unsafe(export_name = "VipRecvNotify")]
extern "C" fn recv_notify(vi: Handle, context: *mut c_void, f: abi::ViCallback) -> Code {
    guard("VipRecvNotify", || notify(vi, context, f, Queue::Recv))
}
