//! Whoever takes something away waits for the handlers that are about it, in whatever thread they
//! run; and afterwards nobody looks at the program's memory.

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use host_driver::bus::Wait;
use nic_regs::desc::status::DONE;
use tests::{Buffer, DeviceKind, LONG, Node, Pair, on_every_kind};
use vipl::{ErrorHandler, INFINITE, Nic, Queue, Reliability, Vi, ViAttributes, VipReturn};

/// How long a slow handler takes, in nanoseconds.
const SLOW_NS: u64 = 40_000;

/// What became of a handler.
#[derive(Clone, Default)]
struct Slow(Arc<AtomicU32>);

impl Slow {
    const RUNS: u32 = 1;
    const ENDED: u32 = 2;

    /// What the handler does.
    fn run(&self, nic: &Nic) {
        let port = nic.port();
        self.0.store(Self::RUNS, Ordering::Release);
        let end = port.now_ns() + SLOW_NS;
        while port.now_ns() < end {
            port.relax(Wait::bounded("a slow handler", 0));
        }
        self.0.store(Self::ENDED, Ordering::Release);
    }

    fn state(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Waits until it runs, does something, and sees that it has ended.
    fn watch(&self, nic: &Nic, act: impl FnOnce()) {
        while self.state() == 0 {
            nic.port().relax(Wait::bounded("a handler", 0));
        }
        assert_eq!(self.state(), Self::RUNS);
        act();
        assert_eq!(self.state(), Self::ENDED, "it still runs");
    }
}

/// An idle VI whose completion, or that of whose queue, a slow handler gets.
fn notified(node: &Node, by_queue: bool) -> (Slow, Vi, Option<vipl::Cq>, Buffer) {
    let slow = Slow::default();
    let (own, nic) = (slow.clone(), node.nic.clone());
    let cq = by_queue.then(|| node.nic.create_cq(8).unwrap());
    let attributes = ViAttributes::new(Reliability::Delivery, node.tag);
    let vi = node.nic.create_vi(attributes, None, cq.as_ref()).unwrap();
    let recv = Buffer::new(node, 16);
    vi.post_recv(&recv.descriptor).unwrap();
    match &cq {
        Some(cq) => cq
            .notify(move |entry| {
                entry.vi.recv_done().unwrap_err();
                own.run(&nic);
            })
            .unwrap(),
        None => vi.recv_notify(move |_| own.run(&nic)).unwrap(),
    }
    (slow, vi, cq, recv)
}

fn what_is_destroyed_has_no_notification_under_way(kind: DeviceKind) {
    for (by_queue, close) in [(false, false), (false, true), (true, false), (true, true)] {
        let pair = Pair::new(kind);
        let (slow, vi, cq, _recv) = notified(&pair.a, by_queue);
        pair.simulation.slot("program").run(|| {
            // What is posted is flushed, which is what the handler gets.
            vi.disconnect().unwrap();
            slow.watch(&pair.a.nic, || {
                if close {
                    return pair.a.nic.clone().close();
                }
                vi.destroy().unwrap();
                if let Some(cq) = &cq {
                    cq.destroy().unwrap();
                }
            });
        });
    }
}

fn what_is_taken_away_has_no_error_under_way(kind: DeviceKind) {
    let acts: [fn(&Nic, &Vi); 3] = [
        |nic, _| nic.error_callback(None),
        |_, vi| {
            vi.disconnect().unwrap();
            vi.destroy().unwrap();
        },
        |nic, _| nic.clone().close(),
    ];
    for act in acts {
        let pair = Pair::new(kind);
        let (a, b) = pair.connected(Reliability::Reception);
        let slow = Slow::default();
        let (own, nic) = (slow.clone(), pair.a.nic.clone());
        let handler: ErrorHandler = Arc::new(move |_| own.run(&nic));
        pair.a.nic.error_callback(Some(handler));
        b.disconnect().unwrap();
        let [server, program] = ["service", "program"].map(|name| pair.simulation.slot(name));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                server.run(|| {
                    while slow.state() == 0 {
                        pair.a.nic.progress();
                        pair.a.nic.port().relax(Wait::bounded("an error", 0));
                    }
                });
            });
            scope.spawn(|| {
                program.run(|| slow.watch(&pair.a.nic, || act(&pair.a.nic, &a)));
            });
        });
        // It keeps the NIC.
        pair.a.nic.error_callback(None);
    }
}

/// Nor does a handler wait for itself.
fn a_handler_takes_away_what_it_is_about(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (a, b) = pair.connected(Reliability::Delivery);
    let done = Slow::default();
    let (own, nic) = (done.clone(), pair.a.nic.clone());
    pair.a.nic.error_callback(Some(Arc::new(move |error| {
        let vi = error.vi.as_ref().unwrap();
        nic.error_callback(None);
        vi.disconnect().unwrap();
        vi.destroy().unwrap();
        nic.clone().close();
        own.0.store(Slow::ENDED, Ordering::Release);
    })));
    b.disconnect().unwrap();
    pair.settle();
    assert_eq!(done.state(), Slow::ENDED);
    assert_eq!(a.recv_done().unwrap_err().code, VipReturn::InvalidParameter);
}

/// A thread in a wait is notified, and what was posted is the program's alone.
fn a_closed_nic_looks_at_nothing(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (a, _b) = pair.connected(Reliability::Delivery);
    let recvs = [(); 2].map(|()| Buffer::new(&pair.a, 16));
    recvs.iter().for_each(|recv| a.post_recv(&recv.descriptor).unwrap());
    let [waiter, program] = ["waiter", "program"].map(|name| pair.simulation.slot(name));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            waiter.run(|| {
                let waited = a.recv_wait(INFINITE).unwrap_err();
                assert_eq!(waited.code, VipReturn::InvalidParameter);
            });
        });
        scope.spawn(|| {
            program.run(|| {
                let port = pair.a.nic.port();
                let end = port.now_ns() + 100_000;
                while port.now_ns() < end {
                    port.relax(Wait::bounded("the waiter", 0));
                }
                pair.a.nic.clone().close();
                // Whatever the program has there now.
                for recv in &recvs {
                    recv.region.memory().store_u32(28, DONE);
                }
            });
        });
    });
    for queue in [Queue::Send, Queue::Recv] {
        assert_eq!(a.done(queue).unwrap_err().code, VipReturn::InvalidParameter);
        assert_eq!(a.poll(queue).unwrap_err().code, VipReturn::InvalidParameter);
    }
    assert_eq!(a.recv_wait(LONG).unwrap_err().code, VipReturn::InvalidParameter);
}

on_every_kind! {
    what_is_destroyed_has_no_notification_under_way,
    what_is_taken_away_has_no_error_under_way,
    a_handler_takes_away_what_it_is_about,
    a_closed_nic_looks_at_nothing,
}
