//! Receive engine: takes frames from staging, oldest first (contract 5, 6.1, 7.8, 8, 11, 12).
//!
//! ```text
//! staging -->+---------+-> Port <--> vi
//!            | Control |-> Scatter --> Writer --> write (payload, status)
//!   fence -->|         |-> Finish  ---'
//!  events <--|         |-> Prefetch (descriptors) <--> desc_read, desc_tpt
//!            |         |-> Reply (RDMA reads) <---> desc_read, desc_tpt
//!            +---------+-> Range (RDMA) <---------> desc_tpt
//! ```
//! `Control` follows the frame at the head, `Check` and `Verdict` are the contract's rules, `Port`
//! holds the VI's context. Descriptors are fetched ahead of the frames and wait, resolved (`Prefetch`).
//! A frame is released when nothing of it is needed any more, though its payload and status may be on
//! their way out; nothing here waits for an event queue or for the link.

mod buffer;
mod caller;
mod check;
mod close;
mod control;
mod counter_events;
mod data_segments;
mod desc_cache;
mod finish;
mod frame_fifo;
mod hints;
mod job_state;
mod jobs;
mod loader;
mod loader_state;
mod message_sender;
mod outstanding;
mod port;
mod prefetch;
mod prefetch_target;
mod range;
mod reader;
mod region_cache;
mod reply;
mod resolver;
mod rows;
mod scatter;
mod state;
mod successor;
mod writer;
pub use data_segments::DataSegments;

use crate::desc::{Cause, Reads, Verdict};
use crate::ifs::{
    EventClient, FenceServer, PacketClient, ReadClient, StagingClient, TptClient, ViCompleteClient,
    ViLookClient, ViRecvClient,
};
use crate::leaf::Number;
use crate::tpt::Lookups;
use caller::Caller;
use check::Check;
use close::Close;
use control::Control;
use counter_events::CounterEvents;
use finish::Finish;
use frame_fifo::FrameFifo;
use message_sender::MessageSender;
use nic_regs::counter::Counter;
use nic_regs::desc::status;
use nic_regs::event::Kind;
use nic_regs::frame::RDMA_HEADER_BYTES;
use nic_regs::tpt::{RIGHT_RDMA_READ, RIGHT_RDMA_WRITE};
use port::Port;
use prefetch::Prefetch;
use range::Range;
use reply::Reply;
use rust_hdl::prelude::*;
use scatter::Scatter;
use writer::Writer;

#[derive(LogicBlock, Default)]
pub struct Recv {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub sample_vi: Signal<In, Bits<16>>,
    pub sample_armed: Signal<In, Bit>,
    pub stamp_matched: Signal<Out, Bit>,
    pub stamp_data_written: Signal<Out, Bit>,
    pub stamp_status_written: Signal<Out, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    pub staging: StagingClient,
    pub vi: ViRecvClient,
    pub vi_complete: ViCompleteClient,
    pub vi_look: ViLookClient,
    pub write: PacketClient,
    pub events: EventClient,
    pub fence: FenceServer,
    pub desc_read: ReadClient,
    pub desc_tpt: TptClient,
    pausing: DFF<Bit>,
    sampled: DFF<Bit>,
    fetched: DFF<Bits<64>>,
    frame_fifo: FrameFifo,
    control: Control,
    counter_events: CounterEvents,
    close: Close,
    message_sender: MessageSender,
    port: Port,
    check: Check,
    verdict: Verdict,
    scatter: Scatter,
    finish: Finish,
    writer: Writer,
    prefetch: Prefetch,
    range: Range,
    reply: Reply,
    /// Whose look-ups go: those of the frame, then those ahead.
    lookups: Lookups,
    frame_lookups: Lookups,
    reads: Reads,
    /// A descriptor of a read was fetched, and is not counted yet.
    reply_fetched: DFF<Bit>,
    caller: Caller,
    // The header's fields; what is derived from them is a cycle old, long before it is used.
    kinds: Signal<Local, Bits<8>>,
    data_length: DFF<Bits<13>>,
    last: DFF<Bit>,
    has_immediate: DFF<Bit>,
    wants_ack: DFF<Bit>,
    some: DFF<Bit>,
    reply_idle: DFF<Bit>,
    /// A cycle later.
    stamps: DFF<Bits<3>>,
    length: Signal<Local, Bits<13>>,
    source: Signal<Local, Bits<8>>,
    dst_vi: Signal<Local, Bits<16>>,
    word: Signal<Local, Bits<32>>,
    first: Signal<Local, Bit>,
    succeeded: Signal<Local, Bit>,
    quiet: Signal<Local, Bit>,
    empty_placed: Signal<Local, Bit>,
    successor: Signal<Local, Bits<43>>,
    is_data: Signal<Local, Bit>,
    is_write: Signal<Local, Bit>,
    is_request: Signal<Local, Bit>,
    is_response: Signal<Local, Bit>,
    event_message: Number<32, { Kind::Message as u64 }>,
    rdma_bytes: Number<13, { RDMA_HEADER_BYTES as u64 }>,
    rdma_beats: Number<10, { RDMA_HEADER_BYTES as u64 / 8 }>,
    op_receive: Number<3, { status::OP_RECEIVE as u64 >> 16 }>,
    cause_rdma_write: Number<4, { Cause::RdmaWrite as u64 }>,
    cause_rdma_read: Number<4, { Cause::RdmaRead as u64 }>,
    right_write: Number<3, { RIGHT_RDMA_WRITE as u64 }>,
    right_read: Number<3, { RIGHT_RDMA_READ as u64 }>,
    count_fetch: Number<64, { 1 << Counter::DescriptorsFetched as u32 }>,
}

impl Logic for Recv {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, pausing, sampled, fetched, reply_fetched, stamps);
        dff_setup!(self, clock, data_length, last, has_immediate, wants_ack, some, reply_idle);
        clock!(
            self,
            clock,
            frame_fifo,
            control,
            close,
            message_sender,
            port,
            scatter,
            finish,
            writer,
            prefetch,
            range
        );
        clock!(self, clock, counter_events, check, reply, lookups, frame_lookups, reads, caller);
        self.control.reset.next = self.reset.val();
        self.close.reset.next = self.reset.val();
        self.message_sender.reset.next = self.reset.val();
        self.port.reset.next = self.reset.val();
        self.scatter.reset.next = self.reset.val();
        self.finish.reset.next = self.reset.val();
        self.writer.reset.next = self.reset.val();
        self.prefetch.reset.next = self.reset.val();
        self.range.reset.next = self.reset.val();
        self.lookups.reset.next = self.reset.val();
        self.reply.reset.next = self.reset.val();
        self.frame_lookups.reset.next = self.reset.val();
        self.reads.reset.next = self.reset.val();
        ReadClient::link(&mut self.desc_read, &mut self.reads.read);
        ReadClient::join(&mut self.reply.read, &mut self.reads.first);
        ReadClient::join(&mut self.prefetch.read, &mut self.reads.second);
        self.caller.reset.next = self.reset.val();
        TptClient::link(&mut self.desc_tpt, &mut self.caller.tpt);
        TptClient::join(&mut self.lookups.tpt, &mut self.caller.asker);
        TptClient::join(&mut self.frame_lookups.tpt, &mut self.lookups.first);
        TptClient::join(&mut self.range.tpt, &mut self.frame_lookups.first);
        TptClient::join(&mut self.reply.tpt, &mut self.frame_lookups.second);
        TptClient::join(&mut self.prefetch.tpt, &mut self.lookups.second);
        ViRecvClient::link(&mut self.vi, &mut self.port.vi);
        ViCompleteClient::link(&mut self.vi_complete, &mut self.finish.vi_complete);
        ViLookClient::link(&mut self.vi_look, &mut self.prefetch.vi_look);

        // The oldest frame, and those that wait.
        self.frame_fifo.reset.next = self.reset.val();
        self.frame_fifo.offered.next = self.staging.valid.val();
        self.frame_fifo.offered0.next = self.staging.header0.val();
        self.frame_fifo.offered1.next = self.staging.header1.val();
        self.frame_fifo.offered2.next = self.staging.header2.val();
        self.frame_fifo.offered_base.next = self.staging.base.val();
        self.frame_fifo.give.next = self.control.give_back.val();
        self.frame_fifo.peeked.next = self.prefetch.peeked.val();
        self.prefetch.peek.next = self.frame_fifo.peek.val();
        self.prefetch.peek_vi.next = self.frame_fifo.peek_vi.val();

        // Its header.
        self.kinds.next = self.frame_fifo.kinds.val();
        self.is_data.next = self.kinds.val().get_bit(0);
        self.is_write.next = self.kinds.val().get_bit(1);
        self.is_request.next = self.kinds.val().get_bit(2);
        self.is_response.next = self.kinds.val().get_bit(3);
        self.length.next = self.frame_fifo.header0.val().get_bits::<13>(16);
        self.source.next = self.frame_fifo.header0.val().get_bits::<8>(32);
        self.dst_vi.next = self.frame_fifo.header1.val().get_bits::<16>(0);
        self.first.next = self.frame_fifo.header1.val().get_bit(48);
        self.word.next = self.frame_fifo.header2.val().get_bits::<32>(32);
        self.last.d.next = self.frame_fifo.header1.val().get_bit(49);
        self.has_immediate.d.next =
            self.frame_fifo.header1.val().get_bit(49) & self.frame_fifo.header1.val().get_bit(50);
        self.wants_ack.d.next = self.frame_fifo.header1.val().get_bit(52);
        if self.is_response.val() {
            // Its flags say nothing.
            self.last.d.next = !self.word.val().any();
            self.has_immediate.d.next = false;
            self.wants_ack.d.next = false;
        }
        self.data_length.d.next = self.length.val();
        if self.is_write.val() | self.is_request.val() {
            self.data_length.d.next = self.length.val() - self.rdma_bytes.val();
        }

        self.some.d.next = self.data_length.q.val().any();

        // Counters, stamps, fence.
        // It begins in a frame's middle alone, so that a cycle does not matter.
        self.reply_idle.d.next = self.reply.idle.val();
        self.fetched.d.next = 0.into();
        self.reply_fetched.d.next =
            self.reply.fetched.val() | (self.reply_fetched.q.val() & self.prefetch.fetched.val());
        if self.prefetch.fetched.val() | self.reply_fetched.q.val() {
            self.fetched.d.next = self.count_fetch.val();
        }
        self.counter_events.reset.next = self.reset.val();
        self.counter_events.choosing.next = self.control.choosing.val();
        self.counter_events.telling.next = self.control.telling.val();
        self.counter_events.unmatched.next = self.check.unmatched.val();
        self.counter_events.dropped.next = self.check.dropped.val();
        self.counter_events.gap.next = self.check.gap.val();
        self.counter_events.empty.next = self.port.empty.val();
        self.counter_events.unreliable.next = self.port.unreliable.val();
        self.counter_events.range_refused.next = self.control.range_refused.val();
        self.counter_events.message_refused.next = self.message_sender.refuse.val();
        self.counts.next = self.counter_events.counts.val() | self.fetched.q.val();
        self.sampled.d.next = self.sample_armed.val() & (self.sample_vi.val() == self.dst_vi.val());
        self.empty_placed.next =
            self.control.matched.val() & (!self.data_length.q.val().any()) & self.last.q.val();
        self.stamps.d.next =
            bit_cast::<3, 1>((self.control.matched.val() & self.sampled.q.val()).into())
                | (bit_cast::<3, 1>(
                    ((self.empty_placed.val() & self.sampled.q.val())
                        | self.writer.data_stamp.val())
                    .into(),
                ) << 1)
                | (bit_cast::<3, 1>(self.writer.status_stamp.val().into()) << 2);
        self.stamp_matched.next = self.stamps.q.val().get_bit(0);
        self.stamp_data_written.next = self.stamps.q.val().get_bit(1);
        self.stamp_status_written.next = self.stamps.q.val().get_bit(2);
        self.writer.sampled.next = self.sampled.q.val();
        self.finish.sampled.next = self.sampled.q.val();
        if self.finish.packet.val() {
            self.writer.sampled.next = self.finish.packet_sampled.val();
        }
        self.quiet.next =
            self.scatter.quiet.val() & self.writer.empty.val() & self.finish.quiet.val();
        self.pausing.d.next = self.control.idle.val()
            & self.quiet.val()
            & self.prefetch.paused.val()
            & self.reply_idle.q.val()
            & self.fence.pause.val();
        self.fence.paused.next = self.pausing.q.val();

        // The frame's way.
        self.control.pause.next = self.fence.pause.val();
        self.control.ready.next = self.prefetch.ready.val() & self.reply_idle.q.val();
        self.control.valid.next = self.frame_fifo.valid.val();
        self.control.is_message.next = self.kinds.val().get_bit(4);
        self.control.is_request.next = self.is_request.val();
        self.control.alone.next = self.kinds.val().get_bit(4) | self.is_response.val();
        self.control.aged.next = self.frame_fifo.aged.val();
        self.control.some.next = self.some.q.val();
        self.control.is_write.next = self.is_write.val();
        self.control.has_immediate.next = self.has_immediate.q.val();
        self.control.empty.next = self.port.empty.val();
        self.control.follows.next = self.frame_fifo.follows.val();
        self.control.header_ready.next = self.range.ready.val();
        self.control.answered.next = self.range.answered.val();
        self.control.granted.next = self.range.granted.val();
        self.control.refusal.next = self.cause_rdma_write.val();
        if self.is_request.val() {
            self.control.refusal.next = self.cause_rdma_read.val();
        }
        self.control.first.next = self.first.val();
        self.control.last.next = self.last.q.val();
        self.control.dropped.next = self.check.dropped.val();
        self.control.acked.next = self.check.acked.val();
        self.control.writes.next = self.check.writes.val();
        self.control.replies.next = self.check.replies.val();
        self.control.partly.next = self.check.partial.val();
        self.control.replied.next = self.reply.done.val();
        self.control.reply_good.next = self.reply.good.val();
        self.control.reply_cause.next = self.reply.cause.val();
        self.control.gap.next = self.check.gap.val();
        self.control.stops.next = self.check.stops.val();
        self.control.takes.next = self.check.takes.val();
        self.control.breaks.next = self.check.breaks.val();
        self.control.judged.next = self.check.cause.val();
        self.control.busy.next = self.port.busy.val();
        self.control.unreliable.next = self.port.unreliable.val();
        self.control.too_long.next = self.port.too_long.val();
        self.control.short.next = self.prefetch.short.val() & (!self.port.too_long_anyway.val());
        self.port.total_bytes.next = self.prefetch.total.val();
        self.control.found.next = self.prefetch.found.val();
        self.control.serving.next = self.prefetch.serving.val();
        self.control.loaded.next = self.prefetch.loaded.val();
        self.control.outcome.next = self.prefetch.outcome.val();
        self.control.unreached.next = self.prefetch.unreached.val();
        self.control.done.next = self.port.done.val();
        self.control.quiet.next = self.quiet.val();
        self.control.closed.next = self.close.over.val();
        self.control.finishing.next = self.finish.busy.val();
        self.close.save.next = self.control.save.val();
        self.close.pop.next = self.control.pop.val();
        self.close.fail.next = self.control.fail.val();
        self.close.clear.next = self.control.clear.val();
        self.close.completes.next = self.verdict.completes.val();
        self.close.unreliable.next = self.port.unreliable.val();
        self.close.foreign.next = self.control.foreign.val();
        self.close.more.next = self.port.several.val();
        self.close.direct.next = self.control.choosing.val();
        self.close.next_ready.next = self.reply.next_ready.val() | (!self.is_response.val());
        self.close.done.next = self.port.done.val();
        self.close.went.next = self.port.popped.val();
        self.close.loaded.next = self.prefetch.loaded.val();
        if self.is_response.val() {
            self.close.loaded.next = self.reply.done.val();
        }
        self.close.handed.next = self.scatter.read.val();
        self.close.quiet.next = self.quiet.val();
        self.message_sender.start.next = self.control.message.val();
        self.message_sender.done.next = self.events.done.val();
        self.message_sender.refused.next = self.events.outcome.val() != 0;
        self.control.message_over.next = self.message_sender.over.val();

        // The rules.
        self.check.kinds.next = self.kinds.val();
        self.check.first.next = self.first.val();
        self.check.opening.next = self.frame_fifo.header2.val().get_bits::<8>(0) == 0;
        self.check.ours.next = self.port.ours.val();
        self.check.level_fits.next = self.port.level_fits.val();
        self.check.unreliable.next = self.port.unreliable.val();
        self.check.reception.next = self.port.reception.val();
        self.check.busy.next = self.port.busy.val();
        self.check.busy_write.next = self.port.busy_write.val();
        self.check.continues.next = self.port.continues.val();
        self.check.misfit.next = self.port.misfit.val();
        self.check.inconsistent.next = self.port.inconsistent.val();
        self.check.bad_read.next = self.port.bad_read.val();
        self.check.placed.next = self.port.progressed.val();
        self.check.empty.next = self.port.none.val();
        self.verdict.cause.next = self.control.cause.val();
        self.verdict.partial.next = self.control.partial.val();
        self.verdict.immediate.next = self.has_immediate.q.val();
        self.verdict.detail.next = self.word.val().get_bits::<8>(0);
        self.verdict.operation.next =
            (bit_cast::<3, 1>(self.control.telling.val().into()) << 1) | self.op_receive.val();
        if self.is_response.val() {
            self.verdict.operation.next = self.reply.operation.val();
        }

        // The VI table.
        self.port.header0.next = self.frame_fifo.header0.val();
        self.port.header1.next = self.frame_fifo.header1.val();
        self.port.header2.next = self.frame_fifo.header2.val();
        self.port.get.next = self.control.get.val();
        self.port.getting.next = self.control.getting.val();
        self.port.save.next = self.close.saving.val();
        self.port.acked.next = self.control.ack.val();
        self.port.pop.next = self.close.popping.val();
        self.port.stop.next = self.close.stopping.val();
        self.port.in_progress.next = self.control.in_progress.val();
        self.successor.next = self.prefetch.successor.val();
        if self.is_response.val() {
            self.successor.next = self.reply.successor.val();
        }
        self.port.successor.next = self.successor.val();
        self.port.reason.next = self.verdict.reason.val();
        self.port.stop_status.next = self.verdict.stop_status.val();
        self.port.is_data.next = self.is_data.val();
        self.port.is_write.next = self.is_write.val();
        self.port.is_request.next = self.is_request.val();
        self.port.is_response.next = self.is_response.val();
        self.port.address.next = self.range.address.val();
        self.port.handle.next = self.range.handle.val();
        self.port.length.next = self.data_length.q.val();
        self.port.declared.next = self.range.total.val();
        self.port.save_needs_ack.next = self.control.over.val() & self.wants_ack.q.val();
        self.port.is_refuse.next = self.kinds.val().get_bit(6);

        // The range of an RDMA frame.
        self.range.load.next = self.control.load.val();
        self.range.data.next = self.staging.data.val();
        self.range.plain.next = !(self.is_write.val() | self.is_request.val());
        self.range.word.next = self.word.val();
        self.range.ask.next = self.control.ask.val();
        self.range.allowed.next = self.port.allows.val().get_bit(0);
        self.range.rights.next = self.right_write.val();
        self.range.whole.next = self.first.val();
        if self.is_request.val() {
            self.range.allowed.next = self.port.allows.val().get_bit(1);
            self.range.rights.next = self.right_read.val();
            self.range.whole.next = true;
        }
        self.range.length.next = self.data_length.q.val();
        self.range.tag.next = self.port.tag.val();
        self.range.domain.next = self.port.domain.val();

        // The descriptor of a read.
        self.reply.want.next = self.control.reply.val();
        self.reply.again.next = self.close.want_next.val() & self.is_response.val();
        self.reply.pause.next = self.fence.pause.val() & self.control.idle.val();
        self.reply.last.next = self.last.q.val();
        self.reply.vi.next = self.dst_vi.val();
        self.reply.some.next = self.some.q.val();
        self.reply.tag.next = self.port.tag.val();
        self.reply.domain.next = self.port.domain.val();
        self.reply.region.next = self.port.region.val();
        self.reply.offset.next = self.port.offset.val();
        self.reply.hint.next = self.port.hint.val();
        self.reply.several.next = self.port.several.val();
        self.reply.whole.next = self.port.whole.val();
        self.reply.segment.next = self.scatter.segment.val();

        // Payload, status, messages.
        self.scatter.start.next = self.control.scatter.val();
        self.scatter.skip.next = self.port.placed.val();
        self.scatter.length.next = self.data_length.q.val();
        self.scatter.base.next = 0.into();
        self.scatter.segment_bus.next = self.prefetch.segment_bus.val();
        self.scatter.segment_length.next = self.prefetch.segment_length.val();
        if self.is_write.val() {
            self.scatter.skip.next = 0.into();
            self.scatter.base.next = self.rdma_beats.val();
            self.scatter.segment_bus.next = self.range.bus.val();
            self.scatter.segment_length.next = bit_cast::<32, 13>(self.data_length.q.val());
        } else if self.is_response.val() {
            self.scatter.segment_bus.next = self.reply.segment_bus.val();
            self.scatter.segment_length.next = self.reply.segment_length.val();
        }
        self.scatter.data.next = self.staging.data.val();
        self.scatter.full.next = self.writer.full.val();
        self.scatter.high.next = self.writer.high.val();
        self.succeeded.next = self.control.cause.val() == 0;
        self.finish.start.next = self.close.finish.val();
        self.finish.vi.next = self.dst_vi.val().get_bits::<10>(0);
        self.finish.bus.next = self.prefetch.bus.val();
        if self.is_response.val() {
            self.finish.bus.next = self.reply.bus.val();
        }
        self.finish.sends.next = self.is_response.val();
        self.finish.length.next = 0.into();
        if self.succeeded.val() {
            self.finish.length.next = self.port.whole.val().get_bits::<20>(0);
        }
        self.finish.status_word.next = self.verdict.status_word.val();
        self.finish.has_immediate.next = self.succeeded.val() & self.has_immediate.q.val();
        self.finish.immediate.next = self.word.val();
        self.finish.need_ack.next = self.succeeded.val() & self.wants_ack.q.val();
        self.finish.room.next =
            self.scatter.quiet.val() & (!self.writer.full.val()) & (!self.writer.high.val());
        self.finish.written.next = self.writer.status_written.val();
        self.writer.packet.next = self.scatter.packet.val() | self.finish.packet.val();
        self.writer.address.next = self.scatter.packet_address.val();
        self.writer.length.next = self.scatter.packet_length.val();
        self.writer.is_final.next = self.scatter.packet_final.val() & self.last.q.val();
        self.writer.is_status.next = self.finish.packet.val();
        self.writer.beat.next = self.scatter.beat_write.val() | self.finish.beat.val();
        self.writer.data.next = self.scatter.beat_data.val();
        self.writer.last.next = self.scatter.beat_last.val();
        if self.finish.beat.val() {
            self.writer.address.next = self.finish.address.val();
            self.writer.length.next = self.finish.packet_length.val();
            self.writer.is_final.next = false;
            self.writer.data.next = self.finish.data.val();
            self.writer.last.next = self.finish.last.val();
        }
        self.write.valid.next = self.writer.w_valid.val();
        self.write.req_valid.next = self.writer.req_valid.val();
        self.write.req_address.next = self.writer.req_address.val();
        self.write.req_length.next = self.writer.req_length.val();
        self.writer.req_ready.next = self.write.req_ready.val();
        self.write.data.next = self.writer.w_data.val();
        self.write.last.next = self.writer.w_last.val();
        self.writer.w_ready.next = self.write.ready.val();
        self.staging.address.next = self.scatter.address.val();
        if self.range.reading.val() {
            self.staging.address.next = self.range.beat.val();
        } else if self.message_sender.deliver.val() {
            self.staging.address.next = bit_cast::<10, 3>(self.events.message_index.val());
        }
        self.staging.origin.next = self.frame_fifo.base.val();
        self.staging.take.next = self.frame_fifo.take.val();
        self.staging.release.next = self.control.give_back.val();
        self.staging.refused.next = self.message_sender.refuse.val();
        self.events.valid.next = self.message_sender.deliver.val();
        self.events.queue.next = self.dst_vi.val();
        self.events.word0.next =
            self.event_message.val() | (bit_cast::<32, 8>(self.source.val()) << 16);
        self.events.word1.next = 0.into();
        self.events.word2.next = 0.into();
        self.events.wide.next = true;
        self.events.message_data.next = self.staging.data.val();

        // Fetching ahead.
        self.prefetch.posted.next = self.port.posted.val();
        self.prefetch.posted_vi.next = self.port.posted_vi.val();
        self.prefetch.pause.next = self.fence.pause.val();
        self.prefetch.frame.next = !self.control.idle.val();
        self.prefetch.vi.next = self.dst_vi.val();
        self.prefetch.tag.next = self.port.tag.val();
        self.prefetch.domain.next = self.port.domain.val();
        self.prefetch.region.next = self.port.region.val();
        self.prefetch.offset.next = self.port.offset.val();
        self.prefetch.segments.next = self.port.hint.val();
        self.prefetch.count.next = self.port.count.val();
        self.prefetch.want.next = self.control.want.val();
        self.prefetch.want_next.next = self.close.want_next.val() & (!self.is_response.val());
        self.prefetch.foreign.next = self.control.foreign.val();
        // A response takes nothing of the receive queue.
        self.prefetch.renewed.next = self.close.renewed.val() & (!self.is_response.val());
        self.prefetch.take.next = self.close.take.val() & (!self.is_response.val());
        self.prefetch.hint.next = self.close.hint.val() & (!self.is_response.val());
        self.prefetch.hold.next = self.close.hold.val() & (!self.is_response.val());
        self.prefetch.segment.next = self.scatter.segment.val();

        if self.reset.val() {
            self.pausing.d.next = false;
        }
    }
}
