//! A server of one NIC without sockets in a folder, whose client is the caller: for what feeds it any
//! bytes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};

use nic_model::link::Faults;
use rustix::event::PollFlags;
use rustix::net::{RecvFlags, recv};
use vfio_user::socket::send;

use super::client::Client;
use super::engine::Engine;
use super::notifier::Notifier;
use super::{DeviceFactory, Server};

/// Bytes of answers that are taken at once.
const ANSWER_BYTES: usize = 1 << 16;

/// See the module.
#[derive(Debug)]
pub struct Session {
    server: Server,
    socket: UnixStream,
}

impl Session {
    /// A server, and a client that has connected.
    ///
    /// # Errors
    /// A socket or a thread that cannot be had.
    pub fn new(device: DeviceFactory) -> io::Result<Self> {
        // One for all of them: each has a thread.
        static NOTIFIER: OnceLock<Arc<Notifier>> = OnceLock::new();
        let notifier = match NOTIFIER.get() {
            Some(notifier) => notifier,
            None => {
                let started = Notifier::start()?;
                NOTIFIER.get_or_init(|| started)
            }
        };
        let mut engine = Engine::new(1, 20, &Faults::default(), device, notifier);
        engine.release(0);
        let (socket, server) = UnixStream::pair()?;
        let mut this = Self { server: Server::of(engine), socket };
        this.server.clients.push(Client::new(server, 0, std::process::id()));
        Ok(this)
    }

    /// Lets the client that is there go, and another one connect.
    ///
    /// # Errors
    /// A socket that cannot be had.
    pub fn reconnect(&mut self) -> io::Result<()> {
        let (socket, server) = UnixStream::pair()?;
        self.socket = socket;
        while self.turn() {}
        self.server.clients.push(Client::new(server, 0, std::process::id()));
        Ok(())
    }

    /// Sends bytes to the server, as far as the socket takes them, with descriptors.
    ///
    /// # Errors
    /// The socket's: the server has closed it, or it is full.
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        send(self.socket.as_fd(), bytes, fds, false)
    }

    /// What the server does in one turn. False if the client has gone.
    pub fn turn(&mut self) -> bool {
        let mut ready = PollFlags::IN;
        if self.is_closed() {
            ready |= PollFlags::HUP;
        }
        self.server.serve(&[ready]);
        self.server.advance(false);
        !self.server.clients.is_empty()
    }

    /// Whether the client's end is closed.
    fn is_closed(&self) -> bool {
        let Some(client) = self.server.clients.first() else { return false };
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(recv(client.socket(), &mut [0; 1], flags), Ok((_, 0)))
    }

    /// The answers that have come.
    #[must_use]
    pub fn answers(&self) -> Vec<u8> {
        let mut bytes = vec![0; ANSWER_BYTES];
        let mut all = Vec::new();
        while let Ok((_, count)) = recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
            if count == 0 {
                break;
            }
            all.extend_from_slice(&bytes[..count]);
        }
        all
    }

    /// Cycles run so far.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.server.now()
    }
}
