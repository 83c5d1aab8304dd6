//! What goes wrong with a lane.

/// Why a lane cannot start, or has ended.
#[derive(Clone, Debug, thiserror::Error)]
#[expect(clippy::error_impl_error, reason = "the crate's one error type, see its Result")]
pub enum Error {
    /// VIA.
    #[error("the VIA device: {0}")]
    Via(#[from] vipl::Error),
    /// The file of the packets.
    #[error("the IP packets of the kernel: {0}")]
    Packets(rustix::io::Errno),
    /// Nothing is at the other side of that file any more.
    #[error("the IP packets of the kernel: their network device no longer exists")]
    NoDevice,
    /// The system.
    #[error("{what}: {why}")]
    System {
        /// What was wanted.
        what: &'static str,
        /// The system's answer.
        why: rustix::io::Errno,
    },
    /// No thread.
    #[error("a thread cannot be started")]
    NoThread,
    /// The MTU is longer than a message of the device can be.
    #[error("an MTU of {mtu} bytes is too long for this device, which takes {longest}")]
    Mtu {
        /// What was asked for.
        mtu: u32,
        /// The longest message.
        longest: u32,
    },
}

/// Result of this crate's functions.
pub type Result<T> = core::result::Result<T, Error>;
