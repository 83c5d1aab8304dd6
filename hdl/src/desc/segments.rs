//! Cuts a byte range of a descriptor's buffer into pieces, one for each segment that it touches.
//!
//! ```text
//! start, skip, length ----> +----------+ ----> valid, address, piece_length, last
//! segment_bus, _length ---> | Segments | <---- ready
//!             segment <---- +----------+
//! ```
//! The range begins `skip` bytes into the segment list and is `length` bytes long (1 to 4,096); the
//! list is at least that long, or will be: a segment is waited for. A piece takes two cycles, the
//! first one after a skip four, and a skipped segment two.
//!
//! Idle -> Load -> [Skip -> Cut ->] Offer -> (Load | Idle); Skip -> Load while whole segments are
//! skipped.

use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum SegmentsState {
    /// Waits for `start`.
    Idle,
    /// Registers a segment, and cuts it if nothing is to be skipped.
    Load,
    /// Passes over a segment that lies before the range.
    Skip,
    /// Cuts the segment to what is left of the range.
    Cut,
    /// Offers the piece.
    Offer,
}

#[derive(LogicBlock, Default)]
pub struct Segments {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    pub skip: Signal<In, Bits<19>>,
    pub length: Signal<In, Bits<13>>,
    /// Segment that is looked at; its address and length come in the same cycle.
    pub segment: Signal<Out, Bits<4>>,
    pub segment_bus: Signal<In, Bits<64>>,
    pub segment_length: Signal<In, Bits<32>>,
    pub segment_here: Signal<In, Bit>,
    pub valid: Signal<Out, Bit>,
    pub address: Signal<Out, Bits<64>>,
    pub piece_length: Signal<Out, Bits<13>>,
    pub last: Signal<Out, Bit>,
    pub ready: Signal<In, Bit>,
    /// All pieces were taken.
    pub idle: Signal<Out, Bit>,
    state: DFF<SegmentsState>,
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
    whole: Signal<Local, Bit>,
    cut_length: Signal<Local, Bits<32>>,
    ends: Signal<Local, Bit>,
}

impl Logic for Segments {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, index, skip_left, left, bus, seg_length, piece, final_piece);
        self.segment.next = self.index.q.val();
        self.idle.next = self.state.q.val() == SegmentsState::Idle;
        self.valid.next = self.state.q.val() == SegmentsState::Offer;
        self.address.next = self.bus.q.val();
        self.piece_length.next = self.piece.q.val();
        self.last.next = self.final_piece.q.val();
        self.skip_wide.next = bit_cast::<32, 19>(self.skip_left.q.val());
        self.left_wide.next = bit_cast::<32, 13>(self.left.q.val());
        self.available.next = self.seg_length.q.val() - self.skip_wide.val();
        self.whole.next = (!self.seg_length.q.val().get_bits::<13>(19).any())
            & (self.skip_left.q.val() >= self.seg_length.q.val().get_bits::<19>(0));
        self.cut_length.next = self.seg_length.q.val();
        if self.state.q.val() == SegmentsState::Load {
            self.cut_length.next = self.segment_length.val();
        }
        self.ends.next = self.cut_length.val() >= self.left_wide.val();
        if (self.state.q.val() == SegmentsState::Load) | (self.state.q.val() == SegmentsState::Cut)
        {
            self.final_piece.d.next = self.ends.val();
            self.piece.d.next = self.cut_length.val().get_bits::<13>(0);
            if self.ends.val() {
                self.piece.d.next = self.left.q.val();
            }
        }
        match self.state.q.val() {
            SegmentsState::Idle => {
                if self.start.val() {
                    self.index.d.next = 0.into();
                    self.skip_left.d.next = self.skip.val();
                    self.left.d.next = self.length.val();
                    self.state.d.next = SegmentsState::Load;
                }
            }
            SegmentsState::Load => {
                self.bus.d.next = self.segment_bus.val();
                self.seg_length.d.next = self.segment_length.val();
                if self.segment_here.val() {
                    self.state.d.next = SegmentsState::Skip;
                    if self.skip_left.q.val() == 0 {
                        self.state.d.next = SegmentsState::Offer;
                    }
                }
            }
            SegmentsState::Skip => {
                if self.whole.val() {
                    self.skip_left.d.next =
                        self.skip_left.q.val() - self.seg_length.q.val().get_bits::<19>(0);
                    self.index.d.next = self.index.q.val() + 1;
                    self.state.d.next = SegmentsState::Load;
                } else {
                    self.bus.d.next = self.bus.q.val() + bit_cast::<64, 19>(self.skip_left.q.val());
                    self.seg_length.d.next = self.available.val();
                    self.skip_left.d.next = 0.into();
                    self.state.d.next = SegmentsState::Cut;
                }
            }
            SegmentsState::Cut => {
                self.state.d.next = SegmentsState::Offer;
            }
            SegmentsState::Offer => {
                if self.ready.val() {
                    self.left.d.next = self.left.q.val() - self.piece.q.val();
                    self.index.d.next = self.index.q.val() + 1;
                    if self.final_piece.q.val() {
                        self.state.d.next = SegmentsState::Idle;
                    } else {
                        self.state.d.next = SegmentsState::Load;
                    }
                }
            }
            _ => {
                self.state.d.next = SegmentsState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = SegmentsState::Idle;
        }
    }
}
