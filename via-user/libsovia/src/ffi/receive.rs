//! Receiving.
#![expect(unsafe_code, reason = "exported names, and what programs point to")]

use core::ffi::{c_int, c_uint, c_void};

use libc::{iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t, timespec};

use super::stand_in;
use crate::buffers::Buffers;
use crate::io;
use crate::moving::find;
use crate::real;

/// The buffers of a message.
fn buffers(message: *const msghdr) -> Buffers {
    // SAFETY: the program promises a message.
    let message = unsafe { &*message };
    Buffers::list(message.msg_iov, message.msg_iovlen)
}

/// A message that came by VIA: no name, nothing beside the bytes, as TCP has it.
fn complete(message: *mut msghdr) {
    // SAFETY: the program promises a message.
    let message = unsafe { &mut *message };
    message.msg_namelen = 0;
    message.msg_controllen = 0;
    message.msg_flags = 0;
}

fn receive_message(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let Some(socket) = find(fd).filter(|_| !message.is_null()) else {
        return real::recvmsg(fd, message, flags);
    };
    let is_linked = socket.link().is_some();
    let by_kernel = |flags| real::recvmsg(fd, message, flags);
    let count = io::receive(fd, &socket, buffers(message), flags, by_kernel);
    if is_linked && count >= 0 {
        complete(message);
    }
    count
}

/// Receives into buffers of a list.
pub(super) fn read_list(
    fd: c_int,
    list: *const iovec,
    count: c_int,
    flags: c_int,
    by_kernel: impl Fn() -> ssize_t,
) -> ssize_t {
    let (Some(socket), Ok(entries)) = (find(fd), usize::try_from(count)) else {
        return by_kernel();
    };
    io::receive(fd, &socket, Buffers::list(list, entries), flags, |_| by_kernel())
}

stand_in! {
    pub(super) fn read(fd: c_int, to: *mut c_void, length: size_t) -> ssize_t {
        let Some(socket) = find(fd) else { return real::read(fd, to, length) };
        // A program that restricts itself has kept this call, and perhaps not others.
        io::receive(fd, &socket, Buffers::one(to, length), 0, |_| real::read(fd, to, length))
    }

    fn __read_chk(fd: c_int, to: *mut c_void, length: size_t, room: size_t) -> ssize_t {
        check(length <= room);
        read(fd, to, length)
    }

    pub(super) fn readv(fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
        read_list(fd, list, count, 0, || real::readv(fd, list, count))
    }

    pub(super) fn recv(fd: c_int, to: *mut c_void, length: size_t, flags: c_int) -> ssize_t {
        let Some(socket) = find(fd) else { return real::recv(fd, to, length, flags) };
        io::receive(fd, &socket, Buffers::one(to, length), flags, |flags| {
            real::recv(fd, to, length, flags)
        })
    }

    fn __recv_chk(
        fd: c_int, to: *mut c_void, length: size_t, room: size_t, flags: c_int,
    ) -> ssize_t {
        check(length <= room);
        recv(fd, to, length, flags)
    }

    pub(super) fn recvfrom(
        fd: c_int, to: *mut c_void, length: size_t, flags: c_int, from: *mut sockaddr,
        from_length: *mut socklen_t,
    ) -> ssize_t {
        let Some(socket) = find(fd) else {
            return real::recvfrom(fd, to, length, flags, from, from_length);
        };
        if !from_length.is_null() {
            // SAFETY: the program promises a place. TCP has no name for what it receives.
            unsafe { *from_length = 0 };
        }
        io::receive(fd, &socket, Buffers::one(to, length), flags, |flags| {
            real::recv(fd, to, length, flags)
        })
    }

    fn __recvfrom_chk(
        fd: c_int, to: *mut c_void, length: size_t, room: size_t, flags: c_int,
        from: *mut sockaddr, from_length: *mut socklen_t,
    ) -> ssize_t {
        check(length <= room);
        recvfrom(fd, to, length, flags, from, from_length)
    }

    pub(super) fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
        receive_message(fd, message, flags)
    }

    pub(super) fn recvmmsg(
        fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec,
    ) -> c_int {
        if find(fd).is_none() || count == 0 {
            return real::recvmmsg(fd, messages, count, flags, timeout);
        }
        // A stream has one message.
        // SAFETY: the program promises `count` messages.
        let message = unsafe { &mut *messages };
        let received = receive_message(fd, &raw mut message.msg_hdr, flags & !libc::MSG_WAITFORONE);
        message.msg_len = c_uint::try_from(received).unwrap_or(0);
        if received < 0 { -1 } else { 1 }
    }
}

/// What a fortified program checks.
fn check(fits: bool) {
    if !fits {
        std::process::abort();
    }
}
