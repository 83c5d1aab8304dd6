//! Two managers and a lossy pipe between them.

use crate::address::NodeAddress;
use nic_regs::vi::Reliability;

use super::*;

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

struct Pair {
    sides: [Connections; 2],
    now: u64,
    random: Epochs,
    /// Percent of frames lost.
    loss: u32,
}

impl Pair {
    fn new(loss: u32) -> Self {
        let sides = [Connections::new(1), Connections::new(2)];
        Self { sides, now: 0, random: Epochs::new(9), loss }
    }

    fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        while self.now < end {
            self.now += 10_000;
            for from in 0..2 {
                self.sides[from].on_timer(self.now);
                while let Some((to, frame)) = self.sides[from].transmit() {
                    assert_eq!(usize::from(to), 1 - from);
                    self.sides[from].transmitted(true);
                    if self.random.next_u32() % 100 >= self.loss {
                        let node = u8::try_from(from).unwrap();
                        self.sides[1 - from].receive(self.now, node, &frame);
                    }
                }
            }
        }
    }

    fn connect(&mut self, service: &[u8]) -> u32 {
        let from = NetAddress::of_node(0, b"");
        let remote = NetAddress::of_node(1, service);
        self.sides[0].connect(self.now, 1, attributes(3), &from, &remote, false).0
    }

    /// A request of node 0 that a program on node 1 was offered: its number, and its key there.
    fn offered(&mut self) -> (u32, (u8, u32)) {
        let listener = self.sides[1].listen(self.now, &NetAddress::of_node(1, b"x"));
        let exchange = self.connect(b"x");
        self.run(50_000);
        (exchange, exchange_of(&self.sides[1].listen_poll(self.now, listener).unwrap()))
    }

    /// The same, accepted, and the requester has learned of it.
    fn accepted(&mut self) -> (u32, (u8, u32)) {
        let (exchange, key) = self.offered();
        self.sides[1].accept(self.now, key, attributes(5)).unwrap();
        self.run(50_000);
        assert!(matches!(self.sides[0].connect_state(exchange), ConnectState::Accepted(..)));
        (exchange, key)
    }

    /// Node 0 asks for its peer on node 1.
    fn connect_peer(&mut self) -> u32 {
        let [low, high] = peers();
        self.sides[0].connect(self.now, 1, attributes(3), &low, &high, true).0
    }

    /// Runs both peers' programs until both are connected, or for 100 ms.
    fn finish_peers(&mut self, exchange: u32, listener: u32) -> bool {
        let (mut key, mut established) = (None, false);
        for _ in 0..200 {
            self.run(500_000);
            match self.sides[0].connect_state(exchange) {
                ConnectState::Accepted(_, remote) => {
                    assert_eq!(remote.vi, 5);
                    assert!(self.sides[0].confirm(self.now, exchange));
                }
                ConnectState::Ended(Progress::Established(_)) => established = true,
                _ => {}
            }
            if key.is_none()
                && let Some(incoming) = self.sides[1].listen_poll(self.now, listener)
            {
                key = Some(exchange_of(&incoming));
                self.sides[1].accept(self.now, exchange_of(&incoming), attributes(5)).unwrap();
            }
            let state = key.map(|key| self.sides[1].accept_state(key));
            if established && matches!(state, Some(Progress::Established(_))) {
                return true;
            }
        }
        false
    }
}

/// Addresses of two peers, the requester's first.
fn peers() -> [NetAddress; 2] {
    [NetAddress::of_node(0, b"left"), NetAddress::of_node(1, b"right")]
}

#[test]
fn one_of_two_peers_requests() {
    let [low, high] = peers();
    assert!(is_requester(&low, &high) && !is_requester(&high, &low));
    let [short, long] = [&b"a"[..], b"ab"].map(|name| NetAddress::of_node(1, name));
    assert!(is_requester(&short, &long) && !is_requester(&long, &short));
    assert!(is_requester(&low, &short));
}

#[test]
fn peers_meet_in_any_order_and_with_loss() {
    let [low, high] = peers();
    for loss in [0, 10, 50] {
        // The second one comes at once, within a repeat or two, or much later.
        for pause in [0, 3_000_000, 60_000_000] {
            let mut pair = Pair::new(loss);
            let exchange = pair.connect_peer();
            pair.run(pause);
            assert_eq!(pair.sides[0].connect_state(exchange), ConnectState::Pending);
            let listener = pair.sides[1].listen_peer(pair.now, &high, &low);
            assert!(pair.finish_peers(exchange, listener), "loss {loss}, pause {pause}");

            let mut pair = Pair::new(loss);
            let listener = pair.sides[1].listen_peer(pair.now, &high, &low);
            pair.run(pause);
            let exchange = pair.connect_peer();
            assert!(pair.finish_peers(exchange, listener), "loss {loss}, pause {pause}");
            pair.run(200_000_000);
            let empty = |side: &Connections| side.outgoing.is_empty() && side.incoming.is_empty();
            assert!(pair.sides.iter().all(empty));
        }
    }
}

#[test]
fn peers_and_clients_do_not_meet() {
    let [low, high] = peers();
    let mut pair = Pair::new(0);
    let other = NetAddress::of_node(0, b"other");
    let peer = pair.sides[1].listen_peer(0, &high, &other);
    let server = pair.sides[1].listen(0, &high);
    let exchange = pair.connect_peer();
    pair.run(100_000_000);
    let polled = [peer, server].map(|listener| pair.sides[1].listen_poll(pair.now, listener));
    assert_eq!(polled, [None, None]);
    assert_eq!(pair.sides[0].connect_state(exchange), ConnectState::Pending);
    // Giving up ends it on both sides.
    pair.sides[0].connect_cancel(exchange);
    pair.run(100_000);
    let right = pair.sides[1].listen_peer(pair.now, &high, &low);
    pair.run(100_000);
    assert_eq!(pair.sides[1].listen_poll(pair.now, right), None);
    // A client finds the server, not the peer.
    pair.connect(b"right");
    pair.run(100_000);
    assert!(pair.sides[1].listen_poll(pair.now, server).is_some());
}

#[test]
fn a_request_of_a_dead_peer_is_forgotten() {
    let mut pair = Pair::new(0);
    pair.connect_peer();
    pair.run(100_000);
    assert_eq!(pair.sides[1].incoming.len(), 1);
    // Its node is silent from now on.
    pair.loss = 100;
    pair.run(peers::HELD_NS + 50_000);
    assert!(pair.sides[1].incoming.is_empty());
}

#[test]
fn both_peers_are_notified_that_they_are_not_alike() {
    let [low, high] = peers();
    let mut pair = Pair::new(30);
    let listener = pair.sides[1].listen_peer(0, &high, &low);
    let exchange = pair.connect_peer();
    let mut established = false;
    for _ in 0..100 {
        pair.run(500_000);
        if let Some(incoming) = pair.sides[1].listen_poll(pair.now, listener) {
            pair.sides[1].mismatch(pair.now, exchange_of(&incoming), attributes(5));
        }
        if let ConnectState::Ended(end) = pair.sides[0].connect_state(exchange) {
            assert!(matches!(end, Progress::Mismatch(remote) if remote.vi == 5));
            established = true;
            break;
        }
    }
    assert!(established);
}

#[test]
fn both_sides_agree_even_with_loss() {
    for loss in [0, 10, 50] {
        let mut pair = Pair::new(loss);
        let listener = pair.sides[1].listen(0, &NetAddress::of_node(1, &[7; 64]));
        let exchange = pair.connect(&[7; 64]);
        let incoming = (0..200).find_map(|_| {
            pair.run(500_000);
            pair.sides[1].listen_poll(pair.now, listener)
        });
        let incoming = incoming.expect("the request arrives");
        assert_eq!(incoming.attributes.vi, 3);
        pair.sides[1].accept(pair.now, exchange_of(&incoming), attributes(5)).unwrap();
        let mut established = false;
        for _ in 0..100 {
            pair.run(500_000);
            match pair.sides[0].connect_state(exchange) {
                ConnectState::Accepted(node, remote) => {
                    assert_eq!((node, remote.vi), (1, 5));
                    assert_eq!(remote.connection, incoming.attributes.connection);
                    assert!(pair.sides[0].confirm(pair.now, exchange));
                }
                ConnectState::Ended(Progress::Established(_)) => {
                    established = true;
                    break;
                }
                ConnectState::Pending => {}
                ConnectState::Ended(other) => panic!("{other:?}"),
                ConnectState::Unreachable(node) => panic!("node {node} is there"),
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
                let state = pair.sides[0].connect_state(exchange);
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
    let state = pair.sides[0].connect_state(exchange);
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
    let other = pair.sides[1].listen(pair.now, &NetAddress::of_node(1, b"x"));
    // Repeats come; the clock goes by leaps, so that this takes no time.
    for _ in 0..4 {
        pair.now += OFFER_NS / 2;
        pair.run(20_000_000);
    }
    assert_eq!(pair.sides[1].listen_poll(pair.now, other), None);
    assert_eq!(pair.sides[0].connect_state(exchange), ConnectState::Pending);
    assert!(pair.sides[1].accept(pair.now, key, attributes(5)).is_ok());
    // One that is not repeated is given up.
    pair.connect(b"x");
    pair.run(50_000);
    let key = exchange_of(&pair.sides[1].listen_poll(pair.now, other).unwrap());
    pair.loss = 100;
    pair.now += OFFER_NS;
    pair.run(20_000_000);
    assert!(pair.sides[1].accept(pair.now, key, attributes(5)).is_err());
}

/// Peers that wait for their partners do not keep clients out.
#[test]
fn peers_that_wait_do_not_keep_clients_out() {
    let mut pair = Pair::new(0);
    let [low, high] = peers();
    let now = pair.now;
    for number in 0..u32::try_from(PEER_LIMIT).unwrap() + 8 {
        let discriminator = number.to_le_bytes();
        let from = NetAddress { discriminator: discriminator.to_vec(), ..low.clone() };
        pair.sides[0].connect(now, 1, attributes(3), &from, &high, true);
        pair.run(10_000);
    }
    let listener = pair.sides[1].listen(pair.now, &NetAddress::of_node(1, b"x"));
    pair.connect(b"x");
    pair.run(100_000);
    assert!(pair.sides[1].listen_poll(pair.now, listener).is_some());
    let held = pair.sides[1].incoming.values().filter(|arrived| arrived.peer).count();
    assert_eq!(held, PEER_LIMIT);
}

#[test]
fn nobody_waits_then_no_match_promptly() {
    let mut pair = Pair::new(0);
    let exchange = pair.connect(b"nobody");
    pair.run(GRACE_NS + 50_000);
    let state = pair.sides[0].connect_state(exchange);
    assert_eq!(state, ConnectState::Ended(Progress::NoMatch));
}

#[test]
fn a_request_waits_a_little_for_its_listener() {
    let mut pair = Pair::new(0);
    pair.connect(b"x");
    pair.run(GRACE_NS / 2);
    let listener = pair.sides[1].listen(pair.now, &NetAddress::of_node(1, b"x"));
    assert!(pair.sides[1].listen_poll(pair.now, listener).is_some());
}

#[test]
fn reject_cancel_and_peer_down() {
    let mut pair = Pair::new(0);
    let (exchange, key) = pair.offered();
    pair.sides[1].reject(pair.now, key);
    pair.run(50_000);
    let state = pair.sides[0].connect_state(exchange);
    assert_eq!(state, ConnectState::Ended(Progress::Rejected));

    let (exchange, key) = pair.offered();
    pair.sides[0].connect_cancel(exchange);
    pair.run(50_000);
    assert!(pair.sides[1].accept(pair.now, key, attributes(5)).is_err());

    let (exchange, key) = pair.accepted();
    pair.sides[0].peer_down(pair.now, 1);
    assert!(!pair.sides[0].confirm(pair.now, exchange));
    pair.sides[1].peer_down(pair.now, 0);
    assert_eq!(pair.sides[1].accept_state(key), Progress::Cancelled);
}

#[test]
fn malformed_frames_are_counted() {
    let mut side = Connections::new(1);
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
