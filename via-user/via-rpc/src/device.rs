//! A NIC with the protection tag of its RPC connections, and the addresses of endpoints.

use std::sync::Arc;

use vipl::{
    Cq, DmaMemory, MemAttributes, NetAddress, Nic, Ptag, Region, Reliability, Vi, ViAttributes,
};

use crate::error::{Error, Result};

/// In front of an endpoint's name in its discriminator: other protocols have other discriminators.
const PREFIX: &str = "rpc:";
/// Most bytes of an endpoint's name.
pub(crate) const LONGEST_ENDPOINT: usize = 60;

/// A NIC on which servers and clients are. Clones are the same.
#[derive(Clone, Debug)]
pub struct Device {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    nic: Nic,
    tag: Ptag,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // It may be in use by a region that the NIC could not release.
        let _ = self.nic.destroy_ptag(self.tag);
    }
}

impl Device {
    /// RPC on a NIC.
    ///
    /// # Errors
    /// The NIC has no protection tag left.
    pub fn new(nic: Nic) -> Result<Self> {
        let tag = nic.create_ptag()?;
        Ok(Self { inner: Arc::new(Inner { nic, tag }) })
    }

    /// The NIC.
    #[must_use]
    pub fn nic(&self) -> &Nic {
        &self.inner.nic
    }

    /// Own host address, by which clients name this node.
    #[must_use]
    pub fn host(&self) -> Vec<u8> {
        self.nic().query().local_address
    }

    /// The address of an endpoint: its name is the discriminator (RPC over VI Architecture, 4.2).
    ///
    /// # Errors
    /// [`Error::Endpoint`] for a name of no bytes, or of too many.
    pub(crate) fn address(host: &[u8], endpoint: &str) -> Result<NetAddress> {
        if endpoint.is_empty() || endpoint.len() > LONGEST_ENDPOINT {
            return Err(Error::Endpoint(endpoint.to_owned()));
        }
        Ok(NetAddress::new(host, format!("{PREFIX}{endpoint}").as_bytes()))
    }

    /// A VI on which what is sent arrives, once and in order. The queue reports its receives.
    pub(crate) fn create_vi(&self, receives: Option<&Cq>) -> Result<Vi> {
        let attributes = ViAttributes::new(Reliability::Delivery, self.inner.tag);
        Ok(self.nic().create_vi(attributes, None, receives)?)
    }

    pub(crate) fn register(&self, bytes: usize) -> Result<Region> {
        let memory = DmaMemory::new(bytes).map_err(vipl::Error::from)?;
        Ok(self.nic().register_mem(&memory, MemAttributes::new(self.inner.tag))?)
    }

    pub(crate) fn deregister(&self, region: &Region) {
        // A NIC that fails touches nothing.
        let _ = self.nic().deregister_mem(region);
    }
}
