//! How a frame ends: the message's progress is stored, or the descriptor leaves its queue, or the VI
//! stops; a stop waits for everything that was written (contract 5.3, 6.1).
//!
//! ```text
//! save: Idle -> Save -> [Wait ->] Idle        pop: Idle -> [Ready ->] Pop -> [Wait ->] Idle
//! fail: Idle -> Fail -> [Ready -> Pop ->] Wait -> [Stop ->] Idle
//! a pop that needs Next again: Pop -> Reread -> Ready -> Pop
//! ```
//! A call to the VI table is a pulse with the step into its state.

use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum CloseState {
    /// Waits for a command.
    Idle,
    /// Waits for the successor, which is the loader's or the reply's, and calls POP.
    Ready,
    /// POP is under way.
    Pop,
    /// Waits for Next, read again.
    Reread,
    /// SAVE is under way.
    Save,
    /// Chooses how to end a failed descriptor or VI.
    Fail,
    /// Waits until the payload was read, or, before a stop, everything is accepted.
    Wait,
    /// STOP is under way.
    Stop,
}

#[derive(LogicBlock, Default)]
pub struct Close {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    // Commands (pulses, while no frame is being closed), and the answer.
    pub save: Signal<In, Bit>,
    pub pop: Signal<In, Bit>,
    /// With `pop`: its descriptor and the successor are the descriptor cache's, and known.
    pub direct: Signal<In, Bit>,
    pub fail: Signal<In, Bit>,
    pub over: Signal<Out, Bit>,
    /// No frame is in flight.
    pub clear: Signal<In, Bit>,
    /// The cause completes the descriptor (see `super::verdict`).
    pub completes: Signal<In, Bit>,
    pub unreliable: Signal<In, Bit>,
    /// The descriptor is the loader's result; the posted count is above 1.
    pub foreign: Signal<In, Bit>,
    pub more: Signal<In, Bit>,
    // Calls to the VI table: pulses, and their answer.
    /// The successor is known.
    pub next_ready: Signal<In, Bit>,
    pub done: Signal<In, Bit>,
    /// With `done`: the POP was carried out; else it needs Next again.
    pub went: Signal<In, Bit>,
    pub saving: Signal<Out, Bit>,
    pub popping: Signal<Out, Bit>,
    pub stopping: Signal<Out, Bit>,
    // The prefetcher: Next, read again, is the loader's result from then on.
    pub want_next: Signal<Out, Bit>,
    pub loaded: Signal<In, Bit>,
    pub renewed: Signal<Out, Bit>,
    /// Pulse: the descriptor cache's oldest descriptor left the queue; from then on until the frame's end.
    pub take: Signal<Out, Bit>,
    pub hold: Signal<Out, Bit>,
    /// Pulse: a descriptor was used up, others may be posted.
    pub hint: Signal<Out, Bit>,
    /// Pulse: its status may go out.
    pub finish: Signal<Out, Bit>,
    /// The payload was read: with its status on the way, the frame is not needed any more.
    pub handed: Signal<In, Bit>,
    /// Everything of this and all earlier frames is accepted and announced.
    pub quiet: Signal<In, Bit>,
    state: DFF<CloseState>,
    stops: DFF<Bit>,
    renewed_at: DFF<Bit>,
    hold_at: DFF<Bit>,
    popped: Signal<Local, Bit>,
}

impl Logic for Close {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, stops, renewed_at, hold_at);
        self.over.next = false;
        self.saving.next = (self.state.q.val() == CloseState::Idle) & self.save.val();
        self.popping.next =
            ((self.state.q.val() == CloseState::Idle) & self.pop.val() & self.direct.val())
                | ((self.state.q.val() == CloseState::Ready) & self.next_ready.val());
        self.stopping.next =
            (self.state.q.val() == CloseState::Wait) & self.stops.q.val() & self.quiet.val();
        self.want_next.next = self.state.q.val() == CloseState::Reread;
        self.renewed.next = self.renewed_at.q.val();
        self.hold.next = self.hold_at.q.val();
        self.popped.next = (self.state.q.val() == CloseState::Pop) & self.went.val();
        self.take.next = self.popped.val() & (!self.foreign.val());
        self.hint.next = self.popped.val() & self.more.val();
        self.finish.next = self.popped.val();

        match self.state.q.val() {
            CloseState::Idle => {
                if self.clear.val() {
                    self.stops.d.next = false;
                    self.renewed_at.d.next = false;
                    self.hold_at.d.next = false;
                }
                if self.save.val() {
                    self.state.d.next = CloseState::Save;
                } else if self.pop.val() {
                    self.state.d.next = CloseState::Ready;
                    if self.direct.val() {
                        self.state.d.next = CloseState::Pop;
                    }
                } else if self.fail.val() {
                    self.state.d.next = CloseState::Fail;
                }
            }
            CloseState::Fail => {
                self.stops.d.next = !(self.completes.val() & self.unreliable.val());
                self.state.d.next = CloseState::Wait;
                if self.completes.val() {
                    self.state.d.next = CloseState::Ready;
                }
            }
            CloseState::Ready => {
                if self.next_ready.val() {
                    self.state.d.next = CloseState::Pop;
                }
            }
            CloseState::Pop => {
                if self.popped.val() {
                    self.hold_at.d.next = true;
                    self.state.d.next = CloseState::Wait;
                    if self.handed.val() & (!self.stops.q.val()) {
                        self.over.next = true;
                        self.state.d.next = CloseState::Idle;
                    }
                } else if self.done.val() {
                    self.state.d.next = CloseState::Reread;
                }
            }
            CloseState::Reread => {
                if self.loaded.val() {
                    self.renewed_at.d.next = true;
                    self.state.d.next = CloseState::Ready;
                }
            }
            CloseState::Save => {
                if self.done.val() {
                    self.state.d.next = CloseState::Wait;
                    if self.handed.val() {
                        self.over.next = true;
                        self.state.d.next = CloseState::Idle;
                    }
                }
            }
            CloseState::Wait => {
                if self.stops.q.val() {
                    if self.quiet.val() {
                        self.state.d.next = CloseState::Stop;
                    }
                } else if self.handed.val() {
                    self.over.next = true;
                    self.state.d.next = CloseState::Idle;
                }
            }
            CloseState::Stop => {
                if self.done.val() {
                    self.over.next = true;
                    self.state.d.next = CloseState::Idle;
                }
            }
            _ => {
                self.state.d.next = CloseState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = CloseState::Idle;
        }
    }
}
