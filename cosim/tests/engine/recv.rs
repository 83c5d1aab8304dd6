//! The receive engine.

mod reference;
mod scenarios;
mod stimulus;

use crate::host::{Call, Host, Pace, PacketPort, ReadPort, answer_tpt};
use crate::post::Queue;
use cosim::verilated::blocks::recv::Model;
use nic_model::tpt::Owner;
use nic_regs::counter::Counter;
use nic_regs::frame::Header;
use nic_regs::tpt::{RIGHT_RDMA_READ, RIGHT_RDMA_WRITE, RIGHT_VALID};
use nic_regs::vi::State;
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
        ack: bool,
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
        ack: bool,
        sends: bool,
    },
    /// Of the send queue, for a read: so many bytes are placed; it leaves the queue.
    Place(u32),
    PopRead,
    /// The answer to the peer's read is pending: after all earlier writes.
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

#[derive(Debug, Default)]
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
    /// It has left the queue, and its completion is not reported yet.
    read_over: bool,
    /// An answer to the peer is pending.
    answering: bool,
    /// The sender's side.
    message: u8,
    left: VecDeque<(Header, Vec<u8>)>,
}

#[derive(Default)]
struct Bench {
    model: Model,
    host: Host,
    /// Host memory as it must be.
    shadow: Vec<u8>,
    pace: Pace,
    vis: BTreeMap<u16, Vi>,
    /// Frames that the engine has taken, then the one that is offered, then those to come.
    frames: VecDeque<(Header, Vec<u8>)>,
    taken: usize,
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
    /// VIs that a doorbell was rung for, of which the engine is not notified yet.
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

impl Bench {
    fn new(seed: u64, vis: usize, pace: Pace) -> Self {
        Self::around(Model::default(), seed, vis, pace)
    }

    /// Around an engine that may have been used.
    fn around(mut model: Model, seed: u64, vis: usize, pace: Pace) -> Self {
        model.renew();
        let mut host = Host::sized(seed, (2 * vis as u64 + 15) << 19);
        let mut table = BTreeMap::new();
        while table.len() < vis {
            let number = u16::try_from(host.random.below(1024)).unwrap();
            let tag = u16::try_from(host.random.below(1 << 16)).unwrap();
            let domain = u8::try_from(host.random.below(64)).unwrap();
            if table.contains_key(&number) {
                continue;
            }
            let queue = Queue::new(&mut host, Owner { tag, domain });
            let targets = [RIGHT_RDMA_WRITE, RIGHT_RDMA_READ].map(|right| {
                let index = host.new_region(0x12000, queue.owner);
                host.region_mut(index).rights = RIGHT_VALID | right;
                index
            });
            let sends = Queue::new(&mut host, queue.owner);
            let random = &mut host.random;
            let vi = Vi {
                number,
                queue,
                sends,
                state: State::Connected,
                level: [1, 2, 4][random.below(3) as usize],
                peer: random.below(64) as u8,
                peer_vi: random.below(1 << 16) as u16,
                connection: random.below(1 << 16) as u16,
                allows: if random.chance(0.9) { 3 } else { random.below(3) as u8 },
                targets,
                message: random.below(256) as u8,
                ..Vi::default()
            };
            table.insert(number, vi);
        }
        let shadow = host.memory.bytes.clone();
        Self { model, host, shadow, pace, vis: table, ..Self::default() }
    }

    fn copy_posts(&mut self) {
        for (bus, data) in std::mem::take(&mut self.host.memory.log) {
            self.write_shadow(bus, &data);
        }
    }

    fn write_shadow(&mut self, bus: u64, data: &[u8]) {
        let at = usize::try_from(bus - self.host.memory.base).unwrap();
        self.shadow[at..at + data.len()].copy_from_slice(data);
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
            Event::Complete { ack, .. } => format!("complete {ack}"),
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
                let ack = out.vi_need_ack != 0;
                if let (None, Some(Event::Over { .. })) = (progress, self.expected.front()) {
                    self.happened(Event::Over { ack });
                } else {
                    assert!(!ack, "a ViAck is pending for nothing");
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
                    queue.unread = self.host.next_fails(bus, self.reread_faults);
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
        let (random, pace) = (&mut self.host.random, self.pace);
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
            let beats = self.frames[self.taken].0.to_beats();
            m.staging_base = self.bases[self.taken];
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
        let request = (out.desc_read_req_valid != 0, out.desc_read_req_address);
        let length = u64::from(out.desc_read_req_length);
        self.desc_read.observe(request.0, request.1, length, &mut self.host, pace);
        if self.tpt.observe(out.desc_tpt_valid != 0, &mut self.host.random, pace) {
            answer_tpt!(self, out);
        }
        let beat = (out.write_valid != 0).then_some((out.write_data, out.write_last != 0));
        let packet = (out.write_req_valid != 0)
            .then_some((out.write_req_address, out.write_req_length.into()));
        if let Some((bus, data)) = self.write.observe(packet, beat, &mut self.host.memory) {
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
        if self.vi_call.observe(out.vi_valid != 0, &mut self.host.random, pace) {
            self.vi_operation();
        }
        let completes = out.vi_complete_valid != 0;
        if self.complete_call.observe(completes, &mut self.host.random, pace) {
            let (ack, sends) = (out.vi_complete_need_ack != 0, out.vi_complete_sends != 0);
            let vi = self.vis.get_mut(&out.vi_complete_vi).unwrap();
            if sends {
                (vi.reading, vi.read_over) = (None, false);
            }
            self.happened(Event::Complete { vi: out.vi_complete_vi, ack, sends });
        }
        if self.look_call.observe(out.vi_look_valid != 0, &mut self.host.random, pace) {
            self.look(out.vi_look_vi);
        }
        self.message_call();
        self.staging_data();
        if out.staging_refused != 0 {
            self.count(Counter::MessagesRefused, 1);
            self.happened(Event::Refused);
        }
        self.staging_frames();
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
    fn staging_frames(&mut self) {
        let (take, release) =
            (self.model.outputs.staging_take != 0, self.model.outputs.staging_release != 0);
        let offered = self.offered;
        if take {
            assert!(offered && self.taken < 16, "no frame to take");
            (self.offered, self.taken) = (false, self.taken + 1);
        }
        if release {
            assert!(self.judged);
            if self.taken > 0 {
                self.taken -= 1;
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
            && self.taken < 16
            && self.taken < self.frames.len()
            && self.host.random.chance(self.pace.ready)
        {
            self.offered = true;
            self.bases.push_back(self.next_base);
            let beats = self.frames[self.taken].1.len().div_ceil(8) as u16;
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
            if self.message_age >= 2 && self.host.random.chance(0.7) {
                self.message_beats.push(out.events_message_data);
                self.model.inputs.events_message_index = self.message_beats.len() as u8 % 6;
                self.message_age = 0;
            }
            return;
        }
        if self.event_call.observe(out.events_valid != 0, &mut self.host.random, self.pace) {
            let bytes = self.message_beats.drain(..).flat_map(u64::to_le_bytes).collect();
            assert_eq!((out.events_word1, out.events_word2, out.events_wide), (0, 0, 1));
            let (queue, word0) = (out.events_queue, out.events_word0);
            self.happened(Event::Message { queue, word0, bytes });
            let outcome = self.host.random.below(5).saturating_sub(2) as u8;
            self.model.inputs.events_outcome = outcome;
            self.model.inputs.events_message_index = 0;
            if outcome != 0 {
                self.expected.push_back(Event::Refused);
            }
        }
    }
}
