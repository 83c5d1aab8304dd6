//! How many packets may be in flight, as TCP's NewReno decides it (RFC 5681, RFC 6582): it doubles each
//! round trip until a packet is lost, then grows by one a round trip, and halves with every loss.

/// Packets in flight of a connection that knows nothing of its path (RFC 6928).
pub(super) const INITIAL: u32 = 10;
/// Packets in flight at least.
const MINIMUM: u32 = 2;

/// The congestion window of a connection, in packets.
#[derive(Debug)]
pub(super) struct Congestion {
    window: u32,
    limit: u32,
    threshold: u32,
    /// Packets acknowledged since the window grew last, behind slow start.
    acknowledged: u32,
    /// Losses of packets before this one belong to a loss that was answered already.
    recovery: u32,
}

impl Congestion {
    /// A window that never exceeds `limit` packets, before the packet `next`.
    pub(super) const fn new(limit: u32, next: u32) -> Self {
        let window = if INITIAL < limit { INITIAL } else { limit };
        Self { window, limit, threshold: u32::MAX, acknowledged: 0, recovery: next }
    }

    /// Packets that may be in flight.
    pub(super) const fn window(&self) -> u32 {
        self.window
    }

    /// Packets were acknowledged while the window was in use to its end.
    pub(super) fn grow(&mut self, packets: u32) {
        if self.window < self.threshold {
            self.window = self.window.saturating_add(packets).min(self.limit);
            return;
        }
        self.acknowledged += packets;
        if self.acknowledged >= self.window {
            self.acknowledged -= self.window;
            self.window = (self.window + 1).min(self.limit);
        }
    }

    /// The packet `lost` was lost; `next` is the next new one.
    pub(super) fn lose(&mut self, lost: u32, next: u32) {
        if lost.wrapping_sub(self.recovery).cast_signed() < 0 {
            return;
        }
        self.threshold = (self.window / 2).max(MINIMUM);
        (self.window, self.acknowledged, self.recovery) = (self.threshold, 0, next);
    }

    /// Nothing was acknowledged for long: everything in flight is taken to be lost.
    pub(super) fn time_out(&mut self, next: u32) {
        self.threshold = (self.window / 2).max(MINIMUM);
        (self.window, self.acknowledged, self.recovery) = (MINIMUM, 0, next);
    }

    /// The connection was idle, and what it knew of the path is old.
    pub(super) fn restart(&mut self) {
        self.window = self.window.min(INITIAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_doubles_then_halves_once_for_the_losses_of_a_round_trip() {
        let mut window = Congestion::new(1000, 0);
        window.grow(10);
        window.grow(20);
        assert_eq!(window.window(), 40);
        window.lose(5, 50);
        assert_eq!(window.window(), 20);
        window.lose(49, 60);
        assert_eq!(window.window(), 20, "lost in the same round trip");
        window.grow(19);
        assert_eq!(window.window(), 20);
        window.grow(1);
        assert_eq!(window.window(), 21);
        window.lose(50, 70);
        assert_eq!(window.window(), 10);
        window.time_out(80);
        assert_eq!(window.window(), MINIMUM);
        for _ in 0..20 {
            window.lose(80, 80);
        }
        assert_eq!(window.window(), MINIMUM);
    }
}
