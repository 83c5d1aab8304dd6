//! A host without a driver: memory, registers, admin ring, doorbells; and two of them with a wire
//! between.

use std::sync::{Arc, Mutex};

use nic_regs::admin::{AdminStatus, ENTRY_BYTES, Opcode, PeerState};
use nic_regs::counter::Counter;
use nic_regs::csr::{
    ADMIN_BASE_HI, ADMIN_BASE_LO, ADMIN_SIZE, ADMIN_TAIL, CONTROL, ERROR_QUEUE, KEEPALIVE,
    MSIX_CONTROL, NODE, STATUS, msix_entry,
};
use nic_regs::desc::{ControlSegment, DataSegment, LENGTH_OFFSET, STATUS_OFFSET};
use nic_regs::doorbell::{EVENT_OFFSET, EventDoorbell, PAGE_BYTES, Queue, TOKEN_OFFSET, Token};
use nic_regs::event::{Event, Kind};
use nic_regs::tpt::Handle;
use nic_regs::vi::{Reliability, State};

use crate::Model;
use crate::device::{Device, HostBus, HostReadError};
use crate::link::{Faults, Side, Wire};
use crate::trace::Trace;

pub(crate) const MEMORY: u64 = 4 << 20;
pub(crate) const RING: u64 = 0x1000;
pub(crate) const RING_LOG2: u32 = 4;
/// Event queues: number q has its ring at `EVENTS + q * 0x2000`.
pub(crate) const EVENTS: u64 = 0x4000;
pub(crate) const ERRORS: u16 = 0;
pub(crate) const COMPLETIONS: u16 = 1;
pub(crate) const MESSAGES: u16 = 2;
pub(crate) const MSI_ADDRESS: u64 = 0xfee0_0000;

/// The region that tests use: its bus addresses begin at `BUS`, its virtual ones at `VA`.
pub(crate) const REGION: u16 = 5;
pub(crate) const GENERATION: u16 = 3;
pub(crate) const BUS: u64 = 0x10_0040;
pub(crate) const VA: u64 = 0x7000_0000_0040;
pub(crate) const REGION_LENGTH: u32 = 0x20_0000;
pub(crate) const TAG: u16 = 0x77;
pub(crate) const DOMAIN: u8 = 3;
pub(crate) const CONNECTION: u16 = 0x1234;
/// The VI of side A, and that of side B.
pub(crate) const VIS: [u16; 2] = [4, 9];
/// The node numbers: the last one and the first.
pub(crate) const NODES: [u8; 2] = [63, 0];

pub(crate) const A: usize = 0;
pub(crate) const B: usize = 1;
pub(crate) use Queue::{Recv, Send};

pub(crate) fn handle() -> u32 {
    Handle::new(REGION, GENERATION).0
}

/// Host memory from 0, with holes; it remembers what was written.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) bytes: Vec<u8>,
    pub(crate) holes: Vec<core::ops::Range<u64>>,
    pub(crate) writes: Vec<(u64, usize)>,
    pub(crate) interrupts: Vec<(u64, u32)>,
}

impl Memory {
    pub(crate) fn slice(&self, at: u64, n: usize) -> &[u8] {
        &self.bytes[at as usize..at as usize + n]
    }

    pub(crate) fn put(&mut self, at: u64, data: &[u8]) {
        self.bytes[at as usize..at as usize + data.len()].copy_from_slice(data);
    }

    pub(crate) fn word(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.slice(at, 4).try_into().unwrap())
    }
}

impl HostBus for Memory {
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        let end = address.saturating_add(data.len() as u64);
        let hole = |h: &core::ops::Range<u64>| h.start < end && address < h.end;
        if end > self.bytes.len() as u64 || self.holes.iter().any(hole) {
            return Err(HostReadError { address });
        }
        data.copy_from_slice(self.slice(address, data.len()));
        Ok(())
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        if address >= MSI_ADDRESS {
            self.interrupts.push((address, u32::from_le_bytes(data.try_into().unwrap())));
            return;
        }
        self.writes.push((address, data.len()));
        self.put(address, data);
    }
}

/// Host memory that is everywhere and all zeros; it remembers where was written.
#[derive(Debug, Default)]
pub(crate) struct Zeros {
    pub(crate) writes: Vec<u64>,
}

impl HostBus for Zeros {
    fn read(&mut self, _address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        data.fill(0);
        Ok(())
    }

    fn write(&mut self, address: u64, _data: &[u8]) {
        self.writes.push(address);
    }
}

/// One host with its device.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) model: Model,
    pub(crate) memory: Memory,
    pub(crate) traces: Arc<Mutex<Vec<Trace>>>,
    tail: u16,
    /// Last descriptor of each queue of each VI, to link the next one to.
    last: Vec<[Option<u64>; 2]>,
    read_at: [u16; 8],
}

impl Host {
    fn new() -> Self {
        let memory = Memory {
            bytes: vec![0; MEMORY as usize],
            holes: Vec::new(),
            writes: Vec::new(),
            interrupts: Vec::new(),
        };
        let traces = Arc::new(Mutex::new(Vec::new()));
        let mut model = Model::new();
        let sink = Arc::clone(&traces);
        model.observe(Box::new(move |_, what| sink.lock().unwrap().push(what)));
        Self { model, memory, traces, tail: 0, last: vec![[None; 2]; 1024], read_at: [0; 8] }
    }

    pub(crate) fn count(&self, counter: Counter) -> u32 {
        self.model.counter(counter)
    }

    pub(crate) fn reg_write(&mut self, offset: u32, value: u32) {
        self.model.bar_write(0, offset.into(), &value.to_le_bytes());
    }

    pub(crate) fn doorbell(&mut self, page: u8, offset: u64, value: u64) {
        self.model.bar_write(2, PAGE_BYTES * u64::from(page) + offset, &value.to_le_bytes());
    }

    pub(crate) fn ring_events(&mut self, page: u8, queue: u16, consumer: u16, arm: bool) {
        let bits = EventDoorbell { queue, arm, consumer }.to_bits();
        self.doorbell(page, EVENT_OFFSET, bits);
    }

    /// Descriptors and data are named by their distance from the start of the region.
    pub(crate) fn write_descriptor(
        &mut self,
        at: u64,
        control: ControlSegment,
        segs: &[(u64, u32)],
    ) {
        let count = segs.len() as u16;
        let control = ControlSegment { seg_count: count.max(control.seg_count), ..control };
        self.memory.put(BUS + at, &control.to_bytes());
        for (i, &(offset, length)) in segs.iter().enumerate() {
            let segment = DataSegment { address: VA + offset, handle: handle(), length };
            self.memory.put(BUS + at + 32 + 16 * i as u64, &segment.to_bytes());
        }
    }

    pub(crate) fn token(&mut self, vi: u16, queue: Queue, at: u64) {
        let offset_64 = ((at + BUS % 64) / 64) as u32;
        let token = Token { vi, region: REGION, offset_64, segments: 1, queue };
        self.doorbell(DOMAIN, TOKEN_OFFSET, token.to_bits());
    }

    /// Writes a descriptor, links it behind the queue's last one, rings.
    pub(crate) fn post(&mut self, vi: u16, queue: Queue, at: u64, segs: &[(u64, u32)]) {
        self.post_with(vi, queue, at, ControlSegment::default(), segs);
    }

    pub(crate) fn post_with(
        &mut self,
        vi: u16,
        queue: Queue,
        at: u64,
        control: ControlSegment,
        segs: &[(u64, u32)],
    ) {
        self.write_descriptor(at, control, segs);
        self.link(vi, queue, at);
        self.token(vi, queue, at);
    }

    /// Links a descriptor behind the queue's last one.
    pub(crate) fn link(&mut self, vi: u16, queue: Queue, at: u64) {
        let last = &mut self.last[usize::from(vi)][queue as usize];
        if let Some(before) = last.replace(at) {
            self.memory.put(BUS + before, &(VA + at).to_le_bytes());
            self.memory.put(BUS + before + 8, &handle().to_le_bytes());
        }
    }

    /// Forgets what was linked, after the queues were emptied.
    pub(crate) fn unlink(&mut self, vi: u16) {
        self.last[usize::from(vi)] = [None; 2];
    }

    pub(crate) fn status(&self, at: u64) -> u32 {
        self.memory.word(BUS + at + STATUS_OFFSET)
    }

    pub(crate) fn length(&self, at: u64) -> u32 {
        self.memory.word(BUS + at + LENGTH_OFFSET)
    }

    pub(crate) fn data(&self, at: u64, n: usize) -> &[u8] {
        self.memory.slice(BUS + at, n)
    }

    pub(crate) fn put(&mut self, at: u64, data: &[u8]) {
        self.memory.put(BUS + at, data);
    }

    pub(crate) fn vi(&self, side: usize) -> State {
        self.model.vi_snapshot(VIS[side]).state
    }

    /// The next event of a narrow queue (or of a wide one, without its message).
    pub(crate) fn next_event(&mut self, queue: u16, log2: u32, wide: bool) -> Option<Event> {
        let read = &mut self.read_at[usize::from(queue)];
        let slot = u64::from(*read) & ((1 << log2) - 1);
        let base = EVENTS + 0x2000 * u64::from(queue);
        let at = if wide { base + 64 * slot + 48 } else { base + 16 * slot };
        let word = |i: u64| self.memory.word(at + 4 * i);
        let event = Event::from_words([word(0), word(1), word(2), word(3)]);
        let fresh = event.phase == ((*read >> log2) & 1 == 0) && event.kind != 0;
        if fresh {
            *read = read.wrapping_add(1);
        }
        fresh.then_some(event)
    }

    /// All new events of one kind in the error queue or the completion queue.
    pub(crate) fn events(&mut self, queue: u16) -> Vec<Event> {
        std::iter::from_fn(|| self.next_event(queue, 6, queue == MESSAGES)).collect()
    }
}

/// The words of a RegionSet body.
pub(crate) fn region_words() -> [u32; 12] {
    let mut w = [0; 12];
    (w[0], w[1]) = (VA as u32, (VA >> 32) as u32);
    (w[2], w[3]) = (BUS as u32, (BUS >> 32) as u32);
    w[4] = REGION_LENGTH;
    w[5] = u32::from(TAG) | u32::from(GENERATION) << 16;
    w[6] = u32::from(DOMAIN) | 1 << 8;
    w
}

/// The words of a ViCreate body.
pub(crate) fn vi_words(level: Reliability) -> [u32; 12] {
    let mut w = [0; 12];
    w[0] = u32::from(DOMAIN) | (level as u32) << 8 | u32::from(TAG) << 16;
    w[1] = u32::from(COMPLETIONS) | u32::from(COMPLETIONS) << 16;
    w[2] = 256 * 1024;
    w
}

/// The words of a ViConnect body, as seen from `side`.
pub(crate) fn connect_words(side: usize) -> [u32; 12] {
    connect_words_of(side, VIS)
}

/// The same between other VIs of both sides.
fn connect_words_of(side: usize, vis: [u16; 2]) -> [u32; 12] {
    let other = 1 - side;
    let mut w = [0; 12];
    w[0] = u32::from(NODES[other]) | u32::from(vis[other]) << 16;
    w[1] = u32::from(CONNECTION);
    w
}

/// The words of an EventCreate body for queue `q` at its usual place.
pub(crate) fn event_words(q: u16, log2: u32, wide: bool, vector: u32) -> [u32; 12] {
    let mut w = [0; 12];
    w[0] = (EVENTS + 0x2000 * u64::from(q)) as u32;
    w[2] = log2 | u32::from(wide) << 4 | u32::from(DOMAIN) << 8 | vector << 16;
    w
}

/// Two hosts and a wire.
#[derive(Debug)]
pub(crate) struct Testbench {
    pub(crate) hosts: [Host; 2],
    pub(crate) wire: Wire,
    pub(crate) now: u64,
    pub(crate) frozen: [bool; 2],
    epoch: u32,
}

impl Testbench {
    /// Two devices that are enabled, with event queues and region; channels closed, no VIs.
    pub(crate) fn bare(faults: &Faults) -> Self {
        let mut bench = Self {
            hosts: [Host::new(), Host::new()],
            wire: Wire::with_faults(20, faults),
            now: 0,
            frozen: [false; 2],
            epoch: 0x1000_0001,
        };
        for side in [A, B] {
            bench.bring_up(side);
        }
        bench
    }

    /// Registers, event queues and region of a device after its reset.
    pub(crate) fn bring_up(&mut self, side: usize) {
        while self.reg_read(side, STATUS::OFFSET) & 1 == 0 {}
        let host = &mut self.hosts[side];
        host.tail = 0;
        host.read_at = [0; 8];
        host.last = vec![[None; 2]; 1024];
        host.memory.bytes[EVENTS as usize..0x1_0000].fill(0);
        host.reg_write(ADMIN_BASE_LO::OFFSET, RING as u32);
        host.reg_write(ADMIN_BASE_HI::OFFSET, 0);
        host.reg_write(ADMIN_SIZE::OFFSET, RING_LOG2);
        host.reg_write(NODE::OFFSET, NODES[side].into());
        host.reg_write(KEEPALIVE::OFFSET, 0);
        host.reg_write(ERROR_QUEUE::OFFSET, u32::from(ERRORS) | 1 << 31);
        for vector in 0..4 {
            let entry = msix_entry(vector);
            host.reg_write(entry, MSI_ADDRESS as u32 + 16 * vector);
            host.reg_write(entry + 8, 0x40 + vector);
            host.reg_write(entry + MSIX_CONTROL, 0);
        }
        host.reg_write(CONTROL::OFFSET, 1);
        for q in [ERRORS, COMPLETIONS, MESSAGES] {
            let words = event_words(q, 6, q == MESSAGES, q.into());
            self.ok(side, Opcode::EventCreate, q.into(), words);
        }
        self.ok(side, Opcode::RegionSet, REGION.into(), region_words());
    }

    /// The same with open channels and a connection.
    pub(crate) fn pair(level: Reliability) -> Self {
        Self::pair_with(level, &Faults::default())
    }

    pub(crate) fn pair_with(level: Reliability, faults: &Faults) -> Self {
        let mut bench = Self::bare(faults);
        bench.open_channels();
        bench.connect(level, VIS);
        bench
    }

    /// Creates a VI of either side, and connects them.
    pub(crate) fn connect(&mut self, level: Reliability, vis: [u16; 2]) {
        for side in [A, B] {
            self.ok(side, Opcode::ViCreate, vis[side].into(), vi_words(level));
            self.ok(side, Opcode::ViConnect, vis[side].into(), connect_words_of(side, vis));
        }
    }

    pub(crate) fn open_channels(&mut self) {
        for side in [A, B] {
            self.open(side, 64);
        }
        self.until("channels open", |w| [A, B].iter().all(|&s| w.peer(s) == PeerState::Open));
        for side in [A, B] {
            let kinds: Vec<u8> = self.hosts[side].events(ERRORS).iter().map(|e| e.kind).collect();
            assert_eq!(kinds, [Kind::PeerUp as u8]);
        }
    }

    pub(crate) fn open(&mut self, side: usize, credits: u32) {
        self.epoch = self.epoch.wrapping_mul(0x9E37_79B1) | 1;
        let mut words = [0; 12];
        (words[0], words[1]) = (self.epoch, credits);
        self.ok(side, Opcode::PeerOpen, NODES[1 - side].into(), words);
    }

    /// State of the channel to the other side.
    pub(crate) fn peer(&self, side: usize) -> PeerState {
        self.hosts[side].model.peer_state(NODES[1 - side])
    }

    pub(crate) fn step(&mut self) {
        for side in [Side::A, Side::B] {
            if !self.frozen[side as usize] {
                let host = &mut self.hosts[side as usize];
                host.model.step(self.now, &mut host.memory, &mut self.wire.end(side));
            }
        }
        self.now += 1;
    }

    pub(crate) fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step();
        }
    }

    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let limit = self.now + 3_000_000;
        while !done(self) {
            assert!(self.now < limit, "never: {what}");
            self.step();
        }
    }

    /// Runs until both devices have nothing of their own to do and the wire is empty.
    pub(crate) fn settle(&mut self) {
        self.until("settled", |w| {
            w.wire.is_idle() && (0..2).all(|s| w.frozen[s] || !w.hosts[s].model.busy())
        });
    }

    pub(crate) fn bar_read(&mut self, side: usize, bar: u8, offset: u64, length: usize) -> u64 {
        self.hosts[side].model.bar_read(bar, offset, length);
        loop {
            if let Some(value) = self.hosts[side].model.bar_response() {
                return value;
            }
            self.step();
        }
    }

    pub(crate) fn reg_read(&mut self, side: usize, offset: u32) -> u32 {
        self.bar_read(side, 0, offset.into(), 4) as u32
    }

    /// Runs an admin command.
    pub(crate) fn admin(
        &mut self,
        side: usize,
        opcode: u32,
        index: u32,
        body: [u32; 12],
    ) -> (AdminStatus, u32) {
        let host = &mut self.hosts[side];
        let cookie = 0xC0DE_0000 | u32::from(host.tail);
        let at = RING + ENTRY_BYTES * (u64::from(host.tail) & ((1 << RING_LOG2) - 1));
        let head = [opcode, index, cookie, 0];
        for (i, word) in head.iter().chain(&body).enumerate() {
            host.memory.put(at + 4 * i as u64, &word.to_le_bytes());
        }
        host.tail = host.tail.wrapping_add(1);
        let tail = host.tail;
        host.reg_write(ADMIN_TAIL::OFFSET, tail.into());
        self.until("admin command done", |w| w.hosts[side].memory.word(at + 12) == 1);
        let memory = &self.hosts[side].memory;
        assert_eq!(memory.word(at + 8), cookie);
        (AdminStatus::from_bits(memory.word(at)).unwrap(), memory.word(at + 4))
    }

    pub(crate) fn command(
        &mut self,
        side: usize,
        opcode: Opcode,
        index: u32,
        body: [u32; 12],
    ) -> AdminStatus {
        self.admin(side, opcode as u32, index, body).0
    }

    pub(crate) fn ok(&mut self, side: usize, opcode: Opcode, index: u32, body: [u32; 12]) -> u32 {
        let (status, result) = self.admin(side, opcode as u32, index, body);
        assert_eq!(status, AdminStatus::Ok, "{opcode:?} {index}");
        result
    }
}

/// Bytes that differ from message to message and from place to place.
pub(crate) fn pattern(seed: u32, n: usize) -> Vec<u8> {
    (0..n as u32)
        .map(|i| {
            (i.wrapping_mul(167) ^ i.rotate_left(9) ^ seed.wrapping_mul(0x9E37)).to_le_bytes()[0]
        })
        .collect()
}
