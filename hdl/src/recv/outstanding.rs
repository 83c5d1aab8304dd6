//! Which rows of the descriptor cache have descriptors on their way, and the stream: the one VI whose next read
//! may go out before the last one is resolved.
//!
//! A VI becomes the stream with a read while no other one is it. When a read of the stream was of
//! whole lines, each a descriptor that leads to the next, it is `confirmed`: what lies behind the
//! last read is then taken to be what follows. The loader drops a read that was predicted wrongly,
//! and the stream `breaks`.

use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Outstanding {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: forget the stream.
    pub forget: Signal<In, Bit>,
    /// Pulse: a read is ordered for `vi` and `row`: `alone` (never the stream), predicted; its first
    /// place, and its lines.
    pub order: Signal<In, Bit>,
    pub alone: Signal<In, Bit>,
    pub predicted: Signal<In, Bit>,
    pub place: Signal<In, Bits<3>>,
    pub lines: Signal<In, Bits<3>>,
    /// With `order`: it is the stream's.
    pub order_stream: Signal<Out, Bit>,
    /// Pulse: a read is dealt with. Of the stream: it `confirms`, or else breaks the stream.
    pub ended: Signal<In, Bit>,
    pub ended_row: Signal<In, Bits<4>>,
    pub ended_stream: Signal<In, Bit>,
    pub confirms: Signal<In, Bit>,
    /// Pulse: the order came to nothing.
    pub lost: Signal<In, Bit>,
    pub lost_row: Signal<In, Bits<4>>,
    pub lost_stream: Signal<In, Bit>,
    /// Pulse: the row gets another owner or becomes empty.
    pub claim: Signal<In, Bit>,
    pub row: Signal<In, Bits<4>>,
    pub vi: Signal<In, Bits<10>>,
    pub frame_row: Signal<In, Bits<4>>,
    /// Descriptors for this row are on their way.
    pub flying: Signal<Out, Bit>,
    pub frame_flying: Signal<Out, Bit>,
    pub any: Signal<Out, Bit>,
    /// This VI is the stream, and confirmed; the place behind its last read.
    pub confirmed: Signal<Out, Bit>,
    pub goal: Signal<Out, Bits<3>>,
    rows: DFF<Bits<16>>,
    on: DFF<Bit>,
    sure: DFF<Bit>,
    stream_vi: DFF<Bits<10>>,
    stream_row: DFF<Bits<4>>,
    count: DFF<Bits<3>>,
    goal_at: DFF<Bits<3>>,
    /// `vi` is the stream's: a cycle old, and `vi` is stable for longer before that is asked.
    same: DFF<Bit>,
    streaming: Signal<Local, Bit>,
    adopts: Signal<Local, Bit>,
    others: Signal<Local, Bit>,
    set: Signal<Local, Bits<16>>,
    clear: Signal<Local, Bits<16>>,
    kept: Signal<Local, Bits<16>>,
    more: Signal<Local, Bits<3>>,
    fewer: Signal<Local, Bits<3>>,
    none: Number<16, 0>,
    one_row: Number<16, 1>,
    one: Number<3, 1>,
}

impl Logic for Outstanding {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, rows, on, sure, stream_vi, stream_row, count, goal_at, same);
        self.streaming.next = self.count.q.val().any();
        self.any.next = self.streaming.val() | self.rows.q.val().any();
        self.flying.next = self.rows.q.val().get_bit(self.row.val().index())
            | (self.streaming.val() & (self.stream_row.q.val() == self.row.val()));
        self.frame_flying.next = self.rows.q.val().get_bit(self.frame_row.val().index())
            | (self.streaming.val() & (self.stream_row.q.val() == self.frame_row.val()));
        self.same.d.next = self.stream_vi.q.val() == self.vi.val();
        self.confirmed.next = self.on.q.val() & self.sure.q.val() & self.same.q.val();
        self.goal.next = self.goal_at.q.val();

        // Reads that are not the stream's: at most one a row.
        self.adopts.next = (!self.alone.val()) & (!self.streaming.val());
        self.order_stream.next = self.predicted.val() | self.adopts.val();
        self.others.next = self.order.val() & (!self.order_stream.val());
        self.set.next = self.none.val();
        if self.others.val() {
            self.set.next = self.one_row.val() << self.row.val();
        }
        self.clear.next = self.none.val();
        if self.ended.val() & (!self.ended_stream.val()) {
            self.clear.next = self.one_row.val() << self.ended_row.val();
        }
        self.kept.next = !self.clear.val();
        if self.lost.val() & (!self.lost_stream.val()) {
            self.kept.next = !(self.clear.val() | (self.one_row.val() << self.lost_row.val()));
        }
        self.rows.d.next = (self.rows.q.val() & self.kept.val()) | self.set.val();

        // The stream.
        self.more.next = 0.into();
        if self.order.val() & self.order_stream.val() {
            self.more.next = self.one.val();
        }
        self.fewer.next = 0.into();
        if self.ended.val() & self.ended_stream.val() {
            self.fewer.next = self.one.val();
            self.on.d.next = self.on.q.val() & self.confirms.val();
            self.sure.d.next = self.confirms.val();
        } else if self.lost.val() & self.lost_stream.val() {
            self.fewer.next = self.one.val();
            self.on.d.next = false;
        }
        self.count.d.next = (self.count.q.val() + self.more.val()) - self.fewer.val();
        if self.order.val() & self.predicted.val() {
            self.goal_at.d.next = self.goal_at.q.val() + self.lines.val();
        } else if self.order.val() & self.adopts.val() {
            self.on.d.next = true;
            self.sure.d.next = self.on.q.val() & self.sure.q.val() & self.same.q.val();
            self.stream_vi.d.next = self.vi.val();
            self.stream_row.d.next = self.row.val();
            self.goal_at.d.next = self.place.val() + self.lines.val();
        }
        if self.claim.val() & (self.row.val() == self.stream_row.q.val()) {
            self.on.d.next = false;
        }
        if self.forget.val() {
            self.on.d.next = false;
        }
        if self.reset.val() {
            self.rows.d.next = 0.into();
            self.count.d.next = 0.into();
            self.on.d.next = false;
        }
    }
}
