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
use crate::error::Error;
use crate::memory::{DmaMemory, LINE_BYTES, Line, Words};

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
    readable: bool,
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
    pub(super) fn post(&self, address: u64, segments: u32) -> Post {
        post(self.handle, first_line(self.address), address, segments)
    }
}

/// Address from which a doorbell counts lines in a region at `address`.
const fn first_line(address: u64) -> u64 {
    address & !(ALIGNMENT - 1)
}

/// How a doorbell names the descriptor at `address`.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "below REACH")]
fn post(region: Handle, first_line: u64, address: u64, segments: u32) -> Post {
    let line = ((address - first_line) / ALIGNMENT) as u32;
    Post { address, region, line, segments }
}

/// What posting needs of the region in which a descriptor lay last: a copy, so that no list is looked
/// at.
#[derive(Clone, Copy, Debug)]
struct Recent {
    handle: Handle,
    place: u32,
    base: NonNull<u8>,
    address: u64,
    first_line: u64,
    last: u64,
}

/// No region: no aligned address lies in it.
const NO_REGION: Recent = Recent {
    handle: NONE,
    place: u32::MAX,
    base: NonNull::dangling(),
    address: 1,
    first_line: 0,
    last: 0,
};

/// The same of the region in which data lay last that may travel with a doorbell.
#[derive(Clone, Copy, Debug)]
struct RecentData {
    handle: Handle,
    base: NonNull<u8>,
    address: u64,
    /// Its length; 0 if the VI may not read it.
    readable: u64,
}

/// No region: no data lies in it.
const NO_DATA: RecentData =
    RecentData { handle: NONE, base: NonNull::dangling(), address: 0, readable: 0 };

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

/// Entries that a ring begins with. Most queues never have more descriptors.
const FIRST: usize = 64;

/// Entries for so many descriptors, and their count less one.
fn entries(count: usize) -> (Box<[Entries]>, usize) {
    let none = Entry { front: NonNull::dangling(), region: 0, room: 0 };
    let lines = count.next_power_of_two().max(8) / 8;
    let entries = vec![Entries([none; 8]); if count == 0 { 0 } else { lines }];
    (entries.into_boxed_slice(), (8 * lines) - 1)
}

/// Where a descriptor lies that may be entered, in the region that was used last. Good until another
/// region is recalled, learned or forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Located(NonNull<u8>);

/// Where data lies that may travel with a doorbell. Good as long as [`Located`].
#[derive(Clone, Copy, Debug)]
pub(super) struct LocatedData(NonNull<u8>, usize);

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
    /// Most descriptors.
    limit: usize,
    /// Value of `posted` at which there is no entry left. The queue is full if there are as many as the
    /// limit, and has more made otherwise.
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
    recent_data: RecentData,
    regions: Vec<Region>,
}

// SAFETY: the pointers lead into the memory of `regions`, or to a static, both of which any thread
// may use.
unsafe impl Send for DescriptorRing {}

impl DescriptorRing {
    /// An empty ring for at most `limit` descriptors.
    pub(super) fn new(limit: usize) -> Self {
        let first = limit.min(FIRST);
        let (entries, mask) = entries(first);
        Self {
            posted: 0,
            taken: 0,
            limit,
            full_at: first as u64,
            mask,
            entries,
            oldest: NonNull::from_ref(&NEVER_DONE).cast(),
            last: None,
            recent: NO_REGION,
            recent_data: NO_DATA,
            regions: Vec::new(),
        }
    }

    /// The error of a queue that is full.
    #[cold]
    pub(super) const fn full(&self) -> Error {
        Error::Exhausted { what: "place in the work queue", limit: self.limit }
    }

    /// Makes more entries. False if the queue is full.
    #[cold]
    pub(super) fn grow(&mut self) -> bool {
        let count = usize::try_from(self.full_at - self.taken).unwrap_or(usize::MAX);
        if count >= self.limit {
            return false;
        }
        // Whoever needs more has use for all, and pays once.
        let more = self.limit;
        let kept: Vec<Entry> = (self.taken..self.posted).map(|number| self.entry(number)).collect();
        (self.entries, self.mask) = entries(more);
        for (number, entry) in (self.taken..).zip(kept) {
            self.set_entry(number, entry);
        }
        self.full_at = self.taken + more as u64;
        true
    }

    #[inline(always)]
    pub(super) const fn is_empty(&self) -> bool {
        self.posted == self.taken
    }

    pub(super) fn footprint(&self) -> Range<usize> {
        let range = self.entries.as_ptr_range();
        range.start.addr()..range.end.addr()
    }

    /// Index of a descriptor's entry. Not to be asked of a ring without entries.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "masked")]
    const fn index(&self, number: u64) -> usize {
        number as usize & self.mask
    }

    #[inline(always)]
    fn entry(&self, number: u64) -> Entry {
        debug_assert!(!self.entries.is_empty());
        let entries = self.entries.as_ptr().cast::<Entry>();
        // SAFETY: `mask` is the number of entries less one.
        let entry = unsafe { entries.add(self.index(number)) };
        // SAFETY: an entry, which nobody else writes.
        unsafe { *entry }
    }

    #[inline(always)]
    fn set_entry(&mut self, number: u64, entry: Entry) {
        debug_assert!(!self.entries.is_empty());
        let index = self.index(number);
        let entries = self.entries.as_mut_ptr().cast::<Entry>();
        // SAFETY: `mask` is the number of entries less one.
        let place = unsafe { entries.add(index) };
        // SAFETY: an entry, which nobody else uses while `self` is borrowed.
        unsafe { *place = entry };
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
        self.recent_data = NO_DATA;
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
        (self.recent, self.recent_data) = (NO_REGION, NO_DATA);
    }

    /// Makes a region that was met the one that was used last: for data, and for descriptors too if
    /// the handle is that of the next one. False if it was not met.
    #[cold]
    pub(super) fn recall(&mut self, wanted: Handle, descriptor: Handle) -> bool {
        let known = |region: &Region| region.live == wanted && wanted != NONE;
        let Some(place) = self.regions.iter().position(known) else { return false };
        let Region { handle, base, address, last, readable, ref memory, .. } = self.regions[place];
        let readable = if readable { memory.len() as u64 } else { 0 };
        #[expect(clippy::cast_possible_truncation, reason = "few regions")]
        let place = place as u32;
        self.recent_data = RecentData { handle, base, address, readable };
        if wanted == descriptor {
            let first_line = first_line(address);
            self.recent = Recent { handle, place, base, address, first_line, last };
        }
        true
    }

    /// Locates the descriptor at a virtual address of the region that was used last.
    #[inline(always)]
    pub(super) fn locate(&self, address: u64, handle: Handle) -> Result<Located, PostError> {
        if self.recent.handle != handle {
            return Err(PostError::UnknownRegion(handle));
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

    /// Locates data of the region in which data lay last. None unless the VI may read it, in whole
    /// double words.
    #[inline(always)]
    pub(super) fn locate_data(
        &self,
        address: u64,
        length: usize,
        handle: Handle,
    ) -> Result<Option<LocatedData>, PostError> {
        if length == 0 {
            return Ok(Some(LocatedData(NonNull::dangling(), 0)));
        }
        if self.recent_data.handle != handle {
            return Err(PostError::UnknownRegion(handle));
        }
        let RecentData { base, address: start, readable, .. } = self.recent_data;
        let distance = address.wrapping_sub(start);
        let end = distance.checked_add((length as u64 + 7) & !7);
        if end.is_none_or(|end| end > readable) {
            return Ok(None);
        }
        #[expect(clippy::cast_possible_truncation, reason = "below the length of the memory")]
        // SAFETY: inside the memory, by the comparison above.
        let base = unsafe { base.add(distance as usize) };
        Ok(Some(LocatedData(base, length)))
    }

    /// Data that was located.
    #[inline(always)]
    pub(super) fn located_data(&self, LocatedData(base, length): LocatedData) -> Words<'_> {
        // SAFETY: `locate_data` checked it, and `regions` keeps its memory.
        unsafe { Words::new(base, length) }
    }

    /// Front of a descriptor that was located.
    #[inline(always)]
    pub(super) fn located(&self, at: Located) -> Front<'_> {
        // SAFETY: `locate` checked the line, and `regions` keeps its memory.
        unsafe { self.front_of(at.0) }
    }

    /// Links the last descriptor to one that was located, and enters that as the newest. Returns how
    /// a doorbell names it.
    #[inline(always)]
    pub(super) fn enter(
        &mut self,
        at: Located,
        address: u64,
        handle: Handle,
        segments: u32,
        room: u32,
    ) -> Post {
        let first_line = self.recent.first_line;
        if let Some(last) = self.last() {
            last.link(address, handle);
        }
        self.located(at).clear_status();
        self.enter_unlinked(at, room);
        post(handle, first_line, address, segments)
    }

    /// Enters a descriptor that was located as the newest, without a link to it.
    #[inline(always)]
    pub(super) fn enter_unlinked(&mut self, at: Located, room: u32) {
        let entry = Entry { front: at.0, region: self.recent.place, room };
        self.set_entry(self.posted, entry);
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
