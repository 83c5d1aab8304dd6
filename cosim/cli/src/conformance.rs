//! The conformance suite of VIPL: compiling it, running it, reading what it says.

use crate::Failure;
use crate::c_program;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod server;

use server::Served;

/// Seconds after which a row has hung. The RTL takes some for rows that the model does at once.
const ROW_SECONDS: [u32; 2] = [60, 600];

/// What is to be run.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Part of the names of the rows.
    pub(crate) filter: String,
    /// URL of the device of node 0.
    pub(crate) device: String,
    /// The same of node 1, where it does not follow.
    pub(crate) peer: Option<String>,
    /// Rows up to this level.
    pub(crate) level: String,
    /// Only the rows for the RTL.
    pub(crate) rtl_rows: bool,
    /// Each end in a process of its own.
    pub(crate) apart: bool,
    /// Without what the library writes to standard error; many rows have it complain.
    pub(crate) quiet: bool,
}

/// Every row, on the model, in one process.
impl Default for Job {
    fn default() -> Self {
        Self {
            filter: String::new(),
            device: "sim:model".to_owned(),
            peer: None,
            level: "full".to_owned(),
            rtl_rows: false,
            apart: false,
            quiet: false,
        }
    }
}

impl Job {
    /// The arguments of the suite that select rows.
    fn selection(&self) -> Vec<String> {
        let mut words = vec![self.filter.as_str(), "--level", &self.level];
        if self.rtl_rows {
            words.extend(["--subset", "rtl"]);
        }
        words.into_iter().map(str::to_owned).collect()
    }
}

/// A row of the suite.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) level: String,
    pub(crate) function: String,
    /// Whether it is one of those for the RTL.
    pub(crate) rtl: bool,
    pub(crate) what: String,
}

/// What became of a row.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    /// What failed, with the place in the source; None if it passed.
    pub(crate) failure: Option<String>,
    /// Whether its ends ran in two processes.
    pub(crate) apart: bool,
}

/// The suite, compiled.
#[derive(Debug)]
pub(crate) struct Suite {
    program: PathBuf,
    rows: BTreeMap<String, Row>,
}

impl Suite {
    /// Compiles the suite of the repository.
    pub(crate) fn compile() -> Result<Self, Failure> {
        Self::compile_with("conformance", &[])
    }

    /// Compiles the suite with more rows, under this name.
    fn compile_with(name: &str, more: &[PathBuf]) -> Result<Self, Failure> {
        let sources = c_program::root().join("tests/conformance");
        let mut files: Vec<PathBuf> = fs::read_dir(&sources)
            .map_err(|error| {
                let place = sources.display();
                format!("no conformance suite in {place} ({error}): run this where it was built")
            })?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
        files.sort();
        files.extend_from_slice(more);
        let program = c_program::compile(
            name,
            &c_program::library("libvipl")?,
            &files,
            &c_program::functions()?,
        )?;
        let rows = rows(&program, &[])?;
        Ok(Self { program, rows })
    }

    /// Its rows by name.
    pub(crate) const fn rows(&self) -> &BTreeMap<String, Row> {
        &self.rows
    }

    /// Runs rows; `each` is called for every selected row, as it ends. A row of which the suite reports
    /// nothing has failed, and so has one that it reports twice.
    pub(crate) fn run(&self, job: &Job, mut each: impl FnMut(Outcome)) -> Result<(), Failure> {
        if job.device.starts_with("sim:rtl") && !cfg!(feature = "rtl") {
            let text = "this build has no RTL; `cargo viaduct conformance --device sim:rtl` builds one that has it";
            return Err(text.into());
        }
        let served = match Served::kind(&job.device) {
            Some(kind) if job.apart => Some(Served::start(kind?)?),
            _ => None,
        };
        let device = served.as_ref().map_or_else(|| job.device.clone(), Served::device);
        let mut arguments = job.selection();
        let mut missing: BTreeSet<String> = rows(&self.program, &arguments)?.into_keys().collect();
        arguments.extend(["--device".to_owned(), device]);
        arguments.extend(job.peer.iter().flat_map(|peer| ["--peer".to_owned(), peer.clone()]));
        let slow = job.device.starts_with("sim:rtl") || job.rtl_rows;
        let seconds = ROW_SECONDS[usize::from(slow)].to_string();
        arguments.extend(["--seconds".to_owned(), seconds]);
        if job.apart {
            arguments.extend(["--processes", "2"].map(str::to_owned));
        }
        let mut command = Command::new(&self.program);
        if job.quiet {
            command.stderr(Stdio::null());
        }
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("no output of the suite")?;
        for line in BufReader::new(output).lines() {
            let Some(mut outcome) = outcome(&line?) else { continue };
            if !missing.remove(&outcome.name) {
                let text = format!("FAIL {}: reported twice, or not selected", outcome.name);
                outcome.failure.get_or_insert(text);
            }
            each(outcome);
        }
        for name in missing {
            let failure = Some(format!("FAIL {name}: the suite reports nothing of it"));
            each(Outcome { name, failure, apart: false });
        }
        // Exit code 1 stands for failed rows, which were reported.
        match child.wait()?.code() {
            Some(0 | 1) => Ok(()),
            _ => Err("the conformance suite did not run: see above".into()),
        }
    }
}

/// What a line of the suite says of a row: `ok NAME`, `ok NAME in two processes`, `FAIL NAME: WHY`.
fn outcome(line: &str) -> Option<Outcome> {
    if let Some(rest) = line.strip_prefix("ok ") {
        let (name, apart) = rest.split_once(' ').map_or((rest, false), |(name, _)| (name, true));
        return Some(Outcome { name: name.to_owned(), failure: None, apart });
    }
    let name = line.strip_prefix("FAIL ")?.split(':').next()?;
    Some(Outcome { name: name.to_owned(), failure: Some(line.to_owned()), apart: false })
}

/// The rows that these arguments select.
fn rows(program: &Path, selection: &[String]) -> Result<BTreeMap<String, Row>, Failure> {
    let output = Command::new(program).args(selection).arg("--list").output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let text = String::from_utf8(output.stdout)?;
    let row = |line: &str| {
        let mut fields = line.split('\t').map(str::to_owned);
        let (name, level, function) = (fields.next()?, fields.next()?, fields.next()?);
        let (rtl, what) = (fields.next()? == "rtl", fields.next()?);
        Some((name, Row { level, function, rtl, what }))
    };
    Ok(text.lines().filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_suite_are_understood() {
        let passed = outcome("ok rdma_write").unwrap();
        assert!(passed.name == "rdma_write" && passed.failure.is_none() && !passed.apart);
        assert!(outcome("ok rdma_write in two processes").is_some_and(|row| row.apart));
        let failed = outcome("FAIL rdma_write: rdma.c:3: a: b").unwrap();
        assert!(failed.name == "rdma_write" && failed.failure.is_some());
        assert!(outcome("519 rows, 0 failed").is_none());
    }

    /// Rows that end their process, or the suite's, in ways of their own.
    const BAD_ROWS: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
ROW(FULL, zz_1_exits, "-", "exit with success") { exit(0); }
ROW(FULL, zz_2_exits_badly, "-", "exit without a word") { exit(1); }
ROW(FULL, zz_3_passes, "-", "nothing") {}
ROW(FULL, zz_4_reports_another, "-", "the report of another row") { puts("ok zz_3_passes"); }
ROW(FULL, zz_5_crashes, "-", "a signal") { abort(); }
ROW(FULL, zz_6_ends_the_suite, "-", "the end of the suite") { kill(getppid(), SIGKILL); exit(0); }
ROW(FULL, zz_7_never_begins, "-", "no suite is left for it") {}
"#;

    #[test]
    fn every_selected_row_has_one_outcome() {
        let source = c_program::folder().unwrap().join(format!("bad-{}.c", std::process::id()));
        let frame = c_program::root().join("tests/conformance/frame.h");
        fs::write(&source, format!("#define _GNU_SOURCE\n#include {frame:?}\n{BAD_ROWS}")).unwrap();
        let suite = Suite::compile_with("conformance-bad", core::slice::from_ref(&source));
        fs::remove_file(source).unwrap();
        let suite = suite.unwrap();
        let mut passed = BTreeMap::<String, Vec<bool>>::new();
        let job = Job { filter: "zz_".to_owned(), ..Job::default() };
        let ended = suite.run(&job, |outcome| {
            passed.entry(outcome.name).or_default().push(outcome.failure.is_none());
        });
        assert!(ended.is_err(), "the suite was killed");
        let passed: Vec<_> = passed.into_values().collect();
        let expected: [&[bool]; 7] =
            [&[false], &[false], &[true, false], &[true], &[false], &[false], &[false]];
        assert_eq!(passed, expected);
    }
}
