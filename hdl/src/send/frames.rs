//! Hands frames to the channel: asks, brings the payload on the chip, commits or aborts. Also sends
//! admin's messages whole.
//!
//! ```text
//! Idle -> Ask -> [Start -> Gather ->] Held -> Commit | Abort -> Idle
//!   (`answered` with `answer` after Ask or Gather)
//! Idle -> MessageAsk -> (MessageRead -> MessagePush) x 6 -> MessageCommit -> MessageDone -> Idle
//! ```
//! The arguments are stable from `ask` (pulse) to `finished` (pulse) or to an answer other than
//! READY.

use super::gather::Gather;
use crate::ifs::{MessageServer, PoolClient, ReadClient};
use crate::leaf::Number;
use nic_regs::admin::AdminStatus;
use nic_regs::frame::{MESSAGE_BYTES, Type, flag};
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum FramesState {
    /// Waits for a frame or a message.
    Idle,
    /// Asks the pool for a frame.
    Ask,
    /// Starts gathering.
    Start,
    /// Gathers.
    Gather,
    /// The payload is here: waits for `commit` or `abort`.
    Held,
    /// Hands the frame to the channel.
    Commit,
    /// Gives its chunks back.
    Abort,
    /// Asks the pool for a message.
    MessageAsk,
    /// Reads a beat of it.
    MessageRead,
    /// Hands the beat to the pool.
    MessagePush,
    /// Hands the message to the channel.
    MessageCommit,
    /// Answers admin.
    MessageDone,
}

#[derive(LogicBlock, Default)]
pub struct Frames {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ask: Signal<In, Bit>,
    pub commit: Signal<In, Bit>,
    pub abort: Signal<In, Bit>,
    /// Pulse: send the message that admin offers.
    pub ask_message: Signal<In, Bit>,
    pub answered: Signal<Out, Bit>,
    /// 0 READY, 1 not now, 2 the peer is down, 3 the payload could not be read.
    pub answer: Signal<Out, Bits<2>>,
    /// Pulse: committed, aborted, or the message is answered.
    pub finished: Signal<Out, Bit>,
    pub message_sent: Signal<Out, Bit>,
    pub is_data: Signal<In, Bit>,
    pub sequenced: Signal<In, Bit>,
    pub peer: Signal<In, Bits<8>>,
    pub length: Signal<In, Bits<13>>,
    /// Bytes of the message already sent.
    pub skip: Signal<In, Bits<19>>,
    pub kind: Signal<In, Bits<8>>,
    pub dst_vi: Signal<In, Bits<16>>,
    pub src_vi: Signal<In, Bits<16>>,
    pub connection: Signal<In, Bits<16>>,
    pub flags: Signal<In, Bits<8>>,
    pub unsequenced: Signal<In, Bits<16>>,
    pub word: Signal<In, Bits<32>>,
    pub segment: Signal<Out, Bits<4>>,
    pub segment_bus: Signal<In, Bits<64>>,
    pub segment_length: Signal<In, Bits<32>>,
    pub pool: PoolClient,
    pub read: ReadClient,
    pub messages: MessageServer,
    state: DFF<FramesState>,
    is_message: DFF<Bit>,
    result: DFF<Bits<2>>,
    result_valid: DFF<Bit>,
    beat: DFF<Bits<3>>,
    status: DFF<Bits<4>>,
    sent: DFF<Bit>,
    gather: Gather,
    answer_not_now: Number<2, 1>,
    answer_down: Number<2, 2>,
    answer_failed: Number<2, 3>,
    status_ok: Number<4, { AdminStatus::Ok as u64 }>,
    status_down: Number<4, { AdminStatus::PeerDown as u64 }>,
    status_busy: Number<4, { AdminStatus::Busy as u64 }>,
    kind_message: Number<8, { Type::Message as u64 }>,
    flag_sequenced: Number<8, { flag::SEQUENCED as u64 }>,
    message_bytes: Number<13, { MESSAGE_BYTES as u64 }>,
    last_beat: Number<3, { MESSAGE_BYTES as u64 / 8 - 1 }>,
}

impl Logic for Frames {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, is_message, result, result_valid, beat, status, sent);
        clock!(self, clock, gather);
        self.gather.reset.next = self.reset.val();
        ReadClient::link(&mut self.read, &mut self.gather.read);

        self.answered.next = self.result_valid.q.val();
        self.answer.next = self.result.q.val();
        self.result_valid.d.next = false;
        self.finished.next = (self.state.q.val() == FramesState::MessageDone)
            | (((self.state.q.val() == FramesState::Commit)
                | (self.state.q.val() == FramesState::Abort))
                & self.pool.commit_done.val());
        self.message_sent.next = self.sent.q.val();
        self.sent.d.next = false;

        self.gather.start.next = self.state.q.val() == FramesState::Start;
        self.gather.skip.next = self.skip.val();
        self.gather.length.next = self.length.val();
        self.gather.segment_bus.next = self.segment_bus.val();
        self.gather.segment_length.next = self.segment_length.val();
        self.segment.next = self.gather.segment.val();

        // The pool's arguments: a frame's, or the message's.
        self.pool.ask_valid.next = (self.state.q.val() == FramesState::Ask)
            | (self.state.q.val() == FramesState::MessageAsk);
        self.pool.ask_data.next = self.is_data.val();
        self.pool.ask_sequenced.next = self.sequenced.val();
        self.pool.ask_peer.next = self.peer.val();
        self.pool.ask_length.next = self.length.val();
        self.pool.commit_valid.next = (self.state.q.val() == FramesState::Commit)
            | (self.state.q.val() == FramesState::Abort)
            | (self.state.q.val() == FramesState::MessageCommit);
        self.pool.commit_abort.next = self.state.q.val() == FramesState::Abort;
        self.pool.kind.next = self.kind.val();
        self.pool.dst_vi.next = self.dst_vi.val();
        self.pool.src_vi.next = self.src_vi.val();
        self.pool.connection.next = self.connection.val();
        self.pool.flags.next = self.flags.val();
        self.pool.unsequenced.next = self.unsequenced.val();
        self.pool.word.next = self.word.val();
        self.pool.beat_valid.next = self.gather.beat_valid.val();
        self.pool.beat_data.next = self.gather.beat_data.val();
        self.gather.beat_ready.next = self.pool.beat_ready.val();
        if self.is_message.q.val() {
            self.pool.ask_data.next = false;
            self.pool.ask_sequenced.next = true;
            self.pool.ask_peer.next = self.messages.peer.val();
            self.pool.ask_length.next = self.message_bytes.val();
            self.pool.kind.next = self.kind_message.val();
            self.pool.dst_vi.next = bit_cast::<16, 8>(self.messages.domain.val());
            self.pool.src_vi.next = 0.into();
            self.pool.connection.next = 0.into();
            self.pool.flags.next = self.flag_sequenced.val();
            self.pool.word.next = 0.into();
            self.pool.beat_valid.next = self.state.q.val() == FramesState::MessagePush;
            self.pool.beat_data.next = self.messages.data.val();
        }
        self.messages.index.next = self.beat.q.val();
        self.messages.status.next = self.status.q.val();
        self.messages.done.next = self.state.q.val() == FramesState::MessageDone;

        match self.state.q.val() {
            FramesState::Idle => {
                self.is_message.d.next = self.ask_message.val();
                self.beat.d.next = 0.into();
                self.status.d.next = self.status_ok.val();
                if self.ask.val() {
                    self.state.d.next = FramesState::Ask;
                } else if self.ask_message.val() {
                    self.state.d.next = FramesState::MessageAsk;
                }
            }
            FramesState::Ask => {
                if self.pool.ask_done.val() {
                    self.result.d.next = 0.into();
                    if self.pool.ask_down.val() {
                        self.result.d.next = self.answer_down.val();
                        self.result_valid.d.next = true;
                        self.state.d.next = FramesState::Idle;
                    } else if !self.pool.ask_ok.val() {
                        self.result.d.next = self.answer_not_now.val();
                        self.result_valid.d.next = true;
                        self.state.d.next = FramesState::Idle;
                    } else if self.length.val() == 0 {
                        self.result_valid.d.next = true;
                        self.state.d.next = FramesState::Held;
                    } else {
                        self.state.d.next = FramesState::Start;
                    }
                }
            }
            FramesState::Start => {
                self.state.d.next = FramesState::Gather;
            }
            FramesState::Gather => {
                if self.gather.done.val() {
                    if self.gather.failed.val() {
                        self.result.d.next = self.answer_failed.val();
                    }
                    self.result_valid.d.next = true;
                    self.state.d.next = FramesState::Held;
                }
            }
            FramesState::Held => {
                if self.commit.val() {
                    self.state.d.next = FramesState::Commit;
                } else if self.abort.val() {
                    self.state.d.next = FramesState::Abort;
                }
            }
            FramesState::Commit => {
                if self.pool.commit_done.val() {
                    self.state.d.next = FramesState::Idle;
                }
            }
            FramesState::Abort => {
                if self.pool.commit_done.val() {
                    self.state.d.next = FramesState::Idle;
                }
            }
            FramesState::MessageAsk => {
                if self.pool.ask_done.val() {
                    if self.pool.ask_down.val() {
                        self.status.d.next = self.status_down.val();
                        self.state.d.next = FramesState::MessageDone;
                    } else if !self.pool.ask_ok.val() {
                        self.status.d.next = self.status_busy.val();
                        self.state.d.next = FramesState::MessageDone;
                    } else {
                        self.state.d.next = FramesState::MessageRead;
                    }
                }
            }
            FramesState::MessageRead => {
                self.state.d.next = FramesState::MessagePush;
            }
            FramesState::MessagePush => {
                if self.pool.beat_ready.val() {
                    self.beat.d.next = self.beat.q.val() + 1;
                    if self.beat.q.val() == self.last_beat.val() {
                        self.state.d.next = FramesState::MessageCommit;
                    } else {
                        self.state.d.next = FramesState::MessageRead;
                    }
                }
            }
            FramesState::MessageCommit => {
                if self.pool.commit_done.val() {
                    self.sent.d.next = true;
                    self.state.d.next = FramesState::MessageDone;
                }
            }
            _ => {
                self.state.d.next = FramesState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = FramesState::Idle;
            self.result_valid.d.next = false;
            self.sent.d.next = false;
        }
    }
}
