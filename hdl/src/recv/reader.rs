//! Finds and reads the bytes of a descriptor for the loader.
//!
//! `seek` (pulse) looks a token up and reads `wanted` bytes there, as far as the region goes;
//! `renew` reads the first 16 bytes at `renew_bus`; `rest` reads on until there are `need` bytes.
//! `opened` (pulse) answers when the request is out: the bytes come into the buffer. `nowhere`
//! (pulse) answers a token that cannot be reached. `step` (pulse) goes on by `stride` bytes in what
//! was read.
//!
//! Idle -> [Reach -> Size ->] Read -> Idle.

use super::buffer::Buffer;
use crate::ifs::{ReadClient, TptClient};
use crate::leaf::Number;
use nic_regs::desc;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum ReadState {
    /// Waits for a command.
    Idle,
    /// Asks the region table for the bus address.
    Reach,
    /// Cuts the read to the region.
    Size,
    /// Asks for the bytes.
    Read,
}

#[derive(LogicBlock, Default)]
pub struct Reader {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub seek: Signal<In, Bit>,
    pub region: Signal<In, Bits<16>>,
    pub offset: Signal<In, Bits<26>>,
    pub wanted: Signal<In, Bits<9>>,
    pub renew: Signal<In, Bit>,
    pub renew_bus: Signal<In, Bits<64>>,
    pub rest: Signal<In, Bit>,
    pub need: Signal<In, Bits<9>>,
    pub step: Signal<In, Bit>,
    pub stride: Signal<In, Bits<9>>,
    pub opened: Signal<Out, Bit>,
    pub nowhere: Signal<Out, Bit>,
    /// The token is the one of a Next that could not be read.
    pub unread: Signal<Out, Bit>,
    /// The descriptor's bus address, bytes from there to the region's end, bytes read.
    pub bus: Signal<Out, Bits<64>>,
    pub space: Signal<Out, Bits<32>>,
    pub have: Signal<Out, Bits<9>>,
    // See `super::buffer`.
    pub word: Signal<In, Bits<5>>,
    pub present: Signal<Out, Bit>,
    pub even: Signal<Out, Bits<64>>,
    pub odd: Signal<Out, Bits<64>>,
    pub reading: Signal<Out, Bit>,
    pub failed: Signal<Out, Bit>,
    pub read: ReadClient,
    /// The loader adds the VI's tag and domain.
    pub tpt: TptClient,
    buffer: Buffer,
    state: DFF<ReadState>,
    index: DFF<Bits<16>>,
    at: DFF<Bits<26>>,
    want: DFF<Bits<9>>,
    from: DFF<Bits<5>>,
    address: DFF<Bits<64>>,
    bus_at: DFF<Bits<64>>,
    room: DFF<Bits<32>>,
    have_at: DFF<Bits<9>>,
    sized: Signal<Local, Bits<9>>,
    control_bytes: Number<32, { desc::CONTROL_BYTES }>,
    next_bytes: Number<9, 16>,
    unread_region: Number<16, 0xfffe>,
    unread_offset: Number<26, 0x3ff_ffff>,
}

impl Logic for Reader {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, index, at, want, from, address, bus_at, room, have_at);
        clock!(self, clock, buffer);
        self.buffer.reset.next = self.reset.val();
        self.unread.next = (self.index.q.val() == self.unread_region.val())
            & (self.at.q.val() == self.unread_offset.val());
        self.bus.next = self.bus_at.q.val();
        self.space.next = self.room.q.val();
        self.have.next = self.have_at.q.val();
        self.opened.next = (self.state.q.val() == ReadState::Read) & self.read.req_ready.val();
        self.nowhere.next =
            (self.state.q.val() == ReadState::Reach) & self.tpt.done.val() & (!self.tpt.ok.val());

        // Look-up, read, buffer: arguments are registers.
        self.tpt.valid.next = self.state.q.val() == ReadState::Reach;
        self.tpt.index.next = self.index.q.val();
        self.tpt.generation.next = 0.into();
        self.tpt.check_generation.next = false;
        self.tpt.va_mode.next = false;
        self.tpt.address.next = bit_cast::<64, 26>(self.at.q.val()) << 6;
        self.tpt.length.next = self.control_bytes.val();
        self.tpt.tag.next = 0.into();
        self.tpt.domain.next = 0.into();
        self.tpt.rights.next = 0.into();
        self.read.req_valid.next = self.state.q.val() == ReadState::Read;
        self.read.req_address.next = self.address.q.val();
        self.read.req_length.next = bit_cast::<13, 9>(self.want.q.val());
        self.buffer.clear.next =
            (self.state.q.val() == ReadState::Read) & self.read.req_ready.val();
        self.buffer.from.next = self.from.q.val();
        self.buffer.valid.next = self.read.rsp_valid.val();
        self.buffer.data.next = self.read.rsp_data.val();
        self.buffer.last.next = self.read.rsp_last.val();
        self.buffer.error.next = self.read.rsp_error.val();
        self.buffer.word.next = self.word.val();
        self.present.next = self.buffer.present.val();
        self.even.next = self.buffer.data_even.val();
        self.odd.next = self.buffer.data_odd.val();
        self.reading.next = self.buffer.reading.val();
        self.failed.next = self.buffer.failed.val();
        self.sized.next = self.want.q.val();
        if self.room.q.val() < bit_cast::<32, 9>(self.want.q.val()) {
            self.sized.next = self.room.q.val().get_bits::<9>(0);
        }

        match self.state.q.val() {
            ReadState::Idle => {
                self.from.d.next = 0.into();
                if self.seek.val() {
                    self.index.d.next = self.region.val();
                    self.at.d.next = self.offset.val();
                    self.want.d.next = self.wanted.val();
                    self.state.d.next = ReadState::Reach;
                } else if self.renew.val() {
                    self.address.d.next = self.renew_bus.val();
                    self.bus_at.d.next = self.renew_bus.val();
                    self.want.d.next = self.next_bytes.val();
                    self.have_at.d.next = 0.into();
                    self.state.d.next = ReadState::Read;
                } else if self.rest.val() {
                    self.address.d.next =
                        self.bus_at.q.val() + bit_cast::<64, 9>(self.have_at.q.val());
                    self.want.d.next = self.need.val() - self.have_at.q.val();
                    self.from.d.next = self.have_at.q.val().get_bits::<5>(4);
                    self.have_at.d.next = self.need.val();
                    self.state.d.next = ReadState::Read;
                } else if self.step.val() {
                    self.bus_at.d.next = self.bus_at.q.val() + bit_cast::<64, 9>(self.stride.val());
                    self.room.d.next = self.room.q.val() - bit_cast::<32, 9>(self.stride.val());
                    self.have_at.d.next = self.have_at.q.val() - self.stride.val();
                }
            }
            ReadState::Reach => {
                self.bus_at.d.next = self.tpt.bus.val();
                self.address.d.next = self.tpt.bus.val();
                self.room.d.next = self.tpt.room.val();
                if self.tpt.done.val() {
                    self.state.d.next = ReadState::Size;
                    if !self.tpt.ok.val() {
                        self.state.d.next = ReadState::Idle;
                    }
                }
            }
            ReadState::Size => {
                self.want.d.next = self.sized.val();
                self.have_at.d.next = self.sized.val();
                self.state.d.next = ReadState::Read;
            }
            ReadState::Read => {
                if self.read.req_ready.val() {
                    self.state.d.next = ReadState::Idle;
                }
            }
            _ => {
                self.state.d.next = ReadState::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = ReadState::Idle;
        }
    }
}
