//! CLAN's network model: non-coherent shared memory between nodes, with tripwires.
//!
//! [`ClanPort`] is what a CLAN NIC offers a program, in hardware or in software: regions of memory
//! that are opened to others by revocable cookies; stores, copies and reads of others' regions;
//! a DMA queue; tripwires, which turn an access to one word into an event; event queues; and small
//! messages beside all this, for setting up. Source: "VIA over the CLAN Network", section 2.2.
//! `docs/clan.md` explains the model to a programmer.
//!
//! Order: what one domain writes to one other (stores, DMA requests of one queue) becomes visible
//! there in the order in which it was issued.

mod event;
pub mod message_queue;
mod region;
mod remote;

pub use event::{ClanEvent, DmaError, EventQueue, wait_event};
pub use region::{AccessRights, ClanPeer, Cookie, RegionNumber, Tripwire, TripwireNumber};
pub use remote::{DmaQueue, DmaRequest, Remote};

use core::fmt::Debug;
use std::sync::Arc;

use crate::error::Result;
use crate::memory::DmaMemory;
use crate::ops::WaitOps;

pub use crate::connection::Message;

/// Limits and identity of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClanAttributes {
    /// Name of the device.
    pub name: String,
    /// This domain, as others name it.
    pub own: ClanPeer,
    /// Regions.
    pub regions: u32,
    /// Tripwires, of all event queues together.
    pub tripwires: u32,
    /// Event queues.
    pub queues: u32,
    /// Whether a store to memory of every kind costs no more than a processor's store. If not, it
    /// does so only for memory of [`ClanPort::allocate`] ([`Remote::is_mapped`]).
    pub maps_all: bool,
}

/// One domain of a node of a CLAN network: what one program, or one part of it, may touch.
pub trait ClanPort: WaitOps + Debug + Send + Sync {
    /// Limits and identity.
    fn attributes(&self) -> &ClanAttributes;

    /// Whether the network has this process as that node; not in a child after fork.
    fn is_present(&self) -> bool {
        true
    }

    /// Allocates memory that others reach by processor stores once it is opened to them.
    ///
    /// # Errors
    /// No memory, or no descriptor for it.
    fn allocate(&self, length: usize) -> Result<DmaMemory>;

    /// Registers memory: a region that nobody else may touch yet. Accesses by others find it where
    /// it is, so the memory must stay until [`ClanPort::deregister`] returns.
    ///
    /// # Errors
    /// No region left.
    fn register(&self, memory: &DmaMemory) -> Result<RegionNumber>;

    /// Revokes all cookies of a region, and forgets it. Once this returns, nothing of it is read or
    /// written any more.
    ///
    /// # Errors
    /// A number that is not this port's; a peer that does not confirm in bounded time, because its
    /// process is stopped: the region stays then, and this may be called again.
    fn deregister(&self, region: RegionNumber) -> Result<()>;

    /// Opens a region to one other domain. The cookie means nothing to anybody else.
    ///
    /// # Errors
    /// A number that is not this port's.
    fn open(&self, region: RegionNumber, to: &ClanPeer, rights: AccessRights) -> Result<Cookie>;

    /// Takes a cookie back. Once this returns, no access by it is under way, and every later one is
    /// refused.
    ///
    /// # Errors
    /// As [`ClanPort::deregister`]. A cookie that is void already is no error.
    fn revoke(&self, cookie: Cookie) -> Result<()>;

    /// Makes a region of another domain accessible.
    ///
    /// # Errors
    /// [`crate::Error::NoSuch`] if the cookie is void or was given to somebody else;
    /// [`crate::Error::NotReachable`] if there is no such node, or it does not answer in bounded
    /// time.
    fn attach(&self, owner: &ClanPeer, cookie: Cookie) -> Result<Box<dyn Remote>>;

    /// Creates a DMA queue. Completions that are asked for go to event queue `queue`.
    ///
    /// # Errors
    /// None left; an event queue that is not this port's.
    fn dma_queue(&self, queue: u16) -> Result<Box<dyn DmaQueue>>;

    /// Creates an event queue.
    ///
    /// # Errors
    /// None left.
    fn event_queue(&self) -> Result<Arc<dyn EventQueue>>;

    /// Creates an event queue for tripwires whose events nobody asks for: armed, it wakes its reader,
    /// who then looks at the words themselves. It may report nothing else. Cheaper for those who
    /// access the words, where events cost them something.
    ///
    /// # Errors
    /// None left.
    fn wake_queue(&self) -> Result<Arc<dyn EventQueue>> {
        self.event_queue()
    }

    /// Destroys an event queue. Its tripwires are cleared.
    ///
    /// # Errors
    /// A number that is not this port's.
    fn destroy_event_queue(&self, queue: u16) -> Result<()>;

    /// Has messages to this domain, and what happens to its peers, go to an event queue; before,
    /// messages are lost.
    ///
    /// # Errors
    /// An event queue that is not this port's.
    fn set_message_queue(&self, queue: u16) -> Result<()>;

    /// Sets a tripwire. Once this returns, every later access fires it, and no earlier one did.
    ///
    /// # Errors
    /// No tripwire left; a word that is not in the region, or not on a multiple of 8 bytes; an event
    /// queue that is not this port's.
    fn set_tripwire(&self, tripwire: &Tripwire) -> Result<TripwireNumber>;

    /// Takes a tripwire back. Its events that were not polled are dropped.
    ///
    /// # Errors
    /// A number that is not this port's.
    fn clear_tripwire(&self, tripwire: TripwireNumber) -> Result<()>;

    /// Sends a message to another domain. It may be lost if the other side does not take its
    /// messages: an exchange repeats until it is answered. In order, otherwise.
    ///
    /// # Errors
    /// [`crate::Error::NotReachable`] if there is no such node; [`crate::Error::PeerDown`] if it has ended
    /// just now, and messages that it sent before may still come.
    fn send_message(&self, to: &ClanPeer, message: &Message) -> Result<()>;

    /// Host addresses of the nodes that answer now, in rising order, this one not among them.
    ///
    /// # Errors
    /// They cannot be found.
    fn discover(&self) -> Result<Vec<Vec<u8>>>;

    /// Host address of a name that the network itself gives, without any file of names.
    fn host_of_name(&self, name: &str) -> Option<Vec<u8>>;

    /// The network's own name of a host address.
    fn name_of_host(&self, host: &[u8]) -> Option<String>;

    /// Releases everything that the domain still holds; nothing of it is touched any more.
    fn close(&self);
}
