//! Takes requests of four clients in turn and cuts them at multiples of the TLP limit in address
//! space.
//!
//! ```text
//! Idle -> Cut -> Make -+-> Idle     one piece more than the number of limits crossed
//!          ^-----------'
//! ```
//! Whose request may come is known a cycle ahead (`open`): the client that stands next after the last one among
//! those that asked then, or `home` if none did. So no client sees the others' requests in the same cycle; one
//! that finds the cutter idle is taken at once if it is `home`, else a cycle later.
//!
//! A piece is everything a memory request header needs. Pieces wait in a FIFO of four, so that the
//! next one is ready when the current one has been sent. One that finds it empty is offered in the
//! cycle in which it goes there.
use crate::leaf::{Fifo, Number};
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum CutterState {
    /// Waits for a client.
    Idle,
    /// Measures the next piece.
    Cut,
    /// Waits for room in the FIFO and puts the piece there.
    Make,
}

/// See the module's text. `limit` is 128 << n bytes; n above 2 counts as 2.
#[derive(LogicBlock, Default)]
pub struct Cutter {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub limit: Signal<In, Bits<3>>,
    /// One bit a client.
    pub valid: Signal<In, Bits<4>>,
    pub address0: Signal<In, Bits<64>>,
    pub address1: Signal<In, Bits<64>>,
    pub address2: Signal<In, Bits<64>>,
    pub address3: Signal<In, Bits<64>>,
    pub length0: Signal<In, Bits<13>>,
    pub length1: Signal<In, Bits<13>>,
    pub length2: Signal<In, Bits<13>>,
    pub length3: Signal<In, Bits<13>>,
    /// Who has the turn when nobody asks, one-hot.
    pub home: Signal<In, Bits<4>>,
    /// The client whose request is taken in this cycle if it asks / is taken.
    pub open: Signal<Out, Bits<4>>,
    pub taken: Signal<Out, Bits<4>>,
    /// The oldest piece; meaningless while `empty`.
    pub empty: Signal<Out, Bit>,
    pub address: Signal<Out, Bits<64>>,
    /// Dwords, 1 to 128.
    pub length_dw: Signal<Out, Bits<10>>,
    pub first_be: Signal<Out, Bits<4>>,
    pub last_be: Signal<Out, Bits<4>>,
    /// Aligned 8-byte words touched, 1 to 64.
    pub beats: Signal<Out, Bits<7>>,
    /// 1 to 512.
    pub bytes: Signal<Out, Bits<10>>,
    pub client: Signal<Out, Bits<2>>,
    /// The last piece of its request.
    pub ends: Signal<Out, Bit>,
    /// Removes the piece; not in the cycle in which it is first offered.
    pub take: Signal<In, Bit>,
    /// Whose turn it is, as a difference to `home`, so that it is that one's after a reset; those behind the
    /// last one that had it.
    away: DFF<Bits<4>>,
    above: DFF<Bits<4>>,
    addresses: Fifo<64, 2>,
    shapes: Fifo<38, 2>,
    state: DFF<CutterState>,
    at: DFF<Bits<64>>,
    remaining: DFF<Bits<13>>,
    owner: DFF<Bits<2>>,
    piece: DFF<Bits<10>>,
    final_piece: DFF<Bit>,
    later: Signal<Local, Bits<4>>,
    asking: Signal<Local, Bits<4>>,
    next_turn: Signal<Local, Bits<4>>,
    turn: Signal<Local, Bits<4>>,
    open_now: Signal<Local, Bits<4>>,
    takes: Signal<Local, Bits<4>>,
    mask: Signal<Local, Bits<9>>,
    /// Of the piece that is made: dwords, whether it is one; the last byte's place in its dword;
    /// 8-byte words.
    dwords_at: DFF<Bits<9>>,
    lone: DFF<Bit>,
    tail: DFF<Bits<2>>,
    beats_at: DFF<Bits<7>>,
    gap: Signal<Local, Bits<9>>,
    space: Signal<Local, Bits<10>>,
    fits: Signal<Local, Bit>,
    dword_end: Signal<Local, Bits<11>>,
    beat_end: Signal<Local, Bits<11>>,
    /// What is left lies in one dword.
    short: Signal<Local, Bit>,
    span: Signal<Local, Bits<4>>,
    gap_dwords: Signal<Local, Bits<9>>,
    gap_beats: Signal<Local, Bits<7>>,
    first_mask: Signal<Local, Bits<4>>,
    last_mask: Signal<Local, Bits<4>>,
    both_mask: Signal<Local, Bits<4>>,
    make_first: Signal<Local, Bits<4>>,
    make_last: Signal<Local, Bits<4>>,
    write: Signal<Local, Bit>,
    shape_now: Signal<Local, Bits<38>>,
    shape: Signal<Local, Bits<38>>,
    last_place: Number<2, 3>,
    most: Number<4, 4>,
}

impl Logic for Cutter {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, at, remaining, owner, piece, final_piece, away, above);
        dff_setup!(self, clock, dwords_at, lone, tail, beats_at);
        clock!(self, clock, addresses, shapes);
        self.addresses.reset.next = self.reset.val();
        self.shapes.reset.next = self.reset.val();

        // Turns. A request stays until it is taken, so the one that has the turn is still there.
        self.later.next = self.valid.val() & self.above.q.val();
        self.asking.next = self.valid.val();
        if self.later.val().any() {
            self.asking.next = self.later.val();
        }
        self.next_turn.next = 8.into();
        if self.asking.val().get_bit(0) {
            self.next_turn.next = 1.into();
        } else if self.asking.val().get_bit(1) {
            self.next_turn.next = 2.into();
        } else if self.asking.val().get_bit(2) {
            self.next_turn.next = 4.into();
        }
        self.away.d.next = self.next_turn.val() ^ self.home.val();
        if !self.valid.val().any() {
            self.away.d.next = 0.into();
        }
        self.turn.next = self.away.q.val() ^ self.home.val();
        self.open_now.next = 0.into();
        if self.state.q.val() == CutterState::Idle {
            self.open_now.next = self.turn.val();
        }
        self.open.next = self.open_now.val();
        self.takes.next = self.open_now.val() & self.valid.val();
        self.taken.next = self.takes.val();

        // Cut: how much fits below the next multiple of the limit.
        self.mask.next = 0x1ff.into();
        if self.limit.val() == 0 {
            self.mask.next = 0x7f.into();
        } else if self.limit.val() == 1 {
            self.mask.next = 0xff.into();
        }
        self.gap.next = (!self.at.q.val().get_bits::<9>(0)) & self.mask.val();
        self.space.next = bit_cast::<10, 9>(self.gap.val()) + 1;
        self.fits.next = bit_cast::<13, 10>(self.space.val()) >= self.remaining.q.val();

        // What a piece touches: all that is left, or up to the limit.
        self.dword_end.next = bit_cast::<11, 10>(self.remaining.q.val().get_bits::<10>(0))
            + bit_cast::<11, 2>(self.at.q.val().get_bits::<2>(0))
            + 3;
        self.beat_end.next = bit_cast::<11, 10>(self.remaining.q.val().get_bits::<10>(0))
            + bit_cast::<11, 3>(self.at.q.val().get_bits::<3>(0))
            + 7;
        self.span.next = bit_cast::<4, 3>(self.remaining.q.val().get_bits::<3>(0))
            + bit_cast::<4, 2>(self.at.q.val().get_bits::<2>(0));
        self.short.next = (!self.remaining.q.val().get_bits::<10>(3).any())
            & (self.most.val() >= self.span.val());
        self.gap_dwords.next = bit_cast::<9, 7>(self.gap.val().get_bits::<7>(2)) + 1;
        self.gap_beats.next = bit_cast::<7, 6>(self.gap.val().get_bits::<6>(3)) + 1;

        // Make: the header's fields.
        self.first_mask.next = 0xf.into();
        if self.at.q.val().get_bits::<2>(0) == 1 {
            self.first_mask.next = 0xe.into();
        } else if self.at.q.val().get_bits::<2>(0) == 2 {
            self.first_mask.next = 0xc.into();
        } else if self.at.q.val().get_bits::<2>(0) == 3 {
            self.first_mask.next = 0x8.into();
        }
        self.last_mask.next = 0xf.into();
        if self.tail.q.val() == 0 {
            self.last_mask.next = 0x1.into();
        } else if self.tail.q.val() == 1 {
            self.last_mask.next = 0x3.into();
        } else if self.tail.q.val() == 2 {
            self.last_mask.next = 0x7.into();
        }
        self.both_mask.next = self.first_mask.val() & self.last_mask.val();
        self.make_first.next = self.first_mask.val();
        self.make_last.next = self.last_mask.val();
        if self.lone.q.val() {
            self.make_first.next = self.both_mask.val();
            self.make_last.next = 0.into();
        }
        self.addresses.data_in.next = self.at.q.val();
        self.shape_now.next = bit_cast::<38, 9>(self.dwords_at.q.val())
            | (bit_cast::<38, 4>(self.make_first.val()) << 10)
            | (bit_cast::<38, 4>(self.make_last.val()) << 14)
            | (bit_cast::<38, 7>(self.beats_at.q.val()) << 18)
            | (bit_cast::<38, 10>(self.piece.q.val()) << 25)
            | (bit_cast::<38, 2>(self.owner.q.val()) << 35)
            | (bit_cast::<38, 1>(self.final_piece.q.val().into()) << 37);
        self.shapes.data_in.next = self.shape_now.val();
        self.write.next = false;

        match self.state.q.val() {
            CutterState::Idle => {
                self.at.d.next = self.address0.val();
                self.remaining.d.next = self.length0.val();
                self.owner.d.next = 0.into();
                self.above.d.next = 0xe.into();
                if self.turn.val().get_bit(1) {
                    self.at.d.next = self.address1.val();
                    self.remaining.d.next = self.length1.val();
                    self.owner.d.next = 1.into();
                    self.above.d.next = 0xc.into();
                } else if self.turn.val().get_bit(2) {
                    self.at.d.next = self.address2.val();
                    self.remaining.d.next = self.length2.val();
                    self.owner.d.next = 2.into();
                    self.above.d.next = 0x8.into();
                } else if self.turn.val().get_bit(3) {
                    self.at.d.next = self.address3.val();
                    self.remaining.d.next = self.length3.val();
                    self.owner.d.next = 3.into();
                    self.above.d.next = 0.into();
                }
                if self.takes.val().any() {
                    self.state.d.next = CutterState::Cut;
                } else {
                    self.above.d.next = self.above.q.val();
                }
            }
            CutterState::Cut => {
                self.final_piece.d.next = self.fits.val();
                self.piece.d.next = self.space.val();
                self.dwords_at.d.next = self.gap_dwords.val();
                self.lone.d.next = !self.gap.val().get_bits::<7>(2).any();
                self.tail.d.next = self.last_place.val();
                self.beats_at.d.next = self.gap_beats.val();
                if self.fits.val() {
                    self.piece.d.next = self.remaining.q.val().get_bits::<10>(0);
                    self.dwords_at.d.next = self.dword_end.val().get_bits::<9>(2);
                    self.lone.d.next = self.short.val();
                    // The last byte's place in its dword.
                    self.tail.d.next = self.dword_end.val().get_bits::<2>(0);
                    self.beats_at.d.next = self.beat_end.val().get_bits::<7>(3);
                }
                self.state.d.next = CutterState::Make;
            }
            CutterState::Make => {
                if !self.addresses.full.val() {
                    self.write.next = true;
                    self.at.d.next = self.at.q.val() + bit_cast::<64, 10>(self.piece.q.val());
                    self.remaining.d.next =
                        self.remaining.q.val() - bit_cast::<13, 10>(self.piece.q.val());
                    self.state.d.next = CutterState::Cut;
                    if self.final_piece.q.val() {
                        self.state.d.next = CutterState::Idle;
                    }
                }
            }
            _ => {
                self.state.d.next = CutterState::Idle;
            }
        }
        self.addresses.write.next = self.write.val();
        self.shapes.write.next = self.write.val();
        self.addresses.read.next = self.take.val();
        self.shapes.read.next = self.take.val();

        // An empty FIFO is not full: what is made goes there.
        self.empty.next = self.addresses.empty.val() & (self.state.q.val() != CutterState::Make);
        self.address.next = self.addresses.data_out.val();
        self.shape.next = self.shapes.data_out.val();
        if self.addresses.empty.val() {
            self.address.next = self.at.q.val();
            self.shape.next = self.shape_now.val();
        }
        self.length_dw.next = self.shape.val().get_bits::<10>(0);
        self.first_be.next = self.shape.val().get_bits::<4>(10);
        self.last_be.next = self.shape.val().get_bits::<4>(14);
        self.beats.next = self.shape.val().get_bits::<7>(18);
        self.bytes.next = self.shape.val().get_bits::<10>(25);
        self.client.next = self.shape.val().get_bits::<2>(35);
        self.ends.next = self.shape.val().get_bit(37);
        if self.reset.val() {
            self.state.d.next = CutterState::Idle;
            self.away.d.next = 0.into();
            self.above.d.next = 0.into();
            self.open.next = 0.into();
            self.taken.next = 0.into();
        }
    }
}
