//! Completions that do not come: for a client, for all.
use crate::dma_read::{Bench, Faults, Read, TIMEOUT, random_reads};
use crate::each_seed;
use nic_regs::counter::Counter;
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
            for id in from..from + count {
                bench.clients[id as usize % 4]
                    .todo
                    .push_back(Read { address: id << 16, length: 8 });
                bench.host.failed.insert(id);
                bench.host.expect(Counter::ReadTimeouts);
            }
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
