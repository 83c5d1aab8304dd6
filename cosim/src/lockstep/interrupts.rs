//! Interrupts: queues that are armed, vectors that are masked, and what comes of it.

use super::plan::Phase;
use super::run::{MODERATION_EXCESS, Run};
use crate::testbench::Hung;
use nic_regs::csr;

impl Run<'_> {
    /// Arms event queues, or disarms them; masks vectors.
    pub(super) fn arm(&mut self, phase: usize) {
        let Phase { armed, moderation, .. } = &self.plan.phases[phase];
        for node in 0..2 {
            self.bench.write32(node, csr::MODERATION::OFFSET, *moderation);
        }
        self.mask(phase, true);
        for (node, armed) in armed.iter().enumerate() {
            for (queue, &arm) in armed.iter().enumerate() {
                self.bench.event_doorbell(node, queue, arm);
            }
        }
        // Before there is anything to tell.
        self.bench.run(200);
    }

    /// At rest: which vectors have sent. Those that were masked send what they have kept, and nothing before.
    pub(super) fn unmask(&mut self, phase: usize) -> Result<(), Hung> {
        (0..2).for_each(|node| self.observe_interrupts(phase, node));
        self.mask(phase, false);
        self.bench.settle(MODERATION_EXCESS)?;
        (0..2).for_each(|node| self.observe_interrupts(phase, node));
        Ok(())
    }

    /// Masks the vectors that are masked in a phase, or unmasks them.
    fn mask(&mut self, phase: usize, mask: bool) {
        for (node, masked) in self.plan.phases[phase].masked.iter().enumerate() {
            for (vector, _) in (0..).zip(masked).filter(|&(_, &masked)| masked) {
                let control = csr::msix_entry(vector) + csr::MSIX_CONTROL;
                self.bench.write32(node, control, mask.into());
            }
        }
    }

    /// A queue that was armed and got a record has interrupted once, as soon as its vector is not masked.
    fn observe_interrupts(&mut self, phase: usize, node: usize) {
        let with_fences = self.plan.ends_traffic();
        let seen = *self.bench.host(node).interrupts.first_chunk::<4>().expect("32 vectors");
        let mut new = [0; 4];
        for queue in usize::from(with_fences)..4 {
            new[queue] = seen[queue] - self.interrupts[node][queue];
        }
        self.interrupts[node] = seen;
        self.record(&format!("phase {phase} node {node} interrupts"), &format!("{new:?}"));
    }
}
