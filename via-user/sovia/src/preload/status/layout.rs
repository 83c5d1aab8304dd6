//! Where what is in the file: a page for the process and its sums, and a record for each connection.
//!
//! All fields are double words of this machine, but for texts (a length, and as many bytes), addresses, and
//! what each call counts: its bytes and credits are little-endian, as [`DmaMemory::line`] has them.
//! A file belongs to one build of the library and the command, by [`MAGIC`]: another number for another
//! layout.

use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::Ordering;

use port::DmaMemory;

/// The first double word, stored when all others are there.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"viatop\x00\x01");

/// Bytes before the first record.
pub(super) const HEADER_BYTES: usize = 4096;
/// Bytes of a record: two lines for what the connection is, and one for each direction, which different
/// threads may write.
pub(super) const RECORD_BYTES: usize = 256;
/// Connections that have a record.
pub(super) const RECORDS: usize = 256;
/// Bytes of a file.
pub(super) const FILE_BYTES: usize = HEADER_BYTES + RECORDS * RECORD_BYTES;

/// Offsets in the first page.
pub(super) mod header {
    pub(in super::super) const MAGIC: usize = 0;
    pub(in super::super) const PROCESS: usize = 8;
    pub(in super::super) const STARTED: usize = 16;
    pub(in super::super) const IMAGE: usize = 24;
    /// Who adds up; 0 if nobody does.
    pub(in super::super) const RUN: usize = 32;
    pub(in super::super) const RUN_STARTED: usize = 40;
    /// Connections that were seen.
    pub(in super::super) const CONNECTIONS: usize = 48;
    /// Those that moved.
    pub(in super::super) const MOVED: usize = 56;
    /// Bytes by VIA of those that are closed.
    pub(in super::super) const SENT: usize = 64;
    pub(in super::super) const RECEIVED: usize = 72;
    /// Connections now that have no record.
    pub(in super::super) const UNLISTED: usize = 80;
    /// Serial number of the last record.
    pub(in super::super) const SERIAL: usize = 88;
    /// Records that were ever used: the pages of others are never touched.
    pub(in super::super) const USED: usize = 96;
    pub(in super::super) const PROGRAM: usize = 128;
    pub(in super::super) const DEVICE: usize = 192;
    pub(in super::super) const NIC: usize = 320;
    pub(in super::super) const REASONS: usize = 512;
}

/// Room of a text, with its length.
pub(super) const NAME_BYTES: usize = 64;
/// The same for the URL of a device.
pub(super) const DEVICE_BYTES: usize = 128;

/// Reasons of connections that stay TCP, or go back. The last one stands for all that found no room.
pub(super) const REASONS: usize = 28;
/// Bytes of a reason.
pub(super) const REASON_BYTES: usize = 128;

/// Offsets in a reason.
pub(super) mod reason {
    /// 0: free; 1: being written; 2: there.
    pub(in super::super) const STATE: usize = 0;
    /// Connections that stay.
    pub(in super::super) const STAYS: usize = 8;
    /// Connections that went back.
    pub(in super::super) const BACKS: usize = 16;
    pub(in super::super) const TEXT: usize = 24;
    pub(in super::super) const TEXT_BYTES: usize = super::REASON_BYTES - TEXT;
}

/// Offsets in a record.
pub(super) mod record {
    pub(in super::super) const PHASE: usize = 0;
    pub(in super::super) const SERIAL: usize = 8;
    /// Seconds since 1970.
    pub(in super::super) const SINCE: usize = 16;
    /// Number of the reason, from 1.
    pub(in super::super) const REASON: usize = 24;
    pub(in super::super) const LOCAL: usize = 32;
    pub(in super::super) const PEER: usize = 56;
    pub(in super::super) const SENDS: usize = 128;
    pub(in super::super) const SENT: usize = 136;
    /// Credits, and the window in the upper half.
    pub(in super::super) const CREDITS: usize = 144;
    pub(in super::super) const RECEIVES: usize = 192;
    pub(in super::super) const RECEIVED: usize = 200;
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Phase {
    /// By TCP, and young.
    Plain = 2,
    /// This end has offered it; its other end has not, so far.
    Offered,
    /// It has a stream of VIA.
    Linked,
    /// It stays TCP.
    Stays,
    /// It was on VIA, and goes back to TCP.
    Left,
}

/// A record that nobody has.
pub(super) const FREE: u64 = 0;
/// One that is being written.
pub(super) const TAKEN: u64 = 1;

impl Phase {
    /// None: there is no connection.
    pub(super) const fn of(word: u64) -> Option<Self> {
        Some(match word {
            2 => Self::Plain,
            3 => Self::Offered,
            4 => Self::Linked,
            5 => Self::Stays,
            6 => Self::Left,
            _ => return None,
        })
    }

    /// Why a connection that ends in this phase did not move, if nothing else is known.
    #[must_use]
    pub const fn why_unmoved(self) -> Option<&'static str> {
        match self {
            Self::Plain => Some("it was over before its fourth call"),
            Self::Offered => Some("nobody has offered its other end"),
            _ => None,
        }
    }
}

/// How far a direction of a connection is that has a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Direction {
    /// By TCP, so far.
    Tcp,
    /// Where it moves is settled.
    Moving,
    /// By VIA.
    Via,
    /// By VIA no more.
    Over,
}

impl Direction {
    pub(super) const fn of(word: u64) -> Self {
        match word {
            1 => Self::Moving,
            2 => Self::Via,
            3 => Self::Over,
            _ => Self::Tcp,
        }
    }
}

/// A field. What it says alone needs no order.
#[inline]
pub(super) fn load(memory: &DmaMemory, at: usize) -> u64 {
    memory.atomic_u64(at).load(Ordering::Relaxed)
}

/// See [`load`].
#[inline]
pub(super) fn store(memory: &DmaMemory, at: usize, value: u64) {
    memory.atomic_u64(at).store(value, Ordering::Relaxed);
}

/// More for a counter of which several threads may know.
pub(super) fn add(memory: &DmaMemory, at: usize, more: u64) {
    memory.atomic_u64(at).fetch_add(more, Ordering::Relaxed);
}

/// As much of a text as there is room for, in whole characters.
pub(super) fn store_text(memory: &DmaMemory, at: usize, room: usize, text: &str) {
    let text = &text.as_bytes()[..text.floor_char_boundary(room - 8)];
    memory.copy_from(at + 8, text);
    memory.atomic_u64(at).store(text.len() as u64, Ordering::Release);
}

pub(super) fn load_text(memory: &DmaMemory, at: usize, room: usize) -> String {
    let length = memory.atomic_u64(at).load(Ordering::Acquire);
    let length = usize::try_from(length).unwrap_or(0).min(room - 8);
    String::from_utf8_lossy(&memory.to_vec(at + 8, length)).into_owned()
}

/// 16 bytes of the address, and the port.
pub(super) fn store_end(memory: &DmaMemory, at: usize, end: SocketAddr) {
    let address = match end.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    memory.copy_from(at, &address.octets());
    store(memory, at + 16, end.port().into());
}

pub(super) fn load_end(memory: &DmaMemory, at: usize) -> SocketAddr {
    let mut address = [0; 16];
    memory.copy_to(at, &mut address);
    let port = u16::try_from(load(memory, at + 16)).unwrap_or(0);
    SocketAddr::new(IpAddr::from(address).to_canonical(), port)
}

/// Where a reason is.
pub(super) const fn reason_at(index: usize) -> usize {
    header::REASONS + index * REASON_BYTES
}

/// Records that were ever used.
pub(super) fn used(memory: &DmaMemory) -> usize {
    let used = memory.atomic_u64(header::USED).load(Ordering::Acquire);
    usize::try_from(used).unwrap_or(0).min(RECORDS)
}

/// Where a record is.
pub(super) const fn record_at(index: usize) -> usize {
    HEADER_BYTES + index * RECORD_BYTES
}

const _: () = {
    assert!(reason_at(REASONS) <= HEADER_BYTES);
    assert!(header::PROGRAM + NAME_BYTES <= header::DEVICE);
    assert!(header::DEVICE + DEVICE_BYTES <= header::NIC);
    assert!(header::NIC + NAME_BYTES <= header::REASONS);
    assert!(record::PEER + 24 <= record::SENDS && record::RECEIVED + 8 <= RECORD_BYTES);
};
