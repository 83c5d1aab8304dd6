//! What an operation of the peer machine goes by: comparisons that would be too long a path
//! together with their consequences. They follow the entry in flight, one cycle behind.
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Comparisons {
    pub clock: Signal<In, Clock>,
    pub peer: Signal<In, Bits<6>>,
    /// The states of the channels.
    pub open: Signal<In, Bits<64>>,
    pub opening: Signal<In, Bits<64>>,
    /// The receiver's tables and pending bits, of the peer.
    pub acked: Signal<In, Bits<16>>,
    pub nak: Signal<In, Bits<16>>,
    pub found: Signal<In, Bits<4>>,
    pub killing: Signal<In, Bits<64>>,
    /// The oldest number of the peer's list, and its head.
    pub freed: Signal<In, Bits<16>>,
    pub head: Signal<In, Bits<7>>,
    // The frames that the transmitter has or is about to take, and the committed one.
    pub job_valid: Signal<In, Bit>,
    pub job_data: Signal<In, Bit>,
    pub job_peer: Signal<In, Bits<6>>,
    pub job_frame: Signal<In, Bits<7>>,
    pub in_flight_valid: Signal<In, Bit>,
    pub in_flight_data: Signal<In, Bit>,
    pub in_flight_peer: Signal<In, Bits<6>>,
    pub in_flight_frame: Signal<In, Bits<7>>,
    pub put_valid: Signal<In, Bit>,
    pub put_peer: Signal<In, Bits<6>>,
    // One cycle later.
    pub is_open: Signal<Out, Bit>,
    pub is_opening: Signal<Out, Bit>,
    pub is_up: Signal<Out, Bit>,
    pub is_down: Signal<Out, Bit>,
    pub all_freed: Signal<Out, Bit>,
    /// The head is the only acknowledged frame.
    pub one_left: Signal<Out, Bit>,
    pub nak_is_head: Signal<Out, Bit>,
    /// The transmitter has the list's head.
    pub head_busy: Signal<Out, Bit>,
    /// The transmitter or the pool still has a frame of the peer.
    pub peer_busy: Signal<Out, Bit>,
    /// Its channel is on its way down: frames to be freed, or VIs to be stopped.
    pub dying: Signal<Out, Bit>,
    was_open: DFF<Bit>,
    was_opening: DFF<Bit>,
    pending_ops: DFF<Bits<4>>,
    same_acked: DFF<Bit>,
    same_after: DFF<Bit>,
    same_nak: DFF<Bit>,
    head_held: DFF<Bit>,
    peer_held: DFF<Bit>,
    killed: DFF<Bit>,
    freed_after: Signal<Local, Bits<16>>,
}

impl Logic for Comparisons {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            was_open,
            was_opening,
            pending_ops,
            same_acked,
            same_after,
            same_nak
        );
        dff_setup!(self, clock, head_held, peer_held, killed);
        self.was_open.d.next = self.open.val().get_bit(self.peer.val().index());
        self.was_opening.d.next = self.opening.val().get_bit(self.peer.val().index());
        self.pending_ops.d.next = self.found.val();
        self.freed_after.next = self.freed.val() + 1;
        self.same_acked.d.next = self.acked.val() == self.freed.val();
        self.same_after.d.next = self.acked.val() == self.freed_after.val();
        self.same_nak.d.next = self.nak.val() == self.freed.val();
        self.head_held.d.next = (self.job_valid.val()
            & self.job_data.val()
            & (self.job_frame.val() == self.head.val()))
            | (self.in_flight_valid.val()
                & self.in_flight_data.val()
                & (self.in_flight_frame.val() == self.head.val()));
        self.peer_held.d.next = (self.job_valid.val() & (self.job_peer.val() == self.peer.val()))
            | (self.in_flight_valid.val() & (self.in_flight_peer.val() == self.peer.val()))
            | (self.put_valid.val() & (self.put_peer.val() == self.peer.val()));
        self.killed.d.next = self.killing.val().get_bit(self.peer.val().index());
        self.is_open.next = self.was_open.q.val();
        self.is_opening.next = self.was_opening.q.val();
        self.is_up.next = self.pending_ops.q.val().get_bit(0);
        self.is_down.next = self.pending_ops.q.val().get_bit(1);
        self.all_freed.next = self.same_acked.q.val();
        self.one_left.next = self.same_after.q.val();
        self.nak_is_head.next = self.same_nak.q.val();
        self.head_busy.next = self.head_held.q.val();
        self.peer_busy.next = self.peer_held.q.val();
        self.dying.next = self.killed.q.val() | self.pending_ops.q.val().get_bit(1);
    }
}
