//! What a frame must make the engine do: what the model's receive engine does with it, on the same
//! memory, regions and VI.

use super::{Bench, Event, Progress, Vi};
use cosim::reference::Effect;
use nic_model::desc::{Fault, Resolved};
use nic_model::frame::Frame;
use nic_model::recv::RecvEngine;
use nic_model::staging::Staged;
use nic_model::trace::Trace;
use nic_model::vi;
use nic_regs::counter::Counter;
use nic_regs::desc::{IMMEDIATE_OFFSET, LENGTH_OFFSET, status};
use nic_regs::doorbell::Queue;
use nic_regs::frame::{Header, Type};
use nic_regs::vi::{Reliability, StopReason};

/// What the engine counts of frames.
const COUNTED: [Counter; 4] =
    [Counter::Unmatched, Counter::UnreliableGap, Counter::UnreliableEmpty, Counter::RdmaRefused];

impl Vi {
    /// The VI as the model keeps it.
    pub(super) fn table_entry(&self) -> vi::Vi {
        let (peer, queues) = (self.peer, [&self.sends, &self.queue]);
        vi::Vi {
            state: self.state,
            owner: self.queue.owner,
            level: Reliability::from_bits(self.level.into()).expect("a level"),
            queues: [Queue::Send, Queue::Recv]
                .map(|queue| queues[queue as usize].work_queue(self.number, queue)),
            remote: vi::Remote {
                node: peer,
                vi: self.peer_vi,
                connection: self.connection,
                allows: 0,
            },
            send: match self.reading {
                Some((placed, total)) if !self.read_over => {
                    vi::SendPhase::Reading { placed, total }
                }
                _ => vi::SendPhase::Between,
            },
            operations: [status::OP_RDMA_READ, status::OP_RECEIVE],
            allows: self.allows.into(),
            answer: self.answering.then_some(vi::Answer { address: 0, handle: 0, left: 1 }),
            recv: self.progress.map(|at| vi::RecvMessage {
                write: at.write,
                length: at.total,
                placed: at.offset,
                sequence: u16::from_le_bytes([at.fragment, at.message]),
            }),
            ..vi::Vi::default()
        }
    }
}

impl Bench {
    /// The descriptor at the head of a queue.
    pub(super) fn head(&mut self, number: u16, queue: Queue) -> Result<Resolved, Fault> {
        self.host.reference.queues.vis[number] = self.vis[&number].table_entry();
        self.host.model(|queues, cx| queues.fetch(number, queue, cx)).0
    }

    /// The frame at the head takes effect (contract 5, 11, 12).
    pub(super) fn expect(&mut self) {
        let (header, payload) = self.frames.front().unwrap().clone();
        let kind = Type::from_bits(header.kind);
        if kind == Some(Type::Message) {
            let word0 = 4 | u32::from(header.src_node) << 16;
            let event = Event::Message { queue: header.dst_vi, word0, bytes: payload };
            self.expected.push_back(event);
            return;
        }
        let number = header.dst_vi;
        let Some(vi) = self.vis.get(&number) else { return self.count(Counter::Unmatched, 1) };
        let before = vi.table_entry();
        self.host.reference.queues.forget_fetched(number);
        self.host.reference.queues.vis[number] = before.clone();
        if matches!(kind, None | Some(Type::ViAck)) {
            // Whether somebody waits for a ViAck is the VI table's business.
            let (matches, _) =
                self.host.model(|queues, cx| RecvEngine { queues, cx }.matches(&header));
            match matches {
                false => self.count(Counter::Unmatched, 1),
                true if kind.is_some() => self.expected.push_back(Event::Acked),
                true => {}
            }
            return;
        }
        let counts = COUNTED.map(|counter| self.host.reference.counted(counter));
        let staged = Staged { frame: Frame { header, payload }, started: 0, incarnation: 0 };
        let (_, effects) = self.host.model(|queues, cx| RecvEngine { queues, cx }.take(&staged));
        let count = |at: usize| self.host.reference.counted(COUNTED[at]) - counts[at];
        let counts: [u64; 4] = std::array::from_fn(count);
        for (counter, count) in COUNTED.into_iter().zip(counts) {
            self.count(counter, count);
        }
        let ack = self.host.reference.queues.vis.first_pending(number) == Some(vi::Pending::Ack);
        self.host.reference.queues.vis.forget_pending(number);
        self.expect_effects(number, effects, ack);
        let ended = |event| matches!(event, &Event::Pop | &Event::PopRead | &Event::Stop { .. });
        if !self.expected.iter().any(ended) {
            let left = self.what_is_left(&header, &before, counts, ack);
            self.expected.extend(left);
        }
    }

    pub(super) fn count(&mut self, counter: Counter, count: u64) {
        if count != 0 {
            *self.counters.entry(counter as u32).or_default() += count;
        }
    }

    /// Writes, completions and stops.
    fn expect_effects(&mut self, number: u16, effects: Vec<Effect>, ack: bool) {
        let mut effects = effects.into_iter().peekable();
        while let Some(effect) = effects.next() {
            match effect {
                Effect::Write(bus, data) => {
                    self.write_shadow(bus, &data);
                    if let Some(Effect::Trace(Trace::Completion {
                        queue, status, length, ..
                    })) = effects.peek()
                    {
                        let sends = *queue == Queue::Send;
                        let word = data.first_chunk().filter(|_| data.len() == 12);
                        let immediate = word.map(|word| u32::from_le_bytes(*word));
                        let offset = immediate.map_or(LENGTH_OFFSET, |_| IMMEDIATE_OFFSET);
                        let (status, length) = (*status, *length);
                        self.expected.extend([
                            if sends { Event::PopRead } else { Event::Pop },
                            Event::Status { bus: bus - offset, immediate, length, status },
                            Event::Complete { vi: number, ack, sends },
                        ]);
                        self.vis.get_mut(&number).unwrap().read_over |= sends;
                    } else {
                        self.expected.push_back(Event::Write { bus, length: data.len() });
                    }
                }
                Effect::Trace(Trace::Stop { reason, peer_reason, queue, status, .. }) => {
                    self.expected.push_back(Event::Stop {
                        reason: reason as u8,
                        detail: peer_reason,
                        // The VI table adds what it knows of a read in progress.
                        status: status & !status::PARTIAL_ERROR,
                        recv: queue == Queue::Recv,
                        refuse: !matches!(reason, StopReason::Refused | StopReason::Disconnected),
                    });
                }
                Effect::Trace(_) => {}
            }
        }
    }

    /// What a frame that neither completes a descriptor nor stops the VI leaves in the VI table.
    fn what_is_left(
        &self,
        header: &Header,
        before: &vi::Vi,
        [unmatched, gap, empty, refused]: [u64; 4],
        ack: bool,
    ) -> Option<Event> {
        let after = &self.host.reference.queues.vis[header.dst_vi];
        let write = header.kind == Type::RdmaWrite as u8;
        if unmatched != 0 {
            return None;
        }
        if let (vi::SendPhase::Reading { placed, .. }, true) =
            (after.send, header.kind == Type::ReadResponse as u8)
        {
            return Some(Event::Place(placed));
        }
        if header.kind == Type::ReadRequest as u8 {
            let vi::Answer { address, handle, left } = after.answer?;
            return Some(Event::Answer { address, handle, total: left });
        }
        let [fragment, message] = header.sequence.to_le_bytes();
        match after.recv {
            Some(at) => Some(Event::Save(Some(Progress {
                write: at.write,
                offset: at.placed,
                total: at.length,
                message,
                fragment: fragment.wrapping_add(1),
            }))),
            None if refused != 0 || (write && empty != 0) => Some(Event::Save(None)),
            None if gap != 0 || empty != 0 => before.recv.map(|_| Event::Save(None)),
            None => write.then_some(Event::Over { ack }),
        }
    }
}
