//! What an operation of the peer machine leaves behind for others, one cycle later: pending bits, notices,
//! the highest number sent, frames to be freed. Nobody needs it earlier, and the operation's own
//! path ends here.
use super::num::Num;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct OpOutputs {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub peer: Signal<In, Bits<6>>,
    pub syn: Signal<In, Bit>,
    pub ack: Signal<In, Bit>,
    pub data: Signal<In, Bit>,
    /// The list's turn waits for credits.
    pub blocks: Signal<In, Bit>,
    pub tx_clear: Signal<In, Bits<7>>,
    /// Pending operations of the service: cleared, and set again.
    pub clear: Signal<In, Bits<4>>,
    pub renew: Signal<In, Bits<4>>,
    pub up: Signal<In, Bit>,
    pub down: Signal<In, Bit>,
    /// A sequenced frame is sent for the first time; `newest` is the number behind it.
    pub newly: Signal<In, Bit>,
    pub newest: Signal<In, Bits<16>>,
    /// A channel starts: from number 0.
    pub fresh: Signal<In, Bit>,
    /// The list's head is to be freed, or the committed frame.
    pub pops: Signal<In, Bit>,
    pub head: Signal<In, Bits<7>>,
    pub frees: Signal<In, Bit>,
    pub put: Signal<In, Bits<7>>,
    pub peer_out: Signal<Out, Bits<6>>,
    pub syn_out: Signal<Out, Bit>,
    pub ack_out: Signal<Out, Bit>,
    pub data_out: Signal<Out, Bit>,
    pub blocks_out: Signal<Out, Bit>,
    pub tx_clear_out: Signal<Out, Bits<7>>,
    pub clear_out: Signal<Out, Bits<4>>,
    pub renew_out: Signal<Out, Bits<4>>,
    pub up_out: Signal<Out, Bit>,
    pub down_out: Signal<Out, Bit>,
    pub write_newest: Signal<Out, Bit>,
    pub newest_out: Signal<Out, Bits<16>>,
    pub free_out: Signal<Out, Bit>,
    pub frame_out: Signal<Out, Bits<7>>,
    peer_q: DFF<Bits<6>>,
    syn_q: DFF<Bit>,
    ack_q: DFF<Bit>,
    data_q: DFF<Bit>,
    blocks_q: DFF<Bit>,
    tx_clear_q: DFF<Bits<7>>,
    clear_q: DFF<Bits<4>>,
    renew_q: DFF<Bits<4>>,
    up_q: DFF<Bit>,
    down_q: DFF<Bit>,
    writes_q: DFF<Bit>,
    newest_q: DFF<Bits<16>>,
    free_q: DFF<Bit>,
    frame_q: DFF<Bits<7>>,
    zero_16: Num<16, 0>,
}

impl Logic for OpOutputs {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, peer_q, syn_q, ack_q, data_q, tx_clear_q, clear_q, renew_q, up_q);
        dff_setup!(self, clock, down_q, writes_q, newest_q, free_q, frame_q, blocks_q);
        self.peer_q.d.next = self.peer.val();
        self.syn_q.d.next = self.syn.val();
        self.ack_q.d.next = self.ack.val();
        self.data_q.d.next = self.data.val();
        self.blocks_q.d.next = self.blocks.val();
        self.tx_clear_q.d.next = self.tx_clear.val();
        self.clear_q.d.next = self.clear.val();
        self.renew_q.d.next = self.renew.val();
        self.up_q.d.next = self.up.val();
        self.down_q.d.next = self.down.val();
        self.writes_q.d.next = self.newly.val() | self.fresh.val();
        self.newest_q.d.next = self.newest.val();
        if self.fresh.val() {
            self.newest_q.d.next = self.zero_16.val();
        }
        self.free_q.d.next = self.pops.val() | self.frees.val();
        self.frame_q.d.next = self.head.val();
        if self.frees.val() {
            self.frame_q.d.next = self.put.val();
        }
        self.peer_out.next = self.peer_q.q.val();
        self.syn_out.next = self.syn_q.q.val();
        self.ack_out.next = self.ack_q.q.val();
        self.data_out.next = self.data_q.q.val();
        self.blocks_out.next = self.blocks_q.q.val();
        self.tx_clear_out.next = self.tx_clear_q.q.val();
        self.clear_out.next = self.clear_q.q.val();
        self.renew_out.next = self.renew_q.q.val();
        self.up_out.next = self.up_q.q.val();
        self.down_out.next = self.down_q.q.val();
        self.write_newest.next = self.writes_q.q.val();
        self.newest_out.next = self.newest_q.q.val();
        self.free_out.next = self.free_q.q.val();
        self.frame_out.next = self.frame_q.q.val();
        if self.reset.val() {
            self.syn_q.d.next = false;
            self.ack_q.d.next = false;
            self.data_q.d.next = false;
            self.blocks_q.d.next = false;
            self.up_q.d.next = false;
            self.down_q.d.next = false;
            self.free_q.d.next = false;
        }
    }
}
