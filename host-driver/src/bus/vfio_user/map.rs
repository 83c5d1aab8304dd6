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

use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap, mmap_anonymous, mremap_fixed, munmap};

use super::hold::{hold, signals_off};
use super::maps::Area;
use crate::dma::PAGE_BYTES;

/// Bytes that change their mapping at a time. Writers of them wait; where they cannot be held off,
/// what they write between the copy and the change is lost, so this is short (about 10 us).
const STEP_BYTES: usize = 16 * PAGE_BYTES;

/// How far from its current frame, and from its control block, a thread writes without being told.
const IN_USE_BYTES: usize = 4 * PAGE_BYTES;

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
    let place = with_exposed_provenance_mut(start);
    // Once to have all pages there, and once when nobody writes any more.
    copy(place, new, length);
    let signals = signals_off();
    let held = hold(start, length);
    copy(place, new, length);
    let moved = replace(new, place, length);
    // Writers that wait write to the file's pages.
    drop(held);
    drop(signals);
    if moved.is_err() {
        discard(new, length);
    }
    moved
}

/// Moves the mapping `new`, which has the contents of `place`, to it.
fn replace(new: *mut c_void, place: *mut c_void, length: usize) -> io::Result<()> {
    // SAFETY: `place` is ordinary memory of the program of this length, and after this call has the
    // same contents as before.
    unsafe { mremap_fixed(new, length, length, MremapFlags::MAYMOVE, place) }?;
    Ok(())
}

/// Unmaps `new`, which [`replace`] did not move.
fn discard(new: *mut c_void, length: usize) {
    // SAFETY: a mapping made here, which nobody else knows.
    let _ = unsafe { munmap(new, length) };
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

/// Makes an area of the file the program's own again, with the same contents: anonymous memory, as
/// it was. `alone` says that no other thread is there, as in a child after fork.
///
/// Where that cannot be done without the loss of what others write at this moment, the pages are the
/// program's own too, but those that it drops (`MADV_DONTNEED`) are the file's again.
pub(super) fn unshare(file: BorrowedFd<'_>, area: Area, alone: bool) -> io::Result<()> {
    let length = area.end - area.start;
    // One mapping for all steps, so that its parts join again.
    // SAFETY: a new mapping at a place that the kernel chooses.
    let new = unsafe { mmap_anonymous(null_mut(), length, rights(), MapFlags::PRIVATE) };
    let Ok(new) = new else { return unshare_in_place(file, area) };
    let mut result = Ok(());
    for start in (area.start..area.end).step_by(STEP_BYTES) {
        let Some(step) = area.part(start, start + STEP_BYTES) else { break };
        let new = new.wrapping_byte_add(start - area.start);
        if !unshare_step(new, step, alone) {
            discard(new, step.end - step.start);
            result = result.and(unshare_in_place(file, step));
        }
    }
    result
}

/// False if `new` could not be put in place.
fn unshare_step(new: *mut c_void, step: Area, alone: bool) -> bool {
    let (place, length) = (with_exposed_provenance_mut(step.start), step.end - step.start);
    if !step.is_readable() || is_in_use_here(step) {
        return false;
    }
    let signals = signals_off();
    let mut held = None;
    if !alone {
        copy(place, new, length);
        held = hold(step.start, length);
    }
    let moved = (alone || held.is_some()) && {
        copy(place, new, length);
        replace(new, place, length).is_ok()
    };
    // Writers that wait write to the new pages.
    drop(held);
    drop(signals);
    moved
}

/// Whether this thread may write to the range meanwhile, which it registered on the stack of a
/// thread that waited, or the kernel for it (`rseq`).
fn is_in_use_here(area: Area) -> bool {
    let local = 0_u8;
    [(&raw const local).addr(), thread_block()].into_iter().any(|at| {
        area.part(at.saturating_sub(IN_USE_BYTES), at.saturating_add(IN_USE_BYTES)).is_some()
    })
}

/// Makes an area of the file private, and has each page copied by the kernel, so that nothing is
/// lost that others write meanwhile.
pub(super) fn unshare_in_place(file: BorrowedFd<'_>, area: Area) -> io::Result<()> {
    let place = with_exposed_provenance_mut(area.start);
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: `place` has these pages of the file, so that its contents stay the same.
    unsafe { mmap(place, area.end - area.start, rights(), flags, file, area.offset) }?;
    for page in (area.start..area.end).step_by(PAGE_BYTES) {
        // SAFETY: mapped and writable since the call above.
        let byte = unsafe { AtomicU8::from_ptr(with_exposed_provenance_mut(page)) };
        // Writes what is there. The compiler would make a mere read of a `fetch_or` of 0.
        let mut found = byte.load(Ordering::Relaxed);
        while let Err(other) =
            byte.compare_exchange_weak(found, found, Ordering::Relaxed, Ordering::Relaxed)
        {
            found = other;
        }
    }
    Ok(())
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
    safe fn pthread_self() -> usize;
}

/// Where the C library keeps what it knows of this thread: at the upper end of its stack, unless it
/// is the first thread.
pub(super) fn thread_block() -> usize {
    pthread_self()
}
