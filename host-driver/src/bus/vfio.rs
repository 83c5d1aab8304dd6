//! A PCIe card, by the kernel's VFIO: `vfio:0000:03:00.0`.
//!
//! Registers are read and written by system calls; the doorbells are mapped, so that a post is a
//! store. The IOMMU lets the card reach what is registered, at bus addresses of this bus's own, and
//! nothing else. The kernel keeps registered pages in place, which counts against the limit of locked
//! memory. Interrupts are eventfds.
//!
//! **Fork.** The kernel copies registered pages for a child at once, so that they stay the parent's.
//! The child has neither the card's descriptors nor its doorbells ([`port::fork`]).
//!
//! **A card that goes** reads as all ones. If the kernel wants it back, for a removal or another
//! driver, it counts as gone, and the program's close gives it back.

mod card;
mod config;
mod kernel;
mod locked;
mod space;

use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nic_regs::csr;
use nic_regs::pci::{COMMAND_MASTER, COMMAND_MEMORY, COMMAND_OFFSET, SUBSYSTEM_ID_OFFSET};
use port::fork;
use port::own::OwnFd;
use rustix::event::PollFlags;
use rustix::io::Errno;
use vfio_ioctls::VfioError;

use super::vectors::{self, Vectors, Waited};
use super::{Bar, Bus, DOORBELL_BAR, Dma, Irq, REGISTER_BAR, Wait, patience};
use crate::dma::DmaMemory;
use crate::error::{Error, Result};
use crate::obstacle::Obstacle;
use crate::sync::lock;
pub use card::{Card, DRIVER, Sysfs};
use kernel::Kernel;
use space::Space;

/// What is wrong with the sizes of a card's BARs.
fn wrong_bar(size_of: impl Fn(u8) -> u64) -> Option<String> {
    let sizes =
        [(REGISTER_BAR, u64::from(csr::BAR_SIZE)), (DOORBELL_BAR, nic_regs::doorbell::BAR_SIZE)];
    sizes.into_iter().find_map(|(bar, size)| {
        let found = size_of(bar);
        let why = || format!("its BAR{bar} has {found} bytes, a Viaduct NIC's has {size}");
        (found != size).then(why)
    })
}

/// A card as its driver sees it.
pub struct VfioBus {
    address: String,
    kernel: Kernel,
    doorbells: DmaMemory,
    vectors: Vectors,
    /// The kernel wants the card back.
    request: OwnFd,
    lost: AtomicBool,
    space: Mutex<Space>,
    node: u8,
    nodes: u8,
    /// Of the process that opened it.
    generation: u32,
    start: Instant,
}

impl core::fmt::Debug for VfioBus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "VfioBus({})", self.address)
    }
}

impl VfioBus {
    /// Takes the card at an address, with or without its domain; the only one for an empty text. The
    /// function is reset.
    ///
    /// # Errors
    /// [`Error::Vfio`] with what keeps this program from it.
    pub fn open(address: &str) -> Result<Arc<Self>> {
        let card = Sysfs::default().find(address)?;
        let failed = |why: String, mend: &str| Error::Vfio {
            address: card.address.clone(),
            obstacle: Obstacle::new(why, mend),
        };
        let system = |what: &str, why: &dyn core::fmt::Display| {
            failed(format!("{what}: {why}"), "see docs/vfio.md")
        };
        if let Some(obstacle) = card.obstacle() {
            return Err(Error::Vfio { address: card.address.clone(), obstacle });
        }
        let kernel = Kernel::open(&card.folder()).map_err(|why| match why {
            VfioError::OpenContainer(why) => {
                failed(format!("/dev/vfio/vfio: {why}"), "`modprobe vfio-pci` as root")
            }
            why => system("the kernel refuses it", &why),
        })?;
        if let Some(why) = wrong_bar(|bar| kernel.region_size(bar)) {
            return Err(failed(why, "the card needs the bitstream of this release"));
        }
        let command = kernel.read_config(COMMAND_OFFSET);
        kernel.write_config(COMMAND_OFFSET, command | COMMAND_MEMORY | COMMAND_MASTER);
        let doorbells = kernel
            .map_registers(DOORBELL_BAR)
            .map_err(|why| system("its doorbells cannot be mapped", &why))?;
        let vectors = Vectors::new(nic_regs::limits::MSIX_VECTOR_COUNT);
        let vectors = vectors.map_err(|why| system("no eventfds for its interrupts", &why))?;
        let request = vectors::event().map_err(|why| system("no eventfd", &why))?;
        // An old kernel does not ask, and takes the card.
        let _ = kernel.set_request(&request);
        let [node, nodes] = kernel.read_config(SUBSYSTEM_ID_OFFSET).to_le_bytes();
        for fd in kernel.borrowed() {
            fork::add(fd).map_err(|why| system("no descriptor", &why))?;
        }
        fork::add_registers(&doorbells);
        Ok(Arc::new(Self {
            address: card.address,
            kernel,
            doorbells,
            vectors,
            request,
            lost: AtomicBool::new(false),
            space: Mutex::default(),
            node,
            nodes,
            generation: fork::generation(),
            start: Instant::now(),
        }))
    }

    /// The node that this card is, if a simulator says so, and of how many nodes; of a board 0 of 0.
    #[must_use]
    pub const fn node(&self) -> (u8, u8) {
        (self.node, self.nodes)
    }

    /// Whether the card is out of reach: the kernel wants it back, or this is a child of the process
    /// that opened it.
    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire) || self.is_inherited()
    }

    fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    fn failed(&self, why: String, mend: &str) -> Error {
        Error::Vfio { address: self.address.clone(), obstacle: Obstacle::new(why, mend) }
    }

    fn look_for_request(&self) {
        // A child would take it from its parent.
        if !self.is_inherited() && vectors::take(&self.request) {
            self.stop();
            self.lost.store(true, Ordering::Release);
        }
    }

    /// Resets a card that will be lost: from then on the program frees memory without asking it. The kernel
    /// does not reset what it removes, and to other nodes it would be there.
    fn stop(&self) {
        let reset = csr::CONTROL::RESET.with(csr::CONTROL::SOFT_RESET, 1);
        self.kernel.write(REGISTER_BAR, csr::CONTROL::OFFSET.into(), &reset.0.to_le_bytes());
        // A read behind the write.
        self.kernel.read(REGISTER_BAR, csr::STATUS::OFFSET.into());
    }
}

impl Bar for VfioBus {
    fn read32(&self, bar: u8, offset: u64) -> Result<u32> {
        self.look_for_request();
        if self.is_lost() {
            return Ok(u32::MAX);
        }
        Ok(self.kernel.read(bar, offset))
    }

    fn write32(&self, bar: u8, offset: u64, value: u32) {
        if !self.is_lost() {
            self.kernel.write(bar, offset, &value.to_le_bytes());
        }
    }

    fn write64(&self, bar: u8, offset: u64, value: u64) {
        if !self.is_lost() {
            self.kernel.write(bar, offset, &value.to_le_bytes());
        }
    }

    fn mapped(&self, bar: u8, offset: u64, length: usize) -> Option<DmaMemory> {
        let offset = usize::try_from(offset).ok()?;
        if bar == DOORBELL_BAR { self.doorbells.slice(offset, length).ok() } else { None }
    }
}

impl Dma for VfioBus {
    /// Maps the whole pages of `memory`. The kernel checks that the program may read and write them.
    fn map(&self, memory: &DmaMemory) -> Result<u64> {
        let within = memory.page_offset();
        let pages = memory.address() - within as u64;
        let size = (within + memory.len()).next_multiple_of(port::memory::PAGE_BYTES);
        let Some(bus) = lock(&self.space).take(size as u64) else {
            return Err(self.failed(
                format!("no room for {size} bytes among the card's addresses"),
                "deregister some memory",
            ));
        };
        let mapped = self.kernel.map(bus, (pages, size));
        mapped.map_err(|why| {
            let _ = lock(&self.space).give(bus);
            match why {
                Errno::NOMEM => self.failed(
                    format!(
                        "{size} bytes more cannot be locked in memory ({})",
                        locked::text(locked::limit())
                    ),
                    locked::RAISE,
                ),
                Errno::FAULT => {
                    let what = "memory, part of which is not mapped or may not be read, address";
                    port::Error::BadArgument { what, value: memory.address() }.into()
                }
                why => {
                    self.failed(format!("{size} bytes cannot be mapped: {why}"), "see docs/vfio.md")
                }
            }
        })?;
        Ok(bus + within as u64)
    }

    fn unmap(&self, bus_address: u64) {
        if self.is_inherited() {
            return;
        }
        let page = port::memory::PAGE_BYTES as u64;
        let bus = bus_address & !(page - 1);
        let size = lock(&self.space).size(bus);
        if let Some(size) = size {
            let size = usize::try_from(size).unwrap_or(0);
            // If the kernel still has it, nobody else gets its addresses.
            if self.kernel.unmap(bus, size).is_ok() {
                let _ = lock(&self.space).give(bus);
            }
        }
    }
}

impl Irq for VfioBus {
    fn connect(&self, _bar: &dyn Bar, count: u16) -> Result<()> {
        let all = self.vectors.all();
        let connected = self.kernel.connect(&all[..all.len().min(count.into())]);
        connected.map_err(|why| {
            let why = format!("the kernel does not set up its interrupts: {why}");
            self.failed(why, "see docs/vfio.md, section 3")
        })
    }

    fn take_interrupt(&self, vector: u16) -> bool {
        !self.is_lost() && self.vectors.take(vector)
    }

    fn raise_interrupt(&self, vector: u16) {
        self.vectors.raise(vector);
    }

    fn wait_interrupt(&self, vector: u16, bound_ns: u64, _wait: Wait) -> bool {
        if self.is_lost() {
            return false;
        }
        let watch = [(self.request.as_fd(), PollFlags::IN)];
        let waited = self.vectors.wait(vector, Duration::from_nanos(bound_ns), &watch);
        if waited == Waited::Watched {
            self.look_for_request();
        }
        waited == Waited::Raised
    }
}

impl Bus for VfioBus {
    fn relax(&self, _wait: Wait) {
        patience::relax();
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn name(&self) -> String {
        let why = if self.is_lost() { " (the kernel wants it back)" } else { "" };
        format!("at vfio:{}{why}", self.address)
    }
}

impl Drop for VfioBus {
    fn drop(&mut self) {
        if self.is_inherited() {
            return;
        }
        // Nothing of it reaches memory any more, whatever is still mapped.
        let command = self.kernel.read_config(COMMAND_OFFSET);
        self.kernel.write_config(COMMAND_OFFSET, command & !COMMAND_MASTER);
        fork::remove_registers(&self.doorbells);
        self.kernel.borrowed().for_each(fork::remove);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_of_another_size_is_named() {
        let sizes = |zero: u64, two: u64| wrong_bar(move |bar| if bar == 0 { zero } else { two });
        let registers = u64::from(csr::BAR_SIZE);
        assert_eq!(sizes(registers, nic_regs::doorbell::BAR_SIZE), None);
        let wanted =
            format!("its BAR2 has 0 bytes, a Viaduct NIC's has {}", nic_regs::doorbell::BAR_SIZE);
        assert_eq!(sizes(registers, 0), Some(wanted));
        assert!(sizes(2 * registers, 0).is_some_and(|why| why.starts_with("its BAR0 has ")));
    }
}
