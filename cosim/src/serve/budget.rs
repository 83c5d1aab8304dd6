//! How long a client may keep the server, and with it all other clients, waiting for its answers.

use std::time::{Duration, Instant};

/// What a client may use up in one go.
const WHOLE: Duration = Duration::from_secs(2);
/// It comes back with the time in which it keeps nobody waiting, at one part in so many.
const PART: u32 = 2;
/// An answer that takes no longer costs nothing: one that is there at once takes some 30 us.
const FREE: Duration = Duration::from_micros(200);

/// See the module. It is a NIC's, so that nobody has a new one by connecting again.
#[derive(Debug)]
pub(super) struct Budget {
    left: Duration,
    /// When that was.
    at: Instant,
}

impl Budget {
    /// A whole one.
    pub(super) const fn new(now: Instant) -> Self {
        Self { left: WHOLE, at: now }
    }

    /// When a wait that begins now has to end.
    pub(super) fn end(&mut self, now: Instant) -> Instant {
        let back = now.saturating_duration_since(self.at) / PART;
        self.left = self.left.saturating_add(back).min(WHOLE);
        self.at = now;
        now + self.left + FREE
    }

    /// Takes away what the wait that began with [`Budget::end`] took.
    pub(super) fn spend(&mut self, now: Instant) {
        let waited = now.saturating_duration_since(self.at);
        self.left = self.left.saturating_sub(waited.saturating_sub(FREE));
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often waits of this length, one every so often, are granted in full; up to 10,000.
    fn granted(wait: Duration, every: Duration) -> usize {
        let mut now = Instant::now();
        let mut budget = Budget::new(now);
        (0..10_000)
            .take_while(|_| {
                let begun = now;
                let enough = budget.end(begun) >= begun + wait;
                now += wait;
                budget.spend(now);
                now = (begun + every).max(now);
                enough
            })
            .count()
    }

    #[test]
    fn slow_answers_add_up() {
        let ms = Duration::from_millis;
        assert_eq!(granted(ms(1900), ms(1900)), 1);
        assert_eq!(granted(ms(2), ms(2)), 1111, "a tenth is free");
        assert_eq!(granted(Duration::from_micros(150), ms(0)), 10_000, "as fast as it can");
        assert_eq!(granted(ms(100), ms(600)), 10_000, "with pauses");
        assert_eq!(granted(ms(2001), ms(9000)), 0, "longer than ever");
    }

    #[test]
    fn what_is_used_up_comes_back() {
        let now = Instant::now();
        let mut budget = Budget::new(now);
        let end = budget.end(now);
        assert_eq!(end, now + WHOLE + FREE);
        budget.spend(end);
        let later = end + Duration::from_secs(2);
        assert_eq!(budget.end(later), later + WHOLE / 2 + FREE);
        let later = later + Duration::from_secs(100);
        assert_eq!(budget.end(later), later + WHOLE + FREE, "and no more");
    }
}
