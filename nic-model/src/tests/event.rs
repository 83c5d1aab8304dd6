//! Section 10: event queues and interrupts.

use nic_regs::admin::{Opcode, PeerState};
use nic_regs::counter::Counter;
use nic_regs::csr::{ERROR_QUEUE, MODERATION, MSIX_CONTROL, msix_entry};
use nic_regs::event::{Event, Kind};
use nic_regs::vi::{Reliability, State};

use super::support::*;
use crate::context::Context;
use crate::counter::Monitor;
use crate::event::{Delivery, EventQueue, Events};

const MASK: u32 = msix_entry(1) + MSIX_CONTROL;
const MESSAGE: (u64, u32) = (MSI_ADDRESS + 16, 0x41);

/// A connection whose completions go to queues of four entries.
fn small(level: Reliability) -> Testbench {
    let mut w = Testbench::pair(level);
    for side in [A, B] {
        w.ok(side, Opcode::EventDestroy, COMPLETIONS.into(), [0; 12]);
        let words = event_words(COMPLETIONS, 2, false, 1);
        w.ok(side, Opcode::EventCreate, COMPLETIONS.into(), words);
    }
    w
}

fn send(w: &mut Testbench, from: u64, count: u64) {
    for i in from..from + count {
        w.hosts[B].post(VIS[B], Recv, 64 * i, &[(0x8000, 64)]);
        w.settle();
        w.hosts[A].post(VIS[A], Send, 64 * i, &[(0x8000, 64)]);
        w.settle();
    }
}

/// Takes event by event from A's completion queue of four entries, until no more comes.
fn drain(w: &mut Testbench) -> Vec<Event> {
    let mut events = Vec::new();
    for consumer in 1..20 {
        let Some(event) = w.hosts[A].next_event(COMPLETIONS, 2, false) else { break };
        events.push(event);
        w.hosts[A].ring_events(DOMAIN, COMPLETIONS, consumer, false);
        w.settle();
    }
    events
}

#[test]
fn a_full_queue_defers_and_one_record_reports_the_rest() {
    let mut w = small(Reliability::Delivery);
    send(&mut w, 0, 10);
    assert_eq!(w.hosts[A].count(Counter::SendsCompleted), 10);
    assert_eq!(w.hosts[B].count(Counter::RecvsCompleted), 10);
    assert_eq!(w.hosts[B].count(Counter::EventsDeferred), 6);
    assert_eq!(w.hosts[B].model.vi_snapshot(VIS[B]).unreported, [0, 6]);
    let mut counts = Vec::new();
    while let Some(event) = w.hosts[B].next_event(COMPLETIONS, 2, false) {
        counts.push(event.word1);
    }
    assert_eq!(counts, [1; 4]);
    w.hosts[B].ring_events(DOMAIN, COMPLETIONS, 1, false);
    w.settle();
    assert_eq!(w.hosts[B].next_event(COMPLETIONS, 2, false).unwrap().word1, 6);
    assert_eq!(w.hosts[B].model.vi_snapshot(VIS[B]).unreported, [0, 0]);
    // The ring goes round, with its phase.
    for i in 0..20_u16 {
        w.hosts[B].ring_events(DOMAIN, COMPLETIONS, 5 + i, false);
        send(&mut w, 10 + u64::from(i), 1);
        let event = w.hosts[B].next_event(COMPLETIONS, 2, false).unwrap();
        assert_eq!((event.kind, event.word1), (Kind::RecvComplete as u8, 1));
    }
}

/// Addresses wrap modulo 2^64: software that places a queue across the end harms itself alone.
#[test]
fn a_queue_across_the_last_address_goes_on_at_the_first() {
    for (wide, expected) in [(false, [u64::MAX - 63, 0]), (true, [u64::MAX - 63, 192])] {
        let (mut events, mut host) = (Events::default(), Zeros::default());
        let cx = &mut Context { now: 0, host: &mut host, monitor: &mut Monitor::default() };
        let base = u64::MAX - 63;
        let queue = EventQueue { exists: true, base, log2: 3, wide, ..EventQueue::default() };
        assert!(events.create(0, queue));
        for _ in 0..5 {
            assert_eq!(events.post(0, Event::default(), None, cx), Delivery::Written);
        }
        assert_eq!([host.writes[0], host.writes[4]], expected);
    }
}

#[test]
fn errors_and_peer_events_are_deferred_by_a_full_queue() {
    let mut w = small(Reliability::Delivery);
    w.hosts[A].reg_write(ERROR_QUEUE::OFFSET, u32::from(COMPLETIONS) | 1 << 31);
    send(&mut w, 0, 4);
    w.hosts[A].post(VIS[A], Send, 0x1000, &[(0x8000, 64)]);
    w.settle();
    assert_eq!(w.hosts[A].vi(A), State::Error);
    w.ok(B, Opcode::PeerClose, NODES[A].into(), [0; 12]);
    w.settle();
    let kinds: Vec<u8> = drain(&mut w).iter().map(|event| event.kind).collect();
    let send = Kind::SendComplete as u8;
    let expected = [send, send, send, send, send, Kind::PeerDown as u8, Kind::ViError as u8];
    assert_eq!(kinds, expected);
    // Each once, however often it was tried.
    assert_eq!(w.hosts[A].count(Counter::EventsDeferred), 3);
}

/// A disconnect forgets what was deferred of its VI, and of no other.
#[test]
fn deferred_completions_end_with_their_vi() {
    let mut w = small(Reliability::Delivery);
    let others = [3_u16, 5, 6];
    others.iter().for_each(|&vi| w.connect(Reliability::Delivery, [vi, 20 + vi]));
    send(&mut w, 0, 4);
    for [vi, peer] in others.map(|vi| [vi, 20 + vi]).into_iter().chain([VIS]) {
        let at = 0x1000 * u64::from(vi);
        for (from, to) in [([A, B], [vi, peer]), ([B, A], [peer, vi])] {
            w.hosts[from[1]].post(to[1], Recv, at, &[(0x10_0000, 64)]);
            w.settle();
            w.hosts[from[0]].post(to[0], Send, at + 0x800, &[(0x10_0000, 64)]);
            w.settle();
        }
    }
    w.ok(A, Opcode::ViDisconnect, VIS[A].into(), [0; 12]);
    w.settle();
    let (sends, receives) = (Kind::SendComplete as u8, Kind::RecvComplete as u8);
    let deferred: Vec<_> = drain(&mut w)[4..].iter().map(|e| (e.index, e.kind, e.word1)).collect();
    let expected = others.map(|vi| [(vi, sends, 1), (vi, receives, 1)]).concat();
    assert_eq!(deferred, expected);
    // Each once, however often it was tried.
    assert_eq!(w.hosts[A].count(Counter::EventsDeferred), 8);
}

/// Of a peer that was up again meanwhile, the event that is true now comes last.
#[test]
fn deferred_events_of_a_peer_end_with_its_present_state() {
    for last in [Kind::PeerDown, Kind::PeerUp] {
        let mut w = small(Reliability::Delivery);
        w.hosts[A].reg_write(ERROR_QUEUE::OFFSET, u32::from(COMPLETIONS) | 1 << 31);
        send(&mut w, 0, 4);
        w.ok(B, Opcode::PeerClose, NODES[A].into(), [0; 12]);
        w.settle();
        [A, B].into_iter().for_each(|side| w.open(side, 64));
        w.until("open", |w| [A, B].iter().all(|&side| w.peer(side) == PeerState::Open));
        if last == Kind::PeerDown {
            w.ok(B, Opcode::PeerClose, NODES[A].into(), [0; 12]);
            w.settle();
        }
        let kinds: Vec<u8> = drain(&mut w).iter().map(|event| event.kind).collect();
        let send = Kind::SendComplete as u8;
        let (up, down) = (Kind::PeerUp as u8, Kind::PeerDown as u8);
        let order = if last == Kind::PeerUp { [down, up] } else { [up, down] };
        assert_eq!(kinds[..6], [send, send, send, send, order[0], order[1]]);
    }
}

#[test]
fn queues_have_the_size_that_they_are_created_with() {
    for log2 in 2..=5 {
        let mut w = Testbench::pair(Reliability::Delivery);
        w.ok(A, Opcode::EventDestroy, COMPLETIONS.into(), [0; 12]);
        w.ok(A, Opcode::EventCreate, COMPLETIONS.into(), event_words(COMPLETIONS, log2, false, 1));
        send(&mut w, 0, 1 << log2);
        assert_eq!(w.hosts[A].count(Counter::EventsDeferred), 0, "{log2}");
        send(&mut w, 1 << log2, 1);
        assert_eq!(w.hosts[A].count(Counter::EventsDeferred), 1, "{log2}");
    }
}

/// What was deferred to a queue is lost with it.
#[test]
fn a_queue_takes_what_was_deferred_with_it() {
    let mut w = small(Reliability::Delivery);
    send(&mut w, 0, 6);
    assert_eq!(w.hosts[B].model.vi_snapshot(VIS[B]).unreported, [0, 2]);
    w.ok(B, Opcode::EventDestroy, COMPLETIONS.into(), [0; 12]);
    assert_eq!(w.hosts[B].model.vi_snapshot(VIS[B]).unreported, [0, 0]);
}

#[test]
fn events_to_no_queue_are_lost_and_completions_are_not() {
    let mut w = Testbench::pair(Reliability::Delivery);
    w.hosts[A].reg_write(ERROR_QUEUE::OFFSET, 0);
    for side in [A, B] {
        w.ok(side, Opcode::EventDestroy, COMPLETIONS.into(), [0; 12]);
    }
    send(&mut w, 0, 3);
    assert_eq!(w.hosts[A].status(0x80), 1);
    assert_eq!(w.hosts[A].model.vi_snapshot(VIS[A]).unreported, [0, 0]);
    let words = event_words(COMPLETIONS, 2, false, 1);
    w.ok(A, Opcode::EventCreate, COMPLETIONS.into(), words);
    send(&mut w, 3, 1);
    assert_eq!(w.hosts[A].next_event(COMPLETIONS, 2, false).unwrap().word1, 1);
    w.ok(B, Opcode::PeerClose, NODES[A].into(), [0; 12]);
    w.settle();
    assert_eq!(w.hosts[A].events(ERRORS), []);
}

#[test]
fn arming_interrupts_once() {
    let mut w = Testbench::pair(Reliability::Delivery);
    send(&mut w, 0, 1);
    assert_eq!(w.hosts[A].memory.interrupts, []);
    // A record is there: at once, and only then.
    w.hosts[A].ring_events(DOMAIN, COMPLETIONS, 0, true);
    w.settle();
    assert_eq!(w.hosts[A].memory.interrupts, [MESSAGE]);
    send(&mut w, 1, 1);
    assert_eq!(w.hosts[A].memory.interrupts.len(), 1);
    // Nothing is there: at the next record, and only at that.
    w.hosts[A].ring_events(DOMAIN, COMPLETIONS, 2, true);
    w.settle();
    assert_eq!(w.hosts[A].memory.interrupts.len(), 1);
    send(&mut w, 2, 2);
    assert_eq!(w.hosts[A].memory.interrupts.len(), 2);
    // Disarmed.
    w.hosts[A].ring_events(DOMAIN, COMPLETIONS, 4, true);
    w.hosts[A].ring_events(DOMAIN, COMPLETIONS, 4, false);
    send(&mut w, 4, 1);
    assert_eq!(w.hosts[A].memory.interrupts.len(), 2);
    assert_eq!(w.hosts[A].count(Counter::Interrupts), 2);
}

#[test]
fn a_vector_rests_as_long_as_moderation_says() {
    let mut w = Testbench::pair(Reliability::Delivery);
    w.hosts[A].reg_write(MODERATION::OFFSET, 1_000);
    let mut times = Vec::new();
    for i in 0..4 {
        w.hosts[A].ring_events(DOMAIN, COMPLETIONS, i as u16, true);
        w.settle();
        send(&mut w, i, 1);
        w.until("an interrupt", |w| w.hosts[A].memory.interrupts.len() as u64 == i + 1);
        times.push(w.now);
    }
    let rests: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The first one is behind the end of its message.
    assert_eq!(rests[1..], [1_000; 2]);
}

/// Without ERROR_QUEUE an error is lost: it is not kept for the queue that is named later.
#[test]
fn errors_without_a_queue_are_lost() {
    let mut w = Testbench::pair(Reliability::Delivery);
    w.hosts[A].reg_write(ERROR_QUEUE::OFFSET, 0);
    w.hosts[A].post(VIS[A], Send, 0, &[(0x8000, 64)]);
    w.settle();
    assert_eq!(w.hosts[A].vi(A), State::Error);
    w.hosts[A].reg_write(ERROR_QUEUE::OFFSET, u32::from(ERRORS) | 1 << 31);
    w.settle();
    assert_eq!(w.hosts[A].events(ERRORS), []);
}

#[test]
fn a_masked_vector_keeps_its_message() {
    let mut w = Testbench::pair(Reliability::Delivery);
    w.hosts[A].reg_write(MASK, 1);
    for i in 0..2 {
        w.hosts[A].ring_events(DOMAIN, COMPLETIONS, i as u16, true);
        w.settle();
        send(&mut w, i, 1);
    }
    assert_eq!(w.hosts[A].memory.interrupts, []);
    w.hosts[A].reg_write(MASK, 0);
    w.settle();
    assert_eq!(w.hosts[A].memory.interrupts, [MESSAGE]);
    w.hosts[A].reg_write(MASK, 1);
    w.hosts[A].reg_write(MASK, 0);
    w.settle();
    assert_eq!(w.hosts[A].memory.interrupts, [MESSAGE]);
    // To an address of 64 bits.
    w.hosts[A].reg_write(MASK - 8, 0x12);
    w.hosts[A].ring_events(DOMAIN, COMPLETIONS, 1, true);
    w.settle();
    assert_eq!(w.hosts[A].memory.interrupts[1..], [(0x12 << 32 | MESSAGE.0, MESSAGE.1)]);
}

#[test]
fn a_wide_queue_takes_completions_with_empty_text() {
    let mut w = Testbench::pair(Reliability::Delivery);
    w.ok(A, Opcode::EventDestroy, COMPLETIONS.into(), [0; 12]);
    w.ok(A, Opcode::EventCreate, COMPLETIONS.into(), event_words(COMPLETIONS, 4, true, 1));
    w.hosts[A].memory.writes.clear();
    send(&mut w, 0, 2);
    let base = EVENTS + 0x2000;
    assert_eq!(
        w.hosts[A].memory.writes,
        [(BUS + 24, 8), (base, 64), (BUS + 88, 8), (base + 64, 64)]
    );
    assert_eq!(w.hosts[A].memory.slice(base, 48), [0; 48]);
    assert_eq!(w.hosts[A].next_event(COMPLETIONS, 4, true).unwrap().word1, 1);
}
