//! Takes completions off `rc`, checks them against what their tag expects, and puts their data into
//! the tag's slot.
//!
//! ```text
//! cycle 0  beat registered
//! cycle 1  header beat 0 kept; (beat 1) look up what the tag expects, header fields copied
//! cycle 2  compare lower address, byte count and length
//! cycle 2  (data) the beat, two registers late, goes to the slot; on the last beat the tag's state
//! changes (`commit`)
//! ```
//! So a header's comparison is over when the first data beat behind it comes to the slot.
//! Nothing here waits: `rc` cannot be held off. The beats of a TLP are followed to its end even
//! during a reset, so that the next TLP is found.
use crate::leaf::{LutRam, Number};
use nic_regs::counter::{Counter, ErrorCode};
use nic_regs::tlp;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum ReceiveState {
    /// Waits for header beat 0.
    Head0,
    /// Waits for header beat 1.
    Head1,
    /// Data beats.
    Data,
}

/// See the module's text.
#[derive(LogicBlock, Default)]
pub struct Receive {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub rc_valid: Signal<In, Bit>,
    pub rc_data: Signal<In, Bits<64>>,
    pub rc_last: Signal<In, Bit>,
    /// Pulse, every second cycle at most: this tag expects `open_bytes` from `open_position`
    /// (address modulo 512) on.
    pub open: Signal<In, Bit>,
    pub open_tag: Signal<In, Bits<5>>,
    pub open_bytes: Signal<In, Bits<10>>,
    pub open_position: Signal<In, Bits<9>>,
    pub query_tag: Signal<Out, Bits<5>>,
    pub query_busy: Signal<In, Bit>,
    pub commit: Signal<Out, Bit>,
    pub settle: Signal<Out, Bit>,
    pub fail: Signal<Out, Bit>,
    pub commit_tag: Signal<Out, Bits<5>>,
    pub commit_fresh: Signal<In, Bit>,
    pub commit_forgotten: Signal<In, Bit>,
    pub expired: Signal<In, Bit>,
    pub expired_tag: Signal<In, Bits<5>>,
    /// Pulse: a read fails because there is no tag. Never together with a commit, or with the above.
    pub refused: Signal<In, Bit>,
    /// No TLP is under way.
    pub quiet: Signal<Out, Bit>,
    pub write_enable: Signal<Out, Bit>,
    pub write_address: Signal<Out, Bits<11>>,
    pub write_data: Signal<Out, Bits<64>>,
    /// With a write: it is the last word of its read, and all of the read is good.
    pub write_ends: Signal<Out, Bit>,
    pub counts: Signal<Out, Bits<64>>,
    pub error_valid: Signal<Out, Bit>,
    pub error_record: Signal<Out, Bits<64>>,
    /// What a tag expects: bytes 9:0, position 18:10.
    expected: LutRam<19, 5>,
    /// A new request that is to go there: a commit goes before it.
    opening: DFF<Bit>,
    opening_tag: DFF<Bits<5>>,
    opening_word: DFF<Bits<19>>,
    state: DFF<ReceiveState>,
    // Cycle 0.
    beat_valid: DFF<Bit>,
    beat: DFF<Bits<64>>,
    beat_last: DFF<Bit>,
    head0: DFF<Bits<64>>,
    // The delayed beat.
    one_valid: DFF<Bit>,
    one_data: DFF<Bits<64>>,
    one_last: DFF<Bit>,
    one_payload: DFF<Bit>,
    one_short: DFF<Bit>,
    // Copied after the look-up, stable until the TLP's commit.
    check: DFF<Bit>,
    dword0: DFF<Bits<32>>,
    status: DFF<Bits<3>>,
    byte_count: DFF<Bits<12>>,
    tag: DFF<Bits<8>>,
    lower: DFF<Bits<7>>,
    known: DFF<Bit>,
    with_data: DFF<Bit>,
    busy: DFF<Bit>,
    bytes: DFF<Bits<10>>,
    position: DFF<Bits<9>>,
    // After the comparison.
    accept: DFF<Bit>,
    complete: DFF<Bit>,
    taken_bytes: DFF<Bits<10>>,
    left: DFF<Bits<7>>,
    at: DFF<Bits<6>>,
    counts_out: DFF<Bits<64>>,
    error_out: DFF<Bit>,
    record_out: DFF<Bits<64>>,
    looks: Signal<Local, Bit>,
    head_tag: Signal<Local, Bits<8>>,
    kind: Signal<Local, Bits<8>>,
    tag_in_range: Signal<Local, Bit>,
    dword_end: Signal<Local, Bits<10>>,
    dwords_needed: Signal<Local, Bits<10>>,
    length_dw: Signal<Local, Bits<10>>,
    all_bytes: Signal<Local, Bits<10>>,
    part_bytes: Signal<Local, Bits<12>>,
    beat_end: Signal<Local, Bits<10>>,
    length_fits: Signal<Local, Bit>,
    length_all: Signal<Local, Bit>,
    next_bytes: Signal<Local, Bits<10>>,
    next_position: Signal<Local, Bits<9>>,
    commit_now: Signal<Local, Bit>,
    good_data: Signal<Local, Bit>,
    moved: Signal<Local, Bit>,
    poisoned: Signal<Local, Bit>,
    unexpected: Signal<Local, Bit>,
    bad_tlp: Signal<Local, Bit>,
    read_error: Signal<Local, Bit>,
    error_detail: Signal<Local, Bits<4>>,
    bad_dword: Signal<Local, Bits<32>>,
    completion: Number<8, { tlp::COMPLETION as u64 }>,
    completion_data: Number<8, { tlp::COMPLETION_DATA as u64 }>,
    one: Number<7, 1>,
    no_tag: Number<64, { 0xff << 16 }>,
    count_timeout: Number<64, { 1 << Counter::ReadTimeouts as u64 }>,
    count_error: Number<64, { 1 << Counter::ReadErrors as u64 }>,
    count_unexpected: Number<64, { 1 << Counter::UnexpectedCompletions as u64 }>,
    count_bad: Number<64, { 1 << Counter::BadTlp as u64 }>,
    code_timeout: Number<64, { ErrorCode::ReadTimeout as u64 }>,
    code_error: Number<64, { ErrorCode::ReadError as u64 }>,
    code_unexpected: Number<64, { ErrorCode::UnexpectedCompletion as u64 }>,
    code_bad: Number<64, { ErrorCode::BadTlp as u64 }>,
}

impl Logic for Receive {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            opening,
            opening_tag,
            opening_word,
            state,
            beat_valid,
            beat,
            beat_last,
            head0,
            one_valid,
            one_data,
            one_last,
            one_payload,
            one_short,
            check,
            dword0,
            status,
            byte_count,
            tag,
            lower,
            known,
            with_data,
            busy,
            bytes,
            position,
            accept,
            complete,
            taken_bytes,
            left,
            at,
            counts_out,
            error_out,
            record_out
        );
        clock!(self, clock, expected);

        // Cycle 0.
        self.beat_valid.d.next = self.rc_valid.val();
        self.beat.d.next = self.rc_data.val();
        self.beat_last.d.next = self.rc_last.val();
        self.looks.next = false;
        self.one_payload.d.next = false;
        self.one_short.d.next = false;
        match self.state.q.val() {
            ReceiveState::Head0 => {
                self.one_short.d.next = self.beat_last.q.val();
                if self.beat_valid.q.val() {
                    self.head0.d.next = self.beat.q.val();
                    if !self.beat_last.q.val() {
                        self.state.d.next = ReceiveState::Head1;
                    }
                }
            }
            ReceiveState::Head1 => {
                if self.beat_valid.q.val() {
                    self.looks.next = true;
                    self.state.d.next = ReceiveState::Data;
                    if self.beat_last.q.val() {
                        self.state.d.next = ReceiveState::Head0;
                    }
                }
            }
            ReceiveState::Data => {
                self.one_payload.d.next = true;
                if self.beat_valid.q.val() & self.beat_last.q.val() {
                    self.state.d.next = ReceiveState::Head0;
                }
            }
            _ => {
                self.state.d.next = ReceiveState::Head0;
            }
        }
        self.quiet.next = (self.state.q.val() == ReceiveState::Head0)
            & (!self.beat_valid.q.val())
            & (!self.one_valid.q.val());
        self.one_valid.d.next = self.beat_valid.q.val();
        self.one_data.d.next = self.beat.q.val();
        self.one_last.d.next = self.beat_last.q.val();

        // Cycle 1: look up and copy.
        self.head_tag.next = self.beat.q.val().get_bits::<8>(8);
        self.query_tag.next = self.head_tag.val().get_bits::<5>(0);
        self.expected.read_address.next = self.head_tag.val().get_bits::<5>(0);
        self.kind.next = self.head0.q.val().get_bits::<8>(24);
        self.tag_in_range.next = self.head_tag.val().get_bits::<3>(5) == 0;
        self.check.d.next = self.looks.val();
        if self.looks.val() {
            self.dword0.d.next = self.head0.q.val().get_bits::<32>(0);
            self.status.d.next = self.head0.q.val().get_bits::<3>(45);
            self.byte_count.d.next = self.head0.q.val().get_bits::<12>(32);
            self.tag.d.next = self.head_tag.val();
            self.lower.d.next = self.beat.q.val().get_bits::<7>(0);
            self.known.d.next = (self.kind.val() == self.completion.val())
                | (self.kind.val() == self.completion_data.val());
            self.with_data.d.next = self.kind.val() == self.completion_data.val();
            self.busy.d.next = self.query_busy.val() & self.tag_in_range.val();
            self.bytes.d.next = self.expected.read_data.val().get_bits::<10>(0);
            self.position.d.next = self.expected.read_data.val().get_bits::<9>(10);
        }

        // Cycle 2: compare. Dwords needed for all the rest, bytes in this completion, its beats.
        self.length_dw.next = self.dword0.q.val().get_bits::<10>(0);
        self.dword_end.next =
            self.bytes.q.val() + bit_cast::<10, 2>(self.position.q.val().get_bits::<2>(0)) + 3;
        self.dwords_needed.next = bit_cast::<10, 8>(self.dword_end.val().get_bits::<8>(2));
        self.length_fits.next =
            (self.length_dw.val() <= self.dwords_needed.val()) & (self.length_dw.val() != 0);
        self.length_all.next = self.length_dw.val() == self.dwords_needed.val();
        self.part_bytes.next = (bit_cast::<12, 10>(self.length_dw.val()) << 2)
            - bit_cast::<12, 2>(self.position.q.val().get_bits::<2>(0));
        self.all_bytes.next = self.part_bytes.val().get_bits::<10>(0);
        self.beat_end.next =
            self.length_dw.val() + bit_cast::<10, 1>(self.position.q.val().get_bits::<1>(2)) + 1;
        if self.check.q.val() {
            self.accept.d.next = self.busy.q.val()
                & self.with_data.q.val()
                & (self.status.q.val() == 0)
                & self.length_fits.val()
                & (self.lower.q.val() == self.position.q.val().get_bits::<7>(0))
                & (self.byte_count.q.val() == bit_cast::<12, 10>(self.bytes.q.val()));
            self.complete.d.next = self.length_all.val();
            self.taken_bytes.d.next = self.all_bytes.val();
            self.left.d.next = self.beat_end.val().get_bits::<7>(1);
            self.at.d.next = self.position.q.val().get_bits::<6>(3);
        }

        // Cycle 2 of a data beat, and of the end of the TLP.
        self.moved.next = self.one_valid.q.val()
            & self.one_payload.q.val()
            & self.accept.q.val()
            & (self.left.q.val() != 0);
        self.write_enable.next = self.moved.val();
        self.write_address.next = (bit_cast::<11, 5>(self.tag.q.val().get_bits::<5>(0)) << 6)
            | bit_cast::<11, 6>(self.at.q.val());
        self.write_data.next = self.one_data.q.val();
        if self.moved.val() {
            self.left.d.next = self.left.q.val() - 1;
            self.at.d.next = self.at.q.val() + 1;
        }
        self.commit_now.next = self.one_valid.q.val() & self.one_last.q.val();
        self.poisoned.next = self.dword0.q.val().get_bit(14);
        self.next_bytes.next = self.bytes.q.val() - self.taken_bytes.q.val();
        self.next_position.next = self.position.q.val() + self.taken_bytes.q.val().get_bits::<9>(0);
        self.settle.next = false;
        self.fail.next = false;
        self.good_data.next = false;
        self.unexpected.next = false;
        self.bad_tlp.next = false;
        self.read_error.next = false;
        self.bad_dword.next = self.dword0.q.val();
        self.error_detail.next = bit_cast::<4, 3>(self.status.q.val())
            | (bit_cast::<4, 1>(self.poisoned.val().into()) << 3);
        if self.commit_now.val() {
            if self.one_short.q.val() {
                self.bad_tlp.next = true;
                self.bad_dword.next = self.one_data.q.val().get_bits::<32>(0);
            } else if !self.known.q.val() {
                self.bad_tlp.next = true;
            } else if !self.busy.q.val() {
                self.unexpected.next = true;
            } else if (!self.with_data.q.val()) | (self.status.q.val() != 0) {
                self.settle.next = true;
                self.fail.next = true;
                self.read_error.next = self.commit_fresh.val();
                self.unexpected.next = self.commit_forgotten.val();
            } else if !self.one_payload.q.val() {
                self.bad_tlp.next = true;
            } else if !self.accept.q.val() {
                self.unexpected.next = true;
            } else if self.left.q.val() != self.one.val() {
                // Words of it may be with the client already.
                self.bad_tlp.next = true;
                self.fail.next = true;
            } else {
                self.good_data.next = true;
                self.settle.next = self.complete.q.val();
                self.fail.next = self.poisoned.val();
                self.read_error.next = self.poisoned.val() & self.commit_fresh.val();
                self.unexpected.next = self.commit_forgotten.val();
            }
        }
        self.write_ends.next =
            self.good_data.val() & self.complete.q.val() & (!self.poisoned.val());
        self.commit.next = self.commit_now.val();
        self.commit_tag.next = self.tag.q.val().get_bits::<5>(0);

        // What the tag expects. Commits with data are three cycles apart.
        self.expected.write_enable.next = self.good_data.val() | self.opening.q.val();
        self.expected.write_address.next = self.opening_tag.q.val();
        self.expected.write_data.next = self.opening_word.q.val();
        self.opening.d.next = self.open.val() | (self.opening.q.val() & self.good_data.val());
        if self.open.val() {
            self.opening_tag.d.next = self.open_tag.val();
            self.opening_word.d.next = bit_cast::<19, 10>(self.open_bytes.val())
                | (bit_cast::<19, 9>(self.open_position.val()) << 10);
        }
        if self.good_data.val() {
            self.expected.write_address.next = self.tag.q.val().get_bits::<5>(0);
            self.expected.write_data.next = bit_cast::<19, 10>(self.next_bytes.val())
                | (bit_cast::<19, 9>(self.next_position.val()) << 10);
        }

        // Counters and log.
        self.counts.next = self.counts_out.q.val();
        self.error_valid.next = self.error_out.q.val();
        self.error_record.next = self.record_out.q.val();
        self.counts_out.d.next = 0.into();
        self.error_out.d.next = self.unexpected.val()
            | self.bad_tlp.val()
            | self.read_error.val()
            | self.expired.val()
            | self.refused.val();
        self.record_out.d.next =
            self.code_timeout.val() | (bit_cast::<64, 5>(self.expired_tag.val()) << 16);
        if self.expired.val() {
            self.counts_out.d.next = self.count_timeout.val();
        } else if self.refused.val() {
            self.counts_out.d.next = self.count_timeout.val();
            self.record_out.d.next = self.code_timeout.val() | self.no_tag.val();
        } else if self.unexpected.val() {
            self.counts_out.d.next = self.count_unexpected.val();
            self.record_out.d.next =
                self.code_unexpected.val() | (bit_cast::<64, 8>(self.tag.q.val()) << 16);
        } else if self.bad_tlp.val() {
            self.counts_out.d.next = self.count_bad.val();
            self.record_out.d.next =
                self.code_bad.val() | (bit_cast::<64, 32>(self.bad_dword.val()) << 32);
        } else if self.read_error.val() {
            self.counts_out.d.next = self.count_error.val();
            self.record_out.d.next = self.code_error.val()
                | (bit_cast::<64, 8>(self.tag.q.val()) << 16)
                | (bit_cast::<64, 4>(self.error_detail.val()) << 32);
        }
        if self.reset.val() {
            self.state.d.next = ReceiveState::Head0;
            self.beat_valid.d.next = false;
            self.one_valid.d.next = false;
            self.check.d.next = false;
            self.opening.d.next = false;
            self.error_out.d.next = false;
            self.counts_out.d.next = 0.into();
        }
    }
}
