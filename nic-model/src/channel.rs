//! The channel between two nodes: opening, acceptance, acknowledgement, retransmission, keepalive,
//! going down.
//!
//! | module | what |
//! |---|---|
//! | `peer` | a peer: its state, its numbers, what it owes the link |
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
use crate::device::HostBus;
use crate::frame::{Frame, chunks};
use crate::nic::Model;
use crate::trace::Trace;
use crate::vi::Stop;

/// All channels, the pool, and what is on its way to the link.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    pub(crate) peers: Vec<Peer>,
    free_chunks: usize,
    /// Peers with something to transmit, in turn.
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
    pub(crate) fn busy(&self) -> bool {
        self.emitter.is_some() || !self.ring.is_empty()
    }

    pub(crate) fn peer(&self, node: u8) -> &Peer {
        &self.peers[usize::from(node)]
    }

    fn peer_mut(&mut self, node: u8) -> &mut Peer {
        &mut self.peers[usize::from(node)]
    }

    pub(crate) fn is_open(&self, node: u8) -> bool {
        self.peer(node).state == PeerState::Open
    }

    /// Whether pool and credits allow a frame with this header to enter the channel now: sections
    /// 7.4 and 7.5.
    pub(crate) fn admits(&self, node: u8, header: &Header) -> bool {
        let peer = self.peer(node);
        let need = chunks(usize::from(header.length));
        let data = [Type::Data, Type::RdmaWrite, Type::ReadRequest, Type::ReadResponse];
        let room = if data.iter().any(|&kind| header.kind == kind as u8) {
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
        peer.state == PeerState::Open && room && covered
    }

    /// Takes an admitted frame.
    pub(crate) fn enqueue(&mut self, mut frame: Frame) {
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
            peer.passing.push_back(Pooled { frame, stamp });
        }
        self.make_ready(node);
    }

    /// Puts a peer with something to transmit at the end of the ring.
    fn make_ready(&mut self, node: u8) {
        let index = usize::from(node);
        if self.peers[index].wants_link() && !self.in_ring[index] {
            self.in_ring.set(index, true);
            self.ring.push_back(node);
        }
    }

    /// A frame in its turn finds no room: its sender hears of us at once, and is asked for the frame
    /// once there is room.
    fn starve(&mut self, node: u8) {
        let peer = self.peer_mut(node);
        (peer.starved, peer.owes.ack, peer.gap_sent) = (true, true, Some(peer.expected));
        self.make_ready(node);
    }

    /// There is room in staging again.
    pub(crate) fn ask_again(&mut self) {
        for node in 0..small8(PEER_COUNT) {
            let peer = self.peer_mut(node);
            if std::mem::take(&mut peer.starved) && peer.gap_sent == Some(peer.expected) {
                peer.owes.gap = true;
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
}

impl Model {
    /// PeerOpen: sends the first SYN.
    pub(crate) fn peer_open(&mut self, node: u8, epoch: u32, granted: u8) {
        let deadline = self.now + u64::from(self.csr.retry_timeout);
        let peer = self.channels.peer_mut(node);
        peer.reset();
        peer.go(Input::Open);
        peer.our_epoch = epoch;
        peer.granted = granted;
        peer.owes.syn = true;
        peer.retry_deadline = Some(deadline);
        self.channels.make_ready(node);
        self.channels.remind(deadline);
        self.trace(Trace::Peer { node, state: PeerState::Opening });
    }

    /// PeerClose.
    pub(crate) fn peer_close(&mut self, node: u8, host: &mut dyn HostBus) {
        let peer = self.channels.peer(node);
        let tag = (peer.state == PeerState::Open).then(|| peer.tag());
        self.peer_down(node, PeerDownReason::Closed, host);
        if let Some(tag) = tag {
            self.owe_reset(node, tag);
        }
    }

    /// A SYN or SYN-ACK came while Opening.
    fn peer_up(&mut self, node: u8, epoch: u32, credit: u8, host: &mut dyn HostBus) {
        let now = self.now;
        let peer = self.channels.peer_mut(node);
        peer.go(Input::Meet);
        peer.peer_epoch = epoch;
        peer.credit_limit = credit;
        peer.owes.syn = false;
        peer.retries = 0;
        peer.retry_deadline = None;
        (peer.last_sent, peer.last_heard) = (now, now);
        self.channels.check_timers();
        self.send.retry();
        self.trace(Trace::Peer { node, state: PeerState::Open });
        self.raise_peer_up(node, epoch, host);
    }

    /// Section 7.7.
    fn peer_down(&mut self, node: u8, reason: PeerDownReason, host: &mut dyn HostBus) {
        let peer = self.channels.peer_mut(node);
        peer.go(Input::Down);
        let freed = peer.reset();
        self.channels.free_chunks += freed;
        self.send.retry();
        if reason != PeerDownReason::Closed {
            self.count(Counter::PeersLost);
        }
        self.trace(Trace::Peer { node, state: PeerState::Closed });
        let stop = Stop {
            reason: StopReason::PeerDown,
            peer_reason: 0,
            queue: Queue::Send,
            status: status::TRANSPORT_ERROR,
        };
        for vi in 0..small16(VI_COUNT) {
            if self.vi(vi).state == State::Connected && self.vi(vi).remote.node == node {
                self.stop(vi, stop, host);
            }
        }
        self.raise_peer_down(node, reason, host);
    }

    /// A staged sequenced frame was consumed: its credits go back to the peer that sent it.
    pub(crate) fn release_credits(&mut self, node: u8, incarnation: u64, credits: usize) {
        let deadline = self.now + u64::from(self.csr.ack_delay);
        let peer = self.channels.peer_mut(node);
        if peer.incarnation == incarnation && peer.state == PeerState::Open {
            peer.released = peer.released.wrapping_add(small8(credits));
            // The peer may wait for just this, so it is told within the same time as of an
            // acceptance.
            let deadline = *peer.ack_deadline.get_or_insert(deadline);
            self.channels.remind(deadline);
        }
    }

    /// A message from `node` was refused; it is told, as well as that goes.
    pub(crate) fn owe_message_refused(&mut self, node: u8, incarnation: u64) {
        let peer = self.channels.peer_mut(node);
        if peer.incarnation == incarnation && peer.state == PeerState::Open {
            peer.owes.messages_refused = peer.owes.messages_refused.saturating_add(1);
            self.channels.make_ready(node);
        }
    }

    fn owe_reset(&mut self, node: u8, tag: u16) {
        self.channels.peer_mut(node).owes.reset = Some(tag);
        self.channels.make_ready(node);
    }
}
