//! The send side of every VI: its work queue, progress and unannounced completions, with the send
//! engine's operations on them and the answers. Timing as in [`super::queue`]; operations are
//! exclusive.

use super::answer::Answers;
use super::progress::{SendProgress, Unannounced};
use super::queue::WorkQueue;
use crate::ifs::{AskerServer, ViSendServer};
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct SendSide {
    pub clock: Signal<In, Clock>,
    pub port: ViSendServer,
    // The VI offered by the ready ring.
    pub work_valid: Signal<In, Bit>,
    pub work_vi: Signal<In, Bits<10>>,
    pub work_ready: Signal<Out, Bit>,
    pub work_fresh: Signal<In, Bit>,
    /// A doorbell is in stage 2.
    pub posting: Signal<In, Bit>,
    // Acknowledged sends, see [`super::acked`].
    pub acked_valid: Signal<In, Bit>,
    pub acked_vi: Signal<In, Bits<10>>,
    pub acked_left: Signal<In, Bit>,
    pub acked_ready: Signal<Out, Bit>,
    pub read_address: Signal<In, Bits<10>>,
    pub write_address: Signal<In, Bits<10>>,
    /// The engine's operation is in stage 2; it is a COMPLETE that was told in stage 1 (`early`, a pulse),
    /// and the call may be another one by now. The call is a COMPLETE: it needs no answer.
    pub at: Signal<In, Bit>,
    pub at_early: Signal<In, Bit>,
    pub early: Signal<In, Bit>,
    pub needs_nothing: Signal<Out, Bit>,
    // The VI in stage 2, as in `super::lifecycle`.
    pub state: Signal<In, Bits<2>>,
    pub control_pending: Signal<In, Bits<3>>,
    pub config_word: Signal<In, Bits<64>>,
    pub connection_word: Signal<In, Bits<40>>,
    pub refuse_reason: Signal<In, Bits<8>>,
    // Other operations.
    /// Empties everything / forgets progress and message numbers.
    pub clear: Signal<In, Bit>,
    pub restart: Signal<In, Bit>,
    pub post: Signal<In, Bit>,
    /// A push with data was judged: the engine has it (or its token is posted).
    pub push_judged: Signal<In, Bit>,
    pub push_inline: Signal<In, Bit>,
    pub push_slot: Signal<In, Bits<3>>,
    pub push_vi: Signal<In, Bits<10>>,
    /// Of the VI in stage 1: the queue is empty, and nothing is in progress, awaited or answered.
    pub coming_idle: Signal<Out, Bit>,
    pub coming_full: Signal<Out, Bit>,
    /// The VI in stage 1. In stage 2: the engine held it then or the ring offered it, or the engine could
    /// not take a push / pushes might soon be taken.
    pub coming_vi: Signal<In, Bits<10>>,
    pub blocked: Signal<Out, Bit>,
    pub open: Signal<Out, Bit>,
    /// The engine is done with a push: the VI may be scheduled again.
    pub releases: Signal<Out, Bit>,
    pub token: Signal<In, Bits<47>>,
    /// A ViAck arrived.
    pub acknowledge: Signal<In, Bit>,
    /// The receive engine's operations on this side.
    pub asker: AskerServer,
    /// What the peer asked for is forgotten.
    pub forget_answer: Signal<In, Bit>,
    /// The completions are taken for an announcement / `amount` of them is given back.
    pub take: Signal<In, Bit>,
    pub back: Signal<In, Bit>,
    pub amount: Signal<In, Bits<32>>,
    // What the engine's operation means for the rest of the VI.
    pub completes: Signal<Out, Bit>,
    /// The completion is to be reported.
    pub report: Signal<Out, Bit>,
    pub look_again: Signal<Out, Bit>,
    /// Owed bits that were sent or forgotten.
    pub sent: Signal<Out, Bits<3>>,
    pub stops: Signal<Out, Bit>,
    pub refuses: Signal<Out, Bit>,
    /// Reason 7:0, detail 15:8, queue 16, status 36:17.
    pub stop_word: Signal<Out, Bits<37>>,
    pub awaiting: Signal<Out, Bit>,
    pub acked: Signal<Out, Bit>,
    /// An RDMA read has placed some bytes.
    pub partial: Signal<Out, Bit>,
    /// Something is being sent, awaited or owed.
    pub busy: Signal<Out, Bit>,
    /// After this operation a Connected VI has something to send.
    pub can_send: Signal<Out, Bit>,
    /// It has, as soon as something is posted.
    pub may_send: Signal<Out, Bit>,
    /// Something is not reported; how much; the event queue (bit 8: none).
    pub some: Signal<Out, Bit>,
    pub count: Signal<Out, Bits<32>>,
    pub event_queue: Signal<Out, Bits<9>>,
    work_queue: WorkQueue,
    progress: SendProgress,
    answers: Answers,
    unannounced: Unannounced,
    blocked_now: DFF<Bit>,
    open_now: DFF<Bit>,
    // The call: it stays until it is told, and is used two cycles after it came at the earliest. Operation,
    // one-hot.
    call_op: DFF<Bits<10>>,
    in_progress: DFF<Bit>,
    offset: DFF<Bits<19>>,
    fragment: DFF<Bits<8>>,
    next_valid: DFF<Bit>,
    given_token: DFF<Bits<42>>,
    reading: DFF<Bit>,
    answered: DFF<Bit>,
    control_pending_at: DFF<Bits<3>>,
    refuse: DFF<Bit>,
    stop_word_at: DFF<Bits<37>>,
    op: Signal<Local, Bits<10>>,
    announcing: Signal<Local, Bit>,
    shown_token: Signal<Local, Bits<42>>,
    /// Shifted left by a number: one-hot.
    one: Number<10, 1>,
    op_complete: Number<4, 4>,
    complete_bit: Number<10, { 1 << 4 }>,
    is_connected: Signal<Local, Bit>,
    /// A POP needs a valid successor.
    lacks_next: Signal<Local, Bit>,
    /// Reliability bit 2: a popped send still has to wait for its ViAck.
    reception: Signal<Local, Bit>,
}

impl Logic for SendSide {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, blocked_now, open_now, call_op, in_progress, offset, fragment);
        dff_setup!(
            self,
            clock,
            next_valid,
            given_token,
            reading,
            answered,
            control_pending_at,
            refuse
        );
        dff_setup!(self, clock, stop_word_at);
        self.call_op.d.next = self.one.val() << self.port.op.val();
        clock!(self, clock, work_queue, progress, answers, unannounced);
        self.port.work_valid.next = self.work_valid.val();
        self.port.work_vi.next = bit_cast::<16, 10>(self.work_vi.val());
        self.work_ready.next = self.port.work_ready.val();
        self.port.work_fresh.next = self.work_fresh.val();
        self.port.posting.next = self.posting.val();
        self.port.acked_valid.next = self.acked_valid.val();
        self.port.acked_vi.next = bit_cast::<16, 10>(self.acked_vi.val());
        self.port.acked_left.next = self.acked_left.val();
        self.acked_ready.next = self.port.acked_ready.val();
        self.op.next = 0.into();
        if self.at.val() {
            self.op.next = self.call_op.q.val();
            if self.at_early.val() {
                self.op.next = self.complete_bit.val();
            }
        }
        self.completes.next = self.op.val().get_bit(4) | self.asker.complete.val();
        // A live VI (Connected or Error) with an event queue.
        self.announcing.next = (self.op.val().get_bit(4) | self.asker.complete.val())
            & self.state.val().get_bit(1)
            & (!self.config_word.val().get_bit(33));
        self.report.next = self.announcing.val();
        self.reception.next = self.config_word.val().get_bit(8);
        self.is_connected.next = self.state.val().get_bit(1) & (!self.state.val().get_bit(0));
        self.needs_nothing.next = self.port.op.val() == self.op_complete.val();
        self.releases.next = self.op.val().get_bit(8) | self.op.val().get_bit(9);
        self.lacks_next.next = self.work_queue.many.val() & (!self.next_valid.q.val());
        self.look_again.next = self.op.val().get_bit(1)
            | self.op.val().get_bit(3)
            | self.op.val().get_bit(4)
            | self.op.val().get_bit(6)
            | self.asker.complete.val()
            | self.asker.need.val()
            | self.op.val().get_bit(8)
            | self.op.val().get_bit(9)
            | (self.op.val().get_bit(2) & (!self.lacks_next.val()) & (!self.reception.val()));
        self.sent.next = 0.into();
        if self.op.val().get_bit(6) {
            self.sent.next = self.control_pending_at.q.val();
        }
        self.stops.next = self.op.val().get_bit(5);
        self.refuses.next = self.at.val() & self.refuse.q.val();
        self.stop_word.next = self.stop_word_at.q.val();

        // The call's arguments.
        self.in_progress.d.next = self.port.in_progress.val();
        self.offset.d.next = self.port.offset.val();
        self.fragment.d.next = self.port.fragment.val();
        self.next_valid.d.next = self.port.next_valid.val();
        self.given_token.d.next = bit_cast::<42, 16>(self.port.next_region.val())
            | (bit_cast::<42, 26>(self.port.next_offset.val()) << 16);
        self.reading.d.next = self.port.reading.val();
        self.answered.d.next = self.port.answered.val();
        self.control_pending_at.d.next = self.port.control_pending.val();
        self.refuse.d.next = self.port.refuse.val();
        self.stop_word_at.d.next = bit_cast::<37, 8>(self.port.reason.val())
            | (bit_cast::<37, 1>(self.port.queue.val().into()) << 16)
            | (bit_cast::<37, 20>(self.port.status.val().get_bits::<20>(0)) << 17);

        // The work queue.
        self.work_queue.read_address.next = self.read_address.val();
        self.work_queue.write_address.next = self.write_address.val();
        self.work_queue.post.next = self.post.val();
        self.work_queue.unpost.next = self.op.val().get_bit(8) & self.is_connected.val();
        self.work_queue.token.next = self.token.val();
        if self.op.val().get_bit(8) {
            self.work_queue.token.next = bit_cast::<47, 42>(self.given_token.q.val())
                | (bit_cast::<47, 5>(self.fragment.q.val().get_bits::<5>(0)) << 42);
        }
        self.work_queue.pop.next = self.op.val().get_bit(2) | self.asker.pop.val();
        self.work_queue.next_valid.next = self.asker.next_valid.val();
        self.work_queue.next_token.next = self.asker.next_token.val();
        if self.at.val() {
            self.work_queue.next_valid.next = self.next_valid.q.val();
            self.work_queue.next_token.next = self.given_token.q.val();
        }
        self.asker.head.next = self.work_queue.head.val();
        self.asker.posted.next = self.work_queue.count.val();
        self.asker.need_next.next = self.work_queue.need_next.val();
        self.work_queue.clear.next = self.clear.val();

        // The message in progress.
        self.progress.read_address.next = self.read_address.val();
        self.progress.write_address.next = self.write_address.val();
        self.progress.restart.next = self.restart.val();
        self.progress.save.next = self.op.val().get_bit(1);
        self.progress.save_in_progress.next = self.in_progress.q.val() & self.at.val();
        self.progress.save_reading.next = self.reading.q.val();
        self.progress.place.next = self.asker.place.val();
        self.progress.place_offset.next = self.asker.offset.val();
        self.progress.read_over.next = self.asker.complete.val();
        self.progress.save_offset.next = self.offset.q.val();
        self.progress.save_fragment.next = self.fragment.q.val();
        self.progress.count.next = (self.op.val().get_bit(7) & self.in_progress.q.val())
            | (self.op.val().get_bit(9) & (!self.reception.val()));
        self.progress.popped.next = self.work_queue.popped.val();
        self.progress.await_ack.next = self.op.val().get_bit(3)
            | (self.op.val().get_bit(9) & self.reception.val() & self.is_connected.val());
        self.progress.keep_token.next = self.work_queue.popped.val() | self.op.val().get_bit(9);
        self.progress.kept_token.next = self.work_queue.head.val().get_bits::<42>(0);
        if self.op.val().get_bit(9) {
            self.progress.kept_token.next = self.given_token.q.val();
        }
        self.progress.acknowledge.next = self.acknowledge.val();
        self.progress.complete.next = self.op.val().get_bit(4);
        self.busy.next = self.progress.in_progress.val()
            | self.progress.awaiting.val()
            | self.progress.reading.val()
            | self.answers.pending.val();
        self.awaiting.next = self.progress.awaiting.val();
        self.acked.next = self.progress.acked.val();
        self.asker.reading.next = self.progress.reading.val();
        self.asker.placed.next = self.progress.offset.val();
        self.partial.next = self.progress.reading.val() & self.progress.offset.val().any();
        self.asker.total.next = self.progress.total.val();
        self.may_send.next = self.answers.pending.val()
            | ((!self.progress.awaiting.val()) & (!self.progress.reading.val()));
        self.can_send.next = self.answers.pending_after.val()
            | ((!self.progress.awaiting_after.val())
                & (!self.progress.reading_after.val())
                & self.work_queue.left.val());

        // The answer that is owed.
        self.answers.read_address.next = self.read_address.val();
        self.answers.write_address.next = self.write_address.val();
        self.answers.add.next = self.asker.need.val();
        self.answers.advance.next = self.op.val().get_bit(6) & self.answered.q.val();
        self.answers.forget.next = self.forget_answer.val();
        self.answers.new_address.next = self.asker.address.val();
        self.answers.new_handle.next = self.asker.handle.val();
        self.answers.new_left.next = self.asker.left.val();
        self.asker.answering.next = self.answers.pending.val();
        self.port.ctx_reading.next = self.progress.reading.val();
        self.port.ctx_answer.next = self.answers.pending.val();
        self.port.ctx_answer_address.next = self.answers.address.val();
        self.port.ctx_answer_handle.next = self.answers.handle.val();
        self.port.ctx_answer_left.next = self.answers.left.val();

        self.coming_full.next = self.work_queue.coming_full.val();
        self.coming_idle.next = self.work_queue.coming_empty.val()
            & (!self.progress.coming_busy.val())
            & (!self.answers.coming_pending.val());
        // A VI goes from the ring to the engine within one cycle, and gets into the ring by an operation, which
        // those on the same VI wait for: what is free of both here is so in stage 2. What else may come
        // between (a fence, a push) the engine's FIFO has room for.
        self.blocked_now.d.next = (!self.port.push_ready.val())
            | (self.work_valid.val() & (self.work_vi.val() == self.coming_vi.val()))
            | (self.port.holding.val()
                & (self.port.holding_vi.val().get_bits::<10>(0) == self.coming_vi.val()));
        self.blocked.next = self.blocked_now.q.val();
        self.open_now.d.next = self.port.push_open.val();
        self.open.next = self.open_now.q.val();
        self.port.push_valid.next = self.push_judged.val();
        self.port.push_inline.next = self.push_inline.val();
        self.port.push_slot.next = self.push_slot.val();
        self.port.push_vi.next = bit_cast::<16, 10>(self.push_vi.val());
        self.port.push_token.next = self.token.val();

        // Unannounced completions.
        self.unannounced.read_address.next = self.read_address.val();
        self.unannounced.write_address.next = self.write_address.val();
        self.unannounced.clear.next = self.clear.val() | self.take.val();
        self.unannounced.raise.next = self.announcing.val();
        self.unannounced.back.next = self.back.val();
        self.unannounced.amount.next = self.amount.val();
        self.some.next = self.unannounced.some.val();
        self.count.next = self.unannounced.count.val();
        self.event_queue.next = self.config_word.val().get_bits::<9>(25);

        // The answer.
        self.port.done.next = self.early.val() | (self.at.val() & (!self.at_early.val()));
        self.port.need_next.next = self.lacks_next.val();
        self.port.ctx_state.next = self.state.val();
        self.port.ctx_domain.next = bit_cast::<8, 6>(self.config_word.val().get_bits::<6>(0));
        self.port.ctx_tag.next = self.config_word.val().get_bits::<16>(9);
        self.port.ctx_reliability.next = self.config_word.val().get_bits::<3>(6);
        self.port.ctx_peer.next = bit_cast::<8, 6>(self.connection_word.val().get_bits::<6>(0));
        self.port.ctx_peer_vi.next = self.connection_word.val().get_bits::<16>(6);
        self.port.ctx_connection.next = self.connection_word.val().get_bits::<16>(22);
        self.port.ctx_max_transfer.next =
            bit_cast::<20, 19>(self.config_word.val().get_bits::<19>(43));
        self.port.ctx_allows.next = self.connection_word.val().get_bits::<2>(38);
        self.shown_token.next = self.work_queue.head.val().get_bits::<42>(0);
        if self.progress.awaiting.val() {
            self.shown_token.next = self.progress.last_popped.val();
        }
        self.port.ctx_region.next = self.shown_token.val().get_bits::<16>(0);
        self.port.ctx_offset.next = self.shown_token.val().get_bits::<26>(16);
        self.port.ctx_segments.next = self.work_queue.head.val().get_bits::<5>(42);
        self.port.ctx_count.next = self.work_queue.count.val();
        self.port.ctx_in_progress.next = self.progress.in_progress.val();
        self.port.ctx_progress.next = self.progress.offset.val();
        self.port.ctx_message.next = self.progress.message.val();
        self.port.ctx_fragment.next = self.progress.fragment.val();
        self.port.ctx_awaiting.next = self.progress.awaiting.val();
        self.port.ctx_acked.next = self.progress.acked.val();
        self.port.ctx_control_pending.next = self.control_pending.val();
        self.port.ctx_refuse_reason.next = self.refuse_reason.val();
    }
}
