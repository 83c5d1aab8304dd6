//! Return codes, and why functions fail.

use core::ffi::CStr;
use core::fmt;
use std::path::PathBuf;

/// Codes of the header by their names there, and their numbers in its order.
macro_rules! codes {
    ($(#[doc = $about:literal])+ $kind:ident { $($code:ident $name:literal,)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $kind { $(#[doc = concat!("`", $name, "`")] $code),+ }

        impl $kind {
            /// All, in order of number, which is their place.
            pub const ALL: &[Self] = &[$(Self::$code),+];

            /// The name in `vipl.h`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$code => $name),+ }
            }

            /// The same for C.
            #[must_use]
            pub const fn c_name(self) -> &'static CStr {
                match self {
                    $(Self::$code => match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!("a name with a 0"),
                    }),+
                }
            }
        }
    };
}

codes! {
    /// `VIP_RETURN`, with VIPL's numbers.
    VipReturn {
        Success "VIP_SUCCESS",
        NotDone "VIP_NOT_DONE",
        InvalidParameter "VIP_INVALID_PARAMETER",
        ErrorResource "VIP_ERROR_RESOURCE",
        Timeout "VIP_TIMEOUT",
        Reject "VIP_REJECT",
        InvalidReliabilityLevel "VIP_INVALID_RELIABILITY_LEVEL",
        InvalidMtu "VIP_INVALID_MTU",
        InvalidQos "VIP_INVALID_QOS",
        InvalidPtag "VIP_INVALID_PTAG",
        InvalidRdmaRead "VIP_INVALID_RDMAREAD",
        DescriptorError "VIP_DESCRIPTOR_ERROR",
        InvalidState "VIP_INVALID_STATE",
        ErrorNameService "VIP_ERROR_NAMESERVICE",
        NoMatch "VIP_NO_MATCH",
        NotReachable "VIP_NOT_REACHABLE",
        ErrorNotSupported "VIP_ERROR_NOT_SUPPORTED",
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

codes! {
    /// `VIP_ERROR_CODE`
    ErrorCode {
        PostDescriptor "VIP_ERROR_POST_DESC",
        ConnectionLost "VIP_ERROR_CONN_LOST",
        ReceiveQueueEmpty "VIP_ERROR_RECVQ_EMPTY",
        ViOverrun "VIP_ERROR_VI_OVERRUN",
        RdmaWriteProtection "VIP_ERROR_RDMAW_PROT",
        RdmaWriteData "VIP_ERROR_RDMAW_DATA",
        RdmaWriteAbort "VIP_ERROR_RDMAW_ABORT",
        RdmaReadProtection "VIP_ERROR_RDMAR_PROT",
        CompletionProtection "VIP_ERROR_COMP_PROT",
        RdmaTransport "VIP_ERROR_RDMA_TRANSPORT",
        Catastrophic "VIP_ERROR_CATASTROPHIC",
    }
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
