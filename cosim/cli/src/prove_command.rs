//! `viaduct prove`: rules of the contract, proved of the RTL by induction.

use crate::Failure;
use crate::{prove, verilog};
use clap::Args;
use std::fs;
use std::path::PathBuf;

/// Prove rules of the contract of the RTL's Verilog, by induction.
///
/// Each proof comes with mutations: edits of the RTL after which it must fail. The exit code is 0 if
/// every rule is proved and every mutation is caught. A rule that is broken leaves a waveform.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct prove                             everything (some minutes)
  viaduct prove --block fifo                one block and its mutations
  viaduct prove --block fifo --no-mutations only the proof
  viaduct prove --list                      what there is
  viaduct prove --no-mutations --verilog rtl/viaduct.v   of Verilog that you have edited
  viaduct prove --vcd traces/              waveforms into a folder of your own")]
pub(crate) struct Arguments {
    /// One block, as --list calls it; by default all.
    #[arg(long)]
    block: Option<String>,
    /// Do not run the mutations.
    #[arg(long)]
    no_mutations: bool,
    /// Folder for waveforms, inputs and logs of Yosys.
    #[arg(long, value_name = "DIR", default_value = "target/prove")]
    vcd: PathBuf,
    /// The Verilog of the NIC instead of that of this build: `viaduct verilog`'s, edited.
    #[arg(long, value_name = "FILE")]
    verilog: Option<PathBuf>,
    /// Print the blocks and the modules that they are in the Verilog, and stop.
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let proofs = prove::chosen(arguments.block.as_deref())?;
    if arguments.list {
        for proof in proofs {
            println!("{:<12} {}", proof.name, proof.module);
        }
        return Ok(());
    }
    let verilog = match &arguments.verilog {
        Some(path) => {
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?
        }
        None => verilog::nic()?,
    };
    let report = prove::run(
        &verilog,
        &proofs,
        !arguments.no_mutations,
        &arguments.vcd,
        &mut std::io::stderr(),
    )?;
    println!("{report}");
    let failures = report.failures();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n       ").into()) }
}
