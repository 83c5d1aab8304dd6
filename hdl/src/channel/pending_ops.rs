//! Pending work as one bit for each peer and kind.
//!
//! A mark is set by whoever finds the work and cleared by the peer machine when it takes it. A mark
//! that is set and cleared at the same edge stays set, so work found while the last of its kind is
//! being taken is never lost. What the receiver finds passes a register first.
use super::num::Num;
use rust_hdl::prelude::*;

/// What is to be transmitted: control frames by kind, and data.
///
/// | bit of `found`, `hub_clear` | mark | set by |
/// |---|---|---|
/// | 0 | RST | receiver, peer machine (close) |
/// | 1 | SYN | peer machine |
/// | 2 | SYN-ACK | receiver |
/// | 3 | Ack with NAK | receiver (order; no room, once there is room) |
/// | 4 | Ack | receiver (duplicate, no room), delay (due), peer machine (keepalive) |
/// | 5 | MessageRefused | staging |
/// | 6 | frames of the pool | peer machine, receiver (credits for frames that wait for them) |
#[derive(LogicBlock, Default)]
pub struct TxPendingOps {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub rx_peer: Signal<In, Bits<6>>,
    pub rx_rst: Signal<In, Bit>,
    pub rx_synack: Signal<In, Bit>,
    pub rx_nak: Signal<In, Bit>,
    pub rx_ack: Signal<In, Bit>,
    /// Its credit limit moved.
    pub rx_moved: Signal<In, Bit>,
    /// Its frame found no room in staging: a NAK when there is room.
    pub rx_starved: Signal<In, Bit>,
    pub room: Signal<In, Bit>,
    pub due_peer: Signal<In, Bits<6>>,
    pub due: Signal<In, Bit>,
    pub refuse_peer: Signal<In, Bits<6>>,
    pub refuse: Signal<In, Bit>,
    /// The pending bits of this peer are `found`.
    pub look_peer: Signal<In, Bits<6>>,
    pub hub_peer: Signal<In, Bits<6>>,
    pub hub_syn: Signal<In, Bit>,
    pub hub_ack: Signal<In, Bit>,
    pub hub_data: Signal<In, Bit>,
    /// Its frames wait for credits: they are marked again when the limit moves. The decision is
    /// two cycles old; a limit that moved since then counts.
    pub hub_blocks: Signal<In, Bit>,
    pub hub_clear: Signal<In, Bits<7>>,
    pub found: Signal<Out, Bits<7>>,
    /// Peers with any mark, one cycle late.
    pub want: Signal<Out, Bits<64>>,
    rst: DFF<Bits<64>>,
    syn: DFF<Bits<64>>,
    synack: DFF<Bits<64>>,
    nak: DFF<Bits<64>>,
    ack: DFF<Bits<64>>,
    refused: DFF<Bits<64>>,
    data: DFF<Bits<64>>,
    blocked: DFF<Bits<64>>,
    any: DFF<Bits<64>>,
    from: DFF<Bits<6>>,
    from_rst: DFF<Bit>,
    from_synack: DFF<Bit>,
    from_nak: DFF<Bit>,
    from_ack: DFF<Bit>,
    from_moved: DFF<Bit>,
    from_starved: DFF<Bit>,
    starved: DFF<Bits<64>>,
    hungry: Signal<Local, Bits<64>>,
    asks: Signal<Local, Bits<64>>,
    late: DFF<Bits<6>>,
    late_moved: DFF<Bit>,
    moved_one: Signal<Local, Bits<64>>,
    moved_keep: Signal<Local, Bits<64>>,
    blocks_one: Signal<Local, Bits<64>>,
    again_one: Signal<Local, Bits<64>>,
    just_moved: Signal<Local, Bit>,
    rx_one: Signal<Local, Bits<64>>,
    due_one: Signal<Local, Bits<64>>,
    refuse_one: Signal<Local, Bits<64>>,
    hub_one: Signal<Local, Bits<64>>,
    rx_acks: Signal<Local, Bits<64>>,
    hub_acks: Signal<Local, Bits<64>>,
    keep: Signal<Local, Bits<64>>,
    kept_rst: Signal<Local, Bits<64>>,
    kept_syn: Signal<Local, Bits<64>>,
    kept_synack: Signal<Local, Bits<64>>,
    kept_nak: Signal<Local, Bits<64>>,
    kept_ack: Signal<Local, Bits<64>>,
    kept_refused: Signal<Local, Bits<64>>,
    kept_data: Signal<Local, Bits<64>>,
    one: Num<64, 1>,
}

impl Logic for TxPendingOps {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, rst, syn, synack, nak, ack, refused, data, any);
        dff_setup!(self, clock, from, from_rst, from_synack, from_nak, from_ack);
        dff_setup!(self, clock, blocked, from_moved, late, late_moved, from_starved, starved);
        self.from_moved.d.next = self.rx_moved.val();
        self.from_starved.d.next = self.rx_starved.val();
        self.late.d.next = self.from.q.val();
        self.late_moved.d.next = self.from_moved.q.val();
        self.from.d.next = self.rx_peer.val();
        self.from_rst.d.next = self.rx_rst.val();
        self.from_synack.d.next = self.rx_synack.val();
        self.from_nak.d.next = self.rx_nak.val();
        self.from_ack.d.next = self.rx_ack.val();
        self.rx_one.next = self.one.val() << self.from.q.val();
        self.due_one.next = 0.into();
        if self.due.val() {
            self.due_one.next = self.one.val() << self.due_peer.val();
        }
        self.refuse_one.next = 0.into();
        if self.refuse.val() {
            self.refuse_one.next = self.one.val() << self.refuse_peer.val();
        }
        self.hub_one.next = self.one.val() << self.hub_peer.val();
        self.keep.next = !self.hub_one.val();

        // Frames that wait for credits.
        self.just_moved.next = (self.from_moved.q.val()
            & (self.from.q.val() == self.hub_peer.val()))
            | (self.late_moved.q.val() & (self.late.q.val() == self.hub_peer.val()));
        self.moved_one.next = 0.into();
        if self.from_moved.q.val() {
            self.moved_one.next = self.rx_one.val();
        }
        self.moved_keep.next = !self.moved_one.val();
        self.blocks_one.next = 0.into();
        self.again_one.next = self.blocked.q.val() & self.moved_one.val();
        if self.hub_blocks.val() & self.just_moved.val() {
            self.again_one.next =
                (self.blocked.q.val() & self.moved_one.val()) | self.hub_one.val();
        } else if self.hub_blocks.val() {
            self.blocks_one.next = self.hub_one.val();
        }
        self.blocked.d.next =
            (self.blocked.q.val() & self.moved_keep.val()) | self.blocks_one.val();

        // Frames that found no room.
        self.hungry.next = self.starved.q.val();
        self.asks.next = 0.into();
        if self.room.val() {
            self.hungry.next = 0.into();
            self.asks.next = self.starved.q.val();
        }
        self.starved.d.next = self.hungry.val();
        if self.from_starved.q.val() {
            self.starved.d.next = self.hungry.val() | self.rx_one.val();
        }

        // What stays of each kind.
        self.kept_rst.next = self.rst.q.val();
        if self.hub_clear.val().get_bit(0) {
            self.kept_rst.next = self.rst.q.val() & self.keep.val();
        }
        self.kept_syn.next = self.syn.q.val();
        if self.hub_clear.val().get_bit(1) {
            self.kept_syn.next = self.syn.q.val() & self.keep.val();
        }
        self.kept_synack.next = self.synack.q.val();
        if self.hub_clear.val().get_bit(2) {
            self.kept_synack.next = self.synack.q.val() & self.keep.val();
        }
        self.kept_nak.next = self.nak.q.val();
        if self.hub_clear.val().get_bit(3) {
            self.kept_nak.next = self.nak.q.val() & self.keep.val();
        }
        self.kept_ack.next = self.ack.q.val();
        if self.hub_clear.val().get_bit(4) {
            self.kept_ack.next = self.ack.q.val() & self.keep.val();
        }
        self.kept_refused.next = self.refused.q.val();
        if self.hub_clear.val().get_bit(5) {
            self.kept_refused.next = self.refused.q.val() & self.keep.val();
        }
        self.kept_data.next = self.data.q.val();
        if self.hub_clear.val().get_bit(6) {
            self.kept_data.next = self.data.q.val() & self.keep.val();
        }

        // What comes to it.
        self.rst.d.next = self.kept_rst.val();
        if self.from_rst.q.val() {
            self.rst.d.next = self.kept_rst.val() | self.rx_one.val();
        }
        self.syn.d.next = self.kept_syn.val();
        if self.hub_syn.val() {
            self.syn.d.next = self.kept_syn.val() | self.hub_one.val();
        }
        self.synack.d.next = self.kept_synack.val();
        if self.from_synack.q.val() {
            self.synack.d.next = self.kept_synack.val() | self.rx_one.val();
        }
        self.nak.d.next = self.kept_nak.val() | self.asks.val();
        if self.from_nak.q.val() {
            self.nak.d.next = self.kept_nak.val() | self.asks.val() | self.rx_one.val();
        }
        self.rx_acks.next = 0.into();
        if self.from_ack.q.val() {
            self.rx_acks.next = self.rx_one.val();
        }
        self.hub_acks.next = 0.into();
        if self.hub_ack.val() {
            self.hub_acks.next = self.hub_one.val();
        }
        self.ack.d.next =
            self.kept_ack.val() | self.due_one.val() | self.rx_acks.val() | self.hub_acks.val();
        self.refused.d.next = self.kept_refused.val() | self.refuse_one.val();
        self.data.d.next = self.kept_data.val() | self.again_one.val();
        if self.hub_data.val() {
            self.data.d.next = self.kept_data.val() | self.again_one.val() | self.hub_one.val();
        }

        self.any.d.next = self.rst.q.val()
            | self.syn.q.val()
            | self.synack.q.val()
            | self.nak.q.val()
            | self.ack.q.val()
            | self.refused.q.val()
            | self.data.q.val();
        self.want.next = self.any.q.val();
        self.found.next =
            bit_cast::<7, 1>(self.rst.q.val().get_bit(self.look_peer.val().index()).into())
                | (bit_cast::<7, 1>(self.syn.q.val().get_bit(self.look_peer.val().index()).into())
                    << 1)
                | (bit_cast::<7, 1>(
                    self.synack.q.val().get_bit(self.look_peer.val().index()).into(),
                ) << 2)
                | (bit_cast::<7, 1>(self.nak.q.val().get_bit(self.look_peer.val().index()).into())
                    << 3)
                | (bit_cast::<7, 1>(self.ack.q.val().get_bit(self.look_peer.val().index()).into())
                    << 4)
                | (bit_cast::<7, 1>(
                    self.refused.q.val().get_bit(self.look_peer.val().index()).into(),
                ) << 5)
                | (bit_cast::<7, 1>(
                    self.data.q.val().get_bit(self.look_peer.val().index()).into(),
                ) << 6);
        if self.reset.val() {
            self.rst.d.next = 0.into();
            self.syn.d.next = 0.into();
            self.synack.d.next = 0.into();
            self.nak.d.next = 0.into();
            self.ack.d.next = 0.into();
            self.refused.d.next = 0.into();
            self.data.d.next = 0.into();
            self.blocked.d.next = 0.into();
            self.starved.d.next = 0.into();
            self.from_starved.d.next = false;
            self.from_moved.d.next = false;
            self.late_moved.d.next = false;
            self.from_rst.d.next = false;
            self.from_synack.d.next = false;
            self.from_nak.d.next = false;
            self.from_ack.d.next = false;
        }
    }
}
