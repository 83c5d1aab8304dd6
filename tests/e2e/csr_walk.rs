//! BAR0 from the register table: nothing here knows a register by name that it need not.

use nic_regs::counter::{COUNTER_SLOTS, Counter, ErrorCode, ErrorRecord};
use nic_regs::csr::{
    ADMIN_TAIL, CAPS3, CONTROL, COUNTER_OFFSET, CYCLES_HI, CYCLES_LO, ERROR_COUNT, ERROR_HI,
    ERROR_LO, NODE, REGS, STATUS, msix_entry,
};
use nic_regs::limits::MSIX_VECTOR_COUNT;
use nic_regs::{Access, RegDesc};
use tests::bare::Bare;
use tests::{DeviceKind, on_every_kind};

/// Bit 31 of the detail of a bad register access: it was a write.
const WRITE: u32 = 1 << 31;

/// The bits of a register that are in a field.
fn implemented(reg: &RegDesc) -> u32 {
    reg.fields.iter().fold(0, |bits, &(_, hi, lo, _)| bits | (u32::MAX >> (31 - hi + lo)) << lo)
}

/// Registers that hold what is written and do nothing else while the device is not enabled.
fn plain() -> impl Iterator<Item = &'static RegDesc> {
    REGS.iter().filter(|reg| reg.access == Access::Rw && reg.offset != CONTROL::OFFSET)
}

/// Registers that change by themselves.
fn moves(reg: &RegDesc) -> bool {
    [CYCLES_LO::OFFSET, CYCLES_HI::OFFSET, STATUS::OFFSET].contains(&reg.offset)
}

/// The bits that say what a device has; a reset value is that of a device without.
fn features(reg: &RegDesc) -> u32 {
    if reg.offset == CAPS3::OFFSET { !CAPS3::MAX_TRANSFER.mask() } else { 0 }
}

/// All registers of node 0 are as after reset.
#[track_caller]
pub(crate) fn assert_reset_values(bare: &mut Bare) {
    for reg in REGS.iter().filter(|reg| !moves(reg)) {
        assert_eq!(bare.read(0, reg.offset) & !features(reg), reg.reset, "{}", reg.name);
    }
    assert_eq!(bare.read(0, STATUS::OFFSET), STATUS::READY.mask());
}

fn no_access_was_bad(bare: &mut Bare) {
    assert_eq!(bare.counter(0, Counter::BadRegister), 0);
    assert_eq!(bare.take_log(0), []);
}

fn registers_have_their_reset_values(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    assert_reset_values(&mut bare);
    no_access_was_bad(&mut bare);
}

fn nothing_is_taken_before_it_is_ready(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    bare.write(0, NODE::OFFSET, 9);
    assert_eq!(bare.read(0, NODE::OFFSET), 9);
    bare.write(0, CONTROL::OFFSET, CONTROL::SOFT_RESET.mask());
    bare.write(0, NODE::OFFSET, 5);
    // The table is long to clear; these come before.
    assert_eq!(bare.read(0, STATUS::OFFSET), 0);
    assert_eq!(bare.read(0, NODE::OFFSET), NODE::RESET.0);
    bare.write(0, 0x3fc, 1);
    assert_eq!(bare.read(0, STATUS::OFFSET), 0, "still not ready");
    bare.wait_ready(0);
    assert_reset_values(&mut bare);
    no_access_was_bad(&mut bare);
}

fn writable_bits_hold_what_is_written(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    let ones = (0..32).map(|bit| 1 << bit);
    let patterns: Vec<u32> =
        [u32::MAX, 0, 0x5555_5555, 0xaaaa_aaaa].into_iter().chain(ones).collect();
    for reg in plain() {
        for &pattern in &patterns {
            bare.write(0, reg.offset, pattern);
            let expected = pattern & implemented(reg);
            assert_eq!(bare.read(0, reg.offset), expected, "{} {pattern:#x}", reg.name);
        }
        bare.write(0, reg.offset, reg.reset);
    }
    for (written, read) in [(1, 1), (0xffff_fffd, 1), (0, 0)] {
        bare.write(0, CONTROL::OFFSET, written);
        assert_eq!(bare.read(0, CONTROL::OFFSET), read);
    }
    assert_reset_values(&mut bare);
    no_access_was_bad(&mut bare);
}

fn registers_do_not_alias(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    let value = |reg: &RegDesc| (reg.offset + 1).wrapping_mul(0x9e37_79b9) & implemented(reg);
    for reg in plain().filter(|reg| reg.offset != ADMIN_TAIL::OFFSET) {
        bare.write(0, reg.offset, value(reg));
    }
    for reg in REGS.iter().filter(|reg| !moves(reg)) {
        let held = plain().any(|r| r.offset == reg.offset) && reg.offset != ADMIN_TAIL::OFFSET;
        let expected = if held { value(reg) } else { reg.reset };
        assert_eq!(!features(reg) & bare.read(0, reg.offset), expected, "{}", reg.name);
    }
    bare.soft_reset(0);
    assert_reset_values(&mut bare);
}

fn read_only_registers_ignore_writes(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    for reg in REGS.iter().filter(|reg| reg.access != Access::Rw) {
        bare.write(0, reg.offset, !reg.reset);
        if !moves(reg) {
            assert_eq!(bare.read(0, reg.offset) & !features(reg), reg.reset, "{}", reg.name);
        }
    }
    assert_reset_values(&mut bare);
    no_access_was_bad(&mut bare);
}

fn the_cycle_counter_runs(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    let mut last = 0;
    for pause in [0, 10, 1000] {
        bare.bench.run(pause);
        let now = bare.read(0, CYCLES_LO::OFFSET);
        assert_eq!(bare.read(0, CYCLES_HI::OFFSET), 0);
        assert!(u64::from(now) > last + pause, "{now} after {last} and a pause of {pause}");
        last = now.into();
    }
    bare.soft_reset(0);
    let after = bare.read(0, CYCLES_LO::OFFSET);
    assert!(u64::from(after) < 100_000, "the count starts again: {after}");
}

fn counters_read_and_cannot_be_written(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    let slots = 0..u32::try_from(COUNTER_SLOTS).unwrap();
    for slot in slots.clone() {
        bare.write(0, COUNTER_OFFSET + 4 * slot, 0x1234 + slot);
        assert_eq!(bare.read(0, COUNTER_OFFSET + 4 * slot), 0, "slot {slot}");
    }
    no_access_was_bad(&mut bare);
    for n in 1..=3 {
        bare.write(0, 0x3fc, 0);
        assert_eq!(bare.counter(0, Counter::BadRegister), n);
    }
    for slot in slots.filter(|&slot| slot != Counter::BadRegister as u32) {
        assert_eq!(bare.read(0, COUNTER_OFFSET + 4 * slot), 0, "slot {slot}");
    }
}

fn the_msix_table_holds_its_vectors(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    let vectors = 0..u32::try_from(MSIX_VECTOR_COUNT).unwrap();
    let masks = [!3, u32::MAX, u32::MAX, 1];
    let value = |vector: u32, dword: u32| (vector * 4 + dword + 1).wrapping_mul(0x0765_4321);
    let all = vectors.flat_map(|vector| (0..4).map(move |dword| (vector, dword)));
    for (vector, dword) in all.clone() {
        let at = msix_entry(vector) + 4 * dword;
        assert_eq!(bare.read(0, at), u32::from(dword == 3), "vector {vector} dword {dword}");
    }
    for (vector, dword) in all.clone() {
        bare.write(0, msix_entry(vector) + 4 * dword, value(vector, dword));
    }
    for (vector, dword) in all.clone() {
        let expected = value(vector, dword) & masks[dword as usize];
        assert_eq!(bare.read(0, msix_entry(vector) + 4 * dword), expected, "{vector} {dword}");
    }
    bare.soft_reset(0);
    for (vector, dword) in all {
        let expected = u32::from(dword == 3);
        assert_eq!(bare.read(0, msix_entry(vector) + 4 * dword), expected, "{vector} {dword}");
    }
    no_access_was_bad(&mut bare);
}

/// Exactly one bad access has happened since the last call.
#[track_caller]
fn one_bad_access(bare: &mut Bare, total: &mut u32, detail: u32, what: &str) {
    *total += 1;
    assert_eq!(bare.counter(0, Counter::BadRegister), *total, "{what}");
    let code = u8::try_from(ErrorCode::BadRegister as u32).unwrap();
    assert_eq!(bare.take_log(0), [ErrorRecord { code, index: 0, detail }], "{what}");
}

fn unknown_offsets_are_refused(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    let known = |offset: u32| REGS.iter().any(|reg| reg.offset == offset);
    let gaps = (0..0x200).step_by(4).filter(|&offset| !known(offset));
    let ends = [0x3fc, 0x500, 0x504, 0x7fc, 0x800, 0xffc, 0x1200, 0x1204, 0x1ffc];
    let mut total = 0;
    for offset in gaps.chain(ends) {
        assert_eq!(bare.read(0, offset), 0);
        one_bad_access(&mut bare, &mut total, offset, &format!("read of {offset:#x}"));
        bare.write(0, offset, u32::MAX);
        one_bad_access(&mut bare, &mut total, offset | WRITE, &format!("write of {offset:#x}"));
    }
    assert_reset_values(&mut bare);
}

fn odd_sizes_and_places_are_refused(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    let mut total = 0;
    bare.write(0, NODE::OFFSET, 0x2a);
    let odd = |offset: u64| (1..=8).filter(move |&bytes| bytes != 4 || !offset.is_multiple_of(4));
    for places in [NODE::OFFSET.into(), u64::from(msix_entry(0)), COUNTER_OFFSET.into()] {
        for offset in places..places + 4 {
            let dword = u32::try_from(offset & !3).unwrap();
            for bytes in odd(offset) {
                let what = format!("{bytes} bytes at {offset:#x}");
                bare.write_raw(0, 0, offset, &vec![0xff; bytes]);
                one_bad_access(&mut bare, &mut total, dword | WRITE, &what);
                // Reads of more than two dwords are unsupported requests.
                if offset % 4 + u64::try_from(bytes).unwrap() <= 8 {
                    assert_eq!(bare.read_raw(0, 0, offset, bytes), 0, "{what}");
                    one_bad_access(&mut bare, &mut total, dword, &what);
                }
            }
        }
    }
    for bytes in [12, 16, 64] {
        bare.write_raw(0, 0, NODE::OFFSET.into(), &vec![0xff; bytes]);
        let what = format!("{bytes} bytes");
        one_bad_access(&mut bare, &mut total, NODE::OFFSET | WRITE, &what);
    }
    assert_eq!(bare.read(0, NODE::OFFSET), 0x2a);
    bare.write(0, NODE::OFFSET, NODE::RESET.0);
    assert_reset_values(&mut bare);
}

fn the_error_log_keeps_the_oldest_and_counts_the_rest(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    for i in 0..20 {
        bare.write(0, 0x200 + 4 * i, 0);
    }
    assert_eq!(bare.read(0, ERROR_COUNT::OFFSET), 16 | 4 << 16);
    let log = bare.take_log(0);
    let details: Vec<u32> = log.iter().map(|record| record.detail).collect();
    assert_eq!(details, (0..16).map(|i| (0x200 + 4 * i) | WRITE).collect::<Vec<_>>());
    let empty = [ERROR_COUNT::OFFSET, ERROR_LO::OFFSET, ERROR_HI::OFFSET];
    assert_eq!(empty.map(|offset| bare.read(0, offset)), [4 << 16, 0, 0]);
    // Popping an empty log is harmless, and it works on.
    bare.write(0, nic_regs::csr::ERROR_POP::OFFSET, 0);
    bare.write(0, 0x204, 0);
    assert_eq!(bare.take_log(0).len(), 1);
}

fn the_reserved_bar_answers_zeros(kind: DeviceKind) {
    let mut bare = Bare::new(kind);
    bare.write_raw(0, 4, 0x18, &[0xff; 4]);
    bare.write_raw(0, 4, 0, &[0xff; 64]);
    for bytes in 1..=8 {
        assert_eq!(bare.read_raw(0, 4, 0x20, bytes), 0);
    }
    assert_eq!(bare.counter(0, Counter::BadTlp), 10);
    let code = u8::try_from(ErrorCode::BadTlp as u32).unwrap();
    let log = bare.take_log(0);
    assert!(log.len() == 10 && log.iter().all(|record| record.code == code), "{log:?}");
    assert_reset_values(&mut bare);
}

on_every_kind! {
    registers_have_their_reset_values,
    nothing_is_taken_before_it_is_ready,
    writable_bits_hold_what_is_written,
    registers_do_not_alias,
    read_only_registers_ignore_writes,
    the_cycle_counter_runs,
    counters_read_and_cannot_be_written,
    the_msix_table_holds_its_vectors,
    unknown_offsets_are_refused,
    odd_sizes_and_places_are_refused,
    the_error_log_keeps_the_oldest_and_counts_the_rest,
    the_reserved_bar_answers_zeros,
}
