//! Memory that a client gave by a descriptor: a memory file, which is mapped here, or a process's
//! address space (`/proc/PID/mem`), which is read and written.
//!
//! Other files are memory that cannot be reached: one that may shrink would end the server by a
//! signal when it is mapped, and reading one may take any time.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Weak};

use host_driver::dma::DmaMemory;
use vfio_user::protocol::{DmaMap, errno};

/// Most windows of a client: with 64 clients half of what the system lets a process map.
const WINDOWS_MAX: usize = 512;
/// Most bytes in the windows of a client.
const MAPPED_MAX: u64 = 1 << 40;
/// Most address spaces of a client; one is enough for a program.
const SPACES_MAX: usize = 16;
/// Files are mapped in aligned pieces of this size, since clients map them in many small ones.
const WINDOW_BYTES: u64 = 64 << 20;
/// Most bytes of a write that may carry a status or an event: a wide entry of an event queue.
const RECORD_BYTES: usize = 64;
/// Type of the file system `/proc` (Linux's `linux/magic.h`).
const PROC_MAGIC: rustix::fs::FsWord = 0x9fa0;

/// Why memory that came with no descriptor of use cannot be reached.
const NO_WAY: &str = "its client gave that memory neither with a memory file that is sealed against \
                      shrinking nor with its /proc/self/mem";

/// A file on the kernel's device and inode numbers.
type FileId = (u64, u64);

/// A part of a client's memory file that is mapped here.
#[derive(Debug)]
pub(super) struct Window {
    file: FileId,
    start: u64,
    memory: DmaMemory,
}

/// A process's address space.
#[derive(Debug)]
pub(super) struct Space {
    file: FileId,
    memory: File,
}

/// Where the memory of a mapping is.
#[derive(Debug)]
pub(super) enum Memory {
    /// In a window, from this offset on.
    Window(Arc<Window>, usize),
    /// In an address space, from this address on.
    Space(Arc<Space>, u64),
    /// It cannot be reached.
    Nowhere,
}

/// Why an access of reachable memory failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The mapping came without memory.
    Nowhere(&'static str),
    /// The program has no such memory at this address any more, or it may not be written.
    Lost(u64),
}

impl Memory {
    /// Reads bytes from `offset` on.
    pub(super) fn load(&self, offset: usize, data: &mut [u8]) -> Result<(), Failure> {
        match self {
            Self::Window(window, start) => window.memory.copy_to(start + offset, data),
            Self::Space(space, start) => {
                let at = start + offset as u64;
                let done = rustix::io::pread(&space.memory, &mut *data, at);
                if done != Ok(data.len()) {
                    return Err(Failure::Lost(at));
                }
            }
            Self::Nowhere => return Err(Failure::Nowhere(NO_WAY)),
        }
        Ok(())
    }

    /// Writes bytes from `offset` on, so that a program that polls the last word of a status or of
    /// an event finds everything else of it when it finds the word.
    ///
    /// The kernel does not promise that a write to an address space is one store, nor the order of its
    /// bytes. So a short write has two parts, and the kernel carries out the first one before the
    /// second. DONE of a descriptor's status and of an admin entry is in the first byte of the last
    /// word: that byte is the second part, and 0 in the first one, as it was (not done). The phase of
    /// an event is in the last byte of the last word, whose first byte is always 0: that word is the
    /// second part.
    pub(super) fn store(&self, offset: usize, data: &[u8]) -> Result<(), Failure> {
        let (space, start) = match self {
            Self::Window(window, start) => {
                window.memory.store_in_order(start + offset, data);
                return Ok(());
            }
            Self::Space(space, start) => (space, start),
            Self::Nowhere => return Err(Failure::Nowhere(NO_WAY)),
        };
        let at = start + offset as u64;
        let length = data.len();
        let is_record =
            (4..=RECORD_BYTES).contains(&length) && (at + length as u64).is_multiple_of(4);
        let done = if !is_record {
            rustix::io::pwrite(&space.memory, data, at)
        } else if data[length - 4] == 0 {
            let (front, word) = data.split_at(length - 4);
            let parts = [IoSlice::new(front), IoSlice::new(word)];
            rustix::io::pwritev(&space.memory, &parts, at)
        } else {
            let mut whole = [0; RECORD_BYTES];
            whole[..length].copy_from_slice(data);
            whole[length - 4] = 0;
            rustix::io::pwrite(&space.memory, &whole[..length], at).and_then(|count| {
                let flag = length - 4;
                let last = rustix::io::pwrite(&space.memory, &data[flag..=flag], at + flag as u64)?;
                Ok(count + last - 1)
            })
        };
        if done == Ok(length) { Ok(()) } else { Err(Failure::Lost(at)) }
    }
}

/// What a client's mappings share. It goes with the last mapping that needs it.
#[derive(Debug, Default)]
pub(super) struct Files {
    windows: Vec<Weak<Window>>,
    spaces: Vec<Weak<Space>>,
}

impl Files {
    /// The memory of a mapping.
    ///
    /// # Errors
    /// The errno for the client.
    pub(super) fn open(&mut self, fd: OwnedFd, map: &DmaMap) -> Result<Memory, u32> {
        let state = rustix::fs::fstat(&fd).map_err(|_| errno::INVALID)?;
        let end = map.offset.checked_add(map.size).ok_or(errno::INVALID)?;
        let file = (state.st_dev, state.st_ino);
        if is_address_space(&fd) {
            return self.space(file, fd).map(|space| Memory::Space(space, map.offset));
        }
        let size = u64::try_from(state.st_size).unwrap_or(0);
        if end > size {
            return Err(errno::INVALID);
        }
        self.window(file, &fd, (map.offset, end), size)
    }

    fn space(&mut self, file: FileId, fd: OwnedFd) -> Result<Arc<Space>, u32> {
        self.spaces.retain(|space| space.strong_count() > 0);
        let mut known = self.spaces.iter().filter_map(Weak::upgrade);
        if let Some(space) = known.find(|space| space.file == file) {
            return Ok(space);
        }
        if self.spaces.len() >= SPACES_MAX {
            return Err(errno::NO_SPACE);
        }
        let space = Arc::new(Space { file, memory: fd.into() });
        self.spaces.push(Arc::downgrade(&space));
        Ok(space)
    }

    fn window(
        &mut self,
        file: FileId,
        fd: &OwnedFd,
        (offset, end): (u64, u64),
        size: u64,
    ) -> Result<Memory, u32> {
        let place = |start: u64| usize::try_from(offset - start).map_err(|_| errno::INVALID);
        let in_it =
            |window: Arc<Window>| Ok(Memory::Window(Arc::clone(&window), place(window.start)?));
        self.windows.retain(|window| window.strong_count() > 0);
        let mut mapped = 0;
        for window in self.windows.iter().filter_map(Weak::upgrade) {
            let length = window.memory.len() as u64;
            mapped += length;
            if window.file == file && window.start <= offset && end <= window.start + length {
                return in_it(window);
            }
        }
        let start = offset / WINDOW_BYTES * WINDOW_BYTES;
        let stop = end.checked_next_multiple_of(WINDOW_BYTES).unwrap_or(size).min(size);
        if self.windows.len() >= WINDOWS_MAX || stop - start > MAPPED_MAX - mapped {
            return Err(errno::NO_SPACE);
        }
        let length = usize::try_from(stop - start).map_err(|_| errno::NO_SPACE)?;
        match DmaMemory::map_file(fd.as_fd(), start, length) {
            Ok(memory) => {
                let window = Arc::new(Window { file, start, memory });
                self.windows.push(Arc::downgrade(&window));
                in_it(window)
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(Memory::Nowhere),
            Err(error) => {
                let code = error.raw_os_error().and_then(|code| u32::try_from(code).ok());
                Err(code.unwrap_or(errno::INVALID))
            }
        }
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let live = |count: usize| usize::from(count > 0);
        let windows = self.windows.iter().map(|window| live(window.strong_count())).sum();
        (windows, self.spaces.iter().map(|space| live(space.strong_count())).sum())
    }
}

/// Whether a descriptor is of a process's `mem` in `/proc`.
fn is_address_space(fd: &OwnedFd) -> bool {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    rustix::fs::fstatfs(fd).is_ok_and(|system| system.f_type == PROC_MAGIC)
        && link.is_ok_and(|link| link.ends_with("mem"))
}
