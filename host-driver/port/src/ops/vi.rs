//! VIs and their doorbells.

use nic_regs::doorbell::Queue;

use crate::attributes::{PortEvent, ViSettings};
use crate::doorbell::Doorbell;
use crate::error::Result;

/// VIs of a port.
pub trait ViOps {
    /// Creates a VI, Idle; returns its number.
    ///
    /// # Errors
    /// None left, or bad attributes.
    fn create_vi(&self, settings: ViSettings) -> Result<u16>;

    /// Changes the attributes of an Idle VI; its number stays. Its queues are empty afterwards.
    ///
    /// # Errors
    /// Not Idle, not this port's, or bad attributes; after a failed command the VI may no longer
    /// exist.
    fn set_vi(&self, vi: u16, settings: ViSettings) -> Result<()>;

    /// Destroys an Idle VI.
    ///
    /// # Errors
    /// Not Idle, or not this port's.
    fn destroy_vi(&self, vi: u16) -> Result<()>;

    /// Disconnects a VI if it is connected and empties its queues. Afterwards no descriptor or
    /// buffer of it is touched, and no event of its old connection is reported.
    ///
    /// # Errors
    /// A VI that is not this port's.
    fn reset_vi(&self, vi: u16) -> Result<()>;

    /// Whether the port itself has stopped the VI.
    ///
    /// # Errors
    /// A VI that is not this port's.
    fn vi_stopped(&self, vi: u16) -> Result<bool>;

    /// The doorbell of one of a VI's queues.
    fn doorbell(&self, vi: u16, queue: Queue) -> Doorbell;

    /// The next event. Cheap if there is nothing to do.
    fn next_event(&self) -> Option<PortEvent>;
}
