//! Frames off the link: section 7.2, and the opening of 7.1.

use nic_regs::admin::PeerState;
use nic_regs::counter::Counter;
use nic_regs::csr::NODE;
use nic_regs::event::PeerDownReason;
use nic_regs::frame::{Header, MESSAGE_BYTES, RDMA_HEADER_BYTES, Type, VERSION, flag};
use nic_regs::limits::PEER_COUNT;

use crate::bits::{diff8, diff16, low16};
use crate::device::HostBus;
use crate::frame::{Assembled, Frame, FrameError};
use crate::nic::Model;
use crate::recv::Staged;
use crate::trace::{Trace, Verdict};

/// Why a frame is dropped.
type Dropped = Counter;

impl Model {
    /// A whole frame has arrived.
    pub(crate) fn accept(&mut self, assembled: Assembled, host: &mut dyn HostBus) {
        let (frame, started) = match assembled {
            Ok(good) => good,
            Err(FrameError::Crc) => return self.drop_frame(None, Counter::DropCrc),
            Err(FrameError::Length) => return self.drop_frame(None, Counter::DropLength),
        };
        let header = frame.header;
        match self.judge(frame, started, host) {
            Ok(verdict) => self.trace(Trace::FrameIn { header: Some(header), verdict }),
            Err(cause) => self.drop_frame(Some(header), cause),
        }
    }

    fn drop_frame(&mut self, header: Option<Header>, cause: Dropped) {
        self.count(cause);
        self.trace(Trace::FrameIn { header, verdict: Verdict::Dropped(cause) });
    }

    fn judge(
        &mut self,
        frame: Frame,
        started: u64,
        host: &mut dyn HostBus,
    ) -> Result<Verdict, Dropped> {
        let header = frame.header;
        let kind = self.check_kind(&frame)?;
        let node = header.src_node;
        let ours = u32::from(header.dst_node) == NODE(self.csr.node).get(NODE::NUMBER)
            && usize::from(node) < PEER_COUNT;
        if header.version != VERSION {
            let opening = ours && self.channels.peer(node).state == PeerState::Opening;
            if opening && matches!(kind, Type::Syn | Type::SynAck) {
                self.peer_down(node, PeerDownReason::Version, host);
            }
            return Err(Counter::DropVersion);
        }
        if !ours {
            return Err(Counter::DropNode);
        }
        self.count(Counter::FramesReceived);
        match kind {
            Type::Syn => self.take_syn(&header, host),
            Type::SynAck => self.take_syn_ack(&header, host),
            Type::Rst => self.take_reset(&header, host),
            _ => return self.judge_open(kind, frame, started, host),
        }
        Ok(Verdict::Handled)
    }

    /// Types, flags and lengths that do not go together.
    fn check_kind(&self, frame: &Frame) -> Result<Type, Dropped> {
        let kind = Type::from_bits(frame.header.kind).ok_or(Counter::DropLength)?;
        let good = match kind {
            Type::ViAck | Type::ViRefuse | Type::Fin => frame.sequenced(),
            Type::Message => frame.sequenced() && frame.payload.len() == MESSAGE_BYTES,
            Type::RdmaWrite => self.features.rdma_write && frame.payload.len() >= RDMA_HEADER_BYTES,
            Type::ReadRequest => {
                let whole = frame.payload.len() == RDMA_HEADER_BYTES;
                self.features.rdma_read && frame.sequenced() && whole
            }
            Type::ReadResponse => self.features.rdma_read && frame.sequenced(),
            _ => true,
        };
        if good { Ok(kind) } else { Err(Counter::DropLength) }
    }

    fn take_syn(&mut self, header: &Header, host: &mut dyn HostBus) {
        let node = header.src_node;
        match self.channels.peer(node).state {
            PeerState::Closed => return,
            PeerState::Opening => self.peer_up(node, header.word, header.credit, host),
            PeerState::Open if self.channels.peer(node).peer_epoch == header.word => {
                self.channels.peer_mut(node).last_heard = self.now;
            }
            PeerState::Open => {
                self.peer_down(node, PeerDownReason::Restarted, host);
                return;
            }
        }
        self.channels.peer_mut(node).owes.syn_ack = true;
        self.channels.make_ready(node);
    }

    fn take_syn_ack(&mut self, header: &Header, host: &mut dyn HostBus) {
        let node = header.src_node;
        let peer = self.channels.peer(node);
        let tag = low16(peer.our_epoch ^ header.word);
        if peer.state == PeerState::Opening && header.tag == tag {
            self.peer_up(node, header.word, header.credit, host);
        }
    }

    fn take_reset(&mut self, header: &Header, host: &mut dyn HostBus) {
        let peer = self.channels.peer(header.src_node);
        if peer.state == PeerState::Open && header.tag == peer.tag() {
            self.peer_down(header.src_node, PeerDownReason::Reset, host);
        }
    }

    /// The checks of a frame that belongs to an open channel.
    fn judge_open(
        &mut self,
        kind: Type,
        frame: Frame,
        started: u64,
        host: &mut dyn HostBus,
    ) -> Result<Verdict, Dropped> {
        let header = frame.header;
        let node = header.src_node;
        match self.channels.peer(node).state {
            PeerState::Closed => {
                self.owe_reset(node, header.tag);
                return Err(Counter::DropNode);
            }
            PeerState::Opening => return Err(Counter::DropNode),
            PeerState::Open => {}
        }
        if header.tag != self.channels.peer(node).tag() {
            self.owe_reset(node, header.tag);
            return Err(Counter::DropTag);
        }
        let peer = self.channels.peer_mut(node);
        (peer.last_heard, peer.heard) = (self.now, true);
        self.take_acknowledgement(&header);
        match kind {
            Type::Ack => {
                if header.flags & flag::GAP != 0 {
                    self.take_gap(&header);
                }
                return Ok(Verdict::Handled);
            }
            Type::MessageRefused => {
                self.raise_message_refused(node, host);
                return Ok(Verdict::Handled);
            }
            _ => {}
        }
        if frame.sequenced() {
            self.check_sequence(&header)?;
        }
        if !self.recv.has_room(&frame) {
            if frame.sequenced() {
                self.channels.starve(node);
            }
            return Err(Counter::DropStaging);
        }
        let deadline = self.now + u64::from(self.csr.ack_delay);
        let peer = self.channels.peer_mut(node);
        let incarnation = peer.incarnation;
        if frame.sequenced() {
            peer.expected = peer.expected.wrapping_add(1);
            let deadline = *peer.ack_deadline.get_or_insert(deadline);
            self.channels.remind(deadline);
        }
        self.recv.stage(Staged { frame, started, incarnation });
        Ok(Verdict::Staged)
    }

    fn take_acknowledgement(&mut self, header: &Header) {
        let timeout = self.now + u64::from(self.csr.retry_timeout);
        let peer = self.channels.peer_mut(header.src_node);
        if diff8(header.credit, peer.credit_limit) > 0 {
            peer.credit_limit = header.credit;
            self.send.retry();
        }
        if let Some(freed) = peer.acknowledge(header.acknowledgement) {
            peer.retry_deadline = (peer.reached != 0).then_some(timeout);
            self.channels.free_chunks += freed;
            self.channels.remind(timeout);
            self.send.retry();
        }
        // Frames may have waited for these credits.
        self.channels.make_ready(header.src_node);
    }

    /// An Ack that asks for retransmission.
    fn take_gap(&mut self, header: &Header) {
        let number = header.acknowledgement;
        let peer = self.channels.peer_mut(header.src_node);
        if number == peer.first_unacked && peer.reached != 0 && peer.gap_heeded != Some(number) {
            peer.gap_heeded = Some(number);
            peer.retransmit();
            self.channels.make_ready(header.src_node);
        }
    }

    fn check_sequence(&mut self, header: &Header) -> Result<(), Dropped> {
        let node = header.src_node;
        let peer = self.channels.peer_mut(node);
        let distance = diff16(header.sequence, peer.expected);
        if distance == 0 {
            return Ok(());
        }
        if distance < 0 {
            peer.owes.ack = true;
        } else if peer.gap_sent != Some(peer.expected) {
            peer.gap_sent = Some(peer.expected);
            peer.owes.gap = true;
        }
        self.channels.make_ready(node);
        Err(if distance < 0 { Counter::DropDuplicate } else { Counter::DropOrder })
    }
}
