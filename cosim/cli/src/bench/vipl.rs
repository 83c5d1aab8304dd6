//! The measurements of `viaduct bench vipl`: what VIPL costs a program in C.
//!
//! `via-user/libvipl/bench/fastpath.c` makes the calls, on NICs whose doorbells are mapped memory
//! that leads nowhere, as those of a card are mapped; callgrind counts the instructions from the
//! call to the return. Two counts are compared, so what comes only once is not in the figures.
//!
//! The row `conformance.native` runs the conformance suite: all of it on the model and, in a build
//! with the RTL, its subset there too.

use super::{Bar, Row};
use crate::Failure;
use crate::c_program;
use crate::conformance::{Job, Suite};
use crate::progress::Progress;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Far apart: what comes only once is not the same in each run. A queue has room for 1,024.
const COUNTS: [u32; 2] = [200, 1000];

struct Spec {
    name: &'static str,
    bar: f64,
    /// Modes of the program, each with the function that is counted; the worst counts.
    modes: &'static [(&'static str, &'static str)],
}

// The goals of two rows are 140 and 30 (decision 0022): these bars hold what is reached.
const SPECS: [Spec; 4] = [
    Spec { name: "vipl.post_token", bar: 90.0, modes: &[("token", "VipPostSend")] },
    Spec { name: "vipl.post_push", bar: 175.0, modes: &[("push", "VipPostSend")] },
    Spec {
        name: "vipl.done_empty",
        bar: 35.0,
        modes: &[("empty", "VipSendDone"), ("waiting", "VipSendDone")],
    },
    Spec { name: "vipl.done_hit", bar: 90.0, modes: &[("hit", "VipSendDone")] },
];
const CONFORMANCE: &str = "conformance.native";
const QUIET: [&str; 3] = ["vipl.syscalls", "vipl.allocations", "vipl.locks"];

/// Measures the rows whose names contain `filter`.
pub(crate) fn measure(filter: &str) -> Result<Vec<Row>, Failure> {
    let names = SPECS.iter().map(|spec| spec.name).chain(QUIET).chain([CONFORMANCE]);
    let names: Vec<_> = names.collect();
    if !names.iter().any(|name| name.contains(filter)) {
        return Err(format!("no row contains '{filter}': {}", names.join(", ")).into());
    }
    let progress = Progress::default();
    let mut rows = Vec::new();
    if names.iter().any(|name| *name != CONFORMANCE && name.contains(filter)) {
        fast_path(filter, &progress, &mut rows)?;
    }
    if CONFORMANCE.contains(filter) {
        rows.push(conformance(&progress)?);
    }
    Ok(rows)
}

/// `libvipl` in the profile in which programs use it.
fn library() -> Result<PathBuf, Failure> {
    let path = c_program::folder()?.with_file_name("release").join("libvipl_c.so");
    let missing = "build it with `cargo build --release -p libvipl`";
    if path.exists() { Ok(path) } else { Err(format!("no {}: {missing}", path.display()).into()) }
}

fn fast_path(filter: &str, progress: &Progress, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let source = c_program::root().join("via-user/libvipl/bench/fastpath.c");
    let program = c_program::compile("fastpath", &library()?, &[source], &[])?;
    for spec in SPECS.iter().filter(|spec| spec.name.contains(filter)) {
        progress.start(spec.name);
        rows.push(instructions(&program, spec)?);
    }
    if QUIET.iter().any(|name| name.contains(filter)) {
        progress.start(QUIET[0]);
        let all = quiet(&program)?;
        rows.extend(all.into_iter().filter(|row| row.name.contains(filter)));
    }
    Ok(())
}

/// Runs the conformance suite.
fn conformance(progress: &Progress) -> Result<Row, Failure> {
    progress.start(CONFORMANCE);
    let suite = Suite::compile()?;
    let mut runs = vec![("sim:model", false)];
    if cfg!(feature = "rtl") {
        runs.push(("sim:rtl", true));
    }
    let (mut passed, mut wanted) = (0, 0);
    let mut notes = Vec::new();
    for (device, rtl_rows) in runs {
        let job = Job { device: device.to_owned(), rtl_rows, quiet: true, ..Job::default() };
        let count = suite.rows().values().filter(|row| row.rtl || !rtl_rows).count();
        let (mut ended, mut good) = (0, 0);
        suite.run(&job, |outcome| {
            ended += 1;
            match outcome.failure {
                None => good += 1,
                Some(failure) => eprintln!("{device}: {failure}"),
            }
            progress.tick(|| format!("{device}, {ended} of {count} rows"));
        })?;
        notes.push(format!("{device}: {good} of {count}"));
        passed += good;
        wanted += count;
    }
    let value = f64::from(u32::try_from(passed)?);
    let bar = Bar::AtLeast(f64::from(u32::try_from(wanted)?));
    let ok = Some(bar.holds(value));
    Ok(Row { name: CONFORMANCE, value: Some(value), unit: "rows", bar, ok, note: notes.join(", ") })
}

fn instructions(program: &Path, spec: &Spec) -> Result<Row, Failure> {
    let mut value: f64 = 0.0;
    let mut notes = Vec::new();
    for (mode, function) in spec.modes {
        let [few, many] =
            [COUNTS[0], COUNTS[1]].map(|count| collect(program, mode, function, count));
        let each = (many? - few?) / f64::from(COUNTS[1] - COUNTS[0]);
        notes.push(format!("{mode} {each:.1}"));
        value = value.max(each);
    }
    let note = if notes.len() > 1 { notes.join(", ") } else { String::new() };
    let bar = Bar::AtMost(spec.bar);
    let (name, unit) = (spec.name, "instructions");
    Ok(Row { name, value: Some(value), unit, bar, ok: Some(bar.holds(value)), note })
}

/// Instructions in calls of `function`.
fn collect(program: &Path, mode: &str, function: &str, count: u32) -> Result<f64, Failure> {
    let output = Command::new("valgrind")
        // Fair: threads that poll must not keep the simulated NICs from running.
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--fair-sched=try"])
        .arg(format!("--toggle-collect={function}"))
        .arg(program)
        .args([mode, &count.to_string()])
        .output()
        .map_err(|error| format!("cannot run valgrind ({error}): apt-get install valgrind"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected : ").map(|(_, n)| n));
    match collected.map(|number| number.trim().parse::<f64>()) {
        Some(Ok(number)) if output.status.success() && number > 0.0 => Ok(number),
        _ => Err(format!("`fastpath {mode} {count}` under callgrind failed:\n{text}").into()),
    }
}

/// System calls and allocations on the fast path. A lock that is not free ends in a system call, so
/// there are as many contended ones at most.
fn quiet(program: &Path) -> Result<[Row; 3], Failure> {
    let output = Command::new(program).args(["quiet", &COUNTS[0].to_string()]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [calls, allocations] = numbers[..] else {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`fastpath quiet` failed: {text}{error}").into());
    };
    let row = |name, value: f64| {
        let bar = Bar::AtMost(0.0);
        let note = format!("in {} calls", 7 * COUNTS[0]);
        Row { name, value: Some(value), unit: "calls", bar, ok: Some(bar.holds(value)), note }
    };
    Ok([row(QUIET[0], calls), row(QUIET[1], allocations), row(QUIET[2], calls)])
}
