//! Frames that find no VI: of another connection, from another VI, for one that no longer exists. They are counted
//! (contract 5.1, decision 0017), and touch nothing.

use cosim::testbench::node_number;
use nic_regs::admin::Opcode;
use nic_regs::counter::Counter;
use nic_regs::doorbell::Queue;
use nic_regs::vi::State;
use tests::bare::Bare;
use tests::vi::{BareVi, vi_body};
use tests::{DeviceKind, LEVELS, on_every_kind, pattern};

/// What is wrong with the frames for the VI of node 1.
#[derive(Clone, Copy, Debug)]
enum Stray {
    /// They are of an old connection.
    Connection,
    /// It is connected to another VI of the same node.
    Source,
    /// It is connected to another node.
    Node,
    /// It is not connected.
    Idle,
}

fn frames_for_nobody_are_counted_and_touch_nothing(kind: DeviceKind) {
    for level in LEVELS {
        for stray in [Stray::Connection, Stray::Source, Stray::Node, Stray::Idle] {
            let mut bare = Bare::up(kind);
            bare.register();
            let mut others = bare.connected(level, 30, 1);
            for node in 0..2 {
                bare.ok(node, Opcode::ViCreate, 9, &vi_body(level));
            }
            let mut vis = [0, 1].map(|node| BareVi::new(node, 9, 0));
            let (node, vi, connection) = match stray {
                Stray::Connection => (node_number(0), 9, 2),
                Stray::Source => (node_number(0), 10, 1),
                Stray::Node => (node_number(0) + 7, 9, 1),
                Stray::Idle => (0, 0, 0),
            };
            let idle = matches!(stray, Stray::Idle);
            if !idle {
                bare.ok(1, Opcode::ViConnect, 9, &[u32::from(node) | vi << 16, connection]);
            }
            let peer = u32::from(node_number(1)) | 9 << 16;
            bare.ok(0, Opcode::ViConnect, 9, &[peer, 1]);

            let data = pattern(5000, 3);
            let (from, to) = (vis[0].data_offset(), vis[1].data_offset());
            bare.host_mut(0).put(from, &data);
            let before = bare.host(1).memory[to..to + data.len()].to_vec();
            let segments = [0, 1].map(|node| vis[node].segment(0, data.len()));
            let recv = vis[1].post(&mut bare, Queue::Recv, &segments[1..]);
            bare.bench.run(200);
            let _send = vis[0].post(&mut bare, Queue::Send, &segments[..1]);
            bare.settle();

            let what = format!("{level:?}, {stray:?}");
            assert_eq!(
                bare.counter(1, Counter::Unmatched),
                2,
                "a frame of 4,096 bytes and its rest: {what}"
            );
            assert_eq!(recv.status(&bare), 0, "{what}");
            assert!(bare.host(1).memory[to..to + data.len()] == before, "{what}");
            let state = if idle { State::Idle } else { State::Connected };
            assert_eq!(bare.state(&vis[1]), state as u32, "{what}");
            bare.assert_delivers(&mut others, 5000);
            // As soon as both mean the same connection, it works.
            bare.reconnect(&mut vis, 3);
            bare.assert_delivers(&mut vis, 5000);
            bare.assert_no_stray_writes();
        }
    }
}

on_every_kind! {
    frames_for_nobody_are_counted_and_touch_nothing,
}
