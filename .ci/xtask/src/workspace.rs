//! Where things are: the repository, its files, its crates.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the root manifest.
///
/// Cargo says where this crate is when it runs it, which stays true in a clone that was moved.
pub(crate) fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.ancestors().nth(2).map_or(manifest.clone(), Path::to_path_buf)
}

/// The folder that cargo builds into.
pub(crate) fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The cargo that runs this program.
///
/// The working directory stays the caller's, so that file arguments of `viaduct` mean what the
/// caller sees; cargo finds the manifest upwards from there.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // These describe xtask itself; a nested cargo and its build scripts must not see them.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The files under version control or about to be (not ignored), relative to the root, sorted.
pub(crate) fn files() -> Result<Vec<PathBuf>, String> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cannot run git (needed to list the files): {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "git ls-files failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut files: Vec<PathBuf> =
        names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect();
    // A file that was deleted but not yet committed is still listed.
    files.retain(|file| root().join(file).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_holds_the_workspace() {
        assert!(root().join("Cargo.toml").is_file());
        assert!(root().join(".ci/xtask/Cargo.toml").is_file());
    }
}
