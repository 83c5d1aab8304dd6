//! Time, polling and sleeping.

use core::time::Duration;
use std::os::fd::BorrowedFd;
use std::sync::LazyLock;
use std::time::Instant;

use crate::attributes::Wait;
use crate::error::{Error, Result};

/// Longest sleep of a port that nothing wakes.
const POLL_PERIOD: Duration = Duration::from_micros(50);

/// Waiting, in the port's time. The defaults suit a port whose time is the computer's and which is
/// only polled.
pub trait WaitOps {
    /// How often sleepers were woken. A thread that reads the count, then arms its queue, then looks
    /// whether there is anything to do, and then sleeps, misses nothing.
    fn wake_count(&self) -> u64 {
        0
    }

    /// Sleeps until a queue that was armed has a record, until something happened that
    /// [`crate::ViOps::next_event`] or a poll may report, or until `bound_ns` are over; not at all
    /// if a thread was woken since `seen`. It may wake earlier.
    fn sleep(&self, seen: u64, bound_ns: u64, wait: Wait) {
        let _ = (seen, wait);
        std::thread::sleep(POLL_PERIOD.min(Duration::from_nanos(bound_ns)));
    }

    /// The same without a bound, by a system call that the kernel begins anew after a signal whose handler
    /// has `SA_RESTART` (signal(7)). True: a handler that has not has run. None: there is no such sleep
    /// now.
    fn sleep_restarting(&self, seen: u64) -> Option<bool> {
        let _ = seen;
        None
    }

    /// Wakes all sleepers.
    fn wake(&self) {}

    /// A descriptor for threads that sleep in a system call of their own, on other descriptors, too: each
    /// wake-up gives it an edge (`EPOLLET`) while [`WaitOps::doze`] says that there are such threads, and
    /// nobody reads it. None: such threads look again soon.
    fn wake_descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// A thread is about to sleep on [`WaitOps::wake_descriptor`], or has. It looks at the wake count, arms
    /// its queues and looks for work in between, as for [`WaitOps::sleep`].
    fn doze(&self, begins: bool) {
        let _ = begins;
    }

    /// Lets time pass: a polling loop calls this on each empty iteration.
    fn relax(&self, wait: Wait) {
        let _ = wait;
        std::thread::yield_now();
    }

    /// Time, in nanoseconds.
    fn now_ns(&self) -> u64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Starts a thread of the library, which may use the port. A deterministic simulation gives the
    /// thread its place in the order of threads here.
    ///
    /// # Errors
    /// No thread to be had.
    fn spawn(&self, name: &str, program: Box<dyn FnOnce() + Send>) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(program).map(drop).map_err(Error::device)
    }
}
