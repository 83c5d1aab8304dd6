//! The look-up of a push's token: where its descriptor lies, beside the question to the pool.

use crate::ifs::TptClient;
use crate::leaf::Number;
use nic_regs::desc::CONTROL_BYTES;
use nic_regs::limits::DATA_SEGMENTS_MAX;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct PushLookup {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: look. The token and the rest stay until `looked`, which stays until `clear`.
    pub start: Signal<In, Bit>,
    pub clear: Signal<In, Bit>,
    pub token: Signal<In, Bits<47>>,
    pub tag: Signal<In, Bits<16>>,
    pub domain: Signal<In, Bits<6>>,
    pub looking: Signal<Out, Bit>,
    pub looked: Signal<Out, Bit>,
    /// It was right; the descriptor's address.
    pub reached: Signal<Out, Bit>,
    pub bus: Signal<Out, Bits<64>>,
    pub tpt: TptClient,
    looking_at: DFF<Bit>,
    looked_at: DFF<Bit>,
    reached_at: DFF<Bit>,
    bus_at: DFF<Bits<64>>,
    segments: Signal<Local, Bits<5>>,
    control_bytes: Number<32, { CONTROL_BYTES }>,
    segments_most: Number<5, { DATA_SEGMENTS_MAX as u64 + 1 }>,
}

impl Logic for PushLookup {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, looking_at, looked_at, reached_at, bus_at);
        self.looking.next = self.looking_at.q.val();
        self.looked.next = self.looked_at.q.val();
        self.reached.next = self.reached_at.q.val();
        self.bus.next = self.bus_at.q.val();
        self.segments.next = self.token.val().get_bits::<5>(42);
        if self.segments.val() > self.segments_most.val() {
            self.segments.next = 0.into();
        }
        self.tpt.valid.next = self.looking_at.q.val();
        self.tpt.index.next = self.token.val().get_bits::<16>(0);
        self.tpt.generation.next = 0.into();
        self.tpt.check_generation.next = false;
        self.tpt.va_mode.next = false;
        self.tpt.address.next = bit_cast::<64, 26>(self.token.val().get_bits::<26>(16)) << 6;
        self.tpt.length.next =
            self.control_bytes.val() + (bit_cast::<32, 5>(self.segments.val()) << 4);
        self.tpt.tag.next = self.tag.val();
        self.tpt.rights.next = 0.into();
        self.tpt.domain.next = bit_cast::<8, 6>(self.domain.val());
        if self.tpt.done.val() {
            self.looking_at.d.next = false;
            self.looked_at.d.next = true;
            self.reached_at.d.next = self.tpt.ok.val();
            self.bus_at.d.next = self.tpt.bus.val();
        }
        if self.clear.val() {
            self.looked_at.d.next = false;
        }
        if self.start.val() {
            self.looking_at.d.next = true;
        }
        if self.reset.val() {
            self.looking_at.d.next = false;
        }
    }
}
