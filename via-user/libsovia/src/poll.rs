//! `poll` and `select` on descriptors of which some have a link.

use core::ffi::c_int;
use std::time::Duration;

use libc::{pollfd, sigset_t};

use crate::link::View;
use crate::service;
use crate::socket::has_links;
use crate::table;
use crate::wait::{self, End};

const READS: i16 = libc::POLLIN | libc::POLLRDNORM;
const WRITES: i16 = libc::POLLOUT | libc::POLLWRNORM;
const ENDS: i16 = libc::POLLHUP | libc::POLLRDHUP;
/// How long who gets from the kernel what is not to be reported sleeps.
const NAP: Duration = Duration::from_micros(200);

/// What the link of a descriptor says, if it has one, or those of a set.
fn view(fd: c_int) -> Option<View> {
    if let Some(set) = table::epoll(fd) {
        let is_ready = set.is_ready(&table::view);
        return is_ready.then_some(View { reads: Some(true), writes: None, arrived: 0 });
    }
    table::view(fd)
}

/// Whether a wait for these has to look at links.
pub(crate) fn is_concerned(fds: &[pollfd]) -> bool {
    let has_link = |fd: &pollfd| {
        table::epoll(fd.fd).is_some()
            || table::socket(fd.fd).is_some_and(|socket| socket.link().is_some())
    };
    has_links() && fds.iter().any(has_link)
}

/// The program waits for descriptors.
pub(crate) fn poll(fds: &mut [pollfd], end: End, mask: *const sigset_t) -> Result<usize, c_int> {
    let Some(service) = service::current() else {
        return wait::kernel_poll(fds, end.left(), mask);
    };
    // What the kernel is asked for, and a place for `wait`.
    let mut asked: Vec<pollfd> = fds.to_vec();
    asked.push(pollfd { fd: -1, events: 0, revents: 0 });
    loop {
        let mut is_ready = false;
        for (fd, asked) in fds.iter().zip(&mut asked) {
            let view = view(fd.fd);
            is_ready |= of_link(fd.events, view) != 0;
            *asked = for_kernel(*fd, view);
        }
        if is_ready {
            let theirs = asked.len() - 1;
            let _ = wait::kernel_poll(&mut asked[..theirs], Some(Duration::ZERO), mask);
        } else {
            let look = || fds.iter().any(|fd| of_link(fd.events, view(fd.fd)) != 0);
            is_ready = wait::wait(service.nic(), &mut asked, end, mask, look)?;
        }
        let mut found = 0;
        for (fd, asked) in fds.iter_mut().zip(&asked) {
            let view = view(fd.fd);
            let of_kernel = view.map_or(asked.revents, |view| of_kernel(asked.revents, view));
            fd.revents = of_link(fd.events, view) | of_kernel;
            found += usize::from(fd.revents != 0);
        }
        if found > 0 || !is_ready || end.is_over() {
            return Ok(found);
        }
        std::thread::sleep(NAP);
    }
}

/// What a link has to report.
fn of_link(events: i16, view: Option<View>) -> i16 {
    let Some(view) = view else { return 0 };
    let mut found = 0;
    if view.reads == Some(true) {
        found |= READS & events;
    }
    if view.writes == Some(true) {
        found |= WRITES & events;
    }
    found
}

/// What the kernel reports, less what the link knows better.
const fn of_kernel(events: i16, view: View) -> i16 {
    let mut events = events;
    if view.reads.is_some() {
        events &= !(READS | ENDS);
    }
    if view.writes.is_some() {
        events &= !WRITES;
    }
    events
}

/// What the kernel is asked for: nothing that the link knows better.
fn for_kernel(fd: pollfd, view: Option<View>) -> pollfd {
    let Some(view) = view else { return fd };
    let events = of_kernel(fd.events, view);
    // A descriptor that reads by VIA is not asked at all: the kernel reports its end always.
    let asks = view.reads.is_none() || events & !ENDS != 0;
    pollfd { fd: if asks { fd.fd } else { -1 }, events, revents: 0 }
}
