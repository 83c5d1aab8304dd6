//! A value with two ways in: by its key, with one atomic operation and without waiting, or by its
//! lock.
//!
//! The gate's word is the key of those who may go in, or 0 if nobody may, or [`BUSY`] while one is
//! inside. So who has the wrong key, or comes when another is inside, is told at once and takes the
//! lock, which closes the gate for as long as it is held.
#![expect(unsafe_code, reason = "two locks in one, of which the fast one costs a single atomic")]

use core::cell::UnsafeCell;
use core::hint;
use core::mem;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use core::time::Duration;

use std::sync::{Mutex, MutexGuard};

use crate::sync;

/// One is inside. No key.
const BUSY: usize = 1;
/// Looks before a thread that waits for one inside leaves the processor to others.
const LOOKS: u32 = 100;
/// How long it does so. Who is inside needs less than a microsecond of its own.
const NAP: Duration = Duration::from_micros(20);

/// Whether this can be a key: neither 0 nor 1.
#[must_use]
#[inline(always)]
pub const fn is_key(key: usize) -> bool {
    key > BUSY
}

/// What tells its gate who may go in.
pub trait Keyed {
    /// The key, or 0 for nobody.
    fn key(&self) -> usize;
}

/// A gate. All zero until it is furnished; what is behind it is never freed.
#[derive(Debug)]
pub struct Gate<T> {
    word: AtomicUsize,
    behind: AtomicPtr<Behind<T>>,
}

/// Apart from what others write: processors fetch lines of 64 bytes in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Behind<T> {
    lock: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one at a time, who is inside or holds the lock with the gate closed.
unsafe impl<T: Send> Sync for Gate<T> {}

impl<T: Keyed> Gate<T> {
    /// With nothing behind.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: AtomicUsize::new(0), behind: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Puts a value behind it, in place of one that may be there, and opens it to the value's key.
    pub fn furnish(&self, value: T) {
        if let Some(mut locked) = self.lock() {
            *locked = value;
            return;
        }
        let behind = Box::new(Behind { lock: Mutex::new(()), value: UnsafeCell::new(value) });
        let new = Box::into_raw(behind);
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        if self.behind.compare_exchange(ptr::null_mut(), new, success, failure).is_ok() {
            // Opens it.
            drop(self.lock());
        } else {
            // SAFETY: it came from a box just now, and nobody else knows it.
            let Behind { value, .. } = *unsafe { Box::from_raw(new) };
            // Another thread has put something there: this comes after it.
            self.furnish(value.into_inner());
        }
    }

    /// Goes in, if this is the key, if it can be one, and nobody is inside.
    #[must_use]
    #[inline(always)]
    pub fn enter(&self, key: usize) -> Option<Inside<'_, T>> {
        if !is_key(key) {
            return None;
        }
        self.word.compare_exchange(key, BUSY, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(Inside { gate: self, key })
    }

    /// Waits a moment for who is inside, which is shorter than taking the lock.
    pub fn let_pass(&self) {
        for _ in 0..LOOKS {
            if self.word.load(Ordering::Relaxed) != BUSY {
                return;
            }
            hint::spin_loop();
        }
    }

    /// Takes the lock and closes the gate, until the guard goes. None: there is nothing behind.
    #[must_use]
    pub fn lock(&self) -> Option<Locked<'_, T>> {
        let behind = self.behind.load(Ordering::Acquire);
        // SAFETY: null, or what `furnish` put there, which stays.
        let behind = unsafe { behind.as_ref() }?;
        let lock = sync::lock(&behind.lock);
        let mut looks = 0;
        loop {
            let word = self.word.load(Ordering::Acquire);
            // With the lock held nobody opens the gate.
            if word == 0 {
                break;
            }
            let closing =
                self.word.compare_exchange_weak(word, 0, Ordering::Acquire, Ordering::Relaxed);
            if word != BUSY && closing.is_ok() {
                break;
            }
            looks += 1;
            if looks < LOOKS { hint::spin_loop() } else { std::thread::sleep(NAP) }
        }
        // SAFETY: the gate is closed, and the lock held.
        let value = unsafe { &mut *behind.value.get() };
        Some(Locked { gate: self, value, _lock: lock })
    }
}

impl<T: Keyed> Default for Gate<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Who is inside. Two words, so that it can be handed on in registers.
#[derive(Debug)]
pub struct Inside<'a, T> {
    gate: &'a Gate<T>,
    key: usize,
}

impl<'a, T> Inside<'a, T> {
    /// Stays inside, without the key: one word to hand on.
    #[inline(always)]
    pub fn stay(self) -> Staying<'a, T> {
        let gate = self.gate;
        mem::forget(self);
        Staying { gate }
    }

    #[inline(always)]
    fn value(&self) -> *mut T {
        let behind = self.gate.behind.load(Ordering::Relaxed);
        // SAFETY: the word was a key, so there is something behind the gate, which stays.
        unsafe { &*behind }.value.get()
    }
}

impl<T> Deref for Inside<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: nobody else reaches the value until this goes.
        unsafe { &*self.value() }
    }
}

impl<T> DerefMut for Inside<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: nobody else reaches the value until this goes.
        unsafe { &mut *self.value() }
    }
}

impl<T> Drop for Inside<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.gate.word.store(self.key, Ordering::Release);
    }
}

/// Who is inside and has put the key down. The gate stays shut until the key is taken up again.
#[must_use]
#[derive(Debug)]
pub struct Staying<'a, T> {
    gate: &'a Gate<T>,
}

impl<'a, T> Staying<'a, T> {
    /// Takes the key up, which is that with which the gate was entered: it is opened for this one
    /// afterwards.
    #[must_use]
    #[inline(always)]
    pub const fn with(self, key: usize) -> Inside<'a, T> {
        Inside { gate: self.gate, key }
    }
}

/// Who holds the lock. The gate is opened afterwards for the key that the value has then.
#[derive(Debug)]
pub struct Locked<'a, T: Keyed> {
    gate: &'a Gate<T>,
    value: &'a mut T,
    _lock: MutexGuard<'a, ()>,
}

impl<T: Keyed> Deref for Locked<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

impl<T: Keyed> DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}

impl<T: Keyed> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        let key = self.value.key();
        self.gate.word.store(if is_key(key) { key } else { 0 }, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Count {
        key: usize,
        /// Twice, so that who is not alone shows.
        counts: [u64; 2],
    }

    impl Keyed for Count {
        fn key(&self) -> usize {
            self.key
        }
    }

    #[test]
    fn only_the_key_of_now_opens_it() {
        let gate = Gate::new();
        assert!(gate.lock().is_none());
        assert!(gate.enter(0).is_none());
        gate.furnish(Count { key: 7, counts: [0; 2] });
        for wrong in [0, BUSY, 6, usize::MAX] {
            assert!(gate.enter(wrong).is_none());
        }
        let inside = gate.enter(7).unwrap();
        assert!(gate.enter(7).is_none(), "one at a time");
        assert!(gate.enter(BUSY).is_none());
        drop(inside);
        let mut locked = gate.lock().unwrap();
        assert!(gate.enter(7).is_none(), "closed while it is locked");
        locked.key = 0;
        drop(locked);
        assert!(gate.enter(7).is_none());
        assert!(gate.enter(0).is_none());
        gate.furnish(Count { key: 8, counts: [0; 2] });
        assert!(gate.enter(7).is_none());
        assert!(gate.enter(8).is_some());
    }

    #[test]
    fn both_ways_in_exclude_each_other() {
        static GATE: Gate<Count> = Gate::new();
        const ROUNDS: u64 = 20_000;
        GATE.furnish(Count { key: 7, counts: [0; 2] });
        let count = |value: &mut Count| {
            value.counts[0] += 1;
            hint::spin_loop();
            value.counts[1] += 1;
            assert_eq!(value.counts[0], value.counts[1]);
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        match GATE.enter(7) {
                            Some(mut inside) => count(&mut inside),
                            None => count(&mut GATE.lock().unwrap()),
                        }
                    }
                });
            }
        });
        assert_eq!(GATE.lock().unwrap().counts, [4 * ROUNDS; 2]);
    }
}
