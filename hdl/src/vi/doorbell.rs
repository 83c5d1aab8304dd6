//! Token doorbells (contract 2.1): one is held while it passes the pipeline, then judged by its
//! VI's state. A push with data that the send engine cannot take yet passes again, some times.

use crate::ifs::PostServer;
use crate::leaf::Number;
use nic_regs::counter::ErrorCode;
use nic_regs::doorbell::{PUSH_LINE_BYTES, PUSH_OFFSET};
use rust_hdl::prelude::*;

const _: () = assert!(PUSH_LINE_BYTES == 1 << 6, "a line's number begins at bit 6 of the offset");

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
    // The VI in stage 1.
    pub state: Signal<In, Bits<2>>,
    pub domain: Signal<In, Bits<6>>,
    pub full_send: Signal<In, Bit>,
    pub full_recv: Signal<In, Bit>,
    /// Stage 2, and what the VI says there.
    pub at: Signal<In, Bit>,
    /// The engine may take the push soon.
    pub soon: Signal<In, Bit>,
    /// Stage 2 has no effect: the push passes again.
    pub waits: Signal<Out, Bit>,
    /// The doorbell is a post / and that to the receive queue.
    pub taken: Signal<Out, Bit>,
    /// In stage 2: it may be a post to the send queue.
    pub may_send: Signal<Out, Bit>,
    pub taken_recv: Signal<Out, Bit>,
    /// It is for the receive queue.
    pub recv: Signal<Out, Bit>,
    pub token: Signal<Out, Bits<47>>,
    /// It is the token of a push / whose data is in this slot.
    pub push: Signal<Out, Bit>,
    pub has_data: Signal<Out, Bit>,
    pub slot: Signal<Out, Bits<3>>,
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
    held_push: DFF<Bits<7>>,
    tries: DFF<Bits<7>>,
    waits_now: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    error_out: DFF<Bit>,
    error_record_out: DFF<Bits<64>>,
    stamp_out: DFF<Bit>,
    accepts: Signal<Local, Bit>,
    /// The doorbell's page may ring for the VI, which is there / in Error, or its queue is full.
    owned: DFF<Bit>,
    drops: DFF<Bit>,
    full: Signal<Local, Bit>,
    right_page: Signal<Local, Bit>,
    posts: Signal<Local, Bit>,
    in_range: Signal<Local, Bit>,
    offset: Signal<Local, Bits<64>>,
    first_line: Number<64, { PUSH_OFFSET << 48 }>,
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
            held_push,
            tries,
            error_out,
            error_record_out,
            stamp_out,
            owned,
            drops
        );
        self.waits_now.next = self.at.val()
            & self.soon.val()
            & (!self.held_token.q.val().get_bit(63))
            & (!self.tries.q.val().get_bit(6));
        self.waits.next = self.waits_now.val();
        self.ends.next = self.at.val() & (!self.waits_now.val());
        self.accepts.next = (!self.held.q.val()) | self.ends.val();
        self.post.ready.next = self.accepts.val();
        if self.ends.val() {
            self.held.d.next = false;
        }
        if self.waits_now.val() {
            self.tries.d.next = self.tries.q.val() + 1;
        }
        if self.post.valid.val() & self.accepts.val() {
            self.held.d.next = true;
            self.tries.d.next = 0.into();
            self.held_token.d.next = self.post.token.val();
            self.held_domain.d.next = self.post.domain.val();
            self.held_push.d.next = self.post.push.val();
        }
        // One that comes is held when the pipeline looks at its VI number.
        self.request.next = self.held.q.val() | self.post.valid.val();
        self.vi.next = self.held_token.q.val().get_bits::<10>(0);
        self.in_range.next = !self.held_token.q.val().get_bits::<6>(10).any();
        self.known.next = self.in_range.val();

        self.full.next = self.full_send.val();
        if self.held_token.q.val().get_bit(63) {
            self.full.next = self.full_recv.val();
        }
        self.drops.d.next =
            (self.state.val().get_bit(1) & self.state.val().get_bit(0)) | self.full.val();
        self.right_page.next = bit_cast::<8, 6>(self.domain.val()) == self.held_domain.q.val();
        self.owned.d.next = self.in_range.val() & self.state.val().any() & self.right_page.val();
        self.posts.next = self.ends.val() & self.owned.q.val() & (!self.drops.q.val());
        self.taken.next = self.posts.val();
        self.may_send.next = self.at.val()
            & self.owned.q.val()
            & (!self.drops.q.val())
            & (!self.held_token.q.val().get_bit(63));
        // None of these waits.
        self.taken_recv.next = self.at.val()
            & self.held_token.q.val().get_bit(63)
            & self.owned.q.val()
            & (!self.drops.q.val());
        self.bad.next = self.ends.val() & (!self.owned.q.val());
        self.dropped.next = self.ends.val() & self.owned.q.val() & self.drops.q.val();
        self.recv.next = self.held_token.q.val().get_bit(63);
        self.push.next = self.held_push.q.val().get_bit(0);
        self.has_data.next = self.held_push.q.val().get_bit(3);
        self.slot.next = self.held_push.q.val().get_bits::<3>(4);
        self.token.next = self.held_token.q.val().get_bits::<47>(16);

        // Offset in the page: 0, or that of the push line.
        self.offset.next = 0.into();
        if self.held_push.q.val().get_bit(0) {
            self.offset.next = self.first_line.val()
                | (bit_cast::<64, 2>(self.held_push.q.val().get_bits::<2>(1)) << 54);
        }
        self.error_out.d.next = self.ends.val() & (!self.owned.q.val());
        self.error_record_out.d.next = self.record_base.val()
            | (bit_cast::<64, 8>(self.held_domain.q.val()) << 16)
            | (bit_cast::<64, 16>(self.held_token.q.val().get_bits::<16>(0)) << 32)
            | self.offset.val();
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
