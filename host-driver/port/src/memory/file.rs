//! Memory files: memory that several processes map.

use core::ptr::NonNull;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use super::{DmaMemory, Owner, PAGE_BYTES};
use crate::error::{Error, Result};
use crate::own::OwnFd;

/// Type of the file system of memory files with huge pages (Linux's `linux/magic.h`).
const HUGETLBFS_MAGIC: rustix::fs::FsWord = 0x9584_58f6;

impl DmaMemory {
    /// Maps a part of a memory file that other processes map too. Offset and length are whole
    /// pages.
    ///
    /// # Errors
    /// Pages of the file may go, so that an access could end the process: it lacks the seal against
    /// becoming shorter, or it has huge pages, which its holes do not get back for sure:
    /// [`std::io::ErrorKind::Unsupported`]. The part is not in it:
    /// [`std::io::ErrorKind::InvalidInput`]. The system's.
    pub fn map_file(file: BorrowedFd<'_>, offset: u64, length: usize) -> std::io::Result<Self> {
        use rustix::fs::{fcntl_get_seals, fstat, fstatfs};
        if !fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) {
            return Err(ErrorKind::Unsupported.into());
        }
        if fstatfs(file)?.f_type == HUGETLBFS_MAGIC {
            return Err(ErrorKind::Unsupported.into());
        }
        let end = offset.checked_add(length as u64);
        let size = u64::try_from(fstat(file)?.st_size).unwrap_or(0);
        if length == 0 || end.is_none_or(|end| end > size) {
            return Err(ErrorKind::InvalidInput.into());
        }
        let base = map(file, offset, length)?;
        Ok(Self::of(base, Owner::Mapping(length, None), length))
    }

    /// Maps the first `length` bytes of a file on a disk, by which processes of one user show each other
    /// what they do. It has no seals, so it must be in a folder that no other user can change
    /// ([`crate::trust`]), and nobody makes it shorter: an access would end the process.
    ///
    /// # Errors
    /// The file is shorter: [`std::io::ErrorKind::InvalidInput`]. The system's.
    pub fn map_published(file: BorrowedFd<'_>, length: usize) -> std::io::Result<Self> {
        let size = usize::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0);
        if length == 0 || length > size {
            return Err(ErrorKind::InvalidInput.into());
        }
        let base = map(file, 0, length)?;
        Ok(Self::of(base, Owner::Mapping(length, None), length))
    }

    /// Maps registers of a device: `length` bytes at `offset` of its descriptor. Stores there are
    /// writes of the device. If the kernel takes the device away, an access ends the process.
    ///
    /// # Errors
    /// The system's; [`std::io::ErrorKind::InvalidInput`] for no bytes.
    pub fn map_registers(
        device: BorrowedFd<'_>,
        offset: u64,
        length: usize,
    ) -> std::io::Result<Self> {
        if length == 0 {
            return Err(ErrorKind::InvalidInput.into());
        }
        let base = map(device, offset, length)?;
        Ok(Self::of(base, Owner::Mapping(length, None), length))
    }

    /// Allocates `length` zeroed bytes, whole pages, that other processes can map too, once they are
    /// given its file ([`DmaMemory::file`]). Nothing else is in it.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for a length of zero; no memory or no descriptor.
    pub fn shared(length: usize) -> Result<Self> {
        if length == 0 {
            return Err(Error::BadArgument { what: "length of device memory", value: 0 });
        }
        let out_of_memory = Error::OutOfMemory { bytes: length };
        let size = length.checked_next_multiple_of(PAGE_BYTES).ok_or(out_of_memory)?;
        let make = || -> std::io::Result<Self> {
            check_limit(size)?;
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let file = OwnFd::create(|| rustix::fs::memfd_create(c"viaduct", flags))?;
            rustix::fs::ftruncate(&file, size as u64)?;
            let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
            rustix::fs::fcntl_add_seals(&file, seals)?;
            let base = map(file.as_fd(), 0, size)?;
            Ok(Self::of(base, Owner::Mapping(size, Some(file)), length))
        };
        make().map_err(Error::device)
    }

    /// Frees the pages of a memory file that lie wholly inside, for everybody who maps it: they are zero
    /// then. Memory of another kind stays as it is.
    pub fn discard(&self) {
        let Some((file, start)) = self.file() else { return };
        let page = PAGE_BYTES as u64;
        let from = start.next_multiple_of(page);
        let end = (start + self.length as u64) / page * page;
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // A kernel that cannot keeps them.
        let _ = rustix::fs::fallocate(file, how, from, end.saturating_sub(from));
    }

    /// The memory file behind this memory, and where in it this starts. None for memory of another
    /// kind.
    #[must_use]
    pub fn file(&self) -> Option<(BorrowedFd<'_>, u64)> {
        match self.allocation.origin() {
            Owner::Mapping(_, Some(file)) => Some((file.as_fd(), self.offset as u64)),
            _ => None,
        }
    }
}

/// Lengthens an empty file to `length` zeroed bytes, with their blocks: no store to a mapping of it finds
/// the disk full.
///
/// # Errors
/// The disk is full, or the process may not write so much
/// ([`ErrorKind::FileTooLarge`], without the signal for it). The system's.
pub fn reserve(file: BorrowedFd<'_>, length: usize) -> std::io::Result<()> {
    check_limit(length)?;
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length as u64) {
        // Not every file system can.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(file, length),
        result => Ok(result?),
    }
}

/// Fails if the process may not have files of so many bytes: the kernel would end it with a signal.
fn check_limit(length: usize) -> std::io::Result<()> {
    let most = getrlimit(Resource::Fsize).current;
    let is_too_long = most.is_some_and(|most| most < length as u64);
    if is_too_long { Err(ErrorKind::FileTooLarge.into()) } else { Ok(()) }
}

fn write_zeros(file: BorrowedFd<'_>, length: usize) -> std::io::Result<()> {
    let page = [0; PAGE_BYTES];
    let mut done = 0;
    while done < length {
        let part = &page[..PAGE_BYTES.min(length - done)];
        match rustix::io::pwrite(file, part, done as u64) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => done += written,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn map(file: BorrowedFd<'_>, offset: u64, length: usize) -> std::io::Result<NonNull<u8>> {
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    let nowhere = core::ptr::null_mut();
    // SAFETY: a new mapping at a place that the kernel chooses.
    let base =
        unsafe { rustix::mm::mmap(nowhere, length, rights, MapFlags::SHARED, file, offset) }?;
    NonNull::new(base.cast()).ok_or(ErrorKind::OutOfMemory.into())
}

/// Takes a mapping back.
///
/// # Safety
/// It is one of [`map`], and nobody uses it any more.
pub(super) unsafe fn unmap(base: NonNull<u8>, length: usize) {
    // SAFETY: as the caller says.
    let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), length) };
}
