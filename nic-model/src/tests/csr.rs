//! Section 1: registers and reset; section 9.3: accesses that no BAR takes.

use nic_regs::Access;
use nic_regs::admin::Opcode;
use nic_regs::counter::{Counter, ErrorCode, ErrorRecord};
use nic_regs::csr::{
    ACK_DELAY, ADMIN_HEAD, ADMIN_TAIL, CAPS3, CONTROL, COUNTER_OFFSET, CYCLES_HI, CYCLES_LO,
    ERROR_COUNT, ERROR_HI, ERROR_LO, ERROR_POP, MSIX_CONTROL, NODE, REGS, SAMPLE, SAMPLED, STAMP0,
    STATUS, msix_entry,
};
use nic_regs::doorbell::TOKEN_OFFSET;
use nic_regs::limits::{PEER_COUNT, VI_COUNT};
use nic_regs::vi::Reliability;

use super::support::*;
use crate::device::{Device, Features};

/// Takes the oldest record of the error log.
pub(super) fn pop_log(w: &mut Testbench, side: usize) -> Option<ErrorRecord> {
    let low = w.reg_read(side, ERROR_LO::OFFSET);
    let high = w.reg_read(side, ERROR_HI::OFFSET);
    w.hosts[side].reg_write(ERROR_POP::OFFSET, 1);
    let bits = u64::from(low) | u64::from(high) << 32;
    (bits != 0).then(|| ErrorRecord::from_bits(bits))
}

#[test]
fn every_register_resets_holds_and_masks() {
    let mut w = Testbench::bare(&Default::default());
    let before = ADMIN_TAIL::OFFSET;
    w.hosts[A].reg_write(CONTROL::OFFSET, 2);
    w.run(3);
    for round in 0..2 {
        for reg in REGS {
            if [STATUS::OFFSET, CYCLES_LO::OFFSET, CYCLES_HI::OFFSET].contains(&reg.offset) {
                continue;
            }
            let expected = match reg.offset {
                CAPS3::OFFSET => Features::ALL.caps3().0,
                _ if reg.access == Access::Wo => 0,
                _ => reg.reset,
            };
            assert_eq!(w.reg_read(A, reg.offset), expected, "{} in round {round}", reg.name);
            if round == 0 {
                // The reset is under way: the write is dropped.
                assert_eq!(w.reg_read(A, STATUS::OFFSET), 0);
                w.hosts[A].reg_write(reg.offset, 0xffff_ffff);
            }
        }
        while w.reg_read(A, STATUS::OFFSET) == 0 {}
    }
    for reg in REGS.iter().filter(|r| r.offset != CONTROL::OFFSET && r.offset != before) {
        let fields =
            reg.fields.iter().fold(0, |m, &(_, hi, lo, _)| m | (u32::MAX >> (31 - hi + lo)) << lo);
        for value in [0xffff_ffff, 0xa5a5_5a5a] {
            let old = w.reg_read(A, reg.offset);
            w.hosts[A].reg_write(reg.offset, value);
            let now = w.reg_read(A, reg.offset);
            match reg.access {
                Access::Rw => assert_eq!(now, value & fields, "{}", reg.name),
                Access::Wo => assert_eq!(now, 0, "{}", reg.name),
                _ if reg.offset == CYCLES_LO::OFFSET => assert!(now > old),
                _ => assert_eq!(now, old, "{}", reg.name),
            }
        }
    }
    assert_eq!(w.hosts[A].count(Counter::BadRegister), 0);
}

#[test]
fn malformed_register_accesses_are_refused_counted_and_logged() {
    let mut w = Testbench::bare(&Default::default());
    let bad: [(u64, usize); 10] = [
        (0x18, 1),
        (0x18, 2),
        (0x18, 8),
        (0x1a, 4),
        (0x7c, 4),
        (0xa4, 4),
        (0x500, 4),
        (0x1200, 4),
        (0x1ffc, 4),
        (0x2000, 4),
    ];
    for (i, &(offset, length)) in bad.iter().enumerate() {
        assert_eq!(w.bar_read(A, 0, offset, length), 0);
        assert_eq!(w.hosts[A].count(Counter::BadRegister), 2 * i as u32 + 1);
        let log = pop_log(&mut w, A).unwrap();
        let detail = offset as u32 & !3;
        assert_eq!(log, ErrorRecord { code: ErrorCode::BadRegister as u8, index: 0, detail });
        w.hosts[A].model.bar_write(0, offset, &vec![0xff; length]);
        w.settle();
        let log = pop_log(&mut w, A).unwrap();
        assert_eq!(log.detail, detail | 1 << 31);
    }
    w.hosts[A].model.bar_write(0, 0, &[0; 64]);
    assert_eq!(w.reg_read(A, CONTROL::OFFSET), 1);
    assert_eq!(w.hosts[A].count(Counter::BadRegister), 21);
    pop_log(&mut w, A);
    assert_eq!(pop_log(&mut w, A), None);
    for _ in 0..20 {
        w.bar_read(A, 0, 0x7c, 4);
    }
    assert_eq!(w.reg_read(A, ERROR_COUNT::OFFSET), 16 | 4 << 16);
    for _ in 0..16 {
        assert!(pop_log(&mut w, A).is_some());
    }
    assert_eq!(pop_log(&mut w, A), None);
    assert_eq!(w.reg_read(A, ERROR_COUNT::OFFSET), 4 << 16);
}

#[test]
fn the_other_bars() {
    let mut w = Testbench::bare(&Default::default());
    assert_eq!(w.bar_read(A, 2, 0, 8), 0);
    assert_eq!(w.hosts[A].count(Counter::BadTlp), 0);
    assert_eq!(w.bar_read(A, 4, 8, 8), 0);
    w.hosts[A].model.bar_write(4, 0, &[1; 20]);
    w.settle();
    assert_eq!(w.hosts[A].count(Counter::BadTlp), 2);
    assert_eq!(pop_log(&mut w, A).unwrap().code, ErrorCode::BadTlp as u8);
    assert_eq!(pop_log(&mut w, A).unwrap().detail, 0x6000_0005);
    // Two bytes of two dwords.
    w.hosts[A].model.bar_write(5, 3, &[1; 2]);
    w.settle();
    assert_eq!(pop_log(&mut w, A).unwrap().detail, 0x6000_0002);
}

#[test]
fn counters_and_the_msix_table_read_back() {
    let mut w = Testbench::bare(&Default::default());
    let admin = COUNTER_OFFSET + 4 * Counter::AdminCommands as u32;
    assert_eq!(w.reg_read(A, admin), 4);
    w.hosts[A].reg_write(admin, 0);
    assert_eq!(w.reg_read(A, admin), 4);
    assert_eq!(w.reg_read(A, COUNTER_OFFSET + 4 * 63), 0);
    let last = msix_entry(31);
    assert_eq!([0, 4, 8, 12].map(|at| w.reg_read(A, last + at)), [0, 0, 0, 1]);
    w.hosts[A].reg_write(last + MSIX_CONTROL, 0);
    w.hosts[A].reg_write(last + 8, 0xffff_fffe);
    assert_eq!(w.reg_read(A, last + MSIX_CONTROL), 0);
    assert_eq!(w.reg_read(A, last + 8), 0xffff_fffe);
    assert_eq!(w.hosts[A].count(Counter::BadRegister), 0);
}

#[test]
fn a_soft_reset_forgets_everything() {
    let mut w = Testbench::pair(Reliability::Delivery);
    w.hosts[B].post(VIS[B], Recv, 0, &[(0x2000, 64)]);
    w.hosts[A].put(0x2000, &[1; 4096]);
    for i in 0..6 {
        w.hosts[A].post(VIS[A], Send, 64 * i, &[(0x2000, 4096)]);
    }
    w.run(300);
    w.hosts[A].reg_write(CONTROL::OFFSET, 3);
    w.run(2);
    assert_eq!(w.reg_read(A, STATUS::OFFSET), 0);
    assert_eq!(w.reg_read(A, ADMIN_HEAD::OFFSET), 0);
    w.until("ready", |w| !w.hosts[A].model.busy());
    let fresh = crate::Model::new().snapshot();
    let snapshot = w.hosts[A].model.snapshot();
    assert_eq!((&snapshot.vis, fresh.vis.len()), (&fresh.vis, VI_COUNT));
    assert_eq!((&snapshot.peers, fresh.peers.len()), (&fresh.peers, PEER_COUNT));
    assert!(snapshot.counters.iter().all(|&c| c == 0));
    assert!(snapshot.events.iter().all(Option::is_none));
    assert_eq!(w.reg_read(A, ACK_DELAY::OFFSET), ACK_DELAY::RESET.0);
    assert_eq!(w.reg_read(A, NODE::OFFSET), 0);
    assert_eq!(w.reg_read(A, msix_entry(0)), 0);
    assert_eq!(w.reg_read(A, msix_entry(0) + MSIX_CONTROL), 1);
    // The frame that was cut is no more than a bad frame to the other side.
    w.settle();
    assert_eq!(w.hosts[B].count(Counter::DropCrc), 1);
    w.bring_up(A);
    w.open(A, 64);
}

/// A reset that is under way is not begun again, whatever is written.
#[test]
fn a_write_does_not_prolong_a_reset() {
    let cycles = [None, Some(CONTROL::OFFSET), Some(NODE::OFFSET)].map(|register| {
        let mut w = Testbench::bare(&Default::default());
        w.hosts[A].reg_write(CONTROL::OFFSET, 2);
        let from = w.now;
        w.run(100);
        if let Some(offset) = register {
            w.hosts[A].reg_write(offset, 2);
        }
        w.until("ready", |w| !w.hosts[A].model.busy());
        w.now - from
    });
    assert_eq!(cycles, [cycles[0]; 3]);
}

#[test]
fn the_cycle_counter_holds_its_high_half() {
    let mut w = Testbench::bare(&Default::default());
    w.now += 0x1_ffff_fff0 - w.now;
    let low = w.reg_read(A, CYCLES_LO::OFFSET);
    w.run(100);
    assert_eq!(w.reg_read(A, CYCLES_HI::OFFSET), 1);
    let next = w.reg_read(A, CYCLES_LO::OFFSET);
    assert_eq!(next.wrapping_sub(low), 102);
    assert_eq!(w.reg_read(A, CYCLES_HI::OFFSET), 2);
}

#[test]
fn a_disabled_device_drops_doorbells_and_frames() {
    let mut w = Testbench::pair(Reliability::Delivery);
    w.settle();
    w.run(1000);
    w.hosts[B].reg_write(CONTROL::OFFSET, 0);
    w.step();
    let before = w.hosts[B].model.snapshot();
    w.hosts[A].post(VIS[A], Send, 0, &[]);
    w.hosts[B].post(VIS[B], Recv, 0, &[]);
    w.hosts[B].doorbell(0, 0x800, 0);
    w.hosts[B].doorbell(63, TOKEN_OFFSET, 0);
    w.run(1000);
    assert_eq!(w.hosts[B].model.snapshot(), before);
    w.hosts[B].reg_write(ADMIN_TAIL::OFFSET, u32::from(before.admin_head) + 1);
    w.run(100);
    assert_eq!(w.reg_read(B, STATUS::OFFSET), 3);
    assert!(!w.hosts[B].model.busy());
    w.hosts[B].reg_write(CONTROL::OFFSET, 1);
    w.run(100);
    assert_eq!(w.reg_read(B, STATUS::OFFSET), 1);
}

#[test]
fn an_admin_entry_that_cannot_be_read_stops_the_ring() {
    let mut w = Testbench::bare(&Default::default());
    w.hosts[A].memory.holes.push(RING + 64 * 5..RING + 64 * 5 + 1);
    w.ok(A, Opcode::Nop, 0, [0; 12]);
    w.hosts[A].reg_write(ADMIN_TAIL::OFFSET, 7);
    w.run(20);
    assert_eq!(w.reg_read(A, STATUS::OFFSET), 7);
    assert_eq!(w.reg_read(A, ADMIN_HEAD::OFFSET), 5);
    assert!(!w.hosts[A].model.busy());
    assert_eq!(w.hosts[A].count(Counter::ReadErrors), 1);
    assert_eq!(pop_log(&mut w, A).unwrap().code, ErrorCode::ReadError as u8);
    let log = pop_log(&mut w, A).unwrap();
    assert_eq!((log.code, log.detail), (ErrorCode::AdminFetch as u8, 5));
    w.hosts[A].memory.holes.clear();
    w.hosts[A].reg_write(CONTROL::OFFSET, 2);
    w.step();
    w.bring_up(A);
}

#[test]
fn a_sampled_message_is_stamped_once_at_each_stage() {
    stamps(Reliability::Delivery);
    // The frames that acknowledge it are none of it.
    stamps(Reliability::Reception);
}

fn stamps(level: Reliability) {
    let mut w = Testbench::pair(level);
    for side in [A, B] {
        w.hosts[side].reg_write(SAMPLE::OFFSET, u32::from(VIS[side]) | 1 << 31);
    }
    w.hosts[B].post(VIS[B], Recv, 0, &[(0x2000, 8192)]);
    w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 5000)]);
    w.settle();
    assert_eq!(w.reg_read(A, SAMPLED::OFFSET), 0x01f);
    assert_eq!(w.reg_read(B, SAMPLED::OFFSET), 0x1e0);
    let mut stamps = Vec::new();
    for (i, side) in [A, A, A, A, A, B, B, B, B].into_iter().enumerate() {
        stamps.push(w.reg_read(side, STAMP0::OFFSET + 4 * i as u32));
    }
    assert!(stamps[..5].is_sorted() && stamps[5..].is_sorted(), "{stamps:?}");
    assert!(stamps[5] > stamps[3], "{stamps:?}");
    // Of its first frame: header, 4,096 bytes, CRC.
    assert_eq!(stamps[4] - stamps[3], 3 + 512, "{stamps:?}");
    w.hosts[B].post(VIS[B], Recv, 64, &[(0x2000, 8192)]);
    w.hosts[A].post(VIS[A], Send, 64, &[(0x2000, 50)]);
    w.settle();
    assert_eq!(w.reg_read(A, STAMP0::OFFSET), stamps[0]);
    // Of another VI there is none.
    w.hosts[A].reg_write(SAMPLE::OFFSET, u32::from(VIS[A] + 1) | 1 << 31);
    w.hosts[B].post(VIS[B], Recv, 128, &[(0x2000, 8192)]);
    w.hosts[A].post(VIS[A], Send, 128, &[(0x2000, 50)]);
    w.settle();
    assert_eq!(w.reg_read(A, SAMPLED::OFFSET), 0);
    w.hosts[A].reg_write(SAMPLE::OFFSET, 0);
    assert_eq!(w.reg_read(A, SAMPLED::OFFSET), 0);
    assert_eq!(w.reg_read(A, STAMP0::OFFSET), 0);
}
