//! The region table for two: the descriptor engine, and pushes. Whose look-up is under way keeps
//! the table until its answer.

use crate::ifs::{TptClient, TptServer};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Lookup {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub desc: TptServer,
    pub push: TptServer,
    pub tpt: TptClient,
    owned: DFF<Bit>,
    /// The answer was in the cycle before: the handshake wants a pause.
    resting: DFF<Bit>,
    for_push: Signal<Local, Bit>,
}

impl Logic for Lookup {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, owned, resting);
        self.for_push.next =
            self.push.valid.val() & (self.owned.q.val() | (!self.desc.valid.val()));
        self.owned.d.next = self.for_push.val() & (!self.tpt.done.val());
        self.resting.d.next = self.tpt.done.val();
        self.tpt.valid.next =
            (self.desc.valid.val() | self.for_push.val()) & (!self.resting.q.val());
        self.tpt.index.next = self.desc.index.val();
        self.tpt.generation.next = self.desc.generation.val();
        self.tpt.check_generation.next = self.desc.check_generation.val();
        self.tpt.va_mode.next = self.desc.va_mode.val();
        self.tpt.address.next = self.desc.address.val();
        self.tpt.length.next = self.desc.length.val();
        self.tpt.tag.next = self.desc.tag.val();
        self.tpt.domain.next = self.desc.domain.val();
        self.tpt.rights.next = self.desc.rights.val();
        if self.for_push.val() {
            self.tpt.index.next = self.push.index.val();
            self.tpt.generation.next = self.push.generation.val();
            self.tpt.check_generation.next = self.push.check_generation.val();
            self.tpt.va_mode.next = self.push.va_mode.val();
            self.tpt.address.next = self.push.address.val();
            self.tpt.length.next = self.push.length.val();
            self.tpt.tag.next = self.push.tag.val();
            self.tpt.domain.next = self.push.domain.val();
            self.tpt.rights.next = self.push.rights.val();
        }
        self.desc.done.next = self.tpt.done.val() & (!self.for_push.val());
        self.desc.ok.next = self.tpt.ok.val();
        self.desc.bus.next = self.tpt.bus.val();
        self.desc.room.next = self.tpt.room.val();
        self.desc.offset_64.next = self.tpt.offset_64.val();
        self.push.done.next = self.tpt.done.val() & self.for_push.val();
        self.push.ok.next = self.tpt.ok.val();
        self.push.bus.next = self.tpt.bus.val();
        self.push.room.next = self.tpt.room.val();
        self.push.offset_64.next = self.tpt.offset_64.val();
        if self.reset.val() {
            self.owned.d.next = false;
            self.resting.d.next = false;
        }
    }
}
