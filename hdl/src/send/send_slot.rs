//! A turn of the first stage: which VI, its descriptor, room in the pool (contract 4.1, 4.4). What
//! the VI is to do says [`super::Select`].
//!
//! ```text
//! Idle -> Get -> Choose -> Resolve -> Size -> Ask -> Ready -> End -> Idle      (a frame of a message)
//!                  |-> Probe -> Resolve ...    (its peer had no room: asks before it reads)
//!                  |-> Ask -> Ready -> OwedWait -> Sent -> Idle                 (an owed frame)
//!                  |-> Range -> Ask -> Ready -> End -> Idle               (a frame of an answer)
//!                  `-> Reach -> End -> Idle                  (an acknowledged Reception send)
//!         (a VI whose context is known: Idle -> Choose)
//! no room:           Ask, Probe -> Give -> Idle
//! error:             ... -> End -> Idle
//! an older frame of the VI failed: Ready -> End -> Give -> Idle
//! ```
//! In End, [`super::Ending`] pops the descriptor or stores the progress. A frame goes there when
//! the middle stage is empty: the pop comes before the last frame's commit and after everything
//! about older frames is known. The VI is scheduled again by POP or SAVE, so that this stage takes
//! its next message or frame while the payload of this one comes.

use crate::desc::Cause;
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum SendSlotState {
    /// Waits for work, a message or a fence.
    Idle,
    /// Reads the VI's context.
    Get,
    /// Chooses what to do for it.
    Choose,
    /// Asks the pool for what the peer had no room for.
    Probe,
    /// Waits until the message's length is known.
    Resolve,
    /// Checks it.
    Size,
    /// It is too long, or not allowed: waits whether the segments are.
    Refused,
    /// Asks whether the answer's range may still be read.
    Range,
    /// Asks the pool.
    Ask,
    /// Waits for segments, read requests and the stages behind.
    Ready,
    /// Waits for the bus address of a descriptor.
    PushLookup,
    /// Waits until the descriptor or its frame is dealt with.
    End,
    /// Waits until the owed frame is in the channel.
    ControlPendingWait,
    /// Clears the owed bit.
    Sent,
    /// Gives the VI back to the ring.
    Give,
    /// Waits for the end of a message.
    Message,
}

#[derive(LogicBlock, Default)]
pub struct SendSlot {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// The descriptor cached is forgotten while no VI is: what is revoked behind a fence must be looked up
    /// again, and that of a VI that begins otherwise is not it.
    pub forgets: Signal<In, Bit>,
    /// No VI is in flight.
    pub resting: Signal<Out, Bit>,
    // What begins, pulses: see `super::intake`.
    pub takes: Signal<In, Bit>,
    /// With `takes`: its context is known, and it has one descriptor, which is not cached.
    pub direct: Signal<In, Bit>,
    pub rescues: Signal<In, Bit>,
    pub sends_message: Signal<In, Bit>,
    pub message_done: Signal<In, Bit>,
    // A payload that could not be read: see `super::abort`.
    pub rescuing: Signal<In, Bit>,
    pub poison: Signal<In, Bit>,
    // GET, and SENT with or without what was owed.
    pub get: Signal<Out, Bit>,
    pub sent: Signal<Out, Bit>,
    pub give_back: Signal<Out, Bit>,
    pub call_done: Signal<In, Bit>,
    pub got: Signal<Out, Bit>,
    /// The descriptor cached is the VI's: see `super::opening`.
    pub kept: Signal<In, Bit>,
    pub holds: Signal<Out, Bit>,
    // What the VI is to do.
    pub choose: Signal<Out, Bit>,
    pub needs: Signal<In, Bit>,
    pub ends: Signal<In, Bit>,
    pub sends: Signal<In, Bit>,
    pub answers: Signal<In, Bit>,
    pub is_data: Signal<In, Bit>,
    pub is_answer: Signal<In, Bit>,
    /// One of them: a frame with a payload of its own.
    pub carries: Signal<In, Bit>,
    // The range of an answer.
    pub look: Signal<Out, Bit>,
    pub answered: Signal<In, Bit>,
    pub granted: Signal<In, Bit>,
    /// The pool is asked first / is asked, and nothing reserved.
    pub asks_first: Signal<In, Bit>,
    pub probes: Signal<Out, Bit>,
    // The descriptor.
    pub desc_done: Signal<In, Bit>,
    pub desc_outcome: Signal<In, Bits<3>>,
    /// Done without an error.
    pub resolved: Signal<In, Bit>,
    pub desc_known: Signal<In, Bit>,
    pub rereading: Signal<In, Bit>,
    /// Only its place is wanted.
    pub reaching: Signal<In, Bit>,
    /// How it ends; see [`Cause`]. No error.
    pub cause: Signal<Out, Bits<4>>,
    pub good: Signal<Out, Bit>,
    // The frame.
    /// Why the message is refused, if it is: see [`Cause`].
    pub refusal: Signal<In, Bits<4>>,
    /// It ends its message (an answer and a read's request do not).
    pub last: Signal<In, Bit>,
    /// It is a read's request: the descriptor is done with for now.
    pub is_request: Signal<In, Bit>,
    pub sized: Signal<Out, Bit>,
    pub ask_valid: Signal<Out, Bit>,
    pub ask_done: Signal<In, Bit>,
    pub ask_ok: Signal<In, Bit>,
    pub ask_down: Signal<In, Bit>,
    /// The payload's pieces may be cut; the segments are cached or on their way; all of it is asked
    /// for.
    pub asking: Signal<Out, Bit>,
    pub soon: Signal<Out, Bit>,
    pub requested: Signal<In, Bit>,
    /// It has room.
    pub roomy: Signal<Out, Bit>,
    pub gather_go: Signal<Out, Bit>,
    pub gather_cancel: Signal<Out, Bit>,
    // The stages behind.
    pub commit_idle: Signal<In, Bit>,
    pub retire_error: Signal<In, Bit>,
    /// The owed frame goes there.
    pub control_pending_load: Signal<Out, Bit>,
    // The end of the turn: commands to `super::ending`, and its answers.
    pub pop: Signal<Out, Bit>,
    pub save: Signal<Out, Bit>,
    pub cancel: Signal<Out, Bit>,
    pub fail: Signal<Out, Bit>,
    pub finish: Signal<Out, Bit>,
    pub ends_send_slot: Signal<Out, Bit>,
    pub popped: Signal<In, Bit>,
    pub over: Signal<In, Bit>,
    pub give: Signal<In, Bit>,
    state: DFF<SendSlotState>,
    cause_at: DFF<Bits<4>>,
    /// The descriptor engine holds this VI's head, resolved.
    held: DFF<Bit>,
    reserved: DFF<Bit>,
    /// All segments may be used.
    here: Signal<Local, Bit>,
    has_room: Signal<Local, Bit>,
    is_good: Signal<Local, Bit>,
    goes: Signal<Local, Bit>,
    cancels: Signal<Local, Bit>,
    passes: Signal<Local, Bit>,
    cause_done: Number<4, { Cause::Done as u64 }>,
    cause_data: Number<4, { Cause::Data as u64 }>,
    cause_rdma_read: Number<4, { Cause::RdmaRead as u64 }>,
}

impl Logic for SendSlot {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, cause_at, held, reserved);
        self.resting.next = self.state.q.val() == SendSlotState::Idle;
        self.get.next = self.state.q.val() == SendSlotState::Get;
        self.choose.next = self.state.q.val() == SendSlotState::Choose;
        self.look.next = self.state.q.val() == SendSlotState::Range;
        self.sized.next = self.state.q.val() == SendSlotState::Size;
        self.probes.next = self.state.q.val() == SendSlotState::Probe;
        self.ask_valid.next = self.state.q.val() == SendSlotState::Ask;
        self.sent.next = self.state.q.val() == SendSlotState::Sent;
        self.give_back.next = self.state.q.val() == SendSlotState::Give;
        self.ends_send_slot.next = self.state.q.val() == SendSlotState::End;
        self.cause.next = self.cause_at.q.val();
        self.is_good.next = self.cause_at.q.val() == self.cause_done.val();
        self.good.next = self.is_good.val();

        // The descriptor.
        self.got.next = (self.state.q.val() == SendSlotState::Get) & self.call_done.val();
        self.holds.next = self.held.q.val();

        // The payload, see `super::request`.
        self.asking.next = (self.state.q.val() == SendSlotState::Ask)
            | (self.state.q.val() == SendSlotState::Ready);
        self.here.next = self.held.q.val()
            | self.is_answer.val()
            | (self.resolved.val() & (!self.reaching.val()));
        // A message's length is known here; a look-up that fails cancels what was cut.
        self.soon.next = self.here.val() | self.is_good.val();
        self.roomy.next = self.reserved.q.val();
        self.gather_go.next = self.reserved.q.val() & self.here.val();
        self.has_room.next = self.ask_ok.val() & (!self.ask_down.val());
        self.gather_cancel.next = ((self.state.q.val() == SendSlotState::Ask)
            & self.ask_done.val()
            & (!self.has_room.val()))
            | (self.desc_done.val() & (!self.resolved.val()) & (!self.rereading.val()));

        // The end of the turn.
        self.goes.next = (self.state.q.val() == SendSlotState::Ready)
            & (self.requested.val() | (!self.is_good.val()))
            & (self.held.q.val() | (!self.is_good.val()) | (!self.is_data.val()))
            & self.commit_idle.val()
            & (!self.retire_error.val());
        self.cancels.next = self.poison.val() | (!self.is_good.val());
        self.cancel.next = self.goes.val() & self.cancels.val();
        self.passes.next = self.goes.val() & (!self.cancels.val()) & self.carries.val();
        self.pop.next = self.passes.val() & self.last.val();
        self.save.next = self.passes.val() & (!self.last.val());
        self.control_pending_load.next =
            self.goes.val() & (!self.cancels.val()) & (!self.carries.val());
        self.fail.next = false;
        self.finish.next = false;

        match self.state.q.val() {
            SendSlotState::Idle => {
                self.reserved.d.next = false;
                self.cause_at.d.next = self.cause_done.val();
                if self.forgets.val() {
                    self.held.d.next = false;
                }
                if self.direct.val() {
                    self.state.d.next = SendSlotState::Choose;
                } else if self.rescues.val() | self.takes.val() {
                    self.state.d.next = SendSlotState::Get;
                } else if self.sends_message.val() {
                    self.state.d.next = SendSlotState::Message;
                }
            }
            SendSlotState::Get => {
                if self.call_done.val() {
                    self.held.d.next = self.kept.val();
                    self.state.d.next = SendSlotState::Choose;
                }
            }
            SendSlotState::Choose => {
                self.state.d.next = SendSlotState::Idle;
                if self.needs.val() {
                    self.state.d.next = SendSlotState::Ask;
                } else if self.answers.val() {
                    self.state.d.next = SendSlotState::Range;
                } else if self.ends.val() {
                    self.state.d.next = SendSlotState::PushLookup;
                } else if self.sends.val() {
                    self.state.d.next = SendSlotState::Resolve;
                    if self.asks_first.val() {
                        self.state.d.next = SendSlotState::Probe;
                    }
                }
            }
            SendSlotState::Probe => {
                if self.ask_done.val() {
                    self.state.d.next = SendSlotState::Give;
                    if self.has_room.val() {
                        self.state.d.next = SendSlotState::Resolve;
                    }
                }
            }
            SendSlotState::Resolve => {
                if self.held.q.val() | self.desc_known.val() {
                    self.state.d.next = SendSlotState::Size;
                } else if self.desc_done.val() {
                    self.fail.next = true;
                    self.state.d.next = SendSlotState::End;
                }
            }
            SendSlotState::Size => {
                self.state.d.next = SendSlotState::Ask;
                if self.refusal.val().any() {
                    self.state.d.next = SendSlotState::Refused;
                }
            }
            SendSlotState::Refused => {
                if self.held.q.val() {
                    self.cause_at.d.next = self.refusal.val();
                }
                if self.held.q.val() | (!self.is_good.val()) {
                    self.fail.next = true;
                    self.state.d.next = SendSlotState::End;
                }
            }
            SendSlotState::Range => {
                if self.answered.val() {
                    self.state.d.next = SendSlotState::Ask;
                    if !self.granted.val() {
                        self.cause_at.d.next = self.cause_rdma_read.val();
                        self.fail.next = true;
                        self.state.d.next = SendSlotState::End;
                    }
                }
            }
            SendSlotState::Ask => {
                if self.ask_done.val() {
                    self.state.d.next = SendSlotState::Give;
                    if self.has_room.val() {
                        self.reserved.d.next = true;
                        self.state.d.next = SendSlotState::Ready;
                    } else if self.ask_down.val() & (!self.carries.val()) {
                        self.state.d.next = SendSlotState::Sent;
                    }
                }
            }
            SendSlotState::Ready => {
                if self.goes.val() {
                    self.state.d.next = SendSlotState::End;
                    if self.passes.val() & self.is_request.val() {
                        self.held.d.next = false;
                    }
                    if (!self.cancels.val()) & (!self.carries.val()) {
                        self.state.d.next = SendSlotState::ControlPendingWait;
                    }
                }
            }
            SendSlotState::PushLookup => {
                if !self.is_good.val() {
                    self.fail.next = true;
                    self.state.d.next = SendSlotState::End;
                } else if self.resolved.val() {
                    self.state.d.next = SendSlotState::End;
                    if self.rescuing.val() {
                        self.cause_at.d.next = self.cause_data.val();
                        self.fail.next = true;
                    } else {
                        self.finish.next = true;
                    }
                }
            }
            SendSlotState::End => {
                if self.popped.val() {
                    self.held.d.next = false;
                }
                if self.over.val() {
                    self.state.d.next = SendSlotState::Idle;
                } else if self.give.val() {
                    self.state.d.next = SendSlotState::Give;
                }
            }
            SendSlotState::ControlPendingWait => {
                if self.commit_idle.val() {
                    self.state.d.next = SendSlotState::Sent;
                }
            }
            SendSlotState::Sent => {}
            SendSlotState::Give => {}
            SendSlotState::Message => {
                if self.message_done.val() {
                    self.state.d.next = SendSlotState::Idle;
                }
            }
            _ => {
                self.state.d.next = SendSlotState::Idle;
            }
        }
        if (self.sent.val() | self.give_back.val()) & self.call_done.val() {
            self.state.d.next = SendSlotState::Idle;
        }
        if self.desc_done.val() & (!self.rereading.val()) {
            self.held.d.next = self.resolved.val()
                & (!self.reaching.val())
                & (self.state.q.val() != SendSlotState::Idle)
                & (self.state.q.val() != SendSlotState::Give);
            if !self.resolved.val() {
                self.cause_at.d.next = bit_cast::<4, 3>(self.desc_outcome.val());
            }
        }
        if self.reset.val() {
            self.state.d.next = SendSlotState::Idle;
            self.held.d.next = false;
        }
    }
}
