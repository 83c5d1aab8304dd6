//! Counters by cause, the error log, the stamps of the sampled message.

use std::collections::VecDeque;

use nic_regs::counter::{COUNTER_SLOTS, Counter, ErrorCode, ErrorRecord};
use nic_regs::csr::{SAMPLE, STAMP_COUNT, Stamp};
use nic_regs::limits::ERROR_LOG_ENTRIES;

use crate::bits::{low32, small8, small32};
use crate::nic::Model;

/// The counters.
#[derive(Clone, Debug)]
pub(crate) struct Counters([u32; COUNTER_SLOTS]);

impl Default for Counters {
    fn default() -> Self {
        Self([0; COUNTER_SLOTS])
    }
}

impl Counters {
    pub(crate) fn add(&mut self, counter: Counter) {
        let slot = &mut self.0[counter as usize];
        *slot = slot.wrapping_add(1);
    }

    pub(crate) fn slot(&self, index: usize) -> u32 {
        self.0.get(index).copied().unwrap_or(0)
    }
}

/// The error log: the oldest records, and how many were lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorLog {
    records: VecDeque<u64>,
    lost: u16,
}

impl ErrorLog {
    fn push(&mut self, record: ErrorRecord) {
        if self.records.len() < ERROR_LOG_ENTRIES {
            self.records.push_back(record.to_bits());
        } else {
            self.lost = self.lost.saturating_add(1);
        }
    }

    pub(crate) fn pop(&mut self) {
        self.records.pop_front();
    }

    pub(crate) fn oldest(&self) -> u64 {
        self.records.front().copied().unwrap_or(0)
    }

    /// The value of ERROR_COUNT.
    pub(crate) fn count(&self) -> u32 {
        small32(self.records.len()) | u32::from(self.lost) << 16
    }
}

/// Stamps of the sampled message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    stamps: [u32; STAMP_COUNT],
    stages: u32,
}

impl Sample {
    pub(crate) fn stamp(&self, stage: Stamp) -> u32 {
        self.stamps[stage as usize]
    }

    pub(crate) const fn stages(&self) -> u32 {
        self.stages
    }
}

impl Model {
    /// Counts.
    pub(crate) fn count(&mut self, counter: Counter) {
        self.counters.add(counter);
    }

    /// Writes an error log record.
    pub(crate) fn log(&mut self, code: ErrorCode, index: u16, detail: u32) {
        self.log.push(ErrorRecord { code: small8(code as usize), index, detail });
    }

    /// Stamps a stage of the sampled VI, the first time it is reached.
    pub(crate) fn stamp(&mut self, vi: u16, stage: Stamp) {
        self.stamp_at(vi, stage, self.now);
    }

    /// Stamps a stage that was reached at `when`.
    pub(crate) fn stamp_at(&mut self, vi: u16, stage: Stamp, when: u64) {
        let sample = SAMPLE(self.csr.sample);
        let bit = 1 << stage as u32;
        if sample.get(SAMPLE::ARMED) == 1
            && sample.get(SAMPLE::VI) == u32::from(vi)
            && self.sample.stages & bit == 0
        {
            self.sample.stages |= bit;
            self.sample.stamps[stage as usize] = low32(when.wrapping_sub(self.reset_at));
        }
    }
}
