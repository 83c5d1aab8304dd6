//! Sections 11 and 12: RDMA writes and reads between two devices, and everything that is refused.

use nic_regs::admin::Opcode;
use nic_regs::counter::Counter;
use nic_regs::desc::{ControlSegment, DataSegment, control, status};
use nic_regs::event::Kind;
use nic_regs::tpt::{Handle, RIGHT_RDMA_READ, RIGHT_RDMA_WRITE, RIGHT_VALID};
use nic_regs::vi::{Reliability, State, StopReason, rdma};

use super::support::*;
use crate::link::Faults;

pub(super) const LEVELS: [Reliability; 3] =
    [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];
pub(super) const RELIABLE: [Reliability; 2] = [Reliability::Delivery, Reliability::Reception];
pub(super) const UNRELIABLE: Reliability = Reliability::Unreliable;
/// The region that may be written and read: bytes from `BUS`, with addresses of its own.
pub(super) const OPEN: u16 = 6;
pub(super) const OPEN_HANDLE: Handle = Handle::new(OPEN, 1);
const OPEN_LENGTH: u32 = 0x10_0000;
const RIGHTS: u8 = RIGHT_VALID | RIGHT_RDMA_WRITE | RIGHT_RDMA_READ;
/// Where local data is, and where remote data is; distances from the start of the regions.
pub(super) const LOCAL: u64 = 0x2_0000;
pub(super) const REMOTE: u64 = 0x8_0000;
pub(super) const WRITE: u16 = control::OP_RDMA_WRITE;
pub(super) const READ: u16 = control::OP_RDMA_READ;
pub(super) const WRITTEN: u32 = status::DONE | status::OP_RDMA_WRITE;
pub(super) const HAS_READ: u32 = status::DONE | status::OP_RDMA_READ;
const NOTIFIED: u32 = status::DONE | status::OP_REMOTE_RDMA_WRITE | status::IMMEDIATE;

fn region(tag: u16, domain: u8, rights: u8) -> [u32; 12] {
    let mut words = region_words();
    words[4] = OPEN_LENGTH;
    words[5] = u32::from(tag) | 1 << 16;
    words[6] = u32::from(domain) | u32::from(rights) << 8;
    words
}

/// A pair whose VIs allow this; A knows what B allows, and B what A does.
fn testbench(level: Reliability, allows: [u32; 2], rights: u8) -> Testbench {
    connect(Testbench::bare(&Default::default()), level, allows, rights)
}

/// The same with rights for everything, over this wire.
pub(super) fn open_over(level: Reliability, allows: [u32; 2], faults: &Faults) -> Testbench {
    connect(Testbench::bare(faults), level, allows, RIGHTS)
}

fn connect(mut w: Testbench, level: Reliability, allows: [u32; 2], rights: u8) -> Testbench {
    w.open_channels();
    for side in [A, B] {
        w.ok(side, Opcode::RegionSet, OPEN.into(), region(TAG, DOMAIN, rights));
        w.ok(side, Opcode::RegionSet, 8, region(TAG + 1, DOMAIN, RIGHTS));
        w.ok(side, Opcode::RegionSet, 9, region(TAG, DOMAIN + 1, RIGHTS));
        let mut words = vi_words(level);
        words[3] = allows[side];
        w.ok(side, Opcode::ViCreate, VIS[side].into(), words);
    }
    for side in [B, A] {
        let mut words = connect_words(side);
        words[1] |= rdma::MASK << rdma::PEER_LSB;
        w.ok(side, Opcode::ViConnect, VIS[side].into(), words);
    }
    w
}

pub(super) fn open(level: Reliability) -> Testbench {
    testbench(level, [rdma::MASK; 2], RIGHTS)
}

/// An RDMA descriptor: remote place, local segments.
#[derive(Clone, Copy)]
pub(super) struct Rdma<'a> {
    pub(super) control: u16,
    pub(super) immediate: u32,
    pub(super) address: u64,
    pub(super) handle: u32,
    pub(super) local: &'a [(u64, u32)],
}

pub(super) const fn rdma_of(control: u16, local: &[(u64, u32)]) -> Rdma<'_> {
    Rdma { control, immediate: 0, address: VA + REMOTE, handle: OPEN_HANDLE.0, local }
}

pub(super) fn write_rdma(host: &mut Host, at: u64, d: Rdma<'_>) {
    let seg_count = d.local.len() as u16 + 1;
    let control = ControlSegment {
        seg_count,
        control: d.control,
        immediate: d.immediate,
        ..ControlSegment::default()
    };
    host.put(at, &control.to_bytes());
    let address = DataSegment { address: d.address, handle: d.handle, length: 0 };
    host.put(at + 32, &address.to_bytes());
    for (i, &(offset, length)) in d.local.iter().enumerate() {
        let segment = DataSegment { address: VA + offset, handle: handle(), length };
        host.put(at + 48 + 16 * i as u64, &segment.to_bytes());
    }
}

pub(super) fn post_rdma(w: &mut Testbench, side: usize, at: u64, d: Rdma<'_>) {
    let host = &mut w.hosts[side];
    write_rdma(host, at, d);
    host.link(VIS[side], Send, at);
    host.token(VIS[side], Send, at);
}

pub(super) fn stops(w: &mut Testbench, side: usize) -> Vec<(u32, u32, u32)> {
    let events = w.hosts[side].events(ERRORS);
    assert!(events.iter().all(|e| e.kind == Kind::ViError as u8 && e.index == VIS[side]));
    events.iter().map(|e| (e.word1 & 0xffff, e.word1 >> 16, e.word2)).collect()
}

pub(super) fn refusal(reason: StopReason) -> u32 {
    StopReason::Refused as u32 | (reason as u32) << 8
}

const LENGTHS: [usize; 9] = [0, 1, 7, 8, 4095, 4096, 4097, 12_288, 256 * 1024];

#[test]
fn a_write_of_every_length_lands_and_completes_no_receive() {
    for level in LEVELS {
        let mut w = open(level);
        for (i, n) in LENGTHS.into_iter().enumerate() {
            let (text, at) = (pattern(i as u32, n), 0x400 * i as u64);
            w.hosts[A].put(LOCAL, &text);
            w.hosts[B].put(REMOTE, &vec![0xee; n + 1]);
            w.hosts[B].memory.writes.clear();
            post_rdma(&mut w, A, at, rdma_of(WRITE, &[(LOCAL, n as u32)]));
            w.settle();
            assert_eq!(w.hosts[A].status(at), WRITTEN, "{level:?} {n}");
            assert_eq!(w.hosts[A].length(at), n as u32);
            assert_eq!(w.hosts[B].data(REMOTE, n), text);
            assert_eq!(w.hosts[B].data(REMOTE + n as u64, 1), [0xee]);
            // At rising addresses, and nothing else.
            let writes = w.hosts[B].memory.writes.clone();
            let mut next = BUS + REMOTE;
            for (at, n) in writes {
                assert_eq!(at, next);
                next += n as u64;
            }
            assert_eq!(next, BUS + REMOTE + n as u64);
            assert_eq!(w.hosts[A].events(COMPLETIONS).len(), 1);
            assert_eq!(w.hosts[B].events(COMPLETIONS), []);
        }
        assert_eq!(w.hosts[B].count(Counter::RdmaRefused), 0);
    }
}

#[test]
fn immediate_data_takes_a_receive_descriptor_and_not_its_segments() {
    for level in LEVELS {
        let mut w = open(level);
        for (i, n) in [0, 5, 9000].into_iter().enumerate() {
            let (text, at) = (pattern(n, n as usize), 0x400 * i as u64);
            w.hosts[A].put(LOCAL, &text);
            // Its segments could not be used, and are not.
            w.hosts[B].write_descriptor(at, ControlSegment::default(), &[(0x4000, 4)]);
            w.hosts[B].put(at + 32 + 8, &[0xff; 4]);
            w.hosts[B].link(VIS[B], Recv, at);
            w.hosts[B].token(VIS[B], Recv, at);
            w.settle();
            let local = [(LOCAL, n)];
            let mut d = rdma_of(WRITE | control::IMMEDIATE, &local);
            d.immediate = 0xfeed_0000 + n;
            post_rdma(&mut w, A, at, d);
            w.settle();
            assert_eq!(w.hosts[A].status(at), WRITTEN, "{level:?} {n}");
            assert_eq!(w.hosts[B].status(at), NOTIFIED);
            assert_eq!(w.hosts[B].length(at), n);
            assert_eq!(w.hosts[B].memory.word(BUS + at + 20), 0xfeed_0000 + n);
            assert_eq!(w.hosts[B].data(REMOTE, n as usize), text);
            assert_eq!(w.hosts[B].memory.writes.iter().rev().nth(1), Some(&(BUS + at + 20, 12)));
            let event = w.hosts[B].events(COMPLETIONS);
            assert_eq!((event.len(), event[0].kind), (1, Kind::RecvComplete as u8));
        }
    }
}

#[test]
fn immediate_data_without_a_receive_descriptor_or_with_a_bad_one() {
    for level in LEVELS {
        for bad in [false, true] {
            let mut w = open(level);
            if bad {
                let control = ControlSegment { reserved: 1, ..Default::default() };
                w.hosts[B].post_with(VIS[B], Recv, 0, control, &[]);
                w.settle();
            }
            w.hosts[A].put(LOCAL, &pattern(3, 100));
            post_rdma(&mut w, A, 0, rdma_of(WRITE | control::IMMEDIATE, &[(LOCAL, 100)]));
            w.settle();
            // The data is there all the same.
            assert_eq!(w.hosts[B].data(REMOTE, 100), pattern(3, 100));
            let op = status::OP_REMOTE_RDMA_WRITE;
            let expected = if bad { status::DONE | status::FORMAT_ERROR | op } else { 0 };
            assert_eq!(w.hosts[B].status(0), expected);
            if level == UNRELIABLE {
                assert_eq!(w.hosts[B].count(Counter::UnreliableEmpty), u32::from(!bad));
                assert_eq!(w.hosts[B].vi(B), State::Connected);
                continue;
            }
            // Nobody says that it was received.
            let done = if level == Reliability::Delivery { WRITTEN } else { 0 };
            assert_eq!(w.hosts[A].status(0), done);
            let reason = if bad { StopReason::Format } else { StopReason::ReceiveEmpty };
            assert_eq!(stops(&mut w, B), [(reason as u32, 1, status::DESC_FLUSHED_ERROR)]);
            let bits = if level == Reliability::Reception {
                status::REMOTE_DESC_ERROR
            } else {
                status::TRANSPORT_ERROR
            };
            assert_eq!(stops(&mut w, A), [(refusal(reason), 0, bits)]);
        }
    }
}

#[test]
fn a_read_of_every_length_comes_back() {
    for level in RELIABLE {
        let mut w = open(level);
        for (i, n) in LENGTHS.into_iter().enumerate() {
            let (text, at) = (pattern(i as u32, n), 0x400 * i as u64);
            w.hosts[B].put(REMOTE, &text);
            w.hosts[A].put(LOCAL, &vec![0xee; n + 1]);
            w.hosts[A].memory.writes.clear();
            post_rdma(&mut w, A, at, rdma_of(READ, &[(LOCAL, n as u32)]));
            w.settle();
            assert_eq!(w.hosts[A].status(at), HAS_READ, "{level:?} {n}");
            assert_eq!(w.hosts[A].length(at), n as u32);
            assert_eq!(w.hosts[A].data(LOCAL, n), text);
            assert_eq!(w.hosts[A].data(LOCAL + n as u64, 1), [0xee]);
            let data = w.hosts[A].memory.writes.iter().filter(|w| w.0 >= BUS + LOCAL);
            assert!(data.is_sorted());
            assert_eq!(w.hosts[A].events(COMPLETIONS).len(), 1);
            assert_eq!(w.hosts[B].events(COMPLETIONS), []);
        }
        assert_eq!(w.hosts[A].ok_state(), 2);
    }
}

impl Host {
    /// ViQuery's state, once nothing is in progress.
    fn ok_state(&self) -> u8 {
        let vi = self.model.vi_snapshot(VIS[A]);
        assert!(!vi.sending && !vi.receiving);
        vi.state as u8
    }
}

#[test]
fn sixteen_local_segments_gather_and_scatter() {
    for (level, op) in LEVELS.into_iter().flat_map(|l| [(l, WRITE), (l, READ)]) {
        if level == UNRELIABLE && op == READ {
            continue;
        }
        let mut w = open(level);
        let local: Vec<(u64, u32)> = (0..16_u32)
            .map(|i| (LOCAL + 0x1000 * u64::from(i) + 3, if i % 5 == 3 { 0 } else { 700 + 31 * i }))
            .collect();
        let total: u32 = local.iter().map(|s| s.1).sum();
        let text = pattern(9, total as usize);
        let mut at = 0;
        for &(offset, n) in local.iter().filter(|_| op == WRITE) {
            w.hosts[A].put(offset, &text[at..at + n as usize]);
            at += n as usize;
        }
        if op == READ {
            w.hosts[B].put(REMOTE, &text);
        }
        post_rdma(&mut w, A, 0, rdma_of(op, &local));
        w.settle();
        assert_eq!(w.hosts[A].length(0), total, "{:#x}", w.hosts[A].status(0));
        if op == WRITE {
            assert_eq!(w.hosts[B].data(REMOTE, text.len()), text);
        } else {
            let got: Vec<u8> =
                local.iter().flat_map(|s| w.hosts[A].data(s.0, s.1 as usize).to_vec()).collect();
            assert_eq!(got, text);
        }
    }
}

#[test]
fn operations_of_a_queue_are_done_in_order_and_reads_hold_it() {
    for level in RELIABLE {
        let mut w = open(level);
        for i in 0..2 {
            w.hosts[B].post(VIS[B], Recv, 0x400 * i, &[(0x4000, 64)]);
        }
        w.hosts[B].put(REMOTE, &pattern(1, 20_000));
        w.settle();
        // What is read is written back elsewhere, fenced or not; then a send, and a read of what
        // was written.
        for fence in [0, control::QFENCE] {
            post_rdma(&mut w, A, 0, rdma_of(READ, &[(LOCAL, 20_000)]));
            let local = [(LOCAL, 20_000)];
            let back = Rdma { address: VA + REMOTE + 0x1_0000, ..rdma_of(WRITE | fence, &local) };
            post_rdma(&mut w, A, 0x400, back);
            w.hosts[A].post(VIS[A], Send, 0x800, &[(LOCAL, 8)]);
            let local = [(LOCAL + 0x1_0000, 20_000)];
            let again = Rdma { control: READ, local: &local, ..back };
            post_rdma(&mut w, A, 0xc00, again);
            w.settle();
            assert_eq!(w.hosts[A].data(LOCAL + 0x1_0000, 20_000), pattern(1, 20_000));
            let statuses = [0, 0x400, 0x800, 0xc00].map(|at| w.hosts[A].status(at));
            assert_eq!(statuses, [HAS_READ, WRITTEN, status::DONE, HAS_READ]);
            w.hosts[A].put(LOCAL, &[0; 0x2_0000]);
        }
    }
}

#[test]
fn both_sides_read_and_send_at_the_same_time() {
    for level in RELIABLE {
        let mut w = open(level);
        for side in [A, B] {
            w.hosts[side].put(REMOTE, &pattern(side as u32, 200_000));
            w.hosts[side].post(VIS[side], Recv, 0x800, &[(0x5_0000, 60_000)]);
            w.hosts[side].put(0xd_0000, &pattern(7 + side as u32, 60_000));
        }
        w.settle();
        for side in [A, B] {
            post_rdma(&mut w, side, 0, rdma_of(READ, &[(0x1_0000, 200_000)]));
            w.hosts[side].post(VIS[side], Send, 0x400, &[(0xd_0000, 60_000)]);
        }
        w.settle();
        for side in [A, B] {
            let (host, other) = (&w.hosts[side], 1 - side as u32);
            assert_eq!([host.status(0), host.status(0x400)], [HAS_READ, status::DONE]);
            assert_eq!(host.status(0x800), status::DONE | status::OP_RECEIVE);
            assert!(host.data(0x5_0000, 60_000) == pattern(7 + other, 60_000));
        }
    }
}

/// Places that the peer may not touch.
fn bad_places() -> Vec<(&'static str, u64, u32)> {
    let here = VA + REMOTE;
    let good = OPEN_HANDLE.0;
    let end = VA + u64::from(OPEN_LENGTH);
    vec![
        ("no such index", here, Handle::new(1024, 1).0),
        ("not valid", here, Handle::new(77, 1).0),
        ("another generation", here, Handle::new(OPEN, 2).0),
        ("no rights", here, handle()),
        ("another tag", here, Handle::new(8, 1).0),
        ("another domain", here, Handle::new(9, 1).0),
        ("before", VA - 1, good),
        ("across the end", end - 4999, good),
        ("behind", end, good),
        ("around", u64::MAX - 2, good),
    ]
}

/// An RDMA of 5,000 bytes that the target refuses.
#[track_caller]
fn refused(mut w: Testbench, level: Reliability, d: Rdma<'_>, what: &str) {
    let read = d.control == READ;
    let reason = if read { StopReason::RdmaRead } else { StopReason::RdmaWrite };
    w.hosts[B].memory.bytes[BUS as usize..].fill(0xee);
    let before = w.hosts[B].memory.bytes[BUS as usize..].to_vec();
    post_rdma(&mut w, A, 0, d);
    w.settle();
    assert!(w.hosts[B].memory.bytes[BUS as usize..] == before, "{what}");
    assert_eq!(w.hosts[B].count(Counter::RdmaRefused), 1, "{what}");
    if level == UNRELIABLE {
        assert_eq!(w.hosts[A].status(0), WRITTEN, "{what}");
        assert_eq!([w.hosts[A].vi(A), w.hosts[B].vi(B)], [State::Connected; 2], "{what}");
        return;
    }
    let stop = (reason as u32, 1, status::DESC_FLUSHED_ERROR);
    assert_eq!(stops(&mut w, B), [stop], "{what}");
    let bits = if read || level == Reliability::Reception {
        status::RDMA_PROT_ERROR
    } else {
        status::TRANSPORT_ERROR
    };
    assert_eq!(stops(&mut w, A), [(refusal(reason), 0, bits)], "{what} {level:?}");
    let expected = if !read && level == Reliability::Delivery { WRITTEN } else { 0 };
    assert_eq!(w.hosts[A].status(0), expected, "{what}");
}

#[test]
fn the_target_refuses_what_it_does_not_allow() {
    for (level, op) in LEVELS.into_iter().flat_map(|l| [(l, WRITE), (l, READ)]) {
        if level == UNRELIABLE && op == READ {
            continue;
        }
        let local = [(LOCAL, 5000)];
        let good = rdma_of(op, &local);
        for (what, address, handle) in bad_places() {
            refused(open(level), level, Rdma { address, handle, ..good }, what);
        }
        let (bit, right) = if op == READ {
            (rdma::READ, RIGHT_RDMA_READ)
        } else {
            (rdma::WRITE, RIGHT_RDMA_WRITE)
        };
        let others = testbench(level, [rdma::MASK, rdma::MASK & !bit], RIGHTS);
        refused(others, level, good, "the VI");
        let others = testbench(level, [rdma::MASK; 2], RIGHTS & !right);
        refused(others, level, good, "the region");
    }
}

#[test]
fn nothing_is_checked_of_an_empty_range_but_the_vi() {
    for (level, op) in RELIABLE.into_iter().flat_map(|l| [(l, WRITE), (l, READ)]) {
        let mut w = open(level);
        post_rdma(&mut w, A, 0, Rdma { address: 1, handle: 0, ..rdma_of(op, &[]) });
        w.settle();
        assert_eq!(w.hosts[A].status(0), if op == READ { HAS_READ } else { WRITTEN });
        let closed = testbench(level, [rdma::MASK, 0], RIGHTS);
        refused(closed, level, rdma_of(op, &[]), "empty, but not allowed");
    }
}

#[test]
fn a_peer_that_is_known_to_allow_nothing_is_not_asked() {
    for (level, op) in LEVELS.into_iter().flat_map(|l| [(l, WRITE), (l, READ)]) {
        if level == UNRELIABLE && op == READ {
            continue;
        }
        let mut w = Testbench::pair(level);
        let sent = w.hosts[A].count(Counter::FramesSent);
        post_rdma(&mut w, A, 0, rdma_of(op, &[(LOCAL, 50)]));
        w.hosts[B].post(VIS[B], Recv, 0, &[(0x2000, 8)]);
        w.hosts[A].post(VIS[A], Send, 0x400, &[(LOCAL, 8)]);
        w.settle();
        let op_bits = if op == READ { status::OP_RDMA_READ } else { status::OP_RDMA_WRITE };
        let expected = status::DONE | status::RDMA_PROT_ERROR | op_bits;
        assert_eq!(w.hosts[A].status(0), expected, "{level:?}");
        if level == UNRELIABLE {
            assert_eq!(w.hosts[A].status(0x400), status::DONE);
            continue;
        }
        let reason = if op == READ { StopReason::RdmaRead } else { StopReason::RdmaWrite };
        assert_eq!(stops(&mut w, A), [(reason as u32, 0, status::DESC_FLUSHED_ERROR)]);
        // The refusal, and acknowledgements.
        assert!(w.hosts[A].count(Counter::FramesSent) - sent <= 2);
    }
}

/// Changes what was written to memory.
pub(super) type Spoil = fn(&mut Host);

#[test]
fn malformed_rdma_descriptors() {
    let seventeen = [(LOCAL, 1); 17];
    let local = &seventeen[..1];
    let write = rdma_of(WRITE, local);
    let read = rdma_of(READ, local);
    for level in LEVELS {
        let cases: [(&str, Rdma<'_>, Spoil); 8] = [
            ("17 data segments", rdma_of(WRITE, &seventeen), |_| {}),
            ("17 data segments", rdma_of(READ, &seventeen), |_| {}),
            ("no address segment", write, |h| h.put(12, &[0, 0])),
            ("no address segment", read, |h| h.put(12, &[0, 0])),
            ("reserved word", write, |h| h.put(32 + 12, &[1])),
            ("reserved word", read, |h| h.put(32 + 15, &[0x80])),
            ("a read with immediate data", rdma_of(READ | control::IMMEDIATE, local), |_| {}),
            ("a reserved bit", rdma_of(WRITE | 0x10, local), |_| {}),
        ];
        for (what, d, spoil) in cases {
            let mut w = open(level);
            write_rdma(&mut w.hosts[A], 0, d);
            spoil(&mut w.hosts[A]);
            w.hosts[A].token(VIS[A], Send, 0);
            w.settle();
            let op =
                if d.control & 3 == READ { status::OP_RDMA_READ } else { status::OP_RDMA_WRITE };
            let expected = status::DONE | status::FORMAT_ERROR | op;
            assert_eq!(w.hosts[A].status(0), expected, "{what} {level:?}");
            let on = level == UNRELIABLE;
            assert_eq!(w.hosts[A].vi(A) == State::Connected, on, "{what} {level:?}");
        }
    }
    // Reads are for the reliable levels; RDMA for the send queue.
    let mut w = open(UNRELIABLE);
    post_rdma(&mut w, A, 0, read);
    w.settle();
    let expected = status::DONE | status::FORMAT_ERROR | status::OP_RDMA_READ;
    assert_eq!(w.hosts[A].status(0), expected);
    let mut w = open(UNRELIABLE);
    write_rdma(&mut w.hosts[B], 0, write);
    w.hosts[B].token(VIS[B], Recv, 0);
    w.settle();
    w.hosts[A].post(VIS[A], Send, 0, &[(LOCAL, 1)]);
    w.settle();
    let expected = status::DONE | status::FORMAT_ERROR | status::OP_RECEIVE;
    assert_eq!(w.hosts[B].status(0), expected);
}

#[test]
fn local_segments_and_lengths_are_checked_before_anything_moves() {
    for (level, op) in RELIABLE.into_iter().flat_map(|l| [(l, WRITE), (l, READ)]) {
        let long = [(LOCAL, 256 * 1024), (LOCAL, 1)];
        let outside = [(LOCAL, 100), (u64::from(REGION_LENGTH) - 3, 4)];
        let cases = [
            (&long, status::LENGTH_ERROR, StopReason::Length),
            (&outside, status::PROTECTION_ERROR, StopReason::Protection),
        ];
        for (local, bits, reason) in cases {
            let mut w = open(level);
            post_rdma(&mut w, A, 0, rdma_of(op, local));
            w.settle();
            let op = if op == READ { status::OP_RDMA_READ } else { status::OP_RDMA_WRITE };
            assert_eq!(w.hosts[A].status(0), status::DONE | bits | op);
            assert_eq!(stops(&mut w, A), [(reason as u32, 0, status::DESC_FLUSHED_ERROR)]);
            assert_eq!(stops(&mut w, B).len(), 1);
        }
    }
}
