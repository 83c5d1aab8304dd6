//! Peers that name each other.

use super::super::acceptor::PEER_LIMIT;
use super::super::peers::HELD_NS;
use super::*;

impl Pair {
    /// Node 0 asks for its peer on node 1.
    fn connect_peer(&mut self) -> u32 {
        let [low, high] = peers();
        self.sides[0].connect(self.now, NODES[1], endpoint(3), &low, &high, true).0
    }

    /// Runs both peers' programs until both are connected, or for 100 ms.
    fn finish_peers(&mut self, exchange: u32, listener: u32) -> bool {
        let (mut key, mut established) = (None, false);
        for _ in 0..200 {
            self.run(500_000);
            match self.sides[0].connect_state(exchange).unwrap() {
                ConnectState::Accepted { remote, .. } => {
                    assert_eq!((remote.attributes.vi, remote.data), (5, endpoint(5).data));
                    assert!(self.sides[0].confirm(self.now, exchange));
                }
                ConnectState::Ended(Progress::Established(_)) => established = true,
                _ => {}
            }
            if key.is_none()
                && let Some(incoming) = self.sides[1].listen_poll(self.now, listener)
            {
                key = Some(exchange_of(&incoming));
                self.sides[1].accept(self.now, exchange_of(&incoming), endpoint(5)).unwrap();
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
    [address(0, b"left"), address(1, b"right")]
}

#[test]
fn one_of_two_peers_requests() {
    let [low, high] = peers();
    assert!(is_requester(&low, &high) && !is_requester(&high, &low));
    let [short, long] = [&b"a"[..], b"ab"].map(|name| address(1, name));
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
            assert_eq!(pair.sides[0].connect_state(exchange).unwrap(), ConnectState::Pending);
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
    let other = address(0, b"other");
    let peer = pair.sides[1].listen_peer(0, &high, &other);
    let server = pair.sides[1].listen(0, &high);
    let exchange = pair.connect_peer();
    pair.run(100_000_000);
    let polled = [peer, server].map(|listener| pair.sides[1].listen_poll(pair.now, listener));
    assert_eq!(polled, [None, None]);
    assert_eq!(pair.sides[0].connect_state(exchange).unwrap(), ConnectState::Pending);
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
    pair.run(HELD_NS + 50_000);
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
        if let ConnectState::Ended(end) = pair.sides[0].connect_state(exchange).unwrap() {
            assert!(matches!(end, Progress::Mismatch(remote) if remote.vi == 5));
            established = true;
            break;
        }
    }
    assert!(established);
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
        pair.sides[0].connect(now, NODES[1], endpoint(3), &from, &high, true);
        pair.run(10_000);
    }
    let listener = pair.sides[1].listen(pair.now, &address(1, b"x"));
    pair.connect(b"x");
    pair.run(100_000);
    assert!(pair.sides[1].listen_poll(pair.now, listener).is_some());
    let held = pair.sides[1].incoming.values().filter(|arrived| arrived.peer).count();
    assert_eq!(held, PEER_LIMIT);
}
