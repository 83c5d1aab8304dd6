//! What a port does with its [`super::Connections`] when VIPL asks for a connection: the same for every
//! port, but for what its [`Provider`] does.
//!
//! The functions have the names of [`ConnectionOps`]' methods, and carry them out.

mod peer;
mod provider;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::acceptor::{exchange_of, no_request};
use super::endpoint::Endpoint;
use super::requester::ConnectState;
use crate::address::NetAddress;
use crate::attributes::{Incoming, Progress, RemoteAttributes};
use crate::error::{Error, Result};
use crate::ops::ConnectionOps;
use crate::sync::lock;
use peer::{peer_cancel, peer_connect, peer_poll};
pub use provider::Provider;

/// The requests that VIPL has made of a port and that have not ended.
#[derive(Debug, Default)]
pub struct Requests {
    /// By exchange.
    open: Mutex<BTreeMap<u32, Request>>,
    peers: peer::Requests,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    vi: u16,
    connection: u16,
    ends_at: u64,
}

impl Requests {
    fn remove(&self, exchange: u32) -> Option<Request> {
        lock(&self.open).remove(&exchange)
    }
}

/// Gives up every request that has not ended; for [`crate::ViPort::close`].
pub fn cancel_all(port: &impl Provider) {
    port.requests().peers.all().into_iter().for_each(|request| peer_cancel(port, request));
    let requests: Vec<u32> = lock(&port.requests().open).keys().copied().collect();
    requests.into_iter().for_each(|exchange| connect_cancel(port, exchange));
}

/// See [`ConnectionOps::listen`].
fn listen(port: &impl Provider, local: &NetAddress) -> u32 {
    let now = port.now_ns();
    let listener = port.with_connections(|connections| connections.listen(now, local));
    port.run();
    listener
}

/// See [`ConnectionOps::listen_poll`].
///
/// # Errors
/// The device no longer exists.
fn listen_poll(port: &impl Provider, listener: u32) -> Result<Option<Incoming>> {
    port.progress()?;
    let now = port.now_ns();
    Ok(port.with_connections(|connections| connections.listen_poll(now, listener)))
}

/// See [`ConnectionOps::listen_stop`].
fn listen_stop(port: &impl Provider, listener: u32) {
    let now = port.now_ns();
    port.with_connections(|connections| connections.listen_stop(now, listener));
    port.run();
}

/// Starts a request of a client, or of a peer.
fn request(
    port: &impl Provider,
    local: RemoteAttributes,
    from: &NetAddress,
    remote: &NetAddress,
    bound_ns: u64,
    peer: bool,
) -> Result<u32> {
    let node = port.reach(local.vi, remote)?;
    let vi = Endpoint { attributes: local, data: port.provider_data(local.vi, node)? };
    let now = port.now_ns();
    let (exchange, connection) =
        port.with_connections(|connections| connections.connect(now, node, vi, from, remote, peer));
    let request = Request { vi: local.vi, connection, ends_at: now.saturating_add(bound_ns) };
    lock(&port.requests().open).insert(exchange, request);
    port.run();
    Ok(exchange)
}

/// See [`ConnectionOps::connect_cancel`].
fn connect_cancel(port: &impl Provider, exchange: u32) {
    if port.requests().remove(exchange).is_some() {
        port.with_connections(|connections| connections.connect_cancel(exchange));
        port.run();
    }
}

/// See [`ConnectionOps::connect_poll`].
///
/// # Errors
/// The device no longer exists, or it refused to connect the VI; there is no way to the node.
fn connect_poll(port: &impl Provider, exchange: u32) -> Result<Progress> {
    let present = port.progress();
    let request = lock(&port.requests().open).get(&exchange).copied();
    let Some(Request { vi, connection, ends_at }) = request else {
        return Ok(Progress::Cancelled);
    };
    let state = present
        .and_then(|()| port.with_connections(|connections| connections.connect_state(exchange)))
        .inspect_err(|_| {
            port.requests().remove(exchange);
        })?;
    let (node, remote) = match state {
        ConnectState::Pending if port.now_ns() >= ends_at => {
            connect_cancel(port, exchange);
            return Ok(Progress::Cancelled);
        }
        ConnectState::Pending => return Ok(Progress::Pending),
        ConnectState::Ended(progress) => {
            port.requests().remove(exchange);
            return Ok(progress);
        }
        ConnectState::Accepted { node, remote } => (node, remote),
    };
    if remote.attributes.connection != connection {
        connect_cancel(port, exchange);
        return Ok(Progress::Cancelled);
    }
    if let Err(error) = port.connect_vi(vi, node, &remote) {
        connect_cancel(port, exchange);
        return if matches!(error, Error::PeerDown(_)) {
            Ok(Progress::Cancelled)
        } else {
            Err(error)
        };
    }
    // The VI may have been connected to a node that no longer exists, where it would wait for ever.
    // If that happened before, the port learns of it here and voids the answer; if it happens later,
    // the VI stops.
    port.run();
    let now = port.now_ns();
    let confirmed = port.with_connections(|connections| connections.confirm(now, exchange));
    port.run();
    if !confirmed {
        port.requests().remove(exchange);
        port.reset_vi(vi)?;
        return Ok(Progress::Cancelled);
    }
    // Until the acceptor says that it knows.
    Ok(Progress::Pending)
}

/// See [`ConnectionOps::accept`].
///
/// # Errors
/// Those of [`Provider::provider_data`] and [`Provider::connect_vi`];
/// [`Error::NoSuch`] if the request does not stand any more.
fn accept(port: &impl Provider, incoming: &Incoming, local: RemoteAttributes) -> Result<()> {
    let key = exchange_of(incoming);
    let vi = Endpoint { attributes: local, data: port.provider_data(local.vi, key.0)? };
    let remote = port.with_connections(|connections| connections.requester(key));
    port.connect_vi(local.vi, key.0, &remote.ok_or_else(|| no_request(key))?)?;
    // As in `connect_poll`: the node may no longer exist, which voids the request.
    port.run();
    let now = port.now_ns();
    let accepted = port.with_connections(|connections| connections.accept(now, key, vi));
    port.run();
    if accepted.is_err() {
        port.reset_vi(local.vi)?;
    }
    accepted
}

/// See [`ConnectionOps::accept_poll`].
fn accept_poll(port: &impl Provider, incoming: &Incoming) -> Progress {
    // Whatever befell the device ends the acceptance in the manager.
    let _ = port.progress();
    port.with_connections(|connections| connections.accept_state(exchange_of(incoming)))
}

/// See [`ConnectionOps::reject`].
fn reject(port: &impl Provider, incoming: &Incoming) {
    let now = port.now_ns();
    port.with_connections(|connections| connections.reject(now, exchange_of(incoming)));
    port.run();
}

/// Every port whose connections a manager makes has them in this way.
impl<P: Provider> ConnectionOps for P {
    fn listen(&self, local: &NetAddress) -> Result<u32> {
        Ok(listen(self, local))
    }

    fn listen_poll(&self, listener: u32) -> Result<Option<Incoming>> {
        listen_poll(self, listener)
    }

    fn listen_stop(&self, listener: u32) {
        listen_stop(self, listener);
    }

    fn connect(
        &self,
        local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        bound_ns: u64,
    ) -> Result<u32> {
        request(self, local, from, remote, bound_ns, false)
    }

    fn connect_poll(&self, request: u32) -> Result<Progress> {
        connect_poll(self, request)
    }

    fn connect_cancel(&self, request: u32) {
        connect_cancel(self, request);
    }

    fn accept(&self, incoming: &Incoming, local: RemoteAttributes) -> Result<()> {
        accept(self, incoming, local)
    }

    fn accept_poll(&self, incoming: &Incoming) -> Progress {
        accept_poll(self, incoming)
    }

    fn reject(&self, incoming: &Incoming) {
        reject(self, incoming);
    }

    fn peer_connect(
        &self,
        local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        bound_ns: u64,
    ) -> Result<u32> {
        peer_connect(self, local, from, remote, bound_ns)
    }

    fn peer_poll(&self, request: u32) -> Result<Progress> {
        peer_poll(self, request)
    }

    fn peer_cancel(&self, request: u32) {
        peer_cancel(self, request);
    }
}
