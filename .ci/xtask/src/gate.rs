//! `cargo xtask test`: every check of the repository, cheap ones first.
//!
//! All steps run even if one fails, and a table at the end says how each went: whoever waits half
//! an hour wants all the news. Steps that need tools install them first. A step whose subject does
//! not exist is skipped, and the table says why.

mod steps;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use steps::{STEPS, Step};

/// How a step went.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed(String),
}

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    model_only: bool,
    only: Vec<String>,
    list: bool,
}

/// Runs the gate.
pub(crate) fn run(args: &[String]) -> crate::Outcome {
    let options = parse(args)?;
    if options.list {
        for step in STEPS {
            let tools = if step.needs_tools { " (needs tools)" } else { "" };
            println!("{:<16} {}{tools}", step.name, step.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let start = Instant::now();
    let chosen: Vec<&Step> = STEPS.iter().filter(|step| options.wants(step)).collect();
    let mut results = Vec::new();
    for (index, step) in chosen.iter().enumerate() {
        println!("\n=== {}/{} {}: {}", index + 1, chosen.len(), step.name, step.about);
        let begun = Instant::now();
        let verdict = (step.run)().unwrap_or_else(|message| {
            println!("error: {message}");
            Verdict::Failed(message)
        });
        let took = begun.elapsed();
        println!("=== {} {} in {:.1} s", step.name, verdict.word(), took.as_secs_f64());
        results.push((step.name, verdict, took));
    }
    Ok(summary(&results, start.elapsed()))
}

impl Options {
    fn wants(&self, step: &Step) -> bool {
        let named = self.only.is_empty() || self.only.iter().any(|name| name == step.name);
        named && !(self.model_only && step.needs_tools)
    }
}

impl Verdict {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
        }
    }
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--model" => options.model_only = true,
            "--list" => options.list = true,
            "--only" => {
                let name = args.next().ok_or("--only needs the name of a step")?;
                if !STEPS.iter().any(|step| step.name == name) {
                    return Err(format!("no step `{name}`: `cargo xtask test --list` has them"));
                }
                options.only.push(name.clone());
            }
            other => return Err(format!("unexpected argument `{other}`")),
        }
    }
    Ok(options)
}

/// Prints the table and gives the exit code of the whole.
fn summary(results: &[(&str, Verdict, Duration)], took: Duration) -> ExitCode {
    println!("\n{:<16} {:<8} {:>8}", "step", "result", "seconds");
    for (name, verdict, took) in results {
        let remark = match verdict {
            Verdict::Passed => "",
            Verdict::Failed(why) => why,
        };
        // The whole message stands at the step itself.
        let remark = remark.lines().next().unwrap_or_default();
        let row = format!("{name:<16} {:<8} {:>8.1}  {remark}", verdict.word(), took.as_secs_f64());
        println!("{}", row.trim_end());
    }
    let failed = results.iter().filter(|(_, verdict, _)| matches!(verdict, Verdict::Failed(_)));
    let names: Vec<&str> = failed.map(|(name, _, _)| *name).collect();
    let total = took.as_secs_f64();
    if names.is_empty() {
        println!("\nall of it passed in {total:.0} s");
        return ExitCode::SUCCESS;
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
        assert!(options(&["--fast"]).is_err());
        assert!(options(&[]).is_ok_and(|options| STEPS.iter().all(|step| options.wants(step))));
    }

    #[test]
    fn model_run_needs_no_tools() {
        let options = options(&["--model"]).expect("a known option");
        let chosen = STEPS.iter().filter(|step| options.wants(step));
        assert!(chosen.clone().count() > 0 && chosen.clone().all(|step| !step.needs_tools));
    }
}
