//! Work queues: descriptors in registered memory, chained by Next, posted by doorbell, completed in
//! place.
//!
//! The rule of `docs/contract.md` 2.3: write Next of the last descriptor, store fence, doorbell,
//! all under one lock of the queue. Next of a descriptor that the program has taken back is never
//! written: it may be in use again.
//!
//! Posting and taking allocate nothing and touch nothing that another queue writes: a queue has its
//! ring from the start, and its own handle to the memory of each region that it has met.

mod gated;
mod inline;
mod ring;
mod slot;
#[cfg(test)]
mod tests;

use core::ops::Range;

use nic_regs::desc::{control, status};
use nic_regs::doorbell::{PUSH_DATA_BYTES, PUSH_HEADER_WORDS, PushControl, Queue, Token};
use nic_regs::tpt::Handle;

use crate::dma::{DmaMemory, LINE_BYTES};
use crate::error::{Error, Result};

use crate::dma::RegisterLine;
use crate::doorbell::PushLine;
use ring::{Candidate, Posted, Ring};
use slot::Front;

pub use gated::{GatedQueue, Posting, Ready, Short, Taking, Work, WorkGuard};
pub use inline::Inline;
pub use ring::Watch;
pub use slot::Slot;

/// Segment counts that a token can speak of.
const SEGMENTS_MASK: u32 = (1 << (Token::QUEUE_BIT - Token::SEGMENTS_LSB)) - 1;

/// One work queue of a VI, without its lock.
#[derive(Debug)]
pub struct WorkQueue {
    ring: Ring,
    /// Posts are kept back until [`WorkQueue::repost`].
    held: bool,
    /// The device takes data with the doorbell of a send.
    pushes: bool,
    /// Operations that the device has: a bit for each value of the control bits.
    operations: u8,
    queue: Queue,
    limit: usize,
}

/// What the head of a work queue is.
#[derive(Clone, Debug)]
pub enum Head<T> {
    /// Nothing is posted.
    Empty,
    /// The device works on it.
    NotDone,
    /// Taken: it is done.
    Done(T),
}

/// What became of a post that was to take the common way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtHand {
    /// It is posted.
    Posted,
    /// Nothing has happened: its data may travel with the doorbell, [`WorkQueue::push_at_hand`].
    Short,
    /// Nothing has happened: [`WorkQueue::post_at`] does it.
    No,
}

/// A queue in which nothing can be posted.
impl Default for WorkQueue {
    fn default() -> Self {
        Self::new(0, Queue::Send, 0, 0, false)
    }
}

/// Finds the memory of a region that a queue has not met, and whether the VI may read it.
pub trait Find: Fn(Handle) -> Option<(DmaMemory, bool)> {}

impl<F: Fn(Handle) -> Option<(DmaMemory, bool)>> Find for F {}

impl WorkQueue {
    /// An empty queue for at most `limit` descriptors, of a device that has these operations of
    /// sends (a bit for each value of the control bits) and takes data with their doorbells or not.
    #[must_use]
    pub fn new(vi: u16, queue: Queue, limit: usize, operations: u8, push: bool) -> Self {
        let (operations, pushes) = match queue {
            Queue::Send => (operations, push),
            Queue::Recv => (u8::MAX, false),
        };
        let bits = Token { vi, region: 0, offset_64: 0, segments: 0, queue }.to_bits();
        let ring = Ring::new(bits, limit);
        Self { ring, held: false, pushes, operations, queue, limit }
    }

    /// Whether nothing is posted that was not taken back.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Descriptors done since creation, as far as statuses tell. Statuses come in order, so few of
    /// them are looked at.
    #[must_use]
    pub fn done(&self) -> u64 {
        let (mut done, mut open) = (self.ring.taken, self.ring.posted);
        while done < open {
            let middle = done.midpoint(open);
            if self.ring.front(middle).is_done() {
                done = middle + 1;
            } else {
                open = middle;
            }
        }
        done
    }

    /// Whether the device has nothing of this queue to do, as far as statuses tell.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.ring.last().is_none_or(Front::is_done)
    }

    /// A region's rights have changed, or it is no more.
    pub fn forget(&mut self, handle: Handle) {
        self.ring.forget(handle);
    }

    /// Rights in any region may have changed.
    pub fn forget_all(&mut self) {
        self.ring.forget_all();
    }

    /// Place of a region; one that was not met yet is looked for.
    #[inline]
    fn region(&mut self, handle: Handle, find: &impl Find) -> Option<usize> {
        match self.ring.find(handle) {
            Some(place) => Some(place),
            None => self.meet(handle, find),
        }
    }

    #[cold]
    fn meet(&mut self, handle: Handle, find: &impl Find) -> Option<usize> {
        let (memory, readable) = find(handle)?;
        self.ring.learn(handle, &memory, readable)
    }

    /// Copies bytes of a region that the VI may read. None: it may not, or they are not inside.
    fn read(&mut self, segment: (Handle, u64), data: &mut [u8], find: &impl Find) -> Option<()> {
        let (handle, address) = segment;
        let place = self.region(handle, find)?;
        if !self.ring.region(place).readable {
            // It may have been allowed since.
            self.ring.allow_reads(place, find(handle)?.1);
        }
        let region = self.ring.region(place);
        let offset = usize::try_from(address.checked_sub(region.address)?).ok()?;
        let inside = offset.checked_add(data.len())? <= region.memory.len();
        if !region.readable || !inside {
            return None;
        }
        region.memory.copy_to(offset, data);
        self.ring.keep_data_at_hand(place);
        Some(())
    }

    /// A descriptor of the region that was met last with which nothing is wrong, and its
    /// [`Front::shape`].
    #[inline]
    fn candidate(&mut self, handle: Handle, address: u64) -> Option<(Candidate<'_>, u32)> {
        let operations = self.operations;
        let candidate = self.ring.candidate(handle, address)?;
        let shape = candidate.front().shape();
        has_operation(operations, shape).then_some((candidate, shape))
    }

    /// Why a descriptor was not entered.
    #[cold]
    fn refusal(&self, address: u64) -> Error {
        if !self.ring.is_inside(address) {
            outside(address)
        } else if self.ring.is_full() {
            Error::Exhausted { what: "place in the work queue", limit: self.limit }
        } else {
            Error::NotSupported { what: "RDMA of this kind" }
        }
    }

    /// Posts to the device. `ring` gets the bits of a token.
    #[inline]
    fn post_in(
        &mut self,
        handle: Handle,
        address: u64,
        room: u32,
        find: &impl Find,
        ring: impl FnOnce(u64, Option<&Inline>),
    ) -> Result<()> {
        let (pushes, number) = (self.pushes, self.ring.posted);
        let Some((candidate, shape)) = self.candidate(handle, address) else {
            return Err(self.refusal(address));
        };
        let idle = pushes && candidate.is_next();
        let token = token(candidate.bits(), shape);
        candidate.link(handle);
        candidate.enter(room);
        if self.held {
            return Ok(());
        }
        if idle {
            let inline = self.inline(number, find);
            ring(token, inline.as_ref());
        } else {
            // The doorbell orders itself after these stores (`Bar::write64`).
            ring(token, None);
        }
        Ok(())
    }

    fn inline(&mut self, number: u64, find: &impl Find) -> Option<Inline> {
        let Posted { address, region, .. } = self.ring.at(number);
        // Looking for the segment's region may move the table.
        let (own, memory, start) = (region.handle, region.memory.clone(), region.address);
        let front = memory.line(usize::try_from(address - start).ok()?).map(Front)?;
        let inline =
            Inline::of(front, |handle, address, data| self.read((handle, address), data, find));
        // The next descriptor lies where this one does, wherever their data is.
        self.ring.find(own);
        inline
    }

    /// Whether what travels with the doorbell of this descriptor, if anything, lies in a region that
    /// was met and may be read.
    pub(crate) fn has_met_data_of(&mut self, address: u64, handle: Handle) -> bool {
        let Some((candidate, shape)) = self.candidate(handle, address) else { return true };
        let front = candidate.front();
        let (segment, length) = (front.segment_handle(), front.segment_length());
        let short = shape & 0xffff == 1 && (1..=PUSH_DATA_BYTES).contains(&length);
        !self.pushes || !short || self.ring.may_read(segment)
    }

    /// Meets the region of a slot.
    fn meet_region_of(&mut self, slot: &Slot) -> Result<()> {
        let find = |_| Some((slot.region().clone(), false));
        let met = self.region(slot.handle(), &find);
        met.map(drop).ok_or_else(|| outside(slot.memory().address()))
    }

    /// Posts a descriptor to the device; `ring` writes the doorbell, with data if there is some.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if the queue is full; [`Error::BadArgument`] if it is too far from the
    /// base of its region; [`Error::NotSupported`] for an operation that the device does not have.
    pub fn post(
        &mut self,
        slot: &Slot,
        find: &impl Find,
        ring: impl FnOnce(Token, Option<&Inline>),
    ) -> Result<()> {
        self.meet_region_of(slot)?;
        let ring = |bits, inline: Option<&Inline>| ring(Token::from_bits(bits), inline);
        self.post_in(slot.handle(), slot.memory().address(), room_of(slot), find, ring)
    }

    /// The same of the descriptor at a virtual address; `ring` gets the bits of a token.
    ///
    /// # Errors
    /// As [`WorkQueue::post`]; [`Error::BadArgument`] also if it is not aligned to 64 bytes, or not
    /// inside its region, or that is not to be found.
    #[inline]
    pub fn post_at(
        &mut self,
        address: u64,
        handle: Handle,
        find: &impl Find,
        ring: impl FnOnce(u64, Option<&Inline>),
    ) -> Result<()> {
        self.region(handle, find).ok_or_else(|| outside(address))?;
        self.post_in(handle, address, 0, find, ring)
    }

    /// Posts the descriptor at a virtual address and rings, if that takes the common way: the
    /// device has all operations, the descriptor lies in the region at hand, and nothing is wrong.
    ///
    /// This is the fast path: straight code.
    #[inline(always)]
    #[must_use]
    pub(crate) fn post_at_hand(
        &mut self,
        address: u64,
        handle: Handle,
        doorbell: &RegisterLine,
        watch: &mut Watch,
    ) -> AtHand {
        let pushes = self.pushes;
        let Some(candidate) = self.ring.candidate(handle, address) else { return AtHand::No };
        let front = candidate.front();
        // Of a descriptor without segments the length means nothing.
        if pushes && candidate.is_next() && front.segment_length() <= PUSH_DATA_BYTES {
            candidate.keep();
            return AtHand::Short;
        }
        let token = token(candidate.bits(), front.shape());
        candidate.link(handle);
        candidate.show(watch);
        doorbell.registers().store(0, token);
        candidate.enter(0);
        AtHand::Posted
    }

    /// Posts the descriptor, in the memory of `handle`, that [`AtHand::Short`] was about, with its
    /// data, if it is a plain send of one segment that lies in the data at hand. False: nothing has
    /// happened, [`WorkQueue::post_at`] does it.
    #[must_use]
    #[inline(always)]
    pub(crate) fn push_at_hand(
        &mut self,
        handle: Handle,
        line: &PushLine,
        watch: &mut Watch,
    ) -> bool {
        const _: () = assert!(control::OP_SENDRECV == 0);
        let Some(candidate) = self.ring.kept() else { return false };
        let line = line.registers();
        let front = candidate.front();
        if front.shape() != 1 || front.reserved() != 0 {
            return false;
        }
        let length = front.segment_length();
        let Some(data) = candidate.push_data(length) else { return false };
        candidate.link(handle);
        line.store(0, candidate.push_token());
        #[expect(clippy::cast_possible_truncation, reason = "at most 40")]
        line.store(1, PushControl { length: length as u8, immediate: None }.to_bits());
        line.store(2, 0);
        data.words(|at, word| line.store(PUSH_HEADER_WORDS + at, word));
        line.finish();
        candidate.show(watch);
        candidate.enter(0);
        true
    }

    /// Takes the oldest descriptor, which is done, as [`WorkQueue::take_address`].
    #[inline(always)]
    pub(crate) fn take_done(&mut self, watch: &mut Watch) -> (u64, u32) {
        let taken = watch.oldest();
        self.ring.leave();
        *watch = self.ring.watch();
        taken
    }

    /// What a poll looks at.
    pub(crate) fn watch(&self) -> Watch {
        self.ring.watch()
    }

    /// Addresses of the memory that posting and taking write, besides `self` and descriptors.
    #[must_use]
    pub fn footprint(&self) -> Range<usize> {
        self.ring.footprint()
    }

    /// Whether data of short messages travels with their doorbells.
    #[must_use]
    pub const fn has_pushes(&self) -> bool {
        self.pushes
    }

    /// Whether [`WorkQueue::post_at_hand`] may be called now.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.operations == u8::MAX && !self.held
    }

    /// Posts a descriptor that completes as flushed, without the device: at once, or, if others
    /// before it are still to be flushed, with them ([`WorkQueue::flush`]), so that descriptors are
    /// done in order. True if it is done.
    ///
    /// # Errors
    /// As [`WorkQueue::post`].
    pub fn post_flushed(&mut self, slot: &Slot) -> Result<bool> {
        self.meet_region_of(slot)?;
        let (address, queue) = (slot.memory().address(), self.queue);
        let Some((candidate, _)) = self.candidate(slot.handle(), address) else {
            return Err(self.refusal(address));
        };
        let (front, done) = (candidate.front(), candidate.is_next());
        if done {
            let operation = front.operation(queue);
            front.complete(status::DONE | status::DESC_FLUSHED_ERROR | operation);
        } else {
            front.clear_status();
        }
        candidate.enter(room_of(slot));
        Ok(done)
    }

    /// The oldest descriptor, if it is done: its status.
    #[inline(always)]
    fn head(&self) -> Head<u32> {
        let Some(front) = self.ring.oldest() else { return Head::Empty };
        let status = front.status();
        if status & status::DONE == 0 { Head::NotDone } else { Head::Done(status) }
    }

    /// Takes the oldest descriptor if it is done; gives it and its status.
    pub fn take(&mut self) -> Head<(Slot, u32)> {
        match self.head() {
            Head::Empty => Head::Empty,
            Head::NotDone => Head::NotDone,
            Head::Done(status) => {
                let slot = slot_of(&self.ring.at(self.ring.taken));
                self.ring.leave();
                // It was inside when it was posted.
                slot.map_or(Head::Empty, |slot| Head::Done((slot, status)))
            }
        }
    }

    /// The same; gives virtual address and status.
    #[inline(always)]
    pub fn take_address(&mut self) -> Head<(u64, u32)> {
        match self.head() {
            Head::Empty => Head::Empty,
            Head::NotDone => Head::NotDone,
            Head::Done(status) => {
                let address = self.ring.address(self.ring.taken);
                self.ring.leave();
                Head::Done((address, status))
            }
        }
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

    /// Keeps posts back: the device is about to forget its queue.
    pub const fn hold(&mut self) {
        self.held = true;
    }

    /// Posts again what is not done, after the device forgot its queue.
    pub fn repost(&mut self, ring: impl Fn(Token)) {
        self.held = false;
        let mut last: Option<Front<'_>> = None;
        for posted in self.pending() {
            if let Some(last) = last {
                last.link(posted.address, posted.region.handle);
            }
            ring(Token::from_bits(token(self.ring.token(&posted), posted.front.shape())));
            last = Some(posted.front);
        }
    }

    /// Completes everything that is not done, in order: the first with the status bits `first`, the
    /// others as flushed. The device must not own the descriptors any more. Gives the first one and
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
}

/// A token with its segment count, from the rest of it. A count that does not fit is cut: it is a
/// hint, and the device refuses such a descriptor.
#[inline(always)]
fn token(bits: u64, shape: u32) -> u64 {
    bits | u64::from(shape & SEGMENTS_MASK) << Token::SEGMENTS_LSB
}

/// Whether the operation that a descriptor asks for is one of these.
#[inline]
fn has_operation(operations: u8, shape: u32) -> bool {
    operations >> (shape >> 16 & u32::from(control::OP_MASK)) & 1 != 0
}

fn room_of(slot: &Slot) -> u32 {
    u32::try_from(slot.memory().len()).unwrap_or(u32::MAX)
}

#[cold]
fn outside(address: u64) -> Error {
    let what =
        "address of descriptor (64-byte aligned, inside its region, within 4 GiB of its base)";
    Error::BadArgument { what, value: address }
}

fn slot_of(posted: &Posted<'_>) -> Option<Slot> {
    // One that was posted by its address: at least its front is there.
    let room = (posted.room as usize).max(LINE_BYTES);
    let (region, address) = (posted.region, posted.address);
    let offset = usize::try_from(address - region.address).ok()?;
    Slot::new(&region.memory, region.handle, offset, room).ok()
}
