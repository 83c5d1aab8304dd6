//! `viaduct synth`: area and timing of the NIC with Yosys and nextpnr.

use crate::Failure;
use crate::synth::{self, Target};
use crate::verilog;
use clap::Args;
use std::path::PathBuf;

/// Synthesize the NIC: area by block, clock frequency, critical path.
///
/// The exit code is 0 if it has no latches and loops and fits the chip; the clock frequency is a
/// result, and not a failure.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct synth --target ecp5-85            area and timing (many minutes)
  viaduct synth --no-pnr                    area, and an estimate of the longest paths
  viaduct synth --block channel             one block alone, between registers")]
pub(crate) struct Arguments {
    /// Block of the NIC (as in `hdl::blocks!`), by default the whole.
    #[arg(long, default_value = "top")]
    block: String,
    /// Chip: ecp5-45 or ecp5-85.
    #[arg(long, default_value = "ecp5-85", value_parser = target)]
    target: Target,
    /// Stop after Yosys.
    #[arg(long)]
    no_pnr: bool,
    /// Clock that placement aims at, in MHz.
    #[arg(long, default_value_t = 100.0)]
    clock: f64,
    /// Seed of the placement.
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Folder for netlists, logs and reports.
    #[arg(short, long, value_name = "DIR", default_value = "target/synth")]
    output: PathBuf,
}

fn target(name: &str) -> Result<Target, String> {
    Target::parse(name).ok_or_else(|| {
        let known: Vec<_> = Target::NAMES.iter().map(|(name, _)| *name).collect();
        format!("unknown chip; known are {}", known.join(", "))
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let verilog = verilog::block(&arguments.block)?;
    let ports = synth::ports_of(&verilog, verilog::TOP).map_err(|error| error.to_string())?;
    let mut job = synth::Job::new(verilog, verilog::TOP, ports, arguments.output.clone());
    job.target = arguments.target;
    job.place_and_route = !arguments.no_pnr;
    job.clock_mhz = arguments.clock;
    job.seed = arguments.seed;
    let report = synth::run(&job, &mut std::io::stderr()).map_err(|error| error.to_string())?;
    println!("{report}");
    if report.fits() { Ok(()) } else { Err("it does not fit the chip".into()) }
}
