//! Event queues: rings in host memory, their doorbells, interrupts, and the delivery of messages
//! (contract 2.4, 7.8, 10).
//!
//! ```text
//!            event, doorbell, admin, drain                                     message
//!   Idle -----------------------------> Fetch -> Settle -> Check -> Act --------------> Copy -> Idle
//!    `-- message --> Bind -------------->^         RAM read  registers `-- others --> Idle
//! ```
//! One request at a time, round robin; Act decides, answers and writes the state back. Records and
//! interrupts go out through [`writer`], one at a time: events wait while it is busy, doorbells
//! never do, so the acceptance of doorbells does not depend on the progress of our own writes.
//!
//! A queue that was full is `deferring`. When its consumer index then moves, its number is queued
//! (once) for a drain; the drain first clears the mark, so that a deferral during the drain marks
//! the queue again. Then it asks, in this order, the VIs for completions (`drain`), the channel (a
//! pulse; over when it has not called for 32 cycles), the VIs for ViErrors (`drain` with bit 15 of
//! the queue). EventDestroy of a queue that has deferred something ends after such a drain, which
//! finds the queue absent and so loses it all.
//!
//! EventsDeferred counts first tries: the VIs count theirs, the channel's are counted here.

mod msix;
mod writer;

use crate::ifs::{DrainClient, EventAdminServer, EventServer, MsixServer, PostServer, WriteClient};
use crate::leaf::{Fifo, LutRam, Number, RoundRobin, SdpRam};
use msix::MsixTable;
use nic_regs::admin::AdminStatus;
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::doorbell::{EVENT_OFFSET, EventDoorbell};
use nic_regs::limits::{DOMAIN_COUNT, EVENT_QUEUE_COUNT};
use rust_hdl::prelude::*;
use writer::RecordWriter;

const _: () = assert!(EVENT_QUEUE_COUNT == 256 && DOMAIN_COUNT == 64, "8 and 6 address bits");
const _: () = assert!(EventDoorbell::ARM_BIT == 16 && EventDoorbell::CONSUMER_LSB == 32);

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum EventState {
    /// Chooses a request.
    Idle,
    /// Looks up the queue bound to a message's domain.
    Bind,
    /// Addresses the RAMs.
    Fetch,
    /// RAM outputs.
    Settle,
    /// Fill, slot and phase are computed.
    Check,
    /// Decides and answers.
    Act,
    /// Copies the message's six beats.
    Copy,
}

/// Requesters: 0 vi, 1 recv, 2 channel, 3 doorbell, 4 admin, 5 MSI-X table, 6 start of a drain.
#[derive(LogicBlock, Default)]
pub struct EventQueues {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    pub error_valid: Signal<Out, Bit>,
    pub error_record: Signal<Out, Bits<64>>,
    pub vi: EventServer,
    pub recv: EventServer,
    pub channel: EventServer,
    pub doorbell: PostServer,
    pub admin: EventAdminServer,
    pub msix: MsixServer,
    pub drain: DrainClient,
    /// Pulse: the channel may try again what `drain_channel_queue` refused.
    pub drain_channel: Signal<Out, Bit>,
    pub drain_channel_queue: Signal<Out, Bits<16>>,
    pub write: WriteClient,
    writer: RecordWriter,
    msix_entries: MsixTable,
    /// Base without its low 6 bits.
    base_ram: SdpRam<58, 8>,
    /// Exists 0, wide 1, log2 5:2, domain 11:6, vector 16:12.
    config_ram: SdpRam<17, 8>,
    /// Producer 15:0, consumer 31:16, armed 32, deferring 33, queued for a drain 34.
    index_ram: SdpRam<35, 8>,
    /// Queue bound to a domain 7:0, bound 8.
    bind_ram: LutRam<9, 6>,
    drains: Fifo<8, 8>,
    arbiter: RoundRobin<7>,
    /// Bit 8: the tables are clear.
    clear_at: DFF<Bits<9>>,
    state: DFF<EventState>,
    who: DFF<Bits<7>>,
    queue: DFF<Bits<16>>,
    /// A message: `queue` was bound, and only a wide queue will do.
    message: DFF<Bit>,
    bound: DFF<Bit>,
    base: DFF<Bits<58>>,
    config_now: DFF<Bits<17>>,
    index_now: DFF<Bits<35>>,
    fill: DFF<Bits<16>>,
    /// Fill with the doorbell's consumer index.
    new_fill: DFF<Bits<16>>,
    offset: DFF<Bits<22>>,
    phase: DFF<Bit>,
    size: DFF<Bits<16>>,
    rdata: DFF<Bits<32>>,
    beat: DFF<Bits<3>>,
    /// A drain runs / its call of the VIs / its second one.
    draining: DFF<Bit>,
    asking: DFF<Bit>,
    last_phase: DFF<Bit>,
    /// Cycles since the channel's last call, in the drain's second phase.
    quiet: DFF<Bits<6>>,
    /// EventDestroy waits for a drain; that drain runs.
    destroying: DFF<Bit>,
    destroy_drains: DFF<Bit>,
    /// The channel has an event that was counted as put off.
    channel_put_off: DFF<Bit>,
    drain_start: DFF<Bit>,
    drain_queue: DFF<Bits<16>>,
    counts_out: DFF<Bits<64>>,
    error_out: DFF<Bit>,
    error_record_out: DFF<Bits<64>>,
    drain_due: Signal<Local, Bit>,
    unbound: Signal<Local, Bit>,
    request: Signal<Local, Bits<7>>,
    act: Signal<Local, Bit>,
    act_event: Signal<Local, Bit>,
    act_doorbell: Signal<Local, Bit>,
    act_admin: Signal<Local, Bit>,
    act_msix: Signal<Local, Bit>,
    act_drain: Signal<Local, Bit>,
    done: Signal<Local, Bit>,
    outcome: Signal<Local, Bits<2>>,
    in_range: Signal<Local, Bit>,
    exists: Signal<Local, Bit>,
    wide: Signal<Local, Bit>,
    log2: Signal<Local, Bits<4>>,
    vector: Signal<Local, Bits<5>>,
    producer: Signal<Local, Bits<16>>,
    consumer: Signal<Local, Bits<16>>,
    armed: Signal<Local, Bit>,
    deferring: Signal<Local, Bit>,
    queued: Signal<Local, Bit>,
    new_consumer: Signal<Local, Bits<16>>,
    slot_mask: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    full: Signal<Local, Bit>,
    absent: Signal<Local, Bit>,
    deliver: Signal<Local, Bit>,
    owned: Signal<Local, Bit>,
    accepted: Signal<Local, Bit>,
    too_far: Signal<Local, Bit>,
    drain_wanted: Signal<Local, Bit>,
    cause: Signal<Local, Bits<4>>,
    index_write: Signal<Local, Bit>,
    next_producer: Signal<Local, Bits<16>>,
    next_consumer: Signal<Local, Bits<16>>,
    next_armed: Signal<Local, Bit>,
    next_deferring: Signal<Local, Bit>,
    next_queued: Signal<Local, Bit>,
    admin_bad: Signal<Local, Bit>,
    creating: Signal<Local, Bit>,
    destroying_now: Signal<Local, Bit>,
    drain_ends: Signal<Local, Bit>,
    destroyed: Signal<Local, Bit>,
    errors_bit: Number<16, 0x8000>,
    counted: Signal<Local, Bits<64>>,
    exists_bit: Number<17, 1>,
    domain6: Signal<Local, Bits<6>>,
    doorbell_token: Signal<Local, Bits<64>>,
    doorbell_domain: Signal<Local, Bits<8>>,
    one: Number<16, 1>,
    full_mask: Number<16, 0xffff>,
    last_index: Number<3, 6>,
    absent_outcome: Number<2, 2>,
    full_outcome: Number<2, 1>,
    cause_not_own: Number<4, 2>,
    cause_range: Number<4, 3>,
    op_create: Number<2, 0>,
    op_destroy: Number<2, 1>,
    op_bind: Number<2, 2>,
    status_bad_state: Number<4, { AdminStatus::BadState as u64 }>,
    bad_doorbell: Number<64, { ErrorCode::BadDoorbell as u64 | EVENT_OFFSET << 48 }>,
    count_written: Number<64, { 1 << Counter::EventsWritten as u32 }>,
    count_deferred: Number<64, { 1 << Counter::EventsDeferred as u32 }>,
    count_message:
        Number<64, { 1 << Counter::MessagesReceived as u32 | 1 << Counter::EventsWritten as u32 }>,
    count_bad: Number<64, { 1 << Counter::DoorbellBad as u32 }>,
    count_interrupt: Number<64, { 1 << Counter::Interrupts as u32 }>,
}

impl Logic for EventQueues {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            clear_at,
            state,
            who,
            queue,
            message,
            bound,
            base,
            config_now,
            index_now,
            fill,
            new_fill,
            offset,
            phase,
            size,
            rdata,
            beat,
            draining,
            asking,
            last_phase,
            quiet,
            destroying,
            destroy_drains,
            channel_put_off,
            drain_start,
            drain_queue,
            counts_out,
            error_out,
            error_record_out
        );
        clock!(
            self,
            clock,
            writer,
            msix_entries,
            base_ram,
            config_ram,
            index_ram,
            bind_ram,
            drains,
            arbiter
        );
        self.writer.reset.next = self.reset.val();
        self.msix_entries.reset.next = self.reset.val();
        self.drains.reset.next = self.reset.val();
        self.arbiter.reset.next = self.reset.val();
        self.ready.next = self.clear_at.q.val().get_bit(8);
        self.counts.next = self.counts_out.q.val();
        self.error_valid.next = self.error_out.q.val();
        self.error_record.next = self.error_record_out.q.val();
        self.drain_channel.next = self.drain_start.q.val();
        self.drain_channel_queue.next = self.drain_queue.q.val();
        self.drain.valid.next = self.asking.q.val();
        self.drain.queue.next = self.drain_queue.q.val();
        if self.last_phase.q.val() {
            self.drain.queue.next = self.drain_queue.q.val() | self.errors_bit.val();
        }
        self.drain_start.d.next = false;
        self.drain_ends.next = false;
        if self.asking.q.val() {
            self.quiet.d.next = 0.into();
            if self.drain.done.val() {
                self.asking.d.next = false;
                self.drain_start.d.next = !self.last_phase.q.val();
                self.drain_ends.next = self.last_phase.q.val();
            }
        } else if self.draining.q.val() {
            self.quiet.d.next = self.quiet.q.val() + 1;
            if self.channel.valid.val() {
                self.quiet.d.next = 0.into();
            }
            if self.quiet.q.val().get_bit(5) {
                self.asking.d.next = true;
                self.last_phase.d.next = true;
            }
        }
        self.destroyed.next = false;
        if self.drain_ends.val() {
            self.draining.d.next = false;
            self.last_phase.d.next = false;
            if self.destroy_drains.q.val() {
                self.destroying.d.next = false;
                self.destroy_drains.d.next = false;
                self.destroyed.next = true;
            }
        }

        // The state of the queue at hand.
        self.exists.next = self.config_now.q.val().get_bit(0);
        self.wide.next = self.config_now.q.val().get_bit(1);
        self.log2.next = self.config_now.q.val().get_bits::<4>(2);
        self.domain6.next = self.config_now.q.val().get_bits::<6>(6);
        self.vector.next = self.config_now.q.val().get_bits::<5>(12);
        self.producer.next = self.index_now.q.val().get_bits::<16>(0);
        self.consumer.next = self.index_now.q.val().get_bits::<16>(16);
        self.armed.next = self.index_now.q.val().get_bit(32);
        self.deferring.next = self.index_now.q.val().get_bit(33);
        self.queued.next = self.index_now.q.val().get_bit(34);
        self.in_range.next = !self.queue.q.val().get_bits::<8>(8).any();
        self.doorbell_token.next = self.doorbell.token.val();
        self.doorbell_domain.next = self.doorbell.domain.val();
        self.new_consumer.next = self.doorbell_token.val().get_bits::<16>(32);

        // Check: registered for Act.
        self.fill.d.next = self.producer.val() - self.consumer.val();
        self.new_fill.d.next = self.producer.val() - self.new_consumer.val();
        self.size.d.next = self.one.val() << self.log2.val();
        self.slot_mask.next = self.full_mask.val() << self.log2.val();
        self.slot.next = self.producer.val() & (!self.slot_mask.val());
        self.offset.d.next = bit_cast::<22, 16>(self.slot.val()) << 4;
        if self.wide.val() {
            self.offset.d.next = bit_cast::<22, 16>(self.slot.val()) << 6;
        }
        self.phase.d.next = !self.producer.val().get_bit(self.log2.val().index());

        // Requests.
        self.drain_due.next = (!self.drains.empty.val()) & (!self.draining.q.val());
        self.unbound.next = !self.admin.queue.val().get_bits::<8>(8).any();
        self.request.next = bit_cast::<7, 1>((self.vi.valid.val() & self.writer.room.val()).into())
            | (bit_cast::<7, 1>((self.recv.valid.val() & self.writer.room.val()).into()) << 1)
            | (bit_cast::<7, 1>((self.channel.valid.val() & self.writer.room.val()).into()) << 2)
            | (bit_cast::<7, 1>(self.doorbell.valid.val().into()) << 3)
            | (bit_cast::<7, 1>(
                (self.admin.valid.val() & self.writer.empty.val() & (!self.destroying.q.val()))
                    .into(),
            ) << 4)
            | (bit_cast::<7, 1>(self.msix.valid.val().into()) << 5)
            | (bit_cast::<7, 1>(self.drain_due.val().into()) << 6);
        self.arbiter.request.next = self.request.val();
        self.arbiter.advance.next = false;
        self.bind_ram.read_address.next = self.recv.queue.val().get_bits::<6>(0);
        self.base_ram.read_address.next = self.queue.q.val().get_bits::<8>(0);
        self.config_ram.read_address.next = self.queue.q.val().get_bits::<8>(0);
        self.index_ram.read_address.next = self.queue.q.val().get_bits::<8>(0);
        self.act.next = false;
        self.done.next = false;
        self.writer.record.next = false;
        self.writer.beat_write.next = false;
        self.writer.beat_index.next = self.beat.q.val() - 1;
        self.deliver.next = false;

        match self.state.q.val() {
            EventState::Idle => {
                self.message.d.next = false;
                self.bound.d.next = true;
                self.beat.d.next = 0.into();
                self.queue.d.next = self.vi.queue.val();
                if self.arbiter.grant.val().get_bit(1) {
                    self.queue.d.next = self.recv.queue.val();
                } else if self.arbiter.grant.val().get_bit(2) {
                    self.queue.d.next = self.channel.queue.val();
                } else if self.arbiter.grant.val().get_bit(3) {
                    self.queue.d.next = self.doorbell_token.val().get_bits::<16>(0);
                } else if self.arbiter.grant.val().get_bit(4) {
                    self.queue.d.next = self.admin.index.val();
                } else if self.arbiter.grant.val().get_bit(6) {
                    self.queue.d.next = bit_cast::<16, 8>(self.drains.data_out.val());
                }
                self.who.d.next = self.arbiter.grant.val();
                if self.clear_at.q.val().get_bit(8) & self.arbiter.valid.val() {
                    self.arbiter.advance.next = true;
                    self.state.d.next = EventState::Fetch;
                    if self.arbiter.grant.val().get_bit(1) & self.recv.wide.val() {
                        self.state.d.next = EventState::Bind;
                    }
                }
            }
            EventState::Bind => {
                self.message.d.next = true;
                self.queue.d.next =
                    bit_cast::<16, 8>(self.bind_ram.read_data.val().get_bits::<8>(0));
                self.bound.d.next = self.bind_ram.read_data.val().get_bit(8);
                self.state.d.next = EventState::Fetch;
            }
            EventState::Fetch => {
                self.state.d.next = EventState::Settle;
            }
            EventState::Settle => {
                self.base.d.next = self.base_ram.read_data.val();
                self.config_now.d.next = self.config_ram.read_data.val();
                self.index_now.d.next = self.index_ram.read_data.val();
                self.state.d.next = EventState::Check;
            }
            EventState::Check => {
                self.rdata.d.next = self.msix_entries.rdata.val();
                // The table's read port is the writer's while it sends an interrupt.
                if !self.writer.msix_sending.val() {
                    self.state.d.next = EventState::Act;
                }
            }
            EventState::Act => {
                self.act.next = true;
                self.state.d.next = EventState::Idle;
            }
            EventState::Copy => {
                self.writer.beat_write.next = true;
                self.beat.d.next = self.beat.q.val() + 1;
                if self.beat.q.val() == self.last_index.val() {
                    self.writer.record.next = true;
                    self.done.next = true;
                    self.state.d.next = EventState::Idle;
                }
            }
            _ => {
                self.state.d.next = EventState::Idle;
            }
        }

        // Act on an event.
        self.act_event.next = self.act.val() & self.who.q.val().get_bits::<3>(0).any();
        self.act_doorbell.next = self.act.val() & self.who.q.val().get_bit(3);
        self.act_admin.next = self.act.val() & self.who.q.val().get_bit(4);
        self.act_msix.next = self.act.val() & self.who.q.val().get_bit(5);
        self.act_drain.next = self.act.val() & self.who.q.val().get_bit(6);
        self.absent.next = (!self.bound.q.val())
            | (!self.in_range.val())
            | (!self.exists.val())
            | (self.message.q.val() & (!self.wide.val()));
        self.full.next = self.fill.q.val().get_bit(self.log2.val().index());
        self.deliver.next = self.act_event.val() & (!self.absent.val()) & (!self.full.val());
        self.outcome.next = 0.into();
        self.counted.next = 0.into();
        if self.act_event.val() {
            if self.absent.val() {
                self.outcome.next = self.absent_outcome.val();
            } else if self.full.val() {
                self.outcome.next = self.full_outcome.val();
                if self.who.q.val().get_bit(2) {
                    self.channel_put_off.d.next = true;
                    if !self.channel_put_off.q.val() {
                        self.counted.next = self.count_deferred.val();
                    }
                }
            } else if self.message.q.val() {
                self.counted.next = self.count_message.val();
                self.state.d.next = EventState::Copy;
            } else {
                self.counted.next = self.count_written.val();
                self.writer.record.next = true;
            }
            if self.who.q.val().get_bit(2) & (self.absent.val() | (!self.full.val())) {
                self.channel_put_off.d.next = false;
            }
            self.done.next = !(self.deliver.val() & self.message.q.val());
        }
        self.vi.done.next = self.done.val() & self.who.q.val().get_bit(0);
        self.vi.outcome.next = self.outcome.val();
        self.vi.message_index.next = 0.into();
        self.recv.done.next = self.done.val() & self.who.q.val().get_bit(1);
        self.recv.outcome.next = self.outcome.val();
        self.recv.message_index.next = self.beat.q.val();
        self.channel.done.next = self.done.val() & self.who.q.val().get_bit(2);
        self.channel.outcome.next = self.outcome.val();
        self.channel.message_index.next = 0.into();
        self.writer.address.next =
            (bit_cast::<64, 58>(self.base.q.val()) << 6) + bit_cast::<64, 22>(self.offset.q.val());
        self.writer.word0.next = self.vi.word0.val();
        self.writer.word1.next = self.vi.word1.val();
        self.writer.word2.next = self.vi.word2.val();
        if self.who.q.val().get_bit(1) {
            self.writer.word0.next = self.recv.word0.val();
            self.writer.word1.next = self.recv.word1.val();
            self.writer.word2.next = self.recv.word2.val();
        } else if self.who.q.val().get_bit(2) {
            self.writer.word0.next = self.channel.word0.val();
            self.writer.word1.next = self.channel.word1.val();
            self.writer.word2.next = self.channel.word2.val();
        }
        self.writer.phase.next = self.phase.q.val();
        self.writer.wide.next = self.wide.val();
        self.writer.message.next = self.message.q.val();
        self.writer.interrupt.next = self.armed.val();
        self.writer.vector.next = self.vector.val();
        self.writer.beat_data.next = self.recv.message_data.val();

        // Act on a doorbell.
        self.owned.next = self.in_range.val()
            & self.exists.val()
            & (bit_cast::<8, 6>(self.domain6.val()) == self.doorbell_domain.val());
        self.too_far.next = self.new_fill.q.val() > self.size.q.val();
        self.accepted.next = self.act_doorbell.val() & self.owned.val() & (!self.too_far.val());
        self.drain_wanted.next = self.accepted.val()
            & self.deferring.val()
            & (!self.queued.val())
            & (self.new_fill.q.val() != self.size.q.val());
        self.doorbell.ready.next = self.act_doorbell.val();
        self.drains.write.next = self.drain_wanted.val();
        self.drains.data_in.next = self.queue.q.val().get_bits::<8>(0);
        self.msix_entries.fire.next = self.accepted.val()
            & self.doorbell_token.val().get_bit(16)
            & self.new_fill.q.val().any();
        self.msix_entries.fire_vector.next = self.vector.val();
        self.error_out.d.next = self.act_doorbell.val() & (!self.accepted.val());
        self.cause.next = self.cause_not_own.val();
        if self.owned.val() {
            self.cause.next = self.cause_range.val();
        }
        self.error_record_out.d.next = self.bad_doorbell.val()
            | (bit_cast::<64, 8>(self.doorbell_domain.val()) << 16)
            | (bit_cast::<64, 16>(self.queue.q.val()) << 32)
            | (bit_cast::<64, 4>(self.cause.val()) << 60);
        if self.act_doorbell.val() & (!self.accepted.val()) {
            self.counted.next = self.count_bad.val();
        }

        // Act on a drain.
        self.drains.read.next = self.act_drain.val();
        if self.act_drain.val() {
            self.draining.d.next = true;
            self.asking.d.next = true;
            self.drain_queue.d.next = self.queue.q.val();
            self.destroy_drains.d.next =
                self.destroying.q.val() & (self.queue.q.val() == self.admin.index.val());
        }

        // Act on an admin command.
        self.admin_bad.next = ((self.admin.op.val() == self.op_create.val()) & self.exists.val())
            | ((self.admin.op.val() == self.op_destroy.val()) & (!self.exists.val()));
        self.destroying_now.next = self.act_admin.val()
            & (self.admin.op.val() == self.op_destroy.val())
            & self.exists.val()
            & (self.deferring.val()
                | self.queued.val()
                | (self.draining.q.val() & (self.drain_queue.q.val() == self.queue.q.val())));
        if self.destroying_now.val() {
            self.destroying.d.next = true;
            self.drains.write.next = !self.queued.val();
        }
        self.admin.done.next =
            (self.act_admin.val() & (!self.destroying_now.val())) | self.destroyed.val();
        self.admin.status.next = 0.into();
        if self.admin_bad.val() & self.act_admin.val() {
            self.admin.status.next = self.status_bad_state.val();
        }
        self.creating.next = self.act_admin.val()
            & (self.admin.op.val() == self.op_create.val())
            & (!self.exists.val());
        self.base_ram.write_address.next = self.queue.q.val().get_bits::<8>(0);
        self.base_ram.write_data.next = self.admin.base.val().get_bits::<58>(6);
        self.base_ram.write_enable.next = self.creating.val();
        self.config_ram.write_address.next = self.queue.q.val().get_bits::<8>(0);
        self.config_ram.write_data.next = 0.into();
        if self.admin.op.val() == self.op_create.val() {
            self.config_ram.write_data.next = self.exists_bit.val()
                | (bit_cast::<17, 1>(self.admin.wide.val().into()) << 1)
                | (bit_cast::<17, 4>(self.admin.log2.val()) << 2)
                | (bit_cast::<17, 6>(self.admin.domain.val().get_bits::<6>(0)) << 6)
                | (bit_cast::<17, 5>(self.admin.vector.val().get_bits::<5>(0)) << 12);
        }
        self.config_ram.write_enable.next = self.act_admin.val()
            & (self.admin.op.val() != self.op_bind.val())
            & (!self.admin_bad.val());
        self.bind_ram.write_address.next = self.admin.index.val().get_bits::<6>(0);
        self.bind_ram.write_data.next = bit_cast::<9, 8>(self.admin.queue.val().get_bits::<8>(0))
            | (bit_cast::<9, 1>(self.unbound.val().into()) << 8);
        self.bind_ram.write_enable.next =
            self.act_admin.val() & (self.admin.op.val() == self.op_bind.val());

        // The queue's indexes after this.
        self.next_producer.next = self.producer.val();
        self.next_consumer.next = self.consumer.val();
        self.next_armed.next = self.armed.val();
        self.next_deferring.next = self.deferring.val();
        self.next_queued.next = self.queued.val();
        self.index_write.next = false;
        if self.act_event.val() & (!self.absent.val()) {
            self.index_write.next = true;
            if self.full.val() {
                self.next_deferring.next = self.deferring.val() | (!self.message.q.val());
            } else {
                self.next_producer.next = self.producer.val() + 1;
                self.next_armed.next = false;
            }
        } else if self.accepted.val() {
            self.index_write.next = true;
            self.next_consumer.next = self.new_consumer.val();
            self.next_armed.next =
                self.doorbell_token.val().get_bit(16) & (!self.new_fill.q.val().any());
            if self.drain_wanted.val() {
                self.next_queued.next = true;
            }
        } else if self.creating.val() {
            self.index_write.next = true;
            self.next_producer.next = 0.into();
            self.next_consumer.next = 0.into();
            self.next_armed.next = false;
        } else if self.destroying_now.val() {
            self.index_write.next = true;
            self.next_queued.next = true;
        } else if self.act_drain.val() {
            self.index_write.next = true;
            self.next_deferring.next = false;
            self.next_queued.next = false;
        }
        self.index_ram.write_address.next = self.queue.q.val().get_bits::<8>(0);
        self.index_ram.write_enable.next = self.index_write.val();
        self.index_ram.write_data.next = bit_cast::<35, 16>(self.next_producer.val())
            | (bit_cast::<35, 16>(self.next_consumer.val()) << 16)
            | (bit_cast::<35, 1>(self.next_armed.val().into()) << 32)
            | (bit_cast::<35, 1>(self.next_deferring.val().into()) << 33)
            | (bit_cast::<35, 1>(self.next_queued.val().into()) << 34);

        // MSI-X table and interrupts.
        self.msix.done.next = self.act_msix.val();
        self.msix.rdata.next = self.rdata.q.val();
        self.msix_entries.index.next = self.msix.index.val();
        self.msix_entries.write.next = self.act_msix.val() & self.msix.write.val();
        self.msix_entries.wdata.next = self.msix.wdata.val();
        self.msix_entries.fire_record.next = self.writer.fire.val();
        self.msix_entries.fire_record_vector.next = self.writer.fire_vector.val();
        self.msix_entries.sending.next = self.writer.msix_sending.val();
        self.writer.msix_any.next = self.msix_entries.any.val();
        self.writer.msix_chosen.next = self.msix_entries.chosen.val();
        self.writer.msix_address.next = self.msix_entries.address.val();
        self.writer.msix_data.next = self.msix_entries.data.val();
        self.writer.out_ready.next = self.write.ready.val();
        self.write.valid.next = self.writer.out_valid.val();
        self.write.address.next = self.writer.out_address.val();
        self.write.length.next = self.writer.out_length.val();
        self.write.data.next = self.writer.out_data.val();
        self.write.last.next = self.writer.out_last.val();
        self.counts_out.d.next = self.counted.val();
        if self.writer.msix_sending.val() {
            self.counts_out.d.next = self.counted.val() | self.count_interrupt.val();
        }

        // Clearing the tables.
        self.msix_entries.clear.next = !self.clear_at.q.val().get_bit(8);
        self.msix_entries.clear_index.next = self.clear_at.q.val().get_bits::<5>(0);
        if !self.clear_at.q.val().get_bit(8) {
            self.clear_at.d.next = self.clear_at.q.val() + 1;
            self.config_ram.write_address.next = self.clear_at.q.val().get_bits::<8>(0);
            self.config_ram.write_data.next = 0.into();
            self.config_ram.write_enable.next = true;
            self.index_ram.write_address.next = self.clear_at.q.val().get_bits::<8>(0);
            self.index_ram.write_data.next = 0.into();
            self.index_ram.write_enable.next = true;
            self.bind_ram.write_address.next = self.clear_at.q.val().get_bits::<6>(0);
            self.bind_ram.write_data.next = 0.into();
            self.bind_ram.write_enable.next = true;
        }
        if self.reset.val() {
            self.clear_at.d.next = 0.into();
            self.state.d.next = EventState::Idle;
            self.draining.d.next = false;
            self.asking.d.next = false;
            self.last_phase.d.next = false;
            self.destroying.d.next = false;
            self.destroy_drains.d.next = false;
            self.channel_put_off.d.next = false;
            self.drain_start.d.next = false;
            self.counts_out.d.next = 0.into();
            self.error_out.d.next = false;
        }
    }
}
