//! A reset while a frame is half on the link: the one that leaves is ended, the one that comes is
//! skipped.

use crate::node::beats;
use crate::peer::{OWN, REMOTE, Single, TAG, from_peer};
use nic_regs::admin::PeerState;
use nic_regs::counter::Counter;
use nic_regs::frame::{Header, Type, flag};

/// The channel after a reset in cycle `at` of a Data frame that leaves, over a link that stalls.
fn ends_what_leaves(at: u64, stall: f64, cycles: u64) {
    let mut single = Single::opened(at);
    let header = Header { length: 200, ..from_peer(Type::Data) };
    let header = Header { flags: flag::SEQUENCED, ..header };
    let payload: Vec<u64> = (0..25).map(|n| 0x1111_2222_3333_0000 | n).collect();
    let node = &mut single.0.nodes[0];
    node.manners.tx_stall = stall;
    let frame = crate::node::Frame { peer: 1, header, payload: payload.clone() };
    node.outbox.push_back(frame);
    single.0.run(at);
    let node = &mut single.0.nodes[0];
    let before = node.on_link().to_vec();
    let mut left = node.reset(cycles);
    assert!(node.on_link().is_empty(), "reset at {at}: a frame stays open");
    node.manners.tx_stall = 0.0;
    if !before.is_empty() {
        assert_eq!(left.len(), 1, "reset at {at}");
        let mut frame = left.remove(0);
        assert_eq!(frame[..before.len()], before, "what has left");
        let end = frame.pop().unwrap();
        let whole = frame.len() == 28 && end >> 32 == 0;
        assert!(whole || end >> 63 == 1, "reset at {at}: {end:#x} may be a CRC");
        assert_eq!(frame[3.min(frame.len())..], payload[..frame.len().saturating_sub(3)]);
    }
    // A new start: the next frame is a good one.
    let mut single = Single(single.0);
    single.0.nodes[0].step();
    single.0.seen.clear();
    single.open(1, !TAG as u32, 32);
    single.0.run(50);
    let kinds: Vec<u8> = single.0.seen.iter().map(|(_, header)| header.kind).collect();
    assert_eq!(kinds, [Type::Syn as u8], "reset at {at}");
}

#[test]
fn a_reset_ends_the_frame_that_leaves() {
    for at in 5..70 {
        ends_what_leaves(at, 0.0, 16);
        ends_what_leaves(at, 0.6, 16);
        ends_what_leaves(at, 0.97, 1);
    }
}

#[test]
fn a_reset_skips_the_frame_that_comes() {
    for before in 0..8 {
        for during in 0..=8 - before {
            let mut single = Single::opened(7);
            let header = Header { length: 32, ..from_peer(Type::Data) };
            let mut frame = beats(header, &[1, 2, 3, 4]);
            let drops = [Counter::DropCrc, Counter::DropLength, Counter::FramesReceived];
            single.0.run(20);
            let node = &mut single.0.nodes[0];
            let count = drops.map(|drop| node.count(drop));
            let rest = frame.split_off(before);
            node.rx.extend(frame.iter().map(|&beat| (beat, false)));
            single.0.run(before as u64);
            let node = &mut single.0.nodes[0];
            for at in 0..16 {
                let i = &mut node.model.inputs;
                i.reset = 1;
                i.rx_valid = u8::from(at < during);
                i.rx_data = rest.get(at).copied().unwrap_or(0);
                i.rx_last = u8::from(at + 1 == rest.len());
                node.model.cycle();
            }
            node.model.inputs.rx_valid = 0;
            node.reset(0);
            let rest = &rest[during..];
            let last = rest.len().wrapping_sub(1);
            let rest = rest.iter().enumerate().map(|(at, &beat)| (beat, at == last));
            if before + during > 0 {
                node.rx.extend(rest);
            }
            single.0.run(30);
            let node = &single.0.nodes[0];
            assert_eq!(drops.map(|drop| node.count(drop)), count, "{before} and {during} beats");
            // The next frame is taken.
            single.open(1, TAG.into(), 32);
            single.put(Header { tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, &[]);
            assert_eq!(single.0.nodes[0].count(Counter::FramesReceived), count[2] + 1);
        }
    }
}

/// Channels that open send what those of a new node send: nothing is due of what was before.
fn opens_as_new(single: &mut Single, at: u64) {
    // The first of them is the node's own: what it sends comes to itself.
    for peer in [0, 1, 2, 3] {
        single.open(peer, OWN, 32);
        if peer != 0 {
            let syn = Header { src_node: peer, tag: 0, word: REMOTE, ..from_peer(Type::Syn) };
            single.put(syn, &[]);
        }
        single.0.run(300);
        assert_eq!(single.query(peer), PeerState::Open, "peer {peer}, reset at {at}");
        assert_eq!(single.kinds(), [Type::Syn, Type::SynAck], "peer {peer}, reset at {at}");
    }
}

/// Whatever is under way when a reset comes, nothing of it shows afterwards: no frame, no event, no VI that is
/// stopped, no chunk that is held.
#[test]
fn a_reset_leaves_nothing() {
    for at in 0..120 {
        let mut single = Single::opened(at);
        single.open(2, OWN, 32);
        let data = Header { length: 8, flags: flag::SEQUENCED, ..from_peer(Type::Data) };
        let mut frames = [
            (data, 1),
            // A gap, a channel that opens, one that is not there, one that goes down.
            (Header { sequence: 3, ..data }, 1),
            (Header { src_node: 2, tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, 0),
            (Header { src_node: 3, ..from_peer(Type::Ack) }, 0),
            (from_peer(Type::Rst), 0),
        ];
        frames.rotate_left(usize::try_from(at % 5).unwrap());
        frames.into_iter().for_each(|(header, beats)| single.inject(header, &[1][..beats]));
        let sent = Header { length: 200, flags: flag::SEQUENCED, ..from_peer(Type::Data) };
        let node = &mut single.0.nodes[0];
        node.manners.read = at % 2 == 0;
        node.outbox.push_back(crate::node::Frame { peer: 1, header: sent, payload: vec![5; 25] });
        while !single.0.nodes[0].rx.is_empty() {
            single.0.step();
        }
        single.0.run(at / 2);
        let node = &mut single.0.nodes[0];
        node.forget();
        let left = node.reset(16);
        assert!(left.len() <= 1, "reset at {at}: {left:x?} leave");
        single.0.seen.clear();
        // Several times the longest wait.
        single.0.run(8 * 2_000);
        let node = &single.0.nodes[0];
        assert_eq!((&node.events, &node.kills), (&vec![], &vec![]), "reset at {at}");
        assert!(single.0.seen.is_empty(), "reset at {at}: {:x?}", single.0.seen);
        assert_eq!((single.free(), single.0.nodes[0].model.outputs.staging_valid), (128, 0));
        for peer in [1, 2] {
            assert_eq!(single.query(peer), PeerState::Closed, "reset at {at}");
        }
        opens_as_new(&mut single, at);
    }
}
