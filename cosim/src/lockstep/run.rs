//! Executes a plan on a bench and records what can be seen.

use super::fenced::{self, FENCED_OFFSET};
use super::order::Order;
use super::plan::{Message, Pair, Plan, Spec, Traffic, Unreachable};
use super::push;
use super::regions::{PairRegion, area, local, remote, slot};
use crate::random::Random;
use crate::simulation::SimulatedDevice;
use crate::testbench::{FREE_OFFSET, Hung, Testbench, header, node_number, va};
use nic_model::link::Faults;
use nic_regs::admin::Opcode;
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::csr;
use nic_regs::desc::{ControlSegment, DataSegment};
use nic_regs::doorbell::{Queue, TOKEN_OFFSET, Token};
use nic_regs::event::Kind;
use nic_regs::frame::{Type, flag};
use nic_regs::vi::{State, rdma};
use std::collections::{BTreeMap, BTreeSet, HashSet};

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
/// Counters that do not depend on timing.
const STEADY: &[Counter] = &[
    Counter::DoorbellBad,
    Counter::MessagesSent,
    Counter::MessagesReceived,
    Counter::MessagesRefused,
    Counter::ViStops,
    Counter::RefusalsSent,
    Counter::UnreliableEmpty,
    Counter::UnreliableGap,
    Counter::SendsCompleted,
    Counter::RecvsCompleted,
    Counter::ReadTimeouts,
    Counter::UnexpectedCompletions,
    Counter::BadRegister,
    Counter::AdminCommands,
    Counter::AdminErrors,
    Counter::PeersLost,
    Counter::RdmaRefused,
];
/// Those that traffic behind a fence changes by no fixed number.
const FENCED: &[Counter] = &[
    Counter::ViStops,
    Counter::RefusalsSent,
    Counter::SendsCompleted,
    Counter::RecvsCompleted,
    Counter::AdminCommands,
    Counter::AdminErrors,
    Counter::RdmaRefused,
];

struct Run<'a> {
    bench: Testbench,
    plan: &'a Plan,
    records: Vec<Record>,
    /// Identity of the connection that was made last.
    connection: u16,
    /// Offset of the last descriptor posted on each queue since the queues were empty: node, pair,
    /// queue.
    tail: BTreeMap<(usize, usize, u8), usize>,
    /// Descriptors of the phase: what, node, offset.
    posted: Vec<(String, usize, usize)>,
    frames_seen: [usize; 2],
    sequences: [HashSet<(u16, u16)>; 2],
    quiet: u64,
    /// Interrupts of each vector that were recorded.
    interrupts: [[u64; 4]; 2],
    order: [Order; 2],
    random: Random,
}

/// Runs a plan on two devices. The last record describes a failure, if there was one.
#[must_use]
pub(super) fn execute(
    settings: &Settings,
    plan: &Plan,
    devices: [SimulatedDevice; 2],
) -> Vec<Record> {
    let faults = Faults {
        seed: settings.seed,
        loss: settings.loss,
        corrupt: settings.corrupt,
        ..Faults::default()
    };
    let lossy = settings.is_lossy();
    let mut random = Random::new(!settings.seed);
    let mut run = Run {
        bench: Testbench::new(devices, settings.latency, &faults),
        plan,
        records: Vec::new(),
        connection: u16::try_from(random.below(1 << 16)).expect("below 2^16"),
        random,
        tail: BTreeMap::new(),
        posted: Vec::new(),
        frames_seen: [0; 2],
        sequences: [HashSet::new(), HashSet::new()],
        // Longer than the pause before a retransmission, where there is any.
        quiet: if lossy { 40 * u64::from(RETRY_TIMEOUT) } else { 1_500 },
        interrupts: [[0; 4]; 2],
        order: Default::default(),
    };
    (0..2).for_each(|node| run.bench.host_mut(node).keep_writes());
    if let Err(Hung(value)) = run.all() {
        run.records.push(Record { what: "failure".into(), value, is_failure: true });
    }
    run.records
}

/// A seed for one message.
fn plan_seed(seed: u64, place: [usize; 3]) -> u64 {
    place.iter().fold(seed, |seed, &n| seed.wrapping_mul(0x100_0000_01b3) ^ n as u64)
}

impl<'a> Run<'a> {
    fn record(&mut self, what: &str, value: &str) {
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

    fn all(&mut self) -> Result<(), Hung> {
        self.bench.bring_up(RETRY_TIMEOUT, self.plan.event_log2)?;
        self.create()?;
        for phase in 0..self.plan.phases.len() {
            self.phase(phase)?;
        }
        Ok(())
    }

    /// Regions, VIs, connections.
    fn create(&mut self) -> Result<(), Hung> {
        let plan = self.plan;
        for (n, pair) in plan.pairs.iter().enumerate() {
            for node in 0..2 {
                for of in PairRegion::ALL {
                    let body = of.region(plan, n, node).body();
                    self.admin(node, Opcode::RegionSet, of.index(n).into(), &body)?;
                }
                let body = [
                    u32::from(pair.domain[node])
                        | (pair.reliability as u32) << 8
                        | u32::from(pair.tag[node]) << 16,
                    1 | 2 << 16,
                    pair.max_transfer,
                    pair.allows[node],
                ];
                self.admin(node, Opcode::ViCreate, pair.vi[node].into(), &body)?;
            }
            self.connect(pair)?;
        }
        Ok(())
    }

    fn connect(&mut self, pair: &Pair) -> Result<(), Hung> {
        // Of two that follow each other on a VI, one bit may be all that differs.
        self.connection ^= 1 << self.random.below(16);
        for node in 0..2 {
            let body = [
                u32::from(node_number(1 - node)) | u32::from(pair.vi[1 - node]) << 16,
                u32::from(self.connection) | pair.reported[1 - node] << rdma::PEER_LSB,
            ];
            self.admin(node, Opcode::ViConnect, pair.vi[node].into(), &body)?;
        }
        Ok(())
    }

    fn phase(&mut self, phase: usize) -> Result<(), Hung> {
        let plan = self.plan;
        self.arm(phase);
        for poke in &plan.pokes[phase] {
            let data = vec![poke.fill; poke.length];
            self.bench.device(poke.node).bar_write(poke.bar, poke.offset, &data);
        }
        for (i, &(node, domain)) in plan.messages[phase].iter().enumerate() {
            let index = u32::from(node_number(1 - node)) | u32::from(domain) << 8;
            let body = [u32::try_from(i).expect("small") ^ 0xabcd_0000; 12];
            self.admin(node, Opcode::MessageSend, index, &body)?;
        }
        self.posted.clear();
        for (n, traffic) in plan.phases[phase].iter().enumerate() {
            self.post_receives(phase, n, traffic);
        }
        let mut fenced = self.begin_fenced(phase)?;
        self.bench.settle(500)?;
        self.post_sends(phase, fenced.as_mut())?;
        self.bench.settle(self.quiet)?;
        if let Some(fenced) = fenced {
            fenced.end(&mut self.bench, self.quiet)?;
        }
        self.observe(phase)?;
        if let Some(node) = self.plan.closes[phase] {
            self.close(phase, node)?;
        }
        self.mend()
    }

    /// Closes the channel at a node, which the other one learns of, and opens it again.
    fn close(&mut self, phase: usize, node: usize) -> Result<(), Hung> {
        let peer = |node| u32::from(node_number(1 - node));
        self.admin(node, Opcode::PeerClose, peer(node), &[])?;
        self.bench.settle(self.quiet)?;
        let number = u32::try_from(phase + 1).expect("few phases");
        for (node, step) in [0x101, 0x202].into_iter().enumerate() {
            // Every channel of a run has a tag of its own, which distinguishes its frames from those of others.
            let epoch = 0x4000_0000 + number * step;
            self.admin(node, Opcode::PeerOpen, peer(node), &[epoch, 64])?;
        }
        self.bench.settle(self.quiet.min(4 * u64::from(RETRY_TIMEOUT)))
    }

    /// Arms event queues, or disarms them.
    fn arm(&mut self, phase: usize) {
        for (node, armed) in self.plan.armed[phase].iter().enumerate() {
            for (queue, &arm) in armed.iter().enumerate() {
                self.bench.event_doorbell(node, queue, arm);
            }
        }
        // Before there is anything to tell.
        self.bench.run(200);
    }

    /// Sets up the traffic that a fence will end.
    fn begin_fenced(&mut self, phase: usize) -> Result<Option<fenced::Run<'a>>, Hung> {
        let plan = self.plan;
        let Some(of) = &plan.fenced[phase] else { return Ok(None) };
        let mut random = Random::new(plan_seed(plan.seed, [phase, 0, 0xfe]));
        let generation = u16::try_from(phase + 1).expect("few phases");
        fenced::Run::begin(&mut self.bench, of, generation, &mut random).map(Some)
    }

    fn post_receives(&mut self, phase: usize, n: usize, traffic: &Traffic) {
        let node = 1 - traffic.sender;
        let specs = traffic.messages.iter().filter_map(|message| message.recv.as_ref());
        for (i, spec) in specs.chain(&traffic.spare).enumerate() {
            self.post(phase, node, n, Queue::Recv, i, spec);
        }
    }

    /// Sends of all pairs in turn, with the plan's pauses, and the fence.
    fn post_sends(
        &mut self,
        phase: usize,
        mut fenced: Option<&mut fenced::Run<'_>>,
    ) -> Result<(), Hung> {
        let plan = self.plan;
        let most = plan.phases[phase].iter().map(|t| t.messages.len()).max().unwrap_or(0);
        if let Some(fenced) = &fenced {
            fenced.post_sends(&mut self.bench);
        }
        for i in 0..most {
            if let Some(fenced) = fenced.as_mut().filter(|fenced| fenced.is_due(i)) {
                fenced.fence(&mut self.bench)?;
            }
            for (n, traffic) in plan.phases[phase].iter().enumerate() {
                if let Some(message) = traffic.messages.get(i) {
                    self.bench.run(message.delay);
                    self.post(phase, traffic.sender, n, Queue::Send, i, &message.send);
                }
            }
        }
        match fenced.filter(|fenced| fenced.is_due(usize::MAX)) {
            Some(fenced) => fenced.fence(&mut self.bench),
            None => Ok(()),
        }
    }

    fn post(&mut self, phase: usize, node: usize, n: usize, queue: Queue, i: usize, spec: &Spec) {
        let plan = self.plan;
        let pair = &plan.pairs[n];
        let offset = slot(n, queue, i);
        let there = spec.remote.iter().map(|place| remote(plan, n, 1 - node, place));
        let here = spec.segments.iter().map(|segment| local(plan, n, node, segment));
        let segments: Vec<DataSegment> = there.chain(here).collect();
        let count = u16::try_from(segments.len()).expect("at most 17");
        let control = ControlSegment {
            next: 0,
            next_handle: 0,
            seg_count: spec.seg_count.unwrap_or(count),
            control: spec.control,
            reserved: spec.reserved,
            immediate: spec.immediate,
            length: 0,
            status: 0,
        };
        let host = self.bench.host_mut(node);
        host.put(offset, &control.to_bytes());
        for (s, segment) in segments.iter().enumerate() {
            host.put(offset + 32 + 16 * s, &segment.to_bytes());
        }
        let base = slot(n, Queue::Send, 0);
        let of = match spec.unreachable {
            Some(Unreachable::Tag) => PairRegion::DescriptorsOfTag,
            Some(Unreachable::Domain) => PairRegion::DescriptorsOfDomain,
            _ => PairRegion::Descriptors,
        };
        let mut handle = of.handle(plan, n, node);
        let mut token = Token {
            vi: pair.vi[node],
            region: handle.index(),
            offset_64: u32::try_from((offset - base) / 64).expect("small"),
            segments: u8::try_from(count).expect("at most 17"),
            queue,
        };
        let mut next = va(offset);
        match spec.unreachable {
            Some(Unreachable::Place(of_token, of_next)) => {
                token.offset_64 ^= 1 << of_token;
                next ^= 1 << of_next;
            }
            Some(Unreachable::Generation(bit)) => handle.0 ^= 1 << (16 + bit),
            Some(Unreachable::Index(bit)) => handle.0 ^= 1024 << bit,
            Some(Unreachable::Aligned(bit)) => next ^= 1 << bit,
            Some(Unreachable::Tag | Unreachable::Domain) | None => {}
        }
        if let Some(&tail) = self.tail.get(&(node, n, queue as u8)) {
            self.bench.host_mut(node).put(tail, &next.to_le_bytes());
            self.bench.host_mut(node).put(tail + 8, &handle.0.to_le_bytes());
        }
        self.tail.insert((node, n, queue as u8), offset);
        self.posted.push((
            format!("phase {phase} node {node} pair {n} {queue:?} {i}"),
            node,
            offset,
        ));
        let page = (node, pair.domain[node]);
        // What a push says must be in memory: a read that is under way may change that.
        let reads = self.plan.phases[phase][n].messages[..i].iter().any(Message::is_read);
        if queue == Queue::Send && !reads {
            let seed = plan_seed(self.plan.seed, [phase, n, i]);
            push::post(&mut self.bench, page, token, (spec, area(n)), seed);
        } else {
            self.bench.doorbell(node, page.1, TOKEN_OFFSET, token.to_bits());
        }
    }

    fn observe(&mut self, phase: usize) -> Result<(), Hung> {
        for (what, node, offset) in std::mem::take(&mut self.posted) {
            let host = self.bench.host(node);
            let word = |at| host.word(offset + at);
            let value =
                format!("status {:#x} length {} immediate {:#x}", word(28), word(24), word(20));
            self.record(&what, &value);
        }
        let with_fences = self.plan.has_fences();
        (0..2).try_for_each(|node| self.observe_writes(phase, node))?;
        (0..2).for_each(|node| self.observe_interrupts(phase, node));
        self.observe_events(phase)?;
        for node in 0..2 {
            self.observe_frames(phase, node);
            for &counter in STEADY {
                if with_fences && FENCED.contains(&counter) {
                    continue;
                }
                let offset = csr::COUNTER_OFFSET + 4 * counter as u32;
                let value = self.bench.read32(node, offset)?;
                self.record(&format!("phase {phase} node {node} {counter:?}"), &value.to_string());
            }
            self.observe_errors(phase, node)?;
            // The rings are compared as events; the rest byte by byte.
            let memory = &self.bench.host(node).memory[FREE_OFFSET..FENCED_OFFSET];
            let sum =
                memory.as_chunks::<8>().0.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, word| {
                    (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
                });
            let stray = format!("{:x?}", self.bench.host(node).stray_writes);
            self.record(&format!("phase {phase} node {node} memory"), &format!("{sum:016x}"));
            self.record(&format!("phase {phase} node {node} stray writes"), &stray);
        }
        Ok(())
    }

    /// What each work queue had written, in order, and that nothing was reported too early.
    fn observe_writes(&mut self, phase: usize, node: usize) -> Result<(), Hung> {
        let consumed = self.bench.consumed(node);
        let place = (self.plan, phase, node);
        let wrong = |why: String| Hung(format!("phase {phase} node {node}: {why}"));
        if let Some(broken) = self.bench.device(node).violations().first() {
            return Err(wrong(broken.clone()));
        }
        let taken = self.order[node].take(place, self.bench.host_mut(node), consumed);
        taken.map_err(wrong)?.iter().for_each(|(what, value)| self.record(what, value));
        Ok(())
    }

    /// A queue that was armed and got a record has interrupted once.
    fn observe_interrupts(&mut self, phase: usize, node: usize) {
        let with_fences = self.plan.has_fences();
        let seen = *self.bench.host(node).interrupts.first_chunk::<4>().expect("32 vectors");
        let mut new = [0; 4];
        for queue in usize::from(with_fences)..4 {
            new[queue] = seen[queue] - self.interrupts[node][queue];
        }
        self.interrupts[node] = seen;
        self.record(&format!("phase {phase} node {node} interrupts"), &format!("{new:?}"));
    }

    /// Reads all events of both nodes, also those that had no room yet.
    fn observe_events(&mut self, phase: usize) -> Result<(), Hung> {
        let fenced = self.plan.fenced_vi(phase);
        let mut completions: [BTreeMap<(u8, u16), u32>; 2] = Default::default();
        let mut others = [Vec::new(), Vec::new()];
        let mut rest = Some(0);
        while let Some(quiet) = rest.take() {
            self.bench.settle(quiet)?;
            for (node, queue) in (0..8).map(|n| (n / 4, n % 4)) {
                let events = self.bench.events(node, queue);
                if events.is_empty() {
                    continue;
                }
                // A ring that may have been full is followed by a scan of all VIs.
                let quiet = if 2 * events.len() < self.bench.ring(queue) { 1_000 } else { 4_000 };
                rest = rest.max(Some(quiet));
                for (event, message) in events {
                    if queue == 1 || queue == 2 {
                        *completions[node].entry((event.kind, event.index)).or_default() +=
                            event.word1;
                    } else if event.kind != Kind::ViError as u8 || Some(event.index) != fenced {
                        let head = message.first_chunk::<8>();
                        others[node].push(format!(
                            "kind {} index {} {:#x} {:#x} {head:x?}",
                            event.kind, event.index, event.word1, event.word2
                        ));
                    }
                }
            }
        }
        for (node, (completions, mut others)) in completions.into_iter().zip(others).enumerate() {
            others.sort();
            let place = format!("phase {phase} node {node}");
            self.record(&format!("{place} completions"), &format!("{completions:?}"));
            self.record(&format!("{place} events"), &others.join(", "));
        }
        Ok(())
    }

    /// Frames of each VI in order, first transmissions only, without what the channel fills in.
    fn observe_frames(&mut self, phase: usize, node: usize) {
        let mut by_vi: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
        let sent = self.bench.sent(node, self.frames_seen[node]);
        self.frames_seen[node] += sent.len();
        for frame in sent {
            let Some(head) = header(&frame) else { continue };
            if !matches!(
                Type::from_bits(head.kind),
                Some(
                    Type::Data
                        | Type::RdmaWrite
                        | Type::ReadRequest
                        | Type::ReadResponse
                        | Type::ViAck
                        | Type::ViRefuse
                        | Type::Fin
                )
            ) {
                continue;
            }
            let sequenced = head.flags & flag::SEQUENCED != 0;
            if sequenced && !self.sequences[node].insert((head.tag, head.sequence)) {
                continue;
            }
            if Some(head.src_vi) == self.plan.fenced_vi(phase) {
                continue;
            }
            let digest = by_vi.entry(head.src_vi).or_default();
            let sequence = if sequenced { 0 } else { head.sequence };
            digest.push(u64::from(head.kind) | u64::from(head.length) << 8);
            digest.push(
                u64::from(head.word) | u64::from(head.flags) << 32 | u64::from(sequence) << 40,
            );
            digest.push(frame[3..frame.len() - 1].iter().fold(7, |sum: u64, &beat| {
                (sum ^ beat).wrapping_mul(0x0100_0000_01b3).rotate_left(5)
            }));
        }
        for (vi, digest) in by_vi {
            let text = format!("{} frames {digest:x?}", digest.len() / 3);
            self.record(&format!("phase {phase} node {node} frames of VI {vi}"), &text);
        }
    }

    fn observe_errors(&mut self, phase: usize, node: usize) -> Result<(), Hung> {
        let (mut log, mut read_errors, mut entries) = (Vec::new(), BTreeSet::new(), 0);
        while self.bench.read32(node, csr::ERROR_COUNT::OFFSET)? & 0xffff != 0 {
            let lo = self.bench.read32(node, csr::ERROR_LO::OFFSET)?;
            let hi = self.bench.read32(node, csr::ERROR_HI::OFFSET)?;
            let code = lo & 0xff;
            if code != ErrorCode::ReadError as u32 {
                log.push(format!("code {code} index {:#x} {hi:#x}", lo >> 16));
            } else if read_errors.insert(hi) {
                // How many reads of absent memory there are, and with which tags, is the device's affair.
                log.push(format!("code {code} {hi:#x}"));
            }
            self.bench.write32(node, csr::ERROR_POP::OFFSET, 0);
            entries += 1;
            if entries > 64 {
                return Err(Hung(format!("the error log of node {node} does not empty")));
            }
        }
        log.sort();
        self.record(&format!("phase {phase} node {node} error log"), &log.join(", "));
        Ok(())
    }

    /// Connects again what an error has stopped.
    fn mend(&mut self) -> Result<(), Hung> {
        let plan = self.plan;
        let mut stopped = Vec::new();
        for (n, pair) in plan.pairs.iter().enumerate() {
            let mut connected = true;
            for node in 0..2 {
                let state = self.admin(node, Opcode::ViQuery, pair.vi[node].into(), &[])?;
                connected &= state & 0xf == State::Connected as u32;
            }
            if connected {
                continue;
            }
            stopped.push((n, pair));
        }
        for node in 0..2 {
            for &(n, pair) in &stopped {
                self.admin(node, Opcode::ViDisconnect, pair.vi[node].into(), &[])?;
                for queue in [Queue::Send, Queue::Recv] {
                    self.tail.remove(&(node, n, queue as u8));
                }
            }
            // A VI may have stopped alone; its peer is notified now, and is Connected until then.
            if !stopped.is_empty() {
                self.bench.settle(self.quiet)?;
            }
        }
        stopped.into_iter().try_for_each(|(_, pair)| self.connect(pair))
    }
}
