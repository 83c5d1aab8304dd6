//! The engines' neighbours below: host memory, region table, read and write ports.

use cosim::random::Random;
use cosim::reference::{Effect, Reference};
use nic_model::context::Context;
use nic_model::device::HostReadError;
use nic_model::tpt::Owner;
use nic_model::work_queue::WorkQueues;
use nic_regs::tpt::{Handle, RIGHT_VALID, Region};
use std::collections::VecDeque;

/// How fast the neighbours are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Chance that a stream moves in a cycle.
    pub ready: f64,
    /// Longest delay of a call.
    pub call: u64,
    /// Longest delay of a read.
    pub read: u64,
}

/// Host memory with addresses that cannot be read.
#[derive(Debug, Default)]
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

/// Host memory, the region table, random numbers; and the model's engines, which are the reference
/// of what the device does with them.
#[derive(Debug, Default)]
pub(crate) struct Host {
    pub memory: Memory,
    pub reference: Reference,
    pub random: Random,
    free: u64,
}

/// The token of a successor that could not be read again.
pub(crate) const UNREAD: (u16, u32) = (0xfffe, 0x3ff_ffff);

impl Host {
    pub(crate) fn new(seed: u64) -> Self {
        Self::sized(seed, 8 << 20)
    }

    /// With so many bytes of memory.
    pub(crate) fn sized(seed: u64, bytes: u64) -> Self {
        let mut random = Random::new(seed);
        let base = 0x0012_3456_0000_0000 + (random.below(1 << 20) << 12);
        let bytes = (0..bytes).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
        let memory = Memory { base, bytes, poison: Vec::new(), log: Vec::new() };
        Self { memory, reference: Reference::default(), random, free: base + 4096 }
    }

    /// Runs a part of the model; gives what it did. Memory stays as it is.
    pub(crate) fn model<R>(
        &mut self,
        part: impl FnOnce(&mut WorkQueues, &mut Context<'_>) -> R,
    ) -> (R, Vec<Effect>) {
        let memory = &self.memory;
        let read = |address, data: &mut [u8]| {
            if memory.fails(address, data.len() as u64) {
                return Err(HostReadError { address });
            }
            data.copy_from_slice(memory.read(address, data.len() as u64));
            Ok(())
        };
        self.reference.run(read, part)
    }

    /// Next of the descriptor at `bus` is about to be read again, and perhaps lost from now on. Whether
    /// that fails.
    pub(crate) fn next_fails(&mut self, bus: u64, faults: f64) -> bool {
        if self.random.chance(faults) {
            self.memory.poison.push((bus, 32));
        }
        self.memory.fails(bus, 16)
    }

    /// A new region; its base is anywhere in a page.
    pub(crate) fn new_region(&mut self, length: u32, owner: Owner) -> u16 {
        let index = loop {
            let index = u16::try_from(self.random.below(1024)).unwrap();
            if self.reference.queues.regions.get(index).is_none() {
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
        self.reference.queues.regions.set(index, region);
        index
    }

    pub(crate) fn region(&self, index: u16) -> Region {
        *self.reference.queues.regions.get(index).expect("a region of the bench")
    }

    pub(crate) fn region_mut(&mut self, index: u16) -> &mut Region {
        self.reference.queues.regions.get_mut(index).expect("a region of the bench")
    }

    pub(crate) fn handle(&self, index: u16) -> u32 {
        Handle::new(index, self.region(index).generation).0
    }
}

/// Answers a look-up in the region table: the port's outputs and inputs are those of both engines.
macro_rules! answer_tpt {
    ($bench:expr, $out:expr) => {
        let out = &$out;
        let place = if out.desc_tpt_va_mode != 0 {
            nic_model::tpt::Place::Address(out.desc_tpt_address)
        } else {
            nic_model::tpt::Place::Offset(out.desc_tpt_address)
        };
        let access = nic_model::tpt::Access {
            generation: (out.desc_tpt_check_generation != 0).then_some(out.desc_tpt_generation),
            place,
            length: out.desc_tpt_length,
            owner: nic_model::tpt::Owner { tag: out.desc_tpt_tag, domain: out.desc_tpt_domain },
            rights: out.desc_tpt_rights,
        };
        let regions = &$bench.host.reference.queues.regions;
        let found = regions.look_up(out.desc_tpt_index, &access);
        let m = &mut $bench.model.inputs;
        m.desc_tpt_ok = found.is_some().into();
        // The part that is allowed.
        let begins = nic_model::tpt::Access { length: 0, ..access };
        let found = found.or_else(|| regions.look_up(out.desc_tpt_index, &begins));
        let found = found.unwrap_or(nic_model::tpt::Found { bus: 0, room: 0, offset_64: 0 });
        (m.desc_tpt_bus, m.desc_tpt_room) = (found.bus, found.room);
        m.desc_tpt_offset_64 = found.offset_64;
    };
}
pub(crate) use answer_tpt;

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
        host: &mut Host,
        pace: Pace,
    ) {
        if !(valid && self.ready) {
            return;
        }
        assert!((1..=4096).contains(&length), "read of {length} bytes");
        self.requests += 1;
        let lane = bus % 8;
        let mut bytes: Vec<u8> =
            (0..lane).map(|_| u8::try_from(host.random.below(256)).unwrap()).collect();
        bytes.extend_from_slice(host.memory.read(bus, length));
        while !bytes.len().is_multiple_of(8) {
            bytes.push(0xee);
        }
        let mut beats: Vec<_> = bytes
            .chunks(8)
            .map(|beat| (u64::from_le_bytes(beat.try_into().unwrap()), false, false))
            .collect();
        if host.memory.fails(bus, length) {
            let keep = host.random.below(beats.len() as u64) + 1;
            beats.truncate(usize::try_from(keep).unwrap());
            beats.last_mut().unwrap().2 = true;
        }
        beats.last_mut().unwrap().1 = true;
        let due = self.now + 1 + self.latency + host.random.below(pace.read);
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

/// A write port that gets the places of its packets ahead of the data.
#[derive(Debug, Default)]
pub(crate) struct PacketPort {
    packets: VecDeque<(u64, u64)>,
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
        self.ready = self.data.ready && !self.packets.is_empty();
        self.data.ready = self.ready;
        self.req_ready = self.packets.len() < 4 && random.chance(pace.ready);
    }

    /// The packet that was completed.
    pub(crate) fn observe(
        &mut self,
        request: Option<(u64, u64)>,
        beat: Option<(u64, bool)>,
        memory: &mut Memory,
    ) -> Option<(u64, Vec<u8>)> {
        let due = self.packets.front().copied();
        self.late = if due.is_some() && beat.is_none() { self.late + 1 } else { 0 };
        assert!(self.late < 20, "a packet without data: {:x?}", self.packets);
        if self.req_ready
            && let Some(request) = request
        {
            assert!((1..=4096).contains(&request.1), "packet {request:x?}");
            self.packets.push_back(request);
        }
        let (data, last) = beat.unwrap_or_default();
        let done = self.data.observe((beat.is_some(), last), due.unwrap_or_default(), data, memory);
        if done.is_some() {
            self.packets.pop_front();
        }
        done
    }

    pub(crate) fn idle(&self) -> bool {
        self.packets.is_empty()
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
