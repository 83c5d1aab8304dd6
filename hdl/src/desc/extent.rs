//! How much to read for a descriptor: what its token says, and when a VI's queue is followed
//! (receive engine), up to four lines of 64 bytes. Combinational.

use crate::leaf::Number;
use nic_regs::desc;
use nic_regs::limits::DATA_SEGMENTS_MAX;
use rust_hdl::prelude::*;

const LARGEST: u64 = desc::CONTROL_BYTES + desc::SEGMENT_BYTES * (DATA_SEGMENTS_MAX as u64 + 1);

#[derive(LogicBlock, Default)]
pub struct Extent {
    /// Segments of the descriptor; 0: not known, or none.
    pub hint: Signal<In, Bits<5>>,
    /// Posted descriptors from this one on.
    pub covered: Signal<In, Bits<16>>,
    /// The successors are wanted too.
    pub follow: Signal<In, Bit>,
    pub bytes: Signal<Out, Bits<9>>,
    hint_bytes: Signal<Local, Bits<9>>,
    hinted: Signal<Local, Bits<9>>,
    several: Signal<Local, Bits<3>>,
    several_bytes: Signal<Local, Bits<9>>,
    control_bytes: Number<9, { desc::CONTROL_BYTES }>,
    line: Number<9, 64>,
    largest: Number<9, LARGEST>,
    hint_largest: Number<5, { DATA_SEGMENTS_MAX as u64 + 1 }>,
    most: Number<3, 4>,
    most_covered: Number<16, 4>,
}

impl Logic for Extent {
    #[hdl_gen]
    fn update(&mut self) {
        self.hint_bytes.next = self.control_bytes.val() + (bit_cast::<9, 5>(self.hint.val()) << 4);
        self.hinted.next = self.hint_bytes.val();
        if self.hint.val() == 0 {
            // One line holds two.
            self.hinted.next = self.line.val();
        } else if self.hint_largest.val() < self.hint.val() {
            self.hinted.next = self.largest.val();
        }
        self.several.next = self.covered.val().get_bits::<3>(0);
        if self.most_covered.val() < self.covered.val() {
            self.several.next = self.most.val();
        }
        self.several_bytes.next = bit_cast::<9, 3>(self.several.val()) << 6;
        self.bytes.next = self.hinted.val();
        if self.follow.val() & (self.hinted.val() < self.several_bytes.val()) {
            self.bytes.next = self.several_bytes.val();
        }
    }
}
