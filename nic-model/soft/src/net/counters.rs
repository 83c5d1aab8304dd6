//! What a node has counted, by cause.

use core::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident $text:literal,)*) => {
        /// Counters of a node.
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $($(#[$doc])* pub(super) $name: Counter,)*
        }

        impl Counters {
            /// All, with their names.
            pub(super) fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$(($text, self.$name.get()),)*]
            }
        }
    };
}

counters! {
    /// Packets that were sent, and that arrived.
    sent "packets sent",
    received "packets received",
    /// Data packets that were sent again.
    retransmitted "retransmitted",
    /// Data packets that were here before.
    duplicates "duplicates",
    /// Data packets that arrived before one that they follow.
    reordered "held out of order",
    /// Data packets beyond the credits.
    beyond "beyond credits",
    /// What was of another version.
    bad_version "bad version",
    /// What was no packet.
    malformed "malformed",
    /// Messages and challenges without the code that the key gives.
    bad_code "bad authentication",
    /// Messages that were taken before.
    replayed "replayed",
    /// Packets of connections that the node does not have.
    unknown "unknown connection",
    /// Packets of a connection from another address than its peer's.
    foreign "foreign source",
    /// Unreliable messages without a receive.
    unreliable_empty "unreliable without receive",
    /// Unreliable messages of which packets were lost.
    unreliable_gap "unreliable gaps",
    /// RDMA that was not allowed.
    rdma_refused "RDMA refused",
    /// Connections whose peer did not answer for too long.
    timed_out "timed out",
    /// Connections that the peer no longer has.
    reset "reset by peer",
    /// Packets that the system did not take at once.
    full "send buffer full",
    /// Packets that were longer than the path carries.
    too_long "longer than path MTU",
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts one.
    pub(super) fn count(&self) {
        self.add(1);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
