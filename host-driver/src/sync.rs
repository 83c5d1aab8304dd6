//! Locks.
//!
//! In a simulation only the thread with the baton runs, and it passes the baton in `relax`. So a
//! lock that is held across `relax` must be waited for with `relax` ([`lock_relaxed`]); a lock that
//! never is may be taken with [`lock`], which then never blocks for long.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::bus::{Bus, Wait};

/// Takes a lock that is never held across `relax`. A panic of an earlier holder is not passed on.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a lock if it is free.
pub fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

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
