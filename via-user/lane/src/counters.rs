//! What a lane has carried, and what it has dropped and why.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// From the kernel: no IP packet, or not whole.
    SentMalformed,
    /// From the kernel: its source is not an address of this node, so every peer would drop it.
    SentForeign,
    /// No connected peer has its destination.
    NoPeer,
    /// All send descriptors of the peer are in use.
    QueueFull,
    /// The connection with the peer has just ended.
    Disconnected,
    /// From a peer: no IP packet, or not whole; or no hello.
    Malformed,
    /// From a peer: its source is not an address of this peer.
    Foreign,
    /// From a peer whose addresses are not known: its hello has not arrived.
    Early,
    /// The NIC could not place it: the message is longer than the MTU.
    Misplaced,
    /// It was lost on its way: no receive was posted for it, or the network has lost it.
    Lost,
    /// The kernel did not take it.
    Refused,
}

impl Drop {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::SentMalformed,
        Self::SentForeign,
        Self::NoPeer,
        Self::QueueFull,
        Self::Disconnected,
        Self::Malformed,
        Self::Foreign,
        Self::Early,
        Self::Misplaced,
        Self::Lost,
        Self::Refused,
    ];

    /// The reason, for a person.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SentMalformed => "malformed, from the kernel",
            Self::SentForeign => "source is not this node's",
            Self::NoPeer => "no peer has the destination",
            Self::QueueFull => "send queue full",
            Self::Disconnected => "peer disconnected",
            Self::Malformed => "malformed, from a peer",
            Self::Foreign => "source is not the peer's",
            Self::Early => "before the peer's hello",
            Self::Misplaced => "longer than the MTU",
            Self::Lost => "lost on the way from a peer",
            Self::Refused => "refused by the kernel",
        }
    }
}

/// Counters of a lane; threads add to them at any time. A packet to several peers counts once for
/// each.
#[derive(Debug, Default)]
pub struct Counters {
    sent: [AtomicU64; 2],
    received: [AtomicU64; 2],
    dropped: [AtomicU64; Drop::ALL.len()],
}

fn add(counts: &[AtomicU64; 2], bytes: usize) {
    counts[0].fetch_add(1, Ordering::Relaxed);
    counts[1].fetch_add(bytes as u64, Ordering::Relaxed);
}

fn read(counts: &[AtomicU64; 2]) -> (u64, u64) {
    let [packets, bytes] = counts.each_ref().map(|count| count.load(Ordering::Relaxed));
    (packets, bytes)
}

impl Counters {
    pub(crate) fn sent(&self, bytes: usize) {
        add(&self.sent, bytes);
    }

    pub(crate) fn received(&self, bytes: usize) {
        add(&self.received, bytes);
    }

    pub(crate) fn drop(&self, why: Drop) {
        self.drop_many(why, 1);
    }

    pub(crate) fn drop_many(&self, why: Drop, count: u32) {
        if count > 0 {
            self.dropped[why as usize].fetch_add(count.into(), Ordering::Relaxed);
        }
    }

    /// Packets and bytes that were given to VIA.
    #[must_use]
    pub fn all_sent(&self) -> (u64, u64) {
        read(&self.sent)
    }

    /// Packets and bytes that were given to the kernel.
    #[must_use]
    pub fn all_received(&self) -> (u64, u64) {
        read(&self.received)
    }

    /// Packets that were dropped for a reason.
    #[must_use]
    pub fn dropped(&self, why: Drop) -> u64 {
        self.dropped[why as usize].load(Ordering::Relaxed)
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sent, received) = (self.all_sent(), self.all_received());
        write!(f, "sent {} packets, {} bytes; ", sent.0, sent.1)?;
        write!(f, "received {} packets, {} bytes; dropped ", received.0, received.1)?;
        let dropped = Drop::ALL.map(|why| (self.dropped(why), why.name()));
        let all: u64 = dropped.iter().map(|(count, _)| count).sum();
        write!(f, "{all}")?;
        let reasons = dropped.iter().filter(|(count, _)| *count > 0);
        let reasons: Vec<String> = reasons.map(|(count, why)| format!("{count} {why}")).collect();
        if reasons.is_empty() { Ok(()) } else { write!(f, " ({})", reasons.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_by_itself() {
        let counters = Counters::default();
        assert_eq!(
            counters.to_string(),
            "sent 0 packets, 0 bytes; received 0 packets, 0 bytes; dropped 0"
        );
        counters.sent(100);
        counters.sent(40);
        counters.received(7);
        for (number, why) in Drop::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, number);
            (0..=number).for_each(|_| counters.drop(why));
        }
        for (count, why) in (1..).zip(Drop::ALL) {
            assert_eq!(counters.dropped(why), count);
        }
        let text = counters.to_string();
        let start =
            "sent 2 packets, 140 bytes; received 1 packets, 7 bytes; dropped 66 (1 malformed, ";
        assert!(text.starts_with(start), "{text}");
        assert!(text.ends_with("11 refused by the kernel)"), "{text}");
    }
}
