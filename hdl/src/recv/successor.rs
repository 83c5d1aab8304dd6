//! Who follows the descriptor in hand (contract 2.3, 3.1): the token of Next.
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
    /// Pulse: the region table answers.
    pub answer: Signal<In, Bit>,
    pub ok: Signal<In, Bit>,
    pub room: Signal<In, Bits<32>>,
    pub offset_64: Signal<In, Bits<27>>,
    pub unreadable: Signal<In, Bit>,
    /// Valid 42, offset 41:16, region 15:0.
    pub token: Signal<Out, Bits<43>>,
    // The descriptor in hand, and how many of its bytes and of those behind it were read.
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
    onward: Signal<Local, Bits<27>>,
    aligned: Signal<Local, Bit>,
    derived: Signal<Local, Bit>,
    close: Signal<Local, Bit>,
    distance: Signal<Local, Bits<26>>,
    behind: Signal<Local, Bits<9>>,
    reach: Signal<Local, Bits<9>>,
    no_region: Number<16, NO_REGION>,
    unread_region: Number<16, UNREAD_REGION>,
    unread_offset: Number<26, UNREAD_OFFSET>,
    control_bytes: Number<9, { nic_regs::desc::CONTROL_BYTES }>,
}

impl Logic for Successor {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid, region_at, offset_at, known, known_va, known_handle);
        dff_setup!(self, clock, known_room, known_offset, gap, same, behind_it);
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

        if self.look.val() {
            self.valid.d.next = self.covers.val();
            self.region_at.d.next = self.no_region.val();
            self.offset_at.d.next = 0.into();
            if self.covers.val() & self.aligned.val() {
                if self.derived.val() {
                    self.region_at.d.next = self.handle.val().get_bits::<16>(0);
                    self.offset_at.d.next = self.onward.val().get_bits::<26>(0);
                } else {
                    self.known.d.next = false;
                    self.known_va.d.next = self.va.val();
                    self.known_handle.d.next = self.handle.val();
                }
            }
        }
        if self.answer.val() {
            self.known_room.d.next = self.room.val();
            if self.ok.val() & (!self.offset_64.val().get_bit(26)) {
                self.known.d.next = true;
                self.region_at.d.next = self.handle.val().get_bits::<16>(0);
                self.known_offset.d.next = self.offset_64.val().get_bits::<26>(0);
                self.offset_at.d.next = self.offset_64.val().get_bits::<26>(0);
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
        self.distance.next = self.offset_at.q.val() - self.offset.val();
        self.behind.next = bit_cast::<9, 2>(self.distance.val().get_bits::<2>(0)) << 6;
        self.reach.next = self.behind.val() + self.control_bytes.val();
        self.stride.next = self.behind.val();
        self.close.next = (self.region_at.q.val() == self.region.val())
            & (!self.distance.val().get_bits::<24>(2).any())
            & self.distance.val().get_bits::<2>(0).any();
        self.near.next = self.close.val();
        self.follows.next = self.close.val() & (self.reach.val() <= self.have.val());
    }
}
