//! Notify: handlers that the library calls when something is done.
//!
//! One thread for each open NIC calls them. It runs while there are requests.

use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use port::Queue;
use port::sync::lock;

use crate::descriptor::Completion;
use crate::error::{Result, VipReturn};
use crate::objects::{
    Cq, CqEntry, CqInner, Nic, NicInner, Notifier, NotifierState, Request, Vi, ViInner,
};
use crate::waiting::WaitPolicy;

/// Names what a request waits for: an address that is used as a number, and a queue.
type Key = (usize, usize);

impl Request {
    fn key(&self) -> Key {
        match self {
            Self::Work { vi, queue, .. } => (vi.as_ptr().addr(), *queue as usize),
            Self::Entry { cq, .. } => (cq.as_ptr().addr(), 2),
        }
    }

    /// What it waits for; None if that no longer exists.
    fn source(&self) -> Option<Source> {
        match self {
            Self::Work { vi, queue, .. } => {
                Some(Source::Work(Vi::from_inner(vi.upgrade()?), *queue))
            }
            Self::Entry { cq, .. } => Some(Source::Entry(Cq::from_inner(cq.upgrade()?))),
        }
    }
}

enum Source {
    Work(Vi, Queue),
    Entry(Cq),
}

impl Source {
    /// Takes what the source has, if it has something.
    fn take(&self) -> Option<Taken> {
        match self {
            Self::Work(vi, queue) => vi.take_done(*queue).map(Taken::Work),
            Self::Entry(cq) => cq.take().map(Taken::Entry),
        }
    }

    fn arm(&self) -> bool {
        match self {
            Self::Work(vi, queue) => vi.arm(*queue),
            Self::Entry(cq) => cq.arm(),
        }
    }
}

enum Taken {
    Work(Completion),
    Entry(CqEntry),
}

impl NotifierState {
    /// Whether no other thread can be in a handler: this one is the thread, or that is in another
    /// process.
    fn is_alone(&self) -> bool {
        let own = std::thread::current().id();
        self.thread.is_some_and(|(id, thread)| thread == own || id != std::process::id())
    }
}

impl Notifier {
    /// Forgets the requests whose source has this address.
    fn forget(&self, address: usize) -> bool {
        let forgotten: Vec<Request> = {
            let mut state = lock(&self.state);
            state.requests.extract_if(.., |request| request.key().0 == address).collect()
        };
        // Handlers are dropped without the lock: they may hold anything.
        !forgotten.is_empty()
    }

    pub(crate) fn forget_vi(&self, vi: &ViInner) -> bool {
        self.forget(core::ptr::from_ref(vi).addr())
    }

    pub(crate) fn forget_cq(&self, cq: &CqInner) -> bool {
        self.forget(core::ptr::from_ref(cq).addr())
    }

    pub(crate) fn is_done_with_vi(&self, vi: &ViInner) -> bool {
        self.is_done_with(core::ptr::from_ref(vi).addr())
    }

    pub(crate) fn is_done_with_cq(&self, cq: &CqInner) -> bool {
        self.is_done_with(core::ptr::from_ref(cq).addr())
    }

    /// Whether the thread serves nobody any more, or it is this one; for whoever closes the NIC.
    pub(crate) fn is_at_rest(&self) -> bool {
        let state = lock(&self.state);
        !state.serving || state.is_alone()
    }

    /// Whether no handler of this source runs, unless in this thread.
    fn is_done_with(&self, address: usize) -> bool {
        let state = lock(&self.state);
        state.calling != Some(address) || state.is_alone()
    }

    /// Forgets everything, and ends the thread.
    pub(crate) fn stop(&self) {
        let forgotten = {
            let mut state = lock(&self.state);
            state.stopped = true;
            core::mem::take(&mut state.requests)
        };
        drop(forgotten);
    }

    /// Whether nothing is left to do; then the thread has stopped serving.
    fn rest(&self) -> bool {
        let mut state = lock(&self.state);
        let rests = state.stopped || state.requests.is_empty();
        state.serving &= !rests;
        rests
    }

    /// The sources, each once, in the order of their oldest requests.
    fn sources(&self) -> Vec<(Key, Option<Source>)> {
        let state = lock(&self.state);
        let mut sources: Vec<(Key, Option<Source>)> = Vec::new();
        for request in &state.requests {
            let key = request.key();
            if sources.iter().all(|(known, _)| *known != key) {
                sources.push((key, request.source()));
            }
        }
        sources
    }

    /// The oldest request of a source, whose handler is called next.
    fn remove(&self, key: Key) -> Option<Request> {
        let mut state = lock(&self.state);
        let oldest = state.requests.iter().position(|request| request.key() == key)?;
        state.calling = Some(key.0);
        Some(state.requests.remove(oldest))
    }

    /// Calls the handlers of what is done. False if nothing was.
    fn pass(&self) -> bool {
        let mut any = false;
        for (key, source) in self.sources() {
            let Some(source) = source else {
                self.forget(key.0);
                continue;
            };
            while let Some(taken) = self.waits(key).then(|| source.take()).flatten() {
                any = true;
                self.call(key, taken);
            }
        }
        any
    }

    fn waits(&self, key: Key) -> bool {
        lock(&self.state).requests.iter().any(|request| request.key() == key)
    }

    fn call(&self, key: Key, taken: Taken) {
        let Some(request) = self.remove(key) else { return };
        // The panic hook has printed the panic; the other requests are not to suffer.
        let _ = catch_unwind(AssertUnwindSafe(|| match (request, taken) {
            (Request::Work { handler, .. }, Taken::Work(completion)) => handler(completion),
            (Request::Entry { handler, .. }, Taken::Entry(entry)) => handler(entry),
            _ => unreachable!("a key names one kind of source"),
        }));
        lock(&self.state).calling = None;
    }

    /// Serves until no request is left.
    fn serve(&self, nic: &Weak<NicInner>) {
        let Some(nic) = nic.upgrade().map(Nic::from_inner) else {
            lock(&self.state).serving = false;
            return;
        };
        let policy = || WaitPolicy::new(&nic, Duration::MAX, "a completion to notify of", 0);
        let mut waiting = policy();
        loop {
            nic.progress();
            let any = self.pass();
            if self.rest() {
                return;
            }
            if any {
                waiting = policy();
            } else {
                waiting.pause(&nic, || {
                    let sources = self.sources();
                    sources.iter().filter_map(|(_, source)| source.as_ref()).all(Source::arm)
                });
            }
        }
    }

    /// The thread.
    fn run(&self, nic: &Weak<NicInner>) {
        let own = (std::process::id(), std::thread::current().id());
        lock(&self.state).thread = Some(own);
        self.serve(nic);
    }
}

impl Nic {
    /// Waits, not for ever, for the thread, in something that it does.
    pub(crate) fn settle_notifier(&self, is_settled: impl Fn(&Notifier) -> bool) {
        self.settle("the end of a notification", || is_settled(&self.inner().notifier));
    }

    fn notify(&self, request: Request) -> Result<()> {
        self.check_open()?;
        let notifier = &self.inner().notifier;
        let mut state = lock(&notifier.state);
        state.requests.push(request);
        if !state.serving {
            let (shared, nic) = (Arc::clone(notifier), Arc::downgrade(self.inner_arc()));
            let thread = self.port().spawn("vipl notify", Box::new(move || shared.run(&nic)));
            if let Err(error) = thread {
                let request = state.requests.pop();
                drop(state);
                drop(request);
                return Err(error.into());
            }
            state.serving = true;
        }
        drop(state);
        // The thread may sleep for other requests.
        self.port().wake();
        Ok(())
    }
}

impl Vi {
    /// Has `handler` called with the next send descriptor that is done and that no earlier request
    /// takes, good or not: once, by a thread of the library, after the descriptor was taken from the
    /// queue. Requests of a queue are served in their order. A handler may call the library, and
    /// ask again; while it runs, no other handler of the NIC does. A program that also takes
    /// descriptors of this queue itself may take what a handler waits for.
    ///
    /// A request whose VI is destroyed or whose NIC is closed first is dropped, handler and all. In
    /// a seeded simulation the thread runs only while somebody lets time pass.
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if the queue has a completion queue (ask that one), or if the
    /// VI is destroyed; [`VipReturn::ErrorResource`] if there is no thread to be had.
    #[doc(alias = "VipSendNotify")]
    pub fn send_notify(&self, handler: impl FnOnce(Completion) + Send + 'static) -> Result<()> {
        self.notify(Queue::Send, Box::new(handler))
    }

    /// The same for a receive descriptor.
    ///
    /// # Errors
    /// As [`Vi::send_notify`].
    #[doc(alias = "VipRecvNotify")]
    pub fn recv_notify(&self, handler: impl FnOnce(Completion) + Send + 'static) -> Result<()> {
        self.notify(Queue::Recv, Box::new(handler))
    }

    fn notify(&self, queue: Queue, handler: Box<dyn FnOnce(Completion) + Send>) -> Result<()> {
        self.check(self.nic())?;
        if self.side(queue).cq.is_some() {
            return Err(VipReturn::InvalidParameter.into());
        }
        let vi = Arc::downgrade(self.inner_arc());
        self.nic().notify(Request::Work { vi, queue, handler })
    }
}

impl Cq {
    /// Has `handler` called with the next entry that no earlier request takes; its descriptor is
    /// still to be taken from the VI. Otherwise as [`Vi::send_notify`].
    ///
    /// # Errors
    /// [`VipReturn::InvalidParameter`] if the queue is destroyed; [`VipReturn::ErrorResource`] if
    /// there is no thread to be had.
    #[doc(alias = "VipCQNotify")]
    pub fn notify(&self, handler: impl FnOnce(CqEntry) + Send + 'static) -> Result<()> {
        self.check(self.nic())?;
        let cq = Arc::downgrade(self.inner_arc());
        self.nic().notify(Request::Entry { cq, handler: Box::new(handler) })
    }
}
