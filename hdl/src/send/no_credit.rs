//! Peers whose channel had no room for a message's frame, and what was asked for last (contract 4.1). Their
//! VIs ask for as much again before their descriptors are read.

use crate::leaf::{LutRam, Number};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct NoCredit {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: a question about this peer was answered.
    pub answered: Signal<In, Bit>,
    pub good: Signal<In, Bit>,
    pub peer: Signal<In, Bits<8>>,
    /// What was asked for.
    pub asked_sequenced: Signal<In, Bit>,
    pub asked_length: Signal<In, Bits<13>>,
    /// A peer is noted; this one is; the frame that it had no room for.
    pub any: Signal<Out, Bit>,
    pub noted: Signal<Out, Bit>,
    pub sequenced: Signal<Out, Bit>,
    pub length: Signal<Out, Bits<13>>,
    bits: DFF<Bits<64>>,
    any_now: DFF<Bit>,
    /// Length 12:0, sequenced 13.
    frames: LutRam<14, 6>,
    at: Signal<Local, Bits<6>>,
    place: Signal<Local, Bits<64>>,
    one: Number<64, 1>,
}

impl Logic for NoCredit {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, bits, any_now);
        clock!(self, clock, frames);
        self.at.next = self.peer.val().get_bits::<6>(0);
        self.place.next = self.one.val() << self.at.val();
        self.any_now.d.next = self.bits.q.val().any();
        self.any.next = self.any_now.q.val();
        self.noted.next = self.bits.q.val().get_bit(self.at.val().index());
        if self.answered.val() {
            self.bits.d.next = self.bits.q.val() | self.place.val();
            if self.good.val() {
                self.bits.d.next = self.bits.q.val() & (!self.place.val());
            }
        }
        self.frames.read_address.next = self.at.val();
        self.length.next = self.frames.read_data.val().get_bits::<13>(0);
        self.sequenced.next = self.frames.read_data.val().get_bit(13);
        self.frames.write_address.next = self.at.val();
        self.frames.write_enable.next = self.answered.val() & (!self.good.val());
        self.frames.write_data.next = bit_cast::<14, 13>(self.asked_length.val())
            | (bit_cast::<14, 1>(self.asked_sequenced.val().into()) << 13);
        if self.reset.val() {
            self.bits.d.next = 0.into();
            self.any_now.d.next = false;
        }
    }
}
