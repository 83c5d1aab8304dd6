//! The head of the queue of the VI in flight: its place, what is told of it, and whether it is that of the turn
//! before. It comes with GET; or, of a VI that was quiet, from its doorbell.

use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Head {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// GET is over, and tells this.
    pub got: Signal<In, Bit>,
    pub ctx_region: Signal<In, Bits<16>>,
    pub ctx_offset: Signal<In, Bits<26>>,
    pub ctx_segments: Signal<In, Bits<5>>,
    pub ctx_count: Signal<In, Bits<16>>,
    /// A doorbell is looked at, with this token. No VI is in flight, and no descriptor: it may be offered at once.
    pub posting: Signal<In, Bit>,
    pub token: Signal<In, Bits<47>>,
    pub resting: Signal<In, Bit>,
    /// The VI that is offered was quiet a cycle ago.
    pub work_fresh: Signal<In, Bit>,
    /// So it may be taken without GET / pulse: it is.
    pub fresh: Signal<Out, Bit>,
    pub direct: Signal<In, Bit>,
    /// The VI in flight / that is taken.
    pub number: Signal<In, Bits<16>>,
    pub new_number: Signal<In, Bits<16>>,
    // In the cycle of `got`: the VI and its token are those of the turn before / the VI is (known before).
    pub same: Signal<Out, Bit>,
    pub same_vi: Signal<Out, Bit>,
    // In the cycle of `got` or `direct`, and from then on.
    pub region_now: Signal<Out, Bits<16>>,
    pub offset_now: Signal<Out, Bits<26>>,
    // From the cycle after it.
    pub region: Signal<Out, Bits<16>>,
    pub offset: Signal<Out, Bits<26>>,
    pub hint: Signal<Out, Bits<5>>,
    /// The queue holds something; so many (9: or more).
    pub some: Signal<Out, Bit>,
    pub covered: Signal<Out, Bits<4>>,
    /// A VI was posted to a cycle ago, while nothing was in flight; its token.
    posted: DFF<Bit>,
    posted_token: DFF<Bits<47>>,
    number_before: DFF<Bits<16>>,
    same_vi_at: DFF<Bit>,
    region_at: DFF<Bits<16>>,
    offset_at: DFF<Bits<26>>,
    hint_at: DFF<Bits<5>>,
    some_at: DFF<Bit>,
    covered_at: DFF<Bits<4>>,
    nine: Number<16, 9>,
}

impl Logic for Head {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, posted, posted_token, number_before, same_vi_at, region_at);
        dff_setup!(self, clock, offset_at, hint_at, some_at, covered_at);
        self.posted.d.next = self.posting.val() & self.resting.val();
        self.posted_token.d.next = self.token.val();
        self.fresh.next = self.work_fresh.val() & self.posted.q.val();
        self.same_vi_at.d.next = self.number.val() == self.number_before.q.val();
        self.same_vi.next = self.same_vi_at.q.val();
        self.same.next = self.same_vi_at.q.val()
            & (self.ctx_region.val() == self.region_at.q.val())
            & (self.ctx_offset.val() == self.offset_at.q.val());
        self.region.next = self.region_at.q.val();
        self.offset.next = self.offset_at.q.val();
        self.hint.next = self.hint_at.q.val();
        self.some.next = self.some_at.q.val();
        self.covered.next = self.covered_at.q.val();
        self.region_now.next = self.region_at.q.val();
        self.offset_now.next = self.offset_at.q.val();
        if self.got.val() {
            self.region_now.next = self.ctx_region.val();
            self.offset_now.next = self.ctx_offset.val();
            self.number_before.d.next = self.number.val();
            self.region_at.d.next = self.ctx_region.val();
            self.offset_at.d.next = self.ctx_offset.val();
            self.hint_at.d.next = self.ctx_segments.val();
            self.some_at.d.next = self.ctx_count.val() != 0;
            self.covered_at.d.next = self.ctx_count.val().get_bits::<4>(0);
            if self.ctx_count.val() > self.nine.val() {
                self.covered_at.d.next = 9.into();
            }
        } else if self.direct.val() {
            self.region_now.next = self.posted_token.q.val().get_bits::<16>(0);
            self.offset_now.next = self.posted_token.q.val().get_bits::<26>(16);
            self.number_before.d.next = self.new_number.val();
            self.region_at.d.next = self.posted_token.q.val().get_bits::<16>(0);
            self.offset_at.d.next = self.posted_token.q.val().get_bits::<26>(16);
            self.hint_at.d.next = self.posted_token.q.val().get_bits::<5>(42);
            self.some_at.d.next = true;
            self.covered_at.d.next = 1.into();
        }
        if self.reset.val() {
            self.posted.d.next = false;
        }
    }
}
