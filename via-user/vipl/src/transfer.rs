//! Posting descriptors, and taking them back when they are done.

use core::time::Duration;

use port::DmaMemory;
use port::Handle;
use port::Queue;
use port::sync::lock;
use port::work_queue::Head;

use crate::attributes::ViState;
use crate::descriptor::{Completion, CompletionError, Descriptor, Status};
use crate::error::{Result, VipReturn};
use crate::memory::Region;
use crate::objects::Vi;
use crate::waiting::WaitPolicy;

/// A wait without end (`VIP_INFINITE`).
#[doc(alias = "VIP_INFINITE")]
pub const INFINITE: Duration = Duration::MAX;

const fn nothing(code: VipReturn) -> Completion {
    Err(CompletionError { code, descriptor: None })
}

impl Vi {
    /// Posts a descriptor on the send queue. Unless the VI is connected it completes at once, as
    /// flushed. A short send of one segment travels with its doorbell, if the NIC takes that and
    /// has nothing else of this queue to do; the descriptor is in memory all the same.
    ///
    /// # Errors
    /// [`VipReturn::ErrorResource`] if the queue is full; [`VipReturn::ErrorNotSupported`] for an
    /// RDMA that the NIC does not have; [`VipReturn::InvalidParameter`] if the VI is destroyed or its
    /// NIC closed.
    #[doc(alias = "VipPostSend")]
    pub fn post_send(&self, descriptor: &Descriptor) -> Result<()> {
        self.post(Queue::Send, descriptor)
    }

    /// Sends a message from memory that need not be registered, and without a descriptor, if the NIC can
    /// do that during the call: true, and the memory may be used again. Nothing completes; who waits at
    /// the other end finds a message as any other. False: nothing has happened, and a descriptor does
    /// it. For layers above that copy into registered memory otherwise; VIPL has no such call.
    #[must_use]
    #[inline]
    pub fn send_now(&self, data: &[u8], immediate: Option<u32>) -> bool {
        self.side(Queue::Send).lock().send_now(data, immediate)
    }

    /// Posts a descriptor on the receive queue. An Idle VI keeps it for its next connection, unless
    /// the card is absent, when it completes at once, as flushed.
    ///
    /// # Errors
    /// [`VipReturn::ErrorResource`] if the queue is full; [`VipReturn::InvalidParameter`] as for
    /// [`Vi::post_send`].
    #[doc(alias = "VipPostRecv")]
    pub fn post_recv(&self, descriptor: &Descriptor) -> Result<()> {
        self.post(Queue::Recv, descriptor)
    }

    fn post(&self, queue: Queue, descriptor: &Descriptor) -> Result<()> {
        loop {
            let mut work = self.side(queue).lock();
            if self.gives_to_nic(queue) {
                return Ok(work.post_slot(descriptor.slot(), &self.find())?);
            }
            drop(work);
            if self.is_destroyed() {
                return Err(VipReturn::InvalidParameter.into());
            }
            if self.post_flushed(queue, descriptor)? {
                return Ok(());
            }
        }
    }

    /// Whether the NIC gets what is posted on a queue, now or with the next connection. It stays so
    /// while the queue is locked.
    fn gives_to_nic(&self, queue: Queue) -> bool {
        match self.state() {
            ViState::Connected => true,
            ViState::Idle | ViState::ConnectPending => {
                queue == Queue::Recv && !self.nic().is_lost()
            }
            ViState::Error => false,
        }
    }

    /// Posts a descriptor that the NIC does not get. False if the state has changed, and it does.
    fn post_flushed(&self, queue: Queue, descriptor: &Descriptor) -> Result<bool> {
        let side = self.side(queue);
        // Done and reported in one step, for whoever counts what is not reported.
        let _reporting = lock(&side.reporting);
        let done = {
            let mut work = side.lock();
            if self.is_destroyed() || self.gives_to_nic(queue) {
                return Ok(false);
            }
            work.post_flushed(descriptor.slot())?
        };
        if done {
            self.inner().report_completions(queue, 1);
        }
        Ok(true)
    }

    fn find(&self) -> impl Fn(Handle) -> Option<(DmaMemory, bool)> {
        |handle| self.nic().find(self.tag(), handle)
    }

    /// Posts the descriptor that the program has written at a virtual address, in the memory that
    /// the handle names; it need not have a [`Descriptor`] for it.
    ///
    /// # Errors
    /// As [`Vi::post_send`] and [`Vi::post_recv`]; [`VipReturn::InvalidParameter`] if there is no
    /// room for a descriptor or it is not aligned to 64 bytes.
    pub fn post_at(&self, queue: Queue, address: u64, handle: u32) -> Result<()> {
        let handle = Handle(handle);
        let mut work = self.side(queue).lock();
        if self.state() == ViState::Connected {
            return Ok(work.post_finding(address, handle, 0, &self.find())?);
        }
        drop(work);
        let (memory, _) = self.find()(handle).ok_or(VipReturn::InvalidParameter)?;
        self.post(queue, &Region::new(memory, handle).descriptor_at(address)?)
    }

    /// Takes the oldest send descriptor if it is done.
    ///
    /// # Errors
    /// [`VipReturn::NotDone`]; [`VipReturn::DescriptorError`], without a descriptor if nothing is
    /// posted; [`VipReturn::InvalidParameter`] if the VI is destroyed or its NIC closed.
    #[doc(alias = "VipSendDone")]
    pub fn send_done(&self) -> Completion {
        self.done(Queue::Send)
    }

    /// Takes the oldest receive descriptor if it is done.
    ///
    /// # Errors
    /// As [`Vi::send_done`].
    #[doc(alias = "VipRecvDone")]
    pub fn recv_done(&self) -> Completion {
        self.done(Queue::Recv)
    }

    /// As [`Vi::send_done`] or [`Vi::recv_done`], by queue.
    ///
    /// # Errors
    /// As [`Vi::send_done`].
    pub fn done(&self, queue: Queue) -> Completion {
        if let Some(completion) = self.take(queue) {
            return completion;
        }
        self.nic().progress();
        self.poll(queue)
    }

    /// As [`Vi::done`], for a program whose NIC somebody else keeps going ([`Nic::progress`]): it
    /// handles no events itself, so it costs little.
    ///
    /// # Errors
    /// As [`Vi::send_done`].
    pub fn poll(&self, queue: Queue) -> Completion {
        self.take(queue).unwrap_or_else(|| {
            let gone = self.is_destroyed();
            nothing(if gone { VipReturn::InvalidParameter } else { VipReturn::NotDone })
        })
    }

    fn take(&self, queue: Queue) -> Option<Completion> {
        let head = self.side(queue).lock().take();
        match head {
            Head::NotDone => None,
            Head::Empty if self.is_destroyed() => None,
            Head::Empty => Some(nothing(VipReturn::DescriptorError)),
            // Its memory is not looked at any more: the NIC may have been closed by now.
            Head::Done((slot, status)) => {
                let descriptor = Descriptor::new(slot);
                Some(if Status(status).is_error() {
                    let code = VipReturn::DescriptorError;
                    Err(CompletionError { code, descriptor: Some(descriptor) })
                } else {
                    Ok(descriptor)
                })
            }
        }
    }

    /// Whether there is a descriptor that [`Vi::poll`] would take: for a layer above that looks often, and
    /// takes under a lock of its own.
    #[must_use]
    #[inline]
    pub fn is_done(&self, queue: Queue) -> bool {
        self.side(queue).lock().is_done()
    }

    /// Takes the oldest descriptor if there is one and it is done.
    pub(crate) fn take_done(&self, queue: Queue) -> Option<Completion> {
        let nothing_there = |e: &CompletionError| e.descriptor.is_none();
        self.take(queue).filter(|taken| !taken.as_ref().is_err_and(nothing_there))
    }

    /// Waits for the oldest send descriptor.
    ///
    /// # Errors
    /// [`VipReturn::Timeout`]; otherwise as [`Vi::send_done`].
    #[doc(alias = "VipSendWait")]
    pub fn send_wait(&self, timeout: Duration) -> Completion {
        self.wait(Queue::Send, timeout, "a send on VI")
    }

    /// Waits for the oldest receive descriptor.
    ///
    /// # Errors
    /// As [`Vi::send_wait`].
    #[doc(alias = "VipRecvWait")]
    pub fn recv_wait(&self, timeout: Duration) -> Completion {
        self.wait(Queue::Recv, timeout, "a receive on VI")
    }

    fn wait(&self, queue: Queue, timeout: Duration, what: &'static str) -> Completion {
        let nic = self.nic();
        let mut policy = WaitPolicy::new(nic, timeout, what, self.number().into());
        loop {
            let completion = self.done(queue);
            if !matches!(&completion, Err(e) if e.code == VipReturn::NotDone) {
                return completion;
            }
            if policy.is_over(nic) {
                return nothing(VipReturn::Timeout);
            }
            policy.pause(nic, || self.arm(queue));
        }
    }
}
