//! The descriptor of an RDMA read whose answer arrives (contract 12.4): the head of the send queue,
//! read and checked again for each frame that does not follow directly (3.5).
//!
//! ```text
//! want --> +-------+ --> done, good, cause; bus, operation, segments
//! again -> | Reply | --> next_ready, next_*
//!          +-------+ <--> Desc <--> read, tpt
//! ```
//! `want` and `again` (Next is read again) are levels until `done`, with stable arguments. A frame
//! without data only wants to know where the descriptor is. Next may still be looked up after
//! `done`, while not `idle`: the arguments must then be stable too.

use crate::desc::{Cause, Desc};
use crate::ifs::{ReadClient, TptClient};
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Reply {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub want: Signal<In, Bit>,
    pub again: Signal<In, Bit>,
    /// A fence waits: the descriptor cached is forgotten.
    pub pause: Signal<In, Bit>,
    /// The frame has data / ends the answer; its VI.
    pub some: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    pub vi: Signal<In, Bits<16>>,
    pub tag: Signal<In, Bits<16>>,
    pub domain: Signal<In, Bits<8>>,
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    pub hint: Signal<In, Bits<5>>,
    /// More descriptors are posted behind it.
    pub several: Signal<In, Bit>,
    /// What the descriptor's segments held when the read was asked for.
    pub whole: Signal<In, Bits<21>>,
    pub idle: Signal<Out, Bit>,
    pub done: Signal<Out, Bit>,
    /// The data may be placed; else why not, see [`Cause`].
    pub good: Signal<Out, Bit>,
    pub cause: Signal<Out, Bits<4>>,
    pub bus: Signal<Out, Bits<64>>,
    /// As in `status::OP_*`, 18:16.
    pub operation: Signal<Out, Bits<3>>,
    /// Pulse: a descriptor was fetched.
    pub fetched: Signal<Out, Bit>,
    pub next_ready: Signal<Out, Bit>,
    /// Valid 42, offset 41:16, region 15:0.
    pub successor: Signal<Out, Bits<43>>,
    /// A segment's address and length come in the cycle after its number.
    pub segment: Signal<In, Bits<4>>,
    pub segment_bus: Signal<Out, Bits<64>>,
    pub segment_length: Signal<Out, Bits<32>>,
    pub read: ReadClient,
    pub tpt: TptClient,
    started: DFF<Bit>,
    /// The descriptor of this VI, from this place, is cached.
    held: DFF<Bit>,
    vi_at: DFF<Bits<16>>,
    region_at: DFF<Bits<16>>,
    offset_at: DFF<Bits<26>>,
    /// The place is the one asked for: the context is known for two cycles when `want` comes.
    same: DFF<Bit>,
    // The answer, a cycle later: then `want` still stands, and must not start anew.
    done_at: DFF<Bit>,
    good_at: DFF<Bit>,
    cause_at: DFF<Bits<4>>,
    bus_out: DFF<Bits<64>>,
    length_out: DFF<Bits<32>>,
    /// Software may have changed the descriptor since: its lengths are summed up two cycles before
    /// it is done.
    changed: DFF<Bit>,
    desc: Desc,
    is_good: Signal<Local, Bit>,
    kept: Signal<Local, Bit>,
    starts: Signal<Local, Bit>,
    is_done: Signal<Local, Bit>,
    op_reach: Number<2, 1>,
    op_next: Number<2, 2>,
    operation_read: Number<2, 2>,
    cause_length: Number<4, { Cause::Length as u64 }>,
}

impl Logic for Reply {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, started, bus_out, length_out, held, vi_at, region_at, offset_at);
        dff_setup!(self, clock, same, done_at, good_at, cause_at, changed);
        clock!(self, clock, desc);
        self.desc.reset.next = self.reset.val();
        ReadClient::link(&mut self.read, &mut self.desc.read);
        TptClient::link(&mut self.tpt, &mut self.desc.tpt);
        self.kept.next = self.want.val() & self.some.val() & self.held.q.val() & self.same.q.val();
        self.same.d.next = (self.vi_at.q.val() == self.vi.val())
            & (self.region_at.q.val() == self.region.val())
            & (self.offset_at.q.val() == self.offset.val());
        self.is_done.next = self.kept.val() | self.desc.done.val();
        self.done_at.d.next = self.is_done.val() & (!self.done_at.q.val());
        self.started.d.next =
            (self.want.val() | self.again.val()) & (!self.is_done.val()) & (!self.done_at.q.val());
        self.starts.next = (self.want.val() | self.again.val())
            & (!self.started.q.val())
            & (!self.kept.val())
            & (!self.done_at.q.val());
        self.desc.start.next = self.starts.val();
        self.desc.op.next = 0.into();
        if self.again.val() {
            self.desc.op.next = self.op_next.val();
        } else if !self.some.val() {
            self.desc.op.next = self.op_reach.val();
        }
        self.desc.tag.next = self.tag.val();
        self.desc.domain.next = self.domain.val();
        self.desc.region.next = self.region.val();
        self.desc.offset.next = self.offset.val();
        self.desc.hint.next = self.hint.val();
        self.desc.unreliable.next = false;
        self.desc.covers_next.next = self.several.val();
        self.desc.segment.next = self.segment.val();
        self.idle.next = self.desc.idle.val() & (!self.started.q.val());
        self.done.next = self.done_at.q.val();

        self.changed.d.next = (bit_cast::<21, 20>(self.desc.total.val()) != self.whole.val())
            | (self.desc.operation.val() != self.operation_read.val());
        self.cause_at.d.next = bit_cast::<4, 3>(self.desc.outcome.val());
        self.is_good.next = !self.desc.outcome.val().any();
        self.operation.next = bit_cast::<3, 2>(self.operation_read.val()) << 1;
        if self.some.val() {
            self.operation.next = bit_cast::<3, 2>(self.desc.operation.val()) << 1;
            if self.changed.q.val() & (!self.desc.outcome.val().any()) {
                self.is_good.next = false;
                self.cause_at.d.next = self.cause_length.val();
            }
        }
        self.good_at.d.next = self.is_good.val();
        self.good.next = self.good_at.q.val();
        self.cause.next = self.cause_at.q.val();

        // It stays for the next frame, unless it is done with.
        if self.starts.val() | self.pause.val() {
            self.held.d.next = false;
        }
        if self.want.val() {
            self.vi_at.d.next = self.vi.val();
            self.region_at.d.next = self.region.val();
            self.offset_at.d.next = self.offset.val();
            if self.is_done.val() {
                self.held.d.next = self.some.val() & self.is_good.val() & (!self.last.val());
            }
        }
        self.bus.next = self.desc.bus.val();
        self.fetched.next = self.desc.fetched.val();
        self.next_ready.next = self.desc.next_ready.val();
        self.successor.next = bit_cast::<43, 16>(self.desc.next_region.val())
            | (bit_cast::<43, 26>(self.desc.next_offset.val()) << 16)
            | (bit_cast::<43, 1>(self.desc.next_valid.val().into()) << 42);
        self.bus_out.d.next = self.desc.segment_bus.val();
        self.length_out.d.next = self.desc.segment_length.val();
        self.segment_bus.next = self.bus_out.q.val();
        self.segment_length.next = self.length_out.q.val();
        if self.reset.val() {
            self.started.d.next = false;
            self.done_at.d.next = false;
            self.held.d.next = false;
        }
    }
}
