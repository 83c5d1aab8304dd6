//! A UDP socket.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{self, ErrorKind, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Mutex;

use nix::sys::socket::sockopt::UdpGroSegment;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg, setsockopt};
use port::fork;
use port::sync::lock;
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

use super::{Outcome, enlarge};
use crate::net::address::{Address, DEFAULT_PORT};
use crate::net::error::{Error, Result};
use crate::net::format::PACKET_MAX;

/// Bytes of the headers of IP and UDP.
const IPV4_HEADERS: usize = 20 + 8;
const IPV6_HEADERS: usize = 40 + 8;

/// A UDP socket, which does not block.
#[derive(Debug)]
pub(in crate::net) struct Udp {
    udp: UdpSocket,
    own: SocketAddr,
    /// Bytes of packets that the system keeps.
    kept: usize,
    /// The system does not cut what is sent into packets.
    lacks_segments: AtomicBool,
    /// Held while the socket fragments.
    fragments: Mutex<()>,
}

impl Drop for Udp {
    fn drop(&mut self) {
        fork::remove(self.udp.as_fd());
    }
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}

impl Udp {
    /// A UDP socket with an address, or with any free port of it if the port is 0.
    ///
    /// # Errors
    /// The address is none, another program's, or not this computer's.
    pub(super) fn open(address: SocketAddr) -> Result<Self> {
        let refused = |why| Error::Address { address: Address::Udp(address), why };
        if address.ip().is_unspecified() || address.ip().is_multicast() {
            return Err(refused("give the one that other hosts reach this computer by"));
        }
        if address.is_ipv6() && ![0, DEFAULT_PORT].contains(&address.port()) {
            return Err(refused("with IPv6, every node has the port 22089"));
        }
        let wanted = match address {
            SocketAddr::V6(six) => SocketAddr::from((*six.ip(), DEFAULT_PORT)),
            four => four,
        };
        let named = Address::Udp(wanted);
        let udp = fork::create(|| UdpSocket::bind(wanted)).map_err(|why| match why.kind() {
            ErrorKind::AddrInUse => Error::InUse { address: named },
            ErrorKind::AddrNotAvailable => Error::NotHere { address: named },
            _ => Error::System { what: "a UDP socket", why },
        })?;
        let mut socket = Self {
            own: wanted,
            udp,
            kept: 0,
            lacks_segments: AtomicBool::new(false),
            fragments: Mutex::default(),
        };
        socket.prepare().map_err(Error::system("the options of a UDP socket"))?;
        Ok(socket)
    }

    fn prepare(&mut self) -> io::Result<()> {
        self.udp.set_nonblocking(true)?;
        self.own = self.udp.local_addr()?;
        enlarge(self.udp.as_fd());
        // An old system lacks it, and delivers each packet by itself.
        let _ = setsockopt(&self.udp, UdpGroSegment, &true);
        self.kept = sockopt::socket_recv_buffer_size(&self.udp)?;
        self.set_fragments(false)
    }

    /// Has IP fragment packets that are longer than the path carries, or refuse them.
    fn set_fragments(&self, allowed: bool) -> io::Result<()> {
        let set = if self.own.is_ipv4() {
            let [never, always] = [Ipv4PathMtuDiscovery::DO, Ipv4PathMtuDiscovery::DONT];
            sockopt::set_ip_mtu_discover(&self.udp, if allowed { always } else { never })
        } else {
            let [never, always] = [Ipv6PathMtuDiscovery::DO, Ipv6PathMtuDiscovery::DONT];
            sockopt::set_ipv6_mtu_discover(&self.udp, if allowed { always } else { never })
        };
        set.map_err(Into::into)
    }

    /// Its address.
    pub(super) const fn own(&self) -> Address {
        Address::Udp(self.own)
    }

    /// Bytes of packets that the system keeps until they are looked at.
    pub(super) const fn kept(&self) -> usize {
        self.kept
    }

    /// Bytes of the longest packet that the path to a node carries, as far as the system knows.
    ///
    /// # Errors
    /// There is no path.
    pub(super) fn path(&self, to: SocketAddr) -> io::Result<usize> {
        // The system answers this for connected sockets only.
        let socket = UdpSocket::bind((self.own.ip(), 0))?;
        socket.connect(to)?;
        let (mtu, headers) = if to.is_ipv4() {
            (sockopt::ip_mtu(&socket)?, IPV4_HEADERS)
        } else {
            (sockopt::ipv6_mtu(&socket)?, IPV6_HEADERS)
        };
        Ok((mtu as usize).saturating_sub(headers).min(PACKET_MAX))
    }

    /// Sends a packet.
    #[inline]
    pub(super) fn send(&self, to: SocketAddr, packet: &[u8]) -> Outcome {
        match self.udp.send_to(packet, to) {
            Ok(_) => Outcome::Sent,
            Err(error) => Outcome::of(Errno::from_io_error(&error)),
        }
    }

    /// Sends packets of one length together (UDP_SEGMENT). False if nothing was sent.
    pub(super) fn send_together(&self, to: SocketAddr, packets: &[IoSlice<'_>]) -> bool {
        let length = packets.first().and_then(|first| u16::try_from(first.len()).ok());
        let Some(length) = length.filter(|_| !self.lacks_segments.load(Ordering::Relaxed)) else {
            return false;
        };
        let to = SockaddrStorage::from(to);
        let control = [ControlMessage::UdpGsoSegments(&length)];
        let flags = MsgFlags::empty();
        match sendmsg(self.udp.as_raw_fd(), packets, &control, flags, Some(&to)) {
            Ok(_) => true,
            Err(why) => {
                // EINVAL is also what packets get that the path cannot carry.
                if matches!(why, nix::Error::EIO | nix::Error::EOPNOTSUPP) {
                    self.lacks_segments.store(true, Ordering::Relaxed);
                }
                false
            }
        }
    }

    /// Sends a packet that is longer than the path carries, in fragments.
    pub(super) fn send_fragmented(&self, to: SocketAddr, packet: &[u8]) -> Outcome {
        let _fragments = lock(&self.fragments);
        let _ = self.set_fragments(true);
        let outcome = self.send(to, packet);
        let _ = self.set_fragments(false);
        if outcome == Outcome::TooLong { Outcome::Sent } else { outcome }
    }

    /// Takes a packet that arrived: its length, and where it is from.
    #[inline]
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        loop {
            match self.udp.recv_from(buffer) {
                Ok(found) => return Some(found),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
