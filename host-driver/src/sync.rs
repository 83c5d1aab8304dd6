//! Locks.
//!
//! In a simulation one thread runs at a time, and it lets another one run in `relax`. So a lock that
//! is held across `relax` must be waited for with `relax` ([`lock_relaxed`]); a lock that never is may
//! be taken with [`lock`], which then never blocks for long.

use std::sync::{Mutex, MutexGuard};

use crate::bus::{Bus, Wait};

pub use port::sync::{Signal, lock, try_lock};

/// Takes a lock that may be held across `relax`.
pub fn lock_relaxed<'a, T: ?Sized>(
    mutex: &'a Mutex<T>,
    bus: &dyn Bus,
    what: &'static str,
) -> MutexGuard<'a, T> {
    loop {
        if let Some(guard) = try_lock(mutex) {
            return guard;
        }
        bus.relax(Wait::bounded(what, 0));
    }
}
