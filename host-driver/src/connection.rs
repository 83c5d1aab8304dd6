//! Connection management: two programs agree on a connection over 48-byte messages. No I/O here:
//! frames in, frames out, time as an argument; one manager serves a NIC, and whoever polls runs it.
//!
//! ```text
//!   requester                                   acceptor
//!   Requesting --Request (again and again)--->  Held: nobody waits yet (grace), then NoMatch
//!                                               Offered: to a waiting program, which rejects or accepts
//!                                               its VI is connected; Accepting
//!   Accepted   <------Accept (again and again)--
//!   its VI is connected
//!   Confirming --Confirm (again and again)--->  Established: it may send now
//!   Established <---------Settled-------------
//! ```
//! The third message is needed because the acceptor's data would find the requester's VI not yet
//! connected; the fourth because the acceptor may have given up meanwhile (it answers Cancel then), and
//! a requester that believes in a connection would wait on it for ever. If the requester gives up as
//! late as that, the acceptor's VI is connected and learns of it as of any disconnection.
//!
//! Messages may be lost (a full queue refuses them), so each side repeats until it is answered, and
//! the acceptor answers repeats for a while after it has finished (`LINGER_NS`).
//!
//! Two peers that name each other are the same exchange: the addresses say which of them requests
//! ([`is_requester`]), whatever the order in which their programs ask, so requests never cross on the
//! wire. The other one waits, and accepts by itself. Its side keeps a request for as long as it is
//! repeated, so nobody is notified 'no match'; VIs that are not alike are notified on both sides.

mod message;
mod peers;
mod retry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use crate::error::Result;
use crate::event::Message;
use crate::peer::Epochs;
use message::{Body, Malformed, Reassembly, encode};
pub use peers::is_requester;
use port::{Incoming, NetAddress, Progress, RemoteAttributes};
use retry::Retry;

/// How long a request waits for somebody to wait for it, before it is answered with 'no match'.
const GRACE_NS: u64 = 200_000;
/// How long a finished exchange answers repeats.
const LINGER_NS: u64 = 50_000_000;
/// How long a request that was offered to a program stands after its last repeat: the program may
/// think about it for as long as the requester waits.
const OFFER_NS: u64 = 10_000_000_000;
/// Bound of an acceptance without confirmation.
const ACCEPT_NS: u64 = 50_000_000;
/// Exchanges that clients of one node may have open here at once; more are ignored until there is
/// room.
const CLIENT_LIMIT: usize = 256;
/// The same of peers, whose requests stand until their partners ask: one for each VI of a node.
const PEER_LIMIT: usize = 1024;
/// Frames that may wait for the device.
const TRANSMIT_LIMIT: usize = 4096;

/// What the manager has seen, for diagnosis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// Frames dropped: another version of the format.
    pub bad_version: u64,
    /// Frames dropped: fragment numbers or lengths.
    pub bad_frame: u64,
    /// Messages dropped: unknown kind or malformed body.
    pub bad_body: u64,
    /// Messages that fit no exchange.
    pub stray: u64,
    /// Messages repeated for want of an answer.
    pub repeated: u64,
    /// Frames dropped because the channel was down.
    pub channel_down: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutState {
    Requesting,
    Accepted(RemoteAttributes),
    /// The VI is connected; the acceptor is to say that it knows.
    Confirming(RemoteAttributes),
    Established(RemoteAttributes),
    Rejected,
    NoMatch,
    /// The peer's VI is not like this one.
    Mismatch(RemoteAttributes),
    /// Accepted, but the acceptor has given up, or the channel went down.
    Lost,
    /// There is no way to the node.
    Unreachable,
}

#[derive(Debug)]
struct Outgoing {
    node: u8,
    request: Body,
    state: OutState,
    retry: Retry,
}

impl Outgoing {
    /// What is repeated until it is answered.
    fn repeated(&self) -> Option<Body> {
        match self.state {
            OutState::Requesting => Some(self.request.clone()),
            OutState::Confirming(_) => Some(Body::Confirm),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InState {
    Held,
    Offered,
    Accepting(RemoteAttributes),
    Established,
    Rejected,
    NoMatch,
    /// This side's attributes.
    Mismatch(RemoteAttributes),
    Cancelled,
}

#[derive(Debug)]
struct Arrived {
    /// For a peer that names the requester.
    peer: bool,
    to: NetAddress,
    from: NetAddress,
    attributes: RemoteAttributes,
    state: InState,
    retry: Retry,
    until: u64,
    /// Established, and the acceptor has not learned of it.
    untold: bool,
}

impl Arrived {
    /// The exchange has ended so; repeats are answered until it is forgotten.
    const fn finish(&mut self, state: InState, forgotten_at: u64) {
        (self.state, self.until) = (state, forgotten_at);
    }
}

#[derive(Debug)]
struct Listener {
    local: NetAddress,
    /// Waits for this peer alone, not for clients.
    peer: Option<NetAddress>,
    offered: Option<(u8, u32)>,
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

/// The connection manager of a NIC.
#[derive(Debug)]
pub struct Connections {
    /// The factor of bounds, see [`crate::nic::NicConfig::time_scale`].
    time_scale: u64,
    next_exchange: u32,
    next_connection: u16,
    next_listener: u32,
    outgoing: BTreeMap<u32, Outgoing>,
    incoming: BTreeMap<(u8, u32), Arrived>,
    listeners: BTreeMap<u32, Listener>,
    reassembly: Reassembly,
    transmit: VecDeque<(u8, Message)>,
    counters: ConnectionCounters,
}

impl Connections {
    /// Nothing going on. The seed keeps numbers of a restarted node apart from its earlier ones.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Epochs::new(seed);
        Self {
            time_scale: 1,
            next_exchange: random.next_u32(),
            next_connection: (random.next_u32() & 0xffff) as u16,
            next_listener: 0,
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            listeners: BTreeMap::new(),
            reassembly: Reassembly::default(),
            transmit: VecDeque::new(),
            counters: ConnectionCounters::default(),
        }
    }

    /// The same with longer bounds, for a device that is so many times slower than a real one.
    #[must_use]
    pub fn with_time_scale(self, time_scale: u64) -> Self {
        Self { time_scale, ..self }
    }

    /// What was seen so far.
    #[must_use]
    pub const fn counters(&self) -> ConnectionCounters {
        self.counters
    }

    /// When an exchange that ends now is forgotten.
    const fn forgotten_at(&self, now: u64) -> u64 {
        now + LINGER_NS * self.time_scale
    }

    /// When a request that nobody waits for is given up.
    const fn held_until(&self, now: u64, peer: bool) -> u64 {
        now + if peer { peers::HELD_NS } else { GRACE_NS } * self.time_scale
    }

    // --- frames ---

    /// The frame to send next.
    #[must_use]
    pub fn transmit(&self) -> Option<(u8, Message)> {
        self.transmit.front().copied()
    }

    /// The frame was sent, or (`sent` false) cannot be.
    pub fn transmitted(&mut self, sent: bool) {
        self.transmit.pop_front();
        self.counters.channel_down += u64::from(!sent);
    }

    fn send(&mut self, node: u8, exchange: u32, body: &Body) {
        if self.transmit.len() < TRANSMIT_LIMIT {
            self.transmit.extend(encode(exchange, body).into_iter().map(|frame| (node, frame)));
        }
    }

    /// A frame came from `node`.
    pub fn receive(&mut self, now: u64, node: u8, frame: &Message) {
        match self.reassembly.receive(now, node, frame) {
            Ok(None) => {}
            Ok(Some((exchange, body))) => self.handle(now, node, exchange, body),
            Err(Malformed::Version) => self.counters.bad_version += 1,
            Err(Malformed::Frame) => self.counters.bad_frame += 1,
            Err(Malformed::Body) => self.counters.bad_body += 1,
        }
    }

    fn handle(&mut self, now: u64, node: u8, exchange: u32, body: Body) {
        let forgotten_at = self.forgotten_at(now);
        match body {
            Body::Request { attributes, remote: to, local: from, peer } => {
                let (retry, state) = (Retry::start(now), InState::Held);
                let (until, untold) = (self.held_until(now, peer), false);
                let arrived = Arrived { peer, to, from, attributes, state, retry, until, untold };
                self.requested(now, node, exchange, arrived);
            }
            Body::Accept { attributes } => self.accepted(node, exchange, attributes),
            Body::Reject => self.refused(node, exchange, OutState::Rejected),
            Body::NoMatch => self.refused(node, exchange, OutState::NoMatch),
            Body::Mismatch { attributes } => {
                self.refused(node, exchange, OutState::Mismatch(attributes));
            }
            Body::Confirm => self.confirmed(now, node, exchange),
            Body::Settled => self.settled(node, exchange),
            Body::Cancel => match self.incoming.get_mut(&(node, exchange)) {
                Some(arrived) if arrived.state != InState::Established => {
                    arrived.finish(InState::Cancelled, forgotten_at);
                }
                _ => self.counters.stray += 1,
            },
            Body::Void => self.refused(node, exchange, OutState::Lost),
        }
    }

    fn confirmed(&mut self, now: u64, node: u8, exchange: u32) {
        let forgotten_at = self.forgotten_at(now);
        let answer = match self.incoming.get_mut(&(node, exchange)) {
            Some(arrived)
                if matches!(arrived.state, InState::Accepting(_) | InState::Established) =>
            {
                arrived.untold |= arrived.state != InState::Established;
                arrived.finish(InState::Established, forgotten_at);
                Body::Settled
            }
            _ => {
                self.counters.stray += 1;
                Body::Void
            }
        };
        self.send(node, exchange, &answer);
    }

    fn settled(&mut self, node: u8, exchange: u32) {
        let outgoing = self.outgoing.get_mut(&exchange).filter(|outgoing| outgoing.node == node);
        match outgoing.map(|outgoing| &mut outgoing.state) {
            Some(state @ &mut OutState::Confirming(remote)) => {
                *state = OutState::Established(remote);
            }
            _ => self.counters.stray += 1,
        }
    }

    fn requested(&mut self, now: u64, node: u8, exchange: u32, request: Arrived) {
        if let Some(arrived) = self.incoming.get_mut(&(node, exchange)) {
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
        self.incoming.insert((node, exchange), request);
        self.offer(now);
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

    fn accepted(&mut self, node: u8, exchange: u32, attributes: RemoteAttributes) {
        let outgoing = self.outgoing.get_mut(&exchange).filter(|outgoing| outgoing.node == node);
        match outgoing {
            Some(outgoing) if outgoing.state == OutState::Requesting => {
                outgoing.state = OutState::Accepted(attributes);
            }
            Some(Outgoing { state: OutState::Confirming(_), .. }) => {
                self.send(node, exchange, &Body::Confirm);
            }
            Some(_) => {}
            None => {
                self.counters.stray += 1;
                self.send(node, exchange, &Body::Cancel);
            }
        }
    }

    fn refused(&mut self, node: u8, exchange: u32, state: OutState) {
        let outgoing = self.outgoing.get_mut(&exchange).filter(|outgoing| outgoing.node == node);
        match outgoing {
            Some(outgoing) if outgoing.state == OutState::Requesting => outgoing.state = state,
            // The VI may be connected: whatever the reason, it is to be taken back.
            Some(Outgoing {
                state: now @ (OutState::Accepted(_) | OutState::Confirming(_)),
                ..
            }) => {
                *now = OutState::Lost;
            }
            _ => self.counters.stray += 1,
        }
    }

    // --- time ---

    /// Repeats and forgets what is due.
    pub fn on_timer(&mut self, now: u64) {
        let forgotten_at = self.forgotten_at(now);
        let mut frames = Vec::new();
        for (exchange, outgoing) in &mut self.outgoing {
            if let Some(body) = outgoing.repeated()
                && outgoing.retry.due(now)
            {
                frames.push((outgoing.node, *exchange, body));
            }
        }
        self.counters.repeated += frames.len() as u64;
        self.incoming.retain(|(node, exchange), arrived| match arrived.state {
            InState::Held if now >= arrived.until && !arrived.peer => {
                arrived.finish(InState::NoMatch, forgotten_at);
                frames.push((*node, *exchange, Body::NoMatch));
                true
            }
            InState::Accepting(attributes) => {
                if now >= arrived.until {
                    arrived.finish(InState::Cancelled, forgotten_at);
                    frames.push((*node, *exchange, Body::Void));
                } else if arrived.retry.due(now) {
                    self.counters.repeated += 1;
                    frames.push((*node, *exchange, Body::Accept { attributes }));
                }
                true
            }
            _ => arrived.untold || now < arrived.until,
        });
        for (node, exchange, body) in frames {
            self.send(node, exchange, &body);
        }
    }

    /// When [`Connections::on_timer`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let out = self.outgoing.values().filter_map(|outgoing| match outgoing.state {
            OutState::Requesting | OutState::Confirming(_) => Some(outgoing.retry.at),
            _ => None,
        });
        let arrived = self.incoming.values().map(|arrived| match arrived.state {
            InState::Accepting(_) => Some(arrived.until.min(arrived.retry.at)),
            _ => (!arrived.untold).then_some(arrived.until),
        });
        out.chain(arrived.flatten()).min()
    }

    /// The channel to `node` is open: what waited for it is sent now.
    pub fn peer_up(&mut self, now: u64, node: u8) {
        let mine = self.outgoing.iter_mut().filter(|(_, outgoing)| outgoing.node == node);
        let requesting = mine.filter(|(_, outgoing)| outgoing.state == OutState::Requesting);
        let frames: Vec<_> = requesting
            .map(|(exchange, outgoing)| {
                outgoing.retry = Retry::start(now);
                (*exchange, outgoing.request.clone())
            })
            .collect();
        for (exchange, request) in frames {
            self.send(node, exchange, &request);
        }
    }

    /// The channel to `node` is closed: its requests are void, and so are its answers.
    pub fn peer_down(&mut self, now: u64, node: u8) {
        for outgoing in self.outgoing.values_mut().filter(|outgoing| outgoing.node == node) {
            if matches!(outgoing.state, OutState::Accepted(_) | OutState::Confirming(_)) {
                outgoing.state = OutState::Lost;
            }
        }
        let forgotten_at = self.forgotten_at(now);
        for ((from, _), arrived) in &mut self.incoming {
            if *from == node && arrived.state != InState::Established {
                arrived.finish(InState::Cancelled, forgotten_at);
            }
        }
    }

    /// There is no way to `node`: requests to it are void.
    pub fn unreachable(&mut self, node: u8) {
        for outgoing in self.outgoing.values_mut().filter(|outgoing| outgoing.node == node) {
            outgoing.state = OutState::Unreachable;
        }
    }

    // --- requester ---

    /// Starts a request to `node`; gives the exchange and the connection id. With `peer` it is for
    /// the program that names `from`, and this side must be [`is_requester`].
    pub fn connect(
        &mut self,
        now: u64,
        node: u8,
        mut local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        peer: bool,
    ) -> (u32, u16) {
        let exchange = self.next_exchange;
        self.next_exchange = self.next_exchange.wrapping_add(1);
        local.connection = self.next_connection;
        self.next_connection = self.next_connection.wrapping_add(1);
        let (remote, from) = (remote.clone(), from.clone());
        let request = Body::Request { attributes: local, remote, local: from, peer };
        self.send(node, exchange, &request);
        let retry = Retry::start(now);
        let state = OutState::Requesting;
        let outgoing = Outgoing { node, request, state, retry };
        self.outgoing.insert(exchange, outgoing);
        (exchange, local.connection)
    }

    /// How a request is getting on. `Accepted` means that the VI is to be connected now, then
    /// [`Self::confirm`]. What has ended is reported once.
    pub fn connect_state(&mut self, exchange: u32) -> ConnectState {
        let Some(outgoing) = self.outgoing.get(&exchange) else {
            return ConnectState::Ended(Progress::Cancelled);
        };
        let ended = match outgoing.state {
            OutState::Requesting | OutState::Confirming(_) => return ConnectState::Pending,
            OutState::Accepted(remote) => return ConnectState::Accepted(outgoing.node, remote),
            OutState::Established(remote) => Progress::Established(remote),
            OutState::Rejected => Progress::Rejected,
            OutState::NoMatch => Progress::NoMatch,
            OutState::Mismatch(remote) => Progress::Mismatch(remote),
            OutState::Lost => Progress::Cancelled,
            OutState::Unreachable => {
                let node = outgoing.node;
                self.outgoing.remove(&exchange);
                return ConnectState::Unreachable(node);
            }
        };
        self.outgoing.remove(&exchange);
        ConnectState::Ended(ended)
    }

    /// The requester's VI is connected, and the acceptor is notified; the exchange goes on
    /// ([`Self::connect_state`]). False if it is over: the VI then waits for nobody.
    pub fn confirm(&mut self, now: u64, exchange: u32) -> bool {
        let Some(outgoing) = self.outgoing.get_mut(&exchange) else { return false };
        let OutState::Accepted(remote) = outgoing.state else {
            self.outgoing.remove(&exchange);
            return false;
        };
        outgoing.state = OutState::Confirming(remote);
        outgoing.retry = Retry::start(now);
        let node = outgoing.node;
        self.send(node, exchange, &Body::Confirm);
        true
    }

    /// Gives a request up, and notifies the other side.
    pub fn connect_cancel(&mut self, exchange: u32) {
        if let Some(outgoing) = self.outgoing.remove(&exchange) {
            self.send(outgoing.node, exchange, &Body::Cancel);
        }
    }

    // --- acceptor ---

    /// Waits for requests to `local`.
    pub fn listen(&mut self, now: u64, local: &NetAddress) -> u32 {
        self.add_listener(now, Listener { local: local.clone(), peer: None, offered: None })
    }

    fn add_listener(&mut self, now: u64, listener: Listener) -> u32 {
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
                let (from, attributes) = (arrived.from.clone(), arrived.attributes);
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

    /// The acceptor's VI is connected: notifies the requester.
    ///
    /// # Errors
    /// [`port::Error::NoSuch`] if the request does not stand any more.
    pub fn accept(&mut self, now: u64, key: (u8, u32), local: RemoteAttributes) -> Result<()> {
        let arrived = self.incoming.get_mut(&key);
        let arrived = arrived.filter(|arrived| arrived.state == InState::Offered);
        let no_such = port::Error::NoSuch { what: "connection request", index: key.1 };
        let arrived = arrived.ok_or(no_such)?;
        let attributes = RemoteAttributes { connection: arrived.attributes.connection, ..local };
        arrived.state = InState::Accepting(attributes);
        arrived.retry = Retry::start(now);
        arrived.until = now + ACCEPT_NS * self.time_scale;
        self.send(key.0, key.1, &Body::Accept { attributes });
        Ok(())
    }

    /// How an acceptance is getting on. That it is established is not forgotten before it was reported.
    pub fn accept_state(&mut self, key: (u8, u32)) -> Progress {
        let Some(arrived) = self.incoming.get_mut(&key) else { return Progress::Cancelled };
        match arrived.state {
            InState::Accepting(_) | InState::Offered => Progress::Pending,
            InState::Established => {
                arrived.untold = false;
                Progress::Established(arrived.attributes)
            }
            _ => Progress::Cancelled,
        }
    }

    /// Says no. Nobody asks for the request's state afterwards.
    pub fn reject(&mut self, now: u64, key: (u8, u32)) {
        let forgotten_at = self.forgotten_at(now);
        let Some(arrived) = self.incoming.get_mut(&key) else { return };
        arrived.untold = false;
        if matches!(arrived.state, InState::Offered | InState::Accepting(_)) {
            arrived.finish(InState::Rejected, forgotten_at);
            self.send(key.0, key.1, &Body::Reject);
        }
    }
}

/// Node and number of the exchange of a request that arrived.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "two parts of a number")]
pub const fn exchange_of(incoming: &Incoming) -> (u8, u32) {
    ((incoming.id >> 32) as u8, incoming.id as u32)
}

/// The id from which [`exchange_of`] finds an exchange.
const fn id_of((node, exchange): (u8, u32)) -> u64 {
    (node as u64) << 32 | exchange as u64
}

/// What to do about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectState {
    /// Wait.
    Pending,
    /// Connect the VI to this node's VI, then confirm.
    Accepted(u8, RemoteAttributes),
    /// Over: there is no way to this node.
    Unreachable(u8),
    /// Over.
    Ended(Progress),
}
