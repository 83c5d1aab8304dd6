//! Messages without a relay: what programs see of the thread, of paths, of nodes that end.

use std::time::{Duration, Instant};

use port::Queue;
use port::Reliability::{Delivery, Reception, Unreliable};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use vipl::ViState;

use crate::ends::{End, LONG, connect, options, pair, pattern};
use crate::relay::{Faults, Relay};

#[test]
fn a_long_message_is_cut_into_packets_and_put_together() {
    for level in [Unreliable, Delivery, Reception] {
        let (a, b) = (End::new(level, &options(5_000)), End::new(level, &options(5_000)));
        connect(&a, &b, b.address).unwrap();
        for (number, length) in [0, 1, 32_767, 32_768, 32_769, 262_144].into_iter().enumerate() {
            let (data, receive) = (pattern(number, length), b.descriptor(0, 4_096, length));
            a.region.memory().copy_from(4_096, &data);
            b.vi.post_recv(&receive).unwrap();
            a.vi.post_send(&a.descriptor(0, 4_096, length)).unwrap();
            let received = b.vi.recv_wait(LONG).unwrap();
            assert_eq!(received.length() as usize, length, "{level:?}");
            assert!(b.region.memory().to_vec(4_096, length) == data, "{level:?} {length}");
            a.vi.send_wait(LONG).unwrap();
        }
    }
}

#[test]
fn a_peer_is_answered_while_its_program_does_something_else() {
    let (a, b) = (End::new(Reception, &options(1_000)), End::new(Reception, &options(1_000)));
    connect(&a, &b, b.address).unwrap();
    b.vi.post_recv(&b.descriptor(0, 4_096, 8)).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    // Nobody looks at b, and a's send is done when its data is in b's memory.
    a.region.memory().copy_from(4_096, b"computes");
    a.vi.post_send(&a.descriptor(0, 4_096, 8)).unwrap();
    a.vi.send_wait(LONG).unwrap();
    assert_eq!(b.region.memory().to_vec(4_096, 8), b"computes");
    // Longer than the time-out: a peer that computes is not dead.
    std::thread::sleep(Duration::from_millis(4_000));
    b.vi.recv_done().unwrap();
    assert_eq!((a.vi.state(), b.vi.state()), (ViState::Connected, ViState::Connected));
}

/// A thread that sleeps in a system call of its own has an edge for each message, with nobody else awake.
#[test]
fn who_sleeps_on_the_wake_descriptor_is_woken() {
    let (a, b) = (End::new(Delivery, &options(5_000)), End::new(Delivery, &options(5_000)));
    connect(&a, &b, b.address).unwrap();
    let port = b.nic.port();
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let (data, flags) =
        (epoll::EventData::new_u64(0), epoll::EventFlags::IN | epoll::EventFlags::ET);
    epoll::add(&set, port.wake_descriptor().unwrap(), data, flags).unwrap();
    for _ in 0..3 {
        b.vi.post_recv(&b.descriptor(0, 4_096, 8)).unwrap();
        port.doze(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                a.vi.post_send(&a.descriptor(0, 4_096, 8)).unwrap();
            });
            let end = Instant::now() + LONG;
            while !b.vi.is_done(Queue::Recv) {
                let left = end.checked_duration_since(Instant::now()).expect("it is woken");
                let bound = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: 0 };
                let mut events = Vec::with_capacity(1);
                epoll::wait(&set, spare_capacity(&mut events), Some(&bound)).unwrap();
            }
        });
        port.doze(false);
        b.vi.recv_done().unwrap();
        a.vi.send_wait(LONG).unwrap();
    }
}

#[test]
fn what_was_sent_before_a_disconnection_arrives_and_then_its_notice() {
    for level in [Delivery, Reception, Unreliable] {
        let (a, b) = (End::new(level, &options(5_000)), End::new(level, &options(5_000)));
        connect(&a, &b, b.address).unwrap();
        b.vi.post_recv(&b.descriptor(0, 4_096, 8)).unwrap();
        a.region.memory().copy_from(4_096, b"farewell");
        a.vi.post_send(&a.descriptor(0, 4_096, 8)).unwrap();
        a.vi.send_wait(LONG).unwrap();
        a.vi.disconnect().unwrap();
        assert_eq!(b.vi.recv_wait(LONG).unwrap().length(), 8, "{level:?}");
        b.await_state(ViState::Error, LONG);
        assert_eq!(b.region.memory().to_vec(4_096, 8), b"farewell");
    }
}

#[test]
fn a_node_that_restarts_has_none_of_its_earlier_connections() {
    let relay = Relay::new(Faults::default());
    let (a, b) = pair(&relay, Delivery, &options(30_000));
    // The new node is where the other one was.
    let c = End::new(Delivery, &options(30_000));
    relay.other(1, c.address);
    a.vi.post_send(&a.descriptor(0, 4_096, 8)).unwrap();
    let time = a.await_state(ViState::Error, LONG);
    assert!(time < Duration::from_secs(5), "{time:?}");
    assert_eq!((a.counter("reset by peer"), c.counter("unknown connection")), (1, 1));
    assert_eq!(b.vi.state(), ViState::Connected);
}
