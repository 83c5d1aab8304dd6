//! The receive descriptors cached: up to eight of each of 16 VIs (one in use and seven ahead),
//! resolved, in queue order.
//!
//! ```text
//!       frame's VI --> +-----------+ --> `ready`, the oldest descriptor, its segments
//! its pop (`take`) --> | DescCache |
//!  prefetcher's VI --> |           | --> whose row it is, how many are there
//!       entries -----> +-----------+
//! ```
//! A row belongs to one VI at a time; a table tells where a VI's row was last. `put` (written by
//! the prefetcher alone) and `taken` (by the frame alone) count modulo 8; their difference is what
//! is there. The frame's outputs follow its VI number five cycles later, `row` two.

use crate::leaf::{LutRam, SdpRam, SdpRam2};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct DescCache {
    pub clock: Signal<In, Clock>,
    // The frame's side.
    pub vi: Signal<In, Bits<10>>,
    pub row: Signal<Out, Bits<4>>,
    /// A descriptor of this VI is there; the outputs below are its oldest one.
    pub ready: Signal<Out, Bit>,
    pub region: Signal<Out, Bits<16>>,
    pub offset: Signal<Out, Bits<26>>,
    pub total: Signal<Out, Bits<20>>,
    /// What is behind that is not allowed, or was not.
    pub short: Signal<Out, Bit>,
    pub bus: Signal<Out, Bits<64>>,
    /// Its successor (valid 42, offset 41:16, region 15:0).
    pub successor: Signal<Out, Bits<43>>,
    pub segment: Signal<In, Bits<4>>,
    pub segment_bus: Signal<Out, Bits<64>>,
    pub segment_length: Signal<Out, Bits<32>>,
    /// Pulse: the oldest one left the queue; while `hold`, the outputs are nevertheless its.
    pub take: Signal<In, Bit>,
    pub hold: Signal<In, Bit>,
    // The prefetcher's side: where the row of a VI was last (in the next cycle); it is there now.
    pub find_vi: Signal<In, Bits<10>>,
    pub find_row: Signal<Out, Bits<4>>,
    pub where_write: Signal<In, Bit>,
    /// A row, seen from a VI.
    pub fetch_vi: Signal<In, Bits<10>>,
    pub fetch_row: Signal<In, Bits<4>>,
    /// It belongs to a VI, to this one; where the next entry goes, and where the oldest one is.
    pub owned: Signal<Out, Bit>,
    pub ours: Signal<Out, Bit>,
    pub put: Signal<Out, Bits<3>>,
    pub taken: Signal<Out, Bits<3>>,
    /// Write the row: valid 13, VI 12:3, put 2:0.
    pub row_write: Signal<In, Bit>,
    pub row_address: Signal<In, Bits<4>>,
    pub row_data: Signal<In, Bits<14>>,
    /// Write an entry (row 6:3, place 2:0): its head, its successor, a segment.
    pub entry: Signal<In, Bits<7>>,
    pub head_write: Signal<In, Bit>,
    pub head_bus: Signal<In, Bits<64>>,
    /// Short 62, total 61:42, offset 41:16, region 15:0.
    pub head_data: Signal<In, Bits<63>>,
    pub successor_write: Signal<In, Bit>,
    pub successor_data: Signal<In, Bits<43>>,
    pub segment_write: Signal<In, Bit>,
    pub segment_number: Signal<In, Bits<4>>,
    pub segment_write_bus: Signal<In, Bits<64>>,
    pub segment_write_length: Signal<In, Bits<32>>,
    rows: LutRam<14, 4>,
    places: SdpRam2<4, 10>,
    rows_fetch: LutRam<14, 4>,
    takes: LutRam<3, 4>,
    takes_fetch: LutRam<3, 4>,
    buses: SdpRam<64, 7>,
    heads: SdpRam<63, 7>,
    successors: SdpRam<43, 7>,
    segment_buses: SdpRam<64, 11>,
    segment_lengths: SdpRam<32, 11>,
    row_at: DFF<Bits<4>>,
    ready_at: DFF<Bit>,
    // With what the oldest descriptor's head is.
    ready_out: DFF<Bit>,
    head: DFF<Bits<63>>,
    segment_bus_at: DFF<Bits<64>>,
    segment_length_at: DFF<Bits<32>>,
    place: DFF<Bits<3>>,
    /// The oldest one's successor was written when it was read: what came is anything.
    renewing: DFF<Bit>,
    frame_row: Signal<Local, Bits<4>>,
    chosen: Signal<Local, Bits<3>>,
    oldest: Signal<Local, Bits<7>>,
    segment_at: Signal<Local, Bits<11>>,
    write_at: Signal<Local, Bits<11>>,
    took: Signal<Local, Bits<3>>,
}

impl Logic for DescCache {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, row_at, ready_at, ready_out, head, place);
        dff_setup!(self, clock, segment_bus_at, segment_length_at, renewing);
        clock!(self, clock, rows, rows_fetch, takes, takes_fetch, buses, heads, successors);
        clock!(self, clock, segment_buses, segment_lengths, places);

        // The frame's side.
        self.places.read_address_a.next = self.vi.val();
        self.places.read_address_b.next = self.find_vi.val();
        self.places.write_address.next = self.fetch_vi.val();
        self.places.write_data.next = self.fetch_row.val();
        self.places.write_enable.next = self.where_write.val();
        self.row_at.d.next = self.places.read_data_a.val();
        self.frame_row.next = self.row_at.q.val();
        self.find_row.next = self.places.read_data_b.val();
        self.row.next = self.frame_row.val();
        self.rows.read_address.next = self.frame_row.val();
        self.takes.read_address.next = self.frame_row.val();
        self.ready_at.d.next = self.rows.read_data.val().get_bit(13)
            & (self.rows.read_data.val().get_bits::<10>(3) == self.vi.val())
            & (self.rows.read_data.val().get_bits::<3>(0) != self.takes.read_data.val());
        self.ready_out.d.next = self.ready_at.q.val();
        self.ready.next = self.ready_out.q.val();
        self.chosen.next = self.takes.read_data.val();
        if self.hold.val() {
            self.chosen.next = self.place.q.val();
        }
        self.place.d.next = self.chosen.val();
        self.oldest.next =
            (bit_cast::<7, 4>(self.frame_row.val()) << 3) | bit_cast::<7, 3>(self.chosen.val());
        self.buses.read_address.next = self.oldest.val();
        self.heads.read_address.next = self.oldest.val();
        self.successors.read_address.next = self.oldest.val();
        self.segment_at.next =
            (bit_cast::<11, 7>(self.oldest.val()) << 4) | bit_cast::<11, 4>(self.segment.val());
        self.segment_buses.read_address.next = self.segment_at.val();
        self.segment_lengths.read_address.next = self.segment_at.val();
        self.bus.next = self.buses.read_data.val();
        self.head.d.next = self.heads.read_data.val();
        self.region.next = self.head.q.val().get_bits::<16>(0);
        self.offset.next = self.head.q.val().get_bits::<26>(16);
        self.total.next = self.head.q.val().get_bits::<20>(42);
        self.short.next = self.head.q.val().get_bit(62);
        self.renewing.d.next = self.successor_write.val() & (self.entry.val() == self.oldest.val());
        self.successor.next = self.successors.read_data.val();
        if self.renewing.q.val() {
            // Not known: a POP that needs it has it read again.
            self.successor.next = 0.into();
        }
        self.segment_bus_at.d.next = self.segment_buses.read_data.val();
        self.segment_length_at.d.next = self.segment_lengths.read_data.val();
        self.segment_bus.next = self.segment_bus_at.q.val();
        self.segment_length.next = self.segment_length_at.q.val();
        self.took.next = self.takes.read_data.val() + 1;
        self.takes.write_address.next = self.frame_row.val();
        self.takes.write_data.next = self.took.val();
        self.takes.write_enable.next = self.take.val();
        self.takes_fetch.write_address.next = self.frame_row.val();
        self.takes_fetch.write_data.next = self.took.val();
        self.takes_fetch.write_enable.next = self.take.val();

        // The prefetcher's side.
        self.rows_fetch.read_address.next = self.fetch_row.val();
        self.takes_fetch.read_address.next = self.fetch_row.val();
        self.owned.next = self.rows_fetch.read_data.val().get_bit(13);
        self.ours.next = self.rows_fetch.read_data.val().get_bit(13)
            & (self.rows_fetch.read_data.val().get_bits::<10>(3) == self.fetch_vi.val());
        self.put.next = self.rows_fetch.read_data.val().get_bits::<3>(0);
        self.taken.next = self.takes_fetch.read_data.val();
        self.rows.write_address.next = self.row_address.val();
        self.rows.write_data.next = self.row_data.val();
        self.rows.write_enable.next = self.row_write.val();
        self.rows_fetch.write_address.next = self.row_address.val();
        self.rows_fetch.write_data.next = self.row_data.val();
        self.rows_fetch.write_enable.next = self.row_write.val();
        self.buses.write_address.next = self.entry.val();
        self.buses.write_data.next = self.head_bus.val();
        self.buses.write_enable.next = self.head_write.val();
        self.heads.write_address.next = self.entry.val();
        self.heads.write_data.next = self.head_data.val();
        self.heads.write_enable.next = self.head_write.val();
        self.successors.write_address.next = self.entry.val();
        self.successors.write_data.next = self.successor_data.val();
        self.successors.write_enable.next = self.successor_write.val();
        self.write_at.next = (bit_cast::<11, 7>(self.entry.val()) << 4)
            | bit_cast::<11, 4>(self.segment_number.val());
        self.segment_buses.write_address.next = self.write_at.val();
        self.segment_buses.write_data.next = self.segment_write_bus.val();
        self.segment_buses.write_enable.next = self.segment_write.val();
        self.segment_lengths.write_address.next = self.write_at.val();
        self.segment_lengths.write_data.next = self.segment_write_length.val();
        self.segment_lengths.write_enable.next = self.segment_write.val();
    }
}
