//! How `viaduct run` and `libsovia.so` agree: variables, beside that of the device, and a folder.

mod process;
pub mod status;

use std::fs::{self, DirEntry};
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

/// Removes claims of processes that were killed, of these entries of the [`folder`]: links whose second word
/// is the [`Process`].
pub fn sweep(entries: impl IntoIterator<Item = DirEntry>) {
    for entry in entries {
        let claim = fs::read_link(entry.path()).ok();
        let process = claim.as_ref().and_then(|claim| claim.to_str()?.split(' ').nth(1));
        if let Some(Ok(process)) = process.map(str::parse::<Process>)
            && !process.is_alive()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn claims_of_killed_processes_are_removed_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("sovia-claims-{}", std::process::id()));
        fs::create_dir_all(folder.join("status")).unwrap();
        let own = Process::own();
        let earlier = Process { started: own.started.wrapping_sub(1), ..own };
        symlink(format!("claim {own} "), folder.join("alive")).unwrap();
        symlink(format!("offer {earlier} 00"), folder.join("killed")).unwrap();
        symlink("elsewhere", folder.join("other")).unwrap();
        fs::write(folder.join("file"), format!("claim {earlier} ")).unwrap();
        let names = || {
            let entries = fs::read_dir(&folder).unwrap().flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            names.sort();
            names
        };
        sweep(fs::read_dir(&folder).unwrap().flatten());
        assert_eq!(names(), ["alive", "file", "other", "status"]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
