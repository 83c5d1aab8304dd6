//! Where the work queues of VIs live: places that are used again and never freed.
//!
//! So who has the number of a place and a key (the C library's handle of a VI) may post and take
//! without holding the VI: the key is compared under the queue's lock. This is the fast path: one
//! lock of the queue, and nothing that another VI writes.

use core::array;
use core::ops::{Deref, DerefMut};
use std::collections::VecDeque;
use std::sync::OnceLock;

use host_driver::doorbell::DoorbellPage;
use host_driver::work_queue::WorkQueue;
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
        Self { queue, key: 0, open: false, page }
    }

    pub(crate) const fn set_open(&mut self, open: bool) {
        self.open = open;
    }

    pub(crate) const fn set_key(&mut self, key: usize) {
        self.key = key;
    }
}

/// Both work queues of a VI, apart from those of others.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Pair([Mutex<Work>; 2]);

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
        for (place, work) in pair.0.iter().zip(works) {
            *place.lock() = work;
        }
        Some(Self { number, pair })
    }

    /// Its number.
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    #[inline]
    pub(crate) const fn work(&self, queue: Queue) -> &'static Mutex<Work> {
        &self.pair.0[queue as usize]
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for place in &self.pair.0 {
            *place.lock() = Work::default();
        }
        FREE.lock().used.push_back(self.number);
    }
}

/// Posts the descriptor at `address`, in the memory of `handle`, on a queue of the connected VI at
/// `place`, if nothing is to be looked up and its data does not travel with the doorbell. False if
/// so, if that VI has another key or is not connected, or if there is anything to complain about:
/// [`post_at`], and after it [`crate::Vi::post_at`], do the rest.
#[must_use]
#[inline]
pub fn post_plain(place: usize, key: usize, queue: Queue, address: u64, handle: u32) -> bool {
    let Some(pair) = pair(place) else { return false };
    let mut work = pair.0[queue as usize].lock();
    let work = &mut *work;
    if work.key != key || !work.open {
        return false;
    }
    let Some(page) = &work.page else { return false };
    let token = work.queue.post_plain(address, Handle(handle));
    token.is_some_and(|token| {
        page.ring_bits(token);
        true
    })
}

/// The same, also with data that travels with the doorbell. None where `post_plain` says false.
#[must_use]
pub fn post_at(place: usize, key: usize, queue: Queue, address: u64, handle: u32) -> Option<()> {
    let mut work = pair(place)?.0[queue as usize].lock();
    let work = &mut *work;
    if work.key != key || !work.open {
        return None;
    }
    let page = work.page.as_ref()?;
    let posted =
        work.queue.post_at(address, Handle(handle), &|_| None, |token, inline| match inline {
            Some(inline) => page.push(Token::from_bits(token), inline.data(), inline.immediate),
            None => page.ring_bits(token),
        });
    posted.ok()
}

/// Takes the oldest descriptor of a queue of the VI at `place` if it is done: its address and its
/// status. None if that VI has another key.
#[must_use]
#[inline]
pub fn take(place: usize, key: usize, queue: Queue) -> Option<Head<(u64, u32)>> {
    let mut work = pair(place)?.0[queue as usize].lock();
    (work.key == key).then(|| work.queue.take_address())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn works() -> [Work; 2] {
        [Queue::Send, Queue::Recv].map(|queue| {
            let mut work = Work::new(WorkQueue::new(1, queue, 4, u8::MAX, false), None);
            work.set_key(77);
            work
        })
    }

    #[test]
    fn only_the_key_of_now_opens_a_place() {
        let place = Place::take(works()).unwrap();
        let number = place.number();
        assert!(matches!(take(number, 77, Queue::Send), Some(Head::Empty)));
        assert!(take(number, 78, Queue::Send).is_none());
        assert!(post_at(number, 77, Queue::Send, 0, 0).is_none(), "not connected");
        drop(place);
        assert!(take(number, 77, Queue::Send).is_none());
        assert!(take(usize::MAX, 77, Queue::Send).is_none());
    }
}
