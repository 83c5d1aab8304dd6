//! Messages, at every level, of every shape.

use std::time::Duration;

use nic_regs::desc::status::DESC_FLUSHED_ERROR;
use vipl::{Queue, Region, Reliability, ViState, VipReturn};

use crate::support::{Buffer, LEVELS, LONG, Pair, code, error_bits, pattern};

#[test]
fn ping_pong_at_every_level() {
    let pair = Pair::new();
    for level in LEVELS {
        let (a, b) = pair.connected(level);
        let buffers: Vec<_> = [&pair.a, &pair.a, &pair.b, &pair.b]
            .into_iter()
            .map(|node| Buffer::new(node, 1000))
            .collect();
        let [a_send, a_recv, b_send, b_recv] = &buffers[..] else { unreachable!() };
        for round in 0..20 {
            let (ping, pong) = (pattern(round * 50, round), pattern(round * 40 + 1, round + 99));
            b.post_recv(&b_recv.descriptor).unwrap();
            a.post_recv(&a_recv.descriptor).unwrap();
            a_send.set(&ping);
            a.post_send(&a_send.descriptor).unwrap();
            b.recv_wait(LONG).unwrap();
            assert_eq!(b_recv.data(), ping);
            b_send.set(&pong);
            b.post_send(&b_send.descriptor).unwrap();
            a.recv_wait(LONG).unwrap();
            assert_eq!(a_recv.data(), pong);
            a.send_wait(LONG).unwrap();
            b.send_wait(LONG).unwrap();
        }
        let query = a.query();
        assert_eq!(query.state, ViState::Connected);
        assert!(query.send_queue_empty && query.recv_queue_empty);
        let empty = a.done(Queue::Send).unwrap_err();
        assert_eq!((empty.code, empty.descriptor.is_none()), (VipReturn::DescriptorError, true));
        for vi in [&a, &b] {
            vi.disconnect().unwrap();
            vi.destroy().unwrap();
        }
        pair.settle();
        assert_eq!((pair.a.errors(), pair.b.errors()), (vec![], vec![]), "{level:?}");
    }
    assert!(pair.world.faults(0).is_empty() && pair.world.faults(1).is_empty());
}

#[test]
fn every_length_arrives_whole() {
    let pair = Pair::new();
    for level in LEVELS {
        let (a, b) = pair.connected(level);
        for length in [0, 1, 7, 8, 9, 63, 64, 4095, 4096, 4097, 8192, 12_289, 65_472, 262_144] {
            if level == Reliability::Unreliable && length > 8192 {
                continue;
            }
            let data = pattern(length, length);
            let (send, recv) = (Buffer::new(&pair.a, length), Buffer::new(&pair.b, length));
            send.set(&data);
            b.post_recv(&recv.descriptor).unwrap();
            a.post_send(&send.descriptor).unwrap();
            let got = b.recv_wait(LONG).unwrap();
            assert_eq!(got.length() as usize, length);
            assert!(recv.data() == data, "{level:?}, {length} bytes");
            assert_eq!(a.send_wait(LONG).unwrap().length() as usize, length);
        }
    }
}

#[test]
fn segments_at_odd_addresses_are_gathered_and_scattered() {
    let pair = Pair::new();
    let (a, b) = pair.connected(Reliability::Delivery);
    let (from, to) = (pair.a.region(20_000), pair.b.region(20_000));
    let data = pattern(20_000, 3);
    from.memory().copy_from(0, &data);
    let cut = |region: &Region, lengths: &[u32], first: usize, gap: usize| {
        let mut offset = first;
        let segment = |length: &u32| {
            let segment = region.segment(offset, *length);
            offset += *length as usize + gap;
            segment
        };
        lengths.iter().map(segment).collect::<Vec<_>>()
    };
    let lengths: [&[u32]; 4] = [
        &[1, 3, 5, 0, 7, 9, 11, 13, 1, 1, 1, 1, 1, 1, 1, 1],
        &[4095, 2, 4097],
        &[8191],
        &[1000, 0, 0, 3000, 17],
    ];
    for send_lengths in lengths {
        for recv_first in [513, 1024, 2047] {
            let total: u32 = send_lengths.iter().sum();
            let sent = cut(&from, send_lengths, 777, 5);
            let expected: Vec<u8> = sent
                .iter()
                .flat_map(|s| {
                    let start = usize::try_from(s.address - from.memory().address()).unwrap();
                    data[start..start + s.length as usize].to_vec()
                })
                .collect();
            let received = cut(&to, &[3, total / 2, total], recv_first, 11);
            to.memory().fill(0xee);
            let recv = to.descriptor(0, 16).unwrap();
            recv.prepare(&received, None).unwrap();
            let send = pair.a.region(512).descriptor(0, 16).unwrap();
            send.prepare(&sent, None).unwrap();
            b.post_recv(&recv).unwrap();
            a.post_send(&send).unwrap();
            assert_eq!(b.recv_wait(LONG).unwrap().length(), total);
            a.send_wait(LONG).unwrap();
            let mut left = total as usize;
            let mut got = Vec::new();
            for segment in &received {
                let start = usize::try_from(segment.address - to.memory().address()).unwrap();
                let length = left.min(segment.length as usize);
                got.extend(to.memory().to_vec(start, length));
                assert_eq!(to.memory().to_vec(start + segment.length as usize, 1), [0xee]);
                left -= length;
            }
            assert_eq!(got, expected);
        }
    }
}

#[test]
fn immediate_data_travels_and_is_left_alone_without() {
    let pair = Pair::new();
    for level in LEVELS {
        let (a, b) = pair.connected(level);
        let (send, recv) = (Buffer::new(&pair.a, 16), Buffer::new(&pair.b, 16));
        for immediate in [Some(0xdead_beef), None, Some(0)] {
            recv.descriptor.set_immediate(77);
            b.post_recv(&recv.descriptor).unwrap();
            send.descriptor.prepare(&[], immediate).unwrap();
            a.post_send(&send.descriptor).unwrap();
            let got = b.recv_wait(LONG).unwrap();
            a.send_wait(LONG).unwrap();
            assert_eq!(got.status().has_immediate(), immediate.is_some());
            assert_eq!(got.immediate(), immediate.unwrap_or(77));
            assert_eq!(got.length(), 0);
        }
    }
}

#[test]
fn many_descriptors_complete_in_order() {
    let pair = Pair::new();
    let (a, b) = pair.connected(Reliability::Reception);
    let count = 400;
    let (sends, recvs) = (pair.a.region(count * 64 + 64), pair.b.region(count * 64 + 64));
    let shared = recvs.segment(count * 64, 64);
    let data = sends.segment(count * 64, 64);
    for i in 0..count {
        let descriptor = recvs.descriptor(i * 64, 1).unwrap();
        // All receives share one buffer.
        descriptor.prepare(&[shared], None).unwrap();
        b.post_recv(&descriptor).unwrap();
    }
    for i in 0..count {
        let descriptor = sends.descriptor(i * 64, 1).unwrap();
        descriptor.prepare(&[data], Some(u32::try_from(i).unwrap())).unwrap();
        a.post_send(&descriptor).unwrap();
    }
    for i in 0..count {
        let sent = a.send_wait(LONG).unwrap();
        assert_eq!(sent.address(), sends.descriptor(i * 64, 1).unwrap().address());
        let received = b.recv_wait(LONG).unwrap();
        assert_eq!(received.immediate() as usize, i);
        assert_eq!(received.address(), recvs.descriptor(i * 64, 1).unwrap().address());
    }
}

#[test]
fn a_full_queue_and_an_empty_one() {
    let pair = Pair::new();
    let vi = pair.b.vi(Reliability::Delivery);
    let limit = pair.b.nic.query().max_descriptors_per_queue as usize;
    let region = pair.b.region((limit + 1) * 64);
    for i in 0..limit {
        let descriptor = region.descriptor(i * 64, 0).unwrap();
        descriptor.prepare(&[], None).unwrap();
        vi.post_recv(&descriptor).unwrap();
    }
    let one_more = region.descriptor(limit * 64, 0).unwrap();
    assert_eq!(code(vi.post_recv(&one_more)), VipReturn::ErrorResource);
    assert_eq!(vi.recv_done().unwrap_err().code, VipReturn::NotDone);
    assert_eq!(code(vi.destroy()), VipReturn::ErrorResource);
    vi.disconnect().unwrap();
    for _ in 0..limit {
        assert_eq!(error_bits(&vi.recv_done()), DESC_FLUSHED_ERROR);
    }
    vi.destroy().unwrap();
}

#[test]
fn waits_end_when_their_time_is_over() {
    let pair = Pair::new();
    let (a, b) = pair.connected(Reliability::Delivery);
    let recv = Buffer::new(&pair.b, 8);
    b.post_recv(&recv.descriptor).unwrap();
    for (timeout, ns) in [(Duration::ZERO, 0), (Duration::from_micros(300), 300_000)] {
        let start = pair.b.nic.port().now_ns();
        assert_eq!(b.recv_wait(timeout).unwrap_err().code, VipReturn::Timeout);
        let waited = pair.b.nic.port().now_ns() - start;
        assert!((ns..ns + 20_000).contains(&waited), "{waited} ns");
    }
    // Nothing is posted there, so there is nothing to wait for.
    assert_eq!(a.recv_wait(vipl::INFINITE).unwrap_err().code, VipReturn::DescriptorError);
}
