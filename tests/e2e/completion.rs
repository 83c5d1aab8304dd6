//! Completion queues.

use std::collections::BTreeMap;
use std::time::Duration;

use nic_regs::counter::Counter;
use nic_regs::desc::status::DESC_FLUSHED_ERROR;
use vipl::{Cq, Queue, Reliability, Vi, ViAttributes, VipReturn};

use tests::{Buffer, DeviceKind, LONG, Node, Pair, Setup, code, error_bits, on_every_kind};

fn vi_with(node: &Node, level: Reliability, send: Option<&Cq>, recv: Option<&Cq>) -> Vi {
    node.nic.create_vi(ViAttributes::new(level, node.tag), send, recv).unwrap()
}

fn one_queue_serves_many_vis_and_both_sides(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let cq = pair.b.nic.create_cq(64).unwrap();
    let vis: Vec<_> = (0..5)
        .map(|_| {
            let level = Reliability::Reception;
            let (a, b) = (pair.a.vi(level), vi_with(&pair.b, level, Some(&cq), Some(&cq)));
            pair.connect(&a, &b);
            (a, b)
        })
        .collect();
    assert_eq!(cq.done(), Err(VipReturn::NotDone));
    let mut kept = Vec::new();
    let mut expected = BTreeMap::new();
    for round in 0..6 {
        for (i, (a, b)) in vis.iter().enumerate() {
            if round > i {
                continue;
            }
            let buffers =
                [0, 1, 2, 3].map(|n| Buffer::new(if n < 2 { &pair.a } else { &pair.b }, 100));
            let [a_send, a_recv, b_send, b_recv] = &buffers;
            a.post_recv(&a_recv.descriptor).unwrap();
            b.post_recv(&b_recv.descriptor).unwrap();
            a.post_send(&a_send.descriptor).unwrap();
            b.post_send(&b_send.descriptor).unwrap();
            for queue in [Queue::Send, Queue::Recv] {
                *expected.entry((b.number(), queue)).or_insert(0) += 1;
            }
            kept.push(buffers);
        }
    }
    let mut seen = BTreeMap::new();
    for _ in 0..expected.values().sum() {
        let entry = cq.wait(LONG).unwrap();
        // The descriptor is done when its entry is there.
        entry.vi.done(entry.queue).unwrap();
        *seen.entry((entry.vi.number(), entry.queue)).or_insert(0) += 1;
    }
    assert_eq!(seen, expected);
    assert_eq!(cq.done(), Err(VipReturn::NotDone));
    assert_eq!(code(cq.destroy()), VipReturn::ErrorResource);
    for (_, b) in &vis {
        b.disconnect().unwrap();
        b.destroy().unwrap();
    }
    cq.destroy().unwrap();
    assert_eq!(code(cq.destroy()), VipReturn::InvalidParameter);
}

fn a_small_queue_loses_nothing(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let cq = pair.b.nic.create_cq(4).unwrap();
    let level = Reliability::Delivery;
    let vis: Vec<_> = (0..12)
        .map(|_| {
            let (a, b) = (pair.a.vi(level), vi_with(&pair.b, level, None, Some(&cq)));
            pair.connect(&a, &b);
            (a, b)
        })
        .collect();
    let mut kept = Vec::new();
    for _ in 0..10 {
        for (a, b) in &vis {
            let (send, recv) = (Buffer::new(&pair.a, 8), Buffer::new(&pair.b, 8));
            b.post_recv(&recv.descriptor).unwrap();
            a.post_send(&send.descriptor).unwrap();
            kept.push((send, recv));
        }
        // Nobody looks: the ring of 4 records fills, and 12 VIs have something to tell.
        pair.settle();
    }
    assert!(pair.b.driver.counter(Counter::EventsDeferred).unwrap() > 0);
    for _ in 0..120 {
        let entry = cq.wait(LONG).unwrap();
        entry.vi.recv_done().unwrap();
    }
    assert_eq!(cq.wait(Duration::from_micros(500)), Err(VipReturn::Timeout));
}

/// One program sleeps on a full queue of four entries while others, on the same NIC and the same
/// link, go on at their pace; later it finds everything.
fn a_slow_reader_holds_up_nobody_else(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let level = Reliability::Delivery;
    let queues = [4, 64].map(|entries| pair.b.nic.create_cq(entries).unwrap());
    let vis = queues.each_ref().map(|cq| {
        let (a, b) = (pair.a.vi(level), vi_with(&pair.b, level, None, Some(cq)));
        pair.connect(&a, &b);
        (a, b)
    });
    let rounds = kind.size(200, 60);
    let mut kept = Vec::new();
    for _ in 0..rounds {
        let buffers = [&vis[0], &vis[1]].map(|(a, b)| {
            let (send, recv) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 64));
            b.post_recv(&recv.descriptor).unwrap();
            a.post_send(&send.descriptor).unwrap();
            (send, recv)
        });
        let before = pair.simulation.now();
        assert_eq!(queues[1].wait(LONG).unwrap().vi, vis[1].1);
        vis[1].1.recv_done().unwrap();
        // As fast as on an idle NIC: a wait for the slow one would have no end.
        assert!(pair.simulation.now() - before < 20_000);
        kept.push(buffers);
    }
    for _ in 0..rounds {
        assert_eq!(queues[0].wait(LONG).unwrap().vi, vis[0].1);
        vis[0].1.recv_done().unwrap();
    }
    assert_eq!(queues[0].done(), Err(VipReturn::NotDone));
    assert_eq!(pair.b.errors(), []);
}

fn flushed_descriptors_have_entries(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let cq = pair.b.nic.create_cq(4).unwrap();
    let level = Reliability::Delivery;
    let (a, b) = (pair.a.vi(level), vi_with(&pair.b, level, Some(&cq), Some(&cq)));
    let idle = Buffer::new(&pair.b, 8);
    b.post_send(&idle.descriptor).unwrap();
    assert_eq!(cq.done().map(|entry| entry.queue), Ok(Queue::Send));
    assert_eq!(error_bits(&b.send_done()), DESC_FLUSHED_ERROR);

    pair.connect(&a, &b);
    let kept: Vec<_> = (0..10)
        .map(|i| {
            let (send, recv) = (Buffer::new(&pair.a, 8), Buffer::new(&pair.b, 8));
            b.post_recv(&recv.descriptor).unwrap();
            if i < 6 {
                a.post_send(&send.descriptor).unwrap();
                // One record each, so that the ring is full and completions stay unannounced.
                pair.settle();
            }
            (send, recv)
        })
        .collect();
    b.disconnect().unwrap();
    for i in 0..10 {
        let entry = cq.done().unwrap_or_else(|e| panic!("entry {i}: {e}"));
        assert_eq!(entry.queue, Queue::Recv);
        let taken = b.recv_done();
        if i < 6 {
            taken.unwrap();
        } else {
            assert_eq!(error_bits(&taken), DESC_FLUSHED_ERROR);
        }
    }
    assert_eq!(cq.done(), Err(VipReturn::NotDone));
    drop(kept);
}

fn a_waiter_sleeps_until_its_interrupt(kind: DeviceKind) {
    let pair = Pair::with(&Setup::sleeping(kind));
    let cq = pair.b.nic.create_cq(16).unwrap();
    let level = Reliability::Delivery;
    let (a, b) = (pair.a.vi(level), vi_with(&pair.b, level, None, Some(&cq)));
    pair.connect(&a, &b);
    let (send, recv) = (Buffer::new(&pair.a, 8), Buffer::new(&pair.b, 8));
    for _ in 0..3 {
        let before = pair.simulation.interrupt_count(1);
        b.post_recv(&recv.descriptor).unwrap();
        a.post_send(&send.descriptor).unwrap();
        assert_eq!(cq.wait(LONG).unwrap().vi, b);
        assert_eq!(pair.simulation.interrupt_count(1), before + 1);
        b.recv_done().unwrap();
        a.send_wait(LONG).unwrap();
    }
}

fn bad_arguments(kind: DeviceKind) {
    let pair = Pair::new(kind);
    assert_eq!(code(pair.a.nic.create_cq(0)), VipReturn::InvalidParameter);
    assert_eq!(code(pair.a.nic.create_cq(1 << 20)), VipReturn::InvalidParameter);
    let limit = pair.a.nic.query().max_cq;
    let all: Vec<_> = (0..limit).map(|_| pair.a.nic.create_cq(4).unwrap()).collect();
    assert_eq!(code(pair.a.nic.create_cq(4)), VipReturn::ErrorResource);
    all[0].destroy().unwrap();
    pair.a.nic.create_cq(4).unwrap();
}

/// Takes the entries of one queue of a VI as they come, and its descriptors with them.
fn drain(cq: &Cq, vi: &Vi, expected: &[Buffer], next: &mut usize) {
    while let Ok(entry) = cq.done() {
        assert_eq!((&entry.vi, entry.queue), (vi, Queue::Recv));
        let descriptor = vi.recv_done().expect("an entry means that its descriptor is done");
        assert_eq!(descriptor.address(), expected[*next].descriptor.address());
        *next += 1;
    }
}

fn a_queue_is_resized_under_traffic(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let count: usize = kind.size(120, 40);
    let cq = pair.b.nic.create_cq(4).unwrap();
    let attributes = ViAttributes::new(Reliability::Delivery, pair.b.tag);
    let b = pair.b.nic.create_vi(attributes, None, Some(&cq)).unwrap();
    let a = pair.a.vi(Reliability::Delivery);
    pair.connect(&a, &b);
    let recvs: Vec<_> = (0..count).map(|_| Buffer::new(&pair.b, 8)).collect();
    recvs.iter().for_each(|recv| b.post_recv(&recv.descriptor).unwrap());
    let sends: Vec<_> = (0..count).map(|_| Buffer::new(&pair.a, 8)).collect();
    let mut next = 0;
    // Each resize falls into messages that are under way, with and without entries that wait.
    let sizes = [64, 4, 1000, 5, 300, 16];
    for (i, (part, size)) in sends.chunks(count.div_ceil(sizes.len())).zip(sizes).enumerate() {
        part.iter().for_each(|send| a.post_send(&send.descriptor).unwrap());
        pair.simulation.run(100 * i as u64);
        if i % 2 == 0 {
            drain(&cq, &b, &recvs, &mut next);
        }
        cq.resize(size).unwrap();
        drain(&cq, &b, &recvs, &mut next);
    }
    pair.settle();
    drain(&cq, &b, &recvs, &mut next);
    assert_eq!(next, count, "every completion has one entry, in order");
    assert_eq!(cq.done(), Err(VipReturn::NotDone));
    // Flushed descriptors have theirs too.
    b.post_recv(&recvs[0].descriptor).unwrap();
    b.disconnect().unwrap();
    assert_eq!(cq.done().unwrap().vi, b);
    assert_eq!(cq.done(), Err(VipReturn::NotDone));
    assert!(b.recv_done().is_err());
    assert_eq!(code(cq.resize(0)), VipReturn::InvalidParameter);
    assert_eq!(code(cq.resize(1 << 20)), VipReturn::InvalidParameter);
    // No index of a ring was taken for one of the ring behind it.
    assert_eq!(pair.b.driver.counter(Counter::DoorbellBad).unwrap(), 0);
    pair.assert_no_stray_access();
}

fn a_queue_in_use_is_not_destroyed(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (cq, other) = (pair.a.nic.create_cq(4).unwrap(), pair.b.nic.create_cq(4).unwrap());
    let attributes = ViAttributes::new(Reliability::Delivery, pair.a.tag);
    let foreign = pair.a.nic.create_vi(attributes, Some(&other), None);
    assert_eq!(code(foreign), VipReturn::InvalidParameter);
    let vi = pair.a.nic.create_vi(attributes, Some(&cq), None).unwrap();
    assert_eq!(code(cq.destroy()), VipReturn::ErrorResource);
    vi.destroy().unwrap();
    cq.destroy().unwrap();
    assert_eq!(code(cq.destroy()), VipReturn::InvalidParameter);
    assert_eq!(code(cq.resize(8)), VipReturn::InvalidParameter);
    assert_eq!(cq.done(), Err(VipReturn::InvalidParameter));
    assert_eq!(cq.wait(vipl::INFINITE), Err(VipReturn::InvalidParameter));
    let late = pair.a.nic.create_vi(attributes, None, Some(&cq));
    assert_eq!(code(late), VipReturn::InvalidParameter);
}

/// A queue that nobody has any more is the NIC's again, also if a VI had it last.
fn a_queue_goes_with_its_last_handle(kind: DeviceKind) {
    let pair = Pair::new(kind);
    for round in 0..=pair.a.nic.query().max_cq {
        let cq = pair.a.nic.create_cq(4).unwrap_or_else(|error| panic!("{round}: {error}"));
        if round % 2 == 0 {
            drop(vi_with(&pair.a, Reliability::Delivery, Some(&cq), None));
        } else {
            let vi = vi_with(&pair.a, Reliability::Delivery, Some(&cq), Some(&cq));
            drop(cq);
            vi.destroy().unwrap();
        }
    }
    pair.assert_no_stray_access();
}

on_every_kind! {
    a_queue_goes_with_its_last_handle,
    a_queue_is_resized_under_traffic,
    a_queue_in_use_is_not_destroyed,
    one_queue_serves_many_vis_and_both_sides,
    a_small_queue_loses_nothing,
    a_slow_reader_holds_up_nobody_else,
    flushed_descriptors_have_entries,
    a_waiter_sleeps_until_its_interrupt,
    bad_arguments,
}
