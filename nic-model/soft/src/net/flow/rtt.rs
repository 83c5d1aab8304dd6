//! The round-trip time, and the time-out that follows from it (RFC 6298).

/// Shortest time-out: more than a peer waits for a processor, or for its service thread.
const MINIMUM_NS: u64 = 20_000_000;
/// Longest time-out.
const MAXIMUM_NS: u64 = 1_000_000_000;
/// Time-out before anything is known.
const INITIAL_NS: u64 = 100_000_000;

/// Estimate of the round-trip time of a connection, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct RoundTrip {
    smoothed: Option<u64>,
    variation: u64,
    /// Time-outs in a row; each doubles the next.
    backoff: u32,
}

impl RoundTrip {
    /// A packet that was sent once was acknowledged after `time`.
    pub(super) fn sample(&mut self, time: u64) {
        match self.smoothed {
            None => (self.smoothed, self.variation) = (Some(time), time / 2),
            Some(smoothed) => {
                self.variation = (3 * self.variation + smoothed.abs_diff(time)) / 4;
                self.smoothed = Some((7 * smoothed + time) / 8);
            }
        }
    }

    /// How long a packet may be in flight.
    pub(super) fn time_out(&self) -> u64 {
        let base = self.smoothed.map_or(INITIAL_NS, |smoothed| smoothed + 4 * self.variation);
        let base = base.clamp(MINIMUM_NS, MAXIMUM_NS);
        (base << self.backoff.min(16)).min(MAXIMUM_NS)
    }

    /// The path carries packets: one was acknowledged. Packets that were sent twice give no sample, and
    /// after a time-out all were.
    pub(super) const fn progress(&mut self) {
        self.backoff = 0;
    }

    /// A packet was in flight for too long.
    pub(super) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Time-outs in a row.
    pub(super) const fn time_outs(&self) -> u32 {
        self.backoff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_out_follows_the_round_trip_and_doubles_while_nothing_arrives() {
        let mut time = RoundTrip::default();
        assert_eq!(time.time_out(), INITIAL_NS);
        time.sample(20_000_000);
        assert_eq!(time.time_out(), 60_000_000);
        time.back_off();
        time.back_off();
        assert_eq!(time.time_out(), 240_000_000);
        time.progress();
        assert_eq!(time.time_out(), 60_000_000);
        for _ in 0..100 {
            time.sample(50_000);
        }
        assert_eq!(time.time_out(), MINIMUM_NS);
        (0..100).for_each(|_| time.back_off());
        assert_eq!(time.time_out(), MAXIMUM_NS);
    }
}
