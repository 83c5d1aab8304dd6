//! Frames that no honest device sends, between two nodes at rest: each must be dropped, or have no effect.
//!
//! A forged frame is right but for one thing, in most cases one bit: the first check that fails says what
//! counts (contract 5.1, 7.2).

use crate::random::Random;
use nic_model::frame::Frame;
use nic_regs::counter::Counter;
use nic_regs::frame::{Header, MESSAGE_BYTES, RDMA_HEADER_BYTES, Type, VERSION, flag};
use nic_regs::limits::LINK_PAYLOAD_BYTES;
use nic_regs::vi::Reliability;

/// Counters that are compared before and behind forged frames: on a lossy link they are timing else.
pub(super) const COUNTERS: [Counter; 5] = [
    Counter::FramesReceived,
    Counter::DropCrc,
    Counter::DropOrder,
    Counter::DropDuplicate,
    Counter::Unmatched,
];
/// Bytes of payload of most frames.
const SHORT: u64 = 100;

/// What is wrong with a frame; numbers are bits that are flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forgery {
    Crc(u8),
    Version(u8),
    Source(u8),
    Destination(u8),
    Tag(u8),
    /// This power of two ahead of the number that is expected, or behind it. That number is timing, where a
    /// fence has ended traffic: so what is wrong is no bit.
    Sequence(u8, bool),
    /// A type that does not exist.
    Kind(u8),
    /// Longer than any frame of its type, by so many bytes.
    Long(Type, u16),
    /// A beat more, or less, than the header says.
    Beats(bool),
    /// A type that must have a number, without one.
    Unsequenced(Type),
    /// A length that the type does not have.
    Length(Type, u16),
    /// It acknowledges what was never sent; as a NAK, or not.
    Acknowledges(u8, bool),
    /// Another VI, source VI or connection, by a bit of the three.
    Elsewhere(u8),
    /// Flags of another level than the VI's.
    Level,
    /// Another fragment number than 0 in a first frame of an Unreliable VI.
    Fragment(u8),
    /// A later frame of no message, on an Unreliable VI.
    Later,
    /// A reset of another channel.
    Reset(u8),
    /// An answer to no SYN.
    SynAck,
    /// A SYN, or an answer to one, of another version.
    Opening(Type, u8),
}

/// A frame that nobody sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forged {
    /// Node that receives it.
    pub(super) node: usize,
    /// The pair of VIs that it names.
    pub(super) pair: usize,
    /// What is wrong with it.
    pub(super) what: Forgery,
    /// Bytes of its payload, where they are not what is wrong.
    length: u16,
}

/// What a right frame would say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// Source and destination.
    pub(super) nodes: [u8; 2],
    /// The channel's tag.
    pub(super) tag: u16,
    /// Number that the receiver expects.
    pub(super) sequence: u16,
    /// Number that the source expects of the receiver.
    pub(super) acknowledgement: u16,
    /// Credit limit that the source has said.
    pub(super) credit: u8,
    /// VI of the receiver, that of the source, and their connection.
    pub(super) vi: [u16; 2],
    pub(super) connection: u16,
    pub(super) reliability: Reliability,
}

impl Now {
    /// The header of a right frame of data, with no bytes and no flags.
    pub(super) const fn header(&self) -> Header {
        let [src_node, dst_node] = self.nodes;
        let [dst_vi, src_vi] = self.vi;
        Header {
            version: VERSION,
            kind: Type::Data as u8,
            length: 0,
            src_node,
            dst_node,
            tag: self.tag,
            dst_vi,
            src_vi,
            connection: self.connection,
            flags: 0,
            credit: self.credit,
            sequence: self.sequence,
            acknowledgement: self.acknowledgement,
            word: 0,
        }
    }
}

impl Forged {
    /// Any, of one of the pairs with these levels.
    pub(super) fn random(random: &mut Random, levels: &[Reliability]) -> Self {
        let mut below =
            |limit: usize| u16::try_from(random.below(limit as u64)).expect("a small limit");
        let pair = usize::from(below(levels.len()));
        let unreliable = levels[pair] == Reliability::Unreliable;
        let numbered =
            [Type::ViAck, Type::ViRefuse, Type::Fin, Type::ReadRequest, Type::ReadResponse];
        let mut bit = |of: usize| u8::try_from(below(of)).expect("below 64");
        let what = match bit(if unreliable { 20 } else { 17 }) {
            0 => Forgery::Crc(bit(32)),
            1 => Forgery::Version(bit(8)),
            2 => Forgery::Source(bit(8)),
            3 => Forgery::Destination(bit(8)),
            4 => Forgery::Tag(bit(16)),
            5 | 6 => Forgery::Sequence(bit(15), bit(2) == 0),
            7 => Forgery::Kind([0, 9, 33, 65, 129][usize::from(bit(5))]),
            8 => {
                let kind = [Type::Data, Type::RdmaWrite, Type::ReadResponse][usize::from(bit(3))];
                Forgery::Long(kind, 1 + u16::from(bit(16)))
            }
            9 => Forgery::Beats(bit(2) == 0),
            10 => Forgery::Unsequenced(numbered[usize::from(bit(numbered.len()))]),
            11 => {
                let right =
                    |kind| if kind == Type::Message { MESSAGE_BYTES } else { RDMA_HEADER_BYTES };
                let kind = [Type::Message, Type::ReadRequest, Type::RdmaWrite][usize::from(bit(3))];
                let most = u16::try_from(right(kind)).expect("small");
                let length = u16::from(bit(usize::from(most)));
                let more = kind != Type::RdmaWrite && bit(2) == 0;
                Forgery::Length(kind, if more { most + 1 + length } else { length })
            }
            12 => Forgery::Acknowledges(bit(16), bit(2) == 0),
            13 | 14 => Forgery::Elsewhere(bit(48)),
            15 => Forgery::Level,
            16 => match bit(3) {
                0 => Forgery::SynAck,
                1 => Forgery::Reset(bit(16)),
                _ => Forgery::Opening([Type::Syn, Type::SynAck][usize::from(bit(2))], bit(8)),
            },
            17 | 18 => Forgery::Fragment(bit(8)),
            _ => Forgery::Later,
        };
        let node = usize::from(bit(2));
        let length = u16::try_from(random.below(SHORT)).expect("small");
        Self { node, pair, what, length }
    }

    /// Whether it has a number, and would be taken but for what is wrong. What has none uses up no number.
    const fn is_numbered(&self) -> bool {
        !matches!(
            self.what,
            Forgery::Unsequenced(_)
                | Forgery::Elsewhere(_)
                | Forgery::Level
                | Forgery::Fragment(_)
                | Forgery::Later
                | Forgery::Acknowledges(..)
                | Forgery::Reset(_)
                | Forgery::SynAck
                | Forgery::Opening(..)
        )
    }

    /// Its beats.
    pub(super) fn beats(&self, now: &Now) -> Vec<u64> {
        let is_reception = now.reliability == Reliability::Reception;
        let mut header = Header {
            length: self.length,
            flags: flag::FIRST | flag::LAST | if is_reception { flag::RECEPTION } else { 0 },
            ..now.header()
        };
        let excess = self.spoil(&mut header, now);
        header.flags |= if self.is_numbered() { flag::SEQUENCED } else { 0 };
        let beats = usize::from(header.length).div_ceil(8).saturating_add_signed(excess.beats);
        let mut frame = Frame { header, payload: vec![0; 8 * beats] }.to_beats();
        if let Some(last) = frame.last_mut() {
            *last ^= excess.crc;
        }
        frame
    }

    fn spoil(&self, header: &mut Header, now: &Now) -> Excess {
        let mut excess = Excess::default();
        match self.what {
            Forgery::Crc(bit) => excess.crc = 1 << bit,
            Forgery::Version(bit) => header.version ^= 1 << bit,
            Forgery::Source(bit) => header.src_node ^= 1 << bit,
            Forgery::Destination(bit) => header.dst_node ^= 1 << bit,
            Forgery::Tag(bit) => header.tag ^= 1 << bit,
            Forgery::Sequence(bit, true) => header.sequence = now.sequence.wrapping_add(1 << bit),
            Forgery::Sequence(bit, false) => header.sequence = now.sequence.wrapping_sub(1 << bit),
            Forgery::Kind(kind) => header.kind = kind,
            Forgery::Long(kind, excess) => {
                header.kind = kind as u8;
                header.length = u16::try_from(kind.payload_max()).expect("16 bits") + excess;
            }
            Forgery::Beats(more) => {
                header.length += 8;
                excess.beats = if more { 1 } else { -1 };
            }
            Forgery::Length(kind, length) => (header.kind, header.length) = (kind as u8, length),
            Forgery::Unsequenced(kind) => {
                header.kind = kind as u8;
                if kind == Type::ReadRequest {
                    header.length = u16::try_from(RDMA_HEADER_BYTES).expect("small");
                }
            }
            Forgery::Elsewhere(bit @ 0..16) => header.dst_vi ^= 1 << bit,
            Forgery::Elsewhere(bit @ 16..32) => header.src_vi ^= 1 << (bit - 16),
            Forgery::Elsewhere(bit) => header.connection ^= 1 << (bit - 32),
            Forgery::Level if now.reliability == Reliability::Unreliable => {
                header.flags |= flag::RECEPTION;
            }
            // It has no number, and this VI's data have.
            Forgery::Level => {}
            Forgery::Fragment(bit) => header.sequence = 1 << bit,
            Forgery::Later => header.flags = flag::LAST,
            Forgery::Acknowledges(bit, nak) => {
                (header.kind, header.length) = (Type::Ack as u8, 0);
                header.flags = if nak { flag::NAK } else { 0 };
                header.acknowledgement ^= 1 << bit;
            }
            Forgery::Reset(bit) => {
                (header.kind, header.flags, header.length) = (Type::Rst as u8, 0, 0);
                header.tag ^= 1 << bit;
            }
            Forgery::SynAck => {
                (header.kind, header.flags, header.length) = (Type::SynAck as u8, 0, 0);
                header.acknowledgement = u16::try_from(LINK_PAYLOAD_BYTES).expect("16 bits");
            }
            Forgery::Opening(kind, bit) => {
                (header.kind, header.flags, header.length) = (kind as u8, 0, 0);
                header.version ^= 1 << bit;
            }
        }
        excess
    }
}

/// What a header does not say.
#[derive(Debug, Default)]
struct Excess {
    /// Beats beyond those that the header says.
    beats: isize,
    /// Bits of the CRC that are flipped.
    crc: u64,
}
