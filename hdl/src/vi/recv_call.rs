//! The receive engine's call on its way to the tables: the arguments in registers.
//!
//! A call's arguments are there when it is accepted, two cycles before they are used, and stay until
//! it is done. So a register costs no time, and the engine's logic ends here. `valid` and the VI's
//! number, which are used at once, go past it; so do the answers.

use crate::ifs::{ViRecvClient, ViRecvServer};
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct RecvCall {
    pub clock: Signal<In, Clock>,
    /// The engine.
    pub port: ViRecvServer,
    /// The tables.
    pub side: ViRecvClient,
    op: DFF<Bits<3>>,
    vi: DFF<Bits<16>>,
    in_progress: DFF<Bit>,
    write: DFF<Bit>,
    offset: DFF<Bits<19>>,
    total: DFF<Bits<19>>,
    message: DFF<Bits<8>>,
    fragment: DFF<Bits<8>>,
    next_valid: DFF<Bit>,
    next_region: DFF<Bits<16>>,
    next_offset: DFF<Bits<26>>,
    need_ack: DFF<Bit>,
    sends: DFF<Bit>,
    reason: DFF<Bits<8>>,
    detail: DFF<Bits<8>>,
    status: DFF<Bits<32>>,
    queue: DFF<Bit>,
    refuse: DFF<Bit>,
    address: DFF<Bits<64>>,
    handle: DFF<Bits<32>>,
}

impl Logic for RecvCall {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, op, vi, in_progress, write, offset, total, message, fragment);
        dff_setup!(
            self,
            clock,
            next_valid,
            next_region,
            next_offset,
            need_ack,
            sends,
            address,
            handle,
            reason
        );
        dff_setup!(self, clock, detail, status, queue, refuse);
        self.side.valid.next = self.port.valid.val();
        self.op.d.next = self.port.op.val();
        self.side.op.next = self.op.q.val();
        self.vi.d.next = self.port.vi.val();
        self.side.vi.next = self.vi.q.val();
        self.in_progress.d.next = self.port.in_progress.val();
        self.side.in_progress.next = self.in_progress.q.val();
        self.write.d.next = self.port.write.val();
        self.side.write.next = self.write.q.val();
        self.offset.d.next = self.port.offset.val();
        self.side.offset.next = self.offset.q.val();
        self.total.d.next = self.port.total.val();
        self.side.total.next = self.total.q.val();
        self.message.d.next = self.port.message.val();
        self.side.message.next = self.message.q.val();
        self.fragment.d.next = self.port.fragment.val();
        self.side.fragment.next = self.fragment.q.val();
        self.next_valid.d.next = self.port.next_valid.val();
        self.side.next_valid.next = self.next_valid.q.val();
        self.next_region.d.next = self.port.next_region.val();
        self.side.next_region.next = self.next_region.q.val();
        self.next_offset.d.next = self.port.next_offset.val();
        self.side.next_offset.next = self.next_offset.q.val();
        self.need_ack.d.next = self.port.need_ack.val();
        self.side.need_ack.next = self.need_ack.q.val();
        self.sends.d.next = self.port.sends.val();
        self.side.sends.next = self.sends.q.val();
        self.address.d.next = self.port.address.val();
        self.side.address.next = self.address.q.val();
        self.handle.d.next = self.port.handle.val();
        self.side.handle.next = self.handle.q.val();
        self.reason.d.next = self.port.reason.val();
        self.side.reason.next = self.reason.q.val();
        self.detail.d.next = self.port.detail.val();
        self.side.detail.next = self.detail.q.val();
        self.status.d.next = self.port.status.val();
        self.side.status.next = self.status.q.val();
        self.queue.d.next = self.port.queue.val();
        self.side.queue.next = self.queue.q.val();
        self.refuse.d.next = self.port.refuse.val();
        self.side.refuse.next = self.refuse.q.val();
        self.port.done.next = self.side.done.val();
        self.port.need_next.next = self.side.need_next.val();
        self.port.ctx_state.next = self.side.ctx_state.val();
        self.port.ctx_domain.next = self.side.ctx_domain.val();
        self.port.ctx_tag.next = self.side.ctx_tag.val();
        self.port.ctx_reliability.next = self.side.ctx_reliability.val();
        self.port.ctx_peer.next = self.side.ctx_peer.val();
        self.port.ctx_peer_vi.next = self.side.ctx_peer_vi.val();
        self.port.ctx_connection.next = self.side.ctx_connection.val();
        self.port.ctx_region.next = self.side.ctx_region.val();
        self.port.ctx_offset.next = self.side.ctx_offset.val();
        self.port.ctx_segments.next = self.side.ctx_segments.val();
        self.port.ctx_count.next = self.side.ctx_count.val();
        self.port.ctx_in_progress.next = self.side.ctx_in_progress.val();
        self.port.ctx_write.next = self.side.ctx_write.val();
        self.port.ctx_progress.next = self.side.ctx_progress.val();
        self.port.ctx_total.next = self.side.ctx_total.val();
        self.port.ctx_message.next = self.side.ctx_message.val();
        self.port.ctx_fragment.next = self.side.ctx_fragment.val();
        self.port.ctx_allows.next = self.side.ctx_allows.val();
        self.port.ctx_answering.next = self.side.ctx_answering.val();
        self.port.posted.next = self.side.posted.val();
        self.port.posted_vi.next = self.side.posted_vi.val();
    }
}
