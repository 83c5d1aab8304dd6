//! `viaduct cosim coverage`: what the suites ran of the Verilog, and what they never did.

use crate::Failure;
use clap::Args;
use cosim::coverage::{Missed, Points, Reasons, Report, Row};
use std::fs;
use std::path::{Path, PathBuf};

/// Most unexplained names that are printed.
const SHOWN: usize = 40;

/// Tell what the suites ran of the Verilog, block by block.
///
/// Branches of the kernels, and bits of the registers, which count when they went up and down. What
/// never ran should have a reason in the list of reasons; the exit code is 0 if all of it has.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cargo xtask coverage                        run the suites with coverage, then this
  viaduct cosim coverage target/coverage      look at the last run again
  viaduct cosim coverage target/coverage/lockstep --missed    what lockstep alone never ran
  viaduct cosim coverage target/coverage --missed | grep recv.loader")]
pub(crate) struct Arguments {
    /// Folder with what was run (`*.cov`), also in folders of its own.
    folder: PathBuf,
    /// File with the reasons: lines of the form `pattern | why`; `*` in a pattern stands for any text, `[15:8]` for
    /// those bits.
    #[arg(long, value_name = "FILE", default_value = "cosim/coverage.txt")]
    reasons: PathBuf,
    /// Print everything that never ran, with its reason.
    #[arg(long)]
    missed: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let points = read(&arguments.folder)?;
    let file = arguments.reasons.display();
    let text =
        fs::read_to_string(&arguments.reasons).map_err(|error| format!("{file}: {error}"))?;
    let reasons = Reasons::parse(&text).map_err(|wrong| format!("{file}:\n{wrong}"))?;
    let report = Report::new(&points, &reasons);
    if arguments.missed {
        for missed in &report.missed {
            let why = missed.reason.map_or("?", |at| reasons.all()[at].why.as_str());
            println!("{} | {why}", missed.name);
        }
    } else {
        print_table(&report);
        print_reasons(&report, &reasons);
    }
    let unexplained: Vec<&Missed> = report.missed.iter().filter(|m| m.reason.is_none()).collect();
    if unexplained.is_empty() {
        return Ok(());
    }
    if !arguments.missed {
        println!("\nNever run, without a reason in {file}:");
        unexplained.iter().take(SHOWN).for_each(|missed| println!("  {}", missed.name));
        if unexplained.len() > SHOWN {
            println!("  and {} more (--missed prints all)", unexplained.len() - SHOWN);
        }
    }
    Err(format!("{} branches and bits were never run and have no reason", unexplained.len()).into())
}

/// All of what the processes of a run left in a folder.
fn read(folder: &Path) -> Result<Points, Failure> {
    let mut points = Points::new();
    if !add(&mut points, folder)? {
        let text = "no coverage data (*.cov); `cargo xtask coverage` makes some";
        return Err(format!("{}: {text}", folder.display()).into());
    }
    Ok(points)
}

/// Adds what is in a folder and in those that it has. False: nothing is.
fn add(points: &mut Points, folder: &Path) -> Result<bool, Failure> {
    let mut found = false;
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found |= add(points, &path)?;
        } else if path.extension().is_some_and(|extension| extension == "cov") {
            points.add(Points::read(&path)?);
            found = true;
        }
    }
    Ok(found)
}

#[expect(clippy::cast_precision_loss, reason = "counts of points are small")]
fn percent([done, all]: [usize; 2]) -> String {
    if all == 0 {
        return format!("{:>6} {:>6} {:>6}", "-", "-", "-");
    }
    format!("{done:>6} {all:>6} {:>5.1}%", 100.0 * done as f64 / all as f64)
}

fn print_table(report: &Report) {
    println!("{:<12} {:>20}   {:>20}", "", "branches", "register bits");
    println!(
        "{:<12} {:>6} {:>6} {:>6}   {:>6} {:>6} {:>6}",
        "block", "ran", "of", "", "ran", "of", ""
    );
    let print = |name: &str, row: Row| {
        println!("{name:<12} {}   {}", percent(row.branches), percent(row.bits));
    };
    report.rows.iter().for_each(|(name, row)| print(name, *row));
    print("all", report.total());
}

fn print_reasons(report: &Report, reasons: &Reasons) {
    println!("\nNever run, and why:");
    let mut idle = Vec::new();
    for (at, reason) in reasons.all().iter().enumerate() {
        match report.missed.iter().filter(|missed| missed.reason == Some(at)).count() {
            0 => idle.push(reason.pattern.as_str()),
            count => println!("{count:>6}  {}: {}", reason.pattern, reason.why),
        }
    }
    if !idle.is_empty() {
        println!("\nReasons for what was run all the same, and may go: {}", idle.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_without_data_are_named() {
        let folder = std::env::temp_dir().join(format!("viaduct-coverage-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let text = read(&folder).unwrap_err().to_string();
        assert!(text.contains("no coverage data"), "{text}");
        fs::remove_dir(&folder).unwrap();
        assert!(read(&folder).unwrap_err().to_string().contains("viaduct-coverage"));
    }

    #[test]
    fn the_list_of_reasons_is_well_formed() {
        let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../coverage.txt");
        let reasons = Reasons::parse(&fs::read_to_string(list).unwrap()).unwrap();
        assert!(!reasons.all().is_empty());
    }
}
