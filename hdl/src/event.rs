//! Event queues: rings in host memory, their doorbells, interrupts, and the delivery of messages
//! (contract 2.4, 7.8, 10).
//!
//! ```text
//! vi, recv, channel ==> Records (with RecordWriter) --> write       +-- QueueTable
//!          doorbell ==> Doorbells -----------.                      |
//!             admin ==> Commands ------------+--> one at a time, at a queue of the table
//!     full queues   --> Drainer ==> drain ---'
//!              msix ==> MsixTable <-- fire
//! ```
//! ```text
//!            event, doorbell, admin, drain                                     message
//!   Idle -----------------------------> Fetch -> Settle -> Check -> Act --------------> Copy -> Idle
//!    `-- message --> Bind -------------->^         RAM read  registers `-- others --> Idle
//! ```
//! One request at a time, round robin; in Act its sub-block decides, answers and says what changes
//! in the table. Records and interrupts go out one at a time: events wait while the writer is busy,
//! doorbells never do, so the acceptance of doorbells does not depend on the progress of our own
//! writes.
//!
//! A queue that was full is `deferring`. When its consumer index then moves, its number is queued
//! (once) for a drain; the drain first clears the mark, so that a deferral during the drain marks
//! the queue again.

mod command;
mod doorbell;
mod drain;
mod msix;
mod record;
mod table;
mod writer;

use crate::ifs::{DrainClient, EventAdminServer, EventServer, MsixServer, PostServer, WriteClient};
use crate::leaf::{Number, RoundRobin};
use command::Commands;
use doorbell::Doorbells;
use drain::Drainer;
use msix::MsixTable;
use nic_regs::counter::Counter;
use record::Records;
use rust_hdl::prelude::*;
use table::QueueTable;

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
    /// Register MODERATION.
    pub moderation: Signal<In, Bits<24>>,
    pub drain: DrainClient,
    /// Pulse: the channel may try again what `drain_channel_queue` refused.
    pub drain_channel: Signal<Out, Bit>,
    pub drain_channel_queue: Signal<Out, Bits<16>>,
    pub write: WriteClient,
    records: Records,
    doorbells: Doorbells,
    commands: Commands,
    drainer: Drainer,
    queues: QueueTable,
    msix_entries: MsixTable,
    arbiter: RoundRobin<7>,
    state: DFF<EventState>,
    who: DFF<Bits<7>>,
    queue: DFF<Bits<16>>,
    /// A message: `queue` was bound, and only a wide queue will do.
    message: DFF<Bit>,
    bound: DFF<Bit>,
    /// The queue exists, known in `Check`.
    found: DFF<Bit>,
    rdata: DFF<Bits<32>>,
    counts_out: DFF<Bits<64>>,
    calls: Signal<Local, Bits<3>>,
    request: Signal<Local, Bits<7>>,
    act: Signal<Local, Bit>,
    act_event: Signal<Local, Bit>,
    act_doorbell: Signal<Local, Bit>,
    act_admin: Signal<Local, Bit>,
    act_msix: Signal<Local, Bit>,
    act_drain: Signal<Local, Bit>,
    want_drain: Signal<Local, Bit>,
    counted: Signal<Local, Bits<64>>,
    count_bad: Number<64, { 1 << Counter::DoorbellBad as u32 }>,
    count_interrupt: Number<64, { 1 << Counter::Interrupts as u32 }>,
}

impl Logic for EventQueues {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, who, queue, message, bound, found, rdata, counts_out);
        clock!(self, clock, records, doorbells, commands, drainer, queues, msix_entries, arbiter);
        EventServer::link(&mut self.vi, &mut self.records.vi);
        EventServer::link(&mut self.recv, &mut self.records.recv);
        EventServer::link(&mut self.channel, &mut self.records.channel);
        WriteClient::link(&mut self.write, &mut self.records.write);
        PostServer::link(&mut self.doorbell, &mut self.doorbells.post);
        EventAdminServer::link(&mut self.admin, &mut self.commands.admin);
        DrainClient::link(&mut self.drain, &mut self.drainer.drain);
        self.records.reset.next = self.reset.val();
        self.doorbells.reset.next = self.reset.val();
        self.commands.reset.next = self.reset.val();
        self.drainer.reset.next = self.reset.val();
        self.queues.reset.next = self.reset.val();
        self.msix_entries.reset.next = self.reset.val();
        self.arbiter.reset.next = self.reset.val();
        self.ready.next = self.queues.ready.val();
        self.counts.next = self.counts_out.q.val();
        self.error_valid.next = self.doorbells.error_valid.val();
        self.error_record.next = self.doorbells.error_record.val();
        self.drain_channel.next = self.drainer.drain_channel.val();
        self.drain_channel_queue.next = self.drainer.drain_channel_queue.val();
        self.drainer.channel_calls.next = self.channel.valid.val();

        // Requests.
        self.calls.next = 0.into();
        if self.records.room.val() {
            self.calls.next = (bit_cast::<3, 1>(self.vi.valid.val().into())
                | (bit_cast::<3, 1>(self.recv.valid.val().into()) << 1)
                | (bit_cast::<3, 1>(self.channel.valid.val().into()) << 2))
                & (!self.records.answering.val());
        }
        self.request.next = bit_cast::<7, 3>(self.calls.val())
            | (bit_cast::<7, 1>(self.doorbell.valid.val().into()) << 3)
            | (bit_cast::<7, 1>((self.commands.request.val() & self.records.empty.val()).into())
                << 4)
            | (bit_cast::<7, 1>(self.msix.valid.val().into()) << 5)
            | (bit_cast::<7, 1>(self.drainer.due.val().into()) << 6);
        self.arbiter.request.next = self.request.val();
        self.arbiter.advance.next = false;
        self.act.next = false;
        self.queues.load.next = false;
        self.records.copying.next = false;

        match self.state.q.val() {
            EventState::Idle => {
                self.message.d.next = false;
                self.bound.d.next = true;
                self.queue.d.next = self.vi.queue.val();
                if self.arbiter.grant.val().get_bit(1) {
                    self.queue.d.next = self.recv.queue.val();
                } else if self.arbiter.grant.val().get_bit(2) {
                    self.queue.d.next = self.channel.queue.val();
                } else if self.arbiter.grant.val().get_bit(3) {
                    self.queue.d.next = self.doorbell.token.val().get_bits::<16>(0);
                } else if self.arbiter.grant.val().get_bit(4) {
                    self.queue.d.next = self.admin.index.val();
                } else if self.arbiter.grant.val().get_bit(6) {
                    self.queue.d.next = bit_cast::<16, 8>(self.drainer.due_queue.val());
                }
                self.who.d.next = self.arbiter.grant.val();
                if self.queues.ready.val() & self.arbiter.valid.val() {
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
                    bit_cast::<16, 8>(self.queues.message_queue.val().get_bits::<8>(0));
                self.bound.d.next = self.queues.message_queue.val().get_bit(8);
                self.state.d.next = EventState::Fetch;
            }
            EventState::Fetch => {
                self.state.d.next = EventState::Settle;
            }
            EventState::Settle => {
                self.queues.load.next = true;
                self.state.d.next = EventState::Check;
            }
            EventState::Check => {
                self.rdata.d.next = self.msix_entries.rdata.val();
                // The table's read port is the writer's while it sends an interrupt.
                if !self.records.msix_sending.val() {
                    self.state.d.next = EventState::Act;
                }
            }
            EventState::Act => {
                self.act.next = true;
                self.state.d.next = EventState::Idle;
                if self.records.produce.val() & self.message.q.val() {
                    self.state.d.next = EventState::Copy;
                }
            }
            EventState::Copy => {
                self.records.copying.next = true;
                if self.records.copied.val() {
                    self.state.d.next = EventState::Idle;
                }
            }
            _ => {
                self.state.d.next = EventState::Idle;
            }
        }
        self.act_event.next = self.act.val() & self.who.q.val().get_bits::<3>(0).any();
        self.act_doorbell.next = self.act.val() & self.who.q.val().get_bit(3);
        self.act_admin.next = self.act.val() & self.who.q.val().get_bit(4);
        self.act_msix.next = self.act.val() & self.who.q.val().get_bit(5);
        self.act_drain.next = self.act.val() & self.who.q.val().get_bit(6);

        // The queue cached, and what becomes of it.
        self.want_drain.next = self.doorbells.want_drain.val() | self.commands.want_drain.val();
        self.queues.message_domain.next = self.recv.queue.val().get_bits::<6>(0);
        self.queues.queue.next = self.queue.q.val().get_bits::<8>(0);
        self.queues.new_consumer.next = self.doorbells.new_consumer.val();
        self.queues.produce.next = self.records.produce.val();
        self.queues.put_off.next = self.records.put_off.val();
        self.queues.consume.next = self.doorbells.accepted.val();
        self.queues.arm.next = self.doorbells.arm.val();
        self.queues.create.next = self.commands.create.val();
        self.queues.start_drain.next = self.act_drain.val();
        self.queues.want_drain.next = self.want_drain.val();
        self.queues.config_write.next = self.commands.config_write.val();
        self.queues.config_word.next = self.commands.config_word.val();
        self.queues.base.next = self.commands.base.val();
        self.queues.bind_write.next = self.commands.bind_write.val();
        self.queues.bind_domain.next = self.commands.bind_domain.val();
        self.queues.bind_queue.next = self.commands.bind_queue.val();

        // Events.
        self.records.who.next = self.who.q.val().get_bits::<3>(0);
        self.records.at.next = self.act_event.val();
        self.records.message.next = self.message.q.val();
        self.found.d.next = self.bound.q.val()
            & (!self.queue.q.val().get_bits::<8>(8).any())
            & self.queues.exists.val();
        self.records.found.next = self.found.q.val();
        self.records.wide.next = self.queues.wide.val();
        self.records.full.next = self.queues.full.val();
        self.records.armed.next = self.queues.armed.val();
        self.records.vector.next = self.queues.vector.val();
        self.records.address.next = self.queues.record_address.val();
        self.records.phase.next = self.queues.phase.val();

        // Doorbells.
        self.doorbells.at.next = self.act_doorbell.val();
        self.doorbells.queue.next = self.queue.q.val();
        self.doorbells.exists.next = self.queues.exists.val();
        self.doorbells.domain.next = self.queues.domain.val();
        self.doorbells.deferring.next = self.queues.deferring.val();
        self.doorbells.queued.next = self.queues.queued.val();
        self.doorbells.new_fill.next = self.queues.new_fill.val();
        self.doorbells.size.next = self.queues.size.val();

        // Admin's commands and drains.
        self.commands.at.next = self.act_admin.val();
        self.commands.queue.next = self.queue.q.val();
        self.commands.exists.next = self.queues.exists.val();
        self.commands.deferring.next = self.queues.deferring.val();
        self.commands.queued.next = self.queues.queued.val();
        self.commands.draining.next = self.drainer.active.val();
        self.commands.drain_queue.next = self.drainer.active_queue.val();
        self.commands.drain_starts.next = self.act_drain.val();
        self.commands.drain_ends.next = self.drainer.ends.val();
        self.drainer.push.next = self.want_drain.val() & (!self.queues.queued.val());
        self.drainer.push_queue.next = self.queue.q.val().get_bits::<8>(0);
        self.drainer.start.next = self.act_drain.val();

        // MSI-X table and interrupts.
        self.msix.done.next = self.act_msix.val();
        self.msix.rdata.next = self.rdata.q.val();
        self.msix_entries.clear.next = !self.queues.ready.val();
        self.msix_entries.clear_index.next = self.queues.clear_index.val().get_bits::<5>(0);
        self.msix_entries.index.next = self.msix.index.val();
        self.msix_entries.moderation.next = self.moderation.val();
        self.msix_entries.write.next = self.act_msix.val() & self.msix.write.val();
        self.msix_entries.wdata.next = self.msix.wdata.val();
        self.msix_entries.fire.next = self.doorbells.fire.val();
        self.msix_entries.fire_vector.next = self.queues.vector.val();
        self.msix_entries.fire_record.next = self.records.fire.val();
        self.msix_entries.fire_record_vector.next = self.records.fire_vector.val();
        self.msix_entries.sending.next = self.records.msix_sending.val();
        self.records.msix_any.next = self.msix_entries.any.val();
        self.records.msix_chosen.next = self.msix_entries.chosen.val();
        self.records.msix_address.next = self.msix_entries.address.val();
        self.records.msix_data.next = self.msix_entries.data.val();

        // Counters.
        self.counted.next = self.records.counted.val();
        if self.doorbells.refused.val() {
            self.counted.next = self.count_bad.val();
        }
        self.counts_out.d.next = self.counted.val();
        if self.records.msix_sending.val() {
            self.counts_out.d.next = self.counted.val() | self.count_interrupt.val();
        }
        if self.reset.val() {
            self.state.d.next = EventState::Idle;
            self.counts_out.d.next = 0.into();
        }
    }
}
