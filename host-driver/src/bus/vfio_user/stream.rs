//! The client's end of the stream of commands.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ::vfio_user::protocol::{self, Command, farewell_reason, flag};
use ::vfio_user::socket::{self, Inbox, Received};

/// The stream of commands. Replies come in the order of the commands.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) socket: UnixStream,
    /// Longest time that the simulator may take for a message and its answer together.
    pub(super) bound: Duration,
    inbox: Inbox,
    next_id: u16,
}

impl Stream {
    pub(super) fn new(socket: UnixStream, bound: Duration) -> Self {
        Self { socket, bound, inbox: Inbox::default(), next_id: 0 }
    }

    fn send(
        &mut self,
        (command, flags): (Command, u32),
        parts: &[&[u8]],
        fds: &[BorrowedFd<'_>],
        end: Instant,
    ) -> io::Result<u16> {
        self.next_id = self.next_id.wrapping_add(1);
        let bytes = protocol::message(self.next_id, command as u16, flags, parts);
        socket::send_by(self.socket.as_fd(), &bytes, fds, end)?;
        Ok(self.next_id)
    }

    /// Sends a command that has no answer.
    pub(super) fn post(&mut self, command: Command, parts: &[&[u8]]) -> io::Result<()> {
        let end = Instant::now() + self.bound;
        self.send((command, flag::NO_REPLY), parts, &[], end).map(drop)
    }

    /// Sends a command and waits for its answer: the reply, or that of an error.
    pub(super) fn ask(
        &mut self,
        command: Command,
        parts: &[&[u8]],
        fds: &[BorrowedFd<'_>],
    ) -> io::Result<Result<socket::Message, socket::Message>> {
        let end = Instant::now() + self.bound;
        let sent = self.send((command, 0), parts, fds, end);
        // What the simulator said before it closed can still be received.
        let id = sent.or_else(|error| self.farewell().map_or(Err(error), said))?;
        match self.inbox.receive_by(self.socket.as_fd(), end)? {
            Received::Message(reply) => {
                if let Some(why) = farewell_reason(reply.header, &reply.payload) {
                    return said(why);
                }
                if !reply.header.is_reply() || reply.header.id != id {
                    return Err(io::Error::other("it answers something that was not asked"));
                }
                let is_error = reply.header.flags & flag::ERROR != 0;
                Ok(if is_error { Err(reply) } else { Ok(reply) })
            }
            Received::Closed => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            _ => Err(io::Error::other("its answer is malformed")),
        }
    }

    /// Why the simulator took the NIC back, if it said so.
    pub(super) fn farewell(&mut self) -> Option<String> {
        match self.inbox.receive(self.socket.as_fd(), false) {
            Ok(Received::Message(last)) => farewell_reason(last.header, &last.payload),
            _ => None,
        }
    }
}

fn said<T>(why: String) -> io::Result<T> {
    Err(io::Error::other(why))
}
