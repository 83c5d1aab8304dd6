//! The first message of each side of a connection: the addresses of its node, as text with spaces
//! between. Its immediate data is [`KIND`]; that of an IP packet is its number ([`crate::sequence`]).

use std::net::IpAddr;

use crate::network::{Networks, is_node};

/// Immediate data of a hello; another revision of the protocol has another one. Numbers of packets are
/// lower.
pub const KIND: u32 = 1 << 31 | 1;
/// The longest hello, in bytes: as many addresses as a node has.
pub const LONGEST: usize = Networks::MOST * 40;

/// The hello of a node with these addresses.
#[must_use]
pub fn to_bytes(addresses: &[IpAddr]) -> Vec<u8> {
    let all: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    all.join(" ").into_bytes()
}

/// The addresses of a hello. None if it is malformed.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<Vec<IpAddr>> {
    let text = core::str::from_utf8(bytes).ok().filter(|text| text.len() <= LONGEST)?;
    let addresses: Option<Vec<IpAddr>> = text.split(' ').map(|word| word.parse().ok()).collect();
    addresses.filter(|all| all.len() <= Networks::MOST && all.iter().all(|ip| is_node(*ip)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_wire() {
        let longest = "fd07:1111:2222:3333:4444:5555:6666:7777";
        for text in ["10.7.0.1", "10.7.0.1 fd07::1", &[longest; Networks::MOST].join(" ")] {
            let addresses = parse(text.as_bytes()).unwrap();
            assert_eq!(to_bytes(&addresses), text.as_bytes());
        }
    }

    #[test]
    fn what_is_no_hello_is_none() {
        let many = ["10.7.0.1"; Networks::MOST + 1].join(" ");
        for text in ["", " ", "10.7.0.1 ", "10.7.0.1  10.7.0.2", "10.7.0", "224.0.0.1", "::", &many]
        {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(&[0xff; 8]), None);
    }
}
