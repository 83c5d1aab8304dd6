//! Event doorbells: who may move a consumer index, how far, and what it sets off (contract 2.4).
//!
//! A doorbell that arms an empty queue makes the next record interrupt; one that arms a queue with
//! records interrupts at once. One that makes room in a queue that has put something off wants a
//! drain.

use crate::ifs::PostServer;
use crate::leaf::Number;
use nic_regs::counter::ErrorCode;
use nic_regs::doorbell::{EVENT_OFFSET, EventDoorbell};
use rust_hdl::prelude::*;

const _: () = assert!(EventDoorbell::ARM_BIT == 16 && EventDoorbell::CONSUMER_LSB == 32);

#[derive(LogicBlock, Default)]
pub struct Doorbells {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub post: PostServer,
    pub error_valid: Signal<Out, Bit>,
    pub error_record: Signal<Out, Bits<64>>,
    /// The doorbell is decided in this cycle.
    pub at: Signal<In, Bit>,
    // Its queue.
    pub queue: Signal<In, Bits<16>>,
    pub exists: Signal<In, Bit>,
    pub domain: Signal<In, Bits<6>>,
    pub deferring: Signal<In, Bit>,
    pub queued: Signal<In, Bit>,
    pub new_fill: Signal<In, Bits<16>>,
    pub size: Signal<In, Bits<16>>,
    // The decision: one of the first two.
    pub accepted: Signal<Out, Bit>,
    pub refused: Signal<Out, Bit>,
    pub arm: Signal<Out, Bit>,
    pub fire: Signal<Out, Bit>,
    pub want_drain: Signal<Out, Bit>,
    pub new_consumer: Signal<Out, Bits<16>>,
    error_out: DFF<Bit>,
    error_record_out: DFF<Bits<64>>,
    token: Signal<Local, Bits<64>>,
    page: Signal<Local, Bits<8>>,
    owned: DFF<Bit>,
    too_far: Signal<Local, Bit>,
    good: Signal<Local, Bit>,
    cause: Signal<Local, Bits<4>>,
    cause_not_own: Number<4, 2>,
    cause_range: Number<4, 3>,
    bad_doorbell: Number<64, { ErrorCode::BadDoorbell as u64 | EVENT_OFFSET << 48 }>,
}

impl Logic for Doorbells {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, error_out, error_record_out, owned);
        self.error_valid.next = self.error_out.q.val();
        self.error_record.next = self.error_record_out.q.val();
        self.post.ready.next = self.at.val();
        self.token.next = self.post.token.val();
        self.page.next = self.post.domain.val();
        self.new_consumer.next = self.token.val().get_bits::<16>(32);
        // The queue was there a cycle before the decision.
        self.owned.d.next = (!self.queue.val().get_bits::<8>(8).any())
            & self.exists.val()
            & (bit_cast::<8, 6>(self.domain.val()) == self.page.val());
        self.too_far.next = self.new_fill.val() > self.size.val();
        self.good.next = self.at.val() & self.owned.q.val() & (!self.too_far.val());
        self.accepted.next = self.good.val();
        self.refused.next = self.at.val() & (!self.good.val());
        self.arm.next = self.token.val().get_bit(16) & (!self.new_fill.val().any());
        self.fire.next = self.good.val() & self.token.val().get_bit(16) & self.new_fill.val().any();
        self.want_drain.next = self.good.val()
            & self.deferring.val()
            & (!self.queued.val())
            & (self.new_fill.val() != self.size.val());
        self.error_out.d.next = self.at.val() & (!self.good.val());
        self.cause.next = self.cause_not_own.val();
        if self.owned.q.val() {
            self.cause.next = self.cause_range.val();
        }
        self.error_record_out.d.next = self.bad_doorbell.val()
            | (bit_cast::<64, 8>(self.page.val()) << 16)
            | (bit_cast::<64, 16>(self.queue.val()) << 32)
            | (bit_cast::<64, 4>(self.cause.val()) << 60);
        if self.reset.val() {
            self.error_out.d.next = false;
        }
    }
}
