//! The `viaduct` command.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what a command is for")]

mod bench;
mod bench_command;
mod c_program;
mod completions;
mod conformance;
mod conformance_command;
mod cosim_command;
mod coverage_command;
mod demo;
mod device_command;
mod devinfo;
mod lane_command;
mod lines;
mod man;
mod path;
mod progress;
mod prove;
mod prove_command;
mod report;
mod run;
mod run_stats;
mod serve_command;
mod stats;
mod suites;
mod sweep_command;
mod synth;
mod synth_command;
mod top;
mod verilog;
mod waves;

use clap::{Parser, Subcommand};
use std::io::Write;
use std::process::ExitCode;

/// Why a command failed, as a text for a person.
type Failure = Box<dyn std::error::Error>;

/// Viaduct: a user-level network interface, from the RTL to the program.
///
/// Exit codes: 0 all is well, 1 something failed or did not match, 2 the command line is wrong.
#[derive(Debug, Parser)]
#[command(name = "viaduct", version, after_help = "Each command has its own --help with examples.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Arguments),
    #[command(subcommand)]
    Bench(bench_command::Arguments),
    Report(report::Arguments),
    Run(run::Arguments),
    Top(top::Arguments),
    Lane(lane_command::Arguments),
    #[command(subcommand)]
    Cosim(cosim_command::Arguments),
    Conformance(conformance_command::Arguments),
    Verilog(verilog::Arguments),
    Waves(waves::Arguments),
    Synth(synth_command::Arguments),
    Prove(prove_command::Arguments),
    #[command(subcommand)]
    Device(device_command::Arguments),
    Devinfo(devinfo::Arguments),
    Stats(stats::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Ends the command where its output cannot be written. A reader that goes away (`viaduct ... | head`)
/// ends it quietly, as it ends others; the signal for it stays ignored, since sockets report it as an
/// error. A full disk is an error like any other.
fn end_without_output() {
    /// 128 and the number of the signal, as shells have it.
    const BROKEN_PIPE: i32 = 141;
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str().unwrap_or_default();
        if text.starts_with("failed printing to") {
            if text.contains("Broken pipe") {
                std::process::exit(BROKEN_PIPE);
            }
            let _ = writeln!(std::io::stderr(), "error: {text}");
            std::process::exit(1);
        }
        others(panic);
    }));
}

fn main() -> ExitCode {
    end_without_output();
    let result = match Arguments::parse().command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Bench(arguments) => bench_command::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Lane(arguments) => lane_command::run(&arguments),
        Command::Cosim(arguments) => cosim_command::run(&arguments),
        Command::Conformance(arguments) => conformance_command::run(&arguments),
        Command::Verilog(arguments) => verilog::run(&arguments),
        Command::Waves(arguments) => waves::run(&arguments),
        Command::Synth(arguments) => synth_command::run(&arguments),
        Command::Prove(arguments) => prove_command::run(&arguments),
        Command::Device(arguments) => device_command::run(&arguments),
        Command::Devinfo(arguments) => devinfo::run(&arguments),
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
