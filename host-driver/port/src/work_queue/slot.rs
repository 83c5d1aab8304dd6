//! A descriptor's memory and how the device finds it.

use nic_regs::desc::{self, ALIGNMENT, status};
use nic_regs::doorbell::Queue;
use nic_regs::tpt::Handle;

use crate::error::{Error, Result};
use crate::memory::{DmaMemory, LINE_BYTES, Line};

const _: () = assert!(LINE_BYTES as u64 == ALIGNMENT);

/// A place in a descriptor, from its `u64` in `nic_regs::desc`.
#[expect(clippy::cast_possible_truncation, reason = "a descriptor is smaller than 64 KiB")]
const fn place(offset: u64) -> usize {
    offset as usize
}

const NEXT: usize = place(desc::NEXT_OFFSET);
const NEXT_HANDLE: usize = place(desc::NEXT_HANDLE_OFFSET);
const SEG_COUNT: usize = place(desc::SEG_COUNT_OFFSET);
const RESERVED: usize = place(desc::RESERVED_OFFSET);
const IMMEDIATE: usize = place(desc::IMMEDIATE_OFFSET);
const SEGMENT: usize = place(desc::CONTROL_BYTES);
const LENGTH: usize = place(desc::LENGTH_OFFSET);
const STATUS: usize = place(desc::STATUS_OFFSET);

/// A descriptor in a region, with space for some segments.
#[derive(Clone, Debug)]
pub struct Slot {
    region: DmaMemory,
    memory: DmaMemory,
    handle: Handle,
    offset: usize,
}

impl Slot {
    /// The descriptor at `offset` of `region`, with space for `length` bytes; `handle` names the
    /// region.
    ///
    /// # Errors
    /// [`Error::BadArgument`] unless aligned to 64 bytes; [`Error::OutOfRange`].
    pub fn new(region: &DmaMemory, handle: Handle, offset: usize, length: usize) -> Result<Self> {
        let memory = region.slice(offset, length)?;
        if !memory.address().is_multiple_of(ALIGNMENT) {
            let value = memory.address();
            return Err(Error::BadArgument {
                what: "address of descriptor (64-byte aligned)",
                value,
            });
        }
        if length < LINE_BYTES {
            let value = length as u64;
            return Err(Error::BadArgument { what: "room for descriptor", value });
        }
        Ok(Self { region: region.clone(), memory, handle, offset })
    }

    /// The descriptor's bytes.
    #[must_use]
    pub const fn memory(&self) -> &DmaMemory {
        &self.memory
    }

    /// The region that it lies in.
    #[must_use]
    pub const fn region(&self) -> &DmaMemory {
        &self.region
    }

    /// Where it lies in the region, in bytes.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Handle of its region.
    #[must_use]
    pub const fn handle(&self) -> Handle {
        self.handle
    }

    /// Status word.
    #[must_use]
    pub fn status(&self) -> u32 {
        self.memory.load_u32(STATUS)
    }
}

/// The front of a descriptor: its control segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front<'a>(pub(super) Line<'a>);

impl Front<'_> {
    #[inline]
    pub(super) fn status(self) -> u32 {
        self.0.load_u32(STATUS)
    }

    #[inline]
    pub(super) fn is_done(self) -> bool {
        self.status() & status::DONE != 0
    }

    #[inline]
    pub(super) fn clear_status(self) {
        self.0.store_u32(STATUS, 0);
    }

    /// Segment count and, above, control bits.
    #[inline]
    pub(super) fn shape(self) -> u32 {
        self.0.load_u32(SEG_COUNT)
    }

    #[inline]
    pub(super) fn reserved(self) -> u32 {
        self.0.load_u32(RESERVED)
    }

    #[inline]
    pub(super) fn immediate(self) -> u32 {
        self.0.load_u32(IMMEDIATE)
    }

    /// Address of the first segment.
    #[inline(always)]
    pub(super) fn segment_address(self) -> u64 {
        self.0.load_u64(SEGMENT)
    }

    /// Its handle.
    #[inline(always)]
    pub(super) fn segment_handle(self) -> Handle {
        Handle(self.0.load_u32(SEGMENT + 8))
    }

    /// Its length, in bytes.
    #[inline(always)]
    pub(super) fn segment_length(self) -> usize {
        self.0.load_u32(SEGMENT + 12) as usize
    }

    /// Makes the descriptor at `address`, in the region `handle`, the one after this.
    #[inline]
    pub(super) fn link(self, address: u64, handle: Handle) {
        self.0.store_u32(NEXT_HANDLE, handle.0);
        self.0.store_u64(NEXT, address);
    }

    /// The completed operation, from the status: bits of `nic_regs::desc::status`.
    pub(super) fn operation(self, queue: Queue) -> u32 {
        match queue {
            Queue::Send => desc::send_operation((self.shape() >> 16) as u16),
            Queue::Recv => status::OP_RECEIVE,
        }
    }

    /// Completes the descriptor as software does.
    pub(super) fn complete(self, status: u32) {
        self.0.store_u32(LENGTH, 0);
        self.0.store_u32(STATUS, status);
    }
}
