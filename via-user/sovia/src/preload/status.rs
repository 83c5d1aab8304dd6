//! What each process under `viaduct run` shows of its connections: a file in the folder `status`, which it
//! has mapped ([`Status`]), and which `viaduct top` and `viaduct run --stats` read ([`ProcessStatus`]).
//!
//! Its name is the [`Process`](super::Process). A process that ends removes its file, or leaves the first
//! page of it, the sums, to the `viaduct run --stats` that started it. The file of one that was killed is
//! removed by whoever reads next.
//!
//! A connection is a [`Record`]: its counters are stored where they are shown, so that showing them costs
//! the process nothing more.

mod layout;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::path::PathBuf;

pub use layout::{Direction, Phase};
pub use read::{ConnectionStatus, ProcessStatus, Reason, Totals, living, of_run};
pub use write::{Record, Status};

/// The folder of these files. Who writes there makes it.
#[must_use]
pub fn folder() -> PathBuf {
    super::folder().join("status")
}
