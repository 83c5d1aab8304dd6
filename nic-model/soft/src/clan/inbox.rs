//! A VI's inbox: the memory that the VI at the other end stores into.
//!
//! ```text
//! 0        words, a line each: the transfer queue's write pointer, its read pointer as the peer
//!          returns it, the same two of the cookie queue
//! 4096     transfer queue, messages to this VI
//! 135168   cookie queue, the peer's receive descriptors
//! 266240   data of messages, up to 128 KiB
//! ```
//! Pages that nobody has touched take no memory, so an idle VI has few of them. Inboxes are cut from
//! memory that is allocated for many; each is a region by itself, open to one peer.

use std::sync::Mutex;

use port::clan::message_queue::Layout;
use port::clan::{AccessRights, ClanPeer, ClanPort, Cookie, RegionNumber};
use port::memory::PAGE_BYTES;
use port::sync::lock;
use port::{DmaMemory, Result};

/// Slots of each queue: for the receives of a full queue, and as many messages that need none.
const SLOTS: usize = 2048;
/// The write pointer of the transfer queue, which tripwires watch.
pub(super) const WRITTEN: usize = 0;
/// The queue of messages to the owner of the inbox.
pub(super) const TRANSFER: Layout =
    Layout { slots: PAGE_BYTES, count: SLOTS, written: Some(WRITTEN), read: 64 };
/// The write pointer of the cookie queue, for peers that wait for receives.
pub(super) const OFFERED: usize = 128;
/// The queue of the peer's receive descriptors.
pub(super) const COOKIES: Layout =
    Layout { slots: PAGE_BYTES + 64 * SLOTS, count: SLOTS, written: None, read: 192 };
/// Where data of messages is.
pub(super) const DATA: usize = PAGE_BYTES + 2 * 64 * SLOTS;
/// Bytes of it.
pub(super) const DATA_BYTES: usize = 128 << 10;
const BYTES: usize = DATA + DATA_BYTES;
/// Inboxes that are allocated together.
const TOGETHER: usize = 64;

/// Memory for the inboxes of a node.
#[derive(Debug, Default)]
pub(super) struct Inboxes(Mutex<Vec<Space>>);

/// Memory of an inbox that is free, and the number that its queues begin with.
#[derive(Debug)]
struct Space {
    memory: DmaMemory,
    start: u64,
}

/// The inbox of a VI for one connection.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) memory: DmaMemory,
    region: RegionNumber,
    pub(super) cookie: Cookie,
    /// Messages of both queues are numbered from here on. Of an earlier use nothing is left with a
    /// larger number.
    pub(super) start: u64,
}

impl Inboxes {
    /// An inbox for a peer.
    ///
    /// # Errors
    /// No memory, no region.
    pub(super) fn take(&self, port: &dyn ClanPort, peer: &ClanPeer) -> Result<Inbox> {
        let space = {
            let mut free = lock(&self.0);
            if free.is_empty() {
                let memory = port.allocate(TOGETHER * BYTES)?;
                for i in 0..TOGETHER {
                    free.push(Space { memory: memory.slice(i * BYTES, BYTES)?, start: 0 });
                }
            }
            free.pop()
        };
        let no_memory = port::Error::OutOfMemory { bytes: BYTES };
        let Space { memory, start } = space.ok_or(no_memory)?;
        let region = port.register(&memory)?;
        let cookie = port.open(region, peer, AccessRights::WRITE)?;
        Ok(Inbox { memory, region, cookie, start })
    }

    /// Takes an inbox back, after which nobody stores into it. `end` is a number behind all that the
    /// queues of both ends have used.
    ///
    /// # Errors
    /// The peer does not confirm; the memory is not used again then.
    pub(super) fn give(&self, port: &dyn ClanPort, inbox: &Inbox, end: u64) -> Result<()> {
        port.deregister(inbox.region)?;
        lock(&self.0).push(Space { memory: inbox.memory.clone(), start: end });
        Ok(())
    }
}

impl Inbox {
    /// A number behind all that the peer may have used if nothing was taken: a queue is full then.
    pub(super) const fn end_if_unused(&self) -> u64 {
        self.start + SLOTS as u64 + 1
    }

    /// The region, for tripwires.
    pub(super) const fn region(&self) -> RegionNumber {
        self.region
    }
}
