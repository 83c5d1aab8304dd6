//! Looks at a connection at which nothing has come. Programs that poll make most of their calls so, and
//! what such a call takes is what a packet that comes meanwhile waits for.

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::MutexGuard;

use port::sync::lock;
use vipl::Queue;

use super::{Connection, Shared};

/// Short looks behind a whole one. With a whole one the NIC's own work is done, by which a peer that no
/// longer exists is found.
const SHORT: u32 = 16;

/// How many short looks may follow. None while anybody changes the connection.
#[derive(Debug, Default)]
pub(super) struct Quiet(AtomicU32);

impl Connection {
    /// Takes the connection's lock: after that, a whole look is necessary.
    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        let shared = lock(&self.state);
        self.quiet.0.store(0, Ordering::Release);
        shared
    }

    /// A whole look has found nothing to read and left nothing to do.
    pub(super) fn rest(&self, shared: &Shared) {
        if shared.broken.is_none() && !shared.reads() {
            self.quiet.0.store(SHORT, Ordering::Release);
        }
    }

    /// Whether a short look shows that a read would wait. It takes no packets.
    pub(crate) fn is_quiet(&self) -> bool {
        let left = self.quiet.0.load(Ordering::Acquire);
        let (taken, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
        left > 0
            && !self.vi.is_done(Queue::Recv)
            && self.quiet.0.compare_exchange(left, left - 1, taken, relaxed).is_ok()
    }
}
