//! The host of a served NIC: the memory that its client gave it, and the client's interrupts.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use nic_regs::pci::{MSI_BASE, MSI_END};

use crate::simulation::host::IommuFault;
use host_driver::bus::vfio_user::protocol::{
    Command, DmaAccess, DmaMap, DmaUnmap, dma, errno, flag, message,
};
use host_driver::bus::vfio_user::socket::{Inbox, Received, send};
use host_driver::dma::DmaMemory;
use nic_model::device::{HostBus, HostReadError};
use nic_regs::limits::MSIX_VECTOR_COUNT;

use super::bell::Bell;
use super::budget::Budget;

/// Most mappings of a client.
const MAPPINGS_MAX: usize = 1 << 17;
/// Most accesses of a client's device that are told of when they fail; who fails once goes on to.
const FAULTS_MAX: u32 = 16;
/// Most windows of a client: with 64 clients half of what the system lets a process map.
const WINDOWS_MAX: usize = 512;
/// Most bytes in the windows of a client.
const MAPPED_MAX: u64 = 1 << 40;
/// Files are mapped in aligned pieces of this size, since clients map them in many small ones.
const WINDOW_BYTES: u64 = 64 << 20;
const PAGE_BYTES: u64 = 4096;
/// Why an access fails.
const WRAPS: &str = "it ends behind the last address";
const REFUSED: &str = "its client refused it";
const NO_WAY: &str = "its client gave that memory without a file that can be mapped (sealed against \
                      shrinking), and has no second socket for messages";

/// Memory that a client gave.
#[derive(Debug)]
struct Mapping {
    /// Its last address.
    last: u64,
    flags: u32,
    /// None: it is reached by message.
    memory: Option<Part>,
}

/// Where a mapping lies in a window.
#[derive(Debug)]
struct Part {
    window: u64,
    /// The window's memory and where in it the mapping begins.
    memory: DmaMemory,
    start: usize,
}

/// A part of a client's file that is mapped here.
#[derive(Debug)]
struct Window {
    file: (u64, u64),
    start: u64,
    memory: DmaMemory,
    /// Mappings that lie in it; it goes with the last one.
    uses: usize,
}

/// The socket for commands to the client.
#[derive(Debug)]
struct Twin {
    socket: UnixStream,
    inbox: Inbox,
    next_id: u16,
}

/// An access of the device that its client's memory did not allow, and why.
pub(super) type Fault = (IommuFault, &'static str);

/// See the module.
#[derive(Debug)]
pub(super) struct Host {
    mappings: BTreeMap<u64, Mapping>,
    /// By a number of their own.
    windows: BTreeMap<u64, Window>,
    next_window: u64,
    vectors: [Option<Arc<OwnedFd>>; MSIX_VECTOR_COUNT],
    bell: Arc<Bell>,
    twin: Option<Twin>,
    budget: Budget,
    /// The device did something that keeps its clock running.
    busy: bool,
    /// The client kept the server waiting.
    failed: bool,
    /// What went wrong since it was asked last; and how often with this client.
    faults: Vec<Fault>,
    fault_count: u32,
}

impl Host {
    pub(super) fn new(bell: Arc<Bell>) -> Self {
        Self {
            mappings: BTreeMap::new(),
            windows: BTreeMap::new(),
            next_window: 0,
            vectors: [const { None }; MSIX_VECTOR_COUNT],
            bell,
            twin: None,
            budget: Budget::new(Instant::now()),
            busy: false,
            failed: false,
            faults: Vec::new(),
            fault_count: 0,
        }
    }

    /// Accesses that failed since the last call; of each client only the first ones.
    pub(super) fn take_faults(&mut self) -> Vec<Fault> {
        core::mem::take(&mut self.faults)
    }

    fn fault(&mut self, address: u64, length: usize, write: bool, why: &'static str) {
        self.fault_count = self.fault_count.saturating_add(1);
        if self.fault_count <= FAULTS_MAX {
            self.faults.push((IommuFault { address, length, write }, why));
        }
    }

    /// Whether the device used its host since the last call.
    pub(super) fn take_busy(&mut self) -> bool {
        core::mem::take(&mut self.busy)
    }

    /// The client has to go. Why is told, whatever was told before.
    fn fail(&mut self) {
        self.failed = true;
        self.twin = None;
        self.fault_count = self.fault_count.min(FAULTS_MAX - 1);
    }

    /// Whether the client has to go.
    pub(super) const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Takes a socket for commands to the client.
    pub(super) fn set_twin(&mut self, socket: UnixStream) {
        self.twin = Some(Twin { socket, inbox: Inbox::default(), next_id: 0 });
    }

    /// Takes memory: of a file, or by message.
    ///
    /// # Errors
    /// The errno for the client.
    pub(super) fn map(&mut self, map: DmaMap, file: Option<OwnedFd>) -> Result<(), u32> {
        let last = map.address + (map.size - 1);
        let taken = self.mappings.range(..=last).next_back();
        if taken.is_some_and(|(_, other)| other.last >= map.address) {
            return Err(errno::EXIST);
        }
        if self.mappings.len() >= MAPPINGS_MAX {
            return Err(errno::NO_SPACE);
        }
        let memory = match file {
            Some(file) => self.open(&file, &map)?,
            None => None,
        };
        // Each piece is a message of its own, which all wait for. Emulators and our driver map pages.
        let whole = map.address.is_multiple_of(PAGE_BYTES) && map.size.is_multiple_of(PAGE_BYTES);
        if memory.is_none() && !whole {
            return Err(errno::INVALID);
        }
        self.mappings.insert(map.address, Mapping { last, flags: map.flags, memory });
        Ok(())
    }

    /// The file's part of a mapping. None for a file that might shrink, which is left to messages.
    fn open(&mut self, file: &OwnedFd, map: &DmaMap) -> Result<Option<Part>, u32> {
        let state = rustix::fs::fstat(file).map_err(|_| errno::INVALID)?;
        let id = (state.st_dev, state.st_ino);
        let size = u64::try_from(state.st_size).unwrap_or(0);
        let end = map.offset.checked_add(map.size).filter(|end| *end <= size);
        let end = end.ok_or(errno::INVALID)?;
        let has = |w: &Window| {
            w.file == id && w.start <= map.offset && end <= w.start + w.memory.len() as u64
        };
        let place = |start: u64| usize::try_from(map.offset - start).map_err(|_| errno::INVALID);
        if let Some((number, window)) = self.windows.iter_mut().find(|(_, window)| has(window)) {
            let start = place(window.start)?;
            window.uses += 1;
            return Ok(Some(Part { window: *number, memory: window.memory.clone(), start }));
        }
        let start = map.offset / WINDOW_BYTES * WINDOW_BYTES;
        let stop = end.checked_next_multiple_of(WINDOW_BYTES).unwrap_or(size).min(size);
        let mapped: u64 = self.windows.values().map(|window| window.memory.len() as u64).sum();
        if self.windows.len() >= WINDOWS_MAX || stop - start > MAPPED_MAX - mapped {
            return Err(errno::NO_SPACE);
        }
        let length = usize::try_from(stop - start).map_err(|_| errno::NO_SPACE)?;
        match DmaMemory::map_file(file.as_fd(), start, length) {
            Ok(memory) => {
                let number = self.next_window;
                self.next_window += 1;
                let window = Window { file: id, start, memory: memory.clone(), uses: 1 };
                self.windows.insert(number, window);
                Ok(Some(Part { window: number, memory, start: place(start)? }))
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            Err(error) => {
                let code = error.raw_os_error().and_then(|code| u32::try_from(code).ok());
                Err(code.unwrap_or(errno::INVALID))
            }
        }
    }

    /// Takes mappings away: all that lie in a range, which may hold none.
    ///
    /// # Errors
    /// The errno for the client: the range cuts a mapping.
    pub(super) fn unmap(&mut self, unmap: DmaUnmap) -> Result<(), u32> {
        if unmap.flags == dma::UNMAP_ALL {
            self.forget_memory();
            return Ok(());
        }
        if unmap.flags != 0 {
            return Err(errno::NOT_SUPPORTED);
        }
        let whole = unmap.size.checked_sub(1).and_then(|n| unmap.address.checked_add(n));
        let last = whole.ok_or(errno::INVALID)?;
        let before = self.mappings.range(..unmap.address).next_back();
        if before.is_some_and(|(_, mapping)| mapping.last >= unmap.address)
            || self.mappings.range(unmap.address..=last).any(|(_, mapping)| mapping.last > last)
        {
            return Err(errno::INVALID);
        }
        let gone: Vec<u64> =
            self.mappings.range(unmap.address..=last).map(|(start, _)| *start).collect();
        for start in &gone {
            let part = self.mappings.remove(start).and_then(|mapping| mapping.memory);
            if let Some(Part { window, .. }) = part {
                self.leave(window);
            }
        }
        Ok(())
    }

    /// A mapping of a window is gone.
    fn leave(&mut self, number: u64) {
        let Some(window) = self.windows.get_mut(&number) else { return };
        window.uses -= 1;
        if window.uses == 0 {
            self.windows.remove(&number);
        }
    }

    fn forget_memory(&mut self) {
        self.mappings.clear();
        self.windows.clear();
    }

    /// Forgets everything of a client, but not what is still to be told.
    pub(super) fn clear(&mut self) {
        let faults = self.take_faults();
        // The next client of the NIC goes on with its budget.
        let mut next = Self { faults, ..Self::new(Arc::clone(&self.bell)) };
        core::mem::swap(&mut next.budget, &mut self.budget);
        *self = next;
    }

    /// Sets or takes away the eventfd of a vector.
    pub(super) fn set_vector(&mut self, vector: usize, fd: Option<OwnedFd>) {
        self.vectors[vector] = fd.map(Arc::new);
    }

    /// Whether a vector has an eventfd.
    pub(super) fn has_vector(&self, vector: usize) -> bool {
        self.vectors.get(vector).is_some_and(Option::is_some)
    }

    /// Raises an interrupt.
    pub(super) fn raise(&mut self, vector: usize) {
        let Some(Some(fd)) = self.vectors.get(vector) else { return };
        if !self.failed && !self.bell.ring(fd) {
            self.fail();
            self.fault(MSI_BASE, 4, true, "its client let an interrupt wait");
        }
    }

    /// The mapping of an address, the offset in it, and how many of `length` bytes it has.
    ///
    /// # Errors
    /// Why the device may not go there.
    fn find(
        &self,
        address: u64,
        length: usize,
        right: u32,
    ) -> Result<(&Mapping, usize, usize), &'static str> {
        const NOTHING: &str = "its client mapped nothing there";
        let (start, mapping) = self.mappings.range(..=address).next_back().ok_or(NOTHING)?;
        if mapping.last < address {
            return Err(NOTHING);
        }
        if mapping.flags & right == 0 {
            return Err("its client mapped that without this right");
        }
        let left = usize::try_from(mapping.last - address).unwrap_or(usize::MAX);
        let offset = usize::try_from(address - start).map_err(|_| NOTHING)?;
        Ok((mapping, offset, length.min(left.saturating_add(1))))
    }

    /// Reads memory.
    ///
    /// # Errors
    /// The first address that cannot be read, and why.
    fn load(&mut self, address: u64, data: &mut [u8]) -> Result<(), (u64, &'static str)> {
        let mut done = 0;
        while done < data.len() {
            let at = address.checked_add(done as u64).ok_or((u64::MAX, WRAPS))?;
            let left = data.len() - done;
            let (mapping, offset, length) =
                self.find(at, left, dma::READ).map_err(|why| (at, why))?;
            let part = &mut data[done..done + length];
            if let Some(Part { memory, start, .. }) = &mapping.memory {
                memory.copy_to(start + offset, part);
            } else {
                let got = self.ask(Command::DmaRead, at, length, &[]).map_err(|why| (at, why))?;
                if got.len() != length {
                    return Err((at, REFUSED));
                }
                part.copy_from_slice(&got);
            }
            done += length;
        }
        Ok(())
    }

    /// Writes memory, up to the first address that cannot be written.
    ///
    /// # Errors
    /// That address, and why.
    fn store(&mut self, address: u64, data: &[u8]) -> Result<(), (u64, &'static str)> {
        let mut done = 0;
        while done < data.len() {
            let at = address.checked_add(done as u64).ok_or((u64::MAX, WRAPS))?;
            let left = data.len() - done;
            let (mapping, offset, length) =
                self.find(at, left, dma::WRITE).map_err(|why| (at, why))?;
            let part = &data[done..done + length];
            if let Some(Part { memory, start, .. }) = &mapping.memory {
                memory.store_in_order(start + offset, part);
            } else {
                self.ask(Command::DmaWrite, at, length, part).map_err(|why| (at, why))?;
            }
            done += length;
        }
        Ok(())
    }

    /// Has the client read or write its memory.
    ///
    /// # Errors
    /// Why it did not.
    fn ask(
        &mut self,
        command: Command,
        address: u64,
        length: usize,
        data: &[u8],
    ) -> Result<Vec<u8>, &'static str> {
        let twin = self.twin.as_mut().ok_or(NO_WAY)?;
        twin.next_id = twin.next_id.wrapping_add(1);
        let head = DmaAccess { address, count: length as u64, data: &[] }.head();
        let bytes = message(twin.next_id, command as u16, 0, &[&head, data]);
        // The simulation stands still meanwhile. There is room: nothing else is under way.
        let end = self.budget.end(Instant::now());
        let socket = twin.socket.as_fd();
        let answer =
            send(socket, &bytes, &[], false).and_then(|()| twin.inbox.receive_by(socket, end));
        self.budget.spend(Instant::now());
        match answer {
            Ok(Received::Message(reply))
                if reply.header.id == twin.next_id && reply.header.is_reply() =>
            {
                if reply.header.flags & flag::ERROR != 0 {
                    return Err(REFUSED);
                }
                let access = DmaAccess::parse(&reply.payload, false).ok_or(REFUSED)?;
                Ok(access.data.to_vec())
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.fail();
                Err("its client did not answer within the time that it may keep others waiting")
            }
            _ => {
                self.fail();
                Err("its client did not answer")
            }
        }
    }
}

impl HostBus for Host {
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError> {
        self.busy = true;
        let length = data.len();
        self.load(address, data).map_err(|(at, why)| {
            self.fault(at, length, false, why);
            HostReadError { address }
        })
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        self.busy = true;
        if (MSI_BASE..MSI_END).contains(&address) {
            if let Some(vector) = data.first_chunk().map(|data| u32::from_le_bytes(*data)) {
                self.raise(usize::try_from(vector).unwrap_or(usize::MAX));
            }
            return;
        }
        if let Err((at, why)) = self.store(address, data) {
            self.fault(at, data.len(), true, why);
        }
    }
}

const _: () = assert!(WINDOW_BYTES.is_multiple_of(PAGE_BYTES));

#[cfg(test)]
mod tests;
