//! What programs ask before they call: `poll` and its like.

use core::sync::atomic::Ordering;

use super::{Connection, Patience, Shared};
use crate::error::{Error, Result};
use crate::state::State;

/// What calls would find now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Bytes that can be read.
    pub bytes: usize,
    /// A read would not wait: there are bytes, or none will come.
    pub reads: bool,
    /// A write would not wait.
    pub writes: bool,
    /// The other side has said what it is set to, so that both sides know of the connection.
    pub is_up: bool,
    /// Packets that have come so far: another number means that something may have changed.
    pub arrived: u64,
}

/// Credits of what a stream sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credits {
    /// Packets of data that may be sent before the other side acknowledges some.
    pub left: u16,
    /// How many that is at most: the window.
    pub window: u16,
}

impl Connection {
    /// See [`Credits`]. As of the last packet; it takes no lock.
    pub(crate) fn credits(&self) -> Credits {
        let bytes = self.credits.load(Ordering::Relaxed).to_le_bytes();
        let [left, window] = [[bytes[0], bytes[1]], [bytes[2], bytes[3]]].map(u16::from_le_bytes);
        Credits { left, window }
    }

    /// Packets have gone or come.
    pub(super) fn note_credits(&self, shared: &Shared) {
        let [left, window] = shared.engine.credits().map(u32::from);
        self.credits.store(left | window << 16, Ordering::Relaxed);
    }

    /// See [`Ready`].
    pub(crate) fn ready(&self) -> Ready {
        let mut shared = self.lock();
        self.handle(&mut shared, usize::MAX);
        self.absorb(&mut shared);
        self.transmit(&mut shared);
        self.rest(&shared);
        let is_broken = shared.broken.is_some();
        let mut has_send = shared.slots.has_send(true);
        if !has_send {
            let _ = shared.slots.reap(&self.vi);
            has_send = shared.slots.has_send(true);
        }
        Ready {
            bytes: shared.engine.available() + shared.absorbed.len(),
            reads: is_broken || shared.reads(),
            writes: is_broken || shared.engine.has_room() && has_send,
            is_up: shared.woken,
            arrived: shared.arrived,
        }
    }

    /// Whether all packets of this side have left during the calls that sent them.
    pub(crate) fn sends_at_once(&self) -> bool {
        !self.lock().slots.has_posted()
    }

    /// Whether no packet of this side is under way.
    pub(crate) fn has_sent_all(&self) -> bool {
        let mut shared = self.lock();
        self.handle(&mut shared, usize::MAX);
        self.transmit(&mut shared);
        let _ = shared.slots.reap(&self.vi);
        shared.slots.busy() == 0
    }

    /// Copies bytes that are read next, and leaves them; none at the end.
    pub(crate) fn peek(&self, out: &mut [u8], patience: Patience) -> Result<usize> {
        self.wait_until(patience, usize::MAX, |shared| {
            let copied = shared.copy_next(out);
            shared.reads().then_some(copied)
        })
    }

    /// What has broken it, but for its end.
    pub(crate) fn error(&self) -> Option<Error> {
        let shared = self.lock();
        let is_over = shared.engine.state() == State::Closed;
        shared.broken.clone().filter(|_| !is_over)
    }
}

impl Shared {
    /// A read would not wait, unless the connection is broken.
    pub(super) fn reads(&self) -> bool {
        self.has_bytes() || self.discards || self.engine.is_at_end()
    }

    /// Bytes have come that the program is to read.
    pub(super) fn is_unread(&self) -> bool {
        self.has_bytes() && !self.discards
    }

    fn has_bytes(&self) -> bool {
        self.engine.front().is_some() || !self.absorbed.is_empty()
    }

    fn copy_next(&self, out: &mut [u8]) -> usize {
        let mut copied = 0;
        for (place, byte) in out.iter_mut().zip(&self.absorbed) {
            *place = *byte;
            copied += 1;
        }
        for (slot, range) in self.engine.fronts() {
            if copied == out.len() {
                break;
            }
            let count = range.len().min(out.len() - copied);
            self.slots.read(slot, range.start, &mut out[copied..copied + count]);
            copied += count;
        }
        copied
    }
}
