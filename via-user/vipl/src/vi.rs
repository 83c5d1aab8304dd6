//! VIs: create, destroy, query; how they stop.
//!
//! ```text
//!            connect, accept                       done
//!   Idle ---------------------> ConnectPending ----------> Connected
//!    ^  ^                            |                        |
//!    |  `---- rejected, timed out ---'                        | the NIC stopped it (error, refusal, FIN, dead peer)
//!    `------------------ disconnect ---- Error <--------------'
//! ```
//! Posting looks at the state under the queue's lock, and a state is changed under the locks of
//! both queues: whatever was posted to the NIC was posted before a stop or a disconnect empties its
//! queues.

mod create;
mod retire;

use core::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use port::Handle;
use port::Queue;
use port::Wait;
use port::desc::status;
use port::lock::Guard;
use port::sync::lock;
use port::work_queue::WorkQueue;
use port::{StopReason, ViStopped};

use crate::attributes::{Ptag, ViAttributes, ViQuery, ViState};
use crate::descriptor::{Descriptor, Status};
use crate::error::{ErrorCode, ResourceCode, Result, VipReturn};
use crate::objects::{Cq, ErrorDescriptor, Nic, Peering, Side, Vi, ViInner};

/// Bound of what sets a connection up and gives up: longer than all its steps.
const ABANDON_NS: u64 = 1_000_000_000;

/// State of a VI that was destroyed, or whose NIC was closed.
const GONE: u8 = 4;

impl Side {
    /// Takes the lock of the work queue.
    pub(crate) fn lock(&self) -> Guard<'static, WorkQueue> {
        self.queue.lock()
    }

    /// Has the next completion wake sleepers. False if it cannot.
    fn arm(&self, nic: &Nic) -> bool {
        match &self.cq {
            Some(cq) => cq.arm(),
            None => self.event_queue.is_some() && nic.arm_own_queue(),
        }
    }
}

impl core::fmt::Debug for Vi {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Vi({}, {:?})", self.inner.number, self.state())
    }
}

impl PartialEq for Vi {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Vi {}

impl ViInner {
    /// Makes completions known that the NIC did not report and will not: after its queues were
    /// emptied.
    fn settle(&self, queue: Queue) {
        let side = &self.sides[queue as usize];
        let Some(cq) = &side.cq else { return };
        let _reporting = lock(&side.reporting);
        cq.drain();
        let completed = self.done_count(queue);
        let reported = self.reported[queue as usize].load(Ordering::Acquire);
        if let Ok(count @ 1..) = u32::try_from(completed.saturating_sub(reported)) {
            self.report_completions(queue, count);
        }
    }

    /// Descriptors of a queue that were done since the VI was created.
    pub(crate) fn done_count(&self, queue: Queue) -> u64 {
        self.sides[queue as usize].lock().done()
    }

    /// Number of the completion queue of a queue.
    pub(crate) fn queue_number(&self, queue: Queue) -> Option<u16> {
        self.sides[queue as usize].cq.as_ref().map(Cq::number)
    }

    /// Rights in a registration have changed, or it is no more.
    pub(crate) fn forget(&self, handle: Handle) {
        for side in &self.sides {
            side.lock().forget(handle);
        }
    }

    /// Whether a descriptor in a registration is posted and not done.
    pub(crate) fn is_posted_in(&self, handle: Handle) -> bool {
        self.sides.iter().any(|side| side.lock().is_posted_in(handle))
    }

    /// The VI is not to be used any more, and what is posted not to be looked at.
    fn tear_down(&self) {
        let mut queues = self.sides.each_ref().map(|side| side.lock());
        for work in &mut queues {
            work.set_open(false);
            work.abandon();
        }
        self.state.store(GONE, Ordering::Release);
        drop(queues);
        // A program in C that still has the handle is refused.
        self.slot.set_handle(None);
    }

    /// Puts completions that software made into the completion queue.
    pub(crate) fn report_completions(&self, queue: Queue, count: u32) {
        if let Some(cq) = &self.sides[queue as usize].cq {
            cq.push(self.number, queue, count);
        }
        // Somebody may sleep for them.
        self.nic.port().wake();
    }
}

impl Vi {
    pub(crate) const fn from_inner(inner: Arc<ViInner>) -> Self {
        Self { inner }
    }

    pub(crate) fn nic(&self) -> &Nic {
        &self.inner.nic
    }

    /// Has the next completion of a queue wake sleepers. False if it cannot.
    pub(crate) fn arm(&self, queue: Queue) -> bool {
        self.side(queue).arm(self.nic())
    }

    pub(crate) fn side(&self, queue: Queue) -> &Side {
        &self.inner.sides[queue as usize]
    }

    pub(crate) const fn inner_arc(&self) -> &Arc<ViInner> {
        &self.inner
    }

    pub(crate) fn inner(&self) -> &ViInner {
        &self.inner
    }

    /// The VI's number on its NIC.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.inner.number
    }

    /// A number of the program's own, which the VI carries; 0 at first.
    #[must_use]
    pub fn user_data(&self) -> u64 {
        self.inner.user_data.load(Ordering::Acquire)
    }

    /// Sets the number of [`Vi::user_data`].
    pub fn set_user_data(&self, value: u64) {
        self.inner.user_data.store(value, Ordering::Release);
    }

    /// The VI's attributes.
    #[must_use]
    pub fn attributes(&self) -> ViAttributes {
        *lock(&self.inner.attributes)
    }

    pub(crate) fn tag(&self) -> Ptag {
        Ptag(self.inner.tag.load(Ordering::Relaxed))
    }

    /// Whether the VI is destroyed, or its NIC closed.
    pub(crate) fn is_destroyed(&self) -> bool {
        self.inner.state.load(Ordering::Acquire) == GONE
    }

    /// Fails if the VI is destroyed, its NIC closed, or not this one.
    pub(crate) fn check(&self, nic: &Nic) -> Result<()> {
        let good = self.nic().is(nic) && !self.is_destroyed();
        if good { Ok(()) } else { Err(VipReturn::InvalidParameter.into()) }
    }

    /// The VI's state, as far as events were handled; [`Vi::query`] handles them first. A VI that was
    /// destroyed or whose NIC was closed is in `Error`, and every call fails with
    /// [`VipReturn::InvalidParameter`].
    #[must_use]
    pub fn state(&self) -> ViState {
        match self.inner.state.load(Ordering::Acquire) {
            0 => ViState::Idle,
            1 => ViState::Connected,
            2 => ViState::ConnectPending,
            _ => ViState::Error,
        }
    }

    /// State, attributes, and whether the queues are empty.
    #[must_use]
    #[doc(alias = "VipQueryVi")]
    pub fn query(&self) -> ViQuery {
        self.nic().progress();
        ViQuery {
            state: self.state(),
            attributes: self.attributes(),
            send_queue_empty: self.side(Queue::Send).lock().is_empty(),
            recv_queue_empty: self.side(Queue::Recv).lock().is_empty(),
        }
    }

    /// Number of its queue-pair slot, see [`crate::queue_pair`]; no other VI has it while this one
    /// exists.
    #[must_use]
    pub fn slot(&self) -> usize {
        self.inner.slot.number()
    }

    /// Sets the handle by which a program in C names the VI.
    pub fn set_handle(&self, handle: usize) {
        self.inner.slot.set_handle(Some(handle));
    }

    fn queues(&self) -> [Guard<'_, WorkQueue>; 2] {
        [self.side(Queue::Send).lock(), self.side(Queue::Recv).lock()]
    }

    /// Changes the state, unless it is another than `from`. Nothing is being posted at that moment.
    pub(crate) fn change(&self, from: ViState, to: ViState) -> Result<()> {
        let mut queues = self.queues();
        if self.is_destroyed() {
            return Err(VipReturn::InvalidParameter.into());
        }
        if self.state() != from {
            return Err(VipReturn::InvalidState.into());
        }
        queues.iter_mut().for_each(|work| work.set_open(to == ViState::Connected));
        self.inner.state.store(to as u8, Ordering::Release);
        Ok(())
    }

    /// Nobody else connects the VI from here on, until it is connected or Idle again.
    pub(crate) fn begin_connect(&self) -> Result<()> {
        self.change(ViState::Idle, ViState::ConnectPending)?;
        self.inner.abandoned.store(false, Ordering::Release);
        Ok(())
    }

    /// Whether whoever connects the VI is to give up: it is to be disconnected.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.inner.abandoned.load(Ordering::Acquire)
    }

    /// The connection is there, on both sides; [`Vi::handle_early_stop`] next, without locks.
    pub(crate) fn connected(&self) -> Result<()> {
        // Whoever notes an early stop sees the state of before, or the stop is not early.
        let _early_stop = lock(&self.inner.early_stop);
        self.change(ViState::ConnectPending, ViState::Connected)
    }

    /// Heeds what has happened to the connection before it was known here. The program's handler may
    /// be called.
    pub(crate) fn handle_early_stop(&self) {
        let stopped = lock(&self.inner.early_stop).take();
        if let Some(stopped) = stopped {
            self.stopped(stopped);
        }
        // It may have gone while the VI was none of those that are notified.
        if self.nic().is_lost() {
            self.card_lost();
        }
    }

    /// The connection did not come about. `touched`: the NIC's VI was connected for a while, so it
    /// forgot its queues, and what is posted must be posted again.
    pub(crate) fn connect_failed(&self, touched: bool) -> Result<()> {
        let reset = if touched {
            self.anew(|| Ok(self.nic().port().reset_vi(self.number())?))
        } else {
            Ok(())
        };
        // Also if the NIC failed: the VI is not being connected any more.
        self.change(ViState::ConnectPending, ViState::Idle)?;
        if self.nic().is_lost() {
            self.card_lost();
        }
        reset
    }

    /// Does something after which the NIC has forgotten the VI's queues, and posts again what the
    /// NIC had of the receive queue. On the send queue there is nothing: the VI is not connected.
    pub(crate) fn anew(&self, act: impl FnOnce() -> Result<()>) -> Result<()> {
        self.side(Queue::Recv).lock().hold();
        let result = act();
        if result.is_ok() {
            lock(&self.inner.early_stop).take();
            self.inner.settle(Queue::Recv);
        }
        self.side(Queue::Recv).lock().repost();
        result
    }

    /// The card is absent: what is posted is flushed, and the VI is of no use any more. A connection
    /// that is being set up fails first.
    pub(crate) fn card_lost(&self) {
        let teardown = self.nic().lock_relaxed(&self.inner.teardown, "a VI's teardown");
        if [ViState::Idle, ViState::Connected]
            .iter()
            .any(|from| self.change(*from, ViState::Error).is_ok())
        {
            self.flush([status::DESC_FLUSHED_ERROR; 2]);
        }
        self.nic().port().wake();
        drop(teardown);
    }

    /// Completes what the NIC has not, and makes it known. The NIC's queues are empty.
    /// Gives the first descriptor of each queue, and its status.
    fn flush(&self, first: [u32; 2]) -> [Option<(Descriptor, Status)>; 2] {
        [Queue::Send, Queue::Recv].map(|queue| {
            let flushed = self.side(queue).lock().flush(first[queue as usize]);
            self.inner.settle(queue);
            flushed.map(|(slot, status)| (Descriptor::new(slot), Status(status)))
        })
    }

    /// The NIC stopped the VI.
    pub(crate) fn stopped(&self, stopped: ViStopped) {
        let nic = self.nic();
        {
            let mut early_stop = lock(&self.inner.early_stop);
            if self.state() == ViState::ConnectPending {
                *early_stop = Some(stopped);
                return;
            }
        }
        let teardown = nic.lock_relaxed(&self.inner.teardown, "a VI's teardown");
        // An event of an earlier connection finds a VI that is not stopped.
        let is_stopped = || nic.port().vi_stopped(self.number()).unwrap_or(true);
        if self.state() != ViState::Connected || !is_stopped() {
            return;
        }
        if self.change(ViState::Connected, ViState::Error).is_err() {
            return;
        }
        // The fence: every status that the NIC wrote is here before the others are flushed. If even
        // this fails, the NIC no longer exists and writes nothing any more.
        let _ = nic.port().reset_vi(self.number());
        let mut first = [status::DESC_FLUSHED_ERROR; 2];
        first[stopped.queue as usize] = stopped.status;
        let flushed = self.flush(first);
        nic.port().wake();
        drop(teardown);
        let (code, resource) = match stopped.reason {
            StopReason::Disconnected | StopReason::ConnectionLost => {
                (ErrorCode::ConnectionLost, ResourceCode::Vi)
            }
            StopReason::ReceiveQueueEmpty => (ErrorCode::ReceiveQueueEmpty, ResourceCode::Vi),
            StopReason::DescriptorUnreachable => {
                (ErrorCode::PostDescriptor, ResourceCode::Descriptor)
            }
            // The peer did what it may not; on the send queue it is the descriptor's own status.
            StopReason::RdmaWriteRefused if stopped.queue == Queue::Recv => {
                (ErrorCode::RdmaWriteProtection, ResourceCode::Vi)
            }
            StopReason::RdmaReadRefused if stopped.queue == Queue::Recv => {
                (ErrorCode::RdmaReadProtection, ResourceCode::Vi)
            }
            // The descriptor's own status says what happened.
            StopReason::DescriptorError
            | StopReason::RdmaWriteRefused
            | StopReason::RdmaReadRefused => return,
        };
        let [send, recv] = flushed;
        let first = if stopped.queue == Queue::Send { send } else { recv };
        let first = first.filter(|_| resource == ResourceCode::Descriptor);
        let operation = first.as_ref().map_or(0, |(_, status)| status.operation());
        let descriptor = first.map(|(descriptor, _)| descriptor);
        let vi = Some(self.clone());
        let error = ErrorDescriptor { vi, descriptor, operation, resource, code };
        match stopped.reason {
            StopReason::Disconnected => nic.report_disconnect(&error),
            _ => nic.report(&error),
        }
    }

    /// Ends the setting up of a connection, in whatever thread, and waits until it has ended.
    fn abandon(&self) -> Result<()> {
        let nic = self.nic();
        let end = nic.port().now_ns().saturating_add(ABANDON_NS);
        let wait = Wait::bounded("the end of a connection's set-up, VI", self.number().into());
        while self.state() == ViState::ConnectPending && nic.port().now_ns() < end {
            // Another thread may begin anew between two looks.
            self.inner.abandoned.store(true, Ordering::Release);
            self.cancel_peer()?;
            if self.state() == ViState::ConnectPending {
                nic.port().wake();
                nic.relax(wait);
            }
        }
        Ok(())
    }

    /// Disconnects; what is posted completes as flushed, in order, and is still to be taken. The VI
    /// is then Idle. A connection that is being set up is given up; the call that does so in another
    /// thread fails with [`VipReturn::InvalidState`]. An Idle VI stays as it is, but for what is
    /// posted.
    ///
    /// # Errors
    /// [`VipReturn::ErrorResource`] if the NIC does not answer; [`VipReturn::InvalidParameter`] if
    /// the VI is destroyed; [`VipReturn::InvalidState`] if another thread connects it again and
    /// again, for a second.
    #[doc(alias = "VipDisconnect")]
    pub fn disconnect(&self) -> Result<()> {
        let nic = self.nic();
        self.check(nic)?;
        self.abandon()?;
        self.forget_peer();
        let _teardown = nic.lock_relaxed(&self.inner.teardown, "a VI's teardown");
        let drained = self.queues().iter().all(|queue| queue.not_done() == 0);
        match self.state() {
            ViState::ConnectPending => return Err(VipReturn::InvalidState.into()),
            ViState::Idle if drained => return Ok(()),
            // The NIC's side was taken down when the VI stopped.
            ViState::Error if drained => return self.change(ViState::Error, ViState::Idle),
            // The NIC failed in an earlier attempt.
            ViState::Error => {}
            // Nothing is posted to the NIC from here on.
            state @ (ViState::Idle | ViState::Connected) => self.change(state, ViState::Error)?,
        }
        nic.port().reset_vi(self.number())?;
        self.flush([status::DESC_FLUSHED_ERROR; 2]);
        nic.port().wake();
        self.change(ViState::Error, ViState::Idle)
    }

    /// Destroys the VI. Handlers that are about it do not run any more when this returns, but for the
    /// caller's own, and one that takes longer than a second.
    ///
    /// # Errors
    /// [`VipReturn::InvalidState`] unless Idle; [`VipReturn::ErrorResource`] if descriptors are
    /// still to be taken; [`VipReturn::InvalidParameter`] if it is destroyed already.
    #[doc(alias = "VipDestroyVi")]
    pub fn destroy(&self) -> Result<()> {
        self.check(self.nic())?;
        if self.state() != ViState::Idle {
            return Err(VipReturn::InvalidState.into());
        }
        if self.queues().iter().any(|queue| !queue.is_empty()) {
            return Err(VipReturn::ErrorResource.into());
        }
        let destroyed = lock(&self.nic().inner().vis).remove(&self.number());
        if destroyed.is_none() {
            return Err(VipReturn::InvalidParameter.into());
        }
        self.inner.tear_down();
        self.inner.forget_notify();
        let nic = self.nic();
        nic.settle_notifier(|notifier| notifier.is_done_with_vi(&self.inner));
        nic.settle_handlers(Some(&self.inner));
        self.inner.release()
    }

    /// The NIC is being closed. A stop of the VI that is under way in another thread ends first, and
    /// nobody looks at what is posted afterwards: it is the program's again.
    pub(crate) fn close(&self) {
        let _teardown = self.nic().lock_relaxed(&self.inner.teardown, "a VI's teardown");
        self.inner.tear_down();
    }
}

impl ViInner {
    /// Drops what handlers wait for, and ends waits.
    fn forget_notify(&self) {
        self.nic.inner().notifier.forget_vi(self);
        self.nic.port().wake();
    }

    fn release(&self) -> Result<()> {
        for cq in self.sides.iter().filter_map(|side| side.cq.as_ref()) {
            cq.detach(self.number);
        }
        self.nic.release_tag(lock(&self.attributes).ptag);
        Ok(self.nic.port().destroy_vi(self.number)?)
    }
}

impl Drop for ViInner {
    fn drop(&mut self) {
        let own = |weak: &Weak<Self>| core::ptr::eq(weak.as_ptr(), self);
        let mut vis = lock(&self.nic.inner().vis);
        if vis.get(&self.number).is_some_and(own) {
            vis.remove(&self.number);
            drop(vis);
            self.forget_notify();
            if !std::thread::panicking() {
                if let Some(request) = lock(&self.peering).as_ref().and_then(Peering::request) {
                    self.nic.port().peer_cancel(request);
                }
                // Nobody is left to tell; the port takes back what is left when it is closed.
                let _ = self.nic.port().reset_vi(self.number);
                let _ = self.release();
            }
        }
    }
}
