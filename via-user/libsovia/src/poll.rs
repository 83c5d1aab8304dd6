//! `poll` and `select` on descriptors of which some have a link.

use core::ffi::c_int;
use std::time::Duration;

use libc::{pollfd, sigset_t};

use crate::service;
use crate::table::{self, view};
use crate::view::{ENDS, View};
use crate::wait::{self, End};

/// How long who gets from the kernel what is not to be reported sleeps.
const NAP: Duration = Duration::from_micros(200);

/// Whether a wait for these has to look at links.
fn is_concerned(fds: &[pollfd]) -> bool {
    let has_link = |fd: &pollfd| {
        table::epoll(fd.fd).is_some()
            || table::socket(fd.fd).is_some_and(|socket| socket.has_view())
    };
    fds.iter().any(has_link)
}

/// The program waits for descriptors.
pub(crate) fn poll(fds: &mut [pollfd], end: End, mask: *const sigset_t) -> Result<usize, c_int> {
    if !is_concerned(fds) {
        let found = wait::kernel_poll(fds, end.left(), mask)?;
        // What woke it may be a marker, of a connection that has a link since then.
        if found == 0 || !is_concerned(fds) {
            return Ok(found);
        }
    }
    let service = service::current();
    // What the kernel is asked for, and a place for `wait`.
    let mut asked: Vec<pollfd> = fds.to_vec();
    asked.push(pollfd { fd: -1, events: 0, revents: 0 });
    let theirs = fds.len();
    let mut wanted: Vec<pollfd> = fds.to_vec();
    let mut is_first = true;
    loop {
        let mut is_ready = false;
        for (fd, asked) in wanted.iter().zip(&mut asked) {
            let view = view(fd.fd);
            is_ready |= of_link(fd.events, view) != 0;
            *asked = for_kernel(*fd, view);
        }
        if (is_ready || is_first) && wait::concerns_kernel(&asked[..theirs], mask) {
            let found = wait::kernel_poll(&mut asked[..theirs], Some(Duration::ZERO), mask)?;
            is_ready |= found > 0;
        }
        if !is_ready {
            // Also when the kernel has the answer again that a link had.
            let before: Vec<i16> = asked[..theirs].iter().map(|asked| asked.events).collect();
            let look = || {
                wanted.iter().zip(&before).any(|(fd, before)| {
                    let view = view(fd.fd);
                    of_link(fd.events, view) != 0 || for_kernel(*fd, view).events != *before
                })
            };
            is_ready = match &service {
                Some(service) => wait::wait(service.nic(), &mut asked, end, mask, look)?,
                None => wait::kernel_poll(&mut asked[..theirs], end.left(), mask)? > 0,
            };
        }
        let mut found = 0;
        for ((fd, wanted), asked) in fds.iter_mut().zip(&mut wanted).zip(&asked) {
            let view = view(wanted.fd);
            let mut reported = view.map_or(asked.revents, |view| of_kernel(asked.revents, view));
            if reported & libc::POLLNVAL != 0 && !is_first {
                // Another thread has closed it: the kernel, which looks at numbers only once, would
                // wait for it on.
                wanted.fd = -1;
                reported = 0;
            }
            fd.revents = of_link(wanted.events, view) | reported;
            found += usize::from(fd.revents != 0);
        }
        is_first = false;
        if found > 0 || !is_ready || end.is_over() {
            return Ok(found);
        }
        std::thread::sleep(NAP);
    }
}

/// Events of `poll` as `epoll` has them, and back.
const fn wide(events: i16) -> u32 {
    events.cast_unsigned() as u32
}

fn narrow(events: u32) -> i16 {
    u16::try_from(events).unwrap_or(0).cast_signed()
}

/// What a link has to report.
fn of_link(events: i16, view: Option<View>) -> i16 {
    view.map_or(0, |view| narrow(view.ready(wide(events))))
}

/// What the kernel reports, less what the link knows better.
fn of_kernel(events: i16, view: View) -> i16 {
    narrow(view.correct(wide(events)))
}

/// What the kernel is asked for: nothing that the link knows better.
fn for_kernel(fd: pollfd, view: Option<View>) -> pollfd {
    // The kernel is not always asked, and then says nothing.
    let Some(view) = view else { return pollfd { revents: 0, ..fd } };
    let events = of_kernel(fd.events, view);
    // A descriptor that reads by VIA is not asked at all: the kernel reports its end always.
    let asks = view.reads.is_none() || wide(events) & !ENDS != 0;
    pollfd { fd: if asks { fd.fd } else { -1 }, events, revents: 0 }
}
