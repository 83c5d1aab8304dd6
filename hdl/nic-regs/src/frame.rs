//! Link frames: a 3-beat header, payload padded to a beat, one CRC beat. Beats are 8 bytes,
//! little-endian; stream byte n is bits 8n+7..8n.
//!
//! ```text
//! beat 0  version 7:0 | type 15:8 | payload length 31:16 | source node 39:32 | destination node 47:40 | tag 63:48
//! beat 1  destination VI 15:0 | source VI 31:16 | connection id 47:32 | flags 55:48 | credit 63:56
//! beat 2  sequence 15:0 | acknowledgement 31:16 | word 63:32
//! ...     payload, zero-padded to a whole beat; of an RDMA write or read request it begins with an
//!         RDMA header: remote address 8 | remote handle 4 | length of the whole message 4
//! last    CRC-32 31:0 | zero 63:32
//! ```

/// Version of the frame format.
pub const VERSION: u8 = 1;
/// Bytes of a beat.
pub const BEAT_BYTES: usize = 8;
/// Beats of the header.
pub const HEADER_BEATS: usize = 3;
/// Payload of a message frame, in bytes.
pub const MESSAGE_BYTES: usize = 48;
/// The RDMA header in front of the data of an RDMA write, and all of a read request, in bytes.
pub const RDMA_HEADER_BYTES: usize = 16;

/// Frame types. Types below 16 go to the receive engine, the others end in the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Part of a send. Sequenced on the reliable levels.
    Data = 1,
    /// VI-level acknowledgement (Reliable Reception). Sequenced.
    ViAck = 2,
    /// A VI refused a message; word: stop reason. Sequenced.
    ViRefuse = 3,
    /// A VI disconnected. Sequenced.
    Fin = 4,
    /// Out-of-band message of 48 bytes; destination VI field: domain. Sequenced.
    Message = 5,
    /// Part of an RDMA write: RDMA header and data; flags and sequence as in Data frames, the word
    /// only for immediate data. Each names the place of its own first byte.
    RdmaWrite = 6,
    /// An RDMA read: RDMA header. Sequenced.
    ReadRequest = 7,
    /// Part of the answer to an RDMA read: data; word: bytes of the message that follow this frame.
    /// Sequenced; flags FIRST and LAST are not used.
    ReadResponse = 8,
    /// Pure acknowledgement; flag NAK asks for retransmission from `acknowledgement`.
    Ack = 16,
    /// Opens a channel; word: sender's epoch, acknowledgement field: its largest link payload, tag:
    /// zero.
    Syn = 17,
    /// Answers a SYN; word: sender's epoch, tag: the channel's.
    SynAck = 18,
    /// The channel no longer exists; tag: of the frame that is refused, or of the channel that is closed.
    Rst = 19,
    /// A message was refused. Not sequenced, best effort.
    MessageRefused = 20,
}

impl Type {
    /// The type with this number.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            1 => Self::Data,
            2 => Self::ViAck,
            3 => Self::ViRefuse,
            4 => Self::Fin,
            5 => Self::Message,
            6 => Self::RdmaWrite,
            7 => Self::ReadRequest,
            8 => Self::ReadResponse,
            16 => Self::Ack,
            17 => Self::Syn,
            18 => Self::SynAck,
            19 => Self::Rst,
            20 => Self::MessageRefused,
            _ => return None,
        })
    }

    /// Longest payload of a frame of this type that a receiver accepts, in bytes.
    #[must_use]
    pub const fn payload_max(self) -> usize {
        match self {
            Self::RdmaWrite => RDMA_HEADER_BYTES + crate::limits::LINK_PAYLOAD_BYTES,
            _ => crate::limits::LINK_PAYLOAD_BYTES,
        }
    }
}

/// The 16 bytes in front of the data of an RDMA write, and all of a read request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RdmaHeader {
    /// Virtual address of this frame's first byte on the target's node.
    pub address: u64,
    /// Memory handle on the target's node.
    pub handle: u32,
    /// Length of the whole message, in bytes.
    pub total: u32,
}

impl RdmaHeader {
    /// The two beats.
    #[must_use]
    pub const fn to_beats(self) -> [u64; 2] {
        [self.address, self.handle as u64 | (self.total as u64) << 32]
    }

    /// Reads two beats.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "each field is shifted to its place")]
    pub const fn from_beats(b: [u64; 2]) -> Self {
        Self { address: b[0], handle: b[1] as u32, total: (b[1] >> 32) as u32 }
    }
}

/// Flag bits.
pub mod flag {
    /// First frame of a message; word: the message's total length unless LAST is set too.
    pub const FIRST: u8 = 0x01;
    /// Last frame of a message; word: immediate data if IMMEDIATE is set, else zero.
    pub const LAST: u8 = 0x02;
    /// Immediate data is present (LAST frames only).
    pub const IMMEDIATE: u8 = 0x04;
    /// The sequence field is a channel sequence number. Otherwise (Unreliable data) it holds the
    /// message number in 15:8 and the fragment number in 7:0.
    pub const SEQUENCED: u8 = 0x08;
    /// The receiver's VI acknowledges the message (Reliable Reception).
    pub const RECEPTION: u8 = 0x10;
    /// Ack frames: a negative acknowledgement, a sequenced frame is missing.
    pub const NAK: u8 = 0x20;
}

/// A decoded header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// See [`VERSION`].
    pub version: u8,
    /// See [`Type`].
    pub kind: u8,
    /// Payload bytes, 0 to [`Type::payload_max`].
    pub length: u16,
    /// Source node.
    pub src_node: u8,
    /// Destination node.
    pub dst_node: u8,
    /// Epoch tag: exclusive or of the low halves of both epochs.
    pub tag: u16,
    /// Destination VI, or domain of a message.
    pub dst_vi: u16,
    /// Source VI.
    pub src_vi: u16,
    /// Connection id.
    pub connection: u16,
    /// See [`flag`].
    pub flags: u8,
    /// Credit limit, cumulative, modulo 256 (`docs/contract.md` 7.4).
    pub credit: u8,
    /// Sequence number, or message and fragment number.
    pub sequence: u16,
    /// Next sequence number expected from the peer.
    pub acknowledgement: u16,
    /// Immediate data, total length, epoch or reason, by type and flags.
    pub word: u32,
}

impl Header {
    /// The three header beats.
    #[must_use]
    pub const fn to_beats(self) -> [u64; HEADER_BEATS] {
        [
            self.version as u64
                | (self.kind as u64) << 8
                | (self.length as u64) << 16
                | (self.src_node as u64) << 32
                | (self.dst_node as u64) << 40
                | (self.tag as u64) << 48,
            self.dst_vi as u64
                | (self.src_vi as u64) << 16
                | (self.connection as u64) << 32
                | (self.flags as u64) << 48
                | (self.credit as u64) << 56,
            self.sequence as u64 | (self.acknowledgement as u64) << 16 | (self.word as u64) << 32,
        ]
    }

    /// Reads three header beats.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "each field is shifted to its place")]
    pub const fn from_beats(b: [u64; HEADER_BEATS]) -> Self {
        Self {
            version: b[0] as u8,
            kind: (b[0] >> 8) as u8,
            length: (b[0] >> 16) as u16,
            src_node: (b[0] >> 32) as u8,
            dst_node: (b[0] >> 40) as u8,
            tag: (b[0] >> 48) as u16,
            dst_vi: b[1] as u16,
            src_vi: (b[1] >> 16) as u16,
            connection: (b[1] >> 32) as u16,
            flags: (b[1] >> 48) as u8,
            credit: (b[1] >> 56) as u8,
            sequence: b[2] as u16,
            acknowledgement: (b[2] >> 16) as u16,
            word: (b[2] >> 32) as u32,
        }
    }

    /// Beats of the payload after padding.
    #[must_use]
    pub const fn payload_beats(self) -> usize {
        (self.length as usize).div_ceil(BEAT_BYTES)
    }

    /// Credits that a staged frame with this header takes: its payload beats in units of
    /// [`crate::limits::CREDIT_BEATS`], rounded up, and one at least.
    #[must_use]
    pub const fn credits(self) -> usize {
        let units = self.payload_beats().div_ceil(crate::limits::CREDIT_BEATS);
        if units == 0 { 1 } else { units }
    }
}

/// Reflected polynomial of CRC-32 (IEEE 802.3).
pub const CRC_POLYNOMIAL: u32 = 0xEDB8_8320;
/// Start value of the CRC register.
pub const CRC_INIT: u32 = 0xFFFF_FFFF;

/// One beat of CRC-32, byte 0 first. The frame's CRC is the bitwise complement of the register
/// after the last beat.
#[must_use]
pub const fn crc_step(mut state: u32, beat: u64) -> u32 {
    let mut i = 0;
    while i < 8 {
        state ^= ((beat >> (8 * i)) & 0xff) as u32;
        let mut bit = 0;
        while bit < 8 {
            state = if state & 1 != 0 { (state >> 1) ^ CRC_POLYNOMIAL } else { state >> 1 };
            bit += 1;
        }
        i += 1;
    }
    state
}
