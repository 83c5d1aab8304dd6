//! The send engine's side of the VI table: the VI in hand with its context, and the arguments of
//! the calls.
//!
//! `take`, `get`, `again`, `save`, `sent` are levels (one of the engine's states each), as is a
//! call of the retirer. `get` registers the whole context with `done`; `again` only checks whether
//! the VI goes on where it was (`connected`, `same`).
//!
//! The VI table keeps `offset` and `fragment` of a message in progress without a look at them. All
//! frames but the last are 4,096 bytes, so the frames sent need 7 bits, and the message's total is
//! kept with them, to see whether software changed it:
//! ```text
//! offset    frames sent 18:12 | total 11:0
//! fragment  total 18:12
//! ```

use crate::ifs::ViSendClient;
use crate::leaf::Number;
use nic_regs::vi::{Reliability, State};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Port {
    pub clock: Signal<In, Clock>,
    pub take: Signal<In, Bit>,
    pub get: Signal<In, Bit>,
    pub again: Signal<In, Bit>,
    pub save: Signal<In, Bit>,
    pub sent: Signal<In, Bit>,
    pub retire_valid: Signal<In, Bit>,
    pub retire_op: Signal<In, Bits<3>>,
    /// Pulse: a frame that is not the last was sent.
    pub advance: Signal<In, Bit>,
    /// Length of the message, for `advance` and AWAIT.
    pub whole: Signal<In, Bits<19>>,
    /// POP: the message's last frame goes out (no error).
    pub sends: Signal<In, Bit>,
    pub next_valid: Signal<In, Bit>,
    pub next_region: Signal<In, Bits<16>>,
    pub next_offset: Signal<In, Bits<26>>,
    pub reason: Signal<In, Bits<8>>,
    pub stop_status: Signal<In, Bits<32>>,
    pub work: Signal<Out, Bit>,
    pub done: Signal<Out, Bit>,
    pub need_next: Signal<Out, Bit>,
    pub number: Signal<Out, Bits<16>>,
    pub connected: Signal<Out, Bit>,
    pub same: Signal<Out, Bit>,
    pub domain: Signal<Out, Bits<8>>,
    pub tag: Signal<Out, Bits<16>>,
    pub unreliable: Signal<Out, Bit>,
    pub reception: Signal<Out, Bit>,
    pub peer: Signal<Out, Bits<8>>,
    pub peer_vi: Signal<Out, Bits<16>>,
    pub connection: Signal<Out, Bits<16>>,
    pub max_transfer: Signal<Out, Bits<20>>,
    pub region: Signal<Out, Bits<16>>,
    pub offset: Signal<Out, Bits<26>>,
    pub hint: Signal<Out, Bits<5>>,
    /// The queue holds something; more than one.
    pub some: Signal<Out, Bit>,
    pub several: Signal<Out, Bit>,
    /// Frames of the message were sent, `progress` bytes.
    pub in_progress: Signal<Out, Bit>,
    pub progress: Signal<Out, Bits<19>>,
    /// In progress: the message's total when its first frame was sent.
    pub total: Signal<Out, Bits<19>>,
    /// Awaiting: the message's length.
    pub awaited: Signal<Out, Bits<19>>,
    /// Message and fragment number.
    pub numbers: Signal<Out, Bits<16>>,
    pub awaiting: Signal<Out, Bit>,
    pub acked: Signal<Out, Bit>,
    /// The first owed frame (one-hot; ViAck, ViRefuse, Fin).
    pub owed: Signal<Out, Bits<3>>,
    pub refuse_reason: Signal<Out, Bits<8>>,
    pub vi: ViSendClient,
    number_at: DFF<Bits<16>>,
    vi_state: DFF<Bits<2>>,
    same_at: DFF<Bit>,
    domain_at: DFF<Bits<8>>,
    tag_at: DFF<Bits<16>>,
    level: DFF<Bits<3>>,
    peer_at: DFF<Bits<8>>,
    peer_vi_at: DFF<Bits<16>>,
    connection_at: DFF<Bits<16>>,
    max_transfer_at: DFF<Bits<20>>,
    region_at: DFF<Bits<16>>,
    offset_at: DFF<Bits<26>>,
    hint_at: DFF<Bits<5>>,
    some_at: DFF<Bit>,
    several_at: DFF<Bit>,
    in_progress_at: DFF<Bit>,
    progress_at: DFF<Bits<19>>,
    message: DFF<Bits<8>>,
    fragment: DFF<Bits<8>>,
    awaiting_at: DFF<Bit>,
    acked_at: DFF<Bit>,
    owed_at: DFF<Bits<3>>,
    refuse_reason_at: DFF<Bits<8>>,
    first_owed: Signal<Local, Bits<3>>,
    frames: Signal<Local, Bits<7>>,
    next_frame: Signal<Local, Bits<7>>,
    op_save: Number<3, 1>,
    op_await: Number<3, 3>,
    op_sent: Number<3, 6>,
    one: Number<16, 1>,
    level_unreliable: Number<3, { Reliability::Unreliable as u64 }>,
    level_reception: Number<3, { Reliability::Reception as u64 }>,
    state_connected: Number<2, { State::Connected as u64 }>,
}

impl Logic for Port {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, number_at, vi_state, same_at, domain_at, tag_at, level, peer_at);
        dff_setup!(self, clock, peer_vi_at, connection_at, max_transfer_at, region_at, offset_at);
        dff_setup!(self, clock, hint_at, some_at, several_at, in_progress_at, progress_at, message);
        dff_setup!(self, clock, fragment, awaiting_at, acked_at, owed_at, refuse_reason_at);
        self.work.next = self.vi.work_valid.val();
        self.done.next = self.vi.done.val();
        self.need_next.next = self.vi.need_next.val();
        self.number.next = self.number_at.q.val();
        self.connected.next = self.vi_state.q.val() == self.state_connected.val();
        self.same.next = self.same_at.q.val();
        self.domain.next = self.domain_at.q.val();
        self.tag.next = self.tag_at.q.val();
        self.unreliable.next = self.level.q.val() == self.level_unreliable.val();
        self.reception.next = self.level.q.val() == self.level_reception.val();
        self.peer.next = self.peer_at.q.val();
        self.peer_vi.next = self.peer_vi_at.q.val();
        self.connection.next = self.connection_at.q.val();
        self.max_transfer.next = self.max_transfer_at.q.val();
        self.region.next = self.region_at.q.val();
        self.offset.next = self.offset_at.q.val();
        self.hint.next = self.hint_at.q.val();
        self.some.next = self.some_at.q.val();
        self.several.next = self.several_at.q.val();
        self.in_progress.next = self.in_progress_at.q.val();
        self.frames.next = self.progress_at.q.val().get_bits::<7>(12);
        self.progress.next = bit_cast::<19, 7>(self.frames.val()) << 12;
        self.total.next = bit_cast::<19, 12>(self.progress_at.q.val().get_bits::<12>(0))
            | (bit_cast::<19, 7>(self.fragment.q.val().get_bits::<7>(0)) << 12);
        self.awaited.next = self.progress_at.q.val();
        self.numbers.next =
            (bit_cast::<16, 8>(self.message.q.val()) << 8) | bit_cast::<16, 7>(self.frames.val());
        self.awaiting.next = self.awaiting_at.q.val();
        self.acked.next = self.acked_at.q.val();
        self.refuse_reason.next = self.refuse_reason_at.q.val();
        self.first_owed.next = 0.into();
        if self.owed_at.q.val().get_bit(0) {
            self.first_owed.next = 1.into();
        } else if self.owed_at.q.val().get_bit(1) {
            self.first_owed.next = 2.into();
        } else if self.owed_at.q.val().get_bit(2) {
            self.first_owed.next = 4.into();
        }
        self.owed.next = self.first_owed.val();

        self.next_frame.next = self.frames.val() + 1;

        // Context.
        if self.take.val() {
            self.number_at.d.next = self.vi.work_vi.val();
        }
        if (self.get.val() | self.again.val()) & self.vi.done.val() {
            self.vi_state.d.next = self.vi.ctx_state.val();
            self.same_at.d.next = (self.vi.ctx_owed.val() == 0)
                & (self.vi.ctx_region.val() == self.region_at.q.val())
                & (self.vi.ctx_offset.val() == self.offset_at.q.val());
        }
        if self.get.val() & self.vi.done.val() {
            self.domain_at.d.next = self.vi.ctx_domain.val();
            self.tag_at.d.next = self.vi.ctx_tag.val();
            self.level.d.next = self.vi.ctx_reliability.val();
            self.peer_at.d.next = self.vi.ctx_peer.val();
            self.peer_vi_at.d.next = self.vi.ctx_peer_vi.val();
            self.connection_at.d.next = self.vi.ctx_connection.val();
            self.max_transfer_at.d.next = self.vi.ctx_max_transfer.val();
            self.region_at.d.next = self.vi.ctx_region.val();
            self.offset_at.d.next = self.vi.ctx_offset.val();
            self.hint_at.d.next = self.vi.ctx_segments.val();
            self.some_at.d.next = self.vi.ctx_count.val() != 0;
            self.several_at.d.next = self.vi.ctx_count.val() > self.one.val();
            self.in_progress_at.d.next = self.vi.ctx_in_progress.val();
            self.progress_at.d.next = self.vi.ctx_progress.val();
            self.message.d.next = self.vi.ctx_message.val();
            self.fragment.d.next = self.vi.ctx_fragment.val();
            self.awaiting_at.d.next = self.vi.ctx_awaiting.val();
            self.acked_at.d.next = self.vi.ctx_acked.val();
            self.owed_at.d.next = self.vi.ctx_owed.val();
            self.refuse_reason_at.d.next = self.vi.ctx_refuse_reason.val();
        }
        if self.advance.val() {
            self.in_progress_at.d.next = true;
            self.progress_at.d.next = (bit_cast::<19, 7>(self.next_frame.val()) << 12)
                | bit_cast::<19, 12>(self.whole.val().get_bits::<12>(0));
            self.fragment.d.next = bit_cast::<8, 7>(self.whole.val().get_bits::<7>(12));
        }

        // Calls.
        self.vi.work_ready.next = self.take.val();
        self.vi.valid.next = self.get.val()
            | self.again.val()
            | self.save.val()
            | self.sent.val()
            | self.retire_valid.val();
        self.vi.op.next = self.retire_op.val();
        if self.get.val() | self.again.val() {
            self.vi.op.next = 0.into();
        } else if self.save.val() {
            self.vi.op.next = self.op_save.val();
        } else if self.sent.val() {
            self.vi.op.next = self.op_sent.val();
        }
        self.vi.vi.next = self.number_at.q.val();
        // POP: whether a frame of the message was sent, for the message number.
        self.vi.in_progress.next =
            self.in_progress_at.q.val() | (self.retire_valid.val() & self.sends.val());
        self.vi.offset.next = self.progress_at.q.val();
        if self.retire_valid.val() & (self.retire_op.val() == self.op_await.val()) {
            self.vi.offset.next = self.whole.val();
        }
        self.vi.fragment.next = self.fragment.q.val();
        self.vi.next_valid.next = self.next_valid.val();
        self.vi.next_region.next = self.next_region.val();
        self.vi.next_offset.next = self.next_offset.val();
        self.vi.reason.next = self.reason.val();
        self.vi.status.next = self.stop_status.val();
        self.vi.queue.next = false;
        self.vi.refuse.next = true;
        self.vi.owed.next = self.first_owed.val();
    }
}
