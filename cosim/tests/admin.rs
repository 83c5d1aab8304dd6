//! The admin ring on the Verilated block: random commands, good and bad, against the model's checks
//! of index and body; every call's arguments, fences, completions in place, counters, and an entry
//! that cannot be read.
#![cfg(feature = "blocks")]
#![allow(clippy::cast_possible_truncation, reason = "random numbers are cut to their field")]

use cosim::random::{Random, each_seed};
use cosim::verilated::blocks::admin::{Model, Out};
use nic_model::admin::command::Command;
use nic_model::event::EventQueue;
use nic_regs::admin::{AdminStatus, DONE, ENTRY_BYTES, Opcode, PeerState};
use nic_regs::counter::{Counter, ErrorCode, ErrorRecord};
use nic_regs::limits::{
    CREDITS_MAX, DOMAIN_COUNT, EVENT_QUEUE_COUNT, MAX_TRANSFER_BYTES, MSIX_VECTOR_COUNT,
    PEER_COUNT, REGION_COUNT, VI_COUNT,
};
use nic_regs::tpt::Region;
use nic_regs::vi::rdma;
use std::collections::{BTreeMap, VecDeque};

/// Cycles in which a command must end.
const PATIENCE: u64 = 4_000;

type Entry = [u32; 16];

/// Who executes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Regions,
    Vis,
    EventQueues,
    Peers,
    Messages,
}

/// The command of an entry, or why it is refused before its owner is asked.
fn decode(entry: &Entry) -> Result<Command, AdminStatus> {
    let bytes = entry.map(u32::to_le_bytes);
    Command::decode(bytes.as_flattened().try_into().expect("an entry"))
}

/// Who executes a command, if anybody must.
const fn owner(command: &Command) -> Option<Owner> {
    Some(match command {
        Command::Nop => return None,
        Command::RegionSet { .. } | Command::RegionClear { .. } => Owner::Regions,
        Command::ViCreate { .. }
        | Command::ViDestroy { .. }
        | Command::ViConnect { .. }
        | Command::ViDisconnect { .. }
        | Command::ViQuery { .. } => Owner::Vis,
        Command::EventCreate { .. }
        | Command::EventDestroy { .. }
        | Command::MessageQueue { .. } => Owner::EventQueues,
        Command::PeerOpen { .. } | Command::PeerClose { .. } | Command::PeerQuery { .. } => {
            Owner::Peers
        }
        Command::MessageSend { .. } => Owner::Messages,
    })
}

/// Whether both engines pause before its owner is asked (contract 8).
const fn is_fenced(command: &Command) -> bool {
    use Command::{RegionClear, ViDestroy, ViDisconnect};
    matches!(command, RegionClear { .. } | ViDestroy { .. } | ViDisconnect { .. })
}

/// A command whose fields are good, or at a limit, or anything.
fn random_entry(random: &mut Random) -> Entry {
    let mut entry: Entry = std::array::from_fn(|_| random.bits() as u32);
    entry[0] = if random.chance(0.05) { random.bits() as u32 } else { random.below(16) as u32 };
    entry[3] = 0;
    let near = |random: &mut Random, limit: usize| {
        let limit = limit as u64;
        let any = random.bits() >> 32;
        [random.below(limit), random.below(limit), limit - 1, limit, any][random.below(5) as usize]
            as u32
    };
    let good = random.chance(0.6);
    let within = |random: &mut Random, limit: usize| {
        if good { random.below(limit as u64) as u32 } else { near(random, limit) }
    };
    match Opcode::from_bits(entry[0]) {
        Some(Opcode::RegionSet) => {
            entry[1] = within(random, REGION_COUNT);
            entry[6] = entry[6] & !0xfff | entry[4] & 0xfff;
            entry[8] = within(random, 1 << 32);
            entry[9] |= u32::from(good) << 16;
            entry[10] = within(random, DOMAIN_COUNT) & 0xff | 0x100 | entry[10] & 0x600;
            if !good {
                let wrong = [0, 4 << random.below(3), 0xf800, 0x100][random.below(4) as usize];
                entry[10] ^= wrong;
                entry[6] ^= u32::from(random.chance(0.1));
                entry[5] |= if random.chance(0.3) { !0 } else { 0 };
                entry[9] &= if random.chance(0.2) { 0xffff } else { !0 };
            }
        }
        Some(Opcode::ViCreate) => {
            entry[1] = within(random, VI_COUNT);
            let level = if good { 1 << random.below(3) } else { random.below(9) as u32 };
            entry[4] = within(random, DOMAIN_COUNT) & 0xff | level << 8 | entry[4] & 0xffff_0000;
            entry[5] = within(random, EVENT_QUEUE_COUNT) & 0xffff
                | (within(random, EVENT_QUEUE_COUNT) & 0xffff) << 16;
            entry[5] |= [0, 0, 0xffff, 0xffff_0000][random.below(4) as usize];
            entry[6] = within(random, MAX_TRANSFER_BYTES as usize) + u32::from(good);
        }
        Some(Opcode::ViConnect) => {
            entry[1] = within(random, VI_COUNT);
            entry[4] = within(random, PEER_COUNT) & 0xff | entry[4] & 0xffff_ff00;
        }
        Some(Opcode::EventCreate) => {
            entry[1] = within(random, EVENT_QUEUE_COUNT);
            entry[4] &= if random.chance(0.9) { !63 } else { !0 };
            let log2 = if good { 2 + random.below(14) as u32 } else { entry[6] & 0xf };
            entry[6] = log2
                | entry[6] & 0xff00_00f0
                | (within(random, DOMAIN_COUNT) & 0xff) << 8
                | (within(random, MSIX_VECTOR_COUNT) & 0xff) << 16;
        }
        Some(Opcode::PeerOpen) => {
            entry[1] = within(random, PEER_COUNT);
            let credits = within(random, CREDITS_MAX) + u32::from(good);
            entry[5] = credits | entry[5] & 0xffff_ff00;
        }
        Some(Opcode::MessageSend) => {
            entry[1] = within(random, PEER_COUNT) & 0xff
                | (within(random, DOMAIN_COUNT) & 0xff) << 8
                | entry[1] & 0xffff_0000;
        }
        Some(Opcode::MessageQueue) => {
            entry[1] = within(random, DOMAIN_COUNT);
            entry[4] = within(random, EVENT_QUEUE_COUNT);
        }
        Some(Opcode::EventDestroy) => entry[1] = within(random, EVENT_QUEUE_COUNT),
        Some(Opcode::PeerClose | Opcode::PeerQuery) => entry[1] = within(random, PEER_COUNT),
        Some(_) => entry[1] = within(random, VI_COUNT),
        None => {}
    }
    entry
}

/// The call under way: cycles until its answer, and that.
#[derive(Clone, Copy, Debug)]
struct Call {
    owner: Owner,
    left: u64,
    status: AdminStatus,
    result: u32,
}

#[derive(Default)]
struct Bench {
    random: Random,
    model: Model,
    base: u64,
    log2: u8,
    ring: Vec<Entry>,
    head: u16,
    tail: u16,
    /// Beats of the entry that is read.
    reading: VecDeque<(u64, bool, bool)>,
    read_ready: bool,
    unreadable: bool,
    written: Vec<u64>,
    call: Option<Call>,
    /// What the call of this command came to.
    answer: Option<(AdminStatus, u32)>,
    /// Words of a message that were seen; the one that was asked for in the cycle before.
    message: Vec<u64>,
    message_asked: Option<usize>,
    /// Engines that have paused; each in so many cycles.
    paused: [bool; 2],
    pausing: [u64; 2],
    calls: BTreeMap<(Owner, bool), u64>,
    statuses: BTreeMap<u32, u64>,
    counted: [u64; 2],
    now: u64,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (base, log2) = (random.bits() & !63, random.below(7) as u8);
        let mut bench =
            Self { random, base, log2, ring: vec![[0; 16]; 1 << log2], ..Self::default() };
        bench.model.reset();
        (bench.model.inputs.admin_base, bench.model.inputs.admin_log2) = (base, log2);
        bench
    }

    fn slot(&self) -> usize {
        usize::from(self.head) % self.ring.len()
    }

    fn entry(&self) -> Entry {
        self.ring[self.slot()]
    }

    fn place(&self) -> u64 {
        self.base.wrapping_add(ENTRY_BYTES * self.slot() as u64)
    }

    fn cycle(&mut self) {
        self.drive();
        self.model.cycle();
        let out = self.model.outputs.clone();
        self.read(&out);
        self.fences(&out);
        self.called(&out);
        self.complete(&out);
        for (at, counter) in [Counter::AdminCommands, Counter::AdminErrors].into_iter().enumerate()
        {
            self.counted[at] += out.counts >> counter as u32 & 1;
        }
        assert_eq!(out.admin_busy != 0, out.admin_head != self.tail);
        self.now += 1;
    }

    fn drive(&mut self) {
        let random = &mut self.random;
        self.read_ready = random.chance(0.5);
        let answers = self.call.filter(|call| call.left == 0);
        let noise = (random.bits(), random.below(7) as u8, random.bits() as u32);
        let i = &mut self.model.inputs;
        i.admin_tail = self.tail;
        i.read_req_ready = self.read_ready.into();
        i.read_rsp_valid = 0;
        (i.read_rsp_data, i.read_rsp_last, i.read_rsp_error) = (noise.0, 1, 1);
        if !self.reading.is_empty() && random.chance(0.7) {
            let (data, last, error) = self.reading.pop_front().expect("a beat");
            i.read_rsp_valid = 1;
            (i.read_rsp_data, i.read_rsp_last, i.read_rsp_error) =
                (data, last.into(), error.into());
        }
        i.write_ready = random.chance(0.6).into();
        let done = |owner| u8::from(answers.is_some_and(|call| call.owner == owner));
        i.tpt_done = done(Owner::Regions);
        i.vi_done = done(Owner::Vis);
        i.event_queue_done = done(Owner::EventQueues);
        i.peer_done = done(Owner::Peers);
        i.message_done = done(Owner::Messages);
        let (status, result) =
            answers.map_or((noise.1, noise.2), |call| (call.status as u8, call.result));
        i.tpt_ok = (status == 0).into();
        (i.vi_status, i.vi_result) = (status, result);
        (i.event_queue_status, i.peer_status, i.message_status) = (status, status, status);
        i.peer_state = result as u8 & 3;
        i.message_index = self.message.len().min(5) as u8;
        (i.fence_send_paused, i.fence_recv_paused) = (self.paused[0].into(), self.paused[1].into());
    }

    fn read(&mut self, out: &Out) {
        if out.read_req_valid == 0 || !self.read_ready {
            return;
        }
        assert_eq!((out.read_req_address, u64::from(out.read_req_length)), (self.place(), 64));
        assert!(self.model.inputs.enable != 0 && self.head != self.tail);
        let entry = self.entry();
        let fails = self.unreadable;
        let beat = |at: usize| u64::from(entry[2 * at]) | u64::from(entry[2 * at + 1]) << 32;
        self.reading = (0..8).map(|at| (beat(at), at == 7, at == 7 && fails)).collect();
    }

    /// An engine pauses some time after it was asked to, and may take it back once.
    fn fences(&mut self, out: &Out) {
        assert_eq!(out.fence_send_pause, out.fence_recv_pause);
        let pause = out.fence_send_pause != 0;
        if pause {
            assert!(decode(&self.entry()).is_ok_and(|command| is_fenced(&command)));
        }
        for engine in 0..2 {
            self.pausing[engine] = self.pausing[engine].saturating_sub(1);
            if !pause {
                self.paused[engine] = false;
                self.pausing[engine] = 1 + self.random.below(60);
            } else if self.pausing[engine] == 0 {
                self.paused[engine] = true;
            }
        }
    }

    fn called(&mut self, out: &Out) {
        let asks = [
            (Owner::Regions, out.tpt_valid),
            (Owner::Vis, out.vi_valid),
            (Owner::EventQueues, out.event_queue_valid),
            (Owner::Peers, out.peer_valid),
            (Owner::Messages, out.message_valid),
        ];
        let asked: Vec<Owner> = asks.iter().filter(|ask| ask.1 != 0).map(|ask| ask.0).collect();
        if let Some(call) = &mut self.call {
            assert_eq!(asked, [call.owner], "a call stands until it is answered");
            if call.left == 0 {
                self.answer = Some((call.status, call.result));
                self.call = None;
                return;
            }
            let moves = call.owner == Owner::Messages;
            call.left -= 1;
            let command = decode(&self.entry()).expect("the command of a call");
            let fenced = is_fenced(&command);
            assert_eq!(out.fence_send_pause != 0, fenced, "the fence stands while the owner acts");
            arguments(&command, out);
            if moves {
                self.message(out);
            }
            return;
        }
        let [owner] = asked[..] else {
            assert!(asked.is_empty(), "{asked:?}");
            return;
        };
        assert_eq!(self.answer, None, "{owner:?} is called twice");
        let Ok(command) = decode(&self.entry()) else {
            panic!("{owner:?} is called: {:x?}", self.entry());
        };
        let fenced = is_fenced(&command);
        assert_eq!(Some(owner), self::owner(&command));
        assert_eq!(out.fence_send_pause != 0, fenced);
        let i = &self.model.inputs;
        assert!(!fenced || i.fence_send_paused & i.fence_recv_paused != 0, "before the fence");
        arguments(&command, out);
        self.begin(owner);
        *self.calls.entry((owner, fenced)).or_default() += 1;
    }

    fn begin(&mut self, owner: Owner) {
        let random = &mut self.random;
        let (no, busy) = (AdminStatus::BadState, AdminStatus::Busy);
        let choice = [AdminStatus::Ok, AdminStatus::Ok, no, busy][random.below(4) as usize];
        let (status, result) = match owner {
            // `ok` or not; no result.
            Owner::Regions if choice == busy => (no, 0),
            Owner::Regions | Owner::EventQueues => (choice, 0),
            Owner::Vis => (choice, random.bits() as u32),
            Owner::Peers => (choice, random.below(PeerState::Open as u64 + 1) as u32),
            Owner::Messages if choice == no => (AdminStatus::PeerDown, 0),
            Owner::Messages => (choice, 0),
        };
        let least = if owner == Owner::Messages { 20 } else { 0 };
        let left = least + random.below(40);
        self.message.clear();
        self.message_asked = None;
        self.call = Some(Call { owner, left, status, result });
    }

    /// A message's words: each in the cycle after its number.
    fn message(&mut self, out: &Out) {
        let entry = self.entry();
        if let Some(at) = self.message_asked {
            let word = u64::from(entry[4 + 2 * at]) | u64::from(entry[5 + 2 * at]) << 32;
            assert_eq!(out.message_data, word, "word {at} of a message");
            if at == self.message.len() {
                self.message.push(word);
            }
        }
        self.message_asked = Some(self.model.inputs.message_index.into());
    }

    fn complete(&mut self, out: &Out) {
        if out.write_valid == 0 || self.model.inputs.write_ready == 0 {
            return;
        }
        assert_eq!((out.write_address, out.write_length), (self.place(), 16));
        self.written.push(out.write_data);
        assert_eq!(out.write_last != 0, self.written.len() == 2);
        if self.written.len() < 2 {
            return;
        }
        let beats = std::mem::take(&mut self.written);
        let entry = self.entry();
        let (status, result) = match decode(&entry) {
            Err(status) => (status, 0),
            Ok(Command::Nop) => (AdminStatus::Ok, 0),
            Ok(_) => self.answer.take().expect("the owner's answer first"),
        };
        let result = if status == AdminStatus::Ok { result } else { 0 };
        if entry[0] == Opcode::MessageSend as u32 && !self.message.is_empty() {
            assert_eq!(self.message.len(), 6, "words of a message");
        }
        self.message.clear();
        let first = u64::from(status as u32) | u64::from(result) << 32;
        let second = u64::from(entry[2]) | u64::from(DONE) << 32;
        assert_eq!(beats, [first, second], "{entry:x?}");
        *self.statuses.entry(status as u32).or_default() += 1;
        self.head = self.head.wrapping_add(1);
    }

    /// Runs so many commands; in between it is quiet or disabled, now and then.
    fn run(&mut self, commands: u64) {
        for _ in 0..commands {
            let waiting = self.tail.wrapping_sub(self.head);
            let space = u64::from((1_u16 << self.log2) - waiting);
            for _ in 0..1 + self.random.below(space) {
                let at = usize::from(self.tail) % self.ring.len();
                self.ring[at] = random_entry(&mut self.random);
                self.tail = self.tail.wrapping_add(1);
            }
            self.model.inputs.enable = (!self.random.chance(0.1)).into();
            if self.model.inputs.enable == 0 {
                for _ in 0..self.random.below(200) {
                    self.cycle();
                }
                self.model.inputs.enable = 1;
            }
            let (from, leave) = (self.now, self.random.below(1 << self.log2) as u16);
            while self.tail.wrapping_sub(self.head) > leave {
                assert!(self.now - from < PATIENCE << self.log2, "{:x?}", self.entry());
                self.cycle();
            }
        }
    }

    fn finish(&mut self) {
        self.model.inputs.enable = 1;
        while self.head != self.tail {
            self.cycle();
        }
        for _ in 0..20 {
            self.cycle();
        }
        assert_eq!(self.model.outputs.admin_head, self.head);
        let commands: u64 = self.statuses.values().sum();
        let failed = commands - self.statuses.get(&0).unwrap_or(&0);
        assert_eq!(self.counted, [commands, failed]);
    }
}

/// The arguments of a call are the command's.
fn arguments(command: &Command, out: &Out) {
    let vi = (out.vi_op, out.vi_vi);
    let queue = (out.event_queue_op, out.event_queue_index);
    let peer = (out.peer_op, out.peer_peer);
    match *command {
        Command::Nop => panic!("nobody is called for it"),
        Command::RegionSet { index, region } => {
            assert_eq!((out.tpt_clear, out.tpt_index), (0, index));
            let asked = Region {
                va_base: out.tpt_va_base,
                bus_base: out.tpt_bus_base,
                length: out.tpt_length,
                tag: out.tpt_tag,
                generation: out.tpt_generation,
                domain: out.tpt_domain,
                rights: out.tpt_rights,
            };
            assert_eq!(asked, region);
        }
        Command::RegionClear { index } => assert_eq!((out.tpt_clear, out.tpt_index), (1, index)),
        Command::ViCreate { index, owner, level, event_queues, max_transfer, allows } => {
            assert_eq!(vi, (0, index));
            assert_eq!((out.vi_domain, out.vi_tag), (owner.domain, owner.tag));
            assert_eq!(out.vi_reliability, level as u8);
            assert_eq!([out.vi_send_queue, out.vi_recv_queue], event_queues);
            let allows = allows & (rdma::WRITE | rdma::READ);
            assert_eq!((out.vi_max_transfer, out.vi_allows.into()), (max_transfer, allows));
        }
        Command::ViDestroy { index } => assert_eq!(vi, (1, index)),
        Command::ViConnect { index, remote } => {
            assert_eq!(vi, (2, index));
            assert_eq!((out.vi_peer, out.vi_peer_vi), (remote.node, remote.vi));
            let allows = remote.allows & (rdma::WRITE | rdma::READ);
            assert_eq!((out.vi_connection, out.vi_allows.into()), (remote.connection, allows));
        }
        Command::ViDisconnect { index } => assert_eq!(vi, (3, index)),
        Command::ViQuery { index } => assert_eq!(vi, (4, index)),
        Command::EventCreate {
            index,
            queue: EventQueue { base, log2, wide, domain, vector, .. },
        } => {
            assert_eq!(queue, (0, index));
            assert_eq!((out.event_queue_base, out.event_queue_log2.into()), (base, log2));
            let place = (out.event_queue_wide, out.event_queue_domain, out.event_queue_vector);
            assert_eq!(place, (wide.into(), domain, vector));
        }
        Command::EventDestroy { index } => assert_eq!(queue, (1, index)),
        Command::MessageQueue { domain, queue: number } => {
            assert_eq!((queue, out.event_queue_queue), ((2, domain), number));
        }
        Command::PeerOpen { node, epoch, credits } => {
            assert_eq!((peer, out.peer_epoch, out.peer_credits), ((0, node), epoch, credits));
        }
        Command::PeerClose { node } => assert_eq!(peer, (1, node)),
        Command::PeerQuery { node } => assert_eq!(peer, (2, node)),
        Command::MessageSend { node, domain, .. } => {
            assert_eq!((out.message_peer, out.message_domain), (node, domain));
        }
    }
}

#[test]
fn random_commands() {
    let (mut calls, mut statuses) = (BTreeMap::new(), BTreeMap::new());
    each_seed(0..40, |seed| {
        let mut bench = Bench::new(seed);
        bench.run(300);
        bench.finish();
        for (what, count) in bench.calls {
            *calls.entry(what).or_insert(0) += count;
        }
        for (status, count) in bench.statuses {
            *statuses.entry(status).or_insert(0) += count;
        }
    });
    // Fenced or not: regions and VIs both, the others never.
    assert_eq!(calls.len(), 7, "{calls:?}");
    assert!(calls.values().all(|&count| count > 200), "{calls:?}");
    assert_eq!(statuses.len(), 7, "{statuses:?}");
    assert!(statuses.values().all(|&count| count > 100), "{statuses:?}");
}

/// An entry that cannot be read stops the ring until the reset, and is logged with the free-running
/// head (contract 1.3).
#[test]
fn an_entry_that_cannot_be_read() {
    each_seed(100..110, |seed| {
        let mut bench = Bench::new(seed);
        bench.run(20);
        bench.finish();
        bench.unreadable = true;
        bench.tail = bench.tail.wrapping_add(1);
        let (mut log, counted) = (Vec::new(), bench.counted);
        for _ in 0..500 {
            bench.cycle();
            if bench.model.outputs.error_valid != 0 {
                log.push(bench.model.outputs.error_record);
            }
        }
        let code = ErrorCode::AdminFetch as u8;
        let record = ErrorRecord { code, index: 0, detail: bench.head.into() };
        assert_eq!(log, [record.to_bits()]);
        let out = &bench.model.outputs;
        assert_eq!((out.admin_failed, out.admin_busy, out.admin_head), (1, 1, bench.head));
        assert_eq!(bench.counted, counted);
        bench.model.reset();
        bench.unreadable = false;
        (bench.head, bench.tail, bench.statuses, bench.counted) = (0, 0, BTreeMap::new(), [0; 2]);
        bench.run(20);
        bench.finish();
    });
}
