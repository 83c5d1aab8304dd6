//! Devices by name: what `VipOpenNic` and the command `viaduct` open.
//!
//! | URL | device |
//! |---|---|
//! | `sim:model[?OPTIONS]` | the behavioural model, in a simulation in this process ([`sim`]) |
//! | `sim:rtl[?OPTIONS]` | the Verilated RTL, in a simulation in this process (feature `rtl`) |
//! | `vfio-user:PATH` | a NIC of a simulator in another process, at its socket; in a folder, the first that is free |
//! | `shm:[?node=NAME]` | shared memory: the processes of this machine are the nodes |
//! | `udp:[IP[:PORT]][?time_out=MS]` | a network of UDP sockets: the processes that open one are the nodes |
//! | `eth:INTERFACE[?time_out=MS]` | the same protocol in raw Ethernet frames |
//! | `vfio:ADDRESS` | a PCIe card; later |
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
mod list;
mod observe;
mod shm;
pub mod sim;
mod udp;
mod url;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use host_driver::HardwarePort;
use host_driver::bus::vfio_user::{ANSWER_BOUND, VfioUserBus};
use host_driver::nic::{Nic, NicConfig};
use port::ViPort;
use port::clan::ClanPort;
use port::sync::lock;
use port::trust::run_time_folder;

pub use error::DEVICE_VARIABLE;
pub use error::{Error, Result};
pub use list::{Availability, Listed, list};
pub use observe::{Observed, observe};
pub use udp::KEY_VARIABLE;
pub use url::{EthOptions, Kind, Place, SimOptions, UdpOptions, parse};

/// Longest wait for a device that another thread of this process is giving back.
const GIVING_BACK: Duration = Duration::from_secs(2);
/// How long the waiting thread sleeps.
const NAP: Duration = Duration::from_micros(50);

/// A driver of this process. It goes with its last port.
#[derive(Debug)]
struct Driver {
    nic: Weak<Nic>,
    /// There until the device is released.
    ownership: Weak<()>,
}

/// Drivers by what they drive.
type Drivers = BTreeMap<String, Driver>;

static DRIVERS: Mutex<Drivers> = Mutex::new(Drivers::new());

impl Driver {
    fn of(nic: &Arc<Nic>) -> Self {
        Self { nic: Arc::downgrade(nic), ownership: nic.ownership() }
    }

    /// Waits while the device is being released. In a child after fork nobody may be left to do it,
    /// so not for ever; whoever brings the device up then gets the error that it is in use.
    fn settle(&self) {
        let end = Instant::now() + GIVING_BACK;
        while self.nic.strong_count() == 0
            && self.ownership.strong_count() > 0
            && Instant::now() < end
        {
            std::thread::sleep(NAP);
        }
    }
}

/// Opens a port on the device that `name` names.
///
/// # Errors
/// [`Error::Malformed`]; otherwise why there is no such device.
pub fn open(name: &str) -> Result<Arc<dyn ViPort>> {
    open_any(place_of(name, default::place)?)
}

fn open_any(place: Place) -> Result<Arc<dyn ViPort>> {
    Ok(match place {
        Place::Shm(node) => shm::open(node.as_deref())?,
        place @ (Place::Udp(_) | Place::Eth(_)) => udp::open(&place)?,
        place => open_place(place)?,
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
        Place::Shm(node) => Ok(shm::open_domain(node.as_deref())?),
        _ => Err(Error::NoClan { name: name.to_owned() }),
    }
}

/// Opens a port as [`open`], of a device that is hardware, or is simulated as such.
///
/// # Errors
/// As [`open`].
pub fn open_hardware(name: &str) -> Result<Arc<HardwarePort>> {
    open_place(place_of(name, default::hardware)?)
}

/// The place that `name` names, which for the default device is another one's: what `default` says.
fn place_of(name: &str, default: fn() -> Result<Place>) -> Result<Place> {
    match parse(name)? {
        Place::Default => default(),
        place => Ok(place),
    }
}

fn open_place(place: Place) -> Result<Arc<HardwarePort>> {
    // Held throughout, so that two openers do not bring the same device up twice.
    let mut drivers = lock(&DRIVERS);
    drivers.retain(|_, driver| driver.ownership.strong_count() > 0);
    let driver = match place {
        Place::Folder(folder) => first_free(&mut drivers, folder)?,
        Place::VfioUser(path) if path.is_dir() => first_free(&mut drivers, path)?,
        place => shared(&mut drivers, &place)?,
    };
    Ok(HardwarePort::open(driver)?)
}

/// The driver that this process has, if its card is still there: after a fork the child has the
/// drivers of its parent, whose cards are not its own, and a simulator may have been started anew.
fn known(drivers: &Drivers, key: &str) -> Option<Arc<Nic>> {
    let driver = drivers.get(key)?;
    driver.settle();
    driver.nic.upgrade().filter(|nic| nic.is_present())
}

/// The driver of a device, which this process may have already.
fn shared(drivers: &mut Drivers, place: &Place) -> Result<Arc<Nic>> {
    let key = place.key();
    if let Some(driver) = known(drivers, &key) {
        return Ok(driver);
    }
    let driver = bring_up(place)?;
    drivers.insert(key, Driver::of(&driver));
    Ok(driver)
}

/// The first device in a folder that no other program uses; the same for all who ask for the
/// folder.
fn first_free(drivers: &mut Drivers, folder: PathBuf) -> Result<Arc<Nic>> {
    let key = Place::Folder(folder.clone()).key();
    if let Some(driver) = known(drivers, &key) {
        return Ok(driver);
    }
    let mut why = Vec::new();
    let start = Instant::now();
    // The sockets of a folder are one simulator's: if it does not answer at one, it does not at others.
    let answers = |_: &PathBuf| start.elapsed() < ANSWER_BOUND;
    for socket in default::sockets(&folder).into_iter().take_while(answers) {
        match shared(drivers, &Place::VfioUser(socket)) {
            Ok(driver) => {
                drivers.insert(key, Driver::of(&driver));
                return Ok(driver);
            }
            Err(Error::Driver(error)) => why.push(error),
            Err(other) => return Err(other),
        }
    }
    Err(if why.is_empty() { Error::NoDefault { folder } } else { Error::NoneFree { folder, why } })
}

fn bring_up(place: &Place) -> Result<Arc<Nic>> {
    match place {
        Place::Sim(kind, options) => sim::bring_up(*kind, options),
        Place::VfioUser(path) => {
            let bus = VfioUserBus::connect(path)?;
            let config = NicConfig::simulated(bus.node(), bus.nodes());
            Ok(Nic::open(bus, &config)?)
        }
        Place::Vfio(address) => {
            Err(Error::NotYet { what: format!("vfio:{address}"), instead: "sim:model" })
        }
        Place::Shm(_) => Err(Error::NoHardware { url: "shm:" }),
        Place::Udp(_) => Err(Error::NoHardware { url: "udp:" }),
        Place::Eth(_) => Err(Error::NoHardware { url: "eth:" }),
        // Neither is a device; `open_place` has found one.
        Place::Folder(folder) => Err(Error::NoDefault { folder: folder.clone() }),
        Place::Default => Err(Error::NoDefault { folder: run_time_folder() }),
    }
}
