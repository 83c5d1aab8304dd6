//! Who works on which VI: arbitration and the four stages of an operation.
//!
//! ```text
//! cycle 0  one requester is accepted
//! cycle 1  its VI number addresses all RAMs   (stage 0)
//! cycle 2  RAM outputs                        (stage 1)
//! cycle 3  the operation: results, RAM writes (stage 2)
//! cycle 4  the writes can be read
//! ```
//! One operation a cycle. An operation whose VI is in a later stage waits in stage 1 and reads
//! again until that one has written. A caller's VI number goes through a register to stage 0 and must stay
//! until its operation is told; a doorbell's comes a cycle behind its request, and needs none. Doorbells and the
//! engines' callers are arbitrated directly; admin, kill, completion writer and ready ring first share a
//! register (`slow`), which is the sixth requester: both arbiters are fair, so nobody starves.
//!
//! A request of the send engine that needs no answer is told in stage 1, whether it waits there or not,
//! and may change then; it is worked on like any other.

use crate::leaf::RoundRobin;
use rust_hdl::prelude::*;

/// Requesters: bit 0 doorbell, 1 send, 2 receive, 3 its completer, 4 its prefetcher, 5 admin, 6 kill,
/// 7 completion writer, 8 ready ring.
#[derive(LogicBlock, Default)]
pub struct Pipeline {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// The tables are clear.
    pub ready: Signal<In, Bit>,
    /// Requests of the first five; each stays until its stage 2, or until `early`.
    pub request: Signal<In, Bits<5>>,
    /// That of the send engine needs no answer. Pulse: it is in stage 1.
    pub send_early: Signal<In, Bit>,
    pub early: Signal<Out, Bit>,
    /// Stage 2 is such a one / there is one in stage 1 or 2.
    pub at_early: Signal<Out, Bit>,
    pub has_early: Signal<Out, Bit>,
    pub post_vi: Signal<In, Bits<10>>,
    pub send_vi: Signal<In, Bits<10>>,
    pub recv_vi: Signal<In, Bits<10>>,
    pub complete_vi: Signal<In, Bits<10>>,
    pub look_vi: Signal<In, Bits<10>>,
    /// Requests of admin, kill, completion writer and ready ring; one was taken over in the cycle before that in
    /// which its `loaded` bit is high.
    pub slow_request: Signal<In, Bits<4>>,
    pub admin_vi: Signal<In, Bits<10>>,
    pub kill_vi: Signal<In, Bits<10>>,
    pub report_vi: Signal<In, Bits<10>>,
    pub ring_vi: Signal<In, Bits<10>>,
    /// Code that travels with a completion writer's operation.
    pub report_op: Signal<In, Bits<2>>,
    pub loaded: Signal<Out, Bits<4>>,
    pub read_address: Signal<Out, Bits<10>>,
    /// The VI in stage 1.
    pub coming_vi: Signal<Out, Bits<10>>,
    /// Stage 2, one-hot.
    pub at: Signal<Out, Bits<9>>,
    pub vi: Signal<Out, Bits<10>>,
    pub op: Signal<Out, Bits<2>>,
    fast_arbiter: RoundRobin<6>,
    slow_arbiter: RoundRobin<4>,
    busy: DFF<Bits<5>>,
    slow: DFF<Bits<4>>,
    slow_vi: DFF<Bits<10>>,
    slow_op: DFF<Bits<2>>,
    stage0: DFF<Bits<9>>,
    /// VI and code of a slow requester there; its early bit.
    stage0_vi: DFF<Bits<10>>,
    stage0_op: DFF<Bits<2>>,
    stage0_early: DFF<Bit>,
    stage1: DFF<Bits<9>>,
    stage1_vi: DFF<Bits<10>>,
    stage1_op: DFF<Bits<2>>,
    stage2: DFF<Bits<9>>,
    stage2_vi: DFF<Bits<10>>,
    stage2_op: DFF<Bits<2>>,
    stage1_early: DFF<Bit>,
    stage2_early: DFF<Bit>,
    /// The one in stage 1 was told.
    reported: DFF<Bit>,
    /// The one in stage 1 waits: found out when it came there.
    stall: DFF<Bit>,
    stage0_valid: DFF<Bit>,
    stage1_valid: DFF<Bit>,
    stage2_valid: DFF<Bit>,
    loaded_now: DFF<Bits<4>>,
    send_vi_at: DFF<Bits<10>>,
    recv_vi_at: DFF<Bits<10>>,
    complete_vi_at: DFF<Bits<10>>,
    look_vi_at: DFF<Bits<10>>,
    free_requests: Signal<Local, Bits<5>>,
    requests: Signal<Local, Bits<6>>,
    accepted: Signal<Local, Bits<6>>,
    chosen_vi: Signal<Local, Bits<10>>,
    finished: Signal<Local, Bits<5>>,
    busy_kept: Signal<Local, Bits<5>>,
    fast_accepted: Signal<Local, Bits<5>>,
    slow_free: Signal<Local, Bit>,
}

impl Logic for Pipeline {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, busy, slow, slow_vi, slow_op, stage1, stage1_vi, stage1_op, stage2,
            stage2_vi, stage2_op
        );
        dff_setup!(self, clock, stage0, stage0_vi, stage0_op, stage0_early, stall, loaded_now);
        dff_setup!(self, clock, stage0_valid, stage1_valid, stage2_valid);
        dff_setup!(self, clock, stage1_early, stage2_early, reported);
        dff_setup!(self, clock, send_vi_at, recv_vi_at, complete_vi_at, look_vi_at);
        clock!(self, clock, fast_arbiter, slow_arbiter);
        self.fast_arbiter.reset.next = self.reset.val();
        self.slow_arbiter.reset.next = self.reset.val();

        // Cycle 0.
        self.free_requests.next = self.request.val() & (!self.busy.q.val());
        self.requests.next = 0.into();
        if self.ready.val() {
            self.requests.next = bit_cast::<6, 5>(self.free_requests.val())
                | (bit_cast::<6, 1>(self.slow.q.val().any().into()) << 5);
        }
        self.fast_arbiter.request.next = self.requests.val();
        self.fast_arbiter.advance.next = !self.stall.q.val();
        self.accepted.next = self.fast_arbiter.grant.val();
        if self.stall.q.val() {
            self.accepted.next = 0.into();
        }

        // Stage 0.
        self.send_vi_at.d.next = self.send_vi.val();
        self.recv_vi_at.d.next = self.recv_vi.val();
        self.complete_vi_at.d.next = self.complete_vi.val();
        self.look_vi_at.d.next = self.look_vi.val();
        self.chosen_vi.next = self.stage0_vi.q.val();
        if self.stage0.q.val().get_bit(0) {
            self.chosen_vi.next = self.post_vi.val();
        } else if self.stage0.q.val().get_bit(1) {
            self.chosen_vi.next = self.send_vi_at.q.val();
        } else if self.stage0.q.val().get_bit(2) {
            self.chosen_vi.next = self.recv_vi_at.q.val();
        } else if self.stage0.q.val().get_bit(3) {
            self.chosen_vi.next = self.complete_vi_at.q.val();
        } else if self.stage0.q.val().get_bit(4) {
            self.chosen_vi.next = self.look_vi_at.q.val();
        }
        self.read_address.next = self.chosen_vi.val();
        if self.stall.q.val() {
            self.read_address.next = self.stage1_vi.q.val();
        }

        // Stage 1 waits for an older operation on the same VI.
        self.stall.d.next =
            self.stage2_valid.q.val() & (self.stage1_vi.q.val() == self.stage2_vi.q.val());
        if !self.stall.q.val() {
            self.stall.d.next = self.stage0_valid.q.val()
                & ((self.stage1_valid.q.val() & (self.chosen_vi.val() == self.stage1_vi.q.val()))
                    | (self.stage2_valid.q.val()
                        & (self.chosen_vi.val() == self.stage2_vi.q.val())));
        }

        // Slow requesters: one every other cycle.
        self.slow_free.next = !self.slow.q.val().any();
        self.slow_arbiter.request.next = self.slow_request.val();
        self.slow_arbiter.advance.next = self.slow_free.val();
        self.loaded.next = self.loaded_now.q.val();
        self.loaded_now.d.next = 0.into();
        if self.slow_free.val() {
            self.loaded_now.d.next = self.slow_arbiter.grant.val();
            self.slow.d.next = self.slow_arbiter.grant.val();
            self.slow_op.d.next = self.report_op.val();
            self.slow_vi.d.next = self.admin_vi.val();
            if self.slow_arbiter.grant.val().get_bit(1) {
                self.slow_vi.d.next = self.kill_vi.val();
            } else if self.slow_arbiter.grant.val().get_bit(2) {
                self.slow_vi.d.next = self.report_vi.val();
            } else if self.slow_arbiter.grant.val().get_bit(3) {
                self.slow_vi.d.next = self.ring_vi.val();
            }
        }

        // Stages.
        self.fast_accepted.next = self.accepted.val().get_bits::<5>(0);
        self.finished.next = self.stage2.q.val().get_bits::<5>(0);
        self.busy_kept.next = self.busy.q.val() & (!self.finished.val());
        self.busy.d.next = self.busy_kept.val() | self.fast_accepted.val();
        if !self.stall.q.val() {
            self.stage0.d.next = bit_cast::<9, 5>(self.fast_accepted.val());
            if self.accepted.val().get_bit(5) {
                self.stage0.d.next = bit_cast::<9, 4>(self.slow.q.val()) << 5;
            }
            self.stage0_valid.d.next = self.accepted.val().any();
            self.stage0_vi.d.next = self.slow_vi.q.val();
            self.stage0_op.d.next = self.slow_op.q.val();
            self.stage0_early.d.next = self.accepted.val().get_bit(1) & self.send_early.val();
            self.stage1.d.next = self.stage0.q.val();
            self.stage1_valid.d.next = self.stage0_valid.q.val();
            self.stage1_vi.d.next = self.chosen_vi.val();
            self.stage1_op.d.next = self.stage0_op.q.val();
            self.stage2.d.next = self.stage1.q.val();
            self.stage2_valid.d.next = self.stage1_valid.q.val();
            self.stage1_early.d.next = self.stage0_early.q.val();
            self.stage2_early.d.next = self.stage1_early.q.val();
        } else {
            self.stage2.d.next = 0.into();
            self.stage2_valid.d.next = false;
            self.stage2_early.d.next = false;
        }
        self.early.next = self.stage1_early.q.val() & (!self.reported.q.val());
        self.reported.d.next = self.stage1_early.q.val() & self.stall.q.val();
        self.at_early.next = self.stage2_early.q.val();
        self.has_early.next = self.stage1_early.q.val() | self.stage2_early.q.val();
        if self.accepted.val().get_bit(5) {
            self.slow.d.next = 0.into();
        }
        self.coming_vi.next = self.stage1_vi.q.val();
        self.stage2_vi.d.next = self.stage1_vi.q.val();
        self.stage2_op.d.next = self.stage1_op.q.val();
        self.at.next = self.stage2.q.val();
        self.vi.next = self.stage2_vi.q.val();
        self.op.next = self.stage2_op.q.val();

        if self.reset.val() {
            self.busy.d.next = 0.into();
            self.slow.d.next = 0.into();
            self.stage0.d.next = 0.into();
            self.stage1.d.next = 0.into();
            self.stage2.d.next = 0.into();
            self.stall.d.next = false;
            self.stage0_valid.d.next = false;
            self.stage1_valid.d.next = false;
            self.stage2_valid.d.next = false;
            self.loaded_now.d.next = 0.into();
            self.stage0_early.d.next = false;
            self.stage1_early.d.next = false;
            self.stage2_early.d.next = false;
            self.reported.d.next = false;
        }
    }
}
