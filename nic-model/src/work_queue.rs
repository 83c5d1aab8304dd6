//! The work queues: descriptors posted, fetched and checked, popped by the successor rule, completed;
//! and VIs that stop because of them. All engines that execute descriptors stand on this.

use std::collections::VecDeque;

use nic_regs::counter::Counter;
use nic_regs::csr::Stamp;
use nic_regs::desc::{
    CONTROL_BYTES, ControlSegment, DataSegment, IMMEDIATE_OFFSET, LENGTH_OFFSET, SEGMENT_BYTES,
    control, send_operation, status,
};
use nic_regs::doorbell::{Queue, Token};
use nic_regs::limits::VI_COUNT;
use nic_regs::tpt::{Handle, RIGHT_RDMA_READ, RIGHT_RDMA_WRITE};
use nic_regs::vi::{Reliability, State, StopReason, rdma};

use crate::bits::{low32, size};
use crate::context::Context;
use crate::desc::{
    Ending, Fault, Inline, Operation, Resolved, SEGMENTS_REACHED, Span, check_format, operation,
};
use crate::device::Features;
use crate::event::Events;
use crate::tpt::Regions;
use crate::trace::Trace;
use crate::vi::{Head, Input, Pending, SendPhase, Stop, Vi, Vis};

/// Inline pushes that wait for the send engine; a push that finds no space is posted without data.
const INLINE_ENTRIES: usize = 8;

/// VIs, and the tables that their descriptors need.
#[derive(Clone, Debug)]
pub struct WorkQueues {
    pub(crate) features: Features,
    /// The VIs.
    pub vis: Vis,
    /// The region table.
    pub regions: Regions,
    /// The event queues.
    pub events: Events,
    /// By queue: the descriptor of the last frame, for a frame that follows directly.
    cached: [Option<(u16, Resolved)>; 2],
    /// Inline pushes by VI; at most one each, since its send queue was empty.
    inline: VecDeque<(u16, Inline)>,
}

impl WorkQueues {
    /// All VIs free, no regions, no event queues.
    #[must_use]
    pub fn new(features: Features) -> Self {
        Self {
            features,
            vis: Vis::default(),
            regions: Regions::default(),
            events: Events::default(),
            cached: [None, None],
            inline: VecDeque::new(),
        }
    }

    /// The RDMA that a word of a command allows, on a device that has it.
    pub(crate) const fn rdma_bits(&self, word: u32) -> u32 {
        let write = if self.features.rdma_write { rdma::WRITE } else { 0 };
        let read = if self.features.rdma_read { rdma::READ } else { 0 };
        word & (write | read)
    }

    /// Counts a post to a VI of the page's domain: section 2.1. False if the VI, in Error, drops it;
    /// `None` if the page has no such VI.
    pub(crate) fn post(&mut self, page: u16, token: Token, cx: &mut Context<'_>) -> Option<bool> {
        let vi = token.vi;
        if usize::from(vi) >= VI_COUNT {
            return None;
        }
        let Vi { state, owner, .. } = self.vis[vi];
        if state == State::Free || u16::from(owner.domain) != page {
            return None;
        }
        cx.trace(Trace::Doorbell { page, token });
        if state == State::Error || !self.vis[vi].queues[token.queue as usize].post(token) {
            cx.count(Counter::DoorbellDropped);
            return Some(false);
        }
        cx.count(Counter::DoorbellTokens);
        if token.queue == Queue::Send {
            cx.stamp(vi, Stamp::Doorbell);
            self.vis.make_ready(vi);
        }
        Some(true)
    }

    /// Whether the data of a push to this VI would be kept.
    pub(crate) fn takes_inline(&self, vi: u16) -> bool {
        self.inline.len() < INLINE_ENTRIES && self.vis.is_quiet(vi)
    }

    /// Keeps the data of a push for the send engine.
    pub fn keep_inline(&mut self, vi: u16, inline: Inline) {
        self.inline.push_back((vi, inline));
    }

    /// Keeps the descriptor at the head of a queue for the next frame.
    pub(crate) fn cache(&mut self, vi: u16, queue: Queue, resolved: Resolved) {
        self.cached[queue as usize] = Some((vi, resolved));
    }

    /// Forgets the cached descriptor of a queue if it is `vi`'s.
    pub(crate) fn forget_cached(&mut self, vi: u16, queue: Queue) {
        self.cached[queue as usize].take_if(|cached| cached.0 == vi);
    }

    /// Forgets all descriptors of a VI that were fetched or pushed.
    pub fn forget_fetched(&mut self, vi: u16) {
        self.forget_cached(vi, Queue::Send);
        self.forget_cached(vi, Queue::Recv);
        self.inline.retain(|entry| entry.0 != vi);
    }

    /// The same for all VIs: a region was removed.
    pub(crate) fn forget_all_fetched(&mut self) {
        self.cached = [None, None];
        self.inline.clear();
    }

    /// Empties both queues of a VI.
    pub(crate) fn clear_work(&mut self, vi: u16) {
        self.vis[vi].clear_work();
        self.events.forget_vi(vi);
        self.forget_fetched(vi);
    }

    /// The descriptor at the head of a queue: as cached, pushed, or fetched.
    pub(crate) fn resolve(
        &mut self,
        vi: u16,
        queue: Queue,
        cx: &mut Context<'_>,
    ) -> Result<Resolved, Fault> {
        if let Some((_, resolved)) = self.cached[queue as usize].take().filter(|c| c.0 == vi) {
            return Ok(resolved);
        }
        let pushed = self.inline.iter().position(|entry| queue == Queue::Send && entry.0 == vi);
        match pushed.and_then(|at| self.inline.remove(at)) {
            Some((_, inline)) => self.resolve_inline(vi, inline, cx),
            None => self.fetch(vi, queue, cx),
        }
    }

    /// Reads the control segment at the head of a queue that is not empty, and checks it: sections
    /// 3.1 and 3.2. Gives its bus address too, and whether an address segment follows.
    pub(crate) fn fetch_control(
        &mut self,
        vi: u16,
        queue: Queue,
        cx: &mut Context<'_>,
    ) -> Result<(ControlSegment, u64, bool), Fault> {
        let (owner, level) = (self.vis[vi].owner, self.vis[vi].level);
        let work = self.vis[vi].queues[queue as usize];
        let token = match work.head {
            Head::Token(token) => token,
            Head::BadNext => return Err(Fault::Unreachable),
            Head::Unreadable => return Err(Fault::Unreadable),
        };
        let bus =
            self.regions.reach(token, low32(CONTROL_BYTES), owner).ok_or(Fault::Unreachable)?;
        let mut bytes = [0; size(CONTROL_BYTES)];
        cx.read(bus, &mut bytes).map_err(|_| Fault::Unreadable)?;
        let control = ControlSegment::from_bytes(&bytes);
        let length = CONTROL_BYTES + SEGMENT_BYTES * u64::from(control.seg_count);
        if control.seg_count <= SEGMENTS_REACHED {
            self.regions.reach(token, low32(length), owner).ok_or(Fault::Unreachable)?;
        }
        let next = (work.count >= 2).then_some((control.next, control.next_handle));
        self.vis[vi].queues[queue as usize].next = next;
        if queue == Queue::Send {
            let known = match send_operation(control.control) {
                status::OP_RDMA_WRITE if !self.features.rdma_write => status::OP_SEND,
                status::OP_RDMA_READ if !self.features.rdma_read => status::OP_SEND,
                operation => operation,
            };
            self.vis[vi].operations[queue as usize] = known;
        }
        let remote = check_format(&control, queue, level, self.features)?;
        Ok((control, bus, remote))
    }

    /// Reads and checks the descriptor at the head of a queue that is not empty: sections 3.1 to
    /// 3.3.
    ///
    /// # Errors
    /// Why it cannot be executed.
    pub fn fetch(
        &mut self,
        vi: u16,
        queue: Queue,
        cx: &mut Context<'_>,
    ) -> Result<Resolved, Fault> {
        let (control, bus, remote) = self.fetch_control(vi, queue, cx)?;
        let owner = self.vis[vi].owner;
        let mut bytes = vec![0; usize::from(control.seg_count) * size(SEGMENT_BYTES)];
        cx.read(bus + CONTROL_BYTES, &mut bytes).map_err(|_| Fault::Unreadable)?;
        let (mut spans, mut total, mut short) = (Vec::new(), 0, false);
        let (segments, _) = bytes.as_chunks::<{ size(SEGMENT_BYTES) }>();
        let (first, segments) = segments.split_at(usize::from(remote));
        let operation = operation(&control, first.first().map(DataSegment::from_bytes))?;
        for segment in segments.iter().map(DataSegment::from_bytes).filter(|s| s.length != 0) {
            let (handle, wanted) = (Handle(segment.handle), segment.length);
            let (bus, length) = self.regions.allowed(segment.address, handle, wanted, owner);
            short = length < wanted;
            if short && queue == Queue::Send {
                return Err(Fault::PROTECTION);
            }
            spans.push(Span { bus, length });
            total += u64::from(length);
            if short {
                break;
            }
        }
        cx.count(Counter::DescriptorsFetched);
        cx.stamp(vi, if queue == Queue::Send { Stamp::Descriptor } else { Stamp::Matched });
        Ok(Resolved { control, operation, spans, total, short, inline: None })
    }

    /// The descriptor of an inline push, as if it had been fetched: section 2.8.
    fn resolve_inline(
        &mut self,
        vi: u16,
        inline: Inline,
        cx: &mut Context<'_>,
    ) -> Result<Resolved, Fault> {
        let Inline { token, immediate, data } = inline;
        let segments = u16::from(token.segments);
        let reached = if segments > SEGMENTS_REACHED { 0 } else { segments };
        let bytes = CONTROL_BYTES + SEGMENT_BYTES * u64::from(reached);
        self.regions.reach(token, low32(bytes), self.vis[vi].owner).ok_or(Fault::Unreachable)?;
        self.vis[vi].operations[Queue::Send as usize] = status::OP_SEND;
        let control = ControlSegment {
            control: if immediate.is_some() { control::IMMEDIATE } else { 0 },
            immediate: immediate.unwrap_or(0),
            ..ControlSegment::default()
        };
        cx.stamp(vi, Stamp::Descriptor);
        let (operation, spans, total) = (Operation::Send, Vec::new(), data.len() as u64);
        Ok(Resolved { control, operation, spans, total, short: false, inline: Some(data) })
    }

    /// Takes the head off a queue, by the successor rule (section 2.3). Gives where it was.
    fn pop(&mut self, vi: u16, queue: Queue, cx: &mut Context<'_>) -> Option<u64> {
        let owner = self.vis[vi].owner;
        let work = self.vis[vi].queues[queue as usize];
        let Head::Token(token) = work.head else { return None };
        let bus = self.regions.reach(token, low32(CONTROL_BYTES), owner)?;
        let head = match (work.count.wrapping_sub(1), work.last) {
            (0, _) => Head::BadNext, // The next post replaces it.
            (1, Some(last)) => Head::Token(last),
            _ => self.successor(vi, queue, bus, work.next, cx),
        };
        let work = &mut self.vis[vi].queues[queue as usize];
        work.count = work.count.wrapping_sub(1);
        (work.head, work.next) = (head, None);
        Some(bus)
    }

    fn successor(
        &mut self,
        vi: u16,
        queue: Queue,
        bus: u64,
        known: Option<(u64, u32)>,
        cx: &mut Context<'_>,
    ) -> Head {
        let (next, handle) = match known {
            Some(known) => known,
            None => {
                let mut bytes = [0; size(CONTROL_BYTES)];
                if cx.read(bus, &mut bytes[..12]).is_err() {
                    return Head::Unreadable;
                }
                let control = ControlSegment::from_bytes(&bytes);
                (control.next, control.next_handle)
            }
        };
        match self.regions.link(next, Handle(handle), self.vis[vi].owner) {
            Some((region, offset_64)) => {
                Head::Token(Token { vi, region, offset_64, segments: 0, queue })
            }
            None => Head::BadNext,
        }
    }

    /// Completes the head of a queue: popped, Length and Status written (with the immediate data
    /// before them, if there is any), reported. If it cannot be reached any more, the VI stops,
    /// nothing is written, and this is false.
    pub(crate) fn complete(
        &mut self,
        vi: u16,
        queue: Queue,
        ending: Ending,
        cx: &mut Context<'_>,
    ) -> bool {
        let Ending { errors, length, immediate } = ending;
        let Some(bus) = self.pop(vi, queue, cx) else {
            self.stop_and_refuse(vi, queue, StopReason::Descriptor, cx);
            return false;
        };
        let operation = self.vis[vi].operations[queue as usize];
        let immediate_bit = if immediate.is_some() { status::IMMEDIATE } else { 0 };
        let bits = status::DONE | operation | immediate_bit | errors;
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&immediate.unwrap_or(0).to_le_bytes());
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..].copy_from_slice(&bits.to_le_bytes());
        match immediate {
            Some(_) => cx.write(bus + IMMEDIATE_OFFSET, &bytes),
            None => cx.write(bus + LENGTH_OFFSET, &bytes[4..]),
        }
        cx.count(match queue {
            Queue::Send => Counter::SendsCompleted,
            Queue::Recv => Counter::RecvsCompleted,
        });
        if queue == Queue::Recv {
            cx.stamp(vi, Stamp::StatusWritten);
        }
        cx.trace(Trace::Completion { vi, queue, status: bits, length });
        self.events.report(vi, queue, &mut self.vis, cx);
        true
    }

    /// What a descriptor that cannot be executed does to its VI: sections 3.1, 4.4, 4.5, 5.2, 5.5.
    pub(crate) fn fail(
        &mut self,
        vi: u16,
        queue: Queue,
        fault: Fault,
        partial: bool,
        cx: &mut Context<'_>,
    ) {
        match fault {
            Fault::Unreachable => self.stop_and_refuse(vi, queue, StopReason::Descriptor, cx),
            Fault::Unreadable => {
                let reason = StopReason::HostRead;
                self.refuse(vi, reason, cx);
                let status = status::TRANSPORT_ERROR;
                self.stop(vi, Stop { reason, peer_reason: 0, queue, status }, cx);
            }
            Fault::Bad { status: bits, reason } => {
                let partial = if partial { status::PARTIAL_ERROR } else { 0 };
                let ending = Ending { errors: bits | partial, ..Ending::good(0) };
                let done = self.complete(vi, queue, ending, cx);
                if done && self.vis[vi].level != Reliability::Unreliable {
                    self.stop_and_refuse(vi, queue, reason, cx);
                }
            }
        }
    }

    /// Where a range of this side's memory is that the peer names: section 11.3. An empty one is
    /// nowhere in particular.
    pub(crate) fn remote_range(
        &self,
        vi: u16,
        read: bool,
        address: u64,
        handle: u32,
        n: u32,
    ) -> Option<u64> {
        let v = &self.vis[vi];
        let (bit, right) =
            if read { (rdma::READ, RIGHT_RDMA_READ) } else { (rdma::WRITE, RIGHT_RDMA_WRITE) };
        if v.allows & bit == 0 {
            return None;
        }
        if n == 0 {
            return Some(0);
        }
        self.regions.translate(address, Handle(handle), n, v.owner, right)
    }

    /// Stops a VI whose peer may not read what it asks for: section 12.2.
    pub(crate) fn refuse_read(&mut self, vi: u16, cx: &mut Context<'_>) {
        cx.count(Counter::RdmaRefused);
        self.stop_and_refuse(vi, Queue::Recv, StopReason::RdmaRead, cx);
    }

    /// Stops a Connected VI for a reason of its own, of which its peer is notified on the reliable
    /// levels.
    pub(crate) fn stop_and_refuse(
        &mut self,
        vi: u16,
        queue: Queue,
        reason: StopReason,
        cx: &mut Context<'_>,
    ) {
        let status = match reason {
            StopReason::Descriptor => status::PROTECTION_ERROR,
            _ => status::DESC_FLUSHED_ERROR,
        };
        self.refuse(vi, reason, cx);
        self.stop(vi, Stop { reason, peer_reason: 0, queue, status }, cx);
    }

    /// Makes a ViRefuse pending, if the level has them.
    fn refuse(&mut self, vi: u16, reason: StopReason, cx: &mut Context<'_>) {
        if self.vis[vi].level != Reliability::Unreliable {
            cx.count(Counter::RefusalsSent);
            self.vis[vi].refusal = reason;
            self.vis.set_pending(vi, Pending::Refuse);
        }
    }

    /// Stops a VI: section 6.1. Nothing happens unless it is Connected.
    pub(crate) fn stop(&mut self, vi: u16, mut stop: Stop, cx: &mut Context<'_>) {
        let v = &mut self.vis[vi];
        if v.state != State::Connected {
            return;
        }
        v.go(Input::Stop);
        v.reason = stop.reason;
        if stop.queue == Queue::Send && matches!(v.send, SendPhase::Reading { placed: 1.., .. }) {
            stop.status |= status::PARTIAL_ERROR;
        }
        v.send = SendPhase::Between;
        v.answer = None;
        v.recv = None;
        v.stop = Some(stop);
        self.forget_fetched(vi);
        cx.count(Counter::ViStops);
        let Stop { reason, peer_reason, queue, status } = stop;
        cx.trace(Trace::Stop { vi, reason, peer_reason, queue, status });
        self.events.deliver_stop(vi, true, &mut self.vis, cx);
    }
}
