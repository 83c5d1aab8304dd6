//! Interrupts as eventfds: the device's side raises them, and whoever waits sleeps in the kernel.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use port::own::OwnFd;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// The vector was raised, and is taken.
    Raised,
    /// The time is over, or there is no such vector.
    Over,
    /// One of the others that were watched has something to say.
    Watched,
}

/// An eventfd for each vector.
#[derive(Debug, Default)]
pub(super) struct Vectors(Vec<OwnFd>);

/// An eventfd that a read does not wait for.
///
/// # Errors
/// No descriptor left.
pub(super) fn event() -> io::Result<OwnFd> {
    Ok(OwnFd::create(|| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK))?)
}

/// Whether an eventfd was raised since it was last taken.
pub(super) fn take(event: &OwnFd) -> bool {
    rustix::io::read(event, &mut [0_u8; 8]).is_ok()
}

impl Vectors {
    /// # Errors
    /// As [`event`].
    pub(super) fn new(count: usize) -> io::Result<Self> {
        (0..count).map(|_| event()).collect::<io::Result<_>>().map(Self)
    }

    pub(super) fn all(&self) -> &[OwnFd] {
        &self.0
    }

    /// Takes a vector: whether it was raised.
    pub(super) fn take(&self, vector: u16) -> bool {
        self.0.get(usize::from(vector)).is_some_and(take)
    }

    /// Raises a vector as the device would.
    pub(super) fn raise(&self, vector: u16) {
        if let Some(event) = self.0.get(usize::from(vector)) {
            // It fails only if it is raised already, very often.
            let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
        }
    }

    /// Waits for a vector, or until one of `others` has what its flags say.
    pub(super) fn wait(
        &self,
        vector: u16,
        bound: Duration,
        others: &[(BorrowedFd<'_>, PollFlags)],
    ) -> Waited {
        let Some(event) = self.0.get(usize::from(vector)) else { return Waited::Over };
        let start = Instant::now();
        loop {
            if take(event) {
                return Waited::Raised;
            }
            let left = bound.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Waited::Over;
            }
            let left = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            let others = others.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags));
            let mut fds: Vec<PollFd<'_>> = others.collect();
            let watched = fds.len();
            fds.push(PollFd::new(event, PollFlags::IN));
            // A signal is no reason to look again sooner.
            let _ = poll(&mut fds, Some(&left));
            if fds[..watched].iter().any(|fd| !fd.revents().is_empty()) {
                return Waited::Watched;
            }
        }
    }
}
