//! Messages from one host to the other, as they should go.

use nic_regs::desc::{ControlSegment, control, status};
use nic_regs::event::Kind;
use nic_regs::vi::Reliability;

use std::collections::VecDeque;

use nic_regs::admin::{Opcode, PeerState};
use nic_regs::frame::Type;

use super::support::*;
use crate::device::{Beat, Device, Link};
use crate::trace::{Trace, Verdict};

const LEVELS: [Reliability; 3] =
    [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];

#[test]
fn a_message_of_every_length_arrives_on_every_level() {
    for level in LEVELS {
        let mut w = Testbench::pair(level);
        for (i, n) in
            [0, 1, 7, 8, 255, 256, 4095, 4096, 4097, 8192, 256 * 1024].into_iter().enumerate()
        {
            let text = pattern(i as u32, n);
            let at = 0x1000 + 64 * i as u64;
            w.hosts[A].put(0x2000, &text);
            w.hosts[B].put(0x2000, &vec![0xee; n + 1]);
            w.hosts[B].post(VIS[B], Recv, at, &[(0x2000, n as u32 + 1)]);
            w.settle();
            w.hosts[A].post(VIS[A], Send, at, &[(0x2000, n as u32)]);
            w.settle();
            assert_eq!(w.hosts[A].status(at), status::DONE, "{level:?} {n}");
            assert_eq!(w.hosts[A].length(at), n as u32);
            assert_eq!(w.hosts[B].status(at), status::DONE | status::OP_RECEIVE);
            assert_eq!(w.hosts[B].length(at), n as u32);
            assert_eq!(w.hosts[B].data(0x2000, n), text);
            assert_eq!(w.hosts[B].data(0x2000 + n as u64, 1), [0xee]);
            for (side, kind) in [(A, Kind::SendComplete), (B, Kind::RecvComplete)] {
                let events = w.hosts[side].events(COMPLETIONS);
                assert_eq!(events.len(), 1);
                assert_eq!((events[0].kind, events[0].index), (kind as u8, VIS[side]));
                assert_eq!(events[0].word1, 1);
            }
        }
    }
}

/// Sequence numbers both ways, producer and consumer indices of event queues: 16 bits each.
#[test]
fn numbers_wrap() {
    const BATCH: u64 = 30;
    let mut w = Testbench::pair(Reliability::Reception);
    let mut records = [0_u32; 2];
    for message in (0..66_000).step_by(BATCH as usize) {
        let place = |i: u64| (0x1000 + 64 * i, 0x2000 + 8 * i);
        for i in 0..BATCH {
            let (at, data) = place(i);
            w.hosts[A].put(data, &(message + i).to_le_bytes());
            w.hosts[B].post(VIS[B], Recv, at, &[(data, 8)]);
        }
        w.run(100);
        for i in 0..BATCH {
            let (at, data) = place(i);
            w.hosts[A].post(VIS[A], Send, at, &[(data, 8)]);
        }
        w.settle();
        for i in 0..BATCH {
            let (at, data) = place(i);
            assert_eq!(w.hosts[A].status(at), status::DONE, "message {}", message + i);
            assert_eq!(w.hosts[B].data(data, 8), (message + i).to_le_bytes());
        }
        for (host, records) in w.hosts.iter_mut().zip(&mut records) {
            let events = host.events(COMPLETIONS);
            let done: u32 = events.iter().map(|event| event.word1).sum();
            assert_eq!(u64::from(done), BATCH, "message {message}");
            *records += events.len() as u32;
            host.ring_events(DOMAIN, COMPLETIONS, *records as u16, false);
            host.memory.writes.clear();
        }
    }
    assert!(records.iter().all(|&records| records > 1 << 16), "{records:?}");
}

#[test]
fn immediate_data_goes_in_front_of_length_and_status() {
    for (level, n) in LEVELS.into_iter().flat_map(|l| [(l, 0_u32), (l, 5), (l, 9000)]) {
        let mut w = Testbench::pair(level);
        let text = pattern(n, n as usize);
        w.hosts[A].put(0x2000, &text);
        let words = ControlSegment {
            control: control::IMMEDIATE,
            immediate: 0xabad_cafe,
            length: 0xffff_ffff,
            ..ControlSegment::default()
        };
        w.hosts[B].post(VIS[B], Recv, 0, &[(0x2000, 9000)]);
        w.hosts[B].post(VIS[B], Recv, 64, &[(0x2000, 9000)]);
        w.hosts[A].post_with(VIS[A], Send, 0, words, &[(0x2000, n)]);
        w.hosts[A].post(VIS[A], Send, 64, &[(0x2000, n)]);
        w.settle();
        let done = status::DONE | status::OP_RECEIVE;
        assert_eq!(w.hosts[B].status(0), done | status::IMMEDIATE);
        assert_eq!(w.hosts[B].memory.word(BUS + 20), 0xabad_cafe);
        assert!(w.hosts[B].memory.writes.contains(&(BUS + 20, 12)));
        assert_eq!(w.hosts[B].status(64), done);
        assert_eq!(w.hosts[B].memory.word(BUS + 64 + 20), 0);
        assert!(w.hosts[B].memory.writes.contains(&(BUS + 64 + 24, 8)));
        assert_eq!(w.hosts[B].data(0x2000, n as usize), text);
    }
}

#[test]
fn sixteen_unaligned_segments_gather_and_scatter() {
    for level in LEVELS {
        let mut w = Testbench::pair(level);
        let mut next = 1;
        let mut segments = |base: u64, skew: u64| -> Vec<(u64, u32)> {
            (0..16)
                .map(|i| {
                    next = (next * 31 + 17) % 1021;
                    let n = if i % 5 == 3 { 0 } else { next as u32 };
                    (base + i * 0x800 + next * skew % 7 + 1, n)
                })
                .collect()
        };
        let from = segments(0x2000, 3);
        let mut to = segments(0x4_0000, 5);
        to[15].1 = 20_000;
        let mut text = Vec::new();
        for (i, &(at, n)) in from.iter().enumerate() {
            let part = pattern(i as u32, n as usize);
            w.hosts[A].put(at, &part);
            text.extend(part);
        }
        w.hosts[B].post(VIS[B], Recv, 0, &to);
        w.hosts[A].post(VIS[A], Send, 0, &from);
        w.settle();
        assert_eq!(w.hosts[B].status(0), status::DONE | status::OP_RECEIVE);
        let mut got: Vec<u8> = Vec::new();
        for &(at, n) in &to {
            got.extend(w.hosts[B].data(at, n as usize));
        }
        assert_eq!(got[..text.len()], text);
        assert!(got[text.len()..].iter().all(|&b| b == 0));
    }
}

#[test]
fn an_observer_sees_everything_in_order() {
    let mut w = Testbench::pair(Reliability::Delivery);
    w.hosts[B].post(VIS[B], Recv, 0, &[(0x2000, 100)]);
    w.settle();
    for side in [A, B] {
        w.hosts[side].traces.lock().unwrap().clear();
    }
    w.hosts[A].post(VIS[A], Send, 0, &[(0x2000, 100)]);
    w.settle();
    let is_data = |kind: u8| kind == Type::Data as u8;
    let sender = w.hosts[A].traces.lock().unwrap().clone();
    assert!(matches!(sender[0], Trace::Doorbell { page: 3, token } if token.vi == VIS[A]));
    assert!(matches!(sender[1], Trace::Completion { queue: Send, length: 100, .. }));
    assert!(matches!(sender[2], Trace::Event { queue: COMPLETIONS, .. }));
    assert!(matches!(sender[3], Trace::FrameOut { header } if is_data(header.kind)));
    let receiver = w.hosts[B].traces.lock().unwrap().clone();
    assert!(matches!(receiver[0], Trace::FrameIn { header: Some(h), verdict: Verdict::Staged }
        if is_data(h.kind) && h.length == 100));
    assert!(matches!(receiver[1], Trace::Completion { queue: Recv, length: 100, .. }));
    assert!(matches!(receiver[2], Trace::Event { queue: COMPLETIONS, .. }));
}

/// A link that echoes what is sent.
#[derive(Default)]
struct Echo(VecDeque<(u64, Beat)>);

impl Link for Echo {
    fn ready(&self, _: u64) -> bool {
        true
    }

    fn send(&mut self, now: u64, beat: Beat) {
        self.0.push_back((now + 10, beat));
    }

    fn receive(&mut self, now: u64) -> Option<Beat> {
        self.0.pop_front_if(|beat| beat.0 <= now).map(|beat| beat.1)
    }
}

#[test]
fn two_vis_of_one_node_talk_over_an_echo() {
    let mut w = Testbench::bare(&Default::default());
    let node = u32::from(NODES[A]);
    let mut open = [0; 12];
    (open[0], open[1]) = (0x1357_9bdf, 64);
    w.ok(A, Opcode::PeerOpen, node, open);
    for (vi, other) in [(1, 2), (2, 1)] {
        w.ok(A, Opcode::ViCreate, vi, vi_words(Reliability::Reception));
        let mut words = connect_words(A);
        words[0] = node | other << 16;
        w.ok(A, Opcode::ViConnect, vi, words);
    }
    let text = pattern(5, 20_000);
    let host = &mut w.hosts[A];
    host.put(0x2000, &text);
    host.post(2, Recv, 0, &[(0x2_0000, 20_000)]);
    host.post(1, Send, 64, &[(0x2000, 20_000)]);
    let mut link = Echo::default();
    // The first SYN is on the wire to nobody; the second one meets the echo.
    for now in w.now..w.now + 20_000 {
        host.model.step(now, &mut host.memory, &mut link);
    }
    assert_eq!(host.model.peer_state(NODES[A]), PeerState::Open);
    assert_eq!(host.status(0), status::DONE | status::OP_RECEIVE);
    assert_eq!(host.status(64), status::DONE);
    assert_eq!(host.data(0x2_0000, 20_000), text);
    assert!(!host.model.busy());
}
