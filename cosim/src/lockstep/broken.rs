//! Messages whose frames do not fit together, which no honest device sends (contract 5.4, 11.2).
//!
//! ```text
//!   at rest ─► a receive is posted ─► frames with the right numbers, one wrong ─► the channel closes
//! ```
//! They use up numbers that the peer has not sent, so they come right before the channel closes; and before the
//! receiver could send anything once more, since its acknowledgements are of no use to the peer.

use super::forge::Now;
use crate::random::Random;
use nic_model::frame::Frame;
use nic_regs::desc::DataSegment;
use nic_regs::frame::{Header, RDMA_HEADER_BYTES, RdmaHeader, Type, flag};
use nic_regs::vi::Reliability;

/// Most bytes of a message.
const MOST_BYTES: u64 = 300;
/// Most frames: they come within a retransmission time-out.
const MOST_FRAMES: usize = 6;

/// A frame of such a message.
#[derive(Clone, Copy, Debug)]
struct Piece {
    kind: Type,
    flags: u8,
    /// Bytes of the message in it, and before it.
    length: u16,
    placed: u16,
    /// What it says the whole message has.
    total: u16,
    /// Number of an Unreliable message and of its fragment.
    number: u16,
}

/// Messages to one VI, with a receive for the first.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    /// Node that receives them.
    pub(super) node: usize,
    /// Pair of its VI.
    pub(super) pair: usize,
    /// Bytes of the receive.
    pub(super) recv: u64,
    /// Seed of the receive, and of what the frames carry.
    pub(super) seed: u64,
    pieces: Vec<Piece>,
}

impl Broken {
    /// Chooses random messages to a VI of this pair: right but for one thing here and there.
    pub(super) fn random(random: &mut Random, pair: usize) -> Self {
        let most = random.below(MOST_BYTES);
        let mut pieces = Vec::new();
        while pieces.len() < 2 || pieces.len() < MOST_FRAMES && random.chance(0.3) {
            message(random, most, &mut pieces);
        }
        pieces.truncate(MOST_FRAMES);
        let node = usize::from(random.chance(0.5));
        Self { node, pair, recv: most + 50, seed: random.bits(), pieces }
    }

    /// Beats of its frames. `place`: where bytes of an RDMA write go, by their offset in the message and their number.
    pub(super) fn frames(
        &self,
        now: &Now,
        place: impl Fn(u64, u32) -> DataSegment,
    ) -> Vec<Vec<u64>> {
        let mut random = Random::new(self.seed);
        let frames = (0..).zip(&self.pieces).map(|(n, piece)| {
            let mut payload = Vec::new();
            if piece.kind == Type::RdmaWrite {
                let at = place(piece.placed.into(), piece.length.into());
                let total = piece.total.into();
                let head = RdmaHeader { address: at.address, handle: at.handle, total };
                payload.extend(head.to_beats().into_iter().flat_map(u64::to_le_bytes));
            }
            let beats = usize::from(piece.length).div_ceil(8);
            payload.extend((0..beats).flat_map(|_| random.bits().to_le_bytes()));
            Frame { header: piece.header(now, n), payload }.to_beats()
        });
        frames.collect()
    }
}

/// The frames of a message: one to three, of which something may be wrong.
fn message(random: &mut Random, most: u64, pieces: &mut Vec<Piece>) {
    let mut below = |limit: u64| u16::try_from(random.below(limit)).expect("a small limit");
    let total = below(most + 1);
    let count = 1 + below(3);
    let number = below(1 << 8) << 8;
    let kind = if below(4) == 0 { Type::RdmaWrite } else { Type::Data };
    let immediate = below(3) == 0;
    let mut placed = 0;
    for fragment in 0..count {
        let is_last = fragment + 1 == count;
        let length = if is_last { total - placed } else { below(u64::from(total - placed) + 1) };
        let mut flags = if fragment == 0 { flag::FIRST } else { 0 };
        if is_last {
            flags |= flag::LAST | if immediate { flag::IMMEDIATE } else { 0 };
        }
        let number = number | fragment;
        let mut piece = Piece { kind, flags, length, placed, total, number };
        placed += length;
        match below(12) {
            0 => piece.flags ^= flag::FIRST,
            1 => piece.flags ^= flag::LAST,
            2 => piece.length += 1 << below(4),
            3 => piece.length = piece.length.saturating_sub(1 << below(4)),
            4 => piece.total ^= 1 << below(9),
            5 => piece.number ^= 1 << below(16),
            6 => piece.kind = if kind == Type::Data { Type::RdmaWrite } else { Type::Data },
            _ => {}
        }
        if piece.flags & flag::LAST == 0 {
            piece.flags &= !flag::IMMEDIATE;
        }
        pieces.push(piece);
    }
}

impl Piece {
    /// The header of the frame with this number.
    fn header(&self, now: &Now, n: u16) -> Header {
        let level = match now.reliability {
            Reliability::Unreliable => 0,
            Reliability::Delivery => flag::SEQUENCED,
            Reliability::Reception => flag::SEQUENCED | flag::RECEPTION,
        };
        let word = match self.flags & (flag::FIRST | flag::LAST | flag::IMMEDIATE) {
            flag::FIRST => self.total.into(),
            flags if flags & flag::IMMEDIATE != 0 => 0x1234_5678 ^ u32::from(self.number),
            _ => 0,
        };
        let more = if self.kind == Type::RdmaWrite { RDMA_HEADER_BYTES } else { 0 };
        Header {
            kind: self.kind as u8,
            length: self.length + u16::try_from(more).expect("small"),
            flags: self.flags | level,
            sequence: if level == 0 { self.number } else { now.sequence.wrapping_add(n) },
            word,
            ..now.header()
        }
    }
}
