//! The engines' neighbours below: host memory, read and write ports, region table; and what a
//! descriptor means, read once more from the contract.

use cosim::random::Random;
use nic_regs::desc::{
    CONTROL_BYTES, CONTROL_OFFSET, ControlSegment, DataSegment, SEGMENT_BYTES, control, status,
};
use nic_regs::tpt::{Handle, RIGHT_VALID, Region};
use std::collections::{HashMap, VecDeque};

/// How fast the neighbours are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Chance that a stream moves in a cycle.
    pub ready: f64,
    /// Longest delay of a call.
    pub call: u64,
    /// Longest delay of a read.
    pub read: u64,
}

/// Host memory with addresses that cannot be read.
#[derive(Debug)]
pub(crate) struct Memory {
    pub base: u64,
    pub bytes: Vec<u8>,
    pub poison: Vec<(u64, u64)>,
    /// What software wrote.
    pub log: Vec<(u64, Vec<u8>)>,
}

impl Memory {
    fn at(&self, bus: u64) -> usize {
        usize::try_from(bus.wrapping_sub(self.base)).expect("a bus address in memory")
    }

    pub(crate) fn read(&self, bus: u64, length: u64) -> &[u8] {
        let at = self.at(bus);
        &self.bytes[at..at + usize::try_from(length).unwrap()]
    }

    pub(crate) fn write(&mut self, bus: u64, data: &[u8]) {
        let at = self.at(bus);
        self.bytes[at..at + data.len()].copy_from_slice(data);
    }

    /// A write by software.
    pub(crate) fn put(&mut self, bus: u64, data: &[u8]) {
        self.write(bus, data);
        self.log.push((bus, data.to_vec()));
    }

    pub(crate) fn fails(&self, bus: u64, length: u64) -> bool {
        self.poison.iter().any(|&(from, bytes)| bus < from + bytes && from < bus + length)
    }
}

/// What the region table answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    pub ok: bool,
    pub bus: u64,
    pub room: u32,
    pub offset_64: u32,
}

/// Who asks: protection tag and domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub tag: u16,
    pub domain: u8,
}

/// Memory and regions.
#[derive(Debug)]
pub(crate) struct World {
    pub memory: Memory,
    pub regions: HashMap<u16, Region>,
    pub random: Random,
    free: u64,
}

/// The token of a successor that could not be read again.
pub(crate) const UNREAD: (u16, u32) = (0xfffe, 0x3ff_ffff);

/// A descriptor that can be used.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub bus: u64,
    pub control: ControlSegment,
    /// Bus address and length, none empty.
    pub segments: Vec<(u64, u64)>,
    pub total: u64,
    /// Address segment of an RDMA, which is a read or a write.
    pub remote: Option<DataSegment>,
    pub reads: bool,
}

/// What a queue's descriptors may ask for, beside sends and receives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowed {
    pub writes: bool,
    pub reads: bool,
}

/// Why it cannot; the order is that of contract 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Descriptor,
    HostRead,
    Format(u64),
    Protection(u64),
}

impl World {
    /// Next of the descriptor at `bus` is about to be read again, and perhaps lost from now on. Whether
    /// that fails.
    pub(crate) fn next_fails(&mut self, bus: u64, faults: f64) -> bool {
        if self.random.chance(faults) {
            self.memory.poison.push((bus, 32));
        }
        self.memory.fails(bus, 16)
    }

    pub(crate) fn new(seed: u64) -> Self {
        Self::sized(seed, 8 << 20)
    }

    /// With so many bytes of memory.
    pub(crate) fn sized(seed: u64, bytes: u64) -> Self {
        let mut random = Random::new(seed);
        let base = 0x0012_3456_0000_0000 + (random.below(1 << 20) << 12);
        let bytes = (0..bytes).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
        let memory = Memory { base, bytes, poison: Vec::new(), log: Vec::new() };
        Self { memory, regions: HashMap::new(), random, free: base + 4096 }
    }

    /// A new region; its base is anywhere in a page.
    pub(crate) fn region(&mut self, length: u32, owner: Owner) -> u16 {
        let index = loop {
            let index = u16::try_from(self.random.below(1024)).unwrap();
            if !self.regions.contains_key(&index) {
                break index;
            }
        };
        let slack = self.random.below(4096);
        let bus_base = self.free + slack;
        self.free = (bus_base + u64::from(length) + 64 + 4095) & !4095;
        assert!(self.free < self.memory.base + self.memory.bytes.len() as u64, "memory is full");
        let va_base = (self.random.bits() >> 8 << 12) | (bus_base & 4095);
        let generation = u16::try_from(1 + self.random.below(9)).unwrap();
        let Owner { tag, domain } = owner;
        let rights = RIGHT_VALID | u8::try_from(self.random.below(4)).unwrap() << 1;
        let region = Region { va_base, bus_base, length, tag, generation, domain, rights };
        self.regions.insert(index, region);
        index
    }

    pub(crate) fn handle(&self, index: u16) -> u32 {
        Handle::new(index, self.regions[&index].generation).0
    }

    pub(crate) fn look_up(
        &self,
        index: u16,
        generation: Option<u16>,
        (va_mode, address): (bool, u64),
        length: u32,
        (owner, rights): (Owner, u8),
    ) -> Found {
        let Some(region) = self.regions.get(&index) else { return Found::default() };
        let (va, bus) = (u128::from(region.va_base), u128::from(region.bus_base));
        let start = if va_mode { u128::from(address) } else { (va & !63) + u128::from(address) };
        let end = va + u128::from(region.length);
        let inside = start >= va && start + u128::from(length) <= end;
        let ok = inside
            && generation.is_none_or(|generation| generation == region.generation)
            && region.tag == owner.tag
            && region.domain == owner.domain
            && region.rights & rights == rights;
        if !ok {
            return Found::default();
        }
        Found {
            ok,
            bus: u64::try_from(bus + start - va).unwrap(),
            room: u32::try_from(end - start).unwrap(),
            offset_64: u32::try_from((start - (va & !63)) / 64).unwrap(),
        }
    }

    /// Contract 3.1 to 3.3.
    pub(crate) fn resolve(
        &self,
        allowed: Allowed,
        owner: Owner,
        region: u16,
        offset_64: u32,
    ) -> Result<Resolved, Fault> {
        if (region, offset_64) == UNREAD {
            return Err(Fault::HostRead);
        }
        let address = (false, u64::from(offset_64) * 64);
        let found = self.look_up(region, None, address, 32, (owner, 0));
        if !found.ok {
            return Err(Fault::Descriptor);
        }
        if self.memory.fails(found.bus, CONTROL_BYTES) {
            return Err(Fault::HostRead);
        }
        let bytes = self.memory.read(found.bus, CONTROL_BYTES).try_into().unwrap();
        let control = ControlSegment::from_bytes(bytes);
        let need = CONTROL_BYTES + SEGMENT_BYTES * u64::from(control.seg_count);
        if control.seg_count <= 17 && need > u64::from(found.room) {
            return Err(Fault::Descriptor);
        }
        let op = control.control & control::OP_MASK;
        let no_immediate = control.control & control::IMMEDIATE == 0;
        let reads = allowed.reads && op == control::OP_RDMA_READ && no_immediate;
        let rdma = reads || allowed.writes && op == control::OP_RDMA_WRITE;
        let counts = if rdma { 1..=17 } else { 0..=16 };
        if control.control & control::RESERVED != 0
            || (op != control::OP_SENDRECV && !rdma)
            || control.reserved != 0
            || !counts.contains(&control.seg_count)
        {
            return Err(Fault::Format(found.bus));
        }
        let (segments, remote) = (Vec::new(), None);
        let mut resolved = Resolved { bus: found.bus, control, segments, total: 0, remote, reads };
        if rdma {
            let bytes = self.memory.read(found.bus + CONTROL_BYTES, SEGMENT_BYTES);
            let remote = DataSegment::from_bytes(bytes.try_into().unwrap());
            if remote.length != 0 {
                return Err(Fault::Format(found.bus));
            }
            resolved.remote = Some(remote);
        }
        for n in u64::from(rdma)..u64::from(control.seg_count) {
            let at = found.bus + CONTROL_BYTES + n * SEGMENT_BYTES;
            let bytes = self.memory.read(at, SEGMENT_BYTES).try_into().unwrap();
            let DataSegment { address, handle, length } = DataSegment::from_bytes(bytes);
            if length == 0 {
                continue;
            }
            let handle = Handle(handle);
            let generation = Some(handle.generation());
            let owner = (owner, 0);
            let found = self.look_up(handle.index(), generation, (true, address), length, owner);
            if !found.ok {
                return Err(Fault::Protection(resolved.bus));
            }
            resolved.segments.push((found.bus, u64::from(length)));
            resolved.total += u64::from(length);
        }
        Ok(resolved)
    }

    /// The operation of the send descriptor at a bus address, as a status tells it.
    pub(crate) fn operation(&self, bus: u64) -> u32 {
        let bytes = self.memory.read(bus + CONTROL_OFFSET, 2).try_into().unwrap();
        match u16::from_le_bytes(bytes) & control::OP_MASK {
            control::OP_RDMA_WRITE => status::OP_RDMA_WRITE,
            control::OP_RDMA_READ => status::OP_RDMA_READ,
            _ => status::OP_SEND,
        }
    }

    /// The parts of the segments that hold bytes `from` to `from + length` of the message.
    pub(crate) fn pieces(resolved: &Resolved, mut from: u64, mut length: u64) -> Vec<(u64, u64)> {
        let mut pieces = Vec::new();
        for &(bus, bytes) in &resolved.segments {
            let skip = from.min(bytes);
            let take = length.min(bytes - skip);
            if take > 0 {
                pieces.push((bus + skip, take));
            }
            (from, length) = (from - skip, length - take);
        }
        assert_eq!(length, 0, "the message is longer than its buffer");
        pieces
    }
}

/// A beat of a response with last and error.
type ReadBeat = (u64, bool, bool);

/// A read port: responses in order of requests, lane-aligned.
#[derive(Debug, Default)]
pub(crate) struct ReadPort {
    /// Responses with the cycle from which they may come.
    waiting: VecDeque<(u64, Vec<ReadBeat>)>,
    now: u64,
    /// Driven this cycle: ready, and a beat with last and error.
    pub ready: bool,
    pub beat: Option<ReadBeat>,
    pub requests: u64,
    /// Most requests that were on their way at a time.
    pub most: usize,
    /// Cycles that every response takes, beside the random ones.
    pub latency: u64,
}

impl ReadPort {
    pub(crate) fn drive(&mut self, random: &mut Random, pace: Pace) {
        self.now += 1;
        self.ready = random.chance(pace.ready);
        self.beat = None;
        if let Some((due, beats)) = self.waiting.front_mut()
            && *due <= self.now
            && random.chance(pace.ready)
        {
            self.beat = Some(beats.remove(0));
            if beats.is_empty() {
                self.waiting.pop_front();
            }
        }
    }

    pub(crate) fn observe(
        &mut self,
        valid: bool,
        bus: u64,
        length: u64,
        world: &mut World,
        pace: Pace,
    ) {
        if !(valid && self.ready) {
            return;
        }
        assert!((1..=4096).contains(&length), "read of {length} bytes");
        self.requests += 1;
        let lane = bus % 8;
        let mut bytes: Vec<u8> =
            (0..lane).map(|_| u8::try_from(world.random.below(256)).unwrap()).collect();
        bytes.extend_from_slice(world.memory.read(bus, length));
        while !bytes.len().is_multiple_of(8) {
            bytes.push(0xee);
        }
        let mut beats: Vec<_> = bytes
            .chunks(8)
            .map(|beat| (u64::from_le_bytes(beat.try_into().unwrap()), false, false))
            .collect();
        if world.memory.fails(bus, length) {
            let keep = world.random.below(beats.len() as u64) + 1;
            beats.truncate(usize::try_from(keep).unwrap());
            beats.last_mut().unwrap().2 = true;
        }
        beats.last_mut().unwrap().1 = true;
        let due = self.now + 1 + self.latency + world.random.below(pace.read);
        self.waiting.push_back((due, beats));
        self.most = self.most.max(self.waiting.len());
    }

    pub(crate) fn idle(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// A write port; a packet reaches memory with its last beat.
#[derive(Debug, Default)]
pub(crate) struct WritePort {
    packet: Option<(u64, u64, Vec<u64>)>,
    pub ready: bool,
    /// Cycles for which it is busy with somebody else's packet.
    busy: u64,
}

impl WritePort {
    pub(crate) fn drive(&mut self, random: &mut Random, pace: Pace) {
        if self.packet.is_none() && pace.ready < 1.0 && random.chance(0.001) {
            self.busy = random.below(600);
        }
        self.ready = self.busy == 0 && random.chance(pace.ready);
        self.busy = self.busy.saturating_sub(1);
    }

    /// The packet that was completed.
    pub(crate) fn observe(
        &mut self,
        (valid, last): (bool, bool),
        (bus, length): (u64, u64),
        data: u64,
        memory: &mut Memory,
    ) -> Option<(u64, Vec<u8>)> {
        if !(valid && self.ready) {
            return None;
        }
        let packet = self.packet.get_or_insert((bus, length, Vec::new()));
        assert_eq!((packet.0, packet.1), (bus, length), "packet not stable");
        packet.2.push(data);
        let beats = (bus % 8 + length).div_ceil(8);
        assert_eq!(packet.2.len() as u64 == beats, last, "beats of {bus:x}+{length}");
        if !last {
            return None;
        }
        let (bus, length, beats) = self.packet.take().unwrap();
        let bytes: Vec<u8> = beats.iter().flat_map(|beat| beat.to_le_bytes()).collect();
        let lane = usize::try_from(bus % 8).unwrap();
        let bytes = bytes[lane..lane + usize::try_from(length).unwrap()].to_vec();
        memory.write(bus, &bytes);
        Some((bus, bytes))
    }

    pub(crate) fn idle(&self) -> bool {
        self.packet.is_none()
    }
}

/// A write port that is told its packets ahead.
#[derive(Debug, Default)]
pub(crate) struct PacketPort {
    told: VecDeque<(u64, u64)>,
    data: WritePort,
    /// Cycles since a beat was due.
    late: u32,
    /// Driven this cycle: packets, beats.
    pub req_ready: bool,
    pub ready: bool,
}

impl PacketPort {
    pub(crate) fn drive(&mut self, random: &mut Random, pace: Pace) {
        self.data.drive(random, pace);
        self.ready = self.data.ready && !self.told.is_empty();
        self.data.ready = self.ready;
        self.req_ready = self.told.len() < 4 && random.chance(pace.ready);
    }

    /// The packet that was completed.
    pub(crate) fn observe(
        &mut self,
        request: Option<(u64, u64)>,
        beat: Option<(u64, bool)>,
        memory: &mut Memory,
    ) -> Option<(u64, Vec<u8>)> {
        let due = self.told.front().copied();
        self.late = if due.is_some() && beat.is_none() { self.late + 1 } else { 0 };
        assert!(self.late < 20, "a packet without data: {:x?}", self.told);
        if self.req_ready
            && let Some(request) = request
        {
            assert!((1..=4096).contains(&request.1), "packet {request:x?}");
            self.told.push_back(request);
        }
        let (data, last) = beat.unwrap_or_default();
        let done = self.data.observe((beat.is_some(), last), due.unwrap_or_default(), data, memory);
        if done.is_some() {
            self.told.pop_front();
        }
        done
    }

    pub(crate) fn idle(&self) -> bool {
        self.told.is_empty()
    }
}

/// The server of a call: answers after a random delay, once.
#[derive(Debug, Default)]
pub(crate) struct Call {
    left: Option<u64>,
    /// The answer goes out this cycle.
    pub done: bool,
    must_fall: bool,
    /// The next call may come in the cycle after the answer.
    follows: bool,
}

impl Call {
    /// One whose client may call again in the cycle after an answer.
    pub(crate) fn following() -> Self {
        Self { follows: true, ..Self::default() }
    }

    /// After a cycle: true if the call is to be carried out now, and answered in the next cycle.
    pub(crate) fn observe(&mut self, valid: bool, random: &mut Random, pace: Pace) -> bool {
        if self.done {
            assert!(valid, "a call was lowered before its answer");
            (self.done, self.must_fall) = (false, !self.follows);
            return false;
        }
        if self.must_fall {
            assert!(!valid, "a call was not lowered after its answer");
            self.must_fall = false;
            return false;
        }
        if !valid {
            assert!(self.left.is_none(), "a call was lowered before its answer");
            return false;
        }
        let left = self.left.get_or_insert_with(|| random.below(pace.call));
        if *left > 0 {
            *left -= 1;
            return false;
        }
        self.left = None;
        self.done = true;
        true
    }

    pub(crate) fn idle(&self) -> bool {
        self.left.is_none() && !self.done
    }
}
