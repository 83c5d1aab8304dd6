//! Frames off the link: section 7.2, and the opening of 7.1.

use nic_regs::admin::PeerState;
use nic_regs::counter::Counter;
use nic_regs::csr::NODE;
use nic_regs::event::PeerDownReason;
use nic_regs::frame::{Header, MESSAGE_BYTES, RDMA_HEADER_BYTES, Type, VERSION, flag};
use nic_regs::limits::PEER_COUNT;

use super::Channels;
use crate::bits::{diff8, diff16, low16};
use crate::context::Context;
use crate::device::Features;
use crate::frame::{Assembled, Frame, FrameError};
use crate::staging::Staged;
use crate::trace::{Trace, Verdict};
use crate::vi::Vis;
use crate::work_queue::WorkQueues;

/// Why a frame is dropped.
type Dropped = Counter;

fn drop_frame(header: Option<Header>, cause: Dropped, cx: &mut Context<'_>) {
    cx.count(cause);
    cx.trace(Trace::FrameIn { header, verdict: Verdict::Dropped(cause) });
}

/// Checks that type, flags and length go together, on a device with these features.
fn check_kind(frame: &Frame, features: Features) -> Result<Type, Dropped> {
    let kind = Type::from_bits(frame.header.kind).ok_or(Counter::DropLength)?;
    let good = match kind {
        Type::ViAck | Type::ViRefuse | Type::Fin => frame.sequenced(),
        Type::Message => frame.sequenced() && frame.payload.len() == MESSAGE_BYTES,
        Type::RdmaWrite => features.rdma_write && frame.payload.len() >= RDMA_HEADER_BYTES,
        Type::ReadRequest => {
            let whole = frame.payload.len() == RDMA_HEADER_BYTES;
            features.rdma_read && frame.sequenced() && whole
        }
        Type::ReadResponse => features.rdma_read && frame.sequenced(),
        _ => true,
    };
    if good { Ok(kind) } else { Err(Counter::DropLength) }
}

impl Channels {
    /// A whole frame has arrived.
    pub(crate) fn accept(
        &mut self,
        assembled: Assembled,
        queues: &mut WorkQueues,
        cx: &mut Context<'_>,
    ) {
        let (frame, started) = match assembled {
            Ok(good) => good,
            Err(FrameError::Crc) => return drop_frame(None, Counter::DropCrc, cx),
            Err(FrameError::Length) => return drop_frame(None, Counter::DropLength, cx),
        };
        let header = frame.header;
        match self.judge(frame, started, queues, cx) {
            Ok(verdict) => cx.trace(Trace::FrameIn { header: Some(header), verdict }),
            Err(cause) => drop_frame(Some(header), cause, cx),
        }
    }

    fn judge(
        &mut self,
        frame: Frame,
        started: u64,
        queues: &mut WorkQueues,
        cx: &mut Context<'_>,
    ) -> Result<Verdict, Dropped> {
        let header = frame.header;
        let kind = check_kind(&frame, queues.features)?;
        let node = header.src_node;
        let ours = u32::from(header.dst_node) == self.settings.node.get(NODE::NUMBER)
            && usize::from(node) < PEER_COUNT;
        if header.version != VERSION {
            let opening = ours && self.peer(node).state == PeerState::Opening;
            if opening && matches!(kind, Type::Syn | Type::SynAck) {
                self.down(node, PeerDownReason::Version, queues, cx);
            }
            return Err(Counter::DropVersion);
        }
        if !ours {
            return Err(Counter::DropNode);
        }
        cx.count(Counter::FramesReceived);
        match kind {
            Type::Syn => self.take_syn(&header, queues, cx),
            Type::SynAck => self.take_syn_ack(&header, queues, cx),
            Type::Rst => self.take_reset(&header, queues, cx),
            _ => return self.judge_open(kind, frame, started, queues, cx),
        }
        Ok(Verdict::Handled)
    }

    fn take_syn(&mut self, header: &Header, queues: &mut WorkQueues, cx: &mut Context<'_>) {
        let node = header.src_node;
        match self.peer(node).state {
            PeerState::Closed => return,
            PeerState::Opening => self.up(node, header.word, header.credit, queues, cx),
            PeerState::Open if self.peer(node).peer_epoch == header.word => {
                self.peer_mut(node).last_received = cx.now;
            }
            PeerState::Open => {
                self.down(node, PeerDownReason::Restarted, queues, cx);
                return;
            }
        }
        self.peer_mut(node).pending.syn_ack = true;
        self.make_ready(node);
    }

    fn take_syn_ack(&mut self, header: &Header, queues: &mut WorkQueues, cx: &mut Context<'_>) {
        let node = header.src_node;
        let peer = self.peer(node);
        let tag = low16(peer.our_epoch ^ header.word);
        if peer.state == PeerState::Opening && header.tag == tag {
            self.up(node, header.word, header.credit, queues, cx);
        }
    }

    fn take_reset(&mut self, header: &Header, queues: &mut WorkQueues, cx: &mut Context<'_>) {
        let peer = self.peer(header.src_node);
        if peer.state == PeerState::Open && header.tag == peer.tag() {
            self.down(header.src_node, PeerDownReason::Reset, queues, cx);
        }
    }

    /// The checks of a frame that belongs to an open channel.
    fn judge_open(
        &mut self,
        kind: Type,
        frame: Frame,
        started: u64,
        queues: &mut WorkQueues,
        cx: &mut Context<'_>,
    ) -> Result<Verdict, Dropped> {
        let header = frame.header;
        let node = header.src_node;
        match self.peer(node).state {
            PeerState::Closed => {
                self.set_reset_pending(node, header.tag);
                return Err(Counter::DropNode);
            }
            PeerState::Opening => return Err(Counter::DropNode),
            PeerState::Open => {}
        }
        if header.tag != self.peer(node).tag() {
            self.set_reset_pending(node, header.tag);
            return Err(Counter::DropTag);
        }
        let peer = self.peer_mut(node);
        (peer.last_received, peer.answered) = (cx.now, true);
        self.take_acknowledgement(&header, &mut queues.vis, cx);
        match kind {
            Type::Ack => {
                if header.flags & flag::NAK != 0 {
                    self.take_nak(&header);
                }
                return Ok(Verdict::Handled);
            }
            Type::MessageRefused => {
                queues.events.raise_message_refused(node, cx);
                return Ok(Verdict::Handled);
            }
            _ => {}
        }
        if frame.sequenced() {
            self.check_sequence(&header)?;
        }
        if !self.staging.has_space(&frame) {
            if frame.sequenced() {
                self.out_of_buffers(node);
            }
            return Err(Counter::DropStaging);
        }
        let deadline = cx.now + u64::from(self.settings.ack_delay);
        let peer = self.peer_mut(node);
        let incarnation = peer.incarnation;
        if frame.sequenced() {
            peer.expected = peer.expected.wrapping_add(1);
            let deadline = *peer.ack_deadline.get_or_insert(deadline);
            self.remind(deadline);
        }
        self.staging.push(Staged { frame, started, incarnation });
        Ok(Verdict::Staged)
    }

    fn take_acknowledgement(&mut self, header: &Header, vis: &mut Vis, cx: &mut Context<'_>) {
        let timeout = cx.now + u64::from(self.settings.retry_timeout);
        let peer = self.peer_mut(header.src_node);
        if diff8(header.credit, peer.credit_limit) > 0 {
            peer.credit_limit = header.credit;
            vis.retry();
        }
        if let Some(freed) = peer.acknowledge(header.acknowledgement) {
            peer.retry_deadline = (peer.reached != 0).then_some(timeout);
            self.free_chunks += freed;
            self.remind(timeout);
            vis.retry();
        }
        // Frames may have waited for these credits.
        self.make_ready(header.src_node);
    }

    /// A NAK (out of sequence) asks for retransmission.
    fn take_nak(&mut self, header: &Header) {
        let number = header.acknowledgement;
        let peer = self.peer_mut(header.src_node);
        if number == peer.first_unacked && peer.reached != 0 && peer.nak_taken != Some(number) {
            peer.nak_taken = Some(number);
            peer.retransmit();
            self.make_ready(header.src_node);
        }
    }

    fn check_sequence(&mut self, header: &Header) -> Result<(), Dropped> {
        let node = header.src_node;
        let peer = self.peer_mut(node);
        let distance = diff16(header.sequence, peer.expected);
        if distance == 0 {
            return Ok(());
        }
        if distance < 0 {
            peer.pending.ack = true;
        } else if peer.nak_sent != Some(peer.expected) {
            peer.nak_sent = Some(peer.expected);
            peer.pending.nak = true;
        }
        self.make_ready(node);
        Err(if distance < 0 { Counter::DropDuplicate } else { Counter::DropOrder })
    }
}
