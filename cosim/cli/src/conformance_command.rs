//! `viaduct conformance`: the conformance suite of VIPL, in C against `vipl.h`, on any device.

use crate::Failure;
use crate::conformance::{Job, Outcome, Row, Suite};
use clap::{Parser, ValueEnum};
use std::collections::BTreeMap;

/// Levels of conformance; each holds the ones before it.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Level {
    Early,
    Functional,
    Full,
}

/// Parts of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subset {
    /// Rows that between them use every function that reaches the device, for the slow RTL.
    Rtl,
}

/// Run the conformance suite of VIPL.
///
/// It is compiled with `cc` against `libvipl`; each of its rows runs in a process of its own, with
/// two NICs, or with --processes 2 in two, with one NIC each.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  viaduct conformance --device sim:model
  viaduct conformance --device sim:rtl --subset rtl
  viaduct conformance --processes 2                  over a simulator that it starts
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
    /// Processes of a row. With 2, each end of a row that has two is in its own; sim:model and
    /// sim:rtl are then served by a `viaduct cosim serve` that is started for it.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    processes: u8,
    /// Rows up to this level.
    #[arg(long, value_enum, default_value_t = Level::Full)]
    level: Level,
    /// Only rows of this part.
    #[arg(long, value_enum)]
    subset: Option<Subset>,
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
    let suite = Suite::compile()?;
    if arguments.list {
        list(suite.rows());
        return Ok(());
    }
    let level = arguments.level.to_possible_value().map(|value| value.get_name().to_owned());
    let job = Job {
        filter: arguments.filter.clone(),
        device: arguments.device.clone(),
        peer: arguments.peer.clone(),
        level: level.unwrap_or_else(|| "full".to_owned()),
        rtl_rows: arguments.subset == Some(Subset::Rtl),
        apart: arguments.processes == 2,
        quiet: false,
    };
    let mut outcomes = Vec::new();
    suite.run(&job, |outcome| outcomes.push(outcome))?;
    report(suite.rows(), &outcomes, job.apart)
}

fn list(rows: &BTreeMap<String, Row>) {
    println!("| Row | Function | What | Level | Subset |\n|---|---|---|---|---|");
    for (name, row) in rows {
        let subset = if row.rtl { "rtl" } else { "" };
        let line =
            format!("| `{name}` | {} | {} | {} | {subset}", row.function, row.what, row.level);
        println!("{} |", line.trim_end());
    }
}

fn report(rows: &BTreeMap<String, Row>, outcomes: &[Outcome], apart: bool) -> Result<(), Failure> {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for outcome in outcomes {
        let function = rows.get(&outcome.name).map_or("?", |row| row.function.as_str());
        let tally = tallies.entry(function).or_default();
        match outcome.failure {
            None => tally.passed += 1,
            Some(_) => tally.failed += 1,
        }
    }
    println!("{:<30} {:>6} {:>6} {:>6}", "function", "rows", "passed", "failed");
    let (mut passed, mut failed) = (0, 0);
    for (function, tally) in &tallies {
        let total = tally.passed + tally.failed;
        println!("{function:<30} {total:>6} {:>6} {:>6}", tally.passed, tally.failed);
        passed += tally.passed;
        failed += tally.failed;
    }
    println!("{:<30} {:>6} {passed:>6} {failed:>6}", "all", passed + failed);
    if apart {
        let two = outcomes.iter().filter(|outcome| outcome.apart).count();
        println!(
            "{two} rows passed with each end in a process of its own, {} in one process",
            passed - two
        );
    }
    for failure in outcomes.iter().filter_map(|outcome| outcome.failure.as_ref()) {
        println!("{failure}");
    }
    match (passed, failed) {
        (0, 0) => Err("no row ran; see --list".into()),
        (_, 0) => Ok(()),
        _ => Err(format!("{failed} rows failed").into()),
    }
}
