//! Which processors a thread may use.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Failure;

/// Processors that this thread may use, at one moment.
pub(crate) struct Allowed(CpuSet);

impl Allowed {
    /// Those of now.
    pub(crate) fn now() -> Result<Self, Failure> {
        Ok(Self(sched_getaffinity(None)?))
    }

    fn all(&self) -> Vec<usize> {
        (0..CpuSet::MAX_CPU).filter(|cpu| self.0.is_set(*cpu)).collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    /// Puts the calling thread, and the threads and processes that it starts, on one of them. They are
    /// counted from 0, and again behind the last.
    pub(crate) fn pin(&self, number: usize) -> Result<(), Failure> {
        let all = self.all();
        let mut own = CpuSet::new();
        own.set(all[number % all.len()]);
        Ok(sched_setaffinity(None, &own)?)
    }

    /// Lets the calling thread use all of them.
    pub(crate) fn restore(&self) {
        let _ = sched_setaffinity(None, &self.0);
    }
}
