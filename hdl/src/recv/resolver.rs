//! Checks and resolves the descriptor that the reader brings (contract 3.1 to 3.3, 2.3).
//!
//! `start` (pulse) begins at word `from` of the buffer; `done` is high from the end until the next
//! start. `only_next`: there is Next alone. `anew`, with `done`: what was read is too little. The
//! read may still be under way or fail: beats are taken as they come.
//!
//! ```text
//! Done -> Head -> Control -> Segment -> Lookup -> [Segment -> Lookup ...] -> [NextLookup ->] Done
//!   Segment -> Done (faults, too little);  Segment -> Check (only Next, no segment, bad format),
//!   Lookup -> Short -> Check (not granted);  Check -> [NextLookup ->] Done
//! ```
//! Segments are allowed as far as their regions reach: the list ends with the first byte that is not
//! (`short`), and whoever has a longer message finds out (contract 3.3).
//! A segment behind the one that was looked up last takes three cycles in Lookup
//! ([`super::region_cache`]).

use super::region_cache::RegionCache;
use super::successor::Successor;
use crate::desc::Outcome;
use crate::ifs::TptClient;
use crate::leaf::Number;
use nic_regs::desc;
use nic_regs::limits::DATA_SEGMENTS_MAX;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum ParseState {
    /// Waits for `start`.
    Done,
    /// Takes the first word of the control segment.
    Head,
    /// Takes the second.
    Control,
    /// Acts on the format rules, then takes a segment.
    Segment,
    /// Finds it behind the last one, or asks the region table for it.
    Lookup,
    /// Counts the part of it that is allowed.
    Short,
    /// Checks whether Next is of use.
    Check,
    /// Asks the region table for it.
    NextLookup,
}

#[derive(LogicBlock, Default)]
pub struct Resolver {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    /// Pulse, in the cycle after `start`: not this one.
    pub stop: Signal<In, Bit>,
    pub from: Signal<In, Bits<5>>,
    pub only_next: Signal<In, Bit>,
    /// The posted count covers the successor.
    pub covers: Signal<In, Bit>,
    pub done: Signal<Out, Bit>,
    pub anew: Signal<Out, Bit>,
    /// See [`Outcome`].
    pub outcome: Signal<Out, Bits<3>>,
    /// SegCount, as a hint of how long the next one is.
    pub hint: Signal<Out, Bits<5>>,
    /// Sum of the segments' lengths as far as they are allowed, saturated to 2^20 - 1.
    pub total: Signal<Out, Bits<20>>,
    pub short: Signal<Out, Bit>,
    pub segment_write: Signal<Out, Bit>,
    pub segment_number: Signal<Out, Bits<4>>,
    pub segment_bus: Signal<Out, Bits<64>>,
    pub segment_length: Signal<Out, Bits<32>>,
    // The successor, see there.
    pub forget: Signal<In, Bit>,
    pub unreadable: Signal<In, Bit>,
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    pub token: Signal<Out, Bits<43>>,
    pub near: Signal<Out, Bit>,
    pub follows: Signal<Out, Bit>,
    pub stride: Signal<Out, Bits<9>>,
    // The reader.
    pub space: Signal<In, Bits<32>>,
    pub have: Signal<In, Bits<9>>,
    pub present: Signal<In, Bit>,
    pub even: Signal<In, Bits<64>>,
    pub odd: Signal<In, Bits<64>>,
    pub word: Signal<Out, Bits<5>>,
    /// The VI's.
    pub tag: Signal<In, Bits<16>>,
    pub domain: Signal<In, Bits<8>>,
    pub tpt: TptClient,
    next_one: Successor,
    region_cache: RegionCache,
    state: DFF<ParseState>,
    outcome_at: DFF<Bits<3>>,
    anew_at: DFF<Bit>,
    word_at: DFF<Bits<5>>,
    need_at: DFF<Bits<9>>,
    next_va: DFF<Bits<64>>,
    next_handle: DFF<Bits<32>>,
    seg_count: DFF<Bits<16>>,
    bad_control: DFF<Bit>,
    bad_format: DFF<Bit>,
    seg_index: DFF<Bits<5>>,
    listed: DFF<Bits<4>>,
    sum: DFF<Bits<20>>,
    short_at: DFF<Bit>,
    handle: DFF<Bits<32>>,
    address: DFF<Bits<64>>,
    length: DFF<Bits<32>>,
    /// The region table is asked; the second cycle of Lookup has come, the third.
    asks: DFF<Bit>,
    compared: DFF<Bit>,
    weighed: DFF<Bit>,
    seg_bytes: Signal<Local, Bits<9>>,
    over: Signal<Local, Bit>,
    lacks: Signal<Local, Bit>,
    ended: Signal<Local, Bit>,
    hit: Signal<Local, Bit>,
    answered: Signal<Local, Bit>,
    granted: Signal<Local, Bit>,
    last_granted: Signal<Local, Bit>,
    row_length: Signal<Local, Bits<32>>,
    next_sum: Signal<Local, Bits<21>>,
    adds: Signal<Local, Bit>,
    control_bytes: Number<9, { desc::CONTROL_BYTES }>,
    segments_largest: Number<16, { DATA_SEGMENTS_MAX as u64 }>,
    count_largest: Number<16, { DATA_SEGMENTS_MAX as u64 + 1 }>,
    saturated: Number<20, 0xfffff>,
    failed_descriptor: Number<3, { Outcome::Descriptor as u64 }>,
    failed_format: Number<3, { Outcome::Format as u64 }>,
}

impl Logic for Resolver {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, outcome_at, anew_at, word_at, need_at, next_va);
        dff_setup!(self, clock, next_handle, seg_count, bad_control, bad_format, seg_index, listed);
        dff_setup!(self, clock, sum, short_at, handle, address, length, asks, compared, weighed);
        clock!(self, clock, next_one, region_cache);
        self.done.next = self.state.q.val() == ParseState::Done;
        self.anew.next = self.anew_at.q.val();
        self.outcome.next = self.outcome_at.q.val();
        self.hint.next = self.seg_count.q.val().get_bits::<5>(0);
        self.total.next = self.sum.q.val();
        self.short.next = self.short_at.q.val();
        self.word.next = self.word_at.q.val();

        // Look-ups: arguments are registers.
        self.tpt.valid.next = ((self.state.q.val() == ParseState::Lookup) & self.asks.q.val())
            | (self.state.q.val() == ParseState::NextLookup);
        self.tpt.index.next = self.handle.q.val().get_bits::<16>(0);
        self.tpt.generation.next = self.handle.q.val().get_bits::<16>(16);
        self.tpt.check_generation.next = true;
        self.tpt.va_mode.next = true;
        self.tpt.address.next = self.address.q.val();
        self.tpt.length.next = self.length.q.val();
        self.tpt.tag.next = self.tag.val();
        self.tpt.domain.next = self.domain.val();
        self.tpt.rights.next = 0.into();

        // The rules.
        self.seg_bytes.next = bit_cast::<9, 5>(self.seg_count.q.val().get_bits::<5>(0)) << 4;
        self.over.next = (self.count_largest.val() >= self.seg_count.q.val())
            & (self.space.val() < bit_cast::<32, 9>(self.need_at.q.val()));
        self.lacks.next = self.have.val() < self.need_at.q.val();
        self.ended.next = self.seg_index.q.val() == self.seg_count.q.val().get_bits::<5>(0);
        self.row_length.next = self.odd.val().get_bits::<32>(32);
        self.next_sum.next = bit_cast::<21, 20>(self.sum.q.val())
            + bit_cast::<21, 20>(self.length.q.val().get_bits::<20>(0));

        // The segment.
        self.region_cache.forget.next = self.forget.val();
        self.region_cache.names.next = self.state.q.val() == ParseState::Segment;
        self.region_cache.named.next = self.odd.val().get_bits::<32>(0);
        self.region_cache.address.next = self.address.q.val();
        self.region_cache.handle.next = self.handle.q.val();
        self.region_cache.length.next = self.length.q.val();
        self.region_cache.learn.next = (self.state.q.val() == ParseState::Lookup)
            & self.asks.q.val()
            & self.tpt.done.val()
            & self.tpt.ok.val();
        self.region_cache.found.next = self.tpt.bus.val();
        self.region_cache.room.next = self.tpt.room.val();
        self.hit.next =
            self.weighed.q.val() & (!self.asks.q.val()) & self.region_cache.covers.val();
        self.answered.next = (self.state.q.val() == ParseState::Lookup)
            & (self.hit.val() | (self.asks.q.val() & self.tpt.done.val()));
        self.granted.next = self.hit.val() | self.tpt.ok.val();
        self.last_granted.next = self.answered.val() & self.granted.val() & self.ended.val();
        self.segment_write.next = self.answered.val();
        self.segment_number.next = self.listed.q.val();
        self.segment_bus.next = self.tpt.bus.val();
        if self.hit.val() {
            self.segment_bus.next = self.region_cache.bus.val();
        }
        self.segment_length.next = self.length.q.val();

        // The successor.
        self.next_one.forget.next = self.forget.val();
        self.next_one.va.next = self.next_va.q.val();
        self.next_one.handle.next = self.next_handle.q.val();
        self.next_one.look.next =
            (self.state.q.val() == ParseState::Check) | self.last_granted.val();
        self.next_one.covers.next = self.covers.val();
        self.next_one.asks.next = self.state.q.val() == ParseState::NextLookup;
        self.next_one.answer.next =
            (self.state.q.val() == ParseState::NextLookup) & self.tpt.done.val();
        self.next_one.ok.next = self.tpt.ok.val();
        self.next_one.room.next = self.tpt.room.val();
        self.next_one.offset_64.next = self.tpt.offset_64.val();
        self.next_one.unreadable.next = self.unreadable.val();
        self.next_one.region.next = self.region.val();
        self.next_one.offset.next = self.offset.val();
        self.next_one.have.next = self.have.val();
        self.token.next = self.next_one.token.val();
        self.near.next = self.next_one.near.val();
        self.follows.next = self.next_one.follows.val();
        self.stride.next = self.next_one.stride.val();

        self.adds.next = self.state.q.val() == ParseState::Short;
        match self.state.q.val() {
            ParseState::Done => {
                self.word_at.d.next = self.from.val();
                if self.start.val() {
                    self.state.d.next = ParseState::Head;
                }
            }
            ParseState::Head => {
                self.outcome_at.d.next = 0.into();
                self.anew_at.d.next = false;
                self.next_va.d.next = self.even.val();
                self.next_handle.d.next = self.odd.val().get_bits::<32>(0);
                self.seg_count.d.next = self.odd.val().get_bits::<16>(32);
                self.bad_control.d.next = (self.odd.val().get_bits::<12>(52) != 0)
                    | (self.odd.val().get_bits::<2>(48) != 0);
                self.seg_index.d.next = 0.into();
                self.listed.d.next = 0.into();
                self.sum.d.next = 0.into();
                self.short_at.d.next = false;
                if self.present.val() {
                    self.word_at.d.next = self.word_at.q.val() + 1;
                    self.state.d.next = ParseState::Control;
                }
            }
            ParseState::Control => {
                self.need_at.d.next = self.control_bytes.val() + self.seg_bytes.val();
                self.bad_format.d.next = self.bad_control.q.val()
                    | (self.even.val().get_bits::<32>(0) != 0)
                    | (self.segments_largest.val() < self.seg_count.q.val());
                if self.only_next.val() {
                    self.state.d.next = ParseState::Segment;
                } else if self.present.val() {
                    self.word_at.d.next = self.word_at.q.val() + 1;
                    self.state.d.next = ParseState::Segment;
                }
            }
            ParseState::Segment => {
                self.address.d.next = self.even.val();
                self.handle.d.next = self.odd.val().get_bits::<32>(0);
                self.length.d.next = self.row_length.val();
                self.asks.d.next = false;
                self.compared.d.next = false;
                self.weighed.d.next = false;
                if self.only_next.val() {
                    self.state.d.next = ParseState::Check;
                } else if self.over.val() {
                    self.outcome_at.d.next = self.failed_descriptor.val();
                    self.state.d.next = ParseState::Done;
                } else if self.bad_format.q.val() {
                    self.outcome_at.d.next = self.failed_format.val();
                    self.state.d.next = ParseState::Check;
                } else if self.lacks.val() {
                    self.anew_at.d.next = true;
                    self.state.d.next = ParseState::Done;
                } else if self.ended.val() {
                    self.state.d.next = ParseState::Check;
                } else if self.present.val() {
                    self.word_at.d.next = self.word_at.q.val() + 1;
                    self.seg_index.d.next = self.seg_index.q.val() + 1;
                    if self.row_length.val() != 0 {
                        self.state.d.next = ParseState::Lookup;
                    }
                }
            }
            ParseState::Lookup => {
                self.compared.d.next = self.region_cache.same.val();
                self.weighed.d.next = self.compared.q.val();
                self.asks.d.next = self.asks.q.val()
                    | (!self.region_cache.same.val())
                    | (self.weighed.q.val() & (!self.region_cache.covers.val()));
                if self.answered.val() {
                    self.listed.d.next = self.listed.q.val() + 1;
                    self.adds.next = self.granted.val();
                    self.state.d.next = ParseState::Segment;
                    if !self.granted.val() {
                        self.length.d.next = self.tpt.room.val();
                        self.state.d.next = ParseState::Short;
                    }
                }
            }
            ParseState::Short => {
                self.short_at.d.next = true;
                self.state.d.next = ParseState::Check;
            }
            ParseState::Check => {}
            ParseState::NextLookup => {
                if self.tpt.done.val() {
                    self.state.d.next = ParseState::Done;
                }
            }
            _ => {
                self.state.d.next = ParseState::Done;
            }
        }
        if self.adds.val() {
            self.sum.d.next = self.next_sum.val().get_bits::<20>(0);
            if self.next_sum.val().get_bit(20) | (self.length.q.val().get_bits::<12>(20) != 0) {
                self.sum.d.next = self.saturated.val();
            }
        }
        if self.next_one.look.val() {
            self.address.d.next = self.next_va.q.val();
            self.handle.d.next = self.next_handle.q.val();
            self.length.d.next = 1.into();
            self.state.d.next = ParseState::NextLookup;
            if self.next_one.settled.val() {
                self.state.d.next = ParseState::Done;
            }
        }
        if self.stop.val() {
            self.seg_count.d.next = self.seg_count.q.val();
        }
        if self.stop.val() | self.reset.val() {
            self.state.d.next = ParseState::Done;
        }
    }
}
