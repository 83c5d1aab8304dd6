//! A node: a process that takes part in `shm:`. Its domains and their event queues are here; `regions`
//! has its regions, and who has grants of them; `peers` has the nodes that it is connected with.
//!
//! Locks, in the order in which they are taken: the state; a link's requests, or what it closes; a
//! grant's gates; an outbox. A queue's reader comes before the tripwires, and neither before or after
//! any of the others. The service takes all of them, so nobody waits for another node while holding one.

mod peers;
mod regions;

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};

use port::clan::{ClanEvent, TripwireNumber};
use port::fork;
use port::own::OwnFd;
use port::sync::{Signal, lock};

use super::claim::{self, Claim};
use super::control::Control;
use super::error::{Error, Result};
use super::event::Queue;
use super::fence;
use super::link::{Link, Own, Who};
use super::tripwire::Tripwires;

use crate::random::random_u64;
use peers::Ending;
pub(super) use peers::Incoming;
use regions::Region;

/// Domains of a node.
const DOMAINS: u16 = 1024;

/// A node of this process.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) own: Own,
    pub(super) claim: Claim,
    pub(super) control: Control,
    /// The address space of this process.
    pub(super) space: OwnFd<File>,
    pub(super) tripwires: Arc<Mutex<Tripwires>>,
    pub(super) state: Mutex<State>,
    /// Grants were given back.
    confirmed: Signal,
    pub(super) ended: AtomicBool,
    generation: u32,
}

#[derive(Debug, Default)]
pub(super) struct State {
    regions: BTreeMap<u16, Region>,
    last_generation: u32,
    pub(super) links: BTreeMap<String, Arc<Link>>,
    pub(super) incoming: BTreeMap<u32, Incoming>,
    /// Nodes that are connected either way, and the numbers of their processes.
    nodes: BTreeMap<Who, u32>,
    /// Connections with lost nodes.
    ending: Vec<Ending>,
    domains: BTreeMap<u16, Domain>,
}

#[derive(Debug, Default)]
struct Domain {
    messages: Option<Arc<Queue>>,
    all: BTreeMap<u16, Arc<Queue>>,
}

impl Node {
    /// Makes this process a node, with a name or the first numbered one that is free. Others get no
    /// answer before its service is started.
    ///
    /// # Errors
    /// The name is taken or none; the folder is of no use; the kernel lacks something.
    pub(super) fn open(folder: &Path, name: Option<&str>) -> Result<Arc<Self>> {
        let lacks = |what| move |why| Error::Kernel { what, why };
        fence::register().map_err(lacks("membarrier"))?;
        let space = OwnFd::create(|| File::options().read(true).write(true).open("/proc/self/mem"));
        let space = space.map_err(lacks("/proc/self/mem"))?;
        let control = Control::new()?;
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        let nudge = OwnFd::create(|| rustix::event::eventfd(0, flags))
            .map_err(|why| Error::System { what: "eventfd", why: why.into() })?;
        let claim = claim::claim(folder, name)?;
        let (folder, name) = (folder.to_owned(), claim.name.clone());
        let who = Who { name, identity: random_u64() };
        Ok(Arc::new(Self {
            own: Own { folder, who, nudge: Arc::new(nudge) },
            claim,
            tripwires: Arc::new(Mutex::new(Tripwires::new(control.clone()))),
            control,
            space,
            state: Mutex::default(),
            confirmed: Signal::default(),
            ended: AtomicBool::new(false),
            generation: fork::generation(),
        }))
    }

    /// Whether this is still the process that opened the node, and not a child after fork.
    pub(super) fn is_own(&self) -> bool {
        self.generation == fork::generation()
    }

    /// Has the service look.
    pub(super) fn nudge(&self) {
        // It fails when the count is full, and then the service looks anyway.
        let _ = rustix::io::write(&*self.own.nudge, &1_u64.to_ne_bytes());
    }

    /// Ends the node: its service closes everything.
    pub(super) fn end(&self) {
        if !self.is_own() {
            return;
        }
        self.claim.release();
        self.ended.store(true, Ordering::Release);
        self.nudge();
    }

    // --- domains and queues ---

    pub(super) fn open_domain(&self) -> port::Result<u16> {
        let domains = &mut lock(&self.state).domains;
        let free = (0..DOMAINS).find(|number| !domains.contains_key(number));
        let none_left = port::Error::Exhausted { what: "domain", limit: DOMAINS.into() };
        let number = free.ok_or(none_left)?;
        domains.insert(number, Domain::default());
        Ok(number)
    }

    pub(super) fn create_queue(&self, domain: u16, only_wakes: bool) -> port::Result<Arc<Queue>> {
        use port::clan::EventQueue as _;
        let tripwires = Arc::clone(&self.tripwires);
        let queue = Arc::new(Queue::new(self.control.clone(), tripwires, only_wakes)?);
        if let Some(domain) = lock(&self.state).domains.get_mut(&domain) {
            domain.all.insert(queue.number(), Arc::clone(&queue));
        }
        Ok(queue)
    }

    /// A queue of a domain.
    ///
    /// # Errors
    /// It is not there.
    pub(super) fn queue(&self, domain: u16, queue: u16) -> port::Result<Arc<Queue>> {
        let state = lock(&self.state);
        let found = state.domains.get(&domain).and_then(|domain| domain.all.get(&queue));
        found.cloned().ok_or(port::Error::NoSuch { what: "event queue", index: queue.into() })
    }

    pub(super) fn destroy_queue(&self, domain: u16, queue: u16) -> port::Result<()> {
        let destroyed = self.queue(domain, queue)?;
        if let Some(domain) = lock(&self.state).domains.get_mut(&domain) {
            domain.all.remove(&queue);
            let of = |messages: &mut Arc<Queue>| Arc::ptr_eq(messages, &destroyed);
            domain.messages.take_if(of);
        }
        destroyed.destroy();
        lock(&self.tripwires).destroy_queue(queue);
        Ok(())
    }

    pub(super) fn set_message_queue(&self, domain: u16, queue: u16) -> port::Result<()> {
        let queue = self.queue(domain, queue)?;
        if let Some(domain) = lock(&self.state).domains.get_mut(&domain) {
            domain.messages = Some(queue);
        }
        Ok(())
    }

    /// Reports an event to the message queues: of one domain, or of all.
    pub(super) fn report(&self, domain: Option<u16>, event: &ClanEvent) {
        let queues: Vec<Arc<Queue>> = {
            let state = lock(&self.state);
            let meant = |number: &u16| domain.is_none_or(|domain| domain == *number);
            let domains = state.domains.iter().filter(|(number, _)| meant(number));
            domains.filter_map(|(_, domain)| domain.messages.clone()).collect()
        };
        queues.iter().for_each(|queue| queue.push(event.clone()));
    }

    pub(super) fn set_tripwire(
        &self,
        domain: u16,
        tripwire: &port::clan::Tripwire,
    ) -> port::Result<TripwireNumber> {
        let length = self.region_length(domain, tripwire.region)?;
        self.queue(domain, tripwire.queue)?;
        let offset = tripwire.offset;
        if !offset.is_multiple_of(8) || offset.checked_add(8).is_none_or(|end| end > length) {
            let what = "offset of a tripwire (a multiple of 8, inside its region)";
            return Err(port::Error::BadArgument { what, value: offset });
        }
        let number = lock(&self.tripwires).set(tripwire, domain)?;
        let fenced = fence::on_all().map_err(port::Error::device);
        // Another thread may have deregistered the region, and cleared its tripwires, just before.
        let is_set = fenced.and_then(|()| self.region_length(domain, tripwire.region));
        if is_set.is_err() {
            // Nobody knows its number, unless it was cleared with the region.
            let _ = lock(&self.tripwires).clear(number, domain);
        }
        is_set.map(|_| number)
    }
}
