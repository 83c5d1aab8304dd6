//! What a frame does to its VI: the rules of contract 5.1, 5.2, 5.4, 11.2, 12.2 and 12.4 that need neither a
//! descriptor nor the region table.
//! Combinational; valid with the comparisons of [`super::Port`].

use crate::desc::Cause;
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Judge {
    /// See [`super::hand`].
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
    is_data: Signal<Local, Bit>,
    is_write: Signal<Local, Bit>,
    is_part: Signal<Local, Bit>,
    is_request: Signal<Local, Bit>,
    is_response: Signal<Local, Bit>,
    misplaced: Signal<Local, Bit>,
    stray: Signal<Local, Bit>,
    out_of_turn: Signal<Local, Bit>,
    violation: Signal<Local, Bit>,
    cause_length: Number<4, { Cause::Length as u64 }>,
    cause_misfit: Number<4, { Cause::Misfit as u64 }>,
    cause_empty: Number<4, { Cause::ReceiveEmpty as u64 }>,
    cause_refused: Number<4, { Cause::Refused as u64 }>,
    cause_refused_reception: Number<4, { Cause::RefusedReception as u64 }>,
    cause_disconnected: Number<4, { Cause::Disconnected as u64 }>,
}

impl Logic for Judge {
    #[hdl_gen]
    fn update(&mut self) {
        self.unmatched.next = false;
        self.acked.next = false;
        self.gap.next = false;
        self.dropped.next = false;
        self.stops.next = false;
        self.takes.next = false;
        self.breaks.next = false;
        self.writes.next = false;
        self.replies.next = false;
        self.cause.next = 0.into();
        self.is_data.next = self.kinds.val().get_bit(0);
        self.is_write.next = self.kinds.val().get_bit(1);
        self.is_part.next = self.is_data.val() | self.is_write.val();
        self.is_request.next = self.kinds.val().get_bit(2);
        self.is_response.next = self.kinds.val().get_bit(3);
        self.partial.next = (!self.first.val()) | (self.busy.val() & (!self.unreliable.val()));
        if self.is_response.val() {
            self.partial.next = self.placed.val();
        }
        self.misplaced.next = (self.is_part.val() & (!self.level_fits.val()))
            | ((self.is_request.val() | self.is_response.val()) & self.unreliable.val())
            | (self.is_response.val() & (!self.busy.val()));
        self.stray.next = (!self.first.val())
            & ((!self.busy.val()) | (self.busy_write.val() != self.is_write.val()));
        self.out_of_turn.next = (!self.continues.val()) | self.misfit.val();
        self.violation.next = self.misfit.val();
        if self.first.val() {
            self.out_of_turn.next = (!self.opening.val()) | self.inconsistent.val();
            self.violation.next = self.busy.val() | self.inconsistent.val();
        }
        if (!self.ours.val()) | self.misplaced.val() {
            self.unmatched.next = true;
        } else if self.is_request.val() | self.is_response.val() {
            self.stops.next = self.bad_read.val();
            self.writes.next = self.is_request.val() & (!self.bad_read.val());
            self.replies.next = self.is_response.val() & (!self.bad_read.val());
            self.cause.next = self.cause_misfit.val();
        } else if self.is_part.val() {
            if self.unreliable.val() & self.out_of_turn.val() {
                self.gap.next = true;
            } else if self.stray.val() & (!self.unreliable.val()) {
                self.unmatched.next = true;
            } else if (!self.unreliable.val())
                & self.violation.val()
                & ((self.busy.val() & self.busy_write.val())
                    | (self.is_write.val() & (!self.busy.val())))
            {
                // No descriptor is in use.
                self.stops.next = true;
                self.cause.next = self.cause_misfit.val();
            } else if self.is_write.val() & (self.unreliable.val() | (!self.violation.val())) {
                self.writes.next = true;
            } else if self.empty.val() & self.unreliable.val() {
                self.dropped.next = true;
            } else if self.empty.val() {
                self.stops.next = true;
                self.cause.next = self.cause_empty.val();
            } else if (!self.unreliable.val()) & self.violation.val() {
                self.breaks.next = true;
                self.cause.next = self.cause_length.val();
            } else {
                self.takes.next = true;
            }
        } else if self.kinds.val().get_bit(5) {
            self.acked.next = true;
        } else if self.kinds.val().get_bit(6) {
            self.stops.next = true;
            self.cause.next = self.cause_refused.val();
            if self.reception.val() {
                self.cause.next = self.cause_refused_reception.val();
            }
        } else if self.kinds.val().get_bit(7) {
            self.stops.next = true;
            self.cause.next = self.cause_disconnected.val();
        }
    }
}
