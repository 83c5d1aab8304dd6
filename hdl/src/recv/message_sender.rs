//! Delivers messages (contract 7.8): the event queue takes one, or the channel refuses it.
//!
//! Idle -> Deliver -> [Refuse ->] Idle.

use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum MessageSenderState {
    /// Waits for a message.
    Idle,
    /// Waits until the event queue has it.
    Deliver,
    /// Has the channel refuse it.
    Refuse,
}

#[derive(LogicBlock, Default)]
pub struct MessageSender {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: a message is at the head.
    pub start: Signal<In, Bit>,
    /// Pulse: it is dealt with.
    pub over: Signal<Out, Bit>,
    // The call to the event block.
    pub deliver: Signal<Out, Bit>,
    pub done: Signal<In, Bit>,
    pub refused: Signal<In, Bit>,
    /// Pulse: the channel is to refuse it.
    pub refuse: Signal<Out, Bit>,
    state: DFF<MessageSenderState>,
}

impl Logic for MessageSender {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state);
        self.deliver.next = self.state.q.val() == MessageSenderState::Deliver;
        self.refuse.next = self.state.q.val() == MessageSenderState::Refuse;
        self.over.next = self.state.q.val() == MessageSenderState::Refuse;
        match self.state.q.val() {
            MessageSenderState::Idle => {
                if self.start.val() {
                    self.state.d.next = MessageSenderState::Deliver;
                }
            }
            MessageSenderState::Deliver => {
                if self.done.val() {
                    self.over.next = !self.refused.val();
                    self.state.d.next = MessageSenderState::Idle;
                    if self.refused.val() {
                        self.state.d.next = MessageSenderState::Refuse;
                    }
                }
            }
            MessageSenderState::Refuse => {
                self.state.d.next = MessageSenderState::Idle;
            }
            _ => {
                self.state.d.next = MessageSenderState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = MessageSenderState::Idle;
        }
    }
}
