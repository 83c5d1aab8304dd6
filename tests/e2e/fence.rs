//! Fences: when a command that takes memory away is done, nothing touches that memory any more.

use cosim::testbench::FREE_OFFSET;
use nic_regs::admin::Opcode;
use nic_regs::doorbell::Queue;
use nic_regs::tpt::Handle;
use nic_regs::vi::{Reliability, State};
use tests::bare::Bare;
use tests::vi::{Posted, region_body};
use tests::{DeviceKind, on_every_kind};

/// A message whose region was cleared in its midst.
#[derive(Debug)]
pub(crate) struct Cleared {
    /// Whose region: the sender's (0) or the receiver's (1).
    node: usize,
    /// Where the message is at both.
    places: [usize; 2],
    /// Cycles from the sender's doorbell to the command.
    delay: u64,
    /// Cycles that the command took.
    pub(crate) cycles: u64,
    posted: [Posted; 2],
}

/// Bytes of the message, all below [`OTHERS`].
const BYTES: usize = 0x2_0000;
/// What the next owner of the memory writes there.
const OTHERS: u8 = 0xff;

impl Cleared {
    /// Registers memory, connects two VIs and sends; `delay` cycles later the region at `node` is
    /// cleared, and the memory belongs to somebody else. None if the admin ring missed a completion.
    pub(crate) fn amid(bare: &mut Bare, node: usize, delay: u64) -> Option<Self> {
        bare.try_register()?;
        let mut vis = bare.try_connected(Reliability::Delivery, 9, 0)?;
        let places = [0, 1].map(|node: usize| vis[node].data_offset());
        let own = Handle::new(700, 2);
        let body = region_body(places[node] - FREE_OFFSET, BYTES, own);
        bare.try_ok(node, Opcode::RegionSet, 700, &body)?;
        let mut segments = [0, 1].map(|node| vis[node].segment(0, BYTES));
        segments[node].handle = own.0;
        let data: Vec<u8> = tests::pattern(BYTES, 1).iter().map(|byte| byte & 0x7f).collect();
        bare.host_mut(0).put(places[0], &data);
        bare.host_mut(1).put(places[1], &[0; BYTES]);
        let recv = vis[1].post(bare, Queue::Recv, &segments[1..]);
        bare.bench.run(200);
        let send = vis[0].post(bare, Queue::Send, &segments[..1]);
        bare.bench.run(delay);
        let start = bare.bench.now();
        bare.try_ok(node, Opcode::RegionClear, 700, &[])?;
        let cycles = bare.bench.now() - start;
        bare.host_mut(node).put(places[node], &[OTHERS; BYTES]);
        Some(Self { node, places, delay, cycles, posted: [send, recv] })
    }

    /// Asserts that what belongs to somebody else was neither read nor written.
    #[track_caller]
    pub(crate) fn assert_left_alone(&self, bare: &Bare) {
        let received = &bare.host(1).memory[self.places[1]..][..BYTES];
        let (ours, what) = [(false, "read"), (true, "written")][self.node];
        let delay = self.delay;
        assert!(
            received.iter().all(|&byte| (byte == OTHERS) == ours),
            "{what} behind the fence, {delay} cycles after the doorbell"
        );
    }
}

fn a_cleared_region_is_not_touched_any_more(kind: DeviceKind) {
    for (node, delays) in [(1, [400, 1100, 1500, 4000, 9000]), (0, [150, 300, 900, 3000, 6000])] {
        for delay in delays {
            let mut bare = Bare::up(kind);
            let cleared = Cleared::amid(&mut bare, node, delay).expect("the admin ring runs");
            // What is in flight: a frame of 520 cycles in each stage of the send engine, one in the other.
            assert!(cleared.cycles < 2_200, "{} cycles, {delay} after", cleared.cycles);
            bare.settle();
            cleared.assert_left_alone(&bare);
            let ended = cleared.posted[node].status(&bare);
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
        bare.bench.run(200);
        let send = vis[0].post(&mut bare, Queue::Send, &segments[..1]);
        bare.bench.run(delay);
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
