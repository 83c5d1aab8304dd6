//! The peer machine's state machine; see [`super::peer`] for what it controls and what an operation
//! is.
use super::num::Num;
use nic_regs::admin::{AdminStatus, PeerState};
use nic_regs::event::PeerDownReason;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum HubState {
    /// The entry in flight is settled: does the chosen operation, or turns to another peer.
    Ready,
    /// The entry changed: what goes by it settles.
    Look,
    /// Scan: decides.
    Judge,
    /// Waits for acceptance to change the state.
    Command,
}

#[derive(LogicBlock, Default)]
pub struct Control {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ready: Signal<In, Bit>,
    /// The peer of the entry in flight, and the one to turn to.
    pub peer: Signal<Out, Bits<6>>,
    pub peer_after: Signal<Out, Bits<6>>,
    // The choice, as in `Scheduler`.
    pub turn_valid: Signal<In, Bit>,
    pub turn_class: Signal<In, Bits<5>>,
    pub turn_peer: Signal<In, Bits<6>>,
    pub turn_same: Signal<In, Bit>,
    pub done: Signal<Out, Bit>,
    pub turned: Signal<Out, Bit>,
    pub strays: Signal<Out, Bit>,
    /// A frame of this peer is being filled: its entry is read in advance.
    pub filling: Signal<In, Bit>,
    pub filling_peer: Signal<In, Bits<6>>,
    // Admin.
    pub op: Signal<In, Bits<2>>,
    pub answer: Signal<Out, Bit>,
    pub status: Signal<Out, Bits<4>>,
    /// `PeerState` as the command found it.
    pub saw: Signal<Out, Bits<4>>,
    // Acceptance.
    pub command: Signal<Out, Bit>,
    pub command_open: Signal<Out, Bit>,
    pub command_reason: Signal<Out, Bits<3>>,
    pub command_done: Signal<In, Bit>,
    // What an operation goes by, see `Comparisons`.
    pub is_open: Signal<In, Bit>,
    pub is_opening: Signal<In, Bit>,
    pub peer_busy: Signal<In, Bit>,
    pub dying: Signal<In, Bit>,
    // A service, see `Service`: takes its pending bits over, has done so, and does a step.
    pub look: Signal<Out, Bit>,
    pub looked: Signal<In, Bit>,
    pub serve: Signal<Out, Bit>,
    // Pending operations of the peer.
    pub tx_syn: Signal<Out, Bit>,
    pub tx_ack: Signal<Out, Bit>,
    pub tx_data: Signal<Out, Bit>,
    // The timer's verdict.
    pub expired: Signal<In, Bit>,
    pub quiet: Signal<In, Bit>,
    pub silent: Signal<In, Bit>,
    pub hopeless: Signal<In, Bit>,
    /// The peer was heard since the last time-out: this one does not count.
    pub alive: Signal<In, Bit>,
    /// The next job is to be chosen, or made of the committed frame.
    pub pick: Signal<Out, Bit>,
    pub direct: Signal<Out, Bit>,
    pub job_full: Signal<In, Bit>,
    // The list in flight, and operations on it, as in `Lists`.
    pub todo: Signal<In, Bit>,
    pub outstanding: Signal<In, Bit>,
    pub newly: Signal<In, Bit>,
    pub load: Signal<Out, Bit>,
    pub append: Signal<Out, Bit>,
    pub again: Signal<Out, Bit>,
    pub rewind: Signal<Out, Bit>,
    pub fresh: Signal<Out, Bit>,
    // Pool.
    pub put_stale: Signal<In, Bit>,
    pub put_unsequenced: Signal<In, Bit>,
    /// The peer's limit covers the committed frame.
    pub put_covered: Signal<In, Bit>,
    /// A frame that opens or ends the channel is to be sent, ahead of all others.
    pub opens: Signal<In, Bit>,
    /// An Ack is to be sent, and the committed frame is a large one: the Ack goes ahead of it.
    pub yields: Signal<In, Bit>,
    pub put_taken: Signal<Out, Bit>,
    /// The pool takes frames to be freed.
    pub free_room: Signal<In, Bit>,
    /// The committed frame is to be freed.
    pub free_put: Signal<Out, Bit>,
    state: DFF<HubState>,
    at: DFF<Bits<6>>,
    ahead: DFF<Bit>,
    ahead_peer: DFF<Bits<6>>,
    // Calls in progress.
    ordering: DFF<Bit>,
    order_open: DFF<Bit>,
    order_reason: DFF<Bits<3>>,
    closing: DFF<Bit>,
    answered: DFF<Bit>,
    status_held: DFF<Bits<4>>,
    seen: DFF<Bits<4>>,
    /// The channel was open a cycle ago, so that its silence counts from its opening.
    was_open: DFF<Bit>,
    here: Signal<Local, Bit>,
    works: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    serves: Signal<Local, Bit>,
    scheduler: Signal<Local, Bit>,
    late: Signal<Local, Bit>,
    state_opening: Num<4, { PeerState::Opening as u64 }>,
    state_open: Num<4, { PeerState::Open as u64 }>,
    op_open: Num<2, 0>,
    op_close: Num<2, 1>,
    status_ok: Num<4, { AdminStatus::Ok as u64 }>,
    status_bad_state: Num<4, { AdminStatus::BadState as u64 }>,
    reason_closed: Num<3, { PeerDownReason::Closed as u64 }>,
    reason_dead: Num<3, { PeerDownReason::Dead as u64 }>,
}

impl Logic for Control {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, at, ahead, ahead_peer, ordering, order_open);
        dff_setup!(self, clock, order_reason, closing, answered, status_held);
        dff_setup!(self, clock, seen, was_open);
        self.peer.next = self.at.q.val();
        self.command.next = self.ordering.q.val();
        self.command_open.next = self.order_open.q.val();
        self.command_reason.next = self.order_reason.q.val();
        self.answer.next = self.answered.q.val();
        self.status.next = self.status_held.q.val();
        self.saw.next = self.seen.q.val();
        self.was_open.d.next = self.is_open.val();
        self.answered.d.next = false;
        self.tx_syn.next = false;
        self.tx_ack.next = false;
        self.tx_data.next = false;
        self.direct.next = false;
        self.append.next = false;
        self.again.next = false;
        self.rewind.next = false;
        self.fresh.next = false;
        self.put_taken.next = false;
        self.free_put.next = false;
        self.ends.next = false;

        // The choice's operation, in a settled entry of its peer; a service has taken its pending bits
        // over before.
        self.here.next = self.turn_valid.val() & self.turn_same.val();
        self.serves.next = self.turn_class.val().get_bit(3);
        self.works.next = (self.state.q.val() == HubState::Ready)
            & self.here.val()
            & self.ready.val()
            & self.free_room.val()
            & (self.looked.val() | !self.serves.val());
        self.pick.next = self.works.val() & self.turn_class.val().get_bit(1);
        self.serve.next = self.works.val() & self.serves.val();
        self.look.next =
            (self.state.q.val() == HubState::Look) & self.here.val() & self.serves.val();

        // Another peer's entry: the choice's, else that of the frame being filled.
        self.ahead.d.next = self.filling.val() & (self.filling_peer.val() != self.at.q.val());
        self.ahead_peer.d.next = self.filling_peer.val();
        self.turned.next =
            (self.state.q.val() == HubState::Ready) & self.turn_valid.val() & !self.turn_same.val();
        self.strays.next =
            (self.state.q.val() == HubState::Ready) & self.ahead.q.val() & !self.turn_valid.val();
        self.scheduler.next = self.turned.val() | self.strays.val();
        self.load.next = self.scheduler.val();
        self.peer_after.next = self.turn_peer.val();
        if !self.turn_valid.val() {
            self.peer_after.next = self.ahead_peer.q.val();
        }

        // Time counts while everything that was sent is on its way, not while it waits to be sent
        // again.
        self.late.next = self.expired.val()
            & (self.is_opening.val()
                | (self.is_open.val() & self.outstanding.val() & self.newly.val()));
        match self.state.q.val() {
            HubState::Ready => {
                if self.scheduler.val() {
                    self.at.d.next = self.peer_after.val();
                    self.state.d.next = HubState::Look;
                } else if self.works.val() {
                    self.state.d.next = HubState::Look;
                    self.ends.next = true;
                    if self.turn_class.val().get_bit(0) {
                        self.ends.next = false;
                        self.state.d.next = HubState::Judge;
                    } else if self.turn_class.val().get_bit(2) {
                        self.put_taken.next = true;
                        if self.put_stale.val() | !self.is_open.val() {
                            self.free_put.next = true;
                        } else {
                            // At once, unless others go before it.
                            self.direct.next = self.put_covered.val()
                                & !(self.todo.val()
                                    | self.job_full.val()
                                    | self.opens.val()
                                    | self.yields.val());
                            self.append.next = !(self.direct.val() & self.put_unsequenced.val());
                            self.tx_data.next = !self.direct.val();
                        }
                    } else if self.turn_class.val().get_bit(4) {
                        self.status_held.d.next = self.status_ok.val();
                        self.seen.d.next = 0.into();
                        if self.is_open.val() {
                            self.seen.d.next = self.state_open.val();
                        } else if self.is_opening.val() {
                            self.seen.d.next = self.state_opening.val();
                        }
                        self.order_reason.d.next = self.reason_closed.val();
                        if self.op.val() == self.op_open.val() {
                            self.order_open.d.next = true;
                            if self.is_open.val() | self.is_opening.val() {
                                self.status_held.d.next = self.status_bad_state.val();
                                self.answered.d.next = true;
                            } else if !(self.peer_busy.val() | self.dying.val()) {
                                self.ordering.d.next = true;
                                self.ends.next = false;
                                self.state.d.next = HubState::Command;
                            }
                        } else if self.op.val() == self.op_close.val() {
                            self.order_open.d.next = false;
                            if self.closing.q.val() {
                                // The answer waits until the frames are freed and the VIs stopped.
                                self.answered.d.next = !self.dying.val();
                                self.closing.d.next = self.dying.val();
                            } else if self.is_open.val() | self.is_opening.val() {
                                self.closing.d.next = true;
                                self.ordering.d.next = true;
                                self.ends.next = false;
                                self.state.d.next = HubState::Command;
                            } else {
                                self.status_held.d.next = self.status_bad_state.val();
                                self.answered.d.next = true;
                            }
                        } else {
                            self.answered.d.next = true;
                        }
                    }
                } else if self.here.val() & self.serves.val() & !self.looked.val() {
                    self.state.d.next = HubState::Look;
                }
            }
            HubState::Look => {
                self.state.d.next = HubState::Ready;
            }
            HubState::Judge => {
                self.state.d.next = HubState::Look;
                self.ends.next = true;
                self.order_open.d.next = false;
                self.order_reason.d.next = self.reason_dead.val();
                if (self.is_open.val() & self.was_open.q.val() & self.silent.val())
                    | (self.late.val() & self.hopeless.val() & !self.alive.val())
                {
                    self.ordering.d.next = true;
                    self.ends.next = false;
                    self.state.d.next = HubState::Command;
                } else if self.late.val() {
                    self.again.next = true;
                    self.tx_syn.next = self.is_opening.val();
                    self.rewind.next = self.is_open.val();
                    self.tx_data.next = self.is_open.val();
                } else {
                    self.tx_ack.next = self.is_open.val() & self.quiet.val();
                }
            }
            HubState::Command => {
                if self.command_done.val() {
                    self.ordering.d.next = false;
                    self.ends.next = true;
                    self.state.d.next = HubState::Look;
                    if self.order_open.q.val() {
                        self.fresh.next = true;
                        self.tx_syn.next = true;
                        self.answered.d.next = true;
                    }
                }
            }
            _ => {
                self.state.d.next = HubState::Look;
            }
        }
        self.done.next = self.ends.val();
        if self.reset.val() {
            self.state.d.next = HubState::Look;
            self.ordering.d.next = false;
            self.closing.d.next = false;
            self.answered.d.next = false;
        }
    }
}
