//! The requester's side of an exchange.

use super::Connections;
use super::endpoint::Endpoint;
use super::message::Body;
use super::retry::Retry;
use crate::address::NetAddress;
use crate::attributes::{Progress, RemoteAttributes};
use crate::error::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutState {
    Requesting,
    Accepted(Endpoint),
    /// The VI is connected; the acceptor is to say that it knows.
    Confirming(RemoteAttributes),
    Established(RemoteAttributes),
    Rejected,
    NoMatch,
    /// The peer's VI is not like this one.
    Mismatch(RemoteAttributes),
    /// Accepted, but the acceptor has given up, or the way to it is closed.
    Lost,
}

/// A request of this side.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) node: u32,
    request: Body,
    pub(super) state: OutState,
    pub(super) retry: Retry,
    /// Why there is no way to the node.
    unreachable: Option<Error>,
}

impl Outgoing {
    /// What is repeated until it is answered.
    pub(super) fn repeated(&self) -> Option<Body> {
        match self.state {
            OutState::Requesting => Some(self.request.clone()),
            OutState::Confirming(_) => Some(Body::Confirm),
            _ => None,
        }
    }
}

/// What to do about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectState {
    /// Wait.
    Pending,
    /// Connect the VI to this node's VI, then confirm.
    Accepted {
        /// The acceptor's node.
        node: u32,
        /// Its VI.
        remote: Endpoint,
    },
    /// Over.
    Ended(Progress),
}

impl Connections {
    /// Starts a request to `node`; returns the exchange and the connection id, which the manager
    /// chooses. With `peer` it is for the program that names `from`, and this side must be
    /// [`super::is_requester`].
    pub fn connect(
        &mut self,
        now: u64,
        node: u32,
        vi: Endpoint,
        from: &NetAddress,
        remote: &NetAddress,
        peer: bool,
    ) -> (u32, u16) {
        let exchange = self.next_exchange;
        self.next_exchange = self.next_exchange.wrapping_add(1);
        let connection = self.next_connection;
        self.next_connection = self.next_connection.wrapping_add(1);
        let (remote, local) = (remote.clone(), from.clone());
        let request = Body::Request { vi: vi.under(connection), remote, local, peer };
        self.send(node, exchange, &request);
        let (state, retry) = (OutState::Requesting, Retry::start(now));
        let outgoing = Outgoing { node, request, state, retry, unreachable: None };
        self.outgoing.insert(exchange, outgoing);
        (exchange, connection)
    }

    /// How a request is getting on. `Accepted` means that the VI is to be connected now, then
    /// [`Self::confirm`]. What has ended is reported once.
    ///
    /// # Errors
    /// There is no way to the node, for the reason that [`Self::unreachable`] was called with.
    pub fn connect_state(&mut self, exchange: u32) -> Result<ConnectState> {
        let Some(outgoing) = self.outgoing.get_mut(&exchange) else {
            return Ok(ConnectState::Ended(Progress::Cancelled));
        };
        let (node, unreachable) = (outgoing.node, outgoing.unreachable.take());
        let ended = match outgoing.state {
            OutState::Requesting | OutState::Confirming(_) => return Ok(ConnectState::Pending),
            OutState::Accepted(remote) => return Ok(ConnectState::Accepted { node, remote }),
            OutState::Established(remote) => Progress::Established(remote),
            OutState::Rejected => Progress::Rejected,
            OutState::NoMatch => Progress::NoMatch,
            OutState::Mismatch(remote) => Progress::Mismatch(remote),
            OutState::Lost => Progress::Cancelled,
        };
        self.outgoing.remove(&exchange);
        unreachable.map_or(Ok(ConnectState::Ended(ended)), Err)
    }

    /// The requester's VI is connected, and the acceptor is notified; the exchange goes on
    /// ([`Self::connect_state`]). False if it is over: the VI then waits for nobody.
    pub fn confirm(&mut self, now: u64, exchange: u32) -> bool {
        let Some(outgoing) = self.outgoing.get_mut(&exchange) else { return false };
        let OutState::Accepted(remote) = outgoing.state else {
            self.outgoing.remove(&exchange);
            return false;
        };
        outgoing.state = OutState::Confirming(remote.attributes);
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

    /// There is no way to `node`: requests to it are void, for the reason `why`. What it has answered before
    /// stands.
    pub fn unreachable(&mut self, node: u32, why: &Error) {
        let is_open = |state: &OutState| {
            matches!(state, OutState::Requesting | OutState::Accepted(_) | OutState::Confirming(_))
        };
        let all = self.outgoing.values_mut();
        for outgoing in all.filter(|outgoing| outgoing.node == node && is_open(&outgoing.state)) {
            (outgoing.state, outgoing.unreachable) = (OutState::Lost, Some(why.clone()));
        }
    }

    // --- what the acceptor and its node say ---

    /// This side's request under this exchange, if it is one of `node`'s.
    fn outgoing_of(&mut self, (node, exchange): (u32, u32)) -> Option<&mut Outgoing> {
        self.outgoing.get_mut(&exchange).filter(|outgoing| outgoing.node == node)
    }

    pub(super) fn accepted(&mut self, key: (u32, u32), remote: Endpoint) {
        match self.outgoing_of(key) {
            Some(outgoing) if outgoing.state == OutState::Requesting => {
                outgoing.state = OutState::Accepted(remote);
            }
            Some(Outgoing { state: OutState::Confirming(_), .. }) => {
                self.send(key.0, key.1, &Body::Confirm);
            }
            Some(_) => {}
            None => {
                self.counters.stray += 1;
                self.send(key.0, key.1, &Body::Cancel);
            }
        }
    }

    pub(super) fn refused(&mut self, key: (u32, u32), state: OutState) {
        match self.outgoing_of(key) {
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

    pub(super) fn settled(&mut self, key: (u32, u32)) {
        match self.outgoing_of(key).map(|outgoing| &mut outgoing.state) {
            Some(state @ &mut OutState::Confirming(remote)) => {
                *state = OutState::Established(remote);
            }
            _ => self.counters.stray += 1,
        }
    }

    /// The requests that wait for an answer of `node`, with their exchanges. They count as repeated
    /// now.
    pub(super) fn repeat_requests(&mut self, now: u64, node: u32) -> Vec<(u32, Body)> {
        let of_node = self.outgoing.iter_mut().filter(|(_, outgoing)| outgoing.node == node);
        let requesting = of_node.filter(|(_, outgoing)| outgoing.state == OutState::Requesting);
        requesting
            .map(|(exchange, outgoing)| {
                outgoing.retry = Retry::start(now);
                (*exchange, outgoing.request.clone())
            })
            .collect()
    }

    /// What `node` has answered does not stand any more.
    pub(super) fn answers_void(&mut self, node: u32) {
        for outgoing in self.outgoing.values_mut().filter(|outgoing| outgoing.node == node) {
            if matches!(outgoing.state, OutState::Accepted(_) | OutState::Confirming(_)) {
                outgoing.state = OutState::Lost;
            }
        }
    }
}
