//! What a read of descriptors brought: 32 words of 16 bytes, as they are in memory.
//!
//! `clear` (pulse, with the request) starts at word `from`; beats are taken as they come. `data_even`
//! and `data_odd` are word `word`; it is there when `present`.

use crate::leaf::{LutRam, Number};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Buffer {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub clear: Signal<In, Bit>,
    pub from: Signal<In, Bits<5>>,
    pub valid: Signal<In, Bit>,
    pub data: Signal<In, Bits<64>>,
    pub last: Signal<In, Bit>,
    pub error: Signal<In, Bit>,
    pub word: Signal<In, Bits<5>>,
    pub present: Signal<Out, Bit>,
    pub data_even: Signal<Out, Bits<64>>,
    pub data_odd: Signal<Out, Bits<64>>,
    /// The read is under way / it failed.
    pub reading: Signal<Out, Bit>,
    pub failed: Signal<Out, Bit>,
    even: LutRam<64, 5>,
    odd: LutRam<64, 5>,
    beat: DFF<Bits<7>>,
    reading_at: DFF<Bit>,
    failed_at: DFF<Bit>,
    words: Signal<Local, Bits<6>>,
    one: Number<7, 1>,
}

impl Logic for Buffer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, beat, reading_at, failed_at);
        clock!(self, clock, even, odd);
        self.words.next = self.beat.q.val().get_bits::<6>(1);
        self.present.next = bit_cast::<6, 5>(self.word.val()) < self.words.val();
        self.reading.next = self.reading_at.q.val();
        self.failed.next = self.failed_at.q.val();
        self.even.read_address.next = self.word.val();
        self.odd.read_address.next = self.word.val();
        self.data_even.next = self.even.read_data.val();
        self.data_odd.next = self.odd.read_data.val();
        self.even.write_address.next = self.beat.q.val().get_bits::<5>(1);
        self.odd.write_address.next = self.beat.q.val().get_bits::<5>(1);
        self.even.write_data.next = self.data.val();
        self.odd.write_data.next = self.data.val();
        self.even.write_enable.next = self.valid.val() & (!self.beat.q.val().get_bit(0));
        self.odd.write_enable.next = self.valid.val() & self.beat.q.val().get_bit(0);
        if self.valid.val() {
            self.beat.d.next = self.beat.q.val() + self.one.val();
            if self.last.val() {
                self.reading_at.d.next = false;
                self.failed_at.d.next = self.error.val();
            }
        }
        if self.clear.val() {
            self.beat.d.next = bit_cast::<7, 5>(self.from.val()) << 1;
            self.reading_at.d.next = true;
            self.failed_at.d.next = false;
        }
        if self.reset.val() {
            self.reading_at.d.next = false;
            self.failed_at.d.next = false;
        }
    }
}
