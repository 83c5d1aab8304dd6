//! Section 2: doorbells and the successor rule.

use nic_regs::admin::Opcode;
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::desc::{ControlSegment, status};
use nic_regs::doorbell::{BAR_SIZE, PAGE_BYTES, PUSH_OFFSET, Token};
use nic_regs::limits::POSTED_MAX;
use nic_regs::vi::{Reliability, State};

use super::csr::pop_log;
use super::support::*;
use crate::device::Device;

fn token(vi: u16) -> u64 {
    Token { vi, region: REGION, offset_64: 1, segments: 0, queue: Send }.to_bits()
}

#[test]
fn refused_doorbells_are_counted_and_logged() {
    let mut w = Testbench::pair(Reliability::Delivery);
    let page = PAGE_BYTES * u64::from(DOMAIN);
    let good = token(VIS[A]).to_le_bytes();
    let wide = [good, good, good, good, good, good, good, good].concat();
    let event = |queue: u64, consumer: u64| (queue | consumer << 32).to_le_bytes();
    let vi = u32::from(VIS[A]);
    let cases: [(u64, &[u8], u32); 16] = [
        (page, &good[..4], 0),
        (page, &good[..1], 0),
        (page + 4, &good[..4], 4 << 16),
        (page + 1, &good[..7], 0),
        (page + 16, &good, 16 << 16),
        (page + 0x800, &good, 0x800 << 16),
        (page + 0x800, &wide, 0x800 << 16),
        (page, &wide, 0),
        (page + 0xff8, &good, 0xff8 << 16),
        (page + PAGE_BYTES, &good, vi | 1 << 28),
        (0, &good, vi | 1 << 28),
        (page, &token(1024).to_le_bytes(), 1024 | 1 << 28),
        (page, &token(7).to_le_bytes(), 7 | 1 << 28),
        (page + 8, &event(256, 0), 256 | 8 << 16 | 2 << 28),
        (page + 8, &event(9, 0), 9 | 8 << 16 | 2 << 28),
        (page + 8, &event(1, 1), 1 | 8 << 16 | 3 << 28),
    ];
    for (i, (offset, data, detail)) in cases.into_iter().enumerate() {
        w.hosts[A].model.bar_write(2, offset, data);
        w.settle();
        assert_eq!(w.hosts[A].count(Counter::DoorbellBad), i as u32 + 1, "case {i}");
        let log = pop_log(&mut w, A).unwrap();
        let index = (offset / PAGE_BYTES) as u16;
        assert_eq!((log.code, log.index), (ErrorCode::BadDoorbell as u8, index));
        // The offset is logged to a dword.
        assert_eq!(log.detail, detail & !(3 << 16), "case {i}");
    }
    w.hosts[A].doorbell(DOMAIN + 1, 8, 1);
    w.settle();
    assert_eq!(pop_log(&mut w, A).unwrap().detail >> 28, 2);
    assert_eq!(w.hosts[A].count(Counter::DoorbellTokens), 0);
    assert_eq!(w.hosts[A].vi(A), State::Connected);
    assert_eq!(w.hosts[A].model.vi_snapshot(VIS[A]).posted, [0, 0]);
}

#[test]
fn an_idle_vi_counts_posts_and_an_error_vi_drops_them() {
    let mut w = Testbench::bare(&Default::default());
    w.open_channels();
    for side in [A, B] {
        w.ok(side, Opcode::ViCreate, VIS[side].into(), vi_words(Reliability::Delivery));
    }
    w.ok(B, Opcode::ViConnect, VIS[B].into(), connect_words(B));
    for i in 0..3 {
        w.hosts[A].post(VIS[A], Send, 64 * i, &[(0x2000, 10)]);
        w.hosts[B].post(VIS[B], Recv, 64 * i, &[(0x2000, 10)]);
    }
    w.settle();
    assert_eq!(w.hosts[A].model.vi_snapshot(VIS[A]).posted, [3, 0]);
    assert_eq!(w.hosts[A].status(0), 0);
    w.ok(A, Opcode::ViConnect, VIS[A].into(), connect_words(A));
    w.settle();
    for i in 0..3 {
        assert_eq!(w.hosts[A].status(64 * i), status::DONE);
        assert_eq!(w.hosts[B].status(64 * i), status::DONE | status::OP_RECEIVE);
    }
    // No receive descriptor: both stop.
    w.hosts[A].post(VIS[A], Send, 64 * 3, &[(0x2000, 10)]);
    w.settle();
    assert_eq!([w.hosts[A].vi(A), w.hosts[B].vi(B)], [State::Error; 2]);
    w.hosts[A].post(VIS[A], Send, 64 * 4, &[(0x2000, 10)]);
    w.hosts[A].post(VIS[A], Recv, 64 * 5, &[(0x2000, 10)]);
    w.settle();
    assert_eq!(w.hosts[A].count(Counter::DoorbellDropped), 2);
    assert_eq!(w.hosts[A].count(Counter::DoorbellTokens), 4);
    assert_eq!(w.hosts[A].status(64 * 4), 0);
}

/// A queue counts as many posts as a descriptor's count has; what is posted beyond is refused (section 2.2).
#[test]
fn a_full_queue_takes_no_more_posts() {
    let mut w = Testbench::bare(&Default::default());
    w.ok(A, Opcode::ViCreate, VIS[A].into(), vi_words(Reliability::Delivery));
    for _ in 0..=POSTED_MAX {
        w.hosts[A].token(VIS[A], Send, 0);
        w.step();
    }
    w.settle();
    assert_eq!(w.hosts[A].model.vi_snapshot(VIS[A]).posted, [POSTED_MAX, 0]);
    let counts = [Counter::DoorbellTokens, Counter::DoorbellDropped, Counter::DoorbellBad];
    assert_eq!(counts.map(|counter| w.hosts[A].count(counter)), [u32::from(POSTED_MAX), 1, 0]);
}

/// Posts of `groups` descriptors each, with all pauses between them from 0 to `LONGEST`: whatever
/// the device reads when, each descriptor is executed once and in order. Next is written only just
/// before its doorbell.
#[test]
fn no_post_is_lost_however_it_meets_a_completion() {
    const LONGEST: u64 = 14;
    for level in [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception] {
        for groups in [[1, 1, 1], [1, 2, 1], [2, 1, 3], [3, 1, 2], [1, 3, 1], [2, 2, 2], [3, 3, 3]]
        {
            for pauses in 0..LONGEST * LONGEST {
                let pauses = [pauses % LONGEST, pauses / LONGEST, 3];
                interleave(level, groups, pauses);
            }
        }
    }
}

fn interleave(level: Reliability, groups: [u64; 3], pauses: [u64; 3]) {
    use std::cell::RefCell;
    use std::collections::HashMap;
    thread_local!(static BENCHES: RefCell<HashMap<u32, Testbench>> = RefCell::default());
    BENCHES.with_borrow_mut(|benches| {
        let w = benches.entry(level as u32).or_insert_with(|| Testbench::pair(level));
        let total: u64 = groups.iter().sum();
        for i in 0..total {
            w.hosts[B].post(VIS[B], Recv, 64 * i, &[(0x2000 + 64 * i, 64)]);
            w.hosts[A].put(0x2000 + 64 * i, &pattern(i as u32, 8));
        }
        w.settle();
        let mut next = 0;
        for (group, pause) in groups.into_iter().zip(pauses) {
            for _ in 0..group {
                w.hosts[A].post(VIS[A], Send, 64 * next, &[(0x2000 + 64 * next, 8)]);
                next += 1;
            }
            w.run(pause);
        }
        w.settle();
        for i in 0..total {
            assert_eq!(w.hosts[A].status(64 * i), status::DONE, "{level:?} {groups:?} {pauses:?}");
            assert_eq!(w.hosts[B].status(64 * i), status::DONE | status::OP_RECEIVE);
            assert_eq!(w.hosts[B].data(0x2000 + 64 * i, 8), pattern(i as u32, 8));
        }
        for side in [A, B] {
            assert_eq!(w.hosts[side].model.vi_snapshot(VIS[side]).posted, [0, 0]);
            let read: u32 = w.hosts[side].events(COMPLETIONS).iter().map(|e| e.word1).sum();
            assert_eq!(u64::from(read), total);
            let consumer = w.hosts[side].model.snapshot().events[1].unwrap().0;
            w.hosts[side].ring_events(DOMAIN, COMPLETIONS, consumer, false);
        }
    });
}

#[test]
fn a_next_that_is_written_late_is_read_again() {
    // One descriptor posted and fetched (it waits for its ViAck); two more come; the Next that was
    // read is stale.
    let mut w = Testbench::pair(Reliability::Reception);
    for i in 0..3 {
        w.hosts[B].post(VIS[B], Recv, 64 * i, &[(0x2000, 64)]);
    }
    w.settle();
    w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 8)]);
    w.run(5);
    assert!(w.hosts[A].model.vi_snapshot(VIS[A]).sending);
    w.hosts[A].post(VIS[A], Send, 64, &[(0x2000, 8)]);
    w.hosts[A].post(VIS[A], Send, 128, &[(0x2000, 8)]);
    w.settle();
    for i in 0..3 {
        assert_eq!(w.hosts[A].status(64 * i), status::DONE);
    }
}

#[test]
fn with_one_descriptor_left_its_token_counts_and_not_next() {
    let mut w = Testbench::pair(Reliability::Reception);
    for i in 0..2 {
        w.hosts[B].post(VIS[B], Recv, 64 * i, &[(0x2000, 64)]);
        w.hosts[A].write_descriptor(64 * i, ControlSegment::default(), &[(0x2000, 8)]);
        w.hosts[A].token(VIS[A], Send, 64 * i);
    }
    w.settle();
    assert_eq!([w.hosts[A].status(0), w.hosts[A].status(64)], [status::DONE; 2]);
    assert_eq!(w.hosts[A].vi(A), State::Connected);
}

#[test]
fn bits_above_the_bar_are_no_part_of_an_offset() {
    let mut w = Testbench::pair(Reliability::Delivery);
    let page = 5 * BAR_SIZE + PAGE_BYTES * u64::from(DOMAIN);
    // A push that no other word follows posts its token.
    w.hosts[A].model.bar_write(2, page + PUSH_OFFSET, &token(VIS[A]).to_le_bytes());
    w.settle();
    assert_eq!(w.hosts[A].count(Counter::DoorbellTokens), 1);
    assert_eq!(w.hosts[A].count(Counter::DoorbellBad), 0);
}
