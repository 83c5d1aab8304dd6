//! Admin ring: fetches 64-byte commands, checks them, has the owner of the object execute them,
//! completes them in place.
//!
//! ```text
//! Idle -> Fetch -> Load -> Decode -> Check -> [Pause ->] Call -> Status -> Complete0 -> Complete1 -> Idle
//!                   `-> Failed (until reset)
//! ```
//! One command at a time, in order. Commands that need a fence (contract 8) pause both engines
//! between frames first.

use crate::ifs::{
    EventAdminClient, FenceClient, MessageClient, PeerClient, ReadClient, TptSetClient,
    ViAdminClient, WriteClient,
};
use crate::leaf::Number;
use nic_regs::admin::{AdminStatus, COMPLETION_BYTES, DONE, ENTRY_BYTES, NO_QUEUE, Opcode};
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::limits;
use nic_regs::vi::Reliability;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum AdminState {
    /// Waits for ADMIN_TAIL to move.
    Idle,
    /// Asks for the entry.
    Fetch,
    /// Takes the eight beats of the entry.
    Load,
    /// Registers the range checks.
    Decode,
    /// Chooses between execution and a failing status.
    Check,
    /// Waits until both engines have paused.
    Pause,
    /// Waits for the owner's answer.
    Call,
    /// Registers the completion.
    Status,
    /// First beat of the completion.
    Complete0,
    /// Second beat of the completion.
    Complete1,
    /// The ring stopped because an entry could not be read.
    Failed,
}

/// Owner of the object that a command names.
#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum AdminOwner {
    /// No call: the command is done.
    None,
    /// Region table.
    Tpt,
    /// VIs.
    Vi,
    /// Event queues.
    EventQueue,
    /// Peers.
    Peer,
    /// Message to send.
    Message,
}

#[derive(LogicBlock, Default)]
pub struct Admin {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// All tables are clear and the device is enabled.
    pub enable: Signal<In, Bit>,
    pub admin_base: Signal<In, Bits<64>>,
    pub admin_log2: Signal<In, Bits<4>>,
    pub admin_tail: Signal<In, Bits<16>>,
    pub admin_head: Signal<Out, Bits<16>>,
    pub admin_busy: Signal<Out, Bit>,
    pub admin_failed: Signal<Out, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    pub error_valid: Signal<Out, Bit>,
    pub error_record: Signal<Out, Bits<64>>,
    pub read: ReadClient,
    pub write: WriteClient,
    pub tpt: TptSetClient,
    pub vi: ViAdminClient,
    pub event_queue: EventAdminClient,
    pub peer: PeerClient,
    pub message: MessageClient,
    pub fence_send: FenceClient,
    pub fence_recv: FenceClient,
    state: DFF<AdminState>,
    owner: DFF<AdminOwner>,
    head: DFF<Bits<16>>,
    address: DFF<Bits<64>>,
    beat: DFF<Bits<3>>,
    // The entry: two dwords a register.
    entry0: DFF<Bits<64>>,
    entry1: DFF<Bits<64>>,
    entry2: DFF<Bits<64>>,
    entry3: DFF<Bits<64>>,
    entry4: DFF<Bits<64>>,
    entry5: DFF<Bits<64>>,
    entry6: DFF<Bits<64>>,
    entry7: DFF<Bits<64>>,
    message_data: DFF<Bits<64>>,
    pausing: DFF<Bit>,
    called: DFF<Bit>,
    status: DFF<Bits<4>>,
    result: DFF<Bits<32>>,
    counts_out: DFF<Bits<64>>,
    error_out: DFF<Bit>,
    bad_opcode: DFF<Bit>,
    bad_index: DFF<Bit>,
    bad_argument: DFF<Bit>,
    fenced: DFF<Bit>,
    va_sum: DFF<Bits<65>>,
    bus_sum: DFF<Bits<65>>,
    work: Signal<Local, Bit>,
    opcode: Signal<Local, Bits<32>>,
    index: Signal<Local, Bits<32>>,
    index_low: Signal<Local, Bits<16>>,
    node: Signal<Local, Bits<8>>,
    message_domain: Signal<Local, Bits<8>>,
    word4: Signal<Local, Bits<32>>,
    word5: Signal<Local, Bits<32>>,
    word6: Signal<Local, Bits<32>>,
    word8: Signal<Local, Bits<32>>,
    word9: Signal<Local, Bits<32>>,
    word10: Signal<Local, Bits<32>>,
    length_less_one: Signal<Local, Bits<32>>,
    slot_mask: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    queue_bad: Signal<Local, Bit>,
    queue_bad_send: Signal<Local, Bit>,
    queue_bad_recv: Signal<Local, Bit>,
    region_bad: Signal<Local, Bit>,
    wraps: Signal<Local, Bit>,
    pages_differ: Signal<Local, Bit>,
    reliability_bad: Signal<Local, Bit>,
    call_done: Signal<Local, Bit>,
    call_status: Signal<Local, Bits<4>>,
    call_result: Signal<Local, Bits<32>>,
    calling: Signal<Local, Bit>,
    both_paused: Signal<Local, Bit>,
    op_nop: Number<32, { Opcode::Nop as u64 }>,
    op_region_set: Number<32, { Opcode::RegionSet as u64 }>,
    op_region_clear: Number<32, { Opcode::RegionClear as u64 }>,
    op_vi_create: Number<32, { Opcode::ViCreate as u64 }>,
    op_vi_destroy: Number<32, { Opcode::ViDestroy as u64 }>,
    op_vi_connect: Number<32, { Opcode::ViConnect as u64 }>,
    op_vi_disconnect: Number<32, { Opcode::ViDisconnect as u64 }>,
    op_vi_query: Number<32, { Opcode::ViQuery as u64 }>,
    op_event_create: Number<32, { Opcode::EventCreate as u64 }>,
    op_event_destroy: Number<32, { Opcode::EventDestroy as u64 }>,
    op_peer_open: Number<32, { Opcode::PeerOpen as u64 }>,
    op_peer_close: Number<32, { Opcode::PeerClose as u64 }>,
    op_peer_query: Number<32, { Opcode::PeerQuery as u64 }>,
    op_message_send: Number<32, { Opcode::MessageSend as u64 }>,
    op_message_queue: Number<32, { Opcode::MessageQueue as u64 }>,
    status_ok: Number<4, { AdminStatus::Ok as u64 }>,
    status_bad_opcode: Number<4, { AdminStatus::BadOpcode as u64 }>,
    status_bad_index: Number<4, { AdminStatus::BadIndex as u64 }>,
    status_bad_argument: Number<4, { AdminStatus::BadArgument as u64 }>,
    status_bad_state: Number<4, { AdminStatus::BadState as u64 }>,
    opcodes: Number<32, { Opcode::MessageQueue as u64 + 1 }>,
    regions: Number<32, { limits::REGION_COUNT as u64 }>,
    vis: Number<32, { limits::VI_COUNT as u64 }>,
    event_queues: Number<32, { limits::EVENT_QUEUE_COUNT as u64 }>,
    event_queues_16: Number<16, { limits::EVENT_QUEUE_COUNT as u64 }>,
    peers: Number<32, { limits::PEER_COUNT as u64 }>,
    peers_8: Number<8, { limits::PEER_COUNT as u64 }>,
    domains: Number<32, { limits::DOMAIN_COUNT as u64 }>,
    domains_8: Number<8, { limits::DOMAIN_COUNT as u64 }>,
    vectors: Number<8, { limits::MSIX_VECTOR_COUNT as u64 }>,
    credits_max: Number<8, { limits::CREDITS_MAX as u64 }>,
    max_transfer: Number<32, { limits::MAX_TRANSFER_BYTES as u64 }>,
    no_queue: Number<16, { NO_QUEUE as u64 }>,
    level_unreliable: Number<8, { Reliability::Unreliable as u64 }>,
    level_delivery: Number<8, { Reliability::Delivery as u64 }>,
    level_reception: Number<8, { Reliability::Reception as u64 }>,
    full_mask: Number<16, 0xffff>,
    entry_bytes: Number<13, ENTRY_BYTES>,
    completion_bytes: Number<13, COMPLETION_BYTES>,
    done_beat: Number<64, { (DONE as u64) << 32 }>,
    count_command: Number<64, { 1 << Counter::AdminCommands as u32 }>,
    count_command_error:
        Number<64, { 1 << Counter::AdminCommands as u32 | 1 << Counter::AdminErrors as u32 }>,
    error_code: Number<64, { ErrorCode::AdminFetch as u64 }>,
}

impl Logic for Admin {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            state,
            owner,
            head,
            address,
            beat,
            entry0,
            entry1,
            entry2,
            entry3,
            entry4,
            entry5,
            entry6,
            entry7,
            message_data,
            pausing,
            called,
            status,
            result,
            counts_out,
            error_out,
            bad_opcode,
            bad_index,
            bad_argument,
            fenced,
            va_sum,
            bus_sum
        );
        // Outputs.
        self.admin_head.next = self.head.q.val();
        self.work.next = self.head.q.val() != self.admin_tail.val();
        self.admin_busy.next = self.work.val();
        self.admin_failed.next = self.state.q.val() == AdminState::Failed;
        self.counts.next = self.counts_out.q.val();
        self.counts_out.d.next = 0.into();
        self.error_valid.next = self.error_out.q.val();
        self.error_out.d.next = false;
        self.error_record.next =
            self.error_code.val() | (bit_cast::<64, 16>(self.head.q.val()) << 32);

        // The entry's fields.
        self.opcode.next = self.entry0.q.val().get_bits::<32>(0);
        self.index.next = self.entry0.q.val().get_bits::<32>(32);
        self.index_low.next = self.entry0.q.val().get_bits::<16>(32);
        self.node.next = self.entry0.q.val().get_bits::<8>(32);
        self.message_domain.next = self.entry0.q.val().get_bits::<8>(40);
        self.word4.next = self.entry2.q.val().get_bits::<32>(0);
        self.word5.next = self.entry2.q.val().get_bits::<32>(32);
        self.word6.next = self.entry3.q.val().get_bits::<32>(0);
        self.word8.next = self.entry4.q.val().get_bits::<32>(0);
        self.word9.next = self.entry4.q.val().get_bits::<32>(32);
        self.word10.next = self.entry5.q.val().get_bits::<32>(0);

        // Range checks; sums and flags are registered in Decode.
        self.length_less_one.next = self.word8.val() - 1;
        self.va_sum.d.next = bit_cast::<65, 64>(self.entry2.q.val())
            + bit_cast::<65, 32>(self.length_less_one.val());
        self.bus_sum.d.next = bit_cast::<65, 64>(self.entry3.q.val())
            + bit_cast::<65, 32>(self.length_less_one.val());
        self.wraps.next = self.va_sum.q.val().get_bit(64) | self.bus_sum.q.val().get_bit(64);
        self.pages_differ.next =
            self.entry2.q.val().get_bits::<12>(0) != self.entry3.q.val().get_bits::<12>(0);
        self.region_bad.next = (self.word8.val() == 0)
            | (!self.word10.val().get_bit(8))
            | (self.word10.val().get_bits::<5>(11) != 0)
            | (self.word10.val().get_bits::<8>(0) >= self.domains_8.val())
            | (self.word9.val().get_bits::<16>(16) == 0)
            | self.pages_differ.val();
        self.reliability_bad.next = (self.word4.val().get_bits::<8>(8)
            != self.level_unreliable.val())
            & (self.word4.val().get_bits::<8>(8) != self.level_delivery.val())
            & (self.word4.val().get_bits::<8>(8) != self.level_reception.val());
        self.queue_bad_send.next = (self.word5.val().get_bits::<16>(0)
            >= self.event_queues_16.val())
            & (self.word5.val().get_bits::<16>(0) != self.no_queue.val());
        self.queue_bad_recv.next = (self.word5.val().get_bits::<16>(16)
            >= self.event_queues_16.val())
            & (self.word5.val().get_bits::<16>(16) != self.no_queue.val());
        self.queue_bad.next = (self.word4.val().get_bits::<16>(0) >= self.event_queues_16.val())
            & (self.word4.val().get_bits::<16>(0) != self.no_queue.val());
        self.both_paused.next = self.fence_send.paused.val() & self.fence_recv.paused.val();

        // Host read of the entry.
        self.slot_mask.next = self.full_mask.val() << self.admin_log2.val();
        self.slot.next = self.head.q.val() & !self.slot_mask.val();
        self.read.req_valid.next = false;
        self.read.req_address.next = self.address.q.val();
        self.read.req_length.next = self.entry_bytes.val();
        // Completion.
        self.write.valid.next = false;
        self.write.address.next = self.address.q.val();
        self.write.length.next = self.completion_bytes.val();
        self.write.last.next = false;
        self.write.data.next = bit_cast::<64, 4>(self.status.q.val())
            | (bit_cast::<64, 32>(self.result.q.val()) << 32);

        // Calls: arguments straight from the entry, which is stable.
        self.calling.next = (self.state.q.val() == AdminState::Call) & self.called.q.val();
        self.tpt.valid.next = false;
        self.tpt.clear.next = self.opcode.val() == self.op_region_clear.val();
        self.tpt.index.next = self.index_low.val();
        self.tpt.va_base.next = self.entry2.q.val();
        self.tpt.bus_base.next = self.entry3.q.val();
        self.tpt.length.next = self.word8.val();
        self.tpt.tag.next = self.word9.val().get_bits::<16>(0);
        self.tpt.generation.next = self.word9.val().get_bits::<16>(16);
        self.tpt.domain.next = self.word10.val().get_bits::<8>(0);
        self.tpt.rights.next = self.word10.val().get_bits::<8>(8);
        self.vi.valid.next = false;
        self.vi.op.next = 0.into();
        self.vi.vi.next = self.index_low.val();
        self.vi.domain.next = self.word4.val().get_bits::<8>(0);
        self.vi.reliability.next = self.word4.val().get_bits::<3>(8);
        self.vi.tag.next = self.word4.val().get_bits::<16>(16);
        self.vi.send_queue.next = self.word5.val().get_bits::<16>(0);
        self.vi.recv_queue.next = self.word5.val().get_bits::<16>(16);
        self.vi.max_transfer.next = self.word6.val().get_bits::<20>(0);
        self.vi.peer.next = self.word4.val().get_bits::<8>(0);
        self.vi.peer_vi.next = self.word4.val().get_bits::<16>(16);
        self.vi.connection.next = self.word5.val().get_bits::<16>(0);
        if self.opcode.val() == self.op_vi_destroy.val() {
            self.vi.op.next = 1.into();
        } else if self.opcode.val() == self.op_vi_connect.val() {
            self.vi.op.next = 2.into();
        } else if self.opcode.val() == self.op_vi_disconnect.val() {
            self.vi.op.next = 3.into();
        } else if self.opcode.val() == self.op_vi_query.val() {
            self.vi.op.next = 4.into();
        }
        self.event_queue.valid.next = false;
        self.event_queue.op.next = 0.into();
        self.event_queue.index.next = self.index_low.val();
        self.event_queue.base.next = self.entry2.q.val();
        self.event_queue.log2.next = self.word6.val().get_bits::<4>(0);
        self.event_queue.wide.next = self.word6.val().get_bit(4);
        self.event_queue.domain.next = self.word6.val().get_bits::<8>(8);
        self.event_queue.vector.next = self.word6.val().get_bits::<8>(16);
        self.event_queue.queue.next = self.word4.val().get_bits::<16>(0);
        if self.opcode.val() == self.op_event_destroy.val() {
            self.event_queue.op.next = 1.into();
        } else if self.opcode.val() == self.op_message_queue.val() {
            self.event_queue.op.next = 2.into();
        }
        self.peer.valid.next = false;
        self.peer.op.next = 0.into();
        self.peer.peer.next = self.node.val();
        self.peer.epoch.next = self.word4.val();
        self.peer.credits.next = self.word5.val().get_bits::<8>(0);
        if self.opcode.val() == self.op_peer_close.val() {
            self.peer.op.next = 1.into();
        } else if self.opcode.val() == self.op_peer_query.val() {
            self.peer.op.next = 2.into();
        }
        self.message.valid.next = false;
        self.message.peer.next = self.node.val();
        self.message.domain.next = self.message_domain.val();
        self.message.data.next = self.message_data.q.val();
        self.message_data.d.next = self.entry7.q.val();
        if self.message.index.val() == 0 {
            self.message_data.d.next = self.entry2.q.val();
        } else if self.message.index.val() == 1 {
            self.message_data.d.next = self.entry3.q.val();
        } else if self.message.index.val() == 2 {
            self.message_data.d.next = self.entry4.q.val();
        } else if self.message.index.val() == 3 {
            self.message_data.d.next = self.entry5.q.val();
        } else if self.message.index.val() == 4 {
            self.message_data.d.next = self.entry6.q.val();
        }
        self.fence_send.pause.next = self.pausing.q.val();
        self.fence_recv.pause.next = self.pausing.q.val();

        // The owner's answer.
        self.call_done.next = false;
        self.call_status.next = self.status_ok.val();
        self.call_result.next = 0.into();
        match self.owner.q.val() {
            AdminOwner::Tpt => {
                self.tpt.valid.next = self.calling.val();
                self.call_done.next = self.tpt.done.val();
                if !self.tpt.ok.val() {
                    self.call_status.next = self.status_bad_state.val();
                }
            }
            AdminOwner::Vi => {
                self.vi.valid.next = self.calling.val();
                self.call_done.next = self.vi.done.val();
                self.call_status.next = self.vi.status.val();
                self.call_result.next = self.vi.result.val();
            }
            AdminOwner::EventQueue => {
                self.event_queue.valid.next = self.calling.val();
                self.call_done.next = self.event_queue.done.val();
                self.call_status.next = self.event_queue.status.val();
            }
            AdminOwner::Peer => {
                self.peer.valid.next = self.calling.val();
                self.call_done.next = self.peer.done.val();
                self.call_status.next = self.peer.status.val();
                self.call_result.next = bit_cast::<32, 4>(self.peer.state.val());
            }
            AdminOwner::Message => {
                self.message.valid.next = self.calling.val();
                self.call_done.next = self.message.done.val();
                self.call_status.next = self.message.status.val();
            }
            _ => {
                self.call_done.next = true;
            }
        }

        match self.state.q.val() {
            AdminState::Idle => {
                self.address.d.next =
                    self.admin_base.val() + (bit_cast::<64, 16>(self.slot.val()) << 6);
                self.beat.d.next = 0.into();
                self.called.d.next = false;
                if self.work.val() & self.enable.val() {
                    self.state.d.next = AdminState::Fetch;
                }
            }
            AdminState::Fetch => {
                self.read.req_valid.next = true;
                if self.read.req_ready.val() {
                    self.state.d.next = AdminState::Load;
                }
            }
            AdminState::Load => {
                if self.read.rsp_valid.val() {
                    self.beat.d.next = self.beat.q.val() + 1;
                    // The entry shifts in: after eight beats the first is in entry0.
                    self.entry0.d.next = self.entry1.q.val();
                    self.entry1.d.next = self.entry2.q.val();
                    self.entry2.d.next = self.entry3.q.val();
                    self.entry3.d.next = self.entry4.q.val();
                    self.entry4.d.next = self.entry5.q.val();
                    self.entry5.d.next = self.entry6.q.val();
                    self.entry6.d.next = self.entry7.q.val();
                    self.entry7.d.next = self.read.rsp_data.val();
                    if self.read.rsp_last.val() {
                        self.state.d.next = AdminState::Decode;
                        if self.read.rsp_error.val() {
                            self.error_out.d.next = true;
                            self.state.d.next = AdminState::Failed;
                        }
                    }
                }
            }
            AdminState::Decode => {
                self.bad_opcode.d.next = self.opcode.val() >= self.opcodes.val();
                self.bad_index.d.next = false;
                self.bad_argument.d.next = false;
                self.fenced.d.next = false;
                self.owner.d.next = AdminOwner::None;
                if (self.opcode.val() == self.op_region_set.val())
                    | (self.opcode.val() == self.op_region_clear.val())
                {
                    self.owner.d.next = AdminOwner::Tpt;
                    self.bad_index.d.next = self.index.val() >= self.regions.val();
                    self.bad_argument.d.next =
                        (self.opcode.val() == self.op_region_set.val()) & self.region_bad.val();
                    self.fenced.d.next = self.opcode.val() == self.op_region_clear.val();
                } else if self.opcode.val() == self.op_vi_create.val() {
                    self.owner.d.next = AdminOwner::Vi;
                    self.bad_index.d.next = self.index.val() >= self.vis.val();
                    self.bad_argument.d.next = (self.word4.val().get_bits::<8>(0)
                        >= self.domains_8.val())
                        | self.reliability_bad.val()
                        | self.queue_bad_send.val()
                        | self.queue_bad_recv.val()
                        | (self.word6.val() == 0)
                        | (self.word6.val() > self.max_transfer.val());
                } else if (self.opcode.val() == self.op_vi_destroy.val())
                    | (self.opcode.val() == self.op_vi_disconnect.val())
                {
                    self.owner.d.next = AdminOwner::Vi;
                    self.bad_index.d.next = self.index.val() >= self.vis.val();
                    self.fenced.d.next = true;
                } else if self.opcode.val() == self.op_vi_query.val() {
                    self.owner.d.next = AdminOwner::Vi;
                    self.bad_index.d.next = self.index.val() >= self.vis.val();
                } else if self.opcode.val() == self.op_vi_connect.val() {
                    self.owner.d.next = AdminOwner::Vi;
                    self.bad_index.d.next = self.index.val() >= self.vis.val();
                    self.bad_argument.d.next =
                        self.word4.val().get_bits::<8>(0) >= self.peers_8.val();
                } else if (self.opcode.val() == self.op_event_create.val())
                    | (self.opcode.val() == self.op_event_destroy.val())
                {
                    self.owner.d.next = AdminOwner::EventQueue;
                    self.bad_index.d.next = self.index.val() >= self.event_queues.val();
                    self.bad_argument.d.next = (self.opcode.val() == self.op_event_create.val())
                        & ((self.word6.val().get_bits::<3>(1) == 0)
                            | (self.word6.val().get_bits::<8>(8) >= self.domains_8.val())
                            | (self.word6.val().get_bits::<8>(16) >= self.vectors.val())
                            | (self.word4.val().get_bits::<6>(0) != 0));
                } else if (self.opcode.val() == self.op_peer_open.val())
                    | (self.opcode.val() == self.op_peer_close.val())
                    | (self.opcode.val() == self.op_peer_query.val())
                {
                    self.owner.d.next = AdminOwner::Peer;
                    self.bad_index.d.next = self.index.val() >= self.peers.val();
                    self.bad_argument.d.next = (self.opcode.val() == self.op_peer_open.val())
                        & ((self.word5.val().get_bits::<8>(0) == 0)
                            | (self.word5.val().get_bits::<8>(0) > self.credits_max.val()));
                } else if self.opcode.val() == self.op_message_send.val() {
                    self.owner.d.next = AdminOwner::Message;
                    self.bad_index.d.next = (self.node.val() >= self.peers_8.val())
                        | (self.message_domain.val() >= self.domains_8.val());
                } else if self.opcode.val() == self.op_message_queue.val() {
                    self.owner.d.next = AdminOwner::EventQueue;
                    self.bad_index.d.next = self.index.val() >= self.domains.val();
                    self.bad_argument.d.next = self.queue_bad.val();
                }
                self.state.d.next = AdminState::Check;
            }
            AdminState::Check => {
                self.result.d.next = 0.into();
                self.state.d.next = AdminState::Status;
                if self.bad_opcode.q.val() {
                    self.status.d.next = self.status_bad_opcode.val();
                } else if self.bad_index.q.val() {
                    self.status.d.next = self.status_bad_index.val();
                } else if self.bad_argument.q.val()
                    | (self.wraps.val() & (self.opcode.val() == self.op_region_set.val()))
                {
                    self.status.d.next = self.status_bad_argument.val();
                } else if self.fenced.q.val() {
                    self.pausing.d.next = true;
                    self.state.d.next = AdminState::Pause;
                } else {
                    self.called.d.next = true;
                    self.state.d.next = AdminState::Call;
                }
            }
            AdminState::Pause => {
                if self.both_paused.val() {
                    self.called.d.next = true;
                    self.state.d.next = AdminState::Call;
                }
            }
            AdminState::Call => {
                if self.call_done.val() {
                    self.called.d.next = false;
                    self.pausing.d.next = false;
                    self.status.d.next = self.call_status.val();
                    self.result.d.next = self.call_result.val();
                    self.state.d.next = AdminState::Status;
                }
            }
            AdminState::Status => {
                self.counts_out.d.next = self.count_command.val();
                if self.status.q.val() != self.status_ok.val() {
                    self.counts_out.d.next = self.count_command_error.val();
                    self.result.d.next = 0.into();
                }
                self.state.d.next = AdminState::Complete0;
            }
            AdminState::Complete0 => {
                self.write.valid.next = true;
                if self.write.ready.val() {
                    self.state.d.next = AdminState::Complete1;
                }
            }
            AdminState::Complete1 => {
                self.write.valid.next = true;
                self.write.last.next = true;
                self.write.data.next = self.done_beat.val()
                    | bit_cast::<64, 32>(self.entry1.q.val().get_bits::<32>(0));
                if self.write.ready.val() {
                    self.head.d.next = self.head.q.val() + 1;
                    self.state.d.next = AdminState::Idle;
                }
            }
            AdminState::Failed => {}
            _ => {
                self.state.d.next = AdminState::Idle;
            }
        }

        if self.reset.val() {
            self.state.d.next = AdminState::Idle;
            self.head.d.next = 0.into();
            self.pausing.d.next = false;
            self.called.d.next = false;
            self.counts_out.d.next = 0.into();
            self.error_out.d.next = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synthesizes() {
        let mut block = Admin::default();
        block.connect_all();
        assert!(generate_verilog(&block).contains("module top$head"));
    }
}
