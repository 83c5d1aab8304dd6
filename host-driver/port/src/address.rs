//! Network addresses: opaque to VIPL, given and understood by ports.

/// Longest host address, in bytes.
pub const HOST_ADDRESS_MAX: usize = 16;
/// Longest discriminator, in bytes.
pub const DISCRIMINATOR_MAX: usize = 64;

/// A network address: a host, and a discriminator that names a service on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetAddress {
    /// Host address. Its form is the port's.
    pub host: Vec<u8>,
    /// Discriminator. Its form is the program's.
    pub discriminator: Vec<u8>,
}

impl NetAddress {
    /// Joins both parts.
    #[must_use]
    pub fn new(host: &[u8], discriminator: &[u8]) -> Self {
        Self { host: host.to_vec(), discriminator: discriminator.to_vec() }
    }
}
