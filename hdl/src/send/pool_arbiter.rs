//! Who asks the pool: the first stage, or a push. Answers are followed by frames in their order, so
//! a push waits until no frame of the first stage has room and is not yet with the channel.
//!
//! Admin's messages and frames that have room go first; then the first stage and pushes in turn.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct PoolArbiter {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub fetch_asks: Signal<In, Bit>,
    /// It has an answer, or ends a descriptor itself.
    pub fetch_engaged: Signal<In, Bit>,
    pub fetch_idle: Signal<In, Bit>,
    pub message_valid: Signal<In, Bit>,
    pub message_busy: Signal<In, Bit>,
    pub commit_idle: Signal<In, Bit>,
    /// The end of a descriptor may stop its VI.
    pub retire_error: Signal<In, Bit>,
    pub push_wants: Signal<In, Bit>,
    pub push_owns: Signal<In, Bit>,
    pub ask_done: Signal<In, Bit>,
    /// The first stage's question is at the pool.
    pub asks: Signal<Out, Bit>,
    /// It was there a cycle ago: an answer is its answer.
    pub asked: Signal<Out, Bit>,
    /// A push may begin.
    pub send_slot: Signal<Out, Bit>,
    /// And the first stage does not want to ask.
    pub chain: Signal<Out, Bit>,
    asking: DFF<Bit>,
    /// After a push the first stage may ask in front of the next one.
    yields: DFF<Bit>,
    asks_now: Signal<Local, Bit>,
    may: Signal<Local, Bit>,
}

impl Logic for PoolArbiter {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, asking, yields);
        self.asks_now.next = self.fetch_asks.val()
            & (!self.push_owns.val())
            & (self.asking.q.val() | self.yields.q.val() | (!self.push_wants.val()));
        self.asks.next = self.asks_now.val();
        self.asked.next = self.asking.q.val();
        self.asking.d.next = self.asks_now.val() & (!self.ask_done.val());
        if self.push_owns.val() {
            self.yields.d.next = true;
        } else if self.asks_now.val() {
            self.yields.d.next = false;
        }
        self.may.next = (!self.asks_now.val())
            & (!self.fetch_engaged.val())
            & self.commit_idle.val()
            & (!self.retire_error.val())
            & (!self.message_busy.val())
            & (!(self.fetch_idle.val() & self.message_valid.val()));
        self.send_slot.next = self.may.val();
        self.chain.next = self.may.val() & (!self.fetch_asks.val());
        if self.reset.val() {
            self.asking.d.next = false;
            self.yields.d.next = false;
        }
    }
}
