//! What can go wrong with a connection.

use std::io;

use crate::engine::Violation;

/// Result of everything here.
pub type Result<T> = core::result::Result<T, Error>;

/// See the module. As an [`io::Error`] each has the kind that TCP has for it.
#[expect(clippy::error_impl_error, reason = "the crate's one error type, see its Result")]
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// VIA refuses something.
    #[error(transparent)]
    Via(#[from] vipl::Error),
    /// Nobody listens there.
    #[error("connection refused: nobody listens there")]
    Refused,
    /// The other side is dead, or has thrown the connection away.
    #[error("the connection was lost")]
    Reset,
    /// The other side does not follow the protocol.
    #[error("the other side breaks the protocol: {0}")]
    Protocol(#[from] Violation),
    /// The other side has other settings, or another revision.
    #[error("the other side has other settings, or another revision of the protocol")]
    Incompatible,
    /// This side has ended.
    #[error("this side of the connection has ended")]
    Ended,
    /// There is nothing to do at once.
    #[error("it would wait")]
    WouldBlock,
    /// It took too long.
    #[error("there was no answer in time")]
    TimedOut,
    /// The system has no thread to give.
    #[error("no thread can be started: {0}")]
    NoThread(std::sync::Arc<io::Error>),
    /// A text that is no address.
    #[error(
        "`{0}` is no address: write HOST:PORT, with a name of the network's, or its bytes as [02:56:01]"
    )]
    Address(String),
    /// A name that the device does not know.
    #[error("no host `{name}` is known: {why}")]
    NoHost {
        /// The name.
        name: String,
        /// What the name service says.
        why: vipl::Error,
    },
    /// The address is another host's.
    #[error("{0} is not an address of this host")]
    NotHere(String),
    /// A listener of this program has the port, or all that are given to whoever asks for any are in use.
    #[error("port {0} is in use")]
    PortInUse(u16),
    /// A stream for tasks has clones, whose threads would take its packets.
    #[error("a stream that has clones cannot become one for tasks: drop them first")]
    Shared,
    /// Settings that cannot be.
    #[error("no such settings: {0}")]
    Policy(&'static str),
}

impl From<vipl::CompletionError> for Error {
    fn from(error: vipl::CompletionError) -> Self {
        match error.code {
            vipl::VipReturn::Timeout => Self::TimedOut,
            vipl::VipReturn::DescriptorError => Self::Reset,
            code => Self::Via(code.into()),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error {
            // Programs that poll see it often, and it needs no memory.
            Error::WouldBlock => return io::ErrorKind::WouldBlock.into(),
            Error::Via(_) | Error::NoThread(_) => io::ErrorKind::Other,
            Error::Refused => io::ErrorKind::ConnectionRefused,
            Error::Reset | Error::Protocol(_) => io::ErrorKind::ConnectionReset,
            Error::NotHere(_) => io::ErrorKind::AddrNotAvailable,
            Error::PortInUse(_) => io::ErrorKind::AddrInUse,
            Error::NoHost { .. } => io::ErrorKind::NotFound,
            Error::Incompatible | Error::Policy(_) | Error::Address(_) | Error::Shared => {
                io::ErrorKind::InvalidInput
            }
            Error::Ended => io::ErrorKind::BrokenPipe,
            Error::TimedOut => io::ErrorKind::TimedOut,
        };
        Self::new(kind, error)
    }
}
