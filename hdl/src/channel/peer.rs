//! The peer machine: everything about sending to a peer, one operation at a time, for all 64 peers.
//!
//! ```text
//! Idle -> Load -> Work -> Store -> [Free ->] Idle
//!                  |-> Measure -> Judge -> Store | Command          (scan)
//!                  `-> Command -> Store | Idle                      (open, close, dead)
//! ```
//! | class of operation | what | cycles |
//! |---|---|---|
//! | spent | an unsequenced frame was sent: free it | 4 |
//! | scan | retry time-outs, keepalive, silence of one peer | 6 |
//! | pick | choose the next frame or control frame for the transmitter | 4 |
//! | put | append a committed frame to its peer's list | 4 |
//! | service | up, down, acknowledged frames (one each time), go back on GAP | 4 to 8 |
//! | admin | open, close, query | 4 to 8 |
//!
//! The classes take turns, and so do peers within pick and service, so nothing starves. A frame that the transmitter holds
//! or is about to take is never freed; its operation simply comes round again.
use super::job::Job;
use super::lists::Lists;
use super::marks::ServiceMarks;
use super::num::Num;
use super::timer::Timer;
use super::turns::Turns;
use crate::ifs::PeerServer;
use nic_regs::admin::{AdminStatus, PeerState};
use nic_regs::event::PeerDownReason;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum HubState {
    /// Chooses an operation.
    Idle,
    /// Reads the peer's entry.
    Load,
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
pub struct PeerHub {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ready: Signal<In, Bit>,
    pub enable: Signal<In, Bit>,
    pub retry_timeout: Signal<In, Bits<24>>,
    pub retry_limit: Signal<In, Bits<4>>,
    pub keepalive: Signal<In, Bits<32>>,
    pub peers: PeerServer,
    pub now: Signal<Out, Bits<32>>,
    // Acceptance: state, command, tables at `peer`.
    pub open: Signal<In, Bits<64>>,
    pub opening: Signal<In, Bits<64>>,
    pub peer: Signal<Out, Bits<6>>,
    pub command: Signal<Out, Bit>,
    pub command_open: Signal<Out, Bit>,
    pub command_epoch: Signal<Out, Bits<32>>,
    pub command_credits: Signal<Out, Bits<8>>,
    pub command_reason: Signal<Out, Bits<3>>,
    pub command_done: Signal<In, Bit>,
    pub acked: Signal<In, Bits<16>>,
    pub gap: Signal<In, Bits<16>>,
    pub heard: Signal<In, Bits<32>>,
    pub reset_tag: Signal<In, Bits<16>>,
    pub write_newest: Signal<Out, Bit>,
    pub newest: Signal<Out, Bits<16>>,
    // Marks of the receiver.
    pub rx_peer: Signal<In, Bits<6>>,
    pub rx_up: Signal<In, Bit>,
    pub rx_down: Signal<In, Bit>,
    pub rx_acked: Signal<In, Bit>,
    pub rx_gapped: Signal<In, Bit>,
    // Marks of the transmitter, at `peer`.
    pub tx_want: Signal<In, Bits<64>>,
    pub tx_found: Signal<In, Bits<7>>,
    pub tx_clear: Signal<Out, Bits<7>>,
    pub tx_syn: Signal<Out, Bit>,
    pub tx_ack: Signal<Out, Bit>,
    pub tx_data: Signal<Out, Bit>,
    // Notices, at `peer`.
    pub up: Signal<Out, Bit>,
    pub down: Signal<Out, Bit>,
    pub killing: Signal<In, Bits<64>>,
    // Pool.
    pub put_valid: Signal<In, Bit>,
    pub put_peer: Signal<In, Bits<6>>,
    pub put_frame: Signal<In, Bits<7>>,
    pub put_unsequenced: Signal<In, Bit>,
    pub put_stale: Signal<In, Bit>,
    pub put_taken: Signal<Out, Bit>,
    pub free_valid: Signal<Out, Bit>,
    pub free_frame: Signal<Out, Bits<7>>,
    pub free_done: Signal<In, Bit>,
    // Transmitter: the job, as in `LinkTx`.
    pub job_valid: Signal<Out, Bit>,
    pub job_data: Signal<Out, Bit>,
    pub job_kind: Signal<Out, Bits<8>>,
    pub job_peer: Signal<Out, Bits<6>>,
    pub job_frame: Signal<Out, Bits<7>>,
    pub job_number: Signal<Out, Bits<16>>,
    pub job_unsequenced: Signal<Out, Bit>,
    pub job_again: Signal<Out, Bit>,
    pub job_gap: Signal<Out, Bit>,
    pub job_tag: Signal<Out, Bits<16>>,
    pub job_taken: Signal<In, Bit>,
    pub hand_valid: Signal<In, Bit>,
    pub hand_data: Signal<In, Bit>,
    pub hand_peer: Signal<In, Bits<6>>,
    pub hand_frame: Signal<In, Bits<7>>,
    pub spent_valid: Signal<In, Bit>,
    pub spent_peer: Signal<In, Bits<6>>,
    pub spent_frame: Signal<In, Bits<7>>,
    pub spent_taken: Signal<Out, Bit>,
    lists: Lists,
    job: Job,
    marks: ServiceMarks,
    timer: Timer,
    turns: Turns,
    state: DFF<HubState>,
    at: DFF<Bits<6>>,
    class: DFF<Bits<6>>,
    is_open: DFF<Bit>,
    is_opening: DFF<Bit>,
    heard_at: DFF<Bits<32>>,
    // Calls in progress.
    ordering: DFF<Bit>,
    order_open: DFF<Bit>,
    order_reason: DFF<Bits<3>>,
    freeing: DFF<Bit>,
    free_id: DFF<Bits<7>>,
    closing: DFF<Bit>,
    answered: DFF<Bit>,
    status: DFF<Bits<4>>,
    starts: Signal<Local, Bit>,
    works: Signal<Local, Bit>,
    in_use: Signal<Local, Bit>,
    peer_in_use: Signal<Local, Bit>,
    tries_after: Signal<Local, Bits<5>>,
    pops: Signal<Local, Bit>,
    killing_here: Signal<Local, Bit>,
    going_down: Signal<Local, Bit>,
    op_open: Num<2, 0>,
    op_close: Num<2, 1>,
    zero_16: Num<16, 0>,
    status_ok: Num<4, { AdminStatus::Ok as u64 }>,
    status_bad_state: Num<4, { AdminStatus::BadState as u64 }>,
    state_opening: Num<4, { PeerState::Opening as u64 }>,
    state_open: Num<4, { PeerState::Open as u64 }>,
    reason_closed: Num<3, { PeerDownReason::Closed as u64 }>,
    reason_dead: Num<3, { PeerDownReason::Dead as u64 }>,
    clear_up: Num<4, 0x1>,
    clear_down: Num<4, 0xe>,
    clear_acked: Num<4, 0x4>,
    clear_gapped: Num<4, 0x8>,
}

impl Logic for PeerHub {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, at, class, is_open, is_opening, heard_at, ordering);
        dff_setup!(self, clock, order_open, order_reason, freeing, free_id, closing, answered);
        dff_setup!(self, clock, status);
        clock!(self, clock, lists, job, marks, timer, turns);
        self.marks.reset.next = self.reset.val();
        self.timer.reset.next = self.reset.val();
        self.turns.reset.next = self.reset.val();
        self.job.reset.next = self.reset.val();

        // Surroundings.
        self.peer.next = self.at.q.val();
        self.marks.rx_peer.next = self.rx_peer.val();
        self.marks.rx_up.next = self.rx_up.val();
        self.marks.rx_down.next = self.rx_down.val();
        self.marks.rx_acked.next = self.rx_acked.val();
        self.marks.rx_gapped.next = self.rx_gapped.val();
        self.marks.hub_peer.next = self.at.q.val();
        self.marks.hub_clear.next = 0.into();
        self.timer.enable.next = self.enable.val();
        self.timer.retry_timeout.next = self.retry_timeout.val();
        self.timer.retry_limit.next = self.retry_limit.val();
        self.timer.keepalive.next = self.keepalive.val();
        self.timer.open.next = self.open.val();
        self.timer.opening.next = self.opening.val();
        self.timer.stamp.next = self.lists.stamp.val();
        self.timer.tries.next = self.lists.tries.val();
        self.timer.sent.next = self.lists.sent.val();
        self.timer.heard.next = self.heard_at.q.val();
        self.timer.scan_taken.next = self.turns.scan_taken.val();
        self.now.next = self.timer.now.val();
        self.tx_syn.next = false;
        self.tx_ack.next = false;
        self.tx_data.next = false;
        self.up.next = false;
        self.down.next = false;
        self.put_taken.next = false;
        self.spent_taken.next = false;
        self.command.next = self.ordering.q.val();
        self.command_open.next = self.order_open.q.val();
        self.command_epoch.next = self.peers.epoch.val();
        self.command_credits.next = self.peers.credits.val();
        self.command_reason.next = self.order_reason.q.val();
        self.free_valid.next = self.freeing.q.val() & (self.state.q.val() == HubState::Free);
        self.free_frame.next = self.free_id.q.val();
        self.peers.done.next = self.answered.q.val();
        self.peers.status.next = self.status.q.val();
        self.peers.state.next = 0.into();
        if self.is_open.q.val() {
            self.peers.state.next = self.state_open.val();
        } else if self.is_opening.q.val() {
            self.peers.state.next = self.state_opening.val();
        }
        self.answered.d.next = false;

        // Whose turn it is.
        self.starts.next = (self.state.q.val() == HubState::Idle) & self.ready.val();
        self.turns.choose.next = self.starts.val() & self.turns.valid.val();
        self.turns.spent.next = self.spent_valid.val();
        self.turns.spent_peer.next = self.spent_peer.val();
        self.turns.scan.next = self.timer.scan.val();
        self.turns.scan_peer.next = self.timer.scan_peer.val();
        self.turns.tx_want.next = self.tx_want.val();
        self.turns.picks.next = self.enable.val() & !self.job.valid.val();
        self.turns.put.next = self.put_valid.val();
        self.turns.put_peer.next = self.put_peer.val();
        self.turns.service_want.next = self.marks.want.val();
        self.turns.admin.next = self.peers.valid.val() & !self.answered.q.val();
        self.turns.admin_peer.next = self.peers.peer.val().get_bits::<6>(0);

        // The list of the peer, and the next job.
        self.works.next = self.state.q.val() == HubState::Work;
        self.lists.now.next = self.timer.now.val();
        self.lists.peer.next = self.at.q.val();
        self.lists.load.next = self.state.q.val() == HubState::Load;
        self.lists.store.next = self.state.q.val() == HubState::Store;
        self.lists.append.next = false;
        self.lists.frame.next = self.put_frame.val();
        self.lists.unsequenced.next = self.put_unsequenced.val();
        self.lists.take.next = self.job.take.val();
        self.lists.sends.next = self.job.sends.val();
        self.lists.progress.next = false;
        self.lists.again.next = false;
        self.lists.rewind.next = false;
        self.lists.obey.next = false;
        self.lists.fresh.next = false;
        self.job.choose.next = self.works.val() & self.class.q.val().get_bit(2);
        self.job.peer.next = self.at.q.val();
        self.job.is_open.next = self.is_open.q.val();
        self.job.is_opening.next = self.is_opening.q.val();
        self.job.found.next = self.tx_found.val();
        self.job.reset_tag.next = self.reset_tag.val();
        self.job.todo.next = self.lists.todo.val();
        self.job.at_tail.next = self.lists.at_tail.val();
        self.job.turn.next = self.lists.turn.val();
        self.job.number.next = self.lists.number.val();
        self.job.loose.next = self.lists.loose.val();
        self.job.newly.next = self.lists.newly.val();
        self.tx_clear.next = self.job.clear.val();
        self.write_newest.next =
            self.job.take.val() & self.lists.newly.val() & !self.lists.loose.val();
        self.newest.next = self.lists.number_after.val();
        self.job_valid.next = self.job.valid.val();
        self.job_data.next = self.job.data.val();
        self.job_kind.next = self.job.kind.val();
        self.job_peer.next = self.job.to.val();
        self.job_frame.next = self.job.frame.val();
        self.job_number.next = self.job.seq.val();
        self.job_unsequenced.next = self.job.unsequenced.val();
        self.job_again.next = self.job.again.val();
        self.job_gap.next = self.job.gap.val();
        self.job_tag.next = self.job.tag.val();
        self.job.taken.next = self.job_taken.val();
        self.in_use.next = (self.job.valid.val()
            & self.job.data.val()
            & (self.job.frame.val() == self.lists.head.val()))
            | (self.hand_valid.val()
                & self.hand_data.val()
                & (self.hand_frame.val() == self.lists.head.val()));
        self.peer_in_use.next = (self.job.valid.val() & (self.job.to.val() == self.at.q.val()))
            | (self.hand_valid.val() & (self.hand_peer.val() == self.at.q.val()))
            | (self.spent_valid.val() & (self.spent_peer.val() == self.at.q.val()))
            | (self.put_valid.val() & (self.put_peer.val() == self.at.q.val()));
        self.killing_here.next = self.killing.val().get_bit(self.at.q.val().index());
        self.going_down.next = self.marks.found.val().get_bit(1);
        self.tries_after.next = bit_cast::<5, 4>(self.lists.tries.val()) + 1;
        self.pops.next = false;
        match self.state.q.val() {
            HubState::Idle => {
                self.class.d.next = self.turns.class.val();
                self.at.d.next = self.turns.peer.val();
                if self.turns.choose.val() {
                    self.state.d.next = HubState::Load;
                    if self.turns.class.val().get_bit(0) {
                        self.free_id.d.next = self.spent_frame.val();
                        self.freeing.d.next = true;
                        self.spent_taken.next = true;
                        self.state.d.next = HubState::Free;
                    }
                }
            }
            HubState::Load => {
                self.is_open.d.next = self.open.val().get_bit(self.at.q.val().index());
                self.is_opening.d.next = self.opening.val().get_bit(self.at.q.val().index());
                self.heard_at.d.next = self.heard.val();
                self.state.d.next = HubState::Work;
            }
            HubState::Work => {
                self.state.d.next = HubState::Store;
                if self.class.q.val().get_bit(1) {
                    self.state.d.next = HubState::Measure;
                } else if self.class.q.val().get_bit(3) {
                    self.put_taken.next = true;
                    if self.put_stale.val() | !self.is_open.q.val() {
                        self.free_id.d.next = self.put_frame.val();
                        self.freeing.d.next = true;
                        self.state.d.next = HubState::Free;
                    } else {
                        self.lists.append.next = true;
                        self.tx_data.next = true;
                    }
                } else if self.class.q.val().get_bit(4) {
                    if self.marks.found.val().get_bit(0) {
                        self.marks.hub_clear.next = self.clear_up.val();
                        self.lists.progress.next = true;
                        self.up.next = true;
                    } else if self.going_down.val() {
                        if self.lists.live.val() {
                            self.pops.next = !self.in_use.val();
                        } else {
                            self.marks.hub_clear.next = self.clear_down.val();
                            self.down.next = true;
                        }
                    } else if self.marks.found.val().get_bit(2) {
                        if self.lists.freed.val() == self.acked.val() {
                            self.marks.hub_clear.next = self.clear_acked.val();
                        } else if !self.in_use.val() {
                            self.pops.next = true;
                            self.lists.progress.next = true;
                        }
                    } else if self.marks.found.val().get_bit(3) {
                        self.marks.hub_clear.next = self.clear_gapped.val();
                        if (self.gap.val() == self.lists.freed.val())
                            & self.lists.outstanding.val()
                            & !self.lists.obeyed.val()
                        {
                            self.lists.obey.next = true;
                            self.lists.rewind.next = true;
                            self.tx_data.next = true;
                        }
                    }
                } else if self.class.q.val().get_bit(5) {
                    self.state.d.next = HubState::Idle;
                    self.status.d.next = self.status_ok.val();
                    self.order_reason.d.next = self.reason_closed.val();
                    if self.peers.op.val() == self.op_open.val() {
                        self.order_open.d.next = true;
                        if self.is_open.q.val() | self.is_opening.q.val() {
                            self.status.d.next = self.status_bad_state.val();
                            self.answered.d.next = true;
                        } else if !(self.peer_in_use.val()
                            | self.killing_here.val()
                            | self.going_down.val())
                        {
                            self.ordering.d.next = true;
                            self.state.d.next = HubState::Command;
                        }
                    } else if self.peers.op.val() == self.op_close.val() {
                        self.order_open.d.next = false;
                        if self.closing.q.val() {
                            // The answer waits until the frames are freed and the VIs stopped.
                            self.answered.d.next =
                                !(self.killing_here.val() | self.going_down.val());
                            self.closing.d.next = self.killing_here.val() | self.going_down.val();
                        } else if self.is_open.q.val() | self.is_opening.q.val() {
                            self.closing.d.next = true;
                            self.ordering.d.next = true;
                            self.state.d.next = HubState::Command;
                        } else {
                            self.status.d.next = self.status_bad_state.val();
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
                if self.is_opening.q.val() {
                    if self.timer.expired.val() {
                        if self.lists.tries.val() >= self.retry_limit.val() {
                            self.ordering.d.next = true;
                            self.state.d.next = HubState::Command;
                        } else {
                            self.lists.again.next = true;
                            self.tx_syn.next = true;
                        }
                    }
                } else if self.is_open.q.val() {
                    // Time counts while everything that was sent is on its way, not while it waits to be sent again.
                    if self.timer.silent.val() {
                        self.ordering.d.next = true;
                        self.state.d.next = HubState::Command;
                    } else if self.timer.expired.val()
                        & self.lists.outstanding.val()
                        & self.lists.newly.val()
                    {
                        if self.tries_after.val() >= bit_cast::<5, 4>(self.retry_limit.val()) {
                            self.ordering.d.next = true;
                            self.state.d.next = HubState::Command;
                        } else {
                            self.lists.again.next = true;
                            self.lists.rewind.next = true;
                            self.tx_data.next = true;
                        }
                    } else if self.timer.quiet.val() {
                        self.tx_ack.next = true;
                    }
                }
            }
            HubState::Command => {
                if self.command_done.val() {
                    self.ordering.d.next = false;
                    self.state.d.next = HubState::Idle;
                    if self.order_open.q.val() {
                        self.lists.fresh.next = true;
                        self.write_newest.next = true;
                        self.newest.next = self.zero_16.val();
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
        self.lists.pop.next = self.pops.val();
        if self.pops.val() {
            self.freeing.d.next = true;
            self.free_id.d.next = self.lists.head.val();
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
