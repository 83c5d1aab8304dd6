//! Push lines (contract 2.5 to 2.7): collects the words of one push at a time, and says when its
//! token is posted, with its data or without.
//!
//! ```text
//! words --> Push --> post (token, slot)     to the token doorbells, in their order
//!             `----> words of the line      to the slots in the send engine
//! ```
//! Word 0 begins a push. A word of the same line and in turn goes on with it, until it is whole. Any
//! other write to its page, word 0 of another page, a malformed word 1 or 2, and silence break it:
//! then `breaks` is high, and the post (a token alone) must move before the write may be looked at
//! again. So one push at a time is under way in the whole device. Word 0 waits a little for a slot.

use crate::ifs::PushClient;
use crate::leaf::Number;
use nic_regs::doorbell::{PUSH_DATA_BYTES, PUSH_SILENCE_CYCLES};
use rust_hdl::prelude::*;

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct Push {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// While 0, a push that is under way is forgotten.
    pub enable: Signal<In, Bit>,
    /// A write to BAR2 waits; it is a word of a push line.
    pub valid: Signal<In, Bit>,
    pub word: Signal<In, Bit>,
    pub page: Signal<In, Bits<6>>,
    pub line: Signal<In, Bits<2>>,
    pub index: Signal<In, Bits<3>>,
    pub data: Signal<In, Bits<64>>,
    /// It is not zero.
    pub some: Signal<In, Bit>,
    /// A post can be taken.
    pub room: Signal<In, Bit>,
    /// The write must wait: it breaks the push under way.
    pub breaks: Signal<Out, Bit>,
    /// The write must wait: no slot is free yet.
    pub waits: Signal<Out, Bit>,
    /// Word 0 with a token for the receive queue.
    pub refused: Signal<Out, Bit>,
    pub post: Signal<Out, Bit>,
    pub post_token: Signal<Out, Bits<64>>,
    pub post_page: Signal<Out, Bits<6>>,
    /// As `push` of [`crate::ifs::PostClient`].
    pub post_push: Signal<Out, Bits<7>>,
    pub words: PushClient,
    under_way: DFF<Bit>,
    broken: DFF<Bit>,
    has_slot: DFF<Bit>,
    page_at: DFF<Bits<6>>,
    line_at: DFF<Bits<2>>,
    awaited: DFF<Bits<3>>,
    /// The word that makes it whole.
    final_word: DFF<Bits<3>>,
    token: DFF<Bits<64>>,
    silence: DFF<Bits<7>>,
    slot: DFF<Bits<3>>,
    taken: DFF<Bits<8>>,
    /// Cycles that word 0 waits for a slot.
    patience: DFF<Bits<7>>,
    word_valid: DFF<Bit>,
    word_at: DFF<Bits<6>>,
    word_data: DFF<Bits<64>>,
    slot_taken: Signal<Local, Bit>,
    waits_now: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    first: Signal<Local, Bit>,
    continues: Signal<Local, Bit>,
    /// The word moves, as the next one of the push under way.
    goes_on: Signal<Local, Bit>,
    whole: Signal<Local, Bit>,
    silent: Signal<Local, Bit>,
    breaking: Signal<Local, Bit>,
    this_slot: Signal<Local, Bits<8>>,
    freed: Signal<Local, Bits<8>>,
    length_up: Signal<Local, Bits<7>>,
    bad_control: Signal<Local, Bit>,
    one: Number<8, 1>,
    largest: Number<8, { PUSH_DATA_BYTES as u64 }>,
    silence_end: Number<7, PUSH_SILENCE_CYCLES>,
}

impl Logic for Push {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, under_way, broken, has_slot, page_at, line_at, awaited, final_word);
        dff_setup!(
            self, clock, token, silence, slot, taken, patience, word_valid, word_at, word_data
        );
        self.first.next = self.index.val() == 0;
        self.continues.next = self.under_way.q.val()
            & (!self.broken.q.val())
            & self.word.val()
            & (self.page.val() == self.page_at.q.val())
            & (self.line.val() == self.line_at.q.val())
            & (self.index.val() == self.awaited.q.val());
        self.silent.next = self.silence.q.val() == self.silence_end.val();
        // A word that comes with the end of the silence is too late.
        self.breaking.next = self.under_way.q.val()
            & (self.broken.q.val()
                | self.silent.val()
                | (self.valid.val()
                    & (!self.continues.val())
                    & ((self.page.val() == self.page_at.q.val())
                        | (self.word.val() & self.first.val()))));
        self.breaks.next = self.breaking.val();
        self.this_slot.next = self.one.val() << self.slot.q.val();
        self.slot_taken.next = (self.taken.q.val() & self.this_slot.val()).any();
        self.waits_now.next = self.valid.val()
            & self.word.val()
            & self.first.val()
            & self.slot_taken.val()
            & (!self.patience.q.val().get_bit(6));
        self.waits.next = self.waits_now.val();
        self.patience.d.next = 0.into();
        if self.waits_now.val() & (!self.breaking.val()) {
            self.patience.d.next = self.patience.q.val() + 1;
        } else if self.valid.val() & (!self.room.val()) {
            self.patience.d.next = self.patience.q.val();
        }
        self.moves.next = self.valid.val()
            & self.word.val()
            & self.room.val()
            & (!self.breaking.val())
            & (!self.waits_now.val());
        // Never word 0, which alone waits for a slot; and only silence breaks what goes on.
        self.goes_on.next =
            self.valid.val() & self.room.val() & self.continues.val() & (!self.silent.val());
        self.refused.next = self.moves.val() & self.first.val() & self.data.val().get_bit(63);

        // Word 1: at most 40 bytes, reserved bits zero. Word 2: zero.
        self.length_up.next = bit_cast::<7, 6>(self.data.val().get_bits::<6>(0)) + 23;
        self.bad_control.next = (self.largest.val() < self.data.val().get_bits::<8>(0))
            | self.data.val().get_bits::<23>(9).any();
        self.whole.next = self.goes_on.val()
            & (self.index.val() == self.final_word.q.val())
            & ((self.index.val() != 2) | (!self.some.val()));
        self.post.next = self.whole.val() | (self.breaking.val() & self.room.val());
        self.post_token.next = self.token.q.val();
        self.post_page.next = self.page_at.q.val();
        self.post_push.next = (bit_cast::<7, 2>(self.line_at.q.val()) << 1) | 1;
        if self.whole.val() & self.has_slot.q.val() {
            self.post_push.next = (bit_cast::<7, 3>(self.slot.q.val()) << 4)
                | (bit_cast::<7, 2>(self.line_at.q.val()) << 1)
                | 9;
        }

        // Slots.
        self.freed.next = self.taken.q.val() & (!self.words.free.val());
        self.taken.d.next = self.freed.val();
        if self.whole.val() & self.has_slot.q.val() {
            self.taken.d.next = self.freed.val() | self.this_slot.val();
            self.slot.d.next = self.slot.q.val() + 1;
        }
        self.words.valid.next = self.word_valid.q.val();
        self.words.at.next = self.word_at.q.val();
        self.words.data.next = self.word_data.q.val();
        self.word_valid.d.next = self.goes_on.val() & self.has_slot.q.val();
        self.word_at.d.next =
            (bit_cast::<6, 3>(self.slot.q.val()) << 3) | bit_cast::<6, 3>(self.index.val());
        self.word_data.d.next = self.data.val();

        self.silence.d.next = self.silence.q.val() + 1;
        if self.silent.val() {
            self.silence.d.next = self.silence.q.val();
        }
        if self.breaking.val() & self.room.val() {
            self.under_way.d.next = false;
            self.broken.d.next = false;
        } else if self.goes_on.val() {
            self.silence.d.next = 0.into();
            self.awaited.d.next = self.awaited.q.val() + 1;
            if self.index.val() == 1 {
                // The word of its last byte: 2, and one for each 8 bytes.
                self.final_word.d.next = self.length_up.val().get_bits::<3>(3);
                self.broken.d.next = self.bad_control.val();
            }
            if (self.index.val() == 2) & self.some.val() {
                self.broken.d.next = true;
            }
            if self.whole.val() {
                self.under_way.d.next = false;
            }
        } else if self.moves.val() & self.first.val() & (!self.data.val().get_bit(63)) {
            self.under_way.d.next = true;
            self.page_at.d.next = self.page.val();
            self.line_at.d.next = self.line.val();
            self.awaited.d.next = 1.into();
            self.final_word.d.next = 0.into();
            self.token.d.next = self.data.val();
            self.silence.d.next = 0.into();
            self.has_slot.d.next = !self.slot_taken.val();
        }
        if self.reset.val() {
            self.taken.d.next = 0.into();
        }
        if self.reset.val() | (!self.enable.val()) {
            self.under_way.d.next = false;
            self.broken.d.next = false;
            self.word_valid.d.next = false;
        }
    }
}
