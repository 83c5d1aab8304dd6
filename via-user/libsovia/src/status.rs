//! What this process shows of its connections ([`sovia::preload::status`]). Without a place for that it
//! shows nothing, and goes on.

use std::sync::Arc;
use std::time::Duration;

use port::trust;
use sovia::preload::status::{self, Status};

use crate::log;
use crate::per_process::PerProcess;

/// That of this process; None if it could not be made, which is said once.
static STATUS: PerProcess<Option<Arc<Status>>> = PerProcess::new();
/// How long a thread waits for another one that makes it.
const BOUND: Duration = Duration::from_secs(1);

/// This process's; made if there is none.
pub(crate) fn get() -> Option<Arc<Status>> {
    // It can make no files any more.
    if trust::is_confined() {
        return STATUS.current().flatten();
    }
    STATUS.get(BOUND, (), || Ok(open())).unwrap_or(None)
}

fn open() -> Option<Arc<Status>> {
    match Status::open(log::settings().run) {
        Ok(status) => Some(Arc::new(status)),
        Err(error) => {
            let folder = status::folder();
            let folder = folder.display();
            log::verbose(format_args!(
                "{folder}: {error}: `viaduct top` does not show this process"
            ));
            None
        }
    }
}

/// Counts a connection that is the kernel's alone.
pub(crate) fn count_stay(why: &str) {
    if let Some(status) = get() {
        status.count_stay(why);
    }
}

/// The device is open.
pub(crate) fn set_device(nic: &str) {
    if let Some(status) = get() {
        status.set_device(&log::settings().device, nic);
    }
}

/// The process ends.
pub(crate) fn end() {
    if !trust::is_confined()
        && let Some(status) = STATUS.current().flatten()
    {
        status.end();
    }
}
