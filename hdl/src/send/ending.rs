//! How a turn of the first stage ends: the pop or the progress of the frame in flight, or the end of
//! a descriptor that is over (contract 2.3, 4.3 to 4.5).
//!
//! ```text
//! pop:     Idle -> Pop -> [Await ->] Idle          (last frame; then the middle stage has it)
//! save:    Idle -> Save -> Idle                    (other frames, of messages and of answers)
//! cancel:  Idle -> Cancel -> Idle | Fail           (a frame that does not go out)
//! fail:    Idle -> Fail -> [Pop ->] Retiring -> Idle
//! finish:  Idle -> Finish -> Retiring -> Idle      (an acknowledged Reception send)
//! a pop that needs Next again:  Pop -> Reread -> RereadWait -> Pop
//! ```
//! A frame whose VI has stopped meanwhile is cancelled too. `over` and `give` are pulses with which
//! the next turn may begin; with `give` the VI goes back to the ring first.

use crate::desc::Cause;
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum EndingState {
    /// Waits for a command.
    Idle,
    /// Pops the head.
    Pop,
    /// Starts reading Next again.
    Reread,
    /// Waits for it.
    RereadWait,
    /// The popped send waits for its ViAck.
    Await,
    /// Stores the message's progress.
    Save,
    /// Hands the middle stage a frame to be aborted.
    Cancel,
    /// Waits for the stages behind, to end a failed descriptor.
    Fail,
    /// Waits for the stages behind, to end an acknowledged send.
    Finish,
    /// Waits for the end of the descriptor.
    Retiring,
}

#[derive(LogicBlock, Default)]
pub struct Ending {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    // Commands, pulses in idle.
    pub pop: Signal<In, Bit>,
    pub save: Signal<In, Bit>,
    pub cancel: Signal<In, Bit>,
    pub fail: Signal<In, Bit>,
    pub finish: Signal<In, Bit>,
    pub over: Signal<Out, Bit>,
    /// A turn is being ended. What begins to be (`fail`, `finish`) waits for a push that begins in that cycle.
    pub busy: Signal<Out, Bit>,
    pub give: Signal<Out, Bit>,
    // The descriptor in flight: no error, or which; an older frame of the VI failed; it is ended for
    // the middle stage.
    pub good: Signal<In, Bit>,
    pub cause: Signal<In, Bits<4>>,
    pub poison: Signal<In, Bit>,
    pub rescuing: Signal<In, Bit>,
    pub in_progress: Signal<In, Bit>,
    pub reception: Signal<In, Bit>,
    /// The frame asks for an RDMA read / is part of the answer to one.
    pub is_request: Signal<In, Bit>,
    pub is_answer: Signal<In, Bit>,
    // The VI table.
    pub call_valid: Signal<Out, Bit>,
    pub call_op: Signal<Out, Bits<3>>,
    /// A frame of the message was sent before this end of it.
    pub call_in_progress: Signal<Out, Bit>,
    pub call_awaits: Signal<Out, Bit>,
    pub call_reading: Signal<Out, Bit>,
    pub call_answered: Signal<Out, Bit>,
    pub call_done: Signal<In, Bit>,
    pub call_connected: Signal<In, Bit>,
    pub need_next: Signal<In, Bit>,
    /// Pulse: the descriptor left its queue, or its Next is to be read again.
    pub popped: Signal<Out, Bit>,
    // The descriptor engine.
    pub next_ready: Signal<In, Bit>,
    pub reread: Signal<Out, Bit>,
    pub rereading: Signal<Out, Bit>,
    pub desc_done: Signal<In, Bit>,
    // The stages behind.
    pub behind_free: Signal<In, Bit>,
    pub retire_idle: Signal<In, Bit>,
    pub commit_load: Signal<Out, Bit>,
    pub commit_cancel: Signal<Out, Bit>,
    pub retire: Signal<Out, Bit>,
    state: DFF<EndingState>,
    lost: Signal<Local, Bit>,
    cause_descriptor: Number<4, { Cause::Descriptor as u64 }>,
    cause_host_read: Number<4, { Cause::HostRead as u64 }>,
    op_save: Number<3, 1>,
    op_pop: Number<3, 2>,
    op_await: Number<3, 3>,
    op_sent: Number<3, 6>,
    saves: Signal<Local, Bit>,
}

impl Logic for Ending {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state);
        // Nothing is known of the descriptor, or there is none: it cannot be completed.
        self.lost.next = self.is_answer.val()
            | (self.cause.val() == self.cause_descriptor.val())
            | (self.cause.val() == self.cause_host_read.val());
        self.call_valid.next = ((self.state.q.val() == EndingState::Pop) & self.next_ready.val())
            | (self.state.q.val() == EndingState::Await)
            | (self.state.q.val() == EndingState::Save);
        // What POP counts are messages that end here without a frame of their own: the middle
        // stage has counted the others.
        self.saves.next = self.state.q.val() == EndingState::Save;
        self.call_op.next = self.op_save.val();
        if self.saves.val() & self.is_answer.val() {
            self.call_op.next = self.op_sent.val();
        }
        self.call_in_progress.next = !self.is_request.val();
        self.call_reading.next = self.saves.val() & self.is_request.val();
        self.call_answered.next = self.saves.val() & self.is_answer.val();
        self.call_awaits.next = self.state.q.val() == EndingState::Await;
        if self.state.q.val() == EndingState::Pop {
            self.call_op.next = self.op_pop.val();
            self.call_in_progress.next =
                self.in_progress.val() & (!self.good.val()) & (!self.rescuing.val());
        } else if self.state.q.val() == EndingState::Await {
            self.call_op.next = self.op_await.val();
        }
        self.reread.next = self.state.q.val() == EndingState::Reread;
        self.rereading.next = (self.state.q.val() == EndingState::Reread)
            | (self.state.q.val() == EndingState::RereadWait);
        self.popped.next = false;
        self.busy.next = self.state.q.val() != EndingState::Idle;
        self.over.next = false;
        self.give.next = false;
        self.commit_load.next = false;
        self.commit_cancel.next = self.state.q.val() == EndingState::Cancel;
        self.retire.next = false;

        match self.state.q.val() {
            EndingState::Idle => {
                if self.pop.val() {
                    self.state.d.next = EndingState::Pop;
                } else if self.save.val() {
                    self.state.d.next = EndingState::Save;
                } else if self.cancel.val() {
                    self.state.d.next = EndingState::Cancel;
                } else if self.fail.val() {
                    self.state.d.next = EndingState::Fail;
                } else if self.finish.val() {
                    self.state.d.next = EndingState::Finish;
                }
            }
            EndingState::Pop => {
                if self.call_done.val() {
                    self.popped.next = true;
                    if self.need_next.val() {
                        self.state.d.next = EndingState::Reread;
                    } else if !self.good.val() {
                        self.retire.next = self.call_connected.val();
                        self.state.d.next = EndingState::Retiring;
                    } else if !self.call_connected.val() {
                        self.state.d.next = EndingState::Cancel;
                    } else if self.reception.val() {
                        self.state.d.next = EndingState::Await;
                    } else {
                        self.commit_load.next = true;
                        self.over.next = true;
                        self.state.d.next = EndingState::Idle;
                    }
                }
            }
            EndingState::Reread => {
                self.state.d.next = EndingState::RereadWait;
            }
            EndingState::RereadWait => {
                if self.desc_done.val() {
                    self.state.d.next = EndingState::Pop;
                }
            }
            EndingState::Await => {
                if self.call_done.val() {
                    self.commit_load.next = true;
                    self.over.next = true;
                    self.state.d.next = EndingState::Idle;
                }
            }
            EndingState::Save => {
                if self.call_done.val() {
                    self.commit_load.next = self.call_connected.val();
                    self.over.next = self.call_connected.val();
                    self.state.d.next = EndingState::Idle;
                    if !self.call_connected.val() {
                        self.state.d.next = EndingState::Cancel;
                    }
                }
            }
            EndingState::Cancel => {
                self.commit_load.next = true;
                self.give.next = self.good.val();
                self.state.d.next = EndingState::Idle;
                if !self.good.val() {
                    self.state.d.next = EndingState::Fail;
                }
            }
            EndingState::Fail => {
                if self.behind_free.val() {
                    if self.poison.val() {
                        self.give.next = true;
                        self.state.d.next = EndingState::Idle;
                    } else if self.lost.val() {
                        self.retire.next = true;
                        self.state.d.next = EndingState::Retiring;
                    } else {
                        self.state.d.next = EndingState::Pop;
                    }
                }
            }
            EndingState::Finish => {
                self.retire.next = self.behind_free.val();
                if self.behind_free.val() {
                    self.state.d.next = EndingState::Retiring;
                }
            }
            EndingState::Retiring => {
                if self.retire_idle.val() {
                    self.over.next = true;
                    self.state.d.next = EndingState::Idle;
                }
            }
            _ => {
                self.state.d.next = EndingState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = EndingState::Idle;
        }
    }
}
