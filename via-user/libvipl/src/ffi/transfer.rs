//! Posting descriptors, and taking them back.

use core::ffi::{c_ulong, c_void};

use vipl::place::Head;
use vipl::{Completion, Queue, Status, VipReturn};

use crate::abi::{self, Code};
use crate::guard::{Outcome, guard, timeout};
use crate::handle::Handle;
use crate::object::VIS;
use crate::pointer::{Context, Out, Place, is_done};

/// A descriptor as the program knows it.
pub(super) fn pointer_to(address: u64) -> abi::Descriptor {
    // It lies in memory that the program registered, whose address was exposed then.
    core::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

fn post(vi: Handle, place: Place, handle: u32, queue: Queue) -> Outcome {
    let posted = VIS.with(vi, |object| object.vi.post_at(queue, place.address(), handle))?;
    posted.map_err(|error| error.code)
}

/// Posts by the place of the VI's queues, which its handle names.
#[inline]
fn post_plain(vi: Handle, place: Place, handle: u32, queue: Queue) -> bool {
    vipl::place::post_plain(vi.index(), vi.0, queue, place.address(), handle).is_some()
}

/// The same of what is not plain; what that cannot do holds the VI.
#[cold]
#[inline(never)]
fn post_otherwise(name: &str, vi: Handle, place: Place, handle: u32, queue: Queue) -> Code {
    if vipl::place::post_at(vi.index(), vi.0, queue, place.address(), handle).is_some() {
        return VipReturn::Success as Code;
    }
    guard(name, || post(vi, place, handle, queue))
}

/// Polls without a lock: whether the oldest descriptor is known, and not done.
#[inline]
fn is_waiting(vi: Handle, out: Out<*mut c_void>, queue: Queue) -> bool {
    let head = vipl::place::head(vi.index(), vi.0, queue);
    // SAFETY: `vipl::place::head` is of a descriptor that is posted, or was a moment ago and is
    // taken in another thread right now.
    head != 0 && !unsafe { is_done(head) } && out.set(core::ptr::null_mut()).is_ok()
}

/// Apart, so that the poll that finds nothing saves no registers for it.
#[inline(never)]
fn done_otherwise(name: &str, vi: Handle, out: Out<*mut c_void>, queue: Queue) -> Code {
    match done_fast(vi, out, queue) {
        Some(code) => code,
        None => guard(name, || done(vi, out, queue)),
    }
}

/// Takes by the place of the VI's queues. None: the long way has to tell.
#[inline]
fn done_fast(vi: Handle, out: Out<*mut c_void>, queue: Queue) -> Option<Code> {
    out.check().ok()?;
    let (address, code) = match vipl::place::take(vi.index(), vi.0, queue)? {
        Head::Done((address, status)) if Status(status).is_error() => {
            (address, VipReturn::DescriptorError)
        }
        Head::Done((address, _)) => (address, VipReturn::Success),
        Head::Empty => (0, VipReturn::DescriptorError),
        // The service handles events.
        Head::NotDone => (0, VipReturn::NotDone),
    };
    out.set(pointer_to(address)).ok()?;
    Some(code as Code)
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
    tell(out, VIS.with(vi, |object| object.vi.poll(queue))?)
}

fn wait(vi: Handle, ms: c_ulong, out: Out<*mut c_void>, queue: Queue) -> Outcome {
    let object = VIS.get(vi)?;
    out.check()?;
    tell(
        out,
        match queue {
            Queue::Send => object.vi.send_wait(timeout(ms)),
            Queue::Recv => object.vi.recv_wait(timeout(ms)),
        },
    )
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
        f(context.pointer(), nic, vi, pointer_to(address));
    };
    let noted = match queue {
        Queue::Send => object.vi.send_notify(handler),
        Queue::Recv => object.vi.recv_notify(handler),
    };
    noted.map_err(|error| error.code)
}

#[unsafe(export_name = "VipPostSend")]
extern "C" fn post_send(vi: Handle, descriptor: Place, handle: u32) -> Code {
    if post_plain(vi, descriptor, handle, Queue::Send) {
        return VipReturn::Success as Code;
    }
    post_otherwise("VipPostSend", vi, descriptor, handle, Queue::Send)
}

#[unsafe(export_name = "VipPostRecv")]
extern "C" fn post_recv(vi: Handle, descriptor: Place, handle: u32) -> Code {
    if post_plain(vi, descriptor, handle, Queue::Recv) {
        return VipReturn::Success as Code;
    }
    post_otherwise("VipPostRecv", vi, descriptor, handle, Queue::Recv)
}

#[unsafe(export_name = "VipSendDone")]
extern "C" fn send_done(vi: Handle, out: Out<*mut c_void>) -> Code {
    if is_waiting(vi, out, Queue::Send) {
        return VipReturn::NotDone as Code;
    }
    done_otherwise("VipSendDone", vi, out, Queue::Send)
}

#[unsafe(export_name = "VipRecvDone")]
extern "C" fn recv_done(vi: Handle, out: Out<*mut c_void>) -> Code {
    if is_waiting(vi, out, Queue::Recv) {
        return VipReturn::NotDone as Code;
    }
    done_otherwise("VipRecvDone", vi, out, Queue::Recv)
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
