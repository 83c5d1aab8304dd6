//! Two engines on a link that keeps order, with every policy and in every order of events: all bytes
//! arrive, in order, no packet finds no receive, and both sides end.

use std::collections::VecDeque;

use proptest::prelude::*;
use sovia::{Engine, FlowControl, Header, Kind, Offer, Policy, Received, State, Violation};

/// One side, its receives, and what it has read.
struct Side {
    engine: Engine,
    /// Free receives, and what lies in the others.
    posted: Vec<usize>,
    receives: Vec<Vec<u8>>,
    combined: Vec<u8>,
    /// A message of which a part had no room, and its rest.
    message: u32,
    rest: u32,
    written: u64,
    read: u64,
    link: VecDeque<(u32, Vec<u8>)>,
    kinds: Vec<Kind>,
}

/// The stream of a side.
fn bytes(from: u64, count: u32) -> Vec<u8> {
    (from..from + u64::from(count)).map(|at| (at * 7 + at / 251).to_le_bytes()[0]).collect()
}

impl Side {
    fn new(policy: Policy) -> Self {
        assert_eq!(policy.check(), Ok(()));
        let count = policy.receives(policy.window);
        Self {
            engine: Engine::new(policy),
            posted: (0..count).collect(),
            receives: vec![Vec::new(); count],
            combined: Vec::new(),
            message: 0,
            rest: 0,
            written: 0,
            read: 0,
            link: VecDeque::new(),
            kinds: Vec::new(),
        }
    }

    fn post(&mut self, header: Header, data: Vec<u8>) {
        self.kinds.push(header.kind);
        self.link.push_back((header.to_bits(), data));
    }

    fn transmit(&mut self, now: u64) {
        while let Some(packet) = self.engine.transmit(now) {
            let data = match packet.combined {
                0 => Vec::new(),
                count => {
                    assert_eq!(count as usize, self.combined.len());
                    std::mem::take(&mut self.combined)
                }
            };
            self.post(packet.header, data);
        }
    }

    /// Begins a message, if the one before has gone, and sends what there is room for.
    fn write(&mut self, message: u32, now: u64) {
        if self.rest == 0 {
            (self.message, self.rest) = (message, message);
        }
        // Twice: what waited in the combining buffer may make room.
        for _ in 0..2 {
            while self.rest > 0 {
                let sent = match self.engine.offer(self.rest, self.message, now) {
                    Offer::Combine(at) => {
                        assert_eq!(at as usize, self.combined.len());
                        self.combined.extend(bytes(self.written, self.rest));
                        self.rest
                    }
                    Offer::Send { header, bytes: count, .. } => {
                        self.post(header, bytes(self.written, count));
                        count
                    }
                    Offer::Wait => break,
                    Offer::Ended => {
                        self.rest = 0;
                        break;
                    }
                };
                self.written += u64::from(sent);
                self.rest -= sent;
            }
            self.transmit(now);
        }
    }

    /// Reads up to so many bytes.
    fn read(&mut self, mut most: u32) {
        while let Some((receive, range)) = self.engine.front().filter(|_| most > 0) {
            let count = most.min(range.end - range.start);
            let place = range.start as usize..(range.start + count) as usize;
            assert!(self.receives[receive][place] == bytes(self.read, count), "at {}", self.read);
            self.read += u64::from(count);
            most -= count;
            if let Some(free) = self.engine.consume(count) {
                assert_eq!(free, receive);
                self.posted.push(free);
                self.engine.posted();
            }
        }
    }
}

/// Takes a packet from one side's link to the other side.
fn deliver(from: &mut Side, to: &mut Side) -> bool {
    let Some((bits, data)) = from.link.pop_front() else { return false };
    let receive = to.posted.pop().expect("a receive for every packet");
    let length = u32::try_from(data.len()).unwrap();
    to.receives[receive] = data;
    match to.engine.receive(bits, length, receive).unwrap() {
        Received::Free => to.posted.push(receive),
        Received::Kept => {}
    }
    true
}

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    Write(u32),
    Read(u32),
    Deliver,
    Transmit,
    Flush,
    NoDelay(bool),
    Time(u32),
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let step = prop_oneof![
        4 => (1_u32..100).prop_map(Step::Write),
        1 => (1_u32..200_000).prop_map(Step::Write),
        4 => (1_u32..300_000).prop_map(Step::Read),
        6 => Just(Step::Deliver),
        4 => Just(Step::Transmit),
        1 => Just(Step::Flush),
        1 => any::<bool>().prop_map(Step::NoDelay),
        1 => (1_u32..1_000_000_000).prop_map(Step::Time),
    ];
    prop::collection::vec((0_usize..2, step), 1..300)
}

fn policies() -> impl Strategy<Value = Policy> {
    let small = Policy { window: 3, mtu: 64, copy_limit: 16, ..Policy::COMBINE };
    let flow = prop_oneof![
        (1_u16..4).prop_map(|delayed| FlowControl::Window { delayed }),
        (1_u16..4).prop_map(|low| FlowControl::Credits { low }),
    ];
    let small = (flow, any::<bool>()).prop_map(move |(flow, combines)| Policy {
        flow,
        combine: small.combine.filter(|_| combines),
        ..small
    });
    let papers = prop::sample::select(Policy::ALL.map(|(_, policy)| policy).to_vec());
    prop_oneof![small, papers]
}

fn run(policy: Policy, steps: Vec<(usize, Step)>, first: usize) {
    let mut now = 0;
    let mut sides = [Side::new(policy), Side::new(policy)];
    for (which, step) in steps {
        let [zero, one] = &mut sides;
        let (own, other) = if which == 0 { (zero, one) } else { (one, zero) };
        match step {
            Step::Write(message) => own.write(message, now),
            Step::Read(most) => own.read(most),
            Step::Deliver => _ = deliver(other, own),
            Step::Transmit => own.transmit(now),
            Step::Flush => own.engine.flush(),
            Step::NoDelay(no_delay) => own.engine.set_no_delay(no_delay),
            Step::Time(step) => now += u64::from(step),
        }
    }
    // What was begun is sent, then the sides end one after the other.
    settle(&mut sides, now);
    assert_eq!(sides.each_ref().map(|side| side.rest), [0, 0], "nothing waits for ever");
    for which in [first, 1 - first] {
        sides[which].engine.close();
        settle(&mut sides, now);
        assert_eq!(sides[which].engine.offer(1, 1, now), Offer::Ended);
    }
    for (own, other) in [(0, 1), (1, 0)] {
        assert_eq!(sides[own].read, sides[other].written);
        assert!(sides[own].engine.is_at_end() && sides[own].engine.state() == State::Closed);
        assert_eq!(sides[own].posted.len(), policy.receives(policy.window));
    }
}

/// Lets everything happen that can.
fn settle([zero, one]: &mut [Side; 2], now: u64) {
    loop {
        let mut happened = false;
        for first in [true, false] {
            let (own, other) =
                if first { (&mut *zero, &mut *one) } else { (&mut *one, &mut *zero) };
            own.engine.flush();
            if own.rest > 0 {
                own.write(0, now);
            }
            own.transmit(now);
            other.read(u32::MAX);
            other.transmit(now);
            while deliver(own, other) {
                happened = true;
                other.read(u32::MAX);
                other.transmit(now);
            }
        }
        if !happened && zero.link.is_empty() && one.link.is_empty() {
            return;
        }
    }
}

proptest! {
    #[test]
    fn all_bytes_arrive_in_order_and_both_sides_end(
        policy in policies(),
        steps in steps(),
        first in 0_usize..2,
    ) {
        run(policy, steps, first);
    }
}

/// Packets of each kind that a stream one way takes.
fn stream(policy: Policy, messages: u32, length: u32) -> [usize; 4] {
    let mut sides = [Side::new(policy), Side::new(policy)];
    for _ in 0..messages {
        sides[0].write(length, 0);
        let [zero, one] = &mut sides;
        while zero.rest > 0 {
            while deliver(zero, one) {
                one.read(u32::MAX);
                one.transmit(0);
            }
            while deliver(one, zero) {}
            zero.write(0, 0);
        }
    }
    settle(&mut sides, 0);
    let count = |side: usize, kind| sides[side].kinds.iter().filter(|k| **k == kind).count();
    [
        count(0, Kind::Data),
        count(1, Kind::Ack),
        count(0, Kind::CreditRequest),
        count(1, Kind::CreditResponse),
    ]
}

/// What the papers say of each variant, in packets.
#[test]
fn each_policy_sends_the_packets_that_the_papers_describe() {
    assert_eq!(stream(Policy::SINGLE, 320, 32 << 10), [320, 320, 0, 0]);
    assert_eq!(stream(Policy::FLOWCTRL, 320, 32 << 10), [320, 320, 0, 0]);
    assert_eq!(stream(Policy::DACKS, 320, 32 << 10), [320, 320 / 16, 0, 0]);
    // 512 messages of 64 bytes fill a packet.
    assert_eq!(stream(Policy::COMBINE, 5120, 64), [10, 0, 0, 0]);
    assert_eq!(stream(Policy::DACKS, 5120, 64), [5120, 5120 / 16, 0, 0]);
    // 4 packets of 8 KiB each; requests when 32 have gone.
    assert_eq!(stream(Policy::STREAM_SOCKETS, 320, 32 << 10), [1280, 0, 39, 39]);
}

/// The four rules of SOVIA 3.2.3, and `TCP_NODELAY`.
#[test]
fn small_messages_wait_until_a_rule_sends_them() {
    let sent = |then: &dyn Fn(&mut Side)| {
        let mut side = Side::new(Policy::COMBINE);
        side.write(100, 5);
        side.write(200, 6);
        assert!(side.link.is_empty() && side.engine.deadline() == Some(100_000_005));
        then(&mut side);
        side.link.iter().map(|(_, data)| data.len()).collect::<Vec<_>>()
    };
    assert_eq!(sent(&|side| side.transmit(100_000_004)), []);
    assert_eq!(sent(&|side| side.transmit(100_000_005)), [300]);
    assert_eq!(sent(&|side| side.write(2049, 7)), [300, 2049]);
    assert_eq!(sent(&|side| (0..20).for_each(|_| side.write(2000, 7))), [300 + 16 * 2000]);
    let flushed = |side: &mut Side| {
        side.engine.flush();
        side.transmit(7);
    };
    assert_eq!(sent(&flushed), [300]);
    let closed = |side: &mut Side| {
        side.engine.close();
        side.transmit(7);
    };
    assert_eq!(sent(&closed), [300, 0]);
    let at_once = |side: &mut Side| {
        side.engine.set_no_delay(true);
        side.write(10, 7);
    };
    assert_eq!(sent(&at_once), [300, 10]);
}

/// What the other side must not do.
#[test]
fn a_side_that_breaks_the_protocol_is_named() {
    let engine = || Engine::new(Policy { window: 2, ..Policy::SINGLE });
    let bits = |kind, acknowledged| Header { kind, acknowledged }.to_bits();
    let once = |bits, length| engine().receive(bits, length, 0).unwrap_err();
    assert_eq!(once(0, 0), Violation::Header(0));
    assert_eq!(once(bits(Kind::Data, 0), 0), Violation::Length(Kind::Data, 0));
    assert_eq!(once(bits(Kind::Data, 0), 32_769), Violation::Length(Kind::Data, 32_769));
    assert_eq!(once(bits(Kind::Fin, 0), 1), Violation::Length(Kind::Fin, 1));
    assert_eq!(once(bits(Kind::Ack, 1), 0), Violation::Acknowledged(1));
    for kind in [Kind::Wakeup, Kind::CreditRequest, Kind::CreditResponse, Kind::FinAck] {
        assert_eq!(once(bits(kind, 0), 0), Violation::Order(kind, State::Normal));
    }
    let mut full = engine();
    for receive in 0..2 {
        assert_eq!(full.receive(bits(Kind::Data, 0), 1, receive), Ok(Received::Kept));
    }
    assert_eq!(full.receive(bits(Kind::Data, 0), 1, 2), Err(Violation::Window));
    let mut ended = engine();
    ended.receive(bits(Kind::Fin, 0), 0, 0).unwrap();
    let order = |kind| Err(Violation::Order(kind, State::CloseWait));
    assert_eq!(ended.receive(bits(Kind::Data, 0), 1, 0), order(Kind::Data));
    assert_eq!(ended.receive(bits(Kind::Fin, 0), 0, 0), order(Kind::Fin));
    let mut credits = Engine::new(Policy::STREAM_SOCKETS);
    credits.receive(bits(Kind::CreditRequest, 0), 0, 0).unwrap();
    let again = credits.receive(bits(Kind::CreditRequest, 0), 0, 0);
    assert_eq!(again, Err(Violation::Order(Kind::CreditRequest, State::Normal)));
}
