//! The NIC: wires only. Every port of every block is joined here; the only logic is the or of
//! pulses and resets.

use crate::admin::Admin;
use crate::channel::Channel;
use crate::csr::Csr;
use crate::event::EventQueues;
use crate::ifs::*;
use crate::pcie::TlpClient;
use crate::pcie::cq::Cq;
use crate::pcie::dma_read::DmaRead;
use crate::pcie::dma_write::DmaWrite;
use crate::pcie::rq::Rq;
use crate::recv::Recv;
use crate::send::Send;
use crate::tpt::Tpt;
use crate::vi::Vi;
use rust_hdl::prelude::*;

/// ```text
///            +-----------------------------------------------+
///   cq  ====>| requests of the host          to the link     |====> tx
///   cc <====| completions to the host                        |
///   rq <====| requests of the device         from the link   |<==== rx
///   rc  ====>| completions to the device                     |
///            +-----------------------------------------------+
/// ```
/// Streams of 64-bit beats (`nic_regs::tlp`, `nic_regs::frame`), one clock, synchronous reset.
#[derive(LogicBlock, Default)]
pub struct Top {
    /// Core clock.
    pub clock: Signal<In, Clock>,
    /// Synchronous, active high.
    pub reset: Signal<In, Bit>,
    pub cq_valid: Signal<In, Bit>,
    pub cq_data: Signal<In, Bits<64>>,
    pub cq_last: Signal<In, Bit>,
    pub cq_bar: Signal<In, Bits<3>>,
    pub cq_ready: Signal<Out, Bit>,
    pub cc_valid: Signal<Out, Bit>,
    pub cc_data: Signal<Out, Bits<64>>,
    pub cc_last: Signal<Out, Bit>,
    pub cc_ready: Signal<In, Bit>,
    pub rq_valid: Signal<Out, Bit>,
    pub rq_data: Signal<Out, Bits<64>>,
    pub rq_last: Signal<Out, Bit>,
    pub rq_ready: Signal<In, Bit>,
    pub rc_valid: Signal<In, Bit>,
    pub rc_data: Signal<In, Bits<64>>,
    pub rc_last: Signal<In, Bit>,
    pub tx_valid: Signal<Out, Bit>,
    pub tx_data: Signal<Out, Bits<64>>,
    pub tx_last: Signal<Out, Bit>,
    pub tx_ready: Signal<In, Bit>,
    pub rx_valid: Signal<In, Bit>,
    pub rx_data: Signal<In, Bits<64>>,
    pub rx_last: Signal<In, Bit>,
    cq: Cq,
    csr: Csr,
    dma_read: DmaRead,
    dma_write: DmaWrite,
    rq: Rq,
    admin: Admin,
    tpt: Tpt,
    vis: Vi,
    events: EventQueues,
    send: Send,
    recv: Recv,
    channel: Channel,
    core_reset: DFF<Bit>,
    core_ready: DFF<Bit>,
    counts_a: DFF<Bits<64>>,
    counts_b: DFF<Bits<64>>,
    counts_c: DFF<Bits<64>>,
}

impl Logic for Top {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, core_reset, core_ready, counts_a, counts_b, counts_c);
        clock!(
            self, clock, cq, csr, dma_read, dma_write, rq, admin, tpt, vis, events, send, recv,
            channel
        );
        // Reset and readiness.
        self.core_reset.d.next = self.reset.val() | self.csr.soft_reset.val();
        self.core_ready.d.next = self.tpt.ready.val()
            & self.vis.ready.val()
            & self.events.ready.val()
            & self.channel.ready.val();
        self.csr.core_ready.next = self.core_ready.q.val();
        self.cq.reset.next = self.reset.val();
        self.cq.soft_reset.next = self.csr.soft_reset.val();
        self.csr.reset.next = self.reset.val();
        self.dma_read.reset.next = self.reset.val();
        self.dma_read.soft_reset.next = self.csr.soft_reset.val();
        self.dma_write.reset.next = self.core_reset.q.val();
        self.rq.reset.next = self.reset.val();
        self.rq.hold.next = self.csr.quiesce.val();
        self.csr.rq_idle.next = self.rq.idle.val();
        self.admin.reset.next = self.core_reset.q.val();
        self.tpt.reset.next = self.core_reset.q.val();
        self.vis.reset.next = self.core_reset.q.val();
        self.events.reset.next = self.core_reset.q.val();
        self.events.moderation.next = self.csr.moderation.val();
        self.send.reset.next = self.core_reset.q.val();
        self.recv.reset.next = self.core_reset.q.val();
        self.channel.reset.next = self.core_reset.q.val();

        // Pins.
        self.cq.cq_valid.next = self.cq_valid.val();
        self.cq.cq_data.next = self.cq_data.val();
        self.cq.cq_last.next = self.cq_last.val();
        self.cq.cq_bar.next = self.cq_bar.val();
        self.cq_ready.next = self.cq.cq_ready.val();
        self.cc_valid.next = self.cq.cc_valid.val();
        self.cc_data.next = self.cq.cc_data.val();
        self.cc_last.next = self.cq.cc_last.val();
        self.cq.cc_ready.next = self.cc_ready.val();
        self.rq_valid.next = self.rq.rq_valid.val();
        self.rq_data.next = self.rq.rq_data.val();
        self.rq_last.next = self.rq.rq_last.val();
        self.rq.rq_ready.next = self.rq_ready.val();
        self.dma_read.rc_valid.next = self.rc_valid.val();
        self.dma_read.rc_data.next = self.rc_data.val();
        self.dma_read.rc_last.next = self.rc_last.val();
        self.tx_valid.next = self.channel.tx_valid.val();
        self.tx_data.next = self.channel.tx_data.val();
        self.tx_last.next = self.channel.tx_last.val();
        self.channel.tx_ready.next = self.tx_ready.val();
        self.channel.rx_valid.next = self.rx_valid.val();
        self.channel.rx_data.next = self.rx_data.val();
        self.channel.rx_last.next = self.rx_last.val();

        // Configuration.
        self.cq.enable.next = self.csr.enable.val();
        self.cq.requester.next = self.csr.requester.val();
        self.dma_read.max_read.next = self.csr.max_read.val();
        self.dma_read.requester.next = self.csr.requester.val();
        self.dma_read.read_timeout.next = self.csr.read_timeout.val();
        self.dma_write.max_payload.next = self.csr.max_payload.val();
        self.dma_write.requester.next = self.csr.requester.val();
        self.admin.enable.next = self.csr.enable.val();
        self.admin.admin_base.next = self.csr.admin_base.val();
        self.admin.admin_log2.next = self.csr.admin_log2.val();
        self.admin.admin_tail.next = self.csr.admin_tail.val();
        self.csr.admin_head.next = self.admin.admin_head.val();
        self.csr.admin_busy.next = self.admin.admin_busy.val();
        self.csr.admin_failed.next = self.admin.admin_failed.val();
        self.csr.reads_fail.next = self.dma_read.exhausted.val();
        self.csr.sending.next = self.channel.sending.val();
        self.vis.error_queue.next = self.csr.error_queue.val();
        self.vis.error_queue_valid.next = self.csr.error_queue_valid.val();
        self.vis.sample_vi.next = self.csr.sample_vi.val();
        self.vis.sample_armed.next = self.csr.sample_armed.val();
        self.send.sample_vi.next = self.csr.sample_vi.val();
        self.send.sample_armed.next = self.csr.sample_armed.val();
        self.recv.sample_vi.next = self.csr.sample_vi.val();
        self.recv.sample_armed.next = self.csr.sample_armed.val();
        self.channel.enable.next = self.csr.enable.val();
        self.channel.node.next = self.csr.node.val();
        self.channel.ack_delay.next = self.csr.ack_delay.val();
        self.channel.retry_timeout.next = self.csr.retry_timeout.val();
        self.channel.retry_limit.next = self.csr.retry_limit.val();
        self.channel.keepalive.next = self.csr.keepalive.val();
        self.channel.error_queue.next = self.csr.error_queue.val();
        self.channel.error_queue_valid.next = self.csr.error_queue_valid.val();
        self.channel.sample_vi.next = self.csr.sample_vi.val();
        self.channel.sample_armed.next = self.csr.sample_armed.val();
        self.channel.drain_channel.next = self.events.drain_channel.val();
        self.channel.drain_channel_queue.next = self.events.drain_channel_queue.val();

        // Counters: blocks that may count the same cause in one cycle are in different vectors.
        self.counts_a.d.next =
            self.cq.counts.val() | self.admin.counts.val() | self.send.counts.val();
        self.counts_b.d.next =
            self.vis.counts.val() | self.dma_read.counts.val() | self.recv.counts.val();
        self.counts_c.d.next = self.events.counts.val() | self.channel.counts.val();
        self.csr.counts_a.next = self.counts_a.q.val();
        self.csr.counts_b.next = self.counts_b.q.val();
        self.csr.counts_c.next = self.counts_c.q.val();
        // Error log.
        self.csr.error_valid0.next = self.cq.error_valid.val();
        self.csr.error_record0.next = self.cq.error_record.val();
        self.csr.error_valid1.next = self.dma_read.error_valid.val();
        self.csr.error_record1.next = self.dma_read.error_record.val();
        self.csr.error_valid2.next = self.vis.error_valid.val();
        self.csr.error_record2.next = self.vis.error_record.val();
        self.csr.error_valid3.next = self.events.error_valid.val();
        self.csr.error_record3.next = self.events.error_record.val();
        self.csr.error_valid4.next = self.admin.error_valid.val();
        self.csr.error_record4.next = self.admin.error_record.val();
        // Stamps.
        self.csr.stamp_doorbell.next = self.vis.stamp_doorbell.val();
        self.csr.stamp_descriptor.next = self.send.stamp_descriptor.val();
        self.csr.stamp_data.next = self.send.stamp_data.val();
        self.csr.stamp_first_beat_out.next = self.channel.stamp_first_beat_out.val();
        self.csr.stamp_last_beat_out.next = self.channel.stamp_last_beat_out.val();
        self.csr.stamp_first_beat_in.next = self.channel.stamp_first_beat_in.val();
        self.csr.stamp_matched.next = self.recv.stamp_matched.val();
        self.csr.stamp_data_written.next = self.recv.stamp_data_written.val();
        self.csr.stamp_status_written.next = self.recv.stamp_status_written.val();

        // Interfaces: client, server.
        RegClient::join(&mut self.cq.registers, &mut self.csr.registers);
        PostClient::join(&mut self.cq.vi_post, &mut self.vis.post);
        PushClient::join(&mut self.cq.words, &mut self.send.words);
        PostClient::join(&mut self.cq.event_post, &mut self.events.doorbell);
        MsixClient::join(&mut self.csr.msix, &mut self.events.msix);
        ReadClient::join(&mut self.send.desc_read, &mut self.dma_read.desc_send);
        ReadClient::join(&mut self.recv.desc_read, &mut self.dma_read.desc_recv);
        ReadClient::join(&mut self.send.read, &mut self.dma_read.gather);
        ReadClient::join(&mut self.admin.read, &mut self.dma_read.admin);
        PacketClient::join(&mut self.recv.write, &mut self.dma_write.recv);
        WriteClient::join(&mut self.send.write, &mut self.dma_write.send);
        WriteClient::join(&mut self.events.write, &mut self.dma_write.events);
        WriteClient::join(&mut self.admin.write, &mut self.dma_write.admin);
        TlpClient::join(&mut self.dma_read.out, &mut self.rq.read);
        TlpClient::join(&mut self.dma_write.out, &mut self.rq.write);
        TptClient::join(&mut self.send.desc_tpt, &mut self.tpt.desc_send);
        TptClient::join(&mut self.recv.desc_tpt, &mut self.tpt.desc_recv);
        TptSetClient::join(&mut self.admin.tpt, &mut self.tpt.set);
        ViSendClient::join(&mut self.send.vi, &mut self.vis.send);
        ViRecvClient::join(&mut self.recv.vi, &mut self.vis.recv);
        ViCompleteClient::join(&mut self.recv.vi_complete, &mut self.vis.complete);
        ViLookClient::join(&mut self.recv.vi_look, &mut self.vis.look);
        ViAdminClient::join(&mut self.admin.vi, &mut self.vis.admin);
        EventClient::join(&mut self.vis.events, &mut self.events.vi);
        EventClient::join(&mut self.recv.events, &mut self.events.recv);
        EventClient::join(&mut self.channel.events, &mut self.events.channel);
        EventAdminClient::join(&mut self.admin.event_queue, &mut self.events.admin);
        DrainClient::join(&mut self.events.drain, &mut self.vis.drain);
        PoolClient::join(&mut self.send.pool, &mut self.channel.pool);
        StagingClient::join(&mut self.recv.staging, &mut self.channel.staging);
        MessageClient::join(&mut self.admin.message, &mut self.send.messages);
        PeerClient::join(&mut self.admin.peer, &mut self.channel.peers);
        KillClient::join(&mut self.channel.kill, &mut self.vis.kill);
        // A frame that the receive engine still has may give the send engine work (an acknowledged
        // send), so the latter has paused only when both have.
        self.send.fence.pause.next = self.admin.fence_send.pause.val();
        self.admin.fence_send.paused.next =
            self.send.fence.paused.val() & self.recv.fence.paused.val();
        FenceClient::join(&mut self.admin.fence_recv, &mut self.recv.fence);
    }
}
