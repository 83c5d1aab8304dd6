//! `viaduct cosim serve`: a simulator that other programs use.

use crate::Failure;
use crate::demo::DeviceKind;
use crate::lines::Lines;
use clap::Args;
use cosim::serve::{Config, DeviceFactory, Server};
use cosim::simulation::SimulatedDevice;
use cosim::simulation::network::capture::Capture;
use nic_model::Model;
use nic_model::link::Faults;
use port::trust::run_time_folder;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
#[cfg(feature = "rtl")]
use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// Serve simulated NICs to other programs, over UNIX sockets.
///
/// Each NIC is a PCI device behind a socket nic0.sock, nic1.sock, ... in the folder, by the
/// vfio-user protocol. Every node reaches every other. Stop it with Ctrl-C; it removes its sockets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct cosim serve                                  two models on a good wire
  viaduct cosim serve --nodes 3 --loss 0.01            three, each wire loses frames
  viaduct cosim serve --device rtl --dir nics          the RTL; sockets in ./nics
  viaduct cosim serve --device rtl --trace out.vcd     waveforms: out-0.vcd, out-1.vcd
  viaduct cosim serve --pcap out.pcapng                frames, for Wireshark")]
pub(crate) struct Arguments {
    /// Number of nodes.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    nodes: u8,
    /// What each node is.
    #[arg(long, value_enum, default_value_t = DeviceKind::Model)]
    device: DeviceKind,
    /// Chance that a frame is lost, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_parser = chance)]
    loss: f64,
    /// Chance that a bit of a frame is inverted, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_parser = chance)]
    corrupt: f64,
    /// Seed of the faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cycles from one end of a wire to the other.
    #[arg(long, default_value_t = 20, value_name = "CYCLES",
          value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    latency: u64,
    /// Write waveforms of every node (.vcd, or .fst in a build with the feature `fst`). They grow as
    /// long as programs run: a million cycles of a busy NIC are about a gigabyte of VCD.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write the frames of the wires to this file (pcapng, for Wireshark).
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Stop at the end of standard input too: with whoever holds the other end.
    #[arg(long)]
    until_eof: bool,
    /// Folder of the sockets [default: viaduct in $XDG_RUNTIME_DIR, else a folder of this user in
    /// the folder of temporary files].
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn chance(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(chance) if (0.0..=1.0).contains(&chance) => Ok(chance),
        _ => Err("a chance is a number from 0 to 1".to_owned()),
    }
}

#[cfg(feature = "rtl")]
fn rtl(trace: Option<PathBuf>) -> Result<DeviceFactory, Failure> {
    use cosim::root_complex::HostSettings;
    use cosim::rtl::RtlNic;
    if let Some(path) = &trace {
        // What is wrong with the file is said before there is a socket.
        RtlNic::new(HostSettings::default()).trace_node(path, "0")?;
    }
    let mut made = BTreeMap::<u8, u32>::new();
    Ok(Box::new(move |node| {
        let settings = HostSettings { seed: 1 + u64::from(node), ..HostSettings::default() };
        let mut nic = RtlNic::new(settings);
        // A device that did not answer any more has another one in its place.
        let count = made.entry(node).and_modify(|count| *count += 1).or_insert(1);
        let name = if *count == 1 { node.to_string() } else { format!("{node}.{count}") };
        if let Some(path) = &trace
            && let Err(error) = nic.trace_node(path, &name)
        {
            eprintln!("nic{node}: no waveforms: {error}");
        }
        Box::new(nic) as SimulatedDevice
    }))
}

#[cfg(not(feature = "rtl"))]
fn rtl(_trace: Option<PathBuf>) -> Result<DeviceFactory, Failure> {
    Err("this build has no RTL; `cargo viaduct cosim serve --device rtl` builds one that has it"
        .into())
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { nodes, device, loss, corrupt, seed, latency, trace, pcap, until_eof, dir } =
        arguments;
    let device: DeviceFactory = match device {
        DeviceKind::Model if trace.is_some() => {
            return Err("only the RTL has waveforms: leave out --trace or use --device rtl".into());
        }
        DeviceKind::Model => Box::new(|_| Box::new(Model::default()) as SimulatedDevice),
        DeviceKind::Rtl => rtl(trace.clone())?,
    };
    // Before the sockets are there, so that whoever sees one can stop the server.
    let (stop, signalled) = UnixStream::pair()?;
    pipe::register(SIGINT, signalled.try_clone()?)?;
    if *until_eof {
        let mut ended = signalled.try_clone()?;
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            let _ = ended.write_all(&[0]);
        });
    }
    pipe::register(SIGTERM, signalled)?;
    let faults = Faults { seed: *seed, loss: *loss, corrupt: *corrupt, ..Faults::default() };
    let folder = dir.clone().unwrap_or_else(run_time_folder);
    let config = Config { nodes: *nodes, latency: *latency, faults, folder, device };
    let nodes: Vec<u8> = (0..*nodes).collect();
    let capture = pcap.as_ref().map(|path| Capture::create(path, &nodes)).transpose()?;
    let mut server = Server::start(config)?;
    capture.iter().for_each(|capture| server.capture(capture));
    // Who reads these, or does not, has no say over the clients.
    let (output, written) = Lines::to(std::io::stdout())?;
    let (errors, errors_written) = Lines::to(std::io::stderr())?;
    for path in server.sockets() {
        output.say(&format_args!("vfio-user:{}", path.display()));
    }
    output.say(&"ready");
    server.on_unreachable(move |access| errors.say(access));
    server.run(stop.as_fd())?;
    output.say(&format_args!("stopped after {} cycles", server.now()));
    drop((server, output));
    written.wait();
    errors_written.wait();
    capture.map_or(Ok(()), |capture| Ok(capture.frames().map(drop)?))
}
