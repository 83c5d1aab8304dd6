//! What goes wrong with reads and their completions, counted and logged: registers, a cycle later.
//! One thing a cycle: a completion has one verdict, in its `commit`, and no read fails for its time or
//! for want of a tag in that cycle.
use crate::leaf::Number;
use nic_regs::counter::{Counter, ErrorCode};
use rust_hdl::prelude::*;

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct Report {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    // Pulses: a read timed out; one fails because there is no tag; a completion is not expected; it
    // is malformed; it fails its read.
    pub expired: Signal<In, Bit>,
    pub expired_tag: Signal<In, Bits<5>>,
    pub refused: Signal<In, Bit>,
    pub unexpected: Signal<In, Bit>,
    pub bad_tlp: Signal<In, Bit>,
    pub read_error: Signal<In, Bit>,
    /// Of the completion: its tag, its first dword, status 2:0 and poisoned 3.
    pub tag: Signal<In, Bits<8>>,
    pub dword: Signal<In, Bits<32>>,
    pub detail: Signal<In, Bits<4>>,
    pub counts: Signal<Out, Bits<64>>,
    pub error_valid: Signal<Out, Bit>,
    pub error_record: Signal<Out, Bits<64>>,
    counts_out: DFF<Bits<64>>,
    error_out: DFF<Bit>,
    record_out: DFF<Bits<64>>,
    no_tag: Number<64, { 0xff << 16 }>,
    count_timeout: Number<64, { 1 << Counter::ReadTimeouts as u64 }>,
    count_error: Number<64, { 1 << Counter::ReadErrors as u64 }>,
    count_unexpected: Number<64, { 1 << Counter::UnexpectedCompletions as u64 }>,
    count_bad: Number<64, { 1 << Counter::BadTlp as u64 }>,
    code_timeout: Number<64, { ErrorCode::ReadTimeout as u64 }>,
    code_error: Number<64, { ErrorCode::ReadError as u64 }>,
    code_unexpected: Number<64, { ErrorCode::UnexpectedCompletion as u64 }>,
    code_bad: Number<64, { ErrorCode::BadTlp as u64 }>,
}

impl Logic for Report {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, counts_out, error_out, record_out);
        self.counts.next = self.counts_out.q.val();
        self.error_valid.next = self.error_out.q.val();
        self.error_record.next = self.record_out.q.val();
        self.counts_out.d.next = 0.into();
        self.error_out.d.next = self.unexpected.val()
            | self.bad_tlp.val()
            | self.read_error.val()
            | self.expired.val()
            | self.refused.val();
        self.record_out.d.next =
            self.code_timeout.val() | (bit_cast::<64, 5>(self.expired_tag.val()) << 16);
        if self.expired.val() {
            self.counts_out.d.next = self.count_timeout.val();
        } else if self.refused.val() {
            self.counts_out.d.next = self.count_timeout.val();
            self.record_out.d.next = self.code_timeout.val() | self.no_tag.val();
        } else if self.unexpected.val() {
            self.counts_out.d.next = self.count_unexpected.val();
            self.record_out.d.next =
                self.code_unexpected.val() | (bit_cast::<64, 8>(self.tag.val()) << 16);
        } else if self.bad_tlp.val() {
            self.counts_out.d.next = self.count_bad.val();
            self.record_out.d.next =
                self.code_bad.val() | (bit_cast::<64, 32>(self.dword.val()) << 32);
        } else if self.read_error.val() {
            self.counts_out.d.next = self.count_error.val();
            self.record_out.d.next = self.code_error.val()
                | (bit_cast::<64, 8>(self.tag.val()) << 16)
                | (bit_cast::<64, 4>(self.detail.val()) << 32);
        }
        if self.reset.val() {
            self.counts_out.d.next = 0.into();
            self.error_out.d.next = false;
        }
    }
}
