//! Connections of a port, on the NIC's connection manager.

use port::connection::{Connections, Endpoint, Provider, ProviderData, Requests};
use port::{HostOps, NetAddress, RdmaAccess, RemoteAttributes};

use super::{HardwarePort, rdma_bits};
use crate::address::{NodeAddress, host_of_node, name_of_node, node_of_host, node_of_name};
use crate::error::{Error, Result};

/// RDMA that the other side's VI allows.
const fn allowed(remote: &RemoteAttributes) -> RdmaAccess {
    RdmaAccess { write: remote.rdma_write, read: remote.rdma_read }
}

impl HardwarePort {
    /// Wants the channel to the node of `remote`, and gives the node.
    fn want(&self, remote: &NetAddress) -> Result<u8> {
        self.check_presence()?;
        let not_reachable = Error::NotReachable { address: remote.host.clone() };
        let peers = self.nic.capabilities.peers;
        let node = node_of_host(&remote.host).filter(|node| *node < peers).ok_or(not_reachable)?;
        self.nic.control().peers.want(&self.nic.admin, node)?;
        Ok(node)
    }
}

impl Provider for HardwarePort {
    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn with_connections<R>(&self, with: impl FnOnce(&mut Connections) -> R) -> R {
        with(&mut self.nic.control().connections)
    }

    fn run(&self) {
        self.nic.run(&mut self.nic.control());
    }

    fn progress(&self) -> port::Result<()> {
        self.nic.progress();
        Ok(self.check_presence()?)
    }

    fn reach(&self, vi: u16, remote: &NetAddress) -> port::Result<u32> {
        self.nic.vis.check(vi, self.domain)?;
        Ok(self.want(remote)?.into())
    }

    /// None: the device knows what it needs from the attributes and from its channels.
    fn provider_data(&self, _vi: u16, _node: u32) -> port::Result<ProviderData> {
        Ok(ProviderData::EMPTY)
    }

    fn connect_vi(&self, vi: u16, node: u32, remote: &Endpoint) -> port::Result<()> {
        let bad = port::Error::BadArgument { what: "node number", value: node.into() };
        let (node, remote) = (u8::try_from(node).map_err(|_| bad)?, &remote.attributes);
        let allows = rdma_bits(allowed(remote));
        let connect = || self.nic.admin.vi_connect(vi, node, remote.vi, remote.connection, allows);
        Ok(self.retry("ViConnect", vi, connect)?)
    }
}

impl HostOps for HardwarePort {
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
