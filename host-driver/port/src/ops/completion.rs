//! Completion queues.

use core::fmt::Debug;
use std::sync::Arc;

use crate::attributes::Completed;
use crate::error::{Error, Result};

/// A completion queue of a port. One reader at a time.
pub trait CompletionQueue: Debug + Send + Sync {
    /// Its number, for [`crate::ViSettings`].
    fn number(&self) -> u16;

    /// Takes the next record.
    fn poll(&self) -> Option<Completed>;

    /// Has the next record, or one that is there and was not polled, wake sleepers
    /// ([`crate::WaitOps::sleep`]), once.
    fn arm(&self);

    /// While a queue is retired, because its number is about to get another ring
    /// ([`CompletionOps::resize_queue`]), the reader's progress is not reported to the device.
    fn retire(&self, retired: bool);
}

/// Entries of a queue that only wakes. What it cannot take a device puts off.
const WAKE_ENTRIES: u32 = 64;

/// Completion queues of a port. A port without any refuses with [`Error::NotSupported`]; VIPL then
/// polls descriptors.
pub trait CompletionOps {
    /// Creates a completion queue for at least `entries` records.
    ///
    /// # Errors
    /// None left, or too many entries.
    fn create_queue(&self, entries: u32) -> Result<Arc<dyn CompletionQueue>> {
        let _ = entries;
        Err(Error::NotSupported { what: "completion queue" })
    }

    /// Creates a completion queue whose records nobody asks for: armed, it wakes sleepers, who then look
    /// at their descriptors. A port for which that is cheaper has one of its own kind.
    ///
    /// # Errors
    /// None left.
    fn create_wake_queue(&self) -> Result<Arc<dyn CompletionQueue>> {
        self.create_queue(WAKE_ENTRIES)
    }

    /// Enlarges a completion queue to at least `entries` records and returns its new reader; the
    /// number stays. The old reader finds what came before. Records of what completes meanwhile may
    /// be lost: the caller looks at the statuses afterwards.
    ///
    /// # Errors
    /// A number that is not this port's, too many entries, no memory: nothing has changed then. A
    /// failed command, after which the queue reports nothing any more.
    fn resize_queue(&self, queue: u16, entries: u32) -> Result<Arc<dyn CompletionQueue>> {
        let _ = entries;
        Err(Error::NoSuch { what: "completion queue", index: queue.into() })
    }

    /// Destroys a completion queue, which no VI may use.
    ///
    /// # Errors
    /// A number that is not this port's.
    fn destroy_queue(&self, queue: u16) -> Result<()> {
        Err(Error::NoSuch { what: "completion queue", index: queue.into() })
    }
}
