//! Descriptors ahead of the frames: what is cached (`DescCache`), what to fetch (`Jobs`, `PrefetchTarget`), and
//! the fetching (`Loader`).
//!
//! ```text
//! doorbells, pops (hints) -->+----------+--> the descriptor of the frame's VI, if cached (`found`)
//!  the frame's `want` ------>| Prefetch |--> look (the VI table)
//!                            +----------+<--> read, tpt
//! ```

use super::desc_cache::DescCache;
use super::jobs::Jobs;
use super::loader::Loader;
use super::prefetch_target::PrefetchTarget;
use crate::ifs::{ReadClient, TptClient, ViLookClient};
use crate::leaf::Number;
use nic_regs::vi::State;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Prefetch {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// See [`super::jobs`].
    pub pause: Signal<In, Bit>,
    pub paused: Signal<Out, Bit>,
    pub ready: Signal<Out, Bit>,
    /// Pulse: a receive descriptor was posted.
    pub posted: Signal<In, Bit>,
    pub posted_vi: Signal<In, Bits<16>>,
    /// A frame for this VI waits; see `super::frame_fifo`.
    pub peek: Signal<In, Bit>,
    pub peek_vi: Signal<In, Bits<10>>,
    pub peeked: Signal<Out, Bit>,
    // The frame: one is in flight, of this VI, whose context is below.
    pub frame: Signal<In, Bit>,
    pub vi: Signal<In, Bits<16>>,
    pub tag: Signal<In, Bits<16>>,
    pub domain: Signal<In, Bits<8>>,
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    pub segments: Signal<In, Bits<5>>,
    pub count: Signal<In, Bits<16>>,
    /// Its descriptor, or its Next again, is wanted / is the loader's result and not the descriptor cache's.
    pub want: Signal<In, Bit>,
    pub want_next: Signal<In, Bit>,
    pub foreign: Signal<In, Bit>,
    pub renewed: Signal<In, Bit>,
    /// Pulses: its descriptor left the queue, others may be posted. See [`super::desc_cache`].
    pub take: Signal<In, Bit>,
    pub hint: Signal<In, Bit>,
    pub hold: Signal<In, Bit>,
    /// Its descriptor is cached; what it is.
    pub found: Signal<Out, Bit>,
    pub total: Signal<Out, Bits<20>>,
    pub short: Signal<Out, Bit>,
    pub bus: Signal<Out, Bits<64>>,
    /// Valid 42, offset 41:16, region 15:0.
    pub successor: Signal<Out, Bits<43>>,
    pub segment: Signal<In, Bits<4>>,
    pub segment_bus: Signal<Out, Bits<64>>,
    pub segment_length: Signal<Out, Bits<32>>,
    // The answer to `want`; see `super::loader`.
    pub serving: Signal<Out, Bit>,
    pub loaded: Signal<Out, Bit>,
    pub outcome: Signal<Out, Bits<3>>,
    pub unreached: Signal<Out, Bit>,
    pub fetched: Signal<Out, Bit>,
    /// What a hint's VI has posted.
    pub vi_look: ViLookClient,
    pub read: ReadClient,
    pub tpt: TptClient,
    found_at: DFF<Bit>,
    // A hint of the frame's that waits for those of doorbells.
    refill: DFF<Bit>,
    refill_vi: DFF<Bits<10>>,
    desc_cache: DescCache,
    jobs: Jobs,
    prefetch_target: PrefetchTarget,
    loader: Loader,
    bus_now: Signal<Local, Bits<64>>,
    row_valid: Number<14, { 1 << 13 }>,
    state_connected: Number<2, { State::Connected as u64 }>,
}

impl Logic for Prefetch {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, found_at, refill, refill_vi);
        clock!(self, clock, desc_cache, jobs, prefetch_target, loader);
        self.jobs.reset.next = self.reset.val();
        self.loader.reset.next = self.reset.val();
        ReadClient::link(&mut self.read, &mut self.loader.read);
        TptClient::link(&mut self.tpt, &mut self.loader.tpt);
        self.paused.next = self.jobs.paused.val();
        self.ready.next = self.jobs.ready.val();
        self.serving.next = self.jobs.serving.val();
        self.loaded.next = self.loader.done.val();
        self.outcome.next = self.loader.outcome.val();
        self.unreached.next = self.loader.unreached.val();
        self.fetched.next = self.loader.fetched.val();
        self.vi_look.valid.next = self.jobs.look.val();
        self.vi_look.vi.next = self.jobs.vi.val();

        // The frame's descriptor.
        self.desc_cache.vi.next = self.vi.val().get_bits::<10>(0);
        self.desc_cache.take.next = self.take.val();
        self.desc_cache.hold.next = self.hold.val();
        self.desc_cache.segment.next = self.segment.val();
        self.found_at.d.next = self.desc_cache.ready.val()
            & (self.desc_cache.region.val() == self.region.val())
            & (self.desc_cache.offset.val() == self.offset.val());
        self.found.next = self.found_at.q.val();
        self.total.next = self.desc_cache.total.val();
        self.short.next = self.desc_cache.short.val();
        self.bus_now.next = self.desc_cache.bus.val();
        if self.foreign.val() {
            self.bus_now.next = self.loader.bus.val();
        }
        self.bus.next = self.bus_now.val();
        self.successor.next = self.desc_cache.successor.val();
        if self.foreign.val() | self.renewed.val() {
            self.successor.next = self.loader.successor.val();
        }
        self.segment_bus.next = self.desc_cache.segment_bus.val();
        self.segment_length.next = self.desc_cache.segment_length.val();

        // Hints of doorbells go first, the frame's waits.
        self.jobs.hint.next = self.posted.val() | self.refill.q.val();
        self.jobs.hint_vi.next = self.refill_vi.q.val();
        if self.posted.val() {
            self.jobs.hint_vi.next = self.posted_vi.val().get_bits::<10>(0);
        } else {
            self.refill.d.next = false;
        }
        if self.hint.val() {
            self.refill.d.next = true;
            self.refill_vi.d.next = self.vi.val().get_bits::<10>(0);
        }
        self.jobs.pause.next = self.pause.val();
        self.jobs.frame.next = self.frame.val();
        self.jobs.frame_row.next = self.desc_cache.row.val();
        self.jobs.frame_vi.next = self.vi.val().get_bits::<10>(0);
        self.jobs.want.next = self.want.val();
        self.jobs.want_next.next = self.want_next.val();
        self.jobs.hold.next = self.foreign.val() | self.renewed.val();
        self.prefetch_target.frame_tag.next = self.tag.val();
        self.prefetch_target.frame_domain.next = self.domain.val();
        self.prefetch_target.frame_region.next = self.region.val();
        self.prefetch_target.frame_offset.next = self.offset.val();
        self.prefetch_target.frame_hint.next = self.segments.val();
        self.prefetch_target.frame_count.next = self.count.val();
        self.prefetch_target.frame_bus.next = self.bus_now.val();
        self.jobs.look_done.next = self.vi_look.done.val();
        self.prefetch_target.look_connected.next =
            self.vi_look.state.val() == self.state_connected.val();
        self.prefetch_target.look_domain.next = self.vi_look.domain.val();
        self.prefetch_target.look_tag.next = self.vi_look.tag.val();
        self.prefetch_target.look_region.next = self.vi_look.region.val();
        self.prefetch_target.look_offset.next = self.vi_look.offset.val();
        self.prefetch_target.look_hint.next = self.vi_look.segments.val();
        self.prefetch_target.look_count.next = self.vi_look.count.val();
        self.jobs.find_row.next = self.desc_cache.find_row.val();
        self.jobs.peek.next = self.peek.val();
        self.jobs.peek_vi.next = self.peek_vi.val();
        self.peeked.next = self.jobs.peeked.val();
        self.desc_cache.find_vi.next = self.jobs.find_vi.val();
        self.desc_cache.fetch_row.next = self.jobs.row.val();
        self.desc_cache.where_write.next = self.jobs.where_write.val();
        self.jobs.owned.next = self.desc_cache.owned.val();
        self.jobs.ours.next = self.desc_cache.ours.val();
        self.jobs.put.next = self.desc_cache.put.val();
        self.jobs.taken.next = self.desc_cache.taken.val();
        self.jobs.idle.next = self.loader.idle.val();
        self.jobs.predictable.next = self.loader.predictable.val();
        self.prefetch_target.near.next = self.loader.near.val();
        self.jobs.served.next = self.loader.done.val();
        self.jobs.lost.next = self.loader.lost.val();
        self.jobs.lost_row.next = self.loader.lost_row.val();
        self.jobs.lost_stream.next = self.loader.lost_stream.val();
        self.jobs.ended.next = self.loader.ended.val();
        self.jobs.ended_vi.next = self.loader.ended_vi.val();
        self.jobs.ended_stream.next = self.loader.ended_stream.val();
        self.jobs.confirms.next = self.loader.confirms.val();
        self.jobs.more.next = self.loader.more.val();
        self.jobs.segments.next = self.loader.hint.val();
        self.prefetch_target.segments.next = self.loader.hint.val();
        self.jobs.ended_row.next = self.loader.ended_row.val();
        self.prefetch_target.tail_write.next = self.loader.tail_write.val();
        self.prefetch_target.tail_row.next = self.loader.row.val();
        self.prefetch_target.tail_bus.next = self.loader.tail_bus.val();
        self.prefetch_target.tail_successor.next = self.loader.tail_successor.val();
        self.prefetch_target.take_frame.next = self.jobs.take_frame.val();
        self.prefetch_target.take_look.next = self.jobs.look.val();
        self.prefetch_target.weigh.next = self.jobs.weigh.val();
        self.prefetch_target.longer.next = self.jobs.longer.val();
        self.prefetch_target.proceed.next = self.jobs.proceed.val();
        self.prefetch_target.free.next = self.jobs.room.val();
        self.prefetch_target.ordered.next = self.jobs.ordered.val();
        self.jobs.many.next = self.prefetch_target.many.val();
        self.prefetch_target.vi.next = self.jobs.vi.val();
        self.prefetch_target.row.next = self.jobs.row.val();
        self.prefetch_target.behind.next = self.jobs.behind.val();
        self.prefetch_target.taken.next = self.desc_cache.taken.val();
        self.prefetch_target.serving.next = self.jobs.serving.val();
        self.prefetch_target.predicted.next = self.jobs.predicted.val();
        self.prefetch_target.single.next = self.jobs.single.val();
        self.prefetch_target.resumes.next = self.jobs.resumes.val();
        self.prefetch_target.more_segments.next = self.jobs.more_segments.val();
        self.jobs.connected.next = self.prefetch_target.connected.val();
        self.jobs.enough.next = self.prefetch_target.enough.val();
        self.jobs.unlinked.next = self.prefetch_target.unlinked.val();
        self.jobs.wanted.next = self.prefetch_target.wanted.val();
        self.loader.order.next = self.jobs.order.val();
        self.loader.renew.next = self.jobs.again.val();
        self.loader.predicted.next = self.jobs.predicted.val();
        self.loader.stream.next = self.jobs.stream.val();
        self.loader.region.next = self.prefetch_target.region.val();
        self.loader.offset.next = self.prefetch_target.offset.val();
        self.loader.job_bus.next = self.prefetch_target.bus.val();
        self.loader.wanted.next = self.prefetch_target.wanted.val();
        self.loader.owner.next = self.prefetch_target.owner.val();
        self.loader.serving.next = self.jobs.serving.val();
        self.loader.hurry.next = self.jobs.hurry.val();
        self.loader.forget.next = self.jobs.forget.val();
        self.loader.row_busy.next = self.jobs.row_busy.val();

        // Entries are written before they are offered.
        self.desc_cache.fetch_vi.next = self.jobs.vi.val();
        self.desc_cache.row_write.next = self.jobs.row_write.val() | self.loader.offer.val();
        self.desc_cache.row_address.next = self.jobs.row_address.val();
        self.desc_cache.row_data.next = self.jobs.row_data.val();
        if self.loader.offer.val() {
            self.desc_cache.row_address.next = self.loader.row.val();
            self.desc_cache.row_data.next =
                self.row_valid.val() | bit_cast::<14, 13>(self.loader.offer_data.val());
        }
        self.desc_cache.entry.next = (bit_cast::<7, 4>(self.loader.row.val()) << 3)
            | bit_cast::<7, 3>(self.loader.place.val());
        self.desc_cache.head_write.next = self.loader.entry_write.val();
        self.desc_cache.head_bus.next = self.loader.bus.val();
        self.desc_cache.head_data.next = self.loader.entry_data.val();
        self.desc_cache.successor_write.next = self.loader.successor_write.val();
        self.desc_cache.successor_data.next = self.loader.successor.val();
        self.desc_cache.segment_write.next = self.loader.segment_write.val();
        self.desc_cache.segment_number.next = self.loader.segment_number.val();
        self.desc_cache.segment_write_bus.next = self.loader.segment_bus.val();
        self.desc_cache.segment_write_length.next = self.loader.segment_length.val();

        if self.reset.val() {
            self.refill.d.next = false;
        }
    }
}
