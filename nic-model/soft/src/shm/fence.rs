//! Fences that one side pays for both.
//!
//! Who stores to others' memory does it often, and looks behind each store whether a tripwire is set;
//! who sets a tripwire does it rarely, and looks behind it whether a store came before. Both orders
//! need a fence between store and look. The kernel can execute it on all processors for both
//! (membarrier(2)), so that the frequent side needs none.
#![expect(unsafe_code, reason = "a system call without a wrapper")]

use core::ffi::{c_int, c_long};
use core::sync::atomic::{Ordering, compiler_fence};
use std::io;

#[cfg(target_arch = "x86_64")]
const MEMBARRIER: c_long = 324;
#[cfg(target_arch = "aarch64")]
const MEMBARRIER: c_long = 283;

/// `MEMBARRIER_CMD_GLOBAL_EXPEDITED`: a fence in every running thread of the processes that have
/// registered for it.
const GLOBAL: c_int = 1 << 1;
/// `MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED`.
const REGISTER: c_int = 1 << 2;

// In the C library.
unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

fn membarrier(command: c_int) -> io::Result<()> {
    // SAFETY: the call takes three integers and touches no memory.
    let result = unsafe { syscall(MEMBARRIER, command, 0, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has this process take part in [`on_all`] of others.
///
/// # Errors
/// The kernel's: it does not have membarrier, or a filter forbids it.
pub(super) fn register() -> io::Result<()> {
    membarrier(REGISTER)
}

/// A fence in every thread of every process that has registered, this one included.
///
/// # Errors
/// The kernel's; not after [`register`] has succeeded.
pub(super) fn on_all() -> io::Result<()> {
    membarrier(GLOBAL)
}

/// The frequent side's half: nothing is moved across it by the compiler.
pub(super) fn light() {
    compiler_fence(Ordering::SeqCst);
}
