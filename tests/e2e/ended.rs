//! Whatever ends a connection, both ends learn of it: a frame that finds no VI is only counted (decision 0017).

use cosim::testbench::node_number;
use nic_regs::admin::Opcode;
use nic_regs::doorbell::{Queue, TOKEN_OFFSET, Token};
use nic_regs::vi::State;
use tests::bare::Bare;
use tests::vi::DOMAIN;
use tests::{DeviceKind, LEVELS, on_every_kind};

/// What ends the connection at node 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Disconnect,
    /// A descriptor that cannot be reached stops the VI, on every level.
    Stop(Queue),
    Close,
}

fn both_ends_learn_whatever_ends_a_connection(kind: DeviceKind) {
    for level in LEVELS {
        for way in [Way::Disconnect, Way::Stop(Queue::Send), Way::Stop(Queue::Recv), Way::Close] {
            let mut bare = Bare::up(kind);
            bare.register();
            let mut vis = bare.connected(level, 9, 0);
            if let Way::Stop(queue) = way {
                let token = Token { vi: 9, region: 1023, offset_64: 0, segments: 0, queue };
                bare.doorbell(0, DOMAIN, TOKEN_OFFSET, token.to_bits());
                bare.bench.run(300);
                if queue == Queue::Recv {
                    let segment = vis[1].segment(0, 8);
                    vis[1].post(&mut bare, Queue::Send, &[segment]);
                }
                bare.settle();
                assert_eq!(bare.state(&vis[0]), State::Error as u32, "{level:?} {way:?}");
            }
            if way == Way::Close {
                bare.ok(0, Opcode::PeerClose, node_number(1).into(), &[]);
            } else {
                bare.ok(0, Opcode::ViDisconnect, 9, &[]);
            }
            bare.settle();
            assert_eq!(bare.state(&vis[1]), State::Error as u32, "{level:?} {way:?}");
            if way == Way::Close {
                bare.open_channel(0x77).unwrap();
            }
            bare.reconnect(&mut vis, 2);
            bare.assert_delivers(&mut vis, 300);
        }
    }
}

on_every_kind! {
    both_ends_learn_whatever_ends_a_connection,
}
