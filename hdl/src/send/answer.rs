//! The next frame of the answer to a peer's RDMA read (contract 12.3): how long it is, and where its
//! bytes are. The region is looked up for each frame, for all that is left.
//!
//! ```text
//! got --> registers --> length, rest (two cycles later)
//!              look --> answered, granted, bus (from the cycle after `answered`)
//! ```
//! That the VI allows reads at all was checked when the peer asked.

use crate::ifs::TptClient;
use crate::leaf::Number;
use nic_regs::limits::LINK_PAYLOAD_BYTES;
use nic_regs::tpt::RIGHT_RDMA_READ;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Answer {
    pub clock: Signal<In, Clock>,
    /// The context of a VI is there: what it owes, from this address and handle on.
    pub got: Signal<In, Bit>,
    pub ctx_address: Signal<In, Bits<64>>,
    pub ctx_handle: Signal<In, Bits<32>>,
    pub ctx_left: Signal<In, Bits<19>>,
    // The question: a level until `answered`.
    pub look: Signal<In, Bit>,
    pub tag: Signal<In, Bits<16>>,
    pub domain: Signal<In, Bits<8>>,
    pub answered: Signal<Out, Bit>,
    pub granted: Signal<Out, Bit>,
    pub bus: Signal<Out, Bits<64>>,
    /// Bytes of the frame, and those that are left after it.
    pub length: Signal<Out, Bits<13>>,
    pub rest: Signal<Out, Bits<19>>,
    pub tpt: TptClient,
    address_at: DFF<Bits<64>>,
    handle_at: DFF<Bits<32>>,
    left: DFF<Bits<19>>,
    length_at: DFF<Bits<13>>,
    rest_at: DFF<Bits<19>>,
    bus_at: DFF<Bits<64>>,
    some: Signal<Local, Bit>,
    payload: Number<13, { LINK_PAYLOAD_BYTES as u64 }>,
    payload_19: Number<19, { LINK_PAYLOAD_BYTES as u64 }>,
    right_read: Number<3, { RIGHT_RDMA_READ as u64 }>,
}

impl Logic for Answer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, address_at, handle_at, left, length_at, rest_at, bus_at);
        if self.got.val() {
            self.address_at.d.next = self.ctx_address.val();
            self.handle_at.d.next = self.ctx_handle.val();
            self.left.d.next = self.ctx_left.val();
        }
        self.length_at.d.next = self.payload.val();
        self.rest_at.d.next = self.left.q.val() - self.payload_19.val();
        if self.left.q.val() <= self.payload_19.val() {
            self.length_at.d.next = self.left.q.val().get_bits::<13>(0);
            self.rest_at.d.next = 0.into();
        }
        self.length.next = self.length_at.q.val();
        self.rest.next = self.rest_at.q.val();

        self.some.next = self.left.q.val().any();
        self.tpt.valid.next = self.look.val() & self.some.val();
        self.tpt.index.next = self.handle_at.q.val().get_bits::<16>(0);
        self.tpt.generation.next = self.handle_at.q.val().get_bits::<16>(16);
        self.tpt.check_generation.next = true;
        self.tpt.va_mode.next = true;
        self.tpt.address.next = self.address_at.q.val();
        self.tpt.length.next = bit_cast::<32, 19>(self.left.q.val());
        self.tpt.tag.next = self.tag.val();
        self.tpt.domain.next = self.domain.val();
        self.tpt.rights.next = self.right_read.val();
        self.answered.next = self.look.val() & ((!self.some.val()) | self.tpt.done.val());
        self.granted.next = (!self.some.val()) | self.tpt.ok.val();
        self.bus.next = self.bus_at.q.val();
        if self.tpt.done.val() {
            self.bus_at.d.next = self.tpt.bus.val();
        }
    }
}
