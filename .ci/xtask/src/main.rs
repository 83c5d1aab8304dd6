//! All automation of the repository: `cargo xtask help` lists the commands.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod coverage;
mod fuzz;
mod gate;
mod guest;
mod install;
mod kernels;
mod mutate;
mod rust_source;
mod tidy;
mod tools;
mod viaduct;
mod workspace;

use std::process::ExitCode;

use tools::Toolset;

const HELP: &str = "\
usage: cargo xtask COMMAND

  demo [ARGS]          set up the simulator if needed, then send a file through two
                       Verilated NICs (ARGS as of `cargo viaduct demo`)
  test [OPTIONS]       the whole gate; every failure is reported at the end
      --model            only the steps that need nothing but cargo
      --only STEP        only this step (can be repeated)
      --long [HOURS]     instead: fresh seeds of lockstep, mutants and fuzzing for so
                         many hours (12) together, coverage, more seeds of the
                         benches, and sanitizers where there is a nightly toolchain;
                         what fails is kept as a test
      --list             print the steps
  ci                   the same as test
  coverage [--seeds N] the scenarios and N seeds (20) of each lockstep suite on RTL
                       that counts what runs, and what never ran (an hour)
  mutate [--block B] [--count N] [--seed S] [--suites bench,lockstep,scenarios]
                       N mutants (40) of the RTL, of one block or of all, or of the
                       model (--block model): which suite finds each, and which
                       survive (minutes for some)
  mutate --planted [--block B] [--only NAME] [--suites ...,proofs] [--write]
                       the planted bugs instead, and what finds them; --write puts
                       the table into docs/verification.md (hours):
                       cargo xtask mutate --planted --only region-end --suites lockstep
  fuzz [TARGET...] [--seconds N] [--jobs J] [--merge] [--list]
                       each target (all) for N seconds (60), J at a time, under
                       libFuzzer; what fails is kept in tests/fuzz/regressions.
                       --merge takes what was found into tests/fuzz/corpus instead
  setup [--only SET]   install the pinned tools into .tools (SET: sim, synth,
                       guest, count, capture or browse)
  guest [--nic SOCKET]... PROGRAM [ARGS]
                       a program in a guest kernel that has these served NICs, see
                       docs/simulator.md section 7
  install PREFIX [--rtl] [--debug]
                       the libraries libvipl.so, libsovia.so, libviarpc.so (and
                       libtirpc_via.so, if libtirpc is here), headers, vipl.pc, the C
                       examples, and the command with manual pages and completions
  viaduct ARGS         the command `viaduct` with the RTL (alias: cargo viaduct)
  cargo ARGS           cargo with Verilator: cargo xtask cargo test -p cosim
                       --features rtl,blocks --test tpt
  tidy                 the repository's own style rules
  kernels              the lint of RustHDL kernels
  help                 this text";

/// What a command of this program returns: the exit code of what it ran, or a message.
type Outcome = Result<ExitCode, String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Outcome {
    let Some((command, rest)) = args.split_first() else {
        println!("{HELP}");
        return Ok(ExitCode::FAILURE);
    };
    match command.as_str() {
        "demo" => {
            let mut full = vec!["demo".to_owned()];
            full.extend_from_slice(rest);
            viaduct::run(&full)
        }
        "viaduct" => viaduct::run(rest),
        "cargo" => with_verilator(rest),
        "test" | "ci" => gate::run(rest),
        "coverage" => coverage::run(rest),
        "mutate" => mutate::run(rest),
        "fuzz" => fuzz::run(rest),
        "setup" => setup(rest),
        "guest" => guest::run(rest),
        "install" => install::run(rest),
        "tidy" => no_arguments(rest).and_then(|()| tidy::run()),
        "kernels" => no_arguments(rest).and_then(|()| kernels::run()),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(format!("unknown command `{other}`\n\n{HELP}")),
    }
}

fn no_arguments(rest: &[String]) -> Result<(), String> {
    match rest.first() {
        None => Ok(()),
        Some(extra) => Err(format!("unexpected argument `{extra}`")),
    }
}

fn setup(args: &[String]) -> Outcome {
    let sets = match args {
        [] => Toolset::ALL.to_vec(),
        [only, set] if only == "--only" => vec![Toolset::parse(set)?],
        _ => return Err(format!("usage: cargo xtask setup [--only SET]; SET: {}", tools::SETS)),
    };
    for set in sets {
        tools::setup(set)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs cargo in the environment that a build of the RTL needs.
fn with_verilator(args: &[String]) -> Outcome {
    tools::ensure(Toolset::Sim)?;
    exit_code(workspace::cargo().args(args).envs(tools::env()))
}

fn exit_code(command: &mut std::process::Command) -> Outcome {
    let status = command.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    // A process that a signal ended has no code: 1 stands for it.
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}
