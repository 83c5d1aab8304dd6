//! What the methods of a port take and return.

use nic_regs::doorbell::Queue;
use nic_regs::vi::Reliability;

use crate::address::NetAddress;
use crate::error::{Error, Result};

/// Limits and identity of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortAttributes {
    /// Name of the device.
    pub name: String,
    /// Revision of the device.
    pub hardware_version: u32,
    /// Own host address.
    pub host_address: Vec<u8>,
    /// VIs.
    pub vis: u32,
    /// Registered regions.
    pub regions: u32,
    /// Completion queues.
    pub queues: u32,
    /// Entries of a completion queue.
    pub queue_entries: u32,
    /// Data segments of a descriptor.
    pub segments: u32,
    /// Longest message, in bytes.
    pub max_transfer: u32,
    /// Bytes that travel in one frame.
    pub native_mtu: u32,
    /// Protection tags.
    pub tags: u32,
    /// A doorbell takes the data of a short send ([`crate::doorbell::Ring::ring_with_data`]).
    pub push: bool,
    /// RDMA writes.
    pub rdma_write: bool,
    /// RDMA reads, on the reliable levels.
    pub rdma_read: bool,
    /// [`Extensions`].
    pub extensions: bool,
    /// What else limits or describes this kind of device, each with its name; for people.
    pub more: Vec<(&'static str, u64)>,
}

/// RDMA that a region or a VI allows its peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RdmaAccess {
    /// Peers may write.
    pub write: bool,
    /// Peers may read.
    pub read: bool,
}

/// Attributes that a VI is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViSettings {
    /// Reliability level.
    pub reliability: Reliability,
    /// Protection tag.
    pub tag: u16,
    /// Longest message, in bytes.
    pub max_transfer: u32,
    /// Number of the send queue's completion queue.
    pub send_queue: Option<u16>,
    /// Number of the receive queue's completion queue.
    pub recv_queue: Option<u16>,
    /// RDMA that the peer may do.
    pub rdma: RdmaAccess,
    /// What the VI does beyond the specification.
    pub extensions: Extensions,
}

impl ViSettings {
    /// Fails if a VI of a port with these attributes cannot be so.
    ///
    /// # Errors
    /// [`Error::NotSupported`].
    pub fn check_extensions(&self, port: &PortAttributes) -> Result<()> {
        if port.extensions || self.extensions == Extensions::default() {
            Ok(())
        } else {
            Err(Error::NotSupported { what: "VI with extensions" })
        }
    }
}

/// What a VI does beyond the specification, where the port can ("VIA over the CLAN Network", 3.5 and
/// 3.7). A VI that was not asked to do so keeps to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Its sends wait until the peer has posted a receive, instead of being lost.
    pub defer_send: bool,
    /// A message that is longer than the oldest receive continues in the next ones. All but the last
    /// have [`nic_regs::desc::status::CONTINUED`] in their status; immediate data is in the last.
    pub split_receive: bool,
    /// How the data of its sends is moved.
    pub transfer: DataTransfer,
}

/// How the data of sends is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataTransfer {
    /// As is best for each.
    #[default]
    Dynamic,
    /// By stores of the processor, into memory from where the receiver's program takes it. A send may
    /// have to wait for that.
    Pio,
    /// By copies straight into the receiver's buffers.
    Dma,
}

/// Attributes of a VI as the two sides of a connection exchange them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAttributes {
    /// VI number.
    pub vi: u16,
    /// Connection id; the requester chooses it, the acceptor repeats it.
    pub connection: u16,
    /// Reliability level.
    pub reliability: Reliability,
    /// RDMA writes into this side are allowed.
    pub rdma_write: bool,
    /// RDMA reads from this side are allowed.
    pub rdma_read: bool,
    /// Longest message, in bytes.
    pub max_transfer: u32,
    /// Quality of service; no values are defined.
    pub qos: u64,
}

impl RemoteAttributes {
    /// Whether two VIs with these attributes may be connected: level, longest message and quality
    /// of service are the same.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.reliability == other.reliability
            && self.max_transfer == other.max_transfer
            && self.qos == other.qos
    }
}

/// Completions of one VI's queue that were not reported before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// VI number.
    pub vi: u16,
    /// Which of its queues.
    pub queue: Queue,
    /// How many descriptors.
    pub count: u32,
}

/// Why a port stopped a VI, as far as VIPL distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// A descriptor failed; its own status has the error bits.
    DescriptorError,
    /// A descriptor could not be read.
    DescriptorUnreachable,
    /// A message arrived and no receive descriptor was posted.
    ReceiveQueueEmpty,
    /// The peer disconnected.
    Disconnected,
    /// The peer refused a message, or no longer exists.
    ConnectionLost,
    /// An RDMA write was not allowed.
    RdmaWriteRefused,
    /// An RDMA read was not allowed.
    RdmaReadRefused,
}

/// A VI stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViStopped {
    /// VI number.
    pub vi: u16,
    /// Why.
    pub reason: StopReason,
    /// The queue whose first descriptor that is not done gets `status`.
    pub queue: Queue,
    /// Status bits of that descriptor; all others are flushed.
    pub status: u32,
}

/// An event that a port reports without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortEvent {
    /// A VI stopped.
    ViStopped(ViStopped),
    /// The device no longer exists. Nothing completes or arrives any more, and the port's memory is
    /// not touched. Reported once.
    CardLost,
}

/// A connection request that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Names the request; opaque, the port's own.
    pub id: u64,
    /// The requester's own address.
    pub from: NetAddress,
    /// Its VI.
    pub attributes: RemoteAttributes,
}

/// State of a connection that is being set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No answer yet.
    Pending,
    /// Both VIs are connected; the other side's attributes.
    Established(RemoteAttributes),
    /// The other side refused.
    Rejected,
    /// No listener waits at that address.
    NoMatch,
    /// The peer exists, but its VI is not like this one; its attributes.
    Mismatch(RemoteAttributes),
    /// The other side gave up, or no longer exists.
    Cancelled,
}

/// What a polling or sleeping thread waits for; shown when nothing can happen any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What.
    pub what: &'static str,
    /// Which one.
    pub index: u32,
    /// The wait ends by itself when a time is over.
    pub bounded: bool,
}

impl Wait {
    /// A wait that ends by itself.
    #[must_use]
    pub const fn bounded(what: &'static str, index: u32) -> Self {
        Self { what, index, bounded: true }
    }

    /// A wait that only the event itself ends.
    #[must_use]
    pub const fn unbounded(what: &'static str, index: u32) -> Self {
        Self { what, index, bounded: false }
    }
}
