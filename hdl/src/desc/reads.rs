//! One port of host reads for two clients of an engine; `first` goes first. Eight reads may be under
//! way; responses come in the order of the requests.

use crate::ifs::{ReadClient, ReadServer};
use crate::leaf::Fifo;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Reads {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub first: ReadServer,
    pub second: ReadServer,
    pub read: ReadClient,
    /// Whose request is offered (bit 0 `first`, 1 `second`).
    offered: DFF<Bits<2>>,
    /// Whose responses are to come.
    owners: Fifo<2, 3>,
    grant: Signal<Local, Bits<2>>,
    moves: Signal<Local, Bit>,
}

impl Logic for Reads {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, offered);
        clock!(self, clock, owners);
        self.owners.reset.next = self.reset.val();
        self.grant.next = 0.into();
        if !self.owners.full.val() {
            self.grant.next = self.offered.q.val();
            if !self.offered.q.val().any() {
                if self.first.req_valid.val() {
                    self.grant.next = 1.into();
                } else if self.second.req_valid.val() {
                    self.grant.next = 2.into();
                }
            }
        }
        self.moves.next = self.grant.val().any() & self.read.req_ready.val();
        self.offered.d.next = self.grant.val();
        if self.moves.val() {
            self.offered.d.next = 0.into();
        }
        self.owners.write.next = self.moves.val();
        self.owners.data_in.next = self.grant.val();
        self.owners.read.next = self.read.rsp_valid.val() & self.read.rsp_last.val();

        self.read.req_valid.next = self.grant.val().any();
        self.read.req_address.next = self.first.req_address.val();
        self.read.req_length.next = self.first.req_length.val();
        if self.grant.val().get_bit(1) {
            self.read.req_address.next = self.second.req_address.val();
            self.read.req_length.next = self.second.req_length.val();
        }
        self.first.req_ready.next = self.read.req_ready.val() & self.grant.val().get_bit(0);
        self.first.rsp_valid.next =
            self.read.rsp_valid.val() & self.owners.data_out.val().get_bit(0);
        self.first.rsp_data.next = self.read.rsp_data.val();
        self.first.rsp_last.next = self.read.rsp_last.val();
        self.first.rsp_error.next = self.read.rsp_error.val();
        self.second.req_ready.next = self.read.req_ready.val() & self.grant.val().get_bit(1);
        self.second.rsp_valid.next =
            self.read.rsp_valid.val() & self.owners.data_out.val().get_bit(1);
        self.second.rsp_data.next = self.read.rsp_data.val();
        self.second.rsp_last.next = self.read.rsp_last.val();
        self.second.rsp_error.next = self.read.rsp_error.val();
        if self.reset.val() {
            self.offered.d.next = 0.into();
        }
    }
}
