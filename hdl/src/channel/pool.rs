//! Pool: frames to be sent, in 128 chunks of 256 bytes shared by all peers, with the records of
//! their headers.
//!
//! Three small machines, so that a client may ask for its next frame while it still fills the one
//! before:
//!
//! ```text
//! ask   see `ask.rs`; leaves reservations
//! fill  Empty -> Fill -> Empty             (Fill: beats, then commit)
//!                  `-> Abort -> Empty
//! free  see `reclaimer.rs`
//! ```
//! A frame is named by its first chunk. A reservation whose channel has closed (or closed and
//! opened again: epoch bit) is stale: its frame is handed on as such, and freed.
use super::ask::Ask;
use super::chunks::Chunks;
use super::num::Num;
use super::reclaimer::Reclaimer;
use crate::ifs::PoolServer;
use crate::leaf::SdpRam;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum FillState {
    /// Waits for a reservation and a spare chunk.
    Empty,
    /// Takes beats; waits for commit or abort, and on commit for the peer machine to have taken the
    /// last frame.
    Fill,
    /// Waits for the free list.
    Abort,
}

#[derive(LogicBlock, Default)]
pub struct Pool {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub pool: PoolServer,
    pub open: Signal<In, Bits<64>>,
    pub epoch_bits: Signal<In, Bits<64>>,
    /// Credit limit of `limit_peer`.
    pub limit_peer: Signal<Out, Bits<6>>,
    pub limit: Signal<In, Bits<8>>,
    /// A peer is being opened: it starts with no units.
    pub opened: Signal<In, Bit>,
    pub opened_peer: Signal<In, Bits<6>>,
    /// Reservations from before the last PeerOpen wait: the next PeerOpen does, for two epochs.
    pub old: Signal<Out, Bit>,
    // A committed frame, for the peer machine.
    pub put_valid: Signal<Out, Bit>,
    pub put_peer: Signal<Out, Bits<6>>,
    pub put_frame: Signal<Out, Bits<7>>,
    pub put_unsequenced: Signal<Out, Bit>,
    /// More than one chunk.
    pub put_large: Signal<Out, Bit>,
    /// Its units.
    pub put_units: Signal<Out, Bits<5>>,
    /// The channel closed in between: free it.
    pub put_stale: Signal<Out, Bit>,
    pub put_taken: Signal<In, Bit>,
    // A frame to be freed (pulse), from the peer machine, which looks for `free_room` first.
    pub free_valid: Signal<In, Bit>,
    pub free_peer: Signal<In, Bits<6>>,
    pub free_frame: Signal<In, Bits<7>>,
    pub free_room: Signal<Out, Bit>,
    // An unsequenced frame that was sent, to be freed.
    pub transmitted_valid: Signal<In, Bit>,
    pub transmitted_peer: Signal<In, Bits<6>>,
    pub transmitted_frame: Signal<In, Bits<7>>,
    pub transmitted_taken: Signal<Out, Bit>,
    /// A frame of this peer is being filled.
    pub filling: Signal<Out, Bit>,
    pub filling_peer: Signal<Out, Bits<6>>,
    // The transmitter's view.
    pub record_address: Signal<In, Bits<7>>,
    pub record0: Signal<Out, Bits<64>>,
    pub record1: Signal<Out, Bits<64>>,
    pub beat_address: Signal<In, Bits<12>>,
    pub beat: Signal<Out, Bits<64>>,
    pub chunk: Signal<In, Bits<7>>,
    pub chunk_after: Signal<Out, Bits<7>>,
    /// Chunks that nobody holds.
    pub free_chunks: Signal<Out, Bits<8>>,
    question: Ask,
    chunks: Chunks,
    payload: SdpRam<64, 12>,
    /// Destination VI, source VI, connection, flags, type.
    records0: SdpRam<64, 7>,
    /// Word, message and fragment, length.
    records1: SdpRam<64, 7>,
    reclaimer: Reclaimer,
    fill: DFF<FillState>,
    entry: DFF<Bits<31>>,
    stale: DFF<Bit>,
    first: DFF<Bits<7>>,
    last: DFF<Bits<7>>,
    held: DFF<Bits<5>>,
    full: DFF<Bit>,
    index: DFF<Bits<5>>,
    beat_write: DFF<Bit>,
    beat_at: DFF<Bits<12>>,
    beat_data: DFF<Bits<64>>,
    put: DFF<Bit>,
    put_for: DFF<Bits<6>>,
    put_id: DFF<Bits<7>>,
    put_no_sequence: DFF<Bit>,
    put_dead: DFF<Bit>,
    put_wide: DFF<Bit>,
    put_cost: DFF<Bits<5>>,
    committed: DFF<Bit>,
    begins: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    keep: Signal<Local, Bit>,
    chunk_now: Signal<Local, Bits<7>>,
    given: Signal<Local, Bit>,
    entry_peer: Signal<Local, Bits<6>>,
    one_5: Num<5, 1>,
    chunk_end: Num<5, 31>,
}

impl Logic for Pool {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, fill, entry, stale, first, last, held, full, index);
        dff_setup!(
            self,
            clock,
            beat_write,
            beat_at,
            beat_data,
            put,
            put_for,
            put_id,
            put_no_sequence
        );
        dff_setup!(self, clock, put_dead, put_wide, put_cost, committed);
        clock!(self, clock, chunks, question, payload, records0, records1, reclaimer);
        self.chunks.reset.next = self.reset.val();
        self.ready.next = self.chunks.ready.val();
        self.free_chunks.next = self.chunks.level.val();
        self.chunks.chunk.next = self.chunk.val();
        self.chunk_after.next = self.chunks.chunk_after.val();

        // The question.
        self.question.reset.next = self.reset.val();
        self.question.ready.next = self.chunks.ready.val();
        self.question.building.next = self.chunks.building.val();
        self.question.ask_valid.next = self.pool.ask_valid.val();
        self.question.ask_probe.next = self.pool.ask_probe.val();
        self.question.ask_data.next = self.pool.ask_data.val();
        self.question.ask_sequenced.next = self.pool.ask_sequenced.val();
        self.question.ask_peer.next = self.pool.ask_peer.val();
        self.question.ask_length.next = self.pool.ask_length.val();
        self.pool.ask_done.next = self.question.ask_done.val();
        self.pool.ask_ok.next = self.question.ask_ok.val();
        self.pool.ask_down.next = self.question.ask_down.val();
        self.question.open.next = self.open.val();
        self.question.epoch_bits.next = self.epoch_bits.val();
        self.limit_peer.next = self.question.limit_peer.val();
        self.question.limit.next = self.limit.val();
        self.question.opened.next = self.opened.val();
        self.question.opened_peer.next = self.opened_peer.val();
        self.old.next = self.question.old.val();

        // Filling. `full`: the chunk in flight has no room left.
        self.entry_peer.next = self.entry.q.val().get_bits::<6>(0);
        self.given.next = self.chunks.given.val();
        self.begins.next = false;
        self.moves.next = false;
        self.keep.next = false;
        self.committed.d.next = false;
        self.pool.commit_done.next = self.committed.q.val();
        self.pool.beat_ready.next = false;
        self.stale.d.next = self.stale.q.val()
            | (!self.open.val().get_bit(self.entry_peer.val().index()))
            | (self.epoch_bits.val().get_bit(self.entry_peer.val().index())
                ^ self.entry.q.val().get_bit(7));
        match self.fill.q.val() {
            FillState::Empty => {
                self.begins.next =
                    self.chunks.spare_valid.val() & self.question.reserved_valid.val();
                if self.begins.val() {
                    self.entry.d.next = self.question.reserved.val();
                    self.stale.d.next = false;
                    self.first.d.next = self.chunks.spare.val();
                    self.last.d.next = self.chunks.spare.val();
                    self.held.d.next = self.one_5.val();
                    self.full.d.next = false;
                    self.index.d.next = 0.into();
                    self.fill.d.next = FillState::Fill;
                }
            }
            FillState::Fill => {
                self.pool.beat_ready.next = (!self.full.q.val()) | self.chunks.spare_valid.val();
                self.moves.next = self.pool.beat_valid.val() & self.pool.beat_ready.val();
                if self.pool.commit_valid.val() & !self.committed.q.val() {
                    if self.pool.commit_abort.val() {
                        self.fill.d.next = FillState::Abort;
                    } else if !self.put.q.val() {
                        self.keep.next = true;
                        self.committed.d.next = true;
                        self.fill.d.next = FillState::Empty;
                    }
                }
            }
            FillState::Abort => {
                if self.reclaimer.aborted.val() {
                    self.committed.d.next = true;
                    self.fill.d.next = FillState::Empty;
                }
            }
            _ => {
                self.fill.d.next = FillState::Empty;
            }
        }
        self.question.reserved_taken.next = self.begins.val();
        self.chunk_now.next = self.last.q.val();
        if self.full.q.val() {
            self.chunk_now.next = self.chunks.spare.val();
        }
        self.beat_write.d.next = self.moves.val();
        self.beat_at.d.next =
            (bit_cast::<12, 7>(self.chunk_now.val()) << 5) | bit_cast::<12, 5>(self.index.q.val());
        self.beat_data.d.next = self.pool.beat_data.val();
        if self.moves.val() {
            self.index.d.next = self.index.q.val() + 1;
            self.full.d.next = self.index.q.val() == self.chunk_end.val();
            self.last.d.next = self.chunk_now.val();
            if self.full.q.val() {
                self.held.d.next = self.held.q.val() + 1;
            }
        }
        self.chunks.link.next = self.moves.val() & self.full.q.val();
        self.chunks.link_from.next = self.last.q.val();
        self.chunks.take.next = self.begins.val() | (self.moves.val() & self.full.q.val());
        self.payload.write_enable.next = self.beat_write.q.val();
        self.payload.write_address.next = self.beat_at.q.val();
        self.payload.write_data.next = self.beat_data.q.val();
        self.payload.read_address.next = self.beat_address.val();
        self.beat.next = self.payload.read_data.val();

        // The record of a committed frame.
        self.records0.write_enable.next = self.keep.val();
        self.records0.write_address.next = self.first.q.val();
        self.records0.write_data.next = bit_cast::<64, 16>(self.pool.dst_vi.val())
            | (bit_cast::<64, 16>(self.pool.src_vi.val()) << 16)
            | (bit_cast::<64, 16>(self.pool.connection.val()) << 32)
            | (bit_cast::<64, 8>(self.pool.flags.val()) << 48)
            | (bit_cast::<64, 8>(self.pool.kind.val()) << 56);
        self.records0.read_address.next = self.record_address.val();
        self.record0.next = self.records0.read_data.val();
        self.records1.write_enable.next = self.keep.val();
        self.records1.write_address.next = self.first.q.val();
        self.records1.write_data.next = bit_cast::<64, 32>(self.pool.word.val())
            | (bit_cast::<64, 16>(self.pool.unsequenced.val()) << 32)
            | (bit_cast::<64, 13>(self.entry.q.val().get_bits::<13>(8)) << 48);
        self.records1.read_address.next = self.record_address.val();
        self.record1.next = self.records1.read_data.val();
        self.put_valid.next = self.put.q.val();
        self.put_peer.next = self.put_for.q.val();
        self.put_frame.next = self.put_id.q.val();
        self.put_unsequenced.next = self.put_no_sequence.q.val();
        self.put_stale.next = self.put_dead.q.val();
        self.put_large.next = self.put_wide.q.val();
        self.put_units.next = self.put_cost.q.val();
        if self.put_taken.val() {
            self.put.d.next = false;
        }
        if self.keep.val() {
            self.put.d.next = true;
            self.put_for.d.next = self.entry_peer.val();
            self.put_id.d.next = self.first.q.val();
            self.put_no_sequence.d.next = !self.entry.q.val().get_bit(6);
            self.put_dead.d.next = self.stale.d.val();
            self.put_cost.d.next = self.entry.q.val().get_bits::<5>(26);
            self.put_wide.d.next = self.held.q.val() != self.one_5.val();
        }

        // Freeing.
        self.filling.next = self.fill.q.val() == FillState::Fill;
        self.filling_peer.next = self.entry_peer.val();
        self.reclaimer.reset.next = self.reset.val();
        self.reclaimer.free_valid.next = self.free_valid.val();
        self.reclaimer.free_peer.next = self.free_peer.val();
        self.reclaimer.free_frame.next = self.free_frame.val();
        self.free_room.next = self.reclaimer.free_room.val();
        self.reclaimer.transmitted_valid.next = self.transmitted_valid.val();
        self.reclaimer.transmitted_peer.next = self.transmitted_peer.val();
        self.reclaimer.transmitted_frame.next = self.transmitted_frame.val();
        self.transmitted_taken.next = self.reclaimer.transmitted_taken.val();
        self.reclaimer.keep.next = self.keep.val();
        self.reclaimer.abort.next = self.fill.q.val() == FillState::Abort;
        self.reclaimer.peer.next = self.entry_peer.val();
        self.reclaimer.first.next = self.first.q.val();
        self.reclaimer.last.next = self.last.q.val();
        self.reclaimer.held.next = self.held.q.val();
        self.reclaimer.charged.next = self.entry.q.val().get_bits::<5>(21);
        self.reclaimer.units.next = 0.into();
        if !self.stale.d.val() {
            self.reclaimer.units.next = self.entry.q.val().get_bits::<5>(26);
        }
        self.chunks.give.next = self.reclaimer.valid.val() & self.question.may_give.val();
        self.chunks.give_first.next = self.reclaimer.give_first.val();
        self.chunks.give_last.next = self.reclaimer.give_last.val();
        self.chunks.give_count.next = self.reclaimer.give_held.val();
        self.reclaimer.given.next = self.given.val();
        self.question.give.next = self.given.val();
        self.question.give_peer.next = self.reclaimer.give_peer.val();
        self.question.give_chunks.next = self.reclaimer.give_charged.val();
        self.question.give_units.next = self.reclaimer.give_units.val();

        if self.reset.val() {
            self.fill.d.next = FillState::Empty;
            self.beat_write.d.next = false;
            self.put.d.next = false;
            self.committed.d.next = false;
        }
    }
}
