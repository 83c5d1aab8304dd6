//! Doorbells that are refused: counted, logged with the cause, and nothing else happens.

use nic_regs::admin::Opcode;
use nic_regs::counter::{Counter, ErrorCode, ErrorRecord};
use nic_regs::csr::CONTROL;
use nic_regs::desc::DataSegment;
use nic_regs::doorbell::{
    EVENT_OFFSET, EventDoorbell, PUSH_LINE_BYTES, PUSH_LINE_COUNT, PUSH_OFFSET, Queue,
    TOKEN_OFFSET, Token,
};
use nic_regs::limits::{POSTED_MAX, VI_COUNT};
use nic_regs::vi::Reliability;
use tests::bare::{Bare, RECV_EVENTS, Shape, page};
use tests::vi::{BareVi, DOMAIN, REGION, vi_body};
use tests::{DeviceKind, Pair, on_every_kind};

/// The first byte behind the push lines.
const PUSH_END: u64 = PUSH_OFFSET + PUSH_LINE_COUNT * PUSH_LINE_BYTES;

/// A VI under test and one that must go on.
struct Case {
    bare: Bare,
    vis: [BareVi; 2],
    bystanders: [BareVi; 2],
    refused: u32,
    accepted: u32,
}

impl Case {
    fn new(kind: DeviceKind) -> Self {
        let mut bare = Bare::up(kind);
        bare.register();
        let vis = bare.connected(Reliability::Delivery, 40, 0);
        let mut bystanders = bare.connected(Reliability::Reception, 41, 1);
        bare.assert_delivers(&mut bystanders, 100);
        let accepted = bare.counter(0, Counter::DoorbellTokens);
        assert_eq!(bare.take_log(0), []);
        Self { bare, vis, bystanders, refused: 0, accepted }
    }

    /// A write to BAR2 of node 0 is refused for this cause.
    #[track_caller]
    fn refused(&mut self, at: u64, data: &[u8], cause: u32, object: u16) {
        let what = format!("{data:x?} at {at:#x}");
        let bare = &mut self.bare;
        bare.write_raw(0, 2, at, data);
        // Doorbells are judged some time after they are taken; register reads are answered at once.
        bare.bench.run(200);
        self.refused += 1;
        assert_eq!(bare.counter(0, Counter::DoorbellBad), self.refused, "{what}");
        let log = bare.take_log(0);
        let [ErrorRecord { code, index, detail }] = log[..] else { panic!("{what}: {log:?}") };
        assert_eq!(u32::from(code), ErrorCode::BadDoorbell as u32, "{what}");
        assert_eq!(u64::from(index), at / 4096, "{what}");
        assert_eq!(detail >> 28, cause, "{what}: {detail:#x}");
        let dword = u32::try_from((at % 4096) & !3).unwrap();
        assert_eq!(detail >> 16 & 0xffc, dword, "{what}: {detail:#x}");
        if cause != 0 {
            assert_eq!(detail & 0xffff, u32::from(object), "{what}: {detail:#x}");
        }
    }

    fn token(vi: u16) -> [u8; 8] {
        let queue = Queue::Recv;
        Token { vi, region: REGION, offset_64: 0, segments: 1, queue }.to_bits().to_le_bytes()
    }

    fn event(queue: u16, consumer: u16) -> [u8; 8] {
        EventDoorbell { queue, arm: true, consumer }.to_bits().to_le_bytes()
    }

    /// Nothing was posted, nobody was interrupted, and both connections work.
    fn finish(mut self) {
        let bare = &mut self.bare;
        bare.settle();
        assert_eq!(bare.counter(0, Counter::DoorbellTokens), self.accepted);
        assert_eq!(bare.counter(0, Counter::Interrupts), 0);
        assert_eq!(bare.counter(0, Counter::BadRegister), 0);
        bare.assert_connected(&self.vis);
        bare.assert_delivers(&mut self.vis, 5000);
        bare.assert_delivers(&mut self.bystanders, 5000);
        bare.assert_no_stray_writes();
    }
}

fn sizes_and_offsets(kind: DeviceKind) {
    let mut case = Case::new(kind);
    let token = [Case::token(40), Case::token(41)].concat();
    for bytes in (1..8).chain([9, 12, 15, 16]) {
        case.refused(page(DOMAIN), &token[..bytes], 0, 0);
    }
    for bytes in [1, 4, 12] {
        case.refused(page(DOMAIN) + EVENT_OFFSET, &Case::event(1, 0).repeat(2)[..bytes], 0, 0);
    }
    case.refused(page(DOMAIN), &[0; 64], 0, 0);
    for offset in [1, 4, 7, 12, 0x10, 0x18, PUSH_OFFSET - 8, PUSH_END, 0x7f8, 0xff8] {
        case.refused(page(DOMAIN) + offset, &token[..8], 0, 0);
    }
    for offset in [0x10, PUSH_END] {
        case.refused(page(63) + offset, &[0; 64], 0, 0);
    }
    // A push is for the send queue; without the feature its lines are nothing at all.
    case.refused(page(DOMAIN) + PUSH_OFFSET, &token[..8], 0, 0);
    if !case.bare.features().push {
        case.refused(page(DOMAIN) + PUSH_OFFSET + 8, &token[..8], 0, 0);
        case.refused(page(63) + PUSH_OFFSET, &[0; 64], 0, 0);
    }
    case.finish();
}

fn pages_and_vis(kind: DeviceKind) {
    let mut case = Case::new(kind);
    for domain in [0, DOMAIN + 1, 63] {
        case.refused(page(domain) + TOKEN_OFFSET, &Case::token(40), 1, 40);
    }
    // Free, and not there at all.
    let last = u16::try_from(VI_COUNT).unwrap() - 1;
    for vi in [0, 39, last, last + 1, 0x4000 + 40, 0xffff] {
        case.refused(page(DOMAIN) + TOKEN_OFFSET, &Case::token(vi), 1, vi);
    }
    case.finish();
}

fn event_queues_and_consumer_indices(kind: DeviceKind) {
    let mut case = Case::new(kind);
    // The queues 0 to 3 belong to domain 0.
    for (domain, queue) in [(DOMAIN, 1), (63, 0), (0, 4), (0, 255), (0, 256), (0, 0xffff)] {
        case.refused(page(domain) + EVENT_OFFSET, &Case::event(queue, 0), 2, queue);
    }
    // Ahead of the device, which has written one record; and further behind than the ring is long.
    for consumer in [2, 3, 0x7fff, 1_u16.wrapping_sub(1025)] {
        case.refused(page(0) + EVENT_OFFSET, &Case::event(1, consumer), 3, 1);
    }
    // As far behind as can be is taken; it interrupts, since there are records.
    let furthest = 1_u16.wrapping_sub(1024);
    case.bare.write_raw(0, 2, page(0) + EVENT_OFFSET, &Case::event(1, furthest));
    case.bare.settle();
    assert_eq!(case.bare.host(0).interrupts[1], 1);
    assert_eq!(case.bare.counter(0, Counter::DoorbellBad), case.refused);
    case.bare.take_events(0, 1);
    case.bare.assert_delivers(&mut case.vis, 10);
    case.bare.assert_delivers(&mut case.bystanders, 10);
}

fn reads_of_the_doorbell_bar_answer_zero(kind: DeviceKind) {
    let mut case = Case::new(kind);
    for (offset, bytes) in [(0, 8), (0, 4), (8, 8), (0x10, 1), (page(63), 2), (PUSH_OFFSET, 8)] {
        assert_eq!(case.bare.read_raw(0, 2, offset, bytes), 0, "{bytes} bytes at {offset:#x}");
    }
    case.finish();
}

fn a_disabled_device_drops_doorbells_silently(kind: DeviceKind) {
    let mut case = Case::new(kind);
    case.bare.write(0, CONTROL::OFFSET, 0);
    case.bare.write_raw(0, 2, page(DOMAIN), &Case::token(40));
    case.bare.write_raw(0, 2, page(DOMAIN), &Case::token(999));
    case.bare.write_raw(0, 2, page(DOMAIN) + 0x10, &[1]);
    case.bare.bench.run(500);
    case.bare.write(0, CONTROL::OFFSET, CONTROL::ENABLE.mask());
    assert_eq!(case.bare.counter(0, Counter::DoorbellBad), 0);
    assert_eq!(case.bare.take_log(0), []);
    case.finish();
}

fn a_vi_in_error_drops_posts(kind: DeviceKind) {
    let mut case = Case::new(kind);
    let bare = &mut case.bare;
    bare.ok(1, Opcode::ViDisconnect, 40, &[]);
    bare.settle();
    let vi = &mut case.vis[0];
    let posted = [Queue::Send, Queue::Recv].map(|queue| vi.post(bare, queue, &[]));
    bare.settle();
    assert_eq!(bare.counter(0, Counter::DoorbellDropped), 2);
    assert_eq!(bare.counter(0, Counter::DoorbellBad), 0);
    assert_eq!(bare.take_log(0), []);
    assert_eq!(posted.map(|posted| posted.status(bare)), [0, 0]);
    bare.reconnect(&mut case.vis, 2);
    case.finish();
}

fn a_work_queue_that_is_full_drops_posts(kind: DeviceKind) {
    for queue in [Queue::Send, Queue::Recv] {
        let mut bare = Bare::up(kind);
        bare.register();
        let mut vis = [0, 1].map(|node| BareVi::new(node, 77, 2));
        for vi in &vis {
            bare.ok(vi.node, Opcode::ViCreate, 77, &vi_body(Reliability::Delivery));
        }
        let node = queue as usize;
        let segments = [0, 1].map(|node| vis[node].segment(0, 8));
        let [send, recv] = [Queue::Send, Queue::Recv].map(|queue| {
            let node = queue as usize;
            vis[node].write(&mut bare, queue, &segments[node..=node])
        });
        let tokens = [send.1, recv.1];
        let ring = |bare: &mut Bare, node: usize| {
            let bits = tokens[node].to_bits();
            bare.doorbell(node, DOMAIN, TOKEN_OFFSET, bits);
        };
        ring(&mut bare, 1 - node);
        for _ in 0..POSTED_MAX {
            ring(&mut bare, node);
        }
        bare.settle();
        let posted = |bare: &mut Bare| bare.counter(node, Counter::DoorbellTokens);
        assert_eq!(posted(&mut bare), u32::from(POSTED_MAX));
        assert_eq!(bare.counter(node, Counter::DoorbellDropped), 0);
        for dropped in 1..4 {
            ring(&mut bare, node);
            bare.settle();
            assert_eq!(posted(&mut bare), u32::from(POSTED_MAX));
            assert_eq!(bare.counter(node, Counter::DoorbellDropped), dropped);
        }
        bare.connect(&vis, 1);
        bare.wait("a message", |bare| send.0.is_done(bare) && recv.0.is_done(bare));
        // The descriptor behind it is nowhere, which stops a sender.
        if queue == Queue::Recv {
            ring(&mut bare, node);
            ring(&mut bare, node);
            bare.settle();
            assert_eq!(posted(&mut bare), u32::from(POSTED_MAX) + 1, "there is room for one");
        }
        assert_eq!(bare.take_log(node), []);
    }
}

fn posts_to_an_idle_vi_wait_for_its_connection(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    bare.register();
    let mut vis = [0, 1].map(|node| BareVi::new(node, 77, 2));
    for vi in &vis {
        bare.ok(vi.node, Opcode::ViCreate, 77, &vi_body(Reliability::Delivery));
    }
    let data = tests::pattern(3 * 700, 5);
    let from = vis[0].data_offset();
    bare.host_mut(0).put(from, &data);
    let part = |vi: &BareVi, i: usize| -> [DataSegment; 1] { [vi.segment(700 * i, 700)] };
    let mut posted = Vec::new();
    for i in 0..3 {
        for (vi, queue) in vis.iter_mut().zip([Queue::Send, Queue::Recv]) {
            let segments = part(vi, i);
            posted.push(vi.post(&mut bare, queue, &segments));
        }
    }
    bare.settle();
    assert!(posted.iter().all(|posted| posted.status(&bare) == 0));
    bare.connect(&vis, 1);
    bare.wait("what was posted before", |bare| posted.iter().all(|posted| posted.is_done(bare)));
    let to = vis[1].data_offset();
    assert!(bare.host(1).memory[to..to + data.len()] == data);
}

fn doorbells_come_faster_than_they_are_served(kind: DeviceKind) {
    let mut bare = Bare::up(kind);
    bare.register();
    let shape = Shape { domain: DOMAIN, ..Shape::narrow(10, 2) };
    bare.ok(1, Opcode::EventDestroy, RECV_EVENTS.into(), &[]);
    bare.event_create(1, RECV_EVENTS, shape);
    let mut vis: Vec<_> =
        (0..8_u16).map(|i| bare.connected(Reliability::Delivery, 100 + i, i.into())).collect();
    let mut posted = Vec::new();
    for (node, queue) in [(1, Queue::Recv), (0, Queue::Send)] {
        for _ in 0..30 {
            for pair in &mut vis {
                let segments = [pair[node].segment(0, 16)];
                posted.push(pair[node].post(&mut bare, queue, &segments));
            }
        }
        bare.bench.run(2000);
    }
    bare.wait("all messages", |bare| posted.iter().all(|posted| posted.is_done(bare)));
    // Events come after statuses.
    bare.settle();
    assert!(posted.iter().all(|posted| posted.errors(&bare) == 0));
    assert_eq!(bare.counter(0, Counter::DoorbellTokens), 240);
    let reported: u32 = bare.take_events(1, RECV_EVENTS).iter().map(|event| event.word1).sum();
    assert_eq!(reported, 240);
}

/// The same through a driver: what no driver does.
fn accesses_that_no_driver_makes(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (a, b) = pair.connected(Reliability::Delivery);
    let bus = &pair.buses[0];
    let counter = |c| pair.a.driver.counter(c).unwrap();
    let before = [Counter::BadRegister, Counter::DoorbellBad].map(counter);
    assert_eq!(bus.read_raw(0, 0x1c, 2).unwrap(), 0);
    assert_eq!(bus.read_raw(0, 0xffc, 4).unwrap(), 0);
    bus.write_raw(0, 0x18, &[0; 8]);
    bus.write_raw(0, 0x19, &[0]);
    // The VI belongs to the page of domain 1.
    let token = u64::from(a.number());
    bus.write_raw(2, 2 * 4096, &token.to_le_bytes());
    bus.write_raw(2, 4096, &1000_u64.to_le_bytes());
    bus.write_raw(2, 4096, &token.to_le_bytes()[..4]);
    bus.write_raw(2, 4096 + 0x10, &token.to_le_bytes());
    let after = [Counter::BadRegister, Counter::DoorbellBad].map(counter);
    assert_eq!(after, before.map(|count| count + 4));
    pair.assert_works(&a, &b);
}

on_every_kind! {
    sizes_and_offsets,
    pages_and_vis,
    event_queues_and_consumer_indices,
    reads_of_the_doorbell_bar_answer_zero,
    a_disabled_device_drops_doorbells_silently,
    a_vi_in_error_drops_posts,
    a_work_queue_that_is_full_drops_posts,
    posts_to_an_idle_vi_wait_for_its_connection,
    doorbells_come_faster_than_they_are_served,
    accesses_that_no_driver_makes,
}
