//! Time-outs, keepalive, silence: one channel against a scripted peer.

use crate::network::Network;
use crate::node::Outcome;
use crate::peer::{OWN, REMOTE, Single, from_peer};
use nic_regs::admin::PeerState;
use nic_regs::counter::Counter;
use nic_regs::event::PeerDownReason;
use nic_regs::frame::{Header, Type};
use nic_regs::limits::RETRY_CYCLES_MAX;

#[test]
fn time_outs_and_death() {
    let mut single = Single::opened(20);
    single.0.nodes[0].model.inputs.retry_limit = 4;
    for _ in 0..3 {
        assert_eq!(single.offer(1, Type::Data, 300, true), Outcome::Committed);
    }
    single.0.run(200);
    let start = single.0.now;
    assert_eq!(single.free(), 128 - 6);
    single.0.until(100_000, "death", |network| !network.nodes[0].kills.is_empty());
    let time = single.0.now - start;
    // 2,000 * (1 + 2 + 4 + 8), and at most a scan more each time.
    assert!((30_000 - 200..34_000).contains(&time), "{time}");
    let numbers: Vec<u16> = single.0.seen.iter().map(|(_, header)| header.sequence).collect();
    assert_eq!(numbers, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(single.count(Counter::FramesRetransmitted), 9);
    single.expect_down(PeerDownReason::Dead);
    assert_eq!(single.offer(1, Type::Fin, 0, true), Outcome::Down);
}

#[test]
fn keepalive() {
    let mut single = Single::opened(25);
    single.0.nodes[0].model.inputs.keepalive = 0;
    single.0.run(1_000_000);
    assert!(single.sent().is_empty());
    // An Ack once in a long time, in case that the last one was lost; nobody is dead.
    single.0.run(2_200_000);
    assert_eq!(single.kinds(), [Type::Ack; 3]);
    single.0.nodes[0].model.inputs.keepalive = 5_000;
    single.0.nodes[0].model.inputs.retry_limit = 3;
    single.put(from_peer(Type::Ack), &[]);
    let start = single.0.now;
    let time = single.0.until(40_000, "death", |network| !network.nodes[0].kills.is_empty());
    assert!((15_000 - 100..16_500).contains(&time), "{time}");
    let times: Vec<u64> = single.0.seen.iter().map(|(time, _)| time - start).collect();
    assert!((2..=4).contains(&times.len()), "{times:?}");
    assert!(single.kinds().iter().all(|&kind| kind == Type::Ack));
    single.expect_down(PeerDownReason::Dead);
    // Two live peers keep each other alive.
    let mut network = Network::new(2, 26);
    for node in &mut network.nodes {
        node.model.inputs.keepalive = 3_000;
        node.model.inputs.retry_limit = 2;
    }
    network.open(0, 1, 8);
    network.run(100_000);
    assert!(network.nodes.iter().all(|node| node.kills.is_empty()));
    network.cut_off = true;
    network.until(10_000, "both die", |network| {
        network.nodes.iter().all(|node| !node.kills.is_empty())
    });
}

#[test]
fn a_silent_peer_is_dead_after_retry_limit_times_keepalive() {
    for limit in [1, 2, 4, 8, 15] {
        let mut single = Single::opened(40 + u64::from(limit));
        single.0.nodes[0].model.inputs.keepalive = 2_000;
        single.0.nodes[0].model.inputs.retry_limit = limit;
        single.put(from_peer(Type::Ack), &[]);
        let time = single.0.until(40_000, "death", |network| !network.nodes[0].kills.is_empty());
        let due = 2_000 * u64::from(limit);
        assert!((due - 100..due + 1_500).contains(&time), "{limit}: {time}");
    }
}

/// A peer that is still Opening sends nothing but its SYN: it is there.
#[test]
fn a_duplicate_syn_keeps_the_channel_alive() {
    let mut single = Single::opened(36);
    single.0.nodes[0].model.inputs.keepalive = 5_000;
    single.0.nodes[0].model.inputs.retry_limit = 3;
    single.put(from_peer(Type::Ack), &[]);
    for _ in 0..5 {
        single.0.run(12_000);
        single.put(Header { tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, &[]);
    }
    single.0.run(12_000);
    assert_eq!(single.query(1), PeerState::Open);
    single.0.until(6_000, "death", |network| !network.nodes[0].kills.is_empty());
    single.expect_down(PeerDownReason::Dead);
}

/// A channel with a frame on which fourteen time-outs of 16 cycles, each twice the one before, have passed but
/// for the last.
fn fourteen_tries(seed: u64) -> Single {
    let mut single = Single::opened(seed);
    let inputs = &mut single.0.nodes[0].model.inputs;
    (inputs.keepalive, inputs.retry_limit, inputs.retry_timeout) = (0, 15, 16);
    assert_eq!(single.offer(1, Type::Data, 8, true), Outcome::Committed);
    single.0.until(400_000, "fourteen tries", |network| network.seen.len() == 14);
    single.0.seen.clear();
    single
}

/// Cycles that a visit of the timer and what follows may take.
const LATE: u64 = 1_000;

/// What is longer is as long, and not what is left of it.
#[test]
fn the_longest_time_out() {
    for time_out in [16, 1 << 20, 0x55_5555, (1 << 23) - 1, 1 << 23, 0xaa_aaaa, 0xff_ffff] {
        let mut single = fourteen_tries(35);
        single.0.nodes[0].model.inputs.retry_timeout = time_out;
        let due = (u64::from(time_out) << 13).min(RETRY_CYCLES_MAX);
        single.jump(due - 2 * LATE);
        single.0.run(LATE);
        assert!(!single.kinds().contains(&Type::Data), "{time_out:#x}: early");
        single.jump(LATE);
        single.0.run(LATE);
        assert!(single.kinds().contains(&Type::Data), "{time_out:#x}: late");
        assert_eq!(single.query(1), PeerState::Open);
        // One that is set meanwhile counts from then on.
        single.0.nodes[0].model.inputs.retry_timeout = 1;
        single.jump(1 << 14);
        single.0.run(LATE);
        single.expect_down(PeerDownReason::Dead);
    }
}

#[test]
fn the_longest_keepalive() {
    for (limit, keepalive) in [(1, !0), (2, 0x5555_5555), (4, 0xaaaa_aaaa), (8, !0), (15, !0)] {
        let mut single = Single::opened(37);
        let inputs = &mut single.0.nodes[0].model.inputs;
        (inputs.keepalive, inputs.retry_limit) = (keepalive, limit);
        single.put(from_peer(Type::Ack), &[]);
        single.jump(u64::from(limit) * u64::from(keepalive) - 2 * LATE);
        single.0.run(LATE);
        assert_eq!(single.query(1), PeerState::Open, "{limit} times {keepalive:#x}: early");
        single.jump(LATE);
        single.0.run(LATE);
        single.expect_down(PeerDownReason::Dead);
    }
}

/// The peer is there again: the next frame's time-out is a short one.
#[test]
fn progress_begins_anew() {
    let mut single = fourteen_tries(38);
    single.put(Header { acknowledgement: 1, ..from_peer(Type::Ack) }, &[]);
    assert_eq!(single.offer(1, Type::Data, 8, true), Outcome::Committed);
    let many = single.0.until(400_000, "fourteen tries", |network| network.seen.len() == 14);
    assert!((16 << 12..(16 << 13) + 14 * LATE).contains(&many), "{many}");
    assert_eq!(single.query(1), PeerState::Open);
}

/// A peer that comes up in the midst of a visit is not dead for its silence of before.
#[test]
fn up_in_the_midst_of_a_visit() {
    for delay in 0..600 {
        let mut single = Single::new(39);
        single.open(1, OWN, 32);
        single.0.run(delay);
        single.inject(Header { tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, &[]);
        single.0.run(2_000);
        assert_eq!(single.query(1), PeerState::Open, "{delay}");
        assert!(single.kinds().contains(&Type::SynAck), "{delay}");
    }
}
