//! Errors to codes of the header, and the text of the last one of each thread.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use via_rpc::Error;
use vipl::VipReturn;

/// The codes of `viarpc.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// `VIARPC_OK`
    Ok = 0,
    /// `VIARPC_INVALID`
    Invalid = 1,
    /// `VIARPC_NO_DEVICE`
    NoDevice = 2,
    /// `VIARPC_NO_HOST`
    NoHost = 3,
    /// `VIARPC_REFUSED`
    Refused = 4,
    /// `VIARPC_REJECTED`
    Rejected = 5,
    /// `VIARPC_DISAGREEMENT`
    Disagreement = 6,
    /// `VIARPC_TIMED_OUT`
    TimedOut = 7,
    /// `VIARPC_TOO_LONG`
    TooLong = 8,
    /// `VIARPC_UNANSWERED`
    Unanswered = 9,
    /// `VIARPC_LOST`
    Lost = 10,
    /// `VIARPC_VIOLATION`
    Violation = 11,
    /// `VIARPC_RESOURCE`
    Resource = 12,
    /// `VIARPC_UNREACHABLE`
    Unreachable = 13,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the program gets.
    pub code: Code,
    /// What `viarpc_error` says.
    pub text: String,
}

impl Failure {
    /// A failure with its text.
    #[must_use]
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// An argument that cannot be.
    #[must_use]
    pub fn invalid(what: &str) -> Self {
        Self::new(Code::Invalid, what)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Refused(_) => Code::Refused,
            Error::Rejected(_) => Code::Rejected,
            Error::Disagreement(_) => Code::Disagreement,
            Error::Lost => Code::Lost,
            Error::Violation(_) => Code::Violation,
            Error::TimedOut => Code::TimedOut,
            Error::TooLong { .. } => Code::TooLong,
            Error::Unanswered => Code::Unanswered,
            Error::Endpoint(_) | Error::Settings(_) => Code::Invalid,
            Error::Via(error) if error.code == VipReturn::NotReachable => Code::Unreachable,
            Error::Via(_) | Error::NoThread(_) => Code::Resource,
        };
        Self::new(code, error.to_string())
    }
}

/// Result of what an exported function does.
pub type Outcome<T = ()> = Result<T, Failure>;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn remember(failure: Failure) -> Code {
    let text = CString::new(failure.text.replace('\0', " ")).unwrap_or_default();
    LAST.with_borrow_mut(|last| *last = text);
    failure.code
}

/// The text of this thread's last failure, good until its next one.
#[must_use]
pub fn last() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}

/// Runs a function of the library. A panic, which is a fault of the library, ends as `VIARPC_RESOURCE`.
pub fn guard(work: impl FnOnce() -> Outcome) -> c_int {
    let code = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => Code::Ok,
        Ok(Err(failure)) => remember(failure),
        Err(panic) => {
            let text = format!("fault in libviarpc: {}", text_of(&*panic));
            remember(Failure::new(Code::Resource, text))
        }
    };
    code as c_int
}
