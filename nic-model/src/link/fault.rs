//! Faults on a wire: by chance, from a seed, or by the ordinal of a frame.

use nic_regs::frame::{HEADER_BEATS, Header, Type, flag};

use crate::device::Beat;

/// What goes wrong on a wire. The default is nothing. Each direction has a stream of chances of its
/// own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Seed of all chances.
    pub seed: u64,
    /// Chance that a frame is lost.
    pub loss: f64,
    /// Chance that a data frame without a sequence number (of an Unreliable VI) is lost. It depends on what
    /// the frame carries, not on those before it: devices that send the same lose the same.
    pub unreliable_loss: f64,
    /// Chance that one bit of a frame is inverted.
    pub corrupt: f64,
    /// Chance that a frame arrives twice.
    pub duplicate: f64,
    /// Chance that a frame ends early.
    pub cut: f64,
    /// Frames that are lost, by their ordinal from 0, in each direction.
    pub drop_frames: [Vec<u64>; 2],
    /// Frames with one bit inverted.
    pub corrupt_frames: [Vec<u64>; 2],
    /// Frames that arrive twice.
    pub duplicate_frames: [Vec<u64>; 2],
    /// Frames that end early.
    pub cut_frames: [Vec<u64>; 2],
}

/// What went wrong in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Frames sent, whatever became of them.
    pub frames: u64,
    /// Frames lost.
    pub lost: u64,
    /// Frames with a bit inverted.
    pub corrupted: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
    /// Frames that ended early.
    pub cut: u64,
}

impl Faults {
    /// Whether anything can go wrong.
    #[must_use]
    pub fn any(&self) -> bool {
        *self != Self { seed: self.seed, ..Self::default() }
    }
}

impl Faults {
    fn loses_unreliable(&self, frame: &[Beat]) -> bool {
        if self.unreliable_loss == 0.0 || frame.len() <= HEADER_BEATS {
            return false;
        }
        let [head @ .., _crc] = frame else { return false };
        let header = Header::from_beats(core::array::from_fn(|i| head[i].data));
        let kinds = [Type::Data as u8, Type::RdmaWrite as u8];
        if header.flags & flag::SEQUENCED != 0 || !kinds.contains(&header.kind) {
            return false;
        }
        // What the channel fills in, and its epochs, are of no matter.
        let header = Header { tag: 0, credit: 0, acknowledgement: 0, ..header }.to_beats();
        let beats = head[HEADER_BEATS..].iter().map(|beat| beat.data);
        let sum = header
            .into_iter()
            .chain(beats)
            .fold(self.seed, |sum, beat| SplitMix64(sum ^ beat).next());
        SplitMix64(sum).chance(self.unreliable_loss)
    }
}

/// The faults of one direction.
#[derive(Clone, Debug)]
pub(super) struct Injector {
    faults: Faults,
    direction: usize,
    random: SplitMix64,
    counts: FaultCounts,
}

impl Injector {
    pub(super) fn new(faults: Faults, direction: usize) -> Self {
        let random = SplitMix64(faults.seed ^ (direction as u64).wrapping_mul(GOLDEN));
        Self { faults, direction, random, counts: FaultCounts::default() }
    }

    pub(super) const fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// What arrives instead of a frame: nothing, one frame, or two.
    pub(super) fn apply(&mut self, mut frame: Vec<Beat>) -> Vec<Vec<Beat>> {
        let ordinal = self.counts.frames;
        self.counts.frames += 1;
        let faults = &self.faults;
        let random = &mut self.random;
        let mut hit = |chance: f64, listed: &[Vec<u64>; 2]| {
            random.chance(chance) | listed[self.direction].contains(&ordinal)
        };
        let lost = hit(faults.loss, &faults.drop_frames) | faults.loses_unreliable(&frame);
        let corrupt = hit(faults.corrupt, &faults.corrupt_frames);
        let duplicate = hit(faults.duplicate, &faults.duplicate_frames);
        let cut = hit(faults.cut, &faults.cut_frames);
        if lost {
            self.counts.lost += 1;
            return Vec::new();
        }
        if corrupt {
            self.counts.corrupted += 1;
            let at = self.random.below(frame.len());
            // The last beat's upper half is not covered by the CRC.
            let bits = if frame[at].last { 32 } else { 64 };
            frame[at].data ^= 1 << self.random.below(bits);
        }
        if cut && frame.len() > 1 {
            self.counts.cut += 1;
            let left = 1 + self.random.below(frame.len() - 1);
            frame.truncate(left);
            frame[left - 1].last = true;
        }
        if duplicate {
            self.counts.duplicated += 1;
            return vec![frame.clone(), frame];
        }
        vec![frame]
    }
}

/// Increment of SplitMix64.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn chance(&mut self, p: f64) -> bool {
        let x = self.next() >> 11;
        p > 0.0 && (x as f64) < p * (1_u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap_or(0)
    }
}
