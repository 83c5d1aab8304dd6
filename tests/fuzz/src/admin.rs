//! What a driver, or a program in its place, may do to a model: any entries of the admin ring, accesses
//! of any register and place, doorbells, in any order.

use cosim::testbench::MEMORY_BYTES;
use nic_regs::csr::{self, ADMIN_TAIL};
use nic_regs::doorbell::{EVENT_OFFSET, PAGE_BYTES, PUSH_OFFSET, TOKEN_OFFSET};
use tests::bare::{ADMIN_LOG2, Bare, command};

use crate::input::{Input, Mask};
use crate::nodes::{Nodes, rest};

/// Steps of an input at most.
const STEPS: usize = 64;
/// Bytes of an access of a BAR at most; none crosses a multiple of it.
const LINE: usize = 64;

/// See the module. The device comes to rest, answers every read, and is as new after a reset.
///
/// # Panics
/// If it does not.
pub(crate) fn admin(data: &[u8]) {
    let mut input = Input::new(data);
    let Nodes { mut bare, .. } = Nodes::connected();
    let mut tail = tail_of(&mut bare);
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        step(&mut input, &mut bare, &mut tail);
    }
    rest(&mut bare);
    bare.soft_reset(0);
    assert!(bare.prepare(0).is_some(), "a device that was reset carries out no commands");
}

fn tail_of(bare: &mut Bare) -> u16 {
    u16::try_from(bare.read(0, ADMIN_TAIL::OFFSET) & 0xffff).expect("16 bits")
}

fn step(input: &mut Input<'_>, bare: &mut Bare, tail: &mut u16) {
    match input.u8() % 8 {
        0 | 1 => {
            let entry = entry(input);
            let bytes: Vec<u8> = entry.iter().flat_map(|word| word.to_le_bytes()).collect();
            let slot = usize::from(*tail) % (1 << ADMIN_LOG2);
            bare.host_mut(0).put(slot * bytes.len(), &bytes);
            *tail = tail.wrapping_add(1);
            bare.write(0, ADMIN_TAIL::OFFSET, (*tail).into());
        }
        2 => {
            let register = input.pick(csr::REGS).offset;
            bare.write(0, register, input.u32());
        }
        3 => {
            let (bar, offset) = place(input);
            let space = LINE - usize::try_from(offset % LINE as u64).expect("small");
            let length = space.min(1 + input.below(LINE));
            let bytes = input.bytes(length).to_vec();
            if !bytes.is_empty() {
                bare.write_raw(0, bar, offset, &bytes);
            }
        }
        4 => {
            let (bar, offset) = place(input);
            let space = LINE - usize::try_from(offset % LINE as u64).expect("small");
            let length = (1 + input.below(8)).min(space);
            bare.read_raw(0, bar, offset, length);
        }
        5 => bare.bench.run(1 + 8 * u64::from(input.u8())),
        6 => {
            let at = input.pick(&[TOKEN_OFFSET, EVENT_OFFSET, PUSH_OFFSET]);
            let domain = input.u8();
            bare.doorbell(0, domain, at, input.u64());
        }
        _ => {
            let at = input.u32() as usize % (MEMORY_BYTES - 256);
            let length = 1 + input.below(64);
            let bytes = input.bytes(length).to_vec();
            bare.host_mut(0).put(at, &bytes);
        }
    }
}

/// An entry: any bytes, or a command with a few words that are not zero.
fn entry(input: &mut Input<'_>) -> [u32; 16] {
    if input.u8() == 255 {
        return core::array::from_fn(|_| input.u32());
    }
    let (opcode, index) = (input.below(16), input.u8());
    let mut mask = Mask::of(input);
    let index = if mask.next() { input.u32() } else { u32::from(index % 8) };
    let body: [u32; 12] = core::array::from_fn(|_| if mask.next() { input.u32() } else { 0 });
    command(u32::try_from(opcode).expect("small"), index, &body)
}

/// A BAR, and a place in or around it.
fn place(input: &mut Input<'_>) -> (u8, u64) {
    match input.u8() % 4 {
        0 => (0, u64::from(input.u16())),
        1 => (2, u64::from(input.u8()) * PAGE_BYTES + u64::from(input.u16() % 0x240)),
        2 => (input.u8() % 6, u64::from(input.u32())),
        _ => (0, u64::from(input.pick(csr::REGS).offset)),
    }
}
