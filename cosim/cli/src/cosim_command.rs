//! `viaduct cosim`: lists and runs the co-simulation suites.

use crate::Failure;
use crate::coverage_command;
use crate::progress::Bar;
use crate::serve_command;
use crate::suites::{self, SUITES, Suite};
use clap::Subcommand;
use cosim::lockstep::MOST_TRIES;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Failures of a suite that get waveforms; the first ones say enough.
const TRACED_FAILURES: u64 = 3;

/// Co-simulation: suites of the model and the Verilated RTL, and a simulator for other programs.
#[derive(Debug, Subcommand)]
pub(crate) enum Arguments {
    /// Name the suites.
    List,
    Coverage(coverage_command::Arguments),
    Serve(serve_command::Arguments),
    /// Run suites; the exit code is 0 only if every seed passes.
    ///
    /// The first failures of each suite have waveforms of both nodes, around where they fail.
    #[command(after_help = "Examples:
  viaduct cosim run                          every suite, 10 seeds
  viaduct cosim run lockstep --seeds 1000
  viaduct cosim run lossy --first 4711 --seeds 1
  viaduct cosim run lossy --first 4711 --seeds 1 --shrink
  viaduct cosim run lockstep --seeds 1000 --stop
  viaduct cosim run --waves waves            where waveforms of failures go")]
    Run {
        /// Run only suites whose name contains this.
        filter: Option<String>,
        /// Seeds of each suite.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
        seeds: u64,
        /// First seed.
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// Folder for the waveforms of failures.
        #[arg(long, value_name = "DIR", default_value = "target/cosim")]
        waves: PathBuf,
        /// Look for a smaller program that fails, for the first failure of each suite. Each try takes as long
        /// as a seed or less, and there may be some hundreds.
        #[arg(long)]
        shrink: bool,
        /// End each suite with the first seed that fails.
        #[arg(long)]
        stop: bool,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match arguments {
        Arguments::List => {
            for suite in SUITES {
                println!("{:<16} {}", suite.name, suite.about);
            }
            Ok(())
        }
        Arguments::Coverage(arguments) => coverage_command::run(arguments),
        Arguments::Serve(arguments) => serve_command::run(arguments),
        Arguments::Run { filter, seeds, first, waves, shrink, stop } => {
            let filter = filter.as_deref().unwrap_or("");
            let seeds = Seeds { first: *first, count: *seeds, stops: *stop };
            run_suites(SUITES, filter, seeds, waves, *shrink)
        }
    }
}

/// The seeds of each suite.
#[derive(Clone, Copy, Debug)]
struct Seeds {
    first: u64,
    count: u64,
    /// The first that fails is the last.
    stops: bool,
}

fn hint() {
    if !cfg!(feature = "rtl") {
        eprintln!("note: this build has no RTL; `cargo viaduct cosim` builds one that has it");
    }
}

fn run_suites(
    suites: &[Suite],
    filter: &str,
    seeds: Seeds,
    waves: &Path,
    shrinks: bool,
) -> Result<(), Failure> {
    let whole = suites.iter().any(|suite| suite.name == filter);
    // Without a name, those that this build can run.
    let runs = |suite: &Suite| !filter.is_empty() || cfg!(feature = "rtl") || !suite.rtl;
    let fits = |suite: &&Suite| {
        runs(suite) && (suite.name == filter || !whole && suite.name.contains(filter))
    };
    let chosen: Vec<&Suite> = suites.iter().filter(fits).collect();
    if chosen.is_empty() {
        return Err(format!("no suite has {filter:?} in its name; see `viaduct cosim list`").into());
    }
    hint();
    let mut failed_runs = 0;
    println!("{:<16} {:>6} {:>6} {:>6} {:>9}", "suite", "seeds", "passed", "failed", "seconds");
    for suite in chosen {
        let start = Instant::now();
        let template = "{msg} [{bar:30}] {pos}/{len} seeds {elapsed}";
        let Seeds { first, count, stops } = seeds;
        let bar = Bar::new(suite.name, count, "seeds", template)?;
        let (mut failed, mut passed, mut first_failed) = (0, 0, None);
        for seed in first..first.saturating_add(count) {
            let prefix = prefix(waves, suite, &seed.to_string());
            let prefix = prefix.as_deref().filter(|_| failed < TRACED_FAILURES);
            match (suite.run)(seed, prefix) {
                Ok(_) => passed += 1,
                Err(why) => {
                    failed += 1;
                    first_failed.get_or_insert(seed);
                    bar.print(&failure(suite, seed, &why, prefix));
                }
            }
            bar.set(failed + passed);
            if stops && failed != 0 {
                break;
            }
        }
        bar.finish();
        let seconds = start.elapsed().as_secs_f64();
        failed_runs += failed;
        let ran = failed + passed;
        println!("{:<16} {ran:>6} {passed:>6} {failed:>6} {seconds:>9.1}", suite.name);
        if let Some(seed) = first_failed.filter(|_| shrinks) {
            println!("{}", smaller(suite, seed, waves)?);
        }
    }
    if failed_runs == 0 { Ok(()) } else { Err(format!("{failed_runs} runs failed").into()) }
}

/// A smaller program than that of a seed that failed, with its waveforms in a folder.
fn smaller(suite: &Suite, seed: u64, folder: &Path) -> Result<String, Failure> {
    let template = "{msg} [{bar:30}] {pos} of at most {len} tries {elapsed}";
    let bar = Bar::new("smaller program", MOST_TRIES as u64, "tries", template)?;
    let prefix = prefix(folder, suite, &format!("{seed}-smaller"));
    let smaller = (suite.shrink)(seed, prefix.as_deref(), &mut |tries| bar.set(tries as u64));
    bar.finish();
    let Some(smaller) = smaller else {
        return Ok(format!("seed {seed} passed now: not repeatable!"));
    };
    let [left, whole] = smaller.messages;
    let mut text = format!("smaller program, {left} of {whole} messages: {}", smaller.divergence);
    let _ = write!(text, "\n{}", smaller.program);
    if let Some([a, b]) = prefix.as_deref().map(suites::waveforms) {
        let _ = write!(text, "\n  waveforms  {}, {}", a.display(), b.display());
    }
    Ok(text)
}

/// Where the waveforms of a run go, if this build writes any.
fn prefix(folder: &Path, suite: &Suite, run: &str) -> Option<PathBuf> {
    suites::WAVEFORM.map(|_| folder.join(format!("{}-{run}", suite.name)))
}

/// What to print of a failed seed, with where its waveforms are.
fn failure(suite: &Suite, seed: u64, why: &str, prefix: Option<&Path>) -> String {
    let mut text =
        format!("{why}\n  again      viaduct cosim run {} --first {seed} --seeds 1", suite.name);
    if let Some([a, b]) = prefix.map(suites::waveforms) {
        let _ = write!(text, "\n  waveforms  {}, {}", a.display(), b.display());
    } else if suites::WAVEFORM.is_none() {
        text.push_str("\n  waveforms  none: this build lacks the feature `trace`");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILING: Suite = Suite {
        name: "failing",
        about: "",
        rtl: false,
        run: |seed, prefix| {
            let name = prefix.map(|path| path.display().to_string());
            Err(format!("seed {seed} with {name:?}"))
        },
        shrink: |_, _, _| None,
    };

    #[test]
    fn a_failure_names_its_waveforms() {
        let text = failure(&FAILING, 7, "first divergence", Some(Path::new("waves/failing-7")));
        assert!(text.contains("first divergence"), "{text}");
        assert!(text.contains("viaduct cosim run failing --first 7 --seeds 1"), "{text}");
        assert!(text.contains("\n  waveforms  waves/failing-7-a."), "{text}");
        let none = failure(&FAILING, 7, "", None);
        assert_eq!(none.contains("waveforms"), suites::WAVEFORM.is_none(), "{none}");
    }

    #[test]
    fn failures_count_and_filters_must_fit() {
        let run = |filter, stops| {
            let seeds = Seeds { first: 1, count: 5, stops };
            let outcome = run_suites(&[FAILING], filter, seeds, &std::env::temp_dir(), true);
            outcome.map_err(|error| error.to_string())
        };
        assert_eq!(run("fail", false), Err("5 runs failed".into()));
        assert_eq!(run("fail", true), Err("1 runs failed".into()));
        assert!(run("other", false).is_err());
    }
}
