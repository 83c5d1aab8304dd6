//! A smaller program that still fails: phases, traffic and messages are left out one after the other, as long as
//! the two devices still differ.

use super::describe::program;
use super::plan::{Phase, Plan, Traffic};
use super::{Divergence, Settings, compare_plan, generate};
use crate::simulation::SimulatedDevice;
use std::mem::take;

/// Programs that are tried at most.
pub const MOST_TRIES: usize = 300;

/// A smaller program.
#[derive(Debug)]
pub struct Smaller {
    /// Where its runs part.
    pub divergence: Box<Divergence>,
    /// What it does, line by line.
    pub program: String,
    /// Messages that it has, and that the whole program has.
    pub messages: [usize; 2],
}

/// Looks for a smaller program than that of the seed on which the devices differ. `each` is called with
/// the number of each try. None: they do not differ on the whole one.
pub fn shrink(
    settings: &Settings,
    first: impl Fn(usize) -> SimulatedDevice,
    second: impl Fn(usize) -> SimulatedDevice,
    each: impl FnMut(usize),
) -> Option<Smaller> {
    let plan = generate::plan(settings.seed, settings.is_lossy());
    let differ = |plan: &Plan| compare_plan(settings, plan, &first, &second).err();
    let divergence = differ(&plan)?;
    let whole = messages(&plan);
    let mut search = Search { plan, divergence, differ, each, tries: 0 };
    search.phases();
    while search.tries < MOST_TRIES && (search.extras() | search.traffic() | search.messages()) {}
    let Search { plan, divergence, .. } = search;
    let divergence = divergence.with_trail(&first, &second);
    let (left, program) = (messages(&plan), program(&plan));
    Some(Smaller { divergence, program, messages: [left, whole] })
}

struct Search<D, E> {
    plan: Plan,
    divergence: Box<Divergence>,
    differ: D,
    each: E,
    tries: usize,
}

impl<D: Fn(&Plan) -> Option<Box<Divergence>>, E: FnMut(usize)> Search<D, E> {
    /// Leaves something out of the plan if the devices still differ. `edit` says whether there was something.
    fn keeps(&mut self, edit: impl FnOnce(&mut Plan) -> bool) -> bool {
        let mut plan = self.plan.clone();
        if self.tries == MOST_TRIES || !edit(&mut plan) {
            return false;
        }
        self.tries += 1;
        (self.each)(self.tries);
        let Some(divergence) = (self.differ)(&plan) else { return false };
        (self.plan, self.divergence) = (plan, divergence);
        true
    }

    /// What comes behind the difference goes, then what comes before.
    fn phases(&mut self) {
        for count in 1..self.plan.phases.len() {
            let shorten = |plan: &mut Plan| !plan.phases.split_off(count).is_empty();
            if self.keeps(shorten) {
                break;
            }
        }
        let mut at = 0;
        while at + 1 < self.plan.phases.len() {
            let without = |plan: &mut Plan| plan.phases.drain(at..=at).count() > 0;
            at += usize::from(!self.keeps(without));
        }
    }

    /// All but the traffic of the pairs.
    fn extras(&mut self) -> bool {
        let mut changed = false;
        for at in 0..self.plan.phases.len() {
            let parts: [fn(&mut Phase) -> bool; 11] = [
                |of| !take(&mut of.pokes).is_empty(),
                |of| !take(&mut of.refused).is_empty(),
                |of| !take(&mut of.messages).is_empty(),
                |of| !take(&mut of.changes).is_empty(),
                |of| of.fenced.take().is_some(),
                |of| of.broken.take().is_some(),
                |of| of.closes.take().is_some(),
                |of| take(&mut of.keeps_events),
                |of| take(&mut of.masked) != [[false; 4]; 2],
                |of| of.cut.take().is_some(),
                // A cut without its reset is none.
                |of| of.resets.take().is_some() | of.cut.take().is_some(),
            ];
            for part in parts {
                changed |= self.keeps(|plan| part(&mut plan.phases[at]));
            }
            for number in (0..self.plan.phases[at].forged.len()).rev() {
                changed |=
                    self.keeps(|plan| plan.phases[at].forged.drain(number..=number).count() > 0);
            }
        }
        changed
    }

    /// A pair's traffic of a phase.
    fn traffic(&mut self) -> bool {
        let mut changed = false;
        for at in 0..self.plan.phases.len() {
            for pair in 0..self.plan.pairs.len() {
                changed |= self.keeps(|plan| plan.phases[at].traffic[pair].clear());
            }
        }
        changed
    }

    /// Single messages: halves of a pair's, quarters, and so on.
    fn messages(&mut self) -> bool {
        let mut changed = false;
        for at in 0..self.plan.phases.len() {
            for pair in 0..self.plan.pairs.len() {
                let count = |plan: &Plan| plan.phases[at].traffic[pair].messages.len();
                let mut part = count(&self.plan) / 2;
                while part > 0 {
                    let mut from = 0;
                    while from < count(&self.plan) {
                        let to = count(&self.plan).min(from + part);
                        let gone = to - from < count(&self.plan)
                            && self.keeps(|plan| {
                                plan.phases[at].traffic[pair].messages.drain(from..to).count() > 0
                            });
                        changed |= gone;
                        from = if gone { from } else { to };
                    }
                    part /= 2;
                }
            }
        }
        changed
    }
}

impl Traffic {
    /// Whether there was something.
    fn clear(&mut self) -> bool {
        let Self { sender, messages, spare, .. } = take(self);
        self.sender = sender;
        !messages.is_empty() || spare.is_some()
    }
}

fn messages(plan: &Plan) -> usize {
    plan.phases.iter().flat_map(|of| &of.traffic).map(|traffic| traffic.messages.len()).sum()
}
