//! Admin ring: fetches 64-byte commands, checks them, has the owner of the object execute them,
//! completes them in place.
//!
//! ```text
//!  read <== EntryFetch --quads--+--> Decoder --owner, flags--.
//!                               |                            v
//!                               +----------------------> OwnerCalls ==> tpt, vi, event_queue, peer, message
//!                               `--cookie--> Completion <----' ==> write
//! ```
//! ```text
//! Idle -> Fetch -> Load -> Decode -> Check -> [Pause ->] Call -> Status -> Complete0 -> Complete1 -> Idle
//!                   `-> Failed (until reset)
//! ```
//! One command at a time, in order. Commands that need a fence (contract 8) pause both engines
//! between frames first.

mod call;
mod complete;
mod decode;
mod fetch;

use crate::ifs::{
    EventAdminClient, FenceClient, MessageClient, PeerClient, ReadClient, TptSetClient,
    ViAdminClient, WriteClient,
};
use crate::leaf::Number;
use call::OwnerCalls;
use complete::Completion;
use decode::Decoder;
use fetch::EntryFetch;
use nic_regs::admin::AdminStatus;
use nic_regs::counter::ErrorCode;
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
    fetch: EntryFetch,
    decoder: Decoder,
    calls: OwnerCalls,
    completion: Completion,
    state: DFF<AdminState>,
    head: DFF<Bits<16>>,
    address: DFF<Bits<64>>,
    pausing: DFF<Bit>,
    error_out: DFF<Bit>,
    work: Signal<Local, Bit>,
    slot_mask: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    both_paused: Signal<Local, Bit>,
    status_bad_opcode: Number<4, { AdminStatus::BadOpcode as u64 }>,
    status_bad_index: Number<4, { AdminStatus::BadIndex as u64 }>,
    status_bad_argument: Number<4, { AdminStatus::BadArgument as u64 }>,
    full_mask: Number<16, 0xffff>,
    error_code: Number<64, { ErrorCode::AdminFetch as u64 }>,
}

impl Logic for Admin {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, head, address, pausing, error_out);
        clock!(self, clock, fetch, decoder, calls, completion);
        ReadClient::link(&mut self.read, &mut self.fetch.read);
        WriteClient::link(&mut self.write, &mut self.completion.write);
        TptSetClient::link(&mut self.tpt, &mut self.calls.tpt);
        ViAdminClient::link(&mut self.vi, &mut self.calls.vi);
        EventAdminClient::link(&mut self.event_queue, &mut self.calls.event_queue);
        PeerClient::link(&mut self.peer, &mut self.calls.peer);
        MessageClient::link(&mut self.message, &mut self.calls.message);
        self.completion.reset.next = self.reset.val();
        self.admin_head.next = self.head.q.val();
        self.work.next = self.head.q.val() != self.admin_tail.val();
        self.admin_busy.next = self.work.val();
        self.admin_failed.next = self.state.q.val() == AdminState::Failed;
        self.counts.next = self.completion.counts.val();
        self.error_valid.next = self.error_out.q.val();
        self.error_out.d.next = false;
        self.error_record.next =
            self.error_code.val() | (bit_cast::<64, 16>(self.head.q.val()) << 32);
        self.fence_send.pause.next = self.pausing.q.val();
        self.fence_recv.pause.next = self.pausing.q.val();
        self.both_paused.next = self.fence_send.paused.val() & self.fence_recv.paused.val();

        // The entry, and who needs what of it.
        self.slot_mask.next = self.full_mask.val() << self.admin_log2.val();
        self.slot.next = self.head.q.val() & !self.slot_mask.val();
        self.fetch.address.next = self.address.q.val();
        self.fetch.ask.next = self.state.q.val() == AdminState::Fetch;
        self.fetch.load.next = self.state.q.val() == AdminState::Load;
        self.decoder.quad0.next = self.fetch.quad0.val();
        self.decoder.quad2.next = self.fetch.quad2.val();
        self.decoder.quad3.next = self.fetch.quad3.val();
        self.decoder.quad4.next = self.fetch.quad4.val();
        self.decoder.quad5.next = self.fetch.quad5.val();
        self.decoder.take.next = self.state.q.val() == AdminState::Decode;
        self.calls.quad0.next = self.fetch.quad0.val();
        self.calls.quad2.next = self.fetch.quad2.val();
        self.calls.quad3.next = self.fetch.quad3.val();
        self.calls.quad4.next = self.fetch.quad4.val();
        self.calls.quad5.next = self.fetch.quad5.val();
        self.calls.quad6.next = self.fetch.quad6.val();
        self.calls.quad7.next = self.fetch.quad7.val();
        self.calls.owner.next = self.decoder.owner.val();
        self.calls.calling.next = self.state.q.val() == AdminState::Call;
        self.completion.address.next = self.address.q.val();
        self.completion.cookie.next = self.fetch.quad1.val().get_bits::<32>(0);
        self.completion.take.next = false;
        self.completion.status.next = self.calls.status.val();
        self.completion.result.next = self.calls.result.val();
        self.completion.close.next = self.state.q.val() == AdminState::Status;
        self.completion.first.next = self.state.q.val() == AdminState::Complete0;
        self.completion.second.next = self.state.q.val() == AdminState::Complete1;

        match self.state.q.val() {
            AdminState::Idle => {
                self.address.d.next =
                    self.admin_base.val() + (bit_cast::<64, 16>(self.slot.val()) << 6);
                if self.work.val() & self.enable.val() {
                    self.state.d.next = AdminState::Fetch;
                }
            }
            AdminState::Fetch => {
                if self.fetch.asked.val() {
                    self.state.d.next = AdminState::Load;
                }
            }
            AdminState::Load => {
                if self.fetch.failed.val() {
                    self.error_out.d.next = true;
                    self.state.d.next = AdminState::Failed;
                } else if self.fetch.loaded.val() {
                    self.state.d.next = AdminState::Decode;
                }
            }
            AdminState::Decode => {
                self.state.d.next = AdminState::Check;
            }
            AdminState::Check => {
                self.completion.take.next = true;
                self.completion.result.next = 0.into();
                self.state.d.next = AdminState::Status;
                if self.decoder.bad_opcode.val() {
                    self.completion.status.next = self.status_bad_opcode.val();
                } else if self.decoder.bad_index.val() {
                    self.completion.status.next = self.status_bad_index.val();
                } else if self.decoder.bad_argument.val() {
                    self.completion.status.next = self.status_bad_argument.val();
                } else if self.decoder.fenced.val() {
                    self.pausing.d.next = true;
                    self.state.d.next = AdminState::Pause;
                } else {
                    self.state.d.next = AdminState::Call;
                }
            }
            AdminState::Pause => {
                if self.both_paused.val() {
                    self.state.d.next = AdminState::Call;
                }
            }
            AdminState::Call => {
                if self.calls.done.val() {
                    self.completion.take.next = true;
                    self.pausing.d.next = false;
                    self.state.d.next = AdminState::Status;
                }
            }
            AdminState::Status => {
                self.state.d.next = AdminState::Complete0;
            }
            AdminState::Complete0 => {
                if self.completion.moved.val() {
                    self.state.d.next = AdminState::Complete1;
                }
            }
            AdminState::Complete1 => {
                if self.completion.moved.val() {
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
