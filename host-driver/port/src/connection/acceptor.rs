//! The acceptor's side of an exchange.

use super::Connections;
use super::endpoint::Endpoint;
use super::message::Body;
use super::retry::Retry;
use crate::address::NetAddress;
use crate::attributes::{Incoming, Progress, RemoteAttributes};
use crate::error::{Error, Result};

/// How long a request that was offered to a program stands after its last repeat: the program may
/// think about it for as long as the requester waits.
pub(super) const OFFER_NS: u64 = 10_000_000_000;
/// Bound of an acceptance without confirmation.
pub(super) const ACCEPT_NS: u64 = 50_000_000;
/// Exchanges that clients of one node may have open here at once; more are ignored until there is
/// room.
const CLIENT_LIMIT: usize = 256;
/// The same of peers, whose requests stand until their partners ask: one for each VI of a node.
pub(super) const PEER_LIMIT: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InState {
    Held,
    Offered,
    /// This side's VI.
    Accepting(Endpoint),
    Established,
    Rejected,
    NoMatch,
    /// This side's attributes.
    Mismatch(RemoteAttributes),
    Cancelled,
}

/// A request of another node.
#[derive(Debug)]
pub(super) struct Arrived {
    /// For a peer that names the requester.
    pub(super) peer: bool,
    from: NetAddress,
    to: NetAddress,
    /// The requester's.
    pub(super) vi: Endpoint,
    pub(super) state: InState,
    pub(super) retry: Retry,
    pub(super) until: u64,
    /// Established, and the acceptor has not learned of it.
    pub(super) unreported: bool,
}

impl Arrived {
    /// A request that arrives now, and is held until a time. The addresses are those from which and
    /// to which it is.
    pub(super) fn new(
        now: u64,
        peer: bool,
        (from, to): (NetAddress, NetAddress),
        vi: Endpoint,
        until: u64,
    ) -> Self {
        let (state, retry) = (InState::Held, Retry::start(now));
        Self { peer, from, to, vi, state, retry, until, unreported: false }
    }

    /// The exchange has ended so; repeats are answered until it is forgotten.
    pub(super) const fn finish(&mut self, state: InState, forgotten_at: u64) {
        (self.state, self.until) = (state, forgotten_at);
    }
}

/// A program that waits for a request.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) local: NetAddress,
    /// Waits for this peer alone, not for clients.
    pub(super) peer: Option<NetAddress>,
    pub(super) offered: Option<(u32, u32)>,
}

impl Listener {
    fn waits_for(&self, arrived: &Arrived) -> bool {
        let from = match &self.peer {
            Some(peer) => arrived.peer && *peer == arrived.from,
            None => !arrived.peer,
        };
        self.offered.is_none() && self.local == arrived.to && from
    }
}

/// Node and number of the exchange of a request that arrived.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "two parts of a number")]
pub const fn exchange_of(incoming: &Incoming) -> (u32, u32) {
    ((incoming.id >> 32) as u32, incoming.id as u32)
}

/// The id from which [`exchange_of`] finds an exchange.
const fn id_of((node, exchange): (u32, u32)) -> u64 {
    (node as u64) << 32 | exchange as u64
}

impl Connections {
    /// Waits for requests to `local`.
    pub fn listen(&mut self, now: u64, local: &NetAddress) -> u32 {
        self.add_listener(now, Listener { local: local.clone(), peer: None, offered: None })
    }

    pub(super) fn add_listener(&mut self, now: u64, listener: Listener) -> u32 {
        let number = self.next_listener;
        self.next_listener = self.next_listener.wrapping_add(1);
        self.listeners.insert(number, listener);
        self.offer(now);
        number
    }

    /// The request that was offered, if it still stands.
    pub fn listen_poll(&mut self, now: u64, listener: u32) -> Option<Incoming> {
        let offered = self.listeners.get_mut(&listener)?.offered.take()?;
        match self.incoming.get(&offered) {
            Some(arrived) if arrived.state == InState::Offered => {
                let (from, attributes) = (arrived.from.clone(), arrived.vi.attributes);
                self.listeners.remove(&listener);
                Some(Incoming { id: id_of(offered), from, attributes })
            }
            _ => {
                self.offer(now);
                None
            }
        }
    }

    /// Ends the waiting; a request that was offered meanwhile is held for somebody else.
    pub fn listen_stop(&mut self, now: u64, listener: u32) {
        let held_until = [false, true].map(|peer| self.held_until(now, peer));
        let offered = self.listeners.remove(&listener).and_then(|listener| listener.offered);
        let arrived = offered.and_then(|key| self.incoming.get_mut(&key));
        if let Some(arrived) = arrived.filter(|arrived| arrived.state == InState::Offered) {
            arrived.state = InState::Held;
            arrived.until = held_until[usize::from(arrived.peer)];
            self.offer(now);
        }
    }

    /// The requester's VI, with its provider's data, for as long as the manager knows the exchange.
    #[must_use]
    pub fn requester(&self, key: (u32, u32)) -> Option<Endpoint> {
        self.incoming.get(&key).map(|arrived| arrived.vi)
    }

    /// The acceptor's VI is connected: notifies the requester.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if the request does not stand any more.
    pub fn accept(&mut self, now: u64, key: (u32, u32), local: Endpoint) -> Result<()> {
        let arrived = self.incoming.get_mut(&key);
        let arrived = arrived.filter(|arrived| arrived.state == InState::Offered);
        let arrived = arrived.ok_or_else(|| no_request(key))?;
        let vi = local.under(arrived.vi.attributes.connection);
        arrived.state = InState::Accepting(vi);
        arrived.retry = Retry::start(now);
        arrived.until = now + ACCEPT_NS * self.time_scale;
        self.send(key.0, key.1, &Body::Accept { vi });
        Ok(())
    }

    /// How an acceptance is getting on. That it is established is not forgotten before it was reported.
    pub fn accept_state(&mut self, key: (u32, u32)) -> Progress {
        let Some(arrived) = self.incoming.get_mut(&key) else { return Progress::Cancelled };
        match arrived.state {
            InState::Accepting(_) | InState::Offered => Progress::Pending,
            InState::Established => {
                arrived.unreported = false;
                Progress::Established(arrived.vi.attributes)
            }
            _ => Progress::Cancelled,
        }
    }

    /// Says no. Nobody asks for the request's state afterwards.
    pub fn reject(&mut self, now: u64, key: (u32, u32)) {
        let forgotten_at = self.forgotten_at(now);
        let Some(arrived) = self.incoming.get_mut(&key) else { return };
        arrived.unreported = false;
        if matches!(arrived.state, InState::Offered | InState::Accepting(_)) {
            arrived.finish(InState::Rejected, forgotten_at);
            self.send(key.0, key.1, &Body::Reject);
        }
    }

    /// Offers held requests to those who wait for them, first come first served.
    fn offer(&mut self, now: u64) {
        for (key, arrived) in &mut self.incoming {
            if arrived.state != InState::Held {
                continue;
            }
            let waits = |listener: &&mut Listener| listener.waits_for(arrived);
            if let Some(listener) = self.listeners.values_mut().find(waits) {
                listener.offered = Some(*key);
                arrived.state = InState::Offered;
                arrived.until = now + OFFER_NS;
            }
        }
    }

    // --- what the requester and its node say ---

    pub(super) fn requested(&mut self, now: u64, key: (u32, u32), request: Arrived) {
        let (node, exchange) = key;
        if let Some(arrived) = self.incoming.get_mut(&key) {
            match arrived.state {
                InState::Rejected => self.send(node, exchange, &Body::Reject),
                InState::NoMatch => self.send(node, exchange, &Body::NoMatch),
                InState::Mismatch(attributes) => {
                    self.send(node, exchange, &Body::Mismatch { attributes });
                }
                InState::Held if arrived.peer => arrived.until = request.until,
                InState::Offered => arrived.until = now + OFFER_NS,
                // Accept is repeated by its own timer; the others have nothing to say yet.
                _ => {}
            }
            return;
        }
        let same_node = self.incoming.range((node, 0)..=(node, u32::MAX));
        let alike = same_node.filter(|(_, arrived)| arrived.peer == request.peer).count();
        if alike >= if request.peer { PEER_LIMIT } else { CLIENT_LIMIT } {
            return;
        }
        self.incoming.insert(key, request);
        self.offer(now);
    }

    pub(super) fn confirmed(&mut self, now: u64, key: (u32, u32)) {
        let forgotten_at = self.forgotten_at(now);
        let answer = match self.incoming.get_mut(&key) {
            Some(arrived)
                if matches!(arrived.state, InState::Accepting(_) | InState::Established) =>
            {
                arrived.unreported |= arrived.state != InState::Established;
                arrived.finish(InState::Established, forgotten_at);
                Body::Settled
            }
            _ => {
                self.counters.stray += 1;
                Body::Void
            }
        };
        self.send(key.0, key.1, &answer);
    }

    pub(super) fn cancelled(&mut self, now: u64, key: (u32, u32)) {
        let forgotten_at = self.forgotten_at(now);
        match self.incoming.get_mut(&key) {
            Some(arrived) if arrived.state != InState::Established => {
                arrived.finish(InState::Cancelled, forgotten_at);
            }
            _ => self.counters.stray += 1,
        }
    }

    /// What `node` has requested does not stand any more.
    pub(super) fn requests_void(&mut self, now: u64, node: u32) {
        let forgotten_at = self.forgotten_at(now);
        for ((from, _), arrived) in &mut self.incoming {
            if *from == node && arrived.state != InState::Established {
                arrived.finish(InState::Cancelled, forgotten_at);
            }
        }
    }
}

/// The error of a request that does not stand any more.
pub(super) const fn no_request((_, exchange): (u32, u32)) -> Error {
    Error::NoSuch { what: "connection request", index: exchange }
}
