//! A connection's packets: numbered, acknowledged, sent again when they are lost, kept below what the
//! path carries. No I/O and no clock: packets and times are arguments, times in nanoseconds.
//!
//! | module | what |
//! |---|---|
//! | `sender` | what is in flight; selective acknowledgement; time-outs |
//! | `receiver` | order; when to acknowledge |
//! | `congestion`, `rtt` | the congestion window; the round-trip time |
//!
//! A reliable connection sends a packet again, under its own number, until it is acknowledged. An
//! unreliable one sends nothing again but its control packets, as new ones; it counts losses all the
//! same, because they say how much the path carries.

mod congestion;
mod receiver;
mod rtt;
mod sender;
#[cfg(test)]
mod tests;

pub(super) use receiver::{Arrival, Receiver};
pub(super) use sender::Sender;

/// Bytes of the bits that an acknowledgement carries at most.
pub(super) const BITS_MAX: usize = 32;
/// Most packets that a receiver holds, and so most in flight: as many as there are bits.
pub(super) const WINDOW_MAX: u16 = 256;

/// What every packet says of the other direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ack {
    /// The first packet that is missing.
    pub(super) next: u32,
    /// Packets that were received.
    pub(super) received: u32,
    /// Packets behind the missing one that would be held.
    pub(super) window: u16,
}

/// Limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Packets in flight.
    pub(super) window: u16,
    /// How long nothing may be acknowledged before the connection is broken.
    pub(super) time_out_ns: u64,
}

/// Both halves of a connection's end.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
}

impl Flow {
    pub(super) fn new(now: u64, is_reliable: bool, limits: Limits) -> Self {
        Self {
            sender: Sender::new(now, is_reliable, limits),
            receiver: Receiver::new(is_reliable, limits.window),
        }
    }

    /// When either half has something to do.
    pub(super) fn deadline(&self) -> Option<u64> {
        [self.sender.deadline(), self.receiver.ack_at()].into_iter().flatten().min()
    }
}
