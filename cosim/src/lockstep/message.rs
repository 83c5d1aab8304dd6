//! Random messages of a pair of VIs: sends, RDMA writes and reads, good ones and those that fail. What
//! may follow one that fails is what its kind says.

use super::descriptor::{pass_the_sum, reach_beyond, small, spec, spoil_format, spoil_segment};
use super::plan::{DATA_BYTES, Message, Pair, Remote, Segment, Spec, Unreachable, Wrong};
use crate::random::Random;
use nic_regs::desc::control;
use nic_regs::doorbell::PUSH_DATA_BYTES;
use nic_regs::limits::{DATA_SEGMENTS_MAX, LINK_PAYLOAD_BYTES, MAX_TRANSFER_BYTES};
use nic_regs::vi::Reliability;

/// Largest message of an Unreliable VI, in bytes: two frames.
const UNRELIABLE_BYTES: u64 = 8_000;
/// Cycles between two of them: longer than the slowest receiver needs.
const UNRELIABLE_PAUSE: u64 = 4_000;

/// What a message of a phase tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Good,
    SendFormat,
    SendSegment,
    SendTooLong,
    SendUnreachable,
    RecvFormat,
    RecvSegment,
    RecvShort,
    RecvNone,
    RecvUnreachable,
    /// RDMA: the target does not allow it.
    Remote,
}

impl Kind {
    /// Memory that is named wrongly is the likeliest fault: there are more bits of that than of any other.
    pub(super) fn any(random: &mut Random) -> Self {
        if random.chance(0.85) {
            return Self::Good;
        }
        match random.below(20) {
            0 => Self::SendFormat,
            1..=5 => Self::SendSegment,
            6 => Self::SendTooLong,
            7..=8 => Self::SendUnreachable,
            9 => Self::RecvFormat,
            10..=11 => Self::RecvSegment,
            12 => Self::RecvShort,
            13 => Self::RecvNone,
            14..=15 => Self::RecvUnreachable,
            _ => Self::Remote,
        }
    }

    /// Whether nothing may follow an RDMA write of this kind.
    pub(super) fn ends_writes(self, pair: &Pair) -> bool {
        let reliable = pair.reliability != Reliability::Unreliable;
        match self {
            Self::Remote | Self::RecvFormat => reliable,
            Self::RecvNone | Self::RecvUnreachable => true,
            _ => false,
        }
    }

    /// Whether nothing may follow an RDMA read of this kind.
    pub(super) fn ends_reads(self, pair: &Pair) -> bool {
        self == Self::Remote && pair.reliability != Reliability::Unreliable
    }

    /// Whether the receiver will refuse the message, and with it everything behind it.
    pub(super) fn is_refused(self, pair: &Pair) -> bool {
        let by_receiver = matches!(
            self,
            Self::RecvFormat
                | Self::RecvSegment
                | Self::RecvShort
                | Self::RecvUnreachable
                | Self::RecvNone
        );
        by_receiver && pair.reliability != Reliability::Unreliable
    }

    /// Whether the sender refuses the descriptor, so that nothing of it consumes a receive.
    pub(super) fn ends_at_sender(self) -> bool {
        matches!(
            self,
            Self::SendFormat | Self::SendSegment | Self::SendTooLong | Self::SendUnreachable
        )
    }

    /// Whether later messages meet the wrong receive, or none.
    pub(super) fn leaves_no_receive(self) -> bool {
        matches!(self, Self::RecvNone | Self::RecvUnreachable)
    }
}

/// Memory of the peer that is not to be had.
fn refused_place(random: &mut Random) -> Wrong {
    if random.chance(0.2) { Wrong::Rights } else { Wrong::any(random) }
}

/// The data of a send, all in one frame, is not to be had from the host: so nothing leaves. It is
/// short, so that the error log has room for all the reads that fail.
fn absent(random: &mut Random, pair: &Pair, send: &mut Spec) {
    let length = some(random, pair, 500);
    send.segments = spec(random, length).segments;
    let used = send.segments.iter_mut().filter(|segment| segment.length > 0);
    if let Some(segment) = used.last() {
        segment.wrong = Wrong::Absent;
    }
}

/// A message of which a frame is not to be had from the host, while those before it leave. It is the first one, which
/// consumes no receive; the last one; or neither.
fn absent_within(random: &mut Random, pair: &Pair) -> Option<Message> {
    let frames = random.below(3);
    let before = LINK_PAYLOAD_BYTES as u64 * frames + random.below(2_000);
    let mut send = spec(random, before);
    let length = 1 + u32::from(small(random, 250)) * 2;
    send.segments.push(Segment { offset: 0, length, wrong: Wrong::Absent });
    if frames == 0 || random.chance(0.6) {
        let behind = LINK_PAYLOAD_BYTES as u64 + random.below(2_000);
        send.segments.extend(spec(random, behind).segments);
    }
    let total = send.total();
    let fits = total <= pair.max_transfer.into() && send.segments.len() <= DATA_SEGMENTS_MAX;
    let recv = (frames > 0).then(|| spec(random, total + 50));
    fits.then_some(Message { recv, send, delay: 0 })
}

/// A few bytes, which a VI transfers.
fn some(random: &mut Random, pair: &Pair, most: u32) -> u64 {
    1 + random.below(most.min(pair.max_transfer).into())
}

/// Memory of the peer with room for so many bytes.
fn remote(random: &mut Random, total: u64) -> Remote {
    let offset = random.below(DATA_BYTES as u64 - total);
    Remote { offset, wrong: Wrong::Nothing, reserved: 0 }
}

/// A descriptor of more bytes than the VI transfers.
fn too_long(random: &mut Random, pair: &Pair) -> Spec {
    let excess = 1 + if random.chance(0.5) { random.below(16) } else { random.below(1000) };
    let mut spec = spec(random, u64::from(pair.max_transfer) + excess);
    if random.chance(0.3) {
        pass_the_sum(random, &mut spec);
    }
    spec
}

/// An RDMA read, which the peer's VI allows or not. An Unreliable VI has none.
pub(super) fn read(random: &mut Random, pair: &Pair, kind: Kind, allowed: bool) -> Message {
    let message = send(random, pair, Kind::Good);
    let (mut send, delay) = (message.send, message.delay);
    send.control = control::OP_RDMA_READ | send.control & control::QFENCE;
    let mut remote = remote(random, send.total());
    match kind {
        Kind::SendFormat => match random.below(4) {
            0 => remote.reserved = 1 << random.below(32),
            1 => send.seg_count = Some(0),
            2 => send.control |= control::IMMEDIATE,
            _ => spoil_format(random, &mut send),
        },
        Kind::SendSegment => spoil_segment(random, &mut send),
        Kind::SendTooLong => send.segments = too_long(random, pair).segments,
        Kind::SendUnreachable => send.unreachable = Some(Unreachable::of_send(random)),
        Kind::Remote => {
            let absent = random.chance(0.2);
            remote.wrong = if absent { Wrong::Absent } else { refused_place(random) };
            if absent || send.total() == 0 && allowed {
                // An empty range is nowhere, so nothing is wrong with it; see also `absent`.
                let some = some(random, pair, 100);
                send.segments = spec(random, some).segments;
            }
        }
        _ => {}
    }
    send.remote = Some(remote);
    Message { recv: None, send, delay }
}

/// An RDMA write; a receive is posted only for immediate data. `reported`: the sender knows that the
/// peer's VI allows it.
pub(super) fn write(random: &mut Random, pair: &Pair, kind: Kind, reported: bool) -> Message {
    let message = send(random, pair, Kind::Good);
    let (mut send, mut recv, delay) = (message.send, message.recv, message.delay);
    if kind.ends_writes(pair) && send.total() > LINK_PAYLOAD_BYTES as u64 {
        let short = random.below(LINK_PAYLOAD_BYTES as u64 + 1);
        send.segments = spec(random, short).segments;
    }
    let total = send.total();
    send.control |= control::OP_RDMA_WRITE;
    let mut remote = remote(random, total);
    match kind {
        Kind::SendFormat if random.chance(0.3) => remote.reserved = 1 << random.below(32),
        Kind::SendFormat if random.chance(0.3) => send.seg_count = Some(0),
        Kind::SendFormat => spoil_format(random, &mut send),
        Kind::SendSegment if random.chance(0.3) => absent(random, pair, &mut send),
        Kind::SendSegment => spoil_segment(random, &mut send),
        Kind::SendTooLong => send.segments = too_long(random, pair).segments,
        Kind::SendUnreachable => send.unreachable = Some(Unreachable::of_send(random)),
        Kind::Remote => {
            remote.wrong = refused_place(random);
            if total == 0 {
                // An empty range is nowhere, so nothing is wrong with it.
                let some = some(random, pair, 100);
                send.segments = spec(random, some).segments;
            }
            send.control &= !control::IMMEDIATE;
        }
        Kind::RecvFormat | Kind::RecvNone | Kind::RecvUnreachable => {
            send.control |= control::IMMEDIATE;
        }
        Kind::RecvSegment => spoil_segment(random, recv.as_mut().expect("a receive")),
        Kind::Good | Kind::RecvShort => {}
    }
    match kind {
        Kind::RecvFormat => spoil_format(random, recv.as_mut().expect("a receive")),
        Kind::RecvUnreachable => {
            recv.as_mut().expect("a receive").unreachable = Some(Unreachable::any(random));
        }
        _ => {}
    }
    let immediate = send.control & control::IMMEDIATE != 0;
    if !immediate || kind.ends_at_sender() || !reported || kind == Kind::RecvNone {
        recv = None;
    }
    send.remote = Some(remote);
    Message { recv, send, delay }
}

/// Bytes of a message.
fn length(random: &mut Random) -> u64 {
    match random.below(10) {
        0 => 0,
        1..=4 => random.below(300),
        // What a push may carry, and a few bytes more or less.
        5 if random.chance(0.4) => PUSH_DATA_BYTES as u64,
        5 => PUSH_DATA_BYTES as u64 - 4 + random.below(9),
        6 => random.below(5_000),
        // Full frames, and a few bytes more or less.
        7 => {
            let frames = LINK_PAYLOAD_BYTES as u64 * (1 + random.below(3));
            frames - 4 + random.below(9)
        }
        // What is long takes most of the time of a seed.
        9 if random.chance(0.3) => random.below(u64::from(MAX_TRANSFER_BYTES) + 1),
        _ => random.below(12_000),
    }
}

/// A send, and the receive that it meets.
pub(super) fn send(random: &mut Random, pair: &Pair, kind: Kind) -> Message {
    let total = length(random).min(u64::from(pair.max_transfer));
    let slow = pair.reliability == Reliability::Unreliable;
    if kind == Kind::SendSegment
        && !slow
        && random.chance(0.3)
        && let Some(message) = absent_within(random, pair)
    {
        return message;
    }
    let total = if slow { total.min(UNRELIABLE_BYTES) } else { total };
    // A refusal may come before the last frame of a long message has left: that would be timing.
    let total = if kind.is_refused(pair) { total.min(LINK_PAYLOAD_BYTES as u64) } else { total };
    let mut send = spec(random, total);
    if random.chance(0.4) {
        send.control |= control::IMMEDIATE;
    }
    if random.chance(0.1) {
        send.control |= control::QFENCE;
    }
    let spare = if random.chance(0.5) { random.below(100) } else { 0 };
    let mut recv = Some(spec(random, total + spare));
    match kind {
        Kind::Good => {}
        Kind::SendFormat => spoil_format(random, &mut send),
        Kind::SendSegment if random.chance(0.3) => absent(random, pair, &mut send),
        Kind::SendSegment => spoil_segment(random, &mut send),
        Kind::SendTooLong => send = too_long(random, pair),
        Kind::SendUnreachable => send.unreachable = Some(Unreachable::of_send(random)),
        Kind::RecvFormat => spoil_format(random, recv.as_mut().expect("made above")),
        Kind::RecvSegment => spoil_segment(random, recv.as_mut().expect("made above")),
        Kind::RecvShort => {
            send = spec(random, total.max(1));
            let short = random.below(total.max(1));
            recv = Some(spec(random, short));
        }
        Kind::RecvNone => recv = None,
        Kind::RecvUnreachable => {
            recv.as_mut().expect("made above").unreachable = Some(Unreachable::any(random));
        }
        Kind::Remote => unreachable!("a send names no memory of the peer"),
    }
    if random.chance(0.25)
        && let Some(recv) = &mut recv
    {
        let more = if random.chance(0.2) { pass_the_sum } else { reach_beyond };
        more(random, recv);
    }
    // A message that the sender refuses consumes no receive.
    if kind.ends_at_sender() {
        recv = None;
    }
    // Mostly close together; else behind what the device does of the one before.
    let pause = match random.below(20) {
        0..=8 => random.below(60),
        9 => random.below(1_500),
        _ => 0,
    };
    let delay = if slow { UNRELIABLE_PAUSE + pause } else { pause };
    Message { recv, send, delay }
}
