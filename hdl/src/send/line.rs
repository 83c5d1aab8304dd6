//! The words of push lines (contract 2.5): eight slots; what word 1 says; the data, beat by beat.

use crate::ifs::PushServer;
use crate::leaf::{LutRam, Number};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Line {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub words: PushServer,
    /// Looks at word 1 of `slot`, not at its data / what it says goes to the registers below.
    pub open: Signal<In, Bit>,
    pub load: Signal<In, Bit>,
    pub slot: Signal<In, Bits<3>>,
    // Pulses: the push whose slot is `head_slot` is done with; that of `drop_slot` has become a token.
    pub ends: Signal<In, Bit>,
    pub head_slot: Signal<In, Bits<3>>,
    pub drops: Signal<In, Bit>,
    pub drop_slot: Signal<In, Bits<3>>,
    /// What word 1 says is the length, in the cycle of `load`.
    pub length_now: Signal<Out, Bits<8>>,
    /// Bytes, 0 to 40; immediate data, else 0.
    pub length: Signal<Out, Bits<8>>,
    pub immediate: Signal<Out, Bit>,
    pub immediate_data: Signal<Out, Bits<32>>,
    /// Its beats (stream), while not `open`; bytes behind the last one are zero. The last one has moved or moves.
    pub valid: Signal<Out, Bit>,
    pub data: Signal<Out, Bits<64>>,
    pub ready: Signal<In, Bit>,
    pub brought: Signal<Out, Bit>,
    lines: LutRam<64, 6>,
    control: DFF<Bits<64>>,
    free_at: DFF<Bits<8>>,
    beat: DFF<Bits<3>>,
    ended: Signal<Local, Bits<8>>,
    all_moved: Signal<Local, Bit>,
    is_last: Signal<Local, Bit>,
    has_beat: Signal<Local, Bit>,
    one: Number<8, 1>,
    word_at: Signal<Local, Bits<3>>,
    length_up: Signal<Local, Bits<6>>,
    beat_count: Signal<Local, Bits<3>>,
    beat_after: Signal<Local, Bits<3>>,
    rest: Signal<Local, Bits<3>>,
    unused: Signal<Local, Bits<6>>,
    mask: Signal<Local, Bits<64>>,
    zero: Number<3, 0>,
    ones: Number<64, { u64::MAX }>,
    data_word: Number<3, 3>,
}

impl Logic for Line {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, control, free_at, beat);
        clock!(self, clock, lines);
        self.lines.write_address.next = self.words.at.val();
        self.lines.write_data.next = self.words.data.val();
        self.lines.write_enable.next = self.words.valid.val();
        self.ended.next = 0.into();
        if self.ends.val() {
            self.ended.next = self.one.val() << self.head_slot.val();
        }
        self.free_at.d.next = self.ended.val();
        if self.drops.val() {
            self.free_at.d.next = self.ended.val() | (self.one.val() << self.drop_slot.val());
        }
        self.words.free.next = self.free_at.q.val();

        self.word_at.next = self.beat.q.val() + self.data_word.val();
        self.length.next = self.control.q.val().get_bits::<8>(0);
        self.length_now.next = self.lines.read_data.val().get_bits::<8>(0);
        if self.open.val() {
            self.word_at.next = 1.into();
        }
        if self.load.val() {
            self.control.d.next = self.lines.read_data.val();
        }
        self.lines.read_address.next =
            (bit_cast::<6, 3>(self.slot.val()) << 3) | bit_cast::<6, 3>(self.word_at.val());
        self.immediate.next = self.control.q.val().get_bit(8);
        self.immediate_data.next = 0.into();
        if self.control.q.val().get_bit(8) {
            self.immediate_data.next = self.control.q.val().get_bits::<32>(32);
        }
        self.length_up.next = self.control.q.val().get_bits::<6>(0) + 7;
        self.beat_count.next = self.length_up.val().get_bits::<3>(3);
        self.beat_after.next = self.beat.q.val() + 1;
        self.is_last.next = self.beat_after.val() == self.beat_count.val();
        self.all_moved.next = self.beat.q.val() == self.beat_count.val();
        self.has_beat.next = (!self.open.val()) & (!self.all_moved.val());
        self.valid.next = self.has_beat.val();
        self.brought.next =
            self.all_moved.val() | (self.has_beat.val() & self.ready.val() & self.is_last.val());
        if self.open.val() {
            self.beat.d.next = 0.into();
        } else if self.has_beat.val() & self.ready.val() {
            self.beat.d.next = self.beat_after.val();
        }
        self.rest.next = 0.into();
        if self.is_last.val() {
            self.rest.next = self.zero.val() - self.control.q.val().get_bits::<3>(0);
        }
        self.unused.next = bit_cast::<6, 3>(self.rest.val()) << 3;
        self.mask.next = self.ones.val() >> self.unused.val();
        self.data.next = self.lines.read_data.val() & self.mask.val();
        if self.reset.val() {
            self.free_at.d.next = 0.into();
        }
    }
}
