//! The call of a command's owner: region table, VIs, event queues, peers, or the send engine (a
//! message). Arguments are wires from the entry, which is stable; calls and answers are registered,
//! so that no path leads from one owner through this block to another.

use crate::ifs::{EventAdminClient, MessageClient, PeerClient, TptSetClient, ViAdminClient};
use crate::leaf::Number;
use nic_regs::admin::{AdminStatus, Opcode};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct OwnerCalls {
    pub clock: Signal<In, Clock>,
    pub tpt: TptSetClient,
    pub vi: ViAdminClient,
    pub event_queue: EventAdminClient,
    pub peer: PeerClient,
    pub message: MessageClient,
    // The entry, two dwords each.
    pub quad0: Signal<In, Bits<64>>,
    pub quad2: Signal<In, Bits<64>>,
    pub quad3: Signal<In, Bits<64>>,
    pub quad4: Signal<In, Bits<64>>,
    pub quad5: Signal<In, Bits<64>>,
    pub quad6: Signal<In, Bits<64>>,
    pub quad7: Signal<In, Bits<64>>,
    /// As in [`super::decode`].
    pub owner: Signal<In, Bits<5>>,
    /// The owner is called until `done`; without an owner it is done at once.
    pub calling: Signal<In, Bit>,
    pub done: Signal<Out, Bit>,
    pub status: Signal<Out, Bits<4>>,
    pub result: Signal<Out, Bits<32>>,
    message_data: DFF<Bits<64>>,
    /// The owner that is called.
    asking: DFF<Bits<5>>,
    // What the owner is to do: known when it is called.
    tpt_clear: DFF<Bit>,
    vi_op: DFF<Bits<3>>,
    vi_allows: DFF<Bits<2>>,
    event_op: DFF<Bits<2>>,
    peer_op: DFF<Bits<2>>,
    answered: DFF<Bit>,
    answer_status: DFF<Bits<4>>,
    answer_result: DFF<Bits<32>>,
    answers: Signal<Local, Bit>,
    opcode: Signal<Local, Bits<32>>,
    index: Signal<Local, Bits<16>>,
    word4: Signal<Local, Bits<32>>,
    word5: Signal<Local, Bits<32>>,
    word6: Signal<Local, Bits<32>>,
    word9: Signal<Local, Bits<32>>,
    op_region_clear: Number<32, { Opcode::RegionClear as u64 }>,
    op_vi_destroy: Number<32, { Opcode::ViDestroy as u64 }>,
    op_vi_connect: Number<32, { Opcode::ViConnect as u64 }>,
    op_vi_disconnect: Number<32, { Opcode::ViDisconnect as u64 }>,
    op_vi_query: Number<32, { Opcode::ViQuery as u64 }>,
    op_event_destroy: Number<32, { Opcode::EventDestroy as u64 }>,
    op_message_queue: Number<32, { Opcode::MessageQueue as u64 }>,
    op_peer_close: Number<32, { Opcode::PeerClose as u64 }>,
    op_peer_query: Number<32, { Opcode::PeerQuery as u64 }>,
    status_ok: Number<4, { AdminStatus::Ok as u64 }>,
    status_bad_state: Number<4, { AdminStatus::BadState as u64 }>,
}

impl Logic for OwnerCalls {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, message_data, asking, answered, answer_status, answer_result);
        dff_setup!(self, clock, tpt_clear, vi_op, vi_allows, event_op, peer_op);
        self.opcode.next = self.quad0.val().get_bits::<32>(0);
        self.index.next = self.quad0.val().get_bits::<16>(32);
        self.word4.next = self.quad2.val().get_bits::<32>(0);
        self.word5.next = self.quad2.val().get_bits::<32>(32);
        self.word6.next = self.quad3.val().get_bits::<32>(0);
        self.word9.next = self.quad4.val().get_bits::<32>(32);

        // Regions.
        self.tpt.valid.next = self.asking.q.val().get_bit(0);
        self.tpt_clear.d.next = self.opcode.val() == self.op_region_clear.val();
        self.tpt.clear.next = self.tpt_clear.q.val();
        self.tpt.index.next = self.index.val();
        self.tpt.va_base.next = self.quad2.val();
        self.tpt.bus_base.next = self.quad3.val();
        self.tpt.length.next = self.quad4.val().get_bits::<32>(0);
        self.tpt.tag.next = self.word9.val().get_bits::<16>(0);
        self.tpt.generation.next = self.word9.val().get_bits::<16>(16);
        self.tpt.domain.next = self.quad5.val().get_bits::<8>(0);
        self.tpt.rights.next = self.quad5.val().get_bits::<8>(8);

        // VIs.
        self.vi.valid.next = self.asking.q.val().get_bit(1);
        self.vi.op.next = self.vi_op.q.val();
        self.vi_op.d.next = 0.into();
        self.vi.vi.next = self.index.val();
        self.vi.domain.next = self.word4.val().get_bits::<8>(0);
        self.vi.reliability.next = self.word4.val().get_bits::<3>(8);
        self.vi.tag.next = self.word4.val().get_bits::<16>(16);
        self.vi.send_queue.next = self.word5.val().get_bits::<16>(0);
        self.vi.recv_queue.next = self.word5.val().get_bits::<16>(16);
        self.vi.max_transfer.next = self.word6.val().get_bits::<20>(0);
        self.vi.allows.next = self.vi_allows.q.val();
        self.vi_allows.d.next = self.quad3.val().get_bits::<2>(32);
        self.vi.peer.next = self.word4.val().get_bits::<8>(0);
        self.vi.peer_vi.next = self.word4.val().get_bits::<16>(16);
        self.vi.connection.next = self.word5.val().get_bits::<16>(0);
        if self.opcode.val() == self.op_vi_destroy.val() {
            self.vi_op.d.next = 1.into();
        } else if self.opcode.val() == self.op_vi_connect.val() {
            self.vi_op.d.next = 2.into();
            self.vi_allows.d.next = self.word5.val().get_bits::<2>(16);
        } else if self.opcode.val() == self.op_vi_disconnect.val() {
            self.vi_op.d.next = 3.into();
        } else if self.opcode.val() == self.op_vi_query.val() {
            self.vi_op.d.next = 4.into();
        }

        // Event queues.
        self.event_queue.valid.next = self.asking.q.val().get_bit(2);
        self.event_queue.op.next = self.event_op.q.val();
        self.event_op.d.next = 0.into();
        self.event_queue.index.next = self.index.val();
        self.event_queue.base.next = self.quad2.val();
        self.event_queue.log2.next = self.word6.val().get_bits::<4>(0);
        self.event_queue.wide.next = self.word6.val().get_bit(4);
        self.event_queue.domain.next = self.word6.val().get_bits::<8>(8);
        self.event_queue.vector.next = self.word6.val().get_bits::<8>(16);
        self.event_queue.queue.next = self.word4.val().get_bits::<16>(0);
        if self.opcode.val() == self.op_event_destroy.val() {
            self.event_op.d.next = 1.into();
        } else if self.opcode.val() == self.op_message_queue.val() {
            self.event_op.d.next = 2.into();
        }

        // Peers.
        self.peer.valid.next = self.asking.q.val().get_bit(3);
        self.peer.op.next = self.peer_op.q.val();
        self.peer_op.d.next = 0.into();
        self.peer.peer.next = self.quad0.val().get_bits::<8>(32);
        self.peer.epoch.next = self.word4.val();
        self.peer.credits.next = self.word5.val().get_bits::<8>(0);
        if self.opcode.val() == self.op_peer_close.val() {
            self.peer_op.d.next = 1.into();
        } else if self.opcode.val() == self.op_peer_query.val() {
            self.peer_op.d.next = 2.into();
        }

        // A message: six beats, each in the cycle after its index.
        self.message.valid.next = self.asking.q.val().get_bit(4);
        self.message.peer.next = self.quad0.val().get_bits::<8>(32);
        self.message.domain.next = self.quad0.val().get_bits::<8>(40);
        self.message.data.next = self.message_data.q.val();
        self.message_data.d.next = self.quad7.val();
        if self.message.index.val() == 0 {
            self.message_data.d.next = self.quad2.val();
        } else if self.message.index.val() == 1 {
            self.message_data.d.next = self.quad3.val();
        } else if self.message.index.val() == 2 {
            self.message_data.d.next = self.quad4.val();
        } else if self.message.index.val() == 3 {
            self.message_data.d.next = self.quad5.val();
        } else if self.message.index.val() == 4 {
            self.message_data.d.next = self.quad6.val();
        }

        // The answer.
        self.answers.next = !self.owner.val().any();
        self.answer_status.d.next = self.status_ok.val();
        self.answer_result.d.next = 0.into();
        if self.asking.q.val().get_bit(0) {
            self.answers.next = self.tpt.done.val();
            if !self.tpt.ok.val() {
                self.answer_status.d.next = self.status_bad_state.val();
            }
        } else if self.asking.q.val().get_bit(1) {
            self.answers.next = self.vi.done.val();
            self.answer_status.d.next = self.vi.status.val();
            self.answer_result.d.next = self.vi.result.val();
        } else if self.asking.q.val().get_bit(2) {
            self.answers.next = self.event_queue.done.val();
            self.answer_status.d.next = self.event_queue.status.val();
        } else if self.asking.q.val().get_bit(3) {
            self.answers.next = self.peer.done.val();
            self.answer_status.d.next = self.peer.status.val();
            self.answer_result.d.next = bit_cast::<32, 4>(self.peer.state.val());
        } else if self.asking.q.val().get_bit(4) {
            self.answers.next = self.message.done.val();
            self.answer_status.d.next = self.message.status.val();
        }
        self.asking.d.next = 0.into();
        self.answered.d.next = false;
        if self.calling.val() & (!self.answered.q.val()) {
            self.answered.d.next = self.answers.val();
            if !self.answers.val() {
                self.asking.d.next = self.owner.val();
            }
        }
        self.done.next = self.answered.q.val();
        self.status.next = self.answer_status.q.val();
        self.result.next = self.answer_result.q.val();
    }
}
