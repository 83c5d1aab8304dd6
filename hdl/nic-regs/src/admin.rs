//! The admin ring: 64-byte entries in host memory, executed in order, each completed in place.
//!
//! ```text
//! command     dword 0 opcode | 1 index | 2 cookie | 3 zero | 4..15 body (see each opcode)
//! completion  dword 0 status | 1 result | 2 cookie | 3 DONE          (the first 16 bytes are overwritten)
//! ```

/// Size of one entry, in bytes.
pub const ENTRY_BYTES: u64 = 64;
/// Size of the completion, in bytes.
pub const COMPLETION_BYTES: u64 = 16;
/// Value of dword 3 of a completion.
pub const DONE: u32 = 1;
/// 'No event queue' in the fields that name one.
pub const NO_QUEUE: u16 = 0xffff;

/// What to do; `index` names the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// Nothing; result 0.
    Nop = 0,
    /// index: region. dw4-5 va_base, dw6-7 bus_base, dw8 length, dw9 tag 15:0 generation 31:16,
    /// dw10 domain 7:0 rights 15:8.
    RegionSet = 1,
    /// index: region. Fenced: when it completes no access to the region is in flight or will start.
    RegionClear = 2,
    /// index: VI. dw4 domain 7:0 reliability 15:8 tag 31:16, dw5 send event queue 15:0 receive
    /// event queue 31:16 (0xffff: none), dw6 maximum transfer in bytes, dw7 RDMA that it allows
    /// (see [`crate::vi::rdma`]).
    ViCreate = 3,
    /// index: VI, which must be Idle with nothing pending for its old peer. Fenced.
    ViDestroy = 4,
    /// index: VI, which must be Idle with no control frame pending. dw4 peer node 7:0 peer VI 31:16, dw5
    /// connection id 15:0 and RDMA that the peer's VI allows 17:16 (see [`crate::vi::rdma`]).
    ViConnect = 5,
    /// index: VI. Stops it, fences it, empties both queues, has a FIN sent to the peer if it was
    /// Connected; then Idle.
    ViDisconnect = 6,
    /// index: VI. result: state 3:0, stop reason 11:4, 12 send in progress or pending, 13 receive in
    /// progress.
    ViQuery = 7,
    /// index: event queue. dw4-5 base (64-byte aligned), dw6 log2 of entries 3:0 (2 to 15), wide 4,
    /// domain 15:8, vector 23:16.
    EventCreate = 8,
    /// index: event queue.
    EventDestroy = 9,
    /// index: peer node. dw4 our epoch (random), dw5 credits granted to the peer 7:0 (1 to 64).
    PeerOpen = 10,
    /// index: peer node. Sends RST, frees its frames, stops its VIs.
    PeerClose = 11,
    /// index: peer node. result: state 3:0 (see [`PeerState`]).
    PeerQuery = 12,
    /// index: peer node 7:0, destination domain 15:8. dw4-15: 48 bytes.
    MessageSend = 13,
    /// index: domain. dw4 event queue 15:0 for its messages (wide, or 0xffff: none).
    MessageQueue = 14,
}

impl Opcode {
    /// The opcode with this number.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        Some(match bits {
            0 => Self::Nop,
            1 => Self::RegionSet,
            2 => Self::RegionClear,
            3 => Self::ViCreate,
            4 => Self::ViDestroy,
            5 => Self::ViConnect,
            6 => Self::ViDisconnect,
            7 => Self::ViQuery,
            8 => Self::EventCreate,
            9 => Self::EventDestroy,
            10 => Self::PeerOpen,
            11 => Self::PeerClose,
            12 => Self::PeerQuery,
            13 => Self::MessageSend,
            14 => Self::MessageQueue,
            _ => return None,
        })
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdminStatus {
    /// Done.
    Ok = 0,
    /// No such opcode.
    BadOpcode = 1,
    /// Index outside the table.
    BadIndex = 2,
    /// The object is not in the state that the command needs.
    BadState = 3,
    /// A field of the body is out of range.
    BadArgument = 4,
    /// The peer's channel is not open.
    PeerDown = 5,
    /// No room now; try again.
    Busy = 6,
}

impl AdminStatus {
    /// The status with this number.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        Some(match bits {
            0 => Self::Ok,
            1 => Self::BadOpcode,
            2 => Self::BadIndex,
            3 => Self::BadState,
            4 => Self::BadArgument,
            5 => Self::PeerDown,
            6 => Self::Busy,
            _ => return None,
        })
    }
}

/// State of the channel to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerState {
    /// Never opened, or closed, or dead.
    Closed = 0,
    /// SYN sent, no answer yet.
    Opening = 1,
    /// Frames flow.
    Open = 2,
}
