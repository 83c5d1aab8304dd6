//! The engine's call to the region table, from registers: it begins a cycle after it was asked for.

use crate::ifs::{TptClient, TptServer};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Caller {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub asker: TptServer,
    pub tpt: TptClient,
    calling: DFF<Bit>,
    index: DFF<Bits<16>>,
    generation: DFF<Bits<16>>,
    check_generation: DFF<Bit>,
    va_mode: DFF<Bit>,
    address: DFF<Bits<64>>,
    length: DFF<Bits<32>>,
    tag: DFF<Bits<16>>,
    domain: DFF<Bits<8>>,
    rights: DFF<Bits<3>>,
}

impl Logic for Caller {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, calling, index, generation, check_generation, va_mode, address);
        dff_setup!(self, clock, length, tag, domain, rights);
        // The arguments are stable from `valid` to the answer.
        self.calling.d.next = self.asker.valid.val() & (!self.tpt.done.val());
        self.index.d.next = self.asker.index.val();
        self.generation.d.next = self.asker.generation.val();
        self.check_generation.d.next = self.asker.check_generation.val();
        self.va_mode.d.next = self.asker.va_mode.val();
        self.address.d.next = self.asker.address.val();
        self.length.d.next = self.asker.length.val();
        self.tag.d.next = self.asker.tag.val();
        self.domain.d.next = self.asker.domain.val();
        self.rights.d.next = self.asker.rights.val();
        self.tpt.valid.next = self.calling.q.val();
        self.tpt.index.next = self.index.q.val();
        self.tpt.generation.next = self.generation.q.val();
        self.tpt.check_generation.next = self.check_generation.q.val();
        self.tpt.va_mode.next = self.va_mode.q.val();
        self.tpt.address.next = self.address.q.val();
        self.tpt.length.next = self.length.q.val();
        self.tpt.tag.next = self.tag.q.val();
        self.tpt.domain.next = self.domain.q.val();
        self.tpt.rights.next = self.rights.q.val();
        self.asker.done.next = self.tpt.done.val();
        self.asker.ok.next = self.tpt.ok.val();
        self.asker.bus.next = self.tpt.bus.val();
        self.asker.room.next = self.tpt.room.val();
        self.asker.offset_64.next = self.tpt.offset_64.val();
        if self.reset.val() {
            self.calling.d.next = false;
        }
    }
}
