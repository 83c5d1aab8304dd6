//! What the first stage does next, while it has nothing in flight: ends a descriptor for the middle
//! stage, takes a VI whose send is acknowledged, sends admin's message, or takes a VI of the ready ring. Combinational.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Intake {
    /// No VI is in flight.
    pub resting: Signal<In, Bit>,
    /// A fence waits.
    pub pause: Signal<In, Bit>,
    pub message_valid: Signal<In, Bit>,
    pub work_valid: Signal<In, Bit>,
    pub acked_valid: Signal<In, Bit>,
    pub abort_pending: Signal<In, Bit>,
    pub desc_idle: Signal<In, Bit>,
    // The stages behind: empty; payload that could not be read; the end of a descriptor in error.
    pub commit_idle: Signal<In, Bit>,
    pub failing: Signal<In, Bit>,
    pub retire_error: Signal<In, Bit>,
    // At most one of these.
    pub takes: Signal<Out, Bit>,
    pub finishes: Signal<Out, Bit>,
    pub rescues: Signal<Out, Bit>,
    pub sends_message: Signal<Out, Bit>,
    free: Signal<Local, Bit>,
}

impl Logic for Intake {
    #[hdl_gen]
    fn update(&mut self) {
        // No VI while the end of an older descriptor may stop it.
        self.free.next = self.resting.val()
            & (!self.abort_pending.val())
            & (!self.failing.val())
            & (!self.retire_error.val())
            & self.desc_idle.val();
        // A fence waits for these.
        self.finishes.next = self.free.val() & self.acked_valid.val();
        self.takes.next = self.free.val()
            & (!self.acked_valid.val())
            & (!self.pause.val())
            & (!self.message_valid.val())
            & self.work_valid.val();
        self.rescues.next = self.resting.val() & self.abort_pending.val() & self.desc_idle.val();
        self.sends_message.next = self.resting.val()
            & (!self.pause.val())
            & (!self.abort_pending.val())
            & (!self.acked_valid.val())
            & self.message_valid.val()
            & self.commit_idle.val();
    }
}
