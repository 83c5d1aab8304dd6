//! Connections with a peer that names this one: the side with the lower address requests, as a client
//! does; the other one waits, as a server does, and accepts by itself.

use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::BTreeMap;
use std::sync::Mutex;

use super::HardwarePort;
use crate::connection::{exchange_of, is_requester};
use crate::error::{Error, Result};
use crate::sync::lock;
use port::{ConnectionOps, Incoming, NetAddress, Progress, RemoteAttributes};

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

/// See [`ConnectionOps::peer_connect`].
pub(super) fn connect(
    port: &HardwarePort,
    local: RemoteAttributes,
    from: &NetAddress,
    remote: &NetAddress,
    bound_ns: u64,
) -> Result<u32> {
    let own = &port.attributes.host_address;
    let host = if from.host.is_empty() { own } else { &from.host };
    let from = NetAddress::new(host, &from.discriminator);
    if from.host != *own || from == *remote {
        let value = from.host.last().copied().unwrap_or(0).into();
        let what = "own address of a peer connection, node";
        return Err(port::Error::BadArgument { what, value }.into());
    }
    let role = if is_requester(&from, remote) {
        Role::Requester(port.request(local, &from, remote, bound_ns, true)?)
    } else {
        port.nic.vis.check(local.vi, port.domain)?;
        port.reach(remote)?;
        let now = port.nic.bus.now_ns();
        let mut control = port.nic.control();
        let listener = control.connections.listen_peer(now, &from, remote);
        port.nic.run(&mut control);
        Role::Waiter { listener, local, ends_at: now.saturating_add(bound_ns) }
    };
    let request = port.peers.next.fetch_add(1, Ordering::Relaxed);
    port.peers.put(request, role);
    Ok(request)
}

/// See [`ConnectionOps::peer_poll`].
pub(super) fn poll(port: &HardwarePort, request: u32) -> Result<Progress> {
    // Not in the table meanwhile: what is called here lets others run.
    let role = lock(&port.peers.open).remove(&request);
    let (progress, role) = match role {
        None => return Ok(Progress::Cancelled),
        Some(Role::Requester(exchange)) => {
            (port.poll_request(exchange)?, Role::Requester(exchange))
        }
        Some(Role::Acceptor(incoming)) => (port.accept_poll(&incoming), Role::Acceptor(incoming)),
        Some(Role::Waiter { listener, local, ends_at }) => {
            wait(port, listener, local, ends_at).inspect_err(|_| port.listen_stop(listener))?
        }
    };
    if progress == Progress::Pending {
        port.peers.put(request, role);
    }
    Ok(progress)
}

/// Looks whether the peer's request came, and answers it.
fn wait(
    port: &HardwarePort,
    listener: u32,
    local: RemoteAttributes,
    ends_at: u64,
) -> Result<(Progress, Role)> {
    let Some(incoming) = port.poll_listener(listener)? else {
        let over = port.nic.bus.now_ns() >= ends_at;
        if over {
            port.listen_stop(listener);
        }
        let progress = if over { Progress::Cancelled } else { Progress::Pending };
        return Ok((progress, Role::Waiter { listener, local, ends_at }));
    };
    let remote = incoming.attributes;
    if !local.is_like(&remote) {
        let mut control = port.nic.control();
        control.connections.mismatch(port.nic.bus.now_ns(), exchange_of(&incoming), local);
        port.nic.run(&mut control);
        return Ok((Progress::Mismatch(remote), Role::Acceptor(incoming)));
    }
    let progress = match port.accept_with(&incoming, local) {
        Ok(()) => Progress::Pending,
        // The request was void by then.
        Err(Error::Port(port::Error::NoSuch { what: "connection request", .. })) => {
            Progress::Cancelled
        }
        Err(error) if error.is_peer_down() => Progress::Cancelled,
        Err(error) => {
            port.reject(&incoming);
            return Err(error);
        }
    };
    Ok((progress, Role::Acceptor(incoming)))
}

/// See [`ConnectionOps::peer_cancel`].
pub(super) fn cancel(port: &HardwarePort, request: u32) {
    let role = lock(&port.peers.open).remove(&request);
    match role {
        None => {}
        Some(Role::Requester(exchange)) => port.connect_cancel(exchange),
        Some(Role::Waiter { listener, .. }) => port.listen_stop(listener),
        Some(Role::Acceptor(incoming)) => port.reject(&incoming),
    }
}
