//! Programs of others, by name.

use std::env;
use std::path::PathBuf;

/// Where a program is, in the folders of `PATH`. None: in none of them.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(program)).find(|place| place.is_file())
}
