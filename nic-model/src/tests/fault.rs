//! Long runs over bad wires.

use nic_regs::counter::Counter;
use nic_regs::csr::RETRY_LIMIT;
use nic_regs::desc::status;
use nic_regs::vi::{Reliability, State};

use super::support::*;
use crate::link::{Faults, Side};

/// Both sides send `count` messages of many lengths, four at a time. Each arrives once, in order,
/// whole.
fn exactly_once(level: Reliability, faults: &Faults, count: u32) -> Testbench {
    let mut w = Testbench::pair_with(level, faults);
    for side in [A, B] {
        w.hosts[side].reg_write(RETRY_LIMIT::OFFSET, 15);
    }
    let length = |i: u32| (i * 2711 + i % 7 * 977) % 9000;
    let place = |i: u32| 0x1_0000 + 0x4000 * u64::from(i % 4);
    let mut done = [0; 2];
    let mut posted = [0; 2];
    w.until("all sent", |_| true);
    while done != [count; 2] {
        let start = w.now;
        for side in [A, B] {
            let far = 1 - side;
            while posted[side] < count && posted[side] < done[side] + 4 {
                let i = posted[side];
                let at = 64 * u64::from(i % 8);
                let n = length(i);
                w.hosts[far].put(0x5_0000 + place(i), &[0; 9008]);
                w.hosts[far].post(VIS[far], Recv, 0x1000 + at, &[(0x5_0000 + place(i), 9000)]);
                w.hosts[side].put(place(i), &pattern(i + side as u32, n as usize));
                w.settle_one(far);
                w.hosts[side].post(VIS[side], Send, at, &[(place(i), n)]);
                posted[side] += 1;
            }
        }
        w.until("progress", |w| {
            assert!(w.now < start + 2_900_000);
            [A, B].iter().any(|&s| {
                let at = 64 * u64::from(done[s] % 8);
                posted[s] > done[s]
                    && w.hosts[s].status(at) != 0
                    && w.hosts[1 - s].status(0x1000 + at) != 0
            })
        });
        for side in [A, B] {
            let (far, i) = (1 - side, done[side]);
            let at = 64 * u64::from(i % 8);
            if posted[side] == i || w.hosts[side].status(at) == 0 {
                continue;
            }
            if w.hosts[far].status(0x1000 + at) == 0 {
                continue;
            }
            let n = length(i) as usize;
            assert_eq!(w.hosts[side].status(at), status::DONE);
            assert_eq!(w.hosts[far].status(0x1000 + at), status::DONE | status::OP_RECEIVE);
            assert_eq!(w.hosts[far].length(0x1000 + at) as usize, n);
            assert!(w.hosts[far].data(0x5_0000 + place(i), n) == pattern(i + side as u32, n));
            assert_eq!(w.hosts[far].data(0x5_0000 + place(i) + n as u64, 8), [0; 8]);
            done[side] += 1;
        }
    }
    for side in [A, B] {
        assert_eq!(w.hosts[side].vi(side), State::Connected);
        assert_eq!(w.hosts[side].count(Counter::RecvsCompleted), count);
        assert_eq!(w.hosts[side].count(Counter::SendsCompleted), count);
    }
    w
}

impl Testbench {
    /// Runs until the host's writes to one device have taken effect.
    fn settle_one(&mut self, side: usize) {
        let tokens = self.hosts[side].count(Counter::DoorbellTokens);
        let name = format!("post on side {side}");
        self.until(&name, |w| w.hosts[side].count(Counter::DoorbellTokens) != tokens);
    }
}

fn faults(seed: u64) -> Faults {
    Faults { seed, loss: 0.1, corrupt: 0.1, duplicate: 0.05, cut: 0.02, ..Faults::default() }
}

#[test]
fn a_very_bad_wire_loses_nothing_on_the_reliable_levels() {
    for level in [Reliability::Delivery, Reliability::Reception] {
        for seed in 1..4 {
            let w = exactly_once(level, &faults(seed), 300);
            let counts = w.wire.fault_counts(Side::A);
            assert!(counts.lost > 20 && counts.corrupted > 20 && counts.cut > 0, "{counts:?}");
            assert!(w.hosts[A].count(Counter::FramesRetransmitted) > 50);
            assert!(w.hosts[B].count(Counter::DropDuplicate) > 0);
            assert!(w.hosts[B].count(Counter::DropCrc) > 20);
        }
    }
}

#[test]
fn a_good_wire_needs_no_retransmission() {
    for level in [Reliability::Delivery, Reliability::Reception] {
        let w = exactly_once(level, &Faults::default(), 300);
        for side in [A, B] {
            assert_eq!(w.hosts[side].count(Counter::FramesRetransmitted), 0);
            assert_eq!(w.hosts[side].count(Counter::DropStaging), 0);
        }
    }
}

#[test]
fn each_early_frame_may_be_lost_cut_corrupted_or_doubled() {
    for ordinal in 0..8_u64 {
        for direction in 0..2 {
            for what in 0..4 {
                let mut faults = Faults { seed: ordinal, ..Faults::default() };
                let list = match what {
                    0 => &mut faults.drop_frames,
                    1 => &mut faults.corrupt_frames,
                    2 => &mut faults.duplicate_frames,
                    _ => &mut faults.cut_frames,
                };
                list[direction].push(ordinal);
                exactly_once(Reliability::Reception, &faults, 6);
            }
        }
    }
}

#[test]
fn an_unreliable_vi_loses_messages_but_never_mixes_them() {
    let mut w = Testbench::pair_with(Reliability::Unreliable, &faults(9));
    let mut arrived = 0_u32;
    let mut at = 0;
    w.hosts[B].post(VIS[B], Recv, 0x1000, &[(0x8_0000, 9000)]);
    w.settle();
    for i in 0..300_u32 {
        let n = 1 + (i * 2711 % 9000) as usize;
        w.hosts[A].put(0x1_0000, &pattern(i, n));
        let descriptor = 64 * u64::from(i % 8);
        w.hosts[A].post(VIS[A], Send, descriptor, &[(0x1_0000, n as u32)]);
        w.settle();
        assert_eq!(w.hosts[A].status(descriptor), status::DONE);
        if w.hosts[B].status(0x1000 + at) != 0 {
            assert_eq!(w.hosts[B].status(0x1000 + at), status::DONE | status::OP_RECEIVE);
            assert_eq!(w.hosts[B].length(0x1000 + at) as usize, n);
            assert!(w.hosts[B].data(0x8_0000, n) == pattern(i, n));
            arrived += 1;
            at = 64 * (u64::from(arrived) % 8);
            w.hosts[B].post(VIS[B], Recv, 0x1000 + at, &[(0x8_0000, 9000)]);
            w.settle();
        }
    }
    assert!((100..280).contains(&arrived), "{arrived}");
    assert_eq!(w.hosts[A].count(Counter::FramesRetransmitted), 0);
}
