//! Descriptor engine: reaches, fetches and resolves one descriptor for the engine that holds it
//! (contract 3, 2.3).
//!
//! ```text
//!                    +------+ <--> read
//! start, op, ... --> |      | <--> tpt
//!    done, ... <---- | Desc |
//!                    +------+ <--> segment -> segment_bus, segment_length
//! ```
//! `op` 0 fetches and resolves, 1 only reaches (bus address), 2 reads Next again. The arguments are
//! stable from `start` to `done` (pulses); results and segment list are stable until the next
//! `start`. Segments of length 0 are not in the list.
//!
//! ```text
//! Idle -> Reach -> Size -> Read -> Data -> Need -> Format -> Rules -> Segment | NextCheck | Read
//! Segment -> Beat0 -> Beat1 -> Beat2 -> Skip -> [Lookup ->] Segment ... -> NextCheck
//! NextCheck -> [NextLookup ->] Done -> Idle;   op 2: Idle -> Read -> Data -> NextCheck
//! ```

mod list;
mod pieces;
mod retire;
mod state;
mod verdict;
mod work;
pub use list::List;
pub use pieces::Pieces;
pub use retire::Retire;
pub use state::{DescState, Outcome};
pub use verdict::{Cause, Verdict};
pub use work::Work;

use crate::ifs::{ReadClient, TptClient};
use crate::leaf::{Number, SdpRam};
use nic_regs::desc;
use nic_regs::limits::DATA_SEGMENTS_MAX;
use rust_hdl::prelude::*;

const FIRST_SEGMENT_BEAT: u64 = desc::CONTROL_BYTES / 8;
const LARGEST: u64 = desc::CONTROL_BYTES + desc::SEGMENT_BYTES * (DATA_SEGMENTS_MAX as u64 + 1);

#[derive(LogicBlock, Default)]
pub struct Desc {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    pub op: Signal<In, Bits<2>>,
    pub tag: Signal<In, Bits<16>>,
    pub domain: Signal<In, Bits<8>>,
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    /// How many segments the token says; 0: not known.
    pub hint: Signal<In, Bits<5>>,
    /// The posted count covers the successor: Next may be used.
    pub covers_next: Signal<In, Bit>,
    pub done: Signal<Out, Bit>,
    /// See [`Outcome`].
    pub outcome: Signal<Out, Bits<3>>,
    /// The outcome is that nothing is known of the descriptor: not reached, or not read.
    pub unreached: Signal<Out, Bit>,
    /// Sum of the segments' lengths, saturated to 2^20 - 1.
    pub total: Signal<Out, Bits<20>>,
    /// Control bit IMMEDIATE.
    pub has_immediate: Signal<Out, Bit>,
    pub immediate: Signal<Out, Bits<32>>,
    pub bus: Signal<Out, Bits<64>>,
    pub next_valid: Signal<Out, Bit>,
    pub next_region: Signal<Out, Bits<16>>,
    pub next_offset: Signal<Out, Bits<26>>,
    /// Pulse: a descriptor was fetched and resolved.
    pub fetched: Signal<Out, Bit>,
    pub segment: Signal<In, Bits<4>>,
    pub segment_bus: Signal<Out, Bits<64>>,
    pub segment_length: Signal<Out, Bits<32>>,
    pub read: ReadClient,
    pub tpt: TptClient,
    state: DFF<DescState>,
    failed: DFF<Bits<3>>,
    bus_at: DFF<Bits<64>>,
    room: DFF<Bits<32>>,
    // The read in progress: from byte `have` of the descriptor, `want` bytes; `again`: only Next is
    // wanted.
    have: DFF<Bits<9>>,
    want: DFF<Bits<9>>,
    need: DFF<Bits<9>>,
    again: DFF<Bit>,
    beat: DFF<Bits<6>>,
    read_address: DFF<Bits<64>>,
    // The control segment.
    next_va: DFF<Bits<64>>,
    next_handle: DFF<Bits<32>>,
    seg_count: DFF<Bits<16>>,
    control: DFF<Bits<16>>,
    reserved: DFF<Bits<32>>,
    immediate_word: DFF<Bits<32>>,
    over_room: DFF<Bit>,
    bad_format: DFF<Bit>,
    seg_index: DFF<Bits<5>>,
    // Arguments of the look-up.
    index: DFF<Bits<16>>,
    generation: DFF<Bits<16>>,
    check_generation: DFF<Bit>,
    va_mode: DFF<Bit>,
    address: DFF<Bits<64>>,
    length: DFF<Bits<32>>,
    next_ok: DFF<Bit>,
    next_region_at: DFF<Bits<16>>,
    next_offset_at: DFF<Bits<26>>,
    fetched_out: DFF<Bit>,
    beats: SdpRam<64, 6>,
    list: List,
    hint_bytes: Signal<Local, Bits<9>>,
    want_wide: Signal<Local, Bits<32>>,
    need_wide: Signal<Local, Bits<32>>,
    misaligned: Signal<Local, Bit>,
    unread: Signal<Local, Bit>,
    small_count: Signal<Local, Bit>,
    control_bytes: Number<9, { desc::CONTROL_BYTES }>,
    control_bytes_32: Number<32, { desc::CONTROL_BYTES }>,
    next_bytes: Number<9, 16>,
    line: Number<9, 64>,
    largest: Number<9, LARGEST>,
    hint_largest: Number<5, { DATA_SEGMENTS_MAX as u64 + 1 }>,
    segments_largest: Number<16, { DATA_SEGMENTS_MAX as u64 }>,
    count_largest: Number<16, { DATA_SEGMENTS_MAX as u64 + 1 }>,
    first_segment: Number<6, FIRST_SEGMENT_BEAT>,
    no_region: Number<16, 0xffff>,
    unread_region: Number<16, 0xfffe>,
    unread_offset: Number<26, 0x3ff_ffff>,
    op_reach: Number<2, 1>,
    op_next: Number<2, 2>,
    failed_descriptor: Number<3, { Outcome::Descriptor as u64 }>,
    failed_host_read: Number<3, { Outcome::HostRead as u64 }>,
    failed_format: Number<3, { Outcome::Format as u64 }>,
    failed_protection: Number<3, { Outcome::Protection as u64 }>,
}

impl Logic for Desc {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, failed, bus_at, room, have, want, need, again, beat);
        dff_setup!(self, clock, read_address, next_va, next_handle, seg_count, control, reserved);
        dff_setup!(self, clock, immediate_word, over_room, bad_format, seg_index);
        dff_setup!(self, clock, index, generation, check_generation, va_mode, address, length);
        dff_setup!(self, clock, next_ok, next_region_at, next_offset_at, fetched_out);
        clock!(self, clock, beats, list);

        // Results.
        self.done.next = self.state.q.val() == DescState::Done;
        self.outcome.next = self.failed.q.val();
        self.unreached.next = (self.failed.q.val() == self.failed_descriptor.val())
            | (self.failed.q.val() == self.failed_host_read.val());
        self.total.next = self.list.total.val();
        self.has_immediate.next = self.control.q.val().get_bit(2);
        self.immediate.next = self.immediate_word.q.val();
        self.bus.next = self.bus_at.q.val();
        self.next_valid.next = self.next_ok.q.val();
        self.next_region.next = self.next_region_at.q.val();
        self.next_offset.next = self.next_offset_at.q.val();
        self.fetched.next = self.fetched_out.q.val();
        self.fetched_out.d.next = false;
        self.list.segment.next = self.segment.val();
        self.segment_bus.next = self.list.segment_bus.val();
        self.segment_length.next = self.list.segment_length.val();
        self.list.clear.next = self.state.q.val() == DescState::Size;
        self.list.add.next = (self.state.q.val() == DescState::Lookup) & self.tpt.done.val();
        self.list.bus.next = self.tpt.bus.val();
        self.list.length.next = self.length.q.val();

        // Look-ups, reads and memories: arguments are registers.
        self.tpt.valid.next = (self.state.q.val() == DescState::Reach)
            | (self.state.q.val() == DescState::Lookup)
            | (self.state.q.val() == DescState::NextLookup);
        self.tpt.index.next = self.index.q.val();
        self.tpt.generation.next = self.generation.q.val();
        self.tpt.check_generation.next = self.check_generation.q.val();
        self.tpt.va_mode.next = self.va_mode.q.val();
        self.tpt.address.next = self.address.q.val();
        self.tpt.length.next = self.length.q.val();
        self.tpt.tag.next = self.tag.val();
        self.tpt.domain.next = self.domain.val();
        self.read.req_valid.next = self.state.q.val() == DescState::Read;
        self.read.req_address.next = self.read_address.q.val();
        self.read.req_length.next = bit_cast::<13, 9>(self.want.q.val());
        self.beats.read_address.next = self.beat.q.val();
        self.beats.write_address.next = self.beat.q.val();
        self.beats.write_data.next = self.read.rsp_data.val();
        self.beats.write_enable.next =
            (self.state.q.val() == DescState::Data) & self.read.rsp_valid.val();

        self.hint_bytes.next = self.control_bytes.val() + (bit_cast::<9, 5>(self.hint.val()) << 4);
        self.want_wide.next = bit_cast::<32, 9>(self.want.q.val());
        self.need_wide.next = bit_cast::<32, 9>(self.need.q.val());
        self.misaligned.next = self.next_va.q.val().get_bits::<6>(0) != 0;
        self.unread.next = (self.index.q.val() == self.unread_region.val())
            & (self.address.q.val().get_bits::<26>(6) == self.unread_offset.val());
        self.small_count.next = self.seg_count.q.val() <= self.count_largest.val();

        match self.state.q.val() {
            DescState::Idle => {
                self.beat.d.next = 0.into();
                self.again.d.next = false;
                self.check_generation.d.next = false;
                self.va_mode.d.next = false;
                self.index.d.next = self.region.val();
                self.address.d.next = bit_cast::<64, 26>(self.offset.val()) << 6;
                self.length.d.next = self.control_bytes_32.val();
                if self.start.val() {
                    self.failed.d.next = 0.into();
                    self.next_ok.d.next = false;
                    if self.op.val() == self.op_next.val() {
                        self.again.d.next = true;
                        self.have.d.next = 0.into();
                        self.want.d.next = self.next_bytes.val();
                        self.read_address.d.next = self.bus_at.q.val();
                        self.state.d.next = DescState::Read;
                    } else {
                        self.seg_index.d.next = 0.into();
                        self.state.d.next = DescState::Reach;
                    }
                }
            }
            DescState::Reach => {
                self.bus_at.d.next = self.tpt.bus.val();
                self.read_address.d.next = self.tpt.bus.val();
                self.room.d.next = self.tpt.room.val();
                self.have.d.next = 0.into();
                self.want.d.next = self.hint_bytes.val();
                if self.hint.val() == 0 {
                    // Not known (the token came from Next), or none: one line of 64 bytes holds
                    // two.
                    self.want.d.next = self.line.val();
                } else if self.hint.val() > self.hint_largest.val() {
                    self.want.d.next = self.largest.val();
                }
                if self.tpt.done.val() {
                    if !self.tpt.ok.val() {
                        self.failed.d.next = self.failed_descriptor.val();
                        if self.unread.val() {
                            self.failed.d.next = self.failed_host_read.val();
                        }
                        self.state.d.next = DescState::Done;
                    } else if self.op.val() == self.op_reach.val() {
                        self.state.d.next = DescState::Done;
                    } else {
                        self.state.d.next = DescState::Size;
                    }
                }
            }
            DescState::Size => {
                if self.room.q.val() < self.want_wide.val() {
                    self.want.d.next = self.room.q.val().get_bits::<9>(0);
                }
                self.state.d.next = DescState::Read;
            }
            DescState::Read => {
                if self.read.req_ready.val() {
                    self.state.d.next = DescState::Data;
                }
            }
            DescState::Data => {
                if self.read.rsp_valid.val() {
                    self.beat.d.next = self.beat.q.val() + 1;
                    if self.beat.q.val() == 0 {
                        self.next_va.d.next = self.read.rsp_data.val();
                    } else if self.beat.q.val() == 1 {
                        self.next_handle.d.next = self.read.rsp_data.val().get_bits::<32>(0);
                        self.seg_count.d.next = self.read.rsp_data.val().get_bits::<16>(32);
                        self.control.d.next = self.read.rsp_data.val().get_bits::<16>(48);
                    } else if self.beat.q.val() == 2 {
                        self.reserved.d.next = self.read.rsp_data.val().get_bits::<32>(0);
                        self.immediate_word.d.next = self.read.rsp_data.val().get_bits::<32>(32);
                    }
                    if self.read.rsp_last.val() {
                        self.have.d.next = self.have.q.val() + self.want.q.val();
                        if self.read.rsp_error.val() {
                            self.state.d.next = DescState::Done;
                            if self.again.q.val() {
                                // The next fetch will say that the host read failed.
                                self.next_ok.d.next = true;
                                self.next_region_at.d.next = self.unread_region.val();
                                self.next_offset_at.d.next = self.unread_offset.val();
                            } else {
                                self.failed.d.next = self.failed_host_read.val();
                            }
                        } else if self.again.q.val() {
                            self.state.d.next = DescState::NextCheck;
                        } else {
                            self.state.d.next = DescState::Need;
                        }
                    }
                }
            }
            DescState::Need => {
                self.need.d.next = self.control_bytes.val()
                    + (bit_cast::<9, 5>(self.seg_count.q.val().get_bits::<5>(0)) << 4);
                self.state.d.next = DescState::Format;
            }
            DescState::Format => {
                self.over_room.d.next =
                    self.small_count.val() & (self.need_wide.val() > self.room.q.val());
                self.bad_format.d.next = (self.control.q.val().get_bits::<12>(4) != 0)
                    | (self.control.q.val().get_bits::<2>(0) != 0)
                    | (self.reserved.q.val() != 0)
                    | (self.seg_count.q.val() > self.segments_largest.val());
                self.state.d.next = DescState::Rules;
            }
            DescState::Rules => {
                self.read_address.d.next =
                    self.bus_at.q.val() + bit_cast::<64, 9>(self.have.q.val());
                self.beat.d.next = self.have.q.val().get_bits::<6>(3);
                self.check_generation.d.next = true;
                self.va_mode.d.next = true;
                if self.over_room.q.val() {
                    self.failed.d.next = self.failed_descriptor.val();
                    self.state.d.next = DescState::Done;
                } else if self.bad_format.q.val() {
                    self.failed.d.next = self.failed_format.val();
                    self.state.d.next = DescState::NextCheck;
                } else if self.need.q.val() > self.have.q.val() {
                    self.want.d.next = self.need.q.val() - self.have.q.val();
                    self.state.d.next = DescState::Read;
                } else {
                    self.beat.d.next = self.first_segment.val();
                    self.state.d.next = DescState::Segment;
                }
            }
            DescState::Segment => {
                if self.seg_index.q.val() == self.seg_count.q.val().get_bits::<5>(0) {
                    self.fetched_out.d.next = true;
                    self.state.d.next = DescState::NextCheck;
                } else {
                    self.state.d.next = DescState::Beat0;
                }
            }
            DescState::Beat0 => {
                self.beat.d.next = self.beat.q.val() + 1;
                self.state.d.next = DescState::Beat1;
            }
            DescState::Beat1 => {
                self.address.d.next = self.beats.read_data.val();
                self.beat.d.next = self.beat.q.val() + 1;
                self.state.d.next = DescState::Beat2;
            }
            DescState::Beat2 => {
                self.index.d.next = self.beats.read_data.val().get_bits::<16>(0);
                self.generation.d.next = self.beats.read_data.val().get_bits::<16>(16);
                self.length.d.next = self.beats.read_data.val().get_bits::<32>(32);
                self.seg_index.d.next = self.seg_index.q.val() + 1;
                self.state.d.next = DescState::Skip;
            }
            DescState::Skip => {
                if self.length.q.val() == 0 {
                    self.state.d.next = DescState::Segment;
                } else {
                    self.state.d.next = DescState::Lookup;
                }
            }
            DescState::Lookup => {
                if self.tpt.done.val() {
                    self.state.d.next = DescState::Segment;
                    if !self.tpt.ok.val() {
                        self.failed.d.next = self.failed_protection.val();
                        self.state.d.next = DescState::NextCheck;
                    }
                }
            }
            DescState::NextCheck => {
                self.check_generation.d.next = true;
                self.va_mode.d.next = true;
                self.address.d.next = self.next_va.q.val();
                self.index.d.next = self.next_handle.q.val().get_bits::<16>(0);
                self.generation.d.next = self.next_handle.q.val().get_bits::<16>(16);
                self.length.d.next = 1.into();
                // A Next that fails names no region: the next fetch cannot reach it.
                self.next_region_at.d.next = self.no_region.val();
                self.next_offset_at.d.next = 0.into();
                self.next_ok.d.next = self.covers_next.val() | self.again.q.val();
                self.state.d.next = DescState::NextLookup;
                if self.misaligned.val() | (!(self.covers_next.val() | self.again.q.val())) {
                    self.state.d.next = DescState::Done;
                }
            }
            DescState::NextLookup => {
                if self.tpt.done.val() {
                    if self.tpt.ok.val() & (!self.tpt.offset_64.val().get_bit(26)) {
                        self.next_region_at.d.next = self.index.q.val();
                        self.next_offset_at.d.next = self.tpt.offset_64.val().get_bits::<26>(0);
                    }
                    self.state.d.next = DescState::Done;
                }
            }
            _ => {
                self.state.d.next = DescState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = DescState::Idle;
            self.fetched_out.d.next = false;
        }
    }
}
