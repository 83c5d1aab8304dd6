//! Sections 7.2, 7.4, 7.5: staging memory, credits and pool, to the last unit.

use nic_regs::admin::{AdminStatus, Opcode, PeerState};
use nic_regs::counter::Counter;
use nic_regs::csr::ACK_DELAY;
use nic_regs::frame::{Header, Type, VERSION, flag};
use nic_regs::limits::{POOL_CHUNK_COUNT, POOL_PEER_CHUNKS, POOL_RESERVED_CHUNKS};
use nic_regs::vi::Reliability;

use super::raw::{EPOCH, OTHER_NODE, OTHER_VI, Raw};
use super::support::*;
use crate::channel::Channels;
use crate::context::Context;
use crate::frame::{Assembled, Frame};
use crate::work_queue::WorkQueues;

const DELIVERY: Reliability = Reliability::Delivery;

/// A sequenced frame that is consumed without effect.
fn whole(raw: &Raw, sequence: u16, length: u16) -> Assembled {
    let flags = flag::SEQUENCED;
    let header = Header { flags, sequence, length, ..raw.kind(Type::Data) };
    Ok((Frame { header, payload: vec![0; length.into()] }, 0))
}

/// Uses the channels of side A in the cycle of the last step.
fn on_channels(raw: &mut Raw, f: impl FnOnce(&mut Channels, &mut WorkQueues, &mut Context<'_>)) {
    let now = raw.w.now - 1;
    let Host { model, memory, .. } = &mut raw.w.hosts[A];
    let cx = &mut Context { now, host: memory, monitor: &mut model.monitor };
    f(&mut model.channels, &mut model.queues, cx);
}

fn accept(raw: &mut Raw, frame: Assembled) {
    on_channels(raw, |channels, queues, cx| channels.accept(frame, queues, cx));
}

/// Frames that arrive faster than they can be consumed.
fn burst(raw: &mut Raw, frames: &[(u16, u16)]) {
    for &(sequence, length) in frames {
        let frame = whole(raw, sequence, length);
        accept(raw, frame);
    }
}

#[test]
fn a_frame_that_finds_no_staging_memory_is_dropped_and_retransmitted() {
    let mut raw = Raw::open(DELIVERY);
    // 16 units each, then 15.
    burst(&mut raw, &[(0, 4096), (1, 4096), (2, 4096), (3, 15 * 256)]);
    // 2 units are one too many, 1 fills it exactly.
    burst(&mut raw, &[(4, 257)]);
    assert_eq!(raw.count(Counter::DropStaging), 1);
    burst(&mut raw, &[(4, 256)]);
    assert_eq!(raw.count(Counter::DropStaging), 1);
    // A frame without payload takes one, too.
    burst(&mut raw, &[(5, 0), (5, 4096)]);
    assert_eq!(raw.count(Counter::DropStaging), 3);
    raw.run(10);
    burst(&mut raw, &[(5, 4096)]);
    assert_eq!(raw.count(Counter::DropStaging), 3);
    assert_eq!(raw.count(Counter::DropOrder), 0);
}

#[test]
fn credits_that_are_released_after_the_acknowledgement_are_returned_too() {
    let mut raw = Raw::open(DELIVERY);
    raw.w.hosts[A].reg_write(ACK_DELAY::OFFSET, 0);
    raw.run(10);
    let frames: Vec<_> = (0..30).map(|i| (i, 300)).collect();
    burst(&mut raw, &frames);
    raw.run(300);
    let acks = raw.take(Type::Ack);
    assert_eq!(acks[0].acknowledgement, 30);
    assert_ne!(acks[0].credit, 64 + 30 * 2);
    assert_eq!(acks.last().unwrap().credit, 64 + 30 * 2);
}

#[test]
fn frames_of_an_earlier_channel_release_nothing() {
    let mut raw = Raw::open(DELIVERY);
    let syn = Header { word: EPOCH, tag: 0, ..raw.kind(Type::Syn) };
    let reset = Frame { header: raw.kind(Type::Rst), payload: vec![] };
    let frame = whole(&raw, 0, 300);
    accept(&mut raw, frame);
    accept(&mut raw, Ok((reset, 0)));
    assert_eq!(raw.w.hosts[A].model.peer_state(NODES[B]), PeerState::Closed);
    on_channels(&mut raw, |channels, _, cx| channels.open(NODES[B], 0x7777, 64, cx));
    accept(&mut raw, Ok((Frame { header: syn, payload: vec![] }, 0)));
    assert_eq!(raw.w.hosts[A].model.peer_state(NODES[B]), PeerState::Open);
    raw.run(600);
    assert!(raw.got.iter().all(|f| f.header.credit == 64));
}

#[test]
fn an_old_credit_limit_is_not_taken_back() {
    let mut raw = Raw::opening(DELIVERY);
    raw.credit = 1;
    raw.send(Header { word: EPOCH, tag: 0, ..raw.kind(Type::Syn) }, &[]);
    for credit in [3, 1] {
        raw.send(Header { credit, ..raw.kind(Type::Ack) }, &[]);
    }
    for i in 0..4 {
        raw.w.hosts[A].post(VIS[A], Send, 64 * i, &[(0x2000, 8)]);
    }
    raw.run(200);
    assert_eq!(raw.take(Type::Data).len(), 3);
}

#[test]
fn data_leaves_the_last_chunks_to_control_frames() {
    let mut raw = Raw::open(DELIVERY);
    raw.other_peer();
    let syn = Header {
        version: VERSION,
        src_node: OTHER_NODE,
        word: 5,
        credit: 127,
        ..raw.kind(Type::Syn)
    };
    raw.send(syn, &[]);
    for i in 0..70 {
        raw.w.hosts[A].post(VIS[A], Send, 64 * i, &[(0x8000, 8)]);
        raw.w.hosts[A].post(OTHER_VI, Send, 0x2000 + 64 * i, &[(0x8000, 8)]);
    }
    raw.run(1600);
    let sent = raw.take(Type::Data);
    let to = |node| sent.iter().filter(|h| h.dst_node == node).count();
    let most = POOL_CHUNK_COUNT - POOL_RESERVED_CHUNKS;
    assert_eq!(to(NODES[B]) + to(OTHER_NODE), most);
    assert!(to(NODES[B]) <= POOL_PEER_CHUNKS && to(OTHER_NODE) <= POOL_PEER_CHUNKS);
    for _ in 0..POOL_RESERVED_CHUNKS {
        raw.w.ok(A, Opcode::MessageSend, OTHER_NODE.into(), [0; 12]);
    }
    assert_eq!(
        raw.w.command(A, Opcode::MessageSend, OTHER_NODE.into(), [0; 12]),
        AdminStatus::Busy
    );
}

#[test]
fn a_channel_that_closes_while_a_frame_is_on_the_link_keeps_its_books() {
    let mut w = Testbench::pair(Reliability::Unreliable);
    for round in 0..20 {
        w.hosts[A].post(VIS[A], Send, 64 * (round % 8), &[(0x8000, 16 * 1024)]);
        w.run(100 + 20 * round);
        w.ok(A, Opcode::PeerClose, NODES[B].into(), [0; 12]);
        w.settle();
        for side in [A, B] {
            w.hosts[side].events(ERRORS);
            let consumer = w.hosts[side].model.snapshot().events[0].unwrap().0;
            w.hosts[side].ring_events(DOMAIN, ERRORS, consumer, false);
        }
        w.open_channels();
        for side in [A, B] {
            w.ok(side, Opcode::ViDisconnect, VIS[side].into(), [0; 12]);
            w.hosts[side].unlink(VIS[side]);
            w.ok(side, Opcode::ViConnect, VIS[side].into(), connect_words(side));
        }
    }
    w.hosts[B].post(VIS[B], Recv, 0, &[(0x2000, 0x8000)]);
    w.hosts[A].post(VIS[A], Send, 0, &[(0x8000, 16 * 1024)]);
    w.settle();
    assert_eq!(w.hosts[B].status(0), 0x1_0001);
}
