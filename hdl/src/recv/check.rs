//! What a frame does to its VI: the rules of contract 5.1, 5.2, 5.4, 11.2, 12.2 and 12.4 that need neither a
//! descriptor nor the region table.
//! It follows the comparisons of [`super::Port`], which it takes in the cycle in which the context is
//! known, by a cycle: registers hold what the frame does if its length fits, what it does if not, and
//! (the last to be known) whether it does.

use crate::desc::Cause;
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Check {
    pub clock: Signal<In, Clock>,
    /// See [`super::frame_fifo`].
    pub kinds: Signal<In, Bits<8>>,
    pub first: Signal<In, Bit>,
    /// Unreliable: fragment number 0.
    pub opening: Signal<In, Bit>,
    pub ours: Signal<In, Bit>,
    pub level_fits: Signal<In, Bit>,
    pub unreliable: Signal<In, Bit>,
    pub reception: Signal<In, Bit>,
    /// A message is in progress; this frame continues it; it does not fit its length.
    pub busy: Signal<In, Bit>,
    /// The message in progress is an RDMA write.
    pub busy_write: Signal<In, Bit>,
    pub continues: Signal<In, Bit>,
    pub misfit: Signal<In, Bit>,
    pub inconsistent: Signal<In, Bit>,
    /// A read's request that is too long or one too many, or a response that does not fit its read.
    pub bad_read: Signal<In, Bit>,
    /// Bytes of the message are placed.
    pub placed: Signal<In, Bit>,
    /// The receive queue is empty.
    pub empty: Signal<In, Bit>,
    // At most one of these:
    pub unmatched: Signal<Out, Bit>,
    pub acked: Signal<Out, Bit>,
    /// Unreliable: dropped, and with it the rest of the message.
    pub gap: Signal<Out, Bit>,
    /// Unreliable: no receive descriptor.
    pub dropped: Signal<Out, Bit>,
    /// The VI stops with `cause`, no descriptor is touched.
    pub stops: Signal<Out, Bit>,
    /// The descriptor is needed: to take the payload, or to be completed with LENGTH_ERROR.
    pub takes: Signal<Out, Bit>,
    pub breaks: Signal<Out, Bit>,
    /// A frame of an RDMA write or a read's request, if it is allowed.
    pub writes: Signal<Out, Bit>,
    /// Part of the answer to a read of the VI.
    pub replies: Signal<Out, Bit>,
    /// If the descriptor fails, some of its message was placed before.
    pub partial: Signal<Out, Bit>,
    pub cause: Signal<Out, Bits<4>>,
    /// Its length does not fit the message that it is of, or that it announces.
    unfit_at: DFF<Bit>,
    // If it fits, or does not matter; a read's request apart from a write.
    unmatched_at: DFF<Bit>,
    acked_at: DFF<Bit>,
    unsequenced_at: DFF<Bit>,
    gap_at: DFF<Bit>,
    dropped_at: DFF<Bit>,
    stops_at: DFF<Bit>,
    takes_at: DFF<Bit>,
    breaks_at: DFF<Bit>,
    asks_at: DFF<Bit>,
    writes_at: DFF<Bit>,
    replies_at: DFF<Bit>,
    partial_at: DFF<Bit>,
    cause_at: DFF<Bits<4>>,
    // If it does not.
    stops_else: DFF<Bit>,
    breaks_else: DFF<Bit>,
    cause_else: DFF<Bits<4>>,
    is_data: Signal<Local, Bit>,
    is_write: Signal<Local, Bit>,
    is_part: Signal<Local, Bit>,
    is_request: Signal<Local, Bit>,
    is_response: Signal<Local, Bit>,
    misplaced: Signal<Local, Bit>,
    stray: Signal<Local, Bit>,
    /// It is the VI's, at its level.
    agrees: Signal<Local, Bit>,
    /// A frame of a message on an Unreliable VI / on another one, of the message in progress.
    unsequenced: Signal<Local, Bit>,
    firm: Signal<Local, Bit>,
    // It is wrong whatever its length is.
    gap_anyway: Signal<Local, Bit>,
    broken_anyway: Signal<Local, Bit>,
    /// No descriptor is in use.
    unused: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
    // What it does if its length fits, and if it does not.
    in_turn: Signal<Local, Bit>,
    lacks: Signal<Local, Bit>,
    stops_unfit: Signal<Local, Bit>,
    stops_fit: Signal<Local, Bit>,
    cause_unfit: Signal<Local, Bits<4>>,
    cause_fit: Signal<Local, Bits<4>>,
    declared: Signal<Local, Bit>,
    control_cause: Signal<Local, Bits<4>>,
    cause_length: Number<4, { Cause::Length as u64 }>,
    cause_misfit: Number<4, { Cause::Misfit as u64 }>,
    cause_empty: Number<4, { Cause::ReceiveEmpty as u64 }>,
    cause_refused: Number<4, { Cause::Refused as u64 }>,
    cause_refused_reception: Number<4, { Cause::RefusedReception as u64 }>,
    cause_disconnected: Number<4, { Cause::Disconnected as u64 }>,
}

impl Logic for Check {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, unmatched_at, acked_at, gap_at, dropped_at, stops_at, takes_at);
        dff_setup!(self, clock, breaks_at, writes_at, replies_at, partial_at, cause_at);
        dff_setup!(
            self,
            clock,
            unfit_at,
            unsequenced_at,
            asks_at,
            stops_else,
            breaks_else,
            cause_else
        );
        self.unmatched.next = self.unmatched_at.q.val();
        self.acked.next = self.acked_at.q.val();
        self.gap.next = self.gap_at.q.val() | (self.unsequenced_at.q.val() & self.unfit_at.q.val());
        self.dropped.next = self.dropped_at.q.val() & (!self.unfit_at.q.val());
        self.stops.next = self.stops_at.q.val() | (self.stops_else.q.val() & self.unfit_at.q.val());
        self.takes.next = self.takes_at.q.val() & (!self.unfit_at.q.val());
        self.breaks.next =
            self.breaks_at.q.val() | (self.breaks_else.q.val() & self.unfit_at.q.val());
        self.writes.next =
            self.asks_at.q.val() | (self.writes_at.q.val() & (!self.unfit_at.q.val()));
        self.replies.next = self.replies_at.q.val();
        self.partial.next = self.partial_at.q.val();
        self.cause.next = self.cause_at.q.val();
        if self.unfit_at.q.val() {
            self.cause.next = self.cause_else.q.val();
        }

        self.is_data.next = self.kinds.val().get_bit(0);
        self.is_write.next = self.kinds.val().get_bit(1);
        self.is_part.next = self.is_data.val() | self.is_write.val();
        self.is_request.next = self.kinds.val().get_bit(2);
        self.is_response.next = self.kinds.val().get_bit(3);
        self.asks.next = self.is_request.val() | self.is_response.val();
        self.partial_at.d.next = (!self.first.val()) | (self.busy.val() & (!self.unreliable.val()));
        if self.is_response.val() {
            self.partial_at.d.next = self.placed.val();
        }

        // What is known before the lengths are compared.
        self.misplaced.next = (self.is_part.val() & (!self.level_fits.val()))
            | (self.asks.val() & self.unreliable.val())
            | (self.is_response.val() & (!self.busy.val()));
        self.agrees.next = self.ours.val() & (!self.misplaced.val());
        self.stray.next = (!self.first.val())
            & ((!self.busy.val()) | (self.busy_write.val() != self.is_write.val()));
        self.unsequenced.next = self.is_part.val() & self.unreliable.val();
        self.firm.next = self.is_part.val() & (!self.unreliable.val()) & (!self.stray.val());
        self.gap_anyway.next = !self.continues.val();
        self.broken_anyway.next = self.first.val() & self.busy.val();
        if self.first.val() {
            self.gap_anyway.next = !self.opening.val();
        }
        self.in_turn.next = (self.unsequenced.val() & (!self.gap_anyway.val()))
            | (self.firm.val() & (!self.broken_anyway.val()));
        self.unused.next =
            (self.busy.val() & self.busy_write.val()) | (self.is_write.val() & (!self.busy.val()));
        self.lacks.next = (!self.is_write.val()) & self.empty.val();
        self.stops_unfit.next = self.firm.val() & (self.unused.val() | self.empty.val());
        self.stops_fit.next = self.firm.val() & self.lacks.val();
        self.cause_unfit.next = self.cause_length.val();
        if self.unused.val() {
            self.cause_unfit.next = self.cause_misfit.val();
        } else if self.empty.val() {
            self.cause_unfit.next = self.cause_empty.val();
        }
        self.cause_fit.next = 0.into();
        if self.lacks.val() {
            self.cause_fit.next = self.cause_empty.val();
        }
        if self.broken_anyway.val() {
            self.stops_fit.next = self.stops_unfit.val();
            self.cause_fit.next = self.cause_unfit.val();
        }

        // A control frame, a read's request or response.
        self.declared.next = (self.asks.val() & self.bad_read.val())
            | self.kinds.val().get_bit(6)
            | self.kinds.val().get_bit(7);
        self.control_cause.next = 0.into();
        if self.asks.val() {
            self.control_cause.next = self.cause_misfit.val();
        } else if self.kinds.val().get_bit(6) {
            self.control_cause.next = self.cause_refused.val();
            if self.reception.val() {
                self.control_cause.next = self.cause_refused_reception.val();
            }
        } else if self.kinds.val().get_bit(7) {
            self.control_cause.next = self.cause_disconnected.val();
        }

        self.unfit_at.d.next = self.misfit.val();
        if self.first.val() {
            self.unfit_at.d.next = self.inconsistent.val();
        }
        self.unmatched_at.d.next = (!self.agrees.val())
            | (self.is_part.val() & (!self.unreliable.val()) & self.stray.val());
        self.acked_at.d.next = self.agrees.val() & self.kinds.val().get_bit(5);
        self.unsequenced_at.d.next = self.agrees.val() & self.unsequenced.val();
        self.gap_at.d.next = self.agrees.val() & self.unsequenced.val() & self.gap_anyway.val();
        self.dropped_at.d.next =
            self.agrees.val() & self.unsequenced.val() & self.in_turn.val() & self.lacks.val();
        self.asks_at.d.next = self.agrees.val() & self.is_request.val() & (!self.bad_read.val());
        self.writes_at.d.next = self.agrees.val() & self.is_write.val() & self.in_turn.val();
        self.replies_at.d.next =
            self.agrees.val() & self.is_response.val() & (!self.bad_read.val());
        self.takes_at.d.next =
            self.agrees.val() & self.is_data.val() & self.in_turn.val() & (!self.empty.val());
        self.breaks_else.d.next =
            self.agrees.val() & self.firm.val() & (!self.unused.val()) & (!self.empty.val());
        self.breaks_at.d.next = self.agrees.val()
            & self.firm.val()
            & (!self.unused.val())
            & (!self.empty.val())
            & self.broken_anyway.val();
        self.stops_at.d.next = self.agrees.val() & (self.declared.val() | self.stops_fit.val());
        self.stops_else.d.next = self.agrees.val() & self.stops_unfit.val();
        self.cause_at.d.next = self.control_cause.val();
        self.cause_else.d.next = self.control_cause.val();
        if self.firm.val() {
            self.cause_at.d.next = self.cause_fit.val();
            self.cause_else.d.next = self.cause_unfit.val();
        }
        if !self.agrees.val() {
            self.cause_at.d.next = 0.into();
            self.cause_else.d.next = 0.into();
        }
    }
}
