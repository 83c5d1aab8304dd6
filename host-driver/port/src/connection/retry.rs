//! Repeats of a message that is not answered.

/// First pause before a message is repeated; doubles up to [`RETRY_MAX_NS`].
const RETRY_NS: u64 = 500_000;
/// Longest pause before a message is repeated.
pub(super) const RETRY_MAX_NS: u64 = 8_000_000;

/// When a message is repeated next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    /// When that is.
    pub(super) at: u64,
    gap: u64,
}

impl Retry {
    /// Of a message that is sent now.
    pub(super) const fn start(now: u64) -> Self {
        Self { at: now + RETRY_NS, gap: RETRY_NS }
    }

    /// Whether it is time; if so, the next time is set.
    pub(super) fn due(&mut self, now: u64) -> bool {
        let due = now >= self.at;
        if due {
            self.gap = (self.gap * 2).min(RETRY_MAX_NS);
            self.at = now + self.gap;
        }
        due
    }
}
