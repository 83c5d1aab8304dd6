//! Where the work queues of VIs live: places that are used again and never freed.
//!
//! So who has the number of a place and a key (the C library's handle of a VI) may post and take
//! without holding the VI: the key is compared under the queue's lock. This is the fast path: one
//! lock of the queue, and nothing that another VI writes.

use core::array;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::sync::OnceLock;

use host_driver::doorbell::DoorbellPage;
use host_driver::work_queue::{Inline, WorkQueue};
use nic_regs::doorbell::{Queue, Token};
use nic_regs::tpt::Handle;
use parking_lot::Mutex;

pub use host_driver::work_queue::Head;

/// Places that are made together.
const CHUNK: usize = 64;
/// Most chunks.
const CHUNKS: usize = 1024;

/// A work queue and what posting needs besides.
#[derive(Debug, Default)]
pub(crate) struct Work {
    queue: WorkQueue,
    /// Who may post and take by place; 0 for nobody.
    key: usize,
    /// The VI is connected: posts go to the device.
    open: bool,
    page: Option<DoorbellPage>,
    /// Where the head is noted that a poll has found not done.
    head: Option<&'static AtomicUsize>,
}

impl Deref for Work {
    type Target = WorkQueue;

    fn deref(&self) -> &WorkQueue {
        &self.queue
    }
}

impl DerefMut for Work {
    fn deref_mut(&mut self) -> &mut WorkQueue {
        &mut self.queue
    }
}

impl Work {
    pub(crate) const fn new(queue: WorkQueue, page: Option<DoorbellPage>) -> Self {
        Self { queue, key: 0, open: false, page, head: None }
    }

    /// As [`WorkQueue::take`].
    pub(crate) fn take(&mut self) -> Head {
        self.note_head(0);
        self.queue.take()
    }

    /// As [`WorkQueue::take_address`]. A head that is not done is noted.
    #[inline]
    fn take_address(&mut self) -> Head<(u64, u32)> {
        let taken = self.queue.take_address();
        match taken {
            Head::NotDone => {
                let head = self.queue.head_address().and_then(|head| usize::try_from(head).ok());
                self.note_head(head.unwrap_or(0));
            }
            _ => self.note_head(0),
        }
        taken
    }

    fn note_head(&self, address: usize) {
        if let Some(head) = self.head {
            head.store(address, Ordering::Release);
        }
    }

    pub(crate) const fn set_open(&mut self, open: bool) {
        self.open = open;
    }
}

/// Both work queues of a VI, apart from those of others.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Pair {
    works: [Mutex<Work>; 2],
    /// The key of both, for [`head`].
    key: AtomicUsize,
    /// Addresses of the oldest descriptors, where a poll has found them not done, or 0. Written
    /// under the queue's lock, and 0 before the program gets the descriptor back.
    heads: [AtomicUsize; 2],
}

#[derive(Debug)]
struct Free {
    /// Used before, oldest first.
    used: VecDeque<usize>,
    fresh: usize,
}

static PLACES: [OnceLock<Box<[Pair; CHUNK]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];
static FREE: Mutex<Free> = Mutex::new(Free { used: VecDeque::new(), fresh: 0 });

#[inline]
fn pair(number: usize) -> Option<&'static Pair> {
    PLACES.get(number / CHUNK)?.get().map(|chunk| &chunk[number % CHUNK])
}

/// A place of a VI; it is given back when this goes.
#[derive(Debug)]
pub(crate) struct Place {
    number: usize,
    pair: &'static Pair,
}

impl Place {
    /// A free place for these queues. None if there are too many VIs.
    pub(crate) fn take(works: [Work; 2]) -> Option<Self> {
        let number = {
            let mut free = FREE.lock();
            let fresh = free.fresh;
            match free.used.pop_front() {
                Some(number) => number,
                None if fresh < CHUNK * CHUNKS => {
                    free.fresh += 1;
                    fresh
                }
                None => return None,
            }
        };
        PLACES[number / CHUNK].get_or_init(|| Box::new(array::from_fn(|_| Pair::default())));
        let pair = pair(number)?;
        for ((place, work), head) in pair.works.iter().zip(works).zip(&pair.heads) {
            *place.lock() = Work { head: Some(head), ..work };
        }
        Some(Self { number, pair })
    }

    /// Its number.
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    /// Lets whoever knows `key` use the queues by the number of the place; 0 lets nobody.
    pub(crate) fn set_key(&self, key: usize) {
        let mut works = self.pair.works.each_ref().map(Mutex::lock);
        for work in &mut works {
            work.key = key;
            work.note_head(0);
        }
        self.pair.key.store(key, Ordering::Release);
    }

    #[inline]
    pub(crate) const fn work(&self, queue: Queue) -> &'static Mutex<Work> {
        &self.pair.works[queue as usize]
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.set_key(0);
        for place in &self.pair.works {
            *place.lock() = Work::default();
        }
        FREE.lock().used.push_back(self.number);
    }
}

/// Uses a queue of the VI at `place` and its doorbells, if that VI has this key and is connected.
#[inline]
fn with_open<R>(
    place: usize,
    key: usize,
    queue: Queue,
    f: impl FnOnce(&mut WorkQueue, &DoorbellPage) -> Option<R>,
) -> Option<R> {
    let mut work = pair(place)?.works[queue as usize].lock();
    let work = &mut *work;
    if work.key != key || !work.open {
        return None;
    }
    f(&mut work.queue, work.page.as_ref()?)
}

/// Posts the descriptor at `address`, in the memory of `handle`, on a queue of the connected VI at
/// `place`, if nothing is to be looked up and its data does not travel with the doorbell. None if
/// not so, if that VI has another key or is not connected, or if there is anything to complain
/// about: [`post_at`], and after it [`crate::Vi::post_at`], do the rest.
#[must_use]
#[inline]
pub fn post_plain(place: usize, key: usize, queue: Queue, address: u64, handle: u32) -> Option<()> {
    with_open(place, key, queue, |work, page| {
        work.post_plain(address, Handle(handle)).map(|token| page.ring_bits(token))
    })
}

/// The same, also with data that travels with the doorbell.
#[must_use]
pub fn post_at(place: usize, key: usize, queue: Queue, address: u64, handle: u32) -> Option<()> {
    with_open(place, key, queue, |work, page| {
        let ring = |token, inline: Option<&Inline>| match inline {
            Some(inline) => page.push(Token::from_bits(token), inline.data(), inline.immediate),
            None => page.ring_bits(token),
        };
        work.post_at(address, Handle(handle), &|_| None, ring).ok()
    })
}

/// Takes the oldest descriptor of a queue of the VI at `place` if it is done: its address and its
/// status. None if that VI has another key.
#[must_use]
#[inline]
pub fn take(place: usize, key: usize, queue: Queue) -> Option<Head<(u64, u32)>> {
    let mut work = pair(place)?.works[queue as usize].lock();
    (work.key == key).then(|| work.take_address())
}

/// Address of the oldest descriptor of a queue of the VI at `place`, if that VI has this key and
/// the last [`take`] has found the descriptor not done; else 0. So who polls need only look at its
/// status. It takes no lock: the descriptor may just have been taken by another thread.
#[must_use]
#[inline]
pub fn head(place: usize, key: usize, queue: Queue) -> usize {
    let Some(pair) = pair(place) else { return 0 };
    if pair.key.load(Ordering::Acquire) != key {
        return 0;
    }
    pair.heads[queue as usize].load(Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use host_driver::dma::DmaMemory;

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

    #[test]
    fn a_head_that_is_not_done_is_noted_until_it_is_taken() {
        let place = Place::take(works()).unwrap();
        let number = place.number();
        place.set_key(78);
        let (memory, handle) = (DmaMemory::new(64).unwrap(), Handle::new(1, 1));
        let find = |_| Some((memory.clone(), true));
        let address = usize::try_from(memory.address()).unwrap();
        let work = place.work(Queue::Recv);
        work.lock().post_at(memory.address(), handle, &find, |_, _| ()).unwrap();
        assert_eq!(head(number, 78, Queue::Recv), 0, "nobody has looked");
        assert!(matches!(take(number, 78, Queue::Recv), Some(Head::NotDone)));
        assert_eq!(head(number, 78, Queue::Recv), address);
        assert_eq!([head(number, 79, Queue::Recv), head(number, 78, Queue::Send)], [0, 0]);
        memory.store_u32(28, 1);
        assert!(matches!(take(number, 78, Queue::Recv), Some(Head::Done((_, 1)))));
        assert_eq!(head(number, 78, Queue::Recv), 0);
        // Also if it is taken the other way.
        memory.store_u32(28, 0);
        work.lock().post_at(memory.address(), handle, &find, |_, _| ()).unwrap();
        assert!(matches!(take(number, 78, Queue::Recv), Some(Head::NotDone)));
        memory.store_u32(28, 1);
        assert!(matches!(work.lock().take(), Head::Done(_)));
        assert_eq!(head(number, 78, Queue::Recv), 0);
    }
}
