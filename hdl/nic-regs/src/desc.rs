//! VIA descriptors in host memory (VIPL `VIP_DESCRIPTOR`), little-endian, aligned to 64 bytes.
//!
//! ```text
//!  0 [Next 8][NextHandle 4][SegCount 2][Control 2]
//! 16 [Reserved 4][ImmediateData 4][Length 4][Status 4]
//! 32 segment 0 ... (16 bytes each): data [VA 8][Handle 4][Length 4], address [VA 8][Handle 4][Reserved 4]
//! ```
//! An RDMA has one address segment, which names the peer's buffer, and then its data segments;
//! SegCount counts it (VIPL `VIP_ADDRESS_SEGMENT`).
#![allow(clippy::cast_possible_truncation, reason = "small constants")]

/// Alignment of a descriptor, in bytes (`VIP_DESCRIPTOR_ALIGNMENT`).
pub const ALIGNMENT: u64 = 64;
/// Size of the control segment, in bytes.
pub const CONTROL_BYTES: u64 = 32;
/// Size of every other segment, in bytes.
pub const SEGMENT_BYTES: u64 = 16;
/// Offset of the VA of the next descriptor.
pub const NEXT_OFFSET: u64 = 0;
/// Offset of the next descriptor's memory handle.
pub const NEXT_HANDLE_OFFSET: u64 = 8;
/// Offset of the segment count (16 bits).
pub const SEG_COUNT_OFFSET: u64 = 12;
/// Offset of the control bits (16 bits).
pub const CONTROL_OFFSET: u64 = 14;
/// Offset of the reserved word, which must be zero.
pub const RESERVED_OFFSET: u64 = 16;
/// Offset of the immediate data.
pub const IMMEDIATE_OFFSET: u64 = 20;
/// Offset of the length.
pub const LENGTH_OFFSET: u64 = 24;
/// Offset of the status.
pub const STATUS_OFFSET: u64 = 28;

/// Bits of the control field.
pub mod control {
    /// Mask of the operation.
    pub const OP_MASK: u16 = 0x3;
    /// Send or receive.
    pub const OP_SENDRECV: u16 = 0;
    /// RDMA write.
    pub const OP_RDMA_WRITE: u16 = 1;
    /// RDMA read.
    pub const OP_RDMA_READ: u16 = 2;
    /// Immediate data is present.
    pub const IMMEDIATE: u16 = 0x4;
    /// Wait for earlier RDMA reads.
    pub const QFENCE: u16 = 0x8;
    /// Reserved, must be zero.
    pub const RESERVED: u16 = 0xfff0;
}

/// Bits of the status field.
pub mod status {
    /// The NIC has finished with the descriptor.
    pub const DONE: u32 = 0x1;
    /// Malformed descriptor.
    pub const FORMAT_ERROR: u32 = 0x2;
    /// Local handle, bounds, tag or domain wrong.
    pub const PROTECTION_ERROR: u32 = 0x4;
    /// Longer than the VI's maximum transfer or than the receive buffer.
    pub const LENGTH_ERROR: u32 = 0x8;
    /// Part of the message was placed before the error.
    pub const PARTIAL_ERROR: u32 = 0x10;
    /// Not executed: the queue stopped before.
    pub const DESC_FLUSHED_ERROR: u32 = 0x20;
    /// Link, peer or host port failed.
    pub const TRANSPORT_ERROR: u32 = 0x40;
    /// The remote side refused an RDMA.
    pub const RDMA_PROT_ERROR: u32 = 0x80;
    /// The remote descriptor was missing or in error.
    pub const REMOTE_DESC_ERROR: u32 = 0x100;
    /// All error bits.
    pub const ERROR_MASK: u32 = 0x1fe;
    /// Operation: send.
    pub const OP_SEND: u32 = 0x0_0000;
    /// Operation: receive.
    pub const OP_RECEIVE: u32 = 0x1_0000;
    /// Operation: RDMA write.
    pub const OP_RDMA_WRITE: u32 = 0x2_0000;
    /// Operation: a remote RDMA write with immediate data.
    pub const OP_REMOTE_RDMA_WRITE: u32 = 0x3_0000;
    /// Operation: RDMA read.
    pub const OP_RDMA_READ: u32 = 0x4_0000;
    /// Mask of the operation.
    pub const OP_MASK: u32 = 0x7_0000;
    /// Immediate data was received.
    pub const IMMEDIATE: u32 = 0x8_0000;
    /// The message continues in the next receive descriptor. Only of ports in software, on VIs that
    /// split messages.
    pub const CONTINUED: u32 = 0x10_0000;
}

/// Control segment, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlSegment {
    /// VA of the next descriptor.
    pub next: u64,
    /// Memory handle of the next descriptor.
    pub next_handle: u32,
    /// Segments after this one.
    pub seg_count: u16,
    /// Control bits, see [`control`].
    pub control: u16,
    /// Must be zero.
    pub reserved: u32,
    /// Immediate data.
    pub immediate: u32,
    /// Length in bytes.
    pub length: u32,
    /// Status bits, see [`status`].
    pub status: u32,
}

/// Status operation of a send descriptor with these control bits; reserved operations count as
/// sends.
#[must_use]
pub const fn send_operation(bits: u16) -> u32 {
    match bits & control::OP_MASK {
        control::OP_RDMA_WRITE => status::OP_RDMA_WRITE,
        control::OP_RDMA_READ => status::OP_RDMA_READ,
        _ => status::OP_SEND,
    }
}

/// Data segment, decoded. An address segment has its Reserved word in the place of the length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataSegment {
    /// VA of the buffer.
    pub address: u64,
    /// Memory handle of the buffer.
    pub handle: u32,
    /// Length in bytes.
    pub length: u32,
}

impl ControlSegment {
    /// Reads the 32 bytes of a control segment.
    #[must_use]
    pub fn from_bytes(b: &[u8; CONTROL_BYTES as usize]) -> Self {
        let u32_at = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        let u16_at = |i: usize| u16::from_le_bytes([b[i], b[i + 1]]);
        Self {
            next: u64::from(u32_at(0)) | u64::from(u32_at(4)) << 32,
            next_handle: u32_at(8),
            seg_count: u16_at(12),
            control: u16_at(14),
            reserved: u32_at(16),
            immediate: u32_at(20),
            length: u32_at(24),
            status: u32_at(28),
        }
    }

    /// The 32 bytes of a control segment.
    #[must_use]
    pub fn to_bytes(self) -> [u8; CONTROL_BYTES as usize] {
        let mut b = [0; CONTROL_BYTES as usize];
        b[0..8].copy_from_slice(&self.next.to_le_bytes());
        b[8..12].copy_from_slice(&self.next_handle.to_le_bytes());
        b[12..14].copy_from_slice(&self.seg_count.to_le_bytes());
        b[14..16].copy_from_slice(&self.control.to_le_bytes());
        b[16..20].copy_from_slice(&self.reserved.to_le_bytes());
        b[20..24].copy_from_slice(&self.immediate.to_le_bytes());
        b[24..28].copy_from_slice(&self.length.to_le_bytes());
        b[28..32].copy_from_slice(&self.status.to_le_bytes());
        b
    }
}

impl DataSegment {
    /// Reads the 16 bytes of a data segment.
    #[must_use]
    pub fn from_bytes(b: &[u8; SEGMENT_BYTES as usize]) -> Self {
        let u32_at = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        Self {
            address: u64::from(u32_at(0)) | u64::from(u32_at(4)) << 32,
            handle: u32_at(8),
            length: u32_at(12),
        }
    }

    /// The 16 bytes of a data segment.
    #[must_use]
    pub fn to_bytes(self) -> [u8; SEGMENT_BYTES as usize] {
        let mut b = [0; SEGMENT_BYTES as usize];
        b[0..8].copy_from_slice(&self.address.to_le_bytes());
        b[8..12].copy_from_slice(&self.handle.to_le_bytes());
        b[12..16].copy_from_slice(&self.length.to_le_bytes());
        b
    }
}
