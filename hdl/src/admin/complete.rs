//! The completion: status, result and cookie, written over the entry in one 16-byte write.

use crate::ifs::WriteClient;
use crate::leaf::Number;
use nic_regs::admin::{AdminStatus, COMPLETION_BYTES, DONE};
use nic_regs::counter::Counter;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Completion {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub write: WriteClient,
    pub counts: Signal<Out, Bits<64>>,
    pub address: Signal<In, Bits<64>>,
    pub cookie: Signal<In, Bits<32>>,
    /// The command's outcome, when it is known.
    pub take: Signal<In, Bit>,
    pub status: Signal<In, Bits<4>>,
    pub result: Signal<In, Bits<32>>,
    /// The command is counted; one that failed has no result.
    pub close: Signal<In, Bit>,
    /// First and second beat, each until it has `moved`.
    pub first: Signal<In, Bit>,
    pub second: Signal<In, Bit>,
    pub moved: Signal<Out, Bit>,
    status_now: DFF<Bits<4>>,
    result_now: DFF<Bits<32>>,
    counts_out: DFF<Bits<64>>,
    status_ok: Number<4, { AdminStatus::Ok as u64 }>,
    completion_bytes: Number<13, COMPLETION_BYTES>,
    done_beat: Number<64, { (DONE as u64) << 32 }>,
    count_command: Number<64, { 1 << Counter::AdminCommands as u32 }>,
    count_command_error:
        Number<64, { 1 << Counter::AdminCommands as u32 | 1 << Counter::AdminErrors as u32 }>,
}

impl Logic for Completion {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, status_now, result_now, counts_out);
        self.counts.next = self.counts_out.q.val();
        self.counts_out.d.next = 0.into();
        if self.take.val() {
            self.status_now.d.next = self.status.val();
            self.result_now.d.next = self.result.val();
        }
        if self.close.val() {
            self.counts_out.d.next = self.count_command.val();
            if self.status_now.q.val() != self.status_ok.val() {
                self.counts_out.d.next = self.count_command_error.val();
                self.result_now.d.next = 0.into();
            }
        }
        self.write.valid.next = self.first.val() | self.second.val();
        self.write.address.next = self.address.val();
        self.write.length.next = self.completion_bytes.val();
        self.write.last.next = self.second.val();
        self.write.data.next = bit_cast::<64, 4>(self.status_now.q.val())
            | (bit_cast::<64, 32>(self.result_now.q.val()) << 32);
        if self.second.val() {
            self.write.data.next = self.done_beat.val() | bit_cast::<64, 32>(self.cookie.val());
        }
        self.moved.next = self.write.ready.val();
        if self.reset.val() {
            self.counts_out.d.next = 0.into();
        }
    }
}
