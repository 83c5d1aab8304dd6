//! The channel: reliable, ordered frames between two nodes (contract 7), for 64 peers.
//!
//! ```text
//!            +--------+ header +--------+ marks  +---------+ job  +--------+
//!  rx pins ->| LinkRx |------->| Accept |------->| PeerHub |----->| LinkTx |-> tx pins
//!            +--------+        +--------+ <------+---------+      +--------+
//!                | payload         | commit  command  | ^ frames       ^ payload
//!                v                 v                  v |              |
//!            +---------------------------+        +---------+      +--------+
//!  staging <-| Staging                   |        | Notify  |      |  Pool  |<- pool
//!            +---------------------------+        +---------+      +--------+
//!                                              kill, events
//! ```
//! [`Delay`](delay::Delay) turns debts into Acks, [`TxPendingOps`](pending_ops::TxPendingOps)
//! holds what is to be sent to whom. Receiving never waits for anything; sending waits for the link only.
pub mod accept;
pub mod ask;
pub mod chunks;
pub mod compare;
pub mod comparisons;
pub mod control;
pub mod counter_events;
pub mod credit_limit;
pub mod delay;
pub mod held;
pub mod job;
pub mod lists;
pub mod notify;
pub mod num;
pub mod op_outputs;
pub mod peer;
pub mod pending_ops;
pub mod picker;
pub mod pool;
pub mod reclaimer;
pub mod scheduler;
pub mod service;
pub mod service_requests;
pub mod staging;
pub mod tables;
pub mod timer;

use crate::ifs::{EventClient, KillClient, PeerServer, PoolServer, StagingServer};
use crate::link::{LinkRx, LinkTx};
use accept::Accept;
use counter_events::CounterEvents;
use delay::Delay;
use notify::Notify;
use num::Num;
use peer::PeerHub;
use pending_ops::TxPendingOps;
use pool::Pool;
use rust_hdl::prelude::*;
use staging::Staging;

#[derive(LogicBlock, Default)]
pub struct Channel {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    // Configuration.
    /// Frames are received.
    pub enable: Signal<In, Bit>,
    pub node: Signal<In, Bits<8>>,
    pub ack_delay: Signal<In, Bits<32>>,
    pub retry_timeout: Signal<In, Bits<24>>,
    pub retry_limit: Signal<In, Bits<4>>,
    pub keepalive: Signal<In, Bits<32>>,
    pub error_queue: Signal<In, Bits<16>>,
    pub error_queue_valid: Signal<In, Bit>,
    pub sample_vi: Signal<In, Bits<16>>,
    pub sample_armed: Signal<In, Bit>,
    pub stamp_first_beat_out: Signal<Out, Bit>,
    pub stamp_last_beat_out: Signal<Out, Bit>,
    pub stamp_first_beat_in: Signal<Out, Bit>,
    // The link.
    pub tx_valid: Signal<Out, Bit>,
    pub tx_data: Signal<Out, Bits<64>>,
    pub tx_last: Signal<Out, Bit>,
    pub tx_ready: Signal<In, Bit>,
    pub rx_valid: Signal<In, Bit>,
    pub rx_data: Signal<In, Bits<64>>,
    pub rx_last: Signal<In, Bit>,
    // The neighbours.
    pub pool: PoolServer,
    pub staging: StagingServer,
    pub peers: PeerServer,
    pub kill: KillClient,
    pub events: EventClient,
    /// An event queue has room again (pulse), and which.
    pub drain_channel: Signal<In, Bit>,
    pub drain_channel_queue: Signal<In, Bits<16>>,
    /// Chunks that nobody holds (128 when the channel is at rest), for tests and probes.
    pub free_chunks: Signal<Out, Bits<8>>,
    /// Somebody holds one.
    pub sending: Signal<Out, Bit>,
    link_rx: LinkRx,
    link_tx: LinkTx,
    acceptance: Accept,
    stage: Staging,
    delay: Delay,
    pending_ops: TxPendingOps,
    hub: PeerHub,
    store: Pool,
    notify: Notify,
    counter_events: CounterEvents,
    op_open: Num<2, 0>,
    sends: DFF<Bit>,
    all_chunks: Num<8, { nic_regs::limits::POOL_CHUNK_COUNT as u64 }>,
}

impl Logic for Channel {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, sends);
        clock!(
            self,
            clock,
            link_rx,
            link_tx,
            acceptance,
            stage,
            delay,
            pending_ops,
            hub,
            store,
            notify
        );
        self.link_rx.reset.next = self.reset.val();
        self.link_tx.reset.next = self.reset.val();
        self.acceptance.reset.next = self.reset.val();
        self.stage.reset.next = self.reset.val();
        self.delay.reset.next = self.reset.val();
        self.pending_ops.reset.next = self.reset.val();
        self.hub.reset.next = self.reset.val();
        self.store.reset.next = self.reset.val();
        self.notify.reset.next = self.reset.val();
        PoolServer::link(&mut self.pool, &mut self.store.pool);
        StagingServer::link(&mut self.staging, &mut self.stage.staging);
        PeerServer::link(&mut self.peers, &mut self.hub.peers);
        self.hub.old.next = (self.stage.old.val() | self.store.old.val())
            & (self.peers.op.val() == self.op_open.val());
        KillClient::link(&mut self.kill, &mut self.notify.kill);
        EventClient::link(&mut self.events, &mut self.notify.events);
        self.ready.next = self.store.ready.val();
        self.free_chunks.next = self.store.free_chunks.val();
        self.sends.d.next = self.store.free_chunks.val() != self.all_chunks.val();
        self.sending.next = self.sends.q.val();

        // Receiving.
        self.link_rx.enable.next = self.enable.val() & self.store.ready.val();
        self.link_rx.node.next = self.node.val();
        self.link_rx.sample_vi.next = self.sample_vi.val();
        self.link_rx.sample_armed.next = self.sample_armed.val();
        self.stamp_first_beat_in.next = self.link_rx.stamp_first_beat_in.val();
        self.link_rx.rx_valid.next = self.rx_valid.val();
        self.link_rx.rx_data.next = self.rx_data.val();
        self.link_rx.rx_last.next = self.rx_last.val();
        self.stage.start.next = self.link_rx.start.val();
        self.stage.write.next = self.link_rx.write.val();
        self.stage.offset.next = self.link_rx.offset.val();
        self.stage.data.next = self.link_rx.data.val();
        self.stage.beats.next = self.link_rx.beats.val();
        self.stage.coming_length.next = self.link_rx.coming_length.val();
        self.stage.header0.next = self.link_rx.header0.val();
        self.stage.header1.next = self.link_rx.header1.val();
        self.stage.header2.next = self.link_rx.header2.val();
        self.stage.commit.next = self.acceptance.commit.val();
        self.stage.no_sequence.next = self.acceptance.no_sequence.val();
        self.stage.epoch_bit.next = self.acceptance.epoch_bit.val();
        self.stage.opened.next = self.acceptance.opened.val();
        self.stage.opened_peer.next = self.acceptance.mark_peer.val();
        self.stage.opens_bit.next = self.acceptance.opens_bit.val();
        self.stage.opened_credit.next = self.hub.command_credits.val();
        self.stage.tx_peer.next = self.link_tx.in_flight_peer.val();
        self.stage.tx_reports.next = self.link_tx.carries.val();
        self.acceptance.now.next = self.hub.now.val();
        self.acceptance.coming.next = self.link_rx.coming.val();
        self.acceptance.coming_from.next = self.link_rx.coming_from.val();
        self.acceptance.frame.next = self.link_rx.frame.val();
        self.acceptance.misfit.next = self.link_rx.misfit.val();
        self.acceptance.header0.next = self.link_rx.header0.val();
        self.acceptance.header1.next = self.link_rx.header1.val();
        self.acceptance.header2.next = self.link_rx.header2.val();
        self.acceptance.fits.next = self.stage.fits.val();
        self.acceptance.fits_no_sequence.next = self.stage.fits_no_sequence.val();
        self.acceptance.command.next = self.hub.command.val();
        self.acceptance.command_open.next = self.hub.command_open.val();
        self.acceptance.command_peer.next = self.hub.peer.val();
        self.acceptance.command_epoch.next = self.hub.command_epoch.val();
        self.acceptance.command_reason.next = self.hub.command_reason.val();
        self.acceptance.write_newest.next = self.hub.write_newest.val();
        self.acceptance.newest_peer.next = self.hub.late_peer.val();
        self.acceptance.newest.next = self.hub.newest.val();
        self.acceptance.tx_peer.next = self.link_tx.in_flight_peer.val();
        self.acceptance.hub_peer.next = self.hub.peer.val();
        self.acceptance.ask_peer.next = self.store.limit_peer.val();
        self.acceptance.event_peer.next = self.notify.table_peer.val();

        // Debts.
        self.delay.ack_delay.next = self.ack_delay.val();
        self.delay.ack_pending.next = self.acceptance.mark_ack_pending.val();
        self.delay.ack_pending_peer.next = self.acceptance.mark_peer.val();
        self.delay.returned.next = self.stage.returned.val();
        self.delay.returned_peer.next = self.stage.returned_peer.val();
        self.delay.returned_many.next = self.stage.returned_many.val();
        self.delay.sent.next = self.link_tx.carries.val();
        self.delay.sent_peer.next = self.link_tx.in_flight_peer.val();
        self.pending_ops.rx_peer.next = self.acceptance.mark_peer.val();
        self.pending_ops.rx_rst.next = self.acceptance.mark_rst.val();
        self.pending_ops.rx_synack.next = self.acceptance.mark_synack.val();
        self.pending_ops.rx_nak.next = self.acceptance.mark_nak.val();
        self.pending_ops.rx_ack.next = self.acceptance.mark_ack.val();
        self.pending_ops.rx_moved.next = self.acceptance.mark_moved.val();
        self.pending_ops.rx_starved.next = self.acceptance.mark_starved.val();
        self.pending_ops.room.next = self.stage.room.val();
        self.pending_ops.due.next = self.delay.due.val();
        self.pending_ops.due_peer.next = self.delay.due_peer.val();
        self.pending_ops.refuse.next = self.stage.refuse.val();
        self.pending_ops.refuse_peer.next = self.stage.refuse_peer.val();
        self.pending_ops.look_peer.next = self.hub.peer.val();
        self.pending_ops.hub_peer.next = self.hub.late_peer.val();
        self.pending_ops.hub_syn.next = self.hub.tx_syn.val();
        self.pending_ops.hub_ack.next = self.hub.tx_ack.val();
        self.pending_ops.hub_data.next = self.hub.tx_data.val();
        self.pending_ops.hub_blocks.next = self.hub.tx_blocks.val();
        self.pending_ops.hub_clear.next = self.hub.tx_clear.val();

        // The peer machine.
        self.hub.ready.next = self.store.ready.val();
        self.hub.retry_timeout.next = self.retry_timeout.val();
        self.hub.retry_limit.next = self.retry_limit.val();
        self.hub.keepalive.next = self.keepalive.val();
        self.hub.open.next = self.acceptance.open.val();
        self.hub.opening.next = self.acceptance.opening.val();
        self.hub.command_done.next = self.acceptance.command_done.val();
        self.hub.acked.next = self.acceptance.hub_acked.val();
        self.hub.nak.next = self.acceptance.hub_nak.val();
        self.hub.limit.next = self.acceptance.hub_limit.val();
        self.hub.alive.next = self.acceptance.hub_alive.val();
        self.hub.reset_tag.next = self.acceptance.hub_reset_tag.val();
        self.hub.rx_peer.next = self.acceptance.mark_peer.val();
        self.hub.rx_up.next = self.acceptance.mark_up.val();
        self.hub.rx_down.next = self.acceptance.mark_down.val();
        self.hub.rx_acked.next = self.acceptance.mark_acked.val();
        self.hub.rx_go_back.next = self.acceptance.mark_go_back.val();
        self.hub.rx_alive.next = self.acceptance.alive.val();
        self.hub.tx_want.next = self.pending_ops.want.val();
        self.hub.tx_found.next = self.pending_ops.found.val();
        self.hub.killing.next = self.notify.killing.val();
        self.hub.put_valid.next = self.store.put_valid.val();
        self.hub.put_peer.next = self.store.put_peer.val();
        self.hub.put_frame.next = self.store.put_frame.val();
        self.hub.put_unsequenced.next = self.store.put_unsequenced.val();
        self.hub.put_stale.next = self.store.put_stale.val();
        self.hub.put_large.next = self.store.put_large.val();
        self.hub.put_units.next = self.store.put_units.val();
        self.hub.free_room.next = self.store.free_room.val();
        self.hub.filling.next = self.store.filling.val();
        self.hub.filling_peer.next = self.store.filling_peer.val();
        self.hub.job_taken.next = self.link_tx.job_taken.val();
        self.hub.in_flight_valid.next = self.link_tx.in_flight_valid.val();
        self.hub.in_flight_data.next = self.link_tx.in_flight_data.val();
        self.hub.in_flight_peer.next = self.link_tx.in_flight_peer.val();
        self.hub.in_flight_frame.next = self.link_tx.in_flight_frame.val();
        self.notify.error_queue.next = self.error_queue.val();
        self.notify.error_queue_valid.next = self.error_queue_valid.val();
        self.notify.drain_channel.next = self.drain_channel.val();
        self.notify.drain_channel_queue.next = self.drain_channel_queue.val();
        self.notify.peer.next = self.hub.late_peer.val();
        self.notify.up.next = self.hub.up.val();
        self.notify.down.next = self.hub.down.val();
        self.notify.refused.next = self.acceptance.mark_refused.val();
        self.notify.refused_peer.next = self.acceptance.mark_peer.val();
        self.notify.epoch.next = self.acceptance.event_remote.val();
        self.notify.reason.next = self.acceptance.event_reason.val();

        // Sending.
        self.store.open.next = self.acceptance.open.val();
        self.store.epoch_bits.next = self.acceptance.epoch_bits.val();
        self.store.limit.next = self.acceptance.ask_limit.val();
        self.store.opened.next = self.acceptance.opened.val();
        self.store.opened_peer.next = self.acceptance.mark_peer.val();
        self.store.put_taken.next = self.hub.put_taken.val();
        self.store.free_valid.next = self.hub.free_valid.val();
        self.store.free_peer.next = self.hub.late_peer.val();
        self.store.free_frame.next = self.hub.free_frame.val();
        self.store.transmitted_valid.next = self.link_tx.transmitted_valid.val();
        self.store.transmitted_peer.next = self.link_tx.transmitted_peer.val();
        self.store.transmitted_frame.next = self.link_tx.transmitted_frame.val();
        self.store.record_address.next = self.link_tx.record_address.val();
        self.store.beat_address.next = self.link_tx.beat_address.val();
        self.store.chunk.next = self.link_tx.chunk.val();
        self.link_tx.node.next = self.node.val();
        self.link_tx.sample_vi.next = self.sample_vi.val();
        self.link_tx.sample_armed.next = self.sample_armed.val();
        self.stamp_first_beat_out.next = self.link_tx.stamp_first_beat_out.val();
        self.stamp_last_beat_out.next = self.link_tx.stamp_last_beat_out.val();
        self.tx_valid.next = self.link_tx.tx_valid.val();
        self.tx_data.next = self.link_tx.tx_data.val();
        self.tx_last.next = self.link_tx.tx_last.val();
        self.link_tx.tx_ready.next = self.tx_ready.val();
        self.link_tx.job_valid.next = self.hub.job_valid.val();
        self.link_tx.job_data.next = self.hub.job_data.val();
        self.link_tx.job_kind.next = self.hub.job_kind.val();
        self.link_tx.job_peer.next = self.hub.job_peer.val();
        self.link_tx.job_frame.next = self.hub.job_frame.val();
        self.link_tx.job_number.next = self.hub.job_number.val();
        self.link_tx.job_unsequenced.next = self.hub.job_unsequenced.val();
        self.link_tx.job_again.next = self.hub.job_again.val();
        self.link_tx.job_nak.next = self.hub.job_nak.val();
        self.link_tx.job_tag.next = self.hub.job_tag.val();
        self.link_tx.transmitted_taken.next = self.store.transmitted_taken.val();
        self.link_tx.open.next = self.acceptance.open.val();
        self.link_tx.opening.next = self.acceptance.opening.val();
        self.link_tx.tag.next = self.acceptance.tx_tag.val();
        self.link_tx.expected.next = self.acceptance.tx_expected.val();
        self.link_tx.epoch.next = self.acceptance.tx_own.val();
        self.link_tx.credit.next = self.stage.tx_credit.val();
        self.link_tx.record0.next = self.store.record0.val();
        self.link_tx.record1.next = self.store.record1.val();
        self.link_tx.beat.next = self.store.beat.val();
        self.link_tx.chunk_after.next = self.store.chunk_after.val();

        self.counter_events.tx.next = self.link_tx.tally.val();
        self.counter_events.rx.next = self.link_rx.tally.val();
        self.counter_events.drops.next = self.acceptance.drops.val();
        self.counter_events.lost.next = self.acceptance.lost.val();
        self.counts.next = self.counter_events.counts.val();
    }
}
