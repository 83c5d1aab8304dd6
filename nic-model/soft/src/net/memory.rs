//! Registered memory and protection tags of a port.

use port::sync::lock;
use port::{DmaMemory, Handle, MemoryOps, RdmaAccess, Result};

use super::NetVia;
use crate::via::region::Region;

impl NetVia {
    /// Has every VI forget a region.
    fn forget(&self, handle: Handle) {
        self.vis.all().iter().for_each(|vi| lock(&vi.state).vi.known.forget(handle));
    }
}

impl MemoryOps for NetVia {
    fn create_tag(&self) -> Result<u16> {
        self.regions.create_tag()
    }

    fn destroy_tag(&self, tag: u16) {
        self.regions.destroy_tag(tag);
    }

    fn register(&self, memory: &DmaMemory, tag: u16, rdma: RdmaAccess) -> Result<Handle> {
        // An access of this library to memory that is not mapped would end the program.
        port::mapped::check_readable(memory)?;
        self.regions.register(Region { memory: memory.clone(), tag, rdma })
    }

    fn deregister(&self, handle: Handle) -> Result<()> {
        self.regions.deregister(handle)?;
        self.forget(handle);
        Ok(())
    }

    fn set_region(
        &self,
        handle: Handle,
        memory: &DmaMemory,
        tag: u16,
        rdma: RdmaAccess,
    ) -> Result<()> {
        self.regions.set(handle, Region { memory: memory.clone(), tag, rdma })?;
        self.forget(handle);
        Ok(())
    }
}
