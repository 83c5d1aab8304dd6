//! `shm:`, a CLAN network between the processes of one machine.
//!
//! Every process that opens it is a node, found by its name in the run-time folder; there is no
//! daemon, and nothing to set up. A region in memory of [`ClanPort::allocate`] is mapped by the nodes
//! that it is opened to: a remote write is a store. Any other memory is written and read through its
//! process's `/proc/self/mem`, one system call for each access, which needs no help of that process.
//!
//! ```text
//!            program                                     another process
//!   ShmPort  regions, tripwires, event queues   ------>  control segment: tripwire table, fired bits
//!   remote   stores, copies                     ------>  mapped regions, address space
//!   link     asks: attach, messages             <----->  service: a thread that answers
//! ```
//!
//! | module | what |
//! |---|---|
//! | `claim` | names: sockets in the run-time folder |
//! | `node` | the regions of this process, and who has grants of them |
//! | `service` | the thread that answers other nodes |
//! | `link`, `packet` | a connection to another node, and what is said on it |
//! | `grant`, `remote` | others' regions; revocation |
//! | `control` | the shared segment: tripwire table, fired bits, wake-ups |
//! | `event`, `tripwire` | event queues, and the tripwires that lead to them |
//! | `fence` | fences that the rare side pays for |
//!
//! Whom it trusts: processes of the same user alone, known by their sockets' credentials. What a
//! peer writes into shared memory is checked where it is used. Revocation holds against every process
//! that uses this library as it is; one that is written to break the rules can keep what was mapped to
//! it, can say that it is a node of another name, and can keep events from others by what it writes into
//! a control segment, as it can use a debugger on any process of its user. It cannot crash a node or
//! have it wait for ever.
//!
//! A process that dies is lost to its peers when the kernel closes its sockets: at once, but behind its
//! memory, which takes time if it has many gigabytes of it. Its death leaves no lock and no count in
//! shared memory that others wait for. Forked children have none of the sockets, so a parent's death is
//! noticed although they live; to them the node is absent. `exec` closes the sockets, and counts as the
//! loss of the process.
//!
//! A process that is stopped (SIGSTOP, a debugger) is not lost. Whoever needs its answer gets an error
//! after 2 seconds: to attach, to revoke, to deregister. All else goes on.

mod claim;
mod control;
mod error;
mod event;
mod fence;
mod grant;
mod link;
mod node;
mod packet;
mod remote;
mod service;
mod tripwire;

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use port::clan::{
    AccessRights, ClanAttributes, ClanEvent, ClanPeer, ClanPort, Cookie, DmaQueue, EventQueue,
    Message, RegionNumber, Remote, Tripwire, TripwireNumber,
};
use port::{DmaMemory, Wait, WaitOps};

pub use error::{Error, Result};
use node::Node;
use packet::Packet;
use remote::{ShmDma, ShmRemote};

/// Longest sleep in one piece. A peer that writes into the control segment what it likes can keep a
/// wake-up from another thread's sleep, for so long.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// Empty looks of a thread between two at which it lets another one have the processor.
const LOOKS: u32 = 256;

/// A node of this process. Its ports share its name; it goes with the last of them.
#[derive(Clone, Debug)]
pub struct ShmNode(Arc<Ending>);

/// Ends a node.
#[derive(Debug)]
struct Ending(Arc<Node>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl ShmNode {
    /// Makes this process a node, in the run-time folder. Without a name it is the first of `node0`,
    /// `node1` and so on that no other process has.
    ///
    /// # Errors
    /// [`Error`]: the name is taken or none, the folder is of no use, the kernel lacks something.
    pub fn open(name: Option<&str>) -> Result<Self> {
        Self::open_in(&claim::folder(), name)
    }

    /// The names of the nodes of the run-time folder that answer now, in order.
    ///
    /// # Errors
    /// This process could not be one of them: the folder is of no use, the kernel lacks something.
    pub fn check() -> Result<Vec<String>> {
        fence::register().map_err(|why| Error::Kernel { what: "membarrier", why })?;
        let folder = claim::folder();
        claim::prepare_for_use(&folder)?;
        claim::names(&folder)
    }

    /// The same in a folder; nodes of different folders do not see each other.
    ///
    /// # Errors
    /// As [`ShmNode::open`].
    pub fn open_in(folder: &Path, name: Option<&str>) -> Result<Self> {
        let node = Ending(Node::open(folder, name)?);
        service::start(&node.0)?;
        Ok(Self(Arc::new(node)))
    }

    /// Its name, which is its host address.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.0.own.who.name
    }

    /// Whether this process opened it; false in a child after fork, to which it is absent.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.0.0.is_own()
    }

    /// Opens a domain of the node.
    ///
    /// # Errors
    /// None left.
    pub fn port(&self) -> port::Result<ShmPort> {
        let domain = self.0.0.open_domain()?;
        let own = ClanPeer { host: self.name().as_bytes().to_vec(), domain };
        let attributes = ClanAttributes {
            name: "shm".to_owned(),
            own,
            regions: control::REGIONS.into(),
            tripwires: control::TRIPWIRES,
            queues: control::QUEUES.into(),
            maps_all: false,
        };
        Ok(ShmPort { node: self.clone(), domain, attributes, is_closed: AtomicBool::new(false) })
    }
}

/// A domain of a node.
#[derive(Debug)]
pub struct ShmPort {
    node: ShmNode,
    domain: u16,
    attributes: ClanAttributes,
    /// Its number may be another domain's by now.
    is_closed: AtomicBool,
}

impl Drop for ShmPort {
    fn drop(&mut self) {
        self.close();
    }
}

impl ShmPort {
    /// The node that it is a domain of.
    #[must_use]
    pub fn shm_node(&self) -> ShmNode {
        self.node.clone()
    }

    fn node(&self) -> &Node {
        &self.node.0.0
    }

    /// Fails in a child after fork, and after [`ClanPort::close`].
    fn check(&self) -> port::Result<()> {
        if !self.node().is_own() {
            return Err(forked());
        }
        if self.is_closed.load(Ordering::Acquire) {
            return Err(port::Error::NoSuch { what: "domain", index: self.domain.into() });
        }
        Ok(())
    }
}

const fn forked() -> port::Error {
    port::Error::NotSupported { what: "use of its parent's node in a child after fork" }
}

impl ClanPort for ShmPort {
    fn attributes(&self) -> &ClanAttributes {
        &self.attributes
    }

    fn is_present(&self) -> bool {
        self.node().is_own()
    }

    fn allocate(&self, length: usize) -> port::Result<DmaMemory> {
        DmaMemory::shared(length)
    }

    fn register(&self, memory: &DmaMemory) -> port::Result<RegionNumber> {
        self.check()?;
        self.node().register(self.domain, memory)
    }

    fn deregister(&self, region: RegionNumber) -> port::Result<()> {
        self.check()?;
        self.node().deregister(self.domain, region)
    }

    fn open(
        &self,
        region: RegionNumber,
        to: &ClanPeer,
        rights: AccessRights,
    ) -> port::Result<Cookie> {
        self.check()?;
        self.node().open_region(self.domain, region, to, rights)
    }

    fn revoke(&self, cookie: Cookie) -> port::Result<()> {
        self.check()?;
        self.node().revoke(self.domain, cookie)
    }

    fn attach(&self, owner: &ClanPeer, cookie: Cookie) -> port::Result<Box<dyn Remote>> {
        self.check()?;
        let grant = self.node().link(&owner.host)?.attach(self.domain, cookie)?;
        let no_such = port::Error::NoSuch { what: "cookie", index: cookie.region.0.into() };
        Ok(Box::new(ShmRemote::new(grant.ok_or(no_such)?)))
    }

    fn dma_queue(&self, queue: u16) -> port::Result<Box<dyn DmaQueue>> {
        self.check()?;
        let queue = self.node().queue(self.domain, queue)?;
        Ok(Box::new(ShmDma { queue }))
    }

    fn event_queue(&self) -> port::Result<Arc<dyn EventQueue>> {
        self.check()?;
        Ok(self.node().create_queue(self.domain, false)?)
    }

    fn wake_queue(&self) -> port::Result<Arc<dyn EventQueue>> {
        self.check()?;
        Ok(self.node().create_queue(self.domain, true)?)
    }

    fn destroy_event_queue(&self, queue: u16) -> port::Result<()> {
        self.check()?;
        self.node().destroy_queue(self.domain, queue)
    }

    fn set_message_queue(&self, queue: u16) -> port::Result<()> {
        self.check()?;
        self.node().set_message_queue(self.domain, queue)
    }

    fn set_tripwire(&self, tripwire: &Tripwire) -> port::Result<TripwireNumber> {
        self.check()?;
        self.node().set_tripwire(self.domain, tripwire)
    }

    fn clear_tripwire(&self, tripwire: TripwireNumber) -> port::Result<()> {
        self.check()?;
        port::sync::lock(&self.node().tripwires).clear(tripwire, self.domain)
    }

    fn send_message(&self, to: &ClanPeer, message: &Message) -> port::Result<()> {
        self.check()?;
        if to.host == self.attributes.own.host {
            let from = self.attributes.own.clone();
            let event = ClanEvent::Message { from, message: *message };
            self.node().report(Some(to.domain), &event);
            return Ok(());
        }
        let packet = Packet::Message { from: self.domain, to: to.domain, message: *message };
        self.node().link(&to.host)?.message(&packet).map_err(|error| match error {
            // It was there: what it said before comes first, and then that it is lost.
            Error::NoNode { .. } => port::Error::PeerDown(Arc::new(error)),
            other => other.into(),
        })
    }

    fn discover(&self) -> port::Result<Vec<Vec<u8>>> {
        self.check()?;
        let names = claim::names(&self.node().own.folder).map_err(port::Error::from)?;
        let others = names.into_iter().filter(|name| name != self.node.name());
        Ok(others.map(String::into_bytes).collect())
    }

    fn host_of_name(&self, name: &str) -> Option<Vec<u8>> {
        let path = claim::socket_path(&self.node().own.folder, name);
        (claim::is_name(name) && path.exists()).then(|| name.as_bytes().to_vec())
    }

    fn name_of_host(&self, host: &[u8]) -> Option<String> {
        let name = core::str::from_utf8(host).ok().filter(|name| claim::is_name(name));
        name.map(str::to_owned)
    }

    fn close(&self) {
        if self.node().is_own() && !self.is_closed.swap(true, Ordering::AcqRel) {
            self.node().close_domain(self.domain);
        }
    }
}

impl WaitOps for ShmPort {
    fn wake_count(&self) -> u64 {
        self.node().control.wake_count().into()
    }

    fn sleep(&self, seen: u64, bound_ns: u64, _wait: Wait) {
        let bound = Duration::from_nanos(bound_ns).min(SLEEP_MAX);
        if !self.node().is_own() {
            // The count, and the number of sleepers, are its parent's.
            std::thread::sleep(bound);
        } else if let Ok(seen) = u32::try_from(seen) {
            // The count has 32 bits. It would have to be raised 2^32 times between the look of a
            // thread and its sleep to be taken for the same.
            self.node().control.sleep(seen, bound);
        }
    }

    fn sleep_restarting(&self, seen: u64) -> Option<bool> {
        let seen = u32::try_from(seen).ok().filter(|_| self.node().is_own())?;
        Some(self.node().control.sleep_restarting(seen))
    }

    fn wake(&self) {
        if self.node().is_own() {
            self.node().control.wake();
        }
    }

    fn wake_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.node().is_own().then(|| self.node().control.waker())
    }

    fn doze(&self, begins: bool) {
        if self.node().is_own() {
            self.node().control.doze(begins);
        }
    }

    fn relax(&self, _wait: Wait) {
        thread_local! {
            static LOOKED: Cell<u32> = const { Cell::new(0) };
        }
        // The peer may need this processor to make progress.
        let looked = LOOKED.get().wrapping_add(1);
        LOOKED.set(looked);
        if looked.is_multiple_of(LOOKS) {
            std::thread::yield_now();
        } else {
            core::hint::spin_loop();
        }
    }
}
