//! What the receive engine is put through: random frames, and cases of their own.

use super::{Bench, Pace};
use crate::host::Host;
use crate::post::{Plan, Queue};
use cosim::random::{Random, each_seed};
use cosim::verilated::blocks::recv::Model;
use nic_regs::counter::Counter;
use nic_regs::desc::{self, control};
use nic_regs::vi::{State, StopReason};
use std::collections::BTreeMap;

impl Pace {
    /// Any, or the fastest.
    fn any(choice: &mut Random, fast: bool) -> Self {
        Self {
            ready: if fast { 1.0 } else { 0.3 + 0.6 * choice.below(100) as f64 / 100.0 },
            call: if fast { 1 } else { 1 + choice.below(12) },
            read: if fast { 1 } else { 1 + choice.below(200) },
        }
    }
}

/// Random frames, until all of them are done or so many cycles are over.
fn drive(model: Model, seed: u64, most: u64) -> Bench {
    let mut choice = Random::new(seed ^ 0x1234);
    let fast = choice.chance(0.3);
    let pace = Pace::any(&mut choice, fast);
    // Mostly a few; sometimes more than the engine can cache descriptors of.
    let few = choice.chance(0.85);
    let vis = if few { 1 + choice.below(6) } else { 17 + choice.below(8) } as usize;
    let mut bench = Bench::around(model, seed, vis, pace);
    bench.reread_faults = if choice.chance(0.3) { 0.5 } else { 0.0 };
    let faults = if choice.chance(0.5) { 0.15 } else { 0.0 };
    let writes = if choice.chance(0.7) { 0.5 } else { 0.0 };
    let long = if choice.chance(0.3) { 0.2 } else { 0.02 };
    let generous = if choice.chance(0.5) { 1.0 } else { 0.3 };
    let reads = if choice.chance(0.7) { 0.5 } else { 0.0 };
    let (longest, immediate) = (0x40200, 0.1);
    let plan = Plan { faults, long: generous, longest, immediate, rdma: 0.0, reads: 0.0 };
    let asks = Plan { faults: faults / 4.0, long: 0.1, rdma: 0.97, reads: 1.0, ..plan };
    let close = if choice.chance(0.7) { 0.8 } else { 0.0 };
    bench.vis.values_mut().for_each(|vi| vi.queue.close = close);
    let numbers: Vec<u16> = bench.vis.keys().copied().collect();
    let mut messages = 40 + choice.below(60);
    let mut cycles = 0_u64;
    while cycles < most
        && (messages > 0
            || !bench.frames.is_empty()
            || bench.vis.values().any(|vi| !vi.left.is_empty()))
    {
        cycles += 1;
        assert!(cycles < 4_000_000, "stuck: {:?} {:x?}", bench.expected, bench.model.outputs);
        let random = &mut bench.host.random;
        let number = numbers[random.below(numbers.len() as u64) as usize];
        let hungry = bench.vis[&number].queue.count < 3;
        if random.chance(if hungry { 0.05 } else { 0.002 }) {
            let burst = if random.chance(0.3) { 4 } else { 1 };
            let idle = bench.is_done();
            for _ in 0..burst {
                let vi = bench.vis.get_mut(&number).unwrap();
                if matches!(vi.state, State::Connected) && vi.queue.has_space() {
                    // What the frame at the head sees must not change under it.
                    if bench.judged && vi.queue.count == 0 {
                        continue;
                    }
                    if vi.queue.count == 0 && idle {
                        vi.queue.rewind(&mut bench.host);
                    }
                    vi.queue.post(&mut bench.host, plan);
                    bench.posted.push_back(number);
                    bench.copy_posts();
                }
            }
        }
        let answered = bench.vis.get_mut(&number).unwrap();
        if !bench.judged && answered.answering && bench.host.random.chance(0.01) {
            // The send engine has sent its answer.
            answered.answering = false;
        }
        // A stopped VI is connected again behind a fence, with an empty queue.
        let stopped = matches!(bench.vis[&number].state, State::Error);
        if stopped && bench.host.random.chance(0.003) {
            bench.pause = true;
        }
        if stopped
            && !bench.judged
            && bench.pause
            && bench.model.outputs.fence_paused != 0
            && bench.host.random.chance(0.1)
        {
            bench.reconnect(number);
        }
        let random = &mut bench.host.random;
        if bench.frames.len() < 20 && random.chance(0.05) {
            match random.below(20) {
                0 => bench.out_of_band(),
                1 => bench.control(number),
                2..6 if messages > 0 && bench.host.random.chance(reads) => {
                    messages -= 1;
                    match bench.host.random.below(8) {
                        0..3 => bench.request(number, faults / 2.0),
                        // Nobody asked for it, or it comes twice.
                        3 if faults > 0.0 => bench.response(number, 64, 0, faults),
                        _ => bench.ask(number, asks),
                    }
                }
                2..6 if messages > 0 => {
                    messages -= 1;
                    if bench.host.random.chance(writes) {
                        bench.write(number, faults / 2.0);
                    } else {
                        bench.message(number, long, faults / 2.0);
                    }
                }
                _ => {
                    let vi = bench.vis.get_mut(&number).unwrap();
                    let run = 1 + bench.host.random.below(5);
                    for _ in 0..run {
                        bench.frames.extend(vi.left.pop_front());
                    }
                }
            }
        }
        if bench.host.random.chance(if bench.pause { 0.004 } else { 0.001 }) {
            bench.pause = !bench.pause;
        }
        if bench.pause && !bench.judged && bench.model.outputs.fence_paused != 0 {
            bench.spoil(number);
        }
        bench.cycle();
        if bench.pause && bench.model.outputs.fence_paused != 0 {
            let out = &bench.model.outputs;
            let calls = [out.vi_valid, out.vi_complete_valid, out.vi_look_valid];
            assert_eq!((calls, out.staging_release), ([0; 3], 0));
        }
    }
    bench
}

/// What happened how often. The engine is reset in the midst of other frames before.
fn run(seed: u64) -> BTreeMap<String, u64> {
    let before = Random::new(seed ^ 0x4321).below(8_000);
    let used = drive(Model::default(), !seed, before).model;
    let mut bench = drive(used, seed, u64::MAX);
    bench.pause = false;
    for _ in 0..1_000 {
        bench.cycle();
    }
    bench.counted.remove(&(Counter::DescriptorsFetched as u32));
    bench.counted.retain(|_, count| *count > 0);
    assert!(bench.is_done(), "left: {:?}", bench.trailing);
    assert_eq!(bench.counters, bench.counted, "counters");
    assert!(bench.shadow == bench.host.memory.bytes, "memory");
    println!("seed {seed}: {} frames, {} events", bench.released, bench.events);
    bench.seen
}

#[test]
fn random_frames() {
    let mut seen = BTreeMap::new();
    let mut add = |seed| {
        for (kind, count) in run(seed) {
            *seen.entry(kind).or_insert(0) += count;
        }
    };
    each_seed(0..60, &mut add);
    // A POP in the cycle in which the prefetcher has Next again.
    add(10_662);
    println!("{seen:#?}");
}

/// Has all frames of a VI's sender come.
fn offer(bench: &mut Bench, number: u16) {
    let left = std::mem::take(&mut bench.vis.get_mut(&number).unwrap().left);
    bench.frames.extend(left);
}

/// A message of so many bytes, as its frames.
fn whole_message(bench: &mut Bench, number: u16, length: u32) {
    bench.send(number, length.into(), None, false, 0.0);
    offer(bench, number);
}

/// VIs on Delivery level with so many posted descriptors of `length` bytes each, near to each other.
fn posted(vis: usize, each: u64, length: u32) -> Bench {
    let mut bench = Bench::new(1, vis, Pace { ready: 1.0, call: 1, read: 1 });
    let numbers: Vec<u16> = bench.vis.keys().copied().collect();
    for number in numbers {
        let vi = bench.vis.get_mut(&number).unwrap();
        (vi.level, vi.queue.close) = (2, 1.0);
        for _ in 0..each {
            vi.queue.post_one(&mut bench.host, length);
        }
    }
    bench.copy_posts();
    bench
}

/// Cycles from a frame's offer until all that it caused has happened, with neighbours that answer at once (calls two
/// cycles, reads two cycles): descriptor not cached, and cached.
#[test]
fn cost() {
    let bounds = [(8, (48, 20)), (64, (55, 27)), (4096, (559, 531)), (0x40000, (33_500, 33_450))];
    for (length, most) in bounds {
        for (ahead, most) in [(false, most.0), (true, most.1)] {
            let mut bench = posted(1, 1, length);
            let number = *bench.vis.keys().next().unwrap();
            if ahead {
                bench.posted.push_back(number);
            }
            for _ in 0..100 {
                bench.cycle();
            }
            whole_message(&mut bench, number, length);
            let mut cycles = 0;
            while !bench.is_done() {
                bench.cycle();
                cycles += 1;
            }
            println!("receive {length} bytes (descriptor cached: {ahead}): {cycles} cycles");
            assert!(cycles <= most, "{length} bytes take {cycles} cycles");
        }
    }
}

/// Cycles a message in a row of small ones, VI by VI: with neighbours that answer at once, and
/// with reads that take so many cycles more.
#[test]
fn rate() {
    let bounds =
        [(1, 0, 11), (1, 40, 12), (8, 0, 11), (8, 40, 11), (16, 40, 11), (64, 0, 11), (64, 40, 17)];
    for (vis, latency, most) in bounds {
        let mut bench = posted(vis, 128 / vis as u64, 8);
        bench.desc_read.latency = latency;
        let numbers: Vec<u16> = bench.vis.keys().copied().collect();
        bench.posted.extend(&numbers);
        for _ in 0..1000 {
            bench.cycle();
        }
        for at in 0..128 {
            whole_message(&mut bench, numbers[at % vis], 8);
        }
        let mut cycles = 0;
        while !bench.is_done() {
            bench.cycle();
            cycles += 1;
        }
        let each = cycles / 128;
        println!("receive 8 bytes, {vis} VIs, latency {latency}: {each} cycles a message");
        assert!(each <= most, "{vis} VIs, latency {latency}: {each} cycles a message");
    }
}

/// Descriptors of one to three lines side by side: several of them come with one read.
#[test]
fn neighbours_share_a_read() {
    for (segments, most) in [(2, 10), (6, 14), (10, 24)] {
        let mut bench = posted(1, 0, 0);
        bench.desc_read.latency = 40;
        let number = *bench.vis.keys().next().unwrap();
        let vi = bench.vis.get_mut(&number).unwrap();
        (0..24).for_each(|_| vi.queue.post_split(&mut bench.host, segments));
        fetch_ahead(&mut bench);
        for _ in 0..24 {
            whole_message(&mut bench, number, 8);
        }
        settle(&mut bench);
        let reads = bench.desc_read.requests;
        println!("24 descriptors of {segments} segments: {reads} reads");
        assert!(reads <= most, "{reads} reads of descriptors with {segments} segments");
        assert_eq!(bench.counted[&(Counter::DescriptorsFetched as u32)], 24);
    }
}

/// The number of the only VI; a doorbell's hint for it, and time to fetch.
fn fetch_ahead(bench: &mut Bench) -> u16 {
    let number = *bench.vis.keys().next().unwrap();
    bench.posted.push_back(number);
    for _ in 0..200 {
        bench.cycle();
    }
    bench.copy_posts();
    number
}

/// Until all frames are done; nothing is left to expect, and memory is as it must be.
fn settle(bench: &mut Bench) {
    for _ in 0..20_000 {
        bench.cycle();
        if bench.is_done() {
            assert!(bench.expected.is_empty());
            assert!(bench.shadow == bench.host.memory.bytes, "memory");
            return;
        }
    }
    panic!("stuck: {:?}", bench.expected);
}

fn fence(bench: &mut Bench, between: impl FnOnce(&mut Bench)) {
    bench.pause = true;
    for _ in 0..200 {
        bench.cycle();
    }
    assert_eq!(bench.model.outputs.fence_paused, 1);
    between(bench);
    bench.pause = false;
    bench.cycle();
}

/// A Next that was read before its successor was posted is not used (contract 2.3).
#[test]
fn next_is_linked_late() {
    for hinted in [false, true] {
        let mut bench = posted(1, 1, 64);
        let number = *bench.vis.keys().next().unwrap();
        // Next leads to a descriptor that is there, but was never posted.
        let vi = bench.vis.get_mut(&number).unwrap();
        vi.queue.post_one(&mut bench.host, 64);
        vi.queue.unpost();
        fetch_ahead(&mut bench);
        assert_eq!(bench.desc_read.requests, 1);
        let vi = bench.vis.get_mut(&number).unwrap();
        for _ in 0..3 {
            vi.queue.post_one(&mut bench.host, 64);
        }
        if hinted {
            fetch_ahead(&mut bench);
        }
        bench.copy_posts();
        for _ in 0..4 {
            whole_message(&mut bench, number, 64);
        }
        settle(&mut bench);
        assert_eq!(bench.seen["Pop"], 4);
    }
}

/// A Next that was not there yet cannot be read when it is wanted: the descriptor behind it stops the VI.
#[test]
fn next_cannot_be_read() {
    let mut bench = posted(1, 1, 64);
    bench.reread_faults = 1.0;
    let number = fetch_ahead(&mut bench);
    for _ in 0..3 {
        let vi = bench.vis.get_mut(&number).unwrap();
        vi.queue.post_one(&mut bench.host, 64);
    }
    bench.copy_posts();
    (0..2).for_each(|_| whole_message(&mut bench, number, 64));
    settle(&mut bench);
    let stop = format!("stop {} 40 false", StopReason::HostRead as u8);
    assert_eq!((bench.seen["Pop"], bench.seen[&stop]), (1, 1));
}

/// One VI posts line by line, and now and then somewhere else: reads that were ordered behind the last
/// one are used or dropped, and every message finds its own descriptor.
#[test]
fn the_stream_turns() {
    let mut streams = 0;
    each_seed(0..20, |seed| {
        let mut bench = posted(1, 1, 64);
        bench.desc_read.latency = 40;
        let mut choice = Random::new(seed);
        let number = *bench.vis.keys().next().unwrap();
        bench.pace = Pace { ready: 0.9, call: 1 + seed % 6, read: 1 + 4 * (seed % 20) };
        bench.vis.get_mut(&number).unwrap().queue.close = [1.0, 0.97, 0.9][(seed % 3) as usize];
        let mut sent = 0;
        for round in 0..60 {
            let burst = if round == 0 { 40 } else { choice.below(6) };
            for _ in 0..burst {
                let vi = bench.vis.get_mut(&number).unwrap();
                vi.queue.post_one(&mut bench.host, 64);
                bench.posted.push_back(number);
            }
            bench.copy_posts();
            let waiting = bench.frames.len() as u64;
            let posted = u64::from(bench.vis[&number].queue.count).saturating_sub(waiting);
            for _ in 0..choice.below(6).min(posted) {
                whole_message(&mut bench, number, 64);
                sent += 1;
            }
            for _ in 0..choice.below(100) {
                bench.cycle();
            }
        }
        settle(&mut bench);
        assert_eq!(bench.seen.get("Pop"), Some(&sent), "seed {seed}");
        streams += u32::from(bench.desc_read.most > 1);
    });
    println!("{streams} of 20 were streams");
    assert!(streams >= 15, "one read at a time in {} of 20", 20 - streams);
}

/// What lies behind a posted descriptor is not used before it is posted, nor as it was then.
#[test]
fn read_ahead_of_the_count() {
    let mut bench = posted(1, 3, 64);
    let number = *bench.vis.keys().next().unwrap();
    let later = bench.vis.get_mut(&number).unwrap().queue.unpost();
    fetch_ahead(&mut bench);
    whole_message(&mut bench, number, 64);
    settle(&mut bench);
    fetch_ahead(&mut bench);
    // Its first segment moves before it is posted.
    let address = later.bus + 32;
    let old = u64::from_le_bytes(bench.host.memory.read(address, 8).try_into().unwrap());
    bench.host.memory.put(address, &(old + 0x1008).to_le_bytes());
    bench.vis.get_mut(&number).unwrap().queue.post_again(later);
    fetch_ahead(&mut bench);
    whole_message(&mut bench, number, 64);
    whole_message(&mut bench, number, 64);
    settle(&mut bench);
    assert_eq!((bench.seen["Pop"], bench.vis[&number].queue.count), (3, 0));
}

/// Next that differs in one bit from a place that was read with the head: what was read is not used.
#[test]
fn next_is_far() {
    for far in 2..=18 {
        let mut bench = posted(1, 0, 0);
        let bytes = bench.host.memory.bytes.len() + (18 << 20);
        bench.host.memory.bytes.resize(bytes, 0);
        bench.shadow.resize(bytes, 0);
        let number = *bench.vis.keys().next().unwrap();
        let vi = bench.vis.get_mut(&number).unwrap();
        vi.queue = Queue::sized(&mut bench.host, vi.queue.owner, 17 << 20);
        vi.queue.close = 1.0;
        // The head is read with what lies behind it: a descriptor for 48 bytes that was never posted.
        vi.queue.post_one(&mut bench.host, 64);
        vi.queue.head.segments = 16;
        vi.queue.post_one(&mut bench.host, 48);
        vi.queue.unpost();
        vi.queue.skip((1 << far) - 1);
        vi.queue.post_one(&mut bench.host, 64);
        vi.queue.post_one(&mut bench.host, 64);
        let number = fetch_ahead(&mut bench);
        (0..3).for_each(|_| whole_message(&mut bench, number, 64));
        settle(&mut bench);
        assert_eq!(bench.seen["Pop"], 3, "bit {far}");
    }
}

/// A Next beyond the region of those before it, for which nobody is asked: it leads nowhere.
#[test]
fn next_is_beyond_its_region() {
    for lines in [0, 1, 100, 1 << 14, 1 << 25] {
        let mut bench = posted(1, 5, 64);
        let vi = bench.vis.values_mut().next().unwrap();
        vi.queue.lead_beyond(&mut bench.host, 2, lines);
        let number = fetch_ahead(&mut bench);
        (0..3).for_each(|_| whole_message(&mut bench, number, 64));
        settle(&mut bench);
        assert_eq!(bench.seen["Pop"], 3);
    }
}

/// A region is revoked between the fetch and the frame (contract 8).
#[test]
fn region_is_revoked_after_the_fetch() {
    let mut bench = posted(1, 2, 64);
    let number = fetch_ahead(&mut bench);
    let before = bench.desc_read.requests;
    assert!(before > 0);
    fence(&mut bench, |bench| bench.vis[&number].queue.revoke(&mut bench.host));
    whole_message(&mut bench, number, 64);
    settle(&mut bench);
    assert!(bench.desc_read.requests > before);
    let stop = format!("stop {} 20 false", StopReason::Protection as u8);
    let kinds: Vec<&str> = bench.seen.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["Pop", "complete false", "status 10005 false", stop.as_str()]);
}

/// A frame whose message number differs in one bit is none of the message that has begun; its descriptor is the
/// next one's.
#[test]
fn each_bit_of_a_message_number_is_compared() {
    for bit in 8..16 {
        let mut bench = posted(1, 1, 8192);
        let number = *bench.vis.keys().next().unwrap();
        bench.vis.get_mut(&number).unwrap().level = 1;
        bench.send(number, 8192, None, false, 0.0);
        let (header, _) = &mut bench.vis.get_mut(&number).unwrap().left[1];
        header.sequence ^= 1 << bit;
        offer(&mut bench, number);
        settle(&mut bench);
        assert_eq!(bench.seen.get("Pop"), None, "bit {bit}");
        whole_message(&mut bench, number, 64);
        settle(&mut bench);
        assert_eq!(bench.seen["Pop"], 1);
    }
}

/// A VI is disconnected and connected again; the same places hold other descriptors.
#[test]
fn descriptors_of_a_stopped_vi_are_forgotten() {
    let mut bench = posted(1, 3, 64);
    let number = fetch_ahead(&mut bench);
    fence(&mut bench, |bench| {
        let vi = bench.vis.get_mut(&number).unwrap();
        vi.queue.clear();
        vi.queue.rewind(&mut bench.host);
        vi.queue.post_one(&mut bench.host, 48);
    });
    fetch_ahead(&mut bench);
    whole_message(&mut bench, number, 64);
    settle(&mut bench);
    assert_eq!(bench.seen.get("write"), None, "the old buffer was 64 bytes long");
}

/// A read of two frames, for which `place` chooses where it is posted. Behind its first one, software changes its
/// descriptor, whose bus address `change` gets.
fn read_changes(place: impl FnOnce(&mut Queue), change: impl FnOnce(&mut Host, u64)) -> Bench {
    let mut bench = Bench::new(1, 1, Pace { ready: 1.0, call: 1, read: 1 });
    let number = *bench.vis.keys().next().unwrap();
    let vi = bench.vis.get_mut(&number).unwrap();
    vi.level = 2;
    place(&mut vi.sends);
    vi.sends.post_read(&mut bench.host, 0x2000);
    vi.reading = Some((0, 0x2000));
    let bus = vi.sends.posted[0].bus;
    bench.copy_posts();
    bench.response(number, 0x1000, 0x1000, 0.0);
    offer(&mut bench, number);
    settle(&mut bench);
    fence(&mut bench, |bench| {
        change(&mut bench.host, bus);
        bench.copy_posts();
    });
    bench.response(number, 0x1000, 0, 0.0);
    offer(&mut bench, number);
    settle(&mut bench);
    bench
}

/// Software makes another operation of a read that is half answered: it ends as what it is then.
#[test]
fn a_read_becomes_a_write() {
    let bench = read_changes(
        |_| {},
        |host, bus| host.memory.put(bus + 14, &control::OP_RDMA_WRITE.to_le_bytes()),
    );
    // Done, an RDMA write, LENGTH, PARTIAL.
    assert_eq!(bench.seen.get("status 20019 false"), Some(&1), "{:?}", bench.seen);
}

/// Software gives a read that is half answered more segments than its region has space for: there is no
/// descriptor any more that could be completed.
#[test]
fn a_read_grows_beyond_its_region() {
    let bench = read_changes(Queue::skip_to_end, |host, bus| {
        host.memory.put(bus + desc::SEG_COUNT_OFFSET, &17_u16.to_le_bytes());
    });
    let stop = format!("stop {} 4 false", StopReason::Descriptor as u8);
    let kinds: Vec<&str> = bench.seen.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["place", stop.as_str(), "write"]);
}

/// Cycles of a response's frames, offer to release, with neighbours that answer at once: the
/// descriptor is read once.
#[test]
fn reply_cost() {
    for (length, most) in [(8, 60), (4096, 580), (0x40000, 64 * 580)] {
        let mut bench = Bench::new(1, 1, Pace { ready: 1.0, call: 1, read: 1 });
        let number = *bench.vis.keys().next().unwrap();
        let vi = bench.vis.get_mut(&number).unwrap();
        vi.level = 2;
        vi.sends.post_read(&mut bench.host, length);
        vi.reading = Some((0, length));
        bench.copy_posts();
        for from in (0..length).step_by(4096) {
            let bytes = (length - from).min(4096);
            bench.response(number, bytes, length - from - bytes, 0.0);
        }
        offer(&mut bench, number);
        let mut cycles = 0;
        while !bench.is_done() {
            bench.cycle();
            cycles += 1;
            assert!(cycles < 100_000, "stuck: {:?}", bench.expected);
        }
        println!("answer of {length} bytes: {cycles} cycles");
        assert_eq!(bench.counted[&(Counter::DescriptorsFetched as u32)], 1);
        assert!(cycles < most, "{length} bytes take {cycles} cycles");
    }
}
