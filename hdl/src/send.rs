//! Send engine: takes VIs from the ready ring, one frame at a time, and sends admin's messages
//! (contract 4, 3.4, 6.2, 8, 9.4, 11.1, 12.1, 12.3).
//!
//! ```text
//!  work --> +-------+ record +--------+ record +--------+ --> write (status)
//!           | Fetch |------->| Commit |------->| Retire |
//!           +-------+        +--------+        +--------+
//!            |  |  `-- Port  (GET, POP, ...) -- CHECK -- COMPLETE, STOP --> vi
//!            |  `-- ask --> pool <-- beats, commit
//!            |  `-- Push <-- words of push lines
//!    desc_read <-- Prefetch <-- Desc, Answer --> desc_tpt; Gather --> read (payload)
//! ```
//! Three stages work on three frames at the same time: the descriptor, room and read requests of
//! the next one; payload and commit; status and completion. They hand records on, one each. A push
//! with its data here takes the place of the first two.

mod abort;
mod answer;
mod commit;
mod ending;
mod fetch;
mod fragmenter;
mod gather;
mod head;
mod intake;
mod line;
mod messages;
mod no_credit;
mod opening;
mod outlet;
mod pack;
mod pool_arbiter;
mod port;
mod prefetch;
mod push;
mod push_head;
mod push_lookup;
mod request;
mod retire;
mod select;
mod send_slot;
pub use abort::Abort;
pub use answer::Answer;
pub use commit::Commit;
pub use ending::Ending;
pub use fetch::Fetch;
pub use fragmenter::Fragmenter;
pub use gather::Gather;
pub use head::Head;
pub use intake::Intake;
pub use line::Line;
pub use messages::Messages;
pub use no_credit::NoCredit;
pub use opening::Opening;
pub use outlet::Outlet;
pub use pack::Pack;
pub use pool_arbiter::PoolArbiter;
pub use port::Port;
pub use prefetch::Prefetch;
pub use push::Push;
pub use push_head::PushHead;
pub use push_lookup::PushLookup;
pub use request::Request;
pub use retire::Retire;
pub use select::Select;
pub use send_slot::SendSlot;

use crate::desc::{Cause, Desc};
use crate::ifs::{
    FenceServer, MessageServer, PoolClient, PushServer, ReadClient, TptClient, ViSendClient,
    WriteClient,
};
use crate::leaf::Number;
use crate::tpt::Lookups;
use nic_regs::frame::{RDMA_HEADER_BYTES, Type, flag};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Send {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub sample_vi: Signal<In, Bits<16>>,
    pub sample_armed: Signal<In, Bit>,
    pub stamp_descriptor: Signal<Out, Bit>,
    pub stamp_data: Signal<Out, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    pub vi: ViSendClient,
    pub read: ReadClient,
    pub write: WriteClient,
    pub pool: PoolClient,
    pub messages: MessageServer,
    pub fence: FenceServer,
    pub desc_read: ReadClient,
    pub desc_tpt: TptClient,
    pub words: PushServer,
    pausing: DFF<Bit>,
    counts_out: DFF<Bits<64>>,
    stamp_descriptor_out: DFF<Bit>,
    stamp_data_out: DFF<Bit>,
    port: Port,
    fetch: Fetch,
    prefetch: Prefetch,
    desc: Desc,
    fragmenter: Fragmenter,
    gather: Gather,
    commit: Commit,
    retire: Retire,
    outlet: Outlet,
    push: Push,
    pool_arbiter: PoolArbiter,
    answer: Answer,
    no_credit: NoCredit,
    /// Whose look-ups go: descriptors, then those beside them: answers, pushes.
    lookups: Lookups,
    others: Lookups,
    quiet: Signal<Local, Bit>,
    is_write: Signal<Local, Bit>,
    is_read: Signal<Local, Bit>,
    frame_length: Signal<Local, Bits<13>>,
    frame_flags: Signal<Local, Bits<8>>,
    frame_word: Signal<Local, Bits<32>>,
    kind_data: Number<8, { Type::Data as u64 }>,
    kind_refuse: Number<8, { Type::ViRefuse as u64 }>,
    rdma_bytes: Number<13, { RDMA_HEADER_BYTES as u64 }>,
    flag_sequenced: Number<8, { flag::SEQUENCED as u64 }>,
    one: Number<4, 1>,
    cause_done: Number<4, { Cause::Done as u64 }>,
    cause_descriptor: Number<4, { Cause::Descriptor as u64 }>,
}

impl Logic for Send {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, pausing, counts_out, stamp_descriptor_out, stamp_data_out);
        clock!(self, clock, port, fetch, desc, fragmenter, gather, commit, retire, outlet, push);
        clock!(self, clock, pool_arbiter, answer, lookups, others, prefetch, no_credit);
        self.no_credit.reset.next = self.reset.val();
        self.prefetch.reset.next = self.reset.val();
        self.push.reset.next = self.reset.val();
        self.pool_arbiter.reset.next = self.reset.val();
        self.lookups.reset.next = self.reset.val();
        TptClient::link(&mut self.desc_tpt, &mut self.lookups.tpt);
        TptClient::join(&mut self.desc.tpt, &mut self.lookups.first);
        TptClient::join(&mut self.others.tpt, &mut self.lookups.second);
        TptClient::join(&mut self.answer.tpt, &mut self.others.first);
        TptClient::join(&mut self.push.tpt, &mut self.others.second);
        self.others.reset.next = self.reset.val();
        PushServer::link(&mut self.words, &mut self.push.words);
        self.port.reset.next = self.reset.val();
        self.fetch.reset.next = self.reset.val();
        self.desc.reset.next = self.reset.val();
        self.gather.reset.next = self.reset.val();
        self.commit.reset.next = self.reset.val();
        self.retire.reset.next = self.reset.val();
        self.outlet.reset.next = self.reset.val();
        ReadClient::join(&mut self.desc.read, &mut self.prefetch.reader);
        ReadClient::link(&mut self.desc_read, &mut self.prefetch.read);
        WriteClient::link(&mut self.write, &mut self.retire.write);
        ReadClient::link(&mut self.read, &mut self.gather.read);
        MessageServer::link(&mut self.messages, &mut self.outlet.messages);
        PoolClient::link(&mut self.pool, &mut self.outlet.pool);
        ViSendClient::link(&mut self.vi, &mut self.port.vi);

        // Counters (MessagesSent, DescriptorsFetched, RdmaRefused), stamps, fence.
        self.counts.next = self.counts_out.q.val();
        self.counts_out.d.next = (bit_cast::<64, 1>(self.outlet.message_sent.val().into()) << 16)
            | (bit_cast::<64, 1>(self.desc.fetched.val().into()) << 37)
            | (bit_cast::<64, 1>((self.fetch.retire.val() & self.fetch.is_answer.val()).into())
                << 40);
        self.stamp_descriptor.next = self.stamp_descriptor_out.q.val();
        self.stamp_descriptor_out.d.next = self.sample_armed.val()
            & ((self.fetch.sized.val()
                & (self.sample_vi.val() == self.port.number.val())
                & (!self.port.in_progress.val()))
                | (self.push.checked.val() & (self.sample_vi.val() == self.push.call_vi.val())));
        self.stamp_data.next = self.stamp_data_out.q.val();
        self.stamp_data_out.d.next = self.sample_armed.val()
            & ((self.commit.ready.val()
                & (self.sample_vi.val() == self.commit.frame_vi.val())
                & (!self.commit.partial.val()))
                | (self.push.checked.val() & (self.sample_vi.val() == self.push.call_vi.val())));
        self.quiet.next = self.fetch.idle.val()
            & (!self.port.acked_left.val())
            & self.commit.idle.val()
            & self.retire.rests.val()
            & self.push.idle.val();
        self.pausing.d.next = self.quiet.val()
            & self.desc.idle.val()
            & self.prefetch.quiet.val()
            & self.fence.pause.val();
        self.fence.paused.next = self.pausing.q.val();

        // First stage: the VI and its context.
        self.is_write.next = self.desc.operation.val().get_bit(0);
        self.is_read.next = self.desc.operation.val().get_bit(1);
        self.fetch.pause.next = self.fence.pause.val();
        self.fetch.message_valid.next = self.outlet.message_valid.val();
        self.fetch.message_done.next = self.outlet.message_done.val();
        self.outlet.message_start.next = self.fetch.message_start.val();
        self.fetch.work_valid.next = self.port.work_valid.val();
        self.fetch.work_vi.next = self.port.work_vi.val();
        self.fetch.work_fresh.next = self.port.fresh.val();
        self.port.direct.next = self.fetch.direct.val();
        self.port.resting.next = (!self.fetch.holding.val()) & self.desc.idle.val();
        self.port.take.next = self.fetch.take.val();
        self.fetch.acked_valid.next = self.port.acked_valid.val();
        self.fetch.acked_vi.next = self.port.acked_vi.val();
        self.port.take_acked.next = self.fetch.take_acked.val();
        self.port.finishing.next = self.fetch.finishing.val();
        self.port.load.next = self.fetch.load.val();
        self.port.new_number.next = self.fetch.new_number.val();
        self.port.got.next = self.fetch.got.val();
        self.port.fetch_valid.next = self.fetch.call_valid.val();
        self.port.fetch_op.next = self.fetch.call_op.val();
        self.port.in_progress_arg.next = self.fetch.call_in_progress.val();
        self.port.control_pending_arg.next = self.fetch.call_control_pending.val();
        self.port.awaits.next = self.fetch.call_awaits.val();
        self.port.reading_arg.next = self.fetch.call_reading.val();
        self.port.answered_arg.next = self.fetch.call_answered.val();
        self.port.whole.next = self.desc.total.val().get_bits::<19>(0);
        self.port.is_write.next = self.is_write.val();
        self.port.next_valid.next = self.desc.next_valid.val();
        self.port.next_region.next = self.desc.next_region.val();
        self.port.next_offset.next = self.desc.next_offset.val();
        self.fetch.call_done.next = self.port.fetch_done.val();
        self.fetch.call_connected.next = self.port.is_connected.val();
        self.fetch.need_next.next = self.port.need_next.val();
        self.fetch.due.next = self.port.due.val();
        self.fetch.same.next = self.port.same.val();
        self.fetch.same_vi.next = self.port.same_vi.val();
        self.fetch.ctx_awaiting.next = self.port.ctx_awaiting.val();
        self.fetch.number.next = self.port.number.val();
        self.fetch.connected.next = self.port.connected.val();
        self.fetch.some.next = self.port.some.val();
        self.fetch.in_progress.next = self.port.in_progress.val();
        self.fetch.awaiting.next = self.port.awaiting.val();
        self.fetch.acked.next = self.port.acked.val();
        self.fetch.control_pending.next = self.port.control_pending.val();
        self.fetch.reading.next = self.port.reading.val();
        self.fetch.answer.next = self.port.answer.val();
        self.fetch.unreliable.next = self.port.unreliable.val();
        self.fetch.reception.next = self.port.reception.val();

        // Its descriptor and its frame.
        self.fetch.is_write.next = self.is_write.val();
        self.fetch.is_read.next = self.is_read.val();
        self.desc.start.next = self.fetch.desc_start.val();
        self.desc.op.next = self.fetch.desc_op.val();
        self.desc.tag.next = self.port.tag.val();
        self.desc.domain.next = self.port.domain.val();
        self.desc.region.next = self.port.ctx_region.val();
        self.desc.offset.next = self.port.ctx_offset.val();
        self.desc.hint.next = self.port.hint.val();
        self.desc.covers_next.next = self.port.covered.val() > self.one.val();
        self.prefetch.opens.next = self.desc.opens.val();
        self.prefetch.room.next = self.desc.space.val();
        self.prefetch.vi.next = self.port.number.val();
        self.prefetch.region.next = self.port.head_region.val();
        self.prefetch.offset.next = self.port.head_offset.val();
        self.prefetch.covered.next = self.port.covered.val();
        self.prefetch.forget.next = self.fence.pause.val();
        self.prefetch.passed.next = self.push.checked.val();
        self.prefetch.passed_vi.next = self.push.call_vi.val();
        self.desc.unreliable.next = self.port.unreliable.val();
        self.desc.segment.next = self.gather.segment.val();
        self.fetch.desc_idle.next = self.desc.idle.val();
        self.fetch.desc_done.next = self.desc.done.val();
        self.fetch.desc_outcome.next = self.desc.outcome.val();
        self.fetch.desc_known.next = self.desc.known.val();
        self.fetch.next_ready.next = self.desc.next_ready.val();
        self.fragmenter.total.next = self.desc.total.val();
        self.fragmenter.max_transfer.next = self.port.max_transfer.val();
        self.fragmenter.in_progress.next = self.port.in_progress.val();
        self.fragmenter.progress.next = self.port.progress.val();
        self.fragmenter.whole.next = self.port.total.val();
        self.fragmenter.is_write.next = self.is_write.val();
        self.fragmenter.was_write.next = self.port.was_write.val();
        self.fragmenter.write_allowed.next = self.port.allows.val().get_bit(0);
        self.fragmenter.is_read.next = self.is_read.val();
        self.fragmenter.read_allowed.next = self.port.allows.val().get_bit(1);
        self.fragmenter.has_immediate.next = self.desc.has_immediate.val();
        self.fragmenter.immediate.next = self.desc.immediate.val();
        self.fragmenter.sequenced.next = self.fetch.sequenced.val();
        self.fragmenter.reception.next = self.port.reception.val();
        self.fetch.refusal.next = self.fragmenter.refusal.val();
        self.fetch.last.next = self.fragmenter.last.val();
        self.answer.got.next = self.fetch.got.val();
        self.answer.ctx_address.next = self.vi.ctx_answer_address.val();
        self.answer.ctx_handle.next = self.vi.ctx_answer_handle.val();
        self.answer.ctx_left.next = self.vi.ctx_answer_left.val();
        self.answer.look.next = self.fetch.look.val();
        self.answer.tag.next = self.port.tag.val();
        self.answer.domain.next = self.port.domain.val();
        self.fetch.answered.next = self.answer.answered.val();
        self.fetch.granted.next = self.answer.granted.val();
        self.fetch.empty.next = (self.fragmenter.length.val() == 0) | self.is_read.val();
        if self.fetch.is_answer.val() {
            self.fetch.empty.next = self.answer.length.val() == 0;
        }
        self.frame_length.next = 0.into();
        self.frame_flags.next = self.flag_sequenced.val();
        self.frame_word.next = 0.into();
        if self.fetch.is_answer.val() {
            self.frame_length.next = self.answer.length.val();
            self.frame_word.next = bit_cast::<32, 19>(self.answer.rest.val());
        } else if self.fetch.is_request.val() {
            self.frame_length.next = self.rdma_bytes.val();
        } else if self.fetch.is_data.val() {
            self.frame_length.next = self.fragmenter.length.val();
            if self.is_write.val() {
                self.frame_length.next = self.fragmenter.length.val() + self.rdma_bytes.val();
            }
            self.frame_flags.next = self.fragmenter.flags.val();
            self.frame_word.next = self.fragmenter.word.val();
        } else if self.fetch.kind.val() == self.kind_refuse.val() {
            self.frame_word.next = bit_cast::<32, 8>(self.port.refuse_reason.val());
        }
        self.gather.start.next = self.fetch.gather_start.val();
        self.gather.skip.next = self.port.progress.val();
        self.gather.length.next = self.fragmenter.length.val();
        self.gather.go.next = self.fetch.gather_go.val();
        self.gather.cancel.next = self.fetch.gather_cancel.val();
        self.gather.segment_bus.next = self.desc.segment_bus.val();
        self.gather.segment_length.next = self.desc.segment_length.val();
        self.gather.segment_here.next = self.desc.segment_here.val();
        if self.fetch.is_answer.val() {
            self.gather.skip.next = 0.into();
            self.gather.length.next = self.answer.length.val();
            self.gather.segment_here.next = true;
            self.gather.segment_bus.next = self.answer.bus.val();
            self.gather.segment_length.next = bit_cast::<32, 13>(self.answer.length.val());
        }
        self.fetch.gather_issued.next = self.gather.issued.val();

        // Middle stage.
        self.commit.load.next = self.fetch.commit_load.val();
        self.commit.cancel.next = self.fetch.commit_cancel.val();
        self.commit.has_payload.next = self.fetch.has_payload.val();
        self.commit.is_part.next = self.fetch.is_data.val() | self.fetch.is_answer.val();
        self.commit.is_write.next = self.is_write.val() & self.fetch.is_data.val();
        self.commit.is_request.next = self.fetch.is_request.val();
        self.commit.is_answer.next = self.fetch.is_answer.val();
        self.commit.remote_address.next = self.desc.remote_address.val();
        self.commit.remote_handle.next = self.desc.remote_handle.val();
        self.commit.progress.next = self.port.progress.val();
        self.commit.kind.next = self.fetch.kind.val();
        self.commit.vi.next = self.port.number.val();
        self.commit.peer_vi.next = self.port.peer_vi.val();
        self.commit.connection.next = self.port.connection.val();
        self.commit.flags.next = self.frame_flags.val();
        self.commit.word.next = self.frame_word.val();
        self.commit.fragment.next = self.port.frames.val();
        if self.fetch.is_answer.val() {
            self.commit.fragment.next = 0.into();
        }
        self.commit.last.next =
            self.fragmenter.last.val() & self.fetch.is_data.val() & (!self.fetch.is_request.val());
        self.commit.reception.next = self.port.reception.val();
        self.commit.unreliable.next = self.port.unreliable.val();
        self.commit.bus.next = self.desc.bus.val();
        self.commit.total.next = self.desc.total.val();
        self.fetch.commit_idle.next = self.commit.idle.val() & (!self.push.owns.val());
        self.fetch.failing.next = self.commit.failing.val();
        self.fetch.failing_vi.next = self.commit.frame_vi.val();
        self.fetch.abort.next = self.commit.abort.val();
        self.fetch.abort_partial.next = self.commit.partial.val();
        self.commit.abort_idle.next = self.fetch.abort_idle.val();
        self.port.commit_valid.next = self.commit.call_valid.val();
        self.port.commit_go.next = self.commit.call_go.val();
        self.port.commit_vi.next = self.commit.frame_vi.val();
        self.port.commit_counts.next = self.commit.call_counts.val();
        self.commit.call_done.next = self.port.commit_done.val();
        self.commit.connected.next = self.port.is_connected.val();
        self.commit.ctx_message.next = self.port.ctx_message.val();
        self.commit.soon.next = self.gather.soon.val();
        self.commit.arrived.next = self.gather.arrived.val();
        self.commit.fault.next = self.gather.fault.val();
        self.gather.take.next = self.commit.take.val();
        self.commit.beat_waits.next = self.gather.beat_valid.val();
        self.commit.payload_beat.next = self.gather.beat_data.val();
        self.commit.payload_last.next = self.gather.beat_last.val();
        self.gather.beat_ready.next = self.commit.beat_taken.val();

        // Last stage: descriptors that the middle stage has sent or failed, or the first one ends.
        self.retire.load.next =
            self.fetch.retire.val() | self.commit.retire.val() | self.push.retire.val();
        self.retire.vi.next = self.port.number.val();
        self.retire.bus.next = self.desc.bus.val();
        self.retire.length.next = bit_cast::<20, 19>(self.port.awaited.val());
        self.retire.cause.next = self.fetch.cause.val();
        self.retire.partial.next = self.fetch.partial.val();
        self.retire.operation.next = self.desc.operation.val();
        if self.fetch.blind.val() {
            self.retire.operation.next = bit_cast::<2, 1>(self.port.was_write.val().into());
        }
        self.retire.unreliable.next = self.port.unreliable.val();
        self.retire.answer.next = self.fetch.is_answer.val();
        // The three never retire in the same cycle: the first stage ends a descriptor only while
        // the middle one is empty, and a push has the pool only while both are (`pool_arbiter`).
        if self.push.owns.val() {
            self.retire.vi.next = self.push.call_vi.val();
            self.retire.bus.next = self.push.retire_bus.val();
            self.retire.length.next = bit_cast::<20, 13>(self.push.length.val());
            self.retire.cause.next = self.cause_done.val();
            if !self.push.reached_now.val() {
                self.retire.cause.next = self.cause_descriptor.val();
            }
            self.retire.partial.next = false;
            self.retire.operation.next = 0.into();
            self.retire.unreliable.next = self.push.unreliable.val();
            self.retire.answer.next = false;
        }
        if self.commit.hands.val() {
            self.retire.vi.next = self.commit.frame_vi.val();
            self.retire.bus.next = self.commit.retire_bus.val();
            self.retire.length.next = self.commit.retire_length.val();
            self.retire.cause.next = self.commit.cause.val();
            self.retire.partial.next = self.commit.partial.val();
            self.retire.operation.next = self.commit.retire_operation.val();
            self.retire.unreliable.next = self.commit.retire_unreliable.val();
            self.retire.answer.next = self.commit.retire_answer.val();
        }
        self.commit.retire_idle.next = self.retire.idle.val();
        self.fetch.retire_idle.next = self.retire.idle.val();
        self.fetch.retire_error.next = self.retire.error.val();
        self.port.retire_valid.next = self.retire.call_valid.val();
        self.port.retire_op.next = self.retire.call_op.val();
        self.port.retire_vi.next = self.retire.call_vi.val();
        self.port.reason.next = self.retire.reason.val();
        self.port.retire_recv.next = self.retire.blames_recv.val();
        self.port.stop_status.next = self.retire.stop_status.val();
        self.retire.call_done.next = self.port.retire_done.val();

        // Pushes.
        self.push.pause.next = self.fence.pause.val();
        self.push.valid.next = self.vi.push_valid.val();
        self.push.inline.next = self.vi.push_inline.val();
        self.push.slot.next = self.vi.push_slot.val();
        self.push.vi.next = self.vi.push_vi.val();
        self.push.token.next = self.vi.push_token.val();
        self.push.domain.next = self.vi.ctx_domain.val();
        self.push.tag.next = self.vi.ctx_tag.val();
        self.push.level.next = self.vi.ctx_reliability.val();
        self.push.peer.next = self.vi.ctx_peer.val();
        self.push.max_transfer.next = self.vi.ctx_max_transfer.val();
        self.push.ctx_state.next = self.vi.ctx_state.val();
        self.push.ctx_peer_vi.next = self.vi.ctx_peer_vi.val();
        self.push.ctx_connection.next = self.vi.ctx_connection.val();
        self.push.ctx_message.next = self.vi.ctx_message.val();
        self.port.push_valid.next = self.push.call_valid.val();
        self.port.push_back.next = self.push.call_back.val();
        self.port.push_go.next = self.push.call_go.val();
        self.port.push_vi.next = self.push.call_vi.val();
        self.port.push_token.next = self.push.call_token.val();
        self.port.push_length.next = self.push.length.val();
        self.port.push_ready.next = self.push.ready.val();
        self.port.push_open.next = !self.fence.pause.val();
        self.port.holding.next = self.fetch.holding.val();
        self.push.call_done.next = self.port.push_done.val();
        self.push.retire_idle.next = self.retire.idle.val();
        self.pool_arbiter.fetch_asks.next = self.fetch.ask_valid.val();
        self.pool_arbiter.fetch_engaged.next = self.fetch.engaged.val();
        self.pool_arbiter.fetch_idle.next = self.fetch.idle.val();
        self.pool_arbiter.message_valid.next = self.outlet.message_valid.val();
        self.pool_arbiter.message_busy.next = self.outlet.message_busy.val();
        self.pool_arbiter.commit_idle.next = self.commit.idle.val();
        self.pool_arbiter.retire_error.next = self.retire.error.val();
        self.pool_arbiter.push_wants.next = self.push.wants.val();
        self.pool_arbiter.push_owns.next = self.push.owns.val();
        self.pool_arbiter.ask_done.next = self.outlet.ask_done.val();
        self.push.send_slot.next = self.pool_arbiter.send_slot.val();
        self.push.chain.next = self.pool_arbiter.chain.val();

        // The pool.
        self.outlet.ask_valid.next = self.pool_arbiter.asks.val() | self.push.ask_valid.val();
        self.outlet.ask_data.next = self.fetch.is_data.val() | self.fetch.is_answer.val();
        self.outlet.ask_sequenced.next = self.fetch.sequenced.val();
        self.outlet.ask_peer.next = self.port.peer.val();
        self.outlet.ask_length.next = self.frame_length.val();
        self.outlet.ask_probe.next = self.fetch.probes.val();
        self.no_credit.answered.next =
            self.outlet.ask_done.val() & self.pool_arbiter.asked.val() & self.fetch.is_data.val();
        self.no_credit.good.next = self.outlet.ask_ok.val() & (!self.outlet.ask_down.val());
        self.no_credit.peer.next = self.port.peer.val();
        self.no_credit.asked_sequenced.next = self.fetch.sequenced.val();
        self.no_credit.asked_length.next = self.frame_length.val();
        self.fetch.any_refused.next = self.no_credit.any.val();
        self.fetch.refused.next = self.no_credit.noted.val();
        if self.fetch.probes.val() {
            self.outlet.ask_sequenced.next = self.no_credit.sequenced.val();
            self.outlet.ask_length.next = self.no_credit.length.val();
            // What was asked for stays.
            self.no_credit.asked_sequenced.next = self.no_credit.sequenced.val();
            self.no_credit.asked_length.next = self.no_credit.length.val();
        }
        if self.push.owns.val() {
            self.outlet.ask_probe.next = false;
            self.outlet.ask_data.next = true;
            self.outlet.ask_sequenced.next = self.push.sequenced.val();
            self.outlet.ask_peer.next = self.push.to_peer.val();
            self.outlet.ask_length.next = self.push.length.val();
        }
        self.push.ask_done.next = self.outlet.ask_done.val();
        self.push.ask_ok.next = self.outlet.ask_ok.val();
        self.push.ask_down.next = self.outlet.ask_down.val();
        self.push.beat_ready.next = self.outlet.beat_ready.val();
        self.push.commit_done.next = self.outlet.commit_done.val();
        self.fetch.ask_done.next = self.outlet.ask_done.val() & self.pool_arbiter.asked.val();
        self.fetch.ask_ok.next = self.outlet.ask_ok.val();
        self.fetch.ask_down.next = self.outlet.ask_down.val();
        self.outlet.beat_valid.next = self.commit.beat_valid.val() | self.push.beat_valid.val();
        self.outlet.beat_data.next = self.commit.beat_data.val();
        self.commit.beat_ready.next = self.outlet.beat_ready.val();
        self.outlet.commit_valid.next =
            self.commit.commit_valid.val() | self.push.commit_valid.val();
        self.outlet.commit_abort.next = self.commit.commit_abort.val();
        self.commit.commit_done.next = self.outlet.commit_done.val();
        self.outlet.kind.next = self.commit.frame_kind.val();
        self.outlet.dst_vi.next = self.commit.frame_peer_vi.val();
        self.outlet.src_vi.next = self.commit.frame_vi.val();
        self.outlet.connection.next = self.commit.frame_connection.val();
        self.outlet.flags.next = self.commit.frame_flags.val();
        self.outlet.unsequenced.next = self.commit.frame_unsequenced.val();
        self.outlet.word.next = self.commit.frame_word.val();
        if self.push.owns.val() {
            self.outlet.beat_data.next = self.push.beat_data.val();
            self.outlet.commit_abort.next = self.push.commit_abort.val();
            self.outlet.kind.next = self.kind_data.val();
            self.outlet.dst_vi.next = self.push.peer_vi.val();
            self.outlet.src_vi.next = self.push.call_vi.val();
            self.outlet.connection.next = self.push.connection.val();
            self.outlet.flags.next = self.push.flags.val();
            self.outlet.unsequenced.next = self.push.unsequenced.val();
            self.outlet.word.next = self.push.word.val();
        }
        if self.reset.val() {
            self.pausing.d.next = false;
            self.counts_out.d.next = 0.into();
        }
    }
}
