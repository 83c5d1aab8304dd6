//! Cuts a byte range of a descriptor's buffer into pieces, one for each segment that it touches.
//!
//! ```text
//! start, skip, length ----> +--------------+ ----> valid, address, piece_length, last
//! segment_bus, _length ---> | DataSegments | <---- ready
//!             segment <---- +--------------+
//! ```
//! The range begins `skip` bytes into the segment list and is `length` bytes long (1 to 4,096); the
//! list is at least that long. A segment's address and length come one or two cycles after its
//! number, which is 0 until `start`. The first piece is offered three cycles after `start`; a
//! further one, and a skipped segment, takes three cycles.
//!
//! Idle -> Skip -> Cut -> Offer -> (Skip | Idle);  Cut -> Load -> Skip while whole segments are skipped.

use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum DataSegmentsState {
    /// Waits for `start`.
    Idle,
    /// Waits for a segment.
    Load,
    /// Passes over a segment that lies before the range.
    Skip,
    /// Cuts the segment to what is left of the range, if it reaches into it.
    Cut,
    /// Offers the piece.
    Offer,
}

#[derive(LogicBlock, Default)]
pub struct DataSegments {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    pub skip: Signal<In, Bits<19>>,
    pub length: Signal<In, Bits<13>>,
    /// Segment that is looked at; its address and length come within two cycles.
    pub segment: Signal<Out, Bits<4>>,
    pub segment_bus: Signal<In, Bits<64>>,
    pub segment_length: Signal<In, Bits<32>>,
    pub valid: Signal<Out, Bit>,
    pub address: Signal<Out, Bits<64>>,
    pub piece_length: Signal<Out, Bits<13>>,
    pub last: Signal<Out, Bit>,
    pub ready: Signal<In, Bit>,
    state: DFF<DataSegmentsState>,
    index: DFF<Bits<4>>,
    skip_left: DFF<Bits<19>>,
    left: DFF<Bits<13>>,
    bus: DFF<Bits<64>>,
    seg_length: DFF<Bits<32>>,
    piece: DFF<Bits<13>>,
    final_piece: DFF<Bit>,
    skip_wide: Signal<Local, Bits<32>>,
    left_wide: Signal<Local, Bits<32>>,
    available: Signal<Local, Bits<32>>,
    /// The segment lies before the range; bytes to skip behind it.
    whole: DFF<Bit>,
    rest: DFF<Bits<19>>,
    ends: Signal<Local, Bit>,
}

impl Logic for DataSegments {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, index, skip_left, left, bus, seg_length, piece, final_piece);
        dff_setup!(self, clock, whole, rest);
        self.segment.next = self.index.q.val();
        self.valid.next = self.state.q.val() == DataSegmentsState::Offer;
        self.address.next = self.bus.q.val();
        self.piece_length.next = self.piece.q.val();
        self.last.next = self.final_piece.q.val();
        self.skip_wide.next = bit_cast::<32, 19>(self.skip_left.q.val());
        self.left_wide.next = bit_cast::<32, 13>(self.left.q.val());
        self.available.next = self.segment_length.val() - self.skip_wide.val();
        self.whole.d.next = self.skip_wide.val() >= self.segment_length.val();
        self.rest.d.next = self.skip_left.q.val() - self.segment_length.val().get_bits::<19>(0);
        self.ends.next = self.seg_length.q.val() >= self.left_wide.val();
        match self.state.q.val() {
            DataSegmentsState::Idle => {
                self.index.d.next = 0.into();
                self.skip_left.d.next = self.skip.val();
                self.left.d.next = self.length.val();
                if self.start.val() {
                    self.state.d.next = DataSegmentsState::Skip;
                }
            }
            DataSegmentsState::Load => {
                self.state.d.next = DataSegmentsState::Skip;
            }
            DataSegmentsState::Skip => {
                self.index.d.next = self.index.q.val() + 1;
                self.bus.d.next =
                    self.segment_bus.val() + bit_cast::<64, 19>(self.skip_left.q.val());
                self.seg_length.d.next = self.available.val();
                self.state.d.next = DataSegmentsState::Cut;
            }
            DataSegmentsState::Cut => {
                self.final_piece.d.next = self.ends.val();
                if self.ends.val() {
                    self.piece.d.next = self.left.q.val();
                } else {
                    self.piece.d.next = self.seg_length.q.val().get_bits::<13>(0);
                }
                self.skip_left.d.next = 0.into();
                self.state.d.next = DataSegmentsState::Offer;
                if self.whole.q.val() {
                    self.skip_left.d.next = self.rest.q.val();
                    self.state.d.next = DataSegmentsState::Load;
                }
            }
            DataSegmentsState::Offer => {
                if self.ready.val() {
                    self.left.d.next = self.left.q.val() - self.piece.q.val();
                    if self.final_piece.q.val() {
                        self.index.d.next = 0.into();
                        self.state.d.next = DataSegmentsState::Idle;
                    } else {
                        self.state.d.next = DataSegmentsState::Skip;
                    }
                }
            }
            _ => {
                self.state.d.next = DataSegmentsState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = DataSegmentsState::Idle;
            self.index.d.next = 0.into();
        }
    }
}
