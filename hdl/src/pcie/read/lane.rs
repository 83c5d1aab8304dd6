//! The pieces of one client, in the order in which they were sent; the oldest one is in flight.
//!
//! ```text
//! open -> [order] -> [head] -> in flight -> finish
//! ```
//! `ready` is one cycle behind the tag's state, and up for beats that can be read, or for the end of
//! a piece that failed. A piece without a tag (`dead`) has failed from the start.
use crate::leaf::{Fifo, Number};
use rust_hdl::prelude::*;

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct Lane {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: a piece of this client. Tag 4:0, first 8-byte word of its slot 10:5, beats 17:11, the
    /// last one of its request 18, dead 19.
    pub open: Signal<In, Bit>,
    pub open_word: Signal<In, Bits<20>>,
    /// Look-up of the piece in flight.
    pub tag: Signal<Out, Bits<5>>,
    pub done: Signal<In, Bit>,
    pub failed: Signal<In, Bit>,
    /// A word that may go on as it comes; it is the last one of a good piece.
    pub word: Signal<In, Bit>,
    pub word_address: Signal<In, Bits<11>>,
    pub word_ends: Signal<In, Bit>,
    /// It does.
    pub passes: Signal<Out, Bit>,
    pub ready: Signal<Out, Bit>,
    /// What is ready goes in this cycle, unless a word of some client does.
    pub turn: Signal<In, Bit>,
    pub waits: Signal<In, Bit>,
    /// A beat for the client: the word at `spot`, or what a failed request ends with.
    pub reads: Signal<Out, Bit>,
    pub spot: Signal<Out, Bits<11>>,
    /// With either: the last one of the request, and with an error.
    pub last: Signal<Out, Bit>,
    pub error: Signal<Out, Bit>,
    /// The piece's slot is not needed any more.
    pub over: Signal<Out, Bit>,
    order: Fifo<20, 5>,
    /// The piece behind the one in flight: the FIFO's output, registered.
    head: DFF<Bits<20>>,
    head_valid: DFF<Bit>,
    running: DFF<Bit>,
    tag_now: DFF<Bits<5>>,
    at: DFF<Bits<6>>,
    left: DFF<Bits<7>>,
    ends_now: DFF<Bit>,
    dead_now: DFF<Bit>,
    ready_now: DFF<Bit>,
    bad_now: DFF<Bit>,
    broken_now: DFF<Bit>,
    /// One beat is left.
    final_beat: DFF<Bit>,
    /// The word that comes is of the tag in flight: as of a cycle ago, but a header comes between the
    /// words of two tags, and none that is waited for behind a piece's last one. Not when a piece is
    /// new: the tag of the one before may be another client's by now.
    same_tag: DFF<Bit>,
    place: Signal<Local, Bits<11>>,
    passing: Signal<Local, Bit>,
    fails: Signal<Local, Bit>,
    offers: Signal<Local, Bit>,
    served: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    load: Signal<Local, Bit>,
    fetch: Signal<Local, Bit>,
    one: Number<7, 1>,
    two: Number<7, 2>,
}

impl Logic for Lane {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, head, head_valid, running, tag_now, at, left, ends_now, dead_now,
            ready_now, bad_now, broken_now
        );
        dff_setup!(self, clock, final_beat, same_tag);
        clock!(self, clock, order);
        self.order.reset.next = self.reset.val();
        self.order.write.next = self.open.val();
        self.order.data_in.next = self.open_word.val();
        self.tag.next = self.tag_now.q.val();
        self.place.next =
            (bit_cast::<11, 5>(self.tag_now.q.val()) << 6) | bit_cast::<11, 6>(self.at.q.val());
        self.spot.next = self.place.val();
        self.ready.next = self.ready_now.q.val();

        // A beat goes, or the rest of the piece.
        self.passing.next = self.word.val()
            & self.running.q.val()
            & (!self.dead_now.q.val())
            & self.same_tag.q.val()
            & (self.word_address.val().get_bits::<6>(0) == self.at.q.val())
            & ((!self.final_beat.q.val()) | self.word_ends.val());
        self.same_tag.d.next = self.word_address.val().get_bits::<5>(6) == self.tag_now.q.val();
        self.passes.next = self.passing.val();
        self.offers.next = self.turn.val() & self.ready_now.q.val();
        self.served.next = self.offers.val() & (!self.waits.val());
        self.fails.next = self.served.val() & self.bad_now.q.val();
        self.reads.next = self.served.val() & ((!self.bad_now.q.val()) | self.ends_now.q.val());
        // Who waits, and which word passes, comes last.
        self.finish.next = (self.passing.val() & self.final_beat.q.val())
            | ((self.offers.val() & (self.final_beat.q.val() | self.bad_now.q.val()))
                & (!self.waits.val()));
        self.last.next = self.finish.val() & self.ends_now.q.val();
        self.error.next = self.finish.val()
            & self.ends_now.q.val()
            & (self.broken_now.q.val() | self.fails.val());
        self.over.next = self.finish.val() & (!self.dead_now.q.val());
        if self.served.val() | self.passing.val() {
            self.at.d.next = self.at.q.val() + 1;
            self.left.d.next = self.left.q.val() - 1;
            self.final_beat.d.next = self.left.q.val() == self.two.val();
        }
        self.ready_now.d.next =
            self.running.q.val() & (self.done.val() | self.dead_now.q.val()) & (!self.finish.val());
        self.bad_now.d.next = self.failed.val() | self.dead_now.q.val();
        // The error sticks until the request's last piece is over.
        if self.fails.val() {
            self.broken_now.d.next = true;
        }
        if self.finish.val() {
            self.running.d.next = false;
            if self.ends_now.q.val() {
                self.broken_now.d.next = false;
            }
        }

        // The next piece.
        self.load.next = self.head_valid.q.val() & ((!self.running.q.val()) | self.finish.val());
        self.fetch.next = (!self.order.empty.val())
            & ((!self.head_valid.q.val()) | (!self.running.q.val()) | self.finish.val());
        self.order.read.next = self.fetch.val();
        if self.fetch.val() {
            self.head.d.next = self.order.data_out.val();
            self.head_valid.d.next = true;
        } else if self.load.val() {
            self.head_valid.d.next = false;
        }
        if self.load.val() {
            self.running.d.next = true;
            self.tag_now.d.next = self.head.q.val().get_bits::<5>(0);
            self.at.d.next = self.head.q.val().get_bits::<6>(5);
            self.left.d.next = self.head.q.val().get_bits::<7>(11);
            self.final_beat.d.next = self.head.q.val().get_bits::<7>(11) == self.one.val();
            self.same_tag.d.next = false;
            self.ends_now.d.next = self.head.q.val().get_bit(18);
            self.dead_now.d.next = self.head.q.val().get_bit(19);
        }
        if self.reset.val() {
            self.head_valid.d.next = false;
            self.running.d.next = false;
            self.ready_now.d.next = false;
            self.broken_now.d.next = false;
        }
    }
}
