//! The comparisons behind a verdict: what the tables say of a frame's source (cycle 0, registered),
//! against what its header says (cycle 1, registered). See [`super::accept`].
use super::num::Num;
use nic_regs::frame::Type;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Compare {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    // Cycle 0.
    pub start: Signal<In, Bit>,
    pub open: Signal<In, Bit>,
    pub opening: Signal<In, Bit>,
    pub expected: Signal<In, Bits<17>>,
    pub tag: Signal<In, Bits<16>>,
    pub own: Signal<In, Bits<32>>,
    pub remote: Signal<In, Bits<32>>,
    pub acked: Signal<In, Bits<16>>,
    pub newest: Signal<In, Bits<16>>,
    pub limit: Signal<In, Bits<8>>,
    // The link's verdict, the header, stable, and the room in staging (cycle 1).
    pub frame: Signal<In, Bit>,
    pub misfit: Signal<In, Bit>,
    pub header0: Signal<In, Bits<64>>,
    pub header1: Signal<In, Bits<64>>,
    pub header2: Signal<In, Bits<64>>,
    pub fits: Signal<In, Bit>,
    pub fits_no_sequence: Signal<In, Bit>,
    /// A frame is in cycle 1 or 2.
    pub busy: Signal<Out, Bit>,
    // Cycle 2.
    pub valid: Signal<Out, Bit>,
    pub is_misfit: Signal<Out, Bit>,
    pub was_open: Signal<Out, Bit>,
    pub was_opening: Signal<Out, Bit>,
    pub is_syn: Signal<Out, Bit>,
    pub is_synack: Signal<Out, Bit>,
    pub is_rst: Signal<Out, Bit>,
    pub is_nak: Signal<Out, Bit>,
    pub is_refused: Signal<Out, Bit>,
    pub is_data: Signal<Out, Bit>,
    pub is_sequenced: Signal<Out, Bit>,
    pub tag_good: Signal<Out, Bit>,
    /// A SYN-ACK's tag is made of its epoch and ours.
    pub join_good: Signal<Out, Bit>,
    /// The epoch is the known one, byte by byte.
    pub same_epoch: Signal<Out, Bits<4>>,
    /// Number minus expected number.
    pub ahead: Signal<Out, Bits<16>>,
    pub nak_asked: Signal<Out, Bit>,
    /// Expected number, and the one after it.
    pub expects: Signal<Out, Bits<16>>,
    pub following: Signal<Out, Bits<16>>,
    pub new_tag: Signal<Out, Bits<16>>,
    /// How far the acknowledgement moves, and how far it may.
    pub ack_step: Signal<Out, Bits<16>>,
    pub ack_room: Signal<Out, Bits<16>>,
    /// How far the credit limit moves (signed).
    pub limit_step: Signal<Out, Bits<8>>,
    /// For it as a sequenced frame, and as an unsequenced one.
    pub room: Signal<Out, Bit>,
    pub room_no_sequence: Signal<Out, Bit>,
    step1: DFF<Bit>,
    was_open1: DFF<Bit>,
    was_opening1: DFF<Bit>,
    expected1: DFF<Bits<17>>,
    tag1: DFF<Bits<16>>,
    own1: DFF<Bits<32>>,
    remote1: DFF<Bits<32>>,
    acked1: DFF<Bits<16>>,
    newest1: DFF<Bits<16>>,
    limit1: DFF<Bits<8>>,
    valid_q: DFF<Bit>,
    is_misfit_q: DFF<Bit>,
    was_open_q: DFF<Bit>,
    was_opening_q: DFF<Bit>,
    is_syn_q: DFF<Bit>,
    is_synack_q: DFF<Bit>,
    is_rst_q: DFF<Bit>,
    is_nak_q: DFF<Bit>,
    is_refused_q: DFF<Bit>,
    is_data_q: DFF<Bit>,
    is_sequenced_q: DFF<Bit>,
    tag_good_q: DFF<Bit>,
    join_good_q: DFF<Bit>,
    same_epoch_q: DFF<Bits<4>>,
    differs: Signal<Local, Bits<32>>,
    zero_8: Num<8, 0>,
    ahead_q: DFF<Bits<16>>,
    nak_asked_q: DFF<Bit>,
    following_q: DFF<Bits<16>>,
    expects_q: DFF<Bits<16>>,
    new_tag_q: DFF<Bits<16>>,
    ack_step_q: DFF<Bits<16>>,
    ack_room_q: DFF<Bits<16>>,
    limit_step_q: DFF<Bits<8>>,
    room_q: DFF<Bit>,
    room_no_sequence_q: DFF<Bit>,
    kind: Signal<Local, Bits<8>>,
    frame_tag: Signal<Local, Bits<16>>,
    flags: Signal<Local, Bits<8>>,
    number: Signal<Local, Bits<16>>,
    acknowledgement: Signal<Local, Bits<16>>,
    word: Signal<Local, Bits<32>>,
    joined_tag: Signal<Local, Bits<16>>,
    type_data: Num<8, { Type::Data as u64 }>,
    type_write: Num<8, { Type::RdmaWrite as u64 }>,
    type_ack: Num<8, { Type::Ack as u64 }>,
    type_syn: Num<8, { Type::Syn as u64 }>,
    type_synack: Num<8, { Type::SynAck as u64 }>,
    type_rst: Num<8, { Type::Rst as u64 }>,
    type_refused: Num<8, { Type::MessageRefused as u64 }>,
}

impl Logic for Compare {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, step1, was_open1, was_opening1, expected1, tag1, own1);
        dff_setup!(self, clock, remote1, acked1, newest1, valid_q, is_misfit_q, was_open_q);
        dff_setup!(self, clock, was_opening_q, is_syn_q, is_synack_q, is_rst_q, is_nak_q);
        dff_setup!(self, clock, is_refused_q, is_data_q, is_sequenced_q, tag_good_q, join_good_q);
        dff_setup!(self, clock, same_epoch_q, ahead_q, nak_asked_q, following_q, expects_q);
        dff_setup!(self, clock, new_tag_q, ack_step_q, ack_room_q, room_q, limit1);
        dff_setup!(self, clock, limit_step_q, room_no_sequence_q);
        self.kind.next = self.header0.val().get_bits::<8>(8);
        self.frame_tag.next = self.header0.val().get_bits::<16>(48);
        self.flags.next = self.header1.val().get_bits::<8>(48);
        self.number.next = self.header2.val().get_bits::<16>(0);
        self.acknowledgement.next = self.header2.val().get_bits::<16>(16);
        self.word.next = self.header2.val().get_bits::<32>(32);

        // Cycle 0: what the tables say.
        self.step1.d.next = self.start.val();
        self.was_open1.d.next = self.open.val();
        self.was_opening1.d.next = self.opening.val();
        self.expected1.d.next = self.expected.val();
        self.tag1.d.next = self.tag.val();
        self.own1.d.next = self.own.val();
        self.remote1.d.next = self.remote.val();
        self.acked1.d.next = self.acked.val();
        self.newest1.d.next = self.newest.val();
        self.limit1.d.next = self.limit.val();
        self.busy.next = self.step1.q.val() | self.valid_q.q.val();

        // Cycle 1: compare.
        self.valid_q.d.next = self.step1.q.val() & (self.frame.val() | self.misfit.val());
        self.is_misfit_q.d.next = self.misfit.val();
        self.was_open_q.d.next = self.was_open1.q.val();
        self.was_opening_q.d.next = self.was_opening1.q.val();
        self.is_syn_q.d.next = self.kind.val() == self.type_syn.val();
        self.is_synack_q.d.next = self.kind.val() == self.type_synack.val();
        self.is_rst_q.d.next = self.kind.val() == self.type_rst.val();
        self.is_nak_q.d.next =
            (self.kind.val() == self.type_ack.val()) & self.flags.val().get_bit(5);
        self.is_refused_q.d.next = self.kind.val() == self.type_refused.val();
        self.is_data_q.d.next =
            (self.kind.val() == self.type_data.val()) | (self.kind.val() == self.type_write.val());
        self.is_sequenced_q.d.next = (!self.kind.val().get_bit(4))
            & (((self.kind.val() != self.type_data.val())
                & (self.kind.val() != self.type_write.val()))
                | self.flags.val().get_bit(3));
        self.joined_tag.next =
            self.own1.q.val().get_bits::<16>(0) ^ self.word.val().get_bits::<16>(0);
        self.new_tag_q.d.next = self.joined_tag.val();
        self.tag_good_q.d.next = self.frame_tag.val() == self.tag1.q.val();
        self.join_good_q.d.next = self.frame_tag.val() == self.joined_tag.val();
        self.differs.next = self.word.val() ^ self.remote1.q.val();
        self.same_epoch_q.d.next =
            bit_cast::<4, 1>((self.differs.val().get_bits::<8>(0) == self.zero_8.val()).into())
                | (bit_cast::<4, 1>(
                    (self.differs.val().get_bits::<8>(8) == self.zero_8.val()).into(),
                ) << 1)
                | (bit_cast::<4, 1>(
                    (self.differs.val().get_bits::<8>(16) == self.zero_8.val()).into(),
                ) << 2)
                | (bit_cast::<4, 1>(
                    (self.differs.val().get_bits::<8>(24) == self.zero_8.val()).into(),
                ) << 3);
        self.ahead_q.d.next = self.number.val() - self.expected1.q.val().get_bits::<16>(0);
        self.nak_asked_q.d.next = self.expected1.q.val().get_bit(16);
        self.expects_q.d.next = self.expected1.q.val().get_bits::<16>(0);
        self.following_q.d.next = self.expected1.q.val().get_bits::<16>(0) + 1;
        self.ack_step_q.d.next = self.acknowledgement.val() - self.acked1.q.val();
        self.ack_room_q.d.next = self.newest1.q.val() - self.acked1.q.val();
        self.limit_step_q.d.next = self.header1.val().get_bits::<8>(56) - self.limit1.q.val();
        self.room_q.d.next = self.fits.val();
        self.room_no_sequence_q.d.next = self.fits_no_sequence.val();

        self.valid.next = self.valid_q.q.val();
        self.is_misfit.next = self.is_misfit_q.q.val();
        self.was_open.next = self.was_open_q.q.val();
        self.was_opening.next = self.was_opening_q.q.val();
        self.is_syn.next = self.is_syn_q.q.val();
        self.is_synack.next = self.is_synack_q.q.val();
        self.is_rst.next = self.is_rst_q.q.val();
        self.is_nak.next = self.is_nak_q.q.val();
        self.is_refused.next = self.is_refused_q.q.val();
        self.is_data.next = self.is_data_q.q.val();
        self.is_sequenced.next = self.is_sequenced_q.q.val();
        self.tag_good.next = self.tag_good_q.q.val();
        self.join_good.next = self.join_good_q.q.val();
        self.same_epoch.next = self.same_epoch_q.q.val();
        self.ahead.next = self.ahead_q.q.val();
        self.nak_asked.next = self.nak_asked_q.q.val();
        self.following.next = self.following_q.q.val();
        self.expects.next = self.expects_q.q.val();
        self.new_tag.next = self.new_tag_q.q.val();
        self.ack_step.next = self.ack_step_q.q.val();
        self.ack_room.next = self.ack_room_q.q.val();
        self.limit_step.next = self.limit_step_q.q.val();
        self.room.next = self.room_q.q.val();
        self.room_no_sequence.next = self.room_no_sequence_q.q.val();
        if self.reset.val() {
            self.valid_q.d.next = false;
        }
    }
}
