//! MSI-X vectors: their table, masks, what they keep, moderation.

use bitvec::vec::BitVec;
use nic_regs::counter::Counter;
use nic_regs::limits::MSIX_VECTOR_COUNT;

use crate::csr::ENTRY_DWORDS;
use crate::device::HostBus;
use crate::nic::Model;

/// Dword of an entry that holds the mask bit.
const CONTROL: usize = 3;

/// The vectors.
#[derive(Clone, Debug)]
pub(crate) struct Vectors {
    entries: [[u32; ENTRY_DWORDS]; MSIX_VECTOR_COUNT],
    /// Vectors that keep an interrupt.
    pending: BitVec,
    /// When a vector's message went out last.
    sent: [Option<u64>; MSIX_VECTOR_COUNT],
    /// Nothing that is kept may go before.
    next: u64,
}

impl Default for Vectors {
    fn default() -> Self {
        Self {
            entries: [[0, 0, 0, 1]; MSIX_VECTOR_COUNT],
            pending: BitVec::repeat(false, MSIX_VECTOR_COUNT),
            sent: [None; MSIX_VECTOR_COUNT],
            next: u64::MAX,
        }
    }
}

impl Vectors {
    pub(crate) fn read(&self, vector: usize, dword: usize) -> u32 {
        self.entries[vector][dword]
    }

    /// Something that is kept may be due.
    pub(crate) fn check(&mut self) {
        self.next = 0;
    }

    /// Message address and data, if the vector may send now; else it keeps its interrupt.
    fn take(&mut self, vector: usize, now: u64, moderation: u64) -> Option<(u64, u32)> {
        let [low, high, data, control] = self.entries[vector];
        if control & 1 != 0 {
            return None;
        }
        let due = self.sent[vector].map_or(0, |sent| sent + moderation);
        if now < due {
            self.next = self.next.min(due);
            return None;
        }
        self.pending.set(vector, false);
        self.sent[vector] = Some(now);
        Some((u64::from(low) | u64::from(high) << 32, data))
    }
}

impl Model {
    /// Sends a vector's message, or keeps it.
    pub(crate) fn interrupt(&mut self, vector: usize, host: &mut dyn HostBus) {
        self.vectors.pending.set(vector, true);
        self.send_interrupt(vector, host);
    }

    fn send_interrupt(&mut self, vector: usize, host: &mut dyn HostBus) {
        let moderation = self.csr.moderation.into();
        if let Some((address, data)) = self.vectors.take(vector, self.now, moderation) {
            host.write(address, &data.to_le_bytes());
            self.count(Counter::Interrupts);
        }
    }

    /// Interrupts whose vector has rested.
    pub(crate) fn interrupt_step(&mut self, host: &mut dyn HostBus) {
        if self.now < self.vectors.next {
            return;
        }
        self.vectors.next = u64::MAX;
        let kept: Vec<usize> = self.vectors.pending.iter_ones().collect();
        for vector in kept {
            self.send_interrupt(vector, host);
        }
    }

    /// A write to the MSI-X table.
    pub(crate) fn vector_write(
        &mut self,
        vector: usize,
        dword: usize,
        value: u32,
        host: &mut dyn HostBus,
    ) {
        let mask = match dword {
            0 => !3,
            CONTROL => 1,
            _ => u32::MAX,
        };
        self.vectors.entries[vector][dword] = value & mask;
        if self.vectors.pending[vector] {
            self.send_interrupt(vector, host);
        }
    }
}
