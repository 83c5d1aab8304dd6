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
    /// Descriptors in it that are posted and not taken.
    posted: usize,
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
        Some(Self { handle, live: handle, memory, base, address, last, readable, posted: 0 })
    }

    /// How a doorbell names the descriptor at `address`.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "below REACH")]
    pub(super) fn post(&self, address: u64, segments: u32) -> Post {
        let line = ((address - (self.address & !(ALIGNMENT - 1))) / ALIGNMENT) as u32;
        Post { address, region: self.handle, line, segments }
    }
}

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
struct Entries([Entry; 8]);

/// Where a descriptor lies that may be entered. Good until another region is met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Located {
    base: NonNull<u8>,
    region: usize,
}

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
    /// Front of the oldest descriptor, or [`NEVER_DONE`].
    oldest: NonNull<u8>,
    /// Front of the descriptor that was posted last, unless it was taken.
    last: Option<NonNull<u8>>,
    /// Place of the region that was used last.
    recent: usize,
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
            entries: entries.into_boxed_slice(),
            oldest: NonNull::from_ref(&NEVER_DONE).cast(),
            last: None,
            recent: 0,
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

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "masked")]
    fn entry(&self, number: u64) -> Entry {
        let place = number as usize & (8 * self.entries.len() - 1);
        self.entries[place / 8].0[place % 8]
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
        let recent = self.regions.get(self.recent).filter(|region| region.live == handle);
        match recent {
            Some(_) if handle != NONE => Some(self.recent),
            _ => self.search(handle),
        }
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
        let (recent, full) = (self.recent, self.regions.len() >= KEPT);
        let mut places = self.regions.iter().enumerate();
        // The one that was used last may be needed for the same post.
        let place = places.find(|(place, region)| {
            region.posted == 0 && (region.live == NONE || full && *place != recent)
        });
        match place.map(|(place, _)| place) {
            Some(place) => self.regions[place] = region,
            None => self.regions.push(region),
        }
        true
    }

    /// Forgets the regions of which `which` is true. Their memory is kept until another region takes
    /// their place, which it does not while something in them is posted.
    pub(super) fn forget(&mut self, which: impl Fn(Handle) -> bool) {
        for region in self.regions.iter_mut().filter(|region| which(region.live)) {
            region.live = NONE;
        }
    }

    /// Locates the descriptor at a virtual address of a region that was met.
    #[inline(always)]
    pub(super) fn locate(&mut self, address: u64, handle: Handle) -> Result<Located, PostError> {
        let place = self.find(handle).ok_or(PostError::UnknownRegion(handle))?;
        self.recent = place;
        let region = &self.regions[place];
        let distance = address.wrapping_sub(region.address);
        if distance > region.last || !address.is_multiple_of(ALIGNMENT) {
            return Err(PostError::Outside(address));
        }
        if self.posted == self.full_at {
            return Err(PostError::Full);
        }
        #[expect(clippy::cast_possible_truncation, reason = "below the length of the memory")]
        // SAFETY: a whole line from there on lies inside the memory, by the comparison above.
        let base = unsafe { region.base.add(distance as usize) };
        Ok(Located { base, region: place })
    }

    /// Front and region of a descriptor that was located.
    #[inline(always)]
    pub(super) fn located(&self, at: Located) -> (Front<'_>, &Region) {
        // SAFETY: `locate` checked the line, and no other region was met since.
        (unsafe { self.front_of(at.base) }, &self.regions[at.region])
    }

    /// Enters a descriptor that was located as the newest.
    #[inline(always)]
    pub(super) fn enter(&mut self, at: Located, room: u32) {
        let Located { base, region } = at;
        #[expect(clippy::cast_possible_truncation, reason = "masked; few regions")]
        {
            let place = self.posted as usize & (8 * self.entries.len() - 1);
            let entry = Entry { front: base, region: region as u32, room };
            self.entries[place / 8].0[place % 8] = entry;
        }
        self.regions[region].posted += 1;
        if self.is_empty() {
            self.oldest = base;
        }
        self.last = Some(base);
        self.posted += 1;
    }

    /// Takes the oldest descriptor out, if there is one.
    #[inline(always)]
    pub(super) fn leave(&mut self) {
        if self.is_empty() {
            return;
        }
        let entry = self.entry(self.taken);
        self.regions[entry.region as usize].posted -= 1;
        self.taken += 1;
        self.full_at += 1;
        if self.is_empty() {
            (self.oldest, self.last) = (NonNull::from_ref(&NEVER_DONE).cast(), None);
        } else {
            self.oldest = self.entry(self.taken).front;
        }
    }
}
