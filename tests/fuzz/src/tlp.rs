//! TLPs of a device, right and wrong, into the root complex that stands for its host; and accesses of
//! BARs, whose requests it makes.

use core::ops::Range;

use cosim::root_complex::{DevicePins, HostSettings, RootComplex};
use cosim::testbench::host::{BUS_BASE, Host};
use nic_regs::tlp::{Completion, Request, STATUS_OK};

use crate::input::{Input, Mask};

/// Steps of an input at most.
const STEPS: usize = 64;
/// Bytes of host memory.
const MEMORY_BYTES: usize = 0x4000;
/// Cycles in which everything is answered.
const REST_CYCLES: u64 = 200_000;
/// Beats of a TLP of the device at most.
const BEATS_MAX: usize = 160;

/// A root complex, and what it sent.
struct Bench {
    root: RootComplex,
    host: Host,
    now: u64,
    /// Beats of a completion that was sent in part.
    completion: Vec<u64>,
}

/// See the module. What the root complex sends is well-formed, and it comes to rest.
pub(crate) fn tlp(data: &[u8]) {
    let mut input = Input::new(data);
    let settings = settings(&mut input);
    let mut bench = Bench {
        root: RootComplex::new(settings),
        host: Host::new(MEMORY_BYTES),
        now: 0,
        completion: Vec::new(),
    };
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        match input.u8() % 8 {
            0..=2 => {
                let beats = request(&mut input);
                bench.send(&beats, |pins, data, last| {
                    (pins.rq_valid, pins.rq_data, pins.rq_last) = (true, data, last);
                });
            }
            3 => {
                let beats = completion(&mut input);
                bench.send(&beats, |pins, data, last| {
                    (pins.cc_valid, pins.cc_data, pins.cc_last) = (true, data, last);
                });
            }
            4 => {
                let (at, length) = access(&mut input, 64);
                let bar = input.u8() % 6;
                bench.root.bar_write(bar, at, &vec![input.u8(); length]);
            }
            5 => {
                let (at, length) = access(&mut input, 8);
                bench.root.bar_read(input.u8() % 6, at, length);
            }
            6 => {
                let cq_ready = input.flag();
                let pins = DevicePins { cq_ready, ..DevicePins::default() };
                for _ in 0..input.u8() {
                    bench.cycle(&pins);
                }
            }
            _ => {
                let _ = bench.root.bar_response();
            }
        }
    }
    // What the device has begun, it ends.
    let idle = DevicePins { cq_ready: true, ..DevicePins::default() };
    let last = DevicePins { rq_valid: true, rq_last: true, ..idle };
    while !bench.cycle(&last) {}
    let end = bench.now + REST_CYCLES;
    while bench.root.busy() {
        bench.cycle(&idle);
        assert!(bench.now < end, "no rest after {REST_CYCLES} cycles");
    }
    assert!(bench.completion.is_empty(), "a completion has no end");
}

fn settings(input: &mut Input<'_>) -> HostSettings {
    let mut mask = Mask::of(input);
    HostSettings {
        seed: input.u8().into(),
        latency: if mask.next() { input.u8().into() } else { 0 },
        jitter: if mask.next() { input.u8().into() } else { 0 },
        split: mask.next(),
        reorder: mask.next(),
        stall: if mask.next() { 0.5 } else { 0.0 },
        missing: if mask.next() { 0.2 } else { 0.0 },
        late: if mask.next() { 0.2 } else { 0.0 },
        abort: if mask.next() { 0.2 } else { 0.0 },
        poison: if mask.next() { 0.2 } else { 0.0 },
        ..HostSettings::default()
    }
}

/// An access of a BAR that does not cross a multiple of 64 bytes.
fn access(input: &mut Input<'_>, most: usize) -> (u64, usize) {
    let at = if input.flag() { u64::from(input.u16()) } else { u64::from(input.u32()) };
    let space = 64 - usize::try_from(at % 64).expect("small");
    (at, (1 + input.below(most)).min(space))
}

/// Changes a few bits of a header's beats, or leaves them.
fn mutilated(input: &mut Input<'_>, mut beats: Vec<u64>) -> Vec<u64> {
    match input.u8() {
        240..=244 => {
            let at = input.below(beats.len());
            beats[at] ^= 1 << (input.u8() % 64);
        }
        245 => beats = (0..input.below(8)).map(|_| input.u64()).collect(),
        246 => beats.truncate(input.below(beats.len())),
        247 => beats.extend((0..input.below(8)).map(|_| input.u64())),
        _ => {}
    }
    beats.truncate(BEATS_MAX);
    if beats.is_empty() { vec![input.u64()] } else { beats }
}

fn request(input: &mut Input<'_>) -> Vec<u64> {
    let mut mask = Mask::of(input);
    let write = mask.next();
    let mut request = Request {
        write,
        address: BUS_BASE + 4 * u64::from(input.u16()),
        length_dw: 1 + u16::from(input.u8() % 128),
        requester: 0,
        tag: input.u8() % 64,
        first_be: 0xf,
        last_be: 0xf,
    };
    if request.length_dw == 1 {
        request.last_be = 0;
    }
    if mask.next() {
        (request.first_be, request.last_be) = (input.u8() & 0xf, input.u8() & 0xf);
    }
    if mask.next() {
        request.address = input.u64() & !3;
    }
    if mask.next() {
        request.length_dw = 1 + input.u16() % 1_024;
    }
    if mask.next() {
        (request.requester, request.tag) = (input.u16(), input.u8());
    }
    let mut beats = request.to_beats().to_vec();
    let again = Request::from_beats([beats[0], beats[1]]);
    assert_eq!(again, request, "what is encoded is decoded as it was");
    if write {
        let filler = input.u64();
        beats.extend((0..request.data_beats()).map(|_| filler));
    }
    mutilated(input, beats)
}

fn completion(input: &mut Input<'_>) -> Vec<u64> {
    let data = input.flag();
    let completion = Completion {
        data,
        poisoned: input.u8() == 255,
        length_dw: if data { 1 + u16::from(input.u8() % 3) } else { 0 },
        completer: 1,
        status: if input.u8() > 200 { input.u8() & 7 } else { STATUS_OK },
        byte_count: 1 + u16::from(input.u8() % 8),
        requester: 0,
        tag: input.u8(),
        lower_address: input.u8() & 0x7f,
    };
    let mut beats = completion.to_beats().to_vec();
    let again = Completion::from_beats([beats[0], beats[1]]);
    assert_eq!(again, completion, "what is encoded is decoded as it was");
    if data {
        beats.extend((0..1 + input.below(2)).map(|_| input.u64()));
    }
    mutilated(input, beats)
}

/// The bytes of a completion that was sent, in its data beats.
fn lanes(header: &Completion) -> Range<usize> {
    let first = usize::from(header.lower_address & 7);
    let in_dword = usize::from(header.lower_address & 3);
    let room = 4 * usize::from(header.length_dw) - in_dword;
    first..first + room.min(usize::from(header.byte_count))
}

impl Bench {
    /// Runs a cycle. Whether the root complex took a request's beat, if there was one.
    fn cycle(&mut self, pins: &DevicePins) -> bool {
        let driven = self.root.drive(self.now, &mut self.host);
        self.root.sample(self.now, pins, &mut self.host);
        self.now += 1;
        if driven.rc_valid {
            self.completion.push(driven.rc_data);
            if driven.rc_last {
                let beats = core::mem::take(&mut self.completion);
                check(&beats);
            }
        }
        driven.rq_ready
    }

    /// Sends a TLP, each beat until it is taken.
    fn send(&mut self, beats: &[u64], set: impl Fn(&mut DevicePins, u64, bool)) {
        for (at, &data) in beats.iter().enumerate() {
            let mut pins = DevicePins { cq_ready: true, ..DevicePins::default() };
            set(&mut pins, data, at + 1 == beats.len());
            while !self.cycle(&pins) && pins.rq_valid {}
        }
    }
}

fn check(beats: &[u64]) {
    assert!(beats.len() >= 2, "a completion of {} beats", beats.len());
    let header = Completion::from_beats([beats[0], beats[1]]);
    let is_answer = header.data == (header.status == STATUS_OK);
    assert!(is_answer, "data or an error: {header:?}");
    let expected = if header.data { lanes(&header).end.div_ceil(8) } else { 0 };
    assert_eq!(beats.len() - 2, expected, "{header:?}");
}
