//! The functions that this library stands in for, as the next library has them.
//!
//! Pointers are the program's: who calls one of these hands on what the program gave for the same
//! function, or its own memory.
#![expect(unsafe_code, reason = "functions of other libraries, found by name")]

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    FILE, epoll_event, fd_set, iovec, mmsghdr, msghdr, nfds_t, off64_t, pid_t, pollfd, sigset_t,
    size_t, sockaddr, socklen_t, ssize_t, timespec,
};

/// What functions without a result give.
type Nothing = ();

/// The address of a name in the next library; null if there is none.
pub(crate) fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a name that ends with 0.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// The same, looked for once.
fn find(place: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = place.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let found = next(name);
    place.store(found, Ordering::Release);
    found
}

/// A function that the C library lacks: fails as the kernel does for a call that it does not know.
fn lacks() {
    crate::errno::set(libc::ENOSYS);
}

macro_rules! real {
    ($($name:ident $text:literal ($($arg:ident: $type:ty),*) -> $result:ty = $failed:expr;)*) => {$(
        #[inline]
        pub(crate) fn $name($($arg: $type),*) -> $result {
            static PLACE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            let found = find(&PLACE, $text);
            if found.is_null() {
                lacks();
                return $failed;
            }
            // SAFETY: the C library declares the function of this name so.
            let function = unsafe {
                core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(found)
            };
            // SAFETY: the program's arguments, see the module.
            unsafe { function($($arg),*) }
        }
    )*};
}

real! {
    read c"read"(fd: c_int, to: *mut c_void, length: size_t) -> ssize_t = -1;
    readv c"readv"(fd: c_int, list: *const iovec, count: c_int) -> ssize_t = -1;
    recv c"recv"(fd: c_int, to: *mut c_void, length: size_t, flags: c_int) -> ssize_t = -1;
    recvfrom c"recvfrom"(
        fd: c_int, to: *mut c_void, length: size_t, flags: c_int, from: *mut sockaddr,
        from_length: *mut socklen_t
    ) -> ssize_t = -1;
    recvmsg c"recvmsg"(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t = -1;
    recvmmsg c"recvmmsg"(
        fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec
    ) -> c_int = -1;
    write c"write"(fd: c_int, from: *const c_void, length: size_t) -> ssize_t = -1;
    writev c"writev"(fd: c_int, list: *const iovec, count: c_int) -> ssize_t = -1;
    send c"send"(fd: c_int, from: *const c_void, length: size_t, flags: c_int) -> ssize_t = -1;
    sendto c"sendto"(
        fd: c_int, from: *const c_void, length: size_t, flags: c_int, to: *const sockaddr,
        to_length: socklen_t
    ) -> ssize_t = -1;
    sendmsg c"sendmsg"(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t = -1;
    sendmmsg c"sendmmsg"(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int = -1;
    sendfile64 c"sendfile64"(to: c_int, from: c_int, at: *mut off64_t, count: size_t) -> ssize_t = -1;
    splice c"splice"(
        from: c_int, from_at: *mut off64_t, to: c_int, to_at: *mut off64_t, length: size_t,
        flags: c_uint
    ) -> ssize_t = -1;
    socket c"socket"(domain: c_int, kind: c_int, protocol: c_int) -> c_int = -1;
    accept c"accept"(fd: c_int, from: *mut sockaddr, length: *mut socklen_t) -> c_int = -1;
    accept4 c"accept4"(fd: c_int, from: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int = -1;
    shutdown c"shutdown"(fd: c_int, how: c_int) -> c_int = -1;
    setsockopt c"setsockopt"(
        fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t
    ) -> c_int = -1;
    close c"close"(fd: c_int) -> c_int = -1;
    close_range c"close_range"(first: c_uint, last: c_uint, flags: c_int) -> c_int = -1;
    closefrom c"closefrom"(first: c_int) -> Nothing = Nothing::default();
    dup c"dup"(fd: c_int) -> c_int = -1;
    dup2 c"dup2"(fd: c_int, to: c_int) -> c_int = -1;
    dup3 c"dup3"(fd: c_int, to: c_int, flags: c_int) -> c_int = -1;
    fcntl c"fcntl"(fd: c_int, command: c_int, argument: c_ulong) -> c_int = -1;
    fcntl64 c"fcntl64"(fd: c_int, command: c_int, argument: c_ulong) -> c_int = -1;
    ioctl c"ioctl"(fd: c_int, request: c_ulong, argument: c_ulong) -> c_int = -1;
    fclose c"fclose"(file: *mut FILE) -> c_int = -1;
    fdopen c"fdopen"(fd: c_int, mode: *const c_char) -> *mut FILE = core::ptr::null_mut();
    poll c"poll"(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int = -1;
    ppoll c"ppoll"(
        fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t
    ) -> c_int = -1;
    pselect c"pselect"(
        count: c_int, reads: *mut fd_set, writes: *mut fd_set, errors: *mut fd_set,
        timeout: *const timespec, mask: *const sigset_t
    ) -> c_int = -1;
    epoll_create c"epoll_create"(size: c_int) -> c_int = -1;
    epoll_create1 c"epoll_create1"(flags: c_int) -> c_int = -1;
    epoll_ctl c"epoll_ctl"(epoll: c_int, command: c_int, fd: c_int, event: *mut epoll_event) -> c_int = -1;
    epoll_pwait c"epoll_pwait"(
        epoll: c_int, events: *mut epoll_event, count: c_int, timeout: c_int, mask: *const sigset_t
    ) -> c_int = -1;
    epoll_pwait2 c"epoll_pwait2"(
        epoll: c_int, events: *mut epoll_event, count: c_int, timeout: *const timespec,
        mask: *const sigset_t
    ) -> c_int = -1;
    fork c"fork"() -> pid_t = -1;
    execve c"execve"(
        path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char
    ) -> c_int = -1;
    execvpe c"execvpe"(
        path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char
    ) -> c_int = -1;
    fexecve c"fexecve"(
        fd: c_int, arguments: *const *const c_char, environment: *const *const c_char
    ) -> c_int = -1;
    posix_spawn c"posix_spawn"(
        child: *mut pid_t, path: *const c_char, actions: *const c_void, attributes: *const c_void,
        arguments: *const *const c_char, environment: *const *const c_char
    ) -> c_int = libc::ENOSYS;
    posix_spawnp c"posix_spawnp"(
        child: *mut pid_t, path: *const c_char, actions: *const c_void, attributes: *const c_void,
        arguments: *const *const c_char, environment: *const *const c_char
    ) -> c_int = libc::ENOSYS;
    chroot c"chroot"(path: *const c_char) -> c_int = -1;
    setuid c"setuid"(user: libc::uid_t) -> c_int = -1;
    setreuid c"setreuid"(real: libc::uid_t, effective: libc::uid_t) -> c_int = -1;
    setresuid c"setresuid"(real: libc::uid_t, effective: libc::uid_t, saved: libc::uid_t) -> c_int = -1;
    prctl c"prctl"(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int = -1;
    seteuid c"seteuid"(user: libc::uid_t) -> c_int = -1;
    preadv2 c"preadv2"(
        fd: c_int, list: *const iovec, count: c_int, at: libc::off_t, flags: c_int
    ) -> ssize_t = -1;
    pwritev2 c"pwritev2"(
        fd: c_int, list: *const iovec, count: c_int, at: libc::off_t, flags: c_int
    ) -> ssize_t = -1;
    syscall c"syscall"(
        number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long
    ) -> c_long = -1;
    exit_now c"_exit"(status: c_int) -> Nothing = Nothing::default();
}
