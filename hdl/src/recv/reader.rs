//! Finds and reads the bytes of descriptors for the loader; up to four reads are under way.
//!
//! ```text
//! order (token, ...) --> +--------+ --> the oldest read: who, where, its bytes
//!                        | Reader | <-- finish
//!  nowhere <------------ +--------+ <--> tpt, read
//! ```
//! `order` (pulse while `idle`) looks the token up and reads `wanted` bytes there, as far as the
//! region goes; `renew`: the first 16 bytes at `bus`; `predicted`: what lies behind the last read of
//! the stream, without a look-up. `nowhere` (pulse) answers a token that cannot be reached.
//!
//! Idle -> [Reach ->] [Size ->] Read -> Idle.

use super::buffer::Buffer;
use crate::desc::{UNREAD_OFFSET, UNREAD_REGION};
use crate::ifs::{ReadClient, TptClient};
use crate::leaf::{Fifo, Number};
use nic_regs::desc;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum ReadState {
    /// Waits for an order.
    Idle,
    /// Asks the region table for the bus address.
    Reach,
    /// Cuts the read to the region.
    Size,
    /// Asks for the bytes, when there is room for them.
    Read,
}

#[derive(LogicBlock, Default)]
pub struct Reader {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub idle: Signal<Out, Bit>,
    pub order: Signal<In, Bit>,
    pub renew: Signal<In, Bit>,
    pub predicted: Signal<In, Bit>,
    /// Of the stream, see `super::outstanding`.
    pub stream: Signal<In, Bit>,
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    pub bus: Signal<In, Bits<64>>,
    pub wanted: Signal<In, Bits<9>>,
    /// VI 9:0, place of the first entry 12:10, free places 15:13, tag 31:16, domain 39:32, posted
    /// descriptors from this one on 55:40, row 59:56.
    pub owner: Signal<In, Bits<60>>,
    pub nowhere: Signal<Out, Bit>,
    /// With `nowhere`: the token is the one of a Next that could not be read; whose it was.
    pub unread: Signal<Out, Bit>,
    pub lost_row: Signal<Out, Bits<4>>,
    pub lost_stream: Signal<Out, Bit>,
    /// The stream goes on: another line lies behind its last read, which was of whole lines.
    pub predictable: Signal<Out, Bit>,
    // The oldest read.
    pub finish: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub read_owner: Signal<Out, Bits<60>>,
    pub read_renew: Signal<Out, Bit>,
    pub read_predicted: Signal<Out, Bit>,
    pub read_stream: Signal<Out, Bit>,
    pub read_region: Signal<Out, Bits<16>>,
    pub read_offset: Signal<Out, Bits<26>>,
    /// The bus address, bytes from there to the region's end, bytes read.
    pub read_bus: Signal<Out, Bits<64>>,
    pub space: Signal<Out, Bits<32>>,
    pub have: Signal<Out, Bits<9>>,
    // See `super::buffer`.
    pub word: Signal<In, Bits<5>>,
    pub present: Signal<Out, Bit>,
    pub even: Signal<Out, Bits<64>>,
    pub odd: Signal<Out, Bits<64>>,
    pub failed: Signal<Out, Bit>,
    // The same a cycle late: the end of a read is seldom waited for.
    pub reading_late: Signal<Out, Bit>,
    pub failed_late: Signal<Out, Bit>,
    /// Where the stream leads; a cycle later: the oldest read was predicted, and is somewhere else.
    pub chain: Signal<In, Bits<43>>,
    pub astray: Signal<Out, Bit>,
    pub read: ReadClient,
    pub tpt: TptClient,
    buffer: Buffer,
    // Reads under way: owner; address; space 31:0, have 40:32; token 41:0, flags 44:42.
    owners: Fifo<60, 2>,
    buses: Fifo<64, 2>,
    extents: Fifo<41, 2>,
    tokens: Fifo<45, 2>,
    state: DFF<ReadState>,
    index: DFF<Bits<16>>,
    at: DFF<Bits<26>>,
    want: DFF<Bits<9>>,
    address: DFF<Bits<64>>,
    left: DFF<Bits<32>>,
    owner_at: DFF<Bits<60>>,
    renew_at: DFF<Bit>,
    predicted_at: DFF<Bit>,
    stream_at: DFF<Bit>,
    // Behind the last read of the stream.
    line_region: DFF<Bits<16>>,
    line_offset: DFF<Bits<26>>,
    line_bus: DFF<Bits<64>>,
    line_space: DFF<Bits<32>>,
    whole: DFF<Bit>,
    reading_at: DFF<Bit>,
    failed_at: DFF<Bit>,
    astray_at: DFF<Bit>,
    token: Signal<Local, Bits<43>>,
    asks: Signal<Local, Bit>,
    asked: Signal<Local, Bit>,
    sized: Signal<Local, Bits<9>>,
    valid_bit: Number<43, { 1 << 42 }>,
    control_bytes: Number<32, { desc::CONTROL_BYTES }>,
    next_bytes: Number<9, 16>,
    line_bytes: Number<32, 64>,
    bank_bytes: Number<9, 256>,
    unread_region: Number<16, UNREAD_REGION>,
    unread_offset: Number<26, UNREAD_OFFSET>,
}

impl Logic for Reader {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, index, at, want, address, left, owner_at, renew_at);
        dff_setup!(self, clock, predicted_at, stream_at, line_region, line_offset, line_bus);
        dff_setup!(self, clock, line_space, whole, reading_at, failed_at, astray_at);
        clock!(self, clock, buffer, owners, buses, extents, tokens);
        self.buffer.reset.next = self.reset.val();
        self.owners.reset.next = self.reset.val();
        self.buses.reset.next = self.reset.val();
        self.extents.reset.next = self.reset.val();
        self.tokens.reset.next = self.reset.val();
        self.idle.next = self.state.q.val() == ReadState::Idle;
        self.unread.next = (self.index.q.val() == self.unread_region.val())
            & (self.at.q.val() == self.unread_offset.val());
        self.nowhere.next =
            (self.state.q.val() == ReadState::Reach) & self.tpt.done.val() & (!self.tpt.ok.val());
        self.lost_row.next = self.owner_at.q.val().get_bits::<4>(56);
        self.lost_stream.next = self.stream_at.q.val();
        self.predictable.next =
            self.whole.q.val() & (self.line_space.q.val() >= self.line_bytes.val());

        // Look-up and read: arguments are registers.
        self.tpt.valid.next = self.state.q.val() == ReadState::Reach;
        self.tpt.index.next = self.index.q.val();
        self.tpt.generation.next = 0.into();
        self.tpt.check_generation.next = false;
        self.tpt.va_mode.next = false;
        self.tpt.address.next = bit_cast::<64, 26>(self.at.q.val()) << 6;
        self.tpt.length.next = self.control_bytes.val();
        self.tpt.tag.next = self.owner_at.q.val().get_bits::<16>(16);
        self.tpt.domain.next = self.owner_at.q.val().get_bits::<8>(32);
        self.tpt.rights.next = 0.into();
        self.asks.next = (self.state.q.val() == ReadState::Read)
            & self.buffer.room.val()
            & (!self.owners.full.val());
        self.asked.next = self.asks.val() & self.read.req_ready.val();
        self.read.req_valid.next = self.asks.val();
        self.read.req_address.next = self.address.q.val();
        self.read.req_length.next = bit_cast::<13, 9>(self.want.q.val());
        self.sized.next = self.want.q.val();
        if self.left.q.val() < bit_cast::<32, 9>(self.want.q.val()) {
            self.sized.next = self.left.q.val().get_bits::<9>(0);
        }

        // What comes.
        self.buffer.open.next = self.asked.val();
        self.buffer.open_wide.next = self.bank_bytes.val() < self.want.q.val();
        self.buffer.finish.next = self.finish.val();
        self.buffer.valid.next = self.read.rsp_valid.val();
        self.buffer.data.next = self.read.rsp_data.val();
        self.buffer.last.next = self.read.rsp_last.val();
        self.buffer.error.next = self.read.rsp_error.val();
        self.buffer.word.next = self.word.val();
        self.present.next = self.buffer.present.val();
        self.even.next = self.buffer.data_even.val();
        self.odd.next = self.buffer.data_odd.val();
        self.failed.next = self.buffer.failed.val();
        self.reading_at.d.next = self.buffer.reading.val();
        self.failed_at.d.next = self.buffer.failed.val();
        self.reading_late.next = self.reading_at.q.val();
        self.failed_late.next = self.failed_at.q.val();
        self.owners.write.next = self.asked.val();
        self.owners.data_in.next = self.owner_at.q.val();
        self.owners.read.next = self.finish.val();
        self.buses.write.next = self.asked.val();
        self.buses.data_in.next = self.address.q.val();
        self.buses.read.next = self.finish.val();
        self.extents.write.next = self.asked.val();
        self.extents.data_in.next =
            bit_cast::<41, 32>(self.left.q.val()) | (bit_cast::<41, 9>(self.want.q.val()) << 32);
        self.extents.read.next = self.finish.val();
        self.tokens.write.next = self.asked.val();
        self.tokens.data_in.next = bit_cast::<45, 16>(self.index.q.val())
            | (bit_cast::<45, 26>(self.at.q.val()) << 16)
            | (bit_cast::<45, 1>(self.renew_at.q.val().into()) << 42)
            | (bit_cast::<45, 1>(self.predicted_at.q.val().into()) << 43)
            | (bit_cast::<45, 1>(self.stream_at.q.val().into()) << 44);
        self.tokens.read.next = self.finish.val();
        self.ready.next = !self.owners.empty.val();
        self.read_owner.next = self.owners.data_out.val();
        self.read_region.next = self.tokens.data_out.val().get_bits::<16>(0);
        self.read_offset.next = self.tokens.data_out.val().get_bits::<26>(16);
        self.read_renew.next = self.tokens.data_out.val().get_bit(42);
        self.read_predicted.next = self.tokens.data_out.val().get_bit(43);
        self.read_stream.next = self.tokens.data_out.val().get_bit(44);
        self.read_bus.next = self.buses.data_out.val();
        self.token.next =
            self.valid_bit.val() | bit_cast::<43, 42>(self.tokens.data_out.val().get_bits::<42>(0));
        self.astray_at.d.next = self.tokens.data_out.val().get_bit(43)
            & (!self.tokens.data_out.val().get_bit(42))
            & (self.chain.val() != self.token.val());
        self.astray.next = self.astray_at.q.val();
        self.space.next = self.extents.data_out.val().get_bits::<32>(0);
        self.have.next = self.extents.data_out.val().get_bits::<9>(32);

        match self.state.q.val() {
            ReadState::Idle => {
                self.owner_at.d.next = self.owner.val();
                self.renew_at.d.next = self.renew.val();
                self.predicted_at.d.next = self.predicted.val();
                self.stream_at.d.next = self.stream.val();
                self.index.d.next = self.region.val();
                self.at.d.next = self.offset.val();
                self.want.d.next = self.wanted.val();
                self.address.d.next = self.bus.val();
                self.left.d.next = self.line_space.q.val();
                if self.renew.val() {
                    self.want.d.next = self.next_bytes.val();
                } else if self.predicted.val() {
                    self.index.d.next = self.line_region.q.val();
                    self.at.d.next = self.line_offset.q.val();
                    self.address.d.next = self.line_bus.q.val();
                }
                if self.order.val() {
                    self.state.d.next = ReadState::Reach;
                    if self.renew.val() {
                        self.state.d.next = ReadState::Read;
                    } else if self.predicted.val() {
                        self.state.d.next = ReadState::Size;
                    }
                }
            }
            ReadState::Reach => {
                self.address.d.next = self.tpt.bus.val();
                self.left.d.next = self.tpt.room.val();
                if self.tpt.done.val() {
                    self.state.d.next = ReadState::Size;
                    if !self.tpt.ok.val() {
                        self.state.d.next = ReadState::Idle;
                    }
                }
            }
            ReadState::Size => {
                self.want.d.next = self.sized.val();
                self.state.d.next = ReadState::Read;
            }
            ReadState::Read => {
                if self.asked.val() {
                    self.state.d.next = ReadState::Idle;
                    if self.stream_at.q.val() {
                        self.line_region.d.next = self.index.q.val();
                        self.line_offset.d.next =
                            self.at.q.val() + bit_cast::<26, 3>(self.want.q.val().get_bits::<3>(6));
                        self.line_bus.d.next =
                            self.address.q.val() + bit_cast::<64, 9>(self.want.q.val());
                        self.line_space.d.next =
                            self.left.q.val() - bit_cast::<32, 9>(self.want.q.val());
                        self.whole.d.next = !self.want.q.val().get_bits::<6>(0).any();
                    }
                }
            }
            _ => {
                self.state.d.next = ReadState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = ReadState::Idle;
            self.whole.d.next = false;
        }
    }
}
