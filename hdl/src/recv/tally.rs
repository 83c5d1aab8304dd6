//! What of the frames is counted, as pulses: Unmatched, UnreliableEmpty, UnreliableGap,
//! MessagesRefused, RdmaRefused.

use crate::leaf::Number;
use nic_regs::counter::Counter;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Tally {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: what the frame does is decided (see `super::judge`), or, `telling`, whether the
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
    lacking: Signal<Local, Bit>,
    count_unmatched: Number<64, { 1 << Counter::Unmatched as u32 }>,
    count_empty: Number<64, { 1 << Counter::UnreliableEmpty as u32 }>,
    count_gap: Number<64, { 1 << Counter::UnreliableGap as u32 }>,
    count_refused: Number<64, { 1 << Counter::MessagesRefused as u32 }>,
    count_rdma: Number<64, { 1 << Counter::RdmaRefused as u32 }>,
}

impl Logic for Tally {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, counts_out);
        self.counts.next = self.counts_out.q.val();
        self.counts_out.d.next = 0.into();
        self.lacking.next = self.dropped.val();
        if self.telling.val() {
            self.lacking.next = self.empty.val() & self.unreliable.val();
        }
        if self.choosing.val() & self.lacking.val() {
            self.counts_out.d.next = self.count_empty.val();
        } else if self.choosing.val() & (!self.telling.val()) & self.unmatched.val() {
            self.counts_out.d.next = self.count_unmatched.val();
        } else if self.choosing.val() & (!self.telling.val()) & self.gap.val() {
            self.counts_out.d.next = self.count_gap.val();
        } else if self.range_refused.val() {
            self.counts_out.d.next = self.count_rdma.val();
        } else if self.message_refused.val() {
            self.counts_out.d.next = self.count_refused.val();
        }
        if self.reset.val() {
            self.counts_out.d.next = 0.into();
        }
    }
}
