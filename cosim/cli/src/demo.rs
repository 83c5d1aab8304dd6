//! `viaduct demo`: a file crosses two NICs.

mod ends;
mod report;
mod transfer;

use crate::Failure;
use crate::progress::Bar;
use clap::{Args, ValueEnum};
use cosim::simulation::SimulatedDevice;
use cosim::simulation::network::capture::Capture;
use cosim::simulation::seeded::{SeededSimulation, SimulationConfig};
use ends::Ends;
use host_driver::nic::{Nic as DriverNic, NicConfig};
use nic_model::link::{Faults, Wire};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use transfer::Outcome;

/// What is sent when no file is named.
const SAMPLE: &[u8] = include_bytes!("../../../docs/contract.md");
/// Node numbers of sender and receiver.
const NODES: [u8; 2] = [1, 2];

/// Send a file from node A to node B: VIPL, driver, PCIe TLPs, two NICs, a link.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct demo                                       a text of this repository, over the RTL
  viaduct demo photo.jpg --reliability reception --loss 0.02 --corrupt 0.02
  viaduct demo --device model --message 262144
  viaduct demo --trace out.vcd                       waveforms: out-a.vcd and out-b.vcd
  viaduct demo --pcap out.pcapng                     frames, for Wireshark
  viaduct demo --on shm: --on 'shm:?node=b'          devices of this machine instead of a simulation
  viaduct demo photo.jpg --on vfio:03:00.0 --on vfio:04:00.0

Exit code 0: both ends have the same SHA-256.")]
pub(crate) struct Arguments {
    /// File to send; without it, a text of this repository.
    file: Option<PathBuf>,
    /// What the NICs are [default: rtl in a build that has it, else model].
    #[arg(long, value_enum)]
    device: Option<DeviceKind>,
    /// Device of the sender, then device of the receiver, as VipOpenNic takes them: instead of two
    /// simulated NICs with a wire.
    #[arg(long, value_name = "URL",
          conflicts_with_all = ["device", "loss", "corrupt", "latency", "trace", "pcap", "registers", "seed"])]
    on: Vec<String>,
    /// Fraction of link frames that are lost.
    #[arg(long, default_value_t = 0.0, value_parser = fraction)]
    loss: f64,
    /// Fraction of link frames that are corrupted.
    #[arg(long, default_value_t = 0.0, value_parser = fraction)]
    corrupt: f64,
    /// VIA reliability level of the connection.
    #[arg(long, value_enum, default_value_t = Level::Delivery)]
    reliability: Level,
    /// Bytes of a message.
    #[arg(long, default_value_t = 65_536,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(nic_regs::limits::MAX_TRANSFER_BYTES)))]
    message: u32,
    /// Latency of the link, in cycles of 4 ns.
    #[arg(long, default_value_t = 10, value_name = "CYCLES",
          value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    latency: u64,
    /// Write waveforms of both NICs (.vcd, or .fst in a build with the feature `fst`).
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write the frames of the link to this file (pcapng, for Wireshark).
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Print every register access.
    #[arg(long)]
    registers: bool,
    /// Seed of faults and thread order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Arguments {
    fn device(&self) -> DeviceKind {
        self.device.unwrap_or_else(DeviceKind::preferred)
    }
}

/// How a value is written on the command line.
fn value_name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceKind {
    /// The behavioural model.
    Model,
    /// The RTL under Verilator.
    Rtl,
}

impl DeviceKind {
    const fn preferred() -> Self {
        if cfg!(feature = "rtl") { Self::Rtl } else { Self::Model }
    }

    /// What it is, for a person.
    const fn about(self) -> &'static str {
        match self {
            Self::Model => "behavioural model",
            Self::Rtl => "Verilated RTL",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    /// Unreliable Delivery.
    Unreliable,
    /// Reliable Delivery.
    Delivery,
    /// Reliable Reception.
    Reception,
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=0.9).contains(&value) => Ok(value),
        _ => Err("a fraction from 0 to 0.9 is wanted, for example 0.01".into()),
    }
}

fn read(file: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let Some(path) = file else { return Ok(SAMPLE.to_vec()) };
    let metadata = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if metadata.is_dir() {
        return Err(format!("{} is a directory; name a file", path.display()).into());
    }
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let data = read(arguments.file.as_deref())?;
    let name =
        arguments.file.as_ref().map_or("docs/contract.md".into(), |f| f.display().to_string());
    let on = match &arguments.on[..] {
        [] => None,
        [sender, receiver] => Some([sender.clone(), receiver.clone()]),
        _ => return Err("--on is given twice: for the sender, and for the receiver".into()),
    };
    let about =
        on.as_ref().map_or_else(|| arguments.device().about().to_owned(), |on| on.join(" to "));
    let level = value_name(arguments.reliability);
    println!("{name}: {} bytes, level {level}, {about}", data.len());
    if let Some(on) = on {
        let outcome = transfer(arguments, &data, &Ends::open(&on)?)?;
        let checked = check(arguments, &data, &outcome);
        report::print_devices(&outcome, data.len());
        return checked;
    }
    let capture =
        arguments.pcap.as_deref().map(|path| Capture::create(path, &NODES)).transpose()?;
    let (simulation, drivers, wire) = build(arguments, capture.as_ref())?;
    let wall = Instant::now();
    let first_cycle = simulation.now();
    let ends = Ends::Simulated { simulation: &simulation, drivers: &drivers };
    let outcome = transfer(arguments, &data, &ends)?;
    let checked = check(arguments, &data, &outcome);
    report::print(&report::Run {
        device: arguments.device(),
        drivers: &drivers,
        wire: &wire,
        outcome: &outcome,
        bytes: data.len(),
        message_bytes: arguments.message as usize,
        cycles: simulation.now() - first_cycle,
        wall: wall.elapsed(),
    })?;
    if let Some(capture) = capture {
        println!("frames captured   {}, sent and received", capture.frames()?);
    }
    checked
}

/// Sends the file.
fn transfer(arguments: &Arguments, data: &[u8], ends: &Ends<'_>) -> Result<Outcome, Failure> {
    let template = "[{bar:40}] {bytes}/{total_bytes} {elapsed}";
    let bar = Bar::new("demo", data.len() as u64, "bytes", template)?;
    let job = transfer::Job {
        ends,
        level: match arguments.reliability {
            Level::Unreliable => vipl::Reliability::Unreliable,
            Level::Delivery => vipl::Reliability::Delivery,
            Level::Reception => vipl::Reliability::Reception,
        },
        message_bytes: arguments.message as usize,
        data,
        progress: &bar,
    };
    let outcome = transfer::run(&job)?;
    bar.finish();
    Ok(outcome)
}

/// Compares what was sent with what arrived, and shows both.
fn check(arguments: &Arguments, data: &[u8], outcome: &Outcome) -> Result<(), Failure> {
    let digest = |bytes: &[u8]| -> String {
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let (sent, received) = (digest(data), digest(&outcome.received));
    println!("SHA-256 sent      {sent}");
    println!("SHA-256 received  {received}");
    if sent == received {
        return Ok(());
    }
    Err(format!(
        "the file did not arrive whole: {} of {} messages are missing{}",
        outcome.missing,
        outcome.messages,
        if arguments.reliability == Level::Unreliable {
            " (Unreliable Delivery does not repeat what the link loses)"
        } else {
            ""
        }
    )
    .into())
}

type Drivers = [Arc<DriverNic>; 2];
type SharedWire = Arc<Mutex<Wire>>;

/// Two nodes, brought up, with a wire between them.
fn build(
    arguments: &Arguments,
    capture: Option<&Capture>,
) -> Result<(SeededSimulation, Drivers, SharedWire), Failure> {
    let faults = Faults {
        seed: arguments.seed,
        loss: arguments.loss,
        corrupt: arguments.corrupt,
        ..Faults::default()
    };
    let wire = Wire::with_faults(arguments.latency, &faults);
    let config = SimulationConfig { seed: arguments.seed, ..SimulationConfig::default() };
    let devices = [device(arguments, "a")?, device(arguments, "b")?];
    let (simulation, buses, wire) = SeededSimulation::pair(config, devices, wire);
    if let Some(capture) = capture {
        simulation.wrap_network(|network| capture.tap(network));
    }
    let mut drivers = Vec::new();
    for (i, bus) in buses.into_iter().enumerate() {
        let mut bus: Arc<dyn host_driver::bus::Bus> = bus;
        if arguments.registers {
            let sink = Box::new(move |line: &str| println!("node {} {line}", NODES[i]));
            bus = Arc::new(host_driver::bus::trace::TraceBus::new(bus, sink));
        }
        let config = NicConfig::new(NODES[i], &[NODES[1 - i]]).with_seed(arguments.seed + i as u64);
        drivers.push(DriverNic::open(bus, &config)?);
    }
    let drivers = drivers.try_into().map_err(|_| "two nodes")?;
    Ok((simulation, drivers, wire))
}

#[cfg(feature = "rtl")]
fn device(arguments: &Arguments, node: &str) -> Result<SimulatedDevice, Failure> {
    if arguments.device() == DeviceKind::Model {
        return model(arguments);
    }
    let mut nic = cosim::rtl::RtlNic::new(cosim::root_complex::HostSettings::default());
    if let Some(path) = &arguments.trace {
        println!("waveform of node {node}: {}", nic.trace_node(path, node)?.display());
    }
    Ok(Box::new(nic))
}

#[cfg(not(feature = "rtl"))]
fn device(arguments: &Arguments, _node: &str) -> Result<SimulatedDevice, Failure> {
    if arguments.device() == DeviceKind::Rtl {
        return Err("this build has no RTL; run it as `cargo viaduct demo`, which sets up \
                    Verilator and builds with the feature `rtl`"
            .into());
    }
    model(arguments)
}

fn model(arguments: &Arguments) -> Result<SimulatedDevice, Failure> {
    if arguments.trace.is_some() {
        return Err("only the RTL has waveforms: leave out --trace or use --device rtl".into());
    }
    Ok(Box::new(nic_model::Model::new()))
}
