//! The error log: the 16 oldest records that were not yet read, and how many were lost.
use crate::leaf::{Fifo, Number};
use rust_hdl::prelude::*;

/// Six sources, each a pulse with a record. A source has one holding register; registers are
/// emptied one a cycle, the lowest number first. A record is lost, and counted, if its register is
/// still full or the FIFO is.
#[derive(LogicBlock, Default)]
pub struct ErrorLog {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub in0_valid: Signal<In, Bit>,
    pub in0_record: Signal<In, Bits<64>>,
    pub in1_valid: Signal<In, Bit>,
    pub in1_record: Signal<In, Bits<64>>,
    pub in2_valid: Signal<In, Bit>,
    pub in2_record: Signal<In, Bits<64>>,
    pub in3_valid: Signal<In, Bit>,
    pub in3_record: Signal<In, Bits<64>>,
    pub in4_valid: Signal<In, Bit>,
    pub in4_record: Signal<In, Bits<64>>,
    pub in5_valid: Signal<In, Bit>,
    pub in5_record: Signal<In, Bits<64>>,
    /// The oldest record; zero if there is none.
    pub record: Signal<Out, Bits<64>>,
    pub level: Signal<Out, Bits<16>>,
    /// Saturating.
    pub lost: Signal<Out, Bits<16>>,
    /// Pulse: remove the oldest record, if there is one.
    pub pop: Signal<In, Bit>,
    log: Fifo<64, 4>,
    full: DFF<Bits<6>>,
    hold0: DFF<Bits<64>>,
    hold1: DFF<Bits<64>>,
    hold2: DFF<Bits<64>>,
    hold3: DFF<Bits<64>>,
    hold4: DFF<Bits<64>>,
    hold5: DFF<Bits<64>>,
    lost_now: DFF<Bits<3>>,
    lost_sum: DFF<Bits<16>>,
    arriving: Signal<Local, Bits<6>>,
    grant: Signal<Local, Bits<6>>,
    negative: Signal<Local, Bits<6>>,
    kept: Signal<Local, Bits<6>>,
    not_kept: Signal<Local, Bits<6>>,
    accepted: Signal<Local, Bits<6>>,
    refused: Signal<Local, Bits<6>>,
    chosen: Signal<Local, Bits<64>>,
    overflow: Signal<Local, Bit>,
    lost_low: Signal<Local, Bits<3>>,
    lost_high: Signal<Local, Bits<3>>,
    lost_after: Signal<Local, Bits<17>>,
    zero: Number<6, 0>,
}

impl Logic for ErrorLog {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, full, hold0, hold1, hold2, hold3, hold4, hold5, lost_now, lost_sum);
        clock!(self, clock, log);
        self.log.reset.next = self.reset.val();
        self.arriving.next = bit_cast::<6, 1>(self.in0_valid.val().into())
            | (bit_cast::<6, 1>(self.in1_valid.val().into()) << 1)
            | (bit_cast::<6, 1>(self.in2_valid.val().into()) << 2)
            | (bit_cast::<6, 1>(self.in3_valid.val().into()) << 3)
            | (bit_cast::<6, 1>(self.in4_valid.val().into()) << 4)
            | (bit_cast::<6, 1>(self.in5_valid.val().into()) << 5);
        // The lowest full register goes to the log.
        self.negative.next = self.zero.val() - self.full.q.val();
        self.grant.next = self.full.q.val() & self.negative.val();
        self.kept.next = self.full.q.val() ^ self.grant.val();
        self.not_kept.next = !self.kept.val();
        self.accepted.next = self.arriving.val() & self.not_kept.val();
        self.refused.next = self.arriving.val() & self.kept.val();
        self.full.d.next = self.kept.val() | self.accepted.val();
        if self.accepted.val().get_bit(0) {
            self.hold0.d.next = self.in0_record.val();
        }
        if self.accepted.val().get_bit(1) {
            self.hold1.d.next = self.in1_record.val();
        }
        if self.accepted.val().get_bit(2) {
            self.hold2.d.next = self.in2_record.val();
        }
        if self.accepted.val().get_bit(3) {
            self.hold3.d.next = self.in3_record.val();
        }
        if self.accepted.val().get_bit(4) {
            self.hold4.d.next = self.in4_record.val();
        }
        if self.accepted.val().get_bit(5) {
            self.hold5.d.next = self.in5_record.val();
        }
        self.chosen.next = self.hold0.q.val();
        if self.grant.val().get_bit(1) {
            self.chosen.next = self.hold1.q.val();
        } else if self.grant.val().get_bit(2) {
            self.chosen.next = self.hold2.q.val();
        } else if self.grant.val().get_bit(3) {
            self.chosen.next = self.hold3.q.val();
        } else if self.grant.val().get_bit(4) {
            self.chosen.next = self.hold4.q.val();
        } else if self.grant.val().get_bit(5) {
            self.chosen.next = self.hold5.q.val();
        }
        self.log.data_in.next = self.chosen.val();
        self.log.write.next = self.full.q.val().any() & (!self.log.full.val());
        self.overflow.next = self.full.q.val().any() & self.log.full.val();

        // Records lost in one cycle, then their sum.
        self.lost_low.next = bit_cast::<3, 1>(self.refused.val().get_bits::<1>(0))
            + bit_cast::<3, 1>(self.refused.val().get_bits::<1>(1))
            + bit_cast::<3, 1>(self.refused.val().get_bits::<1>(2))
            + bit_cast::<3, 1>(self.overflow.val().into());
        self.lost_high.next = bit_cast::<3, 1>(self.refused.val().get_bits::<1>(3))
            + bit_cast::<3, 1>(self.refused.val().get_bits::<1>(4))
            + bit_cast::<3, 1>(self.refused.val().get_bits::<1>(5));
        self.lost_now.d.next = self.lost_low.val() + self.lost_high.val();
        self.lost_after.next =
            bit_cast::<17, 16>(self.lost_sum.q.val()) + bit_cast::<17, 3>(self.lost_now.q.val());
        self.lost_sum.d.next = self.lost_after.val().get_bits::<16>(0);
        if self.lost_after.val().get_bit(16) {
            self.lost_sum.d.next = 0xffff.into();
        }

        self.record.next = 0.into();
        if !self.log.empty.val() {
            self.record.next = self.log.data_out.val();
        }
        self.level.next = self.log.level.val();
        self.lost.next = self.lost_sum.q.val();
        self.log.read.next = self.pop.val() & (!self.log.empty.val());
        if self.reset.val() {
            self.full.d.next = 0.into();
            self.lost_now.d.next = 0.into();
            self.lost_sum.d.next = 0.into();
        }
    }
}
