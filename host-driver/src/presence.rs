//! Whether the card is still there.
//!
//! Reads of a card that fell off the bus give all ones, and writes to it lead nowhere; nothing else
//! tells. Register ID can never be all ones, so it decides whenever another register is, and
//! whoever waits for the card looks at it now and then.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nic_regs::csr;

use crate::bus::{Bus, REGISTER_BAR, register_name};
use crate::error::{Error, Result};

/// Looks at one card; once it was found absent it stays so.
#[derive(Debug)]
pub struct Presence {
    period_ns: u64,
    /// Time of the next look.
    next: AtomicU64,
    lost: AtomicBool,
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

impl Presence {
    /// Of a card that was there at `now_ns`; it is looked at every `period_ns`.
    #[must_use]
    pub const fn new(now_ns: u64, period_ns: u64) -> Self {
        let next = AtomicU64::new(now_ns.saturating_add(period_ns));
        Self { period_ns, next, lost: AtomicBool::new(false) }
    }

    /// Whether the card was found absent.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Time of the next look.
    #[must_use]
    pub fn next_look(&self) -> u64 {
        if self.is_lost() { u64::MAX } else { self.next.load(Ordering::Acquire) }
    }

    /// Looks at the card if it is time to.
    ///
    /// # Errors
    /// [`Error::Absent`], from then on always.
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
        // A card that does not even answer is as good as absent.
        if self.is_lost() || read(bus, csr::ID::OFFSET).is_err() {
            self.lost.store(true, Ordering::Release);
            return Err(Error::Absent {
                device: bus.name(),
                register: register_name(REGISTER_BAR, csr::ID::OFFSET.into()),
            });
        }
        Ok(())
    }
}
