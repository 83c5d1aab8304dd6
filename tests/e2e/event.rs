//! Event queues: order, a full queue, arming, masked vectors, errors and messages.

use nic_regs::admin::Opcode;
use nic_regs::counter::Counter;
use nic_regs::csr::{ERROR_QUEUE, MODERATION, MSIX_CONTROL, msix_entry};
use nic_regs::desc::status::DESC_FLUSHED_ERROR;
use nic_regs::doorbell::Queue;
use nic_regs::event::{Event, Kind};
use nic_regs::vi::{Reliability, StopReason};
use tests::bare::{Bare, ERROR_EVENTS, MESSAGE_EVENTS, RECV_EVENTS, SEND_EVENTS, Shape};
use tests::vi::{BareVi, Posted, vi_body};
use tests::{DeviceKind, on_every_kind};

/// Node 1's receive queue is the one under test, on vector 2.
const VECTOR: usize = 2;

/// Two nodes whose node 1 has this many entries for receives.
fn with_ring(kind: DeviceKind, log2: u32) -> Bare {
    let mut bare = Bare::up(kind);
    bare.register();
    resize(&mut bare, 1, RECV_EVENTS, log2);
    bare
}

fn resize(bare: &mut Bare, node: usize, queue: u16, log2: u32) {
    bare.ok(node, Opcode::EventDestroy, queue.into(), &[]);
    bare.event_create(node, queue, Shape::narrow(log2, u8::try_from(queue).unwrap()));
}

/// Posts a message of `length` bytes from one node to the other: receive, then send.
fn message(bare: &mut Bare, vis: &mut [BareVi; 2], from: usize, length: usize) -> [Posted; 2] {
    let [send, recv] = [from, 1 - from].map(|node| vis[node].segment(0, length));
    let recv = vis[1 - from].post(bare, Queue::Recv, &[recv]);
    bare.bench.run(100);
    [vis[from].post(bare, Queue::Send, &[send]), recv]
}

fn complete(bare: &mut Bare, vis: &mut [BareVi; 2], from: usize) {
    let posted = message(bare, vis, from, 8);
    bare.settle();
    assert_eq!(posted.map(|posted| posted.errors(bare)), [0, 0]);
    assert!(posted.iter().all(|posted| posted.is_done(bare)));
}

fn summary(events: &[Event]) -> Vec<(u8, u16, u32)> {
    events.iter().map(|event| (event.kind, event.index, event.word1)).collect()
}

const SENT: u8 = 1;
const RECEIVED: u8 = 2;
const MESSAGE: u8 = 4;
const MESSAGE_REFUSED: u8 = 7;

fn a_full_queue_defers_and_then_drains_in_order(kind: DeviceKind) {
    let mut bare = with_ring(kind, 2);
    let mut vis = Vec::new();
    for (place, number) in [50, 51, 52].into_iter().enumerate() {
        bare.ok(0, Opcode::ViCreate, number, &vi_body(Reliability::Delivery));
        // Both queues of node 1's VI tell the same event queue.
        let mut body = vi_body(Reliability::Delivery);
        body[1] = u32::from(RECV_EVENTS) * 0x1_0001;
        bare.ok(1, Opcode::ViCreate, number, &body);
        let pair = [0, 1].map(|node| BareVi::new(node, u16::try_from(number).unwrap(), place));
        bare.connect(&pair, 1);
        vis.push(pair);
    }
    for (vi, from, count) in [(2, 0, 4), (1, 0, 3), (0, 0, 2), (0, 1, 1)] {
        for _ in 0..count {
            complete(&mut bare, &mut vis[vi], from);
        }
    }
    assert!(bare.counter(1, Counter::EventsDeferred) >= 3);
    let first = bare.peek_events(1, RECV_EVENTS);
    assert_eq!(summary(&first), [(RECEIVED, 52, 1); 4]);
    bare.settle();
    assert_eq!(bare.next_event(1, RECV_EVENTS), None, "nothing overwrites what is not consumed");
    bare.consume(1, RECV_EVENTS, false);
    bare.settle();
    // By VI number, send before receive, each with its whole count.
    let later = bare.take_events(1, RECV_EVENTS);
    assert_eq!(summary(&later), [(SENT, 50, 1), (RECEIVED, 50, 2), (RECEIVED, 51, 3)]);
    bare.settle();
    assert_eq!(bare.take_events(1, RECV_EVENTS), []);
    complete(&mut bare, &mut vis[1], 0);
    assert_eq!(summary(&bare.take_events(1, RECV_EVENTS)), [(RECEIVED, 51, 1)]);
}

fn one_free_entry_takes_one_record(kind: DeviceKind) {
    let mut bare = with_ring(kind, 2);
    let mut vis: Vec<_> =
        (0..6_u16).map(|i| bare.connected(Reliability::Unreliable, 60 + i, i.into())).collect();
    for pair in &mut vis {
        complete(&mut bare, pair, 0);
    }
    // The ring of four is full, two wait; each consumed record lets one in.
    let mut seen = Vec::new();
    for _ in 0..6 {
        let event = bare.next_event(1, RECV_EVENTS).expect("a record");
        seen.push((event.index, event.word1));
        let records = bare.peek_events(1, RECV_EVENTS).len();
        assert!((1..=4).contains(&records));
        for _ in 1..records {
            bare.unread(1, RECV_EVENTS);
        }
        bare.consume(1, RECV_EVENTS, false);
        bare.settle();
    }
    assert_eq!(seen, (60..66).map(|vi| (vi, 1)).collect::<Vec<_>>());
    assert_eq!(bare.next_event(1, RECV_EVENTS), None);
}

fn the_phase_flips_on_each_pass(kind: DeviceKind) {
    let mut bare = with_ring(kind, 2);
    let mut vis = bare.connected(Reliability::Delivery, 9, 0);
    for pass in 0..3 {
        for _ in 0..4 {
            complete(&mut bare, &mut vis, 0);
            let [event] = bare.take_events(1, RECV_EVENTS)[..] else { panic!("one record") };
            assert_eq!(event.phase, pass % 2 == 0);
        }
    }
}

fn arming_never_loses_a_wake_up(kind: DeviceKind) {
    let mut bare = with_ring(kind, 4);
    let mut vis = bare.connected(Reliability::Delivery, 9, 0);
    let mut expected = 0;
    for delay in (0..600).step_by(kind.size(3, 11)) {
        let [_, recv] = message(&mut bare, &mut vis, 0, 8);
        bare.bench.run(delay);
        // The reader has seen nothing, and asks to be woken: before the record, with it, or after.
        bare.consume(1, RECV_EVENTS, true);
        expected += 1;
        bare.wait("the interrupt", |bare| bare.host(1).interrupts[VECTOR] == expected);
        bare.wait("the record", |bare| bare.next_event(1, RECV_EVENTS).is_some());
        assert!(recv.is_done(&bare));
        bare.take_events(1, RECV_EVENTS);
        bare.settle();
        assert_eq!(bare.host(1).interrupts[VECTOR], expected, "once, after {delay}");
    }
}

fn only_an_armed_queue_interrupts_and_once(kind: DeviceKind) {
    let mut bare = with_ring(kind, 4);
    let mut vis = bare.connected(Reliability::Delivery, 9, 0);
    let interrupts = |bare: &Bare| bare.host(1).interrupts[VECTOR];
    complete(&mut bare, &mut vis, 0);
    assert_eq!(interrupts(&bare), 0, "not armed");
    // A record is there: at once, and not armed afterwards.
    bare.consume(1, RECV_EVENTS, true);
    bare.settle();
    assert_eq!(interrupts(&bare), 1);
    complete(&mut bare, &mut vis, 0);
    assert_eq!(interrupts(&bare), 1);
    bare.peek_events(1, RECV_EVENTS);
    bare.consume(1, RECV_EVENTS, true);
    complete(&mut bare, &mut vis, 0);
    complete(&mut bare, &mut vis, 0);
    assert_eq!(interrupts(&bare), 2, "once");
    bare.peek_events(1, RECV_EVENTS);
    bare.consume(1, RECV_EVENTS, true);
    bare.consume(1, RECV_EVENTS, false);
    complete(&mut bare, &mut vis, 0);
    assert_eq!(interrupts(&bare), 2, "disarmed");
    assert_eq!(bare.counter(1, Counter::Interrupts), 2);
    assert_eq!(bare.host(0).interrupts, [0; 32]);
}

fn a_masked_vector_is_kept_pending(kind: DeviceKind) {
    let mut bare = with_ring(kind, 4);
    let mut vis = bare.connected(Reliability::Delivery, 9, 0);
    let control = msix_entry(2) + MSIX_CONTROL;
    bare.write(1, control, 1);
    for _ in 0..2 {
        bare.peek_events(1, RECV_EVENTS);
        bare.consume(1, RECV_EVENTS, true);
        complete(&mut bare, &mut vis, 0);
    }
    assert_eq!(bare.host(1).interrupts[VECTOR], 0);
    assert_eq!(bare.counter(1, Counter::Interrupts), 0);
    bare.write(1, control, 0);
    bare.settle();
    assert_eq!(bare.host(1).interrupts[VECTOR], 1);
    bare.write(1, control, 1);
    bare.write(1, control, 0);
    bare.settle();
    assert_eq!(bare.host(1).interrupts[VECTOR], 1, "kept once");
    assert_eq!(bare.counter(1, Counter::Interrupts), 1);
}

/// Least cycles between two interrupts of a vector, and how much later one may come.
const GAP: u64 = 1_000;
const LATE: u64 = 64 + 100;

/// A record that is not consumed: each arming interrupts. Arms so often, a hundred cycles apart; the
/// cycles of the interrupts, counted from the first arming.
fn arm_again_and_again(bare: &mut Bare, times: u64) -> Vec<u64> {
    let mut seen = bare.host(1).interrupts[VECTOR];
    let mut at = Vec::new();
    for cycle in 0..100 * times {
        if cycle % 100 == 0 {
            bare.consume(1, RECV_EVENTS, true);
        }
        bare.bench.run(1);
        let now = bare.host(1).interrupts[VECTOR];
        at.extend((seen..now).map(|_| cycle));
        seen = now;
    }
    at
}

fn moderation_spaces_interrupts_and_keeps_one(kind: DeviceKind) {
    let mut bare = with_ring(kind, 4);
    let mut vis = bare.connected(Reliability::Delivery, 9, 0);
    complete(&mut bare, &mut vis, 0);
    complete(&mut bare, &mut vis, 1);
    assert!(arm_again_and_again(&mut bare, 10).len() >= 9, "no moderation");
    bare.settle();
    bare.write(1, MODERATION::OFFSET, u32::try_from(GAP).unwrap());
    bare.settle();
    bare.bench.run(GAP);
    let at = arm_again_and_again(&mut bare, 45);
    assert_eq!(at.len(), 5, "{at:?}");
    for pair in at.windows(2) {
        let gap = pair[1] - pair[0];
        assert!((GAP..=GAP + LATE).contains(&gap), "{at:?}");
    }
    // Another vector does not wait. What this one keeps comes in its time, once.
    let before = bare.host(1).interrupts;
    let other = usize::from(SEND_EVENTS);
    bare.consume(1, SEND_EVENTS, true);
    bare.wait("the other vector", |bare| bare.host(1).interrupts[other] > before[other]);
    assert_eq!(bare.host(1).interrupts[VECTOR], before[VECTOR]);
    bare.bench.run(2 * GAP + LATE);
    assert_eq!(bare.host(1).interrupts[VECTOR], before[VECTOR] + 1, "kept once");
    // A mask holds it longer; the end of moderation ends a rest.
    let control = msix_entry(2) + MSIX_CONTROL;
    bare.consume(1, RECV_EVENTS, true);
    bare.wait("an interrupt", |bare| bare.host(1).interrupts[VECTOR] == before[VECTOR] + 2);
    bare.consume(1, RECV_EVENTS, true);
    bare.write(1, control, 1);
    bare.bench.run(2 * GAP);
    assert_eq!(bare.host(1).interrupts[VECTOR], before[VECTOR] + 2, "masked");
    bare.write(1, control, 0);
    bare.wait("the kept one", |bare| bare.host(1).interrupts[VECTOR] == before[VECTOR] + 3);
    bare.consume(1, RECV_EVENTS, true);
    bare.bench.run(GAP / 2);
    assert_eq!(bare.host(1).interrupts[VECTOR], before[VECTOR] + 3, "rests");
    bare.write(1, MODERATION::OFFSET, 0);
    bare.bench.run(LATE);
    assert_eq!(bare.host(1).interrupts[VECTOR], before[VECTOR] + 4, "no moderation any more");
}

fn a_status_is_there_before_its_event_and_that_before_its_interrupt(kind: DeviceKind) {
    let mut bare = with_ring(kind, 5);
    for (place, level) in [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception]
        .into_iter()
        .enumerate()
    {
        let mut vis = bare.connected(level, 9 + u16::try_from(place).unwrap(), place);
        let data = tests::pattern(9000, place);
        let [from, to] = [vis[0].data_offset(), vis[1].data_offset()];
        bare.host_mut(0).put(from, &data);
        let lengths = [0, 1, 64, 4096, 9000, 5, 300];
        let recvs = lengths.map(|length| {
            let segments = [vis[1].segment(0, length)];
            vis[1].post(&mut bare, Queue::Recv, &segments)
        });
        bare.consume(1, RECV_EVENTS, true);
        bare.settle();
        let interrupts = bare.host(1).interrupts[VECTOR];
        let sends = lengths.map(|length| {
            let segments = [vis[0].segment(0, length)];
            vis[0].post(&mut bare, Queue::Send, &segments)
        });
        let (mut sent, mut received, mut steps) = (0, 0, 0);
        while received < lengths.len() || sent < lengths.len() {
            bare.bench.step();
            steps += 1;
            assert!(steps < 1_000_000, "{sent} and {received} of {} reported", lengths.len());
            if bare.host(1).interrupts[VECTOR] > interrupts && received == 0 {
                assert!(bare.next_event(1, RECV_EVENTS).is_some(), "the record comes first");
            }
            let count = |events: Vec<Event>| -> usize {
                events.iter().map(|event| event.word1 as usize).sum()
            };
            let news = count(bare.peek_events(1, RECV_EVENTS));
            for i in received..received + news {
                assert!(recvs[i].is_done(&bare), "{level:?} receive {i}");
                let length = lengths[i];
                // Until the next message overwrites it.
                let whole = bare.host(1).memory[to..to + length] == data[..length];
                assert!(whole || i + 1 < lengths.len(), "data of receive {i}");
            }
            received += news;
            let news = count(bare.peek_events(0, SEND_EVENTS));
            assert!(sends[sent..sent + news].iter().all(|send| send.is_done(&bare)), "{level:?}");
            sent += news;
        }
        bare.consume(1, RECV_EVENTS, false);
        bare.consume(0, SEND_EVENTS, false);
        bare.settle();
    }
}

fn events_to_an_absent_queue_are_lost_and_completions_are_not(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    bare.register();
    let mut body = vi_body(Reliability::Delivery);
    body[1] = 200 | 255 << 16;
    for node in 0..2 {
        bare.ok(node, Opcode::ViCreate, 9, &body);
    }
    let mut vis = [0, 1].map(|node| BareVi::new(node, 9, 0));
    bare.connect(&vis, 1);
    bare.assert_delivers(&mut vis, 5000);
    bare.settle();
    assert_eq!(bare.counter(1, Counter::EventsDeferred), 0);
    assert_eq!(bare.take_events(1, RECV_EVENTS), []);
    // A queue that is created later does not inherit them.
    bare.assert_no_stray_writes();
}

/// Stops VIs of node 0 by disconnecting them at node 1.
fn stop(bare: &mut Bare, vis: &[[BareVi; 2]]) {
    for [_, far] in vis {
        bare.ok(1, Opcode::ViDisconnect, far.number.into(), &[]);
        bare.settle();
    }
}

fn errors_wait_for_room_in_their_queue(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    resize(&mut bare, 0, ERROR_EVENTS, 2);
    let vis: Vec<_> =
        (0..8_u16).map(|i| bare.connected(Reliability::Delivery, 30 + i, 0)).collect();
    stop(&mut bare, &vis[..6]);
    let mut stops = bare.take_events(0, ERROR_EVENTS);
    assert_eq!(stops.len(), 4);
    bare.settle();
    stops.extend(bare.take_events(0, ERROR_EVENTS));
    let numbers: Vec<u16> = stops.iter().map(|event| event.index).collect();
    assert_eq!(numbers, (30..36).collect::<Vec<_>>());
    for event in &stops {
        let reported = (u32::from(event.kind), event.word1, event.word2);
        let reason = StopReason::Disconnected as u32;
        assert_eq!(reported, (Kind::ViError as u32, reason, DESC_FLUSHED_ERROR));
    }
    // Without a queue an event is lost.
    bare.write(0, ERROR_QUEUE::OFFSET, 0);
    stop(&mut bare, &vis[6..7]);
    bare.write(0, ERROR_QUEUE::OFFSET, ERROR_QUEUE::VALID.mask());
    bare.settle();
    assert_eq!(bare.take_events(0, ERROR_EVENTS), []);
    stop(&mut bare, &vis[7..]);
    assert_eq!(bare.take_events(0, ERROR_EVENTS).len(), 1);
}

fn deferred_errors_follow_the_error_queue(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    resize(&mut bare, 0, ERROR_EVENTS, 2);
    let vis: Vec<_> =
        (0..6_u16).map(|i| bare.connected(Reliability::Delivery, 30 + i, 0)).collect();
    stop(&mut bare, &vis);
    bare.write(0, ERROR_QUEUE::OFFSET, ERROR_QUEUE::VALID.mask() | u32::from(SEND_EVENTS));
    bare.settle();
    let stops = bare.take_events(0, SEND_EVENTS);
    assert_eq!(stops.iter().map(|event| event.index).collect::<Vec<_>>(), [34, 35]);
}

fn a_disconnect_withdraws_a_deferred_error(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    resize(&mut bare, 0, ERROR_EVENTS, 2);
    let vis: Vec<_> =
        (0..6_u16).map(|i| bare.connected(Reliability::Delivery, 30 + i, 0)).collect();
    stop(&mut bare, &vis);
    bare.ok(0, Opcode::ViDisconnect, 34, &[]);
    let first = bare.take_events(0, ERROR_EVENTS).len();
    bare.settle();
    let rest = bare.take_events(0, ERROR_EVENTS);
    assert_eq!((first, rest.iter().map(|e| e.index).collect::<Vec<_>>()), (4, vec![35]));
}

fn messages_are_delivered_or_refused(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    bare.ok(1, Opcode::EventDestroy, MESSAGE_EVENTS.into(), &[]);
    let shape = Shape { log2: 2, wide: true, domain: 0, vector: 3 };
    bare.event_create(1, MESSAGE_EVENTS, shape);
    // Domain 6 is bound to a narrow queue, 7 to an absent one, 5 to none.
    bare.ok(1, Opcode::MessageQueue, 6, &[SEND_EVENTS.into()]);
    bare.ok(1, Opcode::MessageQueue, 7, &[99]);
    bare.take_events(0, ERROR_EVENTS);
    let send = |bare: &mut Bare, domain: u32, n: u32| {
        let body: [u32; 12] = std::array::from_fn(|i| n * 100 + u32::try_from(i).unwrap());
        bare.ok(0, Opcode::MessageSend, 0xabcd_0002 | domain << 8, &body);
        bare.settle();
    };
    let refusals = |bare: &mut Bare| {
        let events = bare.take_events(0, ERROR_EVENTS);
        assert!(events.iter().all(|e| (e.kind, e.index) == (MESSAGE_REFUSED, 2)));
        events.len()
    };
    for n in 0..4 {
        let slot = Bare::event_ring(MESSAGE_EVENTS) + 64 * n as usize;
        send(&mut bare, 0, n);
        for i in 0..12 {
            let at = slot + 4 * i as usize;
            assert_eq!(bare.host(1).word(at), n * 100 + i, "message {n}");
        }
    }
    assert_eq!(refusals(&mut bare), 0);
    for (count, domain) in [0, 5, 6, 7].into_iter().enumerate() {
        send(&mut bare, domain, 9);
        assert_eq!(refusals(&mut bare), 1, "domain {domain}");
        let refused = u32::try_from(count + 1).unwrap();
        assert_eq!(bare.counter(1, Counter::MessagesRefused), refused);
    }
    let events = bare.take_events(1, MESSAGE_EVENTS);
    assert_eq!(summary(&events), [(MESSAGE, 1, 0); 4]);
    bare.settle();
    send(&mut bare, 0, 5);
    assert_eq!(bare.take_events(1, MESSAGE_EVENTS).len(), 1, "there is room again");
    assert_eq!(bare.counter(1, Counter::MessagesReceived), 5);
    assert_eq!(bare.counter(0, Counter::MessagesSent), 9);
}

on_every_kind! {
    a_full_queue_defers_and_then_drains_in_order,
    one_free_entry_takes_one_record,
    the_phase_flips_on_each_pass,
    arming_never_loses_a_wake_up,
    only_an_armed_queue_interrupts_and_once,
    a_masked_vector_is_kept_pending,
    moderation_spaces_interrupts_and_keeps_one,
    a_status_is_there_before_its_event_and_that_before_its_interrupt,
    events_to_an_absent_queue_are_lost_and_completions_are_not,
    errors_wait_for_room_in_their_queue,
    deferred_errors_follow_the_error_queue,
    a_disconnect_withdraws_a_deferred_error,
    messages_are_delivered_or_refused,
}
