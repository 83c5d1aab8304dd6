//! Announces completions and ViErrors to the event block, and drains what a full queue deferred.
//!
//! ```text
//!            entry waits            loaded         result: something to say        outcome 1 (full)
//!   Idle -------------------> Take --------> Taken ------------------------> Call ----------------> Back -> Returned
//!    |^   drain: a VI matches  ^                |  nothing                     | outcome 0, 2                  |
//!    |'------------------------|----------------'------------------------------'-------------------------------'
//!    `-> Scan -----------------'
//! ```
//! Every completion and every stop puts an entry (VI, kind) into a FIFO; the entry is only a hint
//! to look: Take reads the VI's unannounced count (or pending ViError) *and clears it*, Back
//! returns it when the queue was full. So several completions may share a record, none is reported
//! twice, and what a full queue refuses stays in the VI.
//!
//! A drain scans all VIs in rising number for something deferred to its queue; entries of the FIFO
//! are served in between (every 16 VIs). The event block answers `valid` whatever becomes of its
//! own drain call, so there is no circle. `rescan` is a scan of our own, for ViErrors after
//! ERROR_QUEUE was written.
//!
//! [`nic_regs::event::Kind`]: 1 SendComplete, 2 RecvComplete, 3 ViError is `kind` + 1 here.

use crate::ifs::{DrainServer, EventClient};
use crate::leaf::Fifo;
use rust_hdl::prelude::*;

#[derive(LogicState, Copy, Clone, Debug, PartialEq)]
pub enum CompletionWriterState {
    /// Waits for an entry or a drain.
    Idle,
    /// A drain looks for the next VI with something deferred.
    Scan,
    /// Wants the pipeline to take the VI's count.
    Take,
    /// Waits for that operation.
    Taken,
    /// The event block has the record.
    Call,
    /// Wants the pipeline to give the count back.
    Back,
    /// Waits for that operation.
    Returned,
}

#[derive(LogicBlock, Default)]
pub struct CompletionWriter {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub events: EventClient,
    pub drain: DrainServer,
    /// A completion (bit 0 send, 1 receive) or a stop (2) of a VI; the bits are the kinds.
    pub push: Signal<In, Bits<3>>,
    pub push_vi: Signal<In, Bits<10>>,
    /// The FIFO can take what may still be on its way.
    pub room: Signal<Out, Bit>,
    /// Entries that are not served yet.
    pub waiting: Signal<Out, Bits<6>>,
    /// An entry was served.
    pub served: Signal<Out, Bit>,
    /// `vi` is being reported: its counts are on their way.
    pub active: Signal<Out, Bit>,
    // Pipeline operations. op 0 take, 1 give back, 2 scan.
    pub request: Signal<Out, Bit>,
    pub loaded: Signal<In, Bit>,
    pub op: Signal<Out, Bits<2>>,
    pub request_vi: Signal<Out, Bits<10>>,
    pub vi: Signal<Out, Bits<10>>,
    pub kind: Signal<Out, Bits<2>>,
    pub amount: Signal<Out, Bits<32>>,
    /// Stage 2 of an operation of ours, its op and VI.
    pub at: Signal<In, Bit>,
    pub at_op: Signal<In, Bits<2>>,
    pub at_vi: Signal<In, Bits<10>>,
    /// Results of take.
    pub some: Signal<In, Bit>,
    pub queue: Signal<In, Bits<16>>,
    pub word1: Signal<In, Bits<32>>,
    pub word2: Signal<In, Bits<32>>,
    /// Results of scan: bit 0 send, 1 receive, 2 ViError is deferred to the drain's queue.
    pub deferred: Signal<In, Bits<3>>,
    /// Pulse: scan once without a drain; while that scan runs, `rescanning`.
    pub rescan: Signal<In, Bit>,
    pub rescanning: Signal<Out, Bit>,
    /// Pulse: a first try was put off.
    pub put_off: Signal<Out, Bit>,
    entries: Fifo<12, 5>,
    state: DFF<CompletionWriterState>,
    room_now: DFF<Bit>,
    current_vi: DFF<Bits<10>>,
    current_kind: DFF<Bits<2>>,
    /// The VI came from the FIFO, else from a drain.
    from_entry: DFF<Bit>,
    queue_now: DFF<Bits<16>>,
    word1_now: DFF<Bits<32>>,
    word2_now: DFF<Bits<32>>,
    calling: DFF<Bit>,
    draining: DFF<Bit>,
    drained: DFF<Bit>,
    rescan_wanted: DFF<Bit>,
    rescan_runs: DFF<Bit>,
    /// The drain goes before a waiting entry.
    turn: DFF<Bit>,
    scan_at: DFF<Bits<11>>,
    flying: DFF<Bits<2>>,
    /// A scan's operation was asked for a cycle ago.
    asked: DFF<Bit>,
    lifts: Signal<Local, Bit>,
    hit: DFF<Bit>,
    hit_vi: DFF<Bits<10>>,
    hit_kind: DFF<Bits<2>>,
    /// The event block could not take the record.
    event_full: Signal<Local, Bit>,
    scanned: Signal<Local, Bit>,
    scanning: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    give_way: Signal<Local, Bit>,
    push_kind: Signal<Local, Bits<2>>,
    level: Signal<Local, Bits<6>>,
    serving: Signal<Local, Bits<6>>,
}

impl Logic for CompletionWriter {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            state,
            room_now,
            current_vi,
            current_kind,
            from_entry,
            queue_now,
            word1_now,
            word2_now,
            calling,
            draining,
            drained,
            rescan_wanted,
            rescan_runs,
            turn,
            scan_at,
            flying,
            asked,
            hit,
            hit_vi,
            hit_kind
        );
        clock!(self, clock, entries);
        self.entries.reset.next = self.reset.val();
        self.push_kind.next = 0.into();
        if self.push.val().get_bit(2) {
            self.push_kind.next = 2.into();
        } else if self.push.val().get_bit(1) {
            self.push_kind.next = 1.into();
        }
        self.entries.write.next = self.push.val().any();
        self.entries.data_in.next = bit_cast::<12, 10>(self.push_vi.val())
            | (bit_cast::<12, 2>(self.push_kind.val()) << 10);
        self.entries.read.next = false;
        self.level.next = self.entries.level.val().get_bits::<6>(0);
        // Half full: eight operations at most are between this register and the FIFO.
        self.room_now.d.next = !self.level.val().get_bits::<2>(4).any();
        self.room.next = self.room_now.q.val();
        self.active.next = (self.state.q.val() != CompletionWriterState::Idle)
            & (self.state.q.val() != CompletionWriterState::Scan);

        self.scanned.next = self.at.val() & self.at_op.val().get_bit(1);
        self.scanning.next = false;
        self.request.next = false;
        self.op.next = 0.into();
        self.request_vi.next = self.current_vi.q.val();
        self.vi.next = self.current_vi.q.val();
        self.kind.next = self.current_kind.q.val();
        self.amount.next = self.word1_now.q.val();
        self.events.valid.next = self.calling.q.val();
        self.events.queue.next = self.queue_now.q.val();
        self.events.word0.next = (bit_cast::<32, 10>(self.current_vi.q.val()) << 16)
            | (bit_cast::<32, 2>(self.current_kind.q.val()) + 1);
        self.events.word1.next = self.word1_now.q.val();
        self.events.word2.next = self.word2_now.q.val();
        self.events.wide.next = false;
        self.events.message_data.next = 0.into();
        self.event_full.next = self.events.outcome.val().get_bit(0);
        self.drain.done.next = self.drained.q.val();
        self.drained.d.next = false;
        self.finish.next = false;
        self.give_way.next = (!self.entries.empty.val()) & (!self.turn.q.val());

        if self.rescan.val() {
            self.rescan_wanted.d.next = true;
        }
        self.rescanning.next = self.rescan_runs.q.val();
        self.put_off.next = self.calling.q.val()
            & self.events.done.val()
            & self.event_full.val()
            & self.from_entry.q.val();
        if (!self.draining.q.val())
            & (!self.drained.q.val())
            & (self.rescan_wanted.q.val() | self.drain.valid.val())
        {
            self.draining.d.next = true;
            self.rescan_runs.d.next = self.rescan_wanted.q.val();
            self.rescan_wanted.d.next = self.rescan.val();
            self.scan_at.d.next = 0.into();
            self.hit.d.next = false;
        }
        match self.state.q.val() {
            CompletionWriterState::Idle => {
                if (!self.entries.empty.val()) & ((!self.draining.q.val()) | (!self.turn.q.val())) {
                    self.entries.read.next = true;
                    self.current_vi.d.next = self.entries.data_out.val().get_bits::<10>(0);
                    self.current_kind.d.next = self.entries.data_out.val().get_bits::<2>(10);
                    self.from_entry.d.next = true;
                    self.turn.d.next = true;
                    self.state.d.next = CompletionWriterState::Take;
                } else if self.draining.q.val() {
                    self.state.d.next = CompletionWriterState::Scan;
                }
            }
            CompletionWriterState::Scan => {
                self.op.next = 2.into();
                self.request_vi.next = self.scan_at.q.val().get_bits::<10>(0);
                self.scanning.next = (!self.hit.q.val())
                    & (!self.scan_at.q.val().get_bit(10))
                    & (!self.give_way.val())
                    & (self.flying.q.val() != 3);
                self.request.next = self.scanning.val();
                if self.loaded.val() {
                    self.scan_at.d.next = self.scan_at.q.val() + 1;
                    if self.scan_at.q.val().get_bits::<4>(0).all() {
                        self.turn.d.next = false;
                    }
                }
                if self.scanned.val() & (!self.hit.q.val()) & self.deferred.val().any() {
                    self.hit.d.next = true;
                    self.hit_vi.d.next = self.at_vi.val();
                    self.hit_kind.d.next = 2.into();
                    if self.deferred.val().get_bit(0) {
                        self.hit_kind.d.next = 0.into();
                    } else if self.deferred.val().get_bit(1) {
                        self.hit_kind.d.next = 1.into();
                    }
                }
                // What was asked for a cycle ago may be taken over now.
                if (!self.flying.q.val().any()) & (!self.asked.q.val()) {
                    if self.hit.q.val() {
                        // The same VI is looked at again afterwards, for its other kinds.
                        self.hit.d.next = false;
                        self.scan_at.d.next = bit_cast::<11, 10>(self.hit_vi.q.val());
                        self.current_vi.d.next = self.hit_vi.q.val();
                        self.current_kind.d.next = self.hit_kind.q.val();
                        self.from_entry.d.next = false;
                        self.state.d.next = CompletionWriterState::Take;
                    } else if self.scan_at.q.val().get_bit(10) {
                        self.draining.d.next = false;
                        self.drained.d.next = !self.rescan_runs.q.val();
                        self.state.d.next = CompletionWriterState::Idle;
                    } else if self.give_way.val() {
                        self.state.d.next = CompletionWriterState::Idle;
                    }
                }
            }
            CompletionWriterState::Take => {
                self.request.next = true;
                if self.loaded.val() {
                    self.state.d.next = CompletionWriterState::Taken;
                }
            }
            CompletionWriterState::Taken => {
                if self.at.val() {
                    self.queue_now.d.next = self.queue.val();
                    self.word1_now.d.next = self.word1.val();
                    self.word2_now.d.next = self.word2.val();
                    if self.some.val() {
                        self.calling.d.next = true;
                        self.state.d.next = CompletionWriterState::Call;
                    } else {
                        self.finish.next = true;
                    }
                }
            }
            CompletionWriterState::Call => {
                if self.events.done.val() {
                    self.calling.d.next = false;
                    if self.event_full.val() {
                        self.state.d.next = CompletionWriterState::Back;
                    } else {
                        self.finish.next = true;
                    }
                }
            }
            CompletionWriterState::Back => {
                self.op.next = 1.into();
                self.request.next = true;
                if self.loaded.val() {
                    self.state.d.next = CompletionWriterState::Returned;
                }
            }
            CompletionWriterState::Returned => {
                if self.at.val() {
                    self.finish.next = true;
                    if !self.from_entry.q.val() {
                        self.draining.d.next = false;
                        self.drained.d.next = !self.rescan_runs.q.val();
                    }
                }
            }
            _ => {
                self.state.d.next = CompletionWriterState::Idle;
            }
        }
        self.served.next = self.finish.val() & self.from_entry.q.val();
        self.serving.next = 0.into();
        if self.active.val() & self.from_entry.q.val() & (!self.finish.val()) {
            self.serving.next = 1.into();
        }
        self.waiting.next = self.level.val() + self.serving.val();
        if self.finish.val() {
            self.state.d.next = CompletionWriterState::Idle;
        }
        self.asked.d.next = self.scanning.val();
        self.lifts.next = (self.state.q.val() == CompletionWriterState::Scan) & self.loaded.val();
        if self.lifts.val() & (!self.scanned.val()) {
            self.flying.d.next = self.flying.q.val() + 1;
        } else if self.scanned.val() & (!self.lifts.val()) {
            self.flying.d.next = self.flying.q.val() - 1;
        }
        if self.reset.val() {
            self.state.d.next = CompletionWriterState::Idle;
            self.room_now.d.next = false;
            self.calling.d.next = false;
            self.draining.d.next = false;
            self.drained.d.next = false;
            self.rescan_wanted.d.next = false;
            self.rescan_runs.d.next = false;
            self.turn.d.next = false;
            self.flying.d.next = 0.into();
            self.asked.d.next = false;
            self.hit.d.next = false;
            self.from_entry.d.next = false;
        }
    }
}
