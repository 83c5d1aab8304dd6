//! The steps of `cargo xtask test --long`: what the gate does, with more seeds, and what needs a
//! nightly toolchain.

use std::process::Command;

use super::Verdict;
use super::steps::{Needs, RTL_FEATURES, Step, cargo, own, run};
use crate::tools::{self, Toolset};

/// Seeds of each random test of a block's bench.
const BENCH_SEEDS: &str = "200";
/// Seeds of each lockstep suite.
const LOCKSTEP_SEEDS: &str = "1000";
/// Processes of `shm:` that are killed.
const KILLS: &str = "1000";
/// Seconds of each target of `cargo xtask fuzz`.
const FUZZ_SECONDS: &str = "3600";
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
        "the lockstep suites with more seeds",
        Needs::Tools,
        lockstep_seeds,
    ),
    Step::new("fuzz", "bad input, sought by coverage", Needs::Cargo, fuzz),
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

fn lockstep_seeds() -> Result<Verdict, String> {
    tools::ensure(Toolset::Sim)?;
    let mut command = cargo();
    command.args(["run", "--release", "--package", "viaduct", "--features", "rtl,trace", "--"]);
    run(command.args(["cosim", "run", "--seeds", LOCKSTEP_SEEDS]).envs(tools::env()))
}

/// Every target for its time; an input that fails is kept in the tree.
fn fuzz() -> Result<Verdict, String> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    own(crate::fuzz::run(&["--seconds", FUZZ_SECONDS, "--jobs", &jobs].map(str::to_owned)))
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
