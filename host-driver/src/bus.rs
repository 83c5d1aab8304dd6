//! How the driver reaches a device: register access, mapped memory, interrupts, time.
//!
//! A [`Bus`] is one device as its driver sees it. [`vfio`] reaches a PCIe card, [`vfio_user`] a device
//! that another process serves, and `cosim` has the buses of simulated devices in this process. [`trace`] wraps another
//! bus and names every register access.

mod patience;
pub mod trace;
mod vectors;
pub mod vfio;
pub mod vfio_user;

use nic_regs::csr::{COUNTER_OFFSET, MSIX_ENTRY_BYTES, MSIX_TABLE_OFFSET, REGS};
use nic_regs::limits::MSIX_VECTOR_COUNT;

use crate::dma::DmaMemory;
use crate::error::Result;

pub use port::Wait;
use port::sync::Signal;

/// BAR of the registers, see `nic_regs::csr`.
pub const REGISTER_BAR: u8 = 0;
/// BAR of the doorbells, see `nic_regs::doorbell`.
pub const DOORBELL_BAR: u8 = 2;

/// Register access. Writes are posted; accesses of one thread take effect in order.
pub trait Bar {
    /// Reads a dword.
    ///
    /// # Errors
    /// [`crate::error::Error::ReadTimeout`] if the device does not answer;
    /// [`crate::error::Error::Served`] if a simulator says so.
    fn read32(&self, bar: u8, offset: u64) -> Result<u32>;
    /// Writes a dword.
    fn write32(&self, bar: u8, offset: u64, value: u32);
    /// Writes 8 bytes in one piece. Memory stores before it are visible to the device when it sees
    /// the write.
    fn write64(&self, bar: u8, offset: u64, value: u64);
    /// Writes words to consecutive places of a line of 64 bytes, in rising order; they may arrive in
    /// several pieces, with writes of other threads between them. Memory stores before it are
    /// visible to the device when it sees the first word; when this returns, no later write overtakes
    /// the words. This way, one word after the other, suits
    /// every processor; a bus that can write more at once does.
    fn write_line(&self, bar: u8, offset: u64, words: &[u64]) {
        let mut offset = offset;
        for word in words {
            self.write64(bar, offset, *word);
            offset += 8;
        }
    }
    /// Part of a BAR that is mapped into this process: stores to it are writes of the BAR. None: go
    /// through the functions above.
    fn mapped(&self, bar: u8, offset: u64, length: usize) -> Option<DmaMemory> {
        let _ = (bar, offset, length);
        None
    }
}

/// Mapping of memory for the device.
pub trait Dma {
    /// Makes memory reachable and gives the bus address of its first byte, equal to its virtual
    /// address modulo 4,096.
    ///
    /// # Errors
    /// If the bus has no room for the mapping; [`port::Error::BadArgument`] with the address of memory
    /// that this process may not read, or part of it.
    fn map(&self, memory: &DmaMemory) -> Result<u64>;
    /// Takes a mapping away; later accesses of the device fail.
    fn unmap(&self, bus_address: u64);
}

/// Interrupts.
pub trait Irq {
    /// Has the device raise its first `count` vectors here. It was reset, and its table of messages is
    /// masked: it is written by `bar`, which is this bus, or what wraps it. Where the kernel owns the
    /// table, it writes it anew.
    ///
    /// # Errors
    /// The kernel refuses it.
    fn connect(&self, bar: &dyn Bar, count: u16) -> Result<()>;
    /// Whether `vector` was raised since it was last taken.
    fn take_interrupt(&self, vector: u16) -> bool;
    /// Waits until `vector` is raised or until `bound_ns` are over; takes it. True if it was
    /// raised.
    fn wait_interrupt(&self, vector: u16, bound_ns: u64, wait: Wait) -> bool;
    /// Raises `vector` as if the device had, so that whoever waits for it wakes. A bus that cannot
    /// leaves them to the bound of their wait.
    fn raise_interrupt(&self, vector: u16) {
        let _ = vector;
    }
}

/// A device as its driver sees it.
pub trait Bus: Bar + Dma + Irq + Send + Sync {
    /// A polling loop calls this on each empty turn: a spin hint, or simulated time passes.
    fn relax(&self, wait: Wait);
    /// Time in nanoseconds; simulated time in a simulation.
    fn now_ns(&self) -> u64;
    /// Sleeps as [`Signal::wait`], in the bus's time.
    fn wait_signal(&self, signal: &Signal, seen: u64, bound_ns: u64, wait: Wait) {
        let _ = wait;
        signal.wait(seen, bound_ns);
    }
    /// Starts a thread of the library, which uses the bus only while `program` runs.
    ///
    /// # Errors
    /// The operating system has no thread to give.
    fn spawn(&self, name: &str, program: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
        std::thread::Builder::new().name(name.to_owned()).spawn(program).map(drop)
    }
    /// Which device this is, for errors: 'of node 0'.
    fn name(&self) -> String;
}

/// Writes a device's table of messages: `message` gives the address and the data that raise a vector.
pub fn program_vectors(bar: &dyn Bar, count: u16, message: impl Fn(u16) -> (u64, u32)) {
    for vector in 0..count.min(u16::try_from(MSIX_VECTOR_COUNT).unwrap_or(0)) {
        let (address, data) = message(vector);
        let entry = u64::from(MSIX_TABLE_OFFSET + u32::from(vector) * MSIX_ENTRY_BYTES);
        let low = u32::try_from(address & 0xffff_ffff).unwrap_or(0);
        let high = u32::try_from(address >> 32).unwrap_or(0);
        for (at, word) in (0..).step_by(4).zip([low, high, data, 0]) {
            bar.write32(REGISTER_BAR, entry + at, word);
        }
    }
}

/// Name of a register, or its offset where it has none.
#[must_use]
pub fn register_name(bar: u8, offset: u64) -> String {
    let known = REGS.iter().find(|r| bar == REGISTER_BAR && u64::from(r.offset) == offset);
    match known {
        Some(register) => register.name.to_owned(),
        None if bar == REGISTER_BAR && offset >= u64::from(COUNTER_OFFSET) => {
            let counter = (offset - u64::from(COUNTER_OFFSET)) / 4;
            let row =
                usize::try_from(counter).ok().and_then(|i| nic_regs::counter::Counter::ALL.get(i));
            row.map_or_else(|| format!("{offset:#x}"), |(_, name, _)| format!("counter {name}"))
        }
        None => format!("{offset:#x}"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A bus that reaches nothing.
    #[derive(Debug)]
    pub(crate) struct NoBus;

    impl Bar for NoBus {
        fn read32(&self, _bar: u8, _offset: u64) -> Result<u32> {
            Ok(u32::MAX)
        }
        fn write32(&self, _bar: u8, _offset: u64, _value: u32) {}
        fn write64(&self, _bar: u8, _offset: u64, _value: u64) {}
    }

    impl Dma for NoBus {
        fn map(&self, memory: &DmaMemory) -> Result<u64> {
            Ok(memory.address())
        }
        fn unmap(&self, _bus_address: u64) {}
    }

    impl Irq for NoBus {
        fn connect(&self, _bar: &dyn Bar, _count: u16) -> Result<()> {
            Ok(())
        }
        fn take_interrupt(&self, _vector: u16) -> bool {
            false
        }
        fn wait_interrupt(&self, _vector: u16, _bound_ns: u64, _wait: Wait) -> bool {
            false
        }
    }

    impl Bus for NoBus {
        fn relax(&self, _wait: Wait) {}
        fn now_ns(&self) -> u64 {
            0
        }
        fn name(&self) -> String {
            String::new()
        }
    }
}
