//! One Verilated channel with its neighbours: a sender on the pool, a receiver on staging, an
//! admin, the VIs' killer, event queues. All of them take random time; all of them check the
//! handshakes.

use crate::taker::Taker;
use cosim::random::Random;
use cosim::verilated::blocks::channel::Model;
use nic_regs::counter::Counter;
use nic_regs::frame::{CRC_INIT, Header, Type, crc_step, flag};
use std::collections::VecDeque;

/// A frame as the clients see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Destination on the way out, source on the way in.
    pub(crate) peer: u8,
    pub(crate) header: Header,
    pub(crate) payload: Vec<u64>,
}

impl Frame {
    /// Whether the channel must deliver it.
    pub(crate) fn sequenced(&self) -> bool {
        self.header.kind != Type::Data as u8 || self.header.flags & flag::SEQUENCED != 0
    }
    /// What must arrive unchanged.
    pub(crate) fn essence(&self) -> Self {
        let h = self.header;
        let header = Header {
            kind: h.kind,
            length: h.length,
            dst_vi: h.dst_vi,
            src_vi: h.src_vi,
            connection: h.connection,
            flags: h.flags,
            word: h.word,
            ..Header::default()
        };
        Self { peer: 0, header, payload: self.payload.clone() }
    }
}

/// The beats of a frame, CRC included.
pub(crate) fn beats(header: Header, payload: &[u64]) -> Vec<u64> {
    let mut beats = header.to_beats().to_vec();
    beats.extend_from_slice(payload);
    let crc = !beats.iter().fold(CRC_INIT, |state, &beat| crc_step(state, beat));
    beats.push(crc.into());
    beats
}

/// What became of a frame that the sender offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    Aborted,
    /// No pool space or no credits; not retried.
    Refused,
    Down,
}

#[derive(Clone, Debug)]
enum Sender {
    Idle(u64),
    Ask,
    Beats(usize),
    Commit(bool),
}

#[derive(Clone, Debug, Default)]
enum Receiver {
    #[default]
    Idle,
    Read(usize),
    Hold(u64),
    Pause,
}

/// Random behaviour of the neighbours.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manners {
    pub(crate) tx_stall: f64,
    pub(crate) rx_pause: f64,
    pub(crate) beat_pause: f64,
    pub(crate) send_pause: u64,
    pub(crate) hold: u64,
    pub(crate) abort: f64,
    pub(crate) retry: bool,
    pub(crate) read: bool,
    /// Frames that the receiver takes ahead (0: it never takes, and releases the offered one).
    pub(crate) ahead: usize,
}

impl Default for Sender {
    fn default() -> Self {
        Self::Idle(0)
    }
}

pub(crate) const BRISK: Manners = Manners {
    tx_stall: 0.0,
    rx_pause: 0.0,
    beat_pause: 0.0,
    send_pause: 0,
    hold: 0,
    abort: 0.0,
    retry: true,
    read: true,
    ahead: 0,
};

#[derive(Default)]
pub(crate) struct Node {
    pub(crate) id: u8,
    pub(crate) model: Model,
    pub(crate) random: Random,
    pub(crate) manners: Manners,
    pub(crate) now: u64,
    pub(crate) counts: Vec<u64>,
    pub(crate) outbox: VecDeque<Frame>,
    pub(crate) outcomes: Vec<(Frame, Outcome)>,
    sender: Sender,
    /// A frame that is asked for while another is filled, and whether it was granted.
    ahead: Option<(Frame, bool)>,
    pub(crate) inbox: Vec<Frame>,
    receiver: Receiver,
    pub(crate) taker: Taker,
    reading: Frame,
    origin: u16,
    pub(crate) refuse_messages: bool,
    pub(crate) admin: VecDeque<(u8, u8, u32, u8)>,
    admin_pause: bool,
    pub(crate) answers: Vec<(u8, u8)>,
    pub(crate) kills: Vec<(u64, u8)>,
    kill_left: Option<u64>,
    pub(crate) kill_time: u64,
    pub(crate) events: Vec<(u64, u32, u32)>,
    event_left: Option<u64>,
    pub(crate) events_full: bool,
    pub(crate) drain: Option<u16>,
    pub(crate) rx: VecDeque<(u64, bool)>,
    tx: Vec<u64>,
    tx_held: Option<(u64, u8)>,
    pub(crate) tx_ready: bool,
    pub(crate) tx_beats: u64,
    /// The beat that left in this cycle.
    pub(crate) tx_now: Option<(u64, bool)>,
    pub(crate) stamps: [u64; 3],
}

impl Node {
    pub(crate) fn new(id: u8, seed: u64) -> Self {
        let mut node = Self {
            id,
            random: Random::new(seed ^ u64::from(id) << 32),
            manners: BRISK,
            counts: vec![0; 64],
            kill_time: 300,
            tx_ready: true,
            ..Self::default()
        };
        let i = &mut node.model.inputs;
        (i.node, i.enable) = (id, 1);
        (i.ack_delay, i.retry_timeout, i.retry_limit) = (250, 2_000, 8);
        (i.keepalive, i.error_queue, i.error_queue_valid) = (250_000, 5, 1);
        (0..4).for_each(|_| node.model.reset());
        let mut cycles = 0;
        while node.model.outputs.ready == 0 {
            node.model.cycle();
            cycles += 1;
            assert!(cycles < 200, "not ready");
        }
        node
    }

    pub(crate) fn count(&self, counter: Counter) -> u64 {
        self.counts[counter as usize]
    }

    /// Nothing to send, read, or ask for.
    pub(crate) fn idle(&self) -> bool {
        self.outbox.is_empty()
            && matches!(self.sender, Sender::Idle(_))
            && matches!(self.receiver, Receiver::Idle)
            && self.taker.idle()
            && self.admin.is_empty()
            && self.rx.is_empty()
            && self.model.outputs.staging_valid == 0
    }

    /// One cycle; a frame that has left whole.
    pub(crate) fn step(&mut self) -> Option<Vec<u64>> {
        self.drive();
        self.model.cycle();
        self.now += 1;
        let o = &self.model.outputs;
        for (bit, count) in self.counts.iter_mut().enumerate() {
            *count += o.counts >> bit & 1;
        }
        let stamps = [o.stamp_first_beat_out, o.stamp_last_beat_out, o.stamp_first_beat_in];
        for (at, stamp) in stamps.into_iter().enumerate() {
            if stamp != 0 && self.stamps[at] == 0 {
                self.stamps[at] = self.now;
            }
        }
        self.sample_sender();
        self.sample_receiver();
        self.sample_rest();
        let frame = self.sample_tx()?;
        self.check(&frame);
        Some(frame)
    }

    fn drive(&mut self) {
        let Manners { tx_stall, rx_pause, .. } = self.manners;
        let i = &mut self.model.inputs;
        i.tx_ready = u8::from(self.tx_ready && !self.random.chance(tx_stall));
        i.rx_valid = 0;
        i.rx_data = self.random.bits();
        i.rx_last = u8::from(self.random.below(2) == 0);
        if !self.rx.is_empty() && !self.random.chance(rx_pause) {
            let (data, last) = self.rx.pop_front().unwrap();
            (i.rx_valid, i.rx_data, i.rx_last) = (1, data, last.into());
        }
        self.drive_sender();
        let i = &mut self.model.inputs;
        i.staging_release = 0;
        i.staging_refused = 0;
        if let Receiver::Read(at) = self.receiver {
            i.staging_address = u16::try_from(at).unwrap();
            i.staging_origin = self.origin;
        }
        if let Receiver::Hold(left) = &mut self.receiver {
            if *left == 0 {
                i.staging_release = 1;
                i.staging_refused = u8::from(
                    self.refuse_messages && self.reading.header.kind == Type::Message as u8,
                );
            } else {
                *left -= 1;
            }
        }
        if self.manners.ahead > 0 {
            let refuse = self.refuse_messages;
            self.taker.drive(&mut self.model, &mut self.random, &self.manners, refuse);
        }
        let i = &mut self.model.inputs;
        i.peers_valid = 0;
        if self.admin_pause {
            self.admin_pause = false;
        } else if let Some(&(op, peer, epoch, credits)) = self.admin.front() {
            i.peers_valid = 1;
            (i.peers_op, i.peers_peer) = (op, peer);
            (i.peers_epoch, i.peers_credits) = (epoch, credits);
        }
        i.kill_done = u8::from(self.kill_left == Some(0));
        i.events_done = u8::from(self.event_left == Some(0));
        i.events_outcome = self.events_full.into();
        i.drain_channel = self.drain.is_some().into();
        i.drain_channel_queue = self.drain.take().unwrap_or(0);
    }

    fn drive_sender(&mut self) {
        let i = &mut self.model.inputs;
        i.pool_ask_valid = 0;
        i.pool_commit_valid = 0;
        // A beat that was offered stays.
        let offered = i.pool_beat_valid != 0;
        i.pool_beat_valid = 0;
        if let Sender::Idle(left) = &mut self.sender {
            if *left > 0 {
                *left -= 1;
            } else if !self.outbox.is_empty() {
                self.sender = Sender::Ask;
            }
        }
        if let Some(frame) = self.outbox.front() {
            let h = &frame.header;
            match &self.sender {
                Sender::Idle(_) => {}
                Sender::Ask => {
                    i.pool_ask_valid = 1;
                    i.pool_ask_data = u8::from(h.kind == Type::Data as u8);
                    i.pool_ask_sequenced = frame.sequenced().into();
                    i.pool_ask_peer = frame.peer;
                    i.pool_ask_length = h.length;
                }
                Sender::Beats(at) => {
                    if offered || !self.random.chance(self.manners.beat_pause) {
                        i.pool_beat_valid = 1;
                        i.pool_beat_data = frame.payload[*at];
                    }
                }
                Sender::Commit(abort) => {
                    i.pool_commit_valid = 1;
                    i.pool_commit_abort = (*abort).into();
                    i.pool_kind = h.kind;
                    i.pool_dst_vi = h.dst_vi;
                    i.pool_src_vi = h.src_vi;
                    i.pool_connection = h.connection;
                    i.pool_flags = h.flags;
                    i.pool_unsequenced = h.sequence;
                    i.pool_word = h.word;
                }
            }
        }
        if let Some((frame, false)) = &self.ahead {
            i.pool_ask_valid = 1;
            i.pool_ask_data = 1;
            i.pool_ask_sequenced = frame.sequenced().into();
            i.pool_ask_peer = frame.peer;
            i.pool_ask_length = frame.header.length;
        }
    }

    fn sample_sender(&mut self) {
        let o = &self.model.outputs;
        if let Some((_, granted)) = &mut self.ahead
            && o.pool_ask_done != 0
        {
            assert_eq!(o.pool_ask_ok, 1);
            *granted = true;
        }
        let pause = self.manners.send_pause;
        match self.sender {
            Sender::Idle(_) => assert_eq!((o.pool_ask_done, o.pool_commit_done), (0, 0)),
            Sender::Ask => {
                if o.pool_ask_done == 0 {
                    return;
                }
                let frame = self.outbox.front().unwrap();
                assert!(o.pool_ask_ok & o.pool_ask_down == 0);
                let end = Sender::Commit(self.random.chance(self.manners.abort));
                if o.pool_ask_ok != 0 {
                    self.sender = if frame.payload.is_empty() { end } else { Sender::Beats(0) };
                } else if o.pool_ask_down == 0 && self.manners.retry {
                    self.sender = Sender::Idle(1 + self.random.below(20));
                } else {
                    let down = o.pool_ask_down != 0;
                    let outcome = if down { Outcome::Down } else { Outcome::Refused };
                    self.outcomes.push((self.outbox.pop_front().unwrap(), outcome));
                    self.sender = Sender::Idle(1);
                }
            }
            Sender::Beats(at) => {
                if o.pool_beat_ready == 0 || self.model.inputs.pool_beat_valid == 0 {
                    return;
                }
                let all = at + 1 == self.outbox[0].payload.len();
                self.sender = if self.random.chance(self.manners.abort / 100.0) {
                    Sender::Commit(true)
                } else if all {
                    Sender::Commit(self.random.chance(self.manners.abort))
                } else {
                    Sender::Beats(at + 1)
                };
            }
            Sender::Commit(abort) => {
                if o.pool_commit_done != 0 {
                    let outcome = if abort { Outcome::Aborted } else { Outcome::Committed };
                    self.outcomes.push((self.outbox.pop_front().unwrap(), outcome));
                    self.sender =
                        Sender::Idle(if pause == 0 { 0 } else { self.random.below(pause) });
                    if let Some((frame, _)) = self.ahead.take() {
                        self.outbox.push_front(frame);
                        self.sender = Sender::Beats(0);
                    }
                }
            }
        }
    }

    fn sample_receiver(&mut self) {
        if self.manners.ahead > 0 {
            self.inbox.extend(self.taker.sample(&self.model));
            return;
        }
        let o = &self.model.outputs;
        let header = Header::from_beats([o.staging_header0, o.staging_header1, o.staging_header2]);
        match self.receiver {
            Receiver::Idle => {
                if o.staging_valid != 0 && self.manners.read {
                    self.reading = Frame { peer: header.src_node, header, payload: Vec::new() };
                    self.origin = o.staging_base;
                    self.receiver = Receiver::Read(0);
                }
            }
            Receiver::Read(at) => {
                assert!(o.staging_valid != 0 && header == self.reading.header, "head unstable");
                // The data of the address of the cycle before.
                if at > 0 {
                    self.reading.payload.push(o.staging_data);
                }
                let length = self.reading.header.payload_beats();
                self.receiver = if at < length {
                    Receiver::Read(at + 1)
                } else {
                    let hold = self.manners.hold;
                    Receiver::Hold(if hold == 0 { 0 } else { self.random.below(hold) })
                };
            }
            Receiver::Hold(_) => {
                assert!(o.staging_valid != 0 && header == self.reading.header, "head unstable");
                if self.model.inputs.staging_release != 0 {
                    self.inbox.push(std::mem::take(&mut self.reading));
                    self.receiver = Receiver::Pause;
                }
            }
            Receiver::Pause => {
                assert_eq!(o.staging_valid, 0, "no pause after a release");
                self.receiver = Receiver::Idle;
            }
        }
    }

    fn sample_rest(&mut self) {
        let o = &self.model.outputs;
        if o.peers_done != 0 {
            self.admin.pop_front().expect("an answer without a question");
            self.answers.push((o.peers_status, o.peers_state));
            self.admin_pause = true;
        }
        self.kill_left = match self.kill_left {
            Some(0) => None,
            Some(left) => Some(left - 1),
            None if o.kill_valid != 0 => {
                self.kills.push((self.now, o.kill_peer));
                Some(self.kill_time)
            }
            None => None,
        };
        self.event_left = match self.event_left {
            Some(0) => {
                if !self.events_full {
                    assert_eq!(o.events_queue, self.model.inputs.error_queue);
                    self.events.push((self.now, o.events_word0, o.events_word1));
                }
                None
            }
            Some(left) => Some(left - 1),
            None if o.events_valid != 0 => Some(self.random.below(30)),
            None => None,
        };
    }

    /// The beats of a frame that has left whole, good or not.
    fn sample_tx(&mut self) -> Option<Vec<u64>> {
        self.tx_now = None;
        let o = &self.model.outputs;
        if let Some(held) = self.tx_held.take() {
            assert!(o.tx_valid != 0 && held == (o.tx_data, o.tx_last), "a beat changed");
        }
        if o.tx_valid == 0 {
            return None;
        }
        if self.model.inputs.tx_ready == 0 {
            self.tx_held = Some((o.tx_data, o.tx_last));
            return None;
        }
        self.tx_beats += 1;
        self.tx_now = Some((o.tx_data, o.tx_last != 0));
        self.tx.push(o.tx_data);
        (o.tx_last != 0).then(|| std::mem::take(&mut self.tx))
    }

    fn check(&self, frame: &[u64]) {
        let header = Header::from_beats([frame[0], frame[1], frame[2]]);
        assert_eq!(frame.len(), 4 + header.payload_beats(), "{header:?}");
        assert_eq!(frame, beats(header, &frame[3..frame.len() - 1]), "CRC of {header:?}");
        assert_eq!((header.version, header.src_node), (1, self.id));
    }

    /// Asks for a frame while another is filled.
    pub(crate) fn ask_ahead(&mut self, frame: Frame) {
        assert!(matches!(self.sender, Sender::Beats(_)));
        self.ahead = Some((frame, false));
    }

    pub(crate) fn granted_ahead(&self) -> bool {
        self.ahead.as_ref().is_some_and(|(_, granted)| *granted)
    }

    /// Its neighbours are as after power-on, and nothing that they did is known any more.
    pub(crate) fn forget(&mut self) {
        (self.sender, self.ahead, self.receiver) = Default::default();
        (self.kill_left, self.event_left) = (None, None);
        self.outbox.clear();
        self.outcomes.clear();
        self.kills.clear();
        self.events.clear();
        let i = &mut self.model.inputs;
        (i.pool_ask_valid, i.pool_beat_valid, i.pool_commit_valid) = (0, 0, 0);
        (i.staging_release, i.peers_valid, i.kill_done, i.events_done) = (0, 0, 0, 0);
    }

    /// Resets the block for some cycles; frames that leave until all is quiet, good or not.
    pub(crate) fn reset(&mut self, cycles: u64) -> Vec<Vec<u64>> {
        let mut left = Vec::new();
        for at in 0..cycles + 1_000 {
            self.model.inputs.reset = u8::from(at < cycles);
            let stall = self.random.chance(self.manners.tx_stall);
            self.model.inputs.tx_ready = u8::from(self.tx_ready && !stall);
            self.model.cycle();
            left.extend(self.sample_tx());
        }
        assert_ne!(self.model.outputs.ready, 0);
        left
    }

    /// Beats of a frame that is half on the link.
    pub(crate) fn on_link(&self) -> &[u64] {
        &self.tx
    }
}
