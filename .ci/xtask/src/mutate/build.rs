//! Builds the programs that suites are.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::suites::Programs;
use crate::{tools, workspace};

/// What cargo is to build.
#[derive(Debug)]
pub(super) struct Job<'a> {
    /// The workspace.
    pub(super) root: &'a Path,
    pub(super) target: &'a Path,
    /// The packages whose tests are wanted, and their features.
    pub(super) tests: &'a [&'a str],
    pub(super) features: &'a str,
    /// What the build of the RTL puts in.
    pub(super) mutants: Option<&'a str>,
    /// The command `viaduct` as well, with these features.
    pub(super) command: Option<&'a str>,
}

/// The environment of a build of mutants of the RTL.
const MUTANTS: &str = "VIADUCT_MUTANTS";

/// Builds, and gives the programs. An error has what the compiler said.
pub(super) fn build(job: &Job<'_>) -> Result<Programs, String> {
    let mut programs = Programs::new();
    if !job.tests.is_empty() {
        run(&mut cargo(job, &["test", "--no-run"], job.tests, job.features), &mut programs)?;
    }
    // Cargo shortens what is below the folder that it runs in.
    programs.values_mut().for_each(|path| *path = job.root.join(&*path));
    if let Some(features) = job.command {
        // With the same features of cosim, which is built once.
        run(&mut cargo(job, &["build"], &["viaduct", "cosim"], features), &mut programs)?;
        programs.insert("viaduct".to_owned(), job.target.join("debug/viaduct"));
    }
    Ok(programs)
}

fn cargo(job: &Job<'_>, command: &[&str], packages: &[&str], features: &str) -> Command {
    let mut cargo = workspace::cargo();
    cargo.current_dir(job.root).args(command).args(["--features", features]);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    cargo.envs(tools::env()).env("CARGO_TARGET_DIR", job.target).env_remove(MUTANTS);
    cargo.envs(job.mutants.map(|mutants| (MUTANTS, mutants)));
    cargo
}

/// Runs cargo, and notes the test programs that it names.
fn run(cargo: &mut Command, programs: &mut Programs) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot run cargo: {error}");
    let mut child = cargo.stderr(Stdio::piped()).spawn().map_err(failed)?;
    let mut said = String::new();
    for line in child.stderr.take().into_iter().flat_map(|text| BufReader::new(text).lines()) {
        let line = line.map_err(failed)?;
        if let Some((name, path)) = program(&line) {
            programs.insert(name, path);
        } else if !line.trim_start().starts_with("Compiling ") {
            said.push_str(&line);
            said.push('\n');
        }
    }
    if child.wait().map_err(failed)?.success() { Ok(()) } else { Err(said) }
}

/// The test program that a line of cargo names. Cargo puts a hash behind the name, and names a library's tests
/// by its folder.
fn program(line: &str) -> Option<(String, PathBuf)> {
    let (_, path) = line.trim_start().strip_prefix("Executable ")?.split_once(" (")?;
    let path = PathBuf::from(path.trim_end_matches(')'));
    let name = path.file_name()?.to_string_lossy().into_owned();
    let name = name.rsplit_once('-').map_or(name.as_str(), |(name, _)| name).to_owned();
    Some((name, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_their_names() {
        let line = "  Executable tests/vi.rs (target/mutate/debug/deps/vi-0123456789abcdef)";
        let path = PathBuf::from("target/mutate/debug/deps/vi-0123456789abcdef");
        assert_eq!(program(line), Some(("vi".to_owned(), path)));
        let line = "  Executable unittests src/lib.rs (/t/debug/deps/nic_model-01)";
        assert_eq!(program(line).expect("a program").0, "nic_model");
        assert_eq!(program("   Compiling vi v0.1.0"), None);
    }
}
