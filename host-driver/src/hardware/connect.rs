//! Connections of a port, on the NIC's connection manager.

use port::{ConnectionOps, Incoming, NetAddress, Progress, RdmaAccess, RemoteAttributes};

use super::{HardwarePort, Request, peer, rdma_bits};
use crate::address::{NodeAddress, host_of_node, name_of_node, node_of_host, node_of_name};
use crate::connection::{ConnectState, exchange_of};
use crate::error::{Error, Result};
use crate::sync::lock;

/// RDMA that the other side's VI allows.
const fn allowed(remote: &RemoteAttributes) -> RdmaAccess {
    RdmaAccess { write: remote.rdma_write, read: remote.rdma_read }
}

impl HardwarePort {
    /// Wants the channel to the node of `remote`, and gives the node.
    pub(super) fn reach(&self, remote: &NetAddress) -> Result<u8> {
        self.check_presence()?;
        let not_reachable = Error::NotReachable { address: remote.host.clone() };
        let peers = self.nic.capabilities.peers;
        let node = node_of_host(&remote.host).filter(|node| *node < peers).ok_or(not_reachable)?;
        self.nic.control().peers.want(&self.nic.admin, node)?;
        Ok(node)
    }

    /// Starts a request for a connection.
    pub(super) fn request(
        &self,
        local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        bound_ns: u64,
        peer: bool,
    ) -> Result<u32> {
        self.nic.vis.check(local.vi, self.domain)?;
        let node = self.reach(remote)?;
        let now = self.nic.bus.now_ns();
        let mut control = self.nic.control();
        let started = control.connections.connect(now, node, local, from, remote, peer);
        let (exchange, connection) = started;
        let request = Request { vi: local.vi, connection, ends_at: now.saturating_add(bound_ns) };
        lock(&self.requests).insert(exchange, request);
        self.nic.run(&mut control);
        Ok(exchange)
    }

    /// Ends a request whose time is over or which failed.
    pub(super) fn end_request(&self, exchange: u32) {
        if lock(&self.requests).remove(&exchange).is_some() {
            let mut control = self.nic.control();
            control.connections.connect_cancel(exchange);
            self.nic.run(&mut control);
        }
    }

    /// See [`ConnectionOps::connect_poll`].
    pub(super) fn poll_request(&self, exchange: u32) -> Result<Progress> {
        self.nic.progress();
        let request = lock(&self.requests)
            .get(&exchange)
            .map(|request| (request.vi, request.connection, request.ends_at));
        let Some((vi, connection, ends_at)) = request else { return Ok(Progress::Cancelled) };
        if let Err(absent) = self.check_presence() {
            lock(&self.requests).remove(&exchange);
            return Err(absent);
        }
        let state = self.nic.control().connections.connect_state(exchange);
        let (node, remote) = match state {
            ConnectState::Pending if self.nic.bus.now_ns() >= ends_at => {
                self.end_request(exchange);
                return Ok(Progress::Cancelled);
            }
            ConnectState::Pending => return Ok(Progress::Pending),
            ConnectState::Ended(progress) => {
                lock(&self.requests).remove(&exchange);
                return Ok(progress);
            }
            ConnectState::Unreachable(node) => {
                lock(&self.requests).remove(&exchange);
                return Err(Error::NoEcho { node });
            }
            ConnectState::Accepted(node, remote) => (node, remote),
        };
        if remote.connection != connection {
            self.end_request(exchange);
            return Ok(Progress::Cancelled);
        }
        let allows = rdma_bits(allowed(&remote));
        let connect = || self.nic.admin.vi_connect(vi, node, remote.vi, connection, allows);
        if let Err(error) = self.retry("ViConnect", vi, connect) {
            self.end_request(exchange);
            return if error.is_peer_down() { Ok(Progress::Cancelled) } else { Err(error) };
        }
        let mut control = self.nic.control();
        // The device also connects a VI to a closed peer, where it would wait for ever. If the
        // channel went down before, the event of that is here by now and has voided the answer; if
        // it goes down later, the VI stops.
        self.nic.run(&mut control);
        let confirmed = control.connections.confirm(self.nic.bus.now_ns(), exchange);
        self.nic.run(&mut control);
        drop(control);
        if !confirmed {
            lock(&self.requests).remove(&exchange);
            self.reset(vi)?;
            return Ok(Progress::Cancelled);
        }
        // Until the acceptor says that it knows.
        Ok(Progress::Pending)
    }

    /// See [`ConnectionOps::accept`].
    pub(super) fn accept_with(&self, incoming: &Incoming, local: RemoteAttributes) -> Result<()> {
        self.nic.vis.check(local.vi, self.domain)?;
        let (node, remote) = (exchange_of(incoming).0, incoming.attributes);
        let allows = rdma_bits(allowed(&remote));
        let (vi, connection) = (local.vi, remote.connection);
        let connect = || self.nic.admin.vi_connect(vi, node, remote.vi, connection, allows);
        self.retry("ViConnect", local.vi, connect)?;
        let mut control = self.nic.control();
        // A channel that went down before the VI was connected voids the request; see
        // `connect_poll`.
        self.nic.run(&mut control);
        let now = self.nic.bus.now_ns();
        let accepted = control.connections.accept(now, exchange_of(incoming), local);
        self.nic.run(&mut control);
        drop(control);
        if accepted.is_err() {
            self.reset(local.vi)?;
        }
        accepted
    }

    /// See [`ConnectionOps::listen_poll`].
    pub(super) fn poll_listener(&self, listener: u32) -> Result<Option<Incoming>> {
        self.nic.progress();
        self.check_presence()?;
        Ok(self.nic.control().connections.listen_poll(self.nic.bus.now_ns(), listener))
    }
}

impl ConnectionOps for HardwarePort {
    fn listen(&self, local: &NetAddress) -> port::Result<u32> {
        let mut control = self.nic.control();
        let listener = control.connections.listen(self.nic.bus.now_ns(), local);
        self.nic.run(&mut control);
        Ok(listener)
    }

    fn listen_poll(&self, listener: u32) -> port::Result<Option<Incoming>> {
        Ok(self.poll_listener(listener)?)
    }

    fn listen_stop(&self, listener: u32) {
        let mut control = self.nic.control();
        control.connections.listen_stop(self.nic.bus.now_ns(), listener);
        self.nic.run(&mut control);
    }

    fn connect(
        &self,
        local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        bound_ns: u64,
    ) -> port::Result<u32> {
        Ok(self.request(local, from, remote, bound_ns, false)?)
    }

    fn connect_poll(&self, request: u32) -> port::Result<Progress> {
        Ok(self.poll_request(request)?)
    }

    fn connect_cancel(&self, exchange: u32) {
        self.end_request(exchange);
    }

    fn accept(&self, incoming: &Incoming, local: RemoteAttributes) -> port::Result<()> {
        Ok(self.accept_with(incoming, local)?)
    }

    fn accept_poll(&self, incoming: &Incoming) -> Progress {
        self.nic.progress();
        self.nic.control().connections.accept_state(exchange_of(incoming))
    }

    fn reject(&self, incoming: &Incoming) {
        let mut control = self.nic.control();
        control.connections.reject(self.nic.bus.now_ns(), exchange_of(incoming));
        self.nic.run(&mut control);
    }

    fn peer_connect(
        &self,
        local: RemoteAttributes,
        from: &NetAddress,
        remote: &NetAddress,
        bound_ns: u64,
    ) -> port::Result<u32> {
        Ok(peer::connect(self, local, from, remote, bound_ns)?)
    }

    fn peer_poll(&self, request: u32) -> port::Result<Progress> {
        Ok(peer::poll(self, request)?)
    }

    fn peer_cancel(&self, request: u32) {
        peer::cancel(self, request);
    }

    fn discover(&self) -> port::Result<Vec<NetAddress>> {
        let nodes = self.nic.discover()?;
        Ok(nodes.into_iter().map(|node| NetAddress::of_node(node, &[])).collect())
    }

    fn host_of_name(&self, name: &str) -> Option<Vec<u8>> {
        node_of_name(name).map(|node| host_of_node(node).to_vec())
    }

    fn host_of_number(&self, number: u8) -> Option<Vec<u8>> {
        name_of_node(number).map(|_| host_of_node(number).to_vec())
    }

    fn name_of_host(&self, host: &[u8]) -> Option<String> {
        node_of_host(host).and_then(name_of_node)
    }
}
