//! Admin's commands: EventCreate, EventDestroy, MessageQueue (contract 1.4).
//!
//! EventDestroy of a queue that has put something off is answered after a drain that finds the
//! queue absent, and so loses it all.

use crate::ifs::EventAdminServer;
use crate::leaf::Number;
use nic_regs::admin::AdminStatus;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Commands {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub admin: EventAdminServer,
    pub request: Signal<Out, Bit>,
    /// The command is executed in this cycle.
    pub at: Signal<In, Bit>,
    // Its queue.
    pub queue: Signal<In, Bits<16>>,
    pub exists: Signal<In, Bit>,
    pub deferring: Signal<In, Bit>,
    pub queued: Signal<In, Bit>,
    // Drains: one runs, for `drain_queue`; one starts for the queue cached; the running one ends.
    pub draining: Signal<In, Bit>,
    pub drain_queue: Signal<In, Bits<16>>,
    pub drain_starts: Signal<In, Bit>,
    pub drain_ends: Signal<In, Bit>,
    /// EventDestroy waits for another drain.
    pub want_drain: Signal<Out, Bit>,
    // Changes of the table.
    pub create: Signal<Out, Bit>,
    pub config_write: Signal<Out, Bit>,
    pub config_word: Signal<Out, Bits<17>>,
    pub base: Signal<Out, Bits<58>>,
    pub bind_write: Signal<Out, Bit>,
    pub bind_domain: Signal<Out, Bits<6>>,
    pub bind_queue: Signal<Out, Bits<9>>,
    /// EventDestroy waits for a drain; that drain runs.
    destroying: DFF<Bit>,
    destroy_drains: DFF<Bit>,
    creates: Signal<Local, Bit>,
    destroys: Signal<Local, Bit>,
    binds: Signal<Local, Bit>,
    bad: Signal<Local, Bit>,
    waits: Signal<Local, Bit>,
    destroyed: Signal<Local, Bit>,
    unbound: Signal<Local, Bit>,
    exists_bit: Number<17, 1>,
    op_create: Number<2, 0>,
    op_destroy: Number<2, 1>,
    op_bind: Number<2, 2>,
    bad_state: Number<4, { AdminStatus::BadState as u64 }>,
}

impl Logic for Commands {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, destroying, destroy_drains);
        self.request.next = self.admin.valid.val() & (!self.destroying.q.val());
        self.creates.next = self.admin.op.val() == self.op_create.val();
        self.destroys.next = self.admin.op.val() == self.op_destroy.val();
        self.binds.next = self.admin.op.val() == self.op_bind.val();
        self.bad.next =
            (self.creates.val() & self.exists.val()) | (self.destroys.val() & (!self.exists.val()));

        self.create.next = self.at.val() & self.creates.val() & (!self.exists.val());
        self.config_write.next = self.at.val() & (!self.binds.val()) & (!self.bad.val());
        self.config_word.next = 0.into();
        if self.creates.val() {
            self.config_word.next = self.exists_bit.val()
                | (bit_cast::<17, 1>(self.admin.wide.val().into()) << 1)
                | (bit_cast::<17, 4>(self.admin.log2.val()) << 2)
                | (bit_cast::<17, 6>(self.admin.domain.val().get_bits::<6>(0)) << 6)
                | (bit_cast::<17, 5>(self.admin.vector.val().get_bits::<5>(0)) << 12);
        }
        self.base.next = self.admin.base.val().get_bits::<58>(6);
        self.bind_write.next = self.at.val() & self.binds.val();
        self.bind_domain.next = self.admin.index.val().get_bits::<6>(0);
        self.unbound.next = !self.admin.queue.val().get_bits::<8>(8).any();
        self.bind_queue.next = bit_cast::<9, 8>(self.admin.queue.val().get_bits::<8>(0))
            | (bit_cast::<9, 1>(self.unbound.val().into()) << 8);

        // EventDestroy and drains.
        self.destroyed.next = self.drain_ends.val() & self.destroy_drains.q.val();
        if self.destroyed.val() {
            self.destroying.d.next = false;
            self.destroy_drains.d.next = false;
        }
        if self.drain_starts.val() {
            self.destroy_drains.d.next =
                self.destroying.q.val() & (self.queue.val() == self.admin.index.val());
        }
        self.waits.next = self.at.val()
            & self.destroys.val()
            & self.exists.val()
            & (self.deferring.val()
                | self.queued.val()
                | (self.draining.val() & (self.drain_queue.val() == self.queue.val())));
        if self.waits.val() {
            self.destroying.d.next = true;
        }
        self.want_drain.next = self.waits.val();
        self.admin.done.next = (self.at.val() & (!self.waits.val())) | self.destroyed.val();
        self.admin.status.next = 0.into();
        if self.bad.val() & self.at.val() {
            self.admin.status.next = self.bad_state.val();
        }
        if self.reset.val() {
            self.destroying.d.next = false;
            self.destroy_drains.d.next = false;
        }
    }
}
