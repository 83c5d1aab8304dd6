//! Completion queues in software.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use port::sync::lock;
use port::{Completed, Error, Queue, Result, ViSettings};

/// Most entries that a completion queue may be asked for. It has no limit of its own.
pub(crate) const ENTRIES: u32 = 1 << 16;

/// # Errors
/// More entries than a completion queue may be asked for.
pub(crate) fn check_entries(entries: u32) -> Result<()> {
    let what = "entries of a completion queue";
    if entries <= ENTRIES {
        Ok(())
    } else {
        Err(Error::BadArgument { what, value: entries.into() })
    }
}

/// The records of a VI's completion queues, by `of` a queue's number; none of one that only wakes.
///
/// # Errors
/// Those of `of`.
pub(crate) fn records_of(
    settings: &ViSettings,
    of: impl Fn(u16) -> Result<Option<Arc<Records>>>,
) -> Result<[Option<Arc<Records>>; 2]> {
    let records = |queue: Option<u16>| queue.map(&of).transpose().map(Option::flatten);
    Ok([records(settings.send_queue)?, records(settings.recv_queue)?])
}

/// Records of a completion queue. It has no limit of its own: a VI has no more descriptors to report
/// than were posted.
#[derive(Debug, Default)]
pub(crate) struct Records {
    records: Mutex<VecDeque<Completed>>,
    count: AtomicUsize,
}

impl Records {
    /// Reports that the oldest descriptor of a VI's queue is done.
    pub(crate) fn push(&self, vi: u16, queue: Queue) {
        let mut records = lock(&self.records);
        match records.back_mut() {
            Some(last) if last.vi == vi && last.queue == queue => last.count += 1,
            _ => records.push_back(Completed { vi, queue, count: 1 }),
        }
        self.count.store(records.len(), Ordering::Release);
    }

    pub(crate) fn pop(&self) -> Option<Completed> {
        if self.is_empty() {
            return None;
        }
        let mut records = lock(&self.records);
        let record = records.pop_front();
        self.count.store(records.len(), Ordering::Release);
        record
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Forgets what a VI reported.
    pub(crate) fn forget(&self, vi: u16) {
        let mut records = lock(&self.records);
        records.retain(|record| record.vi != vi);
        self.count.store(records.len(), Ordering::Release);
    }
}
