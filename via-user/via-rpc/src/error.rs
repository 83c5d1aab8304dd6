//! What can go wrong with a call or a connection.

use std::sync::Arc;

use crate::credits::CreditViolation;
use crate::header::Kind;
use crate::negotiate::Disagreement;

/// Result of everything here.
pub type Result<T> = core::result::Result<T, Error>;

/// Why a call or a connection failed.
#[expect(clippy::error_impl_error, reason = "the crate's one error type, see its Result")]
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// VIA refuses something.
    #[error(transparent)]
    Via(#[from] vipl::Error),
    /// No server waits at the endpoint.
    #[error("connection refused: no server waits at endpoint `{0}`")]
    Refused(String),
    /// The server has as many clients as it may have.
    #[error("connection rejected: the server at endpoint `{0}` takes no more clients now")]
    Rejected(String),
    /// The sides do not come together: another revision, another protocol.
    #[error("no connection: {0}")]
    Disagreement(#[from] Disagreement),
    /// The other side is dead, or has ended the connection.
    #[error("the connection was lost: the other side has ended it, or is dead")]
    Lost,
    /// The other side breaks the protocol.
    #[error("the other side breaks the protocol: {0}")]
    Violation(#[from] Violation),
    /// No answer in time. The connection can still be used; an answer that comes later is dropped.
    #[error("no answer in time")]
    TimedOut,
    /// A message longer than both sides take. Nothing of it was sent.
    #[error("a message of {length} bytes is too long for this connection: at most {most}")]
    TooLong {
        /// Its bytes.
        length: usize,
        /// Most bytes.
        most: u32,
    },
    /// The server has dropped the request without an answer.
    #[error("the server does not answer this call: it has dropped the request")]
    Unanswered,
    /// An endpoint whose name VIA does not carry.
    #[error("endpoint `{0}`: a name has 1 to {most} bytes", most = crate::device::LONGEST_ENDPOINT)]
    Endpoint(String),
    /// Settings that cannot be.
    #[error("no such settings: {0}")]
    Settings(&'static str),
    /// The system has no thread to give.
    #[error("no thread can be started: {0}")]
    NoThread(Arc<std::io::Error>),
}

/// How the other side breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A packet without immediate data, or whose immediate data is no header.
    #[error("a packet without a header")]
    NoHeader,
    /// A packet of the negotiation after it.
    #[error("a packet {0:?} after the negotiation")]
    Late(Kind),
    /// A packet for flow control has bytes.
    #[error("a packet {0:?} with bytes")]
    Control(Kind),
    /// Flow control.
    #[error(transparent)]
    Credits(#[from] CreditViolation),
    /// A message without a header, or with one that cannot be.
    #[error("a message without a header that can be")]
    NoMessage,
    /// A message longer than was negotiated.
    #[error("a message of {length} bytes: at most {most} were negotiated")]
    Length {
        /// Its bytes.
        length: u32,
        /// What was negotiated.
        most: u32,
    },
    /// A fragment with another length than its message leaves for it.
    #[error("a fragment of {found} bytes instead of {due}")]
    Fragment {
        /// Its bytes.
        found: usize,
        /// What is left of the message, at most the MTU.
        due: usize,
    },
    /// An answer to no call.
    #[error("an answer to call {0}, which was not made")]
    Answer(u32),
}

impl From<CreditViolation> for Error {
    fn from(violation: CreditViolation) -> Self {
        Self::Violation(violation.into())
    }
}

impl From<vipl::CompletionError> for Error {
    fn from(error: vipl::CompletionError) -> Self {
        match error.code {
            vipl::VipReturn::Timeout => Self::TimedOut,
            vipl::VipReturn::DescriptorError => Self::Lost,
            code => Self::Via(code.into()),
        }
    }
}
