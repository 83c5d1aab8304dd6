//! Event queues: rings in host memory that the device fills and the program empties.
//!
//! ```text
//! event (16 bytes)  dword 0 kind 7:0 | flags 15:8 | index 31:16
//!                   dword 1, dword 2 by kind
//!                   dword 3 phase 31 | zero
//! narrow queue: entries of 16 bytes; wide queue: entries of 64 bytes, 48 bytes of message (or zero), then the event
//! ```
//! The phase is 1 on the first pass over a zeroed ring and flips on each pass.

/// Size of an event record, and of a narrow entry, in bytes.
pub const EVENT_BYTES: u64 = 16;
/// Size of a wide entry, in bytes.
pub const WIDE_ENTRY_BYTES: u64 = 64;
/// Message bytes of a wide entry.
pub const MESSAGE_BYTES: u64 = 48;
/// The phase bit of dword 3.
pub const PHASE_BIT: u32 = 31;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// index: VI; dw1: how many send descriptors completed since the last such event of this VI.
    SendComplete = 1,
    /// index: VI; dw1: how many receive descriptors completed since the last such event of this VI.
    RecvComplete = 2,
    /// index: VI; dw1: stop reason 7:0, peer's reason 15:8 (only for Refused), queue 16 (1:
    /// receive); dw2: status bits that belong to the first descriptor that is not done. To the
    /// queue in `ERROR_QUEUE`.
    ViError = 3,
    /// index: source node 7:0, source domain 15:8 (zero until domains send); the 48 bytes precede
    /// the record.
    Message = 4,
    /// index: peer node; dw1: the peer's epoch. To the queue in `ERROR_QUEUE`.
    PeerUp = 5,
    /// index: peer node; dw1: reason, see [`PeerDownReason`]. To the queue in `ERROR_QUEUE`.
    PeerDown = 6,
    /// index: peer node; a message to it was refused (no queue, or its queue was full). To the
    /// queue in `ERROR_QUEUE`.
    MessageRefused = 7,
}

impl Kind {
    /// The kind with this number.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        Some(match bits {
            1 => Self::SendComplete,
            2 => Self::RecvComplete,
            3 => Self::ViError,
            4 => Self::Message,
            5 => Self::PeerUp,
            6 => Self::PeerDown,
            7 => Self::MessageRefused,
            _ => return None,
        })
    }
}

/// Why a channel closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerDownReason {
    /// The driver closed it.
    Closed = 0,
    /// No acknowledgement after all retries, or nothing received for as many keepalive periods.
    Dead = 1,
    /// The peer restarted: a SYN with another epoch.
    Restarted = 2,
    /// The peer sent RST.
    Reset = 3,
    /// The peer speaks another link version.
    Version = 4,
}

/// An event record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Event {
    /// See [`Kind`].
    pub kind: u8,
    /// Zero.
    pub flags: u8,
    /// VI or peer.
    pub index: u16,
    /// By kind.
    pub word1: u32,
    /// By kind.
    pub word2: u32,
    /// Phase of the ring pass.
    pub phase: bool,
}

impl Event {
    /// The record's four dwords.
    #[must_use]
    pub const fn to_words(self) -> [u32; 4] {
        [
            self.kind as u32 | (self.flags as u32) << 8 | (self.index as u32) << 16,
            self.word1,
            self.word2,
            (self.phase as u32) << PHASE_BIT,
        ]
    }

    /// Reads a record.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "each field is shifted to its place")]
    pub const fn from_words(w: [u32; 4]) -> Self {
        Self {
            kind: w[0] as u8,
            flags: (w[0] >> 8) as u8,
            index: (w[0] >> 16) as u16,
            word1: w[1],
            word2: w[2],
            phase: w[3] >> PHASE_BIT != 0,
        }
    }
}
