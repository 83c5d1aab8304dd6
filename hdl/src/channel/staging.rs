//! Staging memory: frames between their acceptance and the receive engine.
//!
//! Payload is written while a frame arrives, behind everything that is kept; `commit` keeps it, and
//! without `commit` the next frame overwrites it. Room is counted in credit units of 32 beats
//! (contract 7.4), 64 for sequenced frames and 64 for the others, so that peers that obey their
//! credits always find room, whatever else arrives; the payload can then never overrun the 4,096
//! beats. Headers, at most one a unit, wait in a FIFO of their own; the
//! oldest that the receive engine has not taken is offered from registers, and a frame that finds
//! nothing in front of it goes there at once. What the engine has in flight is in [`super::held`].
//!
//! Released units of sequenced frames raise the credit limit of their source, unless its channel
//! was opened anew in between (epoch bit). Two epochs are enough because PeerOpen waits while `old`:
//! until the frames that were here at the PeerOpen before are gone.
use super::held::Held;
use super::num::Num;
use crate::ifs::StagingServer;
use crate::leaf::{Fifo, LutRam, SdpRam};
use nic_regs::limits::{CREDITS_MAX, FRAME_CREDITS, UNSEQUENCED_UNITS};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Staging {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub staging: StagingServer,
    // From the link receiver.
    /// First beat of a frame.
    pub start: Signal<In, Bit>,
    pub write: Signal<In, Bit>,
    /// Number of the payload beat.
    pub offset: Signal<In, Bits<10>>,
    pub data: Signal<In, Bits<64>>,
    pub header0: Signal<In, Bits<64>>,
    pub header1: Signal<In, Bits<64>>,
    pub header2: Signal<In, Bits<64>>,
    /// Payload beats of the frame with this header.
    pub beats: Signal<In, Bits<10>>,
    /// Payload bytes of the frame that is arriving, two cycles before `fits`.
    pub coming_length: Signal<In, Bits<13>>,
    // From and to acceptance.
    /// There is room for it, if it is sequenced, or not.
    pub fits: Signal<Out, Bit>,
    pub fits_no_sequence: Signal<Out, Bit>,
    /// There is room for any sequenced frame.
    pub room: Signal<Out, Bit>,
    pub commit: Signal<In, Bit>,
    /// The committed frame is unsequenced.
    pub no_sequence: Signal<In, Bit>,
    pub epoch_bit: Signal<In, Bit>,
    pub opened: Signal<In, Bit>,
    pub opened_peer: Signal<In, Bits<6>>,
    pub opens_bit: Signal<In, Bit>,
    pub opened_credit: Signal<In, Bits<8>>,
    /// Frames from before the last PeerOpen, of any peer, are still here.
    pub old: Signal<Out, Bit>,
    /// Credit limit of this peer (granted plus released).
    pub tx_peer: Signal<In, Bits<6>>,
    pub tx_credit: Signal<Out, Bits<8>>,
    /// A frame tells it the limit.
    pub tx_reports: Signal<In, Bit>,
    /// Credits of this peer grew: tell it.
    pub returned: Signal<Out, Bit>,
    pub returned_peer: Signal<Out, Bits<6>>,
    /// 16 units or more were not told it yet.
    pub returned_many: Signal<Out, Bit>,
    /// MessageRefused is wanted for this peer.
    pub refuse: Signal<Out, Bit>,
    pub refuse_peer: Signal<Out, Bits<6>>,
    ram: SdpRam<64, 12>,
    held: Held,
    headers0: Fifo<64, 7>,
    headers1: Fifo<64, 7>,
    headers2: Fifo<64, 7>,
    /// Colour 8, credit limit 7:0.
    credits: LutRam<9, 6>,
    credits_tx: LutRam<9, 6>,
    /// Limit told last.
    notified: LutRam<8, 6>,
    base: DFF<Bits<12>>,
    beats_held: DFF<Bits<13>>,
    units_held: DFF<Bits<7>>,
    no_sequence_held: DFF<Bits<7>>,
    roomy: DFF<Bit>,
    units: DFF<Bits<7>>,
    units1: DFF<Bits<7>>,
    units2: DFF<Bits<7>>,
    overrun: DFF<Bit>,
    ram_write: DFF<Bit>,
    ram_address: DFF<Bits<12>>,
    ram_data: DFF<Bits<64>>,
    head_valid: DFF<Bit>,
    head0: DFF<Bits<64>>,
    head1: DFF<Bits<64>>,
    head2: DFF<Bits<64>>,
    head_base: DFF<Bits<12>>,
    back: DFF<Bit>,
    back_peer: DFF<Bits<6>>,
    back_units: DFF<Bits<7>>,
    back_epoch_bit: DFF<Bit>,
    kept: DFF<Bit>,
    kept_no_sequence: DFF<Bit>,
    refused: DFF<Bit>,
    offers: Signal<Local, Bit>,
    refused_peer: DFF<Bits<6>>,
    /// Frames that are here, and those of them from before the last PeerOpen.
    frames: DFF<Bits<8>>,
    old_frames: DFF<Bits<8>>,
    frames_in: Signal<Local, Bits<8>>,
    frames_after: Signal<Local, Bits<8>>,
    rounded: Signal<Local, Bits<14>>,
    extent: Signal<Local, Bits<13>>,
    place: Signal<Local, Bits<12>>,
    wanted: Signal<Local, Bits<8>>,
    wanted_no_sequence: Signal<Local, Bits<8>>,
    units_in: Signal<Local, Bits<7>>,
    units_out: Signal<Local, Bits<7>>,
    no_sequence_in: Signal<Local, Bits<7>>,
    no_sequence_out: Signal<Local, Bits<7>>,
    beats_in: Signal<Local, Bits<13>>,
    beats_out: Signal<Local, Bits<13>>,
    load: Signal<Local, Bit>,
    bypass: Signal<Local, Bit>,
    waiting: Signal<Local, Bits<16>>,
    marked0: Signal<Local, Bits<64>>,
    untold: Signal<Local, Bits<8>>,
    credit_entry: Signal<Local, Bits<9>>,
    credit_sum: Signal<Local, Bits<8>>,
    credit_write: Signal<Local, Bit>,
    credit_peer: Signal<Local, Bits<6>>,
    credit_value: Signal<Local, Bits<9>>,
    epoch_index: Num<64, 0x80>,
    epoch_bit_mask: Num<64, 0xffff_ffff_ffff_ff7f>,
    units_all: Num<8, { CREDITS_MAX as u64 }>,
    no_sequence_all: Num<8, { UNSEQUENCED_UNITS as u64 }>,
    /// The largest frame finds room.
    units_some: Num<7, { (CREDITS_MAX - FRAME_CREDITS) as u64 }>,
    round_bytes: Num<14, 255>,
    one_7: Num<7, 1>,
    zero_4: Num<4, 0>,
    zero_16: Num<16, 0>,
}

impl Logic for Staging {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, base, beats_held, units_held, units, overrun, ram_write);
        dff_setup!(self, clock, ram_address, ram_data, head_valid, head0, head1, head2, head_base);
        dff_setup!(self, clock, back, back_peer, back_units, back_epoch_bit, refused, refused_peer);
        dff_setup!(self, clock, kept, kept_no_sequence, units1, units2, no_sequence_held, roomy);
        dff_setup!(self, clock, frames, old_frames);
        clock!(self, clock, held, ram, headers0, headers1, headers2, credits, credits_tx, notified);

        // Payload, tentatively.
        self.place.next = self.base.q.val() + bit_cast::<12, 10>(self.offset.val());
        self.extent.next = self.beats_held.q.val() + bit_cast::<13, 10>(self.offset.val());
        self.ram_write.d.next = self.write.val() & !self.extent.val().get_bit(12);
        self.ram_address.d.next = self.place.val();
        self.ram_data.d.next = self.data.val();
        if self.start.val() {
            self.overrun.d.next = false;
        } else if self.write.val() & self.extent.val().get_bit(12) {
            self.overrun.d.next = true;
        }
        self.ram.write_enable.next = self.ram_write.q.val();
        self.ram.write_address.next = self.ram_address.q.val();
        self.ram.write_data.next = self.ram_data.q.val();

        // Room: payload, rounded up to units, and one at least; the frame takes its number along
        // until it is kept.
        self.rounded.next = bit_cast::<14, 13>(self.coming_length.val()) + self.round_bytes.val();
        self.units.d.next = bit_cast::<7, 6>(self.rounded.val().get_bits::<6>(8));
        if !self.rounded.val().get_bits::<6>(8).any() {
            self.units.d.next = self.one_7.val();
        }
        self.units1.d.next = self.units.q.val();
        self.units2.d.next = self.units1.q.val();
        self.wanted.next =
            bit_cast::<8, 7>(self.units_held.q.val()) + bit_cast::<8, 7>(self.units.q.val());
        self.fits.next = (self.wanted.val() <= self.units_all.val()) & !self.overrun.q.val();
        self.wanted_no_sequence.next =
            bit_cast::<8, 7>(self.no_sequence_held.q.val()) + bit_cast::<8, 7>(self.units.q.val());
        self.fits_no_sequence.next =
            (self.wanted_no_sequence.val() <= self.no_sequence_all.val()) & !self.overrun.q.val();
        self.roomy.d.next = self.units_held.q.val() <= self.units_some.val();
        self.room.next = self.roomy.q.val();

        // Keep a frame, one cycle after the verdict: its header stands until then.
        self.kept.d.next = self.commit.val();
        self.kept_no_sequence.d.next = self.no_sequence.val();
        self.headers0.reset.next = self.reset.val();
        self.headers1.reset.next = self.reset.val();
        self.headers2.reset.next = self.reset.val();
        self.waiting.next = self.headers0.level.val();
        self.bypass.next = self.kept.q.val()
            & (self.waiting.val() == self.zero_16.val())
            & !self.head_valid.q.val();
        self.headers0.write.next = self.kept.q.val() & !self.bypass.val();
        self.headers1.write.next = self.kept.q.val() & !self.bypass.val();
        self.headers2.write.next = self.kept.q.val() & !self.bypass.val();
        self.marked0.next = self.header0.val() & self.epoch_bit_mask.val();
        if self.epoch_bit.val() {
            self.marked0.next = self.header0.val() | self.epoch_index.val();
        }
        self.headers0.data_in.next = self.marked0.val();
        self.headers1.data_in.next = self.header1.val();
        self.headers2.data_in.next = self.header2.val();
        self.units_in.next = 0.into();
        self.no_sequence_in.next = 0.into();
        self.beats_in.next = 0.into();
        if self.kept.q.val() {
            if self.kept_no_sequence.q.val() {
                self.no_sequence_in.next = self.units2.q.val();
            } else {
                self.units_in.next = self.units2.q.val();
            }
            self.beats_in.next = bit_cast::<13, 10>(self.beats.val());
            self.base.d.next = self.base.q.val() + bit_cast::<12, 10>(self.beats.val());
        }

        self.frames_in.next = bit_cast::<8, 1>(self.kept.q.val().into());

        // The frame that is offered.
        self.load.next = !(self.head_valid.q.val() | self.headers0.empty.val());
        self.headers0.read.next = self.load.val();
        self.headers1.read.next = self.load.val();
        self.headers2.read.next = self.load.val();
        if self.load.val() {
            self.head_valid.d.next = true;
            self.head0.d.next = self.headers0.data_out.val();
            self.head1.d.next = self.headers1.data_out.val();
            self.head2.d.next = self.headers2.data_out.val();
        } else if self.bypass.val() {
            self.head_valid.d.next = true;
            self.head0.d.next = self.marked0.val();
            self.head1.d.next = self.header1.val();
            self.head2.d.next = self.header2.val();
        }
        self.offers.next = self.head_valid.q.val() & self.held.room.val();
        self.staging.valid.next = self.offers.val();
        self.staging.header0.next = self.head0.q.val() & self.epoch_bit_mask.val();
        self.staging.header1.next = self.head1.q.val();
        self.staging.header2.next = self.head2.q.val();
        self.staging.base.next = self.head_base.q.val();
        self.ram.read_address.next =
            self.staging.origin.val() + bit_cast::<12, 10>(self.staging.address.val());
        self.staging.data.next = self.ram.read_data.val();

        // Taken and given back.
        self.held.reset.next = self.reset.val();
        self.held.offered.next = self.offers.val();
        self.held.take.next = self.staging.take.val();
        self.held.give.next = self.staging.release.val();
        self.held.refused.next = self.staging.refused.val();
        self.held.header0.next = self.head0.q.val();
        self.held.header1.next = self.head1.q.val();
        self.held.hold.next = self.opened.val();
        if self.held.leaves.val() {
            self.head_valid.d.next = false;
        }
        if self.held.left.val() {
            self.head_base.d.next =
                self.head_base.q.val() + bit_cast::<12, 10>(self.held.beats.val());
        }
        self.units_out.next = 0.into();
        self.no_sequence_out.next = 0.into();
        self.beats_out.next = 0.into();
        self.back.d.next = self.back.q.val() & self.opened.val();
        if self.held.freed.val() {
            if self.held.freed_sequenced.val() {
                self.units_out.next = self.held.freed_units.val();
            } else {
                self.no_sequence_out.next = self.held.freed_units.val();
            }
            self.beats_out.next = bit_cast::<13, 10>(self.held.freed_beats.val());
            self.back.d.next = self.held.freed_sequenced.val();
            self.back_peer.d.next = self.held.freed_peer.val();
            self.back_units.d.next = self.held.freed_units.val();
            self.back_epoch_bit.d.next = self.held.freed_epoch_bit.val();
        }
        self.units_held.d.next =
            (self.units_held.q.val() + self.units_in.val()) - self.units_out.val();
        self.no_sequence_held.d.next = (self.no_sequence_held.q.val() + self.no_sequence_in.val())
            - self.no_sequence_out.val();
        self.beats_held.d.next =
            (self.beats_held.q.val() + self.beats_in.val()) - self.beats_out.val();

        // Frames are given back in the order in which they came.
        self.frames_after.next = (self.frames.q.val() + self.frames_in.val())
            - bit_cast::<8, 1>(self.held.freed.val().into());
        self.frames.d.next = self.frames_after.val();
        self.old.next = self.old_frames.q.val().any();
        if self.opened.val() {
            self.old_frames.d.next = self.frames_after.val();
        } else if self.held.freed.val() & self.old_frames.q.val().any() {
            self.old_frames.d.next = self.old_frames.q.val() - 1;
        }

        // Credits: an opening peer's start value goes first, a return waits a cycle.
        self.credits.read_address.next = self.back_peer.q.val();
        self.credit_entry.next = self.credits.read_data.val();
        self.credit_sum.next =
            self.credit_entry.val().get_bits::<8>(0) + bit_cast::<8, 7>(self.back_units.q.val());
        self.credit_write.next = false;
        self.credit_peer.next = self.back_peer.q.val();
        self.credit_value.next = bit_cast::<9, 8>(self.credit_sum.val())
            | (bit_cast::<9, 1>(self.back_epoch_bit.q.val().into()) << 8);
        self.returned.next = false;
        self.returned_peer.next = self.back_peer.q.val();
        self.notified.read_address.next = self.back_peer.q.val();
        self.notified.write_address.next = self.tx_peer.val();
        self.notified.write_data.next = self.credits_tx.read_data.val().get_bits::<8>(0);
        self.notified.write_enable.next = self.tx_reports.val();
        self.untold.next = self.credit_sum.val() - self.notified.read_data.val();
        self.returned_many.next = self.untold.val().get_bits::<4>(4) != self.zero_4.val();
        if self.opened.val() {
            self.credit_write.next = true;
            self.credit_peer.next = self.opened_peer.val();
            self.credit_value.next = bit_cast::<9, 8>(self.opened_credit.val())
                | (bit_cast::<9, 1>(self.opens_bit.val().into()) << 8);
        } else if self.back.q.val()
            & (self.credit_entry.val().get_bit(8) == self.back_epoch_bit.q.val())
        {
            self.credit_write.next = true;
            self.returned.next = true;
        }
        self.credits.write_address.next = self.credit_peer.val();
        self.credits.write_data.next = self.credit_value.val();
        self.credits.write_enable.next = self.credit_write.val();
        self.credits_tx.read_address.next = self.tx_peer.val();
        self.tx_credit.next = self.credits_tx.read_data.val().get_bits::<8>(0);
        self.credits_tx.write_address.next = self.credit_peer.val();
        self.credits_tx.write_data.next = self.credit_value.val();
        self.credits_tx.write_enable.next = self.credit_write.val();

        // Refused messages.
        self.refused.d.next = self.held.freed.val() & self.held.freed_refused.val();
        self.refused_peer.d.next = self.held.freed_peer.val();
        self.refuse.next = self.refused.q.val();
        self.refuse_peer.next = self.refused_peer.q.val();
        if self.reset.val() {
            self.base.d.next = 0.into();
            self.head_base.d.next = 0.into();
            self.beats_held.d.next = 0.into();
            self.units_held.d.next = 0.into();
            self.no_sequence_held.d.next = 0.into();
            self.roomy.d.next = false;
            self.frames.d.next = 0.into();
            self.old_frames.d.next = 0.into();
            self.head_valid.d.next = false;
            self.overrun.d.next = false;
            self.back.d.next = false;
            self.refused.d.next = false;
            self.kept.d.next = false;
        }
    }
}
