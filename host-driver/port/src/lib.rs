//! What VIPL stands on: traits that a NIC implements, in hardware or in software, and what every
//! implementation shares. Nothing in here knows a bus, a simulator or how a network numbers its nodes,
//! and of a device's registers only the doorbells.
//!
//! | module | what |
//! |---|---|
//! | [`ops`] | [`ViPort`], the sum of six traits: memory, VIs, completion, connections, hosts, waiting |
//! | [`clan`] | `ClanPort`: CLAN's model, memory of other nodes with tripwires |
//! | [`attributes`], [`address`], [`error`] | what the traits' methods take and return |
//! | [`doorbell`] | what a work queue rings when a descriptor is posted |
//! | [`work_queue`] | VIA's rule for a queue: descriptors linked by Next, completed in order |
//! | [`memory`], [`mapped`] | memory that a device and a program use at the same time |
//! | [`events`] | events that wait for VIPL |
//! | [`connection`] | connection management by messages, for ports that have nothing of their own |
//! | [`lock`], [`slab`], [`sync`], [`process`], [`fork`] | locks, reused slots, signals, fork handlers |
//! | [`stamp`] | when a message passes each stage, for measurements; nothing without the feature `stamps` |
//! | [`own`] | descriptors of this library in a program that does not know of it |
//! | [`trust`] | where programs of one user meet, and whom they trust |
//!
//! From `nic-regs` come VIA's own layouts and numbers (descriptors, memory handles, reliability
//! levels, the names of the two queues), the layout of a mapped doorbell (its token and push line), and
//! the size of a connection message.
//!
//! `examples/loopback.rs` is a whole port, with a message that crosses it.

pub mod address;
pub mod attributes;
mod barrier;
pub mod clan;
pub mod connection;
pub mod doorbell;
pub mod error;
pub mod events;
pub mod fork;
pub mod lock;
pub mod mapped;
pub mod memory;
pub mod ops;
pub mod own;
pub mod pcapng;
mod primitives;
pub mod process;
pub mod slab;
pub mod stamp;
pub mod sync;
pub mod trust;
pub mod work_queue;

pub use address::NetAddress;
pub use attributes::{
    Completed, DataTransfer, Extensions, Incoming, PortAttributes, PortEvent, Progress, RdmaAccess,
    RemoteAttributes, StopReason, ViSettings, ViStopped, Wait,
};
pub use doorbell::Doorbell;
pub use error::{Error, Result};
pub use memory::DmaMemory;
pub use nic_regs::desc;
pub use nic_regs::doorbell::Queue;
pub use nic_regs::limits::MAX_TRANSFER_BYTES;
pub use nic_regs::tpt::Handle;
pub use nic_regs::vi::Reliability;
pub use ops::{
    CompletionOps, CompletionQueue, ConnectionOps, HostOps, MemoryOps, ViOps, ViPort, WaitOps,
};
