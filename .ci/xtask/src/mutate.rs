//! `cargo xtask mutate`: how many mutants of the RTL the suites find.
//!
//! ```text
//!   build once, with all edits in the Verilog (cosim/build/mutants.rs)
//!   each mutant: the bench of its block ──► lockstep ──► the scenarios, until one fails
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::tools::{self, Toolset};
use crate::{Outcome, workspace};

/// The suites, cheapest first, and how many seconds each may take on a mutant, which is several times what it
/// takes else: what takes longer hangs, which a person would notice.
const SUITES: [(&str, u64); 3] = [("bench", 240), ("lockstep", 900), ("scenarios", 3600)];

/// A mutant, as the build lists it.
#[derive(Clone, Debug)]
struct Mutant {
    number: usize,
    block: String,
    /// Module and line of it, before, after.
    text: String,
}

/// What became of a mutant.
#[derive(Debug)]
enum Fate {
    /// By this test of this suite.
    Killed(&'static str, String),
    Survived,
}

#[derive(Debug)]
struct Options {
    block: Option<String>,
    count: usize,
    seed: u64,
    /// Of [`SUITES`].
    suites: Vec<(&'static str, u64)>,
}

/// See the module.
pub(crate) fn run(args: &[String]) -> Outcome {
    let options = parse(args)?;
    tools::ensure(Toolset::Sim)?;
    let programs = build(&options)?;
    let folder = target();
    let list = folder.join("mutants.tsv");
    let text = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let mutants: Vec<Mutant> = text.lines().filter_map(mutant).collect();
    let next = AtomicUsize::new(0);
    let fates = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    let fate = fate(mutant, &programs, &options.suites);
                    let seconds = start.elapsed().as_secs_f64();
                    let what = match &fate {
                        Ok(Fate::Killed(suite, test)) => format!("killed by {suite}: {test}"),
                        Ok(Fate::Survived) => format!("SURVIVES: {}", mutant.text),
                        Err(why) => format!("not run: {why}"),
                    };
                    let (number, block) = (mutant.number, &mutant.block);
                    println!("[{number}/{}] {block} {what} ({seconds:.1} s)", mutants.len());
                    fates.lock().unwrap_or_else(PoisonError::into_inner).insert(number, fate);
                }
            });
        }
    });
    let fates = fates.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(summary(&mutants, &fates))
}

fn parse(args: &[String]) -> Result<Options, String> {
    const USAGE: &str = "usage: cargo xtask mutate [--block B] [--count N] [--seed S] \
        [--suites bench,lockstep,scenarios]";
    let mut options = Options { block: None, count: 40, seed: 1, suites: SUITES.to_vec() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(USAGE);
        match arg.as_str() {
            "--block" => options.block = Some(value()?.clone()),
            "--count" => options.count = value()?.parse().map_err(|_| USAGE)?,
            "--seed" => options.seed = value()?.parse().map_err(|_| USAGE)?,
            "--suites" => {
                let of = |name: &str| SUITES.into_iter().find(|(suite, _)| *suite == name);
                let chosen: Option<Vec<_>> = value()?.split(',').map(of).collect();
                options.suites = chosen.ok_or(USAGE)?;
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

/// The build of mutants, apart from every other one.
fn target() -> PathBuf {
    workspace::target_dir().join("mutate")
}

/// Test programs by the names of their suites.
fn build(options: &Options) -> Result<BTreeMap<String, PathBuf>, String> {
    let block = options.block.as_ref().map_or(String::new(), |block| format!(":{block}"));
    let mut command = workspace::cargo();
    command.args(["test", "--no-run", "--package", "cosim", "--package", "tests"]);
    command.args(["--features", "rtl,cosim/blocks"]).envs(tools::env());
    command.env("CARGO_TARGET_DIR", target());
    command.env("VIADUCT_MUTANTS", format!("{}:{}{block}", options.count, options.seed));
    let failed = |error: std::io::Error| format!("cannot run cargo: {error}");
    eprintln!("building the RTL with {} mutants (minutes)", options.count);
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(failed)?;
    let mut programs = BTreeMap::new();
    for line in child.stderr.take().into_iter().flat_map(|text| BufReader::new(text).lines()) {
        let line = line.map_err(failed)?;
        if let Some((_, path)) =
            line.trim_start().strip_prefix("Executable ").and_then(|rest| rest.split_once(" ("))
        {
            // Cargo puts a hash behind the name.
            let path = PathBuf::from(path.trim_end_matches(')'));
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let suite = name.rsplit_once('-').map_or(name.as_str(), |(suite, _)| suite);
            programs.insert(suite.to_owned(), path);
        } else if !line.trim_start().starts_with("Compiling ") {
            eprintln!("{line}");
        }
    }
    if child.wait().map_err(failed)?.success() {
        Ok(programs)
    } else {
        Err("the mutants do not build: see above".to_owned())
    }
}

fn mutant(line: &str) -> Option<Mutant> {
    let mut fields = line.splitn(3, '\t');
    let number = fields.next()?.parse().ok()?;
    let block = fields.next()?.to_owned();
    Some(Mutant { number, block, text: fields.next()?.replace('\t', " | ") })
}

/// The bench of a block.
fn bench(block: &str) -> &'static str {
    match block {
        "send" | "recv" => "engine",
        "cq" | "csr" | "dma_read" | "dma_write" | "rq" => "pcie",
        "channel" => "channel",
        "event" => "event",
        "tpt" => "tpt",
        "admin" => "admin",
        _ => "vi",
    }
}

fn fate(
    mutant: &Mutant,
    programs: &BTreeMap<String, PathBuf>,
    suites: &[(&'static str, u64)],
) -> Result<Fate, String> {
    for &(suite, seconds) in suites {
        let (name, filter) = match suite {
            "bench" => (bench(&mutant.block), ""),
            "lockstep" => (suite, "rtl::"),
            _ => ("e2e", "rtl::"),
        };
        let program = programs.get(name).ok_or_else(|| format!("there is no test {name}"))?;
        let patience = Duration::from_secs(seconds);
        if let Some(test) = first_failure(program, (filter, patience), mutant.number)? {
            return Ok(Fate::Killed(suite, test));
        }
    }
    Ok(Fate::Survived)
}

/// The first test of a suite that fails on a mutant.
fn first_failure(
    program: &Path,
    (filter, patience): (&str, Duration),
    number: usize,
) -> Result<Option<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let mut command = Command::new(workspace::root().join(program));
    command.args(["--test-threads", "1", filter]).env("VIADUCT_MUTANT", number.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let (to, lines) = mpsc::channel();
    // Ends with the program's output, or when nobody wants its lines any more.
    let output = child.stdout.take().ok_or("a test has no output")?;
    std::thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| to.send(line))
    });
    let end = Instant::now() + patience;
    let (mut last, mut failure) = (String::new(), None);
    while failure.is_none() {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => last = line,
            Err(RecvTimeoutError::Timeout) => failure = Some("no end".to_owned()),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if last.starts_with("test ") && last.ends_with("FAILED") {
            failure = last.split(' ').nth(1).map(str::to_owned);
        }
    }
    if failure.is_some() {
        // It may have ended meanwhile.
        let _ = child.kill();
    }
    let status = child.wait().map_err(failed)?;
    // A crash has no line of its own.
    let crash = (!status.success()).then(|| format!("{status} after `{last}`"));
    Ok(failure.or(crash))
}

fn summary(mutants: &[Mutant], fates: &BTreeMap<usize, Result<Fate, String>>) -> ExitCode {
    let mut by: BTreeMap<&str, usize> = BTreeMap::new();
    for fate in fates.values().flatten() {
        let suite = match fate {
            Fate::Killed(suite, _) => suite,
            Fate::Survived => "nobody",
        };
        *by.entry(suite).or_default() += 1;
    }
    println!("\n{} mutants", mutants.len());
    for (suite, count) in &by {
        println!("{count:>5} found by {suite}");
    }
    for mutant in mutants {
        if matches!(fates.get(&mutant.number), Some(Ok(Fate::Survived))) {
            println!("survives: {} {} {}", mutant.number, mutant.block, mutant.text);
        }
    }
    let is_whole = fates.values().all(Result::is_ok);
    if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_lists_are_read() {
        let line = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let options = parse(&line("--block recv --count 7 --seed 3 --suites lockstep"));
        let options = options.expect("options");
        assert_eq!(options.suites, [SUITES[1]]);
        assert_eq!((options.block.as_deref(), options.count, options.seed), (Some("recv"), 7, 3));
        assert!(parse(&line("--count many")).is_err() && parse(&line("--suites all")).is_err());
        let mutant = mutant("12\trecv\tcheck\t40\ta = b & c;\ta = b | c;").expect("a line");
        assert_eq!((mutant.number, mutant.block.as_str()), (12, "recv"));
        assert_eq!(mutant.text, "check | 40 | a = b & c; | a = b | c;");
        assert_eq!(bench(&mutant.block), "engine");
    }

    #[test]
    fn the_first_failure_ends_a_suite() {
        use std::os::unix::fs::PermissionsExt;

        let path = std::env::temp_dir().join(format!("mutate-{}.sh", std::process::id()));
        let script = "#!/bin/sh\necho test a ... ok\ncase $3 in\n\
            fails) echo test b ... FAILED; exec sleep 60;;\nhangs) exec sleep 60;;\n\
            crashes) exit 3;;\nesac\n";
        fs::write(&path, script).expect("a writable folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("own file");
        let run = |filter, patience| {
            first_failure(&path, (filter, Duration::from_secs(patience)), 1).expect("it runs")
        };
        assert_eq!(run("fails", 50).as_deref(), Some("b"));
        assert_eq!(run("hangs", 1).as_deref(), Some("no end"));
        assert_eq!(run("crashes", 50).as_deref(), Some("exit status: 3 after `test a ... ok`"));
        assert_eq!(run("passes", 50), None);
        fs::remove_file(&path).expect("own file");
    }
}
