//! The suites, and one of them on one mutant.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::mutant::{Answer, Mutant, Subject};
use super::proofs;
use crate::workspace;

/// A suite.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Suite {
    pub(super) name: &'static str,
    /// How long it may take on a mutant, which is several times what it takes else: what takes longer hangs,
    /// which a person would notice.
    seconds: u64,
}

/// The suites, cheapest first.
pub(super) const SUITES: &[Suite] = &[
    Suite { name: "bench", seconds: 150 },
    Suite { name: "cycles", seconds: 120 },
    Suite { name: "lockstep", seconds: 900 },
    Suite { name: "scenarios", seconds: 3600 },
    Suite { name: "proofs", seconds: 3600 },
];

/// The lockstep suites.
const LOCKSTEP: [&str; 3] = ["lockstep", "lockstep-host", "lockstep-lossy"];

/// Every figure of the RTL in cycles, as it is.
const CYCLES: &str = "cosim/cli/tests/bench_hw.txt";

/// Test programs by name, and the command `viaduct`.
pub(super) type Programs = BTreeMap<String, PathBuf>;

/// The bench of a block.
fn bench(block: &str) -> &'static str {
    match block {
        "send" | "recv" => "engine",
        "cq" | "csr" | "dma_read" | "dma_write" | "rq" => "pcie",
        "channel" => "channel",
        "event" => "event",
        "tpt" => "tpt",
        "admin" => "admin",
        "model" => "nic_model",
        _ => "vi",
    }
}

/// Runs a suite on a mutant. `seeds`: of each lockstep suite, instead of the tests of lockstep.
pub(super) fn answer(
    suite: &Suite,
    mutant: &Mutant,
    programs: &Programs,
    seeds: Option<u64>,
) -> Result<Answer, String> {
    let program =
        |name: &str| programs.get(name).ok_or_else(|| format!("there is no program {name}"));
    let patience = Duration::from_secs(suite.seconds);
    let test = |name: &str, filter: &str| {
        let mut command = Command::new(program(name)?);
        command.args(["--test-threads", "1", filter]);
        first(&mut command, mutant.number, patience, failed_test).map(Answer::from)
    };
    match (suite.name, seeds) {
        ("bench", _) => match test(bench(&mutant.block), "")? {
            Answer::NotFound if mutant.subject == Subject::Rtl => test("reset", &mutant.block),
            answer => Ok(answer),
        },
        ("cycles", _) if mutant.subject == Subject::Model => Ok(Answer::NoCase),
        ("cycles", _) => cycles(program("viaduct")?, mutant.number, patience),
        ("lockstep", None) => test("lockstep", "rtl::"),
        ("lockstep", Some(seeds)) => {
            for name in LOCKSTEP {
                let mut command = Command::new(program("viaduct")?);
                command.args(["cosim", "run", name, "--stop", "--seeds", &seeds.to_string()]);
                if let Some(found) = first(&mut command, mutant.number, patience, failed_seed)? {
                    return Ok(Answer::Found(format!("{name} {found}")));
                }
            }
            Ok(Answer::NotFound)
        }
        ("scenarios", _) => {
            test("e2e", if mutant.subject == Subject::Rtl { "rtl::" } else { "model::" })
        }
        _ if mutant.subject == Subject::Model => Ok(Answer::NoCase),
        _ => proofs::answer(mutant, program("viaduct")?),
    }
}

/// Whether a mutant has the figures in cycles of the RTL as it is.
fn cycles(viaduct: &Path, number: usize, patience: Duration) -> Result<Answer, String> {
    let own = std::env::temp_dir().join(format!("mutant-{number}.txt"));
    let mut command = Command::new(viaduct);
    command.args(["bench", "hw", "--snapshot"]).arg(&own);
    let failed = first(&mut command, number, patience, |_| None)?;
    let text = fs::read_to_string(&own).unwrap_or_default();
    // There is none if it failed.
    let _ = fs::remove_file(&own);
    let before = workspace::root().join(CYCLES);
    let before = fs::read_to_string(before).map_err(|error| format!("{CYCLES}: {error}"))?;
    Ok(failed.or_else(|| differing(&text, &before)).into())
}

/// The name of the first figure that is another one.
fn differing(text: &str, before: &str) -> Option<String> {
    let line = text.lines().zip(before.lines()).find(|(now, before)| now != before);
    let name = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    line.map(|(_, before)| name(before)).or_else(|| (text != before).then(|| "its end".to_owned()))
}

/// The test that a line of a test program says has failed.
fn failed_test(line: &str) -> Option<String> {
    let failed = line.starts_with("test ") && line.ends_with("FAILED");
    failed.then(|| line.split(' ').nth(1).map(str::to_owned)).flatten()
}

/// The seed that a line of `viaduct cosim run` says to run again.
fn failed_seed(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("  again  ")?.1.split_once("--first ")?;
    rest.split(' ').next().map(str::to_owned)
}

/// The first failure that a program reports when it runs on a mutant.
fn first(
    command: &mut Command,
    number: usize,
    patience: Duration,
    failure_in: fn(&str) -> Option<String>,
) -> Result<Option<String>, String> {
    let shown = Path::new(command.get_program()).display().to_string();
    let failed = |error: std::io::Error| format!("{shown}: {error}");
    command.env("VIADUCT_MUTANT", number.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let (to, lines) = mpsc::channel();
    // Ends with the program's output, or when nobody wants its lines any more.
    let output = child.stdout.take().ok_or("a program has no output")?;
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
        failure = failure.or_else(|| failure_in(&last));
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn failures_are_read() {
        let again = "  again      viaduct cosim run lockstep --first 7 --seeds 1";
        assert_eq!(failed_seed(again).as_deref(), Some("7"));
        assert_eq!(failed_seed("lockstep  10  10  0  1.0"), None);
        assert_eq!(failed_test("test rtl::a ... FAILED").as_deref(), Some("rtl::a"));
        assert_eq!(failed_test("test rtl::a ... ok"), None);
        assert_eq!((bench("recv"), bench("rq"), bench("model")), ("engine", "pcie", "nic_model"));
    }

    #[test]
    fn figures_are_compared() {
        let before = "rate 3 cycles\nlatency 5 cycles\n";
        assert_eq!(differing(before, before), None);
        assert_eq!(
            differing("rate 3 cycles\nlatency 6 cycles\n", before).as_deref(),
            Some("latency")
        );
        assert_eq!(differing("rate 3 cycles\n", before).as_deref(), Some("its end"));
    }

    #[test]
    fn the_first_failure_ends_a_suite() {
        let path = std::env::temp_dir().join(format!("mutate-{}.sh", std::process::id()));
        let script = "#!/bin/sh\necho test a ... ok\ncase $1 in\n\
            fails) echo test b ... FAILED; exec sleep 60;;\nhangs) exec sleep 60;;\n\
            crashes) exit 3;;\nesac\n";
        fs::write(&path, script).expect("a writable folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("own file");
        let run = |how, patience| {
            let mut command = Command::new(&path);
            first(command.arg(how), 1, Duration::from_secs(patience), failed_test).expect("it runs")
        };
        assert_eq!(run("fails", 50).as_deref(), Some("b"));
        assert_eq!(run("hangs", 1).as_deref(), Some("no end"));
        assert_eq!(run("crashes", 50).as_deref(), Some("exit status: 3 after `test a ... ok`"));
        assert_eq!(run("passes", 50), None);
        fs::remove_file(&path).expect("own file");
    }
}
