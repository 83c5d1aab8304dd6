//! The engine's one call to the region table: the loader's look-ups, and those of RDMA frames, which
//! go first. One cycle between two calls belongs to the handshake.

use crate::ifs::{TptClient, TptServer};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Lookups {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub loader: TptServer,
    pub range: TptServer,
    pub tpt: TptClient,
    /// Whose call is under way: bit 0 loader, 1 range; and the cycle after it.
    calling: DFF<Bits<2>>,
    resting: DFF<Bit>,
    grant: Signal<Local, Bits<2>>,
}

impl Logic for Lookups {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, calling, resting);
        self.grant.next = self.calling.q.val();
        if (!self.calling.q.val().any()) & (!self.resting.q.val()) {
            if self.range.valid.val() {
                self.grant.next = 2.into();
            } else if self.loader.valid.val() {
                self.grant.next = 1.into();
            }
        }
        self.calling.d.next = self.grant.val();
        if self.tpt.done.val() {
            self.calling.d.next = 0.into();
        }
        self.resting.d.next = self.tpt.done.val();

        self.tpt.valid.next = self.grant.val().any();
        self.tpt.index.next = self.loader.index.val();
        self.tpt.generation.next = self.loader.generation.val();
        self.tpt.check_generation.next = self.loader.check_generation.val();
        self.tpt.va_mode.next = self.loader.va_mode.val();
        self.tpt.address.next = self.loader.address.val();
        self.tpt.length.next = self.loader.length.val();
        self.tpt.tag.next = self.loader.tag.val();
        self.tpt.domain.next = self.loader.domain.val();
        self.tpt.rights.next = self.loader.rights.val();
        if self.grant.val().get_bit(1) {
            self.tpt.index.next = self.range.index.val();
            self.tpt.generation.next = self.range.generation.val();
            self.tpt.check_generation.next = self.range.check_generation.val();
            self.tpt.va_mode.next = self.range.va_mode.val();
            self.tpt.address.next = self.range.address.val();
            self.tpt.length.next = self.range.length.val();
            self.tpt.tag.next = self.range.tag.val();
            self.tpt.domain.next = self.range.domain.val();
            self.tpt.rights.next = self.range.rights.val();
        }
        self.loader.done.next = self.tpt.done.val() & self.calling.q.val().get_bit(0);
        self.loader.ok.next = self.tpt.ok.val();
        self.loader.bus.next = self.tpt.bus.val();
        self.loader.room.next = self.tpt.room.val();
        self.loader.offset_64.next = self.tpt.offset_64.val();
        self.range.done.next = self.tpt.done.val() & self.calling.q.val().get_bit(1);
        self.range.ok.next = self.tpt.ok.val();
        self.range.bus.next = self.tpt.bus.val();
        self.range.room.next = self.tpt.room.val();
        self.range.offset_64.next = self.tpt.offset_64.val();
        if self.reset.val() {
            self.calling.d.next = 0.into();
            self.resting.d.next = false;
        }
    }
}
