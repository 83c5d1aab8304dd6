//! VIPL, the library of the Virtual Interface Architecture, in Rust.
//!
//! | VIPL functions | here |
//! |---|---|
//! | `VipOpenNic`, `VipCloseNic`, `VipQueryNic`, `VipErrorCallback` | [`Nic`] |
//! | `VipCreatePtag`, `VipDestroyPtag` | [`Nic::create_ptag`], [`Nic::destroy_ptag`] |
//! | `VipQuerySystemManagementInfo` | [`Nic::query_management`] |
//! | `VipRegisterMem`, `VipDeregisterMem`, `VipQueryMem`, `VipSetMemAttributes` | [`Nic::register_mem`] and its neighbours |
//! | `VipCreateVi`, `VipDestroyVi`, `VipQueryVi`, `VipSetViAttributes` | [`Nic::create_vi`], [`Vi::destroy`], [`Vi::query`], [`Vi::set_attributes`] |
//! | `VipSetViExtensions`, `VipQueryViExtensions` | [`Vi::set_extensions`], [`Vi::extensions`] |
//! | `VipConnectWait`, `Accept`, `Reject`, `Request`, `VipDisconnect` | [`Nic::connect_wait`], [`ConnectionRequest`], [`Vi`] |
//! | `VipConnectPeerRequest`, `Done`, `Wait` | [`Vi::connect_peer_request`] and its neighbours |
//! | `VipPostSend`, `VipSendDone`, `VipSendWait`, and the same for receives | [`Vi`] |
//! | `VipSendNotify`, `VipRecvNotify`, `VipCQNotify` | [`Vi::send_notify`], [`Vi::recv_notify`], [`Cq::notify`] |
//! | RDMA writes and reads, where the NIC has them | [`Descriptor::prepare_rdma_write`], [`Descriptor::prepare_rdma_read`], [`Region::remote`] |
//! | `VipCreateCQ`, `VipCQDone`, `VipCQWait`, `VipResizeCQ`, `VipDestroyCQ` | [`Nic::create_cq`], [`Cq`] |
//! | `VipNSInit`, `VipNSGetHostByName`, `VipNSGetHostByAddr`, `VipNSShutdown` | [`Nic::ns_init`] and its neighbours; the file: [`names`] |
//!
//! For layers above: [`cache`] keeps registrations; [`listener`] waits for several requests at once;
//! [`waiting`] says how waits wait.
//!
//! Time-outs are [`core::time::Duration`]s; [`INFINITE`] never ends. Memory that a NIC touches is
//! [`DmaMemory`].
#![forbid(unsafe_code)]

pub mod attributes;
pub mod cache;
pub mod completion;
pub mod connection;
pub mod descriptor;
pub mod error;
mod handlers;
pub mod listener;
pub mod management;
pub mod memory;
pub mod names;
pub mod nic;
pub mod notify;
mod objects;
pub mod peer;
pub mod queue_pair;
pub mod transfer;
pub mod vi;
pub mod waiting;

pub use attributes::{
    MemAttributes, NicAttributes, Ptag, Reliability, RemoteViAttributes, ViAttributes, ViQuery,
    ViState,
};
pub use connection::ConnectionRequest;
pub use descriptor::{Completion, CompletionError, Descriptor, RemoteBuffer, Segment, Status};
pub use error::{Cause, Error, ErrorCode, HostsError, ResourceCode, Result, VipReturn};
pub use handlers::set_error_sink;
pub use listener::Listener;
pub use management::{AutoDiscoveryList, SMI_AUTODISCOVERY};
pub use memory::Region;
pub use objects::{Cq, CqEntry, ErrorDescriptor, ErrorHandler, Nic, Vi, Waiting};
pub use port::{DataTransfer, DmaMemory, Extensions, NetAddress, Queue};
pub use transfer::INFINITE;
