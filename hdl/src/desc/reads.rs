//! One port of host reads for two clients of an engine; `first` goes first. Eight reads may be under
//! way; responses come in the order of the requests. Requests leave from registers, a cycle later.

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
    // The request that is offered.
    offers: DFF<Bit>,
    address: DFF<Bits<64>>,
    length: DFF<Bits<13>>,
    /// Whose responses are to come: bit 0 `first`, 1 `second`.
    owners: Fifo<2, 3>,
    free: Signal<Local, Bit>,
    grant: Signal<Local, Bits<2>>,
}

impl Logic for Reads {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, offers, address, length);
        clock!(self, clock, owners);
        self.owners.reset.next = self.reset.val();
        self.free.next = (!self.offers.q.val()) & (!self.owners.full.val());
        self.grant.next = 0.into();
        if self.free.val() {
            if self.first.req_valid.val() {
                self.grant.next = 1.into();
            } else if self.second.req_valid.val() {
                self.grant.next = 2.into();
            }
        }
        self.offers.d.next =
            self.grant.val().any() | (self.offers.q.val() & (!self.read.req_ready.val()));
        if !self.offers.q.val() {
            self.address.d.next = self.second.req_address.val();
            self.length.d.next = self.second.req_length.val();
            if self.first.req_valid.val() {
                self.address.d.next = self.first.req_address.val();
                self.length.d.next = self.first.req_length.val();
            }
        }
        self.owners.write.next = self.grant.val().any();
        self.owners.data_in.next = self.grant.val();
        self.owners.read.next = self.read.rsp_valid.val() & self.read.rsp_last.val();

        self.read.req_valid.next = self.offers.q.val();
        self.read.req_address.next = self.address.q.val();
        self.read.req_length.next = self.length.q.val();
        self.first.req_ready.next = self.free.val();
        self.first.rsp_valid.next =
            self.read.rsp_valid.val() & self.owners.data_out.val().get_bit(0);
        self.first.rsp_data.next = self.read.rsp_data.val();
        self.first.rsp_last.next = self.read.rsp_last.val();
        self.first.rsp_error.next = self.read.rsp_error.val();
        self.second.req_ready.next = self.free.val() & (!self.first.req_valid.val());
        self.second.rsp_valid.next =
            self.read.rsp_valid.val() & self.owners.data_out.val().get_bit(1);
        self.second.rsp_data.next = self.read.rsp_data.val();
        self.second.rsp_last.next = self.read.rsp_last.val();
        self.second.rsp_error.next = self.read.rsp_error.val();
        if self.reset.val() {
            self.offers.d.next = false;
        }
    }
}
