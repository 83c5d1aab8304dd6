//! What names a TCP connection for both its ends: the network that the kernel gives them, and their
//! addresses.

use core::fmt;
use core::net::{IpAddr, SocketAddr};

/// Bytes of a [`Key`] on the wire.
const BYTES: usize = 8 + 2 * (16 + 2);

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The network namespace: two of them may have the same addresses.
    network: u64,
    local: SocketAddr,
    remote: SocketAddr,
}

impl Key {
    /// The end with these addresses, in this process's network.
    pub(crate) fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        use std::os::unix::fs::MetadataExt;
        let network = std::fs::metadata("/proc/self/ns/net").map_or(0, |found| found.ino());
        Self { network, local: plain(local), remote: plain(remote) }
    }

    /// The address of this end.
    pub(crate) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// The address of the other end.
    pub(crate) const fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// The other end.
    pub(crate) const fn reversed(&self) -> Self {
        Self { network: self.network, local: self.remote, remote: self.local }
    }

    /// Whether the other end is on this machine.
    pub(crate) fn is_local(local: &SocketAddr, remote: &SocketAddr) -> bool {
        local.ip() == remote.ip() || local.ip().is_loopback() && remote.ip().is_loopback()
    }

    /// Both ends agree which of them is the lower one.
    pub(crate) fn is_lower(&self) -> bool {
        self.local < self.remote
    }

    /// Its name in a folder.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}-{}", self.network, self.local, self.remote)
    }

    /// Its form in a discriminator.
    pub(crate) fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&self.network.to_be_bytes());
        for (place, end) in bytes[8..].chunks_exact_mut(18).zip([self.local, self.remote]) {
            place[..16].copy_from_slice(&wide(end.ip()));
            place[16..].copy_from_slice(&end.port().to_be_bytes());
        }
        bytes
    }

    /// Reads [`Key::to_bytes`].
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (network, ends) = bytes.split_first_chunk::<8>()?;
        let end = |bytes: &[u8]| {
            let (address, port) = bytes.split_first_chunk::<16>()?;
            let address = IpAddr::from(*address).to_canonical();
            Some(SocketAddr::new(address, u16::from_be_bytes(port.try_into().ok()?)))
        };
        if ends.len() != 36 {
            return None;
        }
        let (local, remote) = (end(&ends[..18])?, end(&ends[18..])?);
        Some(Self { network: u64::from_be_bytes(*network), local, remote })
    }
}

/// For people.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.local, self.remote)
    }
}

/// Without scope and flow, which the two ends may not agree about.
fn plain(end: SocketAddr) -> SocketAddr {
    SocketAddr::new(end.ip().to_canonical(), end.port())
}

fn wide(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_the_wire_and_name_the_same_connection_from_both_ends() {
        for [one, other] in [["127.0.0.1:80", "127.0.0.1:40000"], ["[::1]:80", "[::1]:40000"]] {
            let key = Key::new(one.parse().unwrap(), other.parse().unwrap());
            assert_eq!(Key::from_bytes(&key.to_bytes()), Some(key));
            assert_eq!(key.reversed().reversed(), key);
            assert!(key.is_lower() != key.reversed().is_lower());
            assert!(!key.name().contains('/'));
        }
        assert_eq!(Key::from_bytes(b"short"), None);
        assert_eq!(Key::from_bytes(&[0; BYTES + 1]), None);
        let mapped = Key::new(
            "[::ffff:127.0.0.1]:80".parse().unwrap(),
            "[::ffff:127.0.0.1]:81".parse().unwrap(),
        );
        assert_eq!(
            mapped,
            Key::new("127.0.0.1:80".parse().unwrap(), "127.0.0.1:81".parse().unwrap())
        );
    }
}
