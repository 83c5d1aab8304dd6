//! Which row of the descriptor cache to give away: the one under a hand that goes round, and passes those over
//! that were used since it came by.
//!
//! A row is `proven` when more than one frame or a doorbell came for its VI: only then more than one
//! descriptor is read for it. With more VIs in turn than rows, each has one for the frame that waits.

use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Rows {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// The hand's; `step` (pulse) moves it on.
    pub candidate: Signal<Out, Bits<4>>,
    pub step: Signal<In, Bit>,
    pub row: Signal<In, Bits<4>>,
    pub recent: Signal<Out, Bit>,
    pub proven: Signal<Out, Bit>,
    /// Pulses: a frame found its VI's row; the hand passed it; it has a new owner, `sure` or not.
    pub hit: Signal<In, Bit>,
    pub pass: Signal<In, Bit>,
    pub claim: Signal<In, Bit>,
    pub sure: Signal<In, Bit>,
    current: DFF<Bits<4>>,
    recents: DFF<Bits<16>>,
    provens: DFF<Bits<16>>,
    own: Signal<Local, Bits<16>>,
    others: Signal<Local, Bits<16>>,
    one: Number<16, 1>,
}

impl Logic for Rows {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, current, recents, provens);
        self.candidate.next = self.current.q.val();
        if self.step.val() {
            self.current.d.next = self.current.q.val() + 1;
        }
        self.recent.next = self.recents.q.val().get_bit(self.row.val().index());
        self.proven.next = self.provens.q.val().get_bit(self.row.val().index());
        self.own.next = self.one.val() << self.row.val();
        self.others.next = !self.own.val();
        if self.hit.val() {
            self.recents.d.next = self.recents.q.val() | self.own.val();
            self.provens.d.next = self.provens.q.val() | self.own.val();
        } else if self.claim.val() {
            self.recents.d.next = self.recents.q.val() & self.others.val();
            self.provens.d.next = self.provens.q.val() & self.others.val();
            if self.sure.val() {
                self.provens.d.next = self.provens.q.val() | self.own.val();
            }
        } else if self.pass.val() {
            self.recents.d.next = self.recents.q.val() & self.others.val();
        }
        if self.reset.val() {
            self.current.d.next = 0.into();
            self.recents.d.next = 0.into();
            self.provens.d.next = 0.into();
        }
    }
}
