//! Connection management of any port: two programs agree on a connection over 48-byte messages.
//!
//! | module | what |
//! |---|---|
//! | here, `requester`, `acceptor`, `peers` | [`Connections`], the manager of a NIC. No I/O: frames in, frames out, time as an argument; whoever polls runs it |
//! | [`requests`] | what a port does with its manager when VIPL asks for a connection; a port supplies a [`Provider`] |
//! | `message`, `frame` | the format: messages, and the frames that they are cut into |
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
//! connected; the fourth because the acceptor may have given up meanwhile (it answers Void then), and
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
//!
//! A *node* is a number that the port gives to whom it exchanges frames with; the manager only
//! compares it.

mod acceptor;
mod endpoint;
mod frame;
mod message;
mod peers;
mod requester;
pub mod requests;
mod retry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

pub use acceptor::exchange_of;
use acceptor::{Arrived, InState, Listener};
pub use endpoint::{Endpoint, PROVIDER_DATA_MAX, ProviderData};
pub use frame::Message;
use frame::{Malformed, Reassembly, encode};
use message::Body;
pub use peers::is_requester;
pub use requester::ConnectState;
use requester::{OutState, Outgoing};
pub use requests::{Provider, Requests};

/// How long a request waits for somebody to wait for it, before it is answered with 'no match'.
const GRACE_NS: u64 = 200_000;
/// How long a finished exchange answers repeats.
const LINGER_NS: u64 = 50_000_000;
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

/// The connection manager of a NIC.
#[derive(Debug)]
pub struct Connections {
    /// The factor of bounds, see [`Connections::with_time_scale`].
    time_scale: u64,
    next_exchange: u32,
    next_connection: u16,
    next_listener: u32,
    outgoing: BTreeMap<u32, Outgoing>,
    /// By node and exchange.
    incoming: BTreeMap<(u32, u32), Arrived>,
    listeners: BTreeMap<u32, Listener>,
    reassembly: Reassembly,
    transmit: VecDeque<(u32, Message)>,
    counters: ConnectionCounters,
}

impl Connections {
    /// A manager without exchanges. They are numbered from `exchange` on, connections from
    /// `connection` on. Both numbers are random: other nodes take the messages of a restarted node
    /// for repeats if it uses the numbers of its earlier exchanges.
    #[must_use]
    pub fn new(exchange: u32, connection: u16) -> Self {
        Self {
            time_scale: 1,
            next_exchange: exchange,
            next_connection: connection,
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

    /// The frame to send next, and to which node.
    #[must_use]
    pub fn transmit(&self) -> Option<(u32, Message)> {
        self.transmit.front().copied()
    }

    /// The frame was sent, or (`sent` false) cannot be.
    pub fn transmitted(&mut self, sent: bool) {
        self.transmit.pop_front();
        self.counters.channel_down += u64::from(!sent);
    }

    fn send(&mut self, node: u32, exchange: u32, body: &Body) {
        if self.transmit.len() < TRANSMIT_LIMIT {
            self.transmit.extend(encode(exchange, body).into_iter().map(|frame| (node, frame)));
        }
    }

    /// A frame came from `node`.
    pub fn receive(&mut self, now: u64, node: u32, frame: &Message) {
        match self.reassembly.receive(now, node, frame) {
            Ok(None) => {}
            Ok(Some((exchange, body))) => self.handle(now, node, exchange, body),
            Err(Malformed::Version) => self.counters.bad_version += 1,
            Err(Malformed::Frame) => self.counters.bad_frame += 1,
            Err(Malformed::Body) => self.counters.bad_body += 1,
        }
    }

    fn handle(&mut self, now: u64, node: u32, exchange: u32, body: Body) {
        let key = (node, exchange);
        match body {
            Body::Request { vi, remote: to, local: from, peer } => {
                let until = self.held_until(now, peer);
                let arrived = Arrived::new(now, peer, (from, to), vi, until);
                self.requested(now, key, arrived);
            }
            Body::Accept { vi } => self.accepted(key, vi),
            Body::Reject => self.refused(key, OutState::Rejected),
            Body::NoMatch => self.refused(key, OutState::NoMatch),
            Body::Mismatch { attributes } => self.refused(key, OutState::Mismatch(attributes)),
            Body::Confirm => self.confirmed(now, key),
            Body::Settled => self.settled(key),
            Body::Cancel => self.cancelled(now, key),
            Body::Void => self.refused(key, OutState::Lost),
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
            InState::Accepting(vi) => {
                if now >= arrived.until {
                    arrived.finish(InState::Cancelled, forgotten_at);
                    frames.push((*node, *exchange, Body::Void));
                } else if arrived.retry.due(now) {
                    self.counters.repeated += 1;
                    frames.push((*node, *exchange, Body::Accept { vi }));
                }
                true
            }
            _ => arrived.unreported || now < arrived.until,
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
            _ => (!arrived.unreported).then_some(arrived.until),
        });
        out.chain(arrived.flatten()).min()
    }

    // --- nodes ---

    /// The way to `node` is open: what waited for it is sent now. A port that sends without opening a
    /// way first does not call this.
    pub fn peer_up(&mut self, now: u64, node: u32) {
        for (exchange, request) in self.repeat_requests(now, node) {
            self.send(node, exchange, &request);
        }
    }

    /// The way to `node` is closed: its requests are void, and so are its answers.
    pub fn peer_down(&mut self, now: u64, node: u32) {
        self.answers_void(node);
        self.requests_void(now, node);
    }
}
