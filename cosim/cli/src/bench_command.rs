//! `viaduct bench`: what the NIC costs, in cycles at its pins, and what VIPL costs a program. The sweeps
//! over sizes and devices are in [`sweep_command`].

use crate::Failure;
use crate::bench::{self, Job, stages};
use crate::demo::DeviceKind;
use crate::sweep_command;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Measure the NIC against its bars.
#[derive(Debug, Subcommand)]
pub(crate) enum Arguments {
    Hw(HwArguments),
    Vipl(ViplArguments),
    Soft(SoftArguments),
    Sockets(SocketsArguments),
    Anatomy(AnatomyArguments),
    Latency(sweep_command::LatencyArguments),
    Bandwidth(sweep_command::BandwidthArguments),
    Cq(sweep_command::CqArguments),
    Connect(sweep_command::ConnectArguments),
    Register(sweep_command::RegisterArguments),
    Streams(sweep_command::StreamsArguments),
    Calls(sweep_command::CallsArguments),
    /// The other process of a measurement.
    #[command(hide = true)]
    Peer,
    /// A pair of processes that measures for another one.
    #[command(hide = true)]
    Lead {
        /// The other process of the pair is without the library that this one has.
        #[arg(long)]
        alone: bool,
    },
    /// An end of a connection, to be killed.
    #[command(hide = true, subcommand)]
    End(bench::kills::Role),
}

/// Which rows are wanted, and what is done with them.
#[derive(Debug, Args)]
pub(crate) struct RowArguments {
    /// Only rows whose name contains this.
    filter: Option<String>,
    /// Print one JSON object a line instead of the table.
    #[arg(long)]
    json: bool,
    /// Exit with code 1 if a bar is missed.
    #[arg(long)]
    strict: bool,
}

/// The software NIC against what the machine can do: latency, bandwidth, rate, completion queues.
///
/// Two processes, each on a processor of its own, exchange messages by VIPL on shm: and, in turn with
/// it, by a raw ring in shared memory, a futex, TCP. A row is a ratio, the median of those of all turns.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct bench soft                   every row
  viaduct bench soft lat --json        the rows with 'lat' in their names, one JSON object a line

Exit code 0: everything was measured. A bar that is missed is a result and not a failure; with
--strict it gives exit code 1. If other programs keep the processors busy there is no result, and
exit code 1.")]
pub(crate) struct SoftArguments {
    #[command(flatten)]
    rows: RowArguments,
    /// Fewer turns.
    #[arg(long)]
    quick: bool,
    /// Report also if other programs keep the processors busy.
    #[arg(long)]
    anyway: bool,
}

/// SOVIA's streams and remote calls, against VIPL on the same device and against TCP.
///
/// As `viaduct bench soft`. Streams are those of the crate `sovia`; where a row says `preloaded`, they are
/// TCP sockets of processes that `viaduct run` has started. The rows with `null` are calls of a program of
/// SunRPC, which is compiled for them; it needs a C compiler and libtirpc.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct bench sockets                every row
  viaduct bench sockets bw --json      the rows with 'bw' in their names, one JSON object a line
  viaduct bench sockets policies       the order of SOVIA's Figure 9
  viaduct bench sockets cosim          a megabyte in cycles of two simulated NICs
  viaduct bench sockets null           null calls of SunRPC: by TCP, over SOVIA, directly by VIA

Exit codes are those of `viaduct bench soft`.")]
pub(crate) struct SocketsArguments {
    #[command(flatten)]
    rows: RowArguments,
    /// Fewer turns.
    #[arg(long)]
    quick: bool,
    /// Report also if other programs keep the processors busy.
    #[arg(long)]
    anyway: bool,
}

/// Where the time of one message goes on a software device: each stage from the program that sends to
/// the program that receives, in one of six categories.
///
/// Two processes, each on a processor of its own, exchange messages by polling, in turn without stamps
/// and with stamps of the processor's cycle counter in the data path. What a stamp costs is subtracted;
/// the critical stages add up to the one-way time without stamps within 10 %. The stages of a NIC, in
/// hardware or simulated, are those of `viaduct bench hw anatomy`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct bench anatomy                        a message of 4 bytes on shm:
  viaduct bench anatomy shm: --sizes 1024      a larger one
  viaduct bench anatomy --sizes 4,64,1024,4096 stages and sizes in one table
  viaduct bench anatomy udp:                   VIA over UDP, or eth:INTERFACE
  viaduct bench anatomy kernel:udp             UDP sockets, for comparison, or kernel:tcp
  viaduct bench anatomy --json                 one JSON object a line: each stage, then the whole

The stamps are compiled in by the feature `stamps`, which `cargo viaduct bench anatomy` builds with.

Exit code 0: everything was measured. Stages that do not add up are a result and not a failure; with
--strict they give exit code 1. If the device has no such stages, the build has no stamps, or other
programs keep the processors busy, there is no result, and exit code 1.")]
pub(crate) struct AnatomyArguments {
    /// URL of the device; or kernel:udp, kernel:tcp: sockets, whose stages are the kernel's trace events.
    #[arg(default_value = "shm:")]
    device: String,
    /// Bytes of messages, separated by commas.
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_value = "4",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(port::MAX_TRANSFER_BYTES)))]
    sizes: Vec<u32>,
    /// Print one JSON object a line instead of the table.
    #[arg(long)]
    json: bool,
    /// Exit with code 1 if the stages do not add up to the one-way time.
    #[arg(long)]
    strict: bool,
    /// Fewer turns.
    #[arg(long)]
    quick: bool,
    /// Report also if other programs keep the processors busy.
    #[arg(long)]
    anyway: bool,
}

/// Instructions of the fast path of VIPL, from C, and that it makes no system call and allocates
/// nothing.
///
/// Counted by callgrind (valgrind), on NICs whose doorbells are mapped memory that leads nowhere; a
/// post ends with the store to the doorbell. The row conformance.native is how many rows of the
/// conformance suite pass on the model, and of its subset on the RTL in a build that has it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct bench vipl                   every row
  viaduct bench vipl post --json       the rows with 'post' in their names, one JSON object a line
  viaduct bench vipl conformance       only the conformance suite

Exit code 0: everything was measured. A bar that is missed is a result and not a failure; with
--strict it gives exit code 1.")]
pub(crate) struct ViplArguments {
    #[command(flatten)]
    rows: RowArguments,
}

/// Latency, rate, bandwidth, simulation speed and clock of the NIC.
///
/// Cycles are those of beats at the pins of the host port and the link. The hosts answer at once
/// where nothing else is said, the link has no latency; largest payload and read request are 512
/// bytes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct bench hw                     every row, on the RTL
  viaduct bench hw rate                the rows with 'rate' in their names
  viaduct bench hw anatomy             only where the cycles of one message go
  viaduct bench hw --json              one JSON object a row: name, value, unit, bar, ok
  viaduct bench hw --device model --quick

Exit code 0: everything was measured. A bar that is missed is a result and not a failure; with
--strict it gives exit code 1. The bars are the RTL's: on the model, whose cycles are not those of
hardware, ok is null.")]
pub(crate) struct HwArguments {
    #[command(flatten)]
    rows: RowArguments,
    /// What the NICs are.
    #[arg(long, value_enum, default_value_t = DeviceKind::Rtl)]
    device: DeviceKind,
    /// Short runs: rates are then less exact.
    #[arg(long)]
    quick: bool,
    /// Write the figures that do not depend on the machine to this file.
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Folder in which `viaduct synth` left its report.
    #[arg(long, value_name = "DIR", default_value = "target/synth")]
    synth: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match arguments {
        Arguments::Hw(arguments) => hw(arguments),
        Arguments::Vipl(arguments) => vipl(arguments),
        Arguments::Soft(arguments) => soft(arguments),
        Arguments::Sockets(arguments) => sockets(arguments),
        Arguments::Anatomy(arguments) => anatomy(arguments),
        Arguments::Latency(arguments) => arguments.run(),
        Arguments::Bandwidth(arguments) => arguments.run(),
        Arguments::Cq(arguments) => arguments.run(),
        Arguments::Connect(arguments) => arguments.run(),
        Arguments::Register(arguments) => arguments.run(),
        Arguments::Streams(arguments) => arguments.run(),
        Arguments::Calls(arguments) => arguments.run(),
        Arguments::Peer => bench::processes::peer(),
        Arguments::Lead { alone } => bench::lead::lead(*alone),
        Arguments::End(role) => bench::kills::end(role),
    }
}

fn soft(arguments: &SoftArguments) -> Result<(), Failure> {
    let filter = arguments.rows.filter.clone().unwrap_or_default();
    let (quick, anyway) = (arguments.quick, arguments.anyway);
    let rows = bench::soft::measure(&bench::group::Job { filter, quick, anyway })?;
    show(&rows, &arguments.rows)
}

fn sockets(arguments: &SocketsArguments) -> Result<(), Failure> {
    let filter = arguments.rows.filter.clone().unwrap_or_default();
    let (quick, anyway) = (arguments.quick, arguments.anyway);
    let rows = bench::sockets::measure(&bench::group::Job { filter, quick, anyway })?;
    show(&rows, &arguments.rows)
}

fn anatomy(arguments: &AnatomyArguments) -> Result<(), Failure> {
    let AnatomyArguments { quick, anyway, json, strict, .. } = *arguments;
    let sizes = arguments.sizes.iter().map(|size| *size as usize).collect();
    let device = arguments.device.clone();
    let report = stages::measure(&stages::Job { device, sizes, quick, anyway })?;
    print!("{}", if json { stages::text::json(&report) } else { stages::text::table(&report) });
    let wrong = report.anatomies.iter().filter(|anatomy| !anatomy.adds_up()).count();
    if strict && wrong > 0 {
        let all = report.anatomies.len();
        return Err(format!("the stages of {wrong} of {all} sizes do not add up").into());
    }
    Ok(())
}

fn show(rows: &[bench::Row], arguments: &RowArguments) -> Result<(), Failure> {
    if arguments.json {
        bench::report::json(rows);
    } else {
        bench::report::table(rows);
    }
    judge(rows, arguments.strict)
}

fn vipl(arguments: &ViplArguments) -> Result<(), Failure> {
    let rows = bench::vipl::measure(arguments.rows.filter.as_deref().unwrap_or(""))?;
    show(&rows, &arguments.rows)
}

fn judge(rows: &[bench::Row], strict: bool) -> Result<(), Failure> {
    let missed = rows.iter().filter(|row| row.ok == Some(false)).count();
    if strict && missed > 0 {
        return Err(format!("{missed} of {} bars are missed", rows.len()).into());
    }
    Ok(())
}

fn hw(arguments: &HwArguments) -> Result<(), Failure> {
    let job = Job {
        device: arguments.device,
        quick: arguments.quick,
        synth: arguments.synth.clone(),
        filter: arguments.rows.filter.clone().unwrap_or_default(),
    };
    let rows = bench::measure(&job)?;
    let shown = !arguments.rows.json || arguments.snapshot.is_some();
    let anatomy =
        (shown && job.wants("anatomy")).then(|| bench::anatomy::tables(&job)).transpose()?;
    if arguments.rows.json {
        bench::report::json(&rows);
    } else {
        bench::report::table(&rows);
        if let Some(anatomy) = &anatomy {
            println!("\n{anatomy}");
        }
        println!("\n{}", bench::report::PEERS);
    }
    if let Some(path) = &arguments.snapshot {
        let text = bench::report::snapshot(&rows, anatomy.as_deref());
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    judge(&rows, arguments.rows.strict)
}
