//! Admin commands as values: decoded from an entry of the ring, with index and body checked.

use nic_regs::admin::{AdminStatus, ENTRY_BYTES, NO_QUEUE, Opcode};
use nic_regs::event::MESSAGE_BYTES;
use nic_regs::limits::{
    CREDITS_MAX, DOMAIN_COUNT, EVENT_QUEUE_COUNT, MAX_TRANSFER_BYTES, MSIX_VECTOR_COUNT,
    PEER_COUNT, REGION_COUNT, VI_COUNT,
};
use nic_regs::tpt::{RIGHT_RDMA_READ, RIGHT_RDMA_WRITE, RIGHT_VALID, Region};
use nic_regs::vi::{Reliability, rdma};

use crate::bits::{low8, low16, size};
use crate::event::EventQueue;
use crate::tpt::Owner;
use crate::vi::Remote;

/// A command whose index and body are in range; fields are named as in [`Opcode`].
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the commands of `Opcode`")]
pub enum Command {
    Nop,
    RegionSet {
        index: u16,
        region: Region,
    },
    RegionClear {
        index: u16,
    },
    ViCreate {
        index: u16,
        owner: Owner,
        level: Reliability,
        event_queues: [u16; 2],
        max_transfer: u32,
        /// The RDMA word, see [`rdma`].
        allows: u32,
    },
    ViDestroy {
        index: u16,
    },
    ViConnect {
        index: u16,
        remote: Remote,
    },
    ViDisconnect {
        index: u16,
    },
    ViQuery {
        index: u16,
    },
    EventCreate {
        index: u16,
        queue: EventQueue,
    },
    EventDestroy {
        index: u16,
    },
    PeerOpen {
        node: u8,
        epoch: u32,
        credits: u8,
    },
    PeerClose {
        node: u8,
    },
    PeerQuery {
        node: u8,
    },
    MessageSend {
        node: u8,
        domain: u8,
        text: [u8; size(MESSAGE_BYTES)],
    },
    MessageQueue {
        domain: u16,
        queue: u16,
    },
}

/// An entry of the ring.
struct Entry([u32; size(ENTRY_BYTES) / 4]);

impl Entry {
    /// The index, which must be below `count`.
    fn index(&self, count: usize) -> Result<u16, AdminStatus> {
        let index = self.0[1];
        if (index as usize) < count { Ok(low16(index)) } else { Err(AdminStatus::BadIndex) }
    }

    /// The index of a peer.
    fn node(&self) -> Result<u8, AdminStatus> {
        Ok(low8(self.index(PEER_COUNT)?.into()))
    }

    fn byte(&self, word: usize, at: u32) -> u8 {
        low8(self.0[word] >> (8 * at))
    }

    fn half(&self, word: usize, at: u32) -> u16 {
        low16(self.0[word] >> (16 * at))
    }

    fn wide(&self, low: usize) -> u64 {
        u64::from(self.0[low]) | u64::from(self.0[low + 1]) << 32
    }
}

/// The body of a command is in range.
fn argument(good: bool) -> Result<(), AdminStatus> {
    if good { Ok(()) } else { Err(AdminStatus::BadArgument) }
}

/// A field may name this event queue, or none.
fn queue_or_none(queue: u16) -> bool {
    usize::from(queue) < EVENT_QUEUE_COUNT || queue == NO_QUEUE
}

fn is_domain(domain: u8) -> bool {
    usize::from(domain) < DOMAIN_COUNT
}

impl Command {
    /// Decodes an entry: sections 1.3 and 1.4.
    ///
    /// # Errors
    /// BadOpcode, BadIndex or BadArgument, whatever comes first.
    pub fn decode(bytes: &[u8; size(ENTRY_BYTES)]) -> Result<Self, AdminStatus> {
        let (dwords, _) = bytes.as_chunks::<4>();
        let e = Entry(core::array::from_fn(|i| u32::from_le_bytes(dwords[i])));
        let opcode = Opcode::from_bits(e.0[0]).ok_or(AdminStatus::BadOpcode)?;
        Ok(match opcode {
            Opcode::Nop => Self::Nop,
            Opcode::RegionSet => region_set(&e)?,
            Opcode::RegionClear => Self::RegionClear { index: e.index(REGION_COUNT)? },
            Opcode::ViCreate => vi_create(&e)?,
            Opcode::ViDestroy => Self::ViDestroy { index: e.index(VI_COUNT)? },
            Opcode::ViConnect => {
                let index = e.index(VI_COUNT)?;
                let remote = Remote {
                    node: e.byte(4, 0),
                    vi: e.half(4, 1),
                    connection: e.half(5, 0),
                    allows: e.0[5] >> rdma::PEER_LSB,
                };
                argument(usize::from(remote.node) < PEER_COUNT)?;
                Self::ViConnect { index, remote }
            }
            Opcode::ViDisconnect => Self::ViDisconnect { index: e.index(VI_COUNT)? },
            Opcode::ViQuery => Self::ViQuery { index: e.index(VI_COUNT)? },
            Opcode::EventCreate => event_create(&e)?,
            Opcode::EventDestroy => Self::EventDestroy { index: e.index(EVENT_QUEUE_COUNT)? },
            Opcode::PeerOpen => {
                let (node, credits) = (e.node()?, e.byte(5, 0));
                argument((1..=CREDITS_MAX).contains(&usize::from(credits)))?;
                Self::PeerOpen { node, epoch: e.0[4], credits }
            }
            Opcode::PeerClose => Self::PeerClose { node: e.node()? },
            Opcode::PeerQuery => Self::PeerQuery { node: e.node()? },
            Opcode::MessageSend => {
                let (node, domain) = (e.byte(1, 0), e.byte(1, 1));
                if usize::from(node) >= PEER_COUNT || !is_domain(domain) {
                    return Err(AdminStatus::BadIndex);
                }
                let mut text = [0; size(MESSAGE_BYTES)];
                text.copy_from_slice(&bytes[16..]);
                Self::MessageSend { node, domain, text }
            }
            Opcode::MessageQueue => {
                let (domain, queue) = (e.index(DOMAIN_COUNT)?, e.half(4, 0));
                argument(queue_or_none(queue))?;
                Self::MessageQueue { domain, queue }
            }
        })
    }
}

fn region_set(e: &Entry) -> Result<Command, AdminStatus> {
    let index = e.index(REGION_COUNT)?;
    let region = Region {
        va_base: e.wide(4),
        bus_base: e.wide(6),
        length: e.0[8],
        tag: e.half(9, 0),
        generation: e.half(9, 1),
        domain: e.byte(10, 0),
        rights: e.byte(10, 1),
    };
    let known = RIGHT_VALID | RIGHT_RDMA_WRITE | RIGHT_RDMA_READ;
    argument(region.length != 0)?;
    argument(region.rights & RIGHT_VALID != 0 && region.rights & !known == 0)?;
    argument(is_domain(region.domain) && region.generation != 0)?;
    argument(region.va_base % 4096 == region.bus_base % 4096)?;
    for base in [region.va_base, region.bus_base] {
        argument(base.checked_add(u64::from(region.length) - 1).is_some())?;
    }
    Ok(Command::RegionSet { index, region })
}

fn vi_create(e: &Entry) -> Result<Command, AdminStatus> {
    let index = e.index(VI_COUNT)?;
    let owner = Owner { tag: e.half(4, 1), domain: e.byte(4, 0) };
    let (event_queues, max_transfer) = ([e.half(5, 0), e.half(5, 1)], e.0[6]);
    let level = Reliability::from_bits(e.byte(4, 1).into()).ok_or(AdminStatus::BadArgument)?;
    argument(is_domain(owner.domain) && event_queues.into_iter().all(queue_or_none))?;
    argument((1..=MAX_TRANSFER_BYTES).contains(&max_transfer))?;
    Ok(Command::ViCreate { index, owner, level, event_queues, max_transfer, allows: e.0[7] })
}

fn event_create(e: &Entry) -> Result<Command, AdminStatus> {
    let index = e.index(EVENT_QUEUE_COUNT)?;
    let queue = EventQueue {
        exists: true,
        base: e.wide(4),
        log2: e.0[6] & 0xf,
        wide: e.0[6] >> 4 & 1 == 1,
        domain: e.byte(6, 1),
        vector: e.byte(6, 2),
        ..EventQueue::default()
    };
    argument((2..=15).contains(&queue.log2) && is_domain(queue.domain))?;
    argument(usize::from(queue.vector) < MSIX_VECTOR_COUNT)?;
    argument(queue.base.is_multiple_of(64))?;
    Ok(Command::EventCreate { index, queue })
}
