//! The conformance suite of VIPL: compiling it, running it, reading what it says.

use crate::Failure;
use crate::c_program;
use std::collections::BTreeMap;
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
        let program = c_program::compile("conformance", &files, &c_program::functions()?)?;
        let rows = rows(&program)?;
        Ok(Self { program, rows })
    }

    /// Its rows by name.
    pub(crate) const fn rows(&self) -> &BTreeMap<String, Row> {
        &self.rows
    }

    /// Runs rows; `each` hears of every one as it ends.
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
        let mut command = Command::new(&self.program);
        command.arg(&job.filter).args(["--level", &job.level, "--device", &device]);
        if let Some(peer) = &job.peer {
            command.args(["--peer", peer]);
        }
        if job.rtl_rows {
            command.args(["--subset", "rtl"]);
        }
        if job.apart {
            command.args(["--processes", "2"]);
        }
        let slow = job.device.starts_with("sim:rtl") || job.rtl_rows;
        command.args(["--seconds", &ROW_SECONDS[usize::from(slow)].to_string()]);
        if job.quiet {
            command.stderr(Stdio::null());
        }
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("no output of the suite")?;
        for line in BufReader::new(output).lines() {
            if let Some(outcome) = outcome(&line?) {
                each(outcome);
            }
        }
        // Exit code 1 says that rows failed, which was told.
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

fn rows(program: &Path) -> Result<BTreeMap<String, Row>, Failure> {
    let output = Command::new(program).arg("--list").output()?;
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
}
