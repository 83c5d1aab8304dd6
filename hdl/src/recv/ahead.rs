//! Descriptors ahead of the frames: what is at hand (`Shelf`), what to fetch (`Jobs`), and the
//! fetching (`Loader`).
//!
//! ```text
//! doorbells, pops (hints) -->+-------+--> the descriptor of the frame's VI, if it is at hand (`found`)
//!  the frame's `want` ------>| Ahead |--> look (the VI table)
//!                            +-------+<--> read, tpt
//! ```

use super::jobs::Jobs;
use super::loader::Loader;
use super::shelf::Shelf;
use crate::ifs::{ReadClient, TptClient};
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Ahead {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// See [`super::jobs`].
    pub pause: Signal<In, Bit>,
    pub paused: Signal<Out, Bit>,
    pub ready: Signal<Out, Bit>,
    /// Pulse: a receive descriptor was posted.
    pub posted: Signal<In, Bit>,
    pub posted_vi: Signal<In, Bits<16>>,
    // The frame: one is in hand, of this VI, whose context is below.
    pub frame: Signal<In, Bit>,
    pub vi: Signal<In, Bits<16>>,
    pub tag: Signal<In, Bits<16>>,
    pub domain: Signal<In, Bits<8>>,
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    pub segments: Signal<In, Bits<5>>,
    pub count: Signal<In, Bits<16>>,
    /// Its descriptor, or its Next again, is wanted / is the loader's result and not the shelf's.
    pub want: Signal<In, Bit>,
    pub want_next: Signal<In, Bit>,
    pub foreign: Signal<In, Bit>,
    pub renewed: Signal<In, Bit>,
    /// Pulses: its descriptor left the queue, others may be posted. See [`super::shelf`].
    pub take: Signal<In, Bit>,
    pub hint: Signal<In, Bit>,
    pub hold: Signal<In, Bit>,
    /// Its descriptor is at hand; what it is.
    pub found: Signal<Out, Bit>,
    pub total: Signal<Out, Bits<20>>,
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
    // GET of a hint's VI.
    pub look: Signal<Out, Bit>,
    pub look_vi: Signal<Out, Bits<16>>,
    pub look_done: Signal<In, Bit>,
    pub look_connected: Signal<In, Bit>,
    pub look_domain: Signal<In, Bits<8>>,
    pub look_tag: Signal<In, Bits<16>>,
    pub look_region: Signal<In, Bits<16>>,
    pub look_offset: Signal<In, Bits<26>>,
    pub look_hint: Signal<In, Bits<5>>,
    pub look_count: Signal<In, Bits<16>>,
    pub read: ReadClient,
    pub tpt: TptClient,
    found_at: DFF<Bit>,
    // A hint of the frame's that waits for those of doorbells.
    refill: DFF<Bit>,
    refill_vi: DFF<Bits<10>>,
    shelf: Shelf,
    jobs: Jobs,
    loader: Loader,
    bus_now: Signal<Local, Bits<64>>,
    put_after: Signal<Local, Bits<3>>,
    put_before: Signal<Local, Bits<3>>,
    row_valid: Number<14, { 1 << 13 }>,
}

impl Logic for Ahead {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, found_at, refill, refill_vi);
        clock!(self, clock, shelf, jobs, loader);
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
        self.look.next = self.jobs.look.val();
        self.look_vi.next = bit_cast::<16, 10>(self.jobs.vi.val());

        // The frame's descriptor.
        self.shelf.vi.next = self.vi.val().get_bits::<10>(0);
        self.shelf.take.next = self.take.val();
        self.shelf.hold.next = self.hold.val();
        self.shelf.segment.next = self.segment.val();
        self.found_at.d.next = self.shelf.ready.val()
            & (self.shelf.region.val() == self.region.val())
            & (self.shelf.offset.val() == self.offset.val());
        self.found.next = self.found_at.q.val();
        self.total.next = self.shelf.total.val();
        self.bus_now.next = self.shelf.bus.val();
        if self.foreign.val() {
            self.bus_now.next = self.loader.bus.val();
        }
        self.bus.next = self.bus_now.val();
        self.successor.next = self.shelf.successor.val();
        if self.foreign.val() | self.renewed.val() {
            self.successor.next = self.loader.successor.val();
        }
        self.segment_bus.next = self.shelf.segment_bus.val();
        self.segment_length.next = self.shelf.segment_length.val();

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
        self.jobs.frame_row.next = self.shelf.row.val();
        self.jobs.frame_vi.next = self.vi.val().get_bits::<10>(0);
        self.jobs.want.next = self.want.val();
        self.jobs.want_next.next = self.want_next.val();
        self.jobs.hold.next = self.foreign.val() | self.renewed.val();
        self.jobs.frame_tag.next = self.tag.val();
        self.jobs.frame_domain.next = self.domain.val();
        self.jobs.frame_region.next = self.region.val();
        self.jobs.frame_offset.next = self.offset.val();
        self.jobs.frame_hint.next = self.segments.val();
        self.jobs.frame_count.next = self.count.val();
        self.jobs.frame_bus.next = self.bus_now.val();
        self.jobs.look_done.next = self.look_done.val();
        self.jobs.look_connected.next = self.look_connected.val();
        self.jobs.look_domain.next = self.look_domain.val();
        self.jobs.look_tag.next = self.look_tag.val();
        self.jobs.look_region.next = self.look_region.val();
        self.jobs.look_offset.next = self.look_offset.val();
        self.jobs.look_hint.next = self.look_hint.val();
        self.jobs.look_count.next = self.look_count.val();
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
        self.loader.hurry.next = self.want.val() | self.want_next.val() | self.pause.val();
        self.shelf.fetch_vi.next = self.jobs.vi.val();
        self.put_after.next = self.shelf.put.val() + 1;
        self.put_before.next = self.shelf.put.val() - 1;
        self.shelf.row_write.next = self.jobs.row_write.val() | self.loader.entry_write.val();
        self.shelf.row_address.next = self.jobs.row_address.val();
        self.shelf.row_data.next = self.jobs.row_data.val();
        self.shelf.entry.next = (bit_cast::<7, 4>(self.shelf.fetch_row.val()) << 3)
            | bit_cast::<7, 3>(self.put_before.val());
        if self.loader.entry_write.val() {
            self.shelf.row_data.next = self.row_valid.val()
                | (bit_cast::<14, 10>(self.jobs.vi.val()) << 3)
                | bit_cast::<14, 3>(self.put_after.val());
        }
        if self.loader.entry_write.val() | self.loader.segment_write.val() {
            self.shelf.entry.next = (bit_cast::<7, 4>(self.shelf.fetch_row.val()) << 3)
                | bit_cast::<7, 3>(self.shelf.put.val());
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
            self.refill.d.next = false;
        }
    }
}
