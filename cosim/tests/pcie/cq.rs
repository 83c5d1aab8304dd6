//! `Cq`: every size, every byte enable, every BAR, malformed TLPs and long bursts, against a list
//! of what each must cause.
use crate::push::{self, Page, Script};
use crate::{Collector, Stable, chance, each_seed};
use cosim::verilated::blocks::cq::Model;
use nic_regs::counter::{Counter, ErrorCode, ErrorRecord};
use nic_regs::tlp::{Completion, MEM_READ, MEM_WRITE, Request, STATUS_UNSUPPORTED};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::VecDeque;

const COMPLETER: u16 = 0x1234;

/// A call of the register port: write, bad, offset, data.
#[derive(Debug, PartialEq, Eq)]
struct Access(bool, bool, u16, u32);

#[derive(Default)]
struct Expected {
    accesses: VecDeque<Access>,
    /// Tokens, by page.
    pages: Vec<Page>,
    /// Event doorbells, with their page.
    events: VecDeque<(u64, u8)>,
    script: Script,
    /// What each completion says.
    completions: VecDeque<Vec<u64>>,
    errors: VecDeque<ErrorRecord>,
    bad_tlps: usize,
    bad_doorbells: usize,
}

/// What a register holds.
fn register(offset: u16) -> u32 {
    u32::from(offset).wrapping_mul(0x0101_4567) ^ 0x55aa_0000
}

struct Tlp {
    bar: u8,
    beats: Vec<u64>,
}

fn request(rng: &mut SmallRng) -> Request {
    let length_dw = match rng.random_range(0..10) {
        0..=4 => 1,
        5..=7 => 2,
        8 => rng.random_range(3..=20),
        _ => [1024, 512, 3, 1023][rng.random_range(0..4)],
    };
    let whole = rng.random_range(0..3) > 0;
    Request {
        write: rng.random(),
        address: rng.random::<u64>() & !3,
        length_dw,
        requester: rng.random(),
        tag: rng.random(),
        first_be: if whole { 0xf } else { rng.random_range(0..16) },
        last_be: match (whole, length_dw) {
            (true, 1) => 0,
            (true, _) => 0xf,
            _ => rng.random_range(0..16),
        },
    }
}

fn bytes_before(be: u8) -> u64 {
    if be == 0 { 0 } else { be.trailing_zeros().into() }
}

fn bytes_after(be: u8) -> u64 {
    if be == 0 { 0 } else { u64::from(be.leading_zeros()) - 4 }
}

/// What the answer to a read carries.
fn answer(request: &Request, value: u32) -> Vec<u64> {
    let dwords = u64::from(request.length_dw);
    let end_be = if dwords == 1 { request.first_be } else { request.last_be };
    let mut bytes = 4 * dwords - bytes_before(request.first_be) - bytes_after(end_be);
    if dwords == 1 && request.first_be == 0 {
        bytes = 1;
    }
    let good = dwords <= 2;
    let header = Completion {
        data: good,
        length_dw: if good { request.length_dw } else { 0 },
        completer: COMPLETER,
        status: if good { 0 } else { STATUS_UNSUPPORTED },
        byte_count: bytes as u16,
        requester: request.requester,
        tag: request.tag,
        lower_address: (request.address as u8 & 0x7c) + bytes_before(request.first_be) as u8,
        ..Default::default()
    };
    let mut beats = header.to_beats().to_vec();
    if good {
        beats.resize(2 + request.data_beats(), 0);
        beats[2] = u64::from(value) << (request.address % 8 * 8);
    }
    beats
}

impl Expected {
    fn refuse(&mut self, head: u64) {
        self.bad_tlps += 1;
        let code = ErrorCode::BadTlp as u8;
        self.errors.push_back(ErrorRecord { code, index: 0, detail: head as u32 });
    }

    /// Makes a TLP and notes what it must cause.
    fn tlp(&mut self, rng: &mut SmallRng, enable: bool) -> Tlp {
        let mut request = request(rng);
        let bar = [0, 0, 2, 2, 2, 4, 1, 7][rng.random_range(0..8)];
        let mut words = Vec::new();
        if bar == 2 && chance(rng, 40) {
            (request, words) = self.script.write(rng);
        } else if bar == 2 && rng.random() {
            // A doorbell, or nearly one.
            request.write = true;
            request.length_dw = 2;
            (request.first_be, request.last_be) = (0xf, 0xf);
            let place = [0, 8, 8, 0, 16, 4, 0x800][rng.random_range(0..7)];
            request.address = request.address & !0xfff | place;
        }
        let mut beats = request.to_beats().to_vec();
        if !words.is_empty() {
            beats.extend(words);
        } else if request.write {
            beats.extend((0..request.data_beats()).map(|_| rng.random::<u64>()));
        }
        let head = beats[0];
        if spoil(rng, &request, &mut beats) {
            // Of a push line the words that are there count, as far as the header says.
            let there = beats.len().min(2 + request.data_beats());
            if bar == 2 && enable && beats[0] == head && there > 2 {
                self.push_words(&request, &beats[2..there]);
            }
            self.refuse(beats[0]);
        } else {
            self.good(&request, bar, &beats, enable);
        }
        Tlp { bar, beats }
    }

    fn good(&mut self, request: &Request, bar: u8, beats: &[u64], enable: bool) {
        match (bar, request.write) {
            (0, write) => {
                let offset = (request.address & 0x1ffc) as u16;
                let whole =
                    request.length_dw == 1 && request.first_be == 0xf && request.last_be == 0;
                let data = if write { beats[2] >> (request.address % 8 * 8) } else { 0 };
                self.accesses.push_back(Access(write, !whole, offset, data as u32));
                if !write {
                    let value = if whole { register(offset) } else { 0 };
                    self.completions.push_back(answer(request, value));
                }
            }
            (2, true) => {
                if enable && !self.push_words(request, &beats[2..]) {
                    self.doorbell(request, beats[2]);
                }
            }
            (2, false) => self.completions.push_back(answer(request, 0)),
            (_, write) => {
                self.refuse(beats[0]);
                if !write {
                    self.completions.push_back(answer(request, 0));
                }
            }
        }
    }

    /// The words of a well-formed write to a push line; false if it is none.
    fn push_words(&mut self, request: &Request, words: &[u64]) -> bool {
        let page = (request.address >> 12 & 63) as u8;
        let Some((line, first)) = push::place(request) else { return false };
        for (i, &word) in words.iter().enumerate() {
            if !self.pages[usize::from(page)].word(line, first + i, word) {
                self.refuse_doorbell(page, (request.address & 0xfff) as u16);
            }
        }
        true
    }

    fn refuse_doorbell(&mut self, page: u8, place: u16) {
        self.bad_doorbells += 1;
        let code = ErrorCode::BadDoorbell as u8;
        let detail = u32::from(place) << 16;
        self.errors.push_back(ErrorRecord { code, index: page.into(), detail });
    }

    fn doorbell(&mut self, request: &Request, data: u64) {
        let page = (request.address >> 12 & 63) as u8;
        let place = (request.address & 0xfff) as u16;
        let whole = request.length_dw == 2
            && (request.first_be, request.last_be) == (0xf, 0xf)
            && request.address.is_multiple_of(8);
        self.pages[usize::from(page)].other((whole && place == 0).then_some(data));
        if whole && place == 8 {
            self.events.push_back((data, page));
        } else if !(whole && place == 0) {
            self.refuse_doorbell(page, place);
        }
    }

    fn done(&self) -> bool {
        self.accesses.is_empty()
            && self.pages.iter().all(|page| page.posts.is_empty())
            && self.events.is_empty()
            && self.completions.is_empty()
            && self.errors.is_empty()
    }
}

/// Makes one TLP in ten bad, and says whether it did.
fn spoil(rng: &mut SmallRng, request: &Request, beats: &mut Vec<u64>) -> bool {
    let whole = beats.len();
    match rng.random_range(0..30) {
        // Cut short, or too long.
        0 => beats.truncate(rng.random_range(1..=whole)),
        1 => beats.extend((0..rng.random_range(1..4)).map(|_| rng.random::<u64>())),
        // Another type of TLP, or poisoned data.
        2 => {
            beats[0] ^= 1 << rng.random_range(24..32);
            let kind = (beats[0] >> 24) as u8;
            // The other memory request has the wrong number of data beats.
            assert!(kind != if request.write { MEM_WRITE } else { MEM_READ });
            return true;
        }
        3 if request.write => {
            beats[0] |= 1 << 14;
            return true;
        }
        _ => {}
    }
    beats.len() != whole
}

/// The neighbours, with what they must see.
#[derive(Default)]
struct Bench {
    nic: Model,
    expected: Expected,
    beats: VecDeque<(u64, bool, u8)>,
    offering: bool,
    /// The next beat is the first of a TLP.
    first: bool,
    /// Cycles until `csr` answers.
    answering: Option<u32>,
    collector: Collector,
    completions: Stable,
    posts: [Stable; 2],
    /// Words of pushes by slot; slots that are not given back yet; pushes with and without data.
    slots: [[u64; 8]; 8],
    busy: u8,
    /// The engine is slow to give slots back.
    keeps: bool,
    pushes: [usize; 2],
    /// Whole ones that found no slot.
    unslotted: usize,
    bad_tlps: usize,
    bad_doorbells: usize,
}

impl Bench {
    fn new(seed: u64, rng: &mut SmallRng) -> Self {
        let enable = seed % 4 != 3;
        let mut bench = Self { first: true, keeps: seed % 5 == 4, ..Self::default() };
        bench.expected.pages.resize_with(64, Page::default);
        (bench.nic.inputs.requester, bench.nic.inputs.enable) = (COMPLETER, enable.into());
        bench.nic.reset();
        for _ in 0..600 {
            let Tlp { bar, beats } = bench.expected.tlp(rng, enable);
            let last = beats.len() - 1;
            bench.beats.extend(beats.iter().enumerate().map(|(at, &b)| (b, at == last, bar)));
        }
        bench
    }

    fn drive(&mut self, rng: &mut SmallRng, offer: u32, speed: u32) {
        self.offering |= !self.beats.is_empty() && chance(rng, offer);
        let inputs = &mut self.nic.inputs;
        inputs.cq_valid = self.offering.into();
        if self.offering {
            let (data, last, bar) = self.beats[0];
            // The BAR counts with the first beat only.
            let bar = if self.first { bar } else { rng.random_range(0..8) };
            (inputs.cq_data, inputs.cq_last, inputs.cq_bar) = (data, last.into(), bar);
        }
        inputs.cc_ready = chance(rng, speed).into();
        inputs.vi_post_ready = chance(rng, speed / 2).into();
        inputs.event_post_ready = chance(rng, speed / 2).into();
        inputs.words_free = 0;
        let gives = if self.keeps { rng.random_ratio(1, 1_000) } else { chance(rng, speed / 4) };
        if gives {
            inputs.words_free = self.busy & self.busy.wrapping_neg();
            self.busy &= !inputs.words_free;
        }
        inputs.registers_done = (self.answering == Some(0)).into();
        inputs.registers_rdata = rng.random();
        if self.answering == Some(0) {
            let out = &self.nic.outputs;
            inputs.registers_rdata =
                if out.registers_bad == 1 { 0 } else { register(out.registers_offset) };
        }
    }

    fn access(&mut self, rng: &mut SmallRng) {
        let out = &self.nic.outputs;
        self.answering = match (out.registers_valid, self.answering) {
            (0, _) => None,
            (_, None) => Some(rng.random_range(0..6)),
            (_, Some(0)) => {
                let write = out.registers_write == 1;
                let data = if write { out.registers_wdata } else { 0 };
                let access = Access(write, out.registers_bad == 1, out.registers_offset, data);
                assert_eq!(Some(access), self.expected.accesses.pop_front());
                None
            }
            (_, Some(left)) => Some(left - 1),
        };
    }

    fn look(&mut self) {
        let (inputs, out) = (&self.nic.inputs, &self.nic.outputs);
        if self.offering && out.cq_ready == 1 {
            self.first = self.beats.pop_front().unwrap().1;
            self.offering = false;
        }
        let vi = (out.vi_post_valid, out.vi_post_token);
        let event = (out.event_post_valid, out.event_post_token);
        let ready = [inputs.vi_post_ready == 1, inputs.event_post_ready == 1];
        for (kind, (valid, token)) in [vi, event].into_iter().enumerate() {
            self.posts[kind].look(valid == 1, token, false, ready[kind]);
        }
        if out.event_post_valid == 1 && ready[1] {
            let post = (out.event_post_token, out.event_post_domain);
            assert_eq!(Some(post), self.expected.events.pop_front());
        }
        if out.words_valid == 1 {
            let (slot, index) = (usize::from(out.words_at >> 3), usize::from(out.words_at & 7));
            assert_eq!(self.busy >> slot & 1, 0, "slot {slot} is in use");
            self.slots[slot][index] = out.words_data;
        }
        if out.vi_post_valid == 1 && ready[0] {
            let page = &mut self.expected.pages[usize::from(out.vi_post_domain)];
            let post = page.posts.pop_front().expect("a token");
            let push = out.vi_post_push;
            let line = (push & 1 == 1).then_some(push >> 1 & 3);
            assert_eq!((out.vi_post_token, line), (post.token, post.line));
            let slot = usize::from(push >> 4);
            if push >> 3 & 1 == 1 {
                let words = post.whole.expect("a whole push");
                assert_eq!(self.slots[slot][1..words.len()], words[1..]);
                self.busy |= 1 << slot;
            } else if post.whole.is_some() {
                self.unslotted += 1;
            }
            if line.is_some() {
                self.pushes[usize::from(push >> 3 & 1)] += 1;
            }
        }
        let (valid, ready) = (out.cc_valid == 1, inputs.cc_ready == 1);
        self.completions.look(valid, out.cc_data, out.cc_last == 1, ready);
        if valid
            && ready
            && let Some(tlp) = self.collector.push(out.cc_data, out.cc_last == 1)
        {
            assert_eq!(Some(tlp), self.expected.completions.pop_front());
        }
        self.bad_tlps += (out.counts >> Counter::BadTlp as u32 & 1) as usize;
        self.bad_doorbells += (out.counts >> Counter::DoorbellBad as u32 & 1) as usize;
        if out.error_valid == 1 {
            let record = ErrorRecord::from_bits(out.error_record);
            assert_eq!(Some(record), self.expected.errors.pop_front());
        }
    }
}

#[test]
fn all_requests() {
    each_seed(0..24, |seed, rng| {
        let mut bench = Bench::new(seed, rng);
        let offer = if seed % 2 == 0 { 100 } else { 40 };
        let speed = [10, 50, 100][seed as usize % 3];
        let mut cycles = 0;
        while !bench.beats.is_empty() || !bench.expected.done() {
            cycles += 1;
            assert!(cycles < 400_000, "hangs");
            bench.drive(rng, offer, speed);
            bench.nic.cycle();
            bench.access(rng);
            bench.look();
        }
        for _ in 0..50 {
            bench.drive(rng, 0, 100);
            bench.nic.cycle();
            bench.access(rng);
            bench.look();
        }
        let counted = (bench.bad_tlps, bench.bad_doorbells);
        assert_eq!(counted, (bench.expected.bad_tlps, bench.expected.bad_doorbells));
        println!("pushes without and with data: {:?}", bench.pushes);
        assert!(seed % 4 == 3 || bench.pushes.iter().all(|&count| count > 0));
        assert!(seed % 4 == 3 || !bench.keeps || bench.unslotted > 0, "a slot for each");
    });
}

fn send(nic: &mut Model, bar: u8, tlp: &[u64]) {
    for (at, &beat) in tlp.iter().enumerate() {
        nic.inputs.cq_valid = 1;
        nic.inputs.cq_bar = bar;
        nic.inputs.cq_data = beat;
        nic.inputs.cq_last = u8::from(at + 1 == tlp.len());
        nic.cycle();
        assert_eq!(nic.outputs.cq_ready, 1);
    }
    nic.inputs.cq_valid = 0;
}

/// A soft reset empties the doorbell FIFOs, and nothing else: the read behind the reset is
/// answered.
#[test]
fn soft_reset() {
    let mut nic = Model::new();
    nic.inputs.enable = 1;
    nic.inputs.cc_ready = 1;
    let bell =
        Request { write: true, length_dw: 2, first_be: 15, last_be: 15, ..Default::default() };
    let head = bell.to_beats();
    for token in 0..5 {
        send(&mut nic, 2, &[head[0], head[1], token]);
    }
    let read = Request { length_dw: 1, first_be: 15, ..Default::default() };
    send(&mut nic, 0, &read.to_beats());
    for _ in 0..30 {
        nic.cycle();
    }
    assert_eq!((nic.outputs.vi_post_valid, nic.outputs.registers_valid), (1, 1));
    nic.inputs.soft_reset = 1;
    nic.cycle();
    nic.inputs.soft_reset = 0;
    nic.inputs.registers_done = 1;
    nic.cycle();
    nic.inputs.registers_done = 0;
    let mut beats = 0;
    for _ in 0..10 {
        nic.cycle();
        assert_eq!(nic.outputs.vi_post_valid, 0);
        beats += nic.outputs.cc_valid;
    }
    assert_eq!(beats, 3);
}

/// A burst far longer than its header says is followed to its end; what comes after is answered.
#[test]
fn endless_burst() {
    let mut nic = Model::new();
    nic.inputs.enable = 1;
    nic.inputs.cc_ready = 1;
    let write = Request { write: true, length_dw: 1, first_be: 15, ..Default::default() };
    let mut tlp = write.to_beats().to_vec();
    tlp.resize(2 + 2049, 1);
    send(&mut nic, 0, &tlp);
    let read = Request { length_dw: 1, first_be: 15, ..Default::default() };
    send(&mut nic, 2, &read.to_beats());
    let (mut bad, mut beats) = (0, 0);
    for _ in 0..30 {
        nic.cycle();
        assert_eq!(nic.outputs.registers_valid, 0);
        bad += nic.outputs.counts >> Counter::BadTlp as u32 & 1;
        beats += nic.outputs.cc_valid;
    }
    assert_eq!((bad, beats), (1, 3));
}

/// Full doorbell FIFOs hold off posted writes; they go on when there is space.
#[test]
fn holds_off() {
    let mut nic = Model::new();
    nic.inputs.enable = 1;
    let bell =
        Request { write: true, length_dw: 2, first_be: 15, last_be: 15, ..Default::default() };
    let head = bell.to_beats();
    let (mut sent, mut seen) = (0, 0);
    for cycle in 0..2000 {
        let beats = [head[0], head[1], sent / 3];
        nic.inputs.cq_valid = 1;
        nic.inputs.cq_bar = 2;
        nic.inputs.cq_data = beats[(sent % 3) as usize];
        nic.inputs.cq_last = u8::from(sent % 3 == 2);
        nic.inputs.vi_post_ready = u8::from(cycle > 500);
        nic.cycle();
        sent += u64::from(nic.outputs.cq_ready);
        if cycle == 500 {
            // 16 in the doorbell FIFO, 16 in the request FIFO.
            assert_eq!((nic.outputs.cq_ready, sent / 3), (0, 32));
        }
        if nic.outputs.vi_post_valid == 1 && nic.inputs.vi_post_ready == 1 {
            assert_eq!(nic.outputs.vi_post_token, seen);
            seen += 1;
        }
    }
    println!("{seen} doorbells in 1,500 cycles");
    assert!(seen > 300);
}

#[test]
fn cost() {
    let mut nic = Model::new();
    nic.inputs.enable = 1;
    nic.inputs.cc_ready = 1;
    nic.inputs.vi_post_ready = 1;
    nic.inputs.registers_done = 1;
    let bell =
        Request { write: true, length_dw: 2, first_be: 15, last_be: 15, ..Default::default() };
    let head = bell.to_beats();
    send(&mut nic, 2, &[head[0], head[1], 7]);
    let mut doorbell = 0;
    while nic.outputs.vi_post_valid == 0 {
        nic.cycle();
        doorbell += 1;
    }
    let read = Request { length_dw: 1, first_be: 15, ..Default::default() };
    send(&mut nic, 0, &read.to_beats());
    let mut first = 0;
    while nic.outputs.cc_valid == 0 {
        nic.cycle();
        first += 1;
    }
    println!(
        "last beat to post: {doorbell}; last beat of a read to its completion, csr at once: {first}"
    );
    assert_eq!((doorbell, first), (3, 5));
}
