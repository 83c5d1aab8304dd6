//! Whose turn it is at the peer machine: one operation of one class for one peer, classes and peers
//! in turn.
//!
//! | bit of `turn` | class | peer |
//! |---|---|---|
//! | 0 | spent | of the unsequenced frame that was sent |
//! | 1 | scan | the timer's |
//! | 2 | pick | the next one that wants to send |
//! | 3 | put | of the committed frame |
//! | 4 | service | the next one with news from the receiver |
//! | 5 | admin | the command's |
use super::picker::Picker;
use crate::leaf::RoundRobin;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Turns {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// The peer machine takes the choice, if there is one.
    pub choose: Signal<In, Bit>,
    pub spent: Signal<In, Bit>,
    pub spent_peer: Signal<In, Bits<6>>,
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
    pub valid: Signal<Out, Bit>,
    pub turn: Signal<Out, Bits<6>>,
    pub peer: Signal<Out, Bits<6>>,
    tx_picker: Picker,
    service_picker: Picker,
    classes: RoundRobin<6>,
    granted: Signal<Local, Bits<6>>,
    picking: Signal<Local, Bit>,
}

impl Logic for Turns {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, tx_picker, service_picker, classes);
        self.tx_picker.reset.next = self.reset.val();
        self.service_picker.reset.next = self.reset.val();
        self.classes.reset.next = self.reset.val();
        self.tx_picker.want.next = self.tx_want.val();
        self.service_picker.want.next = self.service_want.val();
        self.picking.next = self.tx_picker.valid.val() & self.picks.val();
        self.classes.request.next = bit_cast::<6, 1>(self.spent.val().into())
            | (bit_cast::<6, 1>(self.scan.val().into()) << 1)
            | (bit_cast::<6, 1>(self.picking.val().into()) << 2)
            | (bit_cast::<6, 1>(self.put.val().into()) << 3)
            | (bit_cast::<6, 1>(self.service_picker.valid.val().into()) << 4)
            | (bit_cast::<6, 1>(self.admin.val().into()) << 5);
        self.classes.advance.next = self.choose.val();
        self.granted.next = self.classes.grant.val();
        self.valid.next = self.classes.valid.val();
        self.turn.next = self.granted.val();
        self.scan_taken.next = self.choose.val() & self.granted.val().get_bit(1);
        self.tx_picker.took.next = self.choose.val() & self.granted.val().get_bit(2);
        self.service_picker.took.next = self.choose.val() & self.granted.val().get_bit(4);
        self.peer.next = self.admin_peer.val();
        if self.granted.val().get_bit(0) {
            self.peer.next = self.spent_peer.val();
        } else if self.granted.val().get_bit(1) {
            self.peer.next = self.scan_peer.val();
        } else if self.granted.val().get_bit(2) {
            self.peer.next = self.tx_picker.peer.val();
        } else if self.granted.val().get_bit(3) {
            self.peer.next = self.put_peer.val();
        } else if self.granted.val().get_bit(4) {
            self.peer.next = self.service_picker.peer.val();
        }
    }
}
