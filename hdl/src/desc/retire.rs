//! Ends a descriptor: runs the chosen steps, in this order, and only then tells the engine.
//!
//! | bit of `steps` | step |
//! |---|---|
//! | 0 | pop the head; if the VI table needs Next again, read it again first |
//! | 1 | await the ViAck (send engine, Reception) |
//! | 2 | write the status: 8 bytes at offset 24, or with immediate data 12 bytes at offset 20 |
//! | 3 | announce the completion |
//! | 4 | stop the VI |
//!
//! `done` (pulse) ends it. Arguments are stable from `start` to `done`.

use crate::leaf::Number;
use nic_regs::desc::{IMMEDIATE_OFFSET, LENGTH_OFFSET};
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum RetireState {
    /// Waits for `start`.
    Idle,
    /// Takes the next step.
    Choose,
    /// Call: POP.
    Pop,
    /// Starts reading Next again.
    Reread,
    /// Waits for it.
    RereadWait,
    /// Call: AWAIT.
    Await,
    /// Writes the beat with the immediate data.
    Immediate,
    /// Writes the beat with length and status.
    Status,
    /// Call: COMPLETE.
    Complete,
    /// Call: STOP.
    Stop,
    /// Tells the engine.
    Done,
}

#[derive(LogicBlock, Default)]
pub struct Retire {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    pub steps: Signal<In, Bits<5>>,
    pub done: Signal<Out, Bit>,
    /// Pulse: the status was accepted.
    pub written: Signal<Out, Bit>,
    pub bus: Signal<In, Bits<64>>,
    pub length: Signal<In, Bits<20>>,
    pub status_word: Signal<In, Bits<32>>,
    pub has_immediate: Signal<In, Bit>,
    pub immediate: Signal<In, Bits<32>>,
    /// Descriptor engine: read Next again.
    pub reread: Signal<Out, Bit>,
    pub desc_done: Signal<In, Bit>,
    /// Next is a token: the pop may come.
    pub next_ready: Signal<In, Bit>,
    /// VI table: a call and its operation.
    pub vi_valid: Signal<Out, Bit>,
    pub vi_op: Signal<Out, Bits<3>>,
    pub vi_done: Signal<In, Bit>,
    pub vi_need_next: Signal<In, Bit>,
    pub w_valid: Signal<Out, Bit>,
    pub w_address: Signal<Out, Bits<64>>,
    pub w_length: Signal<Out, Bits<13>>,
    pub w_data: Signal<Out, Bits<64>>,
    pub w_last: Signal<Out, Bit>,
    pub w_ready: Signal<In, Bit>,
    state: DFF<RetireState>,
    todo: DFF<Bits<5>>,
    op_pop: Number<3, 2>,
    op_await: Number<3, 3>,
    op_complete: Number<3, 4>,
    op_stop: Number<3, 5>,
    after_pop: Number<5, 0b11110>,
    after_await: Number<5, 0b11100>,
    after_status: Number<5, 0b11000>,
    after_complete: Number<5, 0b10000>,
    length_offset: Number<64, LENGTH_OFFSET>,
    immediate_offset: Number<64, IMMEDIATE_OFFSET>,
    short_bytes: Number<13, 8>,
    long_bytes: Number<13, 12>,
}

impl Logic for Retire {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, todo);
        self.done.next = self.state.q.val() == RetireState::Done;
        self.written.next = (self.state.q.val() == RetireState::Status) & self.w_ready.val();
        self.reread.next = self.state.q.val() == RetireState::Reread;
        self.vi_valid.next = false;
        self.vi_op.next = self.op_pop.val();
        self.w_valid.next = false;
        self.w_last.next = false;
        self.w_length.next = self.short_bytes.val();
        self.w_address.next = self.bus.val() | self.length_offset.val();
        if self.has_immediate.val() {
            self.w_length.next = self.long_bytes.val();
            self.w_address.next = self.bus.val() | self.immediate_offset.val();
        }
        self.w_data.next = bit_cast::<64, 20>(self.length.val())
            | (bit_cast::<64, 32>(self.status_word.val()) << 32);
        match self.state.q.val() {
            RetireState::Idle => {
                if self.start.val() {
                    self.todo.d.next = self.steps.val();
                    self.state.d.next = RetireState::Choose;
                }
            }
            RetireState::Choose => {
                if self.todo.q.val().get_bit(0) {
                    self.state.d.next = RetireState::Pop;
                } else if self.todo.q.val().get_bit(1) {
                    self.state.d.next = RetireState::Await;
                } else if self.todo.q.val().get_bit(2) {
                    self.state.d.next = RetireState::Status;
                    if self.has_immediate.val() {
                        self.state.d.next = RetireState::Immediate;
                    }
                } else if self.todo.q.val().get_bit(3) {
                    self.state.d.next = RetireState::Complete;
                } else if self.todo.q.val().get_bit(4) {
                    self.state.d.next = RetireState::Stop;
                } else {
                    self.state.d.next = RetireState::Done;
                }
            }
            RetireState::Pop => {
                self.vi_valid.next = self.next_ready.val();
                if self.vi_done.val() {
                    if self.vi_need_next.val() {
                        self.state.d.next = RetireState::Reread;
                    } else {
                        self.todo.d.next = self.todo.q.val() & self.after_pop.val();
                        self.state.d.next = RetireState::Choose;
                    }
                }
            }
            RetireState::Reread => {
                self.state.d.next = RetireState::RereadWait;
            }
            RetireState::RereadWait => {
                if self.desc_done.val() {
                    self.state.d.next = RetireState::Pop;
                }
            }
            RetireState::Await => {
                self.vi_valid.next = true;
                self.vi_op.next = self.op_await.val();
                if self.vi_done.val() {
                    self.todo.d.next = self.todo.q.val() & self.after_await.val();
                    self.state.d.next = RetireState::Choose;
                }
            }
            RetireState::Immediate => {
                self.w_valid.next = true;
                self.w_data.next = bit_cast::<64, 32>(self.immediate.val()) << 32;
                if self.w_ready.val() {
                    self.state.d.next = RetireState::Status;
                }
            }
            RetireState::Status => {
                self.w_valid.next = true;
                self.w_last.next = true;
                if self.w_ready.val() {
                    self.todo.d.next = self.todo.q.val() & self.after_status.val();
                    self.state.d.next = RetireState::Choose;
                }
            }
            RetireState::Complete => {
                self.vi_valid.next = true;
                self.vi_op.next = self.op_complete.val();
                if self.vi_done.val() {
                    self.todo.d.next = self.todo.q.val() & self.after_complete.val();
                    self.state.d.next = RetireState::Choose;
                }
            }
            RetireState::Stop => {
                self.vi_valid.next = true;
                self.vi_op.next = self.op_stop.val();
                if self.vi_done.val() {
                    self.state.d.next = RetireState::Done;
                }
            }
            _ => {
                self.state.d.next = RetireState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = RetireState::Idle;
        }
    }
}
