//! Who follows the descriptor in flight (contract 2.3, 3.1): the token of Next.
//!
//! `look` (pulse) with `covers`: is Next of any use? Then, if it names the handle of the Next that
//! was looked up last, and lies behind that in its region, its token follows without a look-up
//! (`settled`); else the region table is asked. A Next that fails its checks gives the token {0xffff,
//! 0}, which no region has: the next fetch cannot reach it. `unreadable` (pulse): Next could not be
//! read again; the token {0xfffe, 0x3ffffff} makes the next fetch say so.

use crate::desc::{NO_REGION, UNREAD_OFFSET, UNREAD_REGION};
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Successor {
    pub clock: Signal<In, Clock>,
    /// Pulse: another tag or domain, or the regions may have changed.
    pub forget: Signal<In, Bit>,
    /// Next and NextHandle, stable for at least two cycles before `look`.
    pub va: Signal<In, Bits<64>>,
    pub handle: Signal<In, Bits<32>>,
    pub look: Signal<In, Bit>,
    pub covers: Signal<In, Bit>,
    /// With `look`: no look-up is needed.
    pub settled: Signal<Out, Bit>,
    /// Pulse, while `asks`: the region table answers.
    pub asks: Signal<In, Bit>,
    pub answer: Signal<In, Bit>,
    pub ok: Signal<In, Bit>,
    pub room: Signal<In, Bits<32>>,
    pub offset_64: Signal<In, Bits<27>>,
    pub unreadable: Signal<In, Bit>,
    /// Valid 42, offset 41:16, region 15:0.
    pub token: Signal<Out, Bits<43>>,
    // The descriptor in flight, and how many of its bytes and of those behind it were read.
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    pub have: Signal<In, Bits<9>>,
    /// The successor lies one to three lines behind it; its control segment was read with it, so many
    /// bytes behind.
    pub near: Signal<Out, Bit>,
    pub follows: Signal<Out, Bit>,
    pub stride: Signal<Out, Bits<9>>,
    valid: DFF<Bit>,
    region_at: DFF<Bits<16>>,
    offset_at: DFF<Bits<26>>,
    // The last Next that was looked up, and what lies between it and this one.
    known: DFF<Bit>,
    known_va: DFF<Bits<64>>,
    known_handle: DFF<Bits<32>>,
    known_room: DFF<Bits<32>>,
    known_offset: DFF<Bits<26>>,
    gap: DFF<Bits<64>>,
    same: DFF<Bit>,
    behind_it: DFF<Bit>,
    // From the descriptor in flight to the successor: it lies in its region; lines, and whether there
    // are more than three.
    beside: DFF<Bit>,
    steps: DFF<Bits<2>>,
    far: DFF<Bits<6>>,
    // Descriptors in flight whose successor lies one, two, three lines behind have it read.
    reaches: DFF<Bits<4>>,
    onward: Signal<Local, Bits<27>>,
    place: Signal<Local, Bits<26>>,
    named: Signal<Local, Bit>,
    found: Signal<Local, Bit>,
    aligned: Signal<Local, Bit>,
    derived: Signal<Local, Bit>,
    close: Signal<Local, Bit>,
    distance: Signal<Local, Bits<26>>,
    no_region: Number<16, NO_REGION>,
    unread_region: Number<16, UNREAD_REGION>,
    unread_offset: Number<26, UNREAD_OFFSET>,
    // Bytes to the end of a control segment that lies one, two, three lines behind.
    one_line: Number<9, { 64 + nic_regs::desc::CONTROL_BYTES }>,
    two_lines: Number<9, { 128 + nic_regs::desc::CONTROL_BYTES }>,
    three_lines: Number<9, { 192 + nic_regs::desc::CONTROL_BYTES }>,
}

impl Logic for Successor {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid, region_at, offset_at, known, known_va, known_handle);
        dff_setup!(self, clock, known_room, known_offset, gap, same, behind_it);
        dff_setup!(self, clock, beside, steps, far, reaches);
        self.token.next = bit_cast::<43, 16>(self.region_at.q.val())
            | (bit_cast::<43, 26>(self.offset_at.q.val()) << 16)
            | (bit_cast::<43, 1>(self.valid.q.val().into()) << 42);

        // In the same region as the one that is known, behind it.
        self.aligned.next = !self.va.val().get_bits::<6>(0).any();
        self.gap.d.next = self.va.val() - self.known_va.q.val();
        self.same.d.next = self.known.q.val() & (self.handle.val() == self.known_handle.q.val());
        self.behind_it.d.next = (!self.gap.q.val().get_bits::<32>(32).any())
            & (self.gap.q.val().get_bits::<32>(0) < self.known_room.q.val());
        self.onward.next = bit_cast::<27, 26>(self.known_offset.q.val())
            + bit_cast::<27, 26>(self.gap.q.val().get_bits::<26>(6));
        self.derived.next =
            self.same.q.val() & self.behind_it.q.val() & (!self.onward.val().get_bit(26));
        self.settled.next = (!self.covers.val()) | (!self.aligned.val()) | self.derived.val();

        // What the token becomes does not hang on the pulses, which come late.
        self.named.next = self.covers.val() & self.aligned.val() & self.derived.val();
        self.found.next = self.ok.val() & (!self.offset_64.val().get_bit(26));
        self.place.next = self.onward.val().get_bits::<26>(0);
        if self.asks.val() {
            self.named.next = true;
            self.place.next = self.offset_64.val().get_bits::<26>(0);
        }
        if self.look.val() | (self.answer.val() & self.found.val()) {
            self.region_at.d.next = self.no_region.val();
            self.offset_at.d.next = 0.into();
            if self.named.val() {
                self.region_at.d.next = self.handle.val().get_bits::<16>(0);
                self.offset_at.d.next = self.place.val();
            }
            self.beside.d.next =
                self.named.val() & (self.handle.val().get_bits::<16>(0) == self.region.val());
        }
        if self.look.val() {
            self.valid.d.next = self.covers.val();
            if self.covers.val() & self.aligned.val() & (!self.derived.val()) {
                self.known.d.next = false;
                self.known_va.d.next = self.va.val();
                self.known_handle.d.next = self.handle.val();
            }
        }
        if self.answer.val() {
            self.known_room.d.next = self.room.val();
            if self.found.val() {
                self.known.d.next = true;
                self.known_offset.d.next = self.offset_64.val().get_bits::<26>(0);
            }
        }
        if self.unreadable.val() {
            self.valid.d.next = true;
            self.region_at.d.next = self.unread_region.val();
            self.offset_at.d.next = self.unread_offset.val();
        }
        if self.forget.val() {
            self.known.d.next = false;
        }

        // Does it lie in what was read?
        self.distance.next = self.place.val() - self.offset.val();
        if self.look.val() | self.answer.val() {
            self.steps.d.next = self.distance.val().get_bits::<2>(0);
            self.far.d.next = bit_cast::<6, 1>(self.distance.val().get_bits::<4>(2).any().into())
                | (bit_cast::<6, 1>(self.distance.val().get_bits::<4>(6).any().into()) << 1)
                | (bit_cast::<6, 1>(self.distance.val().get_bits::<4>(10).any().into()) << 2)
                | (bit_cast::<6, 1>(self.distance.val().get_bits::<4>(14).any().into()) << 3)
                | (bit_cast::<6, 1>(self.distance.val().get_bits::<4>(18).any().into()) << 4)
                | (bit_cast::<6, 1>(self.distance.val().get_bits::<4>(22).any().into()) << 5);
        }
        self.reaches.d.next = (bit_cast::<4, 1>((self.have.val() >= self.one_line.val()).into())
            << 1)
            | (bit_cast::<4, 1>((self.have.val() >= self.two_lines.val()).into()) << 2)
            | (bit_cast::<4, 1>((self.have.val() >= self.three_lines.val()).into()) << 3);
        self.stride.next = bit_cast::<9, 2>(self.steps.q.val()) << 6;
        self.close.next =
            self.beside.q.val() & (!self.far.q.val().any()) & self.steps.q.val().any();
        self.near.next = self.close.val();
        self.follows.next =
            self.close.val() & self.reaches.q.val().get_bit(self.steps.q.val().index());
    }
}
