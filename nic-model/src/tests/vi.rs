//! Section 6 and 8: connections that end.

use nic_regs::admin::{AdminStatus, Opcode};
use nic_regs::counter::Counter;
use nic_regs::desc::status;
use nic_regs::event::Kind;
use nic_regs::frame::Type;
use nic_regs::limits::CREDITS_AHEAD;
use nic_regs::vi::{Reliability, State, StopReason};

use super::raw::Raw;
use super::support::*;

const LEVELS: [Reliability; 3] =
    [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];

#[test]
fn a_disconnect_reaches_the_peer_behind_the_data() {
    for level in LEVELS {
        let mut w = Testbench::pair(level);
        for i in 0..3 {
            w.hosts[B].post(VIS[B], Recv, 64 * i, &[(0x2000, 64)]);
        }
        w.settle();
        w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 64)]);
        w.hosts[A].post(VIS[A], Send, 64, &[(0x2000, 64)]);
        w.until("sent", |w| w.hosts[A].status(64) == status::DONE);
        w.ok(A, Opcode::ViDisconnect, VIS[A].into(), [0; 12]);
        w.settle();
        assert_eq!([w.hosts[A].vi(A), w.hosts[B].vi(B)], [State::Idle, State::Error]);
        assert_eq!(w.hosts[B].status(64), status::DONE | status::OP_RECEIVE);
        let events = w.hosts[B].events(ERRORS);
        assert_eq!((events.len(), events[0].kind), (1, Kind::ViError as u8));
        assert_eq!(events[0].word1, StopReason::Disconnected as u32);
        assert_eq!(events[0].word2, status::DESC_FLUSHED_ERROR);
        assert_eq!(w.hosts[B].model.vi_snapshot(VIS[B]).posted, [0, 1]);
        let query = w.ok(B, Opcode::ViQuery, VIS[B].into(), [0; 12]);
        assert_eq!(query, State::Error as u32 | (StopReason::Disconnected as u32) << 4);
        w.ok(B, Opcode::ViDisconnect, VIS[B].into(), [0; 12]);
        w.settle();
        assert_eq!(w.hosts[B].model.vi_snapshot(VIS[B]).posted, [0, 0]);
        assert_eq!(w.ok(B, Opcode::ViQuery, VIS[B].into(), [0; 12]), 1);
        // Nothing is pending after Error.
        assert_eq!(w.hosts[A].vi(A), State::Idle);
        assert_eq!(w.hosts[A].count(Counter::Unmatched), 0);
        for side in [A, B] {
            w.ok(side, Opcode::ViDestroy, VIS[side].into(), [0; 12]);
        }
    }
}

/// Messages of an Unreliable VI are numbered from its connection on.
#[test]
fn numbers_of_messages_begin_with_the_connection() {
    let mut raw = Raw::open(Reliability::Unreliable);
    for round in 0..2 {
        for i in 0..3 {
            raw.w.hosts[A].post(VIS[A], Send, 64 * (3 * round + i), &[(0x2000, 10)]);
            raw.run(200);
        }
        let sent = raw.take(Type::Data);
        assert_eq!(sent.iter().map(|h| h.sequence >> 8).collect::<Vec<_>>(), [0, 1, 2]);
        raw.w.ok(A, Opcode::ViDisconnect, VIS[A].into(), [0; 12]);
        raw.w.hosts[A].unlink(VIS[A]);
        raw.run(200);
        raw.got.clear();
        raw.w.ok(A, Opcode::ViConnect, VIS[A].into(), connect_words(A));
    }
}

#[test]
fn a_disconnect_in_mid_message_forgets_it() {
    let mut w = Testbench::pair(Reliability::Delivery);
    w.hosts[B].post(VIS[B], Recv, 0, &[(0x2000, 100_000)]);
    w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 100_000)]);
    w.run(2000);
    let query = w.ok(A, Opcode::ViQuery, VIS[A].into(), [0; 12]);
    assert_eq!(query, 2 | 1 << 12);
    w.ok(A, Opcode::ViDisconnect, VIS[A].into(), [0; 12]);
    w.settle();
    assert_eq!([w.hosts[A].status(0), w.hosts[B].status(0)], [0, 0]);
    assert_eq!(w.hosts[B].vi(B), State::Error);
    w.ok(B, Opcode::ViDisconnect, VIS[B].into(), [0; 12]);
    for side in [A, B] {
        w.hosts[side].unlink(VIS[side]);
        w.ok(side, Opcode::ViConnect, VIS[side].into(), connect_words(side));
    }
    w.hosts[B].post(VIS[B], Recv, 0, &[(0x2000, 100)]);
    w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 100)]);
    w.settle();
    assert_eq!(w.hosts[B].status(0), status::DONE | status::OP_RECEIVE);
}

#[test]
fn a_pending_control_frame_keeps_a_vi_busy() {
    let mut raw = Raw::opening(Reliability::Delivery);
    raw.credit = 0;
    let syn = nic_regs::frame::Header { word: super::raw::EPOCH, ..raw.kind(Type::Syn) };
    raw.send(nic_regs::frame::Header { tag: 0, ..syn }, &[]);
    raw.take(Type::SynAck);
    // Nothing more may enter the channel and wait there.
    for _ in 0..CREDITS_AHEAD {
        raw.w.ok(A, Opcode::MessageSend, NODES[B].into(), [0; 12]);
    }
    raw.w.ok(A, Opcode::ViDisconnect, VIS[A].into(), [0; 12]);
    for opcode in [Opcode::ViConnect, Opcode::ViDestroy] {
        let status = raw.w.command(A, opcode, VIS[A].into(), connect_words(A));
        assert_eq!(status, AdminStatus::Busy);
    }
    assert_eq!(raw.w.ok(A, Opcode::ViQuery, VIS[A].into(), [0; 12]), 1 | 1 << 12);
    raw.credit = 1;
    raw.send(raw.kind(Type::Ack), &[]);
    // The Fin is not pending any more; it waits in the channel.
    raw.w.ok(A, Opcode::ViConnect, VIS[A].into(), connect_words(A));
    assert_eq!((raw.take(Type::Message).len(), raw.take(Type::Fin).len()), (1, 0));
    raw.credit = 1 + CREDITS_AHEAD as u8;
    raw.send(raw.kind(Type::Ack), &[]);
    raw.run(500);
    let fins = raw.take(Type::Fin);
    assert_eq!((fins.len(), fins[0].word), (1, 0));
}

#[test]
fn refusals_and_fins_stop_a_vi_as_its_level_says() {
    for level in LEVELS {
        let mut raw = Raw::open(level);
        let refuse = raw.kind(Type::ViRefuse);
        raw.next(nic_regs::frame::Header { word: 3, ..refuse }, &[]);
        let event = raw.w.hosts[A].events(ERRORS)[0];
        assert_eq!(event.word1, StopReason::Refused as u32 | 3 << 8);
        let reception = level == Reliability::Reception;
        let bits = if reception { status::REMOTE_DESC_ERROR } else { status::TRANSPORT_ERROR };
        assert_eq!(event.word2, bits);
        assert_eq!(raw.count(Counter::ViStops), 1);
        assert_eq!(raw.count(Counter::RefusalsSent), 0);
        assert_eq!(raw.take(Type::ViRefuse), []);
        raw.next(raw.kind(Type::Fin), &[]);
        assert_eq!(raw.count(Counter::ViStops), 1);
        assert_eq!(raw.count(Counter::Unmatched), 1);
    }
}

#[test]
fn pending_frames_to_a_closed_peer_are_forgotten() {
    let mut w = Testbench::pair(Reliability::Reception);
    w.ok(A, Opcode::PeerClose, NODES[B].into(), [0; 12]);
    w.settle();
    for side in [A, B] {
        assert_eq!(w.hosts[side].vi(side), State::Error);
        w.ok(side, Opcode::ViDisconnect, VIS[side].into(), [0; 12]);
        w.ok(side, Opcode::ViConnect, VIS[side].into(), connect_words(side));
        w.ok(side, Opcode::ViDisconnect, VIS[side].into(), [0; 12]);
        w.settle();
        w.ok(side, Opcode::ViDestroy, VIS[side].into(), [0; 12]);
    }
}

#[test]
fn a_vi_may_wait_for_its_peers_channel() {
    let mut w = Testbench::bare(&Default::default());
    for side in [A, B] {
        w.ok(side, Opcode::ViCreate, VIS[side].into(), vi_words(Reliability::Delivery));
        w.ok(side, Opcode::ViConnect, VIS[side].into(), connect_words(side));
    }
    w.hosts[B].post(VIS[B], Recv, 0, &[(0x2000, 64)]);
    w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 64)]);
    w.settle();
    assert_eq!(w.hosts[A].status(0), 0);
    w.open_channels();
    w.settle();
    assert_eq!(w.hosts[B].status(0), status::DONE | status::OP_RECEIVE);
}
