//! The counters: pulses are gathered in a small accumulator for each counter, and a scanner adds
//! the accumulators to the 32-bit values in block RAM.
//!
//! ```text
//! pulses a, b, c --> 41 accumulators of 7 bits --> Look -> Fetch -> Add   (one counter in three
//! cycles)
//!                                                    block RAM 64 x 32
//! ```
//! A scan takes 123 cycles, and 3 more for each read between. One counter takes up to 127 pulses a
//! scan: twice what one source can produce, since every counted event is at least two beats. Beyond
//! that, pulses are lost. A read visits its counter at once, so that it sees every pulse up to that
//! cycle.
use crate::leaf::{Number, SdpRam};
use nic_regs::counter::{COUNTER_SLOTS, Counter};
use rust_hdl::prelude::*;

/// Counters in use; the other slots stay zero.
const USED: usize = 41;
const _: () = assert!(USED == Counter::ALL.len(), "one accumulator a counter");
const _: () = assert!(COUNTER_SLOTS == 1 << 6, "the RAM has 6 address bits");

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum CounterState {
    /// After reset: writes zeros.
    Clear,
    /// Addresses the RAM, empties the accumulator.
    Look,
    /// Registers the RAM's word.
    Fetch,
    /// Writes the sum.
    Add,
}

/// Pulses of one counter since its last visit, saturating at 127.
#[derive(LogicBlock, Default)]
pub struct Accumulator {
    pub clock: Signal<In, Clock>,
    pub clear: Signal<In, Bit>,
    pub a: Signal<In, Bit>,
    pub b: Signal<In, Bit>,
    pub c: Signal<In, Bit>,
    /// Take the sum; this cycle's pulses count for the next visit.
    pub visit: Signal<In, Bit>,
    /// The sum during `visit`, else zero.
    pub taken: Signal<Out, Bits<7>>,
    sum: DFF<Bits<7>>,
    pulses: Signal<Local, Bits<2>>,
    after: Signal<Local, Bits<8>>,
}

impl Logic for Accumulator {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, sum);
        self.pulses.next = bit_cast::<2, 1>(self.a.val().into())
            + bit_cast::<2, 1>(self.b.val().into())
            + bit_cast::<2, 1>(self.c.val().into());
        self.after.next = bit_cast::<8, 7>(self.sum.q.val()) + bit_cast::<8, 2>(self.pulses.val());
        self.sum.d.next = self.after.val().get_bits::<7>(0);
        if self.after.val().get_bit(7) {
            self.sum.d.next = 0x7f.into();
        }
        self.taken.next = 0.into();
        if self.visit.val() {
            self.taken.next = self.sum.q.val();
            self.sum.d.next = bit_cast::<7, 2>(self.pulses.val());
        }
        if self.clear.val() {
            self.sum.d.next = 0.into();
        }
    }
}

/// See the module's text. `ready` rises when the RAM is clear; pulses before that are lost.
#[derive(LogicBlock)]
pub struct Counters {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    /// Bit n: counter n. The three are added up.
    pub pulses_a: Signal<In, Bits<64>>,
    pub pulses_b: Signal<In, Bits<64>>,
    pub pulses_c: Signal<In, Bits<64>>,
    /// Call: `read_data` is valid with `read_done`.
    pub read_valid: Signal<In, Bit>,
    pub read_index: Signal<In, Bits<6>>,
    pub read_done: Signal<Out, Bit>,
    pub read_data: Signal<Out, Bits<32>>,
    values: SdpRam<32, 6>,
    state: DFF<CounterState>,
    scan: DFF<Bits<6>>,
    at: DFF<Bits<6>>,
    amount: DFF<Bits<7>>,
    value: DFF<Bits<32>>,
    reading: DFF<Bit>,
    pending: [Accumulator; USED],
    visit: Signal<Local, Bits<6>>,
    visiting: Signal<Local, Bits<64>>,
    gathered: [Signal<Local, Bits<7>>; USED + 1],
    sum: Signal<Local, Bits<32>>,
    one: Number<64, 1>,
    last: Number<6, { USED as u64 - 1 }>,
    last_slot: Number<6, { COUNTER_SLOTS as u64 - 1 }>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            ready: Default::default(),
            pulses_a: Default::default(),
            pulses_b: Default::default(),
            pulses_c: Default::default(),
            read_valid: Default::default(),
            read_index: Default::default(),
            read_done: Default::default(),
            read_data: Default::default(),
            values: Default::default(),
            state: Default::default(),
            scan: Default::default(),
            at: Default::default(),
            amount: Default::default(),
            value: Default::default(),
            reading: Default::default(),
            pending: std::array::from_fn(|_| Default::default()),
            visit: Default::default(),
            visiting: Default::default(),
            gathered: std::array::from_fn(|_| Default::default()),
            sum: Default::default(),
            one: Default::default(),
            last: Default::default(),
            last_slot: Default::default(),
        }
    }
}

impl Logic for Counters {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, scan, at, amount, value, reading);
        clock!(self, clock, values);
        // A read goes before the scan.
        self.visit.next = self.scan.q.val();
        if self.read_valid.val() {
            self.visit.next = self.read_index.val();
        }
        self.visiting.next = 0.into();
        self.values.read_address.next = self.visit.val();
        self.values.write_address.next = self.at.q.val();
        self.values.write_data.next = 0.into();
        self.values.write_enable.next = false;
        self.value.d.next = self.values.read_data.val();
        self.sum.next = self.value.q.val() + bit_cast::<32, 7>(self.amount.q.val());
        self.ready.next = true;
        self.read_done.next = false;
        self.read_data.next = self.sum.val();
        match self.state.q.val() {
            CounterState::Clear => {
                self.ready.next = false;
                self.values.write_enable.next = true;
                self.at.d.next = self.at.q.val() + 1;
                if self.at.q.val() == self.last_slot.val() {
                    self.state.d.next = CounterState::Look;
                }
            }
            CounterState::Look => {
                self.visiting.next = self.one.val() << self.visit.val();
                self.at.d.next = self.visit.val();
                self.reading.d.next = self.read_valid.val();
                if !self.read_valid.val() {
                    self.scan.d.next = self.scan.q.val() + 1;
                    if self.scan.q.val() == self.last.val() {
                        self.scan.d.next = 0.into();
                    }
                }
                self.state.d.next = CounterState::Fetch;
            }
            CounterState::Fetch => {
                self.state.d.next = CounterState::Add;
            }
            CounterState::Add => {
                self.values.write_enable.next = true;
                self.values.write_data.next = self.sum.val();
                self.read_done.next = self.reading.q.val();
                self.state.d.next = CounterState::Look;
            }
            _ => {
                self.state.d.next = CounterState::Look;
            }
        }

        // The accumulator that is visited; all others give zero.
        self.gathered[0].next = 0.into();
        for i in 0..USED {
            self.pending[i].clock.next = self.clock.val();
            self.pending[i].clear.next = self.state.q.val() == CounterState::Clear;
            self.pending[i].visit.next = self.visiting.val().get_bit(i);
            self.pending[i].a.next = self.pulses_a.val().get_bit(i);
            self.pending[i].b.next = self.pulses_b.val().get_bit(i);
            self.pending[i].c.next = self.pulses_c.val().get_bit(i);
            self.gathered[i + 1].next = self.gathered[i].val() | self.pending[i].taken.val();
        }
        if self.state.q.val() == CounterState::Look {
            self.amount.d.next = self.gathered[41].val();
        }
        if self.reset.val() {
            self.state.d.next = CounterState::Clear;
            self.scan.d.next = 0.into();
            self.at.d.next = 0.into();
            self.reading.d.next = false;
        }
    }
}
