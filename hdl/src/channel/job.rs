//! The next frame for the transmitter: chooses among what a peer wants, and holds the choice until
//! the transmitter takes it.
//!
//! Control frames go first, in the order RST, SYN, SYN-ACK, Ack with NAK, MessageRefused; then the
//! frame at the list's turn. An Ack rides on that frame if it is a small one; it goes ahead of a
//! large one, which would bring it only when its own CRC has arrived. A frame that the peer's limit
//! does not cover waits, and what is behind it. A mark that cannot be obeyed
//! any more (the channel has closed since) is cleared without a frame.
use super::num::Num;
use nic_regs::frame::Type;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Job {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Chooses for `peer`, only while there is no job.
    pub choose: Signal<In, Bit>,
    /// Likewise, but it is the frame `put` and nothing else.
    pub direct: Signal<In, Bit>,
    pub put: Signal<In, Bits<7>>,
    pub put_no_sequence: Signal<In, Bit>,
    /// An RST, SYN or SYN-ACK is to be sent.
    pub opens: Signal<Out, Bit>,
    /// An Ack is to be sent.
    pub needs: Signal<Out, Bit>,
    pub peer: Signal<In, Bits<6>>,
    pub is_open: Signal<In, Bit>,
    pub is_opening: Signal<In, Bit>,
    /// The peer's pending bits, as in `TxPendingOps`, taken a cycle before `choose`. A mark that comes in
    /// between is served by the same frame.
    pub found: Signal<In, Bits<7>>,
    pub reset_tag: Signal<In, Bits<16>>,
    // The list's turn.
    pub todo: Signal<In, Bit>,
    pub at_tail: Signal<In, Bit>,
    pub turn: Signal<In, Bits<7>>,
    pub number: Signal<In, Bits<16>>,
    pub no_sequence: Signal<In, Bit>,
    pub wide: Signal<In, Bit>,
    pub newly: Signal<In, Bit>,
    /// The limit covers it, if it was not sent before.
    pub covered: Signal<In, Bit>,
    /// It waits for credits.
    pub blocks: Signal<Out, Bit>,
    /// Pending operations to be cleared.
    pub clear: Signal<Out, Bits<7>>,
    /// A frame was chosen.
    pub sends: Signal<Out, Bit>,
    /// It is the list's.
    pub take: Signal<Out, Bit>,
    // The job.
    pub valid: Signal<Out, Bit>,
    pub data: Signal<Out, Bit>,
    /// The type of a control frame; one of the pool has its own.
    pub kind: Signal<Out, Bits<8>>,
    pub to: Signal<Out, Bits<6>>,
    pub frame: Signal<Out, Bits<7>>,
    pub seq: Signal<Out, Bits<16>>,
    pub unsequenced: Signal<Out, Bit>,
    pub again: Signal<Out, Bit>,
    pub nak: Signal<Out, Bit>,
    pub tag: Signal<Out, Bits<16>>,
    pub taken: Signal<In, Bit>,
    full: DFF<Bit>,
    wants: DFF<Bits<7>>,
    is_data: DFF<Bit>,
    type_held: DFF<Bits<8>>,
    to_held: DFF<Bits<6>>,
    frame_held: DFF<Bits<7>>,
    seq_held: DFF<Bits<16>>,
    no_sequence_held: DFF<Bit>,
    again_held: DFF<Bit>,
    nak_held: DFF<Bit>,
    tag_held: DFF<Bits<16>>,
    makes: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
    waits: Signal<Local, Bit>,
    type_ack: Num<8, { Type::Ack as u64 }>,
    type_syn: Num<8, { Type::Syn as u64 }>,
    type_synack: Num<8, { Type::SynAck as u64 }>,
    type_rst: Num<8, { Type::Rst as u64 }>,
    type_refused: Num<8, { Type::MessageRefused as u64 }>,
    clear_rst: Num<7, 0x01>,
    clear_syn: Num<7, 0x02>,
    clear_synack: Num<7, 0x04>,
    clear_acks: Num<7, 0x18>,
    clear_ack: Num<7, 0x10>,
    clear_refused: Num<7, 0x20>,
    clear_data: Num<7, 0x40>,
}

impl Logic for Job {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, full, wants, is_data, type_held, to_held, frame_held, seq_held);
        dff_setup!(self, clock, no_sequence_held, again_held, nak_held, tag_held);
        self.wants.d.next = self.found.val();
        self.clear.next = 0.into();
        self.makes.next = false;
        self.takes.next = false;
        self.blocks.next = false;
        self.waits.next = self.newly.val() & !(self.no_sequence.val() | self.covered.val());
        if self.taken.val() {
            self.full.d.next = false;
        }
        if self.choose.val() {
            self.to_held.d.next = self.peer.val();
            self.frame_held.d.next = self.turn.val();
            self.seq_held.d.next = self.number.val();
            self.tag_held.d.next = self.reset_tag.val();
            self.nak_held.d.next = self.wants.q.val().get_bit(3);
            if self.wants.q.val().get_bit(0) {
                self.clear.next = self.clear_rst.val();
                self.type_held.d.next = self.type_rst.val();
                self.makes.next = true;
            } else if self.wants.q.val().get_bit(1) {
                self.clear.next = self.clear_syn.val();
                self.type_held.d.next = self.type_syn.val();
                self.makes.next = self.is_opening.val();
            } else if self.wants.q.val().get_bit(2) {
                self.clear.next = self.clear_synack.val();
                self.type_held.d.next = self.type_synack.val();
                self.makes.next = self.is_open.val();
            } else if self.wants.q.val().get_bit(3) {
                self.clear.next = self.clear_acks.val();
                self.type_held.d.next = self.type_ack.val();
                self.makes.next = self.is_open.val();
            } else if self.wants.q.val().get_bit(5) {
                self.clear.next = self.clear_refused.val();
                self.type_held.d.next = self.type_refused.val();
                self.makes.next = self.is_open.val();
            } else if self.is_open.val()
                & self.todo.val()
                & !self.waits.val()
                & !(self.wide.val() & self.wants.q.val().get_bit(4))
            {
                self.takes.next = true;
                self.makes.next = true;
                self.clear.next = self.clear_ack.val();
                if self.at_tail.val() {
                    self.clear.next = self.clear_data.val() | self.clear_ack.val();
                }
            } else if self.wants.q.val().get_bit(4) {
                self.clear.next = self.clear_ack.val();
                self.type_held.d.next = self.type_ack.val();
                self.makes.next = self.is_open.val();
            } else {
                self.clear.next = self.clear_data.val();
                self.blocks.next = self.todo.val() & self.waits.val();
            }
            self.is_data.d.next = self.takes.val();
            self.no_sequence_held.d.next = self.takes.val() & self.no_sequence.val();
            self.again_held.d.next =
                self.takes.val() & !(self.no_sequence.val() | self.newly.val());
            self.full.d.next = self.makes.val();
        } else if self.direct.val() {
            self.to_held.d.next = self.peer.val();
            self.frame_held.d.next = self.put.val();
            self.seq_held.d.next = self.number.val();
            self.clear.next = self.clear_ack.val();
            self.makes.next = true;
            self.is_data.d.next = true;
            self.no_sequence_held.d.next = self.put_no_sequence.val();
            self.again_held.d.next = !(self.put_no_sequence.val() | self.newly.val());
            self.full.d.next = true;
        }
        self.opens.next = self.wants.q.val().get_bits::<3>(0).any();
        self.needs.next = self.wants.q.val().get_bit(4);
        self.sends.next = self.makes.val();
        self.take.next = self.takes.val();
        self.valid.next = self.full.q.val();
        self.data.next = self.is_data.q.val();
        self.kind.next = self.type_held.q.val();
        self.to.next = self.to_held.q.val();
        self.frame.next = self.frame_held.q.val();
        self.seq.next = self.seq_held.q.val();
        self.unsequenced.next = self.no_sequence_held.q.val();
        self.again.next = self.again_held.q.val();
        self.nak.next = self.nak_held.q.val();
        self.tag.next = self.tag_held.q.val();
        if self.reset.val() {
            self.full.d.next = false;
        }
    }
}
