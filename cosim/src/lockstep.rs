//! Lockstep: the same random program on two kinds of device; whatever software or the wire can see
//! must be the same.
//!
//! Compared, phase by phase: admin answers, descriptor statuses, lengths and immediate data, events
//! by VI and kind, messages, the error log, the counters that do not depend on timing, the frames
//! of each VI in order (without retransmissions), interrupts of queues that were armed, and at the end of
//! each phase all of memory. Not compared: cycles, and the order of things that the contract leaves open.
//! In some phases a fence ends the traffic of one more pair of VIs in its midst (`fenced`).

mod fenced;
mod plan;
mod push;
mod run;

use run::execute;
pub use run::{Record, Settings};

use crate::simulation::SimulatedDevice;
use nic_model::device::Features;

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
        write!(f, "  second  {}", show(&self.second))
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
    let plan = plan::plan(settings.seed, settings.loss > 0.0 || settings.corrupt > 0.0);
    let a = execute(settings, &plan, [first(0), first(1)]);
    let b = execute(settings, &plan, [second(0), second(1)]);
    let count = a.len().max(b.len());
    for index in 0..count {
        // What is broken on both is no agreement.
        if a.get(index) != b.get(index) || a[index].is_failure {
            return Err(Box::new(Divergence {
                seed: settings.seed,
                index,
                first: a.get(index).cloned(),
                second: b.get(index).cloned(),
            }));
        }
    }
    Ok(count)
}
