//! Reaches and reads one descriptor: its token's look-up, one read by the token's hint, a second
//! one if SegCount needs it. Beats are parsed as they arrive.
//!
//! ```text
//! Idle -> Reach -> Read -> Data -> [Judge ->] Idle    (`over`)
//!                   ^----------------'                (more bytes)
//! op 1: Idle -> Reach -> Idle         op 2: Idle -> Read -> Data -> Idle
//! ```
//! What the format rules look at is registered long before the last beat, but for short descriptors
//! and the address segment of an RDMA, which Judge waits for.
//! The words of the segments go to two small memories, `segment` -> `segment_address`,
//! `segment_word`. The first segment of an RDMA is its address segment, which is kept here.

use super::{Extent, Outcome, UNREAD_OFFSET, UNREAD_REGION};
use crate::ifs::ReadClient;
use crate::leaf::{LutRam, Number};
use nic_regs::desc;
use nic_regs::limits::DATA_SEGMENTS_MAX;
use rust_hdl::prelude::*;

const FIRST_SEGMENT_BEAT: u64 = desc::CONTROL_BYTES / 8;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum ReaderState {
    /// Waits for `start`.
    Idle,
    /// Asks the region table for the bus address.
    Reach,
    /// Asks for bytes of the descriptor.
    Read,
    /// Takes them.
    Data,
    /// Waits for the format checks.
    Judge,
}

#[derive(LogicBlock, Default)]
pub struct Reader {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse, in idle only.
    pub start: Signal<In, Bit>,
    pub op: Signal<In, Bits<2>>,
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    pub hint: Signal<In, Bits<5>>,
    /// The VI has no RDMA reads.
    pub unreliable: Signal<In, Bit>,
    pub idle: Signal<Out, Bit>,
    /// The descriptor is read, or will not be; `failed` says why. Stays until the next start.
    pub over: Signal<Out, Bit>,
    pub failed: Signal<Out, Bits<3>>,
    /// Op 2: Next could not be read.
    pub unread: Signal<Out, Bit>,
    pub bus: Signal<Out, Bits<64>>,
    pub next_va: Signal<Out, Bits<64>>,
    pub next_handle: Signal<Out, Bits<32>>,
    pub seg_count: Signal<Out, Bits<5>>,
    /// As in `status::OP_*`, 18:17: 0 a send, 1 an RDMA write, 2 an RDMA read. Stays until the next
    /// start.
    pub operation: Signal<Out, Bits<2>>,
    /// The first segment names the peer's memory.
    pub is_rdma: Signal<Out, Bit>,
    pub remote_address: Signal<Out, Bits<64>>,
    pub remote_handle: Signal<Out, Bits<32>>,
    pub has_immediate: Signal<Out, Bit>,
    pub immediate: Signal<Out, Bits<32>>,
    /// The pair of beats that the segment is in.
    pub segment: Signal<In, Bits<5>>,
    pub segment_address: Signal<Out, Bits<64>>,
    /// Handle 31:0, length 63:32.
    pub segment_word: Signal<Out, Bits<64>>,
    /// The length is not 0.
    pub segment_some: Signal<Out, Bit>,
    /// Segment `segment` is there.
    pub segment_valid: Signal<Out, Bit>,
    // Look-up of the token.
    pub reaching: Signal<Out, Bit>,
    pub index: Signal<Out, Bits<16>>,
    pub address: Signal<Out, Bits<64>>,
    pub length: Signal<Out, Bits<32>>,
    pub tpt_done: Signal<In, Bit>,
    pub tpt_ok: Signal<In, Bit>,
    pub tpt_bus: Signal<In, Bits<64>>,
    pub tpt_room: Signal<In, Bits<32>>,
    pub read: ReadClient,
    /// It is for the descriptor, so far as the token says; bytes from there to the region's end.
    pub opens: Signal<Out, Bit>,
    pub space: Signal<Out, Bits<32>>,
    state: DFF<ReaderState>,
    over_at: DFF<Bit>,
    failed_at: DFF<Bits<3>>,
    index_at: DFF<Bits<16>>,
    offset_at: DFF<Bits<26>>,
    bus_at: DFF<Bits<64>>,
    room: DFF<Bits<32>>,
    // The read in progress: `want` bytes, up to byte `upto` of the descriptor; `again`: only Next
    // is wanted.
    want: DFF<Bits<9>>,
    upto: DFF<Bits<9>>,
    again: DFF<Bit>,
    beat: DFF<Bits<6>>,
    read_address: DFF<Bits<64>>,
    // The control segment, and what is wrong with it.
    next_va_at: DFF<Bits<64>>,
    next_handle_at: DFF<Bits<32>>,
    count: DFF<Bits<16>>,
    control: DFF<Bits<16>>,
    reserved: DFF<Bits<32>>,
    immediate_at: DFF<Bits<32>>,
    remote_address_at: DFF<Bits<64>>,
    remote_handle_at: DFF<Bits<32>>,
    bad_remote: DFF<Bit>,
    over_room: DFF<Bit>,
    bad_format: DFF<Bit>,
    unread_at: DFF<Bit>,
    address_ram: LutRam<64, 5>,
    // Bit 64: `segment_some`.
    word_ram: LutRam<65, 5>,
    extent: Extent,
    /// What the hint says, from the cycle after `start` on.
    hinted: DFF<Bits<9>>,
    cut: Signal<Local, Bit>,
    need: Signal<Local, Bits<9>>,
    need_wide: Signal<Local, Bits<32>>,
    more: Signal<Local, Bits<9>>,
    unread_token: Signal<Local, Bit>,
    small_count: Signal<Local, Bit>,
    is_write: Signal<Local, Bit>,
    is_read: Signal<Local, Bit>,
    remote: Signal<Local, Bit>,
    bad_op: Signal<Local, Bit>,
    bad_count: Signal<Local, Bit>,
    segment_beats: Signal<Local, Bit>,
    arrives: Signal<Local, Bit>,
    early: Signal<Local, Bit>,
    judges: Signal<Local, Bit>,
    here: Signal<Local, Bits<5>>,
    some: Signal<Local, Bit>,
    control_bytes: Number<9, { desc::CONTROL_BYTES }>,
    control_bytes_32: Number<32, { desc::CONTROL_BYTES }>,
    next_bytes: Number<9, 16>,
    segments_largest: Number<16, { DATA_SEGMENTS_MAX as u64 }>,
    count_largest: Number<16, { DATA_SEGMENTS_MAX as u64 + 1 }>,
    first_beat: Number<6, FIRST_SEGMENT_BEAT>,
    second_beat: Number<6, { FIRST_SEGMENT_BEAT + 1 }>,
    has_reads: Number<1, 1>,
    unread_region: Number<16, UNREAD_REGION>,
    unread_offset: Number<26, UNREAD_OFFSET>,
    op_reach: Number<2, 1>,
    op_next: Number<2, 2>,
    failed_descriptor: Number<3, { Outcome::Descriptor as u64 }>,
    failed_host_read: Number<3, { Outcome::HostRead as u64 }>,
    failed_format: Number<3, { Outcome::Format as u64 }>,
}

impl Logic for Reader {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, over_at, failed_at, index_at, offset_at, bus_at, room, want);
        dff_setup!(self, clock, upto, again, beat, read_address, next_va_at, next_handle_at, count);
        dff_setup!(self, clock, control, reserved, immediate_at, over_room, bad_format, unread_at);
        dff_setup!(self, clock, remote_address_at, remote_handle_at, bad_remote, hinted);
        clock!(self, clock, address_ram, word_ram);
        self.idle.next = self.state.q.val() == ReaderState::Idle;
        self.over.next = self.over_at.q.val();
        self.failed.next = self.failed_at.q.val();
        self.unread.next = self.unread_at.q.val();
        self.bus.next = self.bus_at.q.val();
        self.next_va.next = self.next_va_at.q.val();
        self.next_handle.next = self.next_handle_at.q.val();
        self.seg_count.next = self.count.q.val().get_bits::<5>(0);
        self.is_write.next = self.control.q.val().get_bit(0) & (!self.control.q.val().get_bit(1));
        self.is_read.next = (!self.control.q.val().get_bit(0))
            & self.control.q.val().get_bit(1)
            & self.has_reads.val().get_bit(0);
        self.operation.next = bit_cast::<2, 1>(self.is_write.val().into())
            | (bit_cast::<2, 1>(self.is_read.val().into()) << 1);
        self.remote.next = self.is_write.val() | self.is_read.val();
        self.is_rdma.next = self.remote.val();
        self.remote_address.next = self.remote_address_at.q.val();
        self.remote_handle.next = self.remote_handle_at.q.val();
        self.has_immediate.next = self.control.q.val().get_bit(2);
        self.immediate.next = self.immediate_at.q.val();
        self.reaching.next = self.state.q.val() == ReaderState::Reach;
        self.index.next = self.index_at.q.val();
        self.address.next = bit_cast::<64, 26>(self.offset_at.q.val()) << 6;
        self.length.next = self.control_bytes_32.val();
        self.read.req_valid.next = self.state.q.val() == ReaderState::Read;
        self.read.req_address.next = self.read_address.q.val();
        self.read.req_length.next = bit_cast::<13, 9>(self.want.q.val());
        self.opens.next = (!self.beat.q.val().any()) & (!self.again.q.val());
        self.space.next = self.room.q.val();

        // Segments: beat pairs from the fifth beat on.
        self.here.next = self.beat.q.val().get_bits::<5>(1);
        self.segment_beats.next =
            (self.state.q.val() == ReaderState::Data) & self.read.rsp_valid.val();
        self.arrives.next = self.segment_beats.val()
            & self.beat.q.val().get_bit(0)
            & (self.here.val() == self.segment.val());
        self.segment_valid.next = (self.segment.val() < self.here.val()) | self.arrives.val();
        self.address_ram.read_address.next = self.segment.val();
        self.segment_address.next = self.address_ram.read_data.val();
        self.address_ram.write_address.next = self.here.val();
        self.address_ram.write_data.next = self.read.rsp_data.val();
        self.address_ram.write_enable.next =
            self.segment_beats.val() & (!self.beat.q.val().get_bit(0));
        self.word_ram.read_address.next = self.segment.val();
        self.some.next = self.read.rsp_data.val().get_bits::<32>(32).any();
        self.segment_word.next = self.word_ram.read_data.val().get_bits::<64>(0);
        self.segment_some.next = self.word_ram.read_data.val().get_bit(64);
        if self.arrives.val() {
            self.segment_some.next = self.some.val();
            self.segment_word.next = self.read.rsp_data.val();
        }
        self.word_ram.write_address.next = self.here.val();
        self.word_ram.write_data.next = bit_cast::<65, 64>(self.read.rsp_data.val())
            | (bit_cast::<65, 1>(self.some.val().into()) << 64);
        self.word_ram.write_enable.next = self.segment_beats.val() & self.beat.q.val().get_bit(0);

        // How much to read: by the hint, cut to the region.
        self.extent.hint.next = self.hint.val();
        self.extent.covered.next = 0.into();
        self.extent.follow.next = false;
        self.hinted.d.next = self.extent.bytes.val();
        self.cut.next = (!self.tpt_room.val().get_bits::<23>(9).any())
            & (self.tpt_room.val().get_bits::<9>(0) < self.hinted.q.val());

        // The format rules, registered before the last beat is judged.
        self.need.next =
            self.control_bytes.val() + (bit_cast::<9, 5>(self.count.q.val().get_bits::<5>(0)) << 4);
        self.need_wide.next = bit_cast::<32, 9>(self.need.val());
        self.more.next = self.need.val() - self.upto.q.val();
        self.small_count.next = self.count_largest.val() >= self.count.q.val();
        self.over_room.d.next = self.small_count.val() & (self.room.q.val() < self.need_wide.val());
        // A read has no immediate data.
        self.bad_op.next = self.control.q.val().get_bit(1)
            & ((!self.is_read.val()) | self.unreliable.val() | self.control.q.val().get_bit(2));
        self.bad_count.next = self.segments_largest.val() < self.count.q.val();
        if self.remote.val() {
            self.bad_count.next = (!self.small_count.val()) | (!self.count.q.val().any());
        }
        self.bad_format.d.next = (self.control.q.val().get_bits::<12>(4) != 0)
            | self.bad_op.val()
            | (self.reserved.q.val() != 0)
            | self.bad_count.val();
        self.unread_token.next = (self.index_at.q.val() == self.unread_region.val())
            & (self.offset_at.q.val() == self.unread_offset.val());
        self.early.next = self.segment_beats.val()
            & self.read.rsp_last.val()
            & (!self.read.rsp_error.val())
            & (!self.again.q.val())
            & (self.beat.q.val() >= self.first_beat.val())
            & (!(self.remote.val() & (self.beat.q.val() == self.second_beat.val())));
        self.judges.next = self.early.val() | (self.state.q.val() == ReaderState::Judge);

        match self.state.q.val() {
            ReaderState::Idle => {
                self.index_at.d.next = self.region.val();
                self.offset_at.d.next = self.offset.val();
                if self.start.val() {
                    self.beat.d.next = 0.into();
                    self.over_at.d.next = false;
                    self.failed_at.d.next = 0.into();
                    self.again.d.next = self.op.val() == self.op_next.val();
                    self.bad_remote.d.next = false;
                    self.unread_at.d.next = false;
                    self.state.d.next = ReaderState::Reach;
                    if self.op.val() == self.op_next.val() {
                        self.want.d.next = self.next_bytes.val();
                        self.read_address.d.next = self.bus_at.q.val();
                        self.state.d.next = ReaderState::Read;
                    }
                }
            }
            ReaderState::Reach => {
                self.bus_at.d.next = self.tpt_bus.val();
                self.read_address.d.next = self.tpt_bus.val();
                self.room.d.next = self.tpt_room.val();
                self.want.d.next = self.hinted.q.val();
                self.upto.d.next = self.hinted.q.val();
                if self.cut.val() {
                    self.want.d.next = self.tpt_room.val().get_bits::<9>(0);
                    self.upto.d.next = self.tpt_room.val().get_bits::<9>(0);
                }
                if self.tpt_done.val() {
                    self.state.d.next = ReaderState::Read;
                    if !self.tpt_ok.val() {
                        self.failed_at.d.next = self.failed_descriptor.val();
                        if self.unread_token.val() {
                            self.failed_at.d.next = self.failed_host_read.val();
                        }
                    }
                    if (!self.tpt_ok.val()) | (self.op.val() == self.op_reach.val()) {
                        self.over_at.d.next = true;
                        self.state.d.next = ReaderState::Idle;
                    }
                }
            }
            ReaderState::Read => {
                if self.read.req_ready.val() {
                    self.state.d.next = ReaderState::Data;
                }
            }
            ReaderState::Data => {
                if self.read.rsp_valid.val() {
                    self.beat.d.next = self.beat.q.val() + 1;
                    if self.beat.q.val() == 0 {
                        self.next_va_at.d.next = self.read.rsp_data.val();
                    } else if self.beat.q.val() == 1 {
                        self.next_handle_at.d.next = self.read.rsp_data.val().get_bits::<32>(0);
                        if !self.again.q.val() {
                            self.count.d.next = self.read.rsp_data.val().get_bits::<16>(32);
                            self.control.d.next = self.read.rsp_data.val().get_bits::<16>(48);
                        }
                    } else if self.beat.q.val() == 2 {
                        self.reserved.d.next = self.read.rsp_data.val().get_bits::<32>(0);
                        self.immediate_at.d.next = self.read.rsp_data.val().get_bits::<32>(32);
                    } else if self.beat.q.val() == 4 {
                        self.remote_address_at.d.next = self.read.rsp_data.val();
                    } else if self.beat.q.val() == 5 {
                        self.remote_handle_at.d.next = self.read.rsp_data.val().get_bits::<32>(0);
                        self.bad_remote.d.next =
                            self.remote.val() & self.read.rsp_data.val().get_bits::<32>(32).any();
                    }
                    if self.read.rsp_last.val() {
                        self.state.d.next = ReaderState::Judge;
                        if self.read.rsp_error.val() | self.again.q.val() {
                            // A Next that is not read: the next fetch will say so.
                            self.unread_at.d.next = self.read.rsp_error.val();
                            if !self.again.q.val() {
                                self.failed_at.d.next = self.failed_host_read.val();
                            }
                            self.over_at.d.next = true;
                            self.state.d.next = ReaderState::Idle;
                        }
                    }
                }
            }
            ReaderState::Judge => {}
            _ => {
                self.state.d.next = ReaderState::Idle;
            }
        }
        if self.judges.val() {
            self.over_at.d.next = true;
            self.state.d.next = ReaderState::Idle;
            if self.over_room.q.val() {
                self.failed_at.d.next = self.failed_descriptor.val();
            } else if self.bad_format.q.val() | self.bad_remote.q.val() {
                self.failed_at.d.next = self.failed_format.val();
            } else if self.upto.q.val() < self.need.val() {
                self.read_address.d.next =
                    self.bus_at.q.val() + bit_cast::<64, 9>(self.upto.q.val());
                self.want.d.next = self.more.val();
                self.upto.d.next = self.need.val();
                self.over_at.d.next = false;
                self.state.d.next = ReaderState::Read;
            }
        }
        if self.reset.val() {
            self.state.d.next = ReaderState::Idle;
            self.over_at.d.next = false;
        }
    }
}
