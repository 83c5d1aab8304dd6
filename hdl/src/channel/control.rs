//! The peer machine's state machine; see [`super::peer`] for what it controls and what an operation
//! is.
use super::num::Num;
use nic_regs::admin::AdminStatus;
use nic_regs::event::PeerDownReason;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum HubState {
    /// Chooses an operation.
    Idle,
    /// Reads the peer's entry.
    Load,
    /// Compares, and reads what the entry points to.
    Look,
    /// Does it.
    Work,
    /// Scan: elapsed times.
    Measure,
    /// Scan: decides.
    Judge,
    /// Waits for acceptance to change the state.
    Command,
    /// Writes the peer's entry.
    Store,
    /// Waits for the pool.
    Free,
}

#[derive(LogicBlock, Default)]
pub struct Control {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ready: Signal<In, Bit>,
    /// The peer of the operation.
    pub peer: Signal<Out, Bits<6>>,
    // Turns.
    pub choose: Signal<Out, Bit>,
    pub turn_valid: Signal<In, Bit>,
    pub turn_class: Signal<In, Bits<6>>,
    pub turn_peer: Signal<In, Bits<6>>,
    // Admin.
    pub op: Signal<In, Bits<2>>,
    pub answer: Signal<Out, Bit>,
    pub status: Signal<Out, Bits<4>>,
    // Acceptance.
    pub open: Signal<In, Bits<64>>,
    pub opening: Signal<In, Bits<64>>,
    pub is_open: Signal<Out, Bit>,
    pub is_opening: Signal<Out, Bit>,
    pub command: Signal<Out, Bit>,
    pub command_open: Signal<Out, Bit>,
    pub command_reason: Signal<Out, Bits<3>>,
    pub command_done: Signal<In, Bit>,
    // What Work goes by, see `Facts`.
    pub is_up: Signal<In, Bit>,
    pub is_down: Signal<In, Bit>,
    pub is_acked: Signal<In, Bit>,
    pub is_gapped: Signal<In, Bit>,
    pub all_freed: Signal<In, Bit>,
    pub gap_is_head: Signal<In, Bit>,
    pub head_busy: Signal<In, Bit>,
    pub peer_busy: Signal<In, Bit>,
    pub dying: Signal<In, Bit>,
    pub touched: Signal<In, Bit>,
    // Marks and notices, of the peer.
    pub clear: Signal<Out, Bits<4>>,
    pub tx_syn: Signal<Out, Bit>,
    pub tx_ack: Signal<Out, Bit>,
    pub tx_data: Signal<Out, Bit>,
    pub up: Signal<Out, Bit>,
    pub down: Signal<Out, Bit>,
    // The timer's verdict.
    pub expired: Signal<In, Bit>,
    pub quiet: Signal<In, Bit>,
    pub silent: Signal<In, Bit>,
    pub hopeless: Signal<In, Bit>,
    /// The next job is to be chosen.
    pub pick: Signal<Out, Bit>,
    // The list in hand, and operations on it, as in `Lists`.
    pub live: Signal<In, Bit>,
    pub head: Signal<In, Bits<7>>,
    pub outstanding: Signal<In, Bit>,
    pub obeyed: Signal<In, Bit>,
    pub newly: Signal<In, Bit>,
    pub load: Signal<Out, Bit>,
    pub at_first: Signal<Out, Bit>,
    pub store: Signal<Out, Bit>,
    pub append: Signal<Out, Bit>,
    pub pop: Signal<Out, Bit>,
    pub progress: Signal<Out, Bit>,
    pub again: Signal<Out, Bit>,
    pub rewind: Signal<Out, Bit>,
    pub obey: Signal<Out, Bit>,
    pub fresh: Signal<Out, Bit>,
    // Pool and transmitter.
    pub put_frame: Signal<In, Bits<7>>,
    pub put_stale: Signal<In, Bit>,
    pub put_taken: Signal<Out, Bit>,
    pub spent_frame: Signal<In, Bits<7>>,
    pub spent_taken: Signal<Out, Bit>,
    pub free_valid: Signal<Out, Bit>,
    pub free_frame: Signal<Out, Bits<7>>,
    pub free_done: Signal<In, Bit>,
    state: DFF<HubState>,
    at: DFF<Bits<6>>,
    turn: DFF<Bits<6>>,
    was_open: DFF<Bit>,
    was_opening: DFF<Bit>,
    // Calls in progress.
    ordering: DFF<Bit>,
    order_open: DFF<Bit>,
    order_reason: DFF<Bits<3>>,
    freeing: DFF<Bit>,
    free_id: DFF<Bits<7>>,
    closing: DFF<Bit>,
    answered: DFF<Bit>,
    status_held: DFF<Bits<4>>,
    chooses: Signal<Local, Bit>,
    late: Signal<Local, Bit>,
    pops: Signal<Local, Bit>,
    op_open: Num<2, 0>,
    op_close: Num<2, 1>,
    status_ok: Num<4, { AdminStatus::Ok as u64 }>,
    status_bad_state: Num<4, { AdminStatus::BadState as u64 }>,
    reason_closed: Num<3, { PeerDownReason::Closed as u64 }>,
    reason_dead: Num<3, { PeerDownReason::Dead as u64 }>,
    clear_up: Num<4, 0x1>,
    clear_down: Num<4, 0xe>,
    clear_acked: Num<4, 0x4>,
    clear_gapped: Num<4, 0x8>,
}

impl Logic for Control {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, at, turn, was_open, was_opening, ordering, order_open);
        dff_setup!(self, clock, order_reason, freeing, free_id, closing, answered, status_held);
        self.peer.next = self.at.q.val();
        self.at_first.next = !self.turn.q.val().get_bit(2);
        self.is_open.next = self.was_open.q.val();
        self.is_opening.next = self.was_opening.q.val();
        self.command.next = self.ordering.q.val();
        self.command_open.next = self.order_open.q.val();
        self.command_reason.next = self.order_reason.q.val();
        self.free_valid.next = self.freeing.q.val() & (self.state.q.val() == HubState::Free);
        self.free_frame.next = self.free_id.q.val();
        self.answer.next = self.answered.q.val();
        self.status.next = self.status_held.q.val();
        self.answered.d.next = false;
        self.chooses.next = self.ready.val()
            & self.turn_valid.val()
            & ((self.state.q.val() == HubState::Idle)
                | ((self.state.q.val() == HubState::Store) & !self.freeing.q.val()));
        self.choose.next = self.chooses.val();
        self.load.next = self.state.q.val() == HubState::Load;
        self.store.next = self.state.q.val() == HubState::Store;
        self.pick.next = (self.state.q.val() == HubState::Work) & self.turn.q.val().get_bit(2);
        self.append.next = false;
        self.progress.next = false;
        self.again.next = false;
        self.rewind.next = false;
        self.obey.next = false;
        self.fresh.next = false;
        self.clear.next = 0.into();
        self.tx_syn.next = false;
        self.tx_ack.next = false;
        self.tx_data.next = false;
        self.up.next = false;
        self.down.next = false;
        self.put_taken.next = false;
        self.spent_taken.next = false;
        self.pops.next = false;
        // Time counts while everything that was sent is on its way, not while it waits to be sent
        // again.
        self.late.next = self.expired.val()
            & (self.was_opening.q.val()
                | (self.was_open.q.val() & self.outstanding.val() & self.newly.val()));
        match self.state.q.val() {
            HubState::Idle => {}
            HubState::Load => {
                self.was_open.d.next = self.open.val().get_bit(self.at.q.val().index());
                self.was_opening.d.next = self.opening.val().get_bit(self.at.q.val().index());
                self.state.d.next = HubState::Look;
            }
            HubState::Look => {
                self.state.d.next = HubState::Work;
            }
            HubState::Work => {
                self.state.d.next = HubState::Store;
                if self.turn.q.val().get_bit(1) {
                    self.state.d.next = HubState::Measure;
                } else if self.turn.q.val().get_bit(3) {
                    self.put_taken.next = true;
                    if self.put_stale.val() | !self.was_open.q.val() {
                        self.free_id.d.next = self.put_frame.val();
                        self.freeing.d.next = true;
                        self.state.d.next = HubState::Free;
                    } else {
                        self.append.next = true;
                        self.tx_data.next = true;
                    }
                } else if self.turn.q.val().get_bit(4) {
                    if self.is_up.val() {
                        self.clear.next = self.clear_up.val();
                        self.progress.next = true;
                        self.up.next = true;
                    } else if self.is_down.val() {
                        if self.live.val() {
                            self.pops.next = !self.head_busy.val();
                        } else {
                            self.clear.next = self.clear_down.val();
                            self.down.next = true;
                        }
                    } else if self.is_acked.val() {
                        if self.all_freed.val() {
                            // News of the last two cycles keep the mark.
                            if !self.touched.val() {
                                self.clear.next = self.clear_acked.val();
                            }
                        } else if !self.head_busy.val() {
                            self.pops.next = true;
                            self.progress.next = true;
                        }
                    } else if self.is_gapped.val() {
                        if !self.touched.val() {
                            self.clear.next = self.clear_gapped.val();
                        }
                        if self.gap_is_head.val() & self.outstanding.val() & !self.obeyed.val() {
                            self.obey.next = true;
                            self.rewind.next = true;
                            self.tx_data.next = true;
                        }
                    }
                } else if self.turn.q.val().get_bit(5) {
                    self.state.d.next = HubState::Idle;
                    self.status_held.d.next = self.status_ok.val();
                    self.order_reason.d.next = self.reason_closed.val();
                    if self.op.val() == self.op_open.val() {
                        self.order_open.d.next = true;
                        if self.was_open.q.val() | self.was_opening.q.val() {
                            self.status_held.d.next = self.status_bad_state.val();
                            self.answered.d.next = true;
                        } else if !(self.peer_busy.val() | self.dying.val()) {
                            self.ordering.d.next = true;
                            self.state.d.next = HubState::Command;
                        }
                    } else if self.op.val() == self.op_close.val() {
                        self.order_open.d.next = false;
                        if self.closing.q.val() {
                            // The answer waits until the frames are freed and the VIs stopped.
                            self.answered.d.next = !self.dying.val();
                            self.closing.d.next = self.dying.val();
                        } else if self.was_open.q.val() | self.was_opening.q.val() {
                            self.closing.d.next = true;
                            self.ordering.d.next = true;
                            self.state.d.next = HubState::Command;
                        } else {
                            self.status_held.d.next = self.status_bad_state.val();
                            self.answered.d.next = true;
                        }
                    } else {
                        self.answered.d.next = true;
                    }
                }
            }
            HubState::Measure => {
                self.state.d.next = HubState::Judge;
            }
            HubState::Judge => {
                self.state.d.next = HubState::Store;
                self.order_open.d.next = false;
                self.order_reason.d.next = self.reason_dead.val();
                if (self.was_open.q.val() & self.silent.val())
                    | (self.late.val() & self.hopeless.val())
                {
                    self.ordering.d.next = true;
                    self.state.d.next = HubState::Command;
                } else if self.late.val() {
                    self.again.next = true;
                    self.tx_syn.next = self.was_opening.q.val();
                    self.rewind.next = self.was_open.q.val();
                    self.tx_data.next = self.was_open.q.val();
                } else {
                    self.tx_ack.next = self.was_open.q.val() & self.quiet.val();
                }
            }
            HubState::Command => {
                if self.command_done.val() {
                    self.ordering.d.next = false;
                    self.state.d.next = HubState::Idle;
                    if self.order_open.q.val() {
                        self.fresh.next = true;
                        self.tx_syn.next = true;
                        self.answered.d.next = true;
                        self.state.d.next = HubState::Store;
                    }
                }
            }
            HubState::Store => {
                self.state.d.next = HubState::Idle;
                if self.freeing.q.val() {
                    self.state.d.next = HubState::Free;
                }
            }
            HubState::Free => {
                if self.free_done.val() {
                    self.freeing.d.next = false;
                    self.state.d.next = HubState::Idle;
                }
            }
            _ => {
                self.state.d.next = HubState::Idle;
            }
        }
        // The following operation, chosen in Idle, or already while this one is stored.
        if self.chooses.val() {
            self.turn.d.next = self.turn_class.val();
            self.at.d.next = self.turn_peer.val();
            self.state.d.next = HubState::Load;
            if self.turn_class.val().get_bit(0) {
                self.free_id.d.next = self.spent_frame.val();
                self.freeing.d.next = true;
                self.spent_taken.next = true;
                self.state.d.next = HubState::Free;
            }
        }
        self.pop.next = self.pops.val();
        if self.pops.val() {
            self.freeing.d.next = true;
            self.free_id.d.next = self.head.val();
        }
        if self.reset.val() {
            self.state.d.next = HubState::Idle;
            self.ordering.d.next = false;
            self.freeing.d.next = false;
            self.closing.d.next = false;
            self.answered.d.next = false;
        }
    }
}
