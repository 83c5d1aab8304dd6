//! The posted descriptors of a queue, and the regions that they lie in: who posts need not look in a
//! table that others write.
//!
//! Posting and taking are the fast path of the whole system, so where a descriptor lies is checked
//! once, when it is entered, and kept as a pointer.
#![expect(unsafe_code, reason = "pointers to descriptors, checked when they are entered")]

use core::marker::PhantomData;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU8;

use nic_regs::desc::{ALIGNMENT, status};
use nic_regs::doorbell::{PUSH_DATA_BYTES, Token};
use nic_regs::tpt::Handle;

use super::slot::Front;
use crate::dma::{DmaMemory, LINE_BYTES, Line};

/// Regions that are kept though nothing in them is posted.
const KEPT: usize = 8;
/// Bytes of a region that tokens can speak of.
const _: () = assert!(PUSH_DATA_BYTES.is_multiple_of(8) && PUSH_DATA_BYTES <= LINE_BYTES);
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
    /// It was forgotten: only what was posted before is in it.
    dead: bool,
    /// No descriptor with this number or a higher one lies in it, unless it is at hand.
    until: u64,
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
        let (dead, until) = (false, 0);
        Some(Self { handle, memory, base, address, last, origin, bits, readable, dead, until })
    }

    /// Region and place of a descriptor, as a token has them.
    pub(super) const fn bits_of(&self, address: u64) -> u64 {
        self.bits | address.wrapping_sub(self.origin) << SHIFT
    }
}

/// A posted descriptor.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Its first line, in the memory of its region.
    front: NonNull<u8>,
    /// Room that it has, in bytes, as far as that is known, and, below, the place of its region:
    /// one word, which is stored at once.
    room_region: u64,
}

impl Entry {
    const fn room(self) -> u32 {
        (self.room_region >> 32) as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "32 bits")]
    const fn region(self) -> usize {
        (self.room_region & u32::MAX as u64) as usize
    }
}

// SAFETY: a pointer into the memory of a region, as in `Region`.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

/// Entries, apart from what others write: processors fetch lines of 64 bytes in pairs.
#[derive(Clone, Copy, Debug)]
#[repr(align(128))]
struct Entries(#[expect(dead_code, reason = "used one by one, by pointer")] [Entry; 8]);

/// What a poll looks at: the oldest descriptor of a ring, and what to say if it is not done.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// The front of a descriptor that is posted in the ring, or of one that is never done.
    head: NonNull<u8>,
    found: u32,
}

// SAFETY: a pointer as in `Ring`, which goes where the ring goes.
unsafe impl Send for Watch {}
// SAFETY: as above.
unsafe impl Sync for Watch {}

/// The front of a descriptor that is never done.
#[repr(align(64))]
struct Never([AtomicU8; LINE_BYTES]);
static NEVER: Never = Never([const { AtomicU8::new(0) }; LINE_BYTES]);

impl Watch {
    /// Found: the oldest descriptor is not done. As VIPL numbers it (`VIP_NOT_DONE`).
    pub const NOT_DONE: u32 = 1;
    /// Found: nothing is posted (`VIP_DESCRIPTOR_ERROR`).
    pub const NOTHING: u32 = 11;
    const EMPTY: Self = Self { head: NonNull::from_ref(&NEVER.0).cast(), found: Self::NOTHING };

    /// What a poll has found, if there is nothing to take.
    #[inline(always)]
    pub(super) fn found(&self) -> Option<u32> {
        (!self.is_done()).then_some(self.found)
    }

    /// Address and status of the oldest descriptor.
    #[inline(always)]
    pub(super) fn oldest(&self) -> (u64, u32) {
        // SAFETY: the front of a descriptor that is posted, so its memory is kept.
        let front = Front(unsafe { Line::new(self.head) });
        (self.head.addr().get() as u64, front.status())
    }

    /// Whether the descriptor is done: one instruction, of which compilers make a load and a test.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn is_done(&self) -> bool {
        // SAFETY: it reads a byte of the front of a descriptor that is posted, so its memory is kept.
        unsafe {
            core::arch::asm!(
                "test byte ptr [{head} + {status}], {done}",
                "jnz {is_done}",
                head = in(reg) self.head.as_ptr(),
                status = const Front::STATUS,
                done = const status::DONE,
                is_done = label { return true },
                options(nostack, readonly),
            );
        }
        false
    }

    /// Whether the descriptor is done.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn is_done(&self) -> bool {
        // SAFETY: the front of a descriptor that is posted, so its memory is kept.
        Front(unsafe { Line::new(self.head) }).is_done()
    }
}

/// Descriptors numbered `taken` up to `posted`, each at its number modulo the ring's length.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) posted: u64,
    pub(super) taken: u64,
    /// Value of `posted` at which there is no room.
    full_at: u64,
    /// Entries, as many as a power of two.
    entries: Box<[Entries]>,
    /// Their number less one.
    mask: usize,
    /// The front of the descriptor that was posted last, if it was not taken.
    last: Option<NonNull<u8>>,
    /// The region that was met last, at hand.
    recent: Recent,
    /// The data that was read last, at hand.
    data: Reach,
    /// A descriptor in the region at hand that [`Candidate::keep`] has kept.
    kept: Option<NonNull<u8>>,
    regions: Vec<Region>,
    /// VI and queue, as a token has them.
    bits: u64,
}

/// What posting needs of the region that was met last.
#[derive(Clone, Copy, Debug)]
struct Recent {
    handle: Handle,
    place: u64,
    base: NonNull<u8>,
    address: u64,
    last: u64,
    /// What is added to an address, shifted, for the region's part of a token.
    bias: u64,
    /// The same, for a token of one segment.
    push_bias: u64,
}

/// No region: no aligned address lies in it.
const NONE: Recent = Recent {
    handle: Handle(0),
    place: u32::MAX as u64,
    base: NonNull::dangling(),
    address: 1,
    last: 0,
    bias: 0,
    push_bias: 0,
};
/// How far an address is shifted in a token.
const SHIFT: u32 = Token::OFFSET_LSB - ALIGNMENT.trailing_zeros();

// SAFETY: `base` is that of a region in the same ring, as in `Region`; `last` is one of its lines;
// `data` is as `recent` is.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

/// Memory of a region whose bytes the VI may read: the room of a push is left behind each address.
#[derive(Clone, Copy, Debug)]
struct Reach {
    handle: Handle,
    base: NonNull<u8>,
    address: u64,
    /// How many such addresses there are.
    count: u64,
}

/// None.
const NOTHING: Reach = Reach { handle: Handle(0), base: NonNull::dangling(), address: 0, count: 0 };

/// Data of a push, which the program may change at any time.
#[derive(Debug)]
pub(super) struct PushData<'a> {
    start: NonNull<u8>,
    /// Bytes that are left, at most those of a push at first.
    length: usize,
    memory: PhantomData<&'a Reach>,
}

/// A word that need not be aligned.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Word(u64);

/// What counts of a word of which so many bytes are data.
const MASKS: [u64; 9] = {
    let mut masks = [u64::MAX; 9];
    let mut bytes = 0;
    while bytes < 8 {
        masks[bytes] = (1 << (8 * bytes)) - 1;
        bytes += 1;
    }
    masks
};

impl PushData<'_> {
    /// Hands out the bytes as little-endian words, at least one and at most those of a push; zeros
    /// follow the last byte.
    #[inline(always)]
    pub(super) fn words(self, mut store: impl FnMut(usize, u64)) {
        let word = |place: usize| {
            // SAFETY: there is room for a push, which is whole words.
            let at = unsafe { self.start.cast::<Word>().add(place) };
            // SAFETY: as above.
            u64::from_le(unsafe { at.read_volatile() }.0)
        };
        let mut left = self.length;
        for place in 0..PUSH_DATA_BYTES / 8 {
            if let Some(mask) = MASKS.get(left) {
                return store(place, word(place) & mask);
            }
            store(place, word(place));
            left -= 8;
        }
    }
}

/// A descriptor that may be entered: it lies in the region at hand, is aligned, and there is room.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    ring: &'a mut Ring,
    start: NonNull<u8>,
    address: u64,
    last: Option<NonNull<u8>>,
}

impl Candidate<'_> {
    #[inline(always)]
    pub(super) fn front(&self) -> Front<'_> {
        // SAFETY: aligned and inside of a region that the ring keeps.
        Front(unsafe { Line::new(self.start) })
    }

    /// The front of the descriptor before it, if that was not taken.
    #[inline(always)]
    pub(super) fn last(&self) -> Option<Front<'_>> {
        // SAFETY: as in `Ring::last`.
        self.last.map(|last| Front(unsafe { Line::new(last) }))
    }

    /// Whether the device has done everything before it.
    #[inline(always)]
    pub(super) fn is_next(&self) -> bool {
        self.last().is_none_or(Front::is_done)
    }

    /// Its token, without a segment count.
    #[inline(always)]
    pub(super) fn bits(&self) -> u64 {
        (self.address << SHIFT).wrapping_add(self.ring.recent.bias)
    }

    /// Its token with a segment count of 1.
    #[inline(always)]
    pub(super) fn push_token(&self) -> u64 {
        (self.address << SHIFT).wrapping_add(self.ring.recent.push_bias)
    }

    /// Keeps it, for [`Ring::kept`].
    #[inline(always)]
    pub(super) fn keep(self) {
        self.ring.kept = Some(self.start);
    }

    /// Links the last one to it, in the region of `handle`, before the device hears of it.
    #[inline(always)]
    pub(super) fn link(&self, handle: Handle) {
        self.front().clear_status();
        if let Some(last) = self.last() {
            last.link(self.address, handle);
        }
    }

    /// Shows it as the oldest, if it is.
    #[inline(always)]
    pub(super) const fn show(&self, watch: &mut Watch) {
        if self.last.is_none() {
            *watch = Watch { head: self.start, found: Watch::NOT_DONE };
        }
    }

    /// The first segment's data, so many bytes, if they fit into a push and lie in the data at hand.
    #[inline(always)]
    pub(super) fn push_data(&self, length: usize) -> Option<PushData<'_>> {
        let (reach, front) = (&self.ring.data, self.front());
        if length > PUSH_DATA_BYTES || front.segment_handle() != reach.handle {
            return None;
        }
        let distance = front.segment_address().wrapping_sub(reach.address);
        if distance >= reach.count {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below the length of the memory")]
        // SAFETY: inside of the memory, which the ring keeps.
        let start = unsafe { reach.base.add(distance as usize) };
        Some(PushData { start, length, memory: PhantomData })
    }

    /// Enters it, with so much room as is known.
    #[inline(always)]
    pub(super) fn enter(self, room: u32) {
        let Self { ring, start, .. } = self;
        let place = ring.place(ring.posted);
        let region = ring.recent.place;
        let entries = ring.entries.as_mut_ptr().cast::<Entry>();
        // SAFETY: as in `entry`.
        let entry = unsafe { entries.add(place) };
        let new = Entry { front: start, room_region: u64::from(room) << 32 | region };
        // SAFETY: as above.
        unsafe { *entry = new };
        ring.posted += 1;
        ring.last = Some(start);
    }
}

/// What is posted, seen from its queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted<'a> {
    pub(super) front: Front<'a>,
    pub(super) region: &'a Region,
    pub(super) address: u64,
    pub(super) room: u32,
}

impl Ring {
    /// Room for `limit` descriptors of a queue that a token names by `bits`.
    pub(super) fn new(bits: u64, limit: usize) -> Self {
        let none = Entry { front: NonNull::dangling(), room_region: 0 };
        let length = limit.next_power_of_two().max(8);
        let entries = vec![Entries([none; 8]); length / 8].into_boxed_slice();
        let mask = length - 1;
        let regions = Vec::with_capacity(KEPT);
        Self {
            posted: 0,
            taken: 0,
            full_at: limit as u64,
            entries,
            mask,
            last: None,
            recent: NONE,
            data: NOTHING,
            kept: None,
            regions,
            bits,
        }
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.posted == self.taken
    }

    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.posted == self.full_at
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "masked")]
    const fn place(&self, number: u64) -> usize {
        number as usize & self.mask
    }

    #[inline(always)]
    fn entry(&self, number: u64) -> Entry {
        let entries = self.entries.as_ptr().cast::<Entry>();
        // SAFETY: `mask` is the number of entries less one.
        let entry = unsafe { entries.add(self.place(number)) };
        // SAFETY: as above.
        unsafe { *entry }
    }

    /// Memory that posting and taking write, but for the ring itself.
    pub(super) fn footprint(&self) -> Range<usize> {
        let range = self.entries.as_ptr_range();
        range.start.addr()..range.end.addr()
    }

    /// The token of a descriptor, without a segment count.
    pub(super) const fn token(&self, posted: &Posted<'_>) -> u64 {
        self.bits | posted.region.bits_of(posted.address)
    }

    /// The descriptor with this number, which is posted and not taken.
    pub(super) fn at(&self, number: u64) -> Posted<'_> {
        let entry = self.entry(number);
        let region = &self.regions[entry.region()];
        let address = self.address(number);
        Posted { front: self.front(number), region, address, room: entry.room() }
    }

    /// Its virtual address, which is where it lies in this process.
    #[inline(always)]
    pub(super) fn address(&self, number: u64) -> u64 {
        self.entry(number).front.addr().get() as u64
    }

    /// Its front. Posted and not taken, as above.
    pub(super) fn front(&self, number: u64) -> Front<'_> {
        assert!(number.wrapping_sub(self.taken) < self.posted - self.taken, "it is posted");
        // SAFETY: `enter` was given a spot in the memory of a region of this ring, which is kept
        // until this entry was taken.
        Front(unsafe { Line::new(self.entry(number).front) })
    }

    /// The front of the oldest descriptor.
    #[inline(always)]
    pub(super) fn oldest(&self) -> Option<Front<'_>> {
        // SAFETY: as in `front`.
        (!self.is_empty()).then(|| Front(unsafe { Line::new(self.entry(self.taken).front) }))
    }

    /// What a poll looks at.
    #[inline(always)]
    pub(super) fn watch(&self) -> Watch {
        if self.is_empty() {
            return Watch::EMPTY;
        }
        Watch { head: self.entry(self.taken).front, found: Watch::NOT_DONE }
    }

    /// The front of the descriptor that was posted last, if it was not taken.
    #[inline(always)]
    pub(super) fn last(&self) -> Option<Front<'_>> {
        // SAFETY: entered and not taken, so its region keeps the memory, as in `front`.
        self.last.map(|last| Front(unsafe { Line::new(last) }))
    }

    /// Place of a region that was met.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "few regions")]
    pub(super) fn find(&mut self, handle: Handle) -> Option<usize> {
        if self.recent.handle == handle && handle.0 != 0 {
            return Some(self.recent.place as usize);
        }
        let known = |region: &Region| region.handle == handle && !region.dead;
        let found = self.regions.iter().position(known)?;
        self.set_recent(found);
        Some(found)
    }

    /// Notes how far the region at hand was used, and has none at hand.
    fn fold(&mut self) {
        #[expect(clippy::cast_possible_truncation, reason = "few regions")]
        if let Some(region) = self.regions.get_mut(self.recent.place as usize) {
            region.until = self.posted;
        }
        (self.recent, self.kept) = (NONE, None);
    }

    fn set_recent(&mut self, place: usize) {
        self.fold();
        let region = &self.regions[place];
        self.recent = Recent {
            handle: region.handle,
            place: place as u64,
            base: region.base,
            address: region.address,
            last: region.last,
            bias: (self.bits | region.bits).wrapping_sub(region.origin << SHIFT),
            push_bias: (self.bits | region.bits | 1 << Token::SEGMENTS_LSB)
                .wrapping_sub(region.origin << SHIFT),
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
        self.data = NOTHING;
        let unused = self.regions.iter().position(|region| region.until <= self.taken);
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
        self.data = NOTHING;
        for region in self.regions.iter_mut().filter(|region| region.handle == handle) {
            (region.readable, region.dead) = (false, true);
            if region.until <= self.taken {
                // No handle is zero; the next region that is met takes the place.
                region.handle = Handle(0);
            }
        }
    }

    /// Rights in any region may have changed.
    pub(super) fn forget_all(&mut self) {
        self.data = NOTHING;
        self.regions.iter_mut().for_each(|region| region.readable = false);
    }

    pub(super) fn region(&self, place: usize) -> &Region {
        &self.regions[place]
    }

    /// Whether a region was met whose bytes the VI may read.
    pub(super) fn may_read(&self, handle: Handle) -> bool {
        self.regions.iter().any(|region| region.handle == handle && region.readable)
    }

    pub(super) fn allow_reads(&mut self, place: usize, readable: bool) {
        self.regions[place].readable = readable;
    }

    /// Data of this region was read; the next may come from there.
    pub(super) fn keep_data_at_hand(&mut self, place: usize) {
        let Region { handle, base, address, ref memory, .. } = self.regions[place];
        // A region holds a line at least.
        let count = (memory.len() - PUSH_DATA_BYTES) as u64 + 1;
        self.data = Reach { handle, base, address, count };
    }

    /// Whether there may be a descriptor at this address of the region at hand.
    #[inline(always)]
    pub(super) const fn is_inside(&self, address: u64) -> bool {
        address.wrapping_sub(self.recent.address) <= self.recent.last
            && address & (ALIGNMENT - 1) == 0
    }

    /// The descriptor at a virtual address, if the region is the one at hand, which [`Ring::find`]
    /// and [`Ring::learn`] see to, if it lies inside and is aligned, and if there is room.
    #[inline(always)]
    pub(super) fn candidate(&mut self, handle: Handle, address: u64) -> Option<Candidate<'_>> {
        if self.recent.handle != handle || !self.is_inside(address) || self.is_full() {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below the length of the memory")]
        let distance = address.wrapping_sub(self.recent.address) as usize;
        // SAFETY: inside of the memory, by the comparison above; the region at hand is one of the
        // ring's.
        let start = unsafe { self.recent.base.add(distance) };
        let last = self.last;
        Some(Candidate { ring: self, start, address, last })
    }

    /// The descriptor that was kept, if the region at hand is still the same and there is room.
    #[inline(always)]
    pub(super) fn kept(&mut self) -> Option<Candidate<'_>> {
        let (start, last) = (self.kept?, self.last);
        if self.is_full() {
            return None;
        }
        let address = start.addr().get() as u64;
        Some(Candidate { ring: self, start, address, last })
    }

    /// Takes the oldest one out.
    #[inline(always)]
    pub(super) fn leave(&mut self) {
        self.taken += 1;
        self.full_at += 1;
        if self.is_empty() {
            self.last = None;
        }
    }
}
