//! VIs: the one owner of all VI state (contract 2, 4.1, 4.3, 6, 10.1).
//!
//! ```text
//! post --> Doorbells --.                       .--> Lifecycle (state, pending, stop, configuration)
//! send ----------------+                       +--> SendSide, RecvSide: WorkQueue, progress, Unannounced
//! recv ----------------+--> Pipeline --stage 2-+--> ReadyRing, Acked ---> work_vi, acked_vi (to send)
//! admin --> Commands --+ slow                  '--> Notices ---> CompletionWriter ---> events
//! kill --> Kills ------+ slow
//! CompletionWriter, ReadyRing-' slow
//! ```
//! Every operation reads all of a VI's state, one cycle later registers it, and in the cycle after
//! that (`at_*`) does its work: results, `done`, write-back. This kernel decodes the operation and
//! qualifies it by the VI's state. Arguments of calls are stable until `done`; `recv`'s are registers.

mod acked;
mod answer;
mod command;
mod completion_writer;
mod doorbell;
mod kill;
mod lifecycle;
mod notice;
mod pipeline;
mod progress;
mod queue;
mod recv;
mod recv_call;
mod ring;
mod send;

use crate::ifs::{
    AskerClient, DrainServer, EventClient, KillServer, PostServer, ViAdminServer, ViCompleteServer,
    ViLookServer, ViRecvClient, ViRecvServer, ViSendServer,
};
use crate::leaf::Number;
use acked::Acked;
use command::Commands;
use completion_writer::CompletionWriter;
use doorbell::Doorbells;
use kill::Kills;
use lifecycle::Lifecycle;
use nic_regs::counter::Counter;
use nic_regs::limits::VI_COUNT;
use notice::Notices;
use pipeline::Pipeline;
use recv::RecvSide;
use recv_call::RecvCall;
use ring::ReadyRing;
use rust_hdl::prelude::*;
use send::SendSide;

const _: () = assert!(VI_COUNT == 1 << 10, "VI numbers have 10 bits");
// `counts` names its bits by number.
const _: () = assert!(
    Counter::DoorbellTokens as u8 == 0
        && Counter::DoorbellBad as u8 == 1
        && Counter::DoorbellDropped as u8 == 2
        && Counter::ViStops as u8 == 19
        && Counter::RefusalsSent as u8 == 20
        && Counter::Unmatched as u8 == 21
        && Counter::EventsDeferred as u8 == 25
        && Counter::SendsCompleted as u8 == 27
        && Counter::RecvsCompleted as u8 == 28
        && Counter::PushesInline as u8 == 38
        && Counter::PushesPlain as u8 == 39
);

#[derive(LogicBlock, Default)]
pub struct Vi {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    pub error_valid: Signal<Out, Bit>,
    pub error_record: Signal<Out, Bits<64>>,
    pub error_queue: Signal<In, Bits<16>>,
    pub error_queue_valid: Signal<In, Bit>,
    pub sample_vi: Signal<In, Bits<16>>,
    pub sample_armed: Signal<In, Bit>,
    pub stamp_doorbell: Signal<Out, Bit>,
    pub post: PostServer,
    pub send: ViSendServer,
    pub recv: ViRecvServer,
    pub complete: ViCompleteServer,
    pub look: ViLookServer,
    pub admin: ViAdminServer,
    pub kill: KillServer,
    pub drain: DrainServer,
    pub events: EventClient,
    pipeline: Pipeline,
    doorbells: Doorbells,
    commands: Commands,
    kills: Kills,
    lifecycle: Lifecycle,
    send_side: SendSide,
    recv_call: RecvCall,
    recv_side: RecvSide,
    notices: Notices,
    writer: CompletionWriter,
    ring: ReadyRing,
    acked: Acked,
    counts_out: DFF<Bits<64>>,
    /// The operation of stage 2 is on a VI that exists, that is Connected.
    known: Signal<Local, Bit>,
    is_connected: Signal<Local, Bit>,
    /// It is, and has nothing to send, await or answer, and nothing posted.
    quiet: DFF<Bit>,
    /// Nor is it in the ready ring.
    unscheduled: DFF<Bit>,
    quiet_now: Signal<Local, Bit>,
    // What the operation is, qualified by that.
    post_send: Signal<Local, Bit>,
    /// A push with data; the engine takes it.
    push_data: Signal<Local, Bit>,
    push_now: Signal<Local, Bit>,
    push_inline: Signal<Local, Bit>,
    acknowledge: Signal<Local, Bit>,
    unmatched: Signal<Local, Bit>,
    clear: Signal<Local, Bit>,
    restart: Signal<Local, Bit>,
    stop: Signal<Local, Bit>,
    refuse: Signal<Local, Bit>,
    kind: Signal<Local, Bits<3>>,
    take: Signal<Local, Bits<3>>,
    back: Signal<Local, Bits<3>>,
    look_again: Signal<Local, Bit>,
    has_work: Signal<Local, Bit>,
    post_works: Signal<Local, Bit>,
    /// Shifted left by a number: one-hot.
    one_kind: Number<3, 1>,
}

impl Logic for Vi {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, counts_out, quiet, unscheduled);
        clock!(
            self, clock, pipeline, doorbells, commands, kills, lifecycle, send_side, recv_call,
            recv_side, notices, writer, ring, acked
        );
        PostServer::link(&mut self.post, &mut self.doorbells.post);
        ViSendServer::link(&mut self.send, &mut self.send_side.port);
        ViRecvServer::link(&mut self.recv, &mut self.recv_call.port);
        ViRecvClient::join(&mut self.recv_call.side, &mut self.recv_side.port);
        ViCompleteServer::link(&mut self.complete, &mut self.recv_side.complete);
        ViLookServer::link(&mut self.look, &mut self.recv_side.look);
        ViAdminServer::link(&mut self.admin, &mut self.commands.admin);
        AskerClient::join(&mut self.recv_side.asker, &mut self.send_side.asker);
        KillServer::link(&mut self.kill, &mut self.kills.port);
        EventClient::link(&mut self.events, &mut self.writer.events);
        DrainServer::link(&mut self.drain, &mut self.writer.drain);
        self.pipeline.reset.next = self.reset.val();
        self.doorbells.reset.next = self.reset.val();
        self.commands.reset.next = self.reset.val();
        self.kills.reset.next = self.reset.val();
        self.lifecycle.reset.next = self.reset.val();
        self.writer.reset.next = self.reset.val();
        self.ring.reset.next = self.reset.val();
        self.acked.reset.next = self.reset.val();
        self.ready.next = self.lifecycle.ready.val();
        self.pipeline.ready.next = self.lifecycle.ready.val();
        self.counts.next = self.counts_out.q.val();
        self.error_valid.next = self.doorbells.error_valid.val();
        self.error_record.next = self.doorbells.error_record.val();
        self.stamp_doorbell.next = self.doorbells.stamp.val();
        self.doorbells.sample_vi.next = self.sample_vi.val();
        self.doorbells.sample_armed.next = self.sample_armed.val();

        // Requests.
        self.pipeline.request.next = bit_cast::<5, 1>(self.doorbells.request.val().into())
            | (bit_cast::<5, 1>((self.send.valid.val() & self.writer.room.val()).into()) << 1)
            | (bit_cast::<5, 1>((self.recv.valid.val() & self.writer.room.val()).into()) << 2)
            | (bit_cast::<5, 1>((self.complete.valid.val() & self.writer.room.val()).into()) << 3)
            | (bit_cast::<5, 1>(self.look.valid.val().into()) << 4);
        self.pipeline.post_vi.next = self.doorbells.vi.val();
        self.pipeline.send_vi.next = self.send.vi.val().get_bits::<10>(0);
        self.pipeline.recv_vi.next = self.recv.vi.val().get_bits::<10>(0);
        self.pipeline.complete_vi.next = self.complete.vi.val();
        self.pipeline.look_vi.next = self.look.vi.val();
        self.pipeline.slow_request.next = bit_cast::<4, 1>(self.commands.request.val().into())
            | (bit_cast::<4, 1>(self.kills.request.val().into()) << 1)
            | (bit_cast::<4, 1>(self.writer.request.val().into()) << 2)
            | (bit_cast::<4, 1>(self.ring.request.val().into()) << 3);
        self.pipeline.admin_vi.next = self.commands.vi.val();
        self.pipeline.kill_vi.next = self.kills.vi.val();
        self.pipeline.report_vi.next = self.writer.request_vi.val();
        self.pipeline.report_op.next = self.writer.op.val();
        self.pipeline.ring_vi.next = self.ring.head.val();
        self.commands.loaded.next = self.pipeline.loaded.val().get_bit(0);
        self.kills.loaded.next = self.pipeline.loaded.val().get_bit(1);
        self.writer.loaded.next = self.pipeline.loaded.val().get_bit(2);
        self.ring.started.next = self.pipeline.loaded.val().get_bit(3);
        self.commands.waiting.next = self.writer.waiting.val();
        self.commands.served.next = self.writer.served.val();
        self.commands.announcing.next = self.writer.active.val();
        self.commands.announcing_vi.next = self.writer.vi.val();
        self.kills.room.next = self.writer.room.val();
        self.kills.waiting.next = self.writer.waiting.val();
        self.kills.served.next = self.writer.served.val();

        // Stage 2: who, and which VI in which state.
        self.doorbells.at.next = self.pipeline.at.val().get_bit(0);
        self.pipeline.send_early.next = self.send_side.needs_nothing.val();
        self.send_side.early.next = self.pipeline.early.val();
        self.send_side.at.next = self.pipeline.at.val().get_bit(1);
        self.send_side.at_early.next = self.pipeline.at_early.val();
        self.commands.settling.next = self.pipeline.has_early.val();
        self.recv_side.at.next = self.pipeline.at.val().get_bit(2);
        self.recv_side.at_complete.next = self.pipeline.at.val().get_bit(3);
        self.recv_side.at_look.next = self.pipeline.at.val().get_bit(4);
        self.commands.at.next = self.pipeline.at.val().get_bit(5);
        self.kills.at.next = self.pipeline.at.val().get_bit(6);
        self.writer.at.next = self.pipeline.at.val().get_bit(7);
        self.ring.finished.next = self.pipeline.at.val().get_bit(8);
        self.known.next = (self.doorbells.known.val() | (!self.pipeline.at.val().get_bit(0)))
            & (!self.recv_side.unknown.val());
        self.is_connected.next =
            self.lifecycle.state.val().get_bit(1) & (!self.lifecycle.state.val().get_bit(0));
        self.doorbells.state.next = self.lifecycle.coming_state.val();
        self.doorbells.domain.next = self.lifecycle.coming_domain.val();
        self.doorbells.full_send.next = self.send_side.coming_full.val();
        self.doorbells.full_recv.next = self.recv_side.coming_full.val();
        // What lets a push go at once is found out in stage 1.
        self.quiet_now.next = self.send_side.coming_idle.val() & self.lifecycle.coming_clear.val();
        self.quiet.d.next = self.quiet_now.val();
        self.unscheduled.d.next = self.quiet_now.val() & (!self.lifecycle.coming_scheduled.val());
        self.commands.state.next = self.lifecycle.state.val();
        self.commands.control_pending.next = self.lifecycle.control_pending.val().any();
        self.commands.stop_reason.next = self.lifecycle.stop_info.val().get_bits::<8>(8);
        self.commands.sending.next = self.send_side.busy.val();
        self.commands.receiving.next = self.recv_side.in_progress.val();
        self.kills.at_vi.next = self.pipeline.vi.val();
        self.kills.peer.next = self.lifecycle.connection_word.val().get_bits::<6>(0);

        // What the operation is, qualified by the state.
        self.post_send.next = self.doorbells.taken.val() & (!self.doorbells.recv.val());
        self.push_data.next = self.pipeline.at.val().get_bit(0)
            & self.doorbells.has_data.val()
            & (!self.doorbells.waits.val());
        self.push_now.next = self.doorbells.has_data.val()
            & self.unscheduled.q.val()
            & (!self.send_side.blocked.val());
        // One that is taken does not wait.
        self.push_inline.next = self.doorbells.may_send.val() & self.push_now.val();
        // Others that are at the VI or in the engine's queue are on their way.
        self.doorbells.soon.next = self.doorbells.has_data.val()
            & self.quiet.q.val()
            & (!self.push_now.val())
            & self.send_side.open.val();
        self.acknowledge.next = self.recv_side.acks.val() & self.is_connected.val();
        self.unmatched.next = self.recv_side.acks.val()
            & (!(self.is_connected.val()
                & self.send_side.awaiting.val()
                & (!self.send_side.acked.val())));
        self.clear.next = self.commands.create.val() | self.commands.disconnect.val();
        self.restart.next = self.clear.val() | self.commands.connect.val();
        self.stop.next = self.is_connected.val()
            & (self.send_side.stops.val() | self.recv_side.stops.val() | self.kills.stops.val());
        // Reliability bit 0: Unreliable.
        self.refuse.next = self.stop.val()
            & (self.send_side.refuses.val() | self.recv_side.refuses.val())
            & (!self.lifecycle.config_word.val().get_bit(6));
        self.kind.next = self.one_kind.val() << self.writer.kind.val();
        self.take.next = 0.into();
        self.back.next = 0.into();
        if self.pipeline.at.val().get_bit(7) & (!self.pipeline.op.val().any()) {
            self.take.next = self.kind.val();
        } else if self.pipeline.at.val().get_bit(7) & self.pipeline.op.val().get_bit(0) {
            self.back.next = self.kind.val();
        }

        // State.
        self.lifecycle.read_address.next = self.pipeline.read_address.val();
        self.lifecycle.write_address.next = self.pipeline.vi.val();
        self.lifecycle.write.next = self.pipeline.at.val().any() & self.known.val();
        self.lifecycle.create.next = self.commands.create.val();
        self.lifecycle.destroy.next = self.commands.destroy.val();
        self.lifecycle.connect.next = self.commands.connect.val();
        self.lifecycle.disconnect.next = self.commands.disconnect.val();
        self.lifecycle.new_config.next = self.commands.new_config.val();
        self.lifecycle.new_connection.next = self.commands.new_connection.val();
        self.lifecycle.stop.next = self.stop.val();
        self.lifecycle.refuse.next = self.refuse.val();
        self.lifecycle.need_ack.next = self.recv_side.needs_ack.val();
        self.lifecycle.sent.next = self.send_side.sent.val();
        self.lifecycle.error_take.next = self.take.val().get_bit(2);
        self.lifecycle.error_back.next = self.back.val().get_bit(2);
        self.lifecycle.schedule.next = self.ring.entered.val() | self.push_inline.val();
        self.lifecycle.unschedule.next = self.pipeline.at.val().get_bit(8)
            | (self.send_side.releases.val() & (!self.ring.entered.val()));
        self.lifecycle.partial.next = self.send_side.partial.val();
        self.lifecycle.stop_word.next = self.kills.stop_word.val();
        if self.pipeline.at.val().get_bit(1) {
            self.lifecycle.stop_word.next = self.send_side.stop_word.val();
        } else if self.pipeline.at.val().get_bit(2) {
            self.lifecycle.stop_word.next = self.recv_side.stop_word.val();
        }

        // Both sides.
        self.send_side.read_address.next = self.pipeline.read_address.val();
        self.send_side.coming_vi.next = self.pipeline.coming_vi.val();
        self.send_side.write_address.next = self.pipeline.vi.val();
        self.send_side.state.next = self.lifecycle.state.val();
        self.send_side.control_pending.next = self.lifecycle.control_pending.val();
        self.send_side.config_word.next = self.lifecycle.config_word.val();
        self.send_side.connection_word.next = self.lifecycle.connection_word.val();
        self.send_side.refuse_reason.next = self.lifecycle.stop_info.val().get_bits::<8>(0);
        self.send_side.clear.next = self.clear.val();
        self.send_side.restart.next = self.restart.val();
        self.send_side.post.next = self.post_send.val() & (!self.push_inline.val());
        self.send_side.push_judged.next = self.push_data.val();
        self.send_side.push_inline.next = self.push_inline.val();
        self.send_side.push_slot.next = self.doorbells.slot.val();
        self.send_side.push_vi.next = self.pipeline.vi.val();
        self.send_side.token.next = self.doorbells.token.val();
        self.send_side.acknowledge.next = self.acknowledge.val();
        self.send_side.forget_answer.next = self.stop.val() | self.restart.val();
        self.send_side.take.next = self.take.val().get_bit(0);
        self.send_side.back.next = self.back.val().get_bit(0);
        self.send_side.amount.next = self.writer.amount.val();
        self.recv_side.read_address.next = self.pipeline.read_address.val();
        self.recv_side.write_address.next = self.pipeline.vi.val();
        self.recv_side.state.next = self.lifecycle.state.val();
        self.recv_side.config_word.next = self.lifecycle.config_word.val();
        self.recv_side.connection_word.next = self.lifecycle.connection_word.val();
        self.recv_side.clear.next = self.clear.val();
        self.recv_side.restart.next = self.restart.val();
        self.recv_side.post.next = self.doorbells.taken_recv.val();
        self.recv_side.token.next = self.doorbells.token.val();
        self.recv_side.take.next = self.take.val().get_bit(1);
        self.recv_side.back.next = self.back.val().get_bit(1);
        self.recv_side.amount.next = self.writer.amount.val();

        // Announcements.
        self.notices.error_queue.next = self.error_queue.val();
        self.notices.error_queue_valid.next = self.error_queue_valid.val();
        self.notices.send_some.next = self.send_side.some.val();
        self.notices.send_count.next = self.send_side.count.val();
        self.notices.send_queue.next = self.send_side.event_queue.val();
        self.notices.recv_some.next = self.recv_side.some.val();
        self.notices.recv_count.next = self.recv_side.count.val();
        self.notices.recv_queue.next = self.recv_side.event_queue.val();
        self.notices.error_pending.next = self.lifecycle.error_pending.val();
        self.notices.stop_info.next = self.lifecycle.stop_info.val();
        self.notices.kind.next = self.kind.val();
        self.notices.drain_queue.next = self.drain.queue.val();
        self.notices.rescanning.next = self.writer.rescanning.val();
        self.writer.some.next = self.notices.some.val();
        self.writer.queue.next = self.notices.queue.val();
        self.writer.word1.next = self.notices.word1.val();
        self.writer.word2.next = self.notices.word2.val();
        self.writer.deferred.next = self.notices.deferred.val();
        self.writer.rescan.next = self.notices.rescan.val();
        self.writer.push.next = bit_cast::<3, 1>(self.send_side.report.val().into())
            | (bit_cast::<3, 1>(self.recv_side.report.val().into()) << 1)
            | (bit_cast::<3, 1>(self.stop.val().into()) << 2);
        self.writer.push_vi.next = self.pipeline.vi.val();
        self.writer.at_op.next = self.pipeline.op.val();
        self.writer.at_vi.next = self.pipeline.vi.val();

        // Ready ring.
        self.has_work.next = self.lifecycle.control_pending_after.val()
            | (self.lifecycle.connected_after.val() & self.send_side.can_send.val());
        // A post comes late, and changes nothing but that something is posted.
        self.post_works.next = self.lifecycle.control_pending.val().any()
            | (self.is_connected.val() & self.send_side.may_send.val());
        self.look_again.next = self.commands.connect.val()
            | self.commands.disconnect.val()
            | self.stop.val()
            | self.recv_side.look_again.val()
            | self.send_side.look_again.val();
        self.ring.push.next = (self.look_again.val()
            & self.has_work.val()
            & ((!self.lifecycle.scheduled.val()) | self.send_side.releases.val()))
            | (self.post_send.val()
                & (!self.push_now.val())
                & self.post_works.val()
                & (!self.lifecycle.scheduled.val()));
        self.ring.vi.next = self.pipeline.vi.val();
        self.ring.offer.next = self.has_work.val();
        self.ring.work_ready.next = self.send_side.work_ready.val();
        self.ring.post.next = self.post_send.val() & self.quiet.q.val();
        self.send_side.work_fresh.next = self.ring.work_fresh.val();
        self.send_side.posting.next = self.pipeline.at.val().get_bit(0);
        self.send_side.work_valid.next = self.ring.work_valid.val();
        self.send_side.work_vi.next = self.ring.work_vi.val();
        self.acked.push.next = self.recv_side.acks.val() & (!self.unmatched.val());
        self.acked.vi.next = self.pipeline.vi.val();
        self.acked.taken.next = self.send_side.acked_ready.val();
        self.send_side.acked_valid.next = self.acked.valid.val();
        self.send_side.acked_vi.next = self.acked.number.val();
        self.send_side.acked_left.next = self.acked.left.val();

        // Counters.
        self.counts_out.d.next = bit_cast::<64, 1>(self.doorbells.taken.val().into())
            | (bit_cast::<64, 1>(self.doorbells.bad.val().into()) << 1)
            | (bit_cast::<64, 1>(self.doorbells.dropped.val().into()) << 2)
            | (bit_cast::<64, 1>(self.stop.val().into()) << 19)
            | (bit_cast::<64, 1>(self.refuse.val().into()) << 20)
            | (bit_cast::<64, 1>(self.unmatched.val().into()) << 21)
            | (bit_cast::<64, 1>(self.writer.put_off.val().into()) << 25)
            | (bit_cast::<64, 1>(self.send_side.completes.val().into()) << 27)
            | (bit_cast::<64, 1>(self.recv_side.completes.val().into()) << 28)
            | (bit_cast::<64, 1>(self.push_inline.val().into()) << 38)
            | (bit_cast::<64, 1>(
                (self.post_send.val() & self.doorbells.push.val() & (!self.push_inline.val()))
                    .into(),
            ) << 39);
        if self.reset.val() {
            self.counts_out.d.next = 0.into();
        }
    }
}
