//! The first packet of each side: what it is set to (SOVIA 4.2). Sides that are set differently do not
//! understand each other's acknowledgements, so they do not talk.
//!
//! | bytes | |
//! |---|---|
//! | 0 to 3 | `SOVI` |
//! | 4, 5 | revision of the protocol |
//! | 6, 7 | window |
//! | 8, 9 | 0: a window; 1: credits |
//! | 10, 11 | acknowledgements that are due at once |
//! | 12 to 15 | most bytes of a packet |
//!
//! Numbers are little-endian.

use crate::policy::{FlowControl, Policy};

/// Bytes of the packet.
pub const BYTES: usize = 16;
/// Revision of the protocol.
pub const REVISION: u16 = 1;

/// The packet of a side with these settings.
#[must_use]
pub fn to_bytes(policy: &Policy) -> [u8; BYTES] {
    let (kind, due) = match policy.flow {
        FlowControl::Window { delayed } => (0_u16, delayed),
        FlowControl::Credits { low } => (1, low),
    };
    let mut bytes = [0; BYTES];
    bytes[..4].copy_from_slice(b"SOVI");
    for (place, value) in [(4, REVISION), (6, policy.window), (8, kind), (10, due)] {
        bytes[place..place + 2].copy_from_slice(&value.to_le_bytes());
    }
    bytes[12..].copy_from_slice(&policy.mtu.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_that_both_sides_must_share_is_in_the_packet() {
        let base = Policy::DACKS;
        let others = [
            Policy { window: 31, ..base },
            Policy { mtu: 1 << 14, ..base },
            Policy { flow: FlowControl::Window { delayed: 15 }, ..base },
            Policy { flow: FlowControl::Credits { low: 16 }, ..base },
        ];
        for other in others {
            assert_ne!(to_bytes(&other), to_bytes(&base), "{other:?}");
        }
        // How a side sends is its own affair.
        assert_eq!(to_bytes(&Policy { combine: None, ..Policy::COMBINE }), to_bytes(&base));
        let wanted = b"SOVI\x01\x00\x20\x00\x00\x00\x10\x00\x00\x80\x00\x00";
        assert_eq!(&to_bytes(&base), wanted);
    }
}
