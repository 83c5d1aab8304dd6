//! The registers of BAR0: what each says after a reset, that it keeps what is written to it, and what it says in the
//! end, all being at rest.

use super::run::Run;
use crate::testbench::Hung;
use nic_regs::csr::{self, ADMIN_HEAD, ADMIN_TAIL, CONTROL, CYCLES_HI, CYCLES_LO, REGS};
use nic_regs::{Access, RegDesc};

/// Registers that act when they are written.
const ACTING: [u32; 2] = [CONTROL::OFFSET, ADMIN_TAIL::OFFSET];
/// Those that say what time it is.
const TIMES: [u32; 2] = [CYCLES_LO::OFFSET, CYCLES_HI::OFFSET];

/// Those that count commands, of which a fence takes no fixed number.
const COUNTS: [u32; 2] = [ADMIN_TAIL::OFFSET, ADMIN_HEAD::OFFSET];

impl Run<'_> {
    /// Writes and resets a node that nobody uses yet.
    pub(super) fn try_registers(&mut self, node: usize) -> Result<(), Hung> {
        self.bench.wait_until_ready(node)?;
        let is_kept = |reg: &&RegDesc| reg.access == Access::Rw && !ACTING.contains(&reg.offset);
        for register in REGS.iter().filter(is_kept) {
            let value = u32::try_from(self.random.bits() >> 32).expect("32 bits");
            self.bench.write32(node, register.offset, value);
        }
        self.observe_registers("written", node)?;
        self.bench.reset(node);
        self.bench.wait_until_ready(node)?;
        self.observe_registers("reset", node)
    }

    /// Reads every register, and the control words of the MSI-X table.
    pub(super) fn observe_registers(&mut self, when: &str, node: usize) -> Result<(), Hung> {
        let with_fences = self.plan.ends_traffic();
        let is_steady = |reg: &&RegDesc| {
            !(TIMES.contains(&reg.offset) || with_fences && COUNTS.contains(&reg.offset))
        };
        for register in REGS.iter().filter(is_steady) {
            let value = self.bench.read32(node, register.offset)?;
            self.record(&format!("node {node} {} {when}", register.name), &format!("{value:#x}"));
        }
        for vector in 0..4 {
            let value = self.bench.read32(node, csr::msix_entry(vector) + csr::MSIX_CONTROL)?;
            self.record(&format!("node {node} MSI-X {vector} {when}"), &format!("{value:#x}"));
        }
        Ok(())
    }
}
