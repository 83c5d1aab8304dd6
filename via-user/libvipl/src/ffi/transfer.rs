//! Posting descriptors, and taking them back.

use core::ffi::{c_ulong, c_void};

use port::lock::Guard;
use port::work_queue::{Head, WorkQueue};
use vipl::queue_pair;
use vipl::{Completion, Queue, Status, VipReturn};

use crate::abi::{self, Code};
use crate::guard::{Outcome, guard, timeout};
use crate::handle::Handle;
use crate::object::{VIS, ViObject};
use crate::pointer::{Context, Good, Out, Place};

/// A descriptor as the program knows it.
pub(super) fn pointer_to(address: u64) -> abi::Descriptor {
    // It lies in memory that the program registered, whose address was exposed then.
    core::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

const OK: Code = VipReturn::Success as Code;

/// A work queue that is locked.
type Locked = Guard<'static, WorkQueue>;

/// The work queue of a VI, if that handle is good and the lock free.
#[inline(always)]
fn queue_of(vi: Handle, of: Queue) -> Option<Locked> {
    queue_pair::queue(vi.index(), of)?.try_lock().filter(|work| work.is_of(vi.0))
}

/// Posts a descriptor under the lock of its queue alone, if that is free, the handle is good, the VI
/// is connected, and nothing is wrong. Everything else takes the VI.
///
/// Each case that is rarer than this is the last call of the one before, and never unwinds
/// (`extern "C"`), so that the common ones save no registers.
#[inline(always)]
fn post(vi: Handle, place: Place, handle: u32, of: Queue) -> Code {
    let Some(mut work) = queue_of(vi, of).filter(|work| work.is_open()) else {
        return post_slowly(vi, place, handle, of);
    };
    if work.post_token(place.address(), port::Handle(handle)) {
        return OK;
    }
    post_push(vi, place, handle, work, of)
}

/// A post of which the data may travel with the doorbell.
#[inline(never)]
#[expect(improper_ctypes_definitions, reason = "not called from C")]
extern "C" fn post_push(
    vi: Handle,
    place: Place,
    handle: u32,
    mut work: Locked,
    of: Queue,
) -> Code {
    if work.post_push(place.address(), port::Handle(handle)) {
        return OK;
    }
    post_locked(vi, place, handle, work, of)
}

/// A post that calls somebody, or that is to another region than the last one.
#[inline(never)]
#[expect(improper_ctypes_definitions, reason = "not called from C")]
extern "C" fn post_locked(
    vi: Handle,
    place: Place,
    handle: u32,
    mut work: Locked,
    of: Queue,
) -> Code {
    if work.post(place.address(), port::Handle(handle)).is_ok() {
        return OK;
    }
    drop(work);
    post_slowly(vi, place, handle, of)
}

#[cold]
#[inline(never)]
extern "C" fn post_slowly(vi: Handle, place: Place, handle: u32, queue: Queue) -> Code {
    let name = match queue {
        Queue::Send => "VipPostSend",
        Queue::Recv => "VipPostRecv",
    };
    guard(name, || {
        let post = |object: &ViObject| object.vi.post_at(queue, place.address(), handle);
        VIS.with(vi, post)?.map_err(|error| error.code)
    })
}

/// Takes the oldest descriptor if it is done, as [`post`].
#[inline(always)]
fn done(vi: Handle, out: Out<*mut c_void>, of: Queue) -> Code {
    if let Ok(out) = out.good()
        && let Some(mut work) = queue_of(vi, of)
    {
        let head = work.take_address();
        if matches!(head, Head::NotDone) && work.is_called() {
            return done_polled(out, work);
        }
        return say(out, &head);
    }
    done_slowly(vi, out, of)
}

/// Takes the oldest descriptor of a port that does its work when it is called.
#[inline(never)]
#[expect(improper_ctypes_definitions, reason = "not called from C")]
extern "C" fn done_polled(out: Good<*mut c_void>, mut work: Locked) -> Code {
    say(out, &work.poll_address())
}

#[inline(always)]
fn say(out: Good<*mut c_void>, head: &Head<(u64, u32)>) -> Code {
    let (address, code) = match *head {
        Head::Done((address, status)) if Status(status).is_error() => {
            (address, VipReturn::DescriptorError)
        }
        Head::Done((address, _)) => (address, VipReturn::Success),
        // The service handles events.
        Head::NotDone => (0, VipReturn::NotDone),
        Head::Empty => (0, VipReturn::DescriptorError),
    };
    out.set(pointer_to(address));
    code as Code
}

#[cold]
#[inline(never)]
extern "C" fn done_slowly(vi: Handle, out: Out<*mut c_void>, queue: Queue) -> Code {
    let name = match queue {
        Queue::Send => "VipSendDone",
        Queue::Recv => "VipRecvDone",
    };
    guard(name, || {
        out.check()?;
        // The service handles events.
        tell(out, VIS.with(vi, |object| object.vi.poll(queue))?)
    })
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
    post(vi, descriptor, handle, Queue::Send)
}

#[unsafe(export_name = "VipPostRecv")]
extern "C" fn post_recv(vi: Handle, descriptor: Place, handle: u32) -> Code {
    post(vi, descriptor, handle, Queue::Recv)
}

#[unsafe(export_name = "VipSendDone")]
extern "C" fn send_done(vi: Handle, out: Out<*mut c_void>) -> Code {
    done(vi, out, Queue::Send)
}

#[unsafe(export_name = "VipRecvDone")]
extern "C" fn recv_done(vi: Handle, out: Out<*mut c_void>) -> Code {
    done(vi, out, Queue::Recv)
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
