//! A device of VIA on which streams run, and what all of them share.

use std::sync::Arc;
use std::time::Duration;

use vipl::{
    DmaMemory, MemAttributes, NetAddress, Nic, Ptag, Region, Reliability, Vi, ViAttributes,
};

use crate::error::{Error, Result};
use crate::keeper::Keeper;
use crate::policy::Policy;
use crate::pool::Pool;

/// A device. Clones are the same; it goes with its last stream.
#[derive(Clone, Debug)]
pub struct Device {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    nic: Nic,
    tag: Ptag,
    policy: Policy,
    keeper: Arc<Keeper>,
    pool: Pool,
}

impl Device {
    /// Streams on a NIC, with these settings.
    ///
    /// # Errors
    /// Settings that cannot be; the NIC has no protection tag left.
    pub fn new(nic: Nic, policy: Policy) -> Result<Self> {
        policy.check().map_err(Error::Policy)?;
        let tag = nic.create_ptag()?;
        let (keeper, pool) = (Arc::default(), Pool::new(&policy));
        Ok(Self { inner: Arc::new(Inner { nic, tag, policy, keeper, pool }) })
    }

    /// The NIC.
    #[must_use]
    pub fn nic(&self) -> &Nic {
        &self.inner.nic
    }

    /// The settings of its streams.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.inner.policy
    }

    /// Waits until the other sides of all streams that were closed here have ended, too: before a program
    /// ends, so that what it has sent arrives. False if that takes longer than `bound`.
    #[must_use]
    pub fn finish(&self, bound: Duration) -> bool {
        self.inner.keeper.finish(bound)
    }

    pub(crate) fn keeper(&self) -> &Arc<Keeper> {
        &self.inner.keeper
    }

    /// The address of a port: a host of VIA, and the discriminator of SOVIA's ports.
    #[must_use]
    pub fn address(host: &[u8], port: u16) -> NetAddress {
        NetAddress::new(host, format!("sovia:{port}").as_bytes())
    }

    /// Own host address.
    #[must_use]
    pub fn host(&self) -> Vec<u8> {
        self.nic().query().local_address
    }

    /// A VI of the level that both papers use: what is sent arrives, once and in order.
    pub(crate) fn create_vi(&self) -> Result<Vi> {
        let attributes = ViAttributes::new(Reliability::Delivery, self.inner.tag);
        Ok(self.nic().create_vi(attributes, None, None)?)
    }

    fn register(&self, memory: &DmaMemory) -> Result<Region> {
        Ok(self.nic().register_mem(memory, MemAttributes::new(self.inner.tag))?)
    }

    /// Memory of this process alone.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Region> {
        self.register(&DmaMemory::new(bytes).map_err(vipl::Error::from)?)
    }

    /// Memory for the receives of a connection.
    pub(crate) fn take_receives(&self) -> Result<Region> {
        let memory = self.inner.pool.take()?;
        self.register(&memory).inspect_err(|_| self.inner.pool.give(memory))
    }

    /// Gives memory back, of a VI that is no more.
    pub(crate) fn release(&self, memory: &Region, receives: &Region) {
        // A NIC that fails touches nothing.
        let _ = self.nic().deregister_mem(memory);
        if self.nic().deregister_mem(receives).is_ok() {
            self.inner.pool.give(receives.memory().clone());
        }
    }
}
