//! What the records of a probe mean here.
//!
//! Writes are distinguished by address and size, for which the pair lays out memory: payload starts at a
//! multiple of 64, a status is 8 bytes at offset 24 of a descriptor, a record of a completion queue
//! has 16 bytes.

use cosim::probe::{Record, What};
use host_driver::bus::DOORBELL_BAR;
use nic_regs::desc::{ALIGNMENT, LENGTH_OFFSET};
use nic_regs::doorbell::{EVENT_OFFSET, PAGE_BYTES};
use nic_regs::event::EVENT_BYTES;
use nic_regs::frame::Type;

/// Bytes of a status write without immediate data: length and status.
const STATUS_BYTES: u64 = 8;

/// Whether the host posts a descriptor here (any doorbell that is not for an event queue).
pub(crate) fn is_post(record: &Record) -> bool {
    matches!(record.what, What::BarWrite { bar, offset }
        if bar == DOORBELL_BAR && offset % PAGE_BYTES != EVENT_OFFSET)
}

/// Whether a Data frame leaves.
pub(crate) fn is_data_out(record: &Record) -> bool {
    matches!(record.what, What::FrameOut(header) if header.kind == Type::Data as u8)
}

/// Whether a Data frame arrives.
pub(crate) fn is_data_in(record: &Record) -> bool {
    matches!(record.what, What::FrameIn(header) if header.kind == Type::Data as u8)
}

/// Whether a frame leaves that carries bytes of memory, or asks for them.
pub(crate) fn is_message_out(record: &Record) -> bool {
    matches!(record.what, What::FrameOut(header) if is_message(header.kind))
}

/// Whether such a frame arrives.
pub(crate) fn is_message_in(record: &Record) -> bool {
    matches!(record.what, What::FrameIn(header) if is_message(header.kind))
}

fn is_message(kind: u8) -> bool {
    let kinds = [Type::Data, Type::RdmaWrite, Type::ReadRequest, Type::ReadResponse];
    kinds.iter().any(|of| *of as u8 == kind)
}

/// Whether a status is written.
pub(crate) fn is_status(record: &Record) -> bool {
    matches!(record.what, What::Write { address, bytes: STATUS_BYTES }
        if address % ALIGNMENT == LENGTH_OFFSET)
}

/// Whether a record of a completion queue is written.
pub(crate) fn is_event(record: &Record) -> bool {
    matches!(record.what, What::Write { bytes: EVENT_BYTES, .. })
}

/// Whether payload is written.
pub(crate) fn is_payload(record: &Record) -> bool {
    matches!(record.what, What::Write { address, bytes }
        if address % ALIGNMENT == 0 && bytes != EVENT_BYTES)
}

/// When an answer of the host to the device was pending: from the last beat of each read request to the first
/// beat of its (first) completion.
pub(crate) fn waits(records: &[Record]) -> Vec<(u64, u64)> {
    let mut waits = Vec::new();
    for (i, record) in records.iter().enumerate() {
        let What::Read { tag, .. } = record.what else { continue };
        // A record stands at its last beat, and the answer begins after the request.
        let answer = records[i..]
            .iter()
            .find(|later| matches!(later.what, What::Completion { tag: t, .. } if t == tag));
        if let Some(answer) = answer {
            waits.push((record.last, answer.first));
        }
    }
    waits
}

/// Cycles from `start` to `end` in which an answer of the host was pending.
pub(crate) fn waited(records: &[Record], start: u64, end: u64) -> u64 {
    let mut waits = waits(records);
    waits.sort_unstable();
    let (mut total, mut covered) = (0, start);
    for (from, to) in waits {
        let (from, to) = (from.max(covered), to.min(end));
        total += to.saturating_sub(from);
        covered = covered.max(to);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_waits_count_once() {
        let at = |first, last, what| Record { first, last, what };
        let read = |tag| What::Read { tag, bytes: 64 };
        let done = |tag| What::Completion { tag, end: true };
        let records = [
            at(9, 10, read(1)),
            at(14, 15, read(2)),
            at(20, 29, done(1)),
            at(30, 39, done(2)),
            at(49, 50, read(3)),
            at(60, 69, done(3)),
        ];
        assert_eq!(waited(&records, 0, 100), 20 + 10);
        assert_eq!(waited(&records, 12, 55), 18 + 5);
    }
}
