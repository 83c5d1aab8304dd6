//! File descriptors of the library in a process whose program is somebody else's: out of the way of the
//! numbers that such a program takes for its own, and known, so that it does not close them.
//!
//! Programs copy descriptors to numbers that they choose (a shell's `exec 5<file`), and close all that
//! they do not know. What then has the number would get what the library writes. Only a library that
//! stands between the program and its calls turns this on ([`begin`]).

use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::process::{Resource, getrlimit};

/// The first number; 0: there are none.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// Which numbers from there on are kept.
static KEPT: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
/// The highest first number: the kernel has a place for each one below.
const FIRST_MAX: u64 = 4096;

/// Has descriptors kept from now on, in the upper part of the numbers that the process may have.
pub fn begin() {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let first = (limit / 4 * 3).min(FIRST_MAX);
    FIRST.store(RawFd::try_from(first).unwrap_or(0), Ordering::Release);
}

/// The bit of a number, if it may be a kept one.
fn bit(fd: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let first = FIRST.load(Ordering::Acquire);
    let number = usize::try_from(fd.checked_sub(first)?).ok().filter(|_| first > 0)?;
    Some((KEPT.get(number / 64)?, 1 << (number % 64)))
}

/// Whether a number is a kept descriptor's.
#[must_use]
#[inline]
pub fn is_kept(fd: RawFd) -> bool {
    bit(fd).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
}

/// The kept descriptors, in order.
pub fn all() -> impl Iterator<Item = RawFd> {
    let first = FIRST.load(Ordering::Acquire);
    (first..).take(64 * KEPT.len()).filter(|fd| is_kept(*fd))
}

/// A descriptor of the library, kept if there is room among the upper numbers.
#[derive(Debug)]
pub struct Kept(OwnedFd);

impl Kept {
    /// Keeps a descriptor, which has another number then.
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        let first = FIRST.load(Ordering::Acquire);
        if first == 0 {
            return Self(fd);
        }
        let Ok(moved) = rustix::io::fcntl_dupfd_cloexec(&fd, first) else { return Self(fd) };
        if let Some((word, bit)) = bit(moved.as_raw_fd()) {
            word.fetch_or(bit, Ordering::AcqRel);
        }
        Self(moved)
    }
}

impl From<OwnedFd> for Kept {
    fn from(fd: OwnedFd) -> Self {
        Self::new(fd)
    }
}

impl AsFd for Kept {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Kept {
    /// Before it is closed, which a program may not do.
    fn drop(&mut self) {
        if let Some((word, bit)) = bit(self.0.as_raw_fd()) {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe() -> OwnedFd {
        rustix::pipe::pipe().unwrap().0
    }

    /// One test, since all threads have the same numbers.
    #[test]
    fn kept_descriptors_are_above_and_known_until_they_are_dropped() {
        let before = Kept::new(pipe());
        assert!(!is_kept(before.0.as_raw_fd()) && all().next().is_none());
        begin();
        let first = FIRST.load(Ordering::Acquire);
        let kept: Vec<Kept> = (0..70).map(|_| Kept::new(pipe())).collect();
        let numbers: Vec<RawFd> = kept.iter().map(|kept| kept.0.as_raw_fd()).collect();
        assert!(numbers.iter().all(|fd| *fd >= first && is_kept(*fd)), "{first}, {numbers:?}");
        assert_eq!(all().collect::<Vec<_>>(), numbers);
        drop(kept);
        assert!(!numbers.iter().any(|fd| is_kept(*fd)));
    }
}
