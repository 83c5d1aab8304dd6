//! What the device records about itself: counters by cause, the error log, the stamps of the sampled
//! message; and its observer.

use std::collections::VecDeque;

use nic_regs::counter::{COUNTER_SLOTS, Counter, ErrorCode, ErrorRecord};
use nic_regs::csr::{SAMPLE, STAMP_COUNT, Stamp};
use nic_regs::limits::ERROR_LOG_ENTRIES;

use crate::bits::{low32, small8, small32};
use crate::trace::{Observer, Trace, Watch};

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

    pub(crate) fn oldest(&self) -> u64 {
        self.records.front().copied().unwrap_or(0)
    }

    /// The value of ERROR_COUNT.
    pub(crate) fn count(&self) -> u32 {
        small32(self.records.len()) | u32::from(self.lost) << 16
    }
}

/// Stamps of the sampled message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// The register SAMPLE.
    pub(crate) register: SAMPLE,
    stamps: [u32; STAMP_COUNT],
    /// Stages that are stamped, one bit each.
    pub(crate) stages: u32,
}

impl Sample {
    /// No stamps; `register` names the VI.
    pub(crate) const fn new(register: SAMPLE) -> Self {
        Self { register, stamps: [0; STAMP_COUNT], stages: 0 }
    }

    pub(crate) fn stamp(&self, stage: Stamp) -> u32 {
        self.stamps[stage as usize]
    }
}

/// The records of a device, and its observer.
#[derive(Debug)]
pub struct Monitor {
    counters: [u32; COUNTER_SLOTS],
    pub(crate) errors: ErrorLog,
    pub(crate) sample: Sample,
    /// Cycle of the last reset.
    pub(crate) reset_at: u64,
    watch: Watch,
}

impl Default for Monitor {
    fn default() -> Self {
        Self {
            counters: [0; COUNTER_SLOTS],
            errors: ErrorLog::default(),
            sample: Sample::new(SAMPLE::RESET),
            reset_at: 0,
            watch: Watch::default(),
        }
    }
}

impl Monitor {
    /// Reports what happens from now on to `observer`.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.watch = Watch(Some(observer));
    }

    /// The counters, by slot.
    #[must_use]
    pub const fn counters(&self) -> &[u32; COUNTER_SLOTS] {
        &self.counters
    }

    /// Takes the oldest record out of the error log.
    pub fn take_error(&mut self) -> Option<u64> {
        self.errors.records.pop_front()
    }

    /// Records nothing any more but what happens after cycle `now`; the observer stays.
    pub(crate) fn reset(&mut self, now: u64) {
        let watch = std::mem::take(&mut self.watch);
        *self = Self { reset_at: now, watch, ..Self::default() };
    }

    pub(crate) fn count(&mut self, counter: Counter) {
        let slot = &mut self.counters[counter as usize];
        *slot = slot.wrapping_add(1);
    }

    pub(crate) fn log(&mut self, code: ErrorCode, index: u16, detail: u32) {
        self.errors.push(ErrorRecord { code: small8(code as usize), index, detail });
    }

    pub(crate) fn trace(&mut self, now: u64, what: Trace) {
        if let Some(observer) = &mut self.watch.0 {
            observer.event(now, what);
        }
    }

    /// Stamps a stage of the sampled VI that was reached in cycle `when`, the first time.
    pub(crate) fn stamp(&mut self, vi: u16, stage: Stamp, when: u64) {
        let sample = &mut self.sample;
        let bit = 1 << stage as u32;
        if sample.register.get(SAMPLE::ARMED) == 1
            && sample.register.get(SAMPLE::VI) == u32::from(vi)
            && sample.stages & bit == 0
        {
            sample.stages |= bit;
            sample.stamps[stage as usize] = low32(when.wrapping_sub(self.reset_at));
        }
    }
}
