//! Packets of a node in a file, for Wireshark (`docs/udp.md`, section 7).
//!
//! What the kernel puts in front of a packet is made up here again: a program sees no more than what
//! its socket carries.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use port::pcapng::{Direction, Interface, Writer};
use port::sync::lock;

use super::address::Address;
use super::format::length_of;

/// LINKTYPE_ETHERNET, and LINKTYPE_RAW: IPv4 or IPv6.
const ETHERNET: u16 = 1;
const RAW: u16 = 101;
/// Protocol number of UDP.
const UDP: u8 = 17;
/// Hops that a packet has left; the kernel's default.
const TTL: u8 = 64;

/// A file of a node's packets.
#[derive(Debug)]
pub(super) struct Capture {
    own: Address,
    writer: Mutex<Writer>,
}

/// The Internet's checksum (RFC 1071) of these parts, of which only the last may have an odd length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let pairs = parts.iter().flat_map(|part| part.chunks(2));
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = pairs.map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

/// Headers of IP and UDP.
fn headers(from: SocketAddr, to: SocketAddr, packet: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(8 + packet.len()).ok()?;
    let mut udp = [from.port(), to.port(), length, 0].map(u16::to_be_bytes).concat();
    let (mut ip, pseudo) = match (from, to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            let addresses = [from.ip().octets(), to.ip().octets()].concat();
            let all = length.checked_add(20)?.to_be_bytes();
            // Not to be fragmented; no identification.
            let head = [0x45, 0, all[0], all[1], 0, 0, 0x40, 0, TTL, UDP, 0, 0];
            let mut ip = [&head[..], &addresses].concat();
            let sum = checksum(&[&ip]).to_be_bytes();
            ip[10..12].copy_from_slice(&sum);
            (ip, [&addresses[..], &[0, UDP], &length.to_be_bytes()].concat())
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            let addresses = [from.ip().octets(), to.ip().octets()].concat();
            let size = length.to_be_bytes();
            let head = [0x60, 0, 0, 0, size[0], size[1], UDP, TTL];
            let pseudo = [&addresses[..], &[0, 0], &size, &[0, 0, 0, UDP]].concat();
            ([&head[..], &addresses].concat(), pseudo)
        }
        _ => return None,
    };
    // 0 stands for none.
    let sum = match checksum(&[&pseudo, &udp, packet]) {
        0 => 0xffff,
        sum => sum,
    };
    udp[6..].copy_from_slice(&sum.to_be_bytes());
    ip.extend(udp);
    Some(ip)
}

impl Capture {
    /// Makes the file of a node with this address.
    ///
    /// # Errors
    /// It cannot be written; the text names it.
    pub(super) fn create(path: &Path, own: Address) -> io::Result<Self> {
        let link_type = if matches!(own, Address::Udp(_)) { RAW } else { ETHERNET };
        let interface = Interface { name: own.to_string(), link_type };
        Ok(Self { own, writer: Mutex::new(Writer::create(path, &[interface])?) })
    }

    /// Writes the packets of a datagram that passes. False: the file cannot be written any more.
    #[cold]
    pub(super) fn record(&self, direction: Direction, peer: Address, datagram: &[u8]) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let (from, to) = match direction {
            Direction::In => (peer, self.own),
            Direction::Out => (self.own, peer),
        };
        let mut rest = datagram;
        let mut is_written = true;
        while !rest.is_empty() {
            // What is no packet is written as a whole.
            let (packet, more) = rest.split_at(length_of(rest).unwrap_or(rest.len()));
            rest = more;
            let front = match (from, to) {
                (Address::Udp(from), Address::Udp(to)) => headers(from, to, packet),
                (Address::Eth(from), Address::Eth(to)) => {
                    Some([&to[..], &from, &super::socket::ETHER_TYPE.to_be_bytes()].concat())
                }
                _ => None,
            };
            let Some(mut bytes) = front else { continue };
            bytes.extend_from_slice(packet);
            is_written &= lock(&self.writer).packet((0, direction), now, &bytes, bytes.len());
        }
        is_written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_their_checksums() {
        let [four, other] = ["10.0.0.1:22089", "10.0.0.2:70"].map(|text| text.parse().unwrap());
        let bytes = headers(four, other, b"abc").unwrap();
        assert_eq!(bytes.len(), 28);
        assert_eq!(checksum(&[&bytes[..20]]), 0, "a header with its checksum adds up to nothing");
        let pseudo = [&bytes[12..20], &[0, UDP, 0, 11]].concat();
        assert_eq!(checksum(&[&pseudo, &bytes[20..], b"abc"]), 0);
        let [six, sixth] = ["[::1]:1", "[fe80::2]:2"].map(|text| text.parse().unwrap());
        let bytes = headers(six, sixth, b"abcd").unwrap();
        assert_eq!((bytes.len(), bytes[0] >> 4, bytes[6]), (48, 6, UDP));
        let pseudo = [&bytes[8..40], &[0, 0, 0, 12, 0, 0, 0, UDP]].concat();
        assert_eq!(checksum(&[&pseudo, &bytes[40..], b"abcd"]), 0);
        assert_eq!(headers(four, six, b""), None);
        assert_eq!(headers(four, other, &[0; 1 << 16]), None);
    }
}
