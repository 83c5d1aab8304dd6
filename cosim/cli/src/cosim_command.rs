//! `viaduct cosim`: lists and runs the co-simulation suites.

use crate::Failure;
use crate::suites::{SUITES, Suite};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Instant;

/// Co-simulation suites: the model and the Verilated RTL on the same programs.
#[derive(Debug, Subcommand)]
pub(crate) enum Arguments {
    /// Name the suites.
    List,
    /// Run suites; the exit code is 0 only if every seed passes.
    #[command(after_help = "Examples:
  viaduct cosim run                          every suite, 10 seeds
  viaduct cosim run lockstep --seeds 1000
  viaduct cosim run lossy --first 4711 --seeds 1")]
    Run {
        /// Run only suites whose name contains this.
        filter: Option<String>,
        /// Seeds of each suite.
        #[arg(long, default_value_t = 10)]
        seeds: u64,
        /// First seed.
        #[arg(long, default_value_t = 1)]
        first: u64,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match arguments {
        Arguments::List => {
            for suite in SUITES {
                println!("{:<16} {}", suite.name, suite.about);
            }
            hint();
            Ok(())
        }
        Arguments::Run { filter, seeds, first } => {
            run_suites(filter.as_deref().unwrap_or(""), *first, *seeds)
        }
    }
}

fn hint() {
    if !cfg!(feature = "rtl") {
        eprintln!("note: this build has no RTL; `cargo viaduct cosim` builds one that has it");
    }
}

fn run_suites(filter: &str, first: u64, seeds: u64) -> Result<(), Failure> {
    let chosen: Vec<&Suite> = SUITES.iter().filter(|suite| suite.name.contains(filter)).collect();
    if chosen.is_empty() {
        return Err(format!("no suite has {filter:?} in its name; see `viaduct cosim list`").into());
    }
    hint();
    let mut failed_runs = 0;
    println!("{:<16} {:>6} {:>6} {:>6} {:>9}", "suite", "seeds", "passed", "failed", "seconds");
    for suite in chosen {
        let start = Instant::now();
        let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} seeds {elapsed}")?;
        let bar = ProgressBar::new(seeds).with_style(style).with_message(suite.name);
        let mut failed = 0;
        for seed in first..first + seeds {
            if let Err(why) = (suite.run)(seed) {
                failed += 1;
                bar.suspend(|| {
                    println!(
                        "{why}\n  again: viaduct cosim run {} --first {seed} --seeds 1",
                        suite.name
                    );
                });
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        let seconds = start.elapsed().as_secs_f64();
        failed_runs += failed;
        println!("{:<16} {seeds:>6} {:>6} {failed:>6} {seconds:>9.1}", suite.name, seeds - failed);
    }
    if failed_runs == 0 { Ok(()) } else { Err(format!("{failed_runs} runs failed").into()) }
}
