//! The types of `vipl.h`. `tests/conformance/layout.c` asserts the same numbers in C.

use core::ffi::{c_char, c_int, c_ulong, c_ushort, c_void};
use core::mem::{align_of, offset_of, size_of};

use crate::handle::Handle;

/// `VIP_RETURN`
pub type Code = u32;

/// From this number of milliseconds on a time-out has no end (`VIP_INFINITE` is all ones).
pub const INFINITE_MS: c_ulong = 0xffff_ffff;
/// Bytes of `Name` in [`NicAttributes`].
pub const NAME_BYTES: usize = 64;

/// Front part of `VIP_NET_ADDRESS`; the bytes follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct NetAddress {
    /// Bytes of the host address.
    pub host_len: u16,
    /// Bytes of the discriminator, which follow.
    pub discriminator_len: u16,
}

/// Where the bytes of a `VIP_NET_ADDRESS` start.
pub const ADDRESS_OFFSET: usize = 4;

/// `VIP_NIC_ATTRIBUTES`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as in the header, and explained there")]
pub struct NicAttributes {
    pub name: [c_char; NAME_BYTES],
    pub hardware_version: c_ulong,
    pub provider_version: c_ulong,
    pub nic_address_len: u16,
    pub local_nic_address: *const u8,
    pub thread_safe: c_int,
    pub max_discriminator_len: u16,
    pub max_register_bytes: c_ulong,
    pub max_register_regions: c_ulong,
    pub max_register_block_bytes: c_ulong,
    pub max_vi: c_ulong,
    pub max_descriptors_per_queue: c_ulong,
    pub max_segments_per_desc: c_ulong,
    pub max_cq: c_ulong,
    pub max_cq_entries: c_ulong,
    pub max_transfer_size: c_ulong,
    pub native_mtu: c_ulong,
    pub max_ptags: c_ulong,
    pub reliability_level_support: c_ushort,
    pub rdma_read_support: c_ushort,
}

/// `VIP_VI_ATTRIBUTES`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as in the header, and explained there")]
pub struct ViAttributes {
    pub reliability_level: c_ushort,
    pub max_transfer_size: c_ulong,
    pub qos: usize,
    pub ptag: Handle,
    pub enable_rdma_write: c_int,
    pub enable_rdma_read: c_int,
}

/// `VIP_VI_EXTENSIONS`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as in the header, and explained there")]
pub struct ViExtensions {
    pub defer_send: c_int,
    pub split_receive: c_int,
    pub transfer: c_ulong,
}

/// `VIP_MEM_ATTRIBUTES`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as in the header, and explained there")]
pub struct MemAttributes {
    pub ptag: Handle,
    pub enable_rdma_write: c_int,
    pub enable_rdma_read: c_int,
}

/// `VIP_DESCRIPTOR *`, of which only the address matters here.
pub type Descriptor = *mut c_void;

/// `VIP_ERROR_DESCRIPTOR`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as in the header, and explained there")]
pub struct ErrorDescriptor {
    pub nic: Handle,
    pub vi: Handle,
    pub cq: Handle,
    pub descriptor: Descriptor,
    pub op_code: c_ulong,
    pub resource_code: u32,
    pub error_code: u32,
}

/// `VIP_AUTODISCOVERY_LIST`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as in the header, and explained there")]
pub struct AutodiscoveryList {
    pub number_of_hops: c_ulong,
    pub addresses: *const *const u8,
    pub count: c_ulong,
}

/// `VIP_ERROR_HANDLER`
pub type ErrorHandler = Option<extern "C" fn(*mut c_void, *mut ErrorDescriptor)>;
/// `VIP_VI_CALLBACK`
pub type ViCallback = Option<extern "C" fn(*mut c_void, Handle, Handle, Descriptor)>;
/// `VIP_CQ_CALLBACK`
pub type CqCallback = Option<extern "C" fn(*mut c_void, Handle, Handle, c_int)>;

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<c_ulong>() == 8 && size_of::<Handle>() == 8);
    assert!(size_of::<NetAddress>() == ADDRESS_OFFSET && align_of::<NetAddress>() == 2);
    assert!(size_of::<NicAttributes>() == 200 && align_of::<NicAttributes>() == 8);
    assert!(offset_of!(NicAttributes, hardware_version) == 64);
    assert!(offset_of!(NicAttributes, nic_address_len) == 80);
    assert!(offset_of!(NicAttributes, local_nic_address) == 88);
    assert!(offset_of!(NicAttributes, thread_safe) == 96);
    assert!(offset_of!(NicAttributes, max_discriminator_len) == 100);
    assert!(offset_of!(NicAttributes, max_register_bytes) == 104);
    assert!(offset_of!(NicAttributes, max_ptags) == 184);
    assert!(offset_of!(NicAttributes, reliability_level_support) == 192);
    assert!(offset_of!(NicAttributes, rdma_read_support) == 194);
    assert!(size_of::<ViAttributes>() == 40);
    assert!(offset_of!(ViAttributes, max_transfer_size) == 8);
    assert!(offset_of!(ViAttributes, qos) == 16);
    assert!(offset_of!(ViAttributes, ptag) == 24);
    assert!(offset_of!(ViAttributes, enable_rdma_write) == 32);
    assert!(offset_of!(ViAttributes, enable_rdma_read) == 36);
    assert!(size_of::<ViExtensions>() == 16);
    assert!(offset_of!(ViExtensions, split_receive) == 4);
    assert!(offset_of!(ViExtensions, transfer) == 8);
    assert!(size_of::<MemAttributes>() == 16);
    assert!(offset_of!(MemAttributes, enable_rdma_write) == 8);
    assert!(offset_of!(MemAttributes, enable_rdma_read) == 12);
    assert!(size_of::<ErrorDescriptor>() == 48);
    assert!(offset_of!(ErrorDescriptor, descriptor) == 24);
    assert!(offset_of!(ErrorDescriptor, op_code) == 32);
    assert!(offset_of!(ErrorDescriptor, resource_code) == 40);
    assert!(offset_of!(ErrorDescriptor, error_code) == 44);
    assert!(size_of::<AutodiscoveryList>() == 24);
    assert!(offset_of!(AutodiscoveryList, addresses) == 8);
};

/// The descriptor of the header is the device's.
const _: () = {
    use port::desc;
    assert!(desc::CONTROL_BYTES == 32 && desc::SEGMENT_BYTES == 16 && desc::ALIGNMENT == 64);
    assert!(desc::NEXT_OFFSET == 0 && desc::NEXT_HANDLE_OFFSET == 8);
    assert!(desc::SEG_COUNT_OFFSET == 12 && desc::CONTROL_OFFSET == 14);
    assert!(desc::RESERVED_OFFSET == 16 && desc::IMMEDIATE_OFFSET == 20);
    assert!(desc::LENGTH_OFFSET == 24 && desc::STATUS_OFFSET == 28);
    assert!(desc::control::OP_RDMA_WRITE == 1 && desc::control::OP_RDMA_READ == 2);
    assert!(desc::control::OP_MASK == 3 && desc::control::IMMEDIATE == 4);
    assert!(desc::control::QFENCE == 8 && desc::control::RESERVED == 0xfff0);
    assert!(desc::status::DONE == 1 && desc::status::ERROR_MASK == 0x1fe);
    assert!(desc::status::FORMAT_ERROR == 2 && desc::status::PROTECTION_ERROR == 4);
    assert!(desc::status::LENGTH_ERROR == 8 && desc::status::PARTIAL_ERROR == 0x10);
    assert!(desc::status::DESC_FLUSHED_ERROR == 0x20 && desc::status::TRANSPORT_ERROR == 0x40);
    assert!(desc::status::RDMA_PROT_ERROR == 0x80 && desc::status::REMOTE_DESC_ERROR == 0x100);
    assert!(desc::status::OP_RECEIVE == 0x1_0000 && desc::status::OP_RDMA_WRITE == 0x2_0000);
    assert!(desc::status::OP_REMOTE_RDMA_WRITE == 0x3_0000);
    assert!(desc::status::OP_RDMA_READ == 0x4_0000 && desc::status::OP_MASK == 0x7_0000);
    assert!(desc::status::IMMEDIATE == 0x8_0000);
    use vipl::{ErrorCode, Reliability, ResourceCode, ViState, VipReturn};
    assert!(Reliability::Unreliable as u16 == 1 && Reliability::Delivery as u16 == 2);
    assert!(Reliability::Reception as u16 == 4);
    assert!(ViState::Idle as u32 == 0 && ViState::Connected as u32 == 1);
    assert!(ViState::ConnectPending as u32 == 2 && ViState::Error as u32 == 3);
    assert!(VipReturn::Success as u32 == 0 && VipReturn::ErrorNotSupported as u32 == 16);
    assert!(ErrorCode::PostDescriptor as u32 == 0 && ErrorCode::Catastrophic as u32 == 10);
    assert!(ResourceCode::Nic as u32 == 0 && ResourceCode::Descriptor as u32 == 3);
};
