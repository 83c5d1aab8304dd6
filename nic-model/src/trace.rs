//! What a test can watch: events as they happen, and the state that the contract makes
//! visible.

use core::fmt;

use nic_regs::admin::{AdminStatus, PeerState};
use nic_regs::counter::{COUNTER_SLOTS, Counter};
use nic_regs::doorbell::{Queue, Token};
use nic_regs::event::Event;
use nic_regs::frame::Header;
use nic_regs::vi::{State, StopReason};

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// A token doorbell of its own page's VI was seen (counted, or dropped because the VI is in
    /// Error).
    Doorbell {
        /// Page.
        page: u16,
        /// What it posts.
        token: Token,
    },
    /// A write to BAR2 was refused.
    DoorbellRefused {
        /// Page.
        page: u16,
        /// Cause, as in the error log.
        cause: u32,
    },
    /// An admin command was completed.
    Admin {
        /// Opcode, as it was in the ring.
        opcode: u32,
        /// Index.
        index: u32,
        /// How it ended.
        status: AdminStatus,
    },
    /// The last beat of a frame is on the link.
    FrameOut {
        /// Its header.
        header: Header,
    },
    /// The last beat of a frame came off the link.
    FrameIn {
        /// Its header, unless CRC or length are wrong.
        header: Option<Header>,
        /// What became of it.
        verdict: Verdict,
    },
    /// A descriptor's status was written.
    Completion {
        /// VI.
        vi: u16,
        /// Work queue.
        queue: Queue,
        /// Status bits.
        status: u32,
        /// Length.
        length: u32,
    },
    /// An event record was written.
    Event {
        /// Event queue.
        queue: u16,
        /// The record.
        event: Event,
    },
    /// A VI stopped.
    Stop {
        /// VI.
        vi: u16,
        /// Why.
        reason: StopReason,
        /// The peer's reason, if that was a refusal.
        peer_reason: u8,
        /// The work queue that it concerns.
        queue: Queue,
        /// Status bits for the first descriptor that is not done.
        status: u32,
    },
    /// A channel changed its state.
    Peer {
        /// Peer.
        node: u8,
        /// New state.
        state: PeerState,
    },
}

/// What became of a frame off the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accepted for the receive engine.
    Staged,
    /// The channel dealt with it.
    Handled,
    /// Dropped, and counted here.
    Dropped(Counter),
}

/// Receives what happens, in order.
pub trait Observer: Send {
    /// `what` happened in cycle `now`.
    fn event(&mut self, now: u64, what: Trace);
}

impl<F: FnMut(u64, Trace) + Send> Observer for F {
    fn event(&mut self, now: u64, what: Trace) {
        self(now, what);
    }
}

/// A place for an observer.
#[derive(Default)]
pub(crate) struct Watch(pub(crate) Option<Box<dyn Observer>>);

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Watch" } else { "no Watch" })
    }
}

/// State of a VI that the contract makes visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViSnapshot {
    /// State.
    pub state: State,
    /// Why it stopped.
    pub reason: StopReason,
    /// Descriptors posted and not completed, send and receive.
    pub posted: [u16; 2],
    /// Completions that no event has reported, send and receive.
    pub unreported: [u32; 2],
    /// A send is in progress, or a control frame is pending.
    pub sending: bool,
    /// A receive is in progress.
    pub receiving: bool,
}

/// State of the device that the contract makes visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// All VIs.
    pub vis: Vec<ViSnapshot>,
    /// All peers.
    pub peers: Vec<PeerState>,
    /// All counters.
    pub counters: [u32; COUNTER_SLOTS],
    /// Producer and consumer index of the event queues that exist.
    pub events: Vec<Option<(u16, u16)>>,
    /// Admin entries completed.
    pub admin_head: u16,
}
