//! Send engine: takes VIs from the ready ring, one frame at a time, and sends admin's messages (contract 4, 3.4, 6.2, 8, 9.4).
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
//!   last frame: Commit -> Retire -> Idle (Reception: Idle, and after the ViAck Choose -> Reach -> Retire)
//!   owed frame: Choose -> Frame -> Commit -> Sent -> Idle
//!   error:      [Abort ->] Fail -> Retire -> Idle
//! ```
//! The descriptor is popped *before* its last frame is committed, so that a ViAck can never meet a send that is not yet awaited, and
//! so that a Next that cannot be read stops the VI before the message is out.

mod frames;
mod gather;
mod pack;
mod state;
pub use frames::Frames;
pub use gather::Gather;
pub use pack::Pack;
pub use state::SendState;

use crate::desc::{Cause, Desc, Retire, Verdict};
use crate::ifs::{
    FenceServer, MessageServer, PoolClient, ReadClient, TptClient, ViSendClient, WriteClient,
};
use crate::leaf::Number;
use nic_regs::counter::Counter;
use nic_regs::frame::{Type, flag};
use nic_regs::limits::LINK_PAYLOAD_BYTES;
use nic_regs::vi::{Reliability, State};
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
    // The VI in hand.
    number: DFF<Bits<16>>,
    vi_state: DFF<Bits<2>>,
    domain: DFF<Bits<8>>,
    tag: DFF<Bits<16>>,
    level: DFF<Bits<3>>,
    peer: DFF<Bits<8>>,
    peer_vi: DFF<Bits<16>>,
    connection: DFF<Bits<16>>,
    max_transfer: DFF<Bits<20>>,
    region: DFF<Bits<16>>,
    offset: DFF<Bits<26>>,
    hint: DFF<Bits<5>>,
    count: DFF<Bits<16>>,
    in_progress: DFF<Bit>,
    progress: DFF<Bits<19>>,
    message: DFF<Bits<8>>,
    fragment: DFF<Bits<8>>,
    awaiting: DFF<Bit>,
    acked: DFF<Bit>,
    owed: DFF<Bits<3>>,
    owed_now: DFF<Bits<3>>,
    refuse_reason: DFF<Bits<8>>,
    same: DFF<Bit>,
    // The frame in hand.
    kind: DFF<Bits<8>>,
    is_data: DFF<Bit>,
    sequenced: DFF<Bit>,
    flags: DFF<Bits<8>>,
    word: DFF<Bits<32>>,
    length: DFF<Bits<13>>,
    last_frame: DFF<Bit>,
    left: DFF<Bits<21>>,
    too_long: DFF<Bit>,
    // How the descriptor ends.
    cause: DFF<Bits<4>>,
    steps: DFF<Bits<5>>,
    status_length: DFF<Bits<20>>,
    reaching: DFF<Bit>,
    // Pulses to the parts, one cycle after the decision.
    desc_start: DFF<Bit>,
    frames_ask: DFF<Bit>,
    frames_message: DFF<Bit>,
    retire_start: DFF<Bit>,
    desc: Desc,
    frames: Frames,
    verdict: Verdict,
    retire: Retire,
    unreliable: Signal<Local, Bit>,
    reception: Signal<Local, Bit>,
    connected: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,
    first_frame: Signal<Local, Bit>,
    imm_frame: Signal<Local, Bit>,
    level_unreliable: Number<3, { Reliability::Unreliable as u64 }>,
    level_reception: Number<3, { Reliability::Reception as u64 }>,
    state_connected: Number<2, { State::Connected as u64 }>,
    kind_data: Number<8, { Type::Data as u64 }>,
    kind_ack: Number<8, { Type::ViAck as u64 }>,
    kind_refuse: Number<8, { Type::ViRefuse as u64 }>,
    kind_fin: Number<8, { Type::Fin as u64 }>,
    flag_sequenced: Number<8, { flag::SEQUENCED as u64 }>,
    payload: Number<13, { LINK_PAYLOAD_BYTES as u64 }>,
    payload_21: Number<21, { LINK_PAYLOAD_BYTES as u64 }>,
    answer_not_now: Number<2, 1>,
    answer_down: Number<2, 2>,
    answer_failed: Number<2, 3>,
    cause_done: Number<4, { Cause::Done as u64 }>,
    cause_descriptor: Number<4, { Cause::Descriptor as u64 }>,
    cause_host_read: Number<4, { Cause::HostRead as u64 }>,
    cause_length: Number<4, { Cause::Length as u64 }>,
    cause_data: Number<4, { Cause::Data as u64 }>,
    steps_pop: Number<5, 0b00001>,
    steps_pop_await: Number<5, 0b00011>,
    steps_complete: Number<5, 0b01100>,
    steps_error: Number<5, 0b01101>,
    steps_error_stop: Number<5, 0b11101>,
    steps_stop: Number<5, 0b10000>,
    op_save: Number<3, 1>,
    op_sent: Number<3, 6>,
    desc_op_reach: Number<2, 1>,
    desc_op_next: Number<2, 2>,
    one: Number<16, 1>,
    count_message: Number<64, { 1 << Counter::MessagesSent as u32 }>,
    count_fetch: Number<64, { 1 << Counter::DescriptorsFetched as u32 }>,
}

impl Logic for Send {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, pausing, counts_out, sampled, number, vi_state, domain);
        dff_setup!(self, clock, tag, level, peer, peer_vi, connection, max_transfer, region);
        dff_setup!(self, clock, offset, hint, count, in_progress, progress, message, fragment);
        dff_setup!(self, clock, awaiting, acked, owed, owed_now, refuse_reason, same, kind);
        dff_setup!(self, clock, is_data, sequenced, flags, word, length, last_frame, left);
        dff_setup!(self, clock, too_long, cause, steps, status_length, reaching, desc_start);
        dff_setup!(self, clock, frames_ask, frames_message, retire_start);
        clock!(self, clock, desc, frames, retire);
        self.desc.reset.next = self.reset.val();
        self.frames.reset.next = self.reset.val();
        self.retire.reset.next = self.reset.val();
        ReadClient::link(&mut self.desc_read, &mut self.desc.read);
        TptClient::link(&mut self.desc_tpt, &mut self.desc.tpt);
        ReadClient::link(&mut self.read, &mut self.frames.read);
        PoolClient::link(&mut self.pool, &mut self.frames.pool);
        MessageServer::link(&mut self.messages, &mut self.frames.messages);

        // Counters, stamps, fence.
        self.counts.next = self.counts_out.q.val();
        self.counts_out.d.next = 0.into();
        if self.desc.fetched.val() {
            self.counts_out.d.next = self.count_fetch.val();
        } else if self.frames.message_sent.val() {
            self.counts_out.d.next = self.count_message.val();
        }
        self.sampled.d.next = (self.sample_vi.val() == self.number.q.val())
            & self.sample_armed.val()
            & self.is_data.q.val()
            & (!self.in_progress.q.val());
        self.stamp_descriptor.next =
            (self.state.q.val() == SendState::Size) & self.sampled.q.val();
        self.stamp_data.next = self.frames.answered.val()
            & (self.frames.answer.val() == 0)
            & self.sampled.q.val();
        self.pausing.d.next = (self.state.q.val() == SendState::Idle) & self.fence.pause.val();
        self.fence.paused.next = self.pausing.q.val();

        // The parts.
        self.desc.start.next = self.desc_start.q.val() | self.retire.reread.val();
        self.desc.op.next = 0.into();
        if self.retire.reread.val() {
            self.desc.op.next = self.desc_op_next.val();
        } else if self.reaching.q.val() {
            self.desc.op.next = self.desc_op_reach.val();
        }
        self.desc.tag.next = self.tag.q.val();
        self.desc.domain.next = self.domain.q.val();
        self.desc.region.next = self.region.q.val();
        self.desc.offset.next = self.offset.q.val();
        self.desc.hint.next = self.hint.q.val();
        self.desc.covers_next.next = self.count.q.val() > self.one.val();
        self.desc.segment.next = self.frames.segment.val();
        self.desc_start.d.next = false;
        self.frames.ask.next = self.frames_ask.q.val();
        self.frames.ask_message.next = self.frames_message.q.val();
        self.frames.commit.next = self.state.q.val() == SendState::Commit;
        self.frames.abort.next = self.state.q.val() == SendState::Abort;
        self.frames.is_data.next = self.is_data.q.val();
        self.frames.sequenced.next = self.sequenced.q.val();
        self.frames.peer.next = self.peer.q.val();
        self.frames.length.next = self.length.q.val();
        self.frames.skip.next = self.progress.q.val();
        self.frames.kind.next = self.kind.q.val();
        self.frames.dst_vi.next = self.peer_vi.q.val();
        self.frames.src_vi.next = self.number.q.val();
        self.frames.connection.next = self.connection.q.val();
        self.frames.flags.next = self.flags.q.val();
        self.frames.unsequenced.next = (bit_cast::<16, 8>(self.message.q.val()) << 8)
            | bit_cast::<16, 8>(self.fragment.q.val());
        self.frames.word.next = self.word.q.val();
        self.frames.segment_bus.next = self.desc.segment_bus.val();
        self.frames.segment_length.next = self.desc.segment_length.val();
        self.frames_ask.d.next = false;
        self.frames_message.d.next = false;
        self.verdict.cause.next = self.cause.q.val();
        self.verdict.receive.next = false;
        self.verdict.partial.next = self.in_progress.q.val();
        self.verdict.immediate.next = false;
        self.retire.start.next = self.retire_start.q.val();
        self.retire.steps.next = self.steps.q.val();
        self.retire.bus.next = self.desc.bus.val();
        self.retire.length.next = self.status_length.q.val();
        self.retire.status_word.next = self.verdict.status_word.val();
        self.retire.has_immediate.next = false;
        self.retire.immediate.next = 0.into();
        self.retire.desc_done.next = self.desc.done.val();
        self.retire.desc_ok.next = self.desc.outcome.val() == 0;
        self.retire.vi_done.next = self.vi.done.val();
        self.retire.vi_need_next.next = self.vi.need_next.val();
        self.retire.w_ready.next = self.write.ready.val();
        self.retire_start.d.next = false;
        self.write.valid.next = self.retire.w_valid.val();
        self.write.address.next = self.retire.w_address.val();
        self.write.length.next = self.retire.w_length.val();
        self.write.data.next = self.retire.w_data.val();
        self.write.last.next = self.retire.w_last.val();

        // Calls to the VI table.
        self.vi.work_ready.next = self.state.q.val() == SendState::Take;
        self.vi.valid.next = self.retire.vi_valid.val();
        self.vi.op.next = self.retire.vi_op.val();
        if (self.state.q.val() == SendState::Get) | (self.state.q.val() == SendState::Again) {
            self.vi.valid.next = true;
            self.vi.op.next = 0.into();
        } else if self.state.q.val() == SendState::Save {
            self.vi.valid.next = true;
            self.vi.op.next = self.op_save.val();
        } else if self.state.q.val() == SendState::Sent {
            self.vi.valid.next = true;
            self.vi.op.next = self.op_sent.val();
        }
        self.vi.vi.next = self.number.q.val();
        self.vi.in_progress.next = self.in_progress.q.val();
        self.vi.offset.next = self.progress.q.val();
        if (self.state.q.val() == SendState::Pop) {
            // AWAIT takes the message's length.
            self.vi.offset.next = self.status_length.q.val().get_bits::<19>(0);
        }
        self.vi.fragment.next = self.fragment.q.val();
        self.vi.next_valid.next = self.desc.next_valid.val();
        self.vi.next_region.next = self.desc.next_region.val();
        self.vi.next_offset.next = self.desc.next_offset.val();
        self.vi.reason.next = self.verdict.reason.val();
        self.vi.status.next = self.verdict.stop_status.val();
        self.vi.queue.next = false;
        self.vi.refuse.next = true;
        self.vi.owed.next = self.owed_now.q.val();

        self.unreliable.next = self.level.q.val() == self.level_unreliable.val();
        self.reception.next = self.level.q.val() == self.level_reception.val();
        self.connected.next = self.vi_state.q.val() == self.state_connected.val();
        self.fits.next = self.left.q.val() <= self.payload_21.val();
        self.first_frame.next = !self.in_progress.q.val();
        self.imm_frame.next = self.last_frame.q.val() & self.desc.has_immediate.val();

        match self.state.q.val() {
            SendState::Idle => {
                self.reaching.d.next = false;
                if self.fence.pause.val() {
                    self.state.d.next = SendState::Idle;
                } else if self.messages.valid.val() {
                    self.frames_message.d.next = true;
                    self.state.d.next = SendState::Message;
                } else if self.vi.work_valid.val() {
                    self.state.d.next = SendState::Take;
                }
            }
            SendState::Take => {
                self.number.d.next = self.vi.work_vi.val();
                self.state.d.next = SendState::Get;
            }
            SendState::Get => {
                self.vi_state.d.next = self.vi.ctx_state.val();
                self.domain.d.next = self.vi.ctx_domain.val();
                self.tag.d.next = self.vi.ctx_tag.val();
                self.level.d.next = self.vi.ctx_reliability.val();
                self.peer.d.next = self.vi.ctx_peer.val();
                self.peer_vi.d.next = self.vi.ctx_peer_vi.val();
                self.connection.d.next = self.vi.ctx_connection.val();
                self.max_transfer.d.next = self.vi.ctx_max_transfer.val();
                self.region.d.next = self.vi.ctx_region.val();
                self.offset.d.next = self.vi.ctx_offset.val();
                self.hint.d.next = self.vi.ctx_segments.val();
                self.count.d.next = self.vi.ctx_count.val();
                self.in_progress.d.next = self.vi.ctx_in_progress.val();
                self.progress.d.next = self.vi.ctx_progress.val();
                self.message.d.next = self.vi.ctx_message.val();
                self.fragment.d.next = self.vi.ctx_fragment.val();
                self.awaiting.d.next = self.vi.ctx_awaiting.val();
                self.acked.d.next = self.vi.ctx_acked.val();
                self.owed.d.next = self.vi.ctx_owed.val();
                self.refuse_reason.d.next = self.vi.ctx_refuse_reason.val();
                if self.vi.done.val() {
                    self.state.d.next = SendState::Choose;
                }
            }
            SendState::Choose => {
                self.is_data.d.next = false;
                self.sequenced.d.next = true;
                self.flags.d.next = self.flag_sequenced.val();
                self.word.d.next = 0.into();
                self.length.d.next = 0.into();
                self.state.d.next = SendState::Idle;
                if self.owed.q.val() != 0 {
                    self.kind.d.next = self.kind_fin.val();
                    self.owed_now.d.next = 4.into();
                    if self.owed.q.val().get_bit(0) {
                        self.kind.d.next = self.kind_ack.val();
                        self.owed_now.d.next = 1.into();
                    } else if self.owed.q.val().get_bit(1) {
                        self.kind.d.next = self.kind_refuse.val();
                        self.owed_now.d.next = 2.into();
                        self.word.d.next = bit_cast::<32, 8>(self.refuse_reason.q.val());
                    }
                    self.frames_ask.d.next = true;
                    self.state.d.next = SendState::Frame;
                } else if self.connected.val() & self.awaiting.q.val() {
                    if self.acked.q.val() {
                        self.reaching.d.next = true;
                        self.desc_start.d.next = true;
                        self.state.d.next = SendState::Reach;
                    }
                } else if self.connected.val() & (self.count.q.val() != 0) {
                    self.kind.d.next = self.kind_data.val();
                    self.is_data.d.next = true;
                    self.sequenced.d.next = !self.unreliable.val();
                    self.desc_start.d.next = true;
                    self.state.d.next = SendState::Resolve;
                }
            }
            SendState::Resolve => {
                self.cause.d.next = bit_cast::<4, 3>(self.desc.outcome.val());
                if self.desc.done.val() {
                    self.state.d.next = SendState::Fail;
                    if self.desc.outcome.val() == 0 {
                        self.state.d.next = SendState::Check;
                    }
                }
            }
            SendState::Check => {
                self.left.d.next = bit_cast::<21, 20>(self.desc.total.val())
                    - bit_cast::<21, 19>(self.progress.q.val());
                // In mid-message something must be left, unless software changed the descriptor.
                self.too_long.d.next = (self.desc.total.val() > self.max_transfer.q.val())
                    | (self.in_progress.q.val()
                        & (self.desc.total.val() <= bit_cast::<20, 19>(self.progress.q.val())));
                self.state.d.next = SendState::Size;
            }
            SendState::Size => {
                self.last_frame.d.next = self.fits.val();
                self.length.d.next = self.payload.val();
                if self.fits.val() {
                    self.length.d.next = self.left.q.val().get_bits::<13>(0);
                }
                self.status_length.d.next = self.desc.total.val();
                self.state.d.next = SendState::Header;
                if self.too_long.q.val() {
                    self.cause.d.next = self.cause_length.val();
                    self.state.d.next = SendState::Fail;
                }
            }
            SendState::Header => {
                self.flags.d.next = bit_cast::<8, 1>(self.first_frame.val().into())
                    | (bit_cast::<8, 1>(self.last_frame.q.val().into()) << 1)
                    | (bit_cast::<8, 1>(self.imm_frame.val().into()) << 2)
                    | (bit_cast::<8, 1>(self.sequenced.q.val().into()) << 3)
                    | (bit_cast::<8, 1>(self.reception.val().into()) << 4);
                self.word.d.next = 0.into();
                if self.imm_frame.val() {
                    self.word.d.next = self.desc.immediate.val();
                } else if self.first_frame.val() & (!self.last_frame.q.val()) {
                    self.word.d.next = bit_cast::<32, 20>(self.desc.total.val());
                }
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
                        } else if self.last_frame.q.val() {
                            self.steps.d.next = self.steps_pop.val();
                            if self.reception.val() {
                                self.steps.d.next = self.steps_pop_await.val();
                            }
                            self.retire_start.d.next = true;
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
                if self.retire.done.val() {
                    self.state.d.next = SendState::Commit;
                    if self.retire.failed.val() {
                        self.cause.d.next = self.cause_host_read.val();
                        self.state.d.next = SendState::Abort;
                    }
                }
            }
            SendState::Commit => {
                if self.frames.finished.val() {
                    if !self.is_data.q.val() {
                        self.state.d.next = SendState::Sent;
                    } else if !self.last_frame.q.val() {
                        self.in_progress.d.next = true;
                        self.progress.d.next =
                            self.progress.q.val() + bit_cast::<19, 13>(self.length.q.val());
                        self.fragment.d.next = self.fragment.q.val() + 1;
                        self.state.d.next = SendState::Stay;
                    } else if self.reception.val() {
                        self.state.d.next = SendState::Idle;
                    } else {
                        self.steps.d.next = self.steps_complete.val();
                        self.retire_start.d.next = true;
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
                if self.vi.work_valid.val() | self.fence.pause.val() | self.messages.valid.val() {
                    self.state.d.next = SendState::Save;
                }
            }
            SendState::Again => {
                self.vi_state.d.next = self.vi.ctx_state.val();
                self.same.d.next = (self.vi.ctx_owed.val() == 0)
                    & (self.vi.ctx_region.val() == self.region.q.val())
                    & (self.vi.ctx_offset.val() == self.offset.q.val());
                if self.vi.done.val() {
                    self.state.d.next = SendState::Compare;
                }
            }
            SendState::Compare => {
                self.state.d.next = SendState::Idle;
                if self.connected.val() {
                    self.state.d.next = SendState::Save;
                    if self.same.q.val() {
                        self.state.d.next = SendState::Check;
                    }
                }
            }
            SendState::Save => {
                if self.vi.done.val() {
                    self.state.d.next = SendState::Idle;
                }
            }
            SendState::Reach => {
                self.status_length.d.next = bit_cast::<20, 19>(self.progress.q.val());
                if self.desc.done.val() {
                    self.cause.d.next = self.cause_done.val();
                    self.steps.d.next = self.steps_complete.val();
                    self.retire_start.d.next = true;
                    self.state.d.next = SendState::Retire;
                    if self.desc.outcome.val() != 0 {
                        self.cause.d.next = self.cause_descriptor.val();
                        self.retire_start.d.next = false;
                        self.state.d.next = SendState::Fail;
                    }
                }
            }
            SendState::Fail => {
                self.status_length.d.next = 0.into();
                self.steps.d.next = self.steps_stop.val();
                if self.verdict.completes.val() {
                    self.steps.d.next = self.steps_error_stop.val();
                    if self.unreliable.val() {
                        self.steps.d.next = self.steps_error.val();
                    }
                }
                self.retire_start.d.next = true;
                self.state.d.next = SendState::Retire;
            }
            SendState::Retire => {
                if self.retire.done.val() {
                    self.state.d.next = SendState::Idle;
                    if self.retire.failed.val() {
                        self.cause.d.next = self.cause_host_read.val();
                        self.state.d.next = SendState::Fail;
                    }
                }
            }
            SendState::Sent => {
                if self.vi.done.val() {
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
            self.retire_start.d.next = false;
            self.counts_out.d.next = 0.into();
        }
    }
}
