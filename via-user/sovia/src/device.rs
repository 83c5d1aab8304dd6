//! A device of VIA on which streams run, and what all of them share.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use vipl::{DmaMemory, MemAttributes, Nic, Ptag, Region, Vi, ViAttributes};

use crate::error::{Error, Result};
use crate::keeper::Keeper;
use crate::policy::Policy;
use crate::pool::Pool;
#[cfg(feature = "tokio")]
use crate::reactor::Reactor;

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
    /// The name service was started here.
    has_names: AtomicBool,
    #[cfg(feature = "tokio")]
    reactor: Arc<Reactor>,
}

impl Device {
    /// Streams on a NIC, with these settings.
    ///
    /// # Errors
    /// Settings that cannot be; the NIC has no protection tag left.
    pub fn new(nic: Nic, policy: Policy) -> Result<Self> {
        policy.check().map_err(Error::Policy)?;
        let tag = nic.create_ptag()?;
        let inner = Inner {
            nic,
            tag,
            policy,
            keeper: Keeper::new(),
            pool: Pool::new(&policy),
            has_names: AtomicBool::new(false),
            #[cfg(feature = "tokio")]
            reactor: Arc::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
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

    /// Waits until all has been sent that was written to streams, and the ends of those that were closed;
    /// the NIC has it arrive. False if that takes longer than `bound`. The end of a program does the same, for
    /// two seconds.
    #[must_use]
    pub fn finish(&self, bound: Duration) -> bool {
        self.inner.keeper.finish(bound)
    }

    pub(crate) fn keeper(&self) -> &Arc<Keeper> {
        &self.inner.keeper
    }

    /// What wakes tasks.
    #[cfg(feature = "tokio")]
    pub(crate) fn reactor(&self) -> &Arc<Reactor> {
        &self.inner.reactor
    }

    /// Own host address.
    #[must_use]
    pub fn host(&self) -> Vec<u8> {
        self.nic().query().local_address
    }

    /// The host address of a name. The name service is started if it does not know the name.
    ///
    /// # Errors
    /// [`Error::NoHost`].
    pub fn host_by_name(&self, name: &str) -> Result<Vec<u8>> {
        let nic = self.nic();
        let mut found = nic.ns_host_by_name(name, 0);
        if found.is_err() && !self.inner.has_names.swap(true, Ordering::AcqRel) {
            found = nic.ns_init(None).and_then(|()| nic.ns_host_by_name(name, 0));
        }
        let no_host = |why| Error::NoHost { name: name.to_owned(), why };
        found.map(|address| address.host).map_err(no_host)
    }

    /// A VI on which what is sent arrives, once and in order.
    pub(crate) fn create_vi(&self) -> Result<Vi> {
        let attributes = ViAttributes::new(self.inner.policy.reliability, self.inner.tag);
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
