//! Gives the data to the clients, in the order in which the pieces were sent.
//!
//! Words of the oldest piece go on in the cycle in which they go to its slot, as long as none of them
//! was missed; the last one only if all of the piece is good. What is left when the piece is complete
//! comes from the slot, one beat a cycle, without a gap to the next complete slot. So there may be
//! gaps between the beats of a response.
//!
//! ```text
//! complete:  cycle 0  read address     1  RAM output     2  response
//! as it comes:                         1  word           2  response
//! ```
//! A failed piece gives no further beats but the last one of its request, which carries the error.
use crate::leaf::{Fifo, Number};
use rust_hdl::prelude::*;

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct Deliver {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: a piece with this tag was sent. `start`: first 8-byte word of the slot.
    pub open: Signal<In, Bit>,
    pub open_tag: Signal<In, Bits<5>>,
    pub open_start: Signal<In, Bits<6>>,
    pub open_beats: Signal<In, Bits<7>>,
    pub open_client: Signal<In, Bits<2>>,
    pub open_ends: Signal<In, Bit>,
    /// A word goes to a slot; the last one of a piece that is good.
    pub word: Signal<In, Bit>,
    pub word_address: Signal<In, Bits<11>>,
    pub word_data: Signal<In, Bits<64>>,
    pub word_ends: Signal<In, Bit>,
    /// Look-up of the oldest piece.
    pub ready_tag: Signal<Out, Bits<5>>,
    pub ready_done: Signal<In, Bit>,
    pub ready_failed: Signal<In, Bit>,
    /// Pulse: the slot is not needed any more.
    pub over: Signal<Out, Bit>,
    pub over_tag: Signal<Out, Bits<5>>,
    pub read_address: Signal<Out, Bits<11>>,
    pub read_data: Signal<In, Bits<64>>,
    /// One bit a client.
    pub rsp_valid: Signal<Out, Bits<4>>,
    pub rsp_data: Signal<Out, Bits<64>>,
    pub rsp_last: Signal<Out, Bit>,
    pub rsp_error: Signal<Out, Bit>,
    order: Fifo<21, 5>,
    /// The piece behind the oldest one: the FIFO's output, registered.
    head: DFF<Bits<21>>,
    head_valid: DFF<Bit>,
    running: DFF<Bit>,
    tag: DFF<Bits<5>>,
    at: DFF<Bits<6>>,
    left: DFF<Bits<7>>,
    client: DFF<Bits<2>>,
    ends: DFF<Bit>,
    /// An earlier piece of this request failed.
    broken: DFF<Bit>,
    valid1: DFF<Bits<4>>,
    last1: DFF<Bit>,
    error1: DFF<Bit>,
    valid2: DFF<Bits<4>>,
    last2: DFF<Bit>,
    error2: DFF<Bit>,
    data2: DFF<Bits<64>>,
    spot: Signal<Local, Bits<11>>,
    final_beat: Signal<Local, Bit>,
    fails: Signal<Local, Bit>,
    reads: Signal<Local, Bit>,
    passes: Signal<Local, Bit>,
    finishing: Signal<Local, Bit>,
    last: Signal<Local, Bit>,
    load: Signal<Local, Bit>,
    fetch: Signal<Local, Bit>,
    mask: Signal<Local, Bits<4>>,
    kept_broken: Signal<Local, Bit>,
    one: Number<7, 1>,
    one_client: Number<4, 1>,
}

impl Logic for Deliver {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, head, head_valid, running, tag, at, left, client, ends, broken, valid1,
            last1, error1, valid2, last2, error2, data2
        );
        clock!(self, clock, order);
        self.order.reset.next = self.reset.val();
        self.order.write.next = self.open.val();
        self.order.data_in.next = bit_cast::<21, 5>(self.open_tag.val())
            | (bit_cast::<21, 6>(self.open_start.val()) << 5)
            | (bit_cast::<21, 7>(self.open_beats.val()) << 11)
            | (bit_cast::<21, 2>(self.open_client.val()) << 18)
            | (bit_cast::<21, 1>(self.open_ends.val().into()) << 20);
        self.ready_tag.next = self.tag.q.val();

        // A step: the end of a failed piece, a beat of a complete one, or a word as it comes.
        self.spot.next =
            (bit_cast::<11, 5>(self.tag.q.val()) << 6) | bit_cast::<11, 6>(self.at.q.val());
        self.read_address.next = self.spot.val();
        self.final_beat.next = self.left.q.val() == self.one.val();
        self.fails.next = self.running.q.val() & self.ready_done.val() & self.ready_failed.val();
        self.reads.next = self.running.q.val() & self.ready_done.val() & (!self.ready_failed.val());
        self.passes.next = self.running.q.val()
            & (!self.ready_done.val())
            & (!self.ready_failed.val())
            & (!self.valid1.q.val().any())
            & self.word.val()
            & (self.word_address.val() == self.spot.val())
            & ((!self.final_beat.val()) | self.word_ends.val());
        self.finishing.next =
            self.fails.val() | ((self.reads.val() | self.passes.val()) & self.final_beat.val());
        self.over.next = self.finishing.val();
        self.over_tag.next = self.tag.q.val();
        self.mask.next = self.one_client.val() << self.client.q.val();
        self.valid1.d.next = 0.into();
        self.last.next = self.finishing.val() & self.ends.q.val();
        self.last1.d.next = self.last.val();
        self.error1.d.next = self.last.val() & (self.broken.q.val() | self.fails.val());
        if self.reads.val() | (self.fails.val() & self.ends.q.val()) {
            self.valid1.d.next = self.mask.val();
        }
        // The error sticks until the request's last piece is over.
        self.kept_broken.next = self.broken.q.val() | self.fails.val();
        if self.reads.val() | self.passes.val() {
            self.at.d.next = self.at.q.val() + 1;
            self.left.d.next = self.left.q.val() - 1;
        }
        if self.finishing.val() {
            self.running.d.next = false;
            if self.ends.q.val() {
                self.kept_broken.next = false;
            }
        }
        self.broken.d.next = self.kept_broken.val();
        self.load.next = self.head_valid.q.val() & ((!self.running.q.val()) | self.finishing.val());
        self.fetch.next =
            (!self.order.empty.val()) & ((!self.head_valid.q.val()) | self.load.val());
        self.order.read.next = self.fetch.val();
        if self.fetch.val() {
            self.head.d.next = self.order.data_out.val();
            self.head_valid.d.next = true;
        } else if self.load.val() {
            self.head_valid.d.next = false;
        }
        if self.load.val() {
            self.running.d.next = true;
            self.tag.d.next = self.head.q.val().get_bits::<5>(0);
            self.at.d.next = self.head.q.val().get_bits::<6>(5);
            self.left.d.next = self.head.q.val().get_bits::<7>(11);
            self.client.d.next = self.head.q.val().get_bits::<2>(18);
            self.ends.d.next = self.head.q.val().get_bit(20);
        }
        self.valid2.d.next = self.valid1.q.val();
        self.last2.d.next = self.last1.q.val();
        self.error2.d.next = self.error1.q.val();
        self.data2.d.next = self.read_data.val();
        if self.passes.val() {
            self.valid2.d.next = self.mask.val();
            self.last2.d.next = self.last.val();
            self.error2.d.next = self.last.val() & self.broken.q.val();
            self.data2.d.next = self.word_data.val();
        }
        self.rsp_valid.next = self.valid2.q.val();
        self.rsp_last.next = self.last2.q.val();
        self.rsp_error.next = self.error2.q.val();
        self.rsp_data.next = self.data2.q.val();
        if self.reset.val() {
            self.head_valid.d.next = false;
            self.running.d.next = false;
            self.broken.d.next = false;
            self.valid1.d.next = 0.into();
            self.valid2.d.next = 0.into();
        }
    }
}
