//! Handlers around every fork of this process, and at its end; threads without signals.
#![expect(unsafe_code, reason = "functions of the C library")]

use core::ffi::{c_int, c_ulong};

// In the C library.
unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
    fn atexit(handler: extern "C" fn()) -> c_int;
    fn sigfillset(set: *mut SignalSet) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
}

/// The C library's `sigset_t`: 1,024 bits on Linux, in glibc and musl.
#[repr(C)]
struct SignalSet([c_ulong; 1024 / c_ulong::BITS as usize]);

/// `SIG_SETMASK` of Linux, on all processors but MIPS, SPARC and Alpha.
const SIG_SETMASK: c_int = 2;

/// Restores a thread's signal mask.
struct Blocked(SignalSet);

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set is the one that `pthread_sigmask` has filled in.
        let _ = unsafe { pthread_sigmask(SIG_SETMASK, &raw const self.0, core::ptr::null_mut()) };
    }
}

/// Runs `act` with all signals of this thread blocked. A thread that is started in it has them
/// blocked for good, so that handlers of the program never run in it, where they would find other
/// locks held and another stack than the program expects; the kernel hands the signals to other
/// threads.
pub fn without_signals<T>(act: impl FnOnce() -> T) -> T {
    let empty = || SignalSet([0; 1024 / c_ulong::BITS as usize]);
    let (mut all, mut old) = (empty(), empty());
    // SAFETY: a set of the C library's size.
    let filled = unsafe { sigfillset(&raw mut all) };
    // SAFETY: both sets have the C library's size, and the first one is filled in.
    if filled != 0 || unsafe { pthread_sigmask(SIG_SETMASK, &raw const all, &raw mut old) } != 0 {
        // It fails only for arguments that are not these.
        return act();
    }
    let _restored = Blocked(old);
    act()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Signals that this thread blocks, as the kernel has them.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn a_thread_started_without_signals_blocks_all_that_can_be_blocked() {
        let before = blocked();
        let inside = without_signals(|| std::thread::spawn(blocked)).join().unwrap();
        // 9 and 19 cannot be blocked; 32 to 34 may be the C library's own.
        let own: u64 = 1 << 8 | 1 << 18 | 0b111 << 31;
        assert_eq!(inside | own, u64::MAX);
        assert_eq!(blocked(), before);
    }
}
