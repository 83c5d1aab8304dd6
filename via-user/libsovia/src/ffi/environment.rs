//! The environment of a program that follows: some drop what the linker loads first, as inetd does, and
//! keep all else. It is put back as long as the other variables of `viaduct run` are there, so that who
//! begins with an empty environment is left alone.
#![expect(unsafe_code, reason = "environments of the program's")]

use core::ffi::{CStr, c_char};
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

use sovia::preload::LOG_VARIABLE;

/// A list of strings that ends with null, or none.
pub(super) type Strings = *const *const c_char;

const PRELOAD: &str = "LD_PRELOAD";

/// The variable as this program has it, `NAME=value`.
static OWN: OnceLock<CString> = OnceLock::new();

/// Remembers what the linker has loaded first.
pub(super) fn remember() {
    if let Some(value) = std::env::var_os(PRELOAD) {
        let text = [format!("{PRELOAD}=").into_bytes(), value.into_vec()].concat();
        let _ = CString::new(text).map(|text| OWN.set(text));
    }
}

/// This program's environment.
pub(super) fn own() -> Strings {
    unsafe extern "C" {
        static environ: Strings;
    }
    // SAFETY: the C library's variable; a program that changes it meanwhile would break its own call.
    unsafe { environ }
}

/// Calls with an environment that has the library again, if it is to have it.
pub(super) fn with_library<T>(environment: Strings, call: impl FnOnce(Strings) -> T) -> T {
    let Some(own) = OWN.get() else { return call(environment) };
    let entries = entries(environment);
    let has = |name: &str| {
        // SAFETY: strings of an environment.
        let mut names = entries.iter().map(|entry| unsafe { CStr::from_ptr(*entry) }.to_bytes());
        names
            .any(|entry| entry.strip_prefix(name.as_bytes()).is_some_and(|it| it.starts_with(b"=")))
    };
    if has(PRELOAD) || !has(LOG_VARIABLE) {
        return call(environment);
    }
    let all: Vec<*const c_char> =
        entries.iter().copied().chain([own.as_ptr(), core::ptr::null()]).collect();
    call(all.as_ptr())
}

/// The strings of a list.
pub(super) fn entries(environment: Strings) -> Vec<*const c_char> {
    if environment.is_null() {
        return Vec::new();
    }
    // SAFETY: the program promises a list that ends with null.
    let entry = |index| unsafe { *environment.wrapping_add(index) };
    (0..).map(entry).take_while(|entry| !entry.is_null()).collect()
}
