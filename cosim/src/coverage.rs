//! What the suites run of the Verilog: branches of the kernels, and bits of the registers (a build
//! with the feature `coverage`).
//!
//! With `VIADUCT_COVERAGE=DIR` in the environment, each process adds up what its models ran, and
//! keeps it in `DIR/<process id>.cov`, in the format of Verilator's own tools. [`Points`] reads such
//! files, [`Report`] lists what was never run, and [`Reasons`] says why that is as it should be.

#[cfg(feature = "rtl")]
mod collect;
mod points;
mod reasons;
mod report;

#[cfg(feature = "rtl")]
pub(crate) use collect::collect;
pub use points::{Item, Kind, Points};
pub use reasons::{Reason, Reasons};
pub use report::{Missed, Report, Row};

/// The environment variable that names the folder.
pub const FOLDER: &str = "VIADUCT_COVERAGE";
