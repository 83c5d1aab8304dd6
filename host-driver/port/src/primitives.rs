//! What [`crate::lock`] is built from. `tests/lock.rs` builds it from loom's instead.

pub(crate) use core::sync::atomic::{AtomicBool, Ordering};

/// A cell whose contents are reached by pointer, as loom's.
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Lets another thread run.
pub(crate) fn pause(turn: u32) {
    if turn < 100 { core::hint::spin_loop() } else { std::thread::yield_now() }
}
