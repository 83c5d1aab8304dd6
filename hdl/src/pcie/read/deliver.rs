//! Gives the data to the clients: to each one in the order in which its pieces were sent. No client
//! waits for the data of another.
//!
//! Words of a client's oldest piece go on in the cycle in which they go to its slot, as long as none
//! of them was missed; the last one only if all of the piece is good. What is left when the piece is
//! complete comes from the slot, a beat in each cycle in which no word goes on. So there may be gaps
//! between the beats of a response, and beats of other clients.
//!
//! ```text
//! complete:  cycle 0  read address     1  RAM output     2  response
//! as it comes:                         1  word           2  response
//! ```
//! A failed piece gives no further beats but the last one of its request, which carries the error.
//!
//! Of clients whose pieces are complete, those of descriptors come first, `gather` last: `rc` brings
//! less than a beat a cycle, so that nobody waits for ever.
use super::lane::Lane;
use crate::leaf::Number;
use rust_hdl::prelude::*;

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct Deliver {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: a piece with this tag was sent; or there was no tag for it (`dead`). `start`: first
    /// 8-byte word of the slot.
    pub open: Signal<In, Bit>,
    pub open_dead: Signal<In, Bit>,
    pub open_tag: Signal<In, Bits<5>>,
    pub open_start: Signal<In, Bits<6>>,
    pub open_beats: Signal<In, Bits<7>>,
    pub open_client: Signal<In, Bits<2>>,
    pub open_ends: Signal<In, Bit>,
    /// A word goes to a slot, of a read that is waited for and good so far (`fresh`); the last one
    /// of a piece that is good.
    pub word: Signal<In, Bit>,
    pub word_fresh: Signal<In, Bit>,
    pub word_address: Signal<In, Bits<11>>,
    pub word_data: Signal<In, Bits<64>>,
    pub word_ends: Signal<In, Bit>,
    /// Look-up of the oldest pieces, one a client.
    pub ready_tag0: Signal<Out, Bits<5>>,
    pub ready_tag1: Signal<Out, Bits<5>>,
    pub ready_tag2: Signal<Out, Bits<5>>,
    pub ready_tag3: Signal<Out, Bits<5>>,
    pub ready_done: Signal<In, Bits<4>>,
    pub ready_failed: Signal<In, Bits<4>>,
    /// Pulse, a cycle behind: the slot is not needed any more.
    pub over: Signal<Out, Bit>,
    pub over_tag: Signal<Out, Bits<5>>,
    /// With it: a piece of `gather`.
    pub over_bulk: Signal<Out, Bit>,
    pub read_address: Signal<Out, Bits<11>>,
    pub read_data: Signal<In, Bits<64>>,
    /// One bit a client.
    pub rsp_valid: Signal<Out, Bits<4>>,
    pub rsp_data: Signal<Out, Bits<64>>,
    pub rsp_last: Signal<Out, Bit>,
    pub rsp_error: Signal<Out, Bit>,
    lane0: Lane,
    lane1: Lane,
    lane2: Lane,
    lane3: Lane,
    valid1: DFF<Bits<4>>,
    last1: DFF<Bit>,
    error1: DFF<Bit>,
    valid2: DFF<Bits<4>>,
    last2: DFF<Bit>,
    error2: DFF<Bit>,
    data2: DFF<Bits<64>>,
    over_now: DFF<Bit>,
    over_tag_now: DFF<Bits<5>>,
    over_bulk_now: DFF<Bit>,
    // A piece that was sent, a cycle later: no answer is that fast.
    opens_at: DFF<Bits<4>>,
    open_at: DFF<Bits<20>>,
    open_word: Signal<Local, Bits<20>>,
    opens: Signal<Local, Bits<4>>,
    can_pass: Signal<Local, Bit>,
    passes: Signal<Local, Bits<4>>,
    ready: Signal<Local, Bits<4>>,
    reads: Signal<Local, Bits<4>>,
    turns: Signal<Local, Bits<4>>,
    last: Signal<Local, Bit>,
    error: Signal<Local, Bit>,
    one_client: Number<4, 1>,
}

impl Logic for Deliver {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            valid1,
            last1,
            error1,
            valid2,
            last2,
            error2,
            data2,
            over_now,
            over_tag_now,
            over_bulk_now
        );
        dff_setup!(self, clock, opens_at, open_at);
        clock!(self, clock, lane0, lane1, lane2, lane3);
        self.lane0.reset.next = self.reset.val();
        self.lane1.reset.next = self.reset.val();
        self.lane2.reset.next = self.reset.val();
        self.lane3.reset.next = self.reset.val();
        self.open_word.next = bit_cast::<20, 5>(self.open_tag.val())
            | (bit_cast::<20, 6>(self.open_start.val()) << 5)
            | (bit_cast::<20, 7>(self.open_beats.val()) << 11)
            | (bit_cast::<20, 1>(self.open_ends.val().into()) << 18)
            | (bit_cast::<20, 1>(self.open_dead.val().into()) << 19);
        self.opens.next = 0.into();
        if self.open.val() | self.open_dead.val() {
            self.opens.next = self.one_client.val() << self.open_client.val();
        }
        self.opens_at.d.next = self.opens.val();
        self.open_at.d.next = self.open_word.val();
        self.lane0.open.next = self.opens_at.q.val().get_bit(0);
        self.lane1.open.next = self.opens_at.q.val().get_bit(1);
        self.lane2.open.next = self.opens_at.q.val().get_bit(2);
        self.lane3.open.next = self.opens_at.q.val().get_bit(3);
        self.lane0.open_word.next = self.open_at.q.val();
        self.lane1.open_word.next = self.open_at.q.val();
        self.lane2.open_word.next = self.open_at.q.val();
        self.lane3.open_word.next = self.open_at.q.val();
        self.ready_tag0.next = self.lane0.tag.val();
        self.ready_tag1.next = self.lane1.tag.val();
        self.ready_tag2.next = self.lane2.tag.val();
        self.ready_tag3.next = self.lane3.tag.val();
        self.lane0.done.next = self.ready_done.val().get_bit(0);
        self.lane1.done.next = self.ready_done.val().get_bit(1);
        self.lane2.done.next = self.ready_done.val().get_bit(2);
        self.lane3.done.next = self.ready_done.val().get_bit(3);
        self.lane0.failed.next = self.ready_failed.val().get_bit(0);
        self.lane1.failed.next = self.ready_failed.val().get_bit(1);
        self.lane2.failed.next = self.ready_failed.val().get_bit(2);
        self.lane3.failed.next = self.ready_failed.val().get_bit(3);

        // Words as they come.
        self.can_pass.next = self.word.val() & self.word_fresh.val() & (!self.valid1.q.val().any());
        self.lane0.word.next = self.can_pass.val();
        self.lane1.word.next = self.can_pass.val();
        self.lane2.word.next = self.can_pass.val();
        self.lane3.word.next = self.can_pass.val();
        self.lane0.word_address.next = self.word_address.val();
        self.lane1.word_address.next = self.word_address.val();
        self.lane2.word_address.next = self.word_address.val();
        self.lane3.word_address.next = self.word_address.val();
        self.lane0.word_ends.next = self.word_ends.val();
        self.lane1.word_ends.next = self.word_ends.val();
        self.lane2.word_ends.next = self.word_ends.val();
        self.lane3.word_ends.next = self.word_ends.val();
        self.passes.next = bit_cast::<4, 1>(self.lane0.passes.val().into())
            | (bit_cast::<4, 1>(self.lane1.passes.val().into()) << 1)
            | (bit_cast::<4, 1>(self.lane2.passes.val().into()) << 2)
            | (bit_cast::<4, 1>(self.lane3.passes.val().into()) << 3);

        // Else what is complete.
        self.ready.next = bit_cast::<4, 1>(self.lane0.ready.val().into())
            | (bit_cast::<4, 1>(self.lane1.ready.val().into()) << 1)
            | (bit_cast::<4, 1>(self.lane2.ready.val().into()) << 2)
            | (bit_cast::<4, 1>(self.lane3.ready.val().into()) << 3);
        self.turns.next = 4.into();
        self.read_address.next = self.lane2.spot.val();
        if self.ready.val().get_bit(0) {
            self.turns.next = 1.into();
            self.read_address.next = self.lane0.spot.val();
        } else if self.ready.val().get_bit(1) {
            self.turns.next = 2.into();
            self.read_address.next = self.lane1.spot.val();
        } else if self.ready.val().get_bit(3) {
            self.turns.next = 8.into();
            self.read_address.next = self.lane3.spot.val();
        }
        self.lane0.turn.next = self.turns.val().get_bit(0);
        self.lane0.waits.next = self.passes.val().any();
        self.lane1.turn.next = self.turns.val().get_bit(1);
        self.lane1.waits.next = self.passes.val().any();
        self.lane2.turn.next = self.turns.val().get_bit(2);
        self.lane2.waits.next = self.passes.val().any();
        self.lane3.turn.next = self.turns.val().get_bit(3);
        self.lane3.waits.next = self.passes.val().any();
        self.reads.next = bit_cast::<4, 1>(self.lane0.reads.val().into())
            | (bit_cast::<4, 1>(self.lane1.reads.val().into()) << 1)
            | (bit_cast::<4, 1>(self.lane2.reads.val().into()) << 2)
            | (bit_cast::<4, 1>(self.lane3.reads.val().into()) << 3);
        self.last.next = self.lane0.last.val()
            | self.lane1.last.val()
            | self.lane2.last.val()
            | self.lane3.last.val();
        self.error.next = self.lane0.error.val()
            | self.lane1.error.val()
            | self.lane2.error.val()
            | self.lane3.error.val();
        self.over_now.d.next = self.lane0.over.val()
            | self.lane1.over.val()
            | self.lane2.over.val()
            | self.lane3.over.val();
        self.over_bulk_now.d.next = self.lane2.over.val();
        self.over_tag_now.d.next = self.lane2.tag.val();
        if self.lane0.over.val() {
            self.over_tag_now.d.next = self.lane0.tag.val();
        } else if self.lane1.over.val() {
            self.over_tag_now.d.next = self.lane1.tag.val();
        } else if self.lane3.over.val() {
            self.over_tag_now.d.next = self.lane3.tag.val();
        }
        self.over.next = self.over_now.q.val();
        self.over_tag.next = self.over_tag_now.q.val();
        self.over_bulk.next = self.over_bulk_now.q.val();

        // Beats to the clients.
        self.valid1.d.next = self.reads.val();
        self.last1.d.next = self.last.val();
        self.error1.d.next = self.error.val();
        self.valid2.d.next = self.valid1.q.val();
        self.last2.d.next = self.last1.q.val();
        self.error2.d.next = self.error1.q.val();
        self.data2.d.next = self.read_data.val();
        if self.passes.val().any() {
            self.valid2.d.next = self.passes.val();
            self.last2.d.next = self.last.val();
            self.error2.d.next = self.error.val();
            self.data2.d.next = self.word_data.val();
        }
        self.rsp_valid.next = self.valid2.q.val();
        self.rsp_last.next = self.last2.q.val();
        self.rsp_error.next = self.error2.q.val();
        self.rsp_data.next = self.data2.q.val();
        if self.reset.val() {
            self.opens_at.d.next = 0.into();
            self.valid1.d.next = 0.into();
            self.valid2.d.next = 0.into();
            self.over_now.d.next = false;
            self.over_bulk_now.d.next = false;
        }
    }
}
