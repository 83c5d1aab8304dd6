//! The measurements of `viaduct bench vipl`: what VIPL costs a program in C.
//!
//! `via-user/libvipl/bench/fastpath.c` makes the calls, on NICs whose doorbells are mapped memory
//! that leads nowhere, as those of a card are mapped; callgrind counts the instructions from the
//! call to the return. Two counts are compared, so what comes only once is not in the figures.

use super::{Bar, Row};
use crate::Failure;
use crate::c_program;
use std::path::Path;
use std::process::Command;

const COUNTS: [u32; 2] = [200, 400];

struct Spec {
    name: &'static str,
    bar: f64,
    /// Modes of the program, each with the function that is counted; the worst counts.
    modes: &'static [(&'static str, &'static str)],
}

const SPECS: [Spec; 4] = [
    Spec { name: "vipl.post_token", bar: 60.0, modes: &[("token", "VipPostSend")] },
    Spec { name: "vipl.post_push", bar: 100.0, modes: &[("push", "VipPostSend")] },
    Spec {
        name: "vipl.done_empty",
        bar: 15.0,
        modes: &[("empty", "VipSendDone"), ("waiting", "VipSendDone")],
    },
    Spec { name: "vipl.done_hit", bar: 60.0, modes: &[("hit", "VipSendDone")] },
];
const QUIET: [&str; 3] = ["vipl.syscalls", "vipl.allocations", "vipl.locks"];

/// Measures the rows whose names contain `filter`.
pub(crate) fn measure(filter: &str) -> Result<Vec<Row>, Failure> {
    let names: Vec<_> = SPECS.iter().map(|spec| spec.name).chain(QUIET).collect();
    if !names.iter().any(|name| name.contains(filter)) {
        return Err(format!("no row contains '{filter}': {}", names.join(", ")).into());
    }
    let source = c_program::root().join("via-user/libvipl/bench/fastpath.c");
    let program = c_program::compile("fastpath", &[source])?;
    let mut rows = Vec::new();
    for spec in SPECS.iter().filter(|spec| spec.name.contains(filter)) {
        rows.push(instructions(&program, spec)?);
    }
    if QUIET.iter().any(|name| name.contains(filter)) {
        let all = quiet(&program)?;
        rows.extend(all.into_iter().filter(|row| row.name.contains(filter)));
    }
    Ok(rows)
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
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
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
        let note = format!("in {} calls", 6 * COUNTS[0]);
        Row { name, value: Some(value), unit: "calls", bar, ok: Some(bar.holds(value)), note }
    };
    Ok([row(QUIET[0], calls), row(QUIET[1], allocations), row(QUIET[2], calls)])
}
