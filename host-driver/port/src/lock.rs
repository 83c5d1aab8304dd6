//! A try-lock of one word: for what is held for less than a microsecond, and never across a system
//! call or a wait.
#![expect(unsafe_code, reason = "the value behind a lock")]

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::primitives::{AtomicBool, Ordering, UnsafeCell, pause};

/// A value and its lock.
pub struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: a `&mut T` is given out to one thread at a time, as by a mutex.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lock({})", if self.taken.load(Ordering::Relaxed) { "taken" } else { "free" })
    }
}

impl<T: Default> Default for Lock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Lock<T> {
    /// A free lock around `value`.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Takes the lock if it is free.
    #[must_use]
    #[inline(always)]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Acquire: what the holder before has stored is visible. The guard is made only if the lock
        // was free: it releases the lock when it is dropped.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        let taken = self.taken.compare_exchange(false, true, success, failure);
        taken.is_ok().then(|| Guard { lock: self, value: PhantomData })
    }

    /// Takes the lock; spins briefly, then yields the processor until it is free.
    #[must_use]
    pub fn lock(&self) -> Guard<'_, T> {
        let mut turn = 0;
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            pause(turn);
            turn = turn.saturating_add(1);
        }
    }
}

/// The holder of a [`Lock`], which is free again when this is dropped. Threads may share it only if
/// they may share the value:
///
/// ```compile_fail,E0277
/// fn share<T: Sync>(_: T) {}
/// share(port::lock::Lock::new(core::cell::Cell::new(0)).lock());
/// ```
#[derive(Debug)]
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    value: PhantomData<&'a mut T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock, so nobody else has a reference to the value; the
        // reference does not outlive the guard.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and the guard is borrowed mutably.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: what was stored under the lock is visible to its next holder.
        self.lock.taken.store(false, Ordering::Release);
    }
}
