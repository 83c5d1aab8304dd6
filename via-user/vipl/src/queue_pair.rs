//! Queue-pair slots: where the two work queues of a VI live, each with its lock.
//!
//! Slots are used again and never move, so that a program in C, which names a VI by a handle, can
//! post and take without a lock but the queue's: it looks the slot up, takes the queue's lock, and
//! then compares handles ([`WorkQueue::is_of`]). The queue of a VI that no longer exists has another
//! handle, or none.

use port::Queue;
use port::lock::Lock;
use port::slab::Slab;
use port::work_queue::WorkQueue;

/// The queues of a VI, send and receive: two threads that use one each write no common line of a
/// cache.
#[derive(Debug, Default)]
struct QueuePair {
    queues: [Apart; 2],
}

/// Processors fetch lines of 64 bytes in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart(Lock<WorkQueue>);

static SLOTS: Slab<QueuePair> = Slab::new();

/// A queue of the VI in a slot, which may have changed hands.
#[must_use]
#[inline(always)]
pub fn queue(slot: usize, queue: Queue) -> Option<&'static Lock<WorkQueue>> {
    Some(&SLOTS.get(slot)?.queues[queue as usize].0)
}

/// A VI's slot, released when this is dropped.
#[derive(Debug)]
pub(crate) struct QueuePairSlot {
    number: usize,
    pair: &'static QueuePair,
}

impl QueuePairSlot {
    /// A free slot for these queues. None if there are too many VIs.
    pub(crate) fn take(queues: [WorkQueue; 2]) -> Option<Self> {
        let (number, pair) = SLOTS.take()?;
        let slot = Self { number, pair };
        slot.set(queues);
        Some(slot)
    }

    fn set(&self, queues: [WorkQueue; 2]) {
        for (slot, queue) in self.pair.queues.iter().zip(queues) {
            let before = core::mem::replace(&mut *slot.0.lock(), queue);
            drop(before);
        }
    }

    /// Its number.
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    /// Sets the handle by which a program in C names the VI.
    pub(crate) fn set_handle(&self, handle: Option<usize>) {
        for queue in &self.pair.queues {
            queue.0.lock().set_owner(handle);
        }
    }

    pub(crate) fn queue(&self, of: Queue) -> &'static Lock<WorkQueue> {
        &self.pair.queues[of as usize].0
    }
}

impl Drop for QueuePairSlot {
    fn drop(&mut self) {
        self.set(Default::default());
        SLOTS.release(self.number);
    }
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use port::Doorbell;
    use port::work_queue::{Head, WorkQueueConfig};

    use super::*;

    fn queues() -> [WorkQueue; 2] {
        [Queue::Send, Queue::Recv].map(|queue| {
            let (operations, push, doorbell) = (u8::MAX, false, Doorbell::nowhere());
            WorkQueue::new(WorkQueueConfig { queue, limit: 1024, operations, push, doorbell })
        })
    }

    #[test]
    fn a_stale_handle_finds_another_owner_or_none() {
        let slot = QueuePairSlot::take(queues()).unwrap();
        let (number, [first, second]) = (slot.number(), [77, 78]);
        let sends = queue(number, Queue::Send).unwrap();
        assert!(!sends.lock().is_of(first));
        slot.set_handle(Some(first));
        assert!(sends.lock().is_of(first) && !sends.lock().is_of(second));
        assert_eq!(sends.lock().take_address(), Head::Empty);
        assert!(!sends.lock().is_open());
        drop(slot);
        assert!(!sends.lock().is_of(first));
        assert!(queue(usize::MAX, Queue::Recv).is_none());
    }

    /// Two threads at work at two VIs, or at both queues of one, write to no common line of a cache.
    #[test]
    fn queues_share_no_written_line() {
        let slots = [(); 3].map(|()| QueuePairSlot::take(queues()).unwrap());
        let mut lines = std::collections::BTreeSet::new();
        for slot in &slots {
            for queue in &slot.pair.queues {
                let value = ptr::from_ref(queue).addr();
                let footprint = queue.0.lock().footprint();
                for written in [value..value + size_of::<Apart>(), footprint] {
                    for line in written.start / 64..written.end.div_ceil(64) {
                        assert!(lines.insert(line), "line {:#x} has two writers", line * 64);
                    }
                }
            }
        }
    }
}
