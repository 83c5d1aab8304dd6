//! Addresses of nodes: of sockets, of Ethernet interfaces, and as VIPL has them.

use core::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Port of a node that names none, and of every node with an IPv6 address.
pub const DEFAULT_PORT: u16 = 22_089;
/// Numbers that `node0` and so on have.
const NUMBERED: u8 = 64;

/// The address of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A UDP socket.
    Udp(SocketAddr),
    /// An Ethernet interface.
    Eth([u8; 6]),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => address.fmt(f),
            Self::Eth([a, b, c, d, e, g]) => {
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
        }
    }
}

impl Address {
    /// The bytes of VIPL's host address: an IPv4 address and its port (6 bytes, as on the wire), an
    /// IPv6 address (16), a MAC address (6).
    pub(super) fn to_host(self) -> Vec<u8> {
        match self {
            Self::Udp(SocketAddr::V4(address)) => {
                let mut host = address.ip().octets().to_vec();
                host.extend_from_slice(&address.port().to_be_bytes());
                host
            }
            Self::Udp(SocketAddr::V6(address)) => address.ip().octets().to_vec(),
            Self::Eth(bytes) => bytes.to_vec(),
        }
    }

    /// The address that such bytes stand for, on the network of the node `self`.
    pub(super) fn of_host(self, host: &[u8]) -> Option<Self> {
        Some(match self {
            Self::Udp(SocketAddr::V4(_)) => {
                let [a, b, c, d, high, low] = *host else { return None };
                let port = u16::from_be_bytes([high, low]);
                let ip = Ipv4Addr::new(a, b, c, d);
                (port != 0 && !ip.is_unspecified()).then_some(())?;
                Self::Udp((ip, port).into())
            }
            Self::Udp(SocketAddr::V6(_)) => {
                let ip = Ipv6Addr::from(<[u8; 16]>::try_from(host).ok()?);
                (!ip.is_unspecified()).then_some(())?;
                Self::Udp((ip, DEFAULT_PORT).into())
            }
            Self::Eth(_) => {
                let bytes: [u8; 6] = host.try_into().ok()?;
                // The first bit on the wire is that of groups.
                (bytes[0] & 1 == 0).then_some(Self::Eth(bytes))?
            }
        })
    }

    /// The address that a name is: `IP`, `IP:PORT`, six hex bytes with colons.
    pub(super) fn of_name(self, name: &str) -> Option<Self> {
        match self {
            Self::Udp(own) => {
                let address = parse(name, own.port())?;
                let alike = address.is_ipv4() == own.is_ipv4() && address.port() != 0;
                alike.then_some(Self::Udp(address))
            }
            Self::Eth(_) => parse_mac(name).map(Self::Eth),
        }
    }

    /// Node N is the host N + 1 of the own /24 network, at the own port; of Ethernet, the interface
    /// whose address ends with N and is else the own one.
    pub(super) fn of_number(self, number: u8) -> Option<Self> {
        match self {
            Self::Udp(SocketAddr::V4(own)) if number < NUMBERED => {
                let [a, b, c, _] = own.ip().octets();
                Some(Self::Udp((Ipv4Addr::new(a, b, c, number + 1), own.port()).into()))
            }
            Self::Eth([a, b, c, d, e, _]) if number < NUMBERED => {
                Some(Self::Eth([a, b, c, d, e, number]))
            }
            _ => None,
        }
    }
}

/// N of `nodeN`.
pub(super) fn number_of(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("node").filter(|digits| !digits.starts_with('+'))?;
    digits.parse().ok()
}

/// Six hex bytes with colons.
pub(super) fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let byte = |part: &str| (part.len() <= 2).then(|| u8::from_str_radix(part, 16).ok())?;
    let bytes: Vec<u8> = text.split(':').map(byte).collect::<Option<_>>()?;
    bytes.try_into().ok()
}

/// The address that `IP`, `[IP]`, `IP:PORT` or `[IP]:PORT` stands for.
#[must_use]
pub fn parse(text: &str, port: u16) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse::<IpAddr>().ok().map(|ip| (ip, port).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_texts_and_bytes() {
        let own = Address::Udp("10.1.2.3:700".parse().unwrap());
        assert_eq!(own.to_host(), [10, 1, 2, 3, 2, 188]);
        assert_eq!(own.of_host(&own.to_host()), Some(own));
        for (name, text) in [
            ("10.1.2.9", Some("10.1.2.9:700")),
            ("10.1.2.9:5", Some("10.1.2.9:5")),
            ("::1", None),
            ("10.1.2.9:0", None),
            ("host", None),
        ] {
            assert_eq!(own.of_name(name).map(|a| a.to_string()).as_deref(), text, "{name}");
        }
        let numbered = |name| number_of(name).and_then(|number| own.of_number(number));
        assert_eq!(numbered("node0").unwrap().to_string(), "10.1.2.1:700");
        assert_eq!(numbered("node63").unwrap().to_string(), "10.1.2.64:700");
        assert_eq!(["node64", "node+1", "node"].map(numbered), [None; 3]);
        for bad in [&[0; 6][..], &[10, 0, 0, 1, 0, 0], &[1; 5], &[1; 16], &[]] {
            assert_eq!(own.of_host(bad), None, "{bad:?}");
        }
        let six = Address::Udp("[fe80::1]:22089".parse().unwrap());
        assert_eq!((six.of_host(&six.to_host()), six.to_host().len()), (Some(six), 16));
        assert_eq!(six.of_name("fe80::1"), Some(six));
        let mac = Address::Eth([2, 0, 0, 0, 0xab, 1]);
        assert_eq!(mac.to_string(), "02:00:00:00:ab:01");
        assert_eq!(mac.of_name("02:00:00:00:ab:01"), Some(mac));
        assert_eq!(mac.of_host(&mac.to_host()), Some(mac));
        assert_eq!(mac.of_name("02:00:00:00:ab"), None);
    }
}
