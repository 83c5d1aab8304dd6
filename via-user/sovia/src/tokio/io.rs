//! What a stream and its halves do when they are polled.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::tokio::io::ReadBuf;
use ::tokio::task::coop;

use crate::TcpStream;
use crate::connection::{Connection, Patience};
use crate::error::{Error, Result};
use crate::reactor::{Direction, Reactor, Watched};

/// A stream that only tasks use. Its last user closes it.
#[derive(Debug)]
pub(super) struct Io {
    stream: TcpStream,
}

impl Drop for Io {
    fn drop(&mut self) {
        self.reactor().forget_all(&self.watched());
    }
}

impl Io {
    /// Makes a stream one for tasks. Threads that wait for it would take its packets.
    pub(super) fn new(stream: TcpStream) -> Result<Self> {
        if stream.connection().has_handler() {
            return Err(Error::Policy(
                "streams of HANDLER have threads of their own, and no tasks",
            ));
        }
        if stream.is_shared() {
            return Err(Error::Shared);
        }
        Ok(Self { stream })
    }

    pub(super) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn connection(&self) -> &Arc<Connection> {
        self.stream.connection()
    }

    fn watched(&self) -> Arc<dyn Watched> {
        Arc::<Connection>::clone(self.connection())
    }

    fn reactor(&self) -> &Arc<Reactor> {
        self.stream.device().reactor()
    }

    /// Makes a call that does not wait, and has the task woken when it is to be made again.
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        mut call: impl FnMut(&Arc<Connection>) -> Result<T>,
    ) -> Poll<io::Result<T>> {
        // A task whose calls never wait lets others run nevertheless.
        let budget = ready!(coop::poll_proceed(cx));
        let connection = self.connection();
        let mut result = call(connection);
        if matches!(result, Err(Error::WouldBlock)) {
            let watched = self.watched();
            self.reactor().register(&watched, direction, cx.waker())?;
            // What has come before that wakes nobody.
            result = call(connection);
            if matches!(result, Err(Error::WouldBlock)) {
                return Poll::Pending;
            }
            self.reactor().forget(&watched, direction);
        }
        budget.made_progress();
        Poll::Ready(result.map_err(io::Error::from))
    }

    /// Reads at most what a packet has: the rest of a large buffer need not be zeroed for it.
    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let most = buffer.remaining().min(self.stream.device().policy().mtu as usize);
        let out = buffer.initialize_unfilled_to(most);
        let read =
            self.poll(cx, Direction::Read, |connection| connection.read(out, Patience::None));
        let count = ready!(read)?;
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_peek(
        &self,
        cx: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(cx, Direction::Read, |connection| connection.peek(out, Patience::None))
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll(cx, Direction::Write, |connection| connection.write(bytes, Patience::None))
    }

    /// Small messages do not wait for others. They go as soon as there is room.
    pub(super) fn flush(&self) {
        self.connection().flush();
    }

    /// This side sends no more.
    pub(super) fn shut_down(&self) {
        self.connection().shut_down_writes();
    }
}
