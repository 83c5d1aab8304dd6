//! A client of one NIC: its messages and what they do.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nic_regs::counter::Counter;
use nic_regs::csr;
use nic_regs::limits::MSIX_VECTOR_COUNT;
use nic_regs::pci::MSIX_PENDING_OFFSET;
use vfio_user::protocol::{
    Command, DATA_MAX, DeviceInfo, DmaMap, DmaUnmap, Header, IrqInfo, RegionAccess, RegionInfo,
    SetIrqs, VERSION, Version, busy_reply, errno, error_reply, farewell, flag, irq, message,
    region,
};
use vfio_user::socket::{Inbox, Message, Received, send};

use super::engine::Engine;
use super::notifier::is_eventfd;
use super::pci::CONFIG_BYTES;

/// Messages of one client that are handled in one turn, so that the others get theirs.
const TURN_MESSAGES: usize = 64;
/// Cycles that they may take; a reset takes thousands.
const TURN_CYCLES: u64 = 4_096;

/// See the module.
#[derive(Debug)]
pub(super) struct Client {
    socket: UnixStream,
    inbox: Inbox,
    pub(super) node: usize,
    /// Its process, as the kernel says.
    process: u32,
    /// It said VERSION, and the NIC is its own.
    pub(super) is_owner: bool,
    /// It said VERSION, and only looks.
    is_observer: bool,
    /// Something has come.
    pub(super) is_ready: bool,
    /// Nobody is at the other end any more.
    pub(super) is_destroyed: bool,
}

impl Client {
    pub(super) fn new(socket: UnixStream, node: usize, process: u32) -> Self {
        Self {
            socket,
            inbox: Inbox::default(),
            node,
            process,
            is_owner: false,
            is_observer: false,
            is_ready: false,
            is_destroyed: false,
        }
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Handles what has come. False if the client is to go.
    pub(super) fn handle(&mut self, engine: &mut Engine) -> bool {
        let end = engine.now() + TURN_CYCLES;
        for _ in 0..TURN_MESSAGES {
            if engine.now() >= end {
                return true;
            }
            match self.inbox.receive(self.socket.as_fd(), false) {
                Ok(Received::Message(command)) => {
                    if !self.command(engine, command) {
                        return false;
                    }
                }
                Ok(Received::Pending) => return true,
                Ok(Received::Malformed(header, why)) => {
                    // Where the next message begins is not known: this is the last one.
                    let _ = send(self.socket.as_fd(), &error_reply(header, why), &[], false);
                    return false;
                }
                Ok(Received::Closed) | Err(_) => return false,
            }
        }
        true
    }

    /// Reports to the client why it loses the NIC.
    pub(super) fn say_farewell(&self, why: &str) {
        // A client that does not take it finds the connection closed.
        let _ = send(self.socket.as_fd(), &farewell(why), &[], false);
    }

    fn command(&mut self, engine: &mut Engine, command: Message) -> bool {
        let header = command.header;
        if header.is_reply() {
            // Nothing was asked on this socket.
            return true;
        }
        let was_known = self.is_owner || self.is_observer;
        let result = self.answer(engine, command);
        // The first message must agree on the version.
        let stays = was_known || result.is_ok();
        if !header.wants_reply() {
            return stays;
        }
        let Header { id, command, .. } = header;
        let bytes = match result {
            Ok(payload) => message(id, command, flag::REPLY, &[&payload]),
            Err(errno::BUSY) => busy_reply(header, engine.function(self.node).owner.unwrap_or(0)),
            Err(errno) => error_reply(header, errno),
        };
        // A client that does not take its answers has no room for more at some time.
        send(self.socket.as_fd(), &bytes, &[], false).is_ok() && stays
    }

    fn answer(&mut self, engine: &mut Engine, command: Message) -> Result<Vec<u8>, u32> {
        let Message { header, payload, mut fds } = command;
        let number = Command::from_bits(header.command);
        if self.is_observer {
            return match number {
                Some(Command::RegionRead) => self.observe(engine, &payload),
                _ => Err(errno::INVALID),
            };
        }
        if !self.is_owner {
            return match number {
                Some(Command::Version) => self.version(engine, &payload),
                _ => Err(errno::INVALID),
            };
        }
        let host = &mut engine.function(self.node).host;
        match number {
            Some(Command::DmaMap) => {
                let map = DmaMap::parse(&payload).ok_or(errno::INVALID)?;
                if fds.len() > 1 || map.flags & !3 != 0 {
                    return Err(errno::INVALID);
                }
                host.map(map, fds.pop()).map(|()| Vec::new())
            }
            Some(Command::DmaUnmap) => {
                let unmap = DmaUnmap::parse(&payload).ok_or(errno::INVALID)?;
                host.unmap(unmap)?;
                Ok(unmap.to_bytes())
            }
            Some(Command::DeviceInfo) => {
                DeviceInfo::parse(&payload).ok_or(errno::INVALID)?;
                let (regions, irqs) = (region::COUNT, irq::COUNT);
                Ok(DeviceInfo { flags: DeviceInfo::PCI, regions, irqs }.to_bytes())
            }
            Some(Command::RegionInfo) => region_info(&payload),
            Some(Command::IrqInfo) => irq_info(&payload),
            Some(Command::SetIrqs) => self.set_irqs(engine, &payload, fds),
            Some(Command::RegionRead) => self.region_read(engine, &payload),
            Some(Command::RegionWrite) => self.region_write(engine, &payload),
            Some(Command::Reset) => {
                engine.reset(self.node);
                Ok(Vec::new())
            }
            Some(Command::Version) => Err(errno::INVALID),
            None => Err(errno::NOT_SUPPORTED),
        }
    }

    /// The client introduces itself; the NIC is its own from here on, and as after power-on. An
    /// observer's is not.
    fn version(&mut self, engine: &mut Engine, payload: &[u8]) -> Result<Vec<u8>, u32> {
        let theirs = Version::parse(payload).ok_or(errno::INVALID)?;
        let (major, minor) = theirs.version;
        if major != VERSION.0 {
            return Err(errno::PROTOCOL);
        }
        let owner = engine.function(self.node).owner;
        let own = Version { version: (major, minor.min(VERSION.1)), ..Version::OWN };
        if theirs.observer {
            self.is_observer = true;
            return Ok(Version { observer: true, owner, ..own }.to_bytes());
        }
        if owner.is_some() {
            return Err(errno::BUSY);
        }
        engine.reset(self.node);
        engine.own(self.node, self.process);
        self.is_owner = true;
        Ok(own.to_bytes())
    }

    fn set_irqs(
        &self,
        engine: &mut Engine,
        payload: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<Vec<u8>, u32> {
        let set = SetIrqs::parse(payload).ok_or(errno::INVALID)?;
        let place = |number: u32| usize::try_from(number).map_err(|_| errno::INVALID);
        let (start, count) = (place(set.start)?, place(set.count)?);
        if set.index >= irq::COUNT || set.flags & irq::ACTION_BITS != irq::ACTION_TRIGGER {
            return Err(errno::INVALID);
        }
        let host = &mut engine.function(self.node).host;
        let data = set.flags & irq::DATA_BITS;
        if count == 0 && data == irq::DATA_NONE {
            if set.index == irq::MSIX {
                (0..MSIX_VECTOR_COUNT).for_each(|vector| host.set_vector(vector, None));
            }
            return Ok(Vec::new());
        }
        if set.index != irq::MSIX || start + count > MSIX_VECTOR_COUNT || count == 0 {
            return Err(errno::INVALID);
        }
        match data {
            irq::DATA_EVENTFD if fds.is_empty() => {
                (start..start + count).for_each(|vector| host.set_vector(vector, None));
            }
            irq::DATA_EVENTFD if fds.len() == count && fds.iter().all(is_eventfd) => {
                (start..).zip(fds).for_each(|(vector, fd)| host.set_vector(vector, Some(fd)));
                engine.program_vectors(self.node, start..start + count);
            }
            irq::DATA_NONE => (start..start + count).for_each(|vector| host.raise(vector)),
            irq::DATA_BOOL if set.data.len() >= count => {
                let raised = (start..).zip(&set.data[..count]).filter(|(_, bool)| **bool != 0);
                raised.for_each(|(vector, _)| host.raise(vector));
            }
            _ => return Err(errno::INVALID),
        }
        Ok(Vec::new())
    }

    /// A read of what an observer may see.
    fn observe(&self, engine: &mut Engine, payload: &[u8]) -> Result<Vec<u8>, u32> {
        let access = RegionAccess::parse(payload, false).ok_or(errno::INVALID)?;
        let is_seen = match access.region {
            region::CONFIG => true,
            region::BAR0 => access.count == 4 && is_observable(access.offset),
            _ => false,
        };
        if is_seen { self.region_read(engine, payload) } else { Err(errno::INVALID) }
    }

    fn region_read(&self, engine: &mut Engine, payload: &[u8]) -> Result<Vec<u8>, u32> {
        let access = RegionAccess::parse(payload, false).ok_or(errno::INVALID)?;
        let length = check_access(access)?;
        let mut data = Vec::with_capacity(length);
        match access.region {
            region::CONFIG => {
                let offset = usize::try_from(access.offset).map_err(|_| errno::INVALID)?;
                data.extend_from_slice(engine.function(self.node).config.read(offset, length));
            }
            region::BAR0 if access.offset >= u64::from(MSIX_PENDING_OFFSET) => {
                data.resize(length, 0);
            }
            bar => {
                let bar = u8::try_from(bar).map_err(|_| errno::INVALID)?;
                let piece = if length <= 8 { length.max(1) } else { 4 };
                while data.len() < length {
                    let take = piece.min(length - data.len());
                    let at = access.offset + data.len() as u64;
                    let value = engine.read(self.node, bar, at, take)?;
                    data.extend_from_slice(&value.to_le_bytes()[..take]);
                }
            }
        }
        Ok([&access.head()[..], &data].concat())
    }

    fn region_write(&self, engine: &mut Engine, payload: &[u8]) -> Result<Vec<u8>, u32> {
        let access = RegionAccess::parse(payload, true).ok_or(errno::INVALID)?;
        check_access(access)?;
        if access.region == region::CONFIG {
            let offset = usize::try_from(access.offset).map_err(|_| errno::INVALID)?;
            if engine.function(self.node).config.write(offset, access.data) {
                engine.reset(self.node);
            }
        } else {
            let bar = u8::try_from(access.region).map_err(|_| errno::INVALID)?;
            engine.write(self.node, bar, access.offset, access.data);
        }
        Ok(access.head().to_vec())
    }
}

/// Whether there is a register at this offset of BAR0 that says what the device is or how it does,
/// and that a read does not change.
fn is_observable(offset: u64) -> bool {
    let counters = u64::from(csr::COUNTER_OFFSET);
    let registers = 0..=u64::from(csr::STATUS::OFFSET);
    let counters = counters..counters + 4 * Counter::ALL.len() as u64;
    offset.is_multiple_of(4) && (registers.contains(&offset) || counters.contains(&offset))
}

/// Size of a region; 0: there is none.
fn region_size(index: u32) -> u64 {
    match index {
        region::BAR0 => csr::BAR_SIZE.into(),
        region::BAR2 => nic_regs::doorbell::BAR_SIZE,
        region::CONFIG => CONFIG_BYTES as u64,
        _ => 0,
    }
}

/// The length of an access that is inside its region.
fn check_access(access: RegionAccess<'_>) -> Result<usize, u32> {
    let length = usize::try_from(access.count).map_err(|_| errno::INVALID)?;
    let inside = access.offset + u64::from(access.count) <= region_size(access.region);
    if inside && length > 0 && length <= DATA_MAX.min(4096) {
        Ok(length)
    } else {
        Err(errno::INVALID)
    }
}

fn region_info(payload: &[u8]) -> Result<Vec<u8>, u32> {
    let RegionInfo { index, .. } = RegionInfo::parse(payload).ok_or(errno::INVALID)?;
    if index >= region::COUNT {
        return Err(errno::INVALID);
    }
    let size = region_size(index);
    let flags = if size > 0 { region::READ | region::WRITE } else { 0 };
    Ok(RegionInfo { flags, index, size }.to_bytes())
}

fn irq_info(payload: &[u8]) -> Result<Vec<u8>, u32> {
    let IrqInfo { index, .. } = IrqInfo::parse(payload).ok_or(errno::INVALID)?;
    if index >= irq::COUNT {
        return Err(errno::INVALID);
    }
    let vectors = u32::try_from(MSIX_VECTOR_COUNT).unwrap_or(0);
    let (flags, count) = if index == irq::MSIX { (irq::EVENTFD, vectors) } else { (0, 0) };
    Ok(IrqInfo { flags, index, count }.to_bytes())
}
