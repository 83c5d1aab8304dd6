//! The admin ring: typed commands, each waited for.

use std::sync::{Arc, Mutex};

use nic_regs::admin::{AdminStatus, DONE, ENTRY_BYTES, NO_QUEUE, Opcode, PeerState};
use nic_regs::csr;
use nic_regs::tpt::Region;
use nic_regs::vi::{Reliability, rdma};

use crate::bus::{Bus, REGISTER_BAR, Wait};
use crate::dma::DmaMemory;
use crate::error::{Error, Result};
use crate::presence::Presence;
use crate::sync::lock_relaxed;
use port::connection::Message;

/// Log2 of the entries of the ring. One command runs at a time; the ring has more so that each
/// entry is used seldom.
const LOG2: u32 = 4;
/// Dwords of an entry.
const ENTRY_DWORDS: usize = 16;
const _: () = assert!(4 * ENTRY_DWORDS as u64 == ENTRY_BYTES);

/// The admin ring of a NIC.
pub struct Admin {
    bus: Arc<dyn Bus>,
    presence: Arc<Presence>,
    memory: DmaMemory,
    bus_address: u64,
    /// Bound of a command, in nanoseconds of the bus.
    bound_ns: u64,
    /// Commands issued so far. Held until the command is done.
    tail: Mutex<u16>,
}

impl core::fmt::Debug for Admin {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Admin({:?})", self.tail)
    }
}

/// What a VI is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViSetup {
    /// Owning domain.
    pub domain: u8,
    /// Reliability level.
    pub reliability: Reliability,
    /// Protection tag.
    pub tag: u16,
    /// Event queue of the send queue.
    pub send_queue: Option<u16>,
    /// Event queue of the receive queue.
    pub recv_queue: Option<u16>,
    /// Longest message, in bytes.
    pub max_transfer: u32,
    /// RDMA that it allows, see [`nic_regs::vi::rdma`].
    pub allows: u32,
}

/// What an event queue is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSetup {
    /// Bus address of the ring.
    pub base: u64,
    /// Log2 of the entries, 2 to 15.
    pub log2: u8,
    /// Entries hold messages.
    pub wide: bool,
    /// Owning domain.
    pub domain: u8,
    /// MSI-X vector.
    pub vector: u8,
}

const fn low(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}

const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

impl Admin {
    /// Gives the device a ring. It must be reset, ready and not yet enabled. A command that is not
    /// done after `bound_ns` costs the card.
    ///
    /// # Errors
    /// If there is no memory for the ring.
    pub fn new(bus: Arc<dyn Bus>, presence: Arc<Presence>, bound_ns: u64) -> Result<Self> {
        let memory = DmaMemory::new((4 * ENTRY_DWORDS) << LOG2)?;
        let bus_address = bus.map(&memory)?;
        let write = |offset: u32, value| bus.write32(REGISTER_BAR, offset.into(), value);
        write(csr::ADMIN_BASE_LO::OFFSET, low(bus_address));
        write(csr::ADMIN_BASE_HI::OFFSET, high(bus_address));
        let size = csr::ADMIN_SIZE::RESET.with(csr::ADMIN_SIZE::LOG2, LOG2);
        write(csr::ADMIN_SIZE::OFFSET, size.0);
        Ok(Self { bus, presence, memory, bus_address, bound_ns, tail: Mutex::new(0) })
    }

    /// The bus to the device.
    pub(crate) fn bus(&self) -> &dyn Bus {
        &*self.bus
    }

    /// Issues a command and waits for its result.
    ///
    /// # Errors
    /// [`Error::Command`] with the device's status; [`Error::Absent`] if it does not answer;
    /// [`Error::TimedOut`], after which the device was reset, and [`Error::Failed`] for good.
    pub fn execute(&self, opcode: Opcode, index: u32, body: &[u32]) -> Result<u32> {
        let command = name(opcode);
        let mut tail = lock_relaxed(&self.tail, &*self.bus, "the admin ring");
        self.presence.check(&*self.bus)?;
        let slot = u32::from(*tail) & ((1 << LOG2) - 1);
        let offset = slot as usize * 4 * ENTRY_DWORDS;
        let cookie = 0x5a00_0000 | u32::from(*tail);
        for i in 0..ENTRY_DWORDS {
            let word = match i {
                0 => opcode as u32,
                1 => index,
                2 => cookie,
                3 => 0,
                i => body.get(i - 4).copied().unwrap_or(0),
            };
            self.memory.store_u32(offset + 4 * i, word);
        }
        *tail = tail.wrapping_add(1);
        let issued = csr::ADMIN_TAIL(u32::from(*tail));
        self.bus.write32(REGISTER_BAR, csr::ADMIN_TAIL::OFFSET.into(), issued.0);

        let bound_ns = self.bound_ns;
        let end = self.bus.now_ns().saturating_add(bound_ns);
        while self.memory.load_u32(offset + 12) != DONE {
            self.presence.check(&*self.bus)?;
            // This thread may have stood still between the two.
            if self.bus.now_ns() >= end && self.memory.load_u32(offset + 12) != DONE {
                self.presence.fail(&*self.bus);
                return Err(Error::TimedOut { what: command, index, bound_ns });
            }
            self.bus.relax(Wait::bounded(command, index));
        }
        let status = self.memory.load_u32(offset);
        let echoed = self.memory.load_u32(offset + 8);
        match AdminStatus::from_bits(status) {
            Some(AdminStatus::Ok) if echoed == cookie => Ok(self.memory.load_u32(offset + 4)),
            Some(status) if echoed == cookie => Err(Error::Command { command, index, status }),
            _ => Err(Error::BadCompletion { command, index, status, cookie: echoed }),
        }
    }

    /// The same for a command that takes something back: a card that is absent, or that was reset
    /// because it did not carry out a command, has nothing any more.
    fn take_back(&self, opcode: Opcode, index: u32) -> Result<()> {
        match self.execute(opcode, index, &[]) {
            Err(_) if self.presence.is_lost() => Ok(()),
            done => done.map(drop),
        }
    }

    /// Sets region `index`.
    ///
    /// # Errors
    /// As [`Admin::execute`]; so for the other commands.
    pub fn region_set(&self, index: u16, region: Region) -> Result<()> {
        let body = [
            low(region.va_base),
            high(region.va_base),
            low(region.bus_base),
            high(region.bus_base),
            region.length,
            u32::from(region.tag) | u32::from(region.generation) << 16,
            u32::from(region.domain) | u32::from(region.rights) << 8,
        ];
        self.execute(Opcode::RegionSet, index.into(), &body).map(drop)
    }

    /// Clears region `index`: afterwards the device does not touch it any more.
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn region_clear(&self, index: u16) -> Result<()> {
        self.take_back(Opcode::RegionClear, index.into())
    }

    /// Creates VI `vi`.
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn vi_create(&self, vi: u16, setup: ViSetup) -> Result<()> {
        let queue = |queue: Option<u16>| u32::from(queue.unwrap_or(NO_QUEUE));
        let body = [
            u32::from(setup.domain) | (setup.reliability as u32) << 8 | u32::from(setup.tag) << 16,
            queue(setup.send_queue) | queue(setup.recv_queue) << 16,
            setup.max_transfer,
            setup.allows,
        ];
        self.execute(Opcode::ViCreate, vi.into(), &body).map(drop)
    }

    /// Destroys VI `vi`.
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn vi_destroy(&self, vi: u16) -> Result<()> {
        self.take_back(Opcode::ViDestroy, vi.into())
    }

    /// Connects VI `vi` to another node's VI, which `allows` RDMA as in [`nic_regs::vi::rdma`].
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn vi_connect(
        &self,
        vi: u16,
        node: u8,
        remote_vi: u16,
        connection: u16,
        allows: u32,
    ) -> Result<()> {
        let word = u32::from(connection) | allows << rdma::PEER_LSB;
        let body = [u32::from(node) | u32::from(remote_vi) << 16, word];
        self.execute(Opcode::ViConnect, vi.into(), &body).map(drop)
    }

    /// Stops VI `vi`, fenced; it is then Idle with empty queues.
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn vi_disconnect(&self, vi: u16) -> Result<()> {
        self.take_back(Opcode::ViDisconnect, vi.into())
    }

    /// State of VI `vi`, as `Opcode::ViQuery` lays it out.
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn vi_query(&self, vi: u16) -> Result<u32> {
        self.execute(Opcode::ViQuery, vi.into(), &[])
    }

    /// Creates event queue `queue`.
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn event_create(&self, queue: u16, setup: EventSetup) -> Result<()> {
        let shape = u32::from(setup.log2)
            | u32::from(setup.wide) << 4
            | u32::from(setup.domain) << 8
            | u32::from(setup.vector) << 16;
        let body = [low(setup.base), high(setup.base), shape];
        self.execute(Opcode::EventCreate, queue.into(), &body).map(drop)
    }

    /// Destroys event queue `queue`.
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn event_destroy(&self, queue: u16) -> Result<()> {
        self.take_back(Opcode::EventDestroy, queue.into())
    }

    /// Opens the channel to `node`.
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn peer_open(&self, node: u8, epoch: u32, credits: u8) -> Result<()> {
        self.execute(Opcode::PeerOpen, node.into(), &[epoch, credits.into()]).map(drop)
    }

    /// Closes the channel to `node`.
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn peer_close(&self, node: u8) -> Result<()> {
        self.take_back(Opcode::PeerClose, node.into())
    }

    /// State of the channel to `node`.
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn peer_state(&self, node: u8) -> Result<PeerState> {
        let states = [PeerState::Opening, PeerState::Open];
        let bits = self.execute(Opcode::PeerQuery, node.into(), &[])? & 0xf;
        Ok(states.into_iter().find(|s| *s as u32 == bits).unwrap_or(PeerState::Closed))
    }

    /// Sends 48 bytes to a domain of `node`.
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn message_send(&self, node: u8, domain: u8, message: &Message) -> Result<()> {
        let mut body = [0; 12];
        for (word, bytes) in body.iter_mut().zip(message.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let index = u32::from(node) | u32::from(domain) << 8;
        self.execute(Opcode::MessageSend, index, &body).map(drop)
    }

    /// Binds the messages of `domain` to an event queue.
    ///
    /// # Errors
    /// As [`Admin::execute`].
    pub fn message_queue(&self, domain: u8, queue: Option<u16>) -> Result<()> {
        let queue = u32::from(queue.unwrap_or(NO_QUEUE));
        self.execute(Opcode::MessageQueue, domain.into(), &[queue]).map(drop)
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.bus.unmap(self.bus_address);
    }
}

const fn name(opcode: Opcode) -> &'static str {
    match opcode {
        Opcode::Nop => "Nop",
        Opcode::RegionSet => "RegionSet",
        Opcode::RegionClear => "RegionClear",
        Opcode::ViCreate => "ViCreate",
        Opcode::ViDestroy => "ViDestroy",
        Opcode::ViConnect => "ViConnect",
        Opcode::ViDisconnect => "ViDisconnect",
        Opcode::ViQuery => "ViQuery",
        Opcode::EventCreate => "EventCreate",
        Opcode::EventDestroy => "EventDestroy",
        Opcode::PeerOpen => "PeerOpen",
        Opcode::PeerClose => "PeerClose",
        Opcode::PeerQuery => "PeerQuery",
        Opcode::MessageSend => "MessageSend",
        Opcode::MessageQueue => "MessageQueue",
    }
}
