//! Going back, going down, quotas, credits, events: one channel against a scripted peer.

use crate::network::Network;
use crate::node::{Frame, Outcome};
use crate::peer::{OWN, REMOTE, Single, TAG, from_peer};
use nic_regs::admin::{AdminStatus, PeerState};
use nic_regs::counter::Counter;
use nic_regs::event::{Kind, PeerDownReason};
use nic_regs::frame::{Header, Type, flag};

#[test]
fn gaps_and_windows() {
    let mut single = Single::opened(21);
    for _ in 0..4 {
        assert_eq!(single.offer(1, Type::Data, 8, true), Outcome::Committed);
    }
    single.0.run(100);
    let ack = |n: u16, flags: u8| Header { acknowledgement: n, flags, ..from_peer(Type::Ack) };
    // Outside the window: ignored.
    single.put(ack(5, 0), &[]);
    single.put(ack(0x8001, flag::NAK), &[]);
    single.0.run(100);
    assert_eq!((single.free(), single.count(Counter::FramesRetransmitted)), (124, 0));
    single.put(ack(1, flag::NAK), &[]);
    single.0.run(100);
    assert_eq!((single.free(), single.count(Counter::FramesRetransmitted)), (125, 3));
    // Once for each number.
    single.put(ack(1, flag::NAK), &[]);
    single.0.run(100);
    assert_eq!(single.count(Counter::FramesRetransmitted), 3);
    single.put(ack(3, flag::NAK), &[]);
    single.0.run(100);
    assert_eq!((single.free(), single.count(Counter::FramesRetransmitted)), (127, 4));
    // An older acknowledgement changes nothing; the newest frees the rest. Nothing is left for a
    // NAK.
    single.put(ack(2, 0), &[]);
    single.put(ack(4, flag::NAK), &[]);
    single.0.run(6_000);
    assert_eq!((single.free(), single.count(Counter::FramesRetransmitted)), (128, 4));
    assert_eq!(single.query(1), PeerState::Open);
}

#[test]
fn resets_and_closing() {
    let mut single = Single::opened(22);
    single.put(Header { tag: TAG ^ 2, ..from_peer(Type::Rst) }, &[]);
    assert_eq!(single.query(1), PeerState::Open);
    assert_eq!(single.offer(1, Type::Data, 4096, true), Outcome::Committed);
    // The frame is still being sent when the channel goes down, and leaves the pool then.
    single.put(from_peer(Type::Rst), &[]);
    single.expect_down(PeerDownReason::Reset);

    let mut single = Single::opened(23);
    single.0.nodes[0].kill_time = 3_000;
    assert_eq!(single.offer(1, Type::Message, 48, true), Outcome::Committed);
    single.sent();
    let start = single.0.now;
    assert_eq!(single.admin(1, 1, 0, 0).0, AdminStatus::Ok as u8);
    assert!(single.0.now - start > 3_000, "close did not wait for the VIs");
    let sent = single.sent();
    assert!(sent.iter().any(|header| header.kind == Type::Rst as u8 && header.tag == TAG));
    single.expect_down(PeerDownReason::Closed);
    assert_eq!(single.admin(1, 1, 0, 0).0, AdminStatus::BadState as u8);
    // Opened again with other epochs; late frames of the old channel are refused.
    single.open(1, OWN + 1, 8);
    single.put(Header { tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, &[]);
    single.put(from_peer(Type::Ack), &[]);
    assert_eq!(single.count(Counter::DropTag), 1);
    assert_eq!(single.offer(1, Type::Data, 8, true), Outcome::Committed);
    single.0.run(100);
    let last = single.sent().pop().unwrap();
    assert_eq!((last.kind, last.sequence, last.credit), (Type::Data as u8, 0, 8));
}

#[test]
fn down_while_filling() {
    let mut single = Single::opened(24);
    let header = Header { kind: 1, length: 4096, flags: flag::SEQUENCED, ..Header::default() };
    single.0.nodes[0].outbox.push_back(Frame { peer: 1, header, payload: vec![1; 512] });
    single.0.run(200);
    single.put(from_peer(Type::Rst), &[]);
    single.open(1, OWN, 8);
    single.put(Header { tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, &[]);
    assert_eq!(single.query(1), PeerState::Open);
    single.0.run(100);
    single.sent();
    single.0.until(2_000, "commit", |network| !network.nodes[0].outcomes.is_empty());
    single.0.run(100);
    // It belonged to the channel before: freed, not sent, not charged.
    assert!(single.free() == 128 && single.sent().is_empty());
    for _ in 0..4 {
        assert_eq!(single.offer(1, Type::Data, 4096, true), Outcome::Committed);
    }
    single.0.run(600);
    assert_eq!(single.kinds(), [Type::Data; 4]);
    single.put(Header { acknowledgement: 4, ..from_peer(Type::Ack) }, &[]);
    single.0.run(200);
    for outcome in [Outcome::Committed, Outcome::Committed, Outcome::Refused] {
        assert_eq!(single.offer(1, Type::Data, 4096, true), outcome);
    }
}

/// The only Ack that returns credits is lost: without keepalive, too, another one is sent.
#[test]
fn lost_credits_come_again() {
    let mut network = Network::new(2, 27);
    for node in &mut network.nodes {
        node.model.inputs.keepalive = 0;
    }
    network.open(0, 1, 8);
    network.nodes[1].manners.read = false;
    let header = Header { kind: Type::Fin as u8, flags: flag::SEQUENCED, ..Header::default() };
    let frame = Frame { peer: 1, header, payload: Vec::new() };
    network.nodes[0].outbox.extend(std::iter::repeat_n(frame.clone(), 8));
    network.until(5_000, "acknowledgement", |network| {
        network.nodes[0].outcomes.len() == 8 && network.nodes[0].model.outputs.free_chunks == 128
    });
    network.cut_off = true;
    network.nodes[1].manners.read = true;
    network.until(5_000, "the frames", |network| network.nodes[1].inbox.len() == 8);
    network.run(2_000);
    network.cut_off = false;
    network.nodes[0].outbox.push_back(frame);
    network.run(20_000);
    assert_eq!(network.nodes[1].inbox.len(), 8);
    network.until(1_100_000, "one more", |network| network.nodes[1].inbox.len() == 9);
}

#[test]
fn quotas() {
    let mut single = Single::opened(27);
    single.open(2, OWN, 8);
    let syn = Header { src_node: 2, tag: 0, word: REMOTE, ..from_peer(Type::Syn) };
    single.put(syn, &[]);
    single.0.run(200);
    // Nothing leaves: the pool fills.
    single.0.nodes[0].tx_ready = false;
    for _ in 0..4 {
        assert_eq!(single.offer(1, Type::Data, 4096, false), Outcome::Committed);
    }
    assert_eq!(single.offer(1, Type::Data, 1, false), Outcome::Refused);
    // A control frame ignores the share; the other peer has its own.
    assert_eq!(single.offer(1, Type::ViAck, 0, true), Outcome::Committed);
    for length in [4096, 4096, 4096, 2048, 512, 256] {
        assert_eq!(single.offer(2, Type::Data, length, false), Outcome::Committed, "{length}");
    }
    assert_eq!(single.free(), 4);
    assert_eq!(single.offer(2, Type::Data, 0, false), Outcome::Refused);
    for _ in 0..4 {
        assert_eq!(single.offer(2, Type::Fin, 0, true), Outcome::Committed);
    }
    assert_eq!(single.offer(2, Type::Fin, 0, true), Outcome::Refused);
    assert_eq!(single.free(), 0);
    single.0.nodes[0].tx_ready = true;
    single.0.run(10_000);
    single.put(Header { acknowledgement: 1, ..from_peer(Type::Ack) }, &[]);
    single.put(Header { src_node: 2, acknowledgement: 4, ..from_peer(Type::Ack) }, &[]);
    single.0.run(200);
    assert_eq!(single.free(), 128);
}

/// Contract 7.4: what enters, and what is sent.
#[test]
fn credits() {
    let mut single = Single::opened(27);
    let ack = |acknowledgement: u16, credit: u8| Header {
        acknowledgement,
        credit,
        ..from_peer(Type::Ack)
    };
    let small = |single: &mut Single| single.offer(1, Type::ViAck, 0, true);
    // 64 units of the SYN; a frame beyond them leaves half of the pool free.
    for _ in 0..64 {
        assert_eq!(small(&mut single), Outcome::Committed);
    }
    assert_eq!((single.free(), small(&mut single)), (64, Outcome::Refused));
    assert_eq!(single.offer(1, Type::Data, 512, false), Outcome::Refused);
    single.0.run(400);
    assert_eq!(single.sent().len(), 64);
    // 32 units beyond the limit wait, and what is behind them.
    single.put(ack(64, 64), &[]);
    single.0.run(300);
    for _ in 0..30 {
        assert_eq!(small(&mut single), Outcome::Committed);
    }
    assert_eq!(single.offer(1, Type::Data, 257, true), Outcome::Committed);
    assert_eq!(small(&mut single), Outcome::Refused);
    assert_eq!(single.offer(1, Type::Data, 0, false), Outcome::Committed);
    assert_eq!(single.offer(1, Type::Data, 0, true), Outcome::Refused);
    single.0.run(10_000);
    assert!(single.sent().is_empty() && single.free() == 128 - 33);
    // One at a time, then more; the last one needs two.
    single.put(ack(64, 65), &[]);
    single.0.run(100);
    assert_eq!(single.sent().len(), 1);
    single.put(ack(64, 95), &[]);
    single.0.run(500);
    assert_eq!(single.sent().len(), 29);
    single.put(ack(94, 95), &[]);
    single.0.run(5_000);
    assert!(single.sent().is_empty() && single.free() == 128 - 3);
    single.put(ack(94, 96), &[]);
    single.0.run(100);
    assert_eq!(single.sent().iter().map(|header| header.length).collect::<Vec<_>>(), [257, 0]);
    // An older limit is not taken back, a newer one counts modulo 256.
    single.put(ack(95, 90), &[]);
    single.put(ack(95, 96 + 127), &[]);
    single.put(ack(95, 100), &[]);
    for sequence in 0..4 {
        assert_eq!(single.offer(1, Type::Data, 4096, true), Outcome::Committed);
        single.0.run(600);
        assert_eq!(single.sent().len(), 1);
        single.put(ack(96 + sequence, 96 + 127), &[]);
    }
    single.put(ack(99, 2), &[]);
    for sequence in 0..6 {
        assert_eq!(single.offer(1, Type::Data, 4096, true), Outcome::Committed);
        single.0.run(600);
        assert_eq!(single.sent().len(), 1);
        single.put(ack(100 + sequence, 2), &[]);
    }
    assert_eq!(single.free(), 128);
}

/// Credits that come in any cycle around the decision that a frame must wait for them: it is sent.
#[test]
fn credits_in_time() {
    for delay in 0..40 {
        let mut single = Single::opened(31);
        for _ in 0..64 {
            assert_eq!(single.offer(1, Type::ViAck, 0, true), Outcome::Committed);
        }
        single.0.run(400);
        single.put(Header { acknowledgement: 64, ..from_peer(Type::Ack) }, &[]);
        single.0.run(400);
        assert_eq!((single.sent().len(), single.free()), (64, 128));
        let header = Header { kind: Type::Fin as u8, flags: flag::SEQUENCED, ..Header::default() };
        single.0.nodes[0].outbox.push_back(Frame { peer: 1, header, payload: vec![] });
        single.0.run(delay);
        single.inject(Header { acknowledgement: 64, credit: 65, ..from_peer(Type::Ack) }, &[]);
        single.0.run(200);
        assert_eq!(single.kinds(), [Type::Fin], "delay {delay}");
    }
}

#[test]
fn events() {
    let mut single = Single::opened(28);
    let node = &mut single.0.nodes[0];
    node.refuse_messages = true;
    let flags = flag::SEQUENCED;
    let message = |n: u16| Header { length: 48, sequence: n, flags, ..from_peer(Type::Message) };
    single.put(message(0), &[9; 6]);
    single.0.run(200);
    assert!(single.kinds().contains(&Type::MessageRefused));
    // A full queue holds events back until it drains; they come in their order.
    single.0.nodes[0].events_full = true;
    single.put(from_peer(Type::MessageRefused), &[]);
    single.put(from_peer(Type::Rst), &[]);
    single.0.run(2_000);
    single.open(1, OWN, 8);
    single.put(Header { tag: 0, word: REMOTE + 1, ..from_peer(Type::Syn) }, &[]);
    single.0.nodes[0].events_full = false;
    assert!(single.take_events().is_empty());
    single.0.nodes[0].drain = Some(6);
    assert!(single.take_events().is_empty());
    single.0.nodes[0].drain = Some(5);
    let events = single.take_events();
    assert_eq!(events[..2], [(Kind::PeerDown, 1, 3), (Kind::PeerUp, 1, REMOTE + 1)]);
    assert_eq!(events[2..], [(Kind::MessageRefused, 1, 0)]);
    // Not wanted: forgotten.
    single.0.nodes[0].model.inputs.error_queue_valid = 0;
    single.put(Header { tag: TAG ^ 1, word: REMOTE + 1, ..from_peer(Type::Rst) }, &[]);
    let tag = (OWN ^ (REMOTE + 1)) as u16;
    single.put(Header { tag, ..from_peer(Type::Rst) }, &[]);
    single.0.run(2_000);
    single.0.nodes[0].model.inputs.error_queue_valid = 1;
    assert!(single.take_events().is_empty() && single.query(1) == PeerState::Closed);
}

#[test]
fn a_full_queue_of_any_number() {
    let mut single = Single::opened(34);
    let mut full = |queue, header: Header| {
        let node = &mut single.0.nodes[0];
        node.model.inputs.error_queue = queue;
        node.events_full = true;
        single.put(header, &[]);
        single.0.run(500);
        single.0.nodes[0].events_full = false;
        single.0.nodes[0].drain = Some(queue ^ 0x100);
        assert!(single.take_events().is_empty(), "queue {queue:#x} has no free entry yet");
        single.0.nodes[0].drain = Some(queue);
        single.take_events()
    };
    for queue in [0xffff, 0, 0xa5a5] {
        let refused = full(queue, from_peer(Type::MessageRefused));
        assert_eq!(refused, [(Kind::MessageRefused, 1, 0)]);
    }
    let reset = PeerDownReason::Reset as u32;
    assert_eq!(full(0x5a5a, from_peer(Type::Rst)), [(Kind::PeerDown, 1, reset)]);
}

#[test]
fn disabled() {
    let mut single = Single::opened(29);
    let counts = single.0.nodes[0].counts.clone();
    single.0.nodes[0].model.inputs.enable = 0;
    single.put(from_peer(Type::Rst), &[]);
    single.inject_beats(&[1, 2, 3]);
    single.0.run(50_000);
    assert!(single.sent().is_empty() && single.0.nodes[0].counts == counts);
    assert_eq!(single.query(1), PeerState::Open);
    // Sending and timers go on: two frames, and again at their time-out, keepalive, death.
    assert_eq!(single.offer(1, Type::Data, 8, true), Outcome::Committed);
    assert_eq!(single.offer(1, Type::Data, 300, true), Outcome::Committed);
    single.0.run(3_000);
    assert_eq!(single.kinds(), [Type::Data; 4]);
    single.0.nodes[0].model.inputs.enable = 1;
    single.put(Header { acknowledgement: 2, ..from_peer(Type::Ack) }, &[]);
    single.0.nodes[0].model.inputs.enable = 0;
    single.0.nodes[0].model.inputs.keepalive = 5_000;
    single.0.run(12_000);
    assert_eq!(single.kinds(), [Type::Ack; 2]);
    single.0.until(40_000, "death", |network| !network.nodes[0].kills.is_empty());
    single.expect_down(PeerDownReason::Dead);
}

#[test]
fn enabled_in_mid_frame() {
    let mut single = Single::opened(29);
    let counts = single.0.nodes[0].counts.clone();
    single.0.nodes[0].model.inputs.enable = 0;
    // Enabled in the middle of a frame: the rest of it is ignored too.
    single.inject_beats(&[3; 20]);
    single.0.run(10);
    single.0.nodes[0].model.inputs.keepalive = 0;
    single.0.nodes[0].model.inputs.enable = 1;
    single.0.run(50);
    assert_eq!(single.0.nodes[0].counts, counts);
}

#[test]
fn numbers_wrap() {
    let mut network = Network::new(2, 30);
    network.wire = true;
    network.open(0, 1, 64);
    for serial in 0..66_000 {
        let header = Header { kind: Type::Fin as u8, word: serial, flags: 8, ..Header::default() };
        network.nodes[0].outbox.push_back(Frame { peer: 1, header, payload: Vec::new() });
    }
    network.until(2_000_000, "66,000 frames", |network| network.nodes[1].inbox.len() == 66_000);
    let inbox = &network.nodes[1].inbox;
    assert!(inbox.iter().enumerate().all(|(n, frame)| frame.header.word == n as u32));
    assert_eq!(network.nodes[0].count(Counter::FramesRetransmitted), 0);
}

/// Frames that were staged for one channel are released under the next: they grant it nothing.
#[test]
fn late_releases() {
    let mut single = Single::opened(31);
    single.0.nodes[0].manners.read = false;
    for n in 0..3 {
        let header =
            Header { length: 8, sequence: n, flags: flag::SEQUENCED, ..from_peer(Type::Data) };
        single.put(header, &[1]);
    }
    single.put(from_peer(Type::Rst), &[]);
    single.open(1, OWN, 8);
    single.put(Header { tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, &[]);
    single.0.nodes[0].manners.read = true;
    single.0.run(1_000);
    assert_eq!(single.0.nodes[0].inbox.len(), 3);
    let header = Header { length: 8, flags: flag::SEQUENCED, ..from_peer(Type::Data) };
    single.put(header, &[1]);
    single.0.run(1_000);
    // One frame of this channel came and went: one unit more than granted.
    assert_eq!(
        single.sent().pop().map(|header| (header.acknowledgement, header.credit)),
        Some((1, 9))
    );
}

/// A frame that is acknowledged while it is being sent again stays until it has left.
#[test]
fn acknowledged_in_flight() {
    let mut single = Single::opened(32);
    assert_eq!(single.offer(1, Type::Data, 4096, true), Outcome::Committed);
    single.0.until(4_000, "a second start", |network| network.nodes[0].tx_beats > 600);
    single.0.nodes[0].tx_ready = false;
    single.put(Header { acknowledgement: 1, ..from_peer(Type::Ack) }, &[]);
    single.0.run(500);
    assert_eq!(single.free(), 112);
    // Its chunks would be the first to be used again, with other contents.
    let header = Header { kind: 1, length: 4096, flags: flag::SEQUENCED, ..Header::default() };
    single.0.nodes[0].outbox.push_back(Frame { peer: 1, header, payload: vec![8; 512] });
    single.0.run(1_000);
    single.0.nodes[0].tx_ready = true;
    single.0.run(2_000);
    single.put(Header { acknowledgement: 2, ..from_peer(Type::Ack) }, &[]);
    single.0.run(200);
    assert_eq!((single.free(), single.count(Counter::FramesRetransmitted)), (128, 1));
    assert_eq!(single.query(1), PeerState::Open);
}

/// All peers at once: each gets its own frames, one after the other, and goes down alone.
#[test]
fn all_peers() {
    let mut single = Single::new(33);
    single.0.nodes[0].model.inputs.retry_timeout = 100_000;
    let epoch = |peer: u8| REMOTE + u32::from(peer) * 0x101;
    for peer in 1..64 {
        single.open(peer, OWN, 1);
        let syn = Header { src_node: peer, tag: 0, word: epoch(peer), ..from_peer(Type::Syn) };
        single.put(syn, &[]);
    }
    let events = single.take_events();
    let ups: Vec<_> = (1..64).map(|peer| (Kind::PeerUp, peer, epoch(peer))).collect();
    assert_eq!(events, ups);
    single.0.run(1_000);
    single.sent();
    // One frame waits at each; then they all go.
    single.0.nodes[0].tx_ready = false;
    for peer in (1..64).rev() {
        assert_eq!(single.offer(peer, Type::Data, u16::from(peer), true), Outcome::Committed);
    }
    single.0.nodes[0].tx_ready = true;
    single.0.run(1_800);
    let mut sent = single.sent();
    sent.sort_by_key(|header| header.dst_node);
    let all: Vec<_> = sent.iter().map(|h| (h.dst_node, h.length, h.tag)).collect();
    let tag = |peer: u8| (OWN ^ epoch(peer)) as u16;
    let expected: Vec<_> = (1..64).map(|peer| (peer, u16::from(peer), tag(peer))).collect();
    assert_eq!(all, expected);
    // Every second one is acknowledged, the others are reset.
    for peer in 1..64 {
        let kind = if peer % 2 == 0 { Type::Ack } else { Type::Rst };
        let acknowledgement = 1;
        single.put(
            Header { src_node: peer, tag: tag(peer), acknowledgement, ..from_peer(kind) },
            &[],
        );
    }
    single.0.run(20_000);
    assert_eq!(single.free(), 128);
    let mut killed: Vec<u8> = single.0.nodes[0].kills.iter().map(|kill| kill.1).collect();
    killed.sort_unstable();
    assert_eq!(killed, (0..32).map(|n| 2 * n + 1).collect::<Vec<u8>>());
    assert_eq!(single.count(Counter::PeersLost), 32);
    assert_eq!(single.query(62), PeerState::Open);
    assert_eq!(single.query(63), PeerState::Closed);
}

/// Closes the channel and opens it again, as its peer does; what must be done meanwhile is done in
/// `wait`, if PeerOpen waits for it.
fn reopen(single: &mut Single, epoch: u32, wait: impl FnOnce(&mut Single)) {
    assert_eq!(single.admin(1, 1, 0, 0).0, AdminStatus::Ok as u8);
    let node = &mut single.0.nodes[0];
    let before = node.answers.len();
    node.admin.push_back((0, 1, epoch, 32));
    single.0.run(5_000);
    wait(single);
    single.0.until(20_000, "PeerOpen", |network| network.nodes[0].answers.len() > before);
    assert_eq!(single.0.nodes[0].answers[before].0, AdminStatus::Ok as u8);
    single.put(Header { tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, &[]);
    assert_eq!(single.query(1), PeerState::Open);
}

/// Frames that the receive engine has not taken over two openings give no credits to the third
/// channel, though it has the epoch bit of the first.
#[test]
fn credits_of_the_channel_before_the_last() {
    let mut single = Single::opened(27);
    single.0.nodes[0].manners.read = false;
    for sequence in 0..3 {
        let header = Header { length: 1024, flags: flag::SEQUENCED, ..from_peer(Type::Data) };
        single.put(Header { sequence, ..header }, &[5; 128]);
    }
    reopen(&mut single, OWN + 1, |_| {});
    reopen(&mut single, OWN + 2, |single| single.0.nodes[0].manners.read = true);
    single.0.nodes[0].manners.read = true;
    single.0.run(5_000);
    assert_eq!(single.0.nodes[0].inbox.len(), 3);
    single.sent();
    assert_eq!(single.offer(1, Type::Data, 8, true), Outcome::Committed);
    single.0.run(100);
    assert_eq!(single.sent().pop().unwrap().credit, 32);
}

/// The same for a reservation of the pool, behind a frame that is being filled: it is not of the
/// third channel.
#[test]
fn a_reservation_of_the_channel_before_the_last() {
    let mut single = Single::opened(28);
    single.open(2, OWN, 32);
    single.put(Header { tag: 0, word: REMOTE, src_node: 2, ..from_peer(Type::Syn) }, &[]);
    single.0.run(200);
    let header = Header { kind: 1, length: 2048, flags: flag::SEQUENCED, ..Header::default() };
    let node = &mut single.0.nodes[0];
    node.manners.beat_pause = 1.0;
    node.outbox.push_back(Frame { peer: 2, header, payload: vec![1; 256] });
    single.0.run(50);
    // While it is filled, another is asked for.
    let node = &mut single.0.nodes[0];
    node.ask_ahead(Frame { peer: 1, header, payload: vec![2; 256] });
    single.0.run(50);
    assert!(single.0.nodes[0].granted_ahead());
    let fill = |single: &mut Single| {
        single.0.nodes[0].manners.beat_pause = 0.0;
        single.0.run(2_000);
    };
    reopen(&mut single, OWN + 1, |_| {});
    reopen(&mut single, OWN + 2, fill);
    fill(&mut single);
    let to_one = single.sent().into_iter().filter(|h| h.dst_node == 1 && h.kind == 1).count();
    assert_eq!((to_one, single.0.nodes[0].outcomes.len()), (0, 2), "sent on the third channel");
}
