//! Sending.
#![expect(unsafe_code, reason = "exported names, and what programs point to")]

use core::ffi::{c_int, c_uint, c_void};

use libc::{iovec, mmsghdr, msghdr, off_t, off64_t, size_t, sockaddr, socklen_t, ssize_t};

use super::stand_in;
use crate::buffers::Buffers;
use crate::io;
use crate::leaving;
use crate::moving::find;
use crate::real;
use crate::table;

fn send_message(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let Some(socket) = find(fd).filter(|_| !message.is_null()) else {
        share_what_is_sent(message);
        return real::sendmsg(fd, message, flags);
    };
    // SAFETY: the program promises a message.
    let header = unsafe { &*message };
    let buffers = Buffers::list(header.msg_iov, header.msg_iovlen);
    io::send(fd, &socket, buffers, flags, || real::sendmsg(fd, message, flags))
}

/// Descriptors that are sent to another process are its, too.
fn share_what_is_sent(message: *const msghdr) {
    if message.is_null() {
        return;
    }
    // SAFETY: the program promises a message.
    let has_control = unsafe { (*message).msg_controllen > 0 };
    if has_control {
        table::share_all();
    }
}

fn send_file(to: c_int, from: c_int, at: *mut off64_t, count: size_t) -> ssize_t {
    let by_kernel = |count| real::sendfile64(to, from, at, count);
    let Some(socket) = find(to) else { return by_kernel(count) };
    // SAFETY: a place of the program's, or none.
    let place = unsafe { at.as_mut() };
    io::send_file(to, &socket, from, place, count, by_kernel)
}

/// Sends from buffers of a list.
pub(super) fn write_list(
    fd: c_int,
    list: *const iovec,
    count: c_int,
    flags: c_int,
    by_kernel: impl Fn() -> ssize_t,
) -> ssize_t {
    let (Some(socket), Ok(entries)) = (find(fd), usize::try_from(count)) else {
        return by_kernel();
    };
    io::send(fd, &socket, Buffers::list(list, entries), flags, by_kernel)
}

/// Why spliced connections stay TCP.
const SPLICED: &str = "it is spliced, which the kernel does without copies";

stand_in! {
    pub(super) fn write(fd: c_int, from: *const c_void, length: size_t) -> ssize_t {
        let Some(socket) = find(fd) else { return real::write(fd, from, length) };
        io::send(fd, &socket, Buffers::one(from.cast_mut(), length), 0, || {
            real::write(fd, from, length)
        })
    }

    pub(super) fn writev(fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
        write_list(fd, list, count, 0, || real::writev(fd, list, count))
    }

    pub(super) fn send(fd: c_int, from: *const c_void, length: size_t, flags: c_int) -> ssize_t {
        let Some(socket) = find(fd) else { return real::send(fd, from, length, flags) };
        io::send(fd, &socket, Buffers::one(from.cast_mut(), length), flags, || {
            real::send(fd, from, length, flags)
        })
    }

    pub(super) fn sendto(
        fd: c_int, from: *const c_void, length: size_t, flags: c_int, to: *const sockaddr,
        to_length: socklen_t,
    ) -> ssize_t {
        let Some(socket) = find(fd) else {
            return real::sendto(fd, from, length, flags, to, to_length);
        };
        io::send(fd, &socket, Buffers::one(from.cast_mut(), length), flags, || {
            real::sendto(fd, from, length, flags, to, to_length)
        })
    }

    pub(super) fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
        send_message(fd, message, flags)
    }

    pub(super) fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
        if find(fd).is_none() {
            return real::sendmmsg(fd, messages, count, flags);
        }
        let mut done = 0;
        for index in 0..count {
            let message = messages.wrapping_add(index as usize);
            // SAFETY: the program promises `count` messages.
            let message = unsafe { &mut *message };
            let sent = send_message(fd, &raw const message.msg_hdr, flags);
            if sent < 0 {
                return if done > 0 { done } else { -1 };
            }
            message.msg_len = c_uint::try_from(sent).unwrap_or(0);
            done += 1;
        }
        done
    }

    pub(super) fn sendfile(to: c_int, from: c_int, at: *mut off_t, count: size_t) -> ssize_t {
        send_file(to, from, at, count)
    }

    /// Connections that are spliced stay by TCP, whose bytes the kernel need not copy.
    pub(super) fn splice(
        from: c_int, from_at: *mut off64_t, to: c_int, to_at: *mut off64_t, length: size_t,
        flags: c_uint,
    ) -> ssize_t {
        if let Some(socket) = find(to) {
            leaving::keep(&socket, to, SPLICED);
        }
        if let Some(socket) = find(from) {
            leaving::keep(&socket, from, SPLICED);
            if socket.has_left() {
                return io::splice_left(&socket, to, length);
            }
        }
        real::splice(from, from_at, to, to_at, length, flags)
    }

    fn sendfile64(to: c_int, from: c_int, at: *mut off64_t, count: size_t) -> ssize_t {
        send_file(to, from, at, count)
    }
}
