//! Whose turn it is at the peer machine: one operation of one class for one peer, classes and peers
//! in turn. The choice is a register, made while the operation before it runs.
//!
//! | bit of `turn` | class | peer |
//! |---|---|---|
//! | 0 | scan | the timer's |
//! | 1 | pick | the next one that wants to send |
//! | 2 | put | of the committed frame |
//! | 3 | service | the one that is being served, else the next one with requests from the receiver |
//! | 4 | admin | the command's |
//!
//! A class is not chosen while its last operation is still in flight: what asked for that one may
//! still be there. A put may make the next job, so it holds off a pick likewise. Fairness is by rounds,
//! as in [`Picker`]: a class that had its turn is out until no other one asks.
use super::num::Num;
use super::picker::Picker;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Scheduler {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// The operation in flight is over at this edge.
    pub done: Signal<In, Bit>,
    /// It was a service, and there is more to serve at this peer.
    pub more: Signal<In, Bit>,
    /// The peer machine's entry, and whether it changes at this edge: to the choice's, or to
    /// another peer's while nothing is chosen.
    pub at: Signal<In, Bits<6>>,
    pub turned: Signal<In, Bit>,
    pub strays: Signal<In, Bit>,
    pub scan: Signal<In, Bit>,
    pub scan_peer: Signal<In, Bits<6>>,
    pub scan_taken: Signal<Out, Bit>,
    pub tx_want: Signal<In, Bits<64>>,
    /// There is room for a job.
    pub picks: Signal<In, Bit>,
    pub put: Signal<In, Bit>,
    pub put_peer: Signal<In, Bits<6>>,
    pub service_want: Signal<In, Bits<64>>,
    pub admin: Signal<In, Bit>,
    pub admin_peer: Signal<In, Bits<6>>,
    // The choice, and whether the entry in flight is that of its peer.
    pub valid: Signal<Out, Bit>,
    pub turn: Signal<Out, Bits<5>>,
    pub peer: Signal<Out, Bits<6>>,
    pub same: Signal<Out, Bit>,
    tx_picker: Picker,
    service_picker: Picker,
    /// Classes that had no turn in this round.
    round: DFF<Bits<5>>,
    chosen: DFF<Bit>,
    chosen_class: DFF<Bits<5>>,
    class_peer: DFF<Bits<6>>,
    agrees: DFF<Bit>,
    serving: DFF<Bit>,
    served: DFF<Bits<6>>,
    granted: Signal<Local, Bits<5>>,
    held: Signal<Local, Bits<5>>,
    loads: Signal<Local, Bit>,
    picking: Signal<Local, Bit>,
    service: Signal<Local, Bit>,
    service_peer: Signal<Local, Bits<6>>,
    none: Num<5, 0>,
    all: Num<5, 0x1f>,
    asking: Signal<Local, Bits<5>>,
    first: Signal<Local, Bits<5>>,
    runners: Signal<Local, Bits<5>>,
    kept: Signal<Local, Bits<5>>,
    asks: Signal<Local, Bit>,
}

impl Logic for Scheduler {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, chosen, chosen_class, class_peer, agrees, serving, served, round);
        clock!(self, clock, tx_picker, service_picker);
        self.tx_picker.reset.next = self.reset.val();
        self.service_picker.reset.next = self.reset.val();
        self.tx_picker.want.next = self.tx_want.val();
        self.service_picker.want.next = self.service_want.val();

        // Requests.
        self.held.next = self.none.val();
        if self.chosen.q.val() {
            self.held.next = self.chosen_class.q.val();
        }
        self.picking.next = self.tx_picker.valid.val()
            & self.picks.val()
            & !(self.held.val().get_bit(1) | self.held.val().get_bit(2));
        self.service.next =
            (self.serving.q.val() | self.service_picker.valid.val()) & !self.held.val().get_bit(3);
        self.service_peer.next = self.service_picker.peer.val();
        if self.serving.q.val() {
            self.service_peer.next = self.served.q.val();
        }
        self.asking.next = bit_cast::<5, 1>((self.scan.val() & !self.held.val().get_bit(0)).into())
            | (bit_cast::<5, 1>(self.picking.val().into()) << 1)
            | (bit_cast::<5, 1>((self.put.val() & !self.held.val().get_bit(2)).into()) << 2)
            | (bit_cast::<5, 1>(self.service.val().into()) << 3)
            | (bit_cast::<5, 1>((self.admin.val() & !self.held.val().get_bit(4)).into()) << 4);
        self.asks.next = self.asking.val().any();
        self.first.next = self.asking.val() & self.round.q.val();
        self.runners.next = self.first.val();
        self.kept.next = self.round.q.val();
        if self.first.val() == self.none.val() {
            self.runners.next = self.asking.val();
            self.kept.next = self.all.val();
        }
        // The lowest one.
        self.granted.next = self.runners.val() & !(self.runners.val() - 1);
        self.loads.next = (self.done.val() | !self.chosen.q.val()) & !self.strays.val();
        self.scan_taken.next = self.loads.val() & self.granted.val().get_bit(0);
        self.tx_picker.took.next = self.loads.val() & self.granted.val().get_bit(1);
        self.service_picker.took.next =
            self.loads.val() & self.granted.val().get_bit(3) & !self.serving.q.val();

        // The choice.
        if self.turned.val() {
            self.agrees.d.next = true;
        }
        if self.done.val() {
            self.chosen.d.next = false;
        }
        if self.loads.val() {
            self.chosen.d.next = self.asks.val();
            self.round.d.next = self.kept.val() & !self.granted.val();
            self.chosen_class.d.next = self.granted.val();
            self.class_peer.d.next = self.admin_peer.val();
            self.agrees.d.next = self.admin_peer.val() == self.at.val();
            if self.granted.val().get_bit(0) {
                self.class_peer.d.next = self.scan_peer.val();
                self.agrees.d.next = self.scan_peer.val() == self.at.val();
            } else if self.granted.val().get_bit(1) {
                self.class_peer.d.next = self.tx_picker.peer.val();
                self.agrees.d.next = self.tx_picker.peer.val() == self.at.val();
            } else if self.granted.val().get_bit(2) {
                self.class_peer.d.next = self.put_peer.val();
                self.agrees.d.next = self.put_peer.val() == self.at.val();
            } else if self.granted.val().get_bit(3) {
                self.class_peer.d.next = self.service_peer.val();
                self.agrees.d.next = self.service_peer.val() == self.at.val();
                self.serving.d.next = false;
            }
        }
        if self.more.val() {
            self.serving.d.next = true;
            self.served.d.next = self.at.val();
        }
        self.valid.next = self.chosen.q.val();
        self.turn.next = self.chosen_class.q.val();
        self.peer.next = self.class_peer.q.val();
        self.same.next = self.agrees.q.val();
        if self.reset.val() {
            self.chosen.d.next = false;
            self.serving.d.next = false;
            self.round.d.next = self.all.val();
        }
    }
}
