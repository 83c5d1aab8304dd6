//! Admin commands that every device refuses, each for one reason, between two nodes at rest: they change
//! nothing (contract 1.3, 1.4).

use super::descriptor::small;
use super::plan::{Plan, Refused};
use super::regions::PairRegion;
use crate::random::Random;
use nic_regs::admin::Opcode;
use nic_regs::limits::{
    DOMAIN_COUNT, EVENT_QUEUE_COUNT, MAX_TRANSFER_BYTES, MSIX_VECTOR_COUNT, PEER_COUNT,
    REGION_COUNT, VI_COUNT,
};

/// Most commands of a phase.
const MOST: u64 = 3;
/// Commands that name an object, and how many there are of it.
const TABLES: [(Opcode, usize); 13] = [
    (Opcode::RegionSet, REGION_COUNT),
    (Opcode::RegionClear, REGION_COUNT),
    (Opcode::ViCreate, VI_COUNT),
    (Opcode::ViDestroy, VI_COUNT),
    (Opcode::ViConnect, VI_COUNT),
    (Opcode::ViDisconnect, VI_COUNT),
    (Opcode::ViQuery, VI_COUNT),
    (Opcode::EventCreate, EVENT_QUEUE_COUNT),
    (Opcode::EventDestroy, EVENT_QUEUE_COUNT),
    (Opcode::PeerOpen, PEER_COUNT),
    (Opcode::PeerClose, PEER_COUNT),
    (Opcode::PeerQuery, PEER_COUNT),
    (Opcode::MessageQueue, DOMAIN_COUNT),
];

/// Commands for a phase. Whatever is wrong is so at the beginning of any phase.
pub(super) fn commands(plan: &Plan, phase: usize) -> Vec<Refused> {
    let random = &mut Random::new(plan.seed ^ (phase as u64 + 1) << 48);
    (0..random.below(MOST + 1)).map(|_| command(random, plan, phase)).collect()
}

fn command(random: &mut Random, plan: &Plan, phase: usize) -> Refused {
    let node = usize::from(random.chance(0.5));
    let (opcode, index, body) = match random.below(4) {
        0 => {
            // A bit above those of the opcodes, or the number behind the last one.
            let known = number(random, Opcode::MessageQueue as u64 + 1);
            let opcode = if random.chance(0.2) {
                Opcode::MessageQueue as u32 + 1
            } else {
                known | bit(random, 4..32)
            };
            (opcode, 0, Vec::new())
        }
        1 if random.chance(0.1) => {
            let beyond = 1 << [6, 7, 14, 15][usize::from(small(random, 4))];
            (Opcode::MessageSend as u32, number(random, PEER_COUNT as u64) | beyond, Vec::new())
        }
        1 => {
            let (opcode, count) = TABLES[usize::from(small(random, TABLES.len() as u64))];
            let beyond = bit(random, count.trailing_zeros()..32);
            (opcode as u32, number(random, count as u64) | beyond, vec![0; 7])
        }
        2 => wrong_body(random, plan, node, phase),
        _ => wrong_state(random, plan, node, phase),
    };
    Refused { node, opcode, index, body }
}

/// Something that is right but for one field.
fn wrong_body(random: &mut Random, plan: &Plan, node: usize, phase: usize) -> (u32, u32, Vec<u32>) {
    let domain = bit(random, 6..8);
    match random.below(5) {
        0 => {
            let mut body = PairRegion::Data.region(plan, phase, (0, node)).body();
            match random.below(7) {
                0 => body[4] = 0,
                1 => body[6] &= !0x100,
                2 => body[6] |= bit(random, 11..16),
                3 => body[6] |= domain,
                4 => body[5] &= 0xffff,
                5 => body[0] ^= bit(random, 0..12),
                _ => {
                    // Its last page is that of the whole space; one or the other.
                    let base = 2 * usize::from(random.chance(0.5));
                    body[base] |= 0xffff_f000;
                    body[base + 1] = u32::MAX;
                    body[4] = body[4].max(0x1001);
                }
            }
            (Opcode::RegionSet as u32, number(random, REGION_COUNT as u64), body.into())
        }
        1 => {
            let queue = || u32::from(plan.names.queues[node][0]);
            let mut body = vec![1 << 8, queue() | queue() << 16, MAX_TRANSFER_BYTES, 0];
            match random.below(6) {
                0 => body[0] |= domain,
                1 => body[0] |= bit(random, 9..16),
                2 => body[1] |= bit(random, 8..16),
                3 => body[1] |= bit(random, 24..32),
                4 => body[2] = 0,
                _ => body[2] |= bit(random, 0..18) | bit(random, 18..32),
            }
            (Opcode::ViCreate as u32, number(random, VI_COUNT as u64), body)
        }
        2 => {
            let mut body = vec![0x1000, 0, 4];
            match random.below(4) {
                0 => body[0] |= bit(random, 0..6),
                1 => body[2] = number(random, 2),
                2 => body[2] |= domain << 8,
                _ => body[2] |= bit(random, MSIX_VECTOR_COUNT.trailing_zeros()..8) << 16,
            }
            (Opcode::EventCreate as u32, number(random, EVENT_QUEUE_COUNT as u64), body)
        }
        3 => {
            let credits = [0, 65 + number(random, 191)][usize::from(random.chance(0.7))];
            (Opcode::PeerOpen as u32, number(random, PEER_COUNT as u64), vec![0, credits])
        }
        _ => {
            let queue = number(random, EVENT_QUEUE_COUNT as u64) | bit(random, 8..16);
            (Opcode::MessageQueue as u32, number(random, DOMAIN_COUNT as u64), vec![queue])
        }
    }
}

/// Something that is right, of an object that is in another state.
fn wrong_state(
    random: &mut Random,
    plan: &Plan,
    node: usize,
    phase: usize,
) -> (u32, u32, Vec<u32>) {
    let pair = usize::from(small(random, plan.pairs.len() as u64));
    let vi = u32::from(plan.pairs[pair].vi[node]);
    let [own, peer] = [node, 1 - node].map(|node| u32::from(plan.names.nodes[node]));
    let nobody = (0..).find(|it| ![own, peer].contains(it)).expect("others are free");
    let (opcode, index, body) = match random.below(7) {
        0 => {
            let region = PairRegion::Data;
            let body = region.region(plan, phase, (pair, node)).body();
            (Opcode::RegionSet, region.index(pair).into(), body.to_vec())
        }
        1 => (Opcode::ViCreate, vi, vec![1 << 8, 0, MAX_TRANSFER_BYTES, 0]),
        2 => (Opcode::ViConnect, vi, vec![peer, 0]),
        3 => (Opcode::EventCreate, plan.names.queues[node][0].into(), vec![0x1000, 0, 4]),
        4 => (Opcode::PeerOpen, peer, vec![0, 1]),
        5 => (Opcode::PeerClose, nobody, Vec::new()),
        _ => (Opcode::MessageSend, nobody, Vec::new()),
    };
    (opcode as u32, index, body)
}

fn number(random: &mut Random, below: u64) -> u32 {
    u32::try_from(random.below(below)).expect("32 bits")
}

/// One of these bits.
fn bit(random: &mut Random, bits: std::ops::Range<u32>) -> u32 {
    1 << (bits.start + number(random, (bits.end - bits.start).into()))
}
