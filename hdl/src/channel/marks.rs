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
/// | 3 | Ack with GAP | receiver |
/// | 4 | Ack | receiver (duplicate), delay (due), peer machine (keepalive) |
/// | 5 | MessageRefused | staging |
/// | 6 | frames of the pool | peer machine, receiver (credits for frames that wait for them) |
#[derive(LogicBlock, Default)]
pub struct TxMarks {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub rx_peer: Signal<In, Bits<6>>,
    pub rx_rst: Signal<In, Bit>,
    pub rx_synack: Signal<In, Bit>,
    pub rx_gap: Signal<In, Bit>,
    pub rx_ack: Signal<In, Bit>,
    /// Its credit limit moved.
    pub rx_moved: Signal<In, Bit>,
    pub due_peer: Signal<In, Bits<6>>,
    pub due: Signal<In, Bit>,
    pub refuse_peer: Signal<In, Bits<6>>,
    pub refuse: Signal<In, Bit>,
    /// The marks of this peer are `found`.
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
    gap: DFF<Bits<64>>,
    ack: DFF<Bits<64>>,
    refused: DFF<Bits<64>>,
    data: DFF<Bits<64>>,
    blocked: DFF<Bits<64>>,
    any: DFF<Bits<64>>,
    from: DFF<Bits<6>>,
    from_rst: DFF<Bit>,
    from_synack: DFF<Bit>,
    from_gap: DFF<Bit>,
    from_ack: DFF<Bit>,
    from_moved: DFF<Bit>,
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
    keep: Signal<Local, Bits<64>>,
    kept_rst: Signal<Local, Bits<64>>,
    kept_syn: Signal<Local, Bits<64>>,
    kept_synack: Signal<Local, Bits<64>>,
    kept_gap: Signal<Local, Bits<64>>,
    kept_ack: Signal<Local, Bits<64>>,
    kept_refused: Signal<Local, Bits<64>>,
    kept_data: Signal<Local, Bits<64>>,
    one: Num<64, 1>,
}

impl Logic for TxMarks {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, rst, syn, synack, gap, ack, refused, data, any);
        dff_setup!(self, clock, from, from_rst, from_synack, from_gap, from_ack);
        dff_setup!(self, clock, blocked, from_moved, late, late_moved);
        self.from_moved.d.next = self.rx_moved.val();
        self.late.d.next = self.from.q.val();
        self.late_moved.d.next = self.from_moved.q.val();
        self.from.d.next = self.rx_peer.val();
        self.from_rst.d.next = self.rx_rst.val();
        self.from_synack.d.next = self.rx_synack.val();
        self.from_gap.d.next = self.rx_gap.val();
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
        self.kept_gap.next = self.gap.q.val();
        if self.hub_clear.val().get_bit(3) {
            self.kept_gap.next = self.gap.q.val() & self.keep.val();
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
        self.gap.d.next = self.kept_gap.val();
        if self.from_gap.q.val() {
            self.gap.d.next = self.kept_gap.val() | self.rx_one.val();
        }
        if self.from_ack.q.val() & self.hub_ack.val() {
            self.ack.d.next =
                self.kept_ack.val() | self.due_one.val() | self.rx_one.val() | self.hub_one.val();
        } else if self.from_ack.q.val() {
            self.ack.d.next = self.kept_ack.val() | self.due_one.val() | self.rx_one.val();
        } else if self.hub_ack.val() {
            self.ack.d.next = self.kept_ack.val() | self.due_one.val() | self.hub_one.val();
        } else {
            self.ack.d.next = self.kept_ack.val() | self.due_one.val();
        }
        self.refused.d.next = self.kept_refused.val() | self.refuse_one.val();
        self.data.d.next = self.kept_data.val() | self.again_one.val();
        if self.hub_data.val() {
            self.data.d.next = self.kept_data.val() | self.again_one.val() | self.hub_one.val();
        }

        self.any.d.next = self.rst.q.val()
            | self.syn.q.val()
            | self.synack.q.val()
            | self.gap.q.val()
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
                | (bit_cast::<7, 1>(self.gap.q.val().get_bit(self.look_peer.val().index()).into())
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
            self.gap.d.next = 0.into();
            self.ack.d.next = 0.into();
            self.refused.d.next = 0.into();
            self.data.d.next = 0.into();
            self.blocked.d.next = 0.into();
            self.from_moved.d.next = false;
            self.late_moved.d.next = false;
            self.any.d.next = 0.into();
            self.from_rst.d.next = false;
            self.from_synack.d.next = false;
            self.from_gap.d.next = false;
            self.from_ack.d.next = false;
        }
    }
}

/// What the receiver leaves to the peer machine.
///
/// | bit of `found`, `hub_clear` | mark |
/// |---|---|
/// | 0 | the channel came up |
/// | 1 | the channel went down: its frames are to be freed |
/// | 2 | frames were acknowledged |
/// | 3 | a gap was reported: go back |
#[derive(LogicBlock, Default)]
pub struct ServiceMarks {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub rx_peer: Signal<In, Bits<6>>,
    pub rx_up: Signal<In, Bit>,
    pub rx_down: Signal<In, Bit>,
    pub rx_acked: Signal<In, Bit>,
    pub rx_gapped: Signal<In, Bit>,
    /// The marks of this peer are `found`; some of them are taken over.
    pub look_peer: Signal<In, Bits<6>>,
    pub look_clear: Signal<In, Bits<4>>,
    pub hub_peer: Signal<In, Bits<6>>,
    pub hub_clear: Signal<In, Bits<4>>,
    /// These are put back.
    pub hub_renew: Signal<In, Bits<4>>,
    pub found: Signal<Out, Bits<4>>,
    /// Peers with any mark, one cycle late.
    pub want: Signal<Out, Bits<64>>,
    up: DFF<Bits<64>>,
    down: DFF<Bits<64>>,
    acked: DFF<Bits<64>>,
    gapped: DFF<Bits<64>>,
    any: DFF<Bits<64>>,
    from: DFF<Bits<6>>,
    from_up: DFF<Bit>,
    from_down: DFF<Bit>,
    from_acked: DFF<Bit>,
    from_gapped: DFF<Bit>,
    rx_one: Signal<Local, Bits<64>>,
    hub_one: Signal<Local, Bits<64>>,
    look_one: Signal<Local, Bits<64>>,
    keep: Signal<Local, Bits<64>>,
    look_keep: Signal<Local, Bits<64>>,
    falls: Signal<Local, Bit>,
    kept_up: Signal<Local, Bits<64>>,
    kept_down: Signal<Local, Bits<64>>,
    kept_acked: Signal<Local, Bits<64>>,
    kept_gapped: Signal<Local, Bits<64>>,
    one: Num<64, 1>,
}

impl Logic for ServiceMarks {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, up, down, acked, gapped, any);
        dff_setup!(self, clock, from, from_up, from_down, from_acked, from_gapped);
        self.from.d.next = self.rx_peer.val();
        self.from_up.d.next = self.rx_up.val();
        self.from_down.d.next = self.rx_down.val();
        self.from_acked.d.next = self.rx_acked.val();
        self.from_gapped.d.next = self.rx_gapped.val();
        self.rx_one.next = self.one.val() << self.from.q.val();
        self.look_one.next = self.one.val() << self.look_peer.val();
        self.look_keep.next = !self.look_one.val();
        self.hub_one.next = self.one.val() << self.hub_peer.val();
        self.keep.next = !self.hub_one.val();
        self.kept_up.next = self.up.q.val();
        if self.hub_clear.val().get_bit(0) {
            self.kept_up.next = self.up.q.val() & self.keep.val();
        }
        self.kept_down.next = self.down.q.val();
        if self.hub_clear.val().get_bit(1) {
            self.kept_down.next = self.down.q.val() & self.keep.val();
        }
        self.kept_acked.next = self.acked.q.val();
        if self.hub_clear.val().get_bit(2) {
            self.kept_acked.next = self.acked.q.val() & self.keep.val();
        } else if self.look_clear.val().get_bit(2) {
            self.kept_acked.next = self.acked.q.val() & self.look_keep.val();
        }
        self.kept_gapped.next = self.gapped.q.val();
        if self.hub_clear.val().get_bit(3) {
            self.kept_gapped.next = self.gapped.q.val() & self.keep.val();
        } else if self.look_clear.val().get_bit(3) {
            self.kept_gapped.next = self.gapped.q.val() & self.look_keep.val();
        }
        self.up.d.next = self.kept_up.val();
        if self.from_up.q.val() {
            self.up.d.next = self.kept_up.val() | self.rx_one.val();
        }
        self.down.d.next = self.kept_down.val();
        if self.from_down.q.val() {
            self.down.d.next = self.kept_down.val() | self.rx_one.val();
        }
        self.acked.d.next = self.kept_acked.val();
        if self.from_acked.q.val() & self.hub_renew.val().get_bit(2) {
            self.acked.d.next = self.kept_acked.val() | self.rx_one.val() | self.hub_one.val();
        } else if self.from_acked.q.val() {
            self.acked.d.next = self.kept_acked.val() | self.rx_one.val();
        } else if self.hub_renew.val().get_bit(2) {
            self.acked.d.next = self.kept_acked.val() | self.hub_one.val();
        }
        self.gapped.d.next = self.kept_gapped.val();
        if self.from_gapped.q.val() & self.hub_renew.val().get_bit(3) {
            self.gapped.d.next = self.kept_gapped.val() | self.rx_one.val() | self.hub_one.val();
        } else if self.from_gapped.q.val() {
            self.gapped.d.next = self.kept_gapped.val() | self.rx_one.val();
        } else if self.hub_renew.val().get_bit(3) {
            self.gapped.d.next = self.kept_gapped.val() | self.hub_one.val();
        }
        self.any.d.next =
            self.up.q.val() | self.down.q.val() | self.acked.q.val() | self.gapped.q.val();
        self.want.next = self.any.q.val();
        // A fall counts from the cycle in which the channel is Closed.
        self.falls.next = self.down.q.val().get_bit(self.look_peer.val().index())
            | (self.from_down.q.val() & (self.from.q.val() == self.look_peer.val()));
        self.found.next =
            bit_cast::<4, 1>(self.up.q.val().get_bit(self.look_peer.val().index()).into())
                | (bit_cast::<4, 1>(self.falls.val().into()) << 1)
                | (bit_cast::<4, 1>(
                    self.acked.q.val().get_bit(self.look_peer.val().index()).into(),
                ) << 2)
                | (bit_cast::<4, 1>(
                    self.gapped.q.val().get_bit(self.look_peer.val().index()).into(),
                ) << 3);
        if self.reset.val() {
            self.up.d.next = 0.into();
            self.down.d.next = 0.into();
            self.acked.d.next = 0.into();
            self.gapped.d.next = 0.into();
            self.any.d.next = 0.into();
            self.from_up.d.next = false;
            self.from_down.d.next = false;
            self.from_acked.d.next = false;
            self.from_gapped.d.next = false;
        }
    }
}
