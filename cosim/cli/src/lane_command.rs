//! `viaduct lane`: a network device of the kernel whose IP packets go by VIA.

use crate::Failure;
use crate::lines::Lines;
use clap::Args;
use lane::{Config, Event, Host, Lane, Network, Networks, Tun};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use vipl::waiting::SPIN_VARIABLE;
use vipl::{NetAddress, Nic, Waiting};

/// The longest packet where nothing else is said, in bytes: the papers' longest message.
const MTU: u32 = 32 << 10;

/// Carry IP over VIA: a network device for programs that use the kernel's TCP.
///
/// Makes a TUN device with these addresses, and carries its packets to the lanes of other nodes, by the
/// VIA device. Nodes find each other; those that cannot be found are named with --peer. Ends with Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  viaduct lane --address 10.7.0.1/24                       a node of this machine (in its own namespace)
  viaduct lane --address 10.7.0.1/24 --address fd07::1/64  with IPv6, too
  viaduct lane --device udp:192.0.2.1:5000 --address 10.7.0.1/24 --peer 198.51.100.7:5000
                                                           to another machine, by UDP
  viaduct lane --device vfio-user:nics --address 10.7.0.1/24
                                                           by a NIC of `viaduct cosim serve --dir nics`

Needs CAP_NET_ADMIN and /dev/net/tun. docs/lane.md has more.")]
pub(crate) struct Arguments {
    /// Device of VIA; without it, the default device.
    #[arg(long, value_name = "URL", default_value = "")]
    device: String,
    /// An address of this node, and its network; the first network names the LAN.
    #[arg(long = "address", value_name = "ADDRESS/BITS", required = true)]
    addresses: Vec<Network>,
    /// A host of VIA that has a lane, by its name on the device (node1, 198.51.100.7:5000, a name of the hosts
    /// file); those that can be found need not be named.
    #[arg(long = "peer", value_name = "HOST")]
    peers: Vec<String>,
    /// Name of the network device; %d stands for the first number that is free.
    #[arg(long, default_value = "viaduct%d")]
    name: String,
    /// The longest packet in bytes, the same on all nodes [default: 32768, or what the device takes].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1280..=65535))]
    mtu: Option<u32>,
}

/// A host as a person names it.
fn name_of(nic: &Nic, host: &Host) -> String {
    nic.ns_host_by_addr(&NetAddress::new(host, &[])).unwrap_or_else(|_| {
        let bytes: Vec<String> = host.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(":")
    })
}

fn list(addresses: &[IpAddr]) -> String {
    let all: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    all.join(", ")
}

fn line_of(nic: &Nic, event: &Event) -> String {
    let name = |host| name_of(nic, host);
    match event {
        Event::Up(host, addresses) => format!("{} ({}) is up", list(addresses), name(host)),
        Event::Down(host, addresses) => format!("{} ({}) is down", list(addresses), name(host)),
        Event::Refused(host, why) => format!("{} is refused: {why}", name(host)),
        Event::OtherMtu(host) => {
            format!("{} is refused: its lane has another MTU; give both the same --mtu", name(host))
        }
        Event::NoRoom(host, why) => format!("no connection with {}: {why}", name(host)),
        Event::Failed(why) => format!("failed: {why}"),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let networks = Networks::new(arguments.addresses.clone());
    let networks = networks.ok_or_else(|| format!("more than {} addresses", Networks::MOST))?;
    let waiting = Waiting::from_environment()
        .map_err(|value| format!("{SPIN_VARIABLE}={value}: neither microseconds nor inf"))?;
    let nic = Nic::open_with(device::open(&arguments.device)?, waiting);
    nic.ns_init(None)?;
    let longest = nic.query().max_transfer_size;
    let mtu = arguments.mtu.unwrap_or(MTU.min(longest));
    let peer = |name: &String| match nic.ns_host_by_name(name, 0) {
        Ok(address) => Ok(address.host),
        Err(error) => Err(format!("--peer {name}: no such host: {error}")),
    };
    let peers = arguments.peers.iter().map(peer).collect::<Result<_, _>>()?;
    let tun = Tun::create(&arguments.name, &networks, mtu)?;
    let name = tun.name().to_owned();
    // Before the first line, so that whoever reads it can stop the lane.
    let (mut stop, signalled) = UnixStream::pair()?;
    pipe::register(SIGINT, signalled.try_clone()?)?;
    pipe::register(SIGTERM, signalled.try_clone()?)?;
    let (output, written) = Lines::to(std::io::stdout())?;
    output.say(&format_args!(
        "{name}: carries {networks} by {}, MTU {mtu}; Ctrl-C ends it",
        nic.query().name,
    ));
    let failure = Arc::new(Mutex::new(None));
    let (failed, said, own) = (Arc::clone(&failure), output.clone(), nic.clone());
    let report = move |event: &Event| {
        said.say(&line_of(&own, event));
        if let Event::Failed(why) = event {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
            let _ = (&signalled).write_all(&[0]);
        }
    };
    let config = Config { networks, mtu, peers };
    let mut lane = Lane::start(nic, tun.into_file(), config, Box::new(report))?;
    stop.read_exact(&mut [0])?;
    lane.stop();
    output.say(&format_args!("{name}: {}", lane.counters()));
    drop((lane, output));
    written.wait();
    let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    failure.map_or(Ok(()), |why| Err(why.into()))
}
