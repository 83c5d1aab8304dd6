//! The host's end of the TLP stream: turns BAR accesses into requests, serves host memory, and
//! checks what the device sends.
//!
//! Every delay and choice comes from [`HostSettings`] and its seed. The checker is strict: a TLP
//! that breaks the rules of `nic_regs::tlp` or of the contract's section 9 is kept in
//! [`RootComplex::violations`].

use crate::random::Random;
use nic_model::device::HostBus;
use nic_regs::tlp::{self, Completion, Request};
use std::collections::VecDeque;

/// How the simulated host behaves. The default is an ideal host: no delay, whole completions in
/// order.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Seed of all choices below.
    pub seed: u64,
    /// Cycles from the last beat of a read request to the first beat of its completion.
    pub latency: u64,
    /// Up to this many cycles are added at random to each read.
    pub jitter: u64,
    /// Completions are cut at random 64-byte boundaries.
    pub split: bool,
    /// Reads are answered in any order, and pieces of different reads interleave.
    pub reorder: bool,
    /// Fraction of cycles in which the host does not take a request beat.
    pub stall: f64,
    /// Fraction of cycles in which the host begins to take none for a while, as without credits.
    pub pause: f64,
    /// Cycles of that at most.
    pub pause_cycles: u64,
    /// Fraction of reads that are never answered.
    pub missing: f64,
    /// Fraction of reads that are answered `late_by` cycles later.
    pub late: f64,
    /// See `late`.
    pub late_by: u64,
    /// Fraction of reads that are answered with completer abort.
    pub abort: f64,
    /// Fraction of reads whose (first) completion is poisoned.
    pub poison: f64,
    /// Largest write that the device may send, in bytes.
    pub max_payload: usize,
    /// Largest read that the device may ask for, in bytes.
    pub max_read: usize,
}

impl HostSettings {
    /// A slow host, which splits and reorders completions, stalls, and pauses.
    #[must_use]
    pub fn slow(seed: u64) -> Self {
        Self {
            seed,
            latency: seed % 7 * 40,
            jitter: seed % 5 * 30,
            split: true,
            reorder: true,
            stall: 0.2,
            pause: 0.001,
            ..Self::default()
        }
    }
}

impl Default for HostSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            latency: 0,
            jitter: 0,
            split: false,
            reorder: false,
            stall: 0.0,
            pause: 0.0,
            pause_cycles: 600,
            missing: 0.0,
            late: 0.0,
            late_by: 10_000,
            abort: 0.0,
            poison: 0.0,
            max_payload: 512,
            max_read: 512,
        }
    }
}

/// What the host drives in one cycle.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostPins {
    /// A request beat is offered.
    pub cq_valid: bool,
    /// Its data.
    pub cq_data: u64,
    /// It is the TLP's last.
    pub cq_last: bool,
    /// BAR of the request, with its first beat.
    pub cq_bar: u8,
    /// The host takes a request beat of the device.
    pub rq_ready: bool,
    /// A completion beat (never held off).
    pub rc_valid: bool,
    /// Its data.
    pub rc_data: u64,
    /// It is the TLP's last.
    pub rc_last: bool,
}

/// What the device drives in the same cycle.
#[derive(Clone, Copy, Debug, Default)]
pub struct DevicePins {
    /// The device takes the request beat.
    pub cq_ready: bool,
    /// A completion beat of the device (always taken).
    pub cc_valid: bool,
    /// Its data.
    pub cc_data: u64,
    /// It is the TLP's last.
    pub cc_last: bool,
    /// A request beat of the device.
    pub rq_valid: bool,
    /// Its data.
    pub rq_data: u64,
    /// It is the TLP's last.
    pub rq_last: bool,
}

/// Beats and TLPs since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTraffic {
    /// Beats from the device.
    pub rq_beats: u64,
    /// Beats of completions to the device.
    pub rc_beats: u64,
    /// Memory write TLPs.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Memory read TLPs.
    pub reads: u64,
    /// Bytes asked for.
    pub read_bytes: u64,
}

#[derive(Debug)]
struct PendingRead {
    ready_at: u64,
    tag: u8,
    requester: u16,
    /// First and one-past-last byte still to be answered.
    next: u64,
    end: u64,
    abort: bool,
    poison: bool,
}

/// The host's end of one device.
#[derive(Debug)]
pub struct RootComplex {
    settings: HostSettings,
    random: Random,
    /// Request beats for the device: data, last, BAR.
    cq: VecDeque<(u64, bool, u8)>,
    /// The device's answer as it arrives.
    cc: Vec<u64>,
    response: Option<u64>,
    bar_read_lane: usize,
    /// The device's request as it arrives.
    rq: Vec<u64>,
    rq_ready: bool,
    /// The host takes nothing before this cycle.
    paused_until: u64,
    pending: Vec<PendingRead>,
    rc: VecDeque<(u64, bool)>,
    traffic: HostTraffic,
    violations: Vec<String>,
}

impl RootComplex {
    /// A host with these settings.
    #[must_use]
    pub fn new(settings: HostSettings) -> Self {
        Self {
            random: Random::new(settings.seed),
            settings,
            cq: VecDeque::new(),
            cc: Vec::new(),
            response: None,
            bar_read_lane: 0,
            rq: Vec::new(),
            rq_ready: true,
            paused_until: 0,
            pending: Vec::new(),
            rc: VecDeque::new(),
            traffic: HostTraffic::default(),
            violations: Vec::new(),
        }
    }

    /// What the device did against the rules, in order.
    #[must_use]
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// What went over the host port.
    #[must_use]
    pub const fn traffic(&self) -> HostTraffic {
        self.traffic
    }

    /// Whether a TLP is under way in either direction or a read is unanswered.
    #[must_use]
    pub fn busy(&self) -> bool {
        !(self.cq.is_empty() && self.rq.is_empty() && self.pending.is_empty() && self.rc.is_empty())
    }

    /// Queues a posted write to a BAR.
    ///
    /// # Panics
    /// If `data` is empty or longer than 64 bytes.
    pub fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) {
        assert!(matches!(data.len(), 1..=64), "a BAR write of {} bytes", data.len());
        let header = request(true, offset, data.len(), 0);
        let beats = header.to_beats();
        let lane = usize::try_from(offset & 7).expect("below 8");
        let mut lanes = vec![0_u8; 8 * header.data_beats()];
        // Data starts in the lane of the first dword's aligned word.
        lanes[lane..lane + data.len()].copy_from_slice(data);
        self.cq.push_back((beats[0], false, bar));
        self.cq.push_back((beats[1], false, bar));
        let count = header.data_beats();
        for (i, chunk) in lanes.chunks_exact(8).enumerate() {
            let beat = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
            self.cq.push_back((beat, i + 1 == count, bar));
        }
    }

    /// Queues a read of 1 to 8 bytes from a BAR.
    pub fn bar_read(&mut self, bar: u8, offset: u64, length: usize) {
        let beats = request(false, offset, length, 0).to_beats();
        self.response = None;
        self.bar_read_lane = usize::try_from(offset & 7).expect("below 8");
        self.cq.push_back((beats[0], false, bar));
        self.cq.push_back((beats[1], true, bar));
    }

    /// The answer to the last BAR read, once.
    pub fn bar_response(&mut self) -> Option<u64> {
        self.response.take()
    }

    /// What the host drives in cycle `now`.
    pub fn drive(&mut self, now: u64, host: &mut dyn HostBus) -> HostPins {
        if self.rc.is_empty() && !self.pending.is_empty() {
            self.complete(now, host);
        }
        let HostSettings { stall, pause, pause_cycles, .. } = self.settings;
        if pause > 0.0 && now >= self.paused_until && self.random.chance(pause) {
            self.paused_until = now + self.random.below(pause_cycles);
        }
        self.rq_ready = now >= self.paused_until && (stall == 0.0 || !self.random.chance(stall));
        let mut pins = HostPins { rq_ready: self.rq_ready, ..HostPins::default() };
        if let Some(&(data, last, bar)) = self.cq.front() {
            (pins.cq_valid, pins.cq_data, pins.cq_last, pins.cq_bar) = (true, data, last, bar);
        }
        if let Some((data, last)) = self.rc.pop_front() {
            (pins.rc_valid, pins.rc_data, pins.rc_last) = (true, data, last);
            self.traffic.rc_beats += 1;
        }
        pins
    }

    /// What the device drove in cycle `now`.
    pub fn sample(&mut self, now: u64, pins: &DevicePins, host: &mut dyn HostBus) {
        if pins.cq_ready && !self.cq.is_empty() {
            self.cq.pop_front();
        }
        if pins.cc_valid {
            self.cc.push(pins.cc_data);
            if pins.cc_last {
                self.answer();
            }
        }
        if pins.rq_valid && self.rq_ready {
            self.traffic.rq_beats += 1;
            self.rq.push(pins.rq_data);
            if pins.rq_last {
                let beats = std::mem::take(&mut self.rq);
                self.request(now, &beats, host);
                self.rq = beats;
                self.rq.clear();
            }
        }
    }

    fn violation(&mut self, what: String) {
        if self.violations.len() < 100 {
            self.violations.push(what);
        }
    }

    fn answer(&mut self) {
        let beats = std::mem::take(&mut self.cc);
        if beats.len() < 2 {
            self.violation(format!("completion of {} beats", beats.len()));
            return;
        }
        let header = Completion::from_beats([beats[0], beats[1]]);
        let mut bytes = [0_u8; 16];
        for (slot, beat) in bytes.chunks_exact_mut(8).zip(&beats[2..]) {
            slot.copy_from_slice(&beat.to_le_bytes());
        }
        let value = if header.data && header.status == tlp::STATUS_OK {
            let at = self.bar_read_lane;
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
        } else {
            u64::MAX
        };
        self.response = Some(value);
    }

    fn request(&mut self, now: u64, beats: &[u64], host: &mut dyn HostBus) {
        if beats.len() < 2 {
            self.violation(format!("request of {} beats", beats.len()));
            return;
        }
        let kind = beats[0].to_le_bytes()[3];
        if kind != tlp::MEM_READ && kind != tlp::MEM_WRITE {
            self.violation(format!("request of type {kind:#x}"));
            return;
        }
        let header = Request::from_beats([beats[0], beats[1]]);
        if (u64::MAX - header.address) / 4 + 1 < u64::from(header.length_dw) {
            self.violation(format!("{header:x?} ends behind the last address"));
            return;
        }
        let (start, end) = byte_range(&header);
        if start >= end {
            self.violation(format!("{header:x?} is empty"));
            return;
        }
        let limit =
            if header.write { self.settings.max_payload } else { self.settings.max_read } as u64;
        if start / limit != (end - 1) / limit {
            self.violation(format!("{header:x?} crosses a multiple of {limit} bytes"));
        }
        if header.write {
            if beats.len() != 2 + header.data_beats() {
                self.violation(format!("{header:x?} has {} data beats", beats.len() - 2));
                return;
            }
            let lanes: Vec<u8> = beats[2..].iter().flat_map(|beat| beat.to_le_bytes()).collect();
            let base = header.address & !7;
            let from = usize::try_from(start - base).expect("inside the TLP");
            let to = usize::try_from(end - base).expect("inside the TLP");
            self.traffic.writes += 1;
            self.traffic.write_bytes += end - start;
            host.write(start, &lanes[from..to]);
        } else {
            if beats.len() != 2 {
                self.violation(format!("{header:x?} has data"));
            }
            if self.pending.iter().any(|read| read.tag == header.tag) {
                self.violation(format!("tag {} is used twice", header.tag));
            }
            self.traffic.reads += 1;
            self.traffic.read_bytes += end - start;
            self.read(now, &header, start, end);
        }
    }

    fn read(&mut self, now: u64, header: &Request, start: u64, end: u64) {
        if self.settings.missing > 0.0 && self.random.chance(self.settings.missing) {
            return;
        }
        let mut ready_at = now + self.settings.latency;
        if self.settings.jitter > 0 {
            ready_at += self.random.below(self.settings.jitter + 1);
        }
        if self.settings.late > 0.0 && self.random.chance(self.settings.late) {
            ready_at += self.settings.late_by;
        }
        let abort = self.settings.abort > 0.0 && self.random.chance(self.settings.abort);
        let poison = self.settings.poison > 0.0 && self.random.chance(self.settings.poison);
        self.pending.push(PendingRead {
            ready_at,
            tag: header.tag,
            requester: header.requester,
            next: start,
            end,
            abort,
            poison,
        });
    }

    /// Picks one pending read that is due and puts its next completion on the way.
    fn complete(&mut self, now: u64, host: &mut dyn HostBus) {
        let chosen = if self.settings.reorder {
            let due = self.pending.iter().filter(|read| read.ready_at <= now).count() as u64;
            if due == 0 {
                return;
            }
            let nth = usize::try_from(self.random.below(due)).expect("an index");
            self.pending.iter().enumerate().filter(|(_, r)| r.ready_at <= now).nth(nth).map(|x| x.0)
        } else {
            // In order, but one that is late does not hold up the others.
            self.pending.iter().position(|read| read.ready_at <= now)
        };
        let Some(index) = chosen else { return };
        let read = &mut self.pending[index];
        let (from, remaining) = (read.next, read.end - read.next);
        let mut to = read.end;
        if self.settings.split {
            let pieces = (remaining - 1 + from % 64) / 64;
            let cut = self.random.below(pieces + 1);
            if cut > 0 {
                to = (from / 64 + cut) * 64;
            }
        }
        let mut data = vec![0; usize::try_from(to - from).expect("a read is short")];
        let failed = read.abort || host.read(from, &mut data).is_err();
        let first_dw = from & !3;
        let mut header = Completion {
            data: !failed,
            poisoned: read.poison,
            length_dw: u16::try_from((to - first_dw).div_ceil(4)).expect("a read is short"),
            completer: 0,
            status: tlp::STATUS_OK,
            byte_count: u16::try_from(remaining).expect("a read is short"),
            requester: read.requester,
            tag: read.tag,
            lower_address: u8::try_from(from & 0x7f).expect("masked"),
        };
        if failed {
            header.status = if read.abort { tlp::STATUS_ABORT } else { tlp::STATUS_UNSUPPORTED };
            header.length_dw = 0;
        }
        read.next = to;
        read.poison = false;
        if failed || read.next == read.end {
            self.pending.remove(index);
        }
        let beats = header.to_beats();
        self.rc.push_back((beats[0], false));
        self.rc.push_back((beats[1], failed));
        if !failed {
            self.push_data(from, &data);
        }
    }

    fn push_data(&mut self, from: u64, data: &[u8]) {
        let lane = usize::try_from(from & 7).expect("below 8");
        // A completion's beats begin with the word that holds its first dword.
        let mut lanes = vec![0; (lane + data.len()).div_ceil(8) * 8];
        lanes[lane..lane + data.len()].copy_from_slice(data);
        let count = lanes.len() / 8;
        for (i, chunk) in lanes.chunks_exact(8).enumerate() {
            let beat = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
            self.rc.push_back((beat, i + 1 == count));
        }
    }
}

/// The header of a request for `length` bytes at `address`, which touch at most 17 dwords.
fn request(write: bool, address: u64, length: usize, tag: u8) -> Request {
    let end = address + length as u64;
    let first_dw = address & !3;
    let length_dw = (end - first_dw).div_ceil(4);
    let head = 0xf << (address & 3) & 0xf;
    let tail = 0xf >> ((4 - (end & 3)) & 3);
    let one = length_dw == 1;
    Request {
        write,
        address: first_dw,
        length_dw: u16::try_from(length_dw).expect("a short access"),
        requester: 0,
        tag,
        first_be: if one { head & tail } else { head },
        last_be: if one { 0 } else { tail },
    }
}

/// The bytes that a request touches, by its byte enables: first, and one past the last. What is past the last
/// address of all has none: the last one stands for it, where no host has memory.
pub(crate) fn byte_range(header: &Request) -> (u64, u64) {
    let start = header.address.saturating_add(header.first_be.trailing_zeros().min(4).into());
    let last_dw = header.address.wrapping_add(4 * (u64::from(header.length_dw) - 1));
    let enables = if header.length_dw == 1 { header.first_be } else { header.last_be };
    (start, last_dw.saturating_add(8 - u64::from((enables & 0xf).leading_zeros())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is kept as a violation like any other.
    #[test]
    fn a_request_without_bytes_is_no_panic() {
        use crate::testbench::host::{BUS_BASE, Host};
        let (mut root, mut host) = (RootComplex::new(HostSettings::default()), Host::new(4096));
        for write in [true, false] {
            let empty = Request { first_be: 0, ..request(write, BUS_BASE, 4, 0) };
            let beats = [empty.to_beats().as_slice(), if write { &[7] } else { &[] }].concat();
            for (at, &data) in beats.iter().enumerate() {
                let last = at + 1 == beats.len();
                let pins = DevicePins {
                    rq_valid: true,
                    rq_data: data,
                    rq_last: last,
                    ..DevicePins::default()
                };
                root.sample(0, &pins, &mut host);
            }
        }
        assert_eq!(root.violations().len(), 2, "{:?}", root.violations());
        assert!(!root.busy() && root.traffic().writes == 0 && host.memory == [0; 4096]);
    }

    /// No host has memory there, but what a device sends may be anything.
    #[test]
    fn requests_at_the_end_of_the_address_space_are_no_panic() {
        use crate::testbench::host::Host;
        let (mut root, mut host) = (RootComplex::new(HostSettings::default()), Host::new(4096));
        let last = request(false, u64::MAX - 7, 4, 1);
        let whole = Request { address: u64::MAX - 3, ..last };
        for request in [last, whole, Request { length_dw: 2, last_be: 0xf, ..whole }] {
            for (at, rq_data) in request.to_beats().into_iter().enumerate() {
                let pins = DevicePins {
                    rq_valid: true,
                    rq_data,
                    rq_last: at == 1,
                    ..DevicePins::default()
                };
                root.drive(0, &mut host);
                root.sample(0, &pins, &mut host);
            }
        }
        let [violation] = root.violations() else { panic!("{:?}", root.violations()) };
        assert!(violation.ends_with("ends behind the last address"), "{violation}");
    }

    #[test]
    fn byte_enables_round_trip() {
        for address in 0x100..0x110 {
            for length in 1..=64 {
                let header = request(true, address, length, 0);
                let header = Request::from_beats(header.to_beats());
                assert_eq!(byte_range(&header), (address, address + length as u64));
            }
        }
    }
}
