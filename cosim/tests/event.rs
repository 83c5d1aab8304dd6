//! Event queues on the Verilated block. Requests of all ports at once, against the model's event
//! queues, which do the same one at a time, in the order in which the block answers: contents, phases
//! and order of the records, refusals, interrupts after their records, drains, counters, the error
//! log.
#![cfg(feature = "blocks")]
#![allow(clippy::cast_possible_truncation, reason = "random numbers are cut to their field")]

use cosim::random::{Random, each_seed};
use cosim::reference::{Effect, Reference};
use cosim::verilated::blocks::event::Model;
use nic_model::context::Context;
use nic_model::doorbell::Doorbells;
use nic_model::event::{Delivery, EventQueue};
use nic_model::trace::Trace;
use nic_model::work_queue::WorkQueues;
use nic_regs::admin::AdminStatus;
use nic_regs::counter::Counter;
use nic_regs::doorbell::{EVENT_OFFSET, EventDoorbell, PAGE_BYTES};
use nic_regs::event::Event;
use std::collections::{BTreeSet, VecDeque};

const QUEUES: [u16; 6] = [0, 1, 7, 100, 254, 255];
const DOMAINS: u64 = 4;
const VECTORS: u64 = 32;
/// Cycles after a mask bit was written in which the interrupt may already be on its way.
const MASK_CYCLES: u64 = 3;
/// Cycles without a call of the channel after which a drain goes on.
const CHANNEL_QUIET: u64 = 32;

/// A drain: completions, then the channel, then errors.
#[derive(Clone, Copy, Debug)]
struct Drain {
    queue: u16,
    errors: bool,
    /// The call runs and is answered then.
    answer_at: Option<u64>,
    /// The last cycle in which the channel was asked or has called, once it was asked.
    channel_at: Option<u64>,
}

#[derive(Debug)]
struct Record {
    queue: u16,
    address: u64,
    data: Vec<u8>,
    /// Vector that the record fires.
    vector: Option<u8>,
}

#[derive(Clone, Debug, Default)]
struct Vector {
    masked: bool,
    mask_changed: u64,
    words: [u32; 3],
    /// The words before their last change, and when that was.
    old_words: ([u32; 3], u64),
    /// Each wish to interrupt: when it came, and how many records must be written before.
    pending: Vec<(u64, u64)>,
    /// When its last interrupt appeared.
    sent_at: Option<u64>,
}

/// One request of a port.
#[derive(Clone, Debug)]
enum Ask {
    Event { queue: u16, words: [u32; 3], message: Option<[u64; 6]> },
    Doorbell { token: u64, domain: u8 },
    Admin { op: u8, index: u16, body: EventQueue, queue: u16 },
    Msix { write: bool, index: u8, wdata: u32 },
}

#[derive(Default)]
struct Port {
    pause: u64,
    ask: Option<Ask>,
}

#[derive(Default)]
struct Bench {
    random: Random,
    model: Model,
    now: u64,
    /// Its vectors are never masked: they interrupt at once, each with its number.
    reference: Reference,
    /// Queues that deferred, that wait for their drain; kept over a destruction.
    deferring: BTreeSet<u16>,
    queued: BTreeSet<u16>,
    vectors: Vec<Vector>,
    records: VecDeque<Record>,
    issued: u64,
    written: u64,
    packet: Vec<u8>,
    /// Interrupts, and events of the channel that were deferred.
    interrupts: u64,
    deferred: u64,
    seen: Vec<u64>,
    draining: Option<Drain>,
    drains: u64,
    channel_put_off: bool,
    /// An EventDestroy took effect and is not answered yet.
    destroyed: bool,
    /// EventDestroys that were answered behind a drain.
    destroyed_late: u64,
    /// vi, recv, channel, doorbell, admin, MSI-X.
    ports: [Port; 6],
    idle: u64,
    stall: f64,
    last_index: u8,
    /// An interrupt waits at the write port.
    interrupting: bool,
    /// A doorbell of the last cycle.
    rung: Option<(u64, u8, u64)>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let idle = [1, 4, 30][random.below(3) as usize];
        let stall = [0.0, 0.5, 0.95][random.below(3) as usize];
        let moderation = [0, 0, 150, 1_200][random.below(4) as usize];
        let vectors = vec![Vector { masked: true, ..Vector::default() }; VECTORS as usize];
        let mut bench = Self { random, idle, stall, vectors, seen: vec![0; 64], ..Self::default() };
        bench.model.reset();
        bench.model.inputs.moderation = moderation;
        bench.refer(|queues, cx| {
            for vector in 0..VECTORS as usize {
                queues.events.vectors.write(vector, 2, vector as u32, cx);
                queues.events.vectors.write(vector, 3, 0, cx);
            }
        });
        bench
    }

    /// Gives every vector a datum of its own, so that interrupts can be distinguished.
    fn set_up_vectors(&mut self) {
        for vector in 0..VECTORS as u8 {
            let wdata = 0xda7a_0000 + u32::from(vector);
            self.call(5, Ask::Msix { write: true, index: 4 * vector + 2, wdata });
        }
    }

    /// Runs a part of the model; gives its result, what it did, and the vector that it interrupts.
    fn refer<R>(
        &mut self,
        part: impl FnOnce(&mut WorkQueues, &mut Context<'_>) -> R,
    ) -> (R, Vec<Effect>, Option<u8>) {
        let nothing = |_, _: &mut [u8]| unreachable!("event queues read nothing");
        let (result, effects) = self.reference.run(nothing, part);
        let vector = effects.iter().find_map(|effect| match effect {
            Effect::Write(_, data) => (data.len() == 4).then_some(data[0]),
            Effect::Trace(_) => None,
        });
        (result, effects, vector)
    }

    /// A queue, which may be destroyed.
    fn queue(&self, number: u16) -> EventQueue {
        let queues = &self.reference.queues.events.queues;
        queues.get(usize::from(number)).copied().unwrap_or_default()
    }

    fn random_queue(&mut self) -> u16 {
        QUEUES[self.random.below(QUEUES.len() as u64) as usize]
    }

    fn random_ask(&mut self, port: usize) -> Ask {
        let queue = self.random_queue();
        let state = self.queue(queue);
        let random = &mut self.random;
        match port {
            0 | 2 => Ask::Event {
                queue: if random.chance(0.02) { queue | 0xff00 } else { queue },
                words: [(); 3].map(|()| random.bits() as u32),
                message: None,
            },
            1 => Ask::Event {
                queue: random.below(DOMAINS) as u16,
                words: [(); 3].map(|()| random.bits() as u32),
                message: Some([(); 6].map(|()| random.bits())),
            },
            3 => {
                let size = 1 << state.log2;
                let consumer = match random.below(6) {
                    0 => random.bits() as u16,
                    1 => state.producer,
                    2 => state.producer.wrapping_sub(size),
                    3 => state.producer.wrapping_sub(size + 1),
                    _ => state
                        .consumer
                        .wrapping_add(random.below(u64::from(state.level()) + 1) as u16),
                };
                let arm = random.chance(0.6);
                let named = if random.chance(0.02) { queue | 0x100 } else { queue };
                let token = EventDoorbell { queue: named, arm, consumer }.to_bits();
                let own = random.chance(0.95);
                Ask::Doorbell { token, domain: if own { state.domain } else { 63 } }
            }
            4 => {
                let body = EventQueue {
                    exists: true,
                    base: random.bits() & !63,
                    log2: 2 + random.below(3) as u32,
                    wide: random.chance(0.5),
                    domain: random.below(DOMAINS) as u8,
                    vector: random.below(VECTORS) as u8,
                    ..EventQueue::default()
                };
                let op = [0, 0, 1, 2][random.below(4) as usize];
                let index = if op == 2 { random.below(DOMAINS) as u16 } else { queue };
                let none = random.chance(0.2);
                Ask::Admin { op, index, body, queue: if none { 0xffff } else { queue } }
            }
            _ => Ask::Msix {
                write: random.chance(0.7),
                index: random.below(4 * VECTORS) as u8,
                wdata: random.bits() as u32,
            },
        }
    }

    /// What becomes of an event, as its answer has it.
    fn event(&mut self, port: usize, asked: &Ask, outcome: u8) -> u8 {
        let &Ask::Event { queue, words: [word0, word1, word2], message } = asked else {
            unreachable!()
        };
        let number = match message {
            Some(_) => self.reference.queues.events.message_queues[usize::from(queue)],
            None => queue,
        };
        if outcome == 2 && (message.is_none() || self.queue(number).wide) {
            self.notice_destruction(number);
        }
        let event = Event::from_words([word0, word1, word2, 0]);
        let text = message.map(|beats| beats.map(u64::to_le_bytes).concat());
        let (delivery, effects, vector) = self.refer(|queues, cx| match &text {
            Some(text) => queues.events.post_message(queue, event, text, cx),
            None => queues.events.post(queue, event, None, cx),
        });
        let full = delivery == Delivery::Full;
        if full && message.is_none() {
            self.deferring.insert(number);
        }
        if port == 2 {
            let put_off = std::mem::replace(&mut self.channel_put_off, full);
            self.deferred += u64::from(full && !put_off);
        }
        if let Some(Effect::Write(address, data)) = effects.into_iter().next() {
            self.records.push_back(Record { queue: number, address, data, vector });
            self.issued += 1;
        }
        delivery as u8
    }

    fn doorbell(&mut self, token: u64, domain: u8, at: u64) {
        let offset = u64::from(domain) * PAGE_BYTES + EVENT_OFFSET;
        let ((), effects, vector) = self.refer(|queues, cx| {
            Doorbells::default().write(offset, &token.to_le_bytes(), queues, cx);
        });
        if let Some(vector) = vector {
            self.vectors[usize::from(vector)].pending.push((at, self.issued));
        }
        let number = EventDoorbell::from_bits(token).queue;
        let queue = self.queue(number);
        let refused = matches!(effects[..], [Effect::Trace(Trace::DoorbellRefused { .. })]);
        if !refused && self.deferring.contains(&number) && !queue.is_full() {
            self.queued.insert(number);
        }
    }

    fn admin(&mut self, op: u8, index: u16, body: EventQueue, queue: u16) -> u8 {
        let (done, ..) = self.refer(|WorkQueues { events, vis, .. }, cx| match op {
            0 => events.create(index, body),
            1 => events.destroy(index, vis, cx),
            _ => {
                events.message_queues[usize::from(index)] = queue;
                true
            }
        });
        (if done { AdminStatus::Ok } else { AdminStatus::BadState }) as u8
    }

    /// The table as MSI-X has it; `Some` is what a read returns.
    fn msix(&mut self, write: bool, index: u8, wdata: u32) -> Option<u32> {
        let vector = &mut self.vectors[usize::from(index / 4)];
        let word = usize::from(index % 4);
        match (write, word) {
            (false, 3) => return Some(vector.masked.into()),
            (false, _) => return Some(vector.words[word]),
            (true, 3) => {
                vector.masked = wdata & 1 != 0;
                vector.mask_changed = self.now;
            }
            (true, _) => {
                let wdata = if word == 0 { wdata & !3 } else { wdata };
                vector.old_words = (vector.words, self.now);
                vector.words[word] = wdata;
            }
        }
        None
    }

    fn drive(&mut self, quiet: bool) {
        for port in 0..self.ports.len() {
            let asking = self.ports[port].ask.is_some();
            if self.ports[port].pause > 0 {
                self.ports[port].pause -= 1;
            } else if !asking && !quiet {
                self.ports[port].ask = Some(self.random_ask(port));
            }
        }
        let i = &mut self.model.inputs;
        i.vi_valid = self.ports[0].ask.is_some().into();
        i.recv_valid = self.ports[1].ask.is_some().into();
        i.channel_valid = self.ports[2].ask.is_some().into();
        i.doorbell_valid = self.ports[3].ask.is_some().into();
        i.admin_valid = self.ports[4].ask.is_some().into();
        i.msix_valid = self.ports[5].ask.is_some().into();
        if let Some(Ask::Event { queue, words, .. }) = self.ports[0].ask {
            (i.vi_queue, [i.vi_word0, i.vi_word1, i.vi_word2]) = (queue, words);
        }
        if let Some(Ask::Event { queue, words, message }) = self.ports[1].ask {
            (i.recv_queue, [i.recv_word0, i.recv_word1, i.recv_word2]) = (queue, words);
            i.recv_wide = 1;
            i.recv_message_data =
                message.unwrap().get(usize::from(self.last_index)).copied().unwrap_or(!0);
        }
        if let Some(Ask::Event { queue, words, .. }) = self.ports[2].ask {
            (i.channel_queue, [i.channel_word0, i.channel_word1, i.channel_word2]) = (queue, words);
        }
        if let Some(Ask::Doorbell { token, domain }) = self.ports[3].ask {
            (i.doorbell_token, i.doorbell_domain) = (token, domain);
        }
        if let Some(Ask::Admin { op, index, body, queue }) = self.ports[4].ask {
            (i.admin_op, i.admin_index, i.admin_queue) = (op, index, queue);
            (i.admin_base, i.admin_wide) = (body.base, body.wide.into());
            i.admin_log2 = body.log2 as u8;
            (i.admin_domain, i.admin_vector) = (body.domain, body.vector);
        }
        if let Some(Ask::Msix { write, index, wdata }) = self.ports[5].ask {
            (i.msix_write, i.msix_index, i.msix_wdata) = (write.into(), index, wdata);
        }
        i.write_ready = (!self.random.chance(self.stall)).into();
        i.drain_done = self.draining.is_some_and(|drain| drain.answer_at == Some(self.now)).into();
    }

    fn answered(&mut self, port: usize) -> Ask {
        let slowest = self.idle;
        let pause = if port == 4 { 50 } else { 1 } + self.random.below(slowest);
        let port = &mut self.ports[port];
        port.pause = pause;
        port.ask.take().expect("an answer without a question")
    }

    fn sample(&mut self) {
        let o = self.model.outputs.clone();
        if let Some((token, domain, at)) = self.rung.take() {
            let number = EventDoorbell::from_bits(token).queue;
            let own = self.queue(number).domain == domain;
            if o.error_valid != 0 && o.error_record >> 60 == 2 && own {
                self.notice_destruction(number);
            }
            self.doorbell(token, domain, at);
        }
        self.last_index = o.recv_message_index;
        if o.write_valid != 0 && o.write_length == 4 && !self.interrupting {
            self.interrupt(o.write_address, o.write_data);
        }
        self.interrupting =
            o.write_valid != 0 && o.write_length == 4 && self.model.inputs.write_ready == 0;
        for (port, done, outcome) in [
            (0, o.vi_done, o.vi_outcome),
            (1, o.recv_done, o.recv_outcome),
            (2, o.channel_done, o.channel_outcome),
        ] {
            if done != 0 {
                let ask = self.answered(port);
                assert_eq!(self.event(port, &ask, outcome), outcome, "{ask:?}");
            }
        }
        if o.doorbell_ready != 0 && self.model.inputs.doorbell_valid != 0 {
            let Ask::Doorbell { token, domain } = self.answered(3) else { unreachable!() };
            self.rung = Some((token, domain, self.now));
        }
        if o.admin_done != 0 {
            let Ask::Admin { op, index, body, queue } = self.answered(4) else { unreachable!() };
            if op == 1 && o.admin_status == 0 {
                let written = self.records.iter().all(|record| record.queue != index);
                assert!(written, "a queue goes away only after its records");
                let deferred = self.deferring.contains(&index) || self.queued.contains(&index);
                assert!(!deferred, "what it deferred is lost first");
            }
            if std::mem::take(&mut self.destroyed) {
                self.destroyed_late += 1;
            } else {
                assert_eq!(self.admin(op, index, body, queue), o.admin_status);
            }
        }
        if o.msix_done != 0 {
            let Ask::Msix { write, index, wdata } = self.answered(5) else { unreachable!() };
            if let Some(value) = self.msix(write, index, wdata) {
                assert_eq!(value, o.msix_rdata);
            }
        }
        if o.write_valid != 0 && self.model.inputs.write_ready != 0 {
            self.beat(o.write_address, o.write_length, o.write_data, o.write_last != 0);
        }
        self.drain(&o);
        if o.error_valid != 0 {
            assert_eq!(Some(o.error_record), self.reference.monitor.take_error());
        }
        for (at, seen) in self.seen.iter_mut().enumerate() {
            *seen += o.counts >> at & 1;
        }
    }

    /// An EventDestroy that has not been answered shows its effect on `number`.
    fn notice_destruction(&mut self, number: u16) {
        if let Some(Ask::Admin { op: 1, index, .. }) = self.ports[4].ask
            && index == number
            && !self.destroyed
        {
            self.destroyed = self.admin(1, number, EventQueue::default(), 0) == 0;
        }
    }

    fn drain(&mut self, o: &cosim::verilated::blocks::event::Out) {
        if self.model.inputs.drain_done != 0 {
            let drain = self.draining.as_mut().unwrap();
            drain.answer_at = None;
            if drain.errors {
                self.draining = None;
            }
        } else if o.drain_valid != 0 {
            let (number, errors) = (o.drain_queue & 0x7fff, o.drain_queue >> 15 != 0);
            let answer_at = Some(self.now + 1 + self.random.below(300));
            match self.draining {
                None => {
                    if !self.queued.remove(&number) {
                        self.notice_destruction(number);
                        assert!(self.destroyed, "{number}: a drain for nothing");
                    }
                    self.deferring.remove(&number);
                    self.drains += 1;
                    assert!(!errors);
                    self.draining =
                        Some(Drain { queue: number, errors, answer_at, channel_at: None });
                }
                Some(drain) if drain.answer_at.is_none() => {
                    assert!(errors && drain.queue == number);
                    let quiet = self.now - drain.channel_at.expect("the channel was asked");
                    assert!(quiet > CHANNEL_QUIET, "{number}: after {quiet} cycles");
                    self.draining = Some(Drain { errors, answer_at, ..drain });
                }
                Some(_) => {}
            }
        }
        if o.drain_channel != 0 {
            let drain = self.draining.as_mut().expect("a drain");
            assert!(drain.channel_at.is_none() && drain.answer_at.is_none());
            assert_eq!(o.drain_channel_queue, drain.queue);
            drain.channel_at = Some(self.now);
        }
        let asked = self.draining.as_mut().and_then(|drain| drain.channel_at.as_mut());
        if let Some(at) = asked.filter(|_| self.model.inputs.channel_valid != 0) {
            *at = self.now;
        }
    }

    fn beat(&mut self, address: u64, length: u16, data: u64, last: bool) {
        self.packet.extend(data.to_le_bytes());
        if !last {
            return;
        }
        let packet = std::mem::take(&mut self.packet);
        if length == 4 {
            assert_eq!(packet.len(), 8);
            return;
        }
        let record = self.records.pop_front().expect("a record that was issued");
        assert_eq!((address, &packet), (record.address, &record.data));
        assert_eq!(usize::from(length), packet.len());
        self.written += 1;
        if let Some(vector) = record.vector {
            self.vectors[usize::from(vector)].pending.push((self.now, self.written));
        }
    }

    /// An interrupt appears at the write port: it was decided two cycles ago.
    fn interrupt(&mut self, address: u64, data: u64) {
        let (now, written) = (self.now, self.written);
        let at = self.vectors.iter().position(|vector| {
            let (old, changed) = vector.old_words;
            let words = if changed + 1 >= now { old } else { vector.words };
            let place = u64::from(words[0]) | u64::from(words[1]) << 32;
            let wished = vector.pending.iter().any(|wish| wish.0 + 2 <= now && wish.1 <= written);
            wished
                && (!vector.masked || vector.mask_changed + MASK_CYCLES >= now)
                && (place, u64::from(words[2]) * 0x1_0000_0001) == (address, data)
        });
        let at = at.unwrap_or_else(|| {
            panic!("interrupt {address:x} {data:x} at {now}, {written} {:x?}", self.vectors)
        });
        let vector = &mut self.vectors[at];
        vector.pending.retain(|wish| wish.0 + 2 > now);
        let rest = vector.sent_at.replace(now).map_or(u64::MAX, |sent_at| now - sent_at);
        assert!(rest >= self.model.inputs.moderation.into(), "interrupt {at} after {rest} cycles");
        self.interrupts += 1;
    }

    fn cycle(&mut self, quiet: bool) {
        self.drive(quiet);
        self.model.cycle();
        self.sample();
        self.now += 1;
    }

    /// Everything is delivered once nobody asks for more and all vectors are unmasked.
    fn finish(&mut self) {
        for _ in 0..20_000 {
            self.cycle(true);
        }
        for (at, port) in self.ports.iter().enumerate() {
            assert!(port.ask.is_none(), "port {at} has no answer");
        }
        for vector in 0..VECTORS as u8 {
            self.ports[5].ask = Some(Ask::Msix { write: true, index: 4 * vector + 3, wdata: 0 });
            while self.ports[5].ask.is_some() {
                self.cycle(true);
            }
            self.cycle(true);
        }
        for _ in 0..2_000 {
            self.cycle(true);
        }
        assert!(self.records.is_empty() && self.reference.monitor.take_error().is_none());
        assert!(self.vectors.iter().all(|vector| vector.pending.is_empty()));
        assert!(self.queued.is_empty());
        let mut counts = self.reference.monitor.counters().map(u64::from);
        counts[Counter::Interrupts as usize] = self.interrupts;
        counts[Counter::EventsDeferred as usize] = self.deferred;
        // The receive engine counts those.
        counts[Counter::MessagesRefused as usize] = 0;
        for (at, (seen, count)) in self.seen.iter().zip(counts).enumerate() {
            assert_eq!(*seen, count, "counter {at}");
        }
    }

    fn call(&mut self, port: usize, ask: Ask) {
        self.ports[port].pause = 0;
        self.ports[port].ask = Some(ask);
        while self.ports[port].ask.is_some() {
            self.cycle(true);
        }
        self.cycle(true);
    }
}

#[test]
fn random_requests_of_all_ports() {
    let (mut drains, mut interrupts, mut late) = (0, 0, 0);
    each_seed(0..30, |seed| {
        let mut bench = Bench::new(seed);
        bench.set_up_vectors();
        // Now and then nobody asks: what a drain waits for comes to an end.
        for at in 0..96_000 {
            bench.cycle(at % 4_000 >= 2_500);
        }
        bench.finish();
        drains += bench.drains;
        interrupts += bench.interrupts;
        late += bench.destroyed_late;
    });
    assert!(drains > 100 && interrupts > 1_000, "{drains} drains, {interrupts} interrupts");
    assert!(late > 100, "{late} queues were destroyed behind a drain");
}

/// Phases over more than one pass of the largest ring, indexes over 65,536.
#[test]
fn largest_ring() {
    let mut bench = Bench::new(1);
    bench.stall = 0.0;
    let body = EventQueue {
        exists: true,
        base: 0x1_0000_0000,
        log2: 15,
        domain: 5,
        vector: 3,
        ..EventQueue::default()
    };
    bench.call(4, Ask::Admin { op: 0, index: 9, body, queue: 0 });
    let event = |at: u32| Ask::Event { queue: 9, words: [at, 0, 0], message: None };
    for at in 0..70_000_u32 {
        if at % 30_000 == 29_999 {
            let consumer = bench.queue(9).producer;
            let token = EventDoorbell { queue: 9, arm: false, consumer }.to_bits();
            bench.call(3, Ask::Doorbell { token, domain: 5 });
        }
        bench.call(0, event(at));
    }
    let producer = bench.queue(9).producer;
    let token = EventDoorbell { queue: 9, arm: false, consumer: producer }.to_bits();
    bench.call(3, Ask::Doorbell { token, domain: 5 });
    for at in 0..32_768 {
        bench.call(2, event(at));
    }
    assert_eq!(bench.deferred, 0);
    bench.call(2, event(0));
    assert_eq!(bench.deferred, 1);
    bench.finish();
}

/// A vector that rests keeps all wishes as one interrupt, until the rest is over and at most 64
/// cycles longer (contract 10.4): one that looks every 32 cycles whether it is.
#[test]
fn moderation_keeps_one_interrupt() {
    let mut late = BTreeSet::new();
    for moderation in (100..132).chain([777, 5_000]) {
        let mut bench = Bench::new(3);
        (bench.stall, bench.model.inputs.moderation) = (0.0, moderation);
        bench.set_up_vectors();
        let vector = 3;
        bench.call(5, Ask::Msix { write: true, index: 4 * vector + 3, wdata: 0 });
        let body =
            EventQueue { exists: true, base: 0x1000, log2: 4, vector, ..EventQueue::default() };
        bench.call(4, Ask::Admin { op: 0, index: 9, body, queue: 0 });
        let mut times = Vec::new();
        for round in 0..10 {
            // Alone, then three wishes while it rests.
            for _ in 0..if round == 0 { 1 } else { 3 } {
                let consumer = bench.queue(9).producer;
                let token = EventDoorbell { queue: 9, arm: true, consumer }.to_bits();
                bench.call(3, Ask::Doorbell { token, domain: 0 });
                bench.call(0, Ask::Event { queue: 9, words: [1, 2, 3], message: None });
            }
            while !bench.vectors[usize::from(vector)].pending.is_empty() {
                assert!(bench.now < 100_000, "an interrupt is lost");
                bench.cycle(true);
            }
            times.extend(bench.vectors[usize::from(vector)].sent_at);
        }
        assert_eq!(bench.interrupts, 10);
        let rests: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        late.extend(rests.iter().map(|&rest| rest - u64::from(moderation)));
    }
    assert!(late.iter().eq(&(4..36).collect::<Vec<u64>>()), "{late:?}");
}

/// Cycles of one event from `valid` to `done`, and between two of them.
#[test]
fn cost() {
    let mut bench = Bench::new(2);
    bench.stall = 0.0;
    let body = EventQueue { exists: true, base: 0x1000, log2: 12, ..EventQueue::default() };
    while bench.model.outputs.ready == 0 {
        bench.cycle(true);
    }
    bench.call(4, Ask::Admin { op: 0, index: 9, body, queue: 0 });
    let start = bench.now;
    for _ in 0..100 {
        bench.call(0, Ask::Event { queue: 9, words: [1, 2, 3], message: None });
    }
    let each = (bench.now - start) / 100;
    assert!(each <= 9, "{each} cycles for an event");
}
