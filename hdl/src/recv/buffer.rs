//! What reads of descriptors brought: four banks of 16 words of 16 bytes, as they are in memory.
//!
//! `open` (pulse, with a request) adds a read of one bank or, `open_wide`, of two; answers come in
//! the order of requests. `data_even` and `data_odd` are word `word` of the oldest read; it is there
//! when `present`. `finish` (pulse) gives that read's banks back.

use crate::leaf::{Fifo, LutRam, Number};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Buffer {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub open: Signal<In, Bit>,
    pub open_wide: Signal<In, Bit>,
    pub finish: Signal<In, Bit>,
    /// Another read of two banks can be opened.
    pub room: Signal<Out, Bit>,
    pub valid: Signal<In, Bit>,
    pub data: Signal<In, Bits<64>>,
    pub last: Signal<In, Bit>,
    pub error: Signal<In, Bit>,
    pub word: Signal<In, Bits<5>>,
    pub present: Signal<Out, Bit>,
    pub data_even: Signal<Out, Bits<64>>,
    pub data_odd: Signal<Out, Bits<64>>,
    /// The oldest read has not ended / it failed.
    pub reading: Signal<Out, Bit>,
    pub failed: Signal<Out, Bit>,
    even: LutRam<64, 6>,
    odd: LutRam<64, 6>,
    // Of reads that are to be answered; of all, and of those that have ended.
    comes_wide: Fifo<1, 2>,
    wide: Fifo<1, 2>,
    fails: Fifo<1, 2>,
    beat: DFF<Bits<6>>,
    comes_bank: DFF<Bits<2>>,
    bank: DFF<Bits<2>>,
    used: DFF<Bits<3>>,
    added: Signal<Local, Bits<3>>,
    freed: Signal<Local, Bits<3>>,
    place: Signal<Local, Bits<6>>,
    wanted: Signal<Local, Bits<6>>,
    ends: Signal<Local, Bit>,
    most_used: Number<3, 2>,
    one: Number<3, 1>,
    two: Number<3, 2>,
}

impl Logic for Buffer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, beat, comes_bank, bank, used);
        clock!(self, clock, even, odd, comes_wide, wide, fails);
        self.comes_wide.reset.next = self.reset.val();
        self.wide.reset.next = self.reset.val();
        self.fails.reset.next = self.reset.val();

        // The oldest read.
        self.reading.next = self.fails.empty.val();
        self.failed.next = (!self.fails.empty.val()) & self.fails.data_out.val().any();
        self.present.next =
            (!self.fails.empty.val()) | (self.word.val() < self.beat.q.val().get_bits::<5>(1));
        self.wanted.next =
            (bit_cast::<6, 2>(self.bank.q.val()) << 4) + bit_cast::<6, 5>(self.word.val());
        self.even.read_address.next = self.wanted.val();
        self.odd.read_address.next = self.wanted.val();
        self.data_even.next = self.even.read_data.val();
        self.data_odd.next = self.odd.read_data.val();

        // Banks.
        self.added.next = 0.into();
        if self.open.val() {
            self.added.next = self.one.val();
            if self.open_wide.val() {
                self.added.next = self.two.val();
            }
        }
        self.freed.next = 0.into();
        if self.finish.val() {
            self.freed.next = self.one.val();
            if self.wide.data_out.val().any() {
                self.freed.next = self.two.val();
            }
        }
        self.used.d.next = (self.used.q.val() + self.added.val()) - self.freed.val();
        self.bank.d.next = self.bank.q.val() + self.freed.val().get_bits::<2>(0);
        self.room.next = self.most_used.val() >= self.used.q.val();
        self.comes_wide.write.next = self.open.val();
        self.comes_wide.data_in.next = self.open_wide.val().into();
        self.wide.write.next = self.open.val();
        self.wide.data_in.next = self.open_wide.val().into();
        self.wide.read.next = self.finish.val();
        self.fails.read.next = self.finish.val();

        // Beats.
        self.ends.next = self.valid.val() & self.last.val();
        self.comes_wide.read.next = self.ends.val();
        self.fails.write.next = self.ends.val();
        self.fails.data_in.next = self.error.val().into();
        self.place.next = (bit_cast::<6, 2>(self.comes_bank.q.val()) << 4)
            + bit_cast::<6, 5>(self.beat.q.val().get_bits::<5>(1));
        self.even.write_address.next = self.place.val();
        self.odd.write_address.next = self.place.val();
        self.even.write_data.next = self.data.val();
        self.odd.write_data.next = self.data.val();
        self.even.write_enable.next = self.valid.val() & (!self.beat.q.val().get_bit(0));
        self.odd.write_enable.next = self.valid.val() & self.beat.q.val().get_bit(0);
        if self.valid.val() {
            self.beat.d.next = self.beat.q.val() + 1;
        }
        if self.ends.val() {
            self.beat.d.next = 0.into();
            self.comes_bank.d.next = self.comes_bank.q.val() + 1;
            if self.comes_wide.data_out.val().any() {
                self.comes_bank.d.next = self.comes_bank.q.val() + 2;
            }
        }
        if self.reset.val() {
            self.beat.d.next = 0.into();
            self.comes_bank.d.next = 0.into();
            self.bank.d.next = 0.into();
            self.used.d.next = 0.into();
        }
    }
}
