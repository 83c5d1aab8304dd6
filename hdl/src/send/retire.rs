//! Last stage: ends descriptors, in the order in which they come (contract 4.3 to 4.5).
//!
//! ```text
//! Idle -> Status -> Complete -> [Stop ->] Idle     success, or completed with an error
//!           `-> Stop -> Idle                       only the VI stops
//! ```
//! The record is taken with `load` while `idle`. COMPLETE needs no answer, so it is only left for the port of
//! the VI table, which may be another stage's for some cycles; the next record need not wait for that.

use crate::desc::{Cause, Verdict};
use crate::ifs::WriteClient;
use crate::leaf::Number;
use nic_regs::desc::LENGTH_OFFSET;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum RetireState {
    /// Waits for a descriptor.
    Idle,
    /// Writes length and status.
    Status,
    /// Leaves the call COMPLETE, when the one before it is done.
    Complete,
    /// Call: STOP.
    Stop,
}

#[derive(LogicBlock, Default)]
pub struct Retire {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub load: Signal<In, Bit>,
    pub vi: Signal<In, Bits<16>>,
    pub bus: Signal<In, Bits<64>>,
    pub length: Signal<In, Bits<20>>,
    /// See [`Cause`].
    pub cause: Signal<In, Bits<4>>,
    pub partial: Signal<In, Bit>,
    /// See [`Verdict`].
    pub operation: Signal<In, Bits<2>>,
    pub unreliable: Signal<In, Bit>,
    /// No descriptor: an answer to a read of the peer has failed.
    pub answer: Signal<In, Bit>,
    pub idle: Signal<Out, Bit>,
    /// And no COMPLETE is left.
    pub rests: Signal<Out, Bit>,
    /// The descriptor in flight is in error.
    pub error: Signal<Out, Bit>,
    pub call_valid: Signal<Out, Bit>,
    pub call_op: Signal<Out, Bits<3>>,
    pub call_vi: Signal<Out, Bits<16>>,
    pub call_done: Signal<In, Bit>,
    /// STOP blames the receive queue.
    pub blames_recv: Signal<Out, Bit>,
    pub reason: Signal<Out, Bits<8>>,
    pub stop_status: Signal<Out, Bits<32>>,
    pub write: WriteClient,
    state: DFF<RetireState>,
    /// COMPLETE of this VI is to be called.
    completing: DFF<Bit>,
    completing_vi: DFF<Bits<16>>,
    leaves: Signal<Local, Bit>,
    vi_at: DFF<Bits<16>>,
    bus_at: DFF<Bits<64>>,
    length_at: DFF<Bits<20>>,
    cause_at: DFF<Bits<4>>,
    bad: DFF<Bit>,
    partial_at: DFF<Bit>,
    operation_at: DFF<Bits<2>>,
    unreliable_at: DFF<Bit>,
    answer_at: DFF<Bit>,
    verdict: Verdict,
    good: Signal<Local, Bit>,
    completes: Signal<Local, Bit>,
    stops: Signal<Local, Bit>,
    op_complete: Number<3, 4>,
    op_stop: Number<3, 5>,
    length_offset: Number<64, LENGTH_OFFSET>,
    status_bytes: Number<13, 8>,
    cause_done: Number<4, { Cause::Done as u64 }>,
}

impl Logic for Retire {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, vi_at, bus_at, length_at, cause_at, partial_at);
        dff_setup!(
            self,
            clock,
            unreliable_at,
            operation_at,
            answer_at,
            bad,
            completing,
            completing_vi
        );
        self.verdict.cause.next = self.cause_at.q.val();
        self.verdict.operation.next = bit_cast::<3, 2>(self.operation_at.q.val()) << 1;
        self.verdict.immediate.next = false;
        self.verdict.detail.next = 0.into();
        self.verdict.partial.next = self.partial_at.q.val();
        self.good.next = !self.bad.q.val();
        self.completes.next =
            (self.good.val() | self.verdict.completes.val()) & (!self.answer_at.q.val());
        self.blames_recv.next = self.answer_at.q.val();
        self.stops.next =
            (!self.good.val()) & ((!self.verdict.completes.val()) | (!self.unreliable_at.q.val()));
        self.idle.next = self.state.q.val() == RetireState::Idle;
        self.rests.next = (self.state.q.val() == RetireState::Idle) & (!self.completing.q.val());
        self.error.next = (self.state.q.val() != RetireState::Idle) & (!self.good.val());

        self.write.valid.next = (self.state.q.val() == RetireState::Status) & self.completes.val();
        self.write.address.next = self.bus_at.q.val() | self.length_offset.val();
        self.write.length.next = self.status_bytes.val();
        self.write.data.next = bit_cast::<64, 32>(self.verdict.status_word.val()) << 32;
        if self.good.val() {
            self.write.data.next = bit_cast::<64, 20>(self.length_at.q.val())
                | (bit_cast::<64, 32>(self.verdict.status_word.val()) << 32);
        }
        self.write.last.next = true;
        self.call_valid.next = self.completing.q.val() | (self.state.q.val() == RetireState::Stop);
        self.call_op.next = self.op_stop.val();
        self.call_vi.next = self.vi_at.q.val();
        if self.completing.q.val() {
            self.call_op.next = self.op_complete.val();
            self.call_vi.next = self.completing_vi.q.val();
        }
        if self.call_done.val() {
            self.completing.d.next = false;
        }
        self.leaves.next = false;
        self.reason.next = self.verdict.reason.val();
        self.stop_status.next = self.verdict.stop_status.val();

        match self.state.q.val() {
            RetireState::Idle => {
                self.vi_at.d.next = self.vi.val();
                self.bus_at.d.next = self.bus.val();
                self.length_at.d.next = self.length.val();
                self.cause_at.d.next = self.cause.val();
                self.bad.d.next = self.cause.val() != self.cause_done.val();
                self.partial_at.d.next = self.partial.val();
                self.operation_at.d.next = self.operation.val();
                self.unreliable_at.d.next = self.unreliable.val();
                self.answer_at.d.next = self.answer.val();
                if self.load.val() {
                    self.state.d.next = RetireState::Status;
                }
            }
            RetireState::Status => {
                if !self.completes.val() {
                    self.state.d.next = RetireState::Stop;
                } else if self.write.ready.val() {
                    self.leaves.next = !self.completing.q.val();
                    self.state.d.next = RetireState::Complete;
                }
            }
            RetireState::Complete => {
                self.leaves.next = !self.completing.q.val();
            }
            RetireState::Stop => {
                if self.call_done.val() & (!self.completing.q.val()) {
                    self.state.d.next = RetireState::Idle;
                }
            }
            _ => {
                self.state.d.next = RetireState::Idle;
            }
        }
        if self.leaves.val() {
            self.completing.d.next = true;
            self.completing_vi.d.next = self.vi_at.q.val();
            self.state.d.next = RetireState::Idle;
            if self.stops.val() {
                self.state.d.next = RetireState::Stop;
            }
        }
        if self.reset.val() {
            self.completing.d.next = false;
            self.state.d.next = RetireState::Idle;
        }
    }
}
