//! Which nodes there are, which of them are connected, and which addresses they have: the table of a
//! lane, without input and output. Time is an argument, in nanoseconds.
//!
//! ```text
//!                 next_request                   connected               hello
//!   Idle ───────────────────────► Requesting ──────────────► Connected ─────────► Up
//!    ▲ ▲                              │ requested, and the      ▲  │ no hello      │ lost, or
//!    │ │ ..._failed                   ▼ other one goes first    │  ▼ in time       ▼ requested
//!    │ └───────────────────────── Accepting ────────────────────┘  Idle            Idle
//!    └─ known: named by the user, or found on the network (until a search does not find it any more)
//! ```
//! Two nodes that request each other at the same time get one connection: that which the node with the
//! lower host address requests. It rejects the other request, also if that is looked at only after its
//! own was accepted: without this it would be taken for that of a node which has lost its connection.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::network::Networks;

/// How long a side waits for the other side's hello.
pub const HELLO_NS: u64 = 1_000_000_000;
/// The least time between two looks for a node, or for nodes.
pub const RETRY_NS: u64 = 1_000_000_000;
/// The same for a node that was found and did not answer: a program of another kind, for which other nodes
/// would have to wait each time. If it starts a lane, this asks by itself.
pub const SILENT_NS: u64 = 10_000_000_000;
/// How long after its own request was accepted a node may find one that has crossed it.
pub const CROSSING_NS: u64 = 1_000_000_000;
/// How long a node is left alone whose addresses were refused.
pub const REFUSED_NS: u64 = 60_000_000_000;

/// A host address of VIA.
pub type Host = Vec<u8>;

#[derive(Debug)]
enum State<L> {
    Idle,
    /// Whether the other side has requested, too, and was rejected.
    Requesting(bool),
    Accepting,
    /// The other side's hello has not arrived; it has time until then.
    Connected(L, u64),
    Up(L),
}

#[derive(Debug)]
struct Entry<L> {
    state: State<L>,
    /// Those of its latest hello.
    addresses: Vec<IpAddr>,
    /// The user has named it, so it stays.
    named: bool,
    /// There is something for it.
    wanted: bool,
    /// It is not requested before.
    retry_at: u64,
    /// Requests of its own may have crossed the one that has made the connection.
    crossing_until: u64,
    /// Its addresses were refused; until `retry_at`, its requests are.
    refused: bool,
}

impl<L> Entry<L> {
    const fn new(named: bool) -> Self {
        Self {
            state: State::Idle,
            addresses: Vec::new(),
            named,
            wanted: true,
            retry_at: 0,
            crossing_until: 0,
            refused: false,
        }
    }

    const fn link(&self) -> Option<&L> {
        match &self.state {
            State::Connected(link, _) | State::Up(link) => Some(link),
            _ => None,
        }
    }
}

/// What becomes of a request that a node has made.
#[derive(Debug, PartialEq, Eq)]
pub enum Requested<L> {
    /// It is accepted; the connection from before, if there is one, has no other side any more.
    Accept(Option<L>),
    /// It is rejected: this node's own request goes first, or its addresses were refused.
    Reject,
}

/// Why the addresses of a node are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// This node has the address.
    #[error("it has the address {0} of this node: give one of them another")]
    Own(IpAddr),
    /// Another peer has it.
    #[error("it has the address {0} of another peer: give one of them another")]
    Other(IpAddr),
}

/// What a hello leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Greeted {
    /// The node is up.
    Up,
    /// It is not: its connection is to be closed.
    Refused(Conflict),
    /// Nothing: the connection is not that of the table (yet), or has had its hello.
    Ignored,
}

/// See the module. `L` is a connection.
#[derive(Debug)]
pub struct Table<L> {
    own: Host,
    networks: Networks,
    hosts: BTreeMap<Host, Entry<L>>,
    /// The connections of nodes that are up.
    routes: BTreeMap<IpAddr, L>,
    /// The network is to be searched for nodes, and not before when.
    search: bool,
    search_at: u64,
}

impl<L: Clone + PartialEq> Table<L> {
    /// The table of the node `own`, which is to connect with the nodes that the user has named, and with
    /// those that it finds.
    #[must_use]
    pub fn new(own: Host, networks: Networks, named: &[Host]) -> Self {
        let others = named.iter().filter(|host| **host != own);
        let hosts = others.map(|host| (host.clone(), Entry::new(true))).collect();
        Self { own, networks, hosts, routes: BTreeMap::new(), search: true, search_at: 0 }
    }

    // --- packets ---

    /// The connection with the node that has an address.
    #[must_use]
    pub fn route(&self, destination: IpAddr) -> Option<&L> {
        self.routes.get(&destination)
    }

    /// The connections with all nodes that are up.
    pub fn everyone(&self) -> impl Iterator<Item = &L> {
        self.hosts.values().filter_map(|entry| match &entry.state {
            State::Up(link) => Some(link),
            _ => None,
        })
    }

    /// There was a packet for a node that is not up, or (None) for every node. The node is to be
    /// connected, or to be searched for. Whether that is news.
    pub fn want(&mut self, destination: Option<IpAddr>) -> bool {
        let has = |entry: &Entry<L>| destination.is_some_and(|ip| entry.addresses.contains(&ip));
        let one = self.hosts.values().any(has);
        let mut news = !one && !self.search;
        self.search |= !one;
        for entry in self.hosts.values_mut().filter(|entry| !one || has(entry)) {
            news |= !entry.wanted && entry.link().is_none();
            entry.wanted |= entry.link().is_none();
        }
        news
    }

    // --- who connects ---

    /// Whether the network is to be searched for nodes now.
    pub fn next_search(&mut self, now: u64) -> bool {
        let due = self.search && now >= self.search_at;
        if due {
            (self.search, self.search_at) = (false, now + RETRY_NS);
        }
        due
    }

    /// A search has found these nodes. Others that were found before are forgotten.
    pub fn found(&mut self, hosts: &[Host]) {
        self.hosts.retain(|host, entry| {
            entry.named || !matches!(entry.state, State::Idle) || hosts.contains(host)
        });
        for host in hosts.iter().filter(|host| **host != self.own).cloned() {
            let entry = self.hosts.entry(host).or_insert_with(|| Entry::new(false));
            entry.wanted |= entry.link().is_none();
        }
    }

    /// The node to request a connection with now.
    pub fn next_request(&mut self, now: u64) -> Option<Host> {
        let due = |entry: &Entry<L>| {
            matches!(entry.state, State::Idle) && entry.wanted && now >= entry.retry_at
        };
        // Those that are known to have a lane first: others may take long to answer.
        let all = self.hosts.iter_mut().filter(|(_, entry)| due(entry));
        let (host, entry) =
            all.min_by_key(|(_, entry)| (entry.addresses.is_empty(), !entry.named))?;
        (entry.state, entry.wanted) = (State::Requesting(false), false);
        Some(host.clone())
    }

    /// When a search or a request is due, or a hello is overdue.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let of = |entry: &Entry<L>| match entry.state {
            State::Idle if entry.wanted => Some(entry.retry_at),
            State::Connected(_, until) => Some(until),
            _ => None,
        };
        let search = self.search.then_some(self.search_at);
        self.hosts.values().filter_map(of).chain(search).min()
    }

    /// A node requests a connection.
    pub fn requested(&mut self, host: &Host, now: u64) -> Requested<L> {
        let own_first = self.own < *host;
        let entry = self.hosts.entry(host.clone()).or_insert_with(|| Entry::new(false));
        if let State::Requesting(rejected) = &mut entry.state
            && own_first
        {
            *rejected = true;
            return Requested::Reject;
        }
        let has_crossed = entry.link().is_some() && now < entry.crossing_until;
        if has_crossed || entry.refused && now < entry.retry_at {
            return Requested::Reject;
        }
        let before = core::mem::replace(&mut entry.state, State::Accepting);
        let (State::Connected(link, _) | State::Up(link)) = before else {
            return Requested::Accept(None);
        };
        self.routes.retain(|_, kept| *kept != link);
        Requested::Accept(Some(link))
    }

    /// A connection with a node has come about, by the request of this node or of that one. Gives the
    /// connection that is to be closed, where there are two: the other side decides alike.
    pub fn connected(&mut self, host: &Host, link: L, by_own: bool, now: u64) -> Option<L> {
        let goes_first = by_own == (self.own < *host);
        let entry = self.hosts.entry(host.clone()).or_insert_with(|| Entry::new(false));
        if entry.link().is_some() && !goes_first {
            return Some(link);
        }
        entry.crossing_until = if by_own && goes_first { now + CROSSING_NS } else { 0 };
        let state = State::Connected(link, now + HELLO_NS);
        let before = core::mem::replace(&mut entry.state, state);
        let (State::Connected(link, _) | State::Up(link)) = before else { return None };
        self.routes.retain(|_, kept| *kept != link);
        Some(link)
    }

    /// A request of this node has led to nothing; `silent`: the other one has not answered.
    pub fn request_failed(&mut self, host: &Host, silent: bool, now: u64) {
        let Some(entry) = self.hosts.get_mut(host) else { return };
        let State::Requesting(rejected) = entry.state else { return };
        let is_other = silent && !entry.named;
        entry.state = State::Idle;
        if rejected {
            // Nobody was there, but now there is.
            entry.wanted = true;
        } else {
            entry.retry_at = now + if is_other { SILENT_NS } else { RETRY_NS };
        }
        if !entry.named {
            // If another node has them now, a search finds it.
            entry.addresses.clear();
        }
    }

    /// A request of the other node has led to nothing. It was there a moment ago, and may have given up in
    /// favour of this node's.
    pub fn accept_failed(&mut self, host: &Host) {
        let Some(entry) = self.hosts.get_mut(host) else { return };
        if matches!(entry.state, State::Accepting) {
            (entry.state, entry.wanted) = (State::Idle, true);
        }
    }

    // --- who is connected ---

    /// The hello of the node at the other side of a connection.
    pub fn hello(&mut self, host: &Host, link: &L, addresses: &[IpAddr], now: u64) -> Greeted {
        let taken = addresses.iter().find(|ip| self.routes.contains_key(ip));
        let own = addresses.iter().find(|ip| self.networks.is_own(**ip));
        let conflict = own.map(|ip| Conflict::Own(*ip));
        let conflict = conflict.or_else(|| taken.map(|ip| Conflict::Other(*ip)));
        let Some(entry) = self.hosts.get_mut(host) else { return Greeted::Ignored };
        if !matches!(&entry.state, State::Connected(connected, _) if connected == link) {
            return Greeted::Ignored;
        }
        if let Some(conflict) = conflict {
            (entry.state, entry.refused) = (State::Idle, true);
            entry.retry_at = now + REFUSED_NS;
            return Greeted::Refused(conflict);
        }
        (entry.state, entry.refused) = (State::Up(link.clone()), false);
        (entry.wanted, entry.retry_at) = (false, 0);
        entry.addresses = addresses.to_vec();
        self.routes.extend(addresses.iter().map(|ip| (*ip, link.clone())));
        Greeted::Up
    }

    /// A connection has ended. Whether its node was up.
    pub fn lost(&mut self, host: &Host, link: &L) -> bool {
        let Some(entry) = self.hosts.get_mut(host) else { return false };
        if entry.link() != Some(link) {
            return false;
        }
        self.routes.retain(|_, kept| kept != link);
        matches!(core::mem::replace(&mut entry.state, State::Idle), State::Up(_))
    }

    /// Connections whose hello is overdue. They are to be closed.
    pub fn overdue(&mut self, now: u64) -> Vec<L> {
        let mut all = Vec::new();
        for entry in self.hosts.values_mut() {
            if let State::Connected(link, until) = &entry.state
                && now >= *until
            {
                all.push(link.clone());
                (entry.state, entry.retry_at) = (State::Idle, now + RETRY_NS);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;
