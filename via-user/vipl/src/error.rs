//! Return codes, asynchronous errors, the error callback.

use core::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::descriptor::Descriptor;
use crate::names::HostsError;
use crate::vi::Vi;

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
    Driver(#[from] host_driver::Error),
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

impl From<host_driver::Error> for Error {
    fn from(error: host_driver::Error) -> Self {
        use host_driver::Error as E;
        let code = match error {
            E::BadArgument { .. } | E::OutOfRange { .. } | E::NoSuch { .. } => {
                VipReturn::InvalidParameter
            }
            E::NotReachable { .. } | E::NoEcho { .. } => VipReturn::NotReachable,
            E::NotSupported { .. } => VipReturn::ErrorNotSupported,
            _ => VipReturn::ErrorResource,
        };
        Self { code, source: Some(error.into()) }
    }
}

/// Why `done` and `wait` gave no good descriptor.
#[derive(Clone, Debug)]
pub struct CompletionError {
    /// [`VipReturn::NotDone`], [`VipReturn::Timeout`] or [`VipReturn::DescriptorError`];
    /// [`VipReturn::InvalidParameter`] for a VI that is destroyed or whose NIC is closed.
    pub code: VipReturn,
    /// The descriptor that ended in error; None with `DescriptorError` means that nothing is
    /// posted.
    pub descriptor: Option<Descriptor>,
}

impl fmt::Display for CompletionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.descriptor {
            Some(descriptor) => write!(f, "{}: status {:?}", self.code, descriptor.status()),
            None if self.code == VipReturn::DescriptorError => {
                write!(f, "{}: nothing is posted", self.code)
            }
            None => write!(f, "{}", self.code),
        }
    }
}

impl core::error::Error for CompletionError {}

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

/// `VIP_ERROR_DESCRIPTOR`: an asynchronous error.
#[derive(Clone, Debug)]
pub struct ErrorDescriptor {
    /// The VI that it is about.
    pub vi: Option<Vi>,
    /// The descriptor that it is about. By now another thread may have taken it, and given its memory
    /// back.
    pub descriptor: Option<Descriptor>,
    /// The operation that the descriptor's status names, as [`crate::Status::operation`]; 0 without
    /// one.
    pub operation: u32,
    /// Kind of object.
    pub resource: ResourceCode,
    /// What happened.
    pub code: ErrorCode,
}

impl fmt::Display for ErrorDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "asynchronous error {:?} on {:?}", self.code, self.resource)?;
        if let Some(vi) = &self.vi {
            write!(f, " {}", vi.number())?;
        }
        Ok(())
    }
}

/// An error handler. It may not call functions that wait.
pub type ErrorHandler = Arc<dyn Fn(&ErrorDescriptor) + Send + Sync>;

static SINK: Mutex<fn(&str)> = Mutex::new(standard_error);

fn standard_error(line: &str) {
    // Nobody is left to tell if this fails.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Sets where the default error handler writes its lines (standard error at first).
pub fn set_error_sink(sink: fn(&str)) {
    *SINK.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = sink;
}

/// The error handler of a NIC without a callback: writes one line.
pub(crate) fn default_handler(error: &ErrorDescriptor) {
    let sink = *SINK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    sink(&format!("vipl: {error}"));
}
