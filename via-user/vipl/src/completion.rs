//! Completion queues: one place to look for the completions of many work queues.
//!
//! The NIC announces completions in records (VI, queue, how many); software adds those that it made
//! itself (flushed descriptors). A descriptor is done before its entry is here, so the program's
//! `done` finds it at once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use host_driver::port::{Completed, CompletionQueue};
use host_driver::sync::lock;
use nic_regs::doorbell::Queue;

use crate::error::{Result, VipReturn};
use crate::nic::Nic;
use crate::transfer::Deadline;
use crate::vi::{Announced, Vi, ViInner};

/// Longest sleep of a waiter before it looks for errors, which do not wake it.
const SLICE_NS: u64 = 100_000;

/// A completion queue (`VIP_CQ_HANDLE`). Clones are the same queue.
#[derive(Clone, Debug)]
#[doc(alias = "VIP_CQ_HANDLE")]
pub struct Cq {
    inner: Arc<CqInner>,
}

#[derive(Debug)]
struct CqInner {
    nic: Nic,
    ring: Arc<dyn CompletionQueue>,
    state: Mutex<CqState>,
}

#[derive(Debug, Default)]
struct CqState {
    /// The record whose completions are being handed out.
    current: Option<Completed>,
    /// Records that come before those of the ring.
    pending: VecDeque<Completed>,
    vis: BTreeMap<u16, (Weak<ViInner>, Announced)>,
}

/// An entry of a completion queue: take the descriptor with [`Vi::done`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CqEntry {
    /// The VI.
    pub vi: Vi,
    /// Which of its queues.
    pub queue: Queue,
}

impl Nic {
    /// Creates a completion queue for at least `entries` completions.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] for 0 or too many entries, [`VipReturn::ErrorResource`].
    #[doc(alias = "VipCreateCQ")]
    pub fn create_cq(&self, entries: u32) -> Result<Cq> {
        if entries == 0 {
            return Err(VipReturn::InvalidParameter.into());
        }
        let ring = self.port().create_queue(entries)?;
        let inner = CqInner { nic: self.clone(), ring, state: Mutex::default() };
        Ok(Cq { inner: Arc::new(inner) })
    }
}

impl CqState {
    /// Notes that the completions of a record are known. False if its VI is gone.
    fn account(&self, record: Completed) -> bool {
        let Some((_, announced)) = self.vis.get(&record.vi) else { return false };
        announced[record.queue as usize].fetch_add(record.count.into(), Ordering::AcqRel);
        true
    }

    /// Takes what the NIC has announced.
    fn drain(&mut self, ring: &dyn CompletionQueue) {
        while let Some(record) = ring.poll() {
            if self.account(record) {
                self.pending.push_back(record);
            }
        }
    }
}

impl Cq {
    pub(crate) fn number(&self) -> u16 {
        self.inner.ring.number()
    }

    pub(crate) fn attach(&self, vi: u16, inner: &Arc<ViInner>, announced: &Announced) {
        let entry = (Arc::downgrade(inner), Arc::clone(announced));
        lock(&self.inner.state).vis.insert(vi, entry);
    }

    /// Forgets a VI, and its records.
    pub(crate) fn detach(&self, vi: u16) {
        self.drain();
        let mut state = lock(&self.inner.state);
        state.vis.remove(&vi);
        state.pending.retain(|record| record.vi != vi);
        state.current = state.current.filter(|record| record.vi != vi);
    }

    /// Takes what the NIC has announced.
    pub(crate) fn drain(&self) {
        lock(&self.inner.state).drain(&*self.inner.ring);
    }

    /// Adds completions that software made.
    pub(crate) fn push(&self, vi: u16, queue: Queue, count: u32) {
        let mut state = lock(&self.inner.state);
        // They come after those that the NIC has announced already.
        state.drain(&*self.inner.ring);
        let record = Completed { vi, queue, count };
        if state.account(record) {
            state.pending.push_back(record);
        }
    }

    fn take(&self) -> Option<CqEntry> {
        let mut state = lock(&self.inner.state);
        loop {
            if let Some(record) = &mut state.current
                && record.count > 0
            {
                record.count -= 1;
                let (number, queue) = (record.vi, record.queue);
                if let Some(vi) = state.vis.get(&number).and_then(|(vi, _)| vi.upgrade()) {
                    return Some(CqEntry { vi: Vi::from_inner(vi), queue });
                }
            }
            let exhausted = state.current.is_none_or(|record| record.count == 0);
            if exhausted {
                state.current = match state.pending.pop_front() {
                    Some(record) => Some(record),
                    None => {
                        let record = self.inner.ring.poll()?;
                        state.account(record).then_some(record)
                    }
                };
            }
        }
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// [`VipReturn::NotDone`].
    #[doc(alias = "VipCQDone")]
    pub fn done(&self) -> core::result::Result<CqEntry, VipReturn> {
        if let Some(entry) = self.take() {
            return Ok(entry);
        }
        self.inner.nic.progress();
        self.take().ok_or(VipReturn::NotDone)
    }

    /// Waits for the next entry.
    ///
    /// # Errors
    /// [`VipReturn::Timeout`].
    #[doc(alias = "VipCQWait")]
    pub fn wait(&self, timeout: Duration) -> core::result::Result<CqEntry, VipReturn> {
        let nic = &self.inner.nic;
        let deadline = Deadline::after(nic, timeout);
        loop {
            if let Ok(entry) = self.done() {
                return Ok(entry);
            }
            let bound = deadline.left(nic, SLICE_NS);
            if bound == 0 {
                return Err(VipReturn::Timeout);
            }
            let wait = deadline.wait("a completion in queue", self.number().into());
            self.inner.ring.wait(bound, wait);
        }
    }

    /// Destroys the completion queue.
    ///
    /// # Errors
    /// [`VipReturn::ErrorResource`] while a VI uses it; [`VipReturn::InvalidParameter`] if it is
    /// destroyed already.
    #[doc(alias = "VipDestroyCQ")]
    pub fn destroy(&self) -> Result<()> {
        if !lock(&self.inner.state).vis.is_empty() {
            return Err(VipReturn::ErrorResource.into());
        }
        Ok(self.inner.nic.port().destroy_queue(self.number())?)
    }
}
