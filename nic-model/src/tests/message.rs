//! Section 7.8: messages.

use nic_regs::admin::{NO_QUEUE, Opcode};
use nic_regs::counter::Counter;
use nic_regs::event::Kind;
use nic_regs::vi::Reliability;

use super::raw::Raw;
use super::support::*;

const TARGET: u32 = 7;

fn index() -> u32 {
    u32::from(NODES[B]) | TARGET << 8
}

fn bind(w: &mut Testbench, queue: u16) {
    let mut words = [0; 12];
    words[0] = queue.into();
    w.ok(B, Opcode::MessageQueue, TARGET, words);
}

#[test]
fn messages_arrive_whole_and_in_order() {
    let mut w = Testbench::bare(&Default::default());
    w.open_channels();
    bind(&mut w, MESSAGES);
    w.hosts[B].memory.writes.clear();
    for i in 0..5 {
        w.ok(A, Opcode::MessageSend, index(), [i; 12]);
    }
    w.settle();
    let base = EVENTS + 0x2000 * u64::from(MESSAGES);
    for i in 0..5_u64 {
        assert_eq!(w.hosts[B].memory.writes[i as usize], (base + 64 * i, 64));
        for k in 0..12 {
            assert_eq!(u64::from(w.hosts[B].memory.word(base + 64 * i + 4 * k)), i);
        }
    }
    let events = w.hosts[B].events(MESSAGES);
    assert_eq!(events.len(), 5);
    assert!(events.iter().all(|e| (e.kind, e.index) == (Kind::Message as u8, NODES[A].into())));
    assert_eq!(w.hosts[A].count(Counter::MessagesSent), 5);
    assert_eq!(w.hosts[B].count(Counter::MessagesReceived), 5);
}

#[test]
fn messages_without_a_queue_are_refused() {
    let mut w = Testbench::bare(&Default::default());
    w.open_channels();
    for (i, queue) in [NO_QUEUE, COMPLETIONS, 200].into_iter().enumerate() {
        bind(&mut w, queue);
        w.ok(A, Opcode::MessageSend, index(), [0; 12]);
        w.settle();
        assert_eq!(w.hosts[B].count(Counter::MessagesRefused), i as u32 + 1);
        let events = w.hosts[A].events(ERRORS);
        assert_eq!(events.len(), 1);
        assert_eq!(
            (events[0].kind, events[0].index, events[0].word1),
            (Kind::MessageRefused as u8, NODES[B].into(), 0)
        );
    }
    assert_eq!(w.hosts[B].count(Counter::MessagesReceived), 0);
    // It is reported once.
    w.ok(B, Opcode::PeerClose, NODES[A].into(), [0; 12]);
    w.settle();
    let kinds: Vec<u8> = w.hosts[A].events(ERRORS).iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [Kind::PeerDown as u8]);
}

#[test]
fn messages_to_a_full_queue_are_refused() {
    let mut w = Testbench::bare(&Default::default());
    w.open_channels();
    bind(&mut w, MESSAGES);
    for i in 0..66 {
        w.ok(A, Opcode::MessageSend, index(), [i; 12]);
        w.settle();
        w.run(300);
    }
    assert_eq!(w.hosts[B].count(Counter::MessagesReceived), 64);
    assert_eq!(w.hosts[B].count(Counter::MessagesRefused), 2);
    assert_eq!(w.hosts[A].events(ERRORS).len(), 2);
    assert_eq!(w.hosts[B].events(MESSAGES).len(), 64);
    w.hosts[B].ring_events(DOMAIN, MESSAGES, 64, false);
    w.ok(A, Opcode::MessageSend, index(), [99; 12]);
    w.settle();
    assert_eq!(w.hosts[B].events(MESSAGES).len(), 1);
}

#[test]
fn a_message_to_a_domain_that_does_not_exist_is_refused() {
    let mut raw = Raw::open(Reliability::Delivery);
    let header = raw.kind(nic_regs::frame::Type::Message);
    raw.next(nic_regs::frame::Header { dst_vi: 64, ..header }, &[0; 48]);
    assert_eq!(raw.count(Counter::MessagesRefused), 1);
    let refused = raw.take(nic_regs::frame::Type::MessageRefused);
    assert_eq!(refused.iter().map(|header| header.flags).collect::<Vec<_>>(), [0]);
}
