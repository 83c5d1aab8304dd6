//! Payload that could not be read, as the first stage sees it: a descriptor that was not popped is
//! ended there ('abort'), and a frame of the same VI that is in flight meanwhile must not go on
//! ('poison').

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Abort {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    // The middle stage.
    pub failing: Signal<In, Bit>,
    pub failing_vi: Signal<In, Bits<16>>,
    pub abort: Signal<In, Bit>,
    pub abort_partial: Signal<In, Bit>,
    /// The VI in flight.
    pub number: Signal<In, Bits<16>>,
    /// No VI is in flight / an abort begins.
    pub idle: Signal<In, Bit>,
    pub begins: Signal<In, Bit>,
    /// An abort waits for its turn; of this VI.
    pub pending: Signal<Out, Bit>,
    pub vi: Signal<Out, Bits<16>>,
    /// The VI in flight is being aborted; frames of its message were sent.
    pub rescuing: Signal<Out, Bit>,
    pub partial: Signal<Out, Bit>,
    /// An older frame of the VI in flight failed.
    pub poison: Signal<Out, Bit>,
    pending_at: DFF<Bit>,
    vi_at: DFF<Bits<16>>,
    partial_at: DFF<Bit>,
    rescuing_at: DFF<Bit>,
    rescuing_partial: DFF<Bit>,
    poison_at: DFF<Bit>,
}

impl Logic for Abort {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, pending_at, vi_at, partial_at, rescuing_at, rescuing_partial);
        dff_setup!(self, clock, poison_at);
        self.pending.next = self.pending_at.q.val();
        self.vi.next = self.vi_at.q.val();
        self.rescuing.next = self.rescuing_at.q.val();
        self.partial.next = self.rescuing_partial.q.val();
        self.poison.next = self.poison_at.q.val();
        if self.failing.val() & (self.failing_vi.val() == self.number.val()) {
            self.poison_at.d.next = true;
        }
        if self.abort.val() {
            self.pending_at.d.next = true;
            self.vi_at.d.next = self.failing_vi.val();
            self.partial_at.d.next = self.abort_partial.val();
        }
        if self.idle.val() {
            self.rescuing_at.d.next = self.begins.val();
            self.poison_at.d.next = false;
            self.rescuing_partial.d.next = self.partial_at.q.val();
            if self.begins.val() {
                self.pending_at.d.next = false;
            }
        }
        if self.reset.val() {
            self.pending_at.d.next = false;
        }
    }
}
