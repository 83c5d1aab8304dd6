//! The send engine.

use crate::host::{Call, Host, Pace, ReadPort, WritePort, answer_tpt};
use crate::post::{Plan, Queue};
use cosim::verilated::blocks::send::Model;
use nic_model::frame::Frame;
use nic_model::tpt::Owner;
use nic_regs::desc::status;
use nic_regs::frame::{Type, flag};
use nic_regs::tpt::{Handle, RIGHT_RDMA_READ, RIGHT_VALID};
use nic_regs::vi::State;
use push::{Judged, Line, Push};
use std::collections::{BTreeMap, VecDeque};

mod push;
mod reference;
mod scenarios;

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

#[derive(Debug, Default)]
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
    pending: u8,
    sent_pending: u8,
    /// The engine was refused a frame because the peer is down.
    found_down: bool,
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
    /// Total of the message in progress, and its status operation.
    whole: u64,
    operation: u32,
    /// A read waits for its answer, which is complete in so many cycles once it is asked for.
    reading: bool,
    answer_in: Option<u64>,
    /// Region that the peer may read; the answer that is pending: address, handle, bytes left.
    source: u16,
    answer: Option<(u64, u32, u32)>,
    /// The VI pending an answer when it was taken.
    answer_pending: bool,
    /// The frame of an answer that is on its way, or the stop that it must end with.
    part: Option<Result<Frame, (u8, u32)>>,
    /// A push that the engine has.
    pushed: Option<Push>,
    /// A push has stopped it, when its next descriptor may have been in flight (contract 6.1: what CHECK does
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

    fn has_work(&self) -> bool {
        let ready = !self.reading && !self.awaiting && self.queue.count > 0;
        let works = ready || self.answer.is_some();
        self.pending != 0 || (matches!(self.state, State::Connected) && works)
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

#[derive(Default)]
struct Bench {
    model: Model,
    host: Host,
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
    /// Frames that were granted, oldest first.
    asked: VecDeque<Asked>,
    beats: Vec<u64>,
    beat_ready: bool,
    refusals: f64,
    /// This peer has no pool space.
    full: Option<u8>,
    down: Option<u8>,
    message: Option<[u8; 48]>,
    messages: [u64; 3],
    message_frames: u64,
    outcomes: [u64; 3],
    message_index: u8,
    /// The VI whose context was read last.
    current: u16,
    /// The VI whose doorbell presents the context in the next cycle; the one of the last cycle.
    presenting: Option<u16>,
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

impl Bench {
    fn new(seed: u64, vis: usize, pace: Pace) -> Self {
        Self::around(Model::default(), seed, vis, pace)
    }

    /// Around an engine that may have been used.
    fn around(mut model: Model, seed: u64, vis: usize, pace: Pace) -> Self {
        model.renew();
        let mut host = Host::new(seed);
        let mut table = Vec::new();
        for _ in 0..vis {
            let number = loop {
                let number = u16::try_from(host.random.below(1024)).unwrap();
                if table.iter().all(|(other, _)| *other != number) {
                    break number;
                }
            };
            let tag = u16::try_from(host.random.below(1 << 16)).unwrap();
            let domain = u8::try_from(host.random.below(64)).unwrap();
            let queue = Queue::new(&mut host, Owner { tag, domain });
            let source = host.new_region(0x18000, queue.owner);
            host.region_mut(source).rights = RIGHT_VALID | RIGHT_RDMA_READ;
            let random = &mut host.random;
            let level = [1, 2, 4][random.below(3) as usize];
            let mut vi = Vi {
                queue,
                state: State::Connected,
                level,
                peer: random.below(64) as u8,
                peer_vi: random.below(1 << 16) as u16,
                connection: random.below(1 << 16) as u16,
                max_transfer: match random.below(10) {
                    0 => 8 + random.below(64) as u32,
                    1..=3 => 6000,
                    _ => 0x40000,
                },
                allows: if random.chance(0.8) { 3 } else { random.below(3) as u8 },
                source,
                ..Vi::default()
            };
            vi.number = random.below(256) as u8;
            vi.message = vi.number;
            table.push((number, vi));
        }
        let (vi_call, ask) = (Call::following(), Call::following());
        Self { model, host, pace, vis: table, vi_call, ask, ..Self::default() }
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
                (vi.whole, vi.operation) = (word.into(), status::OP_SEND);
                if kind == Type::RdmaWrite {
                    vi.operation = status::OP_RDMA_WRITE;
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
        self.current = number;
        let vi = self.at(number);
        vi.answer_pending = vi.pending == 0 && vi.answer.is_some();
        self.show(number);
    }

    /// The context that goes with every answer.
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
            (vi.awaiting, vi.acked, vi.pending, vi.refuse_reason),
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
        m.vi_ctx_control_pending = inputs.7.2;
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
        assert!(!vi.answer_pending, "an answer goes first");
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
                    let unread = self.host.next_fails(bus, self.reread_faults);
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
                    (vi.pending, vi.refuse_reason) = (vi.pending | 2, out.vi_reason);
                }
                self.schedule(number);
            }
            6 => {
                let peer = self.down;
                let vi = self.at(number);
                let down = peer == Some(vi.peer);
                let first = vi.pending & vi.pending.wrapping_neg();
                if out.vi_answered != 0 {
                    assert!(
                        vi.answer_pending && out.vi_control_pending == 0,
                        "an answer after pending frames"
                    );
                    self.answer_begins(number);
                    return;
                }
                if out.vi_control_pending == 0 {
                    // Its slot goes to the next VI.
                    self.schedule(number);
                    return;
                }
                assert_eq!(out.vi_control_pending, first);
                assert!(down || vi.found_down || vi.sent_pending == first, "SENT without a frame");
                vi.found_down = false;
                (vi.pending, vi.sent_pending) = (vi.pending & !first, 0);
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
        let ok = !down && !full && !self.host.random.chance(self.refusals);
        self.model.inputs.pool_ask_ok = ok.into();
        self.model.inputs.pool_ask_down = down.into();
        if down && !asked.data && asked.length == 0 {
            let number = self.current;
            self.at(number).found_down = true;
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
            let first = vi.pending & vi.pending.wrapping_neg();
            let pending = match kind {
                Type::ViAck => 1,
                Type::ViRefuse => 2,
                _ => 4,
            };
            assert_eq!(pending, first, "order of pending frames");
            let word = if kind == Type::ViRefuse { u32::from(vi.refuse_reason) } else { 0 };
            assert_eq!((out.pool_flags, out.pool_word), (flag::SEQUENCED, word));
            assert!(!asked.data && asked.sequenced && asked.length == 0);
            vi.sent_pending = pending;
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
    fn add_answer(&mut self, at: usize) {
        let (number, vi) = &mut self.vis[at];
        let number = *number;
        let ready = vi.level != 1 && vi.answer.is_none() && vi.part.is_none();
        if !ready || vi.stopped || !matches!(vi.state, State::Connected) {
            return;
        }
        let region = self.host.region(vi.source);
        let random = &mut self.host.random;
        let left = match random.below(4) {
            0 => random.below(20),
            1 => 4096 * random.below(3),
            _ => random.below(20_000),
        };
        let offset = random.below(u64::from(region.length) - left);
        let handle = Handle::new(vi.source, region.generation).0;
        vi.answer = Some((region.va_base + offset, handle, left as u32));
        if random.chance(0.01) {
            self.host.memory.poison.push((region.bus_base + offset, 1));
        }
        self.schedule(number);
    }

    fn drive(&mut self) {
        let (random, pace) = (&mut self.host.random, self.pace);
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
        m.vi_posting = self.presenting.is_some().into();
        m.vi_work_valid = (!self.ring.is_empty() && self.presenting.is_none()).into();
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
        let host = &mut self.host;
        let request = (out.desc_read_req_valid != 0, out.desc_read_req_address);
        let length = u64::from(out.desc_read_req_length);
        self.desc_read.observe(request.0, request.1, length, host, pace);
        let request = (out.read_req_valid != 0, out.read_req_address);
        self.read.observe(request.0, request.1, out.read_req_length.into(), host, pace);
        if self.tpt.observe(out.desc_tpt_valid != 0, &mut self.host.random, pace) {
            answer_tpt!(self, out);
        }
        let beat = (out.write_valid != 0, out.write_last != 0);
        let place = (out.write_address, out.write_length.into());
        if let Some((bus, data)) =
            self.write.observe(beat, place, out.write_data, &mut self.host.memory)
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
            if let Some(fresh) = self.fresh {
                assert_eq!(fresh, number);
                self.current = number;
                self.at(number).answer_pending = false;
                *self.seen.entry("taken as posted".into()).or_default() += 1;
            }
        }
        self.fresh = self.presenting.take();
        if out.vi_acked_ready != 0 && self.model.inputs.vi_acked_valid != 0 {
            assert_eq!(out.vi_work_ready, 0);
            self.acked.pop_front();
        }
        let answer = self.vi_call.observe(out.vi_valid != 0, &mut self.host.random, pace);
        if answer {
            self.vi_operation();
        }
        if self.ask.observe(out.pool_ask_valid != 0, &mut self.host.random, pace) {
            self.ask_answer();
        }
        if out.pool_beat_valid != 0 && self.beat_ready {
            assert!(!self.asked.is_empty(), "a beat without a frame");
            self.beats.push(out.pool_beat_data);
        }
        if self.commit.observe(out.pool_commit_valid != 0, &mut self.host.random, pace) {
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
            assert!(self.vis.iter().all(|(_, vi)| vi.pushed.is_none()), "a push is in flight");
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
        if idle && self.host.random.chance(0.5) {
            vi.queue.rewind(&mut self.host);
        }
        if idle && self.host.random.chance(4.0 * plan.faults) {
            let region = self.host.region(vi.queue.data_region);
            let at = self.host.random.below(u64::from(region.length));
            self.host.memory.poison.push((region.bus_base + at, 1500));
        }
        let quiet = idle && vi.state == State::Connected && vi.pending == 0 && vi.answer.is_none();
        let free = self.presenting.is_none() && self.judged.is_none() && self.vi_call.idle();
        let presented = quiet && self.ring.is_empty() && free;
        vi.queue.post(&mut self.host, plan);
        self.expect(number);
        self.schedule(number);
        if presented {
            self.present(number);
        }
    }

    /// The doorbell of a VI that has nothing else to do: with its token it presents all that GET would.
    fn present(&mut self, number: u16) {
        self.show(number);
        let head = self.at(number).queue.head;
        let m = &mut self.model.inputs;
        m.vi_push_token = u64::from(head.region)
            | u64::from(head.offset_64) << 16
            | u64::from(head.segments) << 42;
        // The table still shows the empty queue.
        (m.vi_ctx_region, m.vi_ctx_offset, m.vi_ctx_segments) = (0xdead, 0xbeef, 9);
        m.vi_ctx_count = 0;
        self.presenting = Some(number);
    }

    /// Makes the segments of one VI stale, or one shorter, while the engine is paused.
    fn revoke(&mut self) {
        let at = self.host.random.below(self.vis.len() as u64) as usize;
        let number = self.vis[at].0;
        let good = self.head_is_good(number);
        let vi = &mut self.vis[at].1;
        if self.host.random.chance(0.5) {
            vi.queue.revoke(&mut self.host);
        } else if !vi.awaiting && good {
            vi.queue.shorten(&mut self.host);
        }
        if self.host.random.chance(0.3) {
            // What is left of its answer is not to be had any more.
            let region = self.host.region_mut(vi.source);
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
                    && vi.pending == 0
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
            println!("VI {number}: {next:?}, pending {}, queue {}", vi.pending, vi.queue.count);
        }
        panic!("stuck: ring {:?}, outputs {:x?}", self.ring, self.model.outputs);
    }
}
