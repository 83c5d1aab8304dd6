//! Work queues: descriptors in registered memory, chained by Next, posted by doorbell, completed in
//! place. VIA's rule, which is the same for every port.
//!
//! To post is to write Next of the last descriptor, store fence, doorbell, all under the queue's
//! lock (`docs/contract.md` 2.3). Next of a descriptor that the program has taken is never written:
//! it may be in use again.
//!
//! Posting and taking allocate nothing and write nothing that another queue writes: a queue has its
//! ring from the start, and its own handle to the memory of each region that it has met. A region
//! that it has not met is refused with [`PostError::UnknownRegion`]; [`WorkQueue::post_finding`]
//! looks for it.

mod ring;
mod slot;
#[cfg(test)]
mod tests;

use core::ops::Range;

use nic_regs::desc::{control, status};
use nic_regs::doorbell::Queue;
use nic_regs::tpt::Handle;

use crate::doorbell::{Doorbell, INLINE_BYTES, InlineSource, Post};
use crate::error::{Error, Result};
use crate::memory::{DmaMemory, LINE_BYTES};
use crate::stamp::{Stage, stamp};
use ring::{DescriptorRing, Located, LocatedData, Posted};
use slot::Front;

pub use slot::Slot;

/// What a work queue is created with.
#[derive(Debug)]
pub struct WorkQueueConfig {
    /// Which of the VI's two queues.
    pub queue: Queue,
    /// Most descriptors that are posted and not taken.
    pub limit: usize,
    /// Operations of sends that the port has: a bit for each value of the control bits.
    pub operations: u8,
    /// Data of short sends travels with their doorbells.
    pub push: bool,
    /// What is rung.
    pub doorbell: Doorbell,
}

/// Why a descriptor was not posted. Nothing has happened then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// The queue has not met this region: [`WorkQueue::learn`] it, and post again.
    UnknownRegion(Handle),
    /// The descriptor at this address is not aligned to 64 bytes, or not inside its region.
    Outside(u64),
    /// As many descriptors are posted as the queue takes.
    Full,
    /// The port does not have the descriptor's operation.
    Operation,
}

impl From<PostError> for Error {
    #[cold]
    fn from(error: PostError) -> Self {
        match error {
            PostError::UnknownRegion(handle) => {
                Self::NoSuch { what: "memory handle", index: handle.0 }
            }
            PostError::Outside(address) => Self::BadArgument {
                what: "address of descriptor (64-byte aligned, inside its region, within 4 GiB of \
                       its base)",
                value: address,
            },
            PostError::Full => Self::Exhausted { what: "place in the work queue", limit: 0 },
            PostError::Operation => Self::NotSupported { what: "RDMA of this kind" },
        }
    }
}

/// State of the oldest descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head<T> {
    /// Nothing is posted.
    Empty,
    /// The port has not completed it.
    NotDone,
    /// It was done, and was taken.
    Done(T),
}

/// Data that may travel with a doorbell.
#[derive(Clone, Copy)]
struct ShortSend {
    data: LocatedData,
    immediate: Option<u32>,
}

impl ShortSend {
    #[inline(always)]
    fn source(self, ring: &DescriptorRing) -> InlineSource<'_> {
        InlineSource { data: ring.located_data(self.data), immediate: self.immediate }
    }
}

/// A handle that no VI has.
const NO_OWNER: usize = usize::MAX;

/// One work queue of a VI, without its lock.
#[derive(Debug)]
pub struct WorkQueue {
    /// Handle by which a program in C names the VI, or [`NO_OWNER`].
    owner: usize,
    /// The VI is connected: posts reach the device.
    open: bool,
    /// Posts are not rung until [`WorkQueue::repost`].
    held: bool,
    push: bool,
    operations: u8,
    queue: Queue,
    ring: DescriptorRing,
    doorbell: Doorbell,
}

/// A queue in which nothing can be posted.
impl Default for WorkQueue {
    fn default() -> Self {
        let (queue, doorbell) = (Queue::Send, Doorbell::nowhere());
        Self::new(WorkQueueConfig { queue, limit: 0, operations: 0, push: false, doorbell })
    }
}

impl WorkQueue {
    /// An empty queue.
    #[must_use]
    pub fn new(config: WorkQueueConfig) -> Self {
        let WorkQueueConfig { queue, limit, operations, push, doorbell } = config;
        let (operations, push) = match queue {
            Queue::Send => (operations, push),
            Queue::Recv => (u8::MAX, false),
        };
        let (owner, open, held) = (NO_OWNER, false, false);
        let ring = DescriptorRing::new(limit);
        Self { owner, open, held, push, operations, queue, ring, doorbell }
    }

    /// Sets the handle by which a program in C names the VI, or that it has none.
    pub fn set_owner(&mut self, owner: Option<usize>) {
        self.owner = owner.unwrap_or(NO_OWNER);
    }

    /// Whether the VI has this handle. False for one that is stale.
    #[must_use]
    #[inline(always)]
    pub const fn is_of(&self, owner: usize) -> bool {
        self.owner == owner
    }

    /// Sets whether the VI is connected.
    pub const fn set_open(&mut self, open: bool) {
        self.open = open;
    }

    /// Whether the VI is connected.
    #[must_use]
    #[inline(always)]
    pub const fn is_open(&self) -> bool {
        self.open
    }

    /// Whether nothing is posted that was not taken.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Descriptors done since creation, as far as statuses show. Statuses come in order, so few of
    /// them are looked at.
    #[must_use]
    pub fn done(&self) -> u64 {
        let (mut done, mut open) = (self.ring.taken, self.ring.posted);
        while done < open {
            let middle = done.midpoint(open);
            if self.ring.at(middle).front.is_done() {
                done = middle + 1;
            } else {
                open = middle;
            }
        }
        done
    }

    /// Whether the port has nothing of this queue to do, as far as statuses show.
    #[must_use]
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.ring.last().is_none_or(Front::is_done)
    }

    /// Meets a region, of which the VI may read the bytes or not. False if no descriptor fits into
    /// it, or if it is longer than 4 GiB.
    pub fn learn(&mut self, handle: Handle, memory: &DmaMemory, readable: bool) -> bool {
        self.ring.learn(handle, memory, readable)
    }

    /// Forgets a region: its rights have changed, or it is no longer registered.
    pub fn forget(&mut self, handle: Handle) {
        self.ring.forget(|known| known == handle);
    }

    /// Forgets all regions: rights in any of them may have changed.
    pub fn forget_all(&mut self) {
        self.ring.forget(|_| true);
    }

    /// Posts the descriptor at a virtual address in the memory of `handle`, and rings. A short send
    /// takes its data along if the queue is idle.
    ///
    /// # Errors
    /// [`PostError`]. [`PostError::UnknownRegion`] may also name the region of the data.
    pub fn post(&mut self, address: u64, handle: Handle) -> core::result::Result<(), PostError> {
        self.post_as(address, handle, 0, self.push)
    }

    /// [`WorkQueue::post`] where nothing is called, because the doorbell is mapped and the region is
    /// that of the last post, and where no data travels along. False, with nothing done, in any other
    /// case. Not for a queue that is held.
    #[inline(always)]
    pub fn post_token(&mut self, address: u64, handle: Handle) -> bool {
        debug_assert!(!self.held);
        let Doorbell::Mapped(doorbell) = &self.doorbell else { return false };
        if self.push && self.is_idle() {
            return false;
        }
        let Ok((located, shape)) = self.locate(address, handle) else { return false };
        doorbell.ring(&self.ring.enter(located, address, handle, shape & 0xffff, 0));
        true
    }

    /// The same where data may travel along.
    #[inline(always)]
    pub fn post_push(&mut self, address: u64, handle: Handle) -> bool {
        debug_assert!(!self.held);
        let Doorbell::Mapped(doorbell) = &self.doorbell else { return false };
        let Ok((located, shape)) = self.locate(address, handle) else { return false };
        let Ok(short) = self.short(located, shape, self.push) else { return false };
        let post = self.ring.enter(located, address, handle, shape & 0xffff, 0);
        match short {
            Some(short) => doorbell.ring_with_data(&post, short.source(&self.ring)),
            None => doorbell.ring(&post),
        }
        true
    }

    fn post_as(
        &mut self,
        address: u64,
        handle: Handle,
        room: u32,
        push: bool,
    ) -> core::result::Result<(), PostError> {
        let (located, shape, short) = loop {
            let located = self.locate(address, handle).and_then(|(located, shape)| {
                Ok((located, shape, self.short(located, shape, push)?))
            });
            match located {
                Err(PostError::UnknownRegion(wanted)) if self.ring.recall(wanted, handle) => {}
                Err(PostError::Full) if self.ring.grow() => {}
                located => break located?,
            }
        };
        let post = self.ring.enter(located, address, handle, shape & 0xffff, room);
        if !self.held {
            if matches!(self.queue, Queue::Send) {
                stamp(Stage::Post);
            }
            // The doorbell orders itself after the stores to the descriptors.
            match short {
                Some(short) => self.doorbell.ring_with_data(&post, short.source(&self.ring)),
                None => self.doorbell.ring(&post),
            }
        }
        Ok(())
    }

    /// Sends a message without a descriptor ([`crate::doorbell::Ring::send_now`]), if the queue is idle
    /// and the VI connected. False: nothing has happened.
    pub fn send_now(&self, data: &[u8], immediate: Option<u32>) -> bool {
        self.open && !self.held && self.is_idle() && self.doorbell.send_now(data, immediate)
    }

    /// What may travel with the doorbell of an idle queue, if `push`: data and immediate data of a
    /// plain send of at most one segment that is short and lies in a region that the VI may read.
    /// Everything else the device judges.
    #[inline(always)]
    fn short(
        &self,
        located: Located,
        shape: u32,
        push: bool,
    ) -> core::result::Result<Option<ShortSend>, PostError> {
        if !push || !self.is_idle() {
            return Ok(None);
        }
        let front = self.ring.located(located);
        let (count, bits) = (shape & 0xffff, (shape >> 16) as u16);
        let plain = bits & !control::IMMEDIATE == control::OP_SENDRECV;
        // Of a descriptor without segments the length has no meaning.
        let length = if count == 0 { 0 } else { front.segment_length() };
        if !plain || count > 1 || front.reserved() != 0 || length > INLINE_BYTES {
            return Ok(None);
        }
        let (address, handle) = (front.segment_address(), front.segment_handle());
        let Some(data) = self.ring.locate_data(address, length, handle)? else { return Ok(None) };
        let immediate = (bits & control::IMMEDIATE != 0).then(|| front.immediate());
        Ok(Some(ShortSend { data, immediate }))
    }

    /// Locates a descriptor of the region that was used last; returns its segment count and, above,
    /// control bits too.
    #[inline(always)]
    fn locate(
        &self,
        address: u64,
        handle: Handle,
    ) -> core::result::Result<(Located, u32), PostError> {
        let located = self.ring.locate(address, handle)?;
        let shape = self.ring.located(located).shape();
        let good = has_operation(self.operations, shape);
        if good { Ok((located, shape)) } else { Err(PostError::Operation) }
    }

    /// Posts as [`WorkQueue::post`]; `find` looks for regions that the queue has not met, and
    /// returns whether the VI may read them.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if the queue is full; [`Error::BadArgument`] if the address is not
    /// aligned to 64 bytes, or not inside its region, or that is not to be found;
    /// [`Error::NotSupported`] for an operation that the port does not have.
    pub fn post_finding(
        &mut self,
        address: u64,
        handle: Handle,
        room: u32,
        find: &impl Fn(Handle) -> Option<(DmaMemory, bool)>,
    ) -> Result<()> {
        let mut push = self.push;
        loop {
            let wanted = match self.post_as(address, handle, room, push) {
                Err(PostError::UnknownRegion(wanted)) => wanted,
                Err(PostError::Full) => return Err(self.ring.full()),
                posted => return Ok(posted?),
            };
            let found = find(wanted);
            if found.is_none_or(|(memory, readable)| !self.learn(wanted, &memory, readable)) {
                if wanted == handle {
                    return Err(PostError::Outside(address).into());
                }
                // The device judges the data.
                push = false;
            }
        }
    }

    /// Posts the descriptor of a slot; `find` as for [`WorkQueue::post_finding`].
    ///
    /// # Errors
    /// As [`WorkQueue::post_finding`].
    pub fn post_slot(
        &mut self,
        slot: &Slot,
        find: &impl Fn(Handle) -> Option<(DmaMemory, bool)>,
    ) -> Result<()> {
        let find = |wanted| {
            let found = find(wanted);
            if wanted != slot.handle() {
                return found;
            }
            let same = |memory: &DmaMemory| memory.address() == slot.region().address();
            let readable = found.is_some_and(|(memory, readable)| readable && same(&memory));
            Some((slot.region().clone(), readable))
        };
        self.post_finding(slot.memory().address(), slot.handle(), room_of(slot), &find)
    }

    /// Locates the descriptor of a slot; returns its segment count and, above, control bits too.
    fn locate_slot(&mut self, slot: &Slot) -> Result<(Located, u32)> {
        let (address, handle) = (slot.memory().address(), slot.handle());
        if !self.ring.recall(handle, handle) {
            if !self.learn(handle, slot.region(), false) {
                return Err(PostError::Outside(address).into());
            }
            self.ring.recall(handle, handle);
        }
        match self.locate(address, handle) {
            Err(PostError::Full) if self.ring.grow() => Ok(self.locate(address, handle)?),
            located => Ok(located?),
        }
    }

    /// Enters the descriptor of a slot without ringing; the caller rings with what is returned.
    ///
    /// # Errors
    /// As [`WorkQueue::post_finding`].
    pub fn enter_slot(&mut self, slot: &Slot) -> Result<Post> {
        let (located, shape) = self.locate_slot(slot)?;
        let (address, handle) = (slot.memory().address(), slot.handle());
        Ok(self.ring.enter(located, address, handle, shape & 0xffff, room_of(slot)))
    }

    /// Enters a descriptor that completes as flushed, without the port: at once, or, if others
    /// before it are still to be flushed, with them ([`WorkQueue::flush`]), so that descriptors are
    /// done in order. True if it is done.
    ///
    /// # Errors
    /// As [`WorkQueue::post_finding`].
    pub fn post_flushed(&mut self, slot: &Slot) -> Result<bool> {
        let (located, _) = self.locate_slot(slot)?;
        let front = self.ring.located(located);
        let done = self.is_idle();
        if done {
            let operation = front.operation(self.queue);
            front.complete(status::DONE | status::DESC_FLUSHED_ERROR | operation);
        } else {
            front.clear_status();
        }
        self.ring.enter_unlinked(located, room_of(slot));
        Ok(done)
    }

    /// Takes the oldest descriptor if it is done; returns its virtual address and its status.
    #[inline(always)]
    pub fn take_address(&mut self) -> Head<(u64, u32)> {
        let (front, address) = self.ring.oldest();
        let status = front.status();
        if status & status::DONE == 0 {
            return if self.is_empty() { Head::Empty } else { Head::NotDone };
        }
        self.ring.leave();
        Head::Done((address, status))
    }

    /// Whether the port is called when a descriptor is not done: [`WorkQueue::poll_address`].
    #[must_use]
    #[inline(always)]
    pub const fn is_called(&self) -> bool {
        matches!(self.doorbell, Doorbell::Call(_))
    }

    /// As [`WorkQueue::take_address`], of a port that does its work when it is called.
    pub fn poll_address(&mut self) -> Head<(u64, u32)> {
        let head = self.take_address();
        let (Head::NotDone, Doorbell::Call(call)) = (&head, &self.doorbell) else { return head };
        call.poll();
        self.take_address()
    }

    /// Whether the oldest descriptor is done, which [`WorkQueue::take`] takes.
    #[inline]
    pub fn is_done(&self) -> bool {
        if let Doorbell::Call(call) = &self.doorbell
            && !self.is_empty()
            && !self.ring.oldest().0.is_done()
        {
            call.poll();
        }
        self.ring.oldest().0.is_done()
    }

    /// As [`WorkQueue::poll_address`]; returns the descriptor and its status.
    pub fn take(&mut self) -> Head<(Slot, u32)> {
        if !self.is_done() {
            return if self.is_empty() { Head::Empty } else { Head::NotDone };
        }
        let (front, _) = self.ring.oldest();
        let (status, slot) = (front.status(), slot_of(&self.ring.at(self.ring.taken)));
        self.ring.leave();
        // It was inside when it was posted.
        slot.map_or(Head::Empty, |slot| Head::Done((slot, status)))
    }

    /// Descriptors posted and not done.
    #[must_use]
    pub fn not_done(&self) -> usize {
        self.pending().count()
    }

    /// Whether a descriptor of this region is posted and not done.
    #[must_use]
    pub fn is_posted_in(&self, handle: Handle) -> bool {
        self.pending().any(|posted| posted.region.handle == handle)
    }

    /// The descriptors that are not done, in order.
    fn pending(&self) -> impl Iterator<Item = Posted<'_>> {
        let posted = (self.ring.taken..self.ring.posted).map(|number| self.ring.at(number));
        posted.filter(|posted| !posted.front.is_done())
    }

    /// Forgets everything that is posted, and looks at none of it.
    pub fn abandon(&mut self) {
        while !self.ring.is_empty() {
            self.ring.leave();
        }
    }

    /// Does not ring for posts from here on: the port is about to forget its queue.
    pub const fn hold(&mut self) {
        self.held = true;
    }

    /// Rings again for what is not done, after the port forgot its queue.
    pub fn repost(&mut self) {
        self.held = false;
        let mut last: Option<Front<'_>> = None;
        for posted in self.pending() {
            if let Some(last) = last {
                last.link(posted.address, posted.region.handle);
            }
            let post = posted.region.post(posted.address, posted.front.shape() & 0xffff);
            self.doorbell.ring(&post);
            last = Some(posted.front);
        }
    }

    /// Completes everything that is not done, in order: the first with the status bits `first`, the
    /// others as flushed. The port must not own the descriptors any more. Returns the first one and
    /// its status.
    pub fn flush(&self, first: u32) -> Option<(Slot, u32)> {
        let mut bits = first;
        let mut flushed = None;
        for posted in self.pending() {
            let status = status::DONE | bits | posted.front.operation(self.queue);
            posted.front.complete(status);
            bits = status::DESC_FLUSHED_ERROR;
            flushed = flushed.or_else(|| Some((slot_of(&posted)?, status)));
        }
        flushed
    }

    /// Addresses of the memory that posting and taking write, besides `self` and descriptors.
    #[must_use]
    pub fn footprint(&self) -> Range<usize> {
        self.ring.footprint()
    }
}

/// Whether the operation that a descriptor asks for is one of these.
#[inline(always)]
fn has_operation(operations: u8, shape: u32) -> bool {
    operations >> (shape >> 16 & u32::from(control::OP_MASK)) & 1 != 0
}

fn room_of(slot: &Slot) -> u32 {
    u32::try_from(slot.memory().len()).unwrap_or(u32::MAX)
}

fn slot_of(posted: &Posted<'_>) -> Option<Slot> {
    // Of one that was posted by its address at least the front is there.
    let room = (posted.room as usize).max(LINE_BYTES);
    let (region, address) = (posted.region, posted.address);
    let offset = usize::try_from(address - region.address).ok()?;
    Slot::new(&region.memory, region.handle, offset, room).ok()
}
