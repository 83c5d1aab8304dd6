//! Reads a frame's payload from staging and cuts it into the pieces of the descriptor's buffer: one
//! write packet for each piece.
//!
//! ```text
//! start, skip, length --> DataSegments --> packet -----------------------------> Writer
//!                            `--> address -> staging -> data -> align --> beat
//! ```
//! Payload bytes and their lanes differ by a constant in a piece, so an output beat is a window
//! over two neighbouring beats of staging. A piece that does not begin at the payload's first byte
//! reads one beat more than it writes; then a beat a cycle.
//!
//! Idle -> Piece -> Run -> (Piece | Idle).

use super::DataSegments;
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum ScatterState {
    /// Waits for `start`.
    Idle,
    /// Waits for a piece.
    Piece,
    /// Reads its beats from staging.
    Run,
}

#[derive(LogicBlock, Default)]
pub struct Scatter {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    pub skip: Signal<In, Bits<19>>,
    /// 1 to 4,096.
    pub length: Signal<In, Bits<13>>,
    /// The payload's first beat in staging (not 0: one piece only).
    pub base: Signal<In, Bits<10>>,
    /// The payload was read / is in the queue: from the cycle after `start` on.
    pub read: Signal<Out, Bit>,
    pub quiet: Signal<Out, Bit>,
    pub segment: Signal<Out, Bits<4>>,
    pub segment_bus: Signal<In, Bits<64>>,
    pub segment_length: Signal<In, Bits<32>>,
    /// Beat of the payload; its data comes in the next cycle.
    pub address: Signal<Out, Bits<10>>,
    pub data: Signal<In, Bits<64>>,
    /// Pulses to the queue.
    pub packet: Signal<Out, Bit>,
    pub packet_address: Signal<Out, Bits<64>>,
    pub packet_length: Signal<Out, Bits<13>>,
    /// The frame's last packet.
    pub packet_final: Signal<Out, Bit>,
    pub beat_write: Signal<Out, Bit>,
    pub beat_data: Signal<Out, Bits<64>>,
    pub beat_last: Signal<Out, Bit>,
    pub full: Signal<In, Bit>,
    pub high: Signal<In, Bit>,
    state: DFF<ScatterState>,
    // Piece in progress: first byte in the payload, beat to read, reads left after it, byte shift
    // (1 to 8, less one).
    position: DFF<Bits<13>>,
    beat: DFF<Bits<10>>,
    left: DFF<Bits<10>>,
    shift: DFF<Bits<3>>,
    opening: DFF<Bit>,
    final_piece: DFF<Bit>,
    // Read: the data comes now. Take: it is registered.
    read_valid: DFF<Bit>,
    read_opening: DFF<Bit>,
    read_last: DFF<Bit>,
    read_shift: DFF<Bits<3>>,
    take_valid: DFF<Bit>,
    take_opening: DFF<Bit>,
    take_last: DFF<Bit>,
    take_shift: DFF<Bits<3>>,
    take_data: DFF<Bits<64>>,
    previous: DFF<Bits<64>>,
    out_valid: DFF<Bit>,
    out_last: DFF<Bit>,
    out_data: DFF<Bits<64>>,
    data_segments: DataSegments,
    origin: Signal<Local, Bits<14>>,
    lane: Signal<Local, Bits<14>>,
    span: Signal<Local, Bits<14>>,
    accept: Signal<Local, Bit>,
    issue: Signal<Local, Bit>,
    reads_end: Signal<Local, Bit>,
    starting: Signal<Local, Bit>,
    skipped: Signal<Local, Bits<14>>,
    shift_bits: Signal<Local, Bits<6>>,
    gap: Signal<Local, Bits<3>>,
    gap_bits: Signal<Local, Bits<6>>,
    lower: Signal<Local, Bits<64>>,
    seven: Number<3, 7>,
    round_up: Number<14, 7>,
}

impl Logic for Scatter {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, position, beat, left, shift, opening, final_piece);
        dff_setup!(self, clock, read_valid, read_opening, read_last, read_shift, take_valid);
        dff_setup!(self, clock, take_opening, take_last, take_shift, take_data, previous);
        dff_setup!(self, clock, out_valid, out_last, out_data);
        clock!(self, clock, data_segments);
        self.data_segments.reset.next = self.reset.val();
        self.read.next = self.state.q.val() == ScatterState::Idle;
        self.quiet.next = (self.state.q.val() == ScatterState::Idle)
            & (!self.read_valid.q.val())
            & (!self.take_valid.q.val())
            & (!self.out_valid.q.val());

        self.data_segments.start.next = self.start.val();
        self.data_segments.skip.next = self.skip.val();
        self.data_segments.length.next = self.length.val();
        self.segment.next = self.data_segments.segment.val();
        self.data_segments.segment_bus.next = self.segment_bus.val();
        self.data_segments.segment_length.next = self.segment_length.val();

        // A new piece: its first lane 0 lies 8 - `shift` bytes before the end of beat `origin / 8`
        // of the payload (which may be before the start), and so many beats are touched.
        self.accept.next = (self.state.q.val() == ScatterState::Piece)
            & self.data_segments.valid.val()
            & (!self.full.val());
        self.data_segments.ready.next = self.accept.val();
        self.packet.next = self.accept.val();
        self.packet_address.next = self.data_segments.address.val();
        self.packet_length.next = self.data_segments.piece_length.val();
        self.packet_final.next = self.data_segments.last.val();
        self.lane.next = bit_cast::<14, 3>(self.data_segments.address.val().get_bits::<3>(0));
        self.skipped.next = bit_cast::<14, 13>(self.position.q.val()) - self.lane.val();
        self.origin.next = self.skipped.val() - 1;
        self.span.next = (self.lane.val()
            + bit_cast::<14, 13>(self.data_segments.piece_length.val()))
            + self.round_up.val();
        self.starting.next = self.position.q.val() == 0;

        // Read, take, align.
        self.issue.next = (self.state.q.val() == ScatterState::Run) & (!self.high.val());
        self.reads_end.next = self.left.q.val() == 0;
        self.address.next = self.beat.q.val();
        self.read_valid.d.next = self.issue.val();
        self.read_opening.d.next = self.opening.q.val();
        self.read_last.d.next = self.reads_end.val();
        self.read_shift.d.next = self.shift.q.val();
        self.take_valid.d.next = self.read_valid.q.val();
        self.take_opening.d.next = self.read_opening.q.val();
        self.take_last.d.next = self.read_last.q.val();
        self.take_shift.d.next = self.read_shift.q.val();
        self.take_data.d.next = self.data.val();
        if self.take_valid.q.val() {
            self.previous.d.next = self.take_data.q.val();
        }
        self.shift_bits.next = bit_cast::<6, 3>(self.take_shift.q.val()) << 3;
        self.gap.next = self.seven.val() - self.take_shift.q.val();
        self.gap_bits.next = bit_cast::<6, 3>(self.gap.val()) << 3;
        self.lower.next = self.previous.q.val() >> 8;
        self.out_valid.d.next = self.take_valid.q.val() & (!self.take_opening.q.val());
        self.out_last.d.next = self.take_last.q.val();
        self.out_data.d.next = (self.lower.val() >> self.shift_bits.val())
            | (self.take_data.q.val() << self.gap_bits.val());
        self.beat_write.next = self.out_valid.q.val();
        self.beat_data.next = self.out_data.q.val();
        self.beat_last.next = self.out_last.q.val();

        match self.state.q.val() {
            ScatterState::Idle => {
                self.position.d.next = 0.into();
                if self.start.val() {
                    self.state.d.next = ScatterState::Piece;
                }
            }
            ScatterState::Piece => {
                self.beat.d.next = self.origin.val().get_bits::<10>(3);
                self.shift.d.next = self.origin.val().get_bits::<3>(0);
                self.left.d.next = self.span.val().get_bits::<10>(3);
                self.opening.d.next = true;
                if self.starting.val() {
                    // Nothing of the beat before is wanted.
                    self.beat.d.next = self.base.val();
                    self.left.d.next = self.span.val().get_bits::<10>(3) - 1;
                    self.opening.d.next = false;
                }
                self.final_piece.d.next = self.data_segments.last.val();
                if self.accept.val() {
                    self.position.d.next =
                        self.position.q.val() + self.data_segments.piece_length.val();
                    self.state.d.next = ScatterState::Run;
                }
            }
            ScatterState::Run => {
                if self.issue.val() {
                    self.beat.d.next = self.beat.q.val() + 1;
                    self.left.d.next = self.left.q.val() - 1;
                    self.opening.d.next = false;
                    if self.reads_end.val() {
                        self.state.d.next = ScatterState::Piece;
                        if self.final_piece.q.val() {
                            self.state.d.next = ScatterState::Idle;
                        }
                    }
                }
            }
            _ => {
                self.state.d.next = ScatterState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = ScatterState::Idle;
            self.read_valid.d.next = false;
            self.take_valid.d.next = false;
        }
    }
}
