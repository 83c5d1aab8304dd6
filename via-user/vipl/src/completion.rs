//! Completion queues: one place to look for the completions of many work queues.
//!
//! The NIC reports completions in records (VI, queue, how many); software adds those that it made
//! itself (flushed descriptors). A descriptor is done before its entry is here, so the program's
//! `done` finds it at once.
//!
//! A resize gives the NIC another ring under the same number. Records that fall between the two are
//! lost, so from the first resize on a record only says where to look: entries are then counted from
//! the statuses, which loses and repeats nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use port::Queue;
use port::sync::lock;
use port::{Completed, CompletionQueue};

use crate::error::{Result, VipReturn};
use crate::objects::{Cq, CqEntry, CqInner, CqState, Nic, Reported, Vi, ViInner};
use crate::waiting::WaitPolicy;

impl Nic {
    /// Creates a completion queue for at least `entries` completions.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] for 0 or too many entries, [`VipReturn::ErrorResource`].
    #[doc(alias = "VipCreateCQ")]
    pub fn create_cq(&self, entries: u32) -> Result<Cq> {
        self.check_open()?;
        if entries == 0 {
            return Err(VipReturn::InvalidParameter.into());
        }
        let ring = self.port().create_queue(entries)?;
        let number = ring.number();
        let state = CqState {
            ring,
            recount: false,
            current: None,
            pending: VecDeque::new(),
            vis: BTreeMap::new(),
            looked_at: Vec::new(),
        };
        let inner = CqInner {
            nic: self.clone(),
            number,
            state: Mutex::new(state),
            changing: Mutex::new(()),
            destroyed: AtomicBool::new(false),
        };
        Ok(Cq { inner: Arc::new(inner) })
    }
}

impl CqState {
    /// Notes that the completions of a record are known, and gives those that were not known
    /// before. None if there are none, or if the VI no longer exists.
    fn account(&mut self, record: Completed) -> Option<Completed> {
        let (vi, reported) = self.vis.get(&record.vi)?;
        let known = &reported[record.queue as usize];
        if !self.recount {
            known.fetch_add(record.count.into(), Ordering::AcqRel);
            return Some(record);
        }
        let vi = vi.upgrade()?;
        let done = vi.done_count(record.queue);
        self.looked_at.push(Vi::from_inner(vi));
        let new = done.saturating_sub(known.fetch_max(done, Ordering::AcqRel));
        let count = u32::try_from(new).unwrap_or(u32::MAX);
        (count > 0).then_some(Completed { count, ..record })
    }

    /// The next record of the ring that reports something new.
    fn poll(&mut self) -> Option<Completed> {
        loop {
            let record = self.ring.poll()?;
            if let Some(record) = self.account(record) {
                return Some(record);
            }
        }
    }

    /// Takes what the NIC has reported.
    fn drain(&mut self) {
        while let Some(record) = self.poll() {
            self.pending.push_back(record);
        }
    }

    /// Puts another ring in the place of the old one, and finds what was reported in neither.
    fn replace(&mut self, number: u16, ring: Arc<dyn CompletionQueue>) {
        self.drain();
        (self.ring, self.recount) = (ring, true);
        let vis: Vec<u16> = self.vis.keys().copied().collect();
        for (vi, queue) in vis.into_iter().flat_map(|vi| [(vi, Queue::Send), (vi, Queue::Recv)]) {
            let inner = self.vis.get(&vi).and_then(|(inner, _)| inner.upgrade());
            let mine = inner.is_some_and(|inner| {
                let mine = inner.queue_number(queue) == Some(number);
                self.looked_at.push(Vi::from_inner(inner));
                mine
            });
            if mine && let Some(record) = self.account(Completed { vi, queue, count: 0 }) {
                self.pending.push_back(record);
            }
        }
    }

    /// The next entry.
    fn take(&mut self) -> Option<(Arc<ViInner>, Queue)> {
        loop {
            if let Some(record) = &mut self.current
                && record.count > 0
            {
                record.count -= 1;
                let (number, queue) = (record.vi, record.queue);
                if let Some(vi) = self.vis.get(&number).and_then(|(vi, _)| vi.upgrade()) {
                    return Some((vi, queue));
                }
            }
            let exhausted = self.current.is_none_or(|record| record.count == 0);
            if exhausted {
                self.current = Some(self.pending.pop_front().or_else(|| self.poll())?);
            }
        }
    }
}

/// The state of a completion queue, locked; VIs that were looked at are let go after the lock.
fn with<R>(state: &Mutex<CqState>, act: impl FnOnce(&mut CqState) -> R) -> R {
    let (result, _looked_at) = {
        let mut state = lock(state);
        let result = act(&mut state);
        (result, core::mem::take(&mut state.looked_at))
    };
    result
}

impl Cq {
    pub(crate) fn number(&self) -> u16 {
        self.inner.number
    }

    pub(crate) const fn from_inner(inner: Arc<CqInner>) -> Self {
        Self { inner }
    }

    pub(crate) const fn inner_arc(&self) -> &Arc<CqInner> {
        &self.inner
    }

    pub(crate) fn nic(&self) -> &Nic {
        &self.inner.nic
    }

    /// Fails for a queue of another NIC, and for one that is destroyed.
    pub(crate) fn check(&self, nic: &Nic) -> Result<()> {
        let good = self.inner.nic.is(nic) && !self.is_destroyed();
        if good { Ok(()) } else { Err(VipReturn::InvalidParameter.into()) }
    }

    fn is_destroyed(&self) -> bool {
        self.inner.destroyed.load(Ordering::Acquire) || self.inner.nic.is_closed()
    }

    pub(crate) fn attach(&self, vi: u16, inner: &Arc<ViInner>, reported: &Reported) {
        let entry = (Arc::downgrade(inner), Arc::clone(reported));
        lock(&self.inner.state).vis.insert(vi, entry);
    }

    /// Forgets a VI, and its records.
    pub(crate) fn detach(&self, vi: u16) {
        with(&self.inner.state, |state| {
            state.drain();
            state.vis.remove(&vi);
            state.pending.retain(|record| record.vi != vi);
            state.current = state.current.filter(|record| record.vi != vi);
        });
    }

    /// Takes what the NIC has reported.
    pub(crate) fn drain(&self) {
        with(&self.inner.state, CqState::drain);
    }

    /// Adds completions that software made.
    pub(crate) fn push(&self, vi: u16, queue: Queue, count: u32) {
        with(&self.inner.state, |state| {
            // They come after those that the NIC has reported already.
            state.drain();
            if let Some(record) = state.account(Completed { vi, queue, count }) {
                state.pending.push_back(record);
            }
        });
    }

    pub(crate) fn take(&self) -> Option<CqEntry> {
        let taken = with(&self.inner.state, CqState::take);
        taken.map(|(vi, queue)| CqEntry { vi: Vi::from_inner(vi), queue })
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// [`VipReturn::NotDone`]; [`VipReturn::InvalidParameter`] if the queue is destroyed or its NIC
    /// closed.
    #[doc(alias = "VipCQDone")]
    pub fn done(&self) -> core::result::Result<CqEntry, VipReturn> {
        if self.is_destroyed() {
            return Err(VipReturn::InvalidParameter);
        }
        if let Some(entry) = self.take() {
            return Ok(entry);
        }
        self.inner.nic.progress();
        self.take().ok_or(VipReturn::NotDone)
    }

    /// As [`Cq::done`], for a program whose NIC somebody else keeps going ([`Nic::progress`]): it
    /// handles no events itself, so it costs little.
    ///
    /// # Errors
    /// As [`Cq::done`].
    pub fn poll(&self) -> core::result::Result<CqEntry, VipReturn> {
        match self.take() {
            _ if self.is_destroyed() => Err(VipReturn::InvalidParameter),
            entry => entry.ok_or(VipReturn::NotDone),
        }
    }

    /// Waits for the next entry.
    ///
    /// # Errors
    /// [`VipReturn::Timeout`]; [`VipReturn::InvalidParameter`] as for [`Cq::done`], also if that
    /// happens meanwhile.
    #[doc(alias = "VipCQWait")]
    pub fn wait(&self, timeout: Duration) -> core::result::Result<CqEntry, VipReturn> {
        let nic = &self.inner.nic;
        let what = "a completion in queue";
        let mut policy = WaitPolicy::new(nic, timeout, what, self.number().into());
        loop {
            match self.done() {
                Err(VipReturn::NotDone) => {}
                ended => return ended,
            }
            if policy.is_over(nic) {
                return Err(VipReturn::Timeout);
            }
            policy.pause(nic, || self.arm());
        }
    }

    /// Has the next entry wake sleepers.
    pub(crate) fn arm(&self) -> bool {
        with(&self.inner.state, |state| {
            // The NIC reports at once what nobody has read.
            state.drain();
            state.ring.arm();
        });
        true
    }

    /// Gives the queue room for at least `entries` completions, also while completions come: none is
    /// lost, and those of one VI's queue stay in order. The queue never loses entries for want of
    /// room; with room, the NIC need not put any off.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] for 0 or too many entries, or if the queue is destroyed;
    /// [`VipReturn::ErrorResource`] if there is no memory (nothing has changed then), or if the NIC
    /// failed.
    #[doc(alias = "VipResizeCQ")]
    pub fn resize(&self, entries: u32) -> Result<()> {
        let nic = &self.inner.nic;
        let _changing = nic.lock_relaxed(&self.inner.changing, "a completion queue's resize");
        self.check(nic)?;
        if entries == 0 {
            return Err(VipReturn::InvalidParameter.into());
        }
        let retire = |retired| with(&self.inner.state, |state| state.ring.retire(retired));
        retire(true);
        let resized = nic.port().resize_queue(self.number(), entries);
        let ring = resized.inspect_err(|_| {
            retire(false);
            // Who sleeps may have armed it meanwhile.
            nic.port().wake();
        })?;
        with(&self.inner.state, |state| state.replace(self.number(), ring));
        // Who sleeps has armed the old ring.
        nic.port().wake();
        Ok(())
    }

    /// Destroys the completion queue. As with [`Vi::destroy`], its handlers do not run any more.
    ///
    /// # Errors
    /// [`VipReturn::ErrorResource`] while a VI uses it; [`VipReturn::InvalidParameter`] if it is
    /// destroyed already.
    #[doc(alias = "VipDestroyCQ")]
    pub fn destroy(&self) -> Result<()> {
        let nic = &self.inner.nic;
        let _changing = nic.lock_relaxed(&self.inner.changing, "a completion queue's resize");
        self.check(nic)?;
        if !lock(&self.inner.state).vis.is_empty() {
            return Err(VipReturn::ErrorResource.into());
        }
        self.inner.destroyed.store(true, Ordering::Release);
        nic.inner().notifier.forget_cq(&self.inner);
        nic.port().wake();
        nic.settle_notifier(|notifier| notifier.is_done_with_cq(&self.inner));
        Ok(nic.port().destroy_queue(self.number())?)
    }
}

impl Drop for CqInner {
    fn drop(&mut self) {
        let over = *self.destroyed.get_mut() || self.nic.is_closed();
        if !over && !std::thread::panicking() {
            // Nobody is left to tell; the port takes back what is left when it is closed.
            let _ = self.nic.port().destroy_queue(self.number);
        }
    }
}

impl PartialEq for Cq {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Cq {}
