//! Handlers that the library calls when something is done.

use std::sync::{Arc, Mutex};

use cosim::simulation::seeded::SimulationConfig;
use nic_regs::desc::status::DESC_FLUSHED_ERROR;
use tests::{Buffer, DeviceKind, LONG, Pair, Setup, code, error_bits, on_every_kind, pattern};
use vipl::{INFINITE, Queue, Reliability, Vi, ViAttributes, VipReturn, Waiting};

/// What handlers saw, in order.
type Seen<T> = Arc<Mutex<Vec<T>>>;

fn seen<T: Clone>(list: &Seen<T>) -> Vec<T> {
    list.lock().unwrap().clone()
}

/// Lets time pass until handlers were called so often.
fn until<T>(pair: &Pair, list: &Seen<T>, count: usize) {
    for _ in 0..2000 {
        if list.lock().unwrap().len() >= count {
            return;
        }
        pair.simulation.run(500);
    }
    panic!("{} calls of {count}", list.lock().unwrap().len());
}

fn handlers_are_called_once_and_in_order(kind: DeviceKind) {
    for waiting in [Waiting::Poll, Waiting::default(), Setup::sleeping(kind).waiting] {
        let pair = Pair::with(&Setup { waiting, ..Setup::new(kind) });
        let (a, b) = pair.connected(Reliability::Delivery);
        let called: Seen<(usize, u64)> = Seen::default();
        let recvs: Vec<_> = (0..4).map(|_| Buffer::new(&pair.b, 16)).collect();
        // Requests before anything is posted, and before it is done.
        for i in 0..3 {
            let called = Arc::clone(&called);
            b.recv_notify(move |completion| {
                assert_eq!(std::thread::current().name(), Some("vipl notify"));
                called.lock().unwrap().push((i, completion.unwrap().address()));
            })
            .unwrap();
        }
        recvs.iter().for_each(|recv| b.post_recv(&recv.descriptor).unwrap());
        let send = Buffer::new(&pair.a, 16);
        for i in 0..4 {
            send.set(&pattern(16, i));
            a.post_send(&send.descriptor).unwrap();
            a.send_wait(LONG).unwrap();
        }
        until(&pair, &called, 3);
        let expected: Vec<_> = (0..3).map(|i| (i, recvs[i].descriptor.address())).collect();
        assert_eq!(seen(&called), expected);
        assert_eq!(recvs[2].data(), pattern(16, 2));
        // Nobody asked for the fourth.
        pair.settle();
        assert_eq!(b.recv_done().unwrap().address(), recvs[3].descriptor.address());
        // It may be done already, and the send queue has handlers too.
        a.post_send(&send.descriptor).unwrap();
        pair.settle();
        let sent: Seen<bool> = Seen::default();
        let list = Arc::clone(&sent);
        a.send_notify(move |completion| list.lock().unwrap().push(completion.is_ok())).unwrap();
        until(&pair, &sent, 1);
        assert_eq!(seen(&sent), [true]);
    }
}

/// Sends back whatever comes, and asks for the next.
fn echo(vi: &Vi, recv: &Arc<Buffer>, send: &Arc<Buffer>, left: usize, done: &Seen<()>) {
    let (again, next) = ((vi.clone(), Arc::clone(recv), Arc::clone(send)), Arc::clone(done));
    vi.recv_notify(move |completion| {
        let (vi, recv, send) = again;
        completion.unwrap();
        send.set(&recv.data());
        vi.post_recv(&recv.descriptor).unwrap();
        vi.post_send(&send.descriptor).unwrap();
        // Waiting in a handler is allowed.
        vi.send_wait(LONG).unwrap();
        if left > 1 {
            echo(&vi, &recv, &send, left - 1, &next);
        } else {
            next.lock().unwrap().push(());
        }
    })
    .unwrap();
}

/// A program with slots talks to handlers; gives the cycles.
fn conversation(kind: DeviceKind, seed: u64) -> u64 {
    let simulation = SimulationConfig { seed, ..SimulationConfig::default() };
    let pair = Pair::with(&Setup { simulation, ..Setup::sleeping(kind) });
    let (a, b) = pair.connected(Reliability::Reception);
    let [recv, send] = [0, 1].map(|_| Arc::new(Buffer::new(&pair.b, 100)));
    b.post_recv(&recv.descriptor).unwrap();
    let done = Seen::default();
    let rounds = kind.size(30, 8);
    let slot = pair.simulation.slot("client");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            slot.run(|| {
                echo(&b, &recv, &send, rounds, &done);
                let (mine, theirs) = (Buffer::new(&pair.a, 100), Buffer::new(&pair.a, 100));
                for i in 0..rounds {
                    mine.set(&pattern(100, i));
                    a.post_recv(&theirs.descriptor).unwrap();
                    a.post_send(&mine.descriptor).unwrap();
                    a.recv_wait(INFINITE).unwrap();
                    assert_eq!(theirs.data(), pattern(100, i));
                    a.send_wait(INFINITE).unwrap();
                }
            });
        });
    });
    until(&pair, &done, 1);
    pair.simulation.now()
}

fn handlers_keep_runs_deterministic(kind: DeviceKind) {
    let runs = [3, 3, 4].map(|seed| conversation(kind, seed));
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2], "another seed, another run");
}

fn completion_queues_call_handlers(kind: DeviceKind) {
    let pair = Pair::with(&Setup::sleeping(kind));
    let cq = pair.b.nic.create_cq(16).unwrap();
    let attributes = ViAttributes::new(Reliability::Delivery, pair.b.tag);
    let bs: Vec<_> =
        (0..3).map(|_| pair.b.nic.create_vi(attributes, None, Some(&cq)).unwrap()).collect();
    let [recvs, sends] = [&pair.b, &pair.a].map(|node| [0, 1, 2].map(|_| Buffer::new(node, 8)));
    let called: Seen<(Vi, Queue, bool)> = Seen::default();
    for _ in 0..3 {
        let called = Arc::clone(&called);
        cq.notify(move |entry| {
            let taken = entry.vi.done(entry.queue).is_ok();
            called.lock().unwrap().push((entry.vi, entry.queue, taken));
        })
        .unwrap();
    }
    let vis: Vec<_> = bs.iter().map(|b| (pair.a.vi(Reliability::Delivery), b)).collect();
    for ((a, b), recv) in vis.iter().zip(&recvs) {
        pair.connect(a, b);
        b.post_recv(&recv.descriptor).unwrap();
    }
    for i in [1, 0, 2] {
        vis[i].0.post_send(&sends[i].descriptor).unwrap();
        vis[i].0.send_wait(LONG).unwrap();
        pair.settle();
    }
    until(&pair, &called, 3);
    let expected = [1, 0, 2].map(|i| (bs[i].clone(), Queue::Recv, true));
    assert_eq!(seen(&called), expected);
    // A queue with a completion queue has no handlers of its own.
    let refused = bs[0].recv_notify(|_| panic!("refused"));
    assert_eq!(code(refused), VipReturn::InvalidParameter);
}

fn what_is_taken_away_drops_its_handlers(kind: DeviceKind) {
    let pair = Pair::with(&Setup::sleeping(kind));
    let never = Arc::new(());
    let handler = || {
        let never = Arc::clone(&never);
        move |completion| panic!("called with {completion:?}: {never:?}")
    };
    let left = || Arc::strong_count(&never) - 1;
    let (a, b) = pair.connected(Reliability::Delivery);
    // A disconnect flushes what is posted, and a handler is notified.
    let recv = Buffer::new(&pair.b, 8);
    let flushed: Seen<u32> = Seen::default();
    let list = Arc::clone(&flushed);
    b.recv_notify(move |completion| list.lock().unwrap().push(error_bits(&completion))).unwrap();
    b.post_recv(&recv.descriptor).unwrap();
    a.disconnect().unwrap();
    until(&pair, &flushed, 1);
    assert_eq!(seen(&flushed), [DESC_FLUSHED_ERROR]);
    b.disconnect().unwrap();
    // Destroyed, dropped.
    b.recv_notify(handler()).unwrap();
    b.send_notify(handler()).unwrap();
    assert_eq!(left(), 2);
    b.destroy().unwrap();
    assert_eq!(left(), 0);
    assert_eq!(code(b.recv_notify(handler())), VipReturn::InvalidParameter);
    let vi = pair.b.vi(Reliability::Delivery);
    vi.recv_notify(handler()).unwrap();
    drop(vi);
    assert_eq!(left(), 0);
    let cq = pair.b.nic.create_cq(4).unwrap();
    let other = Arc::clone(&never);
    cq.notify(move |entry| panic!("called with {entry:?}: {other:?}")).unwrap();
    cq.destroy().unwrap();
    assert_eq!(left(), 0);
    // A handler that panics harms no other.
    let (a, b) = pair.connected(Reliability::Delivery);
    let called: Seen<()> = Seen::default();
    let list = Arc::clone(&called);
    b.recv_notify(|_| panic!("a handler's own fault, printed here and nowhere else")).unwrap();
    b.recv_notify(move |_| list.lock().unwrap().push(())).unwrap();
    let (send, recvs) = (Buffer::new(&pair.a, 8), [0, 1].map(|_| Buffer::new(&pair.b, 8)));
    for recv in &recvs {
        b.post_recv(&recv.descriptor).unwrap();
        a.post_send(&send.descriptor).unwrap();
        a.send_wait(LONG).unwrap();
    }
    until(&pair, &called, 1);
    // A closed NIC.
    let vi = pair.b.vi(Reliability::Delivery);
    vi.recv_notify(handler()).unwrap();
    pair.b.nic.clone().close();
    assert_eq!(left(), 0);
    assert_eq!(code(vi.recv_notify(handler())), VipReturn::InvalidParameter);
    pair.simulation.run(10_000);
}

on_every_kind! {
    handlers_are_called_once_and_in_order,
    handlers_keep_runs_deterministic,
    completion_queues_call_handlers,
    what_is_taken_away_drops_its_handlers,
}
