//! The ready ring: VIs with send work, each at most once, and the VI that is offered to the send
//! engine.
//!
//! A VI enters the ring with its 'scheduled' flag (kept in [`super::lifecycle`]); it leaves by a
//! pipeline operation of its own, which clears the flag and looks whether there still is work. An
//! idle ring is passed by: the VI is offered at once. A VI that is being offered is not entered
//! again, since the engine will see its newest state when it has taken it; if it takes one in its first
//! cycle (`work_fresh`), no operation on it can have come between.

use crate::leaf::Fifo;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct ReadyRing {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// `vi` has work and is not in the ring (checked here: nor offered).
    pub push: Signal<In, Bit>,
    pub vi: Signal<In, Bits<10>>,
    /// The VI was quiet, and a post brings it here.
    pub post: Signal<In, Bit>,
    /// The push went into the ring: set the flag.
    pub entered: Signal<Out, Bit>,
    /// A pipeline operation for `head` is wanted / has started / is over, and `vi` is to be
    /// offered.
    pub request: Signal<Out, Bit>,
    pub head: Signal<Out, Bits<10>>,
    pub started: Signal<In, Bit>,
    pub finished: Signal<In, Bit>,
    pub offer: Signal<In, Bit>,
    pub work_valid: Signal<Out, Bit>,
    pub work_vi: Signal<Out, Bits<10>>,
    pub work_ready: Signal<In, Bit>,
    /// In the cycle after such a post: that VI is offered.
    pub work_fresh: Signal<Out, Bit>,
    ring: Fifo<10, 10>,
    offered: DFF<Bit>,
    offered_vi: DFF<Bits<10>>,
    fetching: DFF<Bit>,
    fresh_at: DFF<Bit>,
    pass_by: Signal<Local, Bit>,
    fresh: Signal<Local, Bit>,
}

impl Logic for ReadyRing {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, offered, offered_vi, fetching, fresh_at);
        clock!(self, clock, ring);
        self.ring.reset.next = self.reset.val();
        self.work_valid.next = self.offered.q.val();
        self.work_vi.next = self.offered_vi.q.val();
        self.work_fresh.next = self.fresh_at.q.val();
        self.fresh.next = self.push.val()
            & ((!self.offered.q.val()) | (self.offered_vi.q.val() != self.vi.val()));
        self.pass_by.next =
            (!self.ring.level.val().any()) & (!self.fetching.q.val()) & (!self.offered.q.val());
        self.fresh_at.d.next = self.fresh.val() & self.pass_by.val() & self.post.val();
        self.entered.next = self.fresh.val() & (!self.pass_by.val());
        self.ring.data_in.next = self.vi.val();
        self.ring.write.next = self.fresh.val() & (!self.pass_by.val());
        self.ring.read.next = self.started.val();
        self.head.next = self.ring.data_out.val();
        self.request.next =
            (!self.ring.empty.val()) & (!self.fetching.q.val()) & (!self.offered.q.val());

        if self.offered.q.val() & self.work_ready.val() {
            self.offered.d.next = false;
        }
        if (self.fresh.val() & self.pass_by.val()) | (self.finished.val() & self.offer.val()) {
            self.offered.d.next = true;
            self.offered_vi.d.next = self.vi.val();
        }
        if self.started.val() {
            self.fetching.d.next = true;
        }
        if self.finished.val() {
            self.fetching.d.next = false;
        }
        if self.reset.val() {
            self.offered.d.next = false;
            self.fetching.d.next = false;
            self.fresh_at.d.next = false;
        }
    }
}
