//! The regions of a node, and the grants that others have of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use port::DmaMemory;
use port::clan::{AccessRights, ClanPeer, Cookie, RegionNumber};
use port::sync::lock;

use super::super::control::REGIONS;
use super::super::error::{Error, Result};
use super::super::link::ANSWER_BOUND;
use super::super::packet::{self, Packet};
use super::{Node, State};

/// Most grants of a node that connects.
const GRANTS_MAX: usize = 65_536;
/// Time after which a revocation is sent again to a node that had no room for it.
const RETRY: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Region {
    /// None: its domain is closed, and a node that was stopped still has a grant of it.
    domain: Option<u16>,
    memory: DmaMemory,
    /// Whom it is open to.
    open: Vec<(ClanPeer, Cookie)>,
}

impl Region {
    /// Voids the cookies of a node.
    pub(super) fn close_to(&mut self, host: &[u8]) {
        self.open.retain(|(to, _)| to.host != host);
    }
}

/// Grants that a connection has.
#[derive(Debug, Default)]
pub(super) struct Grants {
    all: BTreeMap<u32, Cookie>,
    last: u32,
}

impl State {
    fn region(&mut self, domain: u16, region: RegionNumber) -> port::Result<&mut Region> {
        let found = self.regions.get_mut(&region.0);
        let found = found.filter(|found| found.domain == Some(domain));
        found.ok_or(port::Error::NoSuch { what: "region", index: region.0.into() })
    }

    /// Forgets regions of closed domains of which nobody has a grant any more.
    pub(super) fn drop_orphans(&mut self) {
        if self.regions.values().all(|region| region.domain.is_some()) {
            return;
        }
        let incoming = self.incoming.values();
        let grants = incoming.flat_map(|incoming| incoming.grants.all.values());
        let granted: BTreeSet<u16> = grants.map(|cookie| cookie.region.0).collect();
        let is_left =
            |number: &u16, region: &Region| region.domain.is_some() || granted.contains(number);
        self.regions.retain(|number, region| is_left(number, region));
    }
}

impl Node {
    pub(in super::super) fn register(
        &self,
        domain: u16,
        memory: &DmaMemory,
    ) -> port::Result<RegionNumber> {
        let regions = &mut lock(&self.state).regions;
        let free = (0..REGIONS).find(|number| !regions.contains_key(number));
        let none_left = port::Error::Exhausted { what: "region", limit: REGIONS.into() };
        let number = free.ok_or(none_left)?;
        let (domain, memory) = (Some(domain), memory.clone());
        regions.insert(number, Region { domain, memory, open: Vec::new() });
        Ok(RegionNumber(number))
    }

    pub(in super::super) fn open_region(
        &self,
        domain: u16,
        region: RegionNumber,
        to: &ClanPeer,
        rights: AccessRights,
    ) -> port::Result<Cookie> {
        let mut state = lock(&self.state);
        let generation = state.last_generation.wrapping_add(1);
        let cookie = Cookie { region, rights, generation };
        state.region(domain, region)?.open.push((to.clone(), cookie));
        state.last_generation = generation;
        Ok(cookie)
    }

    /// Length of a region of a domain.
    pub(in super::super) fn region_length(
        &self,
        domain: u16,
        region: RegionNumber,
    ) -> port::Result<u64> {
        lock(&self.state).region(domain, region).map(|found| found.memory.len() as u64)
    }

    pub(in super::super) fn revoke(&self, domain: u16, cookie: Cookie) -> port::Result<()> {
        {
            let mut state = lock(&self.state);
            if state.regions.contains_key(&cookie.region.0) {
                let region = state.region(domain, cookie.region)?;
                region.open.retain(|(_, open)| *open != cookie);
            }
        }
        Ok(self.take_back(&|granted| granted == cookie)?)
    }

    pub(in super::super) fn deregister(
        &self,
        domain: u16,
        region: RegionNumber,
    ) -> port::Result<()> {
        lock(&self.state).region(domain, region)?.open.clear();
        self.take_back(&|granted| granted.region == region)?;
        lock(&self.tripwires).clear_all(Some(region.0), domain);
        lock(&self.state).regions.remove(&region.0);
        Ok(())
    }

    /// Closes a domain. A node that does not confirm in time, because its process is stopped, keeps
    /// regions that it has grants of, until it confirms or ends. The wait is one for all of them.
    pub(in super::super) fn close_domain(&self, domain: u16) {
        let (regions, queues) = {
            let mut state = lock(&self.state);
            let of = |region: &&mut Region| region.domain == Some(domain);
            state.regions.values_mut().filter(of).for_each(|region| region.open.clear());
            let of = |(number, region): (&u16, &Region)| {
                (region.domain == Some(domain)).then_some(*number)
            };
            let regions: BTreeSet<u16> = state.regions.iter().filter_map(of).collect();
            let queues = state.domains.get(&domain).map(|domain| domain.all.clone());
            (regions, queues.unwrap_or_default())
        };
        let _ = self.take_back(&|granted| regions.contains(&granted.region.0));
        for queue in queues.keys() {
            let _ = self.destroy_queue(domain, *queue);
        }
        lock(&self.tripwires).clear_all(None, domain);
        let mut state = lock(&self.state);
        for region in state.regions.values_mut().filter(|region| region.domain == Some(domain)) {
            region.domain = None;
        }
        state.drop_orphans();
        state.domains.remove(&domain);
    }

    /// Has all nodes give grants back that nobody can get any more, and waits until they have.
    fn take_back(&self, is_void: &dyn Fn(Cookie) -> bool) -> Result<()> {
        let mut sent = BTreeSet::new();
        let end = Instant::now() + ANSWER_BOUND;
        loop {
            let seen = self.confirmed.count();
            let (first, is_full) = self.send_revocations(is_void, &mut sent);
            let Some(node) = first else { return Ok(()) };
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::NotConfirmed { node });
            }
            let time = if is_full { left.min(RETRY) } else { left };
            self.confirmed.wait(seen, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// Sends the revocations that are not among those `sent`. A node that has not given a grant back,
    /// and whether one had no room for all of them.
    fn send_revocations(
        &self,
        is_void: &dyn Fn(Cookie) -> bool,
        sent: &mut BTreeSet<(u32, u32)>,
    ) -> (Option<String>, bool) {
        let (mut first, mut is_any_full) = (None, false);
        // Under the lock, so that a revocation goes behind the answer that made the grant.
        let state = lock(&self.state);
        for (number, incoming) in &state.incoming {
            let mut is_full = false;
            for (grant, _) in incoming.grants.all.iter().filter(|(_, cookie)| is_void(**cookie)) {
                let name = || incoming.node.as_ref().map(|who| who.name.clone());
                first = first.or_else(name);
                if is_full || sent.contains(&(*number, *grant)) {
                    continue;
                }
                let revoke = Packet::Revoke { grant: *grant };
                let result = packet::send(incoming.socket.as_fd(), &revoke, &[]);
                is_full = result.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
                if !is_full {
                    sent.insert((*number, *grant));
                }
            }
            is_any_full |= is_full;
        }
        (first, is_any_full)
    }

    // --- what the service asks ---

    /// A node asks for the region of a cookie: makes a grant, and answers. The answer is sent under
    /// the lock, so that no revocation of the grant overtakes it. False if it cannot be sent.
    pub(in super::super) fn grant(
        &self,
        connection: u32,
        request: u32,
        domain: u16,
        cookie: Cookie,
    ) -> bool {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let Some(incoming) = state.incoming.get_mut(&connection) else { return false };
        let Some(who) = &incoming.node else { return false };
        let asks = ClanPeer { host: who.name.clone().into_bytes(), domain };
        let is_open =
            |region: &&Region| region.open.iter().any(|(to, open)| *open == cookie && *to == asks);
        let region = state.regions.get(&cookie.region.0).filter(is_open);
        let socket = incoming.socket.as_fd();
        let result = match region.filter(|_| incoming.grants.all.len() < GRANTS_MAX) {
            None => packet::send(socket, &Packet::NotAttached { request }, &[]),
            Some(Region { memory, .. }) => {
                let grant = incoming.grants.last.wrapping_add(1);
                incoming.grants.last = grant;
                let (region, length) = (cookie.region.0, memory.len() as u64);
                let file = memory.file();
                let (is_file, start) =
                    file.map_or((false, memory.address()), |(_, start)| (true, start));
                let answer = Packet::Attached { request, grant, region, is_file, start, length };
                let files: Vec<_> = file.into_iter().map(|(file, _)| file).collect();
                let result = packet::send(socket, &answer, &files);
                if result.is_ok() {
                    incoming.grants.all.insert(grant, cookie);
                }
                result
            }
        };
        // A node that takes no answers gets none, and finds that this one does not answer.
        !result.is_err_and(|error| error.kind() != ErrorKind::WouldBlock)
    }

    /// A node gives a grant back.
    pub(in super::super) fn give_back(&self, connection: u32, grant: u32) {
        let mut state = lock(&self.state);
        if let Some(incoming) = state.incoming.get_mut(&connection) {
            incoming.grants.all.remove(&grant);
        }
        state.drop_orphans();
        drop(state);
        self.confirmed.raise();
    }
}
