//! Regions of the peer that RDMA has met.

use port::clan::{AccessRights, Remote};

/// Regions of the peer, as its answers say.
#[derive(Debug, Default)]
pub(super) struct Targets {
    pub(super) known: Vec<(u32, Option<Target>)>,
    /// The region that was asked for, and when.
    pub(super) asked: Option<(u32, u64)>,
}

/// A region of the peer that this VI may access.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) address: u64,
    pub(super) rights: AccessRights,
    pub(super) remote: Box<dyn Remote>,
}
