//! Sockets: how they are made, shut down and set.
#![expect(unsafe_code, reason = "exported names")]

use core::ffi::{c_int, c_void};

use libc::{sockaddr, socklen_t};

use super::stand_in;
use crate::io;
use crate::leaving;
use crate::real;
use crate::table::{self, Kind};

/// The type of sockets that go by VIA with their first call (`sovia.h`), and the bits of a type.
const SOCK_VIA: c_int = 14;
const TYPE_BITS: c_int = 0xf;

/// This process has made a socket, which the program wants on VIA or not.
fn made(fd: c_int, asks: bool) -> c_int {
    if fd >= 0 {
        // Somebody may have closed the number by other ways.
        leaving::close(fd);
        table::note(fd, Kind::New);
        table::set_asks(fd, asks);
    }
    fd
}

stand_in! {
    pub(super) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
        let asks = kind & TYPE_BITS == SOCK_VIA;
        let kind = if asks { kind & !TYPE_BITS | libc::SOCK_STREAM } else { kind };
        made(real::socket(domain, kind, protocol), asks)
    }

    pub(super) fn accept(fd: c_int, from: *mut sockaddr, length: *mut socklen_t) -> c_int {
        made(real::accept(fd, from, length), table::asks(fd))
    }

    pub(super) fn accept4(fd: c_int, from: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int {
        made(real::accept4(fd, from, length, flags), table::asks(fd))
    }

    pub(super) fn shutdown(fd: c_int, how: c_int) -> c_int {
        match table::socket(fd) {
            Some(socket) => io::shut_down(fd, &socket, how),
            None => real::shutdown(fd, how),
        }
    }

    pub(super) fn setsockopt(
        fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t,
    ) -> c_int {
        let result = real::setsockopt(fd, level, name, value, length);
        if level == libc::SOL_SOCKET
            && let Some(socket) = table::socket(fd)
        {
            socket.look_at_limits(fd);
        }
        result
    }
}
