//! Descriptors: closed, copied, set.
#![expect(unsafe_code, reason = "exported names, and what programs point to")]

use core::ffi::{c_char, c_int, c_uint, c_ulong};

use libc::FILE;
use port::own;

use super::{stand_in, stdio};
use crate::errno;
use crate::io;
use crate::leaving;
use crate::moving::find;
use crate::real;
use crate::table;

/// `new` is a copy of `old` from now on.
fn copied(old: c_int, new: c_int) -> c_int {
    if new >= 0 && new != old {
        table::copy(old, new);
    }
    new
}

/// A copy takes the place of `to`, which must be closed before it.
fn replaced(from: c_int, to: c_int, copy: impl Fn() -> c_int) -> c_int {
    // A descriptor that is not open replaces nothing.
    if from != to && to >= 0 && real::fcntl(from, libc::F_GETFD, 0) >= 0 {
        leaving::close(to);
    }
    copied(from, own::closing(copy))
}

/// Whether a number is none of the program's: this library's, which it knows nothing of.
fn refuses(fd: c_int) -> bool {
    let is_own = own::is_own(fd);
    if is_own {
        errno::set(libc::EBADF);
    }
    is_own
}

fn control(fd: c_int, command: c_int, argument: c_ulong, result: c_int) -> c_int {
    if result < 0 {
        return result;
    }
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => return copied(fd, result),
        libc::F_SETFL => {
            if let Some(socket) = table::socket(fd) {
                let flags = libc::c_long::from_ne_bytes(argument.to_ne_bytes());
                socket.set_nonblocking(flags & i64::from(libc::O_NONBLOCK) != 0);
            }
        }
        _ => {}
    }
    result
}

stand_in! {
    pub(super) fn close(fd: c_int) -> c_int {
        if refuses(fd) {
            return -1;
        }
        leaving::close(fd);
        own::closing(|| real::close(fd))
    }

    pub(super) fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
        if flags.cast_unsigned() & libc::CLOSE_RANGE_CLOEXEC != 0 || first > last {
            return real::close_range(first, last, flags);
        }
        let [from, to] = [first, last].map(|fd| c_int::try_from(fd).unwrap_or(c_int::MAX));
        table::known(from, to).into_iter().for_each(leaving::close);
        let close = |(first, last)| real::close_range(first, last, flags);
        own::closing(|| {
            own::others(first, last).into_iter().map(close).find(|result| *result != 0).unwrap_or(0)
        })
    }

    fn closefrom(first: c_int) {
        table::known(first, c_int::MAX).into_iter().for_each(leaving::close);
        own::closing(|| {
            for (first, last) in own::others(first.max(0).cast_unsigned(), c_uint::MAX) {
                if last == c_uint::MAX {
                    real::closefrom(c_int::try_from(first).unwrap_or(c_int::MAX));
                } else {
                    real::close_range(first, last, 0);
                }
            }
        });
    }

    fn fclose(file: *mut FILE) -> c_int {
        if !file.is_null() && !stdio::is_installed() {
            // SAFETY: the program promises a file.
            leaving::close(unsafe { libc::fileno(file) });
        }
        real::fclose(file)
    }

    /// If the C library's own buffers read and write by ways of their own, such a connection stays by TCP.
    fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
        if !stdio::is_installed()
            && let Some(socket) = find(fd)
        {
            leaving::keep(&socket, fd, "the C library's own buffers have it (fdopen)");
        }
        real::fdopen(fd, mode)
    }

    pub(super) fn dup(fd: c_int) -> c_int {
        copied(fd, real::dup(fd))
    }

    pub(super) fn dup2(fd: c_int, to: c_int) -> c_int {
        if refuses(to) {
            return -1;
        }
        replaced(fd, to, || real::dup2(fd, to))
    }

    pub(super) fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
        if refuses(to) {
            return -1;
        }
        replaced(fd, to, || real::dup3(fd, to, flags))
    }

    pub(super) fn fcntl(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
        control(fd, command, argument, real::fcntl(fd, command, argument))
    }

    fn fcntl64(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
        control(fd, command, argument, real::fcntl64(fd, command, argument))
    }

    pub(super) fn ioctl(fd: c_int, request: c_ulong, argument: c_ulong) -> c_int {
        let Some(socket) = table::socket(fd) else { return real::ioctl(fd, request, argument) };
        if request == libc::FIONREAD
            && let Some(unread) = io::unread(fd, &socket)
        {
            let place = core::ptr::with_exposed_provenance_mut::<c_int>(to_usize(argument));
            // SAFETY: the program promises an int.
            unsafe { *place = c_int::try_from(unread).unwrap_or(c_int::MAX) };
            return 0;
        }
        let result = real::ioctl(fd, request, argument);
        if request == libc::FIONBIO && result == 0 {
            let place = core::ptr::with_exposed_provenance::<c_int>(to_usize(argument));
            // SAFETY: the program promises an int, which the kernel has read.
            socket.set_nonblocking(unsafe { *place } != 0);
        }
        result
    }
}

/// An address in an argument.
fn to_usize(argument: c_ulong) -> usize {
    usize::try_from(argument).unwrap_or(0)
}
