//! What this process has opened, under one lock, which no child after fork finds taken.
//!
//! Whoever opens a device holds the lock throughout, so that two openers do not bring the same device
//! up twice, and do not become two nodes of a network.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, Once};

use port::sync::lock;
use port::{fork, process};

use crate::{hardware, shm, udp};

/// By kinds of devices.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) hardware: hardware::Opened,
    pub(crate) vias: Vec<shm::OpenedVia>,
    /// Not those of VIPL: VIA's peers have the same number of domain, so a node is VIPL's or it is not.
    pub(crate) domains: Vec<shm::OpenedDomain>,
    pub(crate) nets: Vec<udp::OpenedNet>,
}

type Held = MutexGuard<'static, Opened>;

static OPENED: Mutex<Opened> = Mutex::new(Opened {
    hardware: hardware::Opened::new(),
    vias: Vec::new(),
    domains: Vec::new(),
    nets: Vec::new(),
});

thread_local! {
    /// The lock, while this thread forks.
    static FORKING: Cell<Option<Held>> = const { Cell::new(None) };
}

/// Takes the lock.
pub(crate) fn opened() -> Held {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(|| {
        // Without memory for them, a child may stand still if its parent was opening a device.
        // The port's are first, since devices register descriptors while this lock is held.
        let _ = fork::register() && process::around_forks(before_fork, after_fork, after_fork);
    });
    lock(&OPENED)
}

extern "C" fn before_fork() {
    FORKING.set(Some(lock(&OPENED)));
}

extern "C" fn after_fork() {
    drop(FORKING.take());
}
