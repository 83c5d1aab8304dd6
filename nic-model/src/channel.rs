//! The channel between two nodes: opening, acceptance, acknowledgement, retransmission, keepalive,
//! going down.
//!
//! | module | what |
//! |---|---|
//! | `peer` | a peer: its state, its numbers, its pending frames |
//! | `accept` | frames off the link: section 7.1 and 7.2 |
//! | `transmit` | frames onto the link, beat by beat: 7.3 |
//! | `timers` | retries, acknowledgement delay, keepalive: 7.1, 7.2, 7.3, 7.6 |

mod accept;
mod peer;
mod timers;
mod transmit;

use std::collections::VecDeque;

use bitvec::vec::BitVec;
use nic_regs::admin::PeerState;
use nic_regs::counter::Counter;
use nic_regs::csr::{ACK_DELAY, KEEPALIVE, NODE, RETRY_LIMIT, RETRY_TIMEOUT};
use nic_regs::desc::status;
use nic_regs::doorbell::Queue;
use nic_regs::event::PeerDownReason;
use nic_regs::frame::{Header, Type, flag};
use nic_regs::limits::{
    CREDITS_AHEAD, PEER_COUNT, POOL_AHEAD_CHUNKS, POOL_CHUNK_COUNT, POOL_PEER_CHUNKS,
    POOL_RESERVED_CHUNKS, VI_COUNT,
};
use nic_regs::vi::{State, StopReason};

pub(crate) use peer::Peer;
use peer::{Input, Pooled};
use transmit::Emitter;

use crate::bits::{diff8, small8, small16};
use crate::context::Context;
use crate::frame::{Frame, chunks};
use crate::send::FrameSink;
use crate::staging::{Staged, Staging};
use crate::trace::Trace;
use crate::vi::Stop;
use crate::work_queue::WorkQueues;

/// The registers of the channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) node: NODE,
    pub(crate) ack_delay: u32,
    pub(crate) retry_timeout: u32,
    pub(crate) retry_limit: RETRY_LIMIT,
    pub(crate) keepalive: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            node: NODE::RESET,
            ack_delay: ACK_DELAY::RESET.0,
            retry_timeout: RETRY_TIMEOUT::RESET.0,
            retry_limit: RETRY_LIMIT::RESET,
            keepalive: KEEPALIVE::RESET.0,
        }
    }
}

/// All channels, the pool, the staging memory, and what is on its way to the link.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    pub(crate) settings: Settings,
    pub(crate) staging: Staging,
    pub(crate) peers: Vec<Peer>,
    free_chunks: usize,
    /// Peers with something to transmit, in the order in which they became ready.
    ring: VecDeque<u8>,
    /// The peers in the ring.
    in_ring: BitVec,
    /// Order in which frames entered the channel.
    stamp: u64,
    /// No timer runs out before this.
    next_timer: u64,
    emitter: Option<Emitter>,
}

impl Default for Channels {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            staging: Staging::default(),
            peers: vec![Peer::default(); PEER_COUNT],
            free_chunks: POOL_CHUNK_COUNT,
            ring: VecDeque::new(),
            in_ring: BitVec::repeat(false, PEER_COUNT),
            stamp: 0,
            next_timer: u64::MAX,
            emitter: None,
        }
    }
}

impl Channels {
    /// Whether something waits for the link or is on it.
    pub(crate) fn is_busy(&self) -> bool {
        self.emitter.is_some() || !self.ring.is_empty()
    }

    /// Whether the pool holds frames.
    pub(crate) fn is_sending(&self) -> bool {
        self.free_chunks < POOL_CHUNK_COUNT
    }

    pub(crate) fn peer(&self, node: u8) -> &Peer {
        &self.peers[usize::from(node)]
    }

    fn peer_mut(&mut self, node: u8) -> &mut Peer {
        &mut self.peers[usize::from(node)]
    }

    /// Puts a peer with something to transmit at the end of the ring.
    fn make_ready(&mut self, node: u8) {
        let index = usize::from(node);
        if self.peers[index].wants_link() && !self.in_ring[index] {
            self.in_ring.set(index, true);
            self.ring.push_back(node);
        }
    }

    /// The next frame of a peer does not fit into the staging memory: an Ack notifies the peer at
    /// once, and a NAK asks for the frame when there is space.
    fn out_of_buffers(&mut self, node: u8) {
        let peer = self.peer_mut(node);
        (peer.starved, peer.pending.ack, peer.nak_sent) = (true, true, Some(peer.expected));
        self.make_ready(node);
    }

    /// Asks for the frames that did not fit into the staging memory.
    fn send_deferred_naks(&mut self) {
        for node in 0..small8(PEER_COUNT) {
            let peer = self.peer_mut(node);
            if std::mem::take(&mut peer.starved) && peer.nak_sent == Some(peer.expected) {
                peer.pending.nak = true;
                self.make_ready(node);
            }
        }
    }

    /// Makes sure that the timers are looked at no later than `when`.
    fn remind(&mut self, when: u64) {
        self.next_timer = self.next_timer.min(when);
    }

    /// A register that sets a period was written: looks at all timers.
    pub(crate) fn check_timers(&mut self) {
        self.next_timer = 0;
    }

    /// PeerOpen: sends the first SYN.
    pub(crate) fn open(&mut self, node: u8, epoch: u32, granted: u8, cx: &mut Context<'_>) {
        let deadline = cx.now + u64::from(self.settings.retry_timeout);
        let peer = self.peer_mut(node);
        peer.reset();
        peer.go(Input::Open);
        peer.our_epoch = epoch;
        peer.granted = granted;
        peer.pending.syn = true;
        peer.retry_deadline = Some(deadline);
        self.make_ready(node);
        self.remind(deadline);
        cx.trace(Trace::Peer { node, state: PeerState::Opening });
    }

    /// PeerClose.
    pub(crate) fn close(&mut self, node: u8, queues: &mut WorkQueues, cx: &mut Context<'_>) {
        let peer = self.peer(node);
        let tag = (peer.state == PeerState::Open).then(|| peer.tag());
        self.down(node, PeerDownReason::Closed, queues, cx);
        if let Some(tag) = tag {
            self.set_reset_pending(node, tag);
        }
    }

    /// Opens the channel: a SYN or SYN-ACK arrived while Opening.
    fn up(
        &mut self,
        node: u8,
        epoch: u32,
        credit: u8,
        queues: &mut WorkQueues,
        cx: &mut Context<'_>,
    ) {
        let peer = self.peer_mut(node);
        peer.go(Input::Meet);
        peer.peer_epoch = epoch;
        peer.credit_limit = credit;
        peer.pending.syn = false;
        // Time-outs of the opening do not count against frames.
        (peer.retries, peer.silent) = (0, 0);
        peer.retry_deadline = None;
        (peer.last_sent, peer.last_received) = (cx.now, cx.now);
        self.check_timers();
        queues.vis.retry();
        cx.trace(Trace::Peer { node, state: PeerState::Open });
        queues.events.raise_peer_up(node, epoch, cx);
    }

    /// Section 7.7.
    fn down(
        &mut self,
        node: u8,
        reason: PeerDownReason,
        queues: &mut WorkQueues,
        cx: &mut Context<'_>,
    ) {
        let peer = self.peer_mut(node);
        peer.go(Input::Down);
        let freed = peer.reset();
        self.free_chunks += freed;
        queues.vis.retry();
        if reason != PeerDownReason::Closed {
            cx.count(Counter::PeersLost);
        }
        cx.trace(Trace::Peer { node, state: PeerState::Closed });
        let stop = Stop {
            reason: StopReason::PeerDown,
            peer_reason: 0,
            queue: Queue::Send,
            status: status::TRANSPORT_ERROR,
        };
        for vi in 0..small16(VI_COUNT) {
            let v = &queues.vis[vi];
            if v.state == State::Connected && v.remote.node == node {
                queues.stop(vi, stop, cx);
            }
        }
        queues.events.raise_peer_down(node, reason, cx);
    }

    /// Returns the credits of a frame that the receive engine consumed to the peer that sent it;
    /// `refused`: it was a message that no queue took, of which the peer is notified.
    pub(crate) fn consumed(&mut self, staged: &Staged, refused: bool, cx: &mut Context<'_>) {
        let header = &staged.frame.header;
        let node = header.src_node;
        let deadline = cx.now + u64::from(self.settings.ack_delay);
        let peer = self.peer_mut(node);
        if peer.incarnation == staged.incarnation && peer.state == PeerState::Open {
            if refused {
                let refusals = &mut peer.pending.messages_refused;
                *refusals = refusals.saturating_add(1);
            }
            if staged.frame.sequenced() {
                peer.released = peer.released.wrapping_add(small8(header.credits()));
                // The peer may wait for just this, so an Ack is due within the same time as for an
                // acceptance.
                let deadline = *peer.ack_deadline.get_or_insert(deadline);
                self.remind(deadline);
            }
            if refused {
                self.make_ready(node);
            }
        }
        if self.staging.has_space_for_any() {
            self.send_deferred_naks();
        }
    }

    fn set_reset_pending(&mut self, node: u8, tag: u16) {
        self.peer_mut(node).pending.reset = Some(tag);
        self.make_ready(node);
    }
}

impl FrameSink for Channels {
    fn is_open(&self, node: u8) -> bool {
        self.peer(node).state == PeerState::Open
    }

    fn admits(&self, node: u8, header: &Header) -> bool {
        let peer = self.peer(node);
        let need = chunks(usize::from(header.length));
        let data = [Type::Data, Type::RdmaWrite, Type::ReadRequest, Type::ReadResponse];
        let space = if data.iter().any(|&kind| header.kind == kind as u8) {
            need + POOL_RESERVED_CHUNKS <= self.free_chunks
                && peer.chunks + need <= POOL_PEER_CHUNKS
        } else {
            need <= self.free_chunks
        };
        let used = peer.credits_used.wrapping_add(small8(header.credits()));
        let ahead = small8(CREDITS_AHEAD);
        let covered = header.flags & flag::SEQUENCED == 0
            || diff8(peer.credit_limit, used) >= 0
            || (diff8(peer.credit_limit.wrapping_add(ahead), used) >= 0
                && need + POOL_AHEAD_CHUNKS <= self.free_chunks);
        peer.state == PeerState::Open && space && covered
    }

    fn enqueue(&mut self, mut frame: Frame) {
        let node = frame.header.dst_node;
        let stamp = self.stamp;
        self.stamp += 1;
        let chunks = frame.chunks();
        self.free_chunks -= chunks;
        let peer = self.peer_mut(node);
        peer.chunks += chunks;
        if frame.sequenced() {
            frame.header.sequence = peer.first_unacked.wrapping_add(small16(peer.pool.len()));
            peer.credits_used = peer.credits_used.wrapping_add(small8(frame.header.credits()));
            peer.pool.push_back(Pooled { frame, stamp });
        } else {
            peer.unsequenced.push_back(Pooled { frame, stamp });
        }
        self.make_ready(node);
    }
}
