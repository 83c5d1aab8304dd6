//! Counters by cause, and the error log.

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident = $index:literal),* $(,)?) => {
        /// A 32-bit wrapping counter in BAR0 at [`crate::csr::COUNTER_OFFSET`] + 4 x number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Counter { $($(#[doc = $doc])+ $name = $index),* }
        impl Counter {
            /// All, with their texts, in order of number.
            pub const ALL: &[(Self, &'static str, &'static str)] =
                &[$((Self::$name, stringify!($name), concat!($($doc),+))),*];
        }
    };
}

/// Number of counter slots (a power of two; the rest read zero).
pub const COUNTER_SLOTS: usize = 64;

counters! {
    /// Token doorbells accepted (counted as a post).
    DoorbellTokens = 0,
    /// Doorbell writes refused: wrong size, offset, page, VI or event queue.
    DoorbellBad = 1,
    /// Token doorbells dropped because the VI was in the error state.
    DoorbellDropped = 2,
    /// Frames put on the link, of every type, retransmissions included.
    FramesSent = 3,
    /// Frames taken off the link with a good CRC, version and destination.
    FramesReceived = 4,
    /// Sequenced frames sent again.
    FramesRetransmitted = 5,
    /// Frames dropped: CRC.
    DropCrc = 6,
    /// Frames dropped: shorter or longer than their header says, or longer than the link payload.
    DropLength = 7,
    /// Frames dropped: link version.
    DropVersion = 8,
    /// Frames dropped: not for this node, or from a node whose channel is not open.
    DropNode = 9,
    /// Frames dropped: epoch tag.
    DropTag = 10,
    /// Sequenced frames dropped: after a gap.
    DropOrder = 11,
    /// Sequenced frames dropped: already received.
    DropDuplicate = 12,
    /// Frames dropped: no staging memory.
    DropStaging = 13,
    /// Pure acknowledgements sent (keepalives included).
    AcksSent = 14,
    /// RST frames sent.
    ResetsSent = 15,
    /// Messages handed to the channel.
    MessagesSent = 16,
    /// Messages delivered to an event queue.
    MessagesReceived = 17,
    /// Messages refused: no queue for the domain, or it was full.
    MessagesRefused = 18,
    /// VIs stopped by an error, a refusal, a FIN or a dead peer.
    ViStops = 19,
    /// Refusals pending for a peer's VI.
    RefusalsSent = 20,
    /// VI frames consumed without effect: no such VI, not connected, another connection, source or
    /// node.
    Unmatched = 21,
    /// Messages on Unreliable VIs dropped: no receive descriptor.
    UnreliableEmpty = 22,
    /// Frames on Unreliable VIs dropped: an earlier frame of the message was lost or refused.
    UnreliableGap = 23,
    /// Event records written.
    EventsWritten = 24,
    /// Deliveries put off because the event queue was full.
    EventsDeferred = 25,
    /// MSI-X writes.
    Interrupts = 26,
    /// Send descriptors completed by the device, with or without error.
    SendsCompleted = 27,
    /// Receive descriptors completed by the device, with or without error.
    RecvsCompleted = 28,
    /// PCIe reads that timed out.
    ReadTimeouts = 29,
    /// PCIe reads that completed with an error or poisoned.
    ReadErrors = 30,
    /// PCIe completions that matched no outstanding read.
    UnexpectedCompletions = 31,
    /// Register accesses refused.
    BadRegister = 32,
    /// TLPs of a type that the device does not take, or malformed.
    BadTlp = 33,
    /// Admin commands executed.
    AdminCommands = 34,
    /// Admin commands that ended with a status other than Ok.
    AdminErrors = 35,
    /// Channels that went down other than by PeerClose.
    PeersLost = 36,
    /// Descriptors fetched and resolved.
    DescriptorsFetched = 37,
    /// Pushes posted with their inline data.
    PushesInline = 38,
    /// Pushes posted as a token alone.
    PushesPlain = 39,
    /// RDMA frames of a peer that were not allowed: the VI's bits, the region, its rights or range.
    RdmaRefused = 40,
}

/// What an error log record reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// index: page (domain); detail: VI or event queue 15:0, offset in the page 27:16, cause 31:28
    /// (0 size or offset, 1 not this page's VI, 2 not this page's event queue, 3 consumer index out
    /// of range).
    BadDoorbell = 1,
    /// detail: offset in BAR0, bit 31: write.
    BadRegister = 2,
    /// detail: first dword of the TLP.
    BadTlp = 3,
    /// index: tag, or 0xff: there was none.
    ReadTimeout = 4,
    /// index: tag; detail: completion status 2:0, poisoned 3.
    ReadError = 5,
    /// index: tag.
    UnexpectedCompletion = 6,
    /// The admin ring stopped; detail: entry index.
    AdminFetch = 7,
}

/// One record of the error log: code 7:0, index 31:16, detail 63:32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorRecord {
    /// See [`ErrorCode`].
    pub code: u8,
    /// By code.
    pub index: u16,
    /// By code.
    pub detail: u32,
}

impl ErrorRecord {
    /// The record's 64 bits.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.code as u64 | (self.index as u64) << 16 | (self.detail as u64) << 32
    }

    /// Reads a record.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "each field is shifted to its place")]
    pub const fn from_bits(bits: u64) -> Self {
        Self { code: bits as u8, index: (bits >> 16) as u16, detail: (bits >> 32) as u32 }
    }
}
