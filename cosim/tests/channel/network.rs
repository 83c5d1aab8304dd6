//! Several nodes and the links between them, with faults.

use crate::node::{Frame, Node};
use cosim::random::Random;
use nic_regs::frame::{Header, Type, flag};
use std::collections::{BTreeMap, VecDeque};

/// Probabilities, for each frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) drop: f64,
    pub(crate) corrupt: f64,
    pub(crate) duplicate: f64,
    pub(crate) cut: f64,
    pub(crate) lengthen: f64,
    pub(crate) noise: f64,
    /// Cycles of delay, at most; more than a frame's time reorders.
    pub(crate) delay: u64,
}

#[derive(Default)]
pub(crate) struct Network {
    pub(crate) nodes: Vec<Node>,
    pub(crate) faults: Faults,
    pub(crate) random: Random,
    /// By arrival time and serial number.
    flying: BTreeMap<(u64, u64), (usize, Vec<u64>)>,
    serial: u64,
    pub(crate) now: u64,
    pub(crate) cut_off: bool,
    /// Two nodes on a wire, beat by beat, instead of whole frames.
    pub(crate) wire: bool,
    /// Cycles that a beat spends on the wire, besides one.
    pub(crate) latency: u64,
    on_wire: VecDeque<(u64, usize, (u64, bool))>,
    /// Every frame put on a link: time, source, header.
    pub(crate) seen: Vec<(u64, Header)>,
}

impl Network {
    pub(crate) fn new(count: u8, seed: u64) -> Self {
        let nodes = (0..count).map(|id| Node::new(id, seed)).collect();
        Self { nodes, random: Random::new(seed), ..Self::default() }
    }

    fn send(&mut self, to: usize, beats: Vec<u64>) {
        let delay = if self.faults.delay == 0 { 0 } else { self.random.below(self.faults.delay) };
        self.serial += 1;
        self.flying.insert((self.now + 1 + delay, self.serial), (to, beats));
    }

    fn transport(&mut self, mut frame: Vec<u64>) {
        let header = Header::from_beats([frame[0], frame[1], frame[2]]);
        self.seen.push((self.now, header));
        let to = usize::from(header.dst_node);
        if self.cut_off || to >= self.nodes.len() || self.random.chance(self.faults.drop) {
            return;
        }
        if self.random.chance(self.faults.duplicate) {
            self.send(to, frame.clone());
        }
        if self.random.chance(self.faults.corrupt) {
            let at = self.random.below(frame.len() as u64) as usize;
            frame[at] ^= 1 << self.random.below(64);
        }
        if self.random.chance(self.faults.cut) {
            let length = 1 + self.random.below(frame.len() as u64 - 1) as usize;
            frame.truncate(length);
        }
        if self.random.chance(self.faults.lengthen) {
            let more = 1 + self.random.below(1200);
            frame.extend((0..more).map(|_| self.random.bits()));
        }
        self.send(to, frame);
        if self.random.chance(self.faults.noise) {
            let length = 1 + self.random.below(6);
            let noise = (0..length).map(|_| self.random.bits()).collect();
            self.send(to, noise);
        }
    }

    pub(crate) fn step(&mut self) {
        while let Some((&(at, serial), _)) = self.flying.first_key_value() {
            if at > self.now {
                break;
            }
            let (to, frame) = self.flying.remove(&(at, serial)).unwrap();
            let last = frame.len() - 1;
            let beats = frame.into_iter().enumerate().map(|(n, beat)| (beat, n == last));
            self.nodes[to].rx.extend(beats);
        }
        for at in 0..self.nodes.len() {
            if let Some(frame) = self.nodes[at].step()
                && !self.wire
            {
                self.transport(frame);
            }
        }
        if self.wire {
            for at in 0..2 {
                if let Some(beat) = self.nodes[at].tx_now {
                    self.on_wire.push_back((self.now + self.latency, 1 - at, beat));
                }
            }
            while let Some(&(time, to, beat)) = self.on_wire.front()
                && time <= self.now
            {
                self.nodes[to].rx.push_back(beat);
                self.on_wire.pop_front();
            }
        }
        self.now += 1;
    }

    pub(crate) fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step();
        }
    }

    /// Runs until `done`, or fails.
    pub(crate) fn until(&mut self, limit: u64, what: &str, done: impl Fn(&Self) -> bool) -> u64 {
        let start = self.now;
        while !done(self) {
            self.step();
            assert!(self.now - start < limit, "{what}: not within {limit} cycles");
        }
        self.now - start
    }

    /// Opens the channel between two nodes (or of a node with itself).
    pub(crate) fn open(&mut self, a: u8, b: u8, credits: u8) {
        let epochs = [self.random.bits() as u32, self.random.bits() as u32];
        let before: Vec<usize> = self.nodes.iter().map(|node| node.events.len()).collect();
        self.nodes[usize::from(a)].admin.push_back((0, b, epochs[0], credits));
        if a != b {
            self.nodes[usize::from(b)].admin.push_back((0, a, epochs[1], credits));
        }
        self.until(2_000_000, "opening", |network| {
            [a, b]
                .iter()
                .all(|&n| network.nodes[usize::from(n)].events.len() > before[usize::from(n)])
        });
    }

    /// Everything that was committed has arrived, and all chunks are free.
    pub(crate) fn settle(&mut self, limit: u64) {
        self.until(limit, "settling", |network| {
            network.flying.is_empty()
                && network.nodes.iter().all(Node::idle)
                && network.nodes.iter().all(|node| node.model.outputs.free_chunks == 128)
        });
        self.run(20_000);
        for node in &self.nodes {
            assert_eq!(node.model.outputs.free_chunks, 128, "node {} leaks", node.id);
        }
    }
}

/// A random frame of the send engine; `serial` makes it recognisable.
pub(crate) fn random_frame(random: &mut Random, peer: u8, serial: u32, unsequenced: bool) -> Frame {
    let kind = match random.below(8) {
        0 => Type::ViAck,
        1 => Type::ViRefuse,
        2 => Type::Fin,
        3 => Type::Message,
        _ => Type::Data,
    };
    let length = match (kind, random.below(8)) {
        (Type::Data, 0..3) => random.below(40),
        (Type::Data, 3) => 256 * random.below(17),
        (Type::Data, 4) => 4096,
        (Type::Data, _) => random.below(4097),
        (Type::Message, _) => 48,
        _ => 0,
    };
    let mut header = Header {
        kind: kind as u8,
        length: length as u16,
        dst_vi: random.bits() as u16,
        src_vi: random.bits() as u16,
        connection: random.bits() as u16,
        flags: flag::SEQUENCED | (random.below(8) as u8),
        word: serial,
        ..Header::default()
    };
    if kind == Type::Data && unsequenced {
        header.flags &= !flag::SEQUENCED;
        header.sequence = serial as u16;
    }
    let payload = (0..header.payload_beats()).map(|_| random.bits()).collect();
    Frame { peer, header, payload }
}
