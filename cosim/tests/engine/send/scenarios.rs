//! What the send engine is put through: random messages, and cases of their own.

use super::{Bench, Event};
use crate::host::Pace;
use crate::post::Plan;
use cosim::random::{Random, each_seed};
use cosim::verilated::blocks::send::Model;
use nic_regs::desc::status;
use nic_regs::tpt::Handle;
use nic_regs::vi::{State, StopReason};
use std::collections::BTreeMap;

/// Random messages for so many cycles.
fn drive(model: Model, seed: u64, cycles: u64) -> Bench {
    let mut choice = Random::new(seed ^ 0xabcd);
    let fast = choice.chance(0.3);
    let pace = Pace {
        ready: if fast { 1.0 } else { 0.3 + 0.6 * choice.below(100) as f64 / 100.0 },
        call: if fast { 1 } else { 1 + choice.below(12) },
        read: if fast { 1 } else { 1 + choice.below(200) },
    };
    let vis = 1 + choice.below(6) as usize;
    let mut bench = Bench::around(model, seed, vis, pace);
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
    for _ in 0..cycles {
        let random = &mut bench.host.random;
        let posts = if busy { 0.01 } else { 0.001 };
        if random.chance(if pushes { posts / 10.0 } else { posts }) {
            let at = random.below(bench.vis.len() as u64) as usize;
            let number = bench.vis[at].0;
            let burst = bench.host.random.below(5);
            for _ in 0..=burst {
                bench.post(number, plan);
            }
        }
        let random = &mut bench.host.random;
        if random.chance(0.0005) {
            let at = random.below(bench.vis.len() as u64) as usize;
            let pending = 1 + random.below(7) as u8;
            let vi = &mut bench.vis[at].1;
            // What is already pending, or on its way, stays.
            if vi.pending == 0 && vi.sent_pending == 0 && !vi.stopped {
                vi.pending = pending;
                vi.refuse_reason = bench.host.random.below(10) as u8;
                let number = bench.vis[at].0;
                bench.schedule(number);
            }
        }
        bench.fill_line(if pushes { 0.2 } else { 0.004 });
        bench.stop_pushed(stops);
        if reads > 0.0 && bench.host.random.chance(0.0008) {
            let at = bench.host.random.below(bench.vis.len() as u64) as usize;
            bench.add_answer(at);
        }
        let random = &mut bench.host.random;
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
        if bench.pause && bench.model.outputs.fence_paused != 0 && bench.host.random.chance(0.0003)
        {
            bench.revoke();
        }
        bench.cycle();
        if bench.pause && bench.model.outputs.fence_paused != 0 {
            assert_eq!(bench.model.outputs.vi_valid, 0);
        }
    }
    bench
}

/// What happened how often. The engine is reset in the midst of other messages before.
fn run(seed: u64) -> BTreeMap<String, u64> {
    let before = Random::new(seed ^ 0x4321).below(8_000);
    let used = drive(Model::default(), !seed, before).model;
    let mut bench = drive(used, seed, 60_000);
    (bench.pause, bench.down) = (false, None);
    bench.settle();
    assert_eq!(bench.counted_messages, bench.message_frames);
    assert_eq!(bench.counted_refused, bench.refused, "RdmaRefused");
    for (number, vi) in &bench.vis {
        assert!(vi.stopped || vi.expected.is_empty(), "VI {number}: {:?}", vi.expected);
        assert!(vi.ending.is_empty() && vi.waiting.is_empty(), "VI {number}: {:?}", vi.ending);
    }
    println!("seed {seed}: {} frames, {} events", bench.frames, bench.events);
    bench.seen
}

#[test]
fn random_messages() {
    let mut seen = BTreeMap::new();
    let mut add = |seed| {
        for (kind, count) in run(seed) {
            *seen.entry(kind).or_insert(0) += count;
        }
    };
    each_seed(0..60, &mut add);
    // A segment is asked for before it is there, and the one before it is.
    add(106);
    println!("{seen:#?}");
    for kind in
        ["taken as posted", "push out of reach", "push returns", "push of a VI that stopped"]
    {
        assert!(seen.get(kind) > Some(&5), "{kind}: {seen:?}");
    }
    assert!(seen["push goes"] > 1_000 && seen["push as a token"] > 200, "{seen:?}");
}

/// A doorbell that finds its VI and the engine idle presents what GET would: the descriptor is read at once.
#[test]
fn a_quiet_vi_needs_no_get() {
    let mut bench = Bench::alone(0);
    for presented in [false, true, true] {
        bench.cycle();
        let number = bench.vis[0].0;
        bench.send(8);
        if presented {
            bench.present(number);
        }
        bench.until_done();
        let cycles = bench.marks.desc_request - bench.marks.taken;
        assert_eq!(cycles, if presented { 3 } else { 5 });
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
        self.send_from(self.vis[0].0, length);
    }

    fn send_from(&mut self, number: u16, length: u32) {
        let at = self.vis.iter().position(|(other, _)| *other == number).expect("a known VI");
        self.vis[at].1.queue.post_one(&mut self.host, length);
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

/// A descriptor at the place of a read that is answered is read anew.
#[test]
fn a_read_leaves_nothing_behind() {
    let mut bench = Bench::alone(0);
    let number = bench.vis[0].0;
    bench.vis[0].1.allows = 3;
    for length in [8, 300] {
        bench.vis[0].1.queue.rewind(&mut bench.host);
        bench.vis[0].1.queue.post_read(&mut bench.host, length);
        bench.expect(number);
        bench.schedule(number);
        while !bench.finished() {
            bench.cycle();
        }
        bench.vis[0].1.queue.rewind(&mut bench.host);
        bench.send(2 * length);
        bench.until_done();
    }
    assert_eq!((bench.seen["reading"], bench.seen["Complete"]), (2, 2));
}

/// Cycles of one message, and of the parts of its way.
#[test]
fn cost() {
    for (length, most) in [(8, 45), (4096, 560), (0x40000, 64 * 530)] {
        let mut bench = Bench::alone(0);
        bench.send(length);
        let cycles = bench.until_done();
        println!("send {length} bytes: {cycles} cycles, {:?}", bench.marks);
        assert_eq!(bench.desc_read.requests, 1, "its descriptor is read once");
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

/// A VI that somebody stops while what is done of its message is saved does not hold up another one.
#[test]
fn a_vi_that_is_stopped_leaves_the_engine() {
    for wait in 0..6 {
        let mut bench = Bench::new(1, 2, Pace { ready: 1.0, call: 3, read: 1 });
        let numbers = [bench.vis[0].0, bench.vis[1].0];
        for number in numbers {
            let vi = bench.at(number);
            (vi.level, vi.max_transfer) = (2, 0x40000);
        }
        bench.send_from(numbers[0], 5_000);
        let saves =
            |bench: &Bench| (bench.model.outputs.vi_valid, bench.model.outputs.vi_op) == (1, 1);
        while !saves(&bench) {
            bench.cycle();
        }
        for _ in 0..wait {
            bench.cycle();
        }
        let vi = bench.at(numbers[0]);
        (vi.state, vi.cut_off) = (State::Error, true);
        bench.send_from(numbers[1], 8);
        for _ in 0..1_000 {
            bench.cycle();
        }
        assert!(bench.at(numbers[1]).expected.is_empty(), "stopped after {wait} cycles");
    }
}

/// A VI that somebody stops while its payload comes: before the pop or after it, nothing of it
/// goes out and nothing is completed.
#[test]
fn a_vi_is_stopped_in_flight() {
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
        // The engine is not stuck: what is pending still goes out.
        let number = bench.vis[0].0;
        bench.vis[0].1.pending = 2;
        bench.schedule(number);
        for _ in 0..100 {
            bench.cycle();
        }
        assert_eq!((bench.vis[0].1.pending, bench.frames), (0, 1));
    }
}

/// A send on Reception that waits for its ViAck.
fn waiting_for_its_ack() -> Bench {
    let mut bench = Bench::alone(50);
    bench.vis[0].1.level = 4;
    bench.send(300);
    while bench.vis[0].1.ack_in.is_none() {
        bench.cycle();
    }
    bench
}

/// An acknowledged send ends though its VI has stopped, and a fence waits for that.
#[test]
fn an_acknowledged_send_ends_in_error() {
    let mut bench = waiting_for_its_ack();
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

/// An acknowledged send whose descriptor cannot be reached any more when the ViAck comes: its VI stops, and
/// nothing is written.
#[test]
fn an_acknowledged_send_out_of_reach() {
    let mut bench = waiting_for_its_ack();
    let vi = &mut bench.vis[0].1;
    vi.queue.hide(&mut bench.host);
    let stop = (StopReason::Descriptor as u8, status::PROTECTION_ERROR);
    vi.waiting = [Event::Stop { reason: stop.0, status: stop.1 }].into();
    while !bench.vis[0].1.stopped {
        bench.cycle();
        assert!(bench.now < 3_000, "{:?}", bench.vis[0].1.ending);
    }
    for _ in 0..100 {
        bench.cycle();
    }
    assert_eq!(bench.marks.status, 0);
    assert!(!bench.seen.contains_key("Complete"));
}

/// A descriptor that is bad, read while the payload of the one before comes, which cannot be read: that stops
/// the VI, and nothing is done with the bad one, whenever it is found to be so.
#[test]
fn a_bad_descriptor_behind_unreadable_payload() {
    for latency in (0..200).step_by(2) {
        let mut bench = Bench::alone(20);
        bench.read.latency = latency;
        let (number, vi) = &mut bench.vis[0];
        let number = *number;
        let region = bench.host.region(vi.queue.data_region);
        bench.host.memory.poison.push((region.bus_base, 128));
        vi.queue.post_one(&mut bench.host, 64);
        vi.queue.post_one(&mut bench.host, 64);
        // A reserved bit of Control.
        bench.host.memory.put(vi.queue.posted[1].bus + 14, &0x10_u16.to_le_bytes());
        bench.expect(number);
        bench.schedule(number);
        for at in 0..1_000 {
            bench.pause = at > 900;
            bench.cycle();
        }
        assert!(bench.vis[0].1.stopped && bench.vis[0].1.ending.is_empty());
        let ends = (bench.seen["Complete"], bench.model.outputs.fence_paused);
        assert_eq!(ends, (1, 1), "a payload of {latency} cycles");
    }
}

/// VIs whose peer has no pool space, and one whose peer has: a descriptor is not read again and again,
/// and the one is not held up.
#[test]
fn peers_without_room_cost_no_reads() {
    let mut bench = Bench::new(3, 6, Pace { ready: 1.0, call: 1, read: 1 });
    bench.desc_read.latency = 125;
    for at in 0..6 {
        let (number, vi) = &mut bench.vis[at];
        (vi.level, vi.max_transfer, vi.peer) = (2, 0x40000, u8::from(at == 0) + 7);
        vi.queue.post_one(&mut bench.host, 64);
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
    println!("20 messages of 64 bytes beside five VIs without space: {cycles} cycles");
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
    assert_eq!(bench.counted_fetches, 20);
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

/// Descriptors side by side are read ahead, four at a time, but for the last posted
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
    let old = u64::from_le_bytes(bench.host.memory.read(at, 8).try_into().unwrap());
    bench.host.memory.put(at, &(old + 0x1008).to_le_bytes());
}

/// What lies behind a posted descriptor is not used as it was before it was posted.
#[test]
fn not_ahead_of_the_count() {
    let mut bench = in_a_row(4, 1.0);
    let number = bench.vis[0].0;
    let queue = &mut bench.vis[0].1.queue;
    queue.post_one(&mut bench.host, 64);
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
    let region = bench.host.region(source);
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
