//! What a child after fork must not keep of its parent's devices: their descriptors, and registers
//! that are mapped.
//!
//! A child that kept a connection would keep the device after its parent died, and could write to it.
//! So the child's copies of these descriptors become those of a closed socket, its copies of mapped
//! registers become memory that nobody reads, and its ports find their devices absent. `fork` of a C
//! library runs these handlers; a raw `clone` does not.
#![expect(unsafe_code, reason = "descriptors by number")]

use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, OnceLock};

use rustix::io::DupFlags;
use rustix::mm::{MapFlags, ProtFlags};

use crate::memory::DmaMemory;
use crate::own::{self, OwnFd};
use crate::process;
use crate::sync::lock;

/// Descriptors of open devices, and a socket whose other end is closed.
#[derive(Debug)]
struct Open {
    fds: Vec<RawFd>,
    /// Mapped registers: whole pages, by their addresses.
    registers: Vec<(usize, usize)>,
    closed: OwnFd,
}

static OPEN: Mutex<Option<Open>> = Mutex::new(None);
/// Number of forks between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The lock of [`OPEN`], which a forking thread holds from before the fork until after it.
    static HELD: RefCell<Option<MutexGuard<'static, Option<Open>>>> = const { RefCell::new(None) };
}

/// Number of this process among its forked ancestors: another one in a child after fork.
#[must_use]
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Acquire)
}

/// Has children after fork lose this descriptor of an open device.
///
/// # Errors
/// No descriptor, or no memory for the handlers.
pub fn add(fd: BorrowedFd<'_>) -> io::Result<()> {
    add_new(|| Ok(fd)).map(drop)
}

/// Creates a descriptor that children after fork lose, and that is out of the program's way ([`own`]). No
/// fork happens between its creation and its registration, so that no child keeps it. `make` must not
/// wait: every fork waits for it. Before it is closed it is removed ([`remove`]).
///
/// # Errors
/// Those of `make`; no descriptor, or no memory for the handlers.
pub fn create<T: AsFd + From<OwnedFd>>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    own::undisturbed(|| add_new(|| make().map(own::moved)))
}

fn add_new<T: AsFd>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if !register() {
        return Err(io::Error::from(io::ErrorKind::OutOfMemory));
    }
    let mut open = lock(&OPEN);
    let open = match &mut *open {
        Some(open) => open,
        none => {
            let (closed, _other) = UnixStream::pair()?;
            none.insert(Open {
                fds: Vec::new(),
                registers: Vec::new(),
                closed: OwnFd::new(closed.into()),
            })
        }
    };
    let made = make()?;
    let number = made.as_fd().as_raw_fd();
    open.fds.push(number);
    own::note(number);
    Ok(made)
}

/// Registers the handlers of this module. Handlers that are registered later run before a fork first:
/// they may take locks under which descriptors are created. False: no memory for it.
pub fn register() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| process::around_forks(before_fork, in_parent, in_child))
}

/// Runs something short while no thread forks, so that no child finds a lock of it taken by a thread
/// that it does not have. `f` must not wait, and not call this module.
pub fn without_forks<T>(f: impl FnOnce() -> T) -> T {
    let _open = lock(&OPEN);
    f()
}

/// Has children after fork lose registers that [`DmaMemory::map_registers`] mapped. The device's
/// descriptor is registered first ([`add`]).
pub fn add_registers(registers: &DmaMemory) {
    if let Some(open) = &mut *lock(&OPEN) {
        open.registers.push(place_of(registers));
    }
}

/// Forgets registers that are unmapped next.
pub fn remove_registers(registers: &DmaMemory) {
    if let Some(open) = &mut *lock(&OPEN) {
        open.registers.retain(|other| *other != place_of(registers));
    }
}

fn place_of(memory: &DmaMemory) -> (usize, usize) {
    (usize::try_from(memory.address()).unwrap_or(0), memory.len())
}

/// Forgets a descriptor that is closed next.
pub fn remove(fd: BorrowedFd<'_>) {
    if let Some(open) = &mut *lock(&OPEN) {
        open.fds.retain(|other| *other != fd.as_raw_fd());
    }
    own::forget(fd.as_raw_fd());
}

extern "C" fn before_fork() {
    let guard = lock(&OPEN);
    let _ = HELD.try_with(|held| held.try_borrow_mut().map(|mut held| *held = Some(guard)));
}

fn held() -> Option<MutexGuard<'static, Option<Open>>> {
    HELD.try_with(|held| held.try_borrow_mut().ok()?.take()).ok().flatten()
}

extern "C" fn in_parent() {
    drop(held());
}

/// Allocates and frees nothing: not every allocator can do that in a child so early.
extern "C" fn in_child() {
    let Some(mut guard) = held() else { return };
    GENERATION.fetch_add(1, Ordering::AcqRel);
    own::forked();
    if let Some(Open { fds, registers, closed }) = &mut *guard {
        registers.iter().for_each(|(address, length)| cover(*address, *length));
        registers.clear();
        fds.iter().for_each(|fd| replace(closed.as_fd(), *fd));
        fds.clear();
    }
}

/// Puts memory of this process in the place of registers.
fn cover(address: usize, length: usize) {
    let place = core::ptr::without_provenance_mut(address);
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: the pages are those of a `DmaMemory`, which nobody has a reference to, and stay mapped as
    // long as it lives.
    let _ = unsafe { rustix::mm::mmap_anonymous(place, length, rights, flags) };
}

/// Puts `other` in the place of a descriptor that somebody else owns.
fn replace(other: BorrowedFd<'_>, place: RawFd) {
    // SAFETY: `place` is open, and released below, so that its owner still owns it.
    let mut owned = unsafe { OwnedFd::from_raw_fd(place) };
    let _ = rustix::io::dup3(other, &mut owned, DupFlags::CLOEXEC);
    let _ = owned.into_raw_fd();
}
