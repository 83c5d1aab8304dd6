//! Waiting for descriptors.
#![expect(unsafe_code, reason = "exported names, and what programs point to")]

use core::ffi::c_int;
use core::time::Duration;

use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval};

use super::stand_in;
use crate::epoll::{self, Member, Wait};
use crate::errno;
use crate::kernel;
use crate::leaving;
use crate::moving;
use crate::poll;
use crate::real;
use crate::table::{self, Kind};
use crate::wait::{End, NO_MASK};

/// Descriptors of the program. None: the kernel would refuse them.
fn checked<'a>(fds: *mut pollfd, count: nfds_t) -> Option<&'a mut [pollfd]> {
    let count = usize::try_from(count).ok()?;
    match count {
        0 => Some(&mut []),
        _ if fds.is_null() => None,
        // SAFETY: the program promises so many, while the call lasts.
        _ => Some(unsafe { core::slice::from_raw_parts_mut(fds, count) }),
    }
}

/// A time of the program's; never if there is none. None: the kernel would refuse it.
fn end(timeout: *const timespec) -> Option<End> {
    // SAFETY: a time, or none.
    let Some(time) = (unsafe { timeout.as_ref() }) else { return Some(End::NEVER) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u32::try_from(time.tv_nsec).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some(End::after(Duration::new(seconds, nanos)))
}

fn call(act: impl FnOnce() -> Result<usize, c_int>) -> c_int {
    c_int::try_from(errno::call(act)).unwrap_or(c_int::MAX)
}

/// The sets of a `select`.
type Sets = [*mut fd_set; 3];
const EVENTS: [i16; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
/// What the kernel counts as ready for each set.
const READY: [i16; 3] = [
    libc::POLLIN | libc::POLLRDNORM | libc::POLLHUP | libc::POLLERR,
    libc::POLLOUT | libc::POLLWRNORM | libc::POLLERR,
    libc::POLLPRI,
];

fn is_in(set: *mut fd_set, fd: c_int) -> bool {
    // SAFETY: the program promises a set that has room for the descriptor, or none.
    !set.is_null() && unsafe { libc::FD_ISSET(fd, set) }
}

fn descriptors(count: c_int, sets: Sets) -> Vec<pollfd> {
    let wanted = |fd| {
        let of_set = |(set, events): (*mut fd_set, i16)| if is_in(set, fd) { events } else { 0 };
        let events = sets.into_iter().zip(EVENTS).map(of_set).fold(0, |all, one| all | one);
        (events != 0).then_some(pollfd { fd, events, revents: 0 })
    };
    (0..count).filter_map(wanted).collect()
}

/// `select` by `poll`.
fn select_by_poll(
    fds: &mut [pollfd],
    sets: Sets,
    end: End,
    mask: *const sigset_t,
) -> Result<usize, c_int> {
    wait(fds, end, mask)?;
    if fds.iter().any(|fd| fd.revents & libc::POLLNVAL != 0) {
        return Err(libc::EBADF);
    }
    let mut found = 0;
    for fd in fds {
        for ((set, ready), wanted) in sets.into_iter().zip(READY).zip(EVENTS) {
            if fd.events & wanted == 0 {
                continue;
            }
            if fd.revents & ready != 0 {
                found += 1;
            } else {
                // SAFETY: the descriptor is in the set.
                unsafe { libc::FD_CLR(fd.fd, set) };
            }
        }
    }
    Ok(found)
}

/// The program waits for these.
fn wait(fds: &mut [pollfd], end: End, mask: *const sigset_t) -> Result<usize, c_int> {
    fds.iter().for_each(|fd| moving::waits_for(fd.fd));
    poll::poll(fds, end, mask)
}

stand_in! {
    pub(super) fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
        match checked(fds, count) {
            Some(fds) => call(|| wait(fds, End::after_ms(timeout), NO_MASK)),
            None => real::poll(fds, count, timeout),
        }
    }

    fn __poll_chk(fds: *mut pollfd, count: nfds_t, timeout: c_int, _room: size_t) -> c_int {
        poll(fds, count, timeout)
    }

    pub(super) fn ppoll(
        fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t,
    ) -> c_int {
        match (end(timeout), checked(fds, count)) {
            (Some(end), Some(fds)) => call(|| wait(fds, end, mask)),
            _ => real::ppoll(fds, count, timeout, mask),
        }
    }

    fn __ppoll_chk(
        fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t,
        _room: size_t,
    ) -> c_int {
        ppoll(fds, count, timeout, mask)
    }

    pub(super) fn select(
        count: c_int, reads: *mut fd_set, writes: *mut fd_set, errors: *mut fd_set,
        timeout: *mut timeval,
    ) -> c_int {
        let sets = [reads, writes, errors];
        let mut fds = descriptors(count, sets);
        // SAFETY: a time, or none.
        let time = unsafe { timeout.as_ref() };
        let end = time.map_or(End::NEVER, |time| {
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            End::after(Duration::from_secs(seconds) + Duration::from_micros(
                u64::try_from(time.tv_usec).unwrap_or(0),
            ))
        });
        let result = call(|| select_by_poll(&mut fds, sets, end, NO_MASK));
        // As Linux does: what is left of the time (select(2)).
        if let (Some(left), false) = (end.left(), timeout.is_null()) {
            let left = timeval {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(0),
                tv_usec: i64::from(left.subsec_micros()),
            };
            // SAFETY: a place of the program's.
            unsafe { *timeout = left };
        }
        result
    }

    pub(super) fn pselect(
        count: c_int, reads: *mut fd_set, writes: *mut fd_set, errors: *mut fd_set,
        timeout: *const timespec, mask: *const sigset_t,
    ) -> c_int {
        let sets = [reads, writes, errors];
        match end(timeout) {
            Some(end) => {
                call(|| select_by_poll(&mut descriptors(count, sets), sets, end, mask))
            }
            None => real::pselect(count, reads, writes, errors, timeout, mask),
        }
    }

    pub(super) fn epoll_create(size: c_int) -> c_int {
        made(real::epoll_create(size))
    }

    pub(super) fn epoll_create1(flags: c_int) -> c_int {
        made(real::epoll_create1(flags))
    }

    pub(super) fn epoll_ctl(set: c_int, command: c_int, fd: c_int, event: *mut epoll_event) -> c_int {
        let Some(found) = table::epoll(set) else {
            return real::epoll_ctl(set, command, fd, event);
        };
        if let Some(inner) = table::epoll(fd) {
            inner.nest(fd);
        }
        moving::waits_for(fd);
        // SAFETY: an event of the program's, or none.
        let event = unsafe { event.as_ref() }.copied();
        call(|| found.control(set, command, fd, event, member(fd)).map(|()| 0))
    }

    pub(super) fn epoll_wait(set: c_int, events: *mut epoll_event, count: c_int, timeout: c_int) -> c_int {
        epoll_pwait(set, events, count, timeout, NO_MASK)
    }

    pub(super) fn epoll_pwait(
        set: c_int, events: *mut epoll_event, count: c_int, timeout: c_int,
        mask: *const sigset_t,
    ) -> c_int {
        match (table::epoll(set), usize::try_from(count)) {
            (Some(found), Ok(room @ 1..)) if !events.is_null() => {
                // SAFETY: the program promises room for so many.
                let events = unsafe { core::slice::from_raw_parts_mut(events, room) };
                let end = End::after_ms(timeout);
                call(|| found.wait(&Wait { set, end, mask, view: &table::view }, events))
            }
            _ => real::epoll_pwait(set, events, count, timeout, mask),
        }
    }

    pub(super) fn epoll_pwait2(
        set: c_int, events: *mut epoll_event, count: c_int, timeout: *const timespec,
        mask: *const sigset_t,
    ) -> c_int {
        match (table::epoll(set), usize::try_from(count), end(timeout)) {
            (Some(found), Ok(room @ 1..), Some(end)) if !events.is_null() => {
                // SAFETY: the program promises room for so many.
                let events = unsafe { core::slice::from_raw_parts_mut(events, room) };
                call(|| found.wait(&Wait { set, end, mask, view: &table::view }, events))
            }
            _ => real::epoll_pwait2(set, events, count, timeout, mask),
        }
    }
}

/// What a descriptor is for a set.
fn member(fd: c_int) -> Member {
    // A set that is in another one may get connections that have a link.
    if table::epoll(fd).is_some() {
        return Member::Linked;
    }
    let is_tcp = match table::kind(fd) {
        Kind::Other => false,
        Kind::Held => table::socket(fd).is_some(),
        Kind::Unknown | Kind::New => kernel::is_tcp(fd),
    };
    let has_link = table::socket(fd).is_some_and(|socket| socket.has_view());
    match (is_tcp, has_link) {
        (false, _) => Member::Other,
        (true, false) => Member::Tcp,
        (true, true) => Member::Linked,
    }
}

/// The program has made a set.
fn made(set: c_int) -> c_int {
    if set >= 0 {
        leaving::close(set);
        table::set_epoll(set, epoll::created(set));
    }
    set
}
