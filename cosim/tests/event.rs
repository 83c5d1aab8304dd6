//! Event queues on the Verilated block. Requests of all ports at once, against a reference that
//! does the same one at a time, in the order in which the block answers: contents, phases and order
//! of the records, refusals, interrupts after their records, drains, counters, the error log.
#![cfg(feature = "blocks")]
#![allow(clippy::cast_possible_truncation, reason = "random numbers are cut to their field")]

use cosim::random::{Random, each_seed};
use cosim::verilated::blocks::event::Model;
use nic_regs::counter::{Counter, ErrorCode, ErrorRecord};
use nic_regs::doorbell::EventDoorbell;
use std::collections::{HashMap, VecDeque};

const QUEUES: [u16; 6] = [0, 1, 7, 100, 254, 255];
const DOMAINS: u64 = 4;
const VECTORS: u64 = 32;
/// Cycles after a mask bit was written in which the interrupt may already be on its way.
const MASK_CYCLES: u64 = 3;

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    exists: bool,
    base: u64,
    log2: u8,
    wide: bool,
    domain: u8,
    vector: u8,
    producer: u16,
    consumer: u16,
    armed: bool,
    deferring: bool,
    /// Waits for its drain; kept over a destruction.
    queued: bool,
}

impl Queue {
    fn fill(&self) -> u16 {
        self.producer.wrapping_sub(self.consumer)
    }
    fn size(&self) -> u16 {
        1 << self.log2
    }
}

/// A drain: completions, then the channel, then errors.
#[derive(Clone, Copy, Debug)]
struct Drain {
    queue: u16,
    errors: bool,
    /// The call runs and is answered then.
    answer_at: Option<u64>,
    channel_done: bool,
}

#[derive(Debug)]
struct Record {
    queue: u16,
    address: u64,
    beats: Vec<u64>,
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
    Admin { op: u8, index: u16, body: Queue, queue: u16 },
    Msix { write: bool, index: u8, wdata: u32 },
}

#[derive(Default)]
struct Port {
    pause: u64,
    ask: Option<Ask>,
}

struct Bench {
    random: Random,
    model: Model,
    now: u64,
    queues: HashMap<u16, Queue>,
    bound: HashMap<u8, u16>,
    vectors: Vec<Vector>,
    records: VecDeque<Record>,
    issued: u64,
    written: u64,
    packet: Vec<u64>,
    counts: HashMap<usize, u64>,
    seen: HashMap<usize, u64>,
    errors: VecDeque<u64>,
    draining: Option<Drain>,
    drains: u64,
    channel_put_off: bool,
    /// An EventDestroy took effect and is not answered yet.
    destroyed: bool,
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
        let mut model = Model::new();
        model.inputs.reset = 1;
        model.cycle();
        model.inputs.reset = 0;
        let idle = [1, 4, 30][random.below(3) as usize];
        let stall = [0.0, 0.5, 0.95][random.below(3) as usize];
        model.inputs.moderation = [0, 0, 150, 1_200][random.below(4) as usize];
        Self {
            random,
            model,
            now: 0,
            queues: HashMap::new(),
            bound: HashMap::new(),
            vectors: vec![Vector { masked: true, ..Vector::default() }; 32],
            records: VecDeque::new(),
            issued: 0,
            written: 0,
            packet: Vec::new(),
            counts: HashMap::new(),
            seen: HashMap::new(),
            errors: VecDeque::new(),
            draining: None,
            drains: 0,
            channel_put_off: false,
            destroyed: false,
            ports: Default::default(),
            idle,
            stall,
            last_index: 0,
            interrupting: false,
            rung: None,
        }
    }

    /// Gives every vector a datum of its own, so that interrupts can be distinguished.
    fn set_up_vectors(&mut self) {
        for vector in 0..VECTORS as u8 {
            let wdata = 0xda7a_0000 + u32::from(vector);
            self.call(5, Ask::Msix { write: true, index: 4 * vector + 2, wdata });
        }
    }

    fn count(&mut self, counter: Counter) {
        *self.counts.entry(counter as usize).or_default() += 1;
    }

    fn random_queue(&mut self) -> u16 {
        QUEUES[self.random.below(QUEUES.len() as u64) as usize]
    }

    fn random_ask(&mut self, port: usize) -> Ask {
        let queue = self.random_queue();
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
                let state = self.queues.get(&queue).copied().unwrap_or_default();
                let consumer = match random.below(6) {
                    0 => random.bits() as u16,
                    1 => state.producer,
                    2 => state.producer.wrapping_sub(state.size()),
                    3 => state.producer.wrapping_sub(state.size() + 1),
                    _ => state
                        .consumer
                        .wrapping_add(random.below(u64::from(state.fill()) + 1) as u16),
                };
                let arm = random.chance(0.6);
                let named = if random.chance(0.02) { queue | 0x100 } else { queue };
                let token = EventDoorbell { queue: named, arm, consumer }.to_bits();
                let own = random.chance(0.95);
                Ask::Doorbell { token, domain: if own { state.domain } else { 63 } }
            }
            4 => {
                let body = Queue {
                    base: random.bits() & !63,
                    log2: 2 + random.below(3) as u8,
                    wide: random.chance(0.5),
                    domain: random.below(DOMAINS) as u8,
                    vector: random.below(VECTORS) as u8,
                    ..Queue::default()
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

    /// What the reference says to an event: 0 written, 1 full, 2 absent.
    fn event(&mut self, port: usize, asked: &Ask, outcome: u8) -> u8 {
        let &Ask::Event { queue: number, words, message } = asked else { unreachable!() };
        let number = match message {
            Some(_) => self.bound.get(&(number as u8)).copied().unwrap_or(0xffff),
            None => number,
        };
        if outcome == 2 && (message.is_none() || self.queues.get(&number).is_some_and(|q| q.wide)) {
            self.notice_destruction(number);
        }
        let put_off = self.channel_put_off;
        if port == 2 {
            self.channel_put_off = false;
        }
        let Some(queue) = self.queues.get_mut(&number).filter(|queue| queue.exists) else {
            return 2;
        };
        if message.is_some() && !queue.wide {
            return 2;
        }
        if queue.fill() == queue.size() {
            if message.is_none() {
                queue.deferring = true;
                if port == 2 {
                    self.channel_put_off = true;
                    if !put_off {
                        self.count(Counter::EventsDeferred);
                    }
                }
            }
            return 1;
        }
        let entry = if queue.wide { 64 } else { 16 };
        let slot = u64::from(queue.producer % queue.size());
        let phase = queue.producer >> queue.log2 & 1 == 0;
        let [word0, word1, word2] = words;
        let mut beats = if queue.wide { message.unwrap_or_default().to_vec() } else { vec![] };
        beats.push(u64::from(word0) | u64::from(word1) << 32);
        beats.push(u64::from(word2) | u64::from(phase) << 63);
        let vector = queue.armed.then_some(queue.vector);
        let address = queue.base.wrapping_add(slot * entry);
        queue.armed = false;
        queue.producer = queue.producer.wrapping_add(1);
        self.records.push_back(Record { queue: number, address, beats, vector });
        self.issued += 1;
        self.count(Counter::EventsWritten);
        if message.is_some() {
            self.count(Counter::MessagesReceived);
        }
        0
    }

    fn doorbell(&mut self, token: u64, domain: u8, at: u64) {
        let EventDoorbell { queue: number, arm, consumer } = EventDoorbell::from_bits(token);
        let queue = self.queues.get(&number).copied().unwrap_or_default();
        let cause = if !queue.exists || queue.domain != domain {
            Some(2)
        } else if queue.producer.wrapping_sub(consumer) > queue.size() {
            Some(3)
        } else {
            None
        };
        if let Some(cause) = cause {
            self.count(Counter::DoorbellBad);
            let detail = u32::from(number) | 8 << 16 | cause << 28;
            let code = ErrorCode::BadDoorbell as u8;
            let record = ErrorRecord { code, index: domain.into(), detail };
            self.errors.push_back(record.to_bits());
            return;
        }
        let queue = self.queues.get_mut(&number).unwrap();
        queue.consumer = consumer;
        queue.armed = arm && queue.fill() == 0;
        if arm && queue.fill() != 0 {
            self.vectors[usize::from(queue.vector)].pending.push((at, self.issued));
        }
        if queue.deferring && queue.fill() < queue.size() {
            queue.queued = true;
        }
    }

    fn admin(&mut self, op: u8, index: u16, body: Queue, queue: u16) -> u8 {
        if op == 2 {
            match queue {
                0xffff => self.bound.remove(&(index as u8)),
                _ => self.bound.insert(index as u8, queue),
            };
            return 0;
        }
        let old = self.queues.entry(index).or_default();
        if old.exists != (op == 1) {
            return 3;
        }
        *old = if op == 0 {
            Queue { exists: true, queued: old.queued, deferring: old.deferring, ..body }
        } else {
            Queue { exists: false, ..*old }
        };
        0
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
            (i.admin_base, i.admin_log2, i.admin_wide) = (body.base, body.log2, body.wide.into());
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
            let own = self.queues.get(&number).is_some_and(|queue| queue.domain == domain);
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
                let state = self.queues[&index];
                assert!(!state.deferring && !state.queued, "what it deferred is lost first");
            }
            if !std::mem::take(&mut self.destroyed) {
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
            assert_eq!(Some(o.error_record), self.errors.pop_front());
        }
        for at in 0..64 {
            *self.seen.entry(at).or_default() += o.counts >> at & 1;
        }
    }

    /// An EventDestroy that has not been answered shows its effect on `number`.
    fn notice_destruction(&mut self, number: u16) {
        if let Some(Ask::Admin { op: 1, index, .. }) = self.ports[4].ask
            && index == number
            && !self.destroyed
            && let Some(queue) = self.queues.get_mut(&number)
            && queue.exists
        {
            queue.exists = false;
            self.destroyed = true;
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
                    if !self.queues[&number].queued {
                        self.notice_destruction(number);
                        assert!(self.destroyed, "{number}: a drain for nothing");
                    }
                    let queue = self.queues.get_mut(&number).unwrap();
                    (queue.queued, queue.deferring) = (false, false);
                    self.drains += 1;
                    assert!(!errors);
                    let channel_done = false;
                    self.draining = Some(Drain { queue: number, errors, answer_at, channel_done });
                }
                Some(drain) if drain.answer_at.is_none() => {
                    assert!(errors && drain.channel_done && drain.queue == number);
                    self.draining = Some(Drain { errors, answer_at, ..drain });
                }
                Some(_) => {}
            }
        }
        if o.drain_channel != 0 {
            let drain = self.draining.as_mut().expect("a drain");
            assert!(!drain.channel_done && drain.answer_at.is_none());
            assert_eq!(o.drain_channel_queue, drain.queue);
            drain.channel_done = true;
        }
    }

    fn beat(&mut self, address: u64, length: u16, data: u64, last: bool) {
        self.packet.push(data);
        if !last {
            return;
        }
        let packet = std::mem::take(&mut self.packet);
        if length == 4 {
            assert_eq!(packet.len(), 1);
            return;
        }
        let record = self.records.pop_front().expect("a record that was issued");
        assert_eq!((address, &packet), (record.address, &record.beats));
        assert_eq!(usize::from(length), 8 * packet.len());
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
        self.count(Counter::Interrupts);
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
        assert!(self.records.is_empty() && self.errors.is_empty());
        assert!(self.vectors.iter().all(|vector| vector.pending.is_empty()));
        assert!(self.queues.values().all(|queue| !queue.queued));
        for (at, count) in &self.seen {
            assert_eq!(count, self.counts.get(at).unwrap_or(&0), "counter {at}");
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
    let (mut drains, mut interrupts) = (0, 0);
    each_seed(0..30, |seed| {
        let mut bench = Bench::new(seed);
        bench.set_up_vectors();
        for _ in 0..60_000 {
            bench.cycle(false);
        }
        bench.finish();
        drains += bench.drains;
        interrupts += bench.counts.get(&(Counter::Interrupts as usize)).unwrap_or(&0);
    });
    assert!(drains > 100 && interrupts > 1_000, "{drains} drains, {interrupts} interrupts");
}

/// Phases over more than one pass of the largest ring, indexes over 65,536.
#[test]
fn largest_ring() {
    let mut bench = Bench::new(1);
    bench.stall = 0.0;
    let body = Queue { base: 0x1_0000_0000, log2: 15, domain: 5, vector: 3, ..Queue::default() };
    bench.call(4, Ask::Admin { op: 0, index: 9, body, queue: 0 });
    let event = |at: u32| Ask::Event { queue: 9, words: [at, 0, 0], message: None };
    for at in 0..70_000_u32 {
        if at % 30_000 == 29_999 {
            let consumer = bench.queues[&9].producer;
            let token = EventDoorbell { queue: 9, arm: false, consumer }.to_bits();
            bench.call(3, Ask::Doorbell { token, domain: 5 });
        }
        bench.call(0, event(at));
    }
    let producer = bench.queues[&9].producer;
    let token = EventDoorbell { queue: 9, arm: false, consumer: producer }.to_bits();
    bench.call(3, Ask::Doorbell { token, domain: 5 });
    for at in 0..32_768 {
        bench.call(2, event(at));
    }
    assert_eq!(bench.counts.get(&(Counter::EventsDeferred as usize)), None);
    bench.call(2, event(0));
    assert_eq!(bench.counts[&(Counter::EventsDeferred as usize)], 1);
    bench.finish();
}

/// A vector that rests keeps all wishes as one interrupt, until the rest is over and at most 64
/// cycles longer (contract 10.4).
#[test]
fn moderation_keeps_one_interrupt() {
    for moderation in [100, 777, 5_000] {
        let mut bench = Bench::new(3);
        (bench.stall, bench.model.inputs.moderation) = (0.0, moderation);
        bench.set_up_vectors();
        let vector = 3;
        bench.call(5, Ask::Msix { write: true, index: 4 * vector + 3, wdata: 0 });
        let body = Queue { base: 0x1000, log2: 4, vector, ..Queue::default() };
        bench.call(4, Ask::Admin { op: 0, index: 9, body, queue: 0 });
        let mut times = Vec::new();
        for round in 0..10 {
            // Alone, then three wishes while it rests.
            for _ in 0..if round == 0 { 1 } else { 3 } {
                let consumer = bench.queues[&9].producer;
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
        assert_eq!(bench.counts[&(Counter::Interrupts as usize)], 10);
        let rests: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let longest = u64::from(moderation) + 64;
        assert!(rests.iter().all(|&rest| rest <= longest), "{rests:?} of {moderation}");
    }
}

/// Cycles of one event from `valid` to `done`, and between two of them.
#[test]
fn cost() {
    let mut bench = Bench::new(2);
    bench.stall = 0.0;
    let body = Queue { base: 0x1000, log2: 12, ..Queue::default() };
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
