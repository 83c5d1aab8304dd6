//! Work queues: descriptors in registered memory, chained by Next, posted by doorbell, completed in
//! place.
//!
//! The rule of `docs/contract.md` 2.3: write Next of the last descriptor, store fence, doorbell,
//! all under one lock of the queue. Next of a descriptor that the program has taken back is never
//! written: it may be in use again.

use std::collections::VecDeque;

use nic_regs::desc::{self, ALIGNMENT, status};
use nic_regs::doorbell::{Queue, Token};
use nic_regs::tpt::Handle;

use crate::dma::DmaMemory;
use crate::error::{Error, Result};

/// Descriptors that a queue has room for without allocating.
const INITIAL_CAPACITY: usize = 64;

/// A place in a descriptor, from its `u64` in `nic_regs::desc`.
#[expect(clippy::cast_possible_truncation, reason = "a descriptor is smaller than 64 KiB")]
const fn place(offset: u64) -> usize {
    offset as usize
}

const NEXT: usize = place(desc::NEXT_OFFSET);
const NEXT_HANDLE: usize = place(desc::NEXT_HANDLE_OFFSET);
const SEG_COUNT: usize = place(desc::SEG_COUNT_OFFSET);
const LENGTH: usize = place(desc::LENGTH_OFFSET);
const STATUS: usize = place(desc::STATUS_OFFSET);
const SLOT_MIN: usize = place(ALIGNMENT);

/// A descriptor's memory and how the device finds it.
#[derive(Clone, Debug)]
pub struct Slot {
    memory: DmaMemory,
    handle: Handle,
    offset_64: u32,
}

impl Slot {
    /// The descriptor at `offset` of `region`, with room for `length` bytes; `handle` names the
    /// region.
    ///
    /// # Errors
    /// [`Error::BadArgument`] unless aligned to 64 bytes; [`Error::OutOfRange`].
    pub fn new(region: &DmaMemory, handle: Handle, offset: usize, length: usize) -> Result<Self> {
        let memory = region.slice(offset, length)?;
        if !memory.address().is_multiple_of(ALIGNMENT) {
            let value = memory.address();
            return Err(Error::BadArgument {
                what: "address of descriptor (64-byte aligned)",
                value,
            });
        }
        if length < SLOT_MIN {
            let value = length as u64;
            return Err(Error::BadArgument { what: "room for descriptor", value });
        }
        // Tokens count from the region's base rounded down to 64 bytes.
        let distance = memory.address() - region.address() / ALIGNMENT * ALIGNMENT;
        let offset_64 = u32::try_from(distance / ALIGNMENT)
            .ok()
            .filter(|n| *n < 1 << Token::OFFSET_BITS)
            .ok_or(Error::BadArgument { what: "offset of descriptor", value: distance })?;
        Ok(Self { memory, handle, offset_64 })
    }

    /// The descriptor's bytes.
    #[must_use]
    pub const fn memory(&self) -> &DmaMemory {
        &self.memory
    }

    /// Handle of its region.
    #[must_use]
    pub const fn handle(&self) -> Handle {
        self.handle
    }

    /// Status word.
    #[must_use]
    pub fn status(&self) -> u32 {
        self.memory.load_u32(STATUS)
    }

    fn segment_count(&self) -> u16 {
        (self.memory.load_u32(SEG_COUNT) & 0xffff) as u16
    }

    fn control(&self) -> u16 {
        (self.memory.load_u32(SEG_COUNT) >> 16) as u16
    }

    /// Makes `next` the descriptor after this one.
    fn link(&self, next: &Self) {
        self.memory.store_u32(NEXT_HANDLE, next.handle.0);
        self.memory.store_u64(NEXT, next.memory.address());
    }

    /// Completes the descriptor as software does.
    pub fn complete(&self, status: u32) {
        self.memory.store_u32(LENGTH, 0);
        self.memory.store_u32(STATUS, status);
    }
}

/// One work queue of a VI, without its lock.
#[derive(Debug)]
pub struct WorkQueue {
    vi: u16,
    queue: Queue,
    /// The posted and not yet taken descriptors. It grows to the depth that the program uses and
    /// stays there.
    slots: VecDeque<Slot>,
    limit: usize,
    posted: u64,
    /// Posts are kept back until [`WorkQueue::repost`].
    held: bool,
}

/// What the head of a work queue is.
#[derive(Clone, Debug)]
pub enum Head {
    /// Nothing is posted.
    Empty,
    /// The device works on it.
    NotDone,
    /// Taken: it is done.
    Done(Slot),
}

impl WorkQueue {
    /// An empty queue for at most `limit` descriptors.
    #[must_use]
    pub fn new(vi: u16, queue: Queue, limit: usize) -> Self {
        let slots = VecDeque::with_capacity(limit.min(INITIAL_CAPACITY));
        Self { vi, queue, slots, limit, posted: 0, held: false }
    }

    /// Whether nothing is posted that was not taken back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Descriptors posted since creation.
    #[must_use]
    pub const fn posted(&self) -> u64 {
        self.posted
    }

    /// Descriptors done since creation, as far as statuses tell. Statuses come in order, so few of
    /// them are looked at.
    #[must_use]
    pub fn done(&self) -> u64 {
        let done = self.slots.partition_point(|slot| slot.status() & status::DONE != 0);
        self.posted - (self.slots.len() - done) as u64
    }

    /// Whether the device has nothing of this queue to do, as far as statuses tell.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.slots.back().is_none_or(|slot| slot.status() & status::DONE != 0)
    }

    fn operation(&self, slot: &Slot) -> u32 {
        match self.queue {
            Queue::Send => desc::send_operation(slot.control()),
            Queue::Recv => status::OP_RECEIVE,
        }
    }

    fn check_room(&self) -> Result<()> {
        if self.slots.len() < self.limit {
            return Ok(());
        }
        Err(Error::Exhausted { what: "place in the work queue", limit: self.limit })
    }

    fn push(&mut self, slot: &Slot) {
        self.slots.push_back(slot.clone());
        self.posted += 1;
    }

    fn token(&self, slot: &Slot) -> Token {
        Token {
            vi: self.vi,
            region: slot.handle.index(),
            offset_64: slot.offset_64,
            segments: u8::try_from(slot.segment_count().min(31)).unwrap_or(31),
            queue: self.queue,
        }
    }

    /// Posts a descriptor to the device; `ring` writes the doorbell.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if the queue is full.
    pub fn post(&mut self, slot: &Slot, ring: impl FnOnce(Token)) -> Result<()> {
        self.check_room()?;
        slot.memory.store_u32(STATUS, 0);
        if let Some(tail) = self.slots.back() {
            tail.link(slot);
        }
        self.push(slot);
        if !self.held {
            // The doorbell orders itself after these stores (`Bar::write64`).
            ring(self.token(slot));
        }
        Ok(())
    }

    /// Posts a descriptor that completes at once as flushed, without the device.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if the queue is full.
    pub fn post_flushed(&mut self, slot: &Slot) -> Result<()> {
        self.check_room()?;
        self.push(slot);
        slot.complete(status::DONE | status::DESC_FLUSHED_ERROR | self.operation(slot));
        Ok(())
    }

    /// Address of the oldest descriptor that was not taken.
    #[must_use]
    pub fn head_address(&self) -> Option<u64> {
        self.slots.front().map(|slot| slot.memory.address())
    }

    /// Takes the oldest descriptor if it is done.
    pub fn take(&mut self) -> Head {
        let Some(slot) = self.slots.front() else { return Head::Empty };
        if slot.status() & status::DONE == 0 {
            return Head::NotDone;
        }
        self.slots.pop_front().map_or(Head::Empty, Head::Done)
    }

    /// Descriptors posted and not done.
    #[must_use]
    pub fn not_done(&self) -> usize {
        self.pending().count()
    }

    /// The descriptors that are not done, in order.
    fn pending(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.status() & status::DONE == 0)
    }

    /// Keeps posts back: the device is about to forget its queue.
    pub const fn hold(&mut self) {
        self.held = true;
    }

    /// Posts again what is not done, after the device forgot its queue.
    pub fn repost(&mut self, ring: impl Fn(Token)) {
        self.held = false;
        let mut last: Option<&Slot> = None;
        for slot in self.pending() {
            if let Some(last) = last {
                last.link(slot);
            }
            ring(self.token(slot));
            last = Some(slot);
        }
    }

    /// Completes everything that is not done, in order: the first with the status bits `first`, the
    /// others as flushed. The device must not own the descriptors any more. Gives the first one.
    pub fn flush(&self, first: u32) -> Option<Slot> {
        let mut bits = first;
        let mut first_slot = None;
        for slot in self.pending() {
            slot.complete(status::DONE | bits | self.operation(slot));
            bits = status::DESC_FLUSHED_ERROR;
            first_slot.get_or_insert_with(|| slot.clone());
        }
        first_slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(count: usize) -> (DmaMemory, Vec<Slot>) {
        let memory = DmaMemory::new(count * 64).unwrap();
        let slot = |i| Slot::new(&memory, Handle::new(3, 7), i * 64, 64).unwrap();
        let slots = (0..count).map(slot).collect();
        (memory, slots)
    }

    #[test]
    fn chains_descriptors_before_the_doorbell() {
        let (memory, slots) = slots(3);
        let mut queue = WorkQueue::new(5, Queue::Recv, 8);
        queue.post(&slots[0], |token| assert_eq!((token.vi, token.offset_64), (5, 0))).unwrap();
        queue
            .post(&slots[1], |token| {
                assert_eq!(token.offset_64, 1);
                assert_eq!(memory.load_u64(0), memory.address() + 64);
                assert_eq!(memory.load_u32(8), Handle::new(3, 7).0);
            })
            .unwrap();
        assert!(matches!(queue.take(), Head::NotDone));
        slots[0].complete(status::DONE);
        slots[1].complete(status::DONE);
        assert!(matches!(queue.take(), Head::Done(_)));
        assert!(matches!(queue.take(), Head::Done(_)));
        assert!(matches!(queue.take(), Head::Empty));
        // Both were taken back, so posting must not write into them.
        memory.store_u64(64, 0xdead);
        queue.post(&slots[2], |_| ()).unwrap();
        assert_eq!(memory.load_u64(64), 0xdead);
    }

    #[test]
    fn flushes_in_order_and_keeps_what_is_done() {
        let (_memory, slots) = slots(4);
        let mut queue = WorkQueue::new(0, Queue::Send, 4);
        for slot in &slots {
            queue.post(slot, |_| ()).unwrap();
        }
        assert!(queue.post(&slots[0], |_| ()).is_err());
        assert_eq!(queue.done(), 0);
        slots[0].complete(status::DONE);
        assert_eq!(queue.done(), 1);
        let first = queue.flush(status::TRANSPORT_ERROR).unwrap();
        assert_eq!(first.memory().address(), slots[1].memory().address());
        let statuses: Vec<_> = slots.iter().map(Slot::status).collect();
        let flushed = status::DONE | status::DESC_FLUSHED_ERROR;
        let transport = status::DONE | status::TRANSPORT_ERROR;
        assert_eq!(statuses, [status::DONE, transport, flushed, flushed]);
        assert!(queue.flush(status::TRANSPORT_ERROR).is_none());
        assert!(matches!(queue.take(), Head::Done(_)));
        assert_eq!(queue.done(), 4);
    }

    #[test]
    fn held_posts_are_made_up_for() {
        let (memory, slots) = slots(3);
        let mut queue = WorkQueue::new(0, Queue::Recv, 4);
        queue.post(&slots[0], |_| ()).unwrap();
        queue.post(&slots[1], |_| ()).unwrap();
        slots[0].complete(status::DONE);
        queue.hold();
        queue.post(&slots[2], |_| panic!("held")).unwrap();
        memory.store_u64(64, 0);
        let rung = std::cell::RefCell::new(Vec::new());
        queue.repost(|token| rung.borrow_mut().push(token.offset_64));
        assert_eq!(rung.into_inner(), [1, 2]);
        assert_eq!(memory.load_u64(64), memory.address() + 128);
        assert_eq!((queue.not_done(), queue.posted()), (2, 3));
    }

    #[test]
    fn refuses_misaligned_and_short_slots() {
        let memory = DmaMemory::new(256).unwrap();
        assert!(Slot::new(&memory, Handle::new(0, 1), 8, 64).is_err());
        assert!(Slot::new(&memory, Handle::new(0, 1), 0, 32).is_err());
        assert!(Slot::new(&memory, Handle::new(0, 1), 192, 128).is_err());
        let odd = memory.slice(40, 200).unwrap();
        assert_eq!(Slot::new(&odd, Handle::new(0, 1), 24, 64).unwrap().offset_64, 1);
    }
}
