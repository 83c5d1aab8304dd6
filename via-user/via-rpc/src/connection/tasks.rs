//! What asynchronous tasks need of a connection: never to wait, and to be woken.

use std::task::Waker;

use super::Connection;

impl Connection {
    /// Bytes of messages that wait for credits.
    pub(crate) const fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Has this waker woken when no message waits for credits any more, or the connection fails.
    pub(crate) fn wake_when_sent(&mut self, waker: &Waker) {
        self.flushing = Some(waker.clone());
    }

    /// Has the other side wait with data, or go on.
    pub(crate) fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
        if self.broken.is_none()
            && let Err(error) = self.transmit()
        {
            self.fail(error);
        }
    }
}
