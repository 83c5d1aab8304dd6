//! What every exported function does around its work.

use core::time::Duration;
use std::any::Any;
use std::ffi::c_ulong;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use vipl::{INFINITE, VipReturn};

use crate::abi::{Code, INFINITE_MS};

/// Result of an exported function.
pub type Outcome = Result<(), VipReturn>;

/// Writes a line to standard error.
pub fn tell(line: &str) {
    // Nobody is left to tell if this fails.
    let _ = writeln!(std::io::stderr(), "vipl: {line}");
}

/// The text of a panic.
pub fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}

/// Runs a function of the library. A panic, which is a fault of the library, ends as
/// `VIP_ERROR_RESOURCE` and a line.
pub fn guard(name: &str, work: impl FnOnce() -> Outcome) -> Code {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => VipReturn::Success as Code,
        Ok(Err(code)) => code as Code,
        Err(panic) => {
            tell(&format!("{name}: fault in the library: {}", text_of(&*panic)));
            VipReturn::ErrorResource as Code
        }
    }
}

/// The code of an error of `vipl`. What the driver said is written down, since a code says little.
pub fn code(name: &str) -> impl Fn(vipl::Error) -> VipReturn {
    move |error| {
        if error.code == VipReturn::ErrorResource && error.source.is_some() {
            tell(&format!("{name}: {error}"));
        }
        error.code
    }
}

/// A time-out of the header, in milliseconds.
#[must_use]
pub const fn timeout(ms: c_ulong) -> Duration {
    if ms >= INFINITE_MS { INFINITE } else { Duration::from_millis(ms) }
}
