//! Region table (translation and protection table): one entry a region in block RAM, one look-up
//! pipeline for all clients.
//!
//! ```text
//! cycle 0  arbitrate, address the RAMs
//! cycle 1  RAM outputs -> entry registers; the call's arguments (stable until `done`) -> registers
//! cycle 2  attributes compared; distance from the base rounded down to 64 bytes; Set and Clear write here
//! cycle 3  bus address, room, room less length, is the distance below 2^33
//! cycle 4  `done` with the results
//! ```
//! A call takes 5 cycles; calls of different clients overlap. `va_base` and `bus_base` agree modulo
//! 4,096 (checked by admin), so the low 12 bits are stored once. Neither base + length wraps
//! (checked by admin): an address outside the region therefore gives a distance beyond its end even
//! if the subtraction wraps, and no wrap can look like a hit.

mod lookups;
pub use lookups::Lookups;

use crate::ifs::{TptServer, TptSetServer};
use crate::leaf::{Number, RoundRobin, SdpRam};
use nic_regs::limits::REGION_COUNT;
use rust_hdl::prelude::*;

const _: () = assert!(REGION_COUNT == 1 << 10, "the RAMs have 10 address bits");

/// The region table. While `ready` is low (valid bits are being cleared) calls wait.
#[derive(LogicBlock, Default)]
pub struct Tpt {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub desc_send: TptServer,
    pub desc_recv: TptServer,
    pub set: TptSetServer,
    va_ram: SdpRam<64, 10>,
    bus_ram: SdpRam<52, 10>,
    length_ram: SdpRam<32, 10>,
    /// Tag 15:0, generation 31:16, domain 37:32, rights 40:38 (bit 38: valid).
    attribute_ram: SdpRam<41, 10>,
    arbiter: RoundRobin<3>,
    /// Bit 10: all entries are clear.
    clear_at: DFF<Bits<11>>,
    /// Clients with a call in the pipeline: 0 `desc_send`, 1 `desc_recv`, 2 `set`.
    busy: DFF<Bits<3>>,
    stage1: DFF<Bits<3>>,
    stage2: DFF<Bits<3>>,
    stage3: DFF<Bits<3>>,
    stage4: DFF<Bits<3>>,
    // Stage 1: what the RAMs were asked for, and whether the entry in question was written then.
    index_at: DFF<Bits<10>>,
    wrote: DFF<Bit>,
    // Stage 2: the entry.
    va_base: DFF<Bits<64>>,
    bus_high: DFF<Bits<52>>,
    length: DFF<Bits<32>>,
    attributes: DFF<Bits<41>>,
    /// It was being written when it was read.
    clash: DFF<Bit>,
    // Stage 2: the arguments.
    arg_index: DFF<Bits<16>>,
    arg_generation: DFF<Bits<16>>,
    arg_check: DFF<Bit>,
    arg_va: DFF<Bit>,
    arg_address: DFF<Bits<64>>,
    arg_tag: DFF<Bits<16>>,
    arg_domain: DFF<Bits<8>>,
    arg_rights: DFF<Bits<3>>,
    arg_length: DFF<Bits<32>>,
    // Stage 3.
    length_at: DFF<Bits<32>>,
    bus_rounded: DFF<Bits<64>>,
    distance: DFF<Bits<64>>,
    /// End of the region, counted from its rounded base.
    limit: DFF<Bits<34>>,
    granted: DFF<Bit>,
    // Stage 4.
    bus: DFF<Bits<64>>,
    room: DFF<Bits<34>>,
    /// Room less length; bit 34 is its sign.
    slack: DFF<Bits<35>>,
    offset_64: DFF<Bits<27>>,
    in_bounds: DFF<Bit>,
    index: Signal<Local, Bits<16>>,
    request: Signal<Local, Bits<3>>,
    accepted: Signal<Local, Bits<3>>,
    busy_kept: Signal<Local, Bits<3>>,
    lacking: Signal<Local, Bits<3>>,
    entry_valid: Signal<Local, Bit>,
    entry_domain: Signal<Local, Bits<8>>,
    matching: Signal<Local, Bit>,
    va_rounded: Signal<Local, Bits<64>>,
    va_distance: Signal<Local, Bits<64>>,
    set_index: Signal<Local, Bits<16>>,
    set_ok: Signal<Local, Bit>,
    low_distance: Signal<Local, Bits<34>>,
    low_offset: Signal<Local, Bits<6>>,
    far: Signal<Local, Bit>,
    below_base: Signal<Local, Bit>,
    new_attributes: Signal<Local, Bits<41>>,
    result_ok: Signal<Local, Bit>,
    reaches: Signal<Local, Bit>,
    room_out: Signal<Local, Bits<32>>,
    /// Offset of the base in its 64 bytes, for the check of stage 3.
    base_low: DFF<Bits<6>>,
    offset_saturated: Number<27, 0x7ff_ffff>,
    round_mask: Number<64, { !63 }>,
}

impl Logic for Tpt {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            clear_at,
            busy,
            stage1,
            stage2,
            stage3,
            stage4,
            va_base,
            bus_high,
            length,
            attributes,
            bus_rounded,
            distance,
            limit,
            granted,
            bus,
            room,
            slack,
            offset_64,
            in_bounds,
            base_low
        );
        dff_setup!(
            self,
            clock,
            index_at,
            wrote,
            clash,
            arg_index,
            arg_generation,
            arg_check,
            arg_va
        );
        dff_setup!(
            self,
            clock,
            arg_address,
            arg_tag,
            arg_domain,
            arg_rights,
            arg_length,
            length_at
        );
        clock!(self, clock, va_ram, bus_ram, length_ram, attribute_ram, arbiter);
        self.arbiter.reset.next = self.reset.val();
        self.ready.next = self.clear_at.q.val().get_bit(10);

        // Cycle 0: arbitrate.
        self.request.next = (bit_cast::<3, 1>(self.set.valid.val().into()) << 2)
            | (bit_cast::<3, 1>(self.desc_recv.valid.val().into()) << 1)
            | bit_cast::<3, 1>(self.desc_send.valid.val().into());
        self.arbiter.request.next = 0.into();
        if self.clear_at.q.val().get_bit(10) {
            self.arbiter.request.next = self.request.val() & (!self.busy.q.val());
        }
        self.arbiter.advance.next = true;
        self.accepted.next = self.arbiter.grant.val();
        self.index.next = self.desc_send.index.val();
        if self.accepted.val().get_bit(1) {
            self.index.next = self.desc_recv.index.val();
        } else if self.accepted.val().get_bit(2) {
            self.index.next = self.set.index.val();
        }
        self.va_ram.read_address.next = self.index.val().get_bits::<10>(0);
        self.bus_ram.read_address.next = self.index.val().get_bits::<10>(0);
        self.length_ram.read_address.next = self.index.val().get_bits::<10>(0);
        self.attribute_ram.read_address.next = self.index.val().get_bits::<10>(0);
        self.busy_kept.next = self.busy.q.val() & (!self.stage4.q.val());
        self.busy.d.next = self.busy_kept.val() | self.accepted.val();
        self.stage1.d.next = self.accepted.val();
        self.stage2.d.next = self.stage1.q.val();
        self.stage3.d.next = self.stage2.q.val();
        self.stage4.d.next = self.stage3.q.val();

        // Cycle 1: RAM outputs.
        self.va_base.d.next = self.va_ram.read_data.val();
        self.bus_high.d.next = self.bus_ram.read_data.val();
        self.length.d.next = self.length_ram.read_data.val();
        self.attributes.d.next = self.attribute_ram.read_data.val();

        self.index_at.d.next = self.index.val().get_bits::<10>(0);
        // Set writes one entry, in its cycle 2; the look-up of cycle 0 read nothing of use.
        self.clash.d.next =
            self.wrote.q.val() & (self.index_at.q.val() == self.set.index.val().get_bits::<10>(0));
        self.arg_index.d.next = self.desc_send.index.val();
        self.arg_generation.d.next = self.desc_send.generation.val();
        self.arg_check.d.next = self.desc_send.check_generation.val();
        self.arg_va.d.next = self.desc_send.va_mode.val();
        self.arg_address.d.next = self.desc_send.address.val();
        self.arg_tag.d.next = self.desc_send.tag.val();
        self.arg_domain.d.next = self.desc_send.domain.val();
        self.arg_rights.d.next = self.desc_send.rights.val();
        self.arg_length.d.next = self.desc_send.length.val();
        if self.stage1.q.val().get_bit(1) {
            self.arg_index.d.next = self.desc_recv.index.val();
            self.arg_generation.d.next = self.desc_recv.generation.val();
            self.arg_check.d.next = self.desc_recv.check_generation.val();
            self.arg_va.d.next = self.desc_recv.va_mode.val();
            self.arg_address.d.next = self.desc_recv.address.val();
            self.arg_tag.d.next = self.desc_recv.tag.val();
            self.arg_domain.d.next = self.desc_recv.domain.val();
            self.arg_rights.d.next = self.desc_recv.rights.val();
            self.arg_length.d.next = self.desc_recv.length.val();
        }

        // Cycle 2: compare and subtract.
        self.entry_valid.next = self.attributes.q.val().get_bit(38);
        self.lacking.next = self.arg_rights.q.val() & (!self.attributes.q.val().get_bits::<3>(38));
        self.entry_domain.next = bit_cast::<8, 6>(self.attributes.q.val().get_bits::<6>(32));
        self.matching.next = self.entry_valid.val()
            & (!self.clash.q.val())
            & (!self.lacking.val().any())
            & (!self.arg_index.q.val().get_bits::<6>(10).any())
            & (self.attributes.q.val().get_bits::<16>(0) == self.arg_tag.q.val())
            & (self.entry_domain.val() == self.arg_domain.q.val())
            & ((!self.arg_check.q.val())
                | (self.attributes.q.val().get_bits::<16>(16) == self.arg_generation.q.val()));
        self.granted.d.next = self.matching.val();
        self.va_rounded.next = self.va_base.q.val() & self.round_mask.val();
        self.va_distance.next = self.arg_address.q.val() - self.va_rounded.val();
        self.distance.d.next = self.arg_address.q.val();
        if self.arg_va.q.val() {
            self.distance.d.next = self.va_distance.val();
        }
        self.low_offset.next = self.va_base.q.val().get_bits::<6>(0);
        self.base_low.d.next = self.low_offset.val();
        self.limit.d.next =
            bit_cast::<34, 32>(self.length.q.val()) + bit_cast::<34, 6>(self.low_offset.val());
        self.bus_rounded.d.next = (bit_cast::<64, 52>(self.bus_high.q.val()) << 12)
            | (bit_cast::<64, 6>(self.va_base.q.val().get_bits::<6>(6)) << 6);

        // Set and Clear.
        self.set_index.next = self.set.index.val();
        self.set_ok.next = self.stage2.q.val().get_bit(2)
            & (self.entry_valid.val() == self.set.clear.val())
            & (!self.set_index.val().get_bits::<6>(10).any());
        if self.stage2.q.val().get_bit(2) {
            self.granted.d.next = self.set_ok.val();
        }
        self.wrote.d.next = self.set_ok.val();
        self.new_attributes.next = (bit_cast::<41, 3>(self.set.rights.val().get_bits::<3>(0))
            << 38)
            | (bit_cast::<41, 6>(self.set.domain.val().get_bits::<6>(0)) << 32)
            | (bit_cast::<41, 16>(self.set.generation.val()) << 16)
            | bit_cast::<41, 16>(self.set.tag.val());
        self.va_ram.write_address.next = self.set_index.val().get_bits::<10>(0);
        self.va_ram.write_data.next = self.set.va_base.val();
        self.va_ram.write_enable.next = self.set_ok.val();
        self.bus_ram.write_address.next = self.set_index.val().get_bits::<10>(0);
        self.bus_ram.write_data.next = self.set.bus_base.val().get_bits::<52>(12);
        self.bus_ram.write_enable.next = self.set_ok.val();
        self.length_ram.write_address.next = self.set_index.val().get_bits::<10>(0);
        self.length_ram.write_data.next = self.set.length.val();
        self.length_ram.write_enable.next = self.set_ok.val();
        self.attribute_ram.write_address.next = self.set_index.val().get_bits::<10>(0);
        self.attribute_ram.write_data.next = self.new_attributes.val();
        self.attribute_ram.write_enable.next = self.set_ok.val();
        if self.set.clear.val() {
            self.attribute_ram.write_data.next = 0.into();
        }
        if !self.clear_at.q.val().get_bit(10) {
            self.attribute_ram.write_address.next = self.clear_at.q.val().get_bits::<10>(0);
            self.attribute_ram.write_data.next = 0.into();
            self.attribute_ram.write_enable.next = true;
            self.clear_at.d.next = self.clear_at.q.val() + 1;
        }

        // Cycle 3: sums.
        self.length_at.d.next = self.arg_length.q.val();
        self.far.next = self.distance.q.val().get_bits::<31>(33).any();
        self.low_distance.next = bit_cast::<34, 33>(self.distance.q.val().get_bits::<33>(0));
        self.below_base.next = (!self.distance.q.val().get_bits::<58>(6).any())
            & (self.distance.q.val().get_bits::<6>(0) < self.base_low.q.val());
        self.bus.d.next = self.bus_rounded.q.val() + self.distance.q.val();
        self.room.d.next = self.limit.q.val() - self.low_distance.val();
        self.slack.d.next = bit_cast::<35, 34>(self.limit.q.val())
            - bit_cast::<35, 34>(self.low_distance.val())
            - bit_cast::<35, 32>(self.length_at.q.val());
        self.offset_64.d.next = self.distance.q.val().get_bits::<27>(6);
        if self.far.val() {
            self.offset_64.d.next = self.offset_saturated.val();
        }
        self.in_bounds.d.next = self.granted.q.val()
            & (self.stage3.q.val().get_bit(2) | ((!self.far.val()) & (!self.below_base.val())));

        // Cycle 4: results.
        self.result_ok.next = self.in_bounds.q.val() & (!self.slack.q.val().get_bit(34));
        self.desc_send.done.next = self.stage4.q.val().get_bit(0);
        self.desc_send.ok.next = self.result_ok.val();
        self.desc_send.bus.next = self.bus.q.val();
        // A call that is not granted because its range ends behind the region learns where that ends.
        self.reaches.next = self.in_bounds.q.val() & (!self.room.q.val().get_bit(33));
        self.room_out.next = 0.into();
        if self.reaches.val() {
            self.room_out.next = self.room.q.val().get_bits::<32>(0);
        }
        self.desc_send.room.next = self.room_out.val();
        self.desc_send.offset_64.next = self.offset_64.q.val();
        self.desc_recv.done.next = self.stage4.q.val().get_bit(1);
        self.desc_recv.ok.next = self.result_ok.val();
        self.desc_recv.bus.next = self.bus.q.val();
        self.desc_recv.room.next = self.room_out.val();
        self.desc_recv.offset_64.next = self.offset_64.q.val();
        self.set.done.next = self.stage4.q.val().get_bit(2);
        self.set.ok.next = self.in_bounds.q.val();

        if self.reset.val() {
            self.wrote.d.next = false;
            self.clear_at.d.next = 0.into();
            self.busy.d.next = 0.into();
            self.stage1.d.next = 0.into();
            self.stage2.d.next = 0.into();
            self.stage3.d.next = 0.into();
            self.stage4.d.next = 0.into();
        }
    }
}
