//! What a VI that was taken is to do: what it owes first, then its queue (contract 4.1, 6.2).
//! Combinational, but for what the frame will be: registered with `choose`.

use crate::leaf::Number;
use nic_regs::frame::Type;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Choice {
    pub clock: Signal<In, Clock>,
    pub choose: Signal<In, Bit>,
    /// The VI was taken to end its head for the middle stage.
    pub rescuing: Signal<In, Bit>,
    pub connected: Signal<In, Bit>,
    pub some: Signal<In, Bit>,
    pub awaiting: Signal<In, Bit>,
    pub acked: Signal<In, Bit>,
    /// One-hot: ViAck, ViRefuse, Fin.
    pub owed: Signal<In, Bits<3>>,
    pub unreliable: Signal<In, Bit>,
    /// The descriptor in hand is an RDMA write.
    pub is_write: Signal<In, Bit>,
    // One of these, or nothing to do: an owed frame; the end of a descriptor; the next frame of it.
    pub owes: Signal<Out, Bit>,
    pub ends: Signal<Out, Bit>,
    pub sends: Signal<Out, Bit>,
    // The frame.
    pub kind: Signal<Out, Bits<8>>,
    pub is_data: Signal<Out, Bit>,
    pub sequenced: Signal<Out, Bit>,
    kind_at: DFF<Bits<8>>,
    is_data_at: DFF<Bit>,
    sequenced_at: DFF<Bit>,
    kind_data: Number<8, { Type::Data as u64 }>,
    kind_write: Number<8, { Type::RdmaWrite as u64 }>,
    kind_ack: Number<8, { Type::ViAck as u64 }>,
    kind_refuse: Number<8, { Type::ViRefuse as u64 }>,
    kind_fin: Number<8, { Type::Fin as u64 }>,
}

impl Logic for Choice {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, kind_at, is_data_at, sequenced_at);
        self.owes.next = (!self.rescuing.val()) & self.owed.val().any();
        self.ends.next = false;
        self.sends.next = false;
        if self.rescuing.val() {
            self.ends.next = self.connected.val() & self.some.val();
        } else if self.connected.val() & (!self.owed.val().any()) {
            self.ends.next = self.awaiting.val() & self.acked.val();
            self.sends.next = (!self.awaiting.val()) & self.some.val();
        }
        self.kind.next = self.kind_at.q.val();
        if self.is_data_at.q.val() & self.is_write.val() {
            self.kind.next = self.kind_write.val();
        }
        self.is_data.next = self.is_data_at.q.val();
        self.sequenced.next = self.sequenced_at.q.val();
        if self.choose.val() {
            self.is_data_at.d.next = self.sends.val();
            self.sequenced_at.d.next = (!self.sends.val()) | (!self.unreliable.val());
            self.kind_at.d.next = self.kind_data.val();
            if self.owes.val() {
                self.kind_at.d.next = self.kind_fin.val();
                if self.owed.val().get_bit(0) {
                    self.kind_at.d.next = self.kind_ack.val();
                } else if self.owed.val().get_bit(1) {
                    self.kind_at.d.next = self.kind_refuse.val();
                }
            }
        }
    }
}
