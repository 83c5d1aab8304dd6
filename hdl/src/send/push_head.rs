//! The push in front, in a register, and those that wait behind it. One that comes when nothing waits goes
//! straight to the front.

use crate::leaf::Fifo;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct PushHead {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A record comes (pulse); see `super::Push`. The one in front is done with (pulse).
    pub comes: Signal<In, Bit>,
    pub fields: Signal<In, Bits<110>>,
    pub ends: Signal<In, Bit>,
    pub full: Signal<Out, Bit>,
    /// The one that comes to the front, if one does, at the end of the cycle with `load`; the length that its
    /// line says.
    pub following: Signal<Out, Bits<110>>,
    pub load: Signal<Out, Bit>,
    pub length: Signal<In, Bits<8>>,
    /// Some wait behind it.
    pub more: Signal<Out, Bit>,
    pub valid: Signal<Out, Bit>,
    pub record: Signal<Out, Bits<110>>,
    /// Its data is longer than a message may be.
    pub too_long: Signal<Out, Bit>,
    waiting: Fifo<110, 3>,
    has_record: DFF<Bit>,
    record_at: DFF<Bits<110>>,
    too_long_at: DFF<Bit>,
    next_record: Signal<Local, Bits<110>>,
    refills: Signal<Local, Bit>,
}

impl Logic for PushHead {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, has_record, record_at, too_long_at);
        clock!(self, clock, waiting);
        self.waiting.reset.next = self.reset.val();
        self.waiting.data_in.next = self.fields.val();
        self.full.next = self.waiting.full.val();
        self.more.next = !self.waiting.empty.val();
        self.valid.next = self.has_record.q.val();
        self.record.next = self.record_at.q.val();
        self.too_long.next = self.too_long_at.q.val();
        self.next_record.next = self.fields.val();
        if !self.waiting.empty.val() {
            self.next_record.next = self.waiting.data_out.val();
        }
        self.following.next = self.next_record.val();
        self.refills.next = self.ends.val() | (!self.has_record.q.val());
        self.load.next = self.refills.val();
        self.waiting.write.next =
            self.comes.val() & ((!self.refills.val()) | (!self.waiting.empty.val()));
        self.waiting.read.next = self.refills.val() & (!self.waiting.empty.val());
        if self.refills.val() {
            self.record_at.d.next = self.next_record.val();
            self.has_record.d.next = self.comes.val() | (!self.waiting.empty.val());
            self.too_long_at.d.next = (!self.next_record.val().get_bits::<11>(99).any())
                & (self.next_record.val().get_bits::<8>(91) < self.length.val());
        }
        if self.reset.val() {
            self.has_record.d.next = false;
        }
    }
}
