//! Two bare nodes on a wire, driven register by register: the least software between a program and
//! the device.

pub mod host;
mod wire;

use std::sync::{Arc, Mutex};

use crate::simulation::network::Network as _;
use crate::simulation::{NodeHost as _, SimulatedDevice, Simulation};
use host::{BUS_BASE, Host, MSI_BASE, VA_BASE, Write};
use host_driver::sync::lock;
use nic_model::device::{Beat, Device};
use nic_model::link::{Faults, Wire};
use nic_regs::admin::{self, Opcode};
use nic_regs::csr;
use nic_regs::doorbell::{EVENT_OFFSET as EVENT_DOORBELL_OFFSET, EventDoorbell};
use nic_regs::event::Event;
use nic_regs::frame::{HEADER_BEATS, Header};
pub use wire::Frame;
use wire::ObservedWire;

/// Bytes of a node's memory.
pub const MEMORY_BYTES: usize = 8 << 20;
/// Admin ring.
const ADMIN_OFFSET: usize = 0;
/// Log2 of its entries.
const ADMIN_LOG2: u32 = 4;
/// Event rings, each with so many bytes, from here on.
pub const EVENT_OFFSET: usize = 0x1_0000;
/// See [`EVENT_OFFSET`].
pub const RING_BYTES: usize = 0x1_0000;
/// Log2 of the entries of the ring of messages.
const MESSAGE_LOG2: u32 = 10;
/// Domains whose messages are taken.
pub const MESSAGE_DOMAINS: [u8; 2] = [0, 3];
/// Data of a vector's interrupts.
#[must_use]
pub const fn msi_data(vector: u32) -> u32 {
    0xa5c3_1e00 | vector
}

/// First byte for programs.
pub const FREE_OFFSET: usize = 0x10_0000;
/// Cycles that a device works at most without the host or the link.
const INNER_WORK: u64 = 4_000;
/// Cycles after which a device that does not come to rest counts as hung.
const REST_LIMIT: u64 = 20_000_000;

/// Numbers that two nodes use, each of any value that it may have.
#[derive(Clone, Debug)]
pub struct Names {
    /// Node numbers.
    pub nodes: [u8; 2],
    /// Epochs of their first channel.
    pub epochs: [u32; 2],
    /// Numbers of their event queues: of errors, of sends, of receives, and of messages, which is wide.
    pub queues: [[u16; 4]; 2],
    /// Credits that each grants to the other.
    pub credits: [u32; 2],
    /// What each says of the longest writes and reads that it may make, in its register PCIE.
    pub pcie: [u32; 2],
}

impl Default for Names {
    fn default() -> Self {
        Self {
            nodes: [0, 1].map(node_number),
            epochs: [0x1234_5678, 0x8765_4321],
            queues: [[0, 1, 2, 3]; 2],
            credits: [64; 2],
            pcie: [csr::PCIE::RESET.0; 2],
        }
    }
}

/// What a node has done.
#[derive(Clone, Debug)]
pub enum Seen {
    /// It has sent this frame whole.
    Frame(Frame),
    /// It has written to its host.
    Write(Write),
}

/// Two nodes and the wire between them.
#[derive(Debug)]
pub struct Testbench {
    names: Names,
    /// What was done, by cycle and node, for who wants it; and how many frames and writes of each node were
    /// seen.
    trail: Option<Vec<(u64, usize, Seen)>>,
    seen: [[usize; 2]; 2],
    simulation: Simulation<Host>,
    wire: Arc<Mutex<ObservedWire>>,
    admin_tail: [u16; 2],
    consumer: [[u16; 4]; 2],
    /// Log2 of the entries of the other event rings, once they are there.
    event_log2: u32,
    keepalive: u32,
    end: u64,
    last_activity: u64,
}

/// Something that a device did not do in time.
#[derive(Debug)]
pub struct Hung(pub String);

impl std::fmt::Display for Hung {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Hung {}

impl Testbench {
    /// Two devices on a wire with this latency in cycles.
    #[must_use]
    pub fn new(devices: [SimulatedDevice; 2], latency: u64, faults: &Faults) -> Self {
        Self::with_names(devices, latency, faults, &Names::default())
    }

    /// The same, with other names.
    #[must_use]
    pub fn with_names(
        devices: [SimulatedDevice; 2],
        latency: u64,
        faults: &Faults,
        names: &Names,
    ) -> Self {
        let wire = ObservedWire::new(Wire::with_faults(latency, faults));
        let wire = Arc::new(Mutex::new(wire));
        let nodes = devices.map(|device| (device, Host::new(MEMORY_BYTES)));
        Self {
            names: names.clone(),
            trail: None,
            seen: [[0; 2]; 2],
            simulation: Simulation::new(wire.clone(), nodes),
            wire,
            admin_tail: [0; 2],
            consumer: [[0; 4]; 2],
            event_log2: 0,
            keepalive: 0,
            end: u64::MAX,
            last_activity: 0,
        }
    }

    /// Cycles since the start.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.simulation.now()
    }

    /// A node's host.
    #[must_use]
    pub fn host(&self, node: usize) -> &Host {
        self.simulation.host(node)
    }

    /// A node's host, to change its memory.
    pub fn host_mut(&mut self, node: usize) -> &mut Host {
        self.simulation.host_mut(node)
    }

    /// A node's device.
    pub fn device(&mut self, node: usize) -> &mut dyn Device {
        self.simulation.device(node)
    }

    /// The frames that a node sent whole, but for the first so many.
    #[must_use]
    pub fn sent(&self, node: usize, skip: usize) -> Vec<Frame> {
        lock(&self.wire).sent[node][skip..].to_vec()
    }

    /// How many frames a node sent whole.
    #[must_use]
    pub fn sent_count(&self, node: usize) -> usize {
        lock(&self.wire).sent[node].len()
    }

    /// Headers of the frames that a node sent whole, but for the first so many.
    #[must_use]
    pub fn sent_headers(&self, node: usize, skip: usize) -> Vec<Header> {
        lock(&self.wire).sent[node][skip..].iter().filter_map(|frame| header(frame)).collect()
    }

    /// Beats of the frame that a node has sent in part.
    #[must_use]
    pub fn half_sent(&self, node: usize) -> usize {
        lock(&self.wire).current[node].len()
    }

    /// Has a node receive a frame that nobody sent, before all that is not on its way to it yet.
    pub fn forge(&mut self, node: usize, frame: &[u64]) {
        let last = frame.len().saturating_sub(1);
        let beats = frame.iter().enumerate().map(|(at, &data)| Beat { data, last: at == last });
        lock(&self.wire).forged[node].extend(beats);
    }

    /// The node's number.
    #[must_use]
    pub const fn number(&self, node: usize) -> u8 {
        self.names.nodes[node]
    }

    /// Has nodes that are brought up from here on send at least every so many cycles.
    pub const fn set_keepalive(&mut self, cycles: u32) {
        self.keepalive = cycles;
    }

    /// Waits no more from this cycle on.
    pub const fn end_at(&mut self, cycle: u64) {
        self.end = cycle;
    }

    /// Runs one cycle.
    pub fn step(&mut self) {
        self.simulation.run(1);
        // A device with keepalive sends for ever, and is never idle for long.
        let works = match self.keepalive {
            0 => self.simulation.busy_nodes().next().is_some(),
            _ => (0..2).fold(false, |busy, node| busy | self.host_mut(node).take_busy()),
        };
        if lock(&self.wire).take_busy() || works {
            self.last_activity = self.now() - 1;
        }
        if self.trail.is_some() {
            self.follow();
        }
    }

    /// Keeps what the nodes do from here on. Their hosts must keep writes.
    pub fn keep_trail(&mut self) {
        self.trail = Some(Vec::new());
    }

    /// Takes what is kept: cycle, node, and what it did.
    pub fn take_trail(&mut self) -> Vec<(u64, usize, Seen)> {
        self.trail.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn follow(&mut self) {
        let now = self.now();
        for node in 0..2 {
            let [frames, writes] = self.seen[node];
            let all = self.simulation.host(node).writes();
            // They were taken meanwhile, if there are fewer.
            let new = &all[if all.len() < writes { 0 } else { writes }..];
            let new = new.iter().cloned().map(Seen::Write);
            let sent = lock(&self.wire).sent[node][frames..].to_vec();
            self.seen[node] = [frames + sent.len(), all.len()];
            let new = new.chain(sent.into_iter().map(Seen::Frame));
            self.trail.iter_mut().for_each(|trail| {
                trail.extend(new.clone().map(|seen| (now, node, seen)));
            });
        }
    }

    /// Runs this many cycles.
    pub fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step();
        }
    }

    /// Runs until nothing but acknowledgements has moved for `quiet` cycles.
    ///
    /// # Errors
    /// [`Hung`] if that takes too long.
    pub fn settle(&mut self, quiet: u64) -> Result<(), Hung> {
        let start = self.now();
        self.last_activity = start;
        // What a device does by itself is not seen then, see `step`.
        let quiet = quiet + if self.keepalive == 0 { 0 } else { INNER_WORK };
        while self.now() < self.last_activity + quiet {
            self.step();
            if self.now() > start + REST_LIMIT {
                return Err(Hung(format!("no rest {REST_LIMIT} cycles after cycle {start}")));
            }
            if self.now() > self.end {
                return Err(Hung(format!("it ends at cycle {}", self.end)));
            }
        }
        Ok(())
    }

    /// Writes a register.
    pub fn write32(&mut self, node: usize, offset: u32, value: u32) {
        self.device(node).bar_write(0, offset.into(), &value.to_le_bytes());
    }

    /// Reads a register.
    ///
    /// # Errors
    /// [`Hung`] if no completion comes.
    pub fn read32(&mut self, node: usize, offset: u32) -> Result<u32, Hung> {
        self.device(node).bar_read(0, offset.into(), 4);
        for _ in 0..100_000 {
            self.step();
            if let Some(value) = self.device(node).bar_response() {
                return Ok(u32::try_from(value & 0xffff_ffff).expect("masked"));
            }
        }
        Err(Hung(format!("read of register {offset:#x} of node {node} got no answer")))
    }

    /// Writes a doorbell.
    pub fn doorbell(&mut self, node: usize, domain: u8, offset: u64, value: u64) {
        self.write_line(node, domain, offset, &value.to_le_bytes());
    }

    /// One write to a domain's page: `offset` is that in the page.
    pub fn write_line(&mut self, node: usize, domain: u8, offset: u64, bytes: &[u8]) {
        let page = u64::from(domain) * nic_regs::doorbell::PAGE_BYTES;
        self.device(node).bar_write(2, page + offset, bytes);
    }

    /// Runs one admin command; answers status and result.
    ///
    /// # Errors
    /// [`Hung`] if it does not complete.
    pub fn admin(
        &mut self,
        node: usize,
        opcode: Opcode,
        index: u32,
        body: &[u32],
    ) -> Result<(u32, u32), Hung> {
        let name = |error: Hung| Hung(format!("{opcode:?}: {}", error.0));
        self.admin_entry(node, opcode as u32, index, body).map_err(name)
    }

    /// The same, with any opcode.
    ///
    /// # Errors
    /// [`Hung`] if it does not complete.
    pub fn admin_entry(
        &mut self,
        node: usize,
        opcode: u32,
        index: u32,
        body: &[u32],
    ) -> Result<(u32, u32), Hung> {
        let tail = self.admin_tail[node];
        let slot = ADMIN_OFFSET + 64 * (usize::from(tail) % (1 << ADMIN_LOG2));
        let mut words = [0_u32; 16];
        words[0] = opcode;
        words[1] = index;
        words[2] = u32::from(tail) ^ 0x5a5a_0000;
        words[4..4 + body.len()].copy_from_slice(body);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.host_mut(node).put(slot, &bytes);
        self.admin_tail[node] = tail.wrapping_add(1);
        self.write32(node, csr::ADMIN_TAIL::OFFSET, u32::from(tail.wrapping_add(1)));
        for _ in 0..1_000_000 {
            self.step();
            let host = self.host(node);
            if host.word(slot + 12) == admin::DONE {
                if host.word(slot + 8) != words[2] {
                    return Err(Hung(format!("command {opcode} {index}: cookie not echoed")));
                }
                return Ok((host.word(slot), host.word(slot + 4)));
            }
        }
        Err(Hung(format!("command {opcode} {index} on node {node} does not complete")))
    }

    /// Runs one admin command that has to succeed; answers its result.
    ///
    /// # Errors
    /// [`Hung`] if it does not.
    pub fn command(
        &mut self,
        node: usize,
        opcode: Opcode,
        index: u32,
        body: &[u32],
    ) -> Result<u32, Hung> {
        match self.admin(node, opcode, index, body)? {
            (0, result) => Ok(result),
            (status, _) => Err(Hung(format!("{opcode:?} {index} on node {node}: status {status}"))),
        }
    }

    /// Brings both nodes up, with event rings of 2^`event_log2` entries (but for messages), and opens
    /// the channel between them.
    ///
    /// # Errors
    /// [`Hung`] if a device does not answer.
    pub fn bring_up(&mut self, retry_timeout: u32, event_log2: u32) -> Result<(), Hung> {
        self.event_log2 = event_log2;
        (0..2).try_for_each(|node| self.bring_up_node(node, retry_timeout))?;
        for node in 0..2 {
            let peer = self.number(1 - node).into();
            let body = [self.names.epochs[node], self.names.credits[node]];
            self.command(node, Opcode::PeerOpen, peer, &body)?;
        }
        self.settle(u64::from(retry_timeout) * 4)
    }

    /// Resets a node: its device, and what its software knows of it.
    pub fn reset(&mut self, node: usize) {
        self.write32(node, csr::CONTROL::OFFSET, csr::CONTROL::SOFT_RESET.mask());
        self.run(100);
        self.host_mut(node).put(ADMIN_OFFSET, &[0; FREE_OFFSET - ADMIN_OFFSET]);
        (self.admin_tail[node], self.consumer[node]) = (0, [0; 4]);
    }

    /// Waits for a node whose reset is not over yet.
    ///
    /// # Errors
    /// [`Hung`] if that takes too long.
    pub fn wait_until_ready(&mut self, node: usize) -> Result<(), Hung> {
        let start = self.now();
        while self.read32(node, csr::STATUS::OFFSET)? & csr::STATUS::READY.mask() == 0 {
            if self.now() > start + 1_000_000 {
                return Err(Hung(format!("node {node} does not get ready")));
            }
        }
        Ok(())
    }

    /// Brings up a node as it is after a reset.
    ///
    /// # Errors
    /// [`Hung`] if the device does not answer.
    pub fn bring_up_node(&mut self, node: usize, retry_timeout: u32) -> Result<(), Hung> {
        self.wait_until_ready(node)?;
        let base = BUS_BASE + ADMIN_OFFSET as u64;
        self.write32(node, csr::ADMIN_BASE_LO::OFFSET, low(base));
        self.write32(node, csr::ADMIN_BASE_HI::OFFSET, high(base));
        self.write32(node, csr::ADMIN_SIZE::OFFSET, ADMIN_LOG2);
        self.write32(node, csr::NODE::OFFSET, self.number(node).into());
        self.write32(node, csr::PCIE::OFFSET, self.names.pcie[node]);
        self.write32(node, csr::KEEPALIVE::OFFSET, self.keepalive);
        self.write32(node, csr::RETRY_TIMEOUT::OFFSET, retry_timeout);
        self.write32(node, csr::RETRY_LIMIT::OFFSET, 15);
        let queues = self.names.queues[node];
        let errors = csr::ERROR_QUEUE::VALID.mask() | u32::from(queues[0]);
        self.write32(node, csr::ERROR_QUEUE::OFFSET, errors);
        for vector in 0..4 {
            let entry = csr::msix_entry(vector);
            self.write32(node, entry, low(MSI_BASE) + 4 * vector);
            self.write32(node, entry + 4, 0);
            self.write32(node, entry + 8, msi_data(vector));
            self.write32(node, entry + csr::MSIX_CONTROL, 0);
        }
        self.write32(node, csr::CONTROL::OFFSET, csr::CONTROL::ENABLE.mask());
        for vector in 0..4_u32 {
            let base = BUS_BASE + (EVENT_OFFSET + vector as usize * RING_BYTES) as u64;
            let wide = vector == 3;
            let log2 = if wide { MESSAGE_LOG2 } else { self.event_log2 };
            let shape = log2 | u32::from(wide) << 4 | vector << 16;
            let queue = queues[vector as usize].into();
            self.command(node, Opcode::EventCreate, queue, &[low(base), high(base), shape])?;
        }
        for domain in MESSAGE_DOMAINS {
            self.command(node, Opcode::MessageQueue, domain.into(), &[queues[3].into()])?;
        }
        Ok(())
    }

    /// Entries of an event queue.
    #[must_use]
    pub fn ring(&self, queue: usize) -> usize {
        1 << if queue == 3 { MESSAGE_LOG2 } else { self.event_log2 }
    }

    /// New records of an event queue (and of the message part of a wide one), consumed.
    ///
    /// # Panics
    /// If the queue is none of the four.
    pub fn events(&mut self, node: usize, queue: usize) -> Vec<(Event, Vec<u8>)> {
        let wide = queue == 3;
        let size = if wide { 64 } else { 16 };
        let entries = self.ring(queue);
        let mut out = Vec::new();
        loop {
            let consumed = usize::from(self.consumer[node][queue]);
            let slot = EVENT_OFFSET + queue * RING_BYTES + (consumed % entries) * size;
            let record = slot + size - 16;
            let words = [0, 4, 8, 12].map(|at| self.host(node).word(record + at));
            let event = Event::from_words(words);
            if event.phase != (consumed / entries).is_multiple_of(2) {
                break;
            }
            out.push((event, self.host(node).memory[slot..record].to_vec()));
            self.consumer[node][queue] = self.consumer[node][queue].wrapping_add(1);
        }
        if !out.is_empty() {
            self.event_doorbell(node, queue, false);
        }
        out
    }

    /// Records of each event queue that were consumed.
    #[must_use]
    pub const fn consumed(&self, node: usize) -> [u16; 4] {
        self.consumer[node]
    }

    /// Writes the consumer index of an event queue, and whether the next record is to interrupt.
    ///
    /// # Panics
    /// If the queue is none of the four.
    pub fn event_doorbell(&mut self, node: usize, queue: usize, arm: bool) {
        let doorbell = EventDoorbell {
            queue: self.names.queues[node][queue],
            arm,
            consumer: self.consumer[node][queue],
        };
        self.doorbell(node, 0, EVENT_DOORBELL_OFFSET, doorbell.to_bits());
    }
}

/// A part of a node's memory, as a region.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Its first byte.
    pub offset: usize,
    /// Its length.
    pub bytes: usize,
    /// Protection tag.
    pub tag: u16,
    /// Generation of its handle.
    pub generation: u16,
    /// Domain.
    pub domain: u8,
    /// Rights (`nic_regs::tpt`).
    pub rights: u8,
}

impl Region {
    /// What RegionSet takes.
    ///
    /// # Panics
    /// If it is longer than a region may be.
    #[must_use]
    pub fn body(&self) -> [u32; 7] {
        let (va, bus) = (va(self.offset), BUS_BASE + self.offset as u64);
        [
            low(va),
            high(va),
            low(bus),
            high(bus),
            u32::try_from(self.bytes).expect("a region's length"),
            u32::from(self.tag) | u32::from(self.generation) << 16,
            u32::from(self.domain) | u32::from(self.rights) << 8,
        ]
    }
}

/// Number of node 0 or 1 in [`Names::default`].
#[must_use]
pub fn node_number(node: usize) -> u8 {
    if node == 0 { 1 } else { 2 }
}

/// Low half.
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "that is what it is for")]
pub const fn low(value: u64) -> u32 {
    value as u32
}

/// High half.
#[must_use]
pub const fn high(value: u64) -> u32 {
    low(value >> 32)
}

/// Virtual address of an offset in a node's memory.
#[must_use]
pub const fn va(offset: usize) -> u64 {
    VA_BASE + offset as u64
}

/// Header of a frame on the wire, if it is whole.
#[must_use]
pub fn header(frame: &[u64]) -> Option<Header> {
    let beats: [u64; HEADER_BEATS] = frame.get(..HEADER_BEATS)?.try_into().ok()?;
    Some(Header::from_beats(beats))
}
