//! Where the work queues of VIs live: places that are used again and never freed.
//!
//! So who has the number of a place and a key (the C library's handle of a VI) may post and take
//! without holding the VI. This is the fast path: one atomic operation on the queue's gate, and
//! nothing that another VI writes.

use core::ops::{Deref, DerefMut};
use host_driver::dma::RegisterLine;
use host_driver::doorbell::{DoorbellPage, PushLine};
use host_driver::gate::{Gate, Keyed, Locked, Staying};
use host_driver::numbers::Numbers;
use host_driver::work_queue::{AtHand, Inline, WorkQueue};
use nic_regs::doorbell::{Queue, Token};
use nic_regs::tpt::Handle;

pub use host_driver::work_queue::Head;

/// Most places.
const PLACES: usize = 1 << 16;

/// A work queue and what posting needs besides.
#[derive(Debug, Default)]
pub(crate) struct Work {
    queue: WorkQueue,
    /// The doorbell, where it is mapped.
    doorbell: Option<RegisterLine>,
    /// The queue's own push line.
    line: Option<PushLine>,
    /// Who may post and take by place; 0 for nobody.
    key: usize,
    /// The VI is connected: posts go to the device.
    open: bool,
    page: Option<DoorbellPage>,
}

impl Deref for Work {
    type Target = WorkQueue;

    #[inline(always)]
    fn deref(&self) -> &WorkQueue {
        &self.queue
    }
}

impl DerefMut for Work {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut WorkQueue {
        &mut self.queue
    }
}

impl Keyed for Work {
    fn key(&self) -> usize {
        if self.open && self.queue.is_plain() { self.key } else { 0 }
    }
}

impl Work {
    pub(crate) fn new(queue: WorkQueue, page: Option<DoorbellPage>) -> Self {
        let doorbell = page.as_ref().and_then(DoorbellPage::registers);
        let line = page.as_ref().filter(|_| queue.has_pushes()).and_then(DoorbellPage::push_line);
        Self { queue, doorbell, line, key: 0, open: false, page }
    }

    pub(crate) const fn set_open(&mut self, open: bool) {
        self.open = open;
    }
}

/// One queue of a place, apart from those of others. All zero at first.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Half {
    gate: Gate<Work>,
}

/// Who holds the lock of a queue.
pub(crate) type WorkGuard<'a> = Locked<'a, Work>;

impl Half {
    /// Takes the lock of the queue.
    ///
    /// # Panics
    /// If no VI had the place yet.
    pub(crate) fn lock(&self) -> WorkGuard<'_> {
        self.gate.lock().expect("a VI has the place")
    }

    /// The lock, for who knows the key.
    fn lock_by(&self, key: usize) -> Option<WorkGuard<'_>> {
        self.gate.lock().filter(|work| work.key == key && key != 0)
    }
}

/// The queues of all places, send and receive. Pages of it that no VI uses are never touched.
static HALVES: [[Half; 2]; PLACES] = [const { [const { Half { gate: Gate::new() } }; 2] }; PLACES];

#[inline(always)]
fn half(place: usize, queue: Queue) -> &'static Half {
    &HALVES[place % PLACES][queue as usize]
}

static NUMBERS: Numbers = Numbers::new(PLACES);

/// A place of a VI; it is given back when this goes.
#[derive(Debug)]
pub(crate) struct Place {
    number: usize,
}

impl Place {
    /// A free place for these queues. None if there are too many VIs.
    pub(crate) fn take(works: [Work; 2]) -> Option<Self> {
        let number = NUMBERS.take()?;
        for (half, work) in HALVES[number].iter().zip(works) {
            half.gate.furnish(work);
        }
        Some(Self { number })
    }

    /// Its number.
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    /// Lets whoever knows `key` use the queues by the number of the place; 0 lets nobody.
    ///
    /// # Panics
    /// If the key is 1.
    pub(crate) fn set_key(&self, key: usize) {
        assert_ne!(key, 1, "no key");
        for half in &HALVES[self.number] {
            half.lock().key = key;
        }
    }

    #[inline]
    pub(crate) fn work(&self, queue: Queue) -> &'static Half {
        half(self.number, queue)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for half in &HALVES[self.number] {
            *half.lock() = Work::default();
        }
        NUMBERS.give(self.number);
    }
}

/// Posts the descriptor at `address`, in the memory of `handle`, on a queue of the connected VI at
/// `place`, the common way ([`WorkQueue::post_at_hand`]).
#[must_use]
#[inline(always)]
pub fn post_at_hand(place: usize, key: usize, queue: Queue, address: u64, handle: u32) -> Posting {
    let Some(mut inside) = half(place, queue).gate.enter(key) else { return Posting::No };
    let Work { queue, doorbell: Some(doorbell), .. } = &mut *inside else { return Posting::No };
    match queue.post_at_hand(address, Handle(handle), doorbell) {
        AtHand::Posted => Posting::Done,
        AtHand::Short => Posting::Short(Short { staying: inside.stay() }),
        AtHand::No => Posting::No,
    }
}

/// What became of a post.
#[derive(Debug)]
pub enum Posting {
    /// It is done.
    Done,
    /// Nothing has happened: [`Short::post`] does it.
    Short(Short),
    /// Nothing has happened: it cannot be done this way, the VI has another key or is not connected,
    /// or another thread is at work at the queue. [`post_at`], and after it [`crate::Vi::post_at`],
    /// do it.
    No,
}

/// A post whose data travels with the doorbell, if that is possible. The queue is shut until
/// [`Short::post`].
#[must_use]
#[derive(Debug)]
pub struct Short {
    staying: Staying<'static, Work>,
}

impl Short {
    /// Posts it, in the memory of `handle` and with the key of the VI, as before. False: nothing
    /// has happened, as with [`Posting::No`].
    #[must_use]
    #[inline(always)]
    pub fn post(self, key: usize, handle: u32) -> bool {
        let mut inside = self.staying.with(key);
        let Work { queue, line: Some(line), .. } = &mut *inside else { return false };
        queue.push_at_hand(Handle(handle), line)
    }
}

/// The same, if nothing is wrong, whatever there is to look up, and by whatever bus. None: nothing
/// has happened.
#[must_use]
pub fn post_at(place: usize, key: usize, queue: Queue, address: u64, handle: u32) -> Option<()> {
    let mut work = half(place, queue).lock_by(key).filter(|work| work.open)?;
    let Work { queue, page: Some(page), .. } = &mut *work else { return None };
    let ring = |token, inline: Option<&Inline>| match inline {
        Some(inline) => page.push(Token::from_bits(token), inline.data(), inline.immediate),
        None => page.ring_bits(token),
    };
    queue.post_at(address, Handle(handle), &|_| None, ring).ok()
}

/// Takes the oldest descriptor of a queue of the connected VI at `place` if it is done: its address
/// and its status. None if that VI has another key or is not connected, or if another thread is at
/// work at the queue: [`take`] waits for it.
///
/// It looks at a descriptor of the program, so it cannot do without the gate: another thread may
/// take it, and its memory may go.
#[must_use]
#[inline(always)]
pub fn take_at_hand(place: usize, key: usize, queue: Queue) -> Option<Head<(u64, u32)>> {
    Some(half(place, queue).gate.enter(key)?.take_address())
}

/// The same. None if that VI has another key.
#[must_use]
pub fn take(place: usize, key: usize, queue: Queue) -> Option<Head<(u64, u32)>> {
    Some(half(place, queue).lock_by(key)?.take_address())
}

/// Waits a moment for a thread that is at work at the queue the common way.
pub fn let_pass(place: usize, queue: Queue) {
    half(place, queue).gate.let_pass();
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use super::*;

    fn works() -> [Work; 2] {
        [Queue::Send, Queue::Recv]
            .map(|queue| Work::new(WorkQueue::new(1, queue, 4, u8::MAX, false), None))
    }

    #[test]
    fn only_the_key_of_now_opens_a_place() {
        let place = Place::take(works()).unwrap();
        let number = place.number();
        assert!(take(number, 77, Queue::Send).is_none());
        place.set_key(77);
        assert!(matches!(take(number, 77, Queue::Send), Some(Head::Empty)));
        assert!(take(number, 78, Queue::Send).is_none());
        assert!(post_at(number, 77, Queue::Send, 0, 0).is_none(), "not connected");
        drop(place);
        assert!(take(number, 77, Queue::Send).is_none());
        assert!(take(usize::MAX, 77, Queue::Send).is_none());
    }

    /// Two threads at work at two VIs, or at both queues of one, write to no common line of a cache.
    #[test]
    fn queues_share_no_written_line() {
        let works = || {
            [Queue::Send, Queue::Recv]
                .map(|queue| Work::new(WorkQueue::new(1, queue, 1024, u8::MAX, false), None))
        };
        let places = [(); 3].map(|()| Place::take(works()).unwrap());
        let mut lines = std::collections::BTreeSet::new();
        for place in &places {
            for half in &HALVES[place.number()] {
                let work = half.lock();
                let (gate, value) = (ptr::from_ref(half).addr(), ptr::from_ref(&*work).addr());
                for written in [
                    gate..gate + size_of::<Half>(),
                    value..value + size_of::<Work>(),
                    work.footprint(),
                ] {
                    for line in written.start / 64..written.end.div_ceil(64) {
                        assert!(lines.insert(line), "line {:#x} has two writers", line * 64);
                    }
                }
            }
        }
    }
}
