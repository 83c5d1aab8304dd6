//! Fences: when a command that takes memory away is done, nothing touches that memory any more.

use cosim::lockstep::rig::FREE_OFFSET;
use nic_regs::admin::Opcode;
use nic_regs::doorbell::Queue;
use nic_regs::tpt::Handle;
use nic_regs::vi::{Reliability, State};
use tests::bare::Bare;
use tests::vi::region_body;
use tests::{DeviceKind, on_every_kind};

fn a_cleared_region_is_not_touched_any_more(kind: DeviceKind) {
    let data = tests::pattern(0x2_0000, 1).iter().map(|byte| byte & 0x7f).collect::<Vec<_>>();
    for (node, delays) in [(1, [400, 1100, 1500, 4000, 9000]), (0, [150, 300, 900, 3000, 6000])] {
        for delay in delays {
            let mut bare = Bare::up(kind);
            bare.register();
            let mut vis = bare.connected(Reliability::Delivery, 9, 0);
            let mut segments = [0, 1].map(|node| vis[node].segment(0, data.len()));
            let place = vis[node].data_offset();
            let own = Handle::new(700, 2);
            let body = region_body(place - FREE_OFFSET, data.len(), own);
            bare.ok(node, Opcode::RegionSet, 700, &body);
            segments[node].handle = own.0;
            bare.host_mut(0).put(vis[0].data_offset(), &data);
            let recv = vis[1].post(&mut bare, Queue::Recv, &segments[1..]);
            bare.rig.run(200);
            let send = vis[0].post(&mut bare, Queue::Send, &segments[..1]);
            bare.rig.run(delay);
            bare.ok(node, Opcode::RegionClear, 700, &[]);
            // From now on the memory belongs to somebody else.
            bare.host_mut(node).memory[place..place + data.len()].fill(0xff);
            bare.settle();
            let to = vis[1].data_offset();
            let received = &bare.host(1).memory[to..to + data.len()];
            if node == 1 {
                assert!(received.iter().all(|&byte| byte == 0xff), "written after {delay}");
            } else {
                assert!(received.iter().all(|&byte| byte != 0xff), "read after {delay}");
            }
            let ended = [send, recv][node].status(&bare);
            assert_ne!(ended & 1, 0, "the descriptor is done, {ended:#x}");
            bare.assert_no_stray_writes();
        }
    }
}

fn a_disconnected_vi_does_not_touch_its_buffers_any_more(kind: DeviceKind) {
    let bytes = 0x2_0000;
    for delay in [200, 300, 900, 1700, 2500, 6000] {
        let mut bare = Bare::up(kind);
        bare.register();
        let mut vis = bare.connected(Reliability::Reception, 9, 0);
        let segments = [0, 1].map(|node| vis[node].segment(0, bytes));
        let recv = vis[1].post(&mut bare, Queue::Recv, &segments[1..]);
        bare.rig.run(200);
        let send = vis[0].post(&mut bare, Queue::Send, &segments[..1]);
        bare.rig.run(delay);
        bare.ok(1, Opcode::ViDisconnect, 9, &[]);
        let to = vis[1].data_offset();
        bare.host_mut(1).memory[to..to + bytes].fill(0xee);
        assert_eq!(recv.status(&bare), 0, "a flushed descriptor is software's to complete");
        bare.settle();
        assert!(bare.host(1).memory[to..to + bytes].iter().all(|&byte| byte == 0xee), "{delay}");
        assert_eq!((recv.status(&bare), send.status(&bare)), (0, 0));
        assert_eq!(bare.state(&vis[0]), State::Error as u32);
        bare.reconnect(&mut vis, 2);
        bare.assert_delivers(&mut vis, 5000);
    }
}

on_every_kind! {
    a_cleared_region_is_not_touched_any_more,
    a_disconnected_vi_does_not_touch_its_buffers_any_more,
}
