//! The order of what a device writes to its host, as the contract has it (4.3, 5.2, 8).
//!
//! ```text
//!   writes of a phase ──► those of each work queue, in order: compared with the other device's
//!                     └─► events and interrupts: each reports what is there, or the device is wrong
//! ```
//! Bytes that follow each other in memory are one write, however the device cuts them; their exact range
//! counts, which is what byte enables say.

use super::plan::{DATA_BYTES, Plan, SLOT_BYTES, SLOTS};
use super::regions::{area, slot};
use crate::testbench::host::{Host, Write};
use crate::testbench::{EVENT_OFFSET, FREE_OFFSET, RING_BYTES, msi_data};
use nic_regs::doorbell::Queue;
use nic_regs::event::{EVENT_BYTES, Event, Kind, WIDE_ENTRY_BYTES};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

/// What is known of a node from the start of the run on.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Completions of each work queue: whose status was written, and that an event has reported.
    done: BTreeMap<(u16, u8), [u32; 2]>,
    /// Records in each event ring.
    records: [u16; 4],
}

/// Where a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Data,
    /// Of a descriptor.
    Status(usize),
}

/// Writes that follow each other in memory: where, and a sum of their bytes.
type Joined = (Place, Range<usize>, u64);

impl Order {
    /// Takes what a node has written in a phase: the writes of each work queue, for a comparison.
    ///
    /// # Errors
    /// What the device has reported too early.
    pub(super) fn take(
        &mut self,
        (plan, phase, node): (&Plan, usize, usize),
        host: &mut Host,
        consumed: [u16; 4],
    ) -> Result<Vec<(String, String)>, String> {
        let mut writes: BTreeMap<(usize, u8), Vec<Joined>> = BTreeMap::new();
        for write in host.take_writes() {
            match write {
                Write::Interrupt(vector, data) => {
                    if u32::try_from(vector).is_ok_and(|vector| data != msi_data(vector)) {
                        return Err(format!("interrupt {vector} has data {data:#x}"));
                    }
                    let ring = self.records.get(vector).zip(consumed.get(vector));
                    if ring.is_none_or(|(records, consumed)| records == consumed) {
                        return Err(format!("interrupt {vector} without a record"));
                    }
                }
                Write::Memory(range, bytes) if range.start >= FREE_OFFSET => {
                    let Some((pair, queue, place)) = place(plan, phase, node, range.start) else {
                        continue;
                    };
                    if let Place::Status(_) = place {
                        let done = self.done.entry((plan.pairs[pair].vi[node], queue as u8));
                        done.or_default()[0] += 1;
                    }
                    let stream = writes.entry((pair, queue as u8)).or_default();
                    let sum = |sum, bytes: &[u8]| {
                        bytes.iter().fold(sum, |sum: u64, &byte| {
                            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
                        })
                    };
                    match stream.last_mut() {
                        Some((Place::Data, last, before))
                            if place == Place::Data && last.end == range.start =>
                        {
                            last.end = range.end;
                            *before = sum(*before, &bytes);
                        }
                        _ => stream.push((place, range, sum(0xcbf2_9ce4_8422_2325, &bytes))),
                    }
                }
                Write::Memory(range, bytes) if range.start >= EVENT_OFFSET => {
                    self.record((range.start - EVENT_OFFSET) / RING_BYTES, range.end, &bytes)?;
                }
                Write::Memory(..) => {}
            }
        }
        let shown = writes.into_iter().flat_map(|((pair, queue), writes)| {
            let base = area(pair);
            writes.into_iter().enumerate().map(move |(number, (place, range, sum))| {
                let what = format!(
                    "phase {phase} node {node} pair {pair} {} write {number}",
                    if queue == Queue::Send as u8 { "Send" } else { "Recv" }
                );
                let mut value = match place {
                    Place::Data => format!("data {:#x}", range.start - base),
                    Place::Status(index) => format!("status {index} {:#x}", range.start - base),
                };
                let _ = write!(value, " + {} {sum:016x}", range.len());
                (what, value)
            })
        });
        Ok(shown.collect())
    }

    /// The device has forgotten its rings.
    pub(super) const fn forget_records(&mut self) {
        self.records = [0; 4];
    }

    /// A record of a ring: no more completions than there are statuses.
    fn record(&mut self, ring: usize, end: usize, bytes: &[u8]) -> Result<(), String> {
        let entry = if ring == MESSAGES { WIDE_ENTRY_BYTES } else { EVENT_BYTES };
        let Some(records) = self.records.get_mut(ring) else { return Ok(()) };
        if !(end as u64).is_multiple_of(entry) {
            return Ok(());
        }
        *records = records.wrapping_add(1);
        let Some(bytes) = bytes.last_chunk::<EVENT_RECORD>() else {
            return Err(format!("a record of ring {ring} has {} bytes", bytes.len()));
        };
        let words = bytes.as_chunks::<4>().0;
        let words = core::array::from_fn(|i| u32::from_le_bytes(words[i]));
        let event = Event::from_words(words);
        let queue = match event.kind {
            kind if kind == Kind::SendComplete as u8 => Queue::Send,
            kind if kind == Kind::RecvComplete as u8 => Queue::Recv,
            _ => return Ok(()),
        };
        let done = self.done.entry((event.index, queue as u8)).or_default();
        done[1] += event.word1;
        let [written, reported] = *done;
        if reported > written {
            return Err(format!(
                "an event reports {reported} completions of VI {} {queue:?}, and {written} statuses are written",
                event.index
            ));
        }
        Ok(())
    }
}

/// The ring of messages, whose entries are wide.
const MESSAGES: usize = 3;
/// Bytes of a record.
#[expect(clippy::cast_possible_truncation, reason = "a few bytes")]
const EVENT_RECORD: usize = EVENT_BYTES as usize;

/// What a place in memory belongs to: pair, queue. None: to nobody who is compared.
pub(super) fn place(
    plan: &Plan,
    phase: usize,
    node: usize,
    at: usize,
) -> Option<(usize, Queue, Place)> {
    let pair = (0..plan.pairs.len()).rev().find(|&pair| area(pair) <= at)?;
    if at < area(pair) + DATA_BYTES {
        let sends = plan.phases[phase].traffic[pair].sender == node;
        return Some((pair, if sends { Queue::Send } else { Queue::Recv }, Place::Data));
    }
    let index = at.checked_sub(slot(pair, Queue::Send, 0))? / SLOT_BYTES;
    match index / SLOTS {
        0 => Some((pair, Queue::Send, Place::Status(index))),
        1 => Some((pair, Queue::Recv, Place::Status(index - SLOTS))),
        _ => None,
    }
}
