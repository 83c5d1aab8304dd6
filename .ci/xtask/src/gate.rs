//! `cargo xtask test`: every check of the repository, cheap ones first.
//!
//! All steps run even if one fails, and a table at the end says how each went: whoever waits half
//! an hour wants all the news. Steps that need tools install them first. A long step that uses one
//! processor runs beside those behind it, as a process of its own; its output is shown at the end.

mod long;
mod steps;

use std::process::{Command, ExitCode, Output};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use steps::{Needs, STEPS, Step};

/// Lines of what a failed step said that stand at the end once more.
const LAST_LINES: usize = 100;

/// How a step went.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed(String),
    /// Passed, but for what some tests do without.
    Partly(String),
    /// Why it could not be run.
    Skipped(&'static str),
}

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    model_only: bool,
    long: bool,
    only: Vec<String>,
    list: bool,
}

/// Runs the gate.
pub(crate) fn run(args: &[String]) -> crate::Outcome {
    let options = parse(args)?;
    if options.list {
        for step in options.steps() {
            let tools = if step.needs == Needs::Tools { " (needs tools)" } else { "" };
            println!("{:<16} {}{tools}", step.name, step.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let start = Instant::now();
    let chosen: Vec<&Step> = options.steps().iter().filter(|step| options.wants(step)).collect();
    let (mut results, mut beside) = (Vec::new(), Vec::new());
    for (index, step) in chosen.iter().enumerate() {
        let title = format!("=== {}/{} {}: {}", index + 1, chosen.len(), step.name, step.about);
        if step.beside && chosen.len() > 1 {
            println!("\n{title} (beside the others; shown at the end)");
            let is_built = results
                .iter()
                .any(|(name, verdict, _)| *name == steps::PLAIN && *verdict == Verdict::Passed);
            beside.push((title, Beside::start(step.name, is_built)?));
            continue;
        }
        println!("\n{title}");
        let begun = Instant::now();
        let verdict = (step.run)().unwrap_or_else(|message| {
            println!("error: {message}");
            Verdict::Failed(message)
        });
        results.push(end(step.name, verdict, begun.elapsed()));
    }
    for (title, step) in beside {
        println!("\n{title}");
        results.push(step.finish()?);
    }
    Ok(summary(&results, start.elapsed()))
}

/// A step's name, how it went, and how long it took.
type StepResult = (&'static str, Verdict, Duration);

/// Says how a step went.
fn end(name: &'static str, verdict: Verdict, took: Duration) -> StepResult {
    println!("=== {name} {} in {:.1} s", verdict.word(), took.as_secs_f64());
    (name, verdict, took)
}

/// A step that runs beside others.
struct Beside {
    name: &'static str,
    /// Gives its exit status, its output, and how long it took.
    thread: JoinHandle<std::io::Result<(Output, Duration)>>,
}

impl Beside {
    /// Starts the step as a process of its own.
    fn start(name: &'static str, is_built: bool) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("own program: {error}"))?;
        let thread = std::thread::spawn(move || {
            let begun = Instant::now();
            let mut command = Command::new(program);
            command.args(["test", "--only", name]);
            if is_built {
                command.env(steps::IS_BUILT, "1");
            }
            let output = command.output()?;
            Ok((output, begun.elapsed()))
        });
        Ok(Self { name, thread })
    }

    /// Waits for its end, and shows its output.
    fn finish(self) -> Result<StepResult, String> {
        let joined = self.thread.join().map_err(|_| format!("step {}: a panic", self.name))?;
        let (output, took) = joined.map_err(|error| format!("step {}: {error}", self.name))?;
        print!("{}", String::from_utf8_lossy(&output.stdout));
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        let verdict = if output.status.success() {
            Verdict::Passed
        } else {
            Verdict::Failed(format!("{}: see its output above", output.status))
        };
        Ok(end(self.name, verdict, took))
    }
}

impl Options {
    fn steps(&self) -> &'static [Step] {
        if self.long { long::STEPS } else { STEPS }
    }

    fn wants(&self, step: &Step) -> bool {
        if !self.only.is_empty() {
            return self.only.iter().any(|name| name == step.name);
        }
        match step.needs {
            Needs::Cargo => true,
            Needs::Tools => !self.model_only,
            Needs::CargoAlone => self.model_only,
        }
    }
}

impl Verdict {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
            Self::Partly(_) => "partly",
            Self::Skipped(_) => "skipped",
        }
    }
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut args = args.iter().peekable();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--model" => options.model_only = true,
            "--list" => options.list = true,
            "--long" => {
                options.long = true;
                if let Some(hours) = args.next_if(|arg| !arg.starts_with('-')) {
                    let hours = hours.parse().ok().filter(|hours| (0.0..10_000.0).contains(hours));
                    long::set_hours(hours.ok_or("--long takes a number of hours, or nothing")?);
                }
            }
            "--only" => {
                let name = args.next().ok_or("--only needs the name of a step")?;
                options.only.push(name.clone());
            }
            other => return Err(format!("unexpected argument `{other}`")),
        }
    }
    let unknown = |name: &&String| !options.steps().iter().any(|step| step.name == **name);
    if let Some(name) = options.only.iter().find(unknown) {
        return Err(format!("no step `{name}`: --list has them, and with --long the long ones"));
    }
    Ok(options)
}

/// Prints the table and gives the exit code of the whole.
fn summary(results: &[(&str, Verdict, Duration)], took: Duration) -> ExitCode {
    println!("\n{:<16} {:<8} {:>8}", "step", "result", "seconds");
    for (name, verdict, took) in results {
        let remark = match verdict {
            Verdict::Passed => "",
            Verdict::Failed(why) | Verdict::Partly(why) => why,
            Verdict::Skipped(why) => why,
        };
        let remark = remark.lines().next().unwrap_or_default();
        let row = format!("{name:<16} {:<8} {:>8.1}  {remark}", verdict.word(), took.as_secs_f64());
        println!("{}", row.trim_end());
    }
    let failed = results.iter().filter(|(_, verdict, _)| matches!(verdict, Verdict::Failed(_)));
    let names: Vec<&str> = failed.clone().map(|(name, _, _)| *name).collect();
    let total = took.as_secs_f64();
    if names.is_empty() {
        println!("\nall of it passed in {total:.0} s");
        return ExitCode::SUCCESS;
    }
    // Where a long log is cut, its end is kept.
    for (name, verdict, _) in failed {
        let Verdict::Failed(why) = verdict else { continue };
        let lines: Vec<&str> = why.lines().skip(1).collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        last.iter().for_each(|line| println!("{name}: {line}"));
    }
    println!("\nFAILED after {total:.0} s: {}", names.join(", "));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &[&str]) -> Result<Options, String> {
        parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn unknown_steps_and_options_are_refused() {
        assert!(options(&["--only", "nothing"]).is_err());
        assert!(options(&["--only"]).is_err());
        assert!(options(&["--only", "address"]).is_err());
        assert!(options(&["--only", "address", "--long"]).is_ok());
        assert!(options(&["--long", "--only", "address"]).is_ok());
        for bad in [&["--fast"][..], &["--long", "soon"], &["--long", "-1"], &["--long", "inf"]] {
            assert!(options(bad).is_err(), "{bad:?}");
        }
        let all = options(&[]).expect("no option");
        assert!(STEPS.iter().all(|step| all.wants(step) || step.needs == Needs::CargoAlone));
    }

    #[test]
    fn model_run_needs_no_tools() {
        let options = options(&["--model"]).expect("a known option");
        let chosen = STEPS.iter().filter(|step| options.wants(step));
        assert!(
            chosen.clone().count() > 0 && chosen.clone().all(|step| step.needs != Needs::Tools)
        );
    }
}
