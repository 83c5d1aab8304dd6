//! The answers to RDMA reads that are pending for peers of VIs (contract 12.2, 12.3): one a VI, so a request
//! never waits for room. Timing as in [`super::queue`].

use crate::leaf::{Number, SdpRam};
use nic_regs::limits::LINK_PAYLOAD_BYTES;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Answers {
    pub clock: Signal<In, Clock>,
    pub read_address: Signal<In, Bits<10>>,
    pub write_address: Signal<In, Bits<10>>,
    // Exclusive: a new answer; one frame of it is on its way; none any more.
    pub add: Signal<In, Bit>,
    pub advance: Signal<In, Bit>,
    pub forget: Signal<In, Bit>,
    pub new_address: Signal<In, Bits<64>>,
    pub new_handle: Signal<In, Bits<32>>,
    pub new_left: Signal<In, Bits<19>>,
    /// An answer is pending: from this address and handle on, so many bytes.
    pub pending: Signal<Out, Bit>,
    /// The VI in stage 1 has one pending.
    pub coming_pending: Signal<Out, Bit>,
    pub address: Signal<Out, Bits<64>>,
    pub handle: Signal<Out, Bits<32>>,
    pub left: Signal<Out, Bits<19>>,
    /// After this operation an answer is pending.
    pub pending_after: Signal<Out, Bit>,
    place_ram: SdpRam<64, 10>,
    /// Handle 31:0, left 50:32, pending 51.
    rest_ram: SdpRam<52, 10>,
    place_now: DFF<Bits<64>>,
    rest_now: DFF<Bits<52>>,
    left_now: Signal<Local, Bits<19>>,
    less: Signal<Local, Bits<19>>,
    goes_on: Signal<Local, Bit>,
    pending_next: Signal<Local, Bit>,
    frame: Number<19, { LINK_PAYLOAD_BYTES as u64 }>,
    frame_64: Number<64, { LINK_PAYLOAD_BYTES as u64 }>,
}

impl Logic for Answers {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, place_now, rest_now);
        clock!(self, clock, place_ram, rest_ram);
        self.place_ram.read_address.next = self.read_address.val();
        self.rest_ram.read_address.next = self.read_address.val();
        self.place_now.d.next = self.place_ram.read_data.val();
        self.rest_now.d.next = self.rest_ram.read_data.val();
        self.left_now.next = self.rest_now.q.val().get_bits::<19>(32);
        self.coming_pending.next = self.rest_ram.read_data.val().get_bit(51);
        self.pending.next = self.rest_now.q.val().get_bit(51);
        self.address.next = self.place_now.q.val();
        self.handle.next = self.rest_now.q.val().get_bits::<32>(0);
        self.left.next = self.left_now.val();

        self.goes_on.next = self.left_now.val() > self.frame.val();
        self.less.next = self.left_now.val() - self.frame.val();
        self.pending_next.next = self.rest_now.q.val().get_bit(51);
        if self.forget.val() {
            self.pending_next.next = false;
        } else if self.add.val() {
            self.pending_next.next = true;
        } else if self.advance.val() {
            self.pending_next.next = self.rest_now.q.val().get_bit(51) & self.goes_on.val();
        }
        self.pending_after.next = self.pending_next.val();
        self.place_ram.write_address.next = self.write_address.val();
        self.place_ram.write_enable.next = self.add.val() | self.advance.val();
        self.place_ram.write_data.next = self.place_now.q.val() + self.frame_64.val();
        self.rest_ram.write_address.next = self.write_address.val();
        self.rest_ram.write_enable.next = self.add.val() | self.advance.val() | self.forget.val();
        self.rest_ram.write_data.next = bit_cast::<52, 32>(self.rest_now.q.val().get_bits::<32>(0))
            | (bit_cast::<52, 19>(self.less.val()) << 32)
            | (bit_cast::<52, 1>(self.pending_next.val().into()) << 51);
        if self.add.val() {
            self.place_ram.write_data.next = self.new_address.val();
            self.rest_ram.write_data.next = bit_cast::<52, 32>(self.new_handle.val())
                | (bit_cast::<52, 19>(self.new_left.val()) << 32)
                | (bit_cast::<52, 1>(self.pending_next.val().into()) << 51);
        }
    }
}
