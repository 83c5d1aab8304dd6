//! Sleeping until something happens.
//!
//! One of the sleeping threads sleeps on the socket, the others on a condition: the kernel would wake
//! all for each packet, and whoever empties the socket first would leave the others asleep with what
//! is for them. Threads that sleep in a system call of their own (they doze) have a descriptor for that;
//! if no other thread sleeps, that of the service has the socket.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex};

use port::fork;
use port::sync::{lock, try_lock};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::error::{Error, Result};
use super::socket::Socket;

/// Wakes the threads of a node.
#[derive(Debug)]
pub(super) struct Wakes {
    count: AtomicU64,
    sleepers: AtomicUsize,
    /// Held by the thread that sleeps on the socket.
    leader: Mutex<()>,
    followers: Mutex<()>,
    raised: Condvar,
    nudge: OwnedFd,
    dozers: AtomicUsize,
    waker: OwnedFd,
}

impl Drop for Wakes {
    fn drop(&mut self) {
        fork::remove(self.nudge.as_fd());
        fork::remove(self.waker.as_fd());
    }
}

fn new_nudge() -> Result<OwnedFd> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    fork::create(|| Ok(eventfd(0, flags)?)).map_err(Error::system("eventfd"))
}

/// A time as system calls take it.
fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
    }
}

/// Sleeps until one of these descriptors is readable, or a time is over; whether the first is.
fn wait(socket: Option<&Socket>, nudge: &OwnedFd, bound_ns: u64) -> bool {
    let bound = (bound_ns != u64::MAX).then(|| timespec(bound_ns));
    let nudge_fd = PollFd::new(nudge, PollFlags::IN);
    let ready = match socket {
        Some(socket) => {
            let mut fds = [PollFd::new(socket, PollFlags::IN), nudge_fd];
            let _ = poll(&mut fds, bound.as_ref());
            [&fds[0], &fds[1]].map(|fd| !fd.revents().is_empty())
        }
        None => {
            let mut fds = [nudge_fd];
            let _ = poll(&mut fds, bound.as_ref());
            [false, !fds[0].revents().is_empty()]
        }
    };
    if ready[1] {
        let _ = rustix::io::read(nudge, &mut [0_u8; 8]);
    }
    ready[0]
}

fn nudge(nudge: &OwnedFd) {
    // It fails when the count is full, and then it is readable anyway.
    let _ = rustix::io::write(nudge, &1_u64.to_ne_bytes());
}

impl Wakes {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            count: AtomicU64::new(0),
            sleepers: AtomicUsize::new(0),
            leader: Mutex::default(),
            followers: Mutex::default(),
            raised: Condvar::new(),
            nudge: new_nudge()?,
            dozers: AtomicUsize::new(0),
            waker: new_nudge()?,
        })
    }

    /// How often threads were woken.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Whether threads sleep.
    pub(super) fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::SeqCst) > 0
    }

    /// Wakes all.
    pub(super) fn wake(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.has_sleepers() {
            self.raise();
            nudge(&self.nudge);
        }
        if self.has_dozers() {
            nudge(&self.waker);
        }
    }

    /// Whether threads doze.
    pub(super) fn has_dozers(&self) -> bool {
        self.dozers.load(Ordering::SeqCst) > 0
    }

    /// A thread begins to doze, or ends.
    pub(super) fn doze(&self, begins: bool) {
        if begins {
            self.dozers.fetch_add(1, Ordering::SeqCst);
        } else {
            self.dozers.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// What gets an edge with each wake-up while threads doze. Nobody reads it.
    pub(super) fn waker(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    fn raise(&self) {
        let _followers = lock(&self.followers);
        self.raised.notify_all();
    }

    /// Sleeps until a packet arrives, all are woken, or a time is over; not if they were woken since
    /// `seen`. True for the thread that sees that a packet arrived.
    pub(super) fn sleep(&self, socket: &Socket, seen: u64, bound_ns: u64) -> bool {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut arrived = false;
        if self.count() == seen {
            match try_lock(&self.leader) {
                Some(leader) => {
                    arrived = wait(Some(socket), &self.nudge, bound_ns);
                    drop(leader);
                    // Another one sleeps on the socket now.
                    if self.sleepers.load(Ordering::SeqCst) > 1 {
                        self.raise();
                    }
                }
                None => self.follow(seen, bound_ns),
            }
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        arrived
    }

    fn follow(&self, seen: u64, bound_ns: u64) {
        let followers = lock(&self.followers);
        // The leader may have left meanwhile, and its successor is this one, after another look.
        if self.count() == seen && try_lock(&self.leader).is_none() {
            let bound = Duration::from_nanos(bound_ns.min(1_000_000_000));
            drop(self.raised.wait_timeout(followers, bound));
        }
    }
}

/// Wakes the service thread, and lets it sleep.
#[derive(Debug)]
pub(super) struct ServiceWake(OwnedFd);

impl Drop for ServiceWake {
    fn drop(&mut self) {
        fork::remove(self.0.as_fd());
    }
}

impl ServiceWake {
    pub(super) fn new() -> Result<Self> {
        new_nudge().map(Self)
    }

    /// Has the thread look.
    pub(super) fn nudge(&self) {
        nudge(&self.0);
    }

    /// Sleeps until it is nudged, a packet arrives (if there is a socket to look at), or a time is
    /// over.
    pub(super) fn sleep(&self, socket: Option<&Socket>, bound_ns: u64) {
        wait(socket, &self.0, bound_ns);
    }
}
