//! Something that a process has once, and its children after a fork have not.

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Mutex;
use std::time::Duration;

use port::fork;
use port::sync::lock;

use crate::patience::until;

/// See the module.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    /// With the process's number among its forked ancestors.
    value: Mutex<Option<(u32, T)>>,
    /// The process in which a thread makes it, by the same number, counted from 1. A child after a fork has
    /// not its parent's threads, nor could it unlock a lock of theirs.
    starting: AtomicU32,
}

impl<T: Clone> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self { value: Mutex::new(None), starting: AtomicU32::new(0) }
    }

    /// This process's, if there is one.
    pub(crate) fn current(&self) -> Option<T> {
        let own = fork::generation();
        fork::without_forks(|| match &*lock(&self.value) {
            Some((generation, value)) if *generation == own => Some(value.clone()),
            _ => None,
        })
    }

    /// This process's, which `start` makes if there is none. Other threads wait for it, but not longer than
    /// `bound`.
    ///
    /// # Errors
    /// Those of `start`; `late` if another thread takes longer.
    pub(crate) fn get<E>(
        &self,
        bound: Duration,
        late: E,
        start: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let own = fork::generation() + 1;
        let mut found = None;
        let mut is_ours = false;
        let _ = until(bound, || {
            found = self.current();
            let other = self.starting.load(Ordering::Acquire);
            is_ours = found.is_none()
                && other != own
                && self
                    .starting
                    .compare_exchange(other, own, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok();
            found.is_some() || is_ours
        });
        if !is_ours {
            return found.ok_or(late);
        }
        let started = start().inspect(|value| {
            let new = (fork::generation(), value.clone());
            let old = fork::without_forks(|| lock(&self.value).replace(new));
            // The parent's, if there is one: its locks are not this process's.
            core::mem::forget(old);
        });
        self.starting.store(0, Ordering::Release);
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_and_who_waits_too_long_gives_up() {
        let one = PerProcess::<u32>::new();
        let second = Duration::from_secs(1);
        assert_eq!(one.get(second, "late", || Err("no")), Err("no"));
        assert_eq!(one.current(), None);
        let inner = || one.get(Duration::ZERO, "late", || Ok(2));
        let outer = one.get(second, "late", || {
            assert_eq!(inner(), Err("late"));
            Ok(1)
        });
        assert_eq!((outer, inner(), one.current()), (Ok(1), Ok(1), Some(1)));
    }
}
