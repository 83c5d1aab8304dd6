//! Completions that are slow, split, out of order, late, missing, aborted or poisoned. Only the RTL
//! has them: the model's reads answer at once.

use crate::fence::Cleared;
use cosim::root_complex::HostSettings;
use nic_regs::admin::Opcode;
use nic_regs::counter::Counter;
use nic_regs::csr::{PCIE, READ_TIMEOUT, STATUS};
use nic_regs::desc::status;
use nic_regs::doorbell::Queue;
use nic_regs::vi::{Reliability as Level, State};
use tests::bare::{Bare, command};
use tests::vi::{BareVi, Posted};
use tests::{Buffer, DeviceKind, LEVELS, LONG, Pair, Setup, on_rtl, pattern};

/// Messages of every kind of length, both ways, at each level, arrive whole.
fn traffic(setup: &Setup) {
    let pair = Pair::with(setup);
    for level in LEVELS {
        let (a, b) = pair.connected(level);
        for (round, length) in [0, 1, 100, 4096, 5001, 20_000].into_iter().enumerate() {
            let unreliable = level == vipl::Reliability::Unreliable;
            let length = if unreliable { length.min(8192) } else { length };
            let data = pattern(length, round);
            let buffers = [&pair.a, &pair.b].map(|node| {
                // At odd addresses, across pages.
                [0, 1].map(|way| Buffer::at(node, length, 3001 + 1021 * way + round))
            });
            for (way, (vi, send)) in [(&a, &buffers[0][0]), (&b, &buffers[1][1])].iter().enumerate()
            {
                send.set(&data);
                let recv = &buffers[1 - way][way];
                let far = if way == 0 { &b } else { &a };
                far.post_recv(&recv.descriptor).unwrap();
                vi.post_send(&send.descriptor).unwrap();
            }
            for (vi, recv) in [(&b, &buffers[1][0]), (&a, &buffers[0][1])] {
                vi.recv_wait(LONG).unwrap();
                assert!(recv.data() == data, "{level:?}, {length} bytes, {setup:?}");
                vi.send_wait(LONG).unwrap();
            }
        }
    }
    pair.assert_no_stray_access();
}

fn a_host_that_is_slow_splits_reorders_and_stalls(kind: DeviceKind) {
    let ideal = HostSettings::default();
    let hosts = [
        HostSettings { latency: 250, ..ideal.clone() },
        HostSettings { latency: 50, jitter: 400, ..ideal.clone() },
        HostSettings { split: true, ..ideal.clone() },
        HostSettings { split: true, reorder: true, jitter: 200, ..ideal.clone() },
        HostSettings { stall: 0.5, ..ideal.clone() },
        HostSettings {
            latency: 100,
            jitter: 100,
            split: true,
            reorder: true,
            stall: 0.3,
            seed: 77,
            ..ideal
        },
    ];
    for host in hosts {
        traffic(&Setup { host, ..Setup::new(kind) });
    }
}

fn a_bad_link_and_a_slow_host(kind: DeviceKind) {
    for seed in 21..=23 {
        let host = HostSettings {
            latency: 150,
            jitter: 150,
            split: true,
            reorder: true,
            stall: 0.2,
            seed,
            ..HostSettings::default()
        };
        crate::stress::run(&Setup { host, ..crate::stress::bad_link(kind, seed) });
    }
}

fn small_payload_and_read_limits(kind: DeviceKind) {
    for (n, bytes) in [(0, 128), (1, 256)] {
        let host = HostSettings {
            max_payload: bytes,
            max_read: bytes,
            split: true,
            reorder: true,
            jitter: 100,
            ..HostSettings::default()
        };
        let registers = vec![(PCIE::OFFSET, n | n << 4)];
        traffic(&Setup { host, registers, ..Setup::new(kind) });
    }
}

/// Posts a message and waits until it is done, or one end has stopped. True if it has arrived.
fn attempt(bare: &mut Bare, vis: &mut [BareVi; 2], level: Level, round: usize) -> Option<bool> {
    let data = pattern(3000, round);
    let [from, to] = [vis[0].data_offset(), vis[1].data_offset()];
    bare.host_mut(0).put(from, &data);
    let segments = [0, 1].map(|node| vis[node].segment(0, data.len()));
    let recv = vis[1].post(bare, Queue::Recv, &segments[1..]);
    bare.bench.run(200);
    let send = vis[0].post(bare, Queue::Send, &segments[..1]);
    let start = bare.bench.now();
    let done = |bare: &Bare| [send, recv].iter().all(|posted: &Posted| posted.is_done(bare));
    while !done(bare) {
        assert!(
            bare.bench.now() < start + 500_000,
            "neither done nor stopped at {}",
            bare.bench.now()
        );
        bare.bench.run(5000);
        if level == Level::Unreliable && send.errors(bare) != 0 {
            // Nobody is notified, and the receive waits for the next message.
            return Some(false);
        }
        for vi in vis.iter() {
            let state = bare.try_ok(vi.node, Opcode::ViQuery, vi.number.into(), &[])? & 0xf;
            if state != State::Connected as u32 {
                return Some(false);
            }
        }
    }
    let good = [send, recv].iter().all(|posted| posted.errors(bare) == 0);
    if good {
        assert!(bare.host(1).memory[to..to + data.len()] == data, "what arrives is whole");
    } else {
        let errors = [send, recv].map(|posted| posted.errors(bare));
        let allowed = status::TRANSPORT_ERROR | status::PARTIAL_ERROR | status::REMOTE_DESC_ERROR;
        assert!(errors.iter().all(|bits| bits & !allowed == 0), "{errors:x?}");
    }
    Some(good)
}

/// From reset to traffic on a host whose reads fail now and then; ends when something fails.
fn life(bare: &mut Bare, level: Level, delivered: &mut usize) -> Option<()> {
    bare.bring_up()?;
    bare.try_register()?;
    let mut vis = bare.try_connected(level, 9, 0)?;
    for round in 0..25 {
        if !attempt(bare, &mut vis, level, round)? {
            break;
        }
        *delivered += 1;
    }
    Some(())
}

/// Reads that fail end in a status or a state in bounded time; after a reset all is well again.
fn survives(kind: DeviceKind, host: &HostSettings, counter: Counter) {
    for seed in 1..=3 {
        survives_once(kind, &HostSettings { seed: 10 * seed, ..host.clone() }, counter);
    }
}

fn survives_once(kind: DeviceKind, host: &HostSettings, counter: Counter) {
    let mut bare = Bare::with(kind, host);
    bare.registers = vec![(READ_TIMEOUT::OFFSET, 1500)];
    let (mut delivered, mut failed) = (0, 0);
    for round in 0..12 {
        let level = [Level::Delivery, Level::Reception, Level::Unreliable][round % 3];
        let stopped = life(&mut bare, level, &mut delivered).is_none();
        // Nothing may be on its way when the tags are forgotten.
        bare.bench.run(2000 + host.late_by);
        for node in 0..2 {
            let failures = bare.counter(node, counter);
            assert!(!stopped || node == 0 || failed + failures > 0, "a ring stops for a reason");
            failed += failures;
        }
        bare.soft_reset(0);
        bare.soft_reset(1);
    }
    assert!(delivered > 20 && failed > 5, "{delivered} delivered, {failed} failed: {host:?}");
    bare.assert_no_stray_writes();
}

fn completions_that_never_come(kind: DeviceKind) {
    let host = HostSettings { missing: 0.01, late_by: 0, ..HostSettings::default() };
    survives(kind, &host, Counter::ReadTimeouts);
}

fn completions_that_are_aborted(kind: DeviceKind) {
    let host = HostSettings { abort: 0.01, late_by: 0, split: true, ..HostSettings::default() };
    survives(kind, &host, Counter::ReadErrors);
}

fn completions_that_are_poisoned(kind: DeviceKind) {
    let host = HostSettings { poison: 0.01, late_by: 0, split: true, ..HostSettings::default() };
    survives(kind, &host, Counter::ReadErrors);
}

fn completions_that_come_late_now_and_then(kind: DeviceKind) {
    let host = HostSettings { late: 0.01, late_by: 6000, ..HostSettings::default() };
    survives(kind, &host, Counter::ReadTimeouts);
}

fn completions_that_all_come_after_the_time_out(kind: DeviceKind) {
    let host = HostSettings { late: 1.0, late_by: 3000, ..HostSettings::default() };
    let mut bare = Bare::with(kind, &host);
    // So long they are in time, if slow.
    bare.registers = vec![(READ_TIMEOUT::OFFSET, 20_000)];
    bare.bring_up().expect("the ring runs");
    bare.register();
    let mut vis = bare.connected(Level::Delivery, 9, 0);
    bare.assert_delivers(&mut vis, 9000);
    for round in 0..3 {
        bare.write(0, READ_TIMEOUT::OFFSET, 500);
        let segments = [0, 1].map(|node| vis[node].segment(0, 9000));
        let recv = vis[1].post(&mut bare, Queue::Recv, &segments[1..]);
        let send = vis[0].post(&mut bare, Queue::Send, &segments[..1]);
        bare.bench.run(1000);
        bare.write(0, READ_TIMEOUT::OFFSET, 20_000);
        assert!(bare.counter(0, Counter::ReadTimeouts) > round);
        assert_eq!(bare.state(&vis[0]), State::Error as u32);
        bare.settle();
        assert_eq!((send.status(&bare), recv.status(&bare)), (0, 0), "nothing is written");
        // The late completion frees its tag and nothing else.
        assert!(
            bare.counter(0, Counter::UnexpectedCompletions)
                <= bare.counter(0, Counter::ReadTimeouts)
        );
        bare.take_log(0);
        bare.reconnect(&mut vis, 10 + round);
        bare.assert_delivers(&mut vis, 9000);
    }
    bare.assert_no_stray_writes();
}

/// Clears the region of a message in its midst. How many cycles that took; None if the admin ring
/// missed a completion.
fn fence_amid(bare: &mut Bare, node: usize, delay: u64) -> Option<u64> {
    bare.bring_up()?;
    let cleared = Cleared::amid(bare, node, delay)?;
    bare.bench.run(10_000);
    cleared.assert_left_alone(bare);
    Some(cleared.cycles)
}

/// A fence waits for a read whose completion is missing, but not for ever.
fn fences_wait_for_missing_completions(kind: DeviceKind) {
    const TIMEOUT: u32 = 1500;
    let mut waited = 0;
    for seed in 1..=3 {
        let host = HostSettings { missing: 0.04, late_by: 0, seed, ..HostSettings::default() };
        let mut bare = Bare::with(kind, &host);
        bare.registers = vec![(READ_TIMEOUT::OFFSET, TIMEOUT)];
        for round in 0..12 {
            let cycles = fence_amid(&mut bare, round % 2, 60 + 90 * round as u64);
            // Its own entry is read first, and what an engine has in flight may take a few reads.
            assert!(
                cycles.is_none_or(|cycles| cycles < 4 * u64::from(TIMEOUT)),
                "{cycles:?} cycles"
            );
            waited += u32::from(cycles > Some(u64::from(TIMEOUT) * 2 / 3));
            bare.bench.run(2_000);
            bare.soft_reset(0);
            bare.soft_reset(1);
        }
    }
    assert!(waited > 2, "{waited} fences waited for a completion");
}

/// A fence on a slow host takes what is in flight there, and no more.
fn fences_on_a_slow_host(kind: DeviceKind) {
    let slow = HostSettings {
        latency: 250,
        jitter: 400,
        split: true,
        reorder: true,
        stall: 0.3,
        ..HostSettings::default()
    };
    for round in 0..10 {
        let mut bare = Bare::with(kind, &HostSettings { seed: round, ..slow.clone() });
        let node = usize::from(round % 2 == 0);
        let cycles = fence_amid(&mut bare, node, 400 + 500 * round).expect("the ring runs");
        assert!(cycles < 6_000, "{cycles} cycles");
    }
}

fn a_reset_while_reads_are_out(kind: DeviceKind) {
    for delay in [20, 150, 400, 700] {
        let host = HostSettings { latency: 600, ..HostSettings::default() };
        let mut bare = Bare::with(kind, &host);
        bare.bring_up().expect("the ring runs");
        bare.register();
        let mut vis = bare.connected(Level::Delivery, 9, 0);
        let segments = [0, 1].map(|node| vis[node].segment(0, 60_000));
        vis[1].post(&mut bare, Queue::Recv, &segments[1..]);
        vis[0].post(&mut bare, Queue::Send, &segments[..1]);
        bare.bench.run(delay);
        bare.soft_reset(0);
        // Completions of the old life come now; the tables take longer to clear than they do.
        bare.bench.run(1000);
        bare.soft_reset(1);
        bare.bring_up().expect("the ring runs");
        bare.register();
        let mut vis = bare.connected(Level::Reception, 9, 0);
        bare.assert_delivers(&mut vis, 9000);
    }
}

/// With each life the host swallows a read of the admin ring, until no tag is left: that is reported, and
/// ends.
fn completions_that_never_come_at_all(kind: DeviceKind) {
    let host = HostSettings { missing: 1.0, ..HostSettings::default() };
    let mut bare = Bare::with(kind, &host);
    bare.registers = vec![(READ_TIMEOUT::OFFSET, 300)];
    let start = bare.bench.now();
    let stop = |bare: &mut Bare| {
        bare.soft_reset(0);
        bare.configure(0);
        assert_eq!(bare.try_admin(0, command(Opcode::PeerQuery as u32, 1, &[])), None);
        bare.read(0, STATUS::OFFSET) & STATUS::READS_FAIL.mask() != 0
    };
    for life in 1..=32 {
        assert_eq!(stop(&mut bare), life == 32, "after {life} reads");
    }
    for _ in 0..3 {
        assert!(stop(&mut bare));
        assert_eq!(bare.counter(0, Counter::ReadTimeouts), 1);
    }
    let end = start + (1 << 20) + 10_000;
    bare.bench.run(end - bare.bench.now());
    assert!(!stop(&mut bare), "the oldest tags are used again");
}

/// The check behind every test on the RTL works: limits that only the host knows are not kept.
fn broken_rules_fail_the_test(kind: DeviceKind) {
    let host = HostSettings { max_payload: 128, ..HostSettings::default() };
    let end = std::panic::catch_unwind(|| traffic(&Setup { host, ..Setup::new(kind) }));
    let text = end.expect_err("the device writes 512 bytes at once");
    let text = text.downcast_ref::<String>().expect("a text");
    assert!(text.contains("broke rules") && text.contains("multiple of 128"), "{text}");
}

on_rtl! {
    broken_rules_fail_the_test,
    a_host_that_is_slow_splits_reorders_and_stalls,
    a_bad_link_and_a_slow_host,
    small_payload_and_read_limits,
    completions_that_never_come,
    completions_that_never_come_at_all,
    completions_that_are_aborted,
    completions_that_are_poisoned,
    completions_that_come_late_now_and_then,
    completions_that_all_come_after_the_time_out,
    a_reset_while_reads_are_out,
    fences_wait_for_missing_completions,
    fences_on_a_slow_host,
}
