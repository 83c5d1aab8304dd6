//! Connections of peers: neither is the server.

use core::sync::atomic::{AtomicU32, Ordering};
use host_driver::address::NodeAddress;
use std::sync::Arc;
use std::time::Duration;

use cosim::simulation::seeded::SeededSimulation;
use nic_model::link::Faults;
use vipl::{NetAddress, Reliability, RemoteViAttributes, Vi, ViAttributes, ViState, VipReturn};

use tests::{Buffer, DeviceKind, LONG, Node, Pair, Setup, code, on_every_kind, pattern};

const SHORT: Duration = Duration::from_millis(1);

/// The address of one side, as both name it.
fn name(node: &Node) -> NetAddress {
    node.address(b"peer")
}

fn ask(vi: &Vi, from: &Node, to: &Node, timeout: Duration) {
    vi.connect_peer_request(&name(from), &name(to), timeout).unwrap();
    assert_eq!(vi.state(), ViState::ConnectPending);
}

/// Polls until both sides have ended.
fn ends(simulation: &SeededSimulation, a: &Vi, b: &Vi) -> [vipl::Result<RemoteViAttributes>; 2] {
    let mut ends = [None, None];
    while let [None, _] | [_, None] = ends {
        for (vi, end) in [a, b].into_iter().zip(&mut ends) {
            match vi.connect_peer_done() {
                Err(error) if error.code == VipReturn::NotDone && end.is_none() => {
                    simulation.run(100);
                }
                ended if end.is_none() => *end = Some(ended),
                again => assert_eq!(code(again), VipReturn::InvalidState, "reported once"),
            }
        }
    }
    ends.map(Option::unwrap)
}

/// Both requests come from one thread, so that neither may block; with either side first, and with
/// a pause in which the first request is repeated.
fn requests_meet_in_any_order(kind: DeviceKind) {
    let pair = Pair::new(kind);
    for (a_first, pause) in [(true, 0), (false, 0), (true, 500_000), (false, 500_000)] {
        let (a, b) = (pair.a.vi(Reliability::Delivery), pair.b.vi(Reliability::Delivery));
        let recv = Buffer::new(&pair.b, 100);
        b.post_recv(&recv.descriptor).unwrap();
        let mut sides = [(&a, &pair.a, &pair.b), (&b, &pair.b, &pair.a)];
        if !a_first {
            sides.reverse();
        }
        for (i, (vi, from, to)) in sides.into_iter().enumerate() {
            ask(vi, from, to, LONG);
            if i == 0 {
                assert_eq!(code(vi.connect_peer_done()), VipReturn::NotDone);
                for _ in 0..10 {
                    pair.simulation.run(pause / 10);
                    pair.a.nic.progress();
                    pair.b.nic.progress();
                }
            }
        }
        let results = ends(&pair.simulation, &a, &b).map(Result::unwrap);
        assert_eq!(results.map(|remote| remote.reliability), [Reliability::Delivery; 2]);
        assert_eq!([a.state(), b.state()], [ViState::Connected; 2]);
        let send = Buffer::new(&pair.a, 100);
        send.set(&pattern(100, 1));
        a.post_send(&send.descriptor).unwrap();
        b.recv_wait(LONG).unwrap();
        assert_eq!(recv.data(), pattern(100, 1));
        a.disconnect().unwrap();
        pair.settle();
        b.disconnect().unwrap();
    }
}

/// Two programs wait at the same time, on a wire that loses frames: requests cross each other and
/// their repeats.
fn waiting_programs_meet_on_a_bad_wire(kind: DeviceKind) {
    for seed in 0..kind.size(4, 2) {
        let faults = Faults { loss: 0.05, ..Faults::default() };
        let pair = Pair::with(&Setup::with_faults(kind, seed, faults));
        let slots = [pair.simulation.slot("left"), pair.simulation.slot("right")];
        let sides = [(&pair.a, &pair.b), (&pair.b, &pair.a)];
        let vis = std::thread::scope(|scope| {
            let threads = [0, 1].into_iter().zip(slots).map(|(i, slot)| {
                let pair = &pair;
                let (from, to) = sides[i];
                scope.spawn(move || {
                    let _token = slot.enter();
                    (0..5_u8)
                        .map(|n| {
                            let vi = from.vi(Reliability::Reception);
                            let [local, remote] = [from, to].map(|node| node.address(&[n]));
                            vi.connect_peer_request(&local, &remote, LONG).unwrap();
                            vi.connect_peer_wait().unwrap();
                            assert_eq!(vi.state(), ViState::Connected, "{:?}", pair.simulation);
                            vi
                        })
                        .collect::<Vec<_>>()
                })
            });
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        for (a, b) in vis[0].iter().zip(&vis[1]) {
            pair.assert_works(a, b);
        }
    }
}

fn peers_that_are_not_alike_fail_on_both_sides(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let a = pair.a.vi(Reliability::Delivery);
    let good = ViAttributes::new(Reliability::Delivery, pair.b.tag);
    let b = pair.b.nic.create_vi(good, None, None).unwrap();
    let cases = [
        (
            ViAttributes { reliability: Reliability::Reception, ..good },
            VipReturn::InvalidReliabilityLevel,
        ),
        (ViAttributes { max_transfer_size: 4096, ..good }, VipReturn::InvalidMtu),
        (ViAttributes { qos: 7, ..good }, VipReturn::InvalidQos),
    ];
    for (attributes, expected) in cases {
        b.set_attributes(attributes).unwrap();
        ask(&a, &pair.a, &pair.b, LONG);
        ask(&b, &pair.b, &pair.a, LONG);
        assert_eq!(ends(&pair.simulation, &a, &b).map(code), [expected; 2]);
        assert_eq!([a.state(), b.state()], [ViState::Idle; 2]);
    }
    b.set_attributes(good).unwrap();
    ask(&a, &pair.a, &pair.b, LONG);
    ask(&b, &pair.b, &pair.a, LONG);
    let _connected = ends(&pair.simulation, &a, &b).map(Result::unwrap);
    pair.assert_works(&a, &b);
}

/// The other side has disconnected before this one knows that it is connected: the handler that gets
/// the error may call whatever it likes.
fn a_handler_disconnects_a_peer_at_once(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let [a, b] = [&pair.a, &pair.b].map(|node| node.vi(Reliability::Delivery));
    let called = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&called);
    pair.a.nic.error_callback(Some(Arc::new(move |error| {
        count.fetch_add(1, Ordering::Relaxed);
        error.vi.as_ref().unwrap().disconnect().unwrap();
    })));
    ask(&a, &pair.a, &pair.b, LONG);
    ask(&b, &pair.b, &pair.a, LONG);
    while let Err(error) = b.connect_peer_done() {
        assert_eq!(error.code, VipReturn::NotDone);
        pair.a.nic.progress();
        pair.simulation.run(500);
    }
    assert_eq!(a.state(), ViState::ConnectPending, "it does not know yet");
    b.disconnect().unwrap();
    pair.settle();
    assert_eq!(called.load(Ordering::Relaxed), 1);
    assert_eq!(a.query().state, ViState::Idle);
}

fn a_peer_that_never_asks(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let vis = [pair.a.vi(Reliability::Delivery), pair.b.vi(Reliability::Delivery)];
    let sides = [(&pair.a, &pair.b), (&pair.b, &pair.a)];
    for (vi, (from, to)) in vis.iter().zip(sides) {
        // A server or another peer there is no match.
        let remote = to.address(b"other");
        let start = pair.a.nic.port().now_ns();
        vi.connect_peer_request(&name(from), &remote, SHORT).unwrap();
        assert_eq!(code(vi.connect_peer_wait()), VipReturn::Timeout);
        let took = pair.a.nic.port().now_ns() - start;
        assert!((1_000_000..2_000_000).contains(&took), "{took} ns");
        assert_eq!(vi.state(), ViState::Idle);
        assert_eq!(code(vi.connect_peer_done()), VipReturn::InvalidState);
    }
    // A request that was given up is not met; the next one is, by the side that still waits.
    let [a, b] = &vis;
    for (first, other, (from, to)) in [(a, b, sides[0]), (b, a, sides[1])] {
        ask(first, from, to, LONG);
        assert_eq!(
            code(first.connect_peer_request(&name(from), &name(to), LONG)),
            VipReturn::InvalidState
        );
        first.disconnect().unwrap();
        assert_eq!(first.state(), ViState::Idle);
        assert_eq!(code(first.connect_peer_wait()), VipReturn::InvalidState);
        ask(other, to, from, LONG);
        pair.simulation.run(50_000);
        assert_eq!(code(other.connect_peer_done()), VipReturn::NotDone);
        ask(first, from, to, LONG);
        let _connected = ends(&pair.simulation, a, b).map(Result::unwrap);
        pair.assert_works(a, b);
        for vi in [a, b] {
            vi.disconnect().unwrap();
            pair.settle();
        }
    }
}

fn addresses_that_peers_cannot_have(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let vi = pair.a.vi(Reliability::Delivery);
    let (own, other) = (name(&pair.a), name(&pair.b));
    let refused = |local: &NetAddress, remote: &NetAddress, timeout| {
        code(vi.connect_peer_request(local, remote, timeout))
    };
    assert_eq!(refused(&own, &other, Duration::ZERO), VipReturn::InvalidParameter);
    assert_eq!(refused(&own, &own, LONG), VipReturn::InvalidParameter);
    assert_eq!(refused(&other, &other, LONG), VipReturn::InvalidParameter);
    let long = NetAddress::of_node(1, &[0; 65]);
    assert_eq!(refused(&own, &long, LONG), VipReturn::InvalidParameter);
    let foreign = NetAddress::new(&[10, 0, 0, 1], b"x");
    assert_eq!(refused(&own, &foreign, LONG), VipReturn::NotReachable);
    assert_eq!(vi.state(), ViState::Idle);
    // A node that does not exist; a VI that is dropped while it asks.
    let nowhere = NetAddress::of_node(9, b"peer");
    vi.connect_peer_request(&own, &nowhere, SHORT).unwrap();
    assert_eq!(code(vi.connect_peer_wait()), VipReturn::Timeout);
    let dropped = pair.a.vi(Reliability::Delivery);
    dropped.connect_peer_request(&own, &other, LONG).unwrap();
    drop(dropped);
    // Without a host part it is this one.
    let b = pair.b.vi(Reliability::Delivery);
    vi.connect_peer_request(&NetAddress::new(b"", b"peer"), &other, LONG).unwrap();
    ask(&b, &pair.b, &pair.a, LONG);
    let _connected = ends(&pair.simulation, &vi, &b).map(Result::unwrap);
    pair.assert_works(&vi, &b);
}

on_every_kind! {
    requests_meet_in_any_order,
    waiting_programs_meet_on_a_bad_wire,
    peers_that_are_not_alike_fail_on_both_sides,
    a_handler_disconnects_a_peer_at_once,
    a_peer_that_never_asks,
    addresses_that_peers_cannot_have,
}
