//! BAR2: one 4 KiB doorbell page for each domain, and the doorbells in it.
//!
//! Token and event doorbells are whole, aligned 8-byte writes. A push line is written in aligned
//! multiples of 8 bytes, in rising order. Anything else in BAR2 is dropped and logged as
//! [`crate::counter::ErrorCode::BadDoorbell`]; reads return zero.

/// Size of one domain's page, in bytes.
pub const PAGE_BYTES: u64 = 4096;
/// Size of BAR2, in bytes.
pub const BAR_SIZE: u64 = PAGE_BYTES * crate::limits::DOMAIN_COUNT as u64;
/// Offset of the token doorbell in its page.
pub const TOKEN_OFFSET: u64 = 0x000;
/// Offset of the event doorbell in its page.
pub const EVENT_OFFSET: u64 = 0x008;
/// Offset of the first push line in its page.
pub const PUSH_OFFSET: u64 = 0x100;
/// Push lines of a page. All are alike. Software gives a line to one push at a time, since the words
/// of two pushes must not mix in a line (`docs/contract.md` 2.5).
pub const PUSH_LINE_COUNT: u64 = 4;
/// Size of a push line, in bytes.
pub const PUSH_LINE_BYTES: u64 = 64;
/// Inline data of a push at most, in bytes.
pub const PUSH_DATA_BYTES: usize = 40;
/// Cycles without a word of a push after which only its token counts.
pub const PUSH_SILENCE_CYCLES: u64 = 64;

/// Which of a VI's two work queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Queue {
    /// The send queue.
    Send = 0,
    /// The receive queue.
    Recv = 1,
}

/// Token doorbell: one descriptor was posted.
///
/// ```text
/// 63    62        58 57               32 31         16 15     0
/// queue | segments  | offset / 64       | region index | VI    |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// VI number.
    pub vi: u16,
    /// Index of the region that holds the descriptor (the handle without its generation).
    pub region: u16,
    /// Descriptor's distance from the region's base rounded down to 64 bytes, in units of 64 bytes
    /// (26 bits).
    pub offset_64: u32,
    /// SegCount of the descriptor, a hint for the fetch (5 bits).
    pub segments: u8,
    /// Work queue.
    pub queue: Queue,
}

impl Token {
    /// Lowest bit of the region index.
    pub const REGION_LSB: u32 = 16;
    /// Lowest bit of the offset.
    pub const OFFSET_LSB: u32 = 32;
    /// Width of the offset.
    pub const OFFSET_BITS: u32 = 26;
    /// Lowest bit of the segment count.
    pub const SEGMENTS_LSB: u32 = 58;
    /// The queue bit.
    pub const QUEUE_BIT: u32 = 63;

    /// The value to write; an offset or a count that does not fit is cut (the device then rejects
    /// the descriptor).
    #[must_use]
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.vi as u64
            | (self.region as u64) << Self::REGION_LSB
            | (self.offset_64 as u64 & ((1 << Self::OFFSET_BITS) - 1)) << Self::OFFSET_LSB
            | (self.segments as u64 & 0x1f) << Self::SEGMENTS_LSB
            | (self.queue as u64) << Self::QUEUE_BIT
    }

    /// What a written value says.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "each field is masked to its width")]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            vi: bits as u16,
            region: (bits >> Self::REGION_LSB) as u16,
            offset_64: ((bits >> Self::OFFSET_LSB) & ((1 << Self::OFFSET_BITS) - 1)) as u32,
            segments: ((bits >> Self::SEGMENTS_LSB) & 0x1f) as u8,
            queue: if bits >> Self::QUEUE_BIT == 0 { Queue::Send } else { Queue::Recv },
        }
    }
}

/// Words of a push in front of its data.
pub const PUSH_HEADER_WORDS: usize = 3;
/// Words of a push line.
#[allow(clippy::cast_possible_truncation, reason = "8")]
pub const PUSH_WORDS: usize = PUSH_LINE_BYTES as usize / 8;

/// Word 1 of a push line.
///
/// ```text
/// word 0  token (send queue)
/// word 1  immediate data 63:32 | zero 31:9 | IMMEDIATE 8 | inline length 7:0
/// word 2  zero
/// word 3  inline data, byte 0 first; words after the last byte are not needed
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushControl {
    /// Bytes of inline data, 0 to [`PUSH_DATA_BYTES`].
    pub length: u8,
    /// Immediate data.
    pub immediate: Option<u32>,
}

impl PushControl {
    /// The flag IMMEDIATE.
    pub const IMMEDIATE_BIT: u32 = 8;
    /// Lowest bit of the immediate data.
    pub const IMMEDIATE_LSB: u32 = 32;

    /// The value to write.
    #[must_use]
    #[inline]
    pub const fn to_bits(self) -> u64 {
        let flag_and_data = match self.immediate {
            Some(data) => 1 << Self::IMMEDIATE_BIT | (data as u64) << Self::IMMEDIATE_LSB,
            None => 0,
        };
        self.length as u64 | flag_and_data
    }

    /// What a written value says; `None` if it is malformed: length or reserved bits.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "each field is masked to its width")]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        let length = bits as u8;
        let reserved = bits as u32 >> (Self::IMMEDIATE_BIT + 1);
        if length as usize > PUSH_DATA_BYTES || reserved != 0 {
            return None;
        }
        let immediate = if bits >> Self::IMMEDIATE_BIT & 1 != 0 {
            Some((bits >> Self::IMMEDIATE_LSB) as u32)
        } else {
            None
        };
        Some(Self { length, immediate })
    }

    /// Words of the line up to the last data byte: with the last of them the push is whole.
    #[must_use]
    pub const fn words(self) -> usize {
        PUSH_HEADER_WORDS + (self.length as usize).div_ceil(8)
    }
}

/// The words of a push with this token, or `None` if `data` is too long. Only the words that the
/// device needs count; the second value is their number.
#[must_use]
pub fn push_line(
    token: Token,
    data: &[u8],
    immediate: Option<u32>,
) -> Option<([u64; PUSH_WORDS], usize)> {
    if data.len() > PUSH_DATA_BYTES {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, reason = "at most 40")]
    let control = PushControl { length: data.len() as u8, immediate };
    let mut words = [0; PUSH_WORDS];
    (words[0], words[1]) = (token.to_bits(), control.to_bits());
    for (word, chunk) in words[PUSH_HEADER_WORDS..].iter_mut().zip(data.chunks(8)) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(bytes);
    }
    Some((words, control.words()))
}

/// Event doorbell: the reader's progress on an event queue, and whether to interrupt at the next
/// event.
///
/// ```text
/// 63     48 47        32 31     17 16  15       0
/// zero     | consumer    | zero   |arm| event queue |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventDoorbell {
    /// Event queue number.
    pub queue: u16,
    /// Ask for one MSI-X at the next event, at once if one is already there.
    pub arm: bool,
    /// Entries consumed since the queue was created, modulo 65,536.
    pub consumer: u16,
}

impl EventDoorbell {
    /// The arm bit.
    pub const ARM_BIT: u32 = 16;
    /// Lowest bit of the consumer index.
    pub const CONSUMER_LSB: u32 = 32;

    /// The value to write.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.queue as u64
            | (self.arm as u64) << Self::ARM_BIT
            | (self.consumer as u64) << Self::CONSUMER_LSB
    }

    /// What a written value says.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "each field is masked to its width")]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            queue: bits as u16,
            arm: (bits >> Self::ARM_BIT) & 1 != 0,
            consumer: (bits >> Self::CONSUMER_LSB) as u16,
        }
    }
}
