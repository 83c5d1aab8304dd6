//! Names of devices, taken apart.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use nic_regs::limits::PEER_COUNT;

use crate::error::{Error, Result};

/// Most nodes of a simulation: as many as a NIC knows.
#[expect(clippy::cast_possible_truncation, reason = "64")]
const NODES_MAX: u8 = PEER_COUNT as u8;

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The behavioural model.
    Model,
    /// The Verilated RTL.
    Rtl,
}

/// Options of a simulation:
/// `sim:model?node=1&nodes=2&loss=0.01&corrupt=0.01&latency=20&seed=1&simulation=NAME&trace=FILE`.
#[derive(Clone, Debug, PartialEq)]
pub struct SimOptions {
    /// Node of this NIC.
    pub node: u8,
    /// Nodes in the simulation.
    pub nodes: u8,
    /// Chance that a frame is lost.
    pub loss: f64,
    /// Chance that a bit of a frame is inverted.
    pub corrupt: f64,
    /// Latency of the wire, in cycles.
    pub latency: u64,
    /// Seed of all chances.
    pub seed: u64,
    /// Simulations of different names share nothing.
    pub simulation: String,
    /// Waveforms of the RTL go here, one file a node; none if this is empty.
    pub trace: PathBuf,
    /// Doorbells of programs are memory that leads nowhere, for counting what posting costs
    /// ([`cosim::simulation::live`]).
    pub doorbells_nowhere: bool,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            node: 0,
            nodes: 2,
            loss: 0.0,
            corrupt: 0.0,
            latency: 20,
            seed: 1,
            simulation: String::new(),
            trace: PathBuf::new(),
            doorbells_nowhere: false,
        }
    }
}

/// What nodes of both kinds of network are opened with: `[?time_out=MS][&pcap=FILE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetOptions {
    /// How long a peer may not answer, in milliseconds.
    pub time_out_ms: u64,
    /// A file that all packets are written into.
    pub pcap: Option<PathBuf>,
}

impl Default for NetOptions {
    fn default() -> Self {
        Self { time_out_ms: soft_nic::net::TIME_OUT_MS, pcap: None }
    }
}

/// A node of the UDP network: `udp:[IP[:PORT]]`, with [`NetOptions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpOptions {
    /// Address of its socket; port 0 stands for any free one.
    pub address: SocketAddr,
    /// What else it is opened with.
    pub net: NetOptions,
}

/// A node of an Ethernet: `eth:INTERFACE`, with [`NetOptions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EthOptions {
    /// Name of the interface.
    pub interface: String,
    /// What else it is opened with.
    pub net: NetOptions,
}

/// Where a device is.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// In a simulation in this process.
    Sim(Kind, SimOptions),
    /// Behind a socket.
    VfioUser(PathBuf),
    /// Shared memory of this machine, as a node with this name, or any.
    Shm(Option<String>),
    /// A node of the UDP network.
    Udp(UdpOptions),
    /// An Ethernet interface.
    Eth(EthOptions),
    /// A PCIe card by its address; the only one for an empty text.
    Vfio(String),
    /// Behind the first socket in a folder that no other program uses.
    Folder(PathBuf),
    /// Wherever the default device is.
    Default,
}

impl SimOptions {
    /// The simulation, whichever its node.
    #[must_use]
    pub fn simulation_key(&self, kind: Kind) -> String {
        format!("{:?}", (kind, Self { node: 0, ..self.clone() }))
    }
}

impl Place {
    /// Equal for the same device.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{self:?}")
    }
}

/// Whether it is a legacy device name: what programs for older NICs open.
fn is_legacy(name: &str) -> bool {
    let numbered = |stem: &str| {
        name.strip_prefix(stem).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
    };
    name.starts_with("/dev/clanvi")
        || name.starts_with("/dev/via_")
        || name.starts_with("/etc/via_")
        || numbered("VINIC")
        || numbered("nic")
}

/// Takes a name apart.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Unknown`].
pub fn parse(name: &str) -> Result<Place> {
    let name = name.trim();
    if name.is_empty() || is_legacy(name) {
        return Ok(Place::Default);
    }
    let malformed = |why: &str| Error::Malformed { url: name.to_owned(), why: why.to_owned() };
    let Some((scheme, rest)) = name.split_once(':') else {
        return Err(Error::Unknown { name: name.to_owned() });
    };
    match scheme {
        "sim" => {
            let (kind, options) = rest.split_once('?').unwrap_or((rest, ""));
            let kind = match kind {
                "model" => Kind::Model,
                "rtl" => Kind::Rtl,
                _ => return Err(malformed("what is simulated is `model` or `rtl`")),
            };
            let options = sim_options(options).map_err(|why| malformed(&why))?;
            if kind == Kind::Model && !options.trace.as_os_str().is_empty() {
                return Err(malformed("only the RTL has waveforms"));
            }
            Ok(Place::Sim(kind, options))
        }
        "shm" => shm_node(rest).map(Place::Shm).map_err(|why| malformed(&why)),
        "udp" => udp_options(rest).map(Place::Udp).map_err(|why| malformed(&why)),
        "eth" => eth_options(rest).map(Place::Eth).map_err(|why| malformed(&why)),
        "vfio-user" if !rest.is_empty() => Ok(Place::VfioUser(PathBuf::from(rest))),
        "vfio-user" => Err(malformed("the path of a socket is missing")),
        "vfio" => Ok(Place::Vfio(rest.to_owned())),
        _ => Err(malformed(
            "the part before the colon is one of eth, shm, sim, udp, vfio-user, vfio",
        )),
    }
}

/// The name of the node in `shm:?node=NAME`.
fn shm_node(text: &str) -> core::result::Result<Option<String>, String> {
    if text.is_empty() || text == "?" {
        return Ok(None);
    }
    let name = text.strip_prefix("?node=").filter(|name| !name.is_empty());
    let name = name.ok_or(format!("`{text}` is not ?node=NAME"))?;
    // As the nodes of simulations are called.
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    Ok(Some(if is_number { format!("node{name}") } else { name.to_owned() }))
}

/// What stands behind `udp:`.
fn udp_options(text: &str) -> core::result::Result<UdpOptions, String> {
    let (place, options) = text.split_once('?').unwrap_or((text, ""));
    let address = if place.is_empty() {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
    } else {
        soft_nic::net::parse(place, soft_nic::net::DEFAULT_PORT)
            .ok_or_else(|| format!("`{place}` is not IP or IP:PORT, such as 10.0.0.1:22089"))?
    };
    Ok(UdpOptions { address, net: net_options(options)? })
}

/// What stands behind `eth:`.
fn eth_options(text: &str) -> core::result::Result<EthOptions, String> {
    let (interface, options) = text.split_once('?').unwrap_or((text, ""));
    if interface.is_empty() {
        return Err("the name of an interface is missing, such as eth:eth0".to_owned());
    }
    Ok(EthOptions { interface: interface.to_owned(), net: net_options(options)? })
}

/// `time_out=MS` and `pcap=FILE`.
fn net_options(text: &str) -> core::result::Result<NetOptions, String> {
    let mut options = NetOptions::default();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("time_out", value)) => {
                let number = value.parse().ok().filter(|ms| (100..=3_600_000).contains(ms));
                options.time_out_ms = number
                    .ok_or_else(|| format!("`{pair}` is not from 100 to 3600000 milliseconds"))?;
            }
            Some(("pcap", "")) => return Err("the name of the file of packets is missing".into()),
            Some(("pcap", value)) => options.pcap = Some(value.into()),
            Some((key, _)) => return Err(format!("there is no option `{key}`")),
            None => return Err(format!("`{pair}` is not KEY=VALUE")),
        }
    }
    Ok(options)
}

fn sim_options(text: &str) -> core::result::Result<SimOptions, String> {
    fn number<T: core::str::FromStr>(key: &str, value: &str) -> core::result::Result<T, String> {
        value.parse().map_err(|_| format!("`{key}={value}` is not a number in range"))
    }
    let chance = |key: &str, value: &str| match number::<f64>(key, value)? {
        chance if (0.0..1.0).contains(&chance) => Ok(chance),
        _ => Err(format!("`{key}={value}` is not from 0 to below 1")),
    };
    let mut options = SimOptions::default();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or(format!("`{pair}` is not KEY=VALUE"))?;
        match key {
            "node" => options.node = number(key, value)?,
            "nodes" => options.nodes = number(key, value)?,
            "loss" => options.loss = chance(key, value)?,
            "corrupt" => options.corrupt = chance(key, value)?,
            "latency" => options.latency = number(key, value)?,
            "seed" => options.seed = number(key, value)?,
            "doorbells" if value == "nowhere" => options.doorbells_nowhere = true,
            "doorbells" => return Err(format!("`doorbells` is `nowhere`, not `{value}`")),
            "trace" => options.trace = value.into(),
            "simulation" => value.clone_into(&mut options.simulation),
            _ => return Err(format!("there is no option `{key}`")),
        }
    }
    if !(1..=NODES_MAX).contains(&options.nodes) {
        return Err(format!("`nodes` is from 1 to {NODES_MAX}"));
    }
    if options.node >= options.nodes {
        return Err(format!("node {} is not one of {} nodes", options.node, options.nodes));
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_names_are_the_default_device() {
        for name in
            ["", " ", "/dev/clanvi0", "/dev/via_eth0", "/dev/via_lo", "VINIC", "VINIC3", "nic0"]
        {
            assert_eq!(parse(name).unwrap(), Place::Default, "{name}");
        }
        assert!(matches!(parse("eth0"), Err(Error::Unknown { .. })));
        assert!(matches!(parse("VINICx"), Err(Error::Unknown { .. })));
    }

    #[test]
    fn urls_are_taken_apart() {
        let options = SimOptions { node: 1, loss: 0.25, ..SimOptions::default() };
        assert_eq!(
            parse("sim:rtl?node=1&loss=0.25").unwrap(),
            Place::Sim(Kind::Rtl, options.clone())
        );
        let other = SimOptions { node: 0, ..options.clone() };
        assert_eq!(options.simulation_key(Kind::Rtl), other.simulation_key(Kind::Rtl));
        assert_ne!(options.simulation_key(Kind::Rtl), options.simulation_key(Kind::Model));
        let traced = SimOptions { trace: "a/out.vcd".into(), ..SimOptions::default() };
        assert_eq!(parse("sim:rtl?trace=a/out.vcd").unwrap(), Place::Sim(Kind::Rtl, traced));
        assert_eq!(parse("shm:").unwrap(), Place::Shm(None));
        for (url, name) in [("shm:?node=a", "a"), ("shm:?node=12", "node12")] {
            assert_eq!(parse(url).unwrap(), Place::Shm(Some(name.to_owned())));
        }
        for (url, address, time_out_ms) in [
            ("udp:", "127.0.0.1:0", 5_000),
            ("udp:10.0.0.1", "10.0.0.1:22089", 5_000),
            ("udp:10.0.0.1:70?time_out=900", "10.0.0.1:70", 900),
            ("udp:[::1]", "[::1]:22089", 5_000),
        ] {
            let net = NetOptions { time_out_ms, pcap: None };
            let options = UdpOptions { address: address.parse().unwrap(), net };
            assert_eq!(parse(url).unwrap(), Place::Udp(options), "{url}");
        }
        let net = NetOptions { time_out_ms: 250, pcap: Some("a/out.pcapng".into()) };
        let eth = EthOptions { interface: "eth0".to_owned(), net };
        assert_eq!(parse("eth:eth0?time_out=250&pcap=a/out.pcapng").unwrap(), Place::Eth(eth));
        let path = PathBuf::from("run/nic0.sock");
        assert_eq!(parse("vfio-user:run/nic0.sock").unwrap(), Place::VfioUser(path));
    }

    #[test]
    fn urls_that_are_malformed_are_named() {
        for url in [
            "sim:",
            "sim:fpga",
            "sim:model?",
            "sim:model?node",
            "sim:model?node=2",
            "sim:model?nodes=0",
            "sim:model?loss=1",
            "sim:model?loss=x",
            "sim:model?colour=red",
            "sim:model?doorbells=loud",
            "sim:model?trace=out.vcd",
            "vfio-user:",
            "shm:node0",
            "shm:?name=a",
            "shm:?node=",
            "udp:host",
            "udp:?pcap=",
            "eth:",
            "eth:eth0?mtu=9000",
            "udp:10.0.0.1:70000",
            "udp:10.0.0.1?time_out=1",
            "udp:10.0.0.1?key=a",
            "udp:?x",
            "http://host",
        ] {
            let fine = url == "sim:model?";
            assert_eq!(matches!(parse(url), Err(Error::Malformed { .. })), !fine, "{url}");
        }
    }
}
