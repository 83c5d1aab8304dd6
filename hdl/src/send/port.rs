//! The engine's side of the VI table: the calls of its three stages, and the context of the VI that
//! the first one has in flight.
//!
//! A stage holds its `valid` and arguments until its `done`; the later stage goes first, so that
//! the pipeline empties. One cycle between two calls belongs to the handshake.
//!
//! The VI table keeps `offset` and `fragment` of a message in progress without a look at them. All
//! frames but the last are 4,096 bytes, so the frames sent need 7 bits, and the message's total is
//! kept with them and its operation, to see whether software changed them (AWAIT keeps the
//! operation too):
//! ```text
//! offset    frames sent 18:12 | total 11:0
//! fragment  RDMA write 7 | total 18:12
//! ```

use super::Head;
use crate::ifs::ViSendClient;
use crate::leaf::Number;
use nic_regs::vi::{Reliability, State};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Port {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// COMPLETE, STOP.
    pub retire_valid: Signal<In, Bit>,
    pub retire_op: Signal<In, Bits<3>>,
    pub retire_vi: Signal<In, Bits<16>>,
    pub retire_done: Signal<Out, Bit>,
    /// STOP blames the receive queue.
    pub retire_recv: Signal<In, Bit>,
    pub reason: Signal<In, Bits<8>>,
    pub stop_status: Signal<In, Bits<32>>,
    /// CHECK.
    pub commit_valid: Signal<In, Bit>,
    /// It is CHECK already.
    pub commit_go: Signal<In, Bit>,
    pub commit_vi: Signal<In, Bits<16>>,
    pub commit_counts: Signal<In, Bit>,
    pub commit_done: Signal<Out, Bit>,
    /// PUSH (`push_go`), UNPUSH (`push_back`).
    pub push_valid: Signal<In, Bit>,
    pub push_back: Signal<In, Bit>,
    pub push_go: Signal<In, Bit>,
    pub push_vi: Signal<In, Bits<16>>,
    pub push_token: Signal<In, Bits<47>>,
    pub push_length: Signal<In, Bits<13>>,
    pub push_done: Signal<Out, Bit>,
    pub push_ready: Signal<In, Bit>,
    pub push_open: Signal<In, Bit>,
    pub holding: Signal<In, Bit>,
    /// All others.
    pub fetch_valid: Signal<In, Bit>,
    pub fetch_op: Signal<In, Bits<3>>,
    pub in_progress_arg: Signal<In, Bit>,
    /// AWAIT's argument is `whole`, and that of the SAVE of a read, else it is what SAVE stores.
    pub awaits: Signal<In, Bit>,
    pub reading_arg: Signal<In, Bit>,
    /// SENT: a frame of an answer.
    pub answered_arg: Signal<In, Bit>,
    pub next_valid: Signal<In, Bit>,
    pub next_region: Signal<In, Bits<16>>,
    pub next_offset: Signal<In, Bits<26>>,
    pub control_pending_arg: Signal<In, Bits<3>>,
    pub fetch_done: Signal<Out, Bit>,
    /// With any `done`: the VI is Connected.
    pub is_connected: Signal<Out, Bit>,
    /// Takes the VI that the ring offers.
    pub take: Signal<In, Bit>,
    /// Takes the VI whose send is acknowledged / is about to end it.
    pub take_acked: Signal<In, Bit>,
    pub finishing: Signal<In, Bit>,
    pub need_next: Signal<Out, Bit>,
    /// CHECK's answer.
    pub ctx_message: Signal<Out, Bits<8>>,
    pub work_valid: Signal<Out, Bit>,
    pub work_vi: Signal<Out, Bits<16>>,
    pub acked_valid: Signal<Out, Bit>,
    pub acked_vi: Signal<Out, Bits<16>>,
    pub acked_left: Signal<Out, Bit>,
    /// Pulse: the VI `new_number` is now in flight.
    pub load: Signal<In, Bit>,
    pub new_number: Signal<In, Bits<16>>,
    /// GET is over: its context is registered.
    pub got: Signal<In, Bit>,
    /// No VI is in flight, and no descriptor: the context of a VI that is posted to is registered, in
    /// case it is offered at once.
    pub resting: Signal<In, Bit>,
    /// The VI that is offered is that one: it may be taken without GET.
    pub fresh: Signal<Out, Bit>,
    /// Pulse, with `load`: so it is taken.
    pub direct: Signal<In, Bit>,
    // In the cycle of `got`.
    /// The VI's head, or what it awaits, is to be looked at.
    pub due: Signal<Out, Bit>,
    /// The VI and its token are those of the GET before / the VI is (known before).
    pub same: Signal<Out, Bit>,
    pub same_vi: Signal<Out, Bit>,
    pub ctx_awaiting: Signal<Out, Bit>,
    // Then, or in that of `direct`, and from then on.
    pub ctx_region: Signal<Out, Bits<16>>,
    pub ctx_offset: Signal<Out, Bits<26>>,
    // From the cycle after it.
    pub head_region: Signal<Out, Bits<16>>,
    pub head_offset: Signal<Out, Bits<26>>,
    pub number: Signal<Out, Bits<16>>,
    pub connected: Signal<Out, Bit>,
    pub domain: Signal<Out, Bits<8>>,
    pub tag: Signal<Out, Bits<16>>,
    pub unreliable: Signal<Out, Bit>,
    pub reception: Signal<Out, Bit>,
    pub peer: Signal<Out, Bits<8>>,
    pub peer_vi: Signal<Out, Bits<16>>,
    pub connection: Signal<Out, Bits<16>>,
    pub max_transfer: Signal<Out, Bits<20>>,
    /// RDMA that the peer's VI allows, see `vi::rdma`.
    pub allows: Signal<Out, Bits<2>>,
    pub hint: Signal<Out, Bits<5>>,
    /// The queue holds something; so many (9: or more).
    pub some: Signal<Out, Bit>,
    pub covered: Signal<Out, Bits<4>>,
    /// Frames of the message were sent, `progress` bytes.
    pub in_progress: Signal<Out, Bit>,
    pub progress: Signal<Out, Bits<19>>,
    pub frames: Signal<Out, Bits<7>>,
    /// In progress: the message's total when its first frame was sent.
    pub total: Signal<Out, Bits<19>>,
    /// In progress or awaiting: the message is an RDMA write.
    pub was_write: Signal<Out, Bit>,
    /// Awaiting: the message's length.
    pub awaited: Signal<Out, Bits<19>>,
    pub awaiting: Signal<Out, Bit>,
    pub acked: Signal<Out, Bit>,
    /// The answer to a read of the VI is waited for / an answer is owed.
    pub reading: Signal<Out, Bit>,
    pub answer: Signal<Out, Bit>,
    /// The first owed frame (one-hot; ViAck, ViRefuse, Fin).
    pub control_pending: Signal<Out, Bits<3>>,
    pub refuse_reason: Signal<Out, Bits<8>>,
    /// Length of the message: one more frame of it is under way (SAVE). It is an RDMA write.
    pub whole: Signal<In, Bits<19>>,
    pub is_write: Signal<In, Bit>,
    pub vi: ViSendClient,
    owner: DFF<Bits<4>>,
    grant: Signal<Local, Bits<4>>,
    op_check: Number<4, 7>,
    op_none: Number<4, 15>,
    op_unpush: Number<4, 8>,
    op_push: Number<4, 9>,
    state_connected: Number<2, { State::Connected as u64 }>,
    number_at: DFF<Bits<16>>,
    head: Head,
    registers: Signal<Local, Bit>,
    vi_state: DFF<Bits<2>>,
    domain_at: DFF<Bits<8>>,
    tag_at: DFF<Bits<16>>,
    level: DFF<Bits<3>>,
    peer_at: DFF<Bits<8>>,
    peer_vi_at: DFF<Bits<16>>,
    connection_at: DFF<Bits<16>>,
    max_transfer_at: DFF<Bits<20>>,
    allows_at: DFF<Bits<2>>,
    in_progress_at: DFF<Bit>,
    progress_at: DFF<Bits<19>>,
    fragment: DFF<Bits<8>>,
    awaiting_at: DFF<Bit>,
    acked_at: DFF<Bit>,
    reading_at: DFF<Bit>,
    answer_at: DFF<Bit>,
    control_pending_at: DFF<Bits<3>>,
    refuse_reason_at: DFF<Bits<8>>,
    first_control_pending: Signal<Local, Bits<3>>,
    frames_now: Signal<Local, Bits<7>>,
    next_frame: Signal<Local, Bits<7>>,
    ready: Signal<Local, Bit>,
    level_unreliable: Number<3, { Reliability::Unreliable as u64 }>,
    level_reception: Number<3, { Reliability::Reception as u64 }>,
}

impl Logic for Port {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, owner, number_at, vi_state, domain_at, tag_at, level, peer_at);
        dff_setup!(self, clock, peer_vi_at, connection_at, max_transfer_at, allows_at, fragment);
        dff_setup!(self, clock, in_progress_at, progress_at, awaiting_at, acked_at, reading_at);
        dff_setup!(self, clock, answer_at, control_pending_at, refuse_reason_at);
        clock!(self, clock, head);
        self.vi.work_ready.next = self.take.val();
        self.vi.acked_ready.next = self.take_acked.val();
        self.is_connected.next = self.vi.ctx_state.val() == self.state_connected.val();
        self.grant.next = self.owner.q.val();
        if self.owner.q.val() == 0 {
            if self.retire_valid.val() {
                self.grant.next = 1.into();
            } else if self.commit_valid.val() {
                self.grant.next = 2.into();
            } else if self.push_valid.val() {
                self.grant.next = 8.into();
            } else if self.fetch_valid.val() {
                self.grant.next = 4.into();
            }
        }
        self.owner.d.next = self.grant.val();
        if self.vi.done.val() {
            self.owner.d.next = 0.into();
        }
        self.retire_done.next = self.vi.done.val() & self.owner.q.val().get_bit(0);
        self.commit_done.next = self.vi.done.val() & self.owner.q.val().get_bit(1);
        self.push_done.next = self.vi.done.val() & self.owner.q.val().get_bit(3);
        self.vi.push_ready.next = self.push_ready.val();
        self.vi.push_open.next = self.push_open.val();
        self.vi.holding.next = self.holding.val();
        self.vi.holding_vi.next = self.number_at.q.val();
        self.fetch_done.next = self.vi.done.val() & self.owner.q.val().get_bit(2);

        self.vi.valid.next = self.grant.val() != 0;
        self.vi.op.next = bit_cast::<4, 3>(self.fetch_op.val());
        self.vi.vi.next = self.number_at.q.val();
        self.vi.in_progress.next = self.in_progress_arg.val();
        if self.grant.val().get_bit(0) {
            self.vi.op.next = bit_cast::<4, 3>(self.retire_op.val());
            self.vi.vi.next = self.retire_vi.val();
        } else if self.grant.val().get_bit(1) {
            self.vi.op.next = self.op_none.val();
            if self.commit_go.val() {
                self.vi.op.next = self.op_check.val();
            }
            self.vi.vi.next = self.commit_vi.val();
        } else if self.grant.val().get_bit(3) {
            self.vi.op.next = self.op_none.val();
            if self.push_go.val() {
                self.vi.op.next = self.op_push.val();
            } else if self.push_back.val() {
                self.vi.op.next = self.op_unpush.val();
            }
            self.vi.vi.next = self.push_vi.val();
        }
        if self.grant.val().get_bit(1) {
            self.vi.in_progress.next = self.commit_counts.val();
        }
        self.frames_now.next = self.progress_at.q.val().get_bits::<7>(12);
        self.next_frame.next = self.frames_now.val() + 1;
        self.vi.offset.next = (bit_cast::<19, 7>(self.next_frame.val()) << 12)
            | bit_cast::<19, 12>(self.whole.val().get_bits::<12>(0));
        if self.awaits.val() | self.reading_arg.val() {
            self.vi.offset.next = self.whole.val();
        }
        self.vi.fragment.next = bit_cast::<8, 7>(self.whole.val().get_bits::<7>(12))
            | (bit_cast::<8, 1>(self.is_write.val().into()) << 7);
        self.vi.next_valid.next = self.next_valid.val();
        self.vi.next_region.next = self.next_region.val();
        self.vi.next_offset.next = self.next_offset.val();
        if self.grant.val().get_bit(3) {
            self.vi.offset.next = bit_cast::<19, 13>(self.push_length.val());
            self.vi.next_region.next = self.push_token.val().get_bits::<16>(0);
            self.vi.next_offset.next = self.push_token.val().get_bits::<26>(16);
            self.vi.fragment.next = bit_cast::<8, 5>(self.push_token.val().get_bits::<5>(42));
        }
        self.vi.reason.next = self.reason.val();
        self.vi.status.next = self.stop_status.val();
        self.vi.reading.next = self.reading_arg.val();
        self.vi.answered.next = self.answered_arg.val();
        self.vi.queue.next = self.retire_recv.val();
        self.vi.refuse.next = true;
        self.vi.control_pending.next = self.control_pending_arg.val();

        // Context.
        self.ready.next = (self.vi.ctx_count.val() != 0)
            & (!self.vi.ctx_awaiting.val())
            & (!self.vi.ctx_reading.val())
            & (!self.vi.ctx_answer.val());
        self.due.next = self.ready.val()
            & (self.vi.ctx_state.val() == self.state_connected.val())
            & (self.vi.ctx_control_pending.val() == 0);
        if self.finishing.val() {
            self.due.next = self.vi.ctx_awaiting.val() & self.vi.ctx_acked.val();
        }
        self.head.reset.next = self.reset.val();
        self.head.got.next = self.got.val();
        self.head.ctx_region.next = self.vi.ctx_region.val();
        self.head.ctx_offset.next = self.vi.ctx_offset.val();
        self.head.ctx_segments.next = self.vi.ctx_segments.val();
        self.head.ctx_count.next = self.vi.ctx_count.val();
        self.head.posting.next = self.vi.posting.val();
        self.head.token.next = self.vi.push_token.val();
        self.head.resting.next = self.resting.val();
        self.head.work_fresh.next = self.vi.work_fresh.val();
        self.fresh.next = self.head.fresh.val();
        self.head.direct.next = self.direct.val();
        self.head.number.next = self.number_at.q.val();
        self.head.new_number.next = self.new_number.val();
        self.same_vi.next = self.head.same_vi.val();
        self.same.next = self.head.same.val();
        self.ctx_region.next = self.head.region_now.val();
        self.ctx_offset.next = self.head.offset_now.val();
        self.head_region.next = self.head.region.val();
        self.head_offset.next = self.head.offset.val();
        self.hint.next = self.head.hint.val();
        self.some.next = self.head.some.val();
        self.covered.next = self.head.covered.val();

        self.ctx_awaiting.next = self.vi.ctx_awaiting.val();
        self.ctx_message.next = self.vi.ctx_message.val();
        self.need_next.next = self.vi.need_next.val();
        self.work_valid.next = self.vi.work_valid.val();
        self.work_vi.next = self.vi.work_vi.val();
        self.acked_valid.next = self.vi.acked_valid.val();
        self.acked_vi.next = self.vi.acked_vi.val();
        self.acked_left.next = self.vi.acked_left.val();

        self.number.next = self.number_at.q.val();
        self.connected.next = self.vi_state.q.val() == self.state_connected.val();
        self.domain.next = self.domain_at.q.val();
        self.tag.next = self.tag_at.q.val();
        self.unreliable.next = self.level.q.val() == self.level_unreliable.val();
        self.reception.next = self.level.q.val() == self.level_reception.val();
        self.peer.next = self.peer_at.q.val();
        self.peer_vi.next = self.peer_vi_at.q.val();
        self.connection.next = self.connection_at.q.val();
        self.max_transfer.next = self.max_transfer_at.q.val();
        self.allows.next = self.allows_at.q.val();
        self.was_write.next = self.fragment.q.val().get_bit(7);
        self.in_progress.next = self.in_progress_at.q.val();
        self.frames.next = self.frames_now.val();
        self.progress.next = bit_cast::<19, 7>(self.frames_now.val()) << 12;
        self.total.next = bit_cast::<19, 12>(self.progress_at.q.val().get_bits::<12>(0))
            | (bit_cast::<19, 7>(self.fragment.q.val().get_bits::<7>(0)) << 12);
        self.awaited.next = self.progress_at.q.val();
        self.awaiting.next = self.awaiting_at.q.val();
        self.acked.next = self.acked_at.q.val();
        self.reading.next = self.reading_at.q.val();
        self.answer.next = self.answer_at.q.val();
        self.refuse_reason.next = self.refuse_reason_at.q.val();
        self.first_control_pending.next = 0.into();
        if self.control_pending_at.q.val().get_bit(0) {
            self.first_control_pending.next = 1.into();
        } else if self.control_pending_at.q.val().get_bit(1) {
            self.first_control_pending.next = 2.into();
        } else if self.control_pending_at.q.val().get_bit(2) {
            self.first_control_pending.next = 4.into();
        }
        self.control_pending.next = self.first_control_pending.val();

        if self.load.val() {
            self.number_at.d.next = self.new_number.val();
        }
        // Two doorbells are looked at some cycles apart: this one does not meet the VI of another.
        self.registers.next = self.got.val()
            | (self.vi.posting.val() & self.resting.val() & (!self.vi.work_fresh.val()));
        if self.registers.val() {
            self.vi_state.d.next = self.vi.ctx_state.val();
            self.domain_at.d.next = self.vi.ctx_domain.val();
            self.tag_at.d.next = self.vi.ctx_tag.val();
            self.level.d.next = self.vi.ctx_reliability.val();
            self.peer_at.d.next = self.vi.ctx_peer.val();
            self.peer_vi_at.d.next = self.vi.ctx_peer_vi.val();
            self.connection_at.d.next = self.vi.ctx_connection.val();
            self.max_transfer_at.d.next = self.vi.ctx_max_transfer.val();
            self.allows_at.d.next = self.vi.ctx_allows.val();
            self.in_progress_at.d.next = self.vi.ctx_in_progress.val();
            self.progress_at.d.next = self.vi.ctx_progress.val();
            self.fragment.d.next = self.vi.ctx_fragment.val();
            self.awaiting_at.d.next = self.vi.ctx_awaiting.val();
            self.acked_at.d.next = self.vi.ctx_acked.val();
            self.reading_at.d.next = self.vi.ctx_reading.val();
            self.answer_at.d.next = self.vi.ctx_answer.val();
            self.control_pending_at.d.next = self.vi.ctx_control_pending.val();
            self.refuse_reason_at.d.next = self.vi.ctx_refuse_reason.val();
        }
        if self.reset.val() {
            self.owner.d.next = 0.into();
        }
    }
}
