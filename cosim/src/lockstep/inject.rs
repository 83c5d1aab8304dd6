//! Has nodes receive what nobody sent, all being at rest: single frames (`forge`) and messages (`broken`); and
//! commands that they refuse.

use super::broken::Broken;
use super::observe::LOSSY;
use super::plan::{DATA_BYTES, Refused, Remote, Wrong};
use super::run::Run;
use super::{descriptor, forge, regions};
use crate::random::Random;
use crate::testbench::Hung;
use nic_regs::counter::Counter;
use nic_regs::doorbell::Queue;
use nic_regs::frame::{Type, flag};

/// Cycles behind a frame of a broken message, and behind the last one, in which a host may pause: all of them less than
/// a retransmission time-out.
const BROKEN_PAUSE: u64 = 40;
const BROKEN_REST: u64 = 700;

impl Run<'_> {
    /// Has the nodes refuse commands.
    pub(super) fn refuse(&mut self, phase: usize) -> Result<(), Hung> {
        let plan = self.plan;
        for Refused { node, opcode, index, body } in &plan.phases[phase].refused {
            let (status, result) = self.bench.admin_entry(*node, *opcode, *index, body)?;
            if status == 0 {
                return Err(Hung(format!("node {node} takes command {opcode} {index} {body:x?}")));
            }
            let what = format!("phase {phase} node {node} command {opcode} {index}");
            self.record(&what, &format!("{status} {result:#x}"));
        }
        Ok(())
    }

    /// Has the nodes receive frames that nobody sent, all being at rest.
    pub(super) fn forge(&mut self, phase: usize) -> Result<(), Hung> {
        let plan = self.plan;
        let forged = &plan.phases[phase].forged;
        if forged.is_empty() {
            return Ok(());
        }
        let before = self.forge_counters()?;
        for frame in forged {
            let Some(now) = self.now(frame.node, frame.pair) else { continue };
            self.bench.forge(frame.node, &frame.beats(&now));
            self.bench.settle(500)?;
        }
        let counted = self.forge_counters()?.into_iter().zip(before);
        for ((what, behind), (_, before)) in counted {
            let by = behind.wrapping_sub(before).to_string();
            self.record(&format!("phase {phase} forged frames: {what}"), &by);
        }
        Ok(())
    }

    /// Has a VI receive messages whose frames do not fit together, all being at rest.
    pub(super) fn break_message(&mut self, phase: usize) -> Result<(), Hung> {
        let plan = self.plan;
        let Some(broken) = &plan.phases[phase].broken else { return Ok(()) };
        let Broken { node, pair, recv, seed, .. } = *broken;
        let Some(now) = self.now(node, pair) else { return Ok(()) };
        let mut random = Random::new(seed);
        let recv = descriptor::spec(&mut random, recv);
        let number = plan.phases[phase].traffic[pair].receives().count();
        self.post(phase, node, pair, Queue::Recv, number, &recv);
        self.bench.settle(self.quiet)?;
        let base = random.below(DATA_BYTES as u64 / 2);
        let frames = broken.frames(&now, |offset, length| {
            let at = Remote { offset: base + offset, wrong: Wrong::Nothing, reserved: 0 };
            regions::remote(plan, phase, (pair, node), &at, length)
        });
        for frame in frames {
            self.bench.forge(node, &frame);
            self.bench.run(BROKEN_PAUSE);
        }
        self.bench.run(BROKEN_REST);
        self.observe_posted();
        Ok(())
    }

    fn forge_counters(&mut self) -> Result<Vec<(String, u32)>, Hung> {
        let is_lossy = self.is_lossy;
        let counters = forge::COUNTERS.into_iter().filter(|it| !is_lossy || !LOSSY.contains(it));
        let counters = counters.flat_map(|counter| [(0, counter), (1, counter)]);
        let read = |(node, counter): (usize, Counter)| {
            let value = self.counter(node, counter)?;
            Ok((format!("node {node} {counter:?}"), value))
        };
        counters.map(read).collect()
    }

    /// What a frame to a node would say at rest, as far as its peer has sent anything.
    fn now(&self, node: usize, n: usize) -> Option<forge::Now> {
        let pair = &self.plan.pairs[n];
        let sent = [0, 1].map(|node| self.bench.sent_headers(node, self.before[node]));
        let next = |node: usize| {
            let sequenced = sent[node].iter().filter(|head| head.flags & flag::SEQUENCED != 0);
            let ahead = |a: u16, b: u16| a.wrapping_sub(b) < 1 << 15;
            let numbers = sequenced.map(|head| head.sequence.wrapping_add(1));
            numbers.fold(0, |next, number| if ahead(number, next) { number } else { next })
        };
        Some(forge::Now {
            nodes: [1 - node, node].map(|node| self.bench.number(node)),
            #[expect(clippy::cast_possible_truncation, reason = "the low halves")]
            tag: (self.epochs[0] ^ self.epochs[1]) as u16,
            sequence: next(1 - node),
            acknowledgement: next(node),
            // A reset says nothing of credits.
            credit: sent[1 - node].iter().rfind(|head| head.kind != Type::Rst as u8)?.credit,
            vi: [node, 1 - node].map(|node| pair.vi[node]),
            connection: *self.connections.get(&n)?,
            reliability: pair.reliability,
        })
    }
}
