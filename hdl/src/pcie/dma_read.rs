//! Host reads: requests of four clients, up to 32 in flight, answered to each client in order.
//!
//! ```text
//!  desc_send --\                 tag                    +---------+
//!  desc_recv ---> [brief] -> [Issue] --> out (rq)       | buffer  |
//!  admin    --/             /  |  \                     | 32 x 512|--> [Deliver] --> responses
//!  gather   ----> [bulk] --/ [Tags] `--> order -------->+---------+
//!                              ^                             ^
//!                              `---- [Receive] --------------'<== rc
//! ```
//! Completion space is reserved with the tag: `rc` is never held off. Each client has an order of its
//! own, so that a completion that is late or missing holds up its client alone: pieces of `gather`
//! have a cutter of their own, take turns with the others, and use 20 of the tags at most.
use super::TlpClient;
use super::cutter::Cutter;
use super::read::{Deliver, Issue, Receive, Tags};
use crate::ifs::ReadServer;
use crate::leaf::{Number, SdpRam};
use rust_hdl::prelude::*;

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct DmaRead {
    pub clock: Signal<In, Clock>,
    /// Of the device: forgets everything.
    pub reset: Signal<In, Bit>,
    /// Forgets the clients' requests; a tag that still misses its completion stays out of use
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
    /// Every tag misses a completion that did not come in time: reads fail at once.
    pub exhausted: Signal<Out, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    pub error_valid: Signal<Out, Bit>,
    pub error_record: Signal<Out, Bits<64>>,
    brief: Cutter,
    bulk: Cutter,
    tags: Tags,
    issue: Issue,
    receive: Receive,
    deliver: Deliver,
    buffer: SdpRam<64, 11>,
    /// Tags of `gather`.
    bulk_tags: DFF<Bits<6>>,
    bulk_may: DFF<Bit>,
    /// Whose piece is in flight, or was.
    bulk_now: DFF<Bit>,
    has_brief: Signal<Local, Bit>,
    has_bulk: Signal<Local, Bit>,
    picks_bulk: Signal<Local, Bit>,
    opens_bulk: Signal<Local, Bit>,
    piece_start: Signal<Local, Bits<9>>,
    bulk_most: Number<6, 20>,
    /// The send engine's descriptors; `gather`.
    home_brief: Number<4, 1>,
    home_bulk: Number<4, 4>,
    any_reset: Signal<Local, Bit>,
}

impl Logic for DmaRead {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, bulk_tags, bulk_may, bulk_now);
        clock!(self, clock, brief, bulk, tags, issue, receive, deliver, buffer);
        self.any_reset.next = self.reset.val() | self.soft_reset.val();
        self.brief.reset.next = self.any_reset.val();
        self.bulk.reset.next = self.any_reset.val();
        self.tags.reset.next = self.reset.val();
        self.tags.soft_reset.next = self.soft_reset.val();
        self.issue.reset.next = self.any_reset.val();
        self.receive.reset.next = self.reset.val();
        self.receive.soft_reset.next = self.soft_reset.val();
        self.deliver.reset.next = self.any_reset.val();

        // Requests.
        self.brief.limit.next = self.max_read.val();
        self.brief.valid.next = bit_cast::<4, 1>(self.desc_send.req_valid.val().into())
            | (bit_cast::<4, 1>(self.desc_recv.req_valid.val().into()) << 1)
            | (bit_cast::<4, 1>(self.admin.req_valid.val().into()) << 3);
        self.brief.address0.next = self.desc_send.req_address.val();
        self.brief.address1.next = self.desc_recv.req_address.val();
        self.brief.address2.next = 0.into();
        self.brief.address3.next = self.admin.req_address.val();
        self.brief.length0.next = self.desc_send.req_length.val();
        self.brief.length1.next = self.desc_recv.req_length.val();
        self.brief.length2.next = 0.into();
        self.brief.length3.next = self.admin.req_length.val();
        self.brief.home.next = self.home_brief.val();
        self.bulk.home.next = self.home_bulk.val();
        self.desc_send.req_ready.next = self.brief.open.val().get_bit(0);
        self.desc_recv.req_ready.next = self.brief.open.val().get_bit(1);
        self.admin.req_ready.next = self.brief.open.val().get_bit(3);
        self.bulk.limit.next = self.max_read.val();
        self.bulk.valid.next = bit_cast::<4, 1>(self.gather.req_valid.val().into()) << 2;
        self.bulk.address0.next = 0.into();
        self.bulk.address1.next = 0.into();
        self.bulk.address2.next = self.gather.req_address.val();
        self.bulk.address3.next = 0.into();
        self.bulk.length0.next = 0.into();
        self.bulk.length1.next = 0.into();
        self.bulk.length2.next = self.gather.req_length.val();
        self.bulk.length3.next = 0.into();
        self.gather.req_ready.next = self.bulk.open.val().get_bit(2);

        // A piece, of each cutter in turn, meets a tag.
        self.has_brief.next = !self.brief.empty.val();
        self.has_bulk.next = (!self.bulk.empty.val()) & self.bulk_may.q.val();
        self.picks_bulk.next = self.bulk_now.q.val();
        if self.issue.idle.val() {
            self.picks_bulk.next =
                self.has_bulk.val() & ((!self.has_brief.val()) | (!self.bulk_now.q.val()));
            if self.issue.open.val() | self.issue.refused.val() {
                self.bulk_now.d.next = self.picks_bulk.val();
            }
        }
        self.brief.take.next = self.issue.piece_take.val() & (!self.picks_bulk.val());
        self.bulk.take.next = self.issue.piece_take.val() & self.picks_bulk.val();
        self.issue.requester.next = self.requester.val();
        self.issue.piece_valid.next = self.has_brief.val() | self.has_bulk.val();
        self.issue.address.next = self.brief.address.val();
        self.issue.length_dw.next = self.brief.length_dw.val();
        self.issue.first_be.next = self.brief.first_be.val();
        self.issue.last_be.next = self.brief.last_be.val();
        self.receive.open_bytes.next = self.brief.bytes.val();
        self.piece_start.next = self.brief.address.val().get_bits::<9>(0);
        self.deliver.open_beats.next = self.brief.beats.val();
        self.deliver.open_client.next = self.brief.client.val();
        self.deliver.open_ends.next = self.brief.ends.val();
        if self.picks_bulk.val() {
            self.issue.address.next = self.bulk.address.val();
            self.issue.length_dw.next = self.bulk.length_dw.val();
            self.issue.first_be.next = self.bulk.first_be.val();
            self.issue.last_be.next = self.bulk.last_be.val();
            self.receive.open_bytes.next = self.bulk.bytes.val();
            self.piece_start.next = self.bulk.address.val().get_bits::<9>(0);
            self.deliver.open_beats.next = self.bulk.beats.val();
            self.deliver.open_client.next = self.bulk.client.val();
            self.deliver.open_ends.next = self.bulk.ends.val();
        }
        self.issue.tag_valid.next = self.tags.tag_valid.val();
        self.issue.tag.next = self.tags.tag.val();
        self.issue.refuse.next = self.tags.exhausted.val() & (!self.receive.commit.val());
        self.exhausted.next = self.tags.exhausted.val();
        self.opens_bulk.next = self.issue.open.val() & self.picks_bulk.val();
        if self.opens_bulk.val() & (!self.deliver.over_bulk.val()) {
            self.bulk_tags.d.next = self.bulk_tags.q.val() + 1;
        } else if (!self.opens_bulk.val()) & self.deliver.over_bulk.val() {
            self.bulk_tags.d.next = self.bulk_tags.q.val() - 1;
        }
        self.bulk_may.d.next = self.bulk_tags.q.val() < self.bulk_most.val();
        TlpClient::link(&mut self.out, &mut self.issue.out);
        self.tags.tag_take.next = self.issue.open.val();
        self.tags.sent.next = self.issue.sent.val();
        self.tags.sent_tag.next = self.issue.sent_tag.val();
        self.tags.read_timeout.next = self.read_timeout.val();
        self.receive.open.next = self.issue.open.val();
        self.receive.open_tag.next = self.tags.tag.val();
        self.receive.open_position.next = self.piece_start.val();
        self.deliver.open.next = self.issue.open.val();
        self.deliver.open_tag.next = self.tags.tag.val();
        self.deliver.open_dead.next = self.issue.refused.val();
        self.deliver.open_start.next = self.piece_start.val().get_bits::<6>(3);

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
        self.receive.query_fresh.next = self.tags.query_fresh.val();
        self.receive.query_forgotten.next = self.tags.query_forgotten.val();
        self.receive.expired.next = self.tags.expired.val();
        self.receive.expired_tag.next = self.tags.expired_tag.val();
        self.receive.refused.next = self.issue.refused.val();
        self.tags.quiet.next = self.receive.quiet.val();
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
        self.deliver.word_fresh.next = self.receive.write_fresh.val();
        self.tags.ready_tag0.next = self.deliver.ready_tag0.val();
        self.tags.ready_tag1.next = self.deliver.ready_tag1.val();
        self.tags.ready_tag2.next = self.deliver.ready_tag2.val();
        self.tags.ready_tag3.next = self.deliver.ready_tag3.val();
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
        if self.any_reset.val() {
            self.bulk_tags.d.next = 0.into();
            self.bulk_may.d.next = true;
        }
    }
}
