//! `cargo xtask mutate`: how many mutants the suites find, of the RTL or of the model, and which planted bugs.
//!
//! ```text
//!   build once, with all edits in the Verilog (cosim/build/mutants.rs) or in the model (`model`)
//!   each mutant: the bench of its block ──► cycles ──► lockstep ──► the scenarios, until one fails
//!   each planted bug (cosim/build/planted.rs): all of them, for the table of docs/verification.md
//! ```
//!
//! | file | what |
//! |---|---|
//! | `mutant` | mutants, and what became of them |
//! | `options` | the command line |
//! | `build` | programs with the mutants |
//! | `proofs` | the proofs of a planted bug's modules |
//! | `model` | mutants of the model: a copy of the repository with edits |
//! | `suites` | a suite on a mutant |
//! | `source_line` | where the RTL has a line of the Verilog |
//! | `equivalent` | mutants that nobody can find, each with its reason |
//! | `summary`, `table` | what is printed |

mod build;
mod equivalent;
mod model;
mod mutant;
mod options;
#[path = "../../../cosim/build/planted.rs"]
mod planted;
mod proofs;
#[path = "../../../cosim/src/random.rs"]
#[expect(dead_code, unreachable_pub, reason = "of cosim, of which mutants need a part")]
mod random;
mod source_line;
mod suites;
mod summary;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::tools::{self, Toolset};
use crate::{Outcome, workspace};
use mutant::{Fate, Mutant, Run, Subject};
use options::Options;
use suites::Programs;

/// See the module.
pub(crate) fn run(args: &[String]) -> Outcome {
    let options = Options::parse(args)?;
    tools::ensure(Toolset::Sim)?;
    if options.runs("proofs") {
        tools::ensure(Toolset::Synth)?;
    }
    let mut rows = Vec::new();
    let mut is_good = true;
    for &subject in &options.subjects {
        let (mutants, programs) = match subject {
            Subject::Rtl => rtl(&options)?,
            Subject::Model => model::build(&options)?,
        };
        let fates = run_all(&mutants, &programs, &options);
        is_good &= fates.len() == mutants.len();
        let shown: Vec<_> = fates.iter().map(|(at, fate)| (&mutants[*at], fate.clone())).collect();
        println!("{}", summary::text(&shown));
        is_good &=
            shown.iter().all(|(mutant, fate)| mutant.reason.is_none() || fate.found().is_none());
        rows.extend(fates.into_iter().map(|(at, fate)| (mutants[at].clone(), fate)));
    }
    if options.planted {
        table::show(&rows)?;
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the suites on all mutants. Gives those on which they ran, by index.
fn run_all(mutants: &[Mutant], programs: &Programs, options: &Options) -> Vec<(usize, Fate)> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let fates = Mutex::new(Vec::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(mutant) = mutants.get(at) else { return };
            let start = Instant::now();
            let fate = fate(mutant, programs, options);
            let seconds = start.elapsed().as_secs_f64();
            let what = match &fate {
                Ok(fate) => fate.found().map_or_else(
                    || format!("SURVIVES: {}", mutant.shown()),
                    |run| {
                        format!(
                            "found by {}: {}",
                            run.suite,
                            run.answer.found().unwrap_or_default()
                        )
                    },
                ),
                Err(why) => format!("not run: {why}"),
            };
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            let Mutant { number, name, block, .. } = mutant;
            println!("[{count}/{}] {number} {block} {name} {what} ({seconds:.1} s)", mutants.len());
            if let Ok(fate) = fate {
                fates.lock().unwrap_or_else(PoisonError::into_inner).push((at, fate));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut fates = fates.into_inner().unwrap_or_else(PoisonError::into_inner);
    fates.sort_by_key(|(at, _)| *at);
    fates
}

/// Runs suites on a mutant: until one finds it, or all of them on a planted bug, whose line of the table is written if
/// that is wanted.
fn fate(mutant: &Mutant, programs: &Programs, options: &Options) -> Result<Fate, String> {
    let mut runs = Vec::new();
    for &suite in &options.suites {
        let start = Instant::now();
        let answer = suites::answer(suite, mutant, programs, options.seeds)?;
        let is_over = answer.found().is_some() && !options.planted;
        runs.push(Run { suite: suite.name, answer, took: start.elapsed() });
        if is_over {
            break;
        }
    }
    let fate = Fate { runs };
    if options.write {
        table::write(mutant, &fate)?;
    }
    Ok(fate)
}

/// Where mutants are built, apart from every other build.
fn target() -> PathBuf {
    workspace::target_dir().join("mutate")
}

/// That of the RTL with mutants.
fn rtl_target() -> PathBuf {
    target().join("rtl")
}

/// Mutants of the RTL, and the programs that have them.
fn rtl(options: &Options) -> Result<(Vec<Mutant>, Programs), String> {
    let target = rtl_target();
    let block = options.block.as_ref().map_or(String::new(), |block| format!(":{block}"));
    let wanted = if options.planted {
        "planted".to_owned()
    } else {
        format!("{}:{}{block}", options.count, options.seed)
    };
    eprintln!("building the RTL with mutants (minutes)");
    let features = "rtl,cosim/blocks";
    let job = build::Job {
        root: &workspace::root(),
        target: &target,
        tests: &options.tests("cosim"),
        features,
        mutants: Some(&wanted),
        command: options.needs_command().then_some(features),
    };
    let programs =
        build::build(&job).map_err(|said| format!("the mutants do not build:\n{said}"))?;
    let read = |name: &str| {
        let path = target.join(name);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut mutants = mutant::parse(&read("mutants.tsv")?);
    mutants.retain(|mutant| options.wants(mutant.number, &mutant.name));
    if options.planted {
        mutants.retain(|mutant| options.block.as_ref().is_none_or(|own| *own == mutant.block));
        for mutant in &mut mutants {
            let bug = planted::RTL.iter().find(|bug| bug.name == mutant.name);
            mutant.what = bug.map_or(String::new(), |bug| bug.what.to_owned());
        }
    }
    let verilog = read("verilog/top.v")?;
    source_line::find(&verilog, &mut mutants)?;
    equivalent::mark(Subject::Rtl, &mut mutants, |module, before| {
        let fits = |(own, line): (&str, &str)| {
            equivalent::fits(module, own) && equivalent::fits(before, line.trim())
        };
        source_line::lines(&verilog).any(fits)
    })?;
    Ok((mutants, programs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_bugs_of_the_model_fit() {
        for bug in planted::MODEL {
            for edit in bug.edits {
                let path = workspace::root().join(model::SOURCES).join(edit.place);
                let text = fs::read_to_string(&path).expect(edit.place);
                let count = text.matches(edit.from).count();
                assert_eq!(count, 1, "{} in {}: `{}`", bug.name, edit.place, edit.from);
            }
        }
    }
}
