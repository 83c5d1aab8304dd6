//! Descriptors in the program's memory: read, checked, completed (contract, section 3).

use port::desc::{
    self, CONTROL_BYTES, IMMEDIATE_OFFSET, LENGTH_OFFSET, SEGMENT_BYTES, STATUS_OFFSET, control,
    status,
};
use port::doorbell::Post;
use port::{DmaMemory, Queue, Reliability, StopReason};

use super::region::{Known, Regions};

/// Data segments of a descriptor at most.
pub(crate) const SEGMENTS_MAX: u32 = 16;
const PIECES_MAX: usize = SEGMENTS_MAX as usize;

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

/// Where the data of a descriptor is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pieces {
    all: [Piece; PIECES_MAX],
    count: usize,
    /// Sum of their lengths.
    pub(crate) total: u64,
}

impl Pieces {
    const NONE: Self =
        Self { all: [Piece { place: 0, offset: 0, length: 0 }; PIECES_MAX], count: 0, total: 0 };

    pub(crate) fn as_slice(&self) -> &[Piece] {
        &self.all[..self.count]
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
        let memory = &region.memory;
        let shape = memory.load_u32(offset + 12);
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
            reserved: memory.load_u32(offset + 16),
            immediate: memory.load_u32(offset + 20),
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

    /// Checks format and segments; what it asks for, and where the data is.
    #[inline]
    pub(crate) fn resolve(
        &self,
        queue: Queue,
        level: Reliability,
        tag: u16,
        known: &mut Known,
        regions: &Regions,
    ) -> Result<(Operation, Pieces), Fault> {
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
        let mut at = self.offset + CONTROL_LENGTH;
        let mut operation_found = Operation::Message;
        if remote {
            let memory = &known.at(self.place).memory;
            let (address, handle) = (memory.load_u64(at), memory.load_u32(at + 8));
            if memory.load_u32(at + 12) != 0 {
                return Err(format);
            }
            operation_found = if operation == control::OP_RDMA_WRITE {
                Operation::Write(address, handle)
            } else {
                Operation::Read(address, handle)
            };
            at += SEGMENT_LENGTH;
        }
        let mut pieces = Pieces::NONE;
        for _ in 0..data {
            let memory = &known.at(self.place).memory;
            let (address, handle) = (memory.load_u64(at), memory.load_u32(at + 8));
            let length = memory.load_u32(at + 12);
            at += SEGMENT_LENGTH;
            if length == 0 {
                continue;
            }
            let protection = Fault::Bad(status::PROTECTION_ERROR);
            let place = known.find(regions, port::Handle(handle)).ok_or(protection)?;
            let region = known.at(place);
            let offset = region.offset(address, length.into()).filter(|_| region.tag == tag);
            let offset = offset.ok_or(protection)?;
            pieces.all[pieces.count] = Piece { place, offset, length: length as usize };
            pieces.count += 1;
            pieces.total += u64::from(length);
        }
        Ok((operation_found, pieces))
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
        let memory: &DmaMemory = &known.at(self.place).memory;
        let at = |offset: u64| self.offset + usize::try_from(offset).unwrap_or(0);
        if let Some(immediate) = immediate {
            memory.store_u32(at(IMMEDIATE_OFFSET), immediate);
            bits |= status::IMMEDIATE;
        }
        memory.store_u32(at(LENGTH_OFFSET), length);
        memory.store_u32(at(STATUS_OFFSET), status::DONE | bits);
    }
}
