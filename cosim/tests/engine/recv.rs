//! The receive engine.

use crate::host::{Allowed, Call, Fault, Found, Owner, Pace, PacketPort, ReadPort, World};
use crate::post::{Plan, Queue};
use cosim::random::{Random, each_seed};
use cosim::verilated::blocks::recv::Model;
use nic_regs::counter::Counter;
use nic_regs::desc::{send_operation, status};
use nic_regs::frame::{Header, RdmaHeader, Type, flag};
use nic_regs::tpt::{Handle, RIGHT_RDMA_READ, RIGHT_RDMA_WRITE, RIGHT_VALID};
use nic_regs::vi::{State, StopReason};
use std::collections::{BTreeMap, VecDeque};

/// Packets that the engine's writer holds.
const WRITER_PACKETS: usize = 4;

/// What a frame makes the engine do, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Write {
        bus: u64,
        length: usize,
    },
    Save(Option<Progress>),
    /// An RDMA write is over: SAVE, after its data.
    Over {
        owe_ack: bool,
    },
    Pop,
    Status {
        bus: u64,
        immediate: Option<u32>,
        length: u32,
        status: u32,
    },
    Complete {
        vi: u16,
        owe_ack: bool,
        sends: bool,
    },
    /// Of the send queue, for a read: so many bytes are placed; it leaves the queue.
    Place(u32),
    PopRead,
    /// The answer to the peer's read is owed: after all earlier writes.
    Answer {
        address: u64,
        handle: u32,
        total: u32,
    },
    Stop {
        reason: u8,
        detail: u8,
        status: u32,
        recv: bool,
        refuse: bool,
    },
    Acked,
    Message {
        queue: u16,
        word0: u32,
        bytes: Vec<u8>,
    },
    Refused,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    write: bool,
    offset: u32,
    total: u32,
    message: u8,
    fragment: u8,
}

#[derive(Debug)]
struct Vi {
    number: u16,
    queue: Queue,
    state: State,
    level: u8,
    peer: u8,
    peer_vi: u16,
    connection: u16,
    /// RDMA that it allows; regions that give the right to write, and that do not.
    allows: u8,
    targets: [u16; 2],
    progress: Option<Progress>,
    /// Its reads: the queue; bytes placed and in all of the one that waits for its answer.
    sends: Queue,
    reading: Option<(u32, u32)>,
    /// It has left the queue, and its completion is not announced yet.
    read_over: bool,
    /// An answer to the peer is owed.
    answering: bool,
    /// The sender's side.
    message: u8,
    left: VecDeque<(Header, Vec<u8>)>,
}

struct Bench {
    model: Model,
    world: World,
    /// Host memory as it must be.
    shadow: Vec<u8>,
    pace: Pace,
    vis: BTreeMap<u16, Vi>,
    /// Frames that are in the engine's hand, then the one that is offered, then those to come.
    frames: VecDeque<(Header, Vec<u8>)>,
    hand: usize,
    offered: bool,
    /// Places of the payload of those that the engine was shown.
    bases: VecDeque<u16>,
    next_base: u16,
    /// What the oldest frame does has been worked out.
    judged: bool,
    expected: VecDeque<Event>,
    /// What frames that are released left on its way while the next one is matched: the writer's
    /// packets, statuses and completions. They come before that one's own.
    trailing: VecDeque<Event>,
    counters: BTreeMap<u32, u64>,
    counted: BTreeMap<u32, u64>,
    desc_read: ReadPort,
    write: PacketPort,
    tpt: Call,
    vi_call: Call,
    complete_call: Call,
    look_call: Call,
    event_call: Call,
    message_beats: Vec<u64>,
    message_age: u32,
    pause: bool,
    /// VIs that a doorbell was rung for, not yet told.
    posted: VecDeque<u16>,
    reread_faults: f64,
    released: u64,
    events: u64,
    seen: BTreeMap<String, u64>,
}

impl Event {
    /// What comes at the end of a message.
    fn ends(&self) -> bool {
        matches!(self, Self::Status { .. } | Self::Complete { .. })
    }

    fn is_write(&self) -> bool {
        matches!(self, Self::Write { .. })
    }

    /// This one may come before `due`: the queue moves on while payload is written, also that of
    /// the frame before (`trails`); payload comes before the end of the frame before, and a status
    /// before the completion of the last one. All else is in order.
    fn passes(&self, due: &Self, trails: bool) -> bool {
        match self {
            Self::Pop | Self::PopRead | Self::Save(_) | Self::Place(_) => trails || due.is_write(),
            Self::Over { .. } | Self::Acked => trails,
            Self::Write { .. } => trails && due.ends(),
            Self::Status { .. } => trails && matches!(due, Self::Complete { .. }),
            _ => false,
        }
    }
}

fn count(counters: &mut BTreeMap<u32, u64>, counter: Counter) {
    *counters.entry(counter as u32).or_default() += 1;
}

impl Bench {
    fn new(seed: u64, vis: usize, pace: Pace) -> Self {
        let mut world = World::sized(seed, (2 * vis as u64 + 15) << 19);
        let mut table = BTreeMap::new();
        while table.len() < vis {
            let number = u16::try_from(world.random.below(1024)).unwrap();
            let tag = u16::try_from(world.random.below(1 << 16)).unwrap();
            let domain = u8::try_from(world.random.below(64)).unwrap();
            if table.contains_key(&number) {
                continue;
            }
            let queue = Queue::new(&mut world, Owner { tag, domain });
            let targets = [RIGHT_RDMA_WRITE, RIGHT_RDMA_READ].map(|right| {
                let index = world.region(0x12000, queue.owner);
                world.regions.get_mut(&index).unwrap().rights = RIGHT_VALID | right;
                index
            });
            let mut sends = Queue::new(&mut world, queue.owner);
            sends.allowed = Allowed { writes: true, reads: true };
            let random = &mut world.random;
            let vi = Vi {
                number,
                queue,
                sends,
                reading: None,
                read_over: false,
                answering: false,
                state: State::Connected,
                level: [1, 2, 4][random.below(3) as usize],
                peer: random.below(64) as u8,
                peer_vi: random.below(1 << 16) as u16,
                connection: random.below(1 << 16) as u16,
                allows: if random.chance(0.9) { 3 } else { random.below(3) as u8 },
                targets,
                progress: None,
                message: random.below(256) as u8,
                left: VecDeque::new(),
            };
            table.insert(number, vi);
        }
        let mut model = Model::new();
        model.inputs.reset = 1;
        model.cycle();
        model.inputs.reset = 0;
        let shadow = world.memory.bytes.clone();
        Self {
            model,
            world,
            shadow,
            pace,
            vis: table,
            frames: VecDeque::new(),
            hand: 0,
            offered: false,
            bases: VecDeque::new(),
            next_base: 0,
            judged: false,
            expected: VecDeque::new(),
            trailing: VecDeque::new(),
            counters: BTreeMap::new(),
            counted: BTreeMap::new(),
            desc_read: ReadPort::default(),
            write: PacketPort::default(),
            tpt: Call::default(),
            vi_call: Call::default(),
            complete_call: Call::default(),
            look_call: Call::default(),
            event_call: Call::default(),
            message_beats: Vec::new(),
            message_age: 0,
            pause: false,
            posted: VecDeque::new(),
            reread_faults: 0.0,
            released: 0,
            events: 0,
            seen: BTreeMap::new(),
        }
    }

    /// A message as its frames, perhaps with one thing wrong.
    fn message(&mut self, number: u16, long: f64, faults: f64) {
        let random = &mut self.world.random;
        let vi = self.vis.get_mut(&number).unwrap();
        let bytes = match random.below(4) {
            _ if random.chance(long) => random.below(0x40100),
            0 => random.below(20),
            1 => random.below(300),
            _ => random.below(10_000),
        };
        let total = u32::try_from(bytes).unwrap();
        let frames = bytes.div_ceil(4096).max(1);
        let immediate = random.chance(0.3);
        for frame in 0..frames {
            let length = (bytes - frame * 4096).min(4096);
            let payload: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            let (first, last) = (frame == 0, frame + 1 == frames);
            let mut flags = if first { flag::FIRST } else { 0 };
            flags |= if last { flag::LAST } else { 0 };
            flags |= if last && immediate { flag::IMMEDIATE } else { 0 };
            flags |= if vi.level != 1 { flag::SEQUENCED } else { 0 };
            flags |= if vi.level == 4 { flag::RECEPTION } else { 0 };
            let word = match (last && immediate, first && !last) {
                (true, _) => random.below(1 << 32) as u32,
                (_, true) => total,
                _ => 0,
            };
            let sequence = if vi.level == 1 {
                u16::from(vi.message) << 8 | u16::try_from(frame).unwrap()
            } else {
                random.below(1 << 16) as u16
            };
            let mut header = Header {
                kind: Type::Data as u8,
                length: u16::try_from(length).unwrap(),
                src_node: vi.peer,
                dst_vi: number,
                src_vi: vi.peer_vi,
                connection: vi.connection,
                flags,
                sequence,
                word,
                ..Header::default()
            };
            if random.chance(faults) {
                match random.below(14) {
                    0 => header.src_node ^= 1,
                    1 => header.src_vi ^= 0x100,
                    2 => header.connection ^= 0x8000,
                    3 => header.dst_vi = 1024 + number,
                    4 => header.flags ^= flag::SEQUENCED,
                    5 => header.flags ^= flag::RECEPTION,
                    6 => header.flags ^= flag::FIRST,
                    7 => header.flags ^= flag::LAST,
                    8 => header.word = random.below(1 << 32) as u32,
                    9 => header.word = header.word.wrapping_sub(1),
                    10 => header.sequence = header.sequence.wrapping_add(1),
                    11 => header.sequence ^= 0x100,
                    12 => header.kind = 9 + random.below(7) as u8,
                    _ => continue,
                }
            }
            vi.left.push_back((header, payload));
        }
        vi.message = vi.message.wrapping_add(1);
    }

    /// An RDMA write as its frames, perhaps with one thing wrong.
    fn write(&mut self, number: u16, faults: f64) {
        let random = &mut self.world.random;
        let vi = self.vis.get_mut(&number).unwrap();
        let index = vi.targets[usize::from(random.chance(faults))];
        let region = self.world.regions[&index];
        let bytes = match random.below(3) {
            0 => random.below(20),
            1 => random.below(5000),
            _ => random.below(0x12000),
        };
        let slack = u64::from(region.length) - bytes + u64::from(random.chance(faults));
        let address = region.va_base + if slack == 0 { 0 } else { random.below(slack) };
        let address = if random.chance(faults) { address.wrapping_sub(0x12000) } else { address };
        let stale = u16::from(random.chance(faults));
        let handle = Handle::new(index, region.generation + stale).0;
        let total = u32::try_from(bytes).unwrap();
        let frames = bytes.div_ceil(4096).max(1);
        let immediate = random.chance(0.5);
        for frame in 0..frames {
            let length = (bytes - frame * 4096).min(4096);
            let at = address.wrapping_add(frame * 4096);
            let mut place = RdmaHeader { address: at, handle, total };
            let (first, last) = (frame == 0, frame + 1 == frames);
            let mut flags = if first { flag::FIRST } else { 0 };
            flags |= if last { flag::LAST } else { 0 };
            flags |= if last && immediate { flag::IMMEDIATE } else { 0 };
            flags |= if vi.level != 1 { flag::SEQUENCED } else { 0 };
            flags |= if vi.level == 4 { flag::RECEPTION } else { 0 };
            let mut header = Header {
                kind: Type::RdmaWrite as u8,
                length: u16::try_from(16 + length).unwrap(),
                src_node: vi.peer,
                dst_vi: number,
                src_vi: vi.peer_vi,
                connection: vi.connection,
                flags,
                sequence: u16::from(vi.message) << 8 | u16::try_from(frame).unwrap(),
                word: if last && immediate { random.below(1 << 32) as u32 } else { 0 },
                ..Header::default()
            };
            if random.chance(faults) {
                match random.below(12) {
                    0 => place.total = place.total.wrapping_add(1),
                    1 => place.total = place.total.wrapping_sub(1),
                    2 => place.total = 0x40001 + random.below(9) as u32,
                    3 => place.handle ^= 1 << random.below(32),
                    4 => place.address = random.bits(),
                    5 => header.flags ^= flag::SEQUENCED,
                    6 => header.flags ^= flag::FIRST,
                    7 => header.flags ^= flag::LAST,
                    8 => header.sequence = header.sequence.wrapping_add(1),
                    9 => header.connection ^= 1,
                    _ => continue,
                }
            }
            let mut payload: Vec<u8> =
                place.to_beats().iter().flat_map(|beat| beat.to_le_bytes()).collect();
            payload.extend((0..length).map(|_| random.below(256) as u8));
            vi.left.push_back((header, payload));
        }
        vi.message = vi.message.wrapping_add(1);
    }

    /// Posts a read, if none waits, as if its request had gone out.
    fn ask(&mut self, number: u16, plan: Plan) {
        let vi = self.vis.get_mut(&number).unwrap();
        let connected = matches!(vi.state, State::Connected);
        if !connected || vi.level == 1 || !vi.sends.room() {
            return;
        }
        if vi.reading.is_some() {
            // Posted behind it: Next of what was read may have to be read again.
            for _ in 0..2 {
                if vi.sends.room() {
                    vi.sends.post(&mut self.world, plan);
                }
            }
            return self.copy_posts();
        }
        if self.judged {
            return;
        }
        if vi.sends.count == 0 {
            vi.sends.post(&mut self.world, plan);
        }
        if self.world.random.chance(0.7) {
            vi.sends.post(&mut self.world, plan);
        }
        let total = match vi.sends.head(&self.world) {
            Ok(found) if found.reads && found.total <= 0x40000 => found.total as u32,
            _ => {
                // It would not have been asked for; the VI has stopped.
                vi.sends.clear();
                self.copy_posts();
                return;
            }
        };
        vi.reading = Some((0, total));
        let mut left = total;
        loop {
            let length = left.min(4096);
            left -= length;
            self.response(number, length, left, plan.faults);
            if left == 0 {
                break;
            }
        }
        self.copy_posts();
    }

    /// Part of the answer to a read, perhaps with one thing wrong, or to none.
    fn response(&mut self, number: u16, length: u32, left: u32, faults: f64) {
        let random = &mut self.world.random;
        let vi = self.vis.get_mut(&number).unwrap();
        let mut header = Header {
            kind: Type::ReadResponse as u8,
            length: length as u16,
            src_node: vi.peer,
            dst_vi: number,
            src_vi: vi.peer_vi,
            connection: vi.connection,
            // They say nothing.
            flags: flag::SEQUENCED | random.below(8) as u8 | (random.below(2) << 4) as u8,
            word: left,
            ..Header::default()
        };
        if random.chance(faults / 4.0) {
            match random.below(5) {
                0 => header.word = random.below(1 << 32) as u32,
                1 => header.word = header.word.wrapping_sub(1),
                2 => header.word += 1,
                3 => (header.length, header.word) = (0, length + left),
                _ => header.connection ^= 1,
            }
        }
        let payload = (0..header.length).map(|_| random.below(256) as u8).collect();
        vi.left.push_back((header, payload));
    }

    /// The peer reads this side's memory.
    fn request(&mut self, number: u16, faults: f64) {
        let random = &mut self.world.random;
        let vi = self.vis.get_mut(&number).unwrap();
        let index = vi.targets[usize::from(!random.chance(faults))];
        let region = self.world.regions[&index];
        let total = if random.chance(0.2) { 0 } else { random.below(0x12000) };
        let slack = u64::from(region.length) - total + u64::from(random.chance(faults));
        let mut place = RdmaHeader {
            address: region.va_base + random.below(slack.max(1)),
            handle: Handle::new(index, region.generation).0,
            total: total as u32,
        };
        if random.chance(faults) {
            match random.below(4) {
                0 => place.total = 0x40001 + random.below(9) as u32,
                1 => place.total = random.below(1 << 32) as u32,
                2 => place.handle ^= 1 << random.below(32),
                _ => place.address = random.bits(),
            }
        }
        let header = Header {
            kind: Type::ReadRequest as u8,
            length: 16,
            src_node: vi.peer,
            dst_vi: number,
            src_vi: vi.peer_vi,
            connection: vi.connection,
            flags: flag::SEQUENCED | random.below(8) as u8,
            word: random.below(1 << 32) as u32,
            ..Header::default()
        };
        let payload = place.to_beats().iter().flat_map(|beat| beat.to_le_bytes()).collect();
        vi.left.push_back((header, payload));
    }

    fn copy_posts(&mut self) {
        for (bus, data) in std::mem::take(&mut self.world.memory.log) {
            self.write_shadow(bus, &data);
        }
    }

    fn control(&mut self, number: u16) {
        let random = &mut self.world.random;
        let vi = self.vis.get_mut(&number).unwrap();
        let kind = match random.below(30) {
            0 => Type::Fin,
            1 => Type::ViRefuse,
            _ => Type::ViAck,
        };
        let header = Header {
            kind: kind as u8,
            src_node: vi.peer ^ u8::from(random.chance(0.1)),
            dst_vi: number,
            src_vi: vi.peer_vi,
            connection: vi.connection,
            flags: flag::SEQUENCED,
            word: random.below(13) as u32,
            ..Header::default()
        };
        vi.left.push_back((header, Vec::new()));
    }

    fn out_of_band(&mut self) {
        let random = &mut self.world.random;
        let payload = (0..48).map(|_| random.below(256) as u8).collect();
        let header = Header {
            kind: Type::Message as u8,
            length: 48,
            src_node: random.below(64) as u8,
            dst_vi: random.below(64) as u16,
            ..Header::default()
        };
        self.frames.push_back((header, payload));
    }

    fn write_shadow(&mut self, bus: u64, data: &[u8]) {
        let at = usize::try_from(bus - self.world.memory.base).unwrap();
        self.shadow[at..at + data.len()].copy_from_slice(data);
    }

    /// The frame at the head takes effect (contract 5).
    fn expect(&mut self) {
        let (header, payload) = self.frames.front().unwrap().clone();
        let kind = Type::from_bits(header.kind);
        if kind == Some(Type::Message) {
            let word0 = 4 | u32::from(header.src_node) << 16;
            let event = Event::Message { queue: header.dst_vi, word0, bytes: payload };
            self.expected.push_back(event);
            return;
        }
        let Some(mut vi) = self.vis.remove(&header.dst_vi) else {
            count(&mut self.counters, Counter::Unmatched);
            return;
        };
        if matches!(vi.state, State::Connected)
            && vi.peer == header.src_node
            && vi.peer_vi == header.src_vi
            && vi.connection == header.connection
        {
            let stop = |reason: StopReason, detail, status| Event::Stop {
                reason: reason as u8,
                detail,
                status,
                recv: false,
                refuse: false,
            };
            match kind {
                Some(Type::Data) => self.data(&mut vi, header, &payload),
                Some(Type::RdmaWrite) => self.remote(&mut vi, header, &payload),
                Some(Type::ReadRequest) => self.asked(&mut vi, &payload),
                Some(Type::ReadResponse) => self.reply(&mut vi, header, &payload),
                Some(Type::ViAck) => self.expected.push_back(Event::Acked),
                Some(Type::ViRefuse) => {
                    let (write, read) = (StopReason::RdmaWrite as u32, StopReason::RdmaRead as u32);
                    let rdma = vi.level == 4 && header.word == write || header.word == read;
                    let bit = if rdma {
                        status::RDMA_PROT_ERROR
                    } else if vi.level == 4 {
                        status::REMOTE_DESC_ERROR
                    } else {
                        status::TRANSPORT_ERROR
                    };
                    self.expected.push_back(stop(StopReason::Refused, header.word as u8, bit));
                }
                Some(Type::Fin) => {
                    let bit = status::DESC_FLUSHED_ERROR;
                    self.expected.push_back(stop(StopReason::Disconnected, 0, bit));
                }
                _ => {}
            }
        } else {
            count(&mut self.counters, Counter::Unmatched);
        }
        self.vis.insert(header.dst_vi, vi);
    }

    fn stop(&mut self, reason: StopReason, status: u32) {
        self.stop_queue(true, reason, status);
    }

    fn stop_queue(&mut self, recv: bool, reason: StopReason, status: u32) {
        let reason = reason as u8;
        self.expected.push_back(Event::Stop { reason, detail: 0, status, recv, refuse: true });
    }

    /// The peer asks for memory (contract 12.2).
    fn asked(&mut self, vi: &mut Vi, payload: &[u8]) {
        if vi.level == 1 {
            return count(&mut self.counters, Counter::Unmatched);
        }
        let beat = |n: usize| u64::from_le_bytes(payload[8 * n..8 * n + 8].try_into().unwrap());
        let RdmaHeader { address, handle, total } = RdmaHeader::from_beats([beat(0), beat(1)]);
        if total > 0x40000 || vi.answering {
            return self.stop(StopReason::Length, status::DESC_FLUSHED_ERROR);
        }
        let (handle, owner) = (Handle(handle), vi.queue.owner);
        let generation = Some(handle.generation());
        let rights = (owner, RIGHT_RDMA_READ);
        let place = (true, address);
        let found = self.world.look_up(handle.index(), generation, place, total, rights);
        if vi.allows & 2 == 0 || total != 0 && !found.ok {
            count(&mut self.counters, Counter::RdmaRefused);
            return self.stop(StopReason::RdmaRead, status::DESC_FLUSHED_ERROR);
        }
        self.expected.push_back(Event::Answer { address, handle: handle.0, total });
    }

    /// Part of the answer to a read of this side (contract 12.4).
    fn reply(&mut self, vi: &mut Vi, header: Header, payload: &[u8]) {
        let (Some((placed, total)), false) = (vi.reading, vi.read_over) else {
            return count(&mut self.counters, Counter::Unmatched);
        };
        let (length, left) = (payload.len() as u64, u64::from(header.word));
        if u64::from(placed) + length + left != u64::from(total) || length == 0 && left != 0 {
            return self.stop_queue(false, StopReason::Length, status::DESC_FLUSHED_ERROR);
        }
        let found = if length == 0 {
            vi.sends.reach(&self.world).map(|bus| (bus, None))
        } else {
            vi.sends.head(&self.world).map(|found| (found.bus, Some(found)))
        };
        let fail = |bits, reason| (bits, Some(reason));
        let (bus, (bits, reason)) = match found {
            Err(Fault::Descriptor) => {
                let bits = status::PROTECTION_ERROR;
                return self.stop_queue(false, StopReason::Descriptor, bits);
            }
            Err(Fault::HostRead) => {
                let bits = status::TRANSPORT_ERROR;
                return self.stop_queue(false, StopReason::HostRead, bits);
            }
            Err(Fault::Format(bus)) => (bus, fail(status::FORMAT_ERROR, StopReason::Format)),
            Err(Fault::Protection(bus)) => {
                (bus, fail(status::PROTECTION_ERROR, StopReason::Protection))
            }
            Ok((bus, Some(found))) if !found.reads || found.total != u64::from(total) => {
                (bus, fail(status::LENGTH_ERROR, StopReason::Length))
            }
            Ok((bus, found)) => {
                let mut at = 0;
                for (to, bytes) in
                    found.iter().flat_map(|found| World::pieces(found, placed.into(), length))
                {
                    let bytes = usize::try_from(bytes).unwrap();
                    self.expected.push_back(Event::Write { bus: to, length: bytes });
                    self.write_shadow(to, &payload[at..at + bytes]);
                    at += bytes;
                }
                if left != 0 {
                    self.expected.push_back(Event::Place(placed + length as u32));
                    return;
                }
                (bus, (0, None))
            }
        };
        vi.read_over = true;
        let partial = reason.is_some() && placed != 0;
        let bits = bits | if partial { status::PARTIAL_ERROR } else { 0 };
        let operation = match reason {
            None => status::OP_RDMA_READ,
            // What the descriptor says now.
            Some(_) => {
                let control = self.world.memory.read(bus + 14, 2).try_into().unwrap();
                send_operation(u16::from_le_bytes(control))
            }
        };
        let status = status::DONE | operation | bits;
        let length = if reason.is_none() { total } else { 0 };
        self.expected.push_back(Event::PopRead);
        self.expected.push_back(Event::Status { bus, immediate: None, length, status });
        let value = u64::from(length) | u64::from(status) << 32;
        self.write_shadow(bus + 24, &value.to_le_bytes());
        let (vi, owe_ack) = (vi.number, false);
        self.expected.push_back(Event::Complete { vi, owe_ack, sends: true });
        if let Some(reason) = reason {
            self.stop_queue(false, reason, status::DESC_FLUSHED_ERROR);
        }
    }

    fn fail(&mut self, vi: &Vi, bus: u64, bits: u32, reason: StopReason) {
        let operation = if bits & status::OP_MASK == 0 { status::OP_RECEIVE } else { 0 };
        let status = status::DONE | operation | bits;
        self.expected.push_back(Event::Pop);
        self.expected.push_back(Event::Status { bus, immediate: None, length: 0, status });
        self.write_shadow(bus + 24, &(u64::from(status) << 32).to_le_bytes());
        let (number, owe_ack) = (vi.number, false);
        self.expected.push_back(Event::Complete { vi: number, owe_ack, sends: false });
        if vi.level != 1 {
            self.stop(reason, status::DESC_FLUSHED_ERROR);
        }
    }

    fn gap(&mut self, vi: &Vi) {
        count(&mut self.counters, Counter::UnreliableGap);
        if vi.progress.is_some() {
            self.expected.push_back(Event::Save(None));
        }
    }

    /// A message in progress that the frame ends or does not continue: true if the frame is dealt
    /// with (contract 5.4).
    fn out_of_place(&mut self, vi: &Vi, write: bool, first: bool) -> bool {
        match vi.progress {
            Some(at) if vi.level != 1 && first && at.write => {
                self.stop(StopReason::Length, status::DESC_FLUSHED_ERROR);
                true
            }
            Some(at) if vi.level != 1 && !first && at.write != write => {
                count(&mut self.counters, Counter::Unmatched);
                true
            }
            _ => false,
        }
    }

    /// A frame of an RDMA write (contract 11.2 to 11.4).
    fn remote(&mut self, vi: &mut Vi, header: Header, payload: &[u8]) {
        let has = |bit| header.flags & bit != 0;
        let unreliable = vi.level == 1;
        if has(flag::SEQUENCED) == unreliable || has(flag::RECEPTION) != (vi.level == 4) {
            count(&mut self.counters, Counter::Unmatched);
            return;
        }
        let (first, last) = (has(flag::FIRST), has(flag::LAST));
        let [fragment, message] = header.sequence.to_le_bytes();
        let beat = |n: usize| u64::from_le_bytes(payload[8 * n..8 * n + 8].try_into().unwrap());
        let place = RdmaHeader::from_beats([beat(0), beat(1)]);
        let data = &payload[16..];
        let length = data.len() as u32;
        if self.out_of_place(vi, true, first) {
            return;
        }
        if first && !unreliable && vi.progress.is_some() {
            // A message that has a descriptor is broken off.
            return self.broken(vi);
        }
        if !first && !unreliable && vi.progress.is_none() {
            count(&mut self.counters, Counter::Unmatched);
            return;
        }
        let before = vi.progress.filter(|at| at.write && !first);
        let in_turn = if first {
            fragment == 0
        } else {
            before.is_some_and(|at| (at.message, at.fragment) == (message, fragment))
        };
        let (start, whole) = before.map_or((0, place.total), |at| (at.offset, at.total));
        let fits = place.total == whole
            && whole <= 0x40000
            && start + length <= whole
            && (!last || start + length == whole);
        if unreliable && !(in_turn && fits) {
            return self.gap(vi);
        }
        if !fits {
            return self.stop(StopReason::Length, status::DESC_FLUSHED_ERROR);
        }
        let range = if first { whole } else { length };
        let handle = Handle(place.handle);
        let found = self.world.look_up(
            handle.index(),
            Some(handle.generation()),
            (true, place.address),
            range,
            (vi.queue.owner, RIGHT_RDMA_WRITE),
        );
        if vi.allows & 1 == 0 || range != 0 && !found.ok {
            count(&mut self.counters, Counter::RdmaRefused);
            if unreliable {
                self.expected.push_back(Event::Save(None));
            } else {
                self.stop(StopReason::RdmaWrite, status::DESC_FLUSHED_ERROR);
            }
            return;
        }
        if length > 0 {
            self.expected.push_back(Event::Write { bus: found.bus, length: data.len() });
            self.write_shadow(found.bus, data);
        }
        if !last {
            let fragment = fragment.wrapping_add(1);
            let (offset, total) = (start + length, whole);
            let progress = Progress { write: true, offset, total, message, fragment };
            self.expected.push_back(Event::Save(Some(progress)));
        } else if has(flag::IMMEDIATE) {
            self.tell(vi, header.word, whole);
        } else {
            self.expected.push_back(Event::Over { owe_ack: vi.level == 4 });
        }
    }

    /// Immediate data of an RDMA write (contract 11.4).
    fn tell(&mut self, vi: &Vi, word: u32, length: u32) {
        let operation = status::OP_REMOTE_RDMA_WRITE;
        if vi.queue.count == 0 {
            if vi.level == 1 {
                count(&mut self.counters, Counter::UnreliableEmpty);
                self.expected.push_back(Event::Save(None));
            } else {
                self.stop(StopReason::ReceiveEmpty, status::DESC_FLUSHED_ERROR);
            }
            return;
        }
        let bus = match vi.queue.head(&self.world) {
            Err(Fault::Descriptor) => {
                return self.stop(StopReason::Descriptor, status::PROTECTION_ERROR);
            }
            Err(Fault::HostRead) => {
                return self.stop(StopReason::HostRead, status::TRANSPORT_ERROR);
            }
            Err(Fault::Format(bus)) => {
                let bits = status::FORMAT_ERROR | operation;
                return self.fail(vi, bus, bits, StopReason::Format);
            }
            // Its segments are not looked at.
            Err(Fault::Protection(bus)) => bus,
            Ok(found) => found.bus,
        };
        let status = status::DONE | operation | status::IMMEDIATE;
        self.write_shadow(bus + 20, &word.to_le_bytes());
        let value = u64::from(length) | u64::from(status) << 32;
        self.write_shadow(bus + 24, &value.to_le_bytes());
        self.expected.push_back(Event::Pop);
        let immediate = Some(word);
        self.expected.push_back(Event::Status { bus, immediate, length, status });
        self.expected.push_back(Event::Complete {
            vi: vi.number,
            owe_ack: vi.level == 4,
            sends: false,
        });
    }

    /// The descriptor of the message in progress ends with a length error.
    fn broken(&mut self, vi: &Vi) {
        let bits = status::LENGTH_ERROR | status::PARTIAL_ERROR;
        match vi.queue.head(&self.world) {
            Err(Fault::Descriptor) => self.stop(StopReason::Descriptor, status::PROTECTION_ERROR),
            Err(Fault::HostRead) => self.stop(StopReason::HostRead, status::TRANSPORT_ERROR),
            Err(Fault::Format(bus) | Fault::Protection(bus)) => {
                self.fail(vi, bus, bits, StopReason::Length);
            }
            Ok(found) => self.fail(vi, found.bus, bits, StopReason::Length),
        }
    }

    fn data(&mut self, vi: &mut Vi, header: Header, payload: &[u8]) {
        let has = |bit| header.flags & bit != 0;
        let unreliable = vi.level == 1;
        if has(flag::SEQUENCED) == unreliable || has(flag::RECEPTION) != (vi.level == 4) {
            count(&mut self.counters, Counter::Unmatched);
            return;
        }
        let (first, last) = (has(flag::FIRST), has(flag::LAST));
        let [fragment, message] = header.sequence.to_le_bytes();
        let length = u32::from(header.length);
        if self.out_of_place(vi, false, first) {
            return;
        }
        let before = vi.progress.unwrap_or_default();
        let (start, whole) = match (first, last) {
            (true, true) => (0, length),
            (true, false) => (0, header.word),
            (false, _) => (before.offset, before.total),
        };
        let mut violation = start + length > whole || (last && start + length < whole);
        if first {
            if unreliable && (fragment != 0 || violation) {
                return self.gap(vi);
            }
            violation |= !unreliable && vi.progress.is_some();
            if vi.queue.count == 0 {
                if unreliable {
                    count(&mut self.counters, Counter::UnreliableEmpty);
                    if vi.progress.is_some() {
                        self.expected.push_back(Event::Save(None));
                    }
                } else {
                    self.stop(StopReason::ReceiveEmpty, status::DESC_FLUSHED_ERROR);
                }
                return;
            }
        } else if unreliable {
            let continues = vi
                .progress
                .is_some_and(|at| !at.write && at.message == message && at.fragment == fragment);
            if !continues || violation {
                return self.gap(vi);
            }
        } else if vi.progress.is_none() {
            count(&mut self.counters, Counter::Unmatched);
            return;
        }
        let partial = if !first || (!unreliable && vi.progress.is_some()) {
            status::PARTIAL_ERROR
        } else {
            0
        };
        let length_error = status::LENGTH_ERROR | partial;
        let found = match vi.queue.head(&self.world) {
            Err(Fault::Descriptor) => {
                return self.stop(StopReason::Descriptor, status::PROTECTION_ERROR);
            }
            Err(Fault::HostRead) => {
                return self.stop(StopReason::HostRead, status::TRANSPORT_ERROR);
            }
            Err(Fault::Format(bus) | Fault::Protection(bus)) if violation => {
                return self.fail(vi, bus, length_error, StopReason::Length);
            }
            Err(Fault::Format(bus)) => {
                return self.fail(vi, bus, status::FORMAT_ERROR | partial, StopReason::Format);
            }
            Err(Fault::Protection(bus)) => {
                let bits = status::PROTECTION_ERROR | partial;
                return self.fail(vi, bus, bits, StopReason::Protection);
            }
            Ok(found) => found,
        };
        if violation || u64::from(whole) > found.total || whole > 0x40000 {
            return self.fail(vi, found.bus, length_error, StopReason::Length);
        }
        let mut at = 0;
        for (bus, bytes) in World::pieces(&found, start.into(), length.into()) {
            let bytes = usize::try_from(bytes).unwrap();
            self.expected.push_back(Event::Write { bus, length: bytes });
            self.write_shadow(bus, &payload[at..at + bytes]);
            at += bytes;
        }
        if !last {
            let progress = Progress {
                write: false,
                offset: start + length,
                total: whole,
                message,
                fragment: fragment.wrapping_add(1),
            };
            self.expected.push_back(Event::Save(Some(progress)));
            return;
        }
        let immediate = has(flag::IMMEDIATE).then_some(header.word);
        let mut status = status::DONE | status::OP_RECEIVE;
        if let Some(word) = immediate {
            status |= status::IMMEDIATE;
            self.write_shadow(found.bus + 20, &word.to_le_bytes());
        }
        let value = u64::from(whole) | u64::from(status) << 32;
        self.write_shadow(found.bus + 24, &value.to_le_bytes());
        self.expected.push_back(Event::Pop);
        let bus = found.bus;
        self.expected.push_back(Event::Status { bus, immediate, length: whole, status });
        self.expected.push_back(Event::Complete {
            vi: vi.number,
            owe_ack: vi.level == 4,
            sends: false,
        });
    }

    fn happened(&mut self, event: Event) {
        self.events += 1;
        let kind = match &event {
            Event::Write { .. } => "write".into(),
            Event::Save(progress) => format!("save {}", progress.is_some()),
            Event::Status { immediate, status, .. } => {
                format!("status {status:x} {}", immediate.is_some())
            }
            Event::Stop { reason, detail, status, .. } => {
                format!("stop {reason} {status:x} {}", *detail != 0)
            }
            Event::Complete { sends: true, .. } => "complete read".into(),
            Event::Complete { owe_ack, .. } => format!("complete {owe_ack}"),
            Event::Place(_) => "place".into(),
            Event::Answer { total, .. } => format!("answer {}", *total != 0),
            Event::Message { .. } => "message".into(),
            other => format!("{other:?}"),
        };
        *self.seen.entry(kind).or_default() += 1;
        let trailing = self.trailing.iter().map(|due| (due, true));
        let due = trailing
            .chain(self.expected.iter().map(|due| (due, false)))
            .position(|(due, trails)| !event.passes(due, trails));
        let expected = due.and_then(|at| match at.checked_sub(self.trailing.len()) {
            None => self.trailing.remove(at),
            Some(at) => self.expected.remove(at),
        });
        let header = self.frames.front().map(|(header, _)| header);
        assert_eq!(expected.as_ref(), Some(&event), "frame {header:?}");
    }

    /// The write's place and length are those of the status that is due.
    fn is_status(&self, at: u64, bytes: usize) -> bool {
        let mut due = self.trailing.iter().chain(&self.expected);
        match due.find(|due| !matches!(due, Event::Complete { .. })) {
            Some(&Event::Status { bus, immediate: None, .. }) => (at, bytes) == (bus + 24, 8),
            Some(&Event::Status { bus, immediate: Some(_), .. }) => (at, bytes) == (bus + 20, 12),
            _ => false,
        }
    }

    /// Every frame is released, and all that it caused has happened.
    fn is_done(&self) -> bool {
        self.frames.is_empty() && self.trailing.is_empty()
    }

    fn vi_operation(&mut self) {
        let out = self.model.outputs.clone();
        let number = out.vi_vi;
        let m = &mut self.model.inputs;
        m.vi_need_next = 0;
        if out.vi_op == 0 {
            m.vi_ctx_state = 0;
            if let Some(vi) = self.vis.get(&number) {
                m.vi_ctx_state = vi.state as u8;
                let queue = if out.vi_sends != 0 { &vi.sends } else { &vi.queue };
                let head = queue.head;
                (m.vi_ctx_tag, m.vi_ctx_domain) = (vi.queue.owner.tag, vi.queue.owner.domain);
                m.vi_ctx_reliability = vi.level;
                (m.vi_ctx_peer, m.vi_ctx_peer_vi) = (vi.peer, vi.peer_vi);
                m.vi_ctx_connection = vi.connection;
                (m.vi_ctx_region, m.vi_ctx_offset) = (head.region, head.offset_64);
                (m.vi_ctx_segments, m.vi_ctx_count) = (head.segments, queue.count);
                m.vi_ctx_answering = vi.answering.into();
                m.vi_ctx_allows = vi.allows;
                m.vi_ctx_in_progress = vi.progress.is_some().into();
                let at = vi.progress.unwrap_or_default();
                m.vi_ctx_write = at.write.into();
                (m.vi_ctx_progress, m.vi_ctx_total) = (at.offset, at.total);
                (m.vi_ctx_message, m.vi_ctx_fragment) = (at.message, at.fragment);
                if out.vi_sends != 0 {
                    m.vi_ctx_in_progress = vi.reading.is_some().into();
                    (m.vi_ctx_progress, m.vi_ctx_total) = vi.reading.unwrap_or((0x123, 0x456));
                }
            }
            return;
        }
        let mut vi = self.vis.remove(&number).unwrap();
        match out.vi_op {
            1 if out.vi_sends != 0 => {
                let total = vi.reading.expect("a read").1;
                vi.reading = Some((out.vi_offset, total));
                self.happened(Event::Place(out.vi_offset));
            }
            1 => {
                let progress = (out.vi_in_progress != 0).then_some(Progress {
                    write: out.vi_write != 0,
                    offset: out.vi_offset,
                    total: out.vi_total,
                    message: out.vi_message,
                    fragment: out.vi_fragment,
                });
                vi.progress = progress;
                let owe_ack = out.vi_owe_ack != 0;
                if let (None, Some(Event::Over { .. })) = (progress, self.expected.front()) {
                    self.happened(Event::Over { owe_ack });
                } else {
                    assert!(!owe_ack, "a ViAck is owed for nothing");
                    self.happened(Event::Save(progress));
                }
            }
            2 => {
                let next =
                    (out.vi_next_valid != 0).then_some((out.vi_next_region, out.vi_next_offset));
                let sends = out.vi_sends != 0;
                let queue = if sends { &mut vi.sends } else { &mut vi.queue };
                let bus = queue.posted[queue.popped].bus;
                if !queue.pop(next) {
                    self.model.inputs.vi_need_next = 1;
                    queue.unread = self.world.next_fails(bus, self.reread_faults);
                } else if sends {
                    self.happened(Event::PopRead);
                } else {
                    vi.progress = None;
                    self.happened(Event::Pop);
                }
            }
            3 => {
                let (address, handle, total) = (out.vi_address, out.vi_handle, out.vi_total);
                assert!(self.trailing.is_empty(), "an answer before earlier writes");
                vi.answering = true;
                self.happened(Event::Answer { address, handle, total });
            }
            5 => {
                vi.state = State::Error;
                self.happened(Event::Stop {
                    reason: out.vi_reason,
                    detail: out.vi_detail,
                    status: out.vi_status,
                    recv: out.vi_queue != 0,
                    refuse: out.vi_refuse != 0,
                });
            }
            6 => {
                self.happened(Event::Acked);
            }
            op => panic!("operation {op}"),
        }
        self.vis.insert(number, vi);
    }

    /// What a VI's receive queue holds.
    fn look(&mut self, number: u16) {
        let m = &mut self.model.inputs;
        let Some(vi) = self.vis.get(&number) else {
            m.vi_look_state = 0;
            return;
        };
        let head = vi.queue.head;
        m.vi_look_state = vi.state as u8;
        (m.vi_look_tag, m.vi_look_domain) = (vi.queue.owner.tag, vi.queue.owner.domain);
        (m.vi_look_region, m.vi_look_offset) = (head.region, head.offset_64);
        (m.vi_look_segments, m.vi_look_count) = (head.segments, vi.queue.count);
    }

    fn drive(&mut self) {
        let (random, pace) = (&mut self.world.random, self.pace);
        self.desc_read.drive(random, pace);
        self.write.drive(random, pace);
        let noise = (random.bits(), random.chance(0.5), random.chance(0.5));
        let m = &mut self.model.inputs;
        m.desc_read_req_ready = self.desc_read.ready.into();
        m.desc_read_rsp_valid = self.desc_read.beat.is_some().into();
        let beat = self.desc_read.beat.unwrap_or(noise);
        m.desc_read_rsp_data = beat.0;
        m.desc_read_rsp_last = beat.1.into();
        m.desc_read_rsp_error = beat.2.into();
        m.write_req_ready = self.write.req_ready.into();
        m.write_ready = self.write.ready.into();
        m.desc_tpt_done = self.tpt.done.into();
        m.vi_done = self.vi_call.done.into();
        m.vi_complete_done = self.complete_call.done.into();
        m.vi_look_done = self.look_call.done.into();
        m.events_done = self.event_call.done.into();
        m.fence_pause = self.pause.into();
        let posted = self.posted.pop_front();
        m.vi_posted = posted.is_some().into();
        m.vi_posted_vi = posted.unwrap_or(0xffff);
        m.staging_valid = self.offered.into();
        if self.offered {
            let beats = self.frames[self.hand].0.to_beats();
            m.staging_base = self.bases[self.hand];
            (m.staging_header0, m.staging_header1, m.staging_header2) =
                (beats[0], beats[1], beats[2]);
        } else {
            m.staging_header0 = noise.0;
        }
    }

    fn cycle(&mut self) {
        self.drive();
        self.model.cycle();
        let (out, pace) = (self.model.outputs.clone(), self.pace);
        let world = &mut self.world;
        let request = (out.desc_read_req_valid != 0, out.desc_read_req_address);
        let length = u64::from(out.desc_read_req_length);
        self.desc_read.observe(request.0, request.1, length, world, pace);
        if self.tpt.observe(out.desc_tpt_valid != 0, &mut world.random, pace) {
            let generation =
                (out.desc_tpt_check_generation != 0).then_some(out.desc_tpt_generation);
            let Found { ok, bus, room, offset_64 } = world.look_up(
                out.desc_tpt_index,
                generation,
                (out.desc_tpt_va_mode != 0, out.desc_tpt_address),
                out.desc_tpt_length,
                (Owner { tag: out.desc_tpt_tag, domain: out.desc_tpt_domain }, out.desc_tpt_rights),
            );
            let m = &mut self.model.inputs;
            (m.desc_tpt_ok, m.desc_tpt_bus) = (ok.into(), bus);
            (m.desc_tpt_room, m.desc_tpt_offset_64) = (room, offset_64);
        }
        let beat = (out.write_valid != 0).then_some((out.write_data, out.write_last != 0));
        let packet = (out.write_req_valid != 0)
            .then_some((out.write_req_address, out.write_req_length.into()));
        if let Some((bus, data)) = self.write.observe(packet, beat, &mut self.world.memory) {
            let event = if self.is_status(bus, data.len()) {
                let (word, value) = data.split_at(data.len() - 8);
                let value = u64::from_le_bytes(value.try_into().unwrap());
                Event::Status {
                    bus: bus + word.len() as u64 - 24,
                    immediate: word.try_into().ok().map(u32::from_le_bytes),
                    length: value as u32,
                    status: (value >> 32) as u32,
                }
            } else {
                Event::Write { bus, length: data.len() }
            };
            self.happened(event);
        }
        if self.vi_call.observe(out.vi_valid != 0, &mut self.world.random, pace) {
            self.vi_operation();
        }
        let completes = out.vi_complete_valid != 0;
        if self.complete_call.observe(completes, &mut self.world.random, pace) {
            let (owe_ack, sends) = (out.vi_complete_owe_ack != 0, out.vi_complete_sends != 0);
            let vi = self.vis.get_mut(&out.vi_complete_vi).unwrap();
            if sends {
                (vi.reading, vi.read_over) = (None, false);
            }
            self.happened(Event::Complete { vi: out.vi_complete_vi, owe_ack, sends });
        }
        if self.look_call.observe(out.vi_look_valid != 0, &mut self.world.random, pace) {
            self.look(out.vi_look_vi);
        }
        self.message_call();
        self.staging_data();
        if out.staging_refused != 0 {
            count(&mut self.counters, Counter::MessagesRefused);
            self.happened(Event::Refused);
        }
        self.staging_hand();
        for counter in 0..64 {
            *self.counted.entry(counter).or_default() += out.counts >> counter & 1;
        }
        if out.fence_paused != 0 && self.pause {
            let of_vi = [&self.vi_call, &self.complete_call, &self.look_call];
            let calls = of_vi.into_iter().chain([&self.tpt, &self.event_call]);
            let quiet = self.desc_read.idle() && self.write.idle();
            assert!(quiet && calls.into_iter().all(Call::idle));
            assert!(self.trailing.is_empty(), "left at the fence: {:?}", self.trailing);
        }
    }

    /// A payload beat: of the frame that lies there.
    fn staging_data(&mut self) {
        let out = &self.model.outputs;
        let mut there = self.bases.iter().zip(&self.frames);
        let frame = there.find(|(base, (_, payload))| {
            **base == out.staging_origin && (!payload.is_empty() || self.bases.len() == 1)
        });
        self.model.inputs.staging_data = frame.map_or(0, |(_, (_, payload))| {
            let at = usize::from(out.staging_address) * 8;
            let mut beat = [0xcc; 8];
            for (n, byte) in beat.iter_mut().enumerate() {
                *byte = payload.get(at + n).copied().unwrap_or(*byte);
            }
            u64::from_le_bytes(beat)
        });
    }

    /// Frames are taken, given back, offered; the oldest is judged when nothing can come before it.
    fn staging_hand(&mut self) {
        let (take, release) =
            (self.model.outputs.staging_take != 0, self.model.outputs.staging_release != 0);
        let offered = self.offered;
        if take {
            assert!(offered && self.hand < 16, "no frame to take");
            (self.offered, self.hand) = (false, self.hand + 1);
        }
        if release {
            assert!(self.judged);
            if self.hand > 0 {
                self.hand -= 1;
            } else {
                self.offered = false;
            }
            let left = &self.expected;
            let writes = left.iter().filter(|event| event.is_write()).count();
            let trails = left.iter().all(|event| event.ends() || event.is_write());
            assert!(writes <= WRITER_PACKETS && trails, "left: {left:?}");
            self.trailing.append(&mut self.expected);
            self.frames.pop_front();
            self.bases.pop_front();
            (self.judged, self.released) = (false, self.released + 1);
        }
        if !offered
            && !self.pause
            && self.hand < 16
            && self.hand < self.frames.len()
            && self.world.random.chance(self.pace.ready)
        {
            self.offered = true;
            self.bases.push_back(self.next_base);
            let beats = self.frames[self.hand].1.len().div_ceil(8) as u16;
            self.next_base = (self.next_base + beats) % 2048;
        }
        if !self.judged && !self.pause && !self.bases.is_empty() {
            self.judged = true;
            self.expect();
        }
    }

    /// The event block reads six beats, then answers.
    fn message_call(&mut self) {
        let out = self.model.outputs.clone();
        if out.events_valid != 0 && !self.event_call.done && self.message_beats.len() < 6 {
            // The index was driven in this cycle; its data comes in the next.
            self.message_age += 1;
            if self.message_age >= 2 && self.world.random.chance(0.7) {
                self.message_beats.push(out.events_message_data);
                self.model.inputs.events_message_index = self.message_beats.len() as u8 % 6;
                self.message_age = 0;
            }
            return;
        }
        if self.event_call.observe(out.events_valid != 0, &mut self.world.random, self.pace) {
            let bytes = self.message_beats.drain(..).flat_map(u64::to_le_bytes).collect();
            assert_eq!((out.events_word1, out.events_word2, out.events_wide), (0, 0, 1));
            let (queue, word0) = (out.events_queue, out.events_word0);
            self.happened(Event::Message { queue, word0, bytes });
            let outcome = self.world.random.below(5).saturating_sub(2) as u8;
            self.model.inputs.events_outcome = outcome;
            self.model.inputs.events_message_index = 0;
            if outcome != 0 {
                self.expected.push_back(Event::Refused);
            }
        }
    }
}

impl Bench {
    /// A stopped VI starts anew, with empty queues.
    fn reconnect(&mut self, number: u16) {
        let vi = self.vis.get_mut(&number).unwrap();
        vi.left.clear();
        (vi.progress, vi.reading, vi.read_over, vi.answering) = (None, None, false, false);
        vi.state = State::Connected;
        vi.queue.clear();
        vi.sends.clear();
        vi.sends.find_again(&mut self.world);
        // Those that the engine has seen still come.
        let mut rest = self.frames.split_off(self.bases.len());
        rest.retain(|(header, _)| header.dst_vi != number);
        self.frames.append(&mut rest);
    }

    /// Now and then, behind a fence: what a descriptor names goes, or the descriptor itself.
    fn spoil(&mut self, number: u16) {
        let vi = self.vis.get_mut(&number).unwrap();
        let reading = vi.reading.is_some();
        if !self.world.random.chance(if reading { 0.03 } else { 0.0005 }) {
            return;
        }
        if reading && self.world.random.chance(0.3) {
            vi.sends.lose(&mut self.world);
        } else if reading && self.world.random.chance(0.3) {
            vi.sends.corrupt(&mut self.world);
        }
        let at_sends = reading && self.world.random.chance(0.7);
        let queue = if at_sends { &vi.sends } else { &vi.queue };
        if self.world.random.chance(0.5) {
            queue.revoke(&mut self.world);
        } else if queue.count > 0 {
            queue.shorten(&mut self.world);
        }
        self.copy_posts();
    }
}

impl Pace {
    /// Any, or the fastest.
    fn any(choice: &mut Random, fast: bool) -> Self {
        Self {
            ready: if fast { 1.0 } else { 0.3 + 0.6 * choice.below(100) as f64 / 100.0 },
            call: if fast { 1 } else { 1 + choice.below(12) },
            read: if fast { 1 } else { 1 + choice.below(200) },
        }
    }
}

/// What happened how often.
fn run(seed: u64) -> BTreeMap<String, u64> {
    let mut choice = Random::new(seed ^ 0x1234);
    let fast = choice.chance(0.3);
    let pace = Pace::any(&mut choice, fast);
    // Mostly a few; sometimes more than the engine can have descriptors at hand of.
    let few = choice.chance(0.85);
    let vis = if few { 1 + choice.below(6) } else { 17 + choice.below(8) } as usize;
    let mut bench = Bench::new(seed, vis, pace);
    bench.reread_faults = if choice.chance(0.3) { 0.5 } else { 0.0 };
    let faults = if choice.chance(0.5) { 0.15 } else { 0.0 };
    let writes = if choice.chance(0.7) { 0.5 } else { 0.0 };
    let long = if choice.chance(0.3) { 0.2 } else { 0.02 };
    let generous = if choice.chance(0.5) { 1.0 } else { 0.3 };
    let reads = if choice.chance(0.7) { 0.5 } else { 0.0 };
    let (longest, immediate) = (0x40200, 0.1);
    let plan = Plan { faults, long: generous, longest, immediate, rdma: 0.0, reads: 0.0 };
    let asks = Plan { faults: faults / 4.0, long: 0.1, rdma: 0.97, reads: 1.0, ..plan };
    let close = if choice.chance(0.7) { 0.8 } else { 0.0 };
    bench.vis.values_mut().for_each(|vi| vi.queue.close = close);
    let numbers: Vec<u16> = bench.vis.keys().copied().collect();
    let mut messages = 40 + choice.below(60);
    let mut cycles = 0_u64;
    while messages > 0
        || !bench.frames.is_empty()
        || bench.vis.values().any(|vi| !vi.left.is_empty())
    {
        cycles += 1;
        assert!(cycles < 4_000_000, "stuck: {:?} {:x?}", bench.expected, bench.model.outputs);
        let random = &mut bench.world.random;
        let number = numbers[random.below(numbers.len() as u64) as usize];
        let hungry = bench.vis[&number].queue.count < 3;
        if random.chance(if hungry { 0.05 } else { 0.002 }) {
            let burst = if random.chance(0.3) { 4 } else { 1 };
            for _ in 0..burst {
                let vi = bench.vis.get_mut(&number).unwrap();
                if matches!(vi.state, State::Connected) && vi.queue.room() {
                    // What the frame at the head sees must not change under it.
                    if bench.judged && vi.queue.count == 0 {
                        continue;
                    }
                    vi.queue.post(&mut bench.world, plan);
                    bench.posted.push_back(number);
                    for (bus, data) in std::mem::take(&mut bench.world.memory.log) {
                        bench.write_shadow(bus, &data);
                    }
                }
            }
        }
        let answered = bench.vis.get_mut(&number).unwrap();
        if !bench.judged && answered.answering && bench.world.random.chance(0.01) {
            // The send engine has sent its answer.
            answered.answering = false;
        }
        // A stopped VI is connected again behind a fence, with an empty queue.
        let stopped = matches!(bench.vis[&number].state, State::Error);
        if stopped && bench.world.random.chance(0.003) {
            bench.pause = true;
        }
        if stopped
            && !bench.judged
            && bench.pause
            && bench.model.outputs.fence_paused != 0
            && bench.world.random.chance(0.1)
        {
            bench.reconnect(number);
        }
        let random = &mut bench.world.random;
        if bench.frames.len() < 20 && random.chance(0.05) {
            match random.below(20) {
                0 => bench.out_of_band(),
                1 => bench.control(number),
                2..6 if messages > 0 && bench.world.random.chance(reads) => {
                    messages -= 1;
                    match bench.world.random.below(8) {
                        0..3 => bench.request(number, faults / 2.0),
                        // Nobody asked for it, or it comes twice.
                        3 if faults > 0.0 => bench.response(number, 64, 0, faults),
                        _ => bench.ask(number, asks),
                    }
                }
                2..6 if messages > 0 => {
                    messages -= 1;
                    if bench.world.random.chance(writes) {
                        bench.write(number, faults / 2.0);
                    } else {
                        bench.message(number, long, faults / 2.0);
                    }
                }
                _ => {
                    let vi = bench.vis.get_mut(&number).unwrap();
                    let run = 1 + bench.world.random.below(5);
                    for _ in 0..run {
                        bench.frames.extend(vi.left.pop_front());
                    }
                }
            }
        }
        if bench.world.random.chance(if bench.pause { 0.004 } else { 0.001 }) {
            bench.pause = !bench.pause;
        }
        if bench.pause && !bench.judged && bench.model.outputs.fence_paused != 0 {
            bench.spoil(number);
        }
        bench.cycle();
        if bench.pause && bench.model.outputs.fence_paused != 0 {
            let out = &bench.model.outputs;
            let calls = [out.vi_valid, out.vi_complete_valid, out.vi_look_valid];
            assert_eq!((calls, out.staging_release), ([0; 3], 0));
        }
    }
    bench.pause = false;
    for _ in 0..1_000 {
        bench.cycle();
    }
    bench.counted.remove(&(Counter::DescriptorsFetched as u32));
    bench.counted.retain(|_, count| *count > 0);
    assert!(bench.is_done(), "left: {:?}", bench.trailing);
    assert_eq!(bench.counters, bench.counted, "counters");
    assert!(bench.shadow == bench.world.memory.bytes, "memory");
    println!("seed {seed}: {} frames, {} events, {pace:?}", bench.released, bench.events);
    bench.seen
}

#[test]
fn random_frames() {
    let mut seen = BTreeMap::new();
    let mut add = |seed| {
        for (kind, count) in run(seed) {
            *seen.entry(kind).or_insert(0) += count;
        }
    };
    each_seed(0..60, &mut add);
    // A POP in the cycle in which the prefetcher has Next again.
    add(10_662);
    println!("{seen:#?}");
}

/// A message of so many bytes on a Delivery VI, as its frames.
fn whole_message(bench: &mut Bench, number: u16, length: u32) {
    let vi = &bench.vis[&number];
    let whole = u64::from(length);
    for from in (0..whole.max(1)).step_by(4096) {
        let bytes = (whole - from).min(4096);
        let mut flags = flag::SEQUENCED | if from == 0 { flag::FIRST } else { 0 };
        flags |= if from + bytes == whole { flag::LAST } else { 0 };
        let header = Header {
            kind: Type::Data as u8,
            length: u16::try_from(bytes).unwrap(),
            src_node: vi.peer,
            dst_vi: number,
            src_vi: vi.peer_vi,
            connection: vi.connection,
            flags,
            word: if from == 0 && bytes < whole { length } else { 0 },
            ..Header::default()
        };
        let payload = vec![0x5a; usize::try_from(bytes).unwrap()];
        bench.frames.push_back((header, payload));
    }
}

/// VIs on Delivery level with so many posted descriptors of `length` bytes each, near to each other.
fn posted(vis: usize, each: u64, length: u32) -> Bench {
    let mut bench = Bench::new(1, vis, Pace { ready: 1.0, call: 1, read: 1 });
    let numbers: Vec<u16> = bench.vis.keys().copied().collect();
    for number in numbers {
        let vi = bench.vis.get_mut(&number).unwrap();
        (vi.level, vi.queue.close) = (2, 1.0);
        for _ in 0..each {
            vi.queue.post_one(&mut bench.world, length);
        }
    }
    for (bus, data) in std::mem::take(&mut bench.world.memory.log) {
        bench.write_shadow(bus, &data);
    }
    bench
}

/// Cycles from a frame's offer until all that it caused has happened, with neighbours that answer at once (calls two
/// cycles, reads two cycles): descriptor not at hand, and at hand.
#[test]
fn cost() {
    let bounds = [(8, (48, 20)), (64, (55, 27)), (4096, (559, 531)), (0x40000, (33_500, 33_450))];
    for (length, most) in bounds {
        for (ahead, most) in [(false, most.0), (true, most.1)] {
            let mut bench = posted(1, 1, length);
            let number = *bench.vis.keys().next().unwrap();
            if ahead {
                bench.posted.push_back(number);
            }
            for _ in 0..100 {
                bench.cycle();
            }
            whole_message(&mut bench, number, length);
            let mut cycles = 0;
            while !bench.is_done() {
                bench.cycle();
                cycles += 1;
            }
            println!("receive {length} bytes (descriptor at hand: {ahead}): {cycles} cycles");
            assert!(cycles <= most, "{length} bytes take {cycles} cycles");
        }
    }
}

/// Cycles a message in a row of small ones, VI by VI in turn: with neighbours that answer at once, and
/// with reads that take so many cycles more.
#[test]
fn rate() {
    let bounds =
        [(1, 0, 11), (1, 40, 12), (8, 0, 11), (8, 40, 11), (16, 40, 11), (64, 0, 11), (64, 40, 17)];
    for (vis, latency, most) in bounds {
        let mut bench = posted(vis, 128 / vis as u64, 8);
        bench.desc_read.latency = latency;
        let numbers: Vec<u16> = bench.vis.keys().copied().collect();
        bench.posted.extend(&numbers);
        for _ in 0..1000 {
            bench.cycle();
        }
        for at in 0..128 {
            whole_message(&mut bench, numbers[at % vis], 8);
        }
        let mut cycles = 0;
        while !bench.is_done() {
            bench.cycle();
            cycles += 1;
        }
        let each = cycles / 128;
        println!("receive 8 bytes, {vis} VIs, latency {latency}: {each} cycles a message");
        assert!(each <= most, "{vis} VIs, latency {latency}: {each} cycles a message");
    }
}

/// The number of the only VI; a doorbell's hint for it, and time to fetch.
fn fetch_ahead(bench: &mut Bench) -> u16 {
    let number = *bench.vis.keys().next().unwrap();
    bench.posted.push_back(number);
    for _ in 0..200 {
        bench.cycle();
    }
    for (bus, data) in std::mem::take(&mut bench.world.memory.log) {
        bench.write_shadow(bus, &data);
    }
    number
}

/// Until all frames are done; nothing is left to expect, and memory is as it must be.
fn settle(bench: &mut Bench) {
    for _ in 0..20_000 {
        bench.cycle();
        if bench.is_done() {
            assert!(bench.expected.is_empty());
            assert!(bench.shadow == bench.world.memory.bytes, "memory");
            return;
        }
    }
    panic!("stuck: {:?}", bench.expected);
}

fn fence(bench: &mut Bench, between: impl FnOnce(&mut Bench)) {
    bench.pause = true;
    for _ in 0..200 {
        bench.cycle();
    }
    assert_eq!(bench.model.outputs.fence_paused, 1);
    between(bench);
    bench.pause = false;
    bench.cycle();
}

/// A Next that was read before its successor was posted is not used (contract 2.3).
#[test]
fn next_is_linked_late() {
    for told in [false, true] {
        let mut bench = posted(1, 1, 64);
        let number = *bench.vis.keys().next().unwrap();
        // Next leads to a descriptor that is there, but was never posted.
        let vi = bench.vis.get_mut(&number).unwrap();
        vi.queue.post_one(&mut bench.world, 64);
        vi.queue.unpost();
        fetch_ahead(&mut bench);
        assert_eq!(bench.desc_read.requests, 1);
        let vi = bench.vis.get_mut(&number).unwrap();
        for _ in 0..3 {
            vi.queue.post_one(&mut bench.world, 64);
        }
        if told {
            fetch_ahead(&mut bench);
        }
        for (bus, data) in std::mem::take(&mut bench.world.memory.log) {
            bench.write_shadow(bus, &data);
        }
        for _ in 0..4 {
            whole_message(&mut bench, number, 64);
        }
        settle(&mut bench);
        assert_eq!(bench.seen["Pop"], 4);
    }
}

/// One VI posts line by line, and now and then somewhere else: reads that were ordered behind the last
/// one are used or dropped, and every message finds its own descriptor.
#[test]
fn the_stream_turns() {
    let mut streams = 0;
    each_seed(0..20, |seed| {
        let mut bench = posted(1, 1, 64);
        bench.desc_read.latency = 40;
        let mut choice = Random::new(seed);
        let number = *bench.vis.keys().next().unwrap();
        bench.pace = Pace { ready: 0.9, call: 1 + seed % 6, read: 1 + 4 * (seed % 20) };
        bench.vis.get_mut(&number).unwrap().queue.close = [1.0, 0.97, 0.9][(seed % 3) as usize];
        let mut sent = 0;
        for round in 0..60 {
            let burst = if round == 0 { 40 } else { choice.below(6) };
            for _ in 0..burst {
                let vi = bench.vis.get_mut(&number).unwrap();
                vi.queue.post_one(&mut bench.world, 64);
                bench.posted.push_back(number);
            }
            for (bus, data) in std::mem::take(&mut bench.world.memory.log) {
                bench.write_shadow(bus, &data);
            }
            let waiting = bench.frames.len() as u64;
            let room = u64::from(bench.vis[&number].queue.count).saturating_sub(waiting);
            for _ in 0..choice.below(6).min(room) {
                whole_message(&mut bench, number, 64);
                sent += 1;
            }
            for _ in 0..choice.below(100) {
                bench.cycle();
            }
        }
        settle(&mut bench);
        assert_eq!(bench.seen.get("Pop"), Some(&sent), "seed {seed}");
        streams += u32::from(bench.desc_read.most > 1);
    });
    println!("{streams} of 20 were streams");
    assert!(streams >= 15, "one read at a time in {} of 20", 20 - streams);
}

/// What lies behind a posted descriptor is not used before it is posted, nor as it was then.
#[test]
fn read_ahead_of_the_count() {
    let mut bench = posted(1, 3, 64);
    let number = *bench.vis.keys().next().unwrap();
    let later = bench.vis.get_mut(&number).unwrap().queue.unpost();
    fetch_ahead(&mut bench);
    whole_message(&mut bench, number, 64);
    settle(&mut bench);
    fetch_ahead(&mut bench);
    // Its first segment moves before it is posted.
    let address = later.bus + 32;
    let old = u64::from_le_bytes(bench.world.memory.read(address, 8).try_into().unwrap());
    bench.world.memory.put(address, &(old + 0x1008).to_le_bytes());
    bench.vis.get_mut(&number).unwrap().queue.post_again(later);
    fetch_ahead(&mut bench);
    whole_message(&mut bench, number, 64);
    whole_message(&mut bench, number, 64);
    settle(&mut bench);
    assert_eq!((bench.seen["Pop"], bench.vis[&number].queue.count), (3, 0));
}

/// A region is revoked between the fetch and the frame (contract 8).
#[test]
fn region_is_revoked_after_the_fetch() {
    let mut bench = posted(1, 2, 64);
    let number = fetch_ahead(&mut bench);
    let before = bench.desc_read.requests;
    assert!(before > 0);
    fence(&mut bench, |bench| bench.vis[&number].queue.revoke(&mut bench.world));
    whole_message(&mut bench, number, 64);
    settle(&mut bench);
    assert!(bench.desc_read.requests > before);
    let stop = format!("stop {} 20 false", StopReason::Protection as u8);
    let kinds: Vec<&str> = bench.seen.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["Pop", "complete false", "status 10005 false", stop.as_str()]);
}

/// A VI is disconnected and connected again; the same places hold other descriptors.
#[test]
fn descriptors_of_a_stopped_vi_are_forgotten() {
    let mut bench = posted(1, 3, 64);
    let number = fetch_ahead(&mut bench);
    fence(&mut bench, |bench| {
        let vi = bench.vis.get_mut(&number).unwrap();
        vi.queue.clear();
        vi.queue.rewind();
        vi.queue.post_one(&mut bench.world, 48);
    });
    fetch_ahead(&mut bench);
    whole_message(&mut bench, number, 64);
    settle(&mut bench);
    assert_eq!(bench.seen.get("write"), None, "the old buffer was 64 bytes long");
}

/// Cycles of a response's frame, offer to release, with neighbours that answer at once: the
/// descriptor is read for each.
#[test]
fn reply_cost() {
    for (length, most) in [(8, 60), (4096, 580), (0x40000, 64 * 580)] {
        let mut bench = Bench::new(1, 1, Pace { ready: 1.0, call: 1, read: 1 });
        let number = *bench.vis.keys().next().unwrap();
        let vi = bench.vis.get_mut(&number).unwrap();
        vi.level = 2;
        vi.sends.post_read(&mut bench.world, length);
        vi.reading = Some((0, length));
        bench.copy_posts();
        for from in (0..length).step_by(4096) {
            let bytes = (length - from).min(4096);
            bench.response(number, bytes, length - from - bytes, 0.0);
        }
        let left = std::mem::take(&mut bench.vis.get_mut(&number).unwrap().left);
        bench.frames.extend(left);
        let mut cycles = 0;
        while !bench.is_done() {
            bench.cycle();
            cycles += 1;
            assert!(cycles < 100_000, "stuck: {:?}", bench.expected);
        }
        println!("answer of {length} bytes: {cycles} cycles");
        assert!(cycles < most, "{length} bytes take {cycles} cycles");
    }
}
