//! A card that falls off the bus while it is used: reads give all ones, writes and doorbells lead
//! nowhere, and nothing that was posted is ever completed by it.

use host_driver::Error as DriverError;
use nic_regs::counter::Counter;
use nic_regs::csr;
use nic_regs::desc::status::DESC_FLUSHED_ERROR;
use nic_regs::doorbell::Queue;
use tests::{Buffer, DeviceKind, LONG, Pair, Setup, driver_error, error_bits, on_every_kind};
use vipl::{ErrorCode, INFINITE, MemAttributes, Reliability, ViState, VipReturn};

/// Time between two looks at the card.
const PERIOD_NS: u64 = 100_000;

fn setup(kind: DeviceKind) -> Setup {
    // Peers miss each other soon; drivers look at their cards often.
    Setup {
        registers: vec![(csr::KEEPALIVE::OFFSET, 20_000)],
        presence_ns: PERIOD_NS,
        ..Setup::new(kind)
    }
}

fn flushed(completion: &vipl::Completion) {
    assert_eq!(error_bits(completion), DESC_FLUSHED_ERROR);
}

/// Whatever waits without end returns, in bounded time; the node beside goes on.
fn everybody_is_notified_that_the_card_is_absent(kind: DeviceKind) {
    let pair = Pair::with(&setup(kind));
    let (a, b) = pair.connected(Reliability::Reception);
    let node = &pair.a;
    let cq = node.nic.create_cq(8).unwrap();
    let with_cq = node.nic.create_vi(a.attributes(), None, Some(&cq)).unwrap();
    let partner = pair.b.vi(Reliability::Reception);
    pair.connect(&with_cq, &partner);
    let region = node.region(4096);
    let idle = node.vi(Reliability::Delivery);
    let recvs: Vec<_> = (0..3).map(|_| Buffer::new(node, 64)).collect();
    recvs[..2].iter().for_each(|recv| a.post_recv(&recv.descriptor).unwrap());
    with_cq.post_recv(&recvs[2].descriptor).unwrap();
    let kept = Buffer::new(node, 64);
    idle.post_recv(&kept.descriptor).unwrap();
    pair.settle();

    let send = Buffer::new(node, 64);
    pair.simulation.unplug(0);
    a.post_send(&send.descriptor).unwrap();
    let start = node.nic.port().now_ns();
    flushed(&a.recv_wait(INFINITE));
    let waited = node.nic.port().now_ns() - start;
    assert!(waited < 2 * PERIOD_NS, "{waited} ns");
    assert_eq!(node.errors(), [(u16::MAX, ErrorCode::Catastrophic)], "once, for the NIC");
    flushed(&a.recv_wait(INFINITE));
    flushed(&a.send_wait(INFINITE));
    flushed(&idle.recv_wait(INFINITE));
    assert_eq!(cq.wait(INFINITE).map(|entry| entry.queue), Ok(Queue::Recv));
    flushed(&with_cq.recv_done());
    assert_eq!(a.query().state, ViState::Error);

    // What is posted now is flushed at once, also after a disconnect.
    a.post_recv(&recvs[0].descriptor).unwrap();
    flushed(&a.recv_wait(INFINITE));
    a.disconnect().unwrap();
    a.post_recv(&recvs[0].descriptor).unwrap();
    flushed(&a.recv_wait(INFINITE));

    // Nothing new is to be had, and the text says why.
    let absent = "the card of node 0 is absent: register ID reads as all ones";
    let refused = |error: vipl::Error| {
        assert_eq!(error.code, VipReturn::ErrorResource);
        assert!(error.to_string().ends_with(absent), "{error}");
    };
    refused(node.nic.create_vi(a.attributes(), None, None).unwrap_err());
    refused(node.nic.create_cq(8).unwrap_err());
    let memory = vipl::DmaMemory::new(64).unwrap();
    refused(node.nic.register_mem(&memory, MemAttributes::new(node.tag)).unwrap_err());
    refused(node.nic.connect_wait(&node.address(b"x"), INFINITE).unwrap_err());
    let remote = pair.b.address(b"x");
    refused(a.connect_request(&node.address(b""), &remote, INFINITE).unwrap_err());
    let counter = node.driver.counter(Counter::ReadErrors);
    assert!(matches!(counter, Err(DriverError::Absent { .. })), "{counter:?}");

    // What there is can be released.
    drop(region);
    for vi in [&a, &with_cq, &idle] {
        vi.disconnect().unwrap();
        vi.destroy().unwrap();
    }
    cq.destroy().unwrap();

    // The other node misses its peer as if a cable had been cut.
    let recv = Buffer::new(&pair.b, 64);
    b.post_recv(&recv.descriptor).unwrap();
    flushed(&b.recv_wait(LONG));
    let mut lost = pair.b.errors();
    lost.sort_unstable_by_key(|error| error.0);
    assert_eq!(lost.len(), 2, "{lost:?}");
    assert!(lost.iter().all(|error| error.1 == ErrorCode::ConnectionLost), "{lost:?}");
}

/// A program in the middle of a call that waits for the card.
fn calls_under_way_end(kind: DeviceKind) {
    for request in [true, false] {
        let pair = Pair::with(&setup(kind));
        let [waiter, puller] = ["waiter", "puller"].map(|name| pair.simulation.slot(name));
        let node = &pair.a;
        let vi = node.vi(Reliability::Delivery);
        let recv = Buffer::new(node, 64);
        vi.post_recv(&recv.descriptor).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _token = waiter.enter();
                let error = if request {
                    // Somebody waits there and never answers.
                    let there = pair.b.address(b"silent");
                    vi.connect_request(&node.address(b""), &there, INFINITE).unwrap_err()
                } else {
                    node.nic.connect_wait(&node.address(b"here"), INFINITE).unwrap_err()
                };
                assert_eq!(error.code, VipReturn::ErrorResource, "{error}");
            });
            scope.spawn(|| {
                let _token = puller.enter();
                let port = pair.b.nic.port();
                let listener = port.listen(&pair.b.address(b"silent")).unwrap();
                let end = port.now_ns() + 50_000;
                while port.now_ns() < end {
                    port.relax(host_driver::bus::Wait::bounded("the card's end", 0));
                }
                pair.simulation.unplug(0);
                // Silent to the end: the request is taken and not answered.
                let _request = port.listen_poll(listener);
            });
        });
        assert_eq!(node.errors(), [(u16::MAX, ErrorCode::Catastrophic)]);
        flushed(&vi.recv_wait(INFINITE));
    }
}

/// An admin command finds that the card is absent, and so does the next one at once.
fn commands_end_and_the_next_one_too(kind: DeviceKind) {
    let pair = Pair::with(&setup(kind));
    let node = &pair.a;
    pair.simulation.unplug(0);
    let memory = vipl::DmaMemory::new(64).unwrap();
    for bound_ns in [2 * PERIOD_NS, 0] {
        let start = node.nic.port().now_ns();
        let error = node.nic.register_mem(&memory, MemAttributes::new(node.tag)).unwrap_err();
        let driver = error.source.as_ref().and_then(driver_error);
        assert!(matches!(driver, Some(DriverError::Absent { .. })), "{error}");
        let waited = node.nic.port().now_ns() - start;
        assert!(waited <= bound_ns, "{waited} ns");
    }
    assert_eq!(node.errors(), [(u16::MAX, ErrorCode::Catastrophic)]);
}

/// A register that holds all ones is not an absent card.
fn all_ones_may_be_a_value(kind: DeviceKind) {
    let pair = Pair::with(&setup(kind));
    pair.a.driver.set_register(csr::READ_TIMEOUT::OFFSET, u32::MAX);
    assert_eq!(pair.a.driver.register(csr::READ_TIMEOUT::OFFSET).unwrap(), u32::MAX);
}

on_every_kind! {
    everybody_is_notified_that_the_card_is_absent,
    calls_under_way_end,
    commands_end_and_the_next_one_too,
    all_ones_may_be_a_value,
}
