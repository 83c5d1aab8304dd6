//! The blocks of the host port and `csr`, Verilated, against small drivers that play their
//! neighbours with random delays. Every test prints its seed when it fails.
#![cfg(feature = "blocks")]
#![allow(clippy::cast_possible_truncation, reason = "fields are cut to their widths")]
#![allow(clippy::print_stdout, reason = "seeds and measured cycles")]

mod completion;
mod counters;
mod cq;
mod csr;
mod dma_read;
mod dma_write;
mod push;
mod read_cost;
mod read_missing;
mod rq;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Runs `body` with a generator for each seed.
fn each_seed(seeds: std::ops::Range<u64>, body: impl Fn(u64, &mut SmallRng)) {
    cosim::random::each_seed(seeds, |seed| body(seed, &mut SmallRng::seed_from_u64(seed)));
}

/// True in `percent` of the cases.
fn chance(rng: &mut SmallRng, percent: u32) -> bool {
    rng.random_range(0..100) < percent
}

/// Joins the beats of a stream into TLPs.
#[derive(Default)]
struct Collector {
    beats: Vec<u64>,
}

impl Collector {
    fn push(&mut self, data: u64, last: bool) -> Option<Vec<u64>> {
        self.beats.push(data);
        last.then(|| std::mem::take(&mut self.beats))
    }
}

/// Watches a stream's handshake: `valid` and the beat stay until it moves.
#[derive(Default)]
struct Stable {
    waiting: Option<(u64, bool)>,
}

impl Stable {
    fn look(&mut self, valid: bool, data: u64, last: bool, ready: bool) {
        if let Some(beat) = self.waiting {
            assert!(valid, "valid fell while the beat waited");
            assert_eq!(beat, (data, last), "the beat changed while it waited");
        }
        self.waiting = (valid && !ready).then_some((data, last));
    }
}
