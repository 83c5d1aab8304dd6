//! The state of a VI.

use core::sync::atomic::AtomicU64;
use std::sync::Mutex;

use port::RemoteAttributes;

use super::address::Address;
use super::flow::Flow;
use crate::via::vi::ViCore;

/// A VI.
#[derive(Debug)]
pub(super) struct Vi {
    pub(super) number: u16,
    /// When its connection has something to do; `u64::MAX` if it has not.
    pub(super) deadline: AtomicU64,
    pub(super) state: Mutex<State>,
}

/// Its state, under its lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) vi: ViCore,
    pub(super) link: Option<Link>,
}

/// An end of a connection.
#[derive(Debug)]
pub(super) struct Link {
    /// The node at the other end.
    pub(super) peer: Address,
    pub(super) remote: RemoteAttributes,
    /// What the two nodes have named the connection.
    pub(super) own_token: u64,
    pub(super) remote_token: u64,
    /// Data bytes of a packet.
    pub(super) segment: usize,
    pub(super) flow: Flow,
    /// What is under way of the oldest send.
    pub(super) sending: Sending,
    /// Number of the next message.
    pub(super) message: u32,
    /// The message that arrives.
    pub(super) arriving: Option<Arriving>,
    /// The read that the peer has asked for.
    pub(super) answer: Option<Answer>,
    /// When anything of the peer arrived last, and when it was asked whether it lives.
    pub(super) seen_at: u64,
    pub(super) probed_at: u64,
    /// When packets that the system did not take are offered again.
    pub(super) retry_at: Option<u64>,
    /// The peer has notified this VI that it takes nothing any more, or does not answer.
    pub(super) is_over: bool,
}

/// What is under way of the oldest send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// Nothing.
    None,
    /// Bytes up to this one were given to the connection; the number of the message, its bytes.
    Message { number: u32, offset: u32, length: u32 },
    /// All were; it is done when the packets before this one have arrived.
    Awaiting { before: u32, length: u32 },
    /// A read: bytes that have arrived, and in all.
    Reading { placed: u32, length: u32 },
}

/// A message that arrives in several packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arriving {
    pub(super) is_write: bool,
    pub(super) message: u32,
    pub(super) length: u32,
    pub(super) placed: u32,
}

/// A read that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) handle: u32,
    pub(super) address: u64,
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// A connection whose VI has left it, until the peer has everything.
#[derive(Debug)]
pub(super) struct Lingering {
    pub(super) link: Link,
    pub(super) vi: u16,
    pub(super) until: u64,
}
