//! Acceptance of frames (contract 7.2) and the state of each channel: the one writer of Closed /
//! Opening / Open.
//!
//! A frame takes three cycles and frames are at least four beats apart, so every fourth cycle is
//! free for a command of the peer machine (open, close, dead) even when frames arrive back to back;
//! frame and command never see each other half done.
//!
//! | cycle | what |
//! |---|---|
//! | 0 | the last beat is being checked (`coming`); the tables are read at the source node |
//! | 1 | `frame` (or `misfit`) is high; tags, numbers and epochs are compared; room in staging is sampled |
//! | 2 | the verdict: tables and pending bits are written, `commit` tells staging to keep the frame |
//! | 3 | free: a command |
use super::compare::Compare;
use super::num::Num;
use super::tables::RxTables;
use nic_regs::event::PeerDownReason;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Accept {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Time in units of 16 cycles.
    pub now: Signal<In, Bits<32>>,
    // From the link receiver: the header is stable from cycle 1 for three cycles.
    pub coming: Signal<In, Bit>,
    pub coming_from: Signal<In, Bits<6>>,
    pub frame: Signal<In, Bit>,
    /// A SYN or SYN-ACK of another link version.
    pub misfit: Signal<In, Bit>,
    pub header0: Signal<In, Bits<64>>,
    pub header1: Signal<In, Bits<64>>,
    pub header2: Signal<In, Bits<64>>,
    /// Staging has room for it, if it is sequenced, or not (cycle 1).
    pub fits: Signal<In, Bit>,
    pub fits_no_sequence: Signal<In, Bit>,
    pub commit: Signal<Out, Bit>,
    /// With `commit`: it is unsequenced.
    pub no_sequence: Signal<Out, Bit>,
    // Command (call).
    pub command: Signal<In, Bit>,
    /// Open (else: down, if it is not already).
    pub command_open: Signal<In, Bit>,
    pub command_peer: Signal<In, Bits<6>>,
    pub command_epoch: Signal<In, Bits<32>>,
    pub command_reason: Signal<In, Bits<3>>,
    pub command_done: Signal<Out, Bit>,
    /// State of each peer; neither: Closed.
    pub open: Signal<Out, Bits<64>>,
    pub opening: Signal<Out, Bits<64>>,
    /// Flips at each opening, so that what is left of the last channel is not taken for the next
    /// one's.
    pub epoch_bits: Signal<Out, Bits<64>>,
    /// Of the frame's source.
    pub epoch_bit: Signal<Out, Bit>,
    /// A peer is being opened (its number is `mark_peer`).
    pub opened: Signal<Out, Bit>,
    pub opens_bit: Signal<Out, Bit>,
    // Pending operations, all of this peer.
    pub mark_peer: Signal<Out, Bits<6>>,
    pub mark_up: Signal<Out, Bit>,
    pub mark_down: Signal<Out, Bit>,
    pub mark_acked: Signal<Out, Bit>,
    pub mark_go_back: Signal<Out, Bit>,
    /// Its credit limit moved.
    pub mark_moved: Signal<Out, Bit>,
    pub mark_rst: Signal<Out, Bit>,
    pub mark_synack: Signal<Out, Bit>,
    pub mark_nak: Signal<Out, Bit>,
    pub mark_ack: Signal<Out, Bit>,
    pub mark_ack_pending: Signal<Out, Bit>,
    pub mark_refused: Signal<Out, Bit>,
    /// Its frame found no room: a NAK when there is room again.
    pub mark_starved: Signal<Out, Bit>,
    /// Something good was received.
    pub alive: Signal<Out, Bit>,
    /// DropNode, DropTag, DropOrder, DropDuplicate, DropStaging.
    pub drops: Signal<Out, Bits<5>>,
    /// PeersLost.
    pub lost: Signal<Out, Bit>,
    // Other readers of the tables.
    pub write_newest: Signal<In, Bit>,
    pub newest_peer: Signal<In, Bits<6>>,
    pub newest: Signal<In, Bits<16>>,
    pub tx_peer: Signal<In, Bits<6>>,
    pub tx_expected: Signal<Out, Bits<17>>,
    pub tx_tag: Signal<Out, Bits<16>>,
    pub tx_own: Signal<Out, Bits<32>>,
    pub hub_peer: Signal<In, Bits<6>>,
    pub hub_acked: Signal<Out, Bits<16>>,
    pub hub_limit: Signal<Out, Bits<8>>,
    pub hub_nak: Signal<Out, Bits<16>>,
    pub hub_alive: Signal<Out, Bits<32>>,
    pub hub_reset_tag: Signal<Out, Bits<16>>,
    pub ask_peer: Signal<In, Bits<6>>,
    pub ask_limit: Signal<Out, Bits<8>>,
    pub event_peer: Signal<In, Bits<6>>,
    pub event_remote: Signal<Out, Bits<32>>,
    pub event_reason: Signal<Out, Bits<3>>,
    tables: RxTables,
    compare: Compare,
    open_set: DFF<Bits<64>>,
    opening_set: DFF<Bits<64>>,
    epoch_set: DFF<Bits<64>>,
    done: DFF<Bit>,
    drop_bits: DFF<Bits<5>>,
    lost_bit: DFF<Bit>,
    // Fields.
    source: Signal<Local, Bits<6>>,
    idle: Signal<Local, Bit>,
    look: Signal<Local, Bits<6>>,
    at: Signal<Local, Bits<6>>,
    at_one: Signal<Local, Bits<64>>,
    not_at: Signal<Local, Bits<64>>,
    go_up: Signal<Local, Bit>,
    go_down: Signal<Local, Bit>,
    go_opening: Signal<Local, Bit>,
    refuse: Signal<Local, Bit>,
    ack_good: Signal<Local, Bit>,
    same_epoch: Signal<Local, Bit>,
    ack_moves: Signal<Local, Bit>,
    in_order: Signal<Local, Bit>,
    reason: Signal<Local, Bits<3>>,
    reason_restarted: Num<3, { PeerDownReason::Restarted as u64 }>,
    reason_reset: Num<3, { PeerDownReason::Reset as u64 }>,
    reason_version: Num<3, { PeerDownReason::Version as u64 }>,
    zero_8: Num<8, 0>,
    zero_16: Num<16, 0>,
    all_4: Num<4, 15>,
    one_64: Num<64, 1>,
    asked: Num<17, 0x1_0000>,
}

impl Logic for Accept {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, open_set, opening_set, epoch_set, done, drop_bits, lost_bit);
        clock!(self, clock, tables, compare);
        self.compare.reset.next = self.reset.val();
        self.source.next = self.header0.val().get_bits::<6>(32);

        // Cycle 0: read. A command looks at its peer through the same port when no frame is there.
        self.idle.next = !(self.coming.val() | self.compare.busy.val());
        self.look.next = self.command_peer.val();
        if self.coming.val() {
            self.look.next = self.coming_from.val();
        }
        self.tables.rx_peer.next = self.look.val();
        self.compare.start.next = self.coming.val();
        self.compare.frame.next = self.frame.val();
        self.compare.misfit.next = self.misfit.val();
        self.compare.open.next = self.open_set.q.val().get_bit(self.coming_from.val().index());
        self.compare.opening.next =
            self.opening_set.q.val().get_bit(self.coming_from.val().index());
        self.compare.expected.next = self.tables.rx_expected.val();
        self.compare.tag.next = self.tables.rx_tag.val();
        self.compare.own.next = self.tables.rx_own.val();
        self.compare.remote.next = self.tables.rx_remote.val();
        self.compare.acked.next = self.tables.rx_acked.val();
        self.compare.newest.next = self.tables.rx_newest.val();
        self.compare.limit.next = self.tables.rx_limit.val();
        self.compare.header0.next = self.header0.val();
        self.compare.header1.next = self.header1.val();
        self.compare.header2.next = self.header2.val();
        self.compare.fits.next = self.fits.val();
        self.compare.fits_no_sequence.next = self.fits_no_sequence.val();

        // Cycle 2: the verdict.
        self.ack_good.next = self.compare.ack_step.val() <= self.compare.ack_room.val();
        self.in_order.next = self.compare.ahead.val() == self.zero_16.val();
        self.ack_moves.next =
            self.ack_good.val() & (self.compare.ack_step.val() != self.zero_16.val());
        self.same_epoch.next = self.compare.same_epoch.val() == self.all_4.val();
        self.go_up.next = false;
        self.go_down.next = false;
        self.go_opening.next = false;
        self.refuse.next = false;
        self.alive.next = false;
        self.reason.next = self.command_reason.val();
        self.commit.next = false;
        self.mark_synack.next = false;
        self.mark_nak.next = false;
        self.mark_ack.next = false;
        self.mark_ack_pending.next = false;
        self.mark_refused.next = false;
        self.mark_starved.next = false;
        self.no_sequence.next = !self.compare.is_sequenced.val();
        self.drop_bits.d.next = 0.into();
        self.drops.next = self.drop_bits.q.val();
        self.tables.write_expected.next = false;
        self.tables.expected.next = bit_cast::<17, 16>(self.compare.following.val());
        self.at.next = self.command_peer.val();
        if self.compare.valid.val() {
            self.at.next = self.source.val();
            if self.compare.is_misfit.val() {
                self.go_down.next = self.compare.was_opening.val();
                self.reason.next = self.reason_version.val();
            } else if self.compare.is_syn.val() {
                self.go_up.next = self.compare.was_opening.val();
                self.mark_synack.next = self.compare.was_opening.val()
                    | (self.compare.was_open.val() & self.same_epoch.val());
                self.go_down.next = self.compare.was_open.val() & !self.same_epoch.val();
                self.reason.next = self.reason_restarted.val();
            } else if self.compare.is_synack.val() {
                self.go_up.next = self.compare.was_opening.val() & self.compare.join_good.val();
            } else if self.compare.is_rst.val() {
                self.go_down.next = self.compare.was_open.val() & self.compare.tag_good.val();
                self.reason.next = self.reason_reset.val();
            } else if !self.compare.was_open.val() {
                self.drop_bits.d.next = 1.into();
                self.refuse.next = !self.compare.was_opening.val();
            } else if !self.compare.tag_good.val() {
                self.drop_bits.d.next = 2.into();
                self.refuse.next = true;
            } else {
                self.alive.next = true;
                if self.compare.is_sequenced.val() {
                    self.tables.write_expected.next = !self.compare.ahead.val().get_bit(15);
                    if self.compare.ahead.val().get_bit(15) {
                        self.drop_bits.d.next = 8.into();
                        self.mark_ack.next = true;
                    } else if self.in_order.val() & self.compare.room.val() {
                        self.commit.next = true;
                        self.mark_ack_pending.next = true;
                    } else {
                        // No NAK for the frames behind it. If there was no room, its sender hears
                        // of us now.
                        self.tables.expected.next =
                            bit_cast::<17, 16>(self.compare.expects.val()) | self.asked.val();
                        self.mark_ack.next = self.in_order.val();
                        self.mark_starved.next = self.in_order.val();
                        self.mark_nak.next = !(self.in_order.val() | self.compare.nak_asked.val());
                        self.drop_bits.d.next = 4.into();
                        if self.in_order.val() {
                            self.drop_bits.d.next = 16.into();
                        }
                    }
                } else if self.compare.is_data.val() {
                    self.commit.next = self.compare.room_no_sequence.val();
                    if !self.compare.room_no_sequence.val() {
                        self.drop_bits.d.next = 16.into();
                    }
                } else {
                    self.mark_refused.next = self.compare.is_refused.val();
                }
            }
        }
        self.mark_acked.next = self.alive.val() & self.ack_moves.val();
        self.mark_moved.next = self.alive.val()
            & (!self.compare.limit_step.val().get_bit(7))
            & (self.compare.limit_step.val() != self.zero_8.val());
        self.mark_go_back.next = self.alive.val() & self.ack_good.val() & self.compare.is_nak.val();

        // A command in a free cycle.
        self.done.d.next = false;
        self.command_done.next = self.done.q.val();
        self.tables.write_reset_tag.next = self.refuse.val();
        self.tables.reset_tag.next = self.header0.val().get_bits::<16>(48);
        self.tables.reset_tag_own.next = false;
        self.mark_rst.next = self.refuse.val();
        if self.idle.val() & self.command.val() & !self.done.q.val() {
            self.done.d.next = true;
            if self.command_open.val() {
                self.go_opening.next = true;
                self.tables.write_expected.next = true;
                self.tables.expected.next = 0.into();
            } else {
                self.go_down.next = self.open_set.q.val().get_bit(self.command_peer.val().index())
                    | self.opening_set.q.val().get_bit(self.command_peer.val().index());
                // Reason 0 is Closed: tell the peer.
                self.mark_rst.next = (!self.command_reason.val().any())
                    & self.open_set.q.val().get_bit(self.command_peer.val().index());
                self.tables.write_reset_tag.next = self.mark_rst.val();
                self.tables.reset_tag_own.next = true;
            }
        }

        // State.
        self.at_one.next = self.one_64.val() << self.at.val();
        self.not_at.next = !self.at_one.val();
        if self.go_up.val() {
            self.open_set.d.next = self.open_set.q.val() | self.at_one.val();
            self.opening_set.d.next = self.opening_set.q.val() & self.not_at.val();
        } else if self.go_down.val() {
            self.open_set.d.next = self.open_set.q.val() & self.not_at.val();
            self.opening_set.d.next = self.opening_set.q.val() & self.not_at.val();
        } else if self.go_opening.val() {
            self.opening_set.d.next = self.opening_set.q.val() | self.at_one.val();
            self.epoch_set.d.next = self.epoch_set.q.val() ^ self.at_one.val();
        }
        self.open.next = self.open_set.q.val();
        self.opening.next = self.opening_set.q.val();
        self.epoch_bits.next = self.epoch_set.q.val();
        self.epoch_bit.next = self.epoch_set.q.val().get_bit(self.source.val().index());
        self.opened.next = self.go_opening.val();
        self.opens_bit.next = !self.epoch_set.q.val().get_bit(self.command_peer.val().index());
        self.mark_peer.next = self.at.val();
        self.mark_up.next = self.go_up.val();
        self.mark_down.next = self.go_down.val();
        self.lost_bit.d.next = self.go_down.val() & self.reason.val().any();
        self.lost.next = self.lost_bit.q.val();

        // The other tables.
        self.tables.write_peer.next = self.at.val();
        self.tables.write_tag.next = self.go_up.val();
        self.tables.tag.next = self.compare.new_tag.val();
        self.tables.remote.next = self.header2.val().get_bits::<32>(32);
        self.tables.write_own.next = self.go_opening.val();
        self.tables.own.next = self.command_epoch.val();
        self.tables.write_acked.next = self.mark_acked.val() | self.go_opening.val();
        self.tables.acked.next = self.header2.val().get_bits::<16>(16);
        if self.go_opening.val() {
            self.tables.acked.next = 0.into();
        }
        self.tables.write_nak.next = self.mark_go_back.val();
        self.tables.write_limit.next = self.go_up.val() | self.mark_moved.val();
        self.tables.limit.next = self.header1.val().get_bits::<8>(56);
        // A SYN again: its sender has not heard of us yet, but is there.
        self.tables.write_alive.next = self.go_up.val() | self.mark_synack.val() | self.alive.val();
        self.tables.alive.next = self.now.val();
        self.tables.write_reason.next = self.go_down.val();
        self.tables.reason.next = self.reason.val();
        self.tables.write_newest.next = self.write_newest.val();
        self.tables.newest_peer.next = self.newest_peer.val();
        self.tables.newest.next = self.newest.val();
        self.tables.tx_peer.next = self.tx_peer.val();
        self.tx_expected.next = self.tables.tx_expected.val();
        self.tx_tag.next = self.tables.tx_tag.val();
        self.tx_own.next = self.tables.tx_own.val();
        self.tables.hub_peer.next = self.hub_peer.val();
        self.hub_acked.next = self.tables.hub_acked.val();
        self.hub_limit.next = self.tables.hub_limit.val();
        self.hub_nak.next = self.tables.hub_nak.val();
        self.hub_alive.next = self.tables.hub_alive.val();
        self.hub_reset_tag.next = self.tables.hub_reset_tag.val();
        self.tables.ask_peer.next = self.ask_peer.val();
        self.ask_limit.next = self.tables.ask_limit.val();
        self.tables.event_peer.next = self.event_peer.val();
        self.event_remote.next = self.tables.event_remote.val();
        self.event_reason.next = self.tables.event_reason.val();
        if self.reset.val() {
            self.open_set.d.next = 0.into();
            self.opening_set.d.next = 0.into();
            self.epoch_set.d.next = 0.into();
            self.drop_bits.d.next = 0.into();
            self.lost_bit.d.next = false;
        }
    }
}
