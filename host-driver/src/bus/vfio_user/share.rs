//! Which pages of this process a simulator shares, and how that is kept right over fork.
//!
//! The process has one memory file. A page that is shared is mapped in place onto the file at the
//! offset that is its address. Where that is so, `/proc/self/maps` says; here is only how many
//! registrations each page has. So memory that the program unmapped or allocated anew meanwhile is
//! never taken for shared.

use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, Once};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fstat, ftruncate,
    memfd_create,
};
use rustix::process::{Resource, getrlimit};

use super::map;
use super::maps::{self, Area};
use super::socket::wait_ready;
use crate::dma::PAGE_BYTES;
use crate::process;
use crate::sync::lock;

/// Size of the file: every address of user space is an offset in it.
const FILE_BYTES: u64 = 1 << 47;
/// How long a parent waits after fork for the child to have pages of its own.
const FORK_BOUND: Duration = Duration::from_secs(1);

/// A part of a registered range, in whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: usize,
    pub(super) end: usize,
    /// In the file; else it is reached by message.
    pub(super) shared: bool,
    pub(super) writable: bool,
}

#[derive(Debug)]
struct Share {
    file: OwnedFd,
    inode: u64,
    /// Registrations of each page.
    counts: BTreeMap<usize, u32>,
    /// Sockets of open buses, and a socket whose other end is closed.
    sockets: Vec<RawFd>,
    dead_end: UnixStream,
}

/// In pages of its own: a program that registers a static beside it must not have it re-mapped while
/// others wait for it.
#[repr(align(4096))]
struct OwnPages(Mutex<Option<Share>>);

static OWN_PAGES: OwnPages = OwnPages(Mutex::new(None));
static SHARE: &Mutex<Option<Share>> = &OWN_PAGES.0;
/// How many forks lie between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Which process this is: another number in a child after fork.
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Acquire)
}

impl Share {
    fn new() -> io::Result<Self> {
        static HANDLERS: Once = Once::new();
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| limit < FILE_BYTES) {
            let text = "the limit of file sizes (ulimit -f) must be `unlimited`: memory that the \
                        simulator shares is a large sparse memory file";
            return Err(io::Error::other(text));
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("viaduct", flags)?;
        ftruncate(&file, FILE_BYTES)?;
        // The other end maps the file only if it cannot shrink under it.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let inode = fstat(&file)?.st_ino;
        let (dead_end, _closed) = UnixStream::pair()?;
        let mut registered = true;
        HANDLERS.call_once(|| registered = process::around_forks(before_fork, in_parent, in_child));
        if !registered {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        Ok(Self { file, inode, counts: BTreeMap::new(), sockets: Vec::new(), dead_end })
    }

    /// Whether it is the memory file's, wherever in it.
    fn is_in_file(&self, area: &Area) -> bool {
        area.is_shared() && area.inode == self.inode
    }

    /// Whether it is where [`map::share`] puts it. The program may have moved memory that is
    /// registered (`mremap`): then it is not.
    fn is_own(&self, area: &Area) -> bool {
        self.is_in_file(area) && area.offset == area.start as u64
    }

    /// Shares an area or leaves it to messages, as one that `stays` where it is.
    fn take(&mut self, area: Area, stays: bool, all: &[Area]) -> Piece {
        let (start, end) = (area.start, area.end);
        let shared = self.is_own(&area) || (!stays && area.is_ordinary() && self.share(area, all));
        if shared {
            for page in (start..end).step_by(PAGE_BYTES) {
                *self.counts.entry(page).or_default() += 1;
            }
        }
        Piece { start, end, shared, writable: area.is_writable() }
    }

    /// Puts an area onto the file. Memory that was moved away from there while it was registered
    /// would change with it.
    fn share(&self, area: Area, all: &[Area]) -> bool {
        if self.unshare(area.start, area.end, all).is_err() {
            return false;
        }
        let shared = map::share(self.file.as_fd(), area.start, area.end).is_ok();
        if !shared {
            // No part of it either.
            self.give_run(area.start, area.end);
        }
        shared
    }

    /// Makes everything the program's own that has these pages of the file.
    fn unshare(&self, start: usize, end: usize, all: &[Area]) -> io::Result<()> {
        let in_file = all.iter().filter(|area| self.is_in_file(area));
        let mut parts = in_file.filter_map(|area| area.part_of_file(start, end));
        parts.try_for_each(|part| map::unshare(self.file.as_fd(), part, false))
    }

    fn give(&mut self, piece: Piece) {
        let mut unused = Vec::new();
        for page in (piece.start..piece.end).step_by(PAGE_BYTES) {
            let Some(count) = self.counts.get_mut(&page) else { continue };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&page);
                unused.push(page);
            }
        }
        for run in unused.chunk_by(|a, b| a + PAGE_BYTES == *b) {
            self.give_run(run[0], run[0] + run.len() * PAGE_BYTES);
        }
    }

    /// Makes pages the program's own again that nobody needs shared, and takes them out of the file:
    /// it would keep the memory of every address that was registered once.
    fn give_run(&self, start: usize, end: usize) {
        // If it fails the pages stay shared, which harms nobody.
        let given = maps::all().and_then(|all| self.unshare(start, end, &all));
        if given.is_ok() {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(&self.file, flags, start as u64, (end - start) as u64);
        }
    }
}

/// Makes a range reachable, in whole pages: shared where that is possible.
///
/// # Errors
/// Part of it is not mapped or not readable; no memory file.
pub(super) fn take(address: usize, length: usize) -> io::Result<Vec<Piece>> {
    let (start, end) = pages(address, length)?;
    let mut guard = lock(SHARE);
    let share = get(&mut guard)?;
    let all = maps::all()?;
    let found = maps::cut(&all, start, end);
    let mut at = start;
    for area in found.iter().take_while(|area| area.is_readable()) {
        if area.start == at {
            at = area.end;
        }
    }
    if at != end {
        let text = format!("memory at {at:#x} is not mapped, or may not be read");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let (stack, block) = (own_stack(&all), own_block());
    Ok(found
        .into_iter()
        .flat_map(|area| split(area, stack))
        .flat_map(|(area, is_stack)| {
            split(area, block).map(move |(area, is_block)| (area, is_stack || is_block))
        })
        .map(|(area, stays)| share.take(area, stays, &all))
        .collect())
}

/// Takes back what [`take`] gave.
pub(super) fn give(pieces: &[Piece]) {
    if let Some(share) = &mut *lock(SHARE) {
        pieces.iter().filter(|piece| piece.shared).for_each(|piece| share.give(*piece));
    }
}

/// The memory file, to be sent to a simulator.
///
/// # Errors
/// None can be had.
pub(super) fn file() -> io::Result<OwnedFd> {
    get(&mut lock(SHARE))?.file.try_clone()
}

/// From now on the socket is that of an open bus, which a child after fork must not use.
///
/// # Errors
/// No memory file.
pub(super) fn add_socket(socket: BorrowedFd<'_>) -> io::Result<()> {
    get(&mut lock(SHARE))?.sockets.push(socket.as_raw_fd());
    Ok(())
}

/// The socket is closed next.
pub(super) fn remove_socket(socket: BorrowedFd<'_>) {
    if let Some(share) = &mut *lock(SHARE) {
        share.sockets.retain(|other| *other != socket.as_raw_fd());
    }
}

fn get<'a>(guard: &'a mut MutexGuard<'_, Option<Share>>) -> io::Result<&'a mut Share> {
    if guard.is_none() {
        **guard = Some(Share::new()?);
    }
    guard.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

/// The stack of this thread. Registered memory on it is not shared: its pages hold the frames of
/// running functions, which nobody can copy and which a child after fork must have for itself.
fn own_stack(all: &[Area]) -> (usize, usize) {
    let local = 0_u8;
    let at = (&raw const local).addr();
    let block = map::thread_block();
    let Some(area) = all.iter().find(|area| (area.start..area.end).contains(&at)) else {
        return (at, at);
    };
    // The kernel may have joined the mapping with its upper neighbour.
    let top = if (at..area.end).contains(&block) { block + 2 * PAGE_BYTES } else { area.end };
    (area.start, (top & !(PAGE_BYTES - 1)).min(area.end))
}

/// The pages in which the C library and the kernel (`rseq`) keep what they know of this thread: the
/// kernel would wait at them for the thread itself. Those of the first thread may lie in the heap.
fn own_block() -> (usize, usize) {
    /// As long as the library's part is at least; it ends its mapping.
    const BLOCK_BYTES: usize = 0x900;
    let block = map::thread_block();
    let start = (block & !(PAGE_BYTES - 1)).saturating_sub(PAGE_BYTES);
    (start, (block + BLOCK_BYTES).next_multiple_of(PAGE_BYTES))
}

/// Cuts an area into the parts below, in and above a range.
fn split(area: Area, range: (usize, usize)) -> impl Iterator<Item = (Area, bool)> {
    let low = range.0.clamp(area.start, area.end);
    let high = range.1.clamp(low, area.end);
    let parts = [(area.start, low, false), (low, high, true), (high, area.end, false)];
    parts.into_iter().filter_map(move |(start, end, is_inside)| {
        area.part(start, end).map(|part| (part, is_inside))
    })
}

fn pages(address: usize, length: usize) -> io::Result<(usize, usize)> {
    let start = address & !(PAGE_BYTES - 1);
    let end = address.checked_add(length).and_then(|end| end.checked_next_multiple_of(PAGE_BYTES));
    match end {
        Some(end) if length > 0 && (end as u64) <= FILE_BYTES => Ok((start, end)),
        _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    }
}

/// What the handlers hold from before a fork until after it.
struct Held {
    share: MutexGuard<'static, Option<Share>>,
    /// Pages that the child gets copies of.
    shared: Vec<Area>,
    /// Open at the writing end as long as the child is not done.
    pipe: Option<(OwnedFd, OwnedFd)>,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

fn held() -> Option<Held> {
    HELD.try_with(|held| held.try_borrow_mut().ok()?.take()).ok().flatten()
}

/// Nobody shares pages while a process forks. What the child needs is found out here, where memory
/// may still be allocated.
extern "C" fn before_fork() {
    let guard = lock(SHARE);
    let Some(share) = &*guard else { return };
    let all = maps::all().unwrap_or_default();
    let shared = all.into_iter().filter(|area| share.is_in_file(area)).collect();
    let pipe = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok();
    let state = Held { share: guard, shared, pipe };
    let _ = HELD.try_with(|held| held.try_borrow_mut().map(|mut held| *held = Some(state)));
}

/// The parent goes on when the child has copies of its own.
extern "C" fn in_parent() {
    let Some(Held { share, pipe, .. }) = held() else { return };
    if let Some((reader, writer)) = pipe {
        drop(writer);
        // Ends when the child closed its end, also by dying, or if there is no child.
        let _ = wait_ready(reader.as_fd(), PollFlags::IN, Instant::now() + FORK_BOUND);
    }
    drop(share);
}

/// The child gets copies of what the parent shares with simulators, as of all other memory, and no
/// way to use the parent's devices. What it registers itself is in a file of its own.
///
/// Memory is not freed here: not every allocator can do that in a child so early.
extern "C" fn in_child() {
    let Some(Held { mut share, shared, pipe }) = held() else { return };
    if let Some(Share { file, counts, sockets, dead_end, inode: _ }) = share.take() {
        for area in &shared {
            let _ = map::unshare(file.as_fd(), *area, true);
        }
        GENERATION.fetch_add(1, Ordering::AcqRel);
        sockets.iter().for_each(|socket| map::replace_fd(dead_end.as_fd(), *socket));
        core::mem::forget((counts, sockets));
    }
    core::mem::forget(shared);
    drop(share);
    // The parent goes on.
    drop(pipe);
}

#[cfg(test)]
pub(super) mod tests;
