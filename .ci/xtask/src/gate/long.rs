//! The steps of `cargo xtask test --long [HOURS]`: what the gate does, with more seeds, mutants and fuzzing for
//! so many hours in all, and what needs a nightly toolchain.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Verdict;
use super::steps::{Needs, RTL_FEATURES, Step, cargo, own, run};
use crate::tools::{self, Toolset};

/// Seeds of each random test of a block's bench.
const BENCH_SEEDS: &str = "200";
/// Hours of a run whose user does not say how many.
const HOURS: f64 = 12.0;
/// What the user said.
static ASKED: OnceLock<f64> = OnceLock::new();
/// Steps that go on as long as they may: each has an equal share of the time.
const SHARES: f64 = 3.0;
/// Seeds of each lockstep suite that are run at once, and mutants.
const SEEDS_AT_ONCE: u64 = 20;
/// Programs of lockstep that have failed, which every run of the gate has among its seeds.
const LOCKSTEP_FAILED: &str = "cosim/tests/lockstep-failed.txt";
/// Processes of `shm:` that are killed.
const KILLS: &str = "1000";
/// The crates whose `unsafe` code the sanitizers watch.
const UNSAFE_CRATES: [&str; 3] = ["port", "host-driver", "vipl"];

/// In the order in which they run.
pub(super) const STEPS: &[Step] = &[
    Step::new("address", "unsafe code under AddressSanitizer", Needs::Cargo, || {
        sanitizer("address")
    }),
    Step::new("thread", "unsafe code under ThreadSanitizer", Needs::Cargo, || sanitizer("thread")),
    Step::new(
        "bench-seeds",
        "the benches of the blocks with more seeds",
        Needs::Tools,
        bench_seeds,
    ),
    Step::new(
        "lockstep-seeds",
        "the lockstep suites with fresh seeds",
        Needs::Tools,
        lockstep_seeds,
    ),
    Step::new("fuzz", "bad input, sought by coverage", Needs::Cargo, fuzz),
    Step::new("mutants", "mutants of the RTL, and what finds them", Needs::Tools, mutants),
    Step::new("coverage", "what the suites never run of the RTL", Needs::Tools, coverage),
    Step::new("kills", "processes of shm: that are killed, many times", Needs::Cargo, kills),
];

/// Runs the tests of the crates with `unsafe` code under a sanitizer.
fn sanitizer(kind: &str) -> Result<Verdict, String> {
    let nightly = |program: &str| {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", program]);
        command
    };
    if !nightly("cargo").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Ok(Verdict::Skipped("no nightly toolchain (rustup toolchain install nightly)"));
    }
    let host = nightly("rustc").args(["--print", "host-tuple"]).output();
    let host = host.map_err(|error| format!("cannot run rustc: {error}"))?;
    let host = String::from_utf8_lossy(&host.stdout).trim().to_owned();
    let mut command = nightly("cargo");
    command.current_dir(crate::workspace::root()).args(["test", "--target", &host]);
    // The standard library is not built for the sanitizer; what it does is not watched.
    let ignored = crate::workspace::root().join(".ci/tsan.txt");
    command.env("TSAN_OPTIONS", format!("suppressions={}", ignored.display()));
    let flags = format!("-Zsanitizer={kind} -Cunsafe-allow-abi-mismatch=sanitizer");
    command.env("RUSTFLAGS", flags).env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC");
    command.arg("--target-dir").arg(crate::workspace::target_dir().join(kind)).arg("--lib");
    for name in UNSAFE_CRATES {
        command.args(["--package", name]);
    }
    run(&mut command)
}

fn bench_seeds() -> Result<Verdict, String> {
    tools::ensure(Toolset::Sim)?;
    let mut command = cargo();
    command.args(["test", "--workspace", "--release", "--no-fail-fast"]).args(RTL_FEATURES);
    for bench in ["admin", "channel", "engine", "event", "pcie", "tpt", "vi"] {
        command.args(["--test", bench]);
    }
    run(command.env("SEEDS", BENCH_SEEDS).envs(tools::env()))
}

/// Says how many hours the run is to take, beside what takes as long as it takes.
pub(super) fn set_hours(hours: f64) {
    let _ = ASKED.set(hours);
}

/// The time of one step.
fn share() -> Duration {
    Duration::from_secs_f64(3600.0 * ASKED.get().unwrap_or(&HOURS) / SHARES)
}

/// Numbers that no run had before, most likely, each this far from the one before, until the step's time is over.
fn fresh(step: u64) -> impl Iterator<Item = u64> {
    let (start, share) = (Instant::now(), share());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_secs()..)
        .step_by(usize::try_from(step).unwrap_or(1))
        .take_while(move |_| start.elapsed() < share)
}

/// Fresh seeds of every lockstep suite. Those that fail are kept in the tree.
fn lockstep_seeds() -> Result<Verdict, String> {
    tools::ensure(Toolset::Sim)?;
    let mut failed = Vec::new();
    for first in fresh(SEEDS_AT_ONCE) {
        let mut command = cargo();
        command.args(["run", "--release", "--package", "viaduct", "--features", "rtl,trace", "--"]);
        command.args(["cosim", "run", "lockstep", "--first", &first.to_string()]);
        command.args(["--seeds", &SEEDS_AT_ONCE.to_string()]).envs(tools::env());
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cannot run cargo: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        print!("{said}");
        let before = failed.len();
        failed.extend(said.lines().filter_map(failed_seed));
        if !output.status.success() && failed.len() == before {
            return Ok(Verdict::Failed(output.status.to_string()));
        }
    }
    if failed.is_empty() {
        return Ok(Verdict::Passed);
    }
    let path = crate::workspace::root().join(LOCKSTEP_FAILED);
    let kept = fs::read_to_string(&path).and_then(|text| fs::write(&path, text + &failed.concat()));
    kept.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Verdict::Failed(format!("{} programs, kept in {LOCKSTEP_FAILED}", failed.len())))
}

/// The line of a program that failed, for the list of those: from how a report says to run it again.
fn failed_seed(line: &str) -> Option<String> {
    let again = line.trim().strip_prefix("again")?.trim();
    let (suite, rest) = again.strip_prefix("viaduct cosim run ")?.split_once(" --first ")?;
    let seed = rest.split(' ').next()?;
    Some(format!("{suite} {seed}\n"))
}

/// Mutants, some at a time.
fn mutants() -> Result<Verdict, String> {
    for seed in fresh(1) {
        let args = ["--count", &SEEDS_AT_ONCE.to_string(), "--seed", &seed.to_string()];
        let verdict = own(crate::mutate::run(&args.map(str::to_owned)))?;
        if verdict != Verdict::Passed {
            return Ok(verdict);
        }
    }
    Ok(Verdict::Passed)
}

/// Which parts of the RTL nothing runs.
fn coverage() -> Result<Verdict, String> {
    own(crate::coverage::run(&[]))
}

/// Every target for its share of the step's; an input that fails is kept in the tree.
fn fuzz() -> Result<Verdict, String> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let targets = crate::fuzz::targets()?.len();
    let seconds = share().as_secs() * jobs as u64 / targets.max(1) as u64;
    let args = ["--seconds", &seconds.to_string(), "--jobs", &jobs.to_string()];
    own(crate::fuzz::run(&args.map(str::to_owned)))
}

fn kills() -> Result<Verdict, String> {
    for (package, test, variable) in
        [("soft-nic", "shm_processes", "SHM_KILLS"), ("libvipl", "kills", "VIPL_KILLS")]
    {
        let mut command = cargo();
        command.args(["test", "--package", package, "--test", test, "kill"]);
        let verdict = run(command.env(variable, KILLS))?;
        if !matches!(verdict, Verdict::Passed) {
            return Ok(verdict);
        }
    }
    Ok(Verdict::Passed)
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn a_failed_program_is_found_in_a_report() {
        let line = "  again      viaduct cosim run lockstep-host --first 201 --seeds 1";
        assert_eq!(failed_seed(line).as_deref(), Some("lockstep-host 201\n"));
        assert_eq!(failed_seed("lockstep-host 20 of 20 seeds"), None);
    }
}
