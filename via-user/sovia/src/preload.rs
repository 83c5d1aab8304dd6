//! How `viaduct run` says to `libsovia.so` what it is to do: variables, beside that of the device.

/// Variable with the path of a pipe for the library's lines. Without it nothing is said.
pub const LOG_VARIABLE: &str = "VIADUCT_RUN_LOG";
/// Variable that has more said than warnings.
pub const VERBOSE_VARIABLE: &str = "VIADUCT_RUN_VERBOSE";
