//! Why a device cannot be opened.

use std::path::PathBuf;

/// Result of opening.
pub type Result<T> = core::result::Result<T, Error>;

/// Why a device cannot be opened.
#[derive(Debug, thiserror::Error)]
#[expect(clippy::error_impl_error, reason = "the crate's one error type, see its Result")]
pub enum Error {
    /// The URL is not one.
    #[error("device `{url}`: {why}")]
    Malformed {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A name that is neither a URL nor one of old.
    #[error(
        "there is no device `{name}`: give sim:model, sim:rtl, vfio-user:PATH, or an empty name for the default device"
    )]
    Unknown {
        /// What was given.
        name: String,
    },
    /// This build cannot open such a device.
    #[error("{what} cannot be opened by this version; use {instead}")]
    NotYet {
        /// What was asked for.
        what: String,
        /// What can be had.
        instead: &'static str,
    },
    /// `sim:rtl` without the feature.
    #[error(
        "this build has no RTL: build it with the feature `rtl` (cargo xtask setup, then cargo build --release \
         --features rtl -p libvipl), or use sim:model"
    )]
    NoRtl,
    /// No default device.
    #[error(
        "no device: {variable} is not set, and no simulator has a socket in {}; start one with `viaduct cosim serve`, \
         or set {variable}=sim:model", folder.display()
    )]
    NoDefault {
        /// The variable that names one.
        variable: &'static str,
        /// Where sockets would be.
        folder: PathBuf,
    },
    /// The driver says no.
    #[error(transparent)]
    Driver(#[from] host_driver::Error),
}
