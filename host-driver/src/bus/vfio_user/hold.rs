//! Holding off the writers of a range: `userfaultfd` write protection.
//!
//! Whoever writes to a held page waits until it is let go, and then writes to what is mapped there by
//! then. Readers go on. The thread that holds must not write there: nobody would let it go. So it
//! takes no signals meanwhile ([`signals_off`]).
#![expect(unsafe_code, reason = "ioctls of userfaultfd, the signal mask")]

use core::ffi::c_int;
use core::ptr::null_mut;

use std::os::fd::OwnedFd;

use rustix::ioctl::{Updater, ioctl, opcode};
use rustix::mm::{UserfaultfdFlags, userfaultfd};

/// Numbers of `linux/userfaultfd.h`.
const GROUP: u8 = 0xaa;
const API: u64 = 0xaa;
const FEATURE_WRITE_PROTECT: u64 = 1;
const REGISTER_WRITE_PROTECT: u64 = 2;
const PROTECT: u64 = 1;

/// Version and features; the kernel answers with ioctls.
type ApiWords = [u64; 3];
/// Start, length, mode; the kernel answers with ioctls.
type RegisterWords = [u64; 4];
/// Start, length, mode.
type ProtectWords = [u64; 3];

const API_CODE: u32 = opcode::read_write::<ApiWords>(GROUP, 0x3f);
const REGISTER_CODE: u32 = opcode::read_write::<RegisterWords>(GROUP, 0x00);
const PROTECT_CODE: u32 = opcode::read_write::<ProtectWords>(GROUP, 0x06);

/// Held pages; dropping it lets the writers go.
#[derive(Debug)]
pub(super) struct Hold {
    _fd: OwnedFd,
}

/// Holds whole pages that all have been read. None if the kernel cannot or may not: it does not for
/// memory with a file behind it, such as initialised statics.
pub(super) fn hold(start: usize, length: usize) -> Option<Hold> {
    let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
    // SAFETY: the descriptor changes nothing until something is registered.
    let fd = unsafe { userfaultfd(flags) }
        .or_else(|_| {
            // What an ordinary user may: system calls that write to a held page fail.
            let flags = flags | UserfaultfdFlags::from_bits_retain(1);
            // SAFETY: as above.
            unsafe { userfaultfd(flags) }
        })
        .ok()?;
    let (start, length) = (start as u64, length as u64);
    let mut api: ApiWords = [API, FEATURE_WRITE_PROTECT, 0];
    // SAFETY: `api` is as long as the kernel's structure.
    let request = unsafe { Updater::<API_CODE, _>::new(&mut api) };
    // SAFETY: asks for a version.
    unsafe { ioctl(&fd, request) }.ok()?;
    let mut register: RegisterWords = [start, length, REGISTER_WRITE_PROTECT, 0];
    // SAFETY: `register` is as long as the kernel's structure.
    let request = unsafe { Updater::<REGISTER_CODE, _>::new(&mut register) };
    // SAFETY: what is registered is not changed.
    unsafe { ioctl(&fd, request) }.ok()?;
    let mut protect: ProtectWords = [start, length, PROTECT];
    // SAFETY: `protect` is as long as the kernel's structure.
    let request = unsafe { Updater::<PROTECT_CODE, _>::new(&mut protect) };
    // SAFETY: writers wait until `fd` is closed; this thread writes nothing there before.
    unsafe { ioctl(&fd, request) }.ok()?;
    Some(Hold { _fd: fd })
}

/// A set of signals, as the C library has it.
#[repr(C, align(8))]
#[derive(Debug)]
struct Signals([u64; 16]);

const SIG_SETMASK: c_int = 2;

// In the C library.
unsafe extern "C" {
    fn pthread_sigmask(how: c_int, set: *const Signals, old: *mut Signals) -> c_int;
}

/// Dropping it has this thread take signals again as before.
#[derive(Debug)]
pub(super) struct SignalsOff {
    before: Signals,
}

/// From now on this thread takes no signals: a handler could write to the memory at hand.
pub(super) fn signals_off() -> SignalsOff {
    let (all, mut before) = (Signals([u64::MAX; 16]), Signals([0; 16]));
    // SAFETY: both are as long as the C library's set. It fails only for another first argument.
    unsafe { pthread_sigmask(SIG_SETMASK, &raw const all, &raw mut before) };
    SignalsOff { before }
}

impl Drop for SignalsOff {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { pthread_sigmask(SIG_SETMASK, &raw const self.before, null_mut()) };
    }
}
