//! `Counters`, `ErrorLog` and `Anatomy` by themselves.
use crate::{chance, each_seed};
use cosim::verilated::blocks::{anatomy, counters, error_log};
use nic_regs::counter::Counter;
use rand::Rng;
use std::collections::VecDeque;

#[test]
fn no_pulse_is_lost() {
    each_seed(0..8, |seed, rng| {
        let mut nic = counters::Model::new();
        for pass in 0..2 {
            nic.inputs = counters::In::default();
            nic.inputs.reset = 1;
            nic.cycle();
            nic.inputs.reset = 0;
            let mut waited = 0;
            while nic.outputs.ready == 0 || waited == 0 {
                nic.inputs.pulses_a = u64::MAX;
                nic.cycle();
                waited += 1;
            }
            assert!((64..70).contains(&waited), "{pass}: {waited}");
            // The pulses of the first cycle of READY count.
            let mut sums = [1u32; 64];
            let mut reading: Option<(u8, u32)> = None;
            let most = [1, 10, 50][seed as usize % 3];
            for cycle in 0..20_000u32 {
                let mut vectors = [0u64; 3];
                for (counter, sum) in sums.iter_mut().enumerate() {
                    // Bursts at the full rate of one source: a pulse every other cycle.
                    let burst = seed == 7 && cycle % 2 == 0;
                    if burst || cycle % 2 == 0 && chance(rng, most) {
                        vectors[rng.random_range(0..3)] |= 1 << counter;
                        *sum += 1;
                    }
                    // Two or three at once, now and then.
                    if cycle % 1000 == 501 {
                        vectors = [u64::MAX; 3];
                    }
                }
                if cycle % 1000 == 501 {
                    sums.iter_mut().for_each(|sum| *sum += 3);
                }
                [nic.inputs.pulses_a, nic.inputs.pulses_b, nic.inputs.pulses_c] = vectors;
                if reading.is_none() && chance(rng, 5) {
                    let index = rng.random_range(0..64);
                    // The pulses of this cycle may come too late for this read.
                    reading = Some((index, sums[usize::from(index)]));
                }
                nic.inputs.read_valid = reading.is_some().into();
                nic.inputs.read_index = reading.map_or(0, |(index, _)| index);
                nic.cycle();
                if let Some((index, least)) = reading
                    && nic.outputs.read_done == 1
                {
                    let (value, sum) = (nic.outputs.read_data, sums[usize::from(index)]);
                    if usize::from(index) >= Counter::ALL.len() {
                        assert_eq!(value, 0);
                    } else {
                        assert!(
                            value <= sum && value + 2 * 3 >= least,
                            "{index}: {value}, {least}..={sum}"
                        );
                    }
                    reading = None;
                }
            }
            [nic.inputs.pulses_a, nic.inputs.pulses_b, nic.inputs.pulses_c] = [0; 3];
            check_exactly(&mut nic, &sums);
        }
    });
}

/// Pulses of three sources in every cycle are more than a scan of 123 cycles takes, which is 127 of a counter.
#[test]
fn a_scan_takes_no_more_than_127_pulses() {
    const SCANS: u32 = 300;
    let mut nic = counters::Model::new();
    nic.inputs.reset = 1;
    nic.cycle();
    nic.inputs.reset = 0;
    while nic.outputs.ready == 0 {
        nic.cycle();
    }
    let pulses = |nic: &mut counters::Model, of| {
        [nic.inputs.pulses_a, nic.inputs.pulses_b, nic.inputs.pulses_c] = [of; 3];
    };
    pulses(&mut nic, u64::MAX);
    (0..SCANS * 123).for_each(|_| nic.cycle());
    pulses(&mut nic, 0);
    for index in 0..Counter::ALL.len() {
        let value = read(&mut nic, index);
        let taken = (SCANS - 1) * 127..=(SCANS + 1) * 127;
        assert!(taken.contains(&value), "counter {index}: {value}");
    }
}

/// A counter.
fn read(nic: &mut counters::Model, index: usize) -> u32 {
    nic.inputs.read_valid = 1;
    nic.inputs.read_index = index as u8;
    let mut cycles = 0;
    nic.outputs.read_done = 0;
    while nic.outputs.read_done == 0 {
        nic.cycle();
        cycles += 1;
    }
    assert!(cycles <= 6);
    let value = nic.outputs.read_data;
    nic.inputs.read_valid = 0;
    nic.cycle();
    value
}

/// All counters, once the pulses have stopped.
fn check_exactly(nic: &mut counters::Model, sums: &[u32]) {
    for (index, &sum) in sums.iter().enumerate().take(Counter::ALL.len()) {
        assert_eq!(read(nic, index), sum, "counter {index}");
    }
}

#[test]
fn error_log() {
    each_seed(0..8, |seed, rng| {
        let mut nic = error_log::Model::new();
        let mut log: VecDeque<u64> = VecDeque::new();
        let (mut arrived, mut popped, mut number) = (0, 0, 0u64);
        let chances = [1, 5, 100][seed as usize % 3];
        let mut newest = [0u64; 6];
        for _ in 0..if seed % 3 == 2 { 20_000 } else { 4_000 } {
            let inputs = &mut nic.inputs;
            let mut pulse = || {
                number += 1;
                if chance(rng, chances) {
                    arrived += 1;
                    (1, number)
                } else {
                    (0, number)
                }
            };
            (inputs.in0_valid, inputs.in0_record) = pulse();
            (inputs.in1_valid, inputs.in1_record) = pulse();
            (inputs.in2_valid, inputs.in2_record) = pulse();
            (inputs.in3_valid, inputs.in3_record) = pulse();
            (inputs.in4_valid, inputs.in4_record) = pulse();
            (inputs.in5_valid, inputs.in5_record) = pulse();
            inputs.pop = chance(rng, 3).into();
            nic.cycle();
            let out = &nic.outputs;
            assert!(out.level <= 16);
            assert_eq!(out.record == 0, out.level == 0);
            if nic.inputs.pop == 1 && out.level > 0 {
                // Records of one source keep their order.
                let source = ((out.record - 1) % 6) as usize;
                assert!(out.record > newest[source]);
                newest[source] = out.record;
                popped += 1;
                log.push_back(out.record);
            }
        }
        nic.inputs = error_log::In::default();
        for _ in 0..10 {
            nic.cycle();
        }
        let sum = popped + u64::from(nic.outputs.level) + u64::from(nic.outputs.lost);
        if nic.outputs.lost == 0xffff {
            assert!(sum <= arrived && seed % 3 == 2);
        } else {
            assert_eq!(sum, arrived);
        }
        nic.inputs.reset = 1;
        nic.cycle();
        nic.cycle();
        assert_eq!((nic.outputs.level, nic.outputs.lost, nic.outputs.record), (0, 0, 0));
    });
}

#[test]
fn stamps() {
    each_seed(0..4, |_, rng| {
        let mut nic = anatomy::Model::new();
        let mut stamps = [None; 9];
        for cycle in 1..5000 {
            nic.inputs.cycle = cycle;
            nic.inputs.armed = (cycle % 700 > 20).into();
            nic.inputs.clear = (cycle % 500 == 0).into();
            nic.inputs.stages = if chance(rng, 3) {
                1 << rng.random_range(0..9) | rng.random_range(0..512)
            } else {
                0
            };
            let index = rng.random_range(0..9);
            nic.inputs.index = index;
            nic.cycle();
            let sampled = (0..9).filter(|&at| stamps[at].is_some()).map(|at| 1 << at).sum::<u16>();
            assert_eq!(nic.outputs.sampled, sampled);
            let expected = stamps[usize::from(index)].unwrap_or(0);
            for (at, stamp) in stamps.iter_mut().enumerate() {
                if nic.inputs.armed == 1 && nic.inputs.stages >> at & 1 == 1 && stamp.is_none() {
                    *stamp = Some(cycle);
                }
            }
            if nic.inputs.clear == 1 {
                stamps = [None; 9];
            }
            nic.eval();
            let _ = nic.outputs.stamp;
            let mut after = nic.outputs.clone();
            after.sampled = 0;
            assert_eq!(after.stamp, expected);
        }
    });
}
