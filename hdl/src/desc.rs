//! Descriptor engine: reaches, fetches and resolves one descriptor for the engine that holds it
//! (contract 3, 2.3).
//!
//! ```text
//! start, op, ... --> +--------+ --> beats --> +--------+ <--> tpt
//!          read <--> | Reader |               | Walker | --> List: segment -> segment_bus, _length
//!                    +--------+ <--> tpt      +--------+ --> known, done, outcome, next_*
//! ```
//! `op` 0 fetches and resolves, 1 only reaches (bus address), 2 reads Next again. The arguments are
//! stable from `start` to `done` (pulses); results and segment list are stable until the next
//! `start`. Segments of length 0 are not in the list. Next is turned into a token after `done`:
//! `next_ready`. A start in that time is remembered, and its arguments must then be stable too.

mod extent;
mod list;
mod reader;
mod reads;
mod segments;
mod verdict;
mod walker;
pub use extent::Extent;
pub use list::List;
pub use reader::Reader;
pub use reads::Reads;
pub use segments::Segments;
pub use verdict::{Cause, Verdict};
pub use walker::Walker;

use crate::ifs::{ReadClient, TptClient};
use crate::leaf::Number;
use rust_hdl::prelude::*;

/// The region of a Next that leads nowhere: no fetch can reach it.
pub const NO_REGION: u64 = 0xffff;
/// The token of a Next that could not be read: its fetch says so.
pub const UNREAD_REGION: u64 = 0xfffe;
pub const UNREAD_OFFSET: u64 = 0x3ff_ffff;

/// How resolving ended; the order is that of the field `outcome`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All checks passed.
    Ok = 0,
    /// The descriptor cannot be reached.
    Descriptor = 1,
    /// The host port failed to read it.
    HostRead = 2,
    /// It is malformed.
    Format = 3,
    /// A segment's handle, bounds, tag or domain is wrong.
    Protection = 4,
}

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
    /// The VI has no RDMA reads.
    pub unreliable: Signal<In, Bit>,
    /// How many segments the token says; 0: not known.
    pub hint: Signal<In, Bits<5>>,
    /// The posted count covers the successor: Next may be used.
    pub covers_next: Signal<In, Bit>,
    pub idle: Signal<Out, Bit>,
    pub done: Signal<Out, Bit>,
    /// See [`Outcome`].
    pub outcome: Signal<Out, Bits<3>>,
    /// The outcome is that nothing is known of the descriptor: not reached, or not read.
    pub unreached: Signal<Out, Bit>,
    /// `total` and the immediate data are valid and the format is good; the segments may still
    /// turn out not to be allowed.
    pub known: Signal<Out, Bit>,
    /// Sum of the segments' lengths, saturated to 2^20 - 1.
    pub total: Signal<Out, Bits<20>>,
    /// The descriptor's operation (see [`Verdict`]), and the memory that an RDMA names; valid with
    /// `known`, the operation also if the descriptor is not good.
    pub operation: Signal<Out, Bits<2>>,
    pub remote_address: Signal<Out, Bits<64>>,
    pub remote_handle: Signal<Out, Bits<32>>,
    /// Control bit IMMEDIATE.
    pub has_immediate: Signal<Out, Bit>,
    pub immediate: Signal<Out, Bits<32>>,
    pub bus: Signal<Out, Bits<64>>,
    /// Next is a token, or not of use.
    pub next_ready: Signal<Out, Bit>,
    pub next_valid: Signal<Out, Bit>,
    pub next_region: Signal<Out, Bits<16>>,
    pub next_offset: Signal<Out, Bits<26>>,
    /// Pulse: a descriptor was fetched and resolved.
    pub fetched: Signal<Out, Bit>,
    pub segment: Signal<In, Bits<4>>,
    pub segment_bus: Signal<Out, Bits<64>>,
    pub segment_length: Signal<Out, Bits<32>>,
    /// It is there; whether the descriptor is good is another question.
    pub segment_here: Signal<Out, Bit>,
    pub read: ReadClient,
    /// The request is for the descriptor, so far as the token says; bytes from there to the region's
    /// end.
    pub opens: Signal<Out, Bit>,
    pub space: Signal<Out, Bits<32>>,
    pub tpt: TptClient,
    /// A start that came while Next was looked up.
    pending: DFF<Bit>,
    reader: Reader,
    walker: Walker,
    list: List,
    begins: Signal<Local, Bit>,
    free: Signal<Local, Bit>,
    failed_descriptor: Number<3, { Outcome::Descriptor as u64 }>,
    failed_host_read: Number<3, { Outcome::HostRead as u64 }>,
}

impl Logic for Desc {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, pending);
        clock!(self, clock, reader, walker, list);
        self.reader.reset.next = self.reset.val();
        self.walker.reset.next = self.reset.val();
        ReadClient::link(&mut self.read, &mut self.reader.read);
        self.opens.next = self.reader.opens.val();
        self.space.next = self.reader.space.val();
        self.free.next = self.reader.idle.val() & self.walker.idle.val();
        self.begins.next = (self.start.val() | self.pending.q.val()) & self.free.val();
        self.pending.d.next = (self.start.val() | self.pending.q.val()) & (!self.free.val());

        self.reader.start.next = self.begins.val();
        self.reader.op.next = self.op.val();
        self.reader.region.next = self.region.val();
        self.reader.offset.next = self.offset.val();
        self.reader.hint.next = self.hint.val();
        self.reader.unreliable.next = self.unreliable.val();
        self.reader.tpt_done.next = self.tpt.done.val();
        self.reader.tpt_ok.next = self.tpt.ok.val();
        self.reader.tpt_bus.next = self.tpt.bus.val();
        self.reader.tpt_room.next = self.tpt.room.val();
        self.reader.segment.next = self.walker.segment.val();
        self.walker.start.next = self.begins.val();
        self.walker.op.next = self.op.val();
        self.walker.covers_next.next = self.covers_next.val();
        self.walker.over.next = self.reader.over.val();
        self.walker.failed.next = self.reader.failed.val();
        self.walker.unread.next = self.reader.unread.val();
        self.walker.next_va.next = self.reader.next_va.val();
        self.walker.next_handle.next = self.reader.next_handle.val();
        self.walker.is_rdma.next = self.reader.is_rdma.val();
        self.walker.seg_count.next = self.reader.seg_count.val();
        self.walker.segment_valid.next = self.reader.segment_valid.val();
        self.walker.segment_address.next = self.reader.segment_address.val();
        self.walker.segment_word.next = self.reader.segment_word.val();
        self.walker.segment_some.next = self.reader.segment_some.val();
        self.walker.tpt_done.next = self.tpt.done.val();
        self.walker.tpt_ok.next = self.tpt.ok.val();
        self.walker.tpt_offset_64.next = self.tpt.offset_64.val();
        self.list.clear.next = self.walker.clear.val();
        self.list.count.next = self.walker.count.val();
        self.list.count_length.next = self.walker.count_length.val();
        self.list.add.next = self.walker.add.val();
        self.list.bus.next = self.tpt.bus.val();
        self.list.length.next = self.walker.length.val();
        self.list.segment.next = self.segment.val();

        // Look-ups: the token, then segments and Next, by virtual address and generation.
        self.tpt.valid.next = self.reader.reaching.val() | self.walker.looking.val();
        self.tpt.index.next = self.walker.index.val();
        self.tpt.generation.next = self.walker.generation.val();
        self.tpt.check_generation.next = !self.reader.reaching.val();
        self.tpt.va_mode.next = !self.reader.reaching.val();
        self.tpt.address.next = self.walker.address.val();
        self.tpt.length.next = self.walker.length.val();
        if self.reader.reaching.val() {
            self.tpt.index.next = self.reader.index.val();
            self.tpt.address.next = self.reader.address.val();
            self.tpt.length.next = self.reader.length.val();
        }
        self.tpt.tag.next = self.tag.val();
        self.tpt.domain.next = self.domain.val();
        self.tpt.rights.next = 0.into();

        // Results.
        self.idle.next = self.free.val() & (!self.pending.q.val());
        self.done.next = self.walker.done.val();
        self.outcome.next = self.walker.outcome.val();
        self.unreached.next = (self.walker.outcome.val() == self.failed_descriptor.val())
            | (self.walker.outcome.val() == self.failed_host_read.val());
        self.known.next = self.walker.known.val();
        self.total.next = self.list.total.val();
        self.operation.next = self.reader.operation.val();
        self.remote_address.next = self.reader.remote_address.val();
        self.remote_handle.next = self.reader.remote_handle.val();
        self.has_immediate.next = self.reader.has_immediate.val();
        self.immediate.next = self.reader.immediate.val();
        self.bus.next = self.reader.bus.val();
        self.next_ready.next = self.walker.next_ready.val();
        self.next_valid.next = self.walker.next_valid.val();
        self.next_region.next = self.walker.next_region.val();
        self.next_offset.next = self.walker.next_offset.val();
        self.fetched.next = self.walker.fetched.val();
        self.segment_bus.next = self.list.segment_bus.val();
        self.segment_length.next = self.list.segment_length.val();
        self.segment_here.next = self.list.segment_here.val();
        if self.reset.val() {
            self.pending.d.next = false;
        }
    }
}
