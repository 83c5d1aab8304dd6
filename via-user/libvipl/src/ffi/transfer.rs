//! Posting descriptors, and taking them back.

use core::ffi::{c_ulong, c_void};

use host_driver::gate::Key;
use vipl::place::{Head, Posting, Ready, Short, Taking, Watch, queue};
use vipl::{Completion, Queue, Status, VipReturn};

use crate::abi::{self, Code};
use crate::guard::{Outcome, guard, timeout};
use crate::handle::Handle;
use crate::object::VIS;
use crate::pointer::{Context, Good, Out, Place};

/// A descriptor as the program knows it.
pub(super) fn pointer_to(address: u64) -> abi::Descriptor {
    // It lies in memory that the program registered, whose address was exposed then.
    core::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

fn post(vi: Handle, place: Place, handle: u32, queue: Queue) -> Outcome {
    let posted = VIS.with(vi, |object| object.vi.post_at(queue, place.address(), handle))?;
    posted.map_err(|error| error.code)
}

/// Posts what was not posted the common way; what holding the queue's lock does not suffice for
/// holds the VI. Apart, as a function that does not unwind, so that the common post saves no
/// registers for it.
#[cold]
#[inline(never)]
extern "C" fn post_otherwise(vi: Handle, place: Place, handle: u32, of: Queue) -> Code {
    if let Some(key) = vi.key() {
        let (queue, address) = (queue(vi.index(), of), place.address());
        queue.let_pass();
        let posted = match queue.post_at_hand(key, address, handle) {
            Posting::Done => true,
            Posting::Short(short) => short.post(key, handle),
            Posting::No => false,
        };
        if posted || queue.post_at(key, address, handle).is_some() {
            return VipReturn::Success as Code;
        }
    }
    let name = match of {
        Queue::Send => "VipPostSend",
        Queue::Recv => "VipPostRecv",
    };
    guard(name, || post(vi, place, handle, of))
}

/// Posts what travels with the doorbell. Apart, as [`post_otherwise`], and with the arguments of
/// [`post_at_hand`] first, which then stay in their registers; the key is the handle.
#[inline(never)]
#[expect(improper_ctypes_definitions, reason = "not called from C, but without unwinding")]
extern "C" fn post_short(key: Key, place: Place, handle: u32, short: Short<'_>) -> Code {
    if short.post(key, handle) {
        return VipReturn::Success as Code;
    }
    post_otherwise(Handle(key.bits()), place, handle, Queue::Send)
}

#[inline(always)]
fn post_at_hand(vi: Handle, place: Place, handle: u32, of: Queue) -> Code {
    let Some(key) = vi.key() else { return post_otherwise(vi, place, handle, of) };
    match queue(vi.index(), of).post_at_hand(key, place.address(), handle) {
        Posting::Done => VipReturn::Success as Code,
        Posting::Short(short) => post_short(key, place, handle, short),
        Posting::No => post_otherwise(vi, place, handle, of),
    }
}

/// Takes the common way.
#[inline(always)]
fn take(vi: Handle, out: Out<*mut c_void>, of: Queue) -> Code {
    const _: () = assert!(Watch::NOT_DONE == VipReturn::NotDone as Code);
    const _: () = assert!(Watch::NOTHING == VipReturn::DescriptorError as Code);
    let Some((key, good)) = vi.key_and(out) else { return take_otherwise(vi, out, of) };
    match queue(vi.index(), of).take_at_hand(key) {
        Taking::Found(found) => {
            good.set(core::ptr::null_mut());
            found
        }
        Taking::Ready(ready) => take_ready(key, good, ready),
        Taking::No => take_otherwise(vi, out, of),
    }
}

/// Takes what is done. As [`post_short`].
#[inline(never)]
#[expect(improper_ctypes_definitions, reason = "not called from C, but without unwinding")]
extern "C" fn take_ready(key: Key, out: Good<*mut c_void>, ready: Ready<'_>) -> Code {
    let (address, status) = ready.take(key);
    taken(out, address, status)
}

/// As [`post_otherwise`].
#[cold]
#[inline(never)]
extern "C" fn take_otherwise(vi: Handle, out: Out<*mut c_void>, of: Queue) -> Code {
    if let (Ok(good), Some(key)) = (out.good(), vi.key()) {
        let queue = queue(vi.index(), of);
        queue.let_pass();
        match queue.take(key) {
            Some(Head::Done((address, status))) => return taken(good, address, status),
            Some(head) => {
                good.set(core::ptr::null_mut());
                let nothing = matches!(head, Head::Empty);
                // The service handles events.
                let code = if nothing { VipReturn::DescriptorError } else { VipReturn::NotDone };
                return code as Code;
            }
            None => {}
        }
    }
    let name = match of {
        Queue::Send => "VipSendDone",
        Queue::Recv => "VipRecvDone",
    };
    guard(name, || done(vi, out, of))
}

#[inline(always)]
fn taken(out: Good<*mut c_void>, address: u64, status: u32) -> Code {
    out.set(pointer_to(address));
    let error = Status(status).is_error();
    let code = if error { VipReturn::DescriptorError } else { VipReturn::Success };
    code as Code
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
    post_at_hand(vi, descriptor, handle, Queue::Send)
}

#[unsafe(export_name = "VipPostRecv")]
extern "C" fn post_recv(vi: Handle, descriptor: Place, handle: u32) -> Code {
    post_at_hand(vi, descriptor, handle, Queue::Recv)
}

#[unsafe(export_name = "VipSendDone")]
extern "C" fn send_done(vi: Handle, out: Out<*mut c_void>) -> Code {
    take(vi, out, Queue::Send)
}

#[unsafe(export_name = "VipRecvDone")]
extern "C" fn recv_done(vi: Handle, out: Out<*mut c_void>) -> Code {
    take(vi, out, Queue::Recv)
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
