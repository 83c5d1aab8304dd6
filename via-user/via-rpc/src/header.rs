//! The two headers: the immediate data of every packet, and the eight bytes in front of every message.
//!
//! Flow control is in the immediate data (RPC over VI Architecture, 4.2), so it takes no memory:
//!
//! | bits | |
//! |---|---|
//! | 31:28 | [`Kind`] |
//! | 27:18 | sequence number of this packet of data; of the next one, if this is none |
//! | 17:8 | sequence number of the next packet of data that the sender expects |
//! | 7:0 | credits: packets of data for which the sender has receives, from that number on |
//!
//! A message is a [`MessageHeader`] and its bytes, cut into packets of data of the negotiated size.

/// Numbers of packets are counted modulo this.
const MODULUS: u16 = 1 << 10;

const KIND_LSB: u32 = 28;
const SEQUENCE_LSB: u32 = 18;
const EXPECTED_LSB: u32 = 8;

/// The sequence number of a packet of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence(u16);

impl Sequence {
    /// The number `value`, modulo 1,024.
    #[must_use]
    pub const fn new(value: u16) -> Self {
        Self(value % MODULUS)
    }

    /// The number so many packets later.
    #[must_use]
    pub const fn plus(self, packets: u16) -> Self {
        Self((self.0 + packets % MODULUS) % MODULUS)
    }

    /// Packets from `earlier` to this one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u16 {
        (self.0 + MODULUS - earlier.0) % MODULUS
    }

    const fn from_bits(bits: u32) -> Self {
        let [low, high, ..] = bits.to_le_bytes();
        Self::new(u16::from_le_bytes([low, high]))
    }
}

/// Kinds of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A fragment of a message.
    Data = 1,
    /// Request to send: the sender needs credits.
    Rts = 2,
    /// Clear to send: the answer, with credits.
    Cts = 3,
    /// First trip of the negotiation: the client's offer.
    Hello = 4,
    /// Second trip: the settings that the server has chosen.
    Accept = 5,
    /// Second trip, instead: the server speaks another revision.
    Refuse = 6,
    /// Third trip: the client has the settings.
    Ready = 7,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Data, Self::Rts, Self::Cts, Self::Hello, Self::Accept, Self::Refuse, Self::Ready];

    fn from_bits(bits: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == bits)
    }
}

/// The immediate data of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the packet is for.
    pub kind: Kind,
    /// Number of this packet of data, or of the next one.
    pub sequence: Sequence,
    /// Number of the next packet of data that the sender of this one expects.
    pub expected: Sequence,
    /// Packets of data that it has receives for, from `expected` on.
    pub credits: u8,
}

impl Header {
    /// As immediate data.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        (self.kind as u32) << KIND_LSB
            | (self.sequence.0 as u32) << SEQUENCE_LSB
            | (self.expected.0 as u32) << EXPECTED_LSB
            | self.credits as u32
    }

    /// The header in immediate data. None: the kind is none of this protocol.
    #[must_use]
    pub fn from_bits(bits: u32) -> Option<Self> {
        let kind = Kind::from_bits(bits >> KIND_LSB)?;
        let sequence = Sequence::from_bits(bits >> SEQUENCE_LSB);
        let expected = Sequence::from_bits(bits >> EXPECTED_LSB);
        Some(Self { kind, sequence, expected, credits: bits.to_le_bytes()[0] })
    }
}

/// What is in front of a message, in its first packet: eight bytes, little-endian.
///
/// | bytes | |
/// |---|---|
/// | 0 to 3 | length of the message without this header, in bytes; bit 31: the server does not answer |
/// | 4 to 7 | number of the call, which an answer repeats |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// Bytes that follow, at most [`MAX_MESSAGE`].
    pub length: u32,
    /// Number of the call. Each client counts its own.
    pub call: u32,
    /// Instead of an answer, which has no bytes then: the server has dropped the request.
    pub is_unanswered: bool,
}

/// Bytes of a [`MessageHeader`].
pub const MESSAGE_HEADER: usize = 8;
/// Most bytes of a message, whatever is negotiated.
pub const MAX_MESSAGE: u32 = 1 << 30;

const UNANSWERED: u32 = 1 << 31;

impl MessageHeader {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; MESSAGE_HEADER] {
        let flag = if self.is_unanswered { UNANSWERED } else { 0 };
        let word = u64::from(self.length | flag) | u64::from(self.call) << 32;
        word.to_le_bytes()
    }

    /// The header in front of a message. None: a message that cannot be, as it is longer than
    /// [`MAX_MESSAGE`], or no answer that has bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; MESSAGE_HEADER]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h] = bytes;
        let (first, call) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        let (length, is_unanswered) = (first & !UNANSWERED, first & UNANSWERED != 0);
        let is_possible = length <= MAX_MESSAGE && !(is_unanswered && length > 0);
        is_possible.then_some(Self { length, call, is_unanswered })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequence_numbers_wrap_around() {
        let last = Sequence::new(1023);
        assert_eq!(last.plus(1), Sequence::new(0));
        assert_eq!(last.plus(255).since(last), 255);
        assert_eq!(last.since(last.plus(1)), 1023);
    }

    #[test]
    fn unknown_kinds_are_no_headers() {
        for kind in [0_u32, 8, 15] {
            assert_eq!(Header::from_bits(kind << KIND_LSB | 0x0abc_def0), None, "{kind}");
        }
    }

    #[test]
    fn impossible_messages_have_no_header() {
        let bytes = |first: u32| {
            let mut bytes = [0; MESSAGE_HEADER];
            bytes[..4].copy_from_slice(&first.to_le_bytes());
            bytes
        };
        assert!(MessageHeader::from_bytes(bytes(MAX_MESSAGE)).is_some());
        assert_eq!(MessageHeader::from_bytes(bytes(MAX_MESSAGE + 1)), None);
        assert!(MessageHeader::from_bytes(bytes(UNANSWERED)).unwrap().is_unanswered);
        assert_eq!(MessageHeader::from_bytes(bytes(UNANSWERED | 1)), None);
    }

    proptest! {
        #[test]
        fn every_bit_of_a_header_is_read_as_it_was_written(bits: u32) {
            if let Some(header) = Header::from_bits(bits) {
                prop_assert_eq!(header.to_bits(), bits);
            }
        }

        #[test]
        fn every_message_header_is_read_as_it_was_written(bytes: [u8; MESSAGE_HEADER]) {
            if let Some(header) = MessageHeader::from_bytes(bytes) {
                prop_assert_eq!(header.to_bytes(), bytes);
            }
        }
    }
}
