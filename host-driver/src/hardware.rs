//! A port on a NIC: one domain (doorbell page) of it.

mod connect;
mod queue;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use nic_regs::tpt::{RIGHT_RDMA_READ, RIGHT_RDMA_WRITE};
use nic_regs::vi::{State, rdma};
use port::connection::requests::{self, Requests};
use port::{
    CompletionOps, CompletionQueue, Doorbell, Handle, MemoryOps, PortAttributes, PortEvent, Queue,
    RdmaAccess, ViOps, ViPort, ViSettings, Wait, WaitOps,
};

use crate::admin::ViSetup;
use crate::dma::DmaMemory;
use crate::doorbell::DoorbellPage;
use crate::error::Result;
use crate::nic::Nic;
use crate::observer;
use crate::sync::lock_relaxed;

/// Bound of 'busy' answers: control frames that are still pending leave within a retransmission or
/// two.
const BUSY_BOUND_NS: u64 = 20_000_000;

/// One domain of a NIC.
#[derive(Debug)]
pub struct HardwarePort {
    domain: u8,
    doorbell: DoorbellPage,
    attributes: PortAttributes,
    /// Rings of the completion queues, at their bus addresses: the device writes them until the
    /// queue is destroyed there, whoever has let go of the queue.
    rings: Mutex<BTreeMap<u16, (u64, DmaMemory)>>,
    /// Held while a VI or a completion queue is created, changed or destroyed, so that a number is
    /// free again exactly when the device has no object under it. May be held across `relax`.
    changing: Mutex<()>,
    requests: Requests,
    /// Behind everything that has its bus: who has the NIC last gives the device back.
    nic: Arc<Nic>,
}

impl HardwarePort {
    /// Opens a port on a NIC; each is a domain of its own.
    ///
    /// # Errors
    /// No domain left.
    pub fn open(nic: Arc<Nic>) -> Result<Arc<Self>> {
        let number = nic.domains.take(0)?;
        let domain = u8::try_from(number)
            .map_err(|_| port::Error::BadArgument { what: "domain", value: number.into() })?;
        let doorbell = DoorbellPage::new(Arc::clone(&nic.bus), domain);
        let attributes = observer::attributes(nic.node, &nic.capabilities);
        let (rings, changing, requests) = (Mutex::default(), Mutex::default(), Requests::default());
        Ok(Arc::new(Self { nic, domain, doorbell, attributes, rings, changing, requests }))
    }

    /// The NIC below.
    #[must_use]
    pub const fn nic(&self) -> &Arc<Nic> {
        &self.nic
    }

    /// The domain (doorbell page).
    #[must_use]
    pub const fn domain(&self) -> u8 {
        self.domain
    }

    /// Repeats a command while the device answers 'busy'.
    fn retry(&self, what: &'static str, vi: u16, command: impl Fn() -> Result<()>) -> Result<()> {
        let end = self.nic.bus.now_ns() + BUSY_BOUND_NS * self.nic.time_scale;
        loop {
            match command() {
                Err(error) if error.is_busy() && self.nic.bus.now_ns() < end => {
                    self.nic.bus.relax(Wait::bounded(what, vi.into()));
                }
                result => return result,
            }
        }
    }

    /// Waits until no other thread creates, changes or destroys a VI or a queue of this port.
    fn change(&self) -> MutexGuard<'_, ()> {
        lock_relaxed(&self.changing, &*self.nic.bus, "a change of a VI or of a queue")
    }

    /// Fails once the card was found absent.
    fn check_presence(&self) -> Result<()> {
        self.nic.presence.check(&*self.nic.bus)
    }

    /// What the device needs to know of a VI.
    fn vi_setup(&self, vi: ViSettings) -> Result<ViSetup> {
        for queue in [vi.send_queue, vi.recv_queue].into_iter().flatten() {
            self.nic.queues.check(queue, self.domain)?;
        }
        Ok(ViSetup {
            domain: self.domain,
            reliability: vi.reliability,
            tag: vi.tag,
            send_queue: vi.send_queue,
            recv_queue: vi.recv_queue,
            max_transfer: vi.max_transfer,
            allows: rdma_bits(vi.rdma),
        })
    }

    /// Disconnects a VI and empties its queues, see [`ViOps::reset_vi`].
    fn reset(&self, vi: u16) -> Result<()> {
        self.nic.vis.check(vi, self.domain)?;
        self.nic.admin.vi_disconnect(vi)?;
        // What the device reported before the fence is of the old connection.
        let mut control = self.nic.control();
        self.nic.run(&mut control);
        drop(control);
        self.nic.events[usize::from(self.domain)].forget(vi);
        Ok(())
    }
}

/// As in [`nic_regs::vi::rdma`].
const fn rdma_bits(access: RdmaAccess) -> u32 {
    (if access.write { rdma::WRITE } else { 0 }) | (if access.read { rdma::READ } else { 0 })
}

/// Rights of a region, as in [`nic_regs::tpt`].
const fn rights(access: RdmaAccess) -> u8 {
    (if access.write { RIGHT_RDMA_WRITE } else { 0 })
        | (if access.read { RIGHT_RDMA_READ } else { 0 })
}

impl ViPort for HardwarePort {
    fn attributes(&self) -> &PortAttributes {
        &self.attributes
    }

    fn counters(&self) -> port::Result<Vec<(&'static str, u64)>> {
        Ok(observer::counters(&*self.nic.bus)?)
    }

    fn state(&self) -> port::Result<&'static str> {
        self.nic.presence.look(&*self.nic.bus)?;
        Ok(observer::state(&*self.nic.bus)?)
    }

    fn close(&self) {
        requests::cancel_all(self);
        // A device that refuses here keeps the object until its reset; the numbers then stay taken.
        for vi in self.nic.vis.of_domain(self.domain) {
            let _ = self.reset_vi(vi).and_then(|()| self.destroy_vi(vi));
        }
        for queue in self.nic.queues.of_domain(self.domain) {
            let _ = self.destroy_queue(queue);
        }
        for handle in self.nic.regions.of_domain(self.domain) {
            let _ = self.deregister(handle);
        }
        for tag in self.nic.tags.of_domain(self.domain) {
            self.nic.tags.give(tag);
        }
    }
}

impl MemoryOps for HardwarePort {
    fn create_tag(&self) -> port::Result<u16> {
        Ok(self.nic.tags.take(self.domain)?)
    }

    fn destroy_tag(&self, tag: u16) {
        if self.nic.tags.owner(tag) == Some(self.domain) {
            self.nic.tags.give(tag);
        }
    }

    fn register(&self, memory: &DmaMemory, tag: u16, rdma: RdmaAccess) -> port::Result<Handle> {
        let nic = &self.nic;
        Ok(nic.regions.register(&nic.admin, memory, self.domain, tag, rights(rdma))?)
    }

    fn deregister(&self, handle: Handle) -> port::Result<()> {
        let nic = &self.nic;
        Ok(nic.regions.deregister(&nic.admin, handle, self.domain)?)
    }

    fn set_region(
        &self,
        handle: Handle,
        memory: &DmaMemory,
        tag: u16,
        rdma: RdmaAccess,
    ) -> port::Result<()> {
        let nic = &self.nic;
        Ok(nic.regions.change(&nic.admin, handle, memory, self.domain, tag, rights(rdma))?)
    }
}

impl CompletionOps for HardwarePort {
    fn create_queue(&self, entries: u32) -> port::Result<Arc<dyn CompletionQueue>> {
        Ok(queue::create(self, entries)?)
    }

    fn resize_queue(&self, queue: u16, entries: u32) -> port::Result<Arc<dyn CompletionQueue>> {
        Ok(queue::resize(self, queue, entries)?)
    }

    fn destroy_queue(&self, queue: u16) -> port::Result<()> {
        Ok(queue::destroy(self, queue)?)
    }
}

impl ViOps for HardwarePort {
    fn create_vi(&self, settings: ViSettings) -> port::Result<u16> {
        settings.check_extensions(self.attributes())?;
        let _changing = self.change();
        let setup = self.vi_setup(settings)?;
        let number = self.nic.vis.take(self.domain)?;
        let created = self.nic.admin.vi_create(number, setup);
        created.inspect_err(|_| self.nic.vis.give(number))?;
        Ok(number)
    }

    fn set_vi(&self, vi: u16, settings: ViSettings) -> port::Result<()> {
        settings.check_extensions(self.attributes())?;
        let _changing = self.change();
        let setup = self.vi_setup(settings)?;
        self.reset_vi(vi)?;
        self.retry("ViDestroy", vi, || self.nic.admin.vi_destroy(vi))?;
        Ok(self.nic.admin.vi_create(vi, setup)?)
    }

    fn destroy_vi(&self, vi: u16) -> port::Result<()> {
        let _changing = self.change();
        self.nic.vis.check(vi, self.domain)?;
        self.retry("ViDestroy", vi, || self.nic.admin.vi_destroy(vi))?;
        self.nic.vis.give(vi);
        Ok(())
    }

    fn reset_vi(&self, vi: u16) -> port::Result<()> {
        Ok(self.reset(vi)?)
    }

    fn vi_stopped(&self, vi: u16) -> port::Result<bool> {
        self.nic.vis.check(vi, self.domain)?;
        Ok(self.nic.admin.vi_query(vi)? & 0xf == State::Error as u32)
    }

    fn doorbell(&self, vi: u16, queue: Queue) -> Doorbell {
        self.doorbell.doorbell(vi, queue, self.attributes.push)
    }

    fn next_event(&self) -> Option<PortEvent> {
        self.nic.progress();
        self.nic.events[usize::from(self.domain)].pop()
    }
}

impl WaitOps for HardwarePort {
    fn wake_count(&self) -> u64 {
        self.nic.wake_count()
    }

    fn sleep(&self, seen: u64, bound_ns: u64, wait: Wait) {
        self.nic.sleep(seen, bound_ns, wait);
    }

    fn wake(&self) {
        self.nic.wake();
    }

    fn relax(&self, wait: Wait) {
        self.nic.bus.relax(wait);
    }

    fn now_ns(&self) -> u64 {
        self.nic.bus.now_ns()
    }

    fn spawn(&self, name: &str, program: Box<dyn FnOnce() + Send>) -> port::Result<()> {
        self.nic.bus.spawn(name, program).map_err(port::Error::device)
    }
}

impl Drop for HardwarePort {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.close();
        }
        self.nic.domains.give(self.domain.into());
    }
}
