//! Return codes of `clan.h`, and the text that explains each.

use core::cell::RefCell;
use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use port::clan::DmaError;
use vipl::VipReturn;

use crate::guard::text_of;

/// `clan_result_t`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in the header, and explained there")]
pub enum Code {
    Ok = 0,
    Invalid = 1,
    Refused = 2,
    Lost = 3,
    NotReachable = 4,
    Timeout = 5,
    NoEvent = 6,
    Exhausted = 7,
    Forked = 8,
    Device = 9,
}

/// Names of the codes, in order.
const NAMES: [&CStr; 10] = [
    c"CLAN_OK",
    c"CLAN_INVALID",
    c"CLAN_REFUSED",
    c"CLAN_LOST",
    c"CLAN_NOT_REACHABLE",
    c"CLAN_TIMEOUT",
    c"CLAN_NO_EVENT",
    c"CLAN_EXHAUSTED",
    c"CLAN_FORKED",
    c"CLAN_DEVICE",
];

/// The name of a code, a string that stays.
#[must_use]
pub fn name(code: c_int) -> &'static CStr {
    let known = usize::try_from(code).ok().and_then(|code| NAMES.get(code));
    known.copied().unwrap_or(c"(no clan_result_t)")
}

/// Why a function fails.
#[derive(Debug)]
pub struct Fault {
    code: Code,
    /// Empty: the code is enough, and costs nothing.
    text: String,
}

/// What a step of a function gives.
pub type Result<T> = core::result::Result<T, Fault>;
/// What a function gives.
pub type Outcome = Result<()>;

impl Fault {
    /// A code and the text that explains it.
    #[must_use]
    pub const fn new(code: Code, text: String) -> Self {
        Self { code, text }
    }

    /// A bad argument.
    #[must_use]
    pub const fn invalid(text: String) -> Self {
        Self::new(Code::Invalid, text)
    }

    /// The queue has no event: no text, since programs poll.
    #[must_use]
    pub const fn no_event() -> Self {
        Self::new(Code::NoEvent, String::new())
    }

    /// The code of a failed access.
    #[must_use]
    pub const fn code_of(error: DmaError) -> Code {
        match error {
            DmaError::Refused => Code::Refused,
            DmaError::Lost => Code::Lost,
        }
    }
}

impl From<port::Error> for Fault {
    fn from(error: port::Error) -> Self {
        use port::Error;
        let code = match &error {
            Error::NoSuch { what: "cookie", .. } => Code::Refused,
            Error::BadArgument { .. } | Error::OutOfRange { .. } | Error::NoSuch { .. } => {
                Code::Invalid
            }
            Error::Exhausted { .. } | Error::OutOfMemory { .. } => Code::Exhausted,
            Error::NotReachable(_) => Code::NotReachable,
            Error::PeerDown(_) => Code::Lost,
            Error::NotSupported { .. } | Error::Device(_) => Code::Device,
        };
        Self::new(code, error.to_string())
    }
}

/// The value of an argument that is checked.
///
/// # Errors
/// [`Code::Invalid`], with the name of the argument: it is NULL.
pub fn argument<T>(checked: core::result::Result<T, VipReturn>, what: &str) -> Result<T> {
    checked.map_err(|_| Fault::invalid(format!("{what} is NULL")))
}

thread_local! {
    static TEXT: RefCell<CString> = RefCell::default();
}

/// The text of this thread's last failure. It stays until the thread's next one.
pub fn last_text() -> *const c_char {
    // The text is no more while the thread ends.
    TEXT.try_with(|text| text.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

fn note(name: &str, fault: Fault) -> Code {
    if !fault.text.is_empty() {
        let mut text = format!("{name}: {}", fault.text).into_bytes();
        // A peer may have zeros in its name.
        text.retain(|byte| *byte != 0);
        let text = CString::new(text).unwrap_or_default();
        // As above.
        let _ = TEXT.try_with(|last| *last.borrow_mut() = text);
    }
    fault.code
}

/// Runs a function of the library. A panic, which is a fault of the library, ends as
/// [`Code::Device`].
pub fn guard(name: &str, work: impl FnOnce() -> Outcome) -> c_int {
    let code = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => Code::Ok,
        Ok(Err(fault)) => note(name, fault),
        Err(panic) => {
            let text = format!("fault in the library: {}", text_of(&*panic));
            note(name, Fault::new(Code::Device, text))
        }
    };
    code as c_int
}
