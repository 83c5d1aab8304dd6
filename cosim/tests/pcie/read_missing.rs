//! Completions that do not come: for a client, for all.
use crate::completion::completion;
use crate::dma_read::{Bench, Faults, Read, TIMEOUT, random_reads};
use crate::each_seed;
use nic_regs::counter::Counter;
use rand::Rng;
use rand::rngs::SmallRng;

/// A completion that is missing holds up its client and no other, however much that one asks for.
#[test]
fn a_missing_completion_holds_up_its_client_alone() {
    each_seed(0..4, |seed, rng| {
        let slow = seed as usize % 4;
        let mut bench = Bench::new(2);
        bench.clients[slow].todo.push_back(Read { address: 0x1_0000, length: 64 });
        while bench.host.outstanding.is_empty() {
            bench.cycle(rng, Faults::default(), 100, 100, 0);
        }
        let lost = *bench.host.outstanding.keys().next().unwrap();
        bench.host.outstanding.get_mut(&lost).unwrap()[0].not_before = u64::MAX;
        bench.host.failed.insert(1);
        bench.host.expect(Counter::ReadTimeouts);
        for client in 0..4 {
            // Engines ask for three descriptors at once, `gather` for as much as it likes.
            let (count, length) = if client == 2 { (8, 4096) } else { (3, 64) };
            for at in 0..count {
                let address = (1000 * client as u64 + at + 10) << 16;
                bench.clients[client].todo.push_back(Read { address, length });
            }
        }
        let start = bench.now;
        let others = |bench: &Bench| {
            let mut rest = bench.clients.iter().enumerate().filter(|(n, _)| *n != slow);
            rest.all(|(_, client)| client.todo.is_empty() && client.open.is_empty())
        };
        // They share the link with 19 parts of `gather`, or with all of them.
        let most = if slow == 2 { 3_000 } else { TIMEOUT - 1_000 };
        while !others(&bench) {
            assert!(bench.now - start < most, "client {slow} holds up others");
            bench.cycle(rng, Faults::default(), 100, 100, 100);
        }
        assert!(!bench.clients[slow].open.is_empty());
        while bench.clients.iter().any(|c| !c.todo.is_empty() || !c.open.is_empty()) {
            assert!(bench.now - start < 3 * TIMEOUT);
            bench.cycle(rng, Faults::default(), 100, 100, 100);
        }
        bench.check_counts();
    });
}

/// A host that swallows 32 completions: reads fail at once, which is reported; a long time later the
/// tags are used again.
#[test]
fn thirty_two_missing_completions() {
    each_seed(0..1, |_, rng| {
        let mut bench = Bench::new(2);
        bench.nic.inputs.read_timeout = 1000;
        let mut lose = |bench: &mut Bench, count: u64, from: u64| {
            (from..from + count).for_each(|id| ask_in_vain(bench, id));
            let start = bench.now;
            while bench.clients.iter().any(|c| !c.todo.is_empty() || !c.open.is_empty()) {
                assert!(bench.now - start < 3_000, "reads hang");
                bench.cycle(rng, Faults::default(), 100, 100, 0);
            }
            let took = bench.now - start;
            for _ in 0..5 {
                bench.cycle(rng, Faults::default(), 100, 0, 0);
            }
            took
        };
        lose(&mut bench, 32, 1);
        assert_eq!((bench.host.outstanding.len(), bench.nic.outputs.exhausted), (32, 1));
        let took = lose(&mut bench, 40, 100);
        assert!(took < 300, "{took} cycles for 40 reads");
        assert_eq!(bench.host.requests, 32, "nothing is asked for");
        bench.check_counts();
        // One arrives: its tag is used again.
        let outstanding = std::mem::take(&mut bench.host.outstanding);
        bench.host.outstanding.extend(outstanding.into_iter().take(1));
        for _ in 0..500 {
            bench.cycle(rng, Faults::default(), 100, 0, 100);
        }
        assert_eq!((bench.host.outstanding.len(), bench.nic.outputs.exhausted), (0, 0));
        bench.clients[3].todo = random_reads(rng, 1, 3);
        while !bench.idle() {
            bench.cycle(rng, Faults::default(), 100, 100, 100);
        }
        // The others have no end before the quarantine's.
        let one = |bench: &mut Bench, rng: &mut SmallRng| {
            bench.host.most = 0;
            bench.clients[2].todo = random_reads(rng, bench.now, 20);
            while !bench.idle() {
                bench.cycle(rng, Faults::default(), 100, 100, 100);
            }
            bench.host.most
        };
        assert_eq!(one(&mut bench, rng), 1);
        while bench.now < (1 << 20) - 50_000 {
            bench.cycle(rng, Faults::default(), 100, 0, 100);
        }
        assert_eq!(one(&mut bench, rng), 1);
        while bench.now < (1 << 20) + 10_000 {
            bench.cycle(rng, Faults::default(), 100, 0, 100);
        }
        bench.nic.inputs.read_timeout = u32::try_from(TIMEOUT).unwrap();
        assert!(one(&mut bench, rng) > 8);
        bench.check_counts();
    });
}

/// A client has a read to make that will fail.
fn ask_in_vain(bench: &mut Bench, id: u64) {
    bench.clients[id as usize % 4].todo.push_back(Read { address: id << 16, length: 8 });
    bench.host.failed.insert(id);
    bench.host.expect(Counter::ReadTimeouts);
}

/// A read leaves whose completion does not come.
fn lose(bench: &mut Bench, rng: &mut SmallRng, id: u64) {
    ask_in_vain(bench, id);
    let lost = bench.host.outstanding.len();
    let start = bench.now;
    while bench.host.outstanding.len() == lost {
        assert!(bench.now - start < 300, "a read does not leave");
        bench.cycle(rng, Faults::default(), 100, 100, 0);
    }
    for parts in bench.host.outstanding.values_mut() {
        parts[0].not_before = u64::MAX;
    }
}

fn is_waiting(bench: &Bench) -> bool {
    bench.clients.iter().any(|client| !client.open.is_empty())
}

/// READ_TIMEOUT over its whole width, and the clock that wraps: a read fails then and not before, and its
/// tag is used again after 256 times that, or never.
#[test]
fn a_time_out_and_the_quarantine_after_it_are_seen_at_every_age() {
    // Cycles that the scanner, an answer and the runs between two looks may take.
    const LATE: u64 = 600;
    each_seed(0..1, |_, rng| {
        for read_timeout in
            [1_000, 4_095, 0x40_0000, 0x7f_ffff, 0x80_0000, 0xff_f000, 0xff_ffff, 0x8000_0000, !0]
        {
            let mut bench = Bench::new(2);
            bench.nic.inputs.read_timeout = read_timeout;
            bench.jump(!0 - rng.random_range(0..1_000));
            // Longer ones count as half of the range of the clock.
            let time_out = u64::from(read_timeout).min(1 << 31);
            let run = |bench: &mut Bench, rng: &mut SmallRng| {
                for _ in 0..LATE / 3 {
                    bench.cycle(rng, Faults::default(), 100, 0, 0);
                }
            };
            for id in 1..=32 {
                lose(&mut bench, rng, id);
                let near = time_out.saturating_sub(2 * LATE);
                bench.jump(near);
                run(&mut bench, rng);
                assert!(is_waiting(&bench), "{read_timeout:#x}: early");
                bench.jump(time_out - near);
                run(&mut bench, rng);
                assert!(!is_waiting(&bench), "{read_timeout:#x}: late");
            }
            bench.check_counts();
            // The tags were lost one after the other; so it is the first one's quarantine that counts.
            let exhausted = |bench: &Bench| bench.nic.outputs.exhausted == 1;
            if read_timeout >= 0x80_0000 {
                for _ in 0..40 {
                    bench.jump(rng.random());
                    run(&mut bench, rng);
                    assert!(exhausted(&bench), "{read_timeout:#x}: no end of it is defined");
                }
                continue;
            }
            let age = 32 * (time_out + LATE);
            let quarantine = (time_out * 256).max(1 << 20);
            assert!(exhausted(&bench) && age < quarantine);
            bench.jump(quarantine - age - LATE);
            run(&mut bench, rng);
            assert!(exhausted(&bench), "{read_timeout:#x}: early");
            // It may be as much as 2^20 cycles longer.
            bench.jump((1 << 20) + age);
            run(&mut bench, rng);
            assert!(!exhausted(&bench), "{read_timeout:#x}: late");
        }
    });
}

/// A time-out is seen although completions end as regularly as the scanner comes by.
#[test]
fn completions_that_end_in_step_hide_no_time_out() {
    const SOON: u32 = 400;
    each_seed(0..1, |_, rng| {
        for period in [4, 8, 16, 32] {
            for phase in 0..period {
                let mut bench = Bench::new(2);
                bench.nic.inputs.read_timeout = SOON;
                lose(&mut bench, rng, 1);
                let start = bench.now;
                while is_waiting(&bench) {
                    let took = bench.now - start;
                    assert!(
                        took < 2 * u64::from(SOON),
                        "period {period}, phase {phase}: no time-out"
                    );
                    if took % period == phase {
                        // Of nobody's read.
                        let beats = completion(0x80, 0, 16, 4, false);
                        let count = beats.len();
                        assert!(count as u64 <= period);
                        let beats = beats.into_iter().enumerate();
                        bench.host.sending.extend(beats.map(|(at, beat)| (beat, at + 1 == count)));
                    }
                    bench.cycle(rng, Faults::default(), 100, 0, 100);
                }
            }
        }
    });
}

/// A completion that comes in any cycle around the time-out: the read is answered once, with its bytes or with an
/// error.
#[test]
fn a_completion_meets_the_time_out() {
    const SOON: u64 = 400;
    each_seed(0..4, |_, rng| {
        let mut outcomes = [0; 2];
        for early in 0..80 {
            let mut bench = Bench::new(2);
            bench.nic.inputs.read_timeout = SOON as u32;
            // It has any of the first tags.
            (1..=early % 4).for_each(|id| lose(&mut bench, rng, id));
            let before: Vec<u8> = bench.host.outstanding.keys().copied().collect();
            bench.clients[0].failures = Some(0);
            bench.clients[0].todo.push_back(Read { address: 0x100_0000, length: 64 });
            while bench.host.outstanding.len() == before.len() {
                bench.cycle(rng, Faults::default(), 100, 100, 0);
            }
            let start = bench.now;
            let mut outstanding = bench.host.outstanding.iter_mut();
            let (_, parts) = outstanding.find(|(tag, _)| !before.contains(tag)).unwrap();
            parts[0].not_before = start + SOON + 40 - early;
            while bench.now < start + 2 * SOON {
                bench.cycle(rng, Faults::default(), 100, 0, 100);
            }
            assert!(!is_waiting(&bench));
            let failures = bench.clients[0].failures.unwrap();
            (0..failures).for_each(|_| bench.host.expect(Counter::ReadTimeouts));
            outcomes[failures as usize] += 1;
            bench.check_counts();
        }
        assert!(outcomes.iter().all(|&of| of > 10), "{outcomes:?}");
    });
}
