//! Memory that a device may touch.
//!
//! The rules of this file (after vm-memory): there is never a `&` or `&mut` to such memory, since a
//! device writes it at any time. Bulk bytes go through volatile accesses; words on which the two
//! sides synchronise (status, phase, done) go through atomics with acquire and release, so that
//! what was written before them is visible after them.
#![expect(unsafe_code, reason = "memory that a device writes at any time")]

mod copy;
mod file;
mod line;
#[cfg(test)]
mod tests;

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::Arc;

use volatile::VolatilePtr;

use crate::barrier::after_registers;
use crate::error::{Error, Result};
use crate::own::OwnFd;

pub use file::reserve;
use line::store_register;
pub use line::{LINE_BYTES, Line, RegisterLine, Words};

/// Alignment of an allocation, in bytes.
pub const PAGE_BYTES: usize = 4096;

/// What becomes of memory when its last `DmaMemory` handle goes.
#[derive(Debug)]
enum Owner {
    /// It is freed.
    Heap(Layout),
    /// It is unmapped: so many bytes. The file that it has for itself is kept, to give it to others.
    Mapping(usize, Option<OwnFd>),
    /// Nothing: it is the program's.
    Program,
    /// Nothing: it is another allocation's, whose handles are counted elsewhere.
    Other(Arc<Allocation>),
}

/// Memory shared by `DmaMemory` handles.
#[derive(Debug)]
struct Allocation {
    base: NonNull<u8>,
    owner: Owner,
}

impl Allocation {
    /// What becomes of the memory itself.
    fn origin(&self) -> &Owner {
        match &self.owner {
            Owner::Other(allocation) => allocation.origin(),
            owner => owner,
        }
    }
}

// SAFETY: the allocation is plain bytes without thread affinity; every access is volatile or
// atomic.
unsafe impl Send for Allocation {}
// SAFETY: no reference to the bytes exists; every access is volatile or atomic, as for `Send`.
unsafe impl Sync for Allocation {}

impl Drop for Allocation {
    fn drop(&mut self) {
        match self.owner {
            // SAFETY: `base` came from `alloc_zeroed` with this layout in `DmaMemory::new`, and the
            // last handle is dropped.
            Owner::Heap(layout) => unsafe { dealloc(self.base.as_ptr(), layout) },
            // SAFETY: `base` is that of a mapping of this length, and the last handle is dropped.
            Owner::Mapping(length, _) => unsafe { file::unmap(self.base, length) },
            Owner::Program | Owner::Other(_) => {}
        }
    }
}

/// A range of memory that a device may read and write at any time. Clones and slices share the
/// bytes.
#[derive(Clone, Debug)]
pub struct DmaMemory {
    allocation: Arc<Allocation>,
    offset: usize,
    length: usize,
}

impl DmaMemory {
    /// Allocates `length` zeroed bytes on a page boundary.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::BadArgument`] for a length of zero.
    pub fn new(length: usize) -> Result<Self> {
        if length == 0 {
            return Err(Error::BadArgument { what: "length of device memory", value: 0 });
        }
        let out_of_memory = Error::OutOfMemory { bytes: length };
        let size = length.checked_next_multiple_of(PAGE_BYTES).ok_or(out_of_memory.clone())?;
        let Ok(layout) = Layout::from_size_align(size, PAGE_BYTES) else {
            return Err(out_of_memory);
        };
        // SAFETY: the layout's size is not zero.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(out_of_memory)?;
        Ok(Self::of(base, Owner::Heap(layout), length))
    }

    /// Memory that the program has for good: statics, and allocations that are never freed.
    #[must_use]
    pub fn from_static(bytes: &'static [AtomicU8]) -> Self {
        let base = NonNull::from(bytes).cast();
        Self::of(base, Owner::Program, bytes.len())
    }

    fn of(base: NonNull<u8>, owner: Owner, length: usize) -> Self {
        Self { allocation: Arc::new(Allocation { base, owner }), offset: 0, length }
    }

    /// Takes memory of a program as it is: `length` bytes from `base` on, wherever they lie. It is
    /// never freed here.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for a null pointer, no bytes, or a range that wraps around.
    ///
    /// # Safety
    /// The bytes can be read and written as long as any handle of them is left, and the program
    /// expects that they change at any time: it has no reference that assumes otherwise.
    pub unsafe fn adopt(base: *mut u8, length: usize) -> Result<Self> {
        let address = base.addr() as u64;
        let what = "address of program memory";
        let base = NonNull::new(base).ok_or(Error::BadArgument { what, value: address })?;
        if isize::try_from(length).is_err()
            || length == 0
            || base.addr().get().checked_add(length).is_none()
        {
            let value = length as u64;
            return Err(Error::BadArgument { what: "length of program memory", value });
        }
        Ok(Self::of(base, Owner::Program, length))
    }

    /// Size in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether the range is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Virtual address of the first byte, as descriptors name it.
    #[must_use]
    #[inline]
    pub fn address(&self) -> u64 {
        self.allocation.base.as_ptr().wrapping_add(self.offset).addr() as u64
    }

    /// Whether the address of the byte at `offset` is a multiple of `alignment`.
    #[inline]
    fn is_aligned(&self, offset: usize, alignment: u64) -> bool {
        self.address().wrapping_add(offset as u64).is_multiple_of(alignment)
    }

    /// Bytes from the start of its page to the first byte.
    #[must_use]
    pub fn page_offset(&self) -> usize {
        self.allocation.base.as_ptr().wrapping_add(self.offset).addr() % PAGE_BYTES
    }

    /// Part of this memory.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if it is not inside.
    #[inline]
    pub fn slice(&self, offset: usize, length: usize) -> Result<Self> {
        match offset.checked_add(length) {
            Some(end) if end <= self.length => Ok(Self {
                allocation: Arc::clone(&self.allocation),
                offset: self.offset + offset,
                length,
            }),
            _ => Err(Error::OutOfRange { offset, length, size: self.length }),
        }
    }

    /// The same memory with a count of handles of its own: clones of it touch no count that clones
    /// of `self` touch, so that threads with one each do not take it from each other's caches.
    #[must_use]
    pub fn counted_apart(&self) -> Self {
        let base = self.allocation.base;
        let owner = Owner::Other(Arc::clone(&self.allocation));
        Self { allocation: Arc::new(Allocation { base, owner }), ..*self }
    }

    /// The first byte.
    #[inline]
    pub(crate) fn base(&self) -> NonNull<u8> {
        // SAFETY: `self.offset` is within the allocation.
        unsafe { self.allocation.base.add(self.offset) }
    }

    /// The line at `offset`, if it is inside and on a multiple of its size.
    #[must_use]
    #[inline]
    pub fn line(&self, offset: usize) -> Option<Line<'_>> {
        if offset > self.length || LINE_BYTES > self.length - offset {
            return None;
        }
        let base = self.at(offset, LINE_BYTES);
        let aligned = base.addr().get().is_multiple_of(LINE_BYTES);
        // SAFETY: inside, as was just checked, and aligned; `self` keeps it for the line's lifetime.
        aligned.then(|| unsafe { Line::new(base) })
    }

    /// Pointer to `length` bytes at `offset`, for a program in C that writes them itself. It is good as long
    /// as a handle of the memory is left.
    ///
    /// # Panics
    /// They are not inside.
    #[must_use]
    pub fn pointer(&self, offset: usize, length: usize) -> *mut u8 {
        self.at(offset, length).as_ptr()
    }

    /// Pointer to `length` bytes at `offset`; panics, like indexing, if they are not inside.
    #[inline]
    fn at(&self, offset: usize, length: usize) -> NonNull<u8> {
        assert!(
            offset <= self.length && length <= self.length - offset,
            "device memory of {} bytes accessed at {offset}, {length} bytes",
            self.length
        );
        // SAFETY: `self.offset + offset` is within the allocation: `slice` keeps `offset + length`
        // inside its parent, and the assertion keeps this access inside `self`.
        unsafe { self.allocation.base.add(self.offset + offset) }
    }

    /// Copies `data` into the memory at `offset`, in any order; what is stored later becomes visible
    /// later.
    ///
    /// # Panics
    /// If the range is not inside.
    #[inline]
    pub fn copy_from(&self, offset: usize, data: &[u8]) {
        let start = self.at(offset, data.len());
        if data.len() >= copy::OWN_COPY {
            // SAFETY: the range is inside, as was just checked, and a slice can be read.
            return unsafe { copy::copy(start, NonNull::from(data).cast(), data.len()) };
        }
        let head = start.align_offset(8).min(data.len());
        let (head_bytes, rest) = data.split_at(head);
        let (words, tail) = rest.as_chunks::<8>();
        for (i, byte) in head_bytes.iter().enumerate() {
            self.byte(offset + i).write(*byte);
        }
        if !words.is_empty() {
            let first = self.word(offset + head);
            let _ = self.at(offset + head, 8 * words.len());
            for (i, word) in words.iter().enumerate() {
                // SAFETY: `words.len()` double words from here on are inside, as was just checked.
                let to = unsafe { word_behind(first, i) };
                to.write(u64::from_ne_bytes(*word));
            }
        }
        for (i, byte) in tail.iter().enumerate() {
            self.byte(offset + head + 8 * words.len() + i).write(*byte);
        }
    }

    /// Stores `data` as a device does: its last word (status, phase) last and with release, as
    /// programs poll it.
    ///
    /// # Panics
    /// If the range is not inside.
    pub fn store_in_order(&self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        let place = self.address() + end as u64;
        if let Some((front, word)) = data.split_last_chunk::<8>()
            && place.is_multiple_of(8)
        {
            self.copy_from(offset, front);
            self.store_u64(end - 8, u64::from_le_bytes(*word));
        } else if let Some((front, word)) = data.split_last_chunk::<4>()
            && place.is_multiple_of(4)
        {
            self.copy_from(offset, front);
            self.store_u32(end - 4, u32::from_le_bytes(*word));
        } else {
            self.copy_from(offset, data);
        }
    }

    /// Copies memory at `offset` to `data`, in any order.
    ///
    /// # Panics
    /// If the range is not inside.
    #[inline]
    pub fn copy_to(&self, offset: usize, data: &mut [u8]) {
        let start = self.at(offset, data.len());
        if data.len() >= copy::OWN_COPY {
            let length = data.len();
            // SAFETY: the range is inside, as was just checked, and a slice can be written.
            return unsafe { copy::copy(NonNull::from(data).cast(), start, length) };
        }
        let head = start.align_offset(8).min(data.len());
        let (head_bytes, rest) = data.split_at_mut(head);
        let (words, tail) = rest.as_chunks_mut::<8>();
        for (i, byte) in head_bytes.iter_mut().enumerate() {
            *byte = self.byte(offset + i).read();
        }
        if !words.is_empty() {
            let first = self.word(offset + head);
            let _ = self.at(offset + head, 8 * words.len());
            for (i, word) in words.iter_mut().enumerate() {
                // SAFETY: `words.len()` double words from here on are inside, as was just checked.
                let from = unsafe { word_behind(first, i) };
                *word = from.read().to_ne_bytes();
            }
        }
        let tail_offset = offset + head + 8 * words.len();
        for (i, byte) in tail.iter_mut().enumerate() {
            *byte = self.byte(tail_offset + i).read();
        }
    }

    /// Copies memory of `source` to `offset`, in any order.
    ///
    /// # Panics
    /// If the range is not inside.
    pub fn copy_memory(&self, offset: usize, source: &Self) {
        self.copy_part(offset, source, 0, source.length);
    }

    /// Copies `length` bytes at `start` of `source` to `offset`, in any order; what is stored later
    /// becomes visible later.
    ///
    /// # Panics
    /// If a range is not inside.
    #[inline]
    pub fn copy_part(&self, offset: usize, source: &Self, start: usize, length: usize) {
        let (to, from) = (self.at(offset, length), source.at(start, length));
        // SAFETY: both ranges are inside, as was just checked.
        unsafe { copy::copy(to, from, length) };
    }

    /// Stores little-endian double words one behind the other, each as a whole, at rising addresses.
    ///
    /// # Panics
    /// If they are not inside or not aligned.
    #[inline]
    pub fn store_words(&self, offset: usize, words: &[u64]) {
        let base = self.at(offset, 8 * words.len()).cast::<u64>();
        assert!(base.is_aligned(), "double words at {offset} are not aligned");
        let store = |i: usize, word: u64| {
            // SAFETY: inside, as was just checked.
            let place = unsafe { base.add(i) };
            // SAFETY: valid and aligned; an atomic may be changed by others at any time.
            unsafe { AtomicU64::from_ptr(place.as_ptr()) }.store(word.to_le(), Ordering::Release);
        };
        // Of a whole line the compiler knows how many.
        match <&[u64; LINE_BYTES / 8]>::try_from(words) {
            Ok(line) => line.iter().enumerate().for_each(|(i, word)| store(i, *word)),
            Err(_) => words.iter().enumerate().for_each(|(i, word)| store(i, *word)),
        }
    }

    /// Stores the first `length` bytes of little-endian double words, as [`DmaMemory::copy_from`].
    ///
    /// # Panics
    /// If there are not so many, or the range is not inside.
    #[inline]
    pub fn store_front(&self, offset: usize, words: &[u64], length: usize) {
        if length == 4 && self.is_aligned(offset, 4) {
            #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
            return self.store_u32(offset, words[0] as u32);
        }
        if length.is_multiple_of(8) && self.is_aligned(offset, 8) {
            return self.store_words(offset, &words[..length / 8]);
        }
        for (i, word) in words[..length.div_ceil(8)].iter().enumerate() {
            let bytes = word.to_le_bytes();
            self.copy_from(offset + 8 * i, &bytes[..(length - 8 * i).min(8)]);
        }
    }

    /// Loads `length` bytes into the front of little-endian double words, as [`DmaMemory::copy_to`].
    ///
    /// # Panics
    /// If there are not so many, or the range is not inside.
    #[inline]
    pub fn load_front(&self, offset: usize, words: &mut [u64], length: usize) {
        if length == 4 && self.is_aligned(offset, 4) {
            words[0] = self.load_u32(offset).into();
            return;
        }
        if length.is_multiple_of(8) && self.is_aligned(offset, 8) {
            for (i, word) in words[..length / 8].iter_mut().enumerate() {
                *word = self.load_u64(offset + 8 * i);
            }
            return;
        }
        for (i, word) in words[..length.div_ceil(8)].iter_mut().enumerate() {
            let mut bytes = [0; 8];
            self.copy_to(offset + 8 * i, &mut bytes[..(length - 8 * i).min(8)]);
            *word = u64::from_le_bytes(bytes);
        }
    }

    /// The `length` bytes at `offset`, to be read as double words. None unless whole double words are
    /// inside.
    #[must_use]
    pub fn words(&self, offset: usize, length: usize) -> Option<Words<'_>> {
        let end = offset.checked_add(length.checked_next_multiple_of(8)?)?;
        if end > self.length {
            return None;
        }
        // SAFETY: inside, as was just checked; `self` keeps it for the lifetime.
        Some(unsafe { Words::new(self.at(offset, 0), length) })
    }

    /// The bytes at `offset`, copied.
    ///
    /// # Panics
    /// If the range is not inside.
    #[must_use]
    pub fn to_vec(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut data = vec![0; length];
        self.copy_to(offset, &mut data);
        data
    }

    /// Sets every byte.
    pub fn fill(&self, value: u8) {
        let page = [value; PAGE_BYTES];
        let mut offset = 0;
        while offset < self.length {
            let length = (self.length - offset).min(PAGE_BYTES);
            self.copy_from(offset, &page[..length]);
            offset += length;
        }
    }

    /// Reads a little-endian word that the other side stores with release.
    ///
    /// # Panics
    /// If the word is not inside or not aligned.
    #[must_use]
    #[inline]
    pub fn load_u32(&self, offset: usize) -> u32 {
        u32::from_le(self.atomic_u32(offset).load(Ordering::Acquire))
    }

    /// Stores a little-endian word; everything stored before is visible to a reader of the word.
    ///
    /// # Panics
    /// If the word is not inside or not aligned.
    #[inline]
    pub fn store_u32(&self, offset: usize, value: u32) {
        self.atomic_u32(offset).store(value.to_le(), Ordering::Release);
    }

    /// Reads a little-endian double word with acquire.
    ///
    /// # Panics
    /// If the word is not inside or not aligned.
    #[must_use]
    #[inline]
    pub fn load_u64(&self, offset: usize) -> u64 {
        u64::from_le(self.atomic_u64(offset).load(Ordering::Acquire))
    }

    /// Stores a little-endian double word with release.
    ///
    /// # Panics
    /// If the word is not inside or not aligned.
    #[inline]
    pub fn store_u64(&self, offset: usize, value: u64) {
        self.atomic_u64(offset).store(value.to_le(), Ordering::Release);
    }

    /// The line of device registers at `offset`, as [`DmaMemory::line`].
    #[must_use]
    pub fn register_line(&self, offset: usize) -> Option<RegisterLine> {
        self.line(offset).map(|line| RegisterLine {
            base: line.base.cast(),
            _allocation: Arc::clone(&self.allocation),
        })
    }

    /// Stores a little-endian double word that is a register of a device: what was stored before
    /// is visible to the device when it sees it.
    ///
    /// # Panics
    /// If the double word is not inside or not aligned.
    #[inline]
    pub fn store_register(&self, offset: usize, value: u64) {
        let pointer = self.at(offset, 8).cast::<u64>();
        assert!(pointer.is_aligned(), "register at {offset} is not aligned");
        // SAFETY: 8 valid, aligned bytes that `self` keeps alive.
        store_register(unsafe { VolatilePtr::new(pointer) }, value);
    }

    /// The same of words one behind the other; when this returns, no later store overtakes them,
    /// also where the processor combines writes.
    ///
    /// # Panics
    /// As [`DmaMemory::store_register`].
    pub fn store_registers(&self, offset: usize, values: &[u64]) {
        for (i, value) in values.iter().enumerate() {
            self.store_register(offset + 8 * i, *value);
        }
        after_registers();
    }

    #[inline]
    fn byte(&self, offset: usize) -> VolatilePtr<'_, u8> {
        // SAFETY: `at` gives a valid byte of an allocation that `self` keeps alive; bytes need no
        // alignment.
        unsafe { VolatilePtr::new(self.at(offset, 1)) }
    }

    #[inline]
    fn word(&self, offset: usize) -> VolatilePtr<'_, u64> {
        let pointer = self.at(offset, 8).cast::<u64>();
        debug_assert!(pointer.is_aligned());
        // SAFETY: `at` gives 8 valid bytes of an allocation that `self` keeps alive; callers
        // aligned the offset.
        unsafe { VolatilePtr::new(pointer) }
    }

    /// The word at `offset`, in the order of this machine's bytes, for words that several processes
    /// change or sleep on.
    ///
    /// # Panics
    /// If the word is not inside or not aligned.
    #[must_use]
    #[inline]
    pub fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
        let pointer = self.at(offset, 4).cast::<u32>();
        assert!(pointer.is_aligned(), "word at {offset} is not aligned");
        // SAFETY: 4 valid, aligned bytes that live as long as `self`; an atomic may be changed by
        // others at any time.
        unsafe { AtomicU32::from_ptr(pointer.as_ptr()) }
    }

    /// The double word at `offset`, as [`DmaMemory::atomic_u32`].
    ///
    /// # Panics
    /// If the double word is not inside or not aligned.
    #[must_use]
    #[inline]
    pub fn atomic_u64(&self, offset: usize) -> &AtomicU64 {
        let pointer = self.at(offset, 8).cast::<u64>();
        assert!(pointer.is_aligned(), "double word at {offset} is not aligned");
        // SAFETY: 8 valid, aligned bytes that live as long as `self`; an atomic may be changed by
        // others at any time.
        unsafe { AtomicU64::from_ptr(pointer.as_ptr()) }
    }
}

/// The double word that is `count` behind another one.
///
/// # Safety
/// Both are valid, and in one allocation.
unsafe fn word_behind(word: VolatilePtr<'_, u64>, count: usize) -> VolatilePtr<'_, u64> {
    // SAFETY: as the caller says.
    let pointer = unsafe { word.as_raw_ptr().add(count) };
    // SAFETY: the same; it is aligned as the other one is.
    unsafe { VolatilePtr::new(pointer) }
}
