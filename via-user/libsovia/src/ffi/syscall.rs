//! `syscall`: calls for which a function stands in here go by that function, and those that make processes
//! are noticed.
//!
//! Libraries make calls that way whose names they do not trust, or that the C library lacks (libuv, gRPC,
//! vsftpd). What a program calls without the C library is not seen.
#![expect(unsafe_code, reason = "an exported name, and what programs point to")]

use core::ffi::{c_int, c_long};

use libc::{fd_set, sigset_t, timespec};

use super::{descriptor, poll, process, receive, send, socket, stand_in};
use crate::{leaving, moving, real, service, table};

/// An argument of a call, in the type that a function has for it.
trait Argument {
    fn of(word: c_long) -> Self;
}

impl Argument for u64 {
    fn of(word: c_long) -> Self {
        word.cast_unsigned()
    }
}

impl Argument for usize {
    fn of(word: c_long) -> Self {
        Self::try_from(u64::of(word)).unwrap_or(0)
    }
}

/// The kernel takes the lower bits, too.
impl Argument for u32 {
    fn of(word: c_long) -> Self {
        Self::try_from(u64::of(word) & 0xffff_ffff).unwrap_or(0)
    }
}

impl Argument for i32 {
    fn of(word: c_long) -> Self {
        u32::of(word).cast_signed()
    }
}

impl<T> Argument for *const T {
    fn of(word: c_long) -> Self {
        core::ptr::with_exposed_provenance(usize::of(word))
    }
}

impl<T> Argument for *mut T {
    fn of(word: c_long) -> Self {
        core::ptr::with_exposed_provenance_mut(usize::of(word))
    }
}

/// Calls the function of a number with the words at these places; `$other` for all other numbers.
macro_rules! by_number {
    ($number:ident, $words:ident, $other:expr;
        $($(#[$meta:meta])* $call:ident $module:ident::$function:ident $($index:literal)*;)*) => {
        match $number {
            $($(#[$meta])* libc::$call => {
                c_long::try_from($module::$function($(Argument::of($words[$index])),*)).unwrap_or(-1)
            })*
            _ => $other,
        }
    };
}

fn call(number: c_long, words: [c_long; 6]) -> c_long {
    by_number! { number, words, other(number, words);
        SYS_read receive::read 0 1 2;
        SYS_readv receive::readv 0 1 2;
        SYS_recvfrom receive::recvfrom 0 1 2 3 4 5;
        SYS_recvmsg receive::recvmsg 0 1 2;
        SYS_recvmmsg receive::recvmmsg 0 1 2 3 4;
        SYS_write send::write 0 1 2;
        SYS_writev send::writev 0 1 2;
        SYS_sendto send::sendto 0 1 2 3 4 5;
        SYS_sendmsg send::sendmsg 0 1 2;
        SYS_sendmmsg send::sendmmsg 0 1 2 3;
        SYS_sendfile send::sendfile 0 1 2 3;
        SYS_splice send::splice 0 1 2 3 4 5;
        SYS_socket socket::socket 0 1 2;
        SYS_accept socket::accept 0 1 2;
        SYS_accept4 socket::accept4 0 1 2 3;
        SYS_shutdown socket::shutdown 0 1;
        SYS_setsockopt socket::setsockopt 0 1 2 3 4;
        SYS_close descriptor::close 0;
        SYS_close_range descriptor::close_range 0 1 2;
        SYS_dup descriptor::dup 0;
        #[cfg(target_arch = "x86_64")]
        SYS_dup2 descriptor::dup2 0 1;
        SYS_dup3 descriptor::dup3 0 1 2;
        SYS_fcntl descriptor::fcntl 0 1 2;
        SYS_ioctl descriptor::ioctl 0 1 2;
        #[cfg(target_arch = "x86_64")]
        SYS_poll poll::poll 0 1 2;
        SYS_ppoll poll::ppoll 0 1 2 3;
        #[cfg(target_arch = "x86_64")]
        SYS_select poll::select 0 1 2 3 4;
        SYS_pselect6 self::pselect6 0 1 2 3 4 5;
        #[cfg(target_arch = "x86_64")]
        SYS_epoll_create poll::epoll_create 0;
        SYS_epoll_create1 poll::epoll_create1 0;
        SYS_epoll_ctl poll::epoll_ctl 0 1 2 3;
        #[cfg(target_arch = "x86_64")]
        SYS_epoll_wait poll::epoll_wait 0 1 2 3;
        SYS_epoll_pwait poll::epoll_pwait 0 1 2 3 4;
        SYS_epoll_pwait2 poll::epoll_pwait2 0 1 2 3 4;
        SYS_execve process::execve 0 1 2;
        SYS_chroot process::chroot 0;
        SYS_setuid process::setuid 0;
        SYS_setreuid process::setreuid 0 1;
        SYS_setresuid process::setresuid 0 1 2;
        SYS_prctl process::prctl 0 1 2 3 4;
    }
}

/// The kernel's has the mask and its size in a place of their own.
fn pselect6(
    count: c_int,
    reads: *mut fd_set,
    writes: *mut fd_set,
    errors: *mut fd_set,
    timeout: *const timespec,
    mask: *const *const sigset_t,
) -> c_int {
    // SAFETY: the program promises such a place, or none.
    let mask = unsafe { mask.as_ref() }.map_or(core::ptr::null(), |mask| *mask);
    poll::pselect(count, reads, writes, errors, timeout, mask)
}

/// Calls without a function here.
fn other(number: c_long, words: [c_long; 6]) -> c_long {
    match number {
        libc::SYS_exit_group => leaving::end_all(),
        libc::SYS_seccomp => moving::confine(),
        libc::SYS_clone => before_copy(words[0]),
        // SAFETY: the first field of what the program points to.
        libc::SYS_clone3 => before_copy(unsafe { *<*const c_long>::of(words[0]) }),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_fork => before_copy(0),
        _ => {}
    }
    let [a, b, c, d, e, f] = words;
    real::syscall(number, a, b, c, d, e, f)
}

/// A process that is copied without the C library: the copy does not learn that the NIC is its parent's.
fn before_copy(flags: c_long) {
    if flags & c_long::from(libc::CLONE_VM) != 0 {
        return;
    }
    if service::current().is_some() {
        moving::confine();
    } else {
        table::share_all();
    }
}

stand_in! {
    /// A function of as many arguments as the call has. Those behind them are not looked at.
    fn syscall(
        number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long,
    ) -> c_long {
        call(number, [a, b, c, d, e, f])
    }
}
