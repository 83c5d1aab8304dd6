//! The send engine.

use crate::host::{Allowed, Call, Fault, Found, Owner, Pace, ReadPort, Resolved, World, WritePort};
use crate::post::{Plan, Queue};
use cosim::random::each_seed;
use cosim::verilated::blocks::send::Model;
use nic_regs::desc::{control, status};
use nic_regs::frame::{RdmaHeader, Type, flag};
use nic_regs::tpt::{Handle, RIGHT_RDMA_READ, RIGHT_VALID};
use nic_regs::vi::{State, StopReason};
use push::{Judged, Line, Push};
use std::collections::{BTreeMap, VecDeque};

mod push;

/// Bytes that print short.
#[derive(Clone, PartialEq, Eq)]
struct Payload(Vec<u8>);

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes {:x?}..", self.0.len(), &self.0[..self.0.len().min(8)])
    }
}

/// What the engine does for a VI, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Frame {
        kind: Type,
        flags: u8,
        word: u32,
        fragment: u8,
        payload: Payload,
    },
    Pop,
    Await(u32),
    /// A read of so many bytes is asked for.
    Reading(u32),
    Status {
        bus: u64,
        length: u32,
        status: u32,
    },
    Complete,
    Stop {
        reason: u8,
        status: u32,
    },
    /// Not an event: from here on these are due, side by side with what follows.
    End(Vec<Self>),
    /// The same, when the ViAck has come.
    EndAcked(Vec<Self>),
}

#[derive(Debug)]
struct Vi {
    queue: Queue,
    state: State,
    level: u8,
    peer: u8,
    peer_vi: u16,
    connection: u16,
    max_transfer: u32,
    /// RDMA that the peer's VI allows.
    allows: u8,
    scheduled: bool,
    in_progress: bool,
    progress: u32,
    fragment: u8,
    message: u8,
    popped_token: (u16, u32),
    awaiting: bool,
    acked: bool,
    ack_in: Option<u64>,
    owed: u8,
    sent_owed: u8,
    /// The engine heard that the peer is down.
    told_down: bool,
    refuse_reason: u8,
    /// What it must do next with the head: frames, pop.
    expected: VecDeque<Event>,
    /// What ends descriptors that were popped; the next one may be fetched meanwhile.
    ending: VecDeque<Event>,
    /// The message that waits for its ViAck.
    waiting: VecDeque<Event>,
    /// `expected` holds what must happen to the present head.
    foreseen: bool,
    stopped: bool,
    frames_sent: u64,
    /// Number of the message in progress or next: messages of which a frame was sent.
    number: u8,
    /// A CHECK was answered and its frame is not yet committed.
    checked: bool,
    /// Total of the message in progress.
    whole: u64,
    /// A read waits for its answer, which is complete in so many cycles once it is asked for.
    reading: bool,
    answer_in: Option<u64>,
    /// Region that the peer may read; the answer that is owed: address, handle, bytes left.
    source: u16,
    answer: Option<(u64, u32, u32)>,
    /// The VI owed an answer when it was taken.
    owing: bool,
    /// The frame on its way: where its bytes are, how many, how many are left after it.
    part: Option<(u64, u32, u32)>,
    /// A push that the engine has.
    pushed: Option<Push>,
    /// A push has stopped it, when its next descriptor may have been in hand (contract 6.1: what CHECK does
    /// not find Connected is not sent).
    cut_off: bool,
}

impl Vi {
    /// Ends that are due now.
    fn unfold(&mut self) {
        match self.expected.front() {
            Some(Event::End(end)) => self.ending.extend(end.clone()),
            Some(Event::EndAcked(end)) => self.waiting.extend(end.clone()),
            _ => return,
        }
        self.expected.pop_front();
    }

    /// Status of the next descriptor that is known to end.
    fn next_status(&self) -> Option<u32> {
        let next = self.expected.iter().find_map(|event| match event {
            Event::End(end) | Event::EndAcked(end) => Some(end),
            _ => None,
        });
        let status = |event: &Event| match event {
            Event::Status { status, .. } => Some(*status),
            _ => None,
        };
        self.ending.iter().rev().find_map(status).or_else(|| next?.iter().find_map(status))
    }

    /// Why the peer's VI does not take this RDMA, if it does not.
    fn bars(&self, found: &Resolved) -> Option<StopReason> {
        let (bit, reason) = match (found.remote, found.reads) {
            (None, _) => return None,
            (_, false) => (1, StopReason::RdmaWrite),
            (_, true) => (2, StopReason::RdmaRead),
        };
        (self.allows & bit == 0).then_some(reason)
    }

    fn has_work(&self) -> bool {
        let ready = !self.reading && !self.awaiting && self.queue.count > 0;
        let works = ready || self.answer.is_some();
        self.owed != 0 || (matches!(self.state, State::Connected) && works)
    }
}

/// What a frame in the pool is.
#[derive(Clone, Copy, Debug)]
struct Asked {
    data: bool,
    sequenced: bool,
    peer: u8,
    length: u64,
}

/// The last cycles in which something happened at the engine's ports.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    taken: u64,
    desc_request: u64,
    desc_last: u64,
    read_request: u64,
    read_last: u64,
    commit: u64,
    status: u64,
}

struct Bench {
    model: Model,
    world: World,
    pace: Pace,
    vis: Vec<(u16, Vi)>,
    ring: VecDeque<u16>,
    /// VIs whose sends are acknowledged and not ended.
    acked: VecDeque<u16>,
    desc_read: ReadPort,
    read: ReadPort,
    write: WritePort,
    tpt: Call,
    vi_call: Call,
    ask: Call,
    commit: Call,
    /// Frames that have room, oldest first.
    asked: VecDeque<Asked>,
    beats: Vec<u64>,
    beat_ready: bool,
    refusals: f64,
    /// This peer has no room.
    full: Option<u8>,
    down: Option<u8>,
    message: Option<[u8; 48]>,
    messages: [u64; 3],
    message_frames: u64,
    outcomes: [u64; 3],
    message_index: u8,
    /// The VI whose context was read last.
    in_hand: u16,
    /// This VI's doorbell is looked at in the next cycle, and tells the context; so it did in the last one.
    telling: Option<u16>,
    fresh: Option<u16>,
    now: u64,
    marks: Marks,
    pause: bool,
    frames: u64,
    counted_fetches: u64,
    counted_messages: u64,
    refused: u64,
    counted_refused: u64,
    reread_faults: f64,
    events: u64,
    seen: BTreeMap<String, u64>,
    /// The push line that is being filled, or waits for its doorbell; the doorbell of the next cycle.
    line: Option<Line>,
    judged: Option<Judged>,
    /// Slots that are in use.
    slots: u8,
}

/// What a read that may be asked for does.
fn asking(found: &Resolved) -> [Event; 2] {
    let remote = found.remote.expect("an address segment");
    let total = u32::try_from(found.total).unwrap();
    let place = RdmaHeader { address: remote.address, handle: remote.handle, total };
    let payload = place.to_beats().iter().flat_map(|beat| beat.to_le_bytes()).collect();
    let frame = Event::Frame {
        kind: Type::ReadRequest,
        flags: flag::SEQUENCED,
        word: 0,
        fragment: 0,
        payload: Payload(payload),
    };
    [Event::Reading(total), frame]
}

fn error_status(operation: u32, bit: u32, partial: bool) -> u32 {
    let partial = if partial { status::PARTIAL_ERROR } else { 0 };
    status::DONE | operation | bit | partial
}

impl Bench {
    fn new(seed: u64, vis: usize, pace: Pace) -> Self {
        let mut world = World::new(seed);
        let mut table = Vec::new();
        for _ in 0..vis {
            let number = loop {
                let number = u16::try_from(world.random.below(1024)).unwrap();
                if table.iter().all(|(other, _)| *other != number) {
                    break number;
                }
            };
            let tag = u16::try_from(world.random.below(1 << 16)).unwrap();
            let domain = u8::try_from(world.random.below(64)).unwrap();
            let mut queue = Queue::new(&mut world, Owner { tag, domain });
            let source = world.region(0x18000, queue.owner);
            world.regions.get_mut(&source).unwrap().rights = RIGHT_VALID | RIGHT_RDMA_READ;
            let random = &mut world.random;
            let level = [1, 2, 4][random.below(3) as usize];
            queue.allowed = Allowed { writes: true, reads: level != 1 };
            let vi = Vi {
                queue,
                state: State::Connected,
                level,
                peer: random.below(64) as u8,
                peer_vi: random.below(1 << 16) as u16,
                connection: random.below(1 << 16) as u16,
                max_transfer: if random.chance(0.7) { 0x40000 } else { 6000 },
                allows: if random.chance(0.8) { 3 } else { random.below(3) as u8 },
                scheduled: false,
                in_progress: false,
                progress: 0,
                fragment: 0,
                message: 0,
                popped_token: (0, 0),
                awaiting: false,
                acked: false,
                ack_in: None,
                owed: 0,
                sent_owed: 0,
                told_down: false,
                refuse_reason: 0,
                expected: VecDeque::new(),
                ending: VecDeque::new(),
                waiting: VecDeque::new(),
                foreseen: false,
                stopped: false,
                frames_sent: 0,
                number: 0,
                checked: false,
                whole: 0,
                reading: false,
                answer_in: None,
                source,
                answer: None,
                owing: false,
                part: None,
                pushed: None,
                cut_off: false,
            };
            let mut vi = vi;
            vi.number = random.below(256) as u8;
            vi.message = vi.number;
            table.push((number, vi));
        }
        let mut model = Model::new();
        model.inputs.reset = 1;
        model.cycle();
        model.inputs.reset = 0;
        Self {
            model,
            world,
            pace,
            vis: table,
            ring: VecDeque::new(),
            acked: VecDeque::new(),
            desc_read: ReadPort::default(),
            read: ReadPort::default(),
            write: WritePort::default(),
            tpt: Call::default(),
            vi_call: Call::following(),
            ask: Call::following(),
            commit: Call::default(),
            asked: VecDeque::new(),
            beats: Vec::new(),
            beat_ready: false,
            refusals: 0.0,
            full: None,
            down: None,
            message: None,
            messages: [0; 3],
            message_frames: 0,
            outcomes: [0; 3],
            message_index: 0,
            telling: None,
            fresh: None,
            in_hand: 0,
            now: 0,
            marks: Marks::default(),
            pause: false,
            frames: 0,
            counted_fetches: 0,
            counted_messages: 0,
            refused: 0,
            counted_refused: 0,
            reread_faults: 0.0,
            events: 0,
            seen: BTreeMap::new(),
            line: None,
            judged: None,
            slots: 0,
        }
    }

    fn at(&mut self, number: u16) -> &mut Vi {
        &mut self.vis.iter_mut().find(|(other, _)| *other == number).expect("a known VI").1
    }

    fn schedule(&mut self, number: u16) {
        let vi = self.at(number);
        if vi.has_work() && !vi.scheduled && vi.pushed.is_none() {
            vi.scheduled = true;
            self.ring.push_back(number);
        }
    }

    /// What must happen to the descriptor that is now the head.
    fn expect(&mut self, number: u16) {
        let at = self.vis.iter().position(|(other, _)| *other == number).unwrap();
        let vi = &self.vis[at].1;
        let stops = vi.ending.iter().any(|event| matches!(event, Event::Stop { .. }));
        // A Reception VI does nothing for the next message before this one is complete.
        let quiet = vi.expected.is_empty() && vi.ending.is_empty() && vi.waiting.is_empty();
        if vi.queue.count == 0 || vi.stopped || stops || vi.foreseen || (vi.level == 4 && !quiet) {
            return;
        }
        let stop = |reason: StopReason, status| Event::Stop { reason: reason as u8, status };
        let mut events = VecDeque::new();
        let end = |bus, bit, partial, reason| {
            let partial = partial || vi.frames_sent > 0;
            let status = error_status(self.world.operation(bus), bit, partial);
            let mut end = vec![Event::Status { bus, length: 0, status }, Event::Complete];
            if vi.level != 1 {
                end.push(stop(reason, status::DESC_FLUSHED_ERROR));
            }
            Event::End(end)
        };
        let fail = |bus, bit, partial, reason| [Event::Pop, end(bus, bit, partial, reason)];
        match vi.queue.head(&self.world) {
            Err(Fault::Descriptor) => {
                let stop = stop(StopReason::Descriptor, status::PROTECTION_ERROR);
                events.push_back(Event::End(vec![stop]));
            }
            Err(Fault::HostRead) => {
                let stop = stop(StopReason::HostRead, status::TRANSPORT_ERROR);
                events.push_back(Event::End(vec![stop]));
            }
            Err(Fault::Format(bus)) => {
                events.extend(fail(bus, status::FORMAT_ERROR, false, StopReason::Format));
            }
            Err(Fault::Protection(bus)) => {
                let reason = StopReason::Protection;
                events.extend(fail(bus, status::PROTECTION_ERROR, false, reason));
            }
            Ok(found)
                if found.total > u64::from(vi.max_transfer)
                    || (vi.frames_sent > 0 && (found.reads || found.total != vi.whole)) =>
            {
                events.extend(fail(found.bus, status::LENGTH_ERROR, false, StopReason::Length));
            }
            Ok(found) if vi.bars(&found).is_some() => {
                let reason = vi.bars(&found).unwrap();
                events.extend(fail(found.bus, status::RDMA_PROT_ERROR, false, reason));
            }
            Ok(found) if found.reads => events.extend(asking(&found)),
            Ok(found) => {
                let frames = found.total.div_ceil(4096).max(1);
                for frame in vi.frames_sent..frames {
                    let from = frame * 4096;
                    let length = (found.total - from).min(4096);
                    let pieces = World::pieces(&found, from, length);
                    let memory = &self.world.memory;
                    if pieces.iter().any(|&(bus, bytes)| memory.fails(bus, bytes)) {
                        let (bit, reason) = (status::TRANSPORT_ERROR, StopReason::HostRead);
                        // Payload of the last frame comes after the pop.
                        events.push_back(Event::Pop);
                        if frame + 1 == frames && vi.level == 4 {
                            events.push_back(Event::Await(u32::try_from(found.total).unwrap()));
                        }
                        events.push_back(end(found.bus, bit, frame > 0, reason));
                        break;
                    }
                    let mut payload = Vec::new();
                    if let Some(remote) = found.remote {
                        let address = remote.address.wrapping_add(from);
                        let total = u32::try_from(found.total).unwrap();
                        let header = RdmaHeader { address, handle: remote.handle, total };
                        payload
                            .extend(header.to_beats().iter().flat_map(|beat| beat.to_le_bytes()));
                    }
                    for &(bus, bytes) in &pieces {
                        payload.extend_from_slice(memory.read(bus, bytes));
                    }
                    let write = found.remote.is_some();
                    let (first, last) = (frame == 0, frame + 1 == frames);
                    let immediate = last && found.control.control & control::IMMEDIATE != 0;
                    let mut flags = if first { flag::FIRST } else { 0 };
                    flags |= if last { flag::LAST } else { 0 };
                    flags |= if immediate { flag::IMMEDIATE } else { 0 };
                    flags |= if vi.level != 1 { flag::SEQUENCED } else { 0 };
                    flags |= if vi.level == 4 { flag::RECEPTION } else { 0 };
                    let word = match (immediate, first && !last) {
                        (true, _) => found.control.immediate,
                        (_, true) if !write => u32::try_from(found.total).unwrap(),
                        _ => 0,
                    };
                    let fragment = if vi.level == 1 { u8::try_from(frame).unwrap() } else { 0 };
                    let total = u32::try_from(found.total).unwrap();
                    if last {
                        events.push_back(Event::Pop);
                        if vi.level == 4 {
                            events.push_back(Event::Await(total));
                        }
                    }
                    events.push_back(Event::Frame {
                        kind: if write { Type::RdmaWrite } else { Type::Data },
                        flags,
                        word,
                        fragment,
                        payload: Payload(payload),
                    });
                    if last {
                        let status = status::DONE | self.world.operation(found.bus);
                        let done = Event::Status { bus: found.bus, length: total, status };
                        let end = vec![done, Event::Complete];
                        events.push_back(if vi.level == 4 {
                            Event::EndAcked(end)
                        } else {
                            Event::End(end)
                        });
                    }
                }
            }
        }
        let vi = &mut self.vis[at].1;
        vi.foreseen = true;
        vi.expected.extend(events);
        vi.unfold();
    }

    fn happened(&mut self, number: u16, event: Event) {
        self.events += 1;
        let kind = match &event {
            Event::Frame { kind, flags, .. } => format!("frame {flags:x} {kind:?}"),
            Event::Status { status, .. } => format!("status {status:x}"),
            Event::Stop { reason, status } => format!("stop {reason} {status:x}"),
            Event::Await(_) => "await".into(),
            Event::Reading(_) => "reading".into(),
            other => format!("{other:?}"),
        };
        *self.seen.entry(kind).or_default() += 1;
        let vi = self.at(number);
        assert!(!vi.stopped || vi.acked, "VI {number} is stopped: {event:?}");
        let ends = matches!(event, Event::Status { .. } | Event::Complete | Event::Stop { .. });
        let due = if ends { &mut vi.ending } else { &mut vi.expected };
        // A COMPLETE may wait for the port while the next status is written.
        if matches!(due.front(), Some(Event::Complete)) && due.get(1) == Some(&event) {
            due.swap(0, 1);
        }
        assert_eq!(due.pop_front().as_ref(), Some(&event), "VI {number}");
        vi.unfold();
        if let Event::Frame { kind, flags, word, ref payload, .. } = event {
            if kind == Type::ReadRequest {
                return;
            }
            if flags & flag::LAST != 0 {
                vi.number = vi.number.wrapping_add(1);
            } else {
                vi.frames_sent += 1;
            }
            if flags & flag::FIRST != 0 && flags & flag::LAST == 0 {
                vi.whole = word.into();
                if kind == Type::RdmaWrite {
                    let total = payload.0[12..16].try_into().unwrap();
                    vi.whole = u32::from_le_bytes(total).into();
                }
            }
        }
        if let Event::Status { status, .. } = event
            && status & status::PARTIAL_ERROR != 0
        {
            vi.number = vi.number.wrapping_add(1);
        }
        if matches!(event, Event::Stop { .. }) {
            vi.stopped = true;
        }
    }

    /// The answer to GET.
    fn context(&mut self, number: u16) {
        self.in_hand = number;
        let vi = self.at(number);
        vi.owing = vi.owed == 0 && vi.answer.is_some();
        self.show(number);
    }

    /// What is told with every answer.
    fn show(&mut self, number: u16) {
        let vi = self.at(number);
        let inputs = (
            vi.state as u8,
            vi.queue.owner,
            vi.level,
            (vi.peer, vi.peer_vi, vi.connection, vi.max_transfer, vi.allows),
            if vi.awaiting {
                (vi.popped_token.0, vi.popped_token.1, 0)
            } else {
                let head = vi.queue.head;
                (head.region, head.offset_64, head.segments)
            },
            vi.queue.count,
            (vi.in_progress, vi.progress, vi.message, vi.fragment),
            (vi.awaiting, vi.acked, vi.owed, vi.refuse_reason),
            (vi.reading, vi.answer),
        );
        let m = &mut self.model.inputs;
        m.vi_ctx_state = inputs.0;
        (m.vi_ctx_tag, m.vi_ctx_domain) = (inputs.1.tag, inputs.1.domain);
        m.vi_ctx_reliability = inputs.2;
        m.vi_ctx_peer = inputs.3.0;
        m.vi_ctx_peer_vi = inputs.3.1;
        m.vi_ctx_connection = inputs.3.2;
        m.vi_ctx_max_transfer = inputs.3.3;
        m.vi_ctx_allows = inputs.3.4;
        (m.vi_ctx_region, m.vi_ctx_offset, m.vi_ctx_segments) = inputs.4;
        m.vi_ctx_count = inputs.5;
        m.vi_ctx_in_progress = inputs.6.0.into();
        m.vi_ctx_progress = inputs.6.1;
        m.vi_ctx_message = inputs.6.2;
        m.vi_ctx_fragment = inputs.6.3;
        m.vi_ctx_awaiting = inputs.7.0.into();
        m.vi_ctx_acked = inputs.7.1.into();
        m.vi_ctx_owed = inputs.7.2;
        m.vi_ctx_refuse_reason = inputs.7.3;
        m.vi_ctx_reading = inputs.8.0.into();
        m.vi_ctx_answer = inputs.8.1.is_some().into();
        (m.vi_ctx_answer_address, m.vi_ctx_answer_handle, m.vi_ctx_answer_left) =
            inputs.8.1.unwrap_or((0xdead, 0xbeef, 0x123));
    }

    /// SAVE.
    fn save(&mut self, number: u16) {
        let out = self.model.outputs.clone();
        let vi = self.at(number);
        assert!(!vi.owing, "an answer goes first");
        let connected = matches!(vi.state, State::Connected);
        if out.vi_reading != 0 {
            assert_eq!(out.vi_in_progress, 0);
            vi.reading = connected;
            if connected {
                self.happened(number, Event::Reading(out.vi_offset));
            }
        } else if connected {
            vi.in_progress = out.vi_in_progress != 0;
            vi.progress = out.vi_offset;
            vi.fragment = out.vi_fragment;
        }
        self.schedule(number);
    }

    fn vi_operation(&mut self) {
        let out = self.model.outputs.clone();
        let number = out.vi_vi;
        let next = (out.vi_next_valid != 0).then_some((out.vi_next_region, out.vi_next_offset));
        self.model.inputs.vi_need_next = 0;
        self.model.inputs.vi_ctx_state = self.at(number).state as u8;
        match out.vi_op {
            0 => self.context(number),
            1 => self.save(number),
            2 | 3 | 7 if self.at(number).cut_off => self.call_of_cut_off(number, out.vi_op, next),
            2 => {
                let vi = self.at(number);
                let (head, bus) = (vi.queue.head, vi.queue.posted[vi.queue.popped].bus);
                if !vi.queue.pop(next) {
                    self.model.inputs.vi_need_next = 1;
                    let unread = self.world.next_fails(bus, self.reread_faults);
                    self.at(number).queue.unread = unread;
                    return;
                }
                vi.popped_token = (head.region, head.offset_64);
                // A message that ends here after some frames, and is not counted by a CHECK.
                let counts = match vi.expected.get(1) {
                    Some(Event::End(end)) => end.iter().any(|event| {
                        matches!(event, Event::Status { status, .. }
                            if status & status::TRANSPORT_ERROR == 0)
                    }),
                    _ => false,
                };
                let counts = counts && vi.frames_sent > 0;
                assert_eq!(out.vi_in_progress != 0, counts, "counts as a message sent");
                vi.message = vi.message.wrapping_add(counts.into());
                vi.frames_sent = 0;
                vi.foreseen = false;
                (vi.in_progress, vi.progress, vi.fragment) = (false, 0, 0);
                self.happened(number, Event::Pop);
                self.expect(number);
                if self.at(number).level != 4 {
                    self.schedule(number);
                }
            }
            3 => {
                let vi = self.at(number);
                (vi.awaiting, vi.acked, vi.progress) = (true, false, out.vi_offset);
                vi.fragment = out.vi_fragment;
                self.happened(number, Event::Await(out.vi_offset));
            }
            4 => {
                self.happened(number, Event::Complete);
                let vi = self.at(number);
                if vi.awaiting {
                    (vi.awaiting, vi.acked, vi.progress) = (false, false, 0);
                }
                self.expect(number);
                self.schedule(number);
            }
            5 => {
                assert_eq!(out.vi_refuse, 1);
                if out.vi_queue != 0 {
                    self.answer_stops(number, (out.vi_reason, out.vi_status));
                    return;
                }
                let event = Event::Stop { reason: out.vi_reason, status: out.vi_status };
                self.happened(number, event);
                let vi = self.at(number);
                (vi.state, vi.answer) = (State::Error, None);
                if vi.level != 1 {
                    (vi.owed, vi.refuse_reason) = (vi.owed | 2, out.vi_reason);
                }
                self.schedule(number);
            }
            6 => {
                let peer = self.down;
                let vi = self.at(number);
                let down = peer == Some(vi.peer);
                let first = vi.owed & vi.owed.wrapping_neg();
                if out.vi_answered != 0 {
                    assert!(vi.owing && out.vi_owed == 0, "an answer after owed frames");
                    self.answered(number);
                    return;
                }
                if out.vi_owed == 0 {
                    // Its turn goes to the next VI.
                    self.schedule(number);
                    return;
                }
                assert_eq!(out.vi_owed, first);
                assert!(down || vi.told_down || vi.sent_owed == first, "SENT without a frame");
                vi.told_down = false;
                (vi.owed, vi.sent_owed) = (vi.owed & !first, 0);
                self.schedule(number);
            }
            15 => self.show(number),
            8 => self.push_returns(number),
            9 => self.push_goes(number),
            7 if self.at(number).part.is_some() => {
                assert_eq!(out.vi_in_progress, 0, "an answer has no number");
                self.at(number).checked = true;
            }
            7 => {
                let vi = self.at(number);
                // A frame that goes out, or one whose payload could not be read.
                let failed = matches!(vi.ending.front(), Some(Event::Status { status, .. })
                    if status & status::TRANSPORT_ERROR != 0);
                let counts = match vi.expected.front() {
                    Some(Event::Frame { flags, .. }) if !failed => {
                        vi.checked = true;
                        flags & flag::LAST != 0
                    }
                    _ => vi.next_status().expect("an end") & status::PARTIAL_ERROR != 0,
                };
                assert_eq!(out.vi_in_progress != 0, counts, "the message takes its number");
                let message = vi.message;
                vi.message = vi.message.wrapping_add(counts.into());
                self.model.inputs.vi_ctx_message = message;
            }
            op => panic!("operation {op}"),
        }
    }

    fn ask_answer(&mut self) {
        let out = &self.model.outputs;
        let asked = Asked {
            data: out.pool_ask_data != 0,
            sequenced: out.pool_ask_sequenced != 0,
            peer: out.pool_ask_peer,
            length: out.pool_ask_length.into(),
        };
        assert!(self.asked.len() < 2, "one frame ahead");
        assert!(asked.length <= 4112);
        let probes = out.pool_ask_probe != 0;
        let down = self.down == Some(asked.peer);
        let full = self.full == Some(asked.peer);
        let ok = !down && !full && !self.world.random.chance(self.refusals);
        self.model.inputs.pool_ask_ok = ok.into();
        self.model.inputs.pool_ask_down = down.into();
        if down && !asked.data && asked.length == 0 {
            let number = self.in_hand;
            self.at(number).told_down = true;
        }
        if ok && probes {
            assert!(asked.data, "a message's frame");
        } else if ok {
            self.asked.push_back(asked);
        } else if self.message.is_some() && !asked.data && asked.length == 48 {
            self.messages[if down { 1 } else { 2 }] += 1;
        }
    }

    fn commit(&mut self) {
        let out = self.model.outputs.clone();
        let asked = self.asked.pop_front().expect("a frame that was asked for");
        let beats = std::mem::take(&mut self.beats);
        if out.pool_commit_abort != 0 {
            return;
        }
        if out.pool_kind == Type::ReadResponse as u8 {
            return self.answer_frame(asked, &beats);
        }
        self.frames += 1;
        assert_eq!(beats.len() as u64, asked.length.div_ceil(8), "beats of {asked:?}");
        let mut payload: Vec<u8> = beats.iter().flat_map(|beat| beat.to_le_bytes()).collect();
        let padding = payload.split_off(usize::try_from(asked.length).unwrap());
        assert!(padding.iter().all(|&byte| byte == 0), "padding");
        let kind = Type::from_bits(out.pool_kind).unwrap();
        if kind == Type::Message {
            assert_eq!((asked.data, asked.sequenced, asked.length), (false, true, 48));
            assert_eq!(asked.peer, self.model.inputs.messages_peer);
            assert_eq!(payload, self.message.expect("a message"));
            assert_eq!(out.pool_dst_vi, u16::from(self.model.inputs.messages_domain));
            assert_eq!((out.pool_src_vi, out.pool_connection), (0, 0));
            assert_eq!((out.pool_flags, out.pool_word), (flag::SEQUENCED, 0));
            self.message_frames += 1;
            return;
        }
        let number = out.pool_src_vi;
        let vi = self.at(number);
        assert_eq!(asked.peer, vi.peer);
        assert_eq!((out.pool_dst_vi, out.pool_connection), (vi.peer_vi, vi.connection));
        if !matches!(kind, Type::Data | Type::RdmaWrite | Type::ReadRequest) {
            let first = vi.owed & vi.owed.wrapping_neg();
            let owed = match kind {
                Type::ViAck => 1,
                Type::ViRefuse => 2,
                _ => 4,
            };
            assert_eq!(owed, first, "order of owed frames");
            let word = if kind == Type::ViRefuse { u32::from(vi.refuse_reason) } else { 0 };
            assert_eq!((out.pool_flags, out.pool_word), (flag::SEQUENCED, word));
            assert!(!asked.data && asked.sequenced && asked.length == 0);
            vi.sent_owed = owed;
            return;
        }
        assert!(asked.data && asked.sequenced == (vi.level != 1));
        assert!(std::mem::take(&mut vi.checked), "the VI was not checked");
        let mut fragment = 0;
        if vi.level == 1 {
            assert_eq!(out.pool_unsequenced >> 8, u16::from(vi.number), "number of the message");
            fragment = out.pool_unsequenced as u8;
        }
        let (flags, word) = (out.pool_flags, out.pool_word);
        if vi.level == 4 && flags & flag::LAST != 0 {
            vi.ack_in = Some(30);
        }
        if kind == Type::ReadRequest {
            vi.answer_in = Some(300);
        }
        let payload = Payload(payload);
        self.happened(number, Event::Frame { kind, flags, word, fragment, payload });
    }

    /// SENT: a frame of an answer is on its way (contract 12.3).
    fn answered(&mut self, number: u16) {
        let vi = self.at(number);
        if !matches!(vi.state, State::Connected) {
            return;
        }
        let (address, handle, left) = vi.answer.expect("an answer is owed");
        let length = left.min(4096);
        let rest = left - length;
        let next = (address.wrapping_add(4096), handle, rest);
        vi.answer = (rest > 0).then_some(next);
        let found = self.range(number, (address, handle, left));
        assert!(left == 0 || found.ok, "a range that may not be read");
        self.at(number).part = Some((found.bus, length, rest));
        self.schedule(number);
    }

    fn range(&mut self, number: u16, (address, handle, left): (u64, u32, u32)) -> Found {
        let owner = self.at(number).queue.owner;
        let handle = Handle(handle);
        let generation = Some(handle.generation());
        let place = (true, address);
        self.world.look_up(handle.index(), generation, place, left, (owner, RIGHT_RDMA_READ))
    }

    fn answer_frame(&mut self, asked: Asked, beats: &[u64]) {
        let out = self.model.outputs.clone();
        let number = out.pool_src_vi;
        let vi = self.at(number);
        let (bus, length, rest) = vi.part.take().expect("a frame of an answer");
        assert!(std::mem::take(&mut vi.checked), "the VI was not checked");
        assert_eq!((out.pool_dst_vi, out.pool_connection), (vi.peer_vi, vi.connection));
        assert_eq!((out.pool_flags, out.pool_word), (flag::SEQUENCED, rest));
        assert!(asked.data && asked.sequenced && asked.peer == vi.peer);
        assert_eq!(asked.length, u64::from(length));
        let mut bytes: Vec<u8> = beats.iter().flat_map(|beat| beat.to_le_bytes()).collect();
        bytes.truncate(length as usize);
        if length > 0 {
            assert!(!self.world.memory.fails(bus, length.into()), "it could not be read");
            assert!(bytes == self.world.memory.read(bus, length.into()), "bytes of an answer");
        }
        *self.seen.entry(format!("answer {}", rest != 0)).or_default() += 1;
    }

    /// An answer that cannot go on stops its VI, and nothing else of it is in hand.
    fn answer_stops(&mut self, number: u16, told: (u8, u32)) {
        let vi = self.at(number);
        let (part, answer) = (vi.part.take(), vi.answer.take());
        assert!(matches!(vi.state, State::Connected));
        // The next descriptor may be one that is not to be had, which the engine has not tried.
        let untried = |event: &Event| {
            matches!(event, Event::Stop { reason, status }
                if *reason == StopReason::Descriptor as u8 || *status == status::TRANSPORT_ERROR)
        };
        // An acknowledged send is ended all the same.
        if !vi.awaiting || !vi.acked {
            assert!(vi.ending.iter().all(untried), "{:?}", vi.ending);
            vi.ending.clear();
        }
        let reason = if let Some((bus, length, _)) = part {
            assert!(self.world.memory.fails(bus, length.into()), "it could be read");
            StopReason::HostRead
        } else {
            let found = self.range(number, answer.expect("an answer"));
            assert!(!found.ok, "it may be read");
            self.refused += 1;
            StopReason::RdmaRead
        };
        assert_eq!(told, (reason as u8, status::DESC_FLUSHED_ERROR));
        *self.seen.entry(format!("stop {reason:?} by an answer")).or_default() += 1;
        let vi = self.at(number);
        (vi.state, vi.stopped) = (State::Error, true);
        (vi.owed, vi.refuse_reason) = (vi.owed | 2, told.0);
        (vi.ack_in, vi.answer_in, vi.checked) = (None, None, false);
        vi.expected.clear();
        vi.waiting.clear();
        self.schedule(number);
    }

    /// Answers to reads that are complete: the receive engine pops them.
    fn replies(&mut self) {
        for at in 0..self.vis.len() {
            let (number, vi) = &mut self.vis[at];
            let number = *number;
            match vi.answer_in {
                Some(0) if vi.stopped => vi.answer_in = None,
                Some(0) => {
                    assert!(vi.reading && vi.expected.is_empty(), "VI {number}: {:?}", vi.expected);
                    (vi.answer_in, vi.reading, vi.foreseen) = (None, false, false);
                    let next = vi.queue.successor();
                    assert!(vi.queue.pop(next));
                    self.expect(number);
                    self.schedule(number);
                }
                Some(left) => vi.answer_in = Some(left - 1),
                None => {}
            }
        }
    }

    /// The peer asks for memory; now and then for some that cannot be read.
    fn owe_answer(&mut self, at: usize) {
        let (number, vi) = &mut self.vis[at];
        let number = *number;
        let ready = vi.level != 1 && vi.answer.is_none() && vi.part.is_none();
        if !ready || vi.stopped || !matches!(vi.state, State::Connected) {
            return;
        }
        let region = self.world.regions[&vi.source];
        let random = &mut self.world.random;
        let left = match random.below(4) {
            0 => random.below(20),
            1 => 4096 * random.below(3),
            _ => random.below(20_000),
        };
        let offset = random.below(u64::from(region.length) - left);
        let handle = Handle::new(vi.source, region.generation).0;
        vi.answer = Some((region.va_base + offset, handle, left as u32));
        if random.chance(0.01) {
            self.world.memory.poison.push((region.bus_base + offset, 1));
        }
        self.schedule(number);
    }

    fn drive(&mut self) {
        let (random, pace) = (&mut self.world.random, self.pace);
        self.desc_read.drive(random, pace);
        self.read.drive(random, pace);
        self.write.drive(random, pace);
        self.beat_ready = random.chance(pace.ready);
        let noise = (random.bits(), random.bits(), random.chance(0.5), random.chance(0.5));
        let m = &mut self.model.inputs;
        m.desc_read_req_ready = self.desc_read.ready.into();
        m.desc_read_rsp_valid = self.desc_read.beat.is_some().into();
        let beat = self.desc_read.beat.unwrap_or((noise.0, noise.2, noise.3));
        m.desc_read_rsp_data = beat.0;
        m.desc_read_rsp_last = beat.1.into();
        m.desc_read_rsp_error = beat.2.into();
        m.read_req_ready = self.read.ready.into();
        m.read_rsp_valid = self.read.beat.is_some().into();
        let beat = self.read.beat.unwrap_or((noise.1, noise.3, noise.2));
        m.read_rsp_data = beat.0;
        m.read_rsp_last = beat.1.into();
        m.read_rsp_error = beat.2.into();
        m.write_ready = self.write.ready.into();
        m.pool_beat_ready = self.beat_ready.into();
        m.desc_tpt_done = self.tpt.done.into();
        m.vi_done = self.vi_call.done.into();
        m.pool_ask_done = self.ask.done.into();
        m.pool_commit_done = self.commit.done.into();
        m.vi_posting = self.telling.is_some().into();
        m.vi_work_valid = (!self.ring.is_empty() && self.telling.is_none()).into();
        m.vi_work_fresh = self.fresh.is_some().into();
        m.vi_work_vi = self.ring.front().copied().unwrap_or(0xffff);
        m.vi_acked_valid = (!self.acked.is_empty()).into();
        m.vi_acked_vi = self.acked.front().copied().unwrap_or(0xffff);
        m.vi_acked_left = (!self.acked.is_empty()).into();
        self.drive_pushes();
        let m = &mut self.model.inputs;
        m.fence_pause = self.pause.into();
        m.messages_valid = self.message.is_some().into();
        if let Some(message) = &self.message {
            let at = usize::from(self.message_index.min(5)) * 8;
            m.messages_data = u64::from_le_bytes(message[at..at + 8].try_into().unwrap());
        }
    }

    /// Keeps the cycles of what was driven and seen.
    fn mark(&mut self) {
        self.now += 1;
        let (out, marks) = (&self.model.outputs, &mut self.marks);
        if out.desc_read_req_valid != 0 && self.desc_read.ready {
            marks.desc_request = self.now;
        }
        if self.desc_read.beat.is_some_and(|beat| beat.1) {
            marks.desc_last = self.now;
        }
        if out.read_req_valid != 0 && self.read.ready {
            marks.read_request = self.now;
        }
        if self.read.beat.is_some_and(|beat| beat.1) {
            marks.read_last = self.now;
        }
        if out.pool_commit_valid != 0 {
            marks.commit = self.now;
        }
    }

    fn cycle(&mut self) {
        self.drive();
        self.model.cycle();
        let (out, pace) = (self.model.outputs.clone(), self.pace);
        self.mark();
        let world = &mut self.world;
        let request = (out.desc_read_req_valid != 0, out.desc_read_req_address);
        let length = u64::from(out.desc_read_req_length);
        self.desc_read.observe(request.0, request.1, length, world, pace);
        let request = (out.read_req_valid != 0, out.read_req_address);
        self.read.observe(request.0, request.1, out.read_req_length.into(), world, pace);
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
        let beat = (out.write_valid != 0, out.write_last != 0);
        let place = (out.write_address, out.write_length.into());
        if let Some((bus, data)) =
            self.write.observe(beat, place, out.write_data, &mut self.world.memory)
        {
            assert_eq!(data.len(), 8);
            let value = u64::from_le_bytes(data.try_into().unwrap());
            let (length, status) = (value as u32, (value >> 32) as u32);
            self.marks.status = self.now;
            let owner = |(_, vi): &&(u16, Vi)| vi.queue.posted.iter().any(|d| d.bus == bus - 24);
            let number = self.vis.iter().find(owner).expect("a status in a descriptor").0;
            self.happened(number, Event::Status { bus: bus - 24, length, status });
        }
        if out.vi_work_ready != 0 && self.model.inputs.vi_work_valid != 0 {
            self.marks.taken = self.now;
            let number = self.ring.pop_front().unwrap();
            self.at(number).scheduled = false;
            if let Some(told) = self.fresh {
                assert_eq!(told, number);
                self.in_hand = number;
                self.at(number).owing = false;
                *self.seen.entry("taken as posted".into()).or_default() += 1;
            }
        }
        self.fresh = self.telling.take();
        if out.vi_acked_ready != 0 && self.model.inputs.vi_acked_valid != 0 {
            assert_eq!(out.vi_work_ready, 0);
            self.acked.pop_front();
        }
        let answer = self.vi_call.observe(out.vi_valid != 0, &mut self.world.random, pace);
        if answer {
            self.vi_operation();
        }
        if self.ask.observe(out.pool_ask_valid != 0, &mut self.world.random, pace) {
            self.ask_answer();
        }
        if out.pool_beat_valid != 0 && self.beat_ready {
            assert!(!self.asked.is_empty(), "a beat without a frame");
            self.beats.push(out.pool_beat_data);
        }
        if self.commit.observe(out.pool_commit_valid != 0, &mut self.world.random, pace) {
            self.commit();
        }
        self.message_index = out.messages_index;
        if out.messages_done != 0 {
            let before: u64 = self.message_frames + self.messages[1] + self.messages[2];
            self.messages[0] += 1;
            assert_eq!(before, self.messages[0], "one outcome for a message");
            let outcomes = [self.message_frames, self.messages[1], self.messages[2]];
            let last = match out.messages_status {
                0 => 0,
                5 => 1,
                6 => 2,
                status => panic!("message status {status}"),
            };
            assert_eq!(outcomes[last], self.outcomes[last] + 1, "message status");
            self.outcomes = outcomes;
            self.message = None;
        }
        if out.fence_paused != 0 && self.pause {
            let quiet = self.desc_read.idle() && self.read.idle() && self.write.idle();
            let calls = [&self.tpt, &self.vi_call, &self.ask, &self.commit];
            assert!(quiet && calls.iter().all(|call| call.idle()) && self.asked.is_empty());
            assert!(self.vis.iter().all(|(_, vi)| vi.pushed.is_none()), "a push is in hand");
        }
        self.counted_fetches += out.counts >> 37 & 1;
        self.counted_messages += out.counts >> 16 & 1;
        let refusal = nic_regs::counter::Counter::RdmaRefused as u32;
        self.counted_refused += out.counts >> refusal & 1;
        assert_eq!(out.counts & !(1 << 37 | 1 << 16 | 1 << refusal), 0);
        self.acknowledge();
        self.replies();
        self.pushes();
    }

    /// ViAcks that arrive.
    fn acknowledge(&mut self) {
        for at in 0..self.vis.len() {
            let (number, vi) = &mut self.vis[at];
            let number = *number;
            match vi.ack_in {
                Some(0) => {
                    vi.ack_in = None;
                    assert!(vi.awaiting, "a ViAck before the send waits for it");
                    vi.acked = true;
                    let waiting = std::mem::take(&mut vi.waiting);
                    vi.ending.extend(waiting);
                    self.acked.push_back(number);
                }
                Some(left) => vi.ack_in = Some(left - 1),
                None => {}
            }
        }
    }

    fn post(&mut self, number: u16, plan: Plan) {
        let at = self.vis.iter().position(|(other, _)| *other == number).unwrap();
        let vi = &mut self.vis[at].1;
        if vi.stopped || vi.pushed.is_some() || vi.queue.posted.len() > 60 {
            return;
        }
        let idle = vi.queue.count == 0
            && vi.expected.is_empty()
            && vi.ending.is_empty()
            && vi.waiting.is_empty();
        if idle && self.world.random.chance(4.0 * plan.faults) {
            let region = self.world.regions[&vi.queue.data_region];
            let at = self.world.random.below(u64::from(region.length));
            self.world.memory.poison.push((region.bus_base + at, 1500));
        }
        let quiet = idle && vi.state == State::Connected && vi.owed == 0 && vi.answer.is_none();
        let free = self.telling.is_none() && self.judged.is_none() && self.vi_call.idle();
        let tells = quiet && self.ring.is_empty() && free;
        vi.queue.post(&mut self.world, plan);
        self.expect(number);
        self.schedule(number);
        if tells {
            self.tell(number);
        }
    }

    /// The doorbell of a VI that has nothing else to do: with its token all that GET would tell is told.
    fn tell(&mut self, number: u16) {
        self.show(number);
        let head = self.at(number).queue.head;
        let m = &mut self.model.inputs;
        m.vi_push_token = u64::from(head.region)
            | u64::from(head.offset_64) << 16
            | u64::from(head.segments) << 42;
        // The table still shows the empty queue.
        (m.vi_ctx_region, m.vi_ctx_offset, m.vi_ctx_segments) = (0xdead, 0xbeef, 9);
        m.vi_ctx_count = 0;
        self.telling = Some(number);
    }

    /// Makes the segments of one VI stale, or one shorter, while the engine is paused.
    fn revoke(&mut self) {
        let at = self.world.random.below(self.vis.len() as u64) as usize;
        let (number, vi) = &mut self.vis[at];
        if self.world.random.chance(0.5) {
            vi.queue.revoke(&mut self.world);
        } else if !vi.awaiting {
            vi.queue.shorten(&mut self.world);
        }
        let number = *number;
        if self.world.random.chance(0.3) {
            // What is left of its answer is not to be had any more.
            let region = self.world.regions.get_mut(&vi.source).unwrap();
            region.generation = region.generation.wrapping_add(1).max(1);
        }
        if !vi.awaiting && !vi.reading {
            vi.expected.clear();
            vi.waiting.clear();
            vi.foreseen = false;
            self.expect(number);
        }
    }

    fn finished(&self) -> bool {
        self.ring.is_empty()
            && self.acked.is_empty()
            && self.message.is_none()
            && self.line.is_none()
            && self.judged.is_none()
            && self.vis.iter().all(|(_, vi)| {
                let sent = vi.expected.is_empty() && vi.ending.is_empty();
                let idle = vi.queue.count == 0 && !vi.awaiting && !vi.reading && sent;
                vi.pushed.is_none()
                    && vi.owed == 0
                    && vi.answer.is_none()
                    && vi.part.is_none()
                    && (vi.stopped || idle)
            })
    }

    fn settle(&mut self) {
        for _ in 0..4_000_000 {
            if self.finished() {
                for _ in 0..200 {
                    self.cycle();
                }
                return;
            }
            self.cycle();
        }
        for (number, vi) in &self.vis {
            let next = (vi.expected.front(), vi.ending.front());
            println!("VI {number}: {next:?}, owed {}, queue {}", vi.owed, vi.queue.count);
        }
        panic!("stuck: ring {:?}, outputs {:x?}", self.ring, self.model.outputs);
    }
}

/// What happened how often.
fn run(seed: u64) -> BTreeMap<String, u64> {
    let mut choice = cosim::random::Random::new(seed ^ 0xabcd);
    let fast = choice.chance(0.3);
    let pace = Pace {
        ready: if fast { 1.0 } else { 0.3 + 0.6 * choice.below(100) as f64 / 100.0 },
        call: if fast { 1 } else { 1 + choice.below(12) },
        read: if fast { 1 } else { 1 + choice.below(200) },
    };
    let vis = 1 + choice.below(6) as usize;
    let mut bench = Bench::new(seed, vis, pace);
    bench.refusals = if choice.chance(0.5) { 0.3 } else { 0.0 };
    bench.reread_faults = if choice.chance(0.3) { 0.05 } else { 0.0 };
    let faults = if choice.chance(0.6) { 0.08 } else { 0.0 };
    let rdma = if choice.chance(0.8) { 0.4 } else { 0.0 };
    let reads = if choice.chance(0.8) { 0.5 } else { 0.0 };
    let plan = Plan { faults, long: 0.06, longest: 0x40100, immediate: 0.3, rdma, reads };
    let busy = choice.chance(0.5);
    let pushes = choice.chance(0.4);
    let close = if choice.chance(0.6) { 0.9 } else { 0.0 };
    bench.vis.iter_mut().for_each(|(_, vi)| vi.queue.close = close);
    let stops = if choice.chance(0.4) { 0.005 } else { 0.0 };
    for _ in 0..60_000 {
        let random = &mut bench.world.random;
        let posts = if busy { 0.01 } else { 0.001 };
        if random.chance(if pushes { posts / 10.0 } else { posts }) {
            let at = random.below(bench.vis.len() as u64) as usize;
            let number = bench.vis[at].0;
            let burst = bench.world.random.below(5);
            for _ in 0..=burst {
                bench.post(number, plan);
            }
        }
        let random = &mut bench.world.random;
        if random.chance(0.0005) {
            let at = random.below(bench.vis.len() as u64) as usize;
            let owed = 1 + random.below(7) as u8;
            let vi = &mut bench.vis[at].1;
            // What is already owed, or on its way, stays.
            if vi.owed == 0 && vi.sent_owed == 0 && !vi.stopped {
                vi.owed = owed;
                vi.refuse_reason = bench.world.random.below(10) as u8;
                let number = bench.vis[at].0;
                bench.schedule(number);
            }
        }
        bench.fill_line(if pushes { 0.2 } else { 0.004 });
        bench.stop_pushed(stops);
        if reads > 0.0 && bench.world.random.chance(0.0008) {
            let at = bench.world.random.below(bench.vis.len() as u64) as usize;
            bench.owe_answer(at);
        }
        let random = &mut bench.world.random;
        if bench.message.is_none() && random.chance(0.001) && !bench.pause {
            let mut message = [0; 48];
            message.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            bench.message = Some(message);
            bench.model.inputs.messages_peer = random.below(64) as u8;
            bench.model.inputs.messages_domain = random.below(64) as u8;
        }
        if random.chance(0.001) {
            bench.pause = !bench.pause;
        }
        if random.chance(0.0005) && bench.ask.idle() {
            // A peer goes down, or is up again; its VIs are not killed here.
            let at = random.below(bench.vis.len() as u64) as usize;
            bench.down = bench.down.map_or(Some(bench.vis[at].1.peer), |_| None);
        }
        if bench.pause && bench.model.outputs.fence_paused != 0 && bench.world.random.chance(0.0003)
        {
            bench.revoke();
        }
        bench.cycle();
        if bench.pause && bench.model.outputs.fence_paused != 0 {
            assert_eq!(bench.model.outputs.vi_valid, 0);
        }
    }
    (bench.pause, bench.down) = (false, None);
    bench.settle();
    assert_eq!(bench.counted_messages, bench.message_frames);
    assert_eq!(bench.counted_refused, bench.refused, "RdmaRefused");
    for (number, vi) in &bench.vis {
        assert!(vi.stopped || vi.expected.is_empty(), "VI {number}: {:?}", vi.expected);
        assert!(vi.ending.is_empty() && vi.waiting.is_empty(), "VI {number}: {:?}", vi.ending);
    }
    println!("seed {seed}: {} frames, {} events, {pace:?}", bench.frames, bench.events);
    bench.seen
}

#[test]
fn random_messages() {
    let mut seen = BTreeMap::new();
    each_seed(0..60, |seed| {
        for (kind, count) in run(seed) {
            *seen.entry(kind).or_insert(0) += count;
        }
    });
    println!("{seen:#?}");
    for kind in
        ["taken as posted", "push out of reach", "push returns", "push of a VI that stopped"]
    {
        assert!(seen.get(kind) > Some(&5), "{kind}: {seen:?}");
    }
    assert!(seen["push goes"] > 1_000 && seen["push as a token"] > 200, "{seen:?}");
}

/// A doorbell that finds its VI and the engine idle tells what GET would: the descriptor is read at once.
#[test]
fn a_quiet_vi_needs_no_get() {
    let mut bench = Bench::alone(0);
    for tells in [false, true, true] {
        bench.cycle();
        let number = bench.vis[0].0;
        bench.send(8);
        if tells {
            bench.tell(number);
        }
        bench.until_done();
        let cycles = bench.marks.desc_request - bench.marks.taken;
        assert_eq!(cycles, if tells { 3 } else { 5 });
    }
}

impl Bench {
    /// One VI alone, Delivery, with neighbours that answer at once (calls two cycles).
    fn alone(latency: u64) -> Self {
        let mut bench = Self::new(1, 1, Pace { ready: 1.0, call: 1, read: 1 });
        bench.vis[0].1.level = 2;
        bench.vis[0].1.max_transfer = 0x40000;
        bench.desc_read.latency = latency;
        bench.read.latency = latency;
        bench
    }

    /// Posts one segment of so many bytes.
    fn send(&mut self, length: u32) {
        let number = self.vis[0].0;
        self.vis[0].1.queue.post_one(&mut self.world, length);
        self.expect(number);
        self.schedule(number);
    }

    fn until_done(&mut self) -> u64 {
        let from = self.now;
        while !self.vis[0].1.expected.is_empty() || !self.vis[0].1.ending.is_empty() {
            self.cycle();
        }
        self.now - from
    }
}

/// Cycles of one message, and of the parts of its way.
#[test]
fn cost() {
    for (length, most) in [(8, 45), (4096, 560), (0x40000, 64 * 530)] {
        let mut bench = Bench::alone(0);
        bench.send(length);
        let cycles = bench.until_done();
        println!("send {length} bytes: {cycles} cycles, {:?}", bench.marks);
        assert!(cycles < most, "{length} bytes take {cycles} cycles");
    }
}

/// From port to port, for one segment of 8 bytes.
#[test]
fn latency() {
    // The pop is beside the way if the payload takes a while.
    let mut bench = Bench::alone(20);
    bench.cycle();
    bench.send(8);
    bench.until_done();
    let marks = bench.marks;
    println!("{marks:?}");
    assert!(marks.desc_request - marks.taken <= 5, "from the ring to the descriptor's read");
    assert!(marks.read_request - marks.desc_last <= 5, "from the descriptor to the payload's read");
    assert!(marks.commit - marks.read_last <= 5, "from the payload to the commit");
    assert!(marks.status - marks.commit <= 4, "from the commit to the status");
}

/// A VI that somebody stops while its payload comes: before the pop or after it, nothing of it
/// goes out and nothing is completed.
#[test]
fn stopped_in_hand() {
    for popped in [false, true] {
        let mut bench = Bench::alone(50);
        bench.send(300);
        bench.send(300);
        while bench.marks.read_request == 0 || bench.vis[0].1.queue.popped == 0 && popped {
            bench.cycle();
        }
        assert!(bench.vis[0].1.queue.popped == usize::from(popped));
        bench.vis[0].1.state = State::Error;
        for _ in 0..1_000 {
            bench.cycle();
        }
        assert_eq!((bench.frames, bench.marks.status, bench.asked.len()), (0, 0, 0));
        // The engine is not stuck: what is owed still goes out.
        let number = bench.vis[0].0;
        bench.vis[0].1.owed = 2;
        bench.schedule(number);
        for _ in 0..100 {
            bench.cycle();
        }
        assert_eq!((bench.vis[0].1.owed, bench.frames), (0, 1));
    }
}

/// An acknowledged send ends though its VI has stopped, and a fence waits for that.
#[test]
fn an_acknowledged_send_ends_in_error() {
    let mut bench = Bench::alone(50);
    bench.vis[0].1.level = 4;
    bench.send(300);
    while bench.vis[0].1.ack_in.is_none() {
        bench.cycle();
    }
    bench.vis[0].1.state = State::Error;
    bench.pause = true;
    while !bench.vis[0].1.acked {
        bench.cycle();
    }
    while bench.model.outputs.fence_paused == 0 || bench.vis[0].1.awaiting {
        bench.cycle();
        assert!(bench.now < 3_000, "{:?}", bench.vis[0].1.ending);
    }
    assert_eq!(bench.vis[0].1.ending.len(), 0);
    assert!(bench.marks.status != 0);
}

/// VIs whose peer has no room, and one whose peer has: a descriptor is not read again and again to be told
/// so, and the one is not held up.
#[test]
fn peers_without_room_cost_no_reads() {
    let mut bench = Bench::new(3, 6, Pace { ready: 1.0, call: 1, read: 1 });
    bench.desc_read.latency = 125;
    for at in 0..6 {
        let (number, vi) = &mut bench.vis[at];
        (vi.level, vi.max_transfer, vi.peer) = (2, 0x40000, u8::from(at == 0) + 7);
        vi.queue.post_one(&mut bench.world, 64);
        let number = *number;
        bench.expect(number);
        bench.schedule(number);
    }
    bench.full = Some(7);
    for _ in 0..20_000 {
        bench.cycle();
    }
    // Each is taken once before the first answer is here, and then none.
    assert_eq!(bench.frames, 1);
    assert!(bench.desc_read.requests <= 8, "{} reads", bench.desc_read.requests);
    for _ in 0..20 {
        bench.send(64);
    }
    let cycles = bench.until_done();
    println!("20 messages of 64 bytes beside five VIs without room: {cycles} cycles");
    assert!(cycles < 20 * 300, "{cycles} cycles");
    bench.full = None;
    bench.settle();
    assert_eq!(bench.frames, 26);
}

/// Messages of 4 KiB on one VI, with hosts of 125 cycles of latency: the next message's payload
/// follows at once.
#[test]
fn messages_follow_each_other() {
    let mut bench = Bench::alone(125);
    for _ in 0..20 {
        bench.send(4096);
    }
    let cycles = bench.until_done();
    println!("20 messages of 4 KiB: {cycles} cycles");
    // 512 beats each, and the first descriptor and payload on their way.
    assert!(cycles < 20 * 512 * 100 / 97 + 400, "{cycles} cycles");
}

/// Posts so many messages of 64 bytes; descriptors side by side, or anywhere.
fn in_a_row(messages: usize, close: f64) -> Bench {
    let mut bench = Bench::alone(125);
    bench.vis[0].1.queue.close = close;
    for _ in 0..messages {
        bench.send(64);
    }
    bench
}

/// Descriptors side by side are read ahead of their turn, four at a time, but for the last posted
/// one, whose Next may still be written.
#[test]
fn descriptors_side_by_side() {
    let mut apart = in_a_row(18, 0.0);
    let slow = apart.until_done();
    let mut bench = in_a_row(18, 1.0);
    let fast = bench.until_done();
    println!("18 messages of 64 bytes: {slow} cycles, with descriptors side by side {fast}");
    assert_eq!(bench.desc_read.requests, 2 + 4 + 1);
    assert!(fast <= 18 * 60 + 7 * 125 && fast < slow, "{fast} cycles");
}

/// Adds to the address of a descriptor's first segment.
fn move_segment(bench: &mut Bench, descriptor: u64) {
    let at = descriptor + 32;
    let old = u64::from_le_bytes(bench.world.memory.read(at, 8).try_into().unwrap());
    bench.world.memory.put(at, &(old + 0x1008).to_le_bytes());
}

/// What lies behind a posted descriptor is not used as it was before it was posted.
#[test]
fn not_ahead_of_the_count() {
    let mut bench = in_a_row(4, 1.0);
    let number = bench.vis[0].0;
    let queue = &mut bench.vis[0].1.queue;
    queue.post_one(&mut bench.world, 64);
    let later = queue.unpost();
    bench.until_done();
    // The third one was read ahead.
    assert_eq!((bench.desc_read.requests, bench.frames), (4, 4));
    move_segment(&mut bench, later.bus);
    bench.vis[0].1.queue.post_again(later);
    bench.expect(number);
    bench.schedule(number);
    bench.until_done();
    assert_eq!((bench.desc_read.requests, bench.frames), (5, 5));
}

/// The last posted descriptor gets its successor while the lines behind the head are read ahead.
#[test]
fn next_linked_late() {
    for late in (0..1_000).step_by(10) {
        let mut bench = in_a_row(3, 1.0);
        for _ in 0..late {
            bench.cycle();
        }
        for _ in 0..4 {
            bench.send(64);
        }
        bench.until_done();
        assert_eq!(bench.frames, 7);
    }
}

/// A fence forgets what was read ahead.
#[test]
fn fence_forgets_what_was_read_ahead() {
    let mut bench = in_a_row(5, 1.0);
    while bench.desc_read.requests < 3 {
        bench.cycle();
    }
    bench.pause = true;
    for _ in 0..1_000 {
        bench.cycle();
    }
    assert_eq!(bench.model.outputs.fence_paused, 1);
    let (number, vi) = &mut bench.vis[0];
    let (number, head) = (*number, vi.queue.popped);
    assert!((2..5).contains(&head), "{head} popped");
    vi.expected.clear();
    vi.waiting.clear();
    vi.foreseen = false;
    for at in head..bench.vis[0].1.queue.posted.len() {
        let descriptor = bench.vis[0].1.queue.posted[at].bus;
        move_segment(&mut bench, descriptor);
    }
    bench.expect(number);
    bench.pause = false;
    bench.until_done();
    assert_eq!(bench.frames, 5);
}

/// A long answer to a peer's read, with hosts of 125 cycles of latency: the next frame's bytes
/// follow at once.
#[test]
fn an_answer_keeps_the_rate() {
    let mut bench = Bench::alone(125);
    let source = bench.vis[0].1.source;
    let region = bench.world.regions[&source];
    let handle = Handle::new(source, region.generation).0;
    let (number, frames) = (bench.vis[0].0, 20);
    bench.vis[0].1.answer = Some(((region.va_base + 63) & !63, handle, frames * 4096));
    bench.schedule(number);
    let from = bench.now;
    while bench.vis[0].1.answer.is_some() || bench.vis[0].1.part.is_some() {
        bench.cycle();
    }
    let cycles = bench.now - from;
    println!("an answer of {frames} frames: {cycles} cycles");
    assert!(cycles < u64::from(frames) * 512 * 100 / 97 + 400, "{cycles} cycles");
}
