//! What a VI that was taken is to do: what it owes first, then a frame of the answer to the peer's
//! read, then its queue (contract 4.1, 6.2). An acknowledged send is ended whatever state the VI is in,
//! and in a turn of its own. Combinational, but for what the frame will be: registered with `choose`.

use crate::leaf::Number;
use nic_regs::frame::Type;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Select {
    pub clock: Signal<In, Clock>,
    pub choose: Signal<In, Bit>,
    /// The VI was taken to end its head for the middle stage.
    pub rescuing: Signal<In, Bit>,
    /// It was taken to end its acknowledged send.
    pub finishing: Signal<In, Bit>,
    pub connected: Signal<In, Bit>,
    pub some: Signal<In, Bit>,
    pub awaiting: Signal<In, Bit>,
    pub acked: Signal<In, Bit>,
    /// One-hot: ViAck, ViRefuse, Fin.
    pub control_pending: Signal<In, Bits<3>>,
    pub unreliable: Signal<In, Bit>,
    /// It waits for the answer to a read of its own / owes one.
    pub reading: Signal<In, Bit>,
    pub answer: Signal<In, Bit>,
    /// The descriptor in flight is an RDMA write / read.
    pub is_write: Signal<In, Bit>,
    pub is_read: Signal<In, Bit>,
    // One of these, or nothing to do: an owed frame; the end of a descriptor; the next frame of it; a
    // frame of an answer.
    pub needs: Signal<Out, Bit>,
    pub ends: Signal<Out, Bit>,
    pub sends: Signal<Out, Bit>,
    pub answers: Signal<Out, Bit>,
    // The frame: part of a message, or asks for one; part of an answer; or owed.
    pub kind: Signal<Out, Bits<8>>,
    pub is_data: Signal<Out, Bit>,
    pub is_answer: Signal<Out, Bit>,
    pub sequenced: Signal<Out, Bit>,
    kind_at: DFF<Bits<8>>,
    is_data_at: DFF<Bit>,
    is_answer_at: DFF<Bit>,
    sequenced_at: DFF<Bit>,
    kind_data: Number<8, { Type::Data as u64 }>,
    kind_write: Number<8, { Type::RdmaWrite as u64 }>,
    kind_request: Number<8, { Type::ReadRequest as u64 }>,
    kind_response: Number<8, { Type::ReadResponse as u64 }>,
    kind_ack: Number<8, { Type::ViAck as u64 }>,
    kind_refuse: Number<8, { Type::ViRefuse as u64 }>,
    kind_fin: Number<8, { Type::Fin as u64 }>,
}

impl Logic for Select {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, kind_at, is_data_at, is_answer_at, sequenced_at);
        self.needs.next =
            (!self.rescuing.val()) & (!self.finishing.val()) & self.control_pending.val().any();
        self.ends.next = false;
        self.sends.next = false;
        self.answers.next = false;
        if self.rescuing.val() {
            self.ends.next = self.connected.val() & self.some.val();
        } else if self.finishing.val() {
            self.ends.next = self.awaiting.val() & self.acked.val();
        } else if self.connected.val() & (!self.control_pending.val().any()) {
            self.answers.next = self.answer.val();
            self.sends.next = self.some.val()
                & (!self.awaiting.val())
                & (!self.reading.val())
                & (!self.answer.val());
        }
        self.kind.next = self.kind_at.q.val();
        if self.is_data_at.q.val() & self.is_write.val() {
            self.kind.next = self.kind_write.val();
        } else if self.is_data_at.q.val() & self.is_read.val() {
            self.kind.next = self.kind_request.val();
        }
        self.is_data.next = self.is_data_at.q.val();
        self.is_answer.next = self.is_answer_at.q.val();
        self.sequenced.next = self.sequenced_at.q.val();
        if self.choose.val() {
            self.is_data_at.d.next = self.sends.val();
            self.is_answer_at.d.next = self.answers.val();
            self.sequenced_at.d.next = (!self.sends.val()) | (!self.unreliable.val());
            self.kind_at.d.next = self.kind_data.val();
            if self.answers.val() {
                self.kind_at.d.next = self.kind_response.val();
            }
            if self.needs.val() {
                self.kind_at.d.next = self.kind_fin.val();
                if self.control_pending.val().get_bit(0) {
                    self.kind_at.d.next = self.kind_ack.val();
                } else if self.control_pending.val().get_bit(1) {
                    self.kind_at.d.next = self.kind_refuse.val();
                }
            }
        }
    }
}
