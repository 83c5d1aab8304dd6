//! Lines of a VI's queue, read ahead of their turn: the descriptors of a queue often lie side by side, 64
//! bytes each. Stands between `Desc` and the host port.
//!
//! ```text
//! reader --request--> Idle --(not here)--> host          answers in the order of the questions:
//!                      | |--(here)-> Serve -> reader       `kinds` says whose each is
//!                      | `--(on its way)-- waits
//!                      `-> ahead --> host --> ring (512 bytes) --^
//! ```
//! If two descriptors of a VI in a row lie near to each other, the lines behind the second one are read,
//! as far as the posted count covers their successors: up to 256 bytes at a time, before they are wanted.
//!
//! A line is used once its descriptor is wanted, if that one and its successor, which Next names, were
//! posted when the line was read (contract 2.3). That is so: a descriptor that comes at least as many
//! lines behind the one in flight as it has places in the queue was within the count that bounded the
//! read, which leaves out the last posted one. So a queue must go to rising
//! addresses; what does not (or another VI, a push, a fence, a read that failed) starts anew.
//!
//! Where a descriptor lies is told by its token, while that is looked up, and not by the bus address that comes
//! of it: what the region table says of a region in use changes only behind a fence, which forgets all. What is
//! compared is registered, so nothing is decided in the cycle after a change (`fresh`).

use crate::ifs::{ReadClient, ReadServer};
use crate::leaf::{Fifo, LutRam, Number};
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum PrefetchState {
    /// Waits for the reader, or reads ahead.
    Idle,
    /// Gives the reader what is here.
    Serve,
}

#[derive(LogicBlock, Default)]
pub struct Prefetch {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A fence: nothing is read ahead, and what was is forgotten.
    pub forget: Signal<In, Bit>,
    /// No read ahead is under way.
    pub quiet: Signal<Out, Bit>,
    /// The request opens the descriptor at the head of this VI's queue, with so many posted ones from
    /// there on (9: or more), and so many bytes to the end of its region.
    pub opens: Signal<In, Bit>,
    pub vi: Signal<In, Bits<16>>,
    /// Its token; stable from the cycle before the request at the latest.
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    pub covered: Signal<In, Bits<4>>,
    pub room: Signal<In, Bits<32>>,
    /// Pulse: a descriptor of this VI is used that does not come by here.
    pub passed: Signal<In, Bit>,
    pub passed_vi: Signal<In, Bits<16>>,
    pub reader: ReadServer,
    pub read: ReadClient,
    state: DFF<PrefetchState>,
    ring: LutRam<64, 6>,
    /// Whose answer comes: 1 the ring's.
    kinds: Fifo<1, 2>,
    /// The VI and address of the last descriptor.
    known: DFF<Bit>,
    owner: DFF<Bits<16>>,
    base: DFF<Bits<64>>,
    base_region: DFF<Bits<16>>,
    base_offset: DFF<Bits<26>>,
    // Distances from `base`, in bytes: what is here starts and ends; how far it may go.
    from: DFF<Bits<10>>,
    upto: DFF<Bits<10>>,
    limit: DFF<Bits<10>>,
    /// A read ahead is under way: its bytes, where the next beat goes, whether it is still of use.
    flying: DFF<Bit>,
    bytes: DFF<Bits<10>>,
    fill: DFF<Bits<6>>,
    wanted: DFF<Bit>,
    at: DFF<Bits<6>>,
    left: DFF<Bits<6>>,
    // Of the request: the same region of the same VI; the same place; up to seven lines behind it, so many bytes.
    near_at: DFF<Bit>,
    same_at: DFF<Bit>,
    rises_at: DFF<Bit>,
    step_at: DFF<Bits<10>>,
    // It lies behind what was dropped; before the end of what is here / will be, and so many bytes before.
    follows_at: DFF<Bit>,
    starts_in: DFF<Bit>,
    rest: DFF<Bits<10>>,
    starts_landed: DFF<Bit>,
    rest_landed: DFF<Bits<10>>,
    // What is read ahead next, if anything may be.
    more: DFF<Bit>,
    more_bytes: DFF<Bits<10>>,
    more_address: DFF<Bits<64>>,
    fresh: DFF<Bit>,
    lines: Signal<Local, Bits<26>>,
    step: Signal<Local, Bits<10>>,
    landing: Signal<Local, Bits<10>>,
    ready: Signal<Local, Bit>,
    rises: Signal<Local, Bit>,
    follows: Signal<Local, Bit>,
    again: Signal<Local, Bit>,
    length: Signal<Local, Bits<10>>,
    whole_lines: Signal<Local, Bits<10>>,
    here: Signal<Local, Bit>,
    near: Signal<Local, Bit>,
    coming: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
    opened: Signal<Local, Bit>,
    restarts: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    stores: Signal<Local, Bit>,
    starts: Signal<Local, Bit>,
    landed: Signal<Local, Bit>,
    behind: Signal<Local, Bits<4>>,
    allowed: Signal<Local, Bits<10>>,
    space: Signal<Local, Bits<10>>,
    ahead: Signal<Local, Bits<10>>,
    proceeds: Signal<Local, Bit>,
    gap: Signal<Local, Bits<10>>,
    beats: Signal<Local, Bits<10>>,
    from_now: Signal<Local, Bits<10>>,
    upto_now: Signal<Local, Bits<10>>,
    one: Number<6, 1>,
    round_beat: Number<10, 7>,
    round_line: Number<10, 63>,
    /// Less than this ahead: more is read.
    low: Number<10, 192>,
    portion: Number<10, 256>,
}

impl Logic for Prefetch {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, known, owner, base, from, upto, limit, flying, bytes, fill);
        dff_setup!(
            self,
            clock,
            wanted,
            at,
            left,
            base_region,
            base_offset,
            near_at,
            same_at,
            rises_at
        );
        dff_setup!(self, clock, step_at, follows_at, starts_in, rest, starts_landed, rest_landed);
        dff_setup!(self, clock, more, more_bytes, more_address, fresh);
        clock!(self, clock, ring, kinds);
        self.kinds.reset.next = self.reset.val();
        self.quiet.next = !self.flying.q.val();

        // Where the request lies, in lines of 64 bytes.
        self.lines.next = self.offset.val() - self.base_offset.q.val();
        self.step.next = bit_cast::<10, 3>(self.lines.val().get_bits::<3>(0)) << 6;
        self.near_at.d.next =
            (self.owner.q.val() == self.vi.val()) & (self.base_region.q.val() == self.region.val());
        self.same_at.d.next = !self.lines.val().any();
        self.rises_at.d.next = (!self.lines.val().get_bits::<23>(3).any()) & self.lines.val().any();
        self.step_at.d.next = self.step.val();
        self.follows_at.d.next = self.step.val() >= self.from.q.val();
        self.starts_in.d.next = self.step.val() <= self.upto.q.val();
        self.rest.d.next = self.upto.q.val() - self.step.val();
        self.landing.next = self.upto.q.val() + self.bytes.q.val();
        self.starts_landed.d.next = self.step.val() <= self.landing.val();
        self.rest_landed.d.next = self.landing.val() - self.step.val();
        self.near.next = self.known.q.val() & self.near_at.q.val();
        self.again.next = self.near.val() & self.same_at.q.val();
        self.rises.next = self.near.val() & self.rises_at.q.val();
        self.follows.next = self.opens.val() & self.rises.val() & self.follows_at.q.val();
        self.length.next = self.reader.req_length.val().get_bits::<10>(0);
        self.here.next =
            self.follows.val() & self.starts_in.q.val() & (self.rest.q.val() >= self.length.val());
        self.coming.next = self.follows.val()
            & (!self.here.val())
            & self.flying.q.val()
            & self.wanted.q.val()
            & self.starts_landed.q.val()
            & (self.rest_landed.q.val() >= self.length.val());
        self.ready.next = (self.state.q.val() == PrefetchState::Idle)
            & self.reader.req_valid.val()
            & (!(self.fresh.q.val() & self.near.val()));

        // How far the queue goes behind it.
        self.behind.next = 0.into();
        if self.covered.val().any() {
            self.behind.next = self.covered.val() - 1;
        }
        self.allowed.next = bit_cast::<10, 4>(self.behind.val()) << 6;
        self.space.next = self.room.val().get_bits::<10>(0) & (!self.round_line.val());
        self.ahead.next = self.allowed.val();
        if (!self.room.val().get_bits::<22>(10).any()) & (self.space.val() < self.allowed.val()) {
            self.ahead.next = self.space.val();
        }

        // Requests: the reader's, else ahead of it.
        self.asks.next =
            self.ready.val() & (!self.here.val()) & (!self.coming.val()) & (!self.kinds.full.val());
        self.starts.next = self.ready.val() & self.here.val();
        self.more.d.next =
            (self.upto.q.val() < self.limit.q.val()) & (self.upto.q.val() <= self.low.val());
        self.gap.next = self.limit.q.val() - self.upto.q.val();
        self.more_bytes.d.next = self.gap.val();
        if self.gap.val() > self.portion.val() {
            self.more_bytes.d.next = self.portion.val();
        }
        self.more_address.d.next = self.base.q.val() + bit_cast::<64, 10>(self.upto.q.val());
        self.proceeds.next = self.more.q.val()
            & self.known.q.val()
            & (!self.reader.req_valid.val())
            & (!self.fresh.q.val())
            & (!self.flying.q.val())
            & (!self.forget.val())
            & (!self.kinds.full.val());
        self.read.req_valid.next = self.asks.val() | self.proceeds.val();
        self.read.req_address.next = self.reader.req_address.val();
        self.read.req_length.next = self.reader.req_length.val();
        if self.proceeds.val() {
            self.read.req_address.next = self.more_address.q.val();
            self.read.req_length.next = bit_cast::<13, 10>(self.more_bytes.q.val());
        }
        self.kinds.write.next = (self.asks.val() | self.proceeds.val()) & self.read.req_ready.val();
        self.kinds.data_in.next = bit_cast::<1, 1>(self.proceeds.val().into());
        self.reader.req_ready.next =
            (self.asks.val() & self.read.req_ready.val()) | self.starts.val();

        // Answers.
        self.ends.next = self.read.rsp_valid.val() & self.read.rsp_last.val();
        self.kinds.read.next = self.ends.val();
        self.landed.next = self.ends.val() & self.kinds.data_out.val().any();
        self.stores.next = self.read.rsp_valid.val() & self.kinds.data_out.val().any();
        self.ring.write_address.next = self.fill.q.val();
        self.ring.write_data.next = self.read.rsp_data.val();
        self.ring.write_enable.next = self.stores.val();
        if self.stores.val() {
            self.fill.d.next = self.fill.q.val() + 1;
        }
        self.ring.read_address.next = self.at.q.val();
        self.reader.rsp_valid.next = self.read.rsp_valid.val() & (!self.kinds.data_out.val().any());
        self.reader.rsp_data.next = self.read.rsp_data.val();
        self.reader.rsp_last.next = self.read.rsp_last.val();
        self.reader.rsp_error.next = self.read.rsp_error.val();
        if self.state.q.val() == PrefetchState::Serve {
            self.reader.rsp_valid.next = true;
            self.reader.rsp_data.next = self.ring.read_data.val();
            self.reader.rsp_last.next = self.left.q.val() == self.one.val();
            self.reader.rsp_error.next = false;
        }

        // What is here.
        self.from_now.next = self.from.q.val();
        self.upto_now.next = self.upto.q.val();
        self.opened.next =
            self.opens.val() & (self.starts.val() | (self.asks.val() & self.read.req_ready.val()));
        self.restarts.next = self.opened.val() & (!self.again.val()) & (!self.starts.val());
        self.whole_lines.next =
            (self.length.val() + self.round_line.val()) & (!self.round_line.val());
        self.fresh.d.next = self.opened.val()
            | self.landed.val()
            | (self.proceeds.val() & self.read.req_ready.val());
        if self.opened.val() & (!self.again.val()) {
            self.base_region.d.next = self.region.val();
            self.base_offset.d.next = self.offset.val();
            self.base.d.next = self.reader.req_address.val();
            self.owner.d.next = self.vi.val();
            self.known.d.next = true;
            self.limit.d.next = 0.into();
            if self.rises.val() {
                self.limit.d.next = self.ahead.val();
            }
            self.from_now.next = self.whole_lines.val();
            self.upto_now.next = self.whole_lines.val();
            self.wanted.d.next = false;
            if self.starts.val() {
                self.from_now.next = 0.into();
                self.upto_now.next = self.upto.q.val() - self.step_at.q.val();
                self.wanted.d.next = self.wanted.q.val();
            }
        }
        self.from.d.next = self.from_now.val();
        self.upto.d.next = self.upto_now.val();
        if self.proceeds.val() & self.read.req_ready.val() {
            self.flying.d.next = true;
            self.wanted.d.next = true;
            self.bytes.d.next = self.more_bytes.q.val();
            self.fill.d.next = self.more_address.q.val().get_bits::<6>(3);
        }
        if self.landed.val() {
            self.flying.d.next = false;
            if self.wanted.q.val() & (!self.restarts.val()) & (!self.read.rsp_error.val()) {
                self.upto.d.next = self.upto_now.val() + self.bytes.q.val();
            } else if !self.restarts.val() {
                // Not again before the next descriptor.
                self.limit.d.next = 0.into();
            }
        }

        // Serving.
        self.beats.next = self.length.val() + self.round_beat.val();
        if self.state.q.val() == PrefetchState::Idle {
            self.at.d.next = self.reader.req_address.val().get_bits::<6>(3);
            self.left.d.next = self.beats.val().get_bits::<6>(3);
            if self.starts.val() {
                self.state.d.next = PrefetchState::Serve;
            }
        } else {
            self.at.d.next = self.at.q.val() + 1;
            self.left.d.next = self.left.q.val() - 1;
            if self.left.q.val() == self.one.val() {
                self.state.d.next = PrefetchState::Idle;
            }
        }

        if self.forget.val() | (self.passed.val() & (self.passed_vi.val() == self.owner.q.val())) {
            self.known.d.next = false;
        }
        if self.reset.val() {
            self.state.d.next = PrefetchState::Idle;
            self.known.d.next = false;
            self.flying.d.next = false;
            self.wanted.d.next = false;
        }
    }
}
