//! NICs: open, query, errors; and what their VIs share.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use port::Wait;
use port::address::DISCRIMINATOR_MAX;
use port::sync::{lock, try_lock};
use port::{PortEvent, ViPort};

use crate::attributes::{NicAttributes, Reliability};
use crate::error::{ErrorCode, ResourceCode, Result, VipReturn};
use crate::objects::{ErrorDescriptor, Handlers, Nic, NicInner, Notifier, Vi, ViInner, Waiting};

/// Most descriptors posted on one queue.
pub(crate) const DESCRIPTORS_PER_QUEUE: usize = 1024;

impl core::fmt::Debug for NicInner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", self.port)
    }
}

impl Drop for NicInner {
    fn drop(&mut self) {
        self.notifier.stop();
    }
}

impl Nic {
    /// Opens a NIC on a port. What it holds is released with the port.
    #[must_use]
    #[doc(alias = "VipOpenNic")]
    pub fn open(port: Arc<dyn ViPort>) -> Self {
        Self::open_with(port, Waiting::default())
    }

    /// The same with another way of waiting.
    #[must_use]
    pub fn open_with(port: Arc<dyn ViPort>, waiting: Waiting) -> Self {
        let inner = NicInner {
            port,
            tags: Mutex::default(),
            memory: Mutex::default(),
            vis: Mutex::default(),
            peering: Mutex::default(),
            peering_count: AtomicUsize::new(0),
            names: Mutex::default(),
            notifier: Arc::default(),
            waiting,
            own_queue: Mutex::default(),
            making_own_queue: Mutex::default(),
            handlers: Handlers::default(),
            lost: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// How the waiting functions wait.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        self.inner.waiting
    }

    /// Closes the NIC: VIs, completion queues, registrations and tags that are left are taken back.
    /// Whatever is asked of them, or of a clone of this handle, fails with
    /// [`VipReturn::InvalidParameter`] from then on. Calls under way in other threads end; none of
    /// them, and no handler, touches the program's memory afterwards. Only a handler that runs longer
    /// than a second is not waited for.
    #[doc(alias = "VipCloseNic")]
    pub fn close(self) {
        if self.inner.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // VIs that the program still holds are dead; their numbers may be given to others.
        let vis = core::mem::take(&mut *lock(&self.inner.vis));
        vis.values().filter_map(Weak::upgrade).for_each(|vi| Vi::from_inner(vi).close());
        self.inner.notifier.stop();
        self.inner.port.wake();
        self.settle_notifier(Notifier::is_at_rest);
        self.settle_handlers(None);
        lock(&self.inner.own_queue).take();
        self.inner.port.close();
        self.inner.port.wake();
        lock(&self.inner.peering).clear();
        lock(&self.inner.memory).clear();
        lock(&self.inner.tags).clear();
    }

    /// The NIC's attributes.
    #[must_use]
    #[doc(alias = "VipQueryNic")]
    pub fn query(&self) -> NicAttributes {
        let port = self.inner.port.attributes();
        let levels = [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];
        NicAttributes {
            name: port.name.clone(),
            hardware_version: port.hardware_version,
            provider_version: 1,
            local_address: port.host_address.clone(),
            thread_safe: true,
            max_discriminator_len: u16::try_from(DISCRIMINATOR_MAX).unwrap_or(u16::MAX),
            max_register_bytes: u64::from(port.regions) * u64::from(u32::MAX),
            max_register_regions: port.regions,
            max_register_block_bytes: u32::MAX.into(),
            max_vi: port.vis,
            max_descriptors_per_queue: u32::try_from(DESCRIPTORS_PER_QUEUE).unwrap_or(u32::MAX),
            max_segments_per_desc: port.segments,
            max_cq: port.queues,
            max_cq_entries: port.queue_entries,
            max_transfer_size: port.max_transfer,
            native_mtu: port.native_mtu,
            max_ptags: port.tags,
            reliability_level_support: levels.iter().fold(0, |mask, level| mask | *level as u16),
            rdma_read_support: if port.rdma_read {
                Reliability::Delivery as u16 | Reliability::Reception as u16
            } else {
                0
            },
        }
    }

    /// The port below.
    #[must_use]
    pub fn port(&self) -> &Arc<dyn ViPort> {
        &self.inner.port
    }

    /// Fails once the NIC is closed.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed() { Err(VipReturn::InvalidParameter.into()) } else { Ok(()) }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.inner.closed.load(Ordering::Acquire)
    }

    /// Whether `other` is this handle. The same device may be opened several times.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(crate) const fn from_inner(inner: Arc<NicInner>) -> Self {
        Self { inner }
    }

    pub(crate) const fn inner_arc(&self) -> &Arc<NicInner> {
        &self.inner
    }

    pub(crate) fn inner(&self) -> &NicInner {
        &self.inner
    }

    /// Handles what happened on the NIC. Cheap if nothing did. Every `done` that finds nothing and
    /// every wait calls it, so a program that polls needs not.
    pub fn progress(&self) {
        if self.is_closed() {
            return;
        }
        while let Some(event) = self.inner.port.next_event() {
            match event {
                PortEvent::ViStopped(stopped) => {
                    let vi = lock(&self.inner.vis).get(&stopped.vi).and_then(Weak::upgrade);
                    if let Some(vi) = vi {
                        Vi::from_inner(vi).stopped(stopped);
                    }
                }
                PortEvent::CardLost => self.card_lost(),
            }
        }
        if self.inner.peering_count.load(Ordering::Acquire) > 0 {
            self.peer_progress();
        }
    }

    /// The VIs, which are let go without the lock of their list.
    pub(crate) fn vis(&self) -> Vec<Arc<ViInner>> {
        lock(&self.inner.vis).values().filter_map(Weak::upgrade).collect()
    }

    /// Whether the card fell off the bus.
    pub(crate) fn is_lost(&self) -> bool {
        self.inner.lost.load(Ordering::Acquire)
    }

    /// Ends what waits for the card; the program is notified once, for the NIC.
    fn card_lost(&self) {
        self.inner.lost.store(true, Ordering::Release);
        for vi in self.vis() {
            Vi::from_inner(vi).card_lost();
        }
        let (resource, code) = (ResourceCode::Nic, ErrorCode::Catastrophic);
        let (vi, descriptor, operation) = (None, None, 0);
        self.report(&ErrorDescriptor { vi, descriptor, operation, resource, code });
    }

    pub(crate) fn relax(&self, wait: Wait) {
        self.inner.port.relax(wait);
    }

    /// Takes a lock that may be held across `relax`.
    pub(crate) fn lock_relaxed<'a, T>(
        &self,
        mutex: &'a Mutex<T>,
        what: &'static str,
    ) -> std::sync::MutexGuard<'a, T> {
        loop {
            if let Some(guard) = try_lock(mutex) {
                return guard;
            }
            self.relax(Wait::bounded(what, 0));
        }
    }
}
