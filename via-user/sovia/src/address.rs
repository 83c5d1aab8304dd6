//! Addresses of streams: a host of VIA and a port, in the manner of `std::net::SocketAddr`.

use core::fmt;
use core::str::FromStr;

use vipl::NetAddress;

use crate::error::Error;

/// What the discriminator of a port begins with.
const PREFIX: &str = "sovia:";

/// A port of a host. As text the host is its bytes: `[02:56:49:41:00:01]:80`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// The local address of the host's NIC.
    pub host: Vec<u8>,
    /// The port. 0 where a listener asks for any, and for a side that has none.
    pub port: u16,
}

impl Address {
    /// A port of a host.
    #[must_use]
    pub fn new(host: &[u8], port: u16) -> Self {
        Self { host: host.to_vec(), port }
    }

    /// The address of VIA: the port is its discriminator.
    #[must_use]
    pub fn to_net(&self) -> NetAddress {
        NetAddress::new(&self.host, format!("{PREFIX}{}", self.port).as_bytes())
    }

    /// The address of streams for one of VIA. A discriminator that is no port's is port 0.
    #[must_use]
    pub fn from_net(address: &NetAddress) -> Self {
        let text = core::str::from_utf8(&address.discriminator).ok();
        let port = text.and_then(|text| text.strip_prefix(PREFIX)?.parse().ok());
        Self { host: address.host.clone(), port: port.unwrap_or(0) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, byte) in self.host.iter().enumerate() {
            let colon = if index > 0 { ":" } else { "" };
            write!(f, "{colon}{byte:02x}")?;
        }
        write!(f, "]:{}", self.port)
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || Error::Address(text.to_owned());
        let (host, port) = split(text).ok_or_else(bad)?;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let byte = |digits: &str| {
            let is_byte = digits.len() == 2 && digits.bytes().all(|c| c.is_ascii_hexdigit());
            is_byte.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
        };
        let host: Option<Vec<u8>> = inner.ok_or_else(bad)?.split(':').map(byte).collect();
        Ok(Self { host: host.ok_or_else(bad)?, port })
    }
}

/// The host and the port of a text.
pub(crate) fn split(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let is_number = !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit());
    let port = is_number.then(|| port.parse().ok()).flatten()?;
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_address_is_read_as_it_is_written(
            host in prop::collection::vec(any::<u8>(), 1..16),
            port: u16,
        ) {
            let address = Address { host, port };
            prop_assert_eq!(&address.to_string().parse::<Address>().unwrap(), &address);
            prop_assert_eq!(&Address::from_net(&address.to_net()), &address);
        }

        #[test]
        fn any_text_is_an_address_or_an_error_that_names_it(text in "[0-9a-f:\\[\\]+ ]{0,12}") {
            match text.parse::<Address>() {
                Ok(address) => prop_assert!(!address.host.is_empty()),
                Err(error) => prop_assert!(error.to_string().contains(&text)),
            }
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        assert_eq!("[02:0a]:80".parse::<Address>().unwrap(), Address::new(&[2, 10], 80));
        for bad in
            ["", ":80", "[]:80", "[2]:80", "[02:]:80", "[02]", "[02]:", "[02]:65536", "02:80"]
        {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
        for other in [&b"viaduct run"[..], b"", b"sovia:", b"sovia:x", b"sovia:65536"] {
            assert_eq!(Address::from_net(&NetAddress::new(&[1], other)), Address::new(&[1], 0));
        }
    }
}
