//! What a peer's limit still covers (contract 7.4): units are charged when a frame goes to the
//! transmitter for the first time.
//!
//! One count a peer, with the entry in flight in a register, as in [`super::lists`]; the two
//! comparisons follow it one cycle behind, as in [`super::comparisons`].
use crate::leaf::LutRam;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct CreditLimit {
    pub clock: Signal<In, Clock>,
    pub peer: Signal<In, Bits<6>>,
    pub load: Signal<In, Bit>,
    pub peer_after: Signal<In, Bits<6>>,
    /// A channel starts: nothing is charged.
    pub fresh: Signal<In, Bit>,
    /// The peer's limit.
    pub limit: Signal<In, Bits<8>>,
    /// The committed frame, its units (0: unsequenced), and that it joins the list.
    pub frame: Signal<In, Bits<7>>,
    pub units: Signal<In, Bits<5>>,
    pub append: Signal<In, Bit>,
    /// The frame at the list's turn.
    pub turn: Signal<In, Bits<7>>,
    /// A sequenced frame goes to the transmitter for the first time: the one at the turn, or
    /// (`direct`) the committed one.
    pub counts: Signal<In, Bit>,
    pub direct: Signal<In, Bit>,
    // One cycle later.
    /// The limit covers the frame at the turn, if it was not sent before.
    pub turn_covered: Signal<Out, Bit>,
    /// It covers the committed frame, if no other one is to be sent.
    pub put_covered: Signal<Out, Bit>,
    /// Units of all sequenced frames that were transmitted.
    totals: LutRam<8, 6>,
    /// Units of each frame.
    costs: LutRam<5, 7>,
    total: DFF<Bits<8>>,
    cost: DFF<Bits<5>>,
    turn_good: DFF<Bit>,
    put_good: DFF<Bit>,
    left: Signal<Local, Bits<8>>,
    left_turn: Signal<Local, Bits<8>>,
    left_put: Signal<Local, Bits<8>>,
}

impl Logic for CreditLimit {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, total, cost, turn_good, put_good);
        clock!(self, clock, totals, costs);
        self.costs.read_address.next = self.turn.val();
        self.costs.write_address.next = self.frame.val();
        self.costs.write_data.next = self.units.val();
        self.costs.write_enable.next = self.append.val();
        self.cost.d.next = self.costs.read_data.val();

        // At most 64 units are left, and at most 17 wanted: bit 7 is the sign.
        self.left.next = self.limit.val() - self.total.q.val();
        self.left_turn.next = self.left.val() - bit_cast::<8, 5>(self.costs.read_data.val());
        self.left_put.next = self.left.val() - bit_cast::<8, 5>(self.units.val());
        self.turn_good.d.next = !self.left_turn.val().get_bit(7);
        self.put_good.d.next = !self.left_put.val().get_bit(7);
        self.turn_covered.next = self.turn_good.q.val();
        self.put_covered.next = self.put_good.q.val();

        self.totals.read_address.next = self.peer_after.val();
        self.totals.write_address.next = self.peer.val();
        self.totals.write_data.next = self.total.q.val();
        self.totals.write_enable.next = self.load.val();
        if self.load.val() {
            self.total.d.next = self.totals.read_data.val();
        } else if self.fresh.val() {
            self.total.d.next = 0.into();
        } else if self.counts.val() & self.direct.val() {
            self.total.d.next = self.total.q.val() + bit_cast::<8, 5>(self.units.val());
        } else if self.counts.val() {
            self.total.d.next = self.total.q.val() + bit_cast::<8, 5>(self.cost.q.val());
        }
    }
}
