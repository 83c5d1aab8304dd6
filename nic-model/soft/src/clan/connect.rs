//! Connections of a port, by the connection manager; the two sides exchange the cookies of their
//! inboxes.

use port::address::HOST_ADDRESS_MAX;
use port::clan::{AccessRights, ClanPeer, Cookie, Tripwire};
use port::connection::{Connections, Endpoint, Provider, ProviderData, Requests};
use port::sync::lock;
use port::{DataTransfer, Error, Extensions, HostOps, NetAddress, Result, ViSettings};

use super::inbox::Inbox;
use super::link::{Asks, Link};
use super::{ClanVia, engine, inbox};

/// The host address that VIPL has: all are of one length, with zeros behind the network's own.
pub(super) fn address_of(host: &[u8]) -> Vec<u8> {
    let mut address = host.to_vec();
    address.resize(HOST_ADDRESS_MAX, 0);
    address
}

/// The network's own host address; zeros at the end may be missing.
fn host_of(address: &[u8]) -> &[u8] {
    let end = address.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &address[..end]
}

impl Provider for ClanVia {
    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn with_connections<R>(&self, with: impl FnOnce(&mut Connections) -> R) -> R {
        self.node.with_connections(with)
    }

    fn run(&self) {
        self.node.run();
    }

    fn progress(&self) -> Result<()> {
        self.node.progress();
        Ok(())
    }

    fn reach(&self, vi: u16, remote: &NetAddress) -> Result<u32> {
        self.vis.get(vi)?;
        let peer = ClanPeer { host: host_of(&remote.host).to_vec(), domain: self.own_domain() };
        Ok(self.node.number(&peer))
    }

    fn provider_data(&self, vi: u16, node: u32) -> Result<ProviderData> {
        let asks = Asks::of(&lock(&self.vis.get(vi)?.state).vi.settings.extensions);
        let peer = self.node.peer(node).ok_or(Error::NoSuch { what: "node", index: node })?;
        let mut pending = lock(&self.pending);
        if pending.get(&vi).is_none_or(|(known, _)| *known != node) {
            let inbox = self.node.net.inboxes.take(&*self.node.net.port, &peer)?;
            if let Some((_, other)) = pending.insert(vi, (node, inbox)) {
                self.give_unused(&other)?;
            }
        }
        let inbox = &pending[&vi].1;
        let parts = [inbox.cookie.to_bits(), inbox.start, asks.to_bits()].map(u64::to_le_bytes);
        ProviderData::new(parts.as_flattened())
    }

    fn connect_vi(&self, vi: u16, node: u32, remote: &Endpoint) -> Result<()> {
        let found = self.vis.get(vi)?;
        let malformed = || Error::NotSupported { what: "understanding of the peer's data" };
        let parts = remote.data.bytes().as_chunks::<8>();
        let ([cookie, start, asks], []) = parts else { return Err(malformed()) };
        let cookie = Cookie::from_bits(u64::from_le_bytes(*cookie)).ok_or_else(malformed)?;
        let start = u64::from_le_bytes(*start);
        let asks = Asks::from_bits(u64::from_le_bytes(*asks)).ok_or_else(malformed)?;
        let peer = self.node.peer(node).ok_or(Error::NoSuch { what: "node", index: node })?;
        let to = self.node.net.port.attach(&peer, cookie)?;
        if start >= 1 << 62 || !to.is_mapped() {
            return Err(malformed());
        }
        let pending = lock(&self.pending).remove(&vi).filter(|(of, _)| *of == node);
        let no_inbox = Error::NoSuch { what: "inbox of VI", index: vi.into() };
        let (_, inbox) = pending.ok_or(no_inbox)?;
        let mut state = lock(&found.state);
        if let Err(error) = self.watch(vi, &state.vi.settings, &inbox) {
            self.give_unused(&inbox)?;
            return Err(error);
        }
        state.link = Some(Link::new(peer, remote.attributes, inbox, to, start, asks));
        state.vi.is_stopped = false;
        state.offered = 0;
        engine::offer(&self.node.net, &mut state);
        Ok(())
    }
}

impl ClanVia {
    /// Has what the peer writes into the inbox wake, or be reported by, the completion queues.
    fn watch(&self, vi: u16, settings: &ViSettings, inbox: &Inbox) -> Result<()> {
        let Extensions { defer_send, transfer, .. } = settings.extensions;
        let (recv, send) = (settings.recv_queue, settings.send_queue);
        let waits_for_room = transfer == DataTransfer::Pio;
        let words = [
            (true, recv, inbox::WRITTEN),
            // Sends that wait: for receives, or for room.
            (defer_send, send, inbox::OFFERED),
            (waits_for_room, send, inbox::TRANSFER.read),
        ];
        for (is_watched, queue, offset) in words {
            let Some(queue) = queue.filter(|_| is_watched) else { continue };
            self.node.net.port.set_tripwire(&Tripwire {
                region: inbox.region(),
                offset: offset as u64,
                on: AccessRights::WRITE,
                once: false,
                queue: self.queues.get(queue)?.events.number(),
                tag: vi.into(),
            })?;
        }
        Ok(())
    }

    fn own_domain(&self) -> u16 {
        self.node.net.port.attributes().own.domain
    }
}

impl HostOps for ClanVia {
    fn discover(&self) -> Result<Vec<NetAddress>> {
        let hosts = self.node.net.port.discover()?;
        Ok(hosts.iter().map(|host| NetAddress::new(&address_of(host), &[])).collect())
    }

    fn host_of_name(&self, name: &str) -> Option<Vec<u8>> {
        self.node.net.port.host_of_name(name).map(|host| address_of(&host))
    }

    fn host_of_number(&self, number: u8) -> Option<Vec<u8>> {
        Some(address_of(format!("node{number}").as_bytes()))
    }

    fn name_of_host(&self, host: &[u8]) -> Option<String> {
        self.node.net.port.name_of_host(host_of(host))
    }
}
