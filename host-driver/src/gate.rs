//! A value with two ways in: by its key, with one atomic operation and without waiting, or by its
//! lock.
//!
//! The gate's word is the key of those who may go in, or 0 if nobody may, or the gate's own address
//! while one is inside. So who has the wrong key, or comes when another is inside, is told at once
//! and takes the lock, which closes the gate for as long as it is held.
//!
//! Beside the word is a sign of what is behind, for those who are inside and need no more. Who has
//! changed what is behind puts it right.
#![expect(unsafe_code, reason = "two locks in one, of which the fast one costs a single atomic")]

use core::arch::asm;
use core::cell::UnsafeCell;
use core::fmt;
use core::hint;
use core::marker::PhantomData;
use core::mem::{self, MaybeUninit};
use core::num::NonZero;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use core::time::Duration;

use std::sync::{Mutex, MutexGuard};

use crate::sync;

/// Looks before a thread that waits for one inside leaves the processor to others.
const LOOKS: u32 = 100;
/// How long it does so. Who is inside needs less than a microsecond of its own.
const NAP: Duration = Duration::from_micros(20);

/// A key. Its highest bit is set, so it is neither 0 nor an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(NonZero<usize>);

impl Key {
    /// The highest bit.
    pub const BIT: usize = 1 << (usize::BITS - 1);

    /// These bits, if they can be a key.
    #[must_use]
    #[inline(always)]
    pub const fn new(bits: usize) -> Option<Self> {
        match NonZero::new(bits) {
            Some(bits) if bits.get() & Self::BIT != 0 => Some(Self(bits)),
            _ => None,
        }
    }

    /// These bits, which are not 0.
    ///
    /// # Safety
    /// They are not the address of a [`Gate`] either.
    #[must_use]
    #[inline(always)]
    pub const unsafe fn of_bits(bits: NonZero<usize>) -> Self {
        Self(bits)
    }

    /// The bits.
    #[must_use]
    #[inline(always)]
    pub const fn bits(self) -> usize {
        self.0.get()
    }
}

/// What tells its gate who may go in, and what its sign says.
pub trait Keyed {
    /// The sign.
    type Sign: Copy;
    /// The key, or none for nobody.
    fn key(&self) -> Option<Key>;
    /// What the sign is to say.
    fn sign(&self) -> Self::Sign;
}

/// A gate. All zero until it is furnished; what is behind it is never freed.
#[repr(C)]
pub struct Gate<T: Keyed> {
    word: AtomicUsize,
    sign: UnsafeCell<MaybeUninit<T::Sign>>,
    behind: AtomicPtr<Behind<T>>,
    owned: PhantomData<Box<T>>,
}

impl<T: Keyed> fmt::Debug for Gate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gate({:#x})", self.word.load(Ordering::Relaxed))
    }
}

/// Apart from what others write: processors fetch lines of 64 bytes in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Behind<T> {
    lock: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one at a time, who is inside or holds the lock with the gate closed.
unsafe impl<T: Keyed<Sign: Send + Sync> + Send> Sync for Gate<T> {}

impl<T: Keyed> Gate<T> {
    /// With nothing behind.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            word: AtomicUsize::new(0),
            sign: UnsafeCell::new(MaybeUninit::zeroed()),
            behind: AtomicPtr::new(ptr::null_mut()),
            owned: PhantomData,
        }
    }

    /// The word while one is inside.
    #[inline(always)]
    fn busy(&self) -> usize {
        ptr::from_ref(self).addr()
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

    /// Goes in, if this is the key and nobody is inside.
    #[must_use]
    #[inline(always)]
    pub fn enter(&self, key: Key) -> Option<Inside<'_, T>> {
        let gate = self.in_register();
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        gate.word.compare_exchange(key.bits(), gate.busy(), success, failure).ok()?;
        Some(Inside { gate, key })
    }

    /// The gate, whose address compilers are to work out once: they do not see where it came from.
    #[inline(always)]
    #[expect(clippy::pointers_in_nomem_asm_block, reason = "nothing is read or written")]
    fn in_register(&self) -> &Self {
        let mut gate = ptr::from_ref(self);
        // SAFETY: no instruction.
        unsafe {
            asm!("/* {0} */", inout(reg) gate, options(pure, nomem, nostack, preserves_flags));
        }
        // SAFETY: the address of a gate. Without this, who looks whether there is a gate asks.
        unsafe { hint::assert_unchecked(!gate.is_null()) };
        // SAFETY: the same gate.
        unsafe { &*gate }
    }

    /// Waits a moment for who is inside, which is shorter than taking the lock.
    pub fn let_pass(&self) {
        for _ in 0..LOOKS {
            if self.word.load(Ordering::Relaxed) != self.busy() {
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
            // One who is inside opens it again; until then it is not to be touched.
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            if word != self.busy()
                && self.word.compare_exchange_weak(word, 0, success, failure).is_ok()
            {
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
pub struct Inside<'a, T: Keyed> {
    gate: &'a Gate<T>,
    key: Key,
}

impl<'a, T: Keyed> Inside<'a, T> {
    /// The sign.
    #[must_use]
    #[inline(always)]
    pub fn sign(&self) -> &T::Sign {
        // SAFETY: nobody else reaches it now.
        let sign = unsafe { &*self.gate.sign.get() };
        // SAFETY: the word was a key, so the sign was made.
        unsafe { sign.assume_init_ref() }
    }

    /// What is behind, and the sign. Who changes the one changes the other.
    #[must_use]
    #[inline(always)]
    pub fn both(&mut self) -> (&mut T, &mut T::Sign) {
        // SAFETY: nobody else reaches the value until this goes.
        let value = unsafe { &mut *self.value() };
        // SAFETY: as in `sign`.
        let sign = unsafe { &mut *self.gate.sign.get() };
        // SAFETY: as in `sign`.
        let sign = unsafe { sign.assume_init_mut() };
        (value, sign)
    }

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

impl<T: Keyed> Drop for Inside<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.gate.word.store(self.key.bits(), Ordering::Release);
    }
}

/// Who is inside and has put the key down. The gate stays shut until the key is taken up again.
#[must_use]
#[derive(Debug)]
pub struct Staying<'a, T: Keyed> {
    gate: &'a Gate<T>,
}

impl<'a, T: Keyed> Staying<'a, T> {
    /// Takes the key up, which is that with which the gate was entered: it is opened for this one
    /// afterwards.
    #[must_use]
    #[inline(always)]
    pub const fn with(self, key: Key) -> Inside<'a, T> {
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
        let sign = MaybeUninit::new(self.value.sign());
        // SAFETY: the gate is closed, and the lock held.
        unsafe { *self.gate.sign.get() = sign };
        let key = self.value.key().map_or(0, Key::bits);
        self.gate.word.store(key, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Count {
        key: Option<Key>,
        /// Twice, so that who is not alone shows.
        counts: [u64; 2],
    }

    impl Keyed for Count {
        type Sign = u64;

        fn key(&self) -> Option<Key> {
            self.key
        }

        fn sign(&self) -> u64 {
            self.counts[0]
        }
    }

    const fn key(number: usize) -> Key {
        Key::new(Key::BIT | number).unwrap()
    }

    #[test]
    fn only_the_key_of_now_opens_it() {
        let gate = Gate::new();
        assert!(gate.lock().is_none());
        assert!(gate.enter(key(7)).is_none());
        for bits in [0, 1, 7, ptr::from_ref(&gate).addr()] {
            assert_eq!(Key::new(bits), None);
        }
        gate.furnish(Count { key: Some(key(7)), counts: [5; 2] });
        assert!(gate.enter(key(6)).is_none());
        let mut inside = gate.enter(key(7)).unwrap();
        assert_eq!(*inside.sign(), 5);
        assert_eq!(inside.both().0.counts, [5; 2]);
        assert!(gate.enter(key(7)).is_none(), "one at a time");
        // SAFETY: it is not.
        let nobody = unsafe { Key::of_bits(NonZero::new(1).unwrap()) };
        assert!(gate.enter(nobody).is_none());
        let staying = inside.stay();
        assert!(gate.enter(key(7)).is_none(), "still inside");
        drop(staying.with(key(7)));
        let mut locked = gate.lock().unwrap();
        assert!(gate.enter(key(7)).is_none(), "closed while it is locked");
        (locked.key, locked.counts) = (Some(key(8)), [6; 2]);
        drop(locked);
        assert!(gate.enter(key(7)).is_none());
        assert_eq!(*gate.enter(key(8)).unwrap().sign(), 6);
        gate.lock().unwrap().key = None;
        assert!(gate.enter(key(8)).is_none());
    }

    #[test]
    fn both_ways_in_exclude_each_other() {
        static GATE: Gate<Count> = Gate::new();
        const ROUNDS: u64 = 10_000;
        GATE.furnish(Count { key: Some(key(7)), counts: [0; 2] });
        let count = |value: &mut Count| {
            value.counts[0] += 1;
            // So that others come while one is inside.
            if value.counts[0].is_multiple_of(16) {
                std::thread::yield_now();
            }
            value.counts[1] += 1;
            assert_eq!(value.counts[0], value.counts[1]);
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        match GATE.enter(key(7)) {
                            Some(mut inside) => count(inside.both().0),
                            None => count(&mut GATE.lock().unwrap()),
                        }
                    }
                });
            }
        });
        assert_eq!(GATE.lock().unwrap().counts, [4 * ROUNDS; 2]);
    }
}
