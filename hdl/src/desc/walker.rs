//! Resolves the segments of the descriptor that the reader reads, one by one as they arrive, and
//! afterwards Next.
//!
//! ```text
//! Idle -> Load -> (Lookup -> Load) x n -> Done -> Next -> [NextLookup ->] Idle
//!           `-> Done (not reached, not read)
//! op 1, 2: Idle -> Wait -> Done | Next -> [NextLookup ->] NextDone -> Idle
//! ```
//! `known` says that all lengths are summed up and the format is good, while the last look-up may
//! still be under way; `next_ready` that Next is a token.

use super::{NO_REGION, Outcome, UNREAD_OFFSET, UNREAD_REGION};
use crate::leaf::Number;
use nic_regs::desc::CONTROL_BYTES;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum WalkerState {
    /// Waits for `start`.
    Idle,
    /// Waits for the reader only.
    Wait,
    /// Registers a segment, if it is there.
    Load,
    /// Asks the region table for it.
    Lookup,
    /// A segment is not allowed: waits for the reader.
    Refused,
    /// Tells the engine.
    Done,
    /// Checks whether Next is of use.
    Next,
    /// Asks the region table for Next.
    NextLookup,
    /// Tells the engine that Next was read again.
    NextDone,
}

#[derive(LogicBlock, Default)]
pub struct Walker {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse, in idle only.
    pub start: Signal<In, Bit>,
    pub op: Signal<In, Bits<2>>,
    pub covers_next: Signal<In, Bit>,
    pub idle: Signal<Out, Bit>,
    pub done: Signal<Out, Bit>,
    pub outcome: Signal<Out, Bits<3>>,
    pub known: Signal<Out, Bit>,
    /// Pulse: a descriptor was fetched and resolved.
    pub fetched: Signal<Out, Bit>,
    pub next_ready: Signal<Out, Bit>,
    pub next_valid: Signal<Out, Bit>,
    pub next_region: Signal<Out, Bits<16>>,
    pub next_offset: Signal<Out, Bits<26>>,
    // The reader.
    pub over: Signal<In, Bit>,
    pub failed: Signal<In, Bits<3>>,
    pub unread: Signal<In, Bit>,
    pub next_va: Signal<In, Bits<64>>,
    pub next_handle: Signal<In, Bits<32>>,
    pub seg_count: Signal<In, Bits<5>>,
    /// The first segment is no data segment.
    pub is_rdma: Signal<In, Bit>,
    /// Where its beats are, in pairs.
    pub segment: Signal<Out, Bits<5>>,
    pub segment_valid: Signal<In, Bit>,
    pub segment_address: Signal<In, Bits<64>>,
    pub segment_word: Signal<In, Bits<64>>,
    /// Its length is not 0.
    pub segment_some: Signal<In, Bit>,
    // The list: a segment is counted, then added with its bus address.
    pub clear: Signal<Out, Bit>,
    pub count: Signal<Out, Bit>,
    pub count_length: Signal<Out, Bits<32>>,
    pub add: Signal<Out, Bit>,
    // Look-ups.
    pub looking: Signal<Out, Bit>,
    pub index: Signal<Out, Bits<16>>,
    pub generation: Signal<Out, Bits<16>>,
    pub address: Signal<Out, Bits<64>>,
    pub length: Signal<Out, Bits<32>>,
    pub tpt_done: Signal<In, Bit>,
    pub tpt_ok: Signal<In, Bit>,
    pub tpt_offset_64: Signal<In, Bits<27>>,
    state: DFF<WalkerState>,
    again: DFF<Bit>,
    /// Nothing is read: Next is not known.
    blind: DFF<Bit>,
    refused: DFF<Bit>,
    seg_index: DFF<Bits<5>>,
    pair: DFF<Bits<5>>,
    handle: DFF<Bits<32>>,
    address_at: DFF<Bits<64>>,
    length_at: DFF<Bits<32>>,
    next_ready_at: DFF<Bit>,
    next_ok: DFF<Bit>,
    next_region_at: DFF<Bits<16>>,
    next_offset_at: DFF<Bits<26>>,
    fetched_out: DFF<Bit>,
    lost: Signal<Local, Bit>,
    counted: Signal<Local, Bit>,
    ended: Signal<Local, Bit>,
    remote: Signal<Local, Bit>,
    wanted: Signal<Local, Bit>,
    misaligned: Signal<Local, Bit>,
    no_region: Number<16, NO_REGION>,
    unread_region: Number<16, UNREAD_REGION>,
    unread_offset: Number<26, UNREAD_OFFSET>,
    first_pair: Number<5, { CONTROL_BYTES / 16 }>,
    op_resolve: Number<2, 0>,
    op_reach: Number<2, 1>,
    op_next: Number<2, 2>,
    failed_descriptor: Number<3, { Outcome::Descriptor as u64 }>,
    failed_host_read: Number<3, { Outcome::HostRead as u64 }>,
    failed_protection: Number<3, { Outcome::Protection as u64 }>,
}

impl Logic for Walker {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, again, refused, seg_index, handle, address_at, length_at);
        dff_setup!(self, clock, next_ready_at, next_ok, next_region_at, next_offset_at);
        dff_setup!(self, clock, fetched_out, blind, pair);
        self.idle.next = self.state.q.val() == WalkerState::Idle;
        self.done.next = (self.state.q.val() == WalkerState::Done)
            | (self.state.q.val() == WalkerState::NextDone);
        self.outcome.next = self.failed.val();
        if self.refused.q.val() & (self.failed.val() == 0) {
            self.outcome.next = self.failed_protection.val();
        }
        self.fetched.next = self.fetched_out.q.val();
        self.fetched_out.d.next = false;
        self.next_ready.next = self.next_ready_at.q.val();
        self.next_valid.next = self.next_ok.q.val();
        self.next_region.next = self.next_region_at.q.val();
        self.next_offset.next = self.next_offset_at.q.val();
        self.segment.next = self.pair.q.val();
        self.clear.next = self.start.val() & (self.op.val() == self.op_resolve.val());
        self.count.next = false;
        self.count_length.next = self.segment_word.val().get_bits::<32>(32);
        self.add.next = (self.state.q.val() == WalkerState::Lookup) & self.tpt_done.val();
        self.looking.next = (self.state.q.val() == WalkerState::Lookup)
            | (self.state.q.val() == WalkerState::NextLookup);
        self.index.next = self.handle.q.val().get_bits::<16>(0);
        self.generation.next = self.handle.q.val().get_bits::<16>(16);
        self.address.next = self.address_at.q.val();
        self.length.next = self.length_at.q.val();

        // Nothing is known of a descriptor that is not reached or not read.
        self.lost.next = (self.failed.val() == self.failed_descriptor.val())
            | (self.failed.val() == self.failed_host_read.val());
        self.counted.next = self.seg_index.q.val() == self.seg_count.val();
        self.ended.next = self.over.val() & self.counted.val();
        self.known.next = self.ended.val()
            & (self.failed.val() == 0)
            & ((self.state.q.val() == WalkerState::Load)
                | (self.state.q.val() == WalkerState::Lookup)
                | (self.state.q.val() == WalkerState::Done));
        self.remote.next = self.is_rdma.val() & (!self.seg_index.q.val().any());
        self.wanted.next = self.covers_next.val() | self.again.q.val();
        self.misaligned.next = self.next_va.val().get_bits::<6>(0) != 0;

        match self.state.q.val() {
            WalkerState::Idle => {
                self.seg_index.d.next = 0.into();
                self.pair.d.next = self.first_pair.val();
                self.again.d.next = self.op.val() == self.op_next.val();
                self.blind.d.next = self.op.val() == self.op_reach.val();
                if self.start.val() {
                    self.refused.d.next = false;
                    self.next_ready_at.d.next = false;
                    self.next_ok.d.next = false;
                    self.state.d.next = WalkerState::Wait;
                    if self.op.val() == self.op_resolve.val() {
                        self.state.d.next = WalkerState::Load;
                    }
                }
            }
            WalkerState::Wait => {
                if self.over.val() {
                    self.state.d.next = WalkerState::Done;
                    if self.again.q.val() {
                        self.state.d.next = WalkerState::Next;
                    }
                }
            }
            WalkerState::Load => {
                self.address_at.d.next = self.segment_address.val();
                self.handle.d.next = self.segment_word.val().get_bits::<32>(0);
                self.length_at.d.next = self.segment_word.val().get_bits::<32>(32);
                if self.over.val() & (self.counted.val() | (self.failed.val() != 0)) {
                    self.fetched_out.d.next = self.failed.val() == 0;
                    self.state.d.next = WalkerState::Done;
                } else if self.segment_valid.val() & (!self.counted.val()) {
                    self.seg_index.d.next = self.seg_index.q.val() + 1;
                    self.pair.d.next = self.pair.q.val() + 1;
                    self.count.next = !self.remote.val();
                    if self.segment_some.val() & (!self.remote.val()) {
                        self.state.d.next = WalkerState::Lookup;
                    }
                }
            }
            WalkerState::Lookup => {
                if self.tpt_done.val() {
                    self.state.d.next = WalkerState::Load;
                    if !self.tpt_ok.val() {
                        self.refused.d.next = true;
                        self.state.d.next = WalkerState::Refused;
                    } else if self.ended.val() {
                        self.fetched_out.d.next = self.failed.val() == 0;
                        self.state.d.next = WalkerState::Done;
                    }
                }
            }
            WalkerState::Refused => {
                if self.over.val() {
                    self.state.d.next = WalkerState::Done;
                }
            }
            WalkerState::Done => {
                self.state.d.next = WalkerState::Next;
                if self.lost.val() | self.blind.q.val() {
                    self.next_ready_at.d.next = true;
                    self.state.d.next = WalkerState::Idle;
                }
            }
            WalkerState::Next => {
                self.address_at.d.next = self.next_va.val();
                self.handle.d.next = self.next_handle.val();
                self.length_at.d.next = 1.into();
                // A Next that fails names no region: the next fetch cannot reach it. Nor can it
                // reach one that was not read, and then says so.
                self.next_region_at.d.next = self.no_region.val();
                self.next_offset_at.d.next = 0.into();
                self.next_ok.d.next = self.wanted.val();
                self.state.d.next = WalkerState::NextLookup;
                if self.unread.val() {
                    self.next_region_at.d.next = self.unread_region.val();
                    self.next_offset_at.d.next = self.unread_offset.val();
                }
                if self.unread.val() | self.misaligned.val() | (!self.wanted.val()) {
                    self.next_ready_at.d.next = true;
                    self.state.d.next = WalkerState::Idle;
                    if self.again.q.val() {
                        self.state.d.next = WalkerState::NextDone;
                    }
                }
            }
            WalkerState::NextLookup => {
                if self.tpt_done.val() {
                    if self.tpt_ok.val() & (!self.tpt_offset_64.val().get_bit(26)) {
                        self.next_region_at.d.next = self.handle.q.val().get_bits::<16>(0);
                        self.next_offset_at.d.next = self.tpt_offset_64.val().get_bits::<26>(0);
                    }
                    self.next_ready_at.d.next = true;
                    self.state.d.next = WalkerState::Idle;
                    if self.again.q.val() {
                        self.state.d.next = WalkerState::NextDone;
                    }
                }
            }
            _ => {
                self.state.d.next = WalkerState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = WalkerState::Idle;
            self.fetched_out.d.next = false;
        }
    }
}
