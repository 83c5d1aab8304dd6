//! Attributes of NICs, VIs and memory; states of a VI.

pub use port::Reliability;

/// A protection tag (`VIP_PROTECTION_HANDLE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[doc(alias = "VIP_PROTECTION_HANDLE")]
pub struct Ptag(pub(crate) u16);

/// `VIP_NIC_ATTRIBUTES`
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "VIP_NIC_ATTRIBUTES")]
pub struct NicAttributes {
    /// Name of the device.
    pub name: String,
    /// Revision of the hardware.
    pub hardware_version: u32,
    /// Revision of this library.
    pub provider_version: u32,
    /// Own host address.
    pub local_address: Vec<u8>,
    /// Several threads may use one NIC handle.
    pub thread_safe: bool,
    /// Longest discriminator, in bytes.
    pub max_discriminator_len: u16,
    /// Most bytes of all registrations.
    pub max_register_bytes: u64,
    /// Most registrations.
    pub max_register_regions: u32,
    /// Most bytes of one registration.
    pub max_register_block_bytes: u64,
    /// Most VIs.
    pub max_vi: u32,
    /// Most descriptors posted on one queue.
    pub max_descriptors_per_queue: u32,
    /// Most data segments of a descriptor.
    pub max_segments_per_desc: u32,
    /// Most completion queues.
    pub max_cq: u32,
    /// Most entries of a completion queue.
    pub max_cq_entries: u32,
    /// Longest message, in bytes.
    pub max_transfer_size: u32,
    /// Bytes that travel in one piece.
    pub native_mtu: u32,
    /// Most protection tags.
    pub max_ptags: u32,
    /// Reliability levels, as a mask of [`Reliability`].
    pub reliability_level_support: u16,
    /// Reliability levels with RDMA reads, as a mask.
    pub rdma_read_support: u16,
}

/// `VIP_VI_ATTRIBUTES`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "VIP_VI_ATTRIBUTES")]
pub struct ViAttributes {
    /// Reliability level.
    pub reliability: Reliability,
    /// Longest message, in bytes.
    pub max_transfer_size: u32,
    /// Quality of service; no values are defined, both sides must agree.
    pub qos: u64,
    /// Protection tag.
    pub ptag: Ptag,
    /// Remote sides may write by RDMA.
    pub enable_rdma_write: bool,
    /// Remote sides may read by RDMA.
    pub enable_rdma_read: bool,
}

impl ViAttributes {
    /// A VI of this level for messages up to 256 KiB, without RDMA.
    #[must_use]
    pub const fn new(reliability: Reliability, ptag: Ptag) -> Self {
        Self {
            reliability,
            max_transfer_size: port::MAX_TRANSFER_BYTES,
            qos: 0,
            ptag,
            enable_rdma_write: false,
            enable_rdma_read: false,
        }
    }
}

/// The attributes of the other side's VI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteViAttributes {
    /// Reliability level.
    pub reliability: Reliability,
    /// Longest message, in bytes.
    pub max_transfer_size: u32,
    /// Quality of service.
    pub qos: u64,
    /// It may be written by RDMA.
    pub enable_rdma_write: bool,
    /// It may be read by RDMA.
    pub enable_rdma_read: bool,
}

impl From<port::RemoteAttributes> for RemoteViAttributes {
    fn from(a: port::RemoteAttributes) -> Self {
        Self {
            reliability: a.reliability,
            max_transfer_size: a.max_transfer,
            qos: a.qos,
            enable_rdma_write: a.rdma_write,
            enable_rdma_read: a.rdma_read,
        }
    }
}

/// `VIP_MEM_ATTRIBUTES`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "VIP_MEM_ATTRIBUTES")]
pub struct MemAttributes {
    /// Protection tag.
    pub ptag: Ptag,
    /// Remote sides may write by RDMA.
    pub enable_rdma_write: bool,
    /// Remote sides may read by RDMA.
    pub enable_rdma_read: bool,
}

impl MemAttributes {
    /// Memory for local use only.
    #[must_use]
    pub const fn new(ptag: Ptag) -> Self {
        Self { ptag, enable_rdma_write: false, enable_rdma_read: false }
    }
}

/// `VIP_VI_STATE`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "VIP_VI_STATE")]
pub enum ViState {
    /// Not connected.
    Idle = 0,
    /// Connected.
    Connected = 1,
    /// A connection is being set up.
    ConnectPending = 2,
    /// The connection broke; disconnect to use the VI again.
    Error = 3,
}

/// What `VipQueryVi` reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViQuery {
    /// State.
    pub state: ViState,
    /// Attributes.
    pub attributes: ViAttributes,
    /// Nothing is posted on the send queue.
    pub send_queue_empty: bool,
    /// Nothing is posted on the receive queue.
    pub recv_queue_empty: bool,
}
