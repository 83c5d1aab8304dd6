//! Middle stage: one frame whose payload is on its way, until the channel has it (contract 4.2,
//! 4.3, 4.5, 11.1).
//!
//! ```text
//! Idle -> Wait -> [Check ->] Drain -> Commit -> [Hand ->] Idle
//!           |                  `----> Abort --> [Hand ->] Idle
//!           `-> Commit (owed frame) | Check (no payload) | Abort (cancelled before it was read)
//! ```
//! The VI is checked when the payload is here (the call is begun a little before): an older frame
//! of it may have stopped it, and the message's number is given now, when it is certain that a
//! frame of it goes out. A frame that cannot go out drains into the pool and is aborted, since a
//! beat once offered must move.

use crate::desc::Cause;
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum CommitState {
    /// Waits for a frame.
    Idle,
    /// Waits for its payload.
    Wait,
    /// Call: CHECK.
    Check,
    /// Waits until the beats have moved.
    Drain,
    /// Hands the frame to the channel.
    Commit,
    /// Gives its chunks back.
    Abort,
    /// Hands the descriptor on.
    Hand,
}

#[derive(LogicBlock, Default)]
pub struct Commit {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse while `idle`: a frame with room in the pool.
    pub load: Signal<In, Bit>,
    /// It is not to go out.
    pub cancel: Signal<In, Bit>,
    /// Its payload was asked for.
    pub has_payload: Signal<In, Bit>,
    /// It is part of a message or an answer (else a control frame); of an RDMA write, or a read's
    /// request, so that a header of two beats goes ahead of the payload: address and handle of the
    /// message's first byte.
    pub is_part: Signal<In, Bit>,
    pub is_write: Signal<In, Bit>,
    pub is_request: Signal<In, Bit>,
    pub is_answer: Signal<In, Bit>,
    pub remote_address: Signal<In, Bits<64>>,
    pub remote_handle: Signal<In, Bits<32>>,
    /// Bytes of the message that went before.
    pub progress: Signal<In, Bits<19>>,
    pub kind: Signal<In, Bits<8>>,
    pub vi: Signal<In, Bits<16>>,
    pub peer_vi: Signal<In, Bits<16>>,
    pub connection: Signal<In, Bits<16>>,
    pub flags: Signal<In, Bits<8>>,
    pub word: Signal<In, Bits<32>>,
    /// Number of the frame in its message.
    pub fragment: Signal<In, Bits<7>>,
    /// It ends its message: the descriptor was popped.
    pub last: Signal<In, Bit>,
    pub reception: Signal<In, Bit>,
    pub unreliable: Signal<In, Bit>,
    pub bus: Signal<In, Bits<64>>,
    pub total: Signal<In, Bits<20>>,
    pub idle: Signal<Out, Bit>,
    /// The payload of `failing_vi` could not be read; its descriptor is not yet handed on.
    pub failing: Signal<Out, Bit>,
    /// Pulse: the payload of a message's frame is here.
    pub ready: Signal<Out, Bit>,
    pub call_valid: Signal<Out, Bit>,
    /// It is CHECK, and not nothing yet.
    pub call_go: Signal<Out, Bit>,
    pub call_counts: Signal<Out, Bit>,
    pub call_done: Signal<In, Bit>,
    pub connected: Signal<In, Bit>,
    pub ctx_message: Signal<In, Bits<8>>,
    // Payload.
    /// Pulse: all but its last beats is here.
    pub soon: Signal<In, Bit>,
    pub arrived: Signal<In, Bit>,
    pub fault: Signal<In, Bit>,
    pub take: Signal<Out, Bit>,
    pub beat_waits: Signal<In, Bit>,
    pub payload_beat: Signal<In, Bits<64>>,
    pub payload_last: Signal<In, Bit>,
    pub beat_valid: Signal<Out, Bit>,
    pub beat_ready: Signal<In, Bit>,
    pub beat_taken: Signal<Out, Bit>,
    pub beat_data: Signal<Out, Bits<64>>,
    // The pool.
    pub commit_valid: Signal<Out, Bit>,
    pub commit_abort: Signal<Out, Bit>,
    pub commit_done: Signal<In, Bit>,
    pub frame_kind: Signal<Out, Bits<8>>,
    pub frame_vi: Signal<Out, Bits<16>>,
    pub frame_peer_vi: Signal<Out, Bits<16>>,
    pub frame_connection: Signal<Out, Bits<16>>,
    pub frame_flags: Signal<Out, Bits<8>>,
    pub frame_unsequenced: Signal<Out, Bits<16>>,
    pub frame_word: Signal<Out, Bits<32>>,
    /// The end of a descriptor that was popped.
    pub retire: Signal<Out, Bit>,
    /// What is to be retired, if anything is, is this stage's.
    pub hands: Signal<Out, Bit>,
    pub retire_idle: Signal<In, Bit>,
    /// A descriptor that was not popped has failed: the first stage ends it.
    pub abort: Signal<Out, Bit>,
    pub abort_idle: Signal<In, Bit>,
    /// How the descriptor ends; see [`Cause`].
    pub cause: Signal<Out, Bits<4>>,
    pub partial: Signal<Out, Bit>,
    pub retire_bus: Signal<Out, Bits<64>>,
    pub retire_length: Signal<Out, Bits<20>>,
    pub retire_unreliable: Signal<Out, Bit>,
    /// There is no descriptor: it is an answer.
    pub retire_answer: Signal<Out, Bit>,
    /// See [`crate::desc::Verdict`].
    pub retire_operation: Signal<Out, Bits<2>>,
    state: DFF<CommitState>,
    cancelled: DFF<Bit>,
    payload: DFF<Bit>,
    is_data: DFF<Bit>,
    write_at: DFF<Bit>,
    request_at: DFF<Bit>,
    answer_at: DFF<Bit>,
    // Header beats to go; what they say.
    header: DFF<Bits<2>>,
    address_at: DFF<Bits<64>>,
    handle_at: DFF<Bits<32>>,
    kind_at: DFF<Bits<8>>,
    vi_at: DFF<Bits<16>>,
    peer_vi_at: DFF<Bits<16>>,
    connection_at: DFF<Bits<16>>,
    flags_at: DFF<Bits<8>>,
    word_at: DFF<Bits<32>>,
    fragment_at: DFF<Bits<7>>,
    message: DFF<Bits<8>>,
    last_at: DFF<Bit>,
    reception_at: DFF<Bit>,
    unreliable_at: DFF<Bit>,
    bus_at: DFF<Bits<64>>,
    total_at: DFF<Bits<20>>,
    fault_at: DFF<Bit>,
    dropped: DFF<Bit>,
    /// The frame is to be checked. The call was begun in Wait and is not answered; it was CHECK a
    /// cycle ago.
    is_checked: DFF<Bit>,
    early: DFF<Bit>,
    went: DFF<Bit>,
    /// The payload's last beat has moved.
    moved: DFF<Bit>,
    // The payload has arrived, or there is none; it is to be checked.
    here: Signal<Local, Bit>,
    checks: Signal<Local, Bit>,
    waits_for: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    goes: Signal<Local, Bit>,
    some_sent: Signal<Local, Bit>,
    all_moved: Signal<Local, Bit>,
    moving: Signal<Local, Bit>,
    waits: Signal<Local, Bit>,
    brings: Signal<Local, Bit>,
    in_header: Signal<Local, Bit>,
    header_left: Signal<Local, Bits<2>>,
    moves_last: Signal<Local, Bit>,
    drained: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
    bad: Signal<Local, Bit>,
    cause_done: Number<4, { Cause::Done as u64 }>,
    cause_data: Number<4, { Cause::Data as u64 }>,
}

impl Logic for Commit {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, cancelled, payload, is_data, kind_at, vi_at, peer_vi_at);
        dff_setup!(self, clock, connection_at, flags_at, word_at, fragment_at, message, last_at);
        dff_setup!(self, clock, reception_at, unreliable_at, bus_at, total_at, fault_at, dropped);
        dff_setup!(
            self, clock, moved, write_at, request_at, answer_at, header, address_at, handle_at
        );
        dff_setup!(self, clock, early, is_checked, went);
        self.idle.next = self.state.q.val() == CommitState::Idle;
        self.failing.next = self.fault_at.q.val() & (self.state.q.val() != CommitState::Idle);
        self.hands.next = self.state.q.val() == CommitState::Hand;
        self.frame_kind.next = self.kind_at.q.val();
        self.frame_vi.next = self.vi_at.q.val();
        self.frame_peer_vi.next = self.peer_vi_at.q.val();
        self.frame_connection.next = self.connection_at.q.val();
        self.frame_flags.next = self.flags_at.q.val();
        self.frame_unsequenced.next = (bit_cast::<16, 8>(self.message.q.val()) << 8)
            | bit_cast::<16, 7>(self.fragment_at.q.val());
        self.frame_word.next = self.word_at.q.val();
        self.some_sent.next = self.fragment_at.q.val() != 0;
        self.cause.next = self.cause_done.val();
        if self.fault_at.q.val() {
            self.cause.next = self.cause_data.val();
        }
        self.partial.next = self.some_sent.val();
        self.retire_bus.next = self.bus_at.q.val();
        self.retire_length.next = self.total_at.q.val();
        self.retire_unreliable.next = self.unreliable_at.q.val();
        self.retire_operation.next = bit_cast::<2, 1>(self.write_at.q.val().into());

        // Payload.
        self.here.next = (!self.payload.q.val()) | self.arrived.val();
        self.waits_for.next = (self.state.q.val() == CommitState::Wait) & self.is_checked.q.val();
        self.checks.next = self.waits_for.val() & self.here.val();
        self.ready.next =
            self.checks.val() & (!self.request_at.q.val()) & (!self.answer_at.q.val());
        self.retire_answer.next = self.answer_at.q.val();
        // The call is under way before the last beat is here; what it does is read in the cycle
        // before its answer. If the beat does not come in time, CHECK is a call of its own.
        self.begins.next = self.waits_for.val() & self.soon.val();
        self.goes.next = self.checks.val() | (self.state.q.val() == CommitState::Check);
        self.call_valid.next = self.goes.val() | self.begins.val() | self.early.q.val();
        self.call_go.next = self.goes.val();
        self.went.d.next = self.goes.val();
        if self.begins.val() {
            self.early.d.next = true;
        }
        if self.call_done.val() {
            self.early.d.next = false;
        }
        // A message has its number if a frame of it goes out; its end counts it.
        self.call_counts.next = self.last_at.q.val();
        if self.payload.q.val() & self.fault.val() {
            self.call_counts.next = self.some_sent.val();
        }
        self.in_header.next = self.header.q.val().any();
        self.all_moved.next =
            (!self.in_header.val()) & ((!self.payload.q.val()) | self.moved.q.val());
        self.open.next = (self.in_header.val() | self.payload.q.val())
            & (!self.all_moved.val())
            & ((self.state.q.val() == CommitState::Wait)
                | (self.state.q.val() == CommitState::Check)
                | (self.state.q.val() == CommitState::Drain));
        self.waits.next = self.in_header.val() | self.beat_waits.val();
        self.beat_valid.next = self.open.val() & self.waits.val();
        self.brings.next = self.open.val() & self.waits.val() & self.beat_ready.val();
        self.moving.next = self.brings.val() & (!self.in_header.val());
        self.beat_taken.next = self.moving.val();
        self.beat_data.next = self.payload_beat.val();
        if self.header.q.val().get_bit(1) {
            self.beat_data.next = self.address_at.q.val();
        } else if self.header.q.val().get_bit(0) {
            self.beat_data.next = bit_cast::<64, 32>(self.handle_at.q.val())
                | (bit_cast::<64, 20>(self.total_at.q.val()) << 32);
        }
        self.header_left.next = self.header.q.val() >> 1;
        if self.brings.val() {
            self.header.d.next = self.header_left.val();
        }
        self.moves_last.next = self.moving.val() & self.payload_last.val();
        self.drained.next = self.all_moved.val() | self.moves_last.val();
        if self.moves_last.val() {
            self.moved.d.next = true;
        }
        self.take.next = false;
        self.bad.next = self.cancelled.q.val() | self.fault_at.q.val() | self.dropped.q.val();
        self.commit_valid.next = (self.state.q.val() == CommitState::Commit)
            | (self.state.q.val() == CommitState::Abort);
        self.commit_abort.next = self.state.q.val() == CommitState::Abort;
        self.retire.next = false;
        self.abort.next = false;

        match self.state.q.val() {
            CommitState::Idle => {
                self.cancelled.d.next = self.cancel.val();
                self.payload.d.next = self.has_payload.val();
                self.is_data.d.next = self.is_part.val();
                self.write_at.d.next = self.is_write.val();
                self.request_at.d.next = self.is_request.val();
                self.answer_at.d.next = self.is_answer.val();
                self.header.d.next = 0.into();
                if (self.is_write.val() | self.is_request.val()) & (!self.cancel.val()) {
                    self.header.d.next = 2.into();
                }
                self.address_at.d.next =
                    self.remote_address.val() + bit_cast::<64, 19>(self.progress.val());
                self.handle_at.d.next = self.remote_handle.val();
                self.kind_at.d.next = self.kind.val();
                self.vi_at.d.next = self.vi.val();
                self.peer_vi_at.d.next = self.peer_vi.val();
                self.connection_at.d.next = self.connection.val();
                self.flags_at.d.next = self.flags.val();
                self.word_at.d.next = self.word.val();
                self.fragment_at.d.next = self.fragment.val();
                self.last_at.d.next = self.last.val();
                self.reception_at.d.next = self.reception.val();
                self.unreliable_at.d.next = self.unreliable.val();
                self.bus_at.d.next = self.bus.val();
                self.total_at.d.next = self.total.val();
                self.fault_at.d.next = false;
                self.dropped.d.next = false;
                self.moved.d.next = false;
                self.is_checked.d.next = self.is_part.val() & (!self.cancel.val());
                if self.load.val() {
                    self.state.d.next = CommitState::Wait;
                }
            }
            CommitState::Wait => {
                if self.here.val() {
                    self.fault_at.d.next =
                        self.payload.q.val() & self.fault.val() & (!self.cancelled.q.val());
                    self.state.d.next = CommitState::Drain;
                    if self.checks.val() {
                        self.state.d.next = CommitState::Check;
                    }
                }
            }
            CommitState::Check => {
                if self.call_done.val() & self.went.q.val() {
                    self.message.d.next = self.ctx_message.val();
                    self.dropped.d.next = !self.connected.val();
                    self.state.d.next = CommitState::Drain;
                    if self.drained.val() & self.connected.val() & (!self.fault_at.q.val()) {
                        self.state.d.next = CommitState::Commit;
                    }
                }
            }
            CommitState::Drain => {
                if self.drained.val() {
                    self.state.d.next = CommitState::Commit;
                    if self.bad.val() {
                        self.state.d.next = CommitState::Abort;
                    }
                }
            }
            CommitState::Commit => {
                if self.commit_done.val() {
                    self.take.next = self.payload.q.val();
                    self.state.d.next = CommitState::Idle;
                    if self.is_data.q.val() & self.last_at.q.val() & (!self.reception_at.q.val()) {
                        self.state.d.next = CommitState::Hand;
                    }
                }
            }
            CommitState::Abort => {
                if self.commit_done.val() {
                    self.take.next = self.payload.q.val();
                    self.state.d.next = CommitState::Idle;
                    if self.fault_at.q.val() & (!self.dropped.q.val()) {
                        self.state.d.next = CommitState::Hand;
                    }
                }
            }
            CommitState::Hand => {
                if self.last_at.q.val() | self.answer_at.q.val() {
                    self.retire.next = self.retire_idle.val();
                    if self.retire_idle.val() {
                        self.state.d.next = CommitState::Idle;
                    }
                } else {
                    self.abort.next = self.abort_idle.val();
                    if self.abort_idle.val() {
                        self.state.d.next = CommitState::Idle;
                    }
                }
            }
            _ => {
                self.state.d.next = CommitState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = CommitState::Idle;
            self.early.d.next = false;
        }
    }
}
