//! Requests for the peer machine as one bit for each peer and kind, as in [`super::pending_ops`]; and who was
//! of whom frames arrived lately.
use super::num::Num;
use rust_hdl::prelude::*;

/// What the receiver leaves to the peer machine.
///
/// | bit of `found`, `hub_clear` | mark |
/// |---|---|
/// | 0 | the channel came up |
/// | 1 | the channel went down: its frames are to be freed |
/// | 2 | frames were acknowledged |
/// | 3 | a gap was reported: go back |
#[derive(LogicBlock, Default)]
pub struct ServicePendingOps {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub rx_peer: Signal<In, Bits<6>>,
    pub rx_up: Signal<In, Bit>,
    pub rx_down: Signal<In, Bit>,
    pub rx_acked: Signal<In, Bit>,
    pub rx_go_back: Signal<In, Bit>,
    /// Something good came.
    pub rx_alive: Signal<In, Bit>,
    /// The pending bits of this peer are `found`; some of them are taken over.
    pub look_peer: Signal<In, Bits<6>>,
    pub look_clear: Signal<In, Bits<4>>,
    pub hub_peer: Signal<In, Bits<6>>,
    pub hub_clear: Signal<In, Bits<4>>,
    /// These are put back.
    pub hub_renew: Signal<In, Bits<4>>,
    pub found: Signal<Out, Bits<4>>,
    /// Frames of the peer arrived since this was forgotten last, one cycle late: a time-out is not silent.
    pub alive: Signal<Out, Bit>,
    pub forget: Signal<In, Bit>,
    /// Peers with any mark, one cycle late.
    pub want: Signal<Out, Bits<64>>,
    up: DFF<Bits<64>>,
    down: DFF<Bits<64>>,
    acked: DFF<Bits<64>>,
    go_back: DFF<Bits<64>>,
    any: DFF<Bits<64>>,
    from: DFF<Bits<6>>,
    from_up: DFF<Bit>,
    from_down: DFF<Bit>,
    from_acked: DFF<Bit>,
    from_go_back: DFF<Bit>,
    from_alive: DFF<Bit>,
    arrivals: DFF<Bits<64>>,
    forgets: DFF<Bit>,
    forgot: DFF<Bits<64>>,
    is_alive: DFF<Bit>,
    kept_arrivals: Signal<Local, Bits<64>>,
    rx_one: Signal<Local, Bits<64>>,
    hub_one: Signal<Local, Bits<64>>,
    look_one: Signal<Local, Bits<64>>,
    keep: Signal<Local, Bits<64>>,
    look_keep: Signal<Local, Bits<64>>,
    falls: Signal<Local, Bit>,
    kept_up: Signal<Local, Bits<64>>,
    kept_down: Signal<Local, Bits<64>>,
    kept_acked: Signal<Local, Bits<64>>,
    kept_go_back: Signal<Local, Bits<64>>,
    new_acked: Signal<Local, Bits<64>>,
    renewed_acked: Signal<Local, Bits<64>>,
    new_go_back: Signal<Local, Bits<64>>,
    renewed_go_back: Signal<Local, Bits<64>>,
    one: Num<64, 1>,
}

impl Logic for ServicePendingOps {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, up, down, acked, go_back, any);
        dff_setup!(self, clock, from, from_up, from_down, from_acked, from_go_back);
        dff_setup!(self, clock, from_alive, arrivals, forgets, forgot, is_alive);
        self.from.d.next = self.rx_peer.val();
        self.from_up.d.next = self.rx_up.val();
        self.from_down.d.next = self.rx_down.val();
        self.from_acked.d.next = self.rx_acked.val();
        self.from_go_back.d.next = self.rx_go_back.val();
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
        self.kept_go_back.next = self.go_back.q.val();
        if self.hub_clear.val().get_bit(3) {
            self.kept_go_back.next = self.go_back.q.val() & self.keep.val();
        } else if self.look_clear.val().get_bit(3) {
            self.kept_go_back.next = self.go_back.q.val() & self.look_keep.val();
        }
        self.up.d.next = self.kept_up.val();
        if self.from_up.q.val() {
            self.up.d.next = self.kept_up.val() | self.rx_one.val();
        }
        self.down.d.next = self.kept_down.val();
        if self.from_down.q.val() {
            self.down.d.next = self.kept_down.val() | self.rx_one.val();
        }
        self.new_acked.next = 0.into();
        if self.from_acked.q.val() {
            self.new_acked.next = self.rx_one.val();
        }
        self.renewed_acked.next = 0.into();
        if self.hub_renew.val().get_bit(2) {
            self.renewed_acked.next = self.hub_one.val();
        }
        self.acked.d.next = self.kept_acked.val() | self.new_acked.val() | self.renewed_acked.val();
        self.new_go_back.next = 0.into();
        if self.from_go_back.q.val() {
            self.new_go_back.next = self.rx_one.val();
        }
        self.renewed_go_back.next = 0.into();
        if self.hub_renew.val().get_bit(3) {
            self.renewed_go_back.next = self.hub_one.val();
        }
        self.go_back.d.next =
            self.kept_go_back.val() | self.new_go_back.val() | self.renewed_go_back.val();
        // Whose frames arrived. What comes while the rest is forgotten stays.
        self.from_alive.d.next = self.rx_alive.val();
        self.forgets.d.next = self.forget.val();
        self.forgot.d.next = self.look_keep.val();
        self.kept_arrivals.next = self.arrivals.q.val();
        if self.forgets.q.val() {
            self.kept_arrivals.next = self.arrivals.q.val() & self.forgot.q.val();
        }
        self.arrivals.d.next = self.kept_arrivals.val();
        if self.from_alive.q.val() {
            self.arrivals.d.next = self.kept_arrivals.val() | self.rx_one.val();
        }
        self.is_alive.d.next = self.arrivals.q.val().get_bit(self.look_peer.val().index());
        self.alive.next = self.is_alive.q.val();
        self.any.d.next =
            self.up.q.val() | self.down.q.val() | self.acked.q.val() | self.go_back.q.val();
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
                    self.go_back.q.val().get_bit(self.look_peer.val().index()).into(),
                ) << 3);
        if self.reset.val() {
            self.up.d.next = 0.into();
            self.down.d.next = 0.into();
            self.acked.d.next = 0.into();
            self.go_back.d.next = 0.into();
            self.any.d.next = 0.into();
            self.from_up.d.next = false;
            self.from_down.d.next = false;
            self.from_acked.d.next = false;
            self.from_go_back.d.next = false;
            self.from_alive.d.next = false;
            self.forgets.d.next = false;
            self.arrivals.d.next = 0.into();
        }
    }
}
