//! Interrupts: writes to the eventfds of clients.
//!
//! A full eventfd makes its writer wait unless its description says otherwise, which a client may
//! change at any time, as it may fill the eventfd between a look and the write. So a thread watches
//! the writes, and empties an eventfd that one waits for: a read can be asked not to wait.

use std::fs;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{ReadWriteFlags, preadv2, write};

/// Between two looks at the write that is under way.
const LOOK: Duration = Duration::from_millis(50);

/// Whether a client's descriptor is an eventfd: only of one is known how to end its writes.
pub(super) fn is_eventfd(fd: &OwnedFd) -> bool {
    let link = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    // Names of files begin with a slash.
    link.is_ok_and(|link| link == Path::new("anon_inode:[eventfd]"))
}

/// Whether something can be written to an eventfd: it is not full.
fn has_room(fd: &OwnedFd) -> bool {
    let mut ready = [PollFd::new(fd, PollFlags::OUT)];
    poll(&mut ready, Some(&Timespec::default())).is_ok_and(|n| n > 0)
        && ready[0].revents().contains(PollFlags::OUT)
}

/// The write that is under way, and what its watcher does.
#[derive(Debug, Default)]
struct Watched {
    number: u64,
    fd: Option<Arc<OwnedFd>>,
    /// It waited, and was helped.
    freed: bool,
    /// The watcher looks from time to time; else it sleeps until the next write.
    awake: bool,
    ended: bool,
}

#[derive(Debug, Default)]
struct Shared {
    watched: Mutex<Watched>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread does.
    fn watch(&self) {
        let mut seen = 0;
        let mut watched = self.lock();
        while !watched.ended {
            if !watched.awake {
                watched = self.changed.wait(watched).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let woken = self.changed.wait_timeout(watched, LOOK);
            watched = woken.unwrap_or_else(PoisonError::into_inner).0;
            if watched.number == seen {
                match &watched.fd {
                    // A writer that has room only waits for a processor.
                    Some(fd) if !has_room(fd) => {
                        let mut count = [0; 8];
                        let parts = &mut [IoSliceMut::new(&mut count)];
                        let _ = preadv2(fd.as_ref(), parts, u64::MAX, ReadWriteFlags::NOWAIT);
                        watched.freed = true;
                    }
                    Some(_) => {}
                    None => watched.awake = false,
                }
            }
            seen = watched.number;
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Notifier(Arc<Shared>);

impl Notifier {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is none to be had.
    pub(super) fn start() -> io::Result<Arc<Self>> {
        let shared = Arc::new(Shared::default());
        let watcher = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("viaduct-notifier".to_owned());
        thread.spawn(move || watcher.watch())?;
        Ok(Arc::new(Self(shared)))
    }

    /// Raises an interrupt; one that is not taken yet stays one. False if that kept the caller
    /// waiting, which an honest client never does.
    pub(super) fn ring(&self, fd: &Arc<OwnedFd>) -> bool {
        !has_room(fd) || self.write(fd)
    }

    fn write(&self, fd: &Arc<OwnedFd>) -> bool {
        let mut watched = self.0.lock();
        watched.number += 1;
        watched.fd = Some(Arc::clone(fd));
        watched.freed = false;
        if !core::mem::replace(&mut watched.awake, true) {
            self.0.changed.notify_one();
        }
        drop(watched);
        let _ = write(fd, &1_u64.to_ne_bytes());
        let mut watched = self.0.lock();
        watched.fd = None;
        !watched.freed
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    /// As full as it can be.
    const FULL: u64 = u64::MAX - 1;

    fn event(flags: EventfdFlags) -> Arc<OwnedFd> {
        Arc::new(eventfd(0, flags).unwrap())
    }

    fn count(fd: &OwnedFd) -> u64 {
        let mut bytes = [0; 8];
        rustix::io::read(fd, &mut bytes).map_or(0, |_| u64::from_ne_bytes(bytes))
    }

    #[test]
    fn only_eventfds_are_eventfds() {
        assert!(is_eventfd(&event(EventfdFlags::empty()).try_clone().unwrap()));
        assert!(!is_eventfd(&rustix::pipe::pipe().unwrap().1));
        assert!(!is_eventfd(&UnixStream::pair().unwrap().0.into()));
        let named = memfd_create("anon_inode:[eventfd]", MemfdFlags::CLOEXEC).unwrap();
        assert!(!is_eventfd(&named));
    }

    #[test]
    fn interrupts_add_up_and_a_full_eventfd_stays_so() {
        let notifier = Notifier::start().unwrap();
        let fd = event(EventfdFlags::empty());
        assert!(notifier.ring(&fd) && notifier.ring(&fd));
        assert_eq!(count(&fd), 2);
        write(&fd, &FULL.to_ne_bytes()).unwrap();
        assert!(notifier.ring(&fd), "nobody waited");
        assert_eq!(count(&fd), FULL);
    }

    /// The eventfd was filled after the look.
    #[test]
    fn a_write_that_waits_is_ended() {
        let notifier = Notifier::start().unwrap();
        let fd = event(EventfdFlags::empty());
        for _ in 0..2 {
            write(&fd, &FULL.to_ne_bytes()).unwrap();
            let start = Instant::now();
            assert!(!notifier.write(&fd), "it had to be ended");
            assert!(start.elapsed() < Duration::from_secs(10));
            assert_eq!(count(&fd), 1);
        }
        assert!(notifier.write(&fd), "the next one is none of it");
        // Where the description says so, nothing waits.
        let fd = event(EventfdFlags::NONBLOCK);
        write(&fd, &FULL.to_ne_bytes()).unwrap();
        assert!(notifier.write(&fd));
    }

    #[test]
    fn the_thread_ends_with_its_notifier() {
        let notifier = Notifier::start().unwrap();
        notifier.ring(&event(EventfdFlags::empty()));
        let shared = Arc::downgrade(&notifier.0);
        drop(notifier);
        let end = Instant::now() + Duration::from_secs(30);
        while shared.strong_count() > 0 {
            assert!(Instant::now() < end, "the thread is still there");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
