//! The kernel's side of a card: VFIO's container, group and device.
#![expect(unsafe_code, reason = "memory that a device writes, descriptors by number")]

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::ioctl;
use vfio_ioctls::{VfioContainer, VfioDevice, VfioError};
use vmm_sys_util::eventfd::EventFd;

use port::own::OwnFd;

use crate::dma::DmaMemory;

/// Indices of regions, and of interrupts (Linux's `linux/vfio.h`).
const CONFIG: u32 = 7;
const REQUEST_IRQ: u32 = 4;
/// `VFIO_IOMMU_MAP_DMA`, which `vfio_ioctls` has only for reading and writing together.
const MAP_DMA: ioctl::Opcode = ioctl::opcode::none(b';', 113);
const READ: u32 = 1 << 0;
const WRITE: u32 = 1 << 1;

/// Its argument, `struct vfio_iommu_type1_dma_map`.
#[repr(C)]
struct MapDma {
    argsz: u32,
    flags: u32,
    vaddr: u64,
    iova: u64,
    size: u64,
}

/// A card that this program has.
pub(super) struct Kernel {
    /// First, so that it goes before its container.
    device: VfioDevice,
    container: Arc<VfioContainer>,
    /// Descriptors of the card: of device, group and container.
    pub(super) fds: Vec<RawFd>,
}

/// Descriptors of this process that name files of VFIO.
fn descriptors() -> Vec<RawFd> {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let is_vfio = |path: &Path| {
        let target = fs::read_link(path).unwrap_or_default();
        target.starts_with("/dev/vfio") || target == Path::new("anon_inode:[vfio-device]")
    };
    entries
        .filter(|entry| is_vfio(&entry.path()))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

impl Kernel {
    /// Takes the card in a folder of sysfs. Its function is reset.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(folder: &Path) -> Result<Self, VfioError> {
        let before = descriptors();
        let container = Arc::new(VfioContainer::new(None)?);
        let device = VfioDevice::new(folder, Arc::clone(&container) as _, false)?;
        let fds = descriptors().into_iter().filter(|fd| !before.contains(fd)).collect();
        Ok(Self { device, container, fds })
    }

    /// The descriptors, which live as long as this.
    pub(super) fn borrowed(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        // SAFETY: they are this card's, which has them open.
        self.fds.iter().map(|fd| unsafe { BorrowedFd::borrow_raw(*fd) })
    }

    pub(super) fn region_size(&self, bar: u8) -> u64 {
        self.device.get_region_size(bar.into())
    }

    /// Reads a BAR; all ones if the kernel refuses.
    pub(super) fn read(&self, bar: u8, offset: u64) -> u32 {
        let mut bytes = [0xff; 4];
        self.device.region_read(bar.into(), &mut bytes, offset);
        u32::from_le_bytes(bytes)
    }

    pub(super) fn write(&self, bar: u8, offset: u64, bytes: &[u8]) {
        self.device.region_write(bar.into(), bytes, offset);
    }

    pub(super) fn read_config(&self, offset: u16) -> u16 {
        let mut bytes = [0xff; 2];
        self.device.region_read(CONFIG, &mut bytes, offset.into());
        u16::from_le_bytes(bytes)
    }

    pub(super) fn write_config(&self, offset: u16, value: u16) {
        self.device.region_write(CONFIG, &value.to_le_bytes(), offset.into());
    }

    /// Maps a whole BAR.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn map_registers(&self, bar: u8) -> io::Result<DmaMemory> {
        // SAFETY: the device has it open.
        let fd = unsafe { BorrowedFd::borrow_raw(self.device.as_raw_fd()) };
        let length = usize::try_from(self.region_size(bar)).unwrap_or(0);
        DmaMemory::map_registers(fd, self.device.get_region_offset(bar.into()), length)
    }

    /// Lets the device read whole pages of this process at a bus address, and write them unless the
    /// program itself may not.
    ///
    /// # Errors
    /// The kernel's: FAULT for pages that the program may not read, NOMEM at the limit of locked
    /// memory.
    pub(super) fn map(&self, bus: u64, (address, size): (u64, usize)) -> rustix::io::Result<()> {
        let map = |flags| {
            let argsz = u32::try_from(size_of::<MapDma>()).unwrap_or(0);
            let (vaddr, iova, size) = (address, bus, size as u64);
            let map = MapDma { argsz, flags, vaddr, iova, size };
            // SAFETY: the container has it open.
            let fd = unsafe { BorrowedFd::borrow_raw(self.container.as_raw_fd()) };
            // SAFETY: the call reads a structure of this form.
            let call = unsafe { ioctl::Setter::<MAP_DMA, MapDma>::new(map) };
            // SAFETY: the NIC writes only what is registered in these pages, which is `DmaMemory`:
            // nobody has references to it, and every access is volatile or atomic.
            unsafe { ioctl::ioctl(fd, call) }
        };
        match map(READ | WRITE) {
            Err(Errno::FAULT) => map(READ),
            done => done,
        }
    }

    /// Takes a mapping back.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn unmap(&self, bus: u64, size: usize) -> Result<(), VfioError> {
        self.container.vfio_dma_unmap(bus, size)
    }

    /// Has the device's vectors raise these eventfds; the table of messages is written anew.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn connect(&self, vectors: &[OwnFd]) -> io::Result<()> {
        // Nothing to disable, the first time.
        let _ = self.device.disable_msix();
        let events: Vec<EventFd> = vectors.iter().map(event).collect::<io::Result<_>>()?;
        self.device.enable_msix(events.iter().collect()).map_err(io::Error::other)
    }

    /// Has the kernel raise this eventfd when it wants the device back.
    ///
    /// # Errors
    /// The kernel's; an old one does not ask.
    pub(super) fn set_request(&self, request: &OwnFd) -> io::Result<()> {
        let event = event(request)?;
        self.device.enable_irq(REQUEST_IRQ, vec![&event]).map_err(io::Error::other)
    }
}

/// The same eventfd in the type that `vfio_ioctls` takes.
fn event(fd: &OwnFd) -> io::Result<EventFd> {
    let fd = fd.try_clone()?.into_raw_fd();
    // SAFETY: it is a new descriptor, of an eventfd, that nobody else has.
    Ok(unsafe { EventFd::from_raw_fd(fd) })
}
