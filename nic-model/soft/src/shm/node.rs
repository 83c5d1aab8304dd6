//! A node: a process that takes part in `shm:`, with its regions and what others have of them.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use port::clan::{AccessRights, ClanEvent, ClanPeer, Cookie, RegionNumber, TripwireNumber};
use port::sync::{Signal, lock};
use port::{DmaMemory, fork};

use super::claim::{self, Claim};
use super::control::{Control, REGIONS};
use super::error::{Error, Result};
use super::event::{Queue, Tripwires};
use super::fence;
use super::link::{ANSWER_BOUND, Link, Own};
use super::packet::{self, Packet, Socket};

/// Most grants of a node that connects.
const GRANTS_MAX: usize = 65_536;
/// Domains of a node.
const DOMAINS: u16 = 1024;

/// A node of this process.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) own: Own,
    pub(super) claim: Claim,
    pub(super) control: Control,
    /// The address space of this process.
    pub(super) space: File,
    pub(super) tripwires: Arc<Mutex<Tripwires>>,
    /// Wakes the service.
    pub(super) nudge: OwnedFd,
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
    /// Nodes that are connected either way, by identity.
    pub(super) nodes: BTreeMap<u64, String>,
    domains: BTreeMap<u16, Domain>,
}

#[derive(Debug)]
struct Region {
    domain: u16,
    memory: DmaMemory,
    /// Whom it is open to.
    open: Vec<(ClanPeer, Cookie)>,
}

#[derive(Debug, Default)]
struct Domain {
    queues: BTreeSet<u16>,
    messages: Option<Arc<Queue>>,
    all: BTreeMap<u16, Arc<Queue>>,
}

/// A node that has connected to this one.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) socket: Arc<Socket>,
    /// Name and identity, once it has said them.
    pub(super) node: Option<(String, u64)>,
    grants: BTreeMap<u32, Cookie>,
    last_grant: u32,
}

impl Incoming {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket: Arc::new(socket), node: None, grants: BTreeMap::new(), last_grant: 0 }
    }
}

/// A number that no other node has, as far as chance goes.
fn new_identity() -> u64 {
    use core::hash::{BuildHasher, Hasher};
    // The seeds of the standard library's hash maps come from the system's random numbers.
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
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
        let space = File::options().read(true).write(true).open("/proc/self/mem");
        let space = space.map_err(lacks("/proc/self/mem"))?;
        let control = Control::new()?;
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        let nudge = rustix::event::eventfd(0, flags)
            .map_err(|why| Error::System { what: "eventfd", why: why.into() })?;
        let claim = claim::claim(folder, name)?;
        let (folder, name) = (folder.to_owned(), claim.name.clone());
        Ok(Arc::new(Self {
            own: Own { folder, name, identity: new_identity() },
            claim,
            tripwires: Arc::new(Mutex::new(Tripwires::new(control.clone()))),
            control,
            space,
            nudge,
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
        let _ = rustix::io::write(&self.nudge, &1_u64.to_ne_bytes());
    }

    /// Ends the node: its service closes everything.
    pub(super) fn end(&self) {
        if !self.is_own() {
            return;
        }
        self.claim.give_back();
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
        let queue = Tripwires::create_queue(&self.tripwires, only_wakes)?;
        if let Some(domain) = lock(&self.state).domains.get_mut(&domain) {
            domain.queues.insert(queue.number());
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
        for queue in queues {
            // A message for which there is no room is lost, as messages may be.
            queue.push(event.clone());
        }
    }

    pub(super) fn close_domain(&self, domain: u16) {
        let (regions, queues) = {
            let state = lock(&self.state);
            let of = |region: &Region| region.domain == domain;
            let regions = state.regions.iter().filter(|(_, region)| of(region));
            let regions: Vec<u16> = regions.map(|(number, _)| *number).collect();
            let queues = state.domains.get(&domain).map(|domain| domain.all.clone());
            (regions, queues.unwrap_or_default())
        };
        for region in regions {
            // A peer that is stopped keeps the region, and the node with it.
            let _ = self.deregister(domain, RegionNumber(region));
        }
        for queue in queues.keys() {
            let _ = self.destroy_queue(domain, *queue);
        }
        lock(&self.tripwires).clear_all(None, domain);
        lock(&self.state).domains.remove(&domain);
    }

    // --- regions ---

    pub(super) fn register(&self, domain: u16, memory: &DmaMemory) -> port::Result<RegionNumber> {
        let regions = &mut lock(&self.state).regions;
        let free = (0..REGIONS).find(|number| !regions.contains_key(number));
        let none_left = port::Error::Exhausted { what: "region", limit: REGIONS.into() };
        let number = free.ok_or(none_left)?;
        regions.insert(number, Region { domain, memory: memory.clone(), open: Vec::new() });
        Ok(RegionNumber(number))
    }

    pub(super) fn open_region(
        &self,
        domain: u16,
        region: RegionNumber,
        to: &ClanPeer,
        rights: AccessRights,
    ) -> port::Result<Cookie> {
        let mut state = lock(&self.state);
        let generation = state.last_generation.wrapping_add(1);
        let found = state.regions.get_mut(&region.0).filter(|found| found.domain == domain);
        let found = found.ok_or(no_region(region))?;
        let cookie = Cookie { region, rights, generation };
        found.open.push((to.clone(), cookie));
        state.last_generation = generation;
        Ok(cookie)
    }

    /// Length of a region of a domain.
    pub(super) fn region_length(&self, domain: u16, region: RegionNumber) -> port::Result<u64> {
        let state = lock(&self.state);
        let found = state.regions.get(&region.0).filter(|found| found.domain == domain);
        found.map(|found| found.memory.len() as u64).ok_or(no_region(region))
    }

    pub(super) fn revoke(&self, domain: u16, cookie: Cookie) -> port::Result<()> {
        if let Some(region) = lock(&self.state).regions.get_mut(&cookie.region.0) {
            if region.domain != domain {
                return Err(no_region(cookie.region));
            }
            region.open.retain(|(_, open)| *open != cookie);
        }
        Ok(self.take_back(&|granted| granted == cookie)?)
    }

    pub(super) fn deregister(&self, domain: u16, region: RegionNumber) -> port::Result<()> {
        {
            let mut state = lock(&self.state);
            let found = state.regions.get_mut(&region.0).filter(|found| found.domain == domain);
            found.ok_or(no_region(region))?.open.clear();
        }
        self.take_back(&|granted| granted.region == region)?;
        lock(&self.tripwires).clear_all(Some(region.0), domain);
        lock(&self.state).regions.remove(&region.0);
        Ok(())
    }

    /// Has all nodes give grants back that nobody can get any more, and waits until they have.
    fn take_back(&self, is_void: &dyn Fn(Cookie) -> bool) -> Result<()> {
        let void = |state: &State| -> Vec<(Arc<Socket>, String, u32)> {
            let of = |incoming: &Incoming| -> Vec<(Arc<Socket>, String, u32)> {
                let name = incoming.node.as_ref().map(|node| node.0.clone()).unwrap_or_default();
                let grants = incoming.grants.iter().filter(|(_, cookie)| is_void(**cookie));
                grants
                    .map(|(grant, _)| (Arc::clone(&incoming.socket), name.clone(), *grant))
                    .collect()
            };
            state.incoming.values().flat_map(of).collect()
        };
        let first = void(&lock(&self.state));
        for (socket, _, grant) in &first {
            // A node that has no room for it does not answer either, and is named below.
            let _ = packet::send(socket.as_fd(), &Packet::Revoke { grant: *grant }, &[]);
        }
        let end = Instant::now() + ANSWER_BOUND;
        loop {
            let seen = self.confirmed.count();
            let left = void(&lock(&self.state));
            let Some((_, node, _)) = left.into_iter().next() else { return Ok(()) };
            let time = end.saturating_duration_since(Instant::now());
            if time.is_zero() {
                return Err(Error::NotConfirmed { node });
            }
            self.confirmed.wait(seen, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    // --- what the service asks ---

    /// A node asks for the region of a cookie; the answer, and the memory file that goes with it.
    pub(super) fn grant(
        &self,
        connection: u32,
        request: u32,
        domain: u16,
        cookie: Cookie,
    ) -> (Packet, Option<DmaMemory>) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let none = (Packet::NotAttached { request }, None);
        let Some(incoming) = state.incoming.get_mut(&connection) else { return none };
        let Some((name, _)) = &incoming.node else { return none };
        let Some(region) = state.regions.get(&cookie.region.0) else { return none };
        let asks = ClanPeer { host: claim::host_of(name), domain };
        let is_open = region.open.iter().any(|(to, open)| *open == cookie && *to == asks);
        if !is_open || incoming.grants.len() >= GRANTS_MAX {
            return none;
        }
        let grant = incoming.last_grant.wrapping_add(1);
        incoming.last_grant = grant;
        incoming.grants.insert(grant, cookie);
        let memory = &region.memory;
        let file = memory.file().is_some().then(|| memory.clone());
        let start = memory.file().map_or(memory.address(), |(_, start)| start);
        let (region, length) = (cookie.region.0, memory.len() as u64);
        (Packet::Attached { request, grant, region, start, length }, file)
    }

    /// A node gives a grant back.
    pub(super) fn give_back(&self, connection: u32, grant: u32) {
        if let Some(incoming) = lock(&self.state).incoming.get_mut(&connection) {
            incoming.grants.remove(&grant);
        }
        self.confirmed.raise();
    }

    /// A node is lost, as one of the connections with it shows.
    pub(super) fn lose(&self, identity: u64) {
        let (name, link) = {
            let mut state = lock(&self.state);
            let Some(name) = state.nodes.remove(&identity) else { return };
            let is_its = |link: &Arc<Link>| link.identity == identity;
            let link = state.links.get(&name).filter(|link| is_its(link)).cloned();
            if link.is_some() {
                state.links.remove(&name);
            }
            let is_other =
                |incoming: &Incoming| incoming.node.as_ref().is_none_or(|node| node.1 != identity);
            state.incoming.retain(|_, incoming| is_other(incoming));
            // A node that takes the name later has none of these rights.
            for region in state.regions.values_mut() {
                region.open.retain(|(to, _)| claim::name_of(&to.host) != Some(&*name));
            }
            (name, link)
        };
        if let Some(link) = link {
            link.lose();
        }
        self.confirmed.raise();
        self.report(None, &ClanEvent::NodeLost { host: claim::host_of(&name) });
        self.control.wake();
    }

    /// The link to a node, which is connected if it is not yet.
    ///
    /// # Errors
    /// There is no such node, or it does not answer.
    pub(super) fn link(&self, host: &[u8]) -> Result<Arc<Link>> {
        let name = claim::name_of(host);
        let no_node = || Error::NoNode { node: String::from_utf8_lossy(host).into_owned() };
        let name = name.ok_or_else(no_node)?;
        if let Some(link) = lock(&self.state).links.get(name).filter(|link| !link.is_lost()) {
            return Ok(Arc::clone(link));
        }
        let link = Link::connect(&self.own, name)?;
        let mut state = lock(&self.state);
        let known = state.links.get(name).filter(|known| known.identity == link.identity);
        if let Some(known) = known {
            return Ok(Arc::clone(known));
        }
        state.nodes.insert(link.identity, name.to_owned());
        let replaced = state.links.insert(name.to_owned(), Arc::clone(&link));
        drop(state);
        if let Some(replaced) = replaced {
            self.lose(replaced.identity);
        }
        self.nudge();
        Ok(link)
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
        lock(&self.tripwires).set(tripwire, domain)
    }
}

const fn no_region(region: RegionNumber) -> port::Error {
    port::Error::NoSuch { what: "region", index: region.0 as u32 }
}
