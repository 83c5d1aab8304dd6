//! Packs lane-aligned read responses into a stream of whole beats, byte 0 first.
//!
//! ```text
//!          take          align             pack            out
//! rsp --> register --> shift, mask --> join with rest --> register --> beat
//! ```
//! Each response (`last` ends it) begins at byte `lane` of its first beat and ends with byte `tail`
//! of its last. The response with `final_piece` ends the frame: what is left goes out zero-padded,
//! and `finished` is high with or after the last beat, for one cycle.

use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Pack {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub data: Signal<In, Bits<64>>,
    pub last: Signal<In, Bit>,
    pub lane: Signal<In, Bits<3>>,
    pub tail: Signal<In, Bits<3>>,
    pub final_piece: Signal<In, Bit>,
    pub beat_valid: Signal<Out, Bit>,
    pub beat: Signal<Out, Bits<64>>,
    pub finished: Signal<Out, Bit>,
    // Take: `low` bytes are dropped below, `fragmenter` bytes above.
    opening: DFF<Bit>,
    take_valid: DFF<Bit>,
    take_data: DFF<Bits<64>>,
    take_low: DFF<Bits<3>>,
    take_fragmenter: DFF<Bits<3>>,
    take_count: DFF<Bits<4>>,
    take_final: DFF<Bit>,
    // Align.
    align_valid: DFF<Bit>,
    align_data: DFF<Bits<64>>,
    align_count: DFF<Bits<4>>,
    align_final: DFF<Bit>,
    // Pack: `held` bytes wait for more.
    rest: DFF<Bits<64>>,
    held: DFF<Bits<4>>,
    flush: DFF<Bit>,
    out_valid: DFF<Bit>,
    out_data: DFF<Bits<64>>,
    out_finished: DFF<Bit>,
    low: Signal<Local, Bits<3>>,
    high: Signal<Local, Bits<3>>,
    span: Signal<Local, Bits<3>>,
    low_bits: Signal<Local, Bits<6>>,
    fragmenter_bits: Signal<Local, Bits<6>>,
    held_bits: Signal<Local, Bits<7>>,
    gap: Signal<Local, Bits<4>>,
    gap_bits: Signal<Local, Bits<7>>,
    mask: Signal<Local, Bits<64>>,
    shifted: Signal<Local, Bits<64>>,
    joined: Signal<Local, Bits<64>>,
    spill: Signal<Local, Bits<64>>,
    sum: Signal<Local, Bits<5>>,
    left: Signal<Local, Bits<5>>,
    fills: Signal<Local, Bit>,
    eight: Number<4, 8>,
    ones: Number<64, { u64::MAX }>,
    seven: Number<3, 7>,
}

impl Logic for Pack {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            opening,
            take_valid,
            take_data,
            take_low,
            take_fragmenter,
            take_count
        );
        dff_setup!(self, clock, take_final, align_valid, align_data, align_count, align_final);
        dff_setup!(self, clock, rest, held, flush, out_valid, out_data, out_finished);
        self.beat_valid.next = self.out_valid.q.val();
        self.beat.next = self.out_data.q.val();
        self.finished.next = self.out_finished.q.val();

        // Take: which bytes of the beat count. `opening` is low on the first beat of a response.
        self.low.next = 0.into();
        if !self.opening.q.val() {
            self.low.next = self.lane.val();
        }
        self.high.next = self.seven.val();
        if self.last.val() {
            self.high.next = self.tail.val();
        }
        self.span.next = self.high.val() - self.low.val();
        self.take_valid.d.next = self.valid.val();
        self.take_data.d.next = self.data.val();
        self.take_low.d.next = self.low.val();
        self.take_fragmenter.d.next = self.seven.val() - self.span.val();
        self.take_count.d.next = bit_cast::<4, 3>(self.span.val()) + 1;
        self.take_final.d.next = self.last.val() & self.final_piece.val();
        if self.valid.val() {
            self.opening.d.next = !self.last.val();
        }

        // Align to byte 0.
        self.low_bits.next = bit_cast::<6, 3>(self.take_low.q.val()) << 3;
        self.fragmenter_bits.next = bit_cast::<6, 3>(self.take_fragmenter.q.val()) << 3;
        self.shifted.next = self.take_data.q.val() >> self.low_bits.val();
        self.mask.next = self.ones.val() >> self.fragmenter_bits.val();
        self.align_valid.d.next = self.take_valid.q.val();
        self.align_data.d.next = self.shifted.val() & self.mask.val();
        self.align_count.d.next = self.take_count.q.val();
        self.align_final.d.next = self.take_final.q.val();

        // Pack: the new bytes go above the held ones; what does not fit spills over. What a frame
        // leaves goes out in the cycle after its end; the next frame's first bytes, up to eight,
        // are then held.
        self.held_bits.next = bit_cast::<7, 4>(self.held.q.val()) << 3;
        self.gap.next = self.eight.val() - self.held.q.val();
        self.gap_bits.next = bit_cast::<7, 4>(self.gap.val()) << 3;
        self.joined.next = self.rest.q.val() | (self.align_data.q.val() << self.held_bits.val());
        self.spill.next = self.align_data.q.val() >> self.gap_bits.val();
        self.sum.next =
            bit_cast::<5, 4>(self.held.q.val()) + bit_cast::<5, 4>(self.align_count.q.val());
        self.left.next = self.sum.val() - 8;
        self.fills.next = self.sum.val().get_bit(3) | self.sum.val().get_bit(4);
        self.out_valid.d.next = false;
        self.out_data.d.next = self.joined.val();
        self.out_finished.d.next = false;
        self.flush.d.next = false;
        if self.flush.q.val() {
            self.out_valid.d.next = true;
            self.out_data.d.next = self.rest.q.val();
            self.out_finished.d.next = true;
            self.rest.d.next = 0.into();
            self.held.d.next = 0.into();
            if self.align_valid.q.val() {
                self.rest.d.next = self.align_data.q.val();
                self.held.d.next = self.align_count.q.val();
                self.flush.d.next = self.align_final.q.val();
            }
        } else if self.align_valid.q.val() {
            self.held.d.next = self.sum.val().get_bits::<4>(0);
            self.rest.d.next = self.joined.val();
            if self.fills.val() {
                self.out_valid.d.next = true;
                self.held.d.next = self.left.val().get_bits::<4>(0);
                self.rest.d.next = self.spill.val();
            }
            if self.align_final.q.val() {
                if self.fills.val() & (!self.left.val().any()) {
                    self.out_finished.d.next = true;
                } else {
                    self.flush.d.next = true;
                }
            }
        }
        if self.reset.val() {
            self.opening.d.next = false;
            self.take_valid.d.next = false;
            self.align_valid.d.next = false;
            self.rest.d.next = 0.into();
            self.held.d.next = 0.into();
            self.flush.d.next = false;
            self.out_valid.d.next = false;
            self.out_finished.d.next = false;
        }
    }
}
