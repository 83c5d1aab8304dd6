//! The receiving half of a connection: puts packets in order, and decides when to acknowledge.

use std::collections::VecDeque;

use super::Ack;

/// Packets after which an acknowledgement is sent at once.
pub(super) const ACK_EVERY: u32 = 8;
/// How long an acknowledgement waits for a packet that it may travel with.
const ACK_DELAY_NS: u64 = 200_000;

/// What is to be done with a packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) enum Arrival {
    /// It is the next one: the caller takes it, and then calls [`Receiver::advance`].
    Next,
    /// It was kept, for later.
    Held,
    /// It was here before, or comes too late.
    Duplicate,
    /// It is beyond the credits: the sender does not keep the rules, or forged it.
    Beyond,
}

/// The receiving half.
#[derive(Debug)]
pub(in crate::net) struct Receiver {
    is_reliable: bool,
    next: u32,
    received: u32,
    window: u16,
    /// Packets behind `next`, where they are here: the first is that of `next + 1`.
    held: VecDeque<Option<Vec<u8>>>,
    /// Packets in order that are not acknowledged.
    pending: u32,
    is_due: bool,
    ack_at: Option<u64>,
}

impl Receiver {
    /// A receiver that holds up to `window` packets until their predecessors arrive.
    pub(super) fn new(is_reliable: bool, window: u16) -> Self {
        Self {
            is_reliable,
            next: 0,
            received: 0,
            window,
            held: VecDeque::new(),
            pending: 0,
            is_due: false,
            ack_at: None,
        }
    }

    /// A packet arrived.
    pub(in crate::net) fn arrived(&mut self, sequence: u32, packet: &[u8]) -> Arrival {
        let ahead = sequence.wrapping_sub(self.next);
        if ahead.cast_signed() < 0 {
            self.is_due = true;
            return Arrival::Duplicate;
        }
        if !self.is_reliable {
            // What is missing is lost.
            self.next = sequence;
            return Arrival::Next;
        }
        if ahead == 0 {
            return Arrival::Next;
        }
        self.is_due = true;
        if ahead > self.window.into() {
            return Arrival::Beyond;
        }
        let place = ahead as usize - 1;
        if self.held.len() <= place {
            self.held.resize(place + 1, None);
        }
        let slot = &mut self.held[place];
        if slot.is_some() {
            return Arrival::Duplicate;
        }
        *slot = Some(packet.to_vec());
        Arrival::Held
    }

    /// The packet `next` was taken; `wants_ack` if its sender waits for the acknowledgement. Returns
    /// the one behind it, if it is here: then that is next.
    pub(in crate::net) fn advance(&mut self, now: u64, wants_ack: bool) -> Option<Vec<u8>> {
        self.next = self.next.wrapping_add(1);
        self.received = self.received.wrapping_add(1);
        self.pending += 1;
        if wants_ack || self.pending >= ACK_EVERY || !self.held.is_empty() {
            self.is_due = true;
        } else if self.ack_at.is_none() {
            self.ack_at = Some(now + ACK_DELAY_NS);
        }
        self.held.pop_front().flatten()
    }

    /// An acknowledgement is asked for.
    pub(in crate::net) const fn ask_for_ack(&mut self) {
        self.is_due = true;
    }

    /// Whether an acknowledgement is to be sent now.
    pub(in crate::net) fn is_ack_due(&self, now: u64) -> bool {
        self.is_due || self.ack_at.is_some_and(|at| at <= now)
    }

    /// When an acknowledgement is to be sent.
    pub(in crate::net) const fn ack_at(&self) -> Option<u64> {
        if self.is_due { Some(0) } else { self.ack_at }
    }

    /// What a packet that is sent now acknowledges.
    pub(in crate::net) fn ack(&self) -> Ack {
        Ack { next: self.next, received: self.received, window: self.window }
    }

    /// The packets behind `next` that are here, a bit each; the first is that of `next + 1`. Returns
    /// how many bytes are used.
    pub(in crate::net) fn held_bits(&self, bits: &mut [u8]) -> usize {
        let bytes = self.held.len().div_ceil(8).min(bits.len());
        bits[..bytes].fill(0);
        for (place, _) in self.held.iter().enumerate().filter(|(_, slot)| slot.is_some()) {
            if let Some(byte) = bits.get_mut(place / 8) {
                *byte |= 1 << (place % 8);
            }
        }
        bytes
    }

    /// An acknowledgement was sent; a `whole` one carries the bits as well.
    pub(in crate::net) fn acknowledged(&mut self, whole: bool) {
        if whole || self.held.is_empty() {
            self.is_due = false;
            (self.pending, self.ack_at) = (0, None);
        }
    }
}
