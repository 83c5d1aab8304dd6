//! Descriptors and data segments of any bytes in host memory, posted by doorbells of any value, on
//! models that are connected.

use cosim::testbench::{FREE_OFFSET, va};
use nic_regs::desc::{ControlSegment, DataSegment};
use nic_regs::doorbell::{EVENT_OFFSET, PUSH_OFFSET, PushControl, Queue, TOKEN_OFFSET, Token};
use tests::vi::{DOMAIN, HANDLE, REGION};

use crate::input::{Input, Mask};
use crate::nodes::Nodes;

/// Steps of an input at most.
const STEPS: usize = 48;
/// Places for descriptors, and the bytes of each.
const SLOTS: usize = 16;
const SLOT_BYTES: usize = 256;
/// Where the buffers are, from the free memory's start.
const BUFFERS: usize = 0x1_0000;

/// See the module.
///
/// # Panics
/// If an invariant of [`Nodes::check`] is broken.
pub(crate) fn descriptors(data: &[u8]) {
    let mut input = Input::new(data);
    let mut nodes = Nodes::connected();
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        step(&mut input, &mut nodes);
    }
    nodes.check();
}

fn step(input: &mut Input<'_>, nodes: &mut Nodes) {
    let choice = input.u8();
    let node = usize::from(choice >> 7);
    match choice % 8 {
        0 | 1 => {
            let slot = input.below(SLOTS);
            let bytes = descriptor(input);
            nodes.bare.host_mut(node).put(FREE_OFFSET + slot * SLOT_BYTES, &bytes);
            ring(input, nodes, node, slot);
        }
        2 => {
            let at = slot(input) + input.below(SLOT_BYTES);
            let length = 1 + input.below(64);
            let bytes = input.bytes(length).to_vec();
            nodes.bare.host_mut(node).put(FREE_OFFSET + at, &bytes);
        }
        3 => {
            let slot = input.below(SLOTS);
            ring(input, nodes, node, slot);
        }
        4 => {
            let vi = (input.below(3), node);
            let queue = if input.flag() { Queue::Send } else { Queue::Recv };
            nodes.post(vi, queue, usize::from(input.u16()));
        }
        5 if input.flag() => {
            let slot = input.below(SLOTS);
            push(input, nodes, node, slot);
        }
        5 => {
            let (domain, line) = (input.pick(&[DOMAIN, DOMAIN, 0, 2]), input.below(5));
            let at = PUSH_OFFSET + 64 * line as u64 + 8 * input.below(8) as u64;
            let space = 64 - usize::try_from(at % 64).expect("small");
            let length = space.min(8 * (1 + input.below(8)));
            let bytes = input.bytes(length).to_vec();
            if !bytes.is_empty() {
                nodes.bare.bench.write_line(node, domain, at, &bytes);
            }
        }
        6 => {
            let at = input.pick(&[TOKEN_OFFSET, EVENT_OFFSET, 0x10, PUSH_OFFSET]);
            nodes.bare.doorbell(node, input.pick(&[DOMAIN, 0, 3]), at, input.u64());
        }
        _ => nodes.bare.bench.run(1 + 4 * u64::from(input.u8())),
    }
}

fn slot(input: &mut Input<'_>) -> usize {
    input.below(SLOTS) * SLOT_BYTES
}

/// Rings for the descriptor of a slot.
fn ring(input: &mut Input<'_>, nodes: &mut Nodes, node: usize, slot: usize) {
    let token = token(input, slot);
    nodes.bare.doorbell(node, DOMAIN, TOKEN_OFFSET, token.to_bits());
}

/// Pushes the descriptor of a slot with data that has nothing to do with it, in one write or two.
fn push(input: &mut Input<'_>, nodes: &mut Nodes, node: usize, slot: usize) {
    let (token, mut mask) = (token(input, slot), Mask::of(input));
    let length = input.u8() % 41;
    let immediate = mask.next().then(|| input.u32());
    let mut control = PushControl { length, immediate }.to_bits();
    if mask.next() {
        control ^= input.u64();
    }
    let zero = if mask.next() { input.u64() } else { 0 };
    let mut words = vec![Token { queue: Queue::Send, ..token }.to_bits(), control, zero];
    words.extend((0..usize::from(length).div_ceil(8)).map(|word| word as u64));
    if mask.next() {
        words.truncate(1 + input.below(8));
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let at = PUSH_OFFSET + 64 * input.below(4) as u64;
    let cut = if mask.next() { 8 * input.below(words.len() + 1) } else { 0 };
    let (first, rest) = bytes.split_at(cut.min(bytes.len()));
    for (from, bytes) in [(at, first), (at + first.len() as u64, rest)] {
        if !bytes.is_empty() {
            nodes.bare.bench.write_line(node, DOMAIN, from, bytes);
        }
    }
}

/// A token of a slot that is right but for what the input changes.
fn token(input: &mut Input<'_>, slot: usize) -> Token {
    let mut mask = Mask::of(input);
    let mut token = Token {
        vi: 1 + u16::try_from(input.below(3)).expect("small"),
        region: REGION,
        offset_64: u32::try_from(slot * SLOT_BYTES / 64).expect("small"),
        segments: 1,
        queue: if mask.next() { Queue::Send } else { Queue::Recv },
    };
    if mask.next() {
        token.segments = input.u8();
    }
    if mask.next() {
        token.vi = input.u16();
    }
    if mask.next() {
        token.region = input.u16();
    }
    if mask.next() {
        token.offset_64 = input.u32();
    }
    token
}

/// A descriptor that is right but for what the input changes.
fn descriptor(input: &mut Input<'_>) -> Vec<u8> {
    let mut mask = Mask::of(input);
    let segments = input.below(4);
    let mut control = ControlSegment {
        next: va(FREE_OFFSET + slot(input)),
        next_handle: HANDLE.0,
        seg_count: u16::try_from(segments).expect("small"),
        control: u16::from(input.u8() & 0xf),
        ..ControlSegment::default()
    };
    let mut if_next = |set: &mut dyn FnMut(&mut Input<'_>)| {
        if mask.next() {
            set(input);
        }
    };
    if_next(&mut |input| control.seg_count = input.u16());
    if_next(&mut |input| control.control = input.u16());
    if_next(&mut |input| control.reserved = input.u32());
    if_next(&mut |input| control.next = input.u64());
    if_next(&mut |input| control.next_handle ^= input.u32());
    if_next(&mut |input| control.length = input.u32());
    if_next(&mut |input| control.status = input.u32());
    let mut bytes = control.to_bytes().to_vec();
    for _ in 0..segments {
        let mut segment = DataSegment {
            address: va(FREE_OFFSET + BUFFERS + usize::from(input.u16())),
            handle: HANDLE.0,
            length: u32::from(input.u16() % 0x2000),
        };
        let mut mask = Mask::of(input);
        if mask.next() {
            segment.address = segment.address.wrapping_add(input.u64());
        }
        if mask.next() {
            segment.handle ^= input.u32();
        }
        if mask.next() {
            segment.length = input.u32();
        }
        bytes.extend(segment.to_bytes());
    }
    bytes
}
