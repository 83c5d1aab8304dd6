//! Completion queues in software.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::sync::Mutex;

use port::sync::lock;
use port::{Completed, Queue};

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
