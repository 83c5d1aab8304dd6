//! First stage: takes a VI and has its next frame made, or its pending control frame sent. The turn decides;
//! the data stand in the blocks beside this one.
//!
//! ```text
//!            .--> Select (what the VI is to do)
//! Intake -> SendSlot --> Ending --> commit, retire (the stages behind)
//!            |<-- Abort <--- abort
//!            `--> Request --> gather (payload)
//! ```

use super::abort::Abort;
use super::ending::Ending;
use super::intake::Intake;
use super::opening::Opening;
use super::request::Request;
use super::select::Select;
use super::send_slot::SendSlot;
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Fetch {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub pause: Signal<In, Bit>,
    pub idle: Signal<Out, Bit>,
    /// A VI is in flight.
    pub holding: Signal<Out, Bit>,
    pub message_valid: Signal<In, Bit>,
    pub message_start: Signal<Out, Bit>,
    pub message_done: Signal<In, Bit>,
    pub work_valid: Signal<In, Bit>,
    pub work_vi: Signal<In, Bits<16>>,
    pub take: Signal<Out, Bit>,
    /// The context of the VI that is offered is known. It is taken with it: no GET.
    pub work_fresh: Signal<In, Bit>,
    pub direct: Signal<Out, Bit>,
    // Acknowledged sends.
    pub acked_valid: Signal<In, Bit>,
    pub acked_vi: Signal<In, Bits<16>>,
    pub take_acked: Signal<Out, Bit>,
    pub finishing: Signal<Out, Bit>,
    // The VI table.
    pub call_valid: Signal<Out, Bit>,
    pub call_op: Signal<Out, Bits<3>>,
    pub call_done: Signal<In, Bit>,
    pub call_connected: Signal<In, Bit>,
    pub need_next: Signal<In, Bit>,
    /// A frame of the message was sent before this end of it.
    pub call_in_progress: Signal<Out, Bit>,
    pub call_control_pending: Signal<Out, Bits<3>>,
    pub call_awaits: Signal<Out, Bit>,
    /// SAVE: a read was asked for / SENT: a frame of an answer.
    pub call_reading: Signal<Out, Bit>,
    pub call_answered: Signal<Out, Bit>,
    // The context.
    pub load: Signal<Out, Bit>,
    pub new_number: Signal<Out, Bits<16>>,
    pub got: Signal<Out, Bit>,
    pub due: Signal<In, Bit>,
    pub same: Signal<In, Bit>,
    pub same_vi: Signal<In, Bit>,
    pub number: Signal<In, Bits<16>>,
    pub connected: Signal<In, Bit>,
    pub some: Signal<In, Bit>,
    pub in_progress: Signal<In, Bit>,
    pub ctx_awaiting: Signal<In, Bit>,
    pub awaiting: Signal<In, Bit>,
    pub acked: Signal<In, Bit>,
    pub control_pending: Signal<In, Bits<3>>,
    pub reading: Signal<In, Bit>,
    pub answer: Signal<In, Bit>,
    pub unreliable: Signal<In, Bit>,
    pub reception: Signal<In, Bit>,
    // The descriptor.
    pub desc_start: Signal<Out, Bit>,
    pub desc_op: Signal<Out, Bits<2>>,
    pub desc_idle: Signal<In, Bit>,
    pub desc_done: Signal<In, Bit>,
    pub desc_outcome: Signal<In, Bits<3>>,
    pub desc_known: Signal<In, Bit>,
    pub next_ready: Signal<In, Bit>,
    // The frame.
    /// Why the message is refused, if it is: see [`crate::desc::Cause`].
    pub refusal: Signal<In, Bits<4>>,
    /// The descriptor in flight is an RDMA write / read.
    pub is_write: Signal<In, Bit>,
    pub is_read: Signal<In, Bit>,
    // The range of an answer: see `super::answer`.
    pub look: Signal<Out, Bit>,
    pub answered: Signal<In, Bit>,
    pub granted: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    pub empty: Signal<In, Bit>,
    pub kind: Signal<Out, Bits<8>>,
    pub is_data: Signal<Out, Bit>,
    pub is_request: Signal<Out, Bit>,
    pub is_answer: Signal<Out, Bit>,
    pub sequenced: Signal<Out, Bit>,
    // See `super::no_credit`.
    pub any_refused: Signal<In, Bit>,
    pub refused: Signal<In, Bit>,
    pub probes: Signal<Out, Bit>,
    pub sized: Signal<Out, Bit>,
    pub ask_valid: Signal<Out, Bit>,
    pub ask_done: Signal<In, Bit>,
    pub ask_ok: Signal<In, Bit>,
    pub ask_down: Signal<In, Bit>,
    /// Has a good answer of the pool whose frame is not in the middle stage yet, or ends a
    /// descriptor itself: no push may come between.
    pub engaged: Signal<Out, Bit>,
    pub gather_start: Signal<Out, Bit>,
    pub gather_go: Signal<Out, Bit>,
    pub gather_cancel: Signal<Out, Bit>,
    pub gather_issued: Signal<In, Bit>,
    // The stages behind.
    pub commit_idle: Signal<In, Bit>,
    pub commit_load: Signal<Out, Bit>,
    pub commit_cancel: Signal<Out, Bit>,
    pub has_payload: Signal<Out, Bit>,
    pub failing: Signal<In, Bit>,
    pub failing_vi: Signal<In, Bits<16>>,
    pub abort: Signal<In, Bit>,
    pub abort_partial: Signal<In, Bit>,
    pub abort_idle: Signal<Out, Bit>,
    pub retire_idle: Signal<In, Bit>,
    pub retire_error: Signal<In, Bit>,
    pub retire: Signal<Out, Bit>,
    /// How the descriptor in flight ends; see [`Cause`].
    pub cause: Signal<Out, Bits<4>>,
    pub partial: Signal<Out, Bit>,
    /// The descriptor is one that was not resolved in this turn: its operation is the saved one.
    pub blind: Signal<Out, Bit>,
    intake: Intake,
    send_slot: SendSlot,
    opening: Opening,
    select: Select,
    request: Request,
    ending: Ending,
    rescuer: Abort,
    /// The turn ends an acknowledged send.
    finishing_at: DFF<Bit>,
    asks: Signal<Local, Bit>,
    goes_direct: Signal<Local, Bit>,
    carries: Signal<Local, Bit>,
    op_sent: Number<3, 6>,
    op_reach: Number<2, 1>,
    op_reread: Number<2, 2>,
}

impl Logic for Fetch {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, finishing_at);
        clock!(self, clock, send_slot, opening, select, request, ending, rescuer);
        self.send_slot.reset.next = self.reset.val();
        self.ending.reset.next = self.reset.val();
        self.rescuer.reset.next = self.reset.val();

        // The turn.
        self.idle.next = self.send_slot.resting.val() & (!self.rescuer.pending.val());
        self.holding.next = !self.send_slot.resting.val();
        self.engaged.next = self.send_slot.roomy.val() | self.ending.busy.val();
        self.intake.resting.next = self.send_slot.resting.val();
        self.intake.pause.next = self.pause.val();
        self.intake.message_valid.next = self.message_valid.val();
        self.intake.work_valid.next = self.work_valid.val();
        self.intake.acked_valid.next = self.acked_valid.val();
        self.intake.abort_pending.next = self.rescuer.pending.val();
        self.intake.desc_idle.next = self.desc_idle.val();
        self.intake.commit_idle.next = self.commit_idle.val();
        self.intake.failing.next = self.failing.val();
        self.intake.retire_error.next = self.retire_error.val();
        self.send_slot.takes.next = self.intake.takes.val() | self.intake.finishes.val();
        self.send_slot.rescues.next = self.intake.rescues.val();
        self.send_slot.sends_message.next = self.intake.sends_message.val();
        self.message_start.next = self.intake.sends_message.val();
        self.send_slot.message_done.next = self.message_done.val();
        self.take.next = self.intake.takes.val();
        self.goes_direct.next = self.intake.takes.val() & self.work_fresh.val();
        self.direct.next = self.goes_direct.val();
        self.send_slot.direct.next = self.goes_direct.val();
        self.send_slot.forgets.next = self.goes_direct.val()
            | self.intake.rescues.val()
            | (self.pause.val() & (!self.intake.finishes.val()));
        self.take_acked.next = self.intake.finishes.val();
        self.finishing.next = self.finishing_at.q.val();
        if self.send_slot.resting.val() {
            self.finishing_at.d.next = self.intake.finishes.val();
        }
        self.load.next =
            self.intake.takes.val() | self.intake.finishes.val() | self.intake.rescues.val();
        self.new_number.next = self.work_vi.val();
        if self.rescuer.pending.val() {
            self.new_number.next = self.rescuer.vi.val();
        } else if self.acked_valid.val() {
            self.new_number.next = self.acked_vi.val();
        }
        self.send_slot.rescuing.next = self.rescuer.rescuing.val();
        self.send_slot.poison.next = self.rescuer.poison.val();
        self.send_slot.call_done.next = self.call_done.val();
        self.got.next = self.send_slot.got.val();
        self.send_slot.needs.next = self.select.needs.val();
        self.send_slot.ends.next = self.select.ends.val();
        self.send_slot.sends.next = self.select.sends.val();
        self.send_slot.answers.next = self.select.answers.val();
        self.send_slot.is_data.next = self.select.is_data.val();
        self.send_slot.is_answer.next = self.select.is_answer.val();
        self.asks.next = self.select.is_data.val() & self.is_read.val();
        self.send_slot.is_request.next = self.asks.val();
        self.look.next = self.send_slot.look.val();
        self.send_slot.answered.next = self.answered.val();
        self.send_slot.granted.next = self.granted.val();
        self.send_slot.desc_done.next = self.desc_done.val();
        self.send_slot.desc_outcome.next = self.desc_outcome.val();
        self.send_slot.resolved.next = self.desc_done.val() & (self.desc_outcome.val() == 0);
        self.send_slot.desc_known.next = self.desc_known.val();
        self.send_slot.rereading.next = self.ending.rereading.val();
        self.blind.next = self.opening.reaching.val();
        self.cause.next = self.send_slot.cause.val();
        self.send_slot.refusal.next = self.refusal.val();
        self.send_slot.last.next = self.last.val() & self.select.is_data.val() & (!self.asks.val());
        self.probes.next = self.send_slot.probes.val();
        self.sized.next = self.send_slot.sized.val();
        self.ask_valid.next = self.send_slot.ask_valid.val() | self.send_slot.probes.val();
        self.send_slot.ask_done.next = self.ask_done.val();
        self.send_slot.ask_ok.next = self.ask_ok.val();
        self.send_slot.ask_down.next = self.ask_down.val();
        self.request.clear.next = self.send_slot.resting.val();
        self.request.open.next = self.send_slot.asking.val();
        self.carries.next = self.select.is_data.val() | self.select.is_answer.val();
        self.send_slot.carries.next = self.carries.val();
        self.request.is_data.next = self.carries.val();
        self.request.empty.next = self.empty.val();
        self.request.here.next = self.send_slot.soon.val();
        self.request.cancel.next = self.send_slot.gather_cancel.val();
        self.request.issued.next = self.gather_issued.val();
        self.send_slot.requested.next = self.request.all.val();
        self.gather_start.next = self.request.start.val();
        self.gather_go.next = self.send_slot.gather_go.val();
        self.gather_cancel.next = self.send_slot.gather_cancel.val();
        self.has_payload.next = self.request.started.val();
        self.send_slot.commit_idle.next = self.commit_idle.val();
        self.send_slot.retire_error.next = self.retire_error.val();
        self.send_slot.popped.next = self.ending.popped.val();
        self.send_slot.over.next = self.ending.over.val();
        self.send_slot.give.next = self.ending.give.val();

        // When the descriptor is read.
        self.opening.resting.next = self.send_slot.resting.val();
        self.opening.got.next = self.send_slot.got.val();
        self.opening.direct.next = self.goes_direct.val();
        self.opening.rescuing.next = self.rescuer.rescuing.val();
        self.opening.due.next = self.due.val();
        self.opening.awaiting.next = self.ctx_awaiting.val();
        self.opening.same.next = self.same.val();
        self.opening.same_vi.next = self.same_vi.val();
        self.opening.held.next = self.send_slot.holds.val();
        self.opening.any_refused.next = self.any_refused.val();
        self.opening.refused.next = self.refused.val();
        self.opening.sends.next = self.send_slot.choose.val() & self.select.sends.val();
        self.opening.may.next = self.send_slot.probes.val()
            & self.ask_done.val()
            & self.ask_ok.val()
            & (!self.ask_down.val());
        self.send_slot.kept.next = self.opening.kept.val();
        self.send_slot.asks_first.next = self.opening.asks_first.val();
        self.send_slot.reaching.next = self.opening.reaching.val();

        // Payload that could not be read.
        self.rescuer.failing.next = self.failing.val();
        self.rescuer.failing_vi.next = self.failing_vi.val();
        self.rescuer.abort.next = self.abort.val();
        self.rescuer.abort_partial.next = self.abort_partial.val();
        self.rescuer.number.next = self.number.val();
        self.rescuer.idle.next = self.send_slot.resting.val();
        self.rescuer.begins.next = self.intake.rescues.val();
        self.abort_idle.next = !self.rescuer.pending.val();
        self.partial.next = self.in_progress.val();
        if self.rescuer.rescuing.val() {
            self.partial.next = self.rescuer.partial.val();
        }

        // What the VI is to do.
        self.select.choose.next = self.send_slot.choose.val();
        self.select.rescuing.next = self.rescuer.rescuing.val();
        self.select.finishing.next = self.finishing_at.q.val();
        self.select.connected.next = self.connected.val();
        self.select.some.next = self.some.val();
        self.select.awaiting.next = self.awaiting.val();
        self.select.acked.next = self.acked.val();
        self.select.control_pending.next = self.control_pending.val();
        self.select.unreliable.next = self.unreliable.val();
        self.select.reading.next = self.reading.val();
        self.select.answer.next = self.answer.val();
        self.select.is_write.next = self.is_write.val();
        self.select.is_read.next = self.is_read.val();
        self.kind.next = self.select.kind.val();
        self.is_data.next = self.select.is_data.val();
        self.is_request.next = self.asks.val();
        self.is_answer.next = self.select.is_answer.val();
        self.sequenced.next = self.select.sequenced.val();

        // The end of the turn.
        self.ending.pop.next = self.send_slot.pop.val();
        self.ending.save.next = self.send_slot.save.val();
        self.ending.cancel.next = self.send_slot.cancel.val();
        self.ending.fail.next = self.send_slot.fail.val();
        self.ending.finish.next = self.send_slot.finish.val();
        self.ending.good.next = self.send_slot.good.val();
        self.ending.cause.next = self.send_slot.cause.val();
        self.ending.poison.next = self.rescuer.poison.val();
        self.ending.rescuing.next = self.rescuer.rescuing.val();
        self.ending.in_progress.next = self.in_progress.val();
        self.ending.reception.next = self.reception.val();
        self.ending.is_request.next = self.asks.val();
        self.ending.is_answer.next = self.select.is_answer.val();
        self.ending.call_done.next = self.call_done.val();
        self.ending.call_connected.next = self.call_connected.val();
        self.ending.need_next.next = self.need_next.val();
        self.ending.next_ready.next = self.next_ready.val();
        self.ending.desc_done.next = self.desc_done.val();
        self.ending.behind_free.next = self.commit_idle.val() & self.retire_idle.val();
        self.ending.retire_idle.next = self.retire_idle.val();
        self.commit_load.next =
            self.ending.commit_load.val() | self.send_slot.control_pending_load.val();
        self.commit_cancel.next = self.ending.commit_cancel.val();
        self.retire.next = self.ending.retire.val();

        // Calls, and the descriptor engine.
        self.call_valid.next = self.send_slot.get.val()
            | self.send_slot.sent.val()
            | self.send_slot.give_back.val()
            | self.ending.call_valid.val();
        self.call_op.next = 0.into();
        self.call_in_progress.next = self.ending.call_in_progress.val();
        self.call_awaits.next = self.ending.call_awaits.val();
        self.call_reading.next = self.ending.call_reading.val();
        self.call_answered.next = self.ending.call_answered.val();
        self.call_control_pending.next = 0.into();
        if self.send_slot.ends_send_slot.val() {
            self.call_op.next = self.ending.call_op.val();
        } else if self.send_slot.sent.val() {
            self.call_op.next = self.op_sent.val();
            self.call_control_pending.next = self.control_pending.val();
        } else if self.send_slot.give_back.val() {
            self.call_op.next = self.op_sent.val();
        }
        self.desc_start.next = self.opening.start.val() | self.ending.reread.val();
        self.desc_op.next = 0.into();
        if self.ending.rereading.val() {
            self.desc_op.next = self.op_reread.val();
        } else if self.opening.reaches.val() {
            self.desc_op.next = self.op_reach.val();
        }
    }
}
