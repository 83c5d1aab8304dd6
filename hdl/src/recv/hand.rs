//! The frames that the engine was given: up to eight are taken out of staging, the oldest is worked
//! on, and the VIs of the others are known before their turn.
//!
//! ```text
//! staging ==> +------+ ==> the oldest frame (`valid`, header, place of its payload)
//!             | Hand | --> the VI of a frame that waits (`peek`)
//!    give -> +------+ --> take
//! ```
//! A frame that finds nothing in front of it is shown while it is offered: it loses no cycle.

use crate::leaf::{Fifo, Number};
use nic_regs::frame::Type;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Hand {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    // Staging.
    pub offered: Signal<In, Bit>,
    pub offered0: Signal<In, Bits<64>>,
    pub offered1: Signal<In, Bits<64>>,
    pub offered2: Signal<In, Bits<64>>,
    pub offered_base: Signal<In, Bits<11>>,
    pub take: Signal<Out, Bit>,
    // The oldest frame, stable until `give` (pulse).
    pub give: Signal<In, Bit>,
    pub valid: Signal<Out, Bit>,
    pub header0: Signal<Out, Bits<64>>,
    pub header1: Signal<Out, Bits<64>>,
    pub header2: Signal<Out, Bits<64>>,
    pub base: Signal<Out, Bits<11>>,
    /// A Data frame that is not the oldest is for this VI; `peeked` (pulse) goes on to the next one.
    pub peek: Signal<Out, Bit>,
    pub peek_vi: Signal<Out, Bits<10>>,
    pub peeked: Signal<In, Bit>,
    headers0: Fifo<64, 3>,
    headers1: Fifo<64, 3>,
    headers2: Fifo<64, 3>,
    bases: Fifo<11, 3>,
    // Of the frames in hand that were not looked at: VI 9:0, Data 10.
    peeks: Fifo<11, 3>,
    taken: Signal<Local, Bit>,
    is_data: Signal<Local, Bit>,
    /// The first one that was not looked at is the oldest, or gone.
    late: Signal<Local, Bit>,
    kind_data: Number<8, { Type::Data as u64 }>,
}

impl Logic for Hand {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, headers0, headers1, headers2, bases, peeks);
        self.headers0.reset.next = self.reset.val();
        self.headers1.reset.next = self.reset.val();
        self.headers2.reset.next = self.reset.val();
        self.bases.reset.next = self.reset.val();
        self.peeks.reset.next = self.reset.val();
        self.taken.next = self.offered.val() & (!self.headers0.full.val());
        self.take.next = self.taken.val();
        self.headers0.write.next = self.taken.val();
        self.headers1.write.next = self.taken.val();
        self.headers2.write.next = self.taken.val();
        self.bases.write.next = self.taken.val();
        self.headers0.data_in.next = self.offered0.val();
        self.headers1.data_in.next = self.offered1.val();
        self.headers2.data_in.next = self.offered2.val();
        self.bases.data_in.next = self.offered_base.val();
        self.headers0.read.next = self.give.val();
        self.headers1.read.next = self.give.val();
        self.headers2.read.next = self.give.val();
        self.bases.read.next = self.give.val();

        self.valid.next = self.offered.val() | (!self.headers0.empty.val());
        self.header0.next = self.offered0.val();
        self.header1.next = self.offered1.val();
        self.header2.next = self.offered2.val();
        self.base.next = self.offered_base.val();
        if !self.headers0.empty.val() {
            self.header0.next = self.headers0.data_out.val();
            self.header1.next = self.headers1.data_out.val();
            self.header2.next = self.headers2.data_out.val();
            self.base.next = self.bases.data_out.val();
        }

        // The oldest one needs no look: it asks itself.
        self.is_data.next = (self.offered0.val().get_bits::<8>(8) == self.kind_data.val())
            & (!self.offered1.val().get_bits::<6>(10).any());
        self.peeks.write.next = self.taken.val();
        self.peeks.data_in.next = bit_cast::<11, 10>(self.offered1.val().get_bits::<10>(0))
            | (bit_cast::<11, 1>(self.is_data.val().into()) << 10);
        self.late.next = self.peeks.level.val() >= self.headers0.level.val();
        self.peek.next =
            (!self.peeks.empty.val()) & (!self.late.val()) & self.peeks.data_out.val().get_bit(10);
        self.peek_vi.next = self.peeks.data_out.val().get_bits::<10>(0);
        self.peeks.read.next = (!self.peeks.empty.val())
            & (self.peeked.val() | self.late.val() | (!self.peeks.data_out.val().get_bit(10)));
    }
}
