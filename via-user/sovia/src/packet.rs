//! What a packet is for. It is in the 32 bits of immediate data, so that it costs no memory (SOVIA, 4.2).
//!
//! | bits | |
//! |---|---|
//! | 31:28 | [`Kind`] |
//! | 27:16 | zero |
//! | 15:0 | receives that the sender of the packet has posted again: so many more packets of data fit |

const KIND_LSB: u32 = 28;

/// Kinds of packets. Those of SOVIA, and those of Stream Sockets (High Performance Sockets and RPC, 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes of the stream.
    Data = 1,
    /// Acknowledgements alone.
    Ack = 2,
    /// The first packet of each side: its settings ([`crate::wakeup::Wakeup`]).
    Wakeup = 3,
    /// No bytes follow.
    Fin = 4,
    /// The other side's Fin has arrived.
    FinAck = 5,
    /// Stream Sockets: the sender needs acknowledgements.
    CreditRequest = 6,
    /// Stream Sockets: here they are.
    CreditResponse = 7,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Data,
        Self::Ack,
        Self::Wakeup,
        Self::Fin,
        Self::FinAck,
        Self::CreditRequest,
        Self::CreditResponse,
    ];
}

/// The immediate data of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the packet is for.
    pub kind: Kind,
    /// Receives that were posted again.
    pub acknowledged: u16,
}

impl Header {
    /// As immediate data.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        (self.kind as u32) << KIND_LSB | self.acknowledged as u32
    }

    /// None: no packet of this protocol.
    #[must_use]
    pub fn from_bits(bits: u32) -> Option<Self> {
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u32 == bits >> KIND_LSB)?;
        let acknowledged = u16::try_from(bits & !(!0 << KIND_LSB)).ok()?;
        Some(Self { kind, acknowledged })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_is_read_as_it_was_written_and_nothing_else_is_one() {
        for kind in Kind::ALL {
            for acknowledged in [0, 1, 0x8000, u16::MAX] {
                let header = Header { kind, acknowledged };
                assert_eq!(Header::from_bits(header.to_bits()), Some(header));
                for bit in 16..KIND_LSB {
                    assert_eq!(Header::from_bits(header.to_bits() | 1 << bit), None);
                }
            }
        }
        for kind in [0_u32, 8, 15] {
            assert_eq!(Header::from_bits(kind << KIND_LSB), None);
        }
    }
}
