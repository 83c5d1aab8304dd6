//! Host requests, taken off `cq` whole and classified.
//!
//! ```text
//! Head0 -> Head1 -> [First -> [More ...]] -> Head0
//! ```
//! A TLP of any length is followed to its end, at full rate; its first data beat is kept. A
//! well-formed write to a push line is cut into its words, each a request of its own that does not
//! wait for the rest. Requests
//! wait in a FIFO of 16; while that is full, `cq` is held off. The oldest request is shown together
//! with what it is, the latter one cycle later.
use crate::leaf::{Fifo, Number};
use nic_regs::{csr, doorbell, tlp};
use rust_hdl::prelude::*;

const _: () = assert!(csr::BAR_SIZE == 1 << 13, "13 bits of offset in BAR0");
const _: () = assert!(doorbell::BAR_SIZE == 1 << 18, "18 bits of offset in BAR2");

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum ParseState {
    /// Waits for header beat 0.
    Head0,
    /// Waits for header beat 1.
    Head1,
    /// First data beat.
    First,
    /// Other data beats.
    More,
}

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct Parse {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub cq_valid: Signal<In, Bit>,
    pub cq_data: Signal<In, Bits<64>>,
    pub cq_last: Signal<In, Bit>,
    pub cq_bar: Signal<In, Bits<3>>,
    pub cq_ready: Signal<Out, Bit>,
    /// The oldest request: header beat 0, first data beat, low address bits.
    pub empty: Signal<Out, Bit>,
    pub pop: Signal<In, Bit>,
    pub request: Signal<Out, Bits<64>>,
    pub data: Signal<Out, Bits<64>>,
    /// It is not zero.
    pub some: Signal<Out, Bit>,
    pub at: Signal<Out, Bits<18>>,
    /// It is a word of a push line; its TLP ends wrongly with it.
    pub word: Signal<Out, Bit>,
    pub torn: Signal<Out, Bit>,
    // From here on: one cycle later.
    pub is_read: Signal<Out, Bit>,
    /// With good data.
    pub is_write: Signal<Out, Bit>,
    pub malformed: Signal<Out, Bit>,
    pub bar0: Signal<Out, Bit>,
    pub bar2: Signal<Out, Bit>,
    /// One dword, all bytes.
    pub whole_dword: Signal<Out, Bit>,
    /// One aligned 8-byte word, all bytes.
    pub whole_word: Signal<Out, Bit>,
    /// More than two dwords.
    pub long: Signal<Out, Bit>,
    /// Two dwords in two words.
    pub second_beat: Signal<Out, Bit>,
    /// For the completion.
    pub lower: Signal<Out, Bits<7>>,
    pub byte_count: Signal<Out, Bits<12>>,
    // Parsed requests: header beat 0, first data beat (bit 64: it is not zero), the rest (address
    // 17:0, BAR 20:18, malformed 21, word 22).
    heads: Fifo<64, 4>,
    bodies: Fifo<65, 4>,
    notes: Fifo<23, 4>,
    parse: DFF<ParseState>,
    head: DFF<Bits<64>>,
    bar: DFF<Bits<3>>,
    address: DFF<Bits<18>>,
    body: DFF<Bits<64>>,
    /// Data beats still expected.
    expected: DFF<Bits<11>>,
    /// The TLP is a well-formed write to a push line.
    lined: DFF<Bit>,
    r_is_read: DFF<Bit>,
    r_is_write: DFF<Bit>,
    r_malformed: DFF<Bit>,
    r_bar0: DFF<Bit>,
    r_bar2: DFF<Bit>,
    r_whole_dword: DFF<Bit>,
    r_whole_word: DFF<Bit>,
    r_long: DFF<Bit>,
    r_second_beat: DFF<Bit>,
    r_lower: DFF<Bits<7>>,
    r_byte_count: DFF<Bits<12>>,
    first: Signal<Local, Bits<64>>,
    take: Signal<Local, Bit>,
    push: Signal<Local, Bit>,
    push_bad: Signal<Local, Bit>,
    push_address: Signal<Local, Bits<18>>,
    push_word: Signal<Local, Bit>,
    torn_now: Signal<Local, Bit>,
    next_address: Signal<Local, Bits<18>>,
    line_end: Signal<Local, Bits<6>>,
    well_formed: Signal<Local, Bit>,
    head_length: Signal<Local, Bits<10>>,
    in_length: Signal<Local, Bits<11>>,
    in_words: Signal<Local, Bits<11>>,
    kind: Signal<Local, Bits<8>>,
    length: Signal<Local, Bits<10>>,
    first_be: Signal<Local, Bits<4>>,
    last_be: Signal<Local, Bits<4>>,
    end_be: Signal<Local, Bits<4>>,
    place: Signal<Local, Bits<18>>,
    lead: Signal<Local, Bits<2>>,
    trail: Signal<Local, Bits<2>>,
    spare: Signal<Local, Bits<3>>,
    one_dword: Signal<Local, Bit>,
    mem_read: Number<8, { tlp::MEM_READ as u64 }>,
    mem_write: Number<8, { tlp::MEM_WRITE as u64 }>,
    one_beat: Number<11, 1>,
    long_dwords: Number<11, 1024>,
    two: Number<10, 2>,
    one: Number<10, 1>,
    all: Number<4, 0xf>,
    both: Number<8, 0xff>,
    line_dwords: Number<6, { doorbell::PUSH_LINE_BYTES / 4 }>,
}

impl Logic for Parse {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            parse,
            head,
            bar,
            address,
            body,
            expected,
            lined,
            r_is_read,
            r_is_write,
            r_malformed,
            r_bar0,
            r_bar2,
            r_whole_dword,
            r_whole_word,
            r_long,
            r_second_beat,
            r_lower,
            r_byte_count
        );
        clock!(self, clock, heads, bodies, notes);
        self.heads.reset.next = self.reset.val();
        self.bodies.reset.next = self.reset.val();
        self.notes.reset.next = self.reset.val();

        // Parser.
        self.cq_ready.next = !self.notes.full.val();
        self.take.next = self.cq_valid.val() & (!self.notes.full.val());
        self.push.next = false;
        self.push_bad.next = false;
        self.push_address.next = self.address.q.val();
        self.heads.data_in.next = self.head.q.val();
        self.first.next = self.body.q.val();
        // Data beats of a write: aligned words that its dwords touch.
        self.head_length.next = self.head.q.val().get_bits::<10>(0);
        self.in_length.next = bit_cast::<11, 10>(self.head_length.val());
        if self.head_length.val() == 0 {
            self.in_length.next = self.long_dwords.val();
        }
        self.in_words.next =
            self.in_length.val() + bit_cast::<11, 1>(self.cq_data.val().get_bits::<1>(2)) + 1;
        self.next_address.next = self.address.q.val() + 8;
        // Push lines: offset 0x100 to 0x1ff of a page, whole words, not beyond the line.
        self.line_end.next = bit_cast::<6, 4>(self.cq_data.val().get_bits::<4>(2))
            + bit_cast::<6, 5>(self.head_length.val().get_bits::<5>(0));
        self.well_formed.next = (self.head.q.val().get_bits::<8>(24) == self.mem_write.val())
            & (!self.head.q.val().get_bit(14))
            & (self.bar.q.val() == 2)
            & (self.cq_data.val().get_bits::<4>(8) == 1)
            & (!self.cq_data.val().get_bit(2))
            & (self.head.q.val().get_bits::<8>(32) == self.both.val())
            & (!self.head_length.val().get_bit(0))
            & (!self.head_length.val().get_bits::<5>(5).any())
            & self.head_length.val().any()
            & (self.line_end.val() <= self.line_dwords.val());
        self.push_word.next = false;
        match self.parse.q.val() {
            ParseState::Head0 => {
                self.heads.data_in.next = self.cq_data.val();
                self.push_bad.next = true;
                if self.take.val() {
                    self.head.d.next = self.cq_data.val();
                    self.bar.d.next = self.cq_bar.val();
                    self.push.next = self.cq_last.val();
                    if !self.cq_last.val() {
                        self.parse.d.next = ParseState::Head1;
                    }
                }
            }
            ParseState::Head1 => {
                // A write without data is malformed.
                self.push_bad.next = self.head.q.val().get_bit(30);
                self.push_address.next = self.cq_data.val().get_bits::<18>(0);
                if self.take.val() {
                    self.address.d.next = self.cq_data.val().get_bits::<18>(0);
                    self.lined.d.next = self.well_formed.val();
                    self.expected.d.next =
                        bit_cast::<11, 10>(self.in_words.val().get_bits::<10>(1));
                    self.push.next = self.cq_last.val();
                    self.parse.d.next = ParseState::First;
                    if self.cq_last.val() {
                        self.parse.d.next = ParseState::Head0;
                    }
                }
            }
            ParseState::First => {
                self.first.next = self.cq_data.val();
                self.push_bad.next = (self.expected.q.val() != self.one_beat.val())
                    | (!self.head.q.val().get_bit(30));
                self.push_word.next = self.lined.q.val();
                if self.take.val() {
                    self.body.d.next = self.cq_data.val();
                    self.expected.d.next = self.expected.q.val() - 1;
                    if self.lined.q.val() {
                        self.address.d.next = self.next_address.val();
                    }
                    self.push.next = self.cq_last.val() | self.lined.q.val();
                    self.parse.d.next = ParseState::More;
                    if self.cq_last.val() {
                        self.parse.d.next = ParseState::Head0;
                    }
                }
            }
            ParseState::More => {
                self.push_bad.next = (self.expected.q.val() != self.one_beat.val())
                    | (!self.head.q.val().get_bit(30));
                self.push_word.next = self.lined.q.val() & (self.expected.q.val() != 0);
                if self.push_word.val() {
                    self.first.next = self.cq_data.val();
                }
                if self.take.val() {
                    if self.lined.q.val() {
                        self.address.d.next = self.next_address.val();
                    }
                    // Stays at 0: more data than the header says never looks right.
                    if self.expected.q.val() != 0 {
                        self.expected.d.next = self.expected.q.val() - 1;
                    }
                    self.push.next = self.cq_last.val() | self.push_word.val();
                    if self.cq_last.val() {
                        self.parse.d.next = ParseState::Head0;
                    }
                }
            }
            _ => {
                self.parse.d.next = ParseState::Head0;
            }
        }
        self.heads.write.next = self.push.val();
        self.bodies.data_in.next = bit_cast::<65, 64>(self.first.val())
            | (bit_cast::<65, 1>(self.first.val().any().into()) << 64);
        self.bodies.write.next = self.push.val();
        self.notes.write.next = self.push.val();
        // More words follow: the end is not known yet.
        self.torn_now.next = self.push_bad.val();
        if self.push_word.val() & (!self.cq_last.val()) {
            self.torn_now.next = false;
        }
        self.notes.data_in.next = bit_cast::<23, 18>(self.push_address.val())
            | (bit_cast::<23, 3>(self.bar.q.val()) << 18)
            | (bit_cast::<23, 1>(self.torn_now.val().into()) << 21)
            | (bit_cast::<23, 1>(self.push_word.val().into()) << 22);

        // Decode, from the head of the FIFO.
        self.kind.next = self.heads.data_out.val().get_bits::<8>(24);
        self.length.next = self.heads.data_out.val().get_bits::<10>(0);
        self.first_be.next = self.heads.data_out.val().get_bits::<4>(32);
        self.last_be.next = self.heads.data_out.val().get_bits::<4>(36);
        self.place.next = self.notes.data_out.val().get_bits::<18>(0);
        self.one_dword.next = self.length.val() == self.one.val();
        self.r_is_read.d.next = self.kind.val() == self.mem_read.val();
        // Poisoned data is not taken.
        self.r_is_write.d.next =
            (self.kind.val() == self.mem_write.val()) & (!self.heads.data_out.val().get_bit(14));
        self.r_malformed.d.next = self.notes.data_out.val().get_bit(21);
        self.r_bar0.d.next = self.notes.data_out.val().get_bits::<3>(18) == 0;
        self.r_bar2.d.next = self.notes.data_out.val().get_bits::<3>(18) == 2;
        self.r_whole_dword.d.next = self.one_dword.val()
            & (self.first_be.val() == self.all.val())
            & (self.last_be.val() == 0);
        self.r_whole_word.d.next = (self.length.val() == self.two.val())
            & (self.first_be.val() == self.all.val())
            & (self.last_be.val() == self.all.val())
            & (!self.place.val().get_bit(2));
        self.r_long.d.next = (self.length.val() > self.two.val()) | (self.length.val() == 0);
        self.r_second_beat.d.next =
            (self.length.val() == self.two.val()) & self.place.val().get_bit(2);
        // Bytes that are not enabled, before the first and after the last one that is.
        self.end_be.next = self.last_be.val();
        if self.one_dword.val() {
            self.end_be.next = self.first_be.val();
        }
        self.lead.next = 0.into();
        if self.first_be.val().get_bits::<3>(0) == 4 {
            self.lead.next = 2.into();
        } else if self.first_be.val().get_bits::<2>(0) == 2 {
            self.lead.next = 1.into();
        } else if self.first_be.val() == 8 {
            self.lead.next = 3.into();
        }
        self.trail.next = 0.into();
        if self.end_be.val().get_bits::<3>(1) == 1 {
            self.trail.next = 2.into();
        } else if self.end_be.val().get_bits::<2>(2) == 1 {
            self.trail.next = 1.into();
        } else if self.end_be.val() == 1 {
            self.trail.next = 3.into();
        }
        self.spare.next = bit_cast::<3, 2>(self.lead.val()) + bit_cast::<3, 2>(self.trail.val());
        self.r_lower.d.next = (bit_cast::<7, 5>(self.place.val().get_bits::<5>(2)) << 2)
            | bit_cast::<7, 2>(self.lead.val());
        self.r_byte_count.d.next =
            (bit_cast::<12, 10>(self.length.val()) << 2) - bit_cast::<12, 3>(self.spare.val());
        // A read of no bytes counts as one byte.
        if self.one_dword.val() & (self.first_be.val() == 0) {
            self.r_byte_count.d.next = 1.into();
        }

        self.empty.next = self.notes.empty.val();
        self.request.next = self.heads.data_out.val();
        self.data.next = self.bodies.data_out.val().get_bits::<64>(0);
        self.some.next = self.bodies.data_out.val().get_bit(64);
        self.at.next = self.place.val();
        self.word.next = self.notes.data_out.val().get_bit(22);
        self.torn.next = self.notes.data_out.val().get_bit(21);
        self.is_read.next = self.r_is_read.q.val();
        self.is_write.next = self.r_is_write.q.val();
        self.malformed.next = self.r_malformed.q.val();
        self.bar0.next = self.r_bar0.q.val();
        self.bar2.next = self.r_bar2.q.val();
        self.whole_dword.next = self.r_whole_dword.q.val();
        self.whole_word.next = self.r_whole_word.q.val();
        self.long.next = self.r_long.q.val();
        self.second_beat.next = self.r_second_beat.q.val();
        self.lower.next = self.r_lower.q.val();
        self.byte_count.next = self.r_byte_count.q.val();
        self.heads.read.next = self.pop.val();
        self.bodies.read.next = self.pop.val();
        self.notes.read.next = self.pop.val();
        if self.reset.val() {
            self.parse.d.next = ParseState::Head0;
        }
    }
}
