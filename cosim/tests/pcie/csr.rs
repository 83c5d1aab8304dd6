//! `Csr`: every register, counter and MSI-X offset, wrong accesses, READY, and the soft reset.
use crate::{chance, each_seed};
use cosim::lockstep::FEATURES;
use cosim::verilated::blocks::csr::Model;
use nic_regs::counter::{Counter, ErrorCode, ErrorRecord};
use nic_regs::csr::{self, REGS};
use nic_regs::{Access, RegDesc};
use rand::Rng;

struct Bench {
    nic: Model,
    /// MSI-X table of the neighbour.
    table: [u32; 128],
    cycles: u64,
    resets: u64,
}

impl Bench {
    /// After the device's reset, READY.
    fn new() -> Self {
        let mut bench = Self { nic: Model::new(), table: [0; 128], cycles: 0, resets: 0 };
        bench.nic.inputs.reset = 1;
        bench.cycle();
        bench.nic.inputs.reset = 0;
        bench.nic.inputs.core_ready = 1;
        bench.wait_ready();
        bench
    }

    fn cycle(&mut self) {
        self.cycles += 1;
        let nic = &mut self.nic;
        nic.cycle();
        let done = nic.outputs.msix_valid == 1
            && self.cycles.is_multiple_of(3)
            && nic.inputs.msix_done == 0;
        if done {
            let entry = &mut self.table[usize::from(nic.outputs.msix_index)];
            nic.inputs.msix_rdata = *entry;
            if nic.outputs.msix_write == 1 {
                *entry = nic.outputs.msix_wdata;
            }
        }
        nic.inputs.msix_done = done.into();
        self.resets += u64::from(nic.outputs.soft_reset);
    }

    fn access(&mut self, write: bool, bad: bool, offset: u32, data: u32) -> u32 {
        let inputs = &mut self.nic.inputs;
        inputs.registers_valid = 1;
        inputs.registers_write = write.into();
        inputs.registers_bad = bad.into();
        inputs.registers_offset = offset as u16;
        inputs.registers_wdata = data;
        for _ in 0..200 {
            self.cycle();
            if self.nic.outputs.registers_done == 1 {
                self.nic.inputs.registers_valid = 0;
                let value = self.nic.outputs.registers_rdata;
                self.cycle();
                return value;
            }
        }
        panic!("no answer");
    }

    fn read(&mut self, offset: u32) -> u32 {
        self.access(false, false, offset, 0)
    }

    fn write(&mut self, offset: u32, data: u32) {
        self.access(true, false, offset, data);
    }

    fn counter(&mut self, counter: Counter) -> u32 {
        self.read(csr::COUNTER_OFFSET + 4 * counter as u32)
    }

    fn wait_ready(&mut self) {
        for _ in 0..100 {
            if self.read(csr::STATUS::OFFSET) & 1 == 1 {
                return;
            }
        }
        panic!("never ready");
    }

    fn pop(&mut self) -> ErrorRecord {
        let bits = u64::from(self.read(csr::ERROR_LO::OFFSET))
            | u64::from(self.read(csr::ERROR_HI::OFFSET)) << 32;
        self.write(csr::ERROR_POP::OFFSET, 0);
        ErrorRecord::from_bits(bits)
    }
}

fn fields(reg: &RegDesc) -> u32 {
    reg.fields.iter().map(|&(_, hi, lo, _)| (u32::MAX >> (31 - (hi - lo))) << lo).sum()
}

/// As the contract has it, and what this device can do (1.5).
fn reset_value(reg: &RegDesc) -> u32 {
    if reg.offset == csr::CAPS3::OFFSET { FEATURES.caps3().0 } else { reg.reset }
}

/// Those that move by themselves.
fn alive(reg: &RegDesc) -> bool {
    ["STATUS", "CYCLES_LO", "CYCLES_HI"].contains(&reg.name)
}

#[test]
fn reset_values_and_fields() {
    each_seed(0..10, |_, rng| {
        let mut bench = Bench::new();
        for reg in REGS.iter().filter(|reg| !alive(reg)) {
            assert_eq!(bench.read(reg.offset), reset_value(reg), "{}", reg.name);
        }
        let mut written = Vec::new();
        for reg in REGS.iter().filter(|reg| !alive(reg)) {
            let mut data = rng.random();
            if reg.name == "CONTROL" {
                data &= !2;
            }
            bench.write(reg.offset, data);
            written.push((
                reg,
                if reg.access == Access::Rw { data & fields(reg) } else { reset_value(reg) },
            ));
        }
        for (reg, value) in &written {
            let expected = if reg.name == "CONTROL" { value & 1 } else { *value };
            assert_eq!(bench.read(reg.offset), expected, "{}", reg.name);
        }
        let value = |name: &str| written.iter().find(|(reg, _)| reg.name == name).unwrap().1;
        let out = &bench.nic.outputs;
        assert_eq!(
            out.admin_base,
            u64::from(value("ADMIN_BASE_LO")) | u64::from(value("ADMIN_BASE_HI")) << 32
        );
        assert_eq!(u32::from(out.admin_log2), value("ADMIN_SIZE"));
        assert_eq!(u32::from(out.admin_tail), value("ADMIN_TAIL"));
        assert_eq!(u32::from(out.node), value("NODE"));
        assert_eq!(u32::from(out.max_payload) | u32::from(out.max_read) << 4, value("PCIE"));
        assert_eq!(u32::from(out.requester), value("REQUESTER"));
        assert_eq!(out.read_timeout, value("READ_TIMEOUT"));
        assert_eq!(out.ack_delay, value("ACK_DELAY"));
        assert_eq!(out.retry_timeout, value("RETRY_TIMEOUT"));
        assert_eq!(u32::from(out.retry_limit), value("RETRY_LIMIT"));
        assert_eq!(out.keepalive, value("KEEPALIVE"));
        assert_eq!(
            u32::from(out.error_queue) | u32::from(out.error_queue_valid) << 31,
            value("ERROR_QUEUE")
        );
        assert_eq!(u32::from(out.sample_vi) | u32::from(out.sample_armed) << 31, value("SAMPLE"));
        assert_eq!(u32::from(out.enable), value("CONTROL") & 1);
        assert_eq!(bench.counter(Counter::BadRegister), 0);
    });
}

#[test]
fn every_offset() {
    let mut bench = Bench::new();
    let mut wrong = 0;
    for offset in (0..csr::BAR_SIZE).step_by(4).chain((0x2000..0x1_0000).step_by(4)) {
        let counter = (csr::COUNTER_OFFSET..csr::COUNTER_OFFSET + 256).contains(&offset);
        let msix = (csr::MSIX_TABLE_OFFSET..csr::MSIX_TABLE_OFFSET + 512).contains(&offset);
        let good = csr::Reg::decode(offset).is_some() || counter || msix;
        let value = bench.read(offset);
        if !good {
            wrong += 1;
            assert_eq!(value, 0);
            let code = ErrorCode::BadRegister as u8;
            assert_eq!(bench.pop(), ErrorRecord { code, index: 0, detail: offset });
        }
    }
    assert_eq!(bench.counter(Counter::BadRegister), wrong);
    // Not one whole dword, on a good register.
    bench.access(true, true, csr::NODE::OFFSET, 9);
    assert_eq!(bench.access(false, true, csr::ID::OFFSET, 0), 0);
    assert_eq!(bench.read(csr::NODE::OFFSET), 0);
    let code = ErrorCode::BadRegister as u8;
    assert_eq!(bench.pop(), ErrorRecord { code, index: 0, detail: 1 << 31 | csr::NODE::OFFSET });
    assert_eq!(bench.pop(), ErrorRecord { code, index: 0, detail: 0 });
    assert_eq!(bench.counter(Counter::BadRegister), wrong + 2);
    // Read-only and counters: silent.
    bench.write(csr::ID::OFFSET, 0);
    bench.write(csr::COUNTER_OFFSET + 4 * Counter::BadRegister as u32, 0);
    assert_eq!(bench.counter(Counter::BadRegister), wrong + 2);
    assert_eq!(bench.read(csr::ERROR_COUNT::OFFSET), 0);
}

#[test]
fn msix_table() {
    let mut bench = Bench::new();
    for index in 0..128 {
        bench.write(csr::MSIX_TABLE_OFFSET + 4 * index, 1000 + index);
    }
    for index in (0..128).rev() {
        assert_eq!(bench.read(csr::MSIX_TABLE_OFFSET + 4 * index), 1000 + index);
    }
}

#[test]
fn counters_log_stamps() {
    let mut bench = Bench::new();
    for number in 0..20 {
        let inputs = &mut bench.nic.inputs;
        (inputs.counts_a, inputs.counts_b, inputs.counts_c) = (1, 1 | 1 << 37, 1);
        (inputs.error_valid0, inputs.error_record0) = (1, 100 + number);
        bench.cycle();
        let inputs = &mut bench.nic.inputs;
        (inputs.counts_a, inputs.counts_b, inputs.counts_c, inputs.error_valid0) = (0, 0, 0, 0);
        bench.cycle();
    }
    assert_eq!(bench.counter(Counter::DoorbellTokens), 60);
    assert_eq!(bench.counter(Counter::DescriptorsFetched), 20);
    assert_eq!(bench.read(csr::ERROR_COUNT::OFFSET), 4 << 16 | 16);
    for number in 0..16 {
        assert_eq!(bench.pop().to_bits() & 0xff, 100 + number);
    }
    assert_eq!(bench.pop().to_bits(), 0);
    assert_eq!(bench.read(csr::ERROR_COUNT::OFFSET), 4 << 16);

    bench.nic.inputs.stamp_doorbell = 1;
    bench.cycle();
    assert_eq!(bench.read(csr::SAMPLED::OFFSET), 0, "not armed");
    bench.nic.inputs.stamp_doorbell = 0;
    bench.write(csr::SAMPLE::OFFSET, 1 << 31 | 5);
    let before = bench.read(csr::CYCLES_LO::OFFSET);
    bench.nic.inputs.stamp_doorbell = 1;
    bench.nic.inputs.stamp_status_written = 1;
    bench.cycle();
    bench.nic.inputs.stamp_doorbell = 0;
    bench.nic.inputs.stamp_status_written = 0;
    let after = bench.read(csr::CYCLES_LO::OFFSET);
    assert_eq!(bench.read(csr::CYCLES_HI::OFFSET), 0);
    assert_eq!(bench.read(csr::SAMPLED::OFFSET), 0x101);
    let stamp = bench.read(csr::STAMP0::OFFSET);
    assert!(before < stamp && stamp < after);
    assert_eq!(bench.read(csr::STAMP8::OFFSET), stamp);
    assert_eq!(bench.read(csr::STAMP4::OFFSET), 0);
    bench.write(csr::SAMPLE::OFFSET, 1 << 31 | 5);
    assert_eq!((bench.read(csr::SAMPLED::OFFSET), bench.read(csr::STAMP0::OFFSET)), (0, 0));
}

/// STATUS has what the other blocks say.
#[test]
fn status() {
    let mut bench = Bench::new();
    for said in 0..16u8 {
        let i = &mut bench.nic.inputs;
        (i.admin_busy, i.admin_failed) = (said & 1, said >> 1 & 1);
        (i.reads_fail, i.sending) = (said >> 2 & 1, said >> 3);
        bench.cycle();
        let ready = csr::STATUS::READY.mask();
        assert_eq!(bench.read(csr::STATUS::OFFSET), u32::from(said) << 1 | ready);
    }
}

#[test]
fn cycle_counter() {
    let mut bench = Bench::new();
    let (start, cycle) = (bench.read(csr::CYCLES_LO::OFFSET), bench.cycles);
    for _ in 0..100 {
        bench.cycle();
    }
    let (end, later) = (bench.read(csr::CYCLES_LO::OFFSET), bench.cycles);
    assert_eq!(u64::from(end - start), later - cycle);
}

/// CYCLES_HI is the high half of the moment in which CYCLES_LO was read, also when that has wrapped meanwhile.
#[test]
fn halves_of_the_cycle_counter() {
    let mut bench = Bench::new();
    let mut before = 0;
    // Each bit of the high half rises and falls, the last time by its wrap.
    for step in [0, 0x5555_5555 << 32, 0x5555_5555 << 32, 0x5555_5555 << 32] {
        let now = u64::from(bench.read(csr::CYCLES_LO::OFFSET));
        bench.nic.jump(step + (1 << 32) - now - 40);
        for _ in 0..10 {
            let low = u64::from(bench.read(csr::CYCLES_LO::OFFSET));
            let now = u64::from(bench.read(csr::CYCLES_HI::OFFSET)) << 32 | low;
            let passed = now.wrapping_sub(before);
            assert!(0 < passed && passed <= step + (1 << 33), "{now:#x} behind {before:#x}");
            before = now;
        }
    }
}

/// Everything at its reset value but STATUS, and writes dropped.
fn check_not_ready(bench: &mut Bench) {
    for reg in REGS {
        bench.write(reg.offset, u32::MAX);
    }
    bench.write(0x3fc, 1);
    bench.write(csr::MSIX_TABLE_OFFSET, 77);
    for reg in REGS {
        assert_eq!(bench.read(reg.offset), reset_value(reg), "{}", reg.name);
    }
    assert_eq!(bench.counter(Counter::DoorbellTokens), 0);
    assert_eq!(bench.read(csr::MSIX_TABLE_OFFSET), 0);
    assert_eq!(bench.read(csr::MSIX_TABLE_OFFSET + csr::MSIX_CONTROL), 1);
}

#[test]
fn not_ready() {
    let mut bench = Bench { nic: Model::new(), table: [5; 128], cycles: 0, resets: 0 };
    bench.nic.inputs.reset = 1;
    bench.cycle();
    bench.nic.inputs.reset = 0;
    bench.nic.inputs.counts_a = u64::MAX;
    bench.nic.inputs.error_valid3 = 1;
    check_not_ready(&mut bench);
    bench.nic.inputs.counts_a = 0;
    bench.nic.inputs.error_valid3 = 0;
    bench.nic.inputs.core_ready = 1;
    bench.wait_ready();
    assert_eq!(bench.table, [5; 128]);
    assert_eq!(bench.counter(Counter::BadRegister), 0);
    assert_eq!(bench.read(csr::ERROR_COUNT::OFFSET), 0);
}

#[test]
fn soft_reset() {
    each_seed(0..4, |seed, rng| {
        let mut bench = Bench::new();
        for reg in REGS.iter().filter(|reg| reg.access == Access::Rw && reg.name != "CONTROL") {
            bench.write(reg.offset, u32::MAX);
        }
        bench.write(csr::CONTROL::OFFSET, 1);
        bench.nic.inputs.counts_a = 1;
        bench.nic.inputs.error_valid0 = 1;
        bench.nic.inputs.error_record0 = 7;
        bench.nic.inputs.stamp_data = 1;
        bench.cycle();
        bench.nic.inputs.counts_a = 0;
        bench.nic.inputs.error_valid0 = 0;
        bench.nic.inputs.stamp_data = 0;
        // Reset while requests of the device are under way: waits for `rq`.
        let inputs = &mut bench.nic.inputs;
        inputs.registers_valid = 1;
        inputs.registers_write = 1;
        inputs.registers_bad = 0;
        inputs.registers_offset = csr::CONTROL::OFFSET as u16;
        inputs.registers_wdata = 3;
        for _ in 0..300 {
            bench.cycle();
            assert_eq!((bench.nic.outputs.registers_done, bench.nic.outputs.soft_reset), (0, 0));
        }
        assert_eq!(bench.nic.outputs.quiesce, 1);
        bench.nic.inputs.rq_idle = 1;
        let mut wait = 0;
        while bench.nic.outputs.registers_done == 0 {
            bench.cycle();
            // Blocks lose READY with the reset.
            if bench.nic.outputs.soft_reset == 1 {
                bench.nic.inputs.core_ready = 0;
            }
            wait += 1;
            assert!(wait < 100);
        }
        assert_eq!((bench.nic.outputs.soft_reset, bench.nic.outputs.quiesce), (0, 0));
        bench.nic.inputs.registers_valid = 0;
        bench.nic.inputs.rq_idle = 0;
        bench.cycle();
        assert_eq!(bench.resets, 16);
        check_not_ready(&mut bench);
        bench.nic.inputs.core_ready = 1;
        bench.wait_ready();
        for reg in REGS.iter().filter(|reg| !alive(reg)) {
            assert_eq!(bench.read(reg.offset), reset_value(reg), "{}", reg.name);
        }
        assert!(bench.read(csr::CYCLES_LO::OFFSET) < 2000);
        for &(counter, name, _) in Counter::ALL {
            assert_eq!(bench.counter(counter), 0, "{name}");
        }
        if seed == 0 {
            // A port that never comes to rest does not prevent the reset.
            let start = bench.cycles;
            bench.nic.inputs.registers_valid = 1;
            bench.nic.inputs.registers_offset = csr::CONTROL::OFFSET as u16;
            bench.nic.inputs.registers_write = 1;
            bench.nic.inputs.registers_wdata = 2;
            while bench.nic.outputs.registers_done == 0 {
                bench.cycle();
            }
            assert!((65_536..65_600).contains(&(bench.cycles - start)));
        }
        let _ = chance(rng, 1);
    });
}

#[test]
fn cost() {
    let mut bench = Bench::new();
    let mut took = |offset| {
        let start = bench.cycles;
        bench.read(offset);
        bench.cycles - start - 1
    };
    let (register, counter) = (took(csr::ID::OFFSET), took(csr::COUNTER_OFFSET));
    println!("register {register}, counter {counter}");
    assert!(register == 4 && counter <= 9);
}
