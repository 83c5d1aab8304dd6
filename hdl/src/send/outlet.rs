//! The engine's side of the pool: frames of the VIs, and admin's messages, which have it alone.

use super::messages::Messages;
use crate::ifs::{MessageServer, PoolClient};
use crate::leaf::Number;
use nic_regs::frame::{MESSAGE_BYTES, Type, flag};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Outlet {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: send the message that admin offers; the engine is empty until `message_done`.
    pub message_start: Signal<In, Bit>,
    pub message_done: Signal<Out, Bit>,
    /// Pulse.
    pub message_sent: Signal<Out, Bit>,
    pub messages: MessageServer,
    /// Admin offers a message.
    pub message_valid: Signal<Out, Bit>,
    pub message_busy: Signal<Out, Bit>,
    // The question.
    pub ask_valid: Signal<In, Bit>,
    /// Only a question.
    pub ask_probe: Signal<In, Bit>,
    pub ask_data: Signal<In, Bit>,
    pub ask_sequenced: Signal<In, Bit>,
    pub ask_peer: Signal<In, Bits<8>>,
    pub ask_length: Signal<In, Bits<13>>,
    pub ask_done: Signal<Out, Bit>,
    pub ask_ok: Signal<Out, Bit>,
    pub ask_down: Signal<Out, Bit>,
    // The frame.
    pub beat_valid: Signal<In, Bit>,
    pub beat_data: Signal<In, Bits<64>>,
    pub beat_ready: Signal<Out, Bit>,
    pub commit_valid: Signal<In, Bit>,
    pub commit_abort: Signal<In, Bit>,
    pub commit_done: Signal<Out, Bit>,
    pub kind: Signal<In, Bits<8>>,
    pub dst_vi: Signal<In, Bits<16>>,
    pub src_vi: Signal<In, Bits<16>>,
    pub connection: Signal<In, Bits<16>>,
    pub flags: Signal<In, Bits<8>>,
    pub unsequenced: Signal<In, Bits<16>>,
    pub word: Signal<In, Bits<32>>,
    pub pool: PoolClient,
    message: Messages,
    kind_message: Number<8, { Type::Message as u64 }>,
    flag_sequenced: Number<8, { flag::SEQUENCED as u64 }>,
    message_bytes: Number<13, { MESSAGE_BYTES as u64 }>,
}

impl Logic for Outlet {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, message);
        self.message.reset.next = self.reset.val();
        MessageServer::link(&mut self.messages, &mut self.message.port);
        self.message_valid.next = self.message.offered.val();
        self.message_busy.next = self.message.busy.val();
        self.message.start.next = self.message_start.val();
        self.message_done.next = self.message.done.val();
        self.message_sent.next = self.message.sent.val();
        self.message.ask_done.next = self.pool.ask_done.val();
        self.message.ask_ok.next = self.pool.ask_ok.val();
        self.message.ask_down.next = self.pool.ask_down.val();
        self.message.beat_ready.next = self.pool.beat_ready.val();
        self.message.commit_done.next = self.pool.commit_done.val();
        self.ask_done.next = self.pool.ask_done.val();
        self.ask_ok.next = self.pool.ask_ok.val();
        self.ask_down.next = self.pool.ask_down.val();
        self.beat_ready.next = self.pool.beat_ready.val();
        self.commit_done.next = self.pool.commit_done.val();

        self.pool.ask_valid.next = self.ask_valid.val() | self.message.ask_valid.val();
        self.pool.ask_probe.next = self.ask_probe.val();
        self.pool.ask_data.next = self.ask_data.val();
        self.pool.ask_sequenced.next = self.ask_sequenced.val();
        self.pool.ask_peer.next = self.ask_peer.val();
        self.pool.ask_length.next = self.ask_length.val();
        self.pool.beat_valid.next = self.beat_valid.val() | self.message.beat_valid.val();
        self.pool.beat_data.next = self.beat_data.val();
        self.pool.commit_valid.next = self.commit_valid.val() | self.message.commit_valid.val();
        self.pool.commit_abort.next = self.commit_abort.val();
        self.pool.kind.next = self.kind.val();
        self.pool.dst_vi.next = self.dst_vi.val();
        self.pool.src_vi.next = self.src_vi.val();
        self.pool.connection.next = self.connection.val();
        self.pool.flags.next = self.flags.val();
        self.pool.unsequenced.next = self.unsequenced.val();
        self.pool.word.next = self.word.val();
        if self.message.busy.val() {
            self.pool.ask_probe.next = false;
            self.pool.ask_data.next = false;
            self.pool.ask_sequenced.next = true;
            self.pool.ask_peer.next = self.message.to_peer.val();
            self.pool.ask_length.next = self.message_bytes.val();
            self.pool.beat_data.next = self.message.beat_data.val();
            self.pool.kind.next = self.kind_message.val();
            self.pool.dst_vi.next = bit_cast::<16, 8>(self.message.to_domain.val());
            self.pool.src_vi.next = 0.into();
            self.pool.connection.next = 0.into();
            self.pool.flags.next = self.flag_sequenced.val();
            self.pool.word.next = 0.into();
        }
    }
}
