//! The steps of the gate.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Verdict;
use crate::tools::{self, Toolset};
use crate::{kernels, tidy, workspace};

/// What a step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Cargo,
    /// The tools that `setup` installs.
    Tools,
    /// Cargo; with the tools another step does the same and more.
    CargoAlone,
}

/// One step.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) needs: Needs,
    /// Whether it keeps one processor busy for minutes, and shares nothing with the steps behind it
    /// that would have to wait for it: it runs beside them.
    pub(super) beside: bool,
    pub(super) run: fn() -> Result<Verdict, String>,
}

impl Step {
    pub(super) const fn new(
        name: &'static str,
        about: &'static str,
        needs: Needs,
        run: fn() -> Result<Verdict, String>,
    ) -> Self {
        Self { name, about, needs, beside: false, run }
    }

    const fn beside(self) -> Self {
        Self { beside: true, ..self }
    }
}

/// In the order in which they begin: cheap ones first, but for the longest ones of a single processor.
pub(super) const STEPS: &[Step] = &[
    Step::new("fmt", "formatting", Needs::Cargo, format),
    Step::new("tidy", "the repository's own style rules", Needs::Cargo, || own(tidy::run())),
    Step::new("kernels", "the lint of RustHDL kernels", Needs::Cargo, || own(kernels::run())),
    Step::new("setup", "the simulator, synthesis, QEMU, valgrind", Needs::Tools, setup),
    Step::new(PLAIN, "the command without the RTL refuses it", Needs::Tools, plain),
    Step::new("synth", "the whole NIC in cells of its chip", Needs::Tools, synth).beside(),
    Step::new("prove", "rules of the contract, by induction", Needs::Tools, prove).beside(),
    Step::new("clippy", "compiler and clippy warnings", Needs::CargoAlone, clippy),
    Step::new("clippy-rtl", "the same with the Verilated RTL", Needs::Tools, clippy_rtl),
    Step::new("verilog", "Verilator's lint of every block", Needs::Tools, verilog),
    Step::new("test", "every test that needs no tools", Needs::CargoAlone, test),
    Step::new("test-rtl", "every test, with the RTL and QEMU", Needs::Tools, test_rtl),
    Step::new("bench", "the fast path of VIPL in instructions", Needs::Tools, bench),
];

/// Programs on streams of SOVIA, and remote calls by tarpc, whose libraries take a while to compile.
const ASYNC: &str = "sovia-examples/http,sovia-examples/grpc,via-rpc/tarpc";

/// The arguments for guests, stamps in the data path, and [`ASYNC`]. What is built with them and without the
/// RTL serves a build with it as well, but for few packages.
const FEATURES: [&str; 4] =
    ["--features", "tests/guest,viaduct/guest,viaduct/stamps", "--features", ASYNC];

/// [`FEATURES`], the whole NIC and every single block, Verilated, and guests that have it.
pub(super) const RTL_FEATURES: [&str; 6] =
    ["--features", "rtl,trace,cosim/blocks", FEATURES[0], FEATURES[1], FEATURES[2], FEATURES[3]];

/// The arguments that make clippy strict.
const STRICT: [&str; 3] = ["--", "-D", "warnings"];

fn format() -> Result<Verdict, String> {
    run(cargo().args(["fmt", "--all", "--", "--check"]))
}

fn clippy() -> Result<Verdict, String> {
    run(cargo().args(["clippy", "--workspace", "--all-targets"]).args(FEATURES).args(STRICT))
}

fn test() -> Result<Verdict, String> {
    // Some tests run programs of others.
    tools::ensure(Toolset::Programs)?;
    tests(cargo().args(["test", "--workspace", "--no-fail-fast", "--features", ASYNC]))
}

fn setup() -> Result<Verdict, String> {
    // Each says what it lacks; the steps behind this one need some of them. Tests do without these.
    let optional = [Toolset::Capture, Toolset::Browse];
    let missing = |set: Toolset| tools::setup(set).err();
    let lacks: Vec<String> = optional.into_iter().filter_map(missing).collect();
    let needed = Toolset::ALL.into_iter().filter(|set| !optional.contains(set));
    let failed: Vec<String> = needed.filter_map(missing).collect();
    if !failed.is_empty() {
        return Err(failed.join("\n"));
    }
    Ok(if lacks.is_empty() { Verdict::Passed } else { Verdict::Partly(lacks.join("\n")) })
}

/// Builds the command as [`viaduct`] does, and has it asked for the RTL that it lacks.
fn plain() -> Result<Verdict, String> {
    run(plain_tests().arg("a_build_without_rtl"))
}

/// Builds of tests and not of the command alone: what only tests depend on decides on features of
/// other packages, and a build serves the next one if these are the same.
fn plain_tests() -> Command {
    let mut command = cargo();
    command.args(["test", "--workspace", "--test", "cli"]).args(FEATURES);
    command
}

/// Name of the step that builds the command without the RTL.
pub(super) const PLAIN: &str = "plain";

/// Variable of a step that runs beside others: [`PLAIN`] has passed. It need not wait for cargo, which builds
/// for the others.
pub(super) const IS_BUILT: &str = "VIADUCT_GATE_IS_BUILT";

/// The command without the RTL.
fn viaduct() -> Result<PathBuf, String> {
    if env::var_os(IS_BUILT).is_none()
        && let Verdict::Failed(why) = run(plain_tests().arg("--no-run"))?
    {
        return Err(why);
    }
    Ok(workspace::target_dir().join("debug/viaduct"))
}

fn clippy_rtl() -> Result<Verdict, String> {
    tools::ensure(Toolset::Sim)?;
    let mut command = cargo();
    command.args(["clippy", "--workspace", "--all-targets"]).args(RTL_FEATURES);
    run(command.args(STRICT).envs(tools::env()))
}

/// In the profile in which everything else is built, which finds overflows too.
fn test_rtl() -> Result<Verdict, String> {
    tools::ensure(Toolset::Programs)?;
    tools::ensure(Toolset::Sim)?;
    tools::ensure(Toolset::Guest)?;
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]).args(RTL_FEATURES);
    tests(command.envs(tools::env()))
}

/// The fast path of VIPL, in a release build of the library: no system call, no allocation, and no
/// more instructions than it may take, which do not depend on the machine's speed.
fn bench() -> Result<Verdict, String> {
    tools::ensure(Toolset::Count)?;
    let library = run(cargo().args(["build", "--release", "--package", "libvipl"]))?;
    if library != Verdict::Passed {
        return Ok(library);
    }
    // The bars are instructions of x86-64.
    let rows: &[&str] = match cfg!(target_arch = "x86_64") {
        true => &["vipl."],
        false => &["vipl.syscalls", "vipl.allocations", "vipl.locks"],
    };
    let program = viaduct()?;
    for row in rows {
        let mut command = Command::new(&program);
        command.args(["bench", "vipl", "--strict", row]).envs(tools::env());
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cannot run the command: {error}"))?;
        let table = String::from_utf8_lossy(&output.stdout);
        print!("{table}");
        if !output.status.success() {
            let missed = table.lines().find(|line| line.contains("  no"));
            return Ok(Verdict::Failed(missed.unwrap_or("see its output above").to_owned()));
        }
    }
    Ok(Verdict::Passed)
}

/// Lints each block of `hdl::blocks!` with it as the top. The build script of `cosim` has written
/// them: the step before has run it, or this one does.
fn verilog() -> Result<Verdict, String> {
    if let Verdict::Failed(why) = clippy_rtl()? {
        return Ok(Verdict::Failed(why));
    }
    let folder = workspace::target_dir().join("verilog");
    let entries = fs::read_dir(&folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    match lint(file) {
                        Ok(None) => println!("{stem}: clean"),
                        Ok(Some(text)) | Err(text) => {
                            print!("{text}");
                            failed.lock().unwrap_or_else(PoisonError::into_inner).push(stem);
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if files.is_empty() || !failed.is_empty() {
        let what = if files.is_empty() { "no block is there".into() } else { failed.join(", ") };
        return Ok(Verdict::Failed(format!("lint of {}: {what}", folder.display())));
    }
    Ok(Verdict::Passed)
}

/// What Verilator has to say about the file, if anything, as the Verilog that it is and as the
/// SystemVerilog that a user may compile it with, which has more keywords.
fn lint(file: &Path) -> Result<Option<String>, String> {
    for language in ["1364-2005", "1800-2017"] {
        let output = Command::new("verilator_bin")
            .args(["--lint-only", "-Wall", "--default-language", language, "--top-module", "top"])
            // RustHDL prints literals with 32 bits, and some ports of its parts lead nowhere. Loops
            // are seen here by whole kernels (a RAM that is read without a clock makes one of its
            // address and its data); Yosys looks at each bit, in the step `synth`.
            .args(["-Wno-WIDTH", "-Wno-UNUSED", "-Wno-DECLFILENAME", "-Wno-UNOPTFLAT"])
            .arg(file)
            .envs(tools::env())
            .output()
            .map_err(|error| format!("cannot run verilator: {error}"))?;
        if !output.status.success() {
            return Ok(Some(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
    }
    Ok(None)
}

/// Proves the rules of the blocks, and that each proof notices its mutations.
fn prove() -> Result<Verdict, String> {
    tools::ensure(Toolset::Synth)?;
    let mut command = Command::new(viaduct()?);
    command.args(["prove", "--vcd"]);
    run(command.arg(workspace::target_dir().join("prove-gate")).envs(tools::env()))
}

/// Maps the whole NIC to the cells of its chip: no latches, no loops, and it fits. Placing it takes
/// an hour on a slow machine and is `viaduct synth`, on demand.
fn synth() -> Result<Verdict, String> {
    tools::ensure(Toolset::Synth)?;
    let mut command = Command::new(viaduct()?);
    command.args(["synth", "--no-pnr", "--output"]);
    run(command.arg(workspace::target_dir().join("synth-gate")).envs(tools::env()))
}

pub(super) fn cargo() -> Command {
    let mut command = workspace::cargo();
    command.current_dir(workspace::root());
    command
}

/// Runs a command with its output shown.
pub(super) fn run(command: &mut Command) -> Result<Verdict, String> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot run {}: {error}", command.get_program().display()))?;
    if status.success() { Ok(Verdict::Passed) } else { Ok(Verdict::Failed(status.to_string())) }
}

/// The same for tests: what failing ones said is the verdict's, so that it stands at the end too.
fn tests(command: &mut Command) -> Result<Verdict, String> {
    let failed = |error: std::io::Error| format!("cannot run the tests: {error}");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let output = child.stdout.take().ok_or("the tests have no output")?;
    let (mut said, mut is_failure) = (String::new(), false);
    for line in BufReader::new(output).split(b'\n') {
        let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
        println!("{line}");
        // The harness has a section of them before its result.
        is_failure = (is_failure || line == "failures:") && !line.starts_with("test result:");
        if is_failure {
            said.extend([line.as_str(), "\n"]);
        }
    }
    let status = child.wait().map_err(failed)?;
    Ok(if status.success() {
        Verdict::Passed
    } else {
        Verdict::Failed(format!("{status}\n{said}"))
    })
}

/// The verdict of a check that is part of this program.
pub(super) fn own(outcome: crate::Outcome) -> Result<Verdict, String> {
    if outcome? == ExitCode::SUCCESS {
        Ok(Verdict::Passed)
    } else {
        Ok(Verdict::Failed("see the findings above".to_owned()))
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn what_failing_tests_said_is_kept() {
        let said = r"test a ... FAILED\n\nfailures:\n\n---- a stdout ----\nwhy\n\ntest result: FAILED. 0 passed";
        let run =
            |script: String| tests(Command::new("sh").args(["-c", &script])).expect("sh runs");
        let Verdict::Failed(why) = run(format!("printf '{said}\\n'; exit 101")) else {
            panic!("it passed")
        };
        assert_eq!(why, "exit status: 101\nfailures:\n\n---- a stdout ----\nwhy\n\n");
        assert_eq!(run("echo test result: ok".to_owned()), Verdict::Passed);
    }
}
