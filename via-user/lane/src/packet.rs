//! What a lane reads of an IP packet: who sent it, to whom, and whether it is one (RFC 791, RFC 8200).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of a header of IPv4 without options.
const V4_HEADER: usize = 20;
/// Bytes of a header of IPv6.
const V6_HEADER: usize = 40;

/// The addresses of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Who sent it.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
}

fn word(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

impl Packet {
    /// The addresses of a packet. None if it is malformed: its version is neither 4 nor 6, it is
    /// shorter than its header, or its length is another one than it says.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let first = *bytes.first()?;
        match first >> 4 {
            4 if bytes.len() >= V4_HEADER => {
                let header = usize::from(first & 0xf) * 4;
                let is_whole =
                    (V4_HEADER..=bytes.len()).contains(&header) && word(bytes, 2) == bytes.len();
                let at = |at| array(bytes, at).map(|octets: [u8; 4]| Ipv4Addr::from(octets).into());
                Some(Self { source: at(12)?, destination: at(16)? }).filter(|_| is_whole)
            }
            6 if bytes.len() >= V6_HEADER => {
                let is_whole = word(bytes, 4) == bytes.len() - V6_HEADER;
                let at =
                    |at| array(bytes, at).map(|octets: [u8; 16]| Ipv6Addr::from(octets).into());
                Some(Self { source: at(8)?, destination: at(24)? }).filter(|_| is_whole)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4() -> Vec<u8> {
        let mut bytes = vec![0; 28];
        (bytes[0], bytes[3]) = (0x45, 28);
        bytes[12..20].copy_from_slice(&[10, 7, 0, 1, 10, 7, 0, 2]);
        bytes
    }

    fn v6() -> Vec<u8> {
        let mut bytes = vec![0; 48];
        (bytes[0], bytes[5]) = (0x60, 8);
        (bytes[8], bytes[23], bytes[24], bytes[39]) = (0xfd, 1, 0xfd, 2);
        bytes
    }

    #[test]
    fn addresses_are_read() {
        let packet = Packet::parse(&v4()).unwrap();
        assert_eq!(packet.source.to_string(), "10.7.0.1");
        assert_eq!(packet.destination.to_string(), "10.7.0.2");
        let packet = Packet::parse(&v6()).unwrap();
        assert_eq!(packet.source.to_string(), "fd00::1");
        assert_eq!(packet.destination.to_string(), "fd00::2");
        // With options: the header may be the whole packet.
        let mut options = v4();
        options[0] = 0x47;
        assert!(Packet::parse(&options).is_some());
    }

    #[test]
    fn what_is_no_whole_packet_is_none() {
        for good in [v4(), v6()] {
            for length in 0..good.len() {
                assert_eq!(Packet::parse(&good[..length]), None, "{length} bytes");
            }
            assert_eq!(Packet::parse(&[&good[..], &[0]].concat()), None);
            for version in (0..16).filter(|version| ![4, 6].contains(version)) {
                let mut bad = good.clone();
                bad[0] = version << 4 | 5;
                assert_eq!(Packet::parse(&bad), None, "version {version}");
            }
        }
        for header in [0x40, 0x44, 0x48, 0x4f] {
            let mut bad = v4();
            bad[0] = header;
            assert_eq!(Packet::parse(&bad), None, "{header:#x}");
        }
    }
}
