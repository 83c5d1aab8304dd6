//! What software hears of a peer: kills its VIs when it is down, and writes the events PeerUp,
//! PeerDown, MessageRefused.
//!
//! ```text
//! kill   Idle -> (KillClient) -> Idle      one peer at a time, beside everything else
//! event  Choose -> Call -> Choose          one event at a time
//! ```
//! Events wait as bits, so nothing here is ever lost or blocks the channel. PeerDown waits for the
//! kill of its peer. If both an up and a down event of a peer wait, the older goes first; an older
//! one of the same kind is replaced. When the queue is full all events wait until it drains (or
//! ERROR_QUEUE names another queue); events for an absent queue are dropped.
use super::num::Num;
use super::picker::Picker;
use crate::ifs::{EventClient, KillClient};
use nic_regs::event::Kind;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum NotifyState {
    /// Waits for an event that may be delivered.
    Choose,
    /// Reads its peer's tables.
    Prepare,
    /// Waits for the event block.
    Call,
}

#[derive(LogicBlock, Default)]
pub struct Notify {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub error_queue: Signal<In, Bits<16>>,
    pub error_queue_valid: Signal<In, Bit>,
    pub drain_channel: Signal<In, Bit>,
    pub drain_channel_queue: Signal<In, Bits<16>>,
    pub kill: KillClient,
    pub events: EventClient,
    // From the peer machine.
    pub peer: Signal<In, Bits<6>>,
    pub up: Signal<In, Bit>,
    pub down: Signal<In, Bit>,
    /// A message to `refused_peer` was refused.
    pub refused: Signal<In, Bit>,
    pub refused_peer: Signal<In, Bits<6>>,
    /// Peers whose VIs are still to be stopped.
    pub killing: Signal<Out, Bits<64>>,
    // Tables of the receiver.
    pub table_peer: Signal<Out, Bits<6>>,
    pub epoch: Signal<In, Bits<32>>,
    pub reason: Signal<In, Bits<3>>,
    kill_picker: Picker,
    event_picker: Picker,
    kills: DFF<Bits<64>>,
    ups: DFF<Bits<64>>,
    downs: DFF<Bits<64>>,
    refusals: DFF<Bits<64>>,
    /// The up event is the younger one.
    up_younger: DFF<Bits<64>>,
    wanted: DFF<Bits<64>>,
    state: DFF<NotifyState>,
    at: DFF<Bits<6>>,
    full: DFF<Bit>,
    full_queue: DFF<Bits<16>>,
    moved: DFF<Bit>,
    is_up: DFF<Bit>,
    is_down: DFF<Bit>,
    word0: DFF<Bits<32>>,
    word1: DFF<Bits<32>>,
    killed: DFF<Bit>,
    kill_done: DFF<Bit>,
    calls: DFF<Bit>,
    notified: DFF<Bit>,
    notified_full: DFF<Bit>,
    refusal: DFF<Bit>,
    refusal_peer: DFF<Bits<6>>,
    drained: DFF<Bit>,
    drained_queue: DFF<Bits<16>>,
    queue_set: DFF<Bits<16>>,
    queue_valid: DFF<Bit>,
    message: DFF<Bits<3>>,
    one_peer: Signal<Local, Bits<64>>,
    one_at: Signal<Local, Bits<64>>,
    keep_at: Signal<Local, Bits<64>>,
    one_kill: Signal<Local, Bits<64>>,
    keep_kill: Signal<Local, Bits<64>>,
    one_refused: Signal<Local, Bits<64>>,
    keep_peer: Signal<Local, Bits<64>>,
    kill_free: Signal<Local, Bits<64>>,
    take_up: Signal<Local, Bit>,
    take_down: Signal<Local, Bit>,
    take_refused: Signal<Local, Bit>,
    back_up: Signal<Local, Bit>,
    back_down: Signal<Local, Bit>,
    back_refused: Signal<Local, Bit>,
    place: Signal<Local, Bits<32>>,
    ups_left: Signal<Local, Bits<64>>,
    downs_left: Signal<Local, Bits<64>>,
    refusals_left: Signal<Local, Bits<64>>,
    here_up: Signal<Local, Bit>,
    here_down: Signal<Local, Bit>,
    here_refused: Signal<Local, Bit>,
    here_younger: Signal<Local, Bit>,
    drains: Signal<Local, Bit>,
    one: Num<64, 1>,
    outcome_full: Num<2, 1>,
    kind_up: Num<32, { Kind::PeerUp as u64 }>,
    kind_down: Num<32, { Kind::PeerDown as u64 }>,
    kind_refused: Num<32, { Kind::MessageRefused as u64 }>,
}

impl Logic for Notify {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, kills, ups, downs, refusals, up_younger, wanted, state, at, full);
        dff_setup!(self, clock, full_queue, moved, is_up, is_down, word0, word1, killed);
        dff_setup!(
            self,
            clock,
            kill_done,
            calls,
            notified,
            notified_full,
            refusal,
            refusal_peer,
            drained
        );
        dff_setup!(self, clock, drained_queue, queue_set, queue_valid, message);
        clock!(self, clock, kill_picker, event_picker);
        self.kill_picker.reset.next = self.reset.val();
        self.event_picker.reset.next = self.reset.val();
        // Inputs.
        self.refusal.d.next = self.refused.val();
        self.refusal_peer.d.next = self.refused_peer.val();
        self.drained.d.next = self.drain_channel.val();
        self.drained_queue.d.next = self.drain_channel_queue.val();
        self.queue_set.d.next = self.error_queue.val();
        self.queue_valid.d.next = self.error_queue_valid.val();
        self.one_peer.next = self.one.val() << self.peer.val();
        self.keep_peer.next = !self.one_peer.val();

        // Kills.
        self.kill_picker.want.next = self.kills.q.val();
        self.kill_done.d.next = self.kill.done.val() & self.killed.q.val();
        self.kill_picker.took.next = self.kill_done.q.val();
        self.killed.d.next =
            self.kill_picker.valid.val() & !(self.kill.done.val() | self.kill_done.q.val());
        self.kill.valid.next = self.killed.q.val();
        self.kill.peer.next = bit_cast::<8, 6>(self.kill_picker.peer.val());
        self.one_kill.next = 0.into();
        if self.kill_done.q.val() {
            self.one_kill.next = self.one.val() << self.kill_picker.peer.val();
        }
        self.keep_kill.next = !self.one_kill.val();
        self.kills.d.next = self.kills.q.val() & self.keep_kill.val();
        if self.down.val() {
            self.kills.d.next = (self.kills.q.val() & self.keep_kill.val()) | self.one_peer.val();
        }
        self.killing.next = self.kills.q.val();

        // Choice of an event.
        self.kill_free.next = !self.kills.q.val();
        self.wanted.d.next =
            self.ups.q.val() | self.refusals.q.val() | (self.downs.q.val() & self.kill_free.val());
        self.event_picker.want.next = self.wanted.q.val();
        self.event_picker.took.next = false;
        self.table_peer.next = self.at.q.val();
        self.here_up.next = self.ups.q.val().get_bit(self.at.q.val().index());
        self.here_down.next = self.downs.q.val().get_bit(self.at.q.val().index())
            & !self.kills.q.val().get_bit(self.at.q.val().index());
        self.here_refused.next = self.refusals.q.val().get_bit(self.at.q.val().index());
        self.here_younger.next = self.up_younger.q.val().get_bit(self.at.q.val().index());
        self.drains.next =
            self.drained.q.val() & (self.drained_queue.q.val() == self.full_queue.q.val());
        self.take_up.next = false;
        self.take_down.next = false;
        self.take_refused.next = false;
        self.back_up.next = false;
        self.back_down.next = false;
        self.back_refused.next = false;
        self.place.next = bit_cast::<32, 6>(self.at.q.val()) << 16;
        self.calls.d.next = self.calls.q.val() & !self.events.done.val();
        self.notified.d.next = self.calls.q.val() & self.events.done.val();
        self.notified_full.d.next = self.events.outcome.val() == self.outcome_full.val();
        self.events.valid.next = self.calls.q.val();
        self.events.queue.next = self.full_queue.q.val();
        self.events.word0.next = self.word0.q.val();
        self.events.word1.next = self.word1.q.val();
        self.events.word2.next = 0.into();
        self.events.wide.next = false;
        self.message.d.next = self.events.message_index.val();
        self.events.message_data.next = bit_cast::<64, 3>(self.message.q.val());
        if self.drains.val() | (self.full_queue.q.val() != self.queue_set.q.val()) {
            self.full.d.next = false;
            self.moved.d.next = true;
        }
        match self.state.q.val() {
            NotifyState::Choose => {
                if self.event_picker.valid.val() & !self.full.q.val() {
                    self.at.d.next = self.event_picker.peer.val();
                    self.event_picker.took.next = true;
                    self.state.d.next = NotifyState::Prepare;
                }
            }
            NotifyState::Prepare => {
                self.full_queue.d.next = self.queue_set.q.val();
                self.moved.d.next = false;
                self.word1.d.next = 0.into();
                self.word0.d.next = self.kind_refused.val() | self.place.val();
                self.take_up.next =
                    self.here_up.val() & !(self.here_down.val() & self.here_younger.val());
                self.take_down.next = self.here_down.val() & !self.take_up.val();
                self.take_refused.next =
                    self.here_refused.val() & !(self.take_up.val() | self.take_down.val());
                if self.take_up.val() {
                    self.word0.d.next = self.kind_up.val() | self.place.val();
                    self.word1.d.next = self.epoch.val();
                } else if self.take_down.val() {
                    self.word0.d.next = self.kind_down.val() | self.place.val();
                    self.word1.d.next = bit_cast::<32, 3>(self.reason.val());
                }
                self.is_up.d.next = self.take_up.val();
                self.is_down.d.next = self.take_down.val();
                self.state.d.next = NotifyState::Choose;
                if self.take_up.val() | self.take_down.val() | self.take_refused.val() {
                    // Without a queue the event is lost.
                    self.calls.d.next = self.queue_valid.q.val();
                    if self.queue_valid.q.val() {
                        self.state.d.next = NotifyState::Call;
                    }
                }
            }
            NotifyState::Call => {
                if self.notified.q.val() {
                    self.state.d.next = NotifyState::Choose;
                    if self.notified_full.q.val() {
                        self.full.d.next = !(self.moved.q.val() | self.drains.val());
                        self.back_up.next = self.is_up.q.val();
                        self.back_down.next = self.is_down.q.val();
                        self.back_refused.next = !(self.is_up.q.val() | self.is_down.q.val());
                    }
                }
            }
            _ => {
                self.state.d.next = NotifyState::Choose;
            }
        }

        // The bits. An event leaves when it is tried and comes back when the queue is full; a new
        // one comes as the younger.
        self.one_at.next = self.one.val() << self.at.q.val();
        self.keep_at.next = !self.one_at.val();
        self.ups_left.next = self.ups.q.val();
        if self.take_up.val() {
            self.ups_left.next = self.ups.q.val() & self.keep_at.val();
        } else if self.back_up.val() {
            self.ups_left.next = self.ups.q.val() | self.one_at.val();
        }
        self.downs_left.next = self.downs.q.val();
        if self.take_down.val() {
            self.downs_left.next = self.downs.q.val() & self.keep_at.val();
        } else if self.back_down.val() {
            self.downs_left.next = self.downs.q.val() | self.one_at.val();
        }
        self.refusals_left.next = self.refusals.q.val();
        if self.take_refused.val() {
            self.refusals_left.next = self.refusals.q.val() & self.keep_at.val();
        } else if self.back_refused.val() {
            self.refusals_left.next = self.refusals.q.val() | self.one_at.val();
        }
        self.ups.d.next = self.ups_left.val();
        self.downs.d.next = self.downs_left.val();
        self.refusals.d.next = self.refusals_left.val();
        if self.up.val() {
            self.ups.d.next = self.ups_left.val() | self.one_peer.val();
            self.up_younger.d.next = self.up_younger.q.val() | self.one_peer.val();
        } else if self.down.val() {
            self.downs.d.next = self.downs_left.val() | self.one_peer.val();
            self.up_younger.d.next = self.up_younger.q.val() & self.keep_peer.val();
        }
        self.one_refused.next = self.one.val() << self.refusal_peer.q.val();
        if self.refusal.q.val() {
            self.refusals.d.next = self.refusals_left.val() | self.one_refused.val();
        }
        if self.reset.val() {
            self.kills.d.next = 0.into();
            self.ups.d.next = 0.into();
            self.downs.d.next = 0.into();
            self.refusals.d.next = 0.into();
            self.state.d.next = NotifyState::Choose;
            self.full.d.next = false;
            self.killed.d.next = false;
            self.kill_done.d.next = false;
            self.calls.d.next = false;
            self.refusal.d.next = false;
        }
    }
}
