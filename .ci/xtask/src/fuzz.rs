//! `cargo xtask fuzz`: the targets of `tests/fuzz` under libFuzzer, on the pinned toolchain.
//!
//! libFuzzer needs counters in the program, which LLVM's pass puts there on the stable toolchain too;
//! what `cargo fuzz` adds is AddressSanitizer, which needs a nightly one. That watches `unsafe` code, of
//! which what is fed here has none; `cargo xtask test --long` has the crates with some under it.
//!
//! ```text
//!  tests/fuzz/corpus/T, regressions/T ──► T ──► target/fuzz/corpus/T ──(--merge)──► tests/fuzz/corpus/T
//!                                         └──► fails: made small, kept in tests/fuzz/regressions/T
//! ```

mod session;

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};

use crate::{Outcome, workspace};
use session::Session;

const USAGE: &str =
    "usage: cargo xtask fuzz [TARGET...] [--seconds N] [--jobs J] [--merge] [--list]";

/// A pass of LLVM that counts which branches run, and the checks of the profile `dev`. Comparisons are
/// not traced: that takes half of the time, and most of them are of a model's state in each cycle, while
/// the targets make magic numbers themselves.
const FLAGS: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=3",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
    "--cfg=fuzzing",
];

#[derive(Debug, PartialEq, Eq)]
struct Options {
    targets: Vec<String>,
    seconds: u64,
    jobs: usize,
    merge: bool,
    list: bool,
}

/// See the module.
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut options = parse(args)?;
    let all = targets()?;
    if options.list {
        all.iter().for_each(|target| println!("{target}"));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = options.targets.iter().find(|target| !all.contains(target)) {
        return Err(format!("no target `{unknown}`: there are {}", all.join(", ")));
    }
    if options.targets.is_empty() {
        options.targets = all;
    }
    let program = build()?;
    if options.merge {
        for target in &options.targets {
            Session::new(&program, target).merge()?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let failed = look(&program, &options)?;
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    for (target, file) in &failed {
        println!("{target} FAILED: the input is {}", shown(file));
    }
    println!("cargo test -p fuzz runs what is kept; commit it with the mending");
    Ok(ExitCode::FAILURE)
}

/// Runs every target for its time, some side by side; gives those that failed, and the inputs.
fn look(program: &Path, options: &Options) -> Result<Vec<(String, PathBuf)>, String> {
    let waiting: Mutex<VecDeque<&String>> = Mutex::new(options.targets.iter().collect());
    let results = Mutex::new(Vec::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(target) = next() {
                    let found = Session::new(program, target).run(options.seconds);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.push((target.clone(), found));
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut failed = Vec::new();
    for (target, result) in results {
        if let Some(file) = result? {
            failed.push((target, file));
        }
    }
    Ok(failed)
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options =
        Options { targets: Vec::new(), seconds: 60, jobs: 1, merge: false, list: false };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|text| text.parse::<u64>().ok()).ok_or(USAGE);
        match arg.as_str() {
            "--seconds" => options.seconds = number()?.max(1),
            "--jobs" => options.jobs = usize::try_from(number()?).map_err(|_| USAGE)?.max(1),
            "--merge" => options.merge = true,
            "--list" => options.list = true,
            name if !name.starts_with('-') => options.targets.push(name.to_owned()),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

/// The crate of the targets.
fn folder() -> PathBuf {
    workspace::root().join("tests/fuzz")
}

/// What a run leaves behind, beside the tree.
fn output() -> PathBuf {
    workspace::target_dir().join("fuzz")
}

/// A path below the root.
fn shown(path: &Path) -> String {
    path.strip_prefix(workspace::root()).unwrap_or(path).display().to_string()
}

/// Names of all targets, as the table of the crate has them.
pub(crate) fn targets() -> Result<Vec<String>, String> {
    let file = folder().join("src/lib.rs");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", shown(&file)))?;
    let names: Vec<String> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Target { name: \""))
        .filter_map(|rest| rest.split_once('"'))
        .map(|(name, _)| name.to_owned())
        .collect();
    if names.is_empty() { Err(format!("{}: no table of targets", shown(&file))) } else { Ok(names) }
}

/// Builds the program, and gives its path.
fn build() -> Result<PathBuf, String> {
    let host = Command::new("rustc").args(["--print", "host-tuple"]).output();
    let host = host.map_err(|error| format!("cannot run rustc: {error}"))?;
    let host = String::from_utf8_lossy(&host.stdout).trim().to_owned();
    let mut command = workspace::cargo();
    command.current_dir(workspace::root()).args(["build", "--release", "--package", "fuzz"]);
    // With a target build scripts, which link no libFuzzer, are built without the flags.
    command.args(["--features", "libfuzzer", "--target", &host, "--target-dir"]).arg(output());
    command.env("RUSTFLAGS", FLAGS.join(" ")).env_remove("CARGO_ENCODED_RUSTFLAGS");
    let status = command.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err("the targets do not build: see above".to_owned());
    }
    Ok(output().join(host).join("release/fuzz"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &[&str]) -> Result<Options, String> {
        parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_targets_and_numbers() {
        let targets = vec!["frames".to_owned()];
        let expected = Options { targets, seconds: 9, jobs: 2, merge: false, list: false };
        assert_eq!(options(&["frames", "--seconds", "9", "--jobs", "2"]), Ok(expected));
        for bad in [&["--seconds"][..], &["--seconds", "x"], &["--fast"]] {
            assert!(options(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_table_of_targets_is_found() {
        assert!(targets().expect("the crate is there").contains(&"frames".to_owned()));
    }
}
