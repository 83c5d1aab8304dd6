//! Connections of a port, by the connection manager; the two sides exchange the names that they give
//! to the connection, and how long a packet may be.

use port::connection::{Connections, Endpoint, Provider, ProviderData, Requests};
use port::sync::lock;
use port::{Error, HostOps, NetAddress, Reliability, Result};
use std::sync::Arc;

use super::address::{Address, number_of};
use super::error::NotReachable;
use super::link::End;
use super::state::Link;
use super::{NetVia, format};
use crate::random::random_u64;

/// Bytes of a packet that every node takes.
const LONGEST_MIN: usize = format::DATA_HEADER_BYTES + 256;

/// How long a search for nodes waits for their answers.
const SEARCH_NS: u64 = 10_000_000;

impl Provider for NetVia {
    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn with_connections<R>(&self, with: impl FnOnce(&mut Connections) -> R) -> R {
        self.node().with_connections(with)
    }

    fn run(&self) {
        self.node().run();
    }

    fn progress(&self) -> Result<()> {
        self.node().look_at_all();
        Ok(())
    }

    fn reach(&self, vi: u16, remote: &NetAddress) -> Result<u32> {
        self.vis.get(vi)?;
        let refused = |why| Error::NotReachable(Arc::new(why));
        let socket = &self.net().socket;
        let address = socket.own().of_host(&remote.host);
        let no_address = || refused(NotReachable::NoAddress(remote.host.clone()));
        let address = address.ok_or_else(no_address)?;
        socket.path(address).map_err(|why| refused(NotReachable::NoPath(address, why)))?;
        Ok(self.node().number(address))
    }

    fn provider_data(&self, vi: u16, node: u32) -> Result<ProviderData> {
        self.vis.get(vi)?;
        let address = self.node().address(node);
        let address = address.ok_or(Error::NoSuch { what: "node", index: node })?;
        let longest = self.node().net.socket.longest(address).max(LONGEST_MIN);
        let mut pending = lock(&self.pending);
        let entry = pending.entry(vi).or_insert_with(|| (node, random_u64()));
        if entry.0 != node {
            *entry = (node, random_u64());
        }
        let mut data = [0; 12];
        data[..8].copy_from_slice(&entry.1.to_le_bytes());
        data[8..].copy_from_slice(&u32::try_from(longest).unwrap_or(u32::MAX).to_le_bytes());
        ProviderData::new(&data)
    }

    fn connect_vi(&self, vi: u16, node: u32, remote: &Endpoint) -> Result<()> {
        let found = self.vis.get(vi)?;
        let malformed = Error::NotSupported { what: "understanding of the peer's data" };
        let Some((token, [a, b, c, d])) = remote.data.bytes().split_first_chunk::<8>() else {
            return Err(malformed);
        };
        let theirs = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        if theirs < LONGEST_MIN {
            return Err(malformed);
        }
        let address = self.node().address(node);
        let peer = address.ok_or(Error::NoSuch { what: "node", index: node })?;
        let pending = lock(&self.pending).remove(&vi).filter(|(of, _)| *of == node);
        let no_name = Error::NoSuch { what: "connection of VI", index: vi.into() };
        let (_, own_token) = pending.ok_or(no_name)?;
        let end = End {
            peer,
            remote: remote.attributes,
            own_token,
            remote_token: u64::from_le_bytes(*token),
            longest: theirs.min(self.node().net.socket.longest(peer)),
        };
        let net = &self.node().net;
        let now = net.now();
        found.run(net, now, |state| {
            let is_reliable = !matches!(state.vi.settings.reliability, Reliability::Unreliable);
            state.link = Some(Link::new(net, now, is_reliable, &end));
            state.vi.is_stopped = false;
        });
        Ok(())
    }
}

impl HostOps for NetVia {
    fn discover(&self) -> Result<Vec<NetAddress>> {
        let found = self.node().search(SEARCH_NS).into_iter();
        Ok(found.map(|address| NetAddress::new(&address.to_host(), &[])).collect())
    }

    fn host_of_name(&self, name: &str) -> Option<Vec<u8>> {
        if let Some(number) = number_of(name) {
            return self.host_of_number(number);
        }
        self.net().socket.own().of_name(name).map(Address::to_host)
    }

    fn host_of_number(&self, number: u8) -> Option<Vec<u8>> {
        self.net().socket.own().of_number(number).map(Address::to_host)
    }

    fn name_of_host(&self, host: &[u8]) -> Option<String> {
        self.node().net.socket.own().of_host(host).map(|address| address.to_string())
    }
}
