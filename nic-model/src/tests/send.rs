//! Section 4: frames, scheduling, completion.

use nic_regs::admin::Opcode;
use nic_regs::counter::Counter;
use nic_regs::desc::{ControlSegment, control, status};
use nic_regs::frame::{Header, Type, flag};
use nic_regs::vi::Reliability;

use super::raw::Raw;
use super::support::*;
use crate::device::Device;

const LEVELS: [Reliability; 3] =
    [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];

/// Lets the test's peer acknowledge all that comes, so that the device goes on.
fn flow(raw: &mut Raw, cycles: u64) -> Vec<Header> {
    let mut got = Vec::new();
    for _ in 0..cycles / 500 {
        raw.run(500);
        let mut data = raw.take(Type::Data);
        for header in data.iter().filter(|h| h.flags & flag::SEQUENCED != 0) {
            raw.ack = header.sequence.wrapping_add(1);
            raw.credit = raw.credit.wrapping_add(header.credits() as u8);
        }
        got.append(&mut data);
        raw.send(raw.kind(Type::Ack), &[]);
    }
    got
}

#[test]
fn frames_carry_what_the_contract_says() {
    for (level, immediate) in LEVELS.into_iter().flat_map(|l| [(l, false), (l, true)]) {
        let mut raw = Raw::open(level);
        let words = ControlSegment {
            control: if immediate { control::IMMEDIATE } else { 0 },
            immediate: 0x1234_5678,
            ..Default::default()
        };
        let mut number = 0_u16;
        for (i, n) in [0, 4096, 4097, 12_288].into_iter().enumerate() {
            let at = 64 * i as u64;
            raw.w.hosts[A].post_with(VIS[A], Send, at, words, &[(0x2000, n)]);
            let frames = flow(&mut raw, 4000);
            let count = n.div_ceil(4096).max(1) as usize;
            assert_eq!(frames.len(), count, "{level:?} {n}");
            for (k, header) in frames.iter().enumerate() {
                let (first, last) = (k == 0, k + 1 == count);
                let mut flags = match level {
                    Reliability::Unreliable => 0,
                    Reliability::Delivery => flag::SEQUENCED,
                    Reliability::Reception => flag::SEQUENCED | flag::RECEPTION,
                };
                flags |= if first { flag::FIRST } else { 0 } | if last { flag::LAST } else { 0 };
                flags |= if last && immediate { flag::IMMEDIATE } else { 0 };
                assert_eq!(header.flags, flags);
                let length = if last { n - 4096 * k as u32 } else { 4096 };
                assert_eq!(u32::from(header.length), length);
                let word = match (first, last) {
                    (_, true) if immediate => 0x1234_5678,
                    (true, false) => n,
                    _ => 0,
                };
                assert_eq!(header.word, word);
                let sequence = match level {
                    Reliability::Unreliable => (i as u16) << 8 | k as u16,
                    _ => number,
                };
                assert_eq!(header.sequence, sequence);
                number += 1;
                assert_eq!((header.dst_vi, header.src_vi), (VIS[B], VIS[A]));
                assert_eq!((header.connection, header.tag), (CONNECTION, raw.tag));
            }
            if level == Reliability::Reception {
                assert_eq!(raw.w.hosts[A].status(at), 0);
                raw.next(raw.kind(Type::ViAck), &[]);
            }
            assert_eq!(raw.w.hosts[A].status(at), status::DONE);
            assert_eq!(raw.w.hosts[A].length(at), n);
            // Its descriptor is read once.
            assert_eq!(raw.count(Counter::DescriptorsFetched), i as u32 + 1);
        }
    }
}

#[test]
fn a_reception_vi_waits_for_each_acknowledgement() {
    let mut raw = Raw::open(Reliability::Reception);
    for i in 0..2 {
        raw.w.hosts[A].post(VIS[A], Send, 64 * i, &[(0x2000, 8)]);
    }
    assert_eq!(flow(&mut raw, 3000).len(), 1);
    assert_eq!(raw.w.ok(A, Opcode::ViQuery, VIS[A].into(), [0; 12]), 2 | 1 << 12);
    raw.next(raw.kind(Type::ViAck), &[]);
    assert_eq!(raw.w.hosts[A].status(0), status::DONE);
    assert_eq!(flow(&mut raw, 3000).len(), 1);
    raw.next(raw.kind(Type::ViAck), &[]);
    raw.next(raw.kind(Type::ViAck), &[]);
    assert_eq!(raw.count(Counter::Unmatched), 1);
    assert_eq!(raw.count(Counter::SendsCompleted), 2);
}

#[test]
fn vis_are_scheduled_frame_by_frame() {
    let mut raw = Raw::open(Reliability::Unreliable);
    for vi in [30, 31] {
        raw.w.ok(A, Opcode::ViCreate, vi, vi_words(Reliability::Unreliable));
        let mut connect = connect_words(A);
        connect[0] = u32::from(NODES[B]) | (vi + 10) << 16;
        raw.w.ok(A, Opcode::ViConnect, vi, connect);
    }
    for (i, vi) in [31, VIS[A], 30].into_iter().enumerate() {
        raw.w.hosts[A].post(vi, Send, 0x400 * i as u64, &[(0x2000, 3 * 4096)]);
    }
    let order: Vec<u16> = flow(&mut raw, 10_000).iter().map(|h| h.src_vi).collect();
    // The first goes twice before the others have rung: a doorbell takes effect each cycle.
    let slots: Vec<u16> = order.iter().copied().skip_while(|&vi| vi == 31).collect();
    assert_eq!(order.len(), 9);
    assert_eq!(slots[..5], [VIS[A], 31, 30, VIS[A], 30]);
}

#[test]
fn a_blocked_vi_does_not_hold_up_another_peers() {
    // To a peer that is not open: passed over; it goes on when the peer opens.
    let mut raw = Raw::open(Reliability::Delivery);
    raw.w.ok(A, Opcode::ViCreate, 30, vi_words(Reliability::Delivery));
    let mut connect = connect_words(A);
    connect[0] = 33;
    raw.w.ok(A, Opcode::ViConnect, 30, connect);
    raw.w.hosts[A].post(30, Send, 0, &[(0x2000, 8)]);
    raw.w.hosts[A].post(VIS[A], Send, 0x400, &[(0x2000, 8)]);
    assert_eq!(flow(&mut raw, 1000).len(), 1);
    assert_eq!(raw.w.hosts[A].status(0x400), status::DONE);
    assert_eq!(raw.w.hosts[A].status(0), 0);
    assert!(!raw.w.hosts[A].model.busy());
}

#[test]
fn a_descriptor_that_changes_in_mid_message_harms_nobody() {
    let mut raw = Raw::open(Reliability::Delivery);
    raw.w.ok(A, Opcode::ViCreate, 30, vi_words(Reliability::Delivery));
    let mut connect = connect_words(A);
    connect[0] = u32::from(NODES[B]) | 40 << 16;
    raw.w.ok(A, Opcode::ViConnect, 30, connect);
    raw.w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 60_000)]);
    raw.w.hosts[A].post(30, Send, 0x400, &[(0x2000, 60_000)]);
    raw.run(600);
    raw.w.hosts[A].put(32 + 12, &5_u32.to_le_bytes());
    flow(&mut raw, 40_000);
    let bits = status::DONE | status::LENGTH_ERROR | status::PARTIAL_ERROR;
    assert_eq!(raw.w.hosts[A].status(0), bits);
    assert_eq!(raw.w.hosts[A].status(0x400), status::DONE);
}
