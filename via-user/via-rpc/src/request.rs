//! A request of a client, to be answered by whatever thread.

use crate::buffers::Buffer;
use crate::error::{Error, Result};
use crate::peer::Peer;

/// A request. Dropped without an answer it has the client's call fail with [`Error::Unanswered`].
#[derive(Debug)]
pub struct Request {
    peer: Peer,
    call: u32,
    is_answered: bool,
}

impl Request {
    pub(crate) const fn new(peer: Peer, call: u32) -> Self {
        Self { peer, call, is_answered: false }
    }

    /// The client.
    #[must_use]
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Answers the request: sends what the client has credits for, and leaves the rest to whoever
    /// receives, so it never waits for the client.
    ///
    /// # Errors
    /// [`Error::TooLong`], and the client's call fails with [`Error::Unanswered`]. [`Error::Lost`] or
    /// [`Error::Violation`]: the client no longer exists.
    pub fn reply(self, answer: &[u8]) -> Result<()> {
        let mut buffer = self.buffer(answer.len())?;
        buffer.append(answer)?;
        self.reply_with(buffer)
    }

    /// An empty buffer for an answer of `length` bytes, to be marshalled in place.
    ///
    /// # Errors
    /// The NIC cannot register more memory; the client no longer exists.
    pub fn buffer(&self, length: usize) -> Result<Buffer> {
        self.peer.lock().buffer(length)
    }

    /// As [`Request::reply`], without a copy of the answer.
    ///
    /// # Errors
    /// As [`Request::reply`].
    pub fn reply_with(mut self, answer: Buffer) -> Result<()> {
        let queued = self.peer.lock().queue(answer, self.call);
        // A message that is too long was not queued, and the end of this says so to the client.
        self.is_answered = !matches!(queued, Err(Error::TooLong { .. }));
        queued
    }

    /// The client, for who answers in another manner.
    #[cfg(feature = "tarpc")]
    pub(crate) fn into_peer(mut self) -> Peer {
        self.is_answered = true;
        self.peer.clone()
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.is_answered {
            let mut connection = self.peer.lock();
            if let Err(error) = connection.queue_unanswered(self.call) {
                // Without the note the client would wait for ever.
                connection.fail(error);
            }
        }
    }
}
