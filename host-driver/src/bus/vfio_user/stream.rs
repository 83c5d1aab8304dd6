//! The client's end of the stream of commands.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::protocol::{self, Command, flag};
use super::socket::{self, Inbox, Received};

/// The stream of commands. Replies come in the order of the commands.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) socket: UnixStream,
    /// Longest time that the simulator may take for an answer, or to take a message.
    pub(super) bound: Duration,
    inbox: Inbox,
    next_id: u16,
}

impl Stream {
    pub(super) fn new(socket: UnixStream, bound: Duration) -> Self {
        Self { socket, bound, inbox: Inbox::default(), next_id: 0 }
    }

    /// Sends a command.
    pub(super) fn send(
        &mut self,
        command: Command,
        flags: u32,
        parts: &[&[u8]],
        fds: &[BorrowedFd<'_>],
    ) -> io::Result<u16> {
        self.next_id = self.next_id.wrapping_add(1);
        let bytes = protocol::message(self.next_id, command as u16, flags, parts);
        socket::send_by(self.socket.as_fd(), &bytes, fds, Instant::now() + self.bound)?;
        Ok(self.next_id)
    }

    /// Sends a command and waits for its answer: the reply, or that of an error.
    pub(super) fn ask(
        &mut self,
        command: Command,
        parts: &[&[u8]],
        fds: &[BorrowedFd<'_>],
    ) -> io::Result<Result<socket::Message, socket::Message>> {
        let id = self.send(command, 0, parts, fds)?;
        match self.inbox.receive_by(self.socket.as_fd(), Instant::now() + self.bound)? {
            Received::Message(reply) if !reply.header.is_reply() || reply.header.id != id => {
                Err(io::Error::other("it answers something that was not asked"))
            }
            Received::Message(reply) if reply.header.flags & flag::ERROR != 0 => Ok(Err(reply)),
            Received::Message(reply) => Ok(Ok(reply)),
            Received::Closed => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            _ => Err(io::Error::other("its answer is malformed")),
        }
    }
}
