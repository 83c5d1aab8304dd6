//! Random descriptors, good ones, and what is wrong with others.

use super::plan::{DATA_BYTES, Segment, Spec, Unreachable, Wrong};
use crate::random::Random;
use nic_regs::desc::control;
use nic_regs::limits::DATA_SEGMENTS_MAX;

/// A number below a limit of at most 256.
pub(super) fn small(random: &mut Random, limit: u64) -> u8 {
    u8::try_from(random.below(limit)).expect("a small limit")
}

impl Wrong {
    /// Something that every device must notice in a segment.
    pub(super) fn any(random: &mut Random) -> Self {
        match random.below(16) {
            0 => Self::Index(small(random, 6)),
            1 => Self::Stale(small(random, 16)),
            2..=4 => Self::Generation(small(random, 16)),
            5..=8 => Self::Tag,
            9 => Self::Domain,
            10 => Self::Address(20 + small(random, 44)),
            _ => Self::Bounds,
        }
    }
}

impl Unreachable {
    pub(super) fn any(random: &mut Random) -> Self {
        match random.below(5) {
            0..=1 => Self::Tag,
            2 => Self::Domain,
            _ => Self::Place(8 + small(random, 12), 14 + small(random, 50)),
        }
    }

    /// Of a send. (A receive in absent memory may be read, and be an error, though no message meets it.)
    pub(super) fn of_send(random: &mut Random) -> Self {
        if random.chance(0.3) { Self::Absent } else { Self::any(random) }
    }

    pub(super) fn of_next(random: &mut Random) -> Self {
        match random.below(5) {
            0..=1 => Self::Generation(small(random, 16)),
            2 => Self::Index(small(random, 6)),
            _ => Self::Aligned(small(random, 6)),
        }
    }
}

/// A good descriptor of `total` bytes in up to 16 segments, which may overlap those of others.
pub(super) fn spec(random: &mut Random, total: u64) -> Spec {
    let mut segments = Vec::new();
    let mut left = total;
    let wanted = if random.chance(0.7) {
        1 + random.below(3)
    } else {
        random.below(DATA_SEGMENTS_MAX as u64 + 1)
    };
    for i in 0..wanted {
        let mut length = if i + 1 == wanted { left } else { random.below(left + 1) };
        if random.chance(0.1) && i + 1 != wanted {
            length = 0;
        }
        left -= length;
        segments.push(Segment {
            offset: offset(random, length),
            length: u32::try_from(length).expect("below the data area"),
            wrong: Wrong::Nothing,
        });
    }
    if left > 0 {
        segments.push(Segment {
            offset: offset(random, left),
            length: u32::try_from(left).expect("below the data area"),
            wrong: Wrong::Nothing,
        });
    }
    segments.truncate(DATA_SEGMENTS_MAX);
    Spec {
        remote: None,
        segments,
        control: control::OP_SENDRECV,
        reserved: 0,
        seg_count: None,
        immediate: u32::try_from(random.bits() >> 32).expect("32 bits"),
        unreachable: None,
    }
}

/// Where so many bytes are: anywhere, or so that they begin or end near a boundary of 4 KiB.
fn offset(random: &mut Random, length: u64) -> u64 {
    let most = DATA_BYTES as u64 - length;
    let boundary = 4096 * (1 + random.below(DATA_BYTES as u64 / 4096 - 1));
    let near = boundary - 5 + random.below(11);
    match random.below(6) {
        0 => near.min(most),
        1 => near.saturating_sub(length),
        _ => random.below(most),
    }
}

/// Has a receive go on behind its last byte, where memory is not allowed: what is shorter does not notice.
pub(super) fn reach_beyond(random: &mut Random, recv: &mut Spec) {
    let more = match random.below(5) {
        0 => 1,
        1 => 63,
        2 => 65_472,
        // With what is before it, about what the lengths are added up to.
        3 => (1 << 20) - 1 - u32::from(small(random, 256)),
        _ => u32::MAX,
    };
    let count = recv.segments.len();
    match recv.segments.last_mut() {
        Some(last) if last.length > 0 && last.wrong == Wrong::Nothing && random.chance(0.5) => {
            last.offset = DATA_BYTES as u64 - u64::from(last.length);
            last.length = last.length.saturating_add(more);
        }
        _ if count < DATA_SEGMENTS_MAX => {
            let (offset, wrong) = (random.below(300), Wrong::any(random));
            recv.segments.push(Segment { offset, length: more, wrong });
        }
        _ => {}
    }
}

/// Has lengths be too much together for the 20 bits in which they are added up, by a few bytes. Each segment is all
/// right.
pub(super) fn pass_the_sum(random: &mut Random, spec: &mut Spec) {
    let mut left = (1 << 20) + random.below(64) - spec.total();
    if spec.segments.len() as u64 + left.div_ceil(DATA_BYTES as u64) > DATA_SEGMENTS_MAX as u64 {
        return;
    }
    while left > 0 {
        let length = left.min(DATA_BYTES as u64 - 1);
        left -= length;
        let offset = offset(random, length);
        let length = u32::try_from(length).expect("below the data area");
        spec.segments.push(Segment { offset, length, wrong: Wrong::Nothing });
    }
}

pub(super) fn spoil_format(random: &mut Random, spec: &mut Spec) {
    match random.below(4) {
        0 => spec.control |= 0x10 << random.below(12),
        1 => {
            // A send whose first segment says a length is no RDMA: its address segment would.
            let says = spec.segments.first().is_some_and(|segment| segment.length > 0);
            let sends = spec.control & control::OP_MASK == control::OP_SENDRECV;
            let operation = 1 + u16::from(small(random, 3));
            spec.control |= if sends && says { operation } else { control::OP_MASK };
        }
        2 => spec.reserved = 1 << random.below(32),
        _ => spec.seg_count = Some(17 + u16::try_from(random.below(1000)).expect("small")),
    }
}

pub(super) fn spoil_segment(random: &mut Random, spec: &mut Spec) {
    if spec.total() == 0 {
        spec.segments.push(Segment { offset: 0, length: 1, wrong: Wrong::Nothing });
        spec.segments.truncate(DATA_SEGMENTS_MAX);
    }
    let used: Vec<usize> =
        (0..spec.segments.len()).filter(|&i| spec.segments[i].length > 0).collect();
    let Some(&index) =
        used.get(usize::try_from(random.below(used.len().max(1) as u64)).unwrap_or(0))
    else {
        spec.reserved = 1;
        return;
    };
    spec.segments[index].wrong = Wrong::any(random);
}
