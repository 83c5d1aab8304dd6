//! A peer: the state of its channel and all numbers that belong to it.

use std::collections::VecDeque;

use nic_regs::admin::PeerState;
use nic_regs::limits::{QUIET_CYCLES, RETRY_CYCLES_MAX};

use crate::bits::{diff8, low16, small8};
use crate::frame::Frame;

/// After how many quiet cycles an Ack is sent: without keepalive, too, since an Ack that returned
/// credits may be lost.
pub(super) fn quiet_after(keepalive: u64) -> u64 {
    if keepalive == 0 { QUIET_CYCLES.into() } else { keepalive }
}

/// Cycles of a time-out behind so many others.
pub(super) fn retry_after(timeout: u32, retries: u32) -> u64 {
    (u64::from(timeout) << retries).min(RETRY_CYCLES_MAX)
}

/// What can happen to a channel's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// PeerOpen.
    Open,
    /// The peer's SYN, or its SYN-ACK with our tag.
    Meet,
    /// PeerClose, or the peer is dead, restarted, reset, or of another version.
    Down,
}

/// The state after `input`, or `None` if a channel in `state` does not take it.
pub(super) const fn transition(state: PeerState, input: Input) -> Option<PeerState> {
    match (state, input) {
        (PeerState::Closed, Input::Open) => Some(PeerState::Opening),
        (PeerState::Opening, Input::Meet) => Some(PeerState::Open),
        (PeerState::Opening | PeerState::Open, Input::Down) => Some(PeerState::Closed),
        _ => None,
    }
}

/// A frame in the pool, and when it came there relative to others.
#[derive(Clone, Debug)]
pub(super) struct Pooled {
    pub(super) frame: Frame,
    pub(super) stamp: u64,
}

/// Which of a peer's frames is transmitted next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextFrame {
    /// The one at the pool's cursor.
    Sequenced,
    /// The oldest of the others.
    Unsequenced,
}

/// Frames that the channel itself must send to the peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pending {
    pub(super) syn: bool,
    pub(super) syn_ack: bool,
    /// RST, with this tag.
    pub(super) reset: Option<u16>,
    /// NAK (out of sequence): an Ack with NAK.
    pub(super) nak: bool,
    /// Ack at once, unless another frame carries it.
    pub(super) ack: bool,
    pub(super) messages_refused: u8,
}

impl Pending {
    const fn any(&self) -> bool {
        self.syn
            || self.syn_ack
            || self.reset.is_some()
            || self.nak
            || self.ack
            || self.messages_refused != 0
    }
}

/// A peer.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) state: PeerState,
    /// Counts the channel's lives, so that what belongs to an earlier one is known.
    pub(crate) incarnation: u64,
    pub(super) our_epoch: u32,
    pub(super) peer_epoch: u32,
    pub(super) pending: Pending,

    // Sending.
    /// Sequenced frames that are not acknowledged, in order; the first has the number
    /// `first_unacked`.
    pub(super) pool: VecDeque<Pooled>,
    pub(super) first_unacked: u16,
    /// How many frames of the pool need not be transmitted now.
    pub(super) cursor: usize,
    /// How many frames of the pool were transmitted at least once.
    pub(super) reached: usize,
    /// Unsequenced frames that are not transmitted yet.
    pub(super) unsequenced: VecDeque<Pooled>,
    pub(super) chunks: usize,
    /// Credits of all sequenced frames that entered the channel.
    pub(super) credits_used: u8,
    /// Credits of those that were transmitted.
    pub(super) credits_sent: u8,
    pub(super) credit_limit: u8,
    /// The number that the last NAK that had an effect asked for.
    pub(super) nak_taken: Option<u16>,
    /// How often the time-out was doubled.
    pub(super) retries: u32,
    /// Silent time-outs in a row.
    pub(super) silent: u32,
    /// Something good was received since the last time-out, progress, or first transmission.
    pub(super) answered: bool,
    /// When a SYN or unacknowledged frames are sent again.
    pub(super) retry_deadline: Option<u64>,

    // Receiving.
    pub(super) expected: u16,
    pub(super) granted: u8,
    pub(super) released: u8,
    /// The expected number for which a NAK was sent.
    pub(super) nak_sent: Option<u16>,
    /// Its frame did not fit into the staging memory: a NAK is due once there is space.
    pub(super) starved: bool,
    /// When an acknowledgement must be sent.
    pub(super) ack_deadline: Option<u64>,
    pub(super) last_sent: u64,
    pub(super) last_received: u64,
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            state: PeerState::Closed,
            incarnation: 0,
            our_epoch: 0,
            peer_epoch: 0,
            pending: Pending::default(),
            pool: VecDeque::new(),
            first_unacked: 0,
            cursor: 0,
            reached: 0,
            unsequenced: VecDeque::new(),
            chunks: 0,
            credits_used: 0,
            credits_sent: 0,
            credit_limit: 0,
            nak_taken: None,
            retries: 0,
            silent: 0,
            answered: false,
            retry_deadline: None,
            expected: 0,
            granted: 0,
            released: 0,
            nak_sent: None,
            starved: false,
            ack_deadline: None,
            last_sent: 0,
            last_received: 0,
        }
    }
}

impl Peer {
    /// Forgets everything but the state and a pending RST; the next channel is another one. Gives
    /// the chunks freed.
    pub(super) fn reset(&mut self) -> usize {
        let freed = self.chunks;
        *self = Self {
            state: self.state,
            incarnation: self.incarnation + 1,
            pending: Pending { reset: self.pending.reset, ..Pending::default() },
            ..Self::default()
        };
        freed
    }

    /// Takes `input`, which the caller knows to be possible.
    pub(super) fn go(&mut self, input: Input) {
        let next = transition(self.state, input);
        debug_assert!(next.is_some(), "{input:?} in {:?}", self.state);
        self.state = next.unwrap_or(self.state);
    }

    /// The tag of frames of this channel.
    pub(super) const fn tag(&self) -> u16 {
        low16(self.our_epoch ^ self.peer_epoch)
    }

    /// The credit limit that the peer gets.
    pub(super) const fn our_limit(&self) -> u8 {
        self.released.wrapping_add(self.granted)
    }

    pub(super) fn wants_link(&self) -> bool {
        self.pending.any() || self.next_frame().is_some()
    }

    /// The frame to transmit next: 7.4.
    pub(super) fn next_frame(&self) -> Option<NextFrame> {
        match (self.pool.get(self.cursor), self.unsequenced.front()) {
            (Some(a), Some(b)) if b.stamp < a.stamp => Some(NextFrame::Unsequenced),
            (Some(a), _) => self.covered(&a.frame).then_some(NextFrame::Sequenced),
            (None, Some(_)) => Some(NextFrame::Unsequenced),
            (None, None) => None,
        }
    }

    /// Whether the frame at the cursor was transmitted before, or has its credits.
    fn covered(&self, frame: &Frame) -> bool {
        let sent = self.credits_sent.wrapping_add(small8(frame.header.credits()));
        self.cursor < self.reached || diff8(self.credit_limit, sent) >= 0
    }

    /// Takes an acknowledgement. Gives the chunks freed, or `None` if it is not new.
    pub(super) fn acknowledge(&mut self, number: u16) -> Option<usize> {
        let count = usize::from(number.wrapping_sub(self.first_unacked));
        if count == 0 || count > self.reached {
            return None;
        }
        let freed = self.pool.drain(..count).map(|p| p.frame.chunks()).sum();
        self.first_unacked = number;
        self.reached -= count;
        self.cursor = self.cursor.saturating_sub(count);
        self.chunks -= freed;
        (self.retries, self.silent, self.answered) = (0, 0, false);
        Some(freed)
    }

    /// Sends everything that was sent and is not acknowledged again.
    pub(super) fn retransmit(&mut self) {
        self.cursor = 0;
    }

    /// What the link does to this channel's timers at the earliest.
    pub(super) fn next_deadline(&self, keepalive: u64, limit: u64) -> u64 {
        let mut next = self.retry_deadline.unwrap_or(u64::MAX);
        if self.state == PeerState::Open {
            next = next.min(self.ack_deadline.unwrap_or(u64::MAX));
            next = next.min(self.last_sent + quiet_after(keepalive));
            if keepalive != 0 {
                next = next.min(self.last_received + keepalive * limit);
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_channel_wakes_for_its_acknowledgement() {
        let mut peer = Peer { ack_deadline: Some(70), last_sent: 5, ..Peer::default() };
        assert_eq!(peer.next_deadline(0, 8), u64::MAX);
        peer.state = PeerState::Open;
        assert_eq!(peer.next_deadline(0, 8), 70);
        peer.ack_deadline = None;
        assert_eq!(peer.next_deadline(0, 8), 5 + quiet_after(0));
        // It is dead before it is quiet.
        (peer.last_sent, peer.last_received, peer.retry_deadline) = (800, 9, Some(1_000));
        assert_eq!(peer.next_deadline(10, 8), 89);
    }

    #[test]
    fn only_the_contract_transitions_exist() {
        use Input::{Down, Meet};
        use PeerState::{Closed, Open, Opening};
        let allowed = [
            (Closed, Input::Open, Opening),
            (Opening, Meet, Open),
            (Opening, Down, Closed),
            (Open, Down, Closed),
        ];
        for state in [Closed, Opening, Open] {
            for input in [Input::Open, Meet, Down] {
                let expected = allowed.iter().find(|a| (a.0, a.1) == (state, input)).map(|a| a.2);
                assert_eq!(transition(state, input), expected, "{state:?} {input:?}");
            }
        }
    }
}
