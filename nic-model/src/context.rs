//! What every engine may use in a cycle: the time, host memory, and the device's [`Monitor`].
//!
//! Host reads have no tags here and answer at once, so that none is missing and STATUS.READS_FAIL is
//! never set.

use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::csr::Stamp;
use nic_regs::tlp::STATUS_UNSUPPORTED;

use crate::counter::Monitor;
use crate::device::{HostBus, HostReadError};
use crate::trace::Trace;

/// The services of a cycle.
#[expect(missing_debug_implementations, reason = "a host bus has no text")]
pub struct Context<'a> {
    /// Cycle.
    pub now: u64,
    /// Host memory.
    pub host: &'a mut dyn HostBus,
    /// Counters, error log, stamps, observer.
    pub monitor: &'a mut Monitor,
}

impl Context<'_> {
    /// Reads host memory; a failure is counted and logged.
    pub(crate) fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        if data.is_empty() {
            return Ok(());
        }
        self.host.read(address, data).inspect_err(|_| {
            self.monitor.count(Counter::ReadErrors);
            self.monitor.log(ErrorCode::ReadError, 0, u32::from(STATUS_UNSUPPORTED));
        })
    }

    /// Writes host memory.
    pub(crate) fn write(&mut self, address: u64, data: &[u8]) {
        self.host.write(address, data);
    }

    /// Adds one to a counter.
    pub(crate) fn count(&mut self, counter: Counter) {
        self.monitor.count(counter);
    }

    /// Writes an error log record.
    pub(crate) fn log(&mut self, code: ErrorCode, index: u16, detail: u32) {
        self.monitor.log(code, index, detail);
    }

    /// Reports to the observer.
    pub(crate) fn trace(&mut self, what: Trace) {
        self.monitor.trace(self.now, what);
    }

    /// Stamps a stage of the sampled VI, the first time it is reached.
    pub(crate) fn stamp(&mut self, vi: u16, stage: Stamp) {
        self.monitor.stamp(vi, stage, self.now);
    }
}
