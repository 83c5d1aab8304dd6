//! Whole messages with their descriptors over a UNIX socket.
//!
//! Descriptors belong to the message whose first byte they came with. So the header is received by
//! itself and nothing is received ahead of the message that is due.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    connect, recvmsg, sendmsg, socket_with,
};

use crate::protocol::{FDS_MAX, HEADER_BYTES, Header, MESSAGE_MAX, errno};

/// Connects to a server, which may take `bound` to make room among those that wait for it.
///
/// # Errors
/// The socket's; [`io::ErrorKind::TimedOut`] if the server made no room.
pub fn dial(path: &Path, bound: Duration) -> io::Result<UnixStream> {
    let end = Instant::now() + bound;
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let result = if left.is_zero() {
            Err(rustix::io::Errno::AGAIN)
        } else {
            set_socket_timeout(&socket, Timeout::Send, Some(left))?;
            connect(&socket, &address)
        };
        match result {
            Ok(()) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                let why = format!("it takes no connection within {} s", bound.as_secs_f32());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Err(error) => return Err(error.into()),
        }
    }
    set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(socket.into())
}

/// Waits until a descriptor is ready. Signals make that no longer.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] if it is not ready by then.
pub fn wait_ready(fd: BorrowedFd<'_>, flags: PollFlags, end: Instant) -> io::Result<()> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        let bound = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::from_borrowed_fd(fd, flags)], Some(&bound)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends a message. With `wait` it waits for room, as long as the socket's time-out says.
///
/// # Errors
/// The socket's; [`io::ErrorKind::WouldBlock`] if there was no room for all of it, after which the
/// stream is of no more use.
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    wait: bool,
) -> io::Result<()> {
    let flags = if wait { SendFlags::empty() } else { SendFlags::DONTWAIT };
    send_parts(socket, bytes, fds, flags, || Err(rustix::io::Errno::AGAIN.into()))
}

/// Sends a message, for all of which there must be room by then.
///
/// # Errors
/// The socket's; [`io::ErrorKind::TimedOut`] if there is not, after which the stream is of no more
/// use.
pub fn send_by(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    end: Instant,
) -> io::Result<()> {
    let wait = || wait_ready(socket, PollFlags::OUT, end);
    send_parts(socket, bytes, fds, SendFlags::DONTWAIT, wait)
}

/// Sends a message; `full` waits for room, or is the error if there is none.
fn send_parts(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    flags: SendFlags,
    full: impl Fn() -> io::Result<()>,
) -> io::Result<()> {
    let mut space = [core::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut left = bytes;
    let mut fds = fds;
    while !left.is_empty() {
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::other("more descriptors than a message may carry"));
        }
        let flags = flags | SendFlags::NOSIGNAL;
        match sendmsg(socket, &[IoSlice::new(left)], &mut control, flags) {
            Ok(sent) => (left, fds) = (&left[sent..], &[]),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => full()?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A message that has arrived.
#[derive(Debug)]
pub struct Message {
    /// Its header.
    pub header: Header,
    /// What follows the header.
    pub payload: Vec<u8>,
    /// What came with it.
    pub fds: Vec<OwnedFd>,
}

/// What [`Inbox::receive`] found.
#[derive(Debug)]
pub enum Received {
    /// A message.
    Message(Message),
    /// Not a whole one yet.
    Pending,
    /// The other end has closed.
    Closed,
    /// Its header makes no sense, so that the stream is of no more use; and the errno that says
    /// why.
    Malformed(Header, u32),
}

/// The receiving end of a stream.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    fds: Vec<OwnedFd>,
    /// More descriptors came than were taken.
    truncated: bool,
}

impl Inbox {
    /// Receives what is there; with `wait`, waits for a whole message.
    ///
    /// # Errors
    /// The socket's.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, wait: bool) -> io::Result<Received> {
        loop {
            let wanted = match self.bytes.first_chunk().map(Header::from_bytes) {
                None => HEADER_BYTES,
                Some(header) => {
                    let size = usize::try_from(header.size).unwrap_or(usize::MAX);
                    if !(HEADER_BYTES..=MESSAGE_MAX).contains(&size) {
                        let why =
                            if size < HEADER_BYTES { errno::INVALID } else { errno::TOO_LONG };
                        return Ok(Received::Malformed(header, why));
                    }
                    if self.bytes.len() == size {
                        return Ok(self.take(header));
                    }
                    size
                }
            };
            // Less than that may come although more is there: descriptors part what is received.
            match self.fill(socket, wanted, wait)? {
                None => return Ok(Received::Pending),
                Some(0) => return Ok(Received::Closed),
                Some(_) => {}
            }
        }
    }

    /// Receives a whole message, which must be here by then, however slowly its bytes come.
    ///
    /// # Errors
    /// The socket's; [`io::ErrorKind::TimedOut`] if it is not.
    pub fn receive_by(&mut self, socket: BorrowedFd<'_>, end: Instant) -> io::Result<Received> {
        loop {
            match self.receive(socket, false)? {
                Received::Pending => {}
                received => return Ok(received),
            }
            wait_ready(socket, PollFlags::IN, end)?;
        }
    }

    fn take(&mut self, header: Header) -> Received {
        if core::mem::take(&mut self.truncated) {
            return Received::Malformed(header, errno::INVALID);
        }
        let payload = self.bytes.split_off(HEADER_BYTES);
        self.bytes.clear();
        Received::Message(Message { header, payload, fds: core::mem::take(&mut self.fds) })
    }

    /// Receives up to `wanted` bytes in all, and gives how many came: none if the other end has closed,
    /// None if there is nothing yet.
    fn fill(
        &mut self,
        socket: BorrowedFd<'_>,
        wanted: usize,
        wait: bool,
    ) -> io::Result<Option<usize>> {
        let had = self.bytes.len();
        let flags =
            RecvFlags::CMSG_CLOEXEC | if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        let mut space = [core::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        self.bytes.resize(wanted, 0);
        let result = loop {
            let slices = &mut [IoSliceMut::new(&mut self.bytes[had..])];
            match recvmsg(socket, slices, &mut control, flags) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result,
            }
        };
        let got = result.as_ref().map_or(0, |received| received.bytes);
        self.bytes.truncate(had + got);
        match result {
            Ok(received) => {
                self.truncated |= received.flags.contains(ReturnFlags::CTRUNC);
                for message in control.drain() {
                    if let RecvAncillaryMessage::ScmRights(fds) = message {
                        self.fds.extend(fds);
                    }
                }
                // Each piece of a message may bring some.
                self.truncated |= self.fds.len() > FDS_MAX;
                self.fds.truncate(FDS_MAX);
                Ok(Some(got))
            }
            Err(rustix::io::Errno::AGAIN) if !wait => Ok(None),
            Err(rustix::io::Errno::CONNRESET) => Ok(Some(0)),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::protocol::{Command, message};

    fn next(inbox: &mut Inbox, socket: &UnixStream) -> Received {
        inbox.receive(socket.as_fd(), false).unwrap()
    }

    #[test]
    fn messages_keep_their_descriptors() {
        let (a, b) = UnixStream::pair().unwrap();
        let (first, second) =
            (message(1, Command::Reset as u16, 0, &[b"x"]), message(2, 3, 0, &[]));
        // The first one in two pieces, and behind it at once the second with a descriptor.
        send(a.as_fd(), &first[..7], &[], true).unwrap();
        let mut inbox = Inbox::default();
        assert!(matches!(next(&mut inbox, &b), Received::Pending));
        send(a.as_fd(), &first[7..], &[], true).unwrap();
        send(a.as_fd(), &second, &[a.as_fd(), a.as_fd()], true).unwrap();
        let Received::Message(got) = next(&mut inbox, &b) else { panic!("the first") };
        assert_eq!((got.header.id, &got.payload[..], got.fds.len()), (1, &b"x"[..], 0));
        let Received::Message(got) = next(&mut inbox, &b) else { panic!("the second") };
        assert_eq!((got.header.id, got.fds.len()), (2, 2));
        drop((a, got));
        assert!(matches!(next(&mut inbox, &b), Received::Closed));
    }

    #[test]
    fn all_that_is_there_is_received() {
        let (a, b) = UnixStream::pair().unwrap();
        let bytes = message(1, 8, 0, &[b"abc"]);
        for (number, piece) in bytes.chunks(3).enumerate() {
            let fds = [a.as_fd()];
            send(a.as_fd(), piece, &fds[..usize::from(number < 3)], true).unwrap();
        }
        let mut inbox = Inbox::default();
        let Received::Message(got) = next(&mut inbox, &b) else { panic!("in one go") };
        assert_eq!((&got.payload[..], got.fds.len()), (&b"abc"[..], 3));
        assert!(matches!(next(&mut inbox, &b), Received::Pending));
    }

    #[test]
    fn sizes_that_cannot_be_are_found() {
        for (size, why) in [(0, errno::INVALID), (15, errno::INVALID), (u32::MAX, errno::TOO_LONG)]
        {
            let (a, b) = UnixStream::pair().unwrap();
            let header = Header { id: 9, command: 1, size, flags: 0, error: 0 };
            send(a.as_fd(), &header.to_bytes(), &[], true).unwrap();
            let found = next(&mut Inbox::default(), &b);
            assert!(
                matches!(found, Received::Malformed(h, e) if h == header && e == why),
                "{found:?}"
            );
        }
    }

    #[test]
    fn too_many_descriptors_are_found() {
        let (a, b) = UnixStream::pair().unwrap();
        let many = vec![a.as_fd(); 2 * FDS_MAX];
        let mut space = vec![core::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&many)));
        let bytes = message(1, 8, 0, &[]);
        sendmsg(&a, &[IoSlice::new(&bytes)], &mut control, SendFlags::empty()).unwrap();
        assert!(matches!(next(&mut Inbox::default(), &b), Received::Malformed(..)));
    }

    #[test]
    fn descriptors_do_not_gather_while_a_message_comes_in_pieces() {
        let (a, b) = UnixStream::pair().unwrap();
        let bytes = message(1, 8, 0, &[&[0; 40]]);
        let mut inbox = Inbox::default();
        for byte in &bytes[..bytes.len() - 1] {
            send(a.as_fd(), &[*byte], &[a.as_fd(); FDS_MAX], true).unwrap();
            assert!(matches!(next(&mut inbox, &b), Received::Pending));
            assert!(inbox.fds.len() <= FDS_MAX);
        }
        send(a.as_fd(), &bytes[bytes.len() - 1..], &[], true).unwrap();
        assert!(matches!(next(&mut inbox, &b), Received::Malformed(_, errno::INVALID)));
    }

    #[test]
    fn a_message_that_drips_is_not_waited_for() {
        let (a, b) = UnixStream::pair().unwrap();
        let mut inbox = Inbox::default();
        let dripping = std::thread::spawn(move || {
            // Ends when the other end is closed.
            for byte in message(1, 8, 0, &[&[0; 4096]]) {
                if send(a.as_fd(), &[byte], &[], true).is_err() {
                    return true;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            false
        });
        let end = Instant::now() + Duration::from_millis(50);
        let error = inbox.receive_by(b.as_fd(), end).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(b);
        assert!(dripping.join().unwrap(), "it was not waited for to the end");
    }
}
