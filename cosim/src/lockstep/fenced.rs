//! A pair of VIs whose traffic a fence ends in its midst, beside the traffic that is compared.
//!
//! How far it comes is timing, so neither its descriptors nor its frames are compared. On each device it
//! must hold by itself that nothing moves behind the fence (contract 8), that descriptors end in order, that
//! what is done is whole, and that no byte changes which no message names. The other VIs must not notice.

use crate::random::Random;
use crate::testbench::host::Write;
use crate::testbench::{EVENT_OFFSET, Hung, Region, Testbench, va};
use nic_regs::admin::{AdminStatus, NO_QUEUE, Opcode};
use nic_regs::desc::{self, ControlSegment, DataSegment, control, status};
use nic_regs::doorbell::{Queue, TOKEN_OFFSET, Token};
use nic_regs::vi::{Reliability, rdma};
use nic_regs::{limits, tpt};
use std::ops::Range;

/// Its part of a node's memory: first byte. Behind it nothing is compared.
pub(super) const FENCED_OFFSET: usize = 6 << 20;
/// Most messages.
const MOST: usize = 12;
/// Longest of them, in bytes: two frames.
const LONGEST: u32 = 4_500;
/// Bytes for one message, where it comes from and where it goes.
const STRIDE: usize = 4_608;
/// Bytes of the region of its data.
const DATA_BYTES: usize = 2 * MOST * STRIDE;
/// First descriptor of the send queue; those of the receive queue follow.
const DESC_OFFSET: usize = FENCED_OFFSET + DATA_BYTES;
/// Bytes of the region of its descriptors, which are 64 bytes each.
const DESC_BYTES: usize = 2 * MOST * 64;
/// Regions of its data and of its descriptors.
const REGIONS: [u16; 2] = [600, 601];
/// Its page of doorbells, and the domain of its regions.
const DOMAIN: u8 = 63;
/// Its tag.
const TAG: u16 = 0x7fff;

/// What ends the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fence {
    /// The region of its data is cleared.
    Data,
    /// That of its descriptors.
    Descriptors,
    /// The VI is disconnected.
    Disconnect,
    /// And destroyed.
    Destroy,
}

/// Traffic and its end.
#[derive(Clone, Debug)]
pub(super) struct Fenced {
    /// VI number on both nodes.
    pub(super) vi: u16,
    /// Level: a reliable one.
    pub(super) reliability: Reliability,
    /// Operation of every send descriptor, see [`control`].
    pub(super) operation: u16,
    /// Node that posts them.
    pub(super) sender: usize,
    /// Of each message, in bytes.
    pub(super) lengths: Vec<u32>,
    /// Node where the fence is.
    pub(super) node: usize,
    /// What it is.
    pub(super) fence: Fence,
    /// How many messages of each of the other VIs are posted before it.
    pub(super) after: usize,
    /// How many writes of this traffic, at the node of the fence, are waited for, and for how many cycles at
    /// most.
    pub(super) writes: usize,
    pub(super) patience: u64,
    /// Cycles from then to the fence.
    pub(super) pause: u64,
}

impl Fenced {
    /// Chooses random traffic, on a VI number that is not taken.
    pub(super) fn random(random: &mut Random, is_taken: impl Fn(u16) -> bool) -> Self {
        let mut below = |limit: usize| usize::try_from(random.below(limit as u64)).expect("small");
        let vi = loop {
            let vi = u16::try_from(below(limits::VI_COUNT)).expect("a VI");
            if !is_taken(vi) {
                break vi;
            }
        };
        let operation = [control::OP_SENDRECV, control::OP_RDMA_WRITE, control::OP_RDMA_READ];
        let longest = [100, 1_000, LONGEST as usize][below(3)];
        let lengths: Vec<u32> =
            (0..=below(MOST)).map(|_| u32::try_from(below(longest + 1)).expect("small")).collect();
        let longest_pause = [20, 300][below(2)];
        // About as long as all of it takes.
        let whole = lengths.iter().map(|&length| 100 + length as usize / 4).sum::<usize>();
        let (operation, sender) = (operation[below(3)], below(2));
        // Most often where bytes are written: these are what a fence holds back.
        let target = if operation == control::OP_RDMA_READ { sender } else { 1 - sender };
        let node = if below(4) == 0 { 1 - target } else { target };
        Self {
            vi,
            reliability: [Reliability::Delivery, Reliability::Reception][below(2)],
            operation,
            sender,
            node,
            fence: [Fence::Data, Fence::Descriptors, Fence::Disconnect, Fence::Destroy][below(4)],
            after: below(3),
            // A message is written in bursts, and its status.
            writes: below(2 * lengths.len()),
            patience: whole as u64,
            pause: below(longest_pause) as u64,
            lengths,
        }
    }

    fn reads(&self) -> bool {
        self.operation == control::OP_RDMA_READ
    }

    /// Nodes that the bytes come from and go to.
    fn way(&self) -> [usize; 2] {
        let there = [self.sender, 1 - self.sender];
        if self.reads() { [there[1], there[0]] } else { there }
    }
}

/// Where the bytes of message `i` come from.
fn source(i: usize) -> usize {
    FENCED_OFFSET + i * STRIDE + i * 3 % 8
}

/// Where they go: many short ones lie across a multiple of 128, where writes are cut.
fn target(i: usize) -> usize {
    FENCED_OFFSET + (MOST + i) * STRIDE + i * 61 % (STRIDE - LONGEST as usize)
}

fn descriptor(queue: Queue, i: usize) -> usize {
    DESC_OFFSET + (queue as usize * MOST + i) * 64
}

/// The run of one.
pub(super) struct Run<'a> {
    of: &'a Fenced,
    generation: u16,
    /// Data of both nodes before the first message.
    before: [Vec<u8>; 2],
    /// What must not be written any more, and how many writes there were before the fence was reported.
    closed: Option<(Range<usize>, usize)>,
}

impl<'a> Run<'a> {
    /// Sets it up, with its receives posted.
    pub(super) fn begin(
        bench: &mut Testbench,
        of: &'a Fenced,
        generation: u16,
        random: &mut Random,
    ) -> Result<Self, Hung> {
        let rights = tpt::RIGHT_VALID | tpt::RIGHT_RDMA_WRITE | tpt::RIGHT_RDMA_READ;
        let allows = rdma::WRITE | rdma::READ;
        for node in 0..2 {
            let parts = [(FENCED_OFFSET, DATA_BYTES), (DESC_OFFSET, DESC_BYTES)];
            for (region, (offset, bytes)) in REGIONS.into_iter().zip(parts) {
                let (tag, domain) = (TAG, DOMAIN);
                let body = Region { offset, bytes, tag, generation, domain, rights }.body();
                bench.command(node, Opcode::RegionSet, region.into(), &body)?;
            }
            let level = (of.reliability as u32) << 8;
            let body = [
                u32::from(DOMAIN) | level | u32::from(TAG) << 16,
                u32::from(NO_QUEUE) * 0x1_0001,
                limits::MAX_TRANSFER_BYTES,
                allows,
            ];
            bench.command(node, Opcode::ViCreate, of.vi.into(), &body)?;
            let peer = u32::from(bench.number(1 - node)) | u32::from(of.vi) << 16;
            let connection = u32::from(generation) | allows << rdma::PEER_LSB;
            bench.command(node, Opcode::ViConnect, of.vi.into(), &[peer, connection])?;
        }
        let before = [0, 1].map(|node| {
            let bytes: Vec<u8> =
                (0..DATA_BYTES / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
            bench.host_mut(node).put(FENCED_OFFSET, &bytes);
            bench.host_mut(node).put(DESC_OFFSET, &[0; DESC_BYTES]);
            bytes
        });
        let run = Self { of, generation, before, closed: None };
        if of.operation == control::OP_SENDRECV {
            run.post(bench, 1 - of.sender, Queue::Recv);
        }
        Ok(run)
    }

    /// Posts all sends.
    pub(super) fn post_sends(&self, bench: &mut Testbench) {
        self.post(bench, self.of.sender, Queue::Send);
    }

    fn post(&self, bench: &mut Testbench, node: usize, queue: Queue) {
        let handle = |region| tpt::Handle::new(REGIONS[region], self.generation).0;
        let place = |offset, length| DataSegment { address: va(offset), handle: handle(0), length };
        let count = self.of.lengths.len();
        for (i, &length) in self.of.lengths.iter().enumerate() {
            let segments = match (queue, self.of.operation) {
                (Queue::Recv, _) => vec![place(target(i), LONGEST)],
                (_, control::OP_RDMA_WRITE) => vec![place(target(i), 0), place(source(i), length)],
                (_, control::OP_RDMA_READ) => vec![place(source(i), 0), place(target(i), length)],
                _ => vec![place(source(i), length)],
            };
            let last = i + 1 == count;
            let control = ControlSegment {
                next: if last { 0 } else { va(descriptor(queue, i + 1)) },
                next_handle: if last { 0 } else { handle(1) },
                seg_count: u16::try_from(segments.len()).expect("two at most"),
                control: if queue == Queue::Send { self.of.operation } else { 0 },
                ..ControlSegment::default()
            };
            let host = bench.host_mut(node);
            host.put(descriptor(queue, i), &control.to_bytes());
            for (at, segment) in segments.iter().enumerate() {
                host.put(descriptor(queue, i) + 32 + 16 * at, &segment.to_bytes());
            }
        }
        for i in 0..count {
            let token = Token {
                vi: self.of.vi,
                region: REGIONS[1],
                offset_64: u32::try_from((descriptor(queue, i) - DESC_OFFSET) / 64).expect("small"),
                segments: 1 + u8::from(queue == Queue::Send && self.of.operation != 0),
                queue,
            };
            bench.doorbell(node, DOMAIN, TOKEN_OFFSET, token.to_bits());
        }
    }

    /// Whether the fence comes when every other VI has posted so many messages.
    pub(super) fn is_due(&self, posted: usize) -> bool {
        self.closed.is_none() && posted >= self.of.after
    }

    /// The fence; from here on nothing may move that it closed.
    pub(super) fn fence(&mut self, bench: &mut Testbench) -> Result<(), Hung> {
        let Fenced { vi, node, fence, .. } = *self.of;
        self.pass(bench);
        let range = match fence {
            Fence::Data => FENCED_OFFSET..DESC_OFFSET,
            Fence::Descriptors => DESC_OFFSET..DESC_OFFSET + DESC_BYTES,
            Fence::Disconnect | Fence::Destroy => FENCED_OFFSET..DESC_OFFSET + DESC_BYTES,
        };
        let (opcode, index) = match fence {
            Fence::Data => (Opcode::RegionClear, REGIONS[0]),
            Fence::Descriptors => (Opcode::RegionClear, REGIONS[1]),
            Fence::Disconnect | Fence::Destroy => (Opcode::ViDisconnect, vi),
        };
        bench.command(node, opcode, index.into(), &[])?;
        let reports =
            |write: &Write| matches!(write, Write::Memory(at, _) if at.start < EVENT_OFFSET);
        let reported = bench.host(node).writes().iter().rposition(reports);
        self.closed = Some((range, reported.ok_or_else(|| self.broken("nobody reported it"))?));
        if fence == Fence::Destroy {
            destroy(bench, node, vi)?;
        }
        Ok(())
    }

    /// Lets some of it pass.
    pub(super) fn pass(&self, bench: &mut Testbench) {
        self.await_writes(bench);
        bench.run(self.of.pause);
    }

    fn await_writes(&self, bench: &mut Testbench) {
        let (node, end) = (self.of.node, bench.now() + self.of.patience);
        let (mut at, mut count) = (bench.host(node).writes().len(), 0);
        while count < self.of.writes && bench.now() < end {
            bench.step();
            let new = &bench.host(node).writes()[at..];
            let is_own =
                |write: &&Write| matches!(write, Write::Memory(at, _) if at.start >= FENCED_OFFSET);
            (at, count) = (at + new.len(), count + new.iter().filter(is_own).count());
        }
    }

    /// Checks what came of it, when all is at rest, and takes it down.
    pub(super) fn end(mut self, bench: &mut Testbench, quiet: u64) -> Result<(), Hung> {
        let Fenced { vi, node, fence, .. } = *self.of;
        let (range, before) = self.closed.take().expect("behind the fence");
        let is_closed =
            |write: &Write| matches!(write, Write::Memory(at, _) if range.contains(&at.start));
        if let Some(write) = bench.host(node).writes()[before..].iter().find(|it| is_closed(it)) {
            return Err(self.broken(&format!("a write behind it: {write:x?}")));
        }
        self.check_order(bench)?;
        self.check_bytes(bench)?;
        let destroyed = |at| at == node && fence == Fence::Destroy;
        for at in (0..2).filter(|&at| !destroyed(at)) {
            bench.command(at, Opcode::ViDisconnect, vi.into(), &[])?;
        }
        bench.settle(quiet)?;
        for at in 0..2 {
            if !destroyed(at) {
                bench.command(at, Opcode::ViDestroy, vi.into(), &[])?;
            }
            for (region, cleared) in REGIONS.into_iter().zip([Fence::Data, Fence::Descriptors]) {
                if at != node || fence != cleared {
                    bench.command(at, Opcode::RegionClear, region.into(), &[])?;
                }
            }
        }
        Ok(())
    }

    /// Checks what came of it, when a reset has ended it and all is at rest, and takes it down at the node that
    /// was not reset.
    pub(super) fn end_cut(self, bench: &mut Testbench, node: usize) -> Result<(), Hung> {
        self.check_order(bench)?;
        self.check_bytes(bench)?;
        bench.command(node, Opcode::ViDisconnect, self.of.vi.into(), &[])?;
        destroy(bench, node, self.of.vi)?;
        REGIONS.into_iter().try_for_each(|region| {
            bench.command(node, Opcode::RegionClear, region.into(), &[]).map(drop)
        })
    }

    fn broken(&self, what: &str) -> Hung {
        Hung(format!("{:?} of VI {} on node {}: {what}", self.of.fence, self.of.vi, self.of.node))
    }

    fn status(&self, bench: &Testbench, queue: Queue, i: usize) -> u32 {
        let node = if queue == Queue::Send { self.of.sender } else { 1 - self.of.sender };
        bench.host(node).word(descriptor(queue, i) + 28)
    }

    /// Descriptors end one after the other, and none behind one in error.
    fn check_order(&self, bench: &Testbench) -> Result<(), Hung> {
        for queue in [Queue::Send, Queue::Recv] {
            let statuses = (0..self.of.lengths.len()).map(|i| self.status(bench, queue, i));
            let behind =
                statuses.skip_while(|s| s & status::DONE != 0 && s & status::ERROR_MASK == 0);
            if behind.skip(1).any(|status| status != 0) {
                return Err(self.broken(&format!("{queue:?} queue out of order")));
            }
        }
        Ok(())
    }

    /// What is done is whole, and what no message names is as it was.
    fn check_bytes(&self, bench: &Testbench) -> Result<(), Hung> {
        let [from, to] = self.of.way();
        let data = |node: usize| &bench.host(node).memory[FENCED_OFFSET..DESC_OFFSET];
        let mut now = data(to).to_vec();
        for (i, &length) in self.of.lengths.iter().enumerate() {
            let sent = &self.before[from][source(i) - FENCED_OFFSET..][..length as usize];
            let place = target(i) - FENCED_OFFSET..target(i) - FENCED_OFFSET + length as usize;
            let old = &self.before[to][place.clone()];
            let came = &now[place.clone()];
            let real = came
                .iter()
                .zip(old)
                .zip(sent)
                .all(|((came, old), sent)| came == old || came == sent);
            if !real {
                return Err(self.broken(&format!("message {i} has bytes that nobody sent")));
            }
            let good = |queue| {
                let bits = self.status(bench, queue, i);
                bits & status::DONE != 0 && bits & status::ERROR_MASK == 0
            };
            let is_notified = self.of.reads() || self.of.reliability == Reliability::Reception;
            if (good(Queue::Recv) || is_notified && good(Queue::Send)) && came != sent {
                return Err(self.broken(&format!("message {i} is done and not whole")));
            }
            let at =
                descriptor(Queue::Recv, i) + usize::try_from(desc::LENGTH_OFFSET).expect("small");
            if good(Queue::Recv) && bench.host(to).word(at) != length {
                return Err(self.broken(&format!("message {i} is done with another length")));
            }
            now[place].copy_from_slice(old);
        }
        if now != self.before[to] || data(from) != self.before[from] {
            return Err(self.broken("bytes changed that no message names"));
        }
        Ok(())
    }
}

/// Destroys a VI whose Fin may still be pending.
fn destroy(bench: &mut Testbench, node: usize, vi: u16) -> Result<(), Hung> {
    for _ in 0..1_000 {
        let (status, _) = bench.admin(node, Opcode::ViDestroy, vi.into(), &[])?;
        match AdminStatus::from_bits(status) {
            Some(AdminStatus::Ok) => return Ok(()),
            Some(AdminStatus::Busy) => bench.run(100),
            _ => return Err(Hung(format!("ViDestroy {vi} on node {node}: status {status}"))),
        }
    }
    Err(Hung(format!("VI {vi} on node {node} has something pending for its peer for ever")))
}
