//! Section 7: the channel, against a peer that is no device.

use nic_regs::admin::{AdminStatus, Opcode, PeerState};
use nic_regs::counter::Counter;
use nic_regs::csr::{CONTROL, KEEPALIVE, RETRY_LIMIT};
use nic_regs::event::{Kind, PeerDownReason};
use nic_regs::frame::{Header, Type, VERSION, flag};
use nic_regs::limits::{
    CREDITS_AHEAD, LINK_PAYLOAD_BYTES, POOL_AHEAD_CHUNKS, POOL_CHUNK_COUNT, POOL_PEER_CHUNKS,
};
use nic_regs::vi::{Reliability, State, StopReason};

use super::raw::{EPOCH, OTHER_NODE, OTHER_VI, Raw};
use super::support::*;
use crate::device::Device;
use crate::frame::Frame;
use crate::staging::Staged;

const DELIVERY: Reliability = Reliability::Delivery;

#[test]
fn a_syn_is_repeated_and_then_the_peer_is_dead() {
    let mut raw = Raw::closed(DELIVERY);
    raw.w.hosts[A].reg_write(RETRY_LIMIT::OFFSET, 4);
    raw.w.open(A, 64);
    raw.run(2000 * 15 - 100);
    let syns = raw.take(Type::Syn);
    assert_eq!(syns.len(), 4);
    // Its word is an epoch of this run.
    let expected = Header {
        credit: 64,
        acknowledgement: LINK_PAYLOAD_BYTES as u16,
        word: syns[0].word,
        kind: Type::Syn as u8,
        version: VERSION,
        src_node: NODES[A],
        dst_node: NODES[B],
        ..Header::default()
    };
    assert!(syns.iter().all(|syn| *syn == expected), "{syns:?}");
    assert_eq!(raw.w.peer(A), PeerState::Opening);
    raw.run(200);
    assert_eq!(raw.w.peer(A), PeerState::Closed);
    let events = raw.w.hosts[A].events(ERRORS);
    let kinds: Vec<u8> = events.iter().map(|e| e.kind).collect();
    assert_eq!(kinds, [Kind::ViError as u8, Kind::PeerDown as u8]);
    assert_eq!(events[1].word1, PeerDownReason::Dead as u32);
    assert_eq!(raw.count(Counter::PeersLost), 1);
    assert_eq!(raw.w.hosts[A].vi(A), State::Error);
}

#[test]
fn the_ways_to_open() {
    let mut raw = Raw::closed(DELIVERY);
    raw.send(Header { word: EPOCH, ..raw.kind(Type::Syn) }, &[]);
    assert_eq!((raw.w.peer(A), raw.got.len()), (PeerState::Closed, 0));
    // SYN-ACK with a wrong tag, then with ours.
    let mut raw = Raw::opening(DELIVERY);
    let answer = Header { word: EPOCH, ..raw.kind(Type::SynAck) };
    raw.send(Header { tag: raw.tag ^ 1, ..answer }, &[]);
    raw.send(Header { kind: Type::Rst as u8, ..answer }, &[]);
    raw.send(Header { kind: Type::Ack as u8, ..answer }, &[]);
    assert_eq!((raw.w.peer(A), raw.got.len()), (PeerState::Opening, 0));
    assert_eq!(raw.count(Counter::DropNode), 1);
    raw.send(answer, &[]);
    assert_eq!((raw.w.peer(A), raw.got.len()), (PeerState::Open, 0));
    let event = raw.w.hosts[A].events(ERRORS)[0];
    assert_eq!((event.kind, event.index), (Kind::PeerUp as u8, NODES[B].into()));
    assert_eq!(event.word1, EPOCH);
    // Another SYN-ACK is ignored, the same SYN is answered again, another SYN is a restart.
    raw.send(answer, &[]);
    assert_eq!(raw.got.len(), 0);
    raw.send(Header { word: EPOCH, ..raw.kind(Type::Syn) }, &[]);
    assert_eq!(raw.take(Type::SynAck).len(), 1);
    raw.send(Header { word: EPOCH ^ 1 << 20, ..raw.kind(Type::Syn) }, &[]);
    assert_eq!((raw.w.peer(A), raw.got.len()), (PeerState::Closed, 0));
    assert_eq!(raw.down(), Some(PeerDownReason::Restarted as u32));
    assert_eq!(raw.w.hosts[A].vi(A), State::Error);
}

#[test]
fn another_version_ends_the_opening_only() {
    for kind in [Type::Syn, Type::SynAck] {
        let mut raw = Raw::opening(DELIVERY);
        raw.send(Header { version: 2, dst_node: 1, ..raw.kind(kind) }, &[]);
        raw.send(Header { version: 2, ..raw.kind(Type::Ack) }, &[]);
        assert_eq!(raw.w.peer(A), PeerState::Opening);
        raw.send(Header { version: 2, ..raw.kind(kind) }, &[]);
        assert_eq!(raw.down(), Some(PeerDownReason::Version as u32));
        assert_eq!(raw.count(Counter::DropVersion), 3);
        let mut raw = Raw::open(DELIVERY);
        raw.send(Header { version: 0, ..raw.kind(kind) }, &[]);
        assert_eq!(raw.w.peer(A), PeerState::Open);
    }
}

#[test]
fn what_is_wrong_first_is_what_is_counted() {
    let mut raw = Raw::open(DELIVERY);
    raw.w.hosts[A].post(VIS[A], Recv, 0, &[(0x2000, 64)]);
    let good = Header { flags: flag::FIRST | flag::LAST | flag::SEQUENCED, ..raw.only() };
    let received = raw.count(Counter::FramesReceived);
    let mut beats = Frame { header: good, payload: vec![] }.to_beats();
    beats[2] ^= 1 << 63;
    raw.send_beats(&beats);
    assert_eq!(raw.count(Counter::DropCrc), 1);
    raw.send_beats(&[0xffff_ffff]);
    raw.send_beats(&[0]);
    assert_eq!((raw.count(Counter::DropCrc), raw.count(Counter::DropLength)), (2, 1));
    let bad = Header { version: 9, dst_node: 0, tag: 0, ..good };
    raw.send(Header { kind: 9, ..bad }, &[]);
    let long = Frame { header: Header { length: 8, ..bad }, payload: vec![] }.to_beats();
    raw.send_beats(&long);
    assert_eq!(raw.count(Counter::DropLength), 3);
    raw.send(bad, &[]);
    assert_eq!(raw.count(Counter::DropVersion), 1);
    raw.send(Header { dst_node: NODES[A] ^ 64, ..good }, &[]);
    raw.send(Header { src_node: 64, ..good }, &[]);
    assert_eq!(raw.count(Counter::DropNode), 2);
    assert_eq!(raw.count(Counter::FramesReceived), received);
    assert_eq!(raw.got.len(), 0);
    raw.send(Header { src_node: 33, tag: 0x1234, ..good }, &[]);
    assert_eq!(raw.count(Counter::DropNode), 3);
    raw.send(Header { tag: raw.tag ^ 0x100, ..good }, &[]);
    assert_eq!(raw.count(Counter::DropTag), 1);
    let resets = raw.take(Type::Rst);
    let resets: Vec<_> = resets.iter().map(|h| (h.dst_node, h.tag, h.flags)).collect();
    assert_eq!(resets, [(33, 0x1234, 0), (NODES[B], raw.tag ^ 0x100, 0)]);
    assert_eq!(raw.count(Counter::ResetsSent), 2);
    assert_eq!(raw.count(Counter::FramesReceived), received + 2);
    assert_eq!(raw.w.hosts[A].status(0), 0);
    raw.next(good, &[]);
    assert_eq!(raw.w.hosts[A].status(0), 0x1_0001);
}

#[test]
fn only_a_reset_with_our_tag_counts() {
    let mut raw = Raw::open(DELIVERY);
    raw.send(Header { tag: raw.tag ^ 1, ..raw.kind(Type::Rst) }, &[]);
    assert_eq!(raw.w.peer(A), PeerState::Open);
    raw.send(raw.kind(Type::Rst), &[]);
    assert_eq!(raw.down(), Some(PeerDownReason::Reset as u32));
    raw.send(raw.kind(Type::Rst), &[]);
    assert_eq!(raw.got.len(), 0);
}

#[test]
fn order_duplicates_and_acknowledgements() {
    let mut raw = Raw::open(DELIVERY);
    for i in 0..10 {
        raw.w.hosts[A].post(VIS[A], Recv, 64 * i, &[(0x2000, 64)]);
    }
    raw.run(20);
    raw.next(raw.only(), &[]);
    assert_eq!(raw.take(Type::Ack).len(), 0);
    raw.run(250);
    let ack = raw.take(Type::Ack);
    assert_eq!(ack.len(), 1);
    assert_eq!((ack[0].acknowledgement, ack[0].credit, ack[0].flags), (1, 65, 0));
    // A duplicate: acknowledged at once.
    raw.sequence = 0;
    raw.next(raw.only(), &[]);
    assert_eq!(raw.count(Counter::DropDuplicate), 1);
    assert_eq!(raw.take(Type::Ack)[0].acknowledgement, 1);
    // Out of sequence: one NAK for the expected number, however many frames follow.
    for sequence in [2, 3, 4] {
        raw.sequence = sequence;
        raw.next(raw.only(), &[]);
    }
    assert_eq!(raw.count(Counter::DropOrder), 3);
    let naks = raw.take(Type::Ack);
    assert_eq!(naks.len(), 1);
    assert_eq!((naks[0].acknowledgement, naks[0].flags), (1, flag::NAK));
    for sequence in [1, 2, 4] {
        raw.sequence = sequence;
        raw.next(raw.only(), &[]);
    }
    let naks: Vec<_> =
        raw.take(Type::Ack).iter().filter(|h| h.flags != 0).map(|h| h.acknowledgement).collect();
    assert_eq!(naks, [3]);
    assert_eq!(raw.count(Counter::RecvsCompleted), 3);
}

#[test]
fn a_frame_that_does_not_fit_into_staging_is_acknowledged_and_asked_for_later() {
    let mut raw = Raw::open(DELIVERY);
    raw.run(20);
    let unmatched = raw.count(Counter::Unmatched);
    // Frames of nobody keep staging full for a while.
    let header = Header { kind: Type::Fin as u8, flags: flag::SEQUENCED, ..Header::default() };
    for _ in 0..200 {
        let frame = Frame { header: Header { dst_vi: 9_999, ..header }, payload: Vec::new() };
        raw.w.hosts[A].model.channels.staging.push(Staged {
            frame,
            started: 0,
            incarnation: u64::MAX,
        });
    }
    raw.next(raw.only(), &[]);
    assert_eq!(raw.count(Counter::DropStaging), 1);
    let ack = raw.take(Type::Ack);
    assert_eq!(ack.iter().map(|h| (h.acknowledgement, h.flags)).collect::<Vec<_>>(), [(0, 0)]);
    // An unsequenced frame has space of its own; what is behind the first one causes no NAK.
    raw.send(raw.only(), &[]);
    raw.next(raw.only(), &[]);
    assert_eq!((raw.count(Counter::DropStaging), raw.count(Counter::DropOrder)), (1, 1));
    raw.run(300);
    assert_eq!(raw.count(Counter::Unmatched) - unmatched, 201);
    let naks = raw.take(Type::Ack);
    let naks: Vec<_> = naks.iter().map(|h| (h.acknowledgement, h.flags)).collect();
    assert_eq!(naks, [(0, flag::NAK)]);
}

#[test]
fn a_nak_retransmits_once_for_each_number() {
    let mut raw = Raw::open(DELIVERY);
    for i in 0..3 {
        raw.w.hosts[A].post(VIS[A], Send, 64 * i, &[(0x2000, 100)]);
    }
    raw.run(200);
    raw.take(Type::Data);
    raw.ack = 1;
    for _ in 0..3 {
        raw.send(Header { flags: flag::NAK, ..raw.kind(Type::Ack) }, &[]);
    }
    let again: Vec<_> = raw.take(Type::Data).iter().map(|h| h.sequence).collect();
    assert_eq!(again, [1, 2]);
    raw.ack = 2;
    raw.send(Header { flags: flag::NAK, ..raw.kind(Type::Ack) }, &[]);
    let again: Vec<_> = raw.take(Type::Data).iter().map(|h| h.sequence).collect();
    assert_eq!(again, [2]);
    raw.ack = 3;
    raw.send(raw.kind(Type::Ack), &[]);
    raw.run(100_000);
    assert_eq!(raw.take(Type::Data), []);
}

#[test]
fn credits_hold_frames_back() {
    let mut raw = Raw::opening(DELIVERY);
    raw.credit = 20;
    raw.send(Header { word: EPOCH, tag: 0, ..raw.kind(Type::Syn) }, &[]);
    raw.take(Type::SynAck);
    // A full frame is worth 16 credits, a short one 1. One is sent, two wait: 32 + 16 are at most
    // CREDITS_AHEAD beyond 20, and no more are.
    raw.w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 4096 * 4 + 8)]);
    raw.run(1500);
    assert_eq!(raw.take(Type::Data).len(), 1);
    assert!(!raw.w.hosts[A].model.busy());
    raw.ack = 1;
    raw.send(raw.kind(Type::Ack), &[]);
    let text = [0; 12];
    let node = u32::from(NODES[B]);
    let send = |raw: &mut Raw| raw.w.command(A, Opcode::MessageSend, node, text);
    for _ in 48..20 + CREDITS_AHEAD {
        assert_eq!(send(&mut raw), AdminStatus::Ok);
    }
    assert_eq!(send(&mut raw), AdminStatus::Busy);
    // What entered behind frames without credits waits behind them.
    raw.run(1000);
    assert_eq!(raw.take(Type::Message).len(), 0);
    raw.credit = 31;
    raw.send(raw.kind(Type::Ack), &[]);
    raw.run(1000);
    assert_eq!(raw.take(Type::Data).len(), 0);
    raw.credit = 32;
    raw.send(raw.kind(Type::Ack), &[]);
    raw.run(1000);
    assert_eq!(raw.take(Type::Data).len(), 1);
    // An old limit is not taken back.
    raw.credit = 20;
    raw.send(raw.kind(Type::Ack), &[]);
    (raw.ack, raw.credit) = (2, 50);
    raw.send(raw.kind(Type::Ack), &[]);
    raw.run(1000);
    assert_eq!((raw.take(Type::Data).len(), raw.take(Type::Message).len()), (1, 2));
    (raw.ack, raw.credit) = (5, 69);
    raw.send(raw.kind(Type::Ack), &[]);
    raw.run(1000);
    assert_eq!((raw.take(Type::Data).len(), raw.take(Type::Message).len()), (2, 2));
    assert_eq!(raw.w.hosts[A].count(Counter::SendsCompleted), 1);
    assert_eq!(raw.count(Counter::DescriptorsFetched), 1, "it is kept while it waits");
}

/// What waits for credits leaves pool space to others: a peer that gives none holds less than half of the
/// pool, however many there are of its kind.
#[test]
fn frames_ahead_of_their_credits_leave_half_of_the_pool() {
    let mut raw = Raw::opening(DELIVERY);
    raw.other_peer();
    for node in [NODES[B], OTHER_NODE] {
        let syn = Header { word: EPOCH, tag: 0, src_node: node, ..raw.kind(Type::Syn) };
        raw.send(Header { credit: 8, ..syn }, &[]);
    }
    // Of each peer 8 units have credits, 32 may wait; together 64 chunks.
    for i in 0..80 {
        raw.w.hosts[A].post(VIS[A], Send, 64 * i, &[(0x8000, 8)]);
        raw.w.hosts[A].post(OTHER_VI, Send, 0x2000 + 64 * i, &[(0x8000, 8)]);
    }
    raw.run(1000);
    assert_eq!(raw.take(Type::Data).len(), 16);
    // A send is complete when its frame is in the pool, and nothing was acknowledged.
    let entered = raw.count(Counter::SendsCompleted) as usize;
    assert_eq!(entered, POOL_CHUNK_COUNT - POOL_AHEAD_CHUNKS);
}

/// The last credit counts, also where nothing may be sent ahead.
#[test]
fn the_last_credit_is_used() {
    let mut raw = Raw::opening(DELIVERY);
    raw.other_peer();
    for (node, credit) in [(NODES[B], 127), (OTHER_NODE, 8)] {
        let syn = Header { word: EPOCH, tag: 0, src_node: node, ..raw.kind(Type::Syn) };
        raw.send(Header { credit, ..syn }, &[]);
    }
    // One peer takes its whole share of the pool, which leaves no more than others may take ahead.
    for i in 0..80 {
        raw.w.hosts[A].post(VIS[A], Send, 64 * i, &[(0x8000, 8)]);
    }
    raw.run(1000);
    assert_eq!(raw.count(Counter::SendsCompleted) as usize, POOL_PEER_CHUNKS);
    for i in 0..80 {
        raw.w.hosts[A].post(OTHER_VI, Send, 0x2000 + 64 * i, &[(0x8000, 8)]);
    }
    raw.run(1000);
    assert_eq!(raw.count(Counter::SendsCompleted) as usize, POOL_PEER_CHUNKS + 8);
}

#[test]
fn a_peer_takes_no_more_than_its_share_of_the_pool() {
    let mut raw = Raw::open(DELIVERY);
    raw.credit = 127;
    raw.send(raw.kind(Type::Ack), &[]);
    // An empty one takes a chunk, too.
    for i in 0..80 {
        raw.w.hosts[A].post(VIS[A], Send, 64 * i, &[(0x4000, if i % 2 == 0 { 8 } else { 0 })]);
    }
    raw.run(1500);
    assert_eq!(raw.take(Type::Data).len(), POOL_PEER_CHUNKS);
    // Control frames ignore the share.
    raw.w.ok(A, Opcode::MessageSend, NODES[B].into(), [0; 12]);
    raw.run(100);
    assert_eq!(raw.take(Type::Message).len(), 1);
    raw.ack = 10;
    raw.send(raw.kind(Type::Ack), &[]);
    raw.run(200);
    assert_eq!(raw.take(Type::Data).len(), 9);
}

#[test]
fn unsequenced_frames_only_need_staging_and_control_types_must_be_sequenced() {
    let mut raw = Raw::open(Reliability::Unreliable);
    raw.w.hosts[A].post(VIS[A], Recv, 0, &[(0x2000, 64)]);
    raw.send(Header { sequence: 0x700, ..raw.only() }, b"abc");
    assert_eq!(raw.w.hosts[A].status(0), 0x1_0001);
    for kind in [Type::Fin, Type::ViRefuse, Type::ViAck] {
        raw.send(raw.kind(kind), &[]);
    }
    raw.send(raw.kind(Type::Message), &[0; 48]);
    raw.next(raw.kind(Type::Message), &[0; 40]);
    assert_eq!(raw.count(Counter::DropLength), 5);
    assert_eq!(raw.w.hosts[A].vi(A), State::Connected);
}

#[test]
fn closing_sends_a_reset_and_stops_the_vis() {
    let mut w = Testbench::pair(DELIVERY);
    w.ok(A, Opcode::PeerClose, NODES[B].into(), [0; 12]);
    w.settle();
    for (side, reason) in [(A, PeerDownReason::Closed), (B, PeerDownReason::Reset)] {
        assert_eq!(w.peer(side), PeerState::Closed);
        let events = w.hosts[side].events(ERRORS);
        assert_eq!(
            (events[0].kind, events[0].word1),
            (Kind::ViError as u8, StopReason::PeerDown as u32)
        );
        assert_eq!(events[0].word2, nic_regs::desc::status::TRANSPORT_ERROR);
        assert_eq!((events[1].kind, events[1].word1), (Kind::PeerDown as u8, reason as u32));
        assert_eq!(w.hosts[side].count(Counter::PeersLost), side as u32);
    }
    reconnect(&mut w);
}

/// Opens the channels again, connects the VIs again, and sends a message.
fn reconnect(w: &mut Testbench) {
    w.open_channels();
    for side in [A, B] {
        w.ok(side, Opcode::ViDisconnect, VIS[side].into(), [0; 12]);
        w.hosts[side].unlink(VIS[side]);
    }
    w.settle();
    w.hosts[B].post(VIS[B], Recv, 0, &[(0x2000, 64)]);
    w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 64)]);
    for side in [B, A] {
        w.ok(side, Opcode::ViConnect, VIS[side].into(), connect_words(side));
    }
    w.settle();
    assert_eq!(w.hosts[B].status(0), 0x1_0001);
}

#[test]
fn a_silent_peer_is_dead_within_a_bound_and_can_be_opened_again() {
    let mut w = Testbench::pair(DELIVERY);
    w.hosts[A].reg_write(KEEPALIVE::OFFSET, 30_000);
    w.frozen[B] = true;
    w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 64)]);
    w.run(2000 * 256);
    assert_eq!(w.peer(A), PeerState::Closed);
    assert_eq!(w.hosts[A].vi(A), State::Error);
    w.hosts[A].events(ERRORS);
    // B goes on from where it was: its frames are answered with RST.
    w.frozen[B] = false;
    w.hosts[B].post(VIS[B], Send, 0, &[(0x2000, 64)]);
    w.run(5000);
    assert_eq!(w.peer(B), PeerState::Closed);
    w.hosts[B].events(ERRORS);
    w.hosts[A].reg_write(KEEPALIVE::OFFSET, 0);
    reconnect(&mut w);
}

#[test]
fn a_restart_of_a_peer_is_noticed() {
    let mut w = Testbench::pair(DELIVERY);
    w.hosts[B].reg_write(CONTROL::OFFSET, 2);
    w.step();
    w.bring_up(B);
    w.open(B, 64);
    w.until("down", |w| w.peer(A) == PeerState::Closed);
    let events = w.hosts[A].events(ERRORS);
    assert_eq!(events[0].kind, Kind::ViError as u8);
    assert_eq!(
        (events[1].kind, events[1].word1),
        (Kind::PeerDown as u8, PeerDownReason::Restarted as u32)
    );
    w.open(A, 64);
    w.until("open", |w| w.peer(A) == PeerState::Open && w.peer(B) == PeerState::Open);
}
