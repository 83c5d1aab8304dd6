//! Networks that lose, repeat and reorder packets.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use port::Reliability::{self, Delivery, Reception, Unreliable};
use vipl::ViState;

use crate::ends::{End, LONG, options, pair, pattern};
use crate::relay::{Chances, Faults, Relay};

/// Messages that are in flight together.
const SLOTS: usize = 16;
const SPACE: usize = 100_000;
const DATA: usize = 64 * SLOTS;

/// Lengths of messages: most are short.
pub fn lengths(count: usize, seed: u64) -> Vec<usize> {
    let mut chances = Chances(seed);
    let length = |_| match chances.next() % 10 {
        0 => chances.next() as usize % SPACE,
        1..4 => chances.next() as usize % 5_000,
        _ => chances.next() as usize % 64,
    };
    (0..count).map(length).collect()
}

const fn at(slot: usize) -> usize {
    DATA + slot * SPACE
}

/// Sends messages of these lengths, as many at once as there are receives.
pub fn send_all(a: &End, lengths: &[usize], taken: &AtomicUsize) {
    for (number, length) in lengths.iter().enumerate() {
        let slot = number % SLOTS;
        while taken.load(Ordering::Acquire) + SLOTS <= number {
            a.nic.progress();
            std::thread::yield_now();
        }
        a.region.memory().copy_from(at(slot), &pattern(number, *length));
        a.vi.post_send(&a.descriptor(slot, at(slot), *length)).unwrap();
        a.vi.send_wait(LONG).unwrap();
    }
}

/// Posts the first receives.
pub fn prepare(b: &End) {
    for slot in 0..SLOTS {
        b.vi.post_recv(&b.descriptor(slot, at(slot), SPACE)).unwrap();
    }
}

/// Receives these messages, each of which is to be the next one.
pub fn receive_all(b: &End, lengths: &[usize], taken: &AtomicUsize) {
    for (number, length) in lengths.iter().enumerate() {
        let slot = number % SLOTS;
        let received = b.vi.recv_wait(LONG).unwrap();
        assert_eq!(received.length() as usize, *length, "message {number}");
        assert!(b.region.memory().to_vec(at(slot), *length) == pattern(number, *length));
        b.vi.post_recv(&b.descriptor(slot, at(slot), SPACE)).unwrap();
        taken.fetch_add(1, Ordering::Release);
    }
}

fn check(level: Reliability, faults: Faults, count: usize) {
    let relay = Relay::new(faults);
    let (a, b) = pair(&relay, level, &options(20_000));
    let (lengths, taken) = (lengths(count, 9), AtomicUsize::new(0));
    prepare(&b);
    std::thread::scope(|scope| {
        scope.spawn(|| send_all(&a, &lengths, &taken));
        receive_all(&b, &lengths, &taken);
    });
    assert!(faults.loss == 0 || a.counter("retransmitted") > 0);
    assert_eq!((a.vi.state(), b.vi.state()), (ViState::Connected, ViState::Connected));
}

#[test]
fn delivery_delivers_once_and_in_order_over_a_bad_network() {
    check(Delivery, Faults::BAD, 400);
}

#[test]
fn reception_delivers_once_and_in_order_over_a_bad_network() {
    check(Reception, Faults::BAD, 300);
}

#[test]
fn a_path_that_dies_breaks_the_connection_within_its_time_out() {
    for is_idle in [true, false] {
        let relay = Relay::new(Faults::default());
        let (a, b) = pair(&relay, Delivery, &options(500));
        relay.set(Faults { loss: 100, ..Faults::default() });
        let start = Instant::now();
        if !is_idle {
            a.vi.post_send(&a.descriptor(0, 4_096, 8)).unwrap();
        }
        let bound = Duration::from_secs(10);
        a.await_state(ViState::Error, bound);
        b.await_state(ViState::Error, bound);
        // Time-out, and two looks at an idle peer.
        assert!(start.elapsed() > Duration::from_millis(400), "{:?}", start.elapsed());
        assert!(a.counter("timed out") + b.counter("timed out") >= 2);
    }
}

#[test]
fn unreliable_messages_are_lost_whole_and_never_repeated() {
    let relay = Relay::new(Faults::default());
    let (a, b) = pair(&relay, Unreliable, &options(20_000));
    relay.set(Faults::BAD);
    let (count, length) = (500, 40_000);
    for slot in 0..16 {
        b.vi.post_recv(&b.descriptor(slot, DATA + slot * SPACE, SPACE)).unwrap();
    }
    let (mut arrived, mut last) = (0, None);
    for number in 0..count {
        a.region.memory().copy_from(DATA, &pattern(number, length));
        a.vi.post_send(&a.descriptor(0, DATA, length)).unwrap();
        a.vi.send_wait(LONG).unwrap();
        while let Ok(received) = b.vi.recv_wait(Duration::from_millis(2)) {
            let at = DATA + arrived % 16 * SPACE;
            let bytes = b.region.memory().to_vec(at, received.length() as usize);
            let which = (last.map_or(0, |last| last + 1)..=number)
                .find(|number| bytes == pattern(*number, length));
            last = Some(which.expect("a message that was sent, after the last one"));
            b.vi.post_recv(&b.descriptor(arrived % 16, at, SPACE)).unwrap();
            arrived += 1;
        }
    }
    assert!((20..count).contains(&arrived), "{arrived}");
}

#[test]
fn rdma_writes_and_reads_over_a_bad_network() {
    let relay = Relay::new(Faults::default());
    for level in [Delivery, Reception] {
        relay.set(Faults::default());
        let (a, b) = pair(&relay, level, &options(20_000));
        relay.set(Faults::BAD);
        for number in 0..20 {
            let (length, data) = (200_000, pattern(number, 200_000));
            a.region.memory().copy_from(DATA, &data);
            let segment = [a.region.segment(DATA, length)];
            let write = a.region.descriptor(0, 2).unwrap();
            write.prepare_rdma_write(b.region.remote(DATA), &segment, None).unwrap();
            a.vi.post_send(&write).unwrap();
            a.vi.send_wait(LONG).unwrap();
            let read = a.region.descriptor(0, 2).unwrap();
            let segment = [a.region.segment(2 * DATA + 300_000, length)];
            read.prepare_rdma_read(b.region.remote(DATA), &segment).unwrap();
            a.vi.post_send(&read).unwrap();
            a.vi.send_wait(LONG).unwrap();
            // The read comes after the write.
            assert!(a.region.memory().to_vec(2 * DATA + 300_000, data.len()) == data);
        }
    }
}
