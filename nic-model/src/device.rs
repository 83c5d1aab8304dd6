//! The seams of a device: what it is to the host ([`Device`]), what the host is to it
//! ([`HostBus`]), and its link ([`Link`]).
//!
//! Time is an argument, in cycles of the device's clock. Nothing here has a thread, a clock or
//! randomness of its own.

use core::fmt;

use nic_regs::csr::CAPS3;

/// What a device may lack: `docs/contract.md` 1.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Push doorbells.
    pub push: bool,
    /// RDMA writes.
    pub rdma_write: bool,
    /// RDMA reads.
    pub rdma_read: bool,
}

impl Features {
    /// All.
    pub const ALL: Self = Self { push: true, rdma_write: true, rdma_read: true };
    /// None.
    pub const NONE: Self = Self { push: false, rdma_write: false, rdma_read: false };

    /// The capability register of a device with these.
    #[must_use]
    pub const fn caps3(self) -> CAPS3 {
        CAPS3::RESET
            .with(CAPS3::PUSH, self.push as u32)
            .with(CAPS3::RDMA_WRITE, self.rdma_write as u32)
            .with(CAPS3::RDMA_READ, self.rdma_read as u32)
    }
}

/// A read of host memory failed: no memory is mapped at that address, or the root complex answered
/// with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostReadError {
    /// First address of the read.
    pub address: u64,
}

impl fmt::Display for HostReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host memory at {:#x} cannot be read", self.address)
    }
}

impl core::error::Error for HostReadError {}

/// The host as the device sees it.
pub trait HostBus {
    /// Reads host memory.
    ///
    /// # Errors
    /// [`HostReadError`] if any byte is not mapped; `data` is then undefined.
    fn read(&mut self, address: u64, data: &mut [u8]) -> Result<(), HostReadError>;

    /// Writes host memory; a posted write, so a failure is the host's to report. Bytes become
    /// visible in rising address order. An MSI-X interrupt is a 4-byte write too.
    fn write(&mut self, address: u64, data: &[u8]);
}

/// One beat of a link frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// Eight bytes, byte 0 in bits 7:0.
    pub data: u64,
    /// Last beat of its frame.
    pub last: bool,
}

/// A device's end of the link.
pub trait Link {
    /// Whether the link takes a beat in this cycle.
    fn ready(&self, now: u64) -> bool;
    /// Puts a beat on the link; the link keeps its own pace if several come in one cycle.
    fn send(&mut self, now: u64, beat: Beat);
    /// Takes the next beat that has arrived by `now`, if any.
    fn receive(&mut self, now: u64) -> Option<Beat>;
}

/// A device as the host sees it: the behavioural model or the Verilated RTL.
pub trait Device {
    /// Posts a write of 1 to 64 bytes to a BAR (0, 2 or 4). Posted writes and reads take effect in
    /// order.
    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]);

    /// Posts a read of 1 to 8 bytes. At most one is outstanding.
    fn bar_read(&mut self, bar: u8, offset: u64, length: usize);

    /// The answer to the outstanding read, in the low bytes, once it is there.
    fn bar_response(&mut self) -> Option<u64>;

    /// Runs one cycle at time `now`.
    fn step(&mut self, now: u64, host: &mut dyn HostBus, link: &mut dyn Link);

    /// Whether the device has work of its own under way (work in its pipes or on the host port).
    /// Waiting for a timer or for the peer is not work.
    fn busy(&self) -> bool;

    /// What it did against the rules of the host port (contract 9), in order, as far as somebody looks.
    fn violations(&self) -> &[String] {
        &[]
    }
}
