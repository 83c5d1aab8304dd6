//! The VIs on the Verilated block, with neighbours that play random sends, receives, doorbells,
//! admin commands, dead peers and full event queues at once. The reference does the same operations
//! one at a time, in the order in which the block does them; every context, answer, event, counter
//! and log record is compared, and nothing that has work or an announcement to make may be lost.
#![cfg(feature = "blocks")]
#![allow(clippy::cast_possible_truncation, reason = "random numbers are cut to their field")]

#[path = "vi/bench.rs"]
mod bench;
#[path = "vi/check.rs"]
mod check;
#[path = "vi/context.rs"]
mod context;
#[path = "vi/engines.rs"]
mod engines;
#[path = "vi/reference.rs"]
mod reference;

use bench::{Bench, Settings};
use cosim::random::each_seed;
use engines::{Recv, Send};
use nic_regs::vi::State;

#[test]
fn random_neighbours() {
    let mut sum = bench::Tally::default();
    each_seed(0..100, |seed| {
        let mut bench = Bench::new(seed, Settings::random(seed));
        bench.tally = sum;
        for _ in 0..40_000 {
            bench.cycle();
        }
        bench.finish();
        sum = bench.tally;
    });
    assert!(sum.sends > 10_000 && sum.recvs > 10_000 && sum.need_next > 1_000, "{sum:?}");
    assert!(sum.events > 10_000 && sum.deferred > 500 && sum.drains > 50, "{sum:?}");
    assert!(sum.fresh > 100 && sum.pushes > 500 && sum.returns > 100, "{sum:?}");
    assert!(sum.reads > 500 && sum.answers > 500 && sum.looks > 10_000, "{sum:?}");
    assert!(sum.kills > 50 && sum.stops > 500 && sum.acks > 500 && sum.late > 5, "{sum:?}");
}

/// A bench where nothing happens by itself.
fn quiet() -> Bench {
    let mut bench = Bench::new(1, Settings { quiet: true, ..Settings::default() });
    while bench.model.outputs.ready == 0 {
        bench.cycle();
    }
    bench
}

#[test]
fn an_operation_takes_five_cycles() {
    let mut bench = quiet();
    bench.open(5);
    bench.post(5, false, 3);
    bench.settle();
    let start = bench.now;
    for _ in 0..50 {
        bench.send_call(Send { op: 0, vi: 5, ..Send::default() });
    }
    assert_eq!((bench.now - start) / 50, 5);
}

/// Frame, completer and prefetcher of the receive engine call at a time, each for its VI or all for one.
#[test]
fn the_callers_of_the_receive_engine_overlap() {
    for (vis, most) in [([5, 6, 7], 6), ([5, 5, 5], 10)] {
        let mut bench = quiet();
        for vi in vis {
            if !bench.vis.contains_key(&vi) {
                bench.open(vi);
            }
        }
        bench.settle_for(3_000);
        for _ in 0..20 {
            let start = bench.now;
            bench.recv.call = Some(Recv { op: 0, vi: vis[0], ..Recv::default() });
            bench.completing.push_back(Recv { op: 4, vi: vis[1], ..Recv::default() });
            bench.look.call = Some(vis[2]);
            while bench.recv.call.is_some() || bench.look.call.is_some() || !bench.all_complete() {
                bench.cycle();
            }
            let cycles = bench.now - start;
            assert!(cycles <= most, "{vis:?}: {cycles} cycles");
            bench.settle();
        }
    }
}

/// One VI alone: take, GET, POP, COMPLETE, and the VI is offered again.
#[test]
fn a_message_on_one_vi_takes_sixteen_cycles() {
    let mut bench = quiet();
    bench.open(5);
    for _ in 0..40 {
        bench.post(5, false, 1);
    }
    // The scan that follows the first value of ERROR_QUEUE takes some of the cycles.
    bench.settle_for(3_000);
    let start = bench.now;
    for _ in 0..39 {
        assert_eq!(bench.take(), 5);
        bench.send_call(Send { op: 0, vi: 5, ..Send::default() });
        let next = bench.successor(5, 0);
        bench.send_call(Send { op: 2, vi: 5, next, ..Send::default() });
        bench.send_call(Send { op: 4, vi: 5, ..Send::default() });
    }
    let each = (bench.now - start) / 39;
    assert!(each <= 16, "{each} cycles");
}

/// A full queue defers three VIs; they are drained in order of their numbers, with whole counts.
#[test]
fn drained_in_order_of_numbers() {
    let mut bench = quiet();
    for (vi, completions) in [(900, 2), (3, 1), (40, 3)] {
        bench.open(vi);
        bench.settings.rooms = [0; 4];
        for _ in 0..completions {
            bench.post(vi, true, 1);
            bench.settle();
            bench.recv_call(Recv { op: 2, vi, ..Recv::default() });
            bench.recv_call(Recv { op: 4, vi, ..Recv::default() });
            bench.settle();
        }
    }
    assert_eq!(bench.tally.deferred, 6);
    bench.reported.clear();
    bench.settings.rooms = [2; 4];
    let queue = bench.vis[&3].queues[1].event_queue;
    assert_eq!(bench.vis[&900].queues[1].event_queue, queue);
    bench.request_drain(queue);
    bench.settle_for(8_000);
    assert_eq!(bench.reported, [(2, 3, 1), (2, 40, 3)], "space for two");
    bench.settings.rooms = [2; 4];
    bench.request_drain(queue);
    bench.settle_for(8_000);
    assert_eq!(bench.reported[2..], [(2, 900, 2)]);
}

/// What is pending is sent from Idle too, and holds up the next connection until then.
#[test]
fn a_disconnect_leaves_its_fin_pending() {
    let mut bench = quiet();
    bench.open(7);
    bench.recv_call(Recv { op: 5, vi: 7, reason: 6, refuse: true, ..Recv::default() });
    assert_eq!(bench.take(), 7);
    bench.admin_call(3, 7);
    assert_eq!(bench.vis[&7].state, State::Idle);
    assert_eq!(bench.admin_call(2, 7), 6, "busy: a refusal is pending");
    bench.send_call(Send { op: 6, vi: 7, pending: 2, ..Send::default() });
    assert_eq!(bench.admin_call(2, 7), 0);
    bench.admin_call(3, 7);
    assert_eq!(bench.take(), 7);
    assert_eq!(bench.vis[&7].pending, 4);
    assert_eq!(bench.admin_call(1, 7), 6, "busy: a Fin is pending");
    bench.send_call(Send { op: 6, vi: 7, pending: 4, ..Send::default() });
    assert_eq!(bench.admin_call(1, 7), 0);
    bench.settle();
    assert_eq!(bench.model.outputs.send_work_valid, 0);
}

/// Writing ERROR_QUEUE tries what the old queue had no space for; without VALID it is lost.
#[test]
fn error_queue_written_again() {
    let mut bench = quiet();
    for vi in [1, 2] {
        bench.open(vi);
    }
    bench.settings.rooms = [1, 0, 0, 0];
    bench.send_call(Send { op: 5, vi: 2, reason: 3, status: 32, ..Send::default() });
    bench.settle();
    assert!(bench.vis[&2].error_pending);
    bench.error_queue = 0;
    bench.model.inputs.error_queue = 0;
    bench.settle_for(2_500);
    assert_eq!(bench.reported, [(3, 2, 3)]);
    bench.send_call(Send { op: 5, vi: 1, reason: 3, status: 32, ..Send::default() });
    bench.settle();
    assert!(bench.vis[&1].error_pending);
    bench.model.inputs.error_queue_valid = 0;
    bench.settle_for(2_500);
    bench.settings.rooms = [9; 4];
    bench.model.inputs.error_queue_valid = 1;
    bench.settle_for(2_500);
    assert_eq!(bench.reported.len(), 1, "lost");
}
