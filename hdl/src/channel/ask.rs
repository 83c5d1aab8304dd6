//! The question before each frame: are there chunks (contract 7.5) and credits (7.4) for it, and is
//! the channel open?
//!
//! ```text
//! Idle -> Read -> Weigh -> Judge -> Answer -> Idle          (one cycle each)
//!                            `-> reservations (4)
//! ```
//! A good answer charges chunks and units at once and leaves a reservation; freed and aborted
//! frames give them back through `give`. Between Read and Judge the tables belong to the question,
//! and `give` waits.
use super::num::Num;
use crate::leaf::{Fifo, LutRam};
use nic_regs::limits::{POOL_CHUNK_COUNT, POOL_PEER_CHUNKS, POOL_RESERVED_CHUNKS};
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum AskState {
    /// Waits for a question.
    Idle,
    /// Reads the peer's tables.
    Read,
    /// Sums.
    Weigh,
    /// Compares; a good answer is charged here.
    Judge,
    /// Tells the client.
    Answer,
}

#[derive(LogicBlock, Default)]
pub struct Ask {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// The chunks are listed; before, the tables are cleared along with `building`.
    pub ready: Signal<In, Bit>,
    pub building: Signal<In, Bits<7>>,
    // As in `PoolServer`.
    pub ask_valid: Signal<In, Bit>,
    pub ask_data: Signal<In, Bit>,
    pub ask_sequenced: Signal<In, Bit>,
    pub ask_peer: Signal<In, Bits<8>>,
    pub ask_length: Signal<In, Bits<13>>,
    pub ask_done: Signal<Out, Bit>,
    pub ask_ok: Signal<Out, Bit>,
    pub ask_down: Signal<Out, Bit>,
    pub open: Signal<In, Bits<64>>,
    pub colours: Signal<In, Bits<64>>,
    /// Credit limit of `limit_peer`.
    pub limit_peer: Signal<Out, Bits<6>>,
    pub limit: Signal<In, Bits<8>>,
    /// A peer is being opened: it starts with no units.
    pub opened: Signal<In, Bit>,
    pub opened_peer: Signal<In, Bits<6>>,
    /// The oldest reservation: peer 5:0, sequenced 6, colour 7, length 20:8, chunks 25:21, units
    /// 30:26.
    pub reserved: Signal<Out, Bits<31>>,
    pub reserved_valid: Signal<Out, Bit>,
    pub reserved_taken: Signal<In, Bit>,
    /// `give` may happen in this cycle.
    pub may_give: Signal<Out, Bit>,
    pub give: Signal<In, Bit>,
    pub give_peer: Signal<In, Bits<6>>,
    pub give_chunks: Signal<In, Bits<8>>,
    pub give_units: Signal<In, Bits<8>>,
    /// Chunks charged to a peer.
    shares: LutRam<8, 6>,
    /// Credit units charged to a peer.
    units: LutRam<8, 6>,
    reservations: Fifo<31, 2>,
    state: DFF<AskState>,
    available: DFF<Bits<8>>,
    peer: DFF<Bits<6>>,
    data_frame: DFF<Bit>,
    sequenced: DFF<Bit>,
    length: DFF<Bits<13>>,
    is_open: DFF<Bit>,
    colour: DFF<Bit>,
    needed: DFF<Bits<8>>,
    cost: DFF<Bits<8>>,
    share: DFF<Bits<8>>,
    share_after: DFF<Bits<8>>,
    units_after: DFF<Bits<8>>,
    over_credit: DFF<Bits<8>>,
    needed_free: DFF<Bits<8>>,
    accepted: DFF<Bit>,
    padded: Signal<Local, Bits<13>>,
    need: Signal<Local, Bits<8>>,
    padded_beats: Signal<Local, Bits<14>>,
    load_beats: Signal<Local, Bits<14>>,
    load: Signal<Local, Bits<14>>,
    load_units: Signal<Local, Bits<8>>,
    over: Signal<Local, Bit>,
    charge: Signal<Local, Bit>,
    reading: Signal<Local, Bit>,
    at: Signal<Local, Bits<6>>,
    taken_off: Signal<Local, Bits<8>>,
    put_back: Signal<Local, Bits<8>>,
    zero_8: Num<8, 0>,
    one_8: Num<8, 1>,
    round_chunk: Num<13, 255>,
    round_units: Num<14, 34>,
    kept_free: Num<8, { POOL_RESERVED_CHUNKS as u64 }>,
    share_max: Num<8, { POOL_PEER_CHUNKS as u64 }>,
    all_chunks: Num<8, { POOL_CHUNK_COUNT as u64 }>,
}

impl Logic for Ask {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, available, peer, data_frame, sequenced, length, is_open);
        dff_setup!(self, clock, colour, needed, cost, share, share_after, units_after);
        dff_setup!(self, clock, over_credit, needed_free, accepted);
        clock!(self, clock, shares, units, reservations);
        self.reservations.reset.next = self.reset.val();

        // Freeing and asking share the ports of `shares` and `units`; asking has them from Read to
        // Judge.
        self.reading.next = (self.state.q.val() == AskState::Read)
            | (self.state.q.val() == AskState::Weigh)
            | (self.state.q.val() == AskState::Judge);
        self.may_give.next = !(self.reading.val() | self.opened.val());
        self.at.next = self.give_peer.val();
        if self.reading.val() {
            self.at.next = self.peer.q.val();
        }
        self.shares.read_address.next = self.at.val();
        self.units.read_address.next = self.at.val();

        // The question. A frame takes one chunk at least; header and payload are rounded up to
        // credit units.
        self.padded.next = self.length.q.val() + self.round_chunk.val();
        self.need.next = bit_cast::<8, 5>(self.padded.val().get_bits::<5>(8));
        self.padded_beats.next = bit_cast::<14, 13>(self.length.q.val()) + 7;
        self.load_beats.next = bit_cast::<14, 10>(self.padded_beats.val().get_bits::<10>(3));
        self.load.next = self.load_beats.val() + self.round_units.val();
        self.load_units.next = bit_cast::<8, 5>(self.load.val().get_bits::<5>(5));
        self.limit_peer.next = self.peer.q.val();
        self.over.next = (self.available.q.val() < self.needed_free.q.val())
            | (self.data_frame.q.val() & (self.share_after.q.val() > self.share_max.val()))
            | (self.sequenced.q.val()
                & (!self.over_credit.q.val().get_bit(7))
                & (self.over_credit.q.val() != self.zero_8.val()));
        self.charge.next = false;
        self.ask_done.next = false;
        self.ask_ok.next = self.accepted.q.val();
        self.ask_down.next = !self.is_open.q.val();
        match self.state.q.val() {
            AskState::Idle => {
                self.peer.d.next = self.ask_peer.val().get_bits::<6>(0);
                self.data_frame.d.next = self.ask_data.val();
                self.sequenced.d.next = self.ask_sequenced.val();
                self.length.d.next = self.ask_length.val();
                if self.ask_valid.val() & self.ready.val() & !self.reservations.full.val() {
                    self.state.d.next = AskState::Read;
                }
            }
            AskState::Read => {
                self.is_open.d.next = self.open.val().get_bit(self.peer.q.val().index());
                self.colour.d.next = self.colours.val().get_bit(self.peer.q.val().index());
                self.needed.d.next = self.need.val();
                if self.need.val() == self.zero_8.val() {
                    self.needed.d.next = self.one_8.val();
                }
                self.share.d.next = self.shares.read_data.val();
                self.cost.d.next = 0.into();
                self.units_after.d.next = self.units.read_data.val();
                if self.sequenced.q.val() {
                    self.cost.d.next = self.load_units.val();
                    self.units_after.d.next = self.units.read_data.val() + self.load_units.val();
                }
                self.state.d.next = AskState::Weigh;
            }
            AskState::Weigh => {
                self.over_credit.d.next = self.units_after.q.val() - self.limit.val();
                self.share_after.d.next = self.share.q.val() + self.needed.q.val();
                self.needed_free.d.next = self.needed.q.val();
                if self.data_frame.q.val() {
                    self.needed_free.d.next = self.needed.q.val() + self.kept_free.val();
                }
                self.state.d.next = AskState::Judge;
            }
            AskState::Judge => {
                // An opening peer's start value has the port of `units` for a cycle.
                if !self.opened.val() {
                    self.charge.next = self.is_open.q.val() & !self.over.val();
                    self.accepted.d.next = self.is_open.q.val() & !self.over.val();
                    self.state.d.next = AskState::Answer;
                }
            }
            AskState::Answer => {
                self.ask_done.next = true;
                self.state.d.next = AskState::Idle;
            }
            _ => {
                self.state.d.next = AskState::Idle;
            }
        }
        self.reservations.write.next = self.charge.val();
        self.reservations.data_in.next = bit_cast::<31, 6>(self.peer.q.val())
            | (bit_cast::<31, 1>(self.sequenced.q.val().into()) << 6)
            | (bit_cast::<31, 1>(self.colour.q.val().into()) << 7)
            | (bit_cast::<31, 13>(self.length.q.val()) << 8)
            | (bit_cast::<31, 5>(self.needed.q.val().get_bits::<5>(0)) << 21)
            | (bit_cast::<31, 5>(self.cost.q.val().get_bits::<5>(0)) << 26);

        self.reserved.next = self.reservations.data_out.val();
        self.reserved_valid.next = !self.reservations.empty.val();
        self.reservations.read.next = self.reserved_taken.val();

        // Charges.
        self.shares.write_enable.next = false;
        self.shares.write_address.next = self.give_peer.val();
        self.shares.write_data.next = self.shares.read_data.val() - self.give_chunks.val();
        self.units.write_enable.next = false;
        self.units.write_address.next = self.give_peer.val();
        self.units.write_data.next = self.units.read_data.val() - self.give_units.val();
        self.taken_off.next = 0.into();
        self.put_back.next = 0.into();
        if !self.ready.val() {
            self.shares.write_enable.next = true;
            self.shares.write_address.next = self.building.val().get_bits::<6>(0);
            self.shares.write_data.next = 0.into();
        } else if self.charge.val() {
            self.shares.write_enable.next = true;
            self.shares.write_address.next = self.peer.q.val();
            self.shares.write_data.next = self.share_after.q.val();
            self.units.write_enable.next = true;
            self.units.write_address.next = self.peer.q.val();
            self.units.write_data.next = self.units_after.q.val();
            self.taken_off.next = self.needed.q.val();
        } else if self.give.val() {
            self.shares.write_enable.next = true;
            self.units.write_enable.next = true;
            self.put_back.next = self.give_chunks.val();
        }
        if self.opened.val() {
            self.units.write_enable.next = true;
            self.units.write_address.next = self.opened_peer.val();
            self.units.write_data.next = 0.into();
        }
        self.available.d.next =
            (self.available.q.val() + self.put_back.val()) - self.taken_off.val();
        if self.reset.val() {
            self.state.d.next = AskState::Idle;
            self.available.d.next = self.all_chunks.val();
        }
    }
}
