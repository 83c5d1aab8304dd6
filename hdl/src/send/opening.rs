//! When the descriptor of the VI in flight is read: with its context, or, while some peer has no room, a cycle
//! later, once it is known that this VI's peer is not one (see [`super::NoCredit`]); else not before the pool
//! has said that there is room. Also a cycle later: that of the VI of the turn before, which may be the one
//! that is resolved already and turns out to be another.

use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Opening {
    pub clock: Signal<In, Clock>,
    /// No VI is in flight.
    pub resting: Signal<In, Bit>,
    // In the cycle in which the context comes.
    pub got: Signal<In, Bit>,
    /// It is there with the VI, instead of `got`, and nothing below is told: the head is to be looked at.
    pub direct: Signal<In, Bit>,
    /// The VI is taken to end its head for the middle stage / its head or what it awaits is to be looked at.
    pub rescuing: Signal<In, Bit>,
    pub due: Signal<In, Bit>,
    pub awaiting: Signal<In, Bit>,
    /// It is the VI and the descriptor of the turn before, which are resolved.
    pub same: Signal<In, Bit>,
    /// It is that VI (known before).
    pub same_vi: Signal<In, Bit>,
    pub held: Signal<In, Bit>,
    pub kept: Signal<Out, Bit>,
    /// A peer is noted / that of the VI in flight, from the cycle after it.
    pub any_refused: Signal<In, Bit>,
    pub refused: Signal<In, Bit>,
    /// In the cycle after it: a frame of a message is to be made; the pool must be asked first.
    pub sends: Signal<In, Bit>,
    pub asks_first: Signal<Out, Bit>,
    /// The pool was asked and has room.
    pub may: Signal<In, Bit>,
    /// The descriptor engine: begin; only the place of the descriptor is wanted, which stays known in the turn.
    pub start: Signal<Out, Bit>,
    pub reaches: Signal<Out, Bit>,
    pub reaching: Signal<Out, Bit>,
    late: DFF<Bit>,
    reaching_at: DFF<Bit>,
    reads: Signal<Local, Bit>,
    blind: Signal<Local, Bit>,
    waits: Signal<Local, Bit>,
    may_be_kept: Signal<Local, Bit>,
    is_kept: Signal<Local, Bit>,
}

impl Logic for Opening {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, late, reaching_at);
        self.is_kept.next = self.held.val() & self.same.val() & (!self.awaiting.val());
        self.kept.next = self.is_kept.val();
        self.blind.next = self.awaiting.val() | self.rescuing.val();
        // An abort holds nothing: see `SendSlot`.
        self.may_be_kept.next = self.held.val() & self.same_vi.val() & (!self.awaiting.val());
        self.reads.next = self.got.val() & (self.rescuing.val() | self.due.val());
        self.waits.next = (self.any_refused.val() & (!self.blind.val())) | self.may_be_kept.val();
        self.asks_first.next = self.late.q.val() & self.refused.val();
        self.start.next = (self.reads.val() & (!self.waits.val()))
            | (self.direct.val() & (!self.any_refused.val()))
            | (self.sends.val() & self.late.q.val() & (!self.refused.val()))
            | self.may.val();
        self.reaches.next = (self.got.val() & self.blind.val()) | self.reaching_at.q.val();
        self.reaching.next = self.reaching_at.q.val();
        if self.resting.val() {
            self.reaching_at.d.next = false;
        }
        if self.got.val() {
            self.late.d.next = self.reads.val() & self.waits.val() & (!self.is_kept.val());
            self.reaching_at.d.next = self.blind.val();
        } else if self.direct.val() {
            self.late.d.next = self.any_refused.val();
        }
    }
}
