//! `cargo viaduct ARGS`: builds what the command line needs, says so, and runs it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::tools::{self, Toolset};
use crate::{Outcome, exit_code, workspace};

/// Commands that never need the Verilated RTL.
const WITHOUT_RTL: [&str; 7] =
    ["completions", "device", "man", "prove", "synth", "verilog", "waves"];

/// A build of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Build {
    /// Cargo features; empty: no Verilated RTL.
    features: &'static str,
    /// What is built, for a person.
    what: &'static str,
    /// Libraries for other programs that are needed, too.
    libraries: &'static [&'static str],
    /// In the profile in which programs are used, and not in that of the tests.
    release: bool,
    /// Libraries in the profile in which they are installed: they are measured.
    installed: bool,
}

impl Build {
    /// What a command line needs. Waveforms cost speed, so they have a build of their own; a Verilated
    /// model writes one format, and cargo keeps the builds side by side.
    fn of(args: &[String]) -> Self {
        let word = |index: usize| args.get(index).map_or("", String::as_str);
        let has = |names: &[&str]| args.iter().any(|arg| names.contains(&arg.as_str()));
        // What comes after the program of `run` is the program's.
        let is_run = word(0) == "run" && !["", "--help", "-h"].contains(&word(1));
        let libraries: &[&str] = match word(0) {
            "run" if is_run => &["libsovia"],
            "conformance" => &["libvipl"],
            "bench" if word(1) == "vipl" => &["libvipl"],
            "bench" if word(1) == "sockets" => &["libsovia", "libviarpc"],
            _ => &[],
        };
        let is_text = !is_run
            && (args.is_empty()
                || has(&["--help", "-h", "help", "--version", "-V", "--list"])
                || word(0) == "cosim" && ["", "list"].contains(&word(1)));
        let traced = args.iter().any(|arg| arg == "--trace" || arg.starts_with("--trace="))
            || args.iter().any(|arg| arg.starts_with("sim:") && arg.contains("trace="));
        // A failed seed of a suite is run again for its waveforms.
        let is_suite = word(0) == "cosim" && word(1) == "run";
        // Other devices of these than this one are without RTL, or in another process.
        let has_no_rtl = ["conformance", "devinfo", "stats"].contains(&word(0))
            && !args.iter().any(|arg| arg.contains("sim:rtl"));
        // What measures software, or carries others' data, does so in the profile in which it is used.
        let is_measured = is_run
            || ["lane", "report"].contains(&word(0))
            || word(0) == "bench" && !["", "help", "hw", "vipl"].contains(&word(1));
        let is_measured =
            is_measured && !is_text && !args.iter().any(|arg| arg.contains("sim:rtl"));
        let (features, what) = if is_measured && word(1) == "anatomy" {
            ("stamps", "viaduct with stamps in the data path (minutes the first time)")
        } else if is_measured {
            ("", "viaduct without Verilated RTL, optimized (a minute or two the first time)")
        } else if is_text || has_no_rtl || WITHOUT_RTL.contains(&word(0)) {
            ("", "viaduct without Verilated RTL (a minute or two the first time)")
        } else if args.iter().any(|arg| arg.ends_with(".fst")) {
            ("rtl,fst", "viaduct and its Verilated RTL with FST waveforms (minutes the first time)")
        } else if traced || is_suite {
            (
                "rtl,trace",
                "viaduct and its Verilated RTL with VCD waveforms (minutes the first time)",
            )
        } else {
            ("rtl", "viaduct and its Verilated RTL (minutes the first time)")
        };
        let libraries = if is_run || !has(&["--help", "-h"]) { libraries } else { &[] };
        let release = is_measured || !features.is_empty();
        Self { features, what, libraries, release, installed: is_measured }
    }

    /// What needs no RTL is in the profile of the tests, which have built it already.
    const fn profile(self) -> &'static str {
        if self.release { "release" } else { "debug" }
    }

    /// Has cargo build it, and its libraries. Gives their folder if it is not that of the program.
    fn build(self) -> Result<Option<PathBuf>, String> {
        let packages = self.libraries.iter().flat_map(|library| ["--package", library]);
        let mut command = workspace::cargo();
        command.args(["build", "--package", "viaduct"]);
        let mut folder = None;
        if self.installed && !self.libraries.is_empty() {
            let what = "libraries as they are installed (minutes the first time)";
            let profile = ["build", "--profile", "library"];
            cargo_builds(what, workspace::cargo().args(profile).args(packages))?;
            folder = Some(workspace::target_dir().join("library"));
        } else {
            command.args(packages);
        }
        if self.release {
            command.arg("--release");
        }
        if !self.features.is_empty() {
            command.args(["--features", self.features]).envs(tools::env());
        }
        cargo_builds(self.what, &mut command)?;
        Ok(folder)
    }
}

/// Runs cargo; says so, and how long it took, if there is anything to build.
fn cargo_builds(what: &str, command: &mut Command) -> Result<(), String> {
    let start = Instant::now();
    let failed = |error| format!("cannot run cargo: {error}");
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(failed)?;
    let mut built = false;
    for line in child.stderr.take().into_iter().flat_map(|text| BufReader::new(text).lines()) {
        let line = line.map_err(failed)?;
        let step = line.trim_start();
        if !built && step.starts_with("Compiling ") {
            built = true;
            eprintln!("building {what}");
        }
        let known = ["Finished ", "warning: the following packages contain code", "note: to see"];
        if !known.iter().any(|start| step.starts_with(start)) {
            eprintln!("{line}");
        }
    }
    if !child.wait().map_err(failed)?.success() {
        return Err("it does not build: see above".to_owned());
    }
    if built {
        eprintln!("built in {:.0} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Runs the command `viaduct`, and passes its exit code on.
pub(crate) fn run(args: &[String]) -> Outcome {
    let build = Build::of(args);
    let command = args.first().map_or("", String::as_str);
    let runs = !build.features.is_empty() || !args.iter().any(|arg| arg == "--help" || arg == "-h");
    if runs && ["synth", "prove"].contains(&command) {
        tools::ensure(Toolset::Synth)?;
    }
    if command == "bench" && build.libraries.contains(&"libvipl") {
        tools::ensure(Toolset::Count)?;
    }
    if build.features.contains("rtl") {
        tools::ensure(Toolset::Sim)?;
    }
    let libraries = build.build()?;
    let mut program = Command::new(workspace::target_dir().join(build.profile()).join("viaduct"));
    program.envs(libraries.map(|folder| ("VIADUCT_LIBRARIES", folder)));
    exit_code(program.args(args).envs(tools::env()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(line: &str) -> Build {
        Build::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_runs_no_rtl_needs_none() {
        let texts = [
            "",
            "--help",
            "demo --help",
            "cosim",
            "cosim list",
            "conformance --list",
            "prove --list",
            "help bench",
            "cosim run -h",
            "verilog out",
            "synth --no-pnr",
            "conformance",
            "conformance --device sim:model rdma",
            "conformance --device vfio-user:run/nic0.sock",
            "completions zsh",
            "device list",
            "man --dir out",
            "devinfo",
            "stats vfio-user:run/nic0.sock --watch",
        ];
        for line in texts {
            assert_eq!(build(line).features, "", "{line}");
        }
    }

    #[test]
    fn software_is_measured_in_the_profile_in_which_it_is_used() {
        for line in
            ["bench soft", "bench latency shm:", "report -o out.html", "lane --address 10.7.0.1/24"]
        {
            let build = build(line);
            assert_eq!((build.features, build.profile()), ("", "release"), "{line}");
        }
        for line in ["bench soft --help", "device list"] {
            assert_eq!(build(line).profile(), "debug", "{line}");
        }
        assert_eq!(build("bench latency sim:rtl").features, "rtl");
    }

    #[test]
    fn waveforms_have_builds_of_their_own() {
        for (line, features) in [
            ("demo", "rtl"),
            ("demo --trace x.vcd", "rtl,trace"),
            ("demo --trace=x.fst", "rtl,fst"),
            ("cosim run --seeds 5", "rtl,trace"),
            ("cosim serve --device rtl", "rtl"),
            ("conformance --device sim:rtl", "rtl"),
            ("devinfo sim:rtl", "rtl"),
            ("conformance --processes 2 --device=sim:rtl", "rtl"),
            ("conformance --device sim:rtl?trace=x.vcd", "rtl,trace"),
            ("bench hw anatomy", "rtl"),
            ("bench anatomy shm: --sizes 4,64", "stamps"),
            ("bench anatomy --help", ""),
        ] {
            assert_eq!(build(line).features, features, "{line}");
        }
    }

    #[test]
    fn libraries_are_built_for_those_who_load_them() {
        for (line, libraries) in [
            ("conformance --list", &["libvipl"][..]),
            ("bench vipl", &["libvipl"]),
            ("bench sockets null", &["libsovia", "libviarpc"]),
            ("bench sockets --help", &[]),
            ("run curl --help", &["libsovia"]),
            ("run --help", &[]),
            ("bench latency", &[]),
            ("demo", &[]),
            ("conformance --help", &[]),
        ] {
            assert_eq!(build(line).libraries, libraries, "{line}");
        }
    }
}
