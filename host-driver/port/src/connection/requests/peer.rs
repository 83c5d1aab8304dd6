//! Connections with a peer that names this one: the side with the lower address requests, as a client
//! does; the other one waits, as a server does, and accepts by itself.

use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::BTreeMap;
use std::sync::Mutex;

use super::provider::Provider;
use crate::address::NetAddress;
use crate::attributes::{Incoming, Progress, RemoteAttributes};
use crate::connection::{exchange_of, is_requester};
use crate::error::{Error, Result};
use crate::sync::lock;

/// Peer requests of a port.
#[derive(Debug, Default)]
pub(super) struct Requests {
    next: AtomicU32,
    open: Mutex<BTreeMap<u32, Role>>,
}

impl Requests {
    pub(super) fn all(&self) -> Vec<u32> {
        lock(&self.open).keys().copied().collect()
    }

    fn put(&self, request: u32, role: Role) {
        lock(&self.open).insert(request, role);
    }
}

#[derive(Debug)]
enum Role {
    /// Asks, under this exchange.
    Requester(u32),
    /// Waits for the request of the other one.
    Waiter { listener: u32, local: RemoteAttributes, ends_at: u64 },
    /// Accepted it.
    Acceptor(Incoming),
}

/// See [`crate::ConnectionOps::peer_connect`].
///
/// # Errors
/// As [`super::connect`]; `from` is not an address of this port, or is `remote`.
pub(super) fn peer_connect(
    port: &impl Provider,
    local: RemoteAttributes,
    from: &NetAddress,
    remote: &NetAddress,
    bound_ns: u64,
) -> Result<u32> {
    let own = &port.attributes().host_address;
    let host = if from.host.is_empty() { own } else { &from.host };
    let from = NetAddress::new(host, &from.discriminator);
    if from.host != *own || from == *remote {
        let value = from.host.last().copied().unwrap_or(0).into();
        let what = "own address of a peer connection, node";
        return Err(Error::BadArgument { what, value });
    }
    let role = if is_requester(&from, remote) {
        Role::Requester(super::request(port, local, &from, remote, bound_ns, true)?)
    } else {
        // A VI or an address that will not do is reported now, and not when the peer asks.
        port.reach(local.vi, remote)?;
        let now = port.now_ns();
        let listener =
            port.with_connections(|connections| connections.listen_peer(now, &from, remote));
        port.run();
        Role::Waiter { listener, local, ends_at: now.saturating_add(bound_ns) }
    };
    let peers = &port.requests().peers;
    let request = peers.next.fetch_add(1, Ordering::Relaxed);
    peers.put(request, role);
    Ok(request)
}

/// See [`crate::ConnectionOps::peer_poll`].
///
/// # Errors
/// As [`super::connect_poll`].
pub(super) fn peer_poll(port: &impl Provider, request: u32) -> Result<Progress> {
    let peers = &port.requests().peers;
    // Not in the table meanwhile: what is called here lets others run.
    let role = lock(&peers.open).remove(&request);
    let (progress, role) = match role {
        None => return Ok(Progress::Cancelled),
        Some(Role::Requester(exchange)) => {
            (super::connect_poll(port, exchange)?, Role::Requester(exchange))
        }
        Some(Role::Acceptor(incoming)) => {
            (super::accept_poll(port, &incoming), Role::Acceptor(incoming))
        }
        Some(Role::Waiter { listener, local, ends_at }) => wait(port, listener, local, ends_at)
            .inspect_err(|_| super::listen_stop(port, listener))?,
    };
    if progress == Progress::Pending {
        peers.put(request, role);
    }
    Ok(progress)
}

/// Looks whether the peer's request came, and answers it.
fn wait(
    port: &impl Provider,
    listener: u32,
    local: RemoteAttributes,
    ends_at: u64,
) -> Result<(Progress, Role)> {
    let Some(incoming) = super::listen_poll(port, listener)? else {
        let over = port.now_ns() >= ends_at;
        if over {
            super::listen_stop(port, listener);
        }
        let progress = if over { Progress::Cancelled } else { Progress::Pending };
        return Ok((progress, Role::Waiter { listener, local, ends_at }));
    };
    let remote = incoming.attributes;
    if !local.is_like(&remote) {
        let (now, key) = (port.now_ns(), exchange_of(&incoming));
        port.with_connections(|connections| connections.mismatch(now, key, local));
        port.run();
        return Ok((Progress::Mismatch(remote), Role::Acceptor(incoming)));
    }
    let progress = match super::accept(port, &incoming, local) {
        Ok(()) => Progress::Pending,
        // The request was void by then.
        Err(Error::NoSuch { what: "connection request", .. } | Error::PeerDown(_)) => {
            Progress::Cancelled
        }
        Err(error) => {
            super::reject(port, &incoming);
            return Err(error);
        }
    };
    Ok((progress, Role::Acceptor(incoming)))
}

/// See [`crate::ConnectionOps::peer_cancel`].
pub(super) fn peer_cancel(port: &impl Provider, request: u32) {
    let role = lock(&port.requests().peers.open).remove(&request);
    match role {
        None => {}
        Some(Role::Requester(exchange)) => super::connect_cancel(port, exchange),
        Some(Role::Waiter { listener, .. }) => super::listen_stop(port, listener),
        Some(Role::Acceptor(incoming)) => super::reject(port, &incoming),
    }
}
