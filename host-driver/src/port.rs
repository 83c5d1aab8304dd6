//! The seam between VIPL and what carries it: a NIC, or later a NIC in software.

use core::fmt;
use std::sync::Arc;

use nic_regs::doorbell::{Queue, Token};
use nic_regs::tpt::Handle;
use nic_regs::vi::{Reliability, StopReason};

use crate::bus::{ThreadSeat, Wait};
use crate::dma::DmaMemory;
use crate::doorbell::DoorbellPage;
use crate::error::Result;

mod hardware;
pub use hardware::HardwarePort;

/// Bytes of a host address on this network.
pub const HOST_ADDRESS_BYTES: usize = 6;
/// Longest host address that connection messages carry.
pub const HOST_ADDRESS_MAX: usize = 16;
/// Longest discriminator.
pub const DISCRIMINATOR_MAX: usize = 64;

/// A network address: a host and a discriminator that names a service on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetAddress {
    /// Host address.
    pub host: Vec<u8>,
    /// Discriminator.
    pub discriminator: Vec<u8>,
}

impl NetAddress {
    /// Joins both parts.
    #[must_use]
    pub fn new(host: &[u8], discriminator: &[u8]) -> Self {
        Self { host: host.to_vec(), discriminator: discriminator.to_vec() }
    }

    /// An address on node `node` of the link network.
    #[must_use]
    pub fn of_node(node: u8, discriminator: &[u8]) -> Self {
        Self::new(&node_address(node), discriminator)
    }

    /// The node that the host part names, if it is on the link network.
    #[must_use]
    pub fn node(&self) -> Option<u8> {
        let (node, _) = self.host.split_last()?;
        (self.host == node_address(*node)).then_some(*node)
    }
}

/// The host address of a node: locally administered, 'VIA', node number.
#[must_use]
pub const fn node_address(node: u8) -> [u8; HOST_ADDRESS_BYTES] {
    [0x02, b'V', b'I', b'A', 0, node]
}

/// Limits and identity of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortAttributes {
    /// What it is.
    pub name: String,
    /// Revision of the hardware's layouts.
    pub hardware_version: u32,
    /// Own host address.
    pub host_address: Vec<u8>,
    /// VIs.
    pub vis: u32,
    /// Regions.
    pub regions: u32,
    /// Completion queues.
    pub queues: u32,
    /// Entries of a completion queue.
    pub queue_entries: u32,
    /// Data segments of a descriptor.
    pub segments: u32,
    /// Longest message, in bytes.
    pub max_transfer: u32,
    /// Bytes that travel in one piece.
    pub native_mtu: u32,
    /// Protection tags.
    pub tags: u32,
    /// It takes data with a post ([`ViPort::post_with`]).
    pub push: bool,
    /// RDMA writes.
    pub rdma_write: bool,
    /// RDMA reads, on the reliable levels.
    pub rdma_read: bool,
}

/// What a VI is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortVi {
    /// Reliability level.
    pub reliability: Reliability,
    /// Protection tag.
    pub tag: u16,
    /// Longest message, in bytes.
    pub max_transfer: u32,
    /// Completion queue of the send queue.
    pub send_queue: Option<u16>,
    /// Completion queue of the receive queue.
    pub recv_queue: Option<u16>,
    /// The other side may write by RDMA.
    pub rdma_write: bool,
    /// The other side may read by RDMA.
    pub rdma_read: bool,
}

/// What one side tells the other about its VI.
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
    /// Whether two VIs with these attributes may be connected: level, longest message and quality of
    /// service are the same.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.reliability == other.reliability
            && self.max_transfer == other.max_transfer
            && self.qos == other.qos
    }
}

/// Completions of one VI's queue, not told before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// VI number.
    pub vi: u16,
    /// Which of its queues.
    pub queue: Queue,
    /// How many descriptors.
    pub count: u32,
}

/// A completion queue of a port. One reader at a time.
pub trait CompletionQueue: fmt::Debug + Send + Sync {
    /// Its number, for [`PortVi`].
    fn number(&self) -> u16;
    /// Takes the next record.
    fn poll(&self) -> Option<Completed>;
    /// The next record, or one that is there and was not polled, wakes who sleeps
    /// ([`ViPort::sleep`]), once.
    fn arm(&self);
    /// While it is retired, as it is to be when its number gets another ring
    /// ([`ViPort::resize_queue`]), the device is told nothing of it.
    fn retire(&self, retired: bool);
}

/// A VI stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViStopped {
    /// VI number.
    pub vi: u16,
    /// Why.
    pub reason: StopReason,
    /// The peer's reason, for [`StopReason::Refused`].
    pub remote_reason: StopReason,
    /// The queue whose first descriptor that is not done gets `status`.
    pub queue: Queue,
    /// Status bits of that descriptor; all others are flushed.
    pub status: u32,
}

/// What a port tells without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortEvent {
    /// A VI stopped.
    ViStopped(ViStopped),
    /// The card fell off the bus. Nothing is completed, and nothing comes, any more; the port's
    /// memory is not touched. Told once.
    CardLost,
}

/// A connection request that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Names the exchange: node and number.
    pub exchange: (u8, u32),
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
    /// The other side said no.
    Rejected,
    /// Nobody waits at that address.
    NoMatch,
    /// The peer is there, but its VI is not like this one; its attributes.
    Mismatch(RemoteAttributes),
    /// The other side gave up, or its node is gone.
    Cancelled,
}

/// What VIPL's native provider needs. Everything but [`ViPort::post`] and the polls is off the fast
/// path.
///
/// Set-up is polled: nothing happens unless somebody calls [`ViPort::next_event`] or a `_poll` now
/// and then.
pub trait ViPort: fmt::Debug + Send + Sync {
    /// Limits and identity.
    fn attributes(&self) -> &PortAttributes;

    /// A protection tag.
    ///
    /// # Errors
    /// None left.
    fn create_tag(&self) -> Result<u16>;
    /// Gives a tag back.
    fn destroy_tag(&self, tag: u16);
    /// Registers memory; `rights` as in `nic_regs::tpt`.
    ///
    /// # Errors
    /// No region left, or the device refused.
    fn register(&self, memory: &DmaMemory, tag: u16, rights: u8) -> Result<Handle>;
    /// Takes a registration back; the memory is not touched afterwards.
    ///
    /// # Errors
    /// A handle that is not this port's.
    fn deregister(&self, handle: Handle) -> Result<()>;

    /// Gives registered memory another tag and other rights; the handle stays. Until this returns,
    /// accesses through the handle are refused.
    ///
    /// # Errors
    /// A handle that is not this port's, or the device refused.
    fn set_region(&self, handle: Handle, memory: &DmaMemory, tag: u16, rights: u8) -> Result<()>;

    /// A completion queue for at least `entries` records.
    ///
    /// # Errors
    /// None left, or too many entries.
    fn create_queue(&self, entries: u32) -> Result<Arc<dyn CompletionQueue>>;
    /// Gives a completion queue room for at least `entries` records and gives its new reader; the
    /// number stays. The old reader finds what came before. Records of what completes meanwhile may
    /// be lost: whoever asks looks at the statuses afterwards.
    ///
    /// # Errors
    /// A number that is not this port's, too many entries, no memory: nothing has changed then. A
    /// failed command, after which the queue announces nothing any more.
    fn resize_queue(&self, queue: u16, entries: u32) -> Result<Arc<dyn CompletionQueue>>;
    /// Takes a completion queue back; no VI may use it.
    ///
    /// # Errors
    /// A number that is not this port's.
    fn destroy_queue(&self, queue: u16) -> Result<()>;

    /// A VI, Idle.
    ///
    /// # Errors
    /// None left, or bad attributes.
    fn create_vi(&self, vi: PortVi) -> Result<u16>;
    /// Gives an Idle VI other attributes; its number stays. Its queues are empty afterwards.
    ///
    /// # Errors
    /// Not Idle, not this port's, or bad attributes; after a failed command the VI may be gone.
    fn set_vi(&self, vi: u16, attributes: PortVi) -> Result<()>;
    /// Destroys an Idle VI.
    ///
    /// # Errors
    /// Not Idle, or not this port's.
    fn destroy_vi(&self, vi: u16) -> Result<()>;
    /// Disconnects a VI if it is connected and empties its queues. Afterwards no descriptor or
    /// buffer of it is touched, and no event of its old connection comes any more.
    ///
    /// # Errors
    /// A VI that is not this port's.
    fn reset_vi(&self, vi: u16) -> Result<()>;
    /// Whether the port itself has stopped the VI.
    ///
    /// # Errors
    /// A VI that is not this port's.
    fn vi_stopped(&self, vi: u16) -> Result<bool>;
    /// Posts a descriptor. What was stored in it before is visible to the port.
    fn post(&self, token: Token);
    /// The same of a send whose data, at most [`nic_regs::doorbell::PUSH_DATA_BYTES`], and immediate
    /// data are known here; the descriptor says the same. A port may ignore them.
    fn post_with(&self, token: Token, data: &[u8], immediate: Option<u32>);
    /// The page that [`ViPort::post`] and [`ViPort::post_with`] write, if they do no more than that:
    /// whoever posts often may write it itself.
    fn doorbells(&self) -> Option<DoorbellPage> {
        None
    }
    /// The next event. Cheap if there is nothing to do.
    fn next_event(&self) -> Option<PortEvent>;

    /// Starts to wait for requests to `local`.
    ///
    /// # Errors
    /// Another one waits at that address.
    fn listen(&self, local: &NetAddress) -> Result<u32>;
    /// The request that arrived, if one did; it ends the waiting.
    ///
    /// # Errors
    /// [`crate::Error::Absent`]: none will come.
    fn listen_poll(&self, listener: u32) -> Result<Option<Incoming>>;
    /// Ends the waiting.
    fn listen_stop(&self, listener: u32);
    /// Asks `remote` for a connection to VI `local.vi` until `bound_ns` are over.
    /// `local.connection` is chosen here.
    ///
    /// # Errors
    /// `remote` is not on this network; a VI that is not this port's.
    fn connect(
        &self,
        local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        bound_ns: u64,
    ) -> Result<u32>;
    /// How a request is getting on; anything but Pending ends it.
    ///
    /// # Errors
    /// The device refused to connect the VI.
    fn connect_poll(&self, exchange: u32) -> Result<Progress>;
    /// Gives a request up.
    fn connect_cancel(&self, exchange: u32);
    /// Accepts a request with VI `local.vi`.
    ///
    /// # Errors
    /// The device refused to connect the VI; a VI that is not this port's.
    fn accept(&self, incoming: &Incoming, local: RemoteAttributes) -> Result<()>;
    /// How an acceptance is getting on; anything but Pending ends it.
    fn accept_poll(&self, incoming: &Incoming) -> Progress;
    /// Gives a request that arrived, or its acceptance, up.
    fn reject(&self, incoming: &Incoming);

    /// Asks for a connection of VI `local.vi` with the peer at `remote` that names `from`, until
    /// `bound_ns` are over; both sides do.
    ///
    /// # Errors
    /// `remote` is not on this network, or both addresses are one; a VI that is not this port's.
    fn peer_connect(
        &self,
        local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        bound_ns: u64,
    ) -> Result<u32>;
    /// How it is getting on; anything but Pending ends it. Cancelled, if the time is not over, means
    /// that it failed in a way that another try may mend. One thread at a time for a request.
    ///
    /// # Errors
    /// The device refused to connect the VI.
    fn peer_poll(&self, request: u32) -> Result<Progress>;
    /// Gives it up.
    fn peer_cancel(&self, request: u32);
    /// Host addresses of the nodes that answer now, in rising order, this one not among them. Asks
    /// every node, which takes some milliseconds.
    ///
    /// # Errors
    /// [`crate::Error::Absent`].
    fn discover(&self) -> Result<Vec<NetAddress>>;

    /// How often sleepers were woken. Who reads it, then arms its queue, then looks whether there is
    /// anything to do, and then sleeps, misses nothing.
    fn wake_count(&self) -> u64;
    /// Sleeps until a queue that was armed has a record, until something happened that
    /// [`ViPort::next_event`] or a poll may tell of, or until `bound_ns` are over; not at all if
    /// somebody was woken since `seen`. It may wake earlier.
    fn sleep(&self, seen: u64, bound_ns: u64, wait: Wait);
    /// Wakes everybody.
    fn wake(&self);
    /// See [`crate::bus::Bus::thread_seat`].
    fn thread_seat(&self, name: &str) -> Box<dyn ThreadSeat>;

    /// See [`crate::bus::Bus::relax`].
    fn relax(&self, wait: Wait);
    /// See [`crate::bus::Bus::now_ns`].
    fn now_ns(&self) -> u64;
    /// Takes everything back that the port still holds.
    fn close(&self);
}
