//! The control segment of a node: a memory file that the node and all its peers map.
//!
//! ```text
//! 0       bell 4 (futex) | sleepers 4 | dozers 4, who sleep on the waker
//! 4096    event queues, 256 of 576 bytes: armed 4 | only wakes 4 | summary 8, a bit for each word of
//!         `fired` | fired, 64 words of 8: a bit for each tripwire
//! 151552  where the tripwires of each region end, in double words, 4096 of 4; 0: it has none
//! 167936  tripwire table, 4096 buckets of 8 entries of 8 bytes
//! ```
//! A queue's first 384 tripwires fire in the line in which its reader looks for them, so that one line
//! passes between the processors.
//!
//! Peers read the last two and write the others. Bits are set and cleared by atomic operations and
//! mean 'look', so a peer that dies between any two of them, or writes what it likes, costs a look in
//! vain or an event of its own, and no event of a third party is overwritten.
//!
//! A peer can die, or be stopped, between any two instructions of [`Control::fire`], and others must
//! not wait for what it left undone:
//! - only the owner changes the table and the counts; a tripwire that fires once is taken out by the
//!   owner, when it reports the event (`tripwire`), so that a peer never has to do two things for one;
//! - an event that is pending already is reported again, up to the wake-up;
//! - a queue is disarmed behind the wake-up, not before, and only if it was not armed anew.
//!
//! A peer that is stopped in the middle of [`Control::fire`] sets its bit when it goes on. The bit may
//! belong to another tripwire by then: its owner gets an event for an access that came before. Bits are
//! used again as late as possible, which makes this rare; readers of events look at the memory anyway.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use port::DmaMemory;
use port::own::OwnFd;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::thread::{Timespec, futex};

/// Event queues of a node.
pub(super) const QUEUES: u16 = 256;
/// Regions of a node.
pub(super) const REGIONS: u16 = 4096;
/// Tripwires that may be set at the same time.
pub(super) const TRIPWIRES: u32 = 4096;
/// Words of a queue's `fired`, each of which has a bit in the summary.
pub(super) const FIRED_WORDS: usize = 64;

const BELL: usize = 0;
const SLEEPERS: usize = 4;
const DOZERS: usize = 8;
const QUEUE: usize = 4096;
const QUEUE_BYTES: usize = 576;
const SUMMARY: usize = 8;
const FIRED: usize = 16;
const REGION: usize = 151_552;
const TABLE: usize = 167_936;
const BUCKETS: usize = 4096;
const BUCKET_ENTRIES: usize = 8;
/// Lines of an access behind which the whole table is looked at instead of a bucket for each.
const LINES_MAX: u64 = 512;
/// Bytes of the segment.
pub(super) const BYTES: usize = TABLE + BUCKETS * BUCKET_ENTRIES * 8;

/// A control segment, this node's or a peer's.
#[derive(Clone, Debug)]
pub(super) struct Control {
    memory: DmaMemory,
    /// An eventfd that nobody reads: each wake-up is an edge of it.
    waker: Arc<OwnFd>,
}

/// An entry of the tripwire table: one word, so that it is set, read and cleared as a whole.
///
/// Bits 0 to 28: index of the 8-byte word in the region; 29 to 40: region; 41 to 48: queue; 49 to 60:
/// bit in the queue's `fired`; 61: on read; 62: on write; 63: set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) word: u32,
    pub(super) region: u16,
    pub(super) queue: u16,
    pub(super) bit: u16,
    pub(super) on_read: bool,
    pub(super) on_write: bool,
}

/// Words of 8 bytes of a region that may have tripwires.
pub(super) const WORDS: u64 = 1 << 29;
const ON_READ: u64 = 1 << 61;
const ON_WRITE: u64 = 1 << 62;
const SET: u64 = 1 << 63;

impl Entry {
    fn to_bits(self) -> u64 {
        let flag = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        self.word as u64
            | (self.region as u64) << 29
            | (self.queue as u64) << 41
            | (self.bit as u64) << 49
            | flag(self.on_read, ON_READ)
            | flag(self.on_write, ON_WRITE)
            | SET
    }
}

/// Where the entries of a line of 64 bytes are, so that one look serves a store to any part of it.
fn bucket(region: u16, line: u64) -> usize {
    let key = u64::from(region) << 32 | line;
    // Fibonacci hashing; the upper bits depend on all of the key.
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    TABLE + BUCKET_ENTRIES * 8 * usize::try_from(hash).unwrap_or(0)
}

/// Words of 8 bytes in a line.
const LINE_WORDS: u64 = 8;

impl Control {
    /// A new one.
    ///
    /// # Errors
    /// No memory, or no descriptor.
    pub(super) fn new() -> port::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let waker = OwnFd::create(|| eventfd(0, flags)).map_err(port::Error::device)?;
        Ok(Self { memory: DmaMemory::shared(BYTES)?, waker: Arc::new(waker) })
    }

    /// A peer's.
    ///
    /// # Errors
    /// It is no such file, or it may shrink.
    pub(super) fn of_peer(file: BorrowedFd<'_>, waker: OwnFd) -> std::io::Result<Self> {
        let size = BYTES.next_multiple_of(port::memory::PAGE_BYTES);
        // What blocks in a write would have this process wait for a peer.
        let flags = rustix::fs::fcntl_getfl(&waker)? | rustix::fs::OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(&waker, flags)?;
        let memory = DmaMemory::map_file(file, 0, size)?;
        Ok(Self { memory, waker: Arc::new(waker) })
    }

    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.memory.file().map(|(file, _)| file)
    }

    /// What [`Control::wake`] writes to.
    pub(super) fn waker(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    fn dozers(&self) -> &AtomicU32 {
        self.memory.atomic_u32(DOZERS)
    }

    fn bell(&self) -> &AtomicU32 {
        self.memory.atomic_u32(BELL)
    }

    fn sleepers(&self) -> &AtomicU32 {
        self.memory.atomic_u32(SLEEPERS)
    }

    fn armed(&self, queue: u16) -> &AtomicU32 {
        self.memory.atomic_u32(QUEUE + QUEUE_BYTES * usize::from(queue))
    }

    /// Not 0: the queue only wakes its reader, who does not ask what fired.
    pub(super) fn only_wakes(&self, queue: u16) -> &AtomicU32 {
        self.memory.atomic_u32(QUEUE + QUEUE_BYTES * usize::from(queue) + 4)
    }

    /// A queue's summary.
    pub(super) fn summary(&self, queue: u16) -> &AtomicU64 {
        self.memory.atomic_u64(QUEUE + QUEUE_BYTES * usize::from(queue) + SUMMARY)
    }

    /// A word of a queue's `fired`.
    pub(super) fn fired(&self, queue: u16, word: usize) -> &AtomicU64 {
        self.memory.atomic_u64(QUEUE + QUEUE_BYTES * usize::from(queue) + FIRED + 8 * word)
    }

    fn end(&self, region: u16) -> &AtomicU32 {
        self.memory.atomic_u32(REGION + 4 * usize::from(region % REGIONS))
    }

    /// The double word of a region behind which it has no tripwires, so that they cost nothing where data
    /// is.
    #[inline]
    pub(super) fn tripwires_end(&self, region: u16) -> u64 {
        self.end(region).load(Ordering::Relaxed).into()
    }

    /// Publishes where the tripwires of a region end. What was written before, its peers may see later:
    /// a fence of all processors follows ([`super::fence::on_all`]).
    pub(super) fn set_tripwires_end(&self, region: u16, end: u32) {
        self.end(region).store(end, Ordering::SeqCst);
    }

    // --- waking ---

    /// How often the node was woken.
    pub(super) fn wake_count(&self) -> u32 {
        self.bell().load(Ordering::SeqCst)
    }

    /// Wakes the node's sleepers.
    pub(super) fn wake(&self) {
        self.bell().fetch_add(1, Ordering::SeqCst);
        if self.sleepers().load(Ordering::SeqCst) != 0 {
            // It fails for an address that is not mapped, and this one is.
            let _ = futex::wake(self.bell(), futex::Flags::empty(), u32::MAX >> 1);
        }
        if self.dozers().load(Ordering::SeqCst) != 0 {
            // A count that is full gives no edge: after 2^64 wake-ups.
            let _ = rustix::io::write(&*self.waker, &1_u64.to_ne_bytes());
        }
    }

    /// A thread is about to sleep on the waker, or has.
    pub(super) fn doze(&self, begins: bool) {
        let by = if begins { 1 } else { u32::MAX };
        self.dozers().fetch_add(by, Ordering::SeqCst);
    }

    /// Sleeps until the node is woken, unless it was since `seen`, or until `bound` is over; it may
    /// end earlier.
    pub(super) fn sleep(&self, seen: u32, bound: core::time::Duration) {
        let bound = Timespec {
            tv_sec: i64::try_from(bound.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: bound.subsec_nanos().into(),
        };
        // A time-out, a signal, or another count: the caller looks again in any case.
        let _ = self.wait(seen, Some(&bound));
    }

    /// The same without a bound; true: a handler of a signal has run that has no `SA_RESTART`.
    pub(super) fn sleep_restarting(&self, seen: u32) -> bool {
        self.wait(seen, None) == Err(Errno::INTR)
    }

    fn wait(&self, seen: u32, bound: Option<&Timespec>) -> rustix::io::Result<()> {
        self.sleepers().fetch_add(1, Ordering::SeqCst);
        let waited = futex::wait(self.bell(), futex::Flags::empty(), seen, bound);
        self.sleepers().fetch_sub(1, Ordering::SeqCst);
        waited
    }

    /// Has the next event of a queue wake the node. `value` is not zero, and was not used lately.
    pub(super) fn arm(&self, queue: u16, value: u32) {
        self.armed(queue).store(value, Ordering::SeqCst);
    }

    /// A queue has an event: wakes the node if the queue is armed. It stays armed until the node was
    /// woken, so that a process that ends here keeps no others from it.
    pub(super) fn report(&self, queue: u16) {
        let armed = self.armed(queue);
        let value = armed.load(Ordering::SeqCst);
        if value != 0 {
            self.wake();
            // If not, it was armed anew.
            let _ = armed.compare_exchange(value, 0, Ordering::SeqCst, Ordering::Relaxed);
        }
    }

    // --- tripwires ---

    /// Enters a tripwire. False if there is no room at its place.
    pub(super) fn enter(&self, entry: Entry) -> bool {
        let place = bucket(entry.region, u64::from(entry.word) / LINE_WORDS);
        let mut entries = (0..BUCKET_ENTRIES).map(|i| self.memory.atomic_u64(place + 8 * i));
        let Some(free) = entries.find(|entry| entry.load(Ordering::Relaxed) & SET == 0) else {
            return false;
        };
        free.store(entry.to_bits(), Ordering::SeqCst);
        true
    }

    /// Takes a tripwire out.
    pub(super) fn remove(&self, entry: Entry) {
        let place = bucket(entry.region, u64::from(entry.word) / LINE_WORDS);
        let mut entries = (0..BUCKET_ENTRIES).map(|i| self.memory.atomic_u64(place + 8 * i));
        let bits = entry.to_bits();
        if let Some(entry) = entries.find(|entry| entry.load(Ordering::Relaxed) == bits) {
            entry.store(0, Ordering::SeqCst);
        }
    }

    /// Fires the tripwires of the double words from `offset` on. Called behind the access, with at
    /// least [`super::fence::light`] in between.
    #[cold]
    pub(super) fn fire(&self, region: u16, offset: u64, length: u64, is_write: bool) {
        let last = (offset + length).div_ceil(8).min(self.tripwires_end(region));
        let (first, end) = (offset / 8, last);
        if first >= end {
            return;
        }
        let kind = if is_write { ON_WRITE } else { ON_READ };
        let is_meant = |bits: u64| {
            (first..end).contains(&(bits % WORDS)) && bits >> 29 & 0xfff == u64::from(region)
        };
        let fire = |place: usize, count: usize| {
            let entries = (0..count).map(|i| self.memory.atomic_u64(place + 8 * i));
            entries.for_each(|entry| self.fire_entry(entry, kind, is_meant));
        };
        let lines = first / LINE_WORDS..=(end - 1) / LINE_WORDS;
        if lines.end() - lines.start() > LINES_MAX {
            return fire(TABLE, BUCKETS * BUCKET_ENTRIES);
        }
        lines.for_each(|line| fire(bucket(region, line), BUCKET_ENTRIES));
    }

    fn fire_entry(&self, entry: &AtomicU64, kind: u64, is_meant: impl Fn(u64) -> bool) {
        let bits = entry.load(Ordering::Relaxed);
        if bits & SET == 0 || bits & kind == 0 || !is_meant(bits) {
            return;
        }
        let queue = u16::try_from(bits >> 41 & 0xff).unwrap_or(0);
        let bit = usize::try_from(bits >> 49 & 0xfff).unwrap_or(0);
        if self.only_wakes(queue).load(Ordering::Relaxed) == 0 {
            // Also if a bit is set already: its reader may take it just now, and look at the memory
            // before the access is visible, unless a write of both orders them.
            self.fired(queue, bit / 64).fetch_or(1 << (bit % 64), Ordering::SeqCst);
            self.summary(queue).fetch_or(1 << (bit / 64), Ordering::SeqCst);
        }
        self.report(queue);
    }
}
