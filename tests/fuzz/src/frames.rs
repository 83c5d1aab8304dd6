//! Frames that a peer may send, into a model that is connected to one: forged in any field, of any
//! beats, cut, in any order, between those of honest traffic.

use cosim::testbench::{header, node_number, va};
use nic_model::frame::Frame;
use nic_regs::doorbell::Queue;
use nic_regs::frame::{Header, MESSAGE_BYTES, RDMA_HEADER_BYTES, RdmaHeader, Type, VERSION, flag};
use tests::LEVELS;
use tests::vi::HANDLE;

use crate::input::{Input, Mask};
use crate::nodes::{CONNECTION, Nodes};

/// Steps of an input at most.
const STEPS: usize = 48;
/// Bytes of payload of a forged frame at most: more than any frame has.
const PAYLOAD_MAX: usize = 4_400;

const KINDS: [Type; 13] = [
    Type::Data,
    Type::ViAck,
    Type::ViRefuse,
    Type::Fin,
    Type::Message,
    Type::RdmaWrite,
    Type::ReadRequest,
    Type::ReadResponse,
    Type::Ack,
    Type::Syn,
    Type::SynAck,
    Type::Rst,
    Type::MessageRefused,
];

/// What the next honest frame of node 1 to node 0 would have.
struct Forger {
    tag: u16,
    acknowledgement: u16,
    sequence: u16,
}

/// See the module.
///
/// # Panics
/// If an invariant of [`Nodes::check`] is broken.
pub(crate) fn frames(data: &[u8]) {
    let mut input = Input::new(data);
    let mut nodes = Nodes::connected();
    let mut forger = Forger::new(&nodes);
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        match input.u8() % 8 {
            0..=2 => {
                let beats = forger.frame(&mut input, &nodes).to_beats();
                let beats = mutilated(&mut input, beats);
                nodes.bare.bench.forge(0, &beats);
            }
            3 => {
                let beats = raw(&mut input);
                nodes.bare.bench.forge(0, &beats);
            }
            4 => nodes.bare.bench.run(1 + 4 * u64::from(input.u8())),
            5 => {
                let vi = (input.below(3), 0);
                nodes.post(vi, queue(&mut input), usize::from(input.u16() % 0x2000));
            }
            6 => {
                let vi = (input.below(3), 1);
                nodes.post(vi, queue(&mut input), usize::from(input.u16() % 0x2000));
            }
            _ => forger.learn(&nodes),
        }
    }
    nodes.check();
}

fn queue(input: &mut Input<'_>) -> Queue {
    if input.flag() { Queue::Send } else { Queue::Recv }
}

/// A frame whose CRC is right, of any beats.
fn raw(input: &mut Input<'_>) -> Vec<u64> {
    let count = input.below(24);
    let beats: Vec<u64> = (0..count).map(|_| input.u64()).collect();
    let (payload, header) = (beats.get(3..).unwrap_or_default(), beats.get(..3));
    let header = header.map_or_else(Header::default, |beats| {
        Header::from_beats(beats.try_into().expect("three beats"))
    });
    let payload = payload.iter().flat_map(|beat| beat.to_le_bytes()).collect();
    Frame { header, payload }.to_beats()
}

/// Most frames as they are; some are cut, or a bit of them flips.
fn mutilated(input: &mut Input<'_>, mut beats: Vec<u64>) -> Vec<u64> {
    match input.u8() {
        250 => beats.truncate(1 + input.below(beats.len())),
        251 => {
            let at = input.below(beats.len());
            beats[at] ^= 1 << (input.u8() % 64);
        }
        252 => beats.insert(0, input.u64()),
        _ => {}
    }
    beats
}

impl Forger {
    fn new(nodes: &Nodes) -> Self {
        let mut forger = Self { tag: 0, acknowledgement: 0, sequence: 0 };
        forger.learn(nodes);
        forger
    }

    /// Learns the channel's tag and numbers from what passed.
    fn learn(&mut self, nodes: &Nodes) {
        let last = |node| nodes.bare.bench.sent(node, 0).last().and_then(|frame| header(frame));
        if let Some(honest) = last(1) {
            (self.tag, self.acknowledgement) = (honest.tag, honest.acknowledgement);
        }
        if let Some(answer) = last(0) {
            self.sequence = answer.acknowledgement;
        }
    }

    /// A frame that is right but for the fields that the input changes.
    fn frame(&mut self, input: &mut Input<'_>, nodes: &Nodes) -> Frame {
        let level = input.below(LEVELS.len());
        let (mut kind, mut mask) = (input.pick(&KINDS) as u8, Mask::of(input));
        let number = nodes.vis[level][0].number;
        let is_numbered = kind < Type::Ack as u8 && (level > 0 || kind != Type::Data as u8);
        let mut flags = flag::FIRST | flag::LAST;
        if is_numbered {
            flags |= flag::SEQUENCED | if level == 2 { flag::RECEPTION } else { 0 };
        }
        let mut header = Header {
            version: VERSION,
            src_node: node_number(1),
            dst_node: node_number(0),
            tag: self.tag,
            dst_vi: number,
            src_vi: number,
            connection: CONNECTION,
            flags,
            credit: 64,
            sequence: self.sequence,
            acknowledgement: self.acknowledgement,
            ..Header::default()
        };
        let mut if_next = |set: &mut dyn FnMut(&mut Input<'_>)| {
            if mask.next() {
                set(input);
            }
        };
        if_next(&mut |input| header.flags = input.u8());
        if_next(&mut |input| header.sequence = self.sequence.wrapping_add(input.u16()));
        if_next(&mut |input| header.word = input.u32());
        if_next(&mut |input| header.credit = input.u8());
        if_next(&mut |input| {
            header.acknowledgement = header.acknowledgement.wrapping_add(input.u16());
        });
        if_next(&mut |input| header.dst_vi = input.u16());
        if_next(&mut |input| header.src_vi = input.u16());
        if_next(&mut |input| header.connection = input.u16());
        if_next(&mut |input| header.tag = input.u16());
        if_next(&mut |input| kind = input.u8());
        if_next(&mut |input| (header.src_node, header.dst_node) = (input.u8(), input.u8()));
        if_next(&mut |input| header.version = input.u8());
        header.kind = kind;
        if kind == Type::Message as u8 && header.dst_vi == number {
            // Of the domain that has a queue for them.
            header.dst_vi = 0;
        }
        let any = mask.next();
        let length = if any { usize::from(input.u16()) % PAYLOAD_MAX } else { usual_length(kind) };
        let bytes = payload(input, kind, length, nodes, mask.next());
        header.length = u16::try_from(bytes.len()).expect("at most PAYLOAD_MAX");
        if mask.next() {
            header.length = input.u16();
        }
        if header.flags & flag::SEQUENCED != 0 && header.sequence == self.sequence {
            self.sequence = self.sequence.wrapping_add(1);
        }
        Frame { header, payload: bytes }
    }
}

/// Bytes of the payload of a frame of a type that is right.
const fn usual_length(kind: u8) -> usize {
    match Type::from_bits(kind) {
        Some(Type::Message | Type::MessageRefused) => MESSAGE_BYTES,
        Some(Type::RdmaWrite) => RDMA_HEADER_BYTES + 24,
        Some(Type::Data | Type::ReadRequest | Type::ReadResponse) => RDMA_HEADER_BYTES,
        _ => 0,
    }
}

/// Bytes of a payload; that of an RDMA begins with a header.
fn payload(
    input: &mut Input<'_>,
    kind: u8,
    length: usize,
    nodes: &Nodes,
    is_forged: bool,
) -> Vec<u8> {
    let filler = input.u8();
    let mut payload = vec![filler; length];
    if kind == Type::RdmaWrite as u8 || kind == Type::ReadRequest as u8 {
        let mut total = u32::try_from(length.saturating_sub(RDMA_HEADER_BYTES)).unwrap_or(0);
        if kind == Type::ReadRequest as u8 {
            total = u32::from(filler);
        }
        let mut rdma =
            RdmaHeader { address: va(nodes.vis[1][0].data_offset()), handle: HANDLE.0, total };
        if is_forged {
            rdma.address = rdma.address.wrapping_add(input.u64());
            rdma.handle ^= input.u32();
            rdma.total = rdma.total.wrapping_add(input.u32());
        }
        let bytes: Vec<u8> = rdma.to_beats().iter().flat_map(|beat| beat.to_le_bytes()).collect();
        let most = payload.len().min(bytes.len());
        payload[..most].copy_from_slice(&bytes[..most]);
    }
    payload
}
