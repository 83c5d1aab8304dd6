//! Delayed acknowledgements: an Ack is pending for a peer within ACK_DELAY of an accepted frame or of
//! returned credits, unless another frame to that peer carries it before.
//!
//! The delay is the same for all, so a FIFO of (peer, deadline) is in order of deadlines; each peer
//! stands in it at most once. Credits for a large frame (16 units or more) are told at once: four
//! such frames are all that 64 credits allow in flight, so the delay would cost link rate.
//!
//! A peer with an Ack pending again while it still stands there gets its Ack a little early, never late.
use super::num::Num;
use crate::leaf::Fifo;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Delay {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ack_delay: Signal<In, Bits<32>>,
    /// An acknowledgement is pending: accepted frame.
    pub ack_pending: Signal<In, Bit>,
    pub ack_pending_peer: Signal<In, Bits<6>>,
    /// Likewise: returned credits.
    pub returned: Signal<In, Bit>,
    pub returned_peer: Signal<In, Bits<6>>,
    /// Many of them: the Ack goes at once.
    pub returned_many: Signal<In, Bit>,
    /// A frame to this peer is being sent.
    pub sent: Signal<In, Bit>,
    pub sent_peer: Signal<In, Bits<6>>,
    /// Send an Ack now.
    pub due: Signal<Out, Bit>,
    pub due_peer: Signal<Out, Bits<6>>,
    queue: Fifo<38, 6>,
    now: DFF<Bits<32>>,
    waiting: DFF<Bits<64>>,
    queued: DFF<Bits<64>>,
    debt: DFF<Bit>,
    debt_peer: DFF<Bits<6>>,
    taking: DFF<Bit>,
    taking_peer: DFF<Bits<6>>,
    credit: DFF<Bit>,
    credit_peer: DFF<Bits<6>>,
    credit_many: DFF<Bit>,
    due_now: DFF<Bit>,
    due_for: DFF<Bits<6>>,
    urgent: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    taken_peer: Signal<Local, Bits<6>>,
    taken_one: Signal<Local, Bits<64>>,
    sent_one: Signal<Local, Bits<64>>,
    sent_keep: Signal<Local, Bits<64>>,
    head_peer: Signal<Local, Bits<6>>,
    head_one: Signal<Local, Bits<64>>,
    head_keep: Signal<Local, Bits<64>>,
    deadline: Signal<Local, Bits<32>>,
    late: Signal<Local, Bits<32>>,
    expired: Signal<Local, Bit>,
    one: Num<64, 1>,
    none: Num<64, 0>,
}

impl Logic for Delay {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, now, waiting, queued, debt, debt_peer, credit, credit_peer);
        dff_setup!(self, clock, credit_many, due_now, due_for, taking, taking_peer);
        clock!(self, clock, queue);
        self.queue.reset.next = self.reset.val();
        self.now.d.next = self.now.q.val() + 1;

        self.debt.d.next = self.ack_pending.val();
        self.debt_peer.d.next = self.ack_pending_peer.val();
        // One debt a cycle; returned credits wait for an accepted frame.
        self.urgent.next = self.credit.q.val() & self.credit_many.q.val() & !self.debt.q.val();
        self.taking.d.next = (self.debt.q.val() | self.credit.q.val()) & !self.urgent.val();
        self.taking_peer.d.next = self.credit_peer.q.val();
        self.take.next = self.taking.q.val();
        self.taken_peer.next = self.taking_peer.q.val();
        if self.debt.q.val() {
            self.taking_peer.d.next = self.debt_peer.q.val();
        } else {
            self.credit.d.next = false;
        }
        if self.returned.val() {
            self.credit.d.next = true;
            self.credit_peer.d.next = self.returned_peer.val();
            self.credit_many.d.next = self.returned_many.val();
        }
        self.taken_one.next = self.none.val();
        if self.take.val() {
            self.taken_one.next = self.one.val() << self.taken_peer.val();
        }
        self.sent_one.next = self.none.val();
        if self.sent.val() {
            self.sent_one.next = self.one.val() << self.sent_peer.val();
        }
        self.sent_keep.next = !self.sent_one.val();
        self.waiting.d.next = (self.waiting.q.val() & self.sent_keep.val()) | self.taken_one.val();

        // Deadlines.
        self.deadline.next = self.now.q.val() + self.ack_delay.val();
        self.queue.data_in.next = bit_cast::<38, 32>(self.deadline.val())
            | (bit_cast::<38, 6>(self.taken_peer.val()) << 32);
        self.queue.write.next =
            self.take.val() & !self.queued.q.val().get_bit(self.taken_peer.val().index());
        self.head_peer.next = self.queue.data_out.val().get_bits::<6>(32);
        self.late.next = self.now.q.val() - self.queue.data_out.val().get_bits::<32>(0);
        self.expired.next =
            (!self.queue.empty.val()) & (!self.late.val().get_bit(31)) & !self.urgent.val();
        self.queue.read.next = self.expired.val();
        self.head_one.next = self.none.val();
        if self.expired.val() {
            self.head_one.next = self.one.val() << self.head_peer.val();
        }
        self.head_keep.next = !self.head_one.val();
        // A debt of this very cycle that finds its peer still queued would be lost: it keeps `due`
        // below.
        self.queued.d.next = (self.queued.q.val() | self.taken_one.val()) & self.head_keep.val();
        self.due_now.d.next = self.expired.val()
            & (self.waiting.q.val().get_bit(self.head_peer.val().index())
                | (self.take.val() & (self.taken_peer.val() == self.head_peer.val())));
        self.due_for.d.next = self.head_peer.val();
        if self.urgent.val() {
            self.due_now.d.next = true;
            self.due_for.d.next = self.credit_peer.q.val();
        }
        self.due.next = self.due_now.q.val();
        self.due_peer.next = self.due_for.q.val();
        if self.reset.val() {
            self.waiting.d.next = 0.into();
            self.queued.d.next = 0.into();
            self.credit.d.next = false;
            self.debt.d.next = false;
            self.taking.d.next = false;
        }
    }
}
