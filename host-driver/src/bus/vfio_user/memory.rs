//! Mapping of the program's memory: the simulator reaches it through `/proc/self/mem`.
//!
//! The descriptor is bound to this process's address space, not to its number: the simulator can use
//! it as long as this process lives, a child after fork has another address space, and `exec` ends
//! the old one. It works on a program that is stopped, and on memory of every kind.

use core::sync::atomic::Ordering;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use super::VfioUserBus;
use crate::bus::Dma;
use crate::dma::{DmaMemory, PAGE_BYTES};
use crate::error::Result;
use crate::sync::lock;
use ::vfio_user::protocol::{Command, DmaMap, DmaUnmap, dma};
use port::mapped;

const PAGE: u64 = PAGE_BYTES as u64;
/// Unmapped bus addresses behind each mapping.
const GUARD_BYTES: u64 = 16 * PAGE;

/// Opens the address space of this process.
///
/// # Errors
/// The kernel refuses it to a program that is not dumpable.
pub(super) fn open() -> io::Result<File> {
    File::options().read(true).write(true).open("/proc/self/mem").map_err(|error| {
        let text = format!(
            "the simulator would reach this program's memory through /proc/self/mem, which cannot \
             be opened: {error}. A program that is not dumpable (PR_SET_DUMPABLE, set-user-ID, file \
             capabilities) may not open it: make the program dumpable, or start it without these"
        );
        io::Error::new(error.kind(), text)
    })
}

impl VfioUserBus {
    fn drop_mapping(&self, address: u64, size: u64) {
        let unmap = DmaUnmap { flags: 0, address, size }.to_bytes();
        // A simulator that has ended touches nothing any more.
        let _ = self.ask("the end of a mapping", Command::DmaUnmap, &[&unmap], &[]);
    }
}

impl Dma for VfioUserBus {
    /// Maps the whole pages of `memory`, with what the program itself may do with all of it.
    fn map(&self, memory: &DmaMemory) -> Result<u64> {
        let access = mapped::check_readable(memory)?;
        let within = memory.page_offset() as u64;
        let size = (within + memory.len() as u64).next_multiple_of(PAGE);
        let address = self.next_address.fetch_add(size + GUARD_BYTES, Ordering::Relaxed);
        let flags = dma::READ | if access.writable { dma::WRITE } else { 0 };
        let offset = memory.address() - within;
        let map = DmaMap { flags, offset, address, size }.to_bytes();
        self.ask("memory of the program", Command::DmaMap, &[&map], &[self.memory.as_fd()])?;
        lock(&self.mappings).insert(address, size);
        Ok(address + within)
    }

    fn unmap(&self, bus_address: u64) {
        if self.is_inherited() {
            return;
        }
        let address = bus_address & !(PAGE - 1);
        let size = lock(&self.mappings).remove(&address);
        if let Some(size) = size {
            self.drop_mapping(address, size);
        }
    }
}
