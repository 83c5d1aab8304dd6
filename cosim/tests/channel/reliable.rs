//! Exactly once and in order over faulty links; credits, quotas and chunks; the full rate.

use crate::network::{Faults, Network, random_frame};
use crate::node::{BRISK, Frame, Manners, Outcome};
use crate::taker::TAKEN_MAX;
use cosim::random::each_seed;
use nic_regs::counter::Counter;
use nic_regs::frame::Type;

/// Sequenced frames from `a` to `b`: what was committed, and what arrived.
pub(crate) fn streams(
    network: &Network,
    a: usize,
    b: usize,
    sequenced: bool,
) -> (Vec<Frame>, Vec<Frame>) {
    let sent = network.nodes[a]
        .outcomes
        .iter()
        .filter(|(frame, outcome)| {
            *outcome == Outcome::Committed
                && usize::from(frame.peer) == b
                && frame.sequenced() == sequenced
        })
        .map(|(frame, _)| frame.essence())
        .collect();
    let came = network.nodes[b]
        .inbox
        .iter()
        .filter(|frame| usize::from(frame.peer) == a && frame.sequenced() == sequenced)
        .map(Frame::essence)
        .collect();
    (sent, came)
}

/// Every sequenced frame arrived once and in order; unsequenced ones are real, and in order if the
/// link keeps it.
pub(crate) fn check(network: &Network, ordered: bool) {
    for a in 0..network.nodes.len() {
        for b in 0..network.nodes.len() {
            let (sent, came) = streams(network, a, b, true);
            if sent != came {
                let at = sent.iter().zip(&came).position(|(s, c)| s != c);
                panic!("{a} to {b}: {} sent, {} came, differ at {at:?}", sent.len(), came.len());
            }
            let (sent, came) = streams(network, a, b, false);
            let mut rest = sent.iter();
            for frame in &came {
                if ordered {
                    let found = rest.any(|other| other == frame);
                    assert!(found, "{a} to {b}: unknown or late {:?}", frame.header);
                } else {
                    assert!(sent.contains(frame));
                }
            }
        }
    }
}

struct Load {
    nodes: u8,
    frames: u32,
    credits: u8,
    loops: bool,
    unsequenced: bool,
    manners: Manners,
    faults: Faults,
}

fn exchange(seed: u64, load: &Load) -> Network {
    let mut network = Network::new(load.nodes, seed);
    network.faults = load.faults;
    for node in &mut network.nodes {
        node.manners = load.manners;
        node.model.inputs.keepalive = 0;
        node.model.inputs.retry_limit = 15;
        // Three nodes can queue more than the default time-out in front of a fourth.
        node.model.inputs.retry_timeout = 8_000;
    }
    for a in 0..load.nodes {
        for b in a..load.nodes {
            if a != b || load.loops {
                network.open(a, b, load.credits);
            }
        }
    }
    // Not before: while the time of SYNs doubles, an unlucky peer is silent for as many periods.
    for node in &mut network.nodes {
        node.model.inputs.keepalive = 20_000;
    }
    for serial in 0..load.frames {
        for a in 0..load.nodes {
            let b = loop {
                let b = network.random.below(load.nodes.into()) as u8;
                if a != b || load.loops {
                    break b;
                }
            };
            let unsequenced = load.unsequenced && network.random.below(3) == 0;
            let frame = random_frame(&mut network.random, b, serial, unsequenced);
            network.nodes[usize::from(a)].outbox.push_back(frame);
        }
    }
    network.settle(60_000_000);
    network
}

const ROUGH: Manners = Manners {
    tx_stall: 0.2,
    rx_pause: 0.1,
    beat_pause: 0.2,
    send_pause: 100,
    hold: 400,
    abort: 0.05,
    ..BRISK
};

/// Frames that receivers take ahead, by seed; the last one would take more than it gets.
const AHEAD: [usize; 3] = [0, 2, TAKEN_MAX + 1];

#[test]
fn without_faults() {
    each_seed(0..12, |seed| {
        let manners = if seed % 2 == 0 { BRISK } else { ROUGH };
        let manners = Manners { ahead: AHEAD[seed as usize % 3], ..manners };
        let (nodes, credits) = if seed % 4 < 2 { (2, 64) } else { (3, 20) };
        let load = Load {
            nodes,
            frames: 300,
            credits,
            loops: seed % 4 == 3,
            unsequenced: seed % 8 >= 4,
            manners,
            faults: Faults::default(),
        };
        let network = exchange(seed, &load);
        check(&network, true);
        for node in &network.nodes {
            // Unsequenced frames have no credits.
            assert!(load.unsequenced || node.count(Counter::DropStaging) == 0, "seed {seed}");
            for counter in [
                Counter::FramesRetransmitted,
                Counter::DropCrc,
                Counter::DropLength,
                Counter::DropVersion,
                Counter::DropTag,
                Counter::DropOrder,
                Counter::DropDuplicate,
                Counter::ResetsSent,
                Counter::PeersLost,
            ] {
                assert_eq!(node.count(counter), 0, "seed {seed}: {counter:?}");
            }
        }
    });
}

#[test]
fn exactly_once_over_faults() {
    each_seed(100..112, |seed| {
        let bad = if seed % 3 == 0 { 0.1 } else { 0.02 };
        let faults = Faults {
            drop: bad,
            corrupt: bad,
            duplicate: bad,
            cut: bad,
            lengthen: bad / 2.0,
            noise: bad,
            delay: if seed % 2 == 0 { 0 } else { 3_000 },
        };
        let manners = if seed % 4 < 2 { ROUGH } else { BRISK };
        let manners = Manners { ahead: AHEAD[seed as usize % 3], ..manners };
        let load = Load {
            nodes: 2 + (seed % 2) as u8,
            frames: 200,
            credits: 20,
            loops: false,
            unsequenced: true,
            manners,
            faults,
        };
        let network = exchange(seed, &load);
        check(&network, false);
        let again: u64 = network.nodes.iter().map(|n| n.count(Counter::FramesRetransmitted)).sum();
        assert!(again > 0, "seed {seed}: nothing was sent again");
    });
}

/// One 4 KiB frame after the other: cycles for each frame, at 516 beats a frame.
#[test]
fn full_rate() {
    const FRAMES: u64 = 60;
    let mut network = Network::new(2, 7);
    network.wire = true;
    network.open(0, 1, 64);
    for serial in 0..FRAMES as u32 {
        let mut frame = random_frame(&mut network.random, 1, serial, false);
        frame.header.kind = 1;
        frame.header.length = 4096;
        frame.payload = (0..512).map(|_| network.random.bits()).collect();
        network.nodes[0].outbox.push_back(frame);
    }
    let beats = network.nodes[0].tx_beats;
    let cycles = network.until(60_000, "60 frames", |network| {
        network.nodes[1].model.outputs.staging_valid == 0
            && network.nodes[1].inbox.len() == FRAMES as usize
    });
    let sent = network.nodes[0].tx_beats - beats;
    assert_eq!(sent, FRAMES * 516);
    check(&network, true);
    assert_eq!(network.nodes[0].count(Counter::FramesRetransmitted), 0);
    assert_eq!(network.nodes[1].count(Counter::DropStaging), 0);
    // A frame's flight and its read-out at the end, and 2 percent.
    assert!(cycles < FRAMES * 516 * 102 / 100 + 2_000, "{cycles} cycles for {sent} beats");
}

/// Eight bytes: cycles for each frame, at 5 beats a frame, and of the first frame from question to
/// last beat.
#[test]
fn small_frames() {
    const FRAMES: u64 = 300;
    let mut network = Network::new(2, 8);
    network.open(0, 1, 64);
    network.run(1_000);
    for serial in 0..FRAMES as u32 {
        let mut frame = random_frame(&mut network.random, 1, serial, false);
        (frame.header.kind, frame.header.length, frame.payload) = (1, 8, vec![serial.into()]);
        frame.header.src_vi = 77;
        frame.header.dst_vi = 78;
        network.nodes[0].outbox.push_back(frame);
    }
    network.nodes[0].model.inputs.sample_vi = 77;
    network.nodes[0].model.inputs.sample_armed = 1;
    network.nodes[1].model.inputs.sample_vi = 78;
    network.nodes[1].model.inputs.sample_armed = 1;
    let start = network.nodes[0].now;
    let cycles = network
        .until(60_000, "small frames", |network| network.nodes[1].inbox.len() == FRAMES as usize);
    check(&network, true);
    let stamps = network.nodes[0].stamps;
    assert_eq!(stamps[1] - stamps[0], 4);
    assert!(stamps[0] - start <= 18 && network.nodes[1].stamps[2] > stamps[0]);
    assert!(cycles < FRAMES * 9, "{cycles} cycles, first beat {}", stamps[0] - start);
}

/// Channels open and close at random under traffic and faults: nothing twice, nothing out of order,
/// nothing leaks, and in the end every channel opens again.
#[test]
fn churn() {
    each_seed(200..208, |seed| {
        let mut network = Network::new(3, seed);
        let bad = if seed % 2 == 0 { 0.02 } else { 0.0 };
        network.faults =
            Faults { drop: bad, corrupt: bad, duplicate: bad, delay: 600, ..Faults::default() };
        for node in &mut network.nodes {
            node.manners = if seed % 4 < 2 { ROUGH } else { BRISK };
            node.manners.ahead = AHEAD[seed as usize % 3];
            // A frame to a closed peer is forgotten, one that finds no pool space is offered again.
            node.manners.retry = true;
            node.model.inputs.keepalive = 4_000;
            node.model.inputs.retry_limit = 3;
        }
        let mut serial = 0;
        for _ in 0..150 {
            for a in 0..3 {
                let op = u8::from(network.random.below(4) == 0);
                let epoch = network.random.bits() as u32;
                let peer = network.random.below(3) as u8;
                network.nodes[a].admin.push_back((op, peer, epoch, 20));
                for _ in 0..network.random.below(12) {
                    serial += 1;
                    let (peer, loose) =
                        (network.random.below(3) as u8, network.random.below(4) == 0);
                    let frame = random_frame(&mut network.random, peer, serial, loose);
                    if network.nodes[a].outbox.len() < 20 {
                        network.nodes[a].outbox.push_back(frame);
                    }
                }
            }
            let pause = network.random.below(4_000);
            network.run(pause);
        }
        network.faults = Faults::default();
        for a in 0..3 {
            network.until(2_000_000, "admin", |network| network.nodes[a].admin.is_empty());
            network.nodes[a].admin.extend((0..3).map(|peer| (1, peer, 0, 0)));
        }
        network.until(2_000_000, "closing", |network| {
            network.nodes.iter().all(|node| node.admin.is_empty() && node.outbox.is_empty())
        });
        network.settle(2_000_000);
        let mut delivered = 0;
        for node in &network.nodes {
            for source in 0..3 {
                let words = node
                    .inbox
                    .iter()
                    .filter(|frame| frame.peer == source && frame.sequenced())
                    .map(|frame| frame.header.word);
                assert!(words.clone().is_sorted_by(|a, b| a < b), "seed {seed}");
                delivered += words.count();
            }
        }
        assert!(delivered > 200, "seed {seed}: only {delivered} frames");
        for (a, b) in [(0, 1), (1, 2), (2, 0), (0, 0)] {
            network.open(a, b, 20);
        }
    });
}

/// Taken frames wait in the receiver: up to TAKEN_MAX are offered, and reading them in any order
/// does not disturb what arrives meanwhile. Each refused message is reported.
#[test]
fn taken_frames_are_read_in_any_order() {
    let mut network = Network::new(2, 300);
    network.open(0, 1, 64);
    network.nodes[1].manners = Manners { ahead: TAKEN_MAX + 1, hold: 60, ..BRISK };
    network.nodes[1].refuse_messages = true;
    let mut messages = 0;
    for serial in 0..400 {
        let frame = random_frame(&mut network.random, 1, serial, false);
        messages += u64::from(frame.header.kind == Type::Message as u8);
        network.nodes[0].outbox.push_back(frame);
    }
    network.settle(1_000_000);
    check(&network, true);
    assert_eq!(network.nodes[1].taker.most, TAKEN_MAX);
    assert_eq!(network.nodes[1].count(Counter::DropStaging), 0);
    let reported = network.seen.iter().filter(|(_, h)| h.kind == Type::MessageRefused as u8);
    let refused = reported.inspect(|(_, header)| assert_eq!(header.src_node, 1)).count() as u64;
    assert!(refused > 0 && refused <= messages, "{refused} of {messages}");
}
