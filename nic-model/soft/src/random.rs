//! Numbers by chance.

use rustix::rand::{GetRandomFlags, getrandom};

/// A number that nobody has, as far as chance goes. It is the system's, so that a child after fork has
/// others than its parent.
pub(crate) fn random_u64() -> u64 {
    let mut bytes = [0; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        // It fails only if a signal comes first.
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty()).unwrap_or(0);
    }
    u64::from_le_bytes(bytes)
}
