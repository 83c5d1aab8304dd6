//! Protection tags and registered memory.

use nic_regs::tpt::Handle;

use crate::attributes::RdmaAccess;
use crate::error::Result;
use crate::memory::DmaMemory;

/// Memory that a port may reach.
pub trait MemoryOps {
    /// Allocates a protection tag.
    ///
    /// # Errors
    /// None left.
    fn create_tag(&self) -> Result<u16>;

    /// Frees a protection tag.
    fn destroy_tag(&self, tag: u16);

    /// Registers memory.
    ///
    /// # Errors
    /// No region left, or the device refused.
    fn register(&self, memory: &DmaMemory, tag: u16, rdma: RdmaAccess) -> Result<Handle>;

    /// Deregisters memory, which is not touched afterwards.
    ///
    /// # Errors
    /// A handle that is not this port's.
    fn deregister(&self, handle: Handle) -> Result<()>;

    /// Changes tag and RDMA access of registered memory; the handle stays. Until this returns,
    /// accesses through the handle are refused.
    ///
    /// # Errors
    /// A handle that is not this port's, or the device refused.
    fn set_region(
        &self,
        handle: Handle,
        memory: &DmaMemory,
        tag: u16,
        rdma: RdmaAccess,
    ) -> Result<()>;
}
