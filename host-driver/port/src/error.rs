//! Errors of ports: as many kinds as VIPL distinguishes.

use std::sync::Arc;

/// Result of a port's operations.
pub type Result<T> = core::result::Result<T, Error>;

/// The error of an implementation, with more detail than the kind.
pub type Source = Arc<dyn core::error::Error + Send + Sync>;

/// An error of a port.
#[expect(clippy::error_impl_error, reason = "the crate's one error type, see its Result")]
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// An argument is out of range.
    #[error("bad argument: {what} is {value:#x}")]
    BadArgument {
        /// Name of the argument.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// A range lies outside its memory.
    #[error("range {offset:#x}+{length:#x} lies outside device memory of {size:#x} bytes")]
    OutOfRange {
        /// First byte.
        offset: usize,
        /// Bytes.
        length: usize,
        /// Size of the memory.
        size: usize,
    },
    /// A number names no object of the caller.
    #[error("no such {what}: {index}")]
    NoSuch {
        /// Kind of object.
        what: &'static str,
        /// The number.
        index: u32,
    },
    /// All objects of a kind are in use.
    #[error("no free {what}: all {limit} are in use")]
    Exhausted {
        /// Kind of object.
        what: &'static str,
        /// How many there are.
        limit: usize,
    },
    /// Memory for the device could not be allocated.
    #[error("{bytes} bytes of device memory cannot be allocated")]
    OutOfMemory {
        /// Size asked for.
        bytes: usize,
    },
    /// The port lacks something that was asked of it.
    #[error("the device has no {what}")]
    NotSupported {
        /// What.
        what: &'static str,
    },
    /// An address that this port cannot reach.
    #[error(transparent)]
    NotReachable(Source),
    /// The peer of a connection no longer exists.
    #[error(transparent)]
    PeerDown(Source),
    /// The device, or what reaches it, failed.
    #[error(transparent)]
    Device(Source),
}

impl Error {
    /// An error of kind [`Error::Device`] with this cause.
    #[must_use]
    pub fn device(source: impl core::error::Error + Send + Sync + 'static) -> Self {
        Self::Device(Arc::new(source))
    }

    /// The implementation's own error, if this carries one of type `E`.
    #[must_use]
    pub fn source_as<E: core::error::Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::NotReachable(source) | Self::PeerDown(source) | Self::Device(source) => {
                source.downcast_ref()
            }
            _ => None,
        }
    }
}
