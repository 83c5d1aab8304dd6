//! Devices by name: what `VipOpenNic` and the command `viaduct` open.
//!
//! | URL | device |
//! |---|---|
//! | `sim:model[?OPTIONS]` | the behavioural model, in a world in this process ([`sim`]) |
//! | `sim:rtl[?OPTIONS]` | the Verilated RTL, in a world in this process (feature `rtl`) |
//! | `vfio-user:PATH` | a simulator in another process, at its socket |
//! | `vfio:ADDRESS` | a PCIe card; later |
//! | empty, or a name of old such as `/dev/clanvi0` or `VINIC0` | the default device ([`default_url`]) |
//!
//! The same device may be opened many times in a process: each time gives a port of its own on it,
//! and the device is given back with the last one.
#![forbid(unsafe_code)]

mod error;
pub mod live;
pub mod sim;
mod url;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use host_driver::bus::vfio_user::{VfioUserBus, run_time_folder};
use host_driver::nic::{Nic, NicConfig};
use host_driver::port::HardwarePort;
use host_driver::sync::lock;

pub use error::{Error, Result};
pub use url::{Kind, Place, SimOptions, parse};

/// The variable that names the default device.
pub const DEVICE_VARIABLE: &str = "VIADUCT_DEVICE";

/// Drivers of this process by what they drive. A driver goes with its last port.
static DRIVERS: Mutex<BTreeMap<String, Weak<Nic>>> = Mutex::new(BTreeMap::new());

/// Opens a port on the device that `name` names.
///
/// # Errors
/// [`Error::Malformed`]; otherwise why there is no such device.
pub fn open(name: &str) -> Result<Arc<HardwarePort>> {
    let place = match parse(name)? {
        Place::Default => parse(&default_url()?)?,
        place => place,
    };
    // Held throughout, so that two openers do not bring the same device up twice.
    let mut drivers = lock(&DRIVERS);
    drivers.retain(|_, driver| driver.strong_count() > 0);
    let key = place.key();
    let driver = match drivers.get(&key).and_then(Weak::upgrade) {
        Some(driver) => driver,
        None => {
            let driver = bring_up(&place)?;
            drivers.insert(key, Arc::downgrade(&driver));
            driver
        }
    };
    Ok(HardwarePort::open(driver)?)
}

fn bring_up(place: &Place) -> Result<Arc<Nic>> {
    match place {
        Place::Sim(kind, options) => sim::bring_up(*kind, options),
        Place::VfioUser(path) => {
            let bus = VfioUserBus::connect(path)?;
            let node = bus.node();
            let peers: Vec<u8> = (0..bus.nodes()).filter(|peer| *peer != node).collect();
            Ok(Nic::open(bus, &NicConfig::new(node, &peers))?)
        }
        Place::Vfio(address) => {
            Err(Error::NotYet { what: format!("vfio:{address}"), instead: "sim:model" })
        }
        Place::Default => {
            Err(Error::NoDefault { variable: DEVICE_VARIABLE, folder: run_time_folder() })
        }
    }
}

/// The URL of the default device: `VIADUCT_DEVICE`, else the first socket in [`run_time_folder`].
///
/// # Errors
/// [`Error::NoDefault`].
pub fn default_url() -> Result<String> {
    if let Ok(url) = std::env::var(DEVICE_VARIABLE)
        && !url.is_empty()
    {
        return Ok(url);
    }
    let folder = run_time_folder();
    let mut sockets: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    sockets.retain(|path| path.extension().is_some_and(|extension| extension == "sock"));
    sockets.sort();
    let first = sockets.into_iter().next();
    let no_default = Error::NoDefault { variable: DEVICE_VARIABLE, folder };
    first.map(|path| format!("vfio-user:{}", path.display())).ok_or(no_default)
}
