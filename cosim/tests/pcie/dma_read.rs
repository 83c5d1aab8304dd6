//! `DmaRead` against a root complex that splits, reorders, delays, fails and misbehaves.
use crate::completion::{completion, failure, memory};
use crate::{Collector, Stable, chance, each_seed};
use cosim::verilated::blocks::dma_read::Model;
use nic_regs::counter::{Counter, ErrorCode, ErrorRecord};
use nic_regs::tlp::{COMPLETION, COMPLETION_DATA, MEM_READ, Request};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

pub(crate) const TIMEOUT: u64 = 8_000;

/// What the root complex may do to a read, in percent of the reads.
#[derive(Clone, Copy, Default)]
pub(crate) struct Faults {
    error: u32,
    poison: u32,
    late: u32,
    too_much: u32,
    miscounted: u32,
    stray: u32,
    garbage: u32,
}

/// One completion to send, as beats.
pub(crate) struct Part {
    beats: Vec<u64>,
    /// The last one that its tag waits for.
    settles: bool,
    pub(crate) not_before: u64,
}

#[derive(Default)]
pub(crate) struct Host {
    /// By tag, in order.
    pub(crate) outstanding: BTreeMap<u8, VecDeque<Part>>,
    pub(crate) sending: VecDeque<(u64, bool)>,
    settling: Option<u8>,
    /// Requests (address bits 47:16) that must fail.
    pub(crate) failed: HashSet<u64>,
    expected: HashMap<Counter, u64>,
    /// First dwords of all TLPs that it sent.
    firsts: HashSet<u32>,
    pub(crate) requests: u64,
    pub(crate) most: usize,
}

impl Host {
    pub(crate) fn expect(&mut self, counter: Counter) {
        *self.expected.entry(counter).or_default() += 1;
    }

    fn request(&mut self, tlp: &[u64], now: u64, rng: &mut SmallRng, faults: Faults, limit: u64) {
        assert_eq!(tlp.len(), 2);
        assert_eq!((tlp[0] >> 24) as u8, MEM_READ);
        let request = Request::from_beats([tlp[0], tlp[1]]);
        assert_eq!(request.requester, 0x4321);
        let dwords = u64::from(request.length_dw);
        assert_eq!(request.address / limit, (request.address + 4 * dwords - 1) / limit);
        let first = request.address + u64::from(request.first_be.trailing_zeros());
        let end_be = if dwords == 1 { request.first_be } else { request.last_be };
        assert_eq!(request.last_be == 0, dwords == 1);
        let end = request.address + 4 * dwords - u64::from(end_be.leading_zeros() - 4);
        let tag = request.tag;
        assert!(!self.outstanding.contains_key(&tag), "tag {tag} still waits for a completion");
        self.requests += 1;
        let id = first >> 16;
        let mut not_before = now + rng.random_range(0..400);
        if chance(rng, faults.late) {
            not_before = now + TIMEOUT + rng.random_range(200..2000);
            self.failed.insert(id);
            self.expect(Counter::ReadTimeouts);
        }
        let late = not_before > now + TIMEOUT;
        let mut parts = VecDeque::new();
        let mut at = first;
        let (mut error, mut poison) = (chance(rng, faults.error), chance(rng, faults.poison));
        let (mut bad, mut miscounted, mut miscounted_first) = (false, false, false);
        while at < end {
            let mut stop = end;
            if chance(rng, 50) {
                stop = end.min((at & !63) + 64 * rng.random_range(1..=4));
            }
            if chance(rng, faults.too_much) {
                let needed = (end - (at & !3)).div_ceil(4);
                let dwords = needed + rng.random_range(1..20);
                let beats = completion(tag, at, end - at, dwords, false);
                parts.push_back(Part { beats, settles: false, not_before });
                self.expect(Counter::UnexpectedCompletions);
            }
            if error && (chance(rng, 50) || stop == end) {
                miscounted_first |= miscounted;
                let status = [1, 2, 4][rng.random_range(0..3)];
                let beats = failure(tag, end - at, status);
                parts.push_back(Part { beats, settles: true, not_before });
                bad = true;
                error = false;
                break;
            }
            let dwords = (stop - (at & !3)).div_ceil(4);
            if chance(rng, faults.miscounted) {
                // It fits, but for its beats: a retransmission of what was wanted does not help.
                let mut beats = completion(tag, at, end - at, dwords, false);
                let whole = beats.len();
                // Also by as many as a count of 64 beats wraps at.
                let wraps = chance(rng, 10);
                let length = if wraps { whole + 128 } else { rng.random_range(2..whole + 3) };
                beats.resize(if length == whole { whole + 1 } else { length }, rng.random());
                miscounted |= beats.len() > 2;
                parts.push_back(Part { beats, settles: false, not_before });
                self.expect(Counter::BadTlp);
            }
            let poisoned = poison && (chance(rng, 50) || stop == end);
            poison &= !poisoned;
            miscounted_first |= poisoned && miscounted && !bad;
            bad |= poisoned;
            let beats = completion(tag, at, end - at, dwords, poisoned);
            parts.push_back(Part { beats, settles: stop == end, not_before });
            not_before += rng.random_range(0..60);
            at = stop;
        }
        assert!(!error || bad);
        if bad || miscounted {
            self.failed.insert(id);
            if bad && !late && !miscounted_first {
                self.expect(Counter::ReadErrors);
            }
        }
        self.outstanding.insert(tag, parts);
        self.most = self.most.max(self.outstanding.len());
    }

    /// The next beat of `rc`.
    fn beat(&mut self, now: u64, rng: &mut SmallRng, faults: Faults) -> Option<(u64, bool)> {
        if self.sending.is_empty() {
            let mut beats = Vec::new();
            if chance(rng, faults.stray) && rng.random_range(0..10) == 0 {
                let tag = rng.random();
                if !self.outstanding.contains_key(&tag) {
                    let dwords = rng.random_range(1..30);
                    beats = completion(tag, rng.random(), 4 * dwords, dwords, false);
                    self.expect(Counter::UnexpectedCompletions);
                }
            } else if chance(rng, faults.garbage) && rng.random_range(0..10) == 0 {
                self.expect(Counter::BadTlp);
                beats = (0..rng.random_range(1..10))
                    .map(|_| rng.random::<u64>() | 0x7f << 24)
                    .collect();
                if rng.random() {
                    // A completion of one beat.
                    beats = vec![
                        u64::from([COMPLETION, COMPLETION_DATA][rng.random_range(0..2)]) << 24,
                    ];
                }
            } else {
                let ready: Vec<u8> = self
                    .outstanding
                    .iter()
                    .filter(|(_, parts)| parts[0].not_before <= now)
                    .map(|(&tag, _)| tag)
                    .collect();
                if !ready.is_empty() {
                    // Any of them, but nobody so late that its read would time out.
                    let late = |tag: &&u8| self.outstanding[*tag][0].not_before + TIMEOUT / 4 < now;
                    let any = &ready[rng.random_range(0..ready.len())];
                    let tag = *ready.iter().find(late).unwrap_or(any);
                    let part = self.outstanding.get_mut(&tag).unwrap().pop_front().unwrap();
                    self.settling = part.settles.then_some(tag);
                    beats = part.beats;
                }
            }
            let last = beats.len();
            self.firsts.extend(beats.first().map(|&beat| beat as u32));
            self.sending =
                beats.into_iter().enumerate().map(|(at, b)| (b, at + 1 == last)).collect();
        }
        let beat = self.sending.pop_front();
        // Its tag may be seen again as soon as the last beat is sent.
        if self.sending.is_empty()
            && let Some(tag) = self.settling.take()
        {
            self.outstanding.remove(&tag);
        }
        beat
    }
}

pub(crate) struct Read {
    pub(crate) address: u64,
    pub(crate) length: u64,
}

#[derive(Default)]
pub(crate) struct Client {
    pub(crate) todo: VecDeque<Read>,
    pub(crate) open: VecDeque<Read>,
    /// Its reads may also fail: how many did.
    pub(crate) failures: Option<u64>,
    beats: Vec<u64>,
    offering: bool,
}

impl Client {
    fn response(&mut self, data: u64, last: bool, error: bool, failed: &HashSet<u64>) {
        assert!(!self.open.is_empty(), "a response without a request");
        self.beats.push(data);
        if !last {
            assert!(!error);
            return;
        }
        let read = self.open.pop_front().unwrap();
        let beats = std::mem::take(&mut self.beats);
        let id = read.address >> 16;
        if let Some(failures) = &mut self.failures {
            *failures += u64::from(error);
        } else {
            assert_eq!(
                error,
                failed.contains(&id),
                "outcome of {:#x}+{}",
                read.address,
                read.length
            );
        }
        let words = (read.address % 8 + read.length).div_ceil(8);
        assert!(beats.len() as u64 <= words);
        if error {
            return;
        }
        assert_eq!(beats.len() as u64, words);
        for at in read.address..read.address + read.length {
            let beat = beats[(at / 8 - read.address / 8) as usize];
            assert_eq!((beat >> (at % 8 * 8)) as u8, memory(at), "byte {at:#x}");
        }
    }
}

#[derive(Default)]
pub(crate) struct Bench {
    pub(crate) nic: Model,
    pub(crate) host: Host,
    pub(crate) clients: [Client; 4],
    collector: Collector,
    stable: Stable,
    counted: HashMap<Counter, u64>,
    logged: HashMap<u8, u64>,
    pub(crate) now: u64,
}

impl Bench {
    pub(crate) fn new(max_read: u8) -> Self {
        let mut bench = Self::default();
        let i = &mut bench.nic.inputs;
        (i.max_read, i.requester, i.read_timeout) = (max_read, 0x4321, TIMEOUT as u32);
        bench.nic.reset();
        bench
    }

    /// The inputs of a cycle: `offer`, `ready` and `rc_busy` in percent.
    fn drive(&mut self, rng: &mut SmallRng, faults: Faults, ready: u32, offer: u32, rc_busy: u32) {
        self.now += 1;
        let mut ports = [(0u8, 0u64, 0u16); 4];
        for (client, port) in self.clients.iter_mut().zip(&mut ports) {
            client.offering |= !client.todo.is_empty() && chance(rng, offer);
            if client.offering {
                *port = (1, client.todo[0].address, client.todo[0].length as u16);
            }
        }
        let inputs = &mut self.nic.inputs;
        (inputs.desc_send_req_valid, inputs.desc_send_req_address, inputs.desc_send_req_length) =
            ports[0];
        (inputs.desc_recv_req_valid, inputs.desc_recv_req_address, inputs.desc_recv_req_length) =
            ports[1];
        (inputs.gather_req_valid, inputs.gather_req_address, inputs.gather_req_length) = ports[2];
        (inputs.admin_req_valid, inputs.admin_req_address, inputs.admin_req_length) = ports[3];
        inputs.out_ready = chance(rng, ready).into();
        let beat = if chance(rng, rc_busy) { self.host.beat(self.now, rng, faults) } else { None };
        inputs.rc_valid = beat.is_some().into();
        inputs.rc_data = rng.random();
        inputs.rc_last = rng.random::<bool>().into();
        if let Some((data, last)) = beat {
            (inputs.rc_data, inputs.rc_last) = (data, last.into());
        }
    }

    pub(crate) fn cycle(
        &mut self,
        rng: &mut SmallRng,
        faults: Faults,
        ready: u32,
        offer: u32,
        rc_busy: u32,
    ) {
        self.drive(rng, faults, ready, offer, rc_busy);
        let limit = 128u64 << self.nic.inputs.max_read.min(2);
        self.nic.cycle();
        let out = self.nic.outputs.clone();
        let moves = self.nic.inputs.out_ready == 1;
        self.stable.look(out.out_valid == 1, out.out_data, out.out_last == 1, moves);
        if out.out_valid == 1
            && moves
            && let Some(tlp) = self.collector.push(out.out_data, out.out_last == 1)
        {
            self.host.request(&tlp, self.now, rng, faults, limit);
        }
        let readies = [
            out.desc_send_req_ready,
            out.desc_recv_req_ready,
            out.gather_req_ready,
            out.admin_req_ready,
        ];
        for (client, _) in self
            .clients
            .iter_mut()
            .zip(readies)
            .filter(|(client, ready)| *ready == 1 && client.offering)
        {
            client.offering = false;
            client.open.push_back(client.todo.pop_front().unwrap());
        }
        let responses = [
            (
                out.desc_send_rsp_valid,
                out.desc_send_rsp_data,
                out.desc_send_rsp_last,
                out.desc_send_rsp_error,
            ),
            (
                out.desc_recv_rsp_valid,
                out.desc_recv_rsp_data,
                out.desc_recv_rsp_last,
                out.desc_recv_rsp_error,
            ),
            (out.gather_rsp_valid, out.gather_rsp_data, out.gather_rsp_last, out.gather_rsp_error),
            (out.admin_rsp_valid, out.admin_rsp_data, out.admin_rsp_last, out.admin_rsp_error),
        ];
        for (client, (valid, data, last, error)) in self.clients.iter_mut().zip(responses) {
            if valid == 1 {
                client.response(data, last == 1, error == 1, &self.host.failed);
            }
        }
        self.count();
    }

    /// A cycle in which the clock of time-outs counts `step`.
    pub(crate) fn jump(&mut self, step: u64) {
        let inputs = &mut self.nic.inputs;
        (inputs.rc_valid, inputs.out_ready) = (0, 0);
        (inputs.desc_send_req_valid, inputs.desc_recv_req_valid) = (0, 0);
        (inputs.gather_req_valid, inputs.admin_req_valid) = (0, 0);
        self.nic.jump(step);
        self.count();
    }

    fn count(&mut self) {
        let out = &self.nic.outputs;
        for &(counter, ..) in Counter::ALL {
            if out.counts >> counter as u32 & 1 == 1 {
                *self.counted.entry(counter).or_default() += 1;
            }
        }
        if out.error_valid == 1 {
            let record = ErrorRecord::from_bits(out.error_record);
            *self.logged.entry(record.code).or_default() += 1;
            if record.code == ErrorCode::BadTlp as u8 {
                let sent = self.host.firsts.contains(&record.detail);
                assert!(sent, "no TLP begins with {:#x}", record.detail);
            }
        }
    }

    pub(crate) fn idle(&self) -> bool {
        self.clients.iter().all(|client| client.todo.is_empty() && client.open.is_empty())
            && self.host.outstanding.is_empty()
            && self.host.sending.is_empty()
    }

    pub(crate) fn check_counts(&self) {
        assert_eq!(self.counted, self.host.expected);
        for (code, counter) in [
            (ErrorCode::BadTlp, Counter::BadTlp),
            (ErrorCode::ReadTimeout, Counter::ReadTimeouts),
            (ErrorCode::ReadError, Counter::ReadErrors),
            (ErrorCode::UnexpectedCompletion, Counter::UnexpectedCompletions),
        ] {
            assert_eq!(self.logged.get(&(code as u8)), self.counted.get(&counter), "{code:?}");
        }
    }
}

pub(crate) fn random_reads(rng: &mut SmallRng, from: u64, count: u64) -> VecDeque<Read> {
    (0..count)
        .map(|at| {
            let length = match rng.random_range(0..4) {
                0 => [1, 4, 8, 48, 64, 304, 4096][rng.random_range(0..7)],
                1 => rng.random_range(1..=64),
                2 => rng.random_range(1..=600),
                _ => rng.random_range(1..=4096),
            };
            let address = (from * 1000 + at + 1) << 16 | rng.random_range(0..4096);
            Read { address, length }
        })
        .collect()
}

fn run(seeds: std::ops::Range<u64>, faults: Faults) {
    each_seed(seeds, |seed, rng| {
        let mut bench = Bench::new([0, 1, 2, 2, 7][seed as usize % 5]);
        for client in 0..4 {
            bench.clients[client].todo = random_reads(rng, client as u64, 100);
        }
        let ready = [40, 100][seed as usize % 2];
        let offer = [5, 50, 100][seed as usize % 3];
        let rc_busy = [60, 95, 100][seed as usize % 3];
        while !bench.idle() {
            assert!(bench.now < 3_000_000, "hangs");
            bench.cycle(rng, faults, ready, offer, rc_busy);
        }
        for _ in 0..100 {
            bench.cycle(rng, Faults::default(), 100, 0, 100);
        }
        bench.check_counts();
        assert!(bench.host.requests > 400 && bench.host.most > 8);
    });
}

#[test]
fn splits_and_reorders() {
    run(0..12, Faults::default());
}

/// A client that was idle for long begins anew while words come whose tag was its last one's.
#[test]
fn short_reads_beside_a_stream() {
    each_seed(50..54, |_, rng| {
        let mut bench = Bench::new(2);
        for id in 1..40_000_u64 {
            bench.clients[2].todo.push_back(Read { address: id << 16, length: 64 });
            if rng.random_range(0..40) == 0 {
                let client = [0, 1, 3][rng.random_range(0..3)];
                let address = (id + 100_000) << 16 | rng.random_range(0..7) << 3;
                bench.clients[client].todo.push_back(Read { address, length: 16 });
            }
            while !bench.clients[2].todo.is_empty() {
                assert!(bench.now < 1_000_000, "hangs");
                bench.cycle(rng, Faults::default(), 100, 100, 100);
            }
        }
        while !bench.idle() {
            assert!(bench.now < 1_000_000, "hangs");
            bench.cycle(rng, Faults::default(), 100, 100, 100);
        }
        bench.check_counts();
    });
}

#[test]
fn errors_and_poison() {
    run(100..112, Faults { error: 5, poison: 5, ..Default::default() });
}

#[test]
fn strays_and_garbage() {
    run(200..212, Faults { too_much: 8, stray: 30, garbage: 30, ..Default::default() });
}

/// Words of a completion are with the client before it turns out to have too few or too many.
#[test]
fn miscounted_completions() {
    run(250..262, Faults { miscounted: 8, ..Default::default() });
}

#[test]
fn late_completions() {
    run(300..308, Faults { late: 2, ..Default::default() });
}

#[test]
fn everything() {
    run(
        400..412,
        Faults { error: 3, poison: 3, late: 1, too_much: 3, miscounted: 3, stray: 10, garbage: 10 },
    );
}

/// A read that is never answered fails once; its tag stays out of use for good, the other 31 go on.
#[test]
fn missing_completion() {
    each_seed(0..1, |_, rng| {
        let mut bench = Bench::new(2);
        bench.clients[1].todo.push_back(Read { address: 0x1_0000, length: 64 });
        while bench.host.outstanding.is_empty() {
            bench.cycle(rng, Faults::default(), 100, 100, 0);
        }
        let lost = *bench.host.outstanding.keys().next().unwrap();
        bench.host.outstanding.get_mut(&lost).unwrap()[0].not_before = u64::MAX;
        bench.host.failed.insert(1);
        bench.host.expect(Counter::ReadTimeouts);
        let start = bench.now;
        while !bench.clients[1].open.is_empty() {
            bench.cycle(rng, Faults::default(), 100, 100, 100);
        }
        let waited = bench.now - start;
        assert!((TIMEOUT..TIMEOUT + 50).contains(&waited), "{waited}");
        // The host checks that the tag is not used again.
        bench.clients[2].todo = random_reads(rng, 1, 300);
        while bench.clients.iter().any(|client| !client.todo.is_empty() || !client.open.is_empty())
        {
            assert!(bench.now < 1_000_000);
            bench.cycle(rng, Faults::default(), 100, 100, 100);
        }
        bench.check_counts();
        // It arrives after all: silently, and the tag is used again.
        bench.host.outstanding.get_mut(&lost).unwrap()[0].not_before = 0;
        bench.clients[2].todo = random_reads(rng, 2, 300);
        while !bench.idle() {
            assert!(bench.now < 1_000_000);
            bench.cycle(rng, Faults::default(), 100, 100, 100);
        }
        bench.check_counts();
    });
}

/// Soft reset with reads in flight: clients get nothing, the late completions count as unexpected,
/// new reads are right.
#[test]
fn soft_reset() {
    each_seed(0..20, |_, rng| {
        let mut bench = Bench::new(2);
        for client in 0..4 {
            bench.clients[client].todo = random_reads(rng, client as u64, 50);
        }
        for _ in 0..rng.random_range(30..1500) {
            bench.cycle(rng, Faults::default(), 100, 100, 100);
        }
        // `rq` lets no TLP start and finishes the one under way.
        while !bench.collector.beats.is_empty() {
            bench.cycle(rng, Faults::default(), 100, 100, 100);
        }
        // What has arrived is done with.
        for _ in 0..4 {
            bench.cycle(rng, Faults::default(), 0, 0, 0);
        }
        bench.stable.waiting = None;
        bench.nic.inputs.soft_reset = 1;
        bench.cycle(rng, Faults::default(), 0, 0, 0);
        // A header that was offered: `rq` takes none.
        bench.stable.waiting = None;
        for client in &mut bench.clients {
            *client = Client::default();
        }
        let pending: usize = bench.host.outstanding.values().map(VecDeque::len).sum();
        for _ in 0..16 {
            bench.cycle(rng, Faults::default(), 0, 0, 0);
        }
        bench.nic.inputs.soft_reset = 0;
        bench.stable.waiting = None;
        let in_flight = usize::from(!bench.host.sending.is_empty());
        *bench.host.expected.entry(Counter::UnexpectedCompletions).or_default() +=
            (pending + in_flight) as u64;
        if pending + in_flight == 0 {
            bench.host.expected.clear();
        }
        // The device clears its tables for longer than this: not every tag is outstanding then.
        while bench.host.outstanding.len() == 32 {
            bench.cycle(rng, Faults::default(), 100, 0, 100);
        }
        for _ in 0..8 {
            bench.cycle(rng, Faults::default(), 100, 0, 0);
        }
        for client in 0..4 {
            bench.clients[client].todo = random_reads(rng, 10 + client as u64, 50);
        }
        while !bench.idle() {
            assert!(bench.now < 1_000_000);
            bench.cycle(rng, Faults::default(), 100, 100, 100);
        }
        for _ in 0..10 {
            bench.cycle(rng, Faults::default(), 100, 0, 100);
        }
        bench.check_counts();
    });
}
