//! Other names of the same functions, and `preadv2` and `pwritev2`, which a connection has without a place.
#![expect(unsafe_code, reason = "exported names")]

use core::ffi::{c_int, c_ulong, c_void};

use libc::{fd_set, iovec, mmsghdr, nfds_t, off_t, pid_t, pollfd, size_t, ssize_t, timeval};

use super::{descriptor, poll, process, receive, send, stand_in};
use crate::real;

/// Where `preadv2` and `pwritev2` go on from where the last call has ended.
const NO_PLACE: off_t = -1;

/// Flags of `preadv2` and `pwritev2` as `recv` and `send` have them.
fn of_message(flags: c_int) -> c_int {
    if flags & libc::RWF_NOWAIT != 0 { libc::MSG_DONTWAIT } else { 0 }
}

stand_in! {
    fn __read(fd: c_int, to: *mut c_void, length: size_t) -> ssize_t {
        receive::read(fd, to, length)
    }

    fn __recv(fd: c_int, to: *mut c_void, length: size_t, flags: c_int) -> ssize_t {
        receive::recv(fd, to, length, flags)
    }

    fn __write(fd: c_int, from: *const c_void, length: size_t) -> ssize_t {
        send::write(fd, from, length)
    }

    fn __send(fd: c_int, from: *const c_void, length: size_t, flags: c_int) -> ssize_t {
        send::send(fd, from, length, flags)
    }

    fn __sendmmsg(fd: c_int, messages: *mut mmsghdr, count: u32, flags: c_int) -> c_int {
        send::sendmmsg(fd, messages, count, flags)
    }

    fn __close(fd: c_int) -> c_int {
        descriptor::close(fd)
    }

    fn __dup2(fd: c_int, to: c_int) -> c_int {
        descriptor::dup2(fd, to)
    }

    fn __fcntl(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
        descriptor::fcntl(fd, command, argument)
    }

    fn __poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
        poll::poll(fds, count, timeout)
    }

    fn __select(
        count: c_int, reads: *mut fd_set, writes: *mut fd_set, errors: *mut fd_set,
        timeout: *mut timeval,
    ) -> c_int {
        poll::select(count, reads, writes, errors, timeout)
    }

    fn __vfork() -> pid_t {
        process::vfork()
    }

    fn preadv2(fd: c_int, list: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t {
        let by_kernel = || real::preadv2(fd, list, count, at, flags);
        if at == NO_PLACE {
            receive::read_list(fd, list, count, of_message(flags), by_kernel)
        } else {
            by_kernel()
        }
    }

    fn preadv64v2(fd: c_int, list: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t {
        preadv2(fd, list, count, at, flags)
    }

    fn pwritev2(fd: c_int, list: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t {
        let by_kernel = || real::pwritev2(fd, list, count, at, flags);
        if at == NO_PLACE {
            send::write_list(fd, list, count, of_message(flags), by_kernel)
        } else {
            by_kernel()
        }
    }

    fn pwritev64v2(fd: c_int, list: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t {
        pwritev2(fd, list, count, at, flags)
    }
}
