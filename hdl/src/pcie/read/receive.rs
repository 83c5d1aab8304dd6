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
use super::report::Report;
use crate::leaf::{LutRam, Number};
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
    pub soft_reset: Signal<In, Bit>,
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
    pub query_fresh: Signal<In, Bit>,
    pub query_forgotten: Signal<In, Bit>,
    pub commit: Signal<Out, Bit>,
    pub settle: Signal<Out, Bit>,
    pub fail: Signal<Out, Bit>,
    pub commit_tag: Signal<Out, Bits<5>>,
    pub expired: Signal<In, Bit>,
    pub expired_tag: Signal<In, Bits<5>>,
    /// Pulse: a read fails because there is no tag. Never together with a commit, or with the above.
    pub refused: Signal<In, Bit>,
    /// No TLP is under way.
    pub quiet: Signal<Out, Bit>,
    pub write_enable: Signal<Out, Bit>,
    pub write_address: Signal<Out, Bits<11>>,
    pub write_data: Signal<Out, Bits<64>>,
    /// With a write: its read is waited for, and has not failed.
    pub write_fresh: Signal<Out, Bit>,
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
    one_ends: DFF<Bit>,
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
    busy: DFF<Bit>,
    /// What the tag's state says of the read; a time-out or a soft reset comes to it here too.
    fresh: DFF<Bit>,
    forgotten: DFF<Bit>,
    /// The host says that there is no data.
    denied: DFF<Bit>,
    bytes: DFF<Bits<10>>,
    position: DFF<Bits<9>>,
    // After the comparison.
    accept: DFF<Bit>,
    complete: DFF<Bit>,
    taken_bytes: DFF<Bits<10>>,
    left: DFF<Bits<7>>,
    // Of `left`: it is not 0, it is 1.
    some_left: DFF<Bit>,
    one_left: DFF<Bit>,
    at: DFF<Bits<6>>,
    report: Report,
    looks: Signal<Local, Bit>,
    head_tag: Signal<Local, Bits<8>>,
    kind: Signal<Local, Bits<8>>,
    dword_end: Signal<Local, Bits<10>>,
    dwords_needed: Signal<Local, Bits<10>>,
    length_dw: Signal<Local, Bits<10>>,
    part_bytes: Signal<Local, Bits<12>>,
    beat_end: Signal<Local, Bits<10>>,
    length_fits: Signal<Local, Bit>,
    length_all: Signal<Local, Bit>,
    next_bytes: Signal<Local, Bits<10>>,
    next_position: Signal<Local, Bits<9>>,
    payload_ends: Signal<Local, Bit>,
    good_data: Signal<Local, Bit>,
    denies: Signal<Local, Bit>,
    beats: Signal<Local, Bits<7>>,
    with_data_now: Signal<Local, Bit>,
    moved: Signal<Local, Bit>,
    poisoned: Signal<Local, Bit>,
    unexpected: Signal<Local, Bit>,
    bad_tlp: Signal<Local, Bit>,
    read_error: Signal<Local, Bit>,
    bad_dword: Signal<Local, Bits<32>>,
    completion: Number<8, { tlp::COMPLETION as u64 }>,
    completion_data: Number<8, { tlp::COMPLETION_DATA as u64 }>,
    two: Number<7, 2>,
}

impl Logic for Receive {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, opening, opening_tag, opening_word, state, beat_valid, beat);
        dff_setup!(self, clock, beat_last, head0, one_valid, one_data, one_ends, one_payload);
        dff_setup!(self, clock, one_short, check, dword0, status, byte_count, tag, lower, known);
        dff_setup!(self, clock, busy, bytes, position, accept, complete, taken_bytes);
        dff_setup!(self, clock, left, at, fresh, forgotten, denied, some_left, one_left);
        clock!(self, clock, expected, report);

        // Cycle 0.
        self.beat_valid.d.next = self.rc_valid.val();
        self.beat.d.next = self.rc_data.val();
        self.beat_last.d.next = self.rc_last.val();
        self.looks.next = false;
        self.one_payload.d.next = self.state.q.val() == ReceiveState::Data;
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
        self.one_ends.d.next = self.beat_valid.q.val() & self.beat_last.q.val();

        // Cycle 1: look up and copy.
        self.head_tag.next = self.beat.q.val().get_bits::<8>(8);
        self.query_tag.next = self.head_tag.val().get_bits::<5>(0);
        self.expected.read_address.next = self.head_tag.val().get_bits::<5>(0);
        self.kind.next = self.head0.q.val().get_bits::<8>(24);
        self.check.d.next = self.looks.val();
        self.with_data_now.next = self.kind.val() == self.completion_data.val();
        if self.expired.val() & (self.expired_tag.val() == self.tag.q.val().get_bits::<5>(0)) {
            self.fresh.d.next = false;
        }
        if self.looks.val() {
            self.fresh.d.next = self.query_fresh.val()
                & (!(self.expired.val()
                    & (self.expired_tag.val() == self.head_tag.val().get_bits::<5>(0))));
            self.forgotten.d.next = self.query_forgotten.val();
            self.denied.d.next = ((self.kind.val() == self.completion.val())
                | self.with_data_now.val())
                & ((!self.with_data_now.val()) | (self.head0.q.val().get_bits::<3>(45) != 0));
            self.dword0.d.next = self.head0.q.val().get_bits::<32>(0);
            self.status.d.next = self.head0.q.val().get_bits::<3>(45);
            self.byte_count.d.next = self.head0.q.val().get_bits::<12>(32);
            self.tag.d.next = self.head_tag.val();
            self.lower.d.next = self.beat.q.val().get_bits::<7>(0);
            self.known.d.next =
                (self.kind.val() == self.completion.val()) | self.with_data_now.val();
            self.busy.d.next = self.query_busy.val() & (self.head_tag.val().get_bits::<3>(5) == 0);
            self.bytes.d.next = self.expected.read_data.val().get_bits::<10>(0);
            self.position.d.next = self.expected.read_data.val().get_bits::<9>(10);
        }
        if self.soft_reset.val() {
            self.fresh.d.next = false;
            self.forgotten.d.next = true;
        }

        // Cycle 2: compare. Dwords needed for all the rest, bytes in this completion, its beats.
        self.length_dw.next = self.dword0.q.val().get_bits::<10>(0);
        self.dword_end.next =
            self.bytes.q.val() + bit_cast::<10, 2>(self.position.q.val().get_bits::<2>(0)) + 3;
        self.dwords_needed.next = bit_cast::<10, 8>(self.dword_end.val().get_bits::<8>(2));
        self.length_fits.next =
            (self.dwords_needed.val() >= self.length_dw.val()) & (self.length_dw.val() != 0);
        self.length_all.next = self.length_dw.val() == self.dwords_needed.val();
        self.part_bytes.next = (bit_cast::<12, 10>(self.length_dw.val()) << 2)
            - bit_cast::<12, 2>(self.position.q.val().get_bits::<2>(0));
        self.beat_end.next =
            self.length_dw.val() + bit_cast::<10, 1>(self.position.q.val().get_bits::<1>(2)) + 1;
        self.beats.next = self.beat_end.val().get_bits::<7>(1);
        if self.check.q.val() {
            self.accept.d.next = self.busy.q.val()
                & self.known.q.val()
                & (!self.denied.q.val())
                & self.length_fits.val()
                & (self.lower.q.val() == self.position.q.val().get_bits::<7>(0))
                & (self.byte_count.q.val() == bit_cast::<12, 10>(self.bytes.q.val()));
            self.complete.d.next = self.length_all.val();
            self.taken_bytes.d.next = self.part_bytes.val().get_bits::<10>(0);
            self.left.d.next = self.beats.val();
            self.some_left.d.next = self.beats.val().any();
            self.one_left.d.next = self.beats.val() == 1;
            self.at.d.next = self.position.q.val().get_bits::<6>(3);
        }

        // Cycle 2 of a data beat, and of the end of the TLP.
        self.moved.next = self.one_valid.q.val()
            & self.one_payload.q.val()
            & self.accept.q.val()
            & self.some_left.q.val();
        self.write_fresh.next = self.fresh.q.val();
        self.write_enable.next = self.moved.val();
        self.write_address.next = (bit_cast::<11, 5>(self.tag.q.val().get_bits::<5>(0)) << 6)
            | bit_cast::<11, 6>(self.at.q.val());
        self.write_data.next = self.one_data.q.val();
        if self.moved.val() {
            self.left.d.next = self.left.q.val() - 1;
            self.some_left.d.next = !self.one_left.q.val();
            self.one_left.d.next = self.left.q.val() == self.two.val();
            self.at.d.next = self.at.q.val() + 1;
        }
        self.poisoned.next = self.dword0.q.val().get_bit(14);
        self.next_bytes.next = self.bytes.q.val() - self.taken_bytes.q.val();
        self.next_position.next = self.position.q.val() + self.taken_bytes.q.val().get_bits::<9>(0);
        // What was accepted is known, with data, and its header is a cycle back at least.
        self.payload_ends.next =
            self.one_ends.q.val() & self.one_payload.q.val() & self.accept.q.val();
        self.good_data.next = self.payload_ends.val() & self.one_left.q.val();
        self.denies.next = self.one_ends.q.val()
            & (!self.one_short.q.val())
            & self.busy.q.val()
            & self.denied.q.val();
        self.settle.next = self.denies.val() | (self.good_data.val() & self.complete.q.val());
        // Words of a TLP with a wrong number of beats may be with the client already.
        self.fail.next = self.denies.val()
            | (self.payload_ends.val() & ((!self.one_left.q.val()) | self.poisoned.val()));
        self.unexpected.next = false;
        self.bad_tlp.next = false;
        self.read_error.next = false;
        self.bad_dword.next = self.dword0.q.val();
        if self.one_ends.q.val() {
            if self.one_short.q.val() {
                self.bad_tlp.next = true;
                self.bad_dword.next = self.one_data.q.val().get_bits::<32>(0);
            } else if !self.known.q.val() {
                self.bad_tlp.next = true;
            } else if !self.busy.q.val() {
                self.unexpected.next = true;
            } else if self.denied.q.val() {
                self.read_error.next = self.fresh.q.val();
                self.unexpected.next = self.forgotten.q.val();
            } else if !self.one_payload.q.val() {
                self.bad_tlp.next = true;
            } else if !self.accept.q.val() {
                self.unexpected.next = true;
            } else if !self.one_left.q.val() {
                self.bad_tlp.next = true;
            } else {
                self.read_error.next = self.poisoned.val() & self.fresh.q.val();
                self.unexpected.next = self.forgotten.q.val();
            }
        }
        self.write_ends.next =
            self.good_data.val() & self.complete.q.val() & (!self.poisoned.val());
        self.commit.next = self.one_ends.q.val();
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
        self.report.reset.next = self.reset.val();
        self.report.expired.next = self.expired.val();
        self.report.expired_tag.next = self.expired_tag.val();
        self.report.refused.next = self.refused.val();
        self.report.unexpected.next = self.unexpected.val();
        self.report.bad_tlp.next = self.bad_tlp.val();
        self.report.read_error.next = self.read_error.val();
        self.report.tag.next = self.tag.q.val();
        self.report.dword.next = self.bad_dword.val();
        self.report.detail.next = bit_cast::<4, 3>(self.status.q.val())
            | (bit_cast::<4, 1>(self.poisoned.val().into()) << 3);
        self.counts.next = self.report.counts.val();
        self.error_valid.next = self.report.error_valid.val();
        self.error_record.next = self.report.error_record.val();
        if self.reset.val() {
            self.state.d.next = ReceiveState::Head0;
            self.beat_valid.d.next = false;
            self.one_valid.d.next = false;
            self.one_ends.d.next = false;
            self.check.d.next = false;
            self.opening.d.next = false;
        }
    }
}
