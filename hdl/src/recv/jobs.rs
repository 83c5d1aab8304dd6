//! What to fetch: decides when a descriptor is wanted, and which.
//!
//! ```text
//! wanted (the frame's) --> +------+ --> order (token, ...) --> Loader
//! hints (VIs)          --> | Jobs | <-- ended, lost, more
//!         look, ... <----> +------+ --> rows of the descriptor cache
//! ```
//! For a hint ([`super::hints`]) the VI's context is read, and the loader fetches behind what is
//! there, or, of the stream ([`super::outstanding`]), behind what is on its way. A hint that cannot be
//! kept is lost; the frame then asks itself, when nothing is on its way. A row that has entries is
//! taken away for a frame alone, be it in turn or waiting ([`super::rows`]).
//!
//! ```text
//! Clear (16 rows) -> Idle or Paused
//! Idle -> Find -> Row -> [Claim ...] -> Look -> Weigh -> Order -> Idle          (a hint)
//! Idle -> Find -> Row -> Order -> Idle                             (the stream, once more)
//! Idle -> Find -> Row -> [Claim ...] -> Order -> Run -> Idle           (the frame's descriptor)
//! Idle -> Order (again) -> Run -> Idle                                  (the frame's Next)
//! ```

use super::hints::Hints;
use super::job_state::JobState;
use super::outstanding::Outstanding;
use super::rows::Rows;
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Jobs {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: a hint.
    pub hint: Signal<In, Bit>,
    pub hint_vi: Signal<In, Bits<10>>,
    pub peek: Signal<In, Bit>,
    pub peek_vi: Signal<In, Bits<10>>,
    pub peeked: Signal<Out, Bit>,
    /// The engine is at a fence: forget everything.
    pub pause: Signal<In, Bit>,
    pub paused: Signal<Out, Bit>,
    /// Everything is forgotten: frames may come.
    pub ready: Signal<Out, Bit>,
    // The frame: in flight, of this row; wants its descriptor, or its Next again; uses the results.
    pub frame: Signal<In, Bit>,
    pub frame_row: Signal<In, Bits<4>>,
    pub frame_vi: Signal<In, Bits<10>>,
    pub want: Signal<In, Bit>,
    pub want_next: Signal<In, Bit>,
    pub hold: Signal<In, Bit>,
    // The VI table.
    pub look: Signal<Out, Bit>,
    pub look_done: Signal<In, Bit>,
    // The descriptor cache, see there.
    pub find_vi: Signal<Out, Bits<10>>,
    pub find_row: Signal<In, Bits<4>>,
    pub where_write: Signal<Out, Bit>,
    pub vi: Signal<Out, Bits<10>>,
    pub row: Signal<Out, Bits<4>>,
    pub owned: Signal<In, Bit>,
    pub ours: Signal<In, Bit>,
    pub put: Signal<In, Bits<3>>,
    pub taken: Signal<In, Bits<3>>,
    pub row_write: Signal<Out, Bit>,
    /// A row may be written in this cycle: known from the state alone.
    pub row_busy: Signal<Out, Bit>,
    pub row_address: Signal<Out, Bits<4>>,
    pub row_data: Signal<Out, Bits<14>>,
    // The loader: a descriptor, or Next (`again`) of the one at `bus`; for the frame or ahead.
    pub idle: Signal<In, Bit>,
    pub order: Signal<Out, Bit>,
    pub serving: Signal<Out, Bit>,
    pub again: Signal<Out, Bit>,
    pub predicted: Signal<Out, Bit>,
    pub stream: Signal<Out, Bit>,
    pub predictable: Signal<In, Bit>,
    /// The frame was answered.
    pub served: Signal<In, Bit>,
    pub lost: Signal<In, Bit>,
    pub lost_row: Signal<In, Bits<4>>,
    pub lost_stream: Signal<In, Bit>,
    pub ended: Signal<In, Bit>,
    pub ended_vi: Signal<In, Bits<10>>,
    pub ended_row: Signal<In, Bits<4>>,
    pub ended_stream: Signal<In, Bit>,
    pub confirms: Signal<In, Bit>,
    pub more: Signal<In, Bit>,
    pub segments: Signal<In, Bits<5>>,
    /// Take no further descriptor: somebody waits, and not for what is on its way.
    pub hurry: Signal<Out, Bit>,
    pub forget: Signal<Out, Bit>,
    // What it is about, see `super::prefetch_target`.
    pub take_frame: Signal<Out, Bit>,
    pub weigh: Signal<Out, Bit>,
    pub proceed: Signal<Out, Bit>,
    pub room: Signal<Out, Bits<3>>,
    pub ordered: Signal<Out, Bit>,
    pub many: Signal<In, Bit>,
    pub longer: Signal<Out, Bit>,
    pub behind: Signal<Out, Bits<3>>,
    pub single: Signal<Out, Bit>,
    pub resumes: Signal<Out, Bit>,
    pub more_segments: Signal<Out, Bits<5>>,
    pub connected: Signal<In, Bit>,
    pub enough: Signal<In, Bit>,
    pub unlinked: Signal<In, Bit>,
    pub wanted: Signal<In, Bits<9>>,
    outstanding: Outstanding,
    hints: Hints,
    rows: Rows,
    state: DFF<JobState>,
    sweep: DFF<Bits<4>>,
    vi_at: DFF<Bits<10>>,
    row_at: DFF<Bits<4>>,
    serving_at: DFF<Bit>,
    again_at: DFF<Bit>,
    predicted_at: DFF<Bit>,
    // The last job was the stream's: its context and count still stand.
    fresh: DFF<Bit>,
    // Nothing was on its way for two cycles: the frame has seen what came.
    calm: DFF<Bit>,
    resting: DFF<Bit>,
    quiet: Signal<Local, Bit>,
    accept: Signal<Local, Bit>,
    blocked: Signal<Local, Bit>,
    sure: Signal<Local, Bit>,
    orders: Signal<Local, Bit>,
    used: Signal<Local, Bits<3>>,
    present: Signal<Local, Bits<3>>,
    free: Signal<Local, Bits<3>>,
    roomy: Signal<Local, Bit>,
    busy_row: Signal<Local, Bit>,
    claimed: Signal<Local, Bits<14>>,
    valid_bit: Number<14, { 1 << 13 }>,
    prefetch: Number<3, 7>,
    batch: Number<3, 4>,
    stream_batch: Number<3, 2>,
}

impl Logic for Jobs {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, sweep, vi_at, serving_at, again_at, predicted_at, calm);
        dff_setup!(self, clock, row_at, fresh, resting);
        clock!(self, clock, outstanding, hints, rows);
        self.quiet.next = (self.state.q.val() == JobState::Idle) & (!self.outstanding.any.val());
        self.resting.d.next = self.quiet.val();
        self.calm.d.next = self.quiet.val() & self.resting.q.val();
        self.paused.next = self.state.q.val() == JobState::Paused;
        self.ready.next =
            (self.state.q.val() != JobState::Clear) & (self.state.q.val() != JobState::Paused);
        self.look.next = self.state.q.val() == JobState::Look;
        self.vi.next = self.vi_at.q.val();
        self.serving.next = self.serving_at.q.val();
        self.forget.next = self.state.q.val() == JobState::Clear;
        self.hurry.next = self.want_next.val()
            | self.pause.val()
            | (self.want.val() & (!self.outstanding.frame_flying.val()));

        // Hints.
        self.hints.reset.next = self.reset.val();
        self.hints.hint.next = self.hint.val();
        self.hints.hint_vi.next = self.hint_vi.val();
        self.hints.more.next = self.more.val() & (!self.serving_at.q.val());
        self.hints.more_vi.next = self.ended_vi.val();
        self.hints.more_segments.next = self.segments.val();
        self.hints.peek.next = self.peek.val();
        self.hints.peek_vi.next = self.peek_vi.val();
        self.hints.accept.next = false;
        self.hints.consume.next = false;
        self.accept.next = self.hints.waiting.val()
            & (!self.want.val())
            & (!self.want_next.val())
            & (!self.hold.val())
            & (!self.pause.val());

        // Rows, and what is on its way.
        self.orders.next = (self.state.q.val() == JobState::Order)
            & self.idle.val()
            & (self.predictable.val() | (!self.predicted_at.q.val()));
        self.row.next = self.row_at.q.val();
        self.busy_row.next = self.frame.val() & (self.frame_row.val() == self.row_at.q.val());
        self.blocked.next =
            (self.busy_row.val() & (!self.serving_at.q.val())) | self.outstanding.flying.val();
        self.rows.reset.next = self.reset.val();
        self.rows.row.next = self.row_at.q.val();
        self.rows.step.next = false;
        self.rows.hit.next = false;
        self.rows.pass.next = false;
        self.rows.claim.next = false;
        self.sure.next = (!self.serving_at.q.val()) & (!self.hints.parks.val());
        self.rows.sure.next = self.sure.val();
        self.where_write.next = false;
        self.find_vi.next = self.vi_at.q.val();
        self.outstanding.reset.next = self.reset.val();
        self.outstanding.forget.next = self.state.q.val() == JobState::Clear;
        self.outstanding.order.next = self.orders.val();
        self.outstanding.alone.next = self.serving_at.q.val() | self.again_at.q.val();
        self.outstanding.predicted.next = self.predicted_at.q.val();
        self.outstanding.place.next = self.put.val();
        self.outstanding.lines.next = self.wanted.val().get_bits::<3>(6);
        self.outstanding.ended.next = self.ended.val();
        self.outstanding.ended_row.next = self.ended_row.val();
        self.outstanding.ended_stream.next = self.ended_stream.val();
        self.outstanding.confirms.next = self.confirms.val();
        self.outstanding.lost.next = self.lost.val();
        self.outstanding.lost_row.next = self.lost_row.val();
        self.outstanding.lost_stream.next = self.lost_stream.val();
        self.outstanding.row.next = self.row_at.q.val();
        self.outstanding.vi.next = self.vi_at.q.val();
        self.outstanding.frame_row.next = self.frame_row.val();
        self.behind.next = self.put.val();
        if self.predicted_at.q.val() {
            self.behind.next = self.outstanding.goal.val();
        }
        self.present.next = self.put.val() - self.taken.val();
        self.used.next = self.present.val();
        if self.outstanding.confirmed.val() {
            self.used.next = self.outstanding.goal.val() - self.taken.val();
        }
        self.free.next = self.prefetch.val() - self.used.val();
        self.roomy.next = self.free.val() >= self.batch.val();
        if self.outstanding.confirmed.val() {
            self.roomy.next = self.free.val() >= self.stream_batch.val();
        }
        self.claimed.next = self.valid_bit.val()
            | (bit_cast::<14, 10>(self.vi_at.q.val()) << 3)
            | bit_cast::<14, 3>(self.taken.val());
        self.row_busy.next = (self.state.q.val() == JobState::Clear)
            | (self.state.q.val() == JobState::Row)
            | (self.state.q.val() == JobState::Claim)
            | (self.state.q.val() == JobState::Weigh);
        self.row_write.next = false;
        self.row_address.next = self.row_at.q.val();
        self.row_data.next = self.claimed.val();
        // The order, and what it is about.
        self.order.next = self.orders.val();
        self.again.next = self.again_at.q.val();
        self.predicted.next = self.predicted_at.q.val();
        self.stream.next = self.outstanding.order_stream.val();
        self.take_frame.next = false;
        self.proceed.next = false;
        self.room.next = self.free.val();
        self.ordered.next = self.orders.val() & self.outstanding.order_stream.val();
        self.weigh.next = self.state.q.val() == JobState::Weigh;
        self.longer.next = (self.state.q.val() == JobState::Run) & self.more.val();
        self.single.next = !self.rows.proven.val();
        self.resumes.next = self.hints.resumes.val();
        self.more_segments.next = self.hints.segments.val();

        match self.state.q.val() {
            JobState::Clear => {
                self.row_write.next = true;
                self.row_address.next = self.sweep.q.val();
                self.row_data.next = 0.into();
                self.fresh.d.next = false;
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
                self.predicted_at.d.next = false;
                self.vi_at.d.next = self.frame_vi.val();
                self.row_at.d.next = self.frame_row.val();
                self.find_vi.next = self.frame_vi.val();
                if self.want.val() & self.calm.q.val() {
                    self.serving_at.d.next = true;
                    self.take_frame.next = true;
                    self.fresh.d.next = false;
                    self.state.d.next = JobState::Find;
                } else if self.want_next.val() & self.calm.q.val() {
                    self.serving_at.d.next = true;
                    self.again_at.d.next = true;
                    self.take_frame.next = true;
                    self.fresh.d.next = false;
                    self.state.d.next = JobState::Order;
                } else if self.accept.val() {
                    self.vi_at.d.next = self.hints.vi.val();
                    self.find_vi.next = self.hints.vi.val();
                    self.hints.accept.next = true;
                    self.state.d.next = JobState::Find;
                } else if self.pause.val() & (!self.frame.val()) & self.calm.q.val() {
                    self.state.d.next = JobState::Clear;
                }
            }
            JobState::Find => {
                self.row_at.d.next = self.find_row.val();
                self.state.d.next = JobState::Row;
            }
            JobState::Row => {
                self.state.d.next = JobState::Idle;
                if !self.ours.val() {
                    self.hints.consume.next = !self.serving_at.q.val();
                    if self.serving_at.q.val() | (!self.hints.resumes.val()) {
                        self.rows.step.next = true;
                        self.row_at.d.next = self.rows.candidate.val();
                        self.state.d.next = JobState::Claim;
                    }
                } else if self.serving_at.q.val() {
                    self.rows.hit.next = true;
                    self.row_write.next = true;
                    self.state.d.next = JobState::Order;
                } else if self.hints.parks.val() {
                    self.rows.hit.next = true;
                    if (!self.present.val().any()) & (!self.outstanding.flying.val()) {
                        self.state.d.next = JobState::Look;
                    }
                } else if (!self.outstanding.flying.val()) | self.outstanding.confirmed.val() {
                    // Else the hint waits for what is on its way.
                    self.hints.consume.next = true;
                    self.predicted_at.d.next = self.outstanding.confirmed.val();
                    if self.roomy.val() & (self.rows.proven.val() | self.hints.resumes.val()) {
                        self.state.d.next = JobState::Look;
                        if self.outstanding.confirmed.val() & self.fresh.q.val() & self.many.val() {
                            self.proceed.next = true;
                            self.state.d.next = JobState::Order;
                        }
                    }
                }
            }
            JobState::Claim => {
                if self.sure.val()
                    & (self.blocked.val() | (self.owned.val() & self.present.val().any()))
                {
                    self.state.d.next = JobState::Idle;
                } else if self.blocked.val() | (self.rows.recent.val() & (!self.serving_at.q.val()))
                {
                    self.rows.pass.next = true;
                    self.rows.step.next = true;
                    self.row_at.d.next = self.rows.candidate.val();
                } else {
                    self.rows.claim.next = true;
                    self.row_write.next = true;
                    self.where_write.next = true;
                    self.state.d.next = JobState::Look;
                    if self.serving_at.q.val() {
                        self.state.d.next = JobState::Order;
                    }
                }
            }
            JobState::Look => {
                self.fresh.d.next = false;
                if self.look_done.val() {
                    self.state.d.next = JobState::Weigh;
                }
            }
            JobState::Weigh => {
                self.again_at.d.next = self.unlinked.val();
                self.state.d.next = JobState::Order;
                if !self.connected.val() {
                    // Stopped, or not yet connected: what is there is of no use.
                    self.row_write.next = !(self.busy_row.val() | self.outstanding.flying.val());
                    self.state.d.next = JobState::Idle;
                } else if self.enough.val() {
                    self.state.d.next = JobState::Idle;
                }
            }
            JobState::Order => {
                if self.ordered.val() {
                    self.fresh.d.next = true;
                }
                if self.idle.val() {
                    self.state.d.next = JobState::Idle;
                    if self.serving_at.q.val() {
                        self.state.d.next = JobState::Run;
                    }
                }
            }
            JobState::Run => {
                if self.served.val() {
                    self.state.d.next = JobState::Idle;
                } else if self.more.val() {
                    // It is longer than the token said.
                    self.state.d.next = JobState::Order;
                }
            }
            _ => {
                self.state.d.next = JobState::Idle;
            }
        }
        self.outstanding.claim.next = self.row_write.val();
        self.peeked.next = self.hints.peeked.val();
        if self.reset.val() {
            self.state.d.next = JobState::Clear;
            self.fresh.d.next = false;
            self.sweep.d.next = 0.into();
        }
    }
}
