//! A service of the peer machine: what the receiver's requests ask for at one peer, one step an
//! operation.
//!
//! Requests of acknowledgements and gaps are taken over from the pending bits before the tables are read, so
//! that later requests set the pending bits again. A service that has more to do keeps what it took over; a
//! service that finds the transmitter at the list's head puts it back and leaves the turn to others.
use super::num::Num;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Service {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Takes the pending bits over.
    pub look: Signal<In, Bit>,
    pub found: Signal<In, Bits<4>>,
    pub looked: Signal<Out, Bit>,
    /// One step.
    pub work: Signal<In, Bit>,
    /// An operation of any class is over.
    pub ends: Signal<In, Bit>,
    // What a step goes by, see `Comparisons` and `Lists`.
    pub is_up: Signal<In, Bit>,
    pub is_down: Signal<In, Bit>,
    pub all_freed: Signal<In, Bit>,
    pub one_left: Signal<In, Bit>,
    pub nak_is_head: Signal<In, Bit>,
    pub head_busy: Signal<In, Bit>,
    pub live: Signal<In, Bit>,
    pub outstanding: Signal<In, Bit>,
    pub obeyed: Signal<In, Bit>,
    // What it does.
    pub takes_over: Signal<Out, Bits<4>>,
    pub clear: Signal<Out, Bits<4>>,
    pub renew: Signal<Out, Bits<4>>,
    pub up: Signal<Out, Bit>,
    pub down: Signal<Out, Bit>,
    pub pop: Signal<Out, Bit>,
    pub progress: Signal<Out, Bit>,
    pub obey: Signal<Out, Bit>,
    pub more: Signal<Out, Bit>,
    ready: DFF<Bit>,
    acked: DFF<Bit>,
    go_back: DFF<Bit>,
    mark_up: Num<4, 0x1>,
    mark_acked: Num<4, 0x4>,
    mark_service_requests: Num<4, 0xc>,
    mark_all_down: Num<4, 0xe>,
}

impl Logic for Service {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, ready, acked, go_back);
        self.looked.next = self.ready.q.val();
        self.takes_over.next = 0.into();
        if self.look.val() {
            self.takes_over.next = self.mark_service_requests.val();
            self.ready.d.next = true;
            self.acked.d.next = self.acked.q.val() | self.found.val().get_bit(2);
            self.go_back.d.next = self.go_back.q.val() | self.found.val().get_bit(3);
        }
        self.clear.next = 0.into();
        self.renew.next = 0.into();
        self.up.next = false;
        self.down.next = false;
        self.pop.next = false;
        self.progress.next = false;
        self.obey.next = false;
        self.more.next = false;
        if self.work.val() {
            if self.is_up.val() {
                self.clear.next = self.mark_up.val();
                self.progress.next = true;
                self.up.next = true;
                self.more.next = self.acked.q.val() | self.go_back.q.val();
            } else if self.is_down.val() {
                if self.live.val() {
                    self.pop.next = !self.head_busy.val();
                    self.more.next = !self.head_busy.val();
                } else {
                    self.clear.next = self.mark_all_down.val();
                    self.down.next = true;
                }
            } else if self.acked.q.val() & !self.all_freed.val() {
                if self.head_busy.val() {
                    self.renew.next = self.mark_acked.val();
                    if self.go_back.q.val() {
                        self.renew.next = self.mark_service_requests.val();
                    }
                } else {
                    self.pop.next = true;
                    self.progress.next = true;
                    self.more.next = self.go_back.q.val() | !self.one_left.val();
                }
            } else {
                self.obey.next = self.go_back.q.val()
                    & self.nak_is_head.val()
                    & self.outstanding.val()
                    & !self.obeyed.val();
            }
        }
        if self.ends.val() {
            self.ready.d.next = false;
        }
        if self.work.val() & !self.more.val() {
            self.acked.d.next = false;
            self.go_back.d.next = false;
        }
        if self.reset.val() {
            self.ready.d.next = false;
            self.acked.d.next = false;
            self.go_back.d.next = false;
        }
    }
}
