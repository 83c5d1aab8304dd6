//! Sends admin's messages whole (contract 1.4, MessageSend).
//!
//! Idle -> Ask -> (Read -> Push) x 6 -> Commit -> Done -> Idle; Ask -> Done when the pool says no.

use crate::ifs::MessageServer;
use crate::leaf::Number;
use nic_regs::admin::AdminStatus;
use nic_regs::frame::MESSAGE_BYTES;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum MessagesState {
    /// Waits for `start`.
    Idle,
    /// Asks the pool.
    Ask,
    /// Reads a beat of the message.
    Read,
    /// Hands the beat to the pool.
    Push,
    /// Hands the message to the channel.
    Commit,
    /// Answers admin.
    Done,
}

#[derive(LogicBlock, Default)]
pub struct Messages {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: send the message that admin offers. The pool is this block's until `done`.
    pub start: Signal<In, Bit>,
    /// Admin offers one.
    pub offered: Signal<Out, Bit>,
    pub busy: Signal<Out, Bit>,
    pub done: Signal<Out, Bit>,
    pub sent: Signal<Out, Bit>,
    pub ask_valid: Signal<Out, Bit>,
    pub ask_done: Signal<In, Bit>,
    pub ask_ok: Signal<In, Bit>,
    pub ask_down: Signal<In, Bit>,
    pub beat_valid: Signal<Out, Bit>,
    pub beat_data: Signal<Out, Bits<64>>,
    pub beat_ready: Signal<In, Bit>,
    pub to_peer: Signal<Out, Bits<8>>,
    pub to_domain: Signal<Out, Bits<8>>,
    pub commit_valid: Signal<Out, Bit>,
    pub commit_done: Signal<In, Bit>,
    pub port: MessageServer,
    state: DFF<MessagesState>,
    beat: DFF<Bits<3>>,
    status: DFF<Bits<4>>,
    sent_out: DFF<Bit>,
    status_ok: Number<4, { AdminStatus::Ok as u64 }>,
    status_down: Number<4, { AdminStatus::PeerDown as u64 }>,
    status_busy: Number<4, { AdminStatus::Busy as u64 }>,
    last_beat: Number<3, { MESSAGE_BYTES as u64 / 8 - 1 }>,
}

impl Logic for Messages {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, beat, status, sent_out);
        self.offered.next = self.port.valid.val();
        self.busy.next = self.state.q.val() != MessagesState::Idle;
        self.done.next = self.state.q.val() == MessagesState::Done;
        self.sent.next = self.sent_out.q.val();
        self.sent_out.d.next = false;
        self.ask_valid.next = self.state.q.val() == MessagesState::Ask;
        self.beat_valid.next = self.state.q.val() == MessagesState::Push;
        self.commit_valid.next = self.state.q.val() == MessagesState::Commit;
        self.to_peer.next = self.port.peer.val();
        self.to_domain.next = self.port.domain.val();
        self.beat_data.next = self.port.data.val();
        self.port.index.next = self.beat.q.val();
        self.port.status.next = self.status.q.val();
        self.port.done.next = self.state.q.val() == MessagesState::Done;
        match self.state.q.val() {
            MessagesState::Idle => {
                self.beat.d.next = 0.into();
                self.status.d.next = self.status_ok.val();
                if self.start.val() {
                    self.state.d.next = MessagesState::Ask;
                }
            }
            MessagesState::Ask => {
                if self.ask_done.val() {
                    self.state.d.next = MessagesState::Done;
                    if self.ask_down.val() {
                        self.status.d.next = self.status_down.val();
                    } else if !self.ask_ok.val() {
                        self.status.d.next = self.status_busy.val();
                    } else {
                        self.state.d.next = MessagesState::Read;
                    }
                }
            }
            MessagesState::Read => {
                self.state.d.next = MessagesState::Push;
            }
            MessagesState::Push => {
                if self.beat_ready.val() {
                    self.beat.d.next = self.beat.q.val() + 1;
                    self.state.d.next = MessagesState::Read;
                    if self.beat.q.val() == self.last_beat.val() {
                        self.state.d.next = MessagesState::Commit;
                    }
                }
            }
            MessagesState::Commit => {
                if self.commit_done.val() {
                    self.sent_out.d.next = true;
                    self.state.d.next = MessagesState::Done;
                }
            }
            _ => {
                self.state.d.next = MessagesState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = MessagesState::Idle;
        }
    }
}
