//! Devices by name: what `VipOpenNic` and the command `viaduct` open.
//!
//! | URL | device |
//! |---|---|
//! | `sim:model[?OPTIONS]` | the behavioural model, in a simulation in this process ([`sim`]) |
//! | `sim:rtl[?OPTIONS]` | the Verilated RTL, in a simulation in this process (feature `rtl`) |
//! | `vfio-user:PATH` | a NIC of a simulator in another process, at its socket; in a folder, the first that is free |
//! | `shm:[?node=NAME]` | shared memory: the processes of this machine are the nodes |
//! | `udp:[IP[:PORT]][?time_out=MS][&pcap=FILE]` | a network of UDP sockets: the processes that open one are the nodes |
//! | `eth:INTERFACE[?time_out=MS][&pcap=FILE]` | the same protocol in raw Ethernet frames |
//! | `vfio:ADDRESS`, `vfio:` | a PCIe card; the only one |
//! | empty, or a legacy name such as `/dev/clanvi0` or `VINIC0` | the default device |
//!
//! The default device is what [`DEVICE_VARIABLE`] names, a URL or a folder of sockets. If it is not
//! set and a simulator runs, it is the first NIC in the run-time folder that no other program uses: a
//! NIC serves one program, so that programs that are started one after the other get one each. Without
//! a simulator it is `shm:`. Within a program all names of the default device are the same NIC.
//!
//! The same device may be opened many times in a process: each time gives a port of its own on it,
//! and the device is released with the last one.
#![forbid(unsafe_code)]

mod default;
mod error;
mod hardware;
mod list;
mod observe;
mod opened;
mod shm;
pub mod sim;
mod udp;
mod url;

use std::sync::Arc;

use host_driver::HardwarePort;
use port::ViPort;
use port::clan::ClanPort;

use opened::opened;

pub use error::DEVICE_VARIABLE;
pub use error::{Error, Result};
pub use list::{Availability, Listed, list};
pub use observe::{Observed, observe};
pub use udp::KEY_VARIABLE;
pub use url::{EthOptions, Kind, NetOptions, Place, SimOptions, UdpOptions, parse};

/// Opens a port on the device that `name` names.
///
/// # Errors
/// [`Error::Malformed`]; otherwise why there is no such device.
pub fn open(name: &str) -> Result<Arc<dyn ViPort>> {
    open_any(place_of(name, default::place)?)
}

fn open_any(place: Place) -> Result<Arc<dyn ViPort>> {
    let opened = &mut *opened();
    Ok(match place {
        Place::Shm(node) => shm::open(&mut opened.vias, node.as_deref())?,
        place @ (Place::Udp(_) | Place::Eth(_)) => udp::open(&mut opened.nets, &place)?,
        place => hardware::open(&mut opened.hardware, place)?,
    })
}

/// Opens a domain of a node of a CLAN network. Only shared memory is one today, so it is also what an
/// empty name stands for, unless [`DEVICE_VARIABLE`] names something else. A process that opens the
/// same name several times gets domains of one node: 0, 1 and so on, the lowest that is free.
///
/// # Errors
/// As [`open`]; [`Error::NoClan`] for a device of another kind.
pub fn open_clan(name: &str) -> Result<Arc<dyn ClanPort>> {
    match place_of(name, default::clan)? {
        Place::Shm(node) => Ok(shm::open_domain(&mut opened().domains, node.as_deref())?),
        _ => Err(Error::NoClan { name: name.to_owned() }),
    }
}

/// Opens a port as [`open`], of a device that is hardware, or is simulated as such.
///
/// # Errors
/// As [`open`].
pub fn open_hardware(name: &str) -> Result<Arc<HardwarePort>> {
    let place = place_of(name, default::hardware)?;
    hardware::open(&mut opened().hardware, place)
}

/// The place that `name` names, which for the default device is another one's: what `default` says.
fn place_of(name: &str, default: fn() -> Result<Place>) -> Result<Place> {
    match parse(name)? {
        Place::Default => default(),
        place => Ok(place),
    }
}
