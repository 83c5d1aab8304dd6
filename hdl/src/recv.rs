//! Receive engine: takes frames from staging, oldest first (contract 5, 6.1, 7.8, 8).
//!
//! ```text
//! staging -->+---------+-> Port <--> vi
//!            | Control |-> Scatter --> Writer --> write (payload, status)
//!   fence -->|         |-> Finish  ---'
//!  events <--+---------+-> Shelf <-- Jobs, Loader <--> desc_read, desc_tpt
//! ```
//! `Control` follows the frame at the head, `Judge` and `Verdict` are the contract's rules, `Port`
//! holds the VI's context. Descriptors are fetched ahead of the frames (`Jobs`, `Loader`) and wait,
//! resolved, on the `Shelf`. A frame is released only when its effect is complete; nothing here
//! waits for an event queue or for the link (nic.md 2).

mod buffer;
mod control;
mod extent;
mod finish;
mod jobs;
mod judge;
mod loader;
mod loader_state;
mod pieces;
mod port;
mod reader;
mod resolver;
mod scatter;
mod shelf;
mod state;
mod successor;
mod verdict;
mod writer;
pub use loader_state::Outcome;
pub use pieces::Pieces;
pub use verdict::Cause;

use crate::ifs::{
    EventClient, FenceServer, ReadClient, StagingClient, TptClient, ViRecvClient, WriteClient,
};
use crate::leaf::Number;
use control::Control;
use finish::Finish;
use jobs::Jobs;
use judge::Judge;
use loader::Loader;
use nic_regs::counter::Counter;
use nic_regs::event::Kind;
use nic_regs::frame::Type;
use port::Port;
use rust_hdl::prelude::*;
use scatter::Scatter;
use shelf::Shelf;
use verdict::Verdict;
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
    pub write: WriteClient,
    pub events: EventClient,
    pub fence: FenceServer,
    pub desc_read: ReadClient,
    pub desc_tpt: TptClient,
    pausing: DFF<Bit>,
    sampled: DFF<Bit>,
    found: DFF<Bit>,
    fetched: DFF<Bits<64>>,
    // A hint of the frame's that waits for those of doorbells.
    refill: DFF<Bit>,
    refill_vi: DFF<Bits<10>>,
    control: Control,
    port: Port,
    judge: Judge,
    verdict: Verdict,
    scatter: Scatter,
    finish: Finish,
    writer: Writer,
    shelf: Shelf,
    jobs: Jobs,
    loader: Loader,
    // The header's fields.
    kind: Signal<Local, Bits<8>>,
    length: Signal<Local, Bits<13>>,
    source: Signal<Local, Bits<8>>,
    dst_vi: Signal<Local, Bits<16>>,
    word: Signal<Local, Bits<32>>,
    first: Signal<Local, Bit>,
    last: Signal<Local, Bit>,
    quiet: Signal<Local, Bit>,
    succeeded: Signal<Local, Bit>,
    bus: Signal<Local, Bits<64>>,
    successor: Signal<Local, Bits<43>>,
    put_after: Signal<Local, Bits<3>>,
    put_before: Signal<Local, Bits<3>>,
    kind_data: Number<8, { Type::Data as u64 }>,
    kind_refuse: Number<8, { Type::ViRefuse as u64 }>,
    event_message: Number<32, { Kind::Message as u64 }>,
    one: Number<16, 1>,
    row_valid: Number<14, { 1 << 13 }>,
    count_fetch: Number<64, { 1 << Counter::DescriptorsFetched as u32 }>,
}

impl Logic for Recv {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, pausing, sampled, found, fetched, refill, refill_vi);
        clock!(self, clock, control, port, scatter, finish, writer, shelf, jobs, loader);
        self.control.reset.next = self.reset.val();
        self.port.reset.next = self.reset.val();
        self.scatter.reset.next = self.reset.val() | self.control.cancel.val();
        self.finish.reset.next = self.reset.val();
        self.writer.reset.next = self.reset.val();
        self.jobs.reset.next = self.reset.val();
        self.loader.reset.next = self.reset.val();
        ReadClient::link(&mut self.desc_read, &mut self.loader.read);
        TptClient::link(&mut self.desc_tpt, &mut self.loader.tpt);
        ViRecvClient::link(&mut self.vi, &mut self.port.vi);

        // The header, which staging holds stable.
        self.kind.next = self.staging.header0.val().get_bits::<8>(8);
        self.length.next = self.staging.header0.val().get_bits::<13>(16);
        self.source.next = self.staging.header0.val().get_bits::<8>(32);
        self.dst_vi.next = self.staging.header1.val().get_bits::<16>(0);
        self.first.next = self.staging.header1.val().get_bit(48);
        self.last.next = self.staging.header1.val().get_bit(49);
        self.word.next = self.staging.header2.val().get_bits::<32>(32);

        // Counters, stamps, fence.
        self.fetched.d.next = 0.into();
        if self.loader.fetched.val() {
            self.fetched.d.next = self.count_fetch.val();
        }
        self.counts.next = self.control.counts.val() | self.fetched.q.val();
        self.sampled.d.next = self.sample_armed.val() & (self.sample_vi.val() == self.dst_vi.val());
        self.stamp_matched.next = self.control.matched.val() & self.sampled.q.val();
        self.stamp_data_written.next =
            (self.control.empty_placed.val() & self.sampled.q.val()) | self.writer.data_stamp.val();
        self.stamp_status_written.next = self.writer.status_stamp.val();
        self.writer.sampled.next = self.sampled.q.val();
        self.quiet.next =
            self.scatter.quiet.val() & self.writer.empty.val() & self.finish.quiet.val();
        self.pausing.d.next = self.control.idle.val()
            & self.quiet.val()
            & self.jobs.paused.val()
            & self.fence.pause.val();
        self.fence.paused.next = self.pausing.q.val();

        // The frame's way.
        self.control.pause.next = self.fence.pause.val();
        self.control.ready.next = self.jobs.ready.val();
        self.control.valid.next = self.staging.valid.val();
        self.control.kind.next = self.kind.val();
        self.control.length.next = self.length.val();
        self.control.first.next = self.first.val();
        self.control.last.next = self.last.val();
        self.control.unmatched.next = self.judge.unmatched.val();
        self.control.dropped.next = self.judge.dropped.val();
        self.control.acked.next = self.judge.acked.val();
        self.control.gap.next = self.judge.gap.val();
        self.control.stops.next = self.judge.stops.val();
        self.control.takes.next = self.judge.takes.val();
        self.control.breaks.next = self.judge.breaks.val();
        self.control.judged.next = self.judge.cause.val();
        self.control.busy.next = self.port.busy.val();
        self.control.unreliable.next = self.port.unreliable.val();
        self.control.whole.next = self.port.whole.val();
        self.control.total.next = self.shelf.total.val();
        self.control.more.next = self.port.count.val() > self.one.val();
        self.control.found.next = self.found.q.val();
        self.control.serving.next = self.jobs.serving.val();
        self.control.loaded.next = self.loader.done.val();
        self.control.outcome.next = self.loader.outcome.val();
        self.control.unreached.next = self.loader.unreached.val();
        self.control.done.next = self.port.done.val();
        self.control.need_next.next = self.port.need_next.val();
        self.control.handed.next = self.scatter.quiet.val() & (!self.finish.busy.val());
        self.control.quiet.next = self.quiet.val();
        self.control.completes.next = self.verdict.completes.val();
        self.control.message_done.next = self.events.done.val();
        self.control.message_refused.next = self.events.outcome.val() != 0;

        // The rules.
        self.judge.kind.next = self.kind.val();
        self.judge.first.next = self.first.val();
        self.judge.opening.next = self.staging.header2.val().get_bits::<8>(0) == 0;
        self.judge.ours.next = self.port.ours.val();
        self.judge.level_fits.next = self.port.level_fits.val();
        self.judge.unreliable.next = self.port.unreliable.val();
        self.judge.reception.next = self.port.reception.val();
        self.judge.busy.next = self.port.busy.val();
        self.judge.continues.next = self.port.continues.val();
        self.judge.misfit.next = self.port.misfit.val();
        self.judge.inconsistent.next = self.port.inconsistent.val();
        self.judge.empty.next = self.port.count.val() == 0;
        self.verdict.cause.next = self.control.cause.val();
        self.verdict.partial.next = self.control.partial.val();
        self.verdict.immediate.next = self.last.val() & self.staging.header1.val().get_bit(50);

        self.successor.next = self.shelf.successor.val();
        if self.control.foreign.val() | self.control.renewed.val() {
            self.successor.next = self.loader.successor.val();
        }

        // The VI table.
        self.port.header0.next = self.staging.header0.val();
        self.port.header1.next = self.staging.header1.val();
        self.port.header2.next = self.staging.header2.val();
        self.port.get.next = self.control.get.val();
        self.port.save.next = self.control.save.val();
        self.port.acked.next = self.control.ack.val();
        self.port.pop.next = self.control.pop.val();
        self.port.stop.next = self.control.stop.val();
        self.port.complete.next = self.finish.call.val();
        self.port.complete_vi.next = self.finish.call_vi.val();
        self.port.look.next = self.jobs.look.val();
        self.port.look_vi.next = bit_cast::<16, 10>(self.jobs.vi.val());
        self.port.in_progress.next = self.control.in_progress.val();
        self.port.next_region.next = self.successor.val().get_bits::<16>(0);
        self.port.next_offset.next = self.successor.val().get_bits::<26>(16);
        self.port.next_valid.next = self.successor.val().get_bit(42);
        self.port.owe_ack.next = self.finish.call_owe_ack.val();
        self.port.reason.next = self.verdict.reason.val();
        self.port.stop_status.next = self.verdict.stop_status.val();
        self.port.is_data.next = self.kind.val() == self.kind_data.val();
        self.port.is_refuse.next = self.kind.val() == self.kind_refuse.val();

        // The descriptor.
        self.shelf.vi.next = self.dst_vi.val().get_bits::<10>(0);
        self.shelf.take.next = self.control.take.val();
        self.shelf.hold.next = self.control.hold.val();
        self.shelf.segment.next = self.scatter.segment.val();
        self.found.d.next = self.shelf.ready.val()
            & (self.shelf.region.val() == self.port.region.val())
            & (self.shelf.offset.val() == self.port.offset.val());
        self.bus.next = self.shelf.bus.val();
        if self.control.foreign.val() {
            self.bus.next = self.loader.bus.val();
        }

        // Payload, status, messages.
        self.scatter.start.next = self.control.scatter.val();
        self.scatter.skip.next = self.port.placed.val();
        self.scatter.length.next = self.length.val();
        self.scatter.segment_bus.next = self.shelf.segment_bus.val();
        self.scatter.segment_length.next = self.shelf.segment_length.val();
        self.scatter.data.next = self.staging.data.val();
        self.scatter.full.next = self.writer.full.val();
        self.scatter.high.next = self.writer.high.val();
        self.succeeded.next = self.control.cause.val() == 0;
        self.finish.start.next = self.control.finish.val();
        self.finish.vi.next = self.dst_vi.val();
        self.finish.bus.next = self.bus.val();
        self.finish.length.next = 0.into();
        if self.succeeded.val() {
            self.finish.length.next = self.port.whole.val().get_bits::<20>(0);
        }
        self.finish.status_word.next = self.verdict.status_word.val();
        self.finish.has_immediate.next =
            self.succeeded.val() & self.last.val() & self.staging.header1.val().get_bit(50);
        self.finish.immediate.next = self.word.val();
        self.finish.owe_ack.next = self.succeeded.val() & self.staging.header1.val().get_bit(52);
        self.finish.room.next =
            self.scatter.quiet.val() & (!self.writer.full.val()) & (!self.writer.high.val());
        self.finish.written.next = self.writer.status_written.val();
        self.finish.call_done.next = self.port.complete_done.val();
        self.writer.packet.next = self.scatter.packet.val() | self.finish.packet.val();
        self.writer.address.next = self.scatter.packet_address.val();
        self.writer.length.next = self.scatter.packet_length.val();
        self.writer.is_final.next = self.scatter.packet_final.val() & self.last.val();
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
        self.write.address.next = self.writer.w_address.val();
        self.write.length.next = self.writer.w_length.val();
        self.write.data.next = self.writer.w_data.val();
        self.write.last.next = self.writer.w_last.val();
        self.writer.w_ready.next = self.write.ready.val();
        self.staging.address.next = self.scatter.address.val();
        if self.control.message.val() {
            self.staging.address.next = bit_cast::<10, 3>(self.events.message_index.val());
        }
        // One frame at a time.
        self.staging.origin.next = self.staging.base.val();
        self.staging.take.next = false;
        self.staging.release.next = self.control.give_back.val();
        self.staging.refused.next = self.control.refuse.val();
        self.events.valid.next = self.control.message.val();
        self.events.queue.next = self.dst_vi.val();
        self.events.word0.next =
            self.event_message.val() | (bit_cast::<32, 8>(self.source.val()) << 16);
        self.events.word1.next = 0.into();
        self.events.word2.next = 0.into();
        self.events.wide.next = true;
        self.events.message_data.next = self.staging.data.val();

        // Fetching ahead: hints of doorbells go first, the frame's waits.
        self.jobs.hint.next = self.port.posted.val() | self.refill.q.val();
        self.jobs.hint_vi.next = self.refill_vi.q.val();
        if self.port.posted.val() {
            self.jobs.hint_vi.next = self.port.posted_vi.val().get_bits::<10>(0);
        } else {
            self.refill.d.next = false;
        }
        if self.control.hint.val() {
            self.refill.d.next = true;
            self.refill_vi.d.next = self.dst_vi.val().get_bits::<10>(0);
        }
        self.jobs.pause.next = self.fence.pause.val();
        self.jobs.frame.next = !self.control.idle.val();
        self.jobs.frame_row.next = self.shelf.row.val();
        self.jobs.frame_vi.next = self.dst_vi.val().get_bits::<10>(0);
        self.jobs.want.next = self.control.want.val();
        self.jobs.want_next.next = self.control.want_next.val();
        self.jobs.hold.next = self.control.foreign.val() | self.control.renewed.val();
        self.jobs.frame_tag.next = self.port.tag.val();
        self.jobs.frame_domain.next = self.port.domain.val();
        self.jobs.frame_region.next = self.port.region.val();
        self.jobs.frame_offset.next = self.port.offset.val();
        self.jobs.frame_hint.next = self.port.hint.val();
        self.jobs.frame_count.next = self.port.count.val();
        self.jobs.frame_bus.next = self.bus.val();
        self.jobs.look_done.next = self.port.look_done.val();
        self.jobs.look_connected.next = self.port.look_connected.val();
        self.jobs.look_domain.next = self.port.look_domain.val();
        self.jobs.look_tag.next = self.port.look_tag.val();
        self.jobs.look_region.next = self.port.look_region.val();
        self.jobs.look_offset.next = self.port.look_offset.val();
        self.jobs.look_hint.next = self.port.look_hint.val();
        self.jobs.look_count.next = self.port.look_count.val();
        self.jobs.row.next = self.shelf.fetch_row.val();
        self.jobs.owned.next = self.shelf.owned.val();
        self.jobs.ours.next = self.shelf.ours.val();
        self.jobs.put.next = self.shelf.put.val();
        self.jobs.taken.next = self.shelf.taken.val();
        self.jobs.idle.next = self.loader.idle.val();
        self.jobs.tail_write.next = self.loader.tail_write.val();
        self.jobs.tail_bus.next = self.loader.bus.val();
        self.jobs.tail_successor.next = self.loader.successor.val();
        self.loader.start.next = self.jobs.start.val();
        self.loader.serving.next = self.jobs.serving.val();
        self.loader.again.next = self.jobs.again.val();
        self.loader.resume.next = self.jobs.resume.val();
        self.loader.follow.next = self.jobs.follow.val();
        self.loader.forget.next = self.jobs.forget.val();
        self.jobs.resumable.next = self.loader.resumable.val();
        self.loader.job_bus.next = self.jobs.bus.val();
        self.loader.tag.next = self.jobs.tag.val();
        self.loader.domain.next = self.jobs.domain.val();
        self.loader.region.next = self.jobs.region.val();
        self.loader.offset.next = self.jobs.offset.val();
        self.loader.segments.next = self.jobs.segments.val();
        self.loader.covered.next = self.jobs.covered.val();
        self.loader.room.next = self.jobs.room.val();
        self.loader.hurry.next =
            self.control.want.val() | self.control.want_next.val() | self.fence.pause.val();
        self.shelf.fetch_vi.next = self.jobs.vi.val();
        self.put_after.next = self.shelf.put.val() + 1;
        self.put_before.next = self.shelf.put.val() - 1;
        self.shelf.row_write.next = self.jobs.row_write.val() | self.loader.entry_write.val();
        self.shelf.row_address.next = self.jobs.row_address.val();
        self.shelf.row_data.next = self.jobs.row_data.val();
        self.shelf.entry.next = (bit_cast::<6, 4>(self.shelf.fetch_row.val()) << 2)
            | bit_cast::<6, 2>(self.put_before.val().get_bits::<2>(0));
        if self.loader.entry_write.val() {
            self.shelf.row_data.next = self.row_valid.val()
                | (bit_cast::<14, 10>(self.jobs.vi.val()) << 3)
                | bit_cast::<14, 3>(self.put_after.val());
        }
        if self.loader.entry_write.val() | self.loader.segment_write.val() {
            self.shelf.entry.next = (bit_cast::<6, 4>(self.shelf.fetch_row.val()) << 2)
                | bit_cast::<6, 2>(self.shelf.put.val().get_bits::<2>(0));
        }
        self.shelf.head_write.next = self.loader.entry_write.val();
        self.shelf.head_bus.next = self.loader.bus.val();
        self.shelf.head_data.next = self.loader.entry_data.val();
        self.shelf.successor_write.next = self.loader.successor_write.val();
        self.shelf.successor_data.next = self.loader.successor.val();
        self.shelf.segment_write.next = self.loader.segment_write.val();
        self.shelf.segment_number.next = self.loader.segment_number.val();
        self.shelf.segment_write_bus.next = self.loader.segment_bus.val();
        self.shelf.segment_write_length.next = self.loader.segment_length.val();

        if self.reset.val() {
            self.pausing.d.next = false;
            self.refill.d.next = false;
        }
    }
}
