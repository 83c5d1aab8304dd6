//! Receive engine: takes frames from staging, oldest first (contract 5, 6.1, 7.8, 8).
//!
//! ```text
//! staging --> +------+ <--> vi
//!  events <-- | Recv | ---> write (payload, status)
//!   fence --> |      | <--> desc_read, desc_tpt
//!             +------+
//! ```
//! ```text
//! Idle -> Kind -> Get -> Match -> Choose -> Rules -> [Resolve ->] Check -> Place -> [Scatter ->] Placed -> Save | Retire -> Release
//!   ViAck: Choose -> Acked -> Release;  ViRefuse, Fin: Choose -> Fail -> Retire -> Release;  Message: Kind -> Message -> [Refuse ->] Release
//!   error: Fail -> Retire -> Release;   dropped: Gap -> [Save ->] Release
//! ```
//! A frame is released only when its effect is complete; nothing here waits for an event queue or for the link (nic.md 2).

mod scatter;
mod state;
pub use scatter::Scatter;
pub use state::RecvState;

use crate::desc::{Cause, Desc, Retire, Verdict};
use crate::ifs::{
    EventClient, FenceServer, ReadClient, StagingClient, TptClient, ViRecvClient, WriteClient,
};
use crate::leaf::Number;
use nic_regs::counter::Counter;
use nic_regs::event::Kind;
use nic_regs::frame::{MESSAGE_BYTES, Type};
use nic_regs::limits::MAX_TRANSFER_BYTES;
use nic_regs::vi::{Reliability, State};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Recv {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub sample_vi: Signal<In, Bits<16>>,
    pub sample_armed: Signal<In, Bit>,
    pub stamp_matched: Signal<Out, Bit>,
    pub stamp_data_written: Signal<Out, Bit>,
    pub stamp_status_written: Signal<Out, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    pub staging: StagingClient,
    pub vi: ViRecvClient,
    pub write: WriteClient,
    pub events: EventClient,
    pub fence: FenceServer,
    pub desc_read: ReadClient,
    pub desc_tpt: TptClient,
    state: DFF<RecvState>,
    pausing: DFF<Bit>,
    counts_out: DFF<Bits<64>>,
    sampled: DFF<Bit>,
    // The VI of the frame in hand.
    vi_state: DFF<Bits<2>>,
    domain: DFF<Bits<8>>,
    tag: DFF<Bits<16>>,
    level: DFF<Bits<3>>,
    peer: DFF<Bits<8>>,
    peer_vi: DFF<Bits<16>>,
    connection: DFF<Bits<16>>,
    region: DFF<Bits<16>>,
    offset: DFF<Bits<26>>,
    hint: DFF<Bits<5>>,
    count: DFF<Bits<16>>,
    in_progress: DFF<Bit>,
    progress: DFF<Bits<19>>,
    total: DFF<Bits<19>>,
    message: DFF<Bits<8>>,
    fragment: DFF<Bits<8>>,
    // Comparisons.
    ours: DFF<Bit>,
    level_fits: DFF<Bit>,
    continues: DFF<Bit>,
    exceeds: DFF<Bit>,
    short: DFF<Bit>,
    hit: DFF<Bit>,
    too_long: DFF<Bit>,
    inconsistent: DFF<Bit>,
    // The message: bytes placed before and after this frame, its length as far as it is known; bit 20: more than any total.
    placed: DFF<Bits<19>>,
    reached: DFF<Bits<20>>,
    whole: DFF<Bits<21>>,
    broken: DFF<Bit>,
    partial: DFF<Bit>,
    // The descriptor that the descriptor engine still holds.
    held: DFF<Bit>,
    held_vi: DFF<Bits<16>>,
    // How the frame ends.
    cause: DFF<Bits<4>>,
    steps: DFF<Bits<5>>,
    status_length: DFF<Bits<20>>,
    save_progress: DFF<Bit>,
    desc_start: DFF<Bit>,
    scatter_start: DFF<Bit>,
    retire_start: DFF<Bit>,
    desc: Desc,
    scatter: Scatter,
    verdict: Verdict,
    retire: Retire,
    // The header's fields.
    kind: Signal<Local, Bits<8>>,
    length: Signal<Local, Bits<13>>,
    source: Signal<Local, Bits<8>>,
    dst_vi: Signal<Local, Bits<16>>,
    src_vi: Signal<Local, Bits<16>>,
    frame_connection: Signal<Local, Bits<16>>,
    first: Signal<Local, Bit>,
    last: Signal<Local, Bit>,
    immediate: Signal<Local, Bit>,
    sequenced: Signal<Local, Bit>,
    wants_ack: Signal<Local, Bit>,
    frame_fragment: Signal<Local, Bits<8>>,
    frame_message: Signal<Local, Bits<8>>,
    word: Signal<Local, Bits<32>>,
    unreliable: Signal<Local, Bit>,
    reception: Signal<Local, Bit>,
    sum: Signal<Local, Bits<20>>,
    level_unreliable: Number<3, { Reliability::Unreliable as u64 }>,
    level_reception: Number<3, { Reliability::Reception as u64 }>,
    state_connected: Number<2, { State::Connected as u64 }>,
    kind_data: Number<8, { Type::Data as u64 }>,
    kind_ack: Number<8, { Type::ViAck as u64 }>,
    kind_refuse: Number<8, { Type::ViRefuse as u64 }>,
    kind_fin: Number<8, { Type::Fin as u64 }>,
    kind_message: Number<8, { Type::Message as u64 }>,
    event_message: Number<32, { Kind::Message as u64 }>,
    message_bytes: Number<13, { MESSAGE_BYTES as u64 }>,
    longest: Number<32, { MAX_TRANSFER_BYTES as u64 }>,
    over: Number<21, { 1 << 20 }>,
    cause_length: Number<4, { Cause::Length as u64 }>,
    cause_host_read: Number<4, { Cause::HostRead as u64 }>,
    cause_empty: Number<4, { Cause::ReceiveEmpty as u64 }>,
    cause_refused: Number<4, { Cause::Refused as u64 }>,
    cause_refused_reception: Number<4, { Cause::RefusedReception as u64 }>,
    cause_disconnected: Number<4, { Cause::Disconnected as u64 }>,
    outcome_reached: Number<3, 3>,
    steps_complete: Number<5, 0b01101>,
    steps_complete_stop: Number<5, 0b11101>,
    steps_stop: Number<5, 0b10000>,
    op_save: Number<3, 1>,
    op_acked: Number<3, 6>,
    desc_op_next: Number<2, 2>,
    one: Number<16, 1>,
    count_fetch: Number<64, { 1 << Counter::DescriptorsFetched as u32 }>,
    count_unmatched: Number<64, { 1 << Counter::Unmatched as u32 }>,
    count_empty: Number<64, { 1 << Counter::UnreliableEmpty as u32 }>,
    count_gap: Number<64, { 1 << Counter::UnreliableGap as u32 }>,
    count_refused: Number<64, { 1 << Counter::MessagesRefused as u32 }>,
}

impl Logic for Recv {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, pausing, counts_out, sampled, vi_state, domain, tag, level);
        dff_setup!(self, clock, peer, peer_vi, connection, region, offset, hint, count);
        dff_setup!(self, clock, in_progress, progress, total, message, fragment, ours, level_fits);
        dff_setup!(self, clock, continues, exceeds, short, hit, too_long, inconsistent, placed);
        dff_setup!(self, clock, reached, whole, broken, partial, held, held_vi, cause, steps);
        dff_setup!(self, clock, status_length, save_progress, desc_start, scatter_start);
        dff_setup!(self, clock, retire_start);
        clock!(self, clock, desc, scatter, retire);
        self.desc.reset.next = self.reset.val();
        self.scatter.reset.next = self.reset.val();
        self.retire.reset.next = self.reset.val();
        ReadClient::link(&mut self.desc_read, &mut self.desc.read);
        TptClient::link(&mut self.desc_tpt, &mut self.desc.tpt);

        // The header, which staging holds stable.
        self.kind.next = self.staging.header0.val().get_bits::<8>(8);
        self.length.next = self.staging.header0.val().get_bits::<13>(16);
        self.source.next = self.staging.header0.val().get_bits::<8>(32);
        self.dst_vi.next = self.staging.header1.val().get_bits::<16>(0);
        self.src_vi.next = self.staging.header1.val().get_bits::<16>(16);
        self.frame_connection.next = self.staging.header1.val().get_bits::<16>(32);
        self.first.next = self.staging.header1.val().get_bit(48);
        self.last.next = self.staging.header1.val().get_bit(49);
        self.immediate.next =
            self.staging.header1.val().get_bit(49) & self.staging.header1.val().get_bit(50);
        self.sequenced.next = self.staging.header1.val().get_bit(51);
        self.wants_ack.next = self.staging.header1.val().get_bit(52);
        self.frame_fragment.next = self.staging.header2.val().get_bits::<8>(0);
        self.frame_message.next = self.staging.header2.val().get_bits::<8>(8);
        self.word.next = self.staging.header2.val().get_bits::<32>(32);

        // Counters, stamps, fence.
        self.counts.next = self.counts_out.q.val();
        self.counts_out.d.next = 0.into();
        if self.desc.fetched.val() {
            self.counts_out.d.next = self.count_fetch.val();
        }
        self.sampled.d.next =
            self.sample_armed.val() & (self.sample_vi.val() == self.dst_vi.val());
        self.stamp_matched.next = (self.state.q.val() == RecvState::Place) & self.sampled.q.val();
        self.stamp_data_written.next =
            (self.state.q.val() == RecvState::Placed) & self.last.val() & self.sampled.q.val();
        self.stamp_status_written.next = self.retire.written.val() & self.sampled.q.val();
        self.pausing.d.next = (self.state.q.val() == RecvState::Idle) & self.fence.pause.val();
        self.fence.paused.next = self.pausing.q.val();

        // The parts.
        self.desc.start.next = self.desc_start.q.val() | self.retire.reread.val();
        self.desc.op.next = 0.into();
        if self.retire.reread.val() {
            self.desc.op.next = self.desc_op_next.val();
        }
        self.desc.tag.next = self.tag.q.val();
        self.desc.domain.next = self.domain.q.val();
        self.desc.region.next = self.region.q.val();
        self.desc.offset.next = self.offset.q.val();
        self.desc.hint.next = self.hint.q.val();
        self.desc.covers_next.next = self.count.q.val() > self.one.val();
        self.desc.segment.next = self.scatter.segment.val();
        self.desc_start.d.next = false;
        self.scatter.start.next = self.scatter_start.q.val();
        self.scatter.skip.next = self.placed.q.val();
        self.scatter.length.next = self.length.val();
        self.scatter.segment_bus.next = self.desc.segment_bus.val();
        self.scatter.segment_length.next = self.desc.segment_length.val();
        self.scatter.data.next = self.staging.data.val();
        self.scatter_start.d.next = false;
        self.verdict.cause.next = self.cause.q.val();
        self.verdict.receive.next = true;
        self.verdict.partial.next = self.partial.q.val();
        self.verdict.immediate.next = self.immediate.val();
        self.retire.start.next = self.retire_start.q.val();
        self.retire.steps.next = self.steps.q.val();
        self.retire.bus.next = self.desc.bus.val();
        self.retire.length.next = self.status_length.q.val();
        self.retire.status_word.next = self.verdict.status_word.val();
        self.retire.has_immediate.next = self.immediate.val() & (self.cause.q.val() == 0);
        self.retire.immediate.next = self.word.val();
        self.retire.desc_done.next = self.desc.done.val();
        self.retire.desc_ok.next = self.desc.outcome.val() == 0;
        self.retire.vi_done.next = self.vi.done.val();
        self.retire.vi_need_next.next = self.vi.need_next.val();
        self.retire_start.d.next = false;

        // Writes: payload, or the status when the scatterer is idle.
        self.write.valid.next = self.retire.w_valid.val();
        self.write.address.next = self.retire.w_address.val();
        self.write.length.next = self.retire.w_length.val();
        self.write.data.next = self.retire.w_data.val();
        self.write.last.next = self.retire.w_last.val();
        self.retire.w_ready.next = self.write.ready.val();
        self.scatter.w_ready.next = false;
        if self.state.q.val() == RecvState::Scatter {
            self.write.valid.next = self.scatter.w_valid.val();
            self.write.address.next = self.scatter.w_address.val();
            self.write.length.next = self.scatter.w_length.val();
            self.write.data.next = self.scatter.w_data.val();
            self.write.last.next = self.scatter.w_last.val();
            self.scatter.w_ready.next = self.write.ready.val();
        }

        // Staging and events.
        self.staging.address.next = self.scatter.address.val();
        if self.state.q.val() == RecvState::Message {
            self.staging.address.next = bit_cast::<10, 3>(self.events.message_index.val());
        }
        self.staging.release.next = self.state.q.val() == RecvState::Release;
        self.staging.refused.next = self.state.q.val() == RecvState::Refuse;
        self.events.valid.next = self.state.q.val() == RecvState::Message;
        self.events.queue.next = self.dst_vi.val();
        self.events.word0.next =
            self.event_message.val() | (bit_cast::<32, 8>(self.source.val()) << 16);
        self.events.word1.next = 0.into();
        self.events.word2.next = 0.into();
        self.events.wide.next = true;
        self.events.message_data.next = self.staging.data.val();

        // Calls to the VI table.
        self.vi.valid.next = self.retire.vi_valid.val();
        self.vi.op.next = self.retire.vi_op.val();
        if self.state.q.val() == RecvState::Get {
            self.vi.valid.next = true;
            self.vi.op.next = 0.into();
        } else if self.state.q.val() == RecvState::Save {
            self.vi.valid.next = true;
            self.vi.op.next = self.op_save.val();
        } else if self.state.q.val() == RecvState::Acked {
            self.vi.valid.next = true;
            self.vi.op.next = self.op_acked.val();
        }
        self.vi.vi.next = self.dst_vi.val();
        self.vi.in_progress.next = self.save_progress.q.val();
        self.vi.offset.next = self.reached.q.val().get_bits::<19>(0);
        self.vi.total.next = self.whole.q.val().get_bits::<19>(0);
        self.vi.message.next = self.frame_message.val();
        self.vi.fragment.next = self.frame_fragment.val() + 1;
        self.vi.next_valid.next = self.desc.next_valid.val();
        self.vi.next_region.next = self.desc.next_region.val();
        self.vi.next_offset.next = self.desc.next_offset.val();
        self.vi.owe_ack.next = self.wants_ack.val() & (self.cause.q.val() == 0);
        self.vi.reason.next = self.verdict.reason.val();
        self.vi.detail.next = 0.into();
        self.vi.status.next = self.verdict.stop_status.val();
        self.vi.queue.next = true;
        self.vi.refuse.next = true;
        if self.kind.val() != self.kind_data.val() {
            self.vi.detail.next = self.word.val().get_bits::<8>(0);
            self.vi.queue.next = false;
            self.vi.refuse.next = false;
        }
        if self.kind.val() == self.kind_fin.val() {
            self.vi.detail.next = 0.into();
        }

        self.unreliable.next = self.level.q.val() == self.level_unreliable.val();
        self.reception.next = self.level.q.val() == self.level_reception.val();
        self.sum.next =
            bit_cast::<20, 19>(self.progress.q.val()) + bit_cast::<20, 13>(self.length.val());

        match self.state.q.val() {
            RecvState::Idle => {
                if self.fence.pause.val() {
                    self.held.d.next = false;
                } else if self.staging.valid.val() {
                    self.state.d.next = RecvState::Kind;
                }
            }
            RecvState::Kind => {
                self.cause.d.next = 0.into();
                self.partial.d.next = false;
                self.broken.d.next = false;
                self.save_progress.d.next = false;
                self.state.d.next = RecvState::Get;
                if self.kind.val() == self.kind_message.val() {
                    self.state.d.next = RecvState::Message;
                    if self.length.val() != self.message_bytes.val() {
                        self.counts_out.d.next = self.count_unmatched.val();
                        self.state.d.next = RecvState::Release;
                    }
                }
            }
            RecvState::Get => {
                self.vi_state.d.next = self.vi.ctx_state.val();
                self.domain.d.next = self.vi.ctx_domain.val();
                self.tag.d.next = self.vi.ctx_tag.val();
                self.level.d.next = self.vi.ctx_reliability.val();
                self.peer.d.next = self.vi.ctx_peer.val();
                self.peer_vi.d.next = self.vi.ctx_peer_vi.val();
                self.connection.d.next = self.vi.ctx_connection.val();
                self.region.d.next = self.vi.ctx_region.val();
                self.offset.d.next = self.vi.ctx_offset.val();
                self.hint.d.next = self.vi.ctx_segments.val();
                self.count.d.next = self.vi.ctx_count.val();
                self.in_progress.d.next = self.vi.ctx_in_progress.val();
                self.progress.d.next = self.vi.ctx_progress.val();
                self.total.d.next = self.vi.ctx_total.val();
                self.message.d.next = self.vi.ctx_message.val();
                self.fragment.d.next = self.vi.ctx_fragment.val();
                // Before `region` and `offset` change: is it still the descriptor that is resolved?
                self.hit.d.next = self.held.q.val()
                    & (self.held_vi.q.val() == self.dst_vi.val())
                    & (self.vi.ctx_region.val() == self.region.q.val())
                    & (self.vi.ctx_offset.val() == self.offset.q.val());
                if self.vi.done.val() {
                    self.state.d.next = RecvState::Match;
                }
            }
            _ => {
                self.state.d.next = RecvState::Idle;
            }
        }
    }
}
