//! The VI table: states, work queues, pending control frames; and the ready ring of the VIs that have
//! something to send.

mod state;

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use bitvec::vec::BitVec;
use nic_regs::desc::status;
use nic_regs::doorbell::{Queue, Token};
use nic_regs::frame::{Header, Type};
use nic_regs::limits::{POSTED_MAX, VI_COUNT};
use nic_regs::vi::{Reliability, State, StopReason};

pub(crate) use state::Input;
use state::transition;

use crate::bits::small8;
use crate::tpt::Owner;
use crate::trace::ViSnapshot;

/// Where the descriptor at the head of a work queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// There, if the checks of the fetch hold.
    Token(Token),
    /// The Next that led there failed its checks.
    BadNext,
    /// The Next that led there could not be read.
    Unreadable,
}

/// A work queue as the device keeps it.
#[derive(Clone, Copy, Debug)]
pub struct WorkQueue {
    /// The head.
    pub head: Head,
    /// Token of the last post.
    pub last: Option<Token>,
    /// Descriptors posted and not popped.
    pub count: u16,
    /// Next and NextHandle of the head, from a read that was issued when `count` covered the
    /// successor.
    pub next: Option<(u64, u32)>,
}

impl Default for WorkQueue {
    fn default() -> Self {
        Self { head: Head::BadNext, last: None, count: 0, next: None }
    }
}

impl WorkQueue {
    /// Counts a post. False if there is no room for it.
    pub(crate) fn post(&mut self, token: Token) -> bool {
        if self.count == POSTED_MAX {
            return false;
        }
        if self.count == 0 {
            self.head = Head::Token(token);
            self.next = None;
        }
        self.last = Some(token);
        self.count += 1;
        true
    }
}

/// The message that a VI sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendPhase {
    /// None: the next descriptor starts one.
    #[default]
    Between,
    /// Some of its frames are in the channel.
    Sending {
        /// Bytes in the channel.
        sent: u32,
        /// Bytes in all.
        total: u32,
        /// Status operation: a send or an RDMA write.
        operation: u32,
    },
    /// All its frames are in the channel; the ViAck is not here.
    Waiting {
        /// Bytes in all.
        total: u32,
    },
    /// A read request is in the channel; the answer is not all here.
    Reading {
        /// Bytes in the local segments.
        placed: u32,
        /// Bytes in all.
        total: u32,
    },
}

/// A message that is being received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvMessage {
    /// It is an RDMA write, and has no descriptor.
    pub write: bool,
    /// Bytes in all, as its FIRST frame says.
    pub length: u32,
    /// Bytes in the buffers.
    pub placed: u32,
    /// Message and fragment number of the next frame (Unreliable).
    pub sequence: u16,
}

impl RecvMessage {
    /// The message after a frame with `bytes` more.
    pub(crate) const fn after(self, bytes: u32) -> Self {
        let fragment = self.sequence.wrapping_add(1) & 0xff;
        let sequence = self.sequence & 0xff00 | fragment;
        Self { placed: self.placed + bytes, sequence, ..self }
    }
}

/// The part of an answer to the peer's RDMA read that is still to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Address of its first byte.
    pub address: u64,
    /// Handle of its region.
    pub handle: u32,
    /// Bytes.
    pub left: u32,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// Node.
    pub node: u8,
    /// VI there.
    pub vi: u16,
    /// Connection id.
    pub connection: u16,
    /// RDMA that the peer's VI allows, see [`nic_regs::vi::rdma`].
    pub allows: u32,
}

/// A ViError event that is still to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Why the VI stopped.
    pub reason: StopReason,
    /// The peer's reason, if that was a refusal.
    pub peer_reason: u8,
    /// The work queue that it concerns.
    pub queue: Queue,
    /// Status bits for the first descriptor that is not done.
    pub status: u32,
}

/// A VI.
#[derive(Clone, Debug)]
pub struct Vi {
    /// State.
    pub state: State,
    /// Why it stopped.
    pub reason: StopReason,
    /// Protection tag and domain.
    pub owner: Owner,
    /// Reliability level.
    pub level: Reliability,
    /// Bytes of the longest message that it may send.
    pub max_transfer: u32,
    /// Send and receive queue.
    pub queues: [WorkQueue; 2],
    /// Event queues of both.
    pub event_queues: [u16; 2],
    /// Completions that no event has reported.
    pub unreported: [u32; 2],
    /// The other end of the connection.
    pub remote: Remote,
    /// The message that it sends.
    pub send: SendPhase,
    /// Status operations of the descriptors at the heads of the queues, as last known.
    pub operations: [u32; 2],
    /// RDMA that the VI allows, see [`nic_regs::vi::rdma`].
    pub allows: u32,
    /// The rest of the answer to the peer's RDMA read.
    pub answer: Option<Answer>,
    /// Number of the next message (Unreliable).
    pub message: u8,
    /// The message that it receives.
    pub recv: Option<RecvMessage>,
    /// The ViError that could not be delivered yet.
    pub stop: Option<Stop>,
    /// Reason of the pending ViRefuse.
    pub refusal: StopReason,
}

impl Default for Vi {
    fn default() -> Self {
        Self {
            state: State::Free,
            reason: StopReason::None,
            owner: Owner { tag: 0, domain: 0 },
            level: Reliability::Unreliable,
            max_transfer: 0,
            queues: [WorkQueue::default(); 2],
            event_queues: [nic_regs::admin::NO_QUEUE; 2],
            unreported: [0; 2],
            remote: Remote::default(),
            send: SendPhase::Between,
            operations: [status::OP_SEND, status::OP_RECEIVE],
            allows: 0,
            answer: None,
            message: 0,
            recv: None,
            stop: None,
            refusal: StopReason::None,
        }
    }
}

impl Vi {
    /// Whether the send queue has something to do.
    pub(crate) fn send_work(&self) -> bool {
        self.state == State::Connected
            && self.queues[Queue::Send as usize].count != 0
            && !matches!(self.send, SendPhase::Waiting { .. } | SendPhase::Reading { .. })
    }

    /// Whether the VI stopped and its peer was not notified: only the reliable levels have a ViRefuse.
    pub(crate) fn stopped_silently(&self) -> bool {
        use StopReason::{Disconnected, PeerDown, Refused};
        self.state == State::Error
            && self.level == Reliability::Unreliable
            && !matches!(self.reason, Refused | PeerDown | Disconnected)
    }

    /// Takes `input`, which the caller knows to be possible.
    pub(crate) fn go(&mut self, input: Input) {
        let next = transition(self.state, input);
        debug_assert!(next.is_some(), "{input:?} in {:?}", self.state);
        self.state = next.unwrap_or(self.state);
    }

    /// Empties both queues and forgets messages in progress and what is not reported.
    pub(crate) fn clear_work(&mut self) {
        self.queues = [WorkQueue::default(); 2];
        self.unreported = [0; 2];
        self.send = SendPhase::Between;
        self.answer = None;
        self.recv = None;
        self.stop = None;
        self.reason = StopReason::None;
    }
}

/// A control frame that a VI must send, in the order in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// A Reception message was received.
    Ack = 0,
    /// The VI stopped on an error of its own.
    Refuse = 1,
    /// The VI disconnected.
    Fin = 2,
}

const PENDING_KINDS: usize = 3;

/// All VIs.
#[derive(Clone, Debug)]
pub struct Vis {
    entries: Vec<Vi>,
    /// Control frames that VIs must send.
    pending: BitVec,
    /// VIs that wait for a scheduling slot, in the order in which they became ready.
    ready: VecDeque<u16>,
    /// VIs that were passed over: their peer is not open or lacks pool space or credits.
    blocked: VecDeque<u16>,
    /// VIs that are in either.
    queued: BitVec,
    /// Something changed that may let a blocked VI go on.
    retry: bool,
}

impl Default for Vis {
    fn default() -> Self {
        Self {
            entries: vec![Vi::default(); VI_COUNT],
            pending: BitVec::repeat(false, VI_COUNT * PENDING_KINDS),
            ready: VecDeque::new(),
            blocked: VecDeque::new(),
            queued: BitVec::repeat(false, VI_COUNT),
            retry: false,
        }
    }
}

impl Index<u16> for Vis {
    type Output = Vi;

    fn index(&self, vi: u16) -> &Vi {
        &self.entries[usize::from(vi)]
    }
}

impl IndexMut<u16> for Vis {
    fn index_mut(&mut self, vi: u16) -> &mut Vi {
        &mut self.entries[usize::from(vi)]
    }
}

impl Vis {
    /// The VI's first pending control frame.
    #[must_use]
    pub fn first_pending(&self, vi: u16) -> Option<Pending> {
        let at = usize::from(vi) * PENDING_KINDS;
        let kinds = [Pending::Ack, Pending::Refuse, Pending::Fin];
        kinds.into_iter().find(|&kind| self.pending[at + kind as usize])
    }

    /// Has the VI send its peer a control frame.
    pub(crate) fn set_pending(&mut self, vi: u16, kind: Pending) {
        self.pending.set(usize::from(vi) * PENDING_KINDS + kind as usize, true);
        // A VI that was passed over has a frame of another kind now, or one to forget.
        self.retry();
        self.make_ready(vi);
    }

    pub(crate) fn clear_pending(&mut self, vi: u16, kind: Pending) {
        self.pending.set(usize::from(vi) * PENDING_KINDS + kind as usize, false);
    }

    /// Forgets the VI's pending control frames.
    pub fn forget_pending(&mut self, vi: u16) {
        let at = usize::from(vi) * PENDING_KINDS;
        self.pending[at..at + PENDING_KINDS].fill(false);
    }

    /// ViQuery's 'send in progress or control frame pending'.
    pub(crate) fn is_sending(&self, vi: u16) -> bool {
        let v = &self[vi];
        v.send != SendPhase::Between || v.answer.is_some() || self.first_pending(vi).is_some()
    }

    /// The result of ViQuery.
    pub(crate) fn query(&self, vi: u16) -> u32 {
        let v = &self[vi];
        v.state as u32
            | (v.reason as u32) << 4
            | u32::from(self.is_sending(vi)) << 12
            | u32::from(v.recv.is_some()) << 13
    }

    /// Whether a push to this VI may be posted inline: section 2.7.
    pub(crate) fn is_quiet(&self, vi: u16) -> bool {
        self.entries.get(usize::from(vi)).is_some_and(|v| {
            v.state == State::Connected
                && v.queues[Queue::Send as usize].count == 0
                && !self.is_sending(vi)
        })
    }

    /// Puts a VI with something to send at the end of the ring.
    pub(crate) fn make_ready(&mut self, vi: u16) {
        let (index, v) = (usize::from(vi), &self[vi]);
        let wants = self.first_pending(vi).is_some() || v.answer.is_some() || v.send_work();
        if wants && !self.queued[index] {
            self.queued.set(index, true);
            self.ready.push_back(vi);
        }
    }

    /// Gives VIs that were passed over another slot.
    pub(crate) fn retry(&mut self) {
        self.retry = true;
    }

    /// Whether a VI may have a slot now.
    pub(crate) fn is_any_ready(&self) -> bool {
        !self.ready.is_empty() || (self.retry && !self.blocked.is_empty())
    }

    /// Puts the VIs that were passed over in front of the ring, if something has changed since.
    pub(crate) fn unblock(&mut self) {
        if std::mem::take(&mut self.retry) {
            while let Some(vi) = self.blocked.pop_back() {
                self.ready.push_front(vi);
            }
        }
    }

    /// Takes the first VI off the ring.
    pub(crate) fn next_ready(&mut self) -> Option<u16> {
        let vi = self.ready.pop_front()?;
        self.queued.set(vi.into(), false);
        Some(vi)
    }

    /// Passes over a VI that was taken off the ring.
    pub(crate) fn block(&mut self, vi: u16) {
        self.queued.set(vi.into(), true);
        self.blocked.push_back(vi);
    }

    /// A frame of this kind to the VI's peer.
    pub(crate) fn header(&self, vi: u16, kind: Type, flags: u8) -> Header {
        let remote = self[vi].remote;
        Header {
            kind: small8(kind as usize),
            dst_node: remote.node,
            dst_vi: remote.vi,
            src_vi: vi,
            connection: remote.connection,
            flags,
            ..Header::default()
        }
    }

    /// Visible state of a VI.
    pub(crate) fn snapshot(&self, vi: u16) -> ViSnapshot {
        let v = &self[vi];
        ViSnapshot {
            state: v.state,
            reason: v.reason,
            posted: v.queues.map(|queue| queue.count),
            unreported: v.unreported,
            sending: self.is_sending(vi),
            receiving: v.recv.is_some(),
        }
    }
}
