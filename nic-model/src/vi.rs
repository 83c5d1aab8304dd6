//! VIs: their state, their two work queues, what they owe, and how they stop.

use bitvec::vec::BitVec;
use nic_regs::counter::Counter;
use nic_regs::desc::status;
use nic_regs::doorbell::{Queue, Token};
use nic_regs::limits::VI_COUNT;
use nic_regs::vi::{Reliability, State, StopReason};

use crate::device::HostBus;
use crate::nic::Model;
use crate::recv::RecvMessage;
use crate::tpt::Owner;
use crate::trace::Trace;

/// What can happen to a VI's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// ViCreate.
    Create,
    /// ViConnect.
    Connect,
    /// An error, a refusal, a FIN, a dead peer.
    Stop,
    /// ViDisconnect.
    Disconnect,
    /// ViDestroy.
    Destroy,
}

/// The state after `input`, or `None` if a VI in `state` does not take it.
pub(crate) const fn transition(state: State, input: Input) -> Option<State> {
    match (state, input) {
        (State::Free, Input::Create) => Some(State::Idle),
        (State::Idle, Input::Connect) => Some(State::Connected),
        (State::Idle, Input::Destroy) => Some(State::Free),
        (State::Connected, Input::Stop) => Some(State::Error),
        (State::Idle | State::Connected | State::Error, Input::Disconnect) => Some(State::Idle),
        _ => None,
    }
}

/// Where the descriptor at the head of a work queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// There, if the checks of the fetch hold.
    Token(Token),
    /// The Next that led there failed its checks.
    BadNext,
    /// The Next that led there could not be read.
    Unreadable,
}

/// A work queue as the device keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkQueue {
    pub(crate) head: Head,
    pub(crate) last: Option<Token>,
    /// Descriptors posted and not popped.
    pub(crate) count: u16,
    /// Next and NextHandle of the head, from a read that was issued when `count` covered the
    /// successor.
    pub(crate) next: Option<(u64, u32)>,
}

impl Default for WorkQueue {
    fn default() -> Self {
        Self { head: Head::BadNext, last: None, count: 0, next: None }
    }
}

impl WorkQueue {
    /// Counts a post.
    pub(crate) fn post(&mut self, token: Token) {
        if self.count == 0 {
            self.head = Head::Token(token);
            self.next = None;
        }
        self.last = Some(token);
        self.count = self.count.wrapping_add(1);
    }
}

/// The message that a VI sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SendPhase {
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

/// The answer to the peer's RDMA read that a VI owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// First byte that is still to be sent.
    pub(crate) address: u64,
    pub(crate) handle: u32,
    pub(crate) left: u32,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) node: u8,
    pub(crate) vi: u16,
    pub(crate) connection: u16,
    /// RDMA that the peer's VI allows, see [`nic_regs::vi::rdma`].
    pub(crate) allows: u32,
}

/// A ViError event that is still to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) reason: StopReason,
    pub(crate) peer_reason: u8,
    pub(crate) queue: Queue,
    pub(crate) status: u32,
}

/// A VI.
#[derive(Clone, Debug)]
pub(crate) struct Vi {
    pub(crate) state: State,
    pub(crate) reason: StopReason,
    pub(crate) owner: Owner,
    pub(crate) level: Reliability,
    pub(crate) max_transfer: u32,
    pub(crate) queues: [WorkQueue; 2],
    pub(crate) event_queues: [u16; 2],
    /// Completions that no event has announced.
    pub(crate) unannounced: [u32; 2],
    pub(crate) remote: Remote,
    pub(crate) send: SendPhase,
    /// Status operations of the descriptors at the heads of the queues, as last known.
    pub(crate) operations: [u32; 2],
    /// RDMA that the VI allows, see [`nic_regs::vi::rdma`].
    pub(crate) allows: u32,
    pub(crate) answer: Option<Answer>,
    /// Number of the next message (Unreliable).
    pub(crate) message: u8,
    pub(crate) recv: Option<RecvMessage>,
    /// The ViError that could not be delivered yet.
    pub(crate) stop: Option<Stop>,
    /// Reason of the owed ViRefuse.
    pub(crate) refusal: StopReason,
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
            unannounced: [0; 2],
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

    /// Whether the VI stopped and its peer has not heard of it: only the reliable levels have a ViRefuse.
    pub(crate) fn stopped_untold(&self) -> bool {
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

    /// Empties both queues and forgets messages in progress and what is not announced.
    pub(crate) fn clear_work(&mut self) {
        self.queues = [WorkQueue::default(); 2];
        self.unannounced = [0; 2];
        self.send = SendPhase::Between;
        self.answer = None;
        self.recv = None;
        self.stop = None;
        self.reason = StopReason::None;
    }
}

/// A control frame that a VI owes its peer, in the order in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owed {
    /// A Reception message was received.
    Ack = 0,
    /// The VI stopped on an error of its own.
    Refuse = 1,
    /// The VI disconnected.
    Fin = 2,
}

const OWED_KINDS: usize = 3;

/// All VIs.
#[derive(Clone, Debug)]
pub(crate) struct Vis {
    pub(crate) entries: Vec<Vi>,
    owed: BitVec,
}

impl Default for Vis {
    fn default() -> Self {
        Self {
            entries: vec![Vi::default(); VI_COUNT],
            owed: BitVec::repeat(false, VI_COUNT * OWED_KINDS),
        }
    }
}

impl Vis {
    /// The VI's first owed frame.
    pub(crate) fn first_owed(&self, vi: u16) -> Option<Owed> {
        let at = usize::from(vi) * OWED_KINDS;
        [Owed::Ack, Owed::Refuse, Owed::Fin].into_iter().find(|&o| self.owed[at + o as usize])
    }

    pub(crate) fn set_owed(&mut self, vi: u16, owed: Owed, on: bool) {
        self.owed.set(usize::from(vi) * OWED_KINDS + owed as usize, on);
    }

    pub(crate) fn forget_owed(&mut self, vi: u16) {
        for owed in [Owed::Ack, Owed::Refuse, Owed::Fin] {
            self.set_owed(vi, owed, false);
        }
    }
}

impl Model {
    pub(crate) fn vi(&self, vi: u16) -> &Vi {
        &self.vis.entries[usize::from(vi)]
    }

    pub(crate) fn vi_mut(&mut self, vi: u16) -> &mut Vi {
        &mut self.vis.entries[usize::from(vi)]
    }

    /// ViQuery's 'send in progress or owed'.
    pub(crate) fn is_sending(&self, vi: u16) -> bool {
        let v = self.vi(vi);
        v.send != SendPhase::Between || v.answer.is_some() || self.vis.first_owed(vi).is_some()
    }

    /// Makes the VI owe its peer a control frame.
    pub(crate) fn owe(&mut self, vi: u16, owed: Owed) {
        self.vis.set_owed(vi, owed, true);
        // A VI that was passed over has a frame of another kind now, or one to forget.
        self.send.retry();
        self.make_ready(vi);
    }

    /// Stops a Connected VI for a reason of its own, which its peer is told on the reliable levels.
    pub(crate) fn stop_and_refuse(
        &mut self,
        vi: u16,
        queue: Queue,
        reason: StopReason,
        host: &mut dyn HostBus,
    ) {
        let bits = match reason {
            StopReason::Descriptor => status::PROTECTION_ERROR,
            _ => status::DESC_FLUSHED_ERROR,
        };
        self.refuse(vi, reason);
        self.stop(vi, Stop { reason, peer_reason: 0, queue, status: bits }, host);
    }

    /// Owes the peer a ViRefuse, if the level has them.
    pub(crate) fn refuse(&mut self, vi: u16, reason: StopReason) {
        if self.vi(vi).level != Reliability::Unreliable {
            self.count(Counter::RefusalsSent);
            self.vi_mut(vi).refusal = reason;
            self.owe(vi, Owed::Refuse);
        }
    }

    /// Stops a VI: section 6.1. Nothing happens unless it is Connected.
    pub(crate) fn stop(&mut self, vi: u16, stop: Stop, host: &mut dyn HostBus) {
        let v = self.vi_mut(vi);
        if v.state != State::Connected {
            return;
        }
        v.go(Input::Stop);
        v.reason = stop.reason;
        let mut stop = stop;
        if stop.queue == Queue::Send && matches!(v.send, SendPhase::Reading { placed: 1.., .. }) {
            stop.status |= status::PARTIAL_ERROR;
        }
        v.send = SendPhase::Between;
        v.answer = None;
        v.recv = None;
        v.stop = Some(stop);
        self.forget_caches(vi);
        self.count(Counter::ViStops);
        self.trace(Trace::Stop { vi, reason: stop.reason });
        self.deliver_stop(vi, true, host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_contract_transitions_exist() {
        use Input::{Connect, Create, Destroy, Disconnect, Stop};
        use State::{Connected, Error, Free, Idle};
        let allowed = [
            (Free, Create, Idle),
            (Idle, Connect, Connected),
            (Idle, Destroy, Free),
            (Idle, Disconnect, Idle),
            (Connected, Disconnect, Idle),
            (Error, Disconnect, Idle),
            (Connected, Stop, Error),
        ];
        for state in [Free, Idle, Connected, Error] {
            for input in [Create, Connect, Stop, Disconnect, Destroy] {
                let expected = allowed.iter().find(|a| (a.0, a.1) == (state, input)).map(|a| a.2);
                assert_eq!(transition(state, input), expected, "{state:?} {input:?}");
            }
        }
    }
}
