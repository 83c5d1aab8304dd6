//! Section 5: unexpected and malformed frames.

use nic_regs::admin::Opcode;
use nic_regs::counter::Counter;
use nic_regs::desc::status;
use nic_regs::frame::{Header, Type, flag};
use nic_regs::limits::MAX_TRANSFER_BYTES;
use nic_regs::vi::{Reliability, State, StopReason};

use super::raw::Raw;
use super::support::*;

const FIRST: u8 = flag::FIRST;
const LAST: u8 = flag::LAST;
const ONLY: u8 = FIRST | LAST;
const UNRELIABLE: Reliability = Reliability::Unreliable;
const RELIABLE: [Reliability; 2] = [Reliability::Delivery, Reliability::Reception];
const GOOD: u32 = status::DONE | status::OP_RECEIVE;

fn raw(level: Reliability, posts: u64) -> Raw {
    let mut raw = Raw::open(level);
    for i in 0..posts {
        raw.w.hosts[A].post(VIS[A], Recv, 64 * i, &[(0x2000 + 0x4000 * i, 0x3000)]);
    }
    raw.run(20);
    raw
}

fn frame(raw: &mut Raw, level: Reliability, flags: u8, sequence: u16, word: u32, n: usize) {
    let header = Header { flags, sequence, word, ..raw.plain() };
    raw.data(level, header, &pattern(word, n));
}

#[test]
fn frames_that_no_vi_expects_are_unmatched() {
    for level in [UNRELIABLE, Reliability::Delivery, Reliability::Reception] {
        let mut raw = raw(level, 1);
        let plain = Header { flags: ONLY, ..raw.plain() };
        let unexpected = [
            Header { dst_vi: 1024, ..plain },
            Header { dst_vi: 0xffff, ..plain },
            Header { dst_vi: VIS[A] + 1, ..plain },
            Header { src_vi: VIS[B] + 1, ..plain },
            Header { connection: CONNECTION + 1, ..plain },
        ];
        for header in unexpected {
            raw.data(level, header, b"text");
        }
        for other in [UNRELIABLE, Reliability::Delivery, Reliability::Reception] {
            if other != level {
                raw.data(other, plain, b"text");
            }
        }
        for header in [raw.kind(Type::Fin), raw.kind(Type::ViRefuse), raw.kind(Type::ViAck)] {
            raw.next(Header { connection: 0, ..header }, &[]);
        }
        assert_eq!(raw.count(Counter::Unmatched), 10);
        assert_eq!(raw.w.hosts[A].status(0), 0);
        raw.data(level, plain, b"text");
        assert_eq!(raw.w.hosts[A].status(0), GOOD, "{level:?}");
        assert_eq!(raw.count(Counter::Unmatched), 10);
    }
}

#[test]
fn an_empty_receive_queue() {
    let mut raw = raw(UNRELIABLE, 0);
    frame(&mut raw, UNRELIABLE, FIRST, 0x0100, 4096 * 3, 4096);
    frame(&mut raw, UNRELIABLE, 0, 0x0101, 0, 4096);
    frame(&mut raw, UNRELIABLE, LAST, 0x0102, 0, 4096);
    assert_eq!(raw.count(Counter::UnreliableEmpty), 1);
    assert_eq!(raw.count(Counter::UnreliableGap), 2);
    assert_eq!(raw.w.hosts[A].vi(A), State::Connected);
    for level in RELIABLE {
        let mut raw = super::receive::raw(level, 0);
        frame(&mut raw, level, ONLY, 0, 0, 4);
        assert_eq!(raw.w.hosts[A].vi(A), State::Error);
        let refuse = raw.take(Type::ViRefuse);
        assert_eq!(refuse.len(), 1);
        assert_eq!(refuse[0].word, StopReason::ReceiveEmpty as u32);
        assert_eq!((refuse[0].dst_vi, refuse[0].src_vi), (VIS[B], VIS[A]));
        assert_eq!((refuse[0].connection, refuse[0].flags), (CONNECTION, flag::SEQUENCED));
        let event = raw.w.hosts[A].events(ERRORS)[0];
        assert_eq!(event.word1, StopReason::ReceiveEmpty as u32 | 1 << 16);
        assert_eq!(event.word2, status::DESC_FLUSHED_ERROR);
        // Later frames of the message find nobody.
        frame(&mut raw, level, ONLY, 0, 0, 4);
        assert_eq!(raw.count(Counter::Unmatched), 1);
    }
}

/// Frames of an Unreliable message as (flags, sequence, word, length).
type Frames = &'static [(u8, u16, u32, usize)];

/// A message for a descriptor without segments is too long, however short.
#[test]
fn a_descriptor_without_segments_takes_empty_messages() {
    for level in RELIABLE {
        for n in [0, 1] {
            let mut raw = Raw::open(level);
            raw.w.hosts[A].post(VIS[A], Recv, 0, &[]);
            raw.run(20);
            frame(&mut raw, level, ONLY, 0, 0, n);
            let error = if n == 0 { 0 } else { status::LENGTH_ERROR };
            assert_eq!(raw.w.hosts[A].status(0), GOOD | error);
        }
    }
}

/// The descriptor of a message is read once, however many frames it has.
#[test]
fn a_message_of_several_frames_needs_one_fetch() {
    let mut raw = raw(Reliability::Delivery, 1);
    frame(&mut raw, Reliability::Delivery, FIRST, 0, 9000, 4096);
    frame(&mut raw, Reliability::Delivery, 0, 1, 0, 4096);
    frame(&mut raw, Reliability::Delivery, LAST, 2, 0, 808);
    assert_eq!((raw.w.hosts[A].status(0), raw.w.hosts[A].length(0)), (GOOD, 9000));
    assert_eq!(raw.count(Counter::DescriptorsFetched), 1);
}

/// What comes behind an Unreliable message that failed is none of it, also if it would go on with it.
#[test]
fn an_unreliable_message_that_fails_is_over() {
    let mut raw = raw(UNRELIABLE, 2);
    frame(&mut raw, UNRELIABLE, FIRST, 0x0100, 9000, 4096);
    // Software changes the handle of its segment; a fence has the descriptor read again.
    raw.w.hosts[A].put(32 + 8, &[0; 4]);
    raw.w.ok(A, Opcode::RegionSet, 50, region_words());
    raw.w.ok(A, Opcode::RegionClear, 50, [0; 12]);
    frame(&mut raw, UNRELIABLE, 0, 0x0101, 0, 4096);
    let error = status::PROTECTION_ERROR | status::PARTIAL_ERROR;
    assert_eq!(raw.w.hosts[A].status(0), GOOD | error);
    assert_eq!(raw.count(Counter::UnreliableGap), 0);
    frame(&mut raw, UNRELIABLE, 0, 0x0101, 0, 4096);
    frame(&mut raw, UNRELIABLE, LAST, 0x0102, 0, 808);
    assert_eq!(raw.count(Counter::UnreliableGap), 2);
    assert_eq!((raw.w.hosts[A].status(64), raw.w.hosts[A].vi(A)), (0, State::Connected));
}

#[test]
fn unreliable_messages_with_gaps_are_dropped_and_the_descriptor_stays() {
    let broken: [Frames; 11] = [
        // Nor does one go on with a message that another one has ended, though that does not begin well.
        &[
            (FIRST, 0x0100, 9000, 4096),
            (FIRST, 0x0201, 9000, 4096),
            (0, 0x0101, 0, 4096),
            (LAST, 0x0102, 0, 808),
        ],
        // A frame that is late goes on with nothing.
        &[
            (FIRST, 0x0100, 9000, 4096),
            (0, 0x0102, 0, 4096),
            (0, 0x0101, 0, 4096),
            (LAST, 0x0102, 0, 808),
        ],
        &[(0, 0x0101, 0, 4096), (LAST, 0x0102, 0, 10)],
        &[(FIRST, 0x0101, 9000, 4096), (0, 0x0102, 0, 4096)],
        &[(FIRST, 0x0100, 9000, 4096), (LAST, 0x0102, 0, 808)],
        &[(FIRST, 0x0100, 9000, 4096), (0, 0x0201, 0, 4096), (LAST, 0x0202, 0, 808)],
        &[(FIRST, 0x0100, 9000, 4096), (0, 0x0101, 0, 4096), (0, 0x0101, 0, 4096)],
        &[(FIRST, 0x0100, 5000, 4096), (LAST, 0x0101, 0, 905)],
        &[(FIRST, 0x0100, 5000, 4096), (LAST, 0x0101, 0, 903)],
        &[(FIRST, 0x0100, 5000, 4096), (0, 0x0101, 0, 4096)],
        &[(FIRST, 0x0100, 4095, 4096)],
    ];
    for frames in broken {
        let mut raw = raw(UNRELIABLE, 1);
        for &(flags, sequence, word, n) in frames {
            frame(&mut raw, UNRELIABLE, flags, sequence, word, n);
        }
        assert_eq!(raw.w.hosts[A].status(0), 0, "{frames:?}");
        let gaps = raw.count(Counter::UnreliableGap);
        assert!(gaps > 0);
        frame(&mut raw, UNRELIABLE, FIRST, 0x0300, 4100, 4096);
        frame(&mut raw, UNRELIABLE, LAST, 0x0301, 0, 4);
        assert_eq!(raw.w.hosts[A].status(0), GOOD);
        assert_eq!(raw.w.hosts[A].length(0), 4100);
        assert_eq!(raw.count(Counter::UnreliableGap), gaps);
    }
}

#[test]
fn an_unreliable_first_frame_in_mid_message_starts_over() {
    let mut raw = raw(UNRELIABLE, 1);
    frame(&mut raw, UNRELIABLE, FIRST, 0x0100, 9000, 4096);
    frame(&mut raw, UNRELIABLE, FIRST, 0x0200, 5000, 4096);
    frame(&mut raw, UNRELIABLE, LAST, 0x0201, 0, 904);
    assert_eq!(raw.w.hosts[A].status(0), GOOD);
    assert_eq!(raw.w.hosts[A].length(0), 5000);
}

#[test]
fn reliable_messages_of_another_length_than_their_first_frame_says_stop_the_vi() {
    let partial = status::LENGTH_ERROR | status::PARTIAL_ERROR;
    let broken: [(Frames, u32); 6] = [
        (&[(FIRST, 0, 5000, 4096), (LAST, 0, 0, 905)], partial),
        (&[(FIRST, 0, 5000, 4096), (LAST, 0, 0, 903)], partial),
        (&[(FIRST, 0, 5000, 4096), (0, 0, 0, 4096)], partial),
        (&[(FIRST, 0, 9000, 4096), (FIRST, 0, 9000, 4096)], partial),
        (&[(FIRST, 0, 4095, 4096)], status::LENGTH_ERROR),
        (&[(FIRST, 0, 0x3001, 4096)], status::LENGTH_ERROR),
    ];
    for (level, (frames, bits)) in RELIABLE.into_iter().flat_map(|l| broken.map(|b| (l, b))) {
        let mut raw = raw(level, 2);
        for &(flags, sequence, word, n) in frames {
            frame(&mut raw, level, flags, sequence, word, n);
        }
        assert_eq!(raw.w.hosts[A].status(0), GOOD | bits, "{level:?} {frames:?}");
        assert_eq!(raw.w.hosts[A].status(64), 0);
        assert_eq!(raw.w.hosts[A].vi(A), State::Error);
        assert_eq!(raw.take(Type::ViRefuse)[0].word, StopReason::Length as u32);
    }
}

/// Contract 5.2, 5.4: what is wrong with the frame itself comes before what is wrong with the
/// descriptor; and no message is longer than the longest that a VI may send.
#[test]
fn a_first_frame_that_breaks_the_limits_is_a_length_error_whatever_the_descriptor_is() {
    let refused = |raw: &mut Raw, level, word| {
        frame(raw, level, FIRST, 0, word, 4096);
        assert_eq!(raw.w.hosts[A].status(0), GOOD | status::LENGTH_ERROR);
        assert_eq!(raw.w.hosts[A].data(0x2000, 4096), [0; 4096]);
    };
    for level in RELIABLE {
        let mut raw = raw(level, 1);
        // Reserved control bits.
        raw.w.hosts[A].put(14, &0x8000_u16.to_le_bytes());
        refused(&mut raw, level, 4095);
        assert_eq!(raw.take(Type::ViRefuse)[0].word, StopReason::Length as u32);
    }
    for level in [UNRELIABLE, RELIABLE[0], RELIABLE[1]] {
        let mut raw = raw(level, 0);
        let segments = [(0x2000, MAX_TRANSFER_BYTES), (0x2000, 64)];
        raw.w.hosts[A].post(VIS[A], Recv, 0, &segments);
        raw.run(20);
        refused(&mut raw, level, MAX_TRANSFER_BYTES + 1);
    }
}

#[test]
fn a_later_frame_without_a_message_on_a_reliable_vi_is_unmatched() {
    for level in RELIABLE {
        let mut raw = raw(level, 1);
        frame(&mut raw, level, 0, 0, 0, 100);
        frame(&mut raw, level, LAST, 0, 0, 100);
        assert_eq!(raw.count(Counter::Unmatched), 2);
        frame(&mut raw, level, ONLY, 0, 0, 100);
        assert_eq!(raw.w.hosts[A].status(0), GOOD);
    }
}

#[test]
fn a_reception_message_is_acknowledged_after_its_status() {
    let mut raw = raw(Reliability::Reception, 1);
    frame(&mut raw, Reliability::Reception, FIRST, 0, 4100, 4096);
    assert!(raw.take(Type::ViAck).is_empty());
    assert_eq!(raw.w.ok(A, Opcode::ViQuery, VIS[A].into(), [0; 12]), 2 | 1 << 13);
    frame(&mut raw, Reliability::Reception, LAST | flag::IMMEDIATE, 0, 7, 4);
    assert_eq!(raw.w.hosts[A].status(0), GOOD | status::IMMEDIATE);
    let acks = raw.take(Type::ViAck);
    assert_eq!(acks.len(), 1);
    assert_eq!((acks[0].dst_vi, acks[0].src_vi, acks[0].word), (VIS[B], VIS[A], 0));
}

#[test]
fn frames_of_many_vis_interleave() {
    let mut raw = raw(Reliability::Delivery, 1);
    let words = vi_words(UNRELIABLE);
    raw.w.ok(A, Opcode::ViCreate, 30, words);
    let mut connect = connect_words(A);
    connect[0] = u32::from(NODES[B]) | 40 << 16;
    raw.w.ok(A, Opcode::ViConnect, 30, connect);
    raw.w.hosts[A].post(30, Recv, 0x800, &[(0x2_0000, 0x3000)]);
    raw.run(20);
    let text = pattern(1, 9000);
    for (i, part) in text.chunks(4096).enumerate() {
        let flags = if i == 0 { FIRST } else { 0 } | if i == 2 { LAST } else { 0 };
        let word = if i == 0 { 9000 } else { 0 };
        let header = Header { flags, word, sequence: i as u16, ..raw.plain() };
        raw.data(Reliability::Delivery, header, part);
        raw.data(UNRELIABLE, Header { dst_vi: 30, src_vi: 40, ..header }, part);
    }
    for (descriptor, data) in [(0, 0x2000), (0x800, 0x2_0000)] {
        assert_eq!(raw.w.hosts[A].status(descriptor), GOOD);
        assert_eq!(raw.w.hosts[A].data(data, 9000), text);
    }
}

#[test]
fn a_receive_descriptor_that_shrinks_in_mid_message_is_refused() {
    for level in RELIABLE {
        let mut raw = raw(level, 1);
        raw.w.ok(A, Opcode::ViCreate, 30, vi_words(UNRELIABLE));
        let mut connect = connect_words(A);
        connect[0] = u32::from(NODES[B]) | 40 << 16;
        raw.w.ok(A, Opcode::ViConnect, 30, connect);
        raw.w.hosts[A].post(30, Recv, 0x800, &[(0x2_0000, 0x3000)]);
        frame(&mut raw, level, FIRST, 0, 9000, 4096);
        // A frame of another VI: the descriptor is read again after it.
        let header = Header { dst_vi: 30, src_vi: 40, flags: FIRST, word: 5000, ..raw.plain() };
        raw.data(UNRELIABLE, header, &[0; 4096]);
        raw.w.hosts[A].put(32 + 12, &8999_u32.to_le_bytes());
        frame(&mut raw, level, 0, 0, 0, 4096);
        let bits = status::LENGTH_ERROR | status::PARTIAL_ERROR;
        assert_eq!(raw.w.hosts[A].status(0), GOOD | bits);
        assert_eq!(raw.w.hosts[A].vi(A), State::Error);
    }
}
