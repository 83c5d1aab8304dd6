//! How calls wait: they look for a while, then VIPL sleeps for them.

use std::time::{Duration, Instant};

use vipl::Nic;

use crate::error::{Error, Result};

/// Looks before a wait reads the clock: some microseconds.
const SPINS: u32 = 512;
/// Looks between two in which the NIC's own work is done, which costs a look at the clock.
const NIC_TURNS: u32 = 16;

/// Looks again and again, without a look at the clock.
pub(crate) fn spin<T>(nic: &Nic, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    for turn in 0..SPINS {
        if turn % NIC_TURNS == NIC_TURNS - 1 {
            nic.progress();
        }
        let found = look();
        if found.is_some() {
            return found;
        }
        core::hint::spin_loop();
    }
    None
}

/// When a wait is over. It begins with the first question, so that who need not wait pays nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    timeout: Duration,
    end: Option<Instant>,
}

impl Deadline {
    pub(crate) const fn after(timeout: Duration) -> Self {
        Self { timeout, end: None }
    }

    /// What is left, [`vipl::INFINITE`] without end.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if nothing is.
    pub(crate) fn left(&mut self) -> Result<Duration> {
        let now = Instant::now();
        let end = self.end.or_else(|| now.checked_add(self.timeout));
        let Some(end) = end else { return Ok(vipl::INFINITE) };
        self.end = Some(end);
        let left = end.saturating_duration_since(now);
        if left.is_zero() { Err(Error::TimedOut) } else { Ok(left) }
    }
}
