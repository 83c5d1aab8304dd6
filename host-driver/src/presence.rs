//! Whether the card is still there, and of use.
//!
//! Reads of a card that fell off the bus give all ones, and writes to it lead nowhere; there is no
//! other sign. Register ID can never be all ones, so it decides whenever another register is, and
//! whoever waits for the card looks at it now and then.
//!
//! A card that does not carry out a command is reset, and counts as lost from then on: what it
//! still holds of its programs nobody could take back. So does one that somebody else has reset: it
//! is not enabled, and knows of nothing that it had.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use nic_regs::csr;

use crate::bus::{Bus, REGISTER_BAR, Wait, register_name};
use crate::error::{Error, Result};

/// Bound of a reset, in nanoseconds.
const RESET_BOUND_NS: u64 = 10_000_000;

/// The card is there.
const PRESENT: u8 = 0;
/// It was found absent.
const ABSENT: u8 = 1;
/// It failed, and was reset, or does not even do that.
const FAILED: u8 = 2;
/// Somebody else has reset it.
const RESET: u8 = 3;

/// Looks at one card; once it is lost it stays so.
#[derive(Debug)]
pub struct Presence {
    period_ns: u64,
    time_scale: u64,
    /// Time of the next look.
    next: AtomicU64,
    state: AtomicU8,
}

/// Reads a register of a card that may be absent.
///
/// # Errors
/// [`Error::Absent`] if it and ID are all ones; a read that is not answered.
pub fn read(bus: &dyn Bus, offset: u32) -> Result<u32> {
    let value = bus.read32(REGISTER_BAR, offset.into())?;
    let absent = value == u32::MAX
        && (offset == csr::ID::OFFSET
            || bus.read32(REGISTER_BAR, csr::ID::OFFSET.into())? == u32::MAX);
    if absent {
        return Err(Error::Absent {
            device: bus.name(),
            register: register_name(REGISTER_BAR, offset.into()),
        });
    }
    Ok(value)
}

/// Waits until the device takes writes.
///
/// # Errors
/// [`Error::TimedOut`]; [`Error::Absent`].
pub(crate) fn wait_ready(bus: &dyn Bus, time_scale: u64) -> Result<()> {
    let bound_ns = RESET_BOUND_NS.saturating_mul(time_scale);
    let end = bus.now_ns().saturating_add(bound_ns);
    loop {
        let status = csr::STATUS(read(bus, csr::STATUS::OFFSET)?);
        if status.get(csr::STATUS::READY) != 0 {
            return Ok(());
        }
        if bus.now_ns() >= end {
            return Err(Error::TimedOut { what: "reset of the device", index: 0, bound_ns });
        }
        bus.relax(Wait::bounded("reset of the device", 0));
    }
}

/// Resets the device (`docs/contract.md` 1.1): afterwards it has nothing under way and knows of no
/// memory.
///
/// # Errors
/// As [`wait_ready`].
pub(crate) fn reset(bus: &dyn Bus, time_scale: u64) -> Result<()> {
    let reset = csr::CONTROL::RESET.with(csr::CONTROL::SOFT_RESET, 1);
    bus.write32(REGISTER_BAR, csr::CONTROL::OFFSET.into(), reset.0);
    wait_ready(bus, time_scale)
}

impl Presence {
    /// The monitor of a card that is or will be enabled, and was there at `now_ns`. It is looked at
    /// every `period_ns` times `time_scale` (see [`crate::nic::NicConfig::time_scale`]).
    #[must_use]
    pub const fn new(now_ns: u64, period_ns: u64, time_scale: u64) -> Self {
        let period_ns = period_ns.saturating_mul(time_scale);
        let next = AtomicU64::new(now_ns.saturating_add(period_ns));
        Self { period_ns, time_scale, next, state: AtomicU8::new(PRESENT) }
    }

    /// Whether the card was found absent, or failed.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.state.load(Ordering::Acquire) != PRESENT
    }

    /// The card did not do what it must: it is reset, and lost from then on.
    pub(crate) fn fail(&self, bus: &dyn Bus) {
        // If not even this is done in time, what is unmapped next is out of its reach all the same.
        let done = reset(bus, self.time_scale);
        let state = if matches!(done, Err(Error::Absent { .. })) { ABSENT } else { FAILED };
        self.state.store(state, Ordering::Release);
    }

    /// Time of the next look.
    #[must_use]
    pub fn next_look(&self) -> u64 {
        if self.is_lost() { u64::MAX } else { self.next.load(Ordering::Acquire) }
    }

    /// Looks at the card if it is time to.
    ///
    /// # Errors
    /// [`Error::Absent`] or [`Error::Failed`], from then on always.
    pub fn check(&self, bus: &dyn Bus) -> Result<()> {
        if !self.is_lost() {
            let now = bus.now_ns();
            if now < self.next.load(Ordering::Acquire) {
                return Ok(());
            }
            self.next.store(now.saturating_add(self.period_ns), Ordering::Release);
        }
        self.look(bus)
    }

    /// Looks at the card now.
    ///
    /// # Errors
    /// As [`Presence::check`].
    pub fn look(&self, bus: &dyn Bus) -> Result<()> {
        let mut state = self.state.load(Ordering::Acquire);
        if state == PRESENT {
            let now = match read(bus, csr::CONTROL::OFFSET).map(csr::CONTROL) {
                Ok(control) if control.get(csr::CONTROL::ENABLE) != 0 => return Ok(()),
                Ok(_) => RESET,
                // A card that does not even answer is as good as absent.
                Err(_) => ABSENT,
            };
            let order = Ordering::AcqRel;
            let found = self.state.compare_exchange(PRESENT, now, order, Ordering::Acquire);
            state = found.err().unwrap_or(now);
        }
        let device = || bus.name();
        let register = || register_name(REGISTER_BAR, csr::ID::OFFSET.into());
        let failed = |why| Err(Error::Failed { device: device(), why });
        match state {
            FAILED => failed("failed: a command was not carried out in time, and it was reset"),
            RESET => failed("was reset by somebody else"),
            _ => Err(Error::Absent { device: device(), register: register() }),
        }
    }
}
