//! The posted descriptors of a queue, and the regions that they lie in: who posts need not look in a
//! table that others write.
//!
//! Posting and taking are the fast path of the whole system, so where a descriptor lies is checked
//! once, when it is entered, and kept as a pointer.
#![expect(unsafe_code, reason = "pointers to descriptors, checked when they are entered")]

use core::ptr::NonNull;

use nic_regs::desc::ALIGNMENT;
use nic_regs::doorbell::Token;
use nic_regs::tpt::Handle;

use super::slot::Front;
use crate::dma::{DmaMemory, LINE_BYTES, Line};

/// Regions that are kept though nothing in them is posted.
const KEPT: usize = 8;
/// Bytes of a region that tokens can speak of.
const REACH: u64 = ALIGNMENT << Token::OFFSET_BITS;

/// A region.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) handle: Handle,
    /// A handle of its own to the memory, so that queues of several threads share no count.
    pub(super) memory: DmaMemory,
    /// First byte, as `memory` has it.
    base: NonNull<u8>,
    /// Virtual address of the first byte.
    pub(super) address: u64,
    /// Distance of the last line from the first byte.
    last: u64,
    /// Where tokens count from: the base rounded down to 64 bytes.
    origin: u64,
    /// The region's part of a token.
    bits: u64,
    /// The VI that posts may read its bytes.
    pub(super) readable: bool,
    /// Descriptors in it that are posted.
    posted: u32,
}

// SAFETY: `base` is that of `memory`, which may be used by any thread; it is only used for lines of
// that memory.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    fn new(handle: Handle, memory: &DmaMemory, readable: bool) -> Option<Self> {
        let address = memory.address();
        let last = memory.len().checked_sub(LINE_BYTES)? as u64;
        let origin = address & !(ALIGNMENT - 1);
        if address - origin + last >= REACH {
            return None;
        }
        let base = memory.base();
        let bits = u64::from(handle.index()) << Token::REGION_LSB;
        let memory = memory.counted_apart();
        Some(Self { handle, memory, base, address, last, origin, bits, readable, posted: 0 })
    }

    /// Region and place of a descriptor, as a token has them.
    #[inline]
    pub(super) const fn bits_of(&self, address: u64) -> u64 {
        self.bits | address.wrapping_sub(self.origin) << SHIFT
    }
}

/// A posted descriptor.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Its first line, in the memory of its region.
    front: NonNull<u8>,
    /// Room that it has, in bytes, as far as that is known.
    room: u32,
    /// Place of its region, whose `posted` counts it.
    region: u32,
}

// SAFETY: a pointer into the memory of a region, as in `Region`.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

/// Descriptors numbered `taken` up to `posted`, each at its number modulo the ring's length.
#[derive(Debug)]
pub(super) struct Ring {
    entries: Box<[Entry]>,
    limit: u64,
    pub(super) posted: u64,
    pub(super) taken: u64,
    regions: Vec<Region>,
    /// The region that was met last, at hand.
    recent: Recent,
    /// The front of the descriptor that was posted last, if it was not taken.
    last: Option<NonNull<u8>>,
}

/// What posting needs of the region that was met last. Its handle is 0 if there is none.
#[derive(Clone, Copy, Debug)]
struct Recent {
    handle: Handle,
    place: u32,
    base: NonNull<u8>,
    address: u64,
    last: u64,
    /// What is added to an address, shifted, for the region's part of a token.
    bias: u64,
    /// Descriptors entered that the region's count does not include yet.
    entered: u32,
}

const NONE: Recent = Recent {
    handle: Handle(0),
    place: 0,
    base: NonNull::dangling(),
    address: 0,
    last: 0,
    bias: 0,
    entered: 0,
};
/// How far an address is shifted in a token.
const SHIFT: u32 = Token::OFFSET_LSB - ALIGNMENT.trailing_zeros();

// SAFETY: `base` is that of a region in the same ring, as in `Region`; `last` is one of its lines.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

/// What is posted, seen from its queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted<'a> {
    pub(super) front: Front<'a>,
    pub(super) region: &'a Region,
    pub(super) address: u64,
    pub(super) room: u32,
}

impl Ring {
    /// Room for `limit` descriptors.
    pub(super) fn new(limit: usize) -> Self {
        let length = if limit == 0 { 0 } else { limit.next_power_of_two() };
        let none = Entry { front: NonNull::dangling(), room: 0, region: 0 };
        let entries = vec![none; length].into_boxed_slice();
        let regions = Vec::with_capacity(KEPT);
        let limit = limit as u64;
        Self { entries, limit, posted: 0, taken: 0, regions, recent: NONE, last: None }
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.posted == self.taken
    }

    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.posted - self.taken >= self.limit
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the ring is far smaller")]
    fn entry(&self, number: u64) -> Entry {
        self.entries[number as usize & (self.entries.len() - 1)]
    }

    /// The descriptor with this number, which is posted and not taken.
    pub(super) fn at(&self, number: u64) -> Posted<'_> {
        let entry = self.entry(number);
        let region = &self.regions[entry.region as usize];
        let address = self.address(number);
        Posted { front: self.front(number), region, address, room: entry.room }
    }

    /// Its virtual address, which is where it lies in this process.
    #[inline]
    pub(super) fn address(&self, number: u64) -> u64 {
        self.entry(number).front.addr().get() as u64
    }

    /// Its front. Posted and not taken, as above.
    #[inline]
    pub(super) fn front(&self, number: u64) -> Front<'_> {
        assert!(number.wrapping_sub(self.taken) < self.posted - self.taken, "it is posted");
        // SAFETY: `enter` was given a spot in the memory of a region of this ring, which has been
        // kept since, because its count includes this entry.
        Front(unsafe { Line::new(self.entry(number).front) })
    }

    /// The front of the descriptor that was posted last, if it was not taken.
    #[inline]
    pub(super) fn last(&self) -> Option<Front<'_>> {
        // SAFETY: entered and not taken, so its region keeps the memory, as in `front`.
        self.last.map(|last| Front(unsafe { Line::new(last) }))
    }

    /// Place of a region that was met.
    #[inline]
    pub(super) fn find(&mut self, handle: Handle) -> Option<usize> {
        if self.recent.handle == handle && handle.0 != 0 {
            return Some(self.recent.place as usize);
        }
        let found = self.regions.iter().position(|region| region.handle == handle)?;
        self.set_recent(found);
        Some(found)
    }

    /// Counts what was entered, and has no region at hand.
    fn fold(&mut self) {
        if let Some(region) = self.regions.get_mut(self.recent.place as usize) {
            region.posted = region.posted.wrapping_add(self.recent.entered);
        }
        self.recent = NONE;
    }

    fn set_recent(&mut self, place: usize) {
        self.fold();
        let region = &self.regions[place];
        #[expect(clippy::cast_possible_truncation, reason = "few regions")]
        let place = place as u32;
        self.recent = Recent {
            handle: region.handle,
            place,
            base: region.base,
            address: region.address,
            last: region.last,
            bias: region.bits.wrapping_sub(region.origin << SHIFT),
            entered: 0,
        };
    }

    /// Meets a region; the place of one in which nothing is posted any more may be taken. None if
    /// no descriptor fits into it, or tokens cannot reach its end.
    pub(super) fn learn(
        &mut self,
        handle: Handle,
        memory: &DmaMemory,
        readable: bool,
    ) -> Option<usize> {
        let region = Region::new(handle, memory, readable)?;
        self.fold();
        let unused = self.regions.iter().position(|region| region.posted == 0);
        let place = match unused {
            Some(place) if self.regions.len() >= KEPT || self.regions[place].handle.0 == 0 => {
                self.regions[place] = region;
                place
            }
            _ => {
                self.regions.push(region);
                self.regions.len() - 1
            }
        };
        self.set_recent(place);
        Some(place)
    }

    /// Forgets a region: its rights have changed, or it is no more. Its memory is kept while
    /// something in it is posted.
    pub(super) fn forget(&mut self, handle: Handle) {
        self.fold();
        for region in self.regions.iter_mut().filter(|region| region.handle == handle) {
            region.readable = false;
            if region.posted == 0 {
                // No handle is zero; the next region that is met takes the place.
                region.handle = Handle(0);
            }
        }
    }

    /// Rights in any region may have changed.
    pub(super) fn forget_all(&mut self) {
        self.regions.iter_mut().for_each(|region| region.readable = false);
    }

    pub(super) fn region(&self, place: usize) -> &Region {
        &self.regions[place]
    }

    pub(super) fn allow_reads(&mut self, place: usize, readable: bool) {
        self.regions[place].readable = readable;
    }

    /// Whether there may be a descriptor at this address of the region at hand.
    #[inline]
    pub(super) const fn is_inside(&self, address: u64) -> bool {
        address.wrapping_sub(self.recent.address) <= self.recent.last
            && address & (ALIGNMENT - 1) == 0
    }

    /// Enters the descriptor at a virtual address, if the region is the one at hand, which
    /// [`Ring::find`] and [`Ring::learn`] see to, if it lies inside and is aligned, and if there is
    /// room; gives its part of a token. `begin` gets its front and that of the one before it, if
    /// that was not taken; it may refuse.
    #[inline]
    pub(super) fn enter<R>(
        &mut self,
        handle: Handle,
        address: u64,
        room: u32,
        begin: impl FnOnce(Front<'_>, Option<Front<'_>>) -> Option<R>,
    ) -> Option<(u64, R)> {
        let known = self.recent.handle == handle && handle.0 != 0;
        if !known || !self.is_inside(address) || self.is_full() {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below the length of the memory")]
        let distance = address.wrapping_sub(self.recent.address) as usize;
        // SAFETY: inside of the memory, by the comparison above; the region at hand is one of the
        // ring's.
        let start = unsafe { self.recent.base.add(distance) };
        // SAFETY: aligned and inside, as above.
        let front = Front(unsafe { Line::new(start) });
        let begun = begin(front, self.last())?;
        #[expect(clippy::cast_possible_truncation, reason = "the ring is far smaller")]
        let number = self.posted as usize & (self.entries.len() - 1);
        let region = self.recent.place;
        *self.entries.get_mut(number)? = Entry { front: start, room, region };
        self.recent.entered = self.recent.entered.wrapping_add(1);
        self.posted += 1;
        self.last = Some(start);
        Some(((address << SHIFT).wrapping_add(self.recent.bias), begun))
    }

    /// Takes the oldest one out.
    #[inline]
    pub(super) fn leave(&mut self) {
        let entry = self.entry(self.taken);
        let posted = &mut self.regions[entry.region as usize].posted;
        // What it does not include yet is in `recent`.
        *posted = posted.wrapping_sub(1);
        self.taken += 1;
        if self.is_empty() {
            self.last = None;
        }
    }
}
