//! Frames of staging that the receive engine has in flight: taken from the front, not given back yet.
//!
//! ```text
//! offered --take--> in flight (up to 16, in order) --release--> given back
//!    `----------------------release--------------------------^   (nothing in flight)
//! ```
//! A frame that leaves the front is remembered a cycle later, from its header, which stands until
//! then. Two cycles at least lie between two frames that are given back: that is what the credits
//! that go with them need.
use super::num::Num;
use crate::leaf::Fifo;
use nic_regs::frame::Type;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Held {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    // As in `StagingServer`; `give`: release.
    pub offered: Signal<In, Bit>,
    pub take: Signal<In, Bit>,
    pub give: Signal<In, Bit>,
    pub refused: Signal<In, Bit>,
    /// One more frame may be taken.
    pub room: Signal<Out, Bit>,
    /// The offered frame leaves the front at this edge.
    pub leaves: Signal<Out, Bit>,
    /// It has left; its header, and its payload beats.
    pub left: Signal<Out, Bit>,
    pub header0: Signal<In, Bits<64>>,
    pub header1: Signal<In, Bits<64>>,
    pub beats: Signal<Out, Bits<10>>,
    /// Nothing is given back in this cycle.
    pub hold: Signal<In, Bit>,
    // A frame is given back: its source, epoch bit, beats and units.
    pub freed: Signal<Out, Bit>,
    pub freed_peer: Signal<Out, Bits<6>>,
    pub freed_epoch_bit: Signal<Out, Bit>,
    pub freed_sequenced: Signal<Out, Bit>,
    pub freed_beats: Signal<Out, Bits<10>>,
    pub freed_units: Signal<Out, Bits<7>>,
    /// It was a message that was refused.
    pub freed_refused: Signal<Out, Bit>,
    /// Peer 5:0, epoch bit 6, sequenced 7, units 12:8, beats 22:13.
    in_flight: Fifo<23, 5>,
    /// Given back, in order: refused.
    gone: Fifo<1, 5>,
    count: DFF<Bits<5>>,
    refuses: DFF<Bit>,
    leaving: DFF<Bit>,
    freeing: DFF<Bit>,
    exists: Signal<Local, Bit>,
    none: Signal<Local, Bit>,
    releases: Signal<Local, Bit>,
    pushes: Signal<Local, Bit>,
    frees: Signal<Local, Bit>,
    refuse_now: Signal<Local, Bit>,
    kind: Signal<Local, Bits<8>>,
    length: Signal<Local, Bits<14>>,
    beat_count: Signal<Local, Bits<10>>,
    rounded: Signal<Local, Bits<10>>,
    units: Signal<Local, Bits<5>>,
    sequenced: Signal<Local, Bit>,
    oldest: Signal<Local, Bits<23>>,
    zero_5: Num<5, 0>,
    one_5: Num<5, 1>,
    round: Num<10, 31>,
    type_data: Num<8, { Type::Data as u64 }>,
    type_write: Num<8, { Type::RdmaWrite as u64 }>,
}

impl Logic for Held {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, count, refuses, leaving, freeing);
        clock!(self, clock, in_flight, gone);
        self.in_flight.reset.next = self.reset.val();
        self.gone.reset.next = self.reset.val();
        self.room.next = !self.count.q.val().get_bit(4);
        self.none.next = self.count.q.val() == self.zero_5.val();
        self.exists.next = self.offered.val() | !self.none.val();
        self.releases.next = self.give.val() & self.exists.val();
        self.pushes.next =
            self.offered.val() & (self.take.val() | (self.give.val() & self.none.val()));
        self.leaves.next = self.pushes.val();
        if self.pushes.val() & !self.releases.val() {
            self.count.d.next = self.count.q.val() + 1;
        } else if self.releases.val() & !self.pushes.val() {
            self.count.d.next = self.count.q.val() - 1;
        }
        self.refuse_now.next = self.refuses.q.val() | (self.refused.val() & self.exists.val());
        self.refuses.d.next = self.refuse_now.val() & !self.releases.val();
        self.gone.write.next = self.releases.val();
        self.gone.data_in.next = bit_cast::<1, 1>(self.refuse_now.val().into());

        // What is remembered.
        self.leaving.d.next = self.pushes.val();
        self.left.next = self.leaving.q.val();
        self.kind.next = self.header0.val().get_bits::<8>(8);
        self.sequenced.next = ((self.kind.val() != self.type_data.val())
            & (self.kind.val() != self.type_write.val()))
            | self.header1.val().get_bit(51);
        self.length.next = bit_cast::<14, 13>(self.header0.val().get_bits::<13>(16)) + 7;
        self.beat_count.next = self.length.val().get_bits::<10>(3);
        self.beats.next = self.beat_count.val();
        self.rounded.next = self.beat_count.val() + self.round.val();
        self.units.next = self.rounded.val().get_bits::<5>(5);
        if !self.rounded.val().get_bits::<5>(5).any() {
            self.units.next = self.one_5.val();
        }
        self.in_flight.write.next = self.leaving.q.val();
        self.in_flight.data_in.next = bit_cast::<23, 6>(self.header0.val().get_bits::<6>(32))
            | (bit_cast::<23, 1>(self.header0.val().get_bit(7).into()) << 6)
            | (bit_cast::<23, 1>(self.sequenced.val().into()) << 7)
            | (bit_cast::<23, 5>(self.units.val()) << 8)
            | (bit_cast::<23, 10>(self.beat_count.val()) << 13);

        // Back.
        self.frees.next = !(self.gone.empty.val()
            | self.in_flight.empty.val()
            | self.hold.val()
            | self.freeing.q.val());
        self.freeing.d.next = self.frees.val();
        self.gone.read.next = self.frees.val();
        self.in_flight.read.next = self.frees.val();
        self.freed.next = self.frees.val();
        self.oldest.next = self.in_flight.data_out.val();
        self.freed_peer.next = self.oldest.val().get_bits::<6>(0);
        self.freed_epoch_bit.next = self.oldest.val().get_bit(6);
        self.freed_sequenced.next = self.oldest.val().get_bit(7);
        self.freed_units.next = bit_cast::<7, 5>(self.oldest.val().get_bits::<5>(8));
        self.freed_beats.next = self.oldest.val().get_bits::<10>(13);
        self.freed_refused.next = self.gone.data_out.val().any();
        if self.reset.val() {
            self.count.d.next = 0.into();
            self.refuses.d.next = false;
            self.leaving.d.next = false;
            self.freeing.d.next = false;
        }
    }
}
