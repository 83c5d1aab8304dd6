//! Re-mapping pages of this process in place: the calls that touch raw memory.
//!
//! Everybody who calls these holds the lock of [`super::share`], and gives page-aligned ranges of
//! ordinary memory that the program owns. What the memory holds stays the same; only what is behind
//! it changes. So no reference to the memory becomes invalid.
#![expect(unsafe_code, reason = "changes the mapping of live memory")]

use core::ffi::c_void;
use core::ptr::{null_mut, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap, mremap_fixed, munmap};

use super::hold::hold;
use crate::dma::PAGE_BYTES;

/// Bytes that change their mapping at a time. Writers of them wait; where they cannot be held off,
/// what they write between the copy and the change is lost, so this is short (about 10 us).
const STEP_BYTES: usize = 16 * PAGE_BYTES;

fn rights() -> ProtFlags {
    ProtFlags::READ | ProtFlags::WRITE
}

/// Puts the file's pages at offset `start` behind the memory at `start`, with the same contents.
pub(super) fn share(file: BorrowedFd<'_>, start: usize, end: usize) -> io::Result<()> {
    let mut at = start;
    while at < end {
        let length = (end - at).min(STEP_BYTES);
        share_step(file, at, length)?;
        at += length;
    }
    Ok(())
}

fn share_step(file: BorrowedFd<'_>, start: usize, length: usize) -> io::Result<()> {
    let offset = start as u64;
    // SAFETY: a new mapping at a place that the kernel chooses.
    let new = unsafe { mmap(null_mut(), length, rights(), MapFlags::SHARED, file, offset) }?;
    let place: *mut c_void = with_exposed_provenance_mut(start);
    // Once to have all pages there, and once when nobody writes any more.
    copy(place, new, length);
    let held = hold(start, length);
    if held.is_some() {
        copy(place, new, length);
    }
    // SAFETY: `place` is ordinary memory of the program of this length, and after this call has the
    // same contents as before.
    let moved = unsafe { mremap_fixed(new, length, length, MremapFlags::MAYMOVE, place) };
    if let Err(error) = moved {
        // SAFETY: the mapping made above, which nobody else knows.
        let _ = unsafe { munmap(new, length) };
        return Err(error.into());
    }
    // Writers that wait write to the file's pages.
    drop(held);
    Ok(())
}

/// Copies whole pages, of which other threads may write the source at any time.
fn copy(from: *mut c_void, to: *mut c_void, length: usize) {
    let (from, to) = (from.cast::<u64>(), to.cast::<u64>());
    for word in 0..length / 8 {
        // SAFETY: both are page-aligned and of `length` bytes.
        let from = unsafe { AtomicU64::from_ptr(from.wrapping_add(word)) };
        // SAFETY: as above.
        let to = unsafe { AtomicU64::from_ptr(to.wrapping_add(word)) };
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Makes what [`share`] shared private again, page by page as it is written. Nothing is lost: until
/// a page is written, it is the file's.
pub(super) fn unshare(file: BorrowedFd<'_>, start: usize, end: usize) -> io::Result<()> {
    let place = with_exposed_provenance_mut(start);
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: `place` has these pages of the file, so that its contents stay the same.
    unsafe { mmap(place, end - start, rights(), flags, file, start as u64) }?;
    Ok(())
}

/// Has each page of an unshared range copied now.
pub(super) fn touch(start: usize, end: usize) {
    for page in (start..end).step_by(PAGE_BYTES) {
        // SAFETY: mapped and writable: `unshare` just mapped it.
        let byte = unsafe { AtomicU8::from_ptr(with_exposed_provenance_mut(page)) };
        byte.fetch_or(0, Ordering::Relaxed);
    }
}

/// Puts `other` in the place of a descriptor that somebody else owns.
pub(super) fn replace_fd(other: BorrowedFd<'_>, place: RawFd) {
    // SAFETY: `place` is open, and given back below, so that its owner still owns it.
    let mut owned = unsafe { OwnedFd::from_raw_fd(place) };
    let _ = rustix::io::dup2(other, &mut owned);
    let _ = owned.into_raw_fd();
}

// In the C library; `pthread_t` is a word there.
unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> core::ffi::c_int;
    safe fn pthread_self() -> usize;
}

/// Where the C library keeps what it knows of this thread: at the upper end of its stack, unless it
/// is the first thread.
pub(super) fn thread_block() -> usize {
    pthread_self()
}

/// Has these called around every fork of this process. False if there is no memory for it.
pub(super) fn at_fork(
    prepare: extern "C" fn(),
    parent: extern "C" fn(),
    child: extern "C" fn(),
) -> bool {
    // SAFETY: plain functions that never unwind.
    unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) == 0 }
}
