//! What programs rely on, function by function: posting in each state, the end of a connection,
//! descriptors as programs leave them.

use host_driver::address::NodeAddress;
use std::time::Duration;

use nic_regs::desc::{ControlSegment, NEXT_OFFSET, STATUS_OFFSET, control, status};
use tests::{Buffer, DeviceKind, LEVELS, LONG, Pair, code, error_bits, on_every_kind, pattern};
use vipl::{Descriptor, INFINITE, Reliability, Vi, ViState, VipReturn};

/// A send or a receive that nobody has done yet: still posted, or flushed at once.
#[track_caller]
fn assert_posts(pair: &Pair, vi: &Vi, recv_kept: bool) {
    let [send, recv] = [0, 1].map(|_| Buffer::new(&pair.a, 8));
    let before = vi.state();
    vi.post_send(&send.descriptor).unwrap();
    assert_eq!(error_bits(&vi.send_done()), status::DESC_FLUSHED_ERROR, "{before:?}");
    vi.post_recv(&recv.descriptor).unwrap();
    let taken = vi.recv_done();
    if recv_kept {
        assert_eq!(taken.unwrap_err().code, VipReturn::NotDone, "{before:?}");
    } else {
        assert_eq!(error_bits(&taken), status::DESC_FLUSHED_ERROR, "{before:?}");
    }
    assert_eq!(vi.state(), before);
}

fn posting_in_each_state(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let vi = pair.a.vi(Reliability::Delivery);
    let empty = vi.send_done().unwrap_err();
    assert!(empty.code == VipReturn::DescriptorError && empty.descriptor.is_none());
    assert_posts(&pair, &vi, true);
    let (local, remote) = (pair.a.address(b"p"), pair.b.address(b"p"));
    vi.connect_peer_request(&local, &remote, LONG).unwrap();
    assert_eq!(vi.state(), ViState::ConnectPending);
    assert_posts(&pair, &vi, true);
    // Disconnecting flushes what was kept, in order.
    vi.disconnect().unwrap();
    for _ in 0..2 {
        assert_eq!(error_bits(&vi.recv_done()), status::DESC_FLUSHED_ERROR);
    }
    // Connected: both are kept, and the send is done.
    let b = pair.b.vi(Reliability::Delivery);
    pair.connect(&vi, &b);
    pair.assert_works(&vi, &b);
    b.disconnect().unwrap();
    pair.settle();
    assert_eq!(vi.query().state, ViState::Error);
    assert_posts(&pair, &vi, false);
    vi.disconnect().unwrap();
    assert_posts(&pair, &vi, true);
}

fn delivered_sends_are_good_though_the_peer_leaves_at_once(kind: DeviceKind) {
    let pair = Pair::new(kind);
    for level in LEVELS {
        for count in [1, 5] {
            let (a, b) = pair.connected(level);
            let sends: Vec<_> = (0..count).map(|_| Buffer::new(&pair.a, 5000)).collect();
            let recvs: Vec<_> = (0..count).map(|_| Buffer::new(&pair.b, 5000)).collect();
            recvs.iter().for_each(|recv| b.post_recv(&recv.descriptor).unwrap());
            sends.iter().for_each(|send| a.post_send(&send.descriptor).unwrap());
            // Nobody looks at the sender's side until its peer has ended.
            for _ in 0..count {
                b.recv_wait(LONG).unwrap();
            }
            b.disconnect().unwrap();
            pair.settle();
            assert_eq!(a.query().state, ViState::Error, "{level:?}");
            for _ in 0..count {
                a.send_done().unwrap();
            }
            a.disconnect().unwrap();
        }
    }
}

/// The sender's NIC is busy with other VIs when its peers' answers come: the end of each send waits for its
/// turn, and the connection has ended by then.
fn acknowledged_sends_are_good_though_their_nic_is_busy(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let short: Vec<_> = (0..4).map(|_| pair.connected(Reliability::Reception)).collect();
    let long: Vec<_> = (0..16).map(|_| pair.connected(Reliability::Delivery)).collect();
    let buffers = |node: &tests::Node, bytes, count: usize| -> Vec<Buffer> {
        (0..count).map(|_| Buffer::new(node, bytes)).collect()
    };
    let sends = buffers(&pair.a, 64, short.len());
    let recvs = buffers(&pair.b, 64, short.len());
    let streams = buffers(&pair.a, 32_768, long.len());
    let sinks = buffers(&pair.b, 32_768, long.len());
    for ((_, b), recv) in short.iter().zip(&recvs).chain(long.iter().zip(&sinks)) {
        b.post_recv(&recv.descriptor).unwrap();
    }
    for ((a, _), send) in short.iter().zip(&sends).chain(long.iter().zip(&streams)) {
        a.post_send(&send.descriptor).unwrap();
    }
    for (_, b) in &short {
        b.recv_wait(LONG).unwrap();
        b.disconnect().unwrap();
    }
    pair.settle();
    for (a, _) in &short {
        assert_eq!(a.query().state, ViState::Error);
        a.send_done().unwrap();
    }
    for (a, b) in &long {
        a.send_wait(LONG).unwrap();
        b.recv_wait(LONG).unwrap();
    }
}

fn disconnecting_is_harmless_everywhere(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (a, b) = (pair.a.vi(Reliability::Delivery), pair.b.vi(Reliability::Delivery));
    for _ in 0..2 {
        a.disconnect().unwrap();
        assert_eq!(a.state(), ViState::Idle);
    }
    pair.connect(&a, &b);
    for _ in 0..2 {
        a.disconnect().unwrap();
        assert_eq!(a.state(), ViState::Idle);
    }
    pair.settle();
    assert_eq!(b.query().state, ViState::Error);
    for _ in 0..2 {
        b.disconnect().unwrap();
        assert_eq!(b.state(), ViState::Idle);
    }
    // Nobody was notified of an own disconnect.
    assert_eq!(pair.a.errors(), []);
}

/// Another thread disconnects while a connection is being asked for.
fn a_request_is_given_up(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let vi = pair.a.vi(Reliability::Delivery);
    let recv = Buffer::new(&pair.a, 8);
    vi.post_recv(&recv.descriptor).unwrap();
    let nowhere = vipl::NetAddress::of_node(9, b"x");
    let [asker, other] = ["asker", "other"].map(|name| pair.simulation.slot(name));
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            asker.run(|| code(vi.connect_request(&pair.a.address(b""), &nowhere, INFINITE)))
        });
        scope.spawn(|| {
            other.run(|| {
                while vi.state() != ViState::ConnectPending {
                    let _ = pair.a.nic.connect_wait(&pair.a.address(b"none"), Duration::ZERO);
                    pair.a.nic.port().relax(host_driver::bus::Wait::bounded("a request", 0));
                }
                vi.disconnect().unwrap();
            });
        });
        assert_eq!(asked.join().unwrap(), VipReturn::InvalidState);
    });
    assert_eq!(vi.state(), ViState::Idle);
    assert_eq!(error_bits(&vi.recv_done()), status::DESC_FLUSHED_ERROR);
}

fn a_vi_is_destroyed_when_it_is_idle_and_drained(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (a, b) = pair.connected(Reliability::Delivery);
    assert_eq!(code(a.destroy()), VipReturn::InvalidState);
    let recvs = [0, 1].map(|_| Buffer::new(&pair.a, 8));
    recvs.iter().for_each(|recv| a.post_recv(&recv.descriptor).unwrap());
    a.disconnect().unwrap();
    for _ in &recvs {
        assert_eq!(code(a.destroy()), VipReturn::ErrorResource);
        assert_eq!(error_bits(&a.recv_done()), status::DESC_FLUSHED_ERROR);
    }
    let number = a.number();
    a.destroy().unwrap();
    assert_eq!(code(a.destroy()), VipReturn::InvalidParameter);
    let send = Buffer::new(&pair.a, 8);
    assert_eq!(code(a.post_send(&send.descriptor)), VipReturn::InvalidParameter);
    assert_eq!(a.recv_wait(INFINITE).unwrap_err().code, VipReturn::InvalidParameter);
    assert_eq!(code(a.disconnect()), VipReturn::InvalidParameter);
    // A program that does not drain gives it up all the same when it drops it.
    let undrained = pair.a.vi(Reliability::Delivery);
    assert_ne!(undrained.number(), number);
    undrained.post_recv(&recvs[0].descriptor).unwrap();
    drop(undrained);
    pair.settle();
    assert_eq!(b.query().state, ViState::Error);
    b.disconnect().unwrap();
}

fn discriminators_of_every_length(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let most = usize::from(pair.a.nic.query().max_discriminator_len);
    assert_eq!(most, 64);
    let step = kind.size(1, 21);
    for length in (1..=most).step_by(step) {
        let (a, b) = (pair.a.vi(Reliability::Delivery), pair.b.vi(Reliability::Delivery));
        // Those of others differ in the last byte, or are a byte shorter.
        let service: Vec<u8> = (1..).take(length).collect();
        let slots = [pair.simulation.slot("server"), pair.simulation.slot("client")];
        let [server, client] = slots;
        std::thread::scope(|scope| {
            let waited = scope.spawn(|| {
                server.run(|| {
                    let request = pair.b.nic.connect_wait(&pair.b.address(&service), LONG).unwrap();
                    let from = request.remote_address().clone();
                    request.accept(&b).unwrap();
                    from
                })
            });
            scope.spawn(|| {
                client.run(|| {
                    let local = pair.a.address(&service);
                    let ask = |service: &[u8]| {
                        a.connect_request(&local, &pair.b.address(service), LONG).map(drop)
                    };
                    let mut other = service.clone();
                    other[length - 1] ^= 0x80;
                    assert_eq!(code(ask(&other)), VipReturn::NoMatch);
                    assert_eq!(code(ask(&service[..length - 1])), VipReturn::NoMatch);
                    ask(&service).unwrap();
                });
            });
            assert_eq!(waited.join().unwrap(), pair.a.address(&service));
        });
    }
}

/// Control segment as a program left it from some earlier use.
fn make_stale(descriptor: &Descriptor, buffer: &Buffer, flags: u16) {
    let header = ControlSegment { seg_count: 1, control: flags, ..ControlSegment::default() };
    descriptor.prepare_raw(header, &[buffer.region.segment(1024, 100)]).unwrap();
    let place = |offset: u64| usize::try_from(offset).unwrap();
    let memory = buffer.region.memory();
    memory.store_u64(place(NEXT_OFFSET), 0xdead_beef_dead_bee0);
    memory.store_u32(place(NEXT_OFFSET) + 8, 0xffff_ffff);
    memory.store_u32(place(STATUS_OFFSET), status::DONE | status::LENGTH_ERROR);
}

fn descriptors_are_taken_as_programs_leave_them(kind: DeviceKind) {
    let pair = Pair::new(kind);
    let (a, b) = (pair.a.vi(Reliability::Delivery), pair.b.vi(Reliability::Delivery));
    let recvs = [0, 1, 2].map(|_| Buffer::new(&pair.b, 100));
    let sends = [0, 1, 2].map(|_| Buffer::new(&pair.a, 100));
    for recv in &recvs {
        // IMMEDIATE means nothing on a receive descriptor, nor does QFENCE.
        make_stale(&recv.descriptor, recv, control::IMMEDIATE | control::QFENCE);
        recv.descriptor.set_immediate(0x5555_0000);
        b.post_recv(&recv.descriptor).unwrap();
        assert_eq!(
            b.recv_done().unwrap_err().code,
            VipReturn::NotDone,
            "the old status is overwritten"
        );
    }
    pair.connect(&a, &b);
    for (i, send) in sends.iter().enumerate() {
        send.region.memory().copy_from(1024, &pattern(100, i));
        make_stale(&send.descriptor, send, control::OP_SENDRECV);
        a.post_send(&send.descriptor).unwrap();
    }
    for (i, recv) in recvs.iter().enumerate() {
        a.send_wait(LONG).unwrap();
        let done = b.recv_wait(LONG).unwrap();
        assert_eq!(done.address(), recv.descriptor.address());
        assert_eq!(recv.data(), pattern(100, i));
        // Nothing immediate came, so the field is as the program left it.
        assert!(!done.status().has_immediate());
        assert_eq!(done.immediate(), 0x5555_0000);
    }
}

on_every_kind! {
    posting_in_each_state,
    delivered_sends_are_good_though_the_peer_leaves_at_once,
    acknowledged_sends_are_good_though_their_nic_is_busy,
    disconnecting_is_harmless_everywhere,
    a_request_is_given_up,
    a_vi_is_destroyed_when_it_is_idle_and_drained,
    discriminators_of_every_length,
    descriptors_are_taken_as_programs_leave_them,
}
