//! Staging: space of sequenced frames and of the others, what a frame that finds none leads to, and
//! who counts as dead.

use crate::network::{Network, random_frame};
use crate::node::{BRISK, Frame, Manners, Outcome};
use crate::peer::{Single, from_peer};
use crate::reliable::check;
use nic_regs::admin::PeerState;
use nic_regs::counter::Counter;
use nic_regs::event::PeerDownReason;
use nic_regs::frame::{Header, Type, flag};

fn payload(n: u64) -> Vec<u64> {
    (0..512).map(|beat| n << 32 | beat).collect()
}

fn data(n: u16) -> Header {
    Header { length: 4096, flags: flag::SEQUENCED, sequence: n, ..from_peer(Type::Data) }
}

fn loose(n: u16) -> Header {
    Header { flags: 0, ..data(n) }
}

#[test]
fn staging_overruns() {
    let mut single = Single::opened(5);
    single.0.nodes[0].manners.read = false;
    for n in 0..3 {
        single.put(data(n), &payload(n.into()));
    }
    // Three frames of 16 units, then one of 2: the next ones do not fit.
    single.put(Header { length: 264, ..data(3) }, &payload(3)[..33]);
    single.put(data(4), &payload(9));
    assert_eq!((single.count(Counter::DropStaging), single.count(Counter::DropOrder)), (1, 0));
    single.put(data(5), &payload(9));
    assert_eq!((single.count(Counter::DropStaging), single.count(Counter::DropOrder)), (1, 1));
    // 14 units more for small ones, with or without payload.
    for n in 4..17 {
        single.put(Header { length: 256, ..data(n) }, &payload(n.into())[..32]);
    }
    single.put(Header { length: 264, ..data(17) }, &payload(9)[..33]);
    assert_eq!(single.count(Counter::DropStaging), 2);
    for n in 17..19 {
        single.put(Header { length: 0, ..data(n) }, &[]);
    }
    assert_eq!(single.count(Counter::DropStaging), 3);
    single.0.nodes[0].manners.read = true;
    single.0.run(3_000);
    let inbox = &single.0.nodes[0].inbox;
    assert_eq!(inbox.len(), 18);
    for (n, frame) in inbox.iter().enumerate() {
        assert_eq!(frame.payload, payload(n as u64)[..frame.payload.len()]);
    }
}

/// Unsequenced frames have space of their own: they take none that was granted, and none is taken
/// from them.
#[test]
fn staging_of_two_kinds() {
    for ahead in [0, 2, 16] {
        let mut single = Single::opened(7);
        let node = &mut single.0.nodes[0];
        node.manners = Manners { ahead, hold: 5_000, read: ahead > 0, ..BRISK };
        // Four of each kind, mixed; then no more of either.
        for n in 0..4 {
            single.put(loose(100 + n), &payload(100 + u64::from(n)));
            single.put(data(n), &payload(n.into()));
        }
        assert_eq!(single.count(Counter::DropStaging), 0, "{ahead}");
        if ahead == 0 {
            single.put(loose(104), &payload(9));
            single.put(data(4), &payload(9));
            assert_eq!(single.count(Counter::DropStaging), 2);
        }
        single.0.nodes[0].manners = Manners { ahead, ..BRISK };
        single.0.until(60_000, "all", |network| network.nodes[0].inbox.len() == 8);
        for (n, frame) in single.0.nodes[0].inbox.iter().enumerate() {
            let serial = n / 2 + if n % 2 == 0 { 100 } else { 0 };
            assert_eq!(frame.payload, payload(serial as u64));
        }
        // All of it is free again.
        for n in 4..12 {
            single.put(loose(100 + n), &payload(1));
            single.put(data(n), &payload(1));
            single.0.run(2_000);
        }
        assert_eq!(single.0.nodes[0].inbox.len(), 24);
    }
}

/// A sequenced frame that does not fit is acknowledged at once, so that its sender gets an answer, and
/// asked for again as soon as a frame of any size fits.
#[test]
fn a_frame_that_does_not_fit_is_acknowledged_at_once() {
    let mut single = Single::opened(8);
    single.0.nodes[0].manners.read = false;
    for n in 0..4 {
        single.put(data(n), &payload(n.into()));
    }
    single.0.run(300);
    single.sent();
    for _ in 0..2 {
        single.put(data(4), &payload(4));
        single.put(data(5), &payload(4));
        let sent: Vec<_> = single.sent().iter().map(|h| (h.acknowledgement, h.flags)).collect();
        assert_eq!(sent, [(4, 0)]);
    }
    single.0.nodes[0].manners.read = true;
    single.0.until(700, "a frame is read", |network| network.nodes[0].inbox.len() == 1);
    single.0.nodes[0].manners.read = false;
    single.0.run(40);
    // Sixteen units are free: not enough for each frame that there is.
    assert!(single.sent().iter().all(|h| h.flags == 0));
    single.0.nodes[0].manners.read = true;
    single.0.until(1_200, "another one", |network| network.nodes[0].inbox.len() == 2);
    single.0.run(40);
    let naks: Vec<_> = single.sent().into_iter().filter(|h| h.flags == flag::NAK).collect();
    assert_eq!(naks.iter().map(|h| h.acknowledgement).collect::<Vec<_>>(), [4]);
    single.put(data(4), &payload(4));
    single.put(data(5), &payload(5));
    single.0.run(3_000);
    assert!(single.sent().iter().all(|h| h.flags == 0));
    assert_eq!(single.0.nodes[0].inbox.len(), 6);
}

/// A peer is dead after silent time-outs in a row; the time doubles, answered or not.
#[test]
fn a_peer_that_answers_is_not_dead() {
    let mut single = Single::opened(9);
    single.0.nodes[0].model.inputs.retry_limit = 3;
    assert_eq!(single.offer(1, Type::Data, 300, true), Outcome::Committed);
    // Something, but no progress.
    for _ in 0..10 {
        single.0.run(1_500);
        single.put(from_peer(Type::Ack), &[]);
    }
    assert_eq!(single.query(1), PeerState::Open);
    let again = single.count(Counter::FramesRetransmitted);
    assert!((2..=3).contains(&again), "{again}");
    // One or two silent ones, one that is answered, three silent ones: of 8,000 cycles each.
    single.0.run(14_000);
    single.put(from_peer(Type::Ack), &[]);
    single.0.run(20_000);
    assert_eq!(single.query(1), PeerState::Open);
    let time = single.0.until(40_000, "death", |network| !network.nodes[0].kills.is_empty());
    assert!((4_000..16_000).contains(&time), "{time}");
    single.expect_down(PeerDownReason::Dead);
}

/// More peers than staging has space for, and a receiver that reads slowly: nobody is lost, and all
/// arrives.
#[test]
fn many_senders() {
    const SENDERS: u8 = 5;
    let mut network = Network::new(SENDERS + 1, 9);
    for node in &mut network.nodes {
        node.model.inputs.retry_limit = 4;
        node.model.inputs.keepalive = 0;
    }
    for sender in 1..=SENDERS {
        network.open(0, sender, 64);
    }
    network.nodes[0].manners = Manners { hold: 4_000, ..BRISK };
    for serial in 0..30 {
        for sender in 1..=SENDERS {
            let mut frame = random_frame(&mut network.random, 0, serial, false);
            frame = Frame {
                header: Header { kind: Type::Data as u8, length: 4096, ..frame.header },
                payload: payload(serial.into()),
                ..frame
            };
            network.nodes[usize::from(sender)].outbox.push_back(frame);
        }
    }
    network.settle(10_000_000);
    check(&network, true);
    assert_eq!(network.nodes[0].inbox.len(), 30 * usize::from(SENDERS));
    assert!(network.nodes[0].count(Counter::DropStaging) > 0);
    assert!(network.nodes.iter().all(|node| node.count(Counter::PeersLost) == 0));
}
