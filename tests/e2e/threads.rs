//! Programs of several threads: deterministic, and never silently stuck.

use std::sync::{Arc, Mutex};

use cosim::simulation::seeded::SimulationConfig;
use host_driver::bus::trace::TraceBus;
use host_driver::nic::NicConfig;
use nic_model::link::Faults;
use nic_regs::counter::Counter;
use vipl::{INFINITE, Reliability};

use tests::{Buffer, DeviceKind, LONG, Node, Pair, Setup, on_every_kind, pattern};

/// Two programs that talk; gives the cycles and the frames that it took.
fn conversation(kind: DeviceKind, seed: u64) -> (u64, u32) {
    let faults = Faults { loss: 0.02, ..Faults::default() };
    let pair = Pair::with(&Setup::with_faults(kind, seed, faults));
    let slots = [pair.simulation.slot("server"), pair.simulation.slot("client")];
    let [server, client] = slots;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _token = server.enter();
            let vi = pair.b.vi(Reliability::Reception);
            let (send, recv) = (Buffer::new(&pair.b, 3000), Buffer::new(&pair.b, 3000));
            vi.post_recv(&recv.descriptor).unwrap();
            let request = pair.b.nic.connect_wait(&pair.b.address(b"echo"), INFINITE).unwrap();
            request.accept(&vi).unwrap();
            for _ in 0..50 {
                vi.recv_wait(INFINITE).unwrap();
                send.set(&recv.data());
                vi.post_recv(&recv.descriptor).unwrap();
                vi.post_send(&send.descriptor).unwrap();
                vi.send_wait(INFINITE).unwrap();
            }
        });
        scope.spawn(|| {
            let _token = client.enter();
            let vi = pair.a.vi(Reliability::Reception);
            let (send, recv) = (Buffer::new(&pair.a, 3000), Buffer::new(&pair.a, 3000));
            let remote = pair.b.address(b"echo");
            while vi.connect_request(&pair.a.address(b""), &remote, LONG).is_err() {}
            for i in 0..50 {
                let data = pattern(i * 60, i);
                send.set(&data);
                vi.post_recv(&recv.descriptor).unwrap();
                vi.post_send(&send.descriptor).unwrap();
                vi.recv_wait(INFINITE).unwrap();
                assert!(recv.data() == data);
                vi.send_wait(INFINITE).unwrap();
            }
        });
    });
    (pair.simulation.now(), pair.a.driver.counter(Counter::FramesSent).unwrap())
}

fn the_same_seed_gives_the_same_cycles(kind: DeviceKind) {
    let runs: Vec<_> = [5, 5, 6].into_iter().map(|seed| conversation(kind, seed)).collect();
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2], "another seed, another run");
}

fn a_deadlock_is_named(kind: DeviceKind) {
    let config = SimulationConfig { deadlock_limit: 200_000, ..SimulationConfig::default() };
    let pair = Pair::with(&Setup { simulation: config, ..Setup::new(kind) });
    let (a, b) = pair.connected(Reliability::Delivery);
    let slots = [(&pair.a, a, "left"), (&pair.b, b, "right")]
        .map(|(node, vi, name)| (node, vi, pair.simulation.slot(name)));
    let ends = std::thread::scope(|scope| {
        let threads = slots.map(|(node, vi, slot)| {
            scope.spawn(move || {
                let _token = slot.enter();
                let recv = Buffer::new(node, 8);
                vi.post_recv(&recv.descriptor).unwrap();
                // Both wait for the other to begin.
                let _ = vi.recv_wait(INFINITE);
            })
        });
        threads.map(|thread| thread.join().expect_err("a panic"))
    });
    let text = |end: &Box<dyn std::any::Any + Send>| end.downcast_ref::<String>().cloned();
    let texts: Vec<_> = ends.iter().filter_map(text).collect();
    let both = |text: &String| {
        text.contains("'left' waits for a receive on VI")
            && text.contains("'right' waits for a receive on VI")
    };
    assert!(texts.iter().any(both), "{texts:?}");
}

fn a_thread_without_a_slot_is_refused(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let slot = pair.simulation.slot("only");
    let other = std::thread::scope(|scope| {
        let _token = slot.enter();
        scope.spawn(|| pair.simulation.run(1)).join()
    });
    let text = other.unwrap_err();
    assert!(text.downcast_ref::<String>().unwrap().contains("without the token"));
}

fn a_trace_names_registers_and_doorbells(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (bus, a) = (pair.buses[0].clone(), pair.a);
    drop(a);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    let sink = Box::new(move |line: &str| sink.lock().unwrap().push(line.to_owned()));
    let bus = Arc::new(TraceBus::new(bus, sink));
    let a = Node::open(bus, &NicConfig::new(0, &[1]).with_seed(1));
    let vi = a.vi(Reliability::Delivery);
    let recv = Buffer::new(&a, 8);
    vi.post_recv(&recv.descriptor).unwrap();
    let all = lines.lock().unwrap().join("\n");
    for part in [
        "read  ID = 0x51a70002 (ABI=0x2 MAGIC=0x51a7)",
        "write CONTROL = 0x00000002 (ENABLE=0x0 SOFT_RESET=0x1)",
        "MSIX[31] control",
        "doorbell page 1: Token { vi: 0",
        "queue: Recv",
    ] {
        assert!(all.contains(part), "{part} is missing in:\n{all}");
    }
}

/// Nodes on threads of their own do what they do one after the other.
fn nodes_side_by_side(kind: DeviceKind) {
    let counts = |stretch| {
        let simulation = SimulationConfig { stretch, ..SimulationConfig::default() };
        let pair = Pair::with(&Setup { simulation, ..Setup::new(kind) });
        let (a, b) = pair.connected(Reliability::Delivery);
        pair.settle();
        let buffers: Vec<_> = (0..8)
            .map(|_| {
                let (send, recv) = (Buffer::new(&pair.a, 9000), Buffer::new(&pair.b, 9000));
                b.post_recv(&recv.descriptor).unwrap();
                (send, recv)
            })
            .collect();
        pair.settle();
        buffers.iter().for_each(|(send, _)| a.post_send(&send.descriptor).unwrap());
        let start = pair.simulation.now();
        let mut seen = Vec::new();
        // Where both have met, both have come as far.
        while pair.simulation.now() < start + 4000 {
            pair.simulation.run(100);
            seen.push(
                buffers.iter().filter(|(_, recv)| recv.descriptor.status().is_done()).count(),
            );
        }
        seen
    };
    let alone = counts(1);
    assert_eq!(counts(20), alone);
    assert!(alone.last() > Some(&0), "{alone:?}");
}

on_every_kind! {
    nodes_side_by_side,
    the_same_seed_gives_the_same_cycles,
    a_deadlock_is_named,
    a_thread_without_a_slot_is_refused,
    a_trace_names_registers_and_doorbells,
}
