//! The types of `clan.h`. `via-user/libvipl/tests/clan/arguments.c` asserts the same numbers in C.

use core::ffi::{c_char, c_int};
use core::mem::{align_of, offset_of, size_of};

use port::clan::{AccessRights, ClanEvent, ClanPeer, DmaError, Message};

use super::fault::{Fault, Result};

/// Most bytes of a host address.
pub const HOST_BYTES: usize = 32;
/// Bytes of a name, its terminator included.
pub const NAME_BYTES: usize = 32;
/// Bytes of a message.
pub const MESSAGE_BYTES: usize = size_of::<Message>();
/// Double words of a store.
pub const STORE_WORDS: usize = 8;
/// A time-out without end.
pub const INFINITE_MS: u32 = u32::MAX;

/// `CLAN_READ`
pub const READ: u32 = 1;
/// `CLAN_WRITE`
pub const WRITE: u32 = 2;
/// `CLAN_ONCE`
pub const ONCE: u32 = 4;

/// `clan_peer_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as in the header, and explained there")]
pub struct Peer {
    pub domain: u16,
    pub host_length: u16,
    pub host: [u8; HOST_BYTES],
}

/// `clan_attributes_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as in the header, and explained there")]
pub struct Attributes {
    pub name: [c_char; NAME_BYTES],
    pub own: Peer,
    pub regions: u32,
    pub tripwires: u32,
    pub queues: u32,
    pub maps_all: c_int,
}

/// `clan_event_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as in the header, and explained there")]
pub struct Event {
    pub kind: c_int,
    pub result: c_int,
    pub tag: u64,
    pub peer: Peer,
    pub message: [u8; MESSAGE_BYTES],
}

/// `CLAN_EVENT_...`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in the header, and explained there")]
pub enum EventKind {
    Tripwire = 1,
    Dma = 2,
    Message = 3,
    NodeLost = 4,
}

const _: () = {
    assert!(size_of::<Peer>() == 36 && align_of::<Peer>() == 2 && offset_of!(Peer, host) == 4);
    assert!(size_of::<Attributes>() == 84 && offset_of!(Attributes, own) == 32);
    assert!(offset_of!(Attributes, regions) == 68 && offset_of!(Attributes, maps_all) == 80);
    assert!(size_of::<Event>() == 104 && offset_of!(Event, tag) == 8);
    assert!(offset_of!(Event, peer) == 16 && offset_of!(Event, message) == 52);
    assert!(MESSAGE_BYTES == 48);
};

impl Peer {
    /// Nobody.
    pub const NONE: Self = Self { domain: 0, host_length: 0, host: [0; HOST_BYTES] };

    /// A domain in the form of the header.
    ///
    /// # Errors
    /// Its host address is longer than the header has room for.
    pub fn of(peer: &ClanPeer) -> Result<Self> {
        let mut own = Self { domain: peer.domain, ..Self::NONE };
        let too_long = || Fault::invalid(format!("a host address of {} bytes", peer.host.len()));
        own.host.get_mut(..peer.host.len()).ok_or_else(too_long)?.copy_from_slice(&peer.host);
        own.host_length = u16::try_from(peer.host.len()).map_err(|_| too_long())?;
        Ok(own)
    }

    /// The domain that a program names.
    ///
    /// # Errors
    /// The length of the host address is 0, or more than there is room for.
    pub fn get(&self) -> Result<ClanPeer> {
        let length = self.host_length;
        let host = self.host.get(..length.into()).filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| {
            Fault::invalid(format!("host_length of the peer is {length}: 1 to {HOST_BYTES}"))
        })?;
        Ok(ClanPeer { host: host.to_vec(), domain: self.domain })
    }
}

impl Event {
    /// An event in the form of the header.
    ///
    /// # Errors
    /// As [`Peer::of`].
    pub fn of(event: &ClanEvent) -> Result<Self> {
        let nothing = Self { kind: 0, result: 0, tag: 0, peer: Peer::NONE, message: [0; 48] };
        Ok(match event {
            ClanEvent::Tripwire { tag } => {
                Self { kind: EventKind::Tripwire as c_int, tag: *tag, ..nothing }
            }
            ClanEvent::Dma { tag, result } => {
                let result = result.err().map_or(0, |error| Fault::code_of(error) as c_int);
                Self { kind: EventKind::Dma as c_int, tag: *tag, result, ..nothing }
            }
            ClanEvent::Message { from, message } => {
                let (kind, peer) = (EventKind::Message as c_int, Peer::of(from)?);
                Self { kind, peer, message: *message, ..nothing }
            }
            ClanEvent::NodeLost { host } => {
                let peer = Peer::of(&ClanPeer { host: host.clone(), domain: 0 })?;
                let (kind, result) = (EventKind::NodeLost, Fault::code_of(DmaError::Lost));
                Self { kind: kind as c_int, result: result as c_int, peer, ..nothing }
            }
        })
    }
}

/// The accesses of a set of `CLAN_READ` and `CLAN_WRITE`.
///
/// # Errors
/// It is empty, or has other bits than those of `allowed`.
pub fn accesses(bits: u32, allowed: u32) -> Result<AccessRights> {
    let rights = AccessRights { read: bits & READ != 0, write: bits & WRITE != 0 };
    if bits & !allowed != 0 || !(rights.read || rights.write) {
        let once = if allowed & ONCE == 0 { "" } else { ", and maybe CLAN_ONCE" };
        let text = format!("{bits:#x} is not CLAN_READ, CLAN_WRITE or both{once}");
        return Err(Fault::invalid(text));
    }
    Ok(rights)
}

/// A text as an array of characters of C, cut to fit.
#[must_use]
pub fn text(text: &str) -> [c_char; NAME_BYTES] {
    let mut chars = [0; NAME_BYTES];
    // The last one stays 0.
    for (place, byte) in chars[..NAME_BYTES - 1].iter_mut().zip(text.bytes()) {
        *place = c_char::from_ne_bytes([byte]);
    }
    chars
}

/// A time-out of the header, in nanoseconds.
#[must_use]
pub const fn timeout_ns(ms: u32) -> u64 {
    if ms == INFINITE_MS { u64::MAX } else { ms as u64 * 1_000_000 }
}
