//! Link transmitter: one frame at a time, one beat a cycle, frame after frame without a gap.
//!
//! ```text
//! job -> Head0 -> Head1 -> Head2 -> [Payload ...] -> Check -> next job
//!          `-> dropped, if the channel has closed since the job was chosen
//! (beat register -> CRC -> skid buffer -> pins: see `out.rs`)
//! ```
//! Tag, acknowledgement and credit are read while the header leaves, so every transmission carries
//! the current ones. `step` moves everything at once; it is the skid buffer's registered ready. The
//! payload address runs one beat ahead, so that the RAM's registered output always holds the beat
//! of the current address, also while the link stalls.
use super::out::LinkOut;
use crate::channel::num::Num;
use nic_regs::frame::{Type, VERSION};
use nic_regs::limits::LINK_PAYLOAD_BYTES;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum TxState {
    /// Waits for a job.
    Idle,
    /// First header beat; a job whose channel has closed ends here.
    Head0,
    /// Second header beat.
    Head1,
    /// Third header beat.
    Head2,
    /// Payload beats.
    Payload,
    /// The CRC's place; waits while the last unsequenced frame is not freed yet.
    Check,
}

#[derive(LogicBlock, Default)]
pub struct LinkTx {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub node: Signal<In, Bits<8>>,
    pub sample_vi: Signal<In, Bits<16>>,
    pub sample_armed: Signal<In, Bit>,
    pub stamp_first_beat_out: Signal<Out, Bit>,
    pub stamp_last_beat_out: Signal<Out, Bit>,
    pub tx_valid: Signal<Out, Bit>,
    pub tx_data: Signal<Out, Bits<64>>,
    pub tx_last: Signal<Out, Bit>,
    pub tx_ready: Signal<In, Bit>,
    // The job: what to send.
    pub job_valid: Signal<In, Bit>,
    /// A frame of the pool (else a control frame of `job_kind`).
    pub job_data: Signal<In, Bit>,
    pub job_kind: Signal<In, Bits<8>>,
    pub job_peer: Signal<In, Bits<6>>,
    pub job_frame: Signal<In, Bits<7>>,
    pub job_number: Signal<In, Bits<16>>,
    pub job_unsequenced: Signal<In, Bit>,
    /// Sent before.
    pub job_again: Signal<In, Bit>,
    pub job_nak: Signal<In, Bit>,
    /// Tag of an RST.
    pub job_tag: Signal<In, Bits<16>>,
    pub job_taken: Signal<Out, Bit>,
    // The frame in flight.
    pub in_flight_valid: Signal<Out, Bit>,
    pub in_flight_data: Signal<Out, Bit>,
    pub in_flight_peer: Signal<Out, Bits<6>>,
    pub in_flight_frame: Signal<Out, Bits<7>>,
    /// An unsequenced frame was sent (or dropped): free it.
    pub transmitted_valid: Signal<Out, Bit>,
    pub transmitted_peer: Signal<Out, Bits<6>>,
    pub transmitted_frame: Signal<Out, Bits<7>>,
    pub transmitted_taken: Signal<In, Bit>,
    /// A frame to this peer takes the acknowledgement along.
    pub carries: Signal<Out, Bit>,
    // The peer's state.
    pub open: Signal<In, Bits<64>>,
    pub opening: Signal<In, Bits<64>>,
    pub tag: Signal<In, Bits<16>>,
    /// Bit 16: a gap is still there.
    pub expected: Signal<In, Bits<17>>,
    pub epoch: Signal<In, Bits<32>>,
    pub credit: Signal<In, Bits<8>>,
    // The pool.
    pub record_address: Signal<Out, Bits<7>>,
    pub record0: Signal<In, Bits<64>>,
    pub record1: Signal<In, Bits<64>>,
    pub beat_address: Signal<Out, Bits<12>>,
    pub beat: Signal<In, Bits<64>>,
    pub chunk: Signal<Out, Bits<7>>,
    pub chunk_after: Signal<In, Bits<7>>,
    /// FramesSent, FramesRetransmitted, AcksSent, ResetsSent.
    pub tally: Signal<Out, Bits<4>>,
    stage: LinkOut,
    state: DFF<TxState>,
    is_data: DFF<Bit>,
    kind: DFF<Bits<8>>,
    peer: DFF<Bits<6>>,
    frame: DFF<Bits<7>>,
    number: DFF<Bits<16>>,
    unsequenced: DFF<Bit>,
    again: DFF<Bit>,
    nak: DFF<Bit>,
    rst_tag: DFF<Bits<16>>,
    at: DFF<Bits<12>>,
    /// Payload bytes, for `left`.
    size: DFF<Bits<13>>,
    left: DFF<Bits<10>>,
    transmitted: DFF<Bit>,
    transmitted_for: DFF<Bits<6>>,
    transmitted_id: DFF<Bits<7>>,
    tally_bits: DFF<Bits<4>>,
    alive: DFF<Bit>,
    step: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    blocked: Signal<Local, Bit>,
    emit: Signal<Local, Bit>,
    value: Signal<Local, Bits<64>>,
    is_rst: Signal<Local, Bit>,
    is_syn: Signal<Local, Bit>,
    is_synack: Signal<Local, Bit>,
    is_ack: Signal<Local, Bit>,
    sent_kind: Signal<Local, Bits<8>>,
    length: Signal<Local, Bits<13>>,
    padded: Signal<Local, Bits<14>>,
    sent_tag: Signal<Local, Bits<16>>,
    sent_credit: Signal<Local, Bits<8>>,
    sent_ack: Signal<Local, Bits<16>>,
    sent_number: Signal<Local, Bits<16>>,
    sent_word: Signal<Local, Bits<32>>,
    at_following: Signal<Local, Bits<12>>,
    at_one: Signal<Local, Bits<12>>,
    version: Num<64, { VERSION as u64 }>,
    payload_max: Num<16, { LINK_PAYLOAD_BYTES as u64 }>,
    type_ack: Num<8, { Type::Ack as u64 }>,
    type_syn: Num<8, { Type::Syn as u64 }>,
    type_synack: Num<8, { Type::SynAck as u64 }>,
    type_rst: Num<8, { Type::Rst as u64 }>,
    nak_flag: Num<64, { (nic_regs::frame::flag::NAK as u64) << 48 }>,
    beat1_mask: Num<64, 0x00ff_ffff_ffff_ffff>,
    chunk_last: Num<5, 31>,
    one_4: Num<4, 1>,
    one_10: Num<10, 1>,
    zero_10: Num<10, 0>,
}

impl Logic for LinkTx {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, is_data, kind, peer, frame, number, unsequenced, again, nak);
        dff_setup!(
            self,
            clock,
            rst_tag,
            at,
            left,
            transmitted,
            transmitted_for,
            transmitted_id,
            tally_bits,
            alive,
            size
        );
        clock!(self, clock, stage);
        self.stage.reset.next = self.reset.val();
        self.step.next = self.stage.step.val();

        // What the header says.
        self.is_rst.next = (!self.is_data.q.val()) & (self.kind.q.val() == self.type_rst.val());
        self.is_syn.next = (!self.is_data.q.val()) & (self.kind.q.val() == self.type_syn.val());
        self.is_synack.next =
            (!self.is_data.q.val()) & (self.kind.q.val() == self.type_synack.val());
        self.is_ack.next = (!self.is_data.q.val()) & (self.kind.q.val() == self.type_ack.val());
        self.sent_kind.next = self.kind.q.val();
        self.length.next = 0.into();
        self.sent_number.next = 0.into();
        self.sent_word.next = 0.into();
        if self.is_data.q.val() {
            self.sent_kind.next = self.record0.val().get_bits::<8>(56);
            self.length.next = self.record1.val().get_bits::<13>(48);
            self.sent_number.next = self.number.q.val();
            if self.unsequenced.q.val() {
                self.sent_number.next = self.record1.val().get_bits::<16>(32);
            }
            self.sent_word.next = self.record1.val().get_bits::<32>(0);
        } else if self.is_syn.val() | self.is_synack.val() {
            self.sent_word.next = self.epoch.val();
        }
        self.sent_tag.next = self.tag.val();
        self.sent_credit.next = self.credit.val();
        self.sent_ack.next = self.expected.val().get_bits::<16>(0);
        if self.is_rst.val() {
            self.sent_tag.next = self.rst_tag.q.val();
            self.sent_credit.next = 0.into();
            self.sent_ack.next = 0.into();
        } else if self.is_syn.val() {
            self.sent_tag.next = 0.into();
            self.sent_ack.next = self.payload_max.val();
        }
        self.size.d.next = self.length.val();
        self.padded.next = bit_cast::<14, 13>(self.size.q.val()) + 7;

        // One beat of the frame.
        self.blocked.next = self.unsequenced.q.val() & self.transmitted.q.val();
        self.ends.next = false;
        self.emit.next = false;
        self.value.next = 0.into();
        self.carries.next = false;
        self.tally_bits.d.next = 0.into();
        self.at_one.next = self.at.q.val() + 1;
        self.at_following.next = self.at.q.val();
        match self.state.q.val() {
            TxState::Idle => {}
            TxState::Head0 => {
                self.value.next = self.version.val()
                    | (bit_cast::<64, 8>(self.sent_kind.val()) << 8)
                    | (bit_cast::<64, 13>(self.length.val()) << 16)
                    | (bit_cast::<64, 8>(self.node.val()) << 32)
                    | (bit_cast::<64, 6>(self.peer.q.val()) << 40)
                    | (bit_cast::<64, 16>(self.sent_tag.val()) << 48);
                if !self.alive.q.val() {
                    if !self.blocked.val() {
                        self.ends.next = true;
                        self.state.d.next = TxState::Idle;
                    }
                } else {
                    self.emit.next = true;
                    if self.step.val() {
                        self.carries.next = !self.is_rst.val();
                        self.state.d.next = TxState::Head1;
                    }
                }
            }
            TxState::Head1 => {
                self.emit.next = true;
                if self.is_data.q.val() {
                    self.value.next = (self.record0.val() & self.beat1_mask.val())
                        | (bit_cast::<64, 8>(self.sent_credit.val()) << 56);
                } else {
                    self.value.next = bit_cast::<64, 8>(self.sent_credit.val()) << 56;
                    if self.nak.q.val() & self.expected.val().get_bit(16) {
                        self.value.next =
                            (bit_cast::<64, 8>(self.sent_credit.val()) << 56) | self.nak_flag.val();
                    }
                }
                self.left.d.next = self.padded.val().get_bits::<10>(3);
                if self.step.val() {
                    self.state.d.next = TxState::Head2;
                }
            }
            TxState::Head2 => {
                self.emit.next = true;
                self.value.next = bit_cast::<64, 16>(self.sent_number.val())
                    | (bit_cast::<64, 16>(self.sent_ack.val()) << 16)
                    | (bit_cast::<64, 32>(self.sent_word.val()) << 32);
                if self.step.val() {
                    self.state.d.next = TxState::Payload;
                    if self.left.q.val() == self.zero_10.val() {
                        self.state.d.next = TxState::Check;
                    }
                }
            }
            TxState::Payload => {
                self.emit.next = true;
                self.value.next = self.beat.val();
                if self.step.val() {
                    self.left.d.next = self.left.q.val() - 1;
                    self.at_following.next = self.at_one.val();
                    if self.at.q.val().get_bits::<5>(0) == self.chunk_last.val() {
                        self.at_following.next = bit_cast::<12, 7>(self.chunk_after.val()) << 5;
                    }
                    if self.left.q.val() == self.one_10.val() {
                        self.state.d.next = TxState::Check;
                    }
                }
            }
            TxState::Check => {
                self.emit.next = !self.blocked.val();
                if self.step.val() & !self.blocked.val() {
                    self.ends.next = true;
                    self.state.d.next = TxState::Idle;
                    self.tally_bits.d.next = self.one_4.val()
                        | (bit_cast::<4, 1>(self.again.q.val().into()) << 1)
                        | (bit_cast::<4, 1>(self.is_ack.val().into()) << 2)
                        | (bit_cast::<4, 1>(self.is_rst.val().into()) << 3);
                }
            }
            _ => {
                self.state.d.next = TxState::Idle;
            }
        }
        self.tally.next = self.tally_bits.q.val();

        // The end of one frame, the beginning of the following.
        self.transmitted_valid.next = self.transmitted.q.val();
        self.transmitted_peer.next = self.transmitted_for.q.val();
        self.transmitted_frame.next = self.transmitted_id.q.val();
        if self.transmitted_taken.val() {
            self.transmitted.d.next = false;
        }
        if self.ends.val() & self.unsequenced.q.val() {
            self.transmitted.d.next = true;
            self.transmitted_for.d.next = self.peer.q.val();
            self.transmitted_id.d.next = self.frame.q.val();
        }
        self.in_flight_valid.next = self.state.q.val() != TxState::Idle;
        self.in_flight_data.next = self.is_data.q.val();
        self.in_flight_peer.next = self.peer.q.val();
        self.in_flight_frame.next = self.frame.q.val();
        self.begins.next =
            self.job_valid.val() & ((self.state.q.val() == TxState::Idle) | self.ends.val());
        self.job_taken.next = self.begins.val();
        self.record_address.next = self.frame.q.val();
        if self.begins.val() {
            self.state.d.next = TxState::Head0;
            self.is_data.d.next = self.job_data.val();
            self.kind.d.next = self.job_kind.val();
            self.peer.d.next = self.job_peer.val();
            self.frame.d.next = self.job_frame.val();
            self.number.d.next = self.job_number.val();
            self.unsequenced.d.next = self.job_unsequenced.val();
            self.again.d.next = self.job_again.val();
            self.nak.d.next = self.job_nak.val();
            self.rst_tag.d.next = self.job_tag.val();
            self.alive.d.next = self.open.val().get_bit(self.job_peer.val().index());
            if !self.job_data.val() {
                if self.job_kind.val() == self.type_rst.val() {
                    self.alive.d.next = true;
                } else if self.job_kind.val() == self.type_syn.val() {
                    self.alive.d.next = self.opening.val().get_bit(self.job_peer.val().index());
                }
            }
            self.at_following.next = bit_cast::<12, 7>(self.job_frame.val()) << 5;
            self.record_address.next = self.job_frame.val();
        }
        self.at.d.next = self.at_following.val();
        self.beat_address.next = self.at_following.val();
        self.chunk.next = self.at.q.val().get_bits::<7>(5);

        // Beat register, CRC, output.
        self.stage.sample_vi.next = self.sample_vi.val();
        self.stage.source_vi.next = self.record0.val().get_bits::<16>(16);
        self.stage.kind.next = self.record0.val().get_bits::<8>(56);
        self.stage.may_sample.next = self.is_data.q.val() & self.sample_armed.val();
        self.stage.valid.next = self.emit.val();
        self.stage.is_first.next = self.state.q.val() == TxState::Head0;
        self.stage.is_check.next = self.state.q.val() == TxState::Check;
        self.stage.beat.next = self.value.val();
        self.stage.tx_ready.next = self.tx_ready.val();
        self.tx_valid.next = self.stage.tx_valid.val();
        self.tx_data.next = self.stage.tx_data.val();
        self.tx_last.next = self.stage.tx_last.val();
        self.stamp_first_beat_out.next = self.stage.stamp_first_beat_out.val();
        self.stamp_last_beat_out.next = self.stage.stamp_last_beat_out.val();
        if self.reset.val() {
            self.state.d.next = TxState::Idle;
            self.transmitted.d.next = false;
            self.tally_bits.d.next = 0.into();
        }
    }
}
