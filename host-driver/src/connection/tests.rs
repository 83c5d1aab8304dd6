//! Two managers and a lossy pipe between them.

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
        self.sides[0].connect(self.now, 1, attributes(3), &from, &remote).0
    }
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
        pair.sides[1].accept(pair.now, incoming.exchange, attributes(5)).unwrap();
        let mut established = false;
        for _ in 0..100 {
            pair.run(500_000);
            match pair.sides[0].connect_state(exchange) {
                ConnectState::Accepted(node, remote) => {
                    assert_eq!((node, remote.vi), (1, 5));
                    assert_eq!(remote.connection, incoming.attributes.connection);
                    assert!(pair.sides[0].confirm(pair.now, exchange));
                }
                ConnectState::Ended(Progress::Established(_)) => established = true,
                ConnectState::Pending => {}
                ConnectState::Ended(other) => panic!("{other:?}"),
            }
        }
        assert!(established);
        let state = pair.sides[1].accept_state(incoming.exchange);
        assert!(matches!(state, Progress::Established(_)), "loss {loss}: {state:?}");
        pair.run(200_000_000);
        assert!(pair.sides.iter().all(|side| side.outgoing.is_empty() && side.incoming.is_empty()));
    }
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
    let local = NetAddress::of_node(1, b"x");
    let offered = |pair: &mut Pair| {
        let listener = pair.sides[1].listen(pair.now, &local);
        let exchange = pair.connect(b"x");
        pair.run(50_000);
        (exchange, pair.sides[1].listen_poll(pair.now, listener).unwrap().exchange)
    };
    let (exchange, key) = offered(&mut pair);
    pair.sides[1].reject(pair.now, key);
    pair.run(50_000);
    let state = pair.sides[0].connect_state(exchange);
    assert_eq!(state, ConnectState::Ended(Progress::Rejected));

    let (exchange, key) = offered(&mut pair);
    pair.sides[0].connect_cancel(exchange);
    pair.run(50_000);
    assert!(pair.sides[1].accept(pair.now, key, attributes(5)).is_err());

    let (exchange, key) = offered(&mut pair);
    pair.sides[1].accept(pair.now, key, attributes(5)).unwrap();
    pair.run(50_000);
    assert!(matches!(pair.sides[0].connect_state(exchange), ConnectState::Accepted(..)));
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
