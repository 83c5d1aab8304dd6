//! The traits of a port. [`ViPort`] is their sum, and what VIPL is opened on.
//!
//! Posting is not among them: VIPL posts to a [`crate::work_queue::WorkQueue`] itself, which rings
//! the [`crate::Doorbell`] of the queue. Everything here but the polls is off the fast path.
//!
//! Set-up is polled: nothing happens unless the program calls [`ViOps::next_event`] or a method
//! that ends in `_poll` now and then.

mod completion;
mod connection;
mod host;
mod memory;
mod vi;
mod wait;

pub use completion::{CompletionOps, CompletionQueue};
pub use connection::ConnectionOps;
pub use host::HostOps;
pub use memory::MemoryOps;
pub use vi::ViOps;
pub use wait::WaitOps;

use core::fmt::Debug;

use crate::attributes::PortAttributes;
use crate::error::Result;

/// A NIC as VIPL uses it: in hardware behind a driver, or in software.
pub trait ViPort:
    MemoryOps + ViOps + CompletionOps + ConnectionOps + HostOps + WaitOps + Debug + Send + Sync
{
    /// Limits and identity.
    fn attributes(&self) -> &PortAttributes;

    /// Counters by cause, each with its name, always in the same order. None: the port counts
    /// nothing.
    ///
    /// # Errors
    /// The device no longer exists, or does not answer.
    fn counters(&self) -> Result<Vec<(&'static str, u64)>> {
        Ok(Vec::new())
    }

    /// Whether the device works: `up`, or what is the matter with it.
    ///
    /// # Errors
    /// The device no longer exists, or does not answer.
    fn state(&self) -> Result<&'static str> {
        Ok("up")
    }

    /// Releases everything that the port's user still holds.
    fn close(&self);
}
