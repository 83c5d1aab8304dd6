//! First stage: which VI, what for, its descriptor, room in the pool, and the pop (contract 4.1,
//! 4.4). It decides; the data stand in the blocks beside it.
//!
//! ```text
//! Idle -> Get -> Choose -> Resolve -> Size -> Ask -> Ready -> Pop -> [Await ->] Idle   (last frame)
//!                  |                                   `----> Save -> Idle             (other frames)
//!                  |-> Ask -> Ready -> OwedWait -> Sent -> Idle                        (owed frame)
//!                  `-> Reach -> Finish -> Retiring -> Idle             (an acknowledged Reception send)
//! no room:           Ask -> Give -> Idle
//! error:             ... -> [Cancel ->] Fail -> [Pop ->] Retiring -> Idle
//! an older frame of the VI failed: Ready -> Cancel -> Give -> Idle
//! pop that needs Next again:       Pop -> Reread -> RereadWait -> Pop
//! ```
//! A frame goes on from Ready when the middle stage is empty: the pop comes before the last frame's
//! commit and after everything about older frames is known. The VI is scheduled again by POP or
//! SAVE, so that this stage takes its next message or frame while the payload of this one comes.

use crate::desc::Cause;
use crate::leaf::Number;
use nic_regs::frame::Type;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum FetchState {
    /// Waits for work, a message or a fence.
    Idle,
    /// Reads the VI's context.
    Get,
    /// Chooses what to do for it.
    Choose,
    /// Waits until the message's length is known.
    Resolve,
    /// Checks it.
    Size,
    /// It is too long: waits whether the segments are allowed.
    TooLong,
    /// Asks the pool.
    Ask,
    /// Waits for segments, read requests and the stages behind.
    Ready,
    /// Pops the head.
    Pop,
    /// Starts reading Next again.
    Reread,
    /// Waits for it.
    RereadWait,
    /// The popped send waits for its ViAck.
    Await,
    /// Stores the message's progress.
    Save,
    /// Hands the middle stage a frame to be aborted.
    Cancel,
    /// Waits for the stages behind, to end a failed descriptor.
    Fail,
    /// Waits for the bus address of a descriptor.
    Reach,
    /// Waits for the stages behind, to end an acknowledged send.
    Finish,
    /// Waits for the end of the descriptor.
    Retiring,
    /// Waits until the owed frame is in the channel.
    OwedWait,
    /// Clears the owed bit.
    Sent,
    /// Gives the VI back to the ring.
    Give,
    /// Waits for the end of a message.
    Message,
}

#[derive(LogicBlock, Default)]
pub struct Fetch {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub pause: Signal<In, Bit>,
    pub idle: Signal<Out, Bit>,
    /// A VI is in hand.
    pub holding: Signal<Out, Bit>,
    pub message_valid: Signal<In, Bit>,
    pub message_start: Signal<Out, Bit>,
    pub message_done: Signal<In, Bit>,
    pub work_valid: Signal<In, Bit>,
    pub work_vi: Signal<In, Bits<16>>,
    pub take: Signal<Out, Bit>,
    // The VI table.
    pub call_valid: Signal<Out, Bit>,
    pub call_op: Signal<Out, Bits<3>>,
    pub call_done: Signal<In, Bit>,
    pub call_connected: Signal<In, Bit>,
    pub need_next: Signal<In, Bit>,
    /// A frame of the message was sent before this end of it.
    pub call_in_progress: Signal<Out, Bit>,
    pub call_owed: Signal<Out, Bits<3>>,
    pub call_awaits: Signal<Out, Bit>,
    // The context.
    pub load: Signal<Out, Bit>,
    pub new_number: Signal<Out, Bits<16>>,
    pub got: Signal<Out, Bit>,
    pub due: Signal<In, Bit>,
    pub same: Signal<In, Bit>,
    pub number: Signal<In, Bits<16>>,
    pub connected: Signal<In, Bit>,
    pub some: Signal<In, Bit>,
    pub in_progress: Signal<In, Bit>,
    pub ctx_awaiting: Signal<In, Bit>,
    pub awaiting: Signal<In, Bit>,
    pub acked: Signal<In, Bit>,
    pub owed: Signal<In, Bits<3>>,
    pub unreliable: Signal<In, Bit>,
    pub reception: Signal<In, Bit>,
    // The descriptor.
    pub desc_start: Signal<Out, Bit>,
    pub desc_op: Signal<Out, Bits<2>>,
    pub desc_idle: Signal<In, Bit>,
    pub desc_done: Signal<In, Bit>,
    pub desc_outcome: Signal<In, Bits<3>>,
    pub desc_known: Signal<In, Bit>,
    pub next_ready: Signal<In, Bit>,
    // The frame.
    pub too_long: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    pub empty: Signal<In, Bit>,
    pub kind: Signal<Out, Bits<8>>,
    pub is_data: Signal<Out, Bit>,
    pub sequenced: Signal<Out, Bit>,
    pub sized: Signal<Out, Bit>,
    pub ask_valid: Signal<Out, Bit>,
    pub ask_done: Signal<In, Bit>,
    pub ask_ok: Signal<In, Bit>,
    pub ask_down: Signal<In, Bit>,
    /// Has a good answer of the pool whose frame is not in the middle stage yet, or ends a
    /// descriptor itself: no push may come between.
    pub engaged: Signal<Out, Bit>,
    pub gather_start: Signal<Out, Bit>,
    pub gather_go: Signal<Out, Bit>,
    pub gather_cancel: Signal<Out, Bit>,
    pub gather_issued: Signal<In, Bit>,
    // The stages behind.
    pub commit_idle: Signal<In, Bit>,
    pub commit_load: Signal<Out, Bit>,
    pub commit_cancel: Signal<Out, Bit>,
    pub has_payload: Signal<Out, Bit>,
    pub failing: Signal<In, Bit>,
    pub failing_vi: Signal<In, Bits<16>>,
    pub rescue: Signal<In, Bit>,
    pub rescue_partial: Signal<In, Bit>,
    pub rescue_idle: Signal<Out, Bit>,
    pub retire_idle: Signal<In, Bit>,
    pub retire_error: Signal<In, Bit>,
    pub retire: Signal<Out, Bit>,
    /// How the descriptor in hand ends; see [`Cause`].
    pub cause: Signal<Out, Bits<4>>,
    pub partial: Signal<Out, Bit>,
    state: DFF<FetchState>,
    kind_at: DFF<Bits<8>>,
    is_data_at: DFF<Bit>,
    sequenced_at: DFF<Bit>,
    cause_at: DFF<Bits<4>>,
    /// The descriptor engine holds this VI's head, resolved.
    held: DFF<Bit>,
    reaching: DFF<Bit>,
    reserved: DFF<Bit>,
    started: DFF<Bit>,
    doubt: DFF<Bit>,
    rescue_at: DFF<Bit>,
    rescue_vi: DFF<Bits<16>>,
    rescue_part: DFF<Bit>,
    rescuing: DFF<Bit>,
    rescuing_part: DFF<Bit>,
    may_take: Signal<Local, Bit>,
    good: Signal<Local, Bit>,
    lost: Signal<Local, Bit>,
    behind_free: Signal<Local, Bit>,
    may_go: Signal<Local, Bit>,
    asked_all: Signal<Local, Bit>,
    resolved: Signal<Local, Bit>,
    kept: Signal<Local, Bit>,
    starts: Signal<Local, Bit>,
    kind_data: Number<8, { Type::Data as u64 }>,
    kind_ack: Number<8, { Type::ViAck as u64 }>,
    kind_refuse: Number<8, { Type::ViRefuse as u64 }>,
    kind_fin: Number<8, { Type::Fin as u64 }>,
    op_save: Number<3, 1>,
    op_pop: Number<3, 2>,
    op_await: Number<3, 3>,
    op_sent: Number<3, 6>,
    op_reach: Number<2, 1>,
    op_reread: Number<2, 2>,
    cause_done: Number<4, { Cause::Done as u64 }>,
    cause_descriptor: Number<4, { Cause::Descriptor as u64 }>,
    cause_host_read: Number<4, { Cause::HostRead as u64 }>,
    cause_length: Number<4, { Cause::Length as u64 }>,
    cause_data: Number<4, { Cause::Data as u64 }>,
}

impl Logic for Fetch {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, kind_at, is_data_at, sequenced_at, cause_at, held, reaching);
        dff_setup!(self, clock, reserved, started, doubt, rescue_at, rescue_vi, rescue_part);
        dff_setup!(self, clock, rescuing, rescuing_part);
        self.idle.next = (self.state.q.val() == FetchState::Idle) & (!self.rescue_at.q.val());
        self.holding.next = self.state.q.val() != FetchState::Idle;
        self.kind.next = self.kind_at.q.val();
        self.is_data.next = self.is_data_at.q.val();
        self.sequenced.next = self.sequenced_at.q.val();
        self.sized.next = self.state.q.val() == FetchState::Size;
        self.cause.next = self.cause_at.q.val();
        self.rescue_idle.next = !self.rescue_at.q.val();
        self.good.next = self.cause_at.q.val() == self.cause_done.val();
        self.lost.next = (self.cause_at.q.val() == self.cause_descriptor.val())
            | (self.cause_at.q.val() == self.cause_host_read.val());
        self.partial.next = self.in_progress.val();
        if self.rescuing.q.val() {
            self.partial.next = self.rescuing_part.q.val();
        }

        // Taking a VI: not while the end of an older descriptor may stop it.
        self.may_take.next = (self.state.q.val() == FetchState::Idle)
            & (!self.pause.val())
            & (!self.message_valid.val())
            & (!self.rescue_at.q.val())
            & (!self.failing.val())
            & (!self.retire_error.val())
            & self.desc_idle.val();
        self.take.next = self.may_take.val() & self.work_valid.val();
        self.load.next = self.may_take.val() & self.work_valid.val();
        self.new_number.next = self.work_vi.val();
        self.message_start.next = false;

        // Calls. What POP counts are messages that end here without a frame of their own: the
        // middle stage has counted the others.
        self.got.next = (self.state.q.val() == FetchState::Get) & self.call_done.val();
        self.call_valid.next = (self.state.q.val() == FetchState::Get)
            | ((self.state.q.val() == FetchState::Pop) & self.next_ready.val())
            | (self.state.q.val() == FetchState::Await)
            | (self.state.q.val() == FetchState::Save)
            | (self.state.q.val() == FetchState::Sent)
            | (self.state.q.val() == FetchState::Give);
        self.call_op.next = 0.into();
        self.call_in_progress.next = true;
        self.call_owed.next = 0.into();
        self.call_awaits.next = self.state.q.val() == FetchState::Await;
        if self.state.q.val() == FetchState::Pop {
            self.call_op.next = self.op_pop.val();
            self.call_in_progress.next =
                self.in_progress.val() & (!self.good.val()) & (!self.rescuing.q.val());
        } else if self.state.q.val() == FetchState::Await {
            self.call_op.next = self.op_await.val();
        } else if self.state.q.val() == FetchState::Save {
            self.call_op.next = self.op_save.val();
        } else if self.state.q.val() == FetchState::Sent {
            self.call_op.next = self.op_sent.val();
            self.call_owed.next = self.owed.val();
        } else if self.state.q.val() == FetchState::Give {
            self.call_op.next = self.op_sent.val();
        }

        // The descriptor.
        self.kept.next = self.held.q.val() & self.same.val() & (!self.ctx_awaiting.val());
        self.starts.next =
            self.got.val() & (self.rescuing.q.val() | (self.due.val() & (!self.kept.val())));
        self.desc_start.next = self.starts.val() | (self.state.q.val() == FetchState::Reread);
        self.desc_op.next = 0.into();
        if (self.state.q.val() == FetchState::Reread)
            | (self.state.q.val() == FetchState::RereadWait)
        {
            self.desc_op.next = self.op_reread.val();
        } else if (self.got.val() & (self.ctx_awaiting.val() | self.rescuing.q.val()))
            | self.reaching.q.val()
        {
            self.desc_op.next = self.op_reach.val();
        }
        self.resolved.next = self.desc_done.val() & (self.desc_outcome.val() == 0);

        // The payload: its pieces are cut while the pool is asked, its requests wait for the answer.
        self.gather_start.next = ((self.state.q.val() == FetchState::Ask)
            | (self.state.q.val() == FetchState::Ready))
            & self.is_data_at.q.val()
            & (!self.empty.val())
            & (!self.started.q.val())
            & (self.held.q.val() | (self.resolved.val() & (!self.reaching.q.val())));
        if self.gather_start.val() {
            self.started.d.next = true;
        }
        self.gather_go.next = self.reserved.q.val();
        self.gather_cancel.next = false;
        self.asked_all.next = (!self.is_data_at.q.val())
            | self.empty.val()
            | (self.started.q.val() & self.gather_issued.val());
        self.has_payload.next = self.started.q.val();
        self.engaged.next = self.reserved.q.val()
            | (self.state.q.val() == FetchState::Fail)
            | (self.state.q.val() == FetchState::Pop)
            | (self.state.q.val() == FetchState::Reread)
            | (self.state.q.val() == FetchState::RereadWait)
            | (self.state.q.val() == FetchState::Finish);
        self.ask_valid.next = self.state.q.val() == FetchState::Ask;

        // The stages behind.
        self.behind_free.next = self.commit_idle.val() & self.retire_idle.val();
        self.may_go.next = self.commit_idle.val() & (!self.retire_error.val());
        self.commit_load.next = false;
        self.commit_cancel.next = self.state.q.val() == FetchState::Cancel;
        self.retire.next = false;
        if self.failing.val() & (self.failing_vi.val() == self.number.val()) {
            self.doubt.d.next = true;
        }
        if self.rescue.val() {
            self.rescue_at.d.next = true;
            self.rescue_vi.d.next = self.failing_vi.val();
            self.rescue_part.d.next = self.rescue_partial.val();
        }

        match self.state.q.val() {
            FetchState::Idle => {
                self.reserved.d.next = false;
                self.started.d.next = false;
                self.reaching.d.next = false;
                self.rescuing.d.next = false;
                self.doubt.d.next = false;
                self.cause_at.d.next = self.cause_done.val();
                if self.rescue_at.q.val() {
                    self.load.next = self.desc_idle.val();
                    self.new_number.next = self.rescue_vi.q.val();
                    self.rescuing_part.d.next = self.rescue_part.q.val();
                    if self.desc_idle.val() {
                        self.held.d.next = false;
                        self.rescuing.d.next = true;
                        self.rescue_at.d.next = false;
                        self.state.d.next = FetchState::Get;
                    }
                } else if self.pause.val() {
                    // What is revoked behind the fence must be looked up again.
                    self.held.d.next = false;
                } else if self.message_valid.val() {
                    self.message_start.next = self.commit_idle.val();
                    if self.commit_idle.val() {
                        self.state.d.next = FetchState::Message;
                    }
                } else if self.take.val() {
                    self.state.d.next = FetchState::Get;
                }
            }
            FetchState::Get => {
                if self.call_done.val() {
                    self.held.d.next = self.kept.val();
                    self.reaching.d.next = self.ctx_awaiting.val() | self.rescuing.q.val();
                    self.state.d.next = FetchState::Choose;
                }
            }
            FetchState::Choose => {
                self.is_data_at.d.next = false;
                self.sequenced_at.d.next = true;
                self.kind_at.d.next = self.kind_data.val();
                self.state.d.next = FetchState::Idle;
                if self.rescuing.q.val() {
                    if self.connected.val() & self.some.val() {
                        self.state.d.next = FetchState::Reach;
                    }
                } else if self.owed.val() != 0 {
                    self.kind_at.d.next = self.kind_fin.val();
                    if self.owed.val().get_bit(0) {
                        self.kind_at.d.next = self.kind_ack.val();
                    } else if self.owed.val().get_bit(1) {
                        self.kind_at.d.next = self.kind_refuse.val();
                    }
                    self.state.d.next = FetchState::Ask;
                } else if self.connected.val() & self.awaiting.val() {
                    if self.acked.val() {
                        self.state.d.next = FetchState::Reach;
                    }
                } else if self.connected.val() & self.some.val() {
                    self.is_data_at.d.next = true;
                    self.sequenced_at.d.next = !self.unreliable.val();
                    self.state.d.next = FetchState::Resolve;
                }
            }
            FetchState::Resolve => {
                if self.held.q.val() | self.desc_known.val() {
                    self.state.d.next = FetchState::Size;
                } else if self.desc_done.val() {
                    self.state.d.next = FetchState::Fail;
                }
            }
            FetchState::Size => {
                self.state.d.next = FetchState::Ask;
                if self.too_long.val() {
                    self.state.d.next = FetchState::TooLong;
                }
            }
            FetchState::TooLong => {
                if self.held.q.val() {
                    self.cause_at.d.next = self.cause_length.val();
                    self.state.d.next = FetchState::Fail;
                } else if !self.good.val() {
                    self.state.d.next = FetchState::Fail;
                }
            }
            FetchState::Ask => {
                if self.ask_done.val() {
                    self.state.d.next = FetchState::Give;
                    self.gather_cancel.next = true;
                    if self.ask_ok.val() & (!self.ask_down.val()) {
                        self.gather_cancel.next = false;
                        self.reserved.d.next = true;
                        self.state.d.next = FetchState::Ready;
                    } else if self.ask_down.val() & (!self.is_data_at.q.val()) {
                        self.state.d.next = FetchState::Sent;
                    }
                }
            }
            FetchState::Ready => {
                if (self.asked_all.val() | (!self.good.val()))
                    & (self.held.q.val() | (!self.good.val()) | (!self.is_data_at.q.val()))
                    & self.may_go.val()
                {
                    if self.doubt.q.val() | (!self.good.val()) {
                        self.state.d.next = FetchState::Cancel;
                    } else if !self.is_data_at.q.val() {
                        self.commit_load.next = true;
                        self.state.d.next = FetchState::OwedWait;
                    } else if self.last.val() {
                        self.state.d.next = FetchState::Pop;
                    } else {
                        self.state.d.next = FetchState::Save;
                    }
                }
            }
            FetchState::Pop => {
                if self.call_done.val() {
                    self.held.d.next = false;
                    if self.need_next.val() {
                        self.state.d.next = FetchState::Reread;
                    } else if !self.good.val() {
                        self.retire.next = self.call_connected.val();
                        self.state.d.next = FetchState::Retiring;
                    } else if !self.call_connected.val() {
                        self.state.d.next = FetchState::Cancel;
                    } else if self.reception.val() {
                        self.state.d.next = FetchState::Await;
                    } else {
                        self.commit_load.next = true;
                        self.state.d.next = FetchState::Idle;
                    }
                }
            }
            FetchState::Reread => {
                self.state.d.next = FetchState::RereadWait;
            }
            FetchState::RereadWait => {
                if self.desc_done.val() {
                    self.state.d.next = FetchState::Pop;
                }
            }
            FetchState::Await => {
                if self.call_done.val() {
                    self.commit_load.next = true;
                    self.state.d.next = FetchState::Idle;
                }
            }
            FetchState::Save => {
                if self.call_done.val() {
                    self.commit_load.next = self.call_connected.val();
                    self.state.d.next = FetchState::Idle;
                    if !self.call_connected.val() {
                        self.state.d.next = FetchState::Cancel;
                    }
                }
            }
            FetchState::Cancel => {
                self.commit_load.next = true;
                self.state.d.next = FetchState::Give;
                if !self.good.val() {
                    self.state.d.next = FetchState::Fail;
                }
            }
            FetchState::Fail => {
                if self.behind_free.val() {
                    if self.doubt.q.val() {
                        self.state.d.next = FetchState::Give;
                    } else if self.lost.val() {
                        self.retire.next = true;
                        self.state.d.next = FetchState::Retiring;
                    } else {
                        self.state.d.next = FetchState::Pop;
                    }
                }
            }
            FetchState::Reach => {
                if !self.good.val() {
                    self.state.d.next = FetchState::Fail;
                } else if self.resolved.val() {
                    self.state.d.next = FetchState::Finish;
                    if self.rescuing.q.val() {
                        self.cause_at.d.next = self.cause_data.val();
                        self.state.d.next = FetchState::Fail;
                    }
                }
            }
            FetchState::Finish => {
                self.retire.next = self.behind_free.val();
                if self.behind_free.val() {
                    self.state.d.next = FetchState::Retiring;
                }
            }
            FetchState::Retiring => {
                if self.retire_idle.val() {
                    self.state.d.next = FetchState::Idle;
                }
            }
            FetchState::OwedWait => {
                if self.commit_idle.val() {
                    self.state.d.next = FetchState::Sent;
                }
            }
            FetchState::Sent => {
                if self.call_done.val() {
                    self.state.d.next = FetchState::Idle;
                }
            }
            FetchState::Give => {
                if self.call_done.val() {
                    self.state.d.next = FetchState::Idle;
                }
            }
            FetchState::Message => {
                if self.message_done.val() {
                    self.state.d.next = FetchState::Idle;
                }
            }
            _ => {
                self.state.d.next = FetchState::Idle;
            }
        }
        if self.desc_done.val() & (self.state.q.val() != FetchState::RereadWait) {
            self.held.d.next = self.resolved.val()
                & (!self.reaching.q.val())
                & (self.state.q.val() != FetchState::Idle)
                & (self.state.q.val() != FetchState::Give);
            if !self.resolved.val() {
                self.cause_at.d.next = bit_cast::<4, 3>(self.desc_outcome.val());
            }
        }
        if self.reset.val() {
            self.state.d.next = FetchState::Idle;
            self.held.d.next = false;
            self.rescue_at.d.next = false;
        }
    }
}
