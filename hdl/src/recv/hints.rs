//! Whose queue to look at next.
//!
//! A *hint* is a VI whose queue may have descriptors that are not cached: a frame for it waits
//! (`peek`, first), a read of the loader's brought too little (`more`), one was posted or used up
//! (`hint`, 32 wait, then they are lost).

use crate::leaf::Fifo;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Hints {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub hint: Signal<In, Bit>,
    pub hint_vi: Signal<In, Bits<10>>,
    /// Pulse; its descriptor has so many segments.
    pub more: Signal<In, Bit>,
    pub more_vi: Signal<In, Bits<10>>,
    pub more_segments: Signal<In, Bits<5>>,
    /// A level until `peeked` (pulse).
    pub peek: Signal<In, Bit>,
    pub peek_vi: Signal<In, Bits<10>>,
    pub peeked: Signal<Out, Bit>,
    /// There is one, for this VI. `accept` (pulse) turns to it, `consume` (pulse, later) is done with
    /// it: without, it comes again. A peek comes once.
    pub waiting: Signal<Out, Bit>,
    pub vi: Signal<Out, Bits<10>>,
    pub accept: Signal<In, Bit>,
    pub consume: Signal<In, Bit>,
    /// Of the one that was accepted: a peek, a `more`.
    pub parks: Signal<Out, Bit>,
    pub resumes: Signal<Out, Bit>,
    pub segments: Signal<Out, Bits<5>>,
    posted: Fifo<10, 5>,
    more_valid: DFF<Bit>,
    more_vi_at: DFF<Bits<10>>,
    more_segments_at: DFF<Bits<5>>,
    parks_at: DFF<Bit>,
    resumes_at: DFF<Bit>,
}

impl Logic for Hints {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, more_valid, more_vi_at, more_segments_at, parks_at, resumes_at);
        clock!(self, clock, posted);
        self.posted.reset.next = self.reset.val();
        self.posted.write.next = self.hint.val() & (!self.posted.full.val());
        self.posted.data_in.next = self.hint_vi.val();
        self.posted.read.next =
            self.consume.val() & (!self.parks_at.q.val()) & (!self.resumes_at.q.val());
        self.waiting.next = self.peek.val() | self.more_valid.q.val() | (!self.posted.empty.val());
        self.vi.next = self.posted.data_out.val();
        if self.peek.val() {
            self.vi.next = self.peek_vi.val();
        } else if self.more_valid.q.val() {
            self.vi.next = self.more_vi_at.q.val();
        }
        self.peeked.next = self.accept.val() & self.peek.val();
        self.parks.next = self.parks_at.q.val();
        self.resumes.next = self.resumes_at.q.val();
        self.segments.next = self.more_segments_at.q.val();
        if self.accept.val() {
            self.parks_at.d.next = self.peek.val();
            self.resumes_at.d.next = self.more_valid.q.val() & (!self.peek.val());
        }
        if self.consume.val() & self.resumes_at.q.val() {
            self.more_valid.d.next = false;
        }
        if self.more.val() {
            self.more_valid.d.next = true;
            self.more_vi_at.d.next = self.more_vi.val();
            self.more_segments_at.d.next = self.more_segments.val();
        }
        if self.reset.val() {
            self.more_valid.d.next = false;
        }
    }
}
