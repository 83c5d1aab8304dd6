//! Where an access to BAR0 goes: registered one cycle after the offset.
use super::bank::word;
use crate::leaf::Number;
use nic_regs::counter::COUNTER_SLOTS;
use nic_regs::{csr, limits};
use rust_hdl::prelude::*;

const MSIX_BYTES: u32 = csr::MSIX_ENTRY_BYTES * limits::MSIX_VECTOR_COUNT as u32;
// The counters and the MSI-X table are decoded by their high bits.
const _: () = assert!(csr::COUNTER_OFFSET.is_multiple_of(256) && COUNTER_SLOTS == 64);
const _: () = assert!(csr::MSIX_TABLE_OFFSET.is_multiple_of(512) && MSIX_BYTES == 512);
const _: () = assert!(csr::STAMP0::OFFSET == 0x80 && csr::STAMP8::OFFSET == 0xa0);

/// See the module's text. None of the four: a wrong access.
#[derive(LogicBlock, Default)]
pub struct Place {
    pub clock: Signal<In, Clock>,
    pub offset: Signal<In, Bits<16>>,
    /// Not one whole dword.
    pub bad: Signal<In, Bit>,
    pub register: Signal<Out, Bit>,
    pub stamp: Signal<Out, Bit>,
    pub counter: Signal<Out, Bit>,
    pub msix: Signal<Out, Bit>,
    /// Combinational: CYCLES_LO.
    pub cycles: Signal<Out, Bit>,
    is_register: DFF<Bit>,
    is_stamp: DFF<Bit>,
    is_counter: DFF<Bit>,
    is_msix: DFF<Bit>,
    at: Signal<Local, Bits<6>>,
    page: Signal<Local, Bits<5>>,
    in_bar: Signal<Local, Bit>,
    at_cycles: Number<6, { word(csr::CYCLES_LO::OFFSET) }>,
    registers_end: Number<6, { word(csr::MODERATION::OFFSET) + 1 }>,
    stamps: Number<6, { word(csr::STAMP0::OFFSET) }>,
    stamps_end: Number<6, { word(csr::STAMP8::OFFSET) + 1 }>,
    counter_place: Number<5, { (csr::COUNTER_OFFSET / 256) as u64 }>,
    msix_place: Number<4, { (csr::MSIX_TABLE_OFFSET / 512) as u64 }>,
}

impl Logic for Place {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, is_register, is_stamp, is_counter, is_msix);
        self.at.next = self.offset.val().get_bits::<6>(2);
        self.page.next = self.offset.val().get_bits::<5>(8);
        self.in_bar.next = (self.offset.val().get_bits::<3>(13) == 0) & (!self.bad.val());
        self.is_register.d.next =
            self.in_bar.val() & (self.page.val() == 0) & (self.at.val() < self.registers_end.val());
        self.is_stamp.d.next = self.in_bar.val()
            & (self.page.val() == 0)
            & (self.at.val() >= self.stamps.val())
            & (self.at.val() < self.stamps_end.val());
        self.is_counter.d.next = self.in_bar.val() & (self.page.val() == self.counter_place.val());
        self.is_msix.d.next =
            self.in_bar.val() & (self.offset.val().get_bits::<4>(9) == self.msix_place.val());
        self.cycles.next =
            self.in_bar.val() & (self.page.val() == 0) & (self.at.val() == self.at_cycles.val());
        self.register.next = self.is_register.q.val();
        self.stamp.next = self.is_stamp.q.val();
        self.counter.next = self.is_counter.q.val();
        self.msix.next = self.is_msix.q.val();
    }
}
