//! What the kernel says of a TCP socket.
#![expect(unsafe_code, reason = "options that no safe wrapper has")]

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use libc::{sockaddr_storage, socklen_t};

use crate::errno;
use crate::real;

/// State of a connection that is established, `TCP_ESTABLISHED` of the kernel.
pub(crate) const ESTABLISHED: u8 = 1;
/// States in which the other side's end has been received: `TCP_CLOSE_WAIT`, `TCP_LAST_ACK`,
/// `TCP_CLOSING`.
const ENDED: [u8; 3] = [8, 9, 11];
/// `TCP_CLOSE`: both sides have ended, or the connection was reset.
const CLOSED: u8 = 7;

/// An option of a socket: as many bytes of `out` as the kernel has.
fn option(fd: c_int, level: c_int, name: c_int, out: &mut [u8]) -> Option<usize> {
    let mut length = socklen_t::try_from(out.len()).ok()?;
    // SAFETY: room for `length` bytes.
    let result = unsafe {
        libc::getsockopt(fd, level, name, out.as_mut_ptr().cast::<c_void>(), &raw mut length)
    };
    (result == 0).then_some(length as usize)
}

fn int_option(fd: c_int, name: c_int) -> Option<c_int> {
    let mut bytes = [0; 4];
    option(fd, libc::SOL_SOCKET, name, &mut bytes)?;
    Some(c_int::from_ne_bytes(bytes))
}

/// Whether a descriptor is a TCP socket.
pub(crate) fn is_tcp(fd: c_int) -> bool {
    int_option(fd, libc::SO_PROTOCOL) == Some(libc::IPPROTO_TCP)
        && int_option(fd, libc::SO_TYPE) == Some(libc::SOCK_STREAM)
}

/// Whether connections arrive at a socket.
pub(crate) fn listens(fd: c_int) -> bool {
    int_option(fd, libc::SO_ACCEPTCONN) == Some(1)
}

/// Nanoseconds of a time limit of a socket; 0: none.
pub(crate) fn time_limit(fd: c_int, name: c_int) -> u64 {
    let mut bytes = [0; 16];
    if option(fd, libc::SOL_SOCKET, name, &mut bytes) != Some(16) {
        return 0;
    }
    let [seconds, micros] = [&bytes[..8], &bytes[8..]]
        .map(|half| u64::from_ne_bytes(half.try_into().unwrap_or_default()));
    seconds.saturating_mul(1_000_000_000).saturating_add(micros * 1000)
}

/// What has crossed a connection, by the kernel's count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    pub(crate) state: u8,
    /// Bytes that this side has written.
    pub(crate) written: u64,
    /// Bytes that have come, and 1 for the other side's end in some states.
    received: u64,
}

/// Asks for [`Info`]. None: this kernel does not count (before Linux 4.19), or it is no connection.
pub(crate) fn info(fd: c_int) -> Option<Info> {
    let mut bytes = [0; 256];
    // struct tcp_info of linux/tcp.h.
    let known = option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    let wide = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    let narrow = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
    (known >= 216).then(|| Info {
        state: bytes[0],
        // Sent, less what was sent again, and what has not been sent yet.
        written: (wide(200) - wide(208)) + u64::from(narrow(144)),
        received: wide(128),
    })
}

/// Bytes that have come and are not read.
pub(crate) fn unread(fd: c_int) -> Option<u64> {
    let mut count: c_int = 0;
    let place = (&raw mut count).expose_provenance();
    let result = real::ioctl(fd, libc::FIONREAD, core::ffi::c_ulong::try_from(place).ok()?);
    if result == 0 { u64::try_from(count).ok() } else { None }
}

/// Bytes that this side has read so far. `limit` is known to be the last byte that can be there, if the
/// other side has ended: the kernel then counts its end as one.
pub(crate) fn read_so_far(fd: c_int, limit: u64) -> Option<u64> {
    loop {
        let before = info(fd)?;
        let unread = unread(fd)?;
        let after = info(fd)?;
        // Nothing came in between.
        if before.received == after.received && before.state == after.state {
            let is_end_counted = ENDED.contains(&after.state)
                || after.state == CLOSED && after.received == limit + 1;
            return after.received.checked_sub(unread + u64::from(is_end_counted));
        }
    }
}

/// Whether the other side has ended, as far as TCP knows.
pub(crate) fn has_ended(fd: c_int) -> bool {
    info(fd).is_none_or(|info| ENDED.contains(&info.state) || info.state == CLOSED)
}

/// Names of a connection's two ends; a IPv4 address in the form of IPv6 is the IPv4 one. None: it is not
/// connected.
pub(crate) fn names(fd: c_int) -> Option<(SocketAddr, SocketAddr)> {
    Some((name(fd, libc::getsockname)?, name(fd, libc::getpeername)?))
}

type Name = unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut socklen_t) -> c_int;

fn name(fd: c_int, of: Name) -> Option<SocketAddr> {
    let mut place = MaybeUninit::<sockaddr_storage>::zeroed();
    let mut length = socklen_t::try_from(size_of::<sockaddr_storage>()).ok()?;
    // SAFETY: room for every kind of address.
    if unsafe { of(fd, place.as_mut_ptr().cast(), &raw mut length) } != 0 {
        return None;
    }
    // SAFETY: all zeros are an address.
    let place = unsafe { place.assume_init() };
    match c_int::from(place.ss_family) {
        libc::AF_INET => {
            // SAFETY: the kernel says that it is one.
            let v4 = unsafe { *(&raw const place).cast::<libc::sockaddr_in>() };
            let address = IpAddr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(address, u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the kernel says that it is one.
            let v6 = unsafe { *(&raw const place).cast::<libc::sockaddr_in6>() };
            let address = Ipv6Addr::from(v6.sin6_addr.s6_addr).to_canonical();
            Some(SocketAddr::new(address, u16::from_be(v6.sin6_port)))
        }
        _ => None,
    }
}

/// Takes bytes off a TCP connection without waiting.
pub(crate) fn take(fd: c_int, out: &mut [u8], flags: c_int) -> Result<usize, c_int> {
    let place = out.as_mut_ptr().cast::<c_void>();
    errno::counted(real::recv(fd, place, out.len(), flags | libc::MSG_DONTWAIT))
}

/// Sends one byte by TCP without waiting.
pub(crate) fn send_marker(fd: c_int) -> Result<(), c_int> {
    let marker = [0u8];
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    errno::counted(real::send(fd, marker.as_ptr().cast::<c_void>(), 1, flags)).map(drop)
}

/// Resets a connection, for both ends and every process that has it: each finds it broken, and none its
/// end.
pub(crate) fn reset(fd: c_int) {
    // SAFETY: all zeros are an address, whose family is none.
    let none = unsafe { MaybeUninit::<libc::sockaddr>::zeroed().assume_init() };
    let length = socklen_t::try_from(size_of::<libc::sockaddr>()).unwrap_or(0);
    // SAFETY: an address of that length. To connect to none ends a connection (connect(2)).
    let _ = unsafe { libc::connect(fd, &raw const none, length) };
}

/// Whether calls on this descriptor do not wait.
pub(crate) fn is_nonblocking(fd: c_int) -> bool {
    let flags = real::fcntl(fd, libc::F_GETFL, 0);
    flags >= 0 && flags & libc::O_NONBLOCK != 0
}

/// Whether every handler of a signal has calls that it interrupts go on (`SA_RESTART`).
pub(crate) fn all_handlers_restart() -> bool {
    (1..=libc::SIGRTMAX()).all(|signal| {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: it writes one action.
        if unsafe { libc::sigaction(signal, core::ptr::null(), action.as_mut_ptr()) } != 0 {
            return true;
        }
        // SAFETY: all zeros are one, too.
        let action = unsafe { action.assume_init() };
        let has_handler =
            action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN;
        !has_handler || action.sa_flags & libc::SA_RESTART != 0
    })
}

/// Address space that is little: some programs restrict themselves to a few hundred MiB.
const LITTLE: u64 = 4 << 30;

/// Where address space is little, threads that begin from here on allocate where others do: the C library
/// reserves 64 MiB for each otherwise, and connections find no room.
pub(crate) fn spare_address_space() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As);
    if limit.current.is_some_and(|limit| limit < LITTLE) {
        // SAFETY: a setting of the allocator.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// What TCP does to a program that sends on a connection that has ended.
pub(crate) fn raise_pipe_signal() {
    // SAFETY: a signal to the calling thread.
    let _ = unsafe { libc::raise(libc::SIGPIPE) };
}

/// Reads from a file, at a place or where the file is.
pub(crate) fn read_file(file: c_int, out: &mut [u8], at: Option<i64>) -> Result<usize, c_int> {
    let (place, length) = (out.as_mut_ptr().cast::<c_void>(), out.len());
    errno::counted(match at {
        // SAFETY: room for `length` bytes.
        Some(at) => unsafe { libc::pread64(file, place, length, at) },
        None => real::read(file, place, length),
    })
}

/// Goes back by bytes that were read from where a file is, and not used.
pub(crate) fn unread_file(file: c_int, bytes: usize, at: Option<i64>) {
    if at.is_none() && bytes > 0 {
        let back = i64::try_from(bytes).unwrap_or(0);
        // SAFETY: it moves a place in a file.
        let _ = unsafe { libc::lseek64(file, -back, libc::SEEK_CUR) };
    }
}
