//! Holding off the writers of a range: `userfaultfd` write protection.
//!
//! Whoever writes to a held page waits until it is let go, and then writes to what is mapped there by
//! then. Readers go on.
#![expect(unsafe_code, reason = "ioctls of userfaultfd")]

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
