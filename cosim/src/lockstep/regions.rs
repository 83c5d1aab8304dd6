//! The memory of a pair of VIs: its regions, and segments that name it, rightly or wrongly.
//!
//! Identities are of any value that they may have, and what is wrong differs from what is right in one bit:
//! a device that compares a part of a field is found out.

use super::plan::{DATA_BYTES, Plan, Remote, SLOT_BYTES, SLOTS, Segment, Spec, Wrong};
use crate::random::Random;
use crate::testbench::{FREE_OFFSET, MEMORY_BYTES, Region, va};
use nic_regs::desc::DataSegment;
use nic_regs::doorbell::Queue;
use nic_regs::tpt;

/// Bytes of a pair's area in a node's memory: data, then descriptors of both queues.
const AREA_BYTES: usize = (DATA_BYTES + 2 * SLOTS * SLOT_BYTES).next_multiple_of(0x1000) + 0x1_0000;

/// First byte of a pair's area: its data.
pub(super) fn area(pair: usize) -> usize {
    FREE_OFFSET + pair * AREA_BYTES
}

/// Where a descriptor is.
pub(super) fn slot(pair: usize, queue: Queue, index: usize) -> usize {
    area(pair) + DATA_BYTES + (queue as usize * SLOTS + index) * SLOT_BYTES
}

/// Offset in its descriptor of a byte of a node's memory, where a program has descriptors.
#[must_use]
pub fn offset_in_descriptor(offset: usize) -> Option<usize> {
    let in_area = offset.checked_sub(FREE_OFFSET)? % AREA_BYTES;
    let in_slots = in_area.checked_sub(DATA_BYTES)?;
    (in_slots < 2 * SLOTS * SLOT_BYTES).then_some(in_slots % SLOT_BYTES)
}

/// A region of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairRegion {
    Data,
    Descriptors,
    /// The data, for VIs of another tag, or of another domain.
    DataOfTag,
    DataOfDomain,
    /// The descriptors, for such.
    DescriptorsOfTag,
    DescriptorsOfDomain,
    /// Memory that the host does not have.
    Absent,
}

impl PairRegion {
    pub(super) const ALL: [Self; 7] = [
        Self::Data,
        Self::Descriptors,
        Self::DataOfTag,
        Self::DataOfDomain,
        Self::DescriptorsOfTag,
        Self::DescriptorsOfDomain,
        Self::Absent,
    ];

    /// Its number.
    pub(super) fn index(self, pair: usize) -> u16 {
        u16::try_from(Self::ALL.len() * pair + self as usize).expect("small")
    }

    /// Its handle on a node, in a phase.
    pub(super) fn handle(
        self,
        plan: &Plan,
        phase: usize,
        (pair, node): (usize, usize),
    ) -> tpt::Handle {
        let changes = match self {
            Self::Data | Self::Descriptors => plan.changes(phase, pair, node),
            _ => 0,
        };
        self.handle_after(plan, changes, (pair, node))
    }

    /// Its handle when it has changed so often.
    fn handle_after(
        self,
        plan: &Plan,
        changes: usize,
        (pair, node): (usize, usize),
    ) -> tpt::Handle {
        let index = self.index(pair);
        let mut random = Random::new(plan.seed ^ u64::from(index) << 32 ^ (node as u64) << 48);
        let mut generation = match random.below(4) {
            0 => 1,
            1 => 0xffff,
            _ => 1 + u16::try_from(random.below(0xffff)).expect("below 2^16"),
        };
        for _ in 0..changes {
            // Of two that follow each other, one bit is all that differs. None is 0.
            let mut bit = || 1 << random.below(16);
            generation = match generation ^ bit() {
                0 => 0x8001,
                generation => generation,
            };
        }
        tpt::Handle::new(index, generation)
    }

    /// What RegionSet takes.
    pub(super) fn region(self, plan: &Plan, phase: usize, (pair, node): (usize, usize)) -> Region {
        let vi = &plan.pairs[pair];
        let (offset, bytes) = match self {
            Self::Data | Self::DataOfTag | Self::DataOfDomain => (area(pair), DATA_BYTES),
            Self::Descriptors | Self::DescriptorsOfTag | Self::DescriptorsOfDomain => {
                (slot(pair, Queue::Send, 0), 2 * SLOTS * SLOT_BYTES)
            }
            Self::Absent => (MEMORY_BYTES, DATA_BYTES),
        };
        let bit = plan.seed + pair as u64;
        let (mut tag, mut domain) = (vi.tag[node], vi.domain[node]);
        match self {
            Self::DataOfTag | Self::DescriptorsOfTag => tag ^= 1 << (bit % 16),
            Self::DataOfDomain | Self::DescriptorsOfDomain => domain ^= 1 << (bit % 6),
            _ => {}
        }
        let remote = match self {
            Self::Descriptors => 0,
            _ => tpt::RIGHT_RDMA_WRITE | tpt::RIGHT_RDMA_READ,
        };
        let generation = self.handle(plan, phase, (pair, node)).generation();
        Region { offset, bytes, tag, generation, domain, rights: tpt::RIGHT_VALID | remote }
    }
}

/// All segments of a descriptor that a node of a pair posts.
pub(super) fn segments(
    plan: &Plan,
    phase: usize,
    (pair, node): (usize, usize),
    spec: &Spec,
) -> Vec<DataSegment> {
    let total = u32::try_from(spec.total()).unwrap_or(u32::MAX);
    let there = spec.remote.iter().map(|place| remote(plan, phase, (pair, 1 - node), place, total));
    let here = spec.segments.iter().map(|segment| local(plan, phase, (pair, node), segment));
    there.chain(here).collect()
}

/// A segment of a descriptor of a node's own memory.
fn local(plan: &Plan, phase: usize, of: (usize, usize), segment: &Segment) -> DataSegment {
    place((plan, phase), of, segment.offset, segment.length, segment.wrong)
}

/// The address segment of an RDMA of so many bytes, of the memory of a node.
pub(super) fn remote(
    plan: &Plan,
    phase: usize,
    of: (usize, usize),
    remote: &Remote,
    length: u32,
) -> DataSegment {
    let place = place((plan, phase), of, remote.offset, length, remote.wrong);
    DataSegment { length: remote.reserved, ..place }
}

fn place(
    (plan, phase): (&Plan, usize),
    (pair, node): (usize, usize),
    offset: u64,
    length: u32,
    wrong: Wrong,
) -> DataSegment {
    let handle = |of: PairRegion| of.handle(plan, phase, (pair, node));
    let mut named = handle(PairRegion::Data);
    let mut address = va(area(pair)) + offset;
    match wrong {
        Wrong::Nothing => {}
        Wrong::Index(bit) => {
            named = tpt::Handle::new(named.index() | 1024 << bit, named.generation());
        }
        Wrong::Generation(bit) => {
            named = tpt::Handle::new(named.index(), named.generation() ^ 1 << bit);
        }
        Wrong::Stale(bit) => {
            named = match plan.changes(phase, pair, node) {
                0 => tpt::Handle::new(named.index(), named.generation() ^ 1 << bit),
                changes => PairRegion::Data.handle_after(plan, changes - 1, (pair, node)),
            };
        }
        Wrong::Tag => named = handle(PairRegion::DataOfTag),
        Wrong::Domain => named = handle(PairRegion::DataOfDomain),
        Wrong::Address(bit) => address ^= 1 << bit,
        Wrong::Bounds => {
            let end = va(area(pair)) + DATA_BYTES as u64;
            address = match offset % 8 {
                0..=4 => end - u64::from(length) + 1,
                5 => end + offset,
                6 => va(area(pair)) - 1,
                // It would wrap.
                _ => u64::MAX - u64::from(length) / 2,
            };
        }
        Wrong::Rights => {
            named = handle(PairRegion::Descriptors);
            address = va(slot(pair, Queue::Send, 0));
        }
        Wrong::Absent => {
            named = handle(PairRegion::Absent);
            address = va(MEMORY_BYTES) + offset;
        }
    }
    DataSegment { address, handle: named.0, length }
}
