//! A device in another process: a simulator that serves the vfio-user protocol on a UNIX socket
//! (`viaduct cosim serve`, `docs/simulator.md`).
//!
//! Registers are read and written by messages; a write is sent and not waited for. The simulator
//! reads and writes registered memory through a descriptor of this process's `/proc/self/mem`, so
//! memory of every kind can be registered, and nothing about it changes. Interrupts are eventfds, so
//! that a blocked program costs nothing.
//!
//! **Fork.** Registered memory stays the parent's: the child has an address space of its own, and the
//! simulator has no descriptor of it. To the child the parent's cards are absent ([`port::fork`]).
//!
//! **A simulator that dies**, or that takes the NIC from the program, is a card that fell off the
//! bus: reads give all ones, writes lead nowhere, waits end.

mod memory;
mod stream;
#[cfg(test)]
mod tests;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use nic_regs::csr;
use nic_regs::pci::{
    COMMAND_MASTER, COMMAND_MEMORY, COMMAND_OFFSET, MSI_BASE, SUBSYSTEM_ID_OFFSET,
};
use rustix::event::PollFlags;

use super::vectors::{Vectors, Waited};
use super::{patience, program_vectors};
use crate::bus::{Bar, Bus, Irq, Wait};
use crate::error::{Error, Result};
use crate::sync::lock;
use ::vfio_user::{protocol, socket};
use port::{fork, own, trust};
use protocol::{
    Command, DmaUnmap, FDS_MAX, IrqInfo, RegionAccess, RegionInfo, SetIrqs, Version, dma, irq,
    region,
};
use stream::Stream;

/// Longest time that the simulator may take for a message and its answer together.
pub const ANSWER_BOUND: Duration = Duration::from_secs(30);
/// First bus address; each mapping gets new ones.
const FIRST_ADDRESS: u64 = 1 << 32;

/// Whether a simulator listens at a socket: there may be one that is left of an earlier run.
#[must_use]
pub fn is_served(path: &Path) -> bool {
    let nobody = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
    socket::dial(path, Duration::from_millis(1))
        .map_or_else(|why| !nobody.contains(&why.kind()), |_| true)
}

/// A served device as its driver sees it.
pub struct VfioUserBus {
    path: PathBuf,
    stream: Mutex<Stream>,
    /// The stream's socket, for looks at whether the simulator lives.
    watch: UnixStream,
    dead: AtomicBool,
    /// Of the process that connected.
    generation: u32,
    start: Instant,
    node: u8,
    nodes: u8,
    vectors: Vectors,
    /// This process's address space.
    memory: File,
    /// Sizes of the mappings, by their first bus addresses.
    mappings: Mutex<BTreeMap<u64, u64>>,
    next_address: AtomicU64,
    /// Why the simulator took the NIC from this program.
    reason: OnceLock<String>,
    /// Another process that has the device, if this one only looks at it.
    owner: Option<u32>,
}

impl core::fmt::Debug for VfioUserBus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "VfioUserBus({})", self.path.display())
    }
}

impl VfioUserBus {
    /// Connects to the simulator at a socket. The device is reset.
    ///
    /// # Errors
    /// [`Error::Connect`] if nobody serves there, or a process of another user; [`Error::InUse`] if
    /// another program has the device; [`Error::WrongDevice`] if it is no Viaduct NIC.
    pub fn connect(path: &Path) -> Result<Arc<Self>> {
        Self::dial(path, ANSWER_BOUND, false)
    }

    /// Connects to the simulator at a socket to look at its device, which may be another program's:
    /// nothing changes, and only registers of identity and status and the counters can be read. The
    /// simulator has `bound` for each answer.
    ///
    /// # Errors
    /// As [`Self::connect`]; [`Error::InUse`] cannot be.
    pub fn observe(path: &Path, bound: Duration) -> Result<Arc<Self>> {
        Self::dial(path, bound, true)
    }

    fn dial(path: &Path, bound: Duration, observer: bool) -> Result<Arc<Self>> {
        let failed = |why: &dyn core::fmt::Display| Error::Connect {
            path: path.to_owned(),
            why: why.to_string(),
        };
        trust::check_socket(path).map_err(|e| failed(&e))?;
        let socket = socket::dial(path, bound).map_err(|e| failed(&e))?;
        trust::check_peer(&socket).map_err(|e| failed(&e))?;
        let stream = Stream::new(own::moved(socket), bound);
        Self::start(path, stream, observer).map_err(|error| match error {
            Error::Connect { .. } | Error::InUse { .. } => error,
            other => failed(&other),
        })
    }

    fn start(path: &Path, stream: Stream, observer: bool) -> Result<Arc<Self>> {
        let io =
            |error: io::Error| Error::Connect { path: path.to_owned(), why: error.to_string() };
        let watch = own::moved(stream.socket.try_clone().map_err(io)?);
        let generation = fork::generation();
        let memory = own::moved(memory::open().map_err(io)?);
        let mut bus = Self {
            path: path.to_owned(),
            stream: Mutex::new(stream),
            watch,
            dead: AtomicBool::new(false),
            generation,
            start: Instant::now(),
            node: 0,
            nodes: 1,
            vectors: Vectors::default(),
            memory,
            mappings: Mutex::default(),
            next_address: AtomicU64::new(FIRST_ADDRESS),
            reason: OnceLock::new(),
            owner: None,
        };
        let version = Version { observer, ..Version::OWN }.to_bytes();
        let reply = bus.ask("the version", Command::Version, &[&version], &[])?;
        let Some(theirs) =
            Version::parse(&reply.payload).filter(|theirs| theirs.version <= protocol::VERSION)
        else {
            return Err(io(io::Error::other("it speaks another version of the protocol")));
        };
        if theirs.observer != observer {
            return Err(io(io::Error::other("it knows no observers")));
        }
        bus.owner = theirs.owner;
        if !observer {
            bus.check_regions()?;
            bus.connect_vectors()?;
            let command = (COMMAND_MEMORY | COMMAND_MASTER).to_le_bytes();
            bus.write(region::CONFIG, COMMAND_OFFSET.into(), &command);
        }
        let ids = bus.read(region::CONFIG, SUBSYSTEM_ID_OFFSET.into(), 2)?.to_le_bytes();
        (bus.node, bus.nodes) = (ids[0], ids[1].max(1));
        // Last: `drop` takes them back.
        for fd in [lock(&bus.stream).socket.as_fd(), bus.watch.as_fd(), bus.memory.as_fd()] {
            fork::add(fd).map_err(io)?;
        }
        Ok(Arc::new(bus))
    }

    fn check_regions(&self) -> Result<()> {
        let wanted = [
            (region::BAR0, u64::from(csr::BAR_SIZE)),
            (region::BAR2, nic_regs::doorbell::BAR_SIZE),
        ];
        for (index, size) in wanted {
            let asked = RegionInfo { index, ..RegionInfo::default() }.to_bytes();
            let reply = self.ask("a region", Command::RegionInfo, &[&asked], &[])?;
            let found = RegionInfo::parse(&reply.payload).map_or(0, |info| info.size);
            if found < size {
                let why = format!("its BAR{index} has {found} bytes, a Viaduct NIC's has {size}");
                return Err(Error::Connect { path: self.path.clone(), why });
            }
        }
        Ok(())
    }

    /// Gives the simulator an eventfd for each vector.
    fn connect_vectors(&mut self) -> Result<()> {
        let asked = IrqInfo { index: irq::MSIX, ..IrqInfo::default() }.to_bytes();
        let reply = self.ask("its interrupts", Command::IrqInfo, &[&asked], &[])?;
        let count = IrqInfo::parse(&reply.payload).map_or(0, |info| info.count);
        let count = usize::try_from(count.min(2_048)).unwrap_or(0);
        self.vectors = Vectors::new(count).map_err(|error| Error::Connect {
            path: self.path.clone(),
            why: format!("no eventfd for an interrupt: {error}"),
        })?;
        let mut start = 0;
        for chunk in self.vectors.all().chunks(FDS_MAX) {
            let fds: Vec<_> = chunk.iter().map(AsFd::as_fd).collect();
            let count = u32::try_from(fds.len()).unwrap_or(0);
            let flags = irq::DATA_EVENTFD | irq::ACTION_TRIGGER;
            let set = SetIrqs { flags, index: irq::MSIX, start, count, data: &[] }.to_bytes();
            self.ask("eventfds for interrupts", Command::SetIrqs, &[&set], &fds)?;
            start += count;
        }
        Ok(())
    }

    /// The node that this device is in the simulator's network.
    #[must_use]
    pub const fn node(&self) -> u8 {
        self.node
    }

    /// Nodes of that network; they are numbered from 0.
    #[must_use]
    pub const fn nodes(&self) -> u8 {
        self.nodes
    }

    /// The process that had the device when this one began to observe it.
    #[must_use]
    pub const fn owner(&self) -> Option<u32> {
        self.owner
    }

    /// The socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the simulator has ended, or this is a child of the process that connected.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire) || self.is_inherited()
    }

    /// Whether this is a child of the process that connected. There the bus has nothing to give back,
    /// and its locks may be held by threads that are not there.
    fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// The simulator counts as gone. If it is only slow, or was stopped, it must learn that it lost
    /// its client: it lets go of the program's memory and takes the next client.
    fn die(&self, why: &str) {
        let _ = self.reason.set(why.to_owned());
        self.dead.store(true, Ordering::Release);
        let _ = self.watch.shutdown(std::net::Shutdown::Both);
    }

    /// The simulator closed the socket, and may have said why.
    fn die_closed(&self) {
        // Whoever has the stream finds out too.
        let said = self.stream.try_lock().ok().and_then(|mut stream| stream.farewell());
        self.die(said.as_deref().unwrap_or("it closed the connection"));
    }

    /// Asks the simulator something.
    fn ask(
        &self,
        what: &'static str,
        command: Command,
        parts: &[&[u8]],
        fds: &[BorrowedFd<'_>],
    ) -> Result<socket::Message> {
        let lost = |why: String| Error::Connect { path: self.path.clone(), why };
        if self.is_dead() {
            return Err(lost("the simulator has ended".to_owned()));
        }
        let answer = lock(&self.stream).ask(command, parts, fds);
        match answer {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(refused)) => {
                let (path, errno) = (self.path.clone(), refused.header.error);
                if errno == protocol::errno::BUSY && command == Command::Version {
                    return Err(Error::InUse {
                        path,
                        by: protocol::busy_process(&refused.payload),
                    });
                }
                Err(Error::Served { path, what, errno })
            }
            Err(error) => {
                self.die(&error.to_string());
                Err(lost(format!("the simulator has ended ({error})")))
            }
        }
    }

    /// Reads 1 to 4 bytes of a region.
    fn read(&self, region: u32, offset: u64, count: u32) -> Result<u32> {
        let access = RegionAccess { offset, region, count, data: &[] }.head();
        let reply = self.ask("a read of a register", Command::RegionRead, &[&access], &[])?;
        let access = RegionAccess::parse(&reply.payload, true);
        let mut word = [0; 4];
        let place = usize::try_from(count).ok().and_then(|count| word.get_mut(..count));
        match (place, access) {
            (Some(place), Some(access)) if access.data.len() == place.len() => {
                place.copy_from_slice(access.data);
                Ok(u32::from_le_bytes(word))
            }
            _ => {
                let why = "its reply to a read is malformed";
                self.die(why);
                Err(Error::Connect { path: self.path.clone(), why: why.to_owned() })
            }
        }
    }

    /// Writes bytes of a region. Nobody answers.
    fn write(&self, region: u32, offset: u64, data: &[u8]) {
        if self.is_dead() {
            return;
        }
        let count = u32::try_from(data.len()).unwrap_or(0);
        let access = RegionAccess { offset, region, count, data }.head();
        let sent = lock(&self.stream).post(Command::RegionWrite, &[&access, data]);
        match sent.map_err(|error| error.kind()) {
            Ok(()) => {}
            Err(io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => self.die_closed(),
            Err(kind) => self.die(&kind.to_string()),
        }
    }
}

impl Bar for VfioUserBus {
    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        if self.is_dead() {
            return Ok(u32::MAX);
        }
        match self.read(bar.into(), offset, 4) {
            Err(_) if self.is_dead() => Ok(u32::MAX),
            answered => answered,
        }
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) {
        self.write(bar.into(), offset, &value.to_le_bytes());
    }

    fn write64(&self, bar: u8, offset: u64, value: u64) {
        self.write(bar.into(), offset, &value.to_le_bytes());
    }

    fn write_line(&self, bar: u8, offset: u64, words: &[u64]) {
        let mut line = [0; 64];
        let words = &words[..words.len().min(8)];
        for (slot, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *slot = word.to_le_bytes();
        }
        self.write(bar.into(), offset, &line[..8 * words.len()]);
    }
}

impl Irq for VfioUserBus {
    fn connect(&self, bar: &dyn Bar, count: u16) -> Result<()> {
        program_vectors(bar, count, |vector| (MSI_BASE, u32::from(vector)));
        Ok(())
    }

    fn take_interrupt(&self, vector: u16) -> bool {
        !self.is_dead() && self.vectors.take(vector)
    }

    fn raise_interrupt(&self, vector: u16) {
        self.vectors.raise(vector);
    }

    fn wait_interrupt(&self, vector: u16, bound_ns: u64, _wait: Wait) -> bool {
        if self.is_dead() {
            return false;
        }
        let watch = [(self.watch.as_fd(), PollFlags::RDHUP)];
        let waited = self.vectors.wait(vector, Duration::from_nanos(bound_ns), &watch);
        if waited == Waited::Watched {
            self.die_closed();
        }
        waited == Waited::Raised
    }
}

impl Bus for VfioUserBus {
    fn relax(&self, _wait: Wait) {
        patience::relax();
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn name(&self) -> String {
        let why = self.reason.get().map(|why| format!(" (its simulator has ended: {why})"));
        format!("at vfio-user:{}{}", self.path.display(), why.unwrap_or_default())
    }
}

impl Drop for VfioUserBus {
    fn drop(&mut self) {
        // In a child after fork the descriptors are not the parent's any more.
        if self.is_inherited() {
            return;
        }
        // The simulator lets go of the memory first: what it writes late would be seen in memory that
        // is somebody else's.
        if !lock(&self.mappings).is_empty() {
            let all = DmaUnmap { flags: dma::UNMAP_ALL, address: 0, size: 0 }.to_bytes();
            let _ = self.ask("the end of all mappings", Command::DmaUnmap, &[&all], &[]);
        }
        let stream = lock(&self.stream);
        for fd in [stream.socket.as_fd(), self.watch.as_fd(), self.memory.as_fd()] {
            fork::remove(fd);
        }
        let _ = stream.socket.shutdown(std::net::Shutdown::Both);
    }
}
