//! A smaller program that still fails: phases, traffic and messages are left out one after the other, as long as
//! the two devices still differ.

use super::describe::program;
use super::plan::{Phase, Plan, Traffic};
use super::{Divergence, Settings, compare_plan, generate};
use crate::simulation::SimulatedDevice;

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
    /// Keeps an edit of the plan if the devices still differ.
    fn keeps(&mut self, edit: impl FnOnce(&mut Plan)) -> bool {
        if self.tries == MOST_TRIES {
            return false;
        }
        self.tries += 1;
        (self.each)(self.tries);
        let mut plan = self.plan.clone();
        edit(&mut plan);
        let Some(divergence) = (self.differ)(&plan) else { return false };
        (self.plan, self.divergence) = (plan, divergence);
        true
    }

    /// What comes behind the difference goes, then what comes before.
    fn phases(&mut self) {
        for count in 1..self.plan.phases.len() {
            if self.keeps(|plan| plan.phases.truncate(count)) {
                break;
            }
        }
        let mut at = 0;
        while at + 1 < self.plan.phases.len() {
            at += usize::from(!self.keeps(|plan| drop(plan.phases.remove(at))));
        }
    }

    /// All but the traffic of the pairs.
    fn extras(&mut self) -> bool {
        let mut changed = false;
        for at in 0..self.plan.phases.len() {
            let of = &self.plan.phases[at];
            let some = [
                !of.pokes.is_empty(),
                !of.refused.is_empty(),
                !of.messages.is_empty(),
                !of.changes.is_empty(),
                of.fenced.is_some(),
                of.broken.is_some(),
                of.closes.is_some(),
                of.keeps_events,
                of.cut.is_some(),
                of.resets.is_some(),
            ];
            let forged = of.forged.len();
            let parts: [fn(&mut Phase); 10] = [
                |of| of.pokes.clear(),
                |of| of.refused.clear(),
                |of| of.messages.clear(),
                |of| of.changes.clear(),
                |of| of.fenced = None,
                |of| of.broken = None,
                |of| of.closes = None,
                |of| of.keeps_events = false,
                |of| of.cut = None,
                |of| (of.resets, of.cut) = (None, None),
            ];
            for (clear, _) in parts.into_iter().zip(some).filter(|(_, some)| *some) {
                changed |= self.keeps(|plan| clear(&mut plan.phases[at]));
            }
            for number in (0..forged).rev() {
                changed |= self.keeps(|plan| {
                    plan.phases[at].forged.remove(number);
                });
            }
        }
        changed
    }

    /// A pair's traffic of a phase.
    fn traffic(&mut self) -> bool {
        let mut changed = false;
        for at in 0..self.plan.phases.len() {
            for pair in 0..self.plan.pairs.len() {
                let Traffic { messages, spare, .. } = &self.plan.phases[at].traffic[pair];
                let some = !messages.is_empty() || spare.is_some();
                changed |= some && self.keeps(|plan| plan.phases[at].traffic[pair].clear());
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
                                plan.phases[at].traffic[pair].messages.drain(from..to);
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
    fn clear(&mut self) {
        *self = Self { sender: self.sender, ..Self::default() };
    }
}

fn messages(plan: &Plan) -> usize {
    plan.phases.iter().flat_map(|of| &of.traffic).map(|traffic| traffic.messages.len()).sum()
}
