//! Lockstep: the same random program on two kinds of device; whatever software or the wire can see
//! must be the same.
//!
//! Compared, phase by phase: what each work queue had written to the host, in order (`order`); admin
//! answers, descriptor statuses, lengths and immediate data, events by VI and kind, messages, the error
//! log, the counters that do not depend on timing, the frames of each VI in order (without
//! retransmissions), interrupts of queues that were armed, and at the end of each phase all of memory. Not
//! compared: cycles, and the order of things that the contract leaves open. Of each device by itself:
//! events and interrupts come behind what they report, and no rule of the host port is broken. In some
//! phases a fence ends the traffic of one more pair of VIs in its midst (`fenced`).
//!
//! | file | what |
//! |---|---|
//! | `plan` | what a program consists of |
//! | `generate` | random programs |
//! | `run`, `observe` | a program on two devices, and what is recorded of it |
//! | `regions` | the memory of a pair of VIs, and segments that name it, rightly or wrongly |
//! | `push` | how sends are posted |
//! | `order`, `fenced` | see above |
//! | `forge` | frames that no honest device sends |
//! | `shrink` | a smaller program that still fails |
//! | `describe`, `trail` | programs in words; what both devices did where they differ |

mod describe;
mod fenced;
mod forge;
mod generate;
mod observe;
mod order;
mod plan;
mod push;
mod regions;
mod run;
mod shrink;
mod trail;

use run::execute;
pub use run::{Record, Settings};
pub use shrink::{MOST_TRIES, Smaller, shrink};

use crate::simulation::SimulatedDevice;
use nic_model::device::Features;
use plan::Plan;

/// What the RTL has; the programs try all that a device with these features can do.
pub const FEATURES: Features = Features { push: true, rdma_write: true, rdma_read: true };

/// Where two runs part.
#[derive(Debug)]
pub struct Divergence {
    /// Seed of the program.
    pub seed: u64,
    /// Index of the first record that differs.
    pub index: usize,
    /// What the first device did, if it did anything.
    pub first: Option<Record>,
    /// What the second device did.
    pub second: Option<Record>,
    /// The messages of the program that the record is about, if it is about some.
    pub messages: Vec<String>,
    /// What both devices did, side by side, from a little before they differ.
    pub trail: Vec<String>,
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |record: &Option<Record>| {
            record
                .as_ref()
                .map_or_else(|| "(nothing)".into(), |r| format!("{}: {}", r.what, r.value))
        };
        writeln!(f, "seed {}: first divergence at record {}", self.seed, self.index)?;
        writeln!(f, "  first   {}", show(&self.first))?;
        write!(f, "  second  {}", show(&self.second))?;
        self.messages.iter().chain(&self.trail).try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// Runs the program of a seed on two kinds of device and compares.
///
/// # Errors
/// The first divergence; a device that hangs shows as one.
pub fn compare(
    settings: &Settings,
    first: impl Fn(usize) -> SimulatedDevice,
    second: impl Fn(usize) -> SimulatedDevice,
) -> Result<usize, Box<Divergence>> {
    let plan = generate::plan(settings.seed, settings.is_lossy());
    compare_plan(settings, &plan, &first, &second)
        .map_err(|divergence| divergence.with_trail(settings, &plan, &first, &second))
}

fn compare_plan(
    settings: &Settings,
    plan: &Plan,
    first: &impl Fn(usize) -> SimulatedDevice,
    second: &impl Fn(usize) -> SimulatedDevice,
) -> Result<usize, Box<Divergence>> {
    let a = execute(settings, plan, [first(0), first(1)]);
    let b = execute(settings, plan, [second(0), second(1)]);
    let count = a.len().max(b.len());
    for index in 0..count {
        // What is broken on both is no agreement.
        if a.get(index) != b.get(index) || a[index].is_failure {
            let (first, second) = (a.get(index).cloned(), b.get(index).cloned());
            let what = first.as_ref().or(second.as_ref()).map_or("", |record| &record.what);
            let messages = describe::messages_of(plan, describe::place_of(plan, what));
            let (seed, trail) = (settings.seed, Vec::new());
            return Err(Box::new(Divergence { seed, index, first, second, messages, trail }));
        }
    }
    Ok(count)
}

impl Divergence {
    /// Runs the program once more, to see what led to it.
    fn with_trail(
        mut self: Box<Self>,
        settings: &Settings,
        plan: &Plan,
        first: &impl Fn(usize) -> SimulatedDevice,
        second: &impl Fn(usize) -> SimulatedDevice,
    ) -> Box<Self> {
        let a = run::trails(settings, plan, [first(0), first(1)]);
        let b = run::trails(settings, plan, [second(0), second(1)]);
        let what = self.first.as_ref().or(self.second.as_ref()).map_or("", |record| &record.what);
        let (phase, pair) = describe::place_of(plan, what);
        // What fails by itself has no place: it ends the run.
        let phase = phase.unwrap_or(a.len().min(b.len()).saturating_sub(1));
        if let (Some(a), Some(b)) = (a.get(phase), b.get(phase)) {
            self.trail = trail::side_by_side(plan, phase, pair, [a, b]);
        }
        self
    }
}
