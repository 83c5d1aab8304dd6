//! `viaduct report`: the papers' figures again, as one page.
//!
//! | module | |
//! |---|---|
//! | `figures` | which figures there are, and in which order |
//! | `layers` | those of SOVIA and Stream Sockets |
//! | `lines` | a figure of lines from points of sweeps |
//! | `beside` | a paper's table with what was measured beside |
//! | `hardware` | rows and anatomy of `viaduct bench hw`, from the snapshot of the RTL |
//! | `papers` | what the papers print |
//! | `chart`, `bars`, `scale`, `svg` | drawing |
//! | `page` | HTML and CSS |

mod bars;
mod beside;
mod chart;
mod figures;
mod hardware;
mod layers;
mod lines;
mod page;
mod papers;
mod scale;
mod svg;

use std::path::{Path, PathBuf};

use clap::Args;

use self::hardware::Hardware;
use crate::Failure;
use crate::bench::series::{self, Clock, Point, describe};
use crate::bench::sweep::{
    Options, bandwidth, calls, connect, cq, latency, register, streams, threads,
};

/// Rows and anatomy of the RTL, which the tests of a build with it compare.
const RTL: &str = include_str!("../tests/bench_hw.txt");
/// The sweeps of the RTL by its own clock, which they compare too.
const RTL_SWEEPS: &str = include_str!("../tests/bench_rtl.jsonl");

/// Bytes of messages of streams.
const STREAMS: [usize; 6] = [4, 64, 1024, 4096, 32_768, 50_000];

/// Draw the papers' figures again, as one page.
///
/// The page is one HTML file with its drawings: it needs no network and no script. It draws the sweeps
/// of `viaduct bench latency`, `bandwidth`, `cq`, `connect`, `register`, `streams` and `calls`, the values
/// that the papers print, and the RTL in cycles. Without --input it measures shm: and the model first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct report                                     measures (some minutes), then writes report.html
  viaduct report --quick -o quick.html               the same in a minute, less exact
  viaduct bench latency shm: vfio-user:nics --json > latency.jsonl
  viaduct bench bandwidth shm: vfio-user:nics --json > bandwidth.jsonl
  viaduct report --input latency.jsonl bandwidth.jsonl

Exit code 0: the page is written. 1: it is not, or other programs keep the processors busy (--anyway
measures nevertheless). 2: the command line is wrong.")]
pub(crate) struct Arguments {
    /// The file to write.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Files of lines that `viaduct bench SWEEP --json` printed, instead of measuring.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    input: Vec<PathBuf>,
    /// Fewer and shorter turns.
    #[arg(long, conflicts_with = "input")]
    quick: bool,
    /// Measure also if other programs keep the processors busy.
    #[arg(long, conflicts_with = "input")]
    anyway: bool,
}

/// A heading with figures.
#[derive(Debug)]
pub(crate) struct Section {
    id: &'static str,
    title: &'static str,
    figures: Vec<Figure>,
}

/// A figure with all that is said about it.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    id: String,
    title: String,
    /// Which figure of which paper it draws again.
    again: String,
    about: String,
    clock: String,
    machine: String,
    svgs: Vec<String>,
    /// Letters of marks, with what they mark.
    marks: Vec<(String, String)>,
    /// Names of colours, from the first on.
    legend: Vec<String>,
    tables: Vec<Table>,
}

/// A table under a figure.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut points =
        if arguments.input.is_empty() { measure(arguments)? } else { read(&arguments.input)? };
    if points.is_empty() {
        return Err("the input has no points: give files of `viaduct bench latency --json`".into());
    }
    if !points.iter().any(|point| point.transport == "sim:rtl") {
        points.extend(series::read(RTL_SWEEPS)?.0);
    }
    let sections = figures::sections(&points, &Hardware::read(RTL));
    let count: usize = sections.iter().map(|section| section.figures.len()).sum();
    let page = page::page(&sections, &summary(&points));
    let path = &arguments.output;
    std::fs::write(path, page).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("{}: {count} figures of {} points", path.display(), points.len());
    Ok(())
}

/// What stands above the figures.
fn summary(points: &[Point]) -> Vec<String> {
    let mut lines = vec![
        "Figures of the papers that Viaduct implements, drawn again with its own measurements. Of the \
         papers there are only the values that their texts print: no curve is copied or guessed. Each \
         figure names its clock: wall is what a program waits on this machine; simulated is what \
         hardware of 250 MHz would take, at its pins. A line is a median of many turns; the tables \
         have p99 (what 99 of 100 keep to) and spread (distance of the quartiles, as a part of the \
         median)."
            .to_owned(),
    ];
    let mut walls = points.iter().filter(|point| point.clock == Clock::Wall);
    if let Some(first) = walls.next() {
        let busiest = walls.fold(first, |busiest, point| {
            if point.machine.others_busy > busiest.machine.others_busy { point } else { busiest }
        });
        lines.push(format!("Measured on {}.", describe(&first.machine)));
        let others = busiest.machine.others_busy;
        if others > 0.15 {
            lines.push(format!(
                "Caution: other programs kept up to {others:.2} processors busy during a sweep. Wall-clock \
                 figures of so busy a machine show its scheduler more than the NIC."
            ));
        }
    }
    lines
}

fn read(files: &[PathBuf]) -> Result<Vec<Point>, Failure> {
    let one = |path: &Path| -> Result<Vec<Point>, Failure> {
        let failed = |why: &dyn core::fmt::Display| format!("{}: {why}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
        Ok(series::read(&text).map_err(|error| failed(&error))?.0)
    };
    let all: Result<Vec<_>, Failure> = files.iter().map(|path| one(path)).collect();
    Ok(all?.concat())
}

type Sweep<'a> = &'a dyn Fn() -> Result<Vec<Point>, Failure>;

/// A short set of sweeps of the devices that are always there.
fn measure(arguments: &Arguments) -> Result<Vec<Point>, Failure> {
    let options = |sizes: &[usize], blocking: bool| Options {
        devices: vec!["shm:".to_owned(), "sim:model".to_owned()],
        sizes: sizes.to_vec(),
        blocking,
        references: true,
        quick: arguments.quick,
        anyway: arguments.anyway,
    };
    let both: Vec<usize> =
        bandwidth::SIZES.into_iter().filter(|size| *size <= bandwidth::LARGEST_BOTH).collect();
    // The model has no threads; what polls waits where threads share processors.
    let several =
        |sizes: &[usize]| Options { devices: vec!["shm:".to_owned()], ..options(sizes, true) };
    let ping_pong = || {
        threads::measure(
            &several(&threads::PING_PONG_SIZES),
            &threads::COUNTS,
            threads::Task::PingPong,
        )
    };
    let stream = || {
        threads::measure(&several(&threads::STREAM_SIZES), &threads::COUNTS, threads::Task::Stream)
    };
    // Fewer sizes and shorter turns than the sweeps alone, for the sake of the time: some points.
    let layers = |sizes: &[usize]| Options {
        devices: vec!["shm:".to_owned()],
        quick: true,
        ..options(sizes, false)
    };
    let sweeps: [(&str, Sweep<'_>); 10] = [
        ("latency", &|| latency::measure(&options(&latency::SIZES, true))),
        ("bandwidth", &|| bandwidth::measure(&options(&bandwidth::SIZES, true), false)),
        ("bandwidth in both directions", &|| bandwidth::measure(&options(&both, false), true)),
        ("round trips of several threads", &ping_pong),
        ("bandwidth of several threads", &stream),
        ("completion queues", &|| cq::measure(&options(&cq::SIZES, false))),
        ("connections", &|| connect::measure(&options(&[], false))),
        ("streams", &|| streams::measure(&layers(&STREAMS))),
        ("remote calls", &|| calls::measure(&layers(&calls::SIZES))),
        ("registration", &|| register::measure(&options(&register::SIZES, false))),
    ];
    let (count, mut points) = (sweeps.len(), Vec::new());
    for (at, (name, sweep)) in sweeps.into_iter().enumerate() {
        eprintln!("{} of {count}: {name}", at + 1);
        points.extend(sweep()?);
    }
    // Cycles a byte of both directions would be a second line of the same name.
    let mut seen = Vec::new();
    points.retain(|point| {
        let key = (point.figure.clone(), point.transport.clone(), point.x.to_bits());
        let is_new = !seen.contains(&key);
        seen.push(key);
        is_new
    });
    Ok(points)
}
