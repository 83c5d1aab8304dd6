//! Send engine: takes VIs from the ready ring, one frame at a time, and sends admin's messages
//! (contract 4, 3.4, 6.2, 8, 9.4).
//!
//! ```text
//! work, vi <--> +------+ <--> pool (frames to the channel)
//!  messages --> | Send | <--> read (payload), write (status)
//!     fence --> |      | <--> desc_read, desc_tpt
//!               +------+
//! ```
//! ```text
//! Idle -> Take -> Get -> Choose -> Resolve -> Check -> Size -> Header -> Frame -> [Pop ->] Commit
//!   not last, or not allowed: Stay -> Again -> Compare -> Check while alone, else Save -> Idle
//!   last frame: Commit -> Retire -> Idle
//!   (Reception: Commit -> Idle, and after the ViAck Choose -> Reach -> Retire)
//!   owed frame: Choose -> Frame -> Commit -> Sent -> Idle
//!   error:      [Abort ->] Fail -> Retire -> Idle
//! ```
//! The descriptor is popped *before* its last frame is committed, so that a ViAck can never meet a
//! send that is not yet awaited.

mod cut;
mod frames;
mod gather;
mod pack;
mod port;
mod state;
pub use cut::Cut;
pub use frames::Frames;
pub use gather::Gather;
pub use pack::Pack;
pub use port::Port;
pub use state::SendState;

use crate::desc::{Cause, Work};
use crate::ifs::{
    FenceServer, MessageServer, PoolClient, ReadClient, TptClient, ViSendClient, WriteClient,
};
use crate::leaf::Number;
use nic_regs::counter::Counter;
use nic_regs::frame::{Type, flag};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Send {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub sample_vi: Signal<In, Bits<16>>,
    pub sample_armed: Signal<In, Bit>,
    pub stamp_descriptor: Signal<Out, Bit>,
    pub stamp_data: Signal<Out, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    pub vi: ViSendClient,
    pub read: ReadClient,
    pub write: WriteClient,
    pub pool: PoolClient,
    pub messages: MessageServer,
    pub fence: FenceServer,
    pub desc_read: ReadClient,
    pub desc_tpt: TptClient,
    state: DFF<SendState>,
    pausing: DFF<Bit>,
    counts_out: DFF<Bits<64>>,
    sampled: DFF<Bit>,
    // The frame in hand.
    kind: DFF<Bits<8>>,
    is_data: DFF<Bit>,
    sequenced: DFF<Bit>,
    // How the descriptor ends.
    cause: DFF<Bits<4>>,
    steps: DFF<Bits<5>>,
    reaching: DFF<Bit>,
    // Pulses to the parts, one cycle after the decision.
    desc_start: DFF<Bit>,
    frames_ask: DFF<Bit>,
    frames_message: DFF<Bit>,
    finish_start: DFF<Bit>,
    port: Port,
    work: Work,
    cut: Cut,
    frames: Frames,
    kind_data: Number<8, { Type::Data as u64 }>,
    kind_ack: Number<8, { Type::ViAck as u64 }>,
    kind_refuse: Number<8, { Type::ViRefuse as u64 }>,
    kind_fin: Number<8, { Type::Fin as u64 }>,
    flag_sequenced: Number<8, { flag::SEQUENCED as u64 }>,
    answer_not_now: Number<2, 1>,
    answer_down: Number<2, 2>,
    answer_failed: Number<2, 3>,
    cause_done: Number<4, { Cause::Done as u64 }>,
    cause_descriptor: Number<4, { Cause::Descriptor as u64 }>,
    cause_length: Number<4, { Cause::Length as u64 }>,
    cause_data: Number<4, { Cause::Data as u64 }>,
    steps_pop: Number<5, 0b00001>,
    steps_pop_await: Number<5, 0b00011>,
    steps_complete: Number<5, 0b01100>,
    count_message: Number<64, { 1 << Counter::MessagesSent as u32 }>,
    count_fetch: Number<64, { 1 << Counter::DescriptorsFetched as u32 }>,
}

impl Logic for Send {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, pausing, counts_out, sampled, kind, is_data, sequenced);
        dff_setup!(self, clock, cause, steps, reaching, desc_start, frames_ask, frames_message);
        dff_setup!(self, clock, finish_start);
        clock!(self, clock, port, work, cut, frames);
        self.work.reset.next = self.reset.val();
        self.frames.reset.next = self.reset.val();
        ReadClient::link(&mut self.desc_read, &mut self.work.read);
        TptClient::link(&mut self.desc_tpt, &mut self.work.tpt);
        ViSendClient::link(&mut self.vi, &mut self.port.vi);
        WriteClient::link(&mut self.write, &mut self.work.write);
        ReadClient::link(&mut self.read, &mut self.frames.read);
        PoolClient::link(&mut self.pool, &mut self.frames.pool);
        MessageServer::link(&mut self.messages, &mut self.frames.messages);

        // Counters, stamps, fence.
        self.counts.next = self.counts_out.q.val();
        self.counts_out.d.next = 0.into();
        if self.work.fetched.val() {
            self.counts_out.d.next = self.count_fetch.val();
        } else if self.frames.message_sent.val() {
            self.counts_out.d.next = self.count_message.val();
        }
        self.sampled.d.next = (self.sample_vi.val() == self.port.number.val())
            & self.sample_armed.val()
            & self.is_data.q.val()
            & (!self.port.in_progress.val());
        self.stamp_descriptor.next = (self.state.q.val() == SendState::Size) & self.sampled.q.val();
        self.stamp_data.next =
            self.frames.answered.val() & (self.frames.answer.val() == 0) & self.sampled.q.val();
        self.pausing.d.next = (self.state.q.val() == SendState::Idle) & self.fence.pause.val();
        self.fence.paused.next = self.pausing.q.val();

        // The parts.
        self.work.resolve.next = self.desc_start.q.val();
        self.work.tag.next = self.port.tag.val();
        self.work.domain.next = self.port.domain.val();
        self.work.region.next = self.port.region.val();
        self.work.offset.next = self.port.offset.val();
        self.work.hint.next = self.port.hint.val();
        self.work.covers_next.next = self.port.several.val();
        self.work.segment.next = self.frames.segment.val();
        self.desc_start.d.next = false;
        self.frames.ask.next = self.frames_ask.q.val();
        self.frames.ask_message.next = self.frames_message.q.val();
        self.frames.commit.next = self.state.q.val() == SendState::Commit;
        self.frames.abort.next = self.state.q.val() == SendState::Abort;
        self.frames.is_data.next = self.is_data.q.val();
        self.frames.sequenced.next = self.sequenced.q.val();
        self.frames.peer.next = self.port.peer.val();
        self.frames.length.next = 0.into();
        self.frames.flags.next = self.flag_sequenced.val();
        self.frames.word.next = 0.into();
        if self.is_data.q.val() {
            self.frames.length.next = self.cut.length.val();
            self.frames.flags.next = self.cut.flags.val();
            self.frames.word.next = self.cut.word.val();
        } else if self.kind.q.val() == self.kind_refuse.val() {
            self.frames.word.next = bit_cast::<32, 8>(self.port.refuse_reason.val());
        }
        self.frames.skip.next = self.port.progress.val();
        self.frames.kind.next = self.kind.q.val();
        self.frames.dst_vi.next = self.port.peer_vi.val();
        self.frames.src_vi.next = self.port.number.val();
        self.frames.connection.next = self.port.connection.val();
        self.frames.unsequenced.next = self.port.numbers.val();
        self.frames.segment_bus.next = self.work.segment_bus.val();
        self.frames.segment_length.next = self.work.segment_length.val();
        self.frames_ask.d.next = false;
        self.frames_message.d.next = false;
        self.work.unreliable.next = self.port.unreliable.val();
        self.work.finish.next = self.finish_start.q.val();
        self.work.fail.next = self.state.q.val() == SendState::Fail;
        self.work.steps.next = self.steps.q.val();
        self.work.cause.next = self.cause.q.val();
        self.work.length.next = self.work.total.val();
        if self.reaching.q.val() {
            self.work.length.next = bit_cast::<20, 19>(self.port.awaited.val());
        }
        self.work.vi_done.next = self.port.done.val();
        self.work.vi_need_next.next = self.port.need_next.val();
        self.finish_start.d.next = false;
        self.work.reach.next = self.reaching.q.val();
        self.work.receive.next = false;
        self.work.partial.next = self.port.in_progress.val();
        self.work.take_immediate.next = false;
        self.work.taken_immediate.next = 0.into();

        // Calls to the VI table.
        self.port.take.next = self.state.q.val() == SendState::Take;
        self.port.get.next = self.state.q.val() == SendState::Get;
        self.port.again.next = self.state.q.val() == SendState::Again;
        self.port.save.next = self.state.q.val() == SendState::Save;
        self.port.sent.next = self.state.q.val() == SendState::Sent;
        self.port.retire_valid.next = self.work.vi_valid.val();
        self.port.retire_op.next = self.work.vi_op.val();
        self.port.advance.next = false;
        self.port.whole.next = self.work.total.val().get_bits::<19>(0);
        self.port.sends.next = self.cause.q.val() == 0;
        self.port.next_valid.next = self.work.next_valid.val();
        self.port.next_region.next = self.work.next_region.val();
        self.port.next_offset.next = self.work.next_offset.val();
        self.port.reason.next = self.work.reason.val();
        self.port.stop_status.next = self.work.stop_status.val();

        // The frame.
        self.cut.total.next = self.work.total.val();
        self.cut.max_transfer.next = self.port.max_transfer.val();
        self.cut.in_progress.next = self.port.in_progress.val();
        self.cut.progress.next = self.port.progress.val();
        self.cut.whole.next = self.port.total.val();
        self.cut.has_immediate.next = self.work.has_immediate.val();
        self.cut.immediate.next = self.work.immediate.val();
        self.cut.sequenced.next = self.sequenced.q.val();
        self.cut.reception.next = self.port.reception.val();

        match self.state.q.val() {
            SendState::Idle => {
                self.reaching.d.next = false;
                if self.fence.pause.val() {
                    self.state.d.next = SendState::Idle;
                } else if self.messages.valid.val() {
                    self.frames_message.d.next = true;
                    self.state.d.next = SendState::Message;
                } else if self.port.work.val() {
                    self.state.d.next = SendState::Take;
                }
            }
            SendState::Take => {
                self.state.d.next = SendState::Get;
            }
            SendState::Get => {
                if self.port.done.val() {
                    self.state.d.next = SendState::Choose;
                }
            }
            SendState::Choose => {
                self.is_data.d.next = false;
                self.sequenced.d.next = true;
                self.state.d.next = SendState::Idle;
                if self.port.owed.val() != 0 {
                    self.kind.d.next = self.kind_fin.val();
                    if self.port.owed.val().get_bit(0) {
                        self.kind.d.next = self.kind_ack.val();
                    } else if self.port.owed.val().get_bit(1) {
                        self.kind.d.next = self.kind_refuse.val();
                    }
                    self.frames_ask.d.next = true;
                    self.state.d.next = SendState::Frame;
                } else if self.port.connected.val() & self.port.awaiting.val() {
                    if self.port.acked.val() {
                        self.reaching.d.next = true;
                        self.desc_start.d.next = true;
                        self.state.d.next = SendState::Reach;
                    }
                } else if self.port.connected.val() & self.port.some.val() {
                    self.kind.d.next = self.kind_data.val();
                    self.is_data.d.next = true;
                    self.sequenced.d.next = !self.port.unreliable.val();
                    self.desc_start.d.next = true;
                    self.state.d.next = SendState::Resolve;
                }
            }
            SendState::Resolve => {
                self.cause.d.next = bit_cast::<4, 3>(self.work.outcome.val());
                if self.work.resolved.val() {
                    self.state.d.next = SendState::Fail;
                    if self.work.outcome.val() == 0 {
                        self.state.d.next = SendState::Check;
                    }
                }
            }
            SendState::Check => {
                self.state.d.next = SendState::Size;
            }
            SendState::Size => {
                self.state.d.next = SendState::Header;
                if self.cut.too_long.val() {
                    self.cause.d.next = self.cause_length.val();
                    self.state.d.next = SendState::Fail;
                }
            }
            SendState::Header => {
                self.frames_ask.d.next = true;
                self.state.d.next = SendState::Frame;
            }
            SendState::Frame => {
                if self.frames.answered.val() {
                    self.state.d.next = SendState::Commit;
                    if self.frames.answer.val() == self.answer_failed.val() {
                        self.cause.d.next = self.cause_data.val();
                        self.state.d.next = SendState::Abort;
                    } else if self.is_data.q.val() {
                        if self.frames.answer.val() != 0 {
                            self.state.d.next = SendState::Stay;
                        } else if self.cut.last.val() {
                            self.steps.d.next = self.steps_pop.val();
                            if self.port.reception.val() {
                                self.steps.d.next = self.steps_pop_await.val();
                            }
                            self.finish_start.d.next = true;
                            self.state.d.next = SendState::Pop;
                        }
                    } else if self.frames.answer.val() == self.answer_down.val() {
                        self.state.d.next = SendState::Sent;
                    } else if self.frames.answer.val() == self.answer_not_now.val() {
                        self.state.d.next = SendState::Save;
                    }
                }
            }
            SendState::Pop => {
                if self.work.retired.val() {
                    self.state.d.next = SendState::Commit;
                }
            }
            SendState::Commit => {
                if self.frames.finished.val() {
                    if !self.is_data.q.val() {
                        self.state.d.next = SendState::Sent;
                    } else if !self.cut.last.val() {
                        self.port.advance.next = true;
                        self.state.d.next = SendState::Stay;
                    } else if self.port.reception.val() {
                        self.state.d.next = SendState::Idle;
                    } else {
                        self.steps.d.next = self.steps_complete.val();
                        self.finish_start.d.next = true;
                        self.state.d.next = SendState::Retire;
                    }
                }
            }
            SendState::Abort => {
                if self.frames.finished.val() {
                    self.state.d.next = SendState::Fail;
                }
            }
            SendState::Stay => {
                self.state.d.next = SendState::Again;
                if self.port.work.val() | self.fence.pause.val() | self.messages.valid.val() {
                    self.state.d.next = SendState::Save;
                }
            }
            SendState::Again => {
                if self.port.done.val() {
                    self.state.d.next = SendState::Compare;
                }
            }
            SendState::Compare => {
                self.state.d.next = SendState::Idle;
                if self.port.connected.val() {
                    self.state.d.next = SendState::Save;
                    if self.port.same.val() {
                        self.state.d.next = SendState::Check;
                    }
                }
            }
            SendState::Save => {
                if self.port.done.val() {
                    self.state.d.next = SendState::Idle;
                }
            }
            SendState::Reach => {
                if self.work.resolved.val() {
                    self.cause.d.next = self.cause_done.val();
                    self.steps.d.next = self.steps_complete.val();
                    self.finish_start.d.next = true;
                    self.state.d.next = SendState::Retire;
                    if self.work.outcome.val() != 0 {
                        self.cause.d.next = self.cause_descriptor.val();
                        self.finish_start.d.next = false;
                        self.state.d.next = SendState::Fail;
                    }
                }
            }
            SendState::Fail => {
                self.state.d.next = SendState::Retire;
            }
            SendState::Retire => {
                if self.work.retired.val() {
                    self.state.d.next = SendState::Idle;
                }
            }
            SendState::Sent => {
                if self.port.done.val() {
                    self.state.d.next = SendState::Idle;
                }
            }
            SendState::Message => {
                if self.frames.finished.val() {
                    self.state.d.next = SendState::Idle;
                }
            }
            _ => {
                self.state.d.next = SendState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = SendState::Idle;
            self.pausing.d.next = false;
            self.desc_start.d.next = false;
            self.frames_ask.d.next = false;
            self.frames_message.d.next = false;
            self.finish_start.d.next = false;
            self.counts_out.d.next = 0.into();
        }
    }
}
