//! Token doorbells (contract 2.1): one is held while it passes the pipeline, then judged by its
//! VI's state.

use crate::ifs::PostServer;
use crate::leaf::Number;
use nic_regs::counter::ErrorCode;
use rust_hdl::prelude::*;

#[derive(LogicBlock, Default)]
pub struct Doorbells {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub post: PostServer,
    /// A doorbell wants the pipeline, for `vi`.
    pub request: Signal<Out, Bit>,
    pub vi: Signal<Out, Bits<10>>,
    /// Its VI number is below the number of VIs.
    pub known: Signal<Out, Bit>,
    /// Stage 2, and what the VI says there.
    pub at: Signal<In, Bit>,
    pub state: Signal<In, Bits<2>>,
    pub domain: Signal<In, Bits<8>>,
    /// The doorbell is a post, to the receive queue if `recv`.
    pub taken: Signal<Out, Bit>,
    pub recv: Signal<Out, Bit>,
    pub token: Signal<Out, Bits<47>>,
    pub bad: Signal<Out, Bit>,
    pub dropped: Signal<Out, Bit>,
    pub error_valid: Signal<Out, Bit>,
    pub error_record: Signal<Out, Bits<64>>,
    pub sample_vi: Signal<In, Bits<16>>,
    pub sample_armed: Signal<In, Bit>,
    pub stamp: Signal<Out, Bit>,
    held: DFF<Bit>,
    held_token: DFF<Bits<64>>,
    held_domain: DFF<Bits<8>>,
    error_out: DFF<Bit>,
    error_record_out: DFF<Bits<64>>,
    stamp_out: DFF<Bit>,
    accepts: Signal<Local, Bit>,
    owned: Signal<Local, Bit>,
    in_error: Signal<Local, Bit>,
    posts: Signal<Local, Bit>,
    in_range: Signal<Local, Bit>,
    /// Cause 1: not this page's VI.
    record_base: Number<64, { 1 << 60 | ErrorCode::BadDoorbell as u64 }>,
}

impl Logic for Doorbells {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            held,
            held_token,
            held_domain,
            error_out,
            error_record_out,
            stamp_out
        );
        self.accepts.next = (!self.held.q.val()) | self.at.val();
        self.post.ready.next = self.accepts.val();
        if self.at.val() {
            self.held.d.next = false;
        }
        if self.post.valid.val() & self.accepts.val() {
            self.held.d.next = true;
            self.held_token.d.next = self.post.token.val();
            self.held_domain.d.next = self.post.domain.val();
        }
        self.request.next = self.held.q.val();
        self.vi.next = self.held_token.q.val().get_bits::<10>(0);
        self.in_range.next = !self.held_token.q.val().get_bits::<6>(10).any();
        self.known.next = self.in_range.val();

        self.in_error.next = self.state.val().get_bit(1) & self.state.val().get_bit(0);
        self.owned.next = self.in_range.val()
            & self.state.val().any()
            & (self.domain.val() == self.held_domain.q.val());
        self.posts.next = self.at.val() & self.owned.val() & (!self.in_error.val());
        self.taken.next = self.posts.val();
        self.bad.next = self.at.val() & (!self.owned.val());
        self.dropped.next = self.at.val() & self.owned.val() & self.in_error.val();
        self.recv.next = self.held_token.q.val().get_bit(63);
        self.token.next = self.held_token.q.val().get_bits::<47>(16);

        self.error_out.d.next = self.at.val() & (!self.owned.val());
        self.error_record_out.d.next = self.record_base.val()
            | (bit_cast::<64, 8>(self.held_domain.q.val()) << 16)
            | (bit_cast::<64, 16>(self.held_token.q.val().get_bits::<16>(0)) << 32);
        self.error_valid.next = self.error_out.q.val();
        self.error_record.next = self.error_record_out.q.val();
        self.stamp_out.d.next = self.posts.val()
            & (!self.held_token.q.val().get_bit(63))
            & self.sample_armed.val()
            & (self.sample_vi.val() == self.held_token.q.val().get_bits::<16>(0));
        self.stamp.next = self.stamp_out.q.val();
        if self.reset.val() {
            self.held.d.next = false;
            self.error_out.d.next = false;
            self.stamp_out.d.next = false;
        }
    }
}
