//! The receive engine: staged frames take effect, one at a time, in order.

mod rdma;

use nic_regs::counter::Counter;
use nic_regs::csr::Stamp;
use nic_regs::desc::status;
use nic_regs::doorbell::Queue;
use nic_regs::event::{Event, Kind};
use nic_regs::frame::{Header, Type, flag};
use nic_regs::limits::{MAX_TRANSFER_BYTES, VI_COUNT};
use nic_regs::vi::{Reliability, State, StopReason};

use crate::bits::{low8, small8};
use crate::context::Context;
use crate::desc::{Ending, Fault, Resolved};
use crate::event::Delivery;
use crate::frame::Frame;
use crate::staging::Staged;
use crate::vi::{Pending, RecvMessage, SendPhase, Stop};
use crate::work_queue::WorkQueues;

/// The receive engine, with what it works on. All its state is in the work queues.
#[expect(missing_debug_implementations, reason = "a host bus has no text")]
pub struct RecvEngine<'a, 'h> {
    /// VIs, their descriptors, the event queues.
    pub queues: &'a mut WorkQueues,
    /// The cycle's services.
    pub cx: &'a mut Context<'h>,
}

impl RecvEngine<'_, '_> {
    /// Consumes a staged frame. True if it is a message that no queue takes.
    pub fn take(&mut self, staged: &Staged) -> bool {
        let (frame, header) = (&staged.frame, staged.frame.header);
        match Type::from_bits(header.kind) {
            Some(Type::Message) => {
                let (kind, index) = (small8(Kind::Message as usize), header.src_node.into());
                let event = Event { kind, index, ..Event::default() };
                let events = &mut self.queues.events;
                let delivery = events.post_message(header.dst_vi, event, &frame.payload, self.cx);
                return delivery != Delivery::Written;
            }
            Some(kind) if self.matches(&header) => {
                if !matches!(kind, Type::ViAck | Type::ViRefuse | Type::Fin) {
                    self.cx.monitor.stamp(header.dst_vi, Stamp::FirstBeatIn, staged.started);
                }
                self.take_vi_frame(kind, frame);
            }
            Some(_) => self.cx.count(Counter::Unmatched),
            None => debug_assert!(false, "unknown types are not staged"),
        }
        false
    }

    /// Whether a VI expects a frame with this header: section 5.1.
    #[must_use]
    pub fn matches(&self, header: &Header) -> bool {
        if usize::from(header.dst_vi) >= VI_COUNT {
            return false;
        }
        let vi = &self.queues.vis[header.dst_vi];
        let fits = vi.state == State::Connected
            && vi.remote.node == header.src_node
            && vi.remote.vi == header.src_vi
            && vi.remote.connection == header.connection;
        let kind = Type::from_bits(header.kind);
        if matches!(kind, Some(Type::ReadRequest | Type::ReadResponse)) {
            return fits && vi.level != Reliability::Unreliable;
        }
        if !matches!(kind, Some(Type::Data | Type::RdmaWrite)) {
            return fits;
        }
        let flags = match vi.level {
            Reliability::Unreliable => 0,
            Reliability::Delivery => flag::SEQUENCED,
            Reliability::Reception => flag::SEQUENCED | flag::RECEPTION,
        };
        fits && header.flags & (flag::SEQUENCED | flag::RECEPTION) == flags
    }

    fn take_vi_frame(&mut self, kind: Type, frame: &Frame) {
        let vi = frame.header.dst_vi;
        let (level, send) = (self.queues.vis[vi].level, self.queues.vis[vi].send);
        match kind {
            Type::Data => self.take_data(vi, frame),
            Type::RdmaWrite => self.take_write(vi, frame),
            Type::ReadRequest => self.take_request(vi, frame),
            Type::ReadResponse => self.take_response(vi, frame),
            Type::ViAck => {
                let SendPhase::Waiting { total } = send else {
                    self.cx.count(Counter::Unmatched);
                    return;
                };
                self.queues.vis[vi].send = SendPhase::Between;
                self.queues.complete(vi, Queue::Send, Ending::good(total), self.cx);
                self.queues.vis.make_ready(vi);
            }
            Type::ViRefuse => {
                let reason = StopReason::Refused;
                let peer_reason = low8(frame.header.word);
                let status = match (StopReason::from_bits(peer_reason.into()), level) {
                    (Some(StopReason::RdmaRead), _)
                    | (Some(StopReason::RdmaWrite), Reliability::Reception) => {
                        status::RDMA_PROT_ERROR
                    }
                    (_, Reliability::Reception) => status::REMOTE_DESC_ERROR,
                    _ => status::TRANSPORT_ERROR,
                };
                self.queues.stop(
                    vi,
                    Stop { reason, peer_reason, queue: Queue::Send, status },
                    self.cx,
                );
            }
            Type::Fin => {
                let (reason, status) = (StopReason::Disconnected, status::DESC_FLUSHED_ERROR);
                self.queues.stop(
                    vi,
                    Stop { reason, peer_reason: 0, queue: Queue::Send, status },
                    self.cx,
                );
            }
            _ => debug_assert!(false, "{kind:?} is not a VI frame"),
        }
    }

    fn take_data(&mut self, vi: u16, frame: &Frame) {
        let first = frame.header.flags & flag::FIRST != 0;
        let unreliable = self.queues.vis[vi].level == Reliability::Unreliable;
        let message = match (first, self.queues.vis[vi].recv) {
            (true, Some(_)) if !unreliable => return self.break_message(vi),
            (true, _) => self.first_frame(vi, frame),
            (false, Some(message)) if !message.write => self.later_frame(vi, message, frame),
            (false, _) => return self.stray_frame(vi),
        };
        let Some((message, resolved)) = message else { return };
        self.place(vi, message, resolved, frame);
    }

    /// A frame with FIRST: section 5.2. Gives the message that it starts.
    fn first_frame(&mut self, vi: u16, frame: &Frame) -> Option<(RecvMessage, Resolved)> {
        let header = &frame.header;
        let unreliable = self.queues.vis[vi].level == Reliability::Unreliable;
        self.queues.vis[vi].recv = None;
        self.queues.forget_cached(vi, Queue::Recv);
        self.queues.vis[vi].operations[Queue::Recv as usize] = status::OP_RECEIVE;
        let payload = u32::from(header.length);
        let last = header.flags & flag::LAST != 0;
        let length = if last { payload } else { header.word };
        if unreliable && (header.sequence & 0xff != 0 || payload > length) {
            self.cx.count(Counter::UnreliableGap);
            return None;
        }
        if self.queues.vis[vi].queues[Queue::Recv as usize].count == 0 {
            if unreliable {
                self.cx.count(Counter::UnreliableEmpty);
            } else {
                self.queues.stop_and_refuse(vi, Queue::Recv, StopReason::ReceiveEmpty, self.cx);
            }
            return None;
        }
        let resolved = match self.queues.fetch(vi, Queue::Recv, self.cx) {
            Ok(_) if length > MAX_TRANSFER_BYTES || payload > length => Err(Fault::LENGTH),
            Ok(resolved) if u64::from(length) > resolved.total => Err(resolved.excess()),
            // What is wrong with the frame comes before what is wrong with the descriptor.
            Err(Fault::Bad { .. }) if payload > length => Err(Fault::LENGTH),
            resolved => resolved,
        };
        match resolved {
            Ok(resolved) => {
                let sequence = header.sequence;
                Some((RecvMessage { write: false, length, placed: 0, sequence }, resolved))
            }
            Err(fault) => {
                self.fail_recv(vi, fault, false);
                None
            }
        }
    }

    /// A frame without FIRST in a message: section 5.4. Gives the message if the frame continues
    /// it.
    fn later_frame(
        &mut self,
        vi: u16,
        message: RecvMessage,
        frame: &Frame,
    ) -> Option<(RecvMessage, Resolved)> {
        let header = &frame.header;
        let unreliable = self.queues.vis[vi].level == Reliability::Unreliable;
        let end = message.placed + u32::from(header.length);
        let last = header.flags & flag::LAST != 0;
        let fits = end <= message.length && (!last || end == message.length);
        if unreliable && (header.sequence != message.sequence || !fits) {
            self.cx.count(Counter::UnreliableGap);
            self.queues.vis[vi].recv = None;
            return None;
        }
        if !fits {
            self.fail_recv(vi, Fault::LENGTH, true);
            return None;
        }
        let resolved = self.queues.resolve(vi, Queue::Recv, self.cx);
        let shrunk = |r: &Resolved| r.total < u64::from(message.length);
        match resolved.and_then(|r| if shrunk(&r) { Err(r.excess()) } else { Ok(r) }) {
            Ok(resolved) => Some((message, resolved)),
            Err(fault) => {
                self.fail_recv(vi, fault, true);
                None
            }
        }
    }

    /// Writes the payload, and the status if the frame is the last: section 5.3.
    fn place(&mut self, vi: u16, message: RecvMessage, resolved: Resolved, frame: &Frame) {
        let header = &frame.header;
        let mut at = 0;
        for (bus, n) in resolved.ranges(u64::from(message.placed), frame.payload.len()) {
            self.cx.write(bus, &frame.payload[at..at + n]);
            at += n;
        }
        let message = message.after(header.length.into());
        if header.flags & flag::LAST == 0 {
            self.queues.vis[vi].recv = Some(message);
            self.queues.cache(vi, Queue::Recv, resolved);
            return;
        }
        self.cx.stamp(vi, Stamp::DataWritten);
        self.queues.vis[vi].recv = None;
        let immediate = (header.flags & flag::IMMEDIATE != 0).then_some(header.word);
        let ending = Ending { immediate, ..Ending::good(message.length) };
        let done = self.queues.complete(vi, Queue::Recv, ending, self.cx);
        if done && header.flags & flag::RECEPTION != 0 {
            self.queues.vis.set_pending(vi, Pending::Ack);
        }
    }

    /// A FIRST frame in mid-message on a reliable VI: section 5.4.
    pub(super) fn break_message(&mut self, vi: u16) {
        if self.queues.vis[vi].recv.is_some_and(|message| message.write) {
            self.queues.stop_and_refuse(vi, Queue::Recv, StopReason::Length, self.cx);
        } else {
            self.fail_recv(vi, Fault::LENGTH, true);
        }
    }

    /// A later frame without its message: section 5.4.
    pub(super) fn stray_frame(&mut self, vi: u16) {
        if self.queues.vis[vi].level == Reliability::Unreliable {
            self.cx.count(Counter::UnreliableGap);
            self.queues.vis[vi].recv = None;
        } else {
            self.cx.count(Counter::Unmatched);
        }
    }

    fn fail_recv(&mut self, vi: u16, fault: Fault, partial: bool) {
        self.queues.vis[vi].recv = None;
        self.queues.fail(vi, Queue::Recv, fault, partial, self.cx);
    }
}
