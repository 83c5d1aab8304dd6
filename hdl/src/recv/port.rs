//! The frame's side of the VI table: its calls, the context of its VI, its comparisons with the frame.
//!
//! `get`, `save`, `pop`, `acked`, `stop` are pulses, one at a time; the call begins in the next cycle.
//! `done` and `popped` come a cycle after the table's. With `done` of a `get` the context is in
//! registers; in that cycle the comparisons are made, and are registers in the next one.

use crate::ifs::ViRecvClient;
use crate::leaf::Number;
use nic_regs::limits::MAX_TRANSFER_BYTES;
use nic_regs::vi::{Reliability, State};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Port {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub header0: Signal<In, Bits<64>>,
    pub header1: Signal<In, Bits<64>>,
    pub header2: Signal<In, Bits<64>>,
    pub get: Signal<In, Bit>,
    /// A `get` is under way: the context is taken as it comes.
    pub getting: Signal<In, Bit>,
    pub save: Signal<In, Bit>,
    pub acked: Signal<In, Bit>,
    pub pop: Signal<In, Bit>,
    pub stop: Signal<In, Bit>,
    /// A receive descriptor was posted (pulse).
    pub posted: Signal<Out, Bit>,
    pub posted_vi: Signal<Out, Bits<16>>,
    pub in_progress: Signal<In, Bit>,
    /// With `pop`: valid 42, offset 41:16, region 15:0.
    pub successor: Signal<In, Bits<43>>,
    /// Known a cycle before `stop`.
    pub reason: Signal<In, Bits<8>>,
    pub stop_status: Signal<In, Bits<32>>,
    /// A Data frame, or one of an RDMA write (else a control frame: stops blame the send queue and
    /// refuse nothing).
    pub is_data: Signal<In, Bit>,
    pub is_write: Signal<In, Bit>,
    /// A read's request (`acked` is then ANSWER), or part of the answer to one of this VI: its calls
    /// are about the send queue.
    pub is_request: Signal<In, Bit>,
    pub is_response: Signal<In, Bit>,
    /// The memory that the peer asks for.
    pub address: Signal<In, Bits<64>>,
    pub handle: Signal<In, Bits<32>>,
    /// The descriptor's segments hold so much.
    pub total_bytes: Signal<In, Bits<20>>,
    /// Bytes of data; how many bytes in all the frame tells, by its RDMA header or its own.
    pub length: Signal<In, Bits<13>>,
    pub declared: Signal<In, Bits<32>>,
    /// SAVE owes a ViAck.
    pub save_needs_ack: Signal<In, Bit>,
    /// A ViRefuse: its reason goes into the event.
    pub is_refuse: Signal<In, Bit>,
    pub done: Signal<Out, Bit>,
    /// With `done`, of a POP: it was carried out, and needs no Next.
    pub popped: Signal<Out, Bit>,
    pub domain: Signal<Out, Bits<8>>,
    pub tag: Signal<Out, Bits<16>>,
    pub region: Signal<Out, Bits<16>>,
    pub offset: Signal<Out, Bits<26>>,
    pub hint: Signal<Out, Bits<5>>,
    pub count: Signal<Out, Bits<16>>,
    /// No receive descriptor is posted; more than one is.
    pub empty: Signal<Out, Bit>,
    pub several: Signal<Out, Bit>,
    /// As `empty`, a cycle earlier.
    pub none: Signal<Out, Bit>,
    pub busy: Signal<Out, Bit>,
    /// The message in progress is an RDMA write.
    pub busy_write: Signal<Out, Bit>,
    /// RDMA that the VI allows, see `vi::rdma`.
    pub allows: Signal<Out, Bits<2>>,
    pub unreliable: Signal<Out, Bit>,
    pub reception: Signal<Out, Bit>,
    // The comparisons, for the registers of `super::check`.
    /// The VI is Connected, and to the frame's source.
    pub ours: Signal<Out, Bit>,
    /// SEQUENCED and RECEPTION fit the VI's level.
    pub level_fits: Signal<Out, Bit>,
    /// Unreliable: message and fragment number continue, in a message of the frame's kind.
    pub continues: Signal<Out, Bit>,
    /// Later frame: beyond the message's end, or a LAST before it.
    pub misfit: Signal<Out, Bit>,
    /// First frame: longer than the message that it announces.
    pub inconsistent: Signal<Out, Bit>,
    /// See [`super::check`].
    pub bad_read: Signal<Out, Bit>,
    /// Bytes of the message in progress were placed.
    pub progressed: Signal<Out, Bit>,
    /// Bytes placed before this frame, and with it.
    pub placed: Signal<Out, Bits<19>>,
    /// Length of the whole message; bit 20: longer than the device takes.
    pub whole: Signal<Out, Bits<21>>,
    /// Data: it is longer than the descriptor's segments.
    pub too_long: Signal<Out, Bit>,
    /// It is too long for any descriptor.
    pub too_long_anyway: Signal<Out, Bit>,
    pub vi: ViRecvClient,
    /// The call that is under way; its arguments are registers, here or where they come from.
    calling: DFF<Bit>,
    op: DFF<Bits<3>>,
    next_at: DFF<Bits<43>>,
    next_fragment: DFF<Bits<8>>,
    reason_at: DFF<Bits<8>>,
    status_at: DFF<Bits<32>>,
    /// The answer, a cycle later.
    done_at: DFF<Bit>,
    popped_at: DFF<Bit>,
    posted_at: DFF<Bit>,
    posted_vi_at: DFF<Bits<16>>,
    vi_state: DFF<Bits<2>>,
    domain_at: DFF<Bits<8>>,
    tag_at: DFF<Bits<16>>,
    level: DFF<Bits<3>>,
    peer: DFF<Bits<8>>,
    peer_vi: DFF<Bits<16>>,
    connection: DFF<Bits<16>>,
    region_at: DFF<Bits<16>>,
    offset_at: DFF<Bits<26>>,
    hint_at: DFF<Bits<5>>,
    count_at: DFF<Bits<16>>,
    empty_at: DFF<Bit>,
    several_at: DFF<Bit>,
    busy_at: DFF<Bit>,
    busy_write_at: DFF<Bit>,
    allows_at: DFF<Bits<2>>,
    answering: DFF<Bit>,
    progress: DFF<Bits<19>>,
    total: DFF<Bits<19>>,
    message: DFF<Bits<8>>,
    fragment: DFF<Bits<8>>,
    placed_at: DFF<Bits<19>>,
    reached_at: DFF<Bits<20>>,
    whole_at: DFF<Bits<21>>,
    too_long_at: DFF<Bit>,
    // What the header alone says of the message's length, known before the context: it says it; it
    // is more than any descriptor's.
    claims: DFF<Bit>,
    claim: DFF<Bits<20>>,
    overlong: DFF<Bit>,
    claimed: Signal<Local, Bits<20>>,
    /// Of a read's answer: this frame and what comes behind it.
    rest: DFF<Bits<33>>,
    first: Signal<Local, Bit>,
    reported: Signal<Local, Bits<33>>,
    last: Signal<Local, Bit>,
    differs: Signal<Local, Bit>,
    short_last: Signal<Local, Bit>,
    word: Signal<Local, Bits<32>>,
    is_unreliable: Signal<Local, Bit>,
    is_reception: Signal<Local, Bit>,
    sum: Signal<Local, Bits<20>>,
    asks: Signal<Local, Bit>,
    /// A stop blames the receive queue.
    blames_recv: Signal<Local, Bit>,
    one: Number<16, 1>,
    op_get: Number<3, 0>,
    op_save: Number<3, 1>,
    op_pop: Number<3, 2>,
    op_answer: Number<3, 3>,
    op_stop: Number<3, 5>,
    op_acked: Number<3, 6>,
    level_unreliable: Number<3, { Reliability::Unreliable as u64 }>,
    level_reception: Number<3, { Reliability::Reception as u64 }>,
    state_connected: Number<2, { State::Connected as u64 }>,
    longest: Number<32, { MAX_TRANSFER_BYTES as u64 }>,
    over: Number<21, { 1 << 20 }>,
}

impl Logic for Port {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, vi_state, domain_at, tag_at, level, peer, peer_vi, connection);
        dff_setup!(self, clock, region_at, offset_at, hint_at, count_at, busy_at, progress, total);
        dff_setup!(self, clock, message, fragment, claims, claim, overlong);
        dff_setup!(self, clock, placed_at, reached_at, whole_at, too_long_at);
        dff_setup!(self, clock, posted_at, posted_vi_at, busy_write_at, allows_at);
        dff_setup!(self, clock, answering, calling, op, next_at, next_fragment, reason_at);
        dff_setup!(self, clock, status_at, done_at, popped_at, empty_at, several_at, rest);

        self.done_at.d.next = self.vi.done.val();
        self.popped_at.d.next = self.vi.done.val() & (!self.vi.need_next.val());
        self.done.next = self.done_at.q.val();
        self.popped.next = self.popped_at.q.val();
        self.posted_at.d.next = self.vi.posted.val();
        self.posted_vi_at.d.next = self.vi.posted_vi.val();
        self.posted.next = self.posted_at.q.val();
        self.posted_vi.next = self.posted_vi_at.q.val();
        self.domain.next = self.domain_at.q.val();
        self.tag.next = self.tag_at.q.val();
        self.region.next = self.region_at.q.val();
        self.offset.next = self.offset_at.q.val();
        self.hint.next = self.hint_at.q.val();
        self.count.next = self.count_at.q.val();
        self.none.next = !self.count_at.q.val().any();
        self.empty_at.d.next = self.none.val();
        self.several_at.d.next = self.one.val() < self.count_at.q.val();
        self.empty.next = self.empty_at.q.val();
        self.several.next = self.several_at.q.val();
        self.busy.next = self.busy_at.q.val();
        self.busy_write.next = self.busy_write_at.q.val();
        self.allows.next = self.allows_at.q.val();
        self.is_unreliable.next = self.level.q.val() == self.level_unreliable.val();
        self.is_reception.next = self.level.q.val() == self.level_reception.val();
        self.unreliable.next = self.is_unreliable.val();
        self.reception.next = self.is_reception.val();
        self.progressed.next = self.progress.q.val().any();
        self.placed.next = self.placed_at.q.val();
        self.whole.next = self.whole_at.q.val();
        self.too_long.next = self.too_long_at.q.val();
        self.too_long_anyway.next = self.overlong.q.val();

        // Context: what came with the answer stays.
        if self.getting.val() & (!self.done_at.q.val()) {
            self.vi_state.d.next = self.vi.ctx_state.val();
            self.domain_at.d.next = self.vi.ctx_domain.val();
            self.tag_at.d.next = self.vi.ctx_tag.val();
            self.level.d.next = self.vi.ctx_reliability.val();
            self.peer.d.next = self.vi.ctx_peer.val();
            self.peer_vi.d.next = self.vi.ctx_peer_vi.val();
            self.connection.d.next = self.vi.ctx_connection.val();
            self.region_at.d.next = self.vi.ctx_region.val();
            self.offset_at.d.next = self.vi.ctx_offset.val();
            self.hint_at.d.next = self.vi.ctx_segments.val();
            self.count_at.d.next = self.vi.ctx_count.val();
            self.busy_at.d.next = self.vi.ctx_in_progress.val();
            self.busy_write_at.d.next = self.vi.ctx_write.val();
            self.allows_at.d.next = self.vi.ctx_allows.val();
            self.answering.d.next = self.vi.ctx_answering.val();
            self.progress.d.next = self.vi.ctx_progress.val();
            self.total.d.next = self.vi.ctx_total.val();
            self.message.d.next = self.vi.ctx_message.val();
            self.fragment.d.next = self.vi.ctx_fragment.val();
        }

        // Comparisons.
        self.word.next = self.header2.val().get_bits::<32>(32);
        // Answers do not use the flags, and a request is alone.
        self.first.next =
            (self.header1.val().get_bit(48) | self.is_request.val()) & (!self.is_response.val());
        self.last.next = self.header1.val().get_bit(49);
        self.sum.next =
            bit_cast::<20, 19>(self.progress.q.val()) + bit_cast::<20, 13>(self.length.val());
        self.ours.next = (self.vi_state.q.val() == self.state_connected.val())
            & (self.peer.q.val() == self.header0.val().get_bits::<8>(32))
            & (self.peer_vi.q.val() == self.header1.val().get_bits::<16>(16))
            & (self.connection.q.val() == self.header1.val().get_bits::<16>(32));
        self.level_fits.next = (self.header1.val().get_bit(51) != self.is_unreliable.val())
            & (self.header1.val().get_bit(52) == self.is_reception.val());
        self.continues.next = self.busy_at.q.val()
            & (self.busy_write_at.q.val() == self.is_write.val())
            & (self.fragment.q.val() == self.header2.val().get_bits::<8>(0))
            & (self.message.q.val() == self.header2.val().get_bits::<8>(8));
        self.differs.next =
            self.is_write.val() & (self.declared.val() != bit_cast::<32, 19>(self.total.q.val()));
        self.misfit.next = self.differs.val()
            | (bit_cast::<20, 19>(self.total.q.val()) < self.sum.val())
            | (self.last.val() & (self.sum.val() < bit_cast::<20, 19>(self.total.q.val())));
        // A Data frame that is the whole message tells no length.
        self.short_last.next =
            self.last.val() & (bit_cast::<32, 13>(self.length.val()) != self.declared.val());
        self.inconsistent.next =
            (!self.last.val()) & (self.declared.val() < bit_cast::<32, 13>(self.length.val()));
        if self.is_write.val() {
            self.inconsistent.next = (self.declared.val() < bit_cast::<32, 13>(self.length.val()))
                | self.short_last.val()
                | (self.longest.val() < self.declared.val());
        }
        if self.first.val() {
            self.placed_at.d.next = 0.into();
            self.reached_at.d.next = bit_cast::<20, 13>(self.length.val());
            self.whole_at.d.next = self.declared.val().get_bits::<21>(0);
            if self.last.val() & (!self.is_write.val()) & (!self.is_request.val()) {
                self.whole_at.d.next = bit_cast::<21, 13>(self.length.val());
            } else if self.longest.val() < self.declared.val() {
                self.whole_at.d.next = self.over.val();
            }
        } else {
            self.placed_at.d.next = self.progress.q.val();
            self.reached_at.d.next = self.sum.val();
            self.whole_at.d.next = bit_cast::<21, 19>(self.total.q.val());
        }

        // Data: the message against the descriptor, as long as nobody has to know.
        self.claims.d.next = self.first.val();
        self.claim.d.next = self.word.val().get_bits::<20>(0);
        self.overlong.d.next =
            self.first.val() & (!self.last.val()) & (self.longest.val() < self.word.val());
        if self.last.val() {
            self.claim.d.next = bit_cast::<20, 13>(self.length.val());
        }
        self.claimed.next = bit_cast::<20, 19>(self.total.q.val());
        if self.claims.q.val() {
            self.claimed.next = self.claim.q.val();
        }
        self.too_long_at.d.next =
            (self.total_bytes.val() < self.claimed.val()) | self.overlong.q.val();

        // Reads: the answer's frames tell what is left.
        self.rest.d.next =
            bit_cast::<33, 13>(self.length.val()) + bit_cast::<33, 32>(self.word.val());
        self.reported.next = bit_cast::<33, 19>(self.progress.q.val()) + self.rest.q.val();
        self.bad_read.next = self.answering.q.val() | (self.longest.val() < self.declared.val());
        if self.is_response.val() {
            self.bad_read.next = (self.reported.val() != bit_cast::<33, 19>(self.total.q.val()))
                | ((!self.length.val().any()) & self.word.val().any());
        }

        // Calls.
        self.asks.next =
            self.get.val() | self.save.val() | self.acked.val() | self.pop.val() | self.stop.val();
        self.calling.d.next = self.asks.val() | (self.calling.q.val() & (!self.vi.done.val()));
        self.vi.valid.next = self.calling.q.val();
        self.vi.vi.next = self.header1.val().get_bits::<16>(0);
        self.vi.op.next = self.op.q.val();
        if self.get.val() {
            self.op.d.next = self.op_get.val();
        } else if self.save.val() {
            self.op.d.next = self.op_save.val();
        } else if self.acked.val() {
            self.op.d.next = self.op_acked.val();
            if self.is_request.val() {
                self.op.d.next = self.op_answer.val();
            }
        } else if self.pop.val() {
            self.op.d.next = self.op_pop.val();
        } else if self.stop.val() {
            self.op.d.next = self.op_stop.val();
        }
        self.vi.in_progress.next = self.in_progress.val();
        self.vi.write.next = self.is_write.val();
        self.vi.sends.next = self.is_response.val();
        self.vi.address.next = self.address.val();
        self.vi.handle.next = self.handle.val();
        self.vi.offset.next = self.reached_at.q.val().get_bits::<19>(0);
        self.vi.total.next = self.whole_at.q.val().get_bits::<19>(0);
        self.vi.message.next = self.header2.val().get_bits::<8>(8);
        self.next_fragment.d.next = self.header2.val().get_bits::<8>(0) + 1;
        self.vi.fragment.next = self.next_fragment.q.val();
        self.next_at.d.next = self.successor.val();
        self.vi.next_region.next = self.next_at.q.val().get_bits::<16>(0);
        self.vi.next_offset.next = self.next_at.q.val().get_bits::<26>(16);
        self.vi.next_valid.next = self.next_at.q.val().get_bit(42);
        self.vi.need_ack.next = self.save_needs_ack.val();
        self.reason_at.d.next = self.reason.val();
        self.vi.reason.next = self.reason_at.q.val();
        self.vi.detail.next = 0.into();
        if self.is_refuse.val() {
            self.vi.detail.next = self.word.val().get_bits::<8>(0);
        }
        self.status_at.d.next = self.stop_status.val();
        self.vi.status.next = self.status_at.q.val();
        self.blames_recv.next = self.is_data.val() | self.is_write.val() | self.is_request.val();
        self.vi.queue.next = self.blames_recv.val();
        self.vi.refuse.next = self.blames_recv.val() | self.is_response.val();
        if self.reset.val() {
            self.calling.d.next = false;
            self.done_at.d.next = false;
        }
    }
}
