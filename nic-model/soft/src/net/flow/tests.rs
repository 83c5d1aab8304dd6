//! Two ends over a simulated network that loses, duplicates and reorders, in simulated time.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A microsecond and a millisecond.
const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A source of chances; the same for the same seed.
struct Chances(u64);

impl Chances {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn is_one_in(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// What the network does.
#[derive(Clone, Copy, Debug)]
struct Network {
    loss: u64,
    duplicates: u64,
    /// Longest extra delay.
    jitter: u64,
    delay: u64,
}

#[derive(Clone, Debug)]
enum Frame {
    /// To the receiving end.
    Data {
        sequence: u32,
        bytes: Vec<u8>,
    },
    Ack {
        ack: Ack,
        bits: Vec<u8>,
    },
}

/// One end that sends, one that receives.
struct Pair {
    sender: Sender,
    receiver: Receiver,
    wire: BTreeMap<(u64, u64), Frame>,
    chances: Chances,
    network: Network,
    frames: u64,
    arrived: Vec<Vec<u8>>,
    now: u64,
    most_in_flight: usize,
}

impl Pair {
    fn new(is_reliable: bool, network: Network, seed: u64) -> Self {
        let limits = Limits { window: 64, time_out_ns: 5_000 * MS };
        let Flow { sender, receiver } = Flow::new(0, is_reliable, limits);
        Self {
            sender,
            receiver,
            wire: BTreeMap::new(),
            chances: Chances(seed),
            network,
            frames: 0,
            arrived: Vec::new(),
            now: 0,
            most_in_flight: 0,
        }
    }

    fn transmit(&mut self, frame: &Frame) {
        let copies = if self.chances.is_one_in(self.network.duplicates) { 2 } else { 1 };
        for _ in 0..copies {
            if self.chances.is_one_in(self.network.loss) {
                continue;
            }
            let jitter = self.chances.next() % (self.network.jitter + 1);
            self.frames += 1;
            self.wire.insert((self.now + self.network.delay + jitter, self.frames), frame.clone());
        }
    }

    fn flush(&mut self) {
        loop {
            let frames: Vec<Frame> = (0..self.sender.batch(3, 1_000))
                .map(|at| {
                    let (sequence, bytes, _) = self.sender.queued(at).expect("it is queued");
                    Frame::Data { sequence, bytes: bytes.clone() }
                })
                .collect();
            if frames.is_empty() {
                break;
            }
            for frame in frames {
                self.sender.sent(self.now);
                self.transmit(&frame);
            }
        }
        self.most_in_flight = self.most_in_flight.max(self.wire.len());
    }

    fn acknowledge(&mut self) {
        if self.receiver.is_ack_due(self.now) {
            let mut bits = [0; BITS_MAX];
            let bytes = self.receiver.held_bits(&mut bits);
            let frame = Frame::Ack { ack: self.receiver.ack(), bits: bits[..bytes].to_vec() };
            self.receiver.acknowledged(true);
            self.transmit(&frame);
        }
    }

    fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Ack { ack, bits } => self.sender.acknowledged(self.now, ack, &bits),
            Frame::Data { sequence, bytes } => {
                if self.receiver.arrived(sequence, &bytes) == Arrival::Next {
                    let mut next = Some(bytes);
                    while let Some(bytes) = next {
                        self.arrived.push(bytes);
                        next = self.receiver.advance(self.now, false);
                    }
                }
            }
        }
    }

    /// Sends packets with the numbers 0 and so on; false if the connection broke.
    fn run(&mut self, count: u32, is_control: bool) -> bool {
        let mut posted = 0;
        loop {
            while posted < count && self.sender.has_credit() {
                let mut bytes = self.sender.buffer();
                bytes.clear();
                bytes.extend_from_slice(&posted.to_le_bytes());
                self.sender.push(self.now, bytes, is_control);
                posted += 1;
            }
            self.flush();
            if posted == count && self.sender.is_empty() {
                return true;
            }
            let next = self.wire.keys().next().map(|(at, _)| *at);
            let deadlines = [next, self.sender.deadline(), self.receiver.ack_at()];
            let at = deadlines.into_iter().flatten().min().expect("something happens");
            self.now = self.now.max(at);
            while let Some(entry) =
                self.wire.first_entry().filter(|entry| entry.key().0 <= self.now)
            {
                let frame = entry.remove();
                self.take(frame);
            }
            if !self.sender.on_timer(self.now) {
                return false;
            }
            self.acknowledge();
        }
    }

    fn numbers(&self) -> Vec<u32> {
        let number = |bytes: &Vec<u8>| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        self.arrived.iter().map(number).collect()
    }
}

const GOOD: Network = Network { loss: 0, duplicates: 0, jitter: 0, delay: 50 * US };

#[test]
fn nothing_is_sent_twice_on_a_good_network() {
    let mut pair = Pair::new(true, GOOD, 1);
    assert!(pair.run(5_000, false));
    assert_eq!(pair.numbers(), (0..5_000).collect::<Vec<_>>());
    assert_eq!(pair.sender.take_retransmitted(), 0);
    // The credits of 64 packets are used: a round trip carries that many.
    assert!(pair.now < 5_000 / 64 * 150 * US, "{}", pair.now);
}

#[test]
fn a_lost_packet_is_sent_again_before_its_time_is_over() {
    let mut pair = Pair::new(true, Network { loss: 1, ..GOOD }, 3);
    assert!(pair.run(20_000, false));
    assert_eq!(pair.numbers(), (0..20_000).collect::<Vec<_>>());
    let again = pair.sender.take_retransmitted();
    assert!((100..2_000).contains(&again), "{again}");
    assert!(pair.now < 2_000 * MS, "{}", pair.now);
}

#[test]
fn a_dead_network_breaks_the_connection_within_its_time_out() {
    for seed in 0..10 {
        let mut pair = Pair::new(true, Network { loss: 100, ..GOOD }, seed);
        assert!(!pair.run(10, false));
        assert!((5_000 * MS..7_000 * MS).contains(&pair.now), "{}", pair.now);
    }
}

#[test]
fn an_unreliable_connection_loses_packets_and_never_repeats_or_reorders_them() {
    let network = Network { loss: 10, duplicates: 10, jitter: 100 * US, ..GOOD };
    let mut pair = Pair::new(false, network, 7);
    assert!(pair.run(2_000, false));
    let numbers = pair.numbers();
    assert!(numbers.len() > 200 && numbers.len() < 2_000, "{}", numbers.len());
    assert!(numbers.is_sorted_by(|a, b| a < b));
}

#[test]
fn a_control_packet_of_an_unreliable_connection_arrives() {
    for seed in 0..100 {
        let mut pair = Pair::new(false, Network { loss: 60, ..GOOD }, seed);
        let mut bytes = pair.sender.buffer();
        bytes.push(9);
        pair.sender.push(0, bytes, true);
        // Its sender stops when it learns that it arrived; here, when it did.
        while pair.arrived.is_empty() {
            pair.flush();
            let next = pair.wire.keys().next().map(|(at, _)| *at);
            let at = [next, pair.sender.deadline()].into_iter().flatten().min();
            pair.now = pair.now.max(at.expect("it is in flight"));
            while let Some(entry) = pair.wire.first_entry().filter(|e| e.key().0 <= pair.now) {
                let frame = entry.remove();
                pair.take(frame);
            }
            assert!(pair.sender.on_timer(pair.now));
        }
        assert_eq!(pair.arrived[0], [9]);
    }
}

#[test]
fn acknowledgements_of_what_was_never_sent_change_nothing() {
    let mut sender = Flow::new(0, true, Limits { window: 64, time_out_ns: MS }).sender;
    sender.push(0, vec![1], false);
    let ack = |next| Ack { next, received: next, window: 64 };
    for next in [2, 3, 1_000, u32::MAX, 1 << 31] {
        sender.acknowledged(1, ack(next), &[0xff; BITS_MAX]);
        assert!(!sender.is_empty(), "{next}");
    }
    sender.acknowledged(1, ack(1), &[0xff; BITS_MAX]);
    assert!(sender.is_empty());
}

#[test]
fn a_batch_is_of_one_length_but_for_its_last_packet() {
    let mut sender = Flow::new(0, true, Limits { window: 64, time_out_ns: MS }).sender;
    for length in [5, 5, 5, 3, 5, 5, 7, 7] {
        sender.push(0, vec![0; length], false);
    }
    for expected in [4, 2, 1, 1] {
        // Two of seven bytes are more than ten.
        let count = sender.batch(4, if expected == 1 { 10 } else { 100 });
        assert_eq!(count, expected);
        (0..count).for_each(|_| sender.sent(1));
    }
    assert_eq!(sender.batch(4, 100), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn packets_arrive_once_and_in_order_whatever_the_network_does(
        seed: u64, loss in 0_u64..30, duplicates in 0_u64..30, jitter in 0..5 * MS, delay in 0..5 * MS,
        count in 1_u32..600,
    ) {
        let mut pair = Pair::new(true, Network { loss, duplicates, jitter, delay }, seed);
        let whole = pair.run(count, false);
        // So many time-outs in a row are possible, and rare.
        prop_assert!(whole || loss > 20);
        let numbers = pair.numbers();
        prop_assert!(numbers.iter().copied().eq(0..u32::try_from(numbers.len()).unwrap()));
        prop_assert!(!whole || numbers.len() == count as usize);
    }
}
