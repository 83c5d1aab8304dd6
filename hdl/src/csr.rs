//! BAR0: registers, counters, error log, stamps; and the soft reset.
//!
//! ```text
//! Idle -> Decode -> Act -+------------------------> Answer -> Idle
//!                        |-> Count (counter read) ->|
//!                        |-> Msix ----------------->|
//!                        `-> Quiet -> Resetting --->'
//! ```
//! One access at a time, answered after 4 cycles (counters 4 more, the MSI-X table as `event`
//! answers).
//!
//! **Soft reset.** `quiesce` asks `rq` to start no new TLP; when it is idle (or after 65,536
//! cycles) `soft_reset` is up for 16 cycles, and only then is the write answered, so that the
//! host's next access finds STATUS.READY at 0. The host port's own state (framing, requests behind
//! this one) is not part of the soft reset.
pub mod bank;
pub mod place;

use crate::anatomy::Anatomy;
use crate::counter::Counters;
use crate::error_log::ErrorLog;
use crate::ifs::{MsixClient, RegServer};
use crate::leaf::Number;
use bank::{Bank, word};
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::csr;
use place::Place;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum CsrState {
    /// Waits for an access.
    Idle,
    /// The kind of the access is registered; the value is selected.
    Decode,
    /// Does it.
    Act,
    /// Waits for the counter.
    Count,
    /// Waits for the MSI-X table.
    Msix,
    /// Waits until no request of the device is under way.
    Quiet,
    /// Holds the soft reset.
    Resetting,
    /// `done`.
    Answer,
}

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct Csr {
    pub clock: Signal<In, Clock>,
    /// Of the device.
    pub reset: Signal<In, Bit>,
    pub registers: RegServer,
    pub msix: MsixClient,
    /// Reset of every block but the host port's framing, 16 cycles.
    pub soft_reset: Signal<Out, Bit>,
    /// To `rq.hold`, and its answer.
    pub quiesce: Signal<Out, Bit>,
    pub rq_idle: Signal<In, Bit>,
    /// All other blocks are ready.
    pub core_ready: Signal<In, Bit>,
    pub admin_head: Signal<In, Bits<16>>,
    pub admin_busy: Signal<In, Bit>,
    pub admin_failed: Signal<In, Bit>,
    pub reads_fail: Signal<In, Bit>,
    /// The pool holds frames.
    pub sending: Signal<In, Bit>,
    /// Counter pulses: three vectors, so that up to three blocks may count the same cause in one
    /// cycle.
    pub counts_a: Signal<In, Bits<64>>,
    pub counts_b: Signal<In, Bits<64>>,
    pub counts_c: Signal<In, Bits<64>>,
    pub error_valid0: Signal<In, Bit>,
    pub error_record0: Signal<In, Bits<64>>,
    pub error_valid1: Signal<In, Bit>,
    pub error_record1: Signal<In, Bits<64>>,
    pub error_valid2: Signal<In, Bit>,
    pub error_record2: Signal<In, Bits<64>>,
    pub error_valid3: Signal<In, Bit>,
    pub error_record3: Signal<In, Bits<64>>,
    pub error_valid4: Signal<In, Bit>,
    pub error_record4: Signal<In, Bits<64>>,
    pub stamp_doorbell: Signal<In, Bit>,
    pub stamp_descriptor: Signal<In, Bit>,
    pub stamp_data: Signal<In, Bit>,
    pub stamp_first_beat_out: Signal<In, Bit>,
    pub stamp_last_beat_out: Signal<In, Bit>,
    pub stamp_first_beat_in: Signal<In, Bit>,
    pub stamp_matched: Signal<In, Bit>,
    pub stamp_data_written: Signal<In, Bit>,
    pub stamp_status_written: Signal<In, Bit>,
    // Configuration, from registers.
    pub enable: Signal<Out, Bit>,
    pub admin_base: Signal<Out, Bits<64>>,
    pub admin_log2: Signal<Out, Bits<4>>,
    pub admin_tail: Signal<Out, Bits<16>>,
    pub node: Signal<Out, Bits<8>>,
    pub max_payload: Signal<Out, Bits<3>>,
    pub max_read: Signal<Out, Bits<3>>,
    pub requester: Signal<Out, Bits<16>>,
    pub read_timeout: Signal<Out, Bits<32>>,
    pub ack_delay: Signal<Out, Bits<32>>,
    pub retry_timeout: Signal<Out, Bits<24>>,
    pub retry_limit: Signal<Out, Bits<4>>,
    pub keepalive: Signal<Out, Bits<32>>,
    pub moderation: Signal<Out, Bits<24>>,
    pub error_queue: Signal<Out, Bits<16>>,
    pub error_queue_valid: Signal<Out, Bit>,
    pub sample_vi: Signal<Out, Bits<16>>,
    pub sample_armed: Signal<Out, Bit>,
    place: Place,
    bank: Bank,
    counters: Counters,
    log: ErrorLog,
    anatomy: Anatomy,
    state: DFF<CsrState>,
    rdata: DFF<Bits<32>>,
    core_ok: DFF<Bit>,
    ready: DFF<Bit>,
    resetting: DFF<Bit>,
    quiet: DFF<Bit>,
    timer: DFF<Bits<16>>,
    cycles: DFF<Bits<64>>,
    cycles_held: DFF<Bits<32>>,
    error_out: DFF<Bit>,
    record_out: DFF<Bits<64>>,
    counts_out: DFF<Bits<64>>,
    any_reset: Signal<Local, Bit>,
    at: Signal<Local, Bits<6>>,
    write_now: Signal<Local, Bit>,
    at_control: Number<6, { word(csr::CONTROL::OFFSET) }>,
    at_pop: Number<6, { word(csr::ERROR_POP::OFFSET) }>,
    at_sample: Number<6, { word(csr::SAMPLE::OFFSET) }>,
    reset_end: Number<16, 15>,
    quiet_end: Number<16, 0xffff>,
    count_bad: Number<64, { 1 << Counter::BadRegister as u64 }>,
    code_bad: Number<64, { ErrorCode::BadRegister as u64 }>,
}

impl Logic for Csr {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            state,
            rdata,
            core_ok,
            ready,
            resetting,
            quiet,
            timer,
            cycles,
            cycles_held,
            error_out,
            record_out,
            counts_out
        );
        clock!(self, clock, place, bank, counters, log, anatomy);
        self.any_reset.next = self.reset.val() | self.resetting.q.val();
        self.soft_reset.next = self.resetting.q.val();
        self.quiesce.next = self.quiet.q.val();
        self.bank.reset.next = self.any_reset.val();
        self.anatomy.reset.next = self.any_reset.val();
        self.log.reset.next = self.any_reset.val() | (!self.ready.q.val());
        self.counters.reset.next = self.any_reset.val() | (!self.core_ok.q.val());
        self.core_ok.d.next = self.core_ready.val() & (!self.any_reset.val());
        self.ready.d.next =
            self.core_ok.q.val() & self.counters.ready.val() & (!self.any_reset.val());

        // Where the access goes: valid from Decode on.
        self.at.next = self.registers.offset.val().get_bits::<6>(2);
        self.place.offset.next = self.registers.offset.val();
        self.place.bad.next = self.registers.bad.val();

        // Registers.
        self.bank.index.next = self.registers.offset.val().get_bits::<5>(2);
        self.bank.wdata.next = self.registers.wdata.val();
        self.bank.write.next = false;
        self.bank.status.next = bit_cast::<5, 1>(self.ready.q.val().into())
            | (bit_cast::<5, 1>(self.admin_busy.val().into()) << 1)
            | (bit_cast::<5, 1>(self.admin_failed.val().into()) << 2)
            | (bit_cast::<5, 1>(self.reads_fail.val().into()) << 3)
            | (bit_cast::<5, 1>(self.sending.val().into()) << 4);
        self.bank.admin_head.next = self.admin_head.val();
        self.bank.cycles_low.next = 0.into();
        if self.ready.q.val() {
            self.bank.cycles_low.next = self.cycles.q.val().get_bits::<32>(0);
        }
        self.bank.cycles_high.next = self.cycles_held.q.val();
        self.bank.error_level.next = self.log.level.val();
        self.bank.error_lost.next = self.log.lost.val();
        self.bank.error_record.next = self.log.record.val();
        self.bank.sampled.next = self.anatomy.sampled.val();
        self.enable.next = self.bank.enable.val();
        self.admin_base.next = self.bank.admin_base.val();
        self.admin_log2.next = self.bank.admin_log2.val();
        self.admin_tail.next = self.bank.admin_tail.val();
        self.node.next = self.bank.node.val();
        self.max_payload.next = self.bank.max_payload.val();
        self.max_read.next = self.bank.max_read.val();
        self.requester.next = self.bank.requester.val();
        self.read_timeout.next = self.bank.read_timeout.val();
        self.ack_delay.next = self.bank.ack_delay.val();
        self.retry_timeout.next = self.bank.retry_timeout.val();
        self.retry_limit.next = self.bank.retry_limit.val();
        self.keepalive.next = self.bank.keepalive.val();
        self.moderation.next = self.bank.moderation.val();
        self.error_queue.next = self.bank.error_queue.val();
        self.error_queue_valid.next = self.bank.error_queue_valid.val();
        self.sample_vi.next = self.bank.sample_vi.val();
        self.sample_armed.next = self.bank.sample_armed.val();

        // Cycle counter: runs from the reset on, but reads zero before READY.
        self.cycles.d.next = self.cycles.q.val() + 1;

        // Anatomy, counters, log.
        self.anatomy.armed.next = self.bank.sample_armed.val();
        self.anatomy.cycle.next = self.cycles.q.val().get_bits::<32>(0);
        self.anatomy.clear.next = false;
        self.anatomy.index.next = self.registers.offset.val().get_bits::<4>(2);
        self.anatomy.stages.next = bit_cast::<9, 1>(self.stamp_doorbell.val().into())
            | (bit_cast::<9, 1>(self.stamp_descriptor.val().into()) << 1)
            | (bit_cast::<9, 1>(self.stamp_data.val().into()) << 2)
            | (bit_cast::<9, 1>(self.stamp_first_beat_out.val().into()) << 3)
            | (bit_cast::<9, 1>(self.stamp_last_beat_out.val().into()) << 4)
            | (bit_cast::<9, 1>(self.stamp_first_beat_in.val().into()) << 5)
            | (bit_cast::<9, 1>(self.stamp_matched.val().into()) << 6)
            | (bit_cast::<9, 1>(self.stamp_data_written.val().into()) << 7)
            | (bit_cast::<9, 1>(self.stamp_status_written.val().into()) << 8);
        self.counters.pulses_a.next = self.counts_a.val() | self.counts_out.q.val();
        self.counters.pulses_b.next = self.counts_b.val();
        self.counters.pulses_c.next = self.counts_c.val();
        self.counters.read_valid.next = self.state.q.val() == CsrState::Count;
        self.counters.read_index.next = self.at.val();
        self.log.in0_valid.next = self.error_valid0.val();
        self.log.in0_record.next = self.error_record0.val();
        self.log.in1_valid.next = self.error_valid1.val();
        self.log.in1_record.next = self.error_record1.val();
        self.log.in2_valid.next = self.error_valid2.val();
        self.log.in2_record.next = self.error_record2.val();
        self.log.in3_valid.next = self.error_valid3.val();
        self.log.in3_record.next = self.error_record3.val();
        self.log.in4_valid.next = self.error_valid4.val();
        self.log.in4_record.next = self.error_record4.val();
        self.log.in5_valid.next = self.error_out.q.val();
        self.log.in5_record.next = self.record_out.q.val();
        self.log.pop.next = false;
        self.counts_out.d.next = 0.into();
        self.error_out.d.next = false;
        self.record_out.d.next = self.code_bad.val()
            | (bit_cast::<64, 16>(self.registers.offset.val()) << 32)
            | (bit_cast::<64, 1>(self.registers.write.val().into()) << 63);

        self.msix.valid.next = false;
        self.msix.write.next = self.registers.write.val();
        self.msix.index.next = self.registers.offset.val().get_bits::<7>(2);
        self.msix.wdata.next = self.registers.wdata.val();
        self.registers.done.next = false;
        self.registers.rdata.next = self.rdata.q.val();
        self.resetting.d.next = false;
        self.quiet.d.next = false;
        self.timer.d.next = self.timer.q.val() + 1;
        self.write_now.next = self.registers.write.val() & self.ready.q.val();
        match self.state.q.val() {
            CsrState::Idle => {
                if self.registers.valid.val() {
                    self.state.d.next = CsrState::Decode;
                    // The low half is sampled at this same edge.
                    if self.place.cycles.val() & self.ready.q.val() & (!self.registers.write.val())
                    {
                        self.cycles_held.d.next = self.cycles.q.val().get_bits::<32>(32);
                    }
                }
            }
            CsrState::Decode => {
                self.rdata.d.next = 0.into();
                self.timer.d.next = 0.into();
                self.state.d.next = CsrState::Act;
            }
            CsrState::Act => {
                self.state.d.next = CsrState::Answer;
                if self.place.register.val() {
                    self.bank.write.next = self.write_now.val();
                    self.rdata.d.next = self.bank.value.val();
                    if self.write_now.val() {
                        self.log.pop.next = self.at.val() == self.at_pop.val();
                        self.anatomy.clear.next = self.at.val() == self.at_sample.val();
                        if (self.at.val() == self.at_control.val())
                            & self.registers.wdata.val().get_bit(1)
                        {
                            self.state.d.next = CsrState::Quiet;
                        }
                    }
                } else if self.place.stamp.val() {
                    self.rdata.d.next = self.anatomy.stamp.val();
                } else if self.place.counter.val() {
                    if self.ready.q.val() & (!self.registers.write.val()) {
                        self.state.d.next = CsrState::Count;
                    }
                } else if self.place.msix.val() {
                    // Before READY: masked, and zeros.
                    self.rdata.d.next = bit_cast::<32, 1>(
                        (self.registers.offset.val().get_bits::<2>(2) == 3).into(),
                    );
                    if self.ready.q.val() {
                        self.state.d.next = CsrState::Msix;
                    }
                } else if self.ready.q.val() {
                    self.counts_out.d.next = self.count_bad.val();
                    self.error_out.d.next = true;
                }
            }
            CsrState::Count => {
                self.rdata.d.next = self.counters.read_data.val();
                if self.counters.read_done.val() {
                    self.state.d.next = CsrState::Answer;
                }
            }
            CsrState::Msix => {
                self.msix.valid.next = true;
                self.rdata.d.next = self.msix.rdata.val();
                if self.msix.done.val() {
                    self.state.d.next = CsrState::Answer;
                }
            }
            CsrState::Quiet => {
                self.quiet.d.next = true;
                if self.rq_idle.val() | (self.timer.q.val() == self.quiet_end.val()) {
                    self.resetting.d.next = true;
                    self.timer.d.next = 0.into();
                    self.state.d.next = CsrState::Resetting;
                }
            }
            CsrState::Resetting => {
                self.quiet.d.next = true;
                self.resetting.d.next = true;
                if self.timer.q.val() == self.reset_end.val() {
                    self.resetting.d.next = false;
                    self.quiet.d.next = false;
                    self.state.d.next = CsrState::Answer;
                }
            }
            CsrState::Answer => {
                self.registers.done.next = true;
                self.state.d.next = CsrState::Idle;
            }
            _ => {
                self.state.d.next = CsrState::Idle;
            }
        }
        if self.any_reset.val() {
            self.cycles.d.next = 0.into();
            self.cycles_held.d.next = 0.into();
            self.ready.d.next = false;
            self.core_ok.d.next = false;
            self.error_out.d.next = false;
            self.counts_out.d.next = 0.into();
        }
        if self.reset.val() {
            self.state.d.next = CsrState::Idle;
            self.resetting.d.next = false;
            self.quiet.d.next = false;
        }
    }
}
