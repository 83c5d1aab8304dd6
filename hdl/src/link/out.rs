//! The transmitter's last stages: beat register, CRC, skid buffer, pins; and the stamps of a
//! sampled frame.
//!
//! `step` moves everything in front of the pins at once; it is the skid buffer's registered ready.
//! The CRC's own beat comes with `is_check`: by then the register has taken all beats before it.
//!
//! The skid buffer is not reset: its beats are offered to the link, and stay. If a reset finds a
//! frame that has gone there in part, one more beat ends it, which cannot be a CRC (bit 63).
use crate::channel::num::Num;
use crate::leaf::{Crc32Step, Skid};
use nic_regs::frame::{CRC_INIT, Type};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct LinkOut {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub stamp_first_beat_out: Signal<Out, Bit>,
    pub stamp_last_beat_out: Signal<Out, Bit>,
    pub tx_valid: Signal<Out, Bit>,
    pub tx_data: Signal<Out, Bits<64>>,
    pub tx_last: Signal<Out, Bit>,
    pub tx_ready: Signal<In, Bit>,
    /// The beat below is taken.
    pub step: Signal<Out, Bit>,
    pub valid: Signal<In, Bit>,
    pub is_first: Signal<In, Bit>,
    pub is_check: Signal<In, Bit>,
    /// The frame is sampled, if it is a Data or RDMA frame of this VI.
    pub may_sample: Signal<In, Bit>,
    pub sample_vi: Signal<In, Bits<16>>,
    pub source_vi: Signal<In, Bits<16>>,
    pub kind: Signal<In, Bits<8>>,
    pub beat: Signal<In, Bits<64>>,
    crc: Crc32Step,
    skid: Skid<64>,
    skid_flags: Skid<4>,
    out_valid: DFF<Bit>,
    out_first: DFF<Bit>,
    out_check: DFF<Bit>,
    /// Comparisons, all of which make a sampled frame.
    out_sampled: DFF<Bits<4>>,
    sampled: Signal<Local, Bits<4>>,
    type_data: Num<8, { Type::Data as u64 }>,
    // The first of those of RDMA.
    type_write: Num<8, { Type::RdmaWrite as u64 }>,
    is_sampled: Signal<Local, Bit>,
    all_4: Num<4, 15>,
    out_beat: DFF<Bits<64>>,
    check: DFF<Bits<32>>,
    stamp_first: DFF<Bit>,
    stamp_last: DFF<Bit>,
    /// The skid buffer has had part of a frame.
    partial: DFF<Bit>,
    /// That frame's last beat is to be made up.
    cut: DFF<Bit>,
    partial_after: Signal<Local, Bit>,
    bad_bit: Num<64, 0x8000_0000_0000_0000>,
    cut_flags: Num<4, 1>,
    moves: Signal<Local, Bit>,
    sum: Signal<Local, Bits<32>>,
    out_flags: Signal<Local, Bits<4>>,
    crc_init: Num<32, { CRC_INIT as u64 }>,
}

impl Logic for LinkOut {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, out_valid, out_first, out_check, out_sampled, out_beat, check);
        dff_setup!(self, clock, stamp_first, stamp_last);
        clock!(self, clock, skid, skid_flags);
        dff_setup!(self, clock, partial, cut);
        self.skid.reset.next = false;
        self.skid_flags.reset.next = false;
        self.sampled.next = bit_cast::<4, 1>(self.may_sample.val().into())
            | (bit_cast::<4, 1>(
                (self.source_vi.val().get_bits::<8>(0) == self.sample_vi.val().get_bits::<8>(0))
                    .into(),
            ) << 1)
            | (bit_cast::<4, 1>(
                (self.source_vi.val().get_bits::<8>(8) == self.sample_vi.val().get_bits::<8>(8))
                    .into(),
            ) << 2)
            | (bit_cast::<4, 1>(
                ((self.kind.val() == self.type_data.val())
                    | (self.kind.val() >= self.type_write.val()))
                .into(),
            ) << 3);
        self.moves.next = self.skid.in_ready.val();
        self.step.next = self.moves.val();
        if self.moves.val() {
            self.out_valid.d.next = self.valid.val();
            self.out_first.d.next = self.is_first.val();
            self.out_check.d.next = self.is_check.val();
            self.out_sampled.d.next = self.sampled.val();
            self.out_beat.d.next = self.beat.val();
        }
        self.crc.state.next = self.check.q.val();
        if self.out_first.q.val() {
            self.crc.state.next = self.crc_init.val();
        }
        self.crc.data.next = self.out_beat.q.val();
        if self.moves.val() & self.out_valid.q.val() {
            self.check.d.next = self.crc.result.val();
        }
        self.sum.next = !self.check.q.val();
        self.skid.in_valid.next = self.out_valid.q.val();
        self.skid.in_data.next = self.out_beat.q.val();
        if self.out_check.q.val() {
            self.skid.in_data.next = bit_cast::<64, 32>(self.sum.val());
        }
        if self.cut.q.val() {
            self.skid.in_data.next = self.bad_bit.val() | self.out_beat.q.val();
        }
        self.skid_flags.in_valid.next = self.out_valid.q.val();
        self.is_sampled.next = self.out_sampled.q.val() == self.all_4.val();
        self.skid_flags.in_data.next = bit_cast::<4, 1>(self.out_check.q.val().into())
            | (bit_cast::<4, 1>(self.out_first.q.val().into()) << 1)
            | (bit_cast::<4, 1>(self.is_sampled.val().into()) << 2);
        // A reset empties the beat register, so that nothing else comes while `cut` waits.
        self.partial_after.next = self.partial.q.val();
        if self.cut.q.val() {
            self.skid.in_valid.next = true;
            self.skid_flags.in_valid.next = true;
            self.skid_flags.in_data.next = self.cut_flags.val();
            if self.moves.val() {
                self.partial_after.next = false;
            }
        } else if self.moves.val() & self.out_valid.q.val() {
            self.partial_after.next = !self.out_check.q.val();
        }
        self.partial.d.next = self.partial_after.val();
        self.cut.d.next = self.partial_after.val() & (self.cut.q.val() | self.reset.val());
        self.skid.out_ready.next = self.tx_ready.val();
        self.skid_flags.out_ready.next = self.tx_ready.val();
        self.out_flags.next = self.skid_flags.out_data.val();
        self.tx_valid.next = self.skid.out_valid.val();
        self.tx_data.next = self.skid.out_data.val();
        self.tx_last.next = self.out_flags.val().get_bit(0);
        self.stamp_first.d.next = self.skid.out_valid.val()
            & self.tx_ready.val()
            & self.out_flags.val().get_bit(1)
            & self.out_flags.val().get_bit(2);
        self.stamp_last.d.next = self.skid.out_valid.val()
            & self.tx_ready.val()
            & self.out_flags.val().get_bit(0)
            & self.out_flags.val().get_bit(2);
        self.stamp_first_beat_out.next = self.stamp_first.q.val();
        self.stamp_last_beat_out.next = self.stamp_last.q.val();
        if self.reset.val() {
            self.out_valid.d.next = false;
            self.stamp_first.d.next = false;
            self.stamp_last.d.next = false;
        }
    }
}
