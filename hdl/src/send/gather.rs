//! Gathers a frame's payload: host reads for each piece of the descriptor's buffer, packed into
//! whole beats.
//!
//! ```text
//! start, skip, length --> Pieces --> read requests
//!                            `-----> lanes (FIFO) --> Pack --> beats (FIFO) --> beat
//!                        read responses -------------'
//! ```
//! The response cannot be held off, so the FIFO of beats takes a whole frame (512 beats); no
//! request waits for room. `done` (pulse) comes after the last beat has moved; `failed` with it
//! says that a read failed and the beats are worthless.

use super::pack::Pack;
use crate::desc::Pieces;
use crate::ifs::ReadClient;
use crate::leaf::Fifo;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum GatherState {
    /// Waits for `start`.
    Idle,
    /// Requests and responses until the frame's last beat is packed.
    Fill,
    /// Waits until the beats have moved.
    Drain,
    /// Tells the engine.
    Done,
}

#[derive(LogicBlock, Default)]
pub struct Gather {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    pub skip: Signal<In, Bits<19>>,
    /// 1 to 4,096.
    pub length: Signal<In, Bits<13>>,
    pub done: Signal<Out, Bit>,
    pub failed: Signal<Out, Bit>,
    pub segment: Signal<Out, Bits<4>>,
    pub segment_bus: Signal<In, Bits<64>>,
    pub segment_length: Signal<In, Bits<32>>,
    pub read: ReadClient,
    pub beat_valid: Signal<Out, Bit>,
    pub beat_data: Signal<Out, Bits<64>>,
    pub beat_ready: Signal<In, Bit>,
    state: DFF<GatherState>,
    fault: DFF<Bit>,
    pieces: Pieces,
    lanes: Fifo<7, 4>,
    pack: Pack,
    beats: Fifo<64, 9>,
    tail: Signal<Local, Bits<3>>,
    moved: Signal<Local, Bit>,
    available: Signal<Local, Bit>,
}

impl Logic for Gather {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, fault);
        clock!(self, clock, pieces, lanes, pack, beats);
        self.pieces.reset.next = self.reset.val();
        self.lanes.reset.next = self.reset.val();
        self.pack.reset.next = self.reset.val();
        self.beats.reset.next = self.reset.val();
        self.done.next = self.state.q.val() == GatherState::Done;
        self.failed.next = self.fault.q.val();

        // Requests.
        self.pieces.start.next = self.start.val();
        self.pieces.skip.next = self.skip.val();
        self.pieces.length.next = self.length.val();
        self.segment.next = self.pieces.segment.val();
        self.pieces.segment_bus.next = self.segment_bus.val();
        self.pieces.segment_length.next = self.segment_length.val();
        self.available.next = self.pieces.valid.val() & (!self.lanes.full.val());
        self.moved.next = self.available.val() & self.read.req_ready.val();
        self.read.req_valid.next = self.available.val();
        self.read.req_address.next = self.pieces.address.val();
        self.read.req_length.next = self.pieces.piece_length.val();
        self.pieces.ready.next = self.moved.val();
        self.tail.next = (self.pieces.address.val().get_bits::<3>(0)
            + self.pieces.piece_length.val().get_bits::<3>(0))
            - 1;
        self.lanes.write.next = self.moved.val();
        self.lanes.data_in.next = bit_cast::<7, 3>(self.pieces.address.val().get_bits::<3>(0))
            | (bit_cast::<7, 3>(self.tail.val()) << 3)
            | (bit_cast::<7, 1>(self.pieces.last.val().into()) << 6);

        // Responses.
        self.pack.valid.next = self.read.rsp_valid.val();
        self.pack.data.next = self.read.rsp_data.val();
        self.pack.last.next = self.read.rsp_last.val();
        self.pack.lane.next = self.lanes.data_out.val().get_bits::<3>(0);
        self.pack.tail.next = self.lanes.data_out.val().get_bits::<3>(3);
        self.pack.final_piece.next = self.lanes.data_out.val().get_bit(6);
        self.lanes.read.next = self.read.rsp_valid.val() & self.read.rsp_last.val();
        if self.read.rsp_valid.val() & self.read.rsp_last.val() & self.read.rsp_error.val() {
            self.fault.d.next = true;
        }
        self.beats.write.next = self.pack.beat_valid.val();
        self.beats.data_in.next = self.pack.beat.val();
        self.beat_valid.next = !self.beats.empty.val();
        self.beat_data.next = self.beats.data_out.val();
        self.beats.read.next = (!self.beats.empty.val()) & self.beat_ready.val();

        match self.state.q.val() {
            GatherState::Idle => {
                if self.start.val() {
                    self.fault.d.next = false;
                    self.state.d.next = GatherState::Fill;
                }
            }
            GatherState::Fill => {
                if self.pack.finished.val() {
                    self.state.d.next = GatherState::Drain;
                }
            }
            GatherState::Drain => {
                if self.beats.level.val() == 0 {
                    self.state.d.next = GatherState::Done;
                }
            }
            _ => {
                self.state.d.next = GatherState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = GatherState::Idle;
        }
    }
}
