//! Sections 2.5 to 2.8: push doorbells, torn in every way. A push posts once, whatever becomes of
//! its data. The data in the line differs from that in memory here, so that what was used shows.

use nic_regs::admin::Opcode;
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::csr::CONTROL;
use nic_regs::desc::{ControlSegment, control, status};
use nic_regs::doorbell::{
    PAGE_BYTES, PUSH_LINE_BYTES, PUSH_OFFSET, PUSH_SILENCE_CYCLES, PUSH_WORDS, TOKEN_OFFSET, Token,
    push_line,
};
use nic_regs::vi::{Reliability, State};

use super::csr::pop_log;
use super::support::*;
use crate::Model;
use crate::device::{Device, Features};

const LEVELS: [Reliability; 3] =
    [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];
/// Where the descriptor's data is in memory, and where it arrives.
const FROM: u64 = 0x2000;
const TO: u64 = 0x3000;

fn token(vi: u16, at: u64) -> Token {
    let offset_64 = ((at + BUS % 64) / 64) as u32;
    Token { vi, region: REGION, offset_64, segments: 1, queue: Send }
}

/// A line with `n` bytes of 0xbb (in memory there are 0xaa).
fn line(vi: u16, at: u64, n: usize, immediate: Option<u32>) -> ([u64; PUSH_WORDS], usize) {
    push_line(token(vi, at), &vec![0xbb; n], immediate).unwrap()
}

fn place(page: u8, line: u64, word: usize) -> u64 {
    PAGE_BYTES * u64::from(page) + PUSH_OFFSET + PUSH_LINE_BYTES * line + 8 * word as u64
}

/// Writes words to a line of the VI's page, beginning with word `first`.
fn words(w: &mut Testbench, line: u64, first: usize, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    w.hosts[A].model.bar_write(2, place(DOMAIN, line, first), &bytes);
}

/// A pair with receives posted, and send descriptors of `n` bytes ready at 0, 64 and so on.
fn testbench(level: Reliability, n: u32) -> Testbench {
    let mut w = Testbench::pair(level);
    prepare(&mut w, n);
    w
}

fn prepare(w: &mut Testbench, n: u32) {
    for i in 0..4 {
        w.hosts[B].post(VIS[B], Recv, 64 * i, &[(TO + 64 * i, 64)]);
        w.hosts[A].write_descriptor(64 * i, ControlSegment::default(), &[(FROM, n)]);
    }
    w.hosts[A].put(FROM, &[0xaa; 64]);
    w.settle();
}

/// The message that arrived as number `i`: of `n` bytes, from the line or from memory.
#[track_caller]
fn arrived(w: &Testbench, i: u64, n: usize, inline: bool) {
    assert_eq!(w.hosts[A].status(64 * i), status::DONE, "send {i}");
    assert_eq!(w.hosts[A].length(64 * i) as usize, n);
    assert_eq!(w.hosts[B].status(64 * i), status::DONE | status::OP_RECEIVE, "receive {i}");
    assert_eq!(w.hosts[B].length(64 * i) as usize, n);
    let byte = if inline { 0xbb } else { 0xaa };
    assert_eq!(w.hosts[B].data(TO + 64 * i, n), vec![byte; n]);
    assert!(w.hosts[B].data(TO + 64 * i + n as u64, 64 - n).iter().all(|&b| b == 0));
}

#[track_caller]
fn counts(w: &Testbench, inline: u32, plain: u32) {
    let count = |counter| w.hosts[A].count(counter);
    assert_eq!((count(Counter::PushesInline), count(Counter::PushesPlain)), (inline, plain));
    assert_eq!(w.hosts[A].model.vi_snapshot(VIS[A]).posted[0], 0);
}

#[test]
fn every_split_in_rising_order_is_whole() {
    for n in [0_usize, 1, 8, 9, 39, 40] {
        let (all, count) = line(VIS[A], 0, n, None);
        assert_eq!(count, 3 + n.div_ceil(8));
        // The line cut in every way; with what lies behind the last data word, and without.
        for (cuts, end) in (0..1_u32 << 7).flat_map(|cuts| [(cuts, count), (cuts, PUSH_WORDS)]) {
            if cuts >> (end - 1) != 0 || (n != 40 && cuts % 5 != 0) {
                continue;
            }
            let mut w = testbench(Reliability::Delivery, n as u32);
            let mut first = 0;
            for at in 1..=end {
                if at == end || cuts >> (at - 1) & 1 != 0 {
                    words(&mut w, 2, first, &all[first..at]);
                    first = at;
                }
            }
            w.settle();
            arrived(&w, 0, n, true);
            counts(&w, 1, 0);
            assert_eq!(w.hosts[A].count(Counter::DoorbellTokens), 1);
            assert_eq!(w.hosts[A].count(Counter::DoorbellBad), 0);
        }
    }
}

#[test]
fn an_inline_push_is_as_its_descriptor() {
    for (level, immediate) in LEVELS.into_iter().flat_map(|l| [(l, None), (l, Some(0x55_66))]) {
        let run = |push: bool| {
            let mut w = testbench(level, 13);
            w.hosts[A].put(FROM, &[0xbb; 13]);
            let words_of = ControlSegment {
                control: if immediate.is_some() { control::IMMEDIATE } else { 0 },
                immediate: immediate.unwrap_or(0),
                ..ControlSegment::default()
            };
            w.hosts[A].write_descriptor(0, words_of, &[(FROM, 13)]);
            w.hosts[A].traces.lock().unwrap().clear();
            if push {
                let (all, _) = line(VIS[A], 0, 13, immediate);
                words(&mut w, 0, 0, &all);
            } else {
                w.hosts[A].token(VIS[A], Send, 0);
            }
            w.settle();
            assert_eq!(w.hosts[A].count(Counter::PushesInline), u32::from(push));
            let fetched = w.hosts[A].count(Counter::DescriptorsFetched);
            assert_eq!(fetched, u32::from(!push), "nothing was read");
            let traces = w.hosts[A].traces.lock().unwrap().clone();
            let memories = [A, B].map(|side| w.hosts[side].memory.bytes.clone());
            let writes = [A, B].map(|side| w.hosts[side].memory.writes.clone());
            (traces, memories, writes)
        };
        let (pushed, plain) = (run(true), run(false));
        // Epochs and cycles are alike too, but for the token in the trace.
        assert!(pushed == plain, "{level:?} {immediate:?}");
    }
}

#[test]
fn a_push_is_a_send_whatever_was_before() {
    let mut w = testbench(Reliability::Unreliable, 8);
    let write = ControlSegment { control: control::OP_RDMA_WRITE, ..ControlSegment::default() };
    w.hosts[A].write_descriptor(0x400, write, &[(FROM, 0)]);
    w.hosts[A].token(VIS[A], Send, 0x400);
    w.settle();
    assert_eq!(w.hosts[A].status(0x400) & status::OP_MASK, status::OP_RDMA_WRITE);
    words(&mut w, 0, 0, &line(VIS[A], 0, 8, None).0);
    w.settle();
    arrived(&w, 0, 8, true);
}

#[test]
fn a_push_that_stops_anywhere_posts_once_after_64_cycles() {
    let (all, count) = line(VIS[A], 0, 40, None);
    for end in 1..count {
        let mut w = testbench(Reliability::Reception, 40);
        words(&mut w, 1, 0, &all[..end]);
        w.run(PUSH_SILENCE_CYCLES);
        assert_eq!(w.hosts[A].count(Counter::DoorbellTokens), 0, "not yet");
        w.run(2);
        assert_eq!(w.hosts[A].count(Counter::DoorbellTokens), 1);
        w.settle();
        arrived(&w, 0, 40, false);
        counts(&w, 0, 1);
        // The rest comes late, and is nothing.
        words(&mut w, 1, end, &all[end..]);
        w.run(200);
        w.settle();
        counts(&w, 0, 1);
        assert_eq!(w.hosts[A].count(Counter::DoorbellBad), 0);
    }
}

#[test]
fn words_may_be_63_cycles_apart() {
    let (all, count) = line(VIS[A], 0, 40, None);
    let mut w = testbench(Reliability::Delivery, 40);
    for at in 0..count {
        words(&mut w, 3, at, &all[at..=at]);
        w.run(PUSH_SILENCE_CYCLES - 1);
    }
    w.settle();
    arrived(&w, 0, 40, true);
    counts(&w, 1, 0);
}

#[test]
fn a_missing_or_repeated_word_or_another_order_posts_the_token_alone() {
    let (all, count) = line(VIS[A], 0, 40, None);
    for (at, then) in (1..count).flat_map(|at| (1..PUSH_WORDS).map(move |then| (at, then))) {
        if then == at {
            continue;
        }
        let mut w = testbench(Reliability::Delivery, 40);
        words(&mut w, 0, 0, &all[..at]);
        words(&mut w, 0, then, &all[then..=then]);
        w.run(3);
        assert_eq!(w.hosts[A].count(Counter::PushesPlain), 1, "word {then} after {at}");
        words(&mut w, 0, at, &all[at..]);
        w.settle();
        arrived(&w, 0, 40, false);
        counts(&w, 0, 1);
        assert_eq!(w.hosts[A].count(Counter::DoorbellBad), 0);
    }
}

#[test]
fn an_interleaved_push_breaks_the_first_and_keeps_its_place() {
    let (first, _) = line(VIS[A], 0, 16, None);
    let (second, _) = line(VIS[A], 64, 16, None);
    for (at, other) in [(1, 1), (2, 0), (2, 1), (3, 0), (3, 1), (4, 0), (4, 1)] {
        let mut w = testbench(Reliability::Delivery, 16);
        w.hosts[A].link(VIS[A], Send, 0);
        w.hosts[A].link(VIS[A], Send, 64);
        words(&mut w, 0, 0, &first[..at]);
        words(&mut w, other, 0, &second[..1]);
        // Words of the first one: out of order now.
        words(&mut w, 0, at, &first[at..]);
        words(&mut w, other, 1, &second[1..]);
        w.settle();
        // In order of the tokens; none of them inline, since each broke the other.
        arrived(&w, 0, 16, false);
        arrived(&w, 1, 16, false);
        counts(&w, 0, 2);
    }
    // The second one undisturbed behind the first: its queue is not empty.
    let mut w = testbench(Reliability::Delivery, 16);
    w.hosts[A].link(VIS[A], Send, 0);
    w.hosts[A].link(VIS[A], Send, 64);
    words(&mut w, 0, 0, &first[..4]);
    words(&mut w, 1, 0, &second);
    w.settle();
    arrived(&w, 0, 16, false);
    arrived(&w, 1, 16, false);
    counts(&w, 0, 2);
}

#[test]
fn any_other_write_to_the_page_breaks_a_push_and_comes_after_it() {
    let (all, _) = line(VIS[A], 0, 8, None);
    let page = PAGE_BYTES * u64::from(DOMAIN);
    let zeros = [0; 64];
    // An event doorbell; writes that are refused: elsewhere, in the push lines, of malformed sizes.
    let cases: [(u64, usize, u32); 8] = [
        (8, 8, 0),
        (0x40, 8, 1),
        (PUSH_OFFSET + 24, 4, 1),
        (PUSH_OFFSET + 28, 8, 1),
        (PUSH_OFFSET + 24, 12, 1),
        (PUSH_OFFSET + 32, 64, 1),
        (PUSH_OFFSET + 4 * PUSH_LINE_BYTES, 8, 1),
        (0xff8, 8, 1),
    ];
    for (at, n, bad) in cases {
        let mut w = testbench(Reliability::Delivery, 8);
        words(&mut w, 0, 0, &all[..3]);
        w.hosts[A].model.bar_write(2, page + at, &zeros[..n]);
        words(&mut w, 0, 3, &all[3..4]);
        w.run(4);
        counts_of(&w, at);
        w.settle();
        arrived(&w, 0, 8, false);
        assert_eq!(w.hosts[A].count(Counter::DoorbellBad), bad, "{at:#x}");
    }
    // A token in the page: posted behind the push.
    let mut w = testbench(Reliability::Delivery, 8);
    w.hosts[A].link(VIS[A], Send, 0);
    w.hosts[A].link(VIS[A], Send, 64);
    words(&mut w, 0, 0, &all[..3]);
    w.hosts[A].token(VIS[A], Send, 64);
    w.settle();
    arrived(&w, 0, 8, false);
    arrived(&w, 1, 8, false);
    // Another page and a read do not disturb it.
    let mut w = testbench(Reliability::Delivery, 8);
    words(&mut w, 0, 0, &all[..3]);
    w.hosts[A].doorbell(DOMAIN + 1, PUSH_OFFSET, token(VIS[A], 0).to_bits());
    w.hosts[A].doorbell(DOMAIN + 1, TOKEN_OFFSET, token(VIS[A], 0).to_bits());
    assert_eq!(w.bar_read(A, 2, page + PUSH_OFFSET, 8), 0);
    words(&mut w, 0, 3, &all[3..]);
    w.settle();
    arrived(&w, 0, 8, true);
    counts(&w, 1, 0);
    assert_eq!(w.hosts[A].count(Counter::DoorbellBad), 2);
}

#[track_caller]
fn counts_of(w: &Testbench, at: u64) {
    assert_eq!(w.hosts[A].count(Counter::PushesPlain), 1, "{at:#x}");
    assert_eq!(w.hosts[A].count(Counter::PushesInline), 0, "{at:#x}");
}

#[test]
fn malformed_hints_leave_the_token() {
    let good = line(VIS[A], 0, 8, None).0;
    let spoil: [(usize, u64); 8] = [
        (1, 41),
        (1, 255),
        (1, 8 | 1 << 9),
        (1, 8 | 1 << 31),
        (1, u64::MAX),
        (2, 1),
        (2, 1 << 63),
        (2, token(VIS[A], 64).to_bits()),
    ];
    for (index, value) in spoil {
        let mut bad = good;
        bad[index] = value;
        let mut w = testbench(Reliability::Delivery, 8);
        words(&mut w, 0, 0, &bad);
        w.run(3);
        counts_of(&w, value);
        w.settle();
        arrived(&w, 0, 8, false);
        assert_eq!(w.hosts[A].count(Counter::DoorbellBad), 0);
    }
    // Immediate data without its flag is not malformed, and is not sent.
    let mut malformed = good;
    malformed[1] |= 77 << 32;
    let mut w = testbench(Reliability::Delivery, 8);
    words(&mut w, 0, 0, &malformed);
    w.settle();
    arrived(&w, 0, 8, true);
}

#[test]
fn writes_that_are_no_push_are_refused_whole() {
    let page = PAGE_BYTES * u64::from(DOMAIN);
    let (all, _) = line(VIS[A], 0, 40, None);
    let bytes: Vec<u8> = all.iter().flat_map(|word| word.to_le_bytes()).collect();
    let recv = Token { queue: Recv, ..token(VIS[A], 0) }.to_bits().to_le_bytes();
    let cases: [(u64, &[u8]); 7] = [
        (PUSH_OFFSET, &bytes[..4]),
        (PUSH_OFFSET, &bytes[..12]),
        (PUSH_OFFSET, &bytes[..63]),
        (PUSH_OFFSET + 4, &bytes[..8]),
        (PUSH_OFFSET + 8, &bytes[..64]),
        (PUSH_OFFSET + 4 * PUSH_LINE_BYTES, &bytes),
        (PUSH_OFFSET + PUSH_LINE_BYTES, &recv),
    ];
    let mut w = testbench(Reliability::Delivery, 40);
    for (i, (at, data)) in cases.into_iter().enumerate() {
        w.hosts[A].model.bar_write(2, page + at, data);
        w.settle();
        assert_eq!(w.hosts[A].count(Counter::DoorbellBad), i as u32 + 1, "case {i}");
        let log = pop_log(&mut w, A).unwrap();
        assert_eq!((log.code, log.index), (ErrorCode::BadDoorbell as u8, DOMAIN.into()));
        assert_eq!(log.detail, (at as u32 & !3) << 16, "case {i}");
    }
    counts(&w, 0, 0);
    assert_eq!(w.hosts[A].count(Counter::DoorbellTokens), 0);
}

#[test]
fn a_push_to_a_wrong_vi_or_page_is_refused_when_it_is_posted() {
    for (page, vi) in [(DOMAIN, 1024), (DOMAIN, 7), (DOMAIN + 1, VIS[A]), (0, VIS[A])] {
        let mut w = testbench(Reliability::Delivery, 8);
        let (all, count) = line(vi, 0, 8, None);
        for end in [1, count] {
            let bytes: Vec<u8> = all[..end].iter().flat_map(|word| word.to_le_bytes()).collect();
            w.hosts[A].model.bar_write(2, place(page, 1, 0), &bytes);
            w.settle();
            let log = pop_log(&mut w, A).unwrap();
            assert_eq!(log.index, u16::from(page));
            let offset = (PUSH_OFFSET + PUSH_LINE_BYTES) as u32;
            assert_eq!(log.detail, u32::from(vi) | offset << 16 | 1 << 28, "{page} {vi} {end}");
        }
        counts(&w, 0, 0);
        assert_eq!(w.hosts[A].count(Counter::DoorbellBad), 2);
        assert_eq!(w.hosts[A].count(Counter::DoorbellTokens), 0);
    }
}

#[test]
fn only_a_quiet_vi_takes_the_data() {
    // Idle: counted, and read from memory when it is connected.
    let mut w = Testbench::bare(&Default::default());
    w.open_channels();
    for side in [A, B] {
        w.ok(side, Opcode::ViCreate, VIS[side].into(), vi_words(Reliability::Delivery));
    }
    w.ok(B, Opcode::ViConnect, VIS[B].into(), connect_words(B));
    prepare(&mut w, 8);
    words(&mut w, 0, 0, &line(VIS[A], 0, 8, None).0);
    w.settle();
    assert_eq!(w.hosts[A].model.vi_snapshot(VIS[A]).posted[0], 1);
    w.ok(A, Opcode::ViConnect, VIS[A].into(), connect_words(A));
    w.settle();
    arrived(&w, 0, 8, false);
    counts(&w, 0, 1);
    // Work in the queue, and a send that waits for its ViAck.
    for level in LEVELS {
        let mut w = testbench(level, 8);
        for i in 0..4 {
            w.hosts[A].link(VIS[A], Send, 64 * i);
        }
        for i in 0..4 {
            words(&mut w, i, 0, &line(VIS[A], 64 * i, 8, None).0);
        }
        w.settle();
        let inline = w.hosts[A].count(Counter::PushesInline);
        assert_eq!(inline + w.hosts[A].count(Counter::PushesPlain), 4);
        arrived(&w, 0, 8, true);
        if level == Reliability::Reception {
            assert_eq!(inline, 1);
            (1..4).for_each(|i| arrived(&w, i, 8, false));
        }
        assert!((1..4).all(|i| w.hosts[B].status(64 * i) != 0));
    }
    // Error: dropped.
    let mut w = testbench(Reliability::Delivery, 8);
    w.ok(B, Opcode::ViDisconnect, VIS[B].into(), [0; 12]);
    w.settle();
    assert_eq!(w.hosts[A].vi(A), State::Error);
    words(&mut w, 0, 0, &line(VIS[A], 0, 8, None).0);
    w.settle();
    assert_eq!(w.hosts[A].count(Counter::DoorbellDropped), 1);
    counts(&w, 0, 0);
}

#[test]
fn inline_data_is_forgotten_by_a_fence_and_a_disconnect() {
    // The peer's channel is closed: the push waits.
    let mut w = Testbench::bare(&Default::default());
    w.ok(A, Opcode::ViCreate, VIS[A].into(), vi_words(Reliability::Delivery));
    w.ok(B, Opcode::ViCreate, VIS[B].into(), vi_words(Reliability::Delivery));
    for side in [B, A] {
        w.ok(side, Opcode::ViConnect, VIS[side].into(), connect_words(side));
    }
    prepare(&mut w, 8);
    words(&mut w, 0, 0, &line(VIS[A], 0, 8, None).0);
    w.settle();
    assert_eq!(w.hosts[A].count(Counter::PushesInline), 1);
    let mut other = region_words();
    other[5] += 1 << 16;
    w.ok(A, Opcode::RegionSet, 50, other);
    w.ok(A, Opcode::RegionClear, 50, [0; 12]);
    w.open_channels();
    w.settle();
    arrived(&w, 0, 8, false);
    // Disconnected in time, nothing is sent after the next connection.
    for side in [A, B] {
        w.ok(side, Opcode::PeerClose, NODES[1 - side].into(), [0; 12]);
        w.ok(side, Opcode::ViDisconnect, VIS[side].into(), [0; 12]);
        w.hosts[side].unlink(VIS[side]);
    }
    w.settle();
    for side in [A, B] {
        w.ok(side, Opcode::ViConnect, VIS[side].into(), connect_words(side));
    }
    words(&mut w, 0, 0, &line(VIS[A], 64, 8, None).0);
    w.settle();
    assert_eq!(w.hosts[A].count(Counter::PushesInline), 2);
    w.ok(A, Opcode::ViDisconnect, VIS[A].into(), [0; 12]);
    w.settle();
    w.ok(A, Opcode::ViConnect, VIS[A].into(), connect_words(A));
    w.hosts[A].post(VIS[A], Send, 128, &[(FROM, 8)]);
    w.settle();
    assert_eq!(w.hosts[A].status(64), 0);
    assert_eq!(w.hosts[A].model.vi_snapshot(VIS[A]).posted[0], 1);
}

#[test]
fn inline_data_of_others_stays_when_a_vi_is_disconnected() {
    let mut w = Testbench::bare(&Default::default());
    for vis in [VIS, [30, 40]] {
        w.connect(Reliability::Delivery, vis);
    }
    prepare(&mut w, 8);
    w.hosts[B].post(40, Recv, 0x1000, &[(TO + 0x1000, 64)]);
    for (vi, at) in [(VIS[A], 0), (30, 64)] {
        words(&mut w, 0, 0, &line(vi, at, 8, None).0);
        w.settle();
    }
    w.ok(A, Opcode::ViDisconnect, VIS[A].into(), [0; 12]);
    w.open_channels();
    w.settle();
    assert_eq!((w.hosts[A].status(0), w.hosts[A].status(64)), (0, status::DONE));
    assert_eq!(w.hosts[B].data(TO + 0x1000, 8), [0xbb; 8]);
}

/// More segments than a descriptor has: no more than its control segment has to be reached.
#[test]
fn a_hint_of_too_many_segments_reaches_none() {
    for (length, good) in [(0x1000 + 32, true), (0x1000 + 31, false)] {
        let mut w = testbench(Reliability::Delivery, 8);
        let mut short = region_words();
        short[4] = length;
        w.ok(A, Opcode::RegionSet, 50, short);
        let offset_64 = ((0x1000 + BUS % 64) / 64) as u32;
        let token = Token { region: 50, offset_64, segments: 18, ..token(VIS[A], 0) };
        let (all, _) = push_line(token, &[0xbb; 8], None).unwrap();
        words(&mut w, 0, 0, &all);
        w.settle();
        assert_eq!(w.hosts[A].count(Counter::PushesInline), 1);
        let state = if good { State::Connected } else { State::Error };
        assert_eq!(w.hosts[A].vi(A), state, "{length:#x}");
    }
}

#[test]
fn reach_and_length_are_checked_though_nothing_is_read() {
    // Outside the region, by its segment count; and another tag.
    let end = u64::from(REGION_LENGTH) - 64;
    for (at, segments) in [(end, 3), (u64::from(REGION_LENGTH), 1)] {
        for level in LEVELS {
            let mut w = testbench(level, 8);
            let token = Token { segments, ..token(VIS[A], at) };
            let (all, _) = push_line(token, &[0xbb; 8], None).unwrap();
            words(&mut w, 0, 0, &all);
            w.settle();
            assert_eq!(w.hosts[A].count(Counter::PushesInline), 1);
            assert_eq!(w.hosts[A].vi(A), State::Error, "{at:#x} {level:?}");
            let event = w.hosts[A].events(ERRORS)[0];
            assert_eq!(event.word2, status::PROTECTION_ERROR);
            assert!(w.hosts[B].data(TO, 8).iter().all(|&b| b == 0));
        }
    }
    // Longer than the VI's maximum.
    for level in LEVELS {
        let mut w = Testbench::bare(&Default::default());
        w.open_channels();
        for side in [A, B] {
            let mut small = vi_words(level);
            small[2] = 7;
            w.ok(side, Opcode::ViCreate, VIS[side].into(), small);
            w.ok(side, Opcode::ViConnect, VIS[side].into(), connect_words(side));
        }
        prepare(&mut w, 8);
        words(&mut w, 0, 0, &line(VIS[A], 0, 8, None).0);
        w.settle();
        assert_eq!(w.hosts[A].status(0), status::DONE | status::LENGTH_ERROR);
    }
}

#[test]
fn pushes_beyond_the_inline_slots_are_posted_plain() {
    let mut w = Testbench::bare(&Default::default());
    for vi in 100..120 {
        w.ok(A, Opcode::ViCreate, vi, vi_words(Reliability::Delivery));
        let mut words = connect_words(A);
        words[0] = u32::from(NODES[B]) | vi << 16;
        w.ok(A, Opcode::ViConnect, vi, words);
    }
    for vi in 100..120 {
        words(&mut w, vi % 4, 0, &line(vi as u16, 0, 8, None).0);
    }
    w.settle();
    let count = |counter| w.hosts[A].count(counter);
    assert_eq!(count(Counter::DoorbellTokens), 20);
    assert_eq!((count(Counter::PushesInline), count(Counter::PushesPlain)), (8, 12));
}

#[test]
fn disabling_and_reset_forget_a_push_under_way() {
    for reset in [false, true] {
        let mut w = testbench(Reliability::Delivery, 8);
        let (all, _) = line(VIS[A], 0, 8, None);
        words(&mut w, 0, 0, &all[..3]);
        w.hosts[A].reg_write(CONTROL::OFFSET, if reset { 2 } else { 0 });
        w.run(3000);
        w.hosts[A].reg_write(CONTROL::OFFSET, 1);
        words(&mut w, 0, 3, &all[3..]);
        w.run(200);
        assert_eq!(w.hosts[A].count(Counter::DoorbellTokens), 0);
        assert_eq!(w.hosts[A].status(0), 0);
    }
}

#[test]
fn without_the_feature_the_lines_are_nothing() {
    let mut w = testbench(Reliability::Delivery, 8);
    w.hosts[A].model = Model::with_features(Features::NONE);
    w.bring_up(A);
    words(&mut w, 0, 0, &line(VIS[A], 0, 8, None).0);
    words(&mut w, 0, 0, &line(VIS[A], 0, 8, None).0[..1]);
    w.settle();
    assert_eq!(w.hosts[A].count(Counter::DoorbellBad), 2);
    assert_eq!(pop_log(&mut w, A).unwrap().detail, (PUSH_OFFSET as u32) << 16);
}
