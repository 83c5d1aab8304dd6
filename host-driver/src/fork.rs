//! Handlers around every fork of this process.
#![expect(unsafe_code, reason = "a function of the C library")]

// In the C library.
unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> core::ffi::c_int;
}

/// Has these called around every fork by the C library: `prepare` before it, the one that was given
/// last first; the others after it, in the order in which they were given. False if there is no
/// memory for it.
#[must_use]
pub fn around(prepare: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) -> bool {
    // SAFETY: plain functions that never unwind.
    unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) == 0 }
}
