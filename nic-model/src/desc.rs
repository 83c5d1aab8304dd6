//! Descriptors as values: what they ask for, how they fail, how they are completed.

use nic_regs::desc::{ControlSegment, DataSegment, control, status};
use nic_regs::doorbell::{Queue, Token};
use nic_regs::limits::DATA_SEGMENTS_MAX;
use nic_regs::vi::{Reliability, StopReason, rdma};

use crate::bits::low32;
use crate::device::Features;

/// Segments of the longest descriptor there can be: one address segment and the data segments.
pub(crate) const SEGMENTS_REACHED: u16 = 17;

/// The host memory of a checked segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Bus address.
    pub bus: u64,
    /// Bytes, not 0.
    pub length: u32,
}

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A send, or a receive.
    Send,
    /// An RDMA write to memory of the peer.
    Write {
        /// Its first byte.
        address: u64,
        /// Its region.
        handle: u32,
    },
    /// An RDMA read of memory of the peer.
    Read {
        /// Its first byte.
        address: u64,
        /// Its region.
        handle: u32,
    },
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
pub struct Resolved {
    /// The control segment.
    pub control: ControlSegment,
    /// What it asks for.
    pub operation: Operation,
    /// Where the data is, in order.
    pub spans: Vec<Span>,
    /// Sum of the segments' lengths; of a receive, up to the first byte that is not allowed.
    pub total: u64,
    /// There is such a byte.
    pub short: bool,
    /// The data itself, if it came by a push.
    pub(crate) inline: Option<Vec<u8>>,
}

/// The data of a push that was posted inline.
#[derive(Clone, Debug)]
pub struct Inline {
    /// The descriptor.
    pub token: Token,
    /// Immediate data.
    pub immediate: Option<u32>,
    /// The message.
    pub data: Vec<u8>,
}

/// Why a descriptor cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It could not be reached.
    Unreachable,
    /// It could not be read.
    Unreadable,
    /// It is completed with this status.
    Bad {
        /// Error bits.
        status: u32,
        /// Why the VI stops, if its level has it stop.
        reason: StopReason,
    },
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
    /// What is wrong with a message of more than `total` bytes (a receive).
    pub(crate) const fn excess(&self) -> Fault {
        if self.short { Fault::PROTECTION } else { Fault::LENGTH }
    }

    /// The memory that holds bytes `offset .. offset + length` of the message, in order.
    pub(crate) fn ranges(&self, offset: u64, length: usize) -> Vec<(u64, usize)> {
        let (mut skip, mut left) = (offset, length as u64);
        let mut ranges = Vec::new();
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
            ranges.push((span.bus + skip, low32(n) as usize));
            left -= n;
            skip = 0;
        }
        debug_assert_eq!(left, 0, "the message ends inside its segments");
        ranges
    }
}

/// Checks the format of a control segment: section 3.2. True: an address segment follows.
pub(crate) fn check_format(
    c: &ControlSegment,
    queue: Queue,
    level: Reliability,
    features: Features,
) -> Result<bool, Fault> {
    let op = c.control & control::OP_MASK;
    let reliable = level != Reliability::Unreliable;
    let remote = match (queue, op) {
        (_, control::OP_SENDRECV) => false,
        (Queue::Send, control::OP_RDMA_WRITE) if features.rdma_write => true,
        (Queue::Send, control::OP_RDMA_READ) if features.rdma_read && reliable => {
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

/// The operation of a descriptor with this address segment, if it has one.
pub(crate) fn operation(
    c: &ControlSegment,
    remote: Option<DataSegment>,
) -> Result<Operation, Fault> {
    match remote {
        None => Ok(Operation::Send),
        Some(remote) if remote.length != 0 => Err(Fault::FORMAT),
        Some(DataSegment { address, handle, .. }) => {
            if c.control & control::OP_MASK == control::OP_RDMA_WRITE {
                Ok(Operation::Write { address, handle })
            } else {
                Ok(Operation::Read { address, handle })
            }
        }
    }
}
