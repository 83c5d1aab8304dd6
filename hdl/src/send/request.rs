//! When the payload of the frame in flight is asked for: its pieces are cut while the pool is asked and
//! the last segments are looked up; the requests themselves wait for both.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Request {
    pub clock: Signal<In, Clock>,
    /// No VI is in flight.
    pub clear: Signal<In, Bit>,
    /// The frame is being made: its room asked for, or waited with.
    pub open: Signal<In, Bit>,
    /// It is part of a message or an answer; has no data; the descriptor's segments are cached, or
    /// on their way.
    pub is_data: Signal<In, Bit>,
    pub empty: Signal<In, Bit>,
    pub here: Signal<In, Bit>,
    pub issued: Signal<In, Bit>,
    /// Pulse: what was cut is forgotten, nothing of it was asked for.
    pub cancel: Signal<In, Bit>,
    /// Pulse: cut the pieces. From then on there is payload.
    pub start: Signal<Out, Bit>,
    pub started: Signal<Out, Bit>,
    /// All requests are out, or there are none.
    pub all: Signal<Out, Bit>,
    started_at: DFF<Bit>,
    starts: Signal<Local, Bit>,
}

impl Logic for Request {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, started_at);
        self.starts.next = self.open.val()
            & self.is_data.val()
            & (!self.empty.val())
            & (!self.started_at.q.val())
            & self.here.val();
        self.start.next = self.starts.val();
        self.started.next = self.started_at.q.val();
        self.all.next = (!self.is_data.val())
            | self.empty.val()
            | (self.started_at.q.val() & self.issued.val());
        if self.starts.val() {
            self.started_at.d.next = true;
        }
        if self.clear.val() | self.cancel.val() {
            self.started_at.d.next = false;
        }
    }
}
