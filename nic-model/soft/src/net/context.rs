//! What every part of a node needs: the socket, time, counters, who sleeps.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use port::fork;

use super::counters::Counters;
use super::error::Result;
use super::flow::WINDOW_MAX;
use super::socket::Socket;
use super::wake::Wakes;

/// Bytes that the system counts for a packet beyond its own.
const PACKET_OVERHEAD: usize = 1_024;
/// Packets in flight of a connection at least.
const WINDOW_MIN: u16 = 4;

/// The network, as VIs use it.
#[derive(Debug)]
pub(super) struct Net {
    pub(super) socket: Socket,
    pub(super) counters: Counters,
    pub(super) wakes: Wakes,
    /// How long nothing may be acknowledged before a connection is broken.
    pub(super) time_out_ns: u64,
    start: Instant,
    /// When some connection has something to do, at the latest.
    deadline: AtomicU64,
    generation: u32,
    /// Dropped behind the socket.
    pub(super) presence: Arc<()>,
}

impl Net {
    pub(super) fn new(socket: Socket, time_out_ns: u64) -> Result<Self> {
        Ok(Self {
            socket,
            counters: Counters::default(),
            wakes: Wakes::new()?,
            time_out_ns,
            start: Instant::now(),
            deadline: AtomicU64::new(u64::MAX),
            generation: fork::generation(),
            presence: Arc::default(),
        })
    }

    /// Time, in nanoseconds.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether this is the process that opened the node, and not a child after fork.
    #[inline]
    pub(super) fn is_present(&self) -> bool {
        self.generation == fork::generation()
    }

    /// When some connection has something to do, at the latest.
    #[inline]
    pub(super) fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Acquire)
    }

    /// A connection has something to do then.
    #[inline]
    pub(super) fn set_deadline(&self, at: u64) {
        // Sequentially consistent, like the deadline of a VI: whoever clears this one reads that one
        // afterwards, and whoever sets that one reads this one afterwards.
        if at < self.deadline.load(Ordering::SeqCst) {
            self.deadline.fetch_min(at, Ordering::SeqCst);
        }
    }

    /// Whoever runs all connections finds out when the next has something to do.
    pub(super) fn clear_deadline(&self) {
        self.deadline.swap(u64::MAX, Ordering::SeqCst);
    }

    /// Packets with so many data bytes that a connection may have in flight: the system keeps half as
    /// many until they are looked at.
    pub(super) fn window(&self, segment: usize) -> u16 {
        let packets = self.socket.kept() / 2 / (segment + PACKET_OVERHEAD);
        u16::try_from(packets).unwrap_or(u16::MAX).clamp(WINDOW_MIN, WINDOW_MAX)
    }
}
