//! How the device reaches descriptors: tokens, Next, segment counts. A driver never gets these
//! wrong, so the descriptors are written by hand.

use cosim::testbench::{FREE_OFFSET, va};
use nic_regs::admin::Opcode;
use nic_regs::desc::DataSegment;
use nic_regs::desc::status::{DONE, FORMAT_ERROR, OP_RECEIVE, PROTECTION_ERROR};
use nic_regs::doorbell::{Queue, TOKEN_OFFSET, Token};
use nic_regs::tpt::Handle;
use nic_regs::vi::{Reliability, State, StopReason};
use tests::bare::{Bare, ERROR_EVENTS};
use tests::vi::{BareVi, DOMAIN, HANDLE, REGION, region_body};
use tests::{DeviceKind, on_every_kind};

const LEVELS: [Reliability; 3] =
    [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];
const BOTH: [Queue; 2] = [Queue::Send, Queue::Recv];

/// Free memory that the regions made here cover, and no VI uses.
const PLACE: usize = 0x60_0000;
/// Of another tag; of another domain; beginning in the middle of 64 bytes; of 64 bytes.
const OTHER_TAG: u16 = 800;
const OTHER_DOMAIN: u16 = 801;
const SLANTED: u16 = 802;
const SHORT: u16 = 803;

struct Case {
    bare: Bare,
    vis: [BareVi; 2],
    bystanders: [BareVi; 2],
    connection: u32,
}

impl Case {
    fn new(kind: DeviceKind, level: Reliability) -> Self {
        let mut bare = Bare::up(kind);
        bare.register();
        for node in 0..2 {
            let mut set = |index: u16, offset, bytes, change: fn(&mut [u32; 7])| {
                let mut body = region_body(PLACE + offset, bytes, Handle::new(index, 2));
                change(&mut body);
                bare.ok(node, Opcode::RegionSet, index.into(), &body);
            };
            set(OTHER_TAG, 0, 4096, |body| body[5] += 1);
            set(OTHER_DOMAIN, 0, 4096, |body| body[6] += 1);
            set(SLANTED, 32, 4096, |_| {});
            set(SHORT, 0, 64, |_| {});
        }
        let vis = bare.connected(level, 9, 0);
        let bystanders = bare.connected(Reliability::Reception, 10, 1);
        for node in 0..2 {
            bare.take_events(node, ERROR_EVENTS);
        }
        Self { bare, vis, bystanders, connection: 1 }
    }

    /// The node whose descriptors of this queue are under test.
    const fn node(queue: Queue) -> usize {
        match queue {
            Queue::Send => 0,
            Queue::Recv => 1,
        }
    }

    fn ring(&mut self, token: Token) {
        let node = Self::node(token.queue);
        self.bare.doorbell(node, DOMAIN, TOKEN_OFFSET, token.to_bits());
    }

    /// Has the device look at the head of the receive queue.
    fn poke(&mut self, queue: Queue) {
        if queue == Queue::Recv {
            self.bare.bench.run(300);
            let segment = self.vis[0].segment(0, 16);
            self.vis[0].post(&mut self.bare, Queue::Send, &[segment]);
        }
        self.bare.settle();
    }

    fn disconnect(&mut self) {
        for vi in &mut self.vis {
            self.bare.ok(vi.node, Opcode::ViDisconnect, 9, &[]);
            vi.forget_queues();
        }
        self.bare.settle();
        for node in 0..2 {
            self.bare.take_events(node, ERROR_EVENTS);
        }
    }

    fn reconnect(&mut self) {
        self.connection += 1;
        self.bare.connect(&self.vis, self.connection);
    }

    /// The VI stopped for the reason Descriptor; the other VIs go on, and so does this one later.
    #[track_caller]
    fn stopped(&mut self, queue: Queue, what: &str) {
        let node = Self::node(queue);
        let bare = &mut self.bare;
        assert_eq!(bare.state(&self.vis[node]), State::Error as u32, "{what}");
        let events = bare.take_events(node, ERROR_EVENTS);
        let [event] = events[..] else { panic!("{what}: {events:?}") };
        let reason = StopReason::Descriptor as u32 | (queue as u32) << 16;
        assert_eq!((event.word1, event.word2), (reason, PROTECTION_ERROR), "{what}");
        bare.take_events(1 - node, ERROR_EVENTS);
        bare.assert_delivers(&mut self.bystanders, 300);
        self.disconnect();
        self.reconnect();
        self.bare.assert_delivers(&mut self.vis, 300);
        self.bare.assert_no_stray_writes();
    }
}

fn tokens_are_checked(kind: DeviceKind) {
    for level in LEVELS {
        let mut case = Case::new(kind, level);
        for queue in BOTH {
            let good = Token { vi: 9, region: REGION, offset_64: 0, segments: 1, queue };
            let beyond = u32::try_from(tests::bare::FREE_BYTES / 64).unwrap();
            for (what, token) in [
                ("no such region", Token { region: 1024, ..good }),
                ("no such region, by its high bits", Token { region: 0x8000 | REGION, ..good }),
                ("not registered", Token { region: 444, ..good }),
                ("another tag", Token { region: OTHER_TAG, ..good }),
                ("another domain", Token { region: OTHER_DOMAIN, ..good }),
                ("before the region", Token { region: SLANTED, ..good }),
                ("after the region", Token { offset_64: beyond, ..good }),
                ("far after the region", Token { offset_64: (1 << 26) - 1, ..good }),
                ("just after a short region", Token { region: SHORT, offset_64: 1, ..good }),
            ] {
                case.ring(token);
                case.poke(queue);
                case.stopped(queue, &format!("{what}, {level:?} {queue:?}"));
            }
        }
    }
}

fn descriptors_reach_to_the_end_of_their_region(kind: DeviceKind) {
    let mut case = Case::new(kind, Reliability::Delivery);
    for queue in BOTH {
        let op = if queue == Queue::Send { 0 } else { OP_RECEIVE };
        // A control segment and SegCount segments in a region of 64 bytes.
        for (seg_count, expected) in [
            (0, Some(DONE)),
            (2, Some(DONE)),
            (3, None),
            (16, None),
            (17, None),
            (18, Some(DONE | FORMAT_ERROR)),
            (0xffff, Some(DONE | FORMAT_ERROR)),
        ] {
            let what = format!("{queue:?} {seg_count}");
            let node = Case::node(queue);
            let at = FREE_OFFSET + PLACE;
            let mut bytes = [0; 64];
            bytes[12..14].copy_from_slice(&u16::to_le_bytes(seg_count));
            case.bare.host_mut(node).put(at, &bytes);
            if queue == Queue::Send {
                case.vis[1].post(&mut case.bare, Queue::Recv, &[]);
                case.bare.bench.run(200);
            }
            case.ring(Token { vi: 9, region: SHORT, offset_64: 0, segments: 2, queue });
            if queue == Queue::Recv {
                case.bare.bench.run(300);
                case.vis[0].post(&mut case.bare, Queue::Send, &[]);
            }
            case.bare.settle();
            let status = case.bare.host(node).word(at + 28);
            match expected {
                None => {
                    assert_eq!(status, 0, "{what}");
                    case.stopped(queue, &what);
                }
                Some(expected) => {
                    assert_eq!(status, expected | op, "{what}");
                    case.disconnect();
                    case.reconnect();
                }
            }
        }
    }
}

fn the_segment_count_of_a_token_is_a_hint(kind: DeviceKind) {
    let mut case = Case::new(kind, Reliability::Delivery);
    let data = tests::pattern(16 * 40, 3);
    let [from, to] = [0, 1].map(|node| case.vis[node].data_offset());
    case.bare.host_mut(0).put(from, &data);
    for (count, hint) in [(0, 31), (1, 0), (3, 0), (3, 2), (16, 0), (16, 1), (2, 16), (5, 17)] {
        case.bare.host_mut(1).memory[to..to + data.len()].fill(0);
        let mut posted = Vec::new();
        for queue in [Queue::Recv, Queue::Send] {
            let node = Case::node(queue);
            let segments: Vec<_> = (0..count).map(|i| case.vis[node].segment(40 * i, 40)).collect();
            let (descriptor, token) = case.vis[node].write(&mut case.bare, queue, &segments);
            posted.push(descriptor);
            case.ring(Token { segments: hint, ..token });
            case.bare.bench.run(300);
        }
        case.bare.wait("a message", |bare| posted.iter().all(|posted| posted.is_done(bare)));
        assert!(posted.iter().all(|posted| posted.errors(&case.bare) == 0), "{count} {hint}");
        assert!(case.bare.host(1).memory[to..to + 40 * count] == data[..40 * count]);
    }
}

/// What is wrong with the Next of a descriptor.
const WRONG: [(&str, u64, Handle); 7] = [
    ("misaligned", 8, HANDLE),
    ("an old generation", 0, Handle::new(REGION, HANDLE.generation() - 1)),
    ("no such region", 0, Handle::new(0x400 | REGION, HANDLE.generation())),
    ("not registered", 0, Handle::new(444, 2)),
    ("another tag", 0, Handle::new(OTHER_TAG, 2)),
    ("another domain", 0, Handle::new(OTHER_DOMAIN, 2)),
    ("outside its region", 1 << 30, HANDLE),
];

fn next_is_checked(kind: DeviceKind) {
    for level in LEVELS {
        let mut case = Case::new(kind, level);
        for queue in BOTH {
            for (what, add, handle) in WRONG {
                let what = format!("{what}, {level:?} {queue:?}");
                let node = Case::node(queue);
                case.disconnect();
                if queue == Queue::Send {
                    for _ in 0..3 {
                        let segment = case.vis[1].segment(0, 16);
                        case.vis[1].post(&mut case.bare, Queue::Recv, &[segment]);
                    }
                }
                let segment = case.vis[node].segment(0, 16);
                let written =
                    [0; 3].map(|_| case.vis[node].write(&mut case.bare, queue, &[segment]));
                let [(first, _), (second, _), (third, _)] = written;
                first.link(&mut case.bare, second.address() + add, handle);
                // All are posted before it starts, so that Next counts.
                for (_, token) in written {
                    case.ring(token);
                }
                case.bare.bench.run(200);
                case.reconnect();
                if queue == Queue::Recv {
                    for _ in 0..2 {
                        let segment = case.vis[0].segment(0, 16);
                        case.vis[0].post(&mut case.bare, Queue::Send, &[segment]);
                    }
                }
                case.bare.settle();
                assert_eq!(first.errors(&case.bare), 0, "{what}");
                assert!(first.is_done(&case.bare), "{what}");
                assert_eq!(
                    [second, third].map(|posted| posted.status(&case.bare)),
                    [0, 0],
                    "{what}"
                );
                case.stopped(queue, &what);
            }
        }
    }
}

fn next_of_the_last_but_one_is_not_needed(kind: DeviceKind) {
    let mut case = Case::new(kind, Reliability::Delivery);
    for (what, add, handle) in WRONG {
        case.disconnect();
        let mut posted = Vec::new();
        for queue in [Queue::Recv, Queue::Send] {
            let node = Case::node(queue);
            let segment = case.vis[node].segment(0, 16);
            let written = [0; 2].map(|_| case.vis[node].write(&mut case.bare, queue, &[segment]));
            let second = written[1].0.address();
            written[0].0.link(&mut case.bare, second + add, handle);
            for (descriptor, token) in written {
                posted.push(descriptor);
                case.ring(token);
            }
        }
        case.bare.bench.run(200);
        case.reconnect();
        case.bare.settle();
        // The last token says where the last descriptor is.
        let statuses: Vec<u32> = posted.iter().map(|posted| posted.status(&case.bare)).collect();
        assert_eq!(statuses, [DONE | OP_RECEIVE, DONE | OP_RECEIVE, DONE, DONE], "{what}");
    }
}

fn next_is_read_when_it_counts(kind: DeviceKind) {
    for level in LEVELS {
        for i in 0..kind.size(40, 10) {
            let pause = i * kind.size(11, 37);
            let mut case = Case::new(kind, level);
            let data: Vec<Vec<u8>> = (0..4).map(|i| tests::pattern(600, i)).collect();
            let from = case.vis[0].data_offset();
            for (i, data) in data.iter().enumerate() {
                case.bare.host_mut(0).put(from + 600 * i, data);
            }
            // Receives come one by one: when the first was fetched its Next said nothing.
            for i in 0..4 {
                let segment = case.vis[1].segment(700 * i, 600);
                case.vis[1].post(&mut case.bare, Queue::Recv, &[segment]);
                case.bare.bench.run(pause);
            }
            let mut last = None;
            for i in 0..4 {
                let segment = case.vis[0].segment(600 * i, 600);
                last = Some(case.vis[0].post(&mut case.bare, Queue::Send, &[segment]));
                case.bare.bench.run(pause);
            }
            let last = last.expect("four were posted");
            case.bare.wait("all messages", |bare| last.is_done(bare));
            case.bare.settle();
            case.bare.assert_connected(&case.vis);
            let to = case.vis[1].data_offset();
            for (i, data) in data.iter().enumerate() {
                let got = &case.bare.host(1).memory[to + 700 * i..to + 700 * i + 600];
                assert!(got == data, "{level:?}, message {i}, pause {pause}");
            }
        }
    }
}

/// A receive may be fetched before the frame that it is for, and its memory registered in between: what is
/// allowed is decided when the frame comes.
fn memory_that_is_registered_behind_the_receive(kind: DeviceKind) {
    const LATE: u16 = 804;
    for level in LEVELS {
        for pause in [0, 1_000] {
            let mut case = Case::new(kind, level);
            let first = case.vis[1].segment(0, 100);
            let later = DataSegment {
                address: va(FREE_OFFSET + PLACE + 4096),
                handle: Handle::new(LATE, 7).0,
                length: 65_472,
            };
            let recv = case.vis[1].post(&mut case.bare, Queue::Recv, &[first, later]);
            case.bare.bench.run(pause);
            let body = region_body(PLACE + 4096, 1_000, Handle::new(LATE, 7));
            case.bare.ok(1, Opcode::RegionSet, LATE.into(), &body);
            let segment = case.vis[0].segment(0, 1_100);
            let data = tests::pattern(1_100, 3);
            let from = case.vis[0].data_offset();
            case.bare.host_mut(0).put(from, &data);
            let send = case.vis[0].post(&mut case.bare, Queue::Send, &[segment]);
            case.bare.wait("the message", |bare| send.is_done(bare) && recv.is_done(bare));
            assert_eq!((send.errors(&case.bare), recv.errors(&case.bare)), (0, 0), "{level:?}");
            let memory = &case.bare.host(1).memory;
            let (to, at) = (case.vis[1].data_offset(), FREE_OFFSET + PLACE + 4096);
            assert!(memory[to..to + 100] == data[..100]);
            assert!(memory[at..at + 1_000] == data[100..], "{level:?}, pause {pause}");
        }
    }
}

on_every_kind! {
    tokens_are_checked,
    memory_that_is_registered_behind_the_receive,
    descriptors_reach_to_the_end_of_their_region,
    the_segment_count_of_a_token_is_a_hint,
    next_is_checked,
    next_of_the_last_but_one_is_not_needed,
    next_is_read_when_it_counts,
}
