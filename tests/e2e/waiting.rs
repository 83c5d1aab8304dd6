//! Waits that sleep: nothing runs meanwhile, and whatever ends them wakes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use host_driver::Result;
use host_driver::bus::{Bar, Bus, Dma, Irq, Wait};
use host_driver::nic::{Nic, NicConfig};
use host_driver::sync::Signal;
use nic_regs::desc::status::DESC_FLUSHED_ERROR;
use vipl::{DmaMemory, INFINITE, Queue, Reliability, Vi, ViAttributes, VipReturn, Waiting};

use tests::{Buffer, DeviceKind, LONG, Node, Pair, Setup, code, error_bits, on_every_kind};

/// A bus that counts empty turns, which cost a processor, and sleeps, which cost none.
struct Counting {
    inner: Arc<dyn Bus>,
    /// Its interrupts lead nowhere.
    deaf: bool,
    turns: AtomicU64,
    sleeps: AtomicU64,
}

impl Counting {
    fn new(inner: Arc<dyn Bus>) -> Arc<Self> {
        Arc::new(Self { inner, deaf: false, turns: AtomicU64::new(0), sleeps: AtomicU64::new(0) })
    }

    /// Turns and sleeps so far.
    fn counts(&self) -> (u64, u64) {
        (self.turns.load(Ordering::Relaxed), self.sleeps.load(Ordering::Relaxed))
    }
}

impl Bar for Counting {
    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        self.inner.read32(bar, offset)
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) {
        self.inner.write32(bar, offset, value);
    }

    fn write64(&self, bar: u8, offset: u64, value: u64) {
        self.inner.write64(bar, offset, value);
    }
}

impl Dma for Counting {
    fn map(&self, memory: &DmaMemory) -> Result<u64> {
        self.inner.map(memory)
    }

    fn unmap(&self, bus_address: u64) {
        self.inner.unmap(bus_address);
    }
}

impl Irq for Counting {
    fn connect(&self, bar: &dyn Bar, count: u16) -> Result<()> {
        if self.deaf { Ok(()) } else { self.inner.connect(bar, count) }
    }

    fn take_interrupt(&self, vector: u16) -> bool {
        self.inner.take_interrupt(vector)
    }

    fn wait_interrupt(&self, vector: u16, bound_ns: u64, wait: Wait) -> bool {
        self.sleeps.fetch_add(1, Ordering::Relaxed);
        self.inner.wait_interrupt(vector, bound_ns, wait)
    }

    fn raise_interrupt(&self, vector: u16) {
        self.inner.raise_interrupt(vector);
    }
}

impl Bus for Counting {
    fn relax(&self, wait: Wait) {
        self.turns.fetch_add(1, Ordering::Relaxed);
        self.inner.relax(wait);
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn wait_signal(&self, signal: &Signal, seen: u64, bound_ns: u64, wait: Wait) {
        self.sleeps.fetch_add(1, Ordering::Relaxed);
        self.inner.wait_signal(signal, seen, bound_ns, wait);
    }

    fn spawn(&self, name: &str, program: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
        self.inner.spawn(name, program)
    }

    fn name(&self) -> String {
        self.inner.name()
    }
}

/// Nobody would wake who sleeps on such a card.
fn a_card_whose_interrupts_do_not_come_is_refused(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let Pair { a, buses, simulation: _simulation, .. } = pair;
    drop(a);
    let (turns, sleeps) = Default::default();
    let bus = Arc::new(Counting { inner: buses[0].clone(), deaf: true, turns, sleeps });
    let error = Nic::open(bus, &NicConfig::new(0, &[1])).unwrap_err().to_string();
    let wanted = "no interrupt came from the card of node 0 within 10000000 ns";
    assert!(error.starts_with(wanted), "{error}");
    assert!(Nic::open(buses[0].clone(), &NicConfig::new(0, &[1])).is_ok());
}

fn a_sleeper_costs_no_processor(kind: DeviceKind) {
    let setup = Setup::sleeping(kind);
    let pair = Pair::with(&setup);
    let bus = Counting::new(pair.buses[1].clone());
    let spin = Duration::from_micros(20);
    for (after, most_turns) in [(Duration::ZERO, 4), (spin, 200)] {
        let (config, waiting) = (NicConfig::new(1, &[0]), Waiting::Sleep { after });
        let node = Node::open_with(bus.clone(), &config, waiting);
        let vi = node.vi(Reliability::Delivery);
        let recv = Buffer::new(&node, 8);
        vi.post_recv(&recv.descriptor).unwrap();
        let (turns, sleeps) = bus.counts();
        let (start, bound) = (bus.now_ns(), Duration::from_millis(5));
        assert_eq!(vi.recv_wait(bound).unwrap_err().code, VipReturn::Timeout);
        let took = bus.now_ns() - start;
        assert!((5_000_000..5_100_000).contains(&took), "{took} ns");
        let (turns, sleeps) = (bus.counts().0 - turns, bus.counts().1 - sleeps);
        // Otherwise a turn would be 64 cycles: thousands of them.
        assert!(turns <= most_turns, "{turns} turns, {sleeps} sleeps");
        assert!((1..12).contains(&sleeps), "{turns} turns, {sleeps} sleeps");
        node.nic.close();
    }
}

/// One side of a message, by work queue or by completion queue.
fn a_message_wakes_who_waits_for_it(kind: DeviceKind) {
    let pair = Pair::with(&Setup::sleeping(kind));
    let cq = pair.b.nic.create_cq(16).unwrap();
    let attributes = ViAttributes::new(Reliability::Delivery, pair.b.tag);
    let last = pair.b.nic.create_vi(attributes, None, Some(&cq)).unwrap();
    let b = [pair.b.vi(Reliability::Delivery), pair.b.vi(Reliability::Delivery), last];
    let a = [0, 1, 2].map(|_| pair.a.vi(Reliability::Delivery));
    a.iter().zip(&b).for_each(|(a, b)| pair.connect(a, b));
    let recvs = [0, 1, 2].map(|_| Buffer::new(&pair.b, 8));
    let send = Buffer::new(&pair.a, 8);
    // Each round wakes another one first, so that each leads and follows.
    for round in 0..3 {
        for (vi, recv) in b.iter().zip(&recvs) {
            vi.post_recv(&recv.descriptor).unwrap();
        }
        let slots = ["one", "two", "queue", "sender"].map(|name| pair.simulation.slot(name));
        let mut slots = slots.into_iter();
        let start = pair.b.nic.port().now_ns();
        std::thread::scope(|scope| {
            let mut slot = || slots.next().unwrap();
            for vi in &b[..2] {
                let slot = slot();
                scope.spawn(move || slot.run(|| vi.recv_wait(INFINITE).map(drop).unwrap()));
            }
            let (waiter, sender) = (slot(), slot());
            let (cq, last) = (&cq, &b[2]);
            scope.spawn(move || {
                waiter.run(|| {
                    assert_eq!(&cq.wait(INFINITE).unwrap().vi, last);
                    last.recv_done().unwrap();
                });
            });
            let (pair, a, send) = (&pair, &a, &send);
            scope.spawn(move || {
                sender.run(|| {
                    for i in 0..3 {
                        // All the others are asleep by then.
                        let empty = Duration::from_micros(100);
                        let _ = pair.a.nic.connect_wait(&pair.a.address(b"none"), empty);
                        let vi = &a[(round + i) % 3];
                        vi.post_send(&send.descriptor).unwrap();
                        vi.send_wait(LONG).unwrap();
                    }
                });
            });
        });
        let took = pair.b.nic.port().now_ns() - start;
        assert!(took < 1_000_000, "woken by the messages, not by a time-out: {took} ns");
    }
}

/// Sleeps in a thread without bound, and does something after a while; gives what the sleep gave,
/// and how long that took from then.
fn wake<R: Send>(
    pair: &Pair,
    sleep: impl FnOnce() -> R + Send,
    act: impl FnOnce() + Send,
) -> (R, u64) {
    let [sleeper, actor] = ["sleeper", "actor"].map(|name| pair.simulation.slot(name));
    let acted = AtomicU64::new(0);
    let (result, end) = std::thread::scope(|scope| {
        let now = || pair.b.nic.port().now_ns();
        let sleeping = scope.spawn(move || {
            sleeper.run(|| {
                let result = sleep();
                (result, now())
            })
        });
        let acted = &acted;
        scope.spawn(move || {
            actor.run(|| {
                let empty = Duration::from_micros(200);
                let _ = pair.a.nic.connect_wait(&pair.a.address(b"none"), empty);
                acted.store(now(), Ordering::Relaxed);
                act();
            });
        });
        sleeping.join().unwrap()
    });
    (result, end.saturating_sub(acted.into_inner()))
}

fn whatever_ends_a_wait_wakes_it(kind: DeviceKind) {
    let pair = Pair::with(&Setup::sleeping(kind));
    let prompt = 1_000_000;
    let vi = |level| {
        let (a, b) = pair.connected(level);
        let recv = Buffer::new(&pair.b, 8);
        b.post_recv(&recv.descriptor).unwrap();
        (a, b, recv)
    };
    // The peer disconnects.
    let (a, b, _recv) = vi(Reliability::Delivery);
    let (ended, took) = wake(&pair, || b.recv_wait(INFINITE), || a.disconnect().unwrap());
    assert_eq!(error_bits(&ended), DESC_FLUSHED_ERROR);
    assert!(took < prompt, "{took} ns");
    // Another thread disconnects.
    let (_a, b, _recv) = vi(Reliability::Reception);
    let (ended, took) = wake(&pair, || b.recv_wait(INFINITE), || b.disconnect().unwrap());
    assert_eq!(error_bits(&ended), DESC_FLUSHED_ERROR);
    assert!(took < prompt, "{took} ns");
    // A client comes.
    let (server, client) = (pair.b.vi(Reliability::Delivery), pair.a.vi(Reliability::Delivery));
    let remote = pair.b.address(b"x");
    let ask = || {
        client.connect_request(&pair.a.address(b""), &remote, LONG).unwrap();
    };
    let serve = || pair.b.nic.connect_wait(&remote, INFINITE).unwrap().accept(&server);
    let (served, took) = wake(&pair, serve, ask);
    served.unwrap();
    assert!(took < prompt, "{took} ns");
    // A completion queue gets another ring, and then a completion.
    let cq = pair.b.nic.create_cq(4).unwrap();
    let attributes = ViAttributes::new(Reliability::Delivery, pair.b.tag);
    let b = pair.b.nic.create_vi(attributes, None, Some(&cq)).unwrap();
    let a = pair.a.vi(Reliability::Delivery);
    pair.connect(&a, &b);
    let (send, recv) = (Buffer::new(&pair.a, 8), Buffer::new(&pair.b, 8));
    b.post_recv(&recv.descriptor).unwrap();
    let act = || {
        cq.resize(100).unwrap();
        a.post_send(&send.descriptor).unwrap();
    };
    let (entry, took) = wake(&pair, || cq.wait(INFINITE), act);
    assert_eq!(entry.unwrap().queue, Queue::Recv);
    assert!(took < prompt, "{took} ns");
    // The NIC is closed.
    let nic = pair.b.nic.clone();
    let wait = || (cq.wait(INFINITE), code(nic.connect_wait(&remote, INFINITE)));
    let (ended, took) = wake(&pair, wait, || nic.clone().close());
    assert_eq!(ended, (Err(VipReturn::InvalidParameter), VipReturn::InvalidParameter));
    assert!(took < 2 * prompt, "{took} ns");
}

fn who_polls_makes_no_events(kind: DeviceKind) {
    let pair = Pair::with(&Setup { waiting: Waiting::Poll, ..Setup::new(kind) });
    let (a, b) = pair.connected(Reliability::Delivery);
    let before = pair.simulation.interrupt_count(1);
    let works = |a: &Vi, b: &Vi| pair.assert_works(a, b);
    works(&a, &b);
    assert_eq!(pair.simulation.interrupt_count(1), before);
    // The library has no queue of its own then: all are the program's.
    let limit = pair.b.nic.query().max_cq;
    let all: Vec<_> = (0..limit).map(|_| pair.b.nic.create_cq(4).unwrap()).collect();
    all.iter().for_each(|cq| cq.destroy().unwrap());
}

/// Without a queue for the library waits poll, and end all the same.
fn without_a_queue_of_its_own(kind: DeviceKind) {
    let pair = Pair::with(&Setup::sleeping(kind));
    let limit = pair.b.nic.query().max_cq;
    let _all: Vec<_> = (0..limit).map(|_| pair.b.nic.create_cq(4).unwrap()).collect();
    let (a, b) = pair.connected(Reliability::Delivery);
    pair.assert_works(&a, &b);
    assert_eq!(
        b.recv_wait(Duration::from_micros(50)).unwrap_err().code,
        VipReturn::DescriptorError
    );
    let recv = Buffer::new(&pair.b, 8);
    b.post_recv(&recv.descriptor).unwrap();
    let ended = b.recv_wait(Duration::from_micros(50));
    assert_eq!(ended.unwrap_err().code, VipReturn::Timeout);
}

on_every_kind! {
    a_card_whose_interrupts_do_not_come_is_refused,
    a_sleeper_costs_no_processor,
    a_message_wakes_who_waits_for_it,
    whatever_ends_a_wait_wakes_it,
    who_polls_makes_no_events,
    without_a_queue_of_its_own,
}
