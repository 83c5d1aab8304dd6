//! The receive engine: staged frames take effect, one at a time, in order.

use std::collections::VecDeque;

use nic_regs::counter::Counter;
use nic_regs::csr::Stamp;
use nic_regs::desc::status;
use nic_regs::doorbell::Queue;
use nic_regs::frame::{Header, Type, flag};
use nic_regs::limits::{CREDITS_MAX, FRAME_CREDITS, UNSEQUENCED_UNITS, VI_COUNT};
use nic_regs::vi::{Reliability, State, StopReason};

use crate::bits::low8;
use crate::desc::{Ending, Fault, Resolved};
use crate::device::HostBus;
use crate::frame::Frame;
use crate::nic::Model;
use crate::vi::{Owed, SendPhase, Stop};

/// A message that is being received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecvMessage {
    /// It is an RDMA write, and has no descriptor.
    pub(crate) write: bool,
    /// Bytes in all, as FIRST told.
    pub(crate) length: u32,
    /// Bytes in the buffers.
    pub(crate) placed: u32,
    /// Message and fragment number of the next frame (Unreliable).
    pub(crate) sequence: u16,
}

impl RecvMessage {
    /// The message after a frame with `bytes` more.
    pub(crate) const fn after(self, bytes: u32) -> Self {
        let fragment = self.sequence.wrapping_add(1) & 0xff;
        let sequence = self.sequence & 0xff00 | fragment;
        Self { placed: self.placed + bytes, sequence, ..self }
    }
}

/// An accepted frame, and whose credits it holds.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    pub(crate) frame: Frame,
    /// Time of the first beat.
    pub(crate) started: u64,
    /// Which of the peer's channels (they come and go) it came by.
    pub(crate) incarnation: u64,
}

/// Staging memory and the receive engine's own state.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecvEngine {
    staged: VecDeque<Staged>,
    /// Units of staging memory in use: by unsequenced frames, and by sequenced ones.
    units: [usize; 2],
    /// The descriptor of the last frame, for a frame that follows directly.
    cache: Option<(u16, Resolved)>,
}

impl RecvEngine {
    pub(crate) fn busy(&self) -> bool {
        !self.staged.is_empty()
    }

    /// Whether the whole frame finds room: sequenced frames and others have room of their own.
    pub(crate) fn has_room(&self, frame: &Frame) -> bool {
        let sequenced = frame.sequenced();
        let all = if sequenced { CREDITS_MAX } else { UNSEQUENCED_UNITS };
        self.units[usize::from(sequenced)] + frame.header.credits() <= all
    }

    /// Whether any sequenced frame finds room.
    pub(crate) const fn has_room_for_any(&self) -> bool {
        self.units[1] + FRAME_CREDITS <= CREDITS_MAX
    }

    pub(crate) fn stage(&mut self, staged: Staged) {
        let sequenced = staged.frame.sequenced();
        self.units[usize::from(sequenced)] += staged.frame.header.credits();
        self.staged.push_back(staged);
    }

    /// Forgets the descriptor at hand if it is `vi`'s, or whoever's it is.
    pub(crate) fn forget(&mut self, vi: Option<u16>) {
        if vi.is_none_or(|vi| self.cache.as_ref().is_some_and(|c| c.0 == vi)) {
            self.cache = None;
        }
    }
}

impl Model {
    /// Consumes one staged frame.
    pub(crate) fn recv_step(&mut self, host: &mut dyn HostBus) {
        let Some(staged) = self.recv.staged.pop_front() else { return };
        let header = staged.frame.header;
        self.recv.units[usize::from(staged.frame.sequenced())] -= header.credits();
        match Type::from_bits(header.kind) {
            Some(Type::Message) => self.take_message(&staged.frame, staged.incarnation, host),
            Some(kind) => {
                if self.matches(&header) {
                    if !matches!(kind, Type::ViAck | Type::ViRefuse | Type::Fin) {
                        self.stamp_at(header.dst_vi, Stamp::FirstBeatIn, staged.started);
                    }
                    self.take_vi_frame(kind, &staged.frame, host);
                } else {
                    self.count(Counter::Unmatched);
                }
            }
            None => debug_assert!(false, "unknown types are not staged"),
        }
        if staged.frame.sequenced() {
            self.release_credits(header.src_node, staged.incarnation, header.credits());
        }
        if self.recv.has_room_for_any() {
            self.channels.ask_again();
        }
    }

    /// Section 5.1.
    fn matches(&self, header: &Header) -> bool {
        if usize::from(header.dst_vi) >= VI_COUNT {
            return false;
        }
        let vi = self.vi(header.dst_vi);
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

    fn take_vi_frame(&mut self, kind: Type, frame: &Frame, host: &mut dyn HostBus) {
        let vi = frame.header.dst_vi;
        let (level, send) = (self.vi(vi).level, self.vi(vi).send);
        match kind {
            Type::Data => self.take_data(vi, frame, host),
            Type::RdmaWrite => self.take_write(vi, frame, host),
            Type::ReadRequest => self.take_request(vi, frame, host),
            Type::ReadResponse => self.take_response(vi, frame, host),
            Type::ViAck => {
                let SendPhase::Waiting { total } = send else {
                    self.count(Counter::Unmatched);
                    return;
                };
                self.vi_mut(vi).send = SendPhase::Between;
                self.complete(vi, Queue::Send, Ending::good(total), host);
                self.make_ready(vi);
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
                self.stop(vi, Stop { reason, peer_reason, queue: Queue::Send, status }, host);
            }
            Type::Fin => {
                let (reason, status) = (StopReason::Disconnected, status::DESC_FLUSHED_ERROR);
                self.stop(vi, Stop { reason, peer_reason: 0, queue: Queue::Send, status }, host);
            }
            _ => debug_assert!(false, "{kind:?} is not a VI frame"),
        }
    }

    fn take_data(&mut self, vi: u16, frame: &Frame, host: &mut dyn HostBus) {
        let first = frame.header.flags & flag::FIRST != 0;
        let unreliable = self.vi(vi).level == Reliability::Unreliable;
        let message = match (first, self.vi(vi).recv) {
            (true, Some(_)) if !unreliable => return self.break_message(vi, host),
            (true, _) => self.first_frame(vi, frame, host),
            (false, Some(message)) if !message.write => self.later_frame(vi, message, frame, host),
            (false, _) => return self.stray_frame(vi),
        };
        let Some((message, resolved)) = message else { return };
        self.place(vi, message, resolved, frame, host);
    }

    /// A frame with FIRST: section 5.2. Gives the message that it starts.
    fn first_frame(
        &mut self,
        vi: u16,
        frame: &Frame,
        host: &mut dyn HostBus,
    ) -> Option<(RecvMessage, Resolved)> {
        let header = &frame.header;
        let unreliable = self.vi(vi).level == Reliability::Unreliable;
        self.vi_mut(vi).recv = None;
        self.recv.forget(Some(vi));
        self.vi_mut(vi).operations[Queue::Recv as usize] = status::OP_RECEIVE;
        let payload = u32::from(header.length);
        let last = header.flags & flag::LAST != 0;
        let length = if last { payload } else { header.word };
        if unreliable && (header.sequence & 0xff != 0 || payload > length) {
            self.count(Counter::UnreliableGap);
            return None;
        }
        if self.vi(vi).queues[Queue::Recv as usize].count == 0 {
            if unreliable {
                self.count(Counter::UnreliableEmpty);
            } else {
                self.stop_and_refuse(vi, Queue::Recv, StopReason::ReceiveEmpty, host);
            }
            return None;
        }
        let resolved = self.fetch(vi, Queue::Recv, host).and_then(|resolved| {
            let fits = u64::from(length) <= resolved.total && payload <= length;
            if fits { Ok(resolved) } else { Err(Fault::LENGTH) }
        });
        match resolved {
            Ok(resolved) => {
                let sequence = header.sequence;
                Some((RecvMessage { write: false, length, placed: 0, sequence }, resolved))
            }
            Err(fault) => {
                self.fail_recv(vi, fault, false, host);
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
        host: &mut dyn HostBus,
    ) -> Option<(RecvMessage, Resolved)> {
        let header = &frame.header;
        let unreliable = self.vi(vi).level == Reliability::Unreliable;
        let end = message.placed + u32::from(header.length);
        let last = header.flags & flag::LAST != 0;
        let fits = end <= message.length && (!last || end == message.length);
        if unreliable && (header.sequence != message.sequence || !fits) {
            self.count(Counter::UnreliableGap);
            self.vi_mut(vi).recv = None;
            return None;
        }
        if !fits {
            self.fail_recv(vi, Fault::LENGTH, true, host);
            return None;
        }
        let at_hand = self.recv.cache.take().filter(|cache| cache.0 == vi);
        let resolved = match at_hand {
            Some((_, resolved)) => Ok(resolved),
            None => self.fetch(vi, Queue::Recv, host),
        };
        let shrunk = |r: &Resolved| r.total < u64::from(message.length);
        match resolved.and_then(|r| if shrunk(&r) { Err(Fault::LENGTH) } else { Ok(r) }) {
            Ok(resolved) => Some((message, resolved)),
            Err(fault) => {
                self.fail_recv(vi, fault, true, host);
                None
            }
        }
    }

    /// Writes the payload, and the status if the frame is the last: section 5.3.
    fn place(
        &mut self,
        vi: u16,
        message: RecvMessage,
        resolved: Resolved,
        frame: &Frame,
        host: &mut dyn HostBus,
    ) {
        let header = &frame.header;
        let mut at = 0;
        for (bus, n) in resolved.pieces(u64::from(message.placed), frame.payload.len()) {
            host.write(bus, &frame.payload[at..at + n]);
            at += n;
        }
        let message = message.after(header.length.into());
        if header.flags & flag::LAST == 0 {
            self.vi_mut(vi).recv = Some(message);
            self.recv.cache = Some((vi, resolved));
            return;
        }
        self.stamp(vi, Stamp::DataWritten);
        self.vi_mut(vi).recv = None;
        let immediate = (header.flags & flag::IMMEDIATE != 0).then_some(header.word);
        let ending = Ending { immediate, ..Ending::good(message.length) };
        let done = self.complete(vi, Queue::Recv, ending, host);
        if done && header.flags & flag::RECEPTION != 0 {
            self.owe(vi, Owed::Ack);
        }
    }

    /// A FIRST frame in mid-message on a reliable VI: section 5.4.
    pub(crate) fn break_message(&mut self, vi: u16, host: &mut dyn HostBus) {
        if self.vi(vi).recv.is_some_and(|message| message.write) {
            self.stop_and_refuse(vi, Queue::Recv, StopReason::Length, host);
        } else {
            self.fail_recv(vi, Fault::LENGTH, true, host);
        }
    }

    /// A later frame without its message: section 5.4.
    pub(crate) fn stray_frame(&mut self, vi: u16) {
        if self.vi(vi).level == Reliability::Unreliable {
            self.count(Counter::UnreliableGap);
            self.vi_mut(vi).recv = None;
        } else {
            self.count(Counter::Unmatched);
        }
    }

    fn fail_recv(&mut self, vi: u16, fault: Fault, partial: bool, host: &mut dyn HostBus) {
        self.vi_mut(vi).recv = None;
        self.recv.forget(Some(vi));
        self.fail(vi, Queue::Recv, fault, partial, host);
    }

    /// The descriptors at hand of this VI are not used any more.
    pub(crate) fn forget_caches(&mut self, vi: u16) {
        self.pushes.forget(Some(vi));
        self.send.forget(Some(vi));
        self.recv.forget(Some(vi));
    }

    /// No descriptor at hand is used any more: a region went.
    pub(crate) fn forget_all_caches(&mut self) {
        self.pushes.forget(None);
        self.send.forget(None);
        self.recv.forget(None);
    }
}
