//! Links that lose, damage and repeat frames; nodes that are gone.

use nic_model::link::{Faults, Side};
use nic_regs::csr;
use nic_regs::desc::status::{DESC_FLUSHED_ERROR, TRANSPORT_ERROR};
use vipl::{ErrorCode, Reliability, ViState, VipReturn};

use tests::{Buffer, DeviceKind, LEVELS, LONG, Pair, Setup, error_bits, on_every_kind, pattern};

fn reliable_messages_survive_a_bad_link(kind: DeviceKind) {
    for (seed, faults) in [
        Faults { loss: 0.05, ..Faults::default() },
        Faults { corrupt: 0.05, ..Faults::default() },
        Faults { duplicate: 0.1, ..Faults::default() },
        Faults { cut: 0.05, ..Faults::default() },
        Faults { loss: 0.02, corrupt: 0.02, duplicate: 0.02, cut: 0.02, ..Faults::default() },
    ]
    .into_iter()
    .enumerate()
    {
        let seed = seed as u64 + 7;
        let pair = Pair::with(&Setup::with_faults(kind, seed, faults));
        for level in [Reliability::Delivery, Reliability::Reception] {
            let (a, b) = pair.connected(level);
            for round in 0..15 {
                let data = pattern(round * 1500, round);
                let (send, recv) =
                    (Buffer::new(&pair.a, data.len()), Buffer::new(&pair.b, data.len()));
                send.set(&data);
                b.post_recv(&recv.descriptor).unwrap();
                a.post_send(&send.descriptor).unwrap();
                b.recv_wait(LONG).unwrap();
                assert!(recv.data() == data, "seed {seed}, {level:?}, round {round}");
                a.send_wait(LONG).unwrap();
            }
        }
        let counts = pair.wire.lock().unwrap().fault_counts(Side::A);
        assert!(counts.lost + counts.corrupted + counts.duplicated + counts.cut > 0);
    }
}

fn unreliable_messages_are_lost_whole_or_arrive_whole(kind: DeviceKind) {
    let faults = Faults { loss: 0.1, ..Faults::default() };
    let pair = Pair::with(&Setup::with_faults(kind, 3, faults));
    let (a, b) = pair.connected(Reliability::Unreliable);
    let recvs: Vec<_> = (0..60).map(|_| Buffer::new(&pair.b, 6000)).collect();
    recvs.iter().for_each(|recv| b.post_recv(&recv.descriptor).unwrap());
    for i in 0..60 {
        let send = Buffer::new(&pair.a, 6000);
        send.set(&pattern(6000, i));
        a.post_send(&send.descriptor).unwrap();
        a.send_wait(LONG).unwrap();
        pair.settle();
    }
    let mut next = 0;
    let mut arrived = 0;
    for recv in &recvs {
        if b.recv_done().is_err() {
            break;
        }
        arrived += 1;
        let found = (next..60).find(|i| recv.data() == pattern(6000, *i));
        next = found.expect("a whole message, in order") + 1;
    }
    assert!((20..60).contains(&arrived), "{arrived} arrived");
    assert_eq!((a.state(), b.query().state), (ViState::Connected, ViState::Connected));
}

/// Nodes that miss a silent peer soon.
fn soon_missed(kind: DeviceKind) -> Setup {
    Setup { registers: vec![(csr::KEEPALIVE::OFFSET, 20_000)], ..Setup::new(kind) }
}

fn a_peer_that_ends_breaks_its_connections_in_bounded_time(kind: DeviceKind) {
    for level in [Reliability::Delivery, Reliability::Reception] {
        let pair = Pair::with(&soon_missed(kind));
        let (a, b) = pair.connected(level);
        let recv = Buffer::new(&pair.a, 8);
        a.post_recv(&recv.descriptor).unwrap();
        pair.simulation.set_connected(0, false);
        let start = pair.a.nic.port().now_ns();
        let sends: Vec<_> = (0..3).map(|_| Buffer::new(&pair.a, 4096)).collect();
        sends.iter().for_each(|send| a.post_send(&send.descriptor).unwrap());
        let mut results: Vec<_> = (0..3).map(|_| a.send_wait(LONG)).collect();
        let failed = results.pop().unwrap();
        if level == Reliability::Reception {
            assert_eq!(error_bits(&results[0]), TRANSPORT_ERROR);
            assert_eq!(error_bits(&results[1]), DESC_FLUSHED_ERROR);
            assert_eq!(error_bits(&failed), DESC_FLUSHED_ERROR);
        }
        let waited = pair.a.nic.port().now_ns() - start;
        assert!(waited < 10_000_000, "{waited} ns");
        // Delivery completes when the channel has the message, so it may still be good.
        let _ = a.recv_wait(LONG);
        assert_eq!(a.query().state, ViState::Error);
        assert_eq!(pair.a.errors(), [(a.number(), ErrorCode::ConnectionLost)]);
        // The other side notices by itself, within its keepalive periods.
        let recv = Buffer::new(&pair.b, 8);
        b.post_recv(&recv.descriptor).unwrap();
        let lost = error_bits(&b.recv_wait(LONG));
        assert_eq!(lost, DESC_FLUSHED_ERROR);
        assert_eq!(pair.b.errors(), [(b.number(), ErrorCode::ConnectionLost)]);
    }
}

fn a_cable_that_is_plugged_in_again(kind: DeviceKind) {
    let pair = Pair::with(&soon_missed(kind));
    let (a, b) = pair.connected(Reliability::Delivery);
    let recv = Buffer::new(&pair.a, 8);
    a.post_recv(&recv.descriptor).unwrap();
    pair.simulation.set_connected(0, false);
    assert_eq!(error_bits(&a.recv_wait(LONG)), DESC_FLUSHED_ERROR);
    pair.simulation.set_connected(0, true);
    a.disconnect().unwrap();
    let recv = Buffer::new(&pair.b, 8);
    b.post_recv(&recv.descriptor).unwrap();
    assert_eq!(error_bits(&b.recv_wait(LONG)), DESC_FLUSHED_ERROR);
    b.disconnect().unwrap();
    // The channels open again by themselves.
    pair.connect(&a, &b);
    b.post_recv(&recv.descriptor).unwrap();
    let send = Buffer::new(&pair.a, 8);
    a.post_send(&send.descriptor).unwrap();
    b.recv_wait(LONG).unwrap();
}

/// Each side closes the channel before its driver has learned that the other one did.
fn a_channel_closed_from_both_sides(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (a, b) = pair.connected(Reliability::Delivery);
    pair.b.driver.close_peer(0).unwrap();
    pair.simulation.run(5000);
    pair.a.driver.close_peer(1).unwrap();
    for vi in [a, b] {
        let recv = vi.recv_wait(LONG).unwrap_err();
        assert_eq!(recv.code, VipReturn::DescriptorError);
        assert_eq!(vi.query().state, ViState::Error);
    }
}

fn a_node_that_restarts(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (a, b) = pair.connected(Reliability::Delivery);
    let recv = Buffer::new(&pair.a, 8);
    a.post_recv(&recv.descriptor).unwrap();
    let Pair { a: node_a, b: node_b, simulation, buses, wire, note } = pair;
    drop((b, node_b));
    let config = host_driver::nic::NicConfig::new(1, &[0]).with_seed(999);
    let node_b = tests::Node::open(buses[1].clone(), &config);
    assert_eq!(error_bits(&a.recv_wait(LONG)), DESC_FLUSHED_ERROR);
    assert_eq!(node_a.errors(), [(a.number(), ErrorCode::ConnectionLost)]);
    a.disconnect().unwrap();
    assert_eq!(a.recv_done().unwrap_err().code, VipReturn::DescriptorError);
    let pair = Pair { a: node_a, b: node_b, simulation, buses, wire, note };
    let b = pair.b.vi(Reliability::Delivery);
    pair.connect(&a, &b);
    let recv = Buffer::new(&pair.b, 8);
    b.post_recv(&recv.descriptor).unwrap();
    let send = Buffer::new(&pair.a, 8);
    a.post_send(&send.descriptor).unwrap();
    b.recv_wait(LONG).unwrap();
}

/// A node dies with a message half sent, comes back, and connects again: nothing of the old message
/// is in the new ones, at either side.
fn a_node_that_dies_in_mid_message(kind: DeviceKind) {
    const BYTES: usize = 100_000;
    for (level, delay) in LEVELS.into_iter().flat_map(|level| [(level, 900), (level, 3000)]) {
        let pair = Pair::with(&soon_missed(kind));
        let (a, b) = pair.connected(level);
        let (send, recv) = (Buffer::new(&pair.a, BYTES), Buffer::new(&pair.b, BYTES));
        b.post_recv(&recv.descriptor).unwrap();
        a.post_send(&send.descriptor).unwrap();
        pair.simulation.run(delay);
        let Pair { a: node_a, b: node_b, simulation, buses, wire, note } = pair;
        drop((a, node_a));
        assert_eq!(error_bits(&b.recv_wait(LONG)), DESC_FLUSHED_ERROR, "{level:?} {delay}");
        assert_eq!(node_b.errors(), [(b.number(), ErrorCode::ConnectionLost)]);
        b.disconnect().unwrap();
        let config = host_driver::nic::NicConfig::new(0, &[1]).with_seed(999);
        let node_a = tests::Node::open(buses[0].clone(), &config);
        let pair = Pair { a: node_a, b: node_b, simulation, buses, wire, note };
        let a = pair.a.vi(level);
        pair.connect(&a, &b);
        for round in 0..3 {
            let data = pattern(100 + 4000 * round, round + 1);
            let (send, recv) = (Buffer::new(&pair.a, 10_000), Buffer::new(&pair.b, 10_000));
            send.set(&data);
            b.post_recv(&recv.descriptor).unwrap();
            pair.settle();
            a.post_send(&send.descriptor).unwrap();
            b.recv_wait(LONG).unwrap();
            assert!(recv.data() == data, "{level:?} {delay} {round}");
        }
        pair.assert_no_stray_access();
    }
}

on_every_kind! {
    a_node_that_dies_in_mid_message,
    reliable_messages_survive_a_bad_link,
    unreliable_messages_are_lost_whole_or_arrive_whole,
    a_peer_that_ends_breaks_its_connections_in_bounded_time,
    a_cable_that_is_plugged_in_again,
    a_channel_closed_from_both_sides,
    a_node_that_restarts,
}
