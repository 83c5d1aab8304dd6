//! VIs: states, reliability levels, why a VI stopped.

/// State of a VI in the device (VIPL's 'connect pending' is software's alone).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not created.
    #[default]
    Free = 0,
    /// Created, not connected; posts are held.
    Idle = 1,
    /// Connected; descriptors are executed.
    Connected = 2,
    /// Stopped by an error; posts are dropped.
    Error = 3,
}

/// Reliability level, with VIPL's bit as its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reliability {
    /// Unreliable Delivery.
    Unreliable = 1,
    /// Reliable Delivery.
    Delivery = 2,
    /// Reliable Reception.
    Reception = 4,
}

impl Reliability {
    /// The level with this number.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match bits {
            1 => Some(Self::Unreliable),
            2 => Some(Self::Delivery),
            4 => Some(Self::Reception),
            _ => None,
        }
    }
}

/// RDMA that a VI lets its peer do: word 7 of ViCreate for its own side; in ViConnect, bits 31:16
/// of word 5, what the peer's VI allows.
pub mod rdma {
    /// RDMA writes into this side's memory.
    pub const WRITE: u32 = 0x1;
    /// RDMA reads from this side's memory.
    pub const READ: u32 = 0x2;
    /// All bits.
    pub const MASK: u32 = 0x3;
    /// Lowest bit of the peer's word in ViConnect.
    pub const PEER_LSB: u32 = 16;
}

/// Why a VI went to the error state; in the VI error event and in VI refusal frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// Not stopped.
    None = 0,
    /// A descriptor was malformed.
    Format = 1,
    /// A segment's handle, bounds, tag or domain was wrong.
    Protection = 2,
    /// A message was too long.
    Length = 3,
    /// A descriptor could not be reached: its own handle, bounds, tag or domain were wrong.
    Descriptor = 4,
    /// The host port failed to read a descriptor or data.
    HostRead = 5,
    /// A message arrived and no receive descriptor was posted.
    ReceiveEmpty = 6,
    /// The peer's VI refused a message; the event's detail holds the peer's reason.
    Refused = 7,
    /// The peer is dead, restarted, or closed.
    PeerDown = 8,
    /// The peer's VI disconnected.
    Disconnected = 9,
    /// An RDMA write was not allowed. On the send queue: the peer's VI takes none; on the receive
    /// queue: the peer wrote where it may not.
    RdmaWrite = 10,
    /// The same for RDMA reads.
    RdmaRead = 11,
}

impl StopReason {
    /// The reason with this number.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        Some(match bits {
            0 => Self::None,
            1 => Self::Format,
            2 => Self::Protection,
            3 => Self::Length,
            4 => Self::Descriptor,
            5 => Self::HostRead,
            6 => Self::ReceiveEmpty,
            7 => Self::Refused,
            8 => Self::PeerDown,
            9 => Self::Disconnected,
            10 => Self::RdmaWrite,
            11 => Self::RdmaRead,
            _ => return None,
        })
    }
}
