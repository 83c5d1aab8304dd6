//! Waiting: a thread polls for a while, then it sleeps until the NIC wakes it.
//!
//! A work queue without a completion queue of the program's has one of the library's, one for all of
//! a NIC, so that its completions can wake anybody. It is armed, and read, only when somebody is
//! about to sleep; what it says is of no interest. See `docs/decisions/0009-waiting.md`.

use core::time::Duration;
use std::sync::Arc;

use port::CompletionQueue;
use port::Wait;
use port::sync::lock;

use crate::objects::{Nic, Waiting};

/// Looks of [`Nic::spin`].
const SPINS: u32 = 512;
/// Looks between two in which the NIC's own work is done, which costs a look at the clock.
const NIC_TURNS: u32 = 16;
/// Variable that says how long waits poll, for [`Waiting::from_environment`].
pub const SPIN_VARIABLE: &str = "VIADUCT_SPIN_US";
/// How long a wait polls by default: about what a wake-up costs.
const SPIN: Duration = Duration::from_micros(50);

impl Default for Waiting {
    fn default() -> Self {
        Self::Sleep { after: SPIN }
    }
}

impl Waiting {
    /// What [`SPIN_VARIABLE`] says: microseconds of polling before a wait sleeps, or `inf` to poll
    /// always. The default if it is not set.
    ///
    /// # Errors
    /// Its value, if that is neither.
    pub fn from_environment() -> Result<Self, String> {
        match std::env::var(SPIN_VARIABLE) {
            Ok(value) => Self::parse(&value).ok_or(value),
            Err(std::env::VarError::NotPresent) => Ok(Self::default()),
            Err(std::env::VarError::NotUnicode(value)) => Err(value.to_string_lossy().into_owned()),
        }
    }

    fn parse(value: &str) -> Option<Self> {
        if value == "inf" {
            return Some(Self::Poll);
        }
        let after = Duration::from_micros(value.parse().ok()?);
        Some(Self::Sleep { after })
    }
}

impl Nic {
    /// Number of the library's own completion queue; None if waits poll, or if the NIC has no queue
    /// left, and then the waits for who asks poll.
    pub(crate) fn own_queue(&self) -> Option<u16> {
        if self.inner().waiting == Waiting::Poll {
            return None;
        }
        let making = self.lock_relaxed(&self.inner().making_own_queue, "the library's own queue");
        let mut queue = lock(&self.inner().own_queue).clone();
        if queue.is_none() {
            queue = self.port().create_wake_queue().ok();
            lock(&self.inner().own_queue).clone_from(&queue);
        }
        drop(making);
        queue.map(|queue| queue.number())
    }

    /// Has the next completion of a work queue without a completion queue wake sleepers. False if it
    /// cannot, and sleepers have to look again soon.
    pub fn arm_own_queue(&self) -> bool {
        let queue: &Option<Arc<dyn CompletionQueue>> = &lock(&self.inner().own_queue);
        let Some(queue) = queue else { return false };
        while queue.poll().is_some() {}
        queue.arm();
        true
    }

    /// Looks for some microseconds, without a look at the clock, until `look` finds something; what a layer
    /// above does before it waits by a call that may sleep.
    #[inline]
    pub fn spin<T>(&self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        for turn in 0..SPINS {
            if turn % NIC_TURNS == NIC_TURNS - 1 {
                self.progress();
            }
            let found = look();
            if found.is_some() {
                return found;
            }
            core::hint::spin_loop();
        }
        None
    }

    /// Waits until `look` is true, for a thread that looks at many VIs at once: it polls for a while, then it
    /// sleeps until a work queue without a completion queue of the program's has a completion, or something
    /// else happens on the NIC. Whoever changes by other means what `look` looks at wakes it
    /// ([`port::WaitOps::wake`]). `look` may not wait. False if `timeout` is over before.
    pub fn wait_for(&self, timeout: Duration, mut look: impl FnMut() -> bool) -> bool {
        let mut policy = WaitPolicy::new(self, timeout, "a completion of any VI", 0);
        loop {
            self.progress();
            if look() {
                return true;
            }
            if policy.is_over(self) {
                return false;
            }
            policy.pause(self, || self.arm_own_queue());
        }
    }
}

/// Time at which a wait is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<u64>);

impl Deadline {
    pub(crate) fn after(nic: &Nic, timeout: Duration) -> Self {
        let ns = u64::try_from(timeout.as_nanos()).ok();
        Self(ns.and_then(|ns| nic.port().now_ns().checked_add(ns)))
    }

    pub(crate) const fn wait(self, what: &'static str, index: u32) -> Wait {
        Wait { what, index, bounded: self.0.is_some() }
    }

    /// Nanoseconds that are left, at most `slice`.
    pub(crate) fn left(self, nic: &Nic, slice: u64) -> u64 {
        self.0.map_or(slice, |end| end.saturating_sub(nic.port().now_ns()).min(slice))
    }
}

/// A wait that goes on: polls first, sleeps later.
#[derive(Debug)]
pub(crate) struct WaitPolicy {
    deadline: Deadline,
    wait: Wait,
    /// Time from which on it sleeps.
    sleep_at: u64,
    /// The queues are armed since this count of wake-ups, and were looked at since.
    armed: Option<u64>,
}

impl WaitPolicy {
    pub(crate) fn new(nic: &Nic, timeout: Duration, what: &'static str, index: u32) -> Self {
        Self::of(nic, nic.inner().waiting, timeout, what, index)
    }

    /// One that waits in another way than the NIC's other waits.
    pub(crate) fn of(
        nic: &Nic,
        waiting: Waiting,
        timeout: Duration,
        what: &'static str,
        index: u32,
    ) -> Self {
        let deadline = Deadline::after(nic, timeout);
        let sleep_at = match waiting {
            Waiting::Poll => u64::MAX,
            Waiting::Sleep { after } => {
                let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
                nic.port().now_ns().saturating_add(after)
            }
        };
        Self { deadline, wait: deadline.wait(what, index), sleep_at, armed: None }
    }

    /// Whether the time is over.
    pub(crate) fn is_over(&self, nic: &Nic) -> bool {
        self.deadline.left(nic, 1) == 0
    }

    /// The program has looked and found nothing: waits a little. `arm` has what it waits for wake
    /// sleepers, if it can; the program then looks again before this sleeps.
    pub(crate) fn pause(&mut self, nic: &Nic, arm: impl FnOnce() -> bool) {
        let port = nic.port();
        if port.now_ns() < self.sleep_at {
            return port.relax(self.wait);
        }
        if let Some(seen) = self.armed.take() {
            return port.sleep(seen, self.deadline.left(nic, u64::MAX), self.wait);
        }
        let seen = port.wake_count();
        if arm() {
            self.armed = Some(seen);
        } else {
            port.relax(self.wait);
        }
    }
}

/// For waits that the driver's own events end.
pub(crate) const fn nothing_to_arm() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_microseconds_or_inf() {
        assert_eq!(Waiting::parse("inf"), Some(Waiting::Poll));
        let sleep = |us| Some(Waiting::Sleep { after: Duration::from_micros(us) });
        assert_eq!(Waiting::parse("0"), sleep(0));
        assert_eq!(Waiting::parse("250"), sleep(250));
        for bad in ["", "-1", "1.5", "5us", "99999999999999999999"] {
            assert_eq!(Waiting::parse(bad), None, "{bad}");
        }
    }
}
