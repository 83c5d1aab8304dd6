//! Two ports on a wire in memory.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;

use nic_regs::doorbell::Queue;
use nic_regs::tpt::Handle;
use nic_regs::vi::Reliability;

use super::*;
use crate::attributes::{PortAttributes, PortEvent, RdmaAccess, ViSettings};
use crate::connection::{Connections, Message, ProviderData};
use crate::doorbell::Doorbell;
use crate::error::Error;
use crate::memory::DmaMemory;
use crate::ops::{CompletionOps, ConnectionOps, HostOps, MemoryOps, ViOps, ViPort, WaitOps};

/// Frames on their way to each port, with the number of the port that sent them.
type Wire = Mutex<[VecDeque<(u32, Message)>; 2]>;

#[derive(Debug)]
struct Port {
    number: u32,
    attributes: PortAttributes,
    connections: Mutex<Connections>,
    requests: Requests,
    wire: Arc<Wire>,
    now: Arc<AtomicU64>,
    absent: AtomicBool,
    /// The next [`Provider::progress`] finds nothing: what is on its way arrives after it.
    arrives_later: AtomicBool,
    /// The error of the next [`Provider::connect_vi`].
    refuses: Mutex<Option<Error>>,
    /// VIs that are connected, with what to.
    connected: Mutex<BTreeMap<u16, (u32, Endpoint)>>,
    /// VIs that were reset.
    reset: Mutex<Vec<u16>>,
}

/// VIs of each port are numbered from 0 on.
const VIS: u16 = 8;
const BOUND_NS: u64 = 100_000_000;

impl Port {
    /// Two ports, the first with the lower address.
    fn pair() -> [Self; 2] {
        let (wire, now) = (Arc::<Wire>::default(), Arc::<AtomicU64>::default());
        [0, 1].map(|number| Self {
            number,
            attributes: PortAttributes {
                host_address: number.to_be_bytes().to_vec(),
                ..PortAttributes::default()
            },
            connections: Mutex::new(Connections::new(100 * number, 0)),
            requests: Requests::default(),
            wire: Arc::clone(&wire),
            now: Arc::clone(&now),
            absent: AtomicBool::new(false),
            arrives_later: AtomicBool::new(false),
            refuses: Mutex::default(),
            connected: Mutex::default(),
            reset: Mutex::default(),
        })
    }

    fn address(&self, discriminator: &[u8]) -> NetAddress {
        NetAddress::new(&self.attributes.host_address, discriminator)
    }

    /// What this port's VI sends to the other side's provider.
    fn data(&self, vi: u16) -> ProviderData {
        ProviderData::new(&[&self.number.to_le_bytes()[..], &vi.to_le_bytes()].concat()).unwrap()
    }

    /// To which data a VI is connected.
    fn connected_to(&self, vi: u16) -> Option<ProviderData> {
        lock(&self.connected).get(&vi).map(|(_, remote)| remote.data)
    }

    fn pass(&self, ns: u64) {
        self.now.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Provider for Port {
    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn with_connections<R>(&self, with: impl FnOnce(&mut Connections) -> R) -> R {
        with(&mut lock(&self.connections))
    }

    fn run(&self) {
        let (mut connections, now) = (lock(&self.connections), self.now_ns());
        let arrived = core::mem::take(&mut lock(&self.wire)[self.number as usize]);
        for (from, frame) in arrived {
            connections.receive(now, from, &frame);
        }
        connections.on_timer(now);
        while let Some((node, frame)) = connections.transmit() {
            lock(&self.wire)[node as usize].push_back((self.number, frame));
            connections.transmitted(true);
        }
    }

    fn progress(&self) -> Result<()> {
        if !self.arrives_later.swap(false, Ordering::Relaxed) {
            self.run();
        }
        let absent = self.absent.load(Ordering::Relaxed);
        if absent { Err(Error::NotSupported { what: "card" }) } else { Ok(()) }
    }

    fn reach(&self, vi: u16, remote: &NetAddress) -> Result<u32> {
        self.provider_data(vi, 0)?;
        let node = remote.host.as_slice().try_into().map(u32::from_be_bytes);
        node.map_err(|error| Error::NotReachable(Arc::new(error)))
    }

    fn provider_data(&self, vi: u16, _node: u32) -> Result<ProviderData> {
        let known = vi < VIS;
        known.then(|| self.data(vi)).ok_or(Error::NoSuch { what: "VI", index: vi.into() })
    }

    fn connect_vi(&self, vi: u16, node: u32, remote: &Endpoint) -> Result<()> {
        if let Some(error) = lock(&self.refuses).take() {
            return Err(error);
        }
        lock(&self.connected).insert(vi, (node, *remote));
        Ok(())
    }
}

impl ViPort for Port {
    fn attributes(&self) -> &PortAttributes {
        &self.attributes
    }
    fn close(&self) {
        cancel_all(self);
    }
}

impl WaitOps for Port {
    fn now_ns(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

impl ViOps for Port {
    fn create_vi(&self, _: ViSettings) -> Result<u16> {
        unreachable!()
    }
    fn set_vi(&self, _: u16, _: ViSettings) -> Result<()> {
        unreachable!()
    }
    fn destroy_vi(&self, _: u16) -> Result<()> {
        unreachable!()
    }
    fn reset_vi(&self, vi: u16) -> Result<()> {
        lock(&self.connected).remove(&vi);
        lock(&self.reset).push(vi);
        Ok(())
    }
    fn vi_stopped(&self, _: u16) -> Result<bool> {
        unreachable!()
    }
    fn doorbell(&self, _: u16, _: Queue) -> Doorbell {
        unreachable!()
    }
    fn next_event(&self) -> Option<PortEvent> {
        unreachable!()
    }
}

impl MemoryOps for Port {
    fn create_tag(&self) -> Result<u16> {
        unreachable!()
    }
    fn destroy_tag(&self, _: u16) {}
    fn register(&self, _: &DmaMemory, _: u16, _: RdmaAccess) -> Result<Handle> {
        unreachable!()
    }
    fn deregister(&self, _: Handle) -> Result<()> {
        unreachable!()
    }
    fn set_region(&self, _: Handle, _: &DmaMemory, _: u16, _: RdmaAccess) -> Result<()> {
        unreachable!()
    }
}

impl CompletionOps for Port {}

impl HostOps for Port {}

fn attributes(vi: u16) -> RemoteAttributes {
    RemoteAttributes {
        vi,
        connection: 0,
        reliability: Reliability::Delivery,
        rdma_write: false,
        rdma_read: false,
        max_transfer: 4096,
        qos: 0,
    }
}

/// VI 3 of the client asks VI 5 of the server: the request at both.
fn request_arrives(client: &Port, server: &Port) -> (u32, Incoming) {
    let service = server.address(b"x");
    let listener = server.listen(&service).unwrap();
    let request = client.connect(attributes(3), &client.address(b""), &service, BOUND_NS).unwrap();
    assert_eq!(client.connect_poll(request).unwrap(), Progress::Pending);
    (request, server.listen_poll(listener).unwrap().expect("the request"))
}

#[test]
fn both_ports_connect_with_the_data_of_the_other() {
    let [client, server] = &Port::pair();
    let (request, incoming) = request_arrives(client, server);
    server.accept(&incoming, attributes(5)).unwrap();
    assert_eq!(server.connected_to(5), Some(client.data(3)));
    assert_eq!(client.connect_poll(request).unwrap(), Progress::Pending);
    assert_eq!(client.connected_to(3), Some(server.data(5)));
    assert_eq!(server.accept_poll(&incoming), Progress::Established(incoming.attributes));
    let end = client.connect_poll(request).unwrap();
    assert!(matches!(end, Progress::Established(remote) if remote.vi == 5), "{end:?}");
    // Reported once.
    assert_eq!(client.connect_poll(request).unwrap(), Progress::Cancelled);
}

#[test]
fn peers_connect_whoever_asks_first() {
    for first in [0, 1] {
        let ports = &Port::pair();
        let names = [0, 1].map(|side| ports[side].address(b"peer"));
        let mut requests = [0; 2];
        for side in [first, 1 - first] {
            let (from, remote) = (&names[side], &names[1 - side]);
            requests[side] =
                peer_connect(&ports[side], attributes(2), from, remote, BOUND_NS).unwrap();
        }
        let mut ends = [Progress::Pending; 2];
        for _ in 0..8 {
            for side in [0, 1] {
                if ends[side] == Progress::Pending {
                    ends[side] = peer_poll(&ports[side], requests[side]).unwrap();
                }
            }
        }
        for side in [0, 1] {
            assert!(matches!(ends[side], Progress::Established(_)), "{:?}", ends[side]);
            assert_eq!(ports[side].connected_to(2), Some(ports[1 - side].data(2)));
        }
    }
}

#[test]
fn a_peer_that_nobody_answers_is_given_up() {
    let [low, high] = &Port::pair();
    let names = [low, high].map(|port| port.address(b"peer"));
    for (port, from, remote) in [(low, &names[0], &names[1]), (high, &names[1], &names[0])] {
        let request = peer_connect(port, attributes(2), from, remote, BOUND_NS).unwrap();
        assert_eq!(peer_poll(port, request).unwrap(), Progress::Pending);
        port.pass(BOUND_NS);
        assert_eq!(peer_poll(port, request).unwrap(), Progress::Cancelled);
        let own = peer_connect(port, attributes(2), from, from, BOUND_NS);
        assert!(matches!(own, Err(Error::BadArgument { .. })));
        low.run();
        high.run();
    }
}

#[test]
fn a_vi_that_the_port_does_not_connect_ends_the_request_on_both_sides() {
    let [client, server] = &Port::pair();
    for (error, cancelled) in [
        (Error::PeerDown(Arc::new(core::fmt::Error)), true),
        (Error::device(core::fmt::Error), false),
    ] {
        let (request, incoming) = request_arrives(client, server);
        server.accept(&incoming, attributes(5)).unwrap();
        *lock(&client.refuses) = Some(error);
        match client.connect_poll(request) {
            Ok(progress) => assert!(cancelled && progress == Progress::Cancelled),
            Err(error) => assert!(!cancelled && matches!(error, Error::Device(_))),
        }
        assert_eq!(server.accept_poll(&incoming), Progress::Cancelled);

        let (request, incoming) = request_arrives(client, server);
        *lock(&server.refuses) = Some(Error::device(core::fmt::Error));
        assert!(matches!(server.accept(&incoming, attributes(5)), Err(Error::Device(_))));
        server.reject(&incoming);
        assert_eq!(client.connect_poll(request).unwrap(), Progress::Rejected);
    }
}

#[test]
fn an_acceptance_that_comes_too_late_leaves_no_vi_connected() {
    let [client, server] = &Port::pair();
    let (request, incoming) = request_arrives(client, server);
    client.connect_cancel(request);
    let accepted = server.accept(&incoming, attributes(5));
    assert!(matches!(accepted, Err(Error::NoSuch { what: "connection request", .. })));
    assert_eq!((server.connected_to(5), &lock(&server.reset)[..]), (None, &[5][..]));
    // The manager has forgotten it: there are no data to connect a VI with.
    server.pass(10 * BOUND_NS);
    server.run();
    let accepted = server.accept(&incoming, attributes(6));
    assert!(matches!(accepted, Err(Error::NoSuch { what: "connection request", .. })));
    assert_eq!((server.connected_to(6), &lock(&server.reset)[..]), (None, &[5][..]));
}

#[test]
fn a_confirmation_that_comes_too_late_resets_the_vi() {
    let [client, server] = &Port::pair();
    let (request, incoming) = request_arrives(client, server);
    server.accept(&incoming, attributes(5)).unwrap();
    client.run();
    // The acceptor takes its answer back while the client's VI gets connected.
    server.reject(&incoming);
    client.arrives_later.store(true, Ordering::Relaxed);
    assert_eq!(client.connect_poll(request).unwrap(), Progress::Cancelled);
    assert_eq!(lock(&client.reset)[..], [3]);
    assert_eq!(client.connected_to(3), None);
}

#[test]
fn a_request_ends_when_its_time_is_over_or_its_device_absent() {
    let [client, server] = &Port::pair();
    let (request, incoming) = request_arrives(client, server);
    client.pass(BOUND_NS);
    assert_eq!(client.connect_poll(request).unwrap(), Progress::Cancelled);
    assert_eq!(server.accept_poll(&incoming), Progress::Cancelled);

    let (request, _) = request_arrives(client, server);
    client.absent.store(true, Ordering::Relaxed);
    assert!(client.connect_poll(request).is_err());
    assert_eq!(client.connect_poll(request).unwrap(), Progress::Cancelled);
}

#[test]
fn a_request_of_another_ports_vi_or_to_nowhere_is_refused() {
    let [client, server] = &Port::pair();
    let (from, service) = (client.address(b""), server.address(b"x"));
    let foreign = client.connect(attributes(VIS), &from, &service, BOUND_NS);
    assert!(matches!(foreign, Err(Error::NoSuch { what: "VI", .. })));
    let nowhere = NetAddress::new(b"nowhere", b"x");
    let nowhere = client.connect(attributes(3), &from, &nowhere, BOUND_NS);
    assert!(matches!(nowhere, Err(Error::NotReachable(_))));
    assert!(lock(&client.requests.open).is_empty());
}

#[test]
fn a_port_that_closes_gives_its_requests_up() {
    let [client, server] = &Port::pair();
    let (_, incoming) = request_arrives(client, server);
    let names = [client, server].map(|port| port.address(b"peer"));
    peer_connect(client, attributes(4), &names[0], &names[1], BOUND_NS).unwrap();
    client.close();
    assert_eq!(server.accept_poll(&incoming), Progress::Cancelled);
    assert!(lock(&client.requests.open).is_empty() && client.requests.peers.all().is_empty());
}
