//! Where the work queues of VIs live: places that are used again and never freed.
//!
//! So who has the number of a place and a key (the C library's handle of a VI) may post and take
//! without holding the VI. This is the fast path: one atomic operation on the queue's gate, and
//! nothing that another VI writes.

use host_driver::gate::Key;
use host_driver::numbers::Numbers;
use host_driver::work_queue::{GatedQueue, Work};
use nic_regs::doorbell::Queue;

pub use host_driver::work_queue::{Head, Posting, Ready, Short, Taking, Watch};

/// Most places.
const PLACES: usize = 1 << 16;

/// The queues of all places, send and receive. Pages of it that no VI uses are never touched.
static QUEUES: [[GatedQueue; 2]; PLACES] = [const { [const { GatedQueue::new() }; 2] }; PLACES];

/// A queue of the VI at a place.
#[must_use]
#[inline(always)]
pub fn queue(place: usize, queue: Queue) -> &'static GatedQueue {
    &QUEUES[place % PLACES][queue as usize]
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
        for (queue, work) in QUEUES[number].iter().zip(works) {
            queue.furnish(work);
        }
        Some(Self { number })
    }

    /// Its number.
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    /// Lets whoever knows `key` use the queues by the number of the place; none lets nobody.
    pub(crate) fn set_key(&self, key: Option<Key>) {
        for queue in QUEUES[self.number].iter() {
            if let Some(mut work) = queue.lock() {
                work.set_key(key);
            }
        }
    }

    pub(crate) fn work(&self, of: Queue) -> &'static GatedQueue {
        queue(self.number, of)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for queue in &QUEUES[self.number] {
            queue.furnish(Work::default());
        }
        NUMBERS.give(self.number);
    }
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use host_driver::work_queue::WorkQueue;

    use super::*;

    fn works() -> [Work; 2] {
        [Queue::Send, Queue::Recv]
            .map(|queue| Work::new(WorkQueue::new(1, queue, 4, u8::MAX, false), None))
    }

    #[test]
    fn only_the_key_of_now_opens_a_place() {
        let [key, other] = [77, 78].map(|number| Key::new(Key::BIT | number).unwrap());
        let place = Place::take(works()).unwrap();
        let sends = queue(place.number(), Queue::Send);
        assert!(sends.take(key).is_none());
        place.set_key(Some(key));
        assert!(matches!(sends.take(key), Some(Head::Empty)));
        assert!(sends.take(other).is_none());
        assert!(sends.post_at(key, 0, 0).is_none(), "not connected");
        assert!(matches!(sends.take_at_hand(key), Taking::No), "not connected");
        sends.lock().unwrap().set_open(true);
        assert!(matches!(sends.take_at_hand(key), Taking::Found(Watch::NOTHING)));
        assert!(matches!(sends.take_at_hand(other), Taking::No));
        drop(place);
        assert!(sends.take(key).is_none());
        assert!(matches!(sends.take_at_hand(key), Taking::No));
        assert!(queue(usize::MAX, Queue::Recv).take(key).is_none());
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
            for queue in &QUEUES[place.number()] {
                let work = queue.lock().unwrap();
                let (gate, value) = (ptr::from_ref(queue).addr(), ptr::from_ref(&*work).addr());
                for written in [
                    gate..gate + size_of::<GatedQueue>(),
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
