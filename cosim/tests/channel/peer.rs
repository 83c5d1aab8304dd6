//! One channel (node 0) against a scripted peer (node 1): opening, acceptance, retries, down.

use crate::network::Network;
use crate::node::{Frame, Outcome, beats};
use nic_regs::admin::{AdminStatus, PeerState};
use nic_regs::counter::Counter;
use nic_regs::event::{Kind, PeerDownReason};
use nic_regs::frame::{Header, Type, flag};

pub(crate) const OWN: u32 = 0x1234_5678;
pub(crate) const REMOTE: u32 = 0xabcd_ef01;
pub(crate) const TAG: u16 = (OWN ^ REMOTE) as u16;

/// A header from the peer.
pub(crate) fn from_peer(kind: Type) -> Header {
    Header { version: 1, kind: kind as u8, src_node: 1, tag: TAG, credit: 64, ..Header::default() }
}

pub(crate) struct Single(pub(crate) Network);

impl Single {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Network::new(1, seed))
    }
    pub(crate) fn opened(seed: u64) -> Self {
        let mut single = Self::new(seed);
        single.open(1, OWN, 32);
        single.inject(Header { tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, &[]);
        single.0.run(200);
        assert_eq!(single.query(1), PeerState::Open);
        assert_eq!(single.take_events(), [(Kind::PeerUp, 1, REMOTE)]);
        single.0.seen.clear();
        single
    }
    /// Beats right behind what is already on its way.
    pub(crate) fn inject_beats(&mut self, beats: &[u64]) {
        let last = beats.len() - 1;
        self.0.nodes[0].rx.extend(beats.iter().enumerate().map(|(at, &beat)| (beat, at == last)));
    }
    pub(crate) fn inject(&mut self, header: Header, payload: &[u64]) {
        self.inject_beats(&beats(header, payload));
    }
    /// A frame, and the cycles until it is judged.
    pub(crate) fn put(&mut self, header: Header, payload: &[u64]) {
        self.inject(header, payload);
        let cycles = payload.len() as u64 + 20;
        self.0.run(cycles);
    }
    /// So many cycles pass in one, in which nothing happens.
    pub(crate) fn jump(&mut self, cycles: u64) {
        self.0.run(2);
        self.0.nodes[0].model.jump(cycles);
    }
    pub(crate) fn admin(&mut self, op: u8, peer: u8, epoch: u32, credits: u8) -> (u8, u8) {
        let before = self.0.nodes[0].answers.len();
        self.0.nodes[0].admin.push_back((op, peer, epoch, credits));
        self.0.until(20_000, "admin", |network| network.nodes[0].answers.len() > before);
        self.0.nodes[0].answers[before]
    }
    pub(crate) fn open(&mut self, peer: u8, epoch: u32, credits: u8) {
        assert_eq!(self.admin(0, peer, epoch, credits).0, AdminStatus::Ok as u8);
    }
    pub(crate) fn query(&mut self, peer: u8) -> PeerState {
        let (status, state) = self.admin(2, peer, 0, 0);
        assert_eq!(status, AdminStatus::Ok as u8);
        [PeerState::Closed, PeerState::Opening, PeerState::Open][usize::from(state)]
    }
    pub(crate) fn take_events(&mut self) -> Vec<(Kind, u8, u32)> {
        self.0.run(400);
        let events = std::mem::take(&mut self.0.nodes[0].events);
        let read = |(_, w0, w1): (u64, u32, u32)| {
            (Kind::from_bits(w0 & 0xff).unwrap(), (w0 >> 16) as u8, w1)
        };
        events.into_iter().map(read).collect()
    }
    pub(crate) fn sent(&mut self) -> Vec<Header> {
        self.0.seen.drain(..).map(|(_, header)| header).collect()
    }
    pub(crate) fn kinds(&mut self) -> Vec<Type> {
        self.sent().iter().map(|header| Type::from_bits(header.kind).unwrap()).collect()
    }
    pub(crate) fn count(&self, counter: Counter) -> u64 {
        self.0.nodes[0].count(counter)
    }
    /// Offers a frame of `length` bytes to `peer`.
    pub(crate) fn offer(&mut self, peer: u8, kind: Type, length: u16, sequenced: bool) -> Outcome {
        let flags = if sequenced { flag::SEQUENCED } else { 0 };
        let header = Header { kind: kind as u8, length, flags, ..Header::default() };
        let payload = vec![7; header.payload_beats()];
        let node = &mut self.0.nodes[0];
        node.manners.retry = false;
        let before = node.outcomes.len();
        node.outbox.push_back(Frame { peer, header, payload });
        self.0.until(2_000, "offer", |network| network.nodes[0].outcomes.len() > before);
        self.0.nodes[0].outcomes[before].1
    }
    pub(crate) fn free(&self) -> u8 {
        self.0.nodes[0].model.outputs.free_chunks
    }
    pub(crate) fn expect_down(&mut self, reason: PeerDownReason) {
        assert_eq!(self.query(1), PeerState::Closed, "{reason:?}");
        self.0.run(2_000);
        let (killed, peer) = self.0.nodes[0].kills.pop().expect("a kill");
        let (reported, _, _) = *self.0.nodes[0].events.last().expect("an event");
        assert!(
            peer == 1 && reported > killed + self.0.nodes[0].kill_time,
            "event before the kill"
        );
        assert_eq!(self.take_events().pop(), Some((Kind::PeerDown, 1, reason as u32)));
        assert_eq!(self.free(), 128);
        let lost = u64::from(reason != PeerDownReason::Closed);
        assert_eq!(self.count(Counter::PeersLost), lost);
    }
}

#[test]
fn opening_dies() {
    let mut single = Single::new(1);
    single.open(1, OWN, 33);
    assert_eq!(single.admin(0, 1, 1, 1).0, AdminStatus::BadState as u8);
    single.0.until(2_000 << 9, "death", |network| !network.nodes[0].events.is_empty());
    let times: Vec<u64> = single.0.seen.iter().map(|(time, _)| *time).collect();
    for header in single.sent() {
        let expected = Header {
            version: 1,
            kind: Type::Syn as u8,
            dst_node: 1,
            credit: 33,
            acknowledgement: 4096,
            word: OWN,
            ..Header::default()
        };
        assert_eq!(header, expected);
    }
    // Once, and at each time-out but the last; the scanner looks every 512 cycles.
    assert_eq!(times.len(), 8);
    for (at, pair) in times.windows(2).enumerate() {
        let pause = pair[1] - pair[0];
        assert!((2_000 << at..(2_000 << at) + 700).contains(&pause), "pause {at}: {pause}");
    }
    let waited = single.0.nodes[0].events[0].0 - times[7];
    assert!((2_000 << 7..(2_000 << 7) + 2_000).contains(&waited), "{waited}");
    single.expect_down(PeerDownReason::Dead);
    single.open(1, OWN, 33);
    assert_eq!(single.query(1), PeerState::Opening);
}

#[test]
fn opening_by_syn_ack_and_version() {
    let mut single = Single::new(2);
    // Closed: a SYN is ignored, other frames get an RST with their own tag.
    single.put(Header { tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, &[]);
    single.put(Header { tag: 0x777, ..from_peer(Type::Ack) }, &[]);
    single.0.run(100);
    let sent = single.sent();
    assert!(sent.len() == 1 && sent[0].kind == Type::Rst as u8 && sent[0].tag == 0x777);
    assert_eq!((single.count(Counter::DropNode), single.count(Counter::ResetsSent)), (1, 1));
    single.open(1, OWN, 32);
    // Opening: others get nothing; a SYN-ACK needs the right tag.
    single.put(from_peer(Type::Ack), &[]);
    single.put(Header { tag: TAG ^ 1, word: REMOTE, ..from_peer(Type::SynAck) }, &[]);
    single.put(from_peer(Type::Rst), &[]);
    assert_eq!(single.query(1), PeerState::Opening);
    assert_eq!((single.count(Counter::DropNode), single.count(Counter::ResetsSent)), (2, 1));
    single.put(Header { word: REMOTE, ..from_peer(Type::SynAck) }, &[]);
    assert_eq!(single.query(1), PeerState::Open);
    assert_eq!(single.take_events(), [(Kind::PeerUp, 1, REMOTE)]);
    // Open: the same SYN is answered again, another one is a restart.
    single.sent();
    single.put(Header { tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, &[]);
    single.0.run(100);
    let sent = single.sent();
    assert_eq!((sent[0].kind, sent[0].tag, sent[0].word), (Type::SynAck as u8, TAG, OWN));
    single.put(Header { tag: 0, word: REMOTE + 0x10000, ..from_peer(Type::Syn) }, &[]);
    single.expect_down(PeerDownReason::Restarted);

    let mut single = Single::new(3);
    single.open(1, OWN, 32);
    single.put(Header { version: 2, tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, &[]);
    assert_eq!(single.count(Counter::DropVersion), 1);
    single.expect_down(PeerDownReason::Version);
}

#[test]
fn drops() {
    let mut single = Single::opened(4);
    let received = single.count(Counter::FramesReceived);
    let data =
        |n: u16| Header { length: 8, flags: flag::SEQUENCED, sequence: n, ..from_peer(Type::Data) };
    // Runts, cut and padded frames, and one that never seems to end, back to back with a good one.
    for length in 1..4 {
        single.inject_beats(&vec![0xffff_ffff_0000_0000; length]);
    }
    single.inject_beats(&[0]);
    let good = beats(data(0), &[1]);
    single.inject_beats(&good[..4]);
    let mut bad = good.clone();
    bad[4] ^= 1 << 40;
    single.inject_beats(&bad);
    single.inject_beats(&vec![5; 9_000]);
    single.inject_beats(&good);
    single.0.run(9_100);
    assert_eq!(single.count(Counter::DropCrc), 6);
    // A single beat of zero is the CRC of nothing.
    assert_eq!(single.count(Counter::DropLength), 1);
    assert_eq!(single.0.nodes[0].inbox.len(), 1);
    for (length, payload) in [(16, 1), (0, 1), (4097, 513), (8176, 1022)] {
        single.put(Header { length, ..data(1) }, &vec![3; payload]);
    }
    single.put(Header { kind: 6, ..data(1) }, &[1]);
    single.put(Header { kind: 15, ..data(1) }, &[1]);
    single.put(Header { kind: 21, ..data(1) }, &[1]);
    assert_eq!(single.count(Counter::DropLength), 8);
    single.put(Header { version: 0, ..data(1) }, &[1]);
    assert_eq!(single.count(Counter::DropVersion), 1);
    single.put(Header { dst_node: 1, ..data(1) }, &[1]);
    single.put(Header { src_node: 65, ..data(1) }, &[1]);
    assert_eq!(single.count(Counter::FramesReceived), received + 1);
    single.put(Header { src_node: 63, ..data(1) }, &[1]);
    assert_eq!(single.count(Counter::DropNode), 3);
    single.put(Header { tag: TAG ^ 0x8000, ..data(1) }, &[1]);
    assert_eq!(single.count(Counter::DropTag), 1);
    single.0.run(300);
    single.sent();
    // Before: Ack at once. After: one NAK for each expected number.
    single.put(data(0), &[1]);
    single.put(data(0xffff), &[1]);
    single.0.run(20);
    assert_eq!(single.count(Counter::DropDuplicate), 2);
    assert_eq!(single.kinds(), [Type::Ack; 2]);
    for number in [0x7fff, 2, 3] {
        single.put(data(number), &[1]);
    }
    single.0.run(20);
    let sent = single.sent();
    assert!(sent.len() == 1 && sent[0].flags == flag::NAK && sent[0].acknowledgement == 1);
    single.put(data(1), &[1]);
    single.put(data(3), &[1]);
    single.0.run(20);
    let sent = single.sent();
    assert!(sent.len() == 1 && sent[0].flags == flag::NAK && sent[0].acknowledgement == 2);
    assert_eq!(single.count(Counter::DropOrder), 4);
    assert_eq!(single.0.nodes[0].inbox.len(), 2);
}

/// Lengths and flags that do not go with a frame's type.
#[test]
fn types_and_lengths() {
    let mut single = Single::opened(6);
    let frame = |kind, length, flags| Header { length, flags, ..from_peer(kind) };
    let payload = |length: u16| vec![7; usize::from(length).div_ceil(8)];
    let ordered = flag::SEQUENCED;
    let mut bad = 0;
    for (kind, length, flags) in [
        (Type::ViAck, 0, 0),
        (Type::ViRefuse, 0, flag::RECEPTION),
        (Type::Fin, 0, 0),
        (Type::Message, 48, 0),
        (Type::Message, 47, ordered),
        (Type::Message, 49, ordered),
        (Type::Message, 0, ordered),
        (Type::RdmaWrite, 15, ordered),
        (Type::RdmaWrite, 8, 0),
        (Type::RdmaWrite, 4113, ordered),
        (Type::ReadRequest, 16, 0),
        (Type::ReadRequest, 15, ordered),
        (Type::ReadRequest, 17, ordered),
        (Type::ReadRequest, 4096, ordered),
        (Type::ReadResponse, 64, 0),
        (Type::ReadResponse, 4097, ordered),
    ] {
        single.put(frame(kind, length, flags), &payload(length));
        bad += 1;
        assert_eq!(single.count(Counter::DropLength), bad, "{kind:?} of {length}, flags {flags}");
    }
    let mut good = 0;
    for (kind, length, flags) in [
        (Type::ViAck, 0, ordered),
        (Type::ViRefuse, 0, ordered),
        (Type::Fin, 0, ordered),
        (Type::Message, 48, ordered),
        (Type::RdmaWrite, 16, ordered),
        (Type::ReadRequest, 16, ordered),
        (Type::ReadResponse, 0, ordered),
        (Type::ReadResponse, 4096, ordered),
        (Type::RdmaWrite, 4112, ordered),
        (Type::Data, 4096, ordered),
        (Type::Data, 8, 0),
        (Type::RdmaWrite, 24, 0),
    ] {
        let header = Header { sequence: good, ..frame(kind, length, flags) };
        single.put(header, &payload(length));
        single.0.run(1_200);
        good += 1;
        assert_eq!(single.0.nodes[0].inbox.len(), usize::from(good), "{kind:?} of {length}");
    }
    assert_eq!(single.count(Counter::DropLength), bad);
}

/// A frame is acknowledged after ACK_DELAY, whether or not anybody has taken it; earlier, by a frame that leaves
/// anyway, and then no Ack follows.
#[test]
fn an_acknowledgement_waits_for_a_frame() {
    let mut single = Single::opened(8);
    let node = &mut single.0.nodes[0];
    node.manners.read = false;
    let delay = u64::from(node.model.inputs.ack_delay);
    let data =
        |n: u16| Header { length: 8, flags: flag::SEQUENCED, sequence: n, ..from_peer(Type::Data) };
    for n in 0..3 {
        single.put(data(2 * n), &[1]);
        single.0.run(delay - 50);
        assert_eq!(single.kinds(), [], "before its time");
        single.0.run(100);
        let sent = single.sent();
        assert_eq!(sent.len(), 1);
        assert_eq!((sent[0].kind, sent[0].acknowledgement), (Type::Ack as u8, 2 * n + 1));
        single.put(data(2 * n + 1), &[1]);
        assert_eq!(single.offer(1, Type::Data, 8, true), Outcome::Committed);
        single.0.run(3 * delay);
        let sent = single.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert_eq!((sent[0].kind, sent[0].acknowledgement), (Type::Data as u8, 2 * n + 2));
        single.put(Header { acknowledgement: n + 1, ..from_peer(Type::Ack) }, &[]);
    }
}

/// A peer that wants something in every cycle does not keep others waiting.
#[test]
fn a_busy_peer_does_not_starve_others() {
    let mut single = Single::opened(10);
    for peer in [9, 63] {
        single.open(peer, OWN, 32);
        single.put(Header { src_node: peer, tag: 0, word: REMOTE, ..from_peer(Type::Syn) }, &[]);
    }
    single.0.run(200);
    single.sent();
    // Each wants an Ack at once: duplicates of what was never sent.
    let duplicate = |peer: u8| Header {
        src_node: peer,
        length: 8,
        flags: flag::SEQUENCED,
        sequence: 0xffff,
        ..from_peer(Type::Data)
    };
    for at in 0..200 {
        single.inject(duplicate(1), &[1]);
        if at == 20 {
            for peer in [9, 63] {
                single.inject(duplicate(peer), &[1]);
            }
        }
    }
    single.0.run(200 * 5 + 500);
    let sent: Vec<u8> = single.sent().iter().map(|header| header.dst_node).collect();
    for peer in [9, 63] {
        let at = sent.iter().position(|&to| to == peer).expect("an Ack");
        assert!(at <= 20 + 6, "peer {peer} comes after {at} others: {sent:?}");
    }
}

#[test]
fn storm_of_acks() {
    let mut single = Single::opened(6);
    let before = single.count(Counter::FramesReceived);
    for _ in 0..2_000 {
        single.inject(from_peer(Type::Ack), &[]);
    }
    // Admin, data and time-outs go on meanwhile.
    single.open(9, 1, 1);
    assert_eq!(single.admin(1, 9, 0, 0).0, AdminStatus::Ok as u8);
    assert_eq!(single.offer(1, Type::Data, 100, true), Outcome::Committed);
    assert!(!single.0.nodes[0].rx.is_empty());
    single.0.run(9_000);
    assert_eq!(single.count(Counter::FramesReceived), before + 2_000);
    assert!(single.count(Counter::FramesRetransmitted) >= 1);
}

/// Cycles from the last beat on the pins until the receive engine sees the frame.
#[test]
fn arrival() {
    let mut single = Single::opened(7);
    single.0.nodes[0].manners.read = false;
    let header = Header { length: 8, flags: flag::SEQUENCED, sequence: 0, ..from_peer(Type::Data) };
    single.inject(header, &[1]);
    let seen = |network: &Network| network.nodes[0].model.outputs.staging_valid != 0;
    // Five beats, the last one in the fifth cycle.
    let cycles = single.0.until(100, "arrival", seen);
    assert_eq!(cycles - 5, 5);
}
