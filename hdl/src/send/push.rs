//! Pushes whose data is here: sends them without a look at memory (contract 2.7, 2.8).
//!
//! ```text
//! vi --> records (FIFO) --> front --> Idle -> Ask -> Call -> Send -> Commit -> Hand -> Idle
//! cq --> Line                          |       |---> Pause -> Idle      (no room: tries again)
//!                                      `-------`---> Return -> Idle     (a fence, too long, no room for too long)
//! ```
//! The record in front is a register, so that the question comes from registers. One that comes when nothing
//! waits passes the FIFO by, and has its turn decided in the cycle in which it comes: Ask is the next one.
//!
//! The VI has nothing else to send meanwhile. The pool is asked at once, while the token is looked
//! up. The call PUSH, which is begun beside the question and decided by its answer, counts the
//! message, keeps the token for the ViAck, and lets the VI be scheduled again: from here on the frame
//! has its place in the channel. A token that cannot be reached stops the VI, with its chunks given
//! back. A push that cannot go goes back to the head of its queue, where the first stage finds it.
//!
//! While a push is in flight the first stage does not ask the pool (`wants`), so that the frames of
//! both come in the order of their answers. The next push follows at once if the first stage does not
//! want to ask.

use super::{Line, PushHead, PushLookup};
use crate::ifs::{PushServer, TptClient};
use crate::leaf::Number;
use nic_regs::frame::flag;
use nic_regs::vi::{Reliability, State};
use rust_hdl::prelude::*;

/// A message of one frame.
const WHOLE: u8 = flag::FIRST | flag::LAST;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum PushState {
    /// Waits for a push, and for its turn.
    Idle,
    /// Waits for the pool's answer.
    Ask,
    /// Call: PUSH.
    Call,
    /// Brings the beats.
    Send,
    /// Hands the frame to the channel, or gives its chunks back.
    Commit,
    /// Hands the descriptor on, if the last stage was not free before.
    Hand,
    /// Waits a little for room; the first stage may ask meanwhile.
    Pause,
    /// Call: UNPUSH.
    Return,
}

#[derive(LogicBlock, Default)]
pub struct Push {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub words: PushServer,
    /// A fence waits: nothing new, and what waits goes back.
    pub pause: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub idle: Signal<Out, Bit>,
    // What `vi` says: see `ViSendClient`.
    pub valid: Signal<In, Bit>,
    /// Only with `valid`.
    pub inline: Signal<In, Bit>,
    pub slot: Signal<In, Bits<3>>,
    pub vi: Signal<In, Bits<16>>,
    pub token: Signal<In, Bits<47>>,
    pub domain: Signal<In, Bits<8>>,
    pub tag: Signal<In, Bits<16>>,
    pub level: Signal<In, Bits<3>>,
    pub peer: Signal<In, Bits<8>>,
    pub max_transfer: Signal<In, Bits<20>>,
    /// The pool and the stages behind are free of frames of the first stage, and no end of a
    /// descriptor may stop a VI.
    pub send_slot: Signal<In, Bit>,
    /// And would not take it from the first stage.
    pub chain: Signal<In, Bit>,
    /// A push waits for its turn or has it.
    pub wants: Signal<Out, Bit>,
    /// It has it: the pool is this block's.
    pub owns: Signal<Out, Bit>,
    pub tpt: TptClient,
    // The pool.
    pub ask_valid: Signal<Out, Bit>,
    pub ask_done: Signal<In, Bit>,
    pub ask_ok: Signal<In, Bit>,
    pub ask_down: Signal<In, Bit>,
    pub sequenced: Signal<Out, Bit>,
    pub to_peer: Signal<Out, Bits<8>>,
    pub length: Signal<Out, Bits<13>>,
    pub beat_valid: Signal<Out, Bit>,
    pub beat_data: Signal<Out, Bits<64>>,
    pub beat_ready: Signal<In, Bit>,
    pub commit_valid: Signal<Out, Bit>,
    pub commit_abort: Signal<Out, Bit>,
    pub commit_done: Signal<In, Bit>,
    pub peer_vi: Signal<Out, Bits<16>>,
    pub connection: Signal<Out, Bits<16>>,
    pub flags: Signal<Out, Bits<8>>,
    pub unsequenced: Signal<Out, Bits<16>>,
    pub word: Signal<Out, Bits<32>>,
    // The VI table.
    pub call_valid: Signal<Out, Bit>,
    /// What it is: UNPUSH, PUSH, or nothing yet.
    pub call_back: Signal<Out, Bit>,
    pub call_go: Signal<Out, Bit>,
    pub call_vi: Signal<Out, Bits<16>>,
    pub call_token: Signal<Out, Bits<47>>,
    pub call_done: Signal<In, Bit>,
    pub ctx_state: Signal<In, Bits<2>>,
    pub ctx_peer_vi: Signal<In, Bits<16>>,
    pub ctx_connection: Signal<In, Bits<16>>,
    pub ctx_message: Signal<In, Bits<8>>,
    // The last stage.
    pub retire: Signal<Out, Bit>,
    pub retire_idle: Signal<In, Bit>,
    pub retire_bus: Signal<Out, Bits<64>>,
    /// The token was right.
    pub reached_now: Signal<Out, Bit>,
    pub unreliable: Signal<Out, Bit>,
    /// Pulse: the descriptor is known.
    pub checked: Signal<Out, Bit>,
    head: PushHead,
    lookup: PushLookup,
    checked_out: DFF<Bit>,
    line: Line,
    state: DFF<PushState>,
    peer_vi_at: DFF<Bits<16>>,
    connection_at: DFF<Bits<16>>,
    message: DFF<Bits<8>>,
    dropped: DFF<Bit>,
    returned: DFF<Bit>,
    /// The call was begun in Ask and is not answered; it was in this try; it was PUSH a cycle ago.
    early: DFF<Bit>,
    tried: DFF<Bit>,
    went: DFF<Bit>,
    unpushed: Signal<Local, Bit>,
    to_retire: Signal<Local, Bit>,
    hands: Signal<Local, Bit>,
    chains: Signal<Local, Bit>,
    tries: DFF<Bits<6>>,
    pauses: DFF<Bits<3>>,
    record: Signal<Local, Bits<110>>,
    slot_at: Signal<Local, Bits<3>>,
    level_at: Signal<Local, Bits<3>>,
    comes: Signal<Local, Bit>,
    in_data: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    returns: Signal<Local, Bit>,
    good: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    level_flags: Signal<Local, Bits<8>>,
    connected: Number<2, { State::Connected as u64 }>,
    level_unreliable: Number<3, { Reliability::Unreliable as u64 }>,
    level_reception: Number<3, { Reliability::Reception as u64 }>,
    flags_sequenced: Number<8, { (WHOLE | flag::SEQUENCED) as u64 }>,
    flags_reception: Number<8, { (WHOLE | flag::SEQUENCED | flag::RECEPTION) as u64 }>,
    flags_unsequenced: Number<8, { WHOLE as u64 }>,
    flag_immediate: Number<8, { flag::IMMEDIATE as u64 }>,
}

impl Logic for Push {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, peer_vi_at, connection_at, message, dropped, returned);
        dff_setup!(self, clock, tries, pauses, checked_out, early, tried, went);
        clock!(self, clock, head, lookup, line);
        TptClient::link(&mut self.tpt, &mut self.lookup.tpt);
        PushServer::link(&mut self.words, &mut self.line.words);
        self.line.reset.next = self.reset.val();
        self.head.reset.next = self.reset.val();
        self.lookup.reset.next = self.reset.val();
        // Records: VI 9:0, slot 12:10, token 59:13, domain 65:60, tag 81:66, level 84:82, peer 90:85,
        // transfer 109:91.
        self.head.fields.next = bit_cast::<110, 10>(self.vi.val().get_bits::<10>(0))
            | (bit_cast::<110, 3>(self.slot.val()) << 10)
            | (bit_cast::<110, 47>(self.token.val()) << 13)
            | (bit_cast::<110, 6>(self.domain.val().get_bits::<6>(0)) << 60)
            | (bit_cast::<110, 16>(self.tag.val()) << 66)
            | (bit_cast::<110, 3>(self.level.val()) << 82)
            | (bit_cast::<110, 6>(self.peer.val().get_bits::<6>(0)) << 85)
            | (bit_cast::<110, 19>(self.max_transfer.val().get_bits::<19>(0)) << 91);
        self.comes.next = self.inline.val();
        self.head.comes.next = self.comes.val();
        self.head.length.next = self.line.length_now.val();
        self.record.next = self.head.record.val();
        self.slot_at.next = self.record.val().get_bits::<3>(10);
        self.level_at.next = self.record.val().get_bits::<3>(82);
        self.ready.next = (!self.head.full.val()) & (!self.pause.val());
        self.in_data.next =
            (self.state.q.val() == PushState::Call) | (self.state.q.val() == PushState::Send);
        // Not in Return, which needs no turn: a frame of the first stage may be on its way.
        self.owns.next = (self.state.q.val() == PushState::Ask)
            | self.in_data.val()
            | (self.state.q.val() == PushState::Commit)
            | (self.state.q.val() == PushState::Hand);
        self.wants.next = self.head.valid.val() | (self.state.q.val() != PushState::Idle);
        // A push that comes in the first cycle of a fence (`ready` is looked at a cycle before) is older than it.
        self.idle.next = !(self.wants.val() | self.comes.val());

        // Word 1 is there before the push is posted.
        self.line.open.next = !self.in_data.val();
        self.line.slot.next = self.head.following.val().get_bits::<3>(10);
        if self.in_data.val() {
            self.line.slot.next = self.slot_at.val();
        }
        self.line.ready.next = self.beat_ready.val();

        // Whether the one in front may go; it must go back if it may not. One that comes now may (`idle`
        // tells of it), but for its length, which Ask looks at.
        self.returns.next = (self.state.q.val() == PushState::Idle)
            & self.head.valid.val()
            & (self.pause.val() | self.head.too_long.val() | self.tries.q.val().get_bit(5));
        self.begins.next = (self.state.q.val() == PushState::Idle)
            & (self.head.valid.val() | self.comes.val())
            & (!self.returns.val())
            & self.send_slot.val();
        self.checked.next = self.checked_out.q.val();

        // The token.
        self.lookup.token.next = self.record.val().get_bits::<47>(13);
        self.lookup.tag.next = self.record.val().get_bits::<16>(66);
        self.lookup.domain.next = self.record.val().get_bits::<6>(60);

        // The pool.
        self.ask_valid.next = (self.state.q.val() == PushState::Ask) & (!self.head.too_long.val());
        self.sequenced.next = self.level_at.val() != self.level_unreliable.val();
        self.to_peer.next = bit_cast::<8, 6>(self.record.val().get_bits::<6>(85));
        self.length.next = bit_cast::<13, 8>(self.line.length.val());
        self.beat_valid.next = self.line.valid.val();
        self.beat_data.next = self.line.data.val();
        self.good.next = self.lookup.reached.val() & (!self.dropped.q.val());
        self.commit_valid.next = self.state.q.val() == PushState::Commit;
        self.commit_abort.next = !self.good.val();
        self.peer_vi.next = self.peer_vi_at.q.val();
        self.connection.next = self.connection_at.q.val();
        self.unsequenced.next = bit_cast::<16, 8>(self.message.q.val()) << 8;
        self.level_flags.next = self.flags_sequenced.val();
        if self.level_at.val() == self.level_reception.val() {
            self.level_flags.next = self.flags_reception.val();
        } else if self.level_at.val() == self.level_unreliable.val() {
            self.level_flags.next = self.flags_unsequenced.val();
        }
        self.flags.next = self.level_flags.val();
        self.word.next = self.line.immediate_data.val();
        if self.line.immediate.val() {
            self.flags.next = self.level_flags.val() | self.flag_immediate.val();
        }

        // The VI table, the last stage.
        self.call_valid.next = self.early.q.val()
            | (self.state.q.val() == PushState::Call)
            | ((self.state.q.val() == PushState::Return) & (!self.returned.q.val()));
        self.call_back.next = (self.state.q.val() == PushState::Return) & (!self.early.q.val());
        // The call is under way before the answer of the pool is here; what it does is read in the cycle
        // before `done`.
        self.call_go.next = self.state.q.val() == PushState::Call;
        self.went.d.next = self.state.q.val() == PushState::Call;
        if self.call_done.val() {
            self.early.d.next = false;
        }
        self.call_vi.next = bit_cast::<16, 10>(self.record.val().get_bits::<10>(0));
        self.call_token.next = self.record.val().get_bits::<47>(13);
        // Not: Reception, whose end is the ViAck's, and what was stopped since.
        self.to_retire.next = (!self.dropped.q.val())
            & (!(self.lookup.reached.val() & (self.level_at.val() == self.level_reception.val())));
        self.hands.next = (self.state.q.val() == PushState::Hand)
            | ((self.state.q.val() == PushState::Commit)
                & self.commit_done.val()
                & self.to_retire.val());
        self.retire.next = self.hands.val() & self.retire_idle.val();
        self.retire_bus.next = self.lookup.bus.val();
        self.unreliable.next = self.level_at.val() == self.level_unreliable.val();
        self.reached_now.next = self.lookup.reached.val();

        self.ends.next = false;
        self.unpushed.next = false;
        match self.state.q.val() {
            PushState::Idle => {
                if self.returns.val() {
                    self.state.d.next = PushState::Return;
                } else if self.begins.val() {
                    self.state.d.next = PushState::Ask;
                }
            }
            PushState::Ask => {
                self.tried.d.next = true;
                if (!self.tried.q.val()) & (!self.head.too_long.val()) {
                    self.early.d.next = true;
                }
                if self.head.too_long.val() {
                    self.state.d.next = PushState::Return;
                } else if self.ask_done.val() {
                    self.state.d.next = PushState::Pause;
                    if self.ask_down.val() {
                        self.state.d.next = PushState::Return;
                    }
                    if self.ask_ok.val() & (!self.ask_down.val()) {
                        self.state.d.next = PushState::Call;
                    }
                }
            }
            PushState::Call => {
                if self.call_done.val() & self.went.q.val() {
                    self.peer_vi_at.d.next = self.ctx_peer_vi.val();
                    self.connection_at.d.next = self.ctx_connection.val();
                    self.message.d.next = self.ctx_message.val();
                    self.dropped.d.next = self.ctx_state.val() != self.connected.val();
                    self.state.d.next = PushState::Send;
                    if self.lookup.looked.val() & self.line.brought.val() {
                        self.state.d.next = PushState::Commit;
                    }
                }
            }
            PushState::Send => {
                if self.lookup.looked.val() & self.line.brought.val() {
                    self.state.d.next = PushState::Commit;
                }
            }
            PushState::Commit => {
                if self.commit_done.val() {
                    self.state.d.next = PushState::Hand;
                    self.ends.next = !self.to_retire.val();
                }
            }
            PushState::Hand => {}
            PushState::Pause => {
                self.pauses.d.next = self.pauses.q.val() + 1;
                if self.pauses.q.val().all() & (!self.lookup.looking.val()) {
                    self.tries.d.next = self.tries.q.val() + 1;
                    self.tried.d.next = false;
                    self.state.d.next = PushState::Idle;
                }
            }
            PushState::Return => {
                // A look-up under way must end before the next one may begin, and a call before UNPUSH.
                self.unpushed.next = self.call_done.val() & (!self.early.q.val());
                if self.unpushed.val() {
                    self.returned.d.next = true;
                }
                if (self.unpushed.val() | self.returned.q.val()) & (!self.lookup.looking.val()) {
                    self.ends.next = true;
                    self.returned.d.next = false;
                }
            }
            _ => {
                self.state.d.next = PushState::Idle;
            }
        }
        if self.hands.val() & self.retire_idle.val() {
            self.ends.next = true;
        }
        if self.ends.val() {
            self.state.d.next = PushState::Idle;
            self.tries.d.next = 0.into();
            self.tried.d.next = false;
            self.dropped.d.next = false;
        }
        // The next one follows at once, if nobody else wants the pool.
        self.chains.next = self.ends.val()
            & (self.state.q.val() != PushState::Return)
            & self.head.more.val()
            & (!self.pause.val())
            & self.chain.val();
        if self.chains.val() {
            self.state.d.next = PushState::Ask;
        }
        self.checked_out.d.next = self.begins.val() | self.chains.val();
        self.lookup.start.next = self.begins.val() | self.chains.val();
        self.lookup.clear.next = (self.state.q.val() == PushState::Idle) | self.chains.val();
        self.head.ends.next = self.ends.val();
        self.line.load.next = self.head.load.val();

        // Slots that may be used again.
        self.line.ends.next = self.ends.val();
        self.line.head_slot.next = self.slot_at.val();
        self.line.drops.next = self.valid.val() & (!self.inline.val());
        self.line.drop_slot.next = self.slot.val();
        if self.reset.val() {
            self.state.d.next = PushState::Idle;
            self.checked_out.d.next = false;
            self.early.d.next = false;
            self.returned.d.next = false;
            self.tries.d.next = 0.into();
        }
    }
}
