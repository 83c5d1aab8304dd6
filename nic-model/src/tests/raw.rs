//! A peer that is no device: it sends whatever frames a test wants.

use nic_regs::admin::{Opcode, PeerState};
use nic_regs::counter::Counter;
use nic_regs::event::Kind;
use nic_regs::frame::{Header, Type, VERSION, flag};
use nic_regs::vi::Reliability;

use super::support::*;
use crate::device::{Beat, Link};
use crate::frame::{Assembler, Frame};
use crate::link::Side;

pub(super) const EPOCH: u32 = 0x5555_1111;

/// A second peer, and the VI that is its.
pub(super) const OTHER_NODE: u8 = 33;
pub(super) const OTHER_VI: u16 = 30;

/// Device A with side B played by the test.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) w: Testbench,
    pub(super) sequence: u16,
    pub(super) tag: u16,
    pub(super) credit: u8,
    pub(super) ack: u16,
    assembler: Assembler,
    pub(super) got: Vec<Frame>,
}

impl Raw {
    /// The channel is Closed; the VI is Connected.
    pub(super) fn closed(level: Reliability) -> Self {
        let mut w = Testbench::bare(&Default::default());
        w.frozen[B] = true;
        w.ok(A, Opcode::ViCreate, VIS[A].into(), vi_words(level));
        w.ok(A, Opcode::ViConnect, VIS[A].into(), connect_words(A));
        let (got, assembler) = (Vec::new(), Assembler::default());
        Self { w, sequence: 0, tag: 0, credit: 64, ack: 0, assembler, got }
    }

    /// The channel is Opening, and its SYN is here.
    pub(super) fn opening(level: Reliability) -> Self {
        let mut raw = Self::closed(level);
        raw.w.open(A, 64);
        raw.run(100);
        let syn = raw.got.remove(0).header;
        assert_eq!((syn.kind, syn.tag, syn.acknowledgement), (Type::Syn as u8, 0, 4096));
        assert_eq!((syn.credit, syn.src_node, syn.dst_node), (64, NODES[A], NODES[B]));
        raw.tag = (syn.word ^ EPOCH) as u16;
        raw
    }

    /// The channel is Open.
    pub(super) fn open(level: Reliability) -> Self {
        let mut raw = Self::opening(level);
        let syn = Header { kind: Type::Syn as u8, word: EPOCH, ..raw.plain() };
        raw.send(Header { tag: 0, ..syn }, &[]);
        let answer = raw.got.pop().unwrap().header;
        assert_eq!((answer.kind, answer.tag), (Type::SynAck as u8, raw.tag));
        assert!(raw.got.is_empty());
        assert_eq!(raw.w.peer(A), PeerState::Open);
        raw.w.hosts[A].events(ERRORS);
        raw
    }

    /// A VI of a second peer, whose channel is Opening.
    pub(super) fn other_peer(&mut self) {
        self.w.ok(A, Opcode::ViCreate, OTHER_VI.into(), vi_words(Reliability::Delivery));
        let mut words = [0; 12];
        words[0] = OTHER_NODE.into();
        self.w.ok(A, Opcode::ViConnect, OTHER_VI.into(), words);
        (words[0], words[1]) = (0, 64);
        self.w.ok(A, Opcode::PeerOpen, OTHER_NODE.into(), words);
    }

    /// The header of a message of one frame.
    pub(super) fn only(&self) -> Header {
        Header { kind: Type::Data as u8, flags: flag::FIRST | flag::LAST, ..self.plain() }
    }

    /// Why the peer is down, if that was reported.
    pub(super) fn down(&mut self) -> Option<u32> {
        let events = self.w.hosts[A].events(ERRORS);
        events.iter().find(|e| e.kind == Kind::PeerDown as u8).map(|e| e.word1)
    }

    /// A header that is right for this channel and for the VI.
    pub(super) fn plain(&self) -> Header {
        Header {
            version: VERSION,
            src_node: NODES[B],
            dst_node: NODES[A],
            tag: self.tag,
            dst_vi: VIS[A],
            src_vi: VIS[B],
            connection: CONNECTION,
            credit: self.credit,
            acknowledgement: self.ack,
            ..Header::default()
        }
    }

    /// Runs the device, and takes what it sends.
    pub(super) fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.w.step();
            if let Some(beat) = self.w.wire.end(Side::B).receive(self.w.now)
                && let Some(frame) = self.assembler.push(self.w.now, beat)
            {
                self.got.push(frame.unwrap().0);
            }
        }
    }

    pub(super) fn send(&mut self, header: Header, payload: &[u8]) {
        let header = Header { length: payload.len() as u16, ..header };
        self.send_beats(&Frame { header, payload: payload.to_vec() }.to_beats());
    }

    pub(super) fn send_beats(&mut self, beats: &[u64]) {
        for (i, &data) in beats.iter().enumerate() {
            let last = i + 1 == beats.len();
            self.w.wire.end(Side::B).send(self.w.now, Beat { data, last });
        }
        self.run(beats.len() as u64 + 60);
    }

    /// Sends a sequenced frame.
    pub(super) fn next(&mut self, header: Header, payload: &[u8]) {
        let flags = header.flags | flag::SEQUENCED;
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        self.send(Header { flags, sequence, ..header }, payload);
    }

    pub(super) fn kind(&self, kind: Type) -> Header {
        Header { kind: kind as u8, ..self.plain() }
    }

    /// Sends a Data frame of a level: sequenced or numbered, with its flags.
    pub(super) fn data(&mut self, level: Reliability, header: Header, payload: &[u8]) {
        let header = Header { kind: Type::Data as u8, ..header };
        match level {
            Reliability::Unreliable => self.send(header, payload),
            Reliability::Delivery => self.next(header, payload),
            Reliability::Reception => {
                self.next(Header { flags: header.flags | flag::RECEPTION, ..header }, payload);
            }
        }
    }

    pub(super) fn count(&self, counter: Counter) -> u32 {
        self.w.hosts[A].count(counter)
    }

    /// Frames of a kind that the device sent since the last call, by their headers.
    pub(super) fn take(&mut self, kind: Type) -> Vec<Header> {
        let got = std::mem::take(&mut self.got);
        let (these, others) = got.into_iter().partition(|f| f.header.kind == kind as u8);
        self.got = others;
        let these: Vec<Frame> = these;
        these.into_iter().map(|f| f.header).collect()
    }
}
