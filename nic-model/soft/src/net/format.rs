//! Packets as they are on the wire, little-endian. `docs/udp.md` has them as tables.
//!
//! Whatever arrives may be anything: nothing here panics, and what is not exactly a packet is none.

use port::StopReason;

use super::flow::{Ack, BITS_MAX};

use crate::via::vi::{reason_number, reason_of};

/// Version of the protocol, the first byte of every packet.
pub(super) const VERSION: u8 = 1;
/// Bytes before the body of a packet of a connection.
pub(super) const HEADER_BYTES: usize = 32;
/// Bytes before the data of a data packet.
pub(super) const DATA_HEADER_BYTES: usize = 64;
/// Data bytes of a packet at most.
pub(super) const DATA_MAX: usize = 32 << 10;
/// Bytes of a packet at most.
pub(super) const PACKET_MAX: usize = DATA_HEADER_BYTES + DATA_MAX;
/// Bytes of a message's authentication code.
pub(super) const CODE_BYTES: usize = 16;
/// Bytes of a connection message's packet.
pub(super) const MESSAGE_PACKET_BYTES: usize = 32 + MESSAGE_BYTES + CODE_BYTES;
/// Bytes of a challenge.
pub(super) const CHALLENGE_BYTES: usize = 32 + CODE_BYTES;
const MESSAGE_BYTES: usize = size_of::<port::connection::Message>();

const DATA: u8 = 1;
const ACK: u8 = 2;
const RESET: u8 = 3;
const MESSAGE: u8 = 4;
const CHALLENGE: u8 = 5;

/// Flags of a packet of a connection.
pub(super) mod flag {
    /// The sender waits for the acknowledgement.
    pub(in super::super) const WANTS_ACK: u16 = 1;
    /// The sender's VI takes nothing any more.
    pub(in super::super) const STOPPED: u16 = 2;
}

/// The header of a packet of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) flags: u16,
    /// The VI that it is for.
    pub(super) vi: u16,
    /// What that VI's node has named the connection.
    pub(super) token: u64,
    /// Number of a data packet.
    pub(super) sequence: u32,
    pub(super) ack: Ack,
}

/// What a data packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Send,
    Write,
    ReadRequest,
    ReadResponse,
    /// The sender's VI stopped, for this reason.
    Stop(StopReason),
}

/// What is in front of the data of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    pub(super) operation: Operation,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    /// With the last fragment.
    pub(super) immediate: Option<u32>,
    /// Number of the message, on its VI.
    pub(super) message: u32,
    /// Bytes of the whole message.
    pub(super) length: u32,
    /// Where in the message the data begins.
    pub(super) offset: u32,
    /// Region and address of an RDMA; the address is that of the whole message.
    pub(super) handle: u32,
    pub(super) address: u64,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    Data {
        header: Header,
        fragment: Fragment,
        data: &'a [u8],
    },
    Ack {
        header: Header,
        bits: &'a [u8],
    },
    /// The node does not know the connection that it named so.
    Reset {
        token: u64,
    },
    /// A message of the connection manager.
    Message {
        envelope: Envelope,
        message: &'a port::connection::Message,
    },
    /// The answer to a message that did not name the node's instance.
    Challenge {
        envelope: Envelope,
    },
}

/// What is in front of messages beside connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    /// The node that it is for, by the number that it has while it lives.
    pub(super) to: u64,
    /// The node that it is from.
    pub(super) from: u64,
    /// Number of the message; no two of a node have the same.
    pub(super) counter: u64,
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes_at(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes_at(bytes, at).map(u64::from_le_bytes)
}

/// Bytes of the packet that these bytes begin with, as its header says. Several may lie in a row.
pub(super) fn length_of(bytes: &[u8]) -> Option<usize> {
    let length = usize::from(u16_at(bytes, 6)?);
    (length >= 16 && length <= bytes.len()).then_some(length)
}

/// Why a packet is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    Version,
    Other,
}

/// Takes a packet apart. `bytes` are exactly those that [`length_of`] gives.
///
/// # Errors
/// It is of another version, or none.
pub(super) fn parse(bytes: &[u8]) -> Result<Packet<'_>, Malformed> {
    match bytes.first() {
        Some(&VERSION) => parse_version(bytes).ok_or(Malformed::Other),
        _ => Err(Malformed::Version),
    }
}

fn parse_version(bytes: &[u8]) -> Option<Packet<'_>> {
    let kind = *bytes.get(1)?;
    let exact = |length: usize| (bytes.len() == length).then_some(());
    match kind {
        DATA => {
            let (fragment, data) = (bytes.get(HEADER_BYTES..DATA_HEADER_BYTES)?, DATA_HEADER_BYTES);
            let data = bytes.get(data..).filter(|data| data.len() <= DATA_MAX)?;
            let fragment = Fragment::parse(fragment)?;
            Some(Packet::Data { header: Header::parse(bytes)?, fragment, data })
        }
        ACK => {
            let bits = bytes.get(HEADER_BYTES..).filter(|bits| bits.len() <= BITS_MAX)?;
            Some(Packet::Ack { header: Header::parse(bytes)?, bits })
        }
        RESET => {
            exact(16)?;
            Some(Packet::Reset { token: u64_at(bytes, 8)? })
        }
        MESSAGE => {
            exact(MESSAGE_PACKET_BYTES)?;
            let message = bytes.get(32..32 + MESSAGE_BYTES)?.try_into().ok()?;
            Some(Packet::Message { envelope: Envelope::parse(bytes)?, message })
        }
        CHALLENGE => {
            exact(CHALLENGE_BYTES)?;
            Some(Packet::Challenge { envelope: Envelope::parse(bytes)? })
        }
        _ => None,
    }
}

/// The authentication code at the end of a message or challenge, and what it is of.
pub(super) fn code_of(bytes: &[u8]) -> Option<(&[u8], &[u8; CODE_BYTES])> {
    bytes.split_last_chunk()
}

impl Header {
    fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            flags: u16_at(bytes, 2)?,
            vi: u16_at(bytes, 4)?,
            token: u64_at(bytes, 8)?,
            sequence: u32_at(bytes, 16)?,
            ack: Ack {
                next: u32_at(bytes, 20)?,
                received: u32_at(bytes, 24)?,
                window: u16_at(bytes, 28)?,
            },
        })
    }

    pub(super) const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Writes it in front of a packet whose body is there.
    fn write(&self, kind: u8, bytes: &mut [u8]) {
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        bytes[..2].copy_from_slice(&[VERSION, kind]);
        bytes[2..4].copy_from_slice(&self.flags.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.vi.to_le_bytes());
        bytes[6..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.token.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.ack.next.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.ack.received.to_le_bytes());
        bytes[28..30].copy_from_slice(&self.ack.window.to_le_bytes());
        bytes[30..32].fill(0);
    }

    /// Writes it in front of a data packet.
    pub(super) fn write_data(&self, packet: &mut [u8]) {
        self.write(DATA, packet);
    }

    /// Writes an acknowledgement whose bits are there.
    pub(super) fn write_ack(&self, packet: &mut [u8]) {
        self.write(ACK, packet);
    }
}

const FIRST: u8 = 1;
const LAST: u8 = 2;
const IMMEDIATE: u8 = 4;

impl Fragment {
    /// A packet that only stops.
    pub(super) const fn stop(reason: StopReason) -> Self {
        Self {
            operation: Operation::Stop(reason),
            is_first: true,
            is_last: true,
            immediate: None,
            message: 0,
            length: 0,
            offset: 0,
            handle: 0,
            address: 0,
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let [operation, flags, reason, zero, ..] = *bytes else { return None };
        let operation = match operation {
            1 => Operation::Send,
            2 => Operation::Write,
            3 => Operation::ReadRequest,
            4 => Operation::ReadResponse,
            5 => Operation::Stop(reason_of(reason)?),
            _ => return None,
        };
        if flags & !(FIRST | LAST | IMMEDIATE) != 0 || zero != 0 {
            return None;
        }
        let immediate = u32_at(bytes, 16)?;
        Some(Self {
            operation,
            is_first: flags & FIRST != 0,
            is_last: flags & LAST != 0,
            immediate: (flags & IMMEDIATE != 0).then_some(immediate),
            message: u32_at(bytes, 4)?,
            length: u32_at(bytes, 8)?,
            offset: u32_at(bytes, 12)?,
            handle: u32_at(bytes, 20)?,
            address: u64_at(bytes, 24)?,
        })
    }

    /// Writes it, behind the space for the header and before that for the data.
    ///
    /// # Panics
    /// If the packet is shorter than [`DATA_HEADER_BYTES`].
    pub(super) fn write(&self, packet: &mut [u8]) {
        let bytes = &mut packet[HEADER_BYTES..DATA_HEADER_BYTES];
        bytes[3] = 0;
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        bytes[0] = match self.operation {
            Operation::Send => 1,
            Operation::Write => 2,
            Operation::ReadRequest => 3,
            Operation::ReadResponse => 4,
            Operation::Stop(_) => 5,
        };
        bytes[1] = bit(self.is_first, FIRST)
            | bit(self.is_last, LAST)
            | bit(self.immediate.is_some(), IMMEDIATE);
        bytes[2] = match self.operation {
            Operation::Stop(reason) => reason_number(reason),
            _ => 0,
        };
        let words = [self.message, self.length, self.offset, self.immediate.unwrap_or(0)];
        for (to, word) in bytes[4..20].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes[20..24].copy_from_slice(&self.handle.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.address.to_le_bytes());
    }
}

impl Envelope {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let [to, from, counter] = [u64_at(bytes, 8)?, u64_at(bytes, 16)?, u64_at(bytes, 24)?];
        Some(Self { to, from, counter })
    }

    fn front<const N: usize>(&self, kind: u8) -> [u8; N] {
        let mut bytes = [0; N];
        bytes[..2].copy_from_slice(&[VERSION, kind]);
        bytes[6..8].copy_from_slice(&u16::try_from(N).unwrap_or(0).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.to.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.from.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.counter.to_le_bytes());
        bytes
    }

    /// A message's packet, without its code.
    pub(super) fn message(
        &self,
        message: &port::connection::Message,
    ) -> [u8; MESSAGE_PACKET_BYTES] {
        let mut bytes = self.front(MESSAGE);
        bytes[32..32 + MESSAGE_BYTES].copy_from_slice(message);
        bytes
    }

    /// A challenge, without its code.
    pub(super) fn challenge(&self) -> [u8; CHALLENGE_BYTES] {
        self.front(CHALLENGE)
    }
}

/// The packet that says that a connection is not known.
pub(super) fn reset(token: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&[VERSION, RESET]);
    bytes[6] = 16;
    bytes[8..].copy_from_slice(&token.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: Header = Header {
        flags: flag::WANTS_ACK,
        vi: 7,
        token: 0x0123_4567_89ab_cdef,
        sequence: 99,
        ack: Ack { next: 3, received: 2, window: 64 },
    };

    #[test]
    fn packets_are_what_they_were_written_as() {
        let fragment = Fragment {
            operation: Operation::Write,
            is_first: true,
            is_last: false,
            immediate: Some(5),
            message: 6,
            length: 70_000,
            offset: 1_024,
            handle: 0x8000_0001,
            address: u64::MAX - 3,
        };
        let mut packet = vec![0xff; DATA_HEADER_BYTES];
        fragment.write(&mut packet);
        packet.extend_from_slice(b"data");
        HEADER.write_data(&mut packet);
        assert_eq!(length_of(&packet), Some(packet.len()));
        let expected = Packet::Data { header: HEADER, fragment, data: b"data" };
        assert_eq!(parse(&packet), Ok(expected));
        let mut packet = vec![0; HEADER_BYTES + 2];
        packet[HEADER_BYTES] = 3;
        HEADER.write_ack(&mut packet);
        assert_eq!(parse(&packet), Ok(Packet::Ack { header: HEADER, bits: &[3, 0] }));
        let envelope = Envelope { to: 1, from: 2, counter: 3 };
        let packet = envelope.message(&[9; 48]);
        assert_eq!(parse(&packet), Ok(Packet::Message { envelope, message: &[9; 48] }));
        assert_eq!(parse(&envelope.challenge()), Ok(Packet::Challenge { envelope }));
        assert_eq!(parse(&reset(8)), Ok(Packet::Reset { token: 8 }));
    }

    #[test]
    fn packets_that_are_too_short_too_long_or_of_another_version_are_none() {
        let mut packet = vec![0; DATA_HEADER_BYTES];
        Fragment::stop(StopReason::Disconnected).write(&mut packet);
        HEADER.write_data(&mut packet);
        for length in 0..packet.len() {
            assert_eq!(length_of(&packet[..length]), None);
            assert!(parse(&packet[..length]).is_err(), "{length}");
        }
        packet.resize(PACKET_MAX + 1, 0);
        assert_eq!(parse(&packet), Err(Malformed::Other));
        packet[0] = 2;
        assert_eq!(parse(&packet), Err(Malformed::Version));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_bytes_are_too_much_for_the_parser(mut bytes: Vec<u8>, kind in 0_u8..8) {
            let _ = (parse(&bytes), length_of(&bytes), code_of(&bytes));
            if bytes.len() > 1 {
                bytes[..2].copy_from_slice(&[VERSION, kind]);
                let _ = parse(&bytes);
            }
        }
    }
}
