//! The state of the 32 read tags: one bit a tag in each of six vectors, and a time-out scanner.
//!
//! ```text
//!         take           sent               settle          over
//! free ---------> held ---------> held, busy, -------> held, -------> free
//!                                    live              done
//!                      expire |                          ^
//!                             `-> held, busy, done ------' settle
//!                                  | over
//!                                  `-> busy ---> free
//!                                        settle
//! ```
//! A read that has timed out is delivered as failed, but its tag stays busy (quarantined).
//! `held`: belongs to a request whose client has not had its data. `busy`: the host has not sent a
//! completion. `live`: it is still waited for. `done`: may be delivered. `failed`: will be
//! delivered with an error. `forgotten`: of a request from before a soft reset. A tag is free
//! if it is neither held nor busy, so a late completion can never meet a new request. Tags are
//! used in turn; finding the next one takes two cycles.
//!
//! A tag in quarantine for 256 times READ_TIMEOUT, and 2^20 cycles, since its request left is given
//! up: its completion will not come. Until then, while all tags are in quarantine (`exhausted`),
//! reads fail at once.
//!
//! The scanner looks at one tag a cycle: a time-out is noticed up to 35 cycles late, and one more for
//! each time-out before it that waits for a completion to end.
use crate::leaf::{FirstOne, LutRam, Number};
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum TagSearch {
    /// Registers the free tags, those above the last one if there are any.
    Find,
    /// Registers the first of them.
    Pick,
    /// Offers it.
    Offer,
}

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct Tags {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub soft_reset: Signal<In, Bit>,
    pub read_timeout: Signal<In, Bits<32>>,
    /// The next tag to use, if `tag_valid`; `tag_take` uses it.
    pub tag_valid: Signal<Out, Bit>,
    pub tag: Signal<Out, Bits<5>>,
    pub tag_take: Signal<In, Bit>,
    /// Pulse: the request has left.
    pub sent: Signal<In, Bit>,
    pub sent_tag: Signal<In, Bits<5>>,
    /// Combinational look-up.
    pub query_tag: Signal<In, Bits<5>>,
    pub query_busy: Signal<Out, Bit>,
    /// Waited for, and not failed yet.
    pub query_fresh: Signal<Out, Bit>,
    pub query_forgotten: Signal<Out, Bit>,
    /// A completion ends in this cycle. With it, `settle`: nothing more is missing; `fail`: the data is
    /// bad.
    pub commit: Signal<In, Bit>,
    pub settle: Signal<In, Bit>,
    pub fail: Signal<In, Bit>,
    pub commit_tag: Signal<In, Bits<5>>,
    /// Combinational look-ups for delivery, one a client.
    pub ready_tag0: Signal<In, Bits<5>>,
    pub ready_tag1: Signal<In, Bits<5>>,
    pub ready_tag2: Signal<In, Bits<5>>,
    pub ready_tag3: Signal<In, Bits<5>>,
    pub ready_done: Signal<Out, Bits<4>>,
    pub ready_failed: Signal<Out, Bits<4>>,
    /// Pulse: the client has had its data.
    pub over: Signal<In, Bit>,
    pub over_tag: Signal<In, Bits<5>>,
    /// Pulse: a read timed out. Never together with `commit`.
    pub expired: Signal<Out, Bit>,
    pub expired_tag: Signal<Out, Bits<5>>,
    /// No completion is on its way in: a tag may be given up.
    pub quiet: Signal<In, Bit>,
    /// Every tag is in quarantine.
    pub exhausted: Signal<Out, Bit>,
    first: FirstOne<32>,
    starts: LutRam<32, 5>,
    held: DFF<Bits<32>>,
    busy: DFF<Bits<32>>,
    live: DFF<Bits<32>>,
    done: DFF<Bits<32>>,
    failed: DFF<Bits<32>>,
    forgotten: DFF<Bits<32>>,
    next_tag: DFF<Bits<5>>,
    search: DFF<TagSearch>,
    candidates: DFF<Bits<32>>,
    // Scanner: cycle 0 `scan`, cycle 1 `age`, cycle 2 `old`.
    now: DFF<Bits<32>>,
    scan: DFF<Bits<5>>,
    age: DFF<Bits<32>>,
    age_tag: DFF<Bits<5>>,
    age_live: DFF<Bit>,
    old: DFF<Bit>,
    old_tag: DFF<Bits<5>>,
    age_missing: DFF<Bit>,
    spent: DFF<Bit>,
    quarantine: DFF<Bits<32>>,
    endless: DFF<Bit>,
    all_missing: DFF<Bit>,
    stays: Signal<Local, Bit>,
    settles_it: Signal<Local, Bit>,
    /// The tag whose age is known is waited for.
    is_live: Signal<Local, Bit>,
    gives_up: Signal<Local, Bit>,
    give_up_mask: Signal<Local, Bits<32>>,
    shortest: Number<32, 0xf_ffff>,
    free: Signal<Local, Bits<32>>,
    above: Signal<Local, Bits<32>>,
    later: Signal<Local, Bits<32>>,
    grab_mask: Signal<Local, Bits<32>>,
    sent_mask: Signal<Local, Bits<32>>,
    settle_mask: Signal<Local, Bits<32>>,
    fail_mask: Signal<Local, Bits<32>>,
    deliver_mask: Signal<Local, Bits<32>>,
    expire_mask: Signal<Local, Bits<32>>,
    expire: Signal<Local, Bit>,
    not_settled: Signal<Local, Bits<32>>,
    not_expired: Signal<Local, Bits<32>>,
    not_delivered: Signal<Local, Bits<32>>,
    busy_after: Signal<Local, Bits<32>>,
    one: Number<32, 1>,
    /// Shifted by n: ones above bit n.
    two: Number<32, 0xffff_fffe>,
}

impl Logic for Tags {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, held, busy, live, done, failed, forgotten, next_tag, search, candidates,
            now, scan, age, age_tag, age_live, old, old_tag
        );
        dff_setup!(self, clock, age_missing, spent, quarantine, endless, all_missing);
        clock!(self, clock, starts);

        // The next tag, found ahead of its use: the first free one above the last, or from 0 on.
        self.free.next = !(self.held.q.val() | self.busy.q.val());
        self.above.next = self.two.val() << self.next_tag.q.val();
        self.later.next = self.free.val() & self.above.val();
        self.candidates.d.next = self.free.val();
        if self.later.val().any() {
            self.candidates.d.next = self.later.val();
        }
        self.first.value.next = self.candidates.q.val();
        self.tag_valid.next = false;
        self.tag.next = self.next_tag.q.val();
        self.grab_mask.next = 0.into();
        match self.search.q.val() {
            TagSearch::Find => {
                self.search.d.next = TagSearch::Pick;
            }
            TagSearch::Pick => {
                self.next_tag.d.next = self.first.index.val().get_bits::<5>(0);
                self.search.d.next = TagSearch::Find;
                if self.first.found.val() {
                    self.search.d.next = TagSearch::Offer;
                }
            }
            TagSearch::Offer => {
                self.tag_valid.next = true;
                if self.tag_take.val() {
                    self.grab_mask.next = self.one.val() << self.next_tag.q.val();
                    self.search.d.next = TagSearch::Find;
                }
            }
            _ => {
                self.search.d.next = TagSearch::Find;
            }
        }

        // Look-ups.
        self.query_busy.next = self.busy.q.val().get_bit(self.query_tag.val().index());
        self.query_fresh.next = self.live.q.val().get_bit(self.query_tag.val().index())
            & (!self.failed.q.val().get_bit(self.query_tag.val().index()));
        self.query_forgotten.next = self.forgotten.q.val().get_bit(self.query_tag.val().index());
        self.ready_done.next =
            bit_cast::<4, 1>(self.done.q.val().get_bit(self.ready_tag0.val().index()).into())
                | (bit_cast::<4, 1>(
                    self.done.q.val().get_bit(self.ready_tag1.val().index()).into(),
                ) << 1)
                | (bit_cast::<4, 1>(
                    self.done.q.val().get_bit(self.ready_tag2.val().index()).into(),
                ) << 2)
                | (bit_cast::<4, 1>(
                    self.done.q.val().get_bit(self.ready_tag3.val().index()).into(),
                ) << 3);
        self.ready_failed.next =
            bit_cast::<4, 1>(self.failed.q.val().get_bit(self.ready_tag0.val().index()).into())
                | (bit_cast::<4, 1>(
                    self.failed.q.val().get_bit(self.ready_tag1.val().index()).into(),
                ) << 1)
                | (bit_cast::<4, 1>(
                    self.failed.q.val().get_bit(self.ready_tag2.val().index()).into(),
                ) << 2)
                | (bit_cast::<4, 1>(
                    self.failed.q.val().get_bit(self.ready_tag3.val().index()).into(),
                ) << 3);

        // Time-outs.
        self.now.d.next = self.now.q.val() + 1;
        // Where a completion ends, a time-out waits a cycle, and the scanner with it.
        self.stays.next = self.old.q.val() & self.commit.val();
        if !self.stays.val() {
            self.scan.d.next = self.scan.q.val() + 1;
        }
        self.starts.write_address.next = self.sent_tag.val();
        self.starts.write_data.next = self.now.q.val();
        self.starts.write_enable.next = self.sent.val();
        self.starts.read_address.next = self.scan.q.val();
        // It may have been settled since, or be just now.
        self.settles_it.next = self.settle.val() & (self.commit_tag.val() == self.age_tag.q.val());
        self.is_live.next = self.live.q.val().get_bit(self.age_tag.q.val().index());
        if self.stays.val() {
            self.old.d.next =
                !(self.settle.val() & (self.commit_tag.val() == self.old_tag.q.val()));
            // The age is not that of the tag's next request.
            self.age_live.d.next = self.age_live.q.val() & self.is_live.val();
        } else {
            self.age.d.next = self.now.q.val() - self.starts.read_data.val();
            self.age_tag.d.next = self.scan.q.val();
            self.age_live.d.next = self.live.q.val().get_bit(self.scan.q.val().index());
            // A limit of half of the clock's range or more is never missed, since the scanner comes by.
            self.old.d.next = self.age_live.q.val()
                & self.is_live.val()
                & (!self.settles_it.val())
                & (self.age.q.val().get_bit(31) | (self.age.q.val() >= self.read_timeout.val()));
            self.old_tag.d.next = self.age_tag.q.val();
        }
        self.expire.next = self.old.q.val() & (!self.commit.val());
        self.expired.next = self.expire.val();
        self.expired_tag.next = self.old_tag.q.val();

        // The end of a quarantine: never, if that is half of the clock's range or more.
        self.quarantine.d.next = (self.read_timeout.val() << 8) | self.shortest.val();
        self.endless.d.next = self.read_timeout.val().get_bits::<9>(23).any();
        if !self.stays.val() {
            self.age_missing.d.next = self.busy.q.val().get_bit(self.scan.q.val().index())
                & (!self.live.q.val().get_bit(self.scan.q.val().index()));
        }
        self.spent.d.next = self.age_missing.q.val()
            & self.busy.q.val().get_bit(self.age_tag.q.val().index())
            & (!self.is_live.val())
            & (!self.stays.val())
            & (!self.endless.q.val())
            & (self.age.q.val() >= self.quarantine.q.val());
        self.gives_up.next = self.spent.q.val() & self.quiet.val() & (!self.sent.val());
        self.give_up_mask.next = 0.into();
        if self.gives_up.val() {
            self.give_up_mask.next = self.one.val() << self.old_tag.q.val();
        }
        self.all_missing.d.next = (!self.free.val().any()) & (!self.held.q.val().any());
        self.exhausted.next = self.all_missing.q.val();

        // The vectors.
        self.sent_mask.next = 0.into();
        self.settle_mask.next = 0.into();
        self.fail_mask.next = 0.into();
        self.deliver_mask.next = 0.into();
        self.expire_mask.next = 0.into();
        if self.sent.val() {
            self.sent_mask.next = self.one.val() << self.sent_tag.val();
        }
        if self.settle.val() {
            self.settle_mask.next = self.one.val() << self.commit_tag.val();
        }
        if self.fail.val() {
            self.fail_mask.next = self.one.val() << self.commit_tag.val();
        }
        if self.over.val() {
            self.deliver_mask.next = self.one.val() << self.over_tag.val();
        }
        if self.expire.val() {
            self.expire_mask.next = self.one.val() << self.old_tag.q.val();
        }
        self.not_settled.next = !(self.settle_mask.val() | self.give_up_mask.val());
        self.not_expired.next = !self.expire_mask.val();
        self.not_delivered.next = !self.deliver_mask.val();
        self.busy_after.next = (self.busy.q.val() | self.sent_mask.val()) & self.not_settled.val();
        self.held.d.next = (self.held.q.val() | self.grab_mask.val()) & self.not_delivered.val();
        self.busy.d.next = self.busy_after.val();
        self.live.d.next = (self.live.q.val() | self.sent_mask.val())
            & self.not_settled.val()
            & self.not_expired.val();
        self.done.d.next = (self.done.q.val()
            | (self.settle_mask.val() & self.live.q.val())
            | self.expire_mask.val())
            & self.not_delivered.val();
        self.failed.d.next = (self.failed.q.val()
            | (self.fail_mask.val() & self.live.q.val())
            | self.expire_mask.val())
            & self.not_delivered.val();
        self.forgotten.d.next = self.forgotten.q.val() & self.not_settled.val();
        if self.soft_reset.val() | self.reset.val() {
            self.held.d.next = 0.into();
            self.live.d.next = 0.into();
            self.done.d.next = 0.into();
            self.failed.d.next = 0.into();
            self.forgotten.d.next = self.busy_after.val();
            self.search.d.next = TagSearch::Find;
            self.old.d.next = false;
            self.age_missing.d.next = false;
            self.spent.d.next = false;
        }
        if self.reset.val() {
            self.busy.d.next = 0.into();
            self.forgotten.d.next = 0.into();
        }
    }
}
