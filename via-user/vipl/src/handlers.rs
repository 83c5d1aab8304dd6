//! The handler of asynchronous errors, and which threads are in it: whoever takes it away, or what it
//! is about, waits until it has returned.

use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use port::Wait;
use port::sync::lock;

use crate::objects::{ErrorDescriptor, ErrorHandler, Handlers, Nic, ViInner};

/// How long a call waits for handlers that run in other threads. One of them may wait for what the
/// caller holds, so the wait has a bound; in the computer's time, as handlers have.
const SETTLE: Duration = Duration::from_secs(1);

/// This thread is in a handler, until this goes, also by a panic.
struct Running<'a>(&'a Handlers);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let own = std::thread::current().id();
        let mut running = lock(&self.0.running);
        // A handler may lead to another one in the same thread: the last is the innermost.
        if let Some(at) = running.iter().rposition(|(thread, _)| *thread == own) {
            running.remove(at);
        }
    }
}

fn address(vi: &ViInner) -> usize {
    core::ptr::from_ref(vi).addr()
}

impl Handlers {
    fn enter(&self, vi: Option<&ViInner>) -> Running<'_> {
        lock(&self.running).push((std::thread::current().id(), vi.map(address)));
        Running(self)
    }

    /// Whether another thread is in a handler, about this VI or about anything.
    fn run_elsewhere(&self, vi: Option<&ViInner>) -> bool {
        let (own, vi) = (std::thread::current().id(), vi.map(address));
        let counts = |about: &Option<usize>| vi.is_none() || *about == vi;
        lock(&self.running).iter().any(|(thread, about)| *thread != own && counts(about))
    }
}

impl Nic {
    /// Sets the handler of asynchronous errors; None restores the default one, which writes a line
    /// ([`crate::set_error_sink`]). The one before is not running any more when this returns, unless
    /// it is the caller, or takes longer than a second.
    #[doc(alias = "VipErrorCallback")]
    pub fn error_callback(&self, handler: Option<ErrorHandler>) {
        let before = core::mem::replace(&mut *lock(&self.inner().handlers.handler), handler);
        self.settle_handlers(None);
        drop(before);
    }

    /// Reports an asynchronous error, unless the NIC is closed, or the VI that it is about destroyed.
    pub(crate) fn report(&self, error: &ErrorDescriptor) {
        self.report_or(error, default_handler);
    }

    /// Reports that the peer has disconnected, as [`Nic::report`]. That is how connections end: a
    /// program without a handler gets no line about it.
    pub(crate) fn report_disconnect(&self, error: &ErrorDescriptor) {
        self.report_or(error, |_| {});
    }

    fn report_or(&self, error: &ErrorDescriptor, default: impl FnOnce(&ErrorDescriptor)) {
        let handlers = &self.inner().handlers;
        // First: who closes the NIC, or destroys the VI, waits from then on.
        let _running = handlers.enter(error.vi.as_ref().map(|vi| vi.inner()));
        if self.is_closed() || error.vi.as_ref().is_some_and(|vi| vi.is_destroyed()) {
            return;
        }
        let handler = lock(&handlers.handler).clone();
        match handler {
            Some(handler) => handler(error),
            None => default(error),
        }
    }

    /// Waits until no other thread is in a handler, about this VI or about anything.
    pub(crate) fn settle_handlers(&self, vi: Option<&ViInner>) {
        self.settle("the end of an error handler", || !self.inner().handlers.run_elsewhere(vi));
    }

    /// Waits, not for ever, for something that other threads do.
    pub(crate) fn settle(&self, what: &'static str, is_settled: impl Fn() -> bool) {
        let end = Instant::now() + SETTLE;
        while !is_settled() && Instant::now() < end {
            self.relax(Wait::bounded(what, 0));
        }
    }
}

static SINK: Mutex<fn(&str)> = Mutex::new(standard_error);

fn standard_error(line: &str) {
    // Nobody is left to tell if this fails.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Sets where the default error handler writes its lines (standard error at first).
pub fn set_error_sink(sink: fn(&str)) {
    *SINK.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = sink;
}

/// The error handler of a NIC without a callback: writes one line.
pub(crate) fn default_handler(error: &ErrorDescriptor) {
    let sink = *SINK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    sink(&format!("vipl: {error}"));
}
