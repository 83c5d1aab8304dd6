//! What of the frames is counted, as pulses: Unmatched, UnreliableEmpty, UnreliableGap,
//! MessagesRefused, RdmaRefused.

use crate::leaf::Number;
use nic_regs::counter::Counter;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct CounterEvents {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: what the frame does is decided (see `super::check`), or, `telling`, whether the
    /// immediate data of an RDMA write finds a descriptor.
    pub choosing: Signal<In, Bit>,
    pub telling: Signal<In, Bit>,
    pub unmatched: Signal<In, Bit>,
    pub dropped: Signal<In, Bit>,
    pub gap: Signal<In, Bit>,
    pub empty: Signal<In, Bit>,
    pub unreliable: Signal<In, Bit>,
    // Pulses.
    pub range_refused: Signal<In, Bit>,
    pub message_refused: Signal<In, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    counts_out: DFF<Bits<64>>,
    // What was decided a cycle ago: choosing 0, telling 1, unmatched 2, dropped 3, gap 4, empty 5,
    // unreliable 6, RDMA refused 7, message refused 8.
    reported: DFF<Bits<9>>,
    lacking: Signal<Local, Bit>,
    count_unmatched: Number<64, { 1 << Counter::Unmatched as u32 }>,
    count_empty: Number<64, { 1 << Counter::UnreliableEmpty as u32 }>,
    count_gap: Number<64, { 1 << Counter::UnreliableGap as u32 }>,
    count_refused: Number<64, { 1 << Counter::MessagesRefused as u32 }>,
    count_rdma: Number<64, { 1 << Counter::RdmaRefused as u32 }>,
}

impl Logic for CounterEvents {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, counts_out, reported);
        self.counts.next = self.counts_out.q.val();
        self.reported.d.next = bit_cast::<9, 1>(self.choosing.val().into())
            | (bit_cast::<9, 1>(self.telling.val().into()) << 1)
            | (bit_cast::<9, 1>(self.unmatched.val().into()) << 2)
            | (bit_cast::<9, 1>(self.dropped.val().into()) << 3)
            | (bit_cast::<9, 1>(self.gap.val().into()) << 4)
            | (bit_cast::<9, 1>(self.empty.val().into()) << 5)
            | (bit_cast::<9, 1>(self.unreliable.val().into()) << 6)
            | (bit_cast::<9, 1>(self.range_refused.val().into()) << 7)
            | (bit_cast::<9, 1>(self.message_refused.val().into()) << 8);
        self.counts_out.d.next = 0.into();
        self.lacking.next = self.reported.q.val().get_bit(3);
        if self.reported.q.val().get_bit(1) {
            self.lacking.next = self.reported.q.val().get_bit(5) & self.reported.q.val().get_bit(6);
        }
        if self.reported.q.val().get_bit(0) & self.lacking.val() {
            self.counts_out.d.next = self.count_empty.val();
        } else if self.reported.q.val().get_bit(0)
            & (!self.reported.q.val().get_bit(1))
            & self.reported.q.val().get_bit(2)
        {
            self.counts_out.d.next = self.count_unmatched.val();
        } else if self.reported.q.val().get_bit(0)
            & (!self.reported.q.val().get_bit(1))
            & self.reported.q.val().get_bit(4)
        {
            self.counts_out.d.next = self.count_gap.val();
        } else if self.reported.q.val().get_bit(7) {
            self.counts_out.d.next = self.count_rdma.val();
        } else if self.reported.q.val().get_bit(8) {
            self.counts_out.d.next = self.count_refused.val();
        }
        if self.reset.val() {
            self.reported.d.next = 0.into();
            self.counts_out.d.next = 0.into();
        }
    }
}
