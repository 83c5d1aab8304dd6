//! Receive engine: takes frames from staging, oldest first (contract 5, 6.1, 7.8, 8).
//!
//! ```text
//! staging --> +------+ <--> vi
//!  events <-- | Recv | ---> write (payload, status)
//!   fence --> |      | <--> desc_read, desc_tpt
//!             +------+
//! ```
//! ```text
//! Idle -> Kind -> Get -> Match -> Choose -> [Resolve ->] Check -> Place -> [Scatter ->] Placed
//!   -> Save (message goes on) or Retire (last frame) -> Release -> Idle
//!   ViAck: Choose -> Acked -> Release;  ViRefuse, Fin: Choose -> Fail -> Retire -> Release
//!   Message: Kind -> Message -> [Refuse ->] Release
//!   error: Fail -> Retire -> Release;   dropped: Gap -> [Save ->] Release
//! ```
//! A frame is released only when its effect is complete; nothing here waits for an event queue or
//! for the link (nic.md 2).

mod judge;
mod port;
mod scatter;
mod state;
pub use judge::Judge;
pub use port::Port;
pub use scatter::Scatter;
pub use state::RecvState;

use crate::desc::{Cause, Work};
use crate::ifs::{
    EventClient, FenceServer, ReadClient, StagingClient, TptClient, ViRecvClient, WriteClient,
};
use crate::leaf::Number;
use nic_regs::counter::Counter;
use nic_regs::event::Kind;
use nic_regs::frame::{MESSAGE_BYTES, Type};
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
    // The descriptor that the descriptor engine still holds, and whether it is the frame's.
    held: DFF<Bit>,
    held_vi: DFF<Bits<16>>,
    held_region: DFF<Bits<16>>,
    held_offset: DFF<Bits<26>>,
    hit: DFF<Bit>,
    // How the frame ends; `broken`: it violates the rules of its message.
    broken: DFF<Bit>,
    partial: DFF<Bit>,
    too_long: DFF<Bit>,
    in_progress: DFF<Bit>,
    cause: DFF<Bits<4>>,
    steps: DFF<Bits<5>>,
    status_length: DFF<Bits<20>>,
    // Pulses to the parts, one cycle after the decision.
    desc_start: DFF<Bit>,
    scatter_start: DFF<Bit>,
    finish_start: DFF<Bit>,
    port: Port,
    judge: Judge,
    work: Work,
    scatter: Scatter,
    // The header's fields.
    kind: Signal<Local, Bits<8>>,
    length: Signal<Local, Bits<13>>,
    source: Signal<Local, Bits<8>>,
    dst_vi: Signal<Local, Bits<16>>,
    word: Signal<Local, Bits<32>>,
    first: Signal<Local, Bit>,
    last: Signal<Local, Bit>,
    immediate: Signal<Local, Bit>,
    wants_ack: Signal<Local, Bit>,
    kind_data: Number<8, { Type::Data as u64 }>,
    kind_refuse: Number<8, { Type::ViRefuse as u64 }>,
    kind_message: Number<8, { Type::Message as u64 }>,
    event_message: Number<32, { Kind::Message as u64 }>,
    message_bytes: Number<13, { MESSAGE_BYTES as u64 }>,
    cause_length: Number<4, { Cause::Length as u64 }>,
    steps_complete: Number<5, 0b01101>,
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
        dff_setup!(self, clock, state, pausing, counts_out, sampled, held, held_vi, held_region);
        dff_setup!(self, clock, held_offset, hit, broken, partial, too_long, in_progress, cause);
        dff_setup!(self, clock, steps, status_length, desc_start, scatter_start, finish_start);
        clock!(self, clock, port, work, scatter);
        self.work.reset.next = self.reset.val();
        self.scatter.reset.next = self.reset.val();
        ReadClient::link(&mut self.desc_read, &mut self.work.read);
        TptClient::link(&mut self.desc_tpt, &mut self.work.tpt);
        ViRecvClient::link(&mut self.vi, &mut self.port.vi);

        // The header, which staging holds stable.
        self.kind.next = self.staging.header0.val().get_bits::<8>(8);
        self.length.next = self.staging.header0.val().get_bits::<13>(16);
        self.source.next = self.staging.header0.val().get_bits::<8>(32);
        self.dst_vi.next = self.staging.header1.val().get_bits::<16>(0);
        self.first.next = self.staging.header1.val().get_bit(48);
        self.last.next = self.staging.header1.val().get_bit(49);
        self.immediate.next =
            self.staging.header1.val().get_bit(49) & self.staging.header1.val().get_bit(50);
        self.wants_ack.next = self.staging.header1.val().get_bit(52);
        self.word.next = self.staging.header2.val().get_bits::<32>(32);

        // Counters, stamps, fence.
        self.counts.next = self.counts_out.q.val();
        self.counts_out.d.next = 0.into();
        if self.work.fetched.val() {
            self.counts_out.d.next = self.count_fetch.val();
        }
        self.sampled.d.next = self.sample_armed.val() & (self.sample_vi.val() == self.dst_vi.val());
        self.stamp_matched.next = (self.state.q.val() == RecvState::Place) & self.sampled.q.val();
        self.stamp_data_written.next =
            (self.state.q.val() == RecvState::Placed) & self.last.val() & self.sampled.q.val();
        self.stamp_status_written.next = self.work.written.val() & self.sampled.q.val();
        self.pausing.d.next = (self.state.q.val() == RecvState::Idle) & self.fence.pause.val();
        self.fence.paused.next = self.pausing.q.val();

        // The VI table.
        self.port.header0.next = self.staging.header0.val();
        self.port.header1.next = self.staging.header1.val();
        self.port.header2.next = self.staging.header2.val();
        self.port.get.next = self.state.q.val() == RecvState::Get;
        self.port.save.next = self.state.q.val() == RecvState::Save;
        self.port.acked.next = self.state.q.val() == RecvState::Acked;
        self.port.retire_valid.next = self.work.vi_valid.val();
        self.port.retire_op.next = self.work.vi_op.val();
        self.port.in_progress.next = self.in_progress.q.val();
        self.port.next_valid.next = self.work.next_valid.val();
        self.port.next_region.next = self.work.next_region.val();
        self.port.next_offset.next = self.work.next_offset.val();
        self.port.owe_ack.next = self.wants_ack.val() & (self.cause.q.val() == 0);
        self.port.reason.next = self.work.reason.val();
        self.port.stop_status.next = self.work.stop_status.val();
        self.port.is_data.next = self.kind.val() == self.kind_data.val();
        self.port.is_refuse.next = self.kind.val() == self.kind_refuse.val();

        // Descriptor, payload, status.
        self.work.resolve.next = self.desc_start.q.val();
        self.work.tag.next = self.port.tag.val();
        self.work.domain.next = self.port.domain.val();
        self.work.region.next = self.port.region.val();
        self.work.offset.next = self.port.offset.val();
        self.work.hint.next = self.port.hint.val();
        self.work.covers_next.next = self.port.count.val() > self.one.val();
        self.work.segment.next = self.scatter.segment.val();
        self.desc_start.d.next = false;
        self.scatter.start.next = self.scatter_start.q.val();
        self.scatter.skip.next = self.port.placed.val();
        self.scatter.length.next = self.length.val();
        self.scatter.segment_bus.next = self.work.segment_bus.val();
        self.scatter.segment_length.next = self.work.segment_length.val();
        self.scatter.data.next = self.staging.data.val();
        self.scatter_start.d.next = false;
        self.work.unreliable.next = self.port.unreliable.val();
        self.work.finish.next = self.finish_start.q.val();
        self.work.fail.next = self.state.q.val() == RecvState::Fail;
        self.work.steps.next = self.steps.q.val();
        self.work.cause.next = self.cause.q.val();
        self.work.length.next = self.status_length.q.val();
        self.work.vi_done.next = self.port.done.val();
        self.work.vi_need_next.next = self.port.need_next.val();
        self.finish_start.d.next = false;
        self.work.reach.next = false;
        self.work.receive.next = true;
        self.work.partial.next = self.partial.q.val();
        self.work.take_immediate.next = self.immediate.val();
        self.work.taken_immediate.next = self.word.val();

        // Writes: the payload's while scattering, else the status.
        self.write.valid.next = self.work.write.valid.val();
        self.write.address.next = self.work.write.address.val();
        self.write.length.next = self.work.write.length.val();
        self.write.data.next = self.work.write.data.val();
        self.write.last.next = self.work.write.last.val();
        self.work.write.ready.next = self.write.ready.val();
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

        // What the frame does.
        self.judge.kind.next = self.kind.val();
        self.judge.first.next = self.first.val();
        self.judge.opening.next = self.staging.header2.val().get_bits::<8>(0) == 0;
        self.judge.ours.next = self.port.ours.val();
        self.judge.level_fits.next = self.port.level_fits.val();
        self.judge.unreliable.next = self.port.unreliable.val();
        self.judge.reception.next = self.port.reception.val();
        self.judge.busy.next = self.port.busy.val();
        self.judge.continues.next = self.port.continues.val();
        self.judge.misfit.next = self.port.misfit.val();
        self.judge.inconsistent.next = self.port.inconsistent.val();
        self.judge.empty.next = self.port.count.val() == 0;

        match self.state.q.val() {
            RecvState::Idle => {
                if self.fence.pause.val() {
                    self.held.d.next = false;
                } else if self.staging.valid.val() {
                    self.state.d.next = RecvState::Kind;
                }
            }
            RecvState::Kind => {
                self.in_progress.d.next = false;
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
                if self.port.done.val() {
                    self.state.d.next = RecvState::Match;
                }
            }
            RecvState::Match => {
                self.hit.d.next = self.held.q.val()
                    & (self.held_vi.q.val() == self.dst_vi.val())
                    & (self.held_region.q.val() == self.port.region.val())
                    & (self.held_offset.q.val() == self.port.offset.val());
                self.state.d.next = RecvState::Choose;
            }
            RecvState::Choose => {
                self.cause.d.next = self.judge.cause.val();
                self.broken.d.next = self.judge.breaks.val();
                self.partial.d.next =
                    (!self.first.val()) | (self.port.busy.val() & (!self.port.unreliable.val()));
                self.state.d.next = RecvState::Release;
                if self.judge.unmatched.val() {
                    self.counts_out.d.next = self.count_unmatched.val();
                } else if self.judge.dropped.val() {
                    self.counts_out.d.next = self.count_empty.val();
                } else if self.judge.acked.val() {
                    self.state.d.next = RecvState::Acked;
                } else if self.judge.gap.val() {
                    self.state.d.next = RecvState::Gap;
                } else if self.judge.stops.val() | (self.judge.breaks.val() & self.hit.q.val()) {
                    self.state.d.next = RecvState::Fail;
                } else if self.hit.q.val() & (!self.first.val()) & self.judge.takes.val() {
                    self.state.d.next = RecvState::Check;
                } else if self.judge.takes.val() | self.judge.breaks.val() {
                    self.desc_start.d.next = true;
                    self.state.d.next = RecvState::Resolve;
                }
            }
            RecvState::Resolve => {
                self.held.d.next = false;
                self.held_vi.d.next = self.dst_vi.val();
                self.held_region.d.next = self.port.region.val();
                self.held_offset.d.next = self.port.offset.val();
                if self.work.resolved.val() {
                    self.state.d.next = RecvState::Fail;
                    if self.work.outcome.val() == 0 {
                        self.held.d.next = true;
                        if !self.broken.q.val() {
                            self.state.d.next = RecvState::Check;
                        }
                    } else if (!self.broken.q.val()) | self.work.unreached.val() {
                        self.cause.d.next = bit_cast::<4, 3>(self.work.outcome.val());
                    }
                }
            }
            RecvState::Check => {
                self.too_long.d.next =
                    self.port.whole.val() > bit_cast::<21, 20>(self.work.total.val());
                self.status_length.d.next = self.port.whole.val().get_bits::<20>(0);
                self.state.d.next = RecvState::Place;
            }
            RecvState::Place => {
                self.state.d.next = RecvState::Placed;
                if self.too_long.q.val() {
                    self.cause.d.next = self.cause_length.val();
                    self.state.d.next = RecvState::Fail;
                } else if self.length.val() != 0 {
                    self.scatter_start.d.next = true;
                    self.state.d.next = RecvState::Scatter;
                }
            }
            RecvState::Scatter => {
                if self.scatter.done.val() {
                    self.state.d.next = RecvState::Placed;
                }
            }
            RecvState::Placed => {
                self.in_progress.d.next = true;
                self.state.d.next = RecvState::Save;
                if self.last.val() {
                    self.steps.d.next = self.steps_complete.val();
                    self.finish_start.d.next = true;
                    self.state.d.next = RecvState::Retire;
                }
            }
            RecvState::Save => {
                if self.port.done.val() {
                    self.state.d.next = RecvState::Release;
                }
            }
            RecvState::Acked => {
                if self.port.done.val() {
                    if self.port.need_next.val() {
                        self.counts_out.d.next = self.count_unmatched.val();
                    }
                    self.state.d.next = RecvState::Release;
                }
            }
            RecvState::Fail => {
                self.state.d.next = RecvState::Retire;
            }
            RecvState::Retire => {
                self.held.d.next = false;
                if self.work.retired.val() {
                    self.state.d.next = RecvState::Release;
                }
            }
            RecvState::Gap => {
                self.counts_out.d.next = self.count_gap.val();
                self.state.d.next = RecvState::Release;
                if self.port.busy.val() {
                    self.state.d.next = RecvState::Save;
                }
            }
            RecvState::Message => {
                if self.events.done.val() {
                    self.state.d.next = RecvState::Release;
                    if self.events.outcome.val() != 0 {
                        self.counts_out.d.next = self.count_refused.val();
                        self.state.d.next = RecvState::Refuse;
                    }
                }
            }
            RecvState::Refuse => {
                self.state.d.next = RecvState::Release;
            }
            _ => {
                self.state.d.next = RecvState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = RecvState::Idle;
            self.pausing.d.next = false;
            self.held.d.next = false;
            self.desc_start.d.next = false;
            self.scatter_start.d.next = false;
            self.finish_start.d.next = false;
            self.counts_out.d.next = 0.into();
        }
    }
}
