//! What happens to the frame at the head: the state machine of the receive engine.
//!
//! ```text
//! Idle -> Get -> Match -> Choose -> [Resolve -> ... ->] Check
//!   -> Save (message goes on) or Pop (last frame) -> Wait -> Release -> Idle
//!   ViAck: Choose -> Acked -> Release;  ViRefuse, Fin: Choose -> Fail -> Wait -> Stop -> Release
//!   Message: Idle -> Message -> [Refuse ->] Release
//!   error: Fail -> [Pop ->] Wait -> [Stop ->] Release;   dropped: Gap -> [Save -> Wait ->] Release
//! ```

use super::state::RecvState;
use super::verdict::Cause;
use crate::leaf::Number;
use nic_regs::counter::Counter;
use nic_regs::frame::{MESSAGE_BYTES, Type};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Control {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub pause: Signal<In, Bit>,
    /// The prefetcher is not at the fence.
    pub ready: Signal<In, Bit>,
    // The frame.
    pub valid: Signal<In, Bit>,
    pub kind: Signal<In, Bits<8>>,
    pub length: Signal<In, Bits<13>>,
    pub first: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    // What it does (see `super::judge`).
    pub unmatched: Signal<In, Bit>,
    pub dropped: Signal<In, Bit>,
    pub acked: Signal<In, Bit>,
    pub gap: Signal<In, Bit>,
    pub stops: Signal<In, Bit>,
    pub takes: Signal<In, Bit>,
    pub breaks: Signal<In, Bit>,
    pub judged: Signal<In, Bits<4>>,
    pub busy: Signal<In, Bit>,
    pub unreliable: Signal<In, Bit>,
    /// Length of the whole message; total of the descriptor's segments; posted count above 1.
    pub whole: Signal<In, Bits<21>>,
    pub total: Signal<In, Bits<20>>,
    pub more: Signal<In, Bit>,
    /// The descriptor is at hand.
    pub found: Signal<In, Bit>,
    // The prefetcher.
    pub serving: Signal<In, Bit>,
    pub loaded: Signal<In, Bit>,
    pub outcome: Signal<In, Bits<3>>,
    pub unreached: Signal<In, Bit>,
    pub want: Signal<Out, Bit>,
    pub want_next: Signal<Out, Bit>,
    /// Descriptor, or its Next, are the loader's results and not the shelf's.
    pub foreign: Signal<Out, Bit>,
    pub renewed: Signal<Out, Bit>,
    /// Pulse: the shelf's oldest descriptor left the queue; from then on until the frame's end.
    pub take: Signal<Out, Bit>,
    pub hold: Signal<Out, Bit>,
    /// Pulse: a descriptor was used up, others may be posted.
    pub hint: Signal<Out, Bit>,
    // Calls to the VI table.
    pub done: Signal<In, Bit>,
    pub need_next: Signal<In, Bit>,
    pub get: Signal<Out, Bit>,
    pub save: Signal<Out, Bit>,
    pub pop: Signal<Out, Bit>,
    pub ack: Signal<Out, Bit>,
    pub stop: Signal<Out, Bit>,
    pub in_progress: Signal<Out, Bit>,
    // Payload and completion.
    pub scatter: Signal<Out, Bit>,
    pub cancel: Signal<Out, Bit>,
    pub finish: Signal<Out, Bit>,
    /// The payload was read, the status is in the queue: the frame is not needed any more.
    pub handed: Signal<In, Bit>,
    /// Everything of this and all earlier frames is accepted and announced.
    pub quiet: Signal<In, Bit>,
    /// See [`Cause`].
    pub cause: Signal<Out, Bits<4>>,
    pub partial: Signal<Out, Bit>,
    /// The cause completes the descriptor (see `super::verdict`).
    pub completes: Signal<In, Bit>,
    // Messages.
    pub message: Signal<Out, Bit>,
    pub message_done: Signal<In, Bit>,
    pub message_refused: Signal<In, Bit>,
    pub refuse: Signal<Out, Bit>,
    pub give_back: Signal<Out, Bit>,
    pub idle: Signal<Out, Bit>,
    pub matched: Signal<Out, Bit>,
    pub empty_placed: Signal<Out, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    state: DFF<RecvState>,
    counts_out: DFF<Bits<64>>,
    broken: DFF<Bit>,
    partial_at: DFF<Bit>,
    in_progress_at: DFF<Bit>,
    stopping: DFF<Bit>,
    foreign_at: DFF<Bit>,
    renewed_at: DFF<Bit>,
    hold_at: DFF<Bit>,
    cause_at: DFF<Bits<4>>,
    is_message: Signal<Local, Bit>,
    starts: Signal<Local, Bit>,
    too_long: Signal<Local, Bit>,
    some: Signal<Local, Bit>,
    popped: Signal<Local, Bit>,
    kind_message: Number<8, { Type::Message as u64 }>,
    message_bytes: Number<13, { MESSAGE_BYTES as u64 }>,
    cause_length: Number<4, { Cause::Length as u64 }>,
    count_unmatched: Number<64, { 1 << Counter::Unmatched as u32 }>,
    count_empty: Number<64, { 1 << Counter::UnreliableEmpty as u32 }>,
    count_gap: Number<64, { 1 << Counter::UnreliableGap as u32 }>,
    count_refused: Number<64, { 1 << Counter::MessagesRefused as u32 }>,
}

impl Logic for Control {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, counts_out, broken, partial_at, in_progress_at, stopping);
        dff_setup!(self, clock, foreign_at, renewed_at, hold_at, cause_at);
        self.idle.next = self.state.q.val() == RecvState::Idle;
        self.counts.next = self.counts_out.q.val();
        self.counts_out.d.next = 0.into();
        self.is_message.next = self.kind.val() == self.kind_message.val();
        self.starts.next = (self.state.q.val() == RecvState::Idle)
            & self.valid.val()
            & self.ready.val()
            & (!self.pause.val())
            & (self.quiet.val() | (!self.is_message.val()));
        self.too_long.next = self.whole.val() > bit_cast::<21, 20>(self.total.val());
        self.some.next = self.length.val().any();

        // The prefetcher.
        self.want.next = (self.state.q.val() == RecvState::Resolve) & (!self.found.val());
        self.want_next.next = self.state.q.val() == RecvState::Reread;
        self.foreign.next = self.foreign_at.q.val();
        self.renewed.next = self.renewed_at.q.val();
        self.hold.next = self.hold_at.q.val();
        self.popped.next =
            (self.state.q.val() == RecvState::Pop) & self.done.val() & (!self.need_next.val());
        self.take.next = self.popped.val() & (!self.foreign_at.q.val());
        self.hint.next = self.popped.val() & self.more.val();

        // Calls.
        self.get.next =
            (self.starts.val() & (!self.is_message.val())) | (self.state.q.val() == RecvState::Get);
        self.save.next = self.state.q.val() == RecvState::Save;
        self.pop.next = self.state.q.val() == RecvState::Pop;
        self.ack.next = self.state.q.val() == RecvState::Acked;
        self.stop.next = self.state.q.val() == RecvState::Stop;
        self.in_progress.next = self.in_progress_at.q.val();

        // Payload and completion.
        self.scatter.next = (self.state.q.val() == RecvState::Choose)
            & self.takes.val()
            & self.found.val()
            & self.some.val();
        self.cancel.next = (self.state.q.val() == RecvState::Check) & self.too_long.val();
        self.matched.next = (self.state.q.val() == RecvState::Check) & (!self.too_long.val());
        self.empty_placed.next = (self.state.q.val() == RecvState::Check)
            & (!self.too_long.val())
            & (!self.some.val())
            & self.last.val();
        self.finish.next = self.popped.val();
        self.cause.next = self.cause_at.q.val();
        self.partial.next = self.partial_at.q.val();
        self.message.next = self.state.q.val() == RecvState::Message;
        self.refuse.next = self.state.q.val() == RecvState::Refuse;
        self.give_back.next = self.state.q.val() == RecvState::Release;

        match self.state.q.val() {
            RecvState::Idle => {
                self.in_progress_at.d.next = false;
                self.stopping.d.next = false;
                self.foreign_at.d.next = false;
                self.renewed_at.d.next = false;
                self.hold_at.d.next = false;
                self.cause_at.d.next = 0.into();
                if self.starts.val() {
                    self.state.d.next = RecvState::Get;
                    if self.is_message.val() {
                        self.state.d.next = RecvState::Message;
                        if self.length.val() != self.message_bytes.val() {
                            self.counts_out.d.next = self.count_unmatched.val();
                            self.state.d.next = RecvState::Release;
                        }
                    }
                }
            }
            RecvState::Get => {
                if self.done.val() {
                    self.state.d.next = RecvState::Match;
                }
            }
            RecvState::Match => {
                self.state.d.next = RecvState::Choose;
            }
            RecvState::Choose => {
                self.cause_at.d.next = self.judged.val();
                self.broken.d.next = self.breaks.val();
                self.partial_at.d.next =
                    (!self.first.val()) | (self.busy.val() & (!self.unreliable.val()));
                self.state.d.next = RecvState::Release;
                if self.unmatched.val() {
                    self.counts_out.d.next = self.count_unmatched.val();
                } else if self.dropped.val() {
                    self.counts_out.d.next = self.count_empty.val();
                } else if self.acked.val() {
                    self.state.d.next = RecvState::Acked;
                } else if self.gap.val() {
                    self.state.d.next = RecvState::Gap;
                } else if self.stops.val() | (self.breaks.val() & self.found.val()) {
                    self.state.d.next = RecvState::Fail;
                } else if self.takes.val() & self.found.val() {
                    self.state.d.next = RecvState::Check;
                } else if self.takes.val() | self.breaks.val() {
                    self.state.d.next = RecvState::Resolve;
                }
            }
            RecvState::Resolve => {
                if self.loaded.val() {
                    self.state.d.next = RecvState::Match;
                    if self.outcome.val() != 0 {
                        self.foreign_at.d.next = true;
                        self.state.d.next = RecvState::Fail;
                        if (!self.broken.q.val()) | self.unreached.val() {
                            self.cause_at.d.next = bit_cast::<4, 3>(self.outcome.val());
                        }
                    }
                } else if self.found.val() & (!self.serving.val()) {
                    // What was fetched ahead came just now.
                    self.state.d.next = RecvState::Choose;
                }
            }
            RecvState::Check => {
                self.in_progress_at.d.next = true;
                self.state.d.next = RecvState::Save;
                if self.too_long.val() {
                    self.cause_at.d.next = self.cause_length.val();
                    self.state.d.next = RecvState::Fail;
                } else if self.last.val() {
                    self.state.d.next = RecvState::Pop;
                }
            }
            RecvState::Pop => {
                if self.popped.val() {
                    self.hold_at.d.next = true;
                    self.state.d.next = RecvState::Wait;
                } else if self.done.val() {
                    self.state.d.next = RecvState::Reread;
                }
            }
            RecvState::Reread => {
                if self.loaded.val() {
                    self.renewed_at.d.next = true;
                    self.state.d.next = RecvState::Pop;
                }
            }
            RecvState::Save => {
                if self.done.val() {
                    self.state.d.next = RecvState::Wait;
                }
            }
            RecvState::Acked => {
                if self.done.val() {
                    if self.need_next.val() {
                        self.counts_out.d.next = self.count_unmatched.val();
                    }
                    self.state.d.next = RecvState::Release;
                }
            }
            RecvState::Fail => {
                self.stopping.d.next = !(self.completes.val() & self.unreliable.val());
                self.state.d.next = RecvState::Wait;
                if self.completes.val() {
                    self.state.d.next = RecvState::Pop;
                }
            }
            RecvState::Wait => {
                if self.stopping.q.val() {
                    if self.quiet.val() {
                        self.state.d.next = RecvState::Stop;
                    }
                } else if self.handed.val() {
                    self.state.d.next = RecvState::Release;
                }
            }
            RecvState::Stop => {
                if self.done.val() {
                    self.state.d.next = RecvState::Release;
                }
            }
            RecvState::Gap => {
                self.counts_out.d.next = self.count_gap.val();
                self.state.d.next = RecvState::Release;
                if self.busy.val() {
                    self.state.d.next = RecvState::Save;
                }
            }
            RecvState::Message => {
                if self.message_done.val() {
                    self.state.d.next = RecvState::Release;
                    if self.message_refused.val() {
                        self.counts_out.d.next = self.count_refused.val();
                        self.state.d.next = RecvState::Refuse;
                    }
                }
            }
            RecvState::Refuse => {
                self.state.d.next = RecvState::Release;
            }
            _ => {
                self.state.d.next = RecvState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = RecvState::Idle;
            self.counts_out.d.next = 0.into();
        }
    }
}
