//! What carries packets: a UDP socket, or an Ethernet interface.

mod eth;
mod udp;

use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use port::pcapng::Direction;
use rustix::io::Errno;
use rustix::net::sockopt;

use super::address::Address;
use super::capture::Capture;
use super::counters::Counter;
use super::error::{Error, Result};
use eth::Eth;
pub use eth::interfaces;
pub(super) use eth::{BROADCAST, ETHER_TYPE};
use udp::Udp;

/// Bytes of packets that the system is asked to keep until they are looked at.
const BUFFER_BYTES: usize = 1 << 20;
/// Bytes of a packet that every path carries, if the system does not say how many.
const SMALLEST: usize = 1_232;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is on its way, or lost as any may be.
    Sent,
    /// The system has no space for it now.
    Full,
    /// It is longer than the path carries.
    TooLong,
}

impl Outcome {
    /// Of a packet that the system refuses.
    const fn of(why: Option<Errno>) -> Self {
        match why {
            Some(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => Self::Full,
            Some(Errno::MSGSIZE) => Self::TooLong,
            // No way to the host, now: as if it were lost.
            _ => Self::Sent,
        }
    }
}

/// Has the system keep more packets, as far as the program may ask for it.
fn enlarge(fd: BorrowedFd<'_>) {
    for set in [
        sockopt::set_socket_recv_buffer_size,
        sockopt::set_socket_send_buffer_size,
        // Beyond the system's limit only a privileged program gets.
        sockopt::set_socket_recv_buffer_size_force,
        sockopt::set_socket_send_buffer_size_force,
    ] {
        let _ = set(fd, BUFFER_BYTES);
    }
}

/// What carries packets. It does not block.
#[derive(Debug)]
pub(super) struct Socket {
    carrier: Carrier,
    capture: Option<Capture>,
    /// Packets that the capture could not take any more.
    pub(super) not_captured: Counter,
}

#[derive(Debug)]
enum Carrier {
    Udp(Udp),
    Eth(Eth),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.carrier {
            Carrier::Udp(udp) => udp.as_fd(),
            Carrier::Eth(eth) => eth.as_fd(),
        }
    }
}

impl Socket {
    /// A UDP socket with an address, or with any free port of it if the port is 0.
    ///
    /// # Errors
    /// The address is none, another program's, or not this computer's.
    pub(super) fn udp(address: SocketAddr) -> Result<Self> {
        Udp::open(address).map(|udp| Self::over(Carrier::Udp(udp)))
    }

    /// An Ethernet interface, by its name.
    ///
    /// # Errors
    /// It is of no use, another program's, or the program may not use it.
    pub(super) fn eth(name: &str) -> Result<Self> {
        Eth::open(name).map(|eth| Self::over(Carrier::Eth(eth)))
    }

    fn over(carrier: Carrier) -> Self {
        Self { carrier, capture: None, not_captured: Counter::default() }
    }

    /// Writes all packets into a file from now on.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn capture(&mut self, path: &Path) -> Result<()> {
        let capture = Capture::create(path, self.own()).map_err(Error::Capture)?;
        self.capture = Some(capture);
        Ok(())
    }

    #[inline]
    fn record(&self, direction: Direction, peer: Address, datagram: &[u8]) {
        if let Some(capture) = &self.capture
            && !capture.record(direction, peer, datagram)
        {
            self.not_captured.count();
        }
    }

    /// Its address.
    pub(super) const fn own(&self) -> Address {
        match &self.carrier {
            Carrier::Udp(udp) => udp.own(),
            Carrier::Eth(eth) => Address::Eth(eth.own()),
        }
    }

    /// Bytes of packets that the system keeps until they are looked at.
    pub(super) const fn kept(&self) -> usize {
        match &self.carrier {
            Carrier::Udp(udp) => udp.kept(),
            Carrier::Eth(eth) => eth.kept(),
        }
    }

    /// Bytes of the longest packet that the path to a node carries, as far as the system knows.
    ///
    /// # Errors
    /// There is no path.
    pub(super) fn path(&self, to: Address) -> io::Result<usize> {
        match (&self.carrier, to) {
            (Carrier::Udp(udp), Address::Udp(to)) => udp.path(to),
            (Carrier::Eth(eth), Address::Eth(to)) if to == eth.own() => {
                Err(io::Error::other("an Ethernet does not bring back what an interface sends"))
            }
            (Carrier::Eth(eth), Address::Eth(_)) => eth.path(),
            _ => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// Bytes of the longest packet that leaves by its own interface.
    pub(super) fn longest_of_own(&self) -> usize {
        match &self.carrier {
            Carrier::Udp(udp) => self.longest(udp.own()),
            Carrier::Eth(eth) => eth.path().unwrap_or(SMALLEST),
        }
    }

    /// The same of the path to a node; what every path carries, if there is none now.
    pub(super) fn longest(&self, to: Address) -> usize {
        self.path(to).unwrap_or(SMALLEST)
    }

    /// Sends a packet.
    #[inline]
    pub(super) fn send(&self, to: Address, packet: &[u8]) -> Outcome {
        self.record(Direction::Out, to, packet);
        match (&self.carrier, to) {
            (Carrier::Udp(udp), Address::Udp(to)) => udp.send(to, packet),
            (Carrier::Eth(eth), Address::Eth(to)) => eth.send(to, packet),
            // No node has such a peer.
            _ => Outcome::Sent,
        }
    }

    /// Sends packets of one length together, of which the last may be shorter. False if nothing was sent:
    /// the system lacks that, or the reason has to be found packet by packet.
    pub(super) fn send_together(&self, to: Address, packets: &[IoSlice<'_>]) -> bool {
        let is_sent = match (&self.carrier, to) {
            (Carrier::Udp(udp), Address::Udp(to)) => udp.send_together(to, packets),
            _ => false,
        };
        if is_sent {
            packets.iter().for_each(|packet| self.record(Direction::Out, to, packet));
        }
        is_sent
    }

    /// Sends a packet that is longer than the path carries, in fragments. Ethernet has none.
    pub(super) fn send_fragmented(&self, to: Address, packet: &[u8]) -> Outcome {
        match (&self.carrier, to) {
            (Carrier::Udp(udp), Address::Udp(to)) => udp.send_fragmented(to, packet),
            _ => Outcome::Sent,
        }
    }

    /// Takes a packet that arrived: where it is in the buffer, and where it is from.
    #[inline]
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Option<(Range<usize>, Address)> {
        let (place, from) = match &self.carrier {
            Carrier::Udp(udp) => {
                udp.receive(buffer).map(|(length, from)| (0..length, Address::Udp(from)))
            }
            Carrier::Eth(eth) => {
                eth.receive(buffer).map(|(place, from)| (place, Address::Eth(from)))
            }
        }?;
        self.record(Direction::In, from, &buffer[place.clone()]);
        Some((place, from))
    }
}
