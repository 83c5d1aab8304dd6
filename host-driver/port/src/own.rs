//! Descriptors of this library in a program that was never compiled for it.
//!
//! Such a program knows the numbers of all descriptors that are open. It closes the others ('all above
//! 2'), copies descriptors onto numbers of its choice, and counts on as many as its limit allows. So
//! these descriptors have high numbers there ([`keep_away`]), and who stands between the program and the
//! C library asks which they are ([`is_own`]).

use core::cell::Cell;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, getrlimit};

/// Numbers that are looked after. Higher ones are as if they were the program's.
const NUMBERS: usize = 1 << 16;
/// A bit for each number.
static OWN: [AtomicU64; NUMBERS / 64] = [const { AtomicU64::new(0) }; NUMBERS / 64];
static IS_AWAY: AtomicBool = AtomicBool::new(false);
/// The kernel's table of a process is as long as its highest number, and every fork copies it.
const HIGHEST_LIMIT: u64 = 4096;

/// From now on, descriptors of this library get numbers in the last quarter of those that the program may
/// have, as long as some are free there.
pub fn keep_away() {
    IS_AWAY.store(true, Ordering::Relaxed);
}

/// The first number of that quarter.
fn floor() -> RawFd {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(HIGHEST_LIMIT);
    RawFd::try_from(limit.min(HIGHEST_LIMIT) / 4 * 3).unwrap_or(0)
}

/// The word and the bit of a number.
fn place(number: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let number = usize::try_from(number).ok()?;
    Some((OWN.get(number / 64)?, 1 << (number % 64)))
}

/// Whether a number is a descriptor of this library.
#[must_use]
#[inline]
pub fn is_own(number: RawFd) -> bool {
    place(number).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
}

/// The numbers from `first` to `last` that are no descriptors of this library, as ranges.
#[must_use]
pub fn others(first: u32, last: u32) -> Vec<(u32, u32)> {
    let is_own = |number: &u32| RawFd::try_from(*number).is_ok_and(is_own);
    let end = last.min(u32::try_from(NUMBERS - 1).unwrap_or(u32::MAX));
    let (mut ranges, mut next) = (Vec::new(), Some(first));
    for own in (first..=end).filter(is_own) {
        if let Some(start) = next.filter(|start| *start < own) {
            ranges.push((start, own - 1));
        }
        next = own.checked_add(1);
    }
    ranges.extend(next.filter(|start| *start <= last).map(|start| (start, last)));
    ranges
}

/// A number is a descriptor of this library.
pub(crate) fn note(number: RawFd) {
    if let Some((word, bit)) = place(number) {
        word.fetch_or(bit, Ordering::AcqRel);
    }
}

/// A number is none any more: it is closed next.
pub(crate) fn forget(number: RawFd) {
    if let Some((word, bit)) = place(number) {
        word.fetch_and(!bit, Ordering::AcqRel);
    }
}

/// Gives a descriptor a number that is out of the program's way, where that is wanted and there is one.
#[must_use]
pub fn moved<T: AsFd + From<OwnedFd>>(descriptor: T) -> T {
    if !IS_AWAY.load(Ordering::Relaxed) {
        return descriptor;
    }
    match fcntl_dupfd_cloexec(&descriptor, floor()) {
        Ok(away) => away.into(),
        // All are in use.
        Err(_) => descriptor,
    }
}

/// Threads of this library that create descriptors, and calls of the program that close by number.
static CREATING: AtomicU32 = AtomicU32::new(0);
static CLOSING: AtomicU32 = AtomicU32::new(0);
/// Forks between the first process and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// This thread creates one: what it closes is its own.
    static IS_CREATING: Cell<bool> = const { Cell::new(false) };
}

/// One more, until it is dropped, of the process that began it: a child after fork begins with none.
struct Counted(&'static AtomicU32, u32);

impl Counted {
    fn new(count: &'static AtomicU32) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count, FORKS.load(Ordering::SeqCst))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.1 == FORKS.load(Ordering::SeqCst) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// A child after fork has none of the threads that are counted.
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::SeqCst);
    CREATING.store(0, Ordering::SeqCst);
    CLOSING.store(0, Ordering::SeqCst);
}

/// Creates and uses descriptors that nobody knows yet, while no call of the program closes by number:
/// another one could have the number before this one is noted, and would be closed for it. Short.
pub fn undisturbed<T>(create: impl FnOnce() -> T) -> T {
    if !IS_AWAY.load(Ordering::Relaxed) || IS_CREATING.try_with(Cell::get).unwrap_or(true) {
        return create();
    }
    let _creating = loop {
        let creating = Counted::new(&CREATING);
        if CLOSING.load(Ordering::SeqCst) == 0 {
            break creating;
        }
        drop(creating);
        std::thread::yield_now();
    };
    let _ = IS_CREATING.try_with(|is| is.set(true));
    let created = create();
    let _ = IS_CREATING.try_with(|is| is.set(false));
    created
}

/// A call of the program that closes descriptors by number, or copies one onto a number, while this
/// library creates none.
pub fn closing<T>(close: impl FnOnce() -> T) -> T {
    if IS_CREATING.try_with(Cell::get).unwrap_or(true) {
        return close();
    }
    let _closing = Counted::new(&CLOSING);
    while CREATING.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
    close()
}

/// A descriptor that is this library's as long as it lives.
#[derive(Debug)]
pub struct OwnFd<T: AsFd = OwnedFd>(T);

impl<T: AsFd + From<OwnedFd>> OwnFd<T> {
    /// Creates one, by a call that does not wait.
    ///
    /// # Errors
    /// Those of `create`.
    pub fn create<E>(create: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        undisturbed(|| create().map(Self::new))
    }

    /// Takes a descriptor, in [`undisturbed`].
    #[must_use]
    pub fn new(descriptor: T) -> Self {
        let descriptor = moved(descriptor);
        note(descriptor.as_fd().as_raw_fd());
        Self(descriptor)
    }
}

impl<T: AsFd> Deref for OwnFd<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: AsFd> AsFd for OwnFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl<T: AsFd> Drop for OwnFd<T> {
    fn drop(&mut self) {
        forget(self.0.as_fd().as_raw_fd());
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn ranges_leave_out_own_descriptors() {
        // No other test has so many open.
        let numbers = [50_000, 50_001, 50_004];
        numbers.into_iter().for_each(note);
        assert!(is_own(50_001) && !is_own(50_002));
        assert_eq!(others(49_999, 50_005), [(49_999, 49_999), (50_002, 50_003), (50_005, 50_005)]);
        assert_eq!(others(50_000, 50_001), []);
        assert_eq!(others(50_004, u32::MAX), [(50_005, u32::MAX)]);
        numbers.into_iter().for_each(forget);
        assert_eq!(others(49_999, 50_005), [(49_999, 50_005)]);
        assert_eq!(others(u32::MAX, u32::MAX), [(u32::MAX, u32::MAX)]);
        assert!(!is_own(-1) && !is_own(RawFd::MAX));
    }

    #[test]
    fn a_descriptor_is_own_as_long_as_it_lives_and_out_of_the_way_where_that_is_wanted() {
        let low = OwnFd::new(File::open("/dev/null").unwrap());
        assert!(is_own(low.as_raw_fd()) && low.as_raw_fd() < floor());
        keep_away();
        let high = OwnFd::new(File::open("/dev/null").unwrap());
        IS_AWAY.store(false, Ordering::Relaxed);
        let number = high.as_raw_fd();
        assert!(is_own(number) && number >= floor());
        drop(high);
        assert!(!is_own(number));
    }
}
