//! VIs: the one owner of all VI state (contract 2, 4.1, 4.3, 6, 10.1).
//!
//! ```text
//! post --> Doorbells --.                       .--> Lifecycle (state, owed, stop, configuration)
//! send ----------------+                       +--> Work: WorkQueue x 2, Send/RecvProgress, Unannounced x 2
//! recv ----------------+--> Pipeline --stage 2-+--> ReadyRing ---> work_vi
//! admin --> Commands --+ slow                  '--> Announcer ---> events
//! kill ----------------+ slow
//! Announcer, ReadyRing-' slow
//! ```
//! Every operation reads all of a VI's state, one cycle later registers it, and in the cycle after
//! that (`at_*`) does its work: results, `done`, write-back. This kernel decodes the operation and
//! qualifies it by the VI's state; what the operations do to the state stands in the sub-blocks.
//! Arguments of calls are stable until `done` and are not copied.

mod announce;
mod command;
mod doorbell;
mod lifecycle;
mod pipeline;
mod progress;
mod queue;
mod ring;
mod work;

use crate::ifs::{
    DrainServer, EventClient, KillServer, PostServer, ViAdminServer, ViRecvServer, ViSendServer,
};
use crate::leaf::Number;
use announce::Announcer;
use command::Commands;
use doorbell::Doorbells;
use lifecycle::Lifecycle;
use nic_regs::counter::Counter;
use nic_regs::desc::status;
use nic_regs::limits::VI_COUNT;
use nic_regs::vi::StopReason;
use pipeline::Pipeline;
use ring::ReadyRing;
use rust_hdl::prelude::*;
use work::Work;

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
    pub admin: ViAdminServer,
    pub kill: KillServer,
    pub drain: DrainServer,
    pub events: EventClient,
    pipeline: Pipeline,
    doorbells: Doorbells,
    commands: Commands,
    lifecycle: Lifecycle,
    work: Work,
    announcer: Announcer,
    ring: ReadyRing,
    /// Bit 10: the state RAM is clear.
    clear_at: DFF<Bits<11>>,
    kill_at: DFF<Bits<11>>,
    /// Announcements to be made before the kill is over.
    kill_ends: DFF<Bit>,
    kill_wait: DFF<Bits<6>>,
    error_queue_now: DFF<Bits<16>>,
    error_valid_now: DFF<Bit>,
    counts_out: DFF<Bits<64>>,
    // Stage 2: who, and which VI in which state.
    at: Signal<Local, Bits<7>>,
    at_send: Signal<Local, Bit>,
    at_recv: Signal<Local, Bit>,
    at_kill: Signal<Local, Bit>,
    at_announce: Signal<Local, Bit>,
    at_ring: Signal<Local, Bit>,
    known: Signal<Local, Bit>,
    vi: Signal<Local, Bits<10>>,
    /// Operations of the engines, one-hot by number.
    send_op: Signal<Local, Bits<8>>,
    recv_op: Signal<Local, Bits<8>>,
    state: Signal<Local, Bits<2>>,
    is_connected: Signal<Local, Bit>,
    is_live: Signal<Local, Bit>,
    config_word: Signal<Local, Bits<62>>,
    connection_word: Signal<Local, Bits<38>>,
    stop_info: Signal<Local, Bits<45>>,
    domain8: Signal<Local, Bits<8>>,
    peer8: Signal<Local, Bits<8>>,
    queue_of_send: Signal<Local, Bits<9>>,
    queue_of_recv: Signal<Local, Bits<9>>,
    room: Signal<Local, Bit>,
    post_send: Signal<Local, Bit>,
    send_announce: Signal<Local, Bit>,
    recv_announce: Signal<Local, Bit>,
    acknowledge: Signal<Local, Bit>,
    clear: Signal<Local, Bit>,
    stop: Signal<Local, Bit>,
    refuse: Signal<Local, Bit>,
    look_again: Signal<Local, Bit>,
    has_work: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    back: Signal<Local, Bit>,
    kind: Signal<Local, Bits<3>>,
    errors: Signal<Local, Bit>,
    completions: Signal<Local, Bit>,
    drain_errors: Signal<Local, Bit>,
    unmatched: Signal<Local, Bit>,
    drain_queue: Signal<Local, Bits<16>>,
    new_send_queue: Signal<Local, Bits<9>>,
    new_recv_queue: Signal<Local, Bits<9>>,
    shown_token: Signal<Local, Bits<42>>,
    /// Shifted left by a number: one-hot.
    one: Number<8, 1>,
    one_kind: Number<3, 1>,
    reason_peer_down: Number<8, { StopReason::PeerDown as u64 }>,
    status_peer_down: Number<20, { status::TRANSPORT_ERROR as u64 }>,
    last_vi: Number<10, { VI_COUNT as u64 - 1 }>,
}

impl Logic for Vi {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, clear_at, kill_at, kill_ends, kill_wait);
        dff_setup!(self, clock, error_queue_now, error_valid_now, counts_out);
        clock!(self, clock, pipeline, doorbells, commands, lifecycle, work, announcer, ring);
        PostServer::link(&mut self.post, &mut self.doorbells.post);
        ViAdminServer::link(&mut self.admin, &mut self.commands.admin);
        self.pipeline.reset.next = self.reset.val();
        self.doorbells.reset.next = self.reset.val();
        self.commands.reset.next = self.reset.val();
        self.announcer.reset.next = self.reset.val();
        self.ring.reset.next = self.reset.val();
        self.ready.next = self.clear_at.q.val().get_bit(10);
        self.pipeline.ready.next = self.clear_at.q.val().get_bit(10);
        self.counts.next = self.counts_out.q.val();
        self.error_valid.next = self.doorbells.error_valid.val();
        self.error_record.next = self.doorbells.error_record.val();
        self.stamp_doorbell.next = self.doorbells.stamp.val();
        self.doorbells.sample_vi.next = self.sample_vi.val();
        self.doorbells.sample_armed.next = self.sample_armed.val();

        // Requests.
        self.room.next = self.announcer.room.val();
        self.pipeline.request.next = bit_cast::<3, 1>(self.doorbells.request.val().into())
            | (bit_cast::<3, 1>((self.send.valid.val() & self.room.val()).into()) << 1)
            | (bit_cast::<3, 1>((self.recv.valid.val() & self.room.val()).into()) << 2);
        self.pipeline.post_vi.next = self.doorbells.vi.val();
        self.pipeline.send_vi.next = self.send.vi.val().get_bits::<10>(0);
        self.pipeline.recv_vi.next = self.recv.vi.val().get_bits::<10>(0);
        self.pipeline.slow_request.next = bit_cast::<4, 1>(self.commands.request.val().into())
            | (bit_cast::<4, 1>(
                (self.kill.valid.val() & (!self.kill_at.q.val().get_bit(10)) & self.room.val())
                    .into(),
            ) << 1)
            | (bit_cast::<4, 1>(self.announcer.request.val().into()) << 2)
            | (bit_cast::<4, 1>(self.ring.request.val().into()) << 3);
        self.pipeline.admin_vi.next = self.commands.vi.val();
        self.pipeline.kill_vi.next = self.kill_at.q.val().get_bits::<10>(0);
        self.pipeline.announce_vi.next = self.announcer.request_vi.val();
        self.pipeline.announce_op.next = self.announcer.op.val();
        self.pipeline.ring_vi.next = self.ring.head.val();
        self.commands.loaded.next = self.pipeline.loaded.val().get_bit(0);
        if self.pipeline.loaded.val().get_bit(1) {
            self.kill_at.d.next = self.kill_at.q.val() + 1;
        }
        self.announcer.loaded.next = self.pipeline.loaded.val().get_bit(2);
        self.ring.started.next = self.pipeline.loaded.val().get_bit(3);
        self.commands.waiting.next = self.announcer.waiting.val();
        self.commands.served.next = self.announcer.served.val();
        self.commands.announcing.next = self.announcer.active.val();
        self.commands.announcing_vi.next = self.announcer.vi.val();

        // Stage 2: who, and which VI in which state.
        self.at.next = self.pipeline.at.val();
        self.doorbells.at.next = self.pipeline.at.val().get_bit(0);
        self.at_send.next = self.at.val().get_bit(1);
        self.at_recv.next = self.at.val().get_bit(2);
        self.commands.at.next = self.pipeline.at.val().get_bit(3);
        self.at_kill.next = self.at.val().get_bit(4);
        self.at_announce.next = self.at.val().get_bit(5);
        self.at_ring.next = self.at.val().get_bit(6);
        self.vi.next = self.pipeline.vi.val();
        self.known.next = true;
        if self.at.val().get_bit(0) {
            self.known.next = self.doorbells.known.val();
        } else if self.at_recv.val() {
            self.known.next = !self.recv.vi.val().get_bits::<6>(10).any();
        }
        self.send_op.next = 0.into();
        self.recv_op.next = 0.into();
        if self.at_send.val() {
            self.send_op.next = self.one.val() << self.send.op.val();
        }
        if self.at_recv.val() & self.known.val() {
            self.recv_op.next = self.one.val() << self.recv.op.val();
        }
        self.state.next = self.lifecycle.state.val();
        self.is_connected.next = self.state.val().get_bit(1) & (!self.state.val().get_bit(0));
        self.is_live.next = self.state.val().get_bit(1);
        self.config_word.next = self.lifecycle.config_word.val();
        self.connection_word.next = self.lifecycle.connection_word.val();
        self.stop_info.next = self.lifecycle.stop_info.val();
        self.domain8.next = bit_cast::<8, 6>(self.config_word.val().get_bits::<6>(0));
        self.peer8.next = bit_cast::<8, 6>(self.connection_word.val().get_bits::<6>(0));
        self.queue_of_send.next = self.config_word.val().get_bits::<9>(25);
        self.queue_of_recv.next = self.config_word.val().get_bits::<9>(34);
        self.doorbells.state.next = self.lifecycle.state.val();
        self.doorbells.domain.next = self.domain8.val();
        self.commands.state.next = self.lifecycle.state.val();
        self.commands.owing.next = self.lifecycle.owed.val().any();
        self.commands.stop_reason.next = self.stop_info.val().get_bits::<8>(8);
        self.commands.sending.next =
            self.work.in_progress.val().get_bit(0) | self.work.awaiting.val();
        self.commands.receiving.next = self.work.in_progress.val().get_bit(1);

        // What the operation is, qualified by the state.
        self.post_send.next = self.doorbells.taken.val() & (!self.doorbells.recv.val());
        self.send_announce.next = self.send_op.val().get_bit(4)
            & self.is_live.val()
            & (!self.queue_of_send.val().get_bit(8));
        self.recv_announce.next = self.recv_op.val().get_bit(4)
            & self.is_live.val()
            & (!self.queue_of_recv.val().get_bit(8));
        self.acknowledge.next = self.recv_op.val().get_bit(6) & self.is_connected.val();
        self.unmatched.next = self.recv_op.val().get_bit(6)
            & (!(self.is_connected.val() & self.work.awaiting.val() & (!self.work.acked.val())));
        self.clear.next = self.commands.create.val() | self.commands.disconnect.val();
        self.stop.next = self.is_connected.val()
            & (self.send_op.val().get_bit(5)
                | self.recv_op.val().get_bit(5)
                | (self.at_kill.val() & (self.peer8.val() == self.kill.peer.val())));
        // Reliability bit 0: Unreliable.
        self.refuse.next = self.stop.val()
            & ((self.at_send.val() & self.send.refuse.val())
                | (self.at_recv.val() & self.recv.refuse.val()))
            & (!self.config_word.val().get_bit(6));
        self.take.next = self.at_announce.val() & (!self.pipeline.op.val().any());
        self.back.next = self.at_announce.val() & self.pipeline.op.val().get_bit(0);
        self.kind.next = self.one_kind.val() << self.announcer.kind.val();

        // State.
        self.lifecycle.read_address.next = self.pipeline.read_address.val();
        self.lifecycle.write_address.next = self.pipeline.vi.val();
        self.lifecycle.wipe.next = !self.clear_at.q.val().get_bit(10);
        if !self.clear_at.q.val().get_bit(10) {
            self.lifecycle.write_address.next = self.clear_at.q.val().get_bits::<10>(0);
            self.clear_at.d.next = self.clear_at.q.val() + 1;
        }
        self.lifecycle.write.next = self.at.val().any() & self.known.val();
        self.lifecycle.create.next = self.commands.create.val();
        self.lifecycle.destroy.next = self.commands.destroy.val();
        self.lifecycle.connect.next = self.commands.connect.val();
        self.lifecycle.disconnect.next = self.commands.disconnect.val();
        self.lifecycle.stop.next = self.stop.val();
        self.lifecycle.refuse.next = self.refuse.val();
        self.lifecycle.owe_ack.next =
            self.recv_op.val().get_bit(4) & self.recv.owe_ack.val() & self.is_live.val();
        self.lifecycle.sent.next = 0.into();
        if self.send_op.val().get_bit(6) {
            self.lifecycle.sent.next = self.send.owed.val();
        }
        self.lifecycle.error_take.next = self.take.val() & self.kind.val().get_bit(2);
        self.lifecycle.error_back.next = self.back.val() & self.kind.val().get_bit(2);
        self.lifecycle.schedule.next = self.ring.entered.val();
        self.lifecycle.unschedule.next = self.at_ring.val();
        self.lifecycle.stop_reason.next = self.reason_peer_down.val();
        self.lifecycle.stop_detail.next = 0.into();
        self.lifecycle.stop_status.next = self.status_peer_down.val();
        self.lifecycle.stop_queue.next = false;
        if self.at_send.val() {
            self.lifecycle.stop_reason.next = self.send.reason.val();
            self.lifecycle.stop_status.next = self.send.status.val().get_bits::<20>(0);
            self.lifecycle.stop_queue.next = self.send.queue.val();
        } else if self.at_recv.val() {
            self.lifecycle.stop_reason.next = self.recv.reason.val();
            self.lifecycle.stop_detail.next = self.recv.detail.val();
            self.lifecycle.stop_status.next = self.recv.status.val().get_bits::<20>(0);
            self.lifecycle.stop_queue.next = self.recv.queue.val();
        }
        self.new_send_queue.next = bit_cast::<9, 8>(self.admin.send_queue.val().get_bits::<8>(0))
            | (bit_cast::<9, 1>(self.admin.send_queue.val().get_bits::<8>(8).any().into()) << 8);
        self.new_recv_queue.next = bit_cast::<9, 8>(self.admin.recv_queue.val().get_bits::<8>(0))
            | (bit_cast::<9, 1>(self.admin.recv_queue.val().get_bits::<8>(8).any().into()) << 8);
        self.lifecycle.new_config.next =
            bit_cast::<62, 6>(self.admin.domain.val().get_bits::<6>(0))
                | (bit_cast::<62, 3>(self.admin.reliability.val()) << 6)
                | (bit_cast::<62, 16>(self.admin.tag.val()) << 9)
                | (bit_cast::<62, 9>(self.new_send_queue.val()) << 25)
                | (bit_cast::<62, 9>(self.new_recv_queue.val()) << 34)
                | (bit_cast::<62, 19>(self.admin.max_transfer.val().get_bits::<19>(0)) << 43);
        self.lifecycle.new_connection.next =
            bit_cast::<38, 6>(self.admin.peer.val().get_bits::<6>(0))
                | (bit_cast::<38, 16>(self.admin.peer_vi.val()) << 6)
                | (bit_cast::<38, 16>(self.admin.connection.val()) << 22);

        // Queues and progress.
        self.work.read_address.next = self.pipeline.read_address.val();
        self.work.write_address.next = self.pipeline.vi.val();
        self.work.clear.next = self.clear.val();
        self.work.restart.next = self.clear.val() | self.commands.connect.val();
        self.work.post_send.next = self.post_send.val();
        self.work.post_recv.next = self.doorbells.taken.val() & self.doorbells.recv.val();
        self.work.token.next = self.doorbells.token.val();
        self.work.send_op.next = self.send_op.val();
        self.work.send_in_progress.next = self.send.in_progress.val();
        self.work.send_offset.next = self.send.offset.val();
        self.work.send_fragment.next = self.send.fragment.val();
        self.work.send_next_valid.next = self.send.next_valid.val();
        self.work.send_next.next = bit_cast::<42, 16>(self.send.next_region.val())
            | (bit_cast::<42, 26>(self.send.next_offset.val()) << 16);
        self.work.recv_op.next = self.recv_op.val();
        self.work.recv_in_progress.next = self.recv.in_progress.val();
        self.work.recv_offset.next = self.recv.offset.val();
        self.work.recv_total.next = self.recv.total.val();
        self.work.recv_message.next = self.recv.message.val();
        self.work.recv_fragment.next = self.recv.fragment.val();
        self.work.recv_next_valid.next = self.recv.next_valid.val();
        self.work.recv_next.next = bit_cast::<42, 16>(self.recv.next_region.val())
            | (bit_cast::<42, 26>(self.recv.next_offset.val()) << 16);
        self.work.acknowledge.next = self.acknowledge.val();
        self.work.raise.next = bit_cast::<2, 1>(self.send_announce.val().into())
            | (bit_cast::<2, 1>(self.recv_announce.val().into()) << 1);
        self.work.take.next = 0.into();
        self.work.back.next = 0.into();
        if self.take.val() {
            self.work.take.next = self.kind.val().get_bits::<2>(0);
        }
        if self.back.val() {
            self.work.back.next = self.kind.val().get_bits::<2>(0);
        }
        self.work.amount.next = self.announcer.amount.val();

        // Announcements.
        self.announcer.push.next =
            self.send_announce.val() | self.recv_announce.val() | self.stop.val();
        self.announcer.push_vi.next = self.pipeline.vi.val();
        self.announcer.push_kind.next = 0.into();
        if self.stop.val() {
            self.announcer.push_kind.next = 2.into();
        } else if self.recv_announce.val() {
            self.announcer.push_kind.next = 1.into();
        }
        self.announcer.at.next = self.at_announce.val();
        self.announcer.at_op.next = self.pipeline.op.val();
        self.announcer.at_vi.next = self.pipeline.vi.val();
        self.errors.next = self.lifecycle.error_pending.val() & self.error_queue_valid.val();
        self.announcer.some.next = self.work.unannounced.val().get_bit(0);
        self.announcer.queue.next = bit_cast::<16, 8>(self.queue_of_send.val().get_bits::<8>(0));
        self.announcer.word1.next = self.work.send_amount.val();
        self.announcer.word2.next = 0.into();
        if self.kind.val().get_bit(1) {
            self.announcer.some.next = self.work.unannounced.val().get_bit(1);
            self.announcer.queue.next =
                bit_cast::<16, 8>(self.queue_of_recv.val().get_bits::<8>(0));
            self.announcer.word1.next = self.work.recv_amount.val();
        } else if self.kind.val().get_bit(2) {
            self.announcer.some.next = self.errors.val();
            self.announcer.queue.next = self.error_queue.val();
            self.announcer.word1.next = bit_cast::<32, 17>(self.stop_info.val().get_bits::<17>(8));
            self.announcer.word2.next = bit_cast::<32, 20>(self.stop_info.val().get_bits::<20>(25));
        }
        // A drain is for completions, or, with bit 15, for ViErrors; the scan after a write of
        // ERROR_QUEUE is for all pending ViErrors.
        self.drain_queue.next = self.drain.queue.val();
        self.completions.next =
            (!self.announcer.rescanning.val()) & (!self.drain_queue.val().get_bit(15));
        self.drain_errors.next = self.errors.val()
            & self.drain_queue.val().get_bit(15)
            & (self.error_queue.val().get_bits::<8>(0) == self.drain_queue.val().get_bits::<8>(0))
            & (!self.error_queue.val().get_bits::<8>(8).any());
        self.announcer.deferred.next = bit_cast::<3, 1>(
            (self.completions.val()
                & self.work.unannounced.val().get_bit(0)
                & (self.queue_of_send.val().get_bits::<8>(0)
                    == self.drain_queue.val().get_bits::<8>(0)))
            .into(),
        ) | (bit_cast::<3, 1>(
            (self.completions.val()
                & self.work.unannounced.val().get_bit(1)
                & (self.queue_of_recv.val().get_bits::<8>(0)
                    == self.drain_queue.val().get_bits::<8>(0)))
            .into(),
        ) << 1)
            | (bit_cast::<3, 1>(
                ((self.announcer.rescanning.val() & self.lifecycle.error_pending.val())
                    | ((!self.announcer.rescanning.val()) & self.drain_errors.val()))
                .into(),
            ) << 2);
        self.error_queue_now.d.next = self.error_queue.val();
        self.error_valid_now.d.next = self.error_queue_valid.val();
        self.announcer.rescan.next = (self.error_queue_now.q.val() != self.error_queue.val())
            | (self.error_valid_now.q.val() != self.error_queue_valid.val());
        self.announcer.drain_valid.next = self.drain.valid.val();
        self.drain.done.next = self.announcer.drain_done.val();
        self.events.valid.next = self.announcer.event_valid.val();
        self.events.queue.next = self.announcer.event_queue.val();
        self.events.word0.next = self.announcer.event_word0.val();
        self.events.word1.next = self.announcer.event_word1.val();
        self.events.word2.next = self.announcer.event_word2.val();
        self.events.wide.next = false;
        self.events.message_data.next = 0.into();
        self.announcer.event_done.next = self.events.done.val();
        self.announcer.event_full.next = self.events.outcome.val().get_bit(0);

        // Ready ring.
        self.has_work.next = self.lifecycle.owing_after.val()
            | (self.lifecycle.connected_after.val() & self.work.can_send.val());
        self.look_again.next = self.post_send.val()
            | self.commands.connect.val()
            | self.commands.disconnect.val()
            | self.stop.val()
            | self.recv_op.val().get_bit(4)
            | self.acknowledge.val()
            | self.send_op.val().get_bit(1)
            | self.send_op.val().get_bit(3)
            | self.send_op.val().get_bit(4)
            | self.send_op.val().get_bit(6);
        self.ring.push.next =
            self.look_again.val() & self.has_work.val() & (!self.lifecycle.scheduled.val());
        self.ring.vi.next = self.pipeline.vi.val();
        self.ring.finished.next = self.at_ring.val();
        self.ring.offer.next = self.has_work.val();
        self.ring.work_ready.next = self.send.work_ready.val();
        self.send.work_valid.next = self.ring.work_valid.val();
        self.send.work_vi.next = bit_cast::<16, 10>(self.ring.work_vi.val());

        // Answers to the send engine.
        self.send.done.next = self.at_send.val();
        self.send.need_next.next = self.work.send_need_next.val();
        self.send.ctx_state.next = self.state.val();
        self.send.ctx_domain.next = self.domain8.val();
        self.send.ctx_tag.next = self.config_word.val().get_bits::<16>(9);
        self.send.ctx_reliability.next = self.config_word.val().get_bits::<3>(6);
        self.send.ctx_peer.next = self.peer8.val();
        self.send.ctx_peer_vi.next = self.connection_word.val().get_bits::<16>(6);
        self.send.ctx_connection.next = self.connection_word.val().get_bits::<16>(22);
        self.send.ctx_max_transfer.next =
            bit_cast::<20, 19>(self.config_word.val().get_bits::<19>(43));
        self.shown_token.next = self.work.send_head.val().get_bits::<42>(0);
        if self.work.awaiting.val() {
            self.shown_token.next = self.work.last_popped.val();
        }
        self.send.ctx_region.next = self.shown_token.val().get_bits::<16>(0);
        self.send.ctx_offset.next = self.shown_token.val().get_bits::<26>(16);
        self.send.ctx_segments.next = self.work.send_head.val().get_bits::<5>(42);
        self.send.ctx_count.next = self.work.send_count.val();
        self.send.ctx_in_progress.next = self.work.in_progress.val().get_bit(0);
        self.send.ctx_progress.next = self.work.offset.val();
        self.send.ctx_message.next = self.work.message.val();
        self.send.ctx_fragment.next = self.work.fragment.val();
        self.send.ctx_awaiting.next = self.work.awaiting.val();
        self.send.ctx_acked.next = self.work.acked.val();
        self.send.ctx_owed.next = self.lifecycle.owed.val();
        self.send.ctx_refuse_reason.next = self.stop_info.val().get_bits::<8>(0);
        // To the receive engine.
        self.recv.done.next = self.at_recv.val();
        self.recv.need_next.next = self.work.recv_need_next.val();
        self.recv.ctx_state.next = self.state.val();
        if !self.known.val() {
            self.recv.ctx_state.next = 0.into();
        }
        self.recv.ctx_domain.next = self.domain8.val();
        self.recv.ctx_tag.next = self.config_word.val().get_bits::<16>(9);
        self.recv.ctx_reliability.next = self.config_word.val().get_bits::<3>(6);
        self.recv.ctx_peer.next = self.peer8.val();
        self.recv.ctx_peer_vi.next = self.connection_word.val().get_bits::<16>(6);
        self.recv.ctx_connection.next = self.connection_word.val().get_bits::<16>(22);
        self.recv.ctx_region.next = self.work.recv_head.val().get_bits::<16>(0);
        self.recv.ctx_offset.next = self.work.recv_head.val().get_bits::<26>(16);
        self.recv.ctx_segments.next = self.work.recv_head.val().get_bits::<5>(42);
        self.recv.ctx_count.next = self.work.recv_count.val();
        self.recv.ctx_in_progress.next = self.work.in_progress.val().get_bit(1);
        self.recv.ctx_progress.next = self.work.recv_progress.val();
        self.recv.ctx_total.next = self.work.total.val();
        self.recv.ctx_message.next = self.work.recv_last_message.val();
        self.recv.ctx_fragment.next = self.work.recv_last_fragment.val();
        // A kill is over when its ViErrors were handed to the event block: PeerDown follows them.
        self.kill.done.next = false;
        if self.at_kill.val() & (self.vi.val() == self.last_vi.val()) {
            self.kill_ends.d.next = true;
            self.kill_wait.d.next = self.announcer.waiting.val() + 1;
        } else if self.kill_ends.q.val() & (!self.kill_wait.q.val().any()) {
            self.kill.done.next = true;
            self.kill_ends.d.next = false;
            self.kill_at.d.next = 0.into();
        } else if self.kill_ends.q.val()
            & (self.announcer.served.val() | (!self.announcer.waiting.val().any()))
        {
            self.kill_wait.d.next = self.kill_wait.q.val() - 1;
        }

        // Counters.
        self.counts_out.d.next = bit_cast::<64, 1>(self.doorbells.taken.val().into())
            | (bit_cast::<64, 1>(self.doorbells.bad.val().into()) << 1)
            | (bit_cast::<64, 1>(self.doorbells.dropped.val().into()) << 2)
            | (bit_cast::<64, 1>(self.stop.val().into()) << 19)
            | (bit_cast::<64, 1>(self.refuse.val().into()) << 20)
            | (bit_cast::<64, 1>(self.unmatched.val().into()) << 21)
            | (bit_cast::<64, 1>(self.announcer.put_off.val().into()) << 25)
            | (bit_cast::<64, 1>(self.send_op.val().get_bit(4).into()) << 27)
            | (bit_cast::<64, 1>(self.recv_op.val().get_bit(4).into()) << 28);

        if self.reset.val() {
            self.clear_at.d.next = 0.into();
            self.kill_at.d.next = 0.into();
            self.kill_ends.d.next = false;
            self.counts_out.d.next = 0.into();
        }
    }
}
