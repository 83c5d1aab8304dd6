//! Threads that sleep until the NIC has something for them.
//!
//! All event queues raise one vector, so one thread, the leader, waits for it; the others sleep on a
//! signal, which the leader raises when it wakes. Whoever wakes looks for itself, and the next one
//! that finds nothing leads. See `docs/decisions/0009-waiting.md`.

use core::sync::atomic::{AtomicBool, Ordering};

use super::{CONTROL_VECTOR, Nic};
use crate::bus::Wait;
use crate::sync::{Signal, try_lock};

/// Who sleeps.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    signal: Signal,
    led: AtomicBool,
}

/// The leader's part, given up also by a panic.
struct Lead<'a>(&'a Sleepers);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        // Before: who leads next knows of the interrupt that this one has taken. After: who saw that
        // there was a leader and sleeps on the signal.
        self.0.signal.raise();
        self.0.led.store(false, Ordering::Release);
        self.0.signal.raise();
    }
}

impl Nic {
    /// How often sleepers were woken; for [`Nic::sleep`].
    #[must_use]
    pub fn wake_count(&self) -> u64 {
        self.sleepers.signal.count()
    }

    /// Wakes all threads that sleep.
    pub fn wake(&self) {
        self.sleepers.signal.raise();
        self.bus.raise_interrupt(CONTROL_VECTOR.into());
    }

    /// Sleeps until a queue that was armed has a record, until an error or a message came, until the
    /// driver itself has something to do, or until `bound_ns` are over; not at all if somebody was
    /// woken since `seen`, which is read before the queue is armed and looked at. It may wake
    /// earlier.
    pub fn sleep(&self, seen: u64, bound_ns: u64, wait: Wait) {
        let now = self.bus.now_ns();
        let bound_ns = bound_ns.min(self.deadline.load(Ordering::Acquire).saturating_sub(now));
        let Some(control) = try_lock(&self.control).filter(|_| bound_ns > 0) else {
            // Another thread handles events just now, and perhaps one of this thread's.
            return self.bus.relax(wait);
        };
        for ring in [&self.errors, &self.messages] {
            ring.publish(true);
            if ring.has_event() {
                return;
            }
        }
        drop(control);
        if self.wake_count() != seen {
            return;
        }
        if self.sleepers.led.swap(true, Ordering::AcqRel) {
            self.bus.wait_signal(&self.sleepers.signal, seen, bound_ns, wait);
        } else {
            let _lead = Lead(&self.sleepers);
            // The leader before may have taken the interrupt that this thread waits for.
            if self.wake_count() != seen {
                return;
            }
            self.bus.wait_interrupt(CONTROL_VECTOR.into(), bound_ns, wait);
        }
    }
}
