//! The question before each frame: are there chunks (contract 7.5) and credits (7.4) for it, and is
//! the channel open?
//!
//! ```text
//! Idle -> Judge -> Answer -> Idle          (one cycle each)
//!                     `-> reservations (4)
//! ```
//! The limit is that of frames which may enter: it may be exceeded by CREDITS_AHEAD units as long as
//! POOL_AHEAD_CHUNKS chunks stay free. What may be sent is the business of [`super::credit_limit`].
//!
//! A good answer charges chunks and units at once and leaves a reservation (but for a probe); freed frames give back
//! their chunks, aborted ones their units too, through `give`. The tables are read in Idle, with the
//! question; a `give` in that very cycle makes Judge read them once more, and none comes in Judge and
//! Answer. The charge is written in Answer; a client that waits gets its reservation then.
use super::num::Num;
use crate::leaf::{Fifo, LutRam};
use nic_regs::limits::{
    CREDITS_AHEAD, POOL_AHEAD_CHUNKS, POOL_CHUNK_COUNT, POOL_PEER_CHUNKS, POOL_RESERVED_CHUNKS,
};
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum AskState {
    /// Waits for a question, and reads its peer's tables.
    Idle,
    /// Sums and compares.
    Judge,
    /// Tells the client; a good answer is charged here.
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
    pub ask_probe: Signal<In, Bit>,
    pub ask_data: Signal<In, Bit>,
    pub ask_sequenced: Signal<In, Bit>,
    pub ask_peer: Signal<In, Bits<8>>,
    pub ask_length: Signal<In, Bits<13>>,
    pub ask_done: Signal<Out, Bit>,
    pub ask_ok: Signal<Out, Bit>,
    pub ask_down: Signal<Out, Bit>,
    pub open: Signal<In, Bits<64>>,
    pub epoch_bits: Signal<In, Bits<64>>,
    /// Credit limit of `limit_peer`.
    pub limit_peer: Signal<Out, Bits<6>>,
    pub limit: Signal<In, Bits<8>>,
    /// A peer is being opened: it starts with no units.
    pub opened: Signal<In, Bit>,
    pub opened_peer: Signal<In, Bits<6>>,
    /// The oldest reservation: peer 5:0, sequenced 6, epoch bit 7, length 20:8, chunks 25:21, units
    /// 30:26.
    pub reserved: Signal<Out, Bits<31>>,
    pub reserved_valid: Signal<Out, Bit>,
    pub reserved_taken: Signal<In, Bit>,
    /// Reservations from before the last PeerOpen, of any peer, wait.
    pub old: Signal<Out, Bit>,
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
    /// The same for `give`.
    shares_give: LutRam<8, 6>,
    units_give: LutRam<8, 6>,
    reservations: Fifo<31, 2>,
    old_count: DFF<Bits<3>>,
    waiting: Signal<Local, Bits<16>>,
    read: Signal<Local, Bit>,
    state: DFF<AskState>,
    available: DFF<Bits<8>>,
    peer: DFF<Bits<6>>,
    probe: DFF<Bit>,
    data_frame: DFF<Bit>,
    sequenced: DFF<Bit>,
    length: DFF<Bits<13>>,
    is_open: DFF<Bit>,
    epoch_bit: DFF<Bit>,
    needed: DFF<Bits<8>>,
    cost: DFF<Bits<8>>,
    share: DFF<Bits<8>>,
    charged: DFF<Bits<8>>,
    allowed: DFF<Bits<8>>,
    accepted: DFF<Bit>,
    gave: DFF<Bit>,
    share_after: DFF<Bits<8>>,
    units_after: DFF<Bits<8>>,
    share_sum: Signal<Local, Bits<8>>,
    clearing: DFF<Bit>,
    cleared: DFF<Bits<6>>,
    fresh: Signal<Local, Bits<31>>,
    waits: Signal<Local, Bit>,
    over_credit: Signal<Local, Bits<8>>,
    beyond: Signal<Local, Bit>,
    far_beyond: Signal<Local, Bit>,
    needed_free: Signal<Local, Bits<8>>,
    needed_ahead: Signal<Local, Bits<8>>,
    shares_write: Signal<Local, Bit>,
    shares_at: Signal<Local, Bits<6>>,
    shares_to: Signal<Local, Bits<8>>,
    units_write: Signal<Local, Bit>,
    units_at: Signal<Local, Bits<6>>,
    units_to: Signal<Local, Bits<8>>,
    padded: Signal<Local, Bits<13>>,
    need: Signal<Local, Bits<8>>,
    chunks: Signal<Local, Bits<8>>,
    over: Signal<Local, Bit>,
    charge: Signal<Local, Bit>,
    reads: Signal<Local, Bit>,
    at: Signal<Local, Bits<6>>,
    taken_off: Signal<Local, Bits<8>>,
    put_back: Signal<Local, Bits<8>>,
    zero_8: Num<8, 0>,
    one_8: Num<8, 1>,
    round_chunk: Num<13, 255>,
    ahead: Num<8, { CREDITS_AHEAD as u64 }>,
    ahead_free: Num<8, { POOL_AHEAD_CHUNKS as u64 }>,
    kept_free: Num<8, { POOL_RESERVED_CHUNKS as u64 }>,
    share_max: Num<8, { POOL_PEER_CHUNKS as u64 }>,
    all_chunks: Num<8, { POOL_CHUNK_COUNT as u64 }>,
}

impl Logic for Ask {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, available, peer, data_frame, sequenced, length, is_open);
        dff_setup!(self, clock, epoch_bit, needed, cost, share, charged, allowed, accepted, gave);
        dff_setup!(self, clock, share_after, units_after, clearing, cleared, probe, old_count);
        clock!(self, clock, shares, units, shares_give, units_give, reservations);
        self.reservations.reset.next = self.reset.val();
        self.may_give.next = (self.state.q.val() == AskState::Idle) & !self.clearing.q.val();
        self.charge.next = (self.state.q.val() == AskState::Answer)
            & self.accepted.q.val()
            & (!self.probe.q.val());
        // An opening peer's start value waits for a charge.
        self.clearing.d.next = self.opened.val() | (self.clearing.q.val() & self.charge.val());
        if self.opened.val() {
            self.cleared.d.next = self.opened_peer.val();
        }
        self.gave.d.next = self.give.val();

        // The question. A frame takes one chunk at least; a chunk is a credit unit.
        self.padded.next = self.ask_length.val() + self.round_chunk.val();
        self.need.next = bit_cast::<8, 5>(self.padded.val().get_bits::<5>(8));
        self.chunks.next = self.need.val();
        if self.need.val() == self.zero_8.val() {
            self.chunks.next = self.one_8.val();
        }
        self.at.next = self.peer.q.val();
        if self.state.q.val() == AskState::Idle {
            self.at.next = self.ask_peer.val().get_bits::<6>(0);
        }
        self.shares.read_address.next = self.at.val();
        self.units.read_address.next = self.at.val();
        self.limit_peer.next = self.at.val();
        self.reads.next = false;

        // The sums, from registers.
        self.units_after.d.next = self.charged.q.val() + self.cost.q.val();
        self.over_credit.next = (self.charged.q.val() + self.cost.q.val()) - self.allowed.q.val();
        self.share_sum.next = self.share.q.val() + self.needed.q.val();
        self.share_after.d.next = self.share_sum.val();
        self.needed_free.next = self.needed.q.val();
        if self.data_frame.q.val() {
            self.needed_free.next = self.needed.q.val() + self.kept_free.val();
        }
        self.needed_ahead.next = self.needed.q.val() + self.ahead_free.val();
        self.beyond.next = self.sequenced.q.val()
            & (!self.over_credit.val().get_bit(7))
            & (self.over_credit.val() != self.zero_8.val());
        self.far_beyond.next = (self.over_credit.val() > self.ahead.val())
            | (self.available.q.val() < self.needed_ahead.val());
        self.over.next = (self.available.q.val() < self.needed_free.val())
            | (self.data_frame.q.val() & (self.share_sum.val() > self.share_max.val()))
            | (self.beyond.val() & self.far_beyond.val());
        self.ask_done.next = false;
        self.ask_ok.next = self.accepted.q.val();
        self.ask_down.next = !self.is_open.q.val();
        match self.state.q.val() {
            AskState::Idle => {
                self.reads.next = true;
                self.peer.d.next = self.ask_peer.val().get_bits::<6>(0);
                self.probe.d.next = self.ask_probe.val();
                self.data_frame.d.next = self.ask_data.val();
                self.sequenced.d.next = self.ask_sequenced.val();
                self.length.d.next = self.ask_length.val();
                self.needed.d.next = self.chunks.val();
                self.cost.d.next = 0.into();
                if self.ask_sequenced.val() {
                    self.cost.d.next = self.chunks.val();
                }
                if self.ask_valid.val() & self.ready.val() & !self.reservations.full.val() {
                    self.state.d.next = AskState::Judge;
                }
            }
            AskState::Judge => {
                if self.gave.q.val() {
                    self.reads.next = true;
                } else {
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
        if self.reads.val() {
            self.is_open.d.next = self.open.val().get_bit(self.at.val().index());
            self.epoch_bit.d.next = self.epoch_bits.val().get_bit(self.at.val().index());
            self.share.d.next = self.shares.read_data.val();
            self.charged.d.next = self.units.read_data.val();
            self.allowed.d.next = self.limit.val();
        }
        self.fresh.next = bit_cast::<31, 6>(self.peer.q.val())
            | (bit_cast::<31, 1>(self.sequenced.q.val().into()) << 6)
            | (bit_cast::<31, 1>(self.epoch_bit.q.val().into()) << 7)
            | (bit_cast::<31, 13>(self.length.q.val()) << 8)
            | (bit_cast::<31, 5>(self.needed.q.val().get_bits::<5>(0)) << 21)
            | (bit_cast::<31, 5>(self.cost.q.val().get_bits::<5>(0)) << 26);

        self.waits.next = !self.reservations.empty.val();
        self.reserved_valid.next = self.waits.val() | self.charge.val();
        self.reserved.next = self.fresh.val();
        if self.waits.val() {
            self.reserved.next = self.reservations.data_out.val();
        }
        self.read.next = self.reserved_taken.val() & self.waits.val();
        self.reservations.read.next = self.read.val();
        // A channel that is opened has been closed for some cycles: no question of it is under way.
        self.waiting.next = self.reservations.level.val();
        self.old.next = self.old_count.q.val().any();
        if self.opened.val() {
            self.old_count.d.next =
                self.waiting.val().get_bits::<3>(0) - bit_cast::<3, 1>(self.read.val().into());
        } else if self.read.val() & self.old_count.q.val().any() {
            self.old_count.d.next = self.old_count.q.val() - 1;
        }
        self.reservations.write.next =
            self.charge.val() & (self.waits.val() | !self.reserved_taken.val());
        self.reservations.data_in.next = self.fresh.val();

        // Charges.
        self.shares_give.read_address.next = self.give_peer.val();
        self.units_give.read_address.next = self.give_peer.val();
        self.shares_write.next = false;
        self.shares_at.next = self.give_peer.val();
        self.shares_to.next = self.shares_give.read_data.val() - self.give_chunks.val();
        self.units_write.next = false;
        self.units_at.next = self.give_peer.val();
        self.units_to.next = self.units_give.read_data.val() - self.give_units.val();
        self.taken_off.next = 0.into();
        self.put_back.next = 0.into();
        if !self.ready.val() {
            self.shares_write.next = true;
            self.shares_at.next = self.building.val().get_bits::<6>(0);
            self.shares_to.next = 0.into();
        } else if self.charge.val() {
            self.shares_write.next = true;
            self.shares_at.next = self.peer.q.val();
            self.shares_to.next = self.share_after.q.val();
            self.units_write.next = true;
            self.units_at.next = self.peer.q.val();
            self.units_to.next = self.units_after.q.val();
            self.taken_off.next = self.needed.q.val();
        } else if self.give.val() {
            self.shares_write.next = true;
            self.units_write.next = true;
            self.put_back.next = self.give_chunks.val();
        }
        if self.clearing.q.val() & !self.charge.val() {
            self.units_write.next = true;
            self.units_at.next = self.cleared.q.val();
            self.units_to.next = 0.into();
        }
        self.shares.write_enable.next = self.shares_write.val();
        self.shares.write_address.next = self.shares_at.val();
        self.shares.write_data.next = self.shares_to.val();
        self.shares_give.write_enable.next = self.shares_write.val();
        self.shares_give.write_address.next = self.shares_at.val();
        self.shares_give.write_data.next = self.shares_to.val();
        self.units.write_enable.next = self.units_write.val();
        self.units.write_address.next = self.units_at.val();
        self.units.write_data.next = self.units_to.val();
        self.units_give.write_enable.next = self.units_write.val();
        self.units_give.write_address.next = self.units_at.val();
        self.units_give.write_data.next = self.units_to.val();
        self.available.d.next =
            (self.available.q.val() + self.put_back.val()) - self.taken_off.val();
        if self.reset.val() {
            self.state.d.next = AskState::Idle;
            self.gave.d.next = false;
            self.clearing.d.next = false;
            self.old_count.d.next = 0.into();
            self.available.d.next = self.all_chunks.val();
        }
    }
}
