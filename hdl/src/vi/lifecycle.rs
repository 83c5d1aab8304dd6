//! State of every VI: Free, Idle, Connected, Error; what it owes its peer; why it stopped; whether
//! it is in the ready ring; and the configuration of `ViCreate` and `ViConnect`. Timing as in
//! [`super::queue`].

use crate::leaf::{Number, SdpRam};
use nic_regs::desc::status::PARTIAL_ERROR;
use nic_regs::vi::StopReason;
use rust_hdl::prelude::*;

/// The operations are exclusive and qualified by the caller (a stop comes only for a Connected VI,
/// and so on), except `schedule` and `unschedule`, which come with them.
#[derive(LogicBlock, Default)]
pub struct Lifecycle {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Every VI is Free: set some cycles after a reset.
    pub ready: Signal<Out, Bit>,
    pub read_address: Signal<In, Bits<10>>,
    pub write_address: Signal<In, Bits<10>>,
    /// An operation is in this cycle: the state is written back.
    pub write: Signal<In, Bit>,
    pub create: Signal<In, Bit>,
    pub destroy: Signal<In, Bit>,
    pub connect: Signal<In, Bit>,
    pub disconnect: Signal<In, Bit>,
    pub stop: Signal<In, Bit>,
    /// The stop also owes a ViRefuse.
    pub refuse: Signal<In, Bit>,
    pub need_ack: Signal<In, Bit>,
    /// Owed bits that were sent or forgotten.
    pub sent: Signal<In, Bits<3>>,
    /// The ViError is about to be reported / comes back.
    pub error_take: Signal<In, Bit>,
    pub error_back: Signal<In, Bit>,
    pub schedule: Signal<In, Bit>,
    pub unschedule: Signal<In, Bit>,
    /// Reason 7:0, detail 15:8, queue 16, status 36:17.
    pub stop_word: Signal<In, Bits<37>>,
    /// The send queue's head has placed bytes here: a stop that blames that queue says so.
    pub partial: Signal<In, Bit>,
    /// Domain 5:0, reliability 8:6, tag 24:9, send queue 33:25, receive queue 42:34 (bit 8: none),
    /// transfer 61:43, RDMA that it allows 63:62.
    pub new_config: Signal<In, Bits<64>>,
    /// Peer 5:0, peer VI 21:6, connection 37:22, RDMA that the peer allows 39:38.
    pub new_connection: Signal<In, Bits<40>>,
    // Of the VI in stage 1: state, domain, in the ready ring, Connected and owes nothing.
    pub coming_state: Signal<Out, Bits<2>>,
    pub coming_domain: Signal<Out, Bits<6>>,
    pub coming_scheduled: Signal<Out, Bit>,
    pub coming_clear: Signal<Out, Bit>,
    pub state: Signal<Out, Bits<2>>,
    pub control_pending: Signal<Out, Bits<3>>,
    pub scheduled: Signal<Out, Bit>,
    pub error_pending: Signal<Out, Bit>,
    pub connected_after: Signal<Out, Bit>,
    pub control_pending_after: Signal<Out, Bit>,
    /// Refusal reason 7:0, stop reason 15:8, detail 23:16, queue 24, status 44:25.
    pub stop_info: Signal<Out, Bits<45>>,
    pub config_word: Signal<Out, Bits<64>>,
    pub connection_word: Signal<Out, Bits<40>>,
    /// State 1:0, owed 4:2, scheduled 5, error pending 6.
    state_ram: SdpRam<7, 10>,
    stop_ram: SdpRam<45, 10>,
    config_ram: SdpRam<64, 10>,
    connection_ram: SdpRam<40, 10>,
    /// Bit 10: the state RAM is clear.
    clear_at: DFF<Bits<11>>,
    state_now: DFF<Bits<7>>,
    stop_now: DFF<Bits<45>>,
    config_now: DFF<Bits<64>>,
    connection_now: DFF<Bits<40>>,
    state_next: Signal<Local, Bits<2>>,
    control_pending_next: Signal<Local, Bits<3>>,
    control_pending_now: Signal<Local, Bits<3>>,
    control_pending_kept: Signal<Local, Bits<3>>,
    control_pending_new: Signal<Local, Bits<3>>,
    scheduled_next: Signal<Local, Bit>,
    pending_next: Signal<Local, Bit>,
    was_connected: Signal<Local, Bit>,
    /// An Unreliable VI that stopped by itself: its peer does not know.
    untold: Signal<Local, Bit>,
    reason: Signal<Local, Bits<8>>,
    refused: Number<8, { StopReason::Refused as u64 }>,
    peer_down: Number<8, { StopReason::PeerDown as u64 }>,
    disconnected: Number<8, { StopReason::Disconnected as u64 }>,
    refuse_reason: Signal<Local, Bits<8>>,
    full_word: Signal<Local, Bits<37>>,
    partial_bit: Number<37, { (PARTIAL_ERROR as u64) << 17 }>,
}

impl Logic for Lifecycle {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, clear_at, state_now, stop_now, config_now, connection_now);
        self.ready.next = self.clear_at.q.val().get_bit(10);
        clock!(self, clock, state_ram, stop_ram, config_ram, connection_ram);
        self.state_ram.read_address.next = self.read_address.val();
        self.stop_ram.read_address.next = self.read_address.val();
        self.config_ram.read_address.next = self.read_address.val();
        self.connection_ram.read_address.next = self.read_address.val();
        self.state_now.d.next = self.state_ram.read_data.val();
        self.stop_now.d.next = self.stop_ram.read_data.val();
        self.config_now.d.next = self.config_ram.read_data.val();
        self.connection_now.d.next = self.connection_ram.read_data.val();
        self.coming_state.next = self.state_ram.read_data.val().get_bits::<2>(0);
        self.coming_scheduled.next = self.state_ram.read_data.val().get_bit(5);
        self.coming_clear.next = self.state_ram.read_data.val().get_bit(1)
            & (!self.state_ram.read_data.val().get_bit(0))
            & (!self.state_ram.read_data.val().get_bits::<3>(2).any());
        self.coming_domain.next = self.config_ram.read_data.val().get_bits::<6>(0);
        self.state.next = self.state_now.q.val().get_bits::<2>(0);
        self.control_pending_now.next = self.state_now.q.val().get_bits::<3>(2);
        self.control_pending.next = self.control_pending_now.val();
        self.scheduled.next = self.state_now.q.val().get_bit(5);
        self.error_pending.next = self.state_now.q.val().get_bit(6);
        self.stop_info.next = self.stop_now.q.val();
        self.config_word.next = self.config_now.q.val();
        self.connection_word.next = self.connection_now.q.val();

        self.was_connected.next =
            self.state_now.q.val().get_bit(1) & (!self.state_now.q.val().get_bit(0));
        self.state_next.next = self.state_now.q.val().get_bits::<2>(0);
        self.pending_next.next = self.state_now.q.val().get_bit(6);
        if self.create.val() {
            self.state_next.next = 1.into();
            self.pending_next.next = false;
        } else if self.destroy.val() {
            self.state_next.next = 0.into();
            self.pending_next.next = false;
        } else if self.connect.val() {
            self.state_next.next = 2.into();
        } else if self.disconnect.val() {
            self.state_next.next = 1.into();
            self.pending_next.next = false;
        } else if self.stop.val() {
            self.state_next.next = 3.into();
            self.pending_next.next = true;
        } else if self.error_take.val() {
            self.pending_next.next = false;
        } else if self.error_back.val() {
            self.pending_next.next = true;
        }
        self.connected_after.next = (self.connect.val() | self.was_connected.val())
            & (!self.disconnect.val())
            & (!self.stop.val());
        self.control_pending_kept.next = self.control_pending_now.val() & (!self.sent.val());
        self.reason.next = self.stop_now.q.val().get_bits::<8>(8);
        self.untold.next = self.state_now.q.val().get_bits::<2>(0).all()
            & self.config_now.q.val().get_bit(6)
            & (self.reason.val() != self.refused.val())
            & (self.reason.val() != self.peer_down.val())
            & (self.reason.val() != self.disconnected.val());
        self.control_pending_new.next = (bit_cast::<3, 1>(
            (self.disconnect.val() & (self.was_connected.val() | self.untold.val())).into(),
        ) << 2)
            | (bit_cast::<3, 1>(self.refuse.val().into()) << 1)
            | bit_cast::<3, 1>(self.need_ack.val().into());
        self.control_pending_next.next =
            self.control_pending_kept.val() | self.control_pending_new.val();
        if self.create.val() {
            self.control_pending_next.next = 0.into();
        }
        self.control_pending_after.next = self.control_pending_next.val().any();
        self.scheduled_next.next =
            (self.state_now.q.val().get_bit(5) | self.schedule.val()) & (!self.unschedule.val());

        self.state_ram.write_address.next = self.write_address.val();
        self.state_ram.write_enable.next = self.write.val();
        self.state_ram.write_data.next = bit_cast::<7, 2>(self.state_next.val())
            | (bit_cast::<7, 3>(self.control_pending_next.val()) << 2)
            | (bit_cast::<7, 1>(self.scheduled_next.val().into()) << 5)
            | (bit_cast::<7, 1>(self.pending_next.val().into()) << 6);
        if !self.clear_at.q.val().get_bit(10) {
            self.clear_at.d.next = self.clear_at.q.val() + 1;
            self.state_ram.write_address.next = self.clear_at.q.val().get_bits::<10>(0);
            self.state_ram.write_enable.next = true;
            self.state_ram.write_data.next = 0.into();
        }
        self.full_word.next = self.stop_word.val();
        if self.partial.val() & (!self.stop_word.val().get_bit(16)) {
            self.full_word.next = self.stop_word.val() | self.partial_bit.val();
        }
        self.refuse_reason.next = self.stop_now.q.val().get_bits::<8>(0);
        if self.refuse.val() {
            self.refuse_reason.next = self.stop_word.val().get_bits::<8>(0);
        }
        self.stop_ram.write_address.next = self.write_address.val();
        self.stop_ram.write_enable.next = self.stop.val();
        self.stop_ram.write_data.next = bit_cast::<45, 8>(self.refuse_reason.val())
            | (bit_cast::<45, 37>(self.full_word.val()) << 8);
        self.config_ram.write_address.next = self.write_address.val();
        self.config_ram.write_enable.next = self.create.val();
        self.config_ram.write_data.next = self.new_config.val();
        self.connection_ram.write_address.next = self.write_address.val();
        self.connection_ram.write_enable.next = self.connect.val();
        self.connection_ram.write_data.next = self.new_connection.val();
        if self.reset.val() {
            self.clear_at.d.next = 0.into();
        }
    }
}
