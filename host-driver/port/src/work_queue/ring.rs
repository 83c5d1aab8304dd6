//! The descriptors of a queue that are posted and not taken, and the regions that they lie in.
//!
//! A descriptor's place is checked once, when it is entered, and kept as a pointer. The pointer is
//! good until the descriptor is taken, since its region counts it and keeps its memory meanwhile.
#![expect(unsafe_code, reason = "pointers to descriptors, checked when they are entered")]

use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU8;

use nic_regs::desc::ALIGNMENT;
use nic_regs::tpt::Handle;

use super::PostError;
use super::slot::Front;
use crate::doorbell::Post;
use crate::memory::{DmaMemory, LINE_BYTES, Line};

/// Regions that are kept though nothing in them is posted.
const KEPT: usize = 8;
/// Distance from a region's base that a [`Post`] can express, in bytes.
const REACH: u64 = 1 << 32;
/// Handle of no region.
const NONE: Handle = Handle(0);

/// The front of a descriptor that is never done.
#[repr(align(64))]
struct NeverDone(#[expect(dead_code, reason = "used by pointer")] [AtomicU8; LINE_BYTES]);
static NEVER_DONE: NeverDone = NeverDone([const { AtomicU8::new(0) }; LINE_BYTES]);

/// A region that a descriptor of the queue, or its data, lay in.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) handle: Handle,
    /// The handle, or [`NONE`] once the region was forgotten: only what was posted before is in it.
    live: Handle,
    /// Counted apart, so that queues of several threads share no count.
    pub(super) memory: DmaMemory,
    /// First byte of `memory`.
    base: NonNull<u8>,
    /// Its virtual address.
    pub(super) address: u64,
    /// Distance of the last place for a descriptor from the first byte.
    last: u64,
    /// The VI may read it.
    pub(super) readable: bool,
}

impl Region {
    /// None if no descriptor fits into it, or if it is too long.
    fn new(handle: Handle, memory: &DmaMemory, readable: bool) -> Option<Self> {
        let address = memory.address();
        let last = memory.len().checked_sub(LINE_BYTES)? as u64;
        if handle == NONE || address % ALIGNMENT + last >= REACH {
            return None;
        }
        let (base, memory) = (memory.base(), memory.counted_apart());
        Some(Self { handle, live: handle, memory, base, address, last, readable })
    }

    /// How a doorbell names the descriptor at `address`.
    #[inline(always)]
    pub(super) fn post(&self, address: u64, segments: u32) -> Post {
        post(self.handle, self.address, address, segments)
    }
}

/// How a doorbell names the descriptor at `address`, in a region that begins at `start`.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "below REACH")]
fn post(region: Handle, start: u64, address: u64, segments: u32) -> Post {
    let line = ((address - (start & !(ALIGNMENT - 1))) / ALIGNMENT) as u32;
    Post { address, region, line, segments }
}

/// What posting needs of the region that was used last: a copy, so that no list is looked at.
#[derive(Clone, Copy, Debug)]
struct Recent {
    handle: Handle,
    place: u32,
    base: NonNull<u8>,
    address: u64,
    last: u64,
}

/// No region: no aligned address lies in it.
const NO_REGION: Recent =
    Recent { handle: NONE, place: u32::MAX, base: NonNull::dangling(), address: 1, last: 0 };

/// A descriptor that is posted and not taken.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Its first line, in the memory of its region.
    front: NonNull<u8>,
    /// Place of its region.
    region: u32,
    /// Bytes that it may use; 0 if that is not known.
    room: u32,
}

/// Entries of a line of a cache, apart from what others write: processors fetch lines in pairs.
#[derive(Clone, Copy, Debug)]
#[repr(align(128))]
struct Entries(#[expect(dead_code, reason = "used one by one, by pointer")] [Entry; 8]);

/// Where a descriptor lies that may be entered, in the region that was used last. Good until another
/// one is located.
#[derive(Clone, Copy, Debug)]
pub(super) struct Located(NonNull<u8>);

/// A descriptor that is posted and not taken, with its region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted<'a> {
    pub(super) front: Front<'a>,
    pub(super) region: &'a Region,
    pub(super) address: u64,
    pub(super) room: u32,
}

/// Descriptors numbered `taken` up to `posted`.
#[derive(Debug)]
pub(super) struct DescriptorRing {
    pub(super) posted: u64,
    pub(super) taken: u64,
    /// Value of `posted` at which the queue is full.
    full_at: u64,
    /// A power of two of them; a descriptor's is at its number modulo their count.
    entries: Box<[Entries]>,
    /// Their count less one.
    mask: usize,
    /// Front of the oldest descriptor, or [`NEVER_DONE`].
    oldest: NonNull<u8>,
    /// Front of the descriptor that was posted last, unless it was taken.
    last: Option<NonNull<u8>>,
    recent: Recent,
    regions: Vec<Region>,
}

// SAFETY: the pointers lead into the memory of `regions`, or to a static, both of which any thread
// may use.
unsafe impl Send for DescriptorRing {}

impl DescriptorRing {
    /// An empty ring for at most `limit` descriptors.
    pub(super) fn new(limit: usize) -> Self {
        let none = Entry { front: NonNull::dangling(), region: 0, room: 0 };
        let lines = limit.next_power_of_two().max(8) / 8;
        let entries = vec![Entries([none; 8]); if limit == 0 { 0 } else { lines }];
        Self {
            posted: 0,
            taken: 0,
            full_at: limit as u64,
            mask: (8 * lines) - 1,
            entries: entries.into_boxed_slice(),
            oldest: NonNull::from_ref(&NEVER_DONE).cast(),
            last: None,
            recent: NO_REGION,
            regions: Vec::new(),
        }
    }

    #[inline(always)]
    pub(super) const fn is_empty(&self) -> bool {
        self.posted == self.taken
    }

    pub(super) fn footprint(&self) -> Range<usize> {
        let range = self.entries.as_ptr_range();
        range.start.addr()..range.end.addr()
    }

    /// Where the entry of a descriptor is. Not to be asked of a ring without entries.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "masked")]
    fn entry_at(&self, number: u64) -> *const Entry {
        let entries = self.entries.as_ptr().cast::<Entry>();
        // SAFETY: `mask` is the number of entries less one.
        unsafe { entries.add(number as usize & self.mask) }
    }

    #[inline(always)]
    fn entry(&self, number: u64) -> Entry {
        debug_assert!(!self.entries.is_empty());
        // SAFETY: an entry, which nobody else writes.
        unsafe { *self.entry_at(number) }
    }

    /// The front of a descriptor.
    ///
    /// # Safety
    /// `base` is that of an entry which is posted and not taken, of a descriptor that was located,
    /// or of [`NEVER_DONE`].
    #[inline(always)]
    unsafe fn front_of(&self, base: NonNull<u8>) -> Front<'_> {
        // SAFETY: the line was checked when it was entered, and `regions` keeps its memory.
        Front(unsafe { Line::new(base) })
    }

    /// Front and address of the oldest descriptor; of one that is never done if there is none.
    #[inline(always)]
    pub(super) fn oldest(&self) -> (Front<'_>, u64) {
        // SAFETY: as `oldest` is kept.
        (unsafe { self.front_of(self.oldest) }, self.oldest.addr().get() as u64)
    }

    /// Front of the descriptor that was posted last, unless it was taken.
    #[inline(always)]
    pub(super) fn last(&self) -> Option<Front<'_>> {
        // SAFETY: it was not taken.
        self.last.map(|last| unsafe { self.front_of(last) })
    }

    /// The descriptor with this number, which is posted and not taken.
    pub(super) fn at(&self, number: u64) -> Posted<'_> {
        assert!(number.wrapping_sub(self.taken) < self.posted - self.taken, "it is posted");
        let Entry { front, region, room } = self.entry(number);
        let address = front.addr().get() as u64;
        // SAFETY: it is posted and not taken.
        let front = unsafe { self.front_of(front) };
        Posted { front, region: &self.regions[region as usize], address, room }
    }

    /// The region with this handle, if it was met.
    #[inline(always)]
    pub(super) fn find(&self, handle: Handle) -> Option<usize> {
        if self.recent.handle == handle && handle != NONE {
            return Some(self.recent.place as usize);
        }
        self.search(handle)
    }

    #[inline(never)]
    fn search(&self, handle: Handle) -> Option<usize> {
        let known = |region: &Region| region.live == handle && handle != NONE;
        self.regions.iter().position(known)
    }

    /// The region at a place that [`DescriptorRing::find`] returned.
    #[inline(always)]
    pub(super) fn region(&self, place: usize) -> &Region {
        &self.regions[place]
    }

    /// Meets a region, which takes the place of one in which nothing is posted. False if no
    /// descriptor fits into it, or if it is too long.
    pub(super) fn learn(&mut self, handle: Handle, memory: &DmaMemory, readable: bool) -> bool {
        let Some(region) = Region::new(handle, memory, readable) else { return false };
        let (recent, full) = (self.recent.place as usize, self.regions.len() >= KEPT);
        // The one that was used last may be needed for the same post.
        let place = (0..self.regions.len()).find(|place| {
            let replaced = self.regions[*place].live == NONE || full && *place != recent;
            replaced && !self.has_posted(*place)
        });
        match place {
            Some(place) => self.regions[place] = region,
            None => self.regions.push(region),
        }
        true
    }

    /// Whether a descriptor in the region at `place` is posted and not taken.
    fn has_posted(&self, place: usize) -> bool {
        (self.taken..self.posted).any(|number| self.entry(number).region as usize == place)
    }

    /// Forgets the regions of which `which` is true. Their memory is kept until another region takes
    /// their place, which it does not while something in them is posted.
    pub(super) fn forget(&mut self, which: impl Fn(Handle) -> bool) {
        for region in self.regions.iter_mut().filter(|region| which(region.live)) {
            region.live = NONE;
        }
        self.recent = NO_REGION;
    }

    /// Locates the descriptor at a virtual address of a region that was met.
    #[inline(always)]
    pub(super) fn locate(&mut self, address: u64, handle: Handle) -> Result<Located, PostError> {
        if self.recent.handle != handle {
            self.recall(handle)?;
        }
        let Recent { base, address: start, last, .. } = self.recent;
        let distance = address.wrapping_sub(start);
        if distance > last || !address.is_multiple_of(ALIGNMENT) {
            return Err(PostError::Outside(address));
        }
        if self.posted == self.full_at {
            return Err(PostError::Full);
        }
        #[expect(clippy::cast_possible_truncation, reason = "below the length of the memory")]
        // SAFETY: a whole line from there on lies inside the memory, by the comparison above.
        let front = unsafe { base.add(distance as usize) };
        Ok(Located(front))
    }

    /// Makes a region that was met the one that was used last.
    #[cold]
    fn recall(&mut self, handle: Handle) -> Result<(), PostError> {
        let place = self.search(handle).ok_or(PostError::UnknownRegion(handle))?;
        let Region { base, address, last, .. } = self.regions[place];
        #[expect(clippy::cast_possible_truncation, reason = "few regions")]
        let place = place as u32;
        self.recent = Recent { handle, place, base, address, last };
        Ok(())
    }

    /// Front of a descriptor that was located.
    #[inline(always)]
    pub(super) fn located(&self, at: Located) -> Front<'_> {
        // SAFETY: `locate` checked the line, and no other one was located since.
        unsafe { self.front_of(at.0) }
    }

    /// How a doorbell names the descriptor at `address` that was located.
    #[inline(always)]
    pub(super) fn post(&self, address: u64, segments: u32) -> Post {
        post(self.recent.handle, self.recent.address, address, segments)
    }

    /// Enters a descriptor that was located as the newest.
    #[inline(always)]
    pub(super) fn enter(&mut self, at: Located, room: u32) {
        let entry = Entry { front: at.0, region: self.recent.place, room };
        // SAFETY: an entry, which nobody else uses while `self` is borrowed.
        unsafe { *self.entry_at(self.posted).cast_mut() = entry };
        if self.is_empty() {
            self.oldest = at.0;
        }
        self.last = Some(at.0);
        self.posted += 1;
    }

    /// Takes the oldest descriptor out, if there is one.
    #[inline(always)]
    pub(super) fn leave(&mut self) {
        if self.is_empty() {
            return;
        }
        self.taken += 1;
        self.full_at += 1;
        if self.is_empty() {
            (self.oldest, self.last) = (NonNull::from_ref(&NEVER_DONE).cast(), None);
        } else {
            self.oldest = self.entry(self.taken).front;
        }
    }
}
