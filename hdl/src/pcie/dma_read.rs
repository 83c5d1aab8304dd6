//! Host reads: requests of four clients, up to 32 in flight, answered in order.
//!
//! ```text
//!  desc_send --\                 tag                    +---------+
//!  desc_recv ---> [Cutter] --> [Issue] --> out (rq)     | buffer  |
//!  gather    --/       |          |  \                  | 32 x 512|--> [Deliver] --> responses
//!  admin    --/        |       [Tags]  `--> order ----->+---------+
//!                      |          ^                          ^
//!                      `----------+------ [Receive] ---------'<== rc
//! ```
//! Completion space is reserved with the tag: `rc` is never held off. All requests share one order,
//! so a slow completion holds up younger requests of other clients until it arrives or times out.
use super::TlpClient;
use super::cutter::Cutter;
use super::read::{Deliver, Issue, Receive, Tags};
use crate::ifs::ReadServer;
use crate::leaf::SdpRam;
use rust_hdl::prelude::*;

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct DmaRead {
    pub clock: Signal<In, Clock>,
    /// Of the device: forgets everything.
    pub reset: Signal<In, Bit>,
    /// Forgets the clients' requests; a tag that the host still owes a completion stays out of use
    /// until that has arrived.
    pub soft_reset: Signal<In, Bit>,
    pub max_read: Signal<In, Bits<3>>,
    pub requester: Signal<In, Bits<16>>,
    pub read_timeout: Signal<In, Bits<32>>,
    pub desc_send: ReadServer,
    pub desc_recv: ReadServer,
    pub gather: ReadServer,
    pub admin: ReadServer,
    pub out: TlpClient,
    pub rc_valid: Signal<In, Bit>,
    pub rc_data: Signal<In, Bits<64>>,
    pub rc_last: Signal<In, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    pub error_valid: Signal<Out, Bit>,
    pub error_record: Signal<Out, Bits<64>>,
    cutter: Cutter,
    tags: Tags,
    issue: Issue,
    receive: Receive,
    deliver: Deliver,
    buffer: SdpRam<64, 11>,
    any_reset: Signal<Local, Bit>,
}

impl Logic for DmaRead {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, cutter, tags, issue, receive, deliver, buffer);
        self.any_reset.next = self.reset.val() | self.soft_reset.val();
        self.cutter.reset.next = self.any_reset.val();
        self.tags.reset.next = self.reset.val();
        self.tags.soft_reset.next = self.soft_reset.val();
        self.issue.reset.next = self.any_reset.val();
        self.receive.reset.next = self.reset.val();
        self.deliver.reset.next = self.any_reset.val();

        // Requests.
        self.cutter.limit.next = self.max_read.val();
        self.cutter.valid.next = bit_cast::<4, 1>(self.desc_send.req_valid.val().into())
            | (bit_cast::<4, 1>(self.desc_recv.req_valid.val().into()) << 1)
            | (bit_cast::<4, 1>(self.gather.req_valid.val().into()) << 2)
            | (bit_cast::<4, 1>(self.admin.req_valid.val().into()) << 3);
        self.cutter.address0.next = self.desc_send.req_address.val();
        self.cutter.address1.next = self.desc_recv.req_address.val();
        self.cutter.address2.next = self.gather.req_address.val();
        self.cutter.address3.next = self.admin.req_address.val();
        self.cutter.length0.next = self.desc_send.req_length.val();
        self.cutter.length1.next = self.desc_recv.req_length.val();
        self.cutter.length2.next = self.gather.req_length.val();
        self.cutter.length3.next = self.admin.req_length.val();
        self.desc_send.req_ready.next = self.cutter.taken.val().get_bit(0);
        self.desc_recv.req_ready.next = self.cutter.taken.val().get_bit(1);
        self.gather.req_ready.next = self.cutter.taken.val().get_bit(2);
        self.admin.req_ready.next = self.cutter.taken.val().get_bit(3);
        self.cutter.take.next = self.issue.piece_take.val();

        // A piece meets a tag.
        self.issue.requester.next = self.requester.val();
        self.issue.piece_valid.next = !self.cutter.empty.val();
        self.issue.address.next = self.cutter.address.val();
        self.issue.length_dw.next = self.cutter.length_dw.val();
        self.issue.first_be.next = self.cutter.first_be.val();
        self.issue.last_be.next = self.cutter.last_be.val();
        self.issue.tag_valid.next = self.tags.tag_valid.val();
        self.issue.tag.next = self.tags.tag.val();
        TlpClient::link(&mut self.out, &mut self.issue.out);
        self.tags.tag_take.next = self.issue.open.val();
        self.tags.sent.next = self.issue.sent.val();
        self.tags.sent_tag.next = self.issue.sent_tag.val();
        self.tags.read_timeout.next = self.read_timeout.val();
        self.receive.open.next = self.issue.open.val();
        self.receive.open_tag.next = self.tags.tag.val();
        self.receive.open_bytes.next = self.cutter.bytes.val();
        self.receive.open_position.next = self.cutter.address.val().get_bits::<9>(0);
        self.deliver.open.next = self.issue.open.val();
        self.deliver.open_tag.next = self.tags.tag.val();
        self.deliver.open_start.next = self.cutter.address.val().get_bits::<6>(3);
        self.deliver.open_beats.next = self.cutter.beats.val();
        self.deliver.open_client.next = self.cutter.client.val();
        self.deliver.open_ends.next = self.cutter.ends.val();

        // Completions.
        self.receive.rc_valid.next = self.rc_valid.val();
        self.receive.rc_data.next = self.rc_data.val();
        self.receive.rc_last.next = self.rc_last.val();
        self.tags.query_tag.next = self.receive.query_tag.val();
        self.receive.query_busy.next = self.tags.query_busy.val();
        self.tags.commit.next = self.receive.commit.val();
        self.tags.settle.next = self.receive.settle.val();
        self.tags.fail.next = self.receive.fail.val();
        self.tags.commit_tag.next = self.receive.commit_tag.val();
        self.receive.commit_fresh.next = self.tags.commit_fresh.val();
        self.receive.commit_forgotten.next = self.tags.commit_forgotten.val();
        self.receive.expired.next = self.tags.expired.val();
        self.receive.expired_tag.next = self.tags.expired_tag.val();
        self.buffer.write_enable.next = self.receive.write_enable.val();
        self.buffer.write_address.next = self.receive.write_address.val();
        self.buffer.write_data.next = self.receive.write_data.val();
        self.counts.next = self.receive.counts.val();
        self.error_valid.next = self.receive.error_valid.val();
        self.error_record.next = self.receive.error_record.val();

        // Delivery.
        self.deliver.word.next = self.receive.write_enable.val();
        self.deliver.word_address.next = self.receive.write_address.val();
        self.deliver.word_data.next = self.receive.write_data.val();
        self.deliver.word_ends.next = self.receive.write_ends.val();
        self.tags.ready_tag.next = self.deliver.ready_tag.val();
        self.deliver.ready_done.next = self.tags.ready_done.val();
        self.deliver.ready_failed.next = self.tags.ready_failed.val();
        self.tags.over.next = self.deliver.over.val();
        self.tags.over_tag.next = self.deliver.over_tag.val();
        self.buffer.read_address.next = self.deliver.read_address.val();
        self.deliver.read_data.next = self.buffer.read_data.val();
        self.desc_send.rsp_valid.next = self.deliver.rsp_valid.val().get_bit(0);
        self.desc_recv.rsp_valid.next = self.deliver.rsp_valid.val().get_bit(1);
        self.gather.rsp_valid.next = self.deliver.rsp_valid.val().get_bit(2);
        self.admin.rsp_valid.next = self.deliver.rsp_valid.val().get_bit(3);
        self.desc_send.rsp_data.next = self.deliver.rsp_data.val();
        self.desc_recv.rsp_data.next = self.deliver.rsp_data.val();
        self.gather.rsp_data.next = self.deliver.rsp_data.val();
        self.admin.rsp_data.next = self.deliver.rsp_data.val();
        self.desc_send.rsp_last.next = self.deliver.rsp_last.val();
        self.desc_recv.rsp_last.next = self.deliver.rsp_last.val();
        self.gather.rsp_last.next = self.deliver.rsp_last.val();
        self.admin.rsp_last.next = self.deliver.rsp_last.val();
        self.desc_send.rsp_error.next = self.deliver.rsp_error.val();
        self.desc_recv.rsp_error.next = self.deliver.rsp_error.val();
        self.gather.rsp_error.next = self.deliver.rsp_error.val();
        self.admin.rsp_error.next = self.deliver.rsp_error.val();
    }
}
