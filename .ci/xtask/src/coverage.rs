//! `cargo xtask coverage`: the suites on RTL that counts what ran, and the report.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::tools::{self, Toolset};
use crate::{Outcome, exit_code, workspace};

/// Seeds of each lockstep suite, unless said otherwise.
const SEEDS: &str = "20";
/// Seeds of each random test of [`BENCHES`]: more than the gate has, for what is rare.
const BENCH_SEEDS: &str = "100";

/// The benches of the blocks.
const BENCHES: [&str; 12] = [
    "--test", "admin", "--test", "engine", "--test", "event", "--test", "pcie", "--test", "tpt",
    "--test", "vi",
];
/// With the seeds of the gate.
const SLOW_BENCHES: [&str; 2] = ["--test", "channel"];

/// Runs all scenarios, the benches and the lockstep suites, then `viaduct cosim coverage`.
pub(crate) fn run(args: &[String]) -> Outcome {
    let seeds = match args {
        [] => SEEDS,
        [option, seeds] if option == "--seeds" && seeds.parse::<u32>().is_ok() => seeds,
        _ => return Err("usage: cargo xtask coverage [--seeds N]".to_owned()),
    };
    tools::ensure(Toolset::Sim)?;
    let folder = workspace::target_dir().join("coverage");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let [scenarios, benches, lockstep] =
        ["scenarios", "bench", "lockstep"].map(|of| folder.join(of));
    let blocks = ["test", "--package", "cosim", "--features", "blocks"];
    let mut fast = cargo(&benches, &blocks, &BENCHES);
    fast.env("SEEDS", BENCH_SEEDS);
    let run = ["run", "--package", "viaduct"];
    let seeds = ["--", "cosim", "run", "--seeds", seeds];
    let steps = [
        ("the scenarios", cargo(&scenarios, &["test", "--package", "tests"], &["--test", "e2e"])),
        ("the benches of the blocks", fast),
        ("the bench of the channel", cargo(&benches, &blocks, &SLOW_BENCHES)),
        ("the lockstep suites", cargo(&lockstep, &run, &seeds)),
    ];
    for (what, mut command) in steps {
        eprintln!("coverage: {what}");
        let status = command.status().map_err(|error| format!("cannot run cargo: {error}"))?;
        if !status.success() {
            return Err(format!("coverage: {what} failed; what failed has no coverage"));
        }
    }
    let shown = folder.display().to_string();
    let report = ["--", "cosim", "coverage", &shown];
    exit_code(&mut cargo(&folder, &["run", "--package", "viaduct"], &report))
}

fn cargo(folder: &Path, command: &[&str], rest: &[&str]) -> Command {
    let mut cargo = workspace::cargo();
    cargo.args(command).args(["--release", "--features", "rtl,cosim/coverage"]).args(rest);
    cargo.envs(tools::env()).env("VIADUCT_COVERAGE", folder);
    cargo
}
