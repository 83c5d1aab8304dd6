//! Synthesis: how large the RTL is, block by block, and how fast it can run.
//!
//! The Verilog is wrapped into a [`harness`] so that nothing is trimmed and three pins suffice.
//! Yosys maps all of it as one netlist, so that logic on the two sides of a block's border is optimised
//! together; the names of the cells say which block they belong to. The same netlist is what nextpnr
//! places and routes.
//!
//! Everything that the tools read and write stays in one folder, for a look afterwards.

mod harness;
mod paths;
mod ports;
mod report;
mod tool;

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(crate) use ports::ports_of;
pub(crate) use report::Report;
use tool::Tool;

/// A port of the top module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    /// As Verilog names it.
    pub(crate) name: String,
    /// Its bits.
    pub(crate) width: usize,
    /// Whether the module reads it.
    pub(crate) input: bool,
}

/// The chips that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Lattice LFE5U-45F.
    Ecp5Lfe45,
    /// Lattice LFE5U-85F.
    Ecp5Lfe85,
}

impl Target {
    /// Every target, by the name on the command line.
    pub(crate) const NAMES: [(&'static str, Self); 2] =
        [("ecp5-45", Self::Ecp5Lfe45), ("ecp5-85", Self::Ecp5Lfe85)];

    /// The target of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
    }

    fn nextpnr_option(self) -> &'static str {
        match self {
            Self::Ecp5Lfe45 => "--45k",
            Self::Ecp5Lfe85 => "--85k",
        }
    }

    /// Lookup tables (each with a flip-flop beside it), and block RAMs of 18 Kbit.
    fn capacity(self) -> (u64, u64) {
        match self {
            Self::Ecp5Lfe45 => (43_848, 108),
            Self::Ecp5Lfe85 => (83_640, 208),
        }
    }
}

/// What to synthesise, and how.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The Verilog of the top module and everything in it.
    pub(crate) verilog: String,
    /// The name of the top module.
    pub(crate) top: String,
    /// The name of its clock input.
    pub(crate) clock: String,
    /// All its ports, the clock among them or not.
    pub(crate) ports: Vec<Port>,
    /// The chip.
    pub(crate) target: Target,
    /// The clock that nextpnr aims at.
    pub(crate) clock_mhz: f64,
    /// The seed of the placement.
    pub(crate) seed: u32,
    /// Whether to place and route; without, only the table of blocks and the estimate are made.
    pub(crate) place_and_route: bool,
    /// The folder for inputs, outputs and logs.
    pub(crate) folder: PathBuf,
}

impl Job {
    /// A job with the usual settings: ECP5-85, 100 MHz, placed and routed.
    pub(crate) fn new(verilog: String, top: &str, ports: Vec<Port>, folder: PathBuf) -> Self {
        Self {
            verilog,
            top: top.to_owned(),
            clock: "clock".to_owned(),
            ports,
            target: Target::Ecp5Lfe85,
            clock_mhz: 100.0,
            seed: 1,
            place_and_route: true,
            folder,
        }
    }
}

/// Why there is no report.
#[derive(Debug)]
pub(crate) enum SynthError {
    /// The tool is not on the PATH.
    Missing {
        /// Its name.
        tool: &'static str,
    },
    /// The tool ended with an error.
    Failed {
        /// Its name.
        tool: &'static str,
        /// Where its output is.
        log: PathBuf,
        /// The last lines of the output.
        tail: String,
    },
    /// A file cannot be read or written.
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A tool wrote something else than expected.
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        what: String,
    },
    /// The job itself is wrong.
    Job(String),
    /// The tables cannot be printed.
    Output(io::Error),
}

impl fmt::Display for SynthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { tool } => write!(
                f,
                "{tool} is not on the PATH: `cargo viaduct synth` brings it along, and so does \
                 `cargo xtask setup --only synth`"
            ),
            Self::Failed { tool, log, tail } => {
                write!(f, "{tool} failed; its output is in {}\n{tail}", log.display())
            }
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Format { path, what } => write!(f, "{}: {what}", path.display()),
            Self::Job(what) => f.write_str(what),
            Self::Output(source) => write!(f, "cannot write the report: {source}"),
        }
    }
}

impl std::error::Error for SynthError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } | Self::Output(source) => Some(source),
            Self::Missing { .. } | Self::Failed { .. } | Self::Format { .. } | Self::Job(_) => None,
        }
    }
}

/// Synthesises the job, prints progress to `out`, and gives the report.
pub(crate) fn run(job: &Job, out: &mut dyn Write) -> Result<Report, SynthError> {
    // Names that the harness and the tables share.
    if job.ports.iter().all(|port| port.name == job.clock) {
        return Err(SynthError::Job(format!("module `{}` has no ports beside its clock", job.top)));
    }
    fs::create_dir_all(&job.folder)
        .map_err(|source| SynthError::File { path: job.folder.clone(), source })?;
    write(&job.folder.join("design.v"), &job.verilog)?;
    write(&job.folder.join("harness.v"), &harness::text(job))?;
    let mut tools =
        vec![Tool::start(&job.folder, "yosys", "yosys", &["-p".to_owned(), SCRIPT.to_owned()])?];
    tool::wait(&mut tools, out)?;
    let mut report = Report::of_netlist(job, &job.folder.join("flat.json"))?;
    if job.place_and_route {
        let arguments = nextpnr_arguments(job);
        let mut tools =
            vec![Tool::start(&job.folder, "nextpnr-ecp5", "nextpnr", arguments.as_slice())?];
        tool::wait(&mut tools, out)?;
        report.add_timing(&job.folder.join("report.json"))?;
    }
    Ok(report)
}

/// What Yosys does: checks, maps, writes the netlist.
///
/// Everything is driven, nothing holds a value without a clock, and no bit depends on itself. Of ABC's scripts
/// it takes the one with the shortest paths: as mapped by default, the longest path of the NIC takes a third
/// longer.
const SCRIPT: &str = "\
    read_verilog design.v harness.v; hierarchy -check -top harness; \
    proc; select -assert-none t:$dlatch; check -assert; \
    flatten; opt_clean; check -assert; \
    scratchpad -copy abc9.script.flow2 abc9.script; \
    synth_ecp5 -top harness; opt_clean; write_json flat.json";

/// The parts of the top module, whose modules RustHDL names `top$part`.
fn parts(job: &Job) -> Vec<&str> {
    let modules = job.verilog.lines().filter_map(|line| line.strip_prefix("module "));
    let names = modules.filter_map(|line| line.split('(').next());
    names
        .filter_map(|name| name.strip_prefix(job.top.as_str())?.strip_prefix('$'))
        .filter(|part| !part.contains('$'))
        .collect()
}

fn nextpnr_arguments(job: &Job) -> Vec<String> {
    let mut arguments: Vec<String> = [
        job.target.nextpnr_option(),
        "--package=CABGA381",
        "--speed=6",
        // A missed clock is a result, and not a failure.
        "--timing-allow-fail",
        // The placer weighs wires above all by default: a third of the clock.
        "--placer-heap-timingweight=300",
        "--json=flat.json",
        "--report=report.json",
    ]
    .map(str::to_owned)
    .into();
    arguments.push(format!("--freq={}", job.clock_mhz));
    arguments.push(format!("--seed={}", job.seed));
    arguments
}

fn write(path: &Path, text: &str) -> Result<(), SynthError> {
    fs::write(path, text).map_err(|source| SynthError::File { path: path.to_path_buf(), source })
}
