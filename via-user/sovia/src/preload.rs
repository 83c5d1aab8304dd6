//! How `viaduct run` and `libsovia.so` agree: variables, beside that of the device, and a folder.

mod process;
pub mod status;

use std::path::PathBuf;

use port::trust;

pub use process::{NoProcess, Process};

/// Variable with the path of a pipe for the library's lines. Without it nothing is said.
pub const LOG_VARIABLE: &str = "VIADUCT_RUN_LOG";
/// Variable that has more said than warnings.
pub const VERBOSE_VARIABLE: &str = "VIADUCT_RUN_VERBOSE";
/// Variable with the [`Process`] that adds up the [`status`] of the program and its children once they have
/// ended: theirs is left to it.
pub const STATS_VARIABLE: &str = "VIADUCT_RUN_STATS";

/// The last words of what is said where no connection can move, by each process that finds it so.
pub const ALL_STAYS: &str = "all stays TCP";

/// The folder of both, for this user's programs: `sovia` in the run-time folder. Whoever uses it makes it
/// ([`trust::make_folder`]).
#[must_use]
pub fn folder() -> PathBuf {
    trust::run_time_folder().join("sovia")
}
