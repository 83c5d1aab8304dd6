//! Gathers the payload of frames: host reads for each piece of a descriptor's buffer, packed into
//! whole beats. A beat that finds nothing in front of it is offered in the cycle in which it is packed.
//!
//! ```text
//! start, skip, length --> Segments --> read requests (when `go`)
//!                            `-----> lanes (FIFO) --> Pack --> beats (FIFO) --> out --> beat
//!                        read responses -------------'   `--> arrivals (FIFO)
//! ```
//! A response cannot be held off, so the FIFO of beats takes two frames (1,024 beats): one that is
//! handed to the channel, and the next one, which is read meanwhile. No more may be started. For
//! each frame, in order: `arrived` (with `fault`: a read failed, the beats are worthless), which `take`
//! removes; its last beat says so.

use super::pack::Pack;
use crate::desc::Segments;
use crate::ifs::ReadClient;
use crate::leaf::{Fifo, Number};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Gather {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse, while `issued`.
    pub start: Signal<In, Bit>,
    pub skip: Signal<In, Bits<19>>,
    /// 1 to 4,096.
    pub length: Signal<In, Bits<13>>,
    /// Requests may go out.
    pub go: Signal<In, Bit>,
    /// Forgets a start whose requests have not gone out.
    pub cancel: Signal<In, Bit>,
    /// All requests are out.
    pub issued: Signal<Out, Bit>,
    pub segment: Signal<Out, Bits<4>>,
    pub segment_bus: Signal<In, Bits<64>>,
    pub segment_length: Signal<In, Bits<32>>,
    pub segment_here: Signal<In, Bit>,
    pub read: ReadClient,
    /// Pulse: the frame whose payload comes in has two beats to go (or one, of a shorter one).
    pub soon: Signal<Out, Bit>,
    pub arrived: Signal<Out, Bit>,
    pub fault: Signal<Out, Bit>,
    pub take: Signal<In, Bit>,
    pub beat_valid: Signal<Out, Bit>,
    pub beat_data: Signal<Out, Bits<64>>,
    /// It ends its frame.
    pub beat_last: Signal<Out, Bit>,
    pub beat_ready: Signal<In, Bit>,
    faulty: DFF<Bit>,
    out_valid: DFF<Bit>,
    out_data: DFF<Bits<65>>,
    /// `beats` holds none, also none on its way to its output.
    clear: DFF<Bit>,
    segments: Segments,
    /// Of each piece: lane 2:0, tail 5:3, final 6, the beat with which `soon` begins 13:7.
    lanes: Fifo<14, 4>,
    pack: Pack,
    /// Bit 64: the frame's last one.
    beats: Fifo<65, 10>,
    arrivals: Fifo<1, 2>,
    soon_at: DFF<Bit>,
    /// Beats of the piece that have come.
    come: DFF<Bits<7>>,
    last_byte: Signal<Local, Bits<13>>,
    last_beat: Signal<Local, Bits<7>>,
    early_beat: Signal<Local, Bits<7>>,
    tail: Signal<Local, Bits<3>>,
    moved: Signal<Local, Bit>,
    available: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    fault_now: Signal<Local, Bit>,
    final_now: Signal<Local, Bit>,
    marked: Signal<Local, Bits<65>>,
    brought: Signal<Local, Bits<65>>,
    one: Number<16, 1>,
    free: Signal<Local, Bit>,
    passes: Signal<Local, Bit>,
    direct: Signal<Local, Bit>,
}

impl Logic for Gather {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, faulty, out_valid, out_data, clear, soon_at, come);
        clock!(self, clock, segments, lanes, pack, beats, arrivals);
        self.segments.reset.next = self.reset.val() | self.cancel.val();
        self.lanes.reset.next = self.reset.val();
        self.pack.reset.next = self.reset.val();
        self.beats.reset.next = self.reset.val();
        self.arrivals.reset.next = self.reset.val();

        // Requests.
        self.issued.next = self.segments.idle.val();
        self.segments.start.next = self.start.val();
        self.segments.skip.next = self.skip.val();
        self.segments.length.next = self.length.val();
        self.segment.next = self.segments.segment.val();
        self.segments.segment_bus.next = self.segment_bus.val();
        self.segments.segment_length.next = self.segment_length.val();
        self.segments.segment_here.next = self.segment_here.val();
        self.available.next = self.segments.valid.val() & self.go.val() & (!self.lanes.full.val());
        self.moved.next = self.available.val() & self.read.req_ready.val();
        self.read.req_valid.next = self.available.val();
        self.read.req_address.next = self.segments.address.val();
        self.read.req_length.next = self.segments.piece_length.val();
        self.segments.ready.next = self.moved.val();
        self.tail.next = (self.segments.address.val().get_bits::<3>(0)
            + self.segments.piece_length.val().get_bits::<3>(0))
            - 1;
        self.last_byte.next = bit_cast::<13, 3>(self.segments.address.val().get_bits::<3>(0))
            + self.segments.piece_length.val()
            - 1;
        self.last_beat.next = self.last_byte.val().get_bits::<7>(3);
        self.early_beat.next = self.last_beat.val() - 2;
        if !self.last_beat.val().get_bits::<6>(1).any() {
            self.early_beat.next = 0.into();
        }
        self.lanes.write.next = self.moved.val();
        self.lanes.data_in.next = bit_cast::<14, 3>(self.segments.address.val().get_bits::<3>(0))
            | (bit_cast::<14, 3>(self.tail.val()) << 3)
            | (bit_cast::<14, 1>(self.segments.last.val().into()) << 6)
            | (bit_cast::<14, 7>(self.early_beat.val()) << 7);

        // Responses.
        self.final_now.next = self.lanes.data_out.val().get_bit(6);
        self.pack.valid.next = self.read.rsp_valid.val();
        self.pack.data.next = self.read.rsp_data.val();
        self.pack.last.next = self.read.rsp_last.val();
        self.pack.lane.next = self.lanes.data_out.val().get_bits::<3>(0);
        self.pack.tail.next = self.lanes.data_out.val().get_bits::<3>(3);
        self.pack.final_piece.next = self.final_now.val();
        self.ends.next = self.read.rsp_valid.val() & self.read.rsp_last.val();
        self.lanes.read.next = self.ends.val();
        self.soon.next = self.soon_at.q.val();
        self.soon_at.d.next = self.read.rsp_valid.val()
            & self.final_now.val()
            & (self.come.q.val() == self.lanes.data_out.val().get_bits::<7>(7));
        if self.read.rsp_valid.val() {
            self.come.d.next = self.come.q.val() + 1;
        }
        if self.ends.val() {
            self.come.d.next = 0.into();
        }
        self.fault_now.next = self.faulty.q.val() | self.read.rsp_error.val();
        if self.ends.val() {
            self.faulty.d.next = self.fault_now.val() & (!self.final_now.val());
        }
        self.arrivals.write.next = self.ends.val() & self.final_now.val();
        self.arrivals.data_in.next = bit_cast::<1, 1>(self.fault_now.val().into());
        self.arrivals.read.next = self.take.val();
        self.arrived.next = !self.arrivals.empty.val();
        self.fault.next = self.arrivals.data_out.val().any();

        // The register behind the FIFO takes a beat straight from the packer if nothing waits and
        // it is not taken at once.
        self.direct.next =
            self.pack.beat_valid.val() & (!self.out_valid.q.val()) & self.clear.q.val();
        self.free.next = (!self.out_valid.q.val()) | self.beat_ready.val();
        self.passes.next = self.pack.beat_valid.val() & self.free.val() & self.clear.q.val();
        // The packer ends a frame with a beat.
        self.marked.next = bit_cast::<65, 64>(self.pack.beat.val())
            | (bit_cast::<65, 1>(self.pack.finished.val().into()) << 64);
        self.beats.write.next = self.pack.beat_valid.val() & (!self.passes.val());
        self.beats.data_in.next = self.marked.val();
        self.beats.read.next = (!self.beats.empty.val()) & self.free.val();
        self.clear.d.next = (self.clear.q.val()
            | ((self.beats.level.val() == self.one.val())
                & (!self.beats.empty.val())
                & self.free.val()))
            & ((!self.pack.beat_valid.val()) | self.passes.val());
        self.beat_valid.next = self.out_valid.q.val() | self.direct.val();
        self.brought.next = self.out_data.q.val();
        if self.direct.val() {
            self.brought.next = self.marked.val();
        }
        self.beat_data.next = self.brought.val().get_bits::<64>(0);
        self.beat_last.next = self.brought.val().get_bit(64);
        if self.free.val() {
            self.out_valid.d.next = (self.passes.val()
                & (!(self.direct.val() & self.beat_ready.val())))
                | (!self.beats.empty.val());
            self.out_data.d.next = self.marked.val();
            if !self.beats.empty.val() {
                self.out_data.d.next = self.beats.data_out.val();
            }
        }
        if self.reset.val() {
            self.faulty.d.next = false;
            self.soon_at.d.next = false;
            self.come.d.next = 0.into();
            self.out_valid.d.next = false;
            self.clear.d.next = true;
        }
    }
}
