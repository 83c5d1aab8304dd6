//! Sections 11.2, 12.2 and 12.4: RDMA frames as they should not come, and as they come when others
//! are lost.

use nic_regs::admin::Opcode;
use nic_regs::counter::Counter;
use nic_regs::desc::{ControlSegment, control, status};
use nic_regs::frame::{Header, RdmaHeader, Type, flag};
use nic_regs::limits::MAX_TRANSFER_BYTES;
use nic_regs::tpt::{RIGHT_RDMA_READ, RIGHT_RDMA_WRITE, RIGHT_VALID};
use nic_regs::vi::{Reliability, State, StopReason, rdma};

use super::raw::Raw;
use super::support::*;
use crate::device::Device;

const FIRST: u8 = flag::FIRST;
const LAST: u8 = flag::LAST;
const ONLY: u8 = FIRST | LAST;
const UNRELIABLE: Reliability = Reliability::Unreliable;
const RELIABLE: [Reliability; 2] = [Reliability::Delivery, Reliability::Reception];
const PLACE: u64 = 0x8_0000;

/// An open device whose VI allows everything, as does its region.
fn raw(level: Reliability) -> Raw {
    let mut raw = Raw::open(level);
    raw.w.ok(A, Opcode::RegionClear, REGION.into(), [0; 12]);
    let mut words = region_words();
    words[6] |= u32::from(RIGHT_VALID | RIGHT_RDMA_WRITE | RIGHT_RDMA_READ) << 8;
    raw.w.ok(A, Opcode::RegionSet, REGION.into(), words);
    raw.w.ok(A, Opcode::ViDisconnect, VIS[A].into(), [0; 12]);
    raw.run(100);
    raw.w.ok(A, Opcode::ViDestroy, VIS[A].into(), [0; 12]);
    let mut words = vi_words(level);
    words[3] = rdma::MASK;
    raw.w.ok(A, Opcode::ViCreate, VIS[A].into(), words);
    let mut words = connect_words(A);
    words[1] |= rdma::MASK << rdma::PEER_LSB;
    raw.w.ok(A, Opcode::ViConnect, VIS[A].into(), words);
    raw.run(100);
    raw.got.clear();
    raw
}

fn payload(address: u64, total: u32, data: &[u8]) -> Vec<u8> {
    let header = RdmaHeader { address, handle: handle(), total };
    let mut bytes: Vec<u8> = header.to_beats().iter().flat_map(|b| b.to_le_bytes()).collect();
    bytes.extend_from_slice(data);
    bytes
}

/// A frame of an RDMA write: `at` bytes into the message of `total`.
fn write(raw: &mut Raw, level: Reliability, flags: u8, number: u16, at: u64, total: u32, n: usize) {
    let kind = Type::RdmaWrite as u8;
    let data = vec![number as u8 + 1; n];
    let bytes = payload(VA + PLACE + at, total, &data);
    let header = Header { kind, flags, sequence: number, ..raw.plain() };
    match level {
        UNRELIABLE => raw.send(header, &bytes),
        Reliability::Delivery => raw.next(header, &bytes),
        Reliability::Reception => {
            raw.next(Header { flags: flags | flag::RECEPTION, ..header }, &bytes);
        }
    }
}

fn placed(raw: &Raw, at: u64, n: usize) -> &[u8] {
    raw.w.hosts[A].data(PLACE + at, n)
}

#[test]
fn frames_are_dropped_for_their_length_and_flags() {
    for level in [UNRELIABLE, Reliability::Delivery] {
        let mut raw = raw(level);
        let drops = |raw: &Raw| raw.count(Counter::DropLength);
        let write = Header { kind: Type::RdmaWrite as u8, flags: ONLY, ..raw.plain() };
        raw.send(write, &[0; 15]);
        raw.send(write, &[]);
        raw.send(write, &vec![0; 4113]);
        assert_eq!(drops(&raw), 3);
        for kind in [Type::ReadRequest, Type::ReadResponse] {
            // Not sequenced.
            raw.send(raw.kind(kind), &[0; 16]);
        }
        let sequenced = flag::SEQUENCED;
        raw.send(Header { flags: sequenced, ..raw.kind(Type::ReadRequest) }, &[0; 15]);
        raw.send(Header { flags: sequenced, ..raw.kind(Type::ReadRequest) }, &[0; 24]);
        raw.send(Header { flags: sequenced, ..raw.kind(Type::ReadResponse) }, &vec![0; 4097]);
        raw.send(Header { flags: sequenced, ..raw.kind(Type::Data) }, &vec![0; 4112]);
        assert_eq!(drops(&raw), 9);
        // The longest ones are taken.
        self::write(&mut raw, level, ONLY, 0, 0, 4096, 4096);
        assert_eq!(drops(&raw), 9);
        assert_eq!(placed(&raw, 0, 4097), [vec![1; 4096], vec![0]].concat());
    }
}

#[test]
fn frames_of_another_level_are_unmatched() {
    for level in [UNRELIABLE, Reliability::Delivery, Reliability::Reception] {
        let mut raw = raw(level);
        let mut unmatched = 0;
        for other in [UNRELIABLE, Reliability::Delivery, Reliability::Reception] {
            if other != level {
                write(&mut raw, other, ONLY, 0, 0, 8, 8);
                unmatched += 1;
            }
        }
        if level == UNRELIABLE {
            raw.next(raw.kind(Type::ReadRequest), &payload(VA, 8, &[]));
            raw.next(raw.kind(Type::ReadResponse), &[]);
            unmatched += 2;
        } else {
            // Nobody has asked.
            raw.next(raw.kind(Type::ReadResponse), &[1, 2, 3]);
            unmatched += 1;
        }
        let misfit = Header { connection: 1, ..raw.kind(Type::ReadRequest) };
        raw.next(misfit, &payload(VA, 8, &[]));
        unmatched += 1;
        assert_eq!(raw.count(Counter::Unmatched), unmatched);
        assert_eq!(raw.w.hosts[A].vi(A), State::Connected);
        assert!(placed(&raw, 0, 8).iter().all(|&b| b == 0));
    }
}

#[test]
fn what_follows_a_lost_frame_is_not_written() {
    // Three frames; one of them is lost.
    for lost in 0..3 {
        let mut raw = raw(UNRELIABLE);
        raw.w.hosts[A].post(VIS[A], Recv, 0, &[(0x2000, 8)]);
        for i in (0..3_u16).filter(|&i| i != lost) {
            let flags = [FIRST, 0, LAST | flag::IMMEDIATE][usize::from(i)];
            write(&mut raw, UNRELIABLE, flags, i, 100 * u64::from(i), 300, 100);
        }
        let end = 100 * usize::from(lost);
        let mut expected = vec![0; 300];
        expected[..end].copy_from_slice(&[vec![1; 100], vec![2; 100]].concat()[..end]);
        assert_eq!(placed(&raw, 0, 300), expected, "{lost}");
        assert_eq!(raw.count(Counter::UnreliableGap), 2 - u32::from(lost));
        assert_eq!(raw.w.hosts[A].status(0), 0, "no receive is completed");
        // The next message is whole.
        write(&mut raw, UNRELIABLE, ONLY | flag::IMMEDIATE, 1 << 8, 0, 8, 8);
        let notified = status::DONE | status::OP_REMOTE_RDMA_WRITE | status::IMMEDIATE;
        assert_eq!(raw.w.hosts[A].status(0), notified);
    }
}

#[test]
fn unreliable_messages_start_over_and_do_not_mix() {
    let mut raw = raw(UNRELIABLE);
    raw.w.hosts[A].post(VIS[A], Recv, 0, &[(0x2000, 5000)]);
    let gaps = |raw: &Raw| raw.count(Counter::UnreliableGap);
    write(&mut raw, UNRELIABLE, FIRST, 0, 0, 200, 100);
    write(&mut raw, UNRELIABLE, FIRST, 1 << 8, 0, 200, 100);
    // A rest of a send is not the rest of a write, nor the other way round.
    let rest = Header { flags: LAST, sequence: 1 << 8 | 1, ..raw.plain() };
    raw.data(UNRELIABLE, rest, &[9; 100]);
    assert_eq!(gaps(&raw), 1);
    write(&mut raw, UNRELIABLE, LAST, 1 << 8 | 1, 100, 200, 100);
    assert_eq!(gaps(&raw), 2);
    let send = Header { flags: FIRST, sequence: 2 << 8, word: 200, ..raw.plain() };
    raw.data(UNRELIABLE, send, &[9; 100]);
    write(&mut raw, UNRELIABLE, LAST, 2 << 8 | 1, 100, 200, 100);
    assert_eq!(gaps(&raw), 3);
    assert!(placed(&raw, 100, 100).iter().all(|&b| b == 0));
    // A FIRST frame with a fragment number; one that is longer than its message; one too long.
    write(&mut raw, UNRELIABLE, FIRST, 3 << 8 | 1, 0, 200, 100);
    write(&mut raw, UNRELIABLE, FIRST, 4 << 8, 0, 99, 100);
    write(&mut raw, UNRELIABLE, ONLY, 5 << 8, 0, 99, 98);
    write(&mut raw, UNRELIABLE, FIRST, 6 << 8, 0, MAX_TRANSFER_BYTES + 1, 100);
    assert_eq!(gaps(&raw), 7);
    // A later frame with another total.
    write(&mut raw, UNRELIABLE, FIRST, 7 << 8, 0, 200, 100);
    write(&mut raw, UNRELIABLE, LAST, 7 << 8 | 1, 100, 201, 100);
    assert_eq!(gaps(&raw), 8);
    assert_eq!(raw.w.hosts[A].vi(A), State::Connected);
    assert_eq!(raw.w.hosts[A].status(0), 0);
}

#[test]
fn reliable_writes_that_do_not_fit_stop_the_vi() {
    type Frames = &'static [(u8, u64, u32, usize)];
    let cases: [(&str, Frames); 6] = [
        ("FIRST in mid-message", &[(FIRST, 0, 200, 100), (FIRST, 0, 200, 100)]),
        ("longer than the header says", &[(FIRST, 0, 150, 100), (LAST, 100, 150, 100)]),
        ("shorter than the header says", &[(FIRST, 0, 250, 100), (LAST, 100, 250, 100)]),
        ("another total", &[(FIRST, 0, 200, 100), (LAST, 100, 199, 99)]),
        ("a frame alone that is too short", &[(ONLY, 0, 200, 100)]),
        ("too long", &[(FIRST, 0, MAX_TRANSFER_BYTES + 1, 100)]),
    ];
    for (level, (what, frames)) in RELIABLE.into_iter().flat_map(|l| cases.map(|c| (l, c))) {
        let mut raw = raw(level);
        raw.w.hosts[A].post(VIS[A], Recv, 0, &[(0x2000, 5000)]);
        for (i, &(flags, at, total, n)) in frames.iter().enumerate() {
            write(&mut raw, level, flags, i as u16, at, total, n);
        }
        let event = raw.w.hosts[A].events(ERRORS);
        assert_eq!(event.len(), 1, "{what}");
        let word = StopReason::Length as u32 | 1 << 16;
        assert_eq!((event[0].word1, event[0].word2), (word, status::DESC_FLUSHED_ERROR), "{what}");
        assert_eq!(raw.w.hosts[A].status(0), 0, "no descriptor is completed");
        raw.run(100);
        let refuse = raw.take(Type::ViRefuse);
        assert_eq!((refuse.len(), refuse[0].word), (1, StopReason::Length as u32), "{what}");
    }
}

#[test]
fn sends_and_writes_do_not_mix_on_reliable_vis() {
    for level in RELIABLE {
        // A later frame of the other kind is nobody's; a FIRST one breaks the message.
        for send_first in [false, true] {
            let mut raw = raw(level);
            raw.w.hosts[A].post(VIS[A], Recv, 0, &[(0x2000, 5000)]);
            let send = Header { flags: FIRST, word: 200, ..raw.plain() };
            if send_first {
                raw.data(level, send, &[9; 100]);
                write(&mut raw, level, LAST, 0, 100, 200, 100);
            } else {
                write(&mut raw, level, FIRST, 0, 0, 200, 100);
                raw.data(level, Header { flags: LAST, word: 0, ..send }, &[9; 100]);
            }
            assert_eq!(raw.count(Counter::Unmatched), 1);
            assert_eq!(raw.w.hosts[A].vi(A), State::Connected);
            if send_first {
                write(&mut raw, level, FIRST, 0, 0, 200, 100);
            } else {
                raw.data(level, send, &[9; 100]);
            }
            assert_eq!(raw.w.hosts[A].vi(A), State::Error);
            let bits = status::LENGTH_ERROR | status::PARTIAL_ERROR | status::OP_RECEIVE;
            let expected = if send_first { status::DONE | bits } else { 0 };
            assert_eq!(raw.w.hosts[A].status(0), expected);
        }
    }
}

#[test]
fn each_frame_is_checked_by_itself() {
    // The region goes between two frames.
    for level in [UNRELIABLE, Reliability::Delivery, Reliability::Reception] {
        let mut raw = raw(level);
        write(&mut raw, level, FIRST, 0, 0, 200, 100);
        raw.w.ok(A, Opcode::RegionClear, REGION.into(), [0; 12]);
        write(&mut raw, level, LAST, 1, 100, 200, 100);
        assert_eq!(raw.count(Counter::RdmaRefused), 1);
        assert_eq!(placed(&raw, 0, 200), [[1; 100], [0; 100]].concat());
        let on = raw.w.hosts[A].vi(A) == State::Connected;
        assert_eq!(on, level == UNRELIABLE);
    }
}

#[test]
fn the_viack_of_a_write_comes_after_its_last_frame() {
    let mut raw = raw(Reliability::Reception);
    write(&mut raw, Reliability::Reception, FIRST, 0, 0, 200, 100);
    raw.run(500);
    assert!(raw.take(Type::ViAck).is_empty());
    write(&mut raw, Reliability::Reception, LAST, 1, 100, 200, 100);
    raw.run(500);
    assert_eq!(raw.take(Type::ViAck).len(), 1);
    // On Delivery level there is none.
    let mut raw = self::raw(Reliability::Delivery);
    write(&mut raw, Reliability::Delivery, ONLY, 0, 0, 100, 100);
    raw.run(500);
    assert_eq!(placed(&raw, 0, 100), [1; 100]);
    assert!(raw.take(Type::ViAck).is_empty());
}

#[test]
fn answers_are_cut_and_counted_down() {
    for level in RELIABLE {
        let mut raw = raw(level);
        for (n, expected) in [
            (0, &[(0, 0)][..]),
            (1, &[(1, 0)]),
            (4096, &[(4096, 0)]),
            (4097, &[(4096, 1), (1, 0)]),
            (9000, &[(4096, 4904), (4096, 808), (808, 0)]),
        ] {
            raw.next(raw.kind(Type::ReadRequest), &payload(VA + PLACE, n, &[]));
            raw.run(1500);
            let got: Vec<_> = raw.take(Type::ReadResponse);
            let frames: Vec<_> = got.iter().map(|h| (u32::from(h.length), h.word)).collect();
            assert_eq!(frames, expected, "{n}");
            for header in got {
                assert_eq!(header.flags, flag::SEQUENCED);
                assert_eq!((header.dst_vi, header.src_vi), (VIS[B], VIS[A]));
                raw.ack = header.sequence.wrapping_add(1);
                raw.credit = raw.credit.wrapping_add(header.credits() as u8);
            }
            raw.send(raw.kind(Type::Ack), &[]);
        }
    }
}

/// What is left of an answer is forgotten when its VI stops.
#[test]
fn an_answer_ends_with_its_vi() {
    let mut raw = raw(Reliability::Delivery);
    raw.next(raw.kind(Type::ReadRequest), &payload(VA + PLACE, 200_000, &[]));
    raw.run(4_000);
    let before = raw.take(Type::ReadResponse).len();
    raw.next(raw.kind(Type::Fin), &[]);
    assert_eq!(raw.w.hosts[A].vi(A), State::Error);
    for _ in 0..60 {
        raw.run(500);
        // Room for more of them.
        let sent = raw.take(Type::ReadResponse);
        raw.ack = sent.last().map_or(raw.ack, |last| last.sequence.wrapping_add(1));
        raw.credit = raw.credit.wrapping_add(17);
        raw.send(raw.kind(Type::Ack), &[]);
        assert!(sent.len() <= 4, "of what had entered the channel");
    }
    assert!(before > 0 && !raw.w.hosts[A].model.busy());
}

#[test]
fn a_second_request_or_one_too_long_stops_the_vi() {
    for (first, second) in [(100_000, 8), (MAX_TRANSFER_BYTES + 1, 0)] {
        let mut raw = raw(Reliability::Delivery);
        raw.next(raw.kind(Type::ReadRequest), &payload(VA, first, &[]));
        raw.next(raw.kind(Type::ReadRequest), &payload(VA, second, &[]));
        let event = raw.w.hosts[A].events(ERRORS);
        assert_eq!(event.len(), 1, "{first}");
        assert_eq!(event[0].word1, StopReason::Length as u32 | 1 << 16);
    }
}

/// Posts a read of 10,000 bytes and takes its request.
fn asked(level: Reliability) -> Raw {
    let mut raw = raw(level);
    let host = &mut raw.w.hosts[A];
    let words = ControlSegment { control: control::OP_RDMA_READ, ..ControlSegment::default() };
    host.write_descriptor(0, words, &[(0x5_0000, 0), (PLACE, 6000), (PLACE + 0x4000, 4000)]);
    host.token(VIS[A], Send, 0);
    // A send behind it waits.
    host.link(VIS[A], Send, 0);
    host.post(VIS[A], Send, 0x400, &[(0x2000, 8)]);
    raw.run(1000);
    assert_eq!(raw.take(Type::Data), []);
    let frame = raw.got.iter().find(|f| f.header.kind == Type::ReadRequest as u8).unwrap();
    let header = RdmaHeader { address: VA + 0x5_0000, handle: handle(), total: 10_000 };
    let bytes: Vec<u8> = header.to_beats().iter().flat_map(|b| b.to_le_bytes()).collect();
    assert_eq!(frame.payload, bytes);
    assert_eq!(frame.header.flags, flag::SEQUENCED);
    raw.ack = frame.header.sequence.wrapping_add(1);
    raw
}

fn answer(raw: &mut Raw, n: usize, left: u32) {
    let header = Header { word: left, ..raw.kind(Type::ReadResponse) };
    raw.next(header, &pattern(left, n));
}

#[test]
fn an_answer_goes_to_the_local_segments_in_order() {
    for level in RELIABLE {
        let mut raw = asked(level);
        answer(&mut raw, 4096, 5904);
        answer(&mut raw, 4096, 1808);
        assert_eq!(raw.w.hosts[A].status(0), 0);
        assert_eq!(raw.take(Type::Data), []);
        answer(&mut raw, 1808, 0);
        let done = status::DONE | status::OP_RDMA_READ;
        assert_eq!((raw.w.hosts[A].status(0), raw.w.hosts[A].length(0)), (done, 10_000));
        let text = [pattern(5904, 4096), pattern(1808, 4096), pattern(0, 1808)].concat();
        assert_eq!(placed(&raw, 0, 6000), &text[..6000]);
        assert_eq!(placed(&raw, 0x4000, 4000), &text[6000..]);
        raw.run(500);
        assert_eq!(raw.take(Type::Data).len(), 1, "the send goes on");
        assert!(raw.take(Type::ViAck).is_empty());
        answer(&mut raw, 8, 0);
        assert_eq!(raw.count(Counter::Unmatched), 1);
    }
}

#[test]
fn an_answer_that_does_not_add_up_stops_the_vi() {
    for (begun, n, left) in [
        (false, 4096, 5905),
        (false, 4096, 5903),
        (false, 0, 10_000),
        (false, 0, 0),
        (true, 4096, 5904),
        (true, 1808, 0),
        (true, 100, u32::MAX),
    ] {
        let mut raw = asked(Reliability::Reception);
        if begun {
            answer(&mut raw, 4096, 5904);
        }
        answer(&mut raw, n, left);
        let event = raw.w.hosts[A].events(ERRORS);
        assert_eq!(event.len(), 1, "{begun} {n} {left}");
        let partial = if begun { status::PARTIAL_ERROR } else { 0 };
        let bits = status::DESC_FLUSHED_ERROR | partial;
        assert_eq!((event[0].word1, event[0].word2), (StopReason::Length as u32, bits));
        assert_eq!(raw.w.hosts[A].status(0), 0);
        raw.run(200);
        assert_eq!(raw.take(Type::ViRefuse).len(), 1);
    }
}

#[test]
fn full_frames_take_17_credits_and_17_chunks() {
    let mut raw = raw(Reliability::Delivery);
    raw.credit = 127;
    raw.send(raw.kind(Type::Ack), &[]);
    let host = &mut raw.w.hosts[A];
    let words = ControlSegment { control: control::OP_RDMA_WRITE, ..ControlSegment::default() };
    host.write_descriptor(0, words, &[(PLACE, 0), (0x2000, 8 * 4096)]);
    host.token(VIS[A], Send, 0);
    // The peer's share of 64 chunks holds three.
    let mut total = 0;
    for expected in [3, 3, 1, 1] {
        raw.run(1900);
        let got = raw.take(Type::RdmaWrite);
        assert_eq!(got.len(), expected);
        for header in &got {
            assert_eq!((header.length, header.credits()), (4112, 17));
            assert_eq!(header.word, 0);
            raw.ack = header.sequence.wrapping_add(1);
        }
        total += got.len();
        // 127 credits are worth seven; then one more at a time.
        raw.credit = if total < 7 { 127 } else { 127 + 17 };
        raw.send(raw.kind(Type::Ack), &[]);
    }
    assert_eq!(raw.w.hosts[A].status(0), status::DONE | status::OP_RDMA_WRITE);
}
