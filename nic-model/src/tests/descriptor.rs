//! Section 3, and what its errors do: 4.4, 4.5, 5.2, 5.5, 6.1. Every bad descriptor, on every
//! level, in both queues.

use nic_regs::admin::Opcode;
use nic_regs::counter::Counter;
use nic_regs::desc::{ControlSegment, DataSegment, control, send_operation, status};
use nic_regs::doorbell::{Queue, TOKEN_OFFSET, Token};
use nic_regs::event::Kind;
use nic_regs::tpt::Handle;
use nic_regs::vi::{Reliability, State, StopReason};

use super::support::*;

const LEVELS: [Reliability; 3] =
    [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];

/// How a descriptor is bad: writes it at 0 and rings.
type Spoil = fn(&mut Host, u16, Queue);

fn posted(host: &mut Host, vi: u16, queue: Queue, control: ControlSegment) {
    host.write_descriptor(0, control, &[(0x2000, 10), (0x3000, 10)]);
    host.link(vi, queue, 0);
    host.token(vi, queue, 0);
}

fn segment(host: &mut Host, vi: u16, queue: Queue, segment: DataSegment) {
    host.write_descriptor(0, ControlSegment::default(), &[(0x2000, 1), (0x2000, 0)]);
    host.put(48, &segment.to_bytes());
    host.link(vi, queue, 0);
    host.token(vi, queue, 0);
}

fn token(host: &mut Host, token: Token) {
    host.doorbell(DOMAIN, TOKEN_OFFSET, token.to_bits());
}

const GOOD: DataSegment = DataSegment { address: VA + 0x2000, handle: 0x0003_0005, length: 4 };

/// Descriptors that are completed with FORMAT_ERROR.
const FORMAT: [Spoil; 5] = [
    |h, vi, q| posted(h, vi, q, ControlSegment { control: 0x10, ..Default::default() }),
    |h, vi, q| posted(h, vi, q, ControlSegment { control: 0x8000, ..Default::default() }),
    |h, vi, q| posted(h, vi, q, ControlSegment { reserved: 1, ..Default::default() }),
    |h, vi, q| {
        let control = control::OP_RDMA_WRITE;
        posted(h, vi, q, ControlSegment { control, ..Default::default() });
    },
    |h, vi, q| posted(h, vi, q, ControlSegment { seg_count: 17, ..Default::default() }),
];

/// Descriptors that are completed with PROTECTION_ERROR.
const PROTECTION: [Spoil; 9] = [
    |h, vi, q| segment(h, vi, q, DataSegment { handle: 0x0003_0400, ..GOOD }),
    |h, vi, q| segment(h, vi, q, DataSegment { handle: 0x0003_0006, ..GOOD }),
    |h, vi, q| segment(h, vi, q, DataSegment { handle: 0x0002_0005, ..GOOD }),
    |h, vi, q| segment(h, vi, q, DataSegment { handle: 0x0002_0005, length: 1, ..GOOD }),
    |h, vi, q| segment(h, vi, q, DataSegment { handle: 0x0001_0008, ..GOOD }), // Another tag.
    |h, vi, q| segment(h, vi, q, DataSegment { handle: 0x0001_0009, ..GOOD }), // Another domain.
    |h, vi, q| segment(h, vi, q, DataSegment { address: VA - 1, ..GOOD }),
    |h, vi, q| {
        let address = VA + u64::from(REGION_LENGTH) - 3;
        segment(h, vi, q, DataSegment { address, ..GOOD });
    },
    |h, vi, q| segment(h, vi, q, DataSegment { address: u64::MAX - 1, ..GOOD }),
];

/// Descriptors that cannot be reached.
const UNREACHABLE: [Spoil; 8] = [
    |h, vi, queue| token(h, Token { vi, region: 1024, offset_64: 1, segments: 0, queue }),
    |h, vi, queue| token(h, Token { vi, region: 6, offset_64: 1, segments: 0, queue }),
    |h, vi, queue| token(h, Token { vi, region: 8, offset_64: 1, segments: 0, queue }),
    |h, vi, queue| token(h, Token { vi, region: 9, offset_64: 1, segments: 0, queue }),
    // Below the region's first byte; its end; SegCount reaches over the end.
    |h, vi, queue| token(h, Token { vi, region: 7, offset_64: 0, segments: 0, queue }),
    |h, vi, queue| {
        token(h, Token { vi, region: REGION, offset_64: 0x3ff_ffff, segments: 0, queue });
    },
    |h, vi, queue| {
        let at = u64::from(REGION_LENGTH) - 64;
        let control = ControlSegment { seg_count: 3, ..Default::default() };
        h.memory.put(BUS + at, &control.to_bytes());
        h.token(vi, queue, at);
    },
    // More than a queue's descriptors may have, and still all of them are looked for.
    |h, vi, queue| {
        let at = u64::from(REGION_LENGTH) - 64;
        let control = ControlSegment { seg_count: 17, ..Default::default() };
        h.memory.put(BUS + at, &control.to_bytes());
        h.token(vi, queue, at);
    },
];

fn testbench(level: Reliability) -> Testbench {
    let mut w = Testbench::pair(level);
    for side in [A, B] {
        let mut words = region_words();
        words[5] = u32::from(TAG + 1) | 1 << 16;
        w.ok(side, Opcode::RegionSet, 8, words);
        words[5] = u32::from(TAG) | 1 << 16;
        words[6] = u32::from(DOMAIN + 1) | 1 << 8;
        w.ok(side, Opcode::RegionSet, 9, words);
        // A region that does not begin at a multiple of 64.
        let mut words = region_words();
        (words[0], words[2]) = (words[0] + 8, words[2] + 8);
        w.ok(side, Opcode::RegionSet, 7, words);
    }
    w
}

/// A stop as the error queue reports it: reason, queue, status.
fn stops(w: &mut Testbench, side: usize) -> Vec<(u32, u32, u32)> {
    let events = w.hosts[side].events(ERRORS);
    assert!(events.iter().all(|e| e.kind == Kind::ViError as u8 && e.index == VIS[side]));
    events.iter().map(|e| (e.word1 & 0xffff, e.word1 >> 16, e.word2)).collect()
}

fn refused(level: Reliability, reason: StopReason) -> Vec<(u32, u32, u32)> {
    let bits = match level {
        Reliability::Unreliable => return Vec::new(),
        Reliability::Delivery => status::TRANSPORT_ERROR,
        Reliability::Reception => status::REMOTE_DESC_ERROR,
    };
    vec![(StopReason::Refused as u32 | (reason as u32) << 8, 0, bits)]
}

/// A bad descriptor that is completed, then a good one behind it.
fn completed(level: Reliability, queue: Queue, spoil: Spoil, bits: u32, reason: StopReason) {
    let mut w = testbench(level);
    let side = queue as usize;
    spoil(&mut w.hosts[side], VIS[side], queue);
    w.hosts[side].post(VIS[side], queue, 0x400, &[(0x2000, 100)]);
    let other = 1 - side;
    let partner = if queue == Send { Recv } else { Send };
    for i in 0..2 {
        w.hosts[other].post(VIS[other], partner, 64 * i, &[(0x2000, 100)]);
        w.settle();
    }
    let operation = if queue == Send { status::OP_SEND } else { status::OP_RECEIVE };
    let control = u16::from_le_bytes(w.hosts[side].data(14, 2).try_into().unwrap());
    let bad = if queue == Send { send_operation(control) } else { operation };
    assert_eq!(w.hosts[side].status(0), status::DONE | bits | bad, "{level:?} {queue:?}");
    assert_eq!(w.hosts[side].length(0), 0);
    assert!(w.hosts[side].data(0x2000, 100).iter().all(|&b| b == 0));
    if level == Reliability::Unreliable {
        assert_eq!(w.hosts[side].status(0x400), status::DONE | operation);
        assert_eq!([w.hosts[A].vi(A), w.hosts[B].vi(B)], [State::Connected; 2]);
        assert_eq!(stops(&mut w, side), []);
    } else {
        assert_eq!(w.hosts[side].status(0x400), 0);
        let stop = (reason as u32, queue as u32, status::DESC_FLUSHED_ERROR);
        assert_eq!(stops(&mut w, side), [stop]);
        assert_eq!(w.hosts[side].count(Counter::RefusalsSent), 1);
    }
    assert_eq!(stops(&mut w, other), refused(level, reason));
    let events: u32 = w.hosts[side].events(COMPLETIONS).iter().map(|e| e.word1).sum();
    assert_eq!(events, if level == Reliability::Unreliable { 2 } else { 1 });
}

#[test]
fn bad_formats() {
    for (level, queue) in LEVELS.into_iter().flat_map(|l| [(l, Send), (l, Recv)]) {
        for spoil in FORMAT {
            completed(level, queue, spoil, status::FORMAT_ERROR, StopReason::Format);
        }
    }
}

#[test]
fn bad_segments() {
    for (level, queue) in LEVELS.into_iter().flat_map(|l| [(l, Send), (l, Recv)]) {
        for spoil in PROTECTION {
            completed(level, queue, spoil, status::PROTECTION_ERROR, StopReason::Protection);
        }
    }
}

#[test]
fn format_is_checked_before_segments_and_segments_before_length() {
    let both: Spoil = |h, vi, q| {
        segment(h, vi, q, DataSegment { handle: 0, ..GOOD });
        h.put(16, &[1]);
    };
    completed(Reliability::Delivery, Send, both, status::FORMAT_ERROR, StopReason::Format);
    let both: Spoil = |h, vi, q| {
        segment(h, vi, q, DataSegment { handle: 0, ..GOOD });
        h.put(32 + 12, &300_000_u32.to_le_bytes());
    };
    completed(Reliability::Delivery, Send, both, status::PROTECTION_ERROR, StopReason::Protection);
}

#[test]
fn a_send_above_the_maximum_transfer() {
    let spoil: Spoil = |h, vi, q| {
        h.write_descriptor(0, ControlSegment::default(), &[(0x2000, 256 * 1024), (0x2000, 1)]);
        h.link(vi, q, 0);
        h.token(vi, q, 0);
    };
    for level in LEVELS {
        completed(level, Send, spoil, status::LENGTH_ERROR, StopReason::Length);
    }
}

#[test]
fn a_receive_buffer_that_is_too_short() {
    let spoil: Spoil = |h, vi, q| {
        h.write_descriptor(0, ControlSegment::default(), &[(0x2000, 50), (0x3000, 49)]);
        h.link(vi, q, 0);
        h.token(vi, q, 0);
    };
    for level in LEVELS {
        completed(level, Recv, spoil, status::LENGTH_ERROR, StopReason::Length);
    }
}

#[test]
fn a_data_read_that_fails() {
    let spoil: Spoil = |h, vi, q| {
        h.write_descriptor(0, ControlSegment::default(), &[(0x2000, 50), (0x9000, 49)]);
        h.memory.holes.push(BUS + 0x9010..BUS + 0x9011);
        h.link(vi, q, 0);
        h.token(vi, q, 0);
    };
    for level in LEVELS {
        completed(level, Send, spoil, status::TRANSPORT_ERROR, StopReason::HostRead);
    }
}

/// A descriptor that is not completed: the VI stops on every level.
fn stopped(level: Reliability, queue: Queue, spoil: Spoil, bits: u32, reason: StopReason) {
    let mut w = testbench(level);
    let side = queue as usize;
    let other = 1 - side;
    let partner = if queue == Send { Recv } else { Send };
    spoil(&mut w.hosts[side], VIS[side], queue);
    w.hosts[other].post(VIS[other], partner, 0, &[(0x2000, 100)]);
    w.settle();
    w.hosts[side].memory.writes.retain(|w| w.0 >= BUS);
    assert_eq!(w.hosts[side].memory.writes, []);
    assert_eq!(stops(&mut w, side), [(reason as u32, queue as u32, bits)], "{level:?} {queue:?}");
    assert_eq!(stops(&mut w, other), refused(level, reason));
    assert_eq!(w.hosts[side].events(COMPLETIONS), []);
    assert_eq!(w.hosts[side].model.vi_snapshot(VIS[side]).posted[queue as usize], 1);
}

#[test]
fn descriptors_that_cannot_be_reached_stop_the_vi() {
    for (level, queue) in LEVELS.into_iter().flat_map(|l| [(l, Send), (l, Recv)]) {
        for spoil in UNREACHABLE {
            stopped(level, queue, spoil, status::PROTECTION_ERROR, StopReason::Descriptor);
        }
    }
}

#[test]
fn descriptors_that_cannot_be_read_stop_the_vi() {
    for (level, queue) in LEVELS.into_iter().flat_map(|l| [(l, Send), (l, Recv)]) {
        let spoil: Spoil = |h, vi, q| {
            h.memory.holes.push(BUS + 31..BUS + 32);
            h.post(vi, q, 0, &[(0x2000, 100)]);
        };
        stopped(level, queue, spoil, status::TRANSPORT_ERROR, StopReason::HostRead);
    }
}

/// Next in a region that begins within 64 bytes: its offset counts from the multiple of 64 before.
#[test]
fn next_in_a_region_that_does_not_begin_at_a_multiple_of_64() {
    let mut w = testbench(Reliability::Delivery);
    for i in 0..4 {
        w.hosts[B].post(VIS[B], Recv, 64 * i, &[(0x2000, 100)]);
    }
    let handle = Handle::new(7, GENERATION).0;
    for at in [64, 128, 192] {
        let control =
            ControlSegment { next: VA + at + 64, next_handle: handle, ..Default::default() };
        w.hosts[A].write_descriptor(at, control, &[(0x2000, 10)]);
    }
    w.frozen[A] = true;
    for offset_64 in 1..4 {
        let vi = VIS[A];
        token(&mut w.hosts[A], Token { vi, region: 7, offset_64, segments: 1, queue: Send });
    }
    w.frozen[A] = false;
    w.settle();
    assert_eq!([64, 128, 192].map(|at| w.hosts[A].status(at)), [status::DONE; 3]);
}

#[test]
fn a_bad_next_stops_the_vi_at_the_next_fetch() {
    let bad_links: [(u64, u32); 6] = [
        (VA + 0x401, handle()),
        (VA + 0x420, handle()),
        (VA - 64, handle()),
        (VA + u64::from(REGION_LENGTH), handle()),
        (VA + 0x400, Handle::new(REGION, GENERATION + 1).0),
        (VA + 0x400, Handle::new(8, 1).0),
    ];
    for (level, link) in LEVELS.into_iter().flat_map(|l| bad_links.map(|b| (l, b))) {
        let mut w = testbench(level);
        for i in 0..3 {
            w.hosts[B].post(VIS[B], Recv, 64 * i, &[(0x2000, 100)]);
        }
        // Three posts before the connection works: c is 2 after the first pop, so Next counts.
        w.ok(A, Opcode::ViDisconnect, VIS[A].into(), [0; 12]);
        w.ok(B, Opcode::ViDisconnect, VIS[B].into(), [0; 12]);
        w.settle();
        for side in [A, B] {
            w.hosts[side].unlink(VIS[side]);
        }
        for i in 0..3 {
            w.hosts[A].post(VIS[A], Send, 0x400 * i, &[(0x2000, 8)]);
            w.hosts[B].post(VIS[B], Recv, 0x400 * i, &[(0x2000, 8)]);
        }
        let control = ControlSegment {
            next: link.0,
            next_handle: link.1,
            seg_count: 0,
            ..Default::default()
        };
        w.hosts[A].put(0, &control.to_bytes());
        for side in [B, A] {
            w.ok(side, Opcode::ViConnect, VIS[side].into(), connect_words(side));
        }
        w.settle();
        assert_eq!(w.hosts[A].status(0), status::DONE, "{level:?} {link:x?}");
        let reason = StopReason::Descriptor;
        assert_eq!(stops(&mut w, A), [(reason as u32, 0, status::PROTECTION_ERROR)]);
        assert_eq!(stops(&mut w, B), refused(level, reason));
        assert_eq!(w.hosts[A].model.vi_snapshot(VIS[A]).posted[0], 2);
    }
}

#[test]
fn empty_segments_are_not_checked_and_receive_ignores_some_bits() {
    let mut w = Testbench::pair(Reliability::Delivery);
    let control = ControlSegment {
        control: control::IMMEDIATE | control::QFENCE,
        length: 77,
        ..Default::default()
    };
    w.hosts[B].post_with(VIS[B], Recv, 0, control, &[(0x2000, 8)]);
    w.hosts[A].write_descriptor(0, ControlSegment::default(), &[(0x2000, 0), (0x2000, 4)]);
    let junk = DataSegment { address: u64::MAX, handle: u32::MAX, length: 0 };
    w.hosts[A].put(32, &junk.to_bytes());
    w.hosts[A].put(0x2000, b"word");
    w.hosts[A].token(VIS[A], Send, 0);
    w.settle();
    assert_eq!(w.hosts[A].status(0), status::DONE);
    assert_eq!(w.hosts[B].status(0), status::DONE | status::OP_RECEIVE);
    assert_eq!(w.hosts[B].data(0x2000, 8), b"word\0\0\0\0");
}

#[test]
fn the_last_bytes_of_a_region_are_in_it() {
    let mut w = Testbench::pair(Reliability::Delivery);
    let end = u64::from(REGION_LENGTH);
    w.hosts[B].post(VIS[B], Recv, end - 64, &[(end - 80, 16), (0x2000, 16)]);
    w.hosts[A].put(0x2000, &[9; 32]);
    w.hosts[A].post(VIS[A], Send, end - 64, &[(0x2000, 32)]);
    w.settle();
    assert_eq!(w.hosts[B].status(end - 64), status::DONE | status::OP_RECEIVE);
    assert_eq!(w.hosts[B].data(end - 80, 16), [9; 16]);
}

#[test]
fn a_region_that_is_cleared_in_mid_message_ends_it() {
    for level in LEVELS {
        let mut w = Testbench::pair(level);
        w.hosts[B].post(VIS[B], Recv, 0, &[(0x4000, 256 * 1024)]);
        let mut words = region_words();
        words[5] = u32::from(TAG) | 1 << 16;
        w.ok(A, Opcode::RegionSet, 8, words);
        w.hosts[A].write_descriptor(0, ControlSegment::default(), &[(0x4000, 256 * 1024)]);
        w.hosts[A].put(32 + 8, &0x0001_0008_u32.to_le_bytes());
        w.hosts[A].link(VIS[A], Send, 0);
        w.hosts[A].token(VIS[A], Send, 0);
        w.run(3000);
        w.ok(A, Opcode::RegionClear, 8, [0; 12]);
        w.settle();
        let bits = status::DONE | status::PROTECTION_ERROR | status::PARTIAL_ERROR;
        assert_eq!(w.hosts[A].status(0), bits);
        assert_eq!(w.hosts[A].length(0), 0);
        assert_eq!(w.hosts[B].status(0), 0);
        assert_eq!(stops(&mut w, B), refused(level, StopReason::Protection));
        if level == Reliability::Unreliable {
            // The receive descriptor is used for the next message.
            w.hosts[A].post(VIS[A], Send, 0x400, &[(0x2000, 5)]);
            w.settle();
            assert_eq!(w.hosts[B].status(0), status::DONE | status::OP_RECEIVE);
            assert_eq!(w.hosts[B].length(0), 5);
        }
    }
}

#[test]
fn a_receive_region_that_is_cleared_in_mid_message_ends_it() {
    for level in LEVELS {
        let mut w = Testbench::pair(level);
        let mut words = region_words();
        words[5] = u32::from(TAG) | 1 << 16;
        w.ok(B, Opcode::RegionSet, 8, words);
        w.hosts[B].write_descriptor(0, ControlSegment::default(), &[(0x4000, 256 * 1024)]);
        w.hosts[B].put(32 + 8, &0x0001_0008_u32.to_le_bytes());
        w.hosts[B].link(VIS[B], Recv, 0);
        w.hosts[B].token(VIS[B], Recv, 0);
        w.hosts[A].post(VIS[A], Send, 0, &[(0x4000, 256 * 1024)]);
        w.run(3000);
        w.ok(B, Opcode::RegionClear, 8, [0; 12]);
        w.hosts[B].memory.writes.clear();
        w.settle();
        assert!(
            w.hosts[B].memory.writes.iter().all(|&(at, n)| at < BUS || at < BUS + 64 && n == 8)
        );
        let bits = status::PROTECTION_ERROR | status::PARTIAL_ERROR;
        assert_eq!(w.hosts[B].status(0), status::DONE | status::OP_RECEIVE | bits);
        assert_eq!(stops(&mut w, A), refused(level, StopReason::Protection));
    }
}
