//! What the engine must do with a descriptor, a push, or an answer to the peer's read: what the
//! model's send engine does with it, on the same memory, regions and VI.

use super::{Asked, Bench, Event, Payload, Vi};
use cosim::reference::Effect;
use nic_model::desc::Inline;
use nic_model::frame::Frame;
use nic_model::recv::RecvEngine;
use nic_model::send::{FrameSink, SendEngine};
use nic_model::staging::Staged;
use nic_model::trace::Trace;
use nic_model::vi;
use nic_regs::desc::{LENGTH_OFFSET, status};
use nic_regs::doorbell;
use nic_regs::frame::{Header, RDMA_HEADER_BYTES, Type, flag};
use nic_regs::vi::{Reliability, State, StopReason, rdma};
use std::cell::Cell;
use std::collections::VecDeque;

/// A channel that takes every frame.
#[derive(Debug, Default)]
struct Taken {
    /// The last frame that was asked for.
    asked: Cell<Option<Header>>,
    frame: Option<Frame>,
}

impl FrameSink for Taken {
    fn is_open(&self, _: u8) -> bool {
        true
    }

    fn admits(&self, _: u8, header: &Header) -> bool {
        self.asked.set(Some(*header));
        true
    }

    fn enqueue(&mut self, frame: Frame) {
        self.frame = Some(frame);
    }
}

impl Vi {
    /// The VI as the model keeps it, at the head of its queue.
    fn table_entry(&self, number: u16) -> vi::Vi {
        let sent = u32::try_from(4096 * self.frames_sent).unwrap();
        let total = u32::try_from(self.whole).unwrap();
        vi::Vi {
            state: State::Connected,
            owner: self.queue.owner,
            level: Reliability::from_bits(self.level.into()).expect("a level"),
            max_transfer: self.max_transfer,
            queues: [doorbell::Queue::Send, doorbell::Queue::Recv]
                .map(|queue| self.queue.work_queue(number, queue)),
            remote: vi::Remote {
                node: self.peer,
                vi: self.peer_vi,
                connection: self.connection,
                allows: self.allows.into(),
            },
            send: match sent {
                0 => vi::SendPhase::Between,
                sent => vi::SendPhase::Sending { sent, total, operation: self.operation },
            },
            allows: rdma::WRITE | rdma::READ,
            answer: self.answer.map(|(address, handle, left)| vi::Answer { address, handle, left }),
            ..vi::Vi::default()
        }
    }
}

/// What must be seen of a completion or a stop.
fn endings(effects: &[Effect]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut written = (0, 0);
    for effect in effects {
        match effect {
            Effect::Write(bus, data) => {
                let length = data.first_chunk().expect("Length and Status");
                written = (bus - LENGTH_OFFSET, u32::from_le_bytes(*length));
            }
            Effect::Trace(Trace::Completion { status, .. }) => {
                let (bus, length) = written;
                events.push(Event::Status { bus, length, status: *status });
                events.push(Event::Complete);
            }
            Effect::Trace(Trace::Stop { reason, status, .. }) => {
                events.push(Event::Stop { reason: *reason as u8, status: *status });
            }
            Effect::Trace(_) => {}
        }
    }
    events
}

impl Bench {
    /// The next frame of a VI, or how its descriptor ends.
    fn next_frame(&mut self, number: u16, answer: bool) -> (Taken, Vec<Effect>) {
        let mut taken = Taken::default();
        let (_, effects) = self.host.model(|queues, cx| {
            let mut engine = SendEngine { queues, channels: &mut taken, cx };
            if answer { engine.send_answer(number) } else { engine.send_data(number) }
        });
        (taken, effects)
    }

    /// Whether the descriptor at the head can be executed.
    pub(super) fn head_is_good(&mut self, number: u16) -> bool {
        self.host.reference.queues.vis[number] = self.at(number).table_entry(number);
        self.host.model(|queues, cx| queues.fetch(number, doorbell::Queue::Send, cx)).0.is_ok()
    }

    /// What must happen to the descriptor that is now the head.
    pub(super) fn expect(&mut self, number: u16) {
        let vi = self.at(number);
        let stops = vi.ending.iter().any(|event| matches!(event, Event::Stop { .. }));
        // A Reception VI does nothing for the next message before this one is complete.
        let quiet = vi.expected.is_empty() && vi.ending.is_empty() && vi.waiting.is_empty();
        if vi.queue.count == 0 || vi.stopped || stops || vi.foreseen || (vi.level == 4 && !quiet) {
            return;
        }
        let events = self.predict(number, None);
        let vi = self.at(number);
        vi.foreseen = true;
        vi.expected.extend(events);
        vi.unfold();
    }

    /// All that the head of a VI's queue makes the engine do; `pushed`: as a push with its data.
    pub(super) fn predict(&mut self, number: u16, pushed: Option<Inline>) -> VecDeque<Event> {
        let vi = self.at(number);
        let (level, is_push) = (vi.level, pushed.is_some());
        let entry = vi.table_entry(number);
        let queues = &mut self.host.reference.queues;
        queues.forget_fetched(number);
        queues.vis[number] = entry;
        if let Some(inline) = pushed {
            queues.keep_inline(number, inline);
        }
        let mut events = VecDeque::new();
        loop {
            let sent = match self.host.reference.queues.vis[number].send {
                vi::SendPhase::Sending { sent, .. } => sent,
                _ => 0,
            };
            let (taken, effects) = self.next_frame(number, false);
            let mut endings = endings(&effects);
            let asked = taken.asked.get();
            let is_last = asked.is_some_and(|header| header.flags & flag::LAST != 0);
            if let vi::SendPhase::Reading { total, .. } =
                self.host.reference.queues.vis[number].send
            {
                events.push_back(Event::Reading(total));
            }
            let completes = endings.contains(&Event::Complete);
            if !is_push && (is_last || completes) {
                events.push_back(Event::Pop);
            }
            if let Some(header) = asked.filter(|_| is_last && level == 4 && !is_push) {
                let rdma = header.kind == Type::RdmaWrite as u8;
                let data = usize::from(header.length) - if rdma { RDMA_HEADER_BYTES } else { 0 };
                events.push_back(Event::Await(sent + data as u32));
            }
            let Some(Frame { header, payload }) = taken.frame else {
                events.push_back(Event::End(endings));
                return events;
            };
            events.push_back(Event::Frame {
                kind: Type::from_bits(header.kind).expect("a type"),
                flags: header.flags,
                word: header.word,
                fragment: if level == 1 { header.sequence as u8 } else { 0 },
                payload: Payload(payload),
            });
            if header.kind == Type::ReadRequest as u8 {
                return events;
            }
            if is_last {
                let end = if level == 4 {
                    endings = self.acknowledged(number);
                    Event::EndAcked
                } else {
                    Event::End
                };
                events.push_back(end(endings));
                return events;
            }
        }
    }

    /// How a Reception send ends when its ViAck arrives.
    fn acknowledged(&mut self, number: u16) -> Vec<Event> {
        let remote = self.host.reference.queues.vis[number].remote;
        let header = Header {
            kind: Type::ViAck as u8,
            src_node: remote.node,
            src_vi: remote.vi,
            dst_vi: number,
            connection: remote.connection,
            ..Header::default()
        };
        let frame = Frame { header, payload: Vec::new() };
        let staged = Staged { frame, started: 0, incarnation: 0 };
        endings(&self.host.model(|queues, cx| RecvEngine { queues, cx }.take(&staged)).1)
    }

    /// SENT: the engine has a frame of an answer (contract 12.3), or fails to read it.
    pub(super) fn answer_begins(&mut self, number: u16) {
        let vi = self.at(number);
        if vi.state != State::Connected {
            return;
        }
        let (address, handle, left) = vi.answer.expect("an answer is pending");
        let rest = left - left.min(4096);
        let (frame, stop) = self.predict_answer(number);
        assert_ne!(stop.map(|stop| stop.0), Some(StopReason::RdmaRead as u8), "may not be read");
        let vi = self.at(number);
        vi.answer = (rest > 0).then_some((address.wrapping_add(4096), handle, rest));
        vi.part = Some(frame.ok_or_else(|| stop.expect("a frame or a stop")));
        self.schedule(number);
    }

    /// The next frame of the answer, or reason and status of the stop.
    fn predict_answer(&mut self, number: u16) -> (Option<Frame>, Option<(u8, u32)>) {
        self.host.reference.queues.vis[number] = self.at(number).table_entry(number);
        let (taken, effects) = self.next_frame(number, true);
        let stop = endings(&effects).into_iter().find_map(|event| match event {
            Event::Stop { reason, status } => Some((reason, status)),
            _ => None,
        });
        (taken.frame, stop)
    }

    /// A frame of an answer is committed.
    pub(super) fn answer_frame(&mut self, asked: Asked, beats: &[u64]) {
        let out = self.model.outputs.clone();
        let vi = self.at(out.pool_src_vi);
        let Frame { header, payload } =
            vi.part.take().expect("a frame of an answer").expect("it could not be read");
        assert!(std::mem::take(&mut vi.checked), "the VI was not checked");
        assert_eq!((out.pool_dst_vi, out.pool_connection), (header.dst_vi, header.connection));
        assert_eq!((out.pool_flags, out.pool_word), (header.flags, header.word));
        assert!(asked.data && asked.sequenced && asked.peer == header.dst_node);
        assert_eq!(asked.length, u64::from(header.length));
        let mut bytes: Vec<u8> = beats.iter().flat_map(|beat| beat.to_le_bytes()).collect();
        bytes.truncate(payload.len());
        assert!(bytes == payload, "bytes of an answer");
        *self.seen.entry(format!("answer {}", header.word != 0)).or_default() += 1;
    }

    /// An answer that cannot go on stops its VI, of which nothing else is in flight.
    pub(super) fn answer_stops(&mut self, number: u16, stop: (u8, u32)) {
        assert_eq!(self.at(number).state, State::Connected);
        let expected = match self.at(number).part.take() {
            Some(part) => part.expect_err("it could be read"),
            None => {
                self.refused += 1;
                self.predict_answer(number).1.expect("it may be read")
            }
        };
        assert_eq!(stop, expected);
        let kind = if expected.0 == StopReason::RdmaRead as u8 { "RdmaRead" } else { "HostRead" };
        *self.seen.entry(format!("stop {kind} by an answer")).or_default() += 1;
        let vi = self.at(number);
        // The next descriptor may be one that cannot be reached or read, which the engine has not tried.
        let untried = |event: &Event| {
            matches!(event, Event::Stop { reason, status }
                if *reason == StopReason::Descriptor as u8 || *status == status::TRANSPORT_ERROR)
        };
        // An acknowledged send is ended all the same.
        if !vi.awaiting || !vi.acked {
            assert!(vi.ending.iter().all(untried), "{:?}", vi.ending);
            vi.ending.clear();
        }
        (vi.state, vi.stopped, vi.answer) = (State::Error, true, None);
        (vi.pending, vi.refuse_reason) = (vi.pending | 2, stop.0);
        (vi.ack_in, vi.answer_in, vi.checked) = (None, None, false);
        vi.expected.clear();
        vi.waiting.clear();
        self.schedule(number);
    }
}
