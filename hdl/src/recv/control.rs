//! What happens to the frame at the head: the state machine of the receive engine.
//!
//! ```text
//! Idle -> Get -> [Match ->] Choose -> [Resolve -> ... ->] Close -> Idle
//!   ViAck: Choose -> Acked -> Release -> Idle;  ViRefuse, Fin: Choose -> Close -> Idle
//!   Message: Idle -> Message -> [Refuse ->] Release
//!   RDMA write: Get -> Match -> Choose -> Range -> [Over ->] Close -> Idle
//!     with immediate data: Range -> Choose -> [Resolve -> ... ->] Close -> Idle
//!   read request: Get -> Match -> Choose -> Range -> Over -> Acked -> Release -> Idle
//!   read response: Get -> Match -> Choose -> Reply -> Close -> Idle
//!   dropped: Choose -> Release -> Idle, or Choose -> Close -> Idle
//! ```
//! What Close does, [`super::close`] says. The frame behind one that is given back goes right on to Get,
//! unless it has to be alone, has an RDMA header, or somebody waits for Idle (a fence).

use super::state::RecvState;
use crate::desc::Cause;
use crate::leaf::Number;
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
    /// See [`super::frame_fifo`].
    pub aged: Signal<In, Bit>,
    pub follows: Signal<In, Bit>,
    pub is_message: Signal<In, Bit>,
    pub is_request: Signal<In, Bit>,
    /// It waits for everything before it: a message for its event; a response because the VI still
    /// counts as reading until the completion is announced.
    pub alone: Signal<In, Bit>,
    /// It has data.
    pub some: Signal<In, Bit>,
    pub is_write: Signal<In, Bit>,
    pub has_immediate: Signal<In, Bit>,
    pub first: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    // What it does (see `super::check`).
    pub dropped: Signal<In, Bit>,
    pub acked: Signal<In, Bit>,
    pub gap: Signal<In, Bit>,
    pub stops: Signal<In, Bit>,
    pub takes: Signal<In, Bit>,
    pub breaks: Signal<In, Bit>,
    pub writes: Signal<In, Bit>,
    pub replies: Signal<In, Bit>,
    pub partly: Signal<In, Bit>,
    pub judged: Signal<In, Bits<4>>,
    pub busy: Signal<In, Bit>,
    pub unreliable: Signal<In, Bit>,
    /// The receive queue is empty.
    pub empty: Signal<In, Bit>,
    /// The message is longer than the descriptor's segments: known in Choose.
    pub too_long: Signal<In, Bit>,
    /// What is too long for it may reach into memory that is not allowed.
    pub short: Signal<In, Bit>,
    /// The descriptor is cached.
    pub found: Signal<In, Bit>,
    // The RDMA header and its range, see `super::range`.
    pub load: Signal<Out, Bit>,
    pub header_ready: Signal<In, Bit>,
    pub ask: Signal<Out, Bit>,
    pub answered: Signal<In, Bit>,
    pub granted: Signal<In, Bit>,
    pub refusal: Signal<In, Bits<4>>,
    /// An RDMA write is over: the SAVE does what a completion would.
    pub over: Signal<Out, Bit>,
    /// The descriptor that is wanted tells of an RDMA write.
    pub telling: Signal<Out, Bit>,
    // The descriptor of a read, see `super::reply`.
    pub reply: Signal<Out, Bit>,
    pub replied: Signal<In, Bit>,
    pub reply_good: Signal<In, Bit>,
    pub reply_cause: Signal<In, Bits<4>>,
    // The prefetcher.
    pub serving: Signal<In, Bit>,
    pub loaded: Signal<In, Bit>,
    pub outcome: Signal<In, Bits<3>>,
    pub unreached: Signal<In, Bit>,
    pub want: Signal<Out, Bit>,
    /// The descriptor is the loader's result and not the descriptor cache's.
    pub foreign: Signal<Out, Bit>,
    // Calls to the VI table: pulses, and their answer; a `get` is under way.
    pub done: Signal<In, Bit>,
    pub get: Signal<Out, Bit>,
    pub getting: Signal<Out, Bit>,
    pub ack: Signal<Out, Bit>,
    pub in_progress: Signal<Out, Bit>,
    // The frame's end: commands to `super::close`, and its answer.
    pub save: Signal<Out, Bit>,
    pub pop: Signal<Out, Bit>,
    pub fail: Signal<Out, Bit>,
    pub closed: Signal<In, Bit>,
    /// The status of an earlier frame is not in the queue yet.
    pub finishing: Signal<In, Bit>,
    // Payload and completion.
    pub scatter: Signal<Out, Bit>,
    /// Everything of this and all earlier frames is accepted and announced.
    pub quiet: Signal<In, Bit>,
    /// See [`Cause`].
    pub cause: Signal<Out, Bits<4>>,
    pub partial: Signal<Out, Bit>,
    // Messages, see `super::message_sender`.
    pub message: Signal<Out, Bit>,
    pub message_over: Signal<In, Bit>,
    pub give_back: Signal<Out, Bit>,
    pub idle: Signal<Out, Bit>,
    /// No frame is in flight, or its context is not known yet: what the last one left is forgotten.
    pub clear: Signal<Out, Bit>,
    pub matched: Signal<Out, Bit>,
    // For `super::counter_events`.
    pub choosing: Signal<Out, Bit>,
    pub range_refused: Signal<Out, Bit>,
    state: DFF<RecvState>,
    broken: DFF<Bit>,
    partial_at: DFF<Bit>,
    in_progress_at: DFF<Bit>,
    foreign_at: DFF<Bit>,
    over_at: DFF<Bit>,
    telling_at: DFF<Bit>,
    /// The descriptor is fetched once more.
    anew: DFF<Bit>,
    may_chain: DFF<Bit>,
    cause_at: DFF<Bits<4>>,
    settled: Signal<Local, Bit>,
    starts: Signal<Local, Bit>,
    chains: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,
    again: Signal<Local, Bit>,
    places: Signal<Local, Bit>,
    cause_length: Number<4, { Cause::Length as u64 }>,
    cause_empty: Number<4, { Cause::ReceiveEmpty as u64 }>,
    cause_protection: Number<4, { Cause::Protection as u64 }>,
}

impl Logic for Control {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, broken, partial_at, in_progress_at);
        dff_setup!(self, clock, foreign_at, cause_at, over_at, telling_at, anew, may_chain);
        self.idle.next = self.state.q.val() == RecvState::Idle;
        self.choosing.next = self.state.q.val() == RecvState::Choose;
        self.starts.next = (self.state.q.val() == RecvState::Idle)
            & self.valid.val()
            & self.ready.val()
            & (!self.pause.val())
            & (self.quiet.val() | (!self.alone.val()));
        self.give_back.next = (self.state.q.val() == RecvState::Release)
            | ((self.state.q.val() == RecvState::Close) & self.closed.val());
        // As of the cycle before: it does not change in the cycle in which a frame is given back,
        // but for a frame that comes just then, which starts from Idle.
        self.may_chain.d.next = self.follows.val() & self.ready.val();
        self.chains.next = self.give_back.val() & self.may_chain.q.val() & (!self.pause.val());
        self.getting.next = self.state.q.val() == RecvState::Get;
        self.clear.next = self.idle.val() | self.getting.val();
        self.settled.next = self.aged.val() & self.header_ready.val() & (!self.finishing.val());
        self.fits.next = (self.state.q.val() == RecvState::Choose)
            & self.takes.val()
            & (!self.telling_at.q.val())
            & self.found.val()
            & (!self.too_long.val());

        // The prefetcher. What was not allowed when a descriptor was fetched may be by now.
        self.again.next = self.too_long.val() & self.short.val() & (!self.anew.q.val());
        self.want.next =
            (self.state.q.val() == RecvState::Resolve) & ((!self.found.val()) | self.anew.q.val());
        self.foreign.next = self.foreign_at.q.val();

        // Calls.
        self.get.next = (self.starts.val() & (!self.is_message.val())) | self.chains.val();
        self.save.next = self.fits.val() & (!self.last.val());
        self.pop.next = self.fits.val() & self.last.val();
        self.fail.next = false;
        self.ack.next = false;
        self.in_progress.next = self.in_progress_at.q.val();

        // The range of an RDMA.
        self.load.next = self.starts.val() & (self.is_write.val() | self.is_request.val());
        self.ask.next = self.state.q.val() == RecvState::Range;
        self.over.next = self.over_at.q.val();
        self.telling.next = self.telling_at.q.val();
        self.reply.next = self.state.q.val() == RecvState::Reply;
        self.range_refused.next = self.ask.val() & self.answered.val() & (!self.granted.val());
        self.places.next =
            (self.ask.val() & self.answered.val() & self.granted.val() & self.is_write.val())
                | (self.reply.val() & self.replied.val() & self.reply_good.val());

        // Payload and completion.
        self.scatter.next = self.some.val() & (self.places.val() | self.fits.val());
        self.matched.next = self.places.val() | self.fits.val();
        self.cause.next = self.cause_at.q.val();
        self.partial.next = self.partial_at.q.val() & (!self.telling_at.q.val());
        self.message.next = self.starts.val() & self.is_message.val();
        if self.clear.val() {
            self.in_progress_at.d.next = false;
            self.foreign_at.d.next = false;
            self.over_at.d.next = false;
            self.telling_at.d.next = false;
            self.anew.d.next = false;
            self.cause_at.d.next = 0.into();
        }

        match self.state.q.val() {
            RecvState::Idle => {
                if self.starts.val() {
                    self.state.d.next = RecvState::Get;
                    if self.is_message.val() {
                        self.state.d.next = RecvState::Message;
                    }
                }
            }
            RecvState::Get => {
                if self.done.val() {
                    self.state.d.next = RecvState::Match;
                    if self.settled.val() {
                        self.state.d.next = RecvState::Choose;
                    }
                }
            }
            RecvState::Match => {
                if self.settled.val() {
                    self.state.d.next = RecvState::Choose;
                }
            }
            RecvState::Choose => {
                self.in_progress_at.d.next = self.takes.val();
                self.cause_at.d.next = self.judged.val();
                self.broken.d.next = self.breaks.val();
                self.partial_at.d.next = self.partly.val();
                self.state.d.next = RecvState::Release;
                if self.telling_at.q.val() {
                    // The data of an RDMA write is on its way, now its immediate data.
                    self.state.d.next = RecvState::Resolve;
                    if self.empty.val() {
                        self.cause_at.d.next = self.cause_empty.val();
                        self.fail.next = !self.unreliable.val();
                        self.save.next = self.unreliable.val();
                        self.state.d.next = RecvState::Close;
                    } else if self.found.val() {
                        self.pop.next = true;
                        self.state.d.next = RecvState::Close;
                    }
                } else if (self.dropped.val() | self.gap.val()) & self.busy.val() {
                    // The rest of the message in progress is dropped too.
                    self.save.next = true;
                    self.state.d.next = RecvState::Close;
                } else if self.acked.val() {
                    self.ack.next = true;
                    self.state.d.next = RecvState::Acked;
                } else if self.writes.val() {
                    self.state.d.next = RecvState::Range;
                } else if self.replies.val() {
                    self.state.d.next = RecvState::Reply;
                } else if self.stops.val() | (self.breaks.val() & self.found.val()) {
                    self.fail.next = true;
                    self.state.d.next = RecvState::Close;
                } else if self.takes.val() & self.found.val() & (!self.again.val()) {
                    self.state.d.next = RecvState::Close;
                    self.fail.next = self.too_long.val();
                    if self.too_long.val() & self.short.val() {
                        self.cause_at.d.next = self.cause_protection.val();
                    } else if self.too_long.val() {
                        self.cause_at.d.next = self.cause_length.val();
                    }
                } else if self.takes.val() | self.breaks.val() {
                    self.anew.d.next = self.found.val();
                    self.state.d.next = RecvState::Resolve;
                }
            }
            RecvState::Range => {
                self.in_progress_at.d.next = self.granted.val() & (!self.last.val());
                if self.answered.val() {
                    self.state.d.next = RecvState::Close;
                    if !self.granted.val() {
                        self.cause_at.d.next = self.refusal.val();
                        self.fail.next = !self.unreliable.val();
                        self.save.next = self.unreliable.val();
                    } else if self.is_request.val() {
                        self.state.d.next = RecvState::Over;
                    } else if self.last.val() & self.has_immediate.val() {
                        self.telling_at.d.next = true;
                        self.state.d.next = RecvState::Choose;
                    } else if self.last.val() {
                        self.over_at.d.next = true;
                        self.state.d.next = RecvState::Over;
                    } else {
                        self.save.next = true;
                    }
                }
            }
            RecvState::Over => {
                if self.quiet.val() {
                    self.save.next = !self.is_request.val();
                    self.state.d.next = RecvState::Close;
                    if self.is_request.val() {
                        self.ack.next = true;
                        self.state.d.next = RecvState::Acked;
                    }
                }
            }
            RecvState::Reply => {
                if self.replied.val() {
                    self.cause_at.d.next = self.reply_cause.val();
                    self.fail.next = !self.reply_good.val();
                    self.pop.next = self.reply_good.val() & self.last.val();
                    self.save.next = self.reply_good.val() & (!self.last.val());
                    self.state.d.next = RecvState::Close;
                }
            }
            RecvState::Resolve => {
                if self.loaded.val() {
                    self.state.d.next = RecvState::Match;
                    if self.outcome.val().any() {
                        self.foreign_at.d.next = true;
                        self.fail.next = true;
                        self.state.d.next = RecvState::Close;
                        if (!self.broken.q.val()) | self.unreached.val() {
                            self.cause_at.d.next = bit_cast::<4, 3>(self.outcome.val());
                        }
                    }
                } else if self.found.val() & (!self.serving.val()) & (!self.anew.q.val()) {
                    // What was fetched ahead came just now.
                    self.state.d.next = RecvState::Choose;
                }
            }
            RecvState::Acked => {
                if self.done.val() {
                    self.state.d.next = RecvState::Release;
                }
            }
            RecvState::Close => {
                if self.closed.val() {
                    self.state.d.next = RecvState::Idle;
                }
            }
            RecvState::Message => {
                if self.message_over.val() {
                    self.state.d.next = RecvState::Release;
                }
            }
            _ => {
                self.state.d.next = RecvState::Idle;
            }
        }
        if self.chains.val() {
            self.state.d.next = RecvState::Get;
        }
        if self.reset.val() {
            self.state.d.next = RecvState::Idle;
        }
    }
}
