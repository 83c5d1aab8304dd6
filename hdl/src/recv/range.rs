//! The RDMA header of a frame, and whether its range of this side's memory may be touched
//! (contract 11.3).
//!
//! ```text
//! load --> +-------+ --> ready, address, handle, total
//!  ask --> | Range | --> answered, granted, bus (from the cycle after `answered`)
//!          +-------+ <--> tpt
//! ```
//! The header is the first two beats of the payload. An empty range is granted without a look-up, if
//! the VI allows the operation at all.
//!
//! Held -> First -> Second -> Take -> Held

use crate::ifs::TptClient;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum RangeState {
    /// Holds a header.
    Held,
    /// Reads its first beat.
    First,
    /// Reads its second beat, takes the first.
    Second,
    /// Takes the second.
    Take,
}

#[derive(LogicBlock, Default)]
pub struct Range {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: a frame with an RDMA header is at the head of staging.
    pub load: Signal<In, Bit>,
    /// The header is here; from the cycle after `load` on.
    pub ready: Signal<Out, Bit>,
    /// Reads staging at `beat`; the data comes in the next cycle.
    pub reading: Signal<Out, Bit>,
    pub beat: Signal<Out, Bits<10>>,
    pub data: Signal<In, Bits<64>>,
    pub address: Signal<Out, Bits<64>>,
    pub handle: Signal<Out, Bits<32>>,
    /// Length of the whole message; of a frame without such a header (`plain`) its `word`.
    pub total: Signal<Out, Bits<32>>,
    pub plain: Signal<In, Bit>,
    pub word: Signal<In, Bits<32>>,
    // The question: a level until `answered`; the arguments are stable from the cycle before on.
    pub ask: Signal<In, Bit>,
    /// The VI allows the operation; rights that the region must give.
    pub allowed: Signal<In, Bit>,
    pub rights: Signal<In, Bits<3>>,
    /// The range is the whole message (else `length` bytes).
    pub whole: Signal<In, Bit>,
    pub length: Signal<In, Bits<13>>,
    pub tag: Signal<In, Bits<16>>,
    pub domain: Signal<In, Bits<8>>,
    pub answered: Signal<Out, Bit>,
    pub granted: Signal<Out, Bit>,
    pub bus: Signal<Out, Bits<64>>,
    pub tpt: TptClient,
    state: DFF<RangeState>,
    address_at: DFF<Bits<64>>,
    handle_at: DFF<Bits<32>>,
    total_at: DFF<Bits<32>>,
    bus_at: DFF<Bits<64>>,
    /// Of the look-up: known from the header and the VI's context, a cycle before `ask`.
    bytes_at: DFF<Bits<32>>,
    looks: DFF<Bit>,
    bytes: Signal<Local, Bits<32>>,
}

impl Logic for Range {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, address_at, handle_at, total_at, bus_at);
        dff_setup!(self, clock, bytes_at, looks);
        self.ready.next = self.state.q.val() == RangeState::Held;
        self.reading.next = self.state.q.val() != RangeState::Held;
        self.beat.next = 0.into();
        if self.state.q.val() == RangeState::Second {
            self.beat.next = 1.into();
        }
        self.address.next = self.address_at.q.val();
        self.handle.next = self.handle_at.q.val();
        self.total.next = self.total_at.q.val();

        // The look-up.
        self.bytes.next = bit_cast::<32, 13>(self.length.val());
        if self.whole.val() {
            self.bytes.next = self.total_at.q.val();
        }
        self.bytes_at.d.next = self.bytes.val();
        self.looks.d.next = self.allowed.val() & self.bytes.val().any();
        self.tpt.valid.next = self.ask.val() & self.looks.q.val();
        self.tpt.index.next = self.handle_at.q.val().get_bits::<16>(0);
        self.tpt.generation.next = self.handle_at.q.val().get_bits::<16>(16);
        self.tpt.check_generation.next = true;
        self.tpt.va_mode.next = true;
        self.tpt.address.next = self.address_at.q.val();
        self.tpt.length.next = self.bytes_at.q.val();
        self.tpt.tag.next = self.tag.val();
        self.tpt.domain.next = self.domain.val();
        self.tpt.rights.next = self.rights.val();
        self.answered.next = self.ask.val() & ((!self.looks.q.val()) | self.tpt.done.val());
        self.granted.next = self.allowed.val() & ((!self.looks.q.val()) | self.tpt.ok.val());
        self.bus.next = self.bus_at.q.val();
        if self.tpt.done.val() {
            self.bus_at.d.next = self.tpt.bus.val();
        }

        match self.state.q.val() {
            RangeState::Held => {
                if self.plain.val() {
                    self.total_at.d.next = self.word.val();
                }
                if self.load.val() {
                    self.state.d.next = RangeState::First;
                }
            }
            RangeState::First => {
                self.state.d.next = RangeState::Second;
            }
            RangeState::Second => {
                self.address_at.d.next = self.data.val();
                self.state.d.next = RangeState::Take;
            }
            RangeState::Take => {
                self.handle_at.d.next = self.data.val().get_bits::<32>(0);
                self.total_at.d.next = self.data.val().get_bits::<32>(32);
                self.state.d.next = RangeState::Held;
            }
            _ => {
                self.state.d.next = RangeState::Held;
            }
        }
        if self.reset.val() {
            self.state.d.next = RangeState::Held;
        }
    }
}
