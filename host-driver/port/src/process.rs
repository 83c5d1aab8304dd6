//! Handlers around every fork of this process, and at its end.
#![expect(unsafe_code, reason = "functions of the C library")]

use core::ffi::c_int;

// In the C library.
unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
    fn atexit(handler: extern "C" fn()) -> c_int;
}

/// Has these called around every fork by the C library: `prepare` before it, the one that was given
/// last first; the others after it, in the order in which they were given. False if there is no
/// memory for it.
#[must_use]
pub fn around_forks(
    prepare: extern "C" fn(),
    parent: extern "C" fn(),
    child: extern "C" fn(),
) -> bool {
    // SAFETY: plain functions that never unwind.
    unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) == 0 }
}

/// Has this called when the program ends by `exit` or by leaving `main`: the one that was given last
/// first, and before what the program has given earlier. False if there is no memory for it.
#[must_use]
pub fn at_exit(handler: extern "C" fn()) -> bool {
    // SAFETY: a plain function that never unwinds.
    unsafe { atexit(handler) == 0 }
}
