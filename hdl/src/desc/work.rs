//! All that an engine does with one descriptor: [`Desc`] resolves it, [`Verdict`] says what its end
//! means, [`Retire`] carries the end out.
//!
//! `resolve` (pulse, `resolved` answers) and `finish` or `fail` (pulses, `retired` answers) exclude
//! each other; arguments are stable in between. `finish` runs `steps`; `fail` runs what `cause`
//! asks for: a completion with an error status, a stop, or both.

use super::{Desc, Retire, Verdict};
use crate::ifs::{ReadClient, TptClient, WriteClient};
use crate::leaf::Number;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Work {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    // The VI and its head token.
    pub tag: Signal<In, Bits<16>>,
    pub domain: Signal<In, Bits<8>>,
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    pub hint: Signal<In, Bits<5>>,
    pub covers_next: Signal<In, Bit>,
    pub unreliable: Signal<In, Bit>,
    pub receive: Signal<In, Bit>,
    pub resolve: Signal<In, Bit>,
    /// Only the bus address is wanted.
    pub reach: Signal<In, Bit>,
    pub resolved: Signal<Out, Bit>,
    /// See [`super::Outcome`].
    pub outcome: Signal<Out, Bits<3>>,
    pub unreached: Signal<Out, Bit>,
    pub fetched: Signal<Out, Bit>,
    pub total: Signal<Out, Bits<20>>,
    pub has_immediate: Signal<Out, Bit>,
    pub immediate: Signal<Out, Bits<32>>,
    pub segment: Signal<In, Bits<4>>,
    pub segment_bus: Signal<Out, Bits<64>>,
    pub segment_length: Signal<Out, Bits<32>>,
    pub finish: Signal<In, Bit>,
    pub fail: Signal<In, Bit>,
    /// See [`Retire`].
    pub steps: Signal<In, Bits<5>>,
    pub retired: Signal<Out, Bit>,
    /// Pulse: the status was accepted.
    pub written: Signal<Out, Bit>,
    /// See [`super::Cause`].
    pub cause: Signal<In, Bits<4>>,
    pub partial: Signal<In, Bit>,
    pub length: Signal<In, Bits<20>>,
    /// Received immediate data.
    pub take_immediate: Signal<In, Bit>,
    pub taken_immediate: Signal<In, Bits<32>>,
    // Calls to the VI table, and arguments of POP and STOP.
    pub vi_valid: Signal<Out, Bit>,
    pub vi_op: Signal<Out, Bits<3>>,
    pub vi_done: Signal<In, Bit>,
    pub vi_need_next: Signal<In, Bit>,
    pub next_valid: Signal<Out, Bit>,
    pub next_region: Signal<Out, Bits<16>>,
    pub next_offset: Signal<Out, Bits<26>>,
    pub reason: Signal<Out, Bits<8>>,
    pub stop_status: Signal<Out, Bits<32>>,
    pub read: ReadClient,
    pub tpt: TptClient,
    pub write: WriteClient,
    desc: Desc,
    verdict: Verdict,
    retire: Retire,
    succeeded: Signal<Local, Bit>,
    op_reach: Number<2, 1>,
    op_next: Number<2, 2>,
    steps_error: Number<5, 0b01101>,
    steps_error_stop: Number<5, 0b11101>,
    steps_stop: Number<5, 0b10000>,
}

impl Logic for Work {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, desc, retire);
        self.desc.reset.next = self.reset.val();
        self.retire.reset.next = self.reset.val();
        ReadClient::link(&mut self.read, &mut self.desc.read);
        TptClient::link(&mut self.tpt, &mut self.desc.tpt);

        self.desc.start.next = self.resolve.val() | self.retire.reread.val();
        self.desc.op.next = 0.into();
        if self.retire.reread.val() {
            self.desc.op.next = self.op_next.val();
        } else if self.reach.val() {
            self.desc.op.next = self.op_reach.val();
        }
        self.desc.tag.next = self.tag.val();
        self.desc.domain.next = self.domain.val();
        self.desc.region.next = self.region.val();
        self.desc.offset.next = self.offset.val();
        self.desc.hint.next = self.hint.val();
        self.desc.covers_next.next = self.covers_next.val();
        self.desc.segment.next = self.segment.val();
        self.resolved.next = self.desc.done.val();
        self.outcome.next = self.desc.outcome.val();
        self.unreached.next = self.desc.unreached.val();
        self.fetched.next = self.desc.fetched.val();
        self.total.next = self.desc.total.val();
        self.has_immediate.next = self.desc.has_immediate.val();
        self.immediate.next = self.desc.immediate.val();
        self.segment_bus.next = self.desc.segment_bus.val();
        self.segment_length.next = self.desc.segment_length.val();
        self.next_valid.next = self.desc.next_valid.val();
        self.next_region.next = self.desc.next_region.val();
        self.next_offset.next = self.desc.next_offset.val();

        self.succeeded.next = self.cause.val() == 0;
        self.verdict.cause.next = self.cause.val();
        self.verdict.receive.next = self.receive.val();
        self.verdict.partial.next = self.partial.val();
        self.verdict.immediate.next = self.take_immediate.val();
        self.reason.next = self.verdict.reason.val();
        self.stop_status.next = self.verdict.stop_status.val();

        self.retire.start.next = self.finish.val() | self.fail.val();
        self.retire.steps.next = self.steps.val();
        if self.fail.val() {
            self.retire.steps.next = self.steps_stop.val();
            if self.verdict.completes.val() {
                self.retire.steps.next = self.steps_error_stop.val();
                if self.unreliable.val() {
                    self.retire.steps.next = self.steps_error.val();
                }
            }
        }
        self.retired.next = self.retire.done.val();
        self.written.next = self.retire.written.val();
        self.retire.bus.next = self.desc.bus.val();
        self.retire.length.next = 0.into();
        if self.succeeded.val() {
            self.retire.length.next = self.length.val();
        }
        self.retire.status_word.next = self.verdict.status_word.val();
        self.retire.has_immediate.next = self.take_immediate.val() & self.succeeded.val();
        self.retire.immediate.next = self.taken_immediate.val();
        self.retire.desc_done.next = self.desc.done.val();
        self.retire.next_ready.next = self.desc.next_ready.val();
        self.vi_valid.next = self.retire.vi_valid.val();
        self.vi_op.next = self.retire.vi_op.val();
        self.retire.vi_done.next = self.vi_done.val();
        self.retire.vi_need_next.next = self.vi_need_next.val();
        self.write.valid.next = self.retire.w_valid.val();
        self.write.address.next = self.retire.w_address.val();
        self.write.length.next = self.retire.w_length.val();
        self.write.data.next = self.retire.w_data.val();
        self.write.last.next = self.retire.w_last.val();
        self.retire.w_ready.next = self.write.ready.val();
    }
}
