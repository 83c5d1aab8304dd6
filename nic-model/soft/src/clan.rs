//! VIA as a thin layer over CLAN's remote memory ("VIA over the CLAN Network", section 3).
//!
//! [`ClanVia`] is a port that VIPL runs on, over any [`ClanPort`]. Two VIs that are connected write
//! into each other's inboxes: a receiver puts its descriptors into the sender's *cookie queue*; the
//! sender puts a message into the receiver's *transfer queue* for each of its sends, behind the data.
//! A send without a receive moves no data.
//!
//! | module | what |
//! |---|---|
//! | `node`, `net` | what all NIC handles of a process share: VIs, connections; the network |
//! | `connect` | connections, by the connection manager |
//! | `state`, `doorbell` | a VI; where its work begins |
//! | `engine`, `ending` | what it does with what is posted and with what arrives; how that ends |
//! | `direct` | sends without a descriptor |
//! | `rdma`, `targets` | RDMA, by cookies that are asked for |
//! | `link`, `inbox`, `wire` | an end of a connection, its memory, what is written there |
//!
//! Data goes one of three ways: up to 40 bytes in the message itself; more into the inbox, a part after
//! the other, from where the receiver copies it; what finds no room there for as long as it would take
//! to do without, straight into the receiver's buffers, by the cookies of its descriptors. A send without
//! a descriptor takes the first way or the last.
//!
//! Nothing runs by itself: whoever polls a queue takes what arrived for it.

mod connect;
mod direct;
mod doorbell;
mod ending;
mod engine;
mod inbox;
mod link;
mod net;
mod node;
mod rdma;
mod state;
mod targets;
mod wire;

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use port::clan::{ClanEvent, ClanPort, EventQueue};
use port::connection::{Requests, requests};
use port::events::EventList;
use port::sync::lock;
use port::{
    Completed, CompletionOps, CompletionQueue, DmaMemory, Doorbell, Error, Handle,
    MAX_TRANSFER_BYTES, MemoryOps, PortAttributes, PortEvent, Queue, RdmaAccess, Result,
    StopReason, ViOps, ViPort, ViSettings, Wait, WaitOps,
};

use crate::via::completion::{self, ENTRIES, Records, check_entries};
use crate::via::descriptor;
use crate::via::region::{self, Region, Regions};
use crate::via::table;
use crate::via::table::Table;
use crate::via::vi::{ViCore, check_presence};
use doorbell::ViDoorbell;
use inbox::Inbox;
use node::ClanNode;
use state::{State, Vi};

/// Completion queues of a port.
const QUEUES: usize = u16::MAX as usize;
/// Handles of a node.
const HANDLES: usize = 128;

/// The nodes on which a process has VIs. Every NIC handle of a node shares it.
#[derive(Clone, Debug)]
pub struct ViaNode(Arc<ClanNode>);

impl ViaNode {
    /// VIA on a domain of a CLAN network, which nobody else uses.
    ///
    /// # Errors
    /// No event queue.
    pub fn new(port: Arc<dyn ClanPort>) -> Result<Self> {
        ClanNode::new(port).map(Self)
    }

    /// Whether the network has this process as that node; not in a child after fork.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.0.net.port.is_present()
    }

    /// Opens a port for a NIC handle.
    ///
    /// # Errors
    /// Too many.
    pub fn port(&self) -> Result<Arc<ClanVia>> {
        let own = self.0.net.port.attributes();
        let attributes = PortAttributes {
            name: format!("{} {}", own.name, String::from_utf8_lossy(&own.own.host)),
            hardware_version: 1,
            host_address: connect::address_of(&own.own.host),
            vis: table::VIS,
            regions: region::REGIONS,
            queues: own.queues - 1,
            queue_entries: ENTRIES,
            segments: descriptor::SEGMENTS_MAX,
            max_transfer: MAX_TRANSFER_BYTES,
            native_mtu: MAX_TRANSFER_BYTES,
            tags: region::TAGS,
            push: false,
            rdma_write: true,
            rdma_read: true,
            extensions: true,
            ..PortAttributes::default()
        };
        let handle = self.0.add_handle(HANDLES)?;
        Ok(Arc::new(ClanVia {
            _handle: handle,
            node: Arc::clone(&self.0),
            attributes,
            regions: Arc::default(),
            events: Arc::default(),
            requests: Requests::default(),
            vis: Table::of_vis(),
            queues: Table::of_queues(QUEUES),
            lost: AtomicBool::new(false),
            pending: Mutex::default(),
        }))
    }
}

/// A port of a NIC handle.
#[derive(Debug)]
pub struct ClanVia {
    /// Counts the handles of the node.
    _handle: Arc<()>,
    node: Arc<ClanNode>,
    attributes: PortAttributes,
    regions: Arc<Regions>,
    events: Arc<EventList>,
    requests: Requests,
    vis: Table<Vi>,
    queues: Table<Cq>,
    /// The program was notified that the node is absent.
    lost: AtomicBool,
    /// Inboxes of VIs that are about to be connected.
    pending: Mutex<BTreeMap<u16, (u32, Inbox)>>,
}

/// A completion queue.
#[derive(Debug)]
struct Cq {
    number: u16,
    node: Arc<ClanNode>,
    /// None: it only wakes.
    records: Option<Arc<Records>>,
    events: Arc<dyn EventQueue>,
}

impl CompletionQueue for Cq {
    fn number(&self) -> u16 {
        self.number
    }

    fn poll(&self) -> Option<Completed> {
        let records = self.records.as_ref()?;
        if let Some(record) = records.pop() {
            return Some(record);
        }
        while let Some(event) = self.events.poll() {
            if let ClanEvent::Tripwire { tag } = event
                && let Ok(vi) = self.node.vi(u16::try_from(tag).unwrap_or(0))
            {
                engine::progress(&self.node.net, &mut lock(&vi.state));
                if let Some(record) = records.pop() {
                    return Some(record);
                }
            }
        }
        None
    }

    fn arm(&self) {
        self.events.arm();
        if self.records.as_ref().is_some_and(|records| !records.is_empty()) {
            self.node.net.port.wake();
        }
    }

    fn retire(&self, _retired: bool) {}
}

impl ClanVia {
    /// The node that it is on.
    #[must_use]
    pub fn node(&self) -> ViaNode {
        ViaNode(Arc::clone(&self.node))
    }

    fn records_of(&self, settings: &ViSettings) -> Result<[Option<Arc<Records>>; 2]> {
        completion::records_of(settings, |queue| Ok(self.queues.get(queue)?.records.clone()))
    }

    fn add_cq(
        &self,
        records: Option<Arc<Records>>,
        events: Arc<dyn EventQueue>,
    ) -> Result<Arc<dyn CompletionQueue>> {
        let node = Arc::clone(&self.node);
        let cq = self.queues.add(|number| Cq { number, node, records, events })?;
        Ok(cq)
    }

    /// Has every VI forget a region, and closes it to their peers.
    fn forget(&self, handle: Handle) -> Result<()> {
        let vis = self.vis.all();
        for vi in vis {
            let mut state = lock(&vi.state);
            state.vi.known.forget(handle);
            if let Some(link) = &mut state.link {
                link.close(&*self.node.net.port, handle)?;
            }
        }
        Ok(())
    }

    /// Ends a VI's connection. When this returns, the peer stores nothing of it any more.
    fn disconnect(&self, state: &mut State) -> Result<()> {
        if let Some(link) = &mut state.link
            && self.node.net.port.is_present()
        {
            link.close_all(&*self.node.net.port)?;
            if !state.vi.is_stopped {
                self.node.net.send_stop(link, StopReason::Disconnected);
            }
            self.node.net.inboxes.give(&*self.node.net.port, &link.inbox, link.end())?;
        }
        state.link = None;
        Ok(())
    }

    /// Takes an inbox back that no message was taken from.
    fn give_unused(&self, inbox: &Inbox) -> Result<()> {
        self.node.net.inboxes.give(&*self.node.net.port, inbox, inbox.end_if_unused())
    }

    fn give_pending(&self, vi: u16) -> Result<()> {
        match lock(&self.pending).remove(&vi) {
            Some((_, inbox)) if self.node.net.port.is_present() => self.give_unused(&inbox),
            _ => Ok(()),
        }
    }
}

impl ViPort for ClanVia {
    fn attributes(&self) -> &PortAttributes {
        &self.attributes
    }

    fn close(&self) {
        requests::cancel_all(self);
        for vi in self.vis.all().iter().map(|vi| vi.number) {
            // A peer that does not confirm keeps its inbox.
            let _ = self.reset_vi(vi).and_then(|()| self.destroy_vi(vi));
        }
        for queue in self.queues.all().iter().map(|queue| queue.number) {
            let _ = self.destroy_queue(queue);
        }
        self.regions.clear();
    }
}

impl MemoryOps for ClanVia {
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
        self.regions.get(handle).ok_or(Error::NoSuch { what: "memory handle", index: handle.0 })?;
        self.forget(handle)?;
        self.regions.deregister(handle).map(drop)
    }

    fn set_region(
        &self,
        handle: Handle,
        memory: &DmaMemory,
        tag: u16,
        rdma: RdmaAccess,
    ) -> Result<()> {
        self.forget(handle)?;
        self.regions.set(handle, Region { memory: memory.clone(), tag, rdma })?;
        self.forget(handle)
    }
}

impl ViOps for ClanVia {
    fn create_vi(&self, settings: ViSettings) -> Result<u16> {
        check_presence(self.node.net.port.is_present())?;
        let records = self.records_of(&settings)?;
        let vi = self.node.add_vi(|number| Vi {
            number,
            state: Mutex::new(State::new(ViCore::new(
                (number, settings),
                &self.regions,
                &self.events,
                records,
            ))),
        })?;
        let number = vi.number;
        self.vis.insert(number, &vi);
        Ok(number)
    }

    fn set_vi(&self, vi: u16, settings: ViSettings) -> Result<()> {
        let records = self.records_of(&settings)?;
        let vi = self.vis.get(vi)?;
        let mut state = lock(&vi.state);
        if state.link.is_some() {
            return Err(Error::BadArgument {
                what: "VI that is connected",
                value: vi.number.into(),
            });
        }
        state.vi.set(settings, records);
        state.empty();
        Ok(())
    }

    fn destroy_vi(&self, vi: u16) -> Result<()> {
        self.reset_vi(vi)?;
        self.vis.remove(vi);
        self.node.remove_vi(vi);
        Ok(())
    }

    fn reset_vi(&self, vi: u16) -> Result<()> {
        let found = self.vis.get(vi)?;
        let mut state = lock(&found.state);
        self.disconnect(&mut state)?;
        state.empty();
        state.vi.reset();
        drop(state);
        self.events.forget(vi);
        self.give_pending(vi)
    }

    fn vi_stopped(&self, vi: u16) -> Result<bool> {
        Ok(lock(&self.vis.get(vi)?.state).vi.is_stopped)
    }

    fn doorbell(&self, vi: u16, queue: Queue) -> Doorbell {
        match self.vis.get(vi) {
            Ok(vi) => {
                let net = Arc::clone(&self.node.net);
                Doorbell::Call(Arc::new(ViDoorbell { net, vi, queue }))
            }
            Err(_) => Doorbell::nowhere(),
        }
    }

    fn next_event(&self) -> Option<PortEvent> {
        if !self.node.net.port.is_present() {
            let is_new = !self.lost.swap(true, Ordering::AcqRel);
            return is_new.then_some(PortEvent::CardLost);
        }
        self.node.progress();
        self.events.pop()
    }
}

impl CompletionOps for ClanVia {
    fn create_queue(&self, entries: u32) -> Result<Arc<dyn CompletionQueue>> {
        check_entries(entries)?;
        self.add_cq(Some(Arc::default()), self.node.net.port.event_queue()?)
    }

    fn create_wake_queue(&self) -> Result<Arc<dyn CompletionQueue>> {
        self.add_cq(None, self.node.net.port.wake_queue()?)
    }

    fn resize_queue(&self, queue: u16, entries: u32) -> Result<Arc<dyn CompletionQueue>> {
        check_entries(entries)?;
        Ok(self.queues.get(queue)?)
    }

    fn destroy_queue(&self, queue: u16) -> Result<()> {
        let cq = self.queues.get(queue)?;
        self.queues.remove(queue);
        self.node.net.port.destroy_event_queue(cq.events.number())
    }
}

impl WaitOps for ClanVia {
    fn wake_count(&self) -> u64 {
        self.node.net.port.wake_count()
    }

    fn sleep(&self, seen: u64, bound_ns: u64, wait: Wait) {
        self.node.net.port.sleep(seen, self.node.bound(bound_ns), wait);
    }

    fn sleep_restarting(&self, seen: u64) -> Option<bool> {
        // A sleep without a bound would be one beyond it.
        if self.node.has_deadline() { None } else { self.node.net.port.sleep_restarting(seen) }
    }

    fn wake(&self) {
        self.node.net.port.wake();
    }

    fn wake_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.node.net.port.wake_descriptor()
    }

    fn doze(&self, begins: bool) {
        self.node.net.port.doze(begins);
    }

    fn relax(&self, wait: Wait) {
        self.node.net.port.relax(wait);
    }

    fn now_ns(&self) -> u64 {
        self.node.net.port.now_ns()
    }
}
