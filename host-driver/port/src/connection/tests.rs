//! Two managers and a lossy pipe between them.

mod peer;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use nic_regs::vi::Reliability;

use super::acceptor::{ACCEPT_NS, OFFER_NS};
use super::*;
use crate::address::NetAddress;
use crate::attributes::{Progress, RemoteAttributes};
use crate::error::Error;

/// Random numbers from a seed.
pub(super) struct Random(u64, u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed, 0)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.1 += 1;
        BuildHasherDefault::<DefaultHasher>::default().hash_one((self.0, self.1))
    }

    /// A number below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}

/// The address of a service on a node.
fn address(node: u8, discriminator: &[u8]) -> NetAddress {
    NetAddress::new(&[node], discriminator)
}

/// A VI whose provider sends data.
fn endpoint(vi: u16) -> Endpoint {
    let data = ProviderData::new(&vi.to_le_bytes()).unwrap();
    Endpoint { attributes: attributes(vi), data }
}

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

/// The numbers that the sides have for each other: any will do.
const NODES: [u32; 2] = [0, u32::MAX];

struct Pair {
    sides: [Connections; 2],
    now: u64,
    random: Random,
    /// Percent of frames lost.
    loss: usize,
}

impl Pair {
    fn new(loss: usize) -> Self {
        let sides = [Connections::new(100, 7), Connections::new(200, 8)];
        Self { sides, now: 0, random: Random::new(9), loss }
    }

    fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        while self.now < end {
            self.now += 10_000;
            for from in 0..2 {
                self.sides[from].on_timer(self.now);
                while let Some((to, frame)) = self.sides[from].transmit() {
                    assert_eq!(to, NODES[1 - from]);
                    self.sides[from].transmitted(true);
                    if self.random.below(100) >= self.loss {
                        self.sides[1 - from].receive(self.now, NODES[from], &frame);
                    }
                }
            }
        }
    }

    fn connect(&mut self, service: &[u8]) -> u32 {
        let from = address(0, b"");
        let remote = address(1, service);
        self.sides[0].connect(self.now, NODES[1], endpoint(3), &from, &remote, false).0
    }

    /// A request of node 0 that a program on node 1 was offered: its number, and its key there.
    fn offered(&mut self) -> (u32, (u32, u32)) {
        let listener = self.sides[1].listen(self.now, &address(1, b"x"));
        let exchange = self.connect(b"x");
        self.run(50_000);
        (exchange, exchange_of(&self.sides[1].listen_poll(self.now, listener).unwrap()))
    }

    /// The same, accepted, and the requester has learned of it.
    fn accepted(&mut self) -> (u32, (u32, u32)) {
        let (exchange, key) = self.offered();
        self.sides[1].accept(self.now, key, endpoint(5)).unwrap();
        self.run(50_000);
        assert!(matches!(
            self.sides[0].connect_state(exchange).unwrap(),
            ConnectState::Accepted { .. }
        ));
        (exchange, key)
    }
}

#[test]
fn both_sides_agree_even_with_loss() {
    for loss in [0, 10, 50] {
        let mut pair = Pair::new(loss);
        let listener = pair.sides[1].listen(0, &address(1, &[7; 64]));
        let exchange = pair.connect(&[7; 64]);
        let incoming = (0..200).find_map(|_| {
            pair.run(500_000);
            pair.sides[1].listen_poll(pair.now, listener)
        });
        let incoming = incoming.expect("the request arrives");
        assert_eq!(incoming.attributes.vi, 3);
        let requester = pair.sides[1].requester(exchange_of(&incoming)).unwrap();
        assert_eq!(requester, Endpoint { attributes: incoming.attributes, ..endpoint(3) });
        pair.sides[1].accept(pair.now, exchange_of(&incoming), endpoint(5)).unwrap();
        let mut established = false;
        for _ in 0..100 {
            pair.run(500_000);
            match pair.sides[0].connect_state(exchange).unwrap() {
                ConnectState::Accepted { node, remote } => {
                    assert_eq!(node, NODES[1]);
                    assert_eq!((remote.attributes.vi, remote.data), (5, endpoint(5).data));
                    assert_eq!(remote.attributes.connection, incoming.attributes.connection);
                    assert!(pair.sides[0].confirm(pair.now, exchange));
                }
                ConnectState::Ended(Progress::Established(_)) => {
                    established = true;
                    break;
                }
                ConnectState::Pending => {}
                ConnectState::Ended(other) => panic!("{other:?}"),
            }
        }
        assert!(established);
        let state = pair.sides[1].accept_state(exchange_of(&incoming));
        assert!(matches!(state, Progress::Established(_)), "loss {loss}: {state:?}");
        pair.run(200_000_000);
        assert!(pair.sides.iter().all(|side| side.outgoing.is_empty() && side.incoming.is_empty()));
    }
}

/// The acceptor has given up before the requester's VI is connected: neither believes in it.
#[test]
fn a_late_confirmation_fails() {
    for late in [ACCEPT_NS + 1_000_000, ACCEPT_NS + 3 * LINGER_NS] {
        for arrives in [false, true] {
            let mut pair = Pair::new(0);
            let (exchange, key) = pair.accepted();
            // The requester's program stands still, and does not hear what the acceptor says.
            pair.loss = if arrives { 0 } else { 100 };
            pair.run(late);
            assert_eq!(pair.sides[1].accept_state(key), Progress::Cancelled);
            pair.loss = 0;
            assert_eq!(pair.sides[0].confirm(pair.now, exchange), !arrives);
            if !arrives {
                pair.run(1_000_000);
                let state = pair.sides[0].connect_state(exchange).unwrap();
                assert_eq!(state, ConnectState::Ended(Progress::Cancelled));
            }
            pair.run(3 * LINGER_NS);
            assert!(pair.sides[1].incoming.is_empty() && pair.sides[0].outgoing.is_empty());
        }
    }
}

/// An acceptor whose program stands still learns of its connection whenever it asks.
#[test]
fn a_late_question_finds_the_connection() {
    let mut pair = Pair::new(0);
    let (exchange, key) = pair.accepted();
    assert!(pair.sides[0].confirm(pair.now, exchange));
    pair.run(3 * LINGER_NS);
    let state = pair.sides[0].connect_state(exchange).unwrap();
    assert!(matches!(state, ConnectState::Ended(Progress::Established(_))), "{state:?}");
    assert!(matches!(pair.sides[1].accept_state(key), Progress::Established(_)));
    pair.run(10_000);
    assert!(pair.sides[1].incoming.is_empty());
}

/// A server may think for as long as its client waits, and the client is offered only once.
#[test]
fn an_offered_request_stands_while_it_is_repeated() {
    let mut pair = Pair::new(0);
    let (exchange, key) = pair.offered();
    let other = pair.sides[1].listen(pair.now, &address(1, b"x"));
    // Repeats come; the clock goes by leaps, so that this takes no time.
    for _ in 0..4 {
        pair.now += OFFER_NS / 2;
        pair.run(20_000_000);
    }
    assert_eq!(pair.sides[1].listen_poll(pair.now, other), None);
    assert_eq!(pair.sides[0].connect_state(exchange).unwrap(), ConnectState::Pending);
    assert!(pair.sides[1].accept(pair.now, key, endpoint(5)).is_ok());
    // One that is not repeated is given up.
    pair.connect(b"x");
    pair.run(50_000);
    let key = exchange_of(&pair.sides[1].listen_poll(pair.now, other).unwrap());
    pair.loss = 100;
    pair.now += OFFER_NS;
    pair.run(20_000_000);
    assert!(pair.sides[1].accept(pair.now, key, endpoint(5)).is_err());
}

#[test]
fn nobody_waits_then_no_match_promptly() {
    let mut pair = Pair::new(0);
    let exchange = pair.connect(b"nobody");
    pair.run(GRACE_NS + 50_000);
    let state = pair.sides[0].connect_state(exchange).unwrap();
    assert_eq!(state, ConnectState::Ended(Progress::NoMatch));
}

#[test]
fn a_request_waits_a_little_for_its_listener() {
    let mut pair = Pair::new(0);
    pair.connect(b"x");
    pair.run(GRACE_NS / 2);
    let listener = pair.sides[1].listen(pair.now, &address(1, b"x"));
    assert!(pair.sides[1].listen_poll(pair.now, listener).is_some());
}

#[test]
fn reject_cancel_and_peer_down() {
    let mut pair = Pair::new(0);
    let (exchange, key) = pair.offered();
    pair.sides[1].reject(pair.now, key);
    pair.run(50_000);
    // A node that has answered may end.
    pair.sides[0].unreachable(NODES[1], &Error::NotReachable(Arc::new(std::fmt::Error)));
    let state = pair.sides[0].connect_state(exchange).unwrap();
    assert_eq!(state, ConnectState::Ended(Progress::Rejected));

    let (exchange, key) = pair.offered();
    pair.sides[0].connect_cancel(exchange);
    pair.run(50_000);
    assert!(pair.sides[1].accept(pair.now, key, endpoint(5)).is_err());

    let (exchange, key) = pair.accepted();
    pair.sides[0].peer_down(pair.now, NODES[1]);
    assert!(!pair.sides[0].confirm(pair.now, exchange));
    pair.sides[1].peer_down(pair.now, NODES[0]);
    assert_eq!(pair.sides[1].accept_state(key), Progress::Cancelled);
}

#[test]
fn malformed_frames_are_counted() {
    let mut side = Connections::new(1, 1);
    side.receive(0, 1, &[0; 48]);
    let mut frame = encode(1, &Body::Reject)[0];
    side.receive(0, 1, &frame);
    frame[1] = 200;
    side.receive(0, 1, &frame);
    frame[3] = 9;
    side.receive(0, 1, &frame);
    let counters = side.counters();
    let seen = (counters.bad_version, counters.stray, counters.bad_body, counters.bad_frame);
    assert_eq!(seen, (1, 1, 1, 1));
}

#[test]
fn a_request_to_a_node_without_a_way_fails_once_with_its_reason() {
    let mut pair = Pair::new(0);
    let exchange = pair.connect(b"x");
    let why = Error::NotReachable(Arc::new(std::fmt::Error));
    pair.sides[0].unreachable(NODES[0], &why);
    assert_eq!(pair.sides[0].connect_state(exchange).unwrap(), ConnectState::Pending);
    pair.sides[0].unreachable(NODES[1], &why);
    assert!(matches!(pair.sides[0].connect_state(exchange), Err(Error::NotReachable(_))));
    let state = pair.sides[0].connect_state(exchange).unwrap();
    assert_eq!(state, ConnectState::Ended(Progress::Cancelled));
}
