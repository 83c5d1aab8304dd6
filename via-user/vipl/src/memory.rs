//! Protection tags and registered memory.

use port::DmaMemory;
use port::desc::ALIGNMENT;
use port::sync::lock;
use port::work_queue::Slot;
use port::{Handle, RdmaAccess};

use crate::attributes::{MemAttributes, Ptag};
use crate::descriptor::{Descriptor, RemoteBuffer, Segment};
use crate::error::{Result, VipReturn};
use crate::objects::Nic;

/// The least that a descriptor takes, in bytes: two segments, used or not.
const FRONT: usize = Descriptor::bytes(2);

/// Bytes between two buffers of so many: one cache line more, so that the first lines of buffers whose size
/// is a power of two do not all compete for the same places of a cache.
#[must_use]
pub const fn stride(buffer: usize) -> usize {
    buffer.next_multiple_of(64) + 64
}

/// Registered memory: the bytes and their handle. Clones are the same registration.
#[derive(Clone, Debug)]
pub struct Region {
    memory: DmaMemory,
    handle: Handle,
}

impl Region {
    pub(crate) const fn new(memory: DmaMemory, handle: Handle) -> Self {
        Self { memory, handle }
    }

    /// The memory.
    #[must_use]
    pub const fn memory(&self) -> &DmaMemory {
        &self.memory
    }

    /// The memory handle (`VIP_MEM_HANDLE`), never zero.
    #[must_use]
    #[doc(alias = "VIP_MEM_HANDLE")]
    pub const fn handle(&self) -> u32 {
        self.handle.0
    }

    /// A data segment of `length` bytes at `offset`. The NIC checks it when it uses it.
    #[must_use]
    pub fn segment(&self, offset: usize, length: u32) -> Segment {
        let address = self.memory.address().wrapping_add(offset as u64);
        Segment { address, handle: self.handle.0, length }
    }

    /// The place at `offset`, as another node names it in an RDMA. It needs handle and
    /// address somehow, and the region must be registered for RDMA.
    #[must_use]
    pub fn remote(&self, offset: usize) -> RemoteBuffer {
        let address = self.memory.address().wrapping_add(offset as u64);
        RemoteBuffer { address, handle: self.handle.0 }
    }

    /// The descriptor at `offset`, with room for `segments` data segments ([`Descriptor::bytes`]).
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if it is not aligned to 64 bytes or not inside.
    pub fn descriptor(&self, offset: usize, segments: usize) -> Result<Descriptor> {
        let slot = Slot::new(&self.memory, self.handle, offset, Descriptor::bytes(segments))?;
        Ok(Descriptor::new(slot))
    }

    /// The descriptor that the program has written at a virtual address: its segment count says how
    /// long it is. What does not lie in the region any more is the NIC's to judge.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if it is not aligned to 64 bytes, or its first 64 bytes are
    /// not inside.
    pub fn descriptor_at(&self, address: u64) -> Result<Descriptor> {
        let offset = address.checked_sub(self.memory.address());
        let offset = offset.and_then(|offset| usize::try_from(offset).ok());
        let offset = offset.ok_or(VipReturn::InvalidParameter)?;
        let inside = self.memory.len().saturating_sub(offset);
        if inside < FRONT || !address.is_multiple_of(ALIGNMENT) {
            return Err(VipReturn::InvalidParameter.into());
        }
        let length = Descriptor::written_bytes(&self.memory, offset).clamp(FRONT, inside);
        Ok(Descriptor::new(Slot::new(&self.memory, self.handle, offset, length)?))
    }
}

impl Nic {
    /// The memory of a registration, and whether a VI with this tag may read it.
    pub(crate) fn find(&self, tag: Ptag, handle: Handle) -> Option<(DmaMemory, bool)> {
        let memory = lock(&self.inner().memory);
        let (memory, attributes) = memory.get(&handle.0)?;
        Some((memory.clone(), attributes.ptag == tag))
    }

    /// Makes every work queue forget what it knows of a registration.
    fn forget(&self, handle: Handle) {
        self.vis().iter().for_each(|vi| vi.forget(handle));
    }

    /// Creates a protection tag.
    ///
    /// # Errors
    /// [`VipReturn::ErrorResource`] if none is left.
    #[doc(alias = "VipCreatePtag")]
    pub fn create_ptag(&self) -> Result<Ptag> {
        self.check_open()?;
        let tag = self.inner().port.create_tag()?;
        lock(&self.inner().tags).insert(tag, 0);
        Ok(Ptag(tag))
    }

    /// Destroys a protection tag.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if it does not exist, [`VipReturn::ErrorResource`] if it is
    /// in use.
    #[doc(alias = "VipDestroyPtag")]
    pub fn destroy_ptag(&self, tag: Ptag) -> Result<()> {
        let mut tags = lock(&self.inner().tags);
        match tags.get(&tag.0) {
            None => Err(VipReturn::InvalidParameter.into()),
            Some(0) => {
                tags.remove(&tag.0);
                self.inner().port.destroy_tag(tag.0);
                Ok(())
            }
            Some(_) => Err(VipReturn::ErrorResource.into()),
        }
    }

    pub(crate) fn use_tag(&self, tag: Ptag) -> Result<()> {
        match lock(&self.inner().tags).get_mut(&tag.0) {
            Some(uses) => {
                *uses += 1;
                Ok(())
            }
            None => Err(VipReturn::InvalidPtag.into()),
        }
    }

    pub(crate) fn release_tag(&self, tag: Ptag) {
        if let Some(uses) = lock(&self.inner().tags).get_mut(&tag.0) {
            *uses = uses.saturating_sub(1);
        }
    }

    /// What these attributes become on the NIC, if it has what they ask for.
    fn rdma(&self, attributes: MemAttributes) -> Result<RdmaAccess> {
        let port = self.port().attributes();
        if attributes.enable_rdma_read && !port.rdma_read {
            return Err(VipReturn::InvalidRdmaRead.into());
        }
        if attributes.enable_rdma_write && !port.rdma_write {
            return Err(VipReturn::ErrorNotSupported.into());
        }
        Ok(RdmaAccess { write: attributes.enable_rdma_write, read: attributes.enable_rdma_read })
    }

    /// Registers memory.
    ///
    /// # Errors
    /// [`VipReturn::InvalidPtag`], [`VipReturn::ErrorResource`]; [`VipReturn::InvalidRdmaRead`] and
    /// [`VipReturn::ErrorNotSupported`] if the NIC has no RDMA reads or writes.
    #[doc(alias = "VipRegisterMem")]
    pub fn register_mem(&self, memory: &DmaMemory, attributes: MemAttributes) -> Result<Region> {
        self.check_open()?;
        let rdma = self.rdma(attributes)?;
        self.use_tag(attributes.ptag)?;
        let registered = self.inner().port.register(memory, attributes.ptag.0, rdma);
        let handle = registered.inspect_err(|_| self.release_tag(attributes.ptag))?;
        // The map keeps the memory alive while the NIC may touch it.
        lock(&self.inner().memory).insert(handle.0, (memory.clone(), attributes));
        Ok(Region { memory: memory.clone(), handle })
    }

    /// Whether a descriptor in this memory is posted and not done.
    #[must_use]
    pub fn is_posted_in(&self, region: &Region) -> bool {
        self.vis().iter().any(|vi| vi.is_posted_in(region.handle))
    }

    /// Deregisters memory: afterwards the NIC does not touch it.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if it is not registered with this NIC.
    #[doc(alias = "VipDeregisterMem")]
    pub fn deregister_mem(&self, region: &Region) -> Result<()> {
        self.query_mem(region)?;
        self.inner().port.deregister(region.handle)?;
        let registered = lock(&self.inner().memory).remove(&region.handle.0);
        self.forget(region.handle);
        if let Some((_, attributes)) = registered {
            self.release_tag(attributes.ptag);
        }
        Ok(())
    }

    /// The attributes of registered memory.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if it is not registered with this NIC.
    #[doc(alias = "VipQueryMem")]
    pub fn query_mem(&self, region: &Region) -> Result<MemAttributes> {
        self.check_open()?;
        let memory = lock(&self.inner().memory);
        // Handles of two NICs may be alike.
        let same = |memory: &DmaMemory| {
            memory.address() == region.memory.address() && memory.len() == region.memory.len()
        };
        let registered = memory.get(&region.handle.0).filter(|(memory, _)| same(memory));
        let attributes = registered.map(|(_, attributes)| *attributes);
        attributes.ok_or_else(|| VipReturn::InvalidParameter.into())
    }

    /// Changes the attributes of registered memory; its handle stays. Tag and rights change as one:
    /// no access sees the one of before and the other of now. An access of the NIC while this is
    /// under way may find the handle not valid, and then ends as a protection error, so a program
    /// has its transfers with that memory done first.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if it is not registered with this NIC;
    /// [`VipReturn::InvalidPtag`], [`VipReturn::InvalidRdmaRead`] and
    /// [`VipReturn::ErrorNotSupported`] as for [`Nic::register_mem`]: nothing has changed then.
    /// [`VipReturn::ErrorResource`] if the NIC failed; the memory can then only be deregistered.
    #[doc(alias = "VipSetMemAttributes")]
    pub fn set_mem_attributes(&self, region: &Region, attributes: MemAttributes) -> Result<()> {
        self.query_mem(region)?;
        let rdma = self.rdma(attributes)?;
        self.use_tag(attributes.ptag)?;
        let port = self.port();
        let set = port.set_region(region.handle, &region.memory, attributes.ptag.0, rdma);
        set.inspect_err(|_| self.release_tag(attributes.ptag))?;
        // Gone if another thread has deregistered it meanwhile; the old tag was released then.
        let unused = match lock(&self.inner().memory).get_mut(&region.handle.0) {
            Some((_, kept)) => core::mem::replace(kept, attributes).ptag,
            None => attributes.ptag,
        };
        self.forget(region.handle);
        self.release_tag(unused);
        Ok(())
    }
}
