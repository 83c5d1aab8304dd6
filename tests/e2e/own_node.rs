//! A NIC that connects to its own node: frames to oneself leave by the link, and come back if the link
//! has an echo.

use host_driver::address::NodeAddress;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cosim::simulation::network::Network;
use nic_model::device::{Beat, Link};
use nic_model::link::{Side, Wire};
use tests::{Buffer, DeviceKind, LEVELS, LONG, Node, Pair, code, on_every_kind, pattern};
use vipl::{NetAddress, Reliability, Vi, ViState, VipReturn};

/// A network in which the wire of node 0 leads back to node 0.
#[derive(Debug)]
struct Echo(Wire);

impl Network for Echo {
    fn ready(&self, _port: usize, _now: u64) -> bool {
        true
    }

    fn send(&mut self, port: usize, now: u64, beat: Beat) {
        if port == 0 {
            self.0.end(Side::A).send(now, beat);
        }
    }

    fn receive(&mut self, port: usize, now: u64) -> Option<Beat> {
        if port == 0 { self.0.end(Side::B).receive(now) } else { None }
    }

    fn take_busy(&mut self) -> bool {
        !self.0.is_idle()
    }
}

/// Connects two VIs of node 0, each on a thread of its own.
fn connect(pair: &Pair, a: &Vi, b: &Vi) {
    let service = a.number().to_le_bytes();
    let node = &pair.a;
    let [server, client] = ["server", "client"].map(|name| pair.simulation.slot(name));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _token = server.enter();
            let request = node.nic.connect_wait(&node.address(&service), LONG).unwrap();
            assert_eq!(request.remote_address(), &node.address(b"me"));
            request.accept(b).unwrap();
        });
        scope.spawn(|| {
            let _token = client.enter();
            a.connect_request(&node.address(b"me"), &node.address(&service), LONG).unwrap();
        });
    });
}

/// A message from `a` to `b`, both of this node.
fn send(node: &Node, a: &Vi, b: &Vi, length: usize) {
    let (send, recv) = (Buffer::new(node, length), Buffer::new(node, length));
    send.set(&pattern(length, length));
    b.post_recv(&recv.descriptor).unwrap();
    a.post_send(&send.descriptor).unwrap();
    b.recv_wait(LONG).unwrap();
    a.send_wait(LONG).unwrap();
    assert!(recv.data() == pattern(length, length), "{length}");
}

/// Two VIs of one NIC talk, both ways and at every level; RDMA goes too; an end that disconnects is
/// reported.
fn over_a_link_with_an_echo_a_node_reaches_itself(kind: DeviceKind) {
    let pair = Pair::new(kind);
    pair.simulation.wrap_network(|_| Arc::new(Mutex::new(Echo(Wire::new(20)))));
    let node = &pair.a;
    for level in LEVELS {
        let (a, b) = (node.open_vi(level), node.open_vi(level));
        connect(&pair, &a, &b);
        for length in [0, 1, 64, 4096, 4097, 40_000] {
            send(node, &a, &b, length);
            send(node, &b, &a, length);
        }
        if level != Reliability::Unreliable {
            let (from, to) = (node.region(8192), node.open_region(4096));
            from.memory().copy_from(0, &pattern(4096, 9));
            let rdma = from.descriptor(8192 - 64, 2).unwrap();
            rdma.prepare_rdma_write(to.remote(0), &[from.segment(0, 4096)], None).unwrap();
            a.post_send(&rdma).unwrap();
            a.send_wait(LONG).unwrap();
            rdma.prepare_rdma_read(to.remote(0), &[from.segment(4000, 4096)]).unwrap();
            a.post_send(&rdma).unwrap();
            a.send_wait(LONG).unwrap();
            assert!(from.memory().to_vec(4000, 4096) == pattern(4096, 9));
        }
        a.disconnect().unwrap();
        pair.settle();
        assert_eq!(b.query().state, ViState::Error, "{level:?}");
        b.disconnect().unwrap();
        // Again, and with nobody who waits.
        connect(&pair, &b, &a);
        send(node, &a, &b, 100);
        let other = node.vi(level);
        let nobody = other.connect_request(&node.address(b""), &node.address(b"nobody"), LONG);
        assert_eq!(code(nobody), VipReturn::NoMatch);
    }
    pair.assert_no_stray_access();
}

/// Without one, the request ends soon and says so, whatever its time-out; the other node is reached as
/// before.
fn over_a_link_without_an_echo_a_node_is_not_reachable_by_itself(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let node = &pair.a;
    let vi = node.vi(Reliability::Delivery);
    for _ in 0..2 {
        let start = node.nic.port().now_ns();
        let error = vi
            .connect_request(&node.address(b""), &node.address(b"me"), Duration::from_secs(3600))
            .unwrap_err();
        let took = Duration::from_nanos(node.nic.port().now_ns() - start);
        assert!(took < Duration::from_millis(20), "{took:?}");
        assert_eq!(error.code, VipReturn::NotReachable);
        assert!(error.to_string().contains("node 0 cannot reach itself"), "{error}");
        assert_eq!(vi.query().state, ViState::Idle);
    }
    let far = NetAddress::of_node(60, b"me");
    let lost = vi.connect_request(&node.address(b""), &far, Duration::from_millis(20));
    assert_eq!(code(lost), VipReturn::Timeout, "another node may come yet");
    let other = pair.b.vi(Reliability::Delivery);
    pair.connect(&vi, &other);
    pair.assert_works(&vi, &other);
}

on_every_kind!(
    over_a_link_with_an_echo_a_node_reaches_itself,
    over_a_link_without_an_echo_a_node_is_not_reachable_by_itself,
);
