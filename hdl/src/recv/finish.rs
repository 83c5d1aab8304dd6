//! Completes descriptors: a status goes out behind its payload, then the VI table announces the
//! completion (contract 5.3).
//!
//! `start` (pulse while not `busy`) registers the arguments, so that the frame may go; then the status
//! goes into the queue, before a later frame's payload: 8 bytes at offset 24, or with immediate data
//! 12 bytes at offset 20. Up to four statuses may be on their way; as they are accepted, COMPLETE is
//! called for each.
//!
//! Idle -> Packet -> [Beat ->] Idle.

use crate::ifs::ViCompleteClient;
use crate::leaf::{Fifo, Number};
use nic_regs::desc::{IMMEDIATE_OFFSET, LENGTH_OFFSET};
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum FinishState {
    /// Waits for `start`.
    Idle,
    /// Waits until the payload is in the queue; sends the packet and its first beat.
    Packet,
    /// Sends the second beat.
    Beat,
}

#[derive(LogicBlock, Default)]
pub struct Finish {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub start: Signal<In, Bit>,
    pub vi: Signal<In, Bits<10>>,
    /// Bus address of the descriptor.
    pub bus: Signal<In, Bits<64>>,
    pub length: Signal<In, Bits<20>>,
    pub status_word: Signal<In, Bits<32>>,
    pub has_immediate: Signal<In, Bit>,
    pub immediate: Signal<In, Bits<32>>,
    pub need_ack: Signal<In, Bit>,
    /// It is the send queue's: an RDMA read.
    pub sends: Signal<In, Bit>,
    /// It is of the VI that is sampled.
    pub sampled: Signal<In, Bit>,
    /// The status is not in the queue yet.
    pub busy: Signal<Out, Bit>,
    /// Every completion was announced.
    pub quiet: Signal<Out, Bit>,
    /// The payload's beats are all in the queue, and it has room.
    pub room: Signal<In, Bit>,
    pub packet: Signal<Out, Bit>,
    pub address: Signal<Out, Bits<64>>,
    pub packet_length: Signal<Out, Bits<13>>,
    pub beat: Signal<Out, Bit>,
    pub data: Signal<Out, Bits<64>>,
    pub last: Signal<Out, Bit>,
    pub packet_sampled: Signal<Out, Bit>,
    /// Pulse: a status was accepted.
    pub written: Signal<In, Bit>,
    pub vi_complete: ViCompleteClient,
    state: DFF<FinishState>,
    vi_at: DFF<Bits<10>>,
    bus_at: DFF<Bits<64>>,
    word: DFF<Bits<64>>,
    immediate_at: DFF<Bits<32>>,
    long: DFF<Bit>,
    needs: DFF<Bit>,
    sends_at: DFF<Bit>,
    sampled_at: DFF<Bit>,
    /// Statuses that were accepted, and not announced yet.
    accepted: DFF<Bits<3>>,
    /// A call was answered a cycle ago.
    resting: DFF<Bit>,
    /// Statuses in the queue or accepted: VI 9:0, ViAck pending 10, send queue 11.
    pending: Fifo<12, 2>,
    reported: Signal<Local, Bit>,
    may: Signal<Local, Bit>,
    length_offset: Number<64, LENGTH_OFFSET>,
    immediate_offset: Number<64, IMMEDIATE_OFFSET>,
    short_bytes: Number<13, 8>,
    long_bytes: Number<13, 12>,
}

impl Logic for Finish {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, vi_at, bus_at, word, immediate_at, long, needs, accepted);
        dff_setup!(self, clock, sends_at, sampled_at, resting);
        clock!(self, clock, pending);
        self.pending.reset.next = self.reset.val();
        self.busy.next = self.state.q.val() != FinishState::Idle;
        self.quiet.next = (self.state.q.val() == FinishState::Idle) & self.pending.empty.val();
        self.may.next = (self.state.q.val() == FinishState::Packet)
            & self.room.val()
            & (!self.pending.full.val());
        self.pending.write.next = self.may.val();
        self.pending.data_in.next = bit_cast::<12, 10>(self.vi_at.q.val())
            | (bit_cast::<12, 1>(self.needs.q.val().into()) << 10)
            | (bit_cast::<12, 1>(self.sends_at.q.val().into()) << 11);
        self.packet.next = false;
        self.beat.next = false;
        self.last.next = !self.long.q.val();
        self.packet_sampled.next = self.sampled_at.q.val();
        self.data.next = self.word.q.val();
        self.address.next = self.bus_at.q.val() | self.length_offset.val();
        self.packet_length.next = self.short_bytes.val();
        if self.long.q.val() {
            self.data.next = bit_cast::<64, 32>(self.immediate_at.q.val()) << 32;
            self.address.next = self.bus_at.q.val() | self.immediate_offset.val();
            self.packet_length.next = self.long_bytes.val();
        }
        self.vi_complete.valid.next = self.accepted.q.val().any() & (!self.resting.q.val());
        self.vi_complete.vi.next = self.pending.data_out.val().get_bits::<10>(0);
        self.vi_complete.need_ack.next = self.pending.data_out.val().get_bit(10);
        self.vi_complete.sends.next = self.pending.data_out.val().get_bit(11);
        self.reported.next = self.vi_complete.done.val();
        self.resting.d.next = self.reported.val();
        self.pending.read.next = self.reported.val();
        if self.written.val() & (!self.reported.val()) {
            self.accepted.d.next = self.accepted.q.val() + 1;
        } else if (!self.written.val()) & self.reported.val() {
            self.accepted.d.next = self.accepted.q.val() - 1;
        }
        match self.state.q.val() {
            FinishState::Idle => {
                self.vi_at.d.next = self.vi.val();
                self.bus_at.d.next = self.bus.val();
                self.word.d.next = bit_cast::<64, 20>(self.length.val())
                    | (bit_cast::<64, 32>(self.status_word.val()) << 32);
                self.immediate_at.d.next = self.immediate.val();
                self.long.d.next = self.has_immediate.val();
                self.needs.d.next = self.need_ack.val();
                self.sends_at.d.next = self.sends.val();
                self.sampled_at.d.next = self.sampled.val();
                if self.start.val() {
                    self.state.d.next = FinishState::Packet;
                }
            }
            FinishState::Packet => {
                if self.may.val() {
                    self.packet.next = true;
                    self.beat.next = true;
                    self.state.d.next = FinishState::Idle;
                    if self.long.q.val() {
                        self.state.d.next = FinishState::Beat;
                    }
                }
            }
            FinishState::Beat => {
                self.beat.next = true;
                self.last.next = true;
                self.data.next = self.word.q.val();
                self.state.d.next = FinishState::Idle;
            }
            _ => {
                self.state.d.next = FinishState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = FinishState::Idle;
            self.accepted.d.next = 0.into();
            self.resting.d.next = false;
        }
    }
}
