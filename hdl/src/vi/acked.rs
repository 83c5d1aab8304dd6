//! Reception sends whose ViAck has come, in the order in which it came (contract 4.3). They are ended
//! whatever becomes of their VI, so they do not wait in the ready ring, where a stop would take them out.
//!
//! A VI is here once: it has one such send at a time, and a fence waits until all are ended.

use crate::leaf::Fifo;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Acked {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: the ViAck that the send of `vi` awaits.
    pub push: Signal<In, Bit>,
    pub vi: Signal<In, Bits<10>>,
    /// The next one to be ended (stream).
    pub valid: Signal<Out, Bit>,
    pub number: Signal<Out, Bits<10>>,
    pub taken: Signal<In, Bit>,
    /// Some are not taken.
    pub left: Signal<Out, Bit>,
    waiting: Fifo<10, 10>,
    offered: DFF<Bit>,
    offered_vi: DFF<Bits<10>>,
    free: Signal<Local, Bit>,
    pass_by: Signal<Local, Bit>,
    loads: Signal<Local, Bit>,
}

impl Logic for Acked {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, offered, offered_vi);
        clock!(self, clock, waiting);
        self.waiting.reset.next = self.reset.val();
        self.valid.next = self.offered.q.val();
        self.number.next = self.offered_vi.q.val();
        self.left.next = self.offered.q.val() | self.waiting.level.val().any();
        self.free.next = (!self.offered.q.val()) | self.taken.val();
        self.pass_by.next = self.free.val() & (!self.waiting.level.val().any());
        self.loads.next = self.free.val() & (!self.waiting.empty.val());
        self.waiting.data_in.next = self.vi.val();
        self.waiting.write.next = self.push.val() & (!self.pass_by.val());
        self.waiting.read.next = self.loads.val();
        if self.taken.val() {
            self.offered.d.next = false;
        }
        if self.loads.val() {
            self.offered.d.next = true;
            self.offered_vi.d.next = self.waiting.data_out.val();
        } else if self.push.val() & self.pass_by.val() {
            self.offered.d.next = true;
            self.offered_vi.d.next = self.vi.val();
        }
        if self.reset.val() {
            self.offered.d.next = false;
        }
    }
}
