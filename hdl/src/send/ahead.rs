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
//! lines behind the one in hand as it has places in the queue was within the count that bounded the
//! read, which leaves out the last posted one. So a queue must go to rising
//! addresses; what does not (or another VI, a push, a fence, a read that failed) starts anew.

use crate::ifs::{ReadClient, ReadServer};
use crate::leaf::{Fifo, LutRam, Number};
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum AheadState {
    /// Waits for the reader, or reads ahead.
    Idle,
    /// Gives the reader what is here.
    Serve,
}

#[derive(LogicBlock, Default)]
pub struct Ahead {
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
    pub covered: Signal<In, Bits<4>>,
    pub room: Signal<In, Bits<32>>,
    /// Pulse: a descriptor of this VI is used that does not come by here.
    pub passed: Signal<In, Bit>,
    pub passed_vi: Signal<In, Bits<16>>,
    pub reader: ReadServer,
    pub read: ReadClient,
    state: DFF<AheadState>,
    ring: LutRam<64, 6>,
    /// Whose answer comes: 1 the ring's.
    kinds: Fifo<1, 2>,
    /// The VI and address of the last descriptor.
    known: DFF<Bit>,
    owner: DFF<Bits<16>>,
    base: DFF<Bits<64>>,
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
    distance: Signal<Local, Bits<64>>,
    step: Signal<Local, Bits<10>>,
    rises: Signal<Local, Bit>,
    follows: Signal<Local, Bit>,
    again: Signal<Local, Bit>,
    length: Signal<Local, Bits<10>>,
    tail: Signal<Local, Bits<10>>,
    whole_lines: Signal<Local, Bits<10>>,
    here: Signal<Local, Bit>,
    near: Signal<Local, Bit>,
    coming: Signal<Local, Bit>,
    landing: Signal<Local, Bits<10>>,
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
    reach: Signal<Local, Bits<10>>,
    goes_ahead: Signal<Local, Bit>,
    gap: Signal<Local, Bits<10>>,
    ahead_bytes: Signal<Local, Bits<10>>,
    ahead_address: Signal<Local, Bits<64>>,
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

impl Logic for Ahead {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, known, owner, base, from, upto, limit, flying, bytes, fill);
        dff_setup!(self, clock, wanted, at, left);
        clock!(self, clock, ring, kinds);
        self.kinds.reset.next = self.reset.val();
        self.quiet.next = !self.flying.q.val();

        // Where the request lies. Descriptors and so their distances are multiples of 64.
        self.distance.next = self.reader.req_address.val() - self.base.q.val();
        self.step.next = self.distance.val().get_bits::<10>(0);
        self.near.next = self.known.q.val() & (self.owner.q.val() == self.vi.val());
        self.again.next = self.near.val() & (!self.distance.val().any());
        self.rises.next = self.near.val()
            & (!self.distance.val().get_bits::<55>(9).any())
            & self.distance.val().any();
        self.follows.next = self.rises.val() & (self.step.val() >= self.from.q.val());
        self.length.next = self.reader.req_length.val().get_bits::<10>(0);
        self.tail.next = self.step.val() + self.length.val();
        self.here.next =
            self.opens.val() & self.follows.val() & (self.tail.val() <= self.upto.q.val());
        self.landing.next = self.upto.q.val() + self.bytes.q.val();
        self.coming.next = self.opens.val()
            & self.follows.val()
            & (!self.here.val())
            & self.flying.q.val()
            & self.wanted.q.val()
            & (self.tail.val() <= self.landing.val());

        // How far the queue goes behind it.
        self.behind.next = 0.into();
        if self.covered.val().any() {
            self.behind.next = self.covered.val() - 1;
        }
        self.allowed.next = bit_cast::<10, 4>(self.behind.val()) << 6;
        self.space.next = self.room.val().get_bits::<10>(0) & (!self.round_line.val());
        self.reach.next = self.allowed.val();
        if (!self.room.val().get_bits::<22>(10).any()) & (self.space.val() < self.allowed.val()) {
            self.reach.next = self.space.val();
        }

        // Requests: the reader's, else ahead of it.
        self.asks.next = (self.state.q.val() == AheadState::Idle)
            & self.reader.req_valid.val()
            & (!self.here.val())
            & (!self.coming.val())
            & (!self.kinds.full.val());
        self.starts.next = (self.state.q.val() == AheadState::Idle)
            & self.reader.req_valid.val()
            & self.here.val();
        self.goes_ahead.next = (!self.asks.val())
            & (!self.starts.val())
            & self.known.q.val()
            & (!self.flying.q.val())
            & (!self.forget.val())
            & (!self.kinds.full.val())
            & (self.upto.q.val() < self.limit.q.val())
            & (self.upto.q.val() <= self.low.val());
        self.gap.next = self.limit.q.val() - self.upto.q.val();
        self.ahead_bytes.next = self.gap.val();
        if self.gap.val() > self.portion.val() {
            self.ahead_bytes.next = self.portion.val();
        }
        self.ahead_address.next = self.base.q.val() + bit_cast::<64, 10>(self.upto.q.val());
        self.read.req_valid.next = self.asks.val() | self.goes_ahead.val();
        self.read.req_address.next = self.reader.req_address.val();
        self.read.req_length.next = self.reader.req_length.val();
        if self.goes_ahead.val() {
            self.read.req_address.next = self.ahead_address.val();
            self.read.req_length.next = bit_cast::<13, 10>(self.ahead_bytes.val());
        }
        self.kinds.write.next =
            (self.asks.val() | self.goes_ahead.val()) & self.read.req_ready.val();
        self.kinds.data_in.next = bit_cast::<1, 1>(self.goes_ahead.val().into());
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
        if self.state.q.val() == AheadState::Serve {
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
        if self.opened.val() & (!self.again.val()) {
            self.base.d.next = self.reader.req_address.val();
            self.owner.d.next = self.vi.val();
            self.known.d.next = true;
            self.limit.d.next = 0.into();
            if self.rises.val() {
                self.limit.d.next = self.reach.val();
            }
            self.from_now.next = self.whole_lines.val();
            self.upto_now.next = self.whole_lines.val();
            self.wanted.d.next = false;
            if self.starts.val() {
                self.from_now.next = 0.into();
                self.upto_now.next = self.upto.q.val() - self.step.val();
                self.wanted.d.next = self.wanted.q.val();
            }
        }
        self.from.d.next = self.from_now.val();
        self.upto.d.next = self.upto_now.val();
        if self.goes_ahead.val() & self.read.req_ready.val() {
            self.flying.d.next = true;
            self.wanted.d.next = true;
            self.bytes.d.next = self.ahead_bytes.val();
            self.fill.d.next = self.ahead_address.val().get_bits::<6>(3);
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
        if self.state.q.val() == AheadState::Idle {
            self.at.d.next = self.reader.req_address.val().get_bits::<6>(3);
            self.left.d.next = self.beats.val().get_bits::<6>(3);
            if self.starts.val() {
                self.state.d.next = AheadState::Serve;
            }
        } else {
            self.at.d.next = self.at.q.val() + 1;
            self.left.d.next = self.left.q.val() - 1;
            if self.left.q.val() == self.one.val() {
                self.state.d.next = AheadState::Idle;
            }
        }

        if self.forget.val() | (self.passed.val() & (self.passed_vi.val() == self.owner.q.val())) {
            self.known.d.next = false;
            self.wanted.d.next = false;
        }
        if self.reset.val() {
            self.state.d.next = AheadState::Idle;
            self.known.d.next = false;
            self.flying.d.next = false;
            self.wanted.d.next = false;
        }
    }
}
