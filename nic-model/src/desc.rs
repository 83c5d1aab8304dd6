//! Descriptors: reached, read, checked; popped with the successor rule; completed.

use nic_regs::counter::Counter;
use nic_regs::csr::Stamp;
use nic_regs::desc::{
    CONTROL_BYTES, ControlSegment, DataSegment, IMMEDIATE_OFFSET, LENGTH_OFFSET, SEGMENT_BYTES,
    control, status,
};
use nic_regs::doorbell::{Queue, Token};
use nic_regs::limits::DATA_SEGMENTS_MAX;
use nic_regs::tpt::Handle;
use nic_regs::vi::{Reliability, StopReason};

use crate::bits::{low32, size};
use crate::device::HostBus;
use crate::nic::Model;
use crate::trace::Trace;
use crate::vi::{Head, Stop};

/// Segments of the longest descriptor there can be: one address segment and the data segments.
const SEGMENTS_REACHED: u16 = 17;

/// A piece of host memory that a checked segment stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) bus: u64,
    pub(crate) length: u32,
}

/// A descriptor that has passed the checks of section 3.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) control: ControlSegment,
    pub(crate) spans: Vec<Span>,
    /// Sum of the segments' lengths.
    pub(crate) total: u64,
}

/// Why a descriptor cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It could not be reached.
    Unreachable,
    /// It could not be read.
    Unreadable,
    /// It is completed with this status.
    Bad { status: u32, reason: StopReason },
}

impl Fault {
    pub(crate) const FORMAT: Self =
        Self::Bad { status: status::FORMAT_ERROR, reason: StopReason::Format };
    pub(crate) const PROTECTION: Self =
        Self::Bad { status: status::PROTECTION_ERROR, reason: StopReason::Protection };
    pub(crate) const LENGTH: Self =
        Self::Bad { status: status::LENGTH_ERROR, reason: StopReason::Length };
    pub(crate) const DATA: Self =
        Self::Bad { status: status::TRANSPORT_ERROR, reason: StopReason::HostRead };
}

impl Resolved {
    /// The pieces of memory that hold bytes `offset .. offset + length` of the message, in order.
    pub(crate) fn pieces(&self, offset: u64, length: usize) -> Vec<(u64, usize)> {
        let (mut skip, mut left) = (offset, length as u64);
        let mut pieces = Vec::new();
        for span in &self.spans {
            let here = u64::from(span.length);
            if skip >= here {
                skip -= here;
                continue;
            }
            let n = (here - skip).min(left);
            if n == 0 {
                break;
            }
            pieces.push((span.bus + skip, low32(n) as usize));
            left -= n;
            skip = 0;
        }
        debug_assert_eq!(left, 0, "the message ends inside its segments");
        pieces
    }
}

/// Checks the format: section 3.2.
fn check_format(c: &ControlSegment) -> Result<(), Fault> {
    let bad = c.control & control::RESERVED != 0
        || c.reserved != 0
        || c.control & control::OP_MASK != control::OP_SENDRECV
        || usize::from(c.seg_count) > DATA_SEGMENTS_MAX;
    if bad { Err(Fault::FORMAT) } else { Ok(()) }
}

impl Model {
    /// Reads and checks the descriptor at the head of a queue that is not empty: sections 3.1 to
    /// 3.3.
    pub(crate) fn fetch(
        &mut self,
        vi: u16,
        queue: Queue,
        host: &mut dyn HostBus,
    ) -> Result<Resolved, Fault> {
        let owner = self.vi(vi).owner;
        let work = self.vi(vi).queues[queue as usize];
        let token = match work.head {
            Head::Token(token) => token,
            Head::BadNext => return Err(Fault::Unreachable),
            Head::Unreadable => return Err(Fault::Unreadable),
        };
        let bus = self.regions.reach(token, CONTROL_BYTES, owner).ok_or(Fault::Unreachable)?;
        let mut bytes = [0; size(CONTROL_BYTES)];
        self.host_read(host, bus, &mut bytes).map_err(|_| Fault::Unreadable)?;
        let control = ControlSegment::from_bytes(&bytes);
        let length = CONTROL_BYTES + SEGMENT_BYTES * u64::from(control.seg_count);
        if control.seg_count <= SEGMENTS_REACHED {
            self.regions.reach(token, length, owner).ok_or(Fault::Unreachable)?;
        }
        let next = (work.count >= 2).then_some((control.next, control.next_handle));
        self.vi_mut(vi).queues[queue as usize].next = next;
        check_format(&control)?;

        let mut bytes = vec![0; usize::from(control.seg_count) * size(SEGMENT_BYTES)];
        self.host_read(host, bus + CONTROL_BYTES, &mut bytes).map_err(|_| Fault::Unreadable)?;
        let (mut spans, mut total) = (Vec::new(), 0);
        let (segments, _) = bytes.as_chunks::<{ size(SEGMENT_BYTES) }>();
        for segment in segments.iter().map(DataSegment::from_bytes).filter(|s| s.length != 0) {
            let bus = self
                .regions
                .translate(segment.address, Handle(segment.handle), segment.length, owner)
                .ok_or(Fault::PROTECTION)?;
            spans.push(Span { bus, length: segment.length });
            total += u64::from(segment.length);
        }
        self.count(Counter::DescriptorsFetched);
        self.stamp(vi, if queue == Queue::Send { Stamp::Descriptor } else { Stamp::Matched });
        Ok(Resolved { control, spans, total })
    }

    /// Takes the head off a queue, by the successor rule (section 2.3). Gives where it was.
    fn pop(&mut self, vi: u16, queue: Queue, host: &mut dyn HostBus) -> Option<u64> {
        let owner = self.vi(vi).owner;
        let work = self.vi(vi).queues[queue as usize];
        let Head::Token(token) = work.head else { return None };
        let bus = self.regions.reach(token, CONTROL_BYTES, owner)?;
        let head = match (work.count.wrapping_sub(1), work.last) {
            (0, _) => Head::BadNext, // The next post replaces it.
            (1, Some(last)) => Head::Token(last),
            _ => self.successor(token.vi, queue, bus, work.next, host),
        };
        let work = &mut self.vi_mut(vi).queues[queue as usize];
        work.count = work.count.wrapping_sub(1);
        (work.head, work.next) = (head, None);
        Some(bus)
    }

    fn successor(
        &mut self,
        vi: u16,
        queue: Queue,
        bus: u64,
        known: Option<(u64, u32)>,
        host: &mut dyn HostBus,
    ) -> Head {
        let (next, handle) = match known {
            Some(known) => known,
            None => {
                let mut bytes = [0; size(CONTROL_BYTES)];
                if self.host_read(host, bus, &mut bytes[..12]).is_err() {
                    return Head::Unreadable;
                }
                let control = ControlSegment::from_bytes(&bytes);
                (control.next, control.next_handle)
            }
        };
        match self.regions.link(next, Handle(handle), self.vi(vi).owner) {
            Some((region, offset_64)) => {
                Head::Token(Token { vi, region, offset_64, segments: 0, queue })
            }
            None => Head::BadNext,
        }
    }

    /// Completes the head of a queue: popped, Length and Status written (with the immediate data
    /// before them, if there is any), announced. If it cannot be reached any more, the VI stops,
    /// nothing is written, and this is false.
    pub(crate) fn complete(
        &mut self,
        vi: u16,
        queue: Queue,
        bits: u32,
        length: u32,
        immediate: Option<u32>,
        host: &mut dyn HostBus,
    ) -> bool {
        let Some(bus) = self.pop(vi, queue, host) else {
            self.stop_and_refuse(vi, queue, StopReason::Descriptor, host);
            return false;
        };
        let operation = match queue {
            Queue::Send => status::OP_SEND,
            Queue::Recv => status::OP_RECEIVE,
        };
        let immediate_bit = if immediate.is_some() { status::IMMEDIATE } else { 0 };
        let bits = status::DONE | operation | immediate_bit | bits;
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&immediate.unwrap_or(0).to_le_bytes());
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..].copy_from_slice(&bits.to_le_bytes());
        match immediate {
            Some(_) => host.write(bus + IMMEDIATE_OFFSET, &bytes),
            None => host.write(bus + LENGTH_OFFSET, &bytes[4..]),
        }
        self.count(match queue {
            Queue::Send => Counter::SendsCompleted,
            Queue::Recv => Counter::RecvsCompleted,
        });
        if queue == Queue::Recv {
            self.stamp(vi, Stamp::StatusWritten);
        }
        self.trace(Trace::Completion { vi, queue, status: bits, length });
        self.announce(vi, queue, host);
        true
    }

    /// What a descriptor that cannot be executed does to its VI: sections 3.1, 4.4, 4.5, 5.2, 5.5.
    pub(crate) fn fail(
        &mut self,
        vi: u16,
        queue: Queue,
        fault: Fault,
        partial: bool,
        host: &mut dyn HostBus,
    ) {
        match fault {
            Fault::Unreachable => self.stop_and_refuse(vi, queue, StopReason::Descriptor, host),
            Fault::Unreadable => {
                let reason = StopReason::HostRead;
                self.refuse(vi, reason);
                let status = status::TRANSPORT_ERROR;
                self.stop(vi, Stop { reason, peer_reason: 0, queue, status }, host);
            }
            Fault::Bad { status: bits, reason } => {
                let partial = if partial { status::PARTIAL_ERROR } else { 0 };
                let done = self.complete(vi, queue, bits | partial, 0, None, host);
                if done && self.vi(vi).level != Reliability::Unreliable {
                    self.stop_and_refuse(vi, queue, reason, host);
                }
            }
        }
    }
}
