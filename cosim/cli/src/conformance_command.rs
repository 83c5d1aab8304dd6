//! `viaduct conformance`: the conformance suite of VIPL, in C against `vipl.h`, on any device.

use crate::Failure;
use crate::c_program;
use clap::{Parser, ValueEnum};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The suite where it is installed, next to this program.
const INSTALLED: &str = "viaduct-conformance";

/// Levels of conformance; each holds the ones before it.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Level {
    Early,
    Functional,
    Full,
}

/// Run the conformance suite of VIPL.
///
/// It is compiled with `cc` against `libvipl`; each of its rows runs in a process of its own.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  viaduct conformance --device sim:model
  viaduct conformance --device vfio-user:run/nic0.sock --level functional
  viaduct conformance --device sim:model rdma        only rows with `rdma` in their names")]
pub(crate) struct Arguments {
    /// Only rows whose names contain this.
    #[arg(default_value = "")]
    filter: String,
    /// Device of node 0, as `VipOpenNic` takes it.
    #[arg(long, value_name = "URL", default_value = "sim:model")]
    device: String,
    /// Device of node 1, where it does not follow from that of node 0.
    #[arg(long, value_name = "URL")]
    peer: Option<String>,
    /// Rows up to this level.
    #[arg(long, value_enum, default_value_t = Level::Full)]
    level: Level,
    /// Print the rows as the table of the test plan, and run nothing.
    #[arg(long)]
    list: bool,
}

/// What became of the rows of one function.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let suite = suite()?;
    let mut command = Command::new(&suite);
    let level = arguments.level.to_possible_value().map(|value| value.get_name().to_owned());
    command.arg(&arguments.filter).args(["--level", level.as_deref().unwrap_or("full")]);
    command.args(["--device", &arguments.device]);
    if let Some(peer) = &arguments.peer {
        command.args(["--peer", peer]);
    }
    let rows = rows(&suite)?;
    if arguments.list {
        println!("| Row | Function | What | Level |\n|---|---|---|---|");
        for (name, row) in &rows {
            println!("| `{name}` | {} | {} | {} |", row.function, row.what, row.level);
        }
        return Ok(());
    }
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut failures = Vec::new();
    for line in BufReader::new(child.stdout.take().ok_or("no output of the suite")?).lines() {
        let line = line?;
        let (name, passed) = match (line.strip_prefix("ok "), line.strip_prefix("FAIL ")) {
            (Some(name), _) => (name, true),
            (_, Some(rest)) => (rest.split(':').next().unwrap_or(rest), false),
            _ => continue,
        };
        let function = rows.get(name).map_or("?", |row| row.function.as_str());
        let tally = tallies.entry(function).or_default();
        if passed {
            tally.passed += 1;
        } else {
            tally.failed += 1;
            failures.push(line);
        }
    }
    child.wait()?;
    report(&tallies, &failures)
}

fn report(tallies: &BTreeMap<&str, Tally>, failures: &[String]) -> Result<(), Failure> {
    println!("{:<30} {:>6} {:>6} {:>6}", "function", "rows", "passed", "failed");
    let (mut passed, mut failed) = (0, 0);
    for (function, tally) in tallies {
        let total = tally.passed + tally.failed;
        println!("{function:<30} {total:>6} {:>6} {:>6}", tally.passed, tally.failed);
        passed += tally.passed;
        failed += tally.failed;
    }
    println!("{:<30} {:>6} {passed:>6} {failed:>6}", "all", passed + failed);
    for failure in failures {
        println!("{failure}");
    }
    match (passed, failed) {
        (0, 0) => Err("no row ran; see --list".into()),
        (_, 0) => Ok(()),
        _ => Err(format!("{failed} rows failed").into()),
    }
}

/// A row of the suite.
#[derive(Debug)]
struct Row {
    level: String,
    function: String,
    what: String,
}

fn rows(suite: &Path) -> Result<BTreeMap<String, Row>, Failure> {
    let output = Command::new(suite).arg("--list").output()?;
    let text = String::from_utf8(output.stdout)?;
    let row = |line: &str| {
        let mut fields = line.split('\t').map(str::to_owned);
        let name = fields.next()?;
        let (level, function, what) = (fields.next()?, fields.next()?, fields.next()?);
        Some((name, Row { level, function, what }))
    };
    Ok(text.lines().filter_map(row).collect())
}

/// The program of the suite: that of the repository, compiled, or the installed one.
fn suite() -> Result<PathBuf, Failure> {
    let sources = c_program::root().join("tests/conformance");
    if sources.is_dir() && c_program::library().is_some() {
        let mut files: Vec<PathBuf> = fs::read_dir(&sources)?.flatten().map(|e| e.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
        files.sort();
        return c_program::compile("conformance", &files);
    }
    let installed = c_program::folder()?.join(INSTALLED);
    if installed.exists() {
        return Ok(installed);
    }
    Err(format!(
        "no conformance suite: neither its sources in {} nor {} are there; run this from a build of the repository, \
         or install it with `cargo xtask install`",
        sources.display(),
        installed.display()
    )
    .into())
}
