//! Locks of slow paths, and a signal to sleep on.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

/// Takes a lock that is never held across [`crate::WaitOps::relax`]. A panic of an earlier holder is not passed on.
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

/// Wakes every thread that sleeps on it. A thread that reads the count, then looks for work, and
/// then waits for another count, misses nothing.
#[derive(Debug, Default)]
pub struct Signal {
    count: AtomicU64,
    sleepers: Mutex<()>,
    raised: Condvar,
}

impl Signal {
    /// How often it was raised.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Wakes every sleeping thread.
    pub fn raise(&self) {
        // Under the lock, so that no thread is between looking and sleeping.
        let _sleepers = lock(&self.sleepers);
        self.count.fetch_add(1, Ordering::AcqRel);
        self.raised.notify_all();
    }

    /// Sleeps until the count is another than `seen`, or until `bound_ns` are over; it may wake
    /// earlier. For ports whose time is the computer's.
    pub fn wait(&self, seen: u64, bound_ns: u64) {
        let sleepers = lock(&self.sleepers);
        if self.count() == seen {
            let woken = self.raised.wait_timeout(sleepers, Duration::from_nanos(bound_ns));
            drop(woken.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_raised_before_the_wait_is_not_missed() {
        let signal = Signal::default();
        let seen = signal.count();
        signal.raise();
        // Would never end otherwise.
        signal.wait(seen, u64::MAX);
        let signal = &signal;
        std::thread::scope(|scope| {
            let seen = signal.count();
            let sleeper = scope.spawn(move || {
                while signal.count() == seen {
                    signal.wait(seen, u64::MAX);
                }
            });
            signal.raise();
            sleeper.join().unwrap();
        });
        signal.wait(signal.count(), 1);
    }
}
