//! Descriptors: in registered memory, read and written in place.

use core::fmt;

use port::desc::{
    CONTROL_BYTES, CONTROL_OFFSET, ControlSegment, DataSegment, IMMEDIATE_OFFSET, LENGTH_OFFSET,
    SEGMENT_BYTES, STATUS_OFFSET, control, status,
};

use port::DmaMemory;
use port::work_queue::Slot;

use crate::error::{Error, Result, VipReturn};

/// A place or a size in a descriptor, from its `u64` in `port::desc`.
#[expect(clippy::cast_possible_truncation, reason = "a descriptor is smaller than 64 KiB")]
const fn place(bytes: u64) -> usize {
    bytes as usize
}

const HEADER: usize = place(CONTROL_BYTES);
const SEGMENT: usize = place(SEGMENT_BYTES);
const CONTROL: usize = place(CONTROL_OFFSET);
const IMMEDIATE: usize = place(IMMEDIATE_OFFSET);
const LENGTH: usize = place(LENGTH_OFFSET);
const STATUS: usize = place(STATUS_OFFSET);

/// A data segment: virtual address, memory handle, length.
pub type Segment = DataSegment;

/// Where an RDMA goes to or comes from on the other side (VIPL's address segment): as the other
/// program has sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "VIP_DESCRIPTOR_ADDRESS_SEGMENT")]
pub struct RemoteBuffer {
    /// Virtual address there.
    pub address: u64,
    /// Memory handle there.
    pub handle: u32,
}

/// Status word of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    /// The NIC is done with the descriptor.
    #[must_use]
    pub const fn is_done(self) -> bool {
        self.0 & status::DONE != 0
    }

    /// Any error bit is set.
    #[must_use]
    #[inline]
    pub const fn is_error(self) -> bool {
        self.0 & status::ERROR_MASK != 0
    }

    /// The error bits.
    #[must_use]
    pub const fn errors(self) -> u32 {
        self.0 & status::ERROR_MASK
    }

    /// What was done, see [`port::desc::status`].
    #[must_use]
    pub const fn operation(self) -> u32 {
        self.0 & status::OP_MASK
    }

    /// Immediate data came with the message.
    #[must_use]
    pub const fn has_immediate(self) -> bool {
        self.0 & status::IMMEDIATE != 0
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (status::DONE, "DONE"),
            (status::FORMAT_ERROR, "FORMAT_ERROR"),
            (status::PROTECTION_ERROR, "PROTECTION_ERROR"),
            (status::LENGTH_ERROR, "LENGTH_ERROR"),
            (status::PARTIAL_ERROR, "PARTIAL_ERROR"),
            (status::DESC_FLUSHED_ERROR, "DESC_FLUSHED_ERROR"),
            (status::TRANSPORT_ERROR, "TRANSPORT_ERROR"),
            (status::RDMA_PROT_ERROR, "RDMA_PROT_ERROR"),
            (status::REMOTE_DESC_ERROR, "REMOTE_DESC_ERROR"),
            (status::IMMEDIATE, "IMMEDIATE"),
        ];
        let operation = match self.operation() {
            status::OP_SEND => "OP_SEND",
            status::OP_RECEIVE => "OP_RECEIVE",
            status::OP_RDMA_WRITE => "OP_RDMA_WRITE",
            status::OP_REMOTE_RDMA_WRITE => "OP_REMOTE_RDMA_WRITE",
            status::OP_RDMA_READ => "OP_RDMA_READ",
            _ => "OP_?",
        };
        write!(f, "{:#x}", self.0)?;
        for (bit, name) in names {
            if self.0 & bit != 0 {
                write!(f, " {name}")?;
            }
        }
        write!(f, " {operation}")
    }
}

/// A descriptor (`VIP_DESCRIPTOR`). Clones are the same descriptor. What is written while it is
/// posted may or may not be seen by the NIC.
#[derive(Clone, Debug)]
#[doc(alias = "VIP_DESCRIPTOR")]
pub struct Descriptor {
    slot: Slot,
}

impl Descriptor {
    pub(crate) const fn new(slot: Slot) -> Self {
        Self { slot }
    }

    pub(crate) const fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Bytes of a descriptor with room for `segments` data segments.
    #[must_use]
    pub const fn bytes(segments: usize) -> usize {
        let bytes = HEADER + segments * SEGMENT;
        bytes.next_multiple_of(64)
    }

    /// Bytes of the descriptor that the program has written at `offset`.
    pub(crate) fn written_bytes(memory: &DmaMemory, offset: usize) -> usize {
        let word = memory.load_u32(offset + CONTROL - 2);
        HEADER + SEGMENT * usize::from((word & 0xffff) as u16)
    }

    /// Virtual address.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.slot.memory().address()
    }

    /// Data segments that there is room for.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        (self.slot.memory().len() - HEADER) / SEGMENT
    }

    /// Prepares a send or a receive: the segments, and immediate data to send.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if there is no room for the segments.
    pub fn prepare(&self, segments: &[Segment], immediate: Option<u32>) -> Result<()> {
        let length = segments.iter().map(|segment| segment.length).fold(0, u32::saturating_add);
        let header = ControlSegment {
            seg_count: u16::try_from(segments.len()).unwrap_or(u16::MAX),
            control: control::OP_SENDRECV
                | if immediate.is_some() { control::IMMEDIATE } else { 0 },
            immediate: immediate.unwrap_or(0),
            length,
            ..ControlSegment::default()
        };
        self.prepare_raw(header, segments)
    }

    /// Prepares a descriptor that is done once more: its segments, `length` bytes together, and its control
    /// bits are as they were, and what the NIC has reported goes.
    pub fn renew(&self, length: u32) {
        self.slot.memory().store_u32(LENGTH, length);
        self.slot.memory().store_u32(STATUS, 0);
    }

    /// Prepares an RDMA write of the segments to `remote`. With immediate data it takes one of the
    /// other side's receive descriptors, which reports it; without, nothing there does. Needs room
    /// for one segment more than there are.
    ///
    /// # Errors
    /// As [`Descriptor::prepare`].
    pub fn prepare_rdma_write(
        &self,
        remote: RemoteBuffer,
        segments: &[Segment],
        immediate: Option<u32>,
    ) -> Result<()> {
        let flag = if immediate.is_some() { control::IMMEDIATE } else { 0 };
        let control = control::OP_RDMA_WRITE | flag;
        self.prepare_rdma(control, immediate.unwrap_or(0), remote, segments)
    }

    /// Prepares an RDMA read from `remote` into the segments. Needs room for one segment more than
    /// there are.
    ///
    /// # Errors
    /// As [`Descriptor::prepare`].
    pub fn prepare_rdma_read(&self, remote: RemoteBuffer, segments: &[Segment]) -> Result<()> {
        self.prepare_rdma(control::OP_RDMA_READ, 0, remote, segments)
    }

    fn prepare_rdma(
        &self,
        control: u16,
        immediate: u32,
        remote: RemoteBuffer,
        segments: &[Segment],
    ) -> Result<()> {
        let length = segments.iter().map(|segment| segment.length).fold(0, u32::saturating_add);
        let first = Segment { address: remote.address, handle: remote.handle, length: 0 };
        let all: Vec<Segment> = core::iter::once(first).chain(segments.iter().copied()).collect();
        let seg_count = u16::try_from(all.len()).unwrap_or(u16::MAX);
        let header =
            ControlSegment { seg_count, control, immediate, length, ..ControlSegment::default() };
        self.prepare_raw(header, &all)
    }

    /// Writes any control segment, also one that the NIC refuses.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if there is no room for the segments.
    pub fn prepare_raw(&self, header: ControlSegment, segments: &[Segment]) -> Result<()> {
        if segments.len() > self.capacity() {
            return Err(Error::from(VipReturn::InvalidParameter));
        }
        let memory = self.slot.memory();
        let mut offset = HEADER;
        for segment in segments {
            memory.copy_from(offset, &segment.to_bytes());
            offset += SEGMENT;
        }
        memory.copy_from(0, &header.to_bytes());
        Ok(())
    }

    /// Status word.
    #[must_use]
    pub fn status(&self) -> Status {
        Status(self.slot.status())
    }

    /// Bytes transferred; valid when done.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.slot.memory().load_u32(LENGTH)
    }

    /// Immediate data, sent or received.
    #[must_use]
    pub fn immediate(&self) -> u32 {
        self.slot.memory().load_u32(IMMEDIATE)
    }

    /// Sets the immediate data field.
    pub fn set_immediate(&self, value: u32) {
        self.slot.memory().store_u32(IMMEDIATE, value);
    }

    /// Control bits.
    #[must_use]
    pub fn control(&self) -> u16 {
        let word = self.slot.memory().load_u32(CONTROL - 2);
        u16::try_from(word >> 16).unwrap_or(0)
    }
}

/// Why `done` and `wait` gave no good descriptor.
#[derive(Clone, Debug)]
pub struct CompletionError {
    /// [`VipReturn::NotDone`], [`VipReturn::Timeout`] or [`VipReturn::DescriptorError`];
    /// [`VipReturn::InvalidParameter`] for a VI that is destroyed or whose NIC is closed.
    pub code: VipReturn,
    /// The descriptor that ended in error; None with `DescriptorError` means that nothing is
    /// posted.
    pub descriptor: Option<Descriptor>,
}

impl fmt::Display for CompletionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.descriptor {
            Some(descriptor) => write!(f, "{}: status {:?}", self.code, descriptor.status()),
            None if self.code == VipReturn::DescriptorError => {
                write!(f, "{}: nothing is posted", self.code)
            }
            None => write!(f, "{}", self.code),
        }
    }
}

impl core::error::Error for CompletionError {}

/// Result of taking a descriptor: the descriptor, done without error, or why not.
pub type Completion = core::result::Result<Descriptor, CompletionError>;
