//! The C library's own buffers (`FILE`): they read, write and close by slots of a table, not by the
//! names that programs call. Where the table is as it is known (glibc up to 2.36), those slots lead here.
#![expect(unsafe_code, reason = "the C library's table, and files of its own")]

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use libc::{FILE, size_t, ssize_t};
use port::memory::PAGE_BYTES;

use super::receive::read;
use super::send::write;
use crate::leaving;
use crate::moving::find;
use crate::real;

/// Slots of a table: their places, in words, and the functions that are there at first.
const SLOTS: [(usize, &CStr); 3] =
    [(14, c"_IO_file_read"), (15, c"_IO_file_write"), (17, c"_IO_file_close")];
/// Tables of bytes and of wide letters.
const TABLES: [&CStr; 2] = [c"_IO_file_jumps", c"_IO_wfile_jumps"];
/// Words of a table.
const WORDS: usize = 21;
/// `_IO_ERR_SEEN` of a file's flags, its first word: a write has failed.
const ERROR_SEEN: c_int = 0x20;

/// The C library's own functions in these slots.
static REAL: [AtomicPtr<c_void>; 3] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 3];
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// Whether files of the C library read and write here, too.
pub(super) fn is_installed() -> bool {
    IS_INSTALLED.load(Ordering::Acquire)
}

/// Has the slots lead here, before the program runs.
pub(super) fn install() {
    let ours = [file_read as *mut c_void, file_write as *mut c_void, file_close as *mut c_void];
    for ((_, name), place) in SLOTS.iter().zip(&REAL) {
        place.store(real::next(name), Ordering::Release);
    }
    let tables = TABLES.map(real::next).map(<*mut c_void>::cast::<AtomicPtr<c_void>>);
    let is_known = |table: &*mut AtomicPtr<c_void>| {
        !table.is_null()
            && SLOTS.iter().zip(&REAL).all(|((place, _), real)| {
                // SAFETY: a table of the C library has more words than these.
                let slot = unsafe { &*table.wrapping_add(*place) }.load(Ordering::Acquire);
                !slot.is_null() && slot == real.load(Ordering::Acquire)
            })
    };
    if !tables.iter().all(is_known) {
        return;
    }
    let done = tables.iter().all(|table| {
        writable(*table, || {
            for ((place, _), ours) in SLOTS.iter().zip(&ours) {
                // SAFETY: the same table, which can be written to now.
                unsafe { &*table.wrapping_add(*place) }.store(*ours, Ordering::Release);
            }
        })
    });
    IS_INSTALLED.store(done, Ordering::Release);
}

/// Does something while the pages of a table can be written to. False: they cannot be.
fn writable(table: *mut AtomicPtr<c_void>, act: impl Fn()) -> bool {
    let begin = table.map_addr(|address| address & !(PAGE_BYTES - 1)).cast::<c_void>();
    let end = table.wrapping_add(WORDS).addr();
    let length = (end - begin.addr()).next_multiple_of(PAGE_BYTES);
    // SAFETY: pages of the C library, whose contents stay readable.
    let is_open = unsafe { libc::mprotect(begin, length, libc::PROT_READ | libc::PROT_WRITE) } == 0;
    if is_open {
        act();
        // SAFETY: as they were.
        let _ = unsafe { libc::mprotect(begin, length, libc::PROT_READ) };
    }
    is_open
}

fn number(file: *mut FILE) -> c_int {
    // SAFETY: the C library's file, which it is using.
    unsafe { libc::fileno(file) }
}

type Transfer = extern "C" fn(*mut FILE, *mut c_void, ssize_t) -> ssize_t;
type Close = extern "C" fn(*mut FILE) -> c_int;

extern "C" fn file_read(file: *mut FILE, to: *mut c_void, length: ssize_t) -> ssize_t {
    let fd = number(file);
    if find(fd).is_some() {
        return read(fd, to, size_t::try_from(length).unwrap_or(0));
    }
    let real = REAL[0].load(Ordering::Acquire);
    // SAFETY: the C library's function for this slot.
    let real = unsafe { core::mem::transmute::<*mut c_void, Transfer>(real) };
    real(file, to, length)
}

/// Writes all, as the C library's function does: fewer bytes mean an error.
extern "C" fn file_write(file: *mut FILE, from: *mut c_void, length: ssize_t) -> ssize_t {
    let fd = number(file);
    if find(fd).is_none() {
        let real = REAL[1].load(Ordering::Acquire);
        // SAFETY: the C library's function for this slot.
        let real = unsafe { core::mem::transmute::<*mut c_void, Transfer>(real) };
        return real(file, from, length);
    }
    let length = size_t::try_from(length).unwrap_or(0);
    let mut done = 0;
    while done < length {
        let rest = from.cast::<u8>().wrapping_add(done).cast::<c_void>();
        let Ok(count) = usize::try_from(write(fd, rest, length - done)) else {
            // SAFETY: a file begins with its flags; the C library holds its lock.
            unsafe { *file.cast::<c_int>() |= ERROR_SEEN };
            break;
        };
        done += count;
    }
    ssize_t::try_from(done).unwrap_or(ssize_t::MAX)
}

extern "C" fn file_close(file: *mut FILE) -> c_int {
    leaving::close(number(file));
    let real = REAL[2].load(Ordering::Acquire);
    // SAFETY: the C library's function for this slot.
    let real = unsafe { core::mem::transmute::<*mut c_void, Close>(real) };
    real(file)
}
