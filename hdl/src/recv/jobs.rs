//! What to fetch: decides when a descriptor is wanted, and which.
//!
//! ```text
//! wanted (the frame's) --> +------+ --> start, token, ... --> Loader
//! hints (VIs)          --> | Jobs | <-- idle
//!         look, ... <----> +------+ --> rows of the shelf
//! ```
//! A *hint* is a VI whose queue may have descriptors that are not at hand: one was posted, or one
//! was used up. Its context is read, and the loader fetches behind what is there. A hint that
//! cannot be kept is lost; the frame then asks itself.
//!
//! ```text
//! Clear (16 rows) -> Idle or Paused;  Idle -> Want -> Start -> Run -> Idle    (the frame's descriptor)
//! Idle -> Row -> [Look -> Weigh ->] Start -> Run -> Idle                        (a hint)
//! Idle -> Start (again) -> Run -> Idle                                        (the frame's Next)
//! ```

use crate::leaf::{Fifo, LutRam, Number};
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum JobState {
    /// Empties a row a cycle.
    Clear,
    /// The engine is at a fence.
    Paused,
    /// Waits for work.
    Idle,
    /// Claims the row for the frame's VI.
    Want,
    /// Claims the row for a hint's VI, if it is free or its own.
    Row,
    /// Reads the VI's context.
    Look,
    /// Compares it with what is at hand.
    Weigh,
    /// Starts the loader.
    Start,
    /// Waits for it.
    Run,
}

#[derive(LogicBlock, Default)]
pub struct Jobs {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: a hint.
    pub hint: Signal<In, Bit>,
    pub hint_vi: Signal<In, Bits<10>>,
    /// The engine is at a fence: forget everything.
    pub pause: Signal<In, Bit>,
    pub paused: Signal<Out, Bit>,
    /// Everything is forgotten: frames may come.
    pub ready: Signal<Out, Bit>,
    // The frame: in hand, of this row; wants its descriptor, or its Next again; uses the results.
    pub frame: Signal<In, Bit>,
    pub frame_row: Signal<In, Bits<4>>,
    pub frame_vi: Signal<In, Bits<10>>,
    pub want: Signal<In, Bit>,
    pub want_next: Signal<In, Bit>,
    pub hold: Signal<In, Bit>,
    pub frame_tag: Signal<In, Bits<16>>,
    pub frame_domain: Signal<In, Bits<8>>,
    pub frame_region: Signal<In, Bits<16>>,
    pub frame_offset: Signal<In, Bits<26>>,
    pub frame_hint: Signal<In, Bits<5>>,
    pub frame_count: Signal<In, Bits<16>>,
    pub frame_bus: Signal<In, Bits<64>>,
    // The VI table.
    pub look: Signal<Out, Bit>,
    pub look_done: Signal<In, Bit>,
    pub look_connected: Signal<In, Bit>,
    pub look_domain: Signal<In, Bits<8>>,
    pub look_tag: Signal<In, Bits<16>>,
    pub look_region: Signal<In, Bits<16>>,
    pub look_offset: Signal<In, Bits<26>>,
    pub look_hint: Signal<In, Bits<5>>,
    pub look_count: Signal<In, Bits<16>>,
    // The shelf's row of `vi`.
    pub vi: Signal<Out, Bits<10>>,
    pub row: Signal<In, Bits<4>>,
    pub owned: Signal<In, Bit>,
    pub ours: Signal<In, Bit>,
    pub put: Signal<In, Bits<3>>,
    pub taken: Signal<In, Bits<3>>,
    pub row_write: Signal<Out, Bit>,
    pub row_address: Signal<Out, Bits<4>>,
    pub row_data: Signal<Out, Bits<14>>,
    // The loader: a descriptor (`again` 0) or Next of the one at `bus`; for the frame or ahead.
    pub start: Signal<Out, Bit>,
    pub idle: Signal<In, Bit>,
    pub serving: Signal<Out, Bit>,
    pub again: Signal<Out, Bit>,
    /// Behind the last job's last one, which it can do; read the successors too.
    pub resumable: Signal<In, Bit>,
    pub resume: Signal<Out, Bit>,
    pub follow: Signal<Out, Bit>,
    pub forget: Signal<Out, Bit>,
    pub bus: Signal<Out, Bits<64>>,
    pub tag: Signal<Out, Bits<16>>,
    pub domain: Signal<Out, Bits<8>>,
    pub region: Signal<Out, Bits<16>>,
    pub offset: Signal<Out, Bits<26>>,
    pub segments: Signal<Out, Bits<5>>,
    /// Posted descriptors from this one on, free places.
    pub covered: Signal<Out, Bits<16>>,
    pub room: Signal<Out, Bits<3>>,
    /// The loader's: the last entry of this row was written.
    pub tail_write: Signal<In, Bit>,
    pub tail_bus: Signal<In, Bits<64>>,
    pub tail_successor: Signal<In, Bits<43>>,
    state: DFF<JobState>,
    sweep: DFF<Bits<4>>,
    vi_at: DFF<Bits<10>>,
    serving_at: DFF<Bit>,
    again_at: DFF<Bit>,
    resume_at: DFF<Bit>,
    follow_at: DFF<Bit>,
    // The last job's VI; tag and domain are still its.
    last_vi: DFF<Bits<10>>,
    fresh: DFF<Bit>,
    // Idle for a cycle: the frame has seen what the last job brought.
    calm: DFF<Bit>,
    bus_at: DFF<Bits<64>>,
    tag_at: DFF<Bits<16>>,
    domain_at: DFF<Bits<8>>,
    region_at: DFF<Bits<16>>,
    offset_at: DFF<Bits<26>>,
    segments_at: DFF<Bits<5>>,
    connected: DFF<Bit>,
    count: DFF<Bits<16>>,
    there: DFF<Bits<3>>,
    covered_at: DFF<Bits<16>>,
    room_at: DFF<Bits<3>>,
    hints: Fifo<10, 5>,
    tail_buses: LutRam<64, 4>,
    tail_successors: LutRam<43, 4>,
    accept: Signal<Local, Bit>,
    present: Signal<Local, Bits<3>>,
    left: Signal<Local, Bits<16>>,
    full: Signal<Local, Bit>,
    same: Signal<Local, Bit>,
    busy_row: Signal<Local, Bit>,
    claimed: Signal<Local, Bits<14>>,
    valid_bit: Number<14, { 1 << 13 }>,
    ahead: Number<3, 7>,
}

impl Logic for Jobs {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, sweep, vi_at, serving_at, again_at, bus_at, tag_at);
        dff_setup!(self, clock, domain_at, region_at, offset_at, segments_at, connected, count);
        dff_setup!(self, clock, there, covered_at, room_at, resume_at, follow_at, last_vi, fresh);
        dff_setup!(self, clock, calm);
        clock!(self, clock, hints, tail_buses, tail_successors);
        self.calm.d.next = self.state.q.val() == JobState::Idle;
        self.paused.next = self.state.q.val() == JobState::Paused;
        self.ready.next =
            (self.state.q.val() != JobState::Clear) & (self.state.q.val() != JobState::Paused);
        self.look.next = self.state.q.val() == JobState::Look;
        self.vi.next = self.vi_at.q.val();
        self.start.next = self.state.q.val() == JobState::Start;
        self.serving.next = self.serving_at.q.val();
        self.again.next = self.again_at.q.val();
        self.resume.next = self.resume_at.q.val();
        self.follow.next = self.follow_at.q.val();
        self.forget.next = self.state.q.val() == JobState::Clear;
        self.bus.next = self.bus_at.q.val();
        self.tag.next = self.tag_at.q.val();
        self.domain.next = self.domain_at.q.val();
        self.region.next = self.region_at.q.val();
        self.offset.next = self.offset_at.q.val();
        self.segments.next = self.segments_at.q.val();
        self.covered.next = self.covered_at.q.val();
        self.room.next = self.room_at.q.val();

        // Hints.
        self.hints.reset.next = self.reset.val();
        self.hints.write.next = self.hint.val() & (!self.hints.full.val());
        self.hints.data_in.next = self.hint_vi.val();
        self.accept.next = (self.state.q.val() == JobState::Idle)
            & (!self.hints.empty.val())
            & (!self.want.val())
            & (!self.want_next.val())
            & (!self.hold.val())
            & (!self.pause.val());
        self.hints.read.next = self.accept.val();

        // Rows.
        self.present.next = self.put.val() - self.taken.val();
        self.full.next = self.present.val() == self.ahead.val();
        self.same.next = self.last_vi.q.val() == self.vi_at.q.val();
        self.busy_row.next = self.frame.val() & (self.frame_row.val() == self.row.val());
        self.left.next = self.count.q.val() - bit_cast::<16, 3>(self.there.q.val());
        self.claimed.next = self.valid_bit.val()
            | (bit_cast::<14, 10>(self.vi_at.q.val()) << 3)
            | bit_cast::<14, 3>(self.taken.val());
        self.row_write.next = false;
        self.row_address.next = self.row.val();
        self.row_data.next = self.claimed.val();
        self.tail_buses.read_address.next = self.row.val();
        self.tail_buses.write_address.next = self.row.val();
        self.tail_buses.write_data.next = self.tail_bus.val();
        self.tail_buses.write_enable.next = self.tail_write.val();
        self.tail_successors.read_address.next = self.row.val();
        self.tail_successors.write_address.next = self.row.val();
        self.tail_successors.write_data.next = self.tail_successor.val();
        self.tail_successors.write_enable.next = self.tail_write.val();

        match self.state.q.val() {
            JobState::Clear => {
                self.row_write.next = true;
                self.row_address.next = self.sweep.q.val();
                self.row_data.next = 0.into();
                self.sweep.d.next = self.sweep.q.val() + 1;
                if self.sweep.q.val().all() {
                    self.state.d.next = JobState::Paused;
                }
            }
            JobState::Paused => {
                if !self.pause.val() {
                    self.state.d.next = JobState::Idle;
                }
            }
            JobState::Idle => {
                self.serving_at.d.next = false;
                self.again_at.d.next = false;
                self.resume_at.d.next = false;
                self.follow_at.d.next = false;
                if self.want.val() & self.calm.q.val() {
                    self.serving_at.d.next = true;
                    self.vi_at.d.next = self.frame_vi.val();
                    self.state.d.next = JobState::Want;
                } else if self.want_next.val() {
                    self.serving_at.d.next = true;
                    self.again_at.d.next = true;
                    self.vi_at.d.next = self.frame_vi.val();
                    self.tag_at.d.next = self.frame_tag.val();
                    self.domain_at.d.next = self.frame_domain.val();
                    self.bus_at.d.next = self.frame_bus.val();
                    self.state.d.next = JobState::Start;
                } else if self.accept.val() {
                    self.vi_at.d.next = self.hints.data_out.val();
                    self.state.d.next = JobState::Row;
                } else if self.pause.val() & (!self.frame.val()) {
                    self.state.d.next = JobState::Clear;
                }
            }
            JobState::Want => {
                self.row_write.next = true;
                self.tag_at.d.next = self.frame_tag.val();
                self.domain_at.d.next = self.frame_domain.val();
                self.region_at.d.next = self.frame_region.val();
                self.offset_at.d.next = self.frame_offset.val();
                self.segments_at.d.next = self.frame_hint.val();
                self.room_at.d.next = self.ahead.val();
                self.covered_at.d.next = self.frame_count.val();
                self.state.d.next = JobState::Start;
            }
            JobState::Row => {
                self.state.d.next = JobState::Look;
                self.follow_at.d.next = self.same.val();
                self.room_at.d.next = self.ahead.val() - self.present.val();
                if self.ours.val() {
                    if self.full.val() {
                        self.state.d.next = JobState::Idle;
                    } else if self.resumable.val() & self.fresh.q.val() & self.same.val() {
                        self.resume_at.d.next = true;
                        self.state.d.next = JobState::Start;
                    }
                } else if (self.owned.val() & self.present.val().any()) | self.busy_row.val() {
                    self.state.d.next = JobState::Idle;
                } else {
                    self.row_write.next = true;
                }
            }
            JobState::Look => {
                self.fresh.d.next = false;
                self.connected.d.next = self.look_connected.val();
                self.tag_at.d.next = self.look_tag.val();
                self.domain_at.d.next = self.look_domain.val();
                self.region_at.d.next = self.look_region.val();
                self.offset_at.d.next = self.look_offset.val();
                self.segments_at.d.next = self.look_hint.val();
                self.count.d.next = self.look_count.val();
                self.there.d.next = self.present.val();
                if self.look_done.val() {
                    self.state.d.next = JobState::Weigh;
                }
            }
            JobState::Weigh => {
                self.covered_at.d.next = self.left.val();
                self.room_at.d.next = self.ahead.val() - self.there.q.val();
                self.bus_at.d.next = self.tail_buses.read_data.val();
                if self.there.q.val().any() {
                    // Behind the last one that is there.
                    self.region_at.d.next = self.tail_successors.read_data.val().get_bits::<16>(0);
                    self.offset_at.d.next = self.tail_successors.read_data.val().get_bits::<26>(16);
                    self.again_at.d.next = !self.tail_successors.read_data.val().get_bit(42);
                }
                self.state.d.next = JobState::Start;
                if !self.connected.q.val() {
                    // Stopped, or not yet connected: what is there is of no use.
                    self.row_write.next = !self.busy_row.val();
                    self.state.d.next = JobState::Idle;
                } else if self.count.q.val() <= bit_cast::<16, 3>(self.there.q.val()) {
                    self.state.d.next = JobState::Idle;
                }
            }
            JobState::Start => {
                self.last_vi.d.next = self.vi_at.q.val();
                self.fresh.d.next = true;
                self.state.d.next = JobState::Run;
            }
            JobState::Run => {
                if self.idle.val() {
                    self.state.d.next = JobState::Idle;
                }
            }
            _ => {
                self.state.d.next = JobState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = JobState::Clear;
            self.sweep.d.next = 0.into();
        }
    }
}
