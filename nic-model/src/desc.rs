//! Descriptors: reached, read, checked; popped with the successor rule; completed.

use nic_regs::counter::Counter;
use nic_regs::csr::Stamp;
use nic_regs::desc::{
    CONTROL_BYTES, ControlSegment, DataSegment, IMMEDIATE_OFFSET, LENGTH_OFFSET, SEGMENT_BYTES,
    control, send_operation, status,
};
use nic_regs::doorbell::{Queue, Token};
use nic_regs::limits::DATA_SEGMENTS_MAX;
use nic_regs::tpt::Handle;
use nic_regs::vi::{Reliability, StopReason, rdma};

use crate::bits::{low32, size};
use crate::device::HostBus;
use crate::nic::Model;
use crate::trace::Trace;
use crate::vi::{Head, Stop};

/// Segments of the longest descriptor there can be: one address segment and the data segments.
pub(crate) const SEGMENTS_REACHED: u16 = 17;

/// A piece of host memory that a checked segment stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) bus: u64,
    pub(crate) length: u32,
}

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A send, or a receive.
    Send,
    /// An RDMA write to this place of the peer.
    Write { address: u64, handle: u32 },
    /// An RDMA read from there.
    Read { address: u64, handle: u32 },
}

impl Operation {
    /// The status operation of a send descriptor.
    pub(crate) const fn status(self) -> u32 {
        match self {
            Self::Send => status::OP_SEND,
            Self::Write { .. } => status::OP_RDMA_WRITE,
            Self::Read { .. } => status::OP_RDMA_READ,
        }
    }

    /// What the peer's VI must allow, and the fault if it does not.
    pub(crate) const fn needs(self) -> Option<(u32, Fault)> {
        let status = status::RDMA_PROT_ERROR;
        match self {
            Self::Send => None,
            Self::Write { .. } => {
                Some((rdma::WRITE, Fault::Bad { status, reason: StopReason::RdmaWrite }))
            }
            Self::Read { .. } => {
                Some((rdma::READ, Fault::Bad { status, reason: StopReason::RdmaRead }))
            }
        }
    }
}

/// How a descriptor is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Error bits.
    pub(crate) errors: u32,
    pub(crate) length: u32,
    pub(crate) immediate: Option<u32>,
}

impl Ending {
    pub(crate) const fn good(length: u32) -> Self {
        Self { errors: 0, length, immediate: None }
    }
}

/// A descriptor that has passed the checks of section 3.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) control: ControlSegment,
    pub(crate) operation: Operation,
    pub(crate) spans: Vec<Span>,
    /// Sum of the segments' lengths.
    pub(crate) total: u64,
    /// The data itself, if it came by a push.
    pub(crate) inline: Option<Vec<u8>>,
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

impl Model {
    /// Checks the format of a control segment: section 3.2. True: an address segment follows.
    fn check_format(&self, vi: u16, queue: Queue, c: &ControlSegment) -> Result<bool, Fault> {
        let op = c.control & control::OP_MASK;
        let reliable = self.vi(vi).level != Reliability::Unreliable;
        let remote = match (queue, op) {
            (_, control::OP_SENDRECV) => false,
            (Queue::Send, control::OP_RDMA_WRITE) if self.features.rdma_write => true,
            (Queue::Send, control::OP_RDMA_READ) if self.features.rdma_read && reliable => {
                if c.control & control::IMMEDIATE != 0 {
                    return Err(Fault::FORMAT);
                }
                true
            }
            _ => return Err(Fault::FORMAT),
        };
        let segments = usize::from(c.seg_count).checked_sub(remote.into());
        let bad = c.control & control::RESERVED != 0
            || c.reserved != 0
            || segments.is_none_or(|data| data > DATA_SEGMENTS_MAX);
        if bad { Err(Fault::FORMAT) } else { Ok(remote) }
    }

    /// Reads the control segment at the head of a queue that is not empty, and checks it: sections
    /// 3.1 and 3.2. Gives its bus address too, and whether an address segment follows.
    pub(crate) fn fetch_control(
        &mut self,
        vi: u16,
        queue: Queue,
        host: &mut dyn HostBus,
    ) -> Result<(ControlSegment, u64, bool), Fault> {
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
        if queue == Queue::Send {
            let known = match send_operation(control.control) {
                status::OP_RDMA_WRITE if !self.features.rdma_write => status::OP_SEND,
                status::OP_RDMA_READ if !self.features.rdma_read => status::OP_SEND,
                operation => operation,
            };
            self.vi_mut(vi).operations[queue as usize] = known;
        }
        let remote = self.check_format(vi, queue, &control)?;
        Ok((control, bus, remote))
    }

    /// Reads and checks the descriptor at the head of a queue that is not empty: sections 3.1 to
    /// 3.3.
    pub(crate) fn fetch(
        &mut self,
        vi: u16,
        queue: Queue,
        host: &mut dyn HostBus,
    ) -> Result<Resolved, Fault> {
        let (control, bus, remote) = self.fetch_control(vi, queue, host)?;
        let owner = self.vi(vi).owner;
        let mut bytes = vec![0; usize::from(control.seg_count) * size(SEGMENT_BYTES)];
        self.host_read(host, bus + CONTROL_BYTES, &mut bytes).map_err(|_| Fault::Unreadable)?;
        let (mut spans, mut total) = (Vec::new(), 0);
        let (segments, _) = bytes.as_chunks::<{ size(SEGMENT_BYTES) }>();
        let (first, segments) = segments.split_at(usize::from(remote));
        let operation = match first.first().map(DataSegment::from_bytes) {
            None => Operation::Send,
            Some(address) if address.length != 0 => return Err(Fault::FORMAT),
            Some(DataSegment { address, handle, .. }) => {
                if control.control & control::OP_MASK == control::OP_RDMA_WRITE {
                    Operation::Write { address, handle }
                } else {
                    Operation::Read { address, handle }
                }
            }
        };
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
        Ok(Resolved { control, operation, spans, total, inline: None })
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
        ending: Ending,
        host: &mut dyn HostBus,
    ) -> bool {
        let Ending { errors, length, immediate } = ending;
        let Some(bus) = self.pop(vi, queue, host) else {
            self.stop_and_refuse(vi, queue, StopReason::Descriptor, host);
            return false;
        };
        let operation = self.vi(vi).operations[queue as usize];
        let immediate_bit = if immediate.is_some() { status::IMMEDIATE } else { 0 };
        let bits = status::DONE | operation | immediate_bit | errors;
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
                let ending = Ending { errors: bits | partial, ..Ending::good(0) };
                let done = self.complete(vi, queue, ending, host);
                if done && self.vi(vi).level != Reliability::Unreliable {
                    self.stop_and_refuse(vi, queue, reason, host);
                }
            }
        }
    }
}
