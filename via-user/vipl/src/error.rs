//! Return codes, and why functions fail.

use core::fmt;
use std::path::PathBuf;

/// `VIP_RETURN`, with VIPL's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VipReturn {
    /// `VIP_SUCCESS`
    Success = 0,
    /// `VIP_NOT_DONE`
    NotDone = 1,
    /// `VIP_INVALID_PARAMETER`
    InvalidParameter = 2,
    /// `VIP_ERROR_RESOURCE`
    ErrorResource = 3,
    /// `VIP_TIMEOUT`
    Timeout = 4,
    /// `VIP_REJECT`
    Reject = 5,
    /// `VIP_INVALID_RELIABILITY_LEVEL`
    InvalidReliabilityLevel = 6,
    /// `VIP_INVALID_MTU`
    InvalidMtu = 7,
    /// `VIP_INVALID_QOS`
    InvalidQos = 8,
    /// `VIP_INVALID_PTAG`
    InvalidPtag = 9,
    /// `VIP_INVALID_RDMAREAD`
    InvalidRdmaRead = 10,
    /// `VIP_DESCRIPTOR_ERROR`
    DescriptorError = 11,
    /// `VIP_INVALID_STATE`
    InvalidState = 12,
    /// `VIP_ERROR_NAMESERVICE`
    ErrorNameService = 13,
    /// `VIP_NO_MATCH`
    NoMatch = 14,
    /// `VIP_NOT_REACHABLE`
    NotReachable = 15,
    /// `VIP_ERROR_NOT_SUPPORTED`
    ErrorNotSupported = 16,
}

impl VipReturn {
    /// The name in `vipl.h`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "VIP_SUCCESS",
            Self::NotDone => "VIP_NOT_DONE",
            Self::InvalidParameter => "VIP_INVALID_PARAMETER",
            Self::ErrorResource => "VIP_ERROR_RESOURCE",
            Self::Timeout => "VIP_TIMEOUT",
            Self::Reject => "VIP_REJECT",
            Self::InvalidReliabilityLevel => "VIP_INVALID_RELIABILITY_LEVEL",
            Self::InvalidMtu => "VIP_INVALID_MTU",
            Self::InvalidQos => "VIP_INVALID_QOS",
            Self::InvalidPtag => "VIP_INVALID_PTAG",
            Self::InvalidRdmaRead => "VIP_INVALID_RDMAREAD",
            Self::DescriptorError => "VIP_DESCRIPTOR_ERROR",
            Self::InvalidState => "VIP_INVALID_STATE",
            Self::ErrorNameService => "VIP_ERROR_NAMESERVICE",
            Self::NoMatch => "VIP_NO_MATCH",
            Self::NotReachable => "VIP_NOT_REACHABLE",
            Self::ErrorNotSupported => "VIP_ERROR_NOT_SUPPORTED",
        }
    }
}

impl fmt::Display for VipReturn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A VIPL function failed; the code, and what the driver said where it was the driver.
#[derive(Clone, Debug, thiserror::Error)]
#[expect(clippy::error_impl_error, reason = "the crate's one error type, see its Result")]
#[error("{code}{}", .source.as_ref().map(|s| format!(": {s}")).unwrap_or_default())]
pub struct Error {
    /// What VIPL returns.
    pub code: VipReturn,
    /// The cause, where there is more to say.
    #[source]
    pub source: Option<Cause>,
}

/// What made a function fail.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Cause {
    /// What is below VIPL.
    #[error(transparent)]
    Port(#[from] port::Error),
    /// The file of the name service.
    #[error(transparent)]
    Hosts(#[from] HostsError),
}

/// Result of VIPL functions.
pub type Result<T> = core::result::Result<T, Error>;

impl From<VipReturn> for Error {
    fn from(code: VipReturn) -> Self {
        Self { code, source: None }
    }
}

impl From<port::Error> for Error {
    fn from(error: port::Error) -> Self {
        use port::Error as E;
        let code = match error {
            E::BadArgument { .. } | E::OutOfRange { .. } | E::NoSuch { .. } => {
                VipReturn::InvalidParameter
            }
            E::NotReachable(_) => VipReturn::NotReachable,
            E::NotSupported { .. } => VipReturn::ErrorNotSupported,
            _ => VipReturn::ErrorResource,
        };
        Self { code, source: Some(error.into()) }
    }
}

/// `VIP_ERROR_CODE`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// `VIP_ERROR_POST_DESC`: a posted descriptor cannot be reached.
    PostDescriptor = 0,
    /// `VIP_ERROR_CONN_LOST`
    ConnectionLost = 1,
    /// `VIP_ERROR_RECVQ_EMPTY`
    ReceiveQueueEmpty = 2,
    /// `VIP_ERROR_VI_OVERRUN`
    ViOverrun = 3,
    /// `VIP_ERROR_RDMAW_PROT`
    RdmaWriteProtection = 4,
    /// `VIP_ERROR_RDMAW_DATA`
    RdmaWriteData = 5,
    /// `VIP_ERROR_RDMAW_ABORT`
    RdmaWriteAbort = 6,
    /// `VIP_ERROR_RDMAR_PROT`
    RdmaReadProtection = 7,
    /// `VIP_ERROR_COMP_PROT`
    CompletionProtection = 8,
    /// `VIP_ERROR_RDMA_TRANSPORT`
    RdmaTransport = 9,
    /// `VIP_ERROR_CATASTROPHIC`
    Catastrophic = 10,
}

/// `VIP_RESOURCE_CODE`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceCode {
    /// `VIP_RESOURCE_NIC`
    Nic = 0,
    /// `VIP_RESOURCE_VI`
    Vi = 1,
    /// `VIP_RESOURCE_CQ`
    Cq = 2,
    /// `VIP_RESOURCE_DESCRIPTOR`
    Descriptor = 3,
}

/// What is wrong with a hosts file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hosts file {}{}: {problem}", .file.display(), .line.map(|n| format!(", line {n}")).unwrap_or_default())]
pub struct HostsError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; None if it is the file as a whole.
    pub line: Option<usize>,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl From<HostsError> for Error {
    fn from(error: HostsError) -> Self {
        Self { code: VipReturn::ErrorNameService, source: Some(error.into()) }
    }
}
