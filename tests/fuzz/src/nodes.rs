//! Two models on a wire, connected at every level, and what must hold of them whatever came.

use core::ops::Range;

use cosim::testbench::host::Write;
use cosim::testbench::{EVENT_OFFSET, FREE_OFFSET, RING_BYTES, node_number};
use nic_model::device::Beat;
use nic_model::frame::Assembler;
use nic_regs::admin::Opcode;
use nic_regs::csr;
use nic_regs::doorbell::Queue;
use nic_regs::tpt::{RIGHT_RDMA_READ, RIGHT_RDMA_WRITE};
use nic_regs::vi::rdma;
use tests::bare::{ADMIN_LOG2, Bare, QUEUES};
use tests::vi::{BareVi, HANDLE, REGION, region_body, vi_body};
use tests::{DeviceKind, LEVELS};

/// Bytes that are registered, from the free memory's start: what the VIs use. What is behind them is no
/// device's.
pub(crate) const REGION_BYTES: usize = 3 * 0x6_0000;
/// Connection of the VIs.
pub(crate) const CONNECTION: u16 = 0x51;
/// Cycles between two tries of a frame, which are few so that a run is short.
const RETRY_CYCLES: u32 = 300;
/// Tries.
const RETRY_LIMIT: u32 = 3;
/// Cycles in which everything must come to rest: a silent peer is given up after a few thousand.
const REST_CYCLES: u64 = 400_000;
/// Cycles without work after which the devices rest; a frame may be on the wire for some.
const QUIET_CYCLES: u64 = 64;

/// See the module.
pub(crate) struct Nodes {
    pub(crate) bare: Bare,
    /// By level, and by node.
    pub(crate) vis: [[BareVi; 2]; 3],
}

impl Nodes {
    /// Two nodes with an open channel, and at each level VIs that are connected, with all RDMA.
    pub(crate) fn connected() -> Self {
        let mut bare = Bare::new(DeviceKind::Model);
        bare.registers.push((csr::RETRY_TIMEOUT::OFFSET, RETRY_CYCLES));
        bare.registers.push((csr::RETRY_LIMIT::OFFSET, RETRY_LIMIT));
        bare.bring_up().expect("the admin ring runs");
        let mut region = region_body(0, REGION_BYTES, HANDLE);
        region[6] |= u32::from(RIGHT_RDMA_WRITE | RIGHT_RDMA_READ) << 8;
        let vis = [0, 1, 2].map(|level| {
            let number = 1 + u16::try_from(level).expect("small");
            [0, 1].map(|node| BareVi::new(node, number, level))
        });
        for node in 0..2 {
            bare.ok(node, Opcode::RegionSet, REGION.into(), &region);
            for (vis, level) in vis.iter().zip(LEVELS) {
                let number = u32::from(vis[node].number);
                let [owner, queues, longest] = vi_body(level);
                let body = [owner, queues, longest, rdma::MASK];
                bare.ok(node, Opcode::ViCreate, number, &body);
                let peer = u32::from(node_number(1 - node)) | number << 16;
                let connection = u32::from(CONNECTION) | rdma::MASK << rdma::PEER_LSB;
                bare.ok(node, Opcode::ViConnect, number, &[peer, connection]);
            }
        }
        (0..2).for_each(|node| bare.host_mut(node).keep_writes());
        Self { bare, vis }
    }

    /// Posts a descriptor with one segment at a VI.
    pub(crate) fn post(&mut self, (level, node): (usize, usize), queue: Queue, length: usize) {
        let vi = &mut self.vis[level][node];
        let segment = vi.segment(0, length);
        vi.post(&mut self.bare, queue, &[segment]);
    }

    /// Runs until both devices rest.
    ///
    /// # Panics
    /// If they do not.
    pub(crate) fn rest(&mut self) {
        rest(&mut self.bare);
    }

    /// What holds whatever was done but for the admin ring: the devices came to rest, wrote only where
    /// they may, sent whole frames, and carry out commands.
    pub(crate) fn check(&mut self) {
        self.rest();
        for node in 0..2 {
            self.check_writes(node);
            self.check_frames(node);
            let nop = self.bare.try_ok(node, Opcode::Nop, 0, &[]);
            assert!(nop.is_some(), "the admin ring of node {node} has stopped");
        }
    }

    fn check_writes(&self, node: usize) {
        let host = self.bare.host(node);
        assert!(host.stray_writes.is_empty(), "node {node}: {:x?}", host.stray_writes);
        let granted: [Range<usize>; 3] = [
            0..64 << ADMIN_LOG2,
            EVENT_OFFSET..EVENT_OFFSET + QUEUES * RING_BYTES,
            FREE_OFFSET..FREE_OFFSET + REGION_BYTES,
        ];
        for write in host.writes() {
            let Write::Memory(range, _) = write else { continue };
            let is_granted =
                |area: &Range<usize>| area.start <= range.start && range.end <= area.end;
            assert!(granted.iter().any(is_granted), "node {node} wrote {range:x?}");
        }
    }

    fn check_frames(&self, node: usize) {
        for beats in self.bare.bench.sent(node, 0) {
            let mut assembler = Assembler::default();
            let last = beats.len() - 1;
            let mut frame = None;
            for (at, &data) in beats.iter().enumerate() {
                frame = assembler.push(0, Beat { data, last: at == last });
            }
            let Some(Ok((frame, _))) = frame else {
                panic!("node {node} sent a malformed frame: {frame:?} of {beats:x?}")
            };
            assert_eq!(frame.to_beats(), beats, "what was decoded is encoded as it was");
        }
    }
}

/// Runs until both devices rest.
///
/// # Panics
/// If they do not in bounded time.
pub(crate) fn rest(bare: &mut Bare) {
    let end = bare.bench.now() + REST_CYCLES;
    let mut quiet = 0;
    while quiet < QUIET_CYCLES {
        bare.bench.step();
        let is_busy = (0..2).any(|node| bare.bench.device(node).busy());
        quiet = if is_busy { 0 } else { quiet + 1 };
        assert!(bare.bench.now() < end, "no rest after {REST_CYCLES} cycles");
    }
}
