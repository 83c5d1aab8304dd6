//! Addresses of this node, and the networks that they are in.

use core::fmt;
use core::str::FromStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address of this node and the length of its network's prefix, as in `10.7.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Why a text is no address of a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' {why}; an address is written like 10.7.0.1/24 or fd07::1/64")]
pub struct BadNetwork {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// The bits of an address of so many bits that are not in the prefix.
const fn host_mask(bits: u32, prefix: u8) -> u128 {
    let all = u128::MAX >> (128 - bits);
    if prefix as u32 >= bits { 0 } else { all >> prefix }
}

/// An address as a number, and how many bits it has.
const fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (address.to_bits() as u128, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

/// The address that has these bits, of the family of `like`; higher ones do not count.
#[expect(clippy::cast_possible_truncation, reason = "an IPv4 address has 32 bits")]
const fn address(like: IpAddr, bits: u128) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
    }
}

impl Network {
    /// The address of this node.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Bits of the network's prefix.
    #[must_use]
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// The mask of the network, as an address.
    #[must_use]
    pub const fn netmask(&self) -> IpAddr {
        address(self.address, !host_mask(number(self.address).1, self.prefix))
    }

    /// The network's lowest address, which names it.
    #[must_use]
    pub const fn base(&self) -> IpAddr {
        let (own, bits) = number(self.address);
        address(self.address, own & !host_mask(bits, self.prefix))
    }

    /// Its highest address: of an IPv4 network that has one, the broadcast address.
    const fn top(&self) -> IpAddr {
        let (own, bits) = number(self.address);
        address(self.address, own | host_mask(bits, self.prefix))
    }

    /// Whether an address is in the network.
    #[must_use]
    pub fn contains(&self, other: IpAddr) -> bool {
        let ((own, bits), (other, others)) = (number(self.address), number(other));
        bits == others && (own ^ other) & !host_mask(bits, self.prefix) == 0
    }

    /// Whether an IPv4 network this small has no broadcast address (RFC 3021).
    const fn is_without_broadcast(&self) -> bool {
        self.address.is_ipv6() || self.prefix > 30
    }

    fn fault(&self) -> Option<&'static str> {
        let is_v4 = self.address.is_ipv4();
        if self.prefix == 0 || u32::from(self.prefix) > number(self.address).1 {
            Some(if is_v4 {
                "has no prefix of 1 to 32 bits"
            } else {
                "has no prefix of 1 to 128 bits"
            })
        } else if !is_node(self.address) {
            Some("cannot be the address of a node")
        } else if !self.is_without_broadcast() && self.address == self.base() {
            Some("is the address of the network itself")
        } else if !self.is_without_broadcast() && self.address == self.top() {
            Some("is the broadcast address of its network")
        } else {
            None
        }
    }
}

/// Whether an address can be that of a node on a network.
pub(crate) fn is_node(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback() || is_broadcast)
}

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let bad = |why| BadNetwork { text: text.chars().take(64).collect(), why };
        let (address, prefix) = text.split_once('/').ok_or_else(|| bad("has no prefix"))?;
        let address = address.parse().map_err(|_| bad("begins with no IP address"))?;
        let digits = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|_| digits);
        let prefix = prefix.ok_or_else(|| bad("ends with no number of bits"))?;
        let network = Self { address, prefix };
        network.fault().map_or(Ok(network), |why| Err(bad(why)))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// All addresses of this node; the network of the first one names the LAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

impl Networks {
    /// The most addresses of a node.
    pub const MOST: usize = 16;

    /// The addresses of a node, in order. None for no address, or more than [`Networks::MOST`].
    #[must_use]
    pub fn new(networks: Vec<Network>) -> Option<Self> {
        (1..=Self::MOST).contains(&networks.len()).then_some(Self(networks))
    }

    /// Each.
    pub fn iter(&self) -> impl Iterator<Item = &Network> {
        self.0.iter()
    }

    /// The addresses alone.
    #[must_use]
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.0.iter().map(Network::address).collect()
    }

    /// The discriminator under which the nodes of this LAN wait for each other, such as
    /// `lane:10.7.0.0/24`.
    #[must_use]
    pub fn discriminator(&self) -> String {
        let first = &self.0[0];
        format!("lane:{}/{}", first.base(), first.prefix)
    }

    /// Whether an address is this node's.
    #[must_use]
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.address == address)
    }

    /// Whether an address is in one of the networks.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Whether packets to an address are for every node: multicast and broadcast.
    #[must_use]
    pub fn is_group(&self, address: IpAddr) -> bool {
        let is_broadcast =
            |network: &Network| !network.is_without_broadcast() && network.top() == address;
        address.is_multicast()
            || address == IpAddr::V4(Ipv4Addr::BROADCAST)
            || self.0.iter().any(is_broadcast)
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(Network::to_string).collect();
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn networks_have_masks_and_members() {
        for (text, base, mask, inside, outside) in [
            ("10.7.0.1/24", "10.7.0.0", "255.255.255.0", "10.7.0.254", "10.7.1.1"),
            ("10.7.0.1/1", "0.0.0.0", "128.0.0.0", "127.0.0.1", "128.0.0.1"),
            ("10.7.0.1/32", "10.7.0.1", "255.255.255.255", "10.7.0.1", "10.7.0.2"),
            ("fd07::1/64", "fd07::", "ffff:ffff:ffff:ffff::", "fd07::2", "fd07:0:0:1::1"),
            (
                "fd07::1/128",
                "fd07::1",
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                "fd07::1",
                "fd07::2",
            ),
            ("fd07::1/1", "8000::", "8000::", "ffff::", "7fff::"),
        ] {
            let network = network(text);
            assert_eq!((network.base(), network.netmask()), (ip(base), ip(mask)), "{text}");
            assert!(network.contains(ip(inside)) && !network.contains(ip(outside)), "{text}");
            assert_eq!(network.to_string(), text);
        }
        assert!(!network("10.7.0.1/24").contains(ip("::ffff:10.7.0.2")));
    }

    #[test]
    fn what_is_no_address_of_a_node_is_refused() {
        for (text, why) in [
            ("10.7.0.1", "no prefix"),
            ("10.7.0/24", "no IP address"),
            ("10.7.0.1/", "no number of bits"),
            ("10.7.0.1/+8", "no number of bits"),
            ("10.7.0.1/0", "1 to 32"),
            ("10.7.0.1/33", "1 to 32"),
            ("fd07::1/129", "1 to 128"),
            ("10.7.0.0/24", "the network itself"),
            ("10.7.0.255/24", "the broadcast address"),
            ("224.0.0.1/24", "cannot be"),
            ("::/64", "cannot be"),
            ("ff02::1/64", "cannot be"),
            ("127.0.0.1/8", "cannot be"),
        ] {
            let error = text.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{error}");
        }
        assert!("10.7.0.0/31".parse::<Network>().is_ok());
    }

    #[test]
    fn groups_are_multicast_and_broadcast() {
        let networks = Networks::new(vec![
            network("10.7.0.1/24"),
            network("fd07::1/64"),
            network("10.8.0.0/31"),
        ]);
        let networks = networks.unwrap();
        for group in ["10.7.0.255", "255.255.255.255", "224.0.0.251", "ff02::1"] {
            assert!(networks.is_group(ip(group)), "{group}");
        }
        for single in ["10.7.0.2", "10.8.0.1", "fd07::2", "fd07::ffff:ffff:ffff:ffff", "10.9.0.255"]
        {
            assert!(!networks.is_group(ip(single)), "{single}");
        }
        assert!(networks.is_own(ip("fd07::1")) && !networks.is_own(ip("fd07::2")));
        assert!(networks.contains(ip("10.7.0.9")) && !networks.contains(ip("10.9.0.1")));
        assert_eq!(networks.discriminator(), "lane:10.7.0.0/24");
        assert_eq!(networks.to_string(), "10.7.0.1/24, fd07::1/64, 10.8.0.0/31");
        assert_eq!(Networks::new(Vec::new()), None);
    }
}
