//! Host writes: packets of four clients become posted memory writes.
//!
//! ```text
//! Head0 -> Head1 -> Data -> Head0
//! ```
//! Pieces come from the [`Cutter`]; their data passes straight through from the client, in the same
//! lanes. Clients take turns packet by packet, and a packet is sent whole before the next one
//! starts. The receive engine tells its packets ahead, so that they are cut while others are sent.
use super::TlpClient;
use super::cutter::Cutter;
use crate::ifs::{PacketServer, WriteServer};
use crate::leaf::Number;
use nic_regs::tlp;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum WriteState {
    /// Waits for a piece, sends header beat 0.
    Head0,
    /// Sends header beat 1.
    Head1,
    /// Passes the client's beats on.
    Data,
}

/// See the module's text. Reset it only while `rq` is quiet, or a TLP is cut short.
#[derive(LogicBlock, Default)]
pub struct DmaWrite {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub max_payload: Signal<In, Bits<3>>,
    pub requester: Signal<In, Bits<16>>,
    pub recv: PacketServer,
    pub send: WriteServer,
    pub events: WriteServer,
    pub admin: WriteServer,
    pub out: TlpClient,
    cutter: Cutter,
    state: DFF<WriteState>,
    /// Clients with a packet that is cut and not yet sent to its end; not those that tell ahead.
    busy: DFF<Bits<4>>,
    left: DFF<Bits<7>>,
    /// The client whose piece is in flight.
    client: DFF<Bits<2>>,
    valids: Signal<Local, Bits<4>>,
    free: Signal<Local, Bits<4>>,
    kept: Signal<Local, Bits<4>>,
    finished: Signal<Local, Bits<4>>,
    chosen: Signal<Local, Bits<4>>,
    client_valid: Signal<Local, Bit>,
    client_data: Signal<Local, Bits<64>>,
    pass: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    one: Number<7, 1>,
    kind: Number<64, { (tlp::MEM_WRITE as u64) << 24 }>,
    dword_mask: Number<64, { !3 }>,
    /// The send engine: its status waits for nothing, while the receive engine tells ahead.
    home: Number<4, 2>,
    one_at_a_time: Number<4, 0b1110>,
}

impl Logic for DmaWrite {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, busy, left, client);
        clock!(self, clock, cutter);
        self.cutter.reset.next = self.reset.val();
        self.cutter.limit.next = self.max_payload.val();
        self.valids.next = bit_cast::<4, 1>(self.recv.req_valid.val().into())
            | (bit_cast::<4, 1>(self.send.valid.val().into()) << 1)
            | (bit_cast::<4, 1>(self.events.valid.val().into()) << 2)
            | (bit_cast::<4, 1>(self.admin.valid.val().into()) << 3);
        self.free.next = !self.busy.q.val();
        self.cutter.valid.next = self.valids.val() & self.free.val();
        self.cutter.home.next = self.home.val();
        self.recv.req_ready.next = self.cutter.open.val().get_bit(0);
        self.cutter.address0.next = self.recv.req_address.val();
        self.cutter.address1.next = self.send.address.val();
        self.cutter.address2.next = self.events.address.val();
        self.cutter.address3.next = self.admin.address.val();
        self.cutter.length0.next = self.recv.req_length.val();
        self.cutter.length1.next = self.send.length.val();
        self.cutter.length2.next = self.events.length.val();
        self.cutter.length3.next = self.admin.length.val();
        self.cutter.take.next = false;

        // The client whose piece is at the head, known from the second header beat on.
        self.chosen.next = 1.into();
        self.client_valid.next = self.recv.valid.val();
        self.client_data.next = self.recv.data.val();
        if self.client.q.val() == 1 {
            self.chosen.next = 2.into();
            self.client_valid.next = self.send.valid.val();
            self.client_data.next = self.send.data.val();
        } else if self.client.q.val() == 2 {
            self.chosen.next = 4.into();
            self.client_valid.next = self.events.valid.val();
            self.client_data.next = self.events.data.val();
        } else if self.client.q.val() == 3 {
            self.chosen.next = 8.into();
            self.client_valid.next = self.admin.valid.val();
            self.client_data.next = self.admin.data.val();
        }

        self.out.valid.next = false;
        self.out.last.next = false;
        self.out.data.next = self.client_data.val();
        self.pass.next = false;
        self.finished.next = 0.into();
        self.moves.next = self.client_valid.val() & self.out.ready.val();
        match self.state.q.val() {
            WriteState::Head0 => {
                self.out.valid.next = !self.cutter.empty.val();
                self.out.data.next = self.kind.val()
                    | bit_cast::<64, 10>(self.cutter.length_dw.val())
                    | (bit_cast::<64, 4>(self.cutter.first_be.val()) << 32)
                    | (bit_cast::<64, 4>(self.cutter.last_be.val()) << 36)
                    | (bit_cast::<64, 16>(self.requester.val()) << 48);
                if (!self.cutter.empty.val()) & self.out.ready.val() {
                    self.state.d.next = WriteState::Head1;
                }
            }
            WriteState::Head1 => {
                self.out.valid.next = true;
                self.out.data.next = self.cutter.address.val() & self.dword_mask.val();
                self.left.d.next = self.cutter.beats.val();
                self.client.d.next = self.cutter.client.val();
                if self.out.ready.val() {
                    self.state.d.next = WriteState::Data;
                }
            }
            WriteState::Data => {
                self.pass.next = self.out.ready.val();
                self.out.valid.next = self.client_valid.val();
                self.out.last.next = self.left.q.val() == self.one.val();
                if self.moves.val() {
                    self.left.d.next = self.left.q.val() - 1;
                    if self.left.q.val() == self.one.val() {
                        self.cutter.take.next = true;
                        self.state.d.next = WriteState::Head0;
                        if self.cutter.ends.val() {
                            self.finished.next = self.chosen.val();
                        }
                    }
                }
            }
            _ => {
                self.state.d.next = WriteState::Head0;
            }
        }
        self.recv.ready.next = self.pass.val() & self.chosen.val().get_bit(0);
        self.send.ready.next = self.pass.val() & self.chosen.val().get_bit(1);
        self.events.ready.next = self.pass.val() & self.chosen.val().get_bit(2);
        self.admin.ready.next = self.pass.val() & self.chosen.val().get_bit(3);
        self.kept.next = !self.finished.val();
        self.busy.d.next = (self.busy.q.val() & self.kept.val())
            | (self.cutter.taken.val() & self.one_at_a_time.val());
        if self.reset.val() {
            self.state.d.next = WriteState::Head0;
            self.busy.d.next = 0.into();
        }
    }
}
