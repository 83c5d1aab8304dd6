//! What an operation of the peer machine goes by, two cycles after its peer was chosen: comparisons
//! that would be too long a path together with their consequences.
//!
//! The receiver may change what was read in these two cycles; `touched` says so, and then the mark
//! that asked for the operation is not cleared.
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Facts {
    pub clock: Signal<In, Clock>,
    pub peer: Signal<In, Bits<6>>,
    /// The receiver's tables and marks, of the peer.
    pub acked: Signal<In, Bits<16>>,
    pub gap: Signal<In, Bits<16>>,
    pub found: Signal<In, Bits<4>>,
    /// It acknowledges or reports a gap, of `rx_peer`.
    pub rx_news: Signal<In, Bit>,
    pub rx_peer: Signal<In, Bits<6>>,
    pub killing: Signal<In, Bits<64>>,
    /// The oldest number of the peer's list.
    pub freed: Signal<In, Bits<16>>,
    /// The transmitter has the list's head.
    pub head_in_use: Signal<In, Bit>,
    /// The transmitter or the pool still has a frame of the peer.
    pub peer_in_use: Signal<In, Bit>,
    // One cycle after `freed` is that of the peer.
    pub is_up: Signal<Out, Bit>,
    pub is_down: Signal<Out, Bit>,
    pub is_acked: Signal<Out, Bit>,
    pub is_gapped: Signal<Out, Bit>,
    pub all_freed: Signal<Out, Bit>,
    pub gap_is_head: Signal<Out, Bit>,
    pub head_busy: Signal<Out, Bit>,
    pub peer_busy: Signal<Out, Bit>,
    /// Its channel is on its way down: frames to be freed, or VIs to be stopped.
    pub dying: Signal<Out, Bit>,
    pub touched: Signal<Out, Bit>,
    acked_read: DFF<Bits<16>>,
    gap_read: DFF<Bits<16>>,
    marks: DFF<Bits<4>>,
    same_acked: DFF<Bit>,
    same_gap: DFF<Bit>,
    head_held: DFF<Bit>,
    peer_held: DFF<Bit>,
    killed: DFF<Bit>,
    touched1: DFF<Bit>,
    touched2: DFF<Bit>,
}

impl Logic for Facts {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, acked_read, gap_read, marks, same_acked, same_gap, head_held);
        dff_setup!(self, clock, peer_held, killed, touched1, touched2);
        self.acked_read.d.next = self.acked.val();
        self.gap_read.d.next = self.gap.val();
        self.marks.d.next = self.found.val();
        self.same_acked.d.next = self.acked_read.q.val() == self.freed.val();
        self.same_gap.d.next = self.gap_read.q.val() == self.freed.val();
        self.head_held.d.next = self.head_in_use.val();
        self.peer_held.d.next = self.peer_in_use.val();
        self.killed.d.next = self.killing.val().get_bit(self.peer.val().index());
        self.touched1.d.next = self.rx_news.val() & (self.rx_peer.val() == self.peer.val());
        self.touched2.d.next = self.touched1.q.val();
        self.is_up.next = self.marks.q.val().get_bit(0);
        self.is_down.next = self.marks.q.val().get_bit(1);
        self.is_acked.next = self.marks.q.val().get_bit(2);
        self.is_gapped.next = self.marks.q.val().get_bit(3);
        self.all_freed.next = self.same_acked.q.val();
        self.gap_is_head.next = self.same_gap.q.val();
        self.head_busy.next = self.head_held.q.val();
        self.peer_busy.next = self.peer_held.q.val();
        self.dying.next = self.killed.q.val() | self.marks.q.val().get_bit(1);
        self.touched.next = self.touched1.q.val() | self.touched2.q.val();
    }
}
