//! Lockstep: the same random program on two kinds of device; whatever software or the wire can see
//! must be the same.
//!
//! Compared, phase by phase: what each work queue had written to the host, in order (`order`); admin
//! answers, descriptor statuses, lengths and immediate data, events by VI and kind, messages, the error
//! log, the counters that do not depend on timing, the frames of each VI in order (without
//! retransmissions), interrupts of queues that were armed, registers, and at the end of each phase all of
//! memory. Not compared: cycles, and the order of things that the contract leaves open. Of each device by itself:
//! events and interrupts come behind what they report, and no rule of the host port is broken. In some
//! phases a fence ends the traffic of one more pair of VIs in its midst (`fenced`).
//!
//! | file | what |
//! |---|---|
//! | `plan` | what a program consists of |
//! | `generate`, `message`, `descriptor` | random programs, from the whole to the single descriptor |
//! | `run`, `observe` | a program on two devices, and what is recorded of it |
//! | `regions` | the memory of a pair of VIs, and segments that name it, rightly or wrongly |
//! | `post`, `push` | how messages are posted |
//! | `interrupts` | queues that are armed, vectors that are masked |
//! | `registers` | registers, written and read while nobody uses the device, and in the end |
//! | `order`, `fenced` | see above |
//! | `refused` | admin commands that every device refuses |
//! | `forge`, `broken`, `inject` | frames, and messages, that no honest device sends; how nodes receive them |
//! | `shrink` | a smaller program that still fails |
//! | `describe`, `trail` | programs in words; what both devices did where they differ |

mod broken;
mod describe;
mod descriptor;
mod fenced;
mod forge;
mod generate;
mod inject;
mod interrupts;
mod message;
mod observe;
mod order;
mod plan;
mod post;
mod push;
mod refused;
mod regions;
mod registers;
mod run;
mod shrink;
mod trail;

pub use regions::offset_in_descriptor;
use run::execute;
pub use run::{Record, Settings};
pub use shrink::{MOST_TRIES, Smaller, shrink};

use crate::simulation::SimulatedDevice;
use nic_model::device::Features;
use plan::Plan;
use std::ops::Range;

/// What the RTL has; the programs try all that a device with these features can do.
pub const FEATURES: Features = Features { push: true, rdma_write: true, rdma_read: true };

/// Where two runs part.
#[derive(Debug)]
pub struct Divergence {
    /// Of the run.
    pub settings: Settings,
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
    /// Cycles of the second device around that.
    pub window: Range<u64>,
    /// The same was seen when the program ran once more.
    pub is_repeatable: bool,
    plan: Plan,
}

/// Cycles of the window before the second device differs, and behind it.
const WINDOW: [u64; 2] = [4_000, 1_000];
/// Cycles of the window at most: of a phase if nothing of its frames and writes differs.
const LONGEST_WINDOW: u64 = 20_000;

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |record: &Option<Record>| {
            record
                .as_ref()
                .map_or_else(|| "(nothing)".into(), |r| format!("{}: {}", r.what, r.value))
        };
        writeln!(f, "seed {}: first divergence at record {}", self.settings.seed, self.index)?;
        writeln!(f, "  first   {}", show(&self.first))?;
        write!(f, "  second  {}", show(&self.second))?;
        if !self.is_repeatable {
            write!(f, "\n  another run did something else: not repeatable!")?;
        }
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
        .map_err(|divergence| divergence.with_trail(&first, &second))
}

fn compare_plan(
    settings: &Settings,
    plan: &Plan,
    first: &impl Fn(usize) -> SimulatedDevice,
    second: &impl Fn(usize) -> SimulatedDevice,
) -> Result<usize, Box<Divergence>> {
    let a = execute(settings, plan, [first(0), first(1)], None);
    let b = execute(settings, plan, [second(0), second(1)], Some(&a));
    let count = a.len().max(b.len());
    for index in 0..count {
        // What is broken on both is no agreement.
        if a.get(index) != b.get(index) || a[index].is_failure {
            let (first, second) = (a.get(index).cloned(), b.get(index).cloned());
            let what = first.as_ref().or(second.as_ref()).map_or("", |record| &record.what);
            let messages = describe::messages_of(plan, describe::place_of(plan, what));
            return Err(Box::new(Divergence {
                settings: settings.clone(),
                index,
                first,
                second,
                messages,
                trail: Vec::new(),
                window: 0..LONGEST_WINDOW,
                is_repeatable: true,
                plan: plan.clone(),
            }));
        }
    }
    Ok(count)
}

impl Divergence {
    /// Runs the program once more, to see what led to it.
    fn with_trail(
        mut self: Box<Self>,
        first: &impl Fn(usize) -> SimulatedDevice,
        second: &impl Fn(usize) -> SimulatedDevice,
    ) -> Box<Self> {
        let (settings, plan) = (&self.settings, &self.plan);
        let (a_records, a) = run::trails(settings, plan, [first(0), first(1)]);
        let (b_records, b) = run::trails(settings, plan, [second(0), second(1)]);
        self.is_repeatable = a_records.get(self.index) == self.first.as_ref()
            && b_records.get(self.index) == self.second.as_ref();
        let what = self.first.as_ref().or(self.second.as_ref()).map_or("", |record| &record.what);
        let (phase, pair) = describe::place_of(plan, what);
        // What fails by itself has no place: it ends the run.
        let phase = phase.unwrap_or(a.len().min(b.len()).saturating_sub(1));
        if let (Some(a), Some(b)) = (a.get(phase), b.get(phase)) {
            let (trail, cycle) = trail::side_by_side(plan, phase, pair, [a, b]);
            let whole = b.first().map_or(0, |&(cycle, ..)| cycle.saturating_sub(WINDOW[1]));
            self.window = cycle.map_or(whole..whole + LONGEST_WINDOW, |cycle| {
                cycle.saturating_sub(WINDOW[0])..cycle + WINDOW[1]
            });
            self.trail = trail;
        }
        self
    }

    /// Runs the program once more on two kinds of device.
    ///
    /// # Errors
    /// As [`compare`], without what led to it.
    pub fn again(
        &self,
        first: impl Fn(usize) -> SimulatedDevice,
        second: impl Fn(usize) -> SimulatedDevice,
    ) -> Result<usize, Box<Self>> {
        compare_plan(&self.settings, &self.plan, &first, &second)
    }

    /// Runs the program once more on one kind of device, to the end of the window.
    pub fn replay(&self, device: impl Fn(usize) -> SimulatedDevice) {
        run::replay(&self.settings, &self.plan, [device(0), device(1)], self.window.end);
    }
}
