//! Time for the peer machine: a clock in units of 16 cycles, a scanner that visits each peer that
//! is not Closed once in 512 cycles, and the comparisons of a visit, two cycles after its stamps
//! are stable (registered twice). A visit waits while a frame is being filled or has just been
//! committed, which would otherwise wait for it, but not for more than 16 cycles.
use super::num::Num;
use nic_regs::limits::{QUIET_CYCLES, RETRY_CYCLES_MAX};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Timer {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub retry_timeout: Signal<In, Bits<24>>,
    pub retry_limit: Signal<In, Bits<4>>,
    pub keepalive: Signal<In, Bits<32>>,
    pub open: Signal<In, Bits<64>>,
    pub opening: Signal<In, Bits<64>>,
    /// Time in units of 16 cycles.
    pub now: Signal<Out, Bits<32>>,
    /// A frame is being filled, or waits for its turn: a visit would hold it up.
    pub filling: Signal<In, Bit>,
    /// This peer is to be visited.
    pub scan: Signal<Out, Bit>,
    pub scan_peer: Signal<Out, Bits<6>>,
    pub scan_taken: Signal<In, Bit>,
    // A visit.
    pub stamp: Signal<In, Bits<32>>,
    /// As in `Lists`.
    pub tries: Signal<In, Bits<8>>,
    pub sent: Signal<In, Bits<32>>,
    pub alive: Signal<In, Bits<32>>,
    /// The retry time-out has passed.
    pub expired: Signal<Out, Bit>,
    /// Nothing was sent for a keepalive period, or, without keepalive, for a long time: so a lost
    /// return of credits is told again.
    pub quiet: Signal<Out, Bit>,
    /// Nothing was heard for all keepalive periods.
    pub silent: Signal<Out, Bit>,
    /// This time-out is the last.
    pub hopeless: Signal<Out, Bit>,
    /// The time doubles no more.
    pub longest: Signal<Out, Bit>,
    /// It goes on across resets: times are compared by their distance.
    cycles: DFF<Bits<36>>,
    index: DFF<Bits<6>>,
    waiting: DFF<Bit>,
    waited: DFF<Bits<5>>,
    visits: DFF<Bit>,
    period: DFF<Bits<32>>,
    periods_low: DFF<Bits<32>>,
    periods_high: DFF<Bits<32>>,
    silence: DFF<Bits<32>>,
    keeps: DFF<Bit>,
    since_try: DFF<Bits<32>>,
    since_sent: DFF<Bits<32>>,
    since_alive: DFF<Bits<32>>,
    patience: DFF<Bits<32>>,
    is_expired: DFF<Bit>,
    is_quiet: DFF<Bit>,
    is_silent: DFF<Bit>,
    is_hopeless: DFF<Bit>,
    is_longest: DFF<Bit>,
    following: Signal<Local, Bits<6>>,
    period_sum: Signal<Local, Bits<33>>,
    term0: Signal<Local, Bits<32>>,
    term1: Signal<Local, Bits<32>>,
    term2: Signal<Local, Bits<32>>,
    term3: Signal<Local, Bits<32>>,
    backoff: Signal<Local, Bits<40>>,
    backoff_sum: Signal<Local, Bits<40>>,
    units: Signal<Local, Bits<32>>,
    tick: Signal<Local, Bit>,
    outs: Signal<Local, Bits<5>>,
    doublings: Signal<Local, Bits<5>>,
    outs_max: Signal<Local, Bits<5>>,
    zero_3: Num<3, 0>,
    zero_4: Num<4, 0>,
    zero_32: Num<32, 0>,
    ages: Num<32, { RETRY_CYCLES_MAX / 16 }>,
    /// Its upper half: what has the same is as long, or longer.
    ages_high: Num<16, { RETRY_CYCLES_MAX >> 20 }>,
    long: Num<32, { QUIET_CYCLES as u64 / 16 }>,
    round_33: Num<33, 15>,
    round_40: Num<40, 15>,
}

impl Logic for Timer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            cycles,
            index,
            waiting,
            waited,
            visits,
            period,
            periods_low,
            periods_high
        );
        dff_setup!(self, clock, silence, keeps, since_try, since_sent, since_alive, patience);
        dff_setup!(self, clock, is_expired, is_quiet, is_silent, is_hopeless, is_longest);
        self.cycles.d.next = self.cycles.q.val() + 1;
        self.units.next = self.cycles.q.val().get_bits::<32>(4);
        self.now.next = self.units.val();

        // The scanner.
        self.tick.next = self.cycles.q.val().get_bits::<3>(0) == self.zero_3.val();
        self.following.next = self.index.q.val() + 1;
        if self.scan_taken.val() {
            self.waiting.d.next = false;
        } else if self.tick.val() & !self.waiting.q.val() {
            self.index.d.next = self.following.val();
            self.waiting.d.next = self.open.val().get_bit(self.following.val().index())
                | self.opening.val().get_bit(self.following.val().index());
        }
        if !self.waiting.q.val() {
            self.waited.d.next = 0.into();
        } else if !self.waited.q.val().get_bit(4) {
            self.waited.d.next = self.waited.q.val() + 1;
        }
        // It stays for the cycle after `scan_taken`, in which the same class is not chosen again.
        self.visits.d.next =
            self.waiting.q.val() & (self.waited.q.val().get_bit(4) | !self.filling.val());
        self.scan.next = self.visits.q.val();
        self.scan_peer.next = self.index.q.val();

        // Settings, in units.
        self.period_sum.next = bit_cast::<33, 32>(self.keepalive.val()) + self.round_33.val();
        self.period.d.next = bit_cast::<32, 29>(self.period_sum.val().get_bits::<29>(4));
        self.keeps.d.next = self.keepalive.val() != self.zero_32.val();
        if !self.keeps.q.val() {
            self.period.d.next = self.long.val();
        }
        self.term0.next = 0.into();
        self.term1.next = 0.into();
        self.term2.next = 0.into();
        self.term3.next = 0.into();
        if self.retry_limit.val().get_bit(0) {
            self.term0.next = self.period.q.val();
        }
        if self.retry_limit.val().get_bit(1) {
            self.term1.next = self.period.q.val() << 1;
        }
        if self.retry_limit.val().get_bit(2) {
            self.term2.next = self.period.q.val() << 2;
        }
        if self.retry_limit.val().get_bit(3) {
            self.term3.next = self.period.q.val() << 3;
        }
        self.periods_low.d.next = self.term0.val() + self.term1.val();
        self.periods_high.d.next = self.term2.val() + self.term3.val();
        self.silence.d.next = self.periods_low.q.val() + self.periods_high.q.val();

        // A visit: how long ago, how long it may be, then which is more.
        self.since_try.d.next = self.units.val() - self.stamp.val();
        self.since_sent.d.next = self.units.val() - self.sent.val();
        self.since_alive.d.next = self.units.val() - self.alive.val();
        self.backoff.next =
            bit_cast::<40, 24>(self.retry_timeout.val()) << self.tries.val().get_bits::<4>(0);
        self.backoff_sum.next = self.backoff.val() + self.round_40.val();
        self.patience.d.next = self.backoff_sum.val().get_bits::<32>(4);
        if (self.backoff_sum.val().get_bits::<4>(36) != self.zero_4.val())
            | (self.backoff_sum.val().get_bits::<16>(20) == self.ages_high.val())
        {
            self.patience.d.next = self.ages.val();
        }
        self.is_expired.d.next = self.since_try.q.val() >= self.patience.q.val();
        self.is_quiet.d.next = self.since_sent.q.val() >= self.period.q.val();
        self.is_silent.d.next =
            self.keeps.q.val() & (self.since_alive.q.val() >= self.silence.q.val());
        self.outs.next = bit_cast::<5, 4>(self.tries.val().get_bits::<4>(4)) + 1;
        self.doublings.next = bit_cast::<5, 4>(self.tries.val().get_bits::<4>(0)) + 1;
        self.outs_max.next = bit_cast::<5, 4>(self.retry_limit.val());
        self.is_hopeless.d.next = self.outs.val() >= self.outs_max.val();
        self.is_longest.d.next = self.doublings.val() >= self.outs_max.val();
        self.expired.next = self.is_expired.q.val();
        self.quiet.next = self.is_quiet.q.val();
        self.silent.next = self.is_silent.q.val();
        self.hopeless.next = self.is_hopeless.q.val();
        self.longest.next = self.is_longest.q.val();
        if self.reset.val() {
            self.index.d.next = 0.into();
            self.waiting.d.next = false;
        }
    }
}
