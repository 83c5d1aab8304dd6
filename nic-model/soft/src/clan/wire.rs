//! What the two ends of a connection write into each other's inboxes.

use port::StopReason;
use port::clan::message_queue::Body;
use port::clan::{AccessRights, Cookie, RegionNumber};

use crate::via::vi::{reason_number, reason_of};

/// Data bytes that a message carries itself.
pub(super) const INLINE_BYTES: usize = 40;

/// Where the data of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// In the message.
    Inline([u64; INLINE_BYTES / 8]),
    /// What did not come before is in the inbox, at this distance from its data's start.
    Inbox(u32),
    /// In the receive descriptor's buffers already, but for what came before.
    Placed,
    /// Nowhere: the receive descriptor is too short for it, or bad.
    None,
}

/// A message of the transfer queue (paper 3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transfer {
    /// A send, which takes the oldest receive descriptor; its message may continue in the next one.
    Send { length: u32, immediate: Option<u32>, data: Data, is_continued: bool },
    /// The next bytes of a send that is to come: so many, at this place of the inbox.
    Part { length: u32, at: u32 },
    /// The sender has found no receive descriptor.
    NoReceive,
    /// An RDMA write has ended, whose immediate data the oldest receive descriptor takes.
    Written { length: u32, immediate: u32 },
    /// The receiver does not allow what the sender's RDMA wanted.
    RdmaRefused { is_write: bool },
    /// The sender's VI has stopped, for this reason of its own.
    Stopped(StopReason),
}

/// A receive descriptor: what it can hold, and how many pieces of memory it has. Its pieces follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) capacity: u32,
    pub(super) pieces: u32,
    /// It does not pass its checks.
    pub(super) is_bad: bool,
}

/// A piece of memory of a receive descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoomPiece {
    pub(super) cookie: Cookie,
    pub(super) offset: u64,
    pub(super) length: u32,
}

impl RoomPiece {
    /// None.
    pub(super) const NONE: Self = Self {
        cookie: Cookie {
            region: RegionNumber(0),
            rights: AccessRights { read: false, write: false },
            generation: 0,
        },
        offset: 0,
        length: 0,
    };
}

const SEND: u64 = 1;
const NO_RECEIVE: u64 = 2;
const STOPPED: u64 = 3;
const WRITTEN: u64 = 4;
const RDMA_REFUSED: u64 = 5;
const PART: u64 = 6;
const HAS_IMMEDIATE: u64 = 1 << 8;
const IS_CONTINUED: u64 = 1 << 9;

#[expect(clippy::cast_possible_truncation, reason = "half of a word")]
const fn low(word: u64) -> u32 {
    word as u32
}

const fn high(word: u64) -> u32 {
    low(word >> 32)
}

impl Transfer {
    #[inline]
    pub(super) fn to_body(self) -> Body {
        match self {
            Self::Send { length, immediate, data, is_continued } => {
                let (place, at, [a, b, c, d, e]) = match data {
                    Data::Inline(words) => (0, 0, words),
                    Data::Inbox(at) => (1, at, [0; 5]),
                    Data::Placed => (2, 0, [0; 5]),
                    Data::None => (3, 0, [0; 5]),
                };
                let flag = |is_set, bit| if is_set { bit } else { 0 };
                let flags =
                    flag(immediate.is_some(), HAS_IMMEDIATE) | flag(is_continued, IS_CONTINUED);
                let first = SEND | flags | place << 16 | u64::from(length) << 32;
                let second = u64::from(immediate.unwrap_or(0)) | u64::from(at) << 32;
                [first, second, a, b, c, d, e]
            }
            Self::Part { length, at } => [PART | u64::from(length) << 32, at.into(), 0, 0, 0, 0, 0],
            Self::NoReceive => [NO_RECEIVE, 0, 0, 0, 0, 0, 0],
            Self::Written { length, immediate } => {
                [WRITTEN | u64::from(length) << 32, immediate.into(), 0, 0, 0, 0, 0]
            }
            Self::RdmaRefused { is_write } => [RDMA_REFUSED, is_write.into(), 0, 0, 0, 0, 0],
            Self::Stopped(reason) => [STOPPED, reason_number(reason).into(), 0, 0, 0, 0, 0],
        }
    }

    /// None for what no peer that keeps the rules has written.
    #[inline]
    pub(super) fn from_body(body: &Body) -> Option<Self> {
        let [first, second, a, b, c, d, e] = *body;
        match first & 0xff {
            SEND => {
                let data = match first >> 16 & 0xff {
                    0 => Data::Inline([a, b, c, d, e]),
                    1 => Data::Inbox(high(second)),
                    2 => Data::Placed,
                    3 => Data::None,
                    _ => return None,
                };
                let immediate = (first & HAS_IMMEDIATE != 0).then(|| low(second));
                let is_continued = first & IS_CONTINUED != 0;
                Some(Self::Send { length: high(first), immediate, data, is_continued })
            }
            PART => Some(Self::Part { length: high(first), at: low(second) }),
            NO_RECEIVE => Some(Self::NoReceive),
            WRITTEN => Some(Self::Written { length: high(first), immediate: low(second) }),
            RDMA_REFUSED => Some(Self::RdmaRefused { is_write: second != 0 }),
            STOPPED => reason_of(u8::try_from(second).ok()?).map(Self::Stopped),
            _ => None,
        }
    }
}

const IS_BAD: u64 = 1;

impl Room {
    /// With its first two pieces.
    #[inline]
    pub(super) fn to_body(self, pieces: &[RoomPiece]) -> Body {
        let first = if self.is_bad { IS_BAD } else { 0 } | u64::from(self.pieces) << 8;
        let [a, b, c, d, e, f] = pieces_to_words(pieces);
        [first | u64::from(self.capacity) << 32, a, b, c, d, e, f]
    }

    pub(super) fn from_body(body: &Body) -> Option<Self> {
        let [first, ..] = *body;
        let pieces = low(first >> 8) & 0xff;
        let room = Self { capacity: high(first), pieces, is_bad: first & IS_BAD != 0 };
        (first & 0xffff_00fe == 0 && pieces <= 16).then_some(room)
    }
}

/// Pieces of a descriptor that one message carries.
pub(super) const PIECES: usize = 2;

fn pieces_to_words(pieces: &[RoomPiece]) -> [u64; 3 * PIECES] {
    let mut words = [0; 3 * PIECES];
    for (words, piece) in words.chunks_mut(3).zip(pieces) {
        words.copy_from_slice(&[piece.cookie.to_bits(), piece.offset, piece.length.into()]);
    }
    words
}

/// A message with more pieces of the receive descriptor before.
pub(super) fn more_pieces(pieces: &[RoomPiece]) -> Body {
    let [a, b, c, d, e, f] = pieces_to_words(pieces);
    [0, a, b, c, d, e, f]
}

/// One of the pieces that a message carries.
pub(super) fn piece(body: &Body, number: usize) -> Option<RoomPiece> {
    let words = body.get(1 + 3 * number..)?;
    let (cookie, offset) = (Cookie::from_bits(*words.first()?)?, *words.get(1)?);
    Some(RoomPiece { cookie, offset, length: low(*words.get(2)?) })
}
