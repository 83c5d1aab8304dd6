//! Section 7.6: what a channel does in time: time-outs, keepalive, silence, acknowledgements that wait.

use nic_regs::admin::PeerState;
use nic_regs::counter::Counter;
use nic_regs::csr::{ACK_DELAY, KEEPALIVE, RETRY_LIMIT, RETRY_TIMEOUT};
use nic_regs::event::PeerDownReason;
use nic_regs::frame::{Header, Type};
use nic_regs::limits::{QUIET_CYCLES, RETRY_CYCLES_MAX};
use nic_regs::vi::Reliability;

use super::raw::{EPOCH, Raw};
use super::support::*;

const DELIVERY: Reliability = Reliability::Delivery;

#[test]
fn frames_are_sent_again_until_the_peer_is_dead() {
    let mut raw = Raw::open(DELIVERY);
    raw.w.hosts[A].reg_write(RETRY_LIMIT::OFFSET, 4);
    for i in 0..3 {
        raw.w.hosts[A].post(VIS[A], Send, 64 * i, &[(0x2000, 100)]);
    }
    raw.run(200);
    let sent: Vec<_> = raw.take(Type::Data).iter().map(|h| h.sequence).collect();
    assert_eq!(sent, [0, 1, 2]);
    // An Ack of something that was not sent is nothing; one of frame 0 is progress.
    raw.ack = 4;
    raw.send(raw.kind(Type::Ack), &[]);
    raw.run(2000);
    assert_eq!(raw.take(Type::Data).len(), 3);
    raw.ack = 1;
    raw.send(raw.kind(Type::Ack), &[]);
    for wait in [2000, 4000, 8000] {
        raw.run(wait + 100);
        let again: Vec<_> = raw.take(Type::Data).iter().map(|h| h.sequence).collect();
        assert_eq!(again, [1, 2]);
    }
    assert_eq!(raw.count(Counter::FramesRetransmitted), 9);
    raw.run(16_100);
    assert_eq!(raw.down(), Some(PeerDownReason::Dead as u32));
    assert_eq!(raw.got.len(), 0);
}

/// A time-out that doubles so often that it passes the longest one is as long as that.
#[test]
fn the_longest_time_out() {
    for (timeout, due) in [(0x7f_ffff, 0x7f_ffff << 12), (0xff_ffff, RETRY_CYCLES_MAX)] {
        let mut raw = Raw::open(DELIVERY);
        raw.w.hosts[A].reg_write(KEEPALIVE::OFFSET, 0);
        raw.w.hosts[A].reg_write(RETRY_LIMIT::OFFSET, 15);
        raw.w.hosts[A].reg_write(RETRY_TIMEOUT::OFFSET, 16);
        raw.w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 100)]);
        raw.run((16 << 12) - 16);
        assert_eq!(raw.take(Type::Data).len(), 12);
        // What is sent next waits for so long.
        raw.w.hosts[A].reg_write(RETRY_TIMEOUT::OFFSET, timeout);
        raw.run(600);
        assert_eq!(raw.take(Type::Data).len(), 1);
        raw.w.now += due - 800;
        raw.run(100);
        assert_eq!(raw.take(Type::Data).len(), 0, "early");
        raw.w.now += 700;
        raw.run(100);
        assert_eq!(raw.take(Type::Data).len(), 1, "late");
    }
}

/// What came before a frame was sent says nothing of its time-outs.
#[test]
fn an_answer_from_before_a_frame_does_not_count() {
    let mut raw = Raw::open(DELIVERY);
    raw.w.hosts[A].reg_write(RETRY_LIMIT::OFFSET, 3);
    raw.send(raw.kind(Type::Ack), &[]);
    raw.w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 100)]);
    raw.run(2000 * 7 - 100);
    assert_eq!((raw.w.peer(A), raw.take(Type::Data).len()), (PeerState::Open, 3));
    raw.run(500);
    assert_eq!(raw.w.peer(A), PeerState::Closed);
}

/// Acks that leave do not put off what has to be sent again.
#[test]
fn a_time_out_counts_from_the_frame() {
    let mut raw = Raw::open(DELIVERY);
    for i in 0..8 {
        raw.w.hosts[A].post(VIS[A], Recv, 64 * i, &[(0x2000, 64)]);
    }
    raw.w.hosts[A].post(VIS[A], Send, 0x400, &[(0x4000, 100)]);
    for _ in 0..5 {
        raw.next(raw.only(), &[]);
        raw.run(440);
    }
    assert!(raw.take(Type::Ack).len() >= 4);
    assert_eq!(raw.take(Type::Data).len(), 2);
}

#[test]
fn a_peer_that_sends_anything_is_not_dead() {
    let mut raw = Raw::open(DELIVERY);
    raw.w.hosts[A].reg_write(RETRY_LIMIT::OFFSET, 3);
    raw.w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 100)]);
    raw.run(200);
    // An Ack of nothing new, in the time of each time-out, or only in that of the third.
    for wait in [1500, 1500, 1500, 1500, 1500, 1500, 20_000, 20_000] {
        assert_eq!(raw.w.peer(A), PeerState::Open);
        raw.send(raw.kind(Type::Ack), &[]);
        raw.run(wait);
    }
    // The time doubles twice.
    assert_eq!(raw.take(Type::Data).len(), 1 + 2 + 5);
    // After one that was answered and two that were not, a third one is the last.
    raw.run(14_000);
    assert_eq!(raw.down(), Some(PeerDownReason::Dead as u32));
}

/// The time-outs of the opening are over when it ends: frames have RETRY_LIMIT of their own.
#[test]
fn time_outs_of_the_opening_do_not_count_against_frames() {
    let mut raw = Raw::closed(DELIVERY);
    raw.w.hosts[A].reg_write(RETRY_LIMIT::OFFSET, 4);
    raw.w.open(A, 64);
    raw.run(2000 * 7 + 100);
    let syns = raw.take(Type::Syn);
    assert_eq!((syns.len(), raw.w.peer(A)), (4, PeerState::Opening));
    raw.tag = (syns[0].word ^ EPOCH) as u16;
    raw.send(Header { word: EPOCH, ..raw.kind(Type::SynAck) }, &[]);
    assert_eq!(raw.w.peer(A), PeerState::Open);
    raw.w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 100)]);
    raw.run(2000 * 7 + 200);
    assert_eq!((raw.take(Type::Data).len(), raw.w.peer(A)), (4, PeerState::Open));
    raw.run(2000 * 8);
    assert_eq!(raw.w.peer(A), PeerState::Closed);
}

/// Silence counts from the opening, however late that is.
#[test]
fn a_channel_that_opens_late_is_not_silent() {
    let mut raw = Raw::closed(DELIVERY);
    raw.w.hosts[A].reg_write(RETRY_LIMIT::OFFSET, 3);
    raw.w.hosts[A].reg_write(KEEPALIVE::OFFSET, 20_000);
    raw.run(100_000);
    raw.w.open(A, 64);
    raw.run(100);
    raw.send(Header { word: EPOCH, tag: 0, ..raw.kind(Type::Syn) }, &[]);
    raw.take(Type::SynAck);
    // Nor is anything to say at once.
    raw.run(3_000);
    assert_eq!((raw.w.peer(A), raw.take(Type::Ack).len()), (PeerState::Open, 0));
}

/// Data says as much as an Ack: there is none before KEEPALIVE cycles without a frame.
#[test]
fn data_keeps_a_channel_alive() {
    let mut raw = Raw::open(DELIVERY);
    raw.w.hosts[A].reg_write(KEEPALIVE::OFFSET, 20_000);
    for i in 0..4 {
        raw.w.hosts[A].post(VIS[A], Send, 64 * i, &[(0x2000, 64)]);
        raw.run(200);
        raw.ack = i as u16 + 1;
        raw.send(raw.kind(Type::Ack), &[]);
        raw.run(15_000);
    }
    assert_eq!((raw.take(Type::Data).len(), raw.take(Type::Ack).len()), (4, 0));
    raw.run(5_000);
    assert_eq!(raw.take(Type::Ack).len(), 1);
}

#[test]
fn keepalive_and_silence() {
    let mut raw = Raw::open(DELIVERY);
    raw.run(10_000);
    raw.w.hosts[A].reg_write(RETRY_LIMIT::OFFSET, 3);
    raw.w.hosts[A].reg_write(KEEPALIVE::OFFSET, 20_000);
    raw.run(19_000);
    assert_eq!(raw.take(Type::Ack).len(), 1);
    raw.send(raw.kind(Type::Ack), &[]);
    let frames = raw.count(Counter::AcksSent);
    raw.run(59_000);
    assert_eq!(raw.w.peer(A), PeerState::Open);
    let acks = raw.count(Counter::AcksSent) - frames;
    assert!((2..=3).contains(&acks), "{acks}");
    // A peer that is still Opening sends nothing but its SYN: it is there.
    raw.send(Header { word: EPOCH, ..raw.kind(Type::Syn) }, &[]);
    raw.run(59_000);
    assert_eq!(raw.w.peer(A), PeerState::Open);
    raw.run(2_000);
    assert_eq!(raw.down(), Some(PeerDownReason::Dead as u32));
}

#[test]
fn without_keepalive_an_ack_is_sent_once_in_a_long_time() {
    let mut raw = Raw::open(DELIVERY);
    raw.run(QUIET_CYCLES.into());
    raw.run(u64::from(QUIET_CYCLES) + 100);
    assert_eq!(raw.take(Type::Ack).len(), 2);
    assert_eq!((raw.w.peer(A), raw.got.len()), (PeerState::Open, 0));
}

#[test]
fn acknowledgements_ride_on_data_and_delays_are_registers() {
    let mut raw = Raw::open(DELIVERY);
    raw.w.hosts[A].reg_write(ACK_DELAY::OFFSET, 5000);
    raw.w.hosts[A].reg_write(RETRY_TIMEOUT::OFFSET, 50_000);
    for i in 0..2 {
        raw.w.hosts[A].post(VIS[A], Recv, 64 * i, &[(0x2000, 64)]);
    }
    raw.run(20);
    raw.next(raw.only(), &[]);
    raw.run(4800);
    assert_eq!(raw.got.len(), 0);
    raw.run(300);
    assert_eq!(raw.take(Type::Ack).len(), 1);
    raw.next(raw.only(), &[]);
    raw.w.hosts[A].post(VIS[A], Send, 0x400, &[(0x2000, 64)]);
    raw.run(100);
    assert_eq!(raw.take(Type::Data)[0].acknowledgement, 2);
    raw.run(10_000);
    assert_eq!(raw.got.len(), 0);
}
