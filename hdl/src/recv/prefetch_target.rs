//! Whose descriptor a job is about, and where it is: what the frame wants, or what follows the VI's
//! last entry in the descriptor cache.
//!
//! ```text
//! the frame's context --> +----------------+ --> token, bytes, owner: the order of a read
//!    a GET's context  --> | PrefetchTarget | --> connected, enough, unlinked
//! entries' successors --> +----------------+
//! ```

use crate::desc::Extent;
use crate::leaf::{LutRam, Number};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct PrefetchTarget {
    pub clock: Signal<In, Clock>,
    // Levels, of which one is high at a time: take the frame's context; the answer of a GET; compare
    // it with what is there. Pulse: it has `segments` segments.
    pub take_frame: Signal<In, Bit>,
    pub take_look: Signal<In, Bit>,
    pub weigh: Signal<In, Bit>,
    pub longer: Signal<In, Bit>,
    /// Pulses: the stream goes on, with so many free places; a read of the stream is ordered.
    pub proceed: Signal<In, Bit>,
    pub free: Signal<In, Bits<3>>,
    pub ordered: Signal<In, Bit>,
    /// As far as is known, two more are posted behind what the stream ordered.
    pub many: Signal<Out, Bit>,
    pub frame_tag: Signal<In, Bits<16>>,
    pub frame_domain: Signal<In, Bits<8>>,
    pub frame_region: Signal<In, Bits<16>>,
    pub frame_offset: Signal<In, Bits<26>>,
    pub frame_hint: Signal<In, Bits<5>>,
    pub frame_count: Signal<In, Bits<16>>,
    pub frame_bus: Signal<In, Bits<64>>,
    pub look_connected: Signal<In, Bit>,
    pub look_domain: Signal<In, Bits<8>>,
    pub look_tag: Signal<In, Bits<16>>,
    pub look_region: Signal<In, Bits<16>>,
    pub look_offset: Signal<In, Bits<26>>,
    pub look_hint: Signal<In, Bits<5>>,
    pub look_count: Signal<In, Bits<16>>,
    // Who, with which row; the place behind what is there or on its way, and the oldest's.
    pub vi: Signal<In, Bits<10>>,
    pub row: Signal<In, Bits<4>>,
    pub behind: Signal<In, Bits<3>>,
    pub taken: Signal<In, Bits<3>>,
    /// It is the frame's; the stream goes on; one descriptor is enough; `more_segments` is known.
    pub serving: Signal<In, Bit>,
    pub predicted: Signal<In, Bit>,
    pub single: Signal<In, Bit>,
    pub resumes: Signal<In, Bit>,
    pub more_segments: Signal<In, Bits<5>>,
    /// Segments of the last descriptor; descriptors lie one behind the other.
    pub segments: Signal<In, Bits<5>>,
    pub near: Signal<In, Bit>,
    // The last entry of a row.
    pub tail_write: Signal<In, Bit>,
    pub tail_row: Signal<In, Bits<4>>,
    pub tail_bus: Signal<In, Bits<64>>,
    pub tail_successor: Signal<In, Bits<43>>,
    /// With `weigh`: the VI is connected; everything posted is there; Next of the last entry is not
    /// known.
    pub connected: Signal<Out, Bit>,
    pub enough: Signal<Out, Bit>,
    pub unlinked: Signal<Out, Bit>,
    pub bus: Signal<Out, Bits<64>>,
    pub region: Signal<Out, Bits<16>>,
    pub offset: Signal<Out, Bits<26>>,
    pub wanted: Signal<Out, Bits<9>>,
    /// See `super::reader`.
    pub owner: Signal<Out, Bits<60>>,
    extent: Extent,
    tail_buses: LutRam<64, 4>,
    tail_successors: LutRam<43, 4>,
    bus_at: DFF<Bits<64>>,
    tag: DFF<Bits<16>>,
    domain: DFF<Bits<8>>,
    region_at: DFF<Bits<16>>,
    offset_at: DFF<Bits<26>>,
    segments_at: DFF<Bits<5>>,
    connected_at: DFF<Bit>,
    count: DFF<Bits<16>>,
    there: DFF<Bits<3>>,
    /// Posted descriptors from this one on; free places.
    covered: DFF<Bits<16>>,
    room: DFF<Bits<3>>,
    follows: Signal<Local, Bit>,
    lines: Signal<Local, Bits<3>>,
    read_lines: Signal<Local, Bits<16>>,
    prefetch: Number<3, 7>,
    few: Number<16, 2>,
}

impl Logic for PrefetchTarget {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, bus_at, tag, domain, region_at, offset_at, segments_at);
        dff_setup!(self, clock, connected_at, count, there, covered, room);
        clock!(self, clock, tail_buses, tail_successors);
        self.tail_buses.read_address.next = self.row.val();
        self.tail_buses.write_address.next = self.tail_row.val();
        self.tail_buses.write_data.next = self.tail_bus.val();
        self.tail_buses.write_enable.next = self.tail_write.val();
        self.tail_successors.read_address.next = self.row.val();
        self.tail_successors.write_address.next = self.tail_row.val();
        self.tail_successors.write_data.next = self.tail_successor.val();
        self.tail_successors.write_enable.next = self.tail_write.val();

        // The order: the frame's own fetch never reads more than the token's hint says.
        self.bus.next = self.bus_at.q.val();
        self.region.next = self.region_at.q.val();
        self.offset.next = self.offset_at.q.val();
        self.lines.next = self.covered.q.val().get_bits::<3>(0);
        if bit_cast::<16, 3>(self.room.q.val()) < self.covered.q.val() {
            self.lines.next = self.room.q.val();
        }
        self.extent.hint.next = self.segments_at.q.val();
        self.extent.covered.next = bit_cast::<16, 3>(self.lines.val());
        self.extent.follow.next = (self.near.val() & (!self.serving.val())) | self.predicted.val();
        self.read_lines.next = bit_cast::<16, 3>(self.extent.bytes.val().get_bits::<3>(6));

        self.connected.next = self.connected_at.q.val();
        self.enough.next = bit_cast::<16, 3>(self.there.q.val()) >= self.count.q.val();
        self.follows.next = self.there.q.val().any() & (!self.predicted.val());
        self.unlinked.next =
            self.follows.val() & (!self.tail_successors.read_data.val().get_bit(42));
        if self.take_frame.val() {
            self.bus_at.d.next = self.frame_bus.val();
            self.tag.d.next = self.frame_tag.val();
            self.domain.d.next = self.frame_domain.val();
            self.region_at.d.next = self.frame_region.val();
            self.offset_at.d.next = self.frame_offset.val();
            self.segments_at.d.next = self.frame_hint.val();
            self.covered.d.next = self.frame_count.val();
            self.room.d.next = self.prefetch.val();
        } else if self.take_look.val() {
            self.connected_at.d.next = self.look_connected.val();
            self.tag.d.next = self.look_tag.val();
            self.domain.d.next = self.look_domain.val();
            self.region_at.d.next = self.look_region.val();
            self.offset_at.d.next = self.look_offset.val();
            self.segments_at.d.next = self.look_hint.val();
            self.count.d.next = self.look_count.val();
            self.there.d.next = self.behind.val() - self.taken.val();
        } else if self.weigh.val() {
            self.covered.d.next = self.count.q.val() - bit_cast::<16, 3>(self.there.q.val());
            self.room.d.next = self.prefetch.val() - self.there.q.val();
            if self.single.val() {
                self.room.d.next = 1.into();
            }
            self.bus_at.d.next = self.tail_buses.read_data.val();
            if self.follows.val() {
                self.region_at.d.next = self.tail_successors.read_data.val().get_bits::<16>(0);
                self.offset_at.d.next = self.tail_successors.read_data.val().get_bits::<26>(16);
                self.segments_at.d.next = self.segments.val();
            }
            if self.resumes.val() {
                self.segments_at.d.next = self.more_segments.val();
            }
        } else if self.longer.val() {
            self.segments_at.d.next = self.segments.val();
        } else if self.proceed.val() {
            self.room.d.next = self.free.val();
        } else if self.ordered.val() {
            self.covered.d.next = self.covered.q.val() - self.read_lines.val();
            if self.covered.q.val() < self.read_lines.val() {
                self.covered.d.next = 0.into();
            }
        }
        self.many.next = self.covered.q.val() >= self.few.val();

        self.wanted.next = self.extent.bytes.val();
        self.owner.next = bit_cast::<60, 10>(self.vi.val())
            | (bit_cast::<60, 3>(self.behind.val()) << 10)
            | (bit_cast::<60, 3>(self.room.q.val()) << 13)
            | (bit_cast::<60, 16>(self.tag.q.val()) << 16)
            | (bit_cast::<60, 8>(self.domain.q.val()) << 32)
            | (bit_cast::<60, 16>(self.covered.q.val()) << 40)
            | (bit_cast::<60, 4>(self.row.val()) << 56);
    }
}
