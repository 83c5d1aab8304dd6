//! Events, and the queues that they are taken from.

use core::fmt::Debug;

use super::region::ClanPeer;
use super::{ClanPort, Message};
use crate::attributes::Wait;

/// How long a wait polls before it sleeps.
const SPIN_NS: u64 = 50_000;

/// Why a DMA request, or an access by the processor, failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DmaError {
    /// The cookie was revoked, its rights do not allow the access, or the range is not in the region.
    #[error(
        "refused: the cookie was revoked or does not allow this, or the range is not in the region"
    )]
    Refused,
    /// The other node does not exist any more, or its memory does not.
    #[error("the other node, or the memory behind the region, exists no more")]
    Lost,
}

/// What an event queue reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClanEvent {
    /// Somebody accessed the word of a tripwire, once or several times.
    Tripwire {
        /// Of [`super::Tripwire::tag`].
        tag: u64,
    },
    /// A DMA request is done, and with it all earlier ones of its queue.
    Dma {
        /// Of [`super::DmaRequest::notify`].
        tag: u64,
        /// Whether its data arrived.
        result: Result<(), DmaError>,
    },
    /// A message.
    Message {
        /// Who sent it.
        from: ClanPeer,
        /// The message.
        message: Message,
    },
    /// A node that this one had to do with exists no more: its cookies are void, and so are those
    /// that it was given.
    NodeLost {
        /// Its host address.
        host: Vec<u8>,
    },
}

/// An asynchronous event queue (CLAN paper 2.2.1, its reference 12): to deliver and to take an event
/// costs the same however many sources there are, and calls nobody unless the queue is armed. What
/// does not fit stays pending at its source. One reader at a time.
pub trait EventQueue: Debug + Send + Sync {
    /// Its number, for [`super::ClanPort`].
    fn number(&self) -> u16;

    /// Whether there may be an event. Cheap.
    fn has_event(&self) -> bool;

    /// Takes the next event.
    fn poll(&self) -> Option<ClanEvent>;

    /// Has the next event, or one that is there and was not polled, wake sleepers
    /// ([`crate::WaitOps::sleep`]), once.
    fn arm(&self);
}

/// Waits for the next event of a queue of `port`, for at most `bound_ns`: polls for a short time, then
/// arms the queue and sleeps. None if the time is over; `u64::MAX` has no end.
pub fn wait_event(port: &dyn ClanPort, queue: &dyn EventQueue, bound_ns: u64) -> Option<ClanEvent> {
    let wait =
        Wait { bounded: bound_ns != u64::MAX, what: "an event", index: queue.number().into() };
    let start = port.now_ns();
    loop {
        // Before the look, so that what happens behind the look ends the sleep.
        let seen = port.wake_count();
        let elapsed = port.now_ns().saturating_sub(start);
        let sleeps = elapsed >= SPIN_NS.min(bound_ns);
        if sleeps {
            queue.arm();
        }
        if let Some(event) = queue.poll() {
            return Some(event);
        }
        match bound_ns.saturating_sub(elapsed) {
            0 => return None,
            left if sleeps => port.sleep(seen, left, wait),
            _ => port.relax(wait),
        }
    }
}
