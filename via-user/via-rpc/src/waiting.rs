//! How long calls wait.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};

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
