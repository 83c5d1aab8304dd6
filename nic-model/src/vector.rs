//! MSI-X vectors: their table, masks, what they keep, moderation.

use bitvec::vec::BitVec;
use nic_regs::counter::Counter;
use nic_regs::csr::{MODERATION, MSIX_ENTRY_BYTES};
use nic_regs::limits::MSIX_VECTOR_COUNT;

use crate::context::Context;

/// Dwords of an MSI-X table entry.
pub(crate) const ENTRY_DWORDS: usize = MSIX_ENTRY_BYTES as usize / 4;

/// Dword of an entry that holds the mask bit.
const CONTROL: usize = 3;

/// The vectors.
#[derive(Clone, Debug)]
pub struct Vectors {
    entries: [[u32; ENTRY_DWORDS]; MSIX_VECTOR_COUNT],
    /// Vectors that keep an interrupt.
    pending: BitVec,
    /// When a vector's message went out last.
    sent: [Option<u64>; MSIX_VECTOR_COUNT],
    /// Nothing that is kept may go before this cycle.
    next: u64,
    /// The register MODERATION: least cycles between two interrupts of a vector.
    moderation: u32,
}

impl Default for Vectors {
    fn default() -> Self {
        Self {
            entries: [[0, 0, 0, 1]; MSIX_VECTOR_COUNT],
            pending: BitVec::repeat(false, MSIX_VECTOR_COUNT),
            sent: [None; MSIX_VECTOR_COUNT],
            next: u64::MAX,
            moderation: MODERATION::RESET.0,
        }
    }
}

impl Vectors {
    pub(crate) fn read(&self, vector: usize, dword: usize) -> u32 {
        self.entries[vector][dword]
    }

    pub(crate) const fn moderation(&self) -> u32 {
        self.moderation
    }

    /// Sets the register MODERATION, which counts at once for what is kept.
    pub(crate) fn set_moderation(&mut self, cycles: u32) {
        (self.moderation, self.next) = (cycles, 0);
    }

    /// Message address and data, if the vector may send now; else it keeps its interrupt.
    fn take(&mut self, vector: usize, now: u64) -> Option<(u64, u32)> {
        let [low, high, data, control] = self.entries[vector];
        if control & 1 != 0 {
            return None;
        }
        let due = self.sent[vector].map_or(0, |sent| sent + u64::from(self.moderation));
        if now < due {
            self.next = self.next.min(due);
            return None;
        }
        self.pending.set(vector, false);
        self.sent[vector] = Some(now);
        Some((u64::from(low) | u64::from(high) << 32, data))
    }

    /// Sends a vector's message, or keeps it.
    pub(crate) fn interrupt(&mut self, vector: usize, cx: &mut Context<'_>) {
        self.pending.set(vector, true);
        self.send(vector, cx);
    }

    fn send(&mut self, vector: usize, cx: &mut Context<'_>) {
        if let Some((address, data)) = self.take(vector, cx.now) {
            cx.write(address, &data.to_le_bytes());
            cx.count(Counter::Interrupts);
        }
    }

    /// Sends what was kept by vectors whose moderation time is over.
    pub(crate) fn step(&mut self, cx: &mut Context<'_>) {
        if cx.now < self.next {
            return;
        }
        self.next = u64::MAX;
        let kept: Vec<usize> = self.pending.iter_ones().collect();
        for vector in kept {
            self.send(vector, cx);
        }
    }

    /// Writes a dword of the MSI-X table.
    pub fn write(&mut self, vector: usize, dword: usize, value: u32, cx: &mut Context<'_>) {
        let mask = match dword {
            0 => !3,
            CONTROL => 1,
            _ => u32::MAX,
        };
        self.entries[vector][dword] = value & mask;
        if self.pending[vector] {
            self.send(vector, cx);
        }
    }
}
