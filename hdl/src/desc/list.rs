//! The resolved segments of a descriptor: a small memory, and the sum of the lengths. A segment may be
//! looked at in the cycle in which it is added.

use crate::leaf::{LutRam, Number};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct List {
    pub clock: Signal<In, Clock>,
    /// Pulse: forget all.
    pub clear: Signal<In, Bit>,
    /// Pulse: the sum grows by `count_length`.
    pub count: Signal<In, Bit>,
    pub count_length: Signal<In, Bits<32>>,
    /// Pulse: add a segment (16 at most).
    pub add: Signal<In, Bit>,
    pub bus: Signal<In, Bits<64>>,
    pub length: Signal<In, Bits<32>>,
    /// Sum of the lengths, saturated to 2^20 - 1.
    pub total: Signal<Out, Bits<20>>,
    /// Segment to look at; its address and length come in the same cycle.
    pub segment: Signal<In, Bits<4>>,
    pub segment_bus: Signal<Out, Bits<64>>,
    pub segment_length: Signal<Out, Bits<32>>,
    /// It is there.
    pub segment_here: Signal<Out, Bit>,
    filled: DFF<Bits<5>>,
    sum: DFF<Bits<20>>,
    /// The sum is larger than that.
    over: DFF<Bit>,
    bus_ram: LutRam<64, 4>,
    length_ram: LutRam<32, 4>,
    next_sum: Signal<Local, Bits<21>>,
    asked: Signal<Local, Bits<5>>,
    passes: Signal<Local, Bit>,
    saturated: Number<20, 0xfffff>,
}

impl Logic for List {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, filled, sum, over);
        clock!(self, clock, bus_ram, length_ram);
        self.total.next = self.sum.q.val();
        if self.over.q.val() {
            self.total.next = self.saturated.val();
        }
        self.bus_ram.read_address.next = self.segment.val();
        self.length_ram.read_address.next = self.segment.val();
        self.asked.next = bit_cast::<5, 4>(self.segment.val());
        self.passes.next = self.add.val() & (self.asked.val() == self.filled.q.val());
        self.segment_here.next = self.passes.val() | (self.asked.val() < self.filled.q.val());
        self.segment_bus.next = self.bus_ram.read_data.val();
        self.segment_length.next = self.length_ram.read_data.val();
        if self.passes.val() {
            self.segment_bus.next = self.bus.val();
            self.segment_length.next = self.length.val();
        }
        self.bus_ram.write_address.next = self.filled.q.val().get_bits::<4>(0);
        self.bus_ram.write_data.next = self.bus.val();
        self.bus_ram.write_enable.next = self.add.val();
        self.length_ram.write_address.next = self.filled.q.val().get_bits::<4>(0);
        self.length_ram.write_data.next = self.length.val();
        self.length_ram.write_enable.next = self.add.val();
        self.next_sum.next = bit_cast::<21, 20>(self.sum.q.val())
            + bit_cast::<21, 20>(self.count_length.val().get_bits::<20>(0));
        if self.count.val() {
            self.sum.d.next = self.next_sum.val().get_bits::<20>(0);
            self.over.d.next = self.over.q.val()
                | self.next_sum.val().get_bit(20)
                | (self.count_length.val().get_bits::<12>(20) != 0);
        }
        if self.add.val() {
            self.filled.d.next = self.filled.q.val() + 1;
        }
        if self.clear.val() {
            self.filled.d.next = 0.into();
            self.sum.d.next = 0.into();
            self.over.d.next = false;
        }
    }
}
