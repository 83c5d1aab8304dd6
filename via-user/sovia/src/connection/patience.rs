//! How long calls wait.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// How long a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It does not.
    None,
    /// So long from the first look at the clock on, which those do not need that wait for little.
    Within(Duration),
    /// Until then.
    Until(Instant),
    /// For ever.
    Endless,
}

impl Patience {
    /// What is left; the error when nothing is.
    pub(super) fn left(&mut self) -> Result<Duration> {
        if let Self::Within(bound) = *self {
            *self = Self::Until(Instant::now() + bound);
            return Ok(bound);
        }
        match *self {
            Self::Within(bound) => Ok(bound),
            Self::None => Err(Error::WouldBlock),
            Self::Endless => Ok(vipl::INFINITE),
            Self::Until(end) => {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() { Err(Error::WouldBlock) } else { Ok(left) }
            }
        }
    }
}
