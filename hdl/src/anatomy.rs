//! Stamps of a sampled message: the cycle at which each stage was first seen since the last write
//! of SAMPLE.
use rust_hdl::prelude::*;

/// See the module's text. A stage pulse counts while `armed` and only once.
#[derive(LogicBlock, Default)]
pub struct Anatomy {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: forget all stamps.
    pub clear: Signal<In, Bit>,
    pub armed: Signal<In, Bit>,
    pub cycle: Signal<In, Bits<32>>,
    /// One bit a stage, by number (`nic_regs::csr::Stamp`).
    pub stages: Signal<In, Bits<9>>,
    /// Stages seen.
    pub sampled: Signal<Out, Bits<9>>,
    pub index: Signal<In, Bits<4>>,
    /// Stamp of stage `index`, one cycle later; zero if not seen.
    pub stamp: Signal<Out, Bits<32>>,
    seen: DFF<Bits<9>>,
    stamp0: DFF<Bits<32>>,
    stamp1: DFF<Bits<32>>,
    stamp2: DFF<Bits<32>>,
    stamp3: DFF<Bits<32>>,
    stamp4: DFF<Bits<32>>,
    stamp5: DFF<Bits<32>>,
    stamp6: DFF<Bits<32>>,
    stamp7: DFF<Bits<32>>,
    stamp8: DFF<Bits<32>>,
    found: DFF<Bits<32>>,
    unseen: Signal<Local, Bits<9>>,
    wide: Signal<Local, Bits<16>>,
    hits: Signal<Local, Bits<9>>,
    low: Signal<Local, Bits<32>>,
    high: Signal<Local, Bits<32>>,
}

impl Logic for Anatomy {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, seen, stamp0, stamp1, stamp2, stamp3, stamp4, stamp5, stamp6, stamp7,
            stamp8, found
        );
        self.sampled.next = self.seen.q.val();
        self.unseen.next = !self.seen.q.val();
        self.hits.next = 0.into();
        if self.armed.val() {
            self.hits.next = self.stages.val() & self.unseen.val();
        }
        self.seen.d.next = self.seen.q.val() | self.hits.val();
        if self.hits.val().get_bit(0) {
            self.stamp0.d.next = self.cycle.val();
        }
        if self.hits.val().get_bit(1) {
            self.stamp1.d.next = self.cycle.val();
        }
        if self.hits.val().get_bit(2) {
            self.stamp2.d.next = self.cycle.val();
        }
        if self.hits.val().get_bit(3) {
            self.stamp3.d.next = self.cycle.val();
        }
        if self.hits.val().get_bit(4) {
            self.stamp4.d.next = self.cycle.val();
        }
        if self.hits.val().get_bit(5) {
            self.stamp5.d.next = self.cycle.val();
        }
        if self.hits.val().get_bit(6) {
            self.stamp6.d.next = self.cycle.val();
        }
        if self.hits.val().get_bit(7) {
            self.stamp7.d.next = self.cycle.val();
        }
        if self.hits.val().get_bit(8) {
            self.stamp8.d.next = self.cycle.val();
        }
        // Stamps 0 to 3, 4 to 7, 8.
        self.low.next = self.stamp0.q.val();
        self.high.next = self.stamp4.q.val();
        if self.index.val().get_bits::<2>(0) == 1 {
            self.low.next = self.stamp1.q.val();
            self.high.next = self.stamp5.q.val();
        } else if self.index.val().get_bits::<2>(0) == 2 {
            self.low.next = self.stamp2.q.val();
            self.high.next = self.stamp6.q.val();
        } else if self.index.val().get_bits::<2>(0) == 3 {
            self.low.next = self.stamp3.q.val();
            self.high.next = self.stamp7.q.val();
        }
        self.found.d.next = 0.into();
        self.wide.next = bit_cast::<16, 9>(self.seen.q.val());
        if self.wide.val().get_bit(self.index.val().index()) {
            self.found.d.next = self.low.val();
            if self.index.val().get_bit(3) {
                self.found.d.next = self.stamp8.q.val();
            } else if self.index.val().get_bit(2) {
                self.found.d.next = self.high.val();
            }
        }
        self.stamp.next = self.found.q.val();
        if self.reset.val() | self.clear.val() {
            self.seen.d.next = 0.into();
        }
    }
}
