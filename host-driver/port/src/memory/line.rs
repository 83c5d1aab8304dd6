//! Some bytes of device memory, whose place was checked once: a line, double words, a line of
//! registers.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use volatile::VolatilePtr;

use super::{Allocation, DmaMemory};
use crate::barrier::{after_registers, before_register};

/// Bytes of a [`Line`], and its alignment.
pub const LINE_BYTES: usize = 64;

/// An aligned line of [`LINE_BYTES`] bytes of device memory. Where it lies was checked once, for
/// several accesses to constant places.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    pub(super) base: NonNull<u8>,
    memory: PhantomData<&'a DmaMemory>,
}

impl Line<'_> {
    /// The line at `base`.
    ///
    /// # Safety
    /// It is aligned to [`LINE_BYTES`], and these bytes belong to a [`DmaMemory`] that is kept for
    /// the line's lifetime.
    #[inline]
    pub(crate) const unsafe fn new(base: NonNull<u8>) -> Self {
        Self { base, memory: PhantomData }
    }

    /// As [`DmaMemory::load_u32`].
    ///
    /// # Panics
    /// If `at` is not that of a word of the line.
    #[must_use]
    #[inline]
    pub fn load_u32(self, at: usize) -> u32 {
        u32::from_le(self.word(at).load(Ordering::Acquire))
    }

    /// As [`DmaMemory::load_u64`].
    ///
    /// # Panics
    /// If `at` is not that of a double word of the line.
    #[must_use]
    #[inline]
    pub fn load_u64(self, at: usize) -> u64 {
        u64::from_le(self.double_word(at).load(Ordering::Acquire))
    }

    /// As [`DmaMemory::store_u32`].
    ///
    /// # Panics
    /// As [`Line::load_u32`].
    #[inline]
    pub fn store_u32(self, at: usize, value: u32) {
        self.word(at).store(value.to_le(), Ordering::Release);
    }

    /// As [`DmaMemory::store_u64`].
    ///
    /// # Panics
    /// If `at` is not that of a double word of the line.
    #[inline]
    pub fn store_u64(self, at: usize, value: u64) {
        self.double_word(at).store(value.to_le(), Ordering::Release);
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at <= LINE_BYTES - 4 && at.is_multiple_of(4));
        // SAFETY: the line is valid and aligned to its size, the word lies in it, and an atomic may
        // be changed by others at any time.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().wrapping_add(at).cast()) }
    }

    #[inline]
    fn double_word(&self, at: usize) -> &AtomicU64 {
        assert!(at <= LINE_BYTES - 8 && at.is_multiple_of(8));
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().wrapping_add(at).cast()) }
    }
}

/// Some bytes of device memory. Where they lie was checked once, for reading them as double words.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    base: NonNull<u8>,
    length: usize,
    memory: PhantomData<&'a DmaMemory>,
}

impl Words<'_> {
    /// No bytes.
    pub const NONE: Self = Self { base: NonNull::dangling(), length: 0, memory: PhantomData };

    /// The `length` bytes at `base`.
    ///
    /// # Safety
    /// Those, and what is missing to whole double words, belong to a [`DmaMemory`] that is kept for
    /// the lifetime.
    #[inline(always)]
    pub(crate) const unsafe fn new(base: NonNull<u8>, length: usize) -> Self {
        Self { base, length, memory: PhantomData }
    }

    /// Number of bytes.
    #[must_use]
    #[inline(always)]
    pub const fn len(self) -> usize {
        self.length
    }

    /// Whether there are no bytes.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.length == 0
    }

    /// Hands the bytes to `store` as little-endian double words, numbered from 0, with zeros behind
    /// the last byte.
    #[inline(always)]
    pub fn read(self, mut store: impl FnMut(usize, u64)) {
        let words = self.base.cast::<UnalignedWord>();
        let word = |at| {
            // SAFETY: below the number of whole double words.
            let place = unsafe { words.add(at) };
            // SAFETY: valid bytes, which need no alignment.
            u64::from_le(unsafe { place.read_volatile() }.0)
        };
        let (whole, left) = (self.length / 8, self.length % 8);
        for at in 0..whole {
            store(at, word(at));
        }
        if left > 0 {
            store(whole, word(whole) & ((1 << (8 * left)) - 1));
        }
    }
}

/// A double word that need not be aligned.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct UnalignedWord(u64);

/// Stores a register, behind everything that was stored before.
#[inline(always)]
pub(super) fn store_register(register: VolatilePtr<'_, u64>, value: u64) {
    before_register();
    register.write(value.to_le());
}

/// A line of registers of a device, mapped. As [`Line`], but it keeps its memory.
#[derive(Debug)]
pub struct RegisterLine {
    pub(super) base: NonNull<u64>,
    pub(super) _allocation: Arc<Allocation>,
}

// SAFETY: a pointer into memory that any thread may use.
unsafe impl Send for RegisterLine {}
// SAFETY: as above.
unsafe impl Sync for RegisterLine {}

impl RegisterLine {
    /// Stores the double word number `at`, as [`DmaMemory::store_register`].
    ///
    /// # Panics
    /// If the line has no such double word.
    #[inline(always)]
    pub fn store(&self, at: usize, value: u64) {
        assert!(at < LINE_BYTES / 8, "double word of a line of registers");
        // SAFETY: inside of the line.
        let register = unsafe { self.base.add(at) };
        // SAFETY: 8 valid, aligned bytes, that the line keeps.
        store_register(unsafe { VolatilePtr::new(register) }, value);
    }

    /// No later store overtakes those before, also where the processor combines writes.
    #[inline(always)]
    pub fn finish(&self) {
        after_registers();
    }
}
