//! VIs: the one owner of all VI state (contract 2, 4.1, 4.3, 6, 10.1).
//!
//! ```text
//! post  ---> hold --.                      .--> WorkQueue send, receive      (queue)
//! send  ------------+                      +--> Lifecycle                    (lifecycle)
//! recv  ------------+--> Pipeline --stage 2+--> Send/RecvProgress, Unannounced (progress)
//! admin ---.        |   (pipeline)         +--> ReadyRing ---> work_vi       (ring)
//! kill  ---+- slow -'                      '--> Announcer ---> events        (announce)
//! Announcer, ReadyRing '
//! ```
//! Every operation reads all of a VI's state, one cycle later registers it, and in the cycle after that (`at_*`) does its
//! work: results, `done`, write-back. This kernel decodes the operation and qualifies it by the VI's state; what the
//! operations do to the state stands in the sub-blocks. Arguments of calls are stable until `done` and are not copied.

mod announce;
mod lifecycle;
mod pipeline;
mod progress;
mod queue;
mod ring;

use crate::ifs::{
    DrainServer, EventClient, KillServer, PostServer, ViAdminServer, ViRecvServer, ViSendServer,
};
use crate::leaf::Number;
use announce::Announcer;
use lifecycle::Lifecycle;
use nic_regs::admin::AdminStatus;
use nic_regs::counter::ErrorCode;
use nic_regs::desc::status;
use nic_regs::limits::VI_COUNT;
use nic_regs::vi::StopReason;
use pipeline::Pipeline;
use progress::{RecvProgress, SendProgress, Unannounced};
use queue::WorkQueue;
use ring::ReadyRing;
use rust_hdl::prelude::*;

const _: () = assert!(VI_COUNT == 1 << 10, "VI numbers have 10 bits");

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
    lifecycle: Lifecycle,
    send_queue: WorkQueue,
    recv_queue: WorkQueue,
    send_progress: SendProgress,
    recv_progress: RecvProgress,
    send_unannounced: Unannounced,
    recv_unannounced: Unannounced,
    announcer: Announcer,
    ring: ReadyRing,
    /// Bit 10: the state RAM is clear.
    clear_at: DFF<Bits<11>>,
    /// The doorbell in the pipeline.
    held: DFF<Bit>,
    held_token: DFF<Bits<64>>,
    held_domain: DFF<Bits<8>>,
    /// Admin: call seen, entries to be announced before it, operation in the pipeline.
    admin_seen: DFF<Bit>,
    admin_wait: DFF<Bits<6>>,
    admin_busy: DFF<Bit>,
    kill_at: DFF<Bits<11>>,
    counts_out: DFF<Bits<64>>,
    error_out: DFF<Bit>,
    error_record_out: DFF<Bits<64>>,
    stamp_out: DFF<Bit>,
    // Stage 2.
    at: Signal<Local, Bits<7>>,
    at_post: Signal<Local, Bit>,
    at_send: Signal<Local, Bit>,
    at_recv: Signal<Local, Bit>,
    at_admin: Signal<Local, Bit>,
    at_kill: Signal<Local, Bit>,
    at_announce: Signal<Local, Bit>,
    at_ring: Signal<Local, Bit>,
    address: Signal<Local, Bits<10>>,
    write_address: Signal<Local, Bits<10>>,
    vi16: Signal<Local, Bits<16>>,
    known: Signal<Local, Bit>,
    /// Shifted left by an operation's number: one-hot.
    one: Number<8, 1>,
    send_op: Signal<Local, Bits<8>>,
    recv_op: Signal<Local, Bits<8>>,
    admin_op: Signal<Local, Bits<8>>,
    state: Signal<Local, Bits<2>>,
    is_free: Signal<Local, Bit>,
    is_idle: Signal<Local, Bit>,
    is_connected: Signal<Local, Bit>,
    is_error: Signal<Local, Bit>,
    is_live: Signal<Local, Bit>,
    config_word: Signal<Local, Bits<62>>,
    connection_word: Signal<Local, Bits<38>>,
    stop_info: Signal<Local, Bits<45>>,
    domain8: Signal<Local, Bits<8>>,
    peer8: Signal<Local, Bits<8>>,
    queue_of_send: Signal<Local, Bits<9>>,
    queue_of_recv: Signal<Local, Bits<9>>,
    // Doorbells.
    post_owned: Signal<Local, Bit>,
    post_taken: Signal<Local, Bit>,
    post_recv: Signal<Local, Bit>,
    token: Signal<Local, Bits<47>>,
    room: Signal<Local, Bit>,
    // Operations.
    send_pop: Signal<Local, Bit>,
    recv_pop: Signal<Local, Bit>,
    send_complete: Signal<Local, Bit>,
    recv_complete: Signal<Local, Bit>,
    send_announce: Signal<Local, Bit>,
    recv_announce: Signal<Local, Bit>,
    acknowledge: Signal<Local, Bit>,
    create: Signal<Local, Bit>,
    destroy: Signal<Local, Bit>,
    connect: Signal<Local, Bit>,
    disconnect: Signal<Local, Bit>,
    clear_queues: Signal<Local, Bit>,
    kill_match: Signal<Local, Bit>,
    stop: Signal<Local, Bit>,
    refuse: Signal<Local, Bit>,
    sent: Signal<Local, Bits<3>>,
    look_again: Signal<Local, Bit>,
    has_work: Signal<Local, Bit>,
    push_work: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    back: Signal<Local, Bit>,
    take_kind: Signal<Local, Bits<3>>,
    sends: Signal<Local, Bit>,
    recvs: Signal<Local, Bit>,
    errors: Signal<Local, Bit>,
    deferred: Signal<Local, Bits<3>>,
    drain_queue: Signal<Local, Bits<16>>,
    admin_open: Signal<Local, Bit>,
    admin_result: Signal<Local, Bits<32>>,
    query_reason: Signal<Local, Bits<8>>,
    query_sending: Signal<Local, Bit>,
    new_send_queue: Signal<Local, Bits<9>>,
    new_recv_queue: Signal<Local, Bits<9>>,
    popped_token: Signal<Local, Bits<42>>,
    one_hot_kind: Number<3, 1>,
    status_bad_state: Number<4, { AdminStatus::BadState as u64 }>,
    status_busy: Number<4, { AdminStatus::Busy as u64 }>,
    reason_peer_down: Number<8, { StopReason::PeerDown as u64 }>,
    status_peer_down: Number<20, { status::TRANSPORT_ERROR as u64 }>,
    last_vi: Number<10, { VI_COUNT as u64 - 1 }>,
    no_queue: Number<16, 0xffff>,
    bad_doorbell: Number<64, { 1 << 60 | ErrorCode::BadDoorbell as u64 }>,
}

impl Logic for Vi {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, clear_at, held, held_token, held_domain, admin_seen, admin_wait, admin_busy,
            kill_at, counts_out, error_out, error_record_out, stamp_out
        );
        clock!(
            self, clock, pipeline, lifecycle, send_queue, recv_queue, send_progress, recv_progress,
            send_unannounced, recv_unannounced, announcer, ring
        );
        self.pipeline.reset.next = self.reset.val();
        self.announcer.reset.next = self.reset.val();
        self.ring.reset.next = self.reset.val();
        self.ready.next = self.clear_at.q.val().get_bit(10);
        self.pipeline.ready.next = self.clear_at.q.val().get_bit(10);
        self.counts.next = self.counts_out.q.val();
        self.error_valid.next = self.error_out.q.val();
        self.error_record.next = self.error_record_out.q.val();
        self.stamp_doorbell.next = self.stamp_out.q.val();

        // Requests.
        self.room.next = self.announcer.room.val();
        self.pipeline.request.next = bit_cast::<3, 1>(self.held.q.val().into())
            | (bit_cast::<3, 1>((self.send.valid.val() & self.room.val()).into()) << 1)
            | (bit_cast::<3, 1>((self.recv.valid.val() & self.room.val()).into()) << 2);
        self.pipeline.post_vi.next = self.held_token.q.val().get_bits::<10>(0);
        self.pipeline.send_vi.next = self.send.vi.val().get_bits::<10>(0);
        self.pipeline.recv_vi.next = self.recv.vi.val().get_bits::<10>(0);
        self.admin_open.next = self.admin.valid.val()
            & self.admin_seen.q.val()
            & (!self.admin_busy.q.val())
            & (!self.admin_wait.q.val().any())
            & (!(self.announcer.active.val()
                & (self.announcer.vi.val() == self.admin.vi.val().get_bits::<10>(0))));
        self.pipeline.slow_request.next = bit_cast::<4, 1>(self.admin_open.val().into())
            | (bit_cast::<4, 1>(
                (self.kill.valid.val() & (!self.kill_at.q.val().get_bit(10)) & self.room.val())
                    .into(),
            ) << 1)
            | (bit_cast::<4, 1>(self.announcer.request.val().into()) << 2)
            | (bit_cast::<4, 1>(self.ring.request.val().into()) << 3);
        self.pipeline.admin_vi.next = self.admin.vi.val().get_bits::<10>(0);
        self.pipeline.kill_vi.next = self.kill_at.q.val().get_bits::<10>(0);
        self.pipeline.announce_vi.next = self.announcer.request_vi.val();
        self.pipeline.announce_op.next = self.announcer.op.val();
        self.pipeline.ring_vi.next = self.ring.head.val();
        self.announcer.loaded.next = self.pipeline.loaded.val().get_bit(2);
        self.ring.started.next = self.pipeline.loaded.val().get_bit(3);

        // Doorbells are held one at a time.
        self.post.ready.next = (!self.held.q.val()) | self.at_post.val();
        if self.at_post.val() {
            self.held.d.next = false;
        }
        if self.post.valid.val() & ((!self.held.q.val()) | self.at_post.val()) {
            self.held.d.next = true;
            self.held_token.d.next = self.post.token.val();
            self.held_domain.d.next = self.post.domain.val();
        }

        // Admin: entries that wait when its call comes are announced first, so that no announcement is lost to it.
        if self.admin.valid.val() & (!self.admin_seen.q.val()) {
            self.admin_seen.d.next = true;
            self.admin_wait.d.next = self.announcer.waiting.val();
        } else if self.announcer.served.val() & self.admin_wait.q.val().any() {
            self.admin_wait.d.next = self.admin_wait.q.val() - 1;
        }
        if self.pipeline.loaded.val().get_bit(0) {
            self.admin_busy.d.next = true;
        }
        if self.pipeline.loaded.val().get_bit(1) {
            self.kill_at.d.next = self.kill_at.q.val() + 1;
        }

        // Stage 2: who, and which VI in which state.
        self.at.next = self.pipeline.at.val();
        self.at_post.next = self.at.val().get_bit(0);
        self.at_send.next = self.at.val().get_bit(1);
        self.at_recv.next = self.at.val().get_bit(2);
        self.at_admin.next = self.at.val().get_bit(3);
        self.at_kill.next = self.at.val().get_bit(4);
        self.at_announce.next = self.at.val().get_bit(5);
        self.at_ring.next = self.at.val().get_bit(6);
        self.address.next = self.pipeline.read_address.val();
        self.write_address.next = self.pipeline.vi.val();
        if !self.clear_at.q.val().get_bit(10) {
            self.write_address.next = self.clear_at.q.val().get_bits::<10>(0);
            self.clear_at.d.next = self.clear_at.q.val() + 1;
        }
        self.vi16.next = bit_cast::<16, 10>(self.pipeline.vi.val());
        self.known.next = true;
        if self.at_post.val() {
            self.known.next = !self.held_token.q.val().get_bits::<6>(10).any();
        } else if self.at_recv.val() {
            self.known.next = !self.recv.vi.val().get_bits::<6>(10).any();
        }
        self.send_op.next = 0.into();
        self.recv_op.next = 0.into();
        self.admin_op.next = 0.into();
        if self.at_send.val() {
            self.send_op.next = self.one.val() << self.send.op.val();
        }
        if self.at_recv.val() & self.known.val() {
            self.recv_op.next = self.one.val() << self.recv.op.val();
        }
        if self.at_admin.val() {
            self.admin_op.next = self.one.val() << self.admin.op.val();
        }
        self.state.next = self.lifecycle.state.val();
        self.is_free.next = (!self.state.val().get_bit(1)) & (!self.state.val().get_bit(0));
        self.is_idle.next = (!self.state.val().get_bit(1)) & self.state.val().get_bit(0);
        self.is_connected.next = self.state.val().get_bit(1) & (!self.state.val().get_bit(0));
        self.is_error.next = self.state.val().get_bit(1) & self.state.val().get_bit(0);
        self.is_live.next = self.state.val().get_bit(1);
        self.config_word.next = self.lifecycle.config_word.val();
        self.connection_word.next = self.lifecycle.connection_word.val();
        self.stop_info.next = self.lifecycle.stop_info.val();
        self.domain8.next = bit_cast::<8, 6>(self.config_word.val().get_bits::<6>(0));
        self.peer8.next = bit_cast::<8, 6>(self.connection_word.val().get_bits::<6>(0));
        self.queue_of_send.next = self.config_word.val().get_bits::<9>(25);
        self.queue_of_recv.next = self.config_word.val().get_bits::<9>(34);

        // What the operation is, qualified by the state.
        self.post_owned.next = self.at_post.val()
            & self.known.val()
            & (!self.is_free.val())
            & (self.domain8.val() == self.held_domain.q.val());
        self.post_taken.next = self.post_owned.val() & (!self.is_error.val());
        self.post_recv.next = self.held_token.q.val().get_bit(63);
        self.token.next = self.held_token.q.val().get_bits::<47>(16);
        self.send_pop.next = self.send_op.val().get_bit(2);
        self.recv_pop.next = self.recv_op.val().get_bit(2);
        self.send_complete.next = self.send_op.val().get_bit(4);
        self.recv_complete.next = self.recv_op.val().get_bit(4);
        self.send_announce.next = self.send_complete.val()
            & self.is_live.val()
            & (!self.queue_of_send.val().get_bit(8));
        self.recv_announce.next = self.recv_complete.val()
            & self.is_live.val()
            & (!self.queue_of_recv.val().get_bit(8));
        self.acknowledge.next = self.recv_op.val().get_bit(6) & self.is_connected.val();
        self.create.next = self.admin_op.val().get_bit(0) & self.is_free.val();
        self.destroy.next = self.admin_op.val().get_bit(1)
            & self.is_idle.val()
            & (!self.lifecycle.owed.val().any());
        self.connect.next = self.admin_op.val().get_bit(2)
            & self.is_idle.val()
            & (!self.lifecycle.owed.val().any());
        self.disconnect.next = self.admin_op.val().get_bit(3) & (!self.is_free.val());
        self.clear_queues.next = self.create.val() | self.disconnect.val();
        self.kill_match.next = self.at_kill.val() & (self.peer8.val() == self.kill.peer.val());
        self.stop.next = self.is_connected.val()
            & (self.send_op.val().get_bit(5)
                | self.recv_op.val().get_bit(5)
                | self.kill_match.val());
        // Reliability bit 0: Unreliable.
        self.refuse.next = self.stop.val()
            & ((self.at_send.val() & self.send.refuse.val())
                | (self.at_recv.val() & self.recv.refuse.val()))
            & (!self.config_word.val().get_bit(6));
        self.sent.next = 0.into();
        if self.send_op.val().get_bit(6) {
            self.sent.next = self.send.owed.val();
        }
        self.take.next = self.at_announce.val() & (!self.pipeline.op.val().any());
        self.back.next = self.at_announce.val() & self.pipeline.op.val().get_bit(0);
        self.take_kind.next = self.one_hot_kind.val() << self.announcer.kind.val();

        // State.
        self.lifecycle.read_address.next = self.address.val();
        self.lifecycle.write_address.next = self.write_address.val();
        self.lifecycle.wipe.next = !self.clear_at.q.val().get_bit(10);
        self.lifecycle.write.next = self.at.val().any() & self.known.val();
        self.lifecycle.create.next = self.create.val();
        self.lifecycle.destroy.next = self.destroy.val();
        self.lifecycle.connect.next = self.connect.val();
        self.lifecycle.disconnect.next = self.disconnect.val();
        self.lifecycle.stop.next = self.stop.val();
        self.lifecycle.refuse.next = self.refuse.val();
        self.lifecycle.owe_ack.next =
            self.recv_complete.val() & self.recv.owe_ack.val() & self.is_live.val();
        self.lifecycle.sent.next = self.sent.val();
        self.lifecycle.error_take.next = self.take.val() & self.take_kind.val().get_bit(2);
        self.lifecycle.error_back.next = self.back.val() & self.take_kind.val().get_bit(2);
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

        // Queues.
        self.send_queue.read_address.next = self.address.val();
        self.send_queue.write_address.next = self.pipeline.vi.val();
        self.send_queue.post.next = self.post_taken.val() & (!self.post_recv.val());
        self.send_queue.token.next = self.token.val();
        self.send_queue.pop.next = self.send_pop.val();
        self.send_queue.next_valid.next = self.send.next_valid.val();
        self.send_queue.next_token.next = bit_cast::<42, 16>(self.send.next_region.val())
            | (bit_cast::<42, 26>(self.send.next_offset.val()) << 16);
        self.send_queue.clear.next = self.clear_queues.val();
        self.recv_queue.read_address.next = self.address.val();
        self.recv_queue.write_address.next = self.pipeline.vi.val();
        self.recv_queue.post.next = self.post_taken.val() & self.post_recv.val();
        self.recv_queue.token.next = self.token.val();
        self.recv_queue.pop.next = self.recv_pop.val();
        self.recv_queue.next_valid.next = self.recv.next_valid.val();
        self.recv_queue.next_token.next = bit_cast::<42, 16>(self.recv.next_region.val())
            | (bit_cast::<42, 26>(self.recv.next_offset.val()) << 16);
        self.recv_queue.clear.next = self.clear_queues.val();

        // Progress.
        self.send_progress.read_address.next = self.address.val();
        self.send_progress.write_address.next = self.pipeline.vi.val();
        self.send_progress.restart.next = self.clear_queues.val() | self.connect.val();
        self.send_progress.save.next = self.send_op.val().get_bit(1);
        self.send_progress.save_in_progress.next = self.send.in_progress.val();
        self.send_progress.save_offset.next = self.send.offset.val();
        self.send_progress.save_fragment.next = self.send.fragment.val();
        self.send_progress.popped.next = self.send_queue.popped.val();
        self.send_progress.popped_token.next = self.send_queue.head.val().get_bits::<42>(0);
        self.send_progress.await_ack.next = self.send_op.val().get_bit(3);
        self.send_progress.acknowledge.next = self.acknowledge.val();
        // Reliability bit 2: Reception.
        self.send_progress.early.next =
            self.ring.in_hand.val() & self.config_word.val().get_bit(8);
        self.send_progress.complete.next = self.send_complete.val();
        self.recv_progress.read_address.next = self.address.val();
        self.recv_progress.write_address.next = self.pipeline.vi.val();
        self.recv_progress.restart.next = self.clear_queues.val() | self.connect.val();
        self.recv_progress.save.next = self.recv_op.val().get_bit(1);
        self.recv_progress.save_in_progress.next = self.recv.in_progress.val();
        self.recv_progress.save_offset.next = self.recv.offset.val();
        self.recv_progress.save_total.next = self.recv.total.val();
        self.recv_progress.save_message.next = self.recv.message.val();
        self.recv_progress.save_fragment.next = self.recv.fragment.val();
        self.recv_progress.popped.next = self.recv_queue.popped.val();

        // Announcements.
        self.send_unannounced.read_address.next = self.address.val();
        self.send_unannounced.write_address.next = self.pipeline.vi.val();
        self.send_unannounced.clear.next =
            self.clear_queues.val() | (self.take.val() & self.take_kind.val().get_bit(0));
        self.send_unannounced.raise.next = self.send_announce.val();
        self.send_unannounced.back.next = self.back.val() & self.take_kind.val().get_bit(0);
        self.send_unannounced.amount.next = self.announcer.amount.val();
        self.recv_unannounced.read_address.next = self.address.val();
        self.recv_unannounced.write_address.next = self.pipeline.vi.val();
        self.recv_unannounced.clear.next =
            self.clear_queues.val() | (self.take.val() & self.take_kind.val().get_bit(1));
        self.recv_unannounced.raise.next = self.recv_announce.val();
        self.recv_unannounced.back.next = self.back.val() & self.take_kind.val().get_bit(1);
        self.recv_unannounced.amount.next = self.announcer.amount.val();
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
        self.sends.next = self.send_unannounced.some.val();
        self.recvs.next = self.recv_unannounced.some.val();
        self.errors.next = self.lifecycle.error_pending.val() & self.error_queue_valid.val();
        self.announcer.some.next = self.sends.val();
        self.announcer.queue.next = bit_cast::<16, 8>(self.queue_of_send.val().get_bits::<8>(0));
        self.announcer.word1.next = self.send_unannounced.count.val();
        self.announcer.word2.next = 0.into();
        if self.take_kind.val().get_bit(1) {
            self.announcer.some.next = self.recvs.val();
            self.announcer.queue.next =
                bit_cast::<16, 8>(self.queue_of_recv.val().get_bits::<8>(0));
            self.announcer.word1.next = self.recv_unannounced.count.val();
        } else if self.take_kind.val().get_bit(2) {
            self.announcer.some.next = self.errors.val();
            self.announcer.queue.next = self.error_queue.val();
            self.announcer.word1.next = bit_cast::<32, 17>(self.stop_info.val().get_bits::<17>(8));
            self.announcer.word2.next = bit_cast::<32, 20>(self.stop_info.val().get_bits::<20>(25));
        }
        self.drain_queue.next = self.drain.queue.val();
        self.deferred.next = bit_cast::<3, 1>(
            (self.sends.val()
                & (self.queue_of_send.val().get_bits::<8>(0)
                    == self.drain_queue.val().get_bits::<8>(0)))
            .into(),
        ) | (bit_cast::<3, 1>(
            (self.recvs.val()
                & (self.queue_of_recv.val().get_bits::<8>(0)
                    == self.drain_queue.val().get_bits::<8>(0)))
            .into(),
        ) << 1)
            | (bit_cast::<3, 1>(
                (self.errors.val() & (self.error_queue.val() == self.drain_queue.val())).into(),
            ) << 2);
        self.announcer.deferred.next = self.deferred.val();
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
            | (self.lifecycle.connected_after.val()
                & ((self.send_progress.awaiting_after.val()
                    & self.send_progress.acked_after.val())
                    | ((!self.send_progress.awaiting_after.val()) & self.send_queue.left.val())));
        self.look_again.next = (self.post_taken.val() & (!self.post_recv.val()))
            | self.connect.val()
            | self.disconnect.val()
            | self.stop.val()
            | self.recv_complete.val()
            | self.acknowledge.val()
            | self.send_op.val().get_bit(1)
            | self.send_op.val().get_bit(3)
            | self.send_op.val().get_bit(4)
            | self.send_op.val().get_bit(6);
        self.push_work.next =
            self.look_again.val() & self.has_work.val() & (!self.lifecycle.scheduled.val());
        self.ring.push.next = self.push_work.val();
        self.ring.vi.next = self.pipeline.vi.val();
        self.ring.finished.next = self.at_ring.val();
        self.ring.offer.next = self.has_work.val();
        self.ring.work_ready.next = self.send.work_ready.val();
        self.ring.let_go.next = self.send_op.val().get_bit(1)
            | self.send_op.val().get_bit(3)
            | self.send_op.val().get_bit(4)
            | self.send_op.val().get_bit(5);
        self.send.work_valid.next = self.ring.work_valid.val();
        self.send.work_vi.next = bit_cast::<16, 10>(self.ring.work_vi.val());

        // Answers to the send engine.
        self.send.done.next = self.at_send.val();
        self.send.need_next.next = self.send_queue.need_next.val();
        self.send.ctx_state.next = self.state.val();
        self.send.ctx_domain.next = self.domain8.val();
        self.send.ctx_tag.next = self.config_word.val().get_bits::<16>(9);
        self.send.ctx_reliability.next = self.config_word.val().get_bits::<3>(6);
        self.send.ctx_peer.next = self.peer8.val();
        self.send.ctx_peer_vi.next = self.connection_word.val().get_bits::<16>(6);
        self.send.ctx_connection.next = self.connection_word.val().get_bits::<16>(22);
        self.send.ctx_max_transfer.next =
            bit_cast::<20, 19>(self.config_word.val().get_bits::<19>(43));
        self.popped_token.next = self.send_queue.head.val().get_bits::<42>(0);
        if self.send_progress.awaiting.val() {
            self.popped_token.next = self.send_progress.last_popped.val();
        }
        self.send.ctx_region.next = self.popped_token.val().get_bits::<16>(0);
        self.send.ctx_offset.next = self.popped_token.val().get_bits::<26>(16);
        self.send.ctx_segments.next = self.send_queue.head.val().get_bits::<5>(42);
        self.send.ctx_count.next = self.send_queue.count.val();
        self.send.ctx_in_progress.next = self.send_progress.in_progress.val();
        self.send.ctx_progress.next = self.send_progress.offset.val();
        self.send.ctx_message.next = self.send_progress.message.val();
        self.send.ctx_fragment.next = self.send_progress.fragment.val();
        self.send.ctx_awaiting.next = self.send_progress.awaiting.val();
        self.send.ctx_acked.next = self.send_progress.acked.val();
        self.send.ctx_owed.next = self.lifecycle.owed.val();
        self.send.ctx_refuse_reason.next = self.stop_info.val().get_bits::<8>(0);
        // To the receive engine.
        self.recv.done.next = self.at_recv.val();
        self.recv.need_next.next = self.recv_queue.need_next.val();
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
        self.recv.ctx_region.next = self.recv_queue.head.val().get_bits::<16>(0);
        self.recv.ctx_offset.next = self.recv_queue.head.val().get_bits::<26>(16);
        self.recv.ctx_segments.next = self.recv_queue.head.val().get_bits::<5>(42);
        self.recv.ctx_count.next = self.recv_queue.count.val();
        self.recv.ctx_in_progress.next = self.recv_progress.in_progress.val();
        self.recv.ctx_progress.next = self.recv_progress.offset.val();
        self.recv.ctx_total.next = self.recv_progress.total.val();
        self.recv.ctx_message.next = self.recv_progress.message.val();
        self.recv.ctx_fragment.next = self.recv_progress.fragment.val();
        // To admin. A stop reason is shown only in Error.
        self.admin.done.next = self.at_admin.val();
        self.admin.status.next = 0.into();
        if (self.admin_op.val().get_bit(0) & (!self.is_free.val()))
            | ((self.admin_op.val().get_bit(1) | self.admin_op.val().get_bit(2))
                & (!self.is_idle.val()))
            | (self.admin_op.val().get_bit(3) & self.is_free.val())
        {
            self.admin.status.next = self.status_bad_state.val();
        } else if (self.admin_op.val().get_bit(1) | self.admin_op.val().get_bit(2))
            & self.lifecycle.owed.val().any()
        {
            self.admin.status.next = self.status_busy.val();
        }
        self.query_reason.next = 0.into();
        if self.is_error.val() {
            self.query_reason.next = self.stop_info.val().get_bits::<8>(8);
        }
        self.query_sending.next = self.send_progress.in_progress.val()
            | self.send_progress.awaiting.val()
            | self.lifecycle.owed.val().any();
        self.admin_result.next = bit_cast::<32, 2>(self.state.val())
            | (bit_cast::<32, 8>(self.query_reason.val()) << 4)
            | (bit_cast::<32, 1>(self.query_sending.val().into()) << 12)
            | (bit_cast::<32, 1>(self.recv_progress.in_progress.val().into()) << 13);
        self.admin.result.next = 0.into();
        if self.admin_op.val().get_bit(4) & (!self.is_free.val()) {
            self.admin.result.next = self.admin_result.val();
        }
        if self.at_admin.val() {
            self.admin_busy.d.next = false;
            self.admin_seen.d.next = false;
        }
        self.kill.done.next = false;
        if self.at_kill.val() & (self.pipeline.vi.val() == self.last_vi.val()) {
            self.kill.done.next = true;
            self.kill_at.d.next = 0.into();
        }

        // Counters, log, stamp.
        self.counts_out.d.next =
            bit_cast::<64, 1>((self.post_taken.val()).into())
                | (bit_cast::<64, 1>((self.at_post.val() & (!self.post_owned.val())).into()) << 1)
                | (bit_cast::<64, 1>((self.post_owned.val() & self.is_error.val()).into()) << 2)
                | (bit_cast::<64, 1>(self.stop.val().into()) << 19)
                | (bit_cast::<64, 1>(self.refuse.val().into()) << 20)
                | (bit_cast::<64, 1>(self.send_complete.val().into()) << 27)
                | (bit_cast::<64, 1>(self.recv_complete.val().into()) << 28);
        self.error_out.d.next = self.at_post.val() & (!self.post_owned.val());
        self.error_record_out.d.next = self.bad_doorbell.val()
            | (bit_cast::<64, 8>(self.held_domain.q.val()) << 16)
            | (bit_cast::<64, 16>(self.held_token.q.val().get_bits::<16>(0)) << 32);
        self.stamp_out.d.next = self.post_taken.val()
            & (!self.post_recv.val())
            & self.sample_armed.val()
            & (self.sample_vi.val() == self.vi16.val());

        if self.reset.val() {
            self.clear_at.d.next = 0.into();
            self.held.d.next = false;
            self.admin_seen.d.next = false;
            self.admin_busy.d.next = false;
            self.kill_at.d.next = 0.into();
            self.counts_out.d.next = 0.into();
            self.error_out.d.next = false;
            self.stamp_out.d.next = false;
        }
    }
}
