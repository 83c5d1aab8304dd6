//! Connections: made, refused, missed, lost.

use host_driver::address::NodeAddress;
use std::time::Duration;

use nic_regs::desc::status::DESC_FLUSHED_ERROR;
use vipl::{
    ConnectionRequest, ErrorCode, NetAddress, Reliability, Vi, ViAttributes, ViState, VipReturn,
};

use tests::{Buffer, DeviceKind, LONG, Pair, code, error_bits, on_every_kind, pattern};

const SHORT: Duration = Duration::from_micros(800);

/// Runs a server and a client in slots of the scheduler; gives what they give.
fn both<A: Send, B: Send>(
    pair: &Pair,
    server: impl FnOnce() -> A + Send,
    client: impl FnOnce() -> B + Send,
) -> (A, B) {
    let (first, second) = (pair.simulation.slot("server"), pair.simulation.slot("client"));
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let _token = first.enter();
            server()
        });
        let client = scope.spawn(move || {
            let _token = second.enter();
            client()
        });
        (server.join().unwrap(), client.join().unwrap())
    })
}

fn wait(pair: &Pair, service: &[u8]) -> vipl::Result<ConnectionRequest> {
    pair.b.nic.connect_wait(&pair.b.address(service), LONG)
}

fn request(pair: &Pair, vi: &Vi, service: &[u8], timeout: Duration) -> vipl::Result<()> {
    let remote = pair.b.address(service);
    vi.connect_request(&pair.a.address(b"client"), &remote, timeout).map(drop)
}

fn addresses_and_attributes_are_exchanged(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let service = [9; 64];
    let (a, b) = (pair.a.vi(Reliability::Reception), pair.b.vi(Reliability::Reception));
    both(
        &pair,
        || {
            let request = wait(&pair, &service).unwrap();
            assert_eq!(request.remote_address(), &pair.a.address(b"client"));
            assert_eq!(request.remote_attributes().max_transfer_size, 262_144);
            request.accept(&b).unwrap();
            assert_eq!(code(request.accept(&b)), VipReturn::InvalidState);
        },
        || {
            let remote = pair.b.address(&service);
            let remote_side = a.connect_request(&pair.a.address(b"client"), &remote, LONG).unwrap();
            assert_eq!(remote_side.reliability, Reliability::Reception);
            let again = a.connect_request(&pair.a.address(b""), &remote, LONG);
            assert_eq!(code(again), VipReturn::InvalidState);
        },
    );
    assert_eq!((a.state(), b.state()), (ViState::Connected, ViState::Connected));
}

fn nobody_waits(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let vi = pair.a.vi(Reliability::Delivery);
    // The other side runs, but waits elsewhere.
    let start = pair.simulation.now();
    let poll = |service: &[u8]| pair.b.nic.connect_wait(&pair.b.address(service), SHORT);
    let (waited, asked) =
        both(&pair, || code(poll(b"here")), || code(request(&pair, &vi, b"there", LONG)));
    assert_eq!((waited, asked), (VipReturn::Timeout, VipReturn::NoMatch));
    assert!(pair.simulation.now() - start < 1_000_000, "promptly");
    assert_eq!(vi.state(), ViState::Idle);
}

fn rejected_and_dropped(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let vi = pair.a.vi(Reliability::Delivery);
    for answer in [ConnectionRequest::reject, drop] {
        let (_, asked) = both(
            &pair,
            || answer(wait(&pair, b"x").unwrap()),
            || code(request(&pair, &vi, b"x", LONG)),
        );
        assert_eq!(asked, VipReturn::Reject);
    }
    assert_eq!(vi.state(), ViState::Idle);
}

fn mismatched_attributes_leave_the_request_standing(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let a = pair.a.vi(Reliability::Delivery);
    let good = ViAttributes::new(Reliability::Delivery, pair.b.tag);
    let create = |attributes| pair.b.nic.create_vi(attributes, None, None).unwrap();
    let level = create(ViAttributes { reliability: Reliability::Unreliable, ..good });
    let size = create(ViAttributes { max_transfer_size: 4096, ..good });
    let qos = create(ViAttributes { qos: 1, ..good });
    let b = create(good);
    both(
        &pair,
        || {
            let request = wait(&pair, b"x").unwrap();
            assert_eq!(code(request.accept(&level)), VipReturn::InvalidReliabilityLevel);
            assert_eq!(code(request.accept(&size)), VipReturn::InvalidMtu);
            assert_eq!(code(request.accept(&qos)), VipReturn::InvalidQos);
            request.accept(&b).unwrap();
        },
        || request(&pair, &a, b"x", LONG).unwrap(),
    );
    for vi in [&level, &size, &qos] {
        assert_eq!(vi.state(), ViState::Idle);
    }
}

fn a_silent_server_and_a_late_accept(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (a, b) = (pair.a.vi(Reliability::Delivery), pair.b.vi(Reliability::Delivery));
    let recv = Buffer::new(&pair.b, 100);
    b.post_recv(&recv.descriptor).unwrap();
    let (late, asked) = both(
        &pair,
        || {
            let request = wait(&pair, b"x").unwrap();
            let _ = pair.b.nic.connect_wait(&pair.b.address(b"y"), Duration::from_millis(2));
            code(request.accept(&b))
        },
        || code(request(&pair, &a, b"x", SHORT)),
    );
    assert_eq!((late, asked), (VipReturn::Timeout, VipReturn::Timeout));
    assert_eq!((a.state(), b.state()), (ViState::Idle, ViState::Idle));
    // What was posted before is still good for the next connection.
    pair.connect(&a, &b);
    let send = Buffer::new(&pair.a, 100);
    send.set(&pattern(100, 1));
    a.post_send(&send.descriptor).unwrap();
    b.recv_wait(LONG).unwrap();
    assert_eq!(recv.data(), pattern(100, 1));
}

fn addresses_that_lead_nowhere(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let vi = pair.a.vi(Reliability::Delivery);
    let local = pair.a.address(b"");
    let ask = |remote: &NetAddress, timeout| code(vi.connect_request(&local, remote, timeout));
    let foreign = NetAddress::new(&[10, 0, 0, 1], b"x");
    assert_eq!(ask(&foreign, LONG), VipReturn::NotReachable);
    assert_eq!(ask(&NetAddress::of_node(200, b"x"), LONG), VipReturn::NotReachable);
    assert_eq!(ask(&NetAddress::of_node(1, &[0; 65]), LONG), VipReturn::InvalidParameter);
    assert_eq!(ask(&pair.b.address(b"x"), Duration::ZERO), VipReturn::InvalidParameter);
    // A node that does not exist.
    let start = pair.a.nic.port().now_ns();
    let dead = ask(&NetAddress::of_node(7, b"x"), Duration::from_millis(6));
    assert_eq!(dead, VipReturn::Timeout);
    assert!(pair.a.nic.port().now_ns() - start < 7_000_000);
    assert_eq!(vi.state(), ViState::Idle);
}

fn disconnecting_flushes_here_and_breaks_there(kind: DeviceKind) {
    let pair = Pair::new(kind);
    for level in [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception] {
        let (a, b) = pair.connected(level);
        let a_recv: Vec<_> = (0..3).map(|_| Buffer::new(&pair.a, 8)).collect();
        let b_recv: Vec<_> = (0..3).map(|_| Buffer::new(&pair.b, 8)).collect();
        a_recv.iter().for_each(|buffer| a.post_recv(&buffer.descriptor).unwrap());
        b_recv.iter().for_each(|buffer| b.post_recv(&buffer.descriptor).unwrap());
        let send = Buffer::new(&pair.a, 8);
        a.post_send(&send.descriptor).unwrap();
        a.send_wait(LONG).unwrap();
        a.disconnect().unwrap();
        assert_eq!(a.state(), ViState::Idle);
        for buffer in &a_recv {
            let taken = a.recv_done();
            assert_eq!(error_bits(&taken), DESC_FLUSHED_ERROR);
            let address = taken.unwrap_err().descriptor.unwrap().address();
            assert_eq!(address, buffer.descriptor.address());
        }
        pair.settle();
        // What was delivered before completes as delivered.
        b.recv_wait(LONG).unwrap();
        assert_eq!(b.query().state, ViState::Error, "{level:?}");
        assert_eq!(error_bits(&b.recv_done()), DESC_FLUSHED_ERROR);
        assert_eq!(error_bits(&b.recv_done()), DESC_FLUSHED_ERROR);
        assert!(b.recv_done().unwrap_err().descriptor.is_none());
        // In the error state everything posted is flushed.
        b.post_recv(&b_recv[0].descriptor).unwrap();
        b.post_send(&b_recv[1].descriptor).unwrap();
        assert_eq!(error_bits(&b.recv_done()), DESC_FLUSHED_ERROR);
        assert_eq!(error_bits(&b.send_done()), DESC_FLUSHED_ERROR);
        assert_eq!(pair.b.errors(), [(b.number(), ErrorCode::ConnectionLost)]);
        assert_eq!(pair.a.errors(), []);
        b.disconnect().unwrap();
        b.disconnect().unwrap();
        // Both can be used again.
        pair.connect(&a, &b);
        b.post_recv(&b_recv[0].descriptor).unwrap();
        a.post_send(&send.descriptor).unwrap();
        b.recv_wait(LONG).unwrap();
    }
}

fn many_clients_one_address(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let vis: Vec<_> = (0..20)
        .map(|_| (pair.a.vi(Reliability::Delivery), pair.b.vi(Reliability::Delivery)))
        .collect();
    both(
        &pair,
        || vis.iter().for_each(|(_, b)| wait(&pair, b"x").unwrap().accept(b).unwrap()),
        || {
            for (a, _) in &vis {
                while let Err(error) = request(&pair, a, b"x", LONG) {
                    assert_eq!(error.code, VipReturn::NoMatch);
                }
            }
        },
    );
    assert!(vis.iter().all(|(a, b)| a.state() == b.state() && a.state() == ViState::Connected));
}

/// The requester says nothing any more; the acceptor's program does not wait for that.
fn an_acceptance_is_given_up_by_a_disconnect(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (a, b) = (pair.a.vi(Reliability::Delivery), pair.b.vi(Reliability::Delivery));
    let recv = Buffer::new(&pair.b, 8);
    b.post_recv(&recv.descriptor).unwrap();
    let (port, attributes) = (pair.a.nic.port(), a.attributes());
    let local = port::RemoteAttributes {
        vi: a.number(),
        connection: 0,
        reliability: attributes.reliability,
        rdma_write: false,
        rdma_read: false,
        max_transfer: attributes.max_transfer_size,
        qos: 0,
    };
    let (from, to) = (pair.a.address(b"client"), pair.b.address(b"service"));
    let exchange = port.connect(local, &from, &to, u64::MAX).unwrap();
    let (accepted, took) = both(
        &pair,
        || wait(&pair, b"service").unwrap().accept(&b),
        || {
            while b.state() != ViState::ConnectPending {
                pair.a.nic.progress();
                pair.a.nic.port().relax(port::Wait::bounded("an acceptance", 0));
            }
            let start = pair.b.nic.port().now_ns();
            b.disconnect().unwrap();
            pair.b.nic.port().now_ns() - start
        },
    );
    assert_eq!(code(accepted), VipReturn::InvalidState);
    assert!(took < 1_000_000, "{took} ns");
    assert_eq!(b.state(), ViState::Idle);
    assert_eq!(error_bits(&b.recv_done()), DESC_FLUSHED_ERROR);
    // The requester learns of it at once.
    let mut progress = port::Progress::Pending;
    while progress == port::Progress::Pending {
        pair.simulation.run(100);
        progress = port.connect_poll(exchange).unwrap();
    }
    assert!(
        matches!(progress, port::Progress::Rejected | port::Progress::Cancelled),
        "{progress:?}"
    );
    pair.connect(&a, &b);
    pair.assert_works(&a, &b);
}

on_every_kind! {
    an_acceptance_is_given_up_by_a_disconnect,
    addresses_and_attributes_are_exchanged,
    nobody_waits,
    rejected_and_dropped,
    mismatched_attributes_leave_the_request_standing,
    a_silent_server_and_a_late_accept,
    addresses_that_lead_nowhere,
    disconnecting_flushes_here_and_breaks_there,
    many_clients_one_address,
}
