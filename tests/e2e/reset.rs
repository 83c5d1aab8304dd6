//! Soft reset, at rest and in the middle of everything; a device that is disabled.

use nic_regs::admin::{Opcode, PeerState};
use nic_regs::counter::{COUNTER_SLOTS, Counter};
use nic_regs::csr::{
    CONTROL, COUNTER_OFFSET, ERROR_QUEUE, KEEPALIVE, MSIX_CONTROL, NODE, SAMPLE, STATUS, msix_entry,
};
use nic_regs::desc::status::TRANSPORT_ERROR;
use nic_regs::doorbell::{Queue, TOKEN_OFFSET, Token};
use nic_regs::event::{Kind, PeerDownReason};
use nic_regs::limits::MSIX_VECTOR_COUNT;
use nic_regs::vi::{Reliability, State, StopReason};
use tests::bare::{Bare, ERROR_EVENTS, Shape};
use tests::vi::{BareVi, DOMAIN, HANDLE, REGION, region_body, vi_body};
use tests::{DeviceKind, on_every_kind};

use crate::csr_walk::assert_reset_values;

/// Every counter of node 0 is zero.
#[track_caller]
fn assert_counters_zero(bare: &mut Bare) {
    for slot in 0..u32::try_from(COUNTER_SLOTS).unwrap() {
        assert_eq!(bare.read(0, COUNTER_OFFSET + 4 * slot), 0, "slot {slot}");
    }
}

/// Node 0's tables are empty: each object can be made anew, and is as if never used.
#[track_caller]
fn assert_tables_clear(bare: &mut Bare, vis: &[u16]) {
    for vi in vis {
        assert_eq!(bare.ok(0, Opcode::ViQuery, (*vi).into(), &[]), State::Free as u32);
    }
    for peer in 0..64 {
        let state = bare.ok(0, Opcode::PeerQuery, peer, &[]);
        assert_eq!(state, PeerState::Closed as u32, "peer {peer}");
    }
    bare.ok(0, Opcode::RegionSet, REGION.into(), &region_body(0, 4096, HANDLE));
    bare.ok(0, Opcode::RegionClear, REGION.into(), &[]);
    for queue in 0..4 {
        bare.event_create(0, queue, Shape::narrow(2, 0));
    }
    bare.settle();
    for queue in 0..4 {
        assert_eq!(bare.take_events(0, queue), [], "queue {queue}");
        bare.ok(0, Opcode::EventDestroy, queue.into(), &[]);
    }
}

fn a_soft_reset_restores_everything(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    bare.register();
    let mut vis = bare.connected(Reliability::Delivery, 9, 0);
    let stopped = bare.connected(Reliability::Reception, 1023, 1);
    bare.ok(0, Opcode::ViCreate, 512, &vi_body(Reliability::Unreliable));
    bare.assert_delivers(&mut vis, 9000);
    bare.ok(1, Opcode::ViDisconnect, stopped[1].number.into(), &[]);
    vis[0].post(&mut bare, Queue::Recv, &[]);
    bare.doorbell(0, 5, TOKEN_OFFSET, 0);
    bare.write(0, 0x3fc, 0);
    bare.write(0, SAMPLE::OFFSET, SAMPLE::ARMED.mask() | 9);
    bare.write(0, KEEPALIVE::OFFSET, 77_777);
    for vector in 0..u32::try_from(MSIX_VECTOR_COUNT).unwrap() {
        bare.write(0, msix_entry(vector) + MSIX_CONTROL, 0);
    }
    bare.settle();
    bare.soft_reset(0);
    assert_reset_values(&mut bare);
    assert_counters_zero(&mut bare);
    for vector in 0..u32::try_from(MSIX_VECTOR_COUNT).unwrap() {
        let entry = [0, 4, 8, 12].map(|at| bare.read(0, msix_entry(vector) + at));
        assert_eq!(entry, [0, 0, 0, 1], "vector {vector}");
    }
    bare.configure(0);
    assert_tables_clear(&mut bare, &[9, 512, 1023, 0]);
    let clean = [Counter::SendsCompleted, Counter::FramesSent, Counter::ViStops];
    assert_eq!(clean.map(|counter| bare.counter(0, counter)), [0; 3]);
}

/// A long message each way on its own VI.
fn traffic(bare: &mut Bare, vis: &mut [[BareVi; 2]]) {
    for (i, pair) in vis.iter_mut().enumerate() {
        let (from, to) = (i % 2, 1 - i % 2);
        for _ in 0..2 {
            let segments = [pair[to].segment(0, 60_000)];
            pair[to].post(bare, Queue::Recv, &segments);
            let segments = [pair[from].segment(0, 60_000)];
            pair[from].post(bare, Queue::Send, &segments);
        }
    }
}

/// The survivor's channel went down, and so did its VIs.
#[track_caller]
fn assert_peer_lost(bare: &mut Bare, vis: &[[BareVi; 2]]) {
    let events = bare.take_events(1, ERROR_EVENTS);
    let of = |kind: Kind| {
        let kind = u8::try_from(kind as u32).unwrap();
        events.iter().filter(move |event| event.kind == kind)
    };
    let mut stops: Vec<_> = of(Kind::ViError).map(|e| (e.index, e.word1, e.word2)).collect();
    let expected: Vec<_> = vis
        .iter()
        .map(|pair| (pair[1].number, StopReason::PeerDown as u32, TRANSPORT_ERROR))
        .collect();
    stops.sort_unstable();
    assert_eq!(stops, expected);
    // By the new SYN, or by the RST that answers a frame of the old channel.
    let down: Vec<_> = of(Kind::PeerDown).map(|e| (e.index, e.word1)).collect();
    let reasons = [PeerDownReason::Restarted, PeerDownReason::Reset];
    assert!(reasons.iter().any(|reason| down == [(1, *reason as u32)]), "{down:?}");
    assert_eq!(events.last().map(|event| u32::from(event.kind)), Some(Kind::PeerDown as u32));
    for pair in vis {
        assert_eq!(bare.state(&pair[1]), State::Error as u32);
    }
    assert_eq!(bare.peer_state(1), PeerState::Closed as u32);
}

fn a_reset_in_mid_traffic_and_a_new_start(kind: DeviceKind) {
    for i in 0..kind.size(40, 10) {
        let delay = 50 + i * kind.size(173, 711);
        let mut bare = Bare::up(kind);
        bare.register();
        let levels = [Reliability::Delivery, Reliability::Reception, Reliability::Unreliable];
        let mut vis: Vec<_> = (0..6_u16)
            .map(|i| bare.connected(levels[usize::from(i) % 3], 20 + i, i.into()))
            .collect();
        bare.settle();
        bare.take_events(1, ERROR_EVENTS);
        traffic(&mut bare, &mut vis);
        bare.bench.run(delay);
        bare.soft_reset(0);
        assert_reset_values(&mut bare);
        // What belonged to the device before is not touched any more.
        let memory = bare.host(0).memory.clone();
        bare.bench.run(3000);
        assert!(bare.host(0).memory == memory, "after {delay}");
        bare.prepare(0).expect("the ring runs");
        bare.ok(0, Opcode::PeerOpen, 2, &[0x9999, 64]);
        bare.settle();
        assert_peer_lost(&mut bare, &vis);
        bare.ok(1, Opcode::PeerOpen, 1, &[0x1234, 64]);
        let start = bare.bench.now();
        while bare.peer_state(0) != PeerState::Open as u32 {
            assert!(bare.bench.now() < start + 500_000, "no channel after {delay}");
        }
        bare.ok(0, Opcode::RegionSet, REGION.into(), &region_body(0, 0x20_0000, HANDLE));
        let pair = &mut vis[0];
        bare.ok(0, Opcode::ViCreate, 20, &vi_body(Reliability::Delivery));
        bare.ok(1, Opcode::ViDisconnect, 20, &[]);
        pair.iter_mut().for_each(BareVi::forget_queues);
        bare.connect(pair, 7);
        bare.assert_delivers(pair, 20_000);
        bare.assert_no_stray_writes();
    }
}

/// What a reset leaves half on the link ends there: the peer sees a bad frame, and the next one is
/// whole.
fn a_reset_in_mid_frame_ends_the_frame(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    bare.register();
    let mut vis = bare.connected(Reliability::Delivery, 20, 0);
    bare.settle();
    let segments = [vis[0].segment(0, 4096)];
    vis[0].post(&mut bare, Queue::Send, &segments);
    bare.wait("a frame is half on the link", |bare| bare.bench.half_sent(0) > 100);
    assert_eq!(bare.counter(1, Counter::DropCrc), 0);
    let frames = bare.bench.sent(0, 0).len();
    bare.soft_reset(0);
    assert_eq!(bare.bench.half_sent(0), 0);
    assert_eq!(bare.bench.sent(0, 0).len(), frames + 1, "it was not ended");
    assert_eq!(bare.counter(1, Counter::DropCrc), 1);
    // The first SYN arrives.
    bare.prepare(0).expect("the ring runs");
    bare.ok(0, Opcode::PeerOpen, 2, &[0x9999, 64]);
    bare.settle();
    let events = bare.take_events(1, ERROR_EVENTS);
    let down = events.iter().filter(|event| u32::from(event.kind) == Kind::PeerDown as u32);
    let reasons: Vec<_> = down.map(|event| event.word1).collect();
    assert_eq!(reasons, [PeerDownReason::Restarted as u32]);
    assert_eq!(bare.counter(1, Counter::DropCrc), 1);
}

fn a_reset_of_both_and_a_new_start(kind: DeviceKind) {
    for delay in [0, 500, 4000] {
        let mut bare = Bare::up(kind);
        bare.register();
        let mut vis: Vec<_> =
            (0..4_u16).map(|i| bare.connected(Reliability::Delivery, 20 + i, i.into())).collect();
        traffic(&mut bare, &mut vis);
        bare.bench.run(delay);
        bare.soft_reset(0);
        bare.soft_reset(1);
        bare.bring_up().expect("the ring runs");
        bare.register();
        let mut vis = bare.connected(Reliability::Reception, 20, 0);
        bare.assert_delivers(&mut vis, 20_000);
        bare.assert_no_stray_writes();
    }
}

fn resets_in_a_row(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    for pause in [0, 3, 50, 400, 1020, 1030, 2000] {
        bare.write(0, NODE::OFFSET, 5);
        bare.write(0, CONTROL::OFFSET, CONTROL::SOFT_RESET.mask() | CONTROL::ENABLE.mask());
        bare.bench.run(pause);
    }
    bare.soft_reset(0);
    assert_reset_values(&mut bare);
    bare.bring_up().expect("the ring runs");
}

fn a_disabled_device_ignores_frames_and_goes_on_after(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    bare.register();
    let mut vis = bare.connected(Reliability::Delivery, 9, 0);
    bare.write(1, CONTROL::OFFSET, 0);
    bare.bench.run(100);
    let frames = bare.counter(1, Counter::FramesReceived);
    let segments = [0, 1].map(|node| vis[node].segment(0, 6000));
    let recv = vis[1].post(&mut bare, Queue::Recv, &segments[1..]);
    let send = vis[0].post(&mut bare, Queue::Send, &segments[..1]);
    bare.bench.run(10_000);
    assert_eq!(bare.counter(1, Counter::FramesReceived), frames);
    assert_eq!((recv.status(&bare), bare.counter(1, Counter::DropCrc)), (0, 0));
    bare.write(1, CONTROL::OFFSET, CONTROL::ENABLE.mask());
    // Its doorbell was dropped too.
    let token = Token { vi: 9, region: REGION, offset_64: 0, segments: 1, queue: Queue::Recv };
    bare.doorbell(1, DOMAIN, TOKEN_OFFSET, token.to_bits());
    bare.wait("the frames are sent again", |bare| recv.is_done(bare) && send.is_done(bare));
    assert_eq!((recv.errors(&bare), send.errors(&bare)), (0, 0));
    assert!(bare.counter(0, Counter::FramesRetransmitted) > 0);
}

fn a_device_that_has_frames_to_send_says_so(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    bare.register();
    let mut vis = bare.connected(Reliability::Delivery, 9, 0);
    let is_sending = |bare: &mut Bare| bare.read(0, STATUS::OFFSET) & STATUS::SENDING.mask() != 0;
    bare.settle();
    assert!(!is_sending(&mut bare));
    let segments = [0, 1].map(|node| vis[node].segment(0, 1));
    let recv = vis[1].post(&mut bare, Queue::Recv, &segments[1..]);
    bare.settle();
    bare.write(1, CONTROL::OFFSET, 0);
    let send = vis[0].post(&mut bare, Queue::Send, &segments[..1]);
    bare.wait("the send is complete", |bare| send.is_done(bare));
    bare.bench.run(3_000);
    assert!(is_sending(&mut bare), "a frame that nobody has acknowledged");
    bare.write(1, CONTROL::OFFSET, CONTROL::ENABLE.mask());
    bare.wait("the frame arrives", |bare| recv.is_done(bare));
    bare.settle();
    assert!(!is_sending(&mut bare));
    bare.write(1, CONTROL::OFFSET, 0);
    let send = vis[0].post(&mut bare, Queue::Send, &segments[..1]);
    bare.wait("the send is complete", |bare| send.is_done(bare));
    bare.soft_reset(0);
    assert!(!is_sending(&mut bare), "a reset forgets frames");
}

fn the_error_queue_survives_nothing(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    let vis = [0, 1, 2].map(|i| bare.connected(Reliability::Delivery, 30 + i, 0));
    bare.ok(0, Opcode::EventDestroy, ERROR_EVENTS.into(), &[]);
    bare.event_create(0, ERROR_EVENTS, Shape::narrow(2, 0));
    // Three stops and the peer's end: more than the ring takes after the first.
    for pair in &vis {
        bare.ok(1, Opcode::ViDisconnect, pair[1].number.into(), &[]);
    }
    bare.settle();
    bare.ok(1, Opcode::PeerClose, 1, &[]);
    bare.settle();
    bare.open_channel(0x777).expect("the ring runs");
    bare.settle();
    assert!(bare.counter(0, Counter::EventsDeferred) > 0);
    bare.soft_reset(0);
    bare.prepare(0).expect("the ring runs");
    bare.settle();
    assert_eq!(bare.take_events(0, ERROR_EVENTS), [], "what was deferred is forgotten");
    assert_eq!(bare.read(0, ERROR_QUEUE::OFFSET), ERROR_QUEUE::VALID.mask());
}

on_every_kind! {
    a_soft_reset_restores_everything,
    a_reset_in_mid_traffic_and_a_new_start,
    a_reset_in_mid_frame_ends_the_frame,
    a_reset_of_both_and_a_new_start,
    resets_in_a_row,
    a_disabled_device_ignores_frames_and_goes_on_after,
    a_device_that_has_frames_to_send_says_so,
    the_error_queue_survives_nothing,
}
