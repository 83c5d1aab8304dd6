//! Executes a plan on a bench and records what can be seen.

use super::fenced;
use super::order::Order;
use super::plan::{Change, Plan};
use super::regions::PairRegion;
use super::trail::Trail;
use crate::random::Random;
use crate::simulation::SimulatedDevice;
use crate::testbench::{Hung, Testbench};
use nic_model::link::Faults;
use nic_regs::admin::{NO_QUEUE, Opcode};
use nic_regs::counter::Counter;
use nic_regs::doorbell::{Queue, TOKEN_OFFSET, Token};
use nic_regs::limits::POSTED_MAX;
use nic_regs::vi::{State, rdma};
use std::collections::{BTreeMap, HashSet};

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Seed of the program and of the faults.
    pub seed: u64,
    /// Fraction of frames lost.
    pub loss: f64,
    /// Fraction of frames corrupted.
    pub corrupt: f64,
    /// Latency of the wire, in cycles.
    pub latency: u64,
}

impl Settings {
    /// Those of a seed, with this fraction of frames lost, and corrupted.
    #[must_use]
    pub const fn new(seed: u64, faults: f64) -> Self {
        Self { seed, loss: faults, corrupt: faults, latency: seed % 100 }
    }

    /// Whether frames are lost, and with them what Unreliable VIs send.
    pub(super) fn is_lossy(&self) -> bool {
        self.loss > 0.0 || self.corrupt > 0.0
    }
}

/// One observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Phase, node and object.
    pub what: String,
    /// What was seen there.
    pub value: String,
    /// A device hangs, or breaks the contract by itself; the run ends here.
    pub is_failure: bool,
}

/// First retransmission time-out of the runs, in cycles: short, so that lossy runs stay short.
const RETRY_TIMEOUT: u32 = 1_000;
/// Cycles after which a node of a lossy run sends, so that a return of credits that was lost is made good while a
/// program waits: at least three of them are in what `Run::quiet` is then.
const KEEPALIVE: u32 = 10 * RETRY_TIMEOUT;
/// Cycles by which an interrupt may come later than moderation has it.
pub(super) const MODERATION_EXCESS: u64 = 64;

/// A program on two nodes.
pub(super) struct Run<'a> {
    pub(super) is_lossy: bool,
    pub(super) bench: Testbench,
    pub(super) plan: &'a Plan,
    pub(super) records: Vec<Record>,
    /// What there should be.
    others: Option<&'a [Record]>,
    /// Identity of the connection that was made last, and that of each pair.
    pub(super) connection: u16,
    pub(super) connections: BTreeMap<usize, u16>,
    /// Epochs of the channel, and the frames of each node that were sent before it was opened.
    pub(super) epochs: [u32; 2],
    pub(super) before: [usize; 2],
    /// Offset of the last descriptor posted on each queue since the queues were empty: node, pair,
    /// queue.
    pub(super) tail: BTreeMap<(usize, usize, u8), usize>,
    /// Descriptors of the phase: what, node, offset.
    pub(super) posted: Vec<(String, usize, usize)>,
    pub(super) frames_seen: [usize; 2],
    pub(super) sequences: [HashSet<(u16, u16)>; 2],
    pub(super) quiet: u64,
    /// Interrupts of each vector that were recorded.
    pub(super) interrupts: [[u64; 4]; 2],
    pub(super) order: [Order; 2],
    /// Events of completions wait in their rings.
    pub(super) unread: bool,
    /// By phase, where they are kept.
    trails: Vec<Trail>,
    pub(super) random: Random,
}

/// Runs a plan on two devices. The last record describes a failure, if there was one. It ends with the phase in
/// which the devices do something else than others did.
#[must_use]
pub(super) fn execute<'a>(
    settings: &Settings,
    plan: &'a Plan,
    devices: [SimulatedDevice; 2],
    others: Option<&'a [Record]>,
) -> Vec<Record> {
    let mut run = Run::new(settings, plan, devices);
    run.others = others;
    run.finish();
    run.records
}

/// Runs a plan once more, also for what the devices do in each phase, as far as they come.
#[must_use]
pub(super) fn trails(
    settings: &Settings,
    plan: &Plan,
    devices: [SimulatedDevice; 2],
) -> (Vec<Record>, Vec<Trail>) {
    let mut run = Run::new(settings, plan, devices);
    run.bench.keep_trail();
    run.finish();
    let last = run.bench.take_trail();
    if run.records.last().is_some_and(|record| record.is_failure) {
        run.trails.push(last);
    }
    (run.records, run.trails)
}

/// Runs a plan up to a cycle, or a little behind it, for what the devices say themselves.
pub(super) fn replay(settings: &Settings, plan: &Plan, devices: [SimulatedDevice; 2], until: u64) {
    let mut run = Run::new(settings, plan, devices);
    run.bench.end_at(until);
    // It ends with an error there, if not before.
    let _ = run.all();
}

impl<'a> Run<'a> {
    fn new(settings: &Settings, plan: &'a Plan, devices: [SimulatedDevice; 2]) -> Self {
        let faults = Faults {
            seed: settings.seed,
            loss: settings.loss,
            corrupt: settings.corrupt,
            unreliable_loss: plan.unreliable_loss,
            ..Faults::default()
        };
        let lossy = settings.is_lossy();
        let mut random = Random::new(!settings.seed);
        let mut run = Self {
            is_lossy: lossy,
            bench: Testbench::with_names(devices, settings.latency, &faults, &plan.names),
            plan,
            records: Vec::new(),
            others: None,
            connection: u16::try_from(random.below(1 << 16)).expect("below 2^16"),
            connections: BTreeMap::new(),
            epochs: plan.names.epochs,
            before: [0; 2],
            random,
            tail: BTreeMap::new(),
            posted: Vec::new(),
            frames_seen: [0; 2],
            sequences: [HashSet::new(), HashSet::new()],
            // Longer than the pause before a retransmission, where there is any. Else a device is
            // busy as long as it waits for something.
            quiet: if lossy { 40 * u64::from(RETRY_TIMEOUT) } else { 600 },
            interrupts: [[0; 4]; 2],
            order: Default::default(),
            unread: false,
            trails: Vec::new(),
        };
        (0..2).for_each(|node| run.bench.host_mut(node).keep_writes());
        run.bench.set_keepalive(if lossy { KEEPALIVE } else { 0 });
        run
    }

    pub(super) fn record(&mut self, what: &str, value: &str) {
        self.records.push(Record { what: what.into(), value: value.into(), is_failure: false });
    }

    fn admin(&mut self, node: usize, op: Opcode, index: u32, body: &[u32]) -> Result<u32, Hung> {
        let (status, mut result) = self.bench.admin(node, op, index, body)?;
        if op == Opcode::ViQuery && result & 0xf == State::Error as u32 {
            // The progress bits mean nothing in Error.
            result &= 0xfff;
        }
        self.record(&format!("node {node} {op:?} {index}"), &format!("{status} {result:#x}"));
        Ok(result)
    }

    /// Runs it; the last record describes a failure.
    fn finish(&mut self) {
        if let Err(Hung(value)) = self.all() {
            self.records.push(Record { what: "failure".into(), value, is_failure: true });
        }
    }

    fn all(&mut self) -> Result<(), Hung> {
        self.try_registers(usize::from(!self.plan.seed.is_multiple_of(2)))?;
        self.bench.bring_up(RETRY_TIMEOUT, self.plan.event_log2)?;
        self.create()?;
        for phase in 0..self.plan.phases.len() {
            if self.differs() {
                return Ok(());
            }
            self.phase(phase)?;
        }
        (0..2).try_for_each(|node| self.observe_registers("in the end", node))?;
        if self.plan.overflows { self.overflow() } else { Ok(()) }
    }

    /// Whether what is recorded is not what there should be.
    fn differs(&self) -> bool {
        self.others.is_some_and(|others| !others.starts_with(&self.records))
    }

    /// Regions, VIs, connections.
    fn create(&mut self) -> Result<(), Hung> {
        (0..2).try_for_each(|node| self.create_on(node, 0))?;
        (0..self.plan.pairs.len()).try_for_each(|n| self.connect(n))
    }

    /// Regions and VIs of a node, as they are in a phase.
    fn create_on(&mut self, node: usize, phase: usize) -> Result<(), Hung> {
        let plan = self.plan;
        let queues = plan.names.queues[node];
        for (n, pair) in plan.pairs.iter().enumerate() {
            for of in PairRegion::ALL {
                let body = of.region(plan, phase, (n, node)).body();
                self.admin(node, Opcode::RegionSet, of.index(n).into(), &body)?;
            }
            let body = [
                u32::from(pair.domain[node])
                    | (pair.reliability as u32) << 8
                    | u32::from(pair.tag[node]) << 16,
                u32::from(queues[1]) | u32::from(queues[pair.recv_events[node]]) << 16,
                pair.max_transfer,
                pair.allows[node],
            ];
            self.admin(node, Opcode::ViCreate, pair.vi[node].into(), &body)?;
        }
        Ok(())
    }

    fn connect(&mut self, n: usize) -> Result<(), Hung> {
        self.connect_from(n, 0)
    }

    /// Connects the VI of a pair on this node, then the other one.
    pub(super) fn connect_from(&mut self, n: usize, first: usize) -> Result<(), Hung> {
        let pair = &self.plan.pairs[n];
        // Of two that follow each other on a VI, one bit may be all that differs.
        self.connection ^= 1 << self.random.below(16);
        self.connections.insert(n, self.connection);
        for node in [first, 1 - first] {
            let body = [
                u32::from(self.bench.number(1 - node)) | u32::from(pair.vi[1 - node]) << 16,
                u32::from(self.connection) | pair.reported[1 - node] << rdma::PEER_LSB,
            ];
            self.admin(node, Opcode::ViConnect, pair.vi[node].into(), &body)?;
        }
        Ok(())
    }

    /// Disconnects pairs, whose queues are empty then.
    fn disconnect(&mut self, phase: usize, pairs: &[usize]) -> Result<(), Hung> {
        if pairs.is_empty() {
            return Ok(());
        }
        // An event that finds its ring full is lost by the disconnect: which one it is must not be timing.
        self.bench.settle(self.quiet)?;
        self.observe_kept_events(phase)?;
        for node in 0..2 {
            for &n in pairs {
                let vi = self.plan.pairs[n].vi[node];
                self.admin(node, Opcode::ViDisconnect, vi.into(), &[])?;
                self.forget_queues(n);
            }
            // A VI may have stopped alone; its peer is notified now, and is Connected until then.
            self.bench.settle(self.quiet)?;
        }
        Ok(())
    }

    fn phase(&mut self, phase: usize) -> Result<(), Hung> {
        let plan = self.plan;
        self.arm(phase);
        let of = &plan.phases[phase];
        for poke in &of.pokes {
            let data = vec![poke.fill; poke.length];
            self.bench.device(poke.node).bar_write(poke.bar, poke.offset, &data);
        }
        self.refuse(phase)?;
        self.forge(phase)?;
        for (i, &(node, domain)) in of.messages.iter().enumerate() {
            let index = u32::from(self.bench.number(1 - node)) | u32::from(domain) << 8;
            let mut random = Random::new(plan.seed_of([phase, i, 0xfd]));
            let body = [(); 12].map(|()| u32::try_from(random.bits() >> 32).expect("32 bits"));
            self.admin(node, Opcode::MessageSend, index, &body)?;
        }
        self.posted.clear();
        let idle: Vec<usize> =
            (0..plan.pairs.len()).filter(|&n| of.traffic[n].while_idle).collect();
        self.disconnect(phase, &idle)?;
        for (n, traffic) in of.traffic.iter().enumerate() {
            self.post_receives(phase, n, traffic);
        }
        let mut fenced = self.begin_fenced(phase)?;
        self.bench.settle(500)?;
        self.post_while_idle(phase, &idle)?;
        self.post_sends(phase, fenced.as_mut())?;
        self.bench.settle(self.quiet + u64::from(of.moderation) + MODERATION_EXCESS)?;
        if let Some(fenced) = fenced {
            fenced.end(&mut self.bench, self.quiet)?;
        }
        self.unmask(phase)?;
        self.observe(phase)?;
        let trail = self.bench.take_trail();
        self.trails.push(trail);
        if let Some(node) = of.closes {
            self.break_message(phase)?;
            self.close(phase, node)?;
        }
        self.mend(phase)?;
        match of.resets {
            Some(node) => self.reset(phase, node),
            None => Ok(()),
        }
    }

    /// Closes the channel at a node, which the other one learns of, and opens it again.
    fn close(&mut self, phase: usize, node: usize) -> Result<(), Hung> {
        let peer = u32::from(self.bench.number(1 - node));
        self.admin(node, Opcode::PeerClose, peer, &[])?;
        self.bench.settle(self.quiet)?;
        if self.plan.phases[phase].broken.is_some() {
            // Answers to what nobody sent.
            self.frames_seen = [0, 1].map(|node| self.bench.sent_count(node));
        }
        self.open(phase)
    }

    /// Opens another channel than that of the phase.
    fn open(&mut self, phase: usize) -> Result<(), Hung> {
        // Of two channels that follow each other, one bit of the tag may be all that differs.
        self.epochs[phase % 2] ^= 1 << self.random.below(16);
        self.before = [0, 1].map(|node| self.bench.sent_count(node));
        // It may have the tag of one before that.
        self.sequences = Default::default();
        for node in 0..2 {
            let peer = u32::from(self.bench.number(1 - node));
            let body = [self.epochs[node], self.plan.names.credits[node]];
            self.admin(node, Opcode::PeerOpen, peer, &body)?;
        }
        self.bench.settle(self.quiet.min(4 * u64::from(RETRY_TIMEOUT)))
    }

    /// Resets a node and sets it up again, as it is for the phase behind this one.
    fn reset(&mut self, phase: usize, node: usize) -> Result<(), Hung> {
        let peer = u32::from(self.bench.number(node));
        let cut = self.begin_cut(phase)?;
        if let Some(cut) = &cut {
            cut.post_sends(&mut self.bench);
            cut.pass(&mut self.bench);
            self.bench.reset(node);
        }
        self.admin(1 - node, Opcode::PeerClose, peer, &[])?;
        self.bench.settle(self.quiet)?;
        if let Some(cut) = cut {
            cut.end_cut(&mut self.bench, 1 - node)?;
            // What it sent is not compared.
            self.frames_seen = [0, 1].map(|node| self.bench.sent_count(node));
        } else {
            self.bench.reset(node);
        }
        self.order[node].forget_records();
        self.bench.bring_up_node(node, RETRY_TIMEOUT)?;
        self.create_on(node, phase + 1)?;
        self.open(phase)?;
        for (n, pair) in self.plan.pairs.iter().enumerate() {
            self.admin(1 - node, Opcode::ViDisconnect, pair.vi[1 - node].into(), &[])?;
            self.forget_queues(n);
            self.connect(n)?;
        }
        Ok(())
    }

    /// The queues of a pair are empty.
    fn forget_queues(&mut self, pair: usize) {
        self.tail.retain(|&(_, n, _), _| n != pair);
    }

    /// Posts one receive more than a queue takes, and a few.
    fn overflow(&mut self) -> Result<(), Hung> {
        let (node, plan) = (0, self.plan);
        let is_free = |vi: &u16| plan.pairs.iter().all(|pair| pair.vi[node] != *vi);
        let (Some(vi), domain) = ((0..1024).find(is_free), plan.pairs[0].domain[node]) else {
            return Ok(());
        };
        // Of VIs that fences have stopped.
        let before = self.counter(node, Counter::DoorbellDropped)?;
        let body = [u32::from(domain) | 1 << 8, u32::from(NO_QUEUE) * 0x1_0001, 1, 0];
        self.admin(node, Opcode::ViCreate, vi.into(), &body)?;
        let token = Token { vi, region: 0, offset_64: 0, segments: 1, queue: Queue::Recv };
        for _ in 0..u32::from(POSTED_MAX) + 3 {
            self.bench.doorbell(node, domain, TOKEN_OFFSET, token.to_bits());
            self.bench.step();
        }
        self.bench.settle(self.quiet)?;
        let dropped = self.counter(node, Counter::DoorbellDropped)?.wrapping_sub(before);
        self.record("posts to a queue that is full", &dropped.to_string());
        Ok(())
    }

    /// Sets up the traffic that a fence will end.
    fn begin_fenced(&mut self, phase: usize) -> Result<Option<fenced::Run<'a>>, Hung> {
        self.begin(self.plan.phases[phase].fenced.as_ref(), [phase, 0, 0xfe], phase + 1)
    }

    /// And that which a reset will end, when all is at rest.
    fn begin_cut(&mut self, phase: usize) -> Result<Option<fenced::Run<'a>>, Hung> {
        // Its generation is not that of the fence in this phase.
        let of = self.plan.phases[phase].cut.as_ref();
        let cut = self.begin(of, [phase, 0, 0xfc], 0x100 + phase)?;
        if cut.is_some() {
            self.bench.settle(500)?;
        }
        Ok(cut)
    }

    fn begin(
        &mut self,
        of: Option<&'a fenced::Fenced>,
        place: [usize; 3],
        generation: usize,
    ) -> Result<Option<fenced::Run<'a>>, Hung> {
        let Some(of) = of else { return Ok(None) };
        let mut random = Random::new(self.plan.seed_of(place));
        let generation = u16::try_from(generation).expect("few phases");
        fenced::Run::begin(&mut self.bench, of, generation, &mut random).map(Some)
    }

    /// The regions of a pair become others, with handles of another generation.
    pub(super) fn change(&mut self, phase: usize, change: Change) -> Result<(), Hung> {
        let Change { pair, node, .. } = change;
        for of in [PairRegion::Data, PairRegion::Descriptors] {
            let index = of.index(pair).into();
            let body = of.region(self.plan, phase + 1, (pair, node)).body();
            self.admin(node, Opcode::RegionClear, index, &[])?;
            self.admin(node, Opcode::RegionSet, index, &body)?;
        }
        Ok(())
    }

    /// Connects again what an error has stopped.
    fn mend(&mut self, phase: usize) -> Result<(), Hung> {
        let plan = self.plan;
        let mut stopped = Vec::new();
        for (n, pair) in plan.pairs.iter().enumerate() {
            // What was lost has left receives behind.
            let mut connected = plan.unreliable_loss == 0.0;
            for node in 0..2 {
                let state = self.admin(node, Opcode::ViQuery, pair.vi[node].into(), &[])?;
                connected &= state & 0xf == State::Connected as u32;
            }
            if !connected {
                stopped.push(n);
            }
        }
        self.disconnect(phase, &stopped)?;
        stopped.into_iter().try_for_each(|n| self.connect(n))
    }
}
