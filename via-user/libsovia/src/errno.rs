//! The C library's error number of the calling thread.
#![expect(unsafe_code, reason = "a variable of the C library")]

use core::ffi::c_int;

/// Gives the program this error.
pub(crate) fn set(error: c_int) {
    // SAFETY: the C library's own place for this thread.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it is the thread's alone.
    unsafe { *place = error };
}

/// What the last call of the C library left.
pub(crate) fn get() -> c_int {
    // SAFETY: as in `set`.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as in `set`.
    unsafe { *place }
}

/// What a call of the C library gave: a count, or the error that it left.
pub(crate) fn counted(result: isize) -> Result<usize, c_int> {
    usize::try_from(result).map_err(|_| get())
}

/// A call of the program: what it gets. One that succeeds leaves the error number, at which some programs
/// look all the same.
pub(crate) fn call(act: impl FnOnce() -> Result<usize, c_int>) -> isize {
    match kept(act) {
        Ok(count) => isize::try_from(count).unwrap_or(isize::MAX),
        Err(error) => {
            set(error);
            -1
        }
    }
}

/// Does something that leaves the error number.
pub(crate) fn kept<T>(act: impl FnOnce() -> T) -> T {
    let before = get();
    let result = act();
    set(before);
    result
}
