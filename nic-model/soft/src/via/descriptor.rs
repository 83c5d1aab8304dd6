//! Descriptors in the program's memory: read, checked, completed (contract, section 3).

use port::desc::{
    self, CONTROL_BYTES, IMMEDIATE_OFFSET, LENGTH_OFFSET, SEGMENT_BYTES, STATUS_OFFSET, control,
    status,
};
use port::doorbell::Post;
use port::memory::{LINE_BYTES, Line};
use port::{DmaMemory, Queue, Reliability, StopReason};

use super::region::{Known, Regions};

/// Data segments of a descriptor at most.
pub(crate) const SEGMENTS_MAX: u32 = 16;
/// The same, as pieces.
pub(crate) const PIECES_MAX: usize = SEGMENTS_MAX as usize;

/// [`CONTROL_BYTES`] and [`SEGMENT_BYTES`], as lengths.
const CONTROL_LENGTH: usize = 32;
const SEGMENT_LENGTH: usize = 16;
const _: () =
    assert!(CONTROL_LENGTH as u64 == CONTROL_BYTES && SEGMENT_LENGTH as u64 == SEGMENT_BYTES);

/// Why a descriptor is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It cannot be reached; nothing is written to it.
    Unreachable,
    /// It is completed with these error bits.
    Bad(u32),
}

impl Fault {
    /// Why a VI on a reliable level stops.
    pub(crate) const fn reason(self) -> StopReason {
        match self {
            Self::Unreachable => StopReason::DescriptorUnreachable,
            Self::Bad(_) => StopReason::DescriptorError,
        }
    }
}

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A send, or a receive.
    Message,
    /// An RDMA write to this address in the region of this handle.
    Write(u64, u32),
    /// An RDMA read from there.
    Read(u64, u32),
}

impl Operation {
    /// Its bits in the status of a send descriptor.
    pub(crate) const fn status(self) -> u32 {
        match self {
            Self::Message => status::OP_SEND,
            Self::Write(..) => status::OP_RDMA_WRITE,
            Self::Read(..) => status::OP_RDMA_READ,
        }
    }
}

/// A piece of memory: a place in [`Known`], an offset in its region, a length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) place: usize,
    pub(crate) offset: usize,
    pub(crate) length: usize,
}

/// Where the data of a descriptor is. It is large, and so it is filled again for each.
#[derive(Debug)]
pub(crate) struct Pieces {
    all: [Piece; PIECES_MAX],
    count: usize,
    /// Sum of their lengths.
    pub(crate) total: u64,
    /// Of a receive: what is behind them may not be reached.
    is_short: bool,
}

impl Default for Pieces {
    fn default() -> Self {
        Self { all: [Piece::default(); PIECES_MAX], count: 0, total: 0, is_short: false }
    }
}

impl Pieces {
    #[inline]
    pub(crate) fn as_slice(&self) -> &[Piece] {
        &self.all[..self.count]
    }

    fn clear(&mut self) {
        (self.count, self.total, self.is_short) = (0, 0, false);
    }

    fn push(&mut self, piece: Piece) {
        self.all[self.count] = piece;
        self.count += 1;
        self.total += piece.length as u64;
    }

    /// What is wrong with a message that is longer.
    pub(crate) const fn excess(&self) -> Fault {
        Fault::Bad(if self.is_short { status::PROTECTION_ERROR } else { status::LENGTH_ERROR })
    }

    /// The pieces of `length` bytes from `start` on.
    pub(crate) fn part(&self, start: usize, length: usize) -> impl Iterator<Item = Piece> {
        let (mut before, mut left) = (start, length);
        self.as_slice().iter().filter_map(move |piece| {
            let skipped = before.min(piece.length);
            before -= skipped;
            let length = (piece.length - skipped).min(left);
            left -= length;
            (length > 0).then_some(Piece { offset: piece.offset + skipped, length, ..*piece })
        })
    }
}

/// A descriptor that was reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    /// Where it is: a place in [`Known`], and the offset.
    place: usize,
    offset: usize,
    segments: usize,
    bits: u16,
    reserved: u32,
    pub(crate) immediate: u32,
    /// Its first segment, if it has one.
    first: Segment,
}

/// A segment as it is in memory.
#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    handle: u32,
    length: u32,
}

impl Segment {
    const NONE: Self = Self { address: 0, handle: 0, length: 0 };
}

impl Descriptor {
    /// Reads the front of a descriptor that was posted on a VI with this tag.
    #[inline]
    pub(crate) fn read(
        post: &Post,
        tag: u16,
        known: &mut Known,
        regions: &Regions,
    ) -> Result<Self, Fault> {
        let place = known.find(regions, post.region).ok_or(Fault::Unreachable)?;
        let region = known.at(place);
        let offset = region.offset(post.address, CONTROL_BYTES).filter(|_| region.tag == tag);
        let offset = offset.ok_or(Fault::Unreachable)?;
        let front = Front::of(&region.memory, offset);
        let shape = front.word(12);
        let [segments, bits] = [shape & 0xffff, shape >> 16];
        let length = CONTROL_BYTES + SEGMENT_BYTES * u64::from(segments);
        if segments <= 17 && region.offset(post.address, length).is_none() {
            return Err(Fault::Unreachable);
        }
        Ok(Self {
            place,
            offset,
            segments: segments as usize,
            bits: u16::try_from(bits).unwrap_or(0),
            reserved: front.word(16),
            immediate: front.word(20),
            first: if segments == 0 { Segment::NONE } else { front.segment(CONTROL_LENGTH) },
        })
    }

    /// Whether it carries immediate data.
    pub(crate) const fn has_immediate(&self) -> bool {
        self.bits & control::IMMEDIATE != 0
    }

    /// Its operation bits for a status, whatever is wrong with it.
    pub(crate) const fn operation_bits(&self, queue: Queue) -> u32 {
        match queue {
            Queue::Recv => status::OP_RECEIVE,
            Queue::Send => desc::send_operation(self.bits),
        }
    }

    /// Checks format and segments; what it asks for, and, in `pieces`, where the data is.
    #[inline]
    pub(crate) fn resolve(
        &self,
        queue: Queue,
        level: Reliability,
        tag: u16,
        (known, regions): (&mut Known, &Regions),
        pieces: &mut Pieces,
    ) -> Result<Operation, Fault> {
        let format = Fault::Bad(status::FORMAT_ERROR);
        let operation = self.bits & control::OP_MASK;
        let reliable = !matches!(level, Reliability::Unreliable);
        let remote = match (queue, operation) {
            (_, control::OP_SENDRECV) => false,
            (Queue::Send, control::OP_RDMA_WRITE) => true,
            (Queue::Send, control::OP_RDMA_READ) if reliable && !self.has_immediate() => true,
            _ => return Err(format),
        };
        let ignored = if queue == Queue::Recv { control::IMMEDIATE | control::QFENCE } else { 0 };
        let bad_bits = self.bits & !ignored & control::RESERVED != 0 || self.reserved != 0;
        let data = self.segments.checked_sub(usize::from(remote));
        let data = data.filter(|data| *data <= PIECES_MAX && !bad_bits).ok_or(format)?;
        let mut at = CONTROL_LENGTH;
        let mut operation_found = Operation::Message;
        if remote {
            let Segment { address, handle, length } = self.first;
            if length != 0 {
                return Err(format);
            }
            operation_found = if operation == control::OP_RDMA_WRITE {
                Operation::Write(address, handle)
            } else {
                Operation::Read(address, handle)
            };
            at += SEGMENT_LENGTH;
        }
        pieces.clear();
        for _ in 0..data {
            let Segment { address, handle, length } =
                if at == CONTROL_LENGTH { self.first } else { self.front(known).segment(at) };
            at += SEGMENT_LENGTH;
            if length == 0 {
                continue;
            }
            let length = length as usize;
            let place = known.find(regions, port::Handle(handle));
            let reached = place.and_then(|place| {
                let region = known.at(place);
                let (offset, room) = region.reach(address).filter(|_| region.tag == tag)?;
                Some(Piece { place, offset, length: length.min(room) })
            });
            pieces.is_short = reached.is_none_or(|piece| piece.length < length);
            if pieces.is_short && queue == Queue::Send {
                return Err(Fault::Bad(status::PROTECTION_ERROR));
            }
            // A receive counts as far as its regions reach.
            reached.into_iter().for_each(|piece| pieces.push(piece));
            if pieces.is_short {
                break;
            }
        }
        Ok(operation_found)
    }

    #[inline]
    fn front<'a>(&self, known: &'a Known) -> Front<'a> {
        Front::of(&known.at(self.place).memory, self.offset)
    }

    /// Completes it: immediate data and length, and then the status, which programs poll.
    #[inline]
    pub(crate) fn complete(
        &self,
        known: &Known,
        length: u32,
        immediate: Option<u32>,
        mut bits: u32,
    ) {
        let front = self.front(known);
        if let Some(immediate) = immediate {
            front.store(place(IMMEDIATE_OFFSET), immediate);
            bits |= status::IMMEDIATE;
        }
        front.store(place(LENGTH_OFFSET), length);
        front.store(place(STATUS_OFFSET), status::DONE | bits);
    }
}

/// An offset in a descriptor.
const fn place(offset: u64) -> usize {
    (offset & 63) as usize
}

/// A descriptor in memory: its first line, which has all of it up to two segments and was checked once,
/// and what is behind it. Descriptors of the smallest kind at the end of a region have no whole line.
#[derive(Clone, Copy)]
struct Front<'a> {
    line: Option<Line<'a>>,
    memory: &'a DmaMemory,
    offset: usize,
}

impl<'a> Front<'a> {
    #[inline]
    fn of(memory: &'a DmaMemory, offset: usize) -> Self {
        Self { line: memory.line(offset), memory, offset }
    }

    #[inline]
    fn word(&self, at: usize) -> u32 {
        match self.line {
            Some(line) if at < LINE_BYTES => line.load_u32(at),
            _ => self.memory.load_u32(self.offset + at),
        }
    }

    #[inline]
    fn double_word(&self, at: usize) -> u64 {
        match self.line {
            Some(line) if at < LINE_BYTES => line.load_u64(at),
            _ => self.memory.load_u64(self.offset + at),
        }
    }

    #[inline]
    fn segment(&self, at: usize) -> Segment {
        let (address, handle) = (self.double_word(at), self.word(at + 8));
        Segment { address, handle, length: self.word(at + 12) }
    }

    #[inline]
    fn store(&self, at: usize, value: u32) {
        match self.line {
            Some(line) if at < LINE_BYTES => line.store_u32(at, value),
            _ => self.memory.store_u32(self.offset + at, value),
        }
    }
}
