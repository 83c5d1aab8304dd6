//! One call to the region table for two callers of an engine; `first` goes first. One cycle between
//! two calls belongs to the handshake.

use crate::ifs::{TptClient, TptServer};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Lookups {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub first: TptServer,
    pub second: TptServer,
    pub tpt: TptClient,
    /// Whose call is under way: bit 0 `first`, 1 `second`; and the cycle after it.
    calling: DFF<Bits<2>>,
    resting: DFF<Bit>,
    grant: Signal<Local, Bits<2>>,
    /// The arguments are `second`'s: so they are, too, while nobody asks.
    seconds: Signal<Local, Bit>,
}

impl Logic for Lookups {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, calling, resting);
        self.grant.next = self.calling.q.val();
        if (!self.calling.q.val().any()) & (!self.resting.q.val()) {
            if self.first.valid.val() {
                self.grant.next = 1.into();
            } else if self.second.valid.val() {
                self.grant.next = 2.into();
            }
        }
        self.calling.d.next = self.grant.val();
        if self.tpt.done.val() {
            self.calling.d.next = 0.into();
        }
        self.resting.d.next = self.tpt.done.val();

        self.seconds.next = self.calling.q.val().get_bit(1)
            | ((!self.calling.q.val().get_bit(0)) & (!self.first.valid.val()));
        self.tpt.valid.next = self.grant.val().any();
        self.tpt.index.next = self.first.index.val();
        self.tpt.generation.next = self.first.generation.val();
        self.tpt.check_generation.next = self.first.check_generation.val();
        self.tpt.va_mode.next = self.first.va_mode.val();
        self.tpt.address.next = self.first.address.val();
        self.tpt.length.next = self.first.length.val();
        self.tpt.tag.next = self.first.tag.val();
        self.tpt.domain.next = self.first.domain.val();
        self.tpt.rights.next = self.first.rights.val();
        if self.seconds.val() {
            self.tpt.index.next = self.second.index.val();
            self.tpt.generation.next = self.second.generation.val();
            self.tpt.check_generation.next = self.second.check_generation.val();
            self.tpt.va_mode.next = self.second.va_mode.val();
            self.tpt.address.next = self.second.address.val();
            self.tpt.length.next = self.second.length.val();
            self.tpt.tag.next = self.second.tag.val();
            self.tpt.domain.next = self.second.domain.val();
            self.tpt.rights.next = self.second.rights.val();
        }
        self.first.done.next = self.tpt.done.val() & self.calling.q.val().get_bit(0);
        self.first.ok.next = self.tpt.ok.val();
        self.first.bus.next = self.tpt.bus.val();
        self.first.room.next = self.tpt.room.val();
        self.first.offset_64.next = self.tpt.offset_64.val();
        self.second.done.next = self.tpt.done.val() & self.calling.q.val().get_bit(1);
        self.second.ok.next = self.tpt.ok.val();
        self.second.bus.next = self.tpt.bus.val();
        self.second.room.next = self.tpt.room.val();
        self.second.offset_64.next = self.tpt.offset_64.val();
        if self.reset.val() {
            self.calling.d.next = 0.into();
            self.resting.d.next = false;
        }
    }
}
