//! Host requests: register accesses, doorbells, and the completions of reads.
//!
//! ```text
//! Idle -> Act -+-> Register -+-> Send0 -> Send1 -> [Send2 [-> Send3]] -> Idle
//!   |          |             `-> Idle (writes)
//!   |          `-> Idle (doorbells, or nothing), or Send0
//!   `-> Torn -> Idle     a word of a push line moves in Idle itself; its TLP ends wrongly
//! ```
//! [`Parse`] takes the TLPs apart; requests are executed strictly in order. Only the device's own
//! reset clears them: a soft reset is itself a register write, and what the host sent behind that
//! write must still be answered. The soft reset empties the doorbell FIFOs.
use super::doorbell::Doorbell;
use super::parse::Parse;
use crate::ifs::{PostClient, PushClient, RegClient};
use crate::leaf::{Number, Skid};
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::tlp;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum CqState {
    /// Waits for a request.
    Idle,
    /// Chooses what to do; offers a doorbell until there is room for it.
    Act,
    /// Waits for `csr`.
    Register,
    /// Completion header beat 0.
    Send0,
    /// Completion header beat 1.
    Send1,
    /// Reports a TLP whose last word has moved.
    Torn,
    /// First data beat.
    Send2,
    /// Second data beat.
    Send3,
}

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct Cq {
    pub clock: Signal<In, Clock>,
    /// Of the device, not the soft reset.
    pub reset: Signal<In, Bit>,
    /// Empties the doorbell FIFOs.
    pub soft_reset: Signal<In, Bit>,
    pub enable: Signal<In, Bit>,
    /// Completer id.
    pub requester: Signal<In, Bits<16>>,
    pub cq_valid: Signal<In, Bit>,
    pub cq_data: Signal<In, Bits<64>>,
    pub cq_last: Signal<In, Bit>,
    pub cq_bar: Signal<In, Bits<3>>,
    pub cq_ready: Signal<Out, Bit>,
    pub cc_valid: Signal<Out, Bit>,
    pub cc_data: Signal<Out, Bits<64>>,
    pub cc_last: Signal<Out, Bit>,
    pub cc_ready: Signal<In, Bit>,
    pub registers: RegClient,
    pub vi_post: PostClient,
    pub event_post: PostClient,
    pub words: PushClient,
    pub counts: Signal<Out, Bits<64>>,
    pub error_valid: Signal<Out, Bit>,
    pub error_record: Signal<Out, Bits<64>>,
    doorbell: Doorbell,
    skid: Skid<65>,
    parse: Parse,
    state: DFF<CqState>,
    rdata: DFF<Bits<32>>,
    error_out: DFF<Bit>,
    record_out: DFF<Bits<64>>,
    counts_out: DFF<Bits<64>>,
    refuse: Signal<Local, Bit>,
    pop: Signal<Local, Bit>,
    send: Signal<Local, Bit>,
    send_last: Signal<Local, Bit>,
    send_data: Signal<Local, Bits<64>>,
    head_data: Number<64, { (tlp::COMPLETION_DATA as u64) << 24 }>,
    head_unsupported:
        Number<64, { (tlp::COMPLETION as u64) << 24 | (tlp::STATUS_UNSUPPORTED as u64) << 45 }>,
    count_bad: Number<64, { 1 << Counter::BadTlp as u64 }>,
    code_bad: Number<64, { ErrorCode::BadTlp as u64 }>,
}

impl Logic for Cq {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, rdata, error_out, record_out, counts_out);
        clock!(self, clock, doorbell, skid, parse);
        self.skid.reset.next = self.reset.val();
        self.parse.reset.next = self.reset.val();
        self.parse.cq_valid.next = self.cq_valid.val();
        self.parse.cq_data.next = self.cq_data.val();
        self.parse.cq_last.next = self.cq_last.val();
        self.parse.cq_bar.next = self.cq_bar.val();
        self.cq_ready.next = self.parse.cq_ready.val();
        self.doorbell.reset.next = self.reset.val() | self.soft_reset.val();

        // Executor.
        self.registers.valid.next = false;
        self.registers.write.next = self.parse.is_write.val();
        self.registers.bad.next = !self.parse.whole_dword.val();
        self.registers.offset.next = bit_cast::<16, 11>(self.parse.at.val().get_bits::<11>(2)) << 2;
        self.registers.wdata.next = self.parse.data.val().get_bits::<32>(0);
        if self.parse.at.val().get_bit(2) {
            self.registers.wdata.next = self.parse.data.val().get_bits::<32>(32);
        }
        self.doorbell.enable.next = self.enable.val();
        PushClient::link(&mut self.words, &mut self.doorbell.words);
        self.doorbell.valid.next = false;
        self.doorbell.word.next = self.parse.word.val();
        self.doorbell.whole.next = self.parse.whole_word.val();
        self.doorbell.page.next = self.parse.at.val().get_bits::<6>(12);
        self.doorbell.offset.next = self.parse.at.val().get_bits::<12>(0);
        self.doorbell.data.next = self.parse.data.val();
        self.doorbell.some.next = self.parse.some.val();
        PostClient::link(&mut self.vi_post, &mut self.doorbell.vi_post);
        PostClient::link(&mut self.event_post, &mut self.doorbell.event_post);
        self.pop.next = false;
        self.refuse.next = false;
        self.send.next = false;
        self.send_last.next = false;
        self.send_data.next = 0.into();
        match self.state.q.val() {
            CqState::Idle => {
                self.doorbell.valid.next = (!self.parse.empty.val()) & self.parse.word.val();
                if (!self.parse.empty.val()) & (!self.parse.word.val()) {
                    self.state.d.next = CqState::Act;
                } else if (!self.parse.empty.val()) & self.doorbell.ready.val() {
                    self.pop.next = !self.parse.torn.val();
                    if self.parse.torn.val() {
                        self.state.d.next = CqState::Torn;
                    }
                }
            }
            CqState::Torn => {
                self.refuse.next = true;
                self.pop.next = true;
                self.state.d.next = CqState::Idle;
            }
            CqState::Act => {
                self.rdata.d.next = 0.into();
                self.state.d.next = CqState::Idle;
                if self.parse.malformed.val()
                    | (!(self.parse.is_read.val() | self.parse.is_write.val()))
                {
                    self.refuse.next = true;
                    self.pop.next = true;
                } else if self.parse.bar0.val() {
                    self.state.d.next = CqState::Register;
                } else if self.parse.bar2.val() & self.parse.is_write.val() {
                    self.doorbell.valid.next = true;
                    self.pop.next = self.doorbell.ready.val();
                    if !self.doorbell.ready.val() {
                        self.state.d.next = CqState::Act;
                    }
                } else if self.parse.is_write.val() {
                    self.refuse.next = true;
                    self.pop.next = true;
                } else {
                    self.refuse.next = !self.parse.bar2.val();
                    self.state.d.next = CqState::Send0;
                }
            }
            CqState::Register => {
                self.registers.valid.next = true;
                self.rdata.d.next = self.registers.rdata.val();
                if self.registers.done.val() {
                    self.state.d.next = CqState::Send0;
                    if self.parse.is_write.val() {
                        self.pop.next = true;
                        self.state.d.next = CqState::Idle;
                    }
                }
            }
            CqState::Send0 => {
                self.send.next = true;
                self.send_data.next = self.head_data.val()
                    | bit_cast::<64, 10>(self.parse.request.val().get_bits::<10>(0))
                    | (bit_cast::<64, 12>(self.parse.byte_count.val()) << 32)
                    | (bit_cast::<64, 16>(self.requester.val()) << 48);
                if self.parse.long.val() {
                    self.send_data.next = self.head_unsupported.val()
                        | (bit_cast::<64, 12>(self.parse.byte_count.val()) << 32)
                        | (bit_cast::<64, 16>(self.requester.val()) << 48);
                }
                if self.skid.in_ready.val() {
                    self.state.d.next = CqState::Send1;
                }
            }
            CqState::Send1 => {
                self.send.next = true;
                self.send_last.next = self.parse.long.val();
                // Tag and requester id sit in the request as they do here.
                self.send_data.next = bit_cast::<64, 7>(self.parse.lower.val())
                    | (bit_cast::<64, 24>(self.parse.request.val().get_bits::<24>(40)) << 8);
                if self.skid.in_ready.val() {
                    self.state.d.next = CqState::Send2;
                    if self.parse.long.val() {
                        self.pop.next = true;
                        self.state.d.next = CqState::Idle;
                    }
                }
            }
            CqState::Send2 => {
                self.send.next = true;
                self.send_last.next = !self.parse.second_beat.val();
                self.send_data.next = bit_cast::<64, 32>(self.rdata.q.val());
                if self.parse.at.val().get_bit(2) {
                    self.send_data.next = bit_cast::<64, 32>(self.rdata.q.val()) << 32;
                }
                if self.skid.in_ready.val() {
                    self.state.d.next = CqState::Send3;
                    if !self.parse.second_beat.val() {
                        self.pop.next = true;
                        self.state.d.next = CqState::Idle;
                    }
                }
            }
            CqState::Send3 => {
                self.send.next = true;
                self.send_last.next = true;
                if self.skid.in_ready.val() {
                    self.pop.next = true;
                    self.state.d.next = CqState::Idle;
                }
            }
            _ => {
                self.state.d.next = CqState::Idle;
            }
        }
        self.parse.pop.next = self.pop.val();
        self.skid.in_valid.next = self.send.val();
        self.skid.in_data.next = (bit_cast::<65, 1>(self.send_last.val().into()) << 64)
            | bit_cast::<65, 64>(self.send_data.val());
        self.cc_valid.next = self.skid.out_valid.val();
        self.cc_data.next = self.skid.out_data.val().get_bits::<64>(0);
        self.cc_last.next = self.skid.out_data.val().get_bit(64);
        self.skid.out_ready.next = self.cc_ready.val();

        // Counters and log; the executor is never here while the doorbell reports.
        self.counts_out.d.next = 0.into();
        self.error_out.d.next = self.refuse.val();
        self.record_out.d.next = self.code_bad.val()
            | (bit_cast::<64, 32>(self.parse.request.val().get_bits::<32>(0)) << 32);
        if self.refuse.val() {
            self.counts_out.d.next = self.count_bad.val();
        }
        self.counts.next = self.counts_out.q.val() | self.doorbell.counts.val();
        self.error_valid.next = self.error_out.q.val() | self.doorbell.error_valid.val();
        self.error_record.next = self.record_out.q.val();
        if self.doorbell.error_valid.val() {
            self.error_record.next = self.doorbell.error_record.val();
        }
        if self.reset.val() {
            self.state.d.next = CqState::Idle;
            self.error_out.d.next = false;
            self.counts_out.d.next = 0.into();
        }
    }
}
